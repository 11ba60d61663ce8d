"""Scores of forecasts of one number: where the outcome falls, CRPS, and the central intervals."""

import numpy as np
from scipy import special

from .._types import FloatArray

__all__ = ["crps_of_draws", "crps_of_normal", "interval_score", "left_out_errors", "rank_among"]


def crps_of_normal(error: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the continuous ranked probability score of normal forecasts; ``error`` is in units of their spread."""
    density = np.exp(-0.5 * error * error) / np.sqrt(2.0 * np.pi)
    return np.asarray(spread * (error * (2.0 * special.ndtr(error) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))


def crps_of_draws(y: FloatArray, draws: FloatArray, *, fair: bool = False) -> FloatArray:
    """Return the score of the draws (n, m) taken as the forecast: ``mean |x - y| - mean |x - x'| / 2``.

    ``fair`` takes the second mean over different draws: it is then, on average, the score of the law they are of.
    """
    ordered = np.sort(draws, axis=1)
    m = draws.shape[1]
    rank = 2.0 * np.arange(1, m + 1) - m - 1.0
    return np.asarray(np.abs(ordered - y[:, None]).mean(axis=1) - (ordered @ rank) / (m * (m - 1.0) if fair else m * m))


def interval_score(y: FloatArray, lower: FloatArray, upper: FloatArray, level: float) -> FloatArray:
    """Return the width of intervals, and a penalty of 2 / (1 - level) times the distance of an outcome outside."""
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return np.asarray(upper - lower + 2.0 / (1.0 - level) * outside)


def left_out_errors(draws: FloatArray) -> FloatArray:
    """Return each draw (n, m) less the mean of the others, over their standard deviation."""
    m = draws.shape[1]
    gap = draws - draws.mean(axis=1, keepdims=True)
    gap /= np.abs(gap).max(axis=1, keepdims=True)  # so that no square leaves the floats
    square = np.square(gap)
    others = np.maximum(square.sum(axis=1, keepdims=True) - m / (m - 1.0) * square, 1e-300)
    return np.asarray(m / (m - 1.0) * gap / np.sqrt(others / (m - 2.0)))


def rank_among(y: FloatArray, draws: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the rank of the outcome among its draws from 0 to 1; within its cell, and among equals, by chance."""
    below, equal = (draws < y[:, None]).sum(axis=1), (draws == y[:, None]).sum(axis=1)
    return np.asarray((below + chance * (equal + 1.0)) / (draws.shape[1] + 1.0))
