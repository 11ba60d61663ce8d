"""What expressions are written in: narwhals, or SQL of our own for Spark.

Narwhals asks Spark about every step, and each answer costs as much as summing many rows. SQL is one text, which Spark
reads once. Ours has the few words of narwhals that the formulas use, and means the same by them. At the end stand the
queries that sum columns by key.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, final

import numpy as np

from ... import _sums
from ..._checks import fail
from ..._optional import narwhals
from ..._types import AnyArray
from ...errors import ShapeError

__all__ = [
    "SqlFrame", "as_arrays", "as_number", "collect_limited", "collect_numbers", "in_sql", "language", "quoted",
    "sums_by",
]  # fmt: skip

_SOURCE = re.compile(r"FROM (s[0-9a-f]{16})\b")
_COLUMN = re.compile(r"`((?:[^`]|``)*)`")
# A column, as a float or as it is, or a number: what costs nothing to have twice.
_PLAIN = re.compile(rf"{_COLUMN.pattern}|CAST\({_COLUMN.pattern} AS double\)|-?[\d.e+-]+D")
_DEEPEST = 4  # steps that are nested in each other

_SQL: ContextVar[bool] = ContextVar("sql", default=False)


@contextmanager
def in_sql(frame: Any) -> Iterator[None]:
    """Write expressions in SQL where a frame is one of SQL."""
    before = _SQL.set(isinstance(frame, SqlFrame))
    try:
        yield
    finally:
        _SQL.reset(before)


def language() -> Any:
    """Return the module that expressions are written with."""
    return _SqlLanguage() if _SQL.get() else narwhals()


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it: dots and marks in it mean nothing."""
    return "`" + name.replace("`", "``") + "`"


def _unquoted(name: str) -> str:
    return name.replace("``", "`")


def _text(value: Any) -> str:
    """Return a value as SQL."""
    if isinstance(value, Sql):
        return value.text
    if value is None:
        return "NULL"
    if isinstance(value, str):  # in hexadecimal digits, nothing need be escaped
        return f"decode(unhex('{value.encode().hex()}'), 'UTF-8')"
    if isinstance(value, bool):
        return str(value).lower()
    value = float(value)
    return f"{value!r}D" if math.isfinite(value) else f"double('{'-' if value < 0.0 else ''}Infinity')"


def _between(sign: str) -> Callable[["Sql", Any], "Sql"]:
    """Return the method that writes a sign between two expressions."""
    return lambda self, other: Sql(f"({self.text} {sign} {_text(other)})", self.name)


def _after(sign: str) -> Callable[["Sql", Any], "Sql"]:
    """Return the method that writes a sign and the expression behind something else."""
    return lambda self, other: Sql(f"({_text(other)} {sign} {self.text})", self.name)


def _called(function: str) -> Callable[["Sql"], "Sql"]:
    """Return the method that calls a function of SQL."""
    return lambda self: Sql(f"{function}({self.text})", self.name)


