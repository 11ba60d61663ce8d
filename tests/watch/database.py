"""A PostgreSQL server of our own, which can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def _programs() -> Path | None:
    """Return the folder of the server's programs."""
    program = shutil.which("initdb")
    places = [Path(program).resolve().parent] if program else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _as_a_user() -> dict[str, Any]:
    """Return how to run a program that refuses to run as root."""
    if os.getuid() != 0:
        return {}
    return {"user": 65534, "group": 65534, "extra_groups": []}


class Database:
    """A server on a socket in a folder of its own."""

    def __init__(self, programs: Path, folder: str) -> None:
        self._programs, self._folder, self._who = programs, folder, _as_a_user()
        self.url = f"postgresql://watcher@/postgres?host={folder}"
        if self._who:
            os.chown(folder, self._who["user"], self._who["group"])
        words = [programs / "initdb", "-D", f"{folder}/data", "-U", "watcher", "-A", "trust", "-E", "UTF8"]
        subprocess.run([*words, "--locale=C"], check=True, capture_output=True, cwd=folder, **self._who)
        self.start()

    def start(self) -> None:
        folder = self._folder
        words = [self._programs / "postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses="]
        with open(f"{folder}/log", "ab") as log:
            self._process = subprocess.Popen(
                [*words, "-c", "fsync=off"], cwd=folder, stdout=log, stderr=log, **self._who
            )
        for _ in range(300):
            if subprocess.run([self._programs / "pg_isready", "-q", "-h", folder], check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError(Path(f"{folder}/log").read_text())

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stop it at once; with SIGINT it ends its connections first, as when it is restarted."""
        self._process.send_signal(number)
        self._process.wait(30)


@contextmanager
def database() -> Iterator[Database]:
    """Start a server, and stop it in the end."""
    programs = _programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server; on Debian: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # short: the path of a socket has at most 107 characters
        server = Database(programs, name)
        try:
            yield server
        finally:
            server.stop()  # nothing here is worth keeping
