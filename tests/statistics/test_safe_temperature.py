"""How often recalibrated predictions are over-confident, against truths that are known.

The cases are those of ``tools/validate_recalibration.py``, which prints them as a table.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]  # the same lines many times over
PATH = Path(__file__).resolve().parents[2] / "tools" / "validate_recalibration.py"
ALPHA = 0.05


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("validate_recalibration", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    module.population = cache(module.population)  # type: ignore[attr-defined]  # the same for every size
    return module


tool = _load()
INSIDE, OUTSIDE = tool.inside(), tool.outside()


def error(repetitions: int) -> float:
    return math.sqrt(ALPHA * (1 - ALPHA) / repetitions)


def name(case: object) -> str:
    return f"{case.model}, {case.truth}" if isinstance(case, tool.Case) else str(case)


REPETITIONS = 100
LIMIT = ALPHA + 2 * error(REPETITIONS)


@cache
def measured(case: object, n: int) -> Any:
    return tool.measure(case, n, REPETITIONS)


@pytest.mark.parametrize("case", INSIDE, ids=name)
def test_the_level_holds_where_a_temperature_is_all_that_is_wrong(case: object) -> None:
    for n in tool.SIZES:
        assert measured(case, n).safe_over <= LIMIT, n


@pytest.mark.parametrize("case", [INSIDE[0], INSIDE[-1]], ids=name)
def test_safe_where_plain_is_a_coin_toss(case: object) -> None:
    found = measured(case, 50)
    assert found.safe_over <= LIMIT
    assert 0.3 < found.plain_over < 0.7
    assert found.price_plain < found.price_safe < 0.1


@pytest.mark.parametrize("case", [INSIDE[1], INSIDE[7]], ids=name)
def test_the_price_shrinks_with_the_rows(case: object) -> None:
    prices = [measured(case, n).price_safe for n in tool.SIZES]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] < 0.004


@pytest.mark.parametrize("case", OUTSIDE, ids=name)
def test_the_rate_elsewhere_is_what_is_published(case: object) -> None:
    # No bound without assumptions exists. Rare large errors of states are the worst: few samples hold one of them.
    assert isinstance(case, tool.Case)
    worst = 0.40 if case.states else 0.10
    for n in tool.SIZES:
        assert tool.measure(case, n, 50).safe_over <= worst + 2 * math.sqrt(worst * (1 - worst) / 50), n


def test_the_table_has_as_many_cells_as_its_head() -> None:
    case = INSIDE[-1]
    row = tool.line(case, 50, tool.measure(case, 50, 20))
    assert row.count(" |") == tool.HEAD.count(" |")
