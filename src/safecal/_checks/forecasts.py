"""Forecasts of numbers: intervals, quantiles, draws, densities with their samplers; and confidences said in steps."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, FloatArray
from ..errors import (
    CovarianceError,
    DtypeError,
    FormError,
    InputError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
)
from . import fail, show
from .arrays import as_array, as_numbers, bad_rows, not_empty, require_finite, same_rows

_ROUNDING = 1e-13


def outcome_numbers(y_true: ArrayLike, *, vectors: bool = False) -> FloatArray:
    """Return the outcomes as (n,) of finite floats, or as (n, d) where vectors are allowed."""
    y = as_numbers(y_true, "y_true")
    if y.ndim != 1 and not (vectors and y.ndim == 2 and y.shape[1]):
        hint = "pass `y_true[:, 0]`." if y.ndim == 2 and y.shape[1] == 1 else "evaluate each component by itself."
        wanted = "(n,) or (n, d)" if vectors else "(n,)"
        raise fail(ShapeError, "y_true", f"must have shape {wanted}", got=f"shape {y.shape}", hint=hint)
    not_empty(y, "y_true")
    return _finite_floats(y, "y_true")


def _finite_floats(values: AnyArray, name: str, *, infinite: bool = False) -> FloatArray:
    require_finite(values, name, infinite=infinite)
    return np.asarray(values, dtype=np.float64)


def interval_ends(lower: ArrayLike, upper: ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals, (n,) each; one of them may be infinite, for an interval that is open there."""
    ends = []
    for name, value in (("lower", lower), ("upper", upper)):
        end = as_numbers([value] * n if np.ndim(value) == 0 else value, name)
        if end.ndim != 1:
            raise fail(ShapeError, name, "must have shape (n,)", got=f"shape {end.shape}")
        same_rows(name, len(end), n, "y_true")
        ends.append(_finite_floats(end, name, infinite=True))
    low, high = ends
    crossed = low > high
    if crossed.any():
        raise bad_rows(
            crossed, RangeError, "lower", "must not exceed `upper`",
            got=lambda row: f"{show(low[row])} and {show(high[row])}", hint="are `lower` and `upper` swapped?",
        )  # fmt: skip
    return low, high


def interval_levels(level: Any, n: int) -> FloatArray:
    """Return the stated probability of each interval; below one half, too narrow ones would look too wide."""
    levels = as_numbers([level] * n if np.ndim(level) == 0 else level, "level")
    same_rows("level", len(levels), n, "y_true")
    if levels.ndim != 1 or levels.dtype.kind == "b":
        raise fail(OptionError, "level", "must be a probability, or one for each row", got=f"shape {levels.shape}")
    probabilities = _finite_floats(levels, "level")
    bad = np.flatnonzero(~((probabilities >= 0.5) & (probabilities < 1.0)))
    if bad.size:
        value = float(probabilities[bad[0]])
        hint = "an interval that holds less than one half of the outcomes cannot show over-confidence."
        if value >= 1.0:
            per_cent = 1.0 < value < 100.0
            hint = f"pass `level={value / 100:g}`." if per_cent else "nothing can show that an interval always holds."
        raise fail(
            RangeError, "level", "must be at least 0.5 and below 1", got=show(value),
            count=None if np.ndim(level) == 0 else (bad.size, n), hint=hint,
        )  # fmt: skip
    return probabilities


def quantile_levels(levels: Any) -> FloatArray:
    """Return the levels of quantiles, which increase strictly from above 0 to below 1."""
    array = as_numbers(levels, "levels")
    if array.ndim != 1 or len(array) < 2:
        hint = "for example `levels=[0.05, 0.25, 0.75, 0.95]`."
        raise fail(ShapeError, "levels", "must be a list of two or more numbers", got=f"shape {array.shape}", hint=hint)
    at = _finite_floats(array, "levels")
    if not ((at > 0.0) & (at < 1.0)).all():
        per_cent = bool(((at > 0.0) & (at < 100.0)).all())
        hint = "these look like percentages: pass `levels / 100`." if per_cent else "leave 0 and 1 out."
        raise fail(RangeError, "levels", "must lie between 0 and 1", got=show(at), hint=hint)
    if not (np.diff(at) > 0.0).all():
        hint = "sort them, and the columns of `values` with them."
        raise fail(RangeError, "levels", "must increase", got=show(at), hint=hint)
    return at


