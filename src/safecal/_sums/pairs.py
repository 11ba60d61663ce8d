"""Sums by cluster and key: what bounds of groups, or of ranges, need where rows depend on each other."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np

from .._types import AnyArray, FloatArray, IndexArray
from .dependence import BASE, RARE, added_by
from .keyed import union

__all__ = ["PAIRS", "Gathered", "Pairs"]

PAIRS = (*BASE, *RARE)
_WAITING = 1 << 18  # pairs of blocks that are not added up at once


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """Sums of the rows of each pair of cluster and key that occurs. They merge with ``+``, and are never written.

    Attributes
    ----------
    clusters, keys : tuple
        Their names.
    cluster, key : ndarray of shape (pairs,)
        Of each pair the places of both names; pairs are in the order of these.
    sums : ndarray of shape (pairs, 14)
        The sums of `PAIRS`.

    Examples
    --------
    >>> import numpy as np
    >>> monday = Pairs.of(("ann", "bob"), ("x",), np.array([0, 1]), np.array([0, 0]), np.ones((2, 14)))
    >>> tuesday = Pairs.of(("bob",), ("x", "y"), np.array([0, 0]), np.array([0, 1]), np.ones((2, 14)))
    >>> both = monday + tuesday
    >>> [(both.clusters[c], both.keys[k]) for c, k in zip(both.cluster, both.key)]
    [('ann', 'x'), ('bob', 'x'), ('bob', 'y')]
    >>> both.column("n").tolist()
    [1.0, 2.0, 1.0]
    """

    clusters: tuple[Hashable, ...]
    keys: tuple[Hashable, ...]
    cluster: IndexArray
    key: IndexArray
    sums: FloatArray

    @classmethod
    def of(
        cls,
        clusters: tuple[Hashable, ...],
        keys: tuple[Hashable, ...],
        cluster: IndexArray,
        key: IndexArray,
        sums: FloatArray,
    ) -> Self:
        """Put sums in order, and add up those of the same pair."""
        if len(sums) == 0:
            return cls(clusters, keys, cluster, key, sums)
        code = cluster.astype(np.int64) * len(keys) + key
        rising = code[1:] > code[:-1]
        if not rising.all():
            order = np.argsort(code, kind="stable")
            code = code[order]
            starts = np.flatnonzero(np.concatenate([[True], code[1:] > code[:-1]]))
            code = code[starts]
            with np.errstate(invalid="ignore", over="ignore"):
                sums = np.add.reduceat(sums[order], starts, axis=0)
            cluster, key = (code // len(keys)).astype(np.intp), (code % len(keys)).astype(np.intp)
        return cls(clusters, keys, cluster, key, sums)

    def column(self, name: str) -> FloatArray:
        """Return the sums of one name of `PAIRS`."""
        return self.sums[:, PAIRS.index(name)]

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Pairs):
            return NotImplemented
        clusters, cluster = union(self.clusters, other.clusters)
        keys, key = union(self.keys, other.keys)
        return self.of(
            clusters,
            keys,
            np.concatenate([self.cluster, cluster[other.cluster]]),
            np.concatenate([self.key, key[other.key]]),
            np.concatenate([self.sums, other.sums]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs) or (self.clusters, self.keys) != (other.clusters, other.keys):
            return False
        places = np.array_equal(self.cluster, other.cluster) and np.array_equal(self.key, other.key)
        return places and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Pairs({len(self)} of {len(self.clusters)} clusters and {len(self.keys)} keys)"


class PairPart(NamedTuple):
    """The pairs of a block of rows, and their sums."""

    codes: AnyArray  # cluster * keys + key
    sums: FloatArray


@final
class Gathered:
    """Pairs that come block by block; ``keys`` is how many keys there are."""

    def __init__(self, keys: int) -> None:
        self._size = max(keys, 1)
        self._parts = [PairPart(np.empty(0, np.int64), np.empty((0, len(PAIRS))))]

    def of_block(self, cluster: IndexArray, key: IndexArray, columns: list[FloatArray]) -> PairPart:
        """Sum the rows of a block: numbers of their clusters and keys, and the columns of `PAIRS`."""
        codes, index = np.unique(cluster.astype(np.int64) * self._size + key, return_inverse=True)
        return PairPart(codes, added_by(index, len(codes), columns))

    def absorb(self, part: PairPart) -> int:
        """Keep the sums of a block, and return how many pairs are held at least."""
        self._parts.append(part)
        if sum(len(p.codes) for p in self._parts[1:]) > max(len(self._parts[0].codes), _WAITING):
            found = self.pairs((), tuple(range(self._size)))
            self._parts = [PairPart(found.cluster.astype(np.int64) * self._size + found.key, found.sums)]
        return len(self._parts[0].codes)

    def pairs(self, clusters: tuple[Hashable, ...], keys: tuple[Hashable, ...]) -> Pairs:
        """Return the sums of all blocks, with the names of clusters and keys."""
        codes, sums = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        places = (codes // self._size).astype(np.intp), (codes % self._size).astype(np.intp)
        return Pairs.of(clusters, keys, *places, sums)
