"""Batches of predictions, and a nursery of watchers that can be killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# Imports once, then forks a watcher for each line it is sent: a kill then meets the work, and not the start of Python.
NURSERY = """
import importlib.util, os, sys
if importlib.util.find_spec("psycopg") is not None:
    import psycopg
import safecal.cli, safecal.cli.watch_session, safecal.watch.databases, polars
out, err, *words = sys.argv[1:]
print("ready", flush=True)
for line in sys.stdin:
    if line == "wait\\n":  # only now: until then the number of a watcher is its own, also after it has ended
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        continue
    pid = os.fork()
    if pid == 0:
        for number, name in ((1, out), (2, err)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        os.dup2(os.open(line.strip() or os.devnull, os.O_RDONLY), 0)
        try:
            status = safecal.cli.main(words)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            status = 99
        os._exit(status)
    print(pid, flush=True)
"""


class Nursery:
    """Starts watchers with the same words, one after another."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.out, self.err = folder / "out.txt", folder / "err.txt"
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(self.out), str(self.err), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._said() == "ready"

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _asked(self, line: str) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._said())

    def start(self, stdin: str = "") -> int:
        """Start a watcher and return its process id."""
        return self._asked(stdin)

    def ended(self) -> int:
        """Wait for the watcher, and return its exit status; that of a signal is negative."""
        return self._asked("wait")

    def killed(self, seconds: float, stdin: str = "") -> int:
        """Start a watcher, kill it after a while, and return how it ended."""
        pid = self.start(stdin)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        return self.ended()

    @property
    def tracebacks(self) -> int:
        """How often something was not told in words."""
        errors = self.err.read_text() if self.err.exists() else ""
        return errors.count("Traceback") + errors.count("Error(")

    def acknowledged(self) -> list[str]:
        """Return the batches that were told of."""
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        return [line.removeprefix("taken: ").rsplit(": ", 1)[0] for line in lines if line.startswith("taken: ")]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def columns(rng: np.random.Generator, n: int = 200, *, drift: float = 1.0, day: str = "2026-01-01") -> dict[str, Any]:
    """Return rows whose log-odds are ``drift`` times too large."""
    z = rng.normal(0, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return {"y": y, "logit": drift * z, "site": rng.choice(["north", "south"], n), "day": [day] * n}


def text(rows: dict[str, Any], kind: str = "csv") -> str:
    """Return rows as CSV or JSON Lines."""
    import polars as pl

    frame = pl.DataFrame(rows)
    return frame.write_csv() if kind == "csv" else frame.write_ndjson()


def put(path: Path, rows: dict[str, Any]) -> Path:
    """Write rows in the format of the name, and let the file appear whole."""
    import polars as pl

    part = path.with_name(f".{path.name}.part")
    frame = pl.DataFrame(rows)
    write = {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[path.suffix]
    write(part)
    os.replace(part, path)
    return path
