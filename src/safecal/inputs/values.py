"""A column of a table as an array, with its missing values, whichever library it comes from."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import fail, show
from .._checks.arrays import LEADING_ZERO, TRUTHS, is_missing, is_text, spelled_labels, spelled_numbers
from .._optional import pyarrow
from .._types import AnyArray, BoolArray
from ..errors import DtypeError, InputError, LabelError, ShapeError

__all__ = [
    "Column", "feature_column", "from_text", "keys", "labels", "library", "not_numbers", "numbers", "side_by_side",
    "truths",
]  # fmt: skip


_TRUTHS = {bool, np.bool_}
_NUMBERS = (int, float, np.integer, np.floating)


class Column(NamedTuple):
    """Values, and which of them are missing; None where none is."""

    values: AnyArray
    missing: BoolArray | None = None


def library(value: Any) -> str:
    """Return the name of the library that an object belongs to."""
    return type(value).__module__.partition(".")[0]


def numbers(raw: Any, name: str) -> Column:
    """Return numbers: one column, or a matrix where each row of the table holds a list.

    Text counts where it spells numbers. Missing ones are NaN.
    """
    column = _COLUMN_FROM[library(raw)](raw, name)
    values = column.values
    objects = values.dtype.kind == "O"
    if values.dtype.kind == "U" or (objects and all(isinstance(value, str) or is_missing(value) for value in values)):
        column = _from_text(column, name)
    elif values.dtype.kind not in "iuf":
        raise not_numbers(name, str(getattr(raw, "dtype", None) or getattr(raw, "type", values.dtype)))
    return _with_nan(column)


def labels(raw: Any, name: str, *, words: bool = False) -> Column:
    """Return outcomes: truths, numbers where every value is one, else text; text stays text where ``words`` says so."""
    if not words and library(raw) == "polars" and str(raw.dtype) == "String":  # without a detour through objects
        raw = _spelled_series(raw)
    column = _COLUMN_FROM[library(raw)](raw, name)
    if column.values.ndim != 1:
        raise fail(ShapeError, name, "must hold one label a row", got="a list", hint="is it the right column?")
    if column.values.dtype.kind in "biuf":
        return _with_nan(column)
    present = slice(None) if column.missing is None else ~column.missing
    known_values = column.values[present]
    if known_values.dtype.kind == "O" and not is_text(known_values):
        if known_values.size and all(isinstance(value, bool | np.bool_) for value in known_values):
            return Column(_filled(column, False).astype(bool), column.missing)
        known_values = np.array([str(value) for value in known_values], dtype=np.str_)
    spelled = None if words or not known_values.size else spelled_labels(known_values)
    if spelled is None:
        return Column(_scattered(known_values.astype(np.str_), column.missing, ""), column.missing)
    return Column(_scattered(spelled, column.missing, 0 if spelled.dtype.kind in "iu" else np.nan), column.missing)


def side_by_side(column_of: Mapping[str, Column]) -> Column:
    """Return the only column as it is, or a matrix of several columns of numbers."""
    columns = list(column_of.values())
    if len(columns) == 1:
        return columns[0]
    for name, column in column_of.items():
        if column.values.ndim != 1:
            raise not_numbers(name, "list")
    matrix = np.empty((len(columns[0].values), len(columns)), dtype=np.result_type(*(c.values for c in columns)))
    for k, column in enumerate(columns):
        matrix[:, k] = column.values
    holes = [c.missing for c in columns if c.missing is not None]
    return Column(matrix, np.logical_or.reduce(holes) if holes else None)


def truths(raw: Any, name: str) -> Column:
    """Return whether one of several labels was there, row by row: 0 or 1."""
    column = labels(raw, name)
    values = column.values
    bad = (values != 0) & (values != 1) if values.dtype.kind in "biuf" else np.ones(len(values), dtype=bool)
    if column.missing is not None:
        bad &= ~column.missing
    if bad.any():
        first = int(bad.argmax())
        raise fail(
            LabelError, name, "must be 0 or 1, where a row has several labels", got=show(values[first].item()),
            place=f"row {first}", count=(int(bad.sum()), len(values)),
        )  # fmt: skip
    return Column(np.asarray(values == 1, dtype=np.float64), column.missing)


def keys(raw: Any, name: str) -> Column:
    """Return keys of groups or clusters; a missing one is None, and whole numbers stay whole."""
    column = _COLUMN_FROM[library(raw)](raw, name)
    if column.values.ndim != 1:
        raise fail(ShapeError, name, "must hold one key a row", got="a list", hint="is it the right column?")
    return Column(_with_none(column), column.missing)


def feature_column(raw: Any, name: str) -> AnyArray:
    """Return a feature of each row: numbers, truths, dates or text; objects with None where some are missing."""
    kind = str(getattr(raw, "dtype", None) or getattr(raw, "type", ""))
    if library(raw) == "polars" and kind.startswith("Date"):
        import polars as pl

        return np.asarray(raw.cast(pl.Datetime("us")).to_numpy())
    if library(raw) == "pyarrow" and kind.startswith(("date", "timestamp")):
        return np.asarray(raw.cast(pyarrow().timestamp("us")).to_numpy(zero_copy_only=False))
    if library(raw) == "numpy" and raw.dtype.kind == "M":
        return np.asarray(raw)
    column = _COLUMN_FROM[library(raw)](raw, name)
    if column.values.ndim != 1:  # lists: no condition is made of them
        return _objects([tuple(row) for row in column.values.tolist()])
    return _with_none(column)


def _with_none(column: Column) -> AnyArray:
    if column.missing is None:
        return column.values
    objects = column.values.astype(object)
    objects[column.missing] = None
    return objects


def from_text(values: AnyArray) -> AnyArray:
    """Read a column of text as numbers, truths or dates, where every text is one; a CSV file holds text alone."""
    if values.dtype.kind not in "OU":
        return values
    present = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    text = values[present]
    if not text.size or not is_text(text):
        return values
    spelled = spelled_labels(text)
    if spelled is None and all(_DATE.match(value) for value in dict.fromkeys(text.tolist())):
        try:
            spelled = text.astype("datetime64[us]")
        except ValueError:
            return values
    if spelled is None or present.all():
        return values if spelled is None else spelled
    if spelled.dtype.kind == "M":
        return _scattered(spelled, ~present, np.datetime64("NaT"))
    return _scattered(spelled.astype(object), ~present, None)


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+)?$")


def _filled(column: Column, value: Any) -> AnyArray:
    if column.missing is None:
        return column.values
    filled = column.values.copy()
    filled[column.missing] = value
    return filled


def _scattered(values: AnyArray, missing: BoolArray | None, hole: Any) -> AnyArray:
    """Put known values where they stood, and something else where one was missing."""
    if missing is None:
        return values
    scattered = np.full(len(missing), hole, dtype=values.dtype)
    scattered[~missing] = values
    return scattered


def _with_nan(column: Column) -> Column:
    """Count NaN among the missing values, and write the missing ones as NaN."""
    values, missing = column
    if missing is not None and values.dtype.kind in "iu":
        if values.ndim == 1 and bool((np.abs(values[~missing].astype(object)) > 2**53).any() if values.size else False):
            return column  # floats would fold labels together: a missing one stays what it was
        values = values.astype(np.float64)
        values[missing] = np.nan
    if values.dtype.kind != "f" or not values.size or not np.isnan(values.min()):
        return Column(values, missing)
    holes = np.asarray(np.isnan(values).reshape(len(values), -1).any(axis=1))
    return Column(values, holes if missing is None else holes | missing)


def _from_text(column: Column, name: str) -> Column:
    """Read text as numbers, or refuse the first text that is no number."""
    missing = column.missing
    if missing is None and column.values.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, column.values), dtype=bool, count=len(column.values))
    text = column.values if missing is None else column.values[~missing]
    spelled = spelled_numbers(text)
    if spelled is None:
        bad = np.fromiter((spelled_numbers(np.array([value])) is None for value in text), dtype=bool, count=len(text))
        first = int(bad.argmax())
        row = first if missing is None else int(np.flatnonzero(~missing)[first])
        raise fail(
            DtypeError, name, "must be a number", got=show(text[first]), place=f"row {row}",
            count=(int(bad.sum()), len(column.values)),
            hint="is it the right column? For missing values leave the field empty.",
        )  # fmt: skip
    return Column(_scattered(spelled, missing, np.nan), missing)


def not_numbers(name: str, kind: str) -> InputError:
    """Build the error for a column of another type."""
    hint = "is it the right column?"
    if kind.startswith(("list", "large_list", "fixed_size_list", "List", "Array")):
        hint = "a column of lists holds every class: give it alone."
    return fail(DtypeError, name, "must be a number", got=f"a column of type {kind}", hint=hint)


def _matrix(flat: AnyArray, lengths: AnyArray, missing: BoolArray | None, name: str) -> Column:
    """Return lists under each other as a matrix; every list must be as long as the first."""
    present = np.ones(len(lengths), dtype=bool) if missing is None else ~missing
    width = int(lengths[present][0]) if present.any() else 1
    wrong_length = present & (lengths != width)
    if wrong_length.any():
        first = int(wrong_length.argmax())
        raise fail(
            ShapeError, name, f"must hold lists of one length, {width}", got=f"{lengths[first]}",
            place=f"row {first}", count=(int(wrong_length.sum()), len(wrong_length)),
        )  # fmt: skip
    if flat.dtype.kind not in "iuf":
        raise not_numbers(name, f"list of {flat.dtype}")
    matrix = flat.reshape(-1, width, *flat.shape[1:])  # lists of lists are matrices
    if missing is None:
        return Column(matrix)
    padded = np.full((len(lengths), *matrix.shape[1:]), np.nan)
    padded[present] = matrix
    return Column(padded, missing)


def _no_empty_text(column: Column) -> Column:
    """Count empty text among the missing values: in a CSV file it is what stands there."""
    if column.values.dtype.kind not in "OU":
        return column
    empty = np.asarray(column.values == "")
    if not empty.any():
        return column
    return Column(column.values, empty if column.missing is None else empty | column.missing)


def _objects(values: list[Any]) -> AnyArray:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


# Each library hands over an array and what is missing of it; text and mixtures are arrays of objects.


def _numpy(raw: Any, name: str) -> Column:
    values = np.asarray(raw)
    if values.dtype.kind == "O":
        holes = np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
        missing = holes if holes.any() else None
        present = values if missing is None else values[~missing]
        if present.size and all(isinstance(value, list) for value in present):
            lengths = np.fromiter((0 if hole else len(v) for v, hole in zip(values, holes, strict=True)), dtype=np.intp)
            flat = _numpy(_objects([item for value in present for item in value]), name)
            return _matrix(_with_nan(flat).values, lengths, missing, name)
        kinds = {type(value) for value in present}
        if kinds and (kinds <= _TRUTHS or (not kinds & _TRUTHS and all(issubclass(k, _NUMBERS) for k in kinds))):
            plain = np.array(present.tolist())
            if plain.dtype.kind in "biuf":  # whole numbers of more than 64 bits stay what they are
                return Column(_scattered(plain, missing, 0), missing)
        return _no_empty_text(Column(values, missing))
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
        return Column(values.astype(np.str_).astype(object), missing if missing.any() else None)
    return Column(values)


def _text_of(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def _polars(raw: Any, name: str) -> Column:
    kind = str(raw.dtype)
    missing = raw.is_null().to_numpy() if raw.null_count() else None
    if kind.startswith(("List", "Array")):
        lists = raw if kind.startswith("List") else raw.arr.to_list()
        filled = lists.filter(lists.list.len() > 0)
        flat = _polars(filled.explode() if len(filled) else lists.clear().explode(), name)
        return _matrix(_with_nan(flat).values, lists.list.len().fill_null(0).to_numpy(), missing, name)
    import polars as pl

    if kind.startswith(("Decimal", "Int128", "UInt128")):
        raw = raw.cast(pl.String)  # read as text each is the nearest float, and whole numbers stay apart
    elif kind == "Null":
        return Column(np.full(len(raw), None, dtype=object), np.ones(len(raw), dtype=bool))
    elif kind == "Binary":  # what is no text, such as a UUID, as digits
        raw = pl.Series(raw.name, [_text_of(value) for value in raw], pl.String)
    elif not raw.dtype.is_numeric() and kind not in ("String", "Boolean"):
        raw = raw.cast(pl.String)
    numeric = raw.dtype.is_numeric()
    if missing is not None and (numeric or str(raw.dtype) == "Boolean"):
        return Column(raw.fill_null(0 if numeric else False).to_numpy(), missing)
    return _no_empty_text(Column(raw.to_numpy(), missing))


def _spelled_series(raw: Any) -> Any:
    """Return a text column as numbers, where every value is one."""
    import polars as pl

    text = raw.replace("", None).str.strip_chars()
    nulls = text.null_count()
    lower = text.str.to_lowercase()
    if len(text) and lower.drop_nulls().is_in(TRUTHS).all() and nulls < len(text):
        return lower == "true"
    floats = text.cast(pl.Float64, strict=False)
    if floats.null_count() > nulls or text.str.contains(LEADING_ZERO).any():
        return raw
    for integers in (text.cast(kind, strict=False) for kind in (pl.Int64, pl.UInt64)):
        if integers.null_count() == nulls:
            return integers
    large = floats.abs() > 2**53
    if large.any() and text.filter(large.fill_null(False)).str.contains(r"^[+-]?[0-9]+$").any():
        return raw
    return floats


def _arrow(raw: Any, name: str) -> Column:
    pa = pyarrow()
    import pyarrow.compute as pc

    kind = str(raw.type)
    if kind.startswith("dictionary"):
        raw, kind = raw.cast(raw.type.value_type), str(raw.type.value_type)
    missing = np.asarray(raw.is_null().to_numpy(zero_copy_only=False)) if raw.null_count else None
    if kind.startswith(("list", "large_list", "fixed_size_list")):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(raw), 0).to_numpy(zero_copy_only=False))
        flat = _arrow(pc.list_flatten(raw), name)
        return _matrix(_with_nan(flat).values, lengths, missing, name)
    if kind == "null":
        return Column(np.full(len(raw), None, dtype=object), np.ones(len(raw), dtype=bool))
    if kind.startswith(("decimal", "date", "time", "duration")):
        raw = raw.cast(pa.string())  # read as text a decimal is the nearest float, and whole numbers stay apart
    elif missing is not None and kind.startswith(("int", "uint", "bool")):
        raw = pc.fill_null(raw, False if kind == "bool" else 0)
    return _no_empty_text(Column(np.asarray(raw.to_numpy(zero_copy_only=False)), missing))


_COLUMN_FROM: dict[str, Callable[[Any, str], Column]] = {"numpy": _numpy, "polars": _polars, "pyarrow": _arrow}