class Sql:
    """An expression, and the name of the column that it becomes."""

    def __init__(self, text: str, name: str = "") -> None:
        self.text, self.name = text, name

    __add__, __sub__, __mul__ = map(_between, "+-*")
    __radd__, __rsub__, __rmul__ = map(_after, "+-*")
    __lt__, __le__, __gt__, __ge__ = map(_between, ("<", "<=", ">", ">="))
    __eq__, __ne__ = map(_between, ("=", "<>"))  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]
    __and__, __or__ = map(_between, ("AND", "OR"))
    abs, exp, sqrt, floor, min, max = map(_called, ("abs", "exp", "sqrt", "floor", "min", "max"))
    is_null, is_nan = map(_called, ("isnull", "isnan"))

    def __invert__(self) -> "Sql":
        return Sql(f"(NOT {self.text})", self.name)

    # Spark takes quotients and logarithms for values that may be missing, and then looks after each of them. Those of
    # the formulas never are: no divisor is 0.
    def __truediv__(self, other: Any) -> "Sql":
        return Sql(f"nvl({self.text} / {_text(other)}, 0D)", self.name)

    def __rtruediv__(self, other: Any) -> "Sql":
        return Sql(f"nvl({_text(other)} / {self.text}, 0D)", self.name)

    def log(self) -> "Sql":
        return Sql(f"nvl(ln({self.text}), double('-Infinity'))", self.name)

    def __pow__(self, other: Any) -> "Sql":
        return Sql(f"power({self.text}, {_text(other)})", self.name)

    def sum(self) -> "Sql":
        return Sql(f"nvl(sum({self.text}), 0D)", self.name)

    def fill_null(self, value: float) -> "Sql":
        return Sql(f"nvl({self.text}, {_text(value)})", self.name)

    def clip(self, low: float, high: float) -> "Sql":
        x, lowest, highest = self.text, _text(low), _text(high)
        return Sql(
            f"CASE WHEN {x} < {lowest} THEN {lowest} WHEN {x} > {highest} THEN {highest} ELSE {x} END", self.name
        )

    def cast(self, kind: Any) -> "Sql":
        nw = narwhals()
        name = next(name for known, name in ((nw.Float64, "double"), (nw.Int64, "bigint"), (nw.String, "string"))
                    if kind == known)  # fmt: skip
        return Sql(f"CAST({self.text} AS {name})", self.name)

    def alias(self, name: str) -> "Sql":
        return Sql(self.text, name)


@final
class _When:
    def __init__(self, condition: Sql) -> None:
        self._condition = condition.text

    def then(self, value: Any) -> "_Then":
        return _Then(f"CASE WHEN {self._condition} THEN {_text(value)}")


@final
class _Then(Sql):
    def __init__(self, begun: str) -> None:
        super().__init__(f"{begun} END")
        self._begun = begun

    def otherwise(self, value: Any) -> Sql:
        return Sql(f"{self._begun} ELSE {_text(value)} END")


@final
class _SqlLanguage:
    def __getattr__(self, name: str) -> Any:
        return getattr(narwhals(), name)  # the types of columns

    def col(self, name: str) -> Sql:
        return Sql(quoted(name), name)

    def lit(self, value: Any) -> Sql:
        return Sql(_text(value), "literal")

    def len(self) -> Sql:
        return Sql("count(*)", "len")

    def power_of_two(self, whole: Sql, first: int) -> Sql:
        """Return ``2.0 ** (first + whole)`` for a whole number that is not below 0; narwhals has no such word."""
        return Sql(f"(CAST(shiftleft(1L, CAST({whole.text} AS INT)) AS DOUBLE) * {2.0**first!r}D)", whole.name)

    def when(self, condition: Sql) -> _When:
        return _When(condition)

    def concat(self, frames: "list[SqlFrame]", how: str) -> "SqlFrame":
        assert how == "vertical"
        steps = {name: step for frame in frames for name, step in frame.steps.items()}
        text = " UNION ALL ".join(f"SELECT * FROM {frame.last}" for frame in frames)
        return frames[0].of(_Step(text), frames[0].columns, steps)


