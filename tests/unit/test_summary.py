"""Means that are read off sums."""

import math

import numpy as np
import pytest

import safecal
from safecal import Summary
from safecal.errors import RangeError


def test_the_empty_summary_has_no_means() -> None:
    empty = Summary()
    for name in ("ecd", "ecd_possible", "nll", "brier", "accuracy", "bias", "mean_entropy", "mean_confidence"):
        assert math.isnan(getattr(empty, name)), name
    assert repr(empty) == "Summary(n=0, ecd=+nan)"


def test_means_of_two_rows_by_hand() -> None:
    summary = safecal.bernoulli([1, 0], [0.8, 0.4]).summary([1.0, 3.0])
    excess = [-0.2 * math.log(4), 0.4 * math.log(2 / 3)]
    surprisal = [-math.log(0.8), -math.log(0.6)]
    assert summary.n == 2
    assert summary.weight == 4.0
    assert summary.weight2 == 10.0
    assert summary.weight3 == 28.0
    assert summary.ecd == pytest.approx((excess[0] + 3 * excess[1]) / 4)
    assert summary.nll == pytest.approx((surprisal[0] + 3 * surprisal[1]) / 4)
    assert summary.mean_entropy == pytest.approx(summary.nll - summary.ecd)
    assert summary.brier == pytest.approx((0.04 + 3 * 0.16) / 4)
    assert summary.mean_predicted == pytest.approx((0.8 + 3 * 0.4) / 4)
    assert summary.mean_observed == 0.25
    assert summary.bias == pytest.approx(0.25 - 0.5)
    assert summary.accuracy == 1.0
    assert summary.mean_confidence == pytest.approx((0.8 + 3 * 0.6) / 4)
    assert summary.numerical_error == 0.0


def test_impossible_outcomes_stand_apart() -> None:
    summary = safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.8]).summary()
    rest = safecal.bernoulli([0, 1], [0.4, 0.8]).summary()
    assert summary.n_impossible == 1
    assert summary.ecd == summary.nll == math.inf
    assert summary.ecd_possible == rest.ecd
    assert summary.mean_entropy == rest.mean_entropy
    assert summary.sum_varentropy == rest.sum_varentropy
    assert summary.weight2 == 2.0
    assert summary.brier == pytest.approx((1.0 + 0.16 + 0.04) / 3)
    assert repr(summary).startswith("Summary(n=3, n_impossible=1, ecd=+inf")


def test_nothing_but_impossible_outcomes_is_infinite_and_never_nan() -> None:
    summary = safecal.bernoulli([1, 1], [0.0, 0.0]).summary()
    assert summary.ecd == summary.nll == math.inf
    assert math.isnan(summary.ecd_possible)
    assert summary.sum_excess == 0.0


def test_the_text_shows_the_values() -> None:
    assert repr(safecal.gaussian([1.0, -2.0], [0.0, 0.0], std=1.0).summary()) == (
        "Summary(n=2, ecd=+0.75, nll=2.16894)"
    )


def test_sums_beyond_every_float_are_refused_and_never_infinite() -> None:
    far = safecal.bernoulli([0] * 10 + [1], logits=[1.7e308] * 10 + [0.3])
    for look in (far.summary, far.table, far.tally, far.evaluate, lambda: far.ecd):
        with pytest.raises(RangeError, match="more than a float holds"):
            look()
    one = far.take(np.array([0]))
    assert one.ecd == 1.7e308
    with pytest.raises(RangeError, match="more than a float holds"):
        one.summary() + one.summary()
    states = safecal.gaussian([1.3e154] * 10, [0.0] * 10, std=[1.0] * 10)
    with pytest.raises(RangeError, match="more than a float holds"):
        states.evaluate()
