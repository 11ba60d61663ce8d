"""What names a cause: errors of states along each axis, and classes as often as predicted and as happened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray, IndexArray

__all__ = ["MOST", "Axes", "ClassSums"]

_CLOSE = 1.0 + 1e-6  # what rounding may do to sums
_VANISHES = 1e-150  # an error whose square is no float
_OF_AXIS = 4  # w, w**2, w u, w u**2


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
        row = documents.list_of(documents.between(infinite=True), _OF_AXIS, _OF_AXIS)
        found = documents.read("axes", document, {"sums": documents.list_of(row, 1)})
        sums = np.array(found["sums"], dtype=np.float64)
        w, w2, u, u2 = sums.T
        with np.errstate(all="ignore"):
            possible = (w >= 0.0) & (w2 >= 0.0) & (w2 <= w * w * _CLOSE) & (u2 >= 0.0)
            possible &= np.abs(u) <= np.sqrt(w) * np.sqrt(u2) * _CLOSE + w * _VANISHES
        if not possible.all():
            documents.refuse("must have sums that some weights and errors have")
        return cls(sums)


MOST = 32  # classes that are summed by pairs: more would cost more than all other sums together
_BESIDE = 3  # columns beside the products
_LARGEST = 1e160  # more than any sum of weights, or of their squares, of which there is a document


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassSums:
    """Sums over rows of K classes with probabilities ``p``: what a bias for each class needs.

    Attributes
    ----------
    sums : ndarray of shape (1, K, K + 3), or (2, K, K + 3) with weights
        For each class the sums of ``w`` times its probability times that of each class, times ``p (log p + entropy)``,
        times its probability, and times whether it happened; with weights, the same with ``w**2``.
    """

    sums: FloatArray

    @classmethod
    def of(cls, p: FloatArray, log_p: FloatArray, entropy: FloatArray, y: IndexArray, w: FloatArray | None) -> Self:
        """Sum rows: probabilities and their logarithms, (n, K), where those of probability 0 may be anything finite."""
        classes = p.shape[1]
        found = np.empty((1 if w is None else 2, classes, classes + _BESIDE))
        plogp = p * log_p
        for power, part in enumerate(found, 1):
            v = None if w is None else w**power
            weighted = p if v is None else p * v[:, None]
            part[:, :classes] = weighted.T @ p
            part[:, classes] = (np.ones(len(p)) if v is None else v) @ plogp + entropy @ weighted
            part[:, classes + 1] = np.ones(len(p)) @ weighted
            part[:, classes + 2] = np.bincount(y, weights=v, minlength=classes)
        return cls(found)

    def __add__(self, other: object) -> Self:
        return type(self)(self.sums + other.sums) if isinstance(other, ClassSums) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassSums) and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClassSums({self.sums.shape[1]} classes)"

    @property
    def observed(self) -> FloatArray:
        """How often each class happened, by weight."""
        return np.asarray(self.sums[0, :, -1])

    @property
    def predicted(self) -> FloatArray:
        """The sum of the probabilities of each class, by weight."""
        return np.asarray(self.sums[0, :, -2])

    @property
    def products(self) -> FloatArray:
        """Sums of products of the probabilities of two classes, (M, K, K): by weight, then by squared weight."""
        return np.asarray(self.sums[:, :, :-_BESIDE])

    @property
    def cross(self) -> FloatArray:
        """How each class goes together with minus the excess, (M, K)."""
        return np.asarray(self.sums[:, :, -_BESIDE])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("class_sums", {"sums": self.sums.tolist()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        row = documents.list_of(documents.between(-_LARGEST, _LARGEST), 2 + _BESIDE, MOST + _BESIDE)
        found = documents.read(
            "class_sums", document, {"sums": documents.list_of(documents.list_of(row, 2, MOST), 1, 2)}
        )
        sizes = {(len(part), len(row)) for part in found["sums"] for row in part}
        classes, columns = next(iter(sizes))
        if len(sizes) > 1 or columns != classes + _BESIDE:
            documents.refuse(f"must have {classes} classes, each with {classes + _BESIDE} sums")
        sums = np.array(found["sums"], dtype=np.float64)
        products, predicted, observed = sums[..., :classes], sums[..., -2], sums[..., -1]
        close = 1.0 + 1e-6
        if (products < 0.0).any() or (products > close * predicted[..., None]).any() or (observed < 0.0).any():
            documents.refuse("must have sums that some probabilities have")
        return cls(sums)
