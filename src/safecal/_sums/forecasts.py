"""What forecasters look at beside ECD, as sums: where outcomes fall in a forecast, its scores, how wide it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray

__all__ = [
    "CELLS",
    "LEVELS",
    "MOST_AXES",
    "ForecastColumns",
    "ForecastSums",
    "VectorColumns",
    "VectorSums",
    "read_sums",
]

CELLS = 40  # of the probability integral transform: the ends of all intervals below lie between two of them
LEVELS = (0.5, 0.8, 0.9, 0.95)  # of central intervals
_SUMS = ("weight", "weight2", "crps", "spread", "error", "error2")
MOST_AXES = 16  # of a vector that is looked at direction by direction
_LARGEST = 1e100  # a squared error beyond which a row is left out: what is summed of it would be infinite
_MATRICES = ("white", "errors", "stated", "stated2", "factor")


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
        return ForecastSums.of(self, weight)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForecastSums:
    """Sums of `ForecastColumns`, by weight; they merge with ``+``. Rows whose numbers are not finite are left out.

    Attributes
    ----------
    ranks : ndarray of shape (40,)
        Weight of the rows in each cell of the transform.
    sums : ndarray of shape (14,)
        Weight, its squares, CRPS, spread, error, its square; widths and scores of each level.
    """

    ranks: FloatArray
    sums: FloatArray

    @classmethod
    def of(cls, columns: ForecastColumns, weight: FloatArray | None) -> Self:
        """Sum rows."""
        c = columns
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.column_stack([c.crps, c.spread, c.error, c.error**2, c.widths, c.scores])
        good = np.isfinite(values).all(axis=1)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        cell = np.minimum((c.transform[good] * CELLS).astype(np.intp), CELLS - 1)
        ranks = np.bincount(cell, weights=w, minlength=CELLS)
        return cls(ranks.astype(np.float64), np.concatenate([[w.sum(), w @ w], w @ values[good]]))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, ForecastSums):
            return NotImplemented
        return type(self)(self.ranks + other.ranks, self.sums + other.sums)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ForecastSums):
            return False
        return np.array_equal(self.ranks, other.ranks) and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]

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

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("forecast_sums", {"ranks": self.ranks.tolist(), "sums": self.sums.tolist()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        count, size = documents.between(0.0), len(_SUMS) + 2 * len(LEVELS)
        fields = {
            "ranks": documents.list_of(count, CELLS, CELLS),
            "sums": documents.list_of(documents.between(), size, size),
        }
        found = cls(
            *(np.array(x, dtype=np.float64) for x in documents.read("forecast_sums", document, fields).values())
        )
        weight, square = found.sums[:2]
        if not abs(found.ranks.sum() - weight) <= 1e-6 * weight or not 0.0 <= square <= weight * weight * 1.000001:
            documents.refuse("must have the weight of its rows in its `ranks`")
        return found


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
        return VectorSums.of(self, weight)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VectorSums:
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

    ranks: FloatArray
    sums: FloatArray
    matrices: FloatArray

    @classmethod
    def of(cls, columns: VectorColumns, weight: FloatArray | None) -> Self:
        """Sum rows."""
        c = columns
        with np.errstate(over="ignore", invalid="ignore"):
            nees = np.vecdot(c.white, c.white)
            good = (nees < _LARGEST) & (c.error * c.error < _LARGEST).all(axis=1)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        white, error = c.white[good], c.error[good]
        factor = c.factor if len(c.factor) == 1 else c.factor[good]
        by_row = w if len(factor) == len(w) else np.array([w.sum()])
        stated = factor @ np.swapaxes(factor, 1, 2)
        cell = np.minimum((c.transform[good] * CELLS).astype(np.intp), CELLS - 1)
        ranks = np.bincount(cell, weights=w, minlength=CELLS).astype(np.float64)
        products = [(x * w[:, None]).T @ x for x in (white, error)]
        means = [np.tensordot(by_row, x, axes=1) for x in (stated, stated * stated, factor)]
        return cls(ranks, np.array([w.sum(), w @ w, w @ (nees[good] ** 2)]), np.stack(products + means))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, VectorSums):
            return NotImplemented
        return type(self)(self.ranks + other.ranks, self.sums + other.sums, self.matrices + other.matrices)

    def __eq__(self, other: object) -> bool:
        names = ("ranks", "sums", "matrices")
        return isinstance(other, VectorSums) and all(np.array_equal(getattr(self, x), getattr(other, x)) for x in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VectorSums({self.matrices.shape[1]} axes)"

    def mean(self, name: str) -> FloatArray:
        """Return the mean of a matrix by its name: "white", "errors", "stated", "stated2" or "factor"."""
        with np.errstate(all="ignore"):
            return np.asarray(self.matrices[_MATRICES.index(name)] / self.sums[0])

    def held(self, level: float) -> float:
        """Return the weight of the rows whose ellipsoid of a level holds the outcome."""
        return float(self.ranks[: round(level * CELLS)].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("vector_sums", {name: getattr(self, name).tolist() for name in self.__slots__})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        line = documents.list_of(documents.between(), 2, MOST_AXES)
        fields = {
            "ranks": documents.list_of(documents.between(0.0), CELLS, CELLS),
            "sums": documents.list_of(documents.between(0.0), 3, 3),
            "matrices": documents.list_of(documents.list_of(line, 2, MOST_AXES), len(_MATRICES), len(_MATRICES)),
        }
        found = documents.read("vector_sums", document, fields)
        many = len(found["matrices"][0])
        if any(len(row) != many for matrix in found["matrices"] for row in matrix) or any(
            len(matrix) != many for matrix in found["matrices"]
        ):
            documents.refuse("must have square `matrices` of one size")
        sums = cls(*(np.array(found[name], dtype=np.float64) for name in ("ranks", "sums", "matrices")))
        weight, square, _ = sums.sums
        outer = sums.matrices[:2]
        even = np.abs(outer - np.swapaxes(outer, 1, 2)).max() <= 1e-6 * max(float(np.abs(outer).max()), 1e-300)
        possible = even and np.linalg.eigvalsh(outer).min() >= -1e-6 * float(np.abs(outer).max())
        if not abs(sums.ranks.sum() - weight) <= 1e-6 * weight or not 0.0 <= square <= weight * weight * 1.000001:
            documents.refuse("must have the weight of its rows in its `ranks`")
        if not possible:
            documents.refuse("must have products in its `matrices` that some errors have")
        return sums


def read_sums(document: Any) -> ForecastSums | VectorSums:
    """Read the sums of forecasts, of numbers or of vectors."""
    of_vectors = isinstance(document, Mapping) and document.get("kind") == "safecal.vector_sums"
    return VectorSums.from_dict(document) if of_vectors else ForecastSums.from_dict(document)
