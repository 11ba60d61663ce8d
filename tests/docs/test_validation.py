"""The published tables come from the tool, which can be stopped and goes on with the same numbers."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytestmark = pytest.mark.proof
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("validate")


@pytest.fixture(scope="module")
def cells(tool: ModuleType) -> ModuleType:
    return importlib.import_module("validate_cells")


def quick(tool: ModuleType, folder: Path, match: str = "N(4, 1), n = 50") -> int:
    """Run the cells of the size table whose name contains ``match``, for this test alone."""
    places = ["--out", str(folder / "out"), "--cache", str(folder / "cache")]
    code = tool.main(["--quick", "--only", "size", "--match", match, *places])
    assert isinstance(code, int)
    return code


def counts(folder: Path) -> str:
    return (folder / "out" / "validation" / "size.json").read_text(encoding="utf-8")


def test_a_run_goes_on_with_the_same_numbers(
    tool: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    match = "0, 1), n = 1"  # n = 100, 1000 and 10000
    assert quick(tool, tmp_path, match) == 0
    first, page = counts(tmp_path), (tmp_path / "out" / "validation.md").read_text(encoding="utf-8")
    assert len(json.loads(first)["results"]) == 3
    kept = sorted((tmp_path / "cache").rglob("*.json"))
    assert len(kept) == 3
    kept[0].unlink()
    kept[2].unlink()
    stamp = kept[1].stat().st_mtime_ns
    assert quick(tool, tmp_path, match) == 0
    assert counts(tmp_path) == first
    assert (tmp_path / "out" / "validation.md").read_text(encoding="utf-8") == page
    assert kept[1].stat().st_mtime_ns == stamp
    assert not list(tmp_path.rglob("*.part"))
    assert capfd.readouterr() == ("", "")  # quiet when piped


def test_a_stopped_run_publishes_what_is_finished(
    tool: ModuleType, cells: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    match = "p = .999, n = "
    quick(tool, whole, match)
    done = []

    def stops(cell, tick):  # type: ignore[no-untyped-def]
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(cell)
        return cells.size_cell(cell, tick)

    with monkeypatch.context() as patch:
        patch.setitem(tool.RUN, "size", stops)
        assert quick(tool, halves, match) == 130
    assert "Finished so far: 2 of 42 cells." in (halves / "out" / "validation.md").read_text(encoding="utf-8")
    assert quick(tool, halves, match) == 0
    assert counts(halves) == counts(whole)


def test_the_page_shows_the_stored_counts(tool: ModuleType, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    for kind in tool.KINDS:
        begin, end = tool.markers(kind)
        assert page.count(begin) == page.count(end) == 1
        assert page.index(begin) < page.index("| --- |", page.index(begin)) < page.index(end)
    shutil.copy(ROOT / "docs" / "validation.md", tmp_path)
    shutil.copytree(ROOT / "docs" / "validation", tmp_path / "validation")
    assert tool.main(["--render", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "validation.md").read_text(encoding="utf-8") == page


@pytest.fixture(scope="module")
def ensembles() -> ModuleType:
    spec = importlib.util.spec_from_file_location("validate_ensembles", ROOT / "tools" / "validate_ensembles.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks
    spec.loader.exec_module(module)
    return module


def test_the_page_of_ensembles_shows_its_counts(ensembles: ModuleType) -> None:
    counts = ensembles.read(ensembles.COUNTS)
    assert ensembles.page(counts) == ensembles.PAGE.read_text(encoding="utf-8")
    assert all(case.name in counts for _, _, listed, _ in ensembles.PARTS for case in listed)
    for _, _, listed, wrong in ensembles.PARTS[::2]:  # right ones, and those whose spread is too small
        for case in listed:
            for n, found in counts[case.name].items():
                assert found[ensembles.DECISIONS.index(wrong)] <= 0.05 * sum(found) + 1, (case.name, n)


def test_counts_of_ensembles_go_on(ensembles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensembles, "BLOCK", 200)
    monkeypatch.setattr(ensembles, "SAMPLES", {100: 2, 200: 1})
    monkeypatch.setattr(ensembles, "FIRST", 2)
    monkeypatch.setattr(ensembles, "KEPT", tmp_path / "whole.json")
    listed = [ensembles.Case("normal", 0.3, 2, 20, 5), ensembles.Case("skewed", 0.0, 1, 10, 3)]
    whole = ensembles.run(listed)
    assert [sum(found["200"]) for found in whole.values()] == [3, 5]
    monkeypatch.setattr(ensembles, "KEPT", tmp_path / "halves.json")
    ensembles.run([ensembles.Case("normal", 0.3, 2, 20, 2)])
    assert ensembles.run(listed) == {name: whole[name] for name in ("normal | 0.3 | 2 | 20", "skewed | 0 | 1 | 10")}


def test_the_truth_by_quadrature_is_that_of_a_sample(cells: ModuleType) -> None:
    rng = np.random.default_rng(5)
    for model in cells.MODELS:
        sample = cells.draw(model, 100_000, 1.5, rng).score().excess
        error = sample.std() / np.sqrt(len(sample))
        assert abs(sample.mean() - cells.true_ecd(model, 1.5)) < 4.5 * error, model


def test_peers_keep_their_level(cells: ModuleType) -> None:
    rng = np.random.default_rng(6)
    p = rng.random((400, 200))
    y = rng.random(p.shape) < p
    for test in (cells.spiegelhalter, cells.brier_t, lambda a, b: cells.ece_test(a, b, rng)):
        rejected = np.mean([test(a, b) <= 0.05 for a, b in zip(y, p, strict=True)])
        assert 0.02 < rejected < 0.085
