"""Distributions of SciPy and torch, seen as what a density needs. Torch is imported for objects that are its own."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .._checks import fail
from .._checks.forecasts import batch_rows, refused_by, single_column, unknown_distribution
from .._types import FloatArray
from ..errors import ShapeError
from . import integrals as formulas
from .integrals import DensityLaw, Formula, Integral, Quadrature, Summation

__all__ = ["adapt"]

_SLOW_ROWS = 32  # rows up to which quantiles found by root search are worth the wait


def adapt(dist: Any, x: FloatArray) -> DensityLaw:
    """Turn a distribution into a law for the outcomes ``x``."""
    ancestors = {f"{c.__module__}.{c.__name__}" for c in type(dist).__mro__}
    if any(name.startswith("torch.distributions") for name in ancestors):
        return _torch_law(dist, x)
    if "scipy.stats._distn_infrastructure.rv_generic" in ancestors:
        if dist.numargs:
            raise unknown_distribution(dist, f"freeze it with its parameters: `scipy.stats.{dist.name}(...)`.")
        return _frozen_law(dist(), x)
    if "scipy.stats._distn_infrastructure.rv_frozen" in ancestors:
        return _frozen_law(dist, x)
    if "scipy.stats._multivariate.multi_rv_frozen" in ancestors:
        return _multivariate_law(dist, x)
    if "scipy.stats._probability_distribution._ProbabilityDistribution" in ancestors:
        return _new_style_law(dist, x)
    raise unknown_distribution(dist)


def _floats(values: Any) -> FloatArray:
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def _name(dist: Any) -> str:
    return f"scipy.stats.{getattr(dist, 'name', None) or type(dist).__name__.removesuffix('_frozen')}"


def _without_warnings(log_density: Callable[[FloatArray], Any]) -> Callable[[FloatArray], FloatArray]:
    """Silence the warnings of a log-density: what is infinite or NaN is dealt with by value."""

    def at(values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(log_density(values), dtype=np.float64)

    return at


# Formulas of SciPy and torch, by the names that distributions have there

_LOG_2 = float(np.log(2.0))


# From the logarithm of the scale and the shape parameters, in SciPy's order.
_SCIPY: dict[str, Callable[..., Formula]] = {
    "norm": lambda s: formulas.normal(1, s),
    "halfnorm": lambda s: formulas.normal(1, s - _LOG_2),
    "halfcauchy": lambda s: formulas.student(1, 1.0, s - _LOG_2),
    "cauchy": lambda s: formulas.student(1, 1.0, s),
    "t": lambda s, df: formulas.student(1, df, s),
    "expon": lambda s: formulas.gamma(1.0, s),
    "laplace": lambda s: formulas.gamma(1.0, s + _LOG_2),
    "gamma": lambda s, a: formulas.gamma(a, s),
    "chi2": lambda s, df: formulas.gamma(df / 2.0, s + _LOG_2),
    "uniform": lambda s: Formula(s),
    "beta": lambda s, a, b: formulas.beta_distribution(a, b, s),
    "arcsine": lambda s: formulas.beta_distribution(0.5, 0.5, s),
    "lognorm": lambda s, sigma: formulas.lognormal(sigma, s),
    "logistic": lambda s: Formula(s, ((2.0, 1.0, 0.0), (-1.0, 2.0, 0.0))),
    "weibull_min": lambda s, c: formulas.weibull(c, s),
    "gumbel_r": formulas.gumbel,
    "gumbel_l": formulas.gumbel,
    "rayleigh": lambda s: formulas.weibull(2.0, s + _LOG_2 / 2.0),
    "pareto": lambda s, b: formulas.pareto(b, s),
}

# Parameters by their names in torch; the formula takes them in this order.
_TORCH: dict[str, tuple[tuple[str, ...], Callable[..., Formula]]] = {
    "Normal": (("scale",), lambda s: formulas.normal(1, np.log(s))),
    "HalfNormal": (("scale",), lambda s: formulas.normal(1, np.log(s) - _LOG_2)),
    "LogNormal": (("loc", "scale"), lambda m, s: formulas.lognormal(s, m)),
    "Cauchy": (("scale",), lambda s: formulas.student(1, 1.0, np.log(s))),
    "StudentT": (("df", "scale"), lambda df, s: formulas.student(1, df, np.log(s))),
    "Exponential": (("rate",), lambda r: formulas.gamma(1.0, -np.log(r))),
    "Laplace": (("scale",), lambda s: formulas.gamma(1.0, np.log(s) + _LOG_2)),
    "Gamma": (("concentration", "rate"), lambda a, r: formulas.gamma(a, -np.log(r))),
    "Chi2": (("concentration", "rate"), lambda a, r: formulas.gamma(a, -np.log(r))),
    "Beta": (("concentration1", "concentration0"), lambda a, b: formulas.beta_distribution(a, b, 0.0)),
    "Gumbel": (("scale",), lambda s: formulas.gumbel(np.log(s))),
    "HalfCauchy": (("scale",), lambda s: formulas.student(1, 1.0, np.log(s) - _LOG_2)),
    "Pareto": (("scale", "alpha"), lambda s, b: formulas.pareto(b, np.log(s))),
    "Weibull": (("scale", "concentration"), lambda s, c: formulas.weibull(c, np.log(s))),
    "Dirichlet": (("concentration",), formulas.dirichlet),
    "Uniform": (("low", "high"), lambda a, b: Formula(np.log(b - a))),
}


def _sound(formula: Formula | None) -> Formula | None:
    return formula if formula is not None and formula.exact else None


# One variable: rv_continuous and rv_discrete, frozen


def _frozen_law(dist: Any, x: FloatArray) -> DensityLaw:
    """Return the law of a frozen distribution of one variable."""
    generic, name, n = dist.dist, _name(dist.dist), len(x)
    single_column(x, name)
    shapes, loc, scale = generic._parse_args(*dist.args, **dist.kwds)
    rows = batch_rows(np.broadcast_shapes(*map(np.shape, (*shapes, loc, scale))), n, name)
    discrete = hasattr(dist, "logpmf")
    quiet = _without_warnings(dist.logpmf if discrete else dist.logpdf)

    integrals: tuple[Integral | None, ...]
    if discrete:
        low, high = map(_floats, dist.support())
        support = np.unique(generic.xk) + loc if hasattr(generic, "xk") and rows == 1 else None
        centre = _floats(dist.ppf(0.5))
        integrals = (Summation(name, rows, quiet, low, high, centre, support),) if np.isfinite(centre).all() else ()
    else:
        shapes = tuple(np.asarray(s, dtype=np.float64) for s in shapes)
        with np.errstate(all="ignore"):
            log_scale = np.log(np.asarray(scale, dtype=np.float64))
            known = type(generic).__module__ == "scipy.stats._continuous_distns"
            formula = _sound(_SCIPY[generic.name](log_scale, *shapes)) if known and generic.name in _SCIPY else None
        integrals = (formula, _frozen_quadrature(generic, name, shapes, log_scale))
    return DensityLaw(name, quiet, lambda rng: dist.rvs(size=n, random_state=rng), tuple(i for i in integrals if i))


def _frozen_quadrature(
    generic: Any, name: str, shapes: tuple[FloatArray, ...], log_scale: FloatArray
) -> Quadrature | None:
    """Return the integral over quantiles; None where finding them takes too long."""
    from scipy.stats import rv_continuous

    rows = int(np.prod(np.broadcast_shapes(*map(np.shape, shapes)), dtype=np.int64))  # scales need no integral
    if type(generic)._ppf is rv_continuous._ppf and rows > _SLOW_ROWS:
        return None  # each quantile would be a root search of its own

    def at(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        quantile = generic.isf(u, *shapes) if upper else generic.ppf(u, *shapes)
        yield np.zeros(1), np.asarray(generic.logpdf(quantile, *shapes), dtype=np.float64)

    return Quadrature(name, rows, at, np.atleast_1d(log_scale))


# One variable: the new infrastructure


def _new_style_law(dist: Any, x: FloatArray) -> DensityLaw:
    """Return the law of a distribution of SciPy's new infrastructure."""
    name, n = _name(dist), len(x)
    single_column(x, name)
    discrete = any(c.__name__ == "DiscreteDistribution" for c in type(dist).__mro__)
    quiet = _without_warnings(dist.logpmf if discrete else dist.logpdf)

    rows = batch_rows(np.shape(quiet(x[0])), n, name)
    size = () if rows == n and n > 1 else (n,)

    def draw(rng: np.random.Generator) -> FloatArray:
        return np.asarray(dist.sample(size, rng=rng), dtype=np.float64).reshape(n)

    if discrete:
        low, high = map(_floats, dist.support())
        return DensityLaw(name, quiet, draw, (Summation(name, rows, quiet, low, high, _floats(dist.icdf(0.5))),))
    integrals: tuple[Integral, ...] = (*_new_style_formula(dist), Quadrature(name, rows, _quantiles(dist), np.zeros(1)))
    return DensityLaw(name, quiet, draw, integrals)


