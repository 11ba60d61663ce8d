"""What names a cause, as sums: errors of states by axis and in every direction; classes, predicted and as happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray, IndexArray
from ..errors import visible
from .scored import ArraySums
from .summary import CLOSE, as_numbers

__all__ = [
    "LENGTHS", "MOST_CLASSES", "MOST_DIRECTIONS", "AxisSums", "ClassSums", "DirectionColumns", "DirectionSums",
    "axis_name",
]  # fmt: skip

_VANISHES = 1e-150  # an error whose square is no float
_OF_AXIS = 4  # w, w**2, w u, w u**2


def axis_name(names: Sequence[str], axis: int) -> str:
    """Return what an axis is called; its number where axes have no names."""
    return visible(names[axis]) if names else f"axis {axis}"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AxisSums(ArraySums):
    """Sums of the errors of states, over the standard deviation stated for their axis; impossible rows are left out.

    Attributes
    ----------
    sums : ndarray of shape (d, 4)
        For each axis the sums of ``w``, ``w**2``, ``w`` times the error, and ``w`` times its square.
    """

    kind: ClassVar[str] = "axes"

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

    def __repr__(self) -> str:
        return f"AxisSums({len(self.sums)} axes)"

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
        return documents.document(self.kind, {"sums": as_numbers(self.sums)})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        row = documents.list_of(documents.between(infinite=True), _OF_AXIS, _OF_AXIS)
        axes = cls._of_lists(documents.read(cls.kind, document, {"sums": documents.list_of(row, 1)}))
        w, w2, u, u2 = axes.sums.T
        with np.errstate(all="ignore"):
            possible = (w >= 0.0) & (w2 >= 0.0) & (w2 <= w * w * CLOSE) & (u2 >= 0.0)
            possible &= np.abs(u) <= np.sqrt(w) * np.sqrt(u2) * CLOSE + w * _VANISHES
        if not possible.all():
            documents.refuse("must have sums that weights and errors can have")
        return axes


MOST_DIRECTIONS = 64  # axes of states whose directions are judged: sums have three squares of so many
LENGTHS = ("long", "short")
_MATRICES = ("white", "fourth", "factor")
_LARGEST_SQUARE = 1e100  # a squared error beyond which a row is left out: what is summed of it would be infinite


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
class DirectionSums(ArraySums):
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

    kind: ClassVar[str] = "direction_sums"

    sums: FloatArray
    matrices: FloatArray
    along: FloatArray

    @classmethod
    def of(cls, columns: DirectionColumns, weight: FloatArray | None) -> Self:
        """Sum rows."""
        c = columns
        with np.errstate(over="ignore", invalid="ignore"):
            nees = np.vecdot(c.white, c.white)
            good = (nees < _LARGEST_SQUARE) & (c.along < _LARGEST_SQUARE).all(axis=0)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        white, along = c.white[good], c.along[:, good]
        factor, by_row = (c.factor, np.array([w.sum()])) if len(c.factor) == 1 else (c.factor[good], w)
        products = [(white * v[:, None]).T @ white for v in (w, w * nees[good])]
        matrices = np.stack([*products, np.tensordot(by_row, factor, axes=1)])
        return cls(np.array([w.sum(), w @ w]), matrices, np.stack([along @ w, (along * along) @ w], axis=1))

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

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        number, many = documents.between(), len(_MATRICES)
        readers = {
            "sums": documents.list_of(documents.between(0.0), 2, 2),
            "matrices": documents.list_of(documents.list_of(documents.list_of(number, 2, MOST_DIRECTIONS)), many, many),
            "along": documents.list_of(documents.list_of(documents.between(0.0), 2, 2), len(LENGTHS), len(LENGTHS)),
        }
        fields = documents.read(cls.kind, document, readers)
        if len({len(line) for matrix in fields["matrices"] for line in (matrix, *matrix)}) != 1:
            documents.refuse("must have square `matrices` of one size")
        sums = cls._of_lists(fields)
        if not sums._possible():
            documents.refuse("must have sums that errors and weights can have")
        return sums

    def _possible(self) -> bool:
        """Tell whether some rows have these sums: products are symmetric and not negative, and so are variances."""
        weight, square = self.sums.tolist()
        products, fourth = self.matrices[:2], self.matrices[1]
        size = 1e-6 * np.abs(products).max(axis=(1, 2))
        even = (np.abs(products - np.swapaxes(products, 1, 2)).max(axis=(1, 2)) <= size).all()
        first, second = self.along.T
        nees = float(np.trace(self.matrices[0]))
        return bool(
            square <= weight * weight * CLOSE
            and even
            and (np.linalg.eigvalsh(products)[:, 0] >= -size).all()
            and nees * nees <= weight * float(np.trace(fourth)) * CLOSE
            and (first * first <= weight * second * CLOSE).all()
        )


MOST_CLASSES = 32  # classes that are summed by pairs: more would cost more than all other sums together
_EXTRA_COLUMNS = 3  # columns beside the products
_LARGEST_SUM = 1e160  # more than any sum of weights, or of their squares, of which there is a document


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassSums(ArraySums):
    """Sums over rows of K classes with probabilities ``p``: what a bias for each class needs.

    Attributes
    ----------
    sums : ndarray of shape (1, K, K + 3), or (2, K, K + 3) with weights
        For each class the sums of ``w`` times its probability times that of each class, times ``p (log p + entropy)``,
        times its probability, and times whether it happened; with weights, the same with ``w**2``.
    """

    kind: ClassVar[str] = "class_sums"

    sums: FloatArray

    @classmethod
    def of(cls, p: FloatArray, log_p: FloatArray, entropy: FloatArray, y: IndexArray, w: FloatArray | None) -> Self:
        """Sum rows: probabilities and their logarithms, (n, K), where those of probability 0 may be anything finite."""
        classes = p.shape[1]
        sums = np.empty((1 if w is None else 2, classes, classes + _EXTRA_COLUMNS))
        plogp = p * log_p
        for power, part in enumerate(sums, 1):
            v = None if w is None else w**power
            weighted = p if v is None else p * v[:, None]
            part[:, :classes] = weighted.T @ p
            part[:, classes] = (np.ones(len(p)) if v is None else v) @ plogp + entropy @ weighted
            part[:, classes + 1] = np.ones(len(p)) @ weighted
            part[:, classes + 2] = np.bincount(y, weights=v, minlength=classes)
        return cls(sums)

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
        return np.asarray(self.sums[:, :, :-_EXTRA_COLUMNS])

    @property
    def cross(self) -> FloatArray:
        """How each class goes together with minus the excess, (M, K)."""
        return np.asarray(self.sums[:, :, -_EXTRA_COLUMNS])

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        row = documents.list_of(
            documents.between(-_LARGEST_SUM, _LARGEST_SUM), 2 + _EXTRA_COLUMNS, MOST_CLASSES + _EXTRA_COLUMNS
        )
        matrix = documents.list_of(row, 2, MOST_CLASSES)
        fields = documents.read(cls.kind, document, {"sums": documents.list_of(matrix, 1, 2)})
        sizes = {(len(part), len(row)) for part in fields["sums"] for row in part}
        classes, columns = next(iter(sizes))
        if len(sizes) > 1 or columns != classes + _EXTRA_COLUMNS:
            documents.refuse(f"must have {classes} classes, each with {classes + _EXTRA_COLUMNS} sums")
        class_sums = cls._of_lists(fields)
        sums = class_sums.sums
        products, predicted, observed = sums[..., :classes], sums[..., -2], sums[..., -1]
        if (products < 0.0).any() or (products > CLOSE * predicted[..., None]).any() or (observed < 0.0).any():
            documents.refuse("must have sums that probabilities can have")
        return class_sums
