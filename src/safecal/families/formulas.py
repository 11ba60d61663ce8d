"""Distributions for which the integral of ``f**beta`` is known: entropy, varentropy and more follow from it.

Write the density as ``f = g / Z`` with a kernel ``g``. All kernels below share one form of

    log integral g**beta = S(beta) + constant,
    S(beta) = sum_j c_j log Gamma(a_j beta + b_j) - (p beta + q) log beta + r / beta

so a distribution is a line in a table, and ``A(beta) = S(beta) - beta S(1) + (1 - beta) L``, where ``L`` holds the
constant and the logarithm of the scale.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from scipy import special

from .._types import FloatArray
from ..errors import UnavailableError
from .family import Cumulants

__all__ = ["Formula", "dirichlet", "normal", "scipy_formula", "student", "torch_formula"]

Number: TypeAlias = Any  # a float or an array of floats

_LOG_2PI = float(np.log(2.0 * np.pi))
_LARGEST_PARAMETER = 1e5  # beyond, differences of log Gamma lose more digits than a quadrature


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
    return Formula(dimension / 2.0 * _LOG_2PI + half_log_det, power=(0.0, dimension / 2.0))


def student(dimension: int, df: Number, half_log_det: Number) -> Formula:
    """Return the formula of Student's t distribution in one or several dimensions."""
    a, half = (df + dimension) / 2.0, dimension / 2.0
    return Formula(half_log_det + half * np.log(df * np.pi), ((1.0, a, -half), (-1.0, a, 0.0)))


def dirichlet(alpha: FloatArray, log_scale: Number = 0.0) -> Formula:
    """Return the formula of a Dirichlet distribution; with two components that of a beta distribution."""
    components = np.moveaxis(np.asarray(alpha, dtype=np.float64), -1, 0)
    k, total = float(len(components)), components.sum(axis=0)
    return Formula(log_scale, (*((1.0, a - 1.0, 1.0) for a in components), (-1.0, total - k, k)))


def _gamma(a: Number, log_scale: Number) -> Formula:
    return Formula(log_scale, ((1.0, a - 1.0, 1.0),), power=(a - 1.0, 1.0))


def _beta(a: Number, b: Number, log_scale: Number) -> Formula:
    return dirichlet(np.stack(np.broadcast_arrays(a, b), axis=-1), log_scale)


def _lognormal(s: Number, log_scale: Number) -> Formula:
    return Formula(log_scale + _LOG_2PI / 2.0 + np.log(s) - s**2, power=(0.0, 0.5), inverse=s**2 / 2.0)


def _weibull(c: Number, log_scale: Number) -> Formula:
    k = (c - 1.0) / c
    return Formula(log_scale - np.log(c), ((1.0, k, 1.0 - k),), power=(k, 1.0 - k))


def _gumbel(log_scale: Number) -> Formula:
    return Formula(log_scale, ((1.0, 1.0, 0.0),), power=(1.0, 0.0))


def _pareto(b: Number, log_scale: Number) -> Formula:
    return Formula(log_scale, ((1.0, b + 1.0, -1.0), (-1.0, b + 1.0, 0.0)))


_LOG_2 = float(np.log(2.0))

# From the logarithm of the scale and the shape parameters, in SciPy's order.
_SCIPY: dict[str, Callable[..., Formula]] = {
    "norm": lambda s: normal(1, s),
    "halfnorm": lambda s: normal(1, s - _LOG_2),
    "halfcauchy": lambda s: student(1, 1.0, s - _LOG_2),
    "cauchy": lambda s: student(1, 1.0, s),
    "t": lambda s, df: student(1, df, s),
    "expon": lambda s: _gamma(1.0, s),
    "laplace": lambda s: _gamma(1.0, s + _LOG_2),
    "gamma": lambda s, a: _gamma(a, s),
    "chi2": lambda s, df: _gamma(df / 2.0, s + _LOG_2),
    "uniform": lambda s: Formula(s),
    "beta": lambda s, a, b: _beta(a, b, s),
    "arcsine": lambda s: _beta(0.5, 0.5, s),
    "lognorm": lambda s, sigma: _lognormal(sigma, s),
    "logistic": lambda s: Formula(s, ((2.0, 1.0, 0.0), (-1.0, 2.0, 0.0))),
    "weibull_min": lambda s, c: _weibull(c, s),
    "gumbel_r": _gumbel,
    "gumbel_l": _gumbel,
    "rayleigh": lambda s: _weibull(2.0, s + _LOG_2 / 2.0),
    "pareto": lambda s, b: _pareto(b, s),
}

# Parameters by their names in torch; the formula takes them in this order.
_TORCH: dict[str, tuple[tuple[str, ...], Callable[..., Formula]]] = {
    "Normal": (("scale",), lambda s: normal(1, np.log(s))),
    "HalfNormal": (("scale",), lambda s: normal(1, np.log(s) - _LOG_2)),
    "LogNormal": (("loc", "scale"), lambda m, s: _lognormal(s, m)),
    "Cauchy": (("scale",), lambda s: student(1, 1.0, np.log(s))),
    "StudentT": (("df", "scale"), lambda df, s: student(1, df, np.log(s))),
    "Exponential": (("rate",), lambda r: _gamma(1.0, -np.log(r))),
    "Laplace": (("scale",), lambda s: _gamma(1.0, np.log(s) + _LOG_2)),
    "Gamma": (("concentration", "rate"), lambda a, r: _gamma(a, -np.log(r))),
    "Chi2": (("concentration", "rate"), lambda a, r: _gamma(a, -np.log(r))),
    "Beta": (("concentration1", "concentration0"), lambda a, b: _beta(a, b, 0.0)),
    "Gumbel": (("scale",), lambda s: _gumbel(np.log(s))),
    "HalfCauchy": (("scale",), lambda s: student(1, 1.0, np.log(s) - _LOG_2)),
    "Pareto": (("scale", "alpha"), lambda s, b: _pareto(b, np.log(s))),
    "Weibull": (("scale", "concentration"), lambda s, c: _weibull(c, np.log(s))),
    "Dirichlet": (("concentration",), dirichlet),
    "Uniform": (("low", "high"), lambda a, b: Formula(np.log(b - a))),
}


def scipy_formula(name: str, shapes: tuple[Number, ...], log_scale: FloatArray) -> Formula | None:
    """Return the formula of a distribution that SciPy calls ``name``, if there is one."""
    return _checked(_SCIPY[name](log_scale, *shapes)) if name in _SCIPY else None


def torch_formula(name: str, parameter: Callable[[str], FloatArray], events: int = 0) -> Formula | None:
    """Return the formula of a distribution that torch calls ``name``, if there is one."""
    if name not in _TORCH:
        return None
    names, build = _TORCH[name]
    with np.errstate(all="ignore"):  # of parameters that are not valid the formula is not used
        return _checked(replace(build(*map(parameter, names)), events=events))


def _checked(formula: Formula) -> Formula | None:
    return formula if formula.exact else None
