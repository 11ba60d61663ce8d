"""Clouds of weighted particles, a block of rows at a time."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, ArrayLike, FloatArray
from ..errors import CovarianceError, FormError, InputError, MissingValueError, OptionError, RangeError, ShapeError
from .arrays import as_numbers
from .message import fail, show
from .mixtures import unit_weights

__all__ = ["Cloud", "cloud_blocks", "crowded", "neighbour_count", "one_weight", "spread_out", "whole_cloud"]

_ELEMENTS = 1 << 20  # numbers looked at together
_ROUNDING = 1e-13


class Cloud(NamedTuple):
    """The particles of some rows, (rows, S, d), and their weights, (rows, S), which sum to one."""

    start: int
    points: FloatArray
    weight: FloatArray


def one_weight(weight: ArrayLike | None, log_weight: ArrayLike | None) -> tuple[ArrayLike | None, str]:
    """Return the weights that were given, and in which form; equal ones where there are none."""
    if weight is not None and log_weight is not None:
        raise fail(FormError, "weight", "or `log_weight` must be given, not both", got="`weight` and `log_weight`")
    return (log_weight, "log_weight") if log_weight is not None else (weight, "weight")


def whole_cloud(cloud: Any) -> bool:
    """Tell whether all particles are in one array, rather than coming one row at a time."""
    return hasattr(cloud, "shape") or hasattr(cloud, "__array__")


def cloud_blocks(
    cloud: ArrayLike, given: ArrayLike | None, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None
) -> Iterator[Cloud]:
    """Yield checked particles: blocks of an array of shape (n, S, d), or one row at a time of anything iterable."""
    n, d = shape[0], shape[1] if len(shape) == 2 else 1
    if whole_cloud(cloud):
        points = as_numbers(cloud, "cloud")
        if len(shape) == 1 and points.ndim == 2:
            points = points[..., None]
        if points.ndim != 3 or points.shape[0] != n or points.shape[2] != d or points.shape[1] == 0:
            wanted = f"({n}, S)" if len(shape) == 1 else f"({n}, S, {d})"
            hint = "clouds of different sizes come as a list, one array a row."
            raise fail(ShapeError, "cloud", f"must have shape {wanted}", got=f"shape {np.shape(cloud)}", hint=hint)
        w = None if given is None else as_numbers(given, name)
        if w is not None and w.shape != points.shape[:2]:
            raise fail(ShapeError, name, f"must have shape {points.shape[:2]}, one a particle", got=f"shape {w.shape}")
        size = max(1, _ELEMENTS // (points.shape[1] * d))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield _checked(start, points[rows], None if w is None else w[rows], name, kept)
        return
    yield from _one_by_one(cloud, given, name, shape, kept)


def _one_by_one(
    cloud: ArrayLike, given: ArrayLike | None, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None
) -> Iterator[Cloud]:
    n, d = shape[0], shape[1] if len(shape) == 2 else 1
    for argument, value in (("cloud", cloud), (name, given)):
        if not isinstance(value, Iterable) and (value is not None or argument == "cloud"):
            raise fail(ShapeError, argument, "must be an array, or one array for each row", got=show(value))
    weights = None if given is None else iter(given)
    row = -1
    for row, one in enumerate(cloud):
        if row == n:
            break
        points = as_numbers(one, "cloud")
        points = points[:, None] if len(shape) == 1 and points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != d or len(points) == 0:
            wanted = "(S,)" if len(shape) == 1 else f"(S, {d})"
            raise fail(ShapeError, "cloud", f"must have shape {wanted} in each row", got=f"shape {points.shape}",
                       place=f"row {row}")  # fmt: skip
        w = None if weights is None else as_numbers(next(weights, ()), name)
        if w is not None and w.shape != points.shape[:1]:
            rule = f"must have shape {points.shape[:1]}, one a particle"
            raise fail(ShapeError, name, rule, got=f"shape {w.shape}", place=f"row {row}")
        yield _checked(row, points[None], None if w is None else w[None], name, kept)
    if row + 1 != n:
        got = f"more than {n}" if row == n else f"{row + 1}"
        raise fail(ShapeError, "cloud", f"must hold particles for each of the {n} rows of `x_true`", got=got)


def _checked(start: int, points: AnyArray, given: AnyArray | None, name: str, kept: tuple[int, ...] | None) -> Cloud:
    x = np.asarray(points if kept is None else points[..., kept], dtype=np.float64)
    bad = ~np.isfinite(x)
    if bad.any():
        row, particle, k = (int(i) for i in np.argwhere(bad)[0])
        value = x[row, particle, k]
        error, rule = (MissingValueError, "must not be NaN") if np.isnan(value) else (RangeError, "must be finite")
        raise fail(error, "cloud", rule, got=show(value), place=f"row {start + row}, particle {particle}")
    if given is None:
        return Cloud(start, x, np.full(x.shape[:2], 1.0 / x.shape[1]))
    if name == "log_weight":
        return Cloud(start, x, _from_logs(start, given))
    try:
        return Cloud(start, x, unit_weights(given, name, "particle"))
    except InputError as error:
        raise _moved(error, start) from None


def _moved(error: InputError, start: int) -> InputError:
    c = error.complaint
    row, _, rest = c.place.partition(",")
    where = f"row {int(row.split()[-1]) + start}{',' + rest if rest else ''}"
    return fail(type(error), c.argument, c.rule, got=c.got, place=where, hint=c.hint)


def _from_logs(start: int, given: AnyArray) -> FloatArray:
    logs = np.asarray(given, dtype=np.float64)
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
        raise fail(
            CovarianceError, "cloud", "must spread in every direction", got="particles that lie on a line or a plane",
            place=f"row {start + int(bad.argmax())}", count=(int(bad.sum()), len(bad)), hint=hint,
        )  # fmt: skip
    return cov


def neighbour_count(neighbours: Any, most: Any) -> tuple[int, int]:
    """Require a number of neighbours, and a larger one of particles."""
    for name, value in (("neighbours", neighbours), ("most", most)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise fail(OptionError, name, "must be a whole number, at least 1", got=show(value))
    if most < neighbours + 2:
        raise fail(OptionError, "most", "must exceed `neighbours` by 2 or more", got=f"{most} and {neighbours}")
    return int(neighbours), int(most)


def crowded(row: int, copies: bool, found: int, neighbours: int) -> InputError:
    """Build the error for particles that have no neighbours at a distance."""
    where = f"row {row}"
    if copies:
        hint = "resampling copies particles: pass those before it, with their weights; or move them afterwards."
        rule = f"must not hold more than {neighbours} copies of one particle"
        return fail(RangeError, "cloud", rule, place=where, hint=hint)
    rule = f"must let {neighbours + 2} particles be drawn without taking one twice"
    hint = "one particle holds most of the weight: more particles, a better proposal, or fewer `neighbours`."
    return fail(RangeError, "cloud", rule, got=f"{found}", place=where, hint=hint)
