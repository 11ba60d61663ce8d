"""How ECD adds up, row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from .._types import FloatArray
from ..evaluation import Evaluation
from .canvas import OVER, UNDER, ink, legend_above, message
from .display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ContributionDisplay"]

_WORST = 0.01  # of the rows
_FEW = 12


@final
@dataclass(slots=True, eq=False, repr=False)
class ContributionDisplay(Display):
    """How ECD adds up when rows are taken one after the other, the most surprising first.

    The curve climbs through the rows that surprised the model more than it had announced, falls through the others, and
    ends at ECD. A steep start says that a few rows decide. It is exact at the cells of the histogram of the excess, and
    straight between them.

    Attributes
    ----------
    share : ndarray of shape (points,)
        Share of the weight taken so far, from 0 to 1.
    total : ndarray of shape (points,)
        Their part of ECD in nats; the last is ECD. Impossible rows, of infinite excess, are left out.
    worst_share : float
        Share of all excess above 0 in the most surprising 1 % of the rows; NaN for fewer than 100 rows.
    limit : float
        Largest ECD that is allowed, in nats; for states the threshold times the dimension.
    n_impossible : int
        Rows that are left out.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    See Also
    --------
    ExcessDisplay : How the excess is spread.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from safecal.plot import ContributionDisplay
    >>> display = ContributionDisplay.from_predictions([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8])
    >>> display
    ContributionDisplay: ECD -0.157, up to +0.0487 from rows that surprised
    >>> plt.close(display.figure_)
    """

    share: FloatArray
    total: FloatArray
    worst_share: float
    limit: float
    n_impossible: int

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        histogram = evaluation.histogram
        counts, sums = np.array(histogram.counts)[::-1], np.array(histogram.sums)[::-1]
        full = counts > 0.0
        weight = counts.sum() or 1.0
        share = np.concatenate([[0.0], np.cumsum(counts[full]) / weight])
        total = np.concatenate([[0.0], np.cumsum(sums[full]) / weight])
        limit = evaluation.verdict.allowed
        worst = histogram.worst_share(_WORST) if evaluation.n >= 1.0 / _WORST else math.nan
        return cls(share, total, worst, limit, evaluation.summary.n_impossible)

    def __repr__(self) -> str:
        end, top = self.total[-1], self.total.max()
        return f"{type(self).__name__}: ECD {end:+.3g}, up to {top:+.3g} from rows that surprised"

    def _draw(self, ax: Axes) -> None:
        if len(self.share) < 2:
            message(ax, "Every outcome was one that the model had called impossible.")
            return
        x, y = 100.0 * self.share, self.total
        top = int(np.argmax(y))
        ax.axhline(0.0, color=ink(ax), lw=0.8, zorder=1)
        if math.isfinite(self.limit):
            ax.axhline(self.limit, color=ink(ax), lw=1.2, ls="--", zorder=1, label=f"limit, {self.limit:g} nat")
        if top > 0:
            ax.plot(
                x[: top + 1], y[: top + 1], color=OVER, lw=2.0, ls="-", zorder=3, label="more surprised than announced"
            )
        if top < len(x) - 1:
            ax.plot(x[top:], y[top:], color=UNDER, lw=2.0, ls="-.", zorder=3, label="less surprised than announced")
        name = "ECD" if self.n_impossible == 0 else "ECD of the possible rows"
        end = {"marker": "o", "markersize": 7, "linestyle": "none", "color": ink(ax), "clip_on": False, "zorder": 5}
        ax.plot([100.0], [y[-1]], label=f"{name}, {y[-1]:+.3g}", **end)
        if not math.isnan(self.worst_share):
            at = float(np.interp(_WORST, self.share, self.total))
            label = f"worst 1 %: {100.0 * self.worst_share:.0f} % of the rise"
            ax.plot(
                [100.0 * _WORST], [at], marker="D", linestyle="none", color=OVER, markersize=6, zorder=4, label=label
            )
        ax.set_xlim(0.0, 100.0)
        ax.margins(y=0.12)
        ax.set_xlabel("rows, the most surprising first (%)")
        ax.set_ylabel("their part of ECD (nat)")
        legend_above(ax)
