"""torchmetrics: the same ECE where definitions coincide, both numbers where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import safecal

torch = pytest.importorskip("torch")
classification = pytest.importorskip("torchmetrics.classification")

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("default")]  # their warnings are not ours to mend


def binary(y: Any, p: Any, bins: int = 10, *, dtype: Any = None) -> float:
    metric = classification.BinaryCalibrationError(n_bins=bins, norm="l1")
    return float(metric(torch.tensor(p, dtype=dtype or torch.float64), torch.tensor(y)))


def multiclass(y: np.ndarray, p: np.ndarray, bins: int = 10) -> float:
    metric = classification.MulticlassCalibrationError(num_classes=p.shape[1], n_bins=bins, norm="l1")
    return float(metric(torch.tensor(p), torch.tensor(y)))


@pytest.mark.parametrize("bins", [5, 10, 15])
def test_binary_ece_agrees_on_interior_probabilities(bins: int) -> None:
    rng = np.random.default_rng(bins)
    p = expit(rng.normal(0.0, 2.0, 5000))
    y = (rng.random(5000) < p**1.5).astype(int)
    assert safecal.ece(y, p, bins=bins) == pytest.approx(binary(y, p, bins), abs=1e-6)


@pytest.mark.parametrize("bins", [5, 10, 15])
def test_multiclass_ece_agrees_on_interior_probabilities(bins: int) -> None:
    rng = np.random.default_rng(bins)
    p, y = rng.dirichlet(np.full(4, 0.7), 5000), rng.integers(0, 4, 5000)
    inside = p.max(axis=1) < 0.999
    assert safecal.ece(y[inside], p[inside], bins=bins) == pytest.approx(
        multiclass(y[inside], p[inside], bins), abs=1e-6
    )


def test_multiclass_ece_agrees_on_images(shared_data: Path) -> None:
    with np.load(shared_data / "cifar" / "wideresnet-16-4-cifar-10.npz") as file:
        y, p = file["ground_truth"], file["predictions"]
    inside = p.max(axis=1) < 1.0
    assert safecal.ece(y[inside], p[inside]) == pytest.approx(multiclass(y[inside], p[inside]), abs=1e-5)


def test_binary_ece_agrees_on_football(shared_data: Path) -> None:
    table = np.genfromtxt(shared_data / "football" / "nfl_games.csv", delimiter=",", skip_header=1, usecols=(4, 5))
    table = table[table[:, 1] != 0.5]
    y, p = table[:, 1].astype(int), table[:, 0]
    assert safecal.ece(y, p) == pytest.approx(binary(y, p), abs=1e-6)


def test_theirs_puts_one_into_a_hidden_bin_and_ours_into_the_last() -> None:
    y, p = [0, 1], [1.0, 0.9]
    assert binary(y, p) == pytest.approx((1.0 + 0.1) / 2)  # two bins: |0 - 1| and |1 - .9|
    assert safecal.ece(y, p) == pytest.approx(0.45)  # one bin: |.5 - .95|


def test_theirs_guesses_logits_from_the_values_of_a_batch_and_ours_is_told() -> None:
    logits, y = [0.2, 0.8, 3.0, 0.4], [0, 1, 1, 0]
    whole = binary(y, logits)
    assert whole == pytest.approx(safecal.ece(y, logits=logits), abs=1e-6)
    in_two = classification.BinaryCalibrationError(n_bins=10, norm="l1")
    in_two.update(torch.tensor(logits[:2], dtype=torch.float64), torch.tensor(y[:2]))  # within [0, 1]: "probabilities"
    in_two.update(torch.tensor(logits[2:], dtype=torch.float64), torch.tensor(y[2:]))  # beyond 1: "logits"
    assert abs(float(in_two.compute()) - whole) > 0.05
    parts = [safecal.bernoulli(y[part], logits=logits[part]).summary() for part in (slice(0, 2), slice(2, 4))]
    assert sum(parts, safecal.Summary()).ecd == pytest.approx(safecal.ecd(y, logits=logits), rel=1e-14)


def test_tensors_are_read_as_the_numbers_they_hold() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    assert safecal.ecd(torch.tensor(y), torch.tensor(p)) == safecal.ecd(y, p)
    narrow = torch.tensor(p, dtype=torch.float32)
    assert safecal.ecd(torch.tensor(y), narrow) == safecal.ecd(y, narrow.numpy())
    half = torch.tensor(p, dtype=torch.bfloat16)
    assert safecal.ecd(torch.tensor(y), half) == safecal.ecd(y, half.float().numpy())
