"""Bounds on ECD and on the temperature, read off a tally, at any level.

The spread of the rows alone is not enough. When predictions are sharp, most samples hold no surprise at all, look
perfect and vary little, while the truth lies above all of them. So the upper bound on ECD is the larger of the
empirical one and of the one that goes with the smallest inverse temperature the data do not rule out; and the lower
one likewise.
"""

import math
from typing import Any, final

import numpy as np
from scipy import special

from .._checks.arrays import same_labels
from .._checks.classes import refuse_arrays
from .._checks.columns import fraction, one_cluster, spelled, steady
from .._checks.message import fail
from .._sums.cells import Cells
from .._sums.nodes import Nodes
from .._sums.tally import Tally
from .._types import ArrayLike, Labels
from ..errors import EmptyError, OptionError, UnavailableError, WeightError
from ..families.predictions import Predictions, family_named, predictions_of
from .clustered import ALIKE, ClusteredLaw, Rarity
from .law import Law, StatesLaw, normal_score
from .mistakes import clustered_ratios
from .nodes import NodesLaw
from .points import PointsLaw
from .results import Interval
from .sum_bounds import clustered_interval, summary_spread

__all__ = ["Bounds", "ScoreCurve", "clusters_needed", "implied_temperature", "inverse", "law_of"]

_DRAWN, _POINTS = 2.0**-6, 30  # the smallest beta, or inverse of the largest, in a picture; points of one side
_MANY = 256  # points beyond which those of a cell are taken together; fewer may be all the rows there are
ScoreCurve = list[tuple[float, float]]


def inverse(beta: float) -> float:
    """Return the temperature of an inverse temperature."""
    return math.inf if beta == 0.0 else 0.0 if beta == math.inf else 1.0 / beta


