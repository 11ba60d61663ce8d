"""Rows that come in clusters: how the sums of clusters spread where rows may share a shock, and the law that follows.

One number a key in each array. A t on the sums of clusters is wrong where clusters are few: while the shock has not
come, all of them look alike. So each side has a variance that no luck makes small.

- ``V`` is the variance of a sum if the rows of its cluster are independent, ``C`` that if they move as one; then
  ``(sum C)**2 / sum C**2`` is how many equal clusters these are worth, and one less the degrees of freedom.
- The correlation within clusters is read off products of rows, over what they would be if rows moved as one: by the
  model, and by the squares that were seen, whichever makes it larger; plus two standard errors. By the model alone it
  is too small whenever shocks were too few by chance, which is when it matters.
- It is taken for 1 where fewer than `EXPECTED` clusters are expected to show the rarer kind of outcome, if they move as
  one. What was seen does not matter for that: a shock hides well among rows that surprise one by one.
- Too small a sum is rare where surprises are: below, the rarer outcome is a surprise, and the variance is never less
  than the sum of squares around the mean that is tested. Above, it is that nothing surprises.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
from scipy import special

from .._checks.columns import numbered
from .._kernels.spectrum import STARTS
from .._sums import Tally
from .._sums.clusters import BASE, NEAR, BetaSums, Clusters, added_by
from .._types import FloatArray, IndexArray
from .law import Law, StatesLaw, Tails, Tilt, crossing, normal_score

__all__ = [
    "ALIKE", "ClusterSums", "ClusteredLaw", "LogisticPairs", "Rarity", "by_key", "clusters_at_one", "null_distance",
    "of_pairs", "rarest_half",
]  # fmt: skip

EXPECTED = 5.0
ENOUGH = 1.5  # equal clusters, below which nothing is said


class Rarity(NamedTuple):
    """How probable a surprise is, and that nothing surprises, where either is rarest: half of all deviations each."""

    surprise: FloatArray
    no_surprise: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, deviation: FloatArray) -> Self:
        """Bound them from below by the sums of `RARE`, of shape (keys, 4), and those of the deviations.

        In the half of a distribution where a root is smallest its mean lies above the whole mean less one standard
        deviation; and a mean square is at least a squared mean.
        """
        with np.errstate(all="ignore"):
            mean = sums / np.reshape(deviation, (-1, 1))
            spread = np.sqrt(np.maximum(mean[:, 0::2] - mean[:, 1::2] ** 2, 0.0))
            chances = np.maximum(mean[:, 1::2] - spread, 0.0) ** 2
        return cls(*np.nan_to_num(chances, nan=1.0).T)


ALIKE = Rarity(np.ones(1), np.ones(1))  # states and densities: each cluster shows what it is


def rarest_half(chance: FloatArray, deviation: FloatArray) -> float:
    """Return the mean chance, weighted by deviations, of the rows with the smallest that hold half of these."""
    order = np.argsort(chance, kind="stable")
    weight = deviation[order]
    reached = np.cumsum(weight)
    half = 0.5 * float(reached[-1]) if len(reached) else 0.0
    if not half > 0.0:
        return 1.0
    weight = np.clip(half - (reached - weight), 0.0, weight)
    return float(weight @ chance[order]) / half


class ClusterSums(NamedTuple):
    """Sums over the clusters of each key, with ``S`` the sum of a cluster, less what is expected of it."""

    clusters: FloatArray  # that can tell something
    total: FloatArray  # of S
    squares: FloatArray  # of S**2
    own: FloatArray  # of V
    shared: FloatArray  # of C - V
    effective: FloatArray  # equal clusters that these are worth
    correlation: FloatArray  # of shape (2, keys): by the model's squares, and by those seen
    error: FloatArray  # their standard errors

    @classmethod
    def of(
        cls, sums: FloatArray, variance: FloatArray, deviation: FloatArray, square: FloatArray,
        key: IndexArray | None = None, size: int = 1,
    ) -> Self:  # fmt: skip
        """Add up clusters: their sums S and V, of deviations (the roots of C), and of squared excess."""

        def added(column: FloatArray) -> FloatArray:
            return np.asarray(column.sum(keepdims=True)) if key is None else by_key(column, key, size)

        def of_key(column: FloatArray) -> FloatArray:
            return column if key is None else column[key]

        with np.errstate(all="ignore"):
            count = added(((deviation > 0.0) | (sums != 0.0)).astype(np.float64))
            share = deviation / of_key(added(deviation))  # so that no fourth power leaves the range of floats
            share *= share
            effective = added(share) ** 2 / added(share * share)
            effective = np.where(np.isfinite(effective), effective, count)
            shared = np.maximum(deviation**2 - variance, 0.0)
            seen = np.where(variance > 0.0, shared / variance * square, 0.0)
            products = sums**2 - square
            estimates = []
            for whole in (shared, seen):
                together = added(whole)
                correlation = np.where(together > 0.0, added(products) / together, 0.0)
                residual = added((products - of_key(correlation) * whole) ** 2)
                error = np.where(together > 0.0, np.sqrt(residual * count / (count - 1.0)) / together, 0.0)
                estimates.append((correlation, error))
            correlations, errors = (np.stack(x) for x in zip(*estimates, strict=True))
        total, squares, own, together = (added(x) for x in (sums, sums**2, variance, shared))
        return cls(count, total, squares, own, together, effective, correlations, errors)

    def times(self, factor: float) -> Self:
        """Return what so many times as many clusters of this kind would give."""
        scaled = {name: getattr(self, name) * factor for name in self._fields[:6]}
        return self._replace(**scaled, error=self.error / np.sqrt(factor))

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom; NaN where clusters are too few to tell anything."""
        return np.where((self.effective >= ENOUGH) & (self.clusters >= 2.0), self.effective - 1.0, np.nan)

    def above(self, rarity: Rarity) -> FloatArray:
        """Return the variance that the sum has at least, for tails above."""
        return np.fmax(self.seen(), self.floor(rarity.no_surprise))

    def below(self, rarity: Rarity) -> FloatArray:
        """Return the same for tails below."""
        return np.fmax(np.fmax(self.seen(), self.squares), self.floor(rarity.surprise))

    def seen(self) -> FloatArray:
        """Return the variance that the clusters themselves show."""
        with np.errstate(all="ignore"):
            centred = np.maximum(self.squares - self.total**2 / self.clusters, 0.0)
            return centred * self.clusters / (self.clusters - 1.0)

    def floor(self, chance: FloatArray) -> FloatArray:
        """Return the variance that there must be, where the rarer outcome has so large a chance."""
        with np.errstate(over="ignore", invalid="ignore"):
            likely = self.correlation + 2.0 * self.error
        likely = np.clip(np.where(np.isfinite(likely), likely, 1.0).max(axis=0), 0.0, 1.0)
        return self.own + np.where(self.effective * chance < EXPECTED, 1.0, likely) * self.shared

    def tails(self, rarity: Rarity) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return t, and the probabilities of a sum as large, and of one as small."""
        with np.errstate(all="ignore"):
            roots = np.sqrt(self.above(rarity)), np.sqrt(self.below(rarity))
            t = [np.where(self.total == 0.0, 0.0, self.total / root) for root in roots]
        df = self.freedom
        enough = np.isfinite(df)
        df = np.where(enough, df, 1.0)
        upper, lower = special.stdtr(df, -t[0]), special.stdtr(df, t[1])
        return np.where(self.total > 0.0, *t), np.where(enough, upper, 1.0), np.where(enough, lower, 1.0)


def of_pairs(key: IndexArray, cluster: IndexArray, sums: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Add up rows of the same pair of key and cluster; return the key of each, and its sums."""
    width = int(key.max(initial=0)) + 1
    pairs, index = numbered(cluster.astype(np.int64) * width + key)
    if len(pairs) == len(key):
        return key, sums
    return (pairs % width).astype(np.intp), added_by(index, len(pairs), list(sums.T))


