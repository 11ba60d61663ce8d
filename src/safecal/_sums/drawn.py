"""What forecasters look at of draws, as sums: where outcomes fall among the draws, together and by axis."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from . import forecasts
from .forecasts import CELLS, MOST_AXES, ForecastColumns, ForecastSums, VectorSums

__all__ = ["DrawColumns", "DrawSums", "read_sums"]

_LARGEST = 1e100  # a squared distance beyond which a row is left out: its square would be infinite


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
        return DrawSums.of(self, weight)


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

    @classmethod
    def of(cls, columns: DrawColumns, weight: FloatArray | None) -> Self:
        """Sum rows."""
        c = columns
        good = (np.abs(c.distance) < _LARGEST).all(axis=0) & (c.own2 < _LARGEST).all(axis=0)
        w = np.ones(int(good.sum())) if weight is None else weight[good]
        cell = np.minimum((c.transform[good] * CELLS).astype(np.intp), CELLS - 1)
        ranks = np.bincount(cell, weights=w, minlength=CELLS).astype(np.float64)
        a, b = c.distance[:, good], c.own[:, good]
        distances = np.stack([x @ w for x in (a, b, a * a, b * b, a * b, c.own2[:, good])], axis=1)
        return cls(ranks, np.array([w.sum(), w @ w]), distances, tuple(axis.summed(weight) for axis in c.axes))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, DrawSums):
            return NotImplemented
        axes = tuple(a + b for a, b in zip(self.axes, other.axes, strict=True))
        return type(self)(self.ranks + other.ranks, self.sums + other.sums, self.distances + other.distances, axes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DrawSums) or self.axes != other.axes:
            return False
        return all(np.array_equal(getattr(self, x), getattr(other, x)) for x in ("ranks", "sums", "distances"))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DrawSums({len(self.axes)} axes)"

    def held(self, level: float) -> float:
        """Return the weight of the rows whose ellipsoid of a level holds the outcome."""
        return float(self.ranks[: round(level * CELLS)].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name).tolist() for name in ("ranks", "sums", "distances")}
        return documents.document("draw_sums", content | {"axes": [axis.to_dict() for axis in self.axes]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        number = documents.between()
        fields = {
            "ranks": documents.list_of(documents.between(0.0), CELLS, CELLS),
            "sums": documents.list_of(documents.between(0.0), 2, 2),
            "distances": documents.list_of(documents.list_of(number, 6, 6), 2, 1 + MOST_AXES),
            "axes": documents.list_of(ForecastSums.from_dict, 1, MOST_AXES),
        }
        found = documents.read("draw_sums", document, fields)
        ranks, sums, distances = (np.array(found[name], dtype=np.float64) for name in ("ranks", "sums", "distances"))
        weight, square = sums.tolist()
        if not abs(ranks.sum() - weight) <= 1e-6 * weight or not 0.0 <= square <= weight * weight * 1.000001:
            documents.refuse("must have the weight of its rows in its `ranks`")
        a, b, a2, b2, both, wide = distances.T
        bounds = ((a * a, weight * a2), (b * b, weight * b2), (both * both, a2 * b2), (b2, wide))
        possible = np.all([b > 0.0, *(x <= most * 1.000001 for x, most in bounds)], axis=0)
        if len(distances) != 1 + len(found["axes"]) or not (possible | (weight == 0.0)).all():
            documents.refuse("must have `distances` that some draws have, together and along each axis")
        return cls(ranks, sums, distances, tuple(found["axes"]))


def read_sums(document: Any) -> ForecastSums | VectorSums | DrawSums:
    """Read the sums of forecasts: of numbers, of vectors, or of draws."""
    if isinstance(document, Mapping) and document.get("kind") == "safecal.draw_sums":
        return DrawSums.from_dict(document)
    return forecasts.read_sums(document)
