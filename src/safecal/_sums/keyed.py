"""Sums by key, as arrays: a million keys are no burden."""

from collections.abc import Hashable, Sequence
from typing import Self, final

import numpy as np

from .._types import FloatArray, IndexArray

__all__ = ["Keyed", "Together", "added", "merged", "union"]

Keys = tuple[Hashable, ...]
Together = tuple[Keys, IndexArray]


def merged(keys: Keys, rows: FloatArray, others: Keys, more: FloatArray) -> tuple[Keys, FloatArray]:
    """Return all keys of two sides, those of the first first, and the sums of both; no key may come twice in a side."""
    together = union(keys, others)
    return together[0], added(rows, more, together)


def added(rows: FloatArray, more: FloatArray, together: Together) -> FloatArray:
    """Add up the sums of two sides, by what `union` says of their keys."""
    keys, index = together
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.zeros((len(keys), rows.shape[1]))
        out[: len(rows)] = rows
        out[index] += more
        return out


def union(keys: Keys, others: Keys) -> Together:
    """Return all keys of two sides, those of the first first, and the place of each of the others among them.

    Where both sides are alike, the first is returned itself.
    """
    if keys == others:
        return keys, np.arange(len(keys))
    places = {key: place for place, key in enumerate(keys)}
    index = _places(places, others)
    return tuple(places), index


def _places(known: dict[Hashable, int], keys: Sequence[Hashable]) -> IndexArray:
    """Return the place of each key; one that is not known yet gets the next."""
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), dtype=np.intp, count=len(keys))


@final
class Keyed:
    """Rows of sums, one for each key, in the order in which keys first came.

    Sums are added in place, and room is made ahead of need: adding many small parts costs what the parts cost.

    Examples
    --------
    >>> import numpy as np
    >>> found = Keyed()
    >>> found.add(("a", "b"), np.array([[1.0], [2.0]]))
    >>> found.add(("b", "c"), np.array([[10.0], [20.0]]))
    >>> found.keys, found.rows.tolist()
    (('a', 'b', 'c'), [[1.0], [12.0], [20.0]])
    """

    __slots__ = ("_places", "_rows")

    def __init__(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._rows: FloatArray = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self._places)

    @property
    def keys(self) -> Keys:
        """The keys."""
        return tuple(self._places)

    @property
    def rows(self) -> FloatArray:
        """The sums, one row a key."""
        return self._rows[: len(self._places)]

    def add(self, keys: Sequence[Hashable], rows: FloatArray) -> None:
        """Add sums to those of the same keys; no key may come twice in ``keys``."""
        places = self._places
        index = _places(places, keys)
        before = self._rows
        if len(places) > len(before):
            self._rows = np.zeros((max(len(places), 2 * len(before)), rows.shape[1]))
            if len(before):
                self._rows[: len(before)] = before
        with np.errstate(invalid="ignore", over="ignore"):
            self._rows[index] += rows

    def absorb(self, other: Self) -> None:
        """Add all sums of another."""
        if len(other):
            self.add(other.keys, other.rows)
