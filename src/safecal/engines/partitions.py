"""Frames of any library and size: batches of one machine, or partitions of Dask and Spark, through the same kernel."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, closing
from typing import Any, Literal, Unpack, final

import numpy as np

from .._checks.message import fail
from .._optional import pyarrow
from .._sums.bins import Bins
from .._sums.splits import Plan
from .._sums.tally import Tally
from .._types import BinOn, Strategy
from ..errors import EmptyError, EngineError, InputError, OptionError
from ..families.bernoulli import bernoulli
from ..families.categorical import categorical
from ..families.gaussian import gaussian
from ..families.predictions import Predictions
from ..inputs.columns import Columns
from ..inputs.reader import Batch, Reader
from ..inputs.values import from_text, library
from ..judge.evaluation import Evaluation
from ..judge.front_door import evaluate_predictions
from ..options import LimitOptions, Limits
from ..slices.scattered import ScatteredSlices
from . import batches
from .batches import Grid, drawn_at_most, evaluate_batches, plain_features, refuse_unbounded
from .workers import (
    FAN_IN,
    VALUES,
    Cluster,
    Reply,
    Task,
    cut,
    from_pandas,
    merge,
    once,
    pack,
    rows_of,
    tables,
    unpack,
    work,
)

__all__ = ["Dask", "Spark", "evaluate_partitions", "fetch"]


@final
class Dask(Cluster):
    """A Dask DataFrame: every partition is summed where it lies, and workers put replies together eight at a time."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def size(self, columns: Columns) -> tuple[int, int]:
        from dask import delayed

        one = columns.values[0] if len(columns.values) == 1 else None
        found = _computed([delayed(_measured)(part, one) for part in self._partitions(columns.values[:1])])
        width = len(columns.values) if one is None else max((w for _, w in found), default=1)
        return sum(n for n, _ in found), width

    def table(self, names: Sequence[str]) -> Any:
        from dask import delayed

        found = _computed([delayed(from_pandas)(part) for part in self._partitions(names)])
        return pyarrow().concat_tables(found, promote_options="permissive")

    def run(self, task: Task) -> Reply:
        from dask import delayed

        one = delayed(task, traverse=False)  # it may know every cluster: so it is sent once
        replies = [delayed(_reply)(part, one, k) for k, part in enumerate(self._partitions(task.columns.names))]
        while len(replies) > 1:
            replies = [delayed(_together)(replies[k : k + FAN_IN]) for k in range(0, len(replies), FAN_IN)]
        return merge(unpack(data) for data in _computed(replies))

    def _partitions(self, names: Sequence[str]) -> list[Any]:
        return list(self.frame[list(names)].to_delayed())


def _measured(part: Any, name: str | None) -> tuple[int, int]:
    first: Any = part[name].iloc[0] if name is not None and len(part) else None
    return len(part), len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 1


def _reply(part: Any, task: Task, index: int) -> bytes:
    return pack(work(task, tables(part, task.columns.names, VALUES), index))


def _together(replies: list[bytes]) -> bytes:
    return pack(merge(map(unpack, replies)))


def _computed(tasks: list[Any]) -> list[Any]:
    """Run tasks on whichever scheduler is current."""
    import dask

    try:
        return list(dask.compute(*tasks))
    except _failures() as error:
        raise EngineError(
            f"Dask did not finish: {_dask_reason(error)}.\n\n"
            "Hint: see the log of the workers; more memory for each, or smaller partitions, often help."
        ) from error


def _failures() -> tuple[type[BaseException], ...]:
    known: list[type[BaseException]] = [CancelledError, OSError]
    try:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
    except ImportError:
        return tuple(known)
    return (*known, KilledWorker, FutureCancelledError)


def _dask_reason(error: BaseException) -> str:
    said = str(error).strip().split("\n", 1)[0].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


_SCHEMA = "part int, reply binary"


