"""Forecasts that are stated in part: intervals of a level, or some quantiles. Their outcomes fall into classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np

from .._checks import fail, show
from .._checks.arrays import RowLabels, row_labels
from .._checks.columns import spelled, steady
from .._checks.forecasts import (
    class_names_between,
    interval_ends,
    interval_levels,
    outcome_numbers,
    quantile_levels,
    quantile_values,
)
from .._kernels.spectrum import SPREAD_START, spread_cells
from .._sums.causes import ClassSums
from .._sums.scored import Scored
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Rows
from ..errors import FormError
from . import Predictions
from .bernoulli import Bernoulli
from .categorical import Categorical
from .ensemble import SEED
from .family import FamilyWords, Partition, Spectral

__all__ = ["intervals", "quantiles"]

_LIKELIER = 2.0  # how much likelier a class is made than the one outside of it
_ROUNDING = 1e-9  # a difference of two probabilities that is none


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Classes(Predictions):
    """Predictions that are scored as those of classes, under a name and words of their own."""

    outcome: ClassVar[str] = "y_true"
    discrete: ClassVar[bool] = True

    coded: Bernoulli | Categorical
    widths: FloatArray
    look: Look | None = None
    row_labels: RowLabels | None = None

    def take(self, index: IndexArray) -> Self:
        return replace(self, coded=self.coded.take(index), widths=self.widths[index], row_labels=None)

    @property
    def n(self) -> int:
        return self.coded.n

    @property
    def what_happened(self) -> AnyArray:
        return self.coded.what_happened

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.coded.class_names

    @property
    def least_excess(self) -> float:
        return self.coded.least_excess

    @property
    def _block_rows(self) -> int:
        return self.coded._block_rows

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        return self.coded.bin_range(bin_on)

    def _score(self, rows: Rows) -> Scored:
        return self.coded._score(rows)

    def _partition(self, rows: slice) -> Partition:
        return self.coded._partition(rows)

    def gaps(self, rows: Rows) -> FloatArray:
        return self.coded.gaps(rows)

    @property
    def ordered_on(self) -> str:
        return "width"

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        """Order rows by how far apart the outermost ends lie: what is stated of them is alike everywhere."""
        with np.errstate(divide="ignore"):
            order = spread_cells(np.log(self.widths[rows]) + SPREAD_START, 1)
        return self.coded.spectral(rows, scored, weight)._replace(order=order, coarse=None)

    def class_sums(self, rows: slice, scored: Scored, weight: FloatArray | None) -> ClassSums | None:
        return self.coded.class_sums(rows, scored, weight)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Intervals(_Classes):
    """Checked intervals: each outcome lies inside or not."""

    family: ClassVar[str] = "intervals"
    words: ClassVar[FamilyWords] = FamilyWords(
        "intervals",
        "intervals",
        call="safecal.intervals(y_true, lower, upper, level=level).evaluate({})",
        mends="Widen them by errors on other rows, as conformal prediction does, and evaluate the new ones.",
        wrong="Its intervals hold fewer outcomes than it says.",
    )
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("probability", "confidence", "entropy")

    coded: Bernoulli

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        coded = Bernoulli._joined([part.coded for part in parts])
        if coded is None:
            return None
        widths = np.concatenate([part.widths for part in parts])
        return replace(parts[0], coded=coded, widths=widths, look=_look_of_intervals(coded.values), row_labels=None)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Quantiles(_Classes):
    """Checked quantiles: each outcome lies between two of them, or beyond them all."""

    family: ClassVar[str] = "quantiles"
    words: ClassVar[FamilyWords] = FamilyWords(
        "quantiles, {classes} classes",
        "quantiles",
        call="safecal.quantiles(y_true, values, levels=levels).evaluate({})",
        mends="Move them apart by errors on other rows, as conformal prediction does, and evaluate the new ones.",
        wrong="Outcomes do not fall between its quantiles as often as it says.",
    )
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("confidence", "entropy")

    coded: Categorical

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        coded = Categorical._joined([part.coded for part in parts])
        alike = len({part.look for part in parts}) == 1
        if coded is None or not alike:
            return None
        return replace(parts[0], coded=coded, widths=np.concatenate([part.widths for part in parts]), row_labels=None)


def _look_of_intervals(levels: AnyArray) -> Look:
    """Say what intervals show; those of 50 % show nothing."""
    seen = "by how often its intervals hold"
    if not (levels == 0.5).any():
        return Look("intervals", seen, why="How far outside of them outcomes lie is not seen.")
    why = "Intervals of 50 % are blind: outside is as likely as inside, so neither is a surprise. State other levels."
    return Look("intervals", seen, acquits=False, why=why)


@steady
@spelled()
def intervals(y_true: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, level: ArrayLike | float) -> Intervals:
    """Check forecasts that are intervals, each stated to hold the outcome with a probability.

    An outcome lies inside or outside, ends included: two outcomes of probability ``level`` and ``1 - level``. Intervals
    that hold too rarely are over-confident. Those of 50 % are blind: inside and outside are equally likely, so that
    neither is a surprise, and the verdict is never SAFE. How far outside an outcome lies is not seen. Narrow and wide
    intervals are judged apart, too.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        What happened.
    lower, upper : array-like of shape (n,)
        The ends of the intervals; infinite where an interval is open.
    level : float, or array-like of shape (n,)
        With which probability they hold the outcome: 0.9 for intervals of 90 %. From 0.5 to below 1.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    quantiles : More than two quantiles of a forecast.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> forecast = rng.normal(size=2000)
    >>> y_true = forecast + rng.normal(size=2000)
    >>> safecal.intervals(y_true, forecast - 1.645, forecast + 1.645, level=0.9).evaluate().verdict.decision
    'SAFE'
    >>> safecal.intervals(y_true, forecast - 1, forecast + 1, level=0.9).evaluate().verdict.decision
    'UNSAFE'
    """
    labels = row_labels(y_true=y_true, lower=lower, upper=upper)
    y = outcome_numbers(y_true)
    low, high = interval_ends(lower, upper, len(y))
    levels = interval_levels(level, len(y))
    coded = Bernoulli((low <= y) & (y <= high), levels, False, None)
    return Intervals(coded, high - low, _look_of_intervals(levels), labels)


@steady
@spelled()
def quantiles(y_true: ArrayLike, values: ArrayLike, *, levels: Sequence[float] | AnyArray) -> Quantiles:
    """Check forecasts that are quantiles, such as those at 5, 25, 75 and 95 %.

    Outcomes fall into classes: below the first quantile, between two of them, above the last. Their probabilities are
    the differences of the levels. A forecast that is too narrow has too many outcomes in the outer classes, which have
    to be the less likely ones to show it: classes of equal probability are blind. Where levels make such classes, as
    those at 10, 20, ... 90 % do, some quantiles are not used, so that each class is likelier than the one outside of
    it; the verdict says which were used. How far beyond the outermost quantiles an outcome lies is not seen.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        What happened. An outcome that equals a quantile falls on either side of it by chance, by the probability of the
        two classes.
    values : array-like of shape (n, k)
        The quantiles; they must not cross.
    levels : sequence of k floats
        Their levels, increasing, between 0 and 1.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    intervals : Intervals of one level.
    ensemble : Draws.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from scipy import stats
    >>> rng = np.random.default_rng(0)
    >>> forecast, levels = rng.normal(size=(2000, 1)), [0.05, 0.25, 0.75, 0.95]
    >>> y_true = forecast[:, 0] + rng.normal(size=2000)
    >>> right = forecast + stats.norm.ppf(levels)
    >>> safecal.quantiles(y_true, right, levels=levels).evaluate().verdict.decision
    'SAFE'
    >>> narrow = forecast + 0.6 * stats.norm.ppf(levels)
    >>> safecal.quantiles(y_true, narrow, levels=levels).evaluate().verdict.decision
    'UNSAFE'
    """
    labels = row_labels(y_true=y_true, values=values)
    y = outcome_numbers(y_true)
    at = quantile_levels(levels)
    between = quantile_values(values, len(y), len(at))
    happened = _classes_of(y, between, at)
    kept = _kept_levels(at)
    used = at[kept]
    coarse = np.searchsorted(kept, np.arange(len(at) + 1), side="left")
    share = np.diff(np.concatenate([[0.0], used, [1.0]]))
    names = class_names_between(used.tolist())
    coded = Categorical(coarse[happened], np.tile(share, (len(y), 1)), False, False, None, None, names)
    return Quantiles(coded, between[:, kept[-1]] - between[:, kept[0]], _look_of_quantiles(at, used), labels)


def _classes_of(y: FloatArray, values: FloatArray, levels: FloatArray) -> IndexArray:
    """Return the class of each outcome; one that equals quantiles falls to either side by the classes' probability."""
    low, high = (values < y[:, None]).sum(axis=1), (values <= y[:, None]).sum(axis=1)
    edges = np.concatenate([[0.0], levels, [1.0]])
    # The same rows give the same answer: chance is drawn from a generator of its own.
    drawn = edges[low] + np.random.default_rng(SEED).random(len(y)) * (edges[high + 1] - edges[low])
    chosen = np.clip(np.searchsorted(levels, drawn, side="right"), low, high)
    return np.asarray(np.where(low == high, low, chosen), dtype=np.intp)


