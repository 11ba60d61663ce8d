"""One batch after another: read, added to the evidence, kept; or set aside with a reason."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from .._sums.summary import Summary
from .._types import AnyArray
from ..errors import FormError, MissingExtraError, OptionError, SafecalError
from ..families.predictions import Predictions
from ..files import stamp_of
from ..monitor import Alarm, Monitor
from .arrivals import Arrival
from .history import History, Point, Raised
from .store import WHOLE, Aside, Store, Taken

__all__ = ["Content", "Part", "Watcher", "utc"]


def utc() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@final
@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a batch: checked predictions, their groups, and the window of each row where a column says it."""

    predictions: Predictions
    by: Mapping[str, AnyArray] | None = None
    windows: AnyArray | None = None


class Content(Protocol):
    """A batch that can be read. After its last part it knows what it left out, and which columns it read."""

    asides: list[Aside]
    settings: dict[str, Any]

    def parts(self) -> Iterator[Part]:
        """Yield the rows."""
        ...


@final
@dataclass(slots=True)
class Watcher:
    """Takes batches in.

    Attributes
    ----------
    store : Store
        Its memory.
    read : callable
        Opens what has arrived, given the settings so far.
    tell : callable
        Takes one line about what went wrong.
    clock : callable
        The time.
    retry : bool
        Whether batches that were set aside are tried again.
    raised, aside, again : int
        Alarms that were raised, rows and batches set aside, and batches that had been counted before, in this run.
    """

    store: Store
    read: Callable[[Arrival, Mapping[str, Any]], Content]
    tell: Callable[[str], None]
    clock: Callable[[], datetime] = utc
    retry: bool = False
    raised: int = 0
    aside: int = 0
    again: int = 0
    monitor: Monitor = field(init=False)

    def __post_init__(self) -> None:
        self.monitor = self.store.monitor()

    def take(self, arrival: Arrival) -> Taken | None:
        """Count a batch, once; None where it was counted before, or is set aside."""
        known = self.store.known(arrival.batch)
        if known is not None and known.digest == arrival.digest:
            self.again += 1
            if arrival.stamp:
                self.store.restamp(arrival.batch, arrival.stamp)
            return None
        if not self.retry and self.store.quarantined(arrival.batch, arrival.digest):
            self.tell(f"{arrival.batch} was set aside before; `--retry` tries it again.")
            return None
        if known is not None:
            return self._refuse(arrival, "it was counted before, with other content")
        if arrival.doubt:
            return self._refuse(arrival, arrival.doubt)
        try:
            taken = self._taken(arrival)
        except MissingExtraError:
            raise
        except (SafecalError, FileNotFoundError) as error:
            if arrival.path is not None and not arrival.path.exists():
                self.tell(f"{arrival.batch} went away before it was read; it was not counted.")
                return None
            if isinstance(error, FormError | OptionError) and self.monitor.summary.n == 0:
                raise  # most likely the options are wrong, and not the batch
            return self._refuse(arrival, str(error).split("\n\n", 1)[0])
        if arrival.path is not None and not _as_it_was(arrival.path, arrival.stamp):
            self.tell(f"{arrival.batch} changed while it was read; it was not counted yet.")
            return None
        self.store.commit(taken)
        self.monitor = taken.monitor
        self.raised += len(taken.alarms)
        self.aside += len(taken.asides)
        for aside in taken.asides:
            self.tell(f"set aside: {aside.batch}, {aside.place}: {aside.reason}")
        return taken

    def _refuse(self, arrival: Arrival, reason: str) -> Taken | None:
        self.store.quarantine(Aside(arrival.batch, arrival.digest, WHOLE, reason))
        self.aside += 1
        self.tell(f"set aside: {arrival.batch}: {reason}")
        return None

    def _taken(self, arrival: Arrival) -> Taken:
        now = self.clock().astimezone(UTC)
        received, today = now.isoformat(timespec="seconds"), now.date().isoformat()
        # Worked out on a copy, as the store would give it back: a refusal leaves everything as it was.
        monitor = Monitor.from_dict(self.monitor.to_dict())
        content = self.read(arrival, self.store.settings)
        sums: dict[str, Summary] = {}
        alarms: list[Alarm] = []
        for part in content.parts():
            for window, piece in _by_window(part, today):
                alarms += monitor.add(piece.predictions, by=piece.by, window=window)
                sums[window] = sums.get(window, Summary()) + piece.predictions.summary()
        points = tuple(Point.of(arrival.batch, window, received, total, monitor) for window, total in sums.items())
        raised = tuple(Raised(alarm, received, arrival.batch) for alarm in alarms)
        return Taken(
            arrival.batch, arrival.digest, arrival.stamp, monitor, content.settings, points, raised,
            tuple(content.asides),
        )  # fmt: skip

    def acknowledge(self) -> tuple[Any, ...]:
        """Start the detectors anew that someone asked for."""
        granted = self.store.grant()
        if granted:
            self.monitor = self.store.monitor()
        return granted

    def snapshot(self) -> History:
        """Return the state now, with the last point alone."""
        last = self.store.last()
        return History(self.monitor, () if last is None else (last,), self.store.alarms(), self.store.count())


def _as_it_was(path: Path, stamp: str) -> bool:
    try:
        return stamp_of(path.stat()) == stamp
    except FileNotFoundError:  # what was read is whole, whoever took the file away
        return True


def _by_window(part: Part, today: str) -> Iterator[tuple[str, Part]]:
    """Yield the rows of each window, in the order in which the windows appear."""
    if part.windows is None:
        yield today, part
        return
    names, first, codes = np.unique(part.windows, return_index=True, return_inverse=True)
    for k in np.argsort(first):
        index = np.flatnonzero(codes == k)
        by = None if part.by is None else {name: column[index] for name, column in part.by.items()}
        yield str(names[k]), Part(part.predictions.take(index), by)
