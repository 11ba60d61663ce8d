"""The law of rows that come in clusters: sums of clusters are compared with their own spread."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from .._sums.clusters import NEAR, Clusters
from .._types import FloatArray
from .dependence import ALIKE, Rarity, Sums
from .law import Law, StatesLaw, Tails, Tilt, crossing, normal_score
from .points import PointsLaw

__all__ = ["ClusteredLaw", "clusters_at_one"]

# Where tails are looked at for the smallest beta, from the outside inward: flat predictions first, then half octaves.
_INWARD = tuple(2.0**k for k in (-8.0, -6.0, -5.0, -4.0, *np.arange(-3.5, 20.0, 0.5).tolist()))


_MANY = 100.0  # equal clusters that rule out whatever lies beyond what they rule out


class _Node(NamedTuple):
    """Sums of clusters at one beta, in units of the weight."""

    expected: FloatArray
    variance: FloatArray
    deviation: FloatArray
    square: FloatArray


@final
class ClusteredLaw(Law):
    """A law of which only the sums at each beta are used; the spread is that of clusters.

    The sums of a cluster are known at beta = 1/2, 1 and 2. Between them their logarithms follow a parabola in beta,
    beyond them they change as those of all rows; squares follow a parabola in the surprise expected. Sums over all
    clusters are exact, but for deviations and squares of K classes. For states everything is exact.

    Parameters
    ----------
    law : Law
        That of the rows, without their clusters.
    clusters : Clusters
        Their sums.
    """

    def __init__(self, law: Law, clusters: Clusters) -> None:
        self._law, self._sharp = law, clusters.sharp
        nodes = [clusters.at(beta) for beta in NEAR]
        self._nodes = [
            _Node(n.expected / law.unit, n.variance / law.unit**2, n.deviation / law.unit, n.square / law.unit**2)
            for n in (node if np.isfinite(node.expected).all() else nodes[1] for node in nodes)
        ]
        self._seen = clusters.column("excess") / law.unit + self._nodes[1].expected
        super().__init__(law.seen, law.mass, law.one, law.unit)

    @property
    def method(self) -> str:
        return "cluster t"

    @property
    def range(self) -> tuple[float, float]:
        return self._law.range

    def at(self, beta: float) -> Tilt:
        return self._law.at(beta)

    def tails(self, beta: float) -> Tails:
        _, upper, lower = self.sums(beta).tails(self.rarity(beta))
        return Tails(float(upper[0]), float(lower[0]))

    def lower(self, beta: float, times: float) -> float:
        """Return the lower tail that so many times as many clusters of this kind would give."""
        return float(self.sums(beta).times(times).tails(self.rarity(beta))[2][0])

    def sums(self, beta: float) -> Sums:
        """Return how the sums of clusters spread, if ``p_beta`` is the truth."""
        node = self._node(beta)
        return Sums.of(self._seen - node.expected, node.variance, node.deviation, node.square)

    def rarity(self, beta: float) -> Rarity:
        """Return how rare surprises are, and their absence."""
        if isinstance(self._law, PointsLaw):
            return Rarity(*(np.array([x]) for x in self._law.rarity(beta)))
        if self._sharp is None:
            return ALIKE
        found = Rarity.of(self._sharp, np.array([node.deviation.sum() * self.unit for node in self._nodes]))
        x = math.log2(beta)
        return Rarity(*(np.array([np.interp(x, (-1.0, 0.0, 1.0), shares)]) for shares in found))

    def _node(self, beta: float) -> _Node:
        """Return the sums of each cluster at one beta."""
        at = self.at(beta)
        square = self._square(at.mean)
        if isinstance(self._law, StatesLaw):
            one, u = self._nodes[1], 1.0 / beta
            return _Node(one.expected * u, one.variance * u * u, one.deviation * u, square)
        mean, variance, deviation = self._between(min(max(beta, NEAR[0]), NEAR[-1]))
        ratio = at.variance / max(float(variance.sum()), 1e-300)
        mean, variance = _scaled(mean, at.mean), _scaled(variance, at.variance)
        if isinstance(self._law, PointsLaw):
            totals = self._law.spread(beta)
            return _Node(mean, variance, _scaled(deviation, totals[0]), _scaled(square, totals[1]))
        return _Node(mean, variance, deviation * math.sqrt(ratio), square)

    def _between(self, beta: float) -> list[FloatArray]:
        """Return all but the squares, by parabolas through the logarithms at the nodes."""
        if beta in NEAR:
            return list(self._nodes[NEAR.index(beta)][:3])
        weights = _lagrange(list(NEAR), beta)
        with np.errstate(invalid="ignore"):
            return [np.nan_to_num(np.exp(_mixed(weights, logs))) for logs in zip(*self._logs, strict=True)]

    def _square(self, mean: float) -> FloatArray:
        """Return the squares, by a parabola in the surprise expected: that of each row follows it about linearly."""
        nodes = self._expected
        apart = nodes[0] > nodes[1] > nodes[2] and (nodes[0] - nodes[1]) * (nodes[1] - nodes[2]) > 0.0
        if not apart:  # or so little that a product of it is 0
            return self._nodes[1].square
        return np.maximum(_mixed(_lagrange(nodes, mean), [node.square for node in self._nodes]), 0.0)

    @cached_property
    def _expected(self) -> list[float]:
        return [float(node.expected.sum()) for node in self._nodes]

    @cached_property
    def _logs(self) -> list[list[FloatArray]]:
        with np.errstate(divide="ignore"):
            return [[np.log(column) for column in node[:3]] for node in self._nodes]

    def bound(self, alpha: float, side: int) -> float:
        """Return a bound as `Law` does; the smallest beta is looked for from the outside.

        Few clusters may rule out some beta, yet not a smaller one. Only what lies below all that are not ruled out is
        excluded, so that over-confidence beyond a limit is denied as rarely as a test at that limit fails.
        """
        if side > 0 or not self.beta > 0.0 or self.sums(1.0).effective[0] > _MANY:
            return super().bound(alpha, side)
        wanted = normal_score(alpha)

        def beyond_wanted(x: float) -> float:
            return normal_score(self.tails(math.exp(x)).lower) - wanted

        smallest, largest = self.range
        end = min(self.beta, largest)
        ruled_out: tuple[float, float] | None = None
        for beta in (smallest, *(b for b in _INWARD if smallest < b < end), end):
            x = math.log(beta)
            here = beyond_wanted(x)
            if here < 0.0:
                return 0.0 if ruled_out is None else crossing(beyond_wanted, x, here, *ruled_out)
            ruled_out = x, here
        return self.beta


@np.errstate(over="ignore")  # squares of far log-odds
def clusters_at_one(clusters: Clusters) -> Sums:
    """Return how the sums of clusters spread if the model is right, in units of the largest weight of a cluster."""
    unit = max(float(clusters.column("weight").max()), 1e-300)
    one = clusters.at(1.0)
    parts = one.variance / unit**2, one.deviation / unit, one.square / unit**2
    return Sums.of(clusters.column("excess") / unit, *parts)


def _lagrange(nodes: list[float], x: float) -> list[float]:
    """Return the weights of three values in the parabola through them."""
    a, b, c = nodes
    return [
        (x - b) * (x - c) / ((a - b) * (a - c)),
        (x - a) * (x - c) / ((b - a) * (b - c)),
        (x - a) * (x - b) / ((c - a) * (c - b)),
    ]


def _mixed(weights: Sequence[float], columns: Sequence[FloatArray]) -> FloatArray:
    a, b, c = (w * column for w, column in zip(weights, columns, strict=True))
    return a + b + c


def _scaled(column: FloatArray, total: float) -> FloatArray:
    """Make a column add up to a total."""
    whole = float(column.sum())
    return column * (total / whole) if whole > 0.0 else np.full(len(column), total / len(column))
