"""The temperature the data ask for, from sums in narrow cells of log-odds.

With ``L`` the log-odds of the likelier of two outcomes, ``w = 1 / (1 + exp(beta L))`` is the chance of a surprise
under ``p_beta``, and the sum of ``L w`` the surprise expected; the data ask for the beta at which it is the surprise
that was seen. A cell holds log-odds that differ by a few per cent. Two points with the mean and the variance of its
log-odds stand for its rows, so sums at every beta follow, right to a millionth.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import optimize, special

from ..._types import FloatArray
from ...inference.curves import Curve, score
from ...inference.tails import pearson3
from ...inference.tempered import LARGEST, SMALLEST
from ..libraries import narwhals
from ..totals import Implied

__all__ = ["ODDS_CELLS", "Atoms", "atoms_temperature", "gaussian_temperature", "odds_cell"]

_PER_OCTAVE, _LOW, _OCTAVES = 16, -20, 32
ODDS_CELLS = _PER_OCTAVE * _OCTAVES
_ENOUGH = 3.5  # a normal score beyond every level that is asked for
_STEP = 0.7  # a jump of the score between two points that asks for one more
_ROUNDS = 12
_FEW = 25.0  # expected surprises under which the law is a lattice
_FEW_WEIGHTED = 5.0  # the same where weights blur it
_STEPS = np.linspace(0.0, 4.5, 19)  # where bounds are looked for, in standard deviations
_NOTHING = Curve((0.0,), (math.nan,))


def odds_cell(frame: Any) -> Any:
    """Add ``odds_cell``, the cell of ``odds``: sixteen to each doubling. Where one ends matters to no result."""
    nw = narwhals()
    least, most = 2.0**_LOW, 2.0 ** (_LOW + _OCTAVES)
    frame = frame.with_columns(bounded=nw.col("odds").clip(least, most * (1.0 - 1e-9)))
    octaves = nw.col("bounded").log() * (1.0 / math.log(2.0)) - (_LOW - 1e-12)
    return frame.with_columns(odds_cell=(octaves * _PER_OCTAVE).floor().cast(nw.Float64))


class Tilt(NamedTuple):
    """The surprise expected under ``p_beta``, how fast it falls with beta, its variance and its third cumulant."""

    mean: float
    slope: float
    variance: float
    third: float


@final
@dataclass(frozen=True, slots=True)
class Atoms:
    """Points that stand for rows: log-odds above 0, and the sums of the weights, their squares and their cubes."""

    odds: FloatArray
    weight: FloatArray
    weight2: FloatArray
    weight3: FloatArray
    surprise: float  # seen, weighted
    weighted: bool

    @classmethod
    def of(cls, weights: tuple[FloatArray, FloatArray, FloatArray], odds: FloatArray, odds2: FloatArray,
           surprise: float, weighted: bool) -> Self:  # fmt: skip
        """Make two points of each cell, from the sums of its weights, of ``w L`` and of ``w L**2``."""
        used = (weights[0] > 0.0) & (odds > 0.0)
        w, w2, w3 = (0.5 * x[used] for x in weights)
        mean = odds[used] / (2.0 * w)
        with np.errstate(over="ignore", invalid="ignore"):  # log-odds beyond 1e154 have no square
            spread = np.sqrt(np.maximum(odds2[used] / (2.0 * w) - mean * mean, 0.0))
        spread = np.where(spread > 1e-7 * mean, np.minimum(spread, 0.5 * mean), 0.0)
        points = np.concatenate([mean - spread, mean + spread])
        return cls(points, np.tile(w, 2), np.tile(w2, 2), np.tile(w3, 2), surprise, weighted)

    def at(self, beta: float) -> Tilt:
        """Return the sums under ``p_beta``."""
        x = beta * self.odds
        t = np.exp(-x)
        share = 1.0 / (1.0 + t)
        mean = self.odds * t * share
        spread = mean * (self.odds * share)
        third = spread * (self.odds * (1.0 - t) * share)
        sums = ((self.weight, mean), (self.weight, spread), (self.weight2, spread), (self.weight3, third))
        return Tilt(*(float((w * column).sum()) for w, column in sums))


def atoms_temperature(atoms: Atoms) -> Implied:
    """Find the inverse temperature of two-class predictions, and bounds on it."""
    if not atoms.at(1.0).slope > 0.0:
        return Implied(math.nan, _NOTHING, _NOTHING, "none: every prediction is a toss or a certainty")
    ends = math.log(SMALLEST), math.log(LARGEST)
    few = _FEW_WEIGHTED if atoms.weighted else _FEW

    def tails(at: float) -> tuple[float, float]:
        """Return the normal scores of ``P(S <= seen)`` and of ``P(S >= seen)`` at a log beta."""
        mean, _, variance, third = atoms.at(math.exp(at))
        if not variance > 0.0:
            never, always = score(0.0), score(1.0)
            return (never, always) if atoms.surprise < mean else (always, never)
        upper, lower = _tails(atoms.surprise - mean, variance, third, few)
        return score(lower), score(upper)

    beta = _estimate(atoms, ends)
    method = "cells of log-odds, from sums"
    if beta in (0.0, math.inf):
        return _at_an_end(atoms, beta, tails, ends, method)
    start = math.log(beta)
    best = atoms.at(beta)
    spread = math.sqrt(best.variance) / (best.slope * beta)
    low = _bound(tails, start, -spread, ends[0], 0.0)
    high = _bound(tails, start, +spread, ends[1], math.inf)
    return Implied(beta, low, high, method)


def _at_an_end(atoms: Atoms, beta: float, tails: Any, ends: tuple[float, float], method: str) -> Implied:
    """Return the one bound that there is where every outcome was the likelier one, or too few were."""
    side = -1 if beta > 0.0 else 1
    start = ends[0] if beta == 0.0 else math.log(16.0)
    while beta > 0.0 and start < ends[1] and tails(start)[0] > 0.0:
        start += math.log(2.0)
    bound = _bound(tails, start, side * 0.25, ends[0] if side < 0 else ends[1], 0.0 if side < 0 else math.inf)
    fixed = Curve((0.0,), (beta,))
    return Implied(beta, fixed, bound, method) if side > 0 else Implied(beta, bound, fixed, method)


def _estimate(atoms: Atoms, ends: tuple[float, float]) -> float:
    """Return the beta at which the surprise that was seen is the one expected."""
    if atoms.surprise <= 0.0:
        return math.inf
    if atoms.surprise >= atoms.at(2.0 * SMALLEST).mean:
        return 0.0
    wanted = math.log(atoms.surprise)

    def gap(at: float) -> float:
        mean = atoms.at(math.exp(at)).mean
        return (math.log(mean) if mean > 0.0 else -math.inf) - wanted

    low, high = ends[0] + math.log(2.0), 0.0
    while gap(high) > 0.0 and high < ends[1]:
        low, high = high, high + math.log(2.0)
    while not math.isfinite(gap(high)):
        high = 0.5 * (low + high)
    if gap(high) > 0.0:
        return math.exp(high)
    return math.exp(optimize.brentq(gap, low, high, xtol=1e-13))


def _tails(gap: float, variance: float, third: float, few: float) -> tuple[float, float]:
    """Return both tails of the surprise; where few are expected they are counts of surprises of one size."""
    if third > 0.0:
        size = third / variance
        expected = variance / size / size
        if expected < few:
            count = gap / size + expected
            upper = float(special.gammainc(count, expected)) if count > 0.0 else 1.0
            return upper, float(special.gammaincc(max(count, 0.0) + 1.0, expected))
    return pearson3(gap, variance, third)


def _bound(tails: Any, start: float, spread: float, edge: float, end: float) -> Curve:
    """Follow the score outward from the estimate to the edge of the grid; beyond it the bound is ``end``."""
    side = 0 if spread < 0.0 else 1
    room = abs(edge - start)

    def look(step: float) -> tuple[float, float]:
        at = start + math.copysign(step, spread)
        return tails(at)[side], at

    found: list[tuple[float, float]] = []  # score and log beta, from the estimate outward
    steps = [float(step) * abs(spread) for step in _STEPS]
    while steps:
        step = min(steps.pop(0), room)
        found.append(look(step))
        if found[-1][0] >= _ENOUGH or step == room:
            break
        steps = steps or [2.0 * step]
    for _ in range(_ROUNDS):  # halve steps in which the score jumps
        jumps = [(p, q) for p, q in pairwise(found) if q[0] - p[0] > _STEP and q[0] > -_STEP and p[0] < _ENOUGH]
        found += [look(abs(0.5 * (p[1] + q[1]) - start)) for p, q in jumps]
        found.sort(key=lambda point: abs(point[1] - start))
        if not jumps:
            break
    found = [(x, math.exp(at)) for x, at in found]
    if found[-1][0] < _ENOUGH:
        found.append((_ENOUGH + 10.0, end))
    scores = np.maximum.accumulate([x for x, _ in found])
    keep = np.concatenate([[True], np.diff(scores) > 1e-4])
    betas = np.array([beta for _, beta in found])
    return Curve(tuple(scores[keep].tolist()), tuple(betas[keep].tolist()))


def gaussian_temperature(nees: float, weight: float, weight2: float, weight3: float) -> Implied:
    """Find the inverse temperature of scalar Gaussians from their summed NEES and the sums of powers of weights."""
    if nees <= 0.0:
        return Implied(math.inf, Curve((0.0,), (0.0,)), Curve((0.0,), (math.inf,)), "Pearson III, from sums")
    beta = weight / nees
    spread = math.sqrt(2.0 * weight2) / weight

    def tails(at: float) -> tuple[float, float]:
        b = math.exp(at)
        upper, lower = pearson3(0.5 * (nees - weight / b), weight2 / (2.0 * b * b), weight3 / b**3)
        return score(lower), score(upper)

    start = math.log(beta)
    low = _bound(tails, start, -spread, start - 14.0, 0.0)
    high = _bound(tails, start, +spread, start + 14.0, math.inf)
    return Implied(beta, low, high, "Pearson III, from sums")
