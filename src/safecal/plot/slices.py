"""ECD of slices: for whom the model is over-confident, among all conditions on its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

from .._checks.columns import positive
from .._checks.message import fail
from ..errors import OptionError
from ..html.intervals import ecd_range
from ..html.markup import shortened
from ..judge.evaluation import Evaluation
from ..slices.results import Slices
from .display import Display, direction_label, heading, ink, legend_above, message
from .ecd import draw_intervals, draw_zero, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SlicesDisplay"]

_NAME = 36  # characters of a condition


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
            Those that were found.
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
            heading(axes, shortened(name, _NAME))
        return self

    def _draw(self, ax: Axes) -> None:
        if not len(self.slices):
            message(ax, "No slice was found.")
            return
        intervals = [s.ecd for s in self.slices]
        draw_zero(ax, self.limits)
        ax.plot([], [], color=ink(ax), lw=1.3, label="intervals, all together")
        draw_intervals(ax, intervals, self.limits, ecd_range(intervals, self.limits), bars=True)
        name_rows(ax, [shortened(s.condition, _NAME) for s in self.slices], [s.n for s in self.slices])
        ax.set_xlabel(direction_label("ECD (nat)"))
        legend_above(ax)
