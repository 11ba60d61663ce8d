"""Named facts about the measure, each from its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, lambertw

import safecal

from . import loops


def two_classes(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 2.0, n)
    return (rng.random(n) < expit(0.6 * logits)).astype(int), logits


def lambert(x: float) -> float:
    return float(lambertw(x).real)


def test_the_smallest_excess_of_two_classes_is_minus_w_of_1_over_e() -> None:
    bound = -lambert(math.exp(-1.0))
    assert bound == pytest.approx(-0.2784645427610738, abs=1e-15)
    best = minimize_scalar(
        lambda p: safecal.ecd([1], [p]), bounds=(0.5, 1.0), method="bounded", options={"xatol": 1e-9}
    )
    assert best.fun == pytest.approx(bound, abs=1e-14)
    for y in (0, 1):
        grid = safecal.bernoulli([y] * 100_001, np.linspace(0.0, 1.0, 100_001)).score().excess
        assert bound <= grid.min() <= bound + 1e-9


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_the_smallest_excess_of_k_classes_is_minus_w_of_k_minus_1_over_e(classes: int) -> None:
    bound = -lambert((classes - 1) * math.exp(-1.0))

    def excess(logit: float) -> float:
        return safecal.ecd([0], logits=[[logit] + [0.0] * (classes - 1)])

    best = minimize_scalar(excess, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-9})
    assert best.fun == pytest.approx(bound, abs=1e-13)
    rng = np.random.default_rng(classes)
    z = rng.normal(0.0, rng.uniform(0.1, 5.0, (2000, 1)), (2000, classes))
    assert safecal.categorical(z.argmax(axis=1), logits=z).score().excess.min() >= bound


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_the_smallest_excess_of_a_state_is_minus_half_its_dimension(d: int) -> None:
    x = np.zeros((1, d))
    assert safecal.gaussian(x, x, cov=np.eye(d) + 0.5).ecd == -d / 2
    rng = np.random.default_rng(d)
    assert safecal.gaussian(1e-3 * rng.normal(size=(50, d)), np.zeros((50, d)), std=1.0).score().excess.min() > -d / 2


def test_ecd_at_one_half_is_exactly_zero() -> None:
    y = [0, 1, 1, 1]
    for predictions in (
        safecal.bernoulli(y, [0.5] * 4),
        safecal.bernoulli(y, logits=[0.0] * 4),
        safecal.categorical(y, [[0.5, 0.5]] * 4),
        safecal.categorical(y, logits=[[1.3, 1.3]] * 4),
    ):
        assert predictions.ecd == 0.0
        assert predictions.summary().sum_varentropy == 0.0
        assert predictions.summary().nll == pytest.approx(math.log(2.0), rel=1e-15)


@pytest.mark.parametrize("d", [1, 3])
def test_ecd_of_states_is_half_of_nees_minus_dimension(d: int) -> None:
    rng = np.random.default_rng(d)
    x, mean = rng.normal(size=(50, d)), rng.normal(size=(50, d))
    a = rng.normal(size=(50, d, d + 2))
    cov = a @ a.transpose(0, 2, 1)
    slow = loops.mean([float(r @ np.linalg.inv(c) @ r) for r, c in zip(x - mean, cov, strict=True)])
    nees = safecal.nees(x, mean, cov=cov)
    assert nees == pytest.approx(slow, rel=1e-10)
    assert safecal.gaussian(x, mean, cov=cov).ecd == pytest.approx((nees - d) / 2, rel=1e-12, abs=1e-12)


def test_nees_in_one_dimension_is_the_mean_squared_ratio_of_error_to_deviation() -> None:
    x, mean, std = [1.0, 2.0, -1.0], [0.5, 2.5, 1.0], [0.5, 1.0, 4.0]
    slow = ((0.5 / 0.5) ** 2 + (0.5 / 1.0) ** 2 + (2.0 / 4.0) ** 2) / 3
    assert safecal.nees(x, mean, std=std) == pytest.approx(slow, rel=1e-15)


def test_a_calibrated_gaussian_has_ecd_0_and_one_too_narrow_has_half_of_t_minus_1() -> None:
    x = np.random.default_rng(5).normal(size=200_000)
    assert abs(safecal.gaussian(x, 0.0 * x, std=1.0).ecd) < 5 * math.sqrt(0.5 / len(x))
    ratio = float(np.mean(x**2)) / 0.25
    assert safecal.gaussian(x, 0.0 * x, std=0.5).ecd == pytest.approx((ratio - 1.0) / 2.0, rel=1e-12)


def test_ecd_is_nll_minus_mean_entropy() -> None:
    y, logits = two_classes()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 3))
    for predictions in (
        safecal.bernoulli(y, logits=logits),
        safecal.categorical(rng.integers(0, 5, 40), logits=rng.normal(size=(40, 5))),
        safecal.gaussian(x, np.zeros_like(x), cov=np.eye(3) + 0.3),
    ):
        s = predictions.summary()
        assert s.ecd == pytest.approx(s.nll - s.mean_entropy, abs=1e-14)
        scored = predictions.score()
        assert scored.surprisal is not None
        assert scored.entropy is not None
        assert s.nll == pytest.approx(loops.mean(scored.surprisal.tolist()), rel=1e-14)
        assert s.mean_entropy == pytest.approx(loops.mean(scored.entropy.tolist()), rel=1e-14)


def test_always_60_percent_and_always_right_is_under_confident() -> None:
    result = safecal.evaluate([1] * 50, [0.6] * 50)
    assert round(result.ecd, 3) == -0.162
    assert result.ecd == pytest.approx(-0.4 * math.log(1.5), rel=1e-14)
    assert result.ece == pytest.approx(0.4, abs=1e-14)
    assert result.esce == pytest.approx(0.4, abs=1e-14)
    assert (result.ece_overconfident, result.ece_underconfident) == (0.0, result.ece)


def test_two_classes_are_one_thing_in_four_forms() -> None:
    y, logits = two_classes()
    p = expit(logits)
    forms = [
        safecal.evaluate(y, p, bin_on="confidence"),
        safecal.evaluate(y, logits=logits, bin_on="confidence"),
        safecal.evaluate(
            y, np.column_stack([expit(-logits), p]), bin_on="confidence", bins=safecal.Bins.uniform(10, 0.5)
        ),
        safecal.evaluate(
            y, logits=np.column_stack([0.0 * logits, logits]), bin_on="confidence", bins=safecal.Bins.uniform(10, 0.5)
        ),
    ]
    for name in ("ecd", "nll", "brier", "accuracy", "ece", "esce", "ece_overconfident", "ece_underconfident"):
        values = [getattr(form, name) for form in forms]
        assert values == pytest.approx([values[0]] * 4, rel=1e-12, abs=1e-13), name
    for name in ("mean_entropy", "mean_confidence", "sum_varentropy", "sum_third_cumulant_weight3"):
        values = [getattr(form.summary, name) for form in forms]
        assert values == pytest.approx([values[0]] * 4, rel=1e-12), name


def test_the_number_of_bins_moves_ece_and_never_ecd() -> None:
    y, logits = two_classes(2000)
    results = [safecal.evaluate(y, logits=logits, bins=b) for b in (2, 5, 10, 15, 50, 500)]
    assert max(r.ece for r in results) > 2.0 * min(r.ece for r in results)
    assert all(r.ecd == pytest.approx(results[0].ecd, rel=1e-13) for r in results)
    quantile = safecal.evaluate(y, logits=logits, bins=10, strategy="quantile")
    assert quantile.ecd == pytest.approx(results[0].ecd, rel=1e-13)
    for r in results:
        assert r.bins is not None
        assert float(np.nansum(r.bins.ecd * r.bins.weights)) == pytest.approx(r.ecd, rel=1e-12)


def test_one_wild_outlier_barely_moves_ece_and_moves_ecd() -> None:
    rng = np.random.default_rng(2)
    logits = rng.uniform(-5.0, 5.0, 10_000)
    y = (rng.random(10_000) < expit(logits)).astype(int)
    before = safecal.evaluate(y, logits=logits)
    after = safecal.evaluate(np.append(y, 0), logits=np.append(logits, 700.0))
    assert abs(after.ece - before.ece) < 2e-4
    assert after.ecd - before.ecd == pytest.approx(700.0 / 10_001, rel=1e-2)


def test_the_binary_formula_is_the_mean_of_p_minus_y_times_the_log_odds() -> None:
    y, logits = two_classes()
    p = expit(logits)
    slow = loops.mean([(a - b) * math.log(a / (1.0 - a)) for a, b in zip(p.tolist(), y.tolist(), strict=True)])
    assert safecal.ecd(y, p) == pytest.approx(slow, rel=1e-12)
    assert safecal.ecd(y, logits=logits) == pytest.approx(slow, rel=1e-12)
    definition = loops.mean([loops.bernoulli_excess(a, b) for a, b in zip(p.tolist(), y.tolist(), strict=True)])
    assert safecal.ecd(y, p) == pytest.approx(definition, rel=1e-11)


def test_the_discrete_formula_is_expected_minus_actual_log_probability() -> None:
    rng = np.random.default_rng(9)
    p, y = rng.dirichlet(np.ones(6), 100), rng.integers(0, 6, 100)
    slow = loops.mean([loops.categorical_excess(row.tolist(), int(k)) for row, k in zip(p, y, strict=True)])
    assert safecal.ecd(y, p) == pytest.approx(slow, rel=1e-12)


def test_a_sure_mistake_costs_without_bound_and_doubt_costs_little() -> None:
    for k in (2, 10, 100, 600):
        assert safecal.ecd([0], logits=[float(k)]) > 0.88 * k
        assert 0.0 > safecal.ecd([1], logits=[float(k)]) > -0.2785


@pytest.mark.parametrize(
    ("p", "share", "side"),
    [(0.9, 0.7, "over"), (0.9, 1.0, "under"), (0.1, 0.3, "over"), (0.1, 0.0, "under"), (0.6, 0.5, "over")],
)
def test_signs_over_confident_is_nearer_to_one_half_than_predicted(p: float, share: float, side: str) -> None:
    y = [1] * round(share * 10) + [0] * round((1.0 - share) * 10)
    result = safecal.evaluate(y, [p] * 10)
    assert (result.ecd > 0) == (side == "over")
    assert result.esce == pytest.approx(share - p, abs=1e-14)
    assert result.bias == pytest.approx(share - p, abs=1e-14)
    over, under = result.ece_overconfident, result.ece_underconfident
    assert (over, under) == pytest.approx((abs(share - p), 0.0) if side == "over" else (0.0, abs(share - p)), abs=1e-14)


def test_signs_for_the_most_likely_class_over_confident_is_observed_below_predicted() -> None:
    p = [[0.2, 0.7, 0.1]] * 10
    over = safecal.evaluate([1] * 5 + [0] * 5, p)
    assert over.esce == pytest.approx(-0.2, abs=1e-14)
    assert (over.ece_overconfident, over.ece_underconfident) == (over.ece, 0.0)
    under = safecal.evaluate([1] * 9 + [0], p)
    assert under.esce == pytest.approx(0.2, abs=1e-14)
    assert (under.ece_overconfident, under.ece_underconfident) == (0.0, under.ece)
    assert under.ecd < 0.0 < over.ecd


def test_the_two_parts_of_ece_add_up() -> None:
    y, logits = two_classes(3000, seed=4)
    result = safecal.evaluate(y, logits=logits, bins=20)
    assert result.ece_overconfident + result.ece_underconfident == pytest.approx(result.ece, rel=1e-13)
    assert result.ece_overconfident > result.ece_underconfident
    assert result.ecd > 0.0
