"""What stands for rows of more than two outcomes beside their sums: log-partitions, and cells in their order.

`Nodes` are sums of the log-partition at five temperatures, and `NodeTable` holds them by group. `Ordered` holds sums by
cell of the predictions in their order, of which ranges are made. All of them merge with ``+``.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._kernels.compiled import column_sums
from .._kernels.spectrum import (
    BY_CLASS,
    CONFIDENCES,
    NODES,
    SPREADS,
    coarse_confidences,
    coarse_spreads,
    confidence_ends,
    spread_ends,
)
from .._types import AnyArray, FloatArray, IndexArray
from ..errors import MergeError
from .cells import Cells, Order, WeightedCells
from .clusters import NEAR, Near
from .scored import Together, added, union
from .summary import COLUMN, LIKE, OPTIONAL, ZERO, added_rows, as_numbers, completed, incoherent

__all__ = ["AT_NEAR", "Cumulants", "NodeTable", "Nodes", "Ordered", "Partition", "Spectral", "Spectrum", "node_sums"]

AT_NEAR = [NODES.index(beta) for beta in NEAR]

_COLUMNS = 6  # w times R and its three derivatives; w**2 times the second, w**3 times the third
PLAIN = 4 * len(NODES)  # of each node R and its three derivatives
WEIGHTED = _COLUMNS * len(NODES) + 1  # of each node the six columns; w**2 of mistakes
_EARLY_CONFIDENCES = 128  # cells of confidences in documents that do not say how many there are


class Cumulants(NamedTuple):
    """``A(beta)``, the log of the sum or integral of ``p**beta``, and its first three derivatives, one value a row."""

    value: FloatArray
    mean: FloatArray
    variance: FloatArray
    third: FloatArray


# beta, one for all rows or one a row -> the cumulants at it
Partition = Callable[[AnyArray | float], Cumulants]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nodes:
    """Sums of ``R(beta) = -log p_beta(likeliest outcome)`` and its derivatives at beta = 1/4, 1/2, 1, 2 and 4.

    Impossible rows are left out. Nodes at which the log-partition of some row does not exist hold NaN.

    Attributes
    ----------
    sums : ndarray of shape (5, 6)
        For each node the sums of ``w`` times ``R`` and its first three derivatives, of ``w**2`` times the second, and
        of ``w**3`` times the third.
    surprises : int
        Rows whose outcome was less likely than another one.
    classes : bool
        Whether outcomes are classes, so that no ``R`` is negative.
    heaviest : float
        The largest weight.
    """

    sums: FloatArray
    surprises: int
    classes: bool = True
    heaviest: float = 1.0

    @classmethod
    def of(cls, rows: FloatArray, weight: FloatArray | None, surprises: int, *, classes: bool = True) -> Self:
        """Sum rows: an array of shape (5, 4, n), as `node_rows` gives it."""
        if weight is None:
            sums = rows.sum(axis=2)
            return cls(np.concatenate([sums, sums[:, 2:]], axis=1), surprises, classes)
        powers = np.stack([rows[:, 2] @ weight**2, rows[:, 3] @ weight**3], axis=1)
        sums = np.concatenate([rows @ weight, powers], axis=1)
        return cls(sums, surprises, classes, float(weight.max(initial=0.0)))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Nodes):
            return NotImplemented
        heaviest = max(self.heaviest, other.heaviest)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums + other.sums
        return type(self)(sums, self.surprises + other.surprises, self.classes, heaviest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nodes):
            return False
        return self._rest() == other._rest() and np.array_equal(self.sums, other.sums, equal_nan=True)

    def __repr__(self) -> str:
        return f"Nodes({self.surprises} surprises)"

    def _rest(self) -> dict[str, Any]:
        return {"surprises": self.surprises, "classes": self.classes, "heaviest": self.heaviest}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("nodes", {"sums": as_numbers(self.sums)} | self._rest())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = documents.read("nodes", document, _FIELDS)
        sums = np.array(fields.pop("sums"), dtype=np.float64)
        if fields["classes"] and ((sums[:, [0, 2, 4]] < 0.0).any() or (sums[:, 1] > 0.0).any()):
            documents.refuse("must have sums that classes can have")
        return cls(sums, **fields)


_FIELDS: dict[str, Any] = {
    "sums": documents.list_of(documents.list_of(documents.numbers, _COLUMNS, _COLUMNS), len(NODES), len(NODES)),
    "surprises": documents.count(),
    "classes": documents.flag,
    "heaviest": documents.between(0.0),
}


#: What tests, temperatures and bounds need of the rows beside their sums.
Spectrum = Cells | WeightedCells | Nodes


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeTable:
    """Sums of ``R(beta) = -log p_beta(likeliest outcome)`` and its derivatives at five nodes, by group.

    Impossible rows are left out of them. Tables merge with ``+``.

    Attributes
    ----------
    keys : tuple
        The groups.
    sums : ndarray of shape (keys, 20), with weights (keys, 31)
        For each node the sums of ``R`` and its first three derivatives. With weights, for each node the sums of ``w``
        times those, of ``w**2`` times the second and of ``w**3`` times the third; then the sum of ``w**2`` over the
        mistakes, impossible ones included.
    classes : bool
        Whether outcomes are classes, so that no ``R`` is negative.
    """

    keys: tuple[Hashable, ...]
    sums: FloatArray
    classes: bool = True
    _places: dict[Hashable, int] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.keys, self.sums, self.classes)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return bool(self.sums.shape[1] == WEIGHTED)

    @property
    def nodes(self) -> FloatArray:
        """The sums at the nodes, of shape (keys, 5, 6), as `Nodes` has them for all rows."""
        if self.weighted:
            return self.sums[:, :-1].reshape(len(self), len(NODES), 6)
        sums = self.sums.reshape(len(self), len(NODES), 4)
        return np.concatenate([sums, sums[:, :, 2:]], axis=2)

    @property
    def squared_mistakes(self) -> FloatArray | None:
        """The sum of the squared weights of mistakes by key; None without weights."""
        return self.sums[:, -1] if self.weighted else None

    def of(self, keys: tuple[Hashable, ...]) -> Self:
        """Return the table of some keys, in their order."""
        if keys == self.keys:
            return self
        if len(self._places) != len(self.keys):
            self._places.update((key, place) for place, key in enumerate(self.keys))
        return self.take(np.array([self._places[key] for key in keys], dtype=np.intp))

    def take(self, order: IndexArray) -> Self:
        """Return some of the keys, in the order of their places."""
        keys = tuple(map(self.keys.__getitem__, order.tolist()))
        return type(self)(keys, self.sums[order], self.classes)

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, NodeTable):
            return NotImplemented
        return self.plus(other, union(self.keys, other.keys))

    def plus(self, other: Self, together: Together) -> Self:
        """Add a table, given where its keys stand among those of both."""
        return type(self)(together[0], added(self.sums, other.sums, together), self.classes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeTable) or (self.keys, self.classes) != (other.keys, other.classes):
            return False
        return np.array_equal(self.sums, other.sums, equal_nan=True)

    def __repr__(self) -> str:
        return f"NodeTable({len(self)} keys)"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; keys keep their order."""
        numbered = zip(self.keys, as_numbers(self.sums), strict=True)
        rows = [{"key": documents.plain(key), "sums": sums} for key, sums in numbered]
        return documents.document("node_table", {"rows": rows, "classes": self.classes})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        row = documents.record({"key": documents.key, "sums": documents.list_of(documents.numbers)})
        readers = {"rows": documents.list_of(row, 1), "classes": documents.flag}
        fields = documents.read("node_table", document, readers)
        rows = fields["rows"]
        keys, widths = tuple(row["key"] for row in rows), {len(row["sums"]) for row in rows}
        with documents.at("rows"):
            if widths not in ({PLAIN}, {WEIGHTED}):
                documents.refuse(f"must all have {PLAIN} sums, or {WEIGHTED} where rows have weights")
            documents.distinct(keys)
        return cls(keys, np.array([row["sums"] for row in rows], dtype=np.float64), fields["classes"])


