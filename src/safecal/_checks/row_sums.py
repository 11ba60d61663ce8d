"""Rows of class probabilities: how far from 1 they may sum, and what to type where they sum to something else."""

import math
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from ..errors import InputError, NormalisationError
from .arrays import block, from_torch, slices
from .message import fail, phrase

__all__ = ["row_sums", "row_tolerance"]

_MOVE = 0.005  # nat
_DECIMALS = range(2, 7)
_ROUNDING = 0.01  # that far from 1 a sum of float16 or bfloat16 may come to lie


def row_tolerance(classes: int) -> float:
    """Return how far from 1 a row may sum: so little that ECD moves by at most 0.005 nat.

    Used as given, a row that sums to ``1 + d`` has an excess larger than that of the normalised row by exactly
    ``d (log(1 + d) - h)``, where ``h`` is the entropy of the latter, at most ``log K``. For ``|d| < 0.0099`` that is no
    more than ``|d| (log K + 0.01)``, whatever the row and whatever happened; and a mean moves no more than its rows.
    """
    return _MOVE / (math.log(classes) + 0.01)


def row_sums(array: AnyArray, name: str, given: Any = None) -> None:
    """Require every row to sum to one, within `row_tolerance`; ``given`` is the argument that became the array."""
    tolerance = row_tolerance(array.shape[1])
    worst, at, count = 0.0, 0, 0
    for part in slices(array):
        sums = array[part].sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1.0)
        count += int((off > tolerance).sum())
        here = int(off.argmax())
        if off[here] > abs(worst):
            worst, at = float(sums[here] - 1.0), part.start + here
    if count:
        raise _refused(array, name, given, worst, at, count)


def _refused(array: AnyArray, name: str, given: Any, worst: float, at: int, count: int) -> InputError:
    return fail(
        NormalisationError,
        name,
        f"must sum to 1 in each row, within {row_tolerance(array.shape[1]):.3g}",
        got=f"{1.0 + worst:.9g} (off by {worst:+.3g}, the farthest)",
        place=f"row {at}",
        count=(count, array.shape[0]),
        hint=_hint(array, name, given, worst, at),
    )


def _hint(array: AnyArray, name: str, given: Any, worst: float, at: int) -> str:
    """Say what to type: for rounded values, for short floats, for anything else."""
    short = "bfloat16" if "bfloat16" in str(getattr(given, "dtype", "")) else str(array.dtype)
    wide = name
    if short in ("bfloat16", "float16"):  # their quotients would be rounded again
        wide = f"{name}.float()" if from_torch(given) else f"{name}.astype('float32')"
    divided = f"`{wide} / {wide}.sum(axis=1, keepdims=True)`"
    decimals = _decimals(block(array, slice(at, at + 1))[0], _eps(array))
    if decimals is not None:
        half_a_unit = 0.5 * 10.0**-decimals
        zeros = half_a_unit * array.shape[1] < 1.0 and any((array[part] == 0).any() for part in slices(array))
        key = "rounded sums and zeros" if zeros else "rounded sums"
        return phrase(key, decimals=decimals, divided=divided, clip=half_a_unit)
    if wide != name and abs(worst) < _ROUNDING:
        return phrase("short floats", dtype=short, divided=divided)
    return phrase("other sums", divided=divided)


def _eps(array: AnyArray) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def _decimals(row: FloatArray, eps: float) -> int | None:
    """Return to how many decimals a row looks rounded; None where it does not, or where that is not why it is off."""
    total = float(row.sum())
    for decimals in _DECIMALS:
        scale = 10.0**decimals
        if scale * eps > 0.2 or total == 0.0:  # every float would look like it
            return None
        scaled = row * scale
        if (np.abs(scaled - np.rint(scaled)) <= 0.5 * eps * scaled + 1e-9).all():
            return decimals if abs(total - 1.0) <= (0.5 + 1e-6) * len(row) / scale else None
    return None
