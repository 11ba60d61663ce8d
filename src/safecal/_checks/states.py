"""True states, means and covariances, which of their components matter or are angles; poses as people write them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._kernels.compiled import sound
from .._kernels.states import Pose
from .._types import AnyArray, ArrayLike, FloatArray, SpreadLike
from ..errors import CovarianceError, FormError, InputError, MissingValueError, OptionError, RangeError, ShapeError
from . import fail, phrase, show
from .arrays import as_numbers, bad_rows, block, not_empty, refuse, require_finite, same_rows, slices


def one_spread(forms: Mapping[str, SpreadLike | None]) -> tuple[str, SpreadLike]:
    """Return the one form of the uncertainty that was given, of those that may be: ``std`` is the first of them."""
    stated = [(name, value) for name, value in forms.items() if value is not None]
    if len(stated) != 1:
        rule = f"or {', '.join(f'`{name}`' for name in forms if name != 'std')} must be given, exactly one of them"
        got = " and ".join(f"`{name}`" for name, _ in stated) or "none"
        hint = "`std=` or `var=` for independent components, `cov=` for a covariance matrix."
        raise fail(FormError, "std", rule, got=got, hint=hint if "precision" in forms else None)
    return stated[0]


def state_shapes(x_true: ArrayLike, mean: ArrayLike) -> tuple[AnyArray, AnyArray]:
    """Return true states and means of one shape, (n,) or (n, d); their values are not looked at yet."""
    x, m = as_numbers(x_true, "x_true"), as_numbers(mean, "mean")
    require_state_shape(x)
    if m.shape != x.shape:
        if m.ndim == x.ndim:
            same_rows("mean", len(m), len(x), "x_true")
        rule = "must have the shape of `x_true`"
        hint = "one mean a row: repeat a shared one with `np.broadcast_to(mean, x_true.shape)`."
        raise fail(ShapeError, "mean", rule, got=f"{m.shape} and {x.shape}", hint=hint)
    return x, m


def require_state_shape(x: AnyArray) -> None:
    """Require true states of shape (n,) or (n, d), one or more; their values are not looked at yet."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] == 0):
        raise fail(ShapeError, "x_true", "must have shape (n,) or (n, d) with d >= 1", got=f"shape {x.shape}")
    not_empty(x, "x_true")


def state_columns(x: AnyArray, m: AnyArray, kept: tuple[int, ...] | None = None) -> tuple[AnyArray, AnyArray]:
    """Return those components of true states and means that are kept, all of them finite."""
    if kept is not None and x.ndim == 2:
        x, m = x[:, kept], m[:, kept]
    require_finite(x, "x_true")
    require_finite(m, "mean")
    return x, m


def spread_column(
    value: SpreadLike, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None = None
) -> AnyArray:
    """Return standard deviations or variances that broadcast against the states: scalar, (d,) or the full shape."""
    spread = np.asarray(value) if np.ndim(value) == 0 else as_numbers(value, name)
    if spread.ndim == 0:
        spread = as_numbers([value], name).reshape(())
    allowed = {(), shape, shape[1:]}
    if spread.shape not in allowed:
        choices = "a number or shape (n,)" if len(shape) == 1 else "a number, shape (d,) or shape (n, d)"
        raise fail(
            ShapeError, name, f"must be {choices}, here {' or '.join(str(s) for s in sorted(allowed - {()}, key=len))}",
            got=f"shape {spread.shape}",
        )  # fmt: skip
    if kept is not None and len(shape) == 2:
        spread, shape = spread if spread.ndim == 0 else spread[..., kept], (shape[0], len(kept))
    rows = spread if spread.shape == shape else spread.reshape(1, *shape[1:]) if spread.ndim else spread.reshape(1)
    require_finite(rows, name)
    if not (rows > 0).all():
        hint = "a state known without error has no density."
        if spread.ndim == 0:
            raise fail(RangeError, name, "must be greater than 0", got=show(spread[()]), hint=hint)
        raise refuse(rows, name, lambda x: ~(x > 0), RangeError, "must be greater than 0", hint)
    return spread


