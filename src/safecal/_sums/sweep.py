"""One pass over the rows: their sums by bin and by group, and all that a Tally holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from .._checks.arrays import block
from .._kernels.compiled import Sums, available, runs
from .._kernels.spectrum import coarse_confidences, coarse_spreads, top_moments
from .._types import AnyArray, FloatArray, IndexArray
from .causes import Axes, ClassSums
from .cells import Cells, WeightedCells
from .cluster_pairs import Clustered, Clustering
from .directions import DirectionSums
from .drawn import DrawSums
from .forecasts import ForecastSums, VectorSums
from .histogram import counted
from .nodes import Nodes, Spectrum, node_sums
from .ordered import Ordered
from .scored import added_up, completed, possible_weight, summed
from .splits import EVERY, Part, Split, by_key, occurring
from .summary import COLUMN, Summary
from .table import Table

if TYPE_CHECKING:
    from ..families.predictions import Predictions

__all__ = ["sweep", "sweep_all", "tabulate"]

_T = TypeVar("_T")
_LARGE = 32  # blocks of rows from which several threads pay; those of the compiled kernel are four times as long
_THREADS = min(4, os.cpu_count() or 1)  # results do not depend on it


def sweep(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> tuple[Summary, list[Table]]:
    """Sum all rows, and the rows by the keys of each split, in one pass."""

    def one(rows: slice) -> list[Part]:
        quick = _quick(predictions, splits, rows, weight)
        return _scored(predictions, splits, rows, weight) if quick is None else quick

    totals = [np.zeros((split.size, len(COLUMN))) for split in splits] or [np.zeros((1, len(COLUMN)))]
    for parts in in_order(one, predictions, weight is None):
        for total, part in zip(totals, parts, strict=True):
            total[part.keys] += part.sums
    if not splits:
        return added_up(totals[0]), []
    for total in totals:
        total.flags.writeable = False  # so that a table need not copy it
    tables = [split.table(total) for split, total in zip(splits, totals, strict=True)]
    return tables[0].total, tables


def in_order(one: Callable[[slice], _T], predictions: Predictions, quick: bool) -> Iterator[_T]:
    """Apply a function to every block; on threads where that pays, and in the order of the blocks."""
    blocks = list(predictions.row_blocks(quick))
    if len(blocks) < (_LARGE // 4 if quick else _LARGE) or not available():
        yield from map(one, blocks)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(one, blocks)


def _quick(
    predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None
) -> list[Part] | None:
    """Sum a block by the compiled kernel; None where it does not serve these rows."""
    out: list[Part] = []
    each: Sequence[Split | None] = splits or [None]
    w = None if weight is None else block(weight, rows)
    for split in each:
        found = quick_part(predictions, split, rows, w)
        if found is None:
            return None
        out.append(found[0])
    return out


def quick_part(
    predictions: Predictions,
    split: Split | None,
    rows: slice,
    weight: FloatArray | None,
    *,
    spectrum: bool = False,
    nodes: bool = False,
) -> tuple[Part, Sums] | None:
    """Sum a block by one split, or all together, by the compiled kernel; None where it does not serve these rows.

    ``nodes`` asks for the nodes of a split by group, too.
    """
    edges = None if split is None else split.edges
    index = None if split is None or edges is not None else split.before(rows)
    if split is not None and edges is None and index is None:
        return None
    keys: slice | IndexArray = EVERY
    size = 1 if split is None else split.size
    if index is not None:
        keys, index, size = occurring(index, size)
    bin_on = "probability" if split is None else split.bin_on
    nodes = nodes and split is not None and split.groups
    sums = predictions.quick_sums(
        rows, weight, keys=size, edges=edges, bin_on=bin_on, index=index, spectrum=spectrum, nodes=nodes
    )
    return None if sums is None else (Part(keys, completed(sums.by_key)), sums)


def _scored(predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None) -> list[Part]:
    """Sum a block by its scored rows. Those whose first keys are known beforehand are scored in their order."""
    first = splits[0] if splits else None
    known = None if first is None else first.before(rows)
    if first is None or known is None:
        scored, w = predictions.weighted(rows, weight)
        return [by_key(scored, w, s, rows) for s in splits] or [Part(EVERY, summed(scored, w))]
    keys, known, size = occurring(known, first.size)
    order, sorted_runs = runs(known, size)
    where = rows.start + order
    scored, w = predictions.weighted(where, weight)
    return [Part(keys, summed(scored, w, sorted_runs, size)), *(by_key(scored, w, s, where) for s in splits[1:])]


def tabulate(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> list[Table]:
    """Sum the rows by the keys of each split."""
    return sweep(predictions, splits, weight)[1]


class _Block(NamedTuple):
    """What a block of rows gives."""

    parts: list[Part]
    certain: int
    decimals: int
    spectrum: Spectrum | None
    cells: FloatArray | None  # of a histogram
    ordered: Ordered | None
    top: Cells | None
    clusters: Clustered | None
    nodes: Part | None
    axes: Axes | None = None
    class_sums: ClassSums | None = None
    forecast: ForecastSums | VectorSums | DrawSums | None = None
    directions: DirectionSums | None = None


@dataclass(slots=True)
class Swept:
    """What one pass over rows gives."""

    sums: list[FloatArray]
    certain: int
    decimals: int
    spectrum: Spectrum | None
    cells: FloatArray | None  # of a histogram
    ordered: Ordered | None
    top: Cells | None
    clustering: Clustering | None
    nodes: FloatArray | None = None
    axes: Axes | None = None
    class_sums: ClassSums | None = None
    forecast: ForecastSums | VectorSums | DrawSums | None = None
    directions: DirectionSums | None = None

    def absorb(self, new: _Block, first: bool) -> None:
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
    def one(rows: slice) -> _Block:
        quick = _quick_block(predictions, splits, rows, weight) if clustering is None else None
        return _scored_block(predictions, splits, rows, weight, clustering) if quick is None else quick

    sizes = [split.size for split in splits] or [1]
    total = Swept([np.zeros((size, len(COLUMN))) for size in sizes], 0, 0, None, None, None, None, clustering)
    for k, new in enumerate(in_order(one, predictions, weight is None and clustering is None)):
        total.absorb(new, k == 0)
    for sums in total.sums:
        sums.flags.writeable = False  # so that a table need not copy it
    return total


def _quick_block(
    predictions: Predictions, splits: Sequence[Split], rows: slice, weight: AnyArray | None
) -> _Block | None:
    """Sum a block by the compiled kernel; None where it does not serve these rows."""
    if weight is not None:
        return None
    parts: list[Part] = []
    found: _Block | None = None
    nodes: Part | None = None
    each: Sequence[Split | None] = splits or [None]
    for split in each:
        one = quick_part(predictions, split, rows, None, spectrum=not parts, nodes=True)
        if one is None:
            return None
        part, sums = one
        parts.append(part)
        nodes = None if sums.nodes is None else Part(part.keys, sums.nodes)
        if found is None:
            assert sums.spectrum is not None
            decimals = predictions.decimals(rows) if sums.certain else 0
            found = _Block(parts, sums.certain, decimals, Cells(sums.spectrum), None, None, None, None, None)
    assert found is not None
    return found._replace(nodes=nodes)


def _scored_block(
    predictions: Predictions,
    splits: Sequence[Split],
    rows: slice,
    weight: AnyArray | None,
    clustering: Clustering | None,
) -> _Block:
    """Sum a block by its scored rows."""
    scored, w, (spectrum, near, order, nodes, coarse) = predictions.scored_with_spectrum(rows, weight)
    parts = [by_key(scored, w, split, rows) for split in splits] or [Part(EVERY, summed(scored, w))]
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
        found, index = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[order]
        ordered = Ordered(predictions.ordered_on, found, summed(scored, w, index, len(found)))
    top = None
    if w is None and isinstance(spectrum, Nodes) and scored.confidence is not None and scored.correct is not None:
        top = Cells(top_moments(scored.confidence, scored.correct))
    certain = predictions.certain(rows)
    decimals = predictions.decimals(rows) if certain else 0
    at_nodes = None
    if nodes is not None and splits and splits[-1].groups:
        keys, index, size = occurring(splits[-1].index(scored, rows), splits[-1].size)
        wrong = np.zeros(len(scored)) if scored.correct is None else ~np.asarray(scored.correct, dtype=bool)
        at_nodes = Part(keys, node_sums(nodes(), possible_weight(scored, w), w, wrong, index, size))
    errors = predictions.axis_errors(rows)
    axes = None if errors is None else Axes.of(errors, w)
    classes = predictions.class_sums(rows, scored, w)
    columns = predictions.forecast_columns(rows)
    forecast = None if columns is None else columns.summed(w)
    turned = predictions.direction_columns(rows)
    return _Block(
        parts, certain, decimals, spectrum, cells, ordered, top, clusters, at_nodes, axes, classes, forecast,
        None if turned is None else DirectionSums.of(turned, w),
    )  # fmt: skip
