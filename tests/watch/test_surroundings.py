"""What lies around a watcher may be hostile: links, files changed in place, clocks that go back, other users."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecal.cli import main
from safecal.cli.watch_session import BatchContent
from safecal.errors import FileError, LockedError
from safecal.files import write_atomically
from safecal.inputs.sources import stamp_of
from safecal.watch import Arrival, Watcher, digest_of
from safecal.watch.databases import SqliteStore, store_files
from safecal.watch.page import history_page
from safecal.watch.prometheus import exposition

from .feeding import columns, put, text

pytest.importorskip("polars", minversion="1.38")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")
COLUMNS = ("--y", "y", "--logits", "logit", "--poll", "0.01")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    """Go to a folder that holds one named ``in``, with a batch."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "a.csv", columns(rng))
    return tmp_path


# Links


@pytest.mark.parametrize("first", [True, False])
def test_a_store_behind_a_symbolic_link_has_one_lock(tmp_path: Path, first: bool) -> None:
    (tmp_path / "other").mkdir()
    store, link = tmp_path / "watch.sqlite", tmp_path / "other" / "link"
    link.symlink_to(store)
    one, two = (store, link) if first else (link, store)
    with SqliteStore(one, settings={}), pytest.raises(LockedError, match="another watcher is at work"):
        SqliteStore(two, settings={})
    with SqliteStore(two, settings={}):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "watch.sqlite", "watch.sqlite.lock"]
    assert [p.name for p in (tmp_path / "other").iterdir()] == ["link"]


def test_a_folder_behind_a_link_has_one_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with SqliteStore(tmp_path / "real" / "w", settings={}), pytest.raises(LockedError):
        SqliteStore(tmp_path / "link" / "w", settings={})


def test_a_store_with_two_names_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "watch.sqlite"
    with SqliteStore(store, settings={}):
        pass
    os.link(store, tmp_path / "again")
    for name in (store, tmp_path / "again"):
        with pytest.raises(FileError, match="has a second name"):
            SqliteStore(name, settings={})
        with pytest.raises(FileError, match="has a second name"):
            SqliteStore(name)
    (tmp_path / "again").unlink()
    with SqliteStore(store, settings={}):
        pass


def test_two_watchers_one_by_the_link_do_not_both_write(here: Path) -> None:
    Path("link").symlink_to("watch.sqlite")
    with SqliteStore("watch.sqlite", settings={}):
        assert main(["watch", "in", *COLUMNS, "--once", "--store", "link"]) == 2


def test_an_output_must_not_be_the_lock_behind_a_link(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link").symlink_to("watch.sqlite")
    assert {os.path.basename(f) for f in store_files("link")} >= {"link", "watch.sqlite.lock", "watch.sqlite-journal"}
    words = ["watch", "in", *COLUMNS, "--once", "--store", "link", "--report", "watch.sqlite.lock"]
    assert main(words) == 2
    assert "must not be the same file as `--store`" in capsys.readouterr().err


# Files that change


def test_a_file_changed_in_place_is_noticed_though_its_time_was_set_back(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["watch", "in", *COLUMNS, "--once", "--store", "w.sqlite"]
    assert main(words) == 0
    file = here / "in" / "a.csv"
    before = file.stat()
    content = bytearray(file.read_bytes())
    place = content.index(b"\n") + 1  # the outcome of the first row
    content[place] = ord("1") if content[place] == ord("0") else ord("0")
    with open(file, "r+b") as changed:
        changed.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    capsys.readouterr()
    assert main(words) == 4
    assert "set aside: a.csv: it was counted before, with other content" in capsys.readouterr().err


def test_a_file_that_is_touched_and_not_changed_counts_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", "in", *COLUMNS, "--once", "--store", "w.sqlite"]
    assert main(words) == 0
    os.chmod(here / "in" / "a.csv", 0o640)
    assert main(words) == 0
    assert "1 batch came again; it counts once." in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_file_that_changes_while_it_is_evaluated_is_an_error(kind: str, tmp_path: Path) -> None:
    from safecal.inputs.sources import open_source

    file = put(tmp_path / f"f.{kind}", columns(np.random.default_rng(0), 300))
    source = open_source(str(file), None)
    assert sum(len(part["y"]) for part in source.batches(["y"])) == 300
    with open(file, "ab") as more:
        more.write(b"\n")
    with pytest.raises(FileError, match=r"changed while it was read|cannot be read"):
        list(source.batches(["y"]))


# Clocks


def test_a_clock_that_goes_back_moves_no_row_to_a_wrong_window(tmp_path: Path) -> None:
    now = [datetime(2026, 3, 5, 12, tzinfo=UTC)]
    rng, days = np.random.default_rng(0), []
    with SqliteStore(tmp_path / "w", settings={"y": "y", "logits": ["logit"]}) as store:
        settings: Any = dict.fromkeys(("prob", "pos_label", "label", "by", "clip", "window_column"))
        store.settings = settings | {"y": "y", "logits": ["logit"]}
        watcher = Watcher(store, BatchContent, lambda line: None, lambda: now[0])
        for k, hours in enumerate((0, 30, -60, 1, 200, -500)):
            now[0] += timedelta(hours=hours)
            days.append(now[0].date().isoformat())
            path = put(tmp_path / f"{k}.csv", columns(rng, 100))
            assert watcher.take(Arrival(path.name, digest_of(path), "csv", path, stamp=stamp_of(path.stat())))
        history = store.history()
    assert [point.window for point in history.points] == days
    rows = {day: 100 * days.count(day) for day in days}
    assert {name: summary.n for name, (summary, _) in history.monitor.windows().items()} == rows
    assert list(history.monitor.windows()) == sorted(rows)
    assert history.monitor.summary.n == 600
    assert "NaN" not in exposition(history)
    assert "<html" in history_page(history)


# Other users


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with SqliteStore(tmp_path / "w", settings={}) as store, store._transaction():
            store._execute("UPDATE safecal_state SET changes = changes")
            modes = {p.name: _mode(p) for p in tmp_path.iterdir()}
        assert {"w", "w.lock"} <= set(modes)
        assert set(modes.values()) == {0o600}
        (tmp_path / "w").chmod(0o640)  # as its owner likes
        with SqliteStore(tmp_path / "w", settings={}):
            assert _mode(tmp_path / "w") == 0o640
    finally:
        os.umask(before)


@pytest.mark.proof
def test_rows_from_a_pipe_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    script = "import os, stat, sys; from safecal.inputs.sources import open_source; s = open_source('-', None); "
    script += "print(oct(stat.S_IMODE(os.stat(s.path).st_mode)))"
    rows = text(columns(np.random.default_rng(0), 20))
    words = [sys.executable, "-c", f"import os; os.umask(0o022); {script}"]
    assert subprocess.run(words, input=rows, capture_output=True, text=True, check=True).stdout == "0o600\n"


def test_what_takes_the_place_of_a_private_file_was_never_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "private"
    file.write_text("old")
    file.chmod(0o600)
    seen: list[int] = []
    before, real = os.umask(0o022), os.fdopen

    def watched(number: int, *words: Any) -> Any:
        seen.append(stat.S_IMODE(os.fstat(number).st_mode))
        return real(number, *words)

    monkeypatch.setattr(os, "fdopen", watched)
    try:
        write_atomically(file, "new")
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert _mode(file) == 0o600
