"""One run of `safecal watch`: batches come, are read as `safecal evaluate` reads a file, and are told of."""

import argparse
import io
import itertools
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np

from .._checks import SHELL, fail
from .._checks.arrays import is_missing
from .._optional import polars
from ..errors import (
    FileError,
    FormError,
    InputError,
    MissingExtraError,
    MissingValueError,
    OptionError,
    SafecalError,
    visible,
)
from ..inputs import Batch, Reader, Rows
from ..inputs.columns import Columns, about_columns
from ..inputs.sources import BATCH, Source, open_source
from ..watch import Arrival, BatchRows, Folder, Watcher
from ..watch.channels import Notifier
from ..watch.history import Aside, History, Taken, power_of_ten
from ..watch.standard_input import PREFIX, Cutter, Pipe, records
from ..watch.store import Store
from .table_file import chosen_columns
from .watch import StopNow, Stopping, say, write_page

__all__ = ["ALARM", "ASIDE", "MOST_UNREADABLE", "BatchContent", "Session"]

ALARM, ASIDE = 3, 4  # exit statuses
_PAGE = 60.0  # seconds between two pages, where there is no alarm
_FLUSH, _LEAVE = 70.0, 5.0  # seconds for the last deliveries, at the end and when asked to stop
MOST_UNREADABLE = 100  # rows that are set aside one by one; a batch with more is set aside whole
_MOST_WINDOWS = 366
_ODD = re.compile(r"[*?\[\]\ud800-\udfff]")  # in names: Polars would look for many files, or for none
_ALONE = re.compile(r" at row 0, counting from 0| \(1 of 1 row\)")  # what a row says of itself when it is read alone


@final
class _Held(Source):
    """Rows that are in memory already."""

    def __init__(self, name: str, frame: Any) -> None:
        self._frame = frame
        super().__init__(name, frame.columns, once=False)

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        for part in self._frame.select(list(dict.fromkeys(columns))).iter_slices(BATCH):
            if part.height:
                yield {name: part[name] for name in part.columns}

    def rows(self) -> int | None:
        return int(self._frame.height)

    def frame(self) -> Any:
        return self._frame


