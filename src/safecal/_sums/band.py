"""Where the observed shares of a calibrated model lie."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from .._types import FloatArray
from .summary import Summary

__all__ = ["binomial_band", "consistency_band", "effective_rows"]


def effective_rows(s: Summary) -> int:
    """Return how many rows of equal weight tell as much: rounded down, at least one; 0 when there are none.

    It is ``weight**2 / weight2``. Squared weights are summed over the possible rows only; the others count as they do.
    """
    if s.weight == 0.0:
        return 0
    possible = s.weight - s.weight_impossible
    if possible <= 0.0 or s.weight2 == 0.0:
        return s.n
    found = s.weight * possible / s.weight2
    return min(max(math.floor(found * (1.0 + 1e-12)), 1), s.n)


def consistency_band(
    summaries: Sequence[Summary], predicted: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of the observed share of each summary, if the model is calibrated; NaN where it is empty.

    They are those of a binomial law with as many rows, each at the mean prediction. Predictions that differ within a
    bin vary less than that, so the band is slightly wide.
    """
    low, high = np.full((2, len(summaries)), np.nan)
    rows = np.array([effective_rows(s) for s in summaries], dtype=np.float64)
    full = rows > 0.0
    low[full], high[full] = binomial_band(np.clip(predicted[full], 0.0, 1.0), rows[full], level)
    return low, high


def binomial_band(p: FloatArray, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the central range of the share of successes in so many tosses, exactly."""
    tail = (1.0 - level) / 2.0
    low, high = (_quantile(q, rows, p) for q in (tail, 1.0 - tail))
    return low / rows, high / rows


def _quantile(probability: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the smallest number of successes whose cumulative probability is large enough, by halving."""
    below, found = np.full(n.shape, -1.0), n.copy()
    while (found - below > 1.0).any():
        middle = np.floor((below + found) / 2.0)
        enough = special.bdtr(middle, n.astype(np.intp), p) >= probability
        below, found = np.where(enough, below, middle), np.where(enough, middle, found)
    return found
