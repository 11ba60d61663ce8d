"""Sums by cluster and coarse cell of the predictions: what bounds of ranges need where rows depend on each other."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from .._kernels.spectrum import BY_CLASS, COARSE
from .._types import FloatArray, IndexArray
from .dependence import added_by
from .pairs import Gathered, PairPart, Pairs

__all__ = ["MAX_CELL_PAIRS", "CellPairs", "GatheredCells", "OfOrder"]

MAX_CELL_PAIRS = 500_000  # of cluster and coarse cell; each takes 112 bytes


class OfOrder(NamedTuple):
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
    def of(pairs: Pairs, classes: bool = True) -> "CellPairs | None":
        """Hold pairs, if they are not too many."""
        found = CellPairs(pairs, classes)
        if len(pairs) > MAX_CELL_PAIRS and classes:
            found = found.without_classes()
        return None if len(found.pairs) > MAX_CELL_PAIRS else found

    def without_classes(self) -> "CellPairs":
        """Add up the cells of all predicted classes."""
        numbers = _numbers(self.pairs.keys) % COARSE
        used, index = np.unique(numbers, return_inverse=True)
        p = self.pairs
        return CellPairs(Pairs.of(p.clusters, tuple(used.tolist()), p.cluster, index[p.key], p.sums), False)

    def of_order(self, label: int | None) -> OfOrder:
        """Return the pairs of one predicted class, or of all of them together."""
        p = self.pairs
        number = _numbers(p.keys)[p.key]
        if label is not None:
            here = number // COARSE == label
            return OfOrder(p.cluster[here], number[here], p.sums[here])
        return OfOrder(p.cluster, number % COARSE, p.sums)

    def __add__(self, other: object) -> "CellPairs | None":
        if not isinstance(other, CellPairs):
            return NotImplemented
        a, b = self, other
        if a.classes != b.classes:
            a, b = self.without_classes(), other.without_classes()
        return CellPairs.of(a.pairs + b.pairs, a.classes)


def _numbers(keys: tuple[Hashable, ...]) -> IndexArray:
    return np.array(keys, dtype=np.intp)


@final
class GatheredCells:
    """Pairs of cluster and coarse cell that come block by block."""

    def __init__(self) -> None:
        self._gathered: Gathered | None = Gathered(BY_CLASS * COARSE)
        self._classes = True

    def of_block(self, cluster: IndexArray, cell: IndexArray, columns: list[FloatArray]) -> PairPart | None:
        """Sum the rows of a block: numbers of their clusters and cells, -1 for none, and the columns of `PAIRS`."""
        gathered = self._gathered
        if gathered is None:
            return None
        inside = cell >= 0
        if not inside.all():
            cluster, cell, columns = cluster[inside], cell[inside], [column[inside] for column in columns]
        return gathered.of_block(cluster, cell, columns)

    def absorb(self, part: PairPart) -> None:
        """Keep the sums of a block, unless there are too many pairs already."""
        if self._gathered is None:
            return
        count = self._gathered.absorb(part if self._classes else _without_classes(part))
        if count > MAX_CELL_PAIRS and self._classes:
            whole, self._classes = self._gathered.part(), False
            self._gathered = Gathered(BY_CLASS * COARSE)
            count = self._gathered.absorb(_without_classes(whole))
        if count > MAX_CELL_PAIRS:
            self._gathered = None

    def pairs(self, clusters: tuple[Hashable, ...]) -> CellPairs | None:
        """Return the sums of all blocks, with the names of the clusters."""
        if self._gathered is None:
            return None
        codes, sums = self._gathered.part()
        cluster, number = np.divmod(codes, BY_CLASS * COARSE)
        used, index = np.unique(number, return_inverse=True)
        found = Pairs(clusters, tuple(used.tolist()), cluster.astype(np.intp), index.astype(np.intp), sums)
        return CellPairs.of(found, self._classes)


def _without_classes(part: PairPart) -> PairPart:
    size = BY_CLASS * COARSE
    codes, index = np.unique(part.codes // size * size + part.codes % COARSE, return_inverse=True)
    return PairPart(codes, added_by(index, len(codes), list(part.sums.T)))