def _matrices(value: SpreadLike, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None = None) -> AnyArray:
    """Return matrices of the shape that the states ask for, or their block of the components that are kept."""
    matrices = as_numbers(value, name)
    if len(shape) == 1:
        hint = "for scalar states pass `std=` or `var=`; or make the states (n, 1)."
        raise fail(ShapeError, name, "needs states of shape (n, d)", got=f"`x_true` of shape {shape}", hint=hint)
    n, d = shape
    if matrices.shape not in {(d, d), (n, d, d)}:
        raise fail(
            ShapeError, name, f"must be one ({d}, {d}) matrix, or one for each row, ({n}, {d}, {d})",
            got=f"shape {matrices.shape}",
        )  # fmt: skip
    if kept is not None:
        matrices = matrices[..., kept, :][..., kept]
    return matrices


def _bad_matrix(
    matrices: AnyArray, name: str, rule: str, got: str, at: int, count: int, hint: str | None = None
) -> InputError:
    """Build the error for the matrix of a row, and how many are like it, or for the one of all rows."""
    place, of = (f"row {at}", (count, len(matrices))) if matrices.ndim == 3 else (None, None)
    return fail(CovarianceError, name, rule, got=got, place=place, count=of, hint=hint)


def covariance_factor(
    value: SpreadLike, name: str, shape: tuple[int, ...], kept: tuple[int, ...] | None = None
) -> AnyArray:
    """Check covariance (or precision) matrices: symmetric and positive definite.

    They are returned as given; where only some components are kept, their block is, and nothing else is looked at.
    """
    matrices = _matrices(value, name, shape, kept)
    batch = matrices.reshape(-1, *matrices.shape[-2:])
    if all(_clearly_sound(block(batch, part), batch.dtype) for part in slices(batch)):
        return matrices
    require_finite(batch, name)
    _symmetric(batch, matrices, name)
    if not all(_definite(block(batch, part), batch.dtype) for part in slices(batch)):
        raise _not_definite(batch, matrices, name)
    return matrices


def _is_short_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize < 8


def _asymmetry(dtype: np.dtype[Any]) -> float:
    # Filters leave asymmetries of a few roundings; anything more is a mistake upstream.
    return 1e-5 if _is_short_float(dtype) else 1e-9


def _rounding(dtype: np.dtype[Any], d: int) -> float:
    return 10 * d * float(np.finfo(np.float32 if _is_short_float(dtype) else np.float64).eps)


def _clearly_sound(matrices: FloatArray, dtype: np.dtype[Any]) -> bool:
    """Tell whether the compiled kernel finds all matrices sound with a margin; those that are close, NumPy decides."""
    return sound(matrices, 0.5 * _asymmetry(dtype), 2.0 * _rounding(dtype, matrices.shape[-1]))


def _definite(matrices: FloatArray, dtype: np.dtype[Any]) -> bool:
    """Tell whether all matrices are positive definite by more than the rounding of their entries.

    A pivot of the factor, over its diagonal entry, is the share of a variance that earlier components leave open.
    """
    try:
        factor = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    pivots, variances = (np.diagonal(m, axis1=-2, axis2=-1) for m in (factor, matrices))
    return bool((pivots * pivots > _rounding(dtype, matrices.shape[-1]) * variances).all())


def _symmetric(batch: AnyArray, matrices: AnyArray, name: str) -> None:
    """Refuse matrices that differ from their mirror by more than rounding."""
    tolerance = _asymmetry(batch.dtype)
    worst, at, count = 0.0, 0, 0
    for part in slices(batch):
        c: FloatArray = block(batch, part)
        scale = np.sqrt(np.abs(np.diagonal(c, axis1=1, axis2=2)))
        off = np.abs(c - c.transpose(0, 2, 1)) - tolerance * scale[:, :, None] * scale[:, None, :]
        excess = off.max(axis=(1, 2))
        count += int((excess > 0).sum())
        farthest = int(excess.argmax())
        if excess[farthest] > worst:
            gap = float(np.abs(c[farthest] - c[farthest].T).max())
            worst, at, largest = float(excess[farthest]), part.start + farthest, gap
    if count:
        got = f"entries that differ by {largest:.3g} from their mirror"
        raise _bad_matrix(matrices, name, "must be symmetric", got, at, count, phrase("not its mirror", name=name))


