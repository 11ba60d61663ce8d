"""Distributions of other libraries, recognised by what they offer and never by name: nothing is imported for them."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._checks.densities import batch_rows, single_column, unknown_distribution
from .._checks.message import fail
from .._types import FloatArray
from ..errors import FormError
from .distributions import Law
from .integrals import Quadrature

__all__ = ["offered_law", "unwrapped"]

_LOG_DENSITY = ("log_prob", "logpdf", "log_pdf")
_QUANTILE = ("icdf", "ppf", "quantile")


def unwrapped(dist: Any) -> Any:
    """Return the distribution of SciPy that an object holds or states; else the object itself.

    NGBoost's ``pred_dist(X)`` holds one in ``dist``. The ``get_prediction(X)`` of statsmodels states means with the
    standard errors of an outcome, ``se_obs``.
    """
    if hasattr(dist, "predicted_mean"):
        return _stated(dist)
    inner = getattr(dist, "dist", None)
    frozen = any(c.__name__ == "rv_frozen" for c in type(inner).__mro__)
    return inner if frozen and not any(c.__name__ == "rv_frozen" for c in type(dist).__mro__) else dist


def _stated(prediction: Any) -> Any:
    from scipy import stats  # here, so that importing safecal stays light

    error = getattr(prediction, "se_obs", None)
    if error is None:
        hint = "`safecal.gaussian(y_true, predicted_mean, std=...)` with a spread that has the noise of an outcome."
        rule = "must state the standard error of an outcome, `se_obs`, and not of a mean alone"
        raise fail(FormError, "dist", rule, got=type(prediction).__name__, hint=hint)
    mean, spread = (np.asarray(x, dtype=np.float64).reshape(-1) for x in (prediction.predicted_mean, error))
    law, df = getattr(prediction, "dist", None), getattr(prediction, "df", None)
    if getattr(law, "name", "") == "t" and df is not None:
        return stats.t(float(df), loc=mean, scale=spread)
    return stats.norm(mean, spread)


def _offered(dist: Any, names: Iterable[str]) -> Callable[[Any], Any] | None:
    found = (getattr(dist, name, None) for name in names)
    return next((one for one in found if callable(one)), None)


def offered_law(dist: Any, x: FloatArray) -> Law | None:
    """Return the law of an object that offers a log-density and quantiles, of one variable; None for others."""
    if any(c.__module__.split(".")[0] in ("scipy", "torch") for c in type(dist).__mro__):
        return None  # whose distributions are known better
    log_density, quantile = _offered(dist, _LOG_DENSITY), _offered(dist, _QUANTILE)
    if log_density is None:
        return None
    name, n = f"{type(dist).__module__}.{type(dist).__qualname__}", len(x)
    if quantile is None:
        hint = "it offers no quantiles: pass `log_density=` and `sampler=`, two functions."
        raise unknown_distribution(dist, hint)
    single_column(x, name)
    size = getattr(dist, "shape", None)
    table = isinstance(size, tuple) and len(size) == 2  # of one column, as skpro has it

    def shaped(value: Any) -> FloatArray:
        found = np.asarray(value, dtype=np.float64)
        return found.reshape(-1) if table else found

    def at(values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return shaped(log_density(values[:, None] if table else values))

    rows = batch_rows(np.shape(shaped(quantile(0.5))), n, name)

    def quantiles(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        p = 1.0 - u if upper else u
        if table:
            found = [quantile(float(one)) for one in p[:, 0]]
            yield np.zeros(1), np.stack([shaped(log_density(one)) for one in found])
            return
        yield np.zeros(1), np.asarray(log_density(quantile(p)), dtype=np.float64)

    def draw(rng: np.random.Generator) -> FloatArray:
        chance = rng.random(n)
        if table:  # the same level for all rows at a time
            return np.array([shaped(quantile(float(one)))[k % rows] for k, one in enumerate(chance)])
        return np.broadcast_to(shaped(quantile(chance)), (n,)).copy()

    single = np.asarray(log_density(quantile(0.5))).dtype != np.float64  # too coarse for an integral to settle
    integrals = () if single else (Quadrature(name, rows, quantiles, np.zeros(1)),)
    return Law(name, at, draw, integrals)
