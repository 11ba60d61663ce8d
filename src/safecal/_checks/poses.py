"""Poses as people write them: quaternions in a named order, matrices, or an angle with a position."""

from typing import Any

import numpy as np

from .._kernels.poses import Pose
from .._types import AnyArray, ArrayLike, FloatArray
from ..errors import FormError, MissingValueError, OptionError, RangeError, ShapeError
from .arrays import as_numbers, not_empty, refuse
from .message import fail, show

__all__ = ["DIMENSIONS", "UNIT", "checked_poses", "named", "unit_quaternions"]

#: Numbers of a tangent vector: of its rotation, of its translation.
DIMENSIONS = {"SE3": (3, 3), "SE2": (1, 2), "SO3": (3, 0)}
#: By how much the length of a quaternion, or of a line of a rotation matrix, may differ from 1: rounding in text files.
UNIT = 1e-3
_FORMS = {
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
    forms = _FORMS[group]
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
        first = int(far.argmax())
        raise fail(
            RangeError,
            name,
            "must have quaternions of length 1",
            got=f"one of length {length[first]:.4g}",
            place=f"row {first}",
            count=(int(far.sum()), len(q)),
            hint="are these the right columns? If they are quaternions, divide each by its length.",
        )
    return np.asarray(q / length[:, None])


def _from_matrices(matrices: AnyArray, name: str, group: str) -> Pose:
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
        first = int(bad.argmax())
        last = "" if group == "SO3" else f", with the last line {', '.join(['0'] * size)}, 1"
        raise fail(
            RangeError,
            name,
            f"must hold rotation matrices, of determinant 1{last}",
            got=f"another matrix, of determinant {np.linalg.det(turn[first]):.4g}",
            place=f"row {first}",
            count=(int(bad.sum()), len(matrices)),
            hint=f"axes that are left-handed have the determinant -1; `{name}[:, :{size}, :{size}]` must turn.",
        )
    if group == "SE2":
        return Pose(np.arctan2(turn[:, 1, 0], turn[:, 0, 0]), position)
    return Pose(Rotation.from_matrix(turn).as_quat(), position)