@final
class Spark(Cluster):
    """A PySpark DataFrame: Python workers sum the partitions that they read through Arrow, and put replies together."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self._few = False  # partitions, as far as is known: then replies come here as they are

    def size(self, columns: Columns) -> tuple[int, int]:
        from pyspark.sql import functions as F

        lists = len(columns.values) == 1 and dict(self.frame.dtypes)[columns.values[0]].startswith("array")
        width = F.size(F.col(_quoted(columns.values[0]))) if lists else F.lit(len(columns.values))
        with _Clear():
            rows = self.frame.select(F.spark_partition_id().alias("part"), width.alias("width"))
            row = rows.agg(F.count("*"), F.max("part"), F.max("width")).collect()[0]
        self._few = int(row[1] or 0) < FAN_IN
        return int(row[0]), max(1, int(row[2] or 1))

    def table(self, names: Sequence[str]) -> Any:
        with _Clear():
            return self._chosen(names).toArrow().rename_columns(list(names))

    def run(self, task: Task) -> Reply:
        from pyspark.sql import functions as F

        with _Clear():
            replies = self._chosen(task.columns.names).mapInArrow(_summing(task), _SCHEMA)
            if not self._few:
                block = F.floor(F.col("part") / FAN_IN)
                replies = replies.groupBy(block).applyInArrow(_merging(), _SCHEMA)
            rows = replies.collect() if self._few else replies.toLocalIterator()
            return merge(unpack(bytes(row["reply"])) for row in rows)

    def _chosen(self, names: Sequence[str]) -> Any:
        """Select columns under plain names: Spark stumbles over dots and marks in others."""
        from pyspark.sql import functions as F

        return self.frame.select(*(F.col(_quoted(name)).alias(f"c{k}") for k, name in enumerate(names)))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _summing(task: Task) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that replies for one partition."""

    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        index = 0 if context is None else context.partitionId()
        names = list(task.columns.names)
        yield _row(index, work(task, (batch.rename_columns(names) for batch in batches), index))

    return partition


def _merging() -> Callable[[Any], Any]:
    """Return the function that makes one reply of several."""

    def together(table: Any) -> Any:
        reply = merge(unpack(data) for data in table.column("reply").to_pylist())
        return pyarrow().Table.from_batches([_row(reply.index, reply)])

    return together


def _row(index: int, reply: Reply) -> Any:
    pa = pyarrow()
    return pa.RecordBatch.from_arrays([pa.array([index], pa.int32()), pa.array([pack(reply)], pa.binary())],
                                      names=["part", "reply"])  # fmt: skip


class _Clear(AbstractContextManager[None]):
    """Turn what Spark says when it gives up into a few words."""

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is None or not _of_spark(error):
            return
        said = _spark_reason(str(error))
        hint = "see the log of the executors; more memory for Python, or smaller partitions, often help."
        if "AnalysisException" in type(error).__name__:
            hint = "are the columns spelled as in the frame?"
        elif "ModuleNotFoundError" in str(error):
            hint = "install safecal and PyArrow on every worker, and point PYSPARK_PYTHON at that Python."
        raise EngineError(f"Spark did not finish: {said}.\n\nHint: {hint}") from error


