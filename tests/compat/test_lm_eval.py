"""Logs that lm-evaluation-harness wrote about a tiny model, and its own numbers; ``tests/apart`` runs the harness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safecal.compat.lm_eval import read_samples

FOLDER = Path(__file__).parent / "lm_eval"
RESULTS = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))


def _log(task: str) -> Path:
    return next(FOLDER.glob(f"samples_{task}_*.jsonl"))


def test_the_numbers_are_those_of_the_harness() -> None:
    plain = read_samples(_log("plain")).evaluate()
    assert plain.accuracy == RESULTS["plain"]["acc,none"]
    assert plain.brier == pytest.approx(RESULTS["plain"]["brier_score,none"], abs=1e-9)
    by_length = read_samples(_log("plain"), normalise="characters").evaluate()
    assert by_length.accuracy == RESULTS["plain"]["acc_norm,none"]


def test_the_metrics_in_the_harness_are_those_of_its_logs() -> None:
    ragged = read_samples(_log("ragged")).evaluate()
    assert ragged.accuracy == RESULTS["ragged"]["acc,none"]
    assert ragged.ecd == pytest.approx(RESULTS["ragged"]["ecd,none"], abs=1e-9)
    assert ragged.temperature.value == pytest.approx(RESULTS["ragged"]["temperature,none"], abs=1e-9)
    assert set(read_samples(_log("ragged")).columns["subject"]) == {"pets", "farm"}
