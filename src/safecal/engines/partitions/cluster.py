"""What a cluster must do: say how large a frame is, hand over rows, and do a task on every partition."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..._checks.message import fail
from ...errors import EmptyError
from ...inputs.columns import Columns
from ...inputs.reader import refuse_labels
from .workers import Reply, Task

__all__ = ["Cluster"]


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
        return reply
