"""The command line, called in this process as a shell would call it."""

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Said(NamedTuple):
    """What a command said, and how it ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def safecal(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Return a function that runs the command line."""
    pytest.importorskip("polars", minversion="1.38")
    from safecal.cli import main

    def run(*words: object) -> Said:
        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:
            status = int(stop.code or 0)
        return Said(status, *capsys.readouterr())

    return run
