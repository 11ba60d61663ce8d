"""What a worker is asked for, what it replies, and how replies become one. A refusal is a reply, too."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ..._checks.message import Complaint
from ..._versions import version
from ...bins import Bins
from ...errors import EngineError, InputError, SafecalError
from ..arrow import cut
from ..columns import Columns
from ..quantiles import Grid, count
from .checked import Checked, alike, worded
from .parts import Part, summed

__all__ = ["FAN_IN", "Reply", "Task", "merge", "pack", "unpack", "work"]

FAN_IN = 8  # replies that are put together at a time
_SEED = 20_250_220


@final
@dataclass(frozen=True, slots=True)
class Task:
    """What to do with each partition: sum its rows, or count them on the grid that quantiles are read off."""

    columns: Columns
    edges: tuple[Bins, str] | None = None
    rate: float = 1.0
    quantiles: bool = False
    bin_on: str | None = None


@final
@dataclass(slots=True)
class Reply:
    """What was found in partition ``index``, or in several from it on; or why its rows are refused."""

    index: int
    found: Part | Grid | None = None
    failure: SafecalError | None = None
    rows: int = 0


def work(task: Task, stream: Iterable[Any], index: int) -> Reply:
    """Do a task on the Arrow tables of one partition; a second run of a lost one gives the same."""
    checked = Checked(task.columns, cut(stream, task.columns.values))
    try:
        if task.quantiles:
            return Reply(index, count((rows for _, rows in checked), task.bin_on), rows=checked.rows)
        rng = np.random.default_rng([_SEED, index])
        return Reply(index, summed(checked, task.edges, task.rate, rng), rows=checked.rows)
    except SafecalError as error:
        return Reply(index, None, _placed(error, index), checked.rows)


def _placed(error: SafecalError, index: int) -> SafecalError:
    """Name the partition beside the row."""
    complaint: Complaint | None = getattr(error, "complaint", None)
    if complaint is None or not isinstance(error, InputError):
        return error
    place = f"partition {index}" if complaint.place is None else f"{complaint.place} of partition {index}"
    return worded(error, replace(complaint, place=place))


def merge(replies: Iterable[Reply]) -> Reply:
    """Make one reply of several, in the order of their partitions."""
    whole: Reply | None = None
    for reply in sorted(replies, key=lambda r: r.index):
        whole = reply if whole is None else _both(whole, reply)
    return Reply(-1) if whole is None else whole


def _both(a: Reply, b: Reply) -> Reply:
    rows = a.rows + b.rows
    if a.failure is not None or b.failure is not None:
        return Reply(a.index, None, _one_failure(a, b), rows)
    if a.found is None or b.found is None:
        return Reply(a.index, b.found if a.found is None else a.found, None, rows)
    if isinstance(a.found, Grid):
        assert isinstance(b.found, Grid)
        return Reply(a.index, a.found + b.found, None, rows)
    assert isinstance(b.found, Part)
    try:
        a.found.absorb(b.found)
    except SafecalError as error:
        return Reply(a.index, None, error, rows)
    return Reply(a.index, a.found, None, rows)


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
