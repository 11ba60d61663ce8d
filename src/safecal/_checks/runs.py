"""Runs and steps of a study, and how many rows it should have."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from .._types import ArrayLike, IndexArray
from ..errors import MissingValueError, OptionError, ShapeError
from .columns import _one_column
from .message import fail, show

__all__ = ["expected_rows", "run_column", "step_column"]


def _present(column: ArrayLike, name: str, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray]:
    """Number the keys of a column in which none may be missing: a row of no run or no step has no place."""
    keys, codes = _one_column(column, name, n, reference)
    if None in keys:
        missing = codes == keys.index(None)
        raise fail(
            MissingValueError, name, "must not hold missing values", place=f"row {int(missing.argmax())}",
            count=(int(missing.sum()), n), hint="give each row its run and its step, or leave the row out.",
        )  # fmt: skip
    return keys, codes


def run_column(run: ArrayLike, n: int, reference: str) -> tuple[IndexArray, int]:
    """Return for each row the number of its run, and how many runs there are; one alone is an error."""
    keys, codes = _present(run, "run", n, reference)
    if len(keys) < 2:
        hint = "states of one run depend on each other; test its innovations (NIS), which do not: `gaussian(z, ...)`."
        raise fail(ShapeError, "run", "must name at least two runs", got=f"{len(keys)}", hint=hint)
    return codes, len(keys)


def step_column(step: ArrayLike, n: int, reference: str) -> tuple[IndexArray, int]:
    """Return for each row the number of its step, and how many steps there are."""
    keys, codes = _present(step, "step", n, reference)
    return codes, len(keys)


def expected_rows(expected: Any, runs: tuple[IndexArray, int], steps: tuple[IndexArray, int]) -> int:
    """Return how many rows there should be: by default one in each run at each step.

    Where a run has several rows at a step, as with several targets, only the caller knows; none is missing then.
    """
    n = len(runs[0])
    if expected is None:
        once = len(np.unique(runs[0] * steps[1] + steps[0])) == n
        return runs[1] * steps[1] if once else n
    if isinstance(expected, bool) or not isinstance(expected, int | np.integer) or expected < n:
        rule = "must be a whole number, at least the number of rows"
        raise fail(OptionError, "expected", rule, got=f"{show(expected)} and {n} rows")
    return int(expected)
