"""The exact law of the summed surprisal, where it has few enough values to list them."""

import numpy as np
from scipy import special

from .._sums.cells import Points
from .._types import AnyArray, FloatArray
from ..families.predictions import Predictions

__all__ = ["exact_tails", "listed_tails"]

_POINTS = 1 << 17  # of the support, at most
_SETS = 64  # of equal rows, at most
_ROWS = 1 << 20  # beyond it, listing the distinct predictions costs more than it gives


def exact_tails(predictions: Predictions, weight: AnyArray | None, observed: float) -> tuple[float, float] | None:
    """Return both tails of the weighted sum of ``log p(most likely) - log p(outcome)``.

    ``observed`` is that sum; the atom at it is in both tails. None where the sum has too many values to list.
    """
    if predictions.n > _ROWS:
        return None
    laws = _laws(predictions, weight)
    return None if laws is None else _convolved(laws, observed)


def _convolved(laws: list[tuple[FloatArray, FloatArray]], observed: float) -> tuple[float, float] | None:
    support, mass = np.zeros(1), np.ones(1)
    for values, probabilities in laws:
        if len(support) * len(values) > 8 * _POINTS:
            return None
        with np.errstate(over="ignore"):
            support = np.add.outer(support, values).ravel()
        mass = np.multiply.outer(mass, probabilities).ravel()
        support, mass = _pooled(support, mass)
        if len(support) > _POINTS:
            return None
    slack = 1e-9 * max(1.0, abs(observed))
    upper, lower = mass[support >= observed - slack].sum(), mass[support <= observed + slack].sum()
    return min(float(upper), 1.0), min(float(lower), 1.0)


def _pooled(support: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put values together that differ by rounding only."""
    order = support.argsort(kind="stable")
    support, mass = support[order], mass[order]
    with np.errstate(over="ignore", invalid="ignore"):
        new = np.concatenate([[True], np.diff(support) > 1e-11 * (1.0 + np.abs(support[1:]))])
    starts = np.flatnonzero(new)
    return support[starts], np.add.reduceat(mass, starts)


def _laws(predictions: Predictions, weight: AnyArray | None) -> list[tuple[FloatArray, FloatArray]] | None:
    """Return values and probabilities of the sum over each set of equal rows; None when there are too many sets."""
    if len(np.unique(predictions.gaps(slice(0, 1000)), axis=0)) > _SETS:
        return None  # the usual case, found without a look at all the rows
    gaps = np.concatenate([predictions.gaps(rows) for rows in predictions.row_blocks()])
    if gaps.shape[1] > 1 and len(gaps) > 64:
        return None
    if weight is not None:
        gaps = np.column_stack([np.asarray(weight, dtype=np.float64), gaps])
    distinct, count = np.unique(gaps, axis=0, return_counts=True)
    if len(distinct) > _SETS:
        return None
    found, points = [], 1.0
    for row, repeats in zip(distinct, count.tolist(), strict=True):
        scale, row = (float(row[0]), row[1:]) if weight is not None else (1.0, row)
        likely = row[np.isfinite(row)]
        law = _repeated(scale * likely, likely, repeats)
        if law is None:
            return None
        points *= len(law[0])
        found.append(law)
    return found if points <= 64 * _POINTS else None


def _repeated(values: FloatArray, gaps: FloatArray, repeats: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the law of the sum over ``repeats`` equal rows: no surprise, or one of ``values`` with odds exp(-gap)."""
    odds = np.exp(-gaps)
    if len(values) == 0:
        return np.zeros(1), np.ones(1)
    if len(values) == 1:
        log_q = -np.log1p(odds[0])
        log_p = log_q - gaps[0]
        k = np.arange(repeats + 1)
        log_mass = special.gammaln(repeats + 1) - special.gammaln(k + 1) - special.gammaln(repeats - k + 1)
        log_mass = log_mass + k * log_p + (repeats - k) * log_q
        keep = log_mass > -60.0  # what is left out weighs less than 1e-20 in all
        return k[keep] * values[0], np.exp(log_mass[keep])
    one_values = np.concatenate([[0.0], values])
    one_mass = np.concatenate([[1.0], odds]) / (1.0 + odds.sum())
    support, mass = np.zeros(1), np.ones(1)
    for _ in range(repeats):
        if len(support) * len(one_values) > 8 * _POINTS:
            return None
        with np.errstate(over="ignore"):
            support = np.add.outer(support, one_values).ravel()
        support, mass = _pooled(support, np.multiply.outer(mass, one_mass).ravel())
    return support, mass


def listed_tails(points: Points, observed: float) -> tuple[float, float] | None:
    """Return both tails of the weighted sum of surprises of two-class rows, as `exact_tails` does."""
    counts = np.rint(points.n)
    if (np.abs(points.n - counts) > 1e-6 * counts).any():
        return None  # a point stands for a part of a row: their values are not all known
    pairs = np.stack([_rounded(points.L), _rounded(points.w)], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    if len(distinct) > _SETS:
        return None
    repeats = np.bincount(index.reshape(-1), weights=counts).astype(np.int64)
    laws, size = [], 1.0
    for (L, w), count in zip(distinct.tolist(), repeats.tolist(), strict=True):
        law = _repeated(np.array([w * L]), np.array([L]), count)
        assert law is not None
        size *= len(law[0])
        laws.append(law)
    return _convolved(laws, observed) if size <= 64 * _POINTS else None


def _rounded(values: FloatArray) -> FloatArray:
    """Take away the last digits, in which equal values may differ after they were summed."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(mantissa.round(11), exponent))
