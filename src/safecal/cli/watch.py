"""``safecal watch``: follow a deployed model, and tell when it becomes over-confident.

What watches is imported when it is asked for, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

from ..errors import FileError, LockedError, OptionError, visible
from ..files import write_atomically
from .options import LIMITS, RULE_ABOUT, RULES, above, add_column_options, between, output, place, refused, whole
from .outputs import ReadFolder, check_outputs

if TYPE_CHECKING:
    from ..monitor import Monitor
    from ..watch.store import Store

__all__ = ["Stopping", "StopNow", "add_options", "run", "say", "store", "write_page"]

T = TypeVar("T")

_FILE = "safecal-watch.sqlite"
_SETTINGS = (
    "alpha", "run_length", "detect", "y", "prob", "logits", "pos_label", "label", "by", "clip", "window_column",
    "batch_column",
)  # fmt: skip


_EXAMPLES = """examples:
  safecal watch incoming/ --y label --prob score                   watch a folder; each file is a batch
  safecal watch incoming/ --once --report history.html             take what is there and stop, as cron needs
  tail -F log.jsonl | safecal watch - --every 60                   JSON Lines or CSV from standard input
  safecal watch incoming/ --by site --window-column day --on-alarm "mail -s alarm me@example.org"
  safecal watch incoming/ --store postgresql://me@db/models --name churn --prometheus 9109
  safecal watch status --store safecal-watch.sqlite
  safecal watch acknowledge --store safecal-watch.sqlite           look for the next change

Each batch counts once, however often it is sent, even if the watcher is killed. What cannot be read is set aside, with
a reason. A line is printed for each batch after it is safely stored. Exit status, if the watcher ends by itself: 0
all is well, 2 an error, 3 an alarm was raised, 4 no alarm, but something was set aside or is not yet complete."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``safecal watch``."""
    parser.epilog = _EXAMPLES
    what = "folder to watch; - for standard input; or `status`, or `acknowledge`"
    parser.add_argument("what", type=place, metavar="FOLDER", help=what)
    group = parser.add_argument_group("evidence", "Fixed when a store is created.")
    alpha = "probability that the evidence since the start ever raises a false alarm (default 0.05)"
    group.add_argument("--alpha", type=between(0, 1), help=alpha)
    between_alarms = "average number of rows between false alarms of a change (default 1000000)"
    group.add_argument("--run-length", type=above(1, 1e15), metavar="ROWS", help=between_alarms)
    side = "look for a change to over-confidence (default), or to under-confidence as well"
    group.add_argument("--detect", choices=("over", "both"), help=side)
    group.add_argument(
        "--by", action="append", metavar="COL", help="watch each group in this column, too; can be repeated"
    )
    window = "column with the window of each row, such as a date (default: the day on which the row came)"
    group.add_argument("--window-column", metavar="COL", help=window)
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group = parser.add_argument_group(
        "limits",
        "What pages and alarms call too much. The evidence does not depend on it. Fixed when a store is created.",
    )
    for option, limit in LIMITS.items():
        about = f"{limit.about} (default {limit.default:g})"
        group.add_argument(option, type=limit.read, metavar=limit.metavar, help=about)
    group.add_argument("--rule", choices=RULES, help=RULE_ABOUT)
    group = parser.add_argument_group("store")
    where = "SQLite file, or postgresql://... (default: safecal-watch.sqlite beside the folder; for -, here)"
    group.add_argument("--store", type=store, metavar="PATH|URL", help=where)
    group.add_argument(
        "--name", type=_printable_name, default="model", help="name of the model in the store (default %(default)s)"
    )
    wait = "how long to wait for another program that has locked the store (default 10)"
    group.add_argument("--patience", type=above(0, 86_400, included=True), default=10.0, metavar="SECONDS", help=wait)
    group = parser.add_argument_group("batches")
    form = "format of standard input (default: CSV or JSON Lines, by its first line)"
    group.add_argument("--format", choices=("csv", "tsv", "jsonl"), help=form)
    batch_rows = "standard input: end a batch after so many rows (default 10000)"
    group.add_argument("--batch-rows", type=whole(1, 10**8), metavar="N", help=batch_rows)
    time = "standard input: end a batch after this time, even if it has few rows"
    group.add_argument("--every", type=above(0), metavar="SECONDS", help=time)
    group.add_argument(
        "--batch-column", metavar="COL", help="standard input: column with the id of the batch of each row"
    )
    bad_rows = "rows that cannot be read: set the whole batch aside (default), or only these rows"
    group.add_argument("--bad-rows", choices=("refuse", "quarantine"), default="refuse", help=bad_rows)
    group.add_argument("--retry", action="store_true", help="try again the batches that were set aside")
    interval = "time between two looks into the folder (default 1)"
    group.add_argument("--poll", type=above(0), default=1.0, metavar="SECONDS", help=interval)
    group.add_argument(
        "--once", action="store_true", help="look into the folder twice, take the files that are complete, and stop"
    )
    group = parser.add_argument_group("notifications")
    command = "run this for each alarm; it reads the alarm as JSON from standard input"
    group.add_argument("--on-alarm", type=_some_text, metavar="COMMAND", help=command)
    group.add_argument("--webhook", type=_webhook, metavar="URL", help="post each alarm to this address, as JSON")
    group.add_argument(
        "--prometheus", type=whole(0, 65_535), metavar="PORT", help="serve metrics for Prometheus on this port"
    )
    host = "address to serve them on (default %(default)s)"
    group.add_argument("--prometheus-host", type=_some_text, default="127.0.0.1", metavar="HOST", help=host)
    group.add_argument(
        "--report", type=output, metavar="FILE", help="keep a page with the history up to date: one HTML file"
    )
    group.add_argument("--group", metavar="GROUP", help="with `acknowledge`: only this group (default: all rows)")
    add_column_options(parser)


