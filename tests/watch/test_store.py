"""The SQLite store: what it keeps, and what it says when it cannot."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from safecal.errors import FileError
from safecal.monitor import Monitor
from safecal.watch.databases import APPLICATION, SqliteStore

from .store_laws import LAWS, SETTINGS, exchange, taken

pytest.importorskip("polars", minversion="1.38")


def _store(path: Path, **more: Any) -> SqliteStore:
    return SqliteStore(path, settings=SETTINGS, monitor=Monitor(run_length=5000, grouped=True), **more)


@pytest.mark.parametrize("law", LAWS)
def test_laws(law: str, tmp_path: Path) -> None:
    LAWS[law](partial(SqliteStore, tmp_path / "watch.sqlite", patience=0.05))


def test_several_models_share_a_file(tmp_path: Path) -> None:
    for name, rows in (("one", 1), ("two", 2)):
        with _store(tmp_path / "watch.sqlite", model=name) as store:
            for k in range(rows):
                store.commit(taken(store, f"batch {k}"))
    for name, rows in (("one", 1), ("two", 2)):
        with SqliteStore(tmp_path / "watch.sqlite", model=name) as store:
            assert len(store.history().points) == rows
    with pytest.raises(FileError, match="knows nothing of a model named 'three'"):
        SqliteStore(tmp_path / "watch.sqlite", model="three")


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    _store(tmp_path / "watch.sqlite").close()
    connection = sqlite3.connect(tmp_path / "watch.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    connection.close()


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.commit()
    connection.close()


def _newer(path: Path) -> None:
    _store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.commit()
    connection.close()


def _damaged(path: Path) -> None:
    with _store(path) as store:
        for k in range(3):
            store.commit(taken(store, f"batch {k}"))
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):  # the header stays
        data[start : start + 2000] = b"\xa5" * 2000
    path.write_bytes(data)


BROKEN = {
    "text": (lambda path: path.write_text("y,p\n1,0.5\n" * 500), "is not a store of safecal, or it is damaged"),
    "foreign": (_foreign, "is a SQLite file of another program"),
    "newer": (_newer, "is of version 99"),
    "damaged": (_damaged, "damaged"),
    "cut": (lambda path: (_damaged(path), path.write_bytes(path.read_bytes()[:3000]))[0], "damaged"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(case: str, tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    make, message = BROKEN[case]
    make(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match=message):
        _store(path)
    with pytest.raises(FileError, match=message):
        SqliteStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("safecal_state", "monitor", b"\x00\xff"),
        ("safecal_state", "settings", 7),
        ("safecal_state", "changes", "many"),
        ("safecal_points", "document", b"{}"),
        ("safecal_alarms", "document", 1.5),
        ("safecal_batches", "digest", b"\x00"),
        ("safecal_batches", "batch", b"a"),
        ("safecal_batches", "model", b"model"),
        ("safecal_asides", "place", b"row 0"),
        ("safecal_asides", "reason", b"\xff"),
    ],
)
def test_sqlite_keeps_any_type_in_any_column_and_each_is_told(
    table: str, column: str, value: Any, tmp_path: Path
) -> None:
    opener = partial(SqliteStore, tmp_path / "watch.sqlite")
    with _store(tmp_path / "watch.sqlite") as store:
        store.commit(taken(store, "a", drift=5.0, asides=1))
    exchange(opener, table, column, value)
    with pytest.raises(FileError, match=rf"is damaged: .* {table}"):
        _ask_everything(tmp_path / "watch.sqlite")


def _ask_everything(path: Path) -> None:
    with _store(path) as store:
        store.known("a")
        list(store.batches(""))
        store.asides()
        store.history()


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "watch.sqlite").touch()
    with _store(tmp_path / "watch.sqlite") as store:
        assert store.monitor().summary.n == 0


def test_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"the folder of .* does not exist"):
        _store(tmp_path / "none" / "watch.sqlite")
    with pytest.raises(FileError, match="is a folder"):
        _store(tmp_path)
    with pytest.raises(FileError, match="there is no store at"):
        SqliteStore(tmp_path / "new")


def test_another_program_that_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    with _store(path, patience=0.05) as store:
        store.commit(taken(store, "a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(FileError, match=r"is locked by another program, for more than 0.05 s"):
            store.commit(taken_of(path))
        other.execute("ROLLBACK")
        other.close()
        store.commit(taken(store, "b"))
        assert list(store.batches("")) == ["a", "b"]


def taken_of(path: Path) -> Any:
    with SqliteStore(path) as reader:
        return taken(reader, "b")


def _commit_without_end(store: SqliteStore, counted: list[str]) -> None:
    for k in itertools.count():
        store.commit(taken(store, f"batch {k}"))
        counted.append(f"batch {k}")


def test_a_full_disk_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    with _store(path) as store:
        store.commit(taken(store, "a"))
        assert store._connection is not None
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages + 2}")
        counted = ["a"]
        with pytest.raises(FileError, match="is on a full disk; the last batch was not counted"):
            _commit_without_end(store, counted)
        assert list(store.batches("")) == counted
    with _store(path) as store:
        assert list(store.batches("")) == counted
        assert store.monitor().summary.n == 500 * len(counted)
        store.commit(taken(store, "there is room again"))


AS_NOBODY = """
import os, sys
from safecal.errors import FileError
from safecal.watch.databases import SqliteStore
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    SqliteStore(sys.argv[1], settings={})
except FileError as error:
    print(error)
if len(sys.argv) > 2:
    with SqliteStore(sys.argv[1]) as store:
        print("read", store.monitor().summary.n)
"""


@pytest.mark.skipif(os.name != "posix", reason="users and permissions of POSIX")
@pytest.mark.parametrize(
    "beside", ["a store", *(pytest.param(case, marks=pytest.mark.proof) for case in ("nothing", "a store of ours"))]
)
def test_a_read_only_folder(beside: str) -> None:
    """As a user whom permissions bind: root may write anywhere."""
    with tempfile.TemporaryDirectory() as name:  # its parents are open to that user, those of `tmp_path` may not be
        folder = Path(name)
        if beside != "nothing":
            _store(folder / "watch.sqlite").close()
            for path in folder.iterdir():
                path.chmod(0o444 if beside == "a store" else 0o666)
        folder.chmod(0o555)
        words = [
            sys.executable,
            "-c",
            AS_NOBODY,
            str(folder / "watch.sqlite"),
            *(["read"] if beside != "nothing" else []),
        ]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
    assert "cannot be written: the file or its folder is read-only" in result.stdout, result.stderr
    if beside != "nothing":
        assert "read 0" in result.stdout, result.stderr