def null_distance(
    mass: FloatArray, t: FloatArray, mass2: FloatArray, mixed: FloatArray, squares: FloatArray
) -> FloatArray:
    """Return the d at which ``d * mass`` is t times the root of the sum of ``(S - d * m)**2``, or infinity.

    Given are the sums of m, of ``m**2``, of ``S * m`` and of ``S**2``.
    """
    a, b = mass**2 - t * t * mass2, t * t * mixed
    return np.where(a > 0.0, (-b + np.sqrt(b * b + a * t * t * squares)) / a, math.inf)


def by_key(column: FloatArray, key: IndexArray, size: int) -> FloatArray:
    """Sum a column by key."""
    return np.asarray(np.bincount(key, weights=column, minlength=size), dtype=np.float64)


# Where tails are looked at for the smallest beta, from the outside inward: flat predictions first, then half octaves.
_INWARD = tuple(2.0**k for k in (-8.0, -6.0, -5.0, -4.0, *np.arange(-3.5, 20.0, 0.5).tolist()))
_MANY = 100.0  # equal clusters: so many that rule a beta out rule out all beyond it, too


@final
class ClusteredLaw(Law):
    """The law of rows that come in clusters: of that of the rows only the sums at each beta are used.

    The sums of a cluster are known at beta = 1/2, 1 and 2. Between them their logarithms follow a parabola in beta,
    beyond them they change as those of all rows; squares follow a parabola in the surprise expected. Sums over all
    clusters are exact, but for deviations and squares of K classes. For states everything is exact.
    """

    def __init__(self, law: Law, clusters: Clusters) -> None:
        self._law, self._sharp = law, clusters.sharp
        nodes = [clusters.at(beta) for beta in NEAR]
        self._nodes = [
            BetaSums(n.expected / law.unit, n.variance / law.unit**2, n.deviation / law.unit, n.square / law.unit**2)
            for n in (node if np.isfinite(node.expected).all() else nodes[1] for node in nodes)
        ]
        self._seen = clusters.column("excess") / law.unit + self._nodes[1].expected
        super().__init__(law.seen, law.mass, law.at_one, law.unit)

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

    def sums(self, beta: float) -> ClusterSums:
        """Return how the sums of clusters spread, if ``p_beta`` is the truth."""
        node = self._node(beta)
        return ClusterSums.of(self._seen - node.expected, node.variance, node.deviation, node.square)

    def rarity(self, beta: float) -> Rarity:
        """Return how rare surprises are, and their absence."""
        chances = self._law.rarest_chances(beta)
        if chances is not None:
            return Rarity(*(np.array([x]) for x in chances))
        if self._sharp is None:
            return ALIKE
        rarities = Rarity.of(self._sharp, np.array([node.deviation.sum() * self.unit for node in self._nodes]))
        x = math.log2(beta)
        return Rarity(*(np.array([np.interp(x, (-1.0, 0.0, 1.0), shares)]) for shares in rarities))

    def _node(self, beta: float) -> BetaSums:
        """Return the sums of each cluster at one beta."""
        at = self.at(beta)
        square = self._square(at.mean)
        if isinstance(self._law, StatesLaw):
            at_one, u = self._nodes[1], 1.0 / beta
            return BetaSums(at_one.expected * u, at_one.variance * u * u, at_one.deviation * u, square)
        mean, variance, deviation = self._between(min(max(beta, NEAR[0]), NEAR[-1]))
        ratio = at.variance / max(float(variance.sum()), 1e-300)
        mean, variance = _scaled_to(mean, at.mean), _scaled_to(variance, at.variance)
        totals = self._law.spread(beta)
        if totals is not None:
            return BetaSums(mean, variance, _scaled_to(deviation, totals[0]), _scaled_to(square, totals[1]))
        return BetaSums(mean, variance, deviation * math.sqrt(ratio), square)

    def _between(self, beta: float) -> list[FloatArray]:
        """Return all but the squares, by parabolas through the logarithms at the nodes."""
        if beta in NEAR:
            return list(self._nodes[NEAR.index(beta)][:3])
        weights = _lagrange(list(NEAR), beta)
        with np.errstate(invalid="ignore"):
            return [np.nan_to_num(np.exp(_weighted_sum(weights, logs))) for logs in zip(*self._logs, strict=True)]

    def _square(self, mean: float) -> FloatArray:
        """Return the squares, by a parabola in the surprise expected: that of each row follows it about linearly."""
        nodes = self._expected
        in_order = nodes[0] > nodes[1] > nodes[2] and (nodes[0] - nodes[1]) * (nodes[1] - nodes[2]) > 0.0
        if not in_order:  # or so little that a product of it is 0
            return self._nodes[1].square
        return np.maximum(_weighted_sum(_lagrange(nodes, mean), [node.square for node in self._nodes]), 0.0)

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
            score = beyond_wanted(x)
            if score < 0.0:
                return 0.0 if ruled_out is None else crossing(beyond_wanted, x, score, *ruled_out)
            ruled_out = x, score
        return self.beta


