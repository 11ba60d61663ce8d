"""Bounds at every level: against Clopper and Pearson, the rule of three, and their own definition."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal import Predictions
from safecal._sums import Tally
from safecal.inference.bounds import Bounds, inverse
from safecal.inference.law import Law, normal_score, undo_hall
from safecal.inference.sum_bounds import interval_from_sums


def _bounds(predictions: Predictions, weight: np.ndarray | None = None) -> Bounds:
    return Bounds(Tally.of(predictions, sample_weight=weight))


def _law(predictions: Predictions) -> Law:
    law = _bounds(predictions).law
    assert law is not None
    return law


def _constant(n: int, k: int, p: float) -> Predictions:
    return safecal.bernoulli(np.arange(n) >= k, np.full(n, p))


def _clopper_pearson(k: int, n: int, alpha: float) -> tuple[float, float]:
    """One-sided bounds on the rate of surprises."""
    low = float(stats.beta.ppf(alpha, k, n - k + 1)) if k else 0.0
    return low, float(stats.beta.isf(alpha, k + 1, n - k))


@pytest.mark.parametrize(("n", "k", "p"), [(200, 0, 0.99), (200, 1, 0.99), (300, 3, 0.99), (1000, 12, 0.995),
                                           (400, 2, 0.95), (100, 5, 0.9), (1000, 100, 0.9), (60, 25, 0.7),
                                           (10_000, 1, 0.9999)])  # fmt: skip
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.025, 1e-4])
def test_constant_predictions_give_clopper_and_pearson(n: int, k: int, p: float, alpha: float) -> None:
    law = _law(_constant(n, k, p))
    logit = float(special.logit(p))
    for rate, beta in zip(_clopper_pearson(k, n, alpha), (law.bound(alpha, +1), law.bound(alpha, -1)), strict=True):
        # beta = log-odds of being right, by those that were claimed; below 0 confidence carries no information
        wanted = max(-float(special.logit(rate)) / logit, 0.0) if rate > 0.0 else math.inf
        assert beta == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("n", [100, 1000, 30_000])
def test_no_surprise_is_the_rule_of_three(n: int) -> None:
    law = _law(_constant(n, 0, 0.9999))
    assert law.beta == math.inf
    assert law.bound(0.05, +1) == math.inf
    rate = float(special.expit(-law.bound(0.05, -1) * special.logit(0.9999)))
    assert n * rate == pytest.approx(3.0, rel=0.02)
    assert rate == pytest.approx(1.0 - 0.05 ** (1.0 / n), rel=1e-6)


def test_the_ecd_that_goes_with_a_bound() -> None:
    p, n = 0.99, 500
    law = _law(_constant(n, 2, p))
    rate = float(special.expit(-law.bound(0.05, -1) * special.logit(p)))
    assert law.ecd(law.bound(0.05, -1)) == pytest.approx((rate - (1.0 - p)) * float(special.logit(p)), rel=1e-9)


def test_the_upper_bound_of_a_lucky_sample_is_not_its_own_spread() -> None:
    # No surprise among 500 rows of 99.9 %: every row looks the same, and the truth may still be far above.
    interval = _bounds(_constant(500, 0, 0.999)).interval(0.9)
    rate = 1.0 - 0.05 ** (1.0 / 500.0)
    assert interval.high == pytest.approx((rate - 0.001) * float(special.logit(0.999)), rel=1e-6)
    assert interval.value < 0.0 < interval.high


@pytest.mark.proof
def test_bounds_widen_with_the_level_and_hold_the_estimate() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    z = rng.normal(0.0, 3.0, (200, 4))
    weight = rng.gamma(1.0, 1.0, 300)
    some: list[Bounds] = [
        _bounds(safecal.bernoulli(rng.random(300) < p, p)),
        _bounds(safecal.bernoulli(rng.random(300) < p, p), weight),
        _bounds(_constant(300, 2, 0.99)),
        _bounds(safecal.categorical(z.argmax(axis=1) * (rng.random(200) < 0.8), logits=z)),
        _bounds(safecal.categorical(np.arange(40) == 7, np.tile([0.98, 0.01, 0.01], (40, 1)))),
        _bounds(safecal.gaussian(rng.normal(size=(50, 2)), np.zeros((50, 2)), std=1.0)),
    ]
    for interval in some:
        levels = (0.3, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999)
        intervals = [interval.interval(level) for level in levels]
        temperatures = [interval.temperature(level) for level in levels]
        for chain in (intervals, temperatures):
            assert all(i.low <= i.value <= i.high for i in chain)
            for inner, outer in itertools.pairwise(chain):
                assert outer.low <= inner.low + 1e-9
                assert inner.high <= outer.high + 1e-9


def test_bounds_from_sums_widen_with_the_level_and_hold_the_estimate() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    for predictions in (safecal.bernoulli(rng.random(300) < p, p), _constant(300, 2, 0.99)):
        chain = [interval_from_sums(predictions.summary(), x) for x in (0.3, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999)]
        assert all(i.low <= i.value <= i.high for i in chain)
        for inner, outer in itertools.pairwise(chain):
            assert outer.low <= inner.low + 1e-9
            assert inner.high <= outer.high + 1e-9


def test_an_impossible_outcome_makes_both_bounds_infinite() -> None:
    predictions = safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.7])
    for interval in (_bounds(predictions).interval(0.9), interval_from_sums(predictions.summary(), 0.9)):
        assert (interval.low, interval.high) == (math.inf, math.inf)


def test_impossible_rows_of_weight_zero_do_not_count() -> None:
    weight = np.array([0.0, 1.0, 1.0])
    predictions = safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.7])
    assert math.isfinite(_bounds(predictions, weight).interval(0.9).high)


def test_from_sums_of_no_rows() -> None:
    assert math.isnan(interval_from_sums(safecal.Summary(), 0.9).high)


def test_from_sums_of_extreme_rows() -> None:
    for y, p in (([0, 0, 1, 1, 1], [1 - 1e-9, 1 - 1e-16, 0.9, 0.9, 1e-300]), ([1, 0], [0.5 + 1e-12, 0.5 - 1e-9])):
        interval = interval_from_sums(safecal.bernoulli(y, p).summary(), 0.95)
        assert interval.low <= interval.high
        assert math.isfinite(interval.high)


def test_rows_and_sums_agree_where_surprises_are_many() -> None:
    rng = np.random.default_rng(2)
    p = rng.beta(2, 1, 5000)
    predictions = safecal.bernoulli(rng.random(5000) < p, p)
    a, b = _bounds(predictions).interval(0.95), interval_from_sums(predictions.summary(), 0.95)
    width = b.high - b.low
    assert abs(a.low - b.low) < 0.05 * width
    assert abs(a.high - b.high) < 0.05 * width


@pytest.mark.parametrize("skew", [-1.0, -0.1, 1e-9, 0.3])
def test_hall_is_undone(skew: float) -> None:
    for g in (-1.9, 0.0, 0.7, 2.0):
        t = undo_hall(g, skew)
        assert t + skew * t * t / 3.0 + skew**2 * t**3 / 27.0 + skew / 6.0 == pytest.approx(g, abs=1e-7)


def test_the_temperature_of_an_inverse_temperature() -> None:
    assert (inverse(0.0), inverse(math.inf), inverse(4.0)) == (math.inf, 0.0, 0.25)


def test_scores() -> None:
    assert normal_score(0.05) == pytest.approx(1.6448536)
    assert normal_score(0.5) == 0.0
    assert math.isfinite(normal_score(0.0))
    assert math.isfinite(normal_score(1.0))
