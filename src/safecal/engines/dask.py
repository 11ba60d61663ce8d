"""Dask: every partition is summed where it lies, and replies are put together eight at a time by the workers."""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any, final

from .._optional import pyarrow
from ..errors import EngineError
from ..inputs.arrow import VALUES, from_pandas, tables
from ..inputs.columns import Columns
from .workers import FAN_IN, Cluster, Reply, Task, merge, pack, unpack, work

__all__ = ["Dask"]


@final
class Dask(Cluster):
    """A Dask DataFrame."""

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

        replies = [delayed(_reply)(part, task, k) for k, part in enumerate(self._partitions(task.columns.names))]
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
            f"Dask did not finish: {_reason(error)}.\n\n"
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


def _reason(error: BaseException) -> str:
    said = str(error).strip().split("\n", 1)[0].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
