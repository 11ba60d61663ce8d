"""How the excess is spread over the rows, and how ECD adds up, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .._types import FloatArray
from ..errors import UnavailableError
from ..html.diagrams import ExcessShares
from ..judge.evaluation import Evaluation
from .display import OVER, UNDER, Display, ModelLook, direction_label, ink, legend_above, message, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ContributionDisplay", "ExcessDisplay", "TransformDisplay", "draw_spreads"]

_NOTHING_POSSIBLE = "Every outcome was one that the model had called impossible."
_FEW = 12  # points up to which each is marked
_WORST = 0.01  # of the rows


@final
@dataclass(slots=True, eq=False, repr=False)
class ExcessDisplay(Display):
    """Share of rows whose excess, surprisal minus entropy, is at least so large.

    To the right of 0 are the rows that surprised the model more than it had announced. ECD is the mean of the excess,
    and a few rows far to the right can make most of it. For Gaussian predictions the dashed curve shows the shares of a
    calibrated model: those of a chi-square law.

    Attributes
    ----------
    excess : ndarray of shape (cells,)
        Excess in nats: the mean of each cell of the histogram that holds rows, increasing.
    share : ndarray of shape (cells,)
        Share of the weight with at least that excess; rows of infinite excess included.
    expected : ndarray of shape (points, 2) or None
        Excess, and the share that a calibrated model has there; None where that is not known.
    ecd, median : float
        Mean and median of the excess.
    impossible : float
        Share of the weight in rows of infinite excess.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    See Also
    --------
    ContributionDisplay : Which rows make ECD.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import safecal
    >>> from safecal.plot import ExcessDisplay
    >>> states = safecal.gaussian([0.1, -0.4, 2.5, 0.3], [0.0, 0.0, 0.0, 0.0], std=1.0)
    >>> display = ExcessDisplay.from_evaluation(states.evaluate())
    >>> display
    ExcessDisplay: ECD +0.314, median -0.455, 25 % of the rows above 0
    >>> plt.close(display.figure_)
    """

    excess: FloatArray
    share: FloatArray
    expected: FloatArray | None
    ecd: float
    median: float
    impossible: float

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        shares, median = ExcessShares.of(evaluation), evaluation.histogram.median
        return cls(shares.excess, shares.share, shares.expected, evaluation.summary.ecd, median, shares.impossible)

    @property
    def surprised(self) -> float:
        """Share of rows whose excess is above 0."""
        above = self.share[self.excess > 0.0]
        return float(above[0]) if above.size else self.impossible

    def __repr__(self) -> str:
        median = f"median {self.median:+.3g}, {100.0 * self.surprised:.3g} % of the rows above 0"
        return f"{type(self).__name__}: ECD {self.ecd:+.3g}, {median}"

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        low, high = _excess_range(self)
        smallest = _smallest_share(self) if self.excess.size else 1.0
        if look.first:
            _draw_unsurprised(ax)
        else:
            low, high = min(low, ax.dataLim.x0), max(high, ax.dataLim.x1)
            smallest = min(smallest, ax.get_ylim()[0] / 0.5)
        ax.set_xscale("linear")
        _excess_axis(ax, low, high)
        if self.excess.size:
            label = f"{look.name}, ECD {self.ecd:+.3g}"
            ax.step(self.excess, self.share, where="pre", zorder=4, **look.line() | {"label": label})
        _share_axis(ax, min(smallest, 1.0))
        legend_above(ax)

    def _draw(self, ax: Axes) -> None:
        if not self.excess.size:
            message(ax, _NOTHING_POSSIBLE)
            return
        _draw_unsurprised(ax)
        if math.isfinite(self.ecd):
            ax.axvline(self.ecd, color=OVER, lw=1.3, ls="-.", zorder=2, label=f"mean (ECD), {self.ecd:+.3g}")
        else:
            ax.plot([], [], color=OVER, lw=1.3, ls="-.", label="mean (ECD), infinite")
        ax.axvline(self.median, color=ink(ax), lw=1.3, ls=":", zorder=2, label=f"median, {self.median:+.3g}")
        if self.expected is not None:
            ax.plot(*self.expected.T, color=ink(ax), lw=1.2, ls="--", zorder=3, label="if calibrated")
        _excess_axis(ax, *_excess_range(self))
        _draw_shares(ax, self, ink(ax), "-", "o", "rows")
        _share_axis(ax, _smallest_share(self))
        legend_above(ax)


def _draw_unsurprised(ax: Axes) -> None:
    """Draw the line of rows that surprised as much as announced, and name the axes of shares."""
    ax.axvline(0.0, color=ink(ax), lw=0.8, zorder=1)
    ax.set_xlabel(direction_label("excess (nat)", "less surprised", "more surprised"))
    ax.set_ylabel("share of rows with at least that")


def draw_spreads(
    ax: Axes, evaluations: Sequence[Evaluation], names: Sequence[str], looks: Sequence[tuple[str, str, str]]
) -> None:
    """Draw the shares of several models, each with its colour, line and marker; the law is that of the last."""
    spreads = [ExcessDisplay._of(evaluation) for evaluation in evaluations]
    if not all(spread.excess.size for spread in spreads):
        message(ax, _NOTHING_POSSIBLE)
        return
    _draw_unsurprised(ax)
    expected = spreads[-1].expected
    if expected is not None:
        ax.plot(*expected.T, color=ink(ax), lw=1.2, ls=":", zorder=2, label="if calibrated")
    spans = [_excess_range(spread) for spread in spreads]
    _excess_axis(ax, min(low for low, _ in spans), max(high for _, high in spans))
    for name, spread, look in zip(names, spreads, looks, strict=True):
        _draw_shares(ax, spread, *look, name)
    _share_axis(ax, min(map(_smallest_share, spreads)))
    legend_above(ax)


def _excess_range(display: ExcessDisplay) -> tuple[float, float]:
    """Return the ends of an axis for the curves, with room for an arrow where the excess is infinite."""
    values = [0.0, *display.excess.tolist(), *([] if display.expected is None else display.expected[:, 0].tolist())]
    low, high = min(values), max(values)
    return low, high + (0.4 * (high - low) + 0.1 if display.impossible > 0.0 else 0.0)


def _smallest_share(display: ExcessDisplay) -> float:
    """Return the smallest share that is drawn."""
    return min(float(display.share.min()), display.impossible or 1.0)


def _draw_shares(ax: Axes, display: ExcessDisplay, colour: Any, style: str, marker: str, label: str) -> None:
    """Draw the share of rows as a staircase; infinite excess goes on to the edge of the axes."""
    x, y = display.excess, display.share
    few = marker if len(x) <= _FEW else None
    ax.step(x, y, where="pre", color=colour, lw=1.8, ls=style, marker=few, markersize=5, zorder=4, label=label)
    if display.impossible > 0.0:
        edge = ax.get_xlim()[1]
        ax.plot([x[-1], x[-1], edge], [y[-1], display.impossible, display.impossible], color=colour, lw=1.8, ls=style)
        ax.plot([edge], [display.impossible], marker=">", linestyle="none", color=colour, markersize=8, clip_on=False)
        words, place = f"infinite: {100.0 * display.impossible:.3g} %", (edge, display.impossible)
        ax.annotate(words, place, (-8, 5), textcoords="offset points", fontsize="small", ha="right")


def _share_axis(ax: Axes, smallest: float) -> None:
    """Make the y axis logarithmic, from the smallest share to all rows, with percentages at its ticks."""
    ax.set_yscale("log")
    ax.set_ylim(min(0.5 * smallest, 0.3), 1.25)
    every = max(math.ceil(-math.log10(smallest) / 6.0), 1)
    decades = [10.0**-k for k in range(0, math.ceil(-math.log10(smallest)) + 1, every)]
    ticks = decades if smallest < 0.05 else [1.0, 0.5, 0.2, 0.1, 0.05]
    visible = [tick for tick in ticks if tick >= ax.get_ylim()[0]]
    ax.set_yticks(visible, [percent(tick) for tick in visible])
    ax.minorticks_off()


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
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

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

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        if look.first:
            self._frame(ax)
        label = f"{look.name}, ECD {self.total[-1]:+.3g}"
        ax.plot(100.0 * self.share, self.total, zorder=3, **look.line() | {"label": label})
        legend_above(ax)

    def _draw(self, ax: Axes) -> None:
        if len(self.share) < 2:
            message(ax, _NOTHING_POSSIBLE)
            return
        x, y = 100.0 * self.share, self.total
        top = int(np.argmax(y))
        self._frame(ax)
        rise, fall = slice(top + 1), slice(top, None)
        if top > 0:
            ax.plot(x[rise], y[rise], color=OVER, lw=2.0, ls="-", zorder=3, label="more surprised than announced")
        if top < len(x) - 1:
            ax.plot(x[fall], y[fall], color=UNDER, lw=2.0, ls="-.", zorder=3, label="less surprised than announced")
        name = "ECD" if self.n_impossible == 0 else "ECD of the possible rows"
        end = {"marker": "o", "markersize": 7, "linestyle": "none", "color": ink(ax), "clip_on": False, "zorder": 5}
        ax.plot([100.0], [y[-1]], label=f"{name}, {y[-1]:+.3g}", **end)
        if not math.isnan(self.worst_share):
            at = float(np.interp(_WORST, self.share, self.total))
            label = f"worst 1 %: {100.0 * self.worst_share:.0f} % of the rise"
            ax.plot([100.0 * _WORST], [at], marker="D", ls="none", color=OVER, markersize=6, zorder=4, label=label)
        legend_above(ax)

    def _frame(self, ax: Axes) -> None:
        ax.axhline(0.0, color=ink(ax), lw=0.8, zorder=1)
        if math.isfinite(self.limit):
            ax.axhline(self.limit, color=ink(ax), lw=1.2, ls="--", zorder=1, label=f"limit, {self.limit:g} nat")
        ax.set_xlim(0.0, 100.0)
        ax.margins(y=0.12)
        ax.set_xlabel("rows, the most surprising first (%)")
        ax.set_ylabel("their part of ECD (nat)")


def _excess_axis(ax: Axes, low: float, high: float) -> None:
    """Set the limits of an x axis in nats; beyond 1 nat it is logarithmic where the values reach far."""
    pad = 0.05 * (high - low) or 0.1
    if high <= 20.0:
        ax.set_xlim(low - pad, high + pad)
        return
    ax.set_xscale("asinh", linear_width=1.0)
    ax.set_xlim(min(1.15 * low, low - 0.1), max(1.15 * high, high + 0.1))
    reach = max(-low, high)
    steps = (1.0, 2.0, 5.0) if reach < 200.0 else (1.0,)
    sizes = [0.5] + [m * 10.0**d for d in range(math.ceil(math.log10(reach)) + 1) for m in steps]
    if low > -0.5 and reach < 200.0:
        sizes = [size for size in sizes if size != 0.5]
    ticks = [0.0, *sizes, *(-size for size in sizes)]
    left, right = ax.get_xlim()
    visible = sorted(tick for tick in ticks if left <= tick <= right)
    ax.set_xticks(visible, [f"{tick:g}" for tick in visible])
    ax.minorticks_off()


@final
@dataclass(slots=True, eq=False, repr=False)
class TransformDisplay(Display):
    """Histogram of the probability integral transform: where outcomes fall in their forecasts.

    A right forecast is even. A U shape means that it is too narrow, a hump that it is too wide, a slope that it is
    biased. Most bars of a right forecast lie in the band.

    Attributes
    ----------
    share : ndarray of shape (20,)
        Share of the rows in each twentieth.
    band : (float, float)
        The ends between which 95 % of the shares of a right forecast lie, each by itself.
    ax_, figure_ : matplotlib Axes, and its Figure
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot import TransformDisplay
    >>> y_true = 2.0 * np.random.default_rng(0).normal(size=1000)
    >>> display = TransformDisplay.from_evaluation(safecal.gaussian(y_true, np.zeros(1000), std=1.0).evaluate())
    >>> display
    TransformDisplay: 38.8 % of the outcomes in the outer tenth
    >>> plt.close(display.figure_)
    """

    share: FloatArray
    band: tuple[float, float]

    @classmethod
    def _of(cls, evaluation: Evaluation) -> Self:
        forecast = evaluation.forecast
        if forecast is None:
            raise UnavailableError(
                f"{evaluation.family} predictions have no transform: they are no forecasts of numbers or vectors."
            )
        return cls(forecast.ranks.reshape(-1, 2).sum(axis=1), (2.0 * forecast.band[0], 2.0 * forecast.band[1]))

    def __repr__(self) -> str:
        outer = 100.0 * float(self.share[0] + self.share[-1])
        return f"{type(self).__name__}: {outer:.3g} % of the outcomes in the outer tenth"

    def _draw_model(self, ax: Axes, look: ModelLook) -> None:
        edges = np.linspace(0.0, 1.0, len(self.share) + 1)
        ax.stairs(self.share, edges, zorder=4, **look.line())
        self._frame(ax)
        legend_above(ax)

    def _draw(self, ax: Axes) -> None:
        size = 1.0 / len(self.share)
        ax.axhspan(*self.band, color=ink(ax), alpha=0.15, lw=0.0, label="if right, 95 % of them")
        ax.bar(size * (np.arange(len(self.share)) + 0.5), self.share, 0.9 * size, color=OVER, alpha=0.7, zorder=3)
        self._frame(ax)
        legend_above(ax)

    def _frame(self, ax: Axes) -> None:
        ax.axhline(1.0 / len(self.share), color=ink(ax), lw=0.8, ls="--")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("where the outcome falls in its forecast")
        ax.set_ylabel("share of rows")
