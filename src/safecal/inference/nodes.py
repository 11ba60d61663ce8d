"""The law of K-class rows and of densities, from sums at a few inverse temperatures.

Between two nodes, values and three derivatives at both ends fix a polynomial of degree seven in log beta. For classes
it is that of the logarithm of ``R``, which is far straighter than ``R`` itself.
"""

import math
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
from scipy import special

from .._kernels.spectrum import NODES
from .._sums.nodes import Nodes
from .._types import FloatArray
from ..errors import UnavailableError
from .law import SMALLEST, Law, Tails, Tilt, lugannani_rice, pearson3

__all__ = ["BEYOND", "FROM_ENDS", "NodesLaw", "in_log_beta"]

_X = np.log(NODES)
_FEW = 25.0  # expected surprises, or one over the squared skewness, below which their law is a lattice
_MANY = 400.0  # expected surprises beyond which it is not looked at as one
BEYOND = 4.0  # times the last node: as far as an estimate is looked for


def _matrix_of_ends() -> FloatArray:
    """Return the matrix that turns values and derivatives at 0 and 1 into the coefficients of a polynomial."""
    rows = []
    for at in (0.0, 1.0):
        for order in range(4):
            rows.append([math.perm(k, order) * at ** (k - order) if k >= order else 0.0 for k in range(8)])
    return np.linalg.inv(np.array(rows))


FROM_ENDS = _matrix_of_ends()


class _BelowNodes(NamedTuple):
    """``R`` of classes below the lowest node: its Taylor series there, bent to what is known at beta = 0."""

    node: float
    series: list[float]  # R and three derivatives at the node
    fourth: float  # coefficient of the fourth power

    @classmethod
    def of(cls, node: float, series: list[float], at_zero: float) -> Self:
        """Fit the fourth power: at beta = 0 all classes are alike, and R is the logarithm of their number."""
        plain = cls(node, series, 0.0)
        missing = (at_zero - plain.at(0.0)[0]) / node**4
        return cls(node, series, missing) if math.isfinite(missing) else plain

    def at(self, beta: float) -> tuple[float, float, float, float]:
        d, (value, first, second, third), c = beta - self.node, self.series, self.fourth
        return (
            value + d * (first + d * (second / 2.0 + d * (third / 6.0 + d * c))),
            first + d * (second + d * (third / 2.0 + d * 4.0 * c)),
            second + d * (third + d * 12.0 * c),
            third + d * 24.0 * c,
        )


