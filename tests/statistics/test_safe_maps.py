"""How often what `Safe` makes is over-confident, against truths that are known.

The cases are those of ``tools/validate_maps.py``, which prints them as a table.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parents[2] / "tools" / "validate_maps.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("validate_maps", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("truth", "name"),
    [
        ("T = 1.7", "Affine"),
        ("shift -1.5", "Affine"),
        ("T = 3 far above 1/2, 1 far below", "Beta"),
        ("shift -1.5", "Isotonic"),
    ],
)
def test_inside_its_family_what_is_safe_is_seldom_over_confident(tool: ModuleType, truth: str, name: str) -> None:
    rates = tool.measure(truth, name, 300, 150)
    assert rates.safe <= 0.05 + 2.5 * 0.0178  # 150 repetitions
    assert rates.plain > 0.2
    assert rates.same_rows >= rates.safe


@pytest.mark.proof
@pytest.mark.no_cover
def test_clusters_that_share_a_shock_are_kept_apart(tool: ModuleType) -> None:
    alone, clustered, refused = tool.measure_clusters(100)
    assert clustered <= 0.05 + 2.5 * 0.022
    assert alone > 0.1
    assert refused < 0.5
