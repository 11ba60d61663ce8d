"""Sums by cluster and key: what bounds of groups, or of ranges, need where rows depend on each other."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np

from .._types import AnyArray, FloatArray, IndexArray
from .dependence import BASE, RARE, added_by
from .keyed import union

__all__ = ["PAIRS", "Gathered", "PairPart", "Pairs", "added_in_order"]

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
        codes, index = np.unique(_codes(cluster, key, len(keys)), return_inverse=True)
        return cls._in_order(clusters, keys, PairPart(codes, added_by(index, len(codes), list(sums.T))))

    @classmethod
    def _in_order(cls, clusters: tuple[Hashable, ...], keys: tuple[Hashable, ...], part: "PairPart") -> Self:
        size = max(len(keys), 1)
        return cls(clusters, keys, (part.codes // size).astype(np.intp), (part.codes % size).astype(np.intp), part.sums)

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
        mine = _codes(self.cluster, self.key, len(keys))
        theirs = _codes(cluster[other.cluster], key[other.key], len(keys))
        return self._in_order(clusters, keys, together([PairPart(mine, self.sums), PairPart(theirs, other.sums)]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs) or (self.clusters, self.keys) != (other.clusters, other.keys):
            return False
        places = np.array_equal(self.cluster, other.cluster) and np.array_equal(self.key, other.key)
        return places and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Pairs({len(self)} of {len(self.clusters)} clusters and {len(self.keys)} keys)"


class PairPart(NamedTuple):
    """Some pairs, each once, and their sums."""

    codes: AnyArray  # cluster * keys + key
    sums: FloatArray


def _codes(cluster: IndexArray, key: IndexArray, keys: int) -> AnyArray:
    return cluster.astype(np.int64) * max(keys, 1) + key


def together(parts: list[PairPart]) -> PairPart:
    """Add up parts; their pairs come out in order."""
    codes = np.concatenate([part.codes for part in parts])
    order = np.argsort(codes, kind="stable")  # of sorted parts: fast
    return added_in_order(codes[order], np.concatenate([part.sums for part in parts]).take(order, axis=0))


def added_in_order(codes: AnyArray, sums: FloatArray) -> PairPart:
    """Add up sums of the same pair, where pairs are in order."""
    if not len(codes):
        return PairPart(codes, sums)
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    with np.errstate(invalid="ignore", over="ignore"):
        return PairPart(codes[first], np.add.reduceat(sums, first, axis=0))


@final
class Gathered:
    """Pairs that come block by block; ``keys`` is how many keys there are."""

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._parts = [PairPart(np.empty(0, np.int64), np.empty((0, len(PAIRS))))]

    def of_block(self, cluster: IndexArray, key: IndexArray, columns: list[FloatArray]) -> PairPart:
        """Sum the rows of a block: numbers of their clusters and keys, and the columns of `PAIRS`."""
        codes, index = np.unique(_codes(cluster, key, self._keys), return_inverse=True)
        return PairPart(codes, added_by(index, len(codes), columns))

    def absorb(self, part: PairPart) -> int:
        """Keep the sums of a block, and return how many pairs there are at least."""
        self._parts.append(part)
        if sum(len(p.codes) for p in self._parts[1:]) > max(len(self._parts[0].codes), _WAITING):
            self._parts = [together(self._parts)]
        return len(self._parts[0].codes)

    def pairs(self, clusters: tuple[Hashable, ...], keys: tuple[Hashable, ...]) -> Pairs:
        """Return the sums of all blocks, with the names of clusters and keys."""
        return Pairs._in_order(clusters, keys, self.part())

    def part(self) -> PairPart:
        """Return the sums of all blocks, pairs in order."""
        self._parts = [together(self._parts)]
        return self._parts[0]
