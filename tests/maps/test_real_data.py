"""Real predictions: half of the rows to fit, the other half to check."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import safecal
from safecal.errors import UnavailableError
from safecal.maps.temperature import SafeTemperature, Temperature


def halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(n)
    return order[: n // 2], order[n // 2 :]


def column(path: Path, name: str) -> np.ndarray:
    with path.open(newline="") as file:
        return np.array([row[name] for row in csv.DictReader(file)])


def check(y: np.ndarray, form: str, values: np.ndarray, before: float, safe: float) -> None:
    """Compare over-confidence on the other half before and after, and the temperature."""
    fit, rest = halves(len(y))
    assert safecal.ecd(y[rest], **{form: values[rest]}) == pytest.approx(before, abs=5e-4)
    model = SafeTemperature().fit(y[fit], **{form: values[fit]})
    assert model.temperature_ == pytest.approx(safe, abs=5e-3)
    mended = model.apply(**{form: values[rest]})
    assert -0.05 < safecal.ecd(y[rest], mended) <= 0.0
    plain = Temperature().fit(y[fit], **{form: values[fit]})
    assert plain.temperature_ < model.temperature_
    assert abs(safecal.ecd(y[fit], plain.apply(**{form: values[fit]}))) <= 1e-8
    price = safecal.nll(y[rest], mended) - safecal.nll(y[rest], plain.apply(**{form: values[rest]}))
    assert 0.0 < price < 1e-3
    assert safecal.nll(y[rest], mended) < safecal.nll(y[rest], **{form: values[rest]})


@pytest.mark.parametrize(
    ("name", "before", "safe"),
    [
        ("wideresnet-16-4-cifar-10", 0.2663, 2.140),
        pytest.param("densenet-bc-100-cifar-100", 0.9314, 2.161, marks=pytest.mark.proof),
    ],
)
def test_images(shared_data: Path, name: str, before: float, safe: float) -> None:
    with np.load(shared_data / "cifar" / f"{name}.npz") as file:
        check(file["ground_truth"], "y_prob", file["predictions"], before, safe)


def test_tweets(shared_data: Path) -> None:
    path = shared_data / "toxicity" / "bilstm_tweets.csv"
    y, odds = column(path, "y").astype(int), column(path, "logit").astype(float)
    check(y, "logits", odds, 0.2304, 1.803)


def test_impossible_outcomes_are_refused_until_clipped(shared_data: Path) -> None:
    path = shared_data / "cells" / "segment_naive_bayes.csv"
    y, p = column(path, "Class"), column(path, ".pred_poor").astype(float)
    with pytest.raises(UnavailableError, match=r"\(4 of 1010 rows\)"):
        SafeTemperature().fit(y, p, pos_label="poor")
    p = np.clip(p, 1e-6, 1 - 1e-6)
    fit, rest = halves(len(y))
    model = SafeTemperature().fit(y[fit], p[fit], pos_label="poor")
    assert safecal.ecd(y[rest], p[rest], pos_label="poor") > 1.0
    assert -0.1 < safecal.ecd(y[rest], model.apply(p[rest]), pos_label="poor") <= 0.0
