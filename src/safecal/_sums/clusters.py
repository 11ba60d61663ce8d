"""Sums of clusters: rows that depend on each other. They merge with ``+``."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from ..errors import MergeError
from .dependence import BASE, NEAR, RARE
from .keyed import merged

__all__ = ["COLUMNS", "At", "Clusters"]

COLUMNS = len(BASE) + 9


class At(NamedTuple):
    """Sums of clusters at one beta, with ``e`` the surprise less the one expected, and ``v`` its variance."""

    expected: FloatArray  # sum of w times the surprise expected; NaN where the family has none
    variance: FloatArray  # of w**2 v
    deviation: FloatArray  # of w times the root of v
    square: FloatArray  # of w**2 e**2


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clusters:
    """What tests, temperatures and bounds need of clusters.

    Attributes
    ----------
    keys : tuple or None
        The clusters; None when they were read from a document, which does not name them.
    sums : ndarray of shape (clusters, 19)
        Of each the sums of `BASE`; then ``w`` times the surprise expected at beta = 1; then that, its variance, its
        deviation and its squared excess at beta = 1/2, and the same at 2. NaN where the family has none.
    sharp : ndarray of shape (3, 4) or None
        Of all rows of K classes, at beta = 1/2, 1 and 2, the sums of `RARE`. Two classes have them in their spectrum.
    """

    keys: tuple[Hashable, ...] | None
    sums: FloatArray
    sharp: FloatArray | None = None

    def column(self, name: str) -> FloatArray:
        """Return the sums of one name of `BASE`."""
        return self.sums[:, BASE.index(name)]

    def at(self, beta: float) -> At:
        """Return the sums at one beta of `NEAR`."""
        start = len(BASE)
        if beta == 1.0:
            found = [self.sums[:, start], *(self.column(name) for name in ("variance", "deviation", "square"))]
        else:
            first = start + (1 if beta == NEAR[0] else 5)
            found = list(self.sums[:, first : first + 4].T)
        return At(*map(np.ascontiguousarray, found))

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Clusters):
            return NotImplemented
        if self.keys is None or other.keys is None:
            raise MergeError(
                "clusters must have names to be merged; documents do not hold them.\n\n"
                "Hint: add up the tallies before you write them."
            )
        sharp = None if self.sharp is None or other.sharp is None else self.sharp + other.sharp
        return type(self)(*merged(self.keys, self.sums, other.keys, other.sums), sharp)

    def __eq__(self, other: object) -> bool:
        """Compare the sums; names may be unknown."""
        if not isinstance(other, Clusters) or (self.sharp is None) != (other.sharp is None):
            return False
        same = self.sharp is None or np.array_equal(self.sharp, np.asarray(other.sharp), equal_nan=True)
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Clusters({len(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the sums, without the names of the clusters, which may name people."""
        sharp = None if self.sharp is None else _written(self.sharp)
        return documents.document("clusters", {"sums": _written(self.sums), "sharp": sharp})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        sums = documents.list_of(documents.list_of(documents.numbers, COLUMNS, COLUMNS), 1)
        sharp = documents.list_of(documents.list_of(documents.numbers, len(RARE), len(RARE)), len(NEAR), len(NEAR))
        found = documents.read("clusters", document, {"sums": sums, "sharp": documents.optional(sharp)})
        rare = None if found["sharp"] is None else np.array(found["sharp"], dtype=np.float64)
        made = cls(None, np.array(found["sums"], dtype=np.float64), rare)
        for name in ("n", "weight", "weight2", "variance", "deviation", "square"):
            if not (made.column(name) >= 0.0).all():
                documents.refuse(f"must have sums of `{name}` of at least 0")
        return made


def _written(sums: FloatArray) -> list[list[float | str | None]]:
    return [[documents.number(x) for x in row] for row in sums.tolist()]
