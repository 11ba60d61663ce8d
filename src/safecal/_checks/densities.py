"""Outcomes of densities, and what distributions, log-densities and samplers give back."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, FloatArray
from ..errors import DtypeError, FormError, InputError, MissingValueError, OptionError, RangeError, ShapeError
from .arrays import as_array, as_numbers, not_empty, refuse
from .message import fail, show

__all__ = [
    "batch_rows",
    "drawn_log_density",
    "generator",
    "no_inference_data",
    "not_in_sample",
    "one_prediction",
    "outcome_log_density",
    "outcomes",
    "refused_by",
    "row_values",
    "single_column",
    "unknown_distribution",
]

_DROP = "drop or fill those rows first: safecal drops nothing by itself."
_SAME = 1e-9  # two sums of squares that agree so well are of the same residuals
_ACCEPTED = "a frozen distribution of scipy.stats, a new-style one, or one of torch.distributions"


def outcomes(x_true: ArrayLike) -> FloatArray:
    """Return the outcomes as a float64 array of their own."""
    x = as_numbers(x_true, "x_true")
    not_empty(x, "x_true")
    if x.size == 0:
        raise fail(ShapeError, "x_true", "must have at least one component in each row", got=f"shape {x.shape}")
    if not np.isfinite(x).all():
        if np.isnan(x).any():
            raise refuse(x, "x_true", np.isnan, MissingValueError, "must not be NaN", _DROP)
        raise refuse(x, "x_true", np.isinf, RangeError, "must be finite", None)
    return np.array(x, dtype=np.float64, order="C")


def one_prediction(dist: Any, log_density: Any, sampler: Any) -> None:
    """Require either a distribution, or a log-density with a sampler."""
    pair = {"log_density": log_density, "sampler": sampler}
    given = [name for name, value in pair.items() if value is not None]
    if dist is not None and given:
        got = " and ".join(f"`{name}`" for name in ["dist", *given])
        raise fail(FormError, "dist", "or the pair `log_density`, `sampler` must be given, not both", got=got)
    if dist is None and not given:
        hint = f"`dist` is {_ACCEPTED}."
        raise fail(FormError, "dist", "or the pair `log_density`, `sampler` must be given", got="neither", hint=hint)
    if dist is None and len(given) == 1:
        absent = next(name for name in pair if name not in given)
        hint = "excess is measured against fresh draws: `sampler(rng)` returns one for each row, shaped like `x_true`."
        raise fail(FormError, absent, f"must be given together with `{given[0]}`", got="none", hint=hint)
    for name in given:
        if not callable(pair[name]):
            hint = "`log_density(x)` returns one value for each row; `sampler(rng)` an array shaped like `x_true`."
            raise fail(FormError, name, "must be a function", got=show(pair[name]), hint=hint)


def unknown_distribution(dist: Any, hint: str | None = None) -> InputError:
    """Build the error for an object that is no distribution we know."""
    got = f"{type(dist).__module__}.{type(dist).__qualname__}"
    hint = hint or "for any other, pass `log_density=` and `sampler=`, two functions."
    return fail(FormError, "dist", f"must be {_ACCEPTED}", got=got, hint=hint)


_GROUPS = ("log_likelihood", "posterior_predictive", "posterior")  # of ArviZ


def no_inference_data(value: Any, name: str) -> None:
    """Refuse what holds log-likelihoods or draws by group, as InferenceData and DataTree of ArviZ do."""
    known = value if isinstance(value, Mapping) else {}
    # NGBoost's distributions have every attribute: those that they do not know are None.
    found = [group for group in _GROUPS if group in known or getattr(value, group, None) is not None]
    if not found:
        return
    draws = "pass draws of outcomes that were held out: `safecal.ensemble(y_true, draws)`, of shape (rows, draws)"
    hint = f"{draws}; those of rows that the model was fitted to are too good."
    rule = "must be a distribution, or draws of the outcome"
    if found[0] == "log_likelihood":
        rule += ": a log-likelihood says how surprised the model was, but not how surprised it announced to be"
    raise fail(FormError, name, rule, got=f"{type(value).__name__} with the groups {', '.join(found)}", hint=hint)


def not_in_sample(prediction: Any, x: FloatArray) -> None:
    """Refuse predictions of statsmodels for the rows that the model was fitted to: it took its scale from them."""
    found: list[Any] = [getattr(prediction, name, None) for name in ("predicted_mean", "var_resid", "df")]
    if any(one is None for one in found) or np.size(found[0]) != np.size(x):
        return
    mean, scale, freedom = (np.asarray(one, dtype=np.float64).reshape(-1) for one in found)
    fitted, seen = float(scale[0] * freedom[0]), float(np.square(x.reshape(-1) - mean).sum())
    if (scale == scale[0]).all() and abs(fitted - seen) <= _SAME * fitted:
        hint = "hold rows out: `model.get_prediction(x_new)`, and the outcomes of those rows."
        rule = "must be of outcomes that the model was not fitted to: these are its own residuals, which look right"
        raise fail(FormError, "dist", rule, got=type(prediction).__name__, hint=hint)


def single_column(x: FloatArray, name: str) -> None:
    """Require one number a row, for a distribution of one variable."""
    if x.ndim != 1:
        hint = (
            "pass `x_true[:, 0]`."
            if x.ndim == 2 and x.shape[1] == 1
            else "a row of several needs a joint distribution."
        )
        raise fail(ShapeError, "x_true", f"must have shape (n,) for {name}", got=f"shape {x.shape}", hint=hint)


def batch_rows(shape: tuple[int, ...], n: int, name: str, hint: str | None = None) -> int:
    """Return 1 for a distribution that all rows share, n for one with a distribution for each row."""
    if shape == () or shape == (1,):
        return 1
    if shape != (n,):
        rule = f"must be one distribution, or one for each of the {n} rows of `x_true`"
        raise fail(ShapeError, "dist", rule, got=f"{name} with parameters of shape {shape}", hint=hint)
    return n


def generator(rng: Any) -> np.random.Generator:
    """Return the generator that ``rng`` stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        rule = "must be None, a whole number or a `numpy.random.Generator`"
        raise fail(OptionError, "rng", rule, got=show(rng)) from error


