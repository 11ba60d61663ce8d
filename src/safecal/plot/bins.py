"""Bins: what was predicted against what happened, with the side that is unsafe in words; and ECD of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._checks import fail
from .._checks.columns import fraction, positive
from .._sums.summary import Summary
from .._sums.table import Table
from .._types import BoolArray, FloatArray, IndexArray
from ..errors import OptionError, UnavailableError
from ..html import short_count
from ..html.diagrams import OVER_SIDE, ReliabilityPoints, has_reliability
from ..inference import Interval
from ..inference.sum_bounds import interval_from_sums
from ..judge.evaluation import Evaluation
from .display import OVER, UNDER, Display, ModelLook, ink, legend_above, percent
from .intervals import BEYOND, draw_ecd, name_rows, note, spacing, states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ECDDisplay", "ReliabilityDisplay", "draw_sides"]

_ROOM = 0.06  # between two numbers of the strip
_STRIP, _HIGHEST = -0.21, 0.11  # where the strip of bars stands below the diagram, and how high they are


@final
@dataclass(slots=True, eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Reliability diagram: the share that happened against the mean prediction of each bin.

    On the line the model is calibrated. The hatched side is the over-confident one. For the positive class it lies
    above the line where predictions are below 1/2, and below it where they are above. For the most likely class
    (bins on confidence or entropy) it lies below the line everywhere.

    The grey bars show where the share of each single bin lies with probability ``level`` if the model is calibrated:
    quantiles of a binomial law with as many rows as the bin, at its mean prediction. With weights, the number of rows
    is the effective one, ``weight**2 / weight2``, rounded down. Unequal predictions within a bin vary less than that,
    so the bars are slightly wide. At 95 %, one of 20 calibrated bins lies outside by chance.

    Attributes
    ----------
    predicted, observed : ndarray of shape (bins,)
        Mean prediction and share that happened; NaN where a bin is empty.
    low, high : ndarray of shape (bins,)
        The ends of the grey bars.
    n : ndarray of shape (bins,)
        Rows.
    edges : ndarray of shape (bins + 1,)
        The edges of the bins.
    overconfident : ndarray of shape (bins,)
        Whether a bin lies on the over-confident side.
    outside : ndarray of shape (bins,)
        Whether it lies outside its grey bar; False where it is empty.
    bin_on : str
        What rows are binned on.
    top_label : bool
        Whether the most likely class is compared (True) or the positive one.
    level : float
        Probability of a grey bar.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    ECDDisplay : What each bin means in nats.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from safecal.plot import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], bins=2)
    >>> display
    ReliabilityDisplay: 2 bins, 0 of them outside the 95 % band
    >>> plt.close(display.figure_)
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    n: IndexArray
    edges: FloatArray
    overconfident: BoolArray
    outside: BoolArray
    bin_on: str
    top_label: bool
    level: float

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        table = evaluation.bins
        if table is None:
            raise fail(OptionError, "evaluation", "must have bins", hint="evaluate with `bins=10`.")
        return cls._of_table(table, evaluation.level)

    @classmethod
    def from_table(cls, table: Table, *, level: float = 0.95, ax: Axes | None = None) -> Self:
        """Draw a table of bins, for example one that was merged from several.

        Parameters
        ----------
        table : Table
            Of a classifier, by bin.
        level : float, default 0.95
            Probability of a grey bar, if the model is calibrated.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        return cls._of_table(table, fraction(level, "level")).plot(ax=ax)

    @classmethod
    def _of_table(cls, table: Table, level: float) -> Self:
        if table.bins is None:
            raise fail(
                OptionError, "table", "must be a table of bins", got="a table of groups", hint="use `GroupsDisplay`."
            )
        if not has_reliability(table):
            raise UnavailableError(
                "a reliability diagram compares probabilities of classes; these predictions have none.\n\n"
                "Hint: `ExcessDisplay` shows how the surprise of states and densities is spread."
            )
        points = ReliabilityPoints.of(table, level)
        return cls(
            points.predicted, points.observed, points.low, points.high, points.n, points.edges, points.overconfident,
            points.outside, table.name, table.top_label, level,
        )  # fmt: skip

    def __repr__(self) -> str:
        band = f"outside the {percent(self.level)} band"
        return f"{type(self).__name__}: {len(self.n)} bins, {int(self.outside.sum())} of them {band}"

    def _size(self) -> tuple[float, float]:
        return 5.4, 5.8

    def _draw(self, ax: Axes) -> None:
        draw_sides(ax, self.top_label)
        full = ~np.isnan(self.predicted)
        label = f"where {percent(self.level)} of calibrated bins lie"
        bars = self.predicted[full], self.low[full], self.high[full]
        width = min(max(90.0 / max(full.sum(), 1), 1.5), 6.0)
        ax.vlines(*bars, color=ink(ax), alpha=0.3, lw=width, zorder=2, label=label)
        order = np.argsort(self.predicted[full], kind="stable")
        ax.plot(self.predicted[full][order], self.observed[full][order], color=ink(ax), lw=0.8, alpha=0.6, zorder=3)
        self._points(ax)
        self._counts(ax)
        legend_above(ax)

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        """Draw the bins of one of several models: filled where they lie outside their band, hollow inside."""
        if look.first:
            draw_sides(ax, self.top_label, strip=False)
            label = f"filled: outside the {percent(self.level)} band"
            ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label=label)
        order = np.argsort(self.predicted, kind="stable")
        order = order[~np.isnan(self.predicted[order])]
        style: dict[str, Any] = {"marker": look.marker, "markersize": 7.0, "clip_on": False}
        hollow = ax.get_facecolor()
        ax.plot(self.predicted[order], self.observed[order], mfc=hollow, zorder=3, **look.line(), **style)
        beyond = order[self.outside[order]]
        if len(beyond):  # a line without points has no place, and would upset the layout
            points = self.predicted[beyond], self.observed[beyond]
            ax.plot(*points, color=look.colour, linestyle="none", zorder=4, **style)
        legend_above(ax)

    def _points(self, ax: Axes) -> None:
        outside = self.outside
        size = 6.5 if len(self.n) <= 30 else 4.5
        kinds = (
            ("inside", ~outside & ~np.isnan(self.predicted), "o", ink(ax)),
            ("outside, over-confident", outside & self.overconfident, "D", OVER),
            ("outside, under-confident", outside & ~self.overconfident, "s", UNDER),
        )
        for label, selected, marker, colour in kinds:
            if selected.any():
                style: dict[str, Any] = {"marker": marker, "markersize": size, "color": colour, "label": label}
                edge = {"markeredgecolor": ax.get_facecolor(), "markeredgewidth": 0.8}
                points = self.predicted[selected], self.observed[selected]
                ax.plot(*points, linestyle="none", clip_on=False, zorder=4, **style, **edge)

    def _counts(self, ax: Axes) -> None:
        """Draw a strip of bars below the diagram, with the number of rows of each bin."""
        if self.bin_on == "entropy":  # its bins do not lie on the axis
            left, right = self.predicted - 0.015, self.predicted + 0.015
        else:
            edges = np.clip(self.edges, 0.0, 1.0)
            left, right = edges[:-1], edges[1:]
        full = ~np.isnan(self.predicted)
        height = _HIGHEST * self.n / max(self.n.max(), 1.0)
        middle, width = 0.5 * (left + right), 0.86 * np.maximum(right - left, 0.006)
        style: dict[str, Any] = {"color": ink(ax), "alpha": 0.35, "linewidth": 0}
        ax.bar(middle[full], height[full], width[full], bottom=_STRIP, **style)
        written: list[float] = []
        for k in np.argsort(-self.n, kind="stable").tolist():  # the largest first, as far as there is room
            if full[k] and all(abs(middle[k] - other) >= _ROOM for other in written):
                written.append(float(middle[k]))
                ax.text(
                    middle[k], _STRIP + height[k] + 0.008, short_count(int(self.n[k])), fontsize="x-small", ha="center"
                )


