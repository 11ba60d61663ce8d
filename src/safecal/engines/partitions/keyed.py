"""Sums by key, as arrays: a million keys are no burden."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, final

import numpy as np

from ..._checks.message import fail
from ..._types import FloatArray
from ...errors import ShapeError
from ...summary import Summary
from .. import totals

__all__ = ["Keyed", "absent", "as_rows", "as_summaries"]

_NAMES = tuple(f.name for f in fields(Summary))
_WHOLE = ("n", "n_impossible")


@final
class Keyed:
    """Rows of sums, one for each key, in the order in which keys first came."""

    __slots__ = ("_places", "_rows", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._places: dict[Hashable, int] = {}
        self._rows: FloatArray | None = None

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The keys."""
        return tuple(self._places)

    @property
    def rows(self) -> FloatArray:
        """The sums, one row a key."""
        return np.zeros((0, 0)) if self._rows is None else self._rows[: len(self._places)]

    def add(self, keys: Sequence[Hashable], rows: FloatArray) -> None:
        """Add sums to those of the same keys."""
        places = self._places
        index = np.fromiter((places.setdefault(key, len(places)) for key in keys), dtype=np.intp, count=len(keys))
        if len(places) > totals.MAX_KEYS:
            raise fail(
                ShapeError, self.name, f"must have at most {totals.MAX_KEYS} different values", got=f"{len(places)}",
                hint="sums are kept for each of them; is it the right column?",
            )  # fmt: skip
        before = self.rows if self._rows is None else self._rows
        if len(places) > len(before):
            self._rows = np.zeros((max(len(places), 2 * len(before)), rows.shape[1]))
            if len(before):
                self._rows[: len(before)] = before
        assert self._rows is not None
        with np.errstate(invalid="ignore", over="ignore"):
            self._rows[index] += rows

    def absorb(self, other: "Keyed") -> None:
        """Add all sums of another."""
        if other._places:
            self.add(other.keys, other.rows)


def as_rows(summaries: Sequence[Summary]) -> FloatArray:
    """Return summaries as rows of numbers that add up; what is absent is 0."""
    found = [[0.0 if (x := getattr(s, name)) is None else x for name in _NAMES] for s in summaries]
    return np.array(found, dtype=np.float64).reshape(len(found), len(_NAMES))


def absent(summary: Summary) -> frozenset[str]:
    """Return which sums do not exist for these predictions."""
    return frozenset(name for name in _NAMES if getattr(summary, name) is None)


def as_summaries(rows: FloatArray, missing: frozenset[str]) -> tuple[Summary, ...]:
    """Turn rows of numbers into summaries again."""
    return tuple(_summary(row, missing) for row in rows.tolist())


def _summary(row: list[float], missing: frozenset[str]) -> Summary:
    if row[0] == 0.0:
        return Summary()
    values: dict[str, Any] = {name: None if name in missing else x for name, x in zip(_NAMES, row, strict=True)}
    return Summary(**(values | {name: int(values[name]) for name in _WHOLE}))
