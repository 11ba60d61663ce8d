"""Weights with heavy tails: a few rows hold nearly all of the weight. The test of calibration keeps its size."""

import numpy as np
import pytest
from models import error
from scipy import special

import safecal

LEVEL = 0.05


def _size(tail: float, n: int, repeats: int) -> float:
    """Return how often a calibrated model is rejected; every row set has an answer."""
    rng = np.random.default_rng([int(10 * tail), n])
    rejected = 0
    for _ in range(repeats):
        z = rng.normal(0.0, 1.5, n)
        predictions = safecal.bernoulli(rng.random(n) < special.expit(z), logits=z)
        test = safecal.calibration_test(predictions, sample_weight=rng.pareto(tail, n) + 1.0)
        rejected += test.p_value <= LEVEL
    return rejected / repeats


def test_heavy_weights_have_an_answer() -> None:
    assert _size(0.7, 50, 20) <= LEVEL + error(LEVEL, 20)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("n", [50, 300, 2000])
@pytest.mark.parametrize("tail", [0.5, 0.7, 1.0, 1.5, 3.0])
def test_heavy_weights_keep_the_size(tail: float, n: int) -> None:
    repeats = 200 if n < 2000 else 60
    assert _size(tail, n, repeats) <= LEVEL + error(LEVEL, repeats)
