"""Bad input on the command line: one clear message each, status 2, no traceback, no partial file."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]
ROWS = "y,p\n1,0.9\n0,0.2\n1,0.7\n"


def _file(folder: Path, content: str | bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _npz(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "rows.npz", **arrays)
    return folder / "rows.npz"


def _cut_parquet(folder: Path) -> Path:
    whole = folder / "whole.parquet"
    pl.DataFrame({"y": [0, 1] * 500, "p": [0.5] * 1000}).write_parquet(whole)
    return _file(folder, whole.read_bytes()[:-40], "cut.parquet")


CATALOGUE: dict[str, tuple[Callable[[Path], Path], list[str], str]] = {
    "missing file": (lambda f: f / "none.csv", [], "none.csv does not exist"),
    "missing file beside others": (
        lambda f: (_file(f, ROWS, "pred.csv"), f / "none.csv")[1], [], "Hint: files in that folder: pred.csv."
    ),
    "folder": (lambda f: f, [], "is a folder, not a file"),
    "empty file": (lambda f: _file(f, ""), [], "rows.csv is empty"),
    "header only": (lambda f: _file(f, "y,p\n"), [], "has columns and no rows"),
    "binary junk": (lambda f: _file(f, bytes(range(256)) * 9), [], "is not text"),
    "junk of no zero bytes": (lambda f: _file(f, b"\xff\xfe\xfa" * 99 + b"\n\xff,\xfe\n"), [], "rows.csv"),
    "cut Parquet": (_cut_parquet, [], "cut.parquet cannot be read"),
    "text named Parquet": (lambda f: _file(f, ROWS, "rows.parquet"), [], "is not a Parquet file, whatever its name"),
    "text named npz": (lambda f: _file(f, ROWS, "rows.npz"), [], "is not an .npz file"),
    "cut npz": (lambda f: _file(f, b"PK\x03\x04 and no more", "rows.npz"), [], "cannot be read as .npz"),
    "unknown name": (lambda f: _file(f, ROWS, "rows.dat"), [], "--format csv"),
    "semicolons": (lambda f: _file(f, "y;p\n1;0.9\n"), [], "has no comma in its first line"),
    "tabs": (lambda f: _file(f, "y\tp\n1\t0.9\n"), [], "`--format tsv`"),
    "ragged": (lambda f: _file(f, "y,p\n1,0.9\n0,0.2,7,8\n"), [], "rows.csv cannot be read"),
    "missing column": (lambda f: _file(f, ROWS), ["--prob", "q"], "has no column 'q'"),
    "other case": (lambda f: _file(f, ROWS), ["--prob", "P"], "did you mean 'p'?"),
    "no known names": (lambda f: _file(f, "a,b\n1,0.9\n"), [], "safecal evaluate"),
    "two readings": (lambda f: _file(f, "y,p,logit\n1,0.9,2.2\n"), [], "'p', 'logit' could be"),
    "two outcomes": (lambda f: _file(f, "y,label,p\n1,1,0.9\n"), [], "'y', 'label' could be"),
    "words as probabilities": (
        lambda f: _file(f, "y,p\n1,0.9\n0,high\n1,low\n"), [],
        "`p` must be a number; got 'high' at row 1, counting from 0 (2 of 3 rows)",
    ),
    "the wrong column": (lambda f: _file(f, "y,p,name\n1,0.9,Ann\n"), ["--prob", "name"], "`name` must be a number"),
    "percentages": (
        lambda f: _file(f, "y,p\n1,90\n0,20\n"), [], "these look like percentages: divide the column by 100"
    ),
    "log-odds": (lambda f: _file(f, "y,p\n1,3.1\n0,-1.5\n"), [], "name the column with `--logits`"),
    "nulls": (
        lambda f: _file(f, "y,p\n1,\n0,0.2\n,0.3\n"), [],
        "`p` must not hold missing values; got nothing at row 0, counting from 0 (2 of 3 rows)",
    ),
    "NaN": (lambda f: _file(f, "y,p\n1,0.5\n0,NaN\n"), [], "(1 of 2 rows).\n\nHint: `--drop-missing` leaves"),
    "nothing but missing values": (
        lambda f: _file(f, "y,p\n1,\n0,\n"), ["--drop-missing"], "has missing values; nothing is left"
    ),
    "swapped columns": (
        lambda f: _file(f, ROWS), ["--y", "p", "--prob", "y"], "the columns seem swapped: `--y` names what happened."
    ),
    "classes from 1": (
        lambda f: _file(f, "y,a,b\n1,0.5,0.5\n2,0.5,0.5\n"), ["--y", "y", "--prob", "a", "--prob", "b"],
        "numbered from 1: subtract 1, or name the classes with `--label`, in their order.",
    ),
    "words as labels": (
        lambda f: _file(f, "y,p\nyes,0.9\nno,0.2\n"), [], "for example `--pos-label"
    ),
    "one class of words": (lambda f: _file(f, "y,p\nyes,0.9\nyes,0.2\n"), [], "for example `--pos-label yes`"),
    "a label that never occurs": (
        lambda f: _file(f, "y,p\nyes,0.9\nno,0.2\n"), ["--pos-label", "Yes"],
        "got 'Yes', which never occurs.\n\nHint: the labels that occur: 'no', 'yes'. Is it spelled as in the file?"
    ),
    "three labels": (
        lambda f: _file(f, "y,p\nyes,0.9\nno,0.2\nmaybe,0.5\n"), ["--pos-label", "yes"],
        "must hold the label of `--pos-label` ('yes') and at most one other; got 2 others: 'maybe', 'no'"
    ),
    "labels of another class": (
        lambda f: _file(f, "y,p_a,p_b\na,0.9,0.1\nc,0.2,0.8\n"), ["--prob", "p_a", "--prob", "p_b"],
        "name the classes in the order of their columns, with one `--label` for each"
    ),
    "a class that has no column": (
        lambda f: _file(f, "y,a,b\n0,0.9,0.1\n2,0.2,0.8\n"), ["--prob", "a", "--prob", "b"],
        "must be a class number from 0 to 1; got 2 at row 1",
    ),
    "rounded rows": (
        lambda f: _file(f, "y,a,b,c\n0,0.33,0.33,0.33\n1,0.0,0.5,0.5\n"),
        ["--prob", "a", "--prob", "b", "--prob", "c"],
        "these look rounded to 2 decimals: divide each row by its sum, and give `--clip 0.005`, because a rounded 0",
    ),
    "rows in float16": (
        lambda f: _npz(f, y=[0], p=np.array([[0.25, 0.25, 0.25, 0.255]], dtype=np.float16)),
        ["--y", "y", "--prob", "p"],
        "store logits, or divide each row by its sum in float32",
    ),
    "rows that do not sum to one": (
        lambda f: _file(f, "y,a,b\n0,0.9,0.2\n"), ["--prob", "a", "--prob", "b"], "divide each row by its sum"
    ),
    "ties": (lambda f: _file(f, "y,p\n0.5,0.9\n1,0.3\n"), [], "a tie or a share is not an outcome"),
    "both forms": (lambda f: _file(f, ROWS), ["--prob", "p", "--logits", "p"], "`--prob` and `--logits` are two"),
    "a score": (
        lambda f: _file(f, "late,score\n1,0.9\n0,0.2\n"), ["--y", "late"],
        "None has a name that says so: 'score' may be a probability (`--prob`), or log-odds (`--logits`).",
    ),
    "a pattern that no column has": (lambda f: _file(f, ROWS), ["--prob", "q_*"], "rows.csv has no column 'q_*'"),
    "an outcome that no name tells": (
        lambda f: _file(f, "late,z\n1,0.9\n0,0.2\n"), ["--logits", "z"], "--y COLUMN --logits z",
    ),
    "label for one column": (
        lambda f: _file(f, ROWS), ["--label", "a"], "`--label` names the classes of several columns; got one column."
    ),
    "negative weights": (
        lambda f: _file(f, "y,p,w\n1,0.9,1\n0,0.2,-1\n"), ["--sample-weight", "w"],
        "`w` must not be negative; got -1.0 at row 1",
    ),
    "rows without a cluster": (
        lambda f: _file(f, "y,p,c\n1,0.9,1\n0,0.2,\n1,0.3,2\n"), ["--cluster", "c"],
        "`c` must not hold missing values; got nothing at row 1, counting from 0 (1 of 3 rows)",
    ),
    "one cluster": (lambda f: _file(f, "y,p,c\n1,0.9,1\n0,0.2,1\n"), ["--cluster", "c"], "at least two clusters"),
    "no bins": (lambda f: _file(f, ROWS), ["--bins", "0"], "bins"),
    "level": (lambda f: _file(f, ROWS), ["--level", "95"], "`--level` must be a number between 0 and 1; got '95'"),
    "threshold": (lambda f: _file(f, ROWS), ["--threshold", "-1"], "`--threshold` must be a number above 0"),
    "a picture of no known kind": (lambda f: _file(f, ROWS), ["--plot", "x.bmp"], "`--plot` must end in .svg"),
    "a report in no folder": (lambda f: _file(f, ROWS), ["--report", "no/where/x.html"], "mkdir -p no/where"),
    "lists of unequal length": (
        lambda f: _file(f, '{"y": 0, "p": [0.5, 0.5]}\n{"y": 1, "p": [1.0]}\n', "rows.jsonl"), [],
        "must hold lists of one length, 2; got 1 at row 1",
    ),
    "half a line of JSON": (lambda f: _file(f, '{"y": 0, "p": 0.5}\n{"y": 1, "p"', "rows.jsonl"), [], "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("case", CATALOGUE)
def test_one_clear_message_and_no_file(case: str, tmp_path: Path, safecal: Safecal) -> None:
    make, words, message = CATALOGUE[case]
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    if "--report" not in words:
        words = [*words, "--report", str(tmp_path / "page.html")]
    said = safecal("evaluate", path, *words)
    assert (said.status, said.out) == (2, "")
    assert message in said.err
    assert said.err.startswith("safecal: ")
    assert "Traceback" not in said.err
    assert sorted(tmp_path.iterdir()) == before


def test_arrays_of_unequal_length(tmp_path: Path, safecal: Safecal) -> None:
    np.savez(tmp_path / "rows.npz", y=np.zeros(3), p=np.zeros(4))
    assert "must hold arrays with one row for each prediction" in safecal("evaluate", tmp_path / "rows.npz").err
    np.savez(tmp_path / "rows.npz", y=np.array([{}], dtype=object))
    assert "cannot be read as .npz" in safecal("evaluate", tmp_path / "rows.npz").err


def test_the_row_of_an_error_is_that_of_the_file(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safecal.inputs.sources.BATCH", 10)
    path = _file(tmp_path, "y,p\n" + "1,0.9\n" * 25 + "1,1.7\n")
    said = safecal("evaluate", path)
    assert "`p` must lie in [0, 1]; got 1.7 at row 25, counting from 0 (1 of 26 rows)." in said.err
    path = _file(tmp_path, "y,p\n" + "1,0.9\n" * 25 + "yes,0.7\n")
    assert "`y` must hold either numbers or words; got both" in safecal("evaluate", path).err


def test_without_polars_parquet_says_what_to_install(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": [1], "p": [0.9]}).write_parquet(path)
    monkeypatch.setitem(sys.modules, "polars", None)
    said = safecal("evaluate", path)
    assert said.status == 2
    assert 'Parquet files are read with Polars, which is not installed.\n\nHint: pip install "safecal[cli]"' in said.err


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = safecal("evaluate", _file(tmp_path, ROWS), "--plot", tmp_path / "x.svg")
    assert said.status == 2
    assert 'pip install "safecal[cli]"' in said.err


def test_a_terminal_is_no_file(safecal: Safecal, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert "safecal evaluate - < file.csv" in safecal("evaluate", "-").err


def test_a_terminal_shows_messages_in_lines_that_fit(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, "late,score,depot,region,kind,of,parcel\n1,0.9,e,n,a,b,c\n")
    plain = safecal("evaluate", path, "--y", "late").err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    said = safecal("evaluate", path, "--y", "late").err
    message, hint = said.split("\n\n")
    assert max(len(line) for line in message.splitlines() if str(path) not in line) <= 79
    assert " ".join(message.split()) == plain.split("\n\n")[0]
    assert hint == f"Hint: safecal evaluate {path} --y late --prob score\n"  # to be copied


@pytest.mark.parametrize("words", [["evaluate"], ["evaluate", "x", "--nonsense"], ["dance"], []])
def test_wrong_words_end_with_status_2(words: list[str], safecal: Safecal) -> None:
    said = safecal(*words)
    assert said.status == 2
    assert said.err.startswith("safecal: ")
    assert "Hint: " in said.err


def test_a_folder_that_may_not_be_written_to(tmp_path: Path, safecal: Safecal) -> None:
    path = _file(tmp_path, ROWS)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    if os.access(locked, os.W_OK):  # root may write anywhere: a folder that is gone will do
        locked.rmdir()
    said = safecal("evaluate", path, "--report", locked / "page.html")
    assert said.status == 2
    assert said.out == ""


def test_hints_tell_a_shell_what_to_type(tmp_path: Path, safecal: Safecal) -> None:
    impossible = _file(tmp_path, "y,p,day\n" + "1,0.0,a\n0,0.2,b\n1,0.9,c\n0,0.4,d\n" * 100, "impossible.csv")
    hints = [
        safecal("recalibrate", impossible, "--method", "safe").err,
        safecal("plan", impossible, "--cluster", "day").err,
    ]
    assert "Hint: pass `--logits`" in hints[0]
    assert "for example `--clip 1e-6`." in hints[0]
    assert "Hint: `safecal evaluate` with `--cluster` says how many more clusters would decide." in hints[1]


def test_an_unclear_column_is_named_in_a_command_that_can_be_typed(tmp_path: Path, safecal: Safecal) -> None:
    odd = _file(tmp_path, "label,score\n1,0.9\n0,0.2\n", "odd.csv")
    for command in ("evaluate", "plan", "recalibrate"):
        assert f"Hint: safecal {command} {odd} --y label --prob score\n" in safecal(command, odd).err
    (tmp_path / "incoming").mkdir()
    _file(tmp_path / "incoming", odd.read_bytes())
    for words in (
        ["compare", _file(tmp_path, ROWS), odd],
        ["watch", tmp_path / "incoming", "--once", "--poll", 0.01, "--store", tmp_path / "store.sqlite"],
        ["paper", "figures", "--out", tmp_path, "--predictions", odd],
    ):  # which need more words than these
        assert "Hint: add `--y label --prob score`." in safecal(*words).err


def test_texts_for_a_language_model_must_be_there_before_it_is_loaded(tmp_path: Path, safecal: Safecal) -> None:
    said = safecal("lm", "model", tmp_path / "none.jsonl", "--text", "given")
    assert said.status == 2
    assert "none.jsonl does not exist" in said.err


def test_what_to_do_is_a_command_where_there_is_one(tmp_path: Path, safecal: Safecal) -> None:
    rng = np.random.default_rng(0)
    z, x = rng.normal(0, 2, 2000), rng.normal(0, 2, 500)
    y, p = rng.random(2000) < 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-3 * z))
    classes = _npz(tmp_path, y=y.astype(int), p=p)
    summary = tmp_path / "summary.md"
    said = " ".join(safecal("evaluate", classes, "--summary", summary).out.split())
    assert "What to do: Run `safecal recalibrate`, then judge it by rows that it was not fitted to." in said
    assert "safecal recalibrate" in summary.read_text(encoding="utf-8")
    states = _file(tmp_path, "truth,mean,std\n" + "\n".join(f"{a},0,1" for a in x), "states.csv")
    said = " ".join(safecal("evaluate", states, "--x", "truth").out.split())
    assert "`safecal.SafeTemperature` finds by how much; judge it by rows that it was not fitted to." in said


@pytest.mark.parametrize("command", ["watch", "compare", "plan", "recalibrate"])
def test_options_of_forecasts_are_told_where_they_belong(command: str, safecal: Safecal, tmp_path: Path) -> None:
    files = [tmp_path / "a.csv"] * (2 if command == "compare" else 1)
    said = safecal(command, *files, "--mean", "m", "--cov", "c")
    assert said.status == 2
    assert "`--mean` belongs to `safecal evaluate`. In Python `safecal." in said.err


@pytest.mark.parametrize("without", [False, True])
def test_a_key_that_a_line_has_twice(
    without: bool, tmp_path: Path, safecal: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if without:
        monkeypatch.setitem(sys.modules, "polars", None)
    path = tmp_path / "rows.jsonl"
    path.write_text('{"y": 1, "p": 0.9, "p": 0.5}\n{"y": 0, "p": 0.9, "p": 0.5}\n')
    said = safecal("evaluate", path)
    assert said.status == 2
    assert "has more than one 'p' in a line" in said.err
    path.write_text('{"y": 1, "p": 0.9, "more": {"y": 1, "p": 2}}\n{"y": 0, "p": 0.2, "more": {"y": 1, "p": 2}}\n')
    assert safecal("evaluate", path).status == 0