@final
@dataclass(slots=True)
class BatchContent:
    """A batch, to be read."""

    arrival: Arrival
    stored: Mapping[str, Any]  # the settings in the store; columns that are None are found by name
    quarantine: bool = False  # whether single rows that cannot be read are set aside; else the batch is, as a whole
    asides: list[Aside] = field(default_factory=list)  # those rows, after the last part
    settings: dict[str, Any] = field(init=False)  # with the columns that were read

    def __post_init__(self) -> None:
        self.settings = dict(self.stored)

    def parts(self) -> Iterator[BatchRows]:
        """Yield the rows, some hundred thousand at a time."""
        if self.quarantine:
            try:
                for _ in self._parts(self._opened()):  # once to see whether all of it can be read
                    pass
            except (FormError, OptionError, MissingExtraError):
                raise
            except SafecalError:
                yield from self._parts(self._readable_rows())
                return
        yield from self._parts(self._opened())

    def _opened(self) -> Source:
        arrival = self.arrival
        if arrival.path is None:
            return self._text(arrival.header + arrival.content)
        if _ODD.search(str(arrival.path)) is None:
            return open_source(str(arrival.path), arrival.kind)
        content = arrival.path.read_bytes()
        if arrival.kind == "parquet":
            return self._held(lambda pl: pl.read_parquet(io.BytesIO(content)))
        return self._text(content)

    def _text(self, text: bytes) -> Source:
        if self.arrival.kind == "jsonl":
            return self._held(lambda pl: pl.read_ndjson(io.BytesIO(text), infer_schema_length=None))
        separator = "\t" if self.arrival.kind == "tsv" else ","
        return self._held(lambda pl: pl.read_csv(io.BytesIO(text), infer_schema=False, separator=separator))

    def _held(self, read: Callable[[Any], Any]) -> Source:
        pl, name = polars(), self.arrival.batch
        try:
            return _Held(name, read(pl))
        except pl.exceptions.PolarsError as error:
            raise FileError(f"{name} cannot be read: {str(error).strip().splitlines()[0].rstrip('.')}.") from error

    def _parts(self, source: Source) -> Iterator[BatchRows]:
        self.settings = dict(self.stored)
        columns = self._columns(source)
        # A batch may well lack the positive label; and the other one is that of the batches before.
        other_labels = [self.stored["other"]] if self.stored.get("other") is not None else []
        reader = Reader(columns, positive=True, others=other_labels)
        start = 0
        try:
            for batch in reader.batches(source.batches(columns.names)):
                yield self._part(batch, start)
                start += batch.predictions.n
        except InputError as error:
            raise about_columns(error, columns, SHELL) from error
        if reader.rows == 0:
            raise FileError(f"{source.name} has columns and no rows.")
        if columns.pos_label is not None and reader.others:
            self.settings["other"] = next(iter(reader.others))

    def _columns(self, source: Source) -> Columns:
        stored = self.stored
        extra = [c for c in (stored.get("window_column"), stored.get("batch_column")) if c is not None]
        names = stored.get("label")
        columns = chosen_columns(
            source,
            "watch",
            y=stored.get("y"),
            prob=stored.get("prob"),
            logits=stored.get("logits"),
            by=(*(stored.get("by") or ()), *extra),
            pos_label=stored.get("pos_label"),
            labels=None if names is None else tuple(names),
            clip=stored.get("clip"),
        )
        self.settings |= {"y": columns.y_true, ("logits" if columns.form == "logits" else "prob"): list(columns.values)}
        return columns

    def _part(self, batch: Batch, start: int) -> BatchRows:
        columns, windows = dict(batch.by or {}), None
        name = self.stored.get("window_column")
        if name is not None:
            windows = _windows(columns[name], name, start)
        grouped_by = self.stored.get("by") or []
        if self.stored.get("pos_label") is not None and not self.settings.get("seen"):
            happened: Any = batch.predictions
            self.settings["seen"] = bool(np.any(happened.happened))
        return BatchRows(batch.predictions, {key: columns[key] for key in grouped_by} or None, windows)

    def _readable_rows(self) -> Source:
        """Return the rows that can be read, and set the others aside."""
        size, pick = self._pickable_rows()
        unreadable = self._unreadable(pick, 0, size)
        for row, reason in unreadable:
            self.asides.append(Aside(self.arrival.batch, self.arrival.digest, _place(row), reason))
        if len(unreadable) == size:
            raise FileError(f"no row can be read; the first: {unreadable[0][1] if unreadable else 'there is none'}")
        rows = np.ones(size, dtype=bool)
        rows[[row for row, _ in unreadable]] = False
        return pick(np.flatnonzero(rows))

    def _pickable_rows(self) -> tuple[int, Callable[[Any], Source]]:
        """Return how many rows there are, and how to get some of them."""
        arrival = self.arrival
        if arrival.kind == "parquet":
            frame = self._opened().frame()
            return int(frame.height), lambda index: _Held(arrival.batch, frame[index])
        text = arrival.content if arrival.path is None else arrival.path.read_bytes()
        lines = [line for line in records(text, arrival.kind or "csv") if line.strip()]
        header = arrival.header
        if arrival.path is not None and arrival.kind != "jsonl":
            header, lines = lines[0] if lines else b"", lines[1:]
        lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        return len(lines), lambda index: self._text(header + b"".join(lines[k] for k in index))

    def _unreadable(self, pick: Callable[[Any], Source], low: int, high: int) -> list[tuple[int, str]]:
        """Find the rows that cannot be read, by halving."""
        try:
            for _ in self._parts(pick(np.arange(low, high))):
                pass
        except MissingExtraError:
            raise
        except SafecalError as error:
            if high - low == 1:
                return [(low, _ALONE.sub("", str(error).split("\n\n", 1)[0]))]
        else:
            return []
        middle = (low + high) // 2
        unreadable = self._unreadable(pick, low, middle)
        if len(unreadable) <= MOST_UNREADABLE:
            unreadable += self._unreadable(pick, middle, high)
        if len(unreadable) > MOST_UNREADABLE:
            row, reason = unreadable[0]
            raise FileError(f"more than {MOST_UNREADABLE} rows cannot be read; the first, {_place(row)}: {reason}")
        return unreadable


