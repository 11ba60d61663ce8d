"""Features: the columns of a frame or of a mapping, each as plain numbers, dates or codes of categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np

from .._checks import fail, show
from .._checks.arrays import is_missing, same_rows
from .._optional import require
from .._types import AnyArray, BoolArray, IndexArray
from ..errors import DtypeError, ShapeError
from .conditions import Condition, Kind

__all__ = ["Feature", "Kinds", "Unreadable", "columns_of", "read_feature"]


class Unreadable(Exception):
    """A column that no condition can be made of, and why."""


class Feature(NamedTuple):
    """A column. ``values`` are numbers, dates, or codes of ``categories``, with -1 where one is missing."""

    name: str
    kind: Kind
    values: AnyArray
    categories: tuple[Any, ...] = ()
    with_nan: bool = False

    def missing(self, rows: Any = slice(None)) -> BoolArray:
        """Tell which rows have no value."""
        values = self.values[rows]
        if self.kind in ("truth", "category"):
            return np.asarray(values < 0)
        if self.kind == "date":
            return np.asarray(np.isnat(values))
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)

    def where(self, condition: Condition, rows: Any = slice(None)) -> BoolArray:
        """Tell which rows fulfil a condition on this feature."""
        values, value = self.values[rows], condition.value
        if condition.operator == "missing":
            return self.missing(rows)
        if self.kind in ("truth", "category"):
            known = value in self.categories  # some rows of many can lack it
            return np.asarray(values == self.categories.index(value)) if known else np.zeros(len(values), dtype=bool)
        if self.kind == "date":
            value = np.datetime64(str(value)).astype(values.dtype)
        with np.errstate(invalid="ignore"):
            if condition.operator == "is":
                return np.asarray(values == value)
            return np.asarray(values < value if condition.operator == "<" else values >= value)


def columns_of(features: Any) -> dict[str, Any]:
    """Return the columns of a frame or a mapping by their names, which must differ."""
    if isinstance(features, Mapping):
        return _by_name(features.items())
    library = type(features).__module__.partition(".")[0]
    if library == "polars":
        frame = features.collect() if hasattr(features, "collect") else features
        return _by_name((series.name, series) for series in frame.get_columns())
    if library == "pandas" and hasattr(features, "columns"):
        return _by_name((name, features.iloc[:, k]) for k, name in enumerate(features.columns))
    if library in ("duckdb", "_duckdb"):
        features = (getattr(features, "to_arrow_table", None) or features.fetch_arrow_table)()
    elif not hasattr(features, "column_names") and hasattr(features, "__arrow_c_stream__"):
        features = _pyarrow().table(features)
    if hasattr(features, "column_names"):
        return _by_name((name, features.column(k)) for k, name in enumerate(features.column_names))
    raise fail(
        DtypeError, "features", "must be a frame, or a mapping of names to columns", got=f"a {type(features).__name__}",
        hint='name the columns: `features={"age": age, "site": site}`.',
    )  # fmt: skip


def _by_name(items: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, column in items:
        if str(name) in columns:
            raise fail(ShapeError, "features", "must have names that differ", got=f"{show(str(name))} twice")
        columns[str(name)] = column
    if not columns:
        raise fail(ShapeError, "features", "must have at least one column", got="none")
    return columns


def _pyarrow() -> Any:
    return require("pyarrow", "these features are read through PyArrow", "frames")


def read_feature(raw: Any, name: str, n: int, reference: str) -> Feature:
    """Read one column; `Unreadable` says why no condition can be made of it."""
    library = type(raw).__module__.partition(".")[0]
    if library == "polars":
        raw, library = raw.to_arrow(), "pyarrow"
    if library == "pyarrow":
        feature = _from_arrow(raw, name)
    elif library == "pandas":
        feature = _from_pandas(raw, name)
    else:
        feature = _from_array(_as_array(raw, name), name)
    same_rows(f"features[{name!r}]", len(feature.values), n, reference)
    return feature


def _as_array(raw: Any, name: str) -> AnyArray:
    if isinstance(raw, np.ma.MaskedArray):
        masked, raw = np.ma.getmaskarray(raw), raw.data.astype(object)
        raw[masked] = None
    try:
        values = np.asarray(raw)
        if values.dtype.kind in "US" and not isinstance(raw, np.ndarray):  # NumPy makes text of None beside text
            values = np.asarray(raw, dtype=object)
    except ValueError as error:
        raise Unreadable("it holds lists") from error
    if values.ndim != 1:
        raise fail(
            ShapeError, f"features[{name!r}]", "must be one value for each row, shape (n,)", got=f"shape {values.shape}"
        )
    return values


def _from_array(values: AnyArray, name: str) -> Feature:
    kind = values.dtype.kind
    if kind == "b":
        return Feature(name, "truth", values.astype(np.int8), (False, True))
    if kind in "iuf":
        return _numbers(values, name)
    if kind == "M":
        return Feature(name, "date", values)
    if kind in "OUS":
        return _from_objects(values.tolist(), name)
    raise Unreadable(f"it is of type {values.dtype}")


def _numbers(values: AnyArray, name: str) -> Feature:
    if values.dtype.kind == "f" and values.dtype.itemsize < 4:
        values = values.astype(np.float32)
    return Feature(name, "number", values, with_nan=values.dtype.kind == "f" and bool(np.isnan(values).any()))


def _from_objects(items: list[Any], name: str) -> Feature:
    """Read Python objects; only those that differ are looked at one by one."""
    try:
        place = {item: k for k, item in enumerate(dict.fromkeys(items))}
    except TypeError as error:
        raise Unreadable("it holds lists") from error
    distinct = list(place)
    codes = np.fromiter(map(place.__getitem__, items), dtype=np.int32, count=len(items))
    known = [item for item in distinct if not is_missing(item)]
    if not known:
        raise Unreadable("all its values are missing")
    kinds = set(map(type, known))
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        truths = [-1 if is_missing(item) else int(item) for item in distinct]
        return Feature(name, "truth", np.array(truths, dtype=np.int8)[codes], (False, True))
    if all(issubclass(kind, Real | Decimal) and not issubclass(kind, bool) for kind in kinds):
        numbers = [np.nan if is_missing(item) else float(item) for item in distinct]
        return _numbers(np.array(numbers)[codes], name)
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        dates = [np.datetime64("NaT") if is_missing(item) else np.datetime64(_naive(item)) for item in distinct]
        return Feature(name, "date", np.array(dates, dtype="datetime64[us]")[codes])
    if any(issubclass(kind, tuple | frozenset) for kind in kinds):
        raise Unreadable("it holds lists")
    number: dict[str, int] = {}
    texts = [-1 if is_missing(item) else number.setdefault(_text(item), len(number)) for item in distinct]
    return Feature(name, "category", np.array(texts, dtype=np.int32)[codes], tuple(number))


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _naive(moment: Any) -> Any:
    """Return a moment in UTC, without its zone, which NumPy does not know."""
    offset = moment.utcoffset() if isinstance(moment, datetime) else None
    return moment if offset is None else moment.replace(tzinfo=None) - offset


def _from_pandas(series: Any, name: str) -> Feature:
    dtype = series.dtype
    if type(dtype).__name__ == "CategoricalDtype":
        return _from_codes(np.asarray(series.cat.codes), list(dtype.categories), name)
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf" and not isinstance(dtype, np.dtype):
        return _numbers(series.to_numpy(dtype=np.float64, na_value=np.nan), name)
    if kind == "M":
        return Feature(name, "date", series.to_numpy(dtype="datetime64[ns]"))
    if kind in "iufbm" and isinstance(dtype, np.dtype):
        return _from_array(series.to_numpy(), name)
    return _from_objects(series.to_numpy(dtype=object).tolist(), name)


def _from_codes(codes: IndexArray, categories: list[Any], name: str) -> Feature:
    """Return a column of categories, whatever their type."""
    if not (codes >= 0).any():
        raise Unreadable("all its values are missing")
    distinct = _from_objects(categories, name)
    if distinct.kind in ("truth", "category"):
        values = np.append(distinct.values, -1)[codes]
        return Feature(name, distinct.kind, values.astype(np.int32), distinct.categories)
    values = distinct.values.astype(np.float64) if distinct.kind == "number" else distinct.values
    hole = np.nan if distinct.kind == "number" else np.datetime64("NaT")
    return _from_array(np.append(values, [hole])[codes], name)


def _from_arrow(column: Any, name: str) -> Feature:
    pa = _pyarrow()
    kind = column.type
    types = pa.types
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        array = column.combine_chunks() if hasattr(column, "chunks") else column
        coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        codes = np.asarray(coded.indices.cast(pa.int32()).fill_null(-1))
        return _from_codes(codes, coded.dictionary.to_pylist(), name)
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if types.is_boolean(kind):
        parts = [np.asarray(chunk.cast(pa.int8()).fill_null(-1)) for chunk in chunks]
        return Feature(name, "truth", np.concatenate([np.empty(0, np.int8), *parts]), (False, True))
    if types.is_date(kind) or types.is_timestamp(kind):
        parts = [chunk.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False) for chunk in chunks]
        return Feature(name, "date", np.concatenate([np.empty(0, "datetime64[us]"), *parts]))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        target_type = pa.float64() if types.is_decimal(kind) else kind
        if len(column) and column.null_count == len(column):
            raise Unreadable("all its values are missing")
        parts = [chunk.cast(target_type).to_numpy(zero_copy_only=False) for chunk in chunks]
        values = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])
        numbers = _numbers(values, name)
        return numbers._replace(with_nan=numbers.with_nan and int(np.isnan(values).sum()) > column.null_count)
    if types.is_null(kind):
        raise Unreadable("all its values are missing")
    raise Unreadable("it holds lists" if types.is_nested(kind) else f"it is of type {kind}")


class Kinds:
    """A column that comes in parts: its kind is known when all of them have been seen.

    Parameters
    ----------
    name : str
        The name of the column.
    from_text : callable
        Reads a column of text as the values that it spells: numbers, where all of it spells numbers.
    """

    def __init__(self, name: str, from_text: Callable[[AnyArray], AnyArray]) -> None:
        self._name, self._from_text = name, from_text
        self._seen: set[Kind] = set()
        self._with_nan = False

    def add(self, values: AnyArray) -> None:
        """Look at a part."""
        try:
            feature = read_feature(self._from_text(values), self._name, len(values), "y_true")
        except Unreadable:  # nothing is known yet, or never: then the rows that were drawn tell why
            return
        self._seen.add(feature.kind)
        self._with_nan |= feature.with_nan

    def __add__(self, other: Self) -> Self:
        """Return the kinds of the parts of both."""
        joined = type(self)(self._name, self._from_text)
        joined._seen, joined._with_nan = self._seen | other._seen, self._with_nan or other._with_nan
        return joined

    def read(self, values: AnyArray) -> Feature | Unreadable:
        """Read some rows as the kind that all rows have: as text, where parts have different kinds."""
        try:
            feature = read_feature(self._from_text(values), self._name, len(values), "y_true")
            if len(self._seen) > 1 or (self._seen and feature.kind not in self._seen):  # by chance these spell numbers
                text = [None if is_missing(item) else _text(item) for item in values.tolist()]
                feature = read_feature(np.array(text, dtype=object), self._name, len(values), "y_true")
        except Unreadable as reason:
            return reason
        return feature._replace(with_nan=self._with_nan)

    def column(self, values: AnyArray) -> Feature:
        """Read some rows of a column that conditions are on; all values of these rows can be missing."""
        feature = self.read(values)
        if isinstance(feature, Feature):
            return feature
        kind = next(iter(self._seen)) if len(self._seen) == 1 else "category"
        holes = {"number": np.nan, "date": np.datetime64("NaT"), "truth": -1, "category": -1}
        return Feature(self._name, kind, np.full(len(values), holes[kind]))
