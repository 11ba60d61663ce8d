"""Distributions of torch, seen as what a density needs. Torch is imported here only, for objects that are its own."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._checks.densities import batch_rows, refused_by, unknown_distribution
from .._checks.message import fail
from .._types import FloatArray
from ..errors import ShapeError
from .distributions import Integral, Law
from .formulas import Formula, normal, torch_formula
from .integrals import Quadrature, Summation

__all__ = ["torch_law"]


def _array(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().numpy(), dtype=np.float64)


def torch_law(dist: Any, x: FloatArray) -> Law:
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
        draw = _sampler(dist, x.shape, rows)
        example = draw(0)
        if example.device.type != "cpu":
            raise unknown_distribution(dist, "its tensors must be on the CPU.")
        single = not event
        log_density = _log_density(dist, name, example, torch.float64 if single else example.dtype)
        formula = _formula(dist)
        integrals: list[Integral] = [] if formula is None else [formula]
        if formula is None:
            integrals = [i for i in (_summation(dist, name, rows, log_density), _quadrature(dist, name, rows)) if i]
        entropy = None if integrals else _entropy(dist)
    return Law(name, log_density, lambda rng: _array(draw(int(rng.integers(2**63)))), tuple(integrals), entropy)


def _sampler(dist: Any, shape: tuple[int, ...], rows: int) -> Callable[[int], Any]:
    """Return a function from a seed to one draw for each row; torch's own random state is put back after it."""
    import torch

    def draw(seed: int) -> Any:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch tells of samples it draws again
            torch.default_generator.manual_seed(seed)
            return dist.sample((shape[0],) if rows == 1 else ()).reshape(shape)

    return draw


def _log_density(dist: Any, name: str, example: Any, dtype: Any) -> Callable[[FloatArray], FloatArray]:
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
                found = dist.log_prob(x)
            except (ValueError, RuntimeError) as error:
                raise refused_by(name, error) from error
            return _array(torch.where(inside, found, -torch.inf))

    return at


def _formula(dist: Any) -> Formula | None:
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
        half_log_det = _array(base.entropy()) - d / 2.0 * (1.0 + np.log(2.0 * np.pi))
        formula = normal(d, half_log_det)
        return formula if not events else None
    return torch_formula(kind, lambda parameter: _array(getattr(base, parameter)), events)


def _entropy(dist: Any) -> FloatArray | None:
    try:
        found = dist.entropy()
    except NotImplementedError:
        return None
    return np.atleast_1d(_array(found))


def _summation(dist: Any, name: str, rows: int, log_density: Callable[[FloatArray], FloatArray]) -> Summation | None:
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
                    return _array(dist.log_prob(chosen)).reshape(len(index), -1)

            return Summation(name, rows, listed, nothing, nothing, nothing, np.arange(len(values), dtype=np.float64))
    support: Any = getattr(dist, "support", None)
    if support is torch.distributions.constraints.nonnegative_integer:
        low, high = nothing, np.full(1, np.inf)
    elif type(support).__name__ == "_IntegerInterval":
        low, high = (np.atleast_1d(_array(torch.as_tensor(b))) for b in (support.lower_bound, support.upper_bound))
    else:
        return None
    centre = np.clip(np.floor(np.atleast_1d(_array(dist.mean))), low, high)
    return Summation(name, rows, log_density, low, high, centre) if not dist.event_shape else None


def _quadrature(dist: Any, name: str, rows: int) -> Quadrature | None:
    """Return the integral over quantiles, where torch has them; the upper tail ends at a quantile of 1 - 2**-53."""
    import torch

    if dist.event_shape or dist.support.is_discrete:
        return None
    weights, components = np.zeros((1, 1)), dist
    if type(dist) is torch.distributions.MixtureSameFamily:
        components = dist.component_distribution
        weights = np.log(_array(dist.mixture_distribution.probs)).reshape(-1, components.batch_shape[-1])
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
                yield weights[:, k], np.where(fine.numpy(), _array(dist.log_prob(quantile)), -np.inf)

    return Quadrature(name, rows, at, np.zeros(1))
