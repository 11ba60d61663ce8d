"""The reliability of rows, looked at one by one: of those with weights, which sums do not tell, and of arrays.

The gap of a bin under calibration is listed where the bin holds few rows, drawn where few of many rows surprise, and
normal where the variance is that of 25 tosses or more.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._checks.arrays import same_labels
from .._checks.columns import spelled, steady, weights
from .._sums.scored import Scored
from .._sums.splits import Bins, bins_for, by_bin
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Labels, Strategy
from ..errors import UnavailableError
from ..families import Predictions, predictions_of
from ..inference.calibration import generator
from ..inference.tails import distinct
from .reliability import ENOUGH, QUANTILE, BinSums, Reliability, reliability_from

__all__ = ["assess_reliability"]

_PIECES = 8  # of a block
_LISTED = 1024  # rows of a bin whose law is listed
_DENSE = 128  # rows that are drawn one by one, at a time
_DRAWS = 10_000
_ELEMENTS = 1_000_000  # bins times draws, at most; never fewer than _FEWEST draws
_FEWEST = 1_000


class SparseRows(NamedTuple):
    """Rows of sparse bins."""

    bin: IndexArray
    predicted: FloatArray
    rare: FloatArray  # the smaller of p and 1 - p
    weight: FloatArray


@steady
@spelled()
def assess_reliability(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    bins: int | Bins = 10,
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> Reliability:
    """Assess the reliability of a classifier over bins, in one pass over its rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Predictions
        What happened, with a prediction beside it, as in `evaluate`; or predictions of `bernoulli` or `categorical`.
    y_prob : array-like of shape (n,) or (n, K), optional
        Probability of the positive class, or of each of K classes. This and the next four are for arrays only.
    logits : array-like of shape (n,) or (n, K), optional
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
    bins : int or Bins, default 10
        The bins.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on, as in `evaluate`.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    rng : numpy.random.Generator or int, optional
        For the quantile of ECE. By default the same data give the same answer.

    Returns
    -------
    Reliability
        What ECE would be by chance, the parts of the Brier score, Spiegelhalter's test.

    Raises
    ------
    UnavailableError
        For states and densities, which have no classes.

    Examples
    --------
    >>> import safecal
    >>> reliability = safecal.assess_reliability([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], bins=2)
    >>> parts = reliability.reliability_term - reliability.generalised_resolution + reliability.uncertainty
    >>> round(parts, 6), round(reliability.brier, 6)
    (0.125, 0.125)
    """
    predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
    if not predictions.discrete:
        raise UnavailableError(
            f"reliability compares probabilities of classes; {predictions.family} predictions have none."
        )
    same_labels(predictions.row_labels, sample_weight=sample_weight)
    weight = weights(sample_weight, predictions.n, predictions.outcome)
    if weight is not None:  # only their ratios matter; powers of them must stay in range
        weight = weight / weight.max()
    edges, on = bins_for(predictions, bins, bin_on, strategy)
    sums, kept, score, variance = _sum_rows(predictions, edges, on, weight)
    return reliability_from(sums, _null_ece(sums, kept, generator(rng)), score, variance, predictions.n)


def _sum_rows(
    predictions: Predictions, bins: Bins, bin_on: str, weight: AnyArray | None
) -> tuple[BinSums, SparseRows, float, float]:
    """Sum by bin, keep the rows of bins that are still sparse, and sum the Brier score against its expectation."""
    split = by_bin(predictions, bins, bin_on)
    totals = BinSums(*np.zeros((len(BinSums._fields), len(bins))))
    kept: list[SparseRows] = []
    score = variance = 0.0
    for rows in _pieces(predictions):
        scored, w = predictions.weighted(rows, weight)
        w = np.ones(len(scored)) if w is None else w
        index = split.index(scored, rows)
        beyond, spread, miss = _brier_excess(scored, predictions.gaps(rows) if predictions.has_odds else None)
        score += float(np.dot(w, beyond))
        variance += float(np.dot(w * w, spread))
        predicted, observed = scored.predicted, scored.observed
        if bin_on != "probability":
            predicted, observed = scored.confidence, scored.correct
        assert predicted is not None
        assert observed is not None
        p, o = predicted, observed.astype(np.float64)
        noise = w * w * (miss * (1.0 - miss))
        columns = (w, w * p, w * o, w * p * p, w * p * o, w * (o - p) ** 2, noise, w * w * noise)
        block_sums = (np.bincount(index, weights=c, minlength=len(bins)) for c in columns)
        totals = BinSums(*(total + added for total, added in zip(totals, block_sums, strict=True)))
        rare = np.minimum(miss, 1.0 - miss)
        # No weight exceeds 1, so a bin that is not kept any more is not sparse, whatever comes.
        keep = np.flatnonzero((totals.variance < ENOUGH)[index] & (w * rare > 0.0))
        kept.append(SparseRows(index[keep], p[keep], rare[keep], w[keep]))
    joined = SparseRows(*(np.concatenate(column) for column in zip(*kept, strict=True)))
    return totals, joined, score, variance


def _pieces(predictions: Predictions) -> Iterator[slice]:
    """Cut the rows finer than `row_blocks` does: the many columns of a piece stay in the cache together."""
    for rows in predictions.row_blocks():
        step = -(-(rows.stop - rows.start) // _PIECES)
        yield from (slice(start, min(start + step, rows.stop)) for start in range(rows.start, rows.stop, step))


def _brier_excess(scored: Scored, gaps: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return half the Brier score beyond its expectation, its variance, and ``1 - p`` of the most likely class.

    ``gaps`` are those of two classes, from which ``1 - p`` follows without cancellation. Of more classes the most
    likely one is looked at alone.
    """
    assert scored.confidence is not None
    assert scored.correct is not None
    if gaps is None:
        top = scored.confidence
        miss = np.maximum(1.0 - top, 0.0)
    else:
        u = np.exp(-gaps[:, 0])
        top = 1.0 / (1.0 + u)
        miss = u * top
    lead = top - miss
    return np.where(scored.correct, -miss, top) * lead, top * miss * lead * lead, miss


