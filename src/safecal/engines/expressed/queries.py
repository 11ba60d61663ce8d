"""Queries that return sums, and nothing else."""

from typing import Any

import numpy as np

from ..._checks.message import fail
from ..._sums import tally
from ..._types import AnyArray
from ...errors import ShapeError
from ..libraries import narwhals

__all__ = ["arrays", "collected", "limited", "sums_by"]


def sums_by(rows: Any, keys: list[str], names: list[str]) -> Any:
    """Return the lazy query that counts rows, as ``n``, and sums columns by key."""
    nw = narwhals()
    chosen = rows.select(*keys, *names)
    return chosen.group_by(*keys).agg(nw.len().alias("n"), *(nw.col(name).sum() for name in names))


def limited(query: Any, name: str) -> Any:
    """Run a query by key, if the keys are not too many, and return an Arrow table."""
    table = query.head(tally.MAX_KEYS + 1).collect("pyarrow").to_native()
    if table.num_rows > tally.MAX_KEYS:
        raise fail(
            ShapeError, name, f"must have at most {tally.MAX_KEYS} different values", got="more",
            hint="sums are kept for each of them; is it the right column?",
        )  # fmt: skip
    return table


def collected(query: Any) -> dict[str, AnyArray]:
    """Run a query, and return its columns of numbers."""
    table = query.collect("pyarrow").to_native()
    return arrays(table, table.column_names)


def arrays(table: Any, names: list[str]) -> dict[str, AnyArray]:
    """Return columns of numbers of an Arrow table."""
    return {name: np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in names}