@np.errstate(over="ignore")  # squares of far log-odds
def clusters_at_one(clusters: Clusters) -> ClusterSums:
    """Return how the sums of clusters spread if the model is right, in units of the largest weight of a cluster."""
    unit = max(float(clusters.column("weight").max()), 1e-300)
    at_one = clusters.at(1.0)
    parts = at_one.variance / unit**2, at_one.deviation / unit, at_one.square / unit**2
    return ClusterSums.of(clusters.column("excess") / unit, *parts)


def _lagrange(nodes: list[float], x: float) -> list[float]:
    """Return the weights of three values in the parabola through them."""
    a, b, c = nodes
    return [
        (x - b) * (x - c) / ((a - b) * (a - c)),
        (x - a) * (x - c) / ((b - a) * (b - c)),
        (x - a) * (x - b) / ((c - a) * (c - b)),
    ]


def _weighted_sum(weights: Sequence[float], columns: Sequence[FloatArray]) -> FloatArray:
    a, b, c = (w * column for w, column in zip(weights, columns, strict=True))
    return a + b + c


def _scaled_to(column: FloatArray, total: float) -> FloatArray:
    """Make a column add up to a total."""
    whole = float(column.sum())
    return column * (total / whole) if whole > 0.0 else np.full(len(column), total / len(column))


