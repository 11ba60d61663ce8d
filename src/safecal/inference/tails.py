"""Quantiles of Pearson III, gamma and t laws, of many keys at once; and tails of a sum from the rows themselves.

The latter, if the model is calibrated, by one of these:

- the saddlepoint. The weighted sum of the surprisals has the cumulant generating function ``K(t) = sum A(1 - t w)``,
  and its law is tilted by the ``t`` at which its mean is the observed sum;
- draws, where predictions are nearly always right. A row surprises when anything but its most likely outcome happens.
  Where few surprises are expected, the law has large atoms, and no smooth approximation holds. It is drawn exactly, at
  the price of the surprises alone: they arrive as the first points of independent Poisson processes, so rows that do
  not surprise are never touched.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from .._checks.arrays import block
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from ..errors import UnavailableError
from ..families import Predictions
from .law import ATOM, lugannani_rice

__all__ = [
    "distinct", "draw_surprises", "expected_surprises", "gamma_quantiles", "observed_surprises",
    "pearson3_quantile", "pearson3_quantiles", "saddlepoint_tails", "surprise_rates", "t_quantiles",
    "tilted_to_zero",
]  # fmt: skip

_ROUND = 200.0  # shape from which the expansion of Cornish and Fisher is near, and one step corrects it
_CLEARLY = 1e-3  # standard deviations: from `_ROUND` on that expansion is wrong by less than 1e-4
_EVEN = 1e5  # shape from which a gamma law is expanded about the normal one, to 4e-12 standard deviations
_NORMAL = 1000.0  # degrees of freedom from which a t law is expanded about the normal one


def pearson3_quantile(probability: float, variance: float, third: float) -> float:
    """Return the value below which the law of `pearson3` lies with the given probability."""
    spread = math.sqrt(variance)
    skew = third / variance / spread
    if abs(skew) < 1e-6:
        return spread * float(special.ndtri(probability))
    if skew < 0:
        return -pearson3_quantile(1.0 - probability, variance, -third)
    shape = (2.0 / skew) ** 2
    if shape < ATOM:
        return -2.0 * spread / skew
    return spread * skew / 2.0 * float(special.gammaincinv(shape, probability) - shape)


Tail = tuple[float, bool]  # a probability, and whether it is that of an upper tail


@np.errstate(all="ignore")
def pearson3_quantiles(
    tails: Sequence[Tail], variance: FloatArray, third: FloatArray, nearer: FloatArray | None = None
) -> FloatArray:
    """Return for each tail and each law of `pearson3` the value beyond which it lies with that probability.

    Values that are clearly nearer to the mean than ``nearer``, a row for each tail, need not be exact.
    """
    spread = np.sqrt(variance)
    skew = third / variance / spread
    scores = _gamma_scores(tails, np.abs(skew), None if nearer is None else nearer / spread)
    negative = np.flatnonzero(skew < 0.0)
    if len(negative):
        scores[:, negative] = -_gamma_scores([(alpha, not upper) for alpha, upper in tails], -skew[negative])
    return np.asarray(spread * scores)


@np.errstate(all="ignore")
def gamma_quantiles(alpha: float, shape: FloatArray, *, upper: bool) -> FloatArray:
    """Return the value beyond which each gamma law lies with probability ``alpha``, above or below."""
    root = np.sqrt(shape)
    return np.asarray(shape + root * _gamma_scores([(alpha, upper)], 2.0 / root)[0])


def _gamma_scores(tails: Sequence[Tail], skew: FloatArray, nearer: FloatArray | None = None) -> FloatArray:
    """Return quantiles of gamma laws of some skewness, in standard deviations from the mean: a row for each tail.

    A probability may be as small as a million keys ask for. SciPy's inverse of the lower gamma tail then fails for
    large shapes (at 1e8 and 1e-7 it is off by 7 % of a standard deviation), hence the expansion of Cornish and Fisher.
    Those that are nearer to the mean than ``nearer``, and by more than the expansion can be wrong, are left at that.
    """
    terms = np.array(
        [_expansion_terms(float(special.ndtri(alpha)) * (-1.0 if upper else 1.0)) for alpha, upper in tails]
    )
    first, second, third, fourth, fifth = terms.T[:, :, None]
    scores: FloatArray = (((fifth * skew + fourth) * skew + third) * skew + second) * skew + first
    shape = 4.0 / (skew * skew)
    skewed = shape < _ROUND
    inexact = (shape < _EVEN) & ~skewed
    if nearer is not None:
        inexact &= ~(np.abs(scores) < nearer - _CLEARLY).all(axis=0)
    if skewed.any():
        k = shape[skewed]
        for row, (alpha, upper) in zip(scores, tails, strict=True):
            row[skewed] = ((special.gammainccinv if upper else special.gammaincinv)(k, alpha) - k) / np.sqrt(k)
    if inexact.any():  # one step of Halley's method, which leaves the cube of an error that is small
        k = shape[inexact]
        root = np.sqrt(k)
        x = k + root * scores[:, inexact]
        step = np.empty(x.shape)
        for row, at, (alpha, upper) in zip(step, x, tails, strict=True):
            row[:] = special.gammaincc(k, at) - alpha if upper else alpha - special.gammainc(k, at)
        step /= np.exp((k - 1.0) * np.log(x) - x - special.gammaln(k))
        scores[:, inexact] = (x - k + step / (1.0 - 0.5 * step * ((k - 1.0) / x - 1.0))) / root
    return scores


def _expansion_terms(z: float) -> tuple[float, ...]:
    """Return the terms of a quantile of a gamma law, by powers of its skewness."""
    return (
        z,
        (z**2 - 1.0) / 6.0,
        (z**3 - 7.0 * z) / 144.0,
        -(3.0 * z**4 + 7.0 * z**2 - 16.0) / 6480.0,
        (9.0 * z**5 + 256.0 * z**3 - 433.0 * z) / 622080.0,
    )


def t_quantiles(alpha: float, freedom: FloatArray) -> FloatArray:
    """Return the value above which each t law lies with probability ``alpha``."""
    z = -float(special.ndtri(alpha))
    terms = (
        z,
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    quantiles: FloatArray = terms[4] / freedom + terms[3]
    for term in terms[2::-1]:
        quantiles /= freedom
        quantiles += term
    few = np.flatnonzero(freedom < _NORMAL)
    if len(few):
        quantiles[few] = -special.stdtrit(freedom[few], alpha)
    return quantiles


_STEPS = 60


class _TiltedSum(NamedTuple):
    t: float
    value: float
    mean: float
    variance: float
    third: float


def _tilted_sum(predictions: Predictions, weight: AnyArray | None, t: float) -> _TiltedSum:
    totals = np.zeros(4)
    for rows in predictions.row_blocks():
        at = predictions._partition(rows)
        if weight is None:
            cumulants = at(1.0 - t)
            totals += [column.sum() for column in cumulants]
        else:
            w = block(weight, rows)
            cumulants = at(1.0 - t * w)
            totals += [(w**order * column).sum() for order, column in enumerate(cumulants)]
    return _TiltedSum(t, totals[0], -totals[1], totals[2], -totals[3])


def saddlepoint_tails(predictions: Predictions, weight: AnyArray | None, observed: float) -> tuple[float, float] | None:
    """Return both tails at the observed sum of surprisals; None at the edge of the support, where no tilt reaches it.

    Raises UnavailableError for predictions without a log-partition function.
    """
    at = _tilted_sum(predictions, weight, 0.0)
    if at.variance == 0.0:  # every outcome is as surprising as every other: the sum has one value, but for rounding
        return 1.0, 1.0
    low, high = -np.inf, np.inf
    scale = np.sqrt(at.variance)
    for _ in range(_STEPS):
        gap = observed - at.mean
        if abs(gap) <= 1e-9 * np.sqrt(at.variance) + 1e-14 * abs(observed):
            drop = at.t * observed - at.value
            return lugannani_rice(at.t, drop, at.variance, at.third)
        low, high = (at.t, high) if gap > 0 else (low, at.t)
        step = at.t + gap / at.variance if at.variance > 0 else np.sign(gap) * np.inf
        reach = 4.0 * (1.0 + abs(at.t))
        step = min(max(step, at.t - reach), at.t + reach)
        if not low < step < high:
            step = 0.5 * (low + high)
        at, high = _tilted_inside(predictions, weight, at, float(step), high)
        if at.variance < 1e-12 * scale**2:
            return None
    return None


def _tilted_inside(
    predictions: Predictions, weight: AnyArray | None, at: _TiltedSum, step: float, high: float
) -> tuple[_TiltedSum, float]:
    """Tilt by ``step``, or by as much of it as the law allows."""
    for _ in range(_STEPS):
        try:
            return _tilted_sum(predictions, weight, step), high
        except UnavailableError:
            if step <= at.t:  # the whole law has no log-partition function, not just a part of its tail
                raise
            high, step = step, 0.5 * (at.t + step)
    raise UnavailableError("the tail of the summed surprisal has no exponential moments.")


def surprise_rates(predictions: Predictions) -> FloatArray:
    """Return ``-log p(most likely outcome)`` of each row."""
    parts = [np.log1p(np.exp(-predictions.gaps(rows)).sum(axis=1)) for rows in predictions.row_blocks()]
    return np.concatenate(parts)


def expected_surprises(rates: FloatArray) -> float:
    """Return the expected number of rows that surprise."""
    return float(-np.expm1(-rates).sum())


def observed_surprises(predictions: Predictions, weight: AnyArray | None) -> float:
    """Return the weighted sum of ``log p(most likely) - log p(outcome)``."""
    total = 0.0
    for rows in predictions.row_blocks():
        scored, w = predictions.weighted(rows, weight)
        assert scored.surprisal is not None
        assert scored.confidence is not None
        assert scored.correct is not None
        gap = np.where(scored.correct, 0.0, scored.surprisal + np.log(scored.confidence))
        gap = np.where(gap > 1e-12 * scored.surprisal, gap, 0.0)  # exactly 0 without a surprise, whatever the rounding
        total += float(gap.sum() if w is None else np.dot(w, gap))
    return total


def draw_surprises(
    predictions: Predictions, rates: FloatArray, weight: AnyArray | None, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw the weighted sum of ``log p(most likely) - log p(outcome)``, ``draws`` times."""
    edges = np.concatenate([[0.0], np.cumsum(rates)])
    number = rng.poisson(edges[-1], draws)
    draw: IndexArray = np.repeat(np.arange(draws), number)
    row = np.searchsorted(edges, rng.uniform(0.0, edges[-1], len(draw)), side="right") - 1
    row = np.minimum(row, predictions.n - 1)
    first = distinct(draw * predictions.n + row)  # a row surprises once, however many points fall on it
    draw, row = first // predictions.n, first % predictions.n
    sizes = _draw_sizes(predictions, row, rng)
    if weight is not None:
        sizes = sizes * np.asarray(weight, dtype=np.float64)[row]
    return np.bincount(draw, weights=sizes, minlength=draws).astype(np.float64)


