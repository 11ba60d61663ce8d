"""The one template of an input error: argument, rule, value, place, count, then one move to make."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from ..errors import InputError, ShapeError
from ..visible import visible
from .phrases import PYTHON

__all__ = ["Complaint", "Phrase", "fail", "phrase", "same_rows", "show"]


def show(value: Any) -> str:
    """Return a value as a person would type it, without NumPy's wrappers and at most 60 characters."""
    text = repr(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "..."


@final
class Phrase(str):
    """A part of a message that names arguments; it keeps its key, so that another surface can name its options instead.

    As text it speaks to someone who writes Python.
    """

    key: str
    values: dict[str, Any]

    def __new__(cls, text: str, key: str = "", values: dict[str, Any] | None = None) -> Self:
        found = super().__new__(cls, text)
        found.key, found.values = key, values or {}
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Phrase, (str(self), self.key, self.values)


def phrase(key: str, **values: Any) -> Phrase:
    """Return a phrase of the dictionary, in the words of Python."""
    return Phrase(PYTHON[key].format(**values), key, values)


@final
@dataclass(frozen=True, slots=True)
class Complaint:
    """The parts of an input error, for a program that words it anew."""

    argument: str
    rule: str
    got: str | None
    place: str | None
    count: tuple[int, int] | None
    hint: str | None

    def __str__(self) -> str:
        text = f"`{visible(self.argument)}` {self.rule}"
        if self.got is not None:
            text += f"; got {self.got}"
        if self.place is not None:
            text += f" at {self.place}"
        if self.count is not None:
            text += f" ({self.count[0]} of {self.count[1]} {'row' if self.count[1] == 1 else 'rows'})"
        return f"{text}." if self.hint is None else f"{text}.\n\nHint: {self.hint}"


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
    complaint = Complaint(argument, rule, got, place, count, hint)
    found = error(str(complaint))
    found.complaint = complaint
    return found


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