def _kept_levels(levels: FloatArray) -> IndexArray:
    """Return which levels to keep, so that each class is likelier than the one outside of it."""
    every = np.arange(len(levels))
    if _likelier_inward(levels):
        return every
    left = _inward(levels[levels <= 0.5])
    right = _inward((1.0 - levels[levels > 0.5])[::-1])
    kept = [*left, *(len(levels) - 1 - k for k in reversed(right))]
    while kept and not _likelier_inward(levels[kept]):  # the middle is less likely than one beside it: widen it
        inner = [k for k in (left, right) if len(k) > 1]
        if not inner:
            raise fail(
                FormError, "levels", "must make classes that are unlikelier the farther out they are",
                got=show(levels), hint="add quantiles farther out, such as those at 5 and 95 %.",
            )  # fmt: skip
        max(inner, key=len).pop()
        kept = [*left, *(len(levels) - 1 - k for k in reversed(right))]
    return np.array(kept, dtype=np.intp)


def _inward(levels: FloatArray) -> list[int]:
    """Walk from the tail to the middle, and keep each level that makes a class twice as likely as the last."""
    kept: list[int] = []
    edge, width = 0.0, 0.0
    for k, level in enumerate(levels.tolist()):
        if level - edge >= _LIKELIER * width * (1.0 - _ROUNDING):
            kept, edge, width = [*kept, k], level, level - edge
    return kept


