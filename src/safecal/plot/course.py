"""ECD along the predictions, and over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._checks import fail
from .._checks.columns import choice, positive
from .._types import FloatArray
from ..errors import OptionError
from ..html.course import BEYOND, OTHER, SUSPECTED, Course, Step
from ..inference.local import Local
from ..judge.consistency import Consistency
from ..judge.evaluation import Evaluation
from .display import NEUTRAL, OVER, Display, ModelLook, axes_on, ink, legend_above, message, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConsistencyDisplay", "LocalDisplay"]

_NO_RANGES = "There are no ranges to show:\npredictions are all alike, or have no order."


@final
@dataclass(slots=True, eq=False, repr=False)
class LocalDisplay(Display):
    """ECD in ranges of the predictions, with bounds that hold together, against the limit.

    Each step is a range of the predictions, the finest that do not overlap. Above 0 it is over-confident there, below
    0 under-confident. The grey band is so wide that the bounds of all ranges hold at once. The marker says whether a
    range is beyond the limit, or suspected to be; the worst range is framed and named. It may be longer than a step, or
    of one predicted class. Probabilities lie on a scale of log-odds, so that both ends can be seen.

    Attributes
    ----------
    course : Course
        Everything that is drawn: ``steps``, ``worst``, and the axes. Each step has its ``range``, ``limit`` and
        ``state``.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    ECDDisplay : ECD by bins of your own.
    GroupsDisplay : ECD by group.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from safecal.plot import LocalDisplay
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(1 - z))  # less often than predicted
    >>> display = LocalDisplay.from_predictions(happened, logits=z)
    >>> display
    LocalDisplay: 17 ranges, 0 of them beyond the limit; the worst: says 65 to 91.5 %
    >>> plt.close(display.figure_)
    """

    course: Course

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        return cls(Course.of(evaluation.deciding.local, evaluation.limits.local_threshold))

    @classmethod
    def from_local(cls, local: Local, *, local_threshold: float = 0.2, ax: Axes | None = None) -> Self:
        """Draw ranges that were taken from an evaluation.

        Parameters
        ----------
        local : Local
            The ranges.
        local_threshold : float, default 0.2
            Largest ECD that is allowed, in nats a dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        LocalDisplay
            The display, drawn.
        """
        return cls(Course.of(local, positive(local_threshold, "local_threshold"))).plot(ax=ax)

    def __repr__(self) -> str:
        c = self.course
        if c.worst is None:
            return f"{type(self).__name__}: no ranges"
        ranges = f"{len(c.steps)} ranges, {c.shown} of them beyond the limit; the worst: {c.worst.name}"
        return f"{type(self).__name__}: {ranges}"

    def _size(self) -> tuple[float, float]:
        return 6.2, 4.2

    def _draw(self, ax: Axes) -> None:
        c = self.course
        if c.worst is None:
            message(ax, _NO_RANGES)
            return
        ax.set_xlim(c.left, c.right)
        ax.set_ylim(c.bottom, c.top + 0.12 * (c.top - c.bottom))  # room for the name of the worst range
        ax.axhline(0.0, color=ink(ax), lw=1.0, zorder=1)
        ax.axhspan(0.0, ax.get_ylim()[1], color=OVER, alpha=0.06, linewidth=0, zorder=0, gid="over-confident")
        self._limits(ax)
        self._steps(ax)
        self._worst(ax, c.worst)
        ax.set_xticks([at for at, _ in c.ticks], [text for _, text in c.ticks])
        ax.minorticks_off()
        ax.set_xlabel(c.axis)
        ax.set_ylabel("ECD (nat), above 0 over-confident")
        legend_above(ax)

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        """Draw the steps of one of several models; a filled marker is beyond the limit."""
        c = self.course
        finite = [step for step in c.steps if math.isfinite(step.range.ecd.value)]
        values = [step.range.ecd.value for step in finite]
        marks = [0.0, *values, *(1.2 * step.limit for step in c.steps if math.isfinite(step.limit))]
        pad = 0.1 * (max(marks) - min(marks) or 0.1)
        ends = (c.left, c.right, min(marks) - pad, max(marks) + pad)
        if look.first:
            ax.axhline(0.0, color=ink(ax), lw=1.0, zorder=1)
            ax.set_xlabel(c.axis)
            ax.set_ylabel("ECD (nat), above 0 over-confident")
            self._limits(ax)
        else:
            (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
            ends = min(ends[0], left), max(ends[1], right), min(ends[2], bottom), max(ends[3], top)
        ax.set_xlim(*ends[:2])
        ax.set_ylim(*ends[2:])
        style: dict[str, Any] = {"marker": look.marker, "markersize": 6.0, "zorder": 4}
        ax.plot([step.middle for step in finite], values, mfc=ax.get_facecolor(), **look.line(), **style)
        beyond = [(step.middle, step.range.ecd.value) for step in finite if step.state == BEYOND]
        if beyond:
            ax.plot(*zip(*beyond, strict=True), color=look.colour, linestyle="none", **style)
        if look.first:
            ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label="filled: beyond the limit")
        ticks = c.ticks_on(*ends[:2]) if c.steps else ()
        ax.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        ax.minorticks_off()
        legend_above(ax)

    def _limits(self, ax: Axes) -> None:
        """Draw the limit of each range; they differ where dimensions do."""
        steps = self.course.steps
        limits = {step.limit for step in steps}
        style: dict[str, Any] = {"color": ink(ax), "lw": 1.2, "ls": "--", "zorder": 2}
        if len(limits) == 1 and math.isfinite(steps[0].limit):
            ax.axhline(steps[0].limit, label=f"limit, {steps[0].limit:.3g} nat", **style)
        elif len(limits) > 1:
            ends = [step.start for step in steps], [step.end for step in steps]
            ax.hlines([step.limit for step in steps], *ends, label="limit of each range", **style)

    def _steps(self, ax: Axes) -> None:
        steps, (bottom, top) = self.course.steps, ax.get_ylim()
        band: dict[str, Any] = {"color": ink(ax), "alpha": 0.18, "linewidth": 0, "zorder": 2}
        for k, step in enumerate(steps):
            low, high = (min(max(x, bottom), top) for x in (step.range.ecd.low, step.range.ecd.high))
            label = None if k else "bounds, all together"
            ax.fill_between([step.start, step.end], low, high, label=label, **band)
        inside = [step for step in steps if math.isfinite(step.range.ecd.value)]
        ends = [step.start for step in inside], [step.end for step in inside]
        ax.hlines([step.range.ecd.value for step in inside], *ends, color=ink(ax), lw=1.6, zorder=3)
        looks = {BEYOND: ("D", OVER, OVER), SUSPECTED: ("D", ax.get_facecolor(), OVER), OTHER: ("o", None, None)}
        for state, (marker, face, edge) in looks.items():
            marked = [step for step in steps if step.state == state]
            if marked:
                style = {"mfc": face or ink(ax), "mec": edge or ink(ax), "markersize": 3.5 if face is None else 6.0}
                self._marks(ax, marked, {**style, "marker": marker, "label": state})

    def _marks(self, ax: Axes, steps: Sequence[Step], style: dict[str, Any]) -> None:
        """Mark the middle of steps; where ECD is infinite, at the upper edge by an arrow."""
        finite = [step for step in steps if math.isfinite(step.range.ecd.value)]
        at = [step.middle for step in finite], [step.range.ecd.value for step in finite]
        ax.plot(*at, linestyle="none", zorder=4, **style)
        above = [step.middle for step in steps if step not in finite]
        if not above:
            return
        arrow: dict[str, Any] = {"marker": "^", "linestyle": "none", "color": OVER, "markersize": 9, "zorder": 4}
        ax.plot(above, [ax.get_ylim()[1]] * len(above), clip_on=False, **arrow)

    def _worst(self, ax: Axes, worst: Step) -> None:
        """Frame the bounds of the worst range, and name it where there is room."""
        bottom = ax.get_ylim()[0]
        ecd = worst.range.ecd
        low, high = (min(max(x, bottom), self.course.top) for x in (ecd.low, ecd.high))
        corners = [(worst.start, low), (worst.end, low), (worst.end, high), (worst.start, high)]
        ax.fill(*zip(*corners, strict=True), facecolor="none", edgecolor=ink(ax), linewidth=1.6, zorder=5, gid="worst")
        right = worst.middle > 0.5 * (self.course.left + self.course.right)
        words = f"worst: {worst.name}, {worst.bounds}"
        at = worst.end if right else worst.start
        if math.isfinite(ecd.value):
            ax.hlines(ecd.value, worst.start, worst.end, color=ink(ax), lw=1.6, zorder=5)
        ax.annotate(
            words, (at, self._above(ax, at, high, -len(words) if right else len(words))), (0, 4), fontsize="small",
            textcoords="offset points", ha="right" if right else "left", va="bottom", zorder=6, parse_math=False,
        )  # fmt: skip

    def _above(self, ax: Axes, start: float, height: float, length: int) -> float:
        """Return where a text of so many letters stands: at a height, or above the steps that it would cover there."""
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        points = 72.0 / ax.figure.dpi
        letter = _LETTER * (right - left) / (ax.bbox.width * points)
        line = _LINE * (top - bottom) / (ax.bbox.height * points)
        first, last = sorted((start, start + length * letter))
        near = [step.range.ecd.value for step in self.course.steps if step.end > first and step.start < last]
        for value in sorted(filter(math.isfinite, near)):
            if height - 0.3 * line < value < height + 1.4 * line:
                height = value + 0.2 * line
        return float(min(height, top - 1.5 * line))


_LETTER, _LINE = 4.6, 10.0  # points: the width of a small letter, and its height
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
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot import ConsistencyDisplay
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
        ax, color, label, band : optional
            As in `from_consistency`.

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