@final
class NodesLaw(Law):
    """Rows with more than two outcomes, or densities.

    ``excess`` is the summed excess of the possible rows, by weight, and ``mass`` the sum of their weights;
    ``most_entropy`` the entropy of a prediction that says nothing, NaN where some rows rule some classes out.
    """

    def __init__(self, nodes: Nodes, excess: float, mass: float, weighted: bool, most_entropy: float) -> None:
        self._classes, self._weighted = nodes.classes, weighted
        known = np.isfinite(nodes.sums).all(axis=1)
        if nodes.classes and nodes.sums[NODES.index(1.0), 2] > 0.0:
            known &= nodes.sums[:, 0] > 0.0  # predictions so sharp that nothing is left of the others at beta = 4
        usable: list[bool] = known.tolist()  # type: ignore[assignment]
        if not usable[NODES.index(1.0)]:
            raise UnavailableError("the log-partition function is not available.")
        kept = _known_around_one(usable, NODES.index(1.0))
        self._x, sums = _X[kept], nodes.sums[kept]
        self._flat = not nodes.sums[NODES.index(1.0), 2] > 0.0
        self._pieces = [] if self._flat else _polynomials(self._x, sums[:, :4], nodes.classes)
        self._lowest = _BelowNodes.of(math.exp(self._x[0]), sums[0, :4].tolist(), mass * most_entropy)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._ratios = [np.nan_to_num(sums[:, a] / sums[:, b], nan=1.0) for a, b in ((4, 2), (5, 3))]
        sums_at_one = nodes.sums[NODES.index(1.0)]
        at_one = Tilt(sums_at_one[0], -sums_at_one[1], sums_at_one[2], sums_at_one[4], -sums_at_one[5])
        seen = excess + at_one.mean
        if nodes.classes:
            seen = max(seen, 1e-300) if nodes.surprises else 0.0
        super().__init__(seen, mass, at_one)

    @property
    def method(self) -> str:
        return "Pearson III, from nodes" if self._weighted else "saddlepoint, from nodes"

    @property
    def unsurprised(self) -> bool:
        return self._classes and self.seen <= 0.0

    @property
    def range(self) -> tuple[float, float]:
        last = math.exp(self._x[-1])
        return (SMALLEST, last * BEYOND) if self._classes else (math.exp(self._x[0]), last)

    def _piece(self, x: float) -> tuple[float, float, list[float]]:
        """Return the polynomial around a logarithm of beta."""
        k = min(max(int(np.searchsorted(self._x, x, side="right")) - 1, 0), len(self._pieces) - 1)
        if x == self._x[-1]:
            k = max(len(self._x) - 2, 0)
        return self._pieces[k]

    def _rise(self, beta: float, other: float) -> float:
        """Return by how much R at beta is larger than at another one; all digits of it where they are close."""
        x, at = math.log(beta), math.log(other)
        start, width, coefficients = self._piece(at)
        if not start <= x <= start + width or at < start:
            return self._derivatives(beta)[0] - self._derivatives(other)[0]
        u, v = (x - start) / width, (at - start) / width
        value, quotient = coefficients[-1], 0.0
        for c in coefficients[-2::-1]:  # f(v), and f(u) - f(v) over u - v
            quotient = quotient * u + value
            value = value * v + c
        change = quotient * math.log1p((beta - other) / other) / width
        return math.exp(value) * math.expm1(change) if self._classes else change

    def _derivatives(self, beta: float) -> tuple[float, float, float, float]:
        """Return R and its first three derivatives."""
        x = math.log(beta)
        if self._classes and x < self._x[0]:
            return self._lowest.at(beta)
        start, width, coefficients = self._piece(x)
        u = (x - start) / width
        f = [0.0] * 4
        for order in range(4):
            total = 0.0
            for power in range(len(coefficients) - 1, order - 1, -1):
                total = total * u + math.perm(power, order) * coefficients[power]
            f[order] = total / width**order
        if self._classes:
            value = math.exp(f[0])
            f = [value, value * f[1], value * (f[2] + f[1] ** 2), value * (f[3] + 3.0 * f[1] * f[2] + f[1] ** 3)]
        first = f[1] / beta
        second = (f[2] - f[1]) / beta**2
        third = (f[3] - 3.0 * f[2] + 2.0 * f[1]) / beta**3
        return f[0], first, second, third

    def at(self, beta: float) -> Tilt:
        if self._flat or beta == 1.0:
            return self.at_one
        value, first, second, third = self._derivatives(beta)
        second = max(second, 0.0)
        three = float(np.interp(math.log(beta), self._x, self._ratios[1]))
        return Tilt(value, -first, second, second * self._weight(beta), -third * three)

    def tails(self, beta: float) -> Tails:
        at = self.at(beta)
        if self._flat:  # every outcome is as likely as every other: the sum has one value
            return Tails(1.0, 1.0)
        if not at.variance > 0.0:
            return Tails(0.0, 1.0) if self.seen > at.mean else Tails(1.0, 0.0)
        if not self._classes:
            return self._smooth(at, beta)
        rate = self._rate(beta, at)
        none = math.exp(-rate)  # the probability that nothing surprises
        if self.seen <= 0.0:
            return Tails(1.0, none)
        if self._weighted:
            tails = self._smooth(at, beta)
        else:
            upper, lower = self._given_a_surprise(beta)
            tails = Tails((1.0 - none) * upper, none + (1.0 - none) * lower)
        return self._guarded(beta, at, tails) if self._few else tails

    def _weight(self, beta: float) -> float:
        """Return the weight of a typical row: the mean over what the rows say about beta."""
        return float(np.interp(math.log(beta), self._x, self._ratios[0]))

    def _rate(self, beta: float, at: Tilt) -> float:
        """Return minus the logarithm of the probability that nothing surprises, as if all weights were typical."""
        return at.value / self._weight(beta)

    @cached_property
    def _few(self) -> bool:
        low, high = self.range
        beta = min(max(self.beta, low), high)
        at = self.at(beta)
        rate = self._rate(beta, at)
        return rate < _FEW or (rate < _MANY and at.skewness**2 * _FEW > 1.0)

    def _guarded(self, beta: float, at: Tilt, tails: Tails) -> Tails:
        """Widen tails by what they are if surprises have two sizes: a formula for smooth laws may miss their atoms."""
        rate, weight = self._rate(beta, at), self._weight(beta)
        cumulants = (at.mean / weight, at.variance / weight**2, at.third / weight**3)
        guard = two_size_tails(self.seen / weight, max(self.mass / weight, 1.0), rate, *cumulants)
        return Tails(max(tails.upper, guard[0]), max(tails.lower, guard[1]))

    def _smooth(self, at: Tilt, beta: float) -> Tails:
        if not self._weighted and 0.0 < self.beta < math.inf:
            best = self.at(self.beta)
            drop = (beta - self.beta) * self.seen + self._rise(beta, self.beta)
            return lugannani_rice(beta - self.beta, drop, best.variance, best.third)
        return pearson3(self.seen - at.mean, at.variance, at.third)

    # Given that something surprised, exp(R) - 1 takes the place of exp(R): what is left has no atom at 0.

    def _conditional(self, beta: float) -> Tilt:
        value, first, second, third = self._derivatives(beta)
        value = max(value, 1e-100)  # predictions so sharp that nothing is left of the others
        f = 1.0 / -math.expm1(-value) if value < 700.0 else 1.0
        f1 = (1.0 - f) * f
        f2 = (1.0 - 2.0 * f) * f1
        log_odds = value + math.log(-math.expm1(-value)) if value < 700.0 else value
        second_c = second * f + first * first * f1
        third_c = third * f + 3.0 * first * second * f1 + first**3 * f2
        return Tilt(log_odds, -first * f, second_c, second_c, -third_c)

    @cached_property
    def _conditional_root(self) -> tuple[float, Tilt] | None:
        low, high = self.range
        if not self._conditional(high).mean < self.seen < self._conditional(low).mean:
            return None
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._conditional(middle).mean > self.seen else (low, middle)
            if high / low - 1.0 < 1e-14:
                break
        return low, self._conditional(low)

    def _given_a_surprise(self, beta: float) -> tuple[float, float]:
        root = self._conditional_root
        conditional = self._conditional(beta)
        if root is None or not root[1].variance > 0.0:
            return self._at_most(beta, conditional)
        best, tilted = root
        beyond = (conditional.value - self._derivatives(beta)[0]) - (tilted.value - self._derivatives(best)[0])
        drop = (beta - best) * self.seen + self._rise(beta, best) + beyond
        return lugannani_rice(beta - best, drop, tilted.variance, tilted.third)

    def _at_most(self, beta: float, conditional: Tilt) -> tuple[float, float]:
        """Return tails that are not too small, by Chernoff's bound at the last node, where no tilt reaches the sum."""
        low, high = math.exp(self._x[0]), math.exp(self._x[-1])
        tails = []
        for end, beyond in ((low, self.seen > conditional.mean), (high, self.seen < conditional.mean)):
            exponent = self._conditional(end).value - conditional.value - (beta - end) * self.seen
            inside = (beta - end) * (1.0 if end == low else -1.0) > 0.0
            tails.append(math.exp(min(exponent, 0.0)) if beyond and inside else 1.0)
        return tails[0], tails[1]