def _likelier_inward(levels: FloatArray) -> bool:
    """Tell whether classes are likelier the nearer they are to the median; the two beside it may be equally likely."""
    edges = np.concatenate([[0.0], levels, [1.0]])
    share = np.diff(edges)
    below = int((edges[1:] <= 0.5).sum())  # classes that end at the median or before
    above = int((edges[:-1] >= 0.5).sum())
    middle = [] if below + above == len(share) else [share[below]]
    sides = [*share[:below], *middle], [*share[len(share) - above :][::-1], *middle]
    grows = all((np.diff(side) > _ROUNDING).all() for side in sides)
    return grows and len(share) > 1 and bool(np.ptp(share) > _ROUNDING)


def _look_of_quantiles(levels: FloatArray, used: FloatArray) -> Look:
    why = f"How far beyond its outermost quantiles outcomes lie is not seen. {_unseen_side(used)}".rstrip()
    seen = "by the classes between its quantiles"
    if len(used) < len(levels):
        named = ", ".join(f"{100 * level:.6g}" for level in used)
        seen += f" at {named} %"
        why = f"Of {len(levels)} quantiles {len(used)} were used: classes of equal probability are blind. {why}"
    return Look("quantiles", seen, why=why)


def _unseen_side(levels: FloatArray) -> str:
    """Say what classes of equal probability cannot show: an outcome in one of them is as good as in the other."""
    edges = np.concatenate([[0.0], levels, [1.0]])
    share = np.diff(edges)
    below = int((edges[1:] <= 0.5).sum())  # classes that end at the median or before
    if abs(edges[below] - 0.5) <= _ROUNDING and abs(share[below - 1] - share[below]) <= _ROUNDING:
        return "Whether its median is right is not seen."
    if (np.diff(np.sort(share)) <= _ROUNDING).any():
        return "In which of two equally likely classes outcomes lie is not seen."
    return ""
