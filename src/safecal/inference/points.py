"""The law of two-class rows, from points that stand for them."""

import math
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy import special

from .._kernels.compiled import tempered_change, tempered_sums
from .._sums.cells import Points
from .._types import FloatArray
from .clustered import rarest_half
from .lattice import Lattice, listed_tails
from .law import LARGEST, SMALLEST, Law, Tails, Tilt, lugannani_rice, solve

__all__ = ["PointsLaw", "count_text"]

_FEW = 25.0  # expected surprises, or one over the squared skewness, below which the law is a lattice
_FARTHEST = 2.0**30  # log-odds that are certain at every beta
_LEAST = 1.0 / 16.0  # how flat a law is tilted: one without confidence would let rows surprise that never do
_COARSE = 40.0  # times the largest size: a law of few sizes with a smaller standard deviation is a lattice, too


class _Tilted(NamedTuple):
    """The law made proportional to ``exp(t S)``, so that the sum seen is the one expected."""

    t: float
    drop: float  # of the log-likelihood
    variance: float
    third: float


@final
class PointsLaw(Law):
    """Two-class rows, by points that stand for those that are possible and not certain.

    Their summed ``excess``, by weight, is exact, so that points need to be right for differences alone; ``mass`` is the
    sum of the weights of all possible rows. ``together`` are log-odds and counts of fewer points without weights, for
    all that does not depend on what happened.
    """

    def __init__(
        self, points: Points, excess: float, mass: float, together: tuple[FloatArray, FloatArray] | None = None
    ) -> None:
        # In units of the largest weight, so that no power of a weight leaves the range of floats. Rows that no beta
        # lets surprise are as good as certain, unless they did.
        unit = float(points.w.max()) if len(points.w) else 1.0
        clipped = False
        if len(points.L) and float(points.L.max()) > _FARTHEST:
            clipped = bool((points.wrong & (points.L > _FARTHEST)).any())
            points, together = points.take(points.wrong | (points.L <= _FARTHEST)), None
            points = points._replace(L=np.minimum(points.L, _FARTHEST))
        if unit != 1.0:
            points = points._replace(w=points.w / unit)
        self.points = points
        self.weighted = not bool((points.w == 1.0).all())
        self._L, self._n = (points.L, points.n) if together is None or self.weighted else together
        self._w = points.w if self.weighted else None
        self._nw = self._n if self._w is None else self._n * self._w
        self._tilts: dict[float, Tilt] = {}  # the same betas are asked for again and again
        at_one = self.at(1.0)
        surprised = points.wrong & (points.L > 0.0)
        seen = excess / unit + at_one.mean
        if clipped:
            seen = float((points.n * points.w)[surprised] @ points.L[surprised])
        super().__init__(max(seen, 1e-300) if surprised.any() else 0.0, mass / unit, at_one, unit)

    def at(self, beta: float) -> Tilt:
        tilt = self._tilts.get(beta)
        if tilt is None:
            tilt = self._tilts[beta] = self._tilt_at(beta)
        return tilt

    def _tilt_at(self, beta: float) -> Tilt:
        value, mean, information, third = tempered_sums(beta, self._L, self._nw)
        if self._w is None:
            return Tilt(value, mean, information, information, third)
        squares, cubes = self._powers
        variance, third = tempered_sums(beta, self._L, squares)[2], tempered_sums(beta, self._L, cubes)[3]
        return Tilt(value, mean, information, variance, third)

    @cached_property
    def _powers(self) -> tuple[FloatArray, FloatArray]:
        """How many rows there are, times the square of their weight and times its cube."""
        assert self._w is not None
        return self._nw * self._w, self._nw * self._w**2

    def expected(self, beta: float) -> float:
        """Return the expected number of surprises."""
        return float(self._n @ special.expit(-beta * self._L))

    def rarest_chances(self, beta: float) -> tuple[float, float]:
        """Return how probable surprises are where they are rarest, and their absence: see `Rarity`."""
        q = special.expit(-beta * self._L)
        deviation = self._nw * self._L * np.sqrt(q * (1.0 - q))
        return rarest_half(q, deviation), rarest_half(1.0 - q, deviation)

    def spread(self, beta: float) -> tuple[float, float]:
        """Return the sums of ``w`` times the standard deviation, and of ``w**2`` times the squared excess."""
        L, w, n, wrong, _, _ = self.points
        q = special.expit(-beta * L)
        excess = np.where(wrong, L, 0.0) - L * q
        square = (n * w * w) @ (excess * excess)
        return float((n * w) @ (L * np.sqrt(q * (1.0 - q)))), float(square)

    @cached_property
    def few(self) -> bool:
        """Whether so few surprises are expected, or of so few sizes, that the law is a lattice."""
        if math.isinf(self.beta):
            return True
        at = self.at(max(self.beta, SMALLEST))
        if self.expected(max(self.beta, SMALLEST)) < _FEW or at.skewness**2 * _FEW > 1.0:
            return True
        largest = float((self.points.w * self.points.L).max())
        return len(self.points.L) <= 64 and at.variance < (_COARSE * largest) ** 2

    @property
    def method(self) -> str:
        return "convolution" if self.few else "saddlepoint"

    def tails(self, beta: float) -> Tails:
        edge = self._edge_tails(beta)
        if edge is not None:
            return edge
        tilted = self._tilted(beta)
        if self.few and tilted is not None:
            tilt = tilted.t if self.weighted else min(tilted.t, beta - _LEAST * min(beta, 1.0))
            return self._lattice.tails(beta, tilt)
        return self._smooth_tails(beta, tilted)

    def smooth(self, beta: float) -> Tails:
        """Return saddlepoint tails; at the edges of the support, where there is no saddlepoint, exact ones."""
        return self._edge_tails(beta) or self._smooth_tails(beta, self._tilted(beta))

    def _edge_tails(self, beta: float) -> Tails | None:
        """Return the tails where nothing surprised, or everything; None elsewhere."""
        if self.seen <= 0.0:
            return Tails(1.0, math.exp(-self._rate(beta)))
        if self.seen >= self._largest_sum * (1.0 - 1e-12):
            return Tails(math.exp(-self._rate(-beta)), 1.0)
        return None

    def _smooth_tails(self, beta: float, tilted: _Tilted | None) -> Tails:
        if tilted is None:
            return Tails(0.0, 1.0) if self.seen > self.at(beta).mean else Tails(1.0, 0.0)
        return lugannani_rice(*tilted)

    def _rate(self, beta: float) -> float:
        """Return minus the logarithm of the probability that nothing surprises."""
        return float(self._n @ np.logaddexp(0.0, -beta * self._L))

    def _rate_change(self, beta: float, other: FloatArray) -> float:
        """Return by how much the rate at beta is larger than at one for each point; see `tempered_change`."""
        L, n = self._L, self._n
        step = (other - beta) * L
        share = special.expit(-other * L)
        far = np.abs(step) >= 1.0
        far_change = np.logaddexp(0.0, -beta * L[far]) - np.logaddexp(0.0, -other[far] * L[far])
        return float(n[~far] @ np.log1p(share[~far] * np.expm1(step[~far]))) + float(n[far] @ far_change)

    @cached_property
    def _largest_sum(self) -> float:
        return float(self._nw @ self._L)

    @cached_property
    def _lattice(self) -> Lattice:
        return Lattice(self.points)

    @cached_property
    def _root(self) -> tuple[float, Tilt]:
        """The beta at which the sum seen is the one expected, below 0 where that is so, and the sums there."""
        if 0.0 < self.beta < math.inf:
            return self.beta, self.at(self.beta)
        if self.seen >= self.at(SMALLEST).mean:
            low, high = 0.0, -1.0
            while self.at(high).mean < self.seen and high > -LARGEST:
                low, high = high, 2.0 * high
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self.at(middle).mean < self.seen else (low, middle)
            return high, self.at(high)
        beta = solve(self.at, self.seen, SMALLEST, LARGEST)
        return beta, self.at(beta)

    def _tilted(self, beta: float) -> _Tilted | None:
        """Tilt the law until the sum seen is the one expected; None where no tilt reaches it."""
        if self.weighted:
            return self._tilted_by_weight(beta, self.at(beta))
        root, best = self._root
        if not best.variance > 0.0:
            return None
        t = beta - root
        change = tempered_change(beta, root, self._L, self._n) if t else 0.0
        return _Tilted(t, t * self.seen + change, best.variance, best.third)

    def _tilted_by_weight(self, beta: float, at: Tilt) -> _Tilted | None:
        """Tilt each row by its own weight."""
        L, w, n = self.points.L, self.points.w, self.points.n
        t, low, high = 0.0, -math.inf, math.inf
        mean, variance, third = at.mean, at.variance, at.third
        scale = math.sqrt(at.variance)
        for _ in range(60):
            gap = self.seen - mean
            if abs(gap) <= 1e-10 * scale:
                return _Tilted(t, t * self.seen + self._rate_change(beta, beta - t * w), variance, third)
            low, high = (t, high) if gap > 0.0 else (low, t)
            step = t + gap / variance if variance > 0.0 else math.copysign(math.inf, gap)
            reach = 4.0 * (abs(beta) + abs(t))
            step = min(max(step, t - reach), t + reach)
            t = step if low < step < high else 0.5 * (low + high)
            b = beta - t * w
            q = special.expit(-b * L)
            m = L * q
            v = m * (L * (1.0 - q))
            mean, variance = float((n * w) @ m), float((n * w * w) @ v)
            third = float((n * w**3) @ (v * (L * (1.0 - 2.0 * q))))
            if variance < 1e-12 * scale * scale:
                break
        return None

    def tested(self) -> tuple[Tails, str, str]:
        """Return the tails at beta = 1, the method and why."""
        counts = np.rint(self.points.n)
        whole = bool((np.abs(self.points.n - counts) <= 1e-6 * counts).all())  # else not all values of rows are known
        listed = listed_tails(self.points, self.seen) if whole else None
        if listed is not None:
            return Tails(*listed), "exact", "the sum can take few values, and all of them are listed"
        announced = f"the model announces {count_text(self.expected(1.0))} mistakes"
        if self.few:
            return self.tails(1.0), "convolution", f"{announced}: the sum moves in steps, and no smooth law fits"
        return self.tails(1.0), "saddlepoint", f"{announced}, enough for a smooth law"


def count_text(number: float) -> str:
    return f"{number:.0f}" if number >= 100.0 else f"{number:.3g}"
