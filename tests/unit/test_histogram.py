"""How the excess is spread: counts and sums that merge, quantiles to a stated resolution."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecal
from safecal import Histogram, Scored
from safecal._sums.scored import CELLS, counted


def _of(excess: np.ndarray, weight: np.ndarray | None = None) -> Histogram:
    counts, sums = counted(Scored(excess, np.ones_like(excess), np.zeros_like(excess)), weight).T.tolist()
    return Histogram(tuple(counts), tuple(sums))


def _close(a: Histogram, b: Histogram) -> bool:
    return a.counts == pytest.approx(b.counts, rel=1e-12) and a.sums == pytest.approx(b.sums, rel=1e-9, abs=1e-300)


EXCESS = st.lists(
    st.one_of(st.floats(-40.0, 700.0), st.sampled_from([0.0, -0.0, 1e-300, -1e-7, 2.0**-20, 1e5, -1e5, 1e200])),
    min_size=1,
    max_size=60,
).map(np.array)


@given(EXCESS, EXCESS)
def test_histograms_merge(a: np.ndarray, b: np.ndarray) -> None:
    assert _close(_of(a) + _of(b), _of(np.concatenate([a, b])))
    assert _of(a) + Histogram() == _of(a) == Histogram() + _of(a)


@given(EXCESS)
def test_every_row_is_in_one_cell(excess: np.ndarray) -> None:
    histogram = _of(excess)
    assert len(histogram.counts) == len(histogram.sums) == CELLS
    assert sum(histogram.counts) == len(excess)
    assert math.fsum(histogram.sums) == pytest.approx(math.fsum(excess), rel=1e-9, abs=1e-9 * np.abs(excess).sum())
    assert Histogram.from_dict(json.loads(json.dumps(histogram.to_dict(), allow_nan=False))) == histogram


@given(EXCESS.filter(lambda x: len(x) % 2 == 1 and np.abs(x).max() < 1e4))
def test_the_median_to_its_resolution(excess: np.ndarray) -> None:
    exact = float(np.median(excess))
    assert abs(_of(excess).median - exact) <= 0.0906 * abs(exact) + 2.0**-20


@pytest.mark.parametrize("rows", [0.001, 0.01, 0.05, 0.25, 0.5, 1.0])
def test_the_worst_share_to_its_resolution(rows: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(5, 0.5, 20_000)
    excess = safecal.bernoulli(rng.random(20_000) < p**2, p).score().excess
    ordered = np.sort(excess)[::-1]
    exact = np.maximum(ordered[: round(rows * len(ordered))], 0.0).sum() / np.maximum(ordered, 0.0).sum()
    predictions = safecal.bernoulli(rng.random(20_000) < p**2, p)
    assert _of(excess).worst_share(rows) == pytest.approx(exact, rel=0.09, abs=1e-9)
    assert 0.0 <= predictions.evaluate(bins=None).histogram.worst_share(rows) <= 1.0 + 1e-12


def test_the_worst_share_at_its_ends() -> None:
    assert _of(np.array([5.0] + [0.01] * 99)).worst_share(0.01) == pytest.approx(5.0 / 5.99)
    assert _of(np.ones(100)).worst_share(0.01) == pytest.approx(0.01)
    assert math.isnan(_of(-np.ones(3)).worst_share())
    assert math.isnan(Histogram().worst_share())
    assert math.isnan(Histogram().median)


def test_weights_and_impossible_rows() -> None:
    histogram = _of(np.array([1.0, -0.2, math.inf]), np.array([2.0, 3.0, 5.0]))
    assert sum(histogram.counts) == 5.0
    assert math.fsum(histogram.sums) == pytest.approx(2.0 - 0.6)
    assert _of(np.array([1.0, -0.2, math.inf])).median == pytest.approx(-0.2)


def test_what_a_person_sees() -> None:
    assert repr(_of(np.array([0.5, 0.5, -1.0]))) == "Histogram(weight=3, median=+0.5)"
