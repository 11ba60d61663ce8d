"""Rows of K classes at one inverse temperature: how much less likely than the likeliest class the others are."""

import math
from typing import NamedTuple

import numpy as np

from .._checks.arrays import block
from .._kernels.categorical import gap_moments
from .._types import AnyArray, FloatArray, IndexArray
from ..inference.law import LARGEST, SMALLEST, Tilt, fitted

__all__ = ["AtBeta", "ClassRows"]

_BLOCK = 1 << 16  # elements that fit into a cache


class AtBeta(NamedTuple):
    """Sums over rows of classes at one beta; a gap is how much less likely a class is than the likeliest one."""

    gaps: FloatArray  # of what happened, in each row; infinite where that was impossible
    seen: float  # the weighted sum of those of possible rows
    mass: float
    mean: float  # of the gaps that are expected, as the next three: w, w**2 and w times their cumulants
    information: float
    variance: float
    third: float


class ClassRows(NamedTuple):
    """Rows of K classes: logits, what happened, and weights where there are any."""

    z: AnyArray
    happened: IndexArray
    weight: AnyArray | None

    def some(self, rows: IndexArray | slice) -> "ClassRows":
        """Return some of the rows."""
        return ClassRows(self.z[rows], self.happened[rows], None if self.weight is None else self.weight[rows])

    def at(self, beta: float) -> AtBeta:
        """Sum at one beta; a few rows at a time, so that what is made of them stays in a cache."""
        gaps, totals = np.empty(len(self.z)), np.zeros(6)
        step = max(1, _BLOCK // self.z.shape[1])
        for start in range(0, len(self.z), step):
            rows = slice(start, min(start + step, len(self.z)))
            found = gap_moments(self.z[rows], beta)
            with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
                gaps[rows] = found.largest - self.z[np.arange(rows.start, rows.stop), self.happened[rows]]
            possible = np.isfinite(gaps[rows])
            w = possible.astype(np.float64) if self.weight is None else possible * block(self.weight, rows)
            v = w * found.variance
            seen = w * np.where(possible, gaps[rows], 0.0)
            columns = seen, w, w * found.mean, v, w * v, w * found.third
            totals += [column.sum() for column in columns]
        return AtBeta(gaps, *totals.tolist())

    def solved(self, start: float) -> float:
        """Return the beta at which the mean gap is the one seen, sought from ``start``."""
        first = self.at(start)

        def at(ratio: float) -> Tilt:
            here = first if ratio == 1.0 else self.at(ratio * start)
            return Tilt(math.nan, here.mean, start * here.information, math.nan, math.nan)

        return start * fitted(at, first.seen, SMALLEST / start, LARGEST / start)
