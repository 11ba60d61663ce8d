"""Rows to tables, in one pass over the data."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar, final, get_args

import numpy as np

from .._checks.arrays import block
from .._checks.columns import choice, group_codes
from .._checks.message import fail, show
from .._kernels.compiled import Sums, available
from .._kernels.sums import runs
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Rows, Strategy
from ..errors import BinsError, OptionError, UnavailableError
from .bins import Bins
from .scored import Scored
from .summary import COLUMN, Summary, added_up, completed, summed
from .table import Table, bin_keys

if TYPE_CHECKING:
    from ..families.predictions import Predictions


__all__ = [
    "EVERY",
    "Part",
    "Split",
    "binned_values",
    "bins_for",
    "by_bin",
    "by_group",
    "by_key",
    "in_order",
    "occurring",
    "quick_part",
    "sweep",
    "tabulate",
]

_T = TypeVar("_T")


@final
@dataclass(frozen=True, slots=True)
class Split:
    """How rows fall under keys, and the table that results.

    ``index`` numbers the keys of scored rows; ``before`` does so for rows not scored yet, or returns None. ``edges``
    are those of uniform bins of ``bin_on``, where the compiled kernel makes them. ``groups`` is whether the keys are
    groups, which have a temperature each.
    """

    size: int
    index: Callable[[Scored, Rows], IndexArray]
    before: Callable[[slice], IndexArray | None]
    table: Callable[[FloatArray], Table]
    edges: FloatArray | None = None
    bin_on: str = "probability"
    groups: bool = False


class Part(NamedTuple):
    """The sums of a block: of all keys, or of those that occur in it."""

    keys: slice | IndexArray
    sums: FloatArray


EVERY = slice(None)
_LARGE = 32  # blocks of rows from which the compiled kernel runs on several threads
_THREADS = min(4, os.cpu_count() or 1)  # results do not depend on it


def sweep(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> tuple[Summary, list[Table]]:
    """Sum all rows, and the rows by the keys of each split, in one pass."""

    def one(rows: slice) -> list[Part]:
        quick = _quick(predictions, splits, rows, weight)
        return _scored(predictions, splits, rows, weight) if quick is None else quick

    totals = [np.zeros((split.size, len(COLUMN))) for split in splits] or [np.zeros((1, len(COLUMN)))]
    for parts in in_order(one, predictions):
        for total, part in zip(totals, parts, strict=True):
            total[part.keys] += part.sums
    if not splits:
        return added_up(totals[0]), []
    for total in totals:
        total.flags.writeable = False  # so that a table need not copy it
    tables = [split.table(total) for split, total in zip(splits, totals, strict=True)]
    return tables[0].total, tables


def in_order(one: Callable[[slice], _T], predictions: Predictions) -> Iterator[_T]:
    """Apply a function to every block; on threads where that pays, and in the order of the blocks."""
    blocks = list(predictions.row_blocks())
    if len(blocks) < _LARGE or not available():
        yield from map(one, blocks)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(one, blocks)


def occurring(index: IndexArray, size: int) -> tuple[slice | IndexArray, IndexArray, int]:
    """Number only the keys that occur, where there are more keys than rows: which they are, their numbers, how many."""
    if size <= len(index):
        return EVERY, index, size
    keys, index = np.unique(index, return_inverse=True)
    return keys, index, len(keys)


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


def by_key(scored: Scored, weight: FloatArray | None, split: Split, rows: Rows) -> Part:
    """Sum scored rows by the keys of a split."""
    keys, index, size = occurring(split.index(scored, rows), split.size)
    return Part(keys, summed(scored, weight, index, size))


def tabulate(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> list[Table]:
    """Sum the rows by the keys of each split."""
    return sweep(predictions, splits, weight)[1]


def bins_for(
    predictions: Predictions, bins: int | Bins | str, bin_on: BinOn | None, strategy: Strategy
) -> tuple[Bins, BinOn]:
    """Return the bins, made from a number where need be, and what they bin on."""
    if not predictions.bin_choices:
        raise fail(OptionError, "bins", f"do not exist for {predictions.family} predictions", hint="leave `bins` out.")
    hint = None
    if bin_on == "probability":
        hint = "only two classes have a positive one; leave `bin_on` out."
    on = predictions.bin_choices[0] if bin_on is None else choice(bin_on, "bin_on", predictions.bin_choices, hint=hint)
    choice(strategy, "strategy", get_args(Strategy))
    if isinstance(bins, Bins):
        return bins, on
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
        hint = "for edges pass `bins=Bins.from_edges(edges)`."
        raise fail(BinsError, "bins", "must be a number of bins or a Bins", got=show(bins), hint=hint)
    if strategy == "quantile":
        return Bins.quantile(np.concatenate([binned_values(s, on) for s in predictions.blocks()]), int(bins)), on
    return Bins.uniform(int(bins), *predictions.bin_range(on)), on


def binned_values(scored: Scored, bin_on: str) -> FloatArray:
    """Return the column that rows are binned on."""
    column = {"probability": scored.predicted, "confidence": scored.confidence, "entropy": scored.entropy}[bin_on]
    if column is None:
        raise UnavailableError(f"rows cannot be binned on {bin_on}: these predictions have none.")
    return column


def by_bin(predictions: Predictions, bins: Bins, bin_on: str) -> Split:
    """Split rows by bin."""
    low, high = bins.edges[0], bins.edges[-1]
    most = predictions.bin_range(bin_on)[1] if predictions.binned_by_default else math.inf

    def index(scored: Scored, rows: Rows) -> IndexArray:
        # Rows that sum to 1 up to rounding have entropies that exceed their own bound by as much.
        values = np.minimum(binned_values(scored, bin_on), most)
        if bin_on == "entropy" and math.isfinite(high):  # the last digit of an entropy may exceed its own bound
            slack = 1e-12 * max(abs(low), abs(high))
            values = np.where((values > high) & (values <= high + slack), high, values)
            values = np.where((values < low) & (values >= low - slack), low, values)
        return bins.index(values)

    def before(rows: slice) -> IndexArray | None:
        values = predictions.known_value(bin_on, rows)
        return None if values is None else bins.index(values)

    top = bin_on != "probability"
    edges = None
    if bins.equal_width and bin_on in predictions.quick_bins:
        least = predictions.bin_range(bin_on)[0]
        edges = np.array(bins.edges) if low <= least and most <= high else None
    return Split(len(bins), index, before, lambda found: Table(bin_on, bin_keys(bins), found, bins, top), edges, bin_on)


def by_group(predictions: Predictions, by: ArrayLike) -> Split:
    """Split rows by the values of a column, or of several."""
    name, keys, codes = group_codes(by, predictions.n, predictions.outcome)
    top = "probability" not in predictions.bin_choices
    # Rows that are scored by their numbers can be put in the order of their groups first.
    early = bool(predictions.quick_bins)
    return Split(
        len(keys),
        lambda scored, rows: codes[rows],
        lambda rows: codes[rows] if early else None,
        lambda found: Table(name, keys, found, None, top),
        groups=True,
    )
