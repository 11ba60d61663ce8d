"""Where the model is over-confident: ECD along the predictions, and of slices, among all conditions on its features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

from .._checks.columns import positive
from .._checks.message import fail
from ..errors import OptionError
from ..html.course import BEYOND, OTHER, SUSPECTED, Course, Step
from ..html.intervals import ecd_range
from ..html.markup import shortened
from ..inference.local import Local
from ..judge.evaluation import Evaluation
from ..slices.results import Slices
from .display import OVER, Display, ModelLook, direction_label, heading, ink, legend_above, message
from .ecd import draw_intervals, draw_zero, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LocalDisplay", "SlicesDisplay"]

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
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

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
    LocalDisplay: 16 ranges, 0 of them beyond the limit; the worst: says 65 to 91.5 %
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
            current = (*ax.get_xlim(), *ax.get_ylim())
            ends = (
                min(ends[0], current[0]),
                max(ends[1], current[1]),
                min(ends[2], current[2]),
                max(ends[3], current[3]),
            )
        ax.set_xlim(ends[0], ends[1])
        ax.set_ylim(ends[2], ends[3])
        style: dict[str, Any] = {"marker": look.marker, "markersize": 6.0, "zorder": 4}
        ax.plot([step.middle for step in finite], values, mfc=ax.get_facecolor(), **look.line(), **style)
        beyond = [(step.middle, step.range.ecd.value) for step in finite if step.state == BEYOND]
        if beyond:
            ax.plot(*zip(*beyond, strict=True), color=look.colour, linestyle="none", **style)
        if look.first:
            ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label="filled: beyond the limit")
        ticks = c.ticks_on(ends[0], ends[1]) if c.steps else ()
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
        at = (worst.end if right else worst.start, high)
        if math.isfinite(ecd.value):
            ax.hlines(ecd.value, worst.start, worst.end, color=ink(ax), lw=1.6, zorder=5)
        ax.annotate(
            f"worst: {worst.name}, {worst.bounds}", at, (0, 4), textcoords="offset points", fontsize="small",
            ha="right" if right else "left", va="bottom", zorder=6, parse_math=False,
        )  # fmt: skip


_NAME_LENGTH = 36  # characters of a condition


@final
@dataclass(slots=True, eq=False, repr=False)
class SlicesDisplay(Display):
    """Slices as bars, with intervals that hold together, against the limit.

    Attributes
    ----------
    slices : Slices
        What is drawn.
    limits : tuple of float
        Largest ECD that is allowed in each, in nats.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    See Also
    --------
    GroupsDisplay : ECD by groups of your own.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(0, 2, 4000), rng.integers(20, 90, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-z / np.where(age >= 70, 3, 1)))
    >>> display = safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age}).plot()
    >>> display
    SlicesDisplay: 1 slice
    >>> plt.close(display.figure_)
    """

    slices: Slices
    limits: tuple[float, ...]

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        slices = evaluation.slices
        if slices is None:
            hint = "evaluate with `features=` a frame of what is known of each row."
            raise fail(OptionError, "evaluation", "must have slices", hint=hint)
        return cls._with(slices, evaluation.limits.local_threshold)

    @classmethod
    def _with(cls, slices: Slices, local_threshold: float) -> Self:
        return cls(slices, tuple(local_threshold * s.dimensions for s in slices))

    @classmethod
    def from_slices(cls, slices: Slices, *, local_threshold: float = 0.2, ax: Axes | None = None) -> Self:
        """Draw slices.

        Parameters
        ----------
        slices : Slices
            The slices to draw.
        local_threshold : float, default 0.2
            Largest ECD that is allowed in a slice, in nats a dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        SlicesDisplay
            The display, drawn.
        """
        return cls._with(slices, positive(local_threshold, "local_threshold")).plot(ax=ax)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {len(self.slices)} slice{'' if len(self.slices) == 1 else 's'}"

    def plot(self, *, ax: Axes | None = None, name: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        name : str, optional
            What the model is called; written above.

        Returns
        -------
        SlicesDisplay
            Itself.
        """
        axes = self._on(ax, (6.8, 1.8 + 0.32 * max(len(self.slices), 2)))
        self._draw(axes)
        if name is not None:
            heading(axes, shortened(name, _NAME_LENGTH))
        return self

    def _draw(self, ax: Axes) -> None:
        if not len(self.slices):
            message(ax, "No slice was found.")
            return
        intervals = [s.ecd for s in self.slices]
        draw_zero(ax, self.limits)
        ax.plot([], [], color=ink(ax), lw=1.3, label="intervals, all together")
        draw_intervals(ax, intervals, self.limits, ecd_range(intervals, self.limits), bars=True)
        name_rows(ax, [shortened(s.condition, _NAME_LENGTH) for s in self.slices], [s.n for s in self.slices])
        ax.set_xlabel(direction_label("ECD (nat)"))
        legend_above(ax)
