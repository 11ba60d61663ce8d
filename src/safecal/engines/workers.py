"""Partitions on workers, as Arrow tables: what each is asked for, what it replies, and how replies become one.

A refusal is a reply, too. `Cluster` is what the engine of a cluster must do.
"""

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from .._checks.labels import FromOne
from .._checks.message import Complaint, alike, fail, worded
from .._optional import pyarrow, version
from .._sums.splits import Plan
from .._sums.tally import Tally
from .._types import BinOn
from ..errors import DtypeError, EmptyError, EngineError, InputError, SafecalError, ShapeError
from ..inputs.columns import Columns
from ..inputs.reader import Batch, Reader, refuse_labels
from ..inputs.values import library
from ..slices.scattered import Lots, Numbers, Share, Visit
from .batches import Grid, count_on_grid, in_pairs, looked_at, tally_batches

__all__ = [
    "FAN_IN",
    "VALUES",
    "Cluster",
    "Reply",
    "Task",
    "cut",
    "from_pandas",
    "merge",
    "once",
    "pack",
    "rows_of",
    "tables",
    "unpack",
    "width",
    "work",
]

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


FAN_IN = 8  # replies that are put together at a time


@final
@dataclass(frozen=True, slots=True)
class Task:
    """What to do with each partition: sum its rows, or count them on the grid that quantiles are read off.

    Where features are searched, rows are drawn by ``search``, or numbered by it.
    """

    columns: Columns
    plan: Plan = field(default_factory=Plan)
    quantiles: bool = False
    bin_on: BinOn | None = None
    search: Lots | Numbers | None = None


@final
@dataclass(slots=True)
class Reply:
    """What was found in partition ``index``, or in several from it on; or why its rows are refused.

    ``others`` are the labels met beside the positive one, ``positive`` tells whether that was met, ``form`` is what the
    values are, ``labels`` whether classes may be numbered from 1, ``share`` what is known of features.
    """

    index: int
    found: Tally | Grid | None = None
    failure: SafecalError | None = None
    rows: int = 0
    others: tuple[Any, ...] = ()
    form: str = ""
    positive: bool = False
    labels: FromOne = field(default_factory=FromOne)
    share: Share = field(default_factory=Share)


def work(task: Task, stream: Iterable[Any], index: int) -> Reply:
    """Do a task on the Arrow tables of one partition; a second run of a lost one gives the same."""
    reader, labels = Reader(task.columns), FromOne()
    rows = rows_of(cut(stream, task.columns.values), task.columns.names)
    visit = None if task.search is None else task.search.visit(index)
    batches = reader.batches(rows if visit is None else visit.keyed(rows))
    if visit is not None:
        batches = _visited(visit, batches)
    try:
        if task.quantiles:
            found: Tally | Grid | None = count_on_grid(batches, task.bin_on)
        else:
            found = tally_batches(looked_at(batches, labels), task.plan)
    except SafecalError as error:
        return Reply(index, None, _placed(error, index), reader.rows)
    return Reply(
        index, found if reader.rows else None, None, reader.rows, tuple(reader.others), task.columns.form,
        reader.positive, labels, Share() if visit is None else visit.share,
    )  # fmt: skip


def _visited(visit: Visit, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Pass batches on; those that are numbered are grouped by the slices that their rows lie in."""
    for batch in batches:
        assert batch.features is not None
        numbers = visit.look(batch.predictions, batch.sample_weight, batch.cluster, batch.features)
        yield replace(batch, by=batch.by if numbers is None else {"slices": numbers}, features=None)


def _placed(error: SafecalError, index: int) -> SafecalError:
    """Name the partition beside the row."""
    complaint: Complaint | None = getattr(error, "complaint", None)
    if complaint is None or not isinstance(error, InputError):
        return error
    place = f"partition {index}" if complaint.place is None else f"{complaint.place} of partition {index}"
    return worded(error, replace(complaint, place=place))


def merge(replies: Iterable[Reply]) -> Reply:
    """Make one reply of several, in the order of their partitions."""
    whole = in_pairs(sorted(replies, key=lambda reply: reply.index), _both)
    return Reply(-1) if whole is None else whole


def _both(a: Reply, b: Reply) -> Reply:
    rows, others = a.rows + b.rows, tuple(dict.fromkeys((*a.others, *b.others)))
    if a.failure is not None or b.failure is not None:
        return Reply(a.index, None, _one_failure(a, b), rows)
    try:
        found = _sum(a, b) if a.found is not None and b.found is not None else a.found or b.found
    except SafecalError as error:
        return Reply(a.index, None, error, rows)
    positive, form = a.positive or b.positive, b.form if a.found is None else a.form
    return Reply(a.index, found, None, rows, others, form, positive, a.labels + b.labels, a.share + b.share)


def _sum(a: Reply, b: Reply) -> Tally | Grid:
    if isinstance(a.found, Grid):
        assert isinstance(b.found, Grid)
        return a.found + b.found
    assert isinstance(a.found, Tally)
    assert isinstance(b.found, Tally)
    if a.found.most_entropy != b.found.most_entropy:
        classes = [round(math.exp(tally.most_entropy)) for tally in (a.found, b.found)]
        rule = f"must hold lists of one length, {classes[0]}"
        raise fail(ShapeError, a.form, rule, got=f"{classes[1]} in another partition")
    return a.found + b.found


def _one_failure(a: Reply, b: Reply) -> SafecalError:
    """Return the first failure; rows that break the same rule elsewhere are counted in it."""
    error = a.failure or b.failure
    assert error is not None
    one: Complaint | None = getattr(error, "complaint", None)
    if one is None or one.count is None or not isinstance(error, InputError):
        return error
    bad = sum(
        c.count[0]
        for c in (getattr(r.failure, "complaint", None) for r in (a, b))
        if c is not None and c.count is not None and alike(c, one)
    )
    return worded(error, replace(one, count=(bad, a.rows + b.rows)))


def pack(reply: Reply) -> bytes:
    """Write a reply as bytes, with the release that wrote it."""
    return pickle.dumps((version(), pickle.dumps(reply, protocol=5)))


def unpack(data: bytes) -> Reply:
    """Read what `pack` wrote, in the same release."""
    release, content = pickle.loads(data)
    if release != version():
        raise EngineError(
            f"the workers have safecal {release}, and this process has {version()}.\n\n"
            "Hint: install the same release on all of them."
        )
    reply = pickle.loads(content)
    assert isinstance(reply, Reply)
    return reply


class Cluster(ABC):
    """A frame whose partitions lie on workers."""

    @abstractmethod
    def size(self, columns: Columns) -> tuple[int, int]:
        """Return how many rows there are, and how many values a prediction has."""

    @abstractmethod
    def table(self, names: Sequence[str]) -> Any:
        """Return all rows of some columns as one Arrow table."""

    @abstractmethod
    def run(self, task: Task) -> Reply:
        """Do a task on every partition, and put the replies together in the order of the partitions."""

    def answer(self, task: Task) -> Reply:
        """Do a task, and raise what the workers refuse."""
        reply = self.run(task)
        if reply.failure is not None:
            raise reply.failure
        if reply.found is None:
            raise fail(EmptyError, "frame", "must have at least one row", got="none")
        refuse_labels(task.columns, reply.positive, reply.others)
        reply.labels.refuse()
        return reply
