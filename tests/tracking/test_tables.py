"""The tables of docs/tracking.md come from the tool."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tracking_tables", ROOT / "tools" / "tracking_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_every_table_once(tool: ModuleType) -> None:
    page = (ROOT / "docs" / "tracking.md").read_text(encoding="utf-8")
    for name in tool.TABLES:
        begin, end = tool.markers(name)
        assert page.count(begin) == page.count(end) == 1
        inside = page[page.index(begin) + len(begin) : page.index(end)].strip()
        assert len(inside.splitlines()) >= 4
        assert tool.replaced(page, name, inside) == page
    assert tool.PICTURE.is_file()


def test_error_bars_of_mixtures(tool: ModuleType) -> None:
    lines = tool.mixtures(rows=300).splitlines()
    assert len(lines) == 8
    covered = [float(cell.removesuffix(" %")) for line in lines[2:] for cell in line.split(" | ")[2:5]]
    assert min(covered) >= 91.0


@pytest.mark.proof
@pytest.mark.no_cover
def test_particles_against_exact_answers(tool: ModuleType) -> None:
    rows = [line.strip("| ").split(" | ") for line in tool.particle_table(rows=300, count=600).splitlines()[2:]]
    assert len(rows) == 2 * 3 * 4
    bias = {(kind, t, name): float(b) for kind, t, _, name, _, b, *_ in rows}
    ratio = {(row[0], row[3]): float(row[7].strip("| ")) for row in rows if row[1] == "1"}
    for kind in ("Kalman", "banana"):
        assert abs(bias[kind, "1", "neighbours, k = 10"]) < 0.15
        assert all(abs(bias[kind, t, "log-density"]) < 0.02 for t in ("1", "2", "4"))
        assert bias[kind, "4", "neighbours, k = 10"] < -0.3
        assert ratio[kind, "neighbours, k = 10"] == pytest.approx(1.0, abs=0.3)
    assert all(abs(bias["Kalman", t, "moments"]) < 0.15 for t in ("1", "2", "4"))
    assert ratio["banana", "moments"] > 3.0


def test_the_filter_that_is_written_out_is_the_one_of_the_experiment(tool: ModuleType) -> None:
    ecd = (tool.extended(tool.SETTINGS["standard"], 2000, 0) - 4) / 2
    assert np.median(ecd.mean(axis=1)) == pytest.approx(0.7, abs=0.12)
    assert 3.0 < ecd.mean() < 7.0
    assert tool.extended(tool.SETTINGS["hard"], 500, 0).mean() > 100
