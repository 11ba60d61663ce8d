"""Partitions on workers of Dask and Spark: what each is asked for, what it replies, and how replies become one.

A refusal is a reply, too. `PartitionedFrame` is what both engines must do.
"""

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, final

from .._checks import Complaint, alike, fail, worded
from .._checks.class_columns import FromOne
from .._optional import pyarrow, version
from .._sums import Tally
from .._sums.splits import Plan
from .._types import BinOn
from ..errors import EmptyError, EngineError, InputError, SafecalError, ShapeError
from ..inputs import Batch, Reader, refuse_labels
from ..inputs.columns import Columns
from ..slices.two_passes import Lots, Numbers, Share, Visit
from .batches import CountGrid, add_in_pairs, count_on_grid, note_labels, tally_batches
from .expressed.language import quoted
from .partitions import VALUES, cut, from_pandas, rows_of, tables

__all__ = ["Dask", "PartitionedFrame", "Reply", "Spark", "Task", "do_task", "merge", "pack", "unpack"]

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
    """The sums of partition ``index``, or of several from it on; or why its rows are refused.

    ``others`` are the labels met beside the positive one, ``positive`` tells whether that was met, ``form`` is what the
    values are, ``labels`` whether classes may be numbered from 1, ``share`` what is known of features.
    """

    index: int
    sums: Tally | CountGrid | None = None
    failure: SafecalError | None = None
    rows: int = 0
    others: tuple[Any, ...] = ()
    form: str = ""
    positive: bool = False
    labels: FromOne = field(default_factory=FromOne)
    share: Share = field(default_factory=Share)


