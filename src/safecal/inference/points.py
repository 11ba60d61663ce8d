"""The law of two-class rows, from points that stand for them."""

import math
from functools import cached_property
from typing import final

import numpy as np
from scipy import special

from .._sums.cells import Points
from .._types import FloatArray
from .enumeration import listed_tails
from .law import LARGEST, SMALLEST, Law, Tails, Tilt, solve
from .tails import lugannani_rice

__all__ = ["PointsLaw"]

ENOUGH = 10.0  # expected surprises from which a test needs no drawing
FEW = 25.0  # expected surprises under which the tails of bounds are drawn
_DRAWS = 14_000
_TEST_DRAWS = 19_999


@final
class PointsLaw(Law):
    """Two-class rows.

    Parameters
    ----------
    points : Points
        What stands for the rows that are possible and not certain.
    excess : float
        Their summed excess, weighted; exact, so that points need to be right for differences alone.
    mass : float
        Sum of the weights of all possible rows.
    rng : numpy.random.Generator
        For tails that are drawn.
    """

    def __init__(self, points: Points, excess: float, mass: float, rng: np.random.Generator) -> None:
        self.points = points
        self.weighted = not bool((points.w == 1.0).all())
        self._nw = points.n * points.w
        self._rng = rng
        one = self.at(1.0)
        surprised = bool((points.wrong & (points.L > 0.0)).any())
        super().__init__(max(excess + one.mean, 1e-300) if surprised else 0.0, mass, one)

    def at(self, beta: float) -> Tilt:
        L, w = self.points.L, self.points.w
        x = beta * L
        t = np.exp(-np.abs(x))
        share = 1.0 / (1.0 + t)
        q = t * share if beta >= 0.0 else share  # the tempered probability of the less likely outcome
        mean = L * q
        spread = mean * (L * (1.0 - q))  # in this order, because L * L may overflow where q is 0
        nw = self._nw
        value = float(nw @ (np.log1p(t) + np.maximum(-x, 0.0)))
        v, third = nw * spread, spread * (L * (1.0 - 2.0 * q))
        if not self.weighted:
            return Tilt(value, float(nw @ mean), s := float(v.sum()), s, float(nw @ third))
        return Tilt(value, float(nw @ mean), float(v.sum()), float(v @ w), float((nw * w * w) @ third))

    def expected(self, beta: float) -> float:
        """Return the expected number of surprises."""
        return float(self.points.n @ special.expit(-beta * self.points.L))

    @cached_property
    def few(self) -> bool:
        """Whether so few surprises are expected that the law is a lattice."""
        return math.isinf(self.beta) or self.expected(max(self.beta, SMALLEST)) < FEW

    @property
    def method(self) -> str:
        return "drawn surprises" if self.few else "saddlepoint"

    def tails(self, beta: float) -> Tails:
        return self._drawn(beta) if self.few else self.smooth(beta)

    @cached_property
    def _root(self) -> tuple[float, Tilt]:
        """The beta at which the sum seen is the one expected, below 0 where that is so, and the sums there."""
        if self.seen >= self.at(SMALLEST).mean:
            low, high = 0.0, -1.0
            while self.at(high).mean < self.seen and high > -LARGEST:
                low, high = high, 2.0 * high
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self.at(middle).mean < self.seen else (low, middle)
            return high, self.at(high)
        beta = solve(self, self.seen, SMALLEST, LARGEST)
        return beta, self.at(beta)

    def smooth(self, beta: float) -> Tails:
        """Return saddlepoint tails."""
        at = self.one if beta == 1.0 else self.at(beta)
        if self.seen <= 0.0:  # the edge of the support: no surprise at all
            return Tails(1.0, math.exp(-float(self.points.n @ np.logaddexp(0.0, -beta * self.points.L))))
        if self.weighted:
            return self._weighted(beta, at)
        root, best = self._root
        if not best.variance > 0.0:
            return Tails(0.0, 1.0)
        drop = (beta - root) * self.seen + (at.value - best.value)
        return Tails(*lugannani_rice(beta - root, drop, best.variance, best.third))

    def _weighted(self, beta: float, at: Tilt) -> Tails:
        """Tilt each row by its own weight until the sum seen is the one expected."""
        L, w, n = self.points.L, self.points.w, self.points.n
        t, low, high = 0.0, -math.inf, math.inf
        value, mean, variance, third = at.value, at.mean, at.variance, at.third
        scale = math.sqrt(at.variance)
        for _ in range(60):
            gap = self.seen - mean
            if abs(gap) <= 1e-10 * scale:
                start = float(n @ np.logaddexp(0.0, -beta * L))
                drop = t * self.seen - (value - start if t else 0.0)
                return Tails(*lugannani_rice(t, drop, variance, third))
            low, high = (t, high) if gap > 0.0 else (low, t)
            step = t + gap / variance if variance > 0.0 else math.copysign(math.inf, gap)
            reach = 4.0 * (abs(beta) + abs(t))
            step = min(max(step, t - reach), t + reach)
            t = step if low < step < high else 0.5 * (low + high)
            b = beta - t * w
            q = special.expit(-b * L)
            m = L * q
            v = m * (L * (1.0 - q))
            value = float(n @ np.logaddexp(0.0, -b * L))
            mean, variance = float((n * w) @ m), float((n * w * w) @ v)
            third = float((n * w**3) @ (v * (L * (1.0 - 2.0 * q))))
            if variance < 1e-12 * scale * scale:
                break
        return Tails(0.0, 1.0) if self.seen > mean else Tails(1.0, 0.0)

    def listed(self) -> Tails | None:
        """Return exact tails at beta = 1, where the sum has few enough values to list them."""
        found = listed_tails(self.points, self.seen)
        return None if found is None else Tails(*found)

    def counted(self) -> Tails:
        """Return tails at beta = 1 by drawing outcomes from the model."""
        _, sums = self._draw(1.0, _TEST_DRAWS)
        slack = 1e-9 * max(1.0, self.seen)
        upper, lower = int((sums >= self.seen - slack).sum()), int((sums <= self.seen + slack).sum())
        return Tails((1 + upper) / (_TEST_DRAWS + 1), (1 + lower) / (_TEST_DRAWS + 1))

    def _draw(self, beta: float, draws: int) -> tuple[FloatArray, FloatArray]:
        """Draw the sum of surprises under ``p_beta``, plain and weighted, at the price of the surprises alone.

        They arrive as the first points of independent Poisson processes, one a row, so rows that do not surprise are
        never touched.
        """
        rate = np.log1p(np.exp(-beta * self.points.L))
        edges = np.concatenate([[0.0], np.cumsum(rate * self.points.n)])
        number = self._rng.poisson(edges[-1], draws)
        draw = np.repeat(np.arange(draws), number)
        arrival = self._rng.uniform(0.0, edges[-1], len(draw))
        point = np.minimum(np.searchsorted(edges, arrival, side="right") - 1, len(rate) - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            row = np.floor((arrival - edges[point]) / rate[point])
        # A row surprises once, however many points fall on it.
        order = np.lexsort((row, point, draw))
        draw, point, row = draw[order], point[order], row[order]
        first = np.concatenate([[True], (np.diff(draw) != 0) | (np.diff(point) != 0) | (np.diff(row) != 0)])[
            : len(draw)
        ]
        draw, point = draw[first], point[first]
        sizes = self.points.L[point]
        plain: FloatArray = np.bincount(draw, weights=sizes, minlength=draws).astype(np.float64)
        if not self.weighted:
            return plain, plain
        return plain, np.bincount(draw, weights=sizes * self.points.w[point], minlength=draws).astype(np.float64)

    @cached_property
    def _sample(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums drawn under a few betas around the estimate, and the log-density of their mixture.

        Under ``p_beta`` a sum ``s`` of surprises has a density proportional to ``exp(-beta s - R(beta))``, where ``R``
        is the summed rate of surprises, so the weight of a draw under any other beta is known.
        """
        bases = self._bases()
        drawn = [self._draw(beta, _DRAWS // len(bases)) for beta in bases]
        plain, sums = (np.concatenate([pair[j] for pair in drawn]) for j in (0, 1))
        exponents = [-beta * plain - self._rate(beta) for beta in bases]
        return plain, sums, special.logsumexp(exponents, axis=0)

    def _rate(self, beta: float) -> float:
        return float(self.points.n @ np.log1p(np.exp(-beta * self.points.L)))

    def _bases(self) -> list[float]:
        """Return betas that span what the data leave open."""
        if 0.0 < self.beta < math.inf:
            spread = min(self._width(1.0), 1.5)
            return [self.beta * math.exp(z * spread) for z in (-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5)]
        if self.beta == 0.0:
            return [2.0**-8, 2.0**-4, 0.125, 0.25, 0.5, 1.0, 2.0]
        return [self._with_surprises(count) for count in (0.2, 0.7, 1.5, 3.0, 5.0, 8.0)]

    def _with_surprises(self, count: float) -> float:
        """Return the beta under which so many surprises are expected."""
        low, high = SMALLEST, 1024.0
        for _ in range(30):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.expected(middle) > count else (low, middle)
        return math.sqrt(low * high)

    def _drawn(self, beta: float) -> Tails:
        if self.seen <= 0.0:
            return self.smooth(beta)
        plain, sums, mixture = self._sample
        exponent = -beta * plain - mixture
        weight = np.exp(exponent - exponent.max())
        slack = 1e-9 * max(1.0, self.seen)
        total = weight.sum()
        upper, lower = sums >= self.seen - slack, sums <= self.seen + slack
        return Tails(float(weight[upper].sum() / total), float(weight[lower].sum() / total))
