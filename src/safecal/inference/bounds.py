"""Bounds on ECD and on the temperature, read off a tally, at any level.

The spread of the rows alone is not enough. When predictions are sharp, most samples hold no surprise at all, look
perfect and vary little, while the truth lies above all of them. So the upper bound on ECD is the larger of the
empirical one and of the one that goes with the smallest inverse temperature the data do not rule out; and the lower
one likewise.

Nats and temperatures are blind to rare events: predicted 18 times too seldom, they cost hundredths of a nat. The ratio
of mistakes, outcomes other than the likeliest, to what was announced is not: so it has bounds here, too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks import fail
from .._checks.columns import one_cluster, steadied
from .._sums import Tally
from .._sums.cells import Cells
from .._sums.nodes import Nodes
from .._sums.summary import Summary
from .._types import FloatArray
from ..errors import EmptyError, UnavailableError, WeightError
from ..families import family_named
from . import Interval
from .clustered import ALIKE, ClusteredLaw, Rarity
from .law import Law, StatesLaw, normal_score, summary_spread
from .nodes import NodesLaw
from .points import PointsLaw
from .sum_bounds import clustered_interval, clustered_ratios

__all__ = [
    "Bounds", "Mistakes", "clusters_needed", "costly_ratio", "divergence", "doubt_of_outcomes", "heaviest_weight",
    "inverse", "law_of", "mistakes_text", "ratio_at_least", "ratio_bounds", "temperature_gain",
]  # fmt: skip

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
            return Interval(math.nan, math.nan, math.nan, level, "none: it is not defined for these predictions")
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


def temperature_gain(tally: Tally) -> float:
    """Return how much the likelihood gains by the implied temperature."""
    law = law_of(tally)
    if law is None or not 0.0 < law.beta < math.inf:
        return 0.0 if law is None or math.isnan(law.beta) else math.inf
    if family_named(tally.family).chi_square:
        return 0.5 * tally.dimension * law.mass * (math.log(law.beta) + 1.0 / law.beta - 1.0)
    low, high = law.range
    beta = min(max(law.beta, low), high)
    return (1.0 - beta) * law.seen + law.at_one.value - law.at(beta).value


_MOST = 1_000_000  # clusters


def clusters_needed(
    tally: Tally, *, threshold: float, max_temperature: float, alpha: float, max_ratio: float = math.inf
) -> int | None:
    """Return about how many more clusters of this kind would let the upper bounds fall within the limits.

    They are reckoned to be of the same sizes, with the same surprises, and as far correlated: what is known less well
    is known better by the root of their number. The limits are those of ECD in nats, of the temperature, and of the
    ratio of mistakes; ``alpha`` is the accepted probability that a bound misses. The number is 0 where all bounds are
    within the limits already; None where an estimate is not, or a million would not do.
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