def draw_sides(ax: Axes, top_label: bool, *, strip: bool = True) -> None:
    """Draw the background: the line, the over-confident side and the words for both."""
    for corners in OVER_SIDE[top_label]:
        xy = tuple(zip(*corners, strict=True))
        ax.fill(*xy, facecolor=OVER, alpha=0.07, linewidth=0, zorder=0)
        hatch: dict[str, Any] = {"facecolor": "none", "edgecolor": OVER, "hatch": "///", "gid": "over-confident"}
        ax.fill(*xy, alpha=0.25, linewidth=0, zorder=0, **hatch)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=ink(ax), lw=1.0, ls="--", zorder=1, label="calibrated")
    over, under = ("over-confident", OVER), ("under-confident", UNDER)
    left, right = ("left", "top", 0.98), ("right", "bottom", 0.02)
    places = [(0.98, right, over), (0.02, left, under)]
    if not top_label:
        places = [(0.02, left, over), (0.98, right, over), (0.52, left, under), (0.48, right, under)]
    for x, (ha, va, y), (words, colour) in places:
        ax.text(x, y, words, ha=ha, va=va, color=colour, fontsize="small", zorder=1)
    ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    names = ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    ax.set_xticks(ticks, names)
    ax.set_yticks([_STRIP + 0.5 * _HIGHEST, *ticks] if strip else ticks, ["rows", *names] if strip else names)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(_STRIP if strip else -0.02, 1.02)
    if strip:
        ax.axhline(-0.02, color=ink(ax), lw=0.8)
    ax.set_xlabel("confidence in the most likely class" if top_label else "predicted probability")
    ax.set_ylabel("share of rows in which it happened" if top_label else "share of rows that were positive")


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
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

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
        table = evaluation.bins or Table.of_summaries("", (), ())
        return cls._with(table, evaluation.summary, evaluation.interval, evaluation.verdict.allowed, evaluation.level)

    @classmethod
    def _with(cls, table: Table, s: Summary, total: Interval, limit: float, level: float) -> Self:
        n, n_impossible = tuple(table.n.tolist()), tuple(table.n_impossible.tolist())
        of_bins = table.labels, n, n_impossible, table.intervals(level)
        return cls(*of_bins, total, s.n, s.n_impossible, table.name, limit, level)

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
        return cls._with(table, table.total, interval_from_sums(table.total, level), limit, level).plot(ax=ax)

    def __repr__(self) -> str:
        beyond = states(self.intervals, (self.limit,) * len(self.intervals)).count(BEYOND)
        bins = f", {beyond} of {len(self.labels)} bins beyond {self.limit:g} nat" if self.labels else ""
        return f"{type(self).__name__}: ECD {self.total.value:+.3g} of {self.n_total} rows{bins}"

    def _size(self) -> tuple[float, float]:
        return 6.2, 1.8 + 0.26 * min(len(self.intervals) + 1, 40)

    def _draw(self, ax: Axes) -> None:
        intervals = (*self.intervals, self.total)
        together = ", together" if len(self.labels) > 1 else ""
        draw_ecd(ax, intervals, (self.limit,) * len(intervals), f"{percent(self.level)} intervals{together}", bars=True)
        counts = (*self.n, self.n_total)
        named = name_rows(ax, (*self.labels, "all rows"), counts, every=spacing(ax, len(intervals)))
        impossible = (*self.n_impossible, self.n_impossible_total)
        for y, row in enumerate(zip(intervals, counts, impossible, named.tolist(), strict=True)):
            note(ax, y, *row)
        if self.labels:
            ax.axhline(len(self.labels) - 0.5, color=ink(ax), lw=0.8)
            ax.set_ylabel(self.bin_on)
