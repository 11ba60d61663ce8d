"""Frames of any library and size: Arrow tables of one machine, or partitions of Dask and Spark, through one kernel."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from .._checks import fail
from .._optional import pyarrow
from .._sums.splits import Bins, Plan
from .._types import BinOn, Strategy
from ..errors import DtypeError, EmptyError, InputError, OptionError
from ..families import Predictions
from ..families.bernoulli import bernoulli
from ..families.categorical import categorical
from ..families.gaussian import gaussian
from ..inputs import Batch, Reader
from ..inputs.columns import Columns
from ..inputs.values import from_text, library
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import LimitOptions, Limits
from ..slices.two_passes import ScatteredSlices
from . import batches
from .batches import evaluate_batches, plain_features, refuse_unbounded, search_limit

if TYPE_CHECKING:
    from .workers import PartitionedFrame

__all__ = ["VALUES", "cut", "evaluate_partitions", "fetch", "from_pandas", "rows_of", "tables", "width"]

VALUES = 1 << 19  # in the widest column, or of all classes, that are worked on at once


def tables(frame: Any, names: Sequence[str], rows: int = 1 << 16) -> Iterator[Any]:
    """Read some columns of a frame of one machine, from the first row: Arrow tables or batches, of about ``rows`` each.

    Frames are those of pandas, Polars, PyArrow, DuckDB and Ibis, and whatever offers an Arrow stream. Other columns are
    not read where the library can help it. Some tables may be empty.
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


def from_pandas(frame: Any) -> Any:
    """Return a pandas frame as an Arrow table; a column of several types is refused."""
    pa = pyarrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException as error:
        reason = ", ".join(map(str, error.args)).split("\n", 1)[0]
        raise fail(DtypeError, "frame", "must have columns of one type each", got=reason) from error


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


def _pandas(frame: Any, names: list[str], rows: int) -> Iterator[Any]:
    return (from_pandas(frame[names].iloc[start : start + rows]) for start in range(0, len(frame), rows))


_READERS: dict[tuple[str, str], Callable[[Any, list[str], int], Iterable[Any]]] = {
    ("pandas", "DataFrame"): _pandas,
    ("polars", "DataFrame"): lambda f, names, rows: (x.to_arrow() for x in f.select(names).iter_slices(rows)),
    ("polars", "LazyFrame"): lambda f, names, rows: (
        part.to_arrow() for part in f.select(names).collect_batches(chunk_size=rows)
    ),
    ("pyarrow", "Table"): lambda f, names, rows: f.select(names).to_batches(max_chunksize=rows),
    ("pyarrow", "RecordBatch"): lambda f, names, rows: [f.select(names)],
    ("pyarrow", "RecordBatchReader"): lambda f, names, rows: (batch.select(names) for batch in f),
    ("duckdb", "DuckDBPyRelation"): _duckdb,
    ("_duckdb", "DuckDBPyRelation"): _duckdb,
}


def width(values: Sequence[str], table: Any) -> int:
    """Return how many values a row of predictions has."""
    if len(values) > 1 or table.num_rows == 0:
        return len(values)
    first = table.column(values[0])[0].as_py()
    return len(first) if isinstance(first, list) else 1


