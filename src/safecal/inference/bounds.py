"""Bounds on ECD and on the temperature, read off a tally, at any level.

The spread of the rows alone is not enough. When predictions are sharp, most samples hold no surprise at all, look
perfect and vary little, while the truth lies above all of them. So the upper bound on ECD is the larger of the
empirical one and of the one that goes with the smallest inverse temperature the data do not rule out; and the lower
one likewise.
"""

import math
from typing import final

import numpy as np
from scipy import special

from .._checks.columns import one_cluster
from .._checks.message import fail
from .._sums.cells import Cells
from .._sums.nodes import Nodes
from .._sums.tally import Tally
from ..errors import EmptyError, UnavailableError, WeightError
from .cluster_bounds import clustered_interval
from .clustered import ClusteredLaw
from .dependence import ALIKE, Rarity
from .law import Law, normal_score
from .nodes import NodesLaw
from .points import PointsLaw
from .results import Interval
from .skewed import summary_spread
from .states import StatesLaw

__all__ = ["Bounds", "Curve", "inverse", "law_of"]

_DRAWN, _POINTS = 2.0**-6, 30  # the smallest beta, or inverse of the largest, in a picture; points of one side
_MANY = 256  # points beyond which those of a cell are taken together; fewer may be all the rows there are
Curve = list[tuple[float, float]]


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
            return Interval(math.nan, math.nan, math.nan, level, "none: no log-partition function")
        if math.isnan(self.law.beta):
            return Interval(math.nan, math.nan, math.nan, level, "none: every prediction is a toss or a certainty")
        alpha = 0.5 * (1.0 - level)
        low, high = (inverse(self._beta(alpha, side)) for side in (+1, -1))
        return Interval(inverse(self.law.beta), low, high, level, self.law.method)

    @np.errstate(all="ignore")
    def distances(self, most: float) -> tuple[Curve, Curve]:
        """Return how far the data rule temperatures out, for pictures: pairs of temperature and normal score.

        One list leads from the estimate down, the other up, each as far as the score ``most``; empty where there is no
        temperature, or none on that side.
        """
        if self.law is None or math.isnan(self.law.beta):
            return [], []
        return self._side(+1, most), self._side(-1, most)

    def _side(self, side: int, most: float) -> Curve:
        assert self.law is not None
        smallest, largest = self.law.range
        ends = [self._beta(alpha, side) for alpha in (0.5, float(special.ndtr(-most)))]
        first, last = (math.log(min(max(beta, smallest, _DRAWN), largest, 1.0 / _DRAWN)) for beta in ends)
        if self.law.beta == (math.inf if side > 0 else 0.0) or first == last:
            return []
        found = []
        for x in np.linspace(first, last, _POINTS).tolist():
            tails = self.law.tails(math.exp(x))
            score = normal_score(tails.upper if side > 0 else tails.lower)
            found.append((math.exp(-x), min(max(score, 0.0), most)))
        return found

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
        return Rarity(self.law.rarity(low).surprise, self.law.rarity(high).rest)


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
            most = math.nan if tally.n_certain else tally.most_entropy
            law = NodesLaw(tally.spectrum, s.sum_excess, mass, tally.weighted, most)
        except UnavailableError:
            return None
    elif tally.family == "gaussian":
        law = StatesLaw(s)
    else:
        return None
    return law if tally.clusters is None else ClusteredLaw(law, tally.clusters)