class LogisticPairs(NamedTuple):
    """Pairs of cluster and coarse cell, as rows of a logistic regression on the log-odds.

    All rows of a pair are taken to have the probability that its mistakes were announced with. What a shift or a slope
    owes to a cluster is then a sum over its pairs.
    """

    cluster: IndexArray
    size: int
    z: FloatArray
    seen: FloatArray  # the weight of rows in which the event happened
    weight: FloatArray
    weight2: FloatArray

    @classmethod
    def of(cls, tally: Tally) -> Self | None:
        """Read the pairs of a tally; None where it has none: documents do not hold them."""
        if tally.cell_pairs is None or tally.clusters is None:
            return None
        pairs = tally.cell_pairs.of_order(None)
        weight, weight2, wrong, announced = (
            pairs.sums[:, BASE.index(name)] for name in ("weight", "weight2", "seen", "announced")
        )
        usable = (weight > 0.0) & (announced > 0.0)
        cluster, weight, weight2, wrong = pairs.cluster[usable], weight[usable], weight2[usable], wrong[usable]
        positive = pairs.cell[usable] >= len(STARTS)
        L = np.log(np.maximum(weight - announced[usable], 1e-300)) - np.log(announced[usable])
        seen = np.where(positive, weight - wrong, wrong)
        numbers, index = np.unique(cluster, return_inverse=True)
        return cls(index, len(numbers), np.where(positive, L, -L), seen, weight, weight2)

    def error(self, shift: float, slope: float, along: FloatArray) -> tuple[float, float]:
        """Return the standard error of the score in a direction, at a shift and a slope, and its degrees of freedom.

        The degrees are NaN where clusters are too few.
        """
        x = shift + slope * self.z
        q, not_q = special.expit(x), special.expit(-x)
        pull = along[0] + along[1] * self.z
        share = np.where(self.weight > 0.0, self.weight2 / self.weight, 0.0)
        deviation = np.abs(pull) * self.weight * np.sqrt(q * not_q)
        columns = (
            pull * (self.seen - self.weight * q),
            pull**2 * self.weight2 * q * not_q,
            deviation,
            pull**2 * share * (self.seen * not_q**2 + (self.weight - self.seen) * q**2),
        )
        total, variance, moved, square = (by_key(column, self.cluster, self.size) for column in columns)
        sums = ClusterSums.of(total, variance, moved, square)
        # Either side may hide what has not happened yet: the rarer outcome of the rows that weigh most.
        chance = np.array([rarest_half(np.minimum(q, not_q), deviation)])
        largest = float(sums.below(Rarity(chance, chance))[0])
        return math.sqrt(max(largest, 0.0)), float(sums.freedom[0])