def _of_spark(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def _spark_reason(text: str) -> str:
    """Return the line that says why, without the stack."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    known = ("Python worker exited unexpectedly", "ModuleNotFoundError", "SparkContext was shut down", "OutOfMemory")
    for phrase in known:
        for line in lines:
            if phrase in line:
                return line[line.index(phrase) :].split(". ")[0].rstrip(".")
    return (lines[-1] if "Traceback" in text else lines[0] if lines else "it gave no reason").rstrip(".")


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
    """Evaluate the rows of a frame, a batch or a partition at a time.

    Frames of one machine are read as a stream. Partitions of Spark and Dask are summed where they lie, and only their
    sums come back. The result is that of `evaluate`, however many rows there are.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, RecordBatchReader, Dataset or relation
        Of pandas, Polars, PyArrow, DuckDB, Ibis, PySpark or Dask.
    columns : Columns
        What is where.
    bins : int, Bins, "auto" or None, default "auto"
        The bins of the table: by default ten for classifiers and none for Gaussians.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    max_rows : int, default 1_000_000
        Rows that are fetched and held in memory; beyond, their sums are added up.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

    Returns
    -------
    Evaluation
        Its intervals, its test and its temperature name the method that was used.

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
    options: dict[str, Any] = {"bins": bins, "bin_on": bin_on, "strategy": strategy}
    options |= limits
    cluster = _cluster(frame)
    if cluster is None:
        with ExitStack() as streams:
            return evaluate_batches(
                lambda: streams.enter_context(closing(_stream(frame, columns))),
                **options, max_rows=max_rows, once=once(frame),
            )  # fmt: skip
    rows, width = cluster.size(columns)
    if rows == 0:
        raise _nothing()
    if rows <= max_rows and rows * width <= batches.MAX_VALUES:
        whole = fetch(frame, columns)
        return evaluate_predictions(
            whole.predictions, **options, by=whole.by, cluster=whole.cluster, sample_weight=whole.sample_weight,
            features=plain_features(whole),
        )  # fmt: skip
    if columns.outcomes:
        hint = f"raise `max_rows=` to {rows} or more, or evaluate one label after another."
        raise fail(OptionError, "by_label", "is for rows that one machine holds: partitions do not number theirs",
                   got=f"{rows} rows", hint=hint)  # fmt: skip
    plan = _plan(cluster, columns, _example(columns, width), bins, bin_on, strategy)
    if not columns.features:
        return Evaluation.of(_tallied(cluster.answer(Task(columns, plan))), checked)
    sought = ScatteredSlices(checked.level, rows, drawn_at_most(width, max_rows), from_text)
    first = cluster.answer(Task(columns, plan, search=sought.lots))
    tally = _tallied(first)
    second = cluster.answer(Task(columns, search=sought.search(first.share, tally.clusters)))
    return Evaluation.of(tally, checked, slices=sought.slices(second.share, _tallied(second)))


def _tallied(reply: Reply) -> Tally:
    assert isinstance(reply.found, Tally)
    return reply.found


def fetch(frame: Any, columns: Columns) -> Batch:
    """Bring all rows of the columns that are needed into memory, and check them.

    Parameters
    ----------
    frame : DataFrame, LazyFrame, Table, RecordBatchReader, Dataset or relation
        Of pandas, Polars, PyArrow, DuckDB, Ibis, PySpark or Dask.
    columns : Columns
        What is where.

    Returns
    -------
    Batch
        The rows, in the order of the frame and its partitions.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from safecal.inputs.columns import Columns
    >>> from safecal.engines.partitions import fetch
    >>> fetch(pa.table({"y": [1, 0], "p": [0.9, 0.4]}), Columns("y", ("p",), "y_prob")).predictions.n
    2
    """
    cluster = _cluster(frame)
    if cluster is not None:
        whole = cluster.table(columns.names)
    else:
        parts = list(cut(tables(frame, columns.names), columns.values))
        whole = pyarrow().concat_tables(parts, promote_options="permissive") if parts else None
    if whole is None or whole.num_rows == 0:
        raise _nothing()
    found = Reader(columns).batch(next(rows_of([whole], columns.names)), whole=True)
    assert found is not None
    return found


def _cluster(frame: Any) -> Cluster | None:
    name = library(frame)
    if name == "pyspark":
        return Spark(frame)
    if name in ("dask", "dask_expr"):
        return Dask(frame)
    return None


def _stream(frame: Any, columns: Columns) -> Generator[Batch, None, None]:
    """Yield checked batches of a frame of one machine."""
    reader = Reader(columns)
    yield from reader.batches(rows_of(cut(tables(frame, columns.names), columns.values), columns.names))
    if not reader.rows:
        raise _nothing()
    reader.finish()


def _nothing() -> InputError:
    return fail(EmptyError, "frame", "must have at least one row", got="none")


def _example(columns: Columns, classes: int) -> Predictions:
    """Return one row of the family and the number of classes, for what does not depend on values."""
    if columns.form == "gaussian":
        return gaussian(np.zeros((1, classes)), np.zeros((1, classes)), std=1.0)
    return bernoulli([0], [0.5]) if classes == 1 else categorical([0], [[1.0 / classes] * classes])


def _plan(
    cluster: Cluster,
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
    grid = cluster.answer(Task(columns, quantiles=True, bin_on=bin_on)).found
    assert isinstance(grid, Grid)
    return Plan(*grid.bins(int(bins)))