def cut(stream: Iterable[Any], values: Sequence[str], at_once: int = 0) -> Iterator[Any]:
    """Put small tables together and cut large ones, so that each holds about ``at_once`` values; empty ones vanish."""
    pa = pyarrow()
    held: list[Any] = []
    rows = size = 0
    for piece in stream:
        if piece.num_rows == 0:
            continue
        table = pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
        size = size or max(1, (at_once or VALUES) // width(values, table))
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


def evaluate_partitions(
    frame: Any,
    columns: Columns,
    *,
    bins: int | Bins | Literal["auto"] | None = "auto",
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    max_rows: int = 1_000_000,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate the rows of a frame, a batch or a partition at a time; the options are those of `evaluate_frame`.

    Frames of one machine are read as a stream. Partitions of Spark and Dask are summed where they lie, and only their
    sums come back. The result is that of `evaluate`, however many rows there are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.engines.partitions import evaluate_partitions
    >>> table = pa.table({"kind": [0, 2, 1], "p": [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]]})
    >>> round(evaluate_partitions(table, Columns("kind", ("p",), "y_prob")).ecd, 4)
    -0.3445
    """
    checked = Limits(**limits)
    bins = Plan.wanted(bins, columns.form != "gaussian", bin_on, strategy)
    options: dict[str, Any] = {"bins": bins, "bin_on": bin_on, "strategy": strategy, **limits}
    partitioned = _partitioned(frame)
    if partitioned is None:
        once = type(frame).__name__ == "RecordBatchReader" and library(frame) == "pyarrow"
        with ExitStack() as streams:
            return evaluate_batches(
                lambda: streams.enter_context(closing(_stream(frame, columns))), **options, max_rows=max_rows, once=once
            )
    rows, width = partitioned.size(columns)
    if rows == 0:
        raise _no_rows()
    if rows <= max_rows and rows * width <= batches.MAX_VALUES:
        whole = fetch(frame, columns)
        return evaluate_predictions(
            whole.predictions, **options, by=whole.by, cluster=whole.cluster, sample_weight=whole.sample_weight,
            features=plain_features(whole),
        )  # fmt: skip
    if columns.outcomes:
        hint = f"raise `max_rows=` to {rows} or more, or evaluate one label after another."
        rule = "is for rows that one machine can hold: partitions do not number their rows"
        raise fail(OptionError, "by_label", rule, got=f"{rows} rows", hint=hint)
    plan = _plan(partitioned, columns, _example(columns, width), bins, bin_on, strategy)
    if not columns.features:
        return Evaluation.of(partitioned.tally(columns, plan)[0], checked)
    search = ScatteredSlices(checked.level, rows, search_limit(width, max_rows), from_text)
    tally, share = partitioned.tally(columns, plan, search.lots)
    by_slice, share = partitioned.tally(columns, search=search.search(share, tally.clusters))
    return Evaluation.of(tally, checked, slices=search.slices(share, by_slice))


def fetch(frame: Any, columns: Columns) -> Batch:
    """Bring all rows of the columns that are needed into memory, in the order of the frame, and check them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.engines.partitions import fetch
    >>> fetch(pa.table({"y": [1, 0], "p": [0.9, 0.4]}), Columns("y", ("p",), "y_prob")).predictions.n
    2
    """
    partitioned = _partitioned(frame)
    if partitioned is not None:
        whole = partitioned.table(columns.names)
    else:
        parts = list(cut(tables(frame, columns.names), columns.values))
        whole = pyarrow().concat_tables(parts, promote_options="permissive") if parts else None
    if whole is None or whole.num_rows == 0:
        raise _no_rows()
    batch = Reader(columns).batch(next(rows_of([whole], columns.names)), whole=True)
    assert batch is not None
    return batch


def _partitioned(frame: Any) -> "PartitionedFrame | None":
    """Return a frame of Spark or Dask with all that workers can do for it; None for a frame of one machine."""
    engine = {"pyspark": "Spark", "dask": "Dask", "dask_expr": "Dask"}.get(library(frame))
    if engine is None:
        return None
    from . import workers  # which few frames need

    return workers.Spark(frame) if engine == "Spark" else workers.Dask(frame)


def _stream(frame: Any, columns: Columns) -> Generator[Batch, None, None]:
    """Yield checked batches of a frame of one machine."""
    reader = Reader(columns)
    yield from reader.batches(rows_of(cut(tables(frame, columns.names), columns.values), columns.names))
    if not reader.rows:
        raise _no_rows()
    reader.finish()


def _no_rows() -> InputError:
    return fail(EmptyError, "frame", "must have at least one row", got="none")


def _example(columns: Columns, classes: int) -> Predictions:
    """Return one row of the family and the number of classes, for what does not depend on values."""
    if columns.form == "gaussian":
        return gaussian(np.zeros((1, classes)), np.zeros((1, classes)), std=1.0)
    return bernoulli([0], [0.5]) if classes == 1 else categorical([0], [[1.0 / classes] * classes])


def _plan(
    partitioned: "PartitionedFrame",
    columns: Columns,
    example: Predictions,
    bins: int | Bins | Literal["auto"] | None,
    bin_on: BinOn | None,
    strategy: Strategy,
) -> Plan:
    """Decide on the bins; those of quantiles take a pass of their own."""
    if bins is None or isinstance(bins, Bins) or strategy != "quantile":
        return Plan.of(example, bins, bin_on, strategy)
    refuse_unbounded(example)
    Plan.of(example, bins, bin_on)  # refuses what no partition need be asked about
    return Plan(*partitioned.count_on_grid(columns, bin_on).bins(int(bins)))