def _known_around_one(usable: list[bool], start: int) -> slice:
    """Keep the nodes that follow one another around beta = 1."""
    low = high = start
    while low > 0 and usable[low - 1]:
        low -= 1
    while high + 1 < len(usable) and usable[high + 1]:
        high += 1
    return slice(low, high + 1)


def in_log_beta(beta: FloatArray, cumulants: FloatArray, classes: bool) -> tuple[FloatArray, ...]:
    """Return values and three derivatives in log beta, of those in beta; for classes, of the logarithm of R."""
    value, first, second, third = cumulants
    if classes:
        l1 = first / value
        l2 = second / value - l1 * l1
        l3 = third / value - 3.0 * first * second / value**2 + 2.0 * l1**3
        value, first, second, third = np.log(value), l1, l2, l3
    d3 = beta**3 * third + 3.0 * beta**2 * second + beta * first
    return value, beta * first, beta**2 * second + beta * first, d3


def _polynomials(x: FloatArray, sums: FloatArray, classes: bool) -> list[tuple[float, float, list[float]]]:
    """Return start, width and coefficients of the polynomial between each two nodes; of one node its Taylor series."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value, d1, d2, d3 = in_log_beta(np.exp(x), sums.T, classes)
    if len(x) == 1:
        return [(float(x[0]), 1.0, [float(value[0]), float(d1[0]), float(d2[0]) / 2.0, float(d3[0]) / 6.0])]
    pieces = []
    for k in range(len(x) - 1):
        h = float(x[k + 1] - x[k])
        ends = [c[j] * h**order for j in (k, k + 1) for order, c in enumerate((value, d1, d2, d3))]
        pieces.append((float(x[k]), h, (FROM_ENDS @ np.array(ends)).tolist()))
    if classes:  # a power of beta beyond the last node: it falls no faster than any R
        pieces.append((float(x[-1]), 1.0, [float(value[-1]), float(d1[-1])]))
    return pieces


_ONE = 0.02  # of the mean: sizes that differ less are one
_SLACK = 0.01  # of the sum seen: what two sizes leave unsaid
_MOST = 2000  # surprises that are enumerated


def two_size_tails(
    seen: float, rows: float, rate: float, mean: float, variance: float, third: float
) -> tuple[float, float]:
    """Return ``P(S >= seen)`` and ``P(S <= seen)``, with all that lies within one per cent of it in both.

    So many rows surprise with the same probability each, and with ``exp(-rate)`` none does; ``mean``, ``variance`` and
    ``third`` are the cumulants of the sum. Tails are exact where surprises have two sizes, but for the slack.
    """
    chance = -math.expm1(-rate / rows)
    expected = rows * chance
    m1 = mean / expected
    m2 = variance / expected + chance * m1 * m1
    m3 = third / expected + 3.0 * chance * m1 * m2 - 2.0 * chance * chance * m1**3
    spread = math.sqrt(max(m2 - m1 * m1, 0.0))
    most_surprises = int(min(rows, expected + 10.0 * math.sqrt(expected) + 30.0))
    if most_surprises > _MOST:  # so many have no atoms to speak of, and every pair of counts would fill the memory
        return 0.0, 0.0
    if spread < _ONE * m1:
        small, large, share = m1, m1, 1.0
    else:
        skew = (m3 - 3.0 * m1 * m2 + 2.0 * m1**3) / spread**3
        reach = math.sqrt(1.0 + 0.25 * skew * skew)
        small, large = max(m1 + spread * (0.5 * skew - reach), 0.0), m1 + spread * (0.5 * skew + reach)
        share = (0.5 * skew + reach) / (2.0 * reach)
    k = np.arange(most_surprises + 1.0)  # logarithms are taken of each count, and not of each pair of them
    factorial = special.gammaln(k + 1.0)
    log_small, log_large = (special.xlogy(k, chance * part) - factorial for part in (share, 1.0 - share))
    rest = special.gammaln(rows + 1.0) - special.gammaln(rows - k + 1.0) - (rows - k) * (rate / rows)
    a, b = np.indices((most_surprises + 1, most_surprises + 1 if share < 1.0 else 1)).reshape(2, -1)
    a, b = a[a + b <= most_surprises], b[a + b <= most_surprises]
    mass = np.exp(rest[a + b] + log_small[a] + log_large[b])
    total = a * small + b * large
    upper, lower = (float(mass[ok].sum()) for ok in (total >= seen * (1.0 - _SLACK), total <= seen * (1.0 + _SLACK)))
    return min(upper, 1.0), min(lower, 1.0)
