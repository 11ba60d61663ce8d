"""What a reliability table means: the ECE of chance, the parts of the Brier score, Spiegelhalter's test."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.arrays import same_labels
from .._checks.columns import spelled, steadied, steady, weights
from .._sums.cells import Points
from .._sums.scored import Scored
from .._sums.splits import Bins, bins_for, by_bin
from .._sums.table import Table
from .._sums.tally import Tally
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Labels, Strategy
from ..errors import UnavailableError
from ..families.predictions import Predictions, predictions_of
from ..inference.calibration import generator
from ..inference.results import TestResult
from .chance import ENOUGH, BinSums, SparseRows, ece_of_chance, null_ece

__all__ = ["Reliability", "assess_reliability", "reliability_of", "tells_reliability"]

_PIECES = 8  # of a block


@final
@steadied
@dataclass(frozen=True, slots=True)
class Reliability:
    """Reliability over bins: how much of ECE is noise, what the Brier score is made of, and Spiegelhalter's test.

    The terms add up: ``brier = reliability_term - resolution + uncertainty + within_variance - within_covariance``
    (Murphy 1973; the last two, which are 0 when all rows of a bin share one prediction, after Stephenson, Coelho and
    Jolliffe 2008). For two classes that is the Brier score. For more classes, bins see the most likely class alone,
    and so do all terms: ``brier`` is then the mean of ``(confidence - correct)**2``.

    Attributes
    ----------
    n : int
        Rows.
    ece : float
        Expected calibration error over the bins.
    ece_expected, ece_quantile : float
        Mean and 95 % quantile that it has if the model is calibrated; an ECE below the quantile is no sign of fault.
    brier : float
        The Brier score that the terms add up to.
    reliability_term : float
        Weighted mean of the squared gaps of the bins, 0 is best.
    resolution : float
        Variance of the observed share between bins, larger is better.
    uncertainty : float
        Variance of the outcome itself.
    within_variance, within_covariance : float
        Variance of the predictions inside bins, and twice their covariance with the outcome there.
    spiegelhalter : TestResult
        The Brier score against what the model itself expects: ``statistic > 0`` when it is larger, as for an
        over-confident model.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> reliability = safecal.assess_reliability(safecal.bernoulli(rng.random(500) < p, p))
    >>> round(reliability.ece, 3), round(reliability.ece_expected, 3), round(reliability.ece_quantile, 3)
    (0.047, 0.045, 0.063)
    """

    n: int
    ece: float
    ece_expected: float
    ece_quantile: float
    brier: float
    reliability_term: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    spiegelhalter: TestResult

    @property
    def generalised_resolution(self) -> float:
        """``resolution - within_variance + within_covariance``, which does not shrink as bins are merged."""
        return self.resolution - self.within_variance + self.within_covariance

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in _NUMBERS}
        return documents.document("reliability", {**content, "spiegelhalter": self.spiegelhalter.to_dict()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields: dict[str, Any] = dict.fromkeys(_NUMBERS, documents.read_number)
        not_negative = documents.between(0.0)
        fields |= {
            "n": documents.count(1),
            **dict.fromkeys(("ece", "ece_expected", "ece_quantile", "brier"), not_negative),
        }
        return cls(**documents.read("reliability", document, {**fields, "spiegelhalter": TestResult.from_dict}))


_NUMBERS = tuple(f.name for f in fields(Reliability) if f.name != "spiegelhalter")


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
    sums, kept, score = _sum_rows(predictions, edges, on, weight)
    total = float(sums.weight.sum())
    expected, quantile = null_ece(sums, kept, generator(rng))
    ece = float(np.abs(sums.observed - sums.predicted).sum()) / total
    terms = _brier_terms(sums)
    test = _spiegelhalter_test(*score, predictions.n)
    return Reliability(predictions.n, ece, expected / total, quantile / total, *terms, test)


def reliability_of(tally: Tally) -> Reliability | None:
    """Read the reliability of rows off their sums; None for weights, without classes, or without bins of probability.

    Sums by bin are exact. What is not summed, the spread of the predictions inside a bin, comes from points that stand
    for the rows.
    """
    if not tells_reliability(tally):
        return None
    table, two_classes = tally.bins, tally.points is not None
    points = tally.points if two_classes else None if tally.top is None else tally.top.points()
    assert table is not None
    assert points is not None
    rows, predicted, observed, residual2 = _bin_sums(table)
    p, n, index, right = _cut_at_bins(points, table, rows, two_classes)

    def by_bin(column: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(index, weights=n * column, minlength=len(rows)))

    in_points, mean, square = (by_bin(x) for x in (np.ones(len(p)), p, p * p))
    full, in_points = (np.where(count > 0.0, count, 1.0) for count in (rows, in_points))
    share = predicted / full
    # Means are known; the spread inside a bin is not, and comes from the pieces.
    spread = np.maximum(square / in_points - (mean / in_points) ** 2, 0.0)
    noise = rows * np.maximum(share * (1.0 - share) - spread, 0.0)
    predicted2 = predicted - noise
    if two_classes:
        product = 0.5 * (observed + predicted2 - residual2)
    else:  # the Brier score of K classes is not that of the likeliest one
        product = by_bin(p * right)
        # Only its sum matters, which the points know better than their pieces.
        happened = points.wrong != points.positive
        exact = points.n[happened] @ special.expit(np.where(points.positive, points.L, -points.L)[happened])
        exact += float(observed.sum() - points.n[happened].sum())  # those that are certain, and right
        product *= float(exact) / max(float(product.sum()), 1e-300)
        residual2 = observed + predicted2 - 2.0 * product
    sums = BinSums(rows, predicted, observed, predicted2, product, residual2, noise, noise)
    expected, quantile = ece_of_chance(noise, p, n, index)
    m = special.expit(-points.L)
    top = 1.0 - m
    ece = float(np.abs(observed - predicted).sum()) / tally.n
    lead = top - m
    missed = float(tally.summary.n_impossible)
    if not two_classes:  # those that are certain, and wrong
        missed = float((rows - observed).sum() - points.n[points.wrong == points.positive].sum())
    score = float(points.n @ (np.where(points.wrong, top, -m) * lead)) + missed
    test = _spiegelhalter_test(score, float(points.n @ (top * m * lead * lead)), tally.n)
    return Reliability(tally.n, ece, expected / tally.n, quantile / tally.n, *_brier_terms(sums), test)


def tells_reliability(tally: Tally) -> bool:
    """Tell whether the reliability of rows can be read off their sums."""
    table, two_classes = tally.bins, tally.points is not None
    if table is None or table.bins is None or tally.weighted:
        return False
    return two_classes or (tally.top is not None and table.name == "confidence")


def _cut_at_bins(
    points: Points, table: Table, rows: FloatArray, two_classes: bool
) -> tuple[FloatArray, FloatArray, IndexArray, FloatArray]:
    """Cut points into pieces at the ends of the bins: chances, rows, bins, and whether what is predicted happened.

    Bins follow one another as the values do, and how many rows each holds is known: so every piece finds its place.
    """
    m = special.expit(-points.L)
    top = 1.0 - m
    p = top if table.top_label and two_classes else np.where(points.positive, top, m)
    right = (~points.wrong if table.top_label and two_classes else points.wrong != points.positive).astype(np.float64)
    value = special.entr(m) + special.entr(top) if table.name == "entropy" else p
    n = points.n
    certain = float(rows.sum() - n.sum())
    if certain > 0.5:  # no point stands for them; they lie at the ends
        assert table.bins is not None
        first = float(rows[0] - n[value < table.bins.edges[1]].sum())
        low = min(max(first, 0.0), certain) if table.name == "probability" else certain * (table.name == "entropy")
        p = np.concatenate([p, [float(table.top_label), 1.0]])
        right = np.concatenate([right, [float(table.top_label), 1.0]])
        value = np.concatenate([value, [-1.0, 2.0]])
        n = np.concatenate([n, [low, certain - low]])
    order = np.argsort(value, kind="stable")
    ends, edges = np.cumsum(n[order]), np.cumsum(rows)
    cuts = np.union1d(ends * (edges[-1] / ends[-1]), edges)
    middle = 0.5 * (cuts + np.concatenate([[0.0], cuts[:-1]]))
    point = order[np.minimum(np.searchsorted(ends * (edges[-1] / ends[-1]), middle), len(order) - 1)]
    index = np.minimum(np.searchsorted(edges, middle), len(rows) - 1)
    return p[point], np.diff(cuts, prepend=0.0), index, right[point]


def _bin_sums(table: Table) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rows, predicted, observed and squared residuals by bin."""
    names = ("n", *(("sum_confidence", "sum_correct") if table.top_label else ("sum_predicted", "sum_observed")))
    rows, predicted, observed, residual2 = (np.nan_to_num(table.column(name)) for name in (*names, "sum_brier"))
    return rows, predicted, observed, residual2


