"""Bounds on the ratio of mistakes, seen over announced, of many keys at once, where rows come in clusters.

The rule is that of `dependence`, for sums of mistakes seen less mistakes announced times the ratio. What yes-or-no
outcomes would spread on their own is known from what was announced: at a ratio r, announced times r if rows are
independent; if those of a cluster move as one, at most its weight times as much.
"""

import math

import numpy as np
from scipy import special

from .._sums.clusters import BASE
from .._types import FloatArray, IndexArray
from .cluster_bounds import Ends, by_key, null_distance, of_pairs
from .dependence import Sums

__all__ = ["clustered_ratios"]


def clustered_ratios(
    key: IndexArray, cluster: IndexArray, sums: FloatArray, size: int, alpha: float, *, times: float = 1.0
) -> Ends:
    """Return bounds on the ratio of mistakes of each key, each of them missed with probability ``alpha`` at most.

    Parameters
    ----------
    key, cluster : ndarray of shape (rows,)
        Numbers of the key and of the cluster that each row of ``sums`` belongs to. Rows of the same pair add up.
    sums : ndarray of shape (rows, columns)
        Sums by cluster and key, as `Pairs` or `Clusters` holds them; NaN for states, and so are the bounds.
    size : int
        How many keys there are.
    alpha : float
        Accepted probability of a miss, for each end.
    times : float, default 1
        How many times as many clusters of this kind to reckon with.

    Returns
    -------
    Ends
        ``low`` and ``high``; 0 and infinity where clusters are too few to tell.
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
        found = Sums.of(centred, own, moved, square, key, size).times(times)
        mass, mass2, mixed = (
            times * by_key(x, key, size) for x in (announced, announced * announced, centred * announced)
        )
        t = -special.stdtrit(found.freedom, alpha)
        spread = t * np.sqrt(found.seen()) / mass
        down, up = _distance(ratio, mass, t, found.floor(1.0 - chance)), _distance(ratio, mass, t, found.floor(chance))
        root = null_distance(mass, t, mass2, mixed, found.squares)
        told = np.isfinite(found.freedom)
        low = np.where(told, np.maximum(ratio - np.fmax(down[0], spread), 0.0), 0.0)
        high = np.where(told, ratio + np.fmax(np.fmax(up[1], spread), root), math.inf)
    unknown = np.isnan(ratio)
    return Ends(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def _distance(ratio: FloatArray, mass: FloatArray, t: FloatArray, floor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the d at which ``d * mass`` is t times the root of the variance at ``ratio - d``, and at ``ratio + d``."""
    half = t * t * floor / (2.0 * mass * mass)
    root = np.sqrt(half * half + 2.0 * half * ratio)
    return root - half, root + half
