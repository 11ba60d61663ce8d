"""A watch in bad company: killed at any moment, its database restarted, rude webhooks, clients that sit there.

Each batch counts once, and none that was told of is lost. The counts are printed: `pytest -m "" -rP tests/hostile`.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import socket
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from watch.database import Database, database
from watch.feeding import Nursery, columns, put, text
from watch.rude import OK, Rude

from safecal.cli import main
from safecal.errors import FileError
from safecal.monitor import Monitor
from safecal.watch import Arrival, Watcher, digest_of
from safecal.watch.databases import SqliteStore, open_store
from safecal.watch.history import History

pl = pytest.importorskip("polars", minversion="1.38")
if not hasattr(os, "fork"):
    pytest.skip("a watcher is forked, and this system cannot", allow_module_level=True)

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]
COLUMNS = ("--y", "y", "--logits", "logit")
# A moment of which kills hit one in thirteen, or more, is hit by one of them nineteen times of twenty.
KILLS = 40
GROUPED = ("--by", "site", "--window-column", "day", "--run-length", "50000")


class Feeder:
    """Puts new files into a folder, in no order, resends some, and leaves some half-written for a while."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random, self.rng = folder, random.Random(seed), np.random.default_rng(seed)
        self.names: list[str] = []
        self.rows = 0
        self._half: tuple[Path, bytes] | None = None
        folder.mkdir()

    def feed(self) -> None:
        self.finish()
        for _ in range(self.random.randint(1, 4)):
            suffix = self.random.choice([".csv", ".jsonl", ".parquet"])
            path = self.folder / f"{self.random.randrange(10**9):09d}{suffix}"
            drift = 1.0 if len(self.names) < 50 else 1.6
            day = f"2026-01-{1 + len(self.names) // 40 + self.random.randint(0, 2):02d}"
            put(path, columns(self.rng, 100, drift=drift, day=day))
            self.names.append(path.name)
            self.rows += 100
        if self.random.random() < 0.5:
            self._resend()
        if self.random.random() < 0.3:
            self._write_half()

    def _resend(self) -> None:
        path = self.folder / self.random.choice(self.names)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(path.read_bytes())
        os.replace(part, path)

    def _write_half(self) -> None:
        path = self.folder / f"{self.random.randrange(10**9):09d}.parquet"
        put(path, columns(self.rng, 100))
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self._half = (path, whole)
        self.names.append(path.name)
        self.rows += 100

    def finish(self) -> None:
        """Write the rest of what is half-written."""
        if self._half is not None:
            path, whole = self._half
            with open(path, "ab") as file:
                file.write(whole[path.stat().st_size :])
            self._half = None


def _uninterrupted(order: list[str], folder: Path, store: Path) -> History:
    """Return what one watcher that is never killed makes of the same batches in the same order."""
    from safecal.cli.watch_session import BatchContent

    told: list[str] = []
    names = ("alpha", "run_length", "y", "prob", "logits", "by", "window_column")
    settings = dict.fromkeys(names) | {"y": "y", "logits": ["logit"], "by": ["site"], "window_column": "day"}
    monitor = Monitor(run_length=50_000, grouped=True)
    with SqliteStore(store, settings=settings, monitor=monitor) as kept:
        watcher = Watcher(kept, BatchContent, told.append)
        for name in order:
            path = folder / name
            assert watcher.take(Arrival(name, digest_of(path), path.suffix[1:], path, stamp=_stamp(path)))
        assert told == []
        return kept.history()


def _stamp(path: Path) -> str:
    from safecal.inputs.sources import stamp_of

    return stamp_of(path.stat())


def _same(found: History, wanted: History) -> None:
    assert found.monitor.to_dict() == wanted.monitor.to_dict()
    assert [(p.batch, p.window, p.summary, p.log_over) for p in found.points] == [
        (p.batch, p.window, p.summary, p.log_over) for p in wanted.points
    ]
    assert [(r.alarm, r.batch) for r in found.alarms] == [(r.alarm, r.batch) for r in wanted.alarms]


def _kill_while_files_come(folder: Path, address: str, seed: int) -> tuple[History, int]:
    feeder = Feeder(folder / "in", seed)
    words = ("watch", str(folder / "in"), "--store", address, *COLUMNS, *GROUPED, "--poll", "0.01")
    nursery = Nursery(folder, *words)
    tried = 0
    try:
        while tried < KILLS:
            feeder.feed()
            # A server may need a moment to notice that the last watcher is gone; until then the next is refused.
            status = nursery.killed(feeder.random.uniform(0.0, 0.2))
            assert status == -signal.SIGKILL or "another watcher" in nursery.err.read_text(), nursery.err.read_text()
            tried += status == -signal.SIGKILL
        _until_all_are_taken(nursery, address, feeder)
        acknowledged = nursery.acknowledged()
    finally:
        nursery.close()
    return _all_once(feeder, nursery, address, f"{tried} kills"), len(acknowledged)