def _place(row: int) -> str:
    return f"row {row}, counting from 0"


def _windows(column: Any, name: str, start: int) -> Any:
    values = np.asarray(column)
    missing = np.fromiter((is_missing(v) for v in values.tolist()), dtype=bool, count=len(values))
    if values.dtype.kind in "OU":
        missing |= values == ""
    if missing.any():
        place, count = _place(start + int(missing.argmax())), (int(missing.sum()), len(values))
        raise fail(MissingValueError, name, "must name a window", got="nothing", place=place, count=count)
    windows = values.astype(str)
    if len(np.unique(windows)) > _MOST_WINDOWS:
        hint = "use a date, and not a time."
        rule = f"must have at most {_MOST_WINDOWS} values in a batch"
        raise fail(OptionError, name, rule, got=str(len(np.unique(windows))), hint=hint)
    return windows


def _print(line: str) -> None:
    """Print a line; a watcher goes on when no one reads it any more."""
    lost_before = getattr(sys.stdout, "lost", None)
    sys.stdout.write(f"{visible(line)}\n")  # in one piece, so that a kill leaves whole lines or none
    sys.stdout.flush()
    if lost_before is None and isinstance(getattr(sys.stdout, "lost", None), BrokenPipeError):
        say("no one reads standard output any more; the watch goes on.")


