"""Bounds on the ECD of many keys at once, where rows come in clusters.

Sums of clusters are centred at the ECD of their key. Above it, the spread around the bound itself counts as well, as in
the test of `dependence`; and the bound is no lower than the one that is corrected for skewness by Hall's
transformation: a few clusters may hold most of the excess.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .._sums.clusters import BASE, RARE, added_by
from .._types import FloatArray, IndexArray
from .dependence import Rarity, Sums
from .keyed import bent

__all__ = ["Ends", "by_key", "clustered_bounds", "clustered_interval", "firm_and_weak_ends", "null_distance",
           "of_pairs"]  # fmt: skip


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
    return _ends(sums[:, : len(BASE)], key, size, alpha, rarity, 1.0)


def _rarity(key: IndexArray, sums: FloatArray, size: int) -> Rarity:
    """Bound how rare surprises are by the sums of each key."""
    columns = [by_key(sums[:, len(BASE) + k], key, size) for k in range(len(RARE))]
    return Rarity.of(np.stack(columns, axis=1), by_key(sums[:, BASE.index("deviation")], key, size))


def firm_and_weak_ends(
    key: IndexArray, sums: FloatArray, size: int, alpha: float, weaker: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `clustered_bounds` of pairs that come once each, and lower bounds missed with probability ``weaker``."""
    rarity = _rarity(key, sums, size)
    found = [_ends(sums[:, : len(BASE)], key, size, level, rarity, 1.0) for level in (alpha, weaker)]
    return found[0].low, found[0].high, found[1].low


def clustered_interval(sums: FloatArray, alpha: float, rarity: Rarity, times: float = 1.0) -> tuple[float, float]:
    """Return both bounds on the ECD of all rows, from the sums of their clusters."""
    low, high = _ends(sums, np.zeros(len(sums), dtype=np.intp), 1, alpha, rarity, times)
    return float(low[0]), float(high[0])


def _ends(sums: FloatArray, key: IndexArray, size: int, alpha: float, rarity: Rarity, times: float) -> Ends:
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
        t = -special.stdtrit(found.freedom, alpha)
        mass, mass2 = times * by_key(w, key, size), times * by_key(w * w, key, size)
        down = t * np.sqrt(found.above(rarity)) / mass
        up = t * np.sqrt(found.below(rarity)) / mass
        skew = by_key(centred**3, key, size) / by_key(centred**2, key, size) ** 1.5 / math.sqrt(times)
        up = np.fmax(up, -bent(-t, skew) * np.sqrt(found.seen()) / mass)
        up = np.fmax(up, null_distance(mass, t, mass2, times * by_key(centred * w, key, size), found.squares))
        told = np.isfinite(found.freedom)
        low, high = mean - np.where(told, down, math.inf), mean + np.where(told, up, math.inf)
        flat = (found.own == 0.0) & (found.squares == 0.0)  # every row a toss or a certainty: nothing can vary
    return Ends(np.where(flat, mean, low), np.where(flat, mean, high))


def of_pairs(key: IndexArray, cluster: IndexArray, sums: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Add up rows of the same pair of key and cluster; return the key of each, and its sums."""
    width = int(cluster.max(initial=0)) + 1
    pairs, index = np.unique(key.astype(np.int64) * width + cluster, return_inverse=True)
    if len(pairs) == len(key):
        return key, sums
    return (pairs // width).astype(np.intp), added_by(index, len(pairs), list(sums.T))


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
