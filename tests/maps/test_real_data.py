"""Real predictions: half of the rows to fit, the other half to check."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import special

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


# What recalibration is held to, in means of half splits


def fixed(y: np.ndarray, z: np.ndarray, splits: int, *, safe: bool = True) -> np.ndarray:
    """Return NLL as given, NLL, ECE and whether the verdict is UNSAFE on the other half, in each split."""
    scores = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(y))
        a, b = order[: len(y) // 2], order[len(y) // 2 :]
        model = safecal.recalibrate(y[a], logits=z[a], safe=safe).map
        result = safecal.evaluate(y[b], logits=model.apply_logits(logits=z[b]))
        scores.append([safecal.nll(y[b], logits=z[b]), result.nll, result.ece, result.verdict.decision == "UNSAFE"])
    return np.array(scores)


@pytest.mark.proof
@pytest.mark.no_cover
def test_tweets_are_mended_by_a_curve(shared_data: Path) -> None:
    path = shared_data / "toxicity" / "bilstm_tweets.csv"
    scores = fixed(column(path, "y").astype(int), column(path, "logit").astype(float), 20)
    assert scores[:, 1].mean() <= 0.285
    assert scores[:, 2].mean() <= 0.03
    assert scores[:, 3].sum() <= 2


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["baseball/mlb_games.csv", "football/nfl_games.csv"])
def test_games_are_not_harmed(shared_data: Path, name: str) -> None:
    p, y = column(shared_data / name, "prob1"), column(shared_data / name, "prob1_outcome")
    played = np.array([a != "" and b in ("0", "1", "0.0", "1.0") for a, b in zip(p, y, strict=True)])
    z = special.logit(np.clip(p[played].astype(float), 1e-6, 1 - 1e-6))
    happened = y[played].astype(float).astype(int)
    plain, safe = (fixed(happened, z, 20, safe=safe) for safe in (False, True))
    assert plain[:, 1].mean() <= plain[:, 0].mean() + 1e-3
    # To rule over-confidence out at 5 % takes 1.645 standard errors of the temperature: 1.35 / n nats, and its noise.
    assert safe[:, 1].mean() <= plain[:, 1].mean() + 2.0 / (len(z) // 2)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "splits", "most"), [("wideresnet-16-4-cifar-10", 20, 0.242), ("densenet-bc-100-cifar-100", 5, 0.881)]
)
def test_images_are_mended_class_by_class(shared_data: Path, name: str, splits: int, most: float) -> None:
    with np.load(shared_data / "cifar" / f"{name}.npz") as file:
        y, p = file["ground_truth"].astype(int).ravel(), file["predictions"].astype(float)
    assert fixed(y, np.log(np.maximum(p, 1e-12)), splits)[:, 1].mean() <= most
