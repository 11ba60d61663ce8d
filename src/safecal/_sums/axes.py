"""Errors of states along each axis, in units of the spread that was stated. They merge with ``+``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray

__all__ = ["Axes"]

_CLOSE = 1.0 + 1e-6  # what rounding may do to sums
_COLUMNS = 4  # w, w**2, w u, w u**2


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axes:
    """Sums of the errors of states, over the standard deviation stated for their axis; impossible rows are left out.

    Attributes
    ----------
    sums : ndarray of shape (d, 4)
        For each axis the sums of ``w``, ``w**2``, ``w`` times the error, and ``w`` times its square.
    """

    sums: FloatArray

    @classmethod
    def of(cls, errors: FloatArray, weight: FloatArray | None) -> Self:
        """Sum errors of shape (n, d); rows with an error that is not finite are left out."""
        with np.errstate(over="ignore"):
            possible = np.isfinite(errors * errors).all(axis=1)
        u = errors[possible]
        w = np.ones(len(u)) if weight is None else weight[possible]
        flat = np.full((u.shape[1], 1), 1.0)
        return cls(np.column_stack([flat * w.sum(), flat * (w @ w), w @ u, w @ (u * u)]))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Axes):
            return NotImplemented
        with np.errstate(over="ignore"):
            return type(self)(self.sums + other.sums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axes) and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Axes({len(self.sums)} axes)"

    @property
    def shift(self) -> FloatArray:
        """Mean error of each axis, in standard deviations that were stated."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sums[:, 2] / self.sums[:, 0])

    @property
    def factor(self) -> FloatArray:
        """Variance of the errors about their mean, over the one that was stated."""
        with np.errstate(all="ignore"):
            return np.asarray(np.maximum(self.sums[:, 3] / self.sums[:, 0] - self.shift**2, 0.0))

    @property
    def rows(self) -> FloatArray:
        """How many rows of equal weight say as much."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sums[:, 0] ** 2 / self.sums[:, 1])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("axes", {"sums": [[documents.number(x) for x in row] for row in self.sums.tolist()]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        row = documents.list_of(documents.between(infinite=True), _COLUMNS, _COLUMNS)
        found = documents.read("axes", document, {"sums": documents.list_of(row, 1)})
        sums = np.array(found["sums"], dtype=np.float64)
        w, w2, u, u2 = sums.T
        with np.errstate(all="ignore"):
            possible = (w >= 0.0) & (w2 >= 0.0) & (w2 <= w * w * _CLOSE) & (u2 >= 0.0)
            possible &= np.abs(u) <= np.sqrt(w) * np.sqrt(u2) * _CLOSE
        if not possible.all():
            documents.refuse("must have sums that some weights and errors have")
        return cls(sums)
