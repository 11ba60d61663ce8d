"""The integral of ``f**beta`` by formula, by a double-exponential rule on quantiles, or by a sum over a support.

Each gives, for any ``beta``, its logarithm ``A(beta)`` and the moments of ``log f`` under the tempered density: the
entropy and more follow. The rule and the sum go through weighted outcomes; their central moments grow a batch at a
time, without cancellation. For a formula write the density as ``f = g / Z`` with a kernel ``g``. All share one form of

    log integral g**beta = S(beta) + constant,
    S(beta) = sum_j c_j log Gamma(a_j beta + b_j) - (p beta + q) log beta + r / beta

so a distribution is a line in a table, and ``A(beta) = S(beta) - beta S(1) + (1 - beta) L``, where ``L`` holds the
constant and the logarithm of the scale.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from scipy import special

from .._kernels.ensemble import Moments
from .._kernels.states import LOG_2PI
from .._types import FloatArray
from ..errors import UnavailableError
from .family import Cumulants

__all__ = [
    "DensityLaw", "Formula", "Integral", "Number", "Quadrature", "Summation", "beta_distribution", "dirichlet", "gamma",
    "gumbel", "lognormal", "normal", "pareto", "student", "weibull",
]  # fmt: skip

Number: TypeAlias = Any  # a float or an array of floats

_LARGEST_PARAMETER = 1e5  # beyond, differences of log Gamma lose more digits than a quadrature


class Integral(Protocol):
    """A way to compute ``A(beta)`` and its derivatives, exactly or nearly so."""

    @property
    def method(self) -> str:
        """Name of the way."""

    def open(self) -> Callable[[float], Cumulants]:
        """Return the function from beta to the cumulants, for a row or for all; it raises UnavailableError."""


@final
@dataclass(frozen=True, slots=True)
class DensityLaw:
    """What is used of a distribution, whatever library it comes from."""

    name: str
    log_density: Callable[[FloatArray], FloatArray]  # outcomes, one a row -> (n,)
    draw: Callable[[np.random.Generator], FloatArray]  # -> one fresh draw for each row, shaped like x_true
    integrals: tuple[Integral, ...] = ()  # in the order of preference
    entropy: FloatArray | None = None  # where it is known but the integrals are not
    quick: bool = True  # whether one draw for each row takes one call


@final
@dataclass(frozen=True, slots=True)
class Formula:
    """The coefficients of ``A(beta)``; ``events`` trailing axes are independent components and are summed over."""

    constant: Number
    gammas: tuple[tuple[float, Number, Number], ...] = ()
    power: tuple[Number, Number] = (0.0, 0.0)
    inverse: Number = 0.0
    events: int = 0

    method = "formula"

    @property
    def exact(self) -> bool:
        """Tell whether the parameters are moderate and valid, so that nothing is lost to cancellation."""
        sizes = [np.max(np.abs(a) + np.abs(b), initial=0.0) for _, a, b in self.gammas]
        valid = all(np.all(np.asarray(a + b) > 0.0) for _, a, b in self.gammas)
        return valid and bool(np.isfinite(self.constant).all()) and bool(max(sizes, default=0.0) <= _LARGEST_PARAMETER)

    def open(self) -> Callable[[float], Cumulants]:
        """Return the function from beta to the cumulants."""
        return self._at

    def _at(self, beta: float) -> Cumulants:
        self._require(beta)
        p, q = self.power
        sums: list[Number] = []
        for order in range(4):
            total: Number = 0.0
            for c, a, b in self.gammas:
                x = a * beta + b
                total = total + c * a**order * (special.gammaln(x) if order == 0 else special.polygamma(order - 1, x))
            sums.append(total)
        if np.any(p) or np.any(q) or np.any(self.inverse):
            log, r = np.log(beta), self.inverse
            sums[0] = sums[0] - (p * beta + q) * log + r / beta
            sums[1] = sums[1] - p * (log + 1.0) - q / beta - r / beta**2
            sums[2] = sums[2] - p / beta + q / beta**2 + 2.0 * r / beta**3
            sums[3] = sums[3] + p / beta**2 - 2.0 * q / beta**3 - 6.0 * r / beta**4
        at_one: Number = self.inverse
        for c, a, b in self.gammas:
            at_one = at_one + c * special.gammaln(a + b)
        sums[0] = sums[0] - beta * at_one + (1.0 - beta) * self.constant
        sums[1] = sums[1] - at_one - self.constant
        return Cumulants(*(self._summed(x) for x in np.broadcast_arrays(*sums)))

    def _require(self, beta: float) -> None:
        tempered = bool(np.any(self.power[0]) or np.any(self.power[1]) or np.any(self.inverse))
        least = min((float(np.min(np.asarray(a * beta + b))) for _, a, b in self.gammas), default=1.0)
        if (tempered and not beta > 0.0) or not least > 0.0:
            raise UnavailableError(f"log_partition at beta = {beta!r} is infinite for some of these densities.")

    def _summed(self, value: FloatArray) -> FloatArray:
        axes = tuple(range(value.ndim - self.events, value.ndim))
        return np.asarray(value.sum(axis=axes) if axes else value, dtype=np.float64).reshape(-1)


def normal(dimension: int, half_log_det: Number) -> Formula:
    """Return the formula of a normal distribution from half the log-determinant of its covariance."""
    return Formula(dimension / 2.0 * LOG_2PI + half_log_det, power=(0.0, dimension / 2.0))


def student(dimension: int, df: Number, half_log_det: Number) -> Formula:
    """Return the formula of Student's t distribution in one or several dimensions."""
    a, half = (df + dimension) / 2.0, dimension / 2.0
    return Formula(half_log_det + half * np.log(df * np.pi), ((1.0, a, -half), (-1.0, a, 0.0)))


