"""What a reliability table means: the ECE of chance, the parts of the Brier score, Spiegelhalter's test.

A calibrated model has an ECE above 0: each bin shows the noise of its outcomes. Under calibration the gap of a bin is a
sum of independent centred Bernoulli terms, so its law is known: that of tosses where the bin holds few rows, and normal
where the variance is that of 25 tosses or more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import steadied
from .._sums import Tally
from .._sums.cells import Points
from .._sums.table import Table
from .._types import AnyArray, FloatArray, IndexArray
from ..inference import TestResult
from ..inference.tails import pearson3_quantile

__all__ = ["ENOUGH", "QUANTILE", "BinSums", "Reliability", "reliability_from", "reliability_of", "tells_reliability"]

ENOUGH = 25.0  # variance of a gap, in units of a squared weight, from which its law is taken as normal
QUANTILE = 0.95  # of an ECE by chance
_LAW = 64  # gaps that a sparse bin can show, around the expected one: more than six standard deviations on each side
_NEIGHBOURS = 16  # points of a bin that are pooled
_ANGLE = 2.0 * math.pi * np.arange(_LAW // 2 + 1) / _LAW
_COS, _SIN = np.cos(_ANGLE), np.sin(_ANGLE)
_FEW_VALUES = 20_000  # of a sum over bins, which are listed
_GRID = 1024  # steps of the law of a sum over bins
_MANY = 6  # bins from which a sum of normal gaps is a shifted gamma variable
_HALF_NORMAL = (
    math.sqrt(2.0 / math.pi),
    1.0 - 2.0 / math.pi,
    math.sqrt(2.0 / math.pi) * (4.0 / math.pi - 1.0),
)  # mean, variance and third cumulant of |N(0, 1)|


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
        fields |= dict.fromkeys(("ece", "ece_expected", "ece_quantile", "brier"), documents.between(0.0))
        fields |= {"n": documents.count(1), "spiegelhalter": TestResult.from_dict}
        return cls(**documents.read("reliability", document, fields))


_NUMBERS = tuple(f.name for f in fields(Reliability) if f.name != "spiegelhalter")


class BinSums(NamedTuple):
    """Weighted sums over the rows of each bin; ``variance`` and ``fourth`` carry the square and fourth power of w."""

    weight: FloatArray
    predicted: FloatArray
    observed: FloatArray
    predicted2: FloatArray
    product: FloatArray  # predicted times observed
    residual2: FloatArray
    variance: FloatArray  # p (1 - p)
    fourth: FloatArray  # p (1 - p)

    def sparse(self) -> AnyArray:
        """Tell which bins have a gap whose law is far from normal."""
        return self.variance**2 < ENOUGH * self.fourth


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
    sides = ("sum_confidence", "sum_correct") if table.top_label else ("sum_predicted", "sum_observed")
    names = ("n", *sides, "sum_brier")
    rows, predicted, observed, residual2 = (np.nan_to_num(table.column(name)) for name in names)
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
    m = special.expit(-points.L)
    top = 1.0 - m
    lead = top - m
    missed = float(tally.summary.n_impossible)
    if not two_classes:  # those that are certain, and wrong
        missed = float((rows - observed).sum() - points.n[points.wrong == points.positive].sum())
    score = float(points.n @ (np.where(points.wrong, top, -m) * lead)) + missed
    variance = float(points.n @ (top * m * lead * lead))
    return reliability_from(sums, _ece_of_chance(noise, p, n, index), score, variance, tally.n)


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


def reliability_from(
    s: BinSums, ece_by_chance: tuple[float, float], score: float, variance: float, n: int
) -> Reliability:
    """Put together what sums by bin tell; ``score`` is the Brier score beyond its expectation, with its variance."""
    total = float(s.weight.sum())
    full = np.where(s.weight > 0.0, s.weight, 1.0)
    p, o = s.predicted / full, s.observed / full
    base = float(s.observed.sum()) / total
    parts: dict[str, float] = {
        "ece": np.abs(s.observed - s.predicted).sum(),
        "ece_expected": ece_by_chance[0],
        "ece_quantile": ece_by_chance[1],
        "brier": s.residual2.sum(),
        "reliability_term": np.dot(s.weight, (p - o) ** 2),
        "resolution": np.dot(s.weight, (o - base) ** 2),
        "uncertainty": base * (1.0 - base) * total,
        "within_variance": np.maximum(s.predicted2 - s.weight * p * p, 0.0).sum(),
        "within_covariance": 2.0 * (s.product - s.weight * p * o).sum(),
    }
    test = _spiegelhalter_test(score, variance, n)
    return Reliability(n=n, spiegelhalter=test, **{name: float(part) / total for name, part in parts.items()})


def _spiegelhalter_test(score: float, variance: float, n: int) -> TestResult:
    if variance > 0.0:
        z = score / math.sqrt(variance)
        p_value = 2.0 * float(special.ndtr(-abs(z)))
        return TestResult(z, p_value, "two-sided", "normal", "the Brier score minus what the model expects", n)
    reason = "the Brier score has no spread if the model is calibrated: "
    if score > 1e-12 * n:
        return TestResult(math.inf, 0.0, "two-sided", "exact", f"{reason}an outcome of probability 0 happened", n)
    return TestResult(0.0, 1.0, "two-sided", "exact", f"{reason}it is exactly what the model expects", n)


def _ece_of_chance(noise: FloatArray, p: FloatArray, n: FloatArray, index: IndexArray) -> tuple[float, float]:
    """Return mean and quantile, under calibration, of the sum over bins of the absolute gap; rows of equal weight.

    ``noise`` is the variance of the gap of each bin; ``p``, ``n`` and ``index`` are chances, rows and bins of points
    that stand for the rows. Where gaps of many bins are normal, the quantile is that of a shifted gamma law; else laws
    are convolved.
    """
    normal = np.sqrt(noise[noise >= ENOUGH])
    in_sparse_bin = ((noise > 0.0) & (noise < ENOUGH))[index]
    points = p[in_sparse_bin], n[in_sparse_bin], index[in_sparse_bin]
    sparse = _laws_of_bins(*_pooled(*points)) if in_sparse_bin.any() else []
    means = [float(sizes @ mass) for sizes, mass in sparse]
    squares = [float((sizes - mean) ** 2 @ mass) for (sizes, mass), mean in zip(sparse, means, strict=True)]
    mean = _HALF_NORMAL[0] * float(normal.sum()) + sum(means)
    variance = _HALF_NORMAL[1] * float((normal**2).sum()) + sum(squares)
    if variance == 0.0:
        return mean, mean
    if not sparse and len(normal) >= _MANY:
        return mean, mean + pearson3_quantile(QUANTILE, variance, _HALF_NORMAL[2] * float((normal**3).sum()))
    listed = None if len(normal) else _listed_quantile(sparse)
    return mean, _convolved_quantile(normal, sparse, mean + 12.0 * math.sqrt(variance)) if listed is None else listed


def _pooled(p: FloatArray, n: FloatArray, index: IndexArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Let two points with the same first three moments stand for every few neighbours of a bin; bins increase."""
    if len(p) <= _NEIGHBOURS:
        return p, n, index
    starts = np.union1d(np.arange(0, len(p), _NEIGHBOURS), np.flatnonzero(np.diff(index, prepend=-1)))
    count, mean = np.add.reduceat(n, starts), np.add.reduceat(n * p, starts)
    mean /= count
    away = p - np.repeat(mean, np.diff(starts, append=len(p)))
    variance, third = (np.add.reduceat(n * away**k, starts) / count for k in (2, 3))
    spread = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(spread > 1e-9, third / variance / spread, 0.0)
    reach = np.sqrt(1.0 + 0.25 * skew * skew)
    low, high = 0.5 * skew - reach, 0.5 * skew + reach
    share = high / (high - low)
    points = np.stack([mean + low * spread, mean + high * spread], axis=1)
    counts = np.stack([count * share, count * (1.0 - share)], axis=1)
    return np.clip(points.ravel(), 0.0, 1.0), counts.ravel(), np.repeat(index[starts], 2)


