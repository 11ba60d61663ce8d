"""Bounds on the ECD of many keys at once, from their sums, at the level that is asked for.

The formulas, for each key:

- a t bound on the mean excess, corrected for skewness by Hall's transformation; below `FEW` rows each end is the wider
  of plain and corrected;
- never narrower than the spread that the model itself claims, by quantiles of the Pearson III law: a row alone proves
  nothing;
- above, the Poisson bound where surprises are few. If surprises of one size ``L`` come at a small rate, the third
  cumulant over the variance is ``L`` and the variance over its square the number expected; the number seen follows, and
  with it the bound on a Poisson mean;
- below, not less than minus the mean entropy: no outcome of a classifier has a surprisal below 0.
"""

import math
from typing import NamedTuple

import numpy as np

from .._checks.columns import fraction
from .._sums.summary import COLUMN, Summary, as_sums
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .results import Interval
from .skewed import FEW
from .tails import gamma_quantiles, pearson3_quantiles, t_quantiles

__all__ = [
    "Keys",
    "bent",
    "blocks",
    "bounds_by_key",
    "firm_and_weak_bounds",
    "interval_from_sums",
    "intervals_from_sums",
    "intervals_together",
]

_BLOCK = 65_536  # keys at a time, so that memory stays small beside the sums themselves
_SMALL = 100  # keys that are not worth sorting
_MANY = 1e6  # expected surprises from which a Poisson law is a normal one


