"""Searching is not much slower than sorting, and takes little memory beside the features."""

import resource
import time

import numpy as np
import pytest

import safecal

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]


def test_fifty_features_cost_ten_sorts_at_most(rng: np.random.Generator) -> None:
    n = 1_000_000
    columns = {f"x{j}": rng.normal(size=n) for j in range(50)}
    z = rng.normal(0, 2, n)
    predictions = safecal.bernoulli(rng.random(n) < 1 / (1 + np.exp(-z)), logits=z)
    start = time.process_time()
    for column in columns.values():
        np.sort(column, kind="stable")  # by comparisons; the other kind is 15 times as fast on some processors
    sorting = time.process_time() - start
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    slices = safecal.find_slices(predictions, columns)
    assert time.process_time() - start < 10.0 * sorting
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert taken < 2 * 8 * n * len(columns)
    assert not len(slices)
