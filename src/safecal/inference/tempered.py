"""The rows as an exponential family in the inverse temperature: ``p_beta`` proportional to ``p**beta``.

The summed surprisal says everything the data say about beta, and the log-partition functions say how it would be
distributed. Impossible rows are left out: no temperature explains them.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from .._checks.arrays import block
from .._types import AnyArray, FloatArray
from ..errors import UnavailableError
from ..families.predictions import Predictions

__all__ = ["LARGEST", "SMALLEST", "Tempered", "Tilted", "tempered"]

LARGEST, SMALLEST = 2.0**20, 2.0**-20  # inverse temperatures beyond which nothing changes any more


@final
@dataclass(frozen=True, slots=True)
class Tilted:
    """Sums at one beta: of ``w A``, and of ``w``, ``w**2`` and ``w**3`` times its first three derivatives."""

    beta: float
    value: float
    mean: float  # minus the expected sum of surprisals under p_beta
    information: float  # sum of w times the second derivative: how fast the mean moves
    variance: float  # sum of w**2 times the second derivative
    third: float


@final
@dataclass(frozen=True, slots=True)
class Tempered:
    """What the data say about the inverse temperature."""

    predictions: Predictions
    weight: AnyArray | None
    possible: AnyArray
    surprisal: float  # weighted sum over the possible rows
    mass: float  # sum of their weights
    one: Tilted  # at beta = 1
    best: Tilted | None  # at beta-hat; None where that is 0 or infinite
    beta: float  # beta-hat; NaN where every prediction is a coin toss or a certainty

    def at(self, *betas: float) -> list[Tilted]:
        """Tilt the rows to each beta, in one pass over them."""
        totals = np.zeros((len(betas), 5))
        for rows in self.predictions.row_blocks():
            partition = self.predictions._partition(rows)
            # Plain sums: BLAS would wake its threads for each of these short products.
            if self.weight is None and self.possible[rows].all():
                for j, beta in enumerate(betas):
                    sums = [column.sum() for column in partition(beta)]
                    totals[j] += [*sums[:3], sums[2], sums[3]]
                continue
            w = self.row_weights(rows)
            for j, beta in enumerate(betas):
                a = partition(beta)
                v = w * a.variance
                totals[j] += [(w * a.value).sum(), (w * a.mean).sum(), v.sum(), (w * v).sum(), (w**3 * a.third).sum()]
        return [Tilted(beta, *map(float, row)) for beta, row in zip(betas, totals, strict=True)]

    def row_weights(self, rows: slice) -> FloatArray:
        """Return the weights of some rows, 0 for impossible ones."""
        return _row_weights(self.possible[rows], self.weight, rows)

    def gap(self, tilted: Tilted) -> float:
        """Return observed minus expected sum of surprisals under ``p_beta``; it grows with beta."""
        return self.surprisal + tilted.mean

    def log_likelihood(self, tilted: Tilted) -> float:
        """Return the log-likelihood of the tempered model."""
        return -tilted.beta * self.surprisal - tilted.value

    def ecd(self, tilted: Tilted) -> float:
        """Return the ECD of the model if ``p_beta`` is the truth."""
        return (self.one.mean - tilted.mean) / self.mass


def _row_weights(possible: AnyArray, weight: AnyArray | None, rows: slice) -> FloatArray:
    return possible.astype(np.float64) if weight is None else possible * block(weight, rows)


def tempered(predictions: Predictions, weight: AnyArray | None = None) -> Tempered:
    """Fit the inverse temperature by maximum likelihood.

    Raises UnavailableError for predictions without a log-partition function.
    """
    surprisal = mass = above = 0.0
    possible = np.ones(predictions.n, dtype=bool)
    for rows in predictions.row_blocks():
        scored, _ = predictions.weighted(rows, None)
        if scored.surprisal is None:
            raise UnavailableError("an unnormalised density has no temperature.")
        possible[rows] = ~scored.impossible
        w = _row_weights(possible[rows], weight, rows)
        s = np.where(possible[rows], scored.surprisal, 0.0)
        surprisal += float((w * s).sum())
        mass += float(w.sum())
        if scored.confidence is None or scored.correct is None:
            above = math.inf
        else:  # an outcome as likely as the most likely one is no surprise either
            above += float((w * (~scored.correct & (s > -np.log(scored.confidence) * (1.0 + 1e-9)))).sum())
    start = Tempered(predictions, weight, possible, surprisal, mass, _NOTHING, None, math.nan)
    one = start.at(1.0)[0]
    start = Tempered(predictions, weight, possible, surprisal, mass, one, None, math.nan)
    if one.variance == 0.0:
        return start
    best = None if above == 0.0 else _fit(start)
    beta = math.inf if above == 0.0 else 0.0 if best is None else best.beta
    return Tempered(predictions, weight, possible, surprisal, mass, one, best, beta)


_NOTHING = Tilted(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _fit(rows: Tempered) -> Tilted | None:
    """Find where observed and expected surprisal agree, by safeguarded Newton steps on log beta; None at 0."""
    low, high = math.log(SMALLEST), math.log(LARGEST)
    at = rows.one
    for _ in range(100):
        x, gap = math.log(at.beta), rows.gap(at)
        low, high = (x, high) if gap < 0.0 else (low, x)
        slope = at.beta * at.information
        step = x - gap / slope if slope > 0.0 else math.inf
        inside = low < step < high
        if inside and abs(step - x) < 1e-12:
            return at
        if not inside:
            step = 0.5 * (low + high)
        if high - low < 1e-12:
            break
        try:
            at = rows.at(math.exp(step))[0]
        except UnavailableError:  # so flat a law has no sum or integral: the estimate lies above
            if step > x:
                raise
            low = step
            at = rows.at(math.exp(0.5 * (low + x)))[0]
    return None if at.beta < 2.0 * SMALLEST or at.information <= 0.0 else at
