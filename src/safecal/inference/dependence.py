"""How sums over clusters spread where rows of a cluster may share a shock, and the bounds on ECD that follow.

One number a key in each array. A t on the sums of clusters is wrong where clusters are few: while the shock has not
come, all of them look alike. So each side has a variance that no luck makes small.

- ``V`` is the variance of a sum if the rows of its cluster are independent, ``C`` that if they move as one; then
  ``(sum C)**2 / sum C**2`` is how many equal clusters these are worth, and one less the degrees of freedom.
- The correlation within clusters is read off products of rows, over what they would be if rows moved as one: by the
  model, and by the squares that were seen, whichever makes it larger; plus two standard errors. By the model alone it
  is too small whenever shocks were too few by chance, which is when it matters.
- It is taken for 1 where fewer than `EXPECTED` clusters are expected to show the rarer kind of outcome, if they move as
  one. What was seen does not matter for that: a shock hides well among rows that surprise one by one.
- Too small a sum is rare where surprises are: below, the rarer outcome is a surprise, and the variance is never less
  than the sum of squares around the mean that is tested. Above, it is that nothing surprises.

Bounds are centred at the ECD of their key. Above it, the spread around the bound itself counts as well, as in the test;
and the bound is no lower than the one that is corrected for skewness by Hall's transformation: a few clusters may hold
most of the excess.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from .._checks.columns import numbered
from .._sums.clusters import BASE, RARE, added_by
from .._types import FloatArray, IndexArray
from .sum_bounds import undo_hall_by_key

__all__ = [
    "ALIKE",
    "Ends",
    "Rarity",
    "Sums",
    "by_key",
    "clustered_bounds",
    "clustered_interval",
    "firm_and_weak_ends",
    "null_distance",
    "of_pairs",
    "rarest_half",
]

EXPECTED = 5.0
ENOUGH = 1.5  # equal clusters, below which nothing is said


class Rarity(NamedTuple):
    """How probable a surprise is, and that nothing surprises, where either is rarest: half of all deviations each."""

    surprise: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, deviation: FloatArray) -> Self:
        """Bound them from below by the sums of `RARE`, of shape (keys, 4), and those of the deviations.

        In the half of a distribution where a root is smallest its mean lies above the whole mean less one standard
        deviation; and a mean square is at least a squared mean.
        """
        with np.errstate(all="ignore"):
            mean = sums / np.reshape(deviation, (-1, 1))
            spread = np.sqrt(np.maximum(mean[:, 0::2] - mean[:, 1::2] ** 2, 0.0))
            found = np.maximum(mean[:, 1::2] - spread, 0.0) ** 2
        return cls(*np.nan_to_num(found, nan=1.0).T)


ALIKE = Rarity(np.ones(1), np.ones(1))  # states and densities: each cluster shows what it is


def rarest_half(chance: FloatArray, deviation: FloatArray) -> float:
    """Return the mean chance, weighted by deviations, of the rows with the smallest that hold half of these."""
    order = np.argsort(chance, kind="stable")
    weight = deviation[order]
    reached = np.cumsum(weight)
    half = 0.5 * float(reached[-1]) if len(reached) else 0.0
    if not half > 0.0:
        return 1.0
    weight = np.clip(half - (reached - weight), 0.0, weight)
    return float(weight @ chance[order]) / half


class Sums(NamedTuple):
    """Sums over the clusters of each key, with ``S`` the sum of a cluster, less what is expected of it."""

    clusters: FloatArray  # that can tell something
    total: FloatArray  # of S
    squares: FloatArray  # of S**2
    own: FloatArray  # of V
    shared: FloatArray  # of C - V
    effective: FloatArray  # equal clusters that these are worth
    correlation: FloatArray  # of shape (2, keys): by the model's squares, and by those seen
    error: FloatArray  # their standard errors

    @classmethod
    def of(
        cls, sums: FloatArray, variance: FloatArray, deviation: FloatArray, square: FloatArray,
        key: IndexArray | None = None, size: int = 1,
    ) -> Self:  # fmt: skip
        """Add up clusters: their sums S and V, of deviations (the roots of C), and of squared excess."""

        def by_key(column: FloatArray) -> FloatArray:
            if key is None:
                return np.asarray(column.sum(keepdims=True))
            return np.asarray(np.bincount(key, weights=column, minlength=size), dtype=np.float64)

        def of_key(column: FloatArray) -> FloatArray:
            return column if key is None else column[key]

        with np.errstate(all="ignore"):
            count = by_key(((deviation > 0.0) | (sums != 0.0)).astype(np.float64))
            share = deviation / of_key(by_key(deviation))  # so that no fourth power leaves the range of floats
            share *= share
            effective = by_key(share) ** 2 / by_key(share * share)
            effective = np.where(np.isfinite(effective), effective, count)
            shared = np.maximum(deviation**2 - variance, 0.0)
            seen = np.where(variance > 0.0, shared / variance * square, 0.0)
            products = sums**2 - square
            found = []
            for whole in (shared, seen):
                together = by_key(whole)
                correlation = np.where(together > 0.0, by_key(products) / together, 0.0)
                rest = by_key((products - of_key(correlation) * whole) ** 2)
                error = np.where(together > 0.0, np.sqrt(rest * count / (count - 1.0)) / together, 0.0)
                found.append((correlation, error))
            both, errors = (np.stack(x) for x in zip(*found, strict=True))
        total, squares, own, together = (by_key(x) for x in (sums, sums**2, variance, shared))
        return cls(count, total, squares, own, together, effective, both, errors)

    def times(self, factor: float) -> Self:
        """Return what so many times as many clusters of this kind would give."""
        many = {name: getattr(self, name) * factor for name in self._fields[:6]}
        return self._replace(**many, error=self.error / np.sqrt(factor))

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom; NaN where clusters are too few to tell anything."""
        return np.where((self.effective >= ENOUGH) & (self.clusters >= 2.0), self.effective - 1.0, np.nan)

    def above(self, rarity: Rarity) -> FloatArray:
        """Return the variance that the sum has at least, for tails above."""
        return np.fmax(self.seen(), self.floor(rarity.rest))

    def below(self, rarity: Rarity) -> FloatArray:
        """Return the same for tails below."""
        return np.fmax(np.fmax(self.seen(), self.squares), self.floor(rarity.surprise))

    def seen(self) -> FloatArray:
        """Return the variance that the clusters themselves show."""
        with np.errstate(all="ignore"):
            centred = np.maximum(self.squares - self.total**2 / self.clusters, 0.0)
            return centred * self.clusters / (self.clusters - 1.0)

    def floor(self, chance: FloatArray) -> FloatArray:
        """Return the variance that there must be, where the rarer outcome has so large a chance."""
        with np.errstate(over="ignore", invalid="ignore"):
            likely = self.correlation + 2.0 * self.error
        likely = np.clip(np.where(np.isfinite(likely), likely, 1.0).max(axis=0), 0.0, 1.0)
        return self.own + np.where(self.effective * chance < EXPECTED, 1.0, likely) * self.shared

    def tails(self, rarity: Rarity) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return t, and the probabilities of a sum as large, and of one as small."""
        t = [_ratio(self.total, variance) for variance in (self.above(rarity), self.below(rarity))]
        df = self.freedom
        told = np.isfinite(df)
        df = np.where(told, df, 1.0)
        upper, lower = special.stdtr(df, -t[0]), special.stdtr(df, t[1])
        return np.where(self.total > 0.0, *t), np.where(told, upper, 1.0), np.where(told, lower, 1.0)


def _ratio(total: FloatArray, variance: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.where(total == 0.0, 0.0, total / np.sqrt(variance))


class Ends(NamedTuple):
    """Bounds, one a key: infinite where clusters are too few to tell, NaN where there are no rows."""

    low: FloatArray
    high: FloatArray


def clustered_bounds(
    key: IndexArray, cluster: IndexArray, sums: FloatArray, size: int, alpha: float, *, rarity: Rarity | None = None
) -> Ends:
    """Return bounds on the ECD of each key, each of them missed with probability ``alpha`` at most.

    Parameters
    ----------
    key, cluster : ndarray of shape (rows,)
        Numbers of the key and of the cluster that each row of ``sums`` belongs to. Rows of the same pair add up.
    sums : ndarray of shape (rows, 14)
        Sums by cluster and key, as `Pairs` holds them.
    size : int
        How many keys there are.
    alpha : float
        Accepted probability of a miss, for each end.
    rarity : Rarity, optional
        How rare surprises are, for each key. By default it is bounded by the sums.

    Returns
    -------
    Ends
        ``low`` and ``high``, of the possible rows: an impossible outcome makes ECD infinite, which these do not say.
    """
    key, sums = of_pairs(key, cluster, sums)
    rarity = _rarity(key, sums, size) if rarity is None else rarity
    return _ends(sums, key, size, (alpha,), rarity)[0]


def _rarity(key: IndexArray, sums: FloatArray, size: int) -> Rarity:
    """Bound how rare surprises are by the sums of each key."""
    columns = [by_key(sums[:, len(BASE) + k], key, size) for k in range(len(RARE))]
    return Rarity.of(np.stack(columns, axis=1), by_key(sums[:, BASE.index("deviation")], key, size))


def firm_and_weak_ends(
    key: IndexArray, sums: FloatArray, size: int, alpha: float, weaker: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `clustered_bounds` of pairs that come once each, and lower bounds missed with probability ``weaker``."""
    firm, weak = _ends(sums, key, size, (alpha, weaker), _rarity(key, sums, size))
    return firm.low, firm.high, weak.low