def _not_definite(batch: AnyArray, matrices: AnyArray, name: str) -> InputError:
    """Build the error for matrices that are not positive definite: the first, and how many."""
    at, count = -1, 0
    for part in slices(batch):
        for offset, matrix in enumerate(block(batch, part)):
            if not _definite(matrix, batch.dtype):
                count += 1
                at = part.start + offset if at < 0 else at
    smallest = float(np.linalg.eigvalsh(np.asarray(batch[at], dtype=np.float64)).min())
    got = f"a matrix whose smallest eigenvalue is {smallest:.3g}"
    hint = "safecal never uses a pseudo-inverse: drop the components that are known exactly, or fix the filter."
    return _bad_matrix(matrices, name, "must be positive definite", got, at, count, hint)


def triangular_factor(value: SpreadLike, name: str, shape: tuple[int, ...]) -> AnyArray:
    """Check lower triangular factors with a diagonal that is not 0."""
    matrices = _matrices(value, name, shape)
    d = shape[1]
    batch = matrices.reshape(-1, d, d)
    require_finite(batch, name)
    upper = np.triu_indices(d, 1)
    above = np.flatnonzero((batch[:, upper[0], upper[1]] != 0).any(axis=1))
    if above.size:
        got = f"{show(batch[above[0]][upper][batch[above[0]][upper] != 0][0])} above the diagonal"
        hint = f"for an upper factor pass `np.swapaxes({name}, -1, -2)`."
        raise _bad_matrix(matrices, name, "must be lower triangular", got, above[0], above.size, hint)
    flat = np.flatnonzero((np.diagonal(batch, axis1=1, axis2=2) == 0).any(axis=1))
    if flat.size:
        raise _bad_matrix(matrices, name, "must have no 0 on its diagonal", "a singular factor", flat[0], flat.size)
    return matrices


def spread_form(forms: Mapping[str, SpreadLike | None], rows: int | None) -> tuple[AnyArray, str]:
    """Check standard deviations or matrices that come without states; ``rows`` of them, where that is given."""
    name, value = one_spread(forms)
    if name in ("std", "var"):
        spread = spread_column(value, name, np.shape(np.asarray(value)) or (1,))
        per_row = spread.ndim in (1, 2)
    else:
        matrices = as_numbers(value, name)
        if matrices.ndim not in (2, 3) or matrices.shape[-1] != matrices.shape[-2]:
            rule = "must be one square matrix, (d, d), or one for each row, (n, d, d)"
            raise fail(ShapeError, name, rule, got=f"shape {matrices.shape}")
        shape = (len(matrices) if matrices.ndim == 3 else 1, int(matrices.shape[-1]))
        spread = (triangular_factor if name == "chol" else covariance_factor)(matrices, name, shape)
        per_row = spread.ndim == 3
    if rows is not None:
        if not per_row:
            hint = "repeat a shared one: `np.broadcast_to(spread, (n, ...))`."
            rule = "must be given for each row when there is `by`"
            raise fail(ShapeError, name, rule, got=f"shape {spread.shape}", hint=hint)
        same_rows(name, len(spread), rows, "by")
    return spread, name


def components(value: Any, name: str, d: int) -> tuple[int, ...]:
    """Require distinct numbers of components of a d-dimensional state."""
    rule = f"must be distinct whole numbers from 0 to {d - 1}, components of the state"
    items = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        hint = f"wrap it in a list: `{name}=[{items}]`." if isinstance(items, int) else None
        raise fail(OptionError, name, rule, got=show(value), hint=hint)
    chosen = list(items)
    whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= i < d for i in chosen)
    if not whole or len(set(chosen)) != len(chosen):
        raise fail(OptionError, name, rule, got=show(chosen))
    return tuple(int(i) for i in chosen)


