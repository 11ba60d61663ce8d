"""Bounds of many keys at once, from their sums, at the level that is asked for: on ECD, and on the ratio of mistakes.

The formulas for ECD, for each key:

- a t bound on the mean excess, corrected for skewness by Hall's transformation; below `FEW` rows each end is the wider
  of plain and corrected;
- never narrower than the spread that the model itself claims, by quantiles of the Pearson III law: a row alone proves
  nothing;
- above, the Poisson bound where surprises are few. If surprises of one size ``L`` come at a small rate, the third
  cumulant over the variance is ``L`` and the variance over its square the number expected; the number seen follows, and
  with it the bound on a Poisson mean;
- below, not less than minus the mean entropy: no outcome of a classifier has a surprisal below 0.

Where rows come in clusters (`clustered_bounds` and below), the spread is that of `clustered`. Bounds are centred at the
ECD of their key. Above it, the spread around the bound itself counts as well, as in the test; and the bound is no lower
than the one that is corrected for skewness by Hall's transformation: a few clusters may hold most of the excess. The
ratio of mistakes follows the same rule, for sums of mistakes seen less mistakes announced times the ratio. What
yes-or-no outcomes would spread on their own is known from what was announced: at a ratio r, announced times r if rows
are independent; if those of a cluster move as one, at most its weight times as much.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from .._checks.columns import fraction
from .._sums.clusters import BASE, RARE
from .._sums.summary import COLUMN, Summary, as_sums
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from . import Interval
from .clustered import ClusterSums, Rarity, by_key, null_distance, of_pairs
from .law import FEW
from .tails import gamma_quantiles, pearson3_quantiles, t_quantiles

__all__ = [
    "Keys", "blocks", "bounds_by_key", "clustered_bounds", "clustered_interval", "clustered_ratios",
    "firm_and_weak_bounds", "firm_and_weak_ends", "interval_from_sums", "intervals_from_sums", "intervals_together",
    "mistakes_by_key",
]  # fmt: skip

_BLOCK = 65_536  # keys at a time, so that memory stays small beside the sums themselves
_SMALL = 100  # keys that are not worth sorting
_MANY = 1e6  # expected surprises from which a Poisson law is a normal one


def bounds_by_key(sums: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the ECD of each key, each of them missed with probability ``alpha`` at most.

    ``sums`` has a row for each key, as `safecal._sums.summary.summed` makes them. Keys without rows, or without
    weight, have NaN; those where an impossible outcome happened have infinity, twice.
    """
    low, high = ends_by_key(sums, (alpha, -1), (alpha, +1))
    return low, high


