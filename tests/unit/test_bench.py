"""The benchmark runs: on a thousand rows, with one peer, and without looking at any time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_benchmark_runs_and_writes_its_page(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("polars", minversion="1.38")
    page, results = tmp_path / "benchmarks.md", tmp_path / "cpu.json"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "--quick", "--json", str(results), "--page", str(page)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(results.read_text(encoding="utf-8"))
    assert set(document) - {"states"} == {"machine", "binary", "first", "multiclass", "groups", "files", "slices"}
    names = ["safecal, one thread", "safecal.evaluate", "scikit-learn calibration_curve"]
    assert [entry["name"] for entry in document["binary"]["entries"]] == names
    ours = document["binary"]["entries"][0]
    assert ours["measured"][0]["rows"] == 1000
    assert 0.0 < ours["measured"][0]["value"] < 0.2
    assert ours["answers"]["labels 1 and 2"] == "LabelError"
    text = page.read_text(encoding="utf-8")
    assert "| **safecal, one thread** |" in text
    assert "| `safecal evaluate small.csv` | `python -c" in text
    assert text.count("<!-- measured") == 1
    again = tmp_path / "again.md"
    again.write_text(text, encoding="utf-8")
    command = [sys.executable, str(BENCH / "run.py"), "--json", str(results), "--page", str(again)]
    assert subprocess.run([*command, "--page-only"], capture_output=True, check=False).returncode == 0
    assert again.read_text(encoding="utf-8") == text
    only = subprocess.run([*command, "--quick", "--only", "multiclass"], capture_output=True, text=True, check=False)
    assert only.returncode == 0, only.stderr
    anew = json.loads(results.read_text(encoding="utf-8"))
    assert {name for name in document if anew[name] != document[name]} == {"multiclass"}
    results.write_text(json.dumps({**anew, "machine": {}}), encoding="utf-8")
    refused = subprocess.run([*command, "--quick", "--only", "multiclass"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "measured on another machine" in refused.stderr


def test_the_committed_results_are_those_of_the_page(tmp_path: Path) -> None:
    results = BENCH / "results" / "cpu.json"
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(BENCH / "run.py"), "--page-only", "--json", str(results), "--page", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
