"""Spark: every partition is summed by a Python worker that reads it through Arrow; eight replies at a time are put
together by workers, too, so that little arrives here."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from .._optional import pyarrow
from ..errors import EngineError
from ..inputs.columns import Columns
from .workers import FAN_IN, Cluster, Reply, Task, merge, pack, unpack, work

__all__ = ["Spark"]

_SCHEMA = "part int, reply binary"


@final
class Spark(Cluster):
    """A PySpark DataFrame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def size(self, columns: Columns) -> tuple[int, int]:
        from pyspark.sql import functions as F

        wanted = [F.count("*")]
        lists = len(columns.values) == 1 and dict(self.frame.dtypes)[columns.values[0]].startswith("array")
        if lists:
            wanted.append(F.max(F.size(F.col(_quoted(columns.values[0])))))
        with _Clear():
            row = self.frame.agg(*wanted).collect()[0]
        return int(row[0]), max(1, int(row[1] or 1)) if lists else len(columns.values)

    def table(self, names: Sequence[str]) -> Any:
        with _Clear():
            return self._chosen(names).toArrow().rename_columns(list(names))

    def run(self, task: Task) -> Reply:
        from pyspark.sql import functions as F

        with _Clear():
            replies = self._chosen(task.columns.names).mapInArrow(_summing(task), _SCHEMA)
            block = F.floor(F.col("part") / FAN_IN)
            merged = replies.groupBy(block).applyInArrow(_merging(), _SCHEMA)
            return merge(unpack(bytes(row["reply"])) for row in merged.toLocalIterator())

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


class _Clear:
    """Turn what Spark says when it gives up into a few words."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is None or not _of_spark(error):
            return
        said = _reason(str(error))
        hint = "see the log of the executors; more memory for Python, or smaller partitions, often help."
        if "AnalysisException" in type(error).__name__:
            hint = "are the columns spelled as in the frame?"
        elif "ModuleNotFoundError" in str(error):
            hint = "install safecal and PyArrow on every worker, and point PYSPARK_PYTHON at that Python."
        raise EngineError(f"Spark did not finish: {said}.\n\nHint: {hint}") from error


def _of_spark(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def _reason(text: str) -> str:
    """Return the line that says why, without the stack."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    known = ("Python worker exited unexpectedly", "ModuleNotFoundError", "SparkContext was shut down", "OutOfMemory")
    for phrase in known:
        for line in lines:
            if phrase in line:
                return line[line.index(phrase) :].split(". ")[0].rstrip(".")
    return (lines[-1] if "Traceback" in text else lines[0] if lines else "it gave no reason").rstrip(".")
