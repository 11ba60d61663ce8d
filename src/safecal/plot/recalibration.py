"""How well each temperature fits; and predictions before and after recalibration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._checks.message import fail
from .._types import FloatArray
from ..errors import OptionError
from ..html.diagrams import ReliabilityPoints, has_reliability
from ..html.intervals import TemperatureCurve, ecd_range, factor_range
from ..inference.results import Interval
from ..judge.evaluation import Evaluation
from .display import (
    AFTER,
    BEFORE,
    NEUTRAL,
    OVER,
    Display,
    ModelLook,
    blank_figure,
    checked,
    direction_label,
    ink,
    legend_above,
    message,
    percent,
)
from .ecd import arrow_out, draw_intervals, draw_zero, name_rows, note
from .excess import draw_shares, excess_axis, excess_range, share_axis, smallest_share, spread_of
from .reliability import draw_sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["RecalibrationDisplay", "TemperatureDisplay", "draw_limits", "temperature_axis"]


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
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

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
        draw_limits(ax, self.max_temperature)
        ax.axvspan(1.0, right, color=OVER, alpha=0.06, linewidth=0, zorder=0, gid="over-confident")
        curve = self._path(left, right)
        ax.plot(curve[:, 0], curve[:, 1], color=ink(ax), lw=1.6, zorder=3)
        self._interval(ax, left, right)
        ax.set_ylim(0.0, self.top)
        ax.set_xlabel(direction_label("temperature"))
        ax.set_ylabel("distance (standard deviations)")
        legend_above(ax)

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        """Draw the curve of one of several models, and where it leaves its interval."""
        if math.isnan(self.interval.value):
            ax.plot([], [], **look.line() | {"label": f"{look.name}: no temperature"})
            legend_above(ax)
            return
        left, right = self.ends
        if look.first:
            draw_limits(ax, self.max_temperature)
            ax.axhline(self.distance, color=ink(ax), lw=0.8, ls=":", zorder=1)
            ax.set_ylim(0.0, self.top)
            ax.set_xlabel(direction_label("temperature"))
            ax.set_ylabel("distance (standard deviations)")
        else:
            left, right = min(left, ax.get_xlim()[0]), max(right, ax.get_xlim()[1])
        temperature_axis(ax, left, right)
        label = f"{look.name}, {self.interval.value:.3g}"
        curve = self._path(left, right)
        ax.plot(curve[:, 0], curve[:, 1], zorder=3, **look.line() | {"label": label})
        legend_above(ax)

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
        ax.axhline(self.distance, color=ink(ax), lw=0.8, ls=":", zorder=1)
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


_NAMES = ("before", "after")
_LOOKS = ((BEFORE, "--", "o"), (AFTER, "-", "s"))  # colour, line, marker


@final
@dataclass(slots=True, eq=False, repr=False)
class RecalibrationDisplay:
    """Two evaluations of the same rows, before and after recalibration.

    On the left are the bins of both in one reliability diagram; a filled marker lies outside the range of 95 % of
    calibrated bins, an empty one inside. For states and densities it is the spread of the excess instead. On the right
    are ECD and temperature with their intervals, against their limits.

    Attributes
    ----------
    before, after : Evaluation
        The evaluations.
    axes_ : tuple of matplotlib Axes
        Where it was drawn: the diagram, ECD, the temperature.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot import RecalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-log_odds))
    >>> safe = safecal.SafeTemperature().fit(y[:2000], logits=3 * log_odds[:2000])
    >>> before = safecal.evaluate(y[2000:], logits=3 * log_odds[2000:])
    >>> after = safecal.evaluate(y[2000:], safe.apply(logits=3 * log_odds[2000:]))
    >>> display = RecalibrationDisplay.from_evaluations(before, after)
    >>> display
    RecalibrationDisplay: ECD +0.482 before, -0.0191 after
    >>> plt.close(display.figure_)
    """

    before: Evaluation
    after: Evaluation
    axes_: tuple[Axes, ...] = field(init=False)
    figure_: Any = field(init=False)

    @classmethod
    def from_evaluations(
        cls, before: Evaluation, after: Evaluation, *, figure: Figure | SubFigure | None = None
    ) -> Self:
        """Draw two evaluations.

        Parameters
        ----------
        before, after : Evaluation
            Of the same rows. The limits are those of ``after``.
        figure : matplotlib Figure or SubFigure, optional
            An empty one to fill; by default a new one. A Figure without a layout engine gets matplotlib's constrained
            one.

        Returns
        -------
        RecalibrationDisplay
            The display, drawn.
        """
        first, second = checked(before, "before"), checked(after, "after")
        _same("family", first.family, second.family, "compare predictions of one kind.")
        _same("number of rows", first.n, second.n, "evaluate the same rows, before and after.")
        _same("bins on", _binned(first), _binned(second), "pass the same `bin_on=` for both.")
        return cls(first, second).plot(figure=figure)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: ECD {self.before.ecd:+.3g} before, {self.after.ecd:+.3g} after"

    def plot(self, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            An empty one to fill; by default a new one.

        Returns
        -------
        RecalibrationDisplay
            Itself.
        """
        self.figure_ = figure = blank_figure(figure, (9.6, 5.4))
        grid = figure.add_gridspec(2, 2, width_ratios=(1.1, 1.0))
        places = (grid[:, 0], grid[0, 1], grid[1, 1])
        self.axes_ = diagram, ecd, temperature = tuple(figure.add_subplot(place) for place in places)
        if has_reliability(self.after.bins):
            self._reliability(diagram)
        else:
            self._spread(diagram)
        self._ecd(ecd)
        self._temperature(temperature)
        return self

    def _reliability(self, ax: Axes) -> None:
        tables = [table for table in (self.before.bins, self.after.bins) if table is not None]
        draw_sides(ax, tables[1].top_label, strip=False)
        for name, table, (colour, style, marker) in zip(_NAMES, tables, _LOOKS, strict=True):
            points = ReliabilityPoints.of(table, self.after.level)
            order = points.filled
            predicted, observed, outside = points.predicted[order], points.observed[order], points.outside[order]
            ax.plot(predicted, observed, color=colour, lw=1.3, ls=style, marker=marker, markersize=7,
                    markerfacecolor=ax.get_facecolor(), clip_on=False, zorder=3, label=name)  # fmt: skip
            ax.plot(predicted[outside], observed[outside], color=colour, marker=marker, markersize=7, ls="none",
                    clip_on=False, zorder=4)  # fmt: skip
        label = f"filled: outside the {percent(self.after.level)} band"
        ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label=label)
        legend_above(ax)

    def _spread(self, ax: Axes) -> None:
        spreads = [spread_of(evaluation) for evaluation in (self.before, self.after)]
        if not all(spread.excess.size for spread in spreads):
            message(ax, "Every outcome was one that the model had called impossible.")
            return
        ax.axvline(0.0, color=ink(ax), lw=0.8, zorder=1)
        expected = spreads[1].expected
        if expected is not None:
            ax.plot(*expected.T, color=ink(ax), lw=1.2, ls=":", zorder=2, label="if calibrated")
        spans = [excess_range(spread) for spread in spreads]
        excess_axis(ax, min(low for low, _ in spans), max(high for _, high in spans))
        for name, spread, look in zip(_NAMES, spreads, _LOOKS, strict=True):
            draw_shares(ax, spread, *look, name)
        share_axis(ax, min(map(smallest_share, spreads)))
        ax.set_xlabel(direction_label("excess (nat)", "less surprised", "more surprised"))
        ax.set_ylabel("share of rows with at least that")
        legend_above(ax)

    def _ecd(self, ax: Axes) -> None:
        intervals = (self.before.interval, self.after.interval)
        limits = [self.after.threshold * evaluation.verdict.dimensions for evaluation in (self.before, self.after)]
        draw_zero(ax, limits)
        ax.plot([], [], color=ink(ax), lw=1.3, label=f"{percent(self.after.level)} intervals")
        draw_intervals(ax, intervals, limits, ecd_range(intervals, limits), bars=True)
        name_rows(ax, _NAMES, None)
        for y, (interval, evaluation) in enumerate(zip(intervals, (self.before, self.after), strict=True)):
            note(ax, y, interval, evaluation.n, evaluation.summary.n_impossible, True)
        ax.set_xlabel(direction_label("ECD (nat)"))
        legend_above(ax)

    def _temperature(self, ax: Axes) -> None:
        intervals = (self.before.temperature, self.after.temperature)
        if all(math.isnan(interval.value) for interval in intervals):
            message(ax, f"There is no temperature:\n{intervals[1].method.removeprefix('none: ')}.")
            return
        limit = self.after.max_temperature
        ends = factor_range(intervals, limit)
        temperature_axis(ax, *ends)
        draw_limits(ax, limit)
        draw_intervals(ax, intervals, (limit, limit), ends, origin=1.0)
        name_rows(ax, _NAMES, None)
        for y, interval in enumerate(intervals):
            if math.isnan(interval.value):
                ax.annotate("none", (1.0, y), (4, 0), textcoords="offset points", fontsize="x-small", va="center")
            elif not ends[0] <= interval.value <= ends[1]:
                colour = OVER if interval.low > limit else ink(ax)
                arrow_out(ax, y, f"estimate {interval.value:g}", colour, to_right=interval.value > 1.0)
        ax.set_xlabel(direction_label("temperature"))
        legend_above(ax)


def _binned(evaluation: Evaluation) -> str | None:
    return evaluation.bins.name if evaluation.bins is not None and has_reliability(evaluation.bins) else None


def _same(trait: str, before: Any, after: Any, hint: str) -> None:
    if before != after:
        raise fail(
            OptionError, "after", f"must have the same {trait} as `before`", got=f"{after} and {before}", hint=hint
        )