def _new_style_formula(dist: Any) -> tuple[Formula, ...]:
    if type(dist).__module__ == "scipy.stats._new_distributions":
        if hasattr(dist, "sigma") and hasattr(dist, "mu") and type(dist).__name__ in ("Normal", "StandardNormal"):
            return (formulas.normal(1, np.log(dist.sigma)),)
        if type(dist).__name__ == "Uniform":
            return (Formula(np.log(dist.b - dist.a)),)
    return ()


def _quantiles(dist: Any) -> Callable[[FloatArray, bool], Iterable[tuple[FloatArray, FloatArray]]]:
    """Return the log-density at quantiles, as `Quadrature` takes it."""
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


def _multivariate_law(dist: Any, x: FloatArray) -> DensityLaw:
    """Return the law of a frozen distribution of several variables."""
    kind, name = type(dist).__name__.removesuffix("_frozen"), _name(dist)
    log_density = getattr(dist, "logpdf", None) or getattr(dist, "logpmf", None)
    if log_density is None or not hasattr(dist, "rvs"):
        raise unknown_distribution(dist, f"{name} has no density or no sampler; pass `log_density=` and `sampler=`.")

    quiet, discrete = _without_warnings(log_density), not hasattr(dist, "logpdf")

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
    return DensityLaw(name, at, draw, () if formula is None else (formula,), entropy)