def _webhook(text: str) -> str:
    """Read an address; one that is refused is not shown, since it may hold a secret."""
    from ..watch.channels import check_url

    try:
        return check_url(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).partition("` ")[2].removesuffix(".")) from None


def _some_text(text: str) -> str:
    """Read text that is not empty."""
    if not text.strip():
        raise refused("some text", text)
    return text


def _printable_name(text: str) -> str:
    """Read a name: one line that every store can hold, and every terminal show."""
    if not text.strip() or not text.isprintable() or len(text) > 200:
        raise refused("a name of 1 to 200 characters that can be printed", text)
    return text


def store(text: str) -> str:
    """Read where a store is: a file, or an address, which is not shown, since it may hold a password."""
    if "://" in text and not text.startswith(("postgresql://", "postgres://")):
        raise argparse.ArgumentTypeError("must be a file, or begin with postgresql://")
    return output(text)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.what == "status":
        from ..watch.databases import open_store, store_files
        from ..watch.words import status_text

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
    from .._sums.table_views import key_label
    from ..watch.databases import open_store, store_files

    address = options.store or _FILE
    check_outputs(store=store_files(address))
    with open_store(address, model=options.name, patience=options.patience) as store:
        group = _group(store.monitor(), options.group)
        store.request(group)
    who = "all rows" if group is None else visible(key_label(group))
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
    from .._sums.table_views import key_label

    for group in monitor.groups:
        if text in (str(group), key_label(group)) or (isinstance(group, tuple) and text == ",".join(map(str, group))):
            return group
    shown = ", ".join(map(key_label, monitor.groups[:10])) or "none"
    raise OptionError(f"`--group` must be one that has appeared; got {text!r}. There are {shown}.")


def _watch(options: argparse.Namespace) -> int:
    from ..monitor import Monitor
    from ..options import Limits
    from ..watch import Watcher
    from ..watch.channels import Notifier, channels
    from ..watch.databases import open_store
    from .watch_session import BatchContent, Session

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
        open_channels = channels(command=options.on_alarm, webhook=options.webhook)
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
    from ..watch import KINDS
    from ..watch.databases import store_files

    stream = options.what == "-"
    check_outputs(
        inputs={"standard input": "-"} if stream else {},
        folders=() if stream else [ReadFolder("FOLDER", options.what, KINDS)],
        report=options.report,
        store=store_files(address),
    )
    streamed = ("format", "batch_rows", "every", "batch_column")
    used = [name for name in streamed if getattr(options, name) is not None]
    if not stream:
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


def say(line: str) -> None:
    """Say a line to the person at the terminal."""
    print(f"safecal: {visible(line)}", file=sys.stderr, flush=True)


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
