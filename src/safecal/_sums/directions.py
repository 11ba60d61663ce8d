"""What directions of a state are judged by, as sums: products of its errors; where its covariance is long, or short."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from ..visible import visible

__all__ = ["LENGTHS", "MOST_DIRECTIONS", "DirectionColumns", "DirectionSums", "axis_name"]

MOST_DIRECTIONS = 64  # axes of states whose directions are judged: sums have three squares of so many

LENGTHS = ("long", "short")
_MATRICES = ("white", "fourth", "factor")
_ARRAYS = ("sums", "matrices", "along")
_LARGEST = 1e100  # a squared error beyond which a row is left out: what is summed of it would be infinite
_CLOSE = 1e-6  # what rounding may do to sums


def axis_name(names: Sequence[str], axis: int) -> str:
    """Return what an axis is called; its number where axes have no names."""
    return visible(names[axis]) if names else f"axis {axis}"


@final
@dataclass(frozen=True, slots=True)
class DirectionColumns:
    """What is summed of states of d axes.

    Attributes
    ----------
    white : ndarray of shape (n, d)
        Errors, solved by the Cholesky factor of the stated covariance: a right forecast has products of mean 1.
    factor : ndarray of shape (n, d, d) or (1, d, d)
        The Cholesky factor of the stated correlations.
    along : ndarray of shape (2, n)
        Squared errors over what was stated, where the stated covariance is long, and where it is short.
    """

    white: FloatArray
    factor: FloatArray
    along: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DirectionSums:
    """Sums of `DirectionColumns`, by weight; they merge with ``+``. Rows whose numbers are not finite are left out.

    Attributes
    ----------
    sums : ndarray of shape (2,)
        Weight, and its squares.
    matrices : ndarray of shape (3, d, d)
        Products of whitened errors; these times NEES, which tells how much they vary; the factor of correlations.
    along : ndarray of shape (2, 2)
        Squared errors over what was stated, and their squares: first where the stated covariance is long, then where it
        is short. A right forecast has a mean of 1 in both.

    Notes
    -----
    Of a covariance C and an error e, the first is ``e' e / tr C``: a mean over the principal axes of C, each with its
    own variance as its weight. The second is ``e' C^-2 e / tr C^-1``, where the shortest axes weigh most. Both turn
    with the covariance, so they see a fault that turns with it: across the line of sight of a sensor, say.
    """

    sums: FloatArray
    matrices: FloatArray
    along: FloatArray

    @classmethod
    def of(cls, columns: DirectionColumns, weight: FloatArray | None) -> Self:
        """Sum rows."""
        c = columns
        with np.errstate(over="ignore", invalid="ignore"):
            nees = np.vecdot(c.white, c.white)
            good = (nees < _LARGEST) & (c.along < _LARGEST).all(axis=0)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        white, along = c.white[good], c.along[:, good]
        factor, by_row = (c.factor, np.array([w.sum()])) if len(c.factor) == 1 else (c.factor[good], w)
        products = [(white * v[:, None]).T @ white for v in (w, w * nees[good])]
        matrices = np.stack([*products, np.tensordot(by_row, factor, axes=1)])
        return cls(np.array([w.sum(), w @ w]), matrices, np.stack([along @ w, (along * along) @ w], axis=1))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, DirectionSums):
            return NotImplemented
        return type(self)(self.sums + other.sums, self.matrices + other.matrices, self.along + other.along)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DirectionSums):
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DirectionSums({self.axes} axes)"

    @property
    def axes(self) -> int:
        """How many axes there are."""
        return int(self.matrices.shape[1])

    @property
    def rows(self) -> float:
        """How many rows of equal weight say as much; 0 without rows."""
        weight, square = self.sums.tolist()
        return float(weight * weight / square) if square > 0.0 else 0.0

    def mean(self, name: str) -> FloatArray:
        """Return the mean of a matrix by its name: "white", "fourth" or "factor"."""
        with np.errstate(all="ignore"):
            return np.asarray(self.matrices[_MATRICES.index(name)] / self.sums[0])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("direction_sums", {name: getattr(self, name).tolist() for name in _ARRAYS})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        number, many = documents.between(), len(_MATRICES)
        fields = {
            "sums": documents.list_of(documents.between(0.0), 2, 2),
            "matrices": documents.list_of(documents.list_of(documents.list_of(number, 2, MOST_DIRECTIONS)), many, many),
            "along": documents.list_of(documents.list_of(documents.between(0.0), 2, 2), len(LENGTHS), len(LENGTHS)),
        }
        found = documents.read("direction_sums", document, fields)
        sizes = {len(row) for matrix in found["matrices"] for row in (matrix, *matrix)}
        if len(sizes) != 1:
            documents.refuse("must have square `matrices` of one size")
        sums = cls(*(np.array(found[name], dtype=np.float64) for name in _ARRAYS))
        if not sums._possible():
            documents.refuse("must have sums that some errors and weights have")
        return sums

    def _possible(self) -> bool:
        """Tell whether some rows have these sums: products are symmetric and not negative, and so are variances."""
        weight, square = self.sums.tolist()
        products, fourth = self.matrices[:2], self.matrices[1]
        size = _CLOSE * np.abs(products).max(axis=(1, 2))
        even = (np.abs(products - np.swapaxes(products, 1, 2)).max(axis=(1, 2)) <= size).all()
        first, second = self.along.T
        nees = float(np.trace(self.matrices[0]))
        return bool(
            square <= weight * weight * (1.0 + _CLOSE)
            and even
            and (np.linalg.eigvalsh(products)[:, 0] >= -size).all()
            and nees * nees <= weight * float(np.trace(fourth)) * (1.0 + _CLOSE)
            and (first * first <= weight * second * (1.0 + _CLOSE)).all()
        )
