"""ECD by bin, spread by direction, and how every picture draws intervals below each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._checks.columns import fraction, positive
from .._sums.table import Table
from .._types import BoolArray
from ..errors import UnavailableError
from ..html.intervals import ecd_range, factor_range, factors_of
from ..inference.results import Interval
from ..inference.sum_bounds import interval_from_sums
from ..judge.evaluation import Evaluation
from .display import OVER, UNDER, Display, direction_label, ink, legend_above, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BEYOND",
    "DirectionsDisplay",
    "ECDDisplay",
    "arrow_out",
    "draw_intervals",
    "draw_zero",
    "name_rows",
    "note",
    "states",
]

BEYOND, WITHIN, UNCLEAR = "beyond the limit", "within the limit", "cannot tell"
_FEWEST_ROWS = 4  # rows that there is room for
_CROWD = 24.0  # rows from which on they are drawn smaller
_NAME_HEIGHT = 0.165  # inches a name needs


@final
@dataclass(slots=True, eq=False, repr=False)
class ECDDisplay(Display):
    """ECD of each bin, with intervals that hold together, and of all rows.

    Bars to the right of 0 are over-confident, bars to the left under-confident. The intervals of the bins are so wide
    that all of them hold at once; that of all rows holds by itself. The marker says on which side of the limit an
    interval lies. Where an impossible outcome happened, ECD is infinite and an arrow says so. Bins are for reading: the
    verdict looks at ranges of its own, which `LocalDisplay` shows.

    Attributes
    ----------
    labels : tuple of str
        The bins; none when there are no bins.
    n, n_impossible : tuple of int
        Rows of each bin, and those whose outcome had probability zero.
    intervals : tuple of Interval
        ECD of each bin, with its interval; NaN where a bin is empty.
    total : Interval
        ECD of all rows, with its interval.
    n_total, n_impossible_total : int
        All rows, and those whose outcome had probability zero.
    bin_on : str
        What rows are binned on.
    limit : float
        Largest ECD that is allowed, in nats; for states the threshold times the dimension.
    level : float
        Level of the intervals.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    See Also
    --------
    LocalDisplay : ECD along the predictions, whatever the bins.
    ReliabilityDisplay : The same bins as shares.
    GroupsDisplay : ECD by group.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from safecal.plot import ECDDisplay
    >>> display = ECDDisplay.from_predictions([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2)
    >>> display
    ECDDisplay: ECD -0.157 of 5 rows, 0 of 2 bins beyond 0.1 nat
    >>> plt.close(display.figure_)
    """

    labels: tuple[str, ...]
    n: tuple[int, ...]
    n_impossible: tuple[int, ...]
    intervals: tuple[Interval, ...]
    total: Interval
    n_total: int
    n_impossible_total: int
    bin_on: str
    limit: float
    level: float

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        limit = evaluation.verdict.allowed
        s, table, level = evaluation.summary, evaluation.bins or Table.of_summaries("", (), ()), evaluation.level
        rows = _rows(table, level)
        return cls(*rows, evaluation.interval, s.n, s.n_impossible, table.name, limit, level)

    @classmethod
    def from_table(cls, table: Table, *, threshold: float = 0.1, level: float = 0.95, ax: Axes | None = None) -> Self:
        """Draw a table of bins, for example one that was merged from several.

        Parameters
        ----------
        table : Table
            By bin.
        threshold : float, default 0.1
            Largest ECD that is allowed, in nats.
        level : float, default 0.95
            Level of the intervals.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        ECDDisplay
            The display, drawn.
        """
        limit, level = positive(threshold, "threshold"), fraction(level, "level")
        s = table.total
        total = interval_from_sums(s, level)
        return cls(*_rows(table, level), total, s.n, s.n_impossible, table.name, limit, level).plot(ax=ax)

    def __repr__(self) -> str:
        beyond = states(self.intervals, (self.limit,) * len(self.intervals)).count(BEYOND)
        bins = f", {beyond} of {len(self.labels)} bins beyond {self.limit:g} nat" if self.labels else ""
        return f"{type(self).__name__}: ECD {self.total.value:+.3g} of {self.n_total} rows{bins}"

    def _size(self) -> tuple[float, float]:
        return 6.2, 1.8 + 0.26 * min(len(self.intervals) + 1, 40)

    def _draw(self, ax: Axes) -> None:
        intervals = (*self.intervals, self.total)
        limits = (self.limit,) * len(intervals)
        draw_zero(ax, limits)
        together = ", together" if len(self.labels) > 1 else ""
        ax.plot([], [], color=ink(ax), lw=1.3, label=f"{percent(self.level)} intervals{together}")
        draw_intervals(ax, intervals, limits, ecd_range(intervals, limits), bars=True)
        counts = (*self.n, self.n_total)
        named = name_rows(ax, (*self.labels, "all rows"), counts, every=spacing(ax, len(intervals)))
        impossible = (*self.n_impossible, self.n_impossible_total)
        for y, row in enumerate(zip(intervals, counts, impossible, named.tolist(), strict=True)):
            note(ax, y, *row)
        if self.labels:
            ax.axhline(len(self.labels) - 0.5, color=ink(ax), lw=0.8)
            ax.set_ylabel(self.bin_on)
        ax.set_xlabel(direction_label("ECD (nat)"))
        legend_above(ax)


def _rows(table: Table, level: float) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...], tuple[Interval, ...]]:
    return table.labels, tuple(table.n.tolist()), tuple(table.n_impossible.tolist()), table.intervals(level)


def draw_zero(ax: Axes, limits: Sequence[float]) -> None:
    """Draw the lines at 0 and at the limit of each row."""
    ax.axvline(0.0, color=ink(ax), lw=1.0, zorder=1)
    style: dict[str, Any] = {"color": ink(ax), "lw": 1.2, "ls": "--", "zorder": 1}
    if len(set(limits)) > 1:
        rows = np.arange(len(limits))
        ax.vlines(limits, rows - 0.5, rows + 0.5, label="limit of each", **style)
    elif limits and math.isfinite(limits[0]):
        ax.axvline(limits[0], label=f"limit, {limits[0]:.3g} nat", **style)


def note(ax: Axes, y: int, interval: Interval, n: int, impossible: int, named: bool) -> None:
    """Say in a row that it is empty, or why its ECD is infinite."""
    if math.isnan(interval.value) and named:
        box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
        style: dict[str, Any] = {"fontsize": "x-small", "va": "center", "bbox": box, "zorder": 2}
        ax.annotate("no weight" if n else "no rows", (0.0, y), (4, 0), textcoords="offset points", **style)
    elif math.isinf(interval.value):
        ax.plot([0.0, ax.get_xlim()[1]], [y, y], color=OVER, lw=2.0, zorder=3)
        arrow_out(ax, y, f"infinite: {impossible:,} impossible outcome{'' if impossible == 1 else 's'}", OVER)


def states(intervals: Sequence[Interval], limits: Sequence[float]) -> tuple[str | None, ...]:
    """Say of each interval on which side of its limit it lies; None where there is nothing."""
    return tuple(
        None if math.isnan(i.value) else BEYOND if i.low > limit else WITHIN if i.high <= limit else UNCLEAR
        for i, limit in zip(intervals, limits, strict=True)
    )


@final
@dataclass(slots=True, eq=False, repr=False)
class DirectionsDisplay(Display):
    """How many times the stated spread of vectors is too small: along each axis, and in the extreme directions.

    Right of 1 it is too small. The intervals of all axes hold together, and so do those of all directions.

    Attributes
    ----------
    labels : tuple of str
        The axes, and the widest and the narrowest direction.
    factors : tuple of Interval
        How many times the stated spread is too small there.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot import DirectionsDisplay
    >>> x_true = np.random.default_rng(0).normal(size=(1000, 2)) * [1.0, 3.0]
    >>> display = DirectionsDisplay.from_evaluation(safecal.gaussian(x_true, np.zeros((1000, 2)), std=1.0).evaluate())
    >>> display
    DirectionsDisplay: 1 to 2.9 times too small
    >>> plt.close(display.figure_)
    """

    labels: tuple[str, ...]
    factors: tuple[Interval, ...]

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        forecast = evaluation.forecast
        if forecast is None or not (forecast.vector or forecast.axes):
            rule = "predictions have no directions: they are neither Gaussians nor draws of 2 to 16 components."
            raise UnavailableError(f"{evaluation.family} {rule}")
        labels, factors = zip(*factors_of(forecast), strict=True)
        return cls(labels, factors)

    def __repr__(self) -> str:
        values = [factor.value for factor in self.factors]
        return f"{type(self).__name__}: {min(values):.2g} to {max(values):.2g} times too small"

    def _draw(self, ax: Axes) -> None:
        ax.set_xscale("log")
        limits = [1.0] * len(self.factors)
        draw_intervals(ax, self.factors, limits, factor_range(self.factors, 1.0), origin=1.0)
        ax.axvline(1.0, color=ink(ax), lw=1.0, zorder=1)
        name_rows(ax, self.labels, None)
        ax.set_xlabel("times too small; 1 is right")


def draw_intervals(
    ax: Axes,
    intervals: Sequence[Interval],
    limits: Sequence[float],
    ends: tuple[float, float],
    *,
    origin: float = 0.0,
    bars: bool = False,
) -> None:
    """Draw one interval in each row, from the top, on an axis from one end to the other.

    Values that are not on the axis, infinite ones among them, are left to the caller.
    """
    left, right = ends
    ax.set_xlim(left, right)
    room = 0.5 * max(_FEWEST_ROWS - len(intervals), 0)
    ax.set_ylim(len(intervals) - 0.5 + room, -0.5 - room)
    ax.axvspan(origin, right, color=OVER, alpha=0.06, linewidth=0, zorder=0, gid="over-confident")
    filled = [(y, i) for y, i in enumerate(intervals) if not math.isnan(i.value)]
    inside = [(y, i) for y, i in filled if left <= i.value <= right]
    if bars:
        lengths = [i.value - origin for _, i in inside]
        colours = [OVER if length > 0.0 else UNDER for length in lengths]
        ax.barh([y for y, _ in inside], lengths, 0.7, left=origin, color=colours, alpha=0.35, linewidth=0, zorder=2)
    crowd = min(max(_CROWD / max(len(intervals), 1), 0.4), 1.0)
    clipped = np.clip(np.array([(i.low, i.high) for _, i in filled]).reshape(-1, 2), left, right)
    ax.hlines([y for y, _ in filled], clipped[:, 0], clipped[:, 1], color=ink(ax), lw=1.3 * crowd, zorder=3)
    sides = states(intervals, limits)
    looks: dict[str, tuple[str, Any, Any]] = {
        BEYOND: ("D", OVER, OVER),
        WITHIN: ("s", UNDER, UNDER),
        UNCLEAR: ("o", ax.get_facecolor(), ink(ax)),
    }
    for state, (marker, face, edge) in looks.items():
        points = [(i.value, y) for y, i in inside if sides[y] == state]
        if points:
            style: dict[str, Any] = {"linestyle": "none", "marker": marker, "mfc": face, "mec": edge}
            ax.plot(*zip(*points, strict=True), markersize=6.0 * crowd, zorder=4, **style)
            ax.plot([], [], markersize=6.0, label=state, **style)
    for y, interval in inside:
        _leaving(ax, y, interval, left, right)


def _leaving(ax: Axes, y: int, interval: Interval, left: float, right: float) -> None:
    """Show by arrows, with numbers, how far an interval goes on beyond the axis."""
    if interval.high > right:
        words = "no upper bound" if math.isinf(interval.high) else f"to {interval.high:.3g}"
        arrow_out(ax, y, words, ink(ax))
    if interval.low < left:
        words = "no lower bound" if interval.low in (0.0, -math.inf) else f"from {interval.low:.3g}"
        arrow_out(ax, y, words, ink(ax), to_right=False)


def arrow_out(ax: Axes, y: float, words: str, colour: Any, *, to_right: bool = True) -> None:
    """Draw the head of an arrow at an edge of the axes, and say in words how far it goes."""
    at, marker, ha, step = (0.985, ">", "right", -8) if to_right else (0.015, "<", "left", 8)
    edge = ax.get_yaxis_transform()
    ax.plot([at], [y], marker=marker, linestyle="none", color=colour, markersize=6, transform=edge, zorder=5)
    box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8}
    style: dict[str, Any] = {"fontsize": "x-small", "ha": ha, "va": "center", "bbox": box, "zorder": 5}
    ax.annotate(words, (at, y), (step, 0), edge, "offset points", **style)


def name_rows(ax: Axes, labels: Sequence[str], counts: Sequence[int] | None, *, every: int = 1) -> BoolArray:
    """Name each row on the left, or every second and so on, with its number on the right; tell which were named.

    The last row always is.
    """
    named: BoolArray = np.arange(len(labels)) % every == 0
    named[-every:-1] = False
    named[-1] = True
    at = np.flatnonzero(named).tolist()
    ax.set_yticks(at, [labels[k] for k in at], fontsize="small", parse_math=False)
    if counts is not None:
        edge = ax.get_yaxis_transform()
        for k in at:
            ax.text(1.02, k, f"{counts[k]:,}", transform=edge, fontsize="small", ha="left", va="center")
        ax.annotate("rows", (1.02, 1.0), (0, 3), "axes fraction", "offset points", fontsize="small", ha="left")
    return named


def spacing(ax: Axes, rows: int) -> int:
    """Return 1 where there is room to name every row, 2 for every second, and so on."""
    inches: float = ax.bbox.height / ax.figure.dpi
    return math.ceil(rows * _NAME_HEIGHT / max(inches, _NAME_HEIGHT))
