"""What forecasters look at beside ECD, as sums: where outcomes fall in forecasts of numbers, of vectors and of draws.

Beside that, scores and widths of a forecast of a number, correlations of one of a vector, and distances among draws.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from .scored import ArraySums
from .summary import CLOSE

__all__ = [
    "LEVELS", "MOST_AXES", "DrawColumns", "DrawSums", "ForecastColumns", "ForecastSums", "VectorColumns",
    "VectorSums", "read_sums",
]  # fmt: skip

CELLS = 40  # of the probability integral transform: the ends of all intervals below lie between two of them
LEVELS = (0.5, 0.8, 0.9, 0.95)  # of central intervals
MOST_AXES = 16  # of a vector that is looked at direction by direction
_SUMS = ("weight", "weight2", "crps", "spread", "error", "error2")
_MATRICES = ("white", "errors", "stated", "stated2", "factor")
_LARGEST_SQUARE = 1e100  # a squared error beyond which a row is left out: what is summed of it would be infinite


def _ranks(transform: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weight of the rows in each cell of the transform."""
    cell = np.minimum((transform * CELLS).astype(np.intp), CELLS - 1)
    return np.bincount(cell, weights=weight, minlength=CELLS).astype(np.float64)


def _require_ranks(ranks: FloatArray, weight: float, square: float) -> None:
    """Refuse sums of a document whose ranks have not the weight of its rows."""
    squares = 0.0 < square <= weight * weight * CLOSE or weight == square == 0.0
    if not abs(ranks.sum() - weight) <= 1e-6 * weight or not squares:
        documents.refuse("must have the weight of its rows in its `ranks`")


_read_ranks = documents.list_of(documents.between(0.0), CELLS, CELLS)


