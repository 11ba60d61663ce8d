"""Outputs that would destroy: no command writes over what it reads, nor two outputs into one file."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecal.cli import build_parser
from safecal.cli.options import output, place
from safecal.cli.watch import store
from safecal.watch.databases import store_files

pl = pytest.importorskip("polars", minversion="1.38")

Safecal = Callable[..., Any]
COLUMNS = ("--y", "y", "--prob", "p")

# Every argument that names a file or a folder. A new one comes here after its command hands it to `check_outputs`.
NAMED = {
    "evaluate": {"file", "--report", "--plot", "--summary", "--baseline"},
    "compare": {"a", "b", "--report", "--plot"},
    "plan": {"file"},
    "recalibrate": {"file", "--save", "--apply", "--out", "--plot"},
    "watch": {"what", "--store", "--report"},
    "lm": {"model", "file", "--report", "--cache"},  # the last: a folder where only its own files change
    "poses": {"files", "--truth", "--cov", "--report", "--save"},
    "demo": {"--report"},
    "paper study": {"--out"},
    "paper figures": {"--out", "--predictions"},
    "paper table2": {
        "--data",
        "--out",
        "--model",
        "--cache",
    },  # the last two: folders where only their own files change
    "paper tracking": {"--plot"},
}
_OTHER = {"CHAR", "TEXT", "COL", "LABEL", "NAME", "COMMAND", "URL", "HOST", "GROUP", "CLASS"}


def _arguments(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, one in action.choices.items():
                yield from _arguments(one, f"{name} {word}".strip())
        elif action.type in (place, output, store) or (
            action.nargs != 0 and action.type is None and action.choices is None and action.metavar not in _OTHER
        ):
            yield name, action.option_strings[-1] if action.option_strings else action.dest


def test_every_argument_that_names_a_file_is_known() -> None:
    by_command: dict[str, set[str]] = {}
    for command, argument in _arguments(build_parser()):
        by_command.setdefault(command, set()).add(argument)
    for command, only in (("paper table2", "--device"), ("watch", "--name")):
        by_command[command].discard(only)
    assert {command: words for command, words in by_command.items() if words} == NAMED


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of each kind that is read."""
    from safecal.cli import main

    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(5)
    z = rng.normal(0, 2, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-z))).astype(np.int64)
    rows = pl.DataFrame({"y": y, "p": 1 / (1 + np.exp(-z))})
    for name in ("in", "figures", "table", "sub"):
        (folder / name).mkdir()
    for name in ("rows.csv", "other.csv", "in/monday.csv", "table/table2-roberta-rows.csv"):
        rows.write_csv(folder / name)
    rows.write_parquet(folder / "figures/ecd-range.png")  # its first bytes tell what it is
    store = ["--store", f"{folder}/kept.sqlite"]
    assert main(["recalibrate", f"{folder}/rows.csv", "--save", f"{folder}/map.json"]) == 0
    assert main(["watch", f"{folder}/in", *COLUMNS, *store, "--once", "--poll", "0.01"]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The words; where the output goes, as {}; the file that it must not be; the two arguments, as the message names them.
DESTROYING: dict[str, tuple[str, str, str, str]] = {
    "evaluate --report": ("evaluate rows.csv --report {}", "rows.csv", "`--report`", "`file`"),
    "evaluate --plot": ("evaluate rows.csv --plot {}", "rows.csv", "`--plot`", "`file`"),
    "evaluate --summary": ("evaluate rows.csv --summary {}", "rows.csv", "`--summary`", "`file`"),
    "the baseline": ("evaluate rows.csv --baseline map.json --report {}", "map.json", "`--report`", "`--baseline`"),
    "recalibrate --save": ("recalibrate rows.csv --save {}", "rows.csv", "`--save`", "`file`"),
    "recalibrate --out": ("recalibrate rows.csv --out {}", "rows.csv", "`--out`", "`file`"),
    "recalibrate --plot": ("recalibrate rows.csv --plot {}", "rows.csv", "`--plot`", "`file`"),
    "the calibrator by --save": (
        "recalibrate rows.csv --apply map.json --out x.csv --save {}", "map.json", "`--save`", "`--apply`"
    ),
    "the calibrator by --out": ("recalibrate rows.csv --apply map.json --out {}", "map.json", "`--out`", "`--apply`"),
    "the rows by --out after --apply": (
        "recalibrate rows.csv --apply map.json --out {}", "rows.csv", "`--out`", "`file`"
    ),
    "the store": ("watch in --once --store kept.sqlite --report {}", "kept.sqlite", "`--report`", "`--store`"),
    "the store of status": ("watch status --store kept.sqlite --report {}", "kept.sqlite", "`--report`", "`--store`"),
    "the lock": ("watch in --once --store kept.sqlite --report {}", "kept.sqlite.lock", "`--report`", "`--store`"),
    "a batch": ("watch in --once --store new.sqlite --report {}", "in/monday.csv", "`--report`", "`FOLDER`"),
    "a batch by --store": ("watch in --once --store {}", "in/monday.csv", "`--store`", "`FOLDER`"),
    "figures": (
        "paper figures --out figures --predictions mine={}", "figures/ecd-range.png", "`--out`", "`--predictions mine`"
    ),
    "table2": (
        "paper table2 roberta --out table --data {}", "table/table2-roberta-rows.csv", "`--out`", "`--data`"
    ),
}  # fmt: skip


def _by_symbolic_link(target: str) -> str:
    Path("sub/link.svg").symlink_to(os.path.relpath(target, "sub"))
    return "sub/link.svg"


def _by_hard_link(target: str) -> str:
    os.link(target, "sub/hard.svg")
    return "sub/hard.svg"


def _by_a_folder(target: str) -> str:
    Path("sub/back").symlink_to(os.getcwd(), target_is_directory=True)
    return f"sub/back/{target}"


WAYS: dict[str, Callable[[str], str]] = {
    "its name": lambda target: target,
    "the whole path": lambda target: str(Path.cwd() / target),
    "dots": lambda target: f"sub/.././{target}",
    "a symbolic link": _by_symbolic_link,
    "a hard link": _by_hard_link,
    "a link to its folder": _by_a_folder,
}


def _some(cases: dict[str, Any], ways: Iterable[str]) -> list[Any]:
    """Return each case with each way: fast are the first case, and the first way."""
    both = [(case, way) for case in cases for way in ways]
    first = both[0]
    return [pytest.param(*b, marks=() if set(b) & set(first) else pytest.mark.proof) for b in both]


@pytest.mark.parametrize(("case", "way"), _some(DESTROYING, WAYS))
def test_an_output_that_is_an_input_is_refused(case: str, way: str, here: Path, safecal: Safecal) -> None:
    line, target, one, other = DESTROYING[case]
    given = WAYS[way](target)
    before = _contents(here)
    said = safecal(*line.format(given).split())
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("safecal: ")
    assert f"{one} must " in said.err
    assert other in said.err.split("\n\nHint: ")[0]
    assert "\n\nHint: " in said.err
    assert given in said.err
    assert _contents(here) == before


TWICE = {
    "report and picture": ("evaluate rows.csv --report {} --plot {}", "`--plot`", "`--report`", "x.svg"),
    "report and summary": ("evaluate rows.csv --report {} --summary {}", "`--summary`", "`--report`", "x.md"),
    "calibrator and rows": ("recalibrate rows.csv --save {} --out {}", "`--save`", "`--out`", "x.csv"),
    "rows and picture": ("recalibrate rows.csv --out {} --plot {}", "`--out`", "`--plot`", "x.csv"),
    "page and store": ("watch in --once --report {} --store {}", "`--report`", "`--store`", "x.sqlite"),
}


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(("case", "way"), _some(TWICE, ["its name", "dots", "a link to its folder", "a symbolic link"]))
def test_two_outputs_that_are_one_file_are_refused(
    case: str, way: str, exists: bool, here: Path, safecal: Safecal
) -> None:
    """Also where the file does not exist yet, and is reached through a link that leads nowhere."""
    line, one, other, target = TWICE[case]
    if exists:
        Path(target).write_text("old")
    given = WAYS[way](target)
    before = _contents(here)
    said = safecal(*line.format(target, given).split())
    assert (said.status, said.out) == (2, "")
    assert f"{one} must not be the same file as {other}, which is written, too; " in said.err
    assert _contents(here) == before


def test_files_beside_the_store_belong_to_it(here: Path, safecal: Safecal) -> None:
    for name in store_files("new.sqlite"):
        said = safecal("watch", "in", "--once", "--store", "new.sqlite", "--report", name)
        assert (said.status, "`--report` must not be the same file as `--store`" in said.err) == (2, True)
    said = safecal("watch", "in", "--once", "--report", "safecal-watch.sqlite")  # the store where none is named
    assert (said.status, "`--report` must not be the same file as `--store`" in said.err) == (2, True)
    assert not Path("safecal-watch.sqlite").exists()
    assert store_files("postgresql://me@db/models") == ()


def test_a_page_in_the_folder_that_no_batch_is_read_from(here: Path, safecal: Safecal) -> None:
    said = safecal("watch", "in", "--once", "--poll", "0.01", "--store", "kept.sqlite", *COLUMNS,
                   "--report", "in/page.html")  # fmt: skip
    assert said.status == 0
    said = safecal("watch", "in", "--once", "--report", "in/new.csv")
    assert (said.status, "`--report` must lie outside `FOLDER`" in said.err) == (2, True)


def test_a_picture_among_the_images_that_are_read(here: Path, safecal: Safecal) -> None:
    Path("photos/dog").mkdir(parents=True)
    said = safecal("paper", "table2", "resnet18", "--data", "photos", "--out", "photos/new")
    assert (said.status, "`--out` must lie outside `--data`" in said.err) == (2, True)
    assert not Path("photos/new").exists()


def test_nothing_is_read_before(here: Path, safecal: Safecal, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("safecal.cli.table_file.open_source", never)
    monkeypatch.setattr("safecal.watch.databases.open_store", never)
    for line, target, _, _ in DESTROYING.values():
        if not line.startswith("paper"):
            assert safecal(*line.format(target).split()).status == 2


def test_names_of_predictions_are_told_apart(here: Path, safecal: Safecal) -> None:
    said = safecal(
        "paper", "figures", "--out", "new", "--predictions", "in/monday.csv", "--predictions", "monday=rows.csv"
    )
    assert said.status == 2
    assert "got 'monday' for in/monday.csv and rows.csv.\n\nHint: " in said.err
    assert not Path("new").exists()


def test_the_message(here: Path, safecal: Safecal) -> None:
    assert safecal("evaluate", "rows.csv", "--report", "rows.csv").err == (
        "safecal: `--report` must not be the same file as `file`, which is read; both are rows.csv.\n\n"
        "Hint: give another name, for example `--report rows-report.html`.\n"
    )
    os.link("rows.csv", "my page.html")
    assert safecal("evaluate", "rows.csv", "--report", "my page.html").err == (
        "safecal: `--report` must not be the same file as `file`, which is read; my page.html is rows.csv.\n\n"
        "Hint: give another name, for example `--report 'my page-report.html'`.\n"
    )


def test_what_is_not_destroyed_is_allowed(here: Path, safecal: Safecal) -> None:
    Path("old.html").write_text("an older report")
    assert safecal("evaluate", "rows.csv", "--report", "old.html").status == 0
    assert "</html>" in Path("old.html").read_text(encoding="utf-8")
    assert safecal("compare", "rows.csv", "rows.csv").status == 0
    assert safecal("recalibrate", "rows.csv", "--out", "x.csv", "--save", "x.json").status == 0
    said = safecal("evaluate", "rows.csv", "--report", os.devnull)
    assert said.status == 0


REDIRECTED = [
    ("evaluate rows.csv >> rows.csv", "standard output must not be the same file as `file`"),
    ("recalibrate - --out rows.csv < rows.csv", "`--out` must not be the same file as standard input"),
    ("evaluate - < rows.csv >> rows.csv", "standard output must not be the same file as standard input"),
    ("compare other.csv rows.csv >> rows.csv", "standard output must not be the same file as `b`"),
    ("evaluate rows.csv --json --report x.html > x.html", "standard output must not be the same file as `--report`"),
    ("watch status --store kept.sqlite >> kept.sqlite", "standard output must not be the same file as `--store`"),
    ("watch acknowledge --store kept.sqlite >> kept.sqlite", "standard output must not be the same file as `--store`"),
    (
        "watch in --once --store kept.sqlite >> in/monday.csv",
        "standard output must lie outside `FOLDER`",
    ),
    ("watch - --store rows.csv < rows.csv", "`--store` must not be the same file as standard input"),
    ("demo --report x.html > x.html", "standard output must not be the same file as `--report`"),
]


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate - --report rows.csv < rows.csv", "`--report` must not be the same file as standard input"),
        *(pytest.param(*case, marks=[pytest.mark.proof, pytest.mark.no_cover]) for case in REDIRECTED),
    ],
)
def test_a_redirection_is_seen(line: str, message: str, here: Path) -> None:
    before = _contents(here)
    script = f'"{sys.executable}" -m safecal {line}'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (2, "")
    assert message in said.stderr
    assert {name: content for name, content in _contents(here).items() if name != "x.html"} == before