@final
@dataclass(slots=True)
class Session:
    """One run of a watcher."""

    options: argparse.Namespace
    store: Store
    watcher: Watcher
    notifier: Notifier
    stopping: Stopping
    latest: History = field(init=False)
    _paged: float | None = None
    _stale: bool = True
    _repeats_reported: int = 0

    def __post_init__(self) -> None:
        self.latest = self.watcher.snapshot()

    def run(self) -> int:
        """Take batches in until there are no more, or someone asks to stop."""
        incomplete = 0
        self._acknowledge_requests()
        self.notifier.deliver()
        try:
            incomplete = self._stream() if self.options.what == "-" else self._follow()
        except StopNow:
            pass
        self._report_repeats()
        if self.options.report and self._stale:
            write_page(self.store, self.options.report)
        undelivered = self._flush()
        if self.stopping.signal_number is not None:
            say("asked to stop; every batch that was printed is stored.")
            return 0 if self.stopping.signal_number == signal.SIGTERM else 128 + self.stopping.signal_number
        return self._status(incomplete, undelivered)

    def _flush(self) -> int:
        """Wait for the last deliveries, for a while, and return how many are left."""
        return self.notifier.finish(_FLUSH, stopped=lambda: self.stopping.signal_number is not None, leave=_LEAVE)

    def _status(self, incomplete: int, undelivered: int) -> int:
        label = self.store.settings.get("pos_label")
        if label is not None and not self.store.settings.get("seen"):
            say(f"the label {label!r} of `--pos-label` has not occurred yet; is it spelled as in the rows?")
        if self.watcher.raised:
            return ALARM
        if undelivered:
            return 2
        return ASIDE if self.watcher.aside or incomplete else 0

    def _follow(self) -> int:
        once = self.options.once
        folder = Folder(self.options.what, self.store.known, say, looks=1 if once else 10)
        for look in itertools.count():
            self._acknowledge_requests()
            for arrival in folder.look():
                self._take(arrival)
                if self.stopping.signal_number is not None:
                    return 0
            self._report_repeats()
            self.notifier.deliver()
            self._page()
            if once and look:
                break
            self._wait_for_next_look(self.options.poll)
        for name in folder.waiting:
            say(f"not taken: {name}; it is still being written.")
        return len(folder.waiting)

    def _stream(self) -> int:
        options = self.options
        pipe = Pipe(0)
        cutter = Cutter(
            lambda seconds: self._read(pipe, seconds),
            () if options.batch_column is not None else self.store.batches(PREFIX),
            rows=options.batch_rows or 10_000, every=options.every, kind=options.format, column=options.batch_column,
        )  # fmt: skip
        try:
            for arrival in cutter:
                self._acknowledge_requests()
                self._take(arrival)
                self.notifier.deliver()
                self._page()
        finally:
            if cutter.held:
                say(f"{cutter.held} rows were read but not counted; send them again.")
        return 0

    def _wait_for_next_look(self, seconds: float) -> None:
        """Wait for the next look; note meanwhile what has been delivered."""
        end = time.monotonic() + seconds
        while (seconds_left := end - time.monotonic()) > 0.0:
            due = self.notifier.due()
            self.stopping.sleep(seconds_left if due is None else min(seconds_left, due))
            if due is not None:
                self.notifier.deliver()

    def _read(self, pipe: Pipe, seconds: float | None) -> bytes | None:
        """Wait for more of standard input; note meanwhile what has been delivered."""
        end = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            due = self.notifier.due()
            seconds_left = min(max(0.0, end - time.monotonic()), math.inf if due is None else due)
            piece = self.stopping.wait(partial(pipe.read, None if seconds_left == math.inf else seconds_left))
            if piece is not None or time.monotonic() >= end:
                return piece
            self.notifier.deliver()

    def _report_repeats(self) -> None:
        """Tell of batches that came again, not of each: a stream that is sent from its start has many."""
        repeats, self._repeats_reported = self.watcher.again - self._repeats_reported, self.watcher.again
        if repeats:
            came = "1 batch came again; it counts" if repeats == 1 else f"{repeats} batches came again; they count"
            say(f"{came} once.")

    def _acknowledge_requests(self) -> None:
        for group in self.watcher.acknowledge():
            say(f"acknowledged: {'all rows' if group is None else group}; looking for the next change.")
            self._refresh()

    def _refresh(self) -> None:
        """Keep what a request for metrics is answered with; the store itself belongs to this thread."""
        if self.options.prometheus is not None:
            self.latest = self.watcher.snapshot()

    def _take(self, arrival: Arrival) -> None:
        taken = self.watcher.take(arrival)
        if taken is not None:
            self._report_repeats()
        self._refresh()
        if taken is not None:
            _print(_line(taken))
            for raised in taken.alarms:
                _print(f"ALARM: {raised.alarm}")
            self._stale = True
            self._page(now=bool(taken.alarms))

    def _page(self, *, now: bool = False) -> None:
        """Write the page where it is due."""
        due = self._paged is None or time.monotonic() - self._paged >= _PAGE
        if self.options.report and self._stale and (now or due):
            write_page(self.store, self.options.report)
            self._paged, self._stale = time.monotonic(), False


def _line(taken: Taken) -> str:
    rows = sum(point.summary.n for point in taken.points)
    total = sum((point.summary for point in taken.points[1:]), taken.points[0].summary)
    last_point = taken.points[-1]
    logs = {"over": last_point.log_over, "under": last_point.log_under, "up": last_point.log_up}
    logs |= {"down": last_point.log_down, "change": last_point.log_change, "to under": last_point.log_other}
    evidence = ", ".join(f"{power_of_ten(log)} {name}" for name, log in logs.items() if log is not None)
    return f"taken: {taken.batch}: {rows} {'row' if rows == 1 else 'rows'}, ECD {total.ecd:+.4f}; e-values {evidence}"