@final
@dataclass(frozen=True, slots=True)
class ForecastColumns:
    """What is summed of forecasts of a number, one value a row; scores and widths also one a level.

    Attributes
    ----------
    transform : ndarray of shape (n,)
        The forecast's probability of less than the outcome: the probability integral transform, from 0 to 1.
    crps : ndarray of shape (n,)
        Continuous ranked probability score, in units of the outcome.
    spread : ndarray of shape (n,)
        Standard deviation of the forecast.
    error : ndarray of shape (n,)
        Outcome less mean, over that.
    widths, scores : ndarray of shape (n, 4)
        Width and interval score of the central interval of each of `LEVELS`.
    """

    transform: FloatArray
    crps: FloatArray
    spread: FloatArray
    error: FloatArray
    widths: FloatArray
    scores: FloatArray

    def summed(self, weight: FloatArray | None) -> "ForecastSums":
        """Sum rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.column_stack([self.crps, self.spread, self.error, self.error**2, self.widths, self.scores])
        good = np.isfinite(values).all(axis=1)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        return ForecastSums(_ranks(self.transform[good], w), np.concatenate([[w.sum(), w @ w], w @ values[good]]))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForecastSums(ArraySums):
    """Sums of `ForecastColumns`, by weight; they merge with ``+``. Rows whose numbers are not finite are left out.

    Attributes
    ----------
    ranks : ndarray of shape (40,)
        Weight of the rows in each cell of the transform.
    sums : ndarray of shape (14,)
        Weight, its squares, CRPS, spread, error, its square; widths and scores of each level.
    """

    kind: ClassVar[str] = "forecast_sums"

    ranks: FloatArray
    sums: FloatArray

    def __repr__(self) -> str:
        return f"ForecastSums(crps={self.mean('crps'):.6g})"

    def mean(self, name: str) -> float:
        """Return the mean of a column by its name; NaN where there is no weight."""
        with np.errstate(all="ignore"):
            return float(self.sums[_SUMS.index(name)] / self.sums[0])

    def at_levels(self, part: int) -> FloatArray:
        """Return the means at each level: of widths (0) or of interval scores (1)."""
        with np.errstate(all="ignore"):
            start = len(_SUMS) + part * len(LEVELS)
            return np.asarray(self.sums[start : start + len(LEVELS)] / self.sums[0])

    def held(self, level: float) -> float:
        """Return the weight of the rows whose central interval of a level holds the outcome."""
        outside = round(0.5 * (1.0 - level) * CELLS)
        return float(self.ranks[outside : CELLS - outside].sum())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        size = len(_SUMS) + 2 * len(LEVELS)
        readers = {"ranks": _read_ranks, "sums": documents.list_of(documents.between(), size, size)}
        sums = cls._of_lists(documents.read(cls.kind, document, readers))
        _require_ranks(sums.ranks, sums.sums[0], sums.sums[1])
        return sums


@final
@dataclass(frozen=True, slots=True)
class VectorColumns:
    """What is summed of forecasts of a vector, of d components.

    Attributes
    ----------
    transform : ndarray of shape (n,)
        The probability of the smallest ellipsoid that holds the outcome.
    error : ndarray of shape (n, d)
        Outcome less mean of each axis, over the standard deviation stated for it.
    white : ndarray of shape (n, d)
        The same, solved by ``factor``: independent, and of spread 1, for a right forecast.
    factor : ndarray of shape (n, d, d) or (1, d, d)
        The Cholesky factor of the correlations that were stated.
    """

    transform: FloatArray
    error: FloatArray
    white: FloatArray
    factor: FloatArray

    def summed(self, weight: FloatArray | None) -> "VectorSums":
        """Sum rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            nees = np.vecdot(self.white, self.white)
            good = (nees < _LARGEST_SQUARE) & (self.error * self.error < _LARGEST_SQUARE).all(axis=1)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        white, error = self.white[good], self.error[good]
        factor = self.factor if len(self.factor) == 1 else self.factor[good]
        by_row = w if len(factor) == len(w) else np.array([w.sum()])
        stated = factor @ np.swapaxes(factor, 1, 2)
        products = [(x * w[:, None]).T @ x for x in (white, error)]
        means = [np.tensordot(by_row, x, axes=1) for x in (stated, stated * stated, factor)]
        sums = np.array([w.sum(), w @ w, w @ (nees[good] ** 2)])
        return VectorSums(_ranks(self.transform[good], w), sums, np.stack(products + means))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VectorSums(ArraySums):
    """Sums of `VectorColumns`, by weight; they merge with ``+``. Rows whose numbers are not finite are left out.

    Attributes
    ----------
    ranks : ndarray of shape (40,)
        Weight of the rows in each cell of the transform.
    sums : ndarray of shape (3,)
        Weight, its squares, and squared NEES.
    matrices : ndarray of shape (5, d, d)
        Products of whitened errors, and of errors by axis; stated correlations, their squares, and their factor.
    """

    kind: ClassVar[str] = "vector_sums"

    ranks: FloatArray
    sums: FloatArray
    matrices: FloatArray

    def __repr__(self) -> str:
        return f"VectorSums({self.matrices.shape[1]} axes)"

    def mean(self, name: str) -> FloatArray:
        """Return the mean of a matrix by its name: "white", "errors", "stated", "stated2" or "factor"."""
        with np.errstate(all="ignore"):
            return np.asarray(self.matrices[_MATRICES.index(name)] / self.sums[0])

    def held(self, level: float) -> float:
        """Return the weight of the rows whose ellipsoid of a level holds the outcome."""
        return float(self.ranks[: round(level * CELLS)].sum())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        line = documents.list_of(documents.between(), 2, MOST_AXES)
        readers = {
            "ranks": _read_ranks,
            "sums": documents.list_of(documents.between(0.0), 3, 3),
            "matrices": documents.list_of(documents.list_of(line, 2, MOST_AXES), len(_MATRICES), len(_MATRICES)),
        }
        fields = documents.read(cls.kind, document, readers)
        if len({len(line) for matrix in fields["matrices"] for line in (matrix, *matrix)}) != 1:
            documents.refuse("must have square `matrices` of one size")
        sums = cls._of_lists(fields)
        products = sums.matrices[:2]
        largest = float(np.abs(products).max())
        even = np.abs(products - np.swapaxes(products, 1, 2)).max() <= 1e-6 * max(largest, 1e-300)
        possible = even and np.linalg.eigvalsh(products).min() >= -1e-6 * largest
        _require_ranks(sums.ranks, sums.sums[0], sums.sums[1])
        if not possible:
            documents.refuse("must have products in its `matrices` that errors can have")
        return sums


