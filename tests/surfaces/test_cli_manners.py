"""What makes the command line pleasant: colour, words that were meant, progress, other separators, columns by name."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecal.cli import build_parser
from safecal.cli.outputs import Progress, say_verdict
from safecal.inputs.columns import Unclear, find_columns

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]
ROWS = "y,p\n1,0.9\n0,0.2\n1,0.7\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_verdict_is_coloured_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = "safecal evaluation\n\nUNSAFE: SAFE is another word.\n"

    def said(stream: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stdout", stream)
        say_verdict(text)
        return stream.getvalue()

    assert said(io.StringIO()) == text + "\n"
    assert said(_Terminal()) == text.replace("UNSAFE", "\x1b[1;31mUNSAFE\x1b[0m") + "\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert said(_Terminal()) == text + "\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evalute", "x.csv"], "did you mean `evaluate`?"),
        (["evaluate", "x.csv", "--treshold", "1"], "did you mean `--threshold`?"),
        (["evaluate", "x.csv", "--strategy", "uniforn"], "did you mean `uniform`?"),
        ([], "safecal: missing: COMMAND.\n\nHint: safecal --help"),
        (["lm", "model"], "safecal: missing: file, --text.\n\nHint: safecal lm --help"),
        (["evalute", "x.csv"], "safecal: `COMMAND` must be one of "),
        (["evaluate", "x.csv", "--treshold", "1"], "safecal: not known here: --treshold 1."),
        (["evaluate", "x.csv", "--y"], "safecal: `--y` needs a value."),
        (["evaluate", "x.csv", "--rule", "every"], "safecal: `--rule` must be one of "),
        (["demo", "twice"], "safecal: not known here: twice.\n\nHint: safecal demo --help"),
        (["evaluate"], "Hint: safecal evaluate --help"),
        ([], "Hint: safecal --help"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(words: list[str], said: str, safecal: Safecal) -> None:
    refused = safecal(*words)
    assert refused.status == 2
    assert said in refused.err


def test_python_m_safecal_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "safecal", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("safecal ")


def test_progress_tells_the_share_and_the_time_left() -> None:
    progress = Progress(1000)
    progress.add(250)
    assert progress.line(10.0) == f"[{'#' * 7:<30}] 25%  250 rows, 30 s left"
    assert Progress(None).line(1.0) == "0 rows"
    guessed = Progress(100, estimated=True)
    guessed.add(200)
    assert guessed.line(7200.0).startswith(f"[{'#' * 29:<30}] about 99%")


@pytest.mark.parametrize(("separator", "typed"), [(";", ";"), ("|", "|"), ("\t", "tab")])
def test_fields_may_be_separated_otherwise(separator: str, typed: str, tmp_path: Path, safecal: Safecal) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS.replace(",", separator))
    assert safecal("evaluate", path, "--sep", typed).status == 0
    if separator == ";":
        assert "Hint: add `--sep ';'`" in safecal("evaluate", path).err
    assert "`--sep` must be one character" in safecal("evaluate", path, "--sep", "::").err


def test_a_report_has_the_title_that_was_typed(tmp_path: Path, safecal: Safecal) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    report = tmp_path / "report.html"
    assert safecal("evaluate", path, "--report", report, "--title", "Churn <2025>").status == 0
    assert "Churn &lt;2025&gt;" in report.read_text()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["id", "label", "prob"], ("label", ("prob",), "y_prob")),
        ([".pred_poor", ".pred_good", ".pred_class", "Class"], ("Class", (".pred_poor", ".pred_good"), "y_prob")),
        (["y_true", "proba_0", "proba_1", "proba_2"], ("y_true", ("proba_0", "proba_1", "proba_2"), "y_prob")),
        (["target", "logit0", "logit1"], ("target", ("logit0", "logit1"), "logits")),
        (["predictions", "ground_truth"], ("ground_truth", ("predictions",), "y_prob")),
        (["date", "prob", "prob_outcome", "y"], ("prob_outcome", ("prob",), "y_prob")),
    ],
)
def test_columns_are_found_where_only_one_reading_is_possible(names: list[str], expected: tuple[Any, ...]) -> None:
    outcome, stated = find_columns(names, None, None, None)
    assert (outcome, stated.values, stated.form) == expected


@pytest.mark.parametrize(
    "there", [["p", "logit", "y"], ["prob1", "prob2", "y"], ["proba_1", "proba_2", "y"], ["p", "y", "label"], ["y"]]
)
def test_columns_are_asked_for_where_more_than_one_is(there: list[str]) -> None:
    with pytest.raises(Unclear):
        find_columns(there, None, None, None)


def test_the_hint_is_a_line_that_works(tmp_path: Path, safecal: Safecal) -> None:
    path = tmp_path / "games.csv"
    path.write_text("team,prob1,prob1_outcome,prob2,prob2_outcome\na,0.6,1,0.4,0\nb,0.3,0,0.7,1\n")
    said = safecal("evaluate", path)
    assert said.status == 2
    line = said.err.split("Hint: ")[1].split()
    assert safecal(*line[1:]).status == 0


def test_a_file_without_polars_gives_the_same_answer(
    tmp_path: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    p = rng.random(3000)
    frame = pl.DataFrame({"y": (rng.random(3000) < p).astype(int), "p": p, "site": rng.choice(["a", "b", "c"], 3000)})
    paths = [tmp_path / "rows.csv", tmp_path / "rows.jsonl"]
    frame.write_csv(paths[0])
    frame.write_ndjson(paths[1])
    wanted = [safecal("evaluate", path, "--by", "site", "--json").out for path in paths]
    monkeypatch.setitem(sys.modules, "polars", None)
    assert [safecal("evaluate", path, "--by", "site", "--json").out for path in paths] == wanted


def test_every_option_can_be_built_at_once() -> None:
    assert build_parser().format_help().startswith("usage: safecal")


def test_help_is_as_wide_as_the_terminal(safecal: Safecal, monkeypatch: pytest.MonkeyPatch) -> None:
    def widest(text: str) -> int:
        return max(len(line) for line in text.splitlines() if "  safecal " not in line)

    wide = safecal("lm", "--help").out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    narrow = safecal("lm", "--help").out
    assert 90 < widest(wide) <= 100
    assert widest(narrow) <= 59
    assert narrow.split() == wide.split()


def test_a_hint_names_the_column_of_outcomes_wherever_its_name_says_so(tmp_path: Path, safecal: Safecal) -> None:
    (tmp_path / "rows.csv").write_text("Outcome,confidence\n1,0.9\n0,0.2\n", encoding="ascii")
    path = tmp_path / "rows.csv"
    assert f"Hint: safecal evaluate {path} --y Outcome --prob confidence\n" in safecal("evaluate", path).err
