"""``safecal paper``, called as a shell would call it."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import safecal.paper
from safecal.cli.outputs import Steps
from safecal.cli.paper import add_options
from safecal.errors import FileError, OptionError
from safecal.paper import table1

DOCS = Path(__file__).resolve().parents[2] / "docs" / "paper"
Run = Callable[..., str]


@pytest.fixture
def paper(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command and returns what it printed."""

    def run(*words: object) -> str:
        parser = argparse.ArgumentParser("safecal")
        add_options(parser.add_subparsers(required=True).add_parser("paper"))
        options = parser.parse_args(["paper", *map(str, words)])
        capsys.readouterr()
        assert options.run(options) == 0
        said = capsys.readouterr()
        assert said.err == ""  # no progress line where nobody sees it
        return said.out

    return run


def test_help_imports_no_numpy() -> None:
    code = (
        "import argparse, sys\nfrom safecal.cli.paper import add_options\np = argparse.ArgumentParser()\n"
        "add_options(p)\np.format_help()\nassert 'numpy' not in sys.modules"
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_table1(paper: Run) -> None:
    assert paper("table1") == f"{table1()}\n"
    seven = paper("table1", "--seed", 7, "--noise-on", "logit")
    assert seven == paper("table1", "--seed", 7, "--noise-on", "logit") == f"{table1(7, noise_on='logit')}\n"
    assert "5 times" in paper("table1", "--replications", 5, "--n", 500)


@pytest.mark.proof
def test_published_and_consistency_and_readings(paper: Run) -> None:
    assert all(name in paper("table2-published") for name in ("BERTimbau", "ResNet18", "RoBERTa", "4767", "N/A"))
    assert "0.855 to 0.861" in paper("consistency")
    assert "paper: well calibrated and safe" in paper("readings")


def test_nees(paper: Run) -> None:
    assert "(NEES - d)/2" in paper("nees", "--n", 100, "--seed", 2)


def test_models(paper: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    timid = safecal.paper.Modelled("timid", safecal.evaluate([1] * 1000, [0.6] * 1000))
    monkeypatch.setattr(safecal.paper, "three_models", lambda seed: (timid,))
    assert "timid: SAFE, under-confident" in paper("models")


@pytest.mark.proof
def test_study(paper: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = safecal.paper.read_study(DOCS)
    monkeypatch.setattr(safecal.paper, "run_study", lambda *_, **__: stored)
    assert "66/66" in paper("study")
    out = paper("study", "--out", tmp_path)
    assert (tmp_path / "table1-study.md").exists()
    assert paper("study", "--out", tmp_path, "--render") == out
    with pytest.raises(OptionError, match="`--render` needs `--out`"):
        paper("study", "--render")
    with pytest.raises(FileError, match="does not exist"):  # before the work, not after it
        paper("study", "--out", tmp_path / "nowhere")


def test_figures_of_files(paper: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars", minversion="1.38")
    seen: dict[str, object] = {}
    monkeypatch.setattr(safecal.paper, "write_figures", lambda folder, seed, **kept: seen.update(kept) or (folder,))
    rng = np.random.default_rng(1)
    p = rng.random(200).round(6)
    lines = [f"{int(rng.random() < x)},{x}" for x in p]
    file = tmp_path / "predictions.csv"
    file.write_text("\n".join(["y,p", *lines]) + "\n", encoding="utf-8")
    out = paper("figures", "--out", tmp_path, "--predictions", f"mine={file}", "--predictions", file)
    assert out == f"written: {tmp_path}\n"
    real = seen["real"]
    assert isinstance(real, dict)
    assert list(real) == ["mine", "predictions"]
    assert real["mine"].total.n == 200
    assert real["mine"] == safecal.bernoulli([int(line[0]) for line in lines], p).table(10)


def test_the_progress_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Steps(4) as steps:
        steps.add("first")
        steps.add("second")
    said = capsys.readouterr().err
    assert "1 of 4  first" in said
    assert said.endswith("\r\x1b[K")
