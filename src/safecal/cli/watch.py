"""``safecal watch``: follow a deployed model, and tell when it becomes over-confident."""

import argparse
import os
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..errors import FileError, LockedError, OptionError
from ..judge.limits import Limits
from ..monitor import Monitor
from ..visible import visible
from ..watch.arrivals import KINDS
from ..watch.notifier import Notifier, channels
from ..watch.status import status_text
from ..watch.stores import open_store, store_files
from ..watch.waiting import Stopping
from ..watch.watcher import Watcher
from .apart import ReadFolder
from .outputs import check_outputs
from .watch_reading import BatchContent
from .watch_session import Session, say, write_page

__all__ = ["run"]

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
        print(f"asked the watcher that is at work to look for the next change in {who}.")
        return 0
    print(f"the next change in {who} is looked for from here on.")
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
    asked = {name: getattr(options, name) for name in _SETTINGS}
    given = {name: asked[name] for name in ("alpha", "run_length", "detect") if asked[name] is not None}
    limits = {name: x for name in Limits.__slots__ if (x := getattr(options, name)) is not None}
    asked |= limits
    monitor = Monitor(**given, grouped=bool(options.by), limits=Limits(**limits))
    stopping = Stopping()
    with ExitStack() as stack:
        stack.enter_context(stopping.listening())
        store = stack.enter_context(
            open_store(address, model=options.name, settings=asked, monitor=monitor, patience=options.patience)
        )
        told = {"command": options.on_alarm, "webhook": options.webhook}
        found = channels(**told) if any(told.values()) else {}
        apart = options.bad_rows == "quarantine"
        watcher = Watcher(store, lambda a, s: BatchContent(a, s, apart), say, retry=options.retry)
        session = Session(options, store, watcher, Notifier(store, found, say), stopping)
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
                f"{options.what} is no folder.\n\nHint: name a folder of files, `-` for standard input, or `status`."
            )
        if used:
            raise OptionError(f"`--{used[0].replace('_', '-')}` is for standard input; in a folder a file is a batch.")
    elif sys.stdin is not None and sys.stdin.isatty():
        raise FileError(
            "standard input is a terminal.\n\nHint: pipe rows into it: `tail -F log.jsonl | safecal watch -`."
        )
    if options.batch_column is not None and (options.every is not None or options.batch_rows is not None):
        raise OptionError(
            "with `--batch-column` a batch ends where its id changes; leave out `--batch-rows`, `--every`."
        )
    if options.group is not None:
        raise OptionError("`--group` belongs to `safecal watch acknowledge`.")


def _beside(what: str) -> str:
    """Return the store that is used where none is named."""
    return _FILE if what == "-" else str(Path(os.path.abspath(what)).parent / _FILE)