def clustered_interval(sums: FloatArray, alpha: float, rarity: Rarity, times: float = 1.0) -> tuple[float, float]:
    """Return both bounds on the ECD of all rows, from the sums of their clusters."""
    ((low, high),) = _ends(sums, np.zeros(len(sums), dtype=np.intp), 1, (alpha,), rarity, times)
    return float(low[0]), float(high[0])


def _ends(
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
        found = Sums.of(
            centred, column["variance"] / unit**2, column["deviation"] / unit,
            np.maximum(square, 0.0) / unit**2, key, size,
        ).times(times)  # fmt: skip
        skew = by_key(centred * centred * centred, key, size) / by_key(centred * centred, key, size) ** 1.5
        skew /= math.sqrt(times)
        mass, mass2, mixed = (times * by_key(x, key, size) for x in (w, w * w, centred * w))
        told = np.isfinite(found.freedom)
        flat = (found.own == 0.0) & (found.squares == 0.0)  # every row a toss or a certainty: nothing can vary
        ends = []
        for alpha in alphas:
            t = -special.stdtrit(found.freedom, alpha)
            down = t * np.sqrt(found.above(rarity)) / mass
            up = t * np.sqrt(found.below(rarity)) / mass
            up = np.fmax(up, -undo_hall_by_key(-t, skew) * np.sqrt(found.seen()) / mass)
            up = np.fmax(up, null_distance(mass, t, mass2, mixed, found.squares))
            low, high = mean - np.where(told, down, math.inf), mean + np.where(told, up, math.inf)
            ends.append(Ends(np.where(flat, mean, low), np.where(flat, mean, high)))
    return ends


def of_pairs(key: IndexArray, cluster: IndexArray, sums: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Add up rows of the same pair of key and cluster; return the key of each, and its sums."""
    width = int(key.max(initial=0)) + 1
    pairs, index = numbered(cluster.astype(np.int64) * width + key)
    if len(pairs) == len(key):
        return key, sums
    return (pairs % width).astype(np.intp), added_by(index, len(pairs), list(sums.T))


def null_distance(
    mass: FloatArray, t: FloatArray, mass2: FloatArray, mixed: FloatArray, squares: FloatArray
) -> FloatArray:
    """Return the d at which ``d * mass`` is t times the root of the sum of ``(S - d * m)**2``, or infinity.

    Given are the sums of m, of ``m**2``, of ``S * m`` and of ``S**2``.
    """
    a, b = mass**2 - t * t * mass2, t * t * mixed
    return np.where(a > 0.0, (-b + np.sqrt(b * b + a * t * t * squares)) / a, math.inf)


def by_key(column: FloatArray, key: IndexArray, size: int) -> FloatArray:
    """Sum a column by key."""
    return np.asarray(np.bincount(key, weights=column, minlength=size), dtype=np.float64)
