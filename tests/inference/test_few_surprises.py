"""Where predictions are sharp and surprises few, nothing may be taken for safety, nor for its opposite."""

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._sums import Tally
from safecal.inference.bounds import Bounds
from safecal.inference.law import Law


def _law(predictions: safecal.Predictions) -> Law:
    law = Bounds(Tally.of(predictions)).law
    assert law is not None
    return law


def test_no_surprise_where_many_were_expected_is_under_confidence() -> None:
    log_odds = np.random.default_rng(0).normal(4.0, 0.3, 1000)
    predictions = safecal.bernoulli(np.ones(1000), logits=log_odds)
    over, under = (safecal.calibration_test(predictions, alternative=a) for a in ("overconfident", "underconfident"))
    assert over.method == "convolution"
    assert over.p_value == 1.0
    none = np.exp(-np.log1p(np.exp(-log_odds)).sum())
    assert under.p_value == pytest.approx(none, rel=1e-9)


def test_the_bound_without_a_surprise_is_the_rule_of_three() -> None:
    n, p = 200, 0.999
    law = _law(safecal.bernoulli(np.ones(n), np.full(n, p)))
    most = 1.0 - 0.05 ** (1.0 / n)  # the largest rate under which n rows without a surprise have a chance of 5 %
    assert law.bound(0.05, -1) == pytest.approx(stats.logistic.ppf(1.0 - most) / stats.logistic.ppf(p), rel=1e-6)
    assert law.bound(0.05, +1) == np.inf


@pytest.mark.parametrize("surprises", [1, 2, 4])
def test_the_bounds_at_constant_p_are_those_of_clopper_and_pearson(surprises: int) -> None:
    n, p = 400, 0.99
    y_true = np.arange(n) >= surprises
    law = _law(safecal.bernoulli(y_true, np.full(n, p)))
    rates = stats.binomtest(surprises, n).proportion_ci(0.90, "exact")
    low, high = (stats.logistic.ppf(1.0 - rate) / stats.logistic.ppf(p) for rate in (rates.high, rates.low))
    assert law.bound(0.05, -1) == pytest.approx(low, rel=1e-6)
    assert law.bound(0.05, +1) == pytest.approx(high, rel=1e-6)


@pytest.mark.proof
@pytest.mark.no_cover
def test_bounds_of_a_few_vague_predictions_hold() -> None:
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(200):
        p = rng.random(25)
        missed += _law(safecal.bernoulli(rng.random(25) < p, p)).bound(0.05, -1) > 1.0
    assert missed <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)


def test_few_weighted_rows_at_a_high_level_have_bounds() -> None:
    """The bounds lie where the model would be all but certain, and the sum can be but one number."""
    y, logits, weight = [1, 1, 1, 0, 1], [-1.0, 1.0, 1.0, -1.0, 0.0], [0.63742249, 0.28195186, 0.0, 0.0, 0.0]
    result = safecal.evaluate(y, logits=logits, sample_weight=weight, level=0.999)
    assert result.verdict.decision == "UNDETERMINED"
    assert result.temperature.low < result.temperature.high
    assert result.interval.low < result.ecd < result.interval.high
