"""`safecal watch`: a state that survives, and who is told. Here: one batch after another.

A batch arrives with an id, is read, added to the evidence, and kept; or it is set aside with a reason. In a folder,
each file is a batch.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from .._sums.summary import Summary
from .._types import AnyArray
from ..errors import FileError, FormError, MissingExtraError, OptionError, SafecalError
from ..families import Predictions
from ..inputs.sources import stamp_of
from ..monitor import Alarm, Monitor
from .history import WHOLE, Aside, History, Known, Point, Raised, Taken, storable_text
from .store import Store

__all__ = ["KINDS", "Arrival", "BatchRows", "Content", "Folder", "Watcher", "digest_of", "utc"]

KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", ".filepart", ".swp", "~")


@final
@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch that has arrived: a file, or the content of one."""

    batch: str  # its id
    digest: str  # SHA-256 of its content
    kind: str | None = None  # the format, where it is known: "csv", "tsv", "jsonl", "parquet"
    path: Path | None = None
    content: bytes = b""  # if it is no file
    header: bytes = b""  # the first line of a CSV stream, which the content lacks
    stamp: str = ""  # how the file looked; as long as this is the same, the file has not changed
    doubt: str = ""  # why it must not be counted, if there is a reason


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@final
class Folder:
    """Looks into a folder, and yields the files that are whole and new, in the order of their names.

    A file is whole when it looks as it did at the look before, and its end says so: the signature of a Parquet file,
    the line end of a text file. One without such an end is taken, or refused, after it has been still for
    ``looks`` looks. Names that begin with a dot or an underscore, or end in ``.part`` or ``.tmp``, are unfinished.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        known: Callable[[str], Known | None],
        tell: Callable[[str], None],
        *,
        looks: int = 10,
    ) -> None:
        self.path, self.looks = Path(path), looks
        self._known, self._tell = known, tell
        self._seen: dict[str, tuple[str, int]] = {}  # name -> stamp, and for how many looks it has been the same
        self._done: dict[str, str] = {}  # name -> stamp when we were done with it
        self._reported: set[str] = set()
        if not self.path.is_dir():
            raise FileError(f"{path} is not a folder.\n\nHint: name a folder of files, or `-` for standard input.")

    @property
    def waiting(self) -> tuple[str, ...]:
        """The files that have been seen and not taken yet."""
        return tuple(sorted(name for name, (stamp, _) in self._seen.items() if self._done.get(name) != stamp))

    def look(self) -> Iterator[Arrival]:
        """Look once, and yield the files that are ready. Each counts as done when the next one is asked for."""
        now = self._listed()
        self._seen = {
            name: (stamp, self._seen[name][1] + 1 if self._seen.get(name, ("", 0))[0] == stamp else 0)
            for name, stamp in now.items()
        }
        self._done = {name: stamp for name, stamp in self._done.items() if name in now}
        for name, (stamp, still) in sorted(self._seen.items()):
            if self._done.get(name) == stamp:
                continue
            known = self._known(storable_text(name))
            if known is not None and known.stamp == stamp:
                self._done[name] = stamp
            elif still > 0:
                arrival = self._arrival(name, stamp, still)
                if arrival is not None:
                    yield arrival
                    self._done[name] = stamp

    def _listed(self) -> dict[str, str]:
        stamps = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if self._wanted(entry):
                        try:
                            stamps[entry.name] = stamp_of(os.stat(entry.path))  # entry.stat() may be stale
                        except FileNotFoundError:  # it went away between the two
                            continue
        except FileNotFoundError as error:
            raise FileError(f"the folder {self.path} is gone.") from error
        return stamps

    def _wanted(self, entry: "os.DirEntry[str]") -> bool:
        name = entry.name
        if name.startswith((".", "_")) or name.lower().endswith(_UNFINISHED):
            return False
        if not entry.is_file():
            return False
        if Path(name).suffix.lower() in KINDS:
            return True
        if name not in self._reported:
            self._reported.add(name)
            self._tell(f"ignored: {name}; only files named {', '.join(KINDS)} are read.")
        return False

    def _arrival(self, name: str, stamp: str, still: int) -> Arrival | None:
        path, kind = self.path / name, KINDS[Path(name).suffix.lower()]
        try:
            if still < self.looks and not _is_whole(path, kind):
                return self._not_whole(name, "it is not complete yet")
            digest = digest_of(path)
            if stamp_of(os.stat(path)) != stamp:
                return self._not_whole(name, "it changed while it was read")
        except FileNotFoundError:  # it went away
            return None
        except OSError as error:
            return self._not_whole(name, f"the system refused: {error.strerror or error}")
        return Arrival(storable_text(name), digest, kind, path, stamp=stamp)

    def _not_whole(self, name: str, why: str) -> Arrival | None:
        if f"{name} {why}" not in self._reported:
            self._reported.add(f"{name} {why}")
            self._tell(f"waiting for {name}: {why}.")
        return None


def _is_whole(path: Path, kind: str) -> bool:
    """Tell whether the last bytes of a file are those of a file that is whole."""
    last = b"PAR1" if kind == "parquet" else b"\n"
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(last)))
        return file.read() == last


def utc() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@final
@dataclass(frozen=True, slots=True)
class BatchRows:
    """Some rows of a batch: checked predictions, their groups, and the window of each row where a column says it."""

    predictions: Predictions
    by: Mapping[str, AnyArray] | None = None
    windows: AnyArray | None = None


class Content(Protocol):
    """A batch that can be read. After its last part it knows what it left out, and which columns it read."""

    asides: list[Aside]
    settings: dict[str, Any]

    def parts(self) -> Iterator[BatchRows]:
        """Yield the rows."""
        ...


@final
@dataclass(slots=True)
class Watcher:
    """Takes batches in, and counts what came of them in this run."""

    store: Store
    read: Callable[[Arrival, Mapping[str, Any]], Content]  # opens what has arrived, given the settings so far
    tell: Callable[[str], None]  # takes one line about what went wrong
    clock: Callable[[], datetime] = utc
    retry: bool = False  # whether batches that were set aside are tried again
    raised: int = 0  # alarms
    aside: int = 0  # rows and batches
    again: int = 0  # batches that had been counted before
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
            taken = self._count(arrival)
        except MissingExtraError:
            raise
        except (SafecalError, FileNotFoundError) as error:
            if arrival.path is not None and not arrival.path.exists():
                self.tell(f"{arrival.batch} went away before it was read; it was not counted.")
                return None
            if isinstance(error, FormError | OptionError) and self.monitor.summary.n == 0:
                raise  # most likely the options are wrong, and not the batch
            return self._refuse(arrival, str(error).split("\n\n", 1)[0])
        if arrival.path is not None and not _is_unchanged(arrival.path, arrival.stamp):
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

    def _count(self, arrival: Arrival) -> Taken:
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
            arrival.batch, arrival.digest, arrival.stamp, monitor, content.settings, points=points, alarms=raised,
            asides=tuple(content.asides),
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


def _is_unchanged(path: Path, stamp: str) -> bool:
    try:
        return stamp_of(path.stat()) == stamp
    except FileNotFoundError:  # what was read is whole, whoever took the file away
        return True


def _by_window(rows: BatchRows, today: str) -> Iterator[tuple[str, BatchRows]]:
    """Yield the rows of each window, in the order in which the windows appear."""
    if rows.windows is None:
        yield today, rows
        return
    names, first, codes = np.unique(rows.windows, return_index=True, return_inverse=True)
    for k in np.argsort(first):
        index = np.flatnonzero(codes == k)
        by = None if rows.by is None else {name: column[index] for name, column in rows.by.items()}
        yield str(names[k]), BatchRows(rows.predictions.take(index), by)