def _multivariate_formula(kind: str, dist: Any) -> Formula | None:
    """Return the formula of a distribution of several variables, if there is one."""
    if kind == "multivariate_normal":
        return _sound(formulas.normal(int(dist.cov_object.rank), float(dist.cov_object.log_pdet) / 2.0))
    if kind == "multivariate_t" and np.isfinite(dist.df):
        return _sound(formulas.student(int(dist.dim), float(dist.df), float(dist.shape_info.log_pdet) / 2.0))
    return _sound(formulas.dirichlet(dist.alpha)) if kind == "dirichlet" else None


def _torch_array(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().numpy(), dtype=np.float64)


def _torch_law(dist: Any, x: FloatArray) -> DensityLaw:
    """Turn a distribution of torch, with its tensors on the CPU, into a law for the outcomes ``x``."""
    import torch

    name, n = f"torch.distributions.{type(dist).__name__}", len(x)
    event = tuple(dist.event_shape)
    if x.shape[1:] != event:
        rule = f"must have shape {(n, *event)} for {name} with event shape {event}"
        raise fail(ShapeError, "x_true", rule, got=f"shape {x.shape}")
    hint = "components of one outcome belong together: wrap them in `torch.distributions.Independent(dist, 1)`."
    rows = batch_rows(tuple(dist.batch_shape), n, name, hint if len(dist.batch_shape) > 1 else None)
    with torch.no_grad():
        draw = _torch_sampler(dist, x.shape, rows)
        example = draw(0)
        if example.device.type != "cpu":
            raise unknown_distribution(dist, "its tensors must be on the CPU.")
        single = not event
        log_density = _torch_log_density(dist, name, example, torch.float64 if single else example.dtype)
        formula = _torch_formula(dist)
        integrals: tuple[Integral | None, ...] = (formula,)
        if formula is None:
            integrals = _torch_summation(dist, name, rows, log_density), _torch_quadrature(dist, name, rows)
        known = tuple(i for i in integrals if i is not None)
        entropy = None if known else _torch_entropy(dist)
    return DensityLaw(name, log_density, lambda rng: _torch_array(draw(int(rng.integers(2**63)))), known, entropy)


def _torch_sampler(dist: Any, shape: tuple[int, ...], rows: int) -> Callable[[int], Any]:
    """Return a function from a seed to one draw for each row; torch's own random state is put back after it."""
    import torch

    def draw(seed: int) -> Any:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch tells of samples it draws again
            torch.default_generator.manual_seed(seed)
            return dist.sample((shape[0],) if rows == 1 else ()).reshape(shape)

    return draw