def quantile_values(values: ArrayLike, n: int, count: int) -> FloatArray:
    """Return quantiles of shape (n, levels) that do not cross."""
    array = as_numbers(values, "values")
    if array.shape != (n, count):
        hint = "one row for each outcome, one column for each of `levels`."
        raise fail(ShapeError, "values", f"must have shape {(n, count)}", got=f"shape {array.shape}", hint=hint)
    at = _finite_floats(array, "values", infinite=True)
    crossed = np.asarray((np.diff(at, axis=1) < 0.0).any(axis=1))
    if crossed.any():
        rule = "must not decrease from one level to the next"
        hint = "quantiles that cross contradict each other: sort them, if that is meant."
        raise bad_rows(crossed, RangeError, "values", rule, got=lambda row: show(at[row]), hint=hint)
    return at


def draw_array(draws: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return draws of shape (n, m, d), more than there are components."""
    n, d = shape[0], 1 if len(shape) == 1 else shape[1]
    array = as_numbers(draws, "draws")
    points = array[..., None] if len(shape) == 1 and array.ndim == 2 else array
    wanted = f"({n}, m)" if len(shape) == 1 else f"({n}, m, {d})"
    if points.ndim != 3 or points.shape[0] != n or points.shape[2] != d:
        turned = points.ndim == 3 and points.shape[1] == n
        hint = "pass `np.moveaxis(draws, 0, 1)`: rows come first." if turned else "one row of draws for each outcome."
        hint = "pass `draws.T`: rows come first." if array.ndim == 2 and array.shape[1] == n else hint
        raise fail(ShapeError, "draws", f"must have shape {wanted}", got=f"shape {array.shape}", hint=hint)
    if points.shape[1] < max(d + 1, 4):
        rule = f"must be at least {max(d + 1, 4)} for each row, more than there are components"
        raise fail(
            ShapeError, "draws", rule, got=f"{points.shape[1]}", hint="fewer draws say nothing about their spread."
        )
    return _finite_floats(points, "draws")


def draws_are_alike(flat: BoolArray, start: int = 0) -> InputError:
    """Build the error for rows whose draws do not spread in every direction."""
    hint = "draws that are all alike say that nothing else can happen: add the noise of the outcome, or leave them out."
    rule, got = "must spread in every direction", "draws that are alike, or on a line"
    return bad_rows(flat, CovarianceError, "draws", rule, got=got, hint=hint, start=start)


def flat_draws(draws: FloatArray) -> BoolArray:
    """Tell of which rows (rows, m, d) the draws do not spread along some axis."""
    size = np.abs(draws).max(axis=1)
    return np.asarray((np.ptp(draws, axis=1) <= _ROUNDING * size).any(axis=1))


def class_names_between(levels: Sequence[float]) -> tuple[str, ...]:
    """Name the classes between quantiles: below the first, between two, above the last."""
    texts = [f"{100 * level:.6g}" for level in levels]
    between = [f"{a} to {b} %" for a, b in pairwise(texts)]
    return (f"below {texts[0]} %", *between, f"above {texts[-1]} %")


class Grid:
    """The steps in which people, and models that are asked how sure they are, say probabilities.

    Who says 100 % means more than the middle to the next step, not that failure is impossible.

    Attributes
    ----------
    steps : list of float
        The steps, the coarsest first, of which all values so far are multiples.
    """

    def __init__(self) -> None:
        self.steps = [0.1, 0.05, 0.02, 0.01, 0.005, 0.001]

    def add(self, values: AnyArray) -> "Grid":
        """Look at some values."""
        known = values[np.isfinite(values)].astype(np.float64) if values.dtype.kind == "f" else values
        near = 1e-9 if values.dtype != np.float32 else 2e-7
        self.steps = [
            step for step in self.steps if bool((np.abs(known / step - np.rint(known / step)) < near / step).all())
        ]
        return self

    @property
    def half(self) -> float:
        """Half a step."""
        if not self.steps:
            rule = "is for confidences that were said in steps of 0.1 % or more, and these were not"
            raise fail(OptionError, "verbalised", rule, hint="leave it out: they are probabilities.")
        return 0.5 * self.steps[0]

    def moved(self, values: AnyArray) -> AnyArray:
        """Return the values, with 0 and 1 moved half a step inwards."""
        inner = np.where(values == 1.0, 1.0 - self.half, np.where(values == 0.0, self.half, values))
        return np.asarray(inner)

    @property
    def note(self) -> str:
        """What was done, for the result."""
        percent = 100.0 * self.half
        return (
            f"confidences were said in steps of {2.0 * percent:.6g} %: 100 % is read as at least "
            f"{100.0 - percent:.6g} %, and 0 % as at most {percent:.6g} %."
        )


# Densities, and what distributions, log-densities and samplers give back

_SAME_RESIDUALS = 1e-9  # two sums of squares that agree so well are of the same residuals
_ACCEPTED = "a frozen distribution of scipy.stats, a new-style one, or one of torch.distributions"


def outcomes(x_true: ArrayLike) -> FloatArray:
    """Return the outcomes as a float64 array of their own."""
    x = as_numbers(x_true, "x_true")
    not_empty(x, "x_true")
    if x.size == 0:
        raise fail(ShapeError, "x_true", "must have at least one component in each row", got=f"shape {x.shape}")
    require_finite(x, "x_true")
    return np.array(x, dtype=np.float64, order="C")


def one_prediction(dist: Any, log_density: Any, sampler: Any) -> None:
    """Require either a distribution, or a log-density with a sampler."""
    pair = {"log_density": log_density, "sampler": sampler}
    named = [name for name, value in pair.items() if value is not None]
    if dist is not None and named:
        got = " and ".join(f"`{name}`" for name in ["dist", *named])
        raise fail(FormError, "dist", "or the pair `log_density`, `sampler` must be given, not both", got=got)
    if dist is None and not named:
        hint = f"`dist` is {_ACCEPTED}."
        raise fail(FormError, "dist", "or the pair `log_density`, `sampler` must be given", got="neither", hint=hint)
    if dist is None and len(named) == 1:
        absent = next(name for name in pair if name not in named)
        hint = "excess is measured against fresh draws: `sampler(rng)` returns one for each row, shaped like `x_true`."
        raise fail(FormError, absent, f"must be given together with `{named[0]}`", got="none", hint=hint)
    for name in named:
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
    groups = [group for group in _GROUPS if group in known or getattr(value, group, None) is not None]
    if not groups:
        return
    draws = "pass draws of outcomes that were held out: `safecal.ensemble(y_true, draws)`, of shape (rows, draws)"
    hint = f"{draws}; those of rows that the model was fitted to are too good."
    rule = "must be a distribution, or draws of the outcome"
    if groups[0] == "log_likelihood":
        rule += ": a log-likelihood says how surprised the model was, but not how surprised it expected to be"
    raise fail(FormError, name, rule, got=f"{type(value).__name__} with the groups {', '.join(groups)}", hint=hint)


def not_in_sample(prediction: Any, x: FloatArray) -> None:
    """Refuse predictions of statsmodels for the rows that the model was fitted to: it took its scale from them."""
    stated: list[Any] = [getattr(prediction, name, None) for name in ("predicted_mean", "var_resid", "df")]
    if any(value is None for value in stated) or np.size(stated[0]) != np.size(x):
        return
    mean, scale, freedom = (np.asarray(value, dtype=np.float64).reshape(-1) for value in stated)
    fitted, seen = float(scale[0] * freedom[0]), float(np.square(x.reshape(-1) - mean).sum())
    if (scale == scale[0]).all() and abs(fitted - seen) <= _SAME_RESIDUALS * fitted:
        hint = "hold rows out: `model.get_prediction(x_new)`, and the outcomes of those rows."
        rule = "must predict rows that the model was not fitted to: its errors on its own rows always look right"
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


def outcome_log_density(values: FloatArray, name: str) -> FloatArray:
    """Refuse log-densities of outcomes that are NaN or +inf; -inf is an impossible outcome."""
    missing, infinite = np.isnan(values), np.isposinf(values)
    if missing.any():
        hint = "a density has parameters outside their domain, or multiplies 0 by infinity."
        raise bad_rows(missing, MissingValueError, name, "must not give a log-density of NaN", got="nan", hint=hint)
    if infinite.any():
        hint = "the outcome lies on a point where the density is infinite: no finite surprise can be assigned to it."
        raise bad_rows(infinite, RangeError, name, "must have a finite density at `x_true`", got="inf", hint=hint)
    return values


def drawn_log_density(values: FloatArray, name: str) -> FloatArray:
    """Refuse log-densities of draws that are not finite."""
    missing, infinite = np.isnan(values), np.isinf(values)
    if missing.any():
        rule = "must not give a log-density of NaN for a draw"
        hint = "a draw is NaN, or the log-density is not defined there."
        raise bad_rows(missing, MissingValueError, name, rule, got="nan", hint=hint)
    if infinite.any():
        hint = "draws fall on the edge of the support: pass a log-density and a sampler."
        if name == "log_density":
            hint = "do `sampler` and `log_density` describe the same distribution?"
        rule = "must have a finite density at its own draws"
        raise bad_rows(infinite, RangeError, name, rule, got=lambda row: show(values[row]), hint=hint)
    return values
