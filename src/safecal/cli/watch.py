"""``safecal watch``: follow a deployed model, and tell when it becomes over-confident."""

import argparse
import itertools
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

from ..errors import FileError, LockedError, OptionError, visible
from ..files import write_atomically
from ..monitor import Monitor
from ..options import Limits
from ..watch.batches import KINDS, Arrival, Folder, Watcher
from ..watch.channels import channels
from ..watch.history import History, Taken
from ..watch.notifier import Notifier
from ..watch.sqlite import open_store, store_files
from ..watch.standard_input import PREFIX, Cutter, Pipe
from ..watch.standing import power_of_ten, status_text
from ..watch.store import Store
from .outputs import ReadFolder, check_outputs
from .watch_reading import BatchContent

__all__ = ["ALARM", "ASIDE", "Session", "run", "say", "write_page"]

T = TypeVar("T")

_FILE = "safecal-watch.sqlite"
_SETTINGS = (
    "alpha", "run_length", "detect", "y", "prob", "logits", "pos_label", "label", "by", "clip", "window_column",
    "batch_column",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.what == "status":
        address = options.store or _FILE
        check_outputs(report=options.report, store=store_files(address))
        with open_store(address, model=options.name, patience=options.patience) as store:
            print(status_text(store))
            if options.report:
                write_page(store, options.report)
        return 0
    if options.what == "acknowledge":
        return _acknowledge(options)
    return _watch(options)


def _acknowledge(options: argparse.Namespace) -> int:
    address = options.store or _FILE
    check_outputs(store=store_files(address))
    with open_store(address, model=options.name, patience=options.patience) as store:
        group = _group(store.monitor(), options.group)
        store.request(group)
    who = "all rows" if group is None else visible(str(group))
    try:
        with open_store(address, model=options.name, settings={}, patience=options.patience) as store:
            store.grant()
    except LockedError:
        print(f"asked the running watcher to look for the next change in {who}.")
        return 0
    print(f"from now on, the watcher looks for the next change in {who}.")
    return 0


def _group(monitor: Monitor, text: str | None) -> Any:
    if text is None:
        return None
    for group in monitor.groups:
        if text == str(group) or (isinstance(group, tuple) and text == ",".join(map(str, group))):
            return group
    shown = ", ".join(map(str, monitor.groups[:10])) or "none"
    raise OptionError(f"`--group` must be one that has appeared; got {text!r}. There are {shown}.")


def _watch(options: argparse.Namespace) -> int:
    address = options.store or _beside(options.what)
    _check(options, address)
    if options.store is None:
        say(f"the state is kept in {shlex.quote(address)}; `--store` names another place.")
    settings = {name: getattr(options, name) for name in _SETTINGS}
    monitor_options = {name: settings[name] for name in ("alpha", "run_length", "detect") if settings[name] is not None}
    limits = {name: x for name in Limits.__slots__ if (x := getattr(options, name)) is not None}
    settings |= limits
    monitor = Monitor(**monitor_options, grouped=bool(options.by), limits=Limits(**limits))
    stopping = Stopping()
    with ExitStack() as stack:
        stack.enter_context(stopping.listening())
        store = stack.enter_context(
            open_store(address, model=options.name, settings=settings, monitor=monitor, patience=options.patience)
        )
        addresses = {"command": options.on_alarm, "webhook": options.webhook}
        open_channels = channels(**addresses) if any(addresses.values()) else {}
        quarantine = options.bad_rows == "quarantine"
        watcher = Watcher(
            store, lambda arrival, stored: BatchContent(arrival, stored, quarantine), say, retry=options.retry
        )  # fmt: skip
        session = Session(options, store, watcher, Notifier(store, open_channels, say), stopping)
        if options.prometheus is not None:
            from ..watch.prometheus import Server

            host = options.prometheus_host
            server = stack.enter_context(Server(options.prometheus, host, snapshot=lambda: session.latest))
            say(f"metrics at http://{host}:{server.port}/metrics")
        return session.run()


def _check(options: argparse.Namespace, address: str) -> None:
    """Refuse options that could do nothing, or would destroy something, before anything is opened."""
    stream = options.what == "-"
    check_outputs(
        inputs={"standard input": "-"} if stream else {},
        folders=() if stream else [ReadFolder("FOLDER", options.what, KINDS)],
        report=options.report,
        store=store_files(address),
    )
    streamed = ("format", "batch_rows", "every", "batch_column")
    used = [name for name in streamed if getattr(options, name) is not None]
    if options.what != "-":
        if not Path(options.what).is_dir():
            raise FileError(
                f"{options.what} is not a folder.\n\nHint: name a folder of files, `-` for standard input, or `status`."
            )
        if used:
            raise OptionError(
                f"`--{used[0].replace('_', '-')}` is for standard input; in a folder, each file is a batch."
            )
    elif sys.stdin is not None and sys.stdin.isatty():
        raise FileError(
            "standard input is a terminal.\n\nHint: pipe rows into it: `tail -F log.jsonl | safecal watch -`."
        )
    if options.batch_column is not None and (options.every is not None or options.batch_rows is not None):
        raise OptionError(
            "with `--batch-column` a batch ends where its id changes; leave out `--batch-rows` and `--every`."
        )
    if options.group is not None:
        raise OptionError("`--group` belongs to `safecal watch acknowledge`.")


def _beside(what: str) -> str:
    """Return the store that is used where none is named."""
    return _FILE if what == "-" else str(Path(os.path.abspath(what)).parent / _FILE)


ALARM, ASIDE = 3, 4  # exit statuses
_PAGE = 60.0  # seconds between two pages, where there is no alarm
_FLUSH, _LEAVE = 70.0, 5.0  # seconds for the last deliveries, at the end and when asked to stop


def say(line: str) -> None:
    """Say a line to the person at the terminal."""
    print(f"safecal: {visible(line)}", file=sys.stderr, flush=True)


def _print(line: str) -> None:
    """Print a line; a watcher goes on when no one reads it any more."""
    lost_before = getattr(sys.stdout, "lost", None)
    sys.stdout.write(f"{visible(line)}\n")  # in one piece, so that a kill leaves whole lines or none
    sys.stdout.flush()
    if lost_before is None and isinstance(getattr(sys.stdout, "lost", None), BrokenPipeError):
        say("no one reads standard output any more; the watch goes on.")


def write_page(store: Store, path: str) -> None:
    """Write the page with the history."""
    from ..watch.page import history_page

    write_atomically(path, history_page(store.history()))


class StopNow(BaseException):
    """Raised only while nothing is at work."""


@final
class Stopping:
    """Listens to SIGTERM and SIGINT.

    While a batch is at work, a signal is only noted, in ``signal_number``; while we wait, it ends the waiting with
    `StopNow`.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._idle = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen as long as the context lives; then restore what was there."""
        handlers = {}
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                handlers[number] = signal.signal(number, self._heard)
            except ValueError:  # not in the main thread: whoever started us sees to signals
                break
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _heard(self, number: int, _: Any) -> None:
        self.signal_number = number
        if self._idle:
            raise StopNow

    def wait(self, action: Callable[[], T]) -> T:
        """Do something that may take long, and may be broken off."""
        self._idle = True
        try:
            if self.signal_number is not None:
                raise StopNow
            return action()
        finally:
            self._idle = False

    def sleep(self, seconds: float) -> None:
        """Sleep, or stop."""
        self.wait(lambda: time.sleep(seconds))


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
    logs = {
        "over": last_point.log_over,
        "under": last_point.log_under,
        "up": last_point.log_up,
        "down": last_point.log_down,
    }
    logs |= {"change": last_point.log_change, "to under": last_point.log_other}
    evidence = ", ".join(f"{power_of_ten(log)} {name}" for name, log in logs.items() if log is not None)
    return f"taken: {taken.batch}: {rows} {'row' if rows == 1 else 'rows'}, ECD {total.ecd:+.4f}; e-values {evidence}"
