"""`safecal watch`, as one types it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from safecal.watch.databases import SqliteStore

from .feeding import columns, put, text

pl = pytest.importorskip("polars", minversion="1.38")

SAFECAL = [sys.executable, "-m", "safecal"]
COLUMNS = ("--y", "y", "--logits", "logit")


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder that holds one named ``in``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.fixture
def watch(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command in this process."""
    from safecal.cli import main

    def run(*words: object) -> Said:
        capsys.readouterr()
        status = main(["watch", *map(str, words)])
        return Said(status, *capsys.readouterr())

    return run


def _once(watch: Any, *words: object) -> Said:
    result: Said = watch("in", *COLUMNS, "--once", "--poll", "0.01", *words)
    return result


def _fill(folder: Path, days: int, *, change: int = 10**6, rows: int = 300) -> None:
    rng = np.random.default_rng(0)
    for day in range(days):
        drift = 1.0 if day < change else 3.0
        name = f"{day:02d}{('.csv', '.jsonl', '.parquet')[day % 3]}"
        put(folder / name, columns(rng, rows, drift=drift, day=f"2026-01-{day + 1:02d}"))


def _piped(content: str, *words: str, status: int = 0) -> Said:
    result = subprocess.run(
        [*SAFECAL, "watch", "-", *words], input=content, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert result.returncode == status, result.stderr
    return Said(result.returncode, result.stdout, result.stderr)


def _rows(store: str = "safecal-watch.sqlite") -> int:
    with SqliteStore(store) as kept:
        return kept.monitor().summary.n


def test_limits_are_those_of_the_monitor_and_stay(here: Path, watch: Any) -> None:
    _fill(here / "in", 1)
    assert _once(watch, "--threshold", "0.05", "--max-temperature", "2", "--rule", "average").status == 0
    with SqliteStore("safecal-watch.sqlite") as kept:
        limits = kept.monitor().limits
    assert (limits.threshold, limits.max_temperature, limits.max_ratio, limits.rule) == (0.05, 2.0, 3.0, "average")
    assert _once(watch, "--threshold", "0.05").status == 0
    other = _once(watch, "--threshold", "0.2")
    assert other.status == 2
    assert "was begun with `--threshold 0.05`; got `--threshold 0.2`" in other.err
    assert "`--threshold` must be a number above 0" in _once(watch, "--threshold", "-1", "--store", "new.sqlite").err


def test_a_folder_is_taken_once(here: Path, watch: Any) -> None:
    _fill(here / "in", 4)
    result = _once(watch)
    assert result.status == 0
    assert [line.split(": ")[1] for line in result.out.splitlines()] == ["00.csv", "01.jsonl", "02.parquet", "03.csv"]
    assert "the state is kept in" in result.err
    again = _once(watch)
    assert (again.status, again.out) == (0, "")
    assert _rows() == 1200


def test_an_alarm_has_a_status_of_its_own(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    result = _once(watch, "--window-column", "day", "--run-length", "10000")
    assert result.status == 3
    alarm = r"ALARM: changed at about row \d+, too sharp: ECD [\d.]+, beyond the limit of 0.1; .* \(window 2026-01-04\)"
    assert re.search(alarm, result.out)
    assert _once(watch).status == 0


def test_changes_both_ways_are_looked_for_if_asked(here: Path, watch: Any) -> None:
    rng = np.random.default_rng(0)
    for day in range(4):
        put(here / "in" / f"{day}.csv", columns(rng, 1000, drift=1.0 if day < 2 else 0.4))
    result = _once(watch, "--run-length", "100000", "--detect", "both", "--report", "page.html")
    assert result.status == 3
    with SqliteStore("safecal-watch.sqlite") as store:
        assert store.monitor().detect == "both"
        (change,) = (raised.alarm for raised in store.alarms() if raised.alarm.kind == "change")
        assert all(point.log_other is not None for point in store.history().points)
    assert change.direction == "under-confident"
    shown = watch("status").out
    assert "to under" in shown.splitlines()[0]
    assert "!" in shown.splitlines()[1]
    page = (here / "page.html").read_text()
    assert "to under-confident" in page
    assert "Did it change?" in page
    refused = _once(watch, "--detect", "over")
    assert refused.status == 2
    assert "was begun with `--detect both`; got `--detect over`" in refused.err


def test_what_is_set_aside_or_left_has_one_too(here: Path, watch: Any) -> None:
    _fill(here / "in", 1)
    (here / "in" / "bad.csv").write_text("y,logit\n1,garbage\n")
    (here / "in" / "cut.parquet").write_bytes(b"PAR1 and no end")
    result = _once(watch)
    assert result.status == 4
    assert "set aside: bad.csv: `logit` must be a number; got 'garbage' at row 0" in result.err
    assert "set aside: cut.parquet: " in result.err
    shown = watch("status").out
    assert re.search(r"set aside +2\n  bad.csv, all of it: `logit` must be", shown)
    (here / "in" / "bad.csv").write_text("y,logit\n1,0.5\n")
    assert _once(watch).status == 0
    status = watch("status").out
    assert re.search(r"set aside +1\n", status)
    assert max(map(len, status.splitlines())) <= 80
    assert re.search(r"\n  alarm from( +\+\d\.\d\d)+\nevidence in powers of ten: ", status)


def test_bad_rows_on_request(here: Path, watch: Any) -> None:
    (here / "in" / "a.csv").write_text("y,logit\n1,garbage\n0,0.1\n")
    assert _once(watch).status == 4
    assert _once(watch, "--bad-rows", "quarantine").status == 0
    result = _once(watch, "--bad-rows", "quarantine", "--retry")
    assert result.status == 4
    assert "1 row, ECD" in result.out
    assert "set aside: a.csv, row 0, counting from 0: `logit` must be a number; got 'garbage'.\n" in result.err


def test_other_settings_are_refused(here: Path, watch: Any) -> None:
    _fill(here / "in", 1)
    assert _once(watch, "--alpha", "0.01").status == 0
    result = _once(watch, "--alpha", "0.05")
    assert result.status == 2
    assert "was begun with `--alpha 0.01`; got `--alpha 0.05`" in result.err
    assert _once(watch, "--by", "site").status == 2
    assert _once(watch).status == 0


def test_status_tells_of_everything(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    result = _once(watch, "--by", "site", "--run-length", "10000", "--pos-label", "1")
    assert result.status == 3
    shown = watch("status")
    assert shown.status == 0
    assert re.search(r"all rows +1800 +\+0\.\d{4} ", shown.out)
    assert re.search(r"north +\d+", shown.out)
    assert "last batch      05.parquet" in shown.out
    assert "has not occurred" not in shown.out
    assert watch("status", "--store", "none.sqlite").status == 2


def test_a_label_that_never_occurs_is_told(here: Path, watch: Any) -> None:
    (here / "in" / "a.csv").write_text("y,logit\nno,0.5\n")
    result = _once(watch, "--pos-label", "yess")
    assert result.status == 0
    assert "the label 'yess' of `--pos-label` has not occurred yet" in result.err
    assert "the label 'yess' of `--pos-label` has not occurred yet" in watch("status").out


def test_acknowledge_looks_for_the_next_change(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    _once(watch, "--by", "site", "--run-length", "10000")
    assert "!" in watch("status").out
    for words in ((), ("--group", "north"), ("--group", "south")):
        assert "looks for the next change in" in watch("acknowledge", *words).out
    assert "!" not in watch("status").out
    assert "There are north, south." in watch("acknowledge", "--group", "west").err


def test_a_command_hears_of_each_alarm_also_when_it_failed_at_first(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    result = _once(watch, "--run-length", "10000", "--on-alarm", "false")
    assert result.status == 3
    assert "an alarm was not delivered by command, and will be tried again" in result.err
    result = _once(watch, "--on-alarm", "false")
    assert result.status == 2
    result = _once(watch, "--on-alarm", "cat >> heard.jsonl")
    assert result.status == 0
    heard = [json.loads(line) for line in (here / "heard.jsonl").read_text().splitlines()]
    assert {alarm["kind"] for alarm in heard} == {"since the start", "change"}
    assert _once(watch, "--on-alarm", "cat >> heard.jsonl").status == 0
    assert len((here / "heard.jsonl").read_text().splitlines()) == len(heard)


def test_the_page(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    assert _once(watch, "--window-column", "day", "--report", "history.html").status == 3
    assert "<html" in (here / "history.html").read_text()
    (here / "history.html").unlink()
    assert watch("status", "--report", "history.html").status == 0
    assert "<html" in (here / "history.html").read_text()


REFUSED: dict[str, tuple[list[str], str]] = {
    "no folder": (["none"], "none is not a folder"),
    "batch rows of a folder": (["in", "--batch-rows", "5"], "`--batch-rows` is for standard input"),
    "ids and sizes": (["-", "--batch-column", "b", "--every", "5"], "leave out `--batch-rows` and `--every`"),
    "poll": (["in", "--poll", "0"], "`--poll` must be a number above 0"),
    "alpha": (["in", "--alpha", "2"], "`--alpha`"),
    "group": (["in", "--group", "x"], "`--group` belongs to `safecal watch acknowledge`"),
    "webhook": (["in", "--webhook", "ftp://x"], "must be an http or https address"),
    "folder of the report": (["in", "--report", "none/x.html"], "the folder of none/x.html does not exist"),
    "folder of the store": (["in", "--store", "none/x.sqlite"], "the folder of none/x.sqlite does not exist"),
    "two forms": (["in", "--prob", "p", "--once", "--poll", "0.01"], "two forms of one prediction"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_words_that_cannot_be(case: str, here: Path, watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    words, message = REFUSED[case]
    _fill(here / "in", 1)
    result = watch(*words, *COLUMNS)
    assert result.status == 2
    assert message in result.err


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["csv", pytest.param("jsonl", marks=pytest.mark.no_cover)])
def test_standard_input(kind: str, here: Path) -> None:
    content = text(columns(np.random.default_rng(0), 250), kind)
    result = _piped(content, *COLUMNS, "--batch-rows", "100")
    assert len(result.out.splitlines()) == 3
    again = _piped(content, *COLUMNS, "--batch-rows", "80")
    assert again.out == ""
    assert "3 batches came again; they count once." in again.err
    assert _rows() == 250


@pytest.mark.proof
def test_standard_input_with_ids(here: Path) -> None:
    rows = columns(np.random.default_rng(1), 90)
    frame = pl.DataFrame(rows).with_columns(batch=pl.Series(["x"] * 30 + ["y"] * 60))
    words = (*COLUMNS, "--batch-column", "batch")
    _piped(frame.write_csv(), *words)
    _piped(frame[30:].write_csv(), *words)
    assert _rows() == 90
    result = _piped(frame[30:80].write_csv(), *words, status=4)
    assert "set aside: y: it was counted before, with other content" in result.err
    assert _rows() == 90


@pytest.mark.proof
def test_garbage_on_standard_input(here: Path) -> None:
    content = text(columns(np.random.default_rng(0), 99), "jsonl") + "garbage\n"
    result = _piped(content, *COLUMNS, "--batch-rows", "50", status=4)
    assert len(result.out.splitlines()) == 1
    assert _rows() == 50
    _piped(content, *COLUMNS, "--bad-rows", "quarantine", "--retry", "--batch-rows", "50", status=4)
    assert _rows() == 99


@contextmanager
def _running(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*SAFECAL, "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_watcher_at_work(here: Path, watch: Any) -> None:
    _fill(here / "in", 6, change=3)
    words = ("in", *COLUMNS, "--poll", "0.05", "--run-length", "10000", "--prometheus", "0", "--store", "w.sqlite")
    with _running(*words) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        metrics = re.search(r"http://127.0.0.1:\d+/metrics", process.stderr.readline())
        assert metrics is not None
        assert any(line.startswith("taken: 05") for line in process.stdout)
        with urllib.request.urlopen(metrics[0]) as answer:
            assert b"safecal_rows_total 1800" in answer.read()
        second = watch(*words[:-4], "--store", "w.sqlite")
        assert second.status == 2
        assert "w.sqlite is locked: another watcher is at work on it" in second.err
        assert re.search(r"all rows +1800", watch("status", "--store", "w.sqlite").out)
        asked = watch("acknowledge", "--store", "w.sqlite").out
        assert "asked the running watcher" in asked
        assert "acknowledged: all rows" in process.stderr.readline()
        assert "!" not in watch("status", "--store", "w.sqlite").out
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_stream_that_is_told_to_stop(here: Path) -> None:
    content = text(columns(np.random.default_rng(0), 150), "jsonl")
    with _running("-", *COLUMNS, "--batch-rows", "100") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(content)
        process.stdin.flush()
        assert process.stdout.readline().startswith("taken: input:0:100:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "asked to stop" in process.stderr.read()
    _piped(content, *COLUMNS, "--batch-rows", "100")
    assert _rows() == 150


@pytest.mark.proof
def test_time_cuts_a_live_stream(here: Path) -> None:
    content = text(columns(np.random.default_rng(0), 5), "jsonl")
    with _running("-", *COLUMNS, "--every", "0.2") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(content)
        process.stdin.flush()
        assert process.stdout.readline().startswith("taken: input:0:5:")
        process.stdin.close()
        process.stdin = None
        assert process.wait(30) == 0


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))
from safecal.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_disk_without_room(here: Path, watch: Any) -> None:
    _fill(here / "in", 60, rows=20)
    words = ["watch", "in", *COLUMNS, "--once", "--poll", "0.01"]
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, *words], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    assert "the last batch was not counted.\n\nHint: make room and start again." in result.stderr
    acknowledged = len(result.stdout.splitlines())
    assert 0 < acknowledged < 60
    assert _rows() == 20 * acknowledged
    assert _once(watch).status == 0
    assert _rows() == 1200


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_names_that_look_like_patterns(suffix: str, here: Path, watch: Any) -> None:
    rng = np.random.default_rng(1)
    for name in ("a", "b", "*", "[ab]"):
        put(here / "in" / f"{name}{suffix}", columns(rng, 20))
    assert _once(watch).status == 0
    assert _rows() == 80


@pytest.mark.skipif(os.name != "posix", reason="names of POSIX")
def test_names_that_are_no_text(here: Path, watch: Any) -> None:
    path = put(here / "in" / "a.csv", columns(np.random.default_rng(1), 20))
    os.rename(path, os.fsencode(here / "in") + b"/\xff\x1b[31m.csv")
    result = _once(watch)
    assert result.status == 0
    assert "\x1b" not in result.out
    assert _once(watch).out == ""
    assert _rows() == 20


def test_impossible_outcomes_are_kept(here: Path, watch: Any) -> None:
    (here / "in" / "a.csv").write_text("y,p\n1,0\n0,0.5\n")
    result = watch("in", "--once", "--poll", "0.01")
    assert result.status == 3
    assert "infinite over" in result.out
    assert "infinite" in watch("status").out
    with SqliteStore("safecal-watch.sqlite") as store:
        assert store.history().monitor.summary.n_impossible == 1


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_watch_goes_on_when_no_one_reads(here: Path) -> None:
    _fill(here / "in", 6)
    with _running("in", *COLUMNS, "--once", "--poll", "0.01") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdout = None
        assert "no one reads standard output any more" in process.stderr.read()
        assert process.wait(30) == 0
    assert _rows() == 1800


def test_a_foreign_store(here: Path, watch: Any) -> None:
    (here / "safecal-watch.sqlite").write_text("not a database, but long enough to look at\n" * 100)
    before = (here / "safecal-watch.sqlite").read_bytes()
    result = _once(watch)
    assert result.status == 2
    assert "is not a store of safecal, or it is damaged" in result.err
    assert (here / "safecal-watch.sqlite").read_bytes() == before
