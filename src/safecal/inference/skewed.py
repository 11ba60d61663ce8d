"""Means of skewed data: Hall's transformation of the t statistic."""

import math
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from .._sums.summary import Summary
from .._types import FloatArray

__all__ = ["FEW", "Spread", "summary_spread"]

FEW = 200  # units below which each end is the wider of plain and corrected


def bent(g: float, skew: float) -> float:
    """Undo Hall's transformation, which removes the skewness of t: ``t + k t^2/3 + k^2 t^3/27 + k/6``; see Hall (1992).

    ``skew`` is the third central moment of the sum over the third power of its standard deviation.
    """
    if abs(skew) < 1e-6:
        return g
    return float(3.0 / skew * (np.cbrt(1.0 + skew * (g - skew / 6.0)) - 1.0))


class Spread(NamedTuple):
    """How a mean over independent units spreads: standard error, skewness over the root of their number."""

    error: float
    skew: float
    units: int

    @classmethod
    def of(cls, parts: FloatArray, largest: float) -> Self | None:
        """Read it off what each unit adds to the mean, centred; None for one unit."""
        if len(parts) < 2:
            return None
        scale = float(np.abs(parts).max())
        if scale <= 1e-13 * largest:  # all differences are the same
            return cls(0.0, 0.0, len(parts))
        parts = parts / scale
        square = float(np.dot(parts, parts))
        error = scale * math.sqrt(square * len(parts) / (len(parts) - 1))
        return cls(error, float((parts**3).sum()) / square**1.5, len(parts))

    def statistic(self, value: float) -> float:
        """Return the difference over its standard error; 0 where there is neither."""
        return value / self.error if self.error > 0.0 else 0.0

    def _straightened(self, t: float) -> float:
        """Return Hall's transformation of t."""
        k = self.skew
        return t + k * t * t / 3.0 + k * k * t**3 / 27.0 + k / 6.0

    def p_value(self, value: float) -> float:
        """Return the two-sided p-value of no difference."""
        t = self.statistic(value)
        forms = [self._straightened(t)] + ([t] if self.units < FEW else [])
        lower = max(float(special.stdtr(self.units - 1, g)) for g in forms)
        upper = max(float(special.stdtr(self.units - 1, -g)) for g in forms)
        return min(1.0, 2.0 * min(lower, upper))

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        q = float(special.stdtrit(self.units - 1, 0.5 * (1.0 + level)))
        high_t, low_t = bent(q, self.skew), bent(-q, self.skew)
        if self.units < FEW:
            high_t, low_t = max(high_t, q), min(low_t, -q)
        return value - high_t * self.error, value - low_t * self.error


def summary_spread(s: Summary) -> Spread | None:
    """Return how ECD spreads, from sums; None where there is no spread, or none that a float can hold."""
    if not math.isfinite(s.sum_excess3_weight3):
        return None
    mean = s.ecd_possible
    second = s.sum_excess2_weight2 - 2.0 * mean * s.sum_excess_weight2 + mean * mean * s.weight2
    third = s.sum_excess3_weight3 - 3.0 * mean * s.sum_excess2_weight3
    third += 3.0 * mean * mean * s.sum_excess_weight3 - mean * mean * mean * s.weight3
    if not second > 1e-14 * s.sum_excess2_weight2 or s.n < 2:
        return None
    return Spread(math.sqrt(second * s.n / (s.n - 1)) / s.weight, third / second / math.sqrt(second), s.n)
