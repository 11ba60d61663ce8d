"""What directions of a state are judged by, as sums: fourth moments; errors where its covariance is long, or short."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray

__all__ = ["LENGTHS", "DirectionSums"]

LENGTHS = ("long", "short")
_CLOSE = 1e-6  # what rounding may do to sums


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DirectionSums:
    """Sums over states, by weight; they merge with ``+``.

    Attributes
    ----------
    fourth : ndarray of shape (d, d)
        Products of whitened errors, times NEES: how much products vary, in every direction.
    along : ndarray of shape (2, 2)
        Squared errors over what was stated, and their squares: first where the stated covariance is long, then where it
        is short. A right forecast has a mean of 1 in both.

    Notes
    -----
    Of a covariance C and an error e, the first is ``e' e / tr C``: a mean over the principal axes of C, each with its
    own variance as its weight. The second is ``e' C^-2 e / tr C^-1``, where the shortest axes weigh most. Both turn
    with the covariance, so they see a fault that turns with it: across the line of sight of a sensor, say.
    """

    fourth: FloatArray
    along: FloatArray

    @classmethod
    def of(cls, white: FloatArray, along: FloatArray, w: FloatArray) -> Self:
        """Sum rows: whitened errors (n, d), squared errors over what was stated (2, n), and weights."""
        weighted = white * (w * np.vecdot(white, white))[:, None]
        return cls(weighted.T @ white, np.stack([along @ w, (along * along) @ w], axis=1))

    def __add__(self, other: object) -> Self:
        if not isinstance(other, DirectionSums):
            return NotImplemented
        return type(self)(self.fourth + other.fourth, self.along + other.along)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DirectionSums):
            return False
        return np.array_equal(self.fourth, other.fourth) and np.array_equal(self.along, other.along)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DirectionSums({len(self.fourth)} axes)"

    def fits(self, axes: int, weight: float, fourth: float) -> bool:
        """Tell whether these can be sums of rows of a weight, of whose squared NEES the sum is known."""
        if len(self.fourth) != axes or not abs(float(np.trace(self.fourth)) - fourth) <= _CLOSE * fourth:
            return False
        size = _CLOSE * float(np.abs(self.fourth).max())
        even = bool((np.abs(self.fourth - self.fourth.T) <= size).all())
        first, second = self.along.T
        return (
            even
            and np.linalg.eigvalsh(self.fourth).min() >= -size
            and bool((first >= 0.0).all() and (first * first <= weight * second * (1.0 + _CLOSE)).all())
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("direction_sums", {name: getattr(self, name).tolist() for name in self.__slots__})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        number = documents.between()
        fields = {
            "fourth": documents.list_of(documents.list_of(number, 2), 2),
            "along": documents.list_of(documents.list_of(number, 2, 2), len(LENGTHS), len(LENGTHS)),
        }
        found = documents.read("direction_sums", document, fields)
        if any(len(row) != len(found["fourth"]) for row in found["fourth"]):
            documents.refuse("must have a square matrix `fourth`")
        return cls(*(np.array(found[name], dtype=np.float64) for name in cls.__slots__))