def bounds_by_key(sums: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the ECD of each key, each of them missed with probability ``alpha`` at most.

    ``sums`` has a row for each key, as `safecal._sums.summary.summed` makes them. Keys without rows, or without
    weight, have NaN; those where an impossible outcome happened have infinity, twice.
    """
    low, high = np.empty(len(sums)), np.empty(len(sums))
    for rows in blocks(len(sums)):
        low[rows], high[rows] = Keys.of(sums[rows]).bounds((alpha, -1), (alpha, +1))
    return low, high


def firm_and_weak_bounds(sums: FloatArray, alpha: float, weaker: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `bounds_by_key`, and lower bounds missed with the probability ``weaker``."""
    found = np.empty((3, len(sums)))
    for rows in blocks(len(sums)):
        found[:, rows] = Keys.of(sums[rows]).bounds((alpha, -1), (alpha, +1), (weaker, -1))
    return found[0], found[1], found[2]


def intervals_together(sums: FloatArray, level: float) -> tuple[Interval, ...]:
    """Return an interval for each key, from its sums, at the level that makes all hold together (Bonferroni)."""
    alpha = _each(sums, fraction(level, "level"))
    return _intervals(sums, alpha, 1.0 - 2.0 * alpha)


def intervals_from_sums(sums: FloatArray, level: float) -> tuple[Interval, ...]:
    """Return an interval for each key, from its sums, each of which holds by itself at ``level``."""
    return _intervals(sums, (1.0 - level) / 2.0, level)


def interval_from_sums(summary: Summary, level: float) -> Interval:
    """Return ECD with its interval, from sums alone."""
    return intervals_from_sums(as_sums([summary]), level)[0]


def _each(sums: FloatArray, level: float) -> float:
    """Return with what probability each end may miss, so that all intervals hold together."""
    return (1.0 - level) / 2.0 / max(int(np.count_nonzero(sums[:, COLUMN["n"]])), 1)


def blocks(count: int) -> list[slice]:
    """Return keys a few at a time."""
    return [slice(start, start + _BLOCK) for start in range(0, count, _BLOCK)]


def _intervals(sums: FloatArray, alpha: float, level: float) -> tuple[Interval, ...]:
    found = []
    for rows in blocks(len(sums)):
        keys = Keys.of(sums[rows])
        bounds = keys.bounds((alpha, -1), (alpha, +1))
        ends = (x.tolist() for x in (keys.ecd, *bounds, keys.method()))
        found += [Interval(value, low, high, level, method) for value, low, high, method in zip(*ends, strict=True)]
    return tuple(found)


class Keys(NamedTuple):
    """What the bounds of some keys are made of, one number a key in each array."""

    n: FloatArray
    weight: FloatArray
    impossible: BoolArray  # whether an outcome of probability 0 happened
    ecd: FloatArray
    error: FloatArray  # standard error of ECD; 0 where there is no spread, or none that a float can hold
    skew: FloatArray  # skewness over the root of the rows
    excess: FloatArray
    variance: FloatArray  # that the model claims
    numerical: FloatArray  # variance from draws
    third: FloatArray
    least: FloatArray  # no ECD lies below; NaN where there is no such limit

    @classmethod
    def of(cls, sums: FloatArray) -> "Keys":
        """Read them off the sums."""

        def column(name: str) -> FloatArray:
            return sums[:, COLUMN[name]]

        n, weight, excess = column("n"), column("weight"), column("sum_excess")
        square, cube, w3 = column("sum_excess2_weight2"), column("sum_excess3_weight3"), column("weight3")
        with np.errstate(all="ignore"):  # empty keys divide by 0, and sums may overflow
            mean = excess / weight
            second = square - 2.0 * mean * column("sum_excess_weight2") + mean**2 * column("weight2")
            third = cube - 3.0 * mean * column("sum_excess2_weight3")
            third += 3.0 * mean**2 * column("sum_excess_weight3") - mean**3 * w3
            spread = np.isfinite(cube) & (second > 1e-14 * square) & (n >= 2.0)
            error = np.where(spread, np.sqrt(second * n / (n - 1.0)) / weight, 0.0)
            # Not over second**1.5, which is 0 for spreads that a float can still hold.
            skew = np.where(error > 0.0, third / second / np.sqrt(second), 0.0)
            least = np.where(np.isnan(column("sum_predicted")), np.nan, -column("sum_entropy") / weight)
        impossible = column("weight_impossible") > 0.0
        ecd = np.where(impossible, math.inf, mean)
        variance, numerical = column("sum_varentropy_weight2"), column("sum_numerical_variance_weight2")
        cumulant = column("sum_third_cumulant_weight3")
        return cls(n, weight, impossible, ecd, error, skew, excess, variance, numerical, cumulant, least)

    def take(self, keys: IndexArray) -> "Keys":
        """Return some of the keys."""
        return Keys._make(column[keys] for column in self)

    def bounds(self, *wanted: tuple[float, int]) -> list[FloatArray]:
        """Return bounds, each by the probability that it may miss and its side: -1 for a lower one, +1 for an upper."""
        up = np.array([[-float(side)] for _, side in wanted])  # of the deviation that a bound allows for
        with np.errstate(all="ignore"):
            quantile = {alpha: _t_quantile(self.n, alpha) for alpha, _ in wanted}
            t = up * np.stack([quantile[alpha] for alpha, _ in wanted])
            reach = bent(t, self.skew)
            few = self.n < FEW
            if few.any():
                reach = np.where(few, up * np.maximum(up * reach, up * t), reach)
            found = self.ecd - np.where(self.error > 0.0, reach * self.error, 0.0)
            spread = np.where(self.variance > 0.0, self.variance + self.numerical, np.nan)
            claimed = pearson3_quantiles([(alpha, side < 0) for alpha, side in wanted], spread, self.third)
            found = up * np.fmin(up * found, up * (self.ecd - claimed / self.weight))
            ends = [np.fmax(row, self._rare(alpha) if side > 0 else self.least)
                    for row, (alpha, side) in zip(found, wanted, strict=True)]  # fmt: skip
        # Infinity where an impossible outcome happened, and NaN where there is nothing to bound.
        unknown = self.impossible | np.isnan(self.ecd)
        return [np.where(unknown, self.ecd, bound) for bound in ends] if unknown.any() else ends

    def _rare(self, alpha: float) -> FloatArray:
        """Return the Poisson bound; NaN where surprises are many, or of no size."""
        found = np.full(len(self.n), np.nan)
        size = self.third / self.variance
        expected = self.variance / size / size
        some = np.flatnonzero((self.variance > 0.0) & (self.third > 0.0) & (expected < _MANY))
        size, expected = size[some], expected[some]
        seen = np.maximum(self.excess[some] / size + expected, 0.0)
        most = gamma_quantiles(alpha, seen + 1.0, upper=True)
        found[some] = (most - expected) * size / self.weight[some]
        return found

    def method(self) -> AnyArray:
        """Say of each key how its bounds are made, as an array of text."""
        cases = [self.n == 0.0, self.impossible, self.error == 0.0]
        words = ["no rows", "an impossible outcome happened", "no spread, from sums"]
        return np.select(cases, words, "skewness-corrected t, from sums")


def _t_quantile(n: FloatArray, alpha: float) -> FloatArray:
    if len(n) < _SMALL:
        return t_quantiles(alpha, np.maximum(n - 1.0, 1.0))
    few, place = np.unique(n, return_inverse=True)  # many keys have as many rows as others
    return np.asarray(t_quantiles(alpha, np.maximum(few - 1.0, 1.0))[place])


def bent(g: FloatArray, skew: FloatArray) -> FloatArray:
    """Undo Hall's transformation of t: see `safecal.inference.skewed.bent`."""
    return np.where(np.abs(skew) < 1e-6, g, 3.0 / skew * (np.cbrt(1.0 + skew * (g - skew / 6.0)) - 1.0))