def component_choice(mapping: Any, angles: Any, d: int) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Return the components that matter (None for all), and where among those the angles stand."""
    wrapped = () if angles is None else components(angles, "angles", d)
    if mapping is None:
        return None, wrapped
    kept = components(mapping, "mapping", d)
    if not kept:
        raise fail(OptionError, "mapping", "must name at least one component", got="none", hint="leave it out for all.")
    return kept, tuple(kept.index(i) for i in wrapped if i in kept)


#: Numbers of a tangent vector: of its rotation, of its translation.
DIMENSIONS = {"SE3": (3, 3), "SE2": (1, 2), "SO3": (3, 0)}
#: By how much the length of a quaternion, or of a line of a rotation matrix, may differ from 1: rounding in text files.
UNIT = 1e-3
_POSE_FORMS = {
    "SE3": {(7,): "position and quaternion", (4, 4): "matrices"},
    "SE2": {(3,): "x, y and angle", (3, 3): "matrices"},
    "SO3": {(4,): "quaternions", (3, 3): "matrices"},
}


def named(value: Any, name: str, choices: dict[str, str]) -> str:
    """Require a choice that has no default: each choice with what it means."""
    if isinstance(value, str) and value in choices:
        return value
    listed = " or ".join(f'"{choice}"' for choice in choices)
    meanings = "; ".join(f'`{name}="{choice}"`: {about}' for choice, about in choices.items())
    error = FormError if value is None else OptionError
    got = "none, and it is never guessed" if value is None else show(value)
    raise fail(error, name, f"must be {listed}", got=got, hint=f"{meanings}.")


def checked_poses(value: ArrayLike, name: str, group: str, quaternion: str | None) -> Pose:
    """Return poses of finite numbers whose rotations are rotations; lengths that rounding changed are put right."""
    array = as_numbers(value, name)
    forms = _POSE_FORMS[group]
    if array.shape[1:] not in forms:
        shapes = " or ".join(f"(n, {', '.join(map(str, shape))}) for {what}" for shape, what in forms.items())
        raise fail(ShapeError, name, f"must have shape {shapes}", got=f"shape {array.shape}")
    not_empty(array, name)
    if not np.isfinite(array).all():
        hint = "drop those poses first: safecal drops nothing by itself."
        raise refuse(array, name, lambda x: ~np.isfinite(x), MissingValueError, "must be finite", hint)
    wide = np.asarray(array, dtype=np.float64)
    if array.ndim == 3:
        return _from_matrices(wide, name, group)
    if group == "SE2":
        return Pose(wide[:, 2], wide[:, :2])
    return Pose(unit_quaternions(wide[:, -4:], name, quaternion), wide[:, :3] if group == "SE3" else None)


def unit_quaternions(values: FloatArray, name: str, quaternion: str | None) -> FloatArray:
    """Return quaternions x, y, z, w of length 1."""
    order = named(quaternion, "quaternion", {"xyzw": "the real part last", "wxyz": "the real part first"})
    q = values if order == "xyzw" else values[:, [1, 2, 3, 0]]
    length = np.sqrt((q * q).sum(axis=1))
    far = np.abs(length - 1.0) > UNIT
    if far.any():
        rule = "must have quaternions of length 1"
        hint = "are these the right columns? If they are quaternions, divide each by its length."
        raise bad_rows(far, RangeError, name, rule, got=lambda row: f"one of length {length[row]:.4g}", hint=hint)
    return np.asarray(q / length[:, None])


def _from_matrices(matrices: AnyArray, name: str, group: str) -> Pose:
    """Return the poses of rotation matrices, or of matrices that hold a rotation and a position."""
    from scipy.spatial.transform import Rotation  # takes long to import, and few have matrices

    size = 2 if group == "SE2" else 3
    turn = matrices[:, :size, :size]
    gap = np.abs(turn @ turn.transpose(0, 2, 1) - np.eye(size)).max(axis=(1, 2))
    bad = (gap > UNIT) | (np.linalg.det(turn) <= 0.0)
    position = None
    if group != "SO3":
        position = np.ascontiguousarray(matrices[:, :size, size])
        bad |= (np.abs(matrices[:, size] - np.eye(size + 1)[size]) > UNIT).any(axis=1)
    if bad.any():
        last = "" if group == "SO3" else f", with the last line {', '.join(['0'] * size)}, 1"
        raise bad_rows(
            bad,
            RangeError,
            name,
            f"must hold rotation matrices, of determinant 1{last}",
            got=lambda row: f"another matrix, of determinant {np.linalg.det(turn[row]):.4g}",
            hint=f"left-handed axes have the determinant -1; `{name}[:, :{size}, :{size}]` must be a rotation.",
        )
    if group == "SE2":
        return Pose(np.arctan2(turn[:, 1, 0], turn[:, 0, 0]), position)
    return Pose(Rotation.from_matrix(turn.copy()).as_quat(), position)  # early SciPy takes no array that is read-only