def _all_once(feeder: Feeder, nursery: Nursery, address: str, tried: str) -> History:
    """Hold what a store has counted against what was fed, and print the counts."""
    acknowledged = nursery.acknowledged()
    with open_store(address) as kept:
        order, history = list(kept.batches("")), kept.history()
    lost = len(set(acknowledged) - set(order)) + len(set(feeder.names) - set(order))
    twice = len(order) - len(set(order)) + len(acknowledged) - len(set(acknowledged))
    kind = "PostgreSQL" if "://" in address else "SQLite"
    counts = f"lost {lost}, counted twice {twice}, tracebacks {nursery.tracebacks}"
    print(f"{kind}: {tried}, {len(order)} batches; {counts}")
    assert (lost, twice, nursery.tracebacks) == (0, 0, 0), nursery.err.read_text()
    assert sorted(order) == sorted(feeder.names)
    assert history.monitor.summary.n == feeder.rows
    _same(history, _uninterrupted(order, feeder.folder, feeder.folder.parent / "again.sqlite"))
    return history


def _until_all_are_taken(nursery: Nursery, address: str, feeder: Feeder) -> None:
    # There is always something left for the last watcher: once it is counted, the watcher listens to signals.
    feeder.feed()
    feeder.finish()
    batches, end = len(feeder.names), time.monotonic() + 300.0
    status = 2
    while status == 2 and time.monotonic() < end:  # refused, as long as the last one seems to be at work
        pid = nursery.start()
        while not _ended(pid) and _counted(address) < batches and time.monotonic() < end:
            time.sleep(0.2)
        if not _ended(pid):
            os.kill(pid, signal.SIGTERM)
        status = nursery.ended()
    assert status == 0, nursery.err.read_text()