class _Step(NamedTuple):
    """A query over earlier steps: its text; or the expressions that it selects, by name, from where, and the rest."""

    query: str
    selected: tuple[tuple[str, str], ...] = ()
    source: str = ""
    clauses: str = ""

    @property
    def text(self) -> str:
        """The step as SQL."""
        if not self.selected:
            return self.query
        listed = ", ".join(f"{text} AS {quoted(name)}" for name, text in self.selected)
        return f"SELECT {_braced(listed)} FROM {self.source}{_braced(self.clauses)}"

    @property
    def read(self) -> Counter[str] | None:
        """How often it reads each column of the step before; None where it reads all of them."""
        if not self.selected:
            return None
        return Counter(map(_unquoted, _COLUMN.findall(" ".join((*(text for _, text in self.selected), self.clauses)))))

    def kept(self, wanted: set[str] | None) -> "_Step":
        """Return it with the columns that are wanted alone; None is all of them."""
        kept = tuple((name, text) for name, text in self.selected if wanted is None or name in wanted)
        return self._replace(selected=kept or self.selected[:1])

    def after(self, before: "_Step") -> "_Step | None":
        """Return this step with the one before written into it; None where something would be computed twice."""
        read, grouped = self.read, set(map(_unquoted, _COLUMN.findall(self.clauses)))
        if read is None or not before.selected or before.clauses:
            return None
        made = {name: text for name, text in before.selected if not _PLAIN.fullmatch(text)}
        if any(name in made and (times > 1 or name in grouped) for name, times in read.items()):
            return None
        columns = dict(before.selected)

        def written(text: str) -> str:
            return _COLUMN.sub(lambda name: columns[_unquoted(name[1])], text)

        selected = tuple((name, written(text)) for name, text in self.selected)
        return _Step("", selected, before.source, written(self.clauses))


@final
class SqlFrame:
    """A query over a Spark DataFrame, in steps that follow each other.

    Spark goes through the whole query once for each step that has a name, and is slow to read deeply nested ones. So a
    step that only the next one reads is written into it, where nothing is computed twice then, or else nested in it, a
    few at a time. A column that no later step reads is left out.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The rows.
    names : sequence of str
        The columns that are needed.
    """

    def __init__(self, frame: Any, names: tuple[str, ...]) -> None:
        self.frame = frame.select(*map(quoted, dict.fromkeys(names)))
        self.columns = tuple(dict.fromkeys(names))
        self.steps: dict[str, _Step] = {}
        self.last = "{rows}"

    def of(self, step: _Step, columns: tuple[str, ...], steps: dict[str, _Step] | None = None) -> "SqlFrame":
        """Return a query with one more step."""
        frame = object.__new__(SqlFrame)
        frame.frame, frame.columns = self.frame, columns
        frame.last = "s" + hashlib.sha256(step.text.encode()).hexdigest()[:16]
        frame.steps = {**(self.steps if steps is None else steps), frame.last: step}
        return frame

    def _texts(self) -> dict[str, str]:
        """Return the text of each step that is left, with the columns that later ones read."""
        kept: dict[str, _Step] = {}
        wanted: dict[str, set[str] | None] = {self.last: None}
        for name, step in reversed(self.steps.items()):
            kept[name] = step.kept(wanted[name]) if step.selected else step
            read = kept[name].read
            for source in _SOURCE.findall(kept[name].text):
                before = wanted.get(source, set())
                wanted[source] = None if before is None or read is None else before | read.keys()
        readers = Counter(source for step in kept.values() for source in _SOURCE.findall(step.text))
        steps: dict[str, _Step] = {}
        for name, step in reversed(kept.items()):
            before_it = steps.get(step.source) if readers[step.source] == 1 else None
            joined = None if before_it is None else step.after(before_it)
            if joined is not None:
                del steps[step.source]
            steps[name] = joined or step
        return {name: step.text for name, step in steps.items()}

    @property
    def text(self) -> str:
        """The query, with ``{rows}`` for the rows."""
        texts = self._texts()
        read = Counter(source for text in texts.values() for source in _SOURCE.findall(text))
        nested: dict[str, tuple[int, str]] = {}
        named = []
        for name, text in texts.items():
            inside = {source: nested[source] for source in _SOURCE.findall(text) if source in nested}
            for source, (_, within) in inside.items():
                text = text.replace(f"FROM {source}", f"FROM ({within}) AS {source}")
            depth = 1 + max((deep for deep, _ in inside.values()), default=0)
            if read[name] == 1 and depth < _DEEPEST:
                nested[name] = depth, text
            else:
                named.append(f"{name} AS ({text})")
        return f"WITH {', '.join(named)} SELECT * FROM {self.last}"

    def collect_schema(self) -> Any:
        """Return the types of the columns of the rows."""
        return narwhals().from_native(self.frame).collect_schema()

    def select(self, *names: str | Sql, **named: Sql) -> "SqlFrame":
        """Return a query of other columns."""
        expressions = [Sql(quoted(name), name) if isinstance(name, str) else name for name in names]
        expressions += [value.alias(name) for name, value in named.items()]
        return self.chosen(expressions, "")

    def chosen(self, expressions: list[Sql], clauses: str) -> "SqlFrame":
        """Return a query of some expressions, with the rest of its text."""
        selected = tuple((expression.name, expression.text) for expression in expressions)
        return self.of(_Step("", selected, self.last, clauses), tuple(expression.name for expression in expressions))

    def with_columns(self, **named: Sql) -> "SqlFrame":
        """Return a query with more columns, or others of the same name."""
        return self.select(*(name for name in self.columns if name not in named), **named)

    def filter(self, condition: Sql) -> "SqlFrame":
        """Return a query of the rows for which a condition holds."""
        return self.of(_Step(f"SELECT * FROM {self.last} WHERE {_braced(condition.text)}"), self.columns)

    def unique(self) -> "SqlFrame":
        """Return a query of the rows that differ."""
        return self.of(_Step(f"SELECT DISTINCT * FROM {self.last}"), self.columns)

    def head(self, rows: int) -> "SqlFrame":
        """Return a query of at most so many rows."""
        return self.of(_Step(f"SELECT * FROM {self.last} LIMIT {rows}"), self.columns)

    def group_by(self, *keys: str) -> "_Grouped":
        """Return the groups, to be summed."""
        return _Grouped(self, keys)

    def to_native(self) -> Any:
        """Return the query as Spark has it."""
        return self.frame.sparkSession.sql(self.text, rows=self.frame)

    def collect(self, _: str) -> Any:
        """Run the query."""
        return narwhals().from_native(self.to_native().toArrow(), eager_only=True)