def _laws_of_bins(p: FloatArray, n: FloatArray, index: IndexArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return for each bin the absolute gaps that tosses can give, and their probabilities, by a Fourier transform."""
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    expected = np.add.reduceat(n * p, starts)
    base = np.floor(expected) - _LAW // 2
    # The logarithm of 1 - p + p exp(i angle), its real part and its angle: quicker than that of a complex number.
    with np.errstate(divide="ignore"):  # a chance of one half has no mass at half a turn
        size = 0.5 * n * np.log1p(np.multiply.outer(-2.0 * (1.0 - _COS), p * (1.0 - p)))
    turn = n * np.arctan2(np.multiply.outer(_SIN, p), 1.0 - np.multiply.outer(1.0 - _COS, p))
    size, turn = (np.add.reduceat(part, starts, axis=1) for part in (size, turn))
    law = np.exp(size - 1j * (turn - np.multiply.outer(_ANGLE, base)))
    mass = np.maximum(np.fft.irfft(law, _LAW, axis=0), 0.0)
    mass[mass < 1e-12] = 0.0  # rounding, which would lie far out
    gaps = np.abs(base + np.arange(_LAW)[:, None] - expected)
    return list(zip(gaps.T, (mass / mass.sum(axis=0)).T, strict=True))


def _listed_quantile(sparse: list[tuple[FloatArray, FloatArray]]) -> float | None:
    """Return the quantile of a sum of absolute gaps that has few values; None where they are too many to list."""
    support, mass = np.zeros(1), np.ones(1)
    for sizes, chances in sparse:
        possible = chances > 0.0
        if len(support) * int(possible.sum()) > _FEW_VALUES:
            return None
        support = np.add.outer(support, sizes[possible]).ravel()
        mass = np.multiply.outer(mass, chances[possible]).ravel()
    order = np.argsort(support)
    below = np.cumsum(mass[order])
    return float(support[order][np.searchsorted(below, QUANTILE * below[-1])])


def _convolved_quantile(normal: FloatArray, sparse: list[tuple[FloatArray, FloatArray]], farthest: float) -> float:
    """Return the quantile of a sum of absolute gaps, on a grid from 0 to ``farthest``."""
    step = farthest / _GRID
    edges = step * (np.arange(_GRID + 1) - 0.5)
    # One law a row, of twice as many steps, so that nothing comes round.
    spreads = normal[:, None] * math.sqrt(2.0)
    laws = [np.diff(special.erf(np.maximum(edges, 0.0) / spreads), axis=1)] if len(normal) else []
    if sparse:
        sizes, mass = (np.stack(column) for column in zip(*sparse, strict=True))
        place = np.minimum(sizes / step, _GRID - 2.0)
        low = np.floor(place).astype(np.intp)
        part = place - low
        low += _GRID * np.arange(len(sparse))[:, None]
        size = _GRID * len(sparse)
        cells = np.bincount(low.ravel(), weights=(mass * (1.0 - part)).ravel(), minlength=size)
        cells += np.bincount(low.ravel() + 1, weights=(mass * part).ravel(), minlength=size)
        laws.append(cells.reshape(len(sparse), _GRID))
    law = np.fft.rfft(np.concatenate(laws), 2 * _GRID, axis=1).prod(axis=0)
    below = np.cumsum(np.fft.irfft(law))
    wanted = QUANTILE * below[-1]
    k = int(np.searchsorted(below, wanted))
    before = float(below[k - 1]) if k else 0.0
    return float(step * (k - 0.5 + (wanted - before) / (float(below[k]) - before)))
