"""Partitions on workers: what each is asked for, what it replies, and how replies become one.

A refusal is a reply, too. `Cluster` is what the engine of a cluster must do.
"""

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from .._checks.message import Complaint, fail
from .._sums.splits import Plan
from .._sums.tally import Tally
from .._types import BinOn
from .._versions import version
from ..errors import EmptyError, EngineError, InputError, SafecalError, ShapeError
from ..inputs.arrow import cut, rows_of
from ..inputs.columns import Columns
from ..inputs.reader import Reader, alike, refuse_labels, worded
from .batches import Grid, count_on_grid, in_pairs, tally_batches

__all__ = ["FAN_IN", "Cluster", "Reply", "Task", "merge", "pack", "unpack", "work"]

FAN_IN = 8  # replies that are put together at a time


@final
@dataclass(frozen=True, slots=True)
class Task:
    """What to do with each partition: sum its rows, or count them on the grid that quantiles are read off."""

    columns: Columns
    plan: Plan = field(default_factory=Plan)
    quantiles: bool = False
    bin_on: BinOn | None = None


@final
@dataclass(slots=True)
class Reply:
    """What was found in partition ``index``, or in several from it on; or why its rows are refused.

    ``others`` are the labels met beside the positive one, ``positive`` tells whether that was met, ``form`` is what the
    values are.
    """

    index: int
    found: Tally | Grid | None = None
    failure: SafecalError | None = None
    rows: int = 0
    others: tuple[Any, ...] = ()
    form: str = ""
    positive: bool = False


def work(task: Task, stream: Iterable[Any], index: int) -> Reply:
    """Do a task on the Arrow tables of one partition; a second run of a lost one gives the same."""
    reader = Reader(task.columns)
    batches = reader.batches(rows_of(cut(stream, task.columns.values), task.columns.names))
    try:
        found = count_on_grid(batches, task.bin_on) if task.quantiles else tally_batches(batches, task.plan)
    except SafecalError as error:
        return Reply(index, None, _placed(error, index), reader.rows)
    some = found if reader.rows else None
    return Reply(index, some, None, reader.rows, tuple(reader.others), task.columns.form, reader.positive)


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
    positive = a.positive or b.positive
    if a.failure is not None or b.failure is not None:
        return Reply(a.index, None, _one_failure(a, b), rows)
    if a.found is None or b.found is None:
        one = b if a.found is None else a
        return Reply(a.index, one.found, None, rows, others, one.form, positive)
    try:
        return Reply(a.index, _sum(a, b), None, rows, others, a.form, positive)
    except SafecalError as error:
        return Reply(a.index, None, error, rows)


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
        return reply