def _ended(pid: int) -> bool:
    """Tell whether a watcher has ended; the nursery has not asked for its status yet."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _counted(address: str) -> int:
    try:
        with open_store(address) as kept:
            return len(list(kept.batches("")))
    except FileError:  # on a busy machine, each of those that were killed may have been too slow to make a store
        return 0


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    history, acknowledged = _kill_while_files_come(tmp_path, str(tmp_path / "watch.sqlite"), seed=2)
    assert len(history.alarms) > 0
    assert acknowledged > KILLS


@pytest.fixture
def stream(tmp_path: Path) -> tuple[Path, int]:
    rng = np.random.default_rng(5)
    path = tmp_path / "stream.jsonl"
    path.write_text(text(columns(rng, 3000), "jsonl"))
    return path, 3000


def test_a_stream_that_is_sent_again_after_each_kill_counts_once(tmp_path: Path, stream: tuple[Path, int]) -> None:
    path, rows = stream
    store, dice = tmp_path / "watch.sqlite", random.Random(3)
    words = ("watch", "-", "--store", str(store), *COLUMNS, "--window-column", "day")
    # Time is up after every few rows: the cuts are never twice the same by themselves.
    nursery = Nursery(tmp_path, *words, "--batch-rows", "300", "--every", "0.00005")
    try:
        for _ in range(KILLS):
            nursery.killed(dice.uniform(0.0, 0.25), str(path))
        nursery.start(str(path))
        assert nursery.ended() == 0, nursery.err.read_text()
        acknowledged = nursery.acknowledged()
    finally:
        nursery.close()
    with SqliteStore(store) as kept:
        order, monitor = list(kept.batches("")), kept.monitor()
    lost, twice = rows - monitor.summary.n, len(acknowledged) - len(set(acknowledged))
    print(f"a stream sent again: {KILLS} kills, {rows} rows; lost {lost}, counted twice {twice}, "
          f"tracebacks {nursery.tracebacks}")  # fmt: skip
    assert nursery.tracebacks == 0
    assert set(acknowledged) <= set(order)
    assert len(acknowledged) == len(set(acknowledged))
    assert monitor.summary.n == rows
    frame = pl.read_ndjson(path)
    whole = Monitor()
    whole.update(frame["y"].to_numpy(), logits=frame["logit"].to_numpy())
    assert monitor.summary.ecd == pytest.approx(whole.summary.ecd, rel=1e-12)
    assert monitor.log_e_value() == pytest.approx(whole.log_e_value(), rel=1e-9)


def test_a_request_to_stop_finishes_the_batch(tmp_path: Path) -> None:
    feeder, store = Feeder(tmp_path / "in", 4), tmp_path / "watch.sqlite"
    for _ in range(20):
        feeder.feed()
    feeder.finish()
    words = ("watch", str(tmp_path / "in"), "--store", str(store), *COLUMNS, *GROUPED, "--poll", "0.01")
    nursery = Nursery(tmp_path, *words)
    try:
        pid = nursery.start()
        for _ in range(10_000):
            if nursery.acknowledged():
                break
            time.sleep(0.005)
        os.kill(pid, signal.SIGTERM)
        assert nursery.ended() == 0
        acknowledged = nursery.acknowledged()
    finally:
        nursery.close()
    with SqliteStore(store) as kept:
        assert list(kept.batches("")) == acknowledged
    assert "asked to stop" in nursery.err.read_text()


# PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    pytest.importorskip("psycopg", minversion="3.2")
    with database() as found:
        yield found


@pytest.fixture
def address(server: Database, request: pytest.FixtureRequest) -> str:
    """Return an empty database."""
    import psycopg

    name = f"db{zlib.crc32(request.node.name.encode())}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url.replace("/postgres?", f"/{name}?")


@pytest.mark.extra
def test_kills_on_postgresql_lose_nothing_and_count_nothing_twice(tmp_path: Path, address: str) -> None:
    _kill_while_files_come(tmp_path, address, seed=5)


@pytest.mark.extra
def test_a_database_that_is_restarted_ends_the_watch_in_words(tmp_path: Path, server: Database, address: str) -> None:
    feeder = Feeder(tmp_path / "in", 7)
    words = ("watch", str(tmp_path / "in"), "--store", address, *COLUMNS, *GROUPED, "--poll", "0.01")
    nursery = Nursery(tmp_path, *words)
    try:
        for restart, how in enumerate((signal.SIGINT, signal.SIGQUIT, signal.SIGINT)):  # in order, at once, in order
            for _ in range(4):
                feeder.feed()
            pid, told = nursery.start(), len(nursery.acknowledged())
            while len(nursery.acknowledged()) < told + 3:
                assert not _ended(pid), nursery.err.read_text()
                time.sleep(0.01)
            server.stop(how)
            assert nursery.ended() == 2
            assert nursery.err.read_text().count("cannot be reached") >= restart + 1
            server.start()
        _until_all_are_taken(nursery, address, feeder)
    finally:
        nursery.close()
    _all_once(feeder, nursery, address, "3 restarts")


# Rude webhooks, and clients that sit there


def _until(reached: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[int], None]:
    """Return a function that puts batches of an over-confident model into the folder."""
    (tmp_path / "in").mkdir()
    rng, count = np.random.default_rng(0), itertools.count()

    def feed(batches: int) -> None:
        for k in itertools.islice(count, batches):
            put(tmp_path / "in" / f"{k:03d}.csv", columns(rng, 200, drift=4.0))

    return feed


@pytest.mark.parametrize("way", ["silent", "drips", "answers with escapes"])
def test_a_rude_webhook_holds_up_no_row_and_loses_no_alarm(
    way: str, tmp_path: Path, rows: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    store = str(tmp_path / "watch.sqlite")
    words = ["watch", str(tmp_path / "in"), "--store", store, *COLUMNS, "--poll", "0.01", "--webhook"]
    with Rude(way) as server:
        nursery = Nursery(tmp_path, *words, f"http://me:s3cr3t@127.0.0.1:{server.port}/")
        try:
            pid = nursery.start()
            rows(5)
            _until(lambda: bool(server.heard))  # an alarm is on its way
            rows(20)
            began = time.monotonic()
            _until(lambda: len(nursery.acknowledged()) == 25, 9.0)  # sooner than one attempt may take
            taken = time.monotonic() - began
            os.kill(pid, signal.SIGTERM)
            began = time.monotonic()
            assert nursery.ended() == 0
            assert time.monotonic() - began < 9.0
        finally:
            nursery.close()
    said = nursery.err.read_text()
    assert "not delivered by webhook; the next run tries again." in said
    assert "s3cr3t" not in said + nursery.out.read_text()
    assert b"s3cr3t" not in Path(store).read_bytes()
    assert all(line.isprintable() for line in said.splitlines())
    with SqliteStore(store) as kept:
        raised = len(kept.alarms())
        assert len(kept.undelivered("webhook")) == raised > 0
    with Rude(OK) as server:
        assert main([*words, f"http://127.0.0.1:{server.port}/", "--once"]) == 0
        delivered = len(server.heard)
    print(f"a webhook that {way}: 20 batches beside it in {taken:.1f} s; {raised} alarms, lost {raised - delivered}, "
          f"tracebacks {nursery.tracebacks}")  # fmt: skip
    assert (delivered, nursery.tracebacks) == (raised, 0)


def test_clients_that_sit_there_hold_up_no_row(
    tmp_path: Path, rows: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    words = ("watch", str(tmp_path / "in"), "--store", str(tmp_path / "watch.sqlite"), *COLUMNS, "--poll", "0.01")
    nursery, held = Nursery(tmp_path, *words, "--prometheus", "0"), []
    try:
        pid = nursery.start()
        _until(lambda: nursery.err.exists() and "/metrics" in nursery.err.read_text())
        port = int(re.search(r":(\d+)/metrics", nursery.err.read_text())[1])  # type: ignore[index]
        rows(10)
        for k in range(100):
            held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
            held[-1].sendall((b"", b"GET /metrics HTTP/1.1\r\nX: ", b"x" * 10_000)[k % 3])
        rows(10)
        _until(lambda: len(nursery.acknowledged()) == 20)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"safecal_rows_total 4000" in answer.read()
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        os.kill(pid, signal.SIGTERM)
        assert nursery.ended() == 0
    finally:
        for one in held:
            one.close()
        nursery.close()
    print(f"100 clients that sit there: 20 of 20 batches, {threads} threads, tracebacks {nursery.tracebacks}")
    assert nursery.tracebacks == 0
    assert threads < 60
