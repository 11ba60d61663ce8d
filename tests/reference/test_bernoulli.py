"""Two outcomes against hundreds of digits: relative error at most 1e-12, for probabilities and for log-odds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import safecal

from . import oracle

RELATIVE = 1e-12
UNDERFLOW = 1e-307  # below it a double has fewer digits
NAMES = ("surprisal", "entropy", "excess", "varentropy", "third_cumulant", "brier")

_rng = np.random.default_rng(20250214)
_tiny = [10.0**-k for k in (300, 250, 200, 160, 150, 100, 50, 20, 17, 16, 15, 14, 12, 10, 8, 6, 4, 3, 2, 1)]
_ulp = 2.0**-53  # half the distance of doubles above 1/2, the distance below it

LOGITS = [0.0, *_tiny, *(-x for x in _tiny)]
LOGITS += [float(x) for x in np.linspace(-700.0, 700.0, 281)] + [float(x) for x in _rng.normal(0.0, 4.0, 100)]
PROBABILITIES = [float(x) for x in 10.0 ** _rng.uniform(-300.0, 0.0, 100)] + [float(x) for x in _rng.random(100)]
PROBABILITIES += [*_tiny, *(1.0 - 2.0**-k for k in range(1, 54)), *(0.1 * k for k in range(1, 10)), 0.25, 0.75]
HALF = [0.5, *(0.5 + 2 * k * _ulp for k in (1, 2, 3, 10, 1000, 10**6)), *(0.5 - k * _ulp for k in (1, 2, 3, 10, 10**6))]


def assert_exact(form: str, values: list[float], score: Callable[[float, int], oracle.Exact]) -> None:
    for y in (0, 1):
        scored = safecal.bernoulli([y] * len(values), **{form: values}).score()
        for i, value in enumerate(values):
            exact = score(value, y)
            for name in NAMES:
                number, wanted = float(getattr(scored, name)[i]), getattr(exact, name)
                if abs(wanted) < UNDERFLOW:
                    assert abs(number - float(wanted)) <= RELATIVE * UNDERFLOW, (name, value, y)
                else:
                    assert oracle.error(number, wanted) <= RELATIVE, (name, value, y)


@pytest.mark.proof
@pytest.mark.no_cover
def test_log_odds_from_minus_700_to_700_are_scored_to_12_digits() -> None:
    assert_exact("logits", LOGITS, oracle.bernoulli_from_logit)


@pytest.mark.proof
def test_probabilities_from_1e_300_to_the_last_double_below_1_are_scored_to_12_digits() -> None:
    assert_exact("y_prob", PROBABILITIES, oracle.bernoulli_from_probability)


def test_probabilities_a_few_ulp_from_one_half_are_scored_to_12_digits() -> None:
    assert_exact("y_prob", HALF, oracle.bernoulli_from_probability)


@pytest.mark.proof
@pytest.mark.no_cover
def test_ten_thousand_random_predictions_are_scored_to_12_digits() -> None:
    rng = np.random.default_rng(3)
    assert_exact("logits", rng.uniform(-700.0, 700.0, 2500).tolist(), oracle.bernoulli_from_logit)
    assert_exact("y_prob", rng.random(2500).tolist(), oracle.bernoulli_from_probability)


@pytest.mark.proof
@pytest.mark.no_cover
def test_more_digits_would_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def scored() -> list[oracle.Exact]:
        return [
            score(value, y)
            for score, values in (
                (oracle.bernoulli_from_logit, LOGITS[:41:4] + LOGITS[41::20]),
                (oracle.bernoulli_from_probability, PROBABILITIES[::20] + HALF),
            )
            for value in values
            for y in (0, 1)
        ]

    fewer_digits = scored()
    monkeypatch.setattr(oracle, "_digits", lambda cancelled: 1500)
    for rows in zip(fewer_digits, scored(), strict=True):
        for few, many in zip(*rows, strict=True):
            with oracle.mp.workdps(1500):
                assert abs(few - many) <= abs(many) * 1e-100 or abs(many) < UNDERFLOW


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_are_the_numbers_they_stand_for(dtype: type) -> None:
    p = np.array([0.1, 0.3, 0.5, 0.7, 0.999], dtype=dtype)
    scored = safecal.bernoulli([1] * 5, p).score()
    for excess, value in zip(scored.excess, p, strict=True):
        assert oracle.error(excess, oracle.bernoulli_from_probability(float(value), 1).excess) <= RELATIVE


@pytest.mark.parametrize(("p", "y"), [(0.0, 0), (1.0, 1)])
def test_certainty_that_was_right_costs_nothing(p: float, y: int) -> None:
    scored = safecal.bernoulli([y], [p]).score()
    for name in NAMES:
        assert getattr(scored, name)[0] == 0.0
    assert safecal.bernoulli([y], [p]).summary().n_impossible == 0


@pytest.mark.parametrize(("form", "value", "y"), [("y_prob", 0.0, 1), ("y_prob", 1.0, 0)])
def test_certainty_that_was_wrong_is_infinite_and_counted(form: str, value: float, y: int) -> None:
    predictions = safecal.bernoulli([y, 1, 0], **{form: [value, 0.75, 0.75]})
    scored, summary = predictions.score(), predictions.summary()
    assert scored.surprisal is not None
    assert (scored.excess[0], scored.surprisal[0]) == (math.inf, math.inf)
    assert (scored.varentropy[0], scored.third_cumulant[0]) == (0.0, 0.0)
    assert (summary.n, summary.n_impossible) == (3, 1)
    assert summary.ecd == summary.nll == math.inf
    assert summary.ecd_possible == pytest.approx(0.25 * math.log(3.0), rel=1e-14)  # (-1/4 + 3/4) log 3 / 2


@pytest.mark.parametrize("logit", [1e4, -1e4])
@pytest.mark.parametrize("y", [0, 1])
def test_log_odds_of_ten_thousand_are_finite_and_right(logit: float, y: int) -> None:
    scored = safecal.bernoulli([y], logits=[logit]).score()
    assert scored.surprisal is not None
    right = (logit > 0) == bool(y)
    assert scored.surprisal[0] == scored.excess[0] == (0.0 if right else 1e4)
    assert scored.varentropy[0] == scored.third_cumulant[0] == 0.0


@pytest.mark.parametrize("logit", [1e300, -1e300])
def test_the_largest_log_odds_are_rows_like_any_other(logit: float) -> None:
    wrong = safecal.bernoulli([int(logit < 0)], logits=[logit]).score()
    assert wrong.surprisal is not None
    assert wrong.excess[0] == wrong.surprisal[0] == 1e300
    assert not wrong.impossible.any()
    right = safecal.bernoulli([int(logit > 0)], logits=[logit]).score()
    assert right.excess[0] == right.varentropy[0] == right.third_cumulant[0] == 0.0


@pytest.mark.parametrize("logit", [1e300, -1e300])
def test_the_largest_log_odds_that_were_wrong_have_a_finite_ecd(logit: float) -> None:
    assert safecal.bernoulli([int(logit < 0)], logits=[logit]).ecd == 1e300


@pytest.mark.parametrize("logit", [math.inf, -math.inf])
def test_infinite_log_odds_are_certainty(logit: float) -> None:
    y = int(logit > 0)
    assert safecal.bernoulli([y], logits=[logit]).ecd == 0.0
    wrong = safecal.bernoulli([1 - y], logits=[logit]).summary()
    assert (wrong.ecd, wrong.n_impossible) == (math.inf, 1)


@pytest.mark.parametrize("p", [5e-324, 1e-320, 1e-310])
def test_a_subnormal_probability_that_happened_is_a_finite_surprise(p: float) -> None:
    exact = oracle.bernoulli_from_probability(p, 1)
    scored = safecal.bernoulli([1], [p]).score()
    assert scored.surprisal is not None
    assert oracle.error(scored.surprisal[0], exact.surprisal) <= RELATIVE
    assert oracle.error(scored.excess[0], exact.excess) <= RELATIVE
    assert safecal.bernoulli([1], [p]).summary().n_impossible == 0
