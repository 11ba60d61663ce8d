"""Which bin a row belongs to: exactly one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks.arrays import as_numbers, not_empty, refuse
from .._checks.columns import whole_number
from .._checks.message import fail, show
from .._kernels.compiled import uniform_index
from .._steady import steadied
from .._types import ArrayLike, FloatArray, IndexArray
from ..errors import BinsError, MissingValueError

__all__ = ["MOST_BINS", "Bins", "bin_count"]


MOST_BINS = 100_000  # beyond that a bin tells nothing, and bins alone would fill the memory


def bin_count(bins: Any) -> int:
    """Require a number of bins that can be made."""
    count = whole_number(bins, "bins", 1, BinsError)
    if count > MOST_BINS:
        raise fail(BinsError, "bins", f"must be at most {MOST_BINS}", got=show(bins))
    return count


@final
@steadied
@dataclass(frozen=True, slots=True)
class Bins:
    """Adjacent intervals ``[a, b)``, the last one closed: ``[a, b]``.

    Build them with `uniform`, `quantile` or `from_edges`. A value outside the edges is an error, so counts always add
    up to the number of rows.

    Attributes
    ----------
    edges : tuple of float
        Increasing; one more than there are bins.

    Examples
    --------
    >>> import safecal
    >>> bins = safecal.Bins.uniform(10)
    >>> bins.index([0.0, 0.1, 0.999, 1.0]).tolist()
    [0, 1, 9, 9]
    >>> safecal.Bins.from_edges([0, 0.5, 0.9, 1]).labels
    ('[0, 0.5)', '[0.5, 0.9)', '[0.9, 1]')
    """

    edges: tuple[float, ...]

    @classmethod
    def uniform(cls, bins: int = 10, low: float = 0.0, high: float = 1.0) -> Self:
        """Cut ``[low, high]`` into bins of equal width.

        Parameters
        ----------
        bins : int, default 10
            How many.
        low, high : float, default 0 and 1
            The ends.

        Returns
        -------
        Bins
            The bins.
        """
        count = bin_count(bins)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise fail(BinsError, "low", "must be finite and smaller than `high`", got=f"{show(low)} and {show(high)}")
        return cls(tuple(low + (high - low) * (k / count) for k in range(count)) + (high,))

    @classmethod
    def quantile(cls, values: ArrayLike, bins: int = 10) -> Self:
        """Cut at the quantiles of ``values``, so that bins hold about as many rows each.

        Edges are values that occur. Equal values stay together, so there are fewer bins when there are many ties;
        when the largest value has a bin to itself, that bin is ``[a, a]``.

        Parameters
        ----------
        values : array-like of shape (n,)
            What rows are binned on.
        bins : int, default 10
            How many, at most.

        Returns
        -------
        Bins
            The bins.
        """
        count = bin_count(bins)
        column = np.sort(np.asarray(as_numbers(values, "values"), dtype=np.float64), axis=None)
        not_empty(column, "values")
        if np.isnan(column[-1]):  # NaN sorts last
            raise fail(MissingValueError, "values", "must not be NaN")
        starts = column[[len(column) * k // count for k in range(count)]]
        return cls((*np.unique(starts).tolist(), float(column[-1])))

    @classmethod
    def from_edges(cls, edges: ArrayLike) -> Self:
        """Take the edges as given; ``-inf`` and ``inf`` may stand at the ends."""
        given = np.asarray(as_numbers(edges, "edges"), dtype=np.float64)
        if given.ndim != 1 or len(given) < 2:
            raise fail(BinsError, "edges", "must be a list of at least two numbers", got=f"shape {given.shape}")
        steps = np.diff(given)
        if not (steps > 0).all():
            at = int((~(steps > 0)).argmax())
            got = f"{show(given[at])} before {show(given[at + 1])}"
            raise fail(BinsError, "edges", "must increase strictly", got=got, place=f"position {at}")
        return cls(tuple(given.tolist()))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The intervals as text."""
        return tuple(map(self.label, range(len(self))))

    def label(self, place: int) -> str:
        """Return one of the `labels`.

        Parameters
        ----------
        place : int
            The place of the bin, counted from 0.

        Returns
        -------
        str
            The interval as text.
        """
        a, b = self.edges[place : place + 2]
        return f"[{a:.4g}, {b:.4g}{')' if place < len(self) - 1 else ']'}"

    @property
    def equal_width(self) -> bool:
        """Whether there are two bins or more, all as wide as each other: as `uniform` makes them."""
        bounded = -math.inf < self.edges[0] < self.edges[-1] < math.inf
        return (
            bounded and len(self) >= 2 and self.edges == type(self).uniform(len(self), *self.edges[:: len(self)]).edges
        )

    def index(self, values: ArrayLike) -> IndexArray:
        """Return the number of the bin of each value."""
        column = np.asarray(as_numbers(values, "values"), dtype=np.float64)
        if column.size and not (column.min() >= self.edges[0] and column.max() <= self.edges[-1]):
            rule = f"must lie within the bins, {self.edges[0]:.6g} to {self.edges[-1]:.6g}"
            low, high = self.edges[0], self.edges[-1]
            hint = "add edges that cover every value; `-inf` and `inf` are allowed."
            raise refuse(column, "values", lambda x: ~((x >= low) & (x <= high)), BinsError, rule, hint)
        edges: FloatArray = np.array(self.edges)
        if self.equal_width:
            return uniform_index(column, edges)
        found = np.searchsorted(edges, column, side="right") - 1
        return np.minimum(found, len(self) - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; infinite edges are written as text."""
        return documents.document("bins", {"edges": [documents.number(edge) for edge in self.edges]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        edges = documents.read("bins", document, {"edges": _edges})["edges"]
        return cls(tuple(edges))


_numbers = documents.list_of(documents.between(infinite=True), 2)


def _edges(value: Any) -> list[float]:
    """Read edges that increase; the last bin may be one point."""
    found = _numbers(value)
    for place, (low, high) in enumerate(pairwise(found)):
        if not (low < high or (low == high and place == len(found) - 2)):
            documents.refuse(f"must increase; {low:.6g} stands before {high:.6g}")
    return found
