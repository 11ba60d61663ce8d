"""Columns to sums, overall or by key."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._types import AnyArray, FloatArray, IndexArray
from .compiled import key_sums

__all__ = ["Runs", "column_sums", "counts", "runs", "uniform_index"]


class Runs(NamedTuple):
    """Where each key begins in rows that stand sorted by key."""

    starts: IndexArray  # of the keys that occur
    keys: IndexArray  # the keys that occur
    counts: IndexArray  # of every key


def runs(index: IndexArray, size: int) -> tuple[IndexArray, Runs]:
    """Return an order that sorts rows by key, and where each key then begins.

    Summing runs of sorted rows is several times faster than summing by key, and small integers sort in linear time: it
    pays when the rows are sorted before the columns are computed from them.
    """
    small = index.astype(np.uint8 if size <= 256 else np.uint16 if size <= 65_536 else np.intp)
    found = np.bincount(index, minlength=size)
    keys = np.flatnonzero(found)
    starts = (np.cumsum(found) - found)[keys]
    return small.argsort(kind="stable"), Runs(starts, keys, found)


def column_sums(columns: Sequence[AnyArray], index: IndexArray | Runs | None, size: int) -> FloatArray:
    """Sum each column over the rows of each key: a (size, columns) array.

    ``index`` numbers the key of each row, or tells the runs of sorted rows; None puts all rows under key 0.
    """
    out = np.zeros((size, len(columns)))
    for j, column in enumerate(columns):
        if index is None:
            out[:, j] = column.sum(dtype=np.float64)
        elif isinstance(index, Runs):
            out[index.keys, j] = np.add.reduceat(column, index.starts, dtype=np.float64)
        else:
            found = key_sums(column, index, size)
            out[:, j] = np.bincount(index, weights=column, minlength=size) if found is None else found
    return out


def counts(rows: int, index: IndexArray | Runs | None, size: int) -> FloatArray:
    """Count the rows of each key."""
    if index is None:
        return np.full(size, float(rows))
    found = index.counts if isinstance(index, Runs) else np.bincount(index, minlength=size)
    return found.astype(np.float64)


def uniform_index(values: FloatArray, edges: FloatArray) -> IndexArray:
    """Number the bin of each value for equally spaced ``edges``: the result of a binary search, found by division.

    The quotient can miss by one only next to an edge; those few values are searched for.
    """
    bins = len(edges) - 1
    step = (edges[-1] - edges[0]) / bins
    scaled = (values - edges[0]) / step
    rounding = 1e-9 * bins + 4.0 * np.spacing(np.abs(edges).max()) / step
    index: IndexArray = scaled.astype(np.intp)
    np.subtract(scaled, np.rint(scaled), out=scaled)
    near = np.flatnonzero(np.abs(scaled, out=scaled) < rounding)
    if near.size:
        index[near] = np.searchsorted(edges, values[near], side="right") - 1
    np.minimum(index, bins - 1, out=index)
    return index
