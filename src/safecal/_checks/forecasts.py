"""Forecasts that are stated as intervals, quantiles or draws, or said in steps: what they must be."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, FloatArray
from ..errors import CovarianceError, InputError, MissingValueError, OptionError, RangeError, ShapeError
from .arrays import as_numbers, not_empty, refuse
from .message import fail, phrase, same_rows, show

__all__ = [
    "Grid", "class_names_between", "draw_array", "draws_are_alike", "flat_draws", "interval_ends", "interval_levels",
    "outcome_numbers", "quantile_levels", "quantile_values",
]  # fmt: skip

_ROUNDING = 1e-13


def outcome_numbers(y_true: ArrayLike, *, vectors: bool = False) -> FloatArray:
    """Return the outcomes as (n,) of finite floats, or as (n, d) where vectors are allowed."""
    y = as_numbers(y_true, "y_true")
    if y.ndim != 1 and not (vectors and y.ndim == 2 and y.shape[1]):
        hint = "pass `y_true[:, 0]`." if y.ndim == 2 and y.shape[1] == 1 else "evaluate each component by itself."
        wanted = "(n,) or (n, d)" if vectors else "(n,)"
        raise fail(ShapeError, "y_true", f"must have shape {wanted}", got=f"shape {y.shape}", hint=hint)
    not_empty(y, "y_true")
    return _finite(y, "y_true")


def _finite(values: AnyArray, name: str, *, infinite: bool = False) -> FloatArray:
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise refuse(values, name, np.isnan, MissingValueError, "must not be NaN", phrase("drop"))
    if not infinite and values.dtype.kind == "f" and np.isinf(values).any():
        raise refuse(values, name, np.isinf, RangeError, "must be finite", None)
    return np.asarray(values, dtype=np.float64)


def interval_ends(lower: ArrayLike, upper: ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals, (n,) each; one of them may be infinite, for an interval that is open there."""
    ends = []
    for name, value in (("lower", lower), ("upper", upper)):
        end = as_numbers([value] * n if np.ndim(value) == 0 else value, name)
        if end.ndim != 1:
            raise fail(ShapeError, name, "must have shape (n,)", got=f"shape {end.shape}")
        same_rows(name, len(end), n, "y_true")
        ends.append(_finite(end, name, infinite=True))
    low, high = ends
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        i = int(crossed[0])
        raise fail(
            RangeError, "lower", "must not exceed `upper`", got=f"{show(low[i])} and {show(high[i])}", place=f"row {i}",
            count=(crossed.size, n), hint="are `lower` and `upper` swapped?",
        )  # fmt: skip
    return low, high


def interval_levels(level: Any, n: int) -> FloatArray:
    """Return the stated probability of each interval; below one half, too narrow ones would look too wide."""
    levels = as_numbers([level] * n if np.ndim(level) == 0 else level, "level")
    same_rows("level", len(levels), n, "y_true")
    if levels.ndim != 1 or levels.dtype.kind == "b":
        raise fail(OptionError, "level", "must be a probability, or one for each row", got=f"shape {levels.shape}")
    found = _finite(levels, "level")
    bad = np.flatnonzero(~((found >= 0.5) & (found < 1.0)))
    if bad.size:
        value = float(found[bad[0]])
        hint = "an interval that holds less than one half of the outcomes cannot show over-confidence."
        if value >= 1.0:
            per_cent = 1.0 < value < 100.0
            hint = f"pass `level={value / 100:g}`." if per_cent else "nothing can show that an interval always holds."
        raise fail(
            RangeError, "level", "must be at least 0.5 and below 1", got=show(value),
            count=None if np.ndim(level) == 0 else (bad.size, n), hint=hint,
        )  # fmt: skip
    return found


def quantile_levels(levels: Any) -> FloatArray:
    """Return the levels of quantiles, which increase strictly from above 0 to below 1."""
    found = as_numbers(levels, "levels")
    if found.ndim != 1 or len(found) < 2:
        hint = "for example `levels=[0.05, 0.25, 0.75, 0.95]`."
        raise fail(ShapeError, "levels", "must be two or more, in a row", got=f"shape {found.shape}", hint=hint)
    at = _finite(found, "levels")
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
    found = as_numbers(values, "values")
    if found.shape != (n, count):
        hint = "one row for each outcome, one column for each of `levels`."
        raise fail(ShapeError, "values", f"must have shape {(n, count)}", got=f"shape {found.shape}", hint=hint)
    at = _finite(found, "values", infinite=True)
    crossed = np.flatnonzero((np.diff(at, axis=1) < 0.0).any(axis=1))
    if crossed.size:
        i = int(crossed[0])
        raise fail(
            RangeError, "values", "must not decrease from one level to the next", got=show(at[i]), place=f"row {i}",
            count=(crossed.size, n), hint="quantiles that cross contradict each other: sort them, if that is meant.",
        )  # fmt: skip
    return at


def draw_array(draws: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return draws of shape (n, m, d), more than there are components."""
    n, d = shape[0], 1 if len(shape) == 1 else shape[1]
    found = as_numbers(draws, "draws")
    points = found[..., None] if len(shape) == 1 and found.ndim == 2 else found
    wanted = f"({n}, m)" if len(shape) == 1 else f"({n}, m, {d})"
    if points.ndim != 3 or points.shape[0] != n or points.shape[2] != d:
        turned = points.ndim == 3 and points.shape[1] == n
        hint = "pass `np.moveaxis(draws, 0, 1)`: rows come first." if turned else "one row of draws for each outcome."
        hint = "pass `draws.T`: rows come first." if found.ndim == 2 and found.shape[1] == n else hint
        raise fail(ShapeError, "draws", f"must have shape {wanted}", got=f"shape {found.shape}", hint=hint)
    if points.shape[1] < max(d + 1, 4):
        rule = f"must be at least {max(d + 1, 4)} for each row, more than there are components"
        raise fail(ShapeError, "draws", rule, got=f"{points.shape[1]}", hint="fewer say nothing about their spread.")
    return _finite(points, "draws")


def draws_are_alike(flat: BoolArray, start: int = 0) -> InputError:
    """Build the error for rows whose draws do not spread in every direction."""
    hint = "draws that are all alike say that nothing else can happen: add the noise of the outcome, or leave them out."
    first = int(flat.argmax())
    return fail(
        CovarianceError, "draws", "must spread in every direction", got="draws that are alike, or on a line",
        place=f"row {start + first}", count=(int(flat.sum()), len(flat)), hint=hint,
    )  # fmt: skip


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
            rule = "is for confidences that were said, in steps of 0.1 % or more; not for these"
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