def _null_ece(s: BinSums, kept: SparseRows, rng: np.random.Generator) -> tuple[float, float]:
    """Return mean and quantile, under calibration, of the sum over bins of the absolute gap."""
    draws = max(_FEWEST, min(_DRAWS, _ELEMENTS // len(s.weight)))
    sparse = s.sparse()
    mean, drawn = 0.0, np.zeros(draws)
    for k in np.flatnonzero(s.variance > 0.0).tolist():
        if not sparse[k]:
            spread = math.sqrt(s.variance[k])
            mean += spread * math.sqrt(2.0 / math.pi)
            drawn += np.abs(spread * rng.standard_normal(draws))
            continue
        in_bin = kept.bin == k
        rows = SparseRows(*(column[in_bin] for column in kept))
        if len(rows.weight) <= _LISTED and rows.weight.min() == rows.weight.max():
            sizes, mass = _law_of_tosses(rows.predicted)
            mean += rows.weight[0] * float(np.dot(sizes, mass))
            pick = np.searchsorted(np.cumsum(mass), rng.random(draws), side="right")
            drawn += rows.weight[0] * sizes[np.minimum(pick, len(sizes) - 1)]
        else:
            gaps = _draw_gaps(rows, draws, rng)
            mean += float(gaps.mean())
            drawn += gaps
    return float(mean), float(np.quantile(drawn, QUANTILE, method="inverted_cdf"))


def _law_of_tosses(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the absolute gaps that tosses with chances ``p`` can give, and their probabilities (Poisson-binomial)."""
    mass = np.zeros(len(p) + 1)
    mass[0] = 1.0
    for k, chance in enumerate(p.tolist()):
        mass[1 : k + 2] = mass[1 : k + 2] * (1.0 - chance) + mass[: k + 1] * chance
        mass[0] *= 1.0 - chance
    return np.abs(np.arange(len(p) + 1) - p.sum()), mass


def _draw_gaps(rows: SparseRows, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the absolute gap: the rows that matter most one by one, until the law of the rest is easy."""
    step = rows.weight * np.where(rows.predicted > 0.5, -1.0, 1.0)
    noise = rows.weight**2 * rows.rare * (1.0 - rows.rare)
    order = np.argsort(-noise)
    out = np.zeros(draws)
    while order.size:
        remaining = noise[order]
        if order.size > _DENSE:
            if remaining.sum() ** 2 >= ENOUGH * np.dot(remaining, rows.weight[order] ** 2):
                out += math.sqrt(remaining.sum()) * rng.standard_normal(draws)
                break
            if rows.rare[order].sum() <= 2.0 * ENOUGH:
                out += _draw_surprises(rows.rare[order], step[order], draws, rng)
                break
        dense, order = order[:_DENSE], order[_DENSE:]
        surprised = rng.random((draws, len(dense))) < rows.rare[dense]
        out += surprised @ step[dense] - np.dot(step[dense], rows.rare[dense])
    return np.abs(out)


def _draw_surprises(rare: FloatArray, step: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw a sum over many rows that rarely surprise, touching only those that do.

    They are the rows on which a point of a Poisson process falls.
    """
    edges = np.concatenate([[0.0], np.cumsum(-np.log1p(-rare))])
    draw = np.repeat(np.arange(draws), rng.poisson(edges[-1], draws))
    row = np.searchsorted(edges, rng.uniform(0.0, edges[-1], len(draw)), side="right") - 1
    size = len(rare)
    first = distinct(draw * size + np.minimum(row, size - 1))  # a row surprises once
    total: FloatArray = np.bincount(first // size, weights=step[first % size], minlength=draws).astype(np.float64)
    return total - float(np.dot(step, rare))
