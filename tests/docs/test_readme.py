"""The README: short, true, and whole on PyPI; and the comparison with other libraries, from which its table comes."""

import importlib
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import safecal

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERS = json.loads((ROOT / "bench" / "results" / "peers.json").read_text(encoding="utf-8"))


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARE, PYPI = tool("compare_peers"), tool("readme_for_pypi")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_it_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 150
    assert (ROOT / "docs" / "pictures" / "report.png").stat().st_size < 150_000


def test_its_three_models_are_those_of_the_paper_page() -> None:
    page = (ROOT / "docs" / "paper" / "three-models.md").read_text(encoding="utf-8")
    for name in ("naive Bayes", "random forest", "logistic regression"):
        found = re.search(rf"^\| {name} \| (\S+) \| (\S+) \| \**([^ *]+)\** \| \**([A-Z]+)\b", README, re.MULTILINE)
        printed = re.search(rf"^{name} +(\S+) +\S+ +(\S+) +\S+ +(\S+) .* (\S+)$", page, re.MULTILINE)
        assert found is not None
        assert printed is not None
        accuracy, ece, ecd, temperature = map(float, printed.groups())
        assert found.groups()[:3] == (f"{accuracy:.2f}", f"{ece:.2f}", f"{ecd:+.2f}")
        assert f"{name}: {found[4]}" in page
        if name == "naive Bayes":
            assert f"logits are {temperature:.0f} times too large" in README


def test_the_answer_that_it_shows_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from safecal.cli import main

    monkeypatch.chdir(tmp_path)
    made: dict[str, object] = {}
    exec(block("python"), made)
    fixed = made["fix"]
    assert made["result"].verdict.decision == "UNSAFE"  # type: ignore[attr-defined]
    assert f"{made['result'].temperature.value:.2f}" == "2.01"  # type: ignore[attr-defined]
    rest = fixed.map.apply(made["y_prob"][5000:])  # type: ignore[attr-defined, index]
    assert safecal.evaluate(made["y_true"][5000:], rest).verdict.decision == "SAFE"  # type: ignore[index]
    capsys.readouterr()
    assert main(["evaluate", "predictions.csv", "--y", "label", "--prob", "score"]) == 0
    assert block("text") in capsys.readouterr().out


def test_pypi_finds_its_pictures_and_pages() -> None:
    text = PYPI.absolute(README, "someone/safecal", "abc")
    for pattern in (r"\]\(([^)]+)\)", r'src="([^"]+)"'):
        here, there = re.findall(pattern, README), re.findall(pattern, text)
        assert here
        assert all(link.startswith("https://") for link in there)
        for before, after in zip(here, there, strict=True):
            raw = "raw.githubusercontent.com/someone/safecal/abc" if before.endswith(".png") else "github.com/someone"
            assert before.startswith("https://") or (raw in after and after.endswith(f"/{before}"))
    assert PYPI.absolute(text, "another/name", "def") == text


# The comparison


@pytest.mark.parametrize("page", [COMPARE.PAGE, COMPARE.README], ids=lambda page: page.name)
def test_the_page_is_what_was_answered(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- peers: " in text
    assert COMPARE.written(text, COMPARE.render(ANSWERS)) == text


def test_the_peers_that_were_asked_are_those_of_the_benchmark() -> None:
    lines = (ROOT / "constraints" / "bench.txt").read_text(encoding="utf-8").lower().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    assert {name: pinned[name.lower()] for name in ANSWERS["versions"]} == ANSWERS["versions"]
    assert set(ANSWERS["answers"]) == set(COMPARE.LIBRARIES)


@pytest.mark.proof
def test_what_is_said_of_safecal_names_what_exists_and_is_so_today(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(ROOT / "tools")
    ours = importlib.import_module("peer_rows").OURS
    said = ANSWERS["answers"]["safecal"]
    assert set(said) == set(ours) == set(COMPARE.QUESTIONS) == set(COMPARE.PLAIN)
    for question, (answer, call, _) in said.items():
        found: object = safecal
        for part in call.split(".")[1:]:
            found = getattr(found, part)
        assert ours[question]()[:2] == (answer, call)
    assert ANSWERS["numbers"][0][-1] == "inf"
    assert np.isinf(safecal.ecd([1, 0], [0.0, 0.5]))


def test_a_name_that_looks_like_an_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPARE.LIBRARIES, "peer", ("safecal.metrics",))
    assert "safecal.metrics.ecd(sample_weight)" in COMPARE.looks_like("peer", "weights")
    assert COMPARE.looks_like("peer", "fix") == []
    monkeypatch.setitem(COMPARE.NOT_THAT, "peer: weights", {"metrics": "not that"})
    assert COMPARE.looks_like("peer", "weights") == []
