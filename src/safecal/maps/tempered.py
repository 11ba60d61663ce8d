"""The likeliest inverse temperature, from the rows: to all digits, so that the ECD of the rows fitted to becomes 0.

Under ``p_beta``, proportional to ``p**beta``, the summed surprisal has the cumulants that the log-partition functions
give. Impossible rows are left out: no temperature explains them.
"""

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from .._checks.arrays import block
from .._types import AnyArray, FloatArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from ..inference.law import LARGEST, SMALLEST, Tilt, fitted

__all__ = ["Tempered", "tempered"]


@final
@dataclass(frozen=True, slots=True)
class Tempered:
    """What the rows say about the inverse temperature."""

    predictions: Predictions
    weight: AnyArray | None
    possible: AnyArray
    surprisal: float  # weighted sum over the possible rows
    mass: float  # sum of their weights
    one: Tilt | None = None  # at beta = 1
    beta: float = math.nan  # beta-hat; NaN where every prediction is a coin toss or a certainty
    best: Tilt | None = None  # at beta-hat; None where that is 0 or infinite

    def at(self, beta: float) -> Tilt:
        """Return the sums of surprisals at one beta."""
        if beta == 1.0 and self.one is not None:
            return self.one
        totals = np.zeros(5)
        for rows in self.predictions.row_blocks():
            a, w = self.predictions._partition(rows)(beta), self.row_weights(rows)
            v = w * a.variance
            # Plain sums: BLAS would wake its threads for each of these short products.
            totals += [(w * a.value).sum(), (w * a.mean).sum(), v.sum(), (w * v).sum(), (w**3 * a.third).sum()]
        value, mean, information, variance, third = totals.tolist()
        return Tilt(value, -mean, information, variance, -third)

    def row_weights(self, rows: slice) -> FloatArray:
        """Return the weights of some rows, 0 for impossible ones."""
        return _row_weights(self.possible[rows], self.weight, rows)


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
    found = Tempered(predictions, weight, possible, surprisal, mass)
    found = replace(found, one=found.at(1.0))
    if found.at(1.0).variance == 0.0:
        return found
    beta = math.inf if above == 0.0 else fitted(found.at, surprisal, SMALLEST, LARGEST)
    return replace(found, beta=beta, best=found.at(beta) if 0.0 < beta < math.inf else None)
