"""Sums by cluster and group, and by cluster and cell of the predictions: what their bounds need where rows depend."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, final

import numpy as np

from .._checks import fail
from .._checks.columns import cluster_codes, numbered
from .._kernels.spectrum import BY_CLASS, COARSE
from .._types import AnyArray, ArrayLike, FloatArray, IndexArray
from ..errors import ShapeError
from .clusters import (
    BASE,
    COLUMNS,
    RARE,
    Clusters,
    Near,
    added_by,
    base_columns,
    near_columns,
    rare_columns,
    sharp_sums,
)
from .scored import Scored, possible_weight, union
from .splits import BlockSums, Split, occurring

if TYPE_CHECKING:
    from ..families import Predictions

__all__ = [
    "MAX_PAIRS", "PAIRS", "CellPairBlocks", "CellPairs", "Clustered", "Clustering", "OrderPairs", "PairBlocks",
    "PairPart", "Pairs", "added_in_order", "refuse_many",
]  # fmt: skip

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
        codes, index = numbered(_pair_codes(cluster, key, len(keys)))
        return cls._in_order(clusters, keys, PairPart(codes, added_by(index, len(codes), list(sums.T))))

    @classmethod
    def _in_order(cls, clusters: tuple[Hashable, ...], keys: tuple[Hashable, ...], part: PairPart) -> Self:
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
        mine = _pair_codes(self.cluster, self.key, len(keys))
        theirs = _pair_codes(cluster[other.cluster], key[other.key], len(keys))
        return self._in_order(clusters, keys, added_up_parts([PairPart(mine, self.sums), PairPart(theirs, other.sums)]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs) or (self.clusters, self.keys) != (other.clusters, other.keys):
            return False
        places = np.array_equal(self.cluster, other.cluster) and np.array_equal(self.key, other.key)
        return places and np.array_equal(self.sums, other.sums, equal_nan=True)

    def __repr__(self) -> str:
        return f"Pairs({len(self)} of {len(self.clusters)} clusters and {len(self.keys)} keys)"


class PairPart(NamedTuple):
    """Some pairs, each once, and their sums."""

    codes: AnyArray  # cluster * keys + key
    sums: FloatArray


def _pair_codes(cluster: IndexArray, key: IndexArray, keys: int) -> AnyArray:
    return cluster.astype(np.int64) * max(keys, 1) + key


def added_up_parts(parts: list[PairPart]) -> PairPart:
    """Add up parts; their pairs come out in order."""
    codes, columns = np.concatenate([p.codes for p in parts]), np.concatenate([p.sums.T for p in parts], axis=1)
    if not bool((codes[1:] >= codes[:-1]).all()):
        order = np.argsort(codes, kind="stable")  # of sorted parts: fast
        codes, columns = codes[order], columns.take(order, axis=1)
    return added_in_order(codes, columns.T)


def added_in_order(codes: AnyArray, sums: FloatArray) -> PairPart:
    """Add up sums of the same pair, where pairs are in order."""
    first = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    if len(first) + 1 >= len(codes):  # each is there once, or there is none
        return PairPart(codes, sums)
    first = np.append(0, first)
    with np.errstate(invalid="ignore", over="ignore"):
        return PairPart(codes[first], np.add.reduceat(sums.T, first, axis=1).T)


@final
class PairBlocks:
    """Pairs that come block by block; ``keys`` is how many keys there are."""

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._parts = [PairPart(np.empty(0, np.int64), np.empty((0, len(PAIRS))))]
        self._last, self._in_order = -1, True  # rows that come cluster by cluster need not be added up at once

    def of_block(self, cluster: IndexArray, key: IndexArray, columns: list[FloatArray]) -> PairPart:
        """Sum the rows of a block: numbers of their clusters and keys, and the columns of `PAIRS`."""
        codes, index = numbered(_pair_codes(cluster, key, self._keys))
        return PairPart(codes, added_by(index, len(codes), columns))

    def absorb(self, part: PairPart) -> int:
        """Keep the sums of a block, and return how many pairs there are at least."""
        if len(part.codes):
            self._in_order = self._in_order and int(part.codes[0]) >= self._last
            self._last = int(part.codes[-1])
            self._parts.append(part)
        waiting = sum(len(p.codes) for p in self._parts[1:])
        if self._in_order:
            return waiting - len(self._parts)  # each may share a pair with the one before
        if waiting > max(len(self._parts[0].codes), _WAITING):
            self._parts = [added_up_parts(self._parts)]
        return len(self._parts[0].codes)

    def pairs(self, clusters: tuple[Hashable, ...], keys: tuple[Hashable, ...]) -> Pairs:
        """Return the sums of all blocks, with the names of clusters and keys."""
        return Pairs._in_order(clusters, keys, self.part())

    def part(self) -> PairPart:
        """Return the sums of all blocks, pairs in order."""
        if len(self._parts) > 1:
            self._parts = [added_up_parts(self._parts)]
        return self._parts[0]


MAX_CELL_PAIRS = 500_000  # of cluster and coarse cell; each takes 112 bytes


class OrderPairs(NamedTuple):
    """Sums of some pairs: numbers of their clusters, and of their coarse cells."""

    cluster: IndexArray
    cell: IndexArray
    sums: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellPairs:
    """Sums of the rows of each pair of cluster and coarse cell. They merge with ``+``, and are never written.

    They are at most `MAX_CELL_PAIRS`. Where there would be more, the classes that are predicted are no longer told
    apart; where these are still too many, the sum is None. Either depends on all rows alone, not on how they came.

    Attributes
    ----------
    pairs : Pairs
        Their keys are the numbers of the coarse cells.
    classes : bool
        Whether predicted classes are told apart.
    """

    pairs: Pairs
    classes: bool = True

    @staticmethod
    def of(pairs: Pairs, classes: bool = True) -> CellPairs | None:
        """Hold pairs, if they are not too many."""
        cells = CellPairs(pairs, classes)
        if len(pairs) > MAX_CELL_PAIRS and classes:
            cells = cells.without_classes()
        return None if len(cells.pairs) > MAX_CELL_PAIRS else cells

    def without_classes(self) -> CellPairs:
        """Add up the cells of all predicted classes."""
        numbers = _numbers(self.pairs.keys) % COARSE
        used, index = np.unique(numbers, return_inverse=True)
        p = self.pairs
        return CellPairs(Pairs.of(p.clusters, tuple(used.tolist()), p.cluster, index[p.key], p.sums), False)

    def of_order(self, label: int | None) -> OrderPairs:
        """Return the pairs of one predicted class, or of all of them together."""
        p = self.pairs
        number = _numbers(p.keys)[p.key]
        if label is not None:
            of_label = number // COARSE == label
            return OrderPairs(p.cluster[of_label], number[of_label], p.sums[of_label])
        return OrderPairs(p.cluster, number % COARSE, p.sums)

    def __add__(self, other: object) -> CellPairs | None:
        if not isinstance(other, CellPairs):
            return NotImplemented
        a, b = self, other
        if a.classes != b.classes:
            a, b = self.without_classes(), other.without_classes()
        return CellPairs.of(a.pairs + b.pairs, a.classes)


def _numbers(keys: tuple[Hashable, ...]) -> IndexArray:
    return np.array(keys, dtype=np.intp)


@final
class CellPairBlocks:
    """Pairs of cluster and coarse cell that come block by block."""

    def __init__(self) -> None:
        self._blocks: PairBlocks | None = PairBlocks(BY_CLASS * COARSE)
        self._classes, self._several = True, False  # whether they are told apart; whether there are several

    def of_block(self, cluster: IndexArray, cell: IndexArray, columns: list[FloatArray]) -> PairPart | None:
        """Sum the rows of a block: numbers of their clusters and cells, -1 for none, and the columns of `PAIRS`."""
        blocks = self._blocks
        if blocks is None:
            return None
        inside = cell >= 0
        if not inside.all():
            cluster, cell, columns = cluster[inside], cell[inside], [column[inside] for column in columns]
        return blocks.of_block(cluster, cell, columns)

    def absorb(self, part: PairPart) -> None:
        """Keep the sums of a block, unless there are too many pairs already."""
        if self._blocks is None:
            return
        self._several = self._several or bool((part.codes % (BY_CLASS * COARSE) >= COARSE).any())
        count = self._blocks.absorb(part if self._classes else _without_classes(part))
        if count > MAX_CELL_PAIRS and self._classes and self._several:
            whole, self._classes = self._blocks.part(), False
            self._blocks = PairBlocks(BY_CLASS * COARSE)
            count = self._blocks.absorb(_without_classes(whole))
        if count > MAX_CELL_PAIRS:
            self._blocks = None

    def pairs(self, clusters: tuple[Hashable, ...]) -> CellPairs | None:
        """Return the sums of all blocks, with the names of the clusters."""
        if self._blocks is None:
            return None
        codes, sums = self._blocks.part()
        cluster, number = np.divmod(codes, BY_CLASS * COARSE)
        used, index = np.unique(number, return_inverse=True)
        pairs = Pairs(clusters, tuple(used.tolist()), cluster.astype(np.intp), index.astype(np.intp), sums)
        return CellPairs.of(pairs, self._classes)


def _without_classes(part: PairPart) -> PairPart:
    size = BY_CLASS * COARSE
    codes, index = numbered(part.codes // size * size + part.codes % COARSE)
    return PairPart(codes, added_by(index, len(codes), list(part.sums.T)))


MAX_PAIRS = 4_000_000  # of group and cluster


class Clustered(NamedTuple):
    """What a block of rows gives."""

    clusters: BlockSums
    sharp: FloatArray | None
    groups: PairPart | None
    cells: PairPart | None


@final
class Clustering:
    """The clusters of some rows, and their groups where there are any, with the sums of the blocks seen so far."""

    def __init__(self, predictions: Predictions, cluster: ArrayLike, groups: Split | None) -> None:
        self.keys, self._codes = cluster_codes(cluster, predictions.n, predictions.outcome)
        self._groups = groups
        self._clusters = np.zeros((len(self.keys), COLUMNS))
        self._sharp: FloatArray | None = None
        self._pairs = PairBlocks(0 if groups is None else groups.size)
        self._cells = CellPairBlocks()

    def summed(
        self, scored: Scored, weight: FloatArray | None, near: Near | None, rows: slice, coarse: IndexArray | None
    ) -> Clustered:
        """Sum a block of rows; ``coarse`` numbers their coarse cells, where predictions have an order."""
        weight_if_any = possible_weight(scored, weight)
        possible = np.ones(len(scored)) if weight_if_any is None else weight_if_any
        base = base_columns(scored, weight, possible)
        codes = self._codes[rows]
        keys, index, size = occurring(codes, len(self.keys))
        part = BlockSums(keys, added_by(index, size, [*base, *near_columns(scored, near, possible)]))
        sharp = None if near is None or near.rate is None else sharp_sums(near, possible)
        columns = [*base, *rare_columns(scored, possible)]
        groups = None
        if self._groups is not None:
            groups = self._pairs.of_block(codes, self._groups.index(scored, rows), columns)
        cells = None if coarse is None else self._cells.of_block(codes, coarse, columns)
        return Clustered(part, sharp, groups, cells)

    def absorb(self, new: Clustered) -> None:
        """Add the sums of a block."""
        with np.errstate(invalid="ignore", over="ignore"):
            self._clusters[new.clusters.keys] += new.clusters.sums
        self._sharp = new.sharp if self._sharp is None or new.sharp is None else self._sharp + new.sharp
        if new.groups is not None:
            refuse_many(self._pairs.absorb(new.groups))
        if new.cells is not None:
            self._cells.absorb(new.cells)

    def clusters(self) -> Clusters:
        """Return the sums by cluster."""
        return Clusters(self.keys, self._clusters, self._sharp)

    def pairs(self, keys: tuple[Hashable, ...]) -> Pairs:
        """Return the sums by cluster and group; ``keys`` are the names of the groups."""
        pairs = self._pairs.pairs(self.keys, keys)
        refuse_many(len(pairs))
        return pairs

    def cell_pairs(self) -> CellPairs | None:
        """Return the sums by cluster and coarse cell of the predictions; None where there are none, or too many."""
        return self._cells.pairs(self.keys)


def refuse_many(count: int) -> None:
    """Refuse so many pairs of cluster and group that their sums cannot be held."""
    if count > MAX_PAIRS:
        raise fail(
            ShapeError, "cluster", f"must form at most {MAX_PAIRS} different pairs with `by`", got=f"{count}",
            hint="sums are kept for each of them; group by fewer values, or leave `by` out.",
        )  # fmt: skip