@final
class Bounds:
    """Estimates of ECD and of the temperature, with bounds at any level.

    No rows, weights that are all zero and a single cluster are refused: there is nothing to be said of them.

    Attributes
    ----------
    law : Law or None
        How the summed surprise is distributed; None where the family has no log-partition function.
    """

    def __init__(self, tally: Tally) -> None:
        if tally.n == 0:
            raise fail(EmptyError, "tally", "must hold at least one row", got="none")
        if tally.summary.weight == 0.0:
            raise fail(WeightError, "sample_weight", "must not be all zero", got=f"{tally.n} zeros")
        if tally.clusters is not None and len(tally.clusters) < 2:
            raise one_cluster(len(tally.clusters))
        self._tally = tally
        self.law = law_of(tally)
        self._betas: dict[tuple[float, int], float] = {}

    def _beta(self, alpha: float, side: int) -> float:
        assert self.law is not None
        key = (alpha, side)
        if key not in self._betas:
            self._betas[key] = self.law.bound(alpha, side)
        return self._betas[key]

    @np.errstate(all="ignore")
    def temperature(self, level: float) -> Interval:
        """Return the temperature that the data ask for, with its interval."""
        if self.law is None:
            return Interval(math.nan, math.nan, math.nan, level, "none: this density does not tell it")
        if math.isnan(self.law.beta):
            return Interval(math.nan, math.nan, math.nan, level, "none: every prediction is a coin toss or a certainty")
        alpha = 0.5 * (1.0 - level)
        low, high = (inverse(self._beta(alpha, side)) for side in (+1, -1))
        value, method = inverse(self.law.beta), self.law.method
        if not self.law.reaches and not 0.0 < value < math.inf:  # it lies beyond, and how far is not known
            smallest, largest = map(inverse, reversed(self.law.range))
            value, method = (largest, f"{method}: at least") if value > 0.0 else (smallest, f"{method}: at most")
        return Interval(value, low, high, level, method)

    @np.errstate(all="ignore")
    def distances(self, farthest: float) -> tuple[ScoreCurve, ScoreCurve]:
        """Return how far the data rule temperatures out, for pictures: pairs of temperature and normal score.

        One list leads from the estimate down, the other up, each as far as the score ``farthest``; empty where there is
        no temperature, or none on that side.
        """
        if self.law is None or math.isnan(self.law.beta):
            return [], []
        return self._score_curve(+1, farthest), self._score_curve(-1, farthest)

    def _score_curve(self, side: int, farthest: float) -> ScoreCurve:
        assert self.law is not None
        smallest, largest = self.law.range
        ends = [self._beta(alpha, side) for alpha in (0.5, float(special.ndtr(-farthest)))]
        first, last = (math.log(min(max(beta, smallest, _DRAWN), largest, 1.0 / _DRAWN)) for beta in ends)
        if self.law.beta == (math.inf if side > 0 else 0.0) or first == last:
            return []
        curve = []
        for x in np.linspace(first, last, _POINTS).tolist():
            tails = self.law.tails(math.exp(x))
            score = normal_score(tails.upper if side > 0 else tails.lower)
            curve.append((math.exp(-x), min(max(score, 0.0), farthest)))
        return curve

    @np.errstate(all="ignore")
    def interval(self, level: float) -> Interval:
        """Return ECD with its interval."""
        s = self._tally.summary
        if s.weight_impossible > 0.0:
            return Interval(math.inf, math.inf, math.inf, level, "an impossible outcome happened")
        low, high, method = self._empirical(level)
        if self.law is not None:
            down, up = 0.0, 0.0
            if not math.isnan(self.law.beta):
                alpha = 0.5 * (1.0 - level)
                down, up = (self.law.ecd(self._beta(alpha, side)) for side in (+1, -1))
            low, high = max(min(low, down), self._tally.least_excess), max(high, up)
            method = f"{method}, widened by temperature"
        return Interval(s.ecd, low, high, level, method)

    def _empirical(self, level: float) -> tuple[float, float, str]:
        """Return bounds from the spread of the rows, or of clusters."""
        s, clusters = self._tally.summary, self._tally.clusters
        if clusters is not None:
            alpha = 0.5 * (1.0 - level)
            return *clustered_interval(clusters.sums, alpha, self._rarity(alpha)), f"t on {len(clusters)} clusters"
        spread = summary_spread(s)
        if spread is None or spread.error == 0.0:
            return s.ecd, s.ecd, "no spread"
        return *spread.interval(s.ecd, level), "skewness-corrected t"

    def _rarity(self, alpha: float) -> Rarity:
        """Return how rare surprises are where the bounds lie: at that ECD they are as many as at that temperature."""
        if not isinstance(self.law, ClusteredLaw) or math.isnan(self.law.beta):
            return ALIKE
        smallest, largest = self.law.range
        high, low = (min(max(self._beta(alpha, side), smallest), largest) for side in (+1, -1))
        return Rarity(self.law.rarity(low).surprise, self.law.rarity(high).no_surprise)


def law_of(tally: Tally) -> Law | None:
    """Return the law of the summed surprise; None where it is not known."""
    s = tally.summary
    mass = s.weight - s.weight_impossible
    points = tally.points
    law: Law
    if points is not None:
        together = None
        if isinstance(tally.spectrum, Cells) and len(points.L) > _MANY:
            together = tally.spectrum.together()
        law = PointsLaw(points, s.sum_excess, mass, together)
    elif isinstance(tally.spectrum, Nodes):
        try:
            most_entropy = math.nan if tally.n_certain else tally.vague_entropy
            law = NodesLaw(tally.spectrum, s.sum_excess, mass, tally.weighted, most_entropy)
        except UnavailableError:
            return None
    elif family_named(tally.family).chi_square:
        law = StatesLaw(s)
    else:
        return None
    return law if tally.clusters is None else ClusteredLaw(law, tally.clusters)


_MOST = 1_000_000  # clusters


