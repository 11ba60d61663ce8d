"""What forecasters look at beside ECD, as sums: where outcomes fall in a forecast, its scores, how wide it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray

__all__ = ["CELLS", "LEVELS", "ForecastColumns", "ForecastSums"]

CELLS = 40  # of the probability integral transform: the ends of all intervals below lie between two of them
LEVELS = (0.5, 0.8, 0.9, 0.95)  # of central intervals
_SUMS = ("weight", "weight2", "crps", "spread", "error", "error2")


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
