"""Weighted parts of one prediction: components of mixtures, and clouds of particles."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, Clouds, FloatArray, SpreadLike
from ..errors import (
    CovarianceError,
    FormError,
    InputError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    ShapeError,
    WeightError,
)
from . import fail, show, worded
from .arrays import as_numbers, bad_rows, same_rows
from .columns import whole_number
from .states import covariance_factor, require_state_shape, state_columns, triangular_factor


def true_shape(x_true: ArrayLike) -> AnyArray:
    """Return true states of shape (n,) or (n, d); their values are not looked at yet."""
    x = as_numbers(x_true, "x_true")
    require_state_shape(x)
    return x


def true_states(x: AnyArray, kept: tuple[int, ...] | None) -> FloatArray:
    """Return those components of the true states that are kept, all of them finite, as (n, d) of float64."""
    x, _ = state_columns(x, x[:0], kept)
    return np.asarray(x, dtype=np.float64).reshape(len(x), -1)


def _unit_weights(weight: AnyArray, name: str, word: str, start: int = 0) -> FloatArray:
    """Require each line of weights to be finite, not negative and to sum to one.

    ``word`` is what is weighed; of particles these may be some rows alone, from ``start`` on.
    """
    w = np.asarray(weight, dtype=np.float64)
    for bad, error, rule in (
        (np.isnan(w), MissingValueError, "must not be NaN"),
        (np.isinf(w), RangeError, "must be finite"),
        (w < 0.0, WeightError, "must not be negative"),
    ):
        if bad.any():
            row, k = (int(i) for i in np.argwhere(bad)[0])
            raise fail(error, name, rule, got=show(w[row, k]), place=f"row {start + row}, {word} {k}")
    total = w.sum(axis=1)
    eps = float(np.finfo(weight.dtype).eps) if weight.dtype.kind == "f" else 0.0
    off = ~(np.abs(total - 1.0) <= max(1e-6, w.shape[1] * eps))
    if off.any():
        rule = "must sum to one in each row"
        hint = f"pass `{name} / {name}.sum(axis=-1, keepdims=True)` if that is meant."
        row, counted = int(off.argmax()), (int(off.sum()), len(off)) if word == "component" else None
        got, place = show(total[row]), f"row {start + row}"
        raise fail(NormalisationError, name, rule, got=got, place=place, count=counted, hint=hint)
    return w


def component_weights(weight: ArrayLike, n: int) -> FloatArray:
    """Return the weights of components as (1, K) or (n, K)."""
    w = as_numbers(weight, "weight")
    if w.ndim not in (1, 2) or w.shape[-1] == 0:
        rule = "must be one weight a component, shape (K,), or one for each row, (n, K)"
        raise fail(ShapeError, "weight", rule, got=f"shape {w.shape}")
    w = w.reshape(-1, w.shape[-1])
    if len(w) != 1:
        same_rows("weight", len(w), n, "x_true")
    return _unit_weights(w, "weight", "component")


def component_means(
    mean: ArrayLike, shape: tuple[int, ...], present: BoolArray, kept: tuple[int, ...] | None
) -> FloatArray:
    """Return finite means of components as (1, K, d) or (n, K, d); absent ones are 0."""
    m, n, count = as_numbers(mean, "mean"), shape[0], present.shape[1]
    allowed = [(count, *shape[1:]), (n, count, *shape[1:])]
    if m.shape not in allowed:
        rule = f"must have shape {allowed[0]}, or {allowed[1]} for means of each row"
        raise fail(ShapeError, "mean", rule, got=f"shape {m.shape}")
    m = m.reshape(-1, count, shape[1] if len(shape) == 2 else 1)
    m = np.array(m if kept is None else m[..., kept], dtype=np.float64)
    m[_absent(present, len(m))] = 0.0
    _finite(m, "mean")
    return m


def _absent(present: BoolArray, rows: int) -> BoolArray:
    """Tell which components no row uses, of those that all rows share, or in each row."""
    absent = ~present
    if rows == 1:
        absent = np.asarray(absent.all(axis=0)).reshape(1, -1)
    return np.broadcast_to(absent, (rows, absent.shape[1]))


def _finite(values: FloatArray, name: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        value = values[index]
        error, rule = (MissingValueError, "must not be NaN") if np.isnan(value) else (RangeError, "must be finite")
        hint = "a component of weight 0 may hold anything." if error is MissingValueError else None
        where = _component_place(index[0], index[1], len(values))
        raise fail(error, name, rule, got=show(value), place=where, hint=hint)


def _component_place(row: int, component: int, rows: int) -> str:
    return f"component {component}" if rows == 1 else f"row {row}, component {component}"


def component_factors(
    form: str, value: SpreadLike, shape: tuple[int, ...], present: BoolArray, kept: tuple[int, ...] | None
) -> FloatArray:
    """Return lower Cholesky factors of components as (1, K, d, d) or (n, K, d, d); absent ones are the identity."""
    n, count, d = shape[0], present.shape[1], shape[1] if len(shape) == 2 else 1
    numbers = as_numbers([value] if np.ndim(value) == 0 else value, form)
    if form in ("std", "var"):
        last = shape[1:]
        allowed = {(), last, (count, *last), (n, count, *last)}
        spread = numbers.reshape(()) if np.ndim(value) == 0 else numbers
        _require_shape(spread.shape, allowed, form)
        rows = n if spread.shape == (n, count, *last) else 1
        full = np.broadcast_to(spread, (rows, count, *last)).reshape(rows, count, d)
        full = full if kept is None else full[..., kept]
        return _diagonal(np.array(full, dtype=np.float64), form, present)
    if len(shape) == 1:
        hint = "for scalar states pass `std=` or `var=`; or make the states (n, 1)."
        raise fail(ShapeError, form, "needs states of shape (n, d)", got=f"`x_true` of shape {shape}", hint=hint)
    _require_shape(numbers.shape, {(d, d), (count, d, d), (n, count, d, d)}, form)
    rows = n if numbers.ndim == 4 else 1
    full = np.broadcast_to(numbers, (rows, count, d, d))
    if kept is not None and form == "cov":
        full, d = full[..., kept, :][..., kept], len(kept)
    matrices = np.array(full, dtype=np.float64)
    matrices[_absent(present, rows)] = np.eye(d)
    flat = matrices.reshape(-1, d, d)
    try:
        (covariance_factor if form == "cov" else triangular_factor)(flat, form, flat.shape[:2])
    except InputError as error:
        raise _relocated(error, count, rows) from None
    return np.asarray(np.linalg.cholesky(matrices) if form == "cov" else matrices, dtype=np.float64)


def _require_shape(shape: tuple[int, ...], allowed: set[tuple[int, ...]], form: str) -> None:
    if shape not in allowed:
        choices = " or ".join(str(s) if s else "a number" for s in sorted(allowed, key=len))
        raise fail(ShapeError, form, f"must have one of the shapes {choices}", got=f"shape {shape}")


def _diagonal(spread: FloatArray, form: str, present: BoolArray) -> FloatArray:
    spread[_absent(present, len(spread))] = 1.0
    _finite(spread, form)
    if not (spread > 0.0).all():
        row, k, _ = (int(i) for i in np.argwhere(~(spread > 0.0))[0])
        where, hint = _component_place(row, k, len(spread)), "a state known without error has no density."
        raise fail(RangeError, form, "must be greater than 0", got=show(spread[row, k].min()), place=where, hint=hint)
    root = spread if form == "std" else np.sqrt(spread)
    return root[..., None] * np.eye(spread.shape[-1])


def _relocated(error: InputError, count: int, rows: int) -> InputError:
    """Say of which row and component a matrix is, instead of its number among all of them."""
    complaint = error.complaint
    index = int(complaint.place.split(",")[0].split()[-1])
    rest = "".join(f",{part}" for part in complaint.place.split(",")[1:])
    where = _component_place(index // count, index % count, rows) + rest
    return worded(error, replace(complaint, place=where, count=None))


_ELEMENTS = 1 << 20  # numbers looked at together
_ROUNDING = 1e-13


class Cloud(NamedTuple):
    """The particles of some rows, (rows, S, d), and their weights, (rows, S), which sum to one."""

    start: int
    points: FloatArray
    weight: FloatArray


def one_weight(weight: Clouds | None, log_weight: Clouds | None) -> tuple[Clouds | None, str]:
    """Return the weights that were given, and in which form; equal ones where there are none."""
    if weight is not None and log_weight is not None:
        raise fail(FormError, "weight", "or `log_weight` must be given, not both", got="`weight` and `log_weight`")
    return (log_weight, "log_weight") if log_weight is not None else (weight, "weight")


def whole_cloud(cloud: Any) -> bool:
    """Tell whether all particles are in one array, rather than coming one row at a time."""
    return hasattr(cloud, "shape") or hasattr(cloud, "__array__")


def cloud_blocks(
    cloud: Clouds, cloud_weight: Clouds | None, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None
) -> Iterator[Cloud]:
    """Yield checked particles: blocks of an array of shape (n, S, d), or one row at a time of anything iterable."""
    n, d = shape[0], shape[1] if len(shape) == 2 else 1
    if whole_cloud(cloud):
        given_points = as_numbers(cloud, "cloud")
        points = given_points[..., None] if len(shape) == 1 and given_points.ndim == 2 else given_points
        if points.ndim != 3 or points.shape[0] != n or points.shape[2] != d or points.shape[1] == 0:
            wanted = f"({n}, S)" if len(shape) == 1 else f"({n}, S, {d})"
            hint = "clouds of different sizes come as a list, one array a row."
            raise fail(ShapeError, "cloud", f"must have shape {wanted}", got=f"shape {given_points.shape}", hint=hint)
        w = None if cloud_weight is None else as_numbers(cloud_weight, name)
        if w is not None and w.shape != points.shape[:2]:
            raise fail(ShapeError, name, f"must have shape {points.shape[:2]}, one a particle", got=f"shape {w.shape}")
        size = max(1, _ELEMENTS // (points.shape[1] * d))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield _checked_cloud(start, points[rows], None if w is None else w[rows], name, kept)
        return
    yield from _row_by_row(cloud, cloud_weight, name, shape, kept)


def _iterated(value: Clouds, name: str) -> Iterator[Any]:
    if not isinstance(value, Iterable):
        raise fail(ShapeError, name, "must be an array, or one array for each row", got=show(value))
    return iter(value)


def _row_by_row(
    cloud: Clouds, cloud_weight: Clouds | None, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None
) -> Iterator[Cloud]:
    """Yield checked particles one row at a time; nothing else is kept in memory."""
    n, d = shape[0], shape[1] if len(shape) == 2 else 1
    clouds, weights = _iterated(cloud, "cloud"), None if cloud_weight is None else _iterated(cloud_weight, name)
    row = -1
    for row, row_cloud in enumerate(clouds):
        if row == n:
            break
        points = as_numbers(row_cloud, "cloud")
        points = points[:, None] if len(shape) == 1 and points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != d or len(points) == 0:
            wanted = "(S,)" if len(shape) == 1 else f"(S, {d})"
            raise fail(ShapeError, "cloud", f"must have shape {wanted} in each row", got=f"shape {points.shape}",
                       place=f"row {row}")  # fmt: skip
        w = None if weights is None else as_numbers(next(weights, ()), name)
        if w is not None and w.shape != points.shape[:1]:
            rule = f"must have shape {points.shape[:1]}, one a particle"
            raise fail(ShapeError, name, rule, got=f"shape {w.shape}", place=f"row {row}")
        yield _checked_cloud(row, points[None], None if w is None else w[None], name, kept)
    if row + 1 != n:
        got = f"more than {n}" if row == n else f"{row + 1}"
        raise fail(ShapeError, "cloud", f"must hold particles for each of the {n} rows of `x_true`", got=got)


def _checked_cloud(
    start: int, points: AnyArray, weight: AnyArray | None, name: str, kept: tuple[int, ...] | None
) -> Cloud:
    """Require particles that are finite, and weights that sum to one, of some rows."""
    x = np.asarray(points if kept is None else points[..., kept], dtype=np.float64)
    bad = ~np.isfinite(x)
    if bad.any():
        row, particle, k = (int(i) for i in np.argwhere(bad)[0])
        value = x[row, particle, k]
        error, rule = (MissingValueError, "must not be NaN") if np.isnan(value) else (RangeError, "must be finite")
        raise fail(error, "cloud", rule, got=show(value), place=f"row {start + row}, particle {particle}")
    if weight is None:
        return Cloud(start, x, np.full(x.shape[:2], 1.0 / x.shape[1]))
    if name == "log_weight":
        return Cloud(start, x, _from_logs(start, weight))
    return Cloud(start, x, _unit_weights(weight, name, "particle", start))


def _from_logs(start: int, log_weight: AnyArray) -> FloatArray:
    """Return the weights of logarithms that lack a constant."""
    logs = np.asarray(log_weight, dtype=np.float64)
    top = logs.max(axis=1)
    bad = np.flatnonzero(~np.isfinite(top))
    if bad.size:
        error, rule = (
            (MissingValueError, "must not be NaN")
            if np.isnan(top[bad[0]])
            else (RangeError, "must have a largest value that is finite")
        )
        raise fail(error, "log_weight", rule, got=show(top[bad[0]]), place=f"row {start + bad[0]}")
    w: FloatArray = np.exp(logs - top[:, None])
    w /= w.sum(axis=1, keepdims=True)
    return w


def spread_out(cov: FloatArray, size: FloatArray, start: int = 0) -> FloatArray:
    """Require covariances (n, d, d) of particles of a given size (n, d) that are more than rounding."""
    variance = np.einsum("nii->ni", cov)
    flat = (variance <= (_ROUNDING * size) ** 2).any(axis=1)
    scale = np.sqrt(np.where(flat[:, None], 1.0, variance))
    shape = np.where(flat[:, None, None], np.eye(cov.shape[1]), cov / (scale[:, :, None] * scale[:, None, :]))
    bad = flat | (np.linalg.eigvalsh(shape)[:, 0] <= _ROUNDING)
    if bad.any():
        hint = (
            "the particles have collapsed, or are fewer than components; `mapping=` keeps the components that matter."
        )
        rule, got = "must spread in every direction", "particles that lie on a line or a plane"
        raise bad_rows(bad, CovarianceError, "cloud", rule, got=got, hint=hint, start=start)
    return cov


def neighbour_count(neighbours: Any, most: Any) -> tuple[int, int]:
    """Require a number of neighbours, and a larger one of particles."""
    count, largest = whole_number(neighbours, "neighbours", 1), whole_number(most, "most", 1)
    if largest < count + 2:
        raise fail(OptionError, "most", "must exceed `neighbours` by 2 or more", got=f"{most} and {neighbours}")
    return count, largest


def crowded(row: int, copies: bool, drawn: int, neighbours: int) -> InputError:
    """Build the error for particles that have no neighbours at a distance."""
    where = f"row {row}"
    if copies:
        hint = "resampling copies particles: pass those before it, with their weights; or move them afterwards."
        rule = f"must not hold more than {neighbours} copies of one particle"
        return fail(RangeError, "cloud", rule, place=where, hint=hint)
    rule = f"must allow {neighbours + 2} particles to be drawn, none of them twice"
    hint = "one particle holds most of the weight: use more particles, a better proposal, or fewer `neighbours`."
    return fail(RangeError, "cloud", rule, got=f"{drawn}", place=where, hint=hint)