def _torch_log_density(dist: Any, name: str, example: Any, dtype: Any) -> Callable[[FloatArray], FloatArray]:
    """Return a log-density that is -inf outside the support, where torch would raise."""
    import torch

    def at(values: FloatArray) -> FloatArray:
        with torch.no_grad():
            x = torch.tensor(values, dtype=dtype)
            try:
                inside = dist.support.check(x)
            except NotImplementedError:
                inside = torch.ones(x.shape[: x.ndim - len(dist.event_shape)], dtype=torch.bool)
            if not bool(inside.all()):  # any point of the support will do there
                keep = inside.reshape(inside.shape + (1,) * (x.ndim - inside.ndim))
                x = torch.where(keep, x, example.to(dtype))
            try:
                log_f = dist.log_prob(x)
            except (ValueError, RuntimeError) as error:
                raise refused_by(name, error) from error
            return _torch_array(torch.where(inside, log_f, -torch.inf))

    return at


def _torch_formula(dist: Any) -> Formula | None:
    """Return the formula of a distribution of torch, if there is one."""

    import torch

    base, events = dist, 0
    while type(base) is torch.distributions.Independent:
        events += base.reinterpreted_batch_ndims
        base = base.base_dist
    kind = type(base).__name__
    if not type(base).__module__.startswith("torch.distributions"):
        return None
    if kind in ("MultivariateNormal", "LowRankMultivariateNormal"):
        d = int(base.event_shape[0])
        half_log_det = _torch_array(base.entropy()) - d / 2.0 * (1.0 + np.log(2.0 * np.pi))
        formula = formulas.normal(d, half_log_det)
        return formula if not events else None
    if kind not in _TORCH:
        return None
    names, build = _TORCH[kind]
    with np.errstate(all="ignore"):  # of parameters that are not valid the formula is not used
        return _sound(replace(build(*(_torch_array(getattr(base, name)) for name in names)), events=events))


def _torch_entropy(dist: Any) -> FloatArray | None:
    try:
        return _floats(_torch_array(dist.entropy()))
    except NotImplementedError:
        return None


def _torch_summation(
    dist: Any, name: str, rows: int, log_density: Callable[[FloatArray], FloatArray]
) -> Summation | None:
    """Return the sum over the support, where it is listed by torch or made of integers."""
    import torch

    nothing = np.zeros(1)
    if dist.has_enumerate_support:
        try:
            values = dist.enumerate_support(expand=False)
        except NotImplementedError:
            values = None
        if values is not None:

            def listed(index: FloatArray) -> FloatArray:
                with torch.no_grad():
                    chosen = values[torch.tensor(index[:, 0], dtype=torch.long)]
                    return _torch_array(dist.log_prob(chosen)).reshape(len(index), -1)

            return Summation(name, rows, listed, nothing, nothing, nothing, np.arange(len(values), dtype=np.float64))
    support: Any = getattr(dist, "support", None)
    if support is torch.distributions.constraints.nonnegative_integer:
        low, high = nothing, np.full(1, np.inf)
    elif type(support).__name__ == "_IntegerInterval":
        low, high = (_floats(_torch_array(torch.as_tensor(b))) for b in (support.lower_bound, support.upper_bound))
    else:
        return None
    centre = np.clip(np.floor(_floats(_torch_array(dist.mean))), low, high)
    return Summation(name, rows, log_density, low, high, centre) if not dist.event_shape else None


def _torch_quadrature(dist: Any, name: str, rows: int) -> Quadrature | None:
    """Return the integral over quantiles, where torch has them; the upper tail ends at a quantile of 1 - 2**-53."""
    import torch

    if dist.event_shape or dist.support.is_discrete:
        return None
    weights, components = np.zeros((1, 1)), dist
    if type(dist) is torch.distributions.MixtureSameFamily:
        components = dist.component_distribution
        weights = np.log(_torch_array(dist.mixture_distribution.probs)).reshape(-1, components.batch_shape[-1])
    try:
        components.icdf(torch.tensor(0.5, dtype=torch.float64))
    except (NotImplementedError, ValueError):
        return None
    mixed = components is not dist

    def at(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        with torch.no_grad():
            p = torch.tensor(1.0 - u if upper else u, dtype=torch.float64)
            x = components.icdf(p[..., None] if mixed else p)
            usable = x.isfinite() & dist.support.check(x)
            x = torch.where(usable, x, components.icdf(torch.full_like(p[..., None] if mixed else p, 0.5)))
            for k in range(weights.shape[1]):
                quantile, fine = (x[..., k], usable[..., k]) if mixed else (x, usable)
                yield weights[:, k], np.where(fine.numpy(), _torch_array(dist.log_prob(quantile)), -np.inf)

    return Quadrature(name, rows, at, np.zeros(1))
