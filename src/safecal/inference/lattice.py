"""The law of a sum of independent surprises where it is no smooth one: listed, or convolved on a fine grid.

A sum that has few enough values is exact: all of them are listed. Otherwise a few large surprises give a sum with large
atoms, which no formula that knows its cumulants alone can place. Sizes are put on a grid, the sum seen among them, so
that atoms stay atoms and ties stay ties. What is left of the law is one Fourier transform. It is tilted first until the
sum seen is the one expected: a tail of 1e-30 is as exact as one of 0.3.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from .._sums.cells import Points
from .._types import AnyArray, BoolArray, FloatArray
from ..families import Predictions
from .law import Tails

__all__ = ["Lattice", "exact_tails", "listed_tails"]

_SIZE = 8192  # of the grid
_OUTSIDE = 36.0  # minus the logarithm of what may lie off the grid
_SMALL, _JOINT = 0.04, 5.0  # sizes below 4 % of the spread of all, and a fifth of their own, are summed to a smooth law
_TERMS = 4096  # of a series, beyond which a logarithm costs less
_TRIED = 64  # grids, of which the one that moves the sum seen least is taken
_ALIKE = 0.01  # log-odds in which rows of one place may differ and be taken together


@final
@dataclass(frozen=True, slots=True)
class _SurpriseRows:
    """Rows: how many, their log-odds, and what a surprise of theirs adds to the sum."""

    n: FloatArray
    L: FloatArray
    x: FloatArray

    def odds(self, beta: float, tilt: float) -> FloatArray:
        return np.asarray(tilt * self.x - beta * self.L)

    def variance(self, odds: FloatArray) -> FloatArray:
        p = special.expit(odds)
        return np.asarray(self.n * ((self.x * p) * (self.x * (1.0 - p))))

    def change(self, odds: FloatArray, start: FloatArray) -> float:
        """Return by how much the logarithm of the partition function grows."""
        return float(self.n @ (np.logaddexp(0.0, odds) - np.logaddexp(0.0, start)))


@final
@dataclass(frozen=True, slots=True)
class _Grid:
    step: float
    below: int  # places on it that lie below the sum seen
    seen: float  # the sum seen, in steps
    sharp: _SurpriseRows  # with sizes that are whole numbers of steps
    smooth: _SurpriseRows | None


@final
class Lattice:
    """The weighted sum of the surprises of two-class rows, for which points stand."""

    def __init__(self, points: Points) -> None:
        with np.errstate(over="ignore"):
            self._all = _SurpriseRows(points.n, points.L, points.w * points.L)
        self._wrong = points.wrong
        self._grids: dict[int, _Grid] = {}

    def tails(self, beta: float, tilt: float) -> Tails:
        """Return both tails at the sum seen, under ``p_beta``; the atom at it is in both, unless the law is smooth.

        ``tilt`` is the ``t`` at which the law proportional to ``exp(t S)`` has about the mean seen.
        """
        odds = self._all.odds(beta, tilt)
        if not float(self._all.variance(odds).sum()) > 0.0:  # so sure that the tilted sum is one number: that seen
            seen = float(self._all.n[self._wrong] @ self._all.x[self._wrong])
            change = self._all.change(odds, self._all.odds(beta, 0.0)) - tilt * seen
            smaller = math.exp(min(change, 0.0))
            return Tails(smaller, 1.0) if tilt > 0.0 else Tails(1.0, smaller)
        grid = self._grid(odds)
        mass = _probabilities(grid, beta, tilt)
        change = -tilt * grid.seen * grid.step
        for part in (grid.sharp, grid.smooth):
            if part is not None:
                change += part.change(part.odds(beta, tilt), part.odds(beta, 0.0))
        return _tails_at_seen(mass, grid, tilt, math.exp(min(change, 700.0)))

    def _grid(self, odds: FloatArray) -> _Grid:
        """Return a grid for a tilted law; the same one for laws of similar spread, so that tails change smoothly."""
        variance = self._all.variance(odds)
        spread = math.sqrt(float(variance.sum()))
        number = math.ceil(4.0 * math.log2(spread))
        if number not in self._grids:
            left, right = self._reach(odds, spread)
            widest = 2.0 ** (0.25 * number) / spread  # of the laws that this grid serves
            self._grids[number] = self._make_grid(left * widest, right * widest, variance, special.expit(odds))
        return self._grids[number]

    def _reach(self, odds: FloatArray, spread: float) -> tuple[float, float]:
        """Return how far the tilted law reaches below and above the sum seen, by Chernoff's bound."""
        seen = float(self._all.n[self._wrong] @ self._all.x[self._wrong])
        ends = []
        for side in (-1.0, 1.0):
            tilts = [side * u / spread for u in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
            changes = [self._all.change(odds + t * self._all.x, odds) - t * seen for t in tilts]
            farthest = min((change + _OUTSIDE) / abs(t) for change, t in zip(changes, tilts, strict=True))
            ends.append(max(farthest, spread))
        return min(ends[0], seen + 0.01 * spread), ends[1]

    def _make_grid(self, left: float, right: float, variance: FloatArray, chance: FloatArray) -> _Grid:
        n, L, x = self._all.n, self._all.L, self._all.x
        step = (left + right) / _SIZE
        small = self._smooth_sizes(variance)
        hidden = math.sqrt(float(variance[small].sum())) < step  # they are too small for the grid to show
        sharp, seen = ~small, self._wrong & ~small
        gap = (n * (self._wrong - chance))[sharp]  # seen minus expected: what the grid must not move
        steps = step * np.linspace(1.0, 1.1, _TRIED)
        misses = np.abs((np.rint(x[sharp] / steps[:, None]) @ gap) * steps - float(gap @ x[sharp]))
        step = float(steps[int(misses.argmin())])
        place = np.rint(x / step)
        total = float(n[seen] @ place[seen])
        smooth = None
        if hidden or not small.any():
            total = float(np.rint(total))
        else:
            smooth = _SurpriseRows(n[small], L[small], x[small])
            total += float(n[self._wrong & small] @ x[self._wrong & small]) / step
        below = int(_SIZE * left / (left + right))
        return _Grid(step, below, total, _pool_rows(n[sharp], L[sharp], place[sharp], step), smooth)

    def _smooth_sizes(self, variance: FloatArray) -> BoolArray:
        """Tell the sizes that are small against the spread of the whole and that together are a normal law."""
        order = np.argsort(self._all.x)
        x, below = self._all.x[order], np.sqrt(np.cumsum(variance[order]))
        alike = (x <= _SMALL * below[-1]) & (_JOINT * x <= below)
        small = np.zeros(len(x), dtype=bool)
        if alike.any():
            small[order[: int(np.flatnonzero(alike)[-1]) + 1]] = True
        return small


def _pool_rows(n: FloatArray, L: FloatArray, place: FloatArray, step: float) -> _SurpriseRows:
    """Take rows together that stand on the same place and have nearly the same log-odds."""
    keep = place > 0.0
    n, L, place = n[keep], L[keep], place[keep]
    pairs = np.stack([place, np.rint(L / _ALIKE)], axis=1)
    _, first, index = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    index = index.reshape(-1)
    total: FloatArray = np.bincount(index, weights=n).astype(np.float64)
    return _SurpriseRows(total, np.bincount(index, weights=n * L) / total, place[first] * step)


def _probabilities(grid: _Grid, beta: float, tilt: float) -> FloatArray:
    """Return the probabilities of the tilted law, from the lowest place of the grid on."""
    part = grid.sharp
    odds, place = part.odds(beta, tilt), np.rint(part.x / grid.step)
    turned = odds > 0.0  # counted from their other end, so that every series converges
    small = -np.abs(odds)
    log = _log_transform(np.where(turned, -place, place), small, part.n)
    log = log - float(part.n @ np.log1p(np.exp(small)))
    if grid.smooth is not None:
        log = log + _smooth_transform(grid.smooth, grid.smooth.odds(beta, tilt), grid.step)
    start = round(float(part.n[turned] @ place[turned]))
    from scipy import fft  # here, since most evaluations need none

    mass: FloatArray = np.roll(fft.irfft(np.exp(log), _SIZE), start - (round(grid.seen) - grid.below))
    return mass


def _log_transform(place: FloatArray, small: FloatArray, n: FloatArray) -> AnyArray:
    """Return the transform of ``n log(1 + odds x**place)``, summed."""
    terms = np.ceil(_OUTSIDE / np.maximum(-small, 1e-300))
    quick = terms <= _TERMS
    counts = terms[quick].astype(np.int64)
    row = np.repeat(np.flatnonzero(quick), counts)
    power = np.arange(1, len(row) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    value = n[row] * np.exp(power * small[row]) / np.where(power % 2 == 1, power, -power)
    index = power * place.astype(np.int64)[row] % _SIZE
    from scipy import fft  # here, since most evaluations need none

    log: AnyArray = fft.rfft(np.bincount(index, weights=value, minlength=_SIZE))
    if quick.all():
        return log
    turn = np.exp((-2j * np.pi / _SIZE) * np.arange(_SIZE))
    for j in np.flatnonzero(~quick).tolist():
        odd = min(math.exp(small[j]), 1.0 - 1e-12)
        log = log + n[j] * np.log1p(odd * turn[np.arange(_SIZE // 2 + 1) * int(place[j]) % _SIZE])
    return log


def _smooth_transform(part: _SurpriseRows, odds: FloatArray, step: float) -> AnyArray:
    """Return the logarithm of the transform of a smooth law, from its first four cumulants."""
    size, p = part.x / step, special.expit(odds)
    v = p * (1.0 - p)
    t = -1j * (2.0 * np.pi / _SIZE) * np.arange(_SIZE // 2 + 1)
    k1, k2 = float(part.n @ (size * p)), float(part.n @ (size**2 * v))
    k3, k4 = float(part.n @ (size**3 * v * (1.0 - 2.0 * p))), float(part.n @ (size**4 * v * (1.0 - 6.0 * v)))
    inside = np.abs(t) ** 2 * k2 < 80.0  # beyond, the transform is 0 and the series is no longer one
    log: AnyArray = k1 * t + k2 * t**2 / 2.0 + np.where(inside, k3 * t**3 / 6.0 + k4 * t**4 / 24.0, 0.0)
    return log


def _tails_at_seen(mass: FloatArray, grid: _Grid, tilt: float, factor: float) -> Tails:
    """Undo the tilt, and sum the smaller tail; the other one is what is left."""
    at = grid.below
    beyond = grid.seen - round(grid.seen)
    side = 1.0 if tilt > 0.0 else -1.0
    beyond_seen = mass[at:] if tilt > 0.0 else mass[at::-1]
    terms = beyond_seen * np.exp(-abs(tilt) * grid.step * (np.arange(len(beyond_seen)) - side * beyond))
    atom = max(float(terms[0]), 0.0)
    if grid.smooth is None:
        smaller = factor * max(float(terms.sum()), 0.0)
        larger = 1.0 - smaller + factor * atom
    else:  # a place stands for half a step to each side of it: cut it at the sum seen
        smaller = factor * max(float(terms[1:].sum()) + (0.5 - side * beyond) * atom, 0.0)
        larger = 1.0 - smaller
    smaller, larger = min(smaller, 1.0), min(max(larger, 0.0), 1.0)
    return Tails(smaller, larger) if tilt > 0.0 else Tails(larger, smaller)


_POINTS = 1 << 17  # of the support, at most
_SETS = 64  # of equal rows, at most
_ROWS = 1 << 20  # beyond it, listing the distinct predictions costs more than it gives


def exact_tails(predictions: Predictions, weight: AnyArray | None, observed: float) -> tuple[float, float] | None:
    """Return both tails of the weighted sum of ``log p(most likely) - log p(outcome)``.

    ``observed`` is that sum; the atom at it is in both tails. None where the sum has too many values to list.
    """
    if predictions.n > _ROWS:
        return None
    laws = _laws_of_sets(predictions, weight)
    return None if laws is None else _convolved(laws, observed)


def _convolved(laws: list[tuple[FloatArray, FloatArray]], observed: float) -> tuple[float, float] | None:
    support, mass = np.zeros(1), np.ones(1)
    for values, probabilities in laws:
        if len(support) * len(values) > 8 * _POINTS:
            return None
        with np.errstate(over="ignore"):
            support = np.add.outer(support, values).ravel()
        mass = np.multiply.outer(mass, probabilities).ravel()
        support, mass = _pooled(support, mass)
        if len(support) > _POINTS:
            return None
    slack = 1e-9 * max(1.0, abs(observed))
    upper, lower = mass[support >= observed - slack].sum(), mass[support <= observed + slack].sum()
    return min(float(upper), 1.0), min(float(lower), 1.0)


def _pooled(support: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put values together that differ by rounding only."""
    order = support.argsort(kind="stable")
    support, mass = support[order], mass[order]
    with np.errstate(over="ignore", invalid="ignore"):
        is_new = np.concatenate([[True], np.diff(support) > 1e-11 * (1.0 + np.abs(support[1:]))])
    starts = np.flatnonzero(is_new)
    return support[starts], np.add.reduceat(mass, starts)


def _laws_of_sets(predictions: Predictions, weight: AnyArray | None) -> list[tuple[FloatArray, FloatArray]] | None:
    """Return values and probabilities of the sum over each set of equal rows; None when there are too many sets."""
    if len(np.unique(predictions.gaps(slice(0, 1000)), axis=0)) > _SETS:
        return None  # the usual case, found without a look at all the rows
    gaps = np.concatenate([predictions.gaps(rows) for rows in predictions.row_blocks()])
    if gaps.shape[1] > 1 and len(gaps) > 64:
        return None
    if weight is not None:
        gaps = np.column_stack([np.asarray(weight, dtype=np.float64), gaps])
    distinct, count = np.unique(gaps, axis=0, return_counts=True)
    if len(distinct) > _SETS:
        return None
    laws, points = [], 1.0
    for row, repeats in zip(distinct, count.tolist(), strict=True):
        scale, row = (float(row[0]), row[1:]) if weight is not None else (1.0, row)
        likely = row[np.isfinite(row)]
        law = _law_of_equal_rows(scale * likely, likely, repeats)
        if law is None:
            return None
        points *= len(law[0])
        laws.append(law)
    return laws if points <= 64 * _POINTS else None


def _law_of_equal_rows(values: FloatArray, gaps: FloatArray, repeats: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the law of the sum over ``repeats`` equal rows: no surprise, or one of ``values`` with odds exp(-gap)."""
    odds = np.exp(-gaps)
    if len(values) == 0:
        return np.zeros(1), np.ones(1)
    if len(values) == 1:
        log_q = -np.log1p(odds[0])
        log_p = log_q - gaps[0]
        k = np.arange(repeats + 1)
        log_mass = special.gammaln(repeats + 1) - special.gammaln(k + 1) - special.gammaln(repeats - k + 1)
        log_mass = log_mass + k * log_p + (repeats - k) * log_q
        keep = log_mass > -60.0  # what is left out weighs less than 1e-20 in all
        return k[keep] * values[0], np.exp(log_mass[keep])
    one_values = np.concatenate([[0.0], values])
    one_mass = np.concatenate([[1.0], odds]) / (1.0 + odds.sum())
    support, mass = np.zeros(1), np.ones(1)
    for _ in range(repeats):
        if len(support) * len(one_values) > 8 * _POINTS:
            return None
        with np.errstate(over="ignore"):
            support = np.add.outer(support, one_values).ravel()
        support, mass = _pooled(support, np.multiply.outer(mass, one_mass).ravel())
    return support, mass


def listed_tails(points: Points, observed: float) -> tuple[float, float] | None:
    """Return both tails of the weighted sum of surprises of two-class rows; a point must stand for whole rows."""
    pairs = np.stack([_without_last_digits(points.L), _without_last_digits(points.w)], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    if len(distinct) > _SETS:
        return None
    repeats = np.bincount(index.reshape(-1), weights=np.rint(points.n)).astype(np.int64)
    laws, size = [], 1.0
    for (L, w), count in zip(distinct.tolist(), repeats.tolist(), strict=True):
        law = _law_of_equal_rows(np.array([w * L]), np.array([L]), count)
        assert law is not None
        size *= len(law[0])
        laws.append(law)
    return _convolved(laws, observed) if size <= 64 * _POINTS else None


def _without_last_digits(values: FloatArray) -> FloatArray:
    """Take away the last digits, in which equal values may differ after they were summed."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(mantissa.round(11), exponent))