@final
@steadied
@dataclass(frozen=True, slots=True)
class Mistakes:
    """Mistakes made and mistakes announced.

    Attributes
    ----------
    seen : float
        Rows whose outcome was not the likeliest one; with weights, their weight.
    announced : float
        How many were to be expected by the model's own word: the sum of 1 minus the probability of the likeliest one.
    ratio : Interval
        The first over the second; above 1 there were more than announced.

    Examples
    --------
    >>> import safecal
    >>> mistakes = safecal.evaluate([1] * 90 + [0] * 10, [0.99] * 100).mistakes
    >>> mistakes.seen, round(mistakes.announced, 6), round(mistakes.ratio.low, 2)
    (10.0, 1.0, 4.8)
    """

    seen: float
    announced: float
    ratio: Interval

    @classmethod
    def of(cls, tally: Tally, level: float) -> Self | None:
        """Read them off a tally; None for states and densities.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float
            Level of the interval.

        Returns
        -------
        Mistakes or None
            With an exact Poisson interval; with weights, that of a gamma law of the same mean and variance; with
            clusters, one from their sums.
        """
        s = tally.summary
        if s.sum_correct is None or s.sum_confidence is None:
            return None
        seen, announced = max(s.weight - s.sum_correct, 0.0), max(s.weight - s.sum_confidence, 0.0)
        square, heaviest = (seen, 1.0) if not tally.weighted else _squared_and_largest_weight(tally, seen)
        alpha = 0.5 * (1.0 - level)
        value = seen / announced if announced > 0.0 else math.inf if seen > 0.0 else math.nan
        clusters = tally.clusters
        if clusters is not None:
            all_clusters = np.zeros(len(clusters), dtype=np.intp), np.arange(len(clusters)), clusters.sums, 1
            low, high = (float(x[0]) for x in clustered_ratios(*all_clusters, alpha))
            low = 0.0 if math.isnan(low) else low  # none was announced: how many were made says nothing of a ratio
            return cls(seen, announced, Interval(value, low, high, level, f"t on {len(clusters)} clusters"))
        bounds = ratio_bounds(np.array([seen]), np.array([square]), np.array([announced]), alpha, heaviest)
        low, high = (float(x[0]) for x in bounds)
        method = "weighted Poisson" if tally.weighted else "Poisson"
        return cls(seen, announced, Interval(value, low, high, level, method))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"seen": self.seen, "announced": self.announced, "ratio": self.ratio.to_dict()}
        return documents.document("mistakes", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        not_negative = documents.between(0.0)
        fields = {"seen": not_negative, "announced": not_negative, "ratio": Interval.from_dict}
        return cls(**documents.read("mistakes", document, fields))


_ANNOUNCED = 30.0  # mistakes, of which a model that means what it says makes some


def doubt_of_outcomes(mistakes: Mistakes | None, s: Summary) -> list[str]:
    """Ask whether outcomes are the model's own predictions, where no mistake was made and many were announced."""
    if mistakes is None or not s.weight2 > 0.0 or mistakes.seen > 1e-9 * mistakes.announced:
        return []
    if mistakes.announced * s.weight / s.weight2 < _ANNOUNCED:  # in rows of equal weight
        return []
    announced = mistakes_text(mistakes.announced)
    return [f"It made no mistake where it announced {announced}: are the outcomes its own predictions?"]


def mistakes_text(number: float) -> str:
    """Write how many mistakes there are; by weight, or where they are announced, that need not be whole."""
    return f"{number:.0f}" if number >= 10.0 or number == round(number) else f"{number:.2g}"


def ratio_bounds(
    seen: FloatArray, square: FloatArray, announced: FloatArray, alpha: float, heaviest: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the ratio, each missed with probability ``alpha`` at most.

    Without weights they are those of a Poisson law: a sum of independent yes-or-no outcomes spreads less. With
    weights, ``square`` is the sum of the squared weights of the mistakes (Fay and Feuer's interval).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(seen > 0.0, special.gammaincinv(seen * seen / square, alpha) * square / seen, 0.0)
        more, spread = seen + heaviest, square + heaviest * heaviest
        high = special.gammainccinv(more * more / spread, alpha) * spread / more
        return np.where(seen > 0.0, low / announced, 0.0), high / announced  # infinite where none was announced


def ratio_at_least(seen: FloatArray, announced: FloatArray, alpha: float) -> FloatArray:
    """Return the lower bounds of `ratio_bounds` alone, without weights."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seen > 0.0, special.gammaincinv(seen, alpha) / announced, 0.0)


def costly_ratio(wrong: FloatArray, nats: float) -> FloatArray:
    """Return how many times as many mistakes as announced cost so many nats, against knowing how often they come."""
    low, high = wrong, np.ones_like(wrong)
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = divergence(middle, wrong) > nats
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high / wrong)


def divergence(seen: FloatArray, said: FloatArray) -> FloatArray:
    """Return how many nats an outcome would gain by knowing how often it happens, or does not."""
    return np.asarray(special.rel_entr(seen, said) + special.rel_entr(1.0 - seen, 1.0 - said))


def _squared_and_largest_weight(tally: Tally, seen: float) -> tuple[float, float]:
    """Return the sum of the squared weights of mistakes, and the largest weight."""
    points, heaviest = tally.points, heaviest_weight(tally)
    if points is not None and len(points.w):
        return float((points.n * points.w**2)[points.wrong].sum()), heaviest
    return seen * heaviest, heaviest  # as if every mistake weighed as much: never too narrow


def heaviest_weight(tally: Tally) -> float:
    """Return the largest weight of a row; 1 where there are no weights, or none is known."""
    points = tally.points
    if points is not None:
        return float(points.w.max(initial=0.0)) or 1.0
    return tally.spectrum.heaviest if isinstance(tally.spectrum, Nodes) else 1.0
