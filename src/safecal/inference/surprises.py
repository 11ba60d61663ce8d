"""Sums over predictions that are nearly always right: a lattice, where no smooth approximation holds.

A row surprises when anything but its most likely outcome happens. Where few surprises are expected, the law of the
summed surprisal has large atoms. It is drawn here exactly, at the price of the surprises alone: they arrive as the
first points of independent Poisson processes, so rows that do not surprise are never touched.
"""

import numpy as np

from .._types import AnyArray, FloatArray, IndexArray
from ..families.predictions import Predictions

__all__ = ["draw_surprises", "expected_surprises", "observed_surprises", "surprise_rates"]


def surprise_rates(predictions: Predictions) -> FloatArray:
    """Return ``-log p(most likely outcome)`` of each row."""
    parts = [np.log1p(np.exp(-predictions.gaps(rows)).sum(axis=1)) for rows in predictions.row_blocks()]
    return np.concatenate(parts)


def expected_surprises(rates: FloatArray) -> float:
    """Return the expected number of rows that surprise."""
    return float(-np.expm1(-rates).sum())


def observed_surprises(predictions: Predictions, weight: AnyArray | None) -> float:
    """Return the weighted sum of ``log p(most likely) - log p(outcome)``."""
    total = 0.0
    for rows in predictions.row_blocks():
        scored, w = predictions.weighted(rows, weight)
        assert scored.surprisal is not None
        assert scored.confidence is not None
        assert scored.correct is not None
        gap = np.where(scored.correct, 0.0, scored.surprisal + np.log(scored.confidence))
        gap = np.where(gap > 1e-12 * scored.surprisal, gap, 0.0)  # exactly 0 without a surprise, whatever the rounding
        total += float(gap.sum() if w is None else np.dot(w, gap))
    return total


def draw_surprises(
    predictions: Predictions, rates: FloatArray, weight: AnyArray | None, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw the weighted sum of ``log p(most likely) - log p(outcome)``, ``draws`` times."""
    edges = np.concatenate([[0.0], np.cumsum(rates)])
    number = rng.poisson(edges[-1], draws)
    draw: IndexArray = np.repeat(np.arange(draws), number)
    row = np.searchsorted(edges, rng.uniform(0.0, edges[-1], len(draw)), side="right") - 1
    row = np.minimum(row, predictions.n - 1)
    first = np.unique(draw * predictions.n + row)  # a row surprises once, however many points fall on it
    draw, row = first // predictions.n, first % predictions.n
    sizes = _sizes(predictions, row, rng)
    if weight is not None:
        sizes = sizes * np.asarray(weight, dtype=np.float64)[row]
    return np.bincount(draw, weights=sizes, minlength=draws).astype(np.float64)


def _sizes(predictions: Predictions, row: IndexArray, rng: np.random.Generator) -> FloatArray:
    """Draw how large each surprise is: one of the less likely outcomes, by its probability."""
    distinct, where = np.unique(row, return_inverse=True)
    out = np.empty(len(row))
    u = rng.random(len(row))
    step = 4096
    for start in range(0, len(distinct), step):
        gaps = predictions.gaps(distinct[start : start + step])
        mine = np.flatnonzero((where >= start) & (where < start + step))
        cumulative = np.cumsum(np.exp(-gaps), axis=1)
        here = where[mine] - start
        target = u[mine] * cumulative[here, -1]
        pick = (cumulative[here] <= target[:, None]).sum(axis=1)
        out[mine] = gaps[here, np.minimum(pick, gaps.shape[1] - 1)]
    return out