def node_sums(
    rows: FloatArray,
    possible: FloatArray | None,
    weight: FloatArray | None,
    wrong: AnyArray,
    index: IndexArray,
    size: int,
) -> FloatArray:
    """Sum rows by key, as `NodeTable` holds them, from an array of shape (5, 4, n), as `node_rows` gives it.

    ``possible`` are the weights with 0 for impossible rows, or None where all are 1; ``weight`` the weights themselves,
    where there are some; ``wrong`` says whether the outcome was not the likeliest one.
    """
    scaled = rows if possible is None else rows * possible
    if weight is None:
        return column_sums(list(scaled.reshape(PLAIN, -1)), index, size)
    assert possible is not None
    columns = []
    for node in scaled:
        columns += [*node, possible * node[2], possible * possible * node[3]]
    return column_sums([*columns, weight * weight * wrong], index, size)


class Spectral(NamedTuple):
    """The spectrum of some rows, where there is one, and what clusters of them need, made when it is asked for.

    ``order`` numbers the cell of each row in the order of the predictions, where the spectrum does not tell; where it
    does, ``coarse`` numbers the coarse one, with -1 for rows that are in none. ``nodes`` makes ``R`` and its
    derivatives at the nodes for each row, as `node_rows` gives them; Gaussian states need none.
    """

    spectrum: Spectrum | None
    near: Callable[[], Near] | None
    order: IndexArray | None = None
    nodes: Callable[[], FloatArray] | None = None
    coarse: Callable[[], IndexArray] | None = None


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
    size : int
        How many cells there are, of each predicted class if they are told apart: empty ones, too.
    """

    on: str
    keys: AnyArray
    sums: FloatArray
    size: int

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Ordered):
            return NotImplemented
        if self.on != other.on:
            raise MergeError(f"cells must be of the same order; these are of {self.on} and of {other.on}.")
        size = min(self.size, other.size)
        both = np.concatenate([x.keys // (x.size // size) for x in (self, other)])
        keys, index = np.unique(both, return_inverse=True)
        return type(self)(self.on, keys, added_rows(np.concatenate([self.sums, other.sums]), index, len(keys)), size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ordered):
            return False
        same = (self.on, self.size) == (other.on, other.size) and np.array_equal(self.keys, other.keys)
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    def __repr__(self) -> str:
        return f"Ordered({self.on}, {len(self)} cells)"

    def orders(self) -> list[Order]:
        """Return the cells in their order: all of them, and those of each predicted class."""
        of_classes = self.on == "confidence"
        ends = confidence_ends(self.size) if of_classes else spread_ends()

        def coarse(cells: IndexArray) -> IndexArray:
            return coarse_confidences(cells, self.size) if of_classes else coarse_spreads(cells)

        label, cell = np.divmod(self.keys, self.size)
        used, index = np.unique(cell, return_inverse=True)
        total = added_rows(self.sums, index, len(used))
        orders = [Order(self.on, None, ends[used], ends[used + 1], total, coarse(used))]
        names = np.unique(label).tolist()
        for name in names if len(names) > 1 else []:
            inside = label == name
            at = cell[inside]
            orders.append(Order(self.on, name, ends[at], ends[at + 1], self.sums[inside], coarse(self.keys[inside])))
        return orders

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: cells by their number. Columns that equal another are written once."""
        names = self._columns()
        rows = as_numbers(self.sums[:, [COLUMN[name] for name in names]])
        cells = dict(zip(map(str, self.keys.tolist()), rows, strict=True))
        return documents.document("ordered", {"on": self.on, "columns": names, "cells": cells, "size": self.size})

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
        fields = documents.read("ordered", document, readers, {"size": documents.count()})
        on, names, cells = fields["on"], fields["columns"], dict(sorted(fields["cells"].items()))
        of_classes = on == "confidence"
        early, now, labels = (_EARLY_CONFIDENCES, CONFIDENCES, BY_CLASS) if of_classes else (SPREADS, SPREADS, 1)
        size = fields.get("size", early)
        documents.every((
            (names == [name for name in COLUMN if name in set(names)], "must have `columns` in their order, each once"),
            (set(names) >= _NEEDED, f"must have the `columns` {', '.join(sorted(_NEEDED))}"),
            (all(len(row) == len(names) for row in cells.values()), "must have a number for each of its `columns`"),
            (size in (early, now), f"must have {now} cells of {on}"),
            (max(cells, default=0) < size * labels, f"must have cells of {on} below {size * labels}"),
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
        ordered = cls(on, np.array(list(cells), dtype=np.int64), sums, size)
        documents.every([(names == ordered._columns(), "must have no `columns` that can be computed from others")])
        return ordered


_NEEDED = {
    "n", "sum_excess", "sum_excess2_weight2", "sum_excess3_weight3", "sum_varentropy", "sum_third_cumulant_weight3",
}  # fmt: skip
# What a column equals where rows have no weights, or where there is nothing to sum.
_FOLLOW: dict[str, str | None] = {
    "weight": "n",
    **LIKE,
    **dict.fromkeys(ZERO),
    **dict.fromkeys(("sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct", "sum_brier")),
}
