"""Values that cannot be: each is refused with status 2 and the name of its option, before anything is opened."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from safecal.cli import build_parser, main
from safecal.cli.options import MOST_BINS, output, place
from safecal.cli.watch import store

pl = pytest.importorskip("polars", minversion="1.38")

ODD = ("inf", "-inf", "nan", "-1", "1e400", "", " ", "x", "1e308", "9" * 40, "9" * 5000, "1_0_", "０x")
MAY_BE_ZERO = {"--patience", "--prometheus", "--max-rows", "--seed", "--tolerance"}
GIVEN = {"evaluate": ["f.csv"], "compare": ["f.csv", "f.csv"], "plan": ["f.csv"], "recalibrate": ["f.csv"],
         "watch": ["in", "--once"], "paper table2": ["roberta"],
         "lm": ["in", "f.csv", "--text", "given"],
         "poses": ["f.csv", "f.csv", "--side", "right", "--first", "rotation"]}  # fmt: skip


def _options(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, one in action.choices.items():
                yield from _options(one, f"{command} {word}".strip())
        elif action.option_strings and action.nargs != 0:
            yield command, action


OPTIONS = list(_options(build_parser()))
READERS = ("_number.", "whole.")
NUMBERS = [
    (command, action.option_strings[-1])
    for command, action in OPTIONS
    if getattr(action.type, "__qualname__", "").startswith(READERS)
]
PATHS = [(c, a.option_strings[-1], a.type) for c, a in OPTIONS if a.type in (place, output, store)]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs words that must be refused, and returns what is said; nothing may be left behind."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("f.csv").write_text("y,p\n0,0.2\n1,0.7\n")

    def run(*words: str) -> str:
        before = sorted(tmp_path.rglob("*"))
        status = main(list(words))
        said = capfd.readouterr()
        assert (status, said.out) == (2, ""), (words, said)
        assert said.err.startswith("safecal: "), said.err
        assert "Traceback" not in said.err
        assert sorted(tmp_path.rglob("*")) == before
        return said.err

    return run


def test_every_number_is_read_with_its_limits() -> None:
    raw = [(c, a.option_strings[-1]) for c, a in OPTIONS if a.type in (int, float)]
    assert raw == []
    assert len(NUMBERS) > 40


@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_numbers_that_cannot_be(command: str, option: str, refused: Any) -> None:
    for value in (*ODD, *(() if option in MAY_BE_ZERO else ("0",))):
        said = refused(*command.split(), *GIVEN.get(command, []), f"{option}={value}")
        assert option in said
        assert len(said) < 300


def test_as_many_bins_as_can_be_made(refused: Any) -> None:
    import safecal
    from safecal._sums.splits import MOST_BINS as MOST

    assert MOST == MOST_BINS
    began = time.monotonic()
    assert f"from 1 to {MOST}; got '2000000000'" in refused("evaluate", "f.csv", "--bins", "2000000000")
    for strategy in ("uniform", "quantile"):
        with pytest.raises(safecal.errors.BinsError, match=f"`bins` must be at most {MOST}; got 2000000000"):
            safecal.evaluate([0, 1], [0.2, 0.7], bins=2_000_000_000, strategy=strategy)
    assert time.monotonic() - began < 5.0


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\udcff", "a\x1b[31m", "\u202e", "x" * 201])
def test_names_that_no_store_can_hold(name: str, refused: Any) -> None:
    for what in ("in", "status", "acknowledge"):
        assert "`--name` must be a name" in refused("watch", what, "--name", name)


def test_a_name_may_hold_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    words = ["--name", "../a/b; drop table", "--store", "s.sqlite"]
    assert main(["watch", "in", "--once", "--poll", "0.01", *words]) == 0
    assert main(["watch", "status", *words]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "s.sqlite", "s.sqlite.lock"]


def test_every_file_that_is_written_has_a_name() -> None:
    written = {"--report", "--plot", "--summary", "--save"}
    assert [(c, a.option_strings) for c, a in OPTIONS if a.option_strings[-1] in written and a.type is not output] == []


@pytest.mark.parametrize(("command", "option", "kind"), PATHS)
def test_paths_that_cannot_be(command: str, option: str, kind: Any, refused: Any) -> None:
    end = {"--plot": ".svg", "--out": ".csv"}.get(option, "")
    nowhere = ["nowhere/x" + end, "f.csv/x" + end]
    folders = option == "--cache" or (option == "--out" and command.startswith("paper"))
    values = ["", " ", *(() if folders else ("in", *nowhere)), *([] if kind is place else ["-"])]
    more = ["--out", "made.csv"] if option == "--apply" else []
    for value in values:
        said = refused(*command.split(), *GIVEN.get(command, []), *more, option, value)
        assert option in said or value in said, said


@pytest.mark.parametrize("value", ["", "nowhere.csv", "in", "f.csv/x", "x" * 300, "\udcff.csv"])
def test_inputs_that_cannot_be(value: str, refused: Any) -> None:
    for command, words in GIVEN.items():
        if "f.csv" in words:
            refused(command, *[value if word == "f.csv" else word for word in words])
    refused("watch", value if value != "in" else "f.csv", "--once")


def test_a_place_that_is_read_only_is_told_before_the_work(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # nothing is read-only to root
    for command, option, kind in PATHS:
        if kind is output:
            name = "x" + {"--plot": ".svg", "--out": ".csv"}.get(option, "")
            said = refused(*command.split(), *GIVEN.get(command, []), option, name)
            assert f"{name} cannot be written: it, or its folder, is read-only." in said


@pytest.mark.parametrize("option", ["--on-alarm", "--prometheus-host", "--webhook", "--store"])
def test_nothing_is_no_value(option: str, refused: Any) -> None:
    assert f"`{option}` must be" in refused("watch", "in", "--once", option, "")


@pytest.mark.parametrize(
    "store", ["POSTGRESQL://me:s3cr3t@host/db", "mysql://me:s3cr3t@host/db", "http://me:s3cr3t@h/"]
)
def test_a_store_that_is_no_file_is_refused_without_its_password(store: str, refused: Any) -> None:
    assert "s3cr3t" not in refused("watch", "in", "--once", "--store", store, "--patience", "1")
