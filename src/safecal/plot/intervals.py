"""Intervals beside their limits: how every picture draws them in rows; the temperature, and spread by direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._types import BoolArray, FloatArray
from ..errors import UnavailableError
from ..html.intervals import TemperatureCurve, ecd_range, factor_range, factors_of
from ..inference import Interval
from ..judge.evaluation import Evaluation
from .display import NEUTRAL, OVER, UNDER, Display, ModelLook, direction_label, ink, legend_above, message, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BEYOND", "DirectionsDisplay", "TemperatureDisplay", "arrow_out", "draw_ecd", "draw_intervals", "draw_limits",
    "name_rows", "note", "spacing", "states", "temperature_axis",
]  # fmt: skip

BEYOND, WITHIN, UNCLEAR = "beyond the limit", "within the limit", "cannot tell"
_FEWEST_ROWS = 4  # rows that there is room for
_CROWD = 24.0  # rows from which on they are drawn smaller
_NAME_HEIGHT = 0.165  # inches a name needs


def draw_ecd(
    ax: Axes, intervals: Sequence[Interval], limits: Sequence[float], named: str, *, bars: bool = False
) -> None:
    """Draw ECD in rows, with 0 and the limit of each; ``named`` says what the intervals are."""
    ax.axvline(0.0, color=ink(ax), lw=1.0, zorder=1)
    style: dict[str, Any] = {"color": ink(ax), "lw": 1.2, "ls": "--", "zorder": 1}
    if len(set(limits)) > 1:
        rows = np.arange(len(limits))
        ax.vlines(limits, rows - 0.5, rows + 0.5, label="limit of each", **style)
    elif limits and math.isfinite(limits[0]):
        ax.axvline(limits[0], label=f"limit, {limits[0]:.3g} nat", **style)
    ax.plot([], [], color=ink(ax), lw=1.3, label=named)
    draw_intervals(ax, intervals, limits, ecd_range(intervals, limits), bars=bars)
    ax.set_xlabel(direction_label("ECD (nat)"))
    legend_above(ax)


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


@final
@dataclass(slots=True, eq=False, repr=False)
class TemperatureDisplay(Display):
    """How far each temperature is from the one the data ask for.

    The height of the curve is a distance in standard deviations: the normal score of the probability, if that were the
    temperature, of outcomes as extreme as these. Temperatures below the dotted line are not ruled out; they are the
    interval. At a temperature of 1 the model is calibrated, above it over-confident, below it under-confident.

    Attributes
    ----------
    low_side, high_side : ndarray of shape (points, 2)
        Temperature and distance along the curve, outward from the estimate, below it and above it. Only temperatures
        that are finite and above 0; an empty side has none.
    interval : Interval
        The temperature the data ask for, with its interval; NaN where it does not exist.
    distance : float
        The distance at which temperatures leave the interval: 1.96 for a level of 95 %.
    max_temperature : float
        Largest temperature that is allowed.
    top : float
        The largest distance that is drawn.
    ends : (float, float)
        The ends of the axis.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    ECDDisplay : The same on the scale of nats.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from safecal.plot import TemperatureDisplay
    >>> display = TemperatureDisplay.from_predictions([0, 1, 0, 0, 1], [0.2, 0.7, 0.9, 0.3, 0.8])
    >>> display
    TemperatureDisplay: 2.11, 95 % interval 0.43... to inf
    >>> plt.close(display.figure_)
    """

    low_side: FloatArray
    high_side: FloatArray
    interval: Interval
    distance: float
    max_temperature: float
    top: float
    ends: tuple[float, float]

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        curve = TemperatureCurve.of(evaluation)
        return cls(curve.low_side, curve.high_side, curve.interval, curve.distance, curve.limit, curve.top, curve.ends)

    def __repr__(self) -> str:
        i = self.interval
        if math.isnan(i.value):
            return f"{type(self).__name__}: none"
        return f"{type(self).__name__}: {i.value:.3g}, {percent(i.level)} interval {i.low:.3g} to {i.high:.3g}"

    def _draw(self, ax: Axes) -> None:
        if math.isnan(self.interval.value):
            message(ax, f"There is no temperature:\n{self.interval.method.removeprefix('none: ')}.")
            return
        left, right = self.ends
        temperature_axis(ax, left, right)
        self._frame(ax)
        ax.axvspan(1.0, right, color=OVER, alpha=0.06, linewidth=0, zorder=0, gid="over-confident")
        ax.plot(*self._path(left, right).T, color=ink(ax), lw=1.6, zorder=3)
        self._interval(ax, left, right)
        legend_above(ax)

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        """Draw the curve of one of several models, and where it leaves its interval."""
        if math.isnan(self.interval.value):
            ax.plot([], [], **look.line() | {"label": f"{look.name}: no temperature"})
            legend_above(ax)
            return
        left, right = self.ends
        if look.first:
            self._frame(ax)
        else:
            left, right = min(left, ax.get_xlim()[0]), max(right, ax.get_xlim()[1])
        temperature_axis(ax, left, right)
        label = f"{look.name}, {self.interval.value:.3g}"
        ax.plot(*self._path(left, right).T, zorder=3, **look.line() | {"label": label})
        legend_above(ax)

    def _frame(self, ax: Axes) -> None:
        draw_limits(ax, self.max_temperature)
        ax.axhline(self.distance, color=ink(ax), lw=0.8, ls=":", zorder=1)
        ax.set_ylim(0.0, self.top)
        ax.set_xlabel(direction_label("temperature"))
        ax.set_ylabel("distance (standard deviations)")

    def _path(self, left: float, right: float) -> FloatArray:
        """Return temperature and distance along the curve, from one end to the other."""
        t = self.interval.value
        if t == 0.0:
            t = min([left, *self.high_side[:, 0].tolist()])
        elif t == math.inf:
            t = max([right, *self.low_side[:, 0].tolist()])
        return np.array([*self.low_side[::-1].tolist(), [t, 0.0], *self.high_side.tolist()]).reshape(-1, 2)

    def _interval(self, ax: Axes, left: float, right: float) -> None:
        i = self.interval
        low, high = (min(max(end, left), right) for end in (i.low, i.high))
        label = f"{percent(i.level)} interval, {i.low:.3g} to {i.high:.3g}"
        ax.plot([low, high], [self.distance] * 2, color=NEUTRAL, lw=3.5, solid_capstyle="butt", zorder=4, label=label)
        arrow: dict[str, Any] = {"linestyle": "none", "color": NEUTRAL, "markersize": 8, "clip_on": False, "zorder": 5}
        for end in (i.low, i.high):
            if left <= end <= right:
                ax.vlines(end, 0.0, self.distance, color=NEUTRAL, lw=1.0, zorder=2)
            else:
                ax.plot([left if end < left else right], [self.distance], marker="<" if end < left else ">", **arrow)
        drawn_at = min(max(i.value, left), right)
        marker = "<" if i.value < left else ">" if i.value > right else "o"
        style: dict[str, Any] = {"color": ink(ax), "markersize": 7, "clip_on": False, "zorder": 6}
        ax.plot([drawn_at], [0.0], linestyle="none", marker=marker, label=f"estimate, {i.value:.3g}", **style)


def draw_limits(ax: Axes, max_temperature: float) -> None:
    """Draw the line of calibration, and that of the largest temperature that is allowed."""
    ax.axvline(1.0, color=ink(ax), lw=1.0, zorder=1, label="calibrated, 1")
    if math.isfinite(max_temperature):
        ax.axvline(max_temperature, color=ink(ax), lw=1.2, ls="--", zorder=1, label=f"limit, {max_temperature:g}")


def temperature_axis(ax: Axes, left: float, right: float) -> None:
    """Make the x axis logarithmic, with plain numbers at its ticks."""
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    ticks = _ticks(left, right)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _ticks(left: float, right: float) -> list[float]:
    if right / left < 6.0:  # so short that equal steps read better
        for step in (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0):
            ticks = [round(k * step, 10) for k in range(math.ceil(left / step), math.floor(right / step) + 1)]
            if len(ticks) <= 8 and (len(ticks) >= 3 or step >= 1.0):
                return ticks
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    series = (1.0, 2.0, 5.0) if right / left < 300.0 else (1.0,)
    every = max(math.ceil(len(decades) / 8), 1)
    ticks = [float(f"{m * 10.0**d:.3g}") for d in decades if d % every == 0 for m in series]
    return [tick for tick in ticks if left <= tick <= right]


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
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

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
        ends = factor_range(self.factors, 1.0)
        temperature_axis(ax, *ends)
        draw_intervals(ax, self.factors, [1.0] * len(self.factors), ends, origin=1.0)
        ax.axvline(1.0, color=ink(ax), lw=1.0, zorder=1)
        name_rows(ax, self.labels, None)
        ax.set_xlabel("times too small; 1 is right")
