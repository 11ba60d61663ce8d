"""Consistency over time: the mean of the runs at each step, and where it lies if the filter is consistent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._checks.columns import choice
from .._checks.message import fail
from .._types import FloatArray
from ..errors import OptionError
from ..judge.consistency import Consistency
from .display import NEUTRAL, OVER, axes_on, ink, legend_above, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConsistencyDisplay"]

_SCALES = ("ECD", "NEES")
_FAR = 15.0  # values beyond which the axis is logarithmic


@final
@dataclass(slots=True, eq=False, repr=False)
class ConsistencyDisplay:
    """ECD, or NEES, of many runs over the steps, with the band in which a consistent filter stays.

    Above the band the filter is over-confident at that step, below it under-confident. The mean of the runs is drawn as
    a line, their median as points: where the two differ, a few runs make the mean.

    Attributes
    ----------
    steps : ndarray of shape (steps,)
        Where the steps stand: their keys where these are numbers, else 0, 1, 2 and so on.
    mean, median : ndarray of shape (steps,)
        Over the runs.
    low, high : ndarray of shape (steps,)
        Ends of the band.
    level : float
        Probability that a consistent filter lies in the band at a step.
    share_inside : float
        Share of the steps that lie in the band.
    scale : str
        ``"ECD"``, ``"NEES"`` or ``"NIS"``.
    consistent : float
        The value of a consistent filter: 0 for ECD, else the dimension.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot.consistency import ConsistencyDisplay
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.normal(size=(200, 2))
    >>> consistency = safecal.assess_consistency(
    ...     safecal.gaussian(errors, 0 * errors, std=0.8), run=np.repeat(np.arange(20), 10), step=np.tile(range(10), 20)
    ... )
    >>> display = ConsistencyDisplay.from_consistency(consistency)
    >>> display
    ConsistencyDisplay: ECD over 10 steps, 50 % of them in the band
    >>> plt.close(display.figure_)
    """

    steps: FloatArray
    mean: FloatArray
    median: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    share_inside: float
    scale: str
    consistent: float
    ax_: Axes = field(init=False)
    figure_: Any = field(init=False)

    @classmethod
    def from_consistency(
        cls,
        consistency: Consistency,
        *,
        scale: str = "ECD",
        ax: Axes | None = None,
        color: Any = None,
        label: str | None = None,
        band: bool = True,
    ) -> Self:
        """Draw what `assess_consistency` found.

        Parameters
        ----------
        consistency : Consistency
            Of any filter.
        scale : {"ECD", "NEES"}, default "ECD"
            Nats, or the classical scale, on which a consistent filter has the dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        color : color, optional
            Of line and points.
        label : str, optional
            Name of the filter, for the legend.
        band : bool, default True
            Whether to draw the band; once is enough for several filters with the same runs.

        Returns
        -------
        ConsistencyDisplay
            The display, drawn.
        """
        if not isinstance(consistency, Consistency):
            hint = "`safecal.assess_consistency(...)` makes one."
            got = f"a {type(consistency).__name__}"
            raise fail(OptionError, "consistency", "must be a Consistency", got=got, hint=hint)
        choice(scale, "scale", _SCALES)
        shift, factor = (0.0, 1.0) if scale == "ECD" else (float(consistency.dimension), 2.0)
        low, high = consistency.bands().T
        keys = consistency.steps.keys
        numeric = all(isinstance(key, int | float) for key in keys)
        display = cls(
            np.array(keys, dtype=np.float64) if numeric else np.arange(float(len(keys))),
            shift + factor * consistency.steps.ecd,
            shift + factor * np.array(consistency.step_medians),
            shift + factor * low,
            shift + factor * high,
            consistency.evaluation.level,
            consistency.share_inside,
            scale if scale == "ECD" else consistency.quantity,
            shift,
        )
        return display.plot(ax=ax, color=color, label=label, band=band)

    def __repr__(self) -> str:
        inside = f"{100.0 * self.share_inside:.0f} % of them in the band"
        return f"{type(self).__name__}: {self.scale} over {len(self.steps)} steps, {inside}"

    def plot(self, *, ax: Axes | None = None, color: Any = None, label: str | None = None, band: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        color : color, optional
            Of line and points.
        label : str, optional
            Name of the filter, for the legend.
        band : bool, default True
            Whether to draw the band.

        Returns
        -------
        ConsistencyDisplay
            Itself.
        """
        self.ax_ = ax = axes_on(ax, (7.2, 4.2))
        self.figure_ = ax.figure
        if band:
            name = f"{percent(self.level)} of consistent filters"
            ax.fill_between(self.steps, self.low, self.high, color=NEUTRAL, alpha=0.35, lw=0, zorder=1, label=name)
            ax.axhline(self.consistent, color=ink(ax), lw=1.0, zorder=2)
        color = OVER if color is None else color
        finite = np.where(np.isfinite(self.mean), self.mean, np.nan)
        ax.plot(self.steps, finite, color=color, lw=1.8, zorder=4, label=label or "mean of the runs")
        median = "median of the runs" if label is None else f"{label}, median"
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.5, "zorder": 3}
        ax.plot(self.steps, self.median, color=color, alpha=0.65, label=median, **style)
        self._scale(ax)
        if np.all(self.steps == np.round(self.steps)):
            ax.locator_params(axis="x", integer=True)  # there is no step 2.5
        ax.set_xlabel("step")
        ax.set_ylabel("ECD (nat)" if self.scale == "ECD" else self.scale)
        legend_above(ax)
        return self

    def _scale(self, ax: Axes) -> None:
        """Make the axis logarithmic far from the consistent value, and keep everything on it in sight."""
        drawn = [np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.get_lines()]
        seen = np.concatenate([values for values in drawn if len(values) == len(self.steps)])
        seen = np.concatenate([seen[np.isfinite(seen)], self.low, self.high])
        low, high = float(seen.min()), float(seen.max())
        if high - self.consistent <= _FAR:
            pad = 0.06 * (high - low) or 0.1
            ax.set_ylim(low - pad, high + pad)
            return
        if self.scale == "ECD":
            ax.set_yscale("asinh", linear_width=1.0)
            ax.set_ylim(min(1.3 * low, -0.2), 1.3 * high)
            sizes = [0.5, *(m * 10.0**e for e in range(math.ceil(math.log10(high)) + 1) for m in (1.0, 3.0))]
            ticks = [*(-s for s in sizes), 0.0, *sizes]
        else:
            ax.set_yscale("log")
            low = max(low, 1e-3)
            ax.set_ylim(low / 1.2, 1.3 * high)
            exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            ticks = [*(m * 10.0**e for e in exponents for m in (1.0, 3.0)), self.consistent]
        bottom, top = ax.get_ylim()
        visible = sorted({tick for tick in ticks if bottom <= tick <= top})
        ax.set_yticks(visible, [f"{tick:g}" for tick in visible])
        ax.minorticks_off()
