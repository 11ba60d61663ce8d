"""The compiled kernel, where it was built; ``SAFECAL_PURE=1`` in the environment leaves it out.

It gives the sums that NumPy gives. It is written for the common case: rows of equal weight, none impossible, none
certain, at most 256 keys.
"""

import os
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, FloatArray, IndexArray

__all__ = ["COLUMNS", "MOST_KEYS", "Sums", "available", "bernoulli_sums"]

MOST_KEYS = 256
COLUMNS = (
    "excess", "excess2", "excess3", "varentropy", "third_cumulant", "entropy", "confidence", "brier", "predicted",
    "n", "observed", "correct",
)  # fmt: skip


def _loaded() -> Any:
    if os.environ.get("SAFECAL_PURE") == "1":
        return None
    try:
        return import_module("safecal._kernels._compiled")
    except ImportError:
        return None


_module = _loaded()


class Sums(NamedTuple):
    """Sums by key, ``(keys, len(COLUMNS))``, and by cell of the excess, ``(cells, 2)``, where they were asked for."""

    by_key: FloatArray
    by_cell: FloatArray | None


def available() -> bool:
    """Tell whether the compiled kernel is there."""
    return _module is not None


def bernoulli_sums(
    p: FloatArray,
    happened: AnyArray,
    *,
    keys: int = 1,
    edges: FloatArray | None = None,
    index: IndexArray | None = None,
    cells: tuple[int, int] | None = None,
) -> Sums | None:
    """Sum rows by uniform bins (``edges``), by the number of their key (``index``) or all together.

    ``cells`` are the first exponent and the number of cells on each side, as in `histogram`. None where the kernel is
    not there, or the rows are not the common case.
    """
    if _module is None or keys > MOST_KEYS:
        return None
    sums = np.zeros((keys, len(COLUMNS)))
    zero, side = (0, 0) if cells is None else cells
    found = None if cells is None else np.zeros((2 * side + 1, 2))
    numbers = None if index is None else np.ascontiguousarray(index, dtype=np.int64)
    outcomes = np.ascontiguousarray(happened, dtype=np.bool_)
    done = _module.bernoulli_sums(len(p), keys, p, outcomes.view(np.uint8), edges, numbers, sums, found, zero, side)
    return Sums(sums, found) if done else None
