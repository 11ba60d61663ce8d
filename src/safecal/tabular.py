"""Plain columns as a frame of pandas or Polars, or as a stream that every library of Arrow reads."""

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ._checks.columns import choice
from .errors import MissingExtraError

__all__ = ["LIBRARIES", "arrow_stream", "frame_of", "key_columns"]

LIBRARIES = ("pandas", "polars")

Columns = Mapping[str, Sequence[Any]]


def frame_of(columns: Columns, library: str | None = None) -> Any:
    """Return columns as a DataFrame of the library that is named; by default pandas where it is installed, else Polars.

    Examples
    --------
    >>> frame_of({"n": [1, 2]}, "pandas").shape
    (2, 1)
    """
    asked = LIBRARIES if library is None else (choice(library, "library", LIBRARIES),)
    for name in asked:
        try:
            found = import_module(name)
        except ImportError:
            continue
        return found.DataFrame({name: list(values) for name, values in columns.items()})
    what = " or ".join(name.capitalize() if name == "polars" else name for name in asked)
    raise MissingExtraError(f"`to_frame` needs {what}, which is not installed.\n\nHint: pip install {asked[-1]}")


def arrow_stream(columns: Columns, requested_schema: object = None) -> object:
    """Return columns as a capsule of the Arrow C stream interface, made by pyarrow."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError(
            'the Arrow stream of a table needs pyarrow, which is not installed.\n\nHint: pip install "safecal[frames]"'
        ) from error
    table = pa.table({name: list(values) for name, values in columns.items()})
    return table.__arrow_c_stream__(requested_schema)


def key_columns(name: str, keys: Sequence[Hashable], labels: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return keys as columns: one for each part of a tuple; values of several types, which no column holds, as text.

    Examples
    --------
    >>> key_columns("site, year", [("north", 2024), ("south", 2025)], ["north / 2024", "south / 2025"])
    {'site': ['north', 'south'], 'year': [2024, 2025]}
    """
    names = name.split(", ")
    parts = [key if isinstance(key, tuple) else (key,) for key in keys]
    if len(names) > 1 and all(len(part) == len(names) for part in parts):
        return {names[j]: _of_one_type([part[j] for part in parts]) for j in range(len(names))}
    return {name: labels if any(isinstance(key, tuple) for key in keys) else _of_one_type(list(keys))}


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 or kinds == {int, float} else [None if v is None else str(v) for v in values]
