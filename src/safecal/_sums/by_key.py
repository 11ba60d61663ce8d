"""Scored rows to sums by key, and such sums put together. They are arrays: a million keys are no burden."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._kernels.sums import Runs, column_sums, counts
from .._types import FloatArray, IndexArray
from .scored import Scored
from .summary import COLUMN, OF_CLASSES, OPTIONAL, Summary

__all__ = ["Together", "added", "added_up", "completed", "merged", "summaries", "summed", "union"]


def _information(s: Scored, w: FloatArray | None) -> dict[str, Any]:
    """Return the columns in nats to sum, by the name of their sum; impossible rows give 0."""
    e, v, k3, h, nv = s.excess, s.varentropy, s.third_cumulant, s.entropy, s.numerical_variance
    impossible = s.impossible
    columns: dict[str, Any] = {"n_impossible": None, "weight_impossible": None}
    w2: FloatArray | None = None
    if impossible.any():
        columns |= {"n_impossible": impossible, "weight_impossible": impossible if w is None else impossible * w}
        e, v, k3 = (np.where(impossible, 0.0, x) for x in (e, v, k3))
        h = None if h is None else np.where(impossible, 0.0, h)
        nv = None if nv is None else np.where(impossible, 0.0, nv)
        w = (~impossible).astype(np.float64) if w is None else np.where(impossible, 0.0, w)
    if w is None:
        e2 = e * e
        columns |= {"sum_excess": e, "sum_excess2_weight2": e2, "sum_excess3_weight3": e2 * e}
        columns |= {"sum_varentropy": v, "sum_third_cumulant_weight3": k3}
    else:
        w2 = w * w
        we = w * e
        we2 = we * we
        columns |= {"weight2": w2, "weight3": w2 * w}
        columns |= {"sum_excess": we, "sum_excess_weight2": w * we, "sum_excess_weight3": w2 * we}
        columns |= {"sum_excess2_weight2": we2, "sum_excess2_weight3": w * we2, "sum_excess3_weight3": we2 * we}
        columns |= {
            "sum_varentropy": w * v,
            "sum_varentropy_weight2": w2 * v,
            "sum_third_cumulant_weight3": w2 * w * k3,
        }
        h = None if h is None else w * h
        nv = None if nv is None else w2 * nv
    if h is not None:
        columns["sum_entropy"] = h
    if nv is not None:
        columns["sum_numerical_variance_weight2"] = nv
    return columns


def summed(
    scored: Scored, weight: FloatArray | None = None, index: IndexArray | Runs | None = None, size: int = 1
) -> FloatArray:
    """Sum a block by key, as a ``(size, sums)`` array that `summaries` reads; absent sums are NaN.

    ``index`` numbers the key of each row, or tells the runs of rows sorted by key. Arrays of the same keys add up.
    """
    with np.errstate(over="ignore"):  # the square of an excess beyond 1e154 is infinite; the excess itself is not
        columns = {name: c for name, c in _information(scored, weight).items() if c is not None}
    for name in OF_CLASSES:
        column = getattr(scored, name)
        if column is not None:
            columns[f"sum_{name}"] = column if weight is None else weight * column
    if weight is not None:
        columns["weight"] = weight
    sums = dict(zip(columns, column_sums(list(columns.values()), index, size).T, strict=True))
    sums["n"] = counts(len(scored), index, size)
    return completed(sums)


def completed(sums: dict[str, FloatArray]) -> FloatArray:
    """Arrange sums by key as `summaries` reads them, and add those that follow where rows have no weights."""
    sums.setdefault("weight", sums["n"])
    found = np.empty((len(sums["n"]), len(COLUMN)))
    for k, name in enumerate(COLUMN):
        column = sums.get(name)
        found[:, k] = sums.get(_LIKE.get(name, ""), _ABSENT.get(name, math.nan)) if column is None else column
    return found


# Without weights, every power of a weight is 1; what is absent is 0 or NaN.
_LIKE = {
    "weight2": "weight",
    "weight3": "weight",
    "sum_excess_weight2": "sum_excess",
    "sum_excess_weight3": "sum_excess",
    "sum_excess2_weight3": "sum_excess2_weight2",
    "sum_varentropy_weight2": "sum_varentropy",
}
_ABSENT = dict.fromkeys(("n_impossible", "weight_impossible", "sum_numerical_variance_weight2"), 0.0)


def summaries(sums: FloatArray) -> tuple[Summary, ...]:
    """Turn each row of a `summed` array into a Summary."""
    return tuple(_summary(row) for row in sums.tolist())


def _summary(row: Sequence[float]) -> Summary:
    if row[0] == 0.0:
        return Summary()
    optional = (None if x != x else x for x in row[OPTIONAL:])
    return Summary(int(row[0]), int(row[1]), *row[2:OPTIONAL], *optional)


def added_up(sums: FloatArray) -> Summary:
    """Add up the rows of a `summed` array."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _summary(sums.sum(axis=0).tolist())


Keys = tuple[Hashable, ...]
Together = tuple[Keys, IndexArray]


def merged(keys: Keys, rows: FloatArray, others: Keys, more: FloatArray) -> tuple[Keys, FloatArray]:
    """Return all keys of two sides, those of the first first, and the sums of both; no key may come twice in a side."""
    together = union(keys, others)
    return together[0], added(rows, more, together)


def added(rows: FloatArray, more: FloatArray, together: Together) -> FloatArray:
    """Add up the sums of two sides, by what `union` says of their keys."""
    keys, index = together
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.zeros((len(keys), rows.shape[1]))
        out[: len(rows)] = rows
        out[index] += more
        return out


def union(keys: Keys, others: Keys) -> Together:
    """Return all keys of two sides, those of the first first, and the place of each of the others among them.

    Where both sides are alike, the first is returned itself.
    """
    if keys == others:
        return keys, np.arange(len(keys))
    places = {key: place for place, key in enumerate(keys)}
    index = np.fromiter((places.setdefault(key, len(places)) for key in others), dtype=np.intp, count=len(others))
    return tuple(places), index