def dirichlet(alpha: FloatArray, log_scale: Number = 0.0) -> Formula:
    """Return the formula of a Dirichlet distribution; with two components that of a beta distribution."""
    components = np.moveaxis(np.asarray(alpha, dtype=np.float64), -1, 0)
    k, total = float(len(components)), components.sum(axis=0)
    return Formula(log_scale, (*((1.0, a - 1.0, 1.0) for a in components), (-1.0, total - k, k)))


def gamma(a: Number, log_scale: Number) -> Formula:
    """Return the formula of a gamma distribution of shape a."""
    return Formula(log_scale, ((1.0, a - 1.0, 1.0),), power=(a - 1.0, 1.0))


def beta_distribution(a: Number, b: Number, log_scale: Number) -> Formula:
    """Return the formula of a beta distribution."""
    return dirichlet(np.stack(np.broadcast_arrays(a, b), axis=-1), log_scale)


def lognormal(s: Number, log_scale: Number) -> Formula:
    """Return the formula of a lognormal distribution: s is the standard deviation of the logarithm."""
    return Formula(log_scale + LOG_2PI / 2.0 + np.log(s) - s**2, power=(0.0, 0.5), inverse=s**2 / 2.0)


def weibull(c: Number, log_scale: Number) -> Formula:
    """Return the formula of a Weibull distribution of shape c."""
    k = (c - 1.0) / c
    return Formula(log_scale - np.log(c), ((1.0, k, 1.0 - k),), power=(k, 1.0 - k))


def gumbel(log_scale: Number) -> Formula:
    """Return the formula of a Gumbel distribution, of either side."""
    return Formula(log_scale, ((1.0, 1.0, 0.0),), power=(1.0, 0.0))


def pareto(b: Number, log_scale: Number) -> Formula:
    """Return the formula of a Pareto distribution of shape b."""
    return Formula(log_scale, ((1.0, b + 1.0, -1.0), (-1.0, b + 1.0, 0.0)))


_BATCH = 1 << 17  # elements evaluated at once
_MOST_HELD = 1 << 22  # elements kept between one beta and the next
_LOW, _NARROW, _WIDE = -3.75, 4.0, 6.5  # of t; quantiles down to 1e-24, or down to 1e-300
_LEVELS = 7  # the step is 1/4, halved at each level
_GOAL, _ENOUGH = 1e-8, 1e-5  # change at which to stop; at which the last level will do (a density with a kink)

# ((k, 1) probabilities, whether they are counted from the top) -> pairs of a log-weight (rows,) and (k, rows) values of
# log f at those quantiles: one pair, or one for each component of a mixture.
QuantileDensity = Callable[[FloatArray, bool], Iterable[tuple[FloatArray, FloatArray]]]
# (k, rows) or (k, 1) outcomes -> (k, rows) values of log f
MassFunction = Callable[[FloatArray], FloatArray]
# Which tail of which component, (k, rows) log-weights (-inf where log f is unusable), (k, rows) values of log f
TailNodes = tuple[tuple[bool, int], FloatArray, FloatArray]