def clusters_needed(
    tally: Tally, *, threshold: float, max_temperature: float, alpha: float, max_ratio: float = math.inf
) -> int | None:
    """Return about how many more clusters of this kind would let the upper bounds fall within the limits.

    They are reckoned to be of the same sizes, with the same surprises, and as far correlated: what is known less well
    is known better by the root of their number.

    Parameters
    ----------
    tally : Tally
        Sums of rows in clusters.
    threshold : float
        Largest ECD that is allowed, in nats.
    max_temperature : float
        Largest temperature that is allowed.
    alpha : float
        Accepted probability that a bound misses.
    max_ratio : float, optional
        Largest ratio of mistakes that is allowed; by default it is not looked at.

    Returns
    -------
    int or None
        0 where all bounds are within the limits already; None where an estimate is not, or a million would not do.
    """
    clusters = tally.clusters
    assert clusters is not None
    bounds = Bounds(tally)
    law = bounds.law
    ecd, temperature = tally.summary.ecd, bounds.temperature(1.0 - 2.0 * alpha).value
    seen, announced = (float(clusters.column(name).sum()) for name in ("seen", "announced"))
    if not ecd < threshold or temperature >= max_temperature or seen >= max_ratio * announced > 0.0:
        return None
    places = np.zeros(len(clusters), dtype=np.intp), np.arange(len(clusters))
    clustered = law if isinstance(law, ClusteredLaw) and not math.isnan(law.beta) else None
    beta = None if clustered is None else max(1.0 / max_temperature, _beta_at(clustered, threshold))

    def within(times: float) -> bool:
        rarity = ALIKE if clustered is None or beta is None else clustered.rarity(beta)
        if clustered_interval(clusters.sums, alpha, rarity, times)[1] > threshold:
            return False
        if clustered is not None and beta is not None and clustered.lower(beta, times) > alpha:
            return False
        if math.isinf(max_ratio):
            return True
        return not clustered_ratios(*places, clusters.sums, 1, alpha, times=times).high[0] > max_ratio

    size = len(clusters)
    if within(1.0):
        return 0
    low, high = size, 2 * size
    while not within(high / size):
        if high >= _MOST:
            return None
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle / size) else (middle, high)
    return high - size


def _beta_at(law: Law, ecd: float) -> float:
    """Return the beta that goes with an ECD; the smallest where none is so flat."""
    low, high = (math.log(x) for x in law.range)
    if law.ecd(math.exp(low)) <= ecd:
        return math.exp(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if law.ecd(math.exp(middle)) > ecd else (low, middle)
    return math.exp(high)


@steady
@spelled()
def implied_temperature(
    y_true: Predictions | Tally | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Estimate by how much a model is over-confident, on its own scale.

    The tempered model ``p**(1/T)``, normalised, fits the outcomes best at the implied temperature. Above 1 the model is
    over-confident: ``T = 1.7`` says that its logits are 1.7 times too large, or for a Gaussian that its covariance is
    1.7 times too small. Below 1 it is under-confident. ``inf`` says that its confidence carries no information, 0 that
    every outcome was the most likely one, NaN that every prediction is a coin toss or a certainty.

    Parameters
    ----------
    y_true : array-like of shape (n,), Predictions or Tally
        What happened, with a prediction beside it, as in `evaluate`; or predictions of any family; or all their sums.
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
    level : float, default 0.95
        Level of the interval.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.

    Returns
    -------
    Interval
        The temperature, its interval, and the method.

    See Also
    --------
    calibration_test : Whether it differs from 1.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 2000)
    >>> y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
    >>> t = safecal.implied_temperature(y_true, logits=1.7 * log_odds)
    >>> t.low < 1.7 < t.high
    True
    """
    fraction(level, "level")
    if isinstance(y_true, Tally):
        refuse_arrays("sums", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        if cluster is not None or sample_weight is not None:
            hint = "give them to the tally: `predictions.tally(cluster=..., sample_weight=...)`."
            raise fail(OptionError, "y_true", "must be rows, not sums, for clusters or weights", hint=hint)
        tally = y_true
    else:
        predictions = predictions_of(
            y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, also=", a Tally"
        )
        same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster)
        tally = Tally.of(predictions, sample_weight=sample_weight, cluster=cluster)
    bounds = Bounds(tally)
    if bounds.law is None:
        raise UnavailableError("an unnormalised density has no temperature.")
    return bounds.temperature(level)
