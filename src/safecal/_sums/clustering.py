"""Rows that depend on each other, summed block by block: by cluster, by cluster and group, by cluster and cell."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from .._checks.columns import cluster_codes
from .._checks.message import fail
from .._types import ArrayLike, FloatArray, IndexArray
from ..errors import ShapeError
from .cell_pairs import CellPairs, GatheredCells
from .clusters import COLUMNS, Clusters
from .dependence import Near, added_by, base_columns, near_columns, rare_columns, sharp_sums
from .pairs import Gathered, PairPart, Pairs
from .scored import Scored, possible_weight
from .tabulate import Part, Split, occurring

if TYPE_CHECKING:
    from ..families.predictions import Predictions


__all__ = ["MAX_PAIRS", "Clustered", "Clustering", "few_pairs", "refuse_many"]

MAX_PAIRS = 4_000_000  # of group and cluster


class Clustered(NamedTuple):
    """What a block of rows gives."""

    clusters: Part
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
        self._pairs = Gathered(0 if groups is None else groups.size)
        self._cells = GatheredCells()

    def summed(
        self, scored: Scored, weight: FloatArray | None, near: Near | None, rows: slice, coarse: IndexArray | None
    ) -> Clustered:
        """Sum a block of rows; ``coarse`` numbers their coarse cells, where predictions have an order."""
        some = possible_weight(scored, weight)
        possible = np.ones(len(scored)) if some is None else some
        base = base_columns(scored, weight, possible)
        codes = self._codes[rows]
        keys, index, size = occurring(codes, len(self.keys))
        part = Part(keys, added_by(index, size, [*base, *near_columns(scored, near, possible)]))
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
        return few_pairs(self._pairs.pairs(self.keys, keys))

    def cell_pairs(self) -> CellPairs | None:
        """Return the sums by cluster and coarse cell of the predictions; None where there are none, or too many."""
        return self._cells.pairs(self.keys)


def few_pairs(pairs: Pairs) -> Pairs:
    """Refuse pairs that are too many to be held."""
    refuse_many(len(pairs))
    return pairs


def refuse_many(count: int) -> None:
    """Refuse so many pairs of cluster and group that their sums cannot be held."""
    if count > MAX_PAIRS:
        raise fail(
            ShapeError, "cluster", f"must form at most {MAX_PAIRS} different pairs with `by`", got=f"{count}",
            hint="sums are kept for each of them; group by fewer values, or leave `by` out.",
        )  # fmt: skip