def refused_by(name: str, error: Exception) -> InputError:
    """Build the error for outcomes that a distribution itself does not take."""
    return fail(RangeError, "x_true", f"must hold outcomes that {name} accepts", got=f'its complaint "{error}"')


def row_values(value: ArrayLike, shape: tuple[int, ...], name: str, rule: str) -> FloatArray:
    """Require real numbers of a given shape from a function of the caller."""
    array = np.asarray(value) if np.ndim(value) == 0 else as_array(value, name)
    if array.shape != shape:
        raise fail(ShapeError, name, f"must return {rule}, shape {shape}", got=f"shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise fail(DtypeError, name, "must return real numbers", got=f"dtype {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def _at_rows(
    values: FloatArray,
    bad: Callable[[AnyArray], BoolArray],
    error: type[InputError],
    name: str,
    rule: str,
    hint: str,
) -> InputError:
    hit = np.flatnonzero(bad(values))
    first, count = int(hit[0]), (len(hit), len(values))
    return fail(error, name, rule, got=show(values[first]), place=f"row {first}", count=count, hint=hint)


def outcome_log_density(values: FloatArray, name: str) -> FloatArray:
    """Refuse log-densities of outcomes that are NaN or +inf; -inf is an impossible outcome."""
    if np.isnan(values).any():
        hint = "a density has parameters outside their domain, or 0 times infinity inside."
        raise _at_rows(values, np.isnan, MissingValueError, name, "must not give a log-density of NaN", hint)
    if np.isposinf(values).any():
        hint = "the outcome lies on a point where the density is infinite: no finite surprise can be assigned to it."
        raise _at_rows(values, np.isposinf, RangeError, name, "must have a finite density at `x_true`", hint)
    return values


def drawn_log_density(values: FloatArray, name: str) -> FloatArray:
    """Refuse log-densities of draws that are not finite."""
    if np.isnan(values).any():
        hint = "a draw is NaN, or the log-density is not defined there."
        raise _at_rows(values, np.isnan, MissingValueError, name, "must not give a log-density of NaN for a draw", hint)
    if np.isinf(values).any():
        hint = "do `sampler` and `log_density` describe the same distribution?"
        hint = (
            hint
            if name == "log_density"
            else "draws fall on the edge of the support: pass a log-density and a sampler."
        )
        raise _at_rows(values, np.isinf, RangeError, name, "must have a finite density at its own draws", hint)
    return values