def distinct(values: IndexArray) -> IndexArray:
    """Return the whole numbers that differ, sorted: as `np.unique`, which takes 50 times as long for a million."""
    in_order: IndexArray = np.sort(values)
    return np.asarray(in_order[np.concatenate([[True], in_order[1:] != in_order[:-1]])[: len(in_order)]])


def _draw_sizes(predictions: Predictions, row: IndexArray, rng: np.random.Generator) -> FloatArray:
    """Draw how large each surprise is: one of the less likely outcomes, by its probability."""
    rows, index = np.unique(row, return_inverse=True)
    out = np.empty(len(row))
    u = rng.random(len(row))
    step = 4096
    for start in range(0, len(rows), step):
        gaps = predictions.gaps(rows[start : start + step])
        in_block = np.flatnonzero((index >= start) & (index < start + step))
        cumulative = np.cumsum(np.exp(-gaps), axis=1)
        place = index[in_block] - start
        target = u[in_block] * cumulative[place, -1]
        pick = (cumulative[place] <= target[:, None]).sum(axis=1)
        out[in_block] = gaps[place, np.minimum(pick, gaps.shape[1] - 1)]
    return out


_TILTS, _CENTRED = 60, 1e-6  # steps of Newton's method, and standard deviations that a mean may be off 0