def do_task(task: Task, stream: Iterable[Any], index: int) -> Reply:
    """Do a task on the Arrow tables of one partition; a second run of a lost one gives the same."""
    reader, labels = Reader(task.columns), FromOne()
    rows = rows_of(cut(stream, task.columns.values), task.columns.names)
    visit = None if task.search is None else task.search.visit(index)
    batches = reader.batches(rows if visit is None else visit.keyed(rows))
    if visit is not None:
        batches = _visited(visit, batches)
    try:
        if task.quantiles:
            sums: Tally | CountGrid | None = count_on_grid(batches, task.bin_on)
        else:
            sums = tally_batches(note_labels(batches, labels), task.plan)
    except SafecalError as error:
        return Reply(index, None, _placed(error, index), reader.rows)
    return Reply(
        index, sums if reader.rows else None, None, reader.rows, tuple(reader.others), task.columns.form,
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
    whole = add_in_pairs(sorted(replies, key=lambda reply: reply.index), _merged)
    return Reply(-1) if whole is None else whole


def _merged(a: Reply, b: Reply) -> Reply:
    rows, others = a.rows + b.rows, tuple(dict.fromkeys((*a.others, *b.others)))
    if a.failure is not None or b.failure is not None:
        return Reply(a.index, None, _first_failure(a, b), rows)
    try:
        sums = _sum(a, b) if a.sums is not None and b.sums is not None else a.sums or b.sums
    except SafecalError as error:
        return Reply(a.index, None, error, rows)
    positive, form = a.positive or b.positive, b.form if a.sums is None else a.form
    return Reply(a.index, sums, None, rows, others, form, positive, a.labels + b.labels, a.share + b.share)


def _sum(a: Reply, b: Reply) -> Tally | CountGrid:
    if isinstance(a.sums, CountGrid):
        assert isinstance(b.sums, CountGrid)
        return a.sums + b.sums
    assert isinstance(a.sums, Tally)
    assert isinstance(b.sums, Tally)
    if a.sums.most_entropy != b.sums.most_entropy:
        classes = [round(math.exp(tally.most_entropy)) for tally in (a.sums, b.sums)]
        rule = f"must hold lists of one length, {classes[0]}"
        raise fail(ShapeError, a.form, rule, got=f"{classes[1]} in another partition")
    return a.sums + b.sums


def _first_failure(a: Reply, b: Reply) -> SafecalError:
    """Return the first failure; rows that break the same rule elsewhere are counted in it."""
    error = a.failure or b.failure
    assert error is not None
    first: Complaint | None = getattr(error, "complaint", None)
    if first is None or first.count is None or not isinstance(error, InputError):
        return error
    broken = sum(
        c.count[0]
        for c in (getattr(r.failure, "complaint", None) for r in (a, b))
        if c is not None and c.count is not None and alike(c, first)
    )
    return worded(error, replace(first, count=(broken, a.rows + b.rows)))


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


class PartitionedFrame(ABC):
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

    def tally(
        self, columns: Columns, plan: Plan | None = None, search: Lots | Numbers | None = None
    ) -> tuple[Tally, Share]:
        """Sum all rows, and return what the search for slices asked for, if there is one."""
        reply = self._answer(Task(columns, plan or Plan(), search=search))
        assert isinstance(reply.sums, Tally)
        return reply.sums, reply.share

    def count_on_grid(self, columns: Columns, bin_on: BinOn | None) -> CountGrid:
        """Count all rows on the grid that quantiles are read off."""
        reply = self._answer(Task(columns, quantiles=True, bin_on=bin_on))
        assert isinstance(reply.sums, CountGrid)
        return reply.sums

    def _answer(self, task: Task) -> Reply:
        """Do a task, and raise what the workers refuse."""
        reply = self.run(task)
        if reply.failure is not None:
            raise reply.failure
        if reply.sums is None:
            raise fail(EmptyError, "frame", "must have at least one row", got="none")
        refuse_labels(task.columns, reply.positive, reply.others)
        reply.labels.refuse()
        return reply


@final
class Dask(PartitionedFrame):
    """A Dask DataFrame: every partition is summed where it lies, and workers put replies together eight at a time."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def size(self, columns: Columns) -> tuple[int, int]:
        from dask import delayed

        list_column = columns.values[0] if len(columns.values) == 1 else None
        sizes = _compute([delayed(_measure)(part, list_column) for part in self._partitions(columns.values[:1])])
        width = len(columns.values) if list_column is None else max((w for _, w in sizes), default=1)
        return sum(n for n, _ in sizes), width

    def table(self, names: Sequence[str]) -> Any:
        from dask import delayed

        arrow_tables = _compute([delayed(from_pandas)(part) for part in self._partitions(names)])
        return pyarrow().concat_tables(arrow_tables, promote_options="permissive")

    def run(self, task: Task) -> Reply:
        from dask import delayed

        sent = delayed(task, traverse=False)  # it may know every cluster: so it is sent once
        replies = [delayed(_reply)(part, sent, k) for k, part in enumerate(self._partitions(task.columns.names))]
        while len(replies) > 1:
            replies = [delayed(_merged_reply)(replies[k : k + FAN_IN]) for k in range(0, len(replies), FAN_IN)]
        return merge(unpack(data) for data in _compute(replies))

    def _partitions(self, names: Sequence[str]) -> list[Any]:
        return list(self.frame[list(names)].to_delayed())


def _measure(part: Any, name: str | None) -> tuple[int, int]:
    first: Any = part[name].iloc[0] if name is not None and len(part) else None
    return len(part), len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 1


def _reply(part: Any, task: Task, index: int) -> bytes:
    return pack(do_task(task, tables(part, task.columns.names, VALUES), index))


def _merged_reply(replies: list[bytes]) -> bytes:
    return pack(merge(map(unpack, replies)))


def _compute(tasks: list[Any]) -> list[Any]:
    """Run tasks on whichever scheduler is current."""
    import dask

    try:
        return list(dask.compute(*tasks))
    except _dask_failures() as error:
        raise EngineError(
            f"Dask did not finish: {_dask_reason(error)}.\n\n"
            "Hint: see the log of the workers; more memory for each, or smaller partitions, often help."
        ) from error


def _dask_failures() -> tuple[type[BaseException], ...]:
    try:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
    except ImportError:
        return CancelledError, OSError
    return CancelledError, OSError, KilledWorker, FutureCancelledError


def _dask_reason(error: BaseException) -> str:
    message, name = str(error).strip().split("\n", 1)[0].rstrip("."), type(error).__name__
    return f"{name}: {message}" if message else name


_SCHEMA = "part int, reply binary"


@final
class Spark(PartitionedFrame):
    """A PySpark DataFrame: Python workers sum the partitions that they read through Arrow, and put replies together."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self._few_partitions = False  # as far as is known: then replies come here as they are

    def size(self, columns: Columns) -> tuple[int, int]:
        from pyspark.sql import functions as F

        lists = len(columns.values) == 1 and dict(self.frame.dtypes)[columns.values[0]].startswith("array")
        width = F.size(F.col(quoted(columns.values[0]))) if lists else F.lit(len(columns.values))
        with _clear_errors():
            rows = self.frame.select(F.spark_partition_id().alias("part"), width.alias("width"))
            row = rows.agg(F.count("*"), F.max("part"), F.max("width")).collect()[0]
        self._few_partitions = int(row[1] or 0) < FAN_IN
        return int(row[0]), max(1, int(row[2] or 1))

    def table(self, names: Sequence[str]) -> Any:
        with _clear_errors():
            return self._chosen(names).toArrow().rename_columns(list(names))

    def run(self, task: Task) -> Reply:
        from pyspark.sql import functions as F

        with _clear_errors():
            replies = self._chosen(task.columns.names).mapInArrow(_summing(task), _SCHEMA)
            if not self._few_partitions:
                block = F.floor(F.col("part") / FAN_IN)
                replies = replies.groupBy(block).applyInArrow(_merged_table, _SCHEMA)
            rows = replies.collect() if self._few_partitions else replies.toLocalIterator()
            return merge(unpack(bytes(row["reply"])) for row in rows)

    def _chosen(self, names: Sequence[str]) -> Any:
        """Select columns under plain names: Spark stumbles over dots and marks in others."""
        from pyspark.sql import functions as F

        return self.frame.select(*(F.col(quoted(name)).alias(f"c{k}") for k, name in enumerate(names)))


def _summing(task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that replies for one partition."""

    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        names = list(task.columns.names)
        yield _row(index, do_task(task, (batch.rename_columns(names) for batch in batches), index))

    return partition


def _merged_table(table: Any) -> Any:
    """Make one reply of several."""
    reply = merge(unpack(data) for data in table.column("reply").to_pylist())
    return pyarrow().Table.from_batches([_row(reply.index, reply)])


def _row(index: int, reply: Reply) -> Any:
    pa = pyarrow()
    return pa.RecordBatch.from_arrays([pa.array([index], pa.int32()), pa.array([pack(reply)], pa.binary())],
                                      names=["part", "reply"])  # fmt: skip


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn an error of Spark into a few words."""
    try:
        yield
    except BaseException as error:
        if not any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__):
            raise
        reason = _spark_reason(str(error))
        hint = "see the log of the executors; more memory for Python, or smaller partitions, often help."
        if "AnalysisException" in type(error).__name__:
            hint = "are the columns spelled as in the frame?"
        elif "ModuleNotFoundError" in str(error):
            hint = "install safecal and PyArrow on every worker, and point PYSPARK_PYTHON at that Python."
        raise EngineError(f"Spark did not finish: {reason}.\n\nHint: {hint}") from error


def _spark_reason(text: str) -> str:
    """Return the line that says why, without the stack."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    phrases = ("Python worker exited unexpectedly", "ModuleNotFoundError", "SparkContext was shut down", "OutOfMemory")
    for phrase, line in product(phrases, lines):
        if phrase in line:
            return line[line.index(phrase) :].split(". ")[0].rstrip(".")
    return (lines[-1] if "Traceback" in text else lines[0] if lines else "it gave no reason").rstrip(".")