@final
@dataclass(frozen=True, slots=True)
class DrawColumns:
    """What is summed of draws of a number or of a vector of d components, one value a row.

    Attributes
    ----------
    transform : ndarray of shape (n,)
        The rank of the outcome among its draws from their centre, from 0 to 1.
    distance, own, own2 : ndarray of shape (1 + d, n)
        The squared distance of the outcome from the centre of the forecast, in units of the covariance of the draws,
        and then of the variance along each axis; the same of the draws, each by all others, on average; and the
        squares of those. Distances of outcomes and draws are equal on average for right draws, whatever their shape.
    axes : tuple of ForecastColumns
        The same draws along each axis: forecasts of a number.
    """

    transform: FloatArray
    distance: FloatArray
    own: FloatArray
    own2: FloatArray
    axes: tuple[ForecastColumns, ...]

    def summed(self, weight: FloatArray | None) -> "DrawSums":
        """Sum rows."""
        good = (np.abs(self.distance) < _LARGEST_SQUARE).all(axis=0) & (self.own2 < _LARGEST_SQUARE).all(axis=0)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        a, b = self.distance[:, good], self.own[:, good]
        distances = np.stack([x @ w for x in (a, b, a * a, b * b, a * b, self.own2[:, good])], axis=1)
        axes = tuple(axis.summed(weight) for axis in self.axes)
        return DrawSums(_ranks(self.transform[good], w), np.array([w.sum(), w @ w]), distances, axes)


_OF_DRAWS = ("ranks", "sums", "distances")


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DrawSums:
    """Sums of `DrawColumns`, by weight; they merge with ``+``. Rows whose numbers are not finite are left out.

    Attributes
    ----------
    ranks : ndarray of shape (40,)
        Weight of the rows in each cell of the transform.
    sums : ndarray of shape (2,)
        Weight, and its squares.
    distances : ndarray of shape (1 + d, 6)
        Together and along each axis: distances of outcomes and of draws, the squares of both, their product, and the
        squares of the distances of single draws.
    axes : tuple of ForecastSums
        Of each axis.
    """

    ranks: FloatArray
    sums: FloatArray
    distances: FloatArray
    axes: tuple[ForecastSums, ...]

    def __add__(self, other: object) -> Self:
        if not isinstance(other, DrawSums):
            return NotImplemented
        axes = tuple(a + b for a, b in zip(self.axes, other.axes, strict=True))
        return type(self)(self.ranks + other.ranks, self.sums + other.sums, self.distances + other.distances, axes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DrawSums) or self.axes != other.axes:
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _OF_DRAWS)

    def __repr__(self) -> str:
        return f"DrawSums({len(self.axes)} axes)"

    def held(self, level: float) -> float:
        """Return the weight of the rows whose ellipsoid of a level holds the outcome."""
        return float(self.ranks[: round(level * CELLS)].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name).tolist() for name in _OF_DRAWS}
        return documents.document("draw_sums", content | {"axes": [axis.to_dict() for axis in self.axes]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        readers = {
            "ranks": _read_ranks,
            "sums": documents.list_of(documents.between(0.0), 2, 2),
            "distances": documents.list_of(documents.list_of(documents.between(), 6, 6), 2, 1 + MOST_AXES),
            "axes": documents.list_of(ForecastSums.from_dict, 1, MOST_AXES),
        }
        fields = documents.read("draw_sums", document, readers)
        ranks, sums, distances = (np.array(fields[name], dtype=np.float64) for name in _OF_DRAWS)
        weight, square = sums.tolist()
        _require_ranks(ranks, weight, square)
        a, b, a2, b2, product, single2 = distances.T
        bounds = ((a * a, weight * a2), (b * b, weight * b2), (product * product, a2 * b2), (b2, single2))
        possible = np.all([b > 0.0, *(x <= bound * CLOSE for x, bound in bounds)], axis=0)
        if len(distances) != 1 + len(fields["axes"]) or not (possible | (weight == 0.0)).all():
            documents.refuse("must have `distances` that draws can have, together and along each axis")
        return cls(ranks, sums, distances, tuple(fields["axes"]))


def read_sums(document: Any) -> ForecastSums | VectorSums | DrawSums:
    """Read the sums of forecasts: of numbers, of vectors, or of draws."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if kind == "safecal.draw_sums":
        return DrawSums.from_dict(document)
    return VectorSums.from_dict(document) if kind == "safecal.vector_sums" else ForecastSums.from_dict(document)
