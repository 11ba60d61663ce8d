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
_COMMON = 1.0  # excess over variance that one temperature may explain; impossible outcomes make it larger
_EQUAL = 3  # categories of one feature that are kept in a step
_TOGETHER = 1 << 18  # codes that are summed at a time
_LOOKED_AT = 200  # of the best, for those that overlap little


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
        common = min(max(float(excess.sum()) / max(float(variance.sum()), 1e-300), 0.0), _COMMON)
        self._beyond = excess - common * variance
        self._variance = variance
        self._least = least
        self._price = math.log(max(sum(column.atoms for column in columns), 2))
        places = np.arange(BINS)
        cuts, values = (np.array([len(x) for x in sizes])[:, None] for sizes in zip(*(
            (column.cuts, column.values) for column in columns), strict=True))  # fmt: skip
        self._offered: dict[Operator, BoolArray] = {
            "<": places < cuts,
            ">=": places < cuts,
            "is": places < values,
            "missing": np.array([[column.has_missing] for column in columns]),
        }
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
                        grown[frozenset(found.atoms)] = pool[frozenset(found.atoms)] = found
                    progress()
                for _ in range(level and BEAM - len(beam)):
                    progress()
                beam = sorted(grown.values(), key=_order)[:BEAM]
        except KeyboardInterrupt:
            self.interrupted = True
        return [self._conditions(found.atoms) for found in self._apart(pool)]

    def _conditions(self, atoms: tuple[_Atom, ...]) -> tuple[Condition, ...]:
        return tuple(self._columns[atom.feature].condition(atom.operator, atom.k) for atom in sorted(atoms))

    def _grown(self, atoms: tuple[_Atom, ...], rows: IndexArray | None) -> Iterator[Found]:
        """Yield the best slices with one more condition."""
        sums = self._sums(rows)
        below = np.cumsum(sums[:, :, :BINS], axis=2)
        parts: dict[Operator, FloatArray] = {
            "<": below,
            ">=": below[:, :, -1:] - below,
            "is": sums[:, :, :BINS],
            "missing": sums[:, :, BINS : BINS + 1],
        }
        for operator, part in parts.items():
            rank = self._rank(part, len(atoms) + 1)
            rank[~self._offered[operator] | self._taken(atoms, operator)] = -math.inf
            best = np.argsort(-rank, axis=1)[:, : _EQUAL if operator == "is" else 1]
            ranks = np.take_along_axis(rank, best, axis=1)
            for j, place in np.argwhere(ranks > -math.inf).tolist():
                yield Found(float(ranks[j, place]), (*atoms, _Atom(j, operator, int(best[j, place]))))

    def _sums(self, rows: IndexArray | None) -> FloatArray:
        """Sum what lies beyond, its variance and the rows, by feature and code: an array of shape (3, features, codes).

        Features are taken a few at a time, so that small data take one pass.
        """
        beyond, variance = self._beyond, self._variance
        if rows is not None:
            beyond, variance = beyond[rows], variance[rows]
        together = max(_TOGETHER // max(len(beyond), 1), 1)
        found = []
        for first in range(0, len(self._codes), together):
            some = self._codes[first : first + together]
            codes = np.empty((len(some), len(beyond)), dtype=np.intp)
            for k, column in enumerate(some):
                codes[k] = column if rows is None else column[rows]
                codes[k] += k * CODES
            flat, size = codes.reshape(-1), len(some) * CODES
            e, v = (x if len(some) == 1 else np.tile(x, len(some)) for x in (beyond, variance))
            sums = np.stack([np.bincount(flat, e, size), np.bincount(flat, v, size), np.bincount(flat, None, size)])
            found.append(sums.reshape(3, len(some), CODES))
        return np.concatenate(found, axis=1)

    def _taken(self, atoms: tuple[_Atom, ...], operator: Operator) -> BoolArray:
        """Tell which features have a condition that another one with this operator adds nothing to."""
        found = np.zeros((len(self._columns), 1), dtype=bool)
        for atom in atoms:
            found[atom.feature] |= {atom.operator, operator} != {"<", ">="}
        return np.asarray(found)

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
        """Return the best, then the best of the rows that are left, and so on; none shares half of its rows.

        A slice that is bad only for the rows that it shares with a better one is its shadow, and not taken.
        """
        chosen: list[Found] = []
        free = np.ones(len(self._variance), dtype=bool)
        left = [(found, self._mask(found.atoms)) for found in sorted(pool.values(), key=_order)[:_LOOKED_AT]]
        while left and len(chosen) < KEPT:
            found, mask = left[0]
            chosen.append(found)
            free &= ~mask
            ranked = []
            for other, rows in left[1:]:
                outside = rows & free
                n = np.count_nonzero(outside)
                if 2 * n > np.count_nonzero(rows) and 2 * np.count_nonzero(mask & rows) < np.count_nonzero(mask):
                    sums = np.array([[outside @ self._beyond], [outside @ self._variance], [n]])
                    ranked.append((Found(float(self._rank(sums, len(other.atoms))[0]), other.atoms), rows))
            left = sorted((one for one in ranked if one[0].rank > -math.inf), key=lambda one: _order(one[0]))
        return chosen


def _order(found: Found) -> tuple[float, tuple[_Atom, ...]]:
    return -found.rank, found.atoms


_MASKS: dict[Operator, Callable[[AnyArray, int], BoolArray]] = {
    "<": lambda codes, k: np.asarray(codes <= k),
    ">=": lambda codes, k: np.asarray((codes > k) & (codes < BINS)),
    "is": lambda codes, k: np.asarray(codes == k),
    "missing": lambda codes, k: np.asarray(codes == BINS),
}
