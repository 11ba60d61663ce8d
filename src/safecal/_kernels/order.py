"""Cells of predictions in their order: by the probability of the likeliest class, or by the spread of a density.

Ranges of the predictions are unions of whole cells, so that equal predictions never part. Where rows come in clusters,
they are unions of coarse cells, each of them a union of cells: sums of every cluster are kept in these.
"""

import math

import numpy as np
from scipy import special

from .._types import BoolArray, FloatArray, IndexArray
from .cells import CELLS, LOWEST

__all__ = [
    "BY_CLASS",
    "COARSE",
    "COARSE_CONFIDENCES",
    "COARSE_SPREADS",
    "CONFIDENCE_STEPS",
    "CONFIDENCES",
    "HAIR",
    "SPREADS",
    "SPREAD_START",
    "SPREAD_STEPS",
    "STARTS",
    "coarse_confidences",
    "coarse_odds",
    "coarse_spreads",
    "confidence_cells",
    "confidence_ends",
    "spread_cells",
    "spread_ends",
]

BY_CLASS = 128  # classes up to which each predicted class has cells of its own
CONFIDENCES = 128  # cells of a class: four to each unit of the log-odds of its probability, from -16 to 16
SPREADS = 1024  # cells of densities: eight to each doubling of the standard deviation, from 2**-64 to 2**64
CONFIDENCE_STEPS = 4.0
# Round numbers lie on the edges of cells, which begin a hair earlier, so that the last digit decides nothing.
HAIR = 1e-9
SPREAD_START = 0.5 * math.log(2.0 * math.pi * math.e)  # entropy of a Gaussian of standard deviation 1
SPREAD_STEPS = 8.0 / math.log(2.0)  # cells to each nat

COARSE = 256  # coarse cells of an order, or of a predicted class, at most
COARSE_CONFIDENCES, COARSE_SPREADS = 4, 4  # cells of a coarse one: a unit of the log-odds, half a doubling
# Where coarse cells of log-odds begin: at cells with and without weights. Below 1/4 no ECD reaches 0.15 nat.
_COARSE_ODDS = np.array(
    [0.0, 0.25, 0.375, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0,
     24.0, 32.0, 64.0]
)  # fmt: skip
#: The first cell of log-odds in each coarse one.
STARTS = np.searchsorted(LOWEST, _COARSE_ODDS)
_COARSE_OF = np.searchsorted(STARTS, np.arange(CELLS), side="right") - 1


def confidence_cells(confidence: FloatArray, top: IndexArray, classes: int) -> IndexArray:
    """Number the cell of each row: by its likeliest class, where classes are few, and by the probability of it."""
    with np.errstate(divide="ignore"):
        odds = np.log(confidence) - np.log(np.maximum(1.0 - confidence, 0.0))
    cell = _clipped(CONFIDENCE_STEPS * odds, CONFIDENCES)
    return cell if classes > BY_CLASS else top * CONFIDENCES + cell


def confidence_ends() -> FloatArray:
    """Return the probabilities between which the cells of a class lie."""
    return _open(special.expit((np.arange(CONFIDENCES + 1) - CONFIDENCES // 2) / CONFIDENCE_STEPS), 0.0, 1.0)


def spread_cells(entropy: FloatArray, dimension: int) -> IndexArray:
    """Number the cell of each row by the standard deviation of a Gaussian that has as much entropy a dimension."""
    return _clipped((entropy / dimension - SPREAD_START) * SPREAD_STEPS, SPREADS)


def spread_ends() -> FloatArray:
    """Return the standard deviations between which the cells lie."""
    return _open(np.exp2((np.arange(SPREADS + 1) - SPREADS // 2) / 8.0), 0.0, math.inf)


def coarse_odds(cell: IndexArray, positive: BoolArray, *, weighted: bool) -> IndexArray:
    """Number the coarse cells of two outcomes in the order of their probability, by the cells of their log-odds.

    With weights these are eight to each doubling instead of sixteen.
    """
    coarse, size = _COARSE_OF[np.maximum(2 * cell - 1, 0) if weighted else cell], len(STARTS)
    return np.where(positive, size + coarse, size - 1 - coarse)


def coarse_confidences(cell: IndexArray) -> IndexArray:
    """Number the coarse cells of predicted class and confidence."""
    label, cell = np.divmod(cell, CONFIDENCES)
    return np.asarray(label * COARSE + cell // COARSE_CONFIDENCES)


def coarse_spreads(cell: IndexArray) -> IndexArray:
    """Number the coarse cells of spreads."""
    return np.asarray(cell // COARSE_SPREADS)


def _clipped(place: FloatArray, size: int) -> IndexArray:
    return np.asarray(np.clip(np.floor(place + HAIR) + size // 2, 0, size - 1), dtype=np.intp)


def _open(ends: FloatArray, low: float, high: float) -> FloatArray:
    ends[0], ends[-1] = low, high
    return ends