def _unreachable(name: str, beta: float) -> UnavailableError:
    what = "entropy" if beta == 1.0 else f"log_partition at beta = {beta!r}"
    return UnavailableError(f"{what} of {name} cannot be computed: it is infinite, or its tails are out of reach.")


def _change(new: Cumulants, old: Cumulants) -> float:
    scale = (1.0, 1.0 + np.abs(new.mean), 1.0 + new.variance, 1.0 + np.abs(new.third) + new.variance**1.5)
    worst = 0.0
    for a, b, s in zip(new, old, scale, strict=True):
        worst = max(worst, float(np.max(np.abs(a - b) / s)))
    return worst if np.isfinite(worst) else np.inf


@final
@dataclass(frozen=True, slots=True)
class Quadrature:
    """Expectations over a continuous density of one variable, through its quantiles.

    ``E g(X)`` is the integral of ``g(quantile(u))`` over (0, 1), in two halves so that both tails are resolved. With
    ``u = exp(-w)/2`` and ``w = exp(t - exp(-t))``, the trapezoidal rule in ``t`` converges exponentially even where
    ``log f`` or a power of ``f`` is singular at the ends. The step is halved until nothing changes.
    """

    name: str
    rows: int
    log_density: QuantileDensity
    log_scale: FloatArray  # of the outcomes: the densities above are those of an outcome divided by its scale

    method = "quadrature"

    def open(self) -> Callable[[float], Cumulants]:
        """Return the function from beta to the cumulants; it keeps the nodes as long as it lives."""
        held: dict[tuple[bool, int], list[TailNodes]] = {}

        def nodes(wide: bool, level: int) -> Iterable[TailNodes]:
            size = (_WIDE - _LOW) * 4 * 2**level * self.rows
            if size > _MOST_HELD:
                return self._nodes(wide, level)
            if (wide, level) not in held:
                held[wide, level] = list(self._nodes(wide, level))
            return held[wide, level]

        def at(beta: float) -> Cumulants:
            with np.errstate(all="ignore"):  # what overflows does not converge, and is refused
                return self._at(beta, nodes)

        return at

    def _at(self, beta: float, nodes: Callable[[bool, int], Iterable[TailNodes]]) -> Cumulants:
        wide = beta < 1.0
        moments, cumulants, change = Moments(self.rows), None, np.inf
        edges: dict[tuple[bool, int], FloatArray] = {}
        for level in range(_LEVELS):
            for tail, log_weight, log_f in nodes(wide, level):
                term = np.where(np.isneginf(log_weight), -np.inf, log_weight + (beta - 1.0) * log_f)
                moments.add(term, log_f)
                if level == 0:
                    edges[tail] = _last_term(term, edges.get(tail))
            coarser, cumulants = cumulants, Cumulants(*moments.columns())
            cumulants = cumulants._replace(value=cumulants.value + np.log(0.25 / 2**level))
            if coarser is None:
                lost = np.max(list(edges.values()), axis=0) + np.log(0.25) - cumulants.value
                if not (lost <= np.log(_ENOUGH)).all():
                    raise _unreachable(self.name, beta)
                continue
            change = _change(cumulants, coarser)
            if level >= 2 and change <= _GOAL:
                break
        assert cumulants is not None
        missing = float(np.abs(cumulants.value).max()) if beta == 1.0 else 0.0  # the total weight must be 1
        if not (change <= _ENOUGH and missing <= _ENOUGH):
            raise _unreachable(self.name, beta)
        value, mean = cumulants.value + (1.0 - beta) * self.log_scale, cumulants.mean - self.log_scale
        return cumulants._replace(value=value, mean=mean)

    def _nodes(self, wide: bool, level: int) -> Iterator[TailNodes]:
        """Yield the nodes of one level from the median outward, in both directions."""
        step = 0.25 / 2**level
        t = np.arange(_LOW, (_WIDE if wide else _NARROW) + step / 2.0, step)
        t = t if level == 0 else t[1::2]
        w = np.exp(t - np.exp(-t))
        u = np.exp(-w) / 2.0
        log_weight = -w - np.log(2.0) + t - np.exp(-t) + np.log1p(np.exp(-t))
        size = max(1, _BATCH // self.rows)
        for upper in (False, True):
            for start in range(0, len(u), size):
                part = slice(start, start + size)
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # far tails overflow; what is not finite is left out
                    components = list(self.log_density(u[part, None], upper))
                for number, (share, log_f) in enumerate(components):
                    usable = np.isfinite(log_f) & np.ones((1, self.rows), dtype=bool)
                    weight = np.where(usable, log_weight[part, None] + share, -np.inf)
                    yield (upper, number), weight, np.where(usable, log_f, 0.0)


def _last_term(term: FloatArray, inner: FloatArray | None) -> FloatArray:
    """Return the outermost usable term of each row so far: what the tail beyond it may add."""
    usable = ~np.isneginf(term)
    last = len(term) - 1 - usable[::-1].argmax(axis=0)
    outermost = np.take_along_axis(term, last[None, :], axis=0)[0]
    return np.where(usable.any(axis=0), outermost, np.inf if inner is None else inner)


_MOST_TERMS = 1 << 21  # of one sum
_MOST_WORK = 1 << 26  # of all rows together
_NEGLIGIBLE = -39.0  # e**-39 is 1e-17


@final
@dataclass(frozen=True, slots=True)
class Summation:
    """Expectations over a discrete distribution on the integers from ``low`` to ``high``, or over listed ``support``.

    A short support is summed whole; a long or infinite one outward from ``centre``, in blocks that double, until a
    block adds nothing in any row.
    """

    name: str
    rows: int
    log_mass: MassFunction
    low: FloatArray
    high: FloatArray
    centre: FloatArray
    support: FloatArray | None = None

    method = "summation"

    def open(self) -> Callable[[float], Cumulants]:
        """Return the function from beta to the cumulants; it keeps the terms as long as it lives."""
        held: dict[tuple[float, int], FloatArray] = {}

        def terms(sign: float, start: int, stop: int) -> FloatArray:
            if (sign, start) in held:
                return held[sign, start]
            log_f = self._terms(sign, start, stop)
            if sum(part.size for part in held.values()) + log_f.size <= _MOST_HELD:
                held[sign, start] = log_f
            return log_f

        return lambda beta: self._at(beta, terms)

    def _at(self, beta: float, terms: Callable[[float, int, int], FloatArray]) -> Cumulants:
        moments = Moments(self.rows)
        for sign in (1.0, -1.0):
            self._outward(moments, beta, sign, terms)
        cumulants = Cumulants(*moments.columns())
        if not np.isfinite(cumulants.value).all() or (beta == 1.0 and np.abs(cumulants.value).max() > _ENOUGH):
            raise _unreachable(self.name, beta)
        return cumulants

    def _outward(
        self, moments: Moments, beta: float, sign: float, terms: Callable[[float, int, int], FloatArray]
    ) -> None:
        """Sum from the centre to one end of the support."""
        remaining = self._remaining(sign)
        if beta <= 0.0 and np.isinf(remaining):  # no term is smaller than the one before it
            raise _unreachable(self.name, beta)
        whole = self.support is not None or remaining <= 1024
        size = max(1, _BATCH // self.rows)
        done, block = 0, 64
        while done < remaining:
            if not whole and done >= min(_MOST_TERMS, _MOST_WORK // self.rows):
                raise _unreachable(self.name, beta)
            largest = np.full(self.rows, -np.inf)
            until = int(min(done + block, remaining))
            for start in range(done, until, size):
                log_f = terms(sign, start, min(start + size, until))
                term = np.where(np.isneginf(log_f), -np.inf, beta * log_f)
                moments.add(term, log_f)
                largest = np.maximum(largest, term.max(axis=0))
            done = until
            if not whole and (largest + np.log(block) - moments.log_total <= _NEGLIGIBLE).all():
                return
            block *= 2

    def _remaining(self, sign: float) -> float:
        if self.support is not None:
            return len(self.support) if sign > 0.0 else 0
        end, first = (self.high, self.centre) if sign > 0.0 else (self.low, self.centre - 1.0)
        return float(np.max(sign * (end - first))) + 1.0

    def _terms(self, sign: float, start: int, stop: int) -> FloatArray:
        """Return log f of some outcomes, counted from the centre; -inf outside the support."""
        if self.support is not None:
            log_f = self.log_mass(self.support[start:stop, None])
        else:
            k = self.centre + sign * np.arange(start, stop)[:, None] - (sign < 0.0)
            inside = (k >= self.low) & (k <= self.high)
            log_f = np.where(inside, self.log_mass(np.clip(k, self.low, self.high)), -np.inf)
        return np.broadcast_to(log_f, (stop - start, self.rows))
