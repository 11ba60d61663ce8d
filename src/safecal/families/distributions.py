"""Distributions of SciPy, seen as what a density needs: a log-density, draws, and integrals where they exist."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from .._checks.densities import batch_rows, refused_by, single_column, unknown_distribution
from .._types import FloatArray
from .formulas import Formula, dirichlet, normal, scipy_formula, student
from .integrals import Quadrature, Summation
from .predictions import Cumulants

__all__ = ["Integral", "Law", "adapt"]

_SLOW_ROWS = 32  # rows up to which quantiles found by root search are worth the wait


class Integral(Protocol):
    """A way to compute ``A(beta)`` and its derivatives, exactly or nearly so."""

    @property
    def method(self) -> str:
        """Name of the way."""

    def open(self) -> Callable[[float], Cumulants]:
        """Return the function from beta to the cumulants, for a row or for all; it raises UnavailableError."""


@final
@dataclass(frozen=True, slots=True)
class Law:
    """What is used of a distribution, whatever library it comes from."""

    name: str
    log_density: Callable[[FloatArray], FloatArray]  # outcomes, one a row -> (n,)
    draw: Callable[[np.random.Generator], FloatArray]  # -> one fresh draw for each row, shaped like x_true
    integrals: tuple[Integral, ...] = ()  # in the order of preference
    entropy: FloatArray | None = None  # where it is known but the integrals are not


def adapt(dist: Any, x: FloatArray) -> Law:
    """Turn a distribution into a law for the outcomes ``x``."""
    ancestors = {f"{c.__module__}.{c.__name__}" for c in type(dist).__mro__}
    modules = {c.__module__ for c in type(dist).__mro__}
    if any(module.startswith("torch.distributions") for module in modules):
        from .torch_distributions import torch_law

        return torch_law(dist, x)
    if "scipy.stats._distn_infrastructure.rv_generic" in ancestors:
        if dist.numargs:
            raise unknown_distribution(dist, f"freeze it with its parameters: `scipy.stats.{dist.name}(...)`.")
        dist = dist()
        ancestors = {f"{c.__module__}.{c.__name__}" for c in type(dist).__mro__}
    if "scipy.stats._distn_infrastructure.rv_frozen" in ancestors:
        return _frozen(dist, x)
    if "scipy.stats._multivariate.multi_rv_frozen" in ancestors:
        return _multivariate(dist, x)
    if "scipy.stats._probability_distribution._ProbabilityDistribution" in ancestors:
        return _new_style(dist, x)
    raise unknown_distribution(dist)


def _name(dist: Any) -> str:
    return f"scipy.stats.{getattr(dist, 'name', None) or type(dist).__name__.removesuffix('_frozen')}"


def _quiet(log_density: Callable[[FloatArray], Any]) -> Callable[[FloatArray], FloatArray]:
    """Silence the warnings of a log-density: what is infinite or NaN is dealt with by value."""

    def at(values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(log_density(values), dtype=np.float64)

    return at


# One variable: rv_continuous and rv_discrete, frozen


def _frozen(dist: Any, x: FloatArray) -> Law:
    generic, name, n = dist.dist, _name(dist.dist), len(x)
    single_column(x, name)
    shapes, loc, scale = generic._parse_args(*dist.args, **dist.kwds)
    rows = batch_rows(np.broadcast_shapes(*map(np.shape, (*shapes, loc, scale))), n, name)
    discrete = hasattr(dist, "logpmf")
    quiet = _quiet(dist.logpmf if discrete else dist.logpdf)

    integrals: tuple[Integral | None, ...]
    if discrete:
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in dist.support())
        support = np.unique(generic.xk) + loc if hasattr(generic, "xk") and rows == 1 else None
        centre = np.atleast_1d(np.asarray(dist.ppf(0.5), dtype=np.float64))
        integrals = (Summation(name, rows, quiet, low, high, centre, support),) if np.isfinite(centre).all() else ()
    else:
        shapes = tuple(np.asarray(s, dtype=np.float64) for s in shapes)
        with np.errstate(all="ignore"):
            log_scale = np.log(np.asarray(scale, dtype=np.float64))
            known = type(generic).__module__ == "scipy.stats._continuous_distns"
            formula = scipy_formula(generic.name, shapes, log_scale) if known else None
        integrals = (formula, _frozen_quadrature(generic, name, shapes, log_scale))
    return Law(name, quiet, lambda rng: dist.rvs(size=n, random_state=rng), tuple(i for i in integrals if i))


def _frozen_quadrature(
    generic: Any, name: str, shapes: tuple[FloatArray, ...], log_scale: FloatArray
) -> Quadrature | None:
    from scipy.stats import rv_continuous

    rows = int(np.prod(np.broadcast_shapes(*map(np.shape, shapes)), dtype=np.int64))  # scales need no integral
    if type(generic)._ppf is rv_continuous._ppf and rows > _SLOW_ROWS:
        return None  # each quantile would be a root search of its own

    def at(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        quantile = generic.isf(u, *shapes) if upper else generic.ppf(u, *shapes)
        yield np.zeros(1), np.asarray(generic.logpdf(quantile, *shapes), dtype=np.float64)

    return Quadrature(name, rows, at, np.atleast_1d(log_scale))


# One variable: the new infrastructure


def _new_style(dist: Any, x: FloatArray) -> Law:
    name, n = _name(dist), len(x)
    single_column(x, name)
    discrete = any(c.__name__ == "DiscreteDistribution" for c in type(dist).__mro__)
    quiet = _quiet(dist.logpmf if discrete else dist.logpdf)

    rows = batch_rows(np.shape(quiet(x[0])), n, name)
    size = () if rows == n and n > 1 else (n,)

    def draw(rng: np.random.Generator) -> FloatArray:
        return np.asarray(dist.sample(size, rng=rng), dtype=np.float64).reshape(n)

    if discrete:
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in dist.support())
        centre = np.atleast_1d(np.asarray(dist.icdf(0.5), dtype=np.float64))
        return Law(name, quiet, draw, (Summation(name, rows, quiet, low, high, centre),))
    return Law(name, quiet, draw, (*_new_style_formula(dist), Quadrature(name, rows, _quantiles(dist), np.zeros(1))))


def _new_style_formula(dist: Any) -> tuple[Formula, ...]:
    if type(dist).__module__ == "scipy.stats._new_distributions":
        if hasattr(dist, "sigma") and hasattr(dist, "mu") and type(dist).__name__ in ("Normal", "StandardNormal"):
            return (normal(1, np.log(dist.sigma)),)
        if type(dist).__name__ == "Uniform":
            return (Formula(np.log(dist.b - dist.a)),)
    return ()


def _quantiles(dist: Any) -> Callable[[FloatArray, bool], Iterable[tuple[FloatArray, FloatArray]]]:
    # A mixture is integrated component by component: its own quantiles jump where components lie apart.
    components = [(1.0, dist)]
    if type(dist).__name__ == "Mixture":
        components = [(w, c) for w, c in zip(dist.weights, dist.components, strict=True) if w > 0]

    def at(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        for weight, component in components:
            quantile = component.iccdf(u) if upper else component.icdf(u)
            yield np.log([weight]), np.asarray(dist.logpdf(quantile), dtype=np.float64)

    return at


# Several variables, one distribution for all rows

_ROWS_LAST = ("dirichlet", "wishart", "invwishart")  # their log-densities want the rows on the last axis


def _multivariate(dist: Any, x: FloatArray) -> Law:
    kind, name = type(dist).__name__.removesuffix("_frozen"), _name(dist)
    log_density = getattr(dist, "logpdf", None) or getattr(dist, "logpmf", None)
    if log_density is None or not hasattr(dist, "rvs"):
        raise unknown_distribution(dist, f"{name} has no density or no sampler; pass `log_density=` and `sampler=`.")

    quiet, discrete = _quiet(log_density), not hasattr(dist, "logpdf")

    def at(values: FloatArray) -> FloatArray:
        try:
            if discrete and (values == np.rint(values)).all():
                return quiet(values.astype(np.int64)).reshape(-1)
            return quiet(np.moveaxis(values, 0, -1) if kind in _ROWS_LAST else values).reshape(-1)
        except (TypeError, ValueError) as error:
            raise refused_by(name, error) from error

    def draw(rng: np.random.Generator) -> FloatArray:
        return np.asarray(dist.rvs(size=len(x), random_state=rng), dtype=np.float64).reshape(x.shape)

    formula = _multivariate_formula(kind, dist)
    entropy = np.atleast_1d(dist.entropy()) if formula is None and hasattr(dist, "entropy") else None
    return Law(name, at, draw, () if formula is None else (formula,), entropy)


def _multivariate_formula(kind: str, dist: Any) -> Formula | None:
    formula = None
    if kind == "multivariate_normal":
        d = int(dist.cov_object.rank)
        formula = normal(d, float(dist.cov_object.log_pdet) / 2.0)
    elif kind == "multivariate_t" and np.isfinite(dist.df):
        formula = student(int(dist.dim), float(dist.df), float(dist.shape_info.log_pdet) / 2.0)
    elif kind == "dirichlet":
        formula = dirichlet(dist.alpha)
    return formula if formula is not None and formula.exact else None
