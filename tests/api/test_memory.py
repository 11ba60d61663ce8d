"""Sums need no memory that grows with the rows."""

import tracemalloc
from collections.abc import Callable

import numpy as np

import safecal

LIMIT = 64 * 2**20


def _peak(call: Callable[[], object]) -> int:
    call()  # imports and caches
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_million_binary_rows_need_less_than_64_mb() -> None:
    rng = np.random.default_rng(0)
    y_prob = rng.random(1_000_000)
    y_true = rng.integers(0, 2, 1_000_000)
    assert _peak(lambda: safecal.evaluate(y_true, y_prob)) < LIMIT
    weight = rng.random(1_000_000)
    assert _peak(lambda: safecal.evaluate(y_true, y_prob, sample_weight=weight, by=y_true)) < LIMIT


def test_ten_thousand_rows_of_a_thousand_classes_need_less_than_64_mb() -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((10_000, 1000), dtype=np.float32)
    y_true = rng.integers(0, 1000, 10_000)
    assert _peak(lambda: safecal.evaluate(y_true, logits=logits)) < LIMIT


def test_states_need_no_copy_of_their_covariances() -> None:
    rng = np.random.default_rng(0)
    cov = np.broadcast_to(np.eye(6), (100_000, 6, 6)).copy()
    x = rng.standard_normal((100_000, 6))
    mean = np.zeros_like(x)
    assert _peak(lambda: safecal.gaussian(x, mean, cov=cov).evaluate()) < LIMIT
