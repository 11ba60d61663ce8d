"""The action for GitHub: what it declares, and what its steps do with the inputs."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from safecal.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
EVIL = "::add-mask::x"


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(ROOT / "action.yml")
    return found


def _words(**inputs: str) -> list[str]:
    words = runpy.run_path(str(ROOT / "tools" / "gate_on_github.py"))["words"]
    found: list[str] = words({f"SAFECAL_{name.upper()}": text for name, text in inputs.items()})
    return found


def test_the_action_is_a_composite_whose_inputs_reach_the_gate(action: dict[str, Any]) -> None:
    assert set(action) == {"name", "description", "inputs", "outputs", "runs"}
    assert action["runs"]["using"] == "composite"
    assert all(set(one) <= {"description", "required", "default"} for one in action["inputs"].values())
    assert [name for name, one in action["inputs"].items() if one.get("required")] == ["file"]
    install, gate = action["runs"]["steps"]
    for step in (install, gate):
        assert set(step) <= {"name", "id", "shell", "env", "run"}
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # an input in a script could be a command
    given = {f"SAFECAL_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert install["env"] | gate["env"] == given
    assert action["outputs"]["status"]["value"] == f"${{{{ steps.{gate['id']}.outputs.status }}}}"
    assert (ROOT / re.search(r"\$GITHUB_ACTION_PATH/(\S+\.py)", gate["run"])[1]).is_file()  # type: ignore[index]


def test_the_words_of_the_gate_are_those_of_the_command_line() -> None:
    words = _words(
        file="-odd.csv\n", y="y", prob="p a\n p b \n\n", options="--by 'the site' --report no.html", report="r.html",
        baseline="old.json",
    )  # fmt: skip
    found = build_parser("evaluate").parse_args(words)
    assert (found.file, found.y, found.prob, found.logits) == (["-odd.csv"], ["y"], ["p a", "p b"], None)
    assert (found.by, found.report, found.baseline, found.gate) == (["the site"], "r.html", "old.json", True)


@pytest.fixture
def run(tmp_path: Path, action: dict[str, Any]) -> Any:
    """Return a function that runs the second step as GitHub would, and returns status, output, log and summary."""
    python = tmp_path / "temp" / "safecal" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    places = {"GITHUB_STEP_SUMMARY": tmp_path / "summary.md", "GITHUB_OUTPUT": tmp_path / "output"}
    for path in places.values():
        path.write_text("", encoding="utf-8")

    def call(**inputs: str) -> tuple[int, str, str, str]:
        given = {f"SAFECAL_{name.upper()}": inputs.get(name, "") for name in action["inputs"]}
        there = {"RUNNER_TEMP": tmp_path / "temp", "GITHUB_ACTION_PATH": ROOT} | places
        script = action["runs"]["steps"][1]["run"]
        said = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True,
            text=True, check=False, env=os.environ | given | {name: str(path) for name, path in there.items()},
        )  # fmt: skip
        summary, output = (path.read_text(encoding="utf-8") for path in places.values())
        return said.returncode, output, said.stdout + said.stderr, summary

    return call


def _rows(path: Path, scale: float) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-z))
    lines = (f"{int(a)},{scale * b:.9g},{EVIL}\n" for a, b in zip(y, z, strict=True))
    path.write_text("label,score,site\n" + "".join(lines), encoding="ascii")


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_step_judges_and_shows_the_verdict(run: Any, tmp_path: Path) -> None:
    _rows(tmp_path / "bad.csv", 3.0)
    (tmp_path / "numpy.py").write_text("raise SystemExit(0)", encoding="ascii")  # of the repository that is judged
    status, output, log, summary = run(
        file="bad.csv", y="label", logits="score", options="--by site", report="page.html"
    )
    assert (status, output) == (3, "status=3\n")
    assert summary.startswith("## UNSAFE\n\n")
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    stop, *lines, resume = log.splitlines()
    assert stop.startswith("::stop-commands::")
    assert resume == f"::{stop.rpartition(':')[2]}::"
    assert any(line.startswith(EVIL) for line in lines)  # what the runner would have obeyed


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_step_holds_a_model_against_a_baseline(run: Any, tmp_path: Path) -> None:
    from safecal import evaluate

    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, 4000)
    before = evaluate(rng.random(4000) < 1 / (1 + np.exp(-z)), logits=z).to_dict()
    (tmp_path / "before.json").write_text(json.dumps(before), encoding="utf-8")
    _rows(tmp_path / "worse.csv", 1.3)
    status, output, _, summary = run(file="worse.csv", y="label", logits="score", baseline="before.json")
    assert (status, output) == (5, "status=5\n")
    assert " WORSE than the baseline\n" in summary.partition("\n\n")[0] + "\n"


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
@pytest.mark.parametrize(
    "inputs", [{"options": "--threshold 0.01 --by 'site"}, {"baseline": "nothing.json"}, {"file": ""}]
)
def test_an_input_that_cannot_be_read_fails_the_step(run: Any, tmp_path: Path, inputs: dict[str, str]) -> None:
    _rows(tmp_path / "good.csv", 1.0)
    status, output, _, summary = run(**({"file": "good.csv", "y": "label", "logits": "score"} | inputs))
    assert (status, output, summary) == (2, "status=2\n", "")