def _sum_rows(
    predictions: Predictions, bins: Bins, bin_on: str, weight: AnyArray | None
) -> tuple[BinSums, SparseRows, tuple[float, float]]:
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
    return totals, joined, (score, variance)


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


def _brier_terms(s: BinSums) -> tuple[float, float, float, float, float, float]:
    """Return the Brier score and its terms."""
    total = float(s.weight.sum())
    full = np.where(s.weight > 0.0, s.weight, 1.0)
    p, o = s.predicted / full, s.observed / full
    base = float(s.observed.sum()) / total
    reliability = np.dot(s.weight, (p - o) ** 2)
    resolution = np.dot(s.weight, (o - base) ** 2)
    variance = np.maximum(s.predicted2 - s.weight * p * p, 0.0).sum()
    covariance = 2.0 * (s.product - s.weight * p * o).sum()
    parts = (s.residual2.sum(), reliability, resolution, base * (1.0 - base) * total, variance, covariance)
    brier, first, second, third, fourth, fifth = (float(part) / total for part in parts)
    return brier, first, second, third, fourth, fifth


def _spiegelhalter_test(score: float, variance: float, n: int) -> TestResult:
    if variance > 0.0:
        z = score / math.sqrt(variance)
        p_value = 2.0 * float(special.ndtr(-abs(z)))
        return TestResult(z, p_value, "two-sided", "normal", "the Brier score minus what the model expects", n)
    reason = "the Brier score has no spread if the model is calibrated: "
    if score > 1e-12 * n:
        return TestResult(
            math.inf, 0.0, "two-sided", "exact", f"{reason}an outcome of probability 0 happened", n
        )  # fmt: skip
    return TestResult(0.0, 1.0, "two-sided", "exact", f"{reason}it is exactly what the model expects", n)
