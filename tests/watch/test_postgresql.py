"""The store of a team, against a real PostgreSQL server that is started for these tests."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecal.errors import FileError

from .database import database
from .feeding import columns, put
from .store_laws import LAWS, SETTINGS, taken

pytest.importorskip("polars", minversion="1.38")
psycopg = pytest.importorskip("psycopg", minversion="3.2")
pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server on a socket in a folder of its own, and return its address."""
    with database() as server:
        yield server.url


@pytest.fixture
def address(server: str, request: pytest.FixtureRequest) -> str:
    """Return an empty database."""
    name = f"db{zlib.crc32(request.node.name.encode())}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.mark.parametrize("law", LAWS)
def test_laws(law: str, address: str) -> None:
    from safecal.watch.databases import PostgresqlStore

    LAWS[law](partial(PostgresqlStore, address, patience=0.5))


def test_several_models_share_a_database(address: str) -> None:
    from safecal.watch.databases import PostgresqlStore

    with (
        PostgresqlStore(address, model="one", settings={}) as one,
        PostgresqlStore(address, model="two", settings={}) as two,
    ):
        for store in (one, two):
            assert store.monitor().summary.n == 0
    with pytest.raises(FileError, match="knows nothing of a model named 'three'"):
        PostgresqlStore(address, model="three")


def test_errors_in_words(address: str, server: str) -> None:
    from safecal.watch.databases import PostgresqlStore

    with pytest.raises(FileError, match="there is no store at"):
        PostgresqlStore(address)
    with pytest.raises(FileError, match=r"cannot be reached: .*does not exist"):
        PostgresqlStore(server.replace("/postgres?", "/nowhere?"), settings={})
    with pytest.raises(FileError, match="cannot be reached") as caught:
        PostgresqlStore("postgresql://me:secret@127.0.0.1:1/db", settings={})
    assert "secret" not in str(caught.value)
    for url in ("postgresql://me:sec%40ret@[secret/db", "postgresql://me:sec@ret@127.0.0.1:1/db?password=sec"):
        with pytest.raises(FileError) as caught:
            PostgresqlStore(url, settings={})
        assert not any(word in str(caught.value) for word in ("sec@ret", "sec%40ret", ":sec"))


def test_a_connection_that_breaks_loses_nothing(address: str) -> None:
    from safecal.monitor import Monitor
    from safecal.watch.databases import PostgresqlStore

    def opened() -> Any:
        return PostgresqlStore(address, settings=SETTINGS, monitor=Monitor(grouped=True))

    with opened() as store:
        store.commit(taken(store, "a"))
        after = taken(store, "b")
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(FileError, match="cannot be reached"):
            store.commit(after)
    with opened() as store:
        assert list(store.batches("")) == ["a"]
        store.commit(taken(store, "b"))
        assert store.monitor().summary.n == 1000


def test_the_command_and_a_kill(address: str, tmp_path: Path) -> None:
    from safecal.watch.databases import PostgresqlStore

    rng, folder = np.random.default_rng(0), tmp_path / "in"
    folder.mkdir()
    for k in range(30):
        put(folder / f"{k:02d}.csv", columns(rng, 100))
    words = [sys.executable, "-m", "safecal", "watch", str(folder), "--store", address, "--poll", "0.05"]
    words += ["--y", "y", "--logits", "logit", "--window-column", "day"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        process.kill()
        lines += process.stdout.readlines()
    acknowledged = [line.split(": ")[1] for line in lines]
    with PostgresqlStore(address) as store:
        assert set(acknowledged) <= set(store.batches(""))
    for _ in range(100):  # the server notices that the watcher is gone, and lets go of its lock
        result = subprocess.run([*words, "--once"], capture_output=True, text=True, check=False)
        if "another watcher" not in result.stderr:
            break
        time.sleep(0.1)
    assert result.returncode == 0, result.stderr
    with PostgresqlStore(address) as store:
        assert len(list(store.batches(""))) == 30
        assert store.monitor().summary.n == 3000
    status = subprocess.run(
        [*words[:4], "status", "--store", address], capture_output=True, text=True, check=True
    ).stdout
    assert "3000" in status