@final
class _Grouped:
    def __init__(self, frame: SqlFrame, keys: tuple[str, ...]) -> None:
        self._frame, self._keys = frame, keys

    def agg(self, *sums: Sql) -> SqlFrame:
        keys = [Sql(quoted(key), key) for key in self._keys]
        return self._frame.chosen([*keys, *sums], " GROUP BY " + ", ".join(key.text for key in keys))


def _braced(text: str) -> str:
    """Write braces twice: one stands for the rows."""
    return text.replace("{", "{{").replace("}", "}}")


def as_number(condition: Any) -> Any:
    """Return 1 where a condition holds, else 0."""
    nw = language()
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def sums_by(rows: Any, keys: list[str], names: list[str]) -> Any:
    """Return the lazy query that counts rows, as ``n``, and sums columns by key."""
    nw = language()
    chosen = rows.select(*keys, *names)
    return chosen.group_by(*keys).agg(nw.len().alias("n"), *(nw.col(name).sum() for name in names))


def collect_limited(query: Any, name: str) -> Any:
    """Run a query by key, if the keys are not too many, and return an Arrow table."""
    table = query.head(_sums.MAX_KEYS + 1).collect("pyarrow").to_native()
    if table.num_rows > _sums.MAX_KEYS:
        raise fail(
            ShapeError, name, f"must have at most {_sums.MAX_KEYS} different values", got="more",
            hint="sums are kept for each of them; is it the right column?",
        )  # fmt: skip
    return table


def collect_numbers(query: Any) -> dict[str, AnyArray]:
    """Run a query, and return its columns of numbers."""
    table = query.collect("pyarrow").to_native()
    return as_arrays(table, table.column_names)


def as_arrays(table: Any, names: list[str]) -> dict[str, AnyArray]:
    """Return columns of numbers of an Arrow table."""
    return {name: np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in names}
