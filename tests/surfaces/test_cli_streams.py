"""Output that no one reads, a full disk, closed descriptors: the exit status of a command never passes by accident."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pl = pytest.importorskip("polars", minversion="1.38")
pytestmark = [
    pytest.mark.proof,
    pytest.mark.no_cover,  # a hundred processes of a few lines each
    pytest.mark.skipif(
        shutil.which("bash") is None or not Path("/dev/full").exists(), reason="a shell, and a disk that is always full"
    ),
]

RNG = np.random.default_rng(11)
N = 2000
LOG_ODDS = RNG.normal(0, 2, N)
FILES = {  # name -> rows, factor on the log-odds; each with its status behind --gate
    "unsafe": (N, 2.0),
    "safe": (N, 1.0),
    "few": (30, 1.0),
}
STATUS = {"unsafe": 3, "safe": 0, "few": 4}
FULL = "safecal: standard output could not be written: No space left on device.\n"
CLOSED = "safecal: standard output could not be written: it is closed.\n"


class Said(NamedTuple):
    status: int
    err: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    y = (np.random.default_rng(12).random(N) < 1 / (1 + np.exp(-LOG_ODDS))).astype(np.int64)
    for name, (n, factor) in FILES.items():
        columns = {"y": y[:n], "p": 1 / (1 + np.exp(-factor * LOG_ODDS[:n])), "g": np.arange(n)}
        pl.DataFrame(columns).write_csv(folder / f"{name}.csv")
    return folder


@pytest.fixture
def shell(folder: Path) -> Callable[..., Said]:
    """Return a function that types a line into a shell; the status is that of the first command of its last pipe."""

    def run(line: str, *, status: str = "${PIPESTATUS[0]}", **environment: str) -> Said:
        script = f'safecal() {{ "{sys.executable}" -m safecal "$@"; }}\n{line}\nexit "{status}"'
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=os.environ | environment, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=120,
        )  # fmt: skip
        return Said(done.returncode, done.stderr)

    return run


@pytest.mark.parametrize("rest", ["| head -1", "--json | true", "--json --by g | head -1"])
def test_a_reader_who_goes_away_changes_no_verdict(rest: str, shell: Callable[..., Said]) -> None:
    """Small output fits into the pipe; that of two thousand groups does not."""
    assert shell(f"safecal evaluate unsafe.csv --prob p --gate {rest}") == (3, "")


@pytest.mark.parametrize("name", FILES)
def test_every_verdict_keeps_its_status(name: str, shell: Callable[..., Said]) -> None:
    line = f"safecal evaluate {name}.csv --prob p --gate"
    if name != "unsafe":  # of which the test above holds it
        assert shell(f"{line} | true") == (STATUS[name], "")
    assert shell(f"{line} > /dev/full") == (STATUS[name] or 2, FULL)
    assert shell(f"{line} >&-") == (STATUS[name] or 2, CLOSED)
    assert shell(f"{line} 2>&-") == (STATUS[name], "")


def test_pipefail_sees_the_gate(shell: Callable[..., Said]) -> None:
    line = "set -o pipefail; safecal evaluate unsafe.csv --prob p --gate | true"
    assert shell(line, status="$?") == (3, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_large_output_on_a_full_disk(unbuffered: str, shell: Callable[..., Said]) -> None:
    line = "safecal evaluate {}.csv --prob p --gate --json --by g > /dev/full"
    assert shell(line.format("unsafe"), PYTHONUNBUFFERED=unbuffered) == (3, FULL)
    assert shell(line.format("safe"), PYTHONUNBUFFERED=unbuffered) == (2, FULL)


def test_where_nothing_can_be_said_the_status_still_is(shell: Callable[..., Said]) -> None:
    for rest in ("> /dev/full 2> /dev/full", "<&- >&- 2>&-"):
        assert shell(f"safecal evaluate unsafe.csv --prob p --gate {rest}") == (3, "")
        assert shell(f"safecal evaluate safe.csv --prob p --gate {rest}") == (2, "")


def test_what_is_said_beside_the_output_decides_nothing(shell: Callable[..., Said], folder: Path) -> None:
    rows = (folder / "unsafe.csv").read_text() + "1,,7\n"
    (folder / "gap.csv").write_text(rows)
    line = "safecal evaluate gap.csv --prob p --drop-missing --gate --json"
    for rest in ("2>&-", "2> /dev/full", "2> >(true)"):
        assert shell(f"{line} > said.json {rest}") == (3, "")
        assert (folder / "said.json").read_text().startswith("{")  # the note on rows left out has not come here
    for rest in ("2>&-", "2> /dev/full"):
        assert shell(f"safecal evaluate none.csv {rest}") == (2, "")
        assert shell(f"safecal nonsense {rest}") == (2, "")


def test_files_that_cannot_be_written_leave_the_verdict(shell: Callable[..., Said], folder: Path) -> None:
    (folder / "full.svg").unlink(missing_ok=True)
    (folder / "full.svg").symlink_to("/dev/full")
    for option, place in (("--report", "/dev/full"), ("--plot", "full.svg")):
        said = f"safecal: the system refused '{place}': No space left on device.\n"
        assert shell(f"safecal evaluate unsafe.csv --prob p --gate {option} {place}") == (3, said)
        assert shell(f"safecal evaluate safe.csv --prob p --gate {option} {place}") == (2, said)
    said = "safecal: the system refused '/dev/stdout': Broken pipe.\n"
    assert shell("safecal evaluate unsafe.csv --prob p --gate --report /dev/stdout | true") == (3, said)
    assert shell("safecal evaluate safe.csv --prob p --gate --report /dev/stdout | true") == (2, said)


def test_a_report_is_written_though_no_one_reads_the_text(shell: Callable[..., Said], folder: Path) -> None:
    words = "--report page.html --plot page.svg"
    assert shell(f"safecal evaluate unsafe.csv --prob p --gate {words} | true") == (3, "")
    assert "</html>" in (folder / "page.html").read_text(encoding="utf-8")
    assert "</svg>" in (folder / "page.svg").read_text(encoding="utf-8")


def test_a_terminal_that_lacks_a_letter_changes_no_verdict(shell: Callable[..., Said], folder: Path) -> None:
    named = pl.read_csv(folder / "unsafe.csv").with_columns(g=pl.lit("Zürich"))
    named.write_csv(folder / "named.csv")
    line = "safecal evaluate named.csv --prob p --by g --gate > said.txt"
    assert shell(line, PYTHONIOENCODING="ascii") == (3, "")
    assert "Z\\xfcrich" in (folder / "said.txt").read_text()


COMMANDS = {
    "--help": "--help",
    "--version": "--version",
    "evaluate": "evaluate unsafe.csv --prob p",
    "compare": "compare safe.csv unsafe.csv --prob p",
    "recalibrate": "recalibrate unsafe.csv --prob p --save c.json --out out.csv",
    "demo": "demo --report demo.html",
    "paper": "paper table2-published",
    "watch status": "watch status --store kept.sqlite",
}


@pytest.fixture
def kept(folder: Path, shell: Callable[..., Said]) -> None:
    """Leave a store to ask for the status of."""
    if not (folder / "kept.sqlite").exists():
        line = "safecal watch - --prob p --store kept.sqlite < safe.csv"
        assert shell(line).status == 0


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_goes_through_the_same_place(name: str, shell: Callable[..., Said], folder: Path) -> None:
    for output in ("c.json", "out.csv", "demo.html"):
        (folder / output).unlink(missing_ok=True)
    assert shell(f"safecal {COMMANDS[name]} | true") == (0, "")
    if name == "recalibrate":
        assert (folder / "c.json").exists()
        assert (folder / "out.csv").exists()
    assert shell(f"safecal {COMMANDS[name]} > /dev/full") == (2, FULL)
    if name in ("--help", "recalibrate"):  # for the others it is the same, and each takes a second
        assert shell(f"safecal {COMMANDS[name]} >&-") == (2, CLOSED)


@pytest.mark.parametrize(("name", "status"), [("safe", 0), ("unsafe", 3)])
def test_a_watch_goes_on_and_keeps_its_status(
    name: str, status: int, shell: Callable[..., Said], folder: Path, tmp_path: Path
) -> None:
    line = f"safecal watch - --prob p --batch-rows 500 --store {tmp_path}/{{}}.sqlite < {name}.csv"
    said = shell(f"{line.format('gone')} | true")
    assert (said.status, said.err.count("no one reads")) == (status, 1)
    assert shell(f"{line.format('full')} > /dev/full") == (status or 2, FULL)
    assert shell(f"{line.format('closed')} >&-") == (status or 2, CLOSED)
    from safecal.watch.databases import SqliteStore

    for how in ("gone", "full", "closed"):
        with SqliteStore(tmp_path / f"{how}.sqlite") as store:
            assert store.monitor().summary.n == N


def test_an_alarm_command_is_run_where_everything_is_closed(shell: Callable[..., Said], folder: Path) -> None:
    (folder / "heard").unlink(missing_ok=True)
    words = "--store alarms.sqlite --on-alarm 'echo aside; cat > heard'"
    assert shell(f"safecal watch - --prob p {words} < unsafe.csv >&- 2>&-") == (3, "")
    assert (folder / "heard").read_text().startswith("{")


def test_closed_input_is_no_empty_input(shell: Callable[..., Said]) -> None:
    said = shell("safecal evaluate - --prob p --gate <&-")
    assert (said.status, said.err.startswith("safecal: standard input is closed.\n\nHint: ")) == (2, True)
    said = shell("safecal watch - --prob p --store none.sqlite <&-")
    assert (said.status, "Bad file descriptor" in said.err) == (2, True)
