"""The one template of an input error: argument, rule, value, place, count, then one move to make."""

from typing import Any

import numpy as np

from ..errors import InputError, ShapeError

__all__ = ["fail", "same_rows", "show"]


def show(value: Any) -> str:
    """Return a value as a person would type it, without NumPy's wrappers and at most 60 characters."""
    text = repr(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def fail(
    error: type[InputError],
    argument: str,
    rule: str,
    *,
    got: str | None = None,
    place: str | None = None,
    count: tuple[int, int] | None = None,
    hint: str | None = None,
) -> InputError:
    """Build (not raise) the error for ``argument``.

    ``count`` is ``(how many rows break the rule, of how many)``.
    """
    text = f"`{argument}` {rule}"
    if got is not None:
        text += f"; got {got}"
    if place is not None:
        text += f" at {place}"
    if count is not None:
        text += f" ({count[0]} of {count[1]} {'row' if count[1] == 1 else 'rows'})"
    text += "."
    if hint is not None:
        text += f"\n\nHint: {hint}"
    return error(text)


def same_rows(argument: str, rows: int, n: int, reference: str) -> None:
    """Require as many rows in ``argument`` as in ``reference``."""
    if rows != n:
        raise fail(
            ShapeError,
            argument,
            f"must have as many rows as `{reference}`",
            got=f"{rows} and {n}",
            hint="both must come from the same rows, in the same order.",
        )
