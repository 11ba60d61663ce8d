"""Rows that depend on each other, summed block by block: by cluster, and by cluster and group."""

from collections.abc import Hashable
from typing import NamedTuple, final

import numpy as np

from ._checks.columns import cluster_codes
from ._checks.message import fail
from ._sums.clusters import COLUMNS, Clusters
from ._sums.dependence import Near, added_by, base_columns, near_columns, rare_columns, sharp_sums
from ._sums.pairs import PAIRS, Pairs
from ._types import AnyArray, ArrayLike, FloatArray, IndexArray
from .errors import ShapeError
from .families.predictions import Predictions, possible_weight
from .scored import Scored
from .tabulate import Part, Split, occurring

__all__ = ["MAX_PAIRS", "Clustered", "Clustering", "few_pairs"]

MAX_PAIRS = 4_000_000  # of group and cluster
_WAITING = 1 << 18  # pairs of blocks that are not added up at once


class Clustered(NamedTuple):
    """What a block of rows gives."""

    clusters: Part
    sharp: FloatArray | None
    pairs: AnyArray  # codes of the pairs of cluster and group
    sums: FloatArray  # of these pairs


@final
class Clustering:
    """The clusters of some rows, and their groups where there are any, with the sums of the blocks seen so far."""

    def __init__(self, predictions: Predictions, cluster: ArrayLike, groups: Split | None) -> None:
        self.keys, self._codes = cluster_codes(cluster, predictions.n, predictions.outcome)
        self._groups = groups
        self._clusters = np.zeros((len(self.keys), COLUMNS))
        self._sharp: FloatArray | None = None
        self._pairs: list[tuple[AnyArray, FloatArray]] = []

    def summed(self, scored: Scored, weight: FloatArray | None, near: Near | None, rows: slice) -> Clustered:
        """Sum a block of rows."""
        some = possible_weight(scored, weight)
        possible = np.ones(len(scored)) if some is None else some
        base = base_columns(scored, weight, possible)
        codes = self._codes[rows]
        keys, index, size = occurring(codes, len(self.keys))
        part = Part(keys, added_by(index, size, [*base, *near_columns(scored, near, possible)]))
        sharp = None if near is None or near.rate is None else sharp_sums(near, possible)
        if self._groups is None:
            return Clustered(part, sharp, np.empty(0, np.int64), np.empty((0, len(PAIRS))))
        both = codes.astype(np.int64) * self._groups.size + self._groups.index(scored, rows)
        pairs, index = np.unique(both, return_inverse=True)
        return Clustered(part, sharp, pairs, added_by(index, len(pairs), [*base, *rare_columns(scored, possible)]))

    def absorb(self, new: Clustered) -> None:
        """Add the sums of a block."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._clusters[new.clusters.keys] += new.clusters.sums
        self._sharp = new.sharp if self._sharp is None or new.sharp is None else self._sharp + new.sharp
        if self._groups is None:
            return
        self._pairs.append((new.pairs, new.sums))
        if sum(len(codes) for codes, _ in self._pairs[1:]) > max(len(self._pairs[0][0]), _WAITING):
            found = self._together(self._groups.size)
            self._pairs = [(found.cluster.astype(np.int64) * self._groups.size + found.key, found.sums)]

    def clusters(self) -> Clusters:
        """Return the sums by cluster."""
        return Clusters(self.keys, self._clusters, self._sharp)

    def pairs(self, keys: tuple[Hashable, ...]) -> Pairs:
        """Return the sums by cluster and group; ``keys`` are the names of the groups."""
        found = self._together(max(len(keys), 1))
        return Pairs(self.keys, keys, found.cluster, found.key, found.sums)

    def _together(self, size: int) -> Pairs:
        codes = np.concatenate([np.empty(0, np.int64), *(codes for codes, _ in self._pairs)])
        sums = np.concatenate([np.empty((0, len(PAIRS))), *(sums for _, sums in self._pairs)])
        places: tuple[IndexArray, IndexArray] = ((codes // size).astype(np.intp), (codes % size).astype(np.intp))
        return few_pairs(Pairs.of((), tuple(range(size)), *places, sums))


def few_pairs(pairs: Pairs) -> Pairs:
    """Refuse pairs that are too many to be held."""
    if len(pairs) > MAX_PAIRS:
        raise fail(
            ShapeError, "cluster", f"must form at most {MAX_PAIRS} different pairs with `by`", got=f"{len(pairs)}",
            hint="sums are kept for each of them; group by fewer values, or leave `by` out.",
        )  # fmt: skip
    return pairs
