"""How the summed surprise would be distributed under each inverse temperature, and what follows from the sum seen.

A surprise is how much less likely an outcome was than the likeliest one, ``log p(likeliest) - log p(outcome)``; for
states it is half of NEES. Under ``p_beta``, proportional to ``p**beta``, its sum has the cumulants that `Law.at` gives.
It says all that the data say about beta. Impossible rows are left out: no temperature explains them.

Beside that, what laws of sums are made of: both tails where cumulants are known, each computed by itself so that no
p-value leaves [0, 1]; and the spread of a mean that the data themselves show.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self, final

import numpy as np
from scipy import special

from .._sums.summary import Summary
from .._types import FloatArray
from ..errors import UnavailableError

__all__ = [
    "ATOM", "FEW", "LARGEST", "SMALLEST", "Law", "Spread", "StatesLaw", "Tails", "Tilt", "crossing", "fitted",
    "lugannani_rice", "normal", "normal_score", "pearson3", "solve", "summary_spread", "undo_hall",
]  # fmt: skip

LARGEST, SMALLEST = 2.0**20, 2.0**-20  # inverse temperatures beyond which nothing changes any more
_STEPS = 100
_EXACT = 1e-12  # of a root, in log beta
_CLOSE = 1e-5  # in log beta: steps that are shorter shrink as they should
_NARROW = 1e-7  # of a bound, in normal scores
_ALL = 1e-3  # the smallest beta of a range that goes as far as it can
_EDGE = 1.0 + 1e-9  # times an end of the range: a root that stopped there
ATOM = 1e-10  # shape of a gamma law below which it is one value, but for a probability smaller than every level
_NEAR = 1e-3  # closer than this to the mean, in standard deviations, the saddlepoint formula is 0/0: use its limit


class Tilt(NamedTuple):
    """Sums at one beta, of ``w R`` and of ``w``, ``w**2`` and ``w**3`` times the cumulants of the surprise."""

    value: float  # R = -log p_beta(likeliest outcome)
    mean: float
    information: float  # w times the variance: how fast the mean falls with beta
    variance: float  # w**2 times the variance
    third: float

    @property
    def skewness(self) -> float:
        """Third cumulant over the third power of the standard deviation."""
        return self.third / self.variance / math.sqrt(self.variance) if self.variance > 0.0 else math.inf


class Tails(NamedTuple):
    """``P(S >= seen)`` and ``P(S <= seen)``; the atom at it is in both."""

    upper: float
    lower: float


def normal_score(probability: float) -> float:
    """Return the normal score of a tail probability: 1.645 for 5 %."""
    return float(-special.ndtri(min(max(probability, 1e-300), 1.0 - 1e-16)))


class Law(ABC):
    """The summed surprise that was seen, and how it would be distributed under each beta."""

    __slots__ = ("_beta", "at_one", "mass", "seen", "unit")

    seen: float  # the sum, weighted
    mass: float  # sum of the weights
    at_one: Tilt  # at beta = 1
    unit: float  # of the weights

    def __init__(self, seen: float, mass: float, at_one: Tilt, unit: float = 1.0) -> None:
        self.seen, self.mass, self.at_one, self.unit = seen, mass, at_one, unit
        self._beta: float | None = None

    @abstractmethod
    def at(self, beta: float) -> Tilt:
        """Return the sums at one beta; raise UnavailableError where they do not exist."""

    @abstractmethod
    def tails(self, beta: float) -> Tails:
        """Return both tails of the summed surprise under ``p_beta``, at the sum seen."""

    def rarest_chances(self, beta: float) -> tuple[float, float] | None:
        """Return how probable surprises are where they are rarest, and their absence; None where rows do not tell."""
        return None

    def spread(self, beta: float) -> tuple[float, float] | None:
        """Return the sums of standard deviations and of squared excess, weighted; None where rows do not tell."""
        return None

    @property
    @abstractmethod
    def method(self) -> str:
        """How tails are computed, in words."""

    @property
    def unsurprised(self) -> bool:
        """Whether every outcome was a likeliest one."""
        return self.seen <= 0.0

    @property
    def range(self) -> tuple[float, float]:
        """The betas that can be told apart."""
        return SMALLEST, LARGEST

    @property
    def beta(self) -> float:
        """The beta that the data ask for: 0, infinite, or NaN where every prediction is a coin toss or a certainty."""
        if self._beta is None:
            self._beta = self._estimate()
        return self._beta

    def _estimate(self) -> float:
        if not self.at_one.information > 0.0:
            return math.nan
        if self.unsurprised:
            return math.inf
        return fitted(self.at, self.seen, *self.range)

    def ecd(self, beta: float) -> float:
        """Return the ECD of the model if ``p_beta`` is the truth."""
        smallest, largest = self.range
        mean = self.at(min(max(beta, smallest), largest)).mean
        return (mean - self.at_one.mean) / self.mass

    def bound(self, alpha: float, side: int) -> float:
        """Return the smallest beta (``side`` -1) or the largest (+1) that a test of level alpha does not rule out."""
        if math.isnan(self.beta):
            return math.nan
        smallest, largest = self.range
        end, beyond = (smallest, 0.0) if side < 0 else (largest, math.inf)
        if self.beta == beyond:
            return beyond
        wanted = normal_score(alpha)

        def beyond_wanted(x: float) -> float:
            tails = self.tails(math.exp(x))
            return normal_score(tails.lower if side < 0 else tails.upper) - wanted

        middle = math.log(min(max(self.beta, smallest), largest))
        first = middle + side * self._likely_distance(wanted)
        beta_bound = _crossing_outward(beyond_wanted, middle, math.log(end), first, beyond)
        if beta_bound == math.exp(middle):  # nothing but the end of the range is left
            return self.beta if self.reaches else beta_bound
        return beta_bound

    @property
    def reaches(self) -> bool:
        """Whether its range is all that can be: not of densities, which are known for some temperatures only."""
        return self.range[0] <= _ALL

    def _likely_distance(self, score: float) -> float:
        """Return about how far a bound lies from the estimate, in log beta."""
        if not 0.0 < self.beta < math.inf:
            return 1.0
        at = self.at(self.beta)
        slope = at.information * self.beta
        return max(score, 0.1) * math.sqrt(at.variance) / slope if slope > 0.0 else 1.0


def fitted(at: Callable[[float], Tilt], seen: float, smallest: float, largest: float) -> float:
    """Return the beta that a sum asks for; 0 or infinity where that is not within the range."""
    root = solve(at, seen, smallest, largest)
    return 0.0 if root <= _EDGE * smallest else math.inf if root >= largest / _EDGE else root


def solve(at: Callable[[float], Tilt], seen: float, low: float, high: float) -> float:
    """Find the beta at which a sum is the one expected, by safeguarded Newton steps on log beta; else the end."""
    a, b = math.log(low), math.log(high)
    x, before = 0.0, 0.0
    for _ in range(_STEPS):
        try:
            tilt = at(math.exp(x))
        except UnavailableError:  # so flat a law does not exist: the root lies above
            a = x
            x = 0.5 * (a + b)
            continue
        gap = tilt.mean - seen
        a, b = (x, b) if gap > 0.0 else (a, x)
        slope = math.exp(x) * tilt.information
        step = x + gap / slope if slope > 0.0 else math.inf
        if not a < step < b:
            step = 0.5 * (a + b)
            before = 0.0
        length = abs(step - x)
        # Newton steps shrink with their square: so much shorter the next one would be.
        next_length = length**3 / before**2 if length < min(before, _CLOSE) else length
        if next_length < _EXACT or b - a < _EXACT:
            return math.exp(step)
        x, before = step, length
    return math.exp(x)


def _crossing_outward(f: Callable[[float], float], middle: float, end: float, first: float, beyond: float) -> float:
    """Find where an increasing score is 0 on the way from the middle to the end; ``beyond`` where it is nowhere."""
    inner, f_inner = middle, -math.inf
    outer, f_outer = first, math.nan
    step = first - middle
    while True:  # outward, until the score is reached
        outer = min(outer, end) if end > middle else max(outer, end)
        try:
            f_outer = f(outer)
        except UnavailableError:
            return beyond
        if f_outer >= 0.0:
            break
        if outer == end:
            return beyond
        inner, f_inner = outer, f_outer
        step *= 2.0
        outer += step
    if math.isinf(f_inner):
        f_inner = f(inner)
        if f_inner >= 0.0:
            return math.exp(inner)
    return crossing(f, inner, f_inner, outer, f_outer)


def crossing(f: Callable[[float], float], inner: float, f_inner: float, outer: float, f_outer: float) -> float:
    """Return the exponential of where a score is 0, between a point where it is below and one where it is not."""
    kept = 0
    for _ in range(_STEPS):  # inward: false position, with the end that stays halved (Illinois)
        x = (inner * f_outer - outer * f_inner) / (f_outer - f_inner)
        if not min(inner, outer) < x < max(inner, outer):
            x = 0.5 * (inner + outer)
        score = f(x)
        if abs(score) < _NARROW or abs(outer - inner) < 1e-13 * (1.0 + abs(x)):
            return math.exp(x)
        if score >= 0.0:
            outer, f_outer, f_inner = x, score, 0.5 * f_inner if kept > 0 else f_inner
            kept = 1
        else:
            inner, f_inner, f_outer = x, score, 0.5 * f_outer if kept < 0 else f_outer
            kept = -1
    return math.exp(0.5 * (inner + outer))


@final
class StatesLaw(Law):
    """Gaussian states, from their sums alone: exact without weights, Pearson III with them."""

    def __init__(self, summary: Summary) -> None:
        self._variance, self._third = summary.sum_varentropy_weight2, summary.sum_third_cumulant_weight3
        half = summary.sum_varentropy  # d / 2 a row: what half of NEES is expected to be
        self._weighted = summary.weight2 != summary.weight - summary.weight_impossible
        at_one = Tilt(0.0, half, half, self._variance, self._third)
        super().__init__(summary.sum_excess + half, summary.weight - summary.weight_impossible, at_one)

    @property
    def method(self) -> str:
        return "Pearson III" if self._weighted else "exact chi-square"

    def at(self, beta: float) -> Tilt:
        at_one = self.at_one
        return Tilt(
            0.0, at_one.mean / beta, at_one.information / beta**2, self._variance / beta**2, self._third / beta**3
        )

    def tails(self, beta: float) -> Tails:
        at = self.at(beta)
        return pearson3(self.seen - at.mean, at.variance, at.third)


def normal(z: float) -> Tails:
    """Return ``P(Z >= z)`` and ``P(Z <= z)`` for a standard normal."""
    return Tails(0.5 * math.erfc(z * math.sqrt(0.5)), 0.5 * math.erfc(-z * math.sqrt(0.5)))


def pearson3(value: float, variance: float, third: float) -> Tails:
    """Return both tails of the shifted gamma law with mean 0 and the given variance and third cumulant.

    Exact for sums over Gaussian predictions with equal weights.
    """
    spread = math.sqrt(variance)
    skew = third / variance / spread
    if abs(skew) < 1e-6:
        return normal(value / spread)
    if skew < 0:
        upper, lower = pearson3(-value, variance, -third)
        return Tails(lower, upper)
    shape, scale = (2.0 / skew) ** 2, third / (2.0 * variance)
    if shape < ATOM:
        return Tails(1.0 if value <= 0.0 else shape, 1.0)
    x = max(value / scale + shape, 0.0)
    return Tails(float(special.gammaincc(shape, x)), float(special.gammainc(shape, x)))


def lugannani_rice(distance: float, drop: float, variance: float, third: float) -> Tails:
    """Return both tails of a sum at its observed value, by the saddlepoint approximation.

    ``distance`` is how far the law has to be tilted for its mean to be the observed value, positive when the value lies
    above the mean. Between the tilted law and the one tested, ``drop`` is the difference in log-likelihood, which is
    not negative; ``variance`` and ``third`` are cumulants of the tilted law.
    """
    r = math.copysign(math.sqrt(2.0 * max(drop, 0.0)), distance)
    u = distance * math.sqrt(variance)
    density = math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
    if abs(u) < _NEAR or abs(r) < _NEAR:
        correction = third / variance**1.5 * (u * u - 1.0) / 6.0
    else:
        correction = 1.0 / u - 1.0 / r
    upper, lower = normal(r)
    upper, lower = upper + density * correction, lower - density * correction
    return Tails(min(max(upper, 0.0), 1.0), min(max(lower, 0.0), 1.0))


FEW = 200  # units below which each end is the wider of plain and corrected


def undo_hall(g: float, skew: float) -> float:
    """Undo Hall's transformation, which removes the skewness of t: ``t + k t^2/3 + k^2 t^3/27 + k/6``; see Hall (1992).

    ``skew`` is the third central moment of the sum over the third power of its standard deviation.
    """
    if abs(skew) < 1e-6:
        return g
    return float(3.0 / skew * (np.cbrt(1.0 + skew * (g - skew / 6.0)) - 1.0))


class Spread(NamedTuple):
    """How a mean over independent units spreads: standard error, skewness over the root of their number."""

    error: float
    skew: float
    units: int

    @classmethod
    def of(cls, parts: FloatArray, largest: float) -> Self | None:
        """Read it off what each unit adds to the mean, centred; None for one unit."""
        if len(parts) < 2:
            return None
        scale = float(np.abs(parts).max())
        if scale <= 1e-13 * largest:  # all differences are the same
            return cls(0.0, 0.0, len(parts))
        parts = parts / scale
        square = float(np.dot(parts, parts))
        error = scale * math.sqrt(square * len(parts) / (len(parts) - 1))
        return cls(error, float((parts**3).sum()) / square**1.5, len(parts))

    def statistic(self, value: float) -> float:
        """Return the difference over its standard error; 0 where there is neither."""
        return value / self.error if self.error > 0.0 else 0.0

    def _straightened(self, t: float) -> float:
        """Return Hall's transformation of t."""
        k = self.skew
        return t + k * t * t / 3.0 + k * k * t**3 / 27.0 + k / 6.0

    def p_value(self, value: float) -> float:
        """Return the two-sided p-value of no difference."""
        t = self.statistic(value)
        forms = [self._straightened(t)] + ([t] if self.units < FEW else [])
        lower = max(float(special.stdtr(self.units - 1, g)) for g in forms)
        upper = max(float(special.stdtr(self.units - 1, -g)) for g in forms)
        return min(1.0, 2.0 * min(lower, upper))

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        q = float(special.stdtrit(self.units - 1, 0.5 * (1.0 + level)))
        high_t, low_t = undo_hall(q, self.skew), undo_hall(-q, self.skew)
        if self.units < FEW:
            high_t, low_t = max(high_t, q), min(low_t, -q)
        return value - high_t * self.error, value - low_t * self.error


def summary_spread(s: Summary) -> Spread | None:
    """Return how ECD spreads, from sums; None where there is no spread, or none that a float can hold."""
    if not math.isfinite(s.sum_excess3_weight3):
        return None
    mean = s.ecd_possible
    second = s.sum_excess2_weight2 - 2.0 * mean * s.sum_excess_weight2 + mean * mean * s.weight2
    third = s.sum_excess3_weight3 - 3.0 * mean * s.sum_excess2_weight3
    third += 3.0 * mean * mean * s.sum_excess_weight3 - mean * mean * mean * s.weight3
    if not second > 1e-14 * s.sum_excess2_weight2 or s.n < 2:
        return None
    return Spread(math.sqrt(second * s.n / (s.n - 1)) / s.weight, third / second / math.sqrt(second), s.n)
