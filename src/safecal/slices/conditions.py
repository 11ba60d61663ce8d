"""Conditions on features, and how they are written: for people, in SQL, for Polars and for pandas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, final, get_args

from .. import documents
from ..errors import visible

__all__ = ["Condition", "Kind", "Operator", "write_conditions"]

Kind = Literal["number", "date", "truth", "category"]
Operator = Literal["<", ">=", "is", "missing"]
Value = float | int | str | bool | None


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one feature.

    Attributes
    ----------
    feature : str
        The name of the column.
    operator : {"<", ">=", "is", "missing"}
        A row whose value is missing fulfils ``"missing"`` alone.
    value : float, int, str, bool or None
        What the feature is compared with; a date is written as text, as ``"2024-03-01"`` or ``"2024-03-01T12:30:00"``.
    type : {"number", "date", "truth", "category"}
        What the feature holds.
    with_nan : bool
        Whether the column holds NaN, which Polars and SQL sort above all numbers.

    Examples
    --------
    >>> from safecal.slices.conditions import Condition
    >>> old = Condition("age", ">=", 63, "number")
    >>> str(old), old.sql, old.polars, old.pandas
    ('age >= 63', '"age" >= 63', 'pl.col("age") >= 63', 'frame["age"] >= 63')
    """

    feature: str
    operator: Operator
    value: Value
    type: Kind
    with_nan: bool = False

    def __str__(self) -> str:
        name = visible(self.feature)
        if self.operator == "missing":
            return f"{name} is missing"
        shown = str(self.value).lower() if self.type == "truth" else visible(_plain(self.value))
        return f"{name} {self.operator} {shown or repr(shown)}"

    @property
    def sql(self) -> str:
        """The condition in SQL."""
        name = '"' + self.feature.replace('"', '""') + '"'
        if self.operator == "missing":
            return f"({name} IS NULL OR isnan({name}))" if self.with_nan else f"{name} IS NULL"
        if self.type == "truth":
            value = str(self.value).upper()
        elif self.type == "number":
            value = _plain(self.value)
        else:
            value = "'" + str(self.value).replace("'", "''") + "'"
            value = f"TIMESTAMP {value}" if self.type == "date" else value
        comparison = f"{name} {'=' if self.operator == 'is' else self.operator} {value}"
        return f"({comparison} AND NOT isnan({name}))" if self.with_nan and self.operator == ">=" else comparison

    @property
    def polars(self) -> str:
        """The condition as an expression of Polars."""
        column = f"pl.col({_quoted(self.feature)})"
        if self.operator == "missing":
            return f"({column}.is_null() | {column}.is_nan())" if self.with_nan else f"{column}.is_null()"
        value = _moment(str(self.value)) if self.type == "date" else self._python()
        comparison = f"{column} {'==' if self.operator == 'is' else self.operator} {value}"
        return f"({comparison}) & {column}.is_not_nan()" if self.with_nan and self.operator == ">=" else comparison

    @property
    def pandas(self) -> str:
        """The condition as an expression of pandas; the frame is called ``frame``."""
        column = f"frame[{_quoted(self.feature)}]"
        if self.operator == "missing":
            return f"{column}.isna()"
        return f"{column} {'==' if self.operator == 'is' else self.operator} {self._python()}"

    def _python(self) -> str:
        return _quoted(self.value) if isinstance(self.value, str) else _plain(self.value)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("feature", "operator", "value", "type", "with_nan")}
        return documents.document("condition", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        condition = cls(**documents.read("condition", document, _FIELDS))
        types = {"number": (int, float), "truth": (bool,), "date": (str,), "category": (str,)}[condition.type]
        fits = condition.value is None if condition.operator == "missing" else isinstance(condition.value, types)
        fits &= condition.type == "truth" or not isinstance(condition.value, bool)
        fits &= condition.type != "date" or condition.value is None or _is_date(str(condition.value))
        documents.every(((fits, "must have a `value` that fits its `operator` and its `type`"),))
        return condition


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _value(value: Any) -> Value:
    if value is not None and not isinstance(value, bool | int | float | str):
        documents.refuse("must be a number, text, true, false or null", value)
    return value


_FIELDS: dict[str, Any] = {
    "feature": documents.text,
    "operator": documents.choice(*get_args(Operator)),
    "value": _value,
    "type": documents.choice(*get_args(Kind)),
    "with_nan": documents.flag,
}


def _plain(value: Value) -> str:
    """Write a number as a person would, and text as it is."""
    if isinstance(value, float):
        return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)
    return str(value)


def _moment(text: str) -> str:
    """Write a date, or a date and a time, as Polars makes it."""
    moment = datetime.fromisoformat(text)
    parts = [moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond]
    while len(parts) > 3 and not parts[-1]:
        parts.pop()
    return f"pl.datetime({', '.join(map(str, parts))})"


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)


def write_conditions(conditions: tuple[Condition, ...], language: Literal["text", "sql", "polars", "pandas"]) -> str:
    """Write conditions that hold together, in words or in a language."""
    if language == "text":
        return " and ".join(map(str, conditions))
    parts = [getattr(condition, language) for condition in conditions]
    if language == "sql":
        return " AND ".join(parts)
    return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