@np.errstate(all="ignore")
def tilted_to_zero(
    values: FloatArray, log_base: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
    """Tilt a law of each row by ``exp(-theta values)`` until its mean is 0, by a bracketed Newton's method.

    For each outcome of a row, ``values`` tell what it counts, and ``log_base`` the logarithm of its mass before the
    tilt. Returned are of each row the second and third cumulant of the tilted law, 0 where all values have one sign;
    the smallest and the largest value; and whether a value, or its third power, is beyond every float: then cumulants
    are 0, too.
    """
    known = np.isfinite(values) & np.isfinite(log_base)
    lowest, highest = np.where(known, values, np.inf).min(axis=1), np.where(known, values, -np.inf).max(axis=1)
    scale = np.where(known, np.abs(values), 0.0).max(axis=1)
    certain = np.isinf(values).any(axis=1) | ~np.isfinite(scale**3)
    both_signs = (lowest < 0.0) & (highest > 0.0) & ~certain
    variance, third = np.zeros(len(values)), np.zeros(len(values))
    x = np.where(known, values, 0.0)[both_signs] / scale[both_signs, None]
    base = np.where(known, log_base, -np.inf)[both_signs]
    theta, low, high = np.zeros(len(x)), np.full(len(x), -np.inf), np.full(len(x), np.inf)
    active: IndexArray = np.arange(len(x))
    spread, skew = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(_TILTS):
        t = theta[active]
        w = base[active] - t[:, None] * x[active]
        q = np.exp(w - w.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        mean = (q * x[active]).sum(axis=1)
        c = x[active] - mean[:, None]
        var = (q * c * c).sum(axis=1)
        spread[active], skew[active] = var, (q * c**3).sum(axis=1)
        low[active] = np.where(mean > 0.0, t, low[active])
        high[active] = np.where(mean > 0.0, high[active], t)
        far = np.abs(mean) > _CENTRED * np.sqrt(var)
        if not far.any():
            break
        lo, hi = low[active], high[active]
        newton = t + mean / var
        outward = np.where(np.isinf(hi), 2.0 * np.abs(t) + 1.0, -2.0 * np.abs(t) - 1.0)
        half = np.where(np.isfinite(lo) & np.isfinite(hi), 0.5 * (lo + hi), outward)
        inside = (newton > lo) & (newton < hi) & (np.abs(newton) <= 4.0 * np.abs(t) + 4.0)
        theta[active] = np.where(inside, newton, half)
        active = active[far]
    variance[both_signs] = spread * scale[both_signs] ** 2
    third[both_signs] = skew * scale[both_signs] ** 3
    return variance, third, lowest, highest, certain
