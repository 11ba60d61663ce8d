"""Sums by cell of the predictions in their order: what ranges are unions of. They merge with ``+``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._kernels.spectrum import (
    BY_CLASS,
    CONFIDENCES,
    SPREADS,
    coarse_confidences,
    coarse_spreads,
    confidence_ends,
    spread_ends,
)
from .._types import AnyArray, FloatArray
from ..errors import MergeError
from .cells import Order
from .summary import COLUMN, LIKE, OPTIONAL, ZERO, completed, incoherent

__all__ = ["Ordered"]


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
        orders = [Order(self.on, None, ends[used], ends[used + 1], total, coarse(used))]
        names = np.unique(label).tolist()
        if len(names) > 1:
            for name in names:
                of_class = label == name
                sums, numbers = self.sums[of_class], coarse(self.keys[of_class])
                orders.append(Order(self.on, name, ends[cell[of_class]], ends[cell[of_class] + 1], sums, numbers))
        return orders

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: cells by their number. Columns that equal another are written once."""
        names = self._columns()
        rows = self.sums[:, [COLUMN[name] for name in names]].tolist()
        cells = {
            str(key): [documents.number(x) for x in row] for key, row in zip(self.keys.tolist(), rows, strict=True)
        }
        return documents.document("ordered", {"on": self.on, "columns": names, "cells": cells})

    def _columns(self) -> list[str]:
        """Return the columns that are written."""
        return [name for name in COLUMN if name not in _FOLLOW or not self._follows(name)]

    def _follows(self, name: str) -> bool:
        """Tell whether a column is what `completed` makes of the others."""
        like = _FOLLOW[name]
        column = self.sums[:, COLUMN[name]]
        if like is None:
            return not column.any() if name in ZERO else bool(np.isnan(column).all())
        return np.array_equal(column, self.sums[:, COLUMN[like]])

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        readers = {
            "on": documents.choice("confidence", "spread", "width", "perplexity"),
            "columns": documents.list_of(documents.choice(*COLUMN)),
            "cells": documents.by_number(documents.list_of(documents.numbers), CONFIDENCES * BY_CLASS),
        }
        fields = documents.read("ordered", document, readers)
        on, names, cells = fields["on"], fields["columns"], dict(sorted(fields["cells"].items()))
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
        ordered = cls(on, np.array(list(cells), dtype=np.int64), sums)
        documents.every([(names == ordered._columns(), "must have no `columns` that follow from others")])
        return ordered


_NEEDED = {
    "n",
    "sum_excess",
    "sum_excess2_weight2",
    "sum_excess3_weight3",
    "sum_varentropy",
    "sum_third_cumulant_weight3",
}
# What a column equals where rows have no weights, or where there is nothing to sum.
_FOLLOW: dict[str, str | None] = {
    "weight": "n",
    **LIKE,
    **dict.fromkeys(ZERO),
    **dict.fromkeys(("sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct", "sum_brier")),
}
