"""Discovery: a beam search for conditions whose rows surprise more than the model announced.

Sums by code give every condition on a feature at once: prefix sums those on numbers and dates. The score of a slice is
its summed excess, less what one temperature for all rows would explain, over the standard deviation that the model
claims. Half its square is how much more likely a temperature of its own makes the outcomes; the log of the number of
conditions that were tried is what each condition costs, so that a longer description must earn its length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .coding import BINS, CODES, Coded
from .conditions import Condition, Operator

__all__ = ["Found", "Search"]

BEAM = 20
KEPT = 3  # candidates
_EQUAL = 3  # categories of one feature that are kept in a step
_LOOKED_AT = 500  # of the best, for those that overlap little


class _Atom(NamedTuple):
    feature: int
    operator: Operator
    k: int


class Found(NamedTuple):
    """Conditions that hold together, the best first."""

    rank: float
    atoms: tuple[_Atom, ...]


class Search:
    """A search on some rows.

    Parameters
    ----------
    columns : sequence of Coded
        The features.
    rows : ndarray
        Which of the coded rows are searched.
    excess, variance : ndarray
        Of these rows: what surprised more than announced, and its variance if the model is right, both with weights.
    least : int
        Rows of a slice, and of what is outside of it.
    """

    def __init__(
        self, columns: Sequence[Coded], rows: IndexArray, excess: FloatArray, variance: FloatArray, least: int
    ) -> None:
        self._columns = columns
        self._codes = [column.codes[rows] for column in columns]
        # What one temperature for all rows would explain is not what a slice is about.
        common = max(float(excess.sum()) / max(float(variance.sum()), 1e-300), 0.0)
        self._beyond = excess - common * variance
        self._variance = variance
        self._least = least
        self._price = math.log(max(sum(column.atoms for column in columns), 2))
        self.interrupted = False

    def best(self, depth: int, progress: Callable[[], None]) -> list[tuple[Condition, ...]]:
        """Return the best slices that overlap little; after Ctrl-C those of what was searched."""
        pool: dict[frozenset[_Atom], Found] = {}
        beam: list[Found] = [Found(0.0, ())]
        try:
            for level in range(depth):
                grown: dict[frozenset[_Atom], Found] = {}
                for parent in beam:
                    rows = None if not parent.atoms else np.flatnonzero(self._mask(parent.atoms))
                    for found in self._grown(parent.atoms, rows):
                        grown.setdefault(frozenset(found.atoms), found)
                    progress()
                for _ in range(level and BEAM - len(beam)):
                    progress()
                pool |= grown
                beam = sorted(grown.values(), key=_order)[:BEAM]
        except KeyboardInterrupt:
            self.interrupted = True
        return [self._conditions(found.atoms) for found in self._apart(pool)]

    def _conditions(self, atoms: tuple[_Atom, ...]) -> tuple[Condition, ...]:
        return tuple(self._columns[atom.feature].condition(atom.operator, atom.k) for atom in sorted(atoms))

    def _grown(self, atoms: tuple[_Atom, ...], rows: IndexArray | None) -> Iterator[Found]:
        """Yield the best slices with one more condition."""
        beyond, variance = self._beyond, self._variance
        if rows is not None:
            beyond, variance = beyond[rows], variance[rows]
        for j, column in enumerate(self._columns):
            codes = self._codes[j] if rows is None else self._codes[j][rows]
            codes = codes.astype(np.intp)
            sums = np.stack([
                np.bincount(codes, beyond, CODES), np.bincount(codes, variance, CODES), np.bincount(codes, None, CODES)
            ])  # fmt: skip
            taken = {atom.operator for atom in atoms if atom.feature == j}
            for operator, part in _parts(column, sums):
                if taken and (operator in taken or not taken | {operator} <= {"<", ">="}):
                    continue
                rank = self._rank(part, len(atoms) + 1)
                for k in np.argsort(-rank)[: _EQUAL if operator == "is" else 1].tolist():
                    if rank[k] > -math.inf:
                        yield Found(float(rank[k]), (*atoms, _Atom(j, operator, k)))

    def _rank(self, sums: FloatArray, conditions: int) -> FloatArray:
        beyond, variance, n = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = 0.5 * beyond**2 / variance - conditions * self._price
        enough = (n >= self._least) & (n <= len(self._variance) - self._least) & (beyond > 0.0) & (variance > 0.0)
        return np.where(enough, gain, -math.inf)

    def _mask(self, atoms: tuple[_Atom, ...]) -> BoolArray:
        found = np.ones(len(self._variance), dtype=bool)
        for atom in atoms:
            codes = self._codes[atom.feature]
            found &= _MASKS[atom.operator](codes, atom.k)
        return found

    def _apart(self, pool: dict[frozenset[_Atom], Found]) -> list[Found]:
        """Return the best that overlap less than half with any better one."""
        chosen: list[Found] = []
        masks: list[BoolArray] = []
        for found in sorted(pool.values(), key=_order)[:_LOOKED_AT]:
            mask = self._mask(found.atoms)
            size = int(mask.sum())
            if all(2 * int((mask & other).sum()) < min(size, int(other.sum())) for other in masks):
                chosen.append(found)
                masks.append(mask)
            if len(chosen) == KEPT:
                break
        return chosen


def _order(found: Found) -> tuple[float, tuple[_Atom, ...]]:
    return -found.rank, found.atoms


_MASKS: dict[Operator, Callable[[AnyArray, int], BoolArray]] = {
    "<": lambda codes, k: np.asarray(codes <= k),
    ">=": lambda codes, k: np.asarray((codes > k) & (codes < BINS)),
    "is": lambda codes, k: np.asarray(codes == k),
    "missing": lambda codes, k: np.asarray(codes == BINS),
}


def _parts(column: Coded, sums: FloatArray) -> Iterator[tuple[Operator, FloatArray]]:
    """Yield the sums of the conditions on a feature, by operator."""
    if column.cuts:
        below = np.cumsum(sums[:, : len(column.cuts) + 1], axis=1)
        yield "<", below[:, :-1]
        yield ">=", below[:, -1:] - below[:, :-1]
    if column.values:
        yield "is", sums[:, : len(column.values)]
    if column.has_missing:
        yield "missing", sums[:, BINS : BINS + 1]
