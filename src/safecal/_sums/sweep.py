"""One pass over the rows: their sums by bin and by group, and all that a Tally holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .._checks.arrays import block
from .._kernels.compiled import KernelSums, available, runs
from .._kernels.spectrum import CONFIDENCES, SPREADS, coarse_confidences, coarse_spreads, top_moments
from .._types import AnyArray, FloatArray, IndexArray
from .causes import AxisSums, ClassSums, DirectionSums
from .cells import Cells, WeightedCells
from .cluster_pairs import Clustered, Clustering
from .forecasts import DrawSums, ForecastSums, VectorSums
from .nodes import Nodes, Ordered, Spectrum, node_sums
from .scored import counted, possible_weight, summed
from .splits import EVERY, BlockSums, Split, by_key, occurring
from .summary import COLUMN, Summary, added_up, completed
from .table import Table

if TYPE_CHECKING:
    from ..families import Predictions

__all__ = ["sweep", "sweep_all", "table_of", "tabulate"]

_T = TypeVar("_T")
_LARGE = 32  # blocks of rows from which several threads pay; a quarter of it where the compiled kernel needs no columns
_THREADS = min(4, os.cpu_count() or 1)  # results do not depend on it


def sweep(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> tuple[Summary, list[Table]]:
    """Sum all rows, and the rows by the keys of each split, in one pass."""

    def sum_block(rows: slice) -> list[BlockSums]:
        quick = _sum_quickly(predictions, splits, rows, weight)
        return _sum_scored(predictions, splits, rows, weight) if quick is None else [part for part, _ in quick]

    totals = [np.zeros((split.size, len(COLUMN))) for split in splits] or [np.zeros((1, len(COLUMN)))]
    for parts in in_order(sum_block, predictions, weight is None):
        for total, part in zip(totals, parts, strict=True):
            total[part.keys] += part.sums
    if not splits:
        return added_up(totals[0]), []
    for total in totals:
        total.flags.writeable = False  # so that a table need not copy it
    tables = [table_of(split, total) for split, total in zip(splits, totals, strict=True)]
    return tables[0].total, tables


def table_of(split: Split, sums: FloatArray) -> Table:
    """Return the table of a split from the sums of its keys."""
    return Table(split.name, split.keys, sums, split.bins, split.top_label)


def in_order(sum_block: Callable[[slice], _T], predictions: Predictions, quick: bool) -> Iterator[_T]:
    """Apply a function to every block; on threads where that pays, and in the order of the blocks."""
    blocks = list(predictions.row_blocks(quick))
    if len(blocks) < (_LARGE // 4 if quick else _LARGE) or not available():
        yield from map(sum_block, blocks)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(sum_block, blocks)


def _sum_quickly(
    predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None, *, tally: bool = False
) -> list[tuple[BlockSums, KernelSums]] | None:
    """Sum a block by each split by the compiled kernel; None where it does not serve these rows.

    For a ``tally``, the first sums have the spectrum, and those of groups have nodes.
    """
    parts: list[tuple[BlockSums, KernelSums]] = []
    w = None if weight is None else block(weight, rows)
    splits_or_none: Sequence[Split | None] = splits or [None]
    for split in splits_or_none:
        edges = None if split is None else split.edges
        index = None if split is None or edges is not None else split.early_index(rows)
        if split is not None and edges is None and index is None:
            return None
        keys: slice | IndexArray = EVERY
        size = 1 if split is None else split.size
        if index is not None:
            keys, index, size = occurring(index, size)
        bin_on = "probability" if split is None else split.bin_on
        spectrum, nodes = tally and not parts, tally and split is not None and split.groups
        sums = predictions.quick_sums(
            rows, w, keys=size, edges=edges, bin_on=bin_on, index=index, spectrum=spectrum, nodes=nodes
        )
        if sums is None:
            return None
        parts.append((BlockSums(keys, completed(sums.by_key)), sums))
    return parts


def _sum_scored(
    predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None
) -> list[BlockSums]:
    """Sum a block by its scored rows. Those whose first keys are known beforehand are scored in their order."""
    first = splits[0] if splits else None
    known = None if first is None else first.early_index(rows)
    if first is None or known is None:
        scored, w = predictions.weighted(rows, weight)
        return [by_key(scored, w, s, rows) for s in splits] or [BlockSums(EVERY, summed(scored, w))]
    keys, known, size = occurring(known, first.size)
    order, sorted_runs = runs(known, size)
    where = rows.start + order
    scored, w = predictions.weighted(where, weight)
    return [BlockSums(keys, summed(scored, w, sorted_runs, size)), *(by_key(scored, w, s, where) for s in splits[1:])]


def tabulate(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> list[Table]:
    """Sum the rows by the keys of each split."""
    return sweep(predictions, splits, weight)[1]


@dataclass(slots=True, kw_only=True)
class _WholeSums:
    """What is summed of all rows together."""

    certain: int = 0
    decimals: int = 0
    spectrum: Spectrum | None = None
    cells: FloatArray | None = None  # of a histogram
    ordered: Ordered | None = None
    top: Cells | None = None
    axes: AxisSums | None = None
    class_sums: ClassSums | None = None
    forecast: ForecastSums | VectorSums | DrawSums | None = None
    directions: DirectionSums | None = None


@dataclass(slots=True, kw_only=True)
class _Block(_WholeSums):
    """What a block of rows gives."""

    parts: list[BlockSums]
    clusters: Clustered | None = None
    nodes: BlockSums | None = None


@dataclass(slots=True, kw_only=True)
class Swept(_WholeSums):
    """What one pass over rows gives."""

    sums: list[FloatArray]
    clustering: Clustering | None
    nodes: FloatArray | None = None

    def absorb(self, new: _Block, first: bool) -> None:
        """Add the sums of a block."""
        for total, part in zip(self.sums, new.parts, strict=True):
            total[part.keys] += part.sums
        self.certain += new.certain
        self.decimals = max(self.decimals, new.decimals)
        for name in ("spectrum", "cells", "ordered", "top", "axes", "class_sums", "forecast", "directions"):
            a, b = getattr(self, name), getattr(new, name)
            setattr(self, name, b if first else None if a is None or b is None else a + b)
        if self.clustering is not None and new.clusters is not None:
            self.clustering.absorb(new.clusters)
        if first and new.nodes is not None:
            self.nodes = np.zeros((len(self.sums[-1]), new.nodes.sums.shape[1]))
        if new.nodes is None:
            self.nodes = None
        elif self.nodes is not None:
            self.nodes[new.nodes.keys] += new.nodes.sums


def sweep_all(
    predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None, clustering: Clustering | None
) -> Swept:
    """Sum all rows for a Tally, in one pass."""

    def sum_block(rows: slice) -> _Block:
        quick = _quick_block(predictions, splits, rows, weight) if clustering is None else None
        return _scored_block(predictions, splits, rows, weight, clustering) if quick is None else quick

    sizes = [split.size for split in splits] or [1]
    total = Swept(sums=[np.zeros((size, len(COLUMN))) for size in sizes], clustering=clustering)
    for k, new in enumerate(in_order(sum_block, predictions, weight is None and clustering is None)):
        total.absorb(new, k == 0)
    for sums in total.sums:
        sums.flags.writeable = False  # so that a table need not copy it
    return total


def _quick_block(
    predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None
) -> _Block | None:
    """Sum a block by the compiled kernel; None where it does not serve these rows."""
    quick = None if weight is not None else _sum_quickly(predictions, splits, rows, None, tally=True)
    if quick is None:
        return None
    (_, first), (last_part, last) = quick[0], quick[-1]
    assert first.spectrum is not None
    return _Block(
        parts=[part for part, _ in quick],
        certain=first.certain,
        decimals=predictions.decimals(rows) if first.certain else 0,
        spectrum=Cells(first.spectrum),
        nodes=None if last.nodes is None else BlockSums(last_part.keys, last.nodes),
    )


def _scored_block(
    predictions: Predictions,
    splits: Sequence[Split],
    rows: slice,
    weight: AnyArray | None,
    clustering: Clustering | None,
) -> _Block:
    """Sum a block by its scored rows."""
    scored, w, (spectrum, near, order, nodes, coarse) = predictions.scored_with_spectrum(rows, weight)
    parts = [by_key(scored, w, split, rows) for split in splits] or [BlockSums(EVERY, summed(scored, w))]
    cells = None if isinstance(spectrum, Cells | WeightedCells) else counted(scored, w)
    clusters = None
    if clustering is not None:
        place = None if coarse is None else coarse()
        if order is not None:
            place = coarse_confidences(order) if predictions.ordered_on == "confidence" else coarse_spreads(order)
        clusters = clustering.summed(scored, w, None if near is None else near(), rows, place)
    ordered = None
    if order is not None:
        occurs = np.bincount(order) > 0  # cells are few, so that this is faster than to sort them
        cells_used, index = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[order]
        size = CONFIDENCES if predictions.ordered_on == "confidence" else SPREADS
        ordered = Ordered(predictions.ordered_on, cells_used, summed(scored, w, index, len(cells_used)), size)
    top = None
    confidence, correct, entropy = scored.confidence, scored.correct, scored.entropy
    if w is None and isinstance(spectrum, Nodes) and confidence is not None:
        assert correct is not None
        assert entropy is not None
        top = Cells(top_moments(confidence, correct, entropy))
    certain = predictions.certain(rows)
    at_nodes = None
    if nodes is not None and splits and splits[-1].groups:
        keys, index, size = occurring(splits[-1].index(scored, rows), splits[-1].size)
        wrong = np.zeros(len(scored)) if scored.correct is None else ~np.asarray(scored.correct, dtype=bool)
        at_nodes = BlockSums(keys, node_sums(nodes(), possible_weight(scored, w), w, wrong, index, size))
    errors = predictions.axis_errors(rows)
    columns = predictions.forecast_columns(rows)
    turned = predictions.direction_columns(rows)
    return _Block(
        parts=parts,
        certain=certain,
        decimals=predictions.decimals(rows) if certain else 0,
        spectrum=spectrum,
        cells=cells,
        ordered=ordered,
        top=top,
        clusters=clusters,
        nodes=at_nodes,
        axes=None if errors is None else AxisSums.of(errors, w),
        class_sums=predictions.class_sums(rows, scored, w),
        forecast=None if columns is None else columns.summed(w),
        directions=None if turned is None else DirectionSums.of(turned, w),
    )
