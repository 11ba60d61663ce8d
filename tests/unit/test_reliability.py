"""Reliability: fields, documents, edges."""

import dataclasses
import json
import math

import numpy as np
import pytest

import safecal
from safecal import Bins
from safecal.errors import UnavailableError
from safecal.judge.reliability import Reliability
from safecal.judge.row_reliability import assess_reliability

RNG = np.random.default_rng(12)
N = 400
P = RNG.random(N)
Y = RNG.random(N) < P
PREDICTIONS = safecal.bernoulli(Y, P)


def test_the_same_data_give_the_same_answer() -> None:
    assert assess_reliability(PREDICTIONS) == assess_reliability(PREDICTIONS)
    assert assess_reliability(PREDICTIONS, rng=0) == assess_reliability(PREDICTIONS)
    other = assess_reliability(PREDICTIONS, rng=np.random.default_rng(7))
    assert other.ece_quantile == pytest.approx(assess_reliability(PREDICTIONS).ece_quantile, rel=0.05)


def test_documents_come_back() -> None:
    reliability = assess_reliability(PREDICTIONS)
    text = json.dumps(reliability.to_dict(), allow_nan=False)
    assert json.loads(text)["kind"] == "safecal.reliability"
    assert Reliability.from_dict(json.loads(text)) == reliability


def test_fields_are_fixed_plain_numbers() -> None:
    reliability = assess_reliability(PREDICTIONS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        reliability.ece = 0.0
    for field in dataclasses.fields(reliability):
        if field.name not in ("n", "spiegelhalter"):
            assert type(getattr(reliability, field.name)) is float, field.name


def test_blocks_do_not_matter(rng: np.random.Generator) -> None:
    n = 70_001
    p = rng.random(n)
    y = rng.random(n) < p
    reliability = assess_reliability(safecal.bernoulli(y, p))
    assert reliability.ece == pytest.approx(safecal.ece(y, p), rel=1e-10)
    assert reliability.brier == pytest.approx(safecal.brier(y, p), rel=1e-12)
    spread = math.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p)))
    assert reliability.spiegelhalter.statistic == pytest.approx(np.sum((y - p) * (1 - 2 * p)) / spread, rel=1e-8)


def test_the_scale_of_weights_does_not_matter(rng: np.random.Generator) -> None:
    w = rng.exponential(size=N)
    one, tiny = (assess_reliability(PREDICTIONS, sample_weight=c * w) for c in (1.0, 2.0**-200))
    assert one == tiny


def test_a_heavy_weight_that_comes_late_makes_a_bin_sparse() -> None:
    p, w = np.full(2000, 0.5), np.ones(2000)
    w[-1] = 1e4
    reliability = assess_reliability(safecal.bernoulli(np.arange(2000) % 2, p), bins=1, sample_weight=w)
    assert reliability.ece_expected == pytest.approx(0.5 * 1e4 / w.sum(), rel=0.01)  # one toss, not a normal law


def test_weight_zero_is_no_row() -> None:
    w = (np.arange(N) % 3 > 0).astype(float)
    some, all_rows = assess_reliability(safecal.bernoulli(Y[w > 0], P[w > 0])), assess_reliability(
        PREDICTIONS, sample_weight=w
    )  # fmt: skip
    assert some.ece_expected == pytest.approx(all_rows.ece_expected, rel=1e-12)
    assert some.brier == pytest.approx(all_rows.brier, rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_no_spread_is_no_evidence(p: float) -> None:
    reliability = assess_reliability(safecal.bernoulli([0, 0] if p == 0 else [1, 1], [p, p]))
    assert (reliability.spiegelhalter.statistic, reliability.spiegelhalter.p_value) == (0.0, 1.0)


def test_an_impossible_outcome_without_spread_is_proof() -> None:
    reliability = assess_reliability(safecal.bernoulli([1, 0], [0.0, 0.0]))
    assert (reliability.spiegelhalter.statistic, reliability.spiegelhalter.p_value) == (math.inf, 0.0)
    assert (reliability.ece, reliability.ece_expected, reliability.ece_quantile) == (0.5, 0.0, 0.0)
    assert Reliability.from_dict(json.loads(json.dumps(reliability.to_dict(), allow_nan=False))) == reliability
    more = assess_reliability(safecal.categorical([2, 0], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert more.spiegelhalter.statistic == math.inf


def test_many_bins_and_empty_ones() -> None:
    reliability = assess_reliability(PREDICTIONS, bins=5000)
    assert reliability.ece_expected <= reliability.ece_quantile <= 1.0
    assert reliability.ece == pytest.approx(safecal.ece(Y, P, bins=5000))
    assert assess_reliability(PREDICTIONS, bins=Bins.from_edges([-math.inf, 0.5, math.inf])).n == N


def test_one_row() -> None:
    reliability = assess_reliability(safecal.bernoulli([1], [0.75]))
    assert (reliability.ece, reliability.ece_expected, reliability.ece_quantile) == (0.25, 0.375, 0.75)
    assert (reliability.uncertainty, reliability.resolution) == (0.0, 0.0)
    assert reliability.brier == 0.0625


def test_states_have_no_reliability() -> None:
    with pytest.raises(UnavailableError, match="gaussian predictions have none"):
        assess_reliability(safecal.gaussian([0.0], [0.0], std=1.0))
