"""The likeliest inverse temperature, from the rows: to all digits, so that the ECD of the rows fitted to becomes 0.

Under ``p_beta``, proportional to ``p**beta``, the summed surprisal has the cumulants that the log-partition functions
give. Impossible rows are left out: no temperature explains them.
"""

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from .._checks.arrays import block
from .._types import AnyArray, FloatArray
from ..errors import UnavailableError
from ..families.categorical import Categorical
from ..families.predictions import Predictions
from ..inference.law import LARGEST, SMALLEST, Tilt, fitted

__all__ = ["Tempered", "tempered"]

_FAR = 1e18  # nats: a gap whose square is a float of half the digits, too
_SAMPLE, _MANY = 20_000, 100_000  # rows of a first fit, where there are many more
_NEAR = 1e-5  # in log beta: what is left after a step of this length is its square
_BLOCK = 1 << 16  # elements that fit into a cache


@final
@dataclass(frozen=True, slots=True)
class Tempered:
    """What the rows say about the inverse temperature."""

    predictions: Predictions
    weight: AnyArray | None
    possible: AnyArray
    mass: float  # sum of the weights of the possible rows
    beta: float = math.nan  # beta-hat; NaN where every prediction is a coin toss or a certainty
    spread: tuple[float, float] | None = None  # information and variance there, where they are known already

    def at(self, beta: float) -> Tilt:
        """Return the sums of surprisals at one beta."""
        totals = np.zeros(5)
        for rows in self.predictions.row_blocks():
            a, w = self.predictions._partition(rows)(beta), self.row_weights(rows)
            v = w * a.variance
            # Plain sums: BLAS would wake its threads for each of these short products.
            totals += [(w * a.value).sum(), (w * a.mean).sum(), v.sum(), (w * v).sum(), (w**3 * a.third).sum()]
        value, mean, information, variance, third = totals.tolist()
        return Tilt(value, -mean, information, variance, -third)

    def row_weights(self, rows: slice) -> FloatArray:
        """Return the weights of some rows, 0 for impossible ones."""
        return _row_weights(self.possible[rows], self.weight, rows)


def _row_weights(possible: AnyArray, weight: AnyArray | None, rows: slice) -> FloatArray:
    return possible.astype(np.float64) if weight is None else possible * block(weight, rows)


def tempered(predictions: Predictions, weight: AnyArray | None = None) -> Tempered:
    """Fit the inverse temperature by maximum likelihood.

    Raises UnavailableError for predictions without a log-partition function.
    """
    if isinstance(predictions, Categorical):
        return _of_classes(predictions, weight)
    surprisal = mass = above = 0.0
    possible = np.ones(predictions.n, dtype=bool)
    for rows in predictions.row_blocks():
        scored, _ = predictions.weighted(rows, None)
        if scored.surprisal is None:
            raise UnavailableError("an unnormalised density has no temperature.")
        possible[rows] = ~scored.impossible
        w = _row_weights(possible[rows], weight, rows)
        s = np.where(possible[rows], scored.surprisal, 0.0)
        surprisal += float((w * s).sum())
        mass += float(w.sum())
        if scored.confidence is None or scored.correct is None:
            above = math.inf
        else:  # an outcome as likely as the most likely one is no surprise either
            above += float((w * (~scored.correct & (s > -np.log(scored.confidence) * (1.0 + 1e-9)))).sum())
    found = Tempered(predictions, weight, possible, mass)
    if found.at(1.0).variance == 0.0:
        return found
    return replace(found, beta=math.inf if above == 0.0 else fitted(found.at, surprisal, SMALLEST, LARGEST))


def _of_classes(predictions: Categorical, weight: AnyArray | None) -> Tempered:
    """Fit that of classes from how much less likely each is than the likeliest one: two powers of it are enough."""
    rows = np.arange(predictions.n)
    gaps = np.concatenate([predictions.log_gaps(part) for part in predictions.row_blocks()])
    happened = gaps[rows, predictions.happened]
    possible = np.isfinite(happened)
    w = _row_weights(possible, weight, slice(0, predictions.n))
    found = Tempered(predictions, weight, possible, float(w.sum()))
    if predictions.infinite:
        np.minimum(gaps, _FAR, out=gaps)  # of a probability of 0 every power is 0, and its product with the gap, too
    happened = np.where(possible, happened, 0.0)
    seen = float(w @ happened)
    if not any((w[part] @ _spread(gaps[part], 1.0)[1]) > 0.0 for part in (slice(0, 1000), slice(1000, None))):
        return found
    if not (w * (possible & (happened > 1e-9))).any():  # as likely as the likeliest one is no surprise either
        return replace(found, beta=math.inf)
    if len(gaps) <= _MANY:
        return replace(found, beta=_solved(gaps, w, seen, 1.0))
    some = np.random.default_rng(0).permutation(len(gaps))[:_SAMPLE]
    beta = _solved(gaps[some], w[some], float(w[some] @ happened[some]), 1.0)
    spread = None
    if 0.0 < beta < math.inf:
        for number in (np.float32, np.float64):  # near the end one step with half of the digits does, and one with all
            mean, variance = _spread(gaps.astype(number, copy=False), beta)
            information = float(w @ variance)
            step = (float(w @ mean) - seen) / (beta * information)
            beta *= math.exp(step)
        spread = (information, float(w * w @ variance))
    if spread is None or abs(step) > _NEAR:
        return replace(found, beta=_solved(gaps, w, seen, beta if 0.0 < beta < math.inf else 1.0))
    return replace(found, beta=beta, spread=spread)


def _solved(gaps: FloatArray, w: FloatArray, seen: float, start: float) -> float:
    """Return the beta at which the mean gap is the one seen, sought from ``start``."""

    def at(ratio: float) -> Tilt:
        mean, variance = _spread(gaps, ratio * start)
        return Tilt(math.nan, float(w @ mean), start * float(w @ variance), math.nan, math.nan)

    return start * fitted(at, seen, SMALLEST / start, LARGEST / start)


def _spread(gaps: AnyArray, beta: float) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the gap under ``p_beta``, row by row."""
    mean, variance = np.empty(len(gaps)), np.empty(len(gaps))
    ones = np.ones(gaps.shape[1], dtype=gaps.dtype)
    step = max(1, _BLOCK // gaps.shape[1])
    for start in range(0, len(gaps), step):
        part = slice(start, start + step)
        d = gaps[part]
        p = np.multiply(d, gaps.dtype.type(-beta))
        np.exp(p, out=p)
        total = p @ ones
        p *= d
        first = p @ ones / total
        p *= d
        mean[part], variance[part] = first, np.maximum(p @ ones / total - first * first, 0.0)
    return mean, variance
