"""Frames of any library as streams of Arrow tables, a bounded number of values at a time; and those as rows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._checks.message import fail
from .._optional import pyarrow
from ..errors import DtypeError
from .values import library

__all__ = ["VALUES", "cut", "from_pandas", "once", "rows_of", "tables", "width"]

VALUES = 1 << 19  # in the widest column, or of all classes, that are worked on at once


def once(frame: Any) -> bool:
    """Tell whether the rows can be read only once."""
    return type(frame).__name__ == "RecordBatchReader" and library(frame) == "pyarrow"


def tables(frame: Any, names: Sequence[str], rows: int = 1 << 16) -> Iterator[Any]:
    """Read some columns of a frame of one machine, from the first row.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, RecordBatch, RecordBatchReader, Dataset or relation
        Of pandas, Polars, PyArrow, DuckDB or Ibis; or anything that offers an Arrow stream.
    names : sequence of str
        The columns; no others are read where the library can help it.
    rows : int, default 65536
        About how many at a time.

    Yields
    ------
    pyarrow.Table or pyarrow.RecordBatch
        The next rows. Some may be empty.
    """
    pa = pyarrow()
    wanted = list(names)
    reader = _READERS.get((library(frame), type(frame).__name__))
    if reader is not None:
        yield from reader(frame, wanted, rows)
    elif library(frame) == "ibis":
        yield from _ibis(frame, wanted, rows)
    elif hasattr(frame, "to_batches") and library(frame) == "pyarrow":  # a Dataset of any kind
        yield from frame.to_batches(columns=wanted, batch_size=rows)
    elif hasattr(frame, "__arrow_c_stream__"):
        for batch in pa.RecordBatchReader.from_stream(frame):
            yield batch.select(wanted)
    else:
        raise fail(
            DtypeError, "frame", "must be a frame that offers its columns through Arrow", got=type(frame).__name__,
            hint="pandas, Polars, PyArrow, DuckDB, Ibis, PySpark and Dask frames do.",
        )  # fmt: skip


def _pandas(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    for start in range(0, len(frame), rows):
        yield from_pandas(frame[names].iloc[start : start + rows])


def from_pandas(frame: Any) -> Any:
    """Return a pandas frame as an Arrow table; a column of several types is refused."""
    pa = pyarrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:
        said = ", ".join(map(str, error.args)).split("\n", 1)[0]
        raise fail(DtypeError, "frame", "must have columns of one type each", got=said) from error


def _polars(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    for part in frame.select(names).iter_slices(rows):
        yield part.to_arrow()


def _lazy_polars(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    for part in frame.select(names).collect_batches(chunk_size=rows):
        yield part.to_arrow()


def _record_batches(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    for batch in frame:
        yield batch.select(names)


def _duckdb(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    chosen = frame.project(quoted)
    read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
    yield from read(rows)


def _ibis(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    chosen = frame.select(names)
    backend = chosen.get_backend()
    connection: Any = getattr(backend, "con", None)
    if library(connection) in ("duckdb", "_duckdb") and not hasattr(connection, "fetch_record_batch"):
        # Ibis 12 calls this method, which DuckDB 2 has no more: so its query is run here.
        chosen.limit(0).to_pyarrow()  # makes tables that Ibis holds in memory known to DuckDB
        yield from _duckdb(connection.sql(str(backend.compile(chosen))), names, rows)
    else:
        yield from chosen.to_pyarrow_batches(chunk_size=rows)


_READERS = {
    ("pandas", "DataFrame"): _pandas,
    ("polars", "DataFrame"): _polars,
    ("polars", "LazyFrame"): _lazy_polars,
    ("pyarrow", "Table"): lambda frame, names, rows: frame.select(names).to_batches(max_chunksize=rows),
    ("pyarrow", "RecordBatch"): lambda frame, names, rows: [frame.select(names)],
    ("pyarrow", "RecordBatchReader"): _record_batches,
    ("duckdb", "DuckDBPyRelation"): _duckdb,
    ("_duckdb", "DuckDBPyRelation"): _duckdb,
}


def width(values: Sequence[str], table: Any) -> int:
    """Return how many values a row of predictions has."""
    if len(values) > 1 or table.num_rows == 0:
        return len(values)
    first = table.column(values[0])[0].as_py()
    return len(first) if isinstance(first, list) else 1


def cut(stream: Iterable[Any], values: Sequence[str], most: int = 0) -> Iterator[Any]:
    """Put small tables together and cut large ones, so that each holds about ``most`` values; empty ones vanish."""
    pa = pyarrow()
    held: list[Any] = []
    rows = size = 0
    for piece in stream:
        if piece.num_rows == 0:
            continue
        table = pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
        size = size or max(1, (most or VALUES) // width(values, table))
        held.append(table)
        rows += table.num_rows
        if rows >= size:
            whole = pa.concat_tables(held, promote_options="permissive")
            for start in range(0, rows - size + 1, size):
                yield whole.slice(start, size)
            rest = rows % size
            held, rows = ([whole.slice(rows - rest)] if rest else []), rest
    if held:
        yield pa.concat_tables(held, promote_options="permissive")


def rows_of(stream: Iterable[Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield some columns of each table, as the reader takes them."""
    for table in stream:
        yield {name: table.column(name) for name in names}
