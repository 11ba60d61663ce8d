"""Sums need no memory that grows with the rows."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import safecal

pytestmark = pytest.mark.proof
LIMIT = 64 * 2**20


def _peak(call: Callable[[slice], object]) -> int:
    call(slice(100))  # imports and caches
    tracemalloc.start()
    try:
        call(slice(None))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_million_binary_rows_need_less_than_64_mb(rng: np.random.Generator) -> None:
    y_prob = rng.random(1_000_000)
    y_true = rng.integers(0, 2, 1_000_000)
    assert _peak(lambda rows: safecal.evaluate(y_true[rows], y_prob[rows])) < LIMIT
    weight = rng.random(1_000_000)
    assert (
        _peak(lambda rows: safecal.evaluate(y_true[rows], y_prob[rows], sample_weight=weight[rows], by=y_true[rows]))
        < LIMIT
    )


def test_ten_thousand_rows_of_a_thousand_classes_need_less_than_64_mb(rng: np.random.Generator) -> None:
    logits = rng.standard_normal((10_000, 1000), dtype=np.float32)
    y_true = rng.integers(0, 1000, 10_000)
    assert _peak(lambda rows: safecal.evaluate(y_true[rows], logits=logits[rows])) < LIMIT


def test_states_need_no_copy_of_their_covariances(rng: np.random.Generator) -> None:
    cov = np.broadcast_to(np.eye(6), (100_000, 6, 6)).copy()
    x = rng.standard_normal((100_000, 6))
    mean = np.zeros_like(x)
    assert _peak(lambda rows: safecal.gaussian(x[rows], mean[rows], cov=cov[rows]).evaluate()) < LIMIT
