"""Sums by cell of the predictions in their order: what ranges are unions of. They merge with ``+``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._kernels.compiled import POINT_SUMS, point_sums
from .._kernels.spectrum import (
    BY_CLASS,
    CONFIDENCES,
    SPREADS,
    coarse_confidences,
    coarse_odds,
    coarse_spreads,
    confidence_ends,
    spread_ends,
)
from .._types import AnyArray, FloatArray, IndexArray
from ..errors import MergeError
from .cells import Cells, Points, WeightedCells
from .scored import LIKE, completed
from .summary import COLUMN, OPTIONAL, incoherent

__all__ = ["Order", "Ordered", "order_of_cells"]


class Order(NamedTuple):
    """Cells one after the other, the ends of each, and their sums, as `summed` gives them."""

    on: str  # "probability", "confidence", "spread", "width" or "perplexity"
    label: int | None  # the class that is predicted in all of them, where it is one
    low: FloatArray
    high: FloatArray
    sums: FloatArray
    coarse: IndexArray  # the number of the coarse cell that each of them is in

    def coarsened(self) -> Order:
        """Return the coarse cells in their place."""
        if not len(self.coarse):
            return self
        first = np.flatnonzero(np.diff(self.coarse, prepend=-1))
        last = np.append(first[1:], len(self.coarse)) - 1
        with np.errstate(invalid="ignore", over="ignore"):
            sums = np.add.reduceat(self.sums, first, axis=0)
        return self._replace(low=self.low[first], high=self.high[last], sums=sums, coarse=self.coarse[first])


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ordered:
    """Sums of rows by predicted class and confidence, or by spread; cells that are not empty.

    Attributes
    ----------
    on : {"confidence", "spread", "width", "perplexity"}
        What the order is of.
    keys : ndarray of shape (cells,)
        Numbers of the cells, increasing.
    sums : ndarray of shape (cells, sums)
        Their sums; the columns are the attributes of a `Summary`, in their order.
    """

    on: str
    keys: AnyArray
    sums: FloatArray

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Ordered):
            return NotImplemented
        if self.on != other.on:
            raise MergeError(f"cells must be of the same order; these are of {self.on} and of {other.on}.")
        keys, index = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        total = np.zeros((len(keys), len(COLUMN)))
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(total, index, np.concatenate([self.sums, other.sums]))
        return type(self)(self.on, keys, total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ordered):
            return False
        same = self.on == other.on and np.array_equal(self.keys, other.keys)
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ordered({self.on}, {len(self)} cells)"

    def orders(self) -> list[Order]:
        """Return the cells in their order: all of them, and those of each predicted class."""
        ends = confidence_ends() if self.on == "confidence" else spread_ends()
        size = CONFIDENCES if self.on == "confidence" else SPREADS
        label, cell = np.divmod(self.keys, size)
        used, index = np.unique(cell, return_inverse=True)
        total = np.zeros((len(used), len(COLUMN)))
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(total, index, self.sums)
        coarse = coarse_confidences if self.on == "confidence" else coarse_spreads
        found = [Order(self.on, None, ends[used], ends[used + 1], total, coarse(used))]
        names = np.unique(label).tolist()
        if len(names) > 1:
            for name in names:
                here = label == name
                sums, numbers = self.sums[here], coarse(self.keys[here])
                found.append(Order(self.on, name, ends[cell[here]], ends[cell[here] + 1], sums, numbers))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: cells by their number. Columns that equal another are written once."""
        wanted = self._columns()
        rows = self.sums[:, [COLUMN[name] for name in wanted]].tolist()
        cells = {
            str(key): [documents.number(x) for x in row] for key, row in zip(self.keys.tolist(), rows, strict=True)
        }
        return documents.document("ordered", {"on": self.on, "columns": wanted, "cells": cells})

    def _columns(self) -> list[str]:
        """Return the columns that are written."""
        return [name for name in COLUMN if name not in _FOLLOW or not self._follows(name)]

    def _follows(self, name: str) -> bool:
        """Tell whether a column is what `completed` makes of the others."""
        like = _FOLLOW[name]
        column = self.sums[:, COLUMN[name]]
        if like is None:
            return not column.any() if name in _ZERO else bool(np.isnan(column).all())
        return np.array_equal(column, self.sums[:, COLUMN[like]])

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = {
            "on": documents.choice("confidence", "spread", "width", "perplexity"),
            "columns": documents.list_of(documents.choice(*COLUMN)),
            "cells": documents.by_number(documents.list_of(documents.numbers), CONFIDENCES * BY_CLASS),
        }
        found = documents.read("ordered", document, fields)
        on, names, cells = found["on"], found["columns"], dict(sorted(found["cells"].items()))
        documents.every((
            (names == [name for name in COLUMN if name in set(names)], "must have `columns` in their order, each once"),
            (set(names) >= _NEEDED, f"must have the `columns` {', '.join(sorted(_NEEDED))}"),
            (all(len(row) == len(names) for row in cells.values()), "must have a number for each of its `columns`"),
            (on == "confidence" or max(cells, default=0) < SPREADS, f"must have cells of spread below {SPREADS}"),
        ))  # fmt: skip
        columns = np.array(list(cells.values()), dtype=np.float64).reshape(len(cells), len(names)).T
        sums = completed(dict(zip(names, columns, strict=True)))
        missing = np.isnan(sums)
        wrong = incoherent(sums)
        documents.every((
            (bool((sums[:, 0] >= 1.0).all()), "must have rows in each of its `cells`"),
            (not missing[:, :OPTIONAL].any(), "must have all sums in its `cells`"),
            (bool((missing.all(axis=0) | ~missing.any(axis=0)).all()), "must have the same sums in all of its `cells`"),
            (wrong is None, "" if wrong is None else wrong[1]),
        ))  # fmt: skip
        made = cls(on, np.array(list(cells), dtype=np.int64), sums)
        documents.every([(names == made._columns(), "must have no `columns` that follow from others")])
        return made


