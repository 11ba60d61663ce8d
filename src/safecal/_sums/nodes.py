"""The spectrum of rows with more than two outcomes: their log-partition at a few inverse temperatures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._kernels.spectrum import NODES
from .._types import FloatArray

__all__ = ["Nodes"]

_OTHERS = ("surprises", "classes", "heaviest")
_COLUMNS = 6  # w times R and its three derivatives; w**2 times the second, w**3 times the third


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
        same = all(getattr(self, name) == getattr(other, name) for name in _OTHERS)
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Nodes({self.surprises} surprises)"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        sums = [[documents.number(x) for x in row] for row in self.sums.tolist()]
        return documents.document("nodes", {"sums": sums} | {name: getattr(self, name) for name in _OTHERS})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        found = documents.read("nodes", document, _FIELDS)
        sums = np.array(found.pop("sums"), dtype=np.float64)
        if found["classes"] and ((sums[:, [0, 2, 4]] < 0.0).any() or (sums[:, 1] > 0.0).any()):
            documents.refuse("must have sums that fall, and ever more slowly, as classes have them")
        return cls(sums, **found)


_FIELDS: dict[str, Any] = {
    "sums": documents.list_of(documents.list_of(documents.numbers, _COLUMNS, _COLUMNS), len(NODES), len(NODES)),
    "surprises": documents.count(),
    "classes": documents.flag,
    "heaviest": documents.between(0.0),
}
