"""How well each temperature fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._types import FloatArray
from ..html.intervals import TemperatureCurve
from ..inference.results import Interval
from ..judge.evaluation import Evaluation
from .display import (
    NEUTRAL,
    OVER,
    Display,
    Look,
    direction_label,
    ink,
    legend_above,
    message,
    percent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TemperatureDisplay", "draw_limits", "temperature_axis"]


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

    def _draw_model(self, ax: Axes, look: Look) -> None:
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
        shown = min(max(i.value, left), right)
        marker = "<" if i.value < left else ">" if i.value > right else "o"
        style: dict[str, Any] = {"color": ink(ax), "markersize": 7, "clip_on": False, "zorder": 6}
        ax.plot([shown], [0.0], linestyle="none", marker=marker, label=f"estimate, {i.value:.3g}", **style)


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
            found = [round(k * step, 10) for k in range(math.ceil(left / step), math.floor(right / step) + 1)]
            if len(found) <= 8 and (len(found) >= 3 or step >= 1.0):
                return found
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    series = (1.0, 2.0, 5.0) if right / left < 300.0 else (1.0,)
    every = max(math.ceil(len(decades) / 8), 1)
    found = [float(f"{m * 10.0**d:.3g}") for d in decades if d % every == 0 for m in series]
    return [tick for tick in found if left <= tick <= right]
