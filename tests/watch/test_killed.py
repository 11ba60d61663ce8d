"""Killed at any moment, sent twice, out of order: each batch counts once, and none that was told of is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from safecal.monitor import Monitor
from safecal.watch.arrivals import Arrival, digest_of
from safecal.watch.history import History
from safecal.watch.stores.sqlite import SqliteStore
from safecal.watch.watcher import Watcher

from .feeding import Nursery, columns, put, text

pl = pytest.importorskip("polars", minversion="1.38")
if not hasattr(os, "fork"):
    pytest.skip("a watcher is forked, and this system cannot", allow_module_level=True)

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]
COLUMNS = ("--y", "y", "--logits", "logit")
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
            drift = 1.0 if len(self.names) < 150 else 1.6
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
    from safecal.cli.watch_reading import BatchContent

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
    from safecal.watch.arrivals import stamp_of

    return stamp_of(path.stat())


def _same(found: History, wanted: History) -> None:
    assert found.monitor.to_dict() == wanted.monitor.to_dict()
    assert [(p.batch, p.window, p.summary, p.log_over) for p in found.points] == [
        (p.batch, p.window, p.summary, p.log_over) for p in wanted.points
    ]
    assert [(r.alarm, r.batch) for r in found.alarms] == [(r.alarm, r.batch) for r in wanted.alarms]


def _kill_while_files_come(folder: Path, kills: int, seed: int) -> tuple[History, int]:
    feeder, store = Feeder(folder / "in", seed), folder / "watch.sqlite"
    words = ("watch", str(folder / "in"), "--store", str(store), *COLUMNS, *GROUPED, "--poll", "0.01")
    nursery = Nursery(folder, *words)
    try:
        for _ in range(kills):
            feeder.feed()
            assert nursery.killed(feeder.random.uniform(0.0, 0.2)) == -signal.SIGKILL, nursery.err.read_text()
        feeder.finish()
        _until_all_are_taken(nursery, len(feeder.names))
        acknowledged = nursery.acknowledged()
    finally:
        nursery.close()
    with SqliteStore(store) as kept:
        order, history = list(kept.batches("")), kept.history()
    assert sorted(order) == sorted(feeder.names)  # each once
    assert set(acknowledged) <= set(order)
    assert len(acknowledged) == len(set(acknowledged))
    assert history.monitor.summary.n == feeder.rows
    _same(history, _uninterrupted(order, folder / "in", folder / "again.sqlite"))
    return history, len(acknowledged)


def _until_all_are_taken(nursery: Nursery, batches: int) -> None:
    pid = nursery.start()
    for _ in range(3000):
        time.sleep(0.02)
        if _counted(nursery.out.parent / "watch.sqlite") == batches:
            break
    os.kill(pid, signal.SIGTERM)
    assert nursery.ended() == 0, nursery.err.read_text()


def _counted(store: Path) -> int:
    with SqliteStore(store) as kept:
        return len(list(kept.batches("")))


def test_sixty_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    history, acknowledged = _kill_while_files_come(tmp_path, 60, seed=2)
    assert len(history.alarms) > 0
    assert acknowledged > 60


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
        for _ in range(60):
            nursery.killed(dice.uniform(0.0, 0.25), str(path))
        nursery.start(str(path))
        assert nursery.ended() == 0, nursery.err.read_text()
        acknowledged = nursery.acknowledged()
    finally:
        nursery.close()
    with SqliteStore(store) as kept:
        order, monitor = list(kept.batches("")), kept.monitor()
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