def firm_and_weak_bounds(sums: FloatArray, alpha: float, weaker: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `bounds_by_key`, and lower bounds missed with the probability ``weaker``."""
    low, high, at_least = ends_by_key(sums, (alpha, -1), (alpha, +1), (weaker, -1))
    return low, high, at_least


def ends_by_key(sums: FloatArray, *wanted: tuple[float, int]) -> list[FloatArray]:
    """Return bounds of each key, each by the probability that it may miss and its side, as `Keys.bounds` does."""
    if len(sums) <= _BLOCK:
        return Keys.of(sums).bounds(*wanted)
    parts = [Keys.of(sums[rows]).bounds(*wanted) for rows in blocks(len(sums))]
    return [np.concatenate(ends) for ends in zip(*parts, strict=True)]


def intervals_together(sums: FloatArray, level: float) -> tuple[Interval, ...]:
    """Return an interval for each key, from its sums, at the level that makes all hold together (Bonferroni)."""
    alpha = (1.0 - fraction(level, "level")) / 2.0 / max(int(np.count_nonzero(sums[:, COLUMN["n"]])), 1)
    return _intervals(sums, alpha, 1.0 - 2.0 * alpha)


def intervals_from_sums(sums: FloatArray, level: float) -> tuple[Interval, ...]:
    """Return an interval for each key, from its sums, each of which holds by itself at ``level``."""
    return _intervals(sums, (1.0 - level) / 2.0, level)


def interval_from_sums(summary: Summary, level: float) -> Interval:
    """Return ECD with its interval, from sums alone."""
    return intervals_from_sums(as_sums([summary]), level)[0]


def blocks(count: int) -> list[slice]:
    """Return keys a few at a time."""
    return [slice(start, start + _BLOCK) for start in range(0, count, _BLOCK)]


def _intervals(sums: FloatArray, alpha: float, level: float) -> tuple[Interval, ...]:
    intervals = []
    for rows in blocks(len(sums)):
        keys = Keys.of(sums[rows])
        bounds = keys.bounds((alpha, -1), (alpha, +1))
        ends = (x.tolist() for x in (keys.ecd, *bounds, keys.method()))
        intervals += [Interval(value, low, high, level, method) for value, low, high, method in zip(*ends, strict=True)]
    return tuple(intervals)


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
    smallest_ecd: FloatArray  # no ECD lies below; NaN where there is no such limit

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
            smallest_ecd = np.where(np.isnan(column("sum_predicted")), np.nan, -column("sum_entropy") / weight)
        impossible = column("weight_impossible") > 0.0
        ecd = np.where(impossible, math.inf, mean)
        variance, numerical = column("sum_varentropy_weight2"), column("sum_numerical_variance_weight2")
        cumulant = column("sum_third_cumulant_weight3")
        return cls(n, weight, impossible, ecd, error, skew, excess, variance, numerical, cumulant, smallest_ecd)

    def take(self, keys: IndexArray) -> "Keys":
        """Return some of the keys."""
        return Keys._make(column[keys] for column in self)

    def bounds(self, *wanted: tuple[float, int], cautious: int | None = None) -> list[FloatArray]:
        """Return bounds, each by the probability that it may miss and its side: -1 for a lower one, +1 for an upper.

        Below ``cautious`` rows, by default `FEW`, each end is the wider of plain and corrected.
        """
        up = np.array([[-float(side)] for _, side in wanted])  # of the deviation that a bound allows for
        with np.errstate(all="ignore"):
            quantile = {alpha: _t_quantile(self.n, alpha) for alpha, _ in wanted}
            t = up * np.array([quantile[alpha] for alpha, _ in wanted])
            reach = undo_hall_by_key(t, self.skew)
            few_rows = self.n < (FEW if cautious is None else cautious)
            if few_rows.any():
                reach = np.where(few_rows, up * np.maximum(up * reach, up * t), reach)
            reach = np.where(self.error > 0.0, reach * self.error, 0.0)
            bounds = self.ecd - reach
            spread = np.where(self.variance > 0.0, self.variance + self.numerical, np.nan)
            tails = [(alpha, side < 0) for alpha, side in wanted]
            claimed = pearson3_quantiles(tails, spread, self.third, np.abs(reach) * self.weight)
            bounds = up * np.fmin(up * bounds, up * (self.ecd - claimed / self.weight))
            ends = [np.fmax(row, self._poisson_bound(alpha) if side > 0 else self.smallest_ecd)
                    for row, (alpha, side) in zip(bounds, wanted, strict=True)]  # fmt: skip
        # Infinity where an impossible outcome happened, and NaN where there is nothing to bound.
        unknown = self.impossible | np.isnan(self.ecd)
        return [np.where(unknown, self.ecd, bound) for bound in ends] if unknown.any() else ends

    def _poisson_bound(self, alpha: float) -> FloatArray:
        """Return the Poisson bound; NaN where surprises are many, or of no size."""
        poisson_bounds = np.full(len(self.n), np.nan)
        size = self.third / self.variance
        expected = self.variance / size / size
        rare = np.flatnonzero((self.variance > 0.0) & (self.third > 0.0) & (expected < _MANY))
        size, expected = size[rare], expected[rare]
        seen = np.maximum(self.excess[rare] / size + expected, 0.0)
        most_surprises = gamma_quantiles(alpha, seen + 1.0, upper=True)
        poisson_bounds[rare] = (most_surprises - expected) * size / self.weight[rare]
        return poisson_bounds

    def method(self) -> AnyArray:
        """Say of each key how its bounds are made, as an array of text."""
        cases = [self.n == 0.0, self.impossible, self.error == 0.0]
        words = ["no rows", "an impossible outcome happened", "no spread, from sums"]
        return np.select(cases, words, "skewness-corrected t, from sums")


def _t_quantile(n: FloatArray, alpha: float) -> FloatArray:
    if len(n) < _SMALL:
        return t_quantiles(alpha, np.maximum(n - 1.0, 1.0))
    distinct_n, place = np.unique(n, return_inverse=True)  # many keys have as many rows as others
    return np.asarray(t_quantiles(alpha, np.maximum(distinct_n - 1.0, 1.0))[place])


def undo_hall_by_key(g: FloatArray, skew: FloatArray) -> FloatArray:
    """Undo Hall's transformation of t; see `law.undo_hall`."""
    return np.where(np.abs(skew) < 1e-6, g, 3.0 / skew * (np.cbrt(1.0 + skew * (g - skew / 6.0)) - 1.0))


class Ends(NamedTuple):
    """Bounds, one a key: infinite where clusters are too few to tell, NaN where there are no rows."""

    low: FloatArray
    high: FloatArray


def clustered_bounds(
    key: IndexArray, cluster: IndexArray, sums: FloatArray, size: int, alpha: float, *, rarity: Rarity | None = None
) -> Ends:
    """Return bounds on the ECD of each key, each of them missed with probability ``alpha`` at most.

    ``key`` and ``cluster`` are the numbers of those that each row of ``sums`` belongs to, and ``size`` is how many keys
    there are. Sums by cluster and key are as `Pairs` holds them; rows of the same pair add up. How rare surprises are,
    for each key, is by default bounded by the sums. Bounds are of the possible rows: an impossible outcome makes ECD
    infinite, which these do not say.
    """
    key, sums = of_pairs(key, cluster, sums)
    rarity = _rarity_by_key(key, sums, size) if rarity is None else rarity
    return _cluster_ends(sums, key, size, (alpha,), rarity)[0]


def _rarity_by_key(key: IndexArray, sums: FloatArray, size: int) -> Rarity:
    """Bound how rare surprises are by the sums of each key."""
    columns = [by_key(sums[:, len(BASE) + k], key, size) for k in range(len(RARE))]
    return Rarity.of(np.stack(columns, axis=1), by_key(sums[:, BASE.index("deviation")], key, size))


def firm_and_weak_ends(
    key: IndexArray, sums: FloatArray, size: int, alpha: float, weaker: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `clustered_bounds` of pairs that come once each, and lower bounds missed with probability ``weaker``."""
    firm, weak = _cluster_ends(sums, key, size, (alpha, weaker), _rarity_by_key(key, sums, size))
    return firm.low, firm.high, weak.low


def clustered_interval(sums: FloatArray, alpha: float, rarity: Rarity, times: float = 1.0) -> tuple[float, float]:
    """Return both bounds on the ECD of all rows, from the sums of their clusters."""
    ((low, high),) = _cluster_ends(sums, np.zeros(len(sums), dtype=np.intp), 1, (alpha,), rarity, times)
    return float(low[0]), float(high[0])


def _cluster_ends(
    sums: FloatArray, key: IndexArray, size: int, alphas: Sequence[float], rarity: Rarity, times: float = 1.0
) -> list[Ends]:
    """Return the bounds at each level, from the sums of `BASE` by cluster and key."""
    column = {name: np.ascontiguousarray(sums[:, k]) for k, name in enumerate(BASE)}
    weight, excess = column["weight"], column["excess"]
    with np.errstate(all="ignore"):
        whole = by_key(weight, key, size)
        mean = by_key(excess, key, size) / whole
        m = mean[key]
        # In units of the mean weight of a key, so that no fourth power leaves the range of floats.
        unit = (whole / by_key(column["n"], key, size))[key]
        centred, w = (excess - m * weight) / unit, weight / unit
        square = column["square"] - 2.0 * m * column["excess_weight2"] + m * m * column["weight2"]
        cluster_sums = ClusterSums.of(
            centred, column["variance"] / unit**2, column["deviation"] / unit,
            np.maximum(square, 0.0) / unit**2, key, size,
        ).times(times)  # fmt: skip
        skew = by_key(centred * centred * centred, key, size) / by_key(centred * centred, key, size) ** 1.5
        skew /= math.sqrt(times)
        mass, mass2, mixed = (times * by_key(x, key, size) for x in (w, w * w, centred * w))
        enough = np.isfinite(cluster_sums.freedom)
        # Every row a toss or a certainty: nothing can vary.
        flat = (cluster_sums.own == 0.0) & (cluster_sums.squares == 0.0)
        ends = []
        for alpha in alphas:
            t = -special.stdtrit(cluster_sums.freedom, alpha)
            down = t * np.sqrt(cluster_sums.above(rarity)) / mass
            up = t * np.sqrt(cluster_sums.below(rarity)) / mass
            up = np.fmax(up, -undo_hall_by_key(-t, skew) * np.sqrt(cluster_sums.seen()) / mass)
            up = np.fmax(up, null_distance(mass, t, mass2, mixed, cluster_sums.squares))
            low, high = mean - np.where(enough, down, math.inf), mean + np.where(enough, up, math.inf)
            ends.append(Ends(np.where(flat, mean, low), np.where(flat, mean, high)))
    return ends


def mistakes_by_key(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mistakes that were made and announced under each key; NaN for states and densities."""
    weight = sums[:, COLUMN["weight"]]
    made = weight - sums[:, COLUMN["sum_correct"]]
    return np.maximum(made, 0.0), np.maximum(weight - sums[:, COLUMN["sum_confidence"]], 0.0)


def clustered_ratios(
    key: IndexArray, cluster: IndexArray, sums: FloatArray, size: int, alpha: float, *, times: float = 1.0
) -> Ends:
    """Return bounds on the ratio of mistakes of each key, each of them missed with probability ``alpha`` at most.

    The arguments are those of `clustered_bounds`, but ``sums`` may be those of `Clusters`, too; bounds are for so many
    ``times`` as many clusters of this kind. They are 0 and infinity where clusters are too few to tell, and NaN for
    states.
    """
    key, sums = of_pairs(key, cluster, sums)
    column = {name: np.ascontiguousarray(sums[:, k]) for k, name in enumerate(BASE)}
    with np.errstate(all="ignore"):
        unit = (by_key(column["weight"], key, size) / by_key(column["n"], key, size))[key]
        weight, seen, announced = (column[name] / unit for name in ("weight", "seen", "announced"))
        whole = by_key(announced, key, size)
        ratio = by_key(seen, key, size) / whole
        chance = np.clip(whole / by_key(weight, key, size) * np.maximum(ratio, 1.0), 0.0, 1.0)
        r, q = ratio[key], np.where(weight > 0.0, announced / weight, 0.0)
        heavy = np.where(weight > 0.0, column["weight2"] / unit**2 / weight, 0.0)  # a typical row of the cluster
        own = heavy * announced * np.maximum(1.0 - r * q, 0.0)
        square = heavy * np.maximum(seen * (1.0 - 2.0 * r * q) + r * r * announced * q, 0.0)
        centred = seen - r * announced
        moved = np.sqrt(np.maximum(weight * announced, own))
        cluster_sums = ClusterSums.of(centred, own, moved, square, key, size).times(times)
        mass, mass2, mixed = (
            times * by_key(x, key, size) for x in (announced, announced * announced, centred * announced)
        )
        t = -special.stdtrit(cluster_sums.freedom, alpha)
        spread = t * np.sqrt(cluster_sums.seen()) / mass
        down = _distance(ratio, mass, t, cluster_sums.floor(1.0 - chance))
        up = _distance(ratio, mass, t, cluster_sums.floor(chance))
        root = null_distance(mass, t, mass2, mixed, cluster_sums.squares)
        enough = np.isfinite(cluster_sums.freedom)
        low = np.where(enough, np.maximum(ratio - np.fmax(down[0], spread), 0.0), 0.0)
        high = np.where(enough, ratio + np.fmax(np.fmax(up[1], spread), root), math.inf)
    unknown = np.isnan(ratio)
    return Ends(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def _distance(ratio: FloatArray, mass: FloatArray, t: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the d at which ``d * mass`` is t times the root of the variance at ``ratio - d``, and at ``ratio + d``."""
    half = t * t * floor / (2.0 * mass * mass)
    root = np.sqrt(half * half + 2.0 * half * ratio)
    return root - half, root + half
