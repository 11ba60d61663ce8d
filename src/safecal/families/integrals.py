"""Expectations over a density: a double-exponential rule on quantiles, or a sum over a discrete support.

Both go through weighted outcomes and give, for any ``beta``, the log of the integral of ``f**beta`` and the moments of
``log f`` under the tempered density. Central moments grow a batch at a time, without cancellation.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from .._types import FloatArray
from ..errors import UnavailableError
from .family import Cumulants

__all__ = ["Moments", "Quadrature", "Summation"]


@final
class Moments:
    """Running total weight, mean, and second and third central moments of several rows of values.

    Weights are logarithms, because those of a tempered density span more than the range of a float. Batches are merged
    by the formulas for a mixture of two populations, so only differences of means are ever raised to a power.
    """

    __slots__ = ("log_total", "mean", "second", "third")

    def __init__(self, rows: int) -> None:
        self.log_total = np.full(rows, -np.inf)
        self.mean = np.zeros(rows)
        self.second = np.zeros(rows)
        self.third = np.zeros(rows)

    def add(self, log_weight: FloatArray, values: FloatArray) -> None:
        """Take in a (batch, rows) array of values; a log-weight of -inf leaves a value out, whatever it is."""
        top = log_weight.max(axis=0)
        top = np.where(np.isneginf(top), 0.0, top)
        weight = np.exp(log_weight - top)
        total = weight.sum(axis=0)
        if np.isneginf(values).any():
            values = np.where(weight == 0.0, 0.0, values)
        weight /= np.where(total > 0.0, total, 1.0)
        mean = np.einsum("ij,ij->j", weight, values)
        gap = values - mean
        weight *= gap
        with np.errstate(divide="ignore"):
            log_total = top + np.log(total)
        second = np.einsum("ij,ij->j", weight, gap)
        weight *= gap
        self._merge(log_total, mean, second, np.einsum("ij,ij->j", weight, gap))

    def _merge(self, log_total: FloatArray, mean: FloatArray, second: FloatArray, third: FloatArray) -> None:
        """Add another population by its weight and its moments."""
        log_both = np.logaddexp(self.log_total, log_total)
        reach = np.where(np.isneginf(log_both), 0.0, log_both)
        old, new = np.exp(self.log_total - reach), np.exp(log_total - reach)
        gap = mean - self.mean
        cross = old * new
        self.third = (
            old * self.third
            + new * third
            + cross * (old - new) * gap**3
            + 3.0 * cross * gap * (second - self.second)
        )  # fmt: skip
        self.second = old * self.second + new * second + cross * gap * gap
        self.mean = np.where(old >= new, self.mean + new * gap, mean - old * gap)
        self.log_total = log_both

    def cumulants(self) -> Cumulants:
        """Return what has been taken in so far, as a population."""
        return Cumulants(self.log_total, self.mean, self.second, self.third)


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
            coarser, cumulants = cumulants, moments.cumulants()
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
        cumulants = moments.cumulants()
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