_NEEDED = {
    "n",
    "sum_excess",
    "sum_excess2_weight2",
    "sum_excess3_weight3",
    "sum_varentropy",
    "sum_third_cumulant_weight3",
}
_ZERO = ("n_impossible", "weight_impossible", "sum_numerical_variance_weight2")
# What a column equals where rows have no weights, or where there is nothing to sum.
_FOLLOW: dict[str, str | None] = {
    "weight": "n",
    "weight2": "weight",
    "weight3": "weight",
    "sum_excess_weight2": "sum_excess",
    "sum_excess_weight3": "sum_excess",
    "sum_excess2_weight3": "sum_excess2_weight2",
    "sum_varentropy_weight2": "sum_varentropy",
    **dict.fromkeys(_ZERO),
    **dict.fromkeys(("sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct", "sum_brier")),
}


def order_of_cells(spectrum: Cells | WeightedCells) -> Order:
    """Return two-class rows in the order of their probability; each side of one half has cells of its own."""
    points = spectrum.points()
    weighted = isinstance(spectrum, WeightedCells)
    low, high, coarse = _places(weighted)
    cells = len(low) // 2
    quick = None if weighted else point_sums(points.L, points.n, points.wrong, points.positive, points.cell)
    if quick is not None:
        used, found = quick
        sums = found.take(_FROM, axis=1)  # what `completed` does, of so many places a good deal faster
        sums[:, _NONE] = 0.0
        sums[:, COLUMN["sum_brier"]] = np.nan
    else:
        place = np.where(points.positive, cells + points.cell, cells - 1 - points.cell)
        occurs = np.bincount(place, minlength=2 * cells) > 0
        used = np.flatnonzero(occurs)
        sums = _sums_of_points(points, (np.cumsum(occurs) - 1)[place], len(used))
    return Order("probability", None, low[used], high[used], sums, coarse[used])


_FROM = [POINT_SUMS.index(name if name in POINT_SUMS else LIKE.get(name, "weight")) for name in COLUMN]
_NONE = [COLUMN[name] for name in _ZERO]


@cache
def _places(weighted: bool) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return the probabilities between which the cells of both sides lie, in their order, and their coarse cells."""
    ends = WeightedCells.ends() if weighted else Cells.ends()
    above, below = special.expit(ends), special.expit(-ends)
    cell = np.arange(len(ends) - 1)
    coarse = [coarse_odds(cell, np.full(len(cell), side), weighted=weighted) for side in (False, True)]
    return (
        np.concatenate([below[1:][::-1], above[:-1]]),
        np.concatenate([below[:-1][::-1], above[1:]]),
        np.concatenate([coarse[0][::-1], coarse[1]]),
    )


def _sums_of_points(points: Points, index: IndexArray, size: int) -> FloatArray:
    """Sum points by the number of their place: the formulas of `kernels.bernoulli`, in the log-odds."""
    L, w, n, wrong, positive, _ = points
    weighted = bool((w != 1.0).any())
    small = np.exp(-L)
    likely = 1.0 / (1.0 + small)
    q = small * likely
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(q == 0.0, 0.0, L * q)
        spread = mean * np.where(mean == 0.0, 0.0, L * likely)
        third = np.where(spread == 0.0, 0.0, spread * (L * (likely - q)))
        e = np.where(wrong, L, 0.0) - mean
        nw = n * w if weighted else n
        nw2 = nw * w if weighted else nw
        nw3 = nw2 * w if weighted else nw
        ne = nw * e
        e2 = nw2 * (e * e)
        confidence = nw * likely
        columns = {
            "weight": nw,
            "sum_excess": ne,
            "sum_excess2_weight2": e2,
            "sum_excess3_weight3": e2 * e * w if weighted else e2 * e,
            "sum_varentropy": nw * spread,
            "sum_third_cumulant_weight3": nw3 * third,
            "sum_entropy": nw * (np.log1p(small) + mean),
            "sum_predicted": np.where(positive, confidence, nw * q),
            "sum_observed": nw * (wrong != positive),
            "sum_confidence": confidence,
            "sum_correct": nw * ~wrong,
        }
        if weighted:  # else they are equal to others
            columns |= {
                "n": n,
                "weight2": nw2,
                "weight3": nw3,
                "sum_excess_weight2": nw2 * e,
                "sum_excess_weight3": nw3 * e,
                "sum_excess2_weight3": w * e2,
                "sum_varentropy_weight2": nw2 * spread,
            }
        sums: dict[str, FloatArray] = {
            name: np.bincount(index, weights=column, minlength=size).astype(np.float64, copy=False)
            for name, column in columns.items()
        }
    sums.setdefault("n", sums["weight"])
    return completed(sums)
