"""A column of a file as an array, with its missing values; text that is no number is refused with its row."""

from typing import Any, NamedTuple

import numpy as np

from .._checks.arrays import is_missing
from .._checks.message import fail, show
from .._types import AnyArray, BoolArray
from ..errors import DtypeError, SafecalError

_WHOLE = 2.0**53  # from here on a float64 is not every whole number

__all__ = ["Column", "clusters", "keys", "labels", "numbers", "row_place"]


def row_place(row: int) -> str:
    """Say where a row stands in its file."""
    return f"row {row}, counting from 0"


class Column(NamedTuple):
    """Values, and which of them are missing."""

    values: AnyArray
    missing: BoolArray


def _is_series(raw: Any) -> bool:
    return type(raw).__module__.startswith("polars")


def _array(raw: AnyArray) -> Column:
    if raw.dtype.kind != "f":
        return Column(raw, np.zeros(len(raw), dtype=bool))
    return Column(raw, np.asarray(np.isnan(raw).reshape(len(raw), -1).any(axis=1)))


def numbers(raw: Any, name: str, offset: int) -> Column:
    """Return numbers; one column, or a matrix where each row of the file holds a list."""
    if not _is_series(raw):
        if raw.dtype.kind not in "iuf":
            raise _not_numbers(name, str(raw.dtype))
        return _array(raw)
    kind = str(raw.dtype)
    missing = raw.is_null()
    if kind.startswith(("List", "Array")):
        return _matrix(raw, name, missing.to_numpy(), offset)
    if kind == "String":
        found = raw.str.strip_chars().cast(_float64(), strict=False)
        bad = found.is_null() & ~missing
        if bad.any():
            first = int(bad.arg_max())
            raise fail(
                DtypeError, name, "must be a number", got=show(raw[first]), place=row_place(first + offset),
                count=(int(bad.sum()), len(raw)),
                hint="is it the right column? For missing values leave the field empty.",
            )  # fmt: skip
        raw = found
    elif kind.startswith(("Decimal", "Int128", "UInt128")):
        raw = raw.cast(_float64())
    elif not raw.dtype.is_numeric():
        raise _not_numbers(name, kind)
    if missing.any():
        raw = raw.cast(_float64()).fill_null(float("nan"))
    values = raw.to_numpy()
    return Column(values, np.isnan(values) if values.dtype.kind == "f" else missing.to_numpy())


def _float64() -> Any:
    import polars as pl

    return pl.Float64


def _not_numbers(name: str, kind: str) -> SafecalError:
    return fail(DtypeError, name, "must be a number", got=f"a column of type {kind}", hint="is it the right column?")


def _matrix(raw: Any, name: str, missing: BoolArray, offset: int) -> Column:
    """Return a column of lists as a matrix; every list must be as long as the first."""
    lists = raw.dtype.is_nested() and str(raw.dtype).startswith("List")
    if missing.any():
        width = 1 if missing.all() else len(raw[int((~missing).argmax())])
        raw = raw.fill_null([float("nan")] * width)
    if lists:
        lengths = raw.list.len().to_numpy()
        if (lengths != lengths[0]).any():
            at = int((lengths != lengths[0]).argmax())
            raise fail(
                DtypeError, name, f"must hold lists of one length, {lengths[0]}", got=f"{lengths[at]}",
                place=row_place(at + offset),
            )  # fmt: skip
    flat = raw.explode()
    if not flat.dtype.is_numeric():
        raise _not_numbers(name, str(raw.dtype))
    values = flat.to_numpy().reshape(len(raw), -1)
    holes = np.isnan(values).any(axis=1) if values.dtype.kind == "f" else np.zeros(len(raw), dtype=bool)
    return Column(values, missing | holes)


def labels(raw: Any) -> Column:
    """Return outcomes: numbers where every value is one, else text."""
    if not _is_series(raw):
        return _array(raw)
    missing = raw.is_null()
    kind = str(raw.dtype)
    if kind.startswith(("Categorical", "Enum")):
        raw, kind = raw.cast(_string()), "String"
    if kind == "String":
        text = raw.str.strip_chars()
        found = text.cast(_float64(), strict=False)
        if not (found.is_null() & ~missing).any():
            if bool((found.abs() >= _WHOLE).any()):
                return Column(_exact(text), missing.to_numpy())
            raw, kind = found, "Float64"
    if kind == "String":
        return Column(raw.fill_null("").to_numpy().astype(str), missing.to_numpy())
    if kind == "Boolean":
        return Column(raw.fill_null(False).to_numpy(), missing.to_numpy())
    if not raw.dtype.is_numeric():
        return Column(raw.cast(_string()).fill_null("").to_numpy().astype(str), missing.to_numpy())
    if missing.any() and raw.dtype.is_integer():
        return Column(_plain(raw.fill_null(0)), missing.to_numpy())
    if missing.any():
        raw = raw.cast(_float64()).fill_null(float("nan"))
    values = _plain(raw)
    return Column(values, np.isnan(values) if values.dtype.kind == "f" else missing.to_numpy())


def _plain(raw: Any) -> AnyArray:
    """Return a column without missing values; NumPy has no whole numbers of 128 bits, which JSON Lines may hold."""
    wide = str(raw.dtype) in ("Int128", "UInt128")
    return np.array(raw.to_list(), dtype=object) if wide else np.asarray(raw.to_numpy())


def _exact(text: Any) -> AnyArray:
    """Return numbers as objects, whole ones as they are written: floats of this size do not tell neighbours apart."""
    values = [0 if t is None else int(t) if _is_whole(t) else float(t) for t in text.to_list()]
    return np.array(values, dtype=object)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _string() -> Any:
    import polars as pl

    return pl.String


def keys(raw: Any) -> AnyArray:
    """Return keys of groups or clusters; a missing one is a key of its own."""
    if not _is_series(raw):
        return np.asarray(raw)
    kind = str(raw.dtype)
    if not raw.dtype.is_numeric() and kind not in ("String", "Boolean"):
        raw = raw.cast(_string())
    if kind == "Boolean" or raw.null_count():
        return np.array(raw.to_list(), dtype=object)
    if str(raw.dtype) in ("Int128", "UInt128"):
        return _plain(raw)
    values: AnyArray = raw.to_numpy()
    return values.astype(str) if values.dtype.kind == "O" else values


def clusters(raw: Any) -> Column:
    """Return the clusters, and which rows have none."""
    values = keys(raw)
    if values.dtype.kind == "O":
        return Column(values, np.fromiter(map(is_missing, values), dtype=bool, count=len(values)))
    return _array(values)
