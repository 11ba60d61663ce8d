"""Mistakes: outcomes other than the likeliest. How many were announced, how many were made, and how sure that is.

Nats and temperatures are blind to rare events: predicted 18 times too seldom, they cost hundredths of a nat. The ratio
of what happened to what was announced is not.

Where rows come in clusters, the rule is that of `clustered`, for sums of mistakes seen less mistakes announced times
the ratio. What yes-or-no outcomes would spread on their own is known from what was announced: at a ratio r, announced
times r if rows are independent; if those of a cluster move as one, at most its weight times as much.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import steadied
from .._sums.clusters import BASE
from .._sums.nodes import Nodes
from .._sums.summary import COLUMN, Summary
from .._sums.tally import Tally
from .._types import FloatArray, IndexArray
from .clustered import ClusterSums, by_key, null_distance, of_pairs
from .results import Interval
from .sum_bounds import Ends

__all__ = [
    "Mistakes",
    "clustered_ratios",
    "doubt_of_outcomes",
    "heaviest_weight",
    "mistakes_by_key",
    "mistakes_text",
    "ratio_bounds",
]


@final
@steadied
@dataclass(frozen=True, slots=True)
class Mistakes:
    """Mistakes made and mistakes announced.

    Attributes
    ----------
    seen : float
        Rows whose outcome was not the likeliest one; with weights, their weight.
    announced : float
        How many were to be expected by the model's own word: the sum of 1 minus the probability of the likeliest one.
    ratio : Interval
        The first over the second; above 1 there were more than announced.

    Examples
    --------
    >>> import safecal
    >>> mistakes = safecal.evaluate([1] * 90 + [0] * 10, [0.99] * 100).mistakes
    >>> mistakes.seen, round(mistakes.announced, 6), round(mistakes.ratio.low, 2)
    (10.0, 1.0, 4.8)
    """

    seen: float
    announced: float
    ratio: Interval

    @classmethod
    def of(cls, tally: Tally, level: float) -> Self | None:
        """Read them off a tally; None for states and densities.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float
            Level of the interval.

        Returns
        -------
        Mistakes or None
            With an exact Poisson interval; with weights, that of a gamma law of the same mean and variance; with
            clusters, one from their sums.
        """
        s = tally.summary
        if s.sum_correct is None or s.sum_confidence is None:
            return None
        seen, announced = max(s.weight - s.sum_correct, 0.0), max(s.weight - s.sum_confidence, 0.0)
        square, heaviest = (seen, 1.0) if not tally.weighted else _squared_and_largest_weight(tally, seen)
        alpha = 0.5 * (1.0 - level)
        value = seen / announced if announced > 0.0 else math.inf if seen > 0.0 else math.nan
        clusters = tally.clusters
        if clusters is not None:
            all_clusters = np.zeros(len(clusters), dtype=np.intp), np.arange(len(clusters)), clusters.sums, 1
            low, high = (float(x[0]) for x in clustered_ratios(*all_clusters, alpha))
            low = 0.0 if math.isnan(low) else low  # none was announced: how many were made says nothing of a ratio
            return cls(seen, announced, Interval(value, low, high, level, f"t on {len(clusters)} clusters"))
        bounds = ratio_bounds(np.array([seen]), np.array([square]), np.array([announced]), alpha, heaviest)
        low, high = (float(x[0]) for x in bounds)
        method = "weighted Poisson" if tally.weighted else "Poisson"
        return cls(seen, announced, Interval(value, low, high, level, method))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"seen": self.seen, "announced": self.announced, "ratio": self.ratio.to_dict()}
        return documents.document("mistakes", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        not_negative = documents.between(0.0)
        fields = {"seen": not_negative, "announced": not_negative, "ratio": Interval.from_dict}
        return cls(**documents.read("mistakes", document, fields))


_ANNOUNCED = 30.0  # mistakes, of which a model that means what it says makes some


def doubt_of_outcomes(mistakes: Mistakes | None, s: Summary) -> list[str]:
    """Ask whether outcomes are the model's own predictions, where no mistake was made and many were announced."""
    if mistakes is None or not s.weight2 > 0.0 or mistakes.seen > 1e-9 * mistakes.announced:
        return []
    if mistakes.announced * s.weight / s.weight2 < _ANNOUNCED:  # in rows of equal weight
        return []
    announced = mistakes_text(mistakes.announced)
    return [f"It made no mistake where it announced {announced}: are the outcomes its own predictions?"]


def mistakes_text(number: float) -> str:
    """Write how many mistakes there are; by weight, or where they are announced, that need not be whole."""
    return f"{number:.0f}" if number >= 10.0 or number == round(number) else f"{number:.2g}"


def ratio_bounds(
    seen: FloatArray, square: FloatArray, announced: FloatArray, alpha: float, heaviest: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the ratio, each missed with probability ``alpha`` at most.

    Without weights they are those of a Poisson law: a sum of independent yes-or-no outcomes spreads less. With
    weights, ``square`` is the sum of the squared weights of the mistakes (Fay and Feuer's interval).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(seen > 0.0, special.gammaincinv(seen * seen / square, alpha) * square / seen, 0.0)
        more, spread = seen + heaviest, square + heaviest * heaviest
        high = special.gammainccinv(more * more / spread, alpha) * spread / more
        return np.where(seen > 0.0, low / announced, 0.0), high / announced  # infinite where none was announced


def mistakes_by_key(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mistakes that were made and announced under each key; NaN for states and densities."""
    weight = sums[:, COLUMN["weight"]]
    made = weight - sums[:, COLUMN["sum_correct"]]
    return np.maximum(made, 0.0), np.maximum(weight - sums[:, COLUMN["sum_confidence"]], 0.0)


def _squared_and_largest_weight(tally: Tally, seen: float) -> tuple[float, float]:
    """Return the sum of the squared weights of mistakes, and the largest weight."""
    points, heaviest = tally.points, heaviest_weight(tally)
    if points is not None and len(points.w):
        return float((points.n * points.w**2)[points.wrong].sum()), heaviest
    return seen * heaviest, heaviest  # as if every mistake weighed as much: never too narrow


def heaviest_weight(tally: Tally) -> float:
    """Return the largest weight of a row; 1 where there are no weights, or none is known."""
    points = tally.points
    if points is not None:
        return float(points.w.max(initial=0.0)) or 1.0
    return tally.spectrum.heaviest if isinstance(tally.spectrum, Nodes) else 1.0


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
