"""Sums of clusters: rows that depend on each other. They merge with ``+``."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from ..errors import DocumentError, MergeError
from .keyed import merged

__all__ = ["Clusters", "NEAR"]

NEAR = (0.5, 1.0, 2.0)  # inverse temperatures at which the surprise expected of each cluster is kept
_COLUMNS = 3 + len(NEAR)


class _Columns(NamedTuple):
    excess: FloatArray  # sum of w times the excess; infinite where something impossible happened
    weight: FloatArray
    variance: FloatArray  # sum of w**2 times the variance of the excess
    expected: FloatArray  # sums of w times the surprise expected, (3, clusters); NaN where there is none


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clusters:
    """What tests, temperatures and bounds need of clusters.

    Attributes
    ----------
    keys : tuple or None
        The clusters; None when they were read from a document, which does not name them.
    sums : ndarray of shape (clusters, 6)
        Of each the sums of ``w`` times the excess, of ``w``, of ``w**2`` times its variance, and of ``w`` times the
        surprise expected at beta = 1/2, 1 and 2; NaN where the family has none.
    """

    keys: tuple[Hashable, ...] | None
    sums: FloatArray

    @property
    def columns(self) -> _Columns:
        """The sums by name."""
        return _Columns(self.sums[:, 0], self.sums[:, 1], self.sums[:, 2], self.sums[:, 3:].T)

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
        return type(self)(*merged(self.keys, self.sums, other.keys, other.sums))

    def __eq__(self, other: object) -> bool:
        """Compare the sums; names may be unknown."""
        return isinstance(other, Clusters) and np.array_equal(self.sums, other.sums, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Clusters({len(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the sums, without the names of the clusters, which may name people."""
        return documents.document(
            "clusters", {"sums": [[documents.number(x) for x in row] for row in self.sums.tolist()]}
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("clusters", document, ("sums",))
        try:
            rows = [[np.nan if x is None else float(x) for x in row] for row in content["sums"]]
            sums = np.array(rows, dtype=np.float64).reshape(len(rows), _COLUMNS)
        except (TypeError, ValueError) as error:
            raise DocumentError("`document` must hold the sums of clusters; this one is damaged.") from error
        return cls(None, sums)
