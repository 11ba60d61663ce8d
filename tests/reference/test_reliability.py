"""Reliability against slow obvious code, exact enumeration and published formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal import Bins
from safecal.judge.row_reliability import assess_reliability

pytestmark = pytest.mark.proof

LABELS = (0, 1)


def bin_of(p: float, bins: int) -> int:
    return min(int(Bins.uniform(bins).index([p])[0]), bins - 1)


def slow_ece(y: tuple[int, ...], p: list[float], w: list[float], bins: int) -> float:
    gaps = [0.0] * bins
    for a, b, c in zip(y, p, w, strict=True):
        gaps[bin_of(b, bins)] += c * (a - b)
    return math.fsum(abs(g) for g in gaps) / math.fsum(w)


def every_outcome(p: list[float], w: list[float], bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ECE of all 2^n outcomes, and their probabilities under calibration."""
    outcomes = list(itertools.product(LABELS, repeat=len(p)))
    values = [slow_ece(y, p, w, bins) for y in outcomes]
    chances = [math.prod(b if a else 1.0 - b for a, b in zip(y, p, strict=True)) for y in outcomes]
    return np.array(values), np.array(chances)


def is_quantile(value: float, values: np.ndarray, chances: np.ndarray) -> bool:
    """Tell whether ``value`` is the 95 % quantile, up to the noise of 10 000 draws."""
    return chances[values < value - 1e-9].sum() < 0.96 and chances[values <= value + 1e-9].sum() > 0.94


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bins", [1, 3])
def test_the_null_of_ece_is_what_every_outcome_gives(seed: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(9).tolist()
    y = (rng.random(9) < 0.5).astype(int)
    ece, chances = every_outcome(p, [1.0] * 9, bins)
    reliability = assess_reliability(safecal.bernoulli(y, p), bins=bins)
    assert reliability.ece_expected == pytest.approx(np.dot(ece, chances), rel=1e-12)
    assert reliability.ece == pytest.approx(slow_ece(tuple(y), p, [1.0] * 9, bins), abs=1e-15)
    assert is_quantile(reliability.ece_quantile, ece, chances)


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(4))
def test_the_null_of_a_weighted_ece_is_what_every_outcome_gives(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    p, w = rng.random(9).tolist(), rng.exponential(size=9).tolist()
    ece, chances = every_outcome(p, w, 2)
    reliability = assess_reliability(safecal.bernoulli([1] * 9, p), bins=2, sample_weight=w)
    assert reliability.ece_expected == pytest.approx(np.dot(ece, chances), rel=0.02)
    assert is_quantile(reliability.ece_quantile, ece, chances)


def test_equal_weights_are_listed_as_if_there_were_none() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(40)
    plain = assess_reliability(safecal.bernoulli(p > 0.4, p))
    assert assess_reliability(safecal.bernoulli(p > 0.4, p), sample_weight=np.full(40, 1e-70)) == plain


def test_many_rows_that_rarely_surprise_follow_the_poisson_law() -> None:
    n, chance = 200_000, 1e-5
    mean = 2 * stats.poisson.pmf(2, 2.0) * 2.0  # mean absolute deviation of Poisson(2)
    reliability = assess_reliability(safecal.bernoulli(np.zeros(n), np.full(n, chance)))
    assert reliability.ece_expected * n == pytest.approx(mean, rel=0.03)
    # P(|X - 2| <= 3) = .983, P(|X - 2| <= 2) = .947
    assert reliability.ece_quantile * n == pytest.approx(3.0, abs=1e-6)
    normal = math.sqrt(2 * 2.0 / math.pi)
    assert abs(normal / mean - 1) > 0.03  # what the normal law would have said


@pytest.mark.parametrize("chance", [0.03, 0.3, 0.5])
def test_the_normal_law_serves_where_it_is_used(chance: float) -> None:
    n = math.ceil(25.0 / (chance * (1 - chance))) + 1
    law = stats.binom(n, chance)
    k = np.arange(n + 1)
    mean = float(np.dot(law.pmf(k), np.abs(k - n * chance))) / n
    reliability = assess_reliability(safecal.bernoulli(np.zeros(n), np.full(n, chance)))
    assert reliability.ece_expected == pytest.approx(mean, rel=0.005)


def test_the_simulation_of_the_paper_shows_the_ece_of_chance() -> None:
    # arXiv 2502.14545, section V-A: log-odds uniform on (-10, 10), halved, epsilon = 0, 10 000 rows, ECE .0077.
    rng = np.random.default_rng(0)
    log_odds = 0.5 * rng.uniform(-10.0, 10.0, 10_000)
    y = rng.random(10_000) < 1.0 / (1.0 + np.exp(-log_odds))
    reliability = assess_reliability(safecal.bernoulli(y, logits=log_odds))
    assert reliability.ece_expected == pytest.approx(0.0077, abs=0.0005)
    assert 0.0077 < reliability.ece_quantile < 0.0120


@pytest.mark.proof
def test_the_null_of_ece_is_what_simulation_gives() -> None:
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.beta(0.3, 0.3, 300), [0.45, 0.55]])
    reliability = assess_reliability(safecal.bernoulli(p > 0.5, p))
    drawn = [safecal.ece(rng.random(len(p)) < p, p) for _ in range(1500)]
    assert reliability.ece_expected == pytest.approx(np.mean(drawn), rel=0.02)
    assert np.mean(np.array(drawn) > reliability.ece_quantile) == pytest.approx(0.05, abs=0.02)


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_null_of_ece_of_the_most_likely_class_is_what_simulation_gives() -> None:
    rng = np.random.default_rng(6)
    p = rng.dirichlet([0.4] * 4, 250)
    draw = lambda: (p.cumsum(axis=1) < rng.random((250, 1))).sum(axis=1).clip(0, 3)  # noqa: E731
    w = rng.exponential(size=250)
    reliability = assess_reliability(safecal.categorical(draw(), p), sample_weight=w)
    drawn = [safecal.ece(draw(), p, sample_weight=w) for _ in range(1500)]
    assert reliability.ece_expected == pytest.approx(np.mean(drawn), rel=0.02)
    assert np.mean(np.array(drawn) > reliability.ece_quantile) == pytest.approx(0.05, abs=0.02)


def slow_murphy(y: np.ndarray, p: np.ndarray, w: np.ndarray, index: np.ndarray) -> dict[str, float]:
    """Return the terms of Stephenson, Coelho and Jolliffe (2008), from their definitions."""
    total, base = w.sum(), np.dot(w, y) / w.sum()
    terms = dict.fromkeys(("reliability_term", "resolution", "within_variance", "within_covariance"), 0.0)
    for k in np.unique(index):
        inside = index == k
        a, b, c = y[inside], p[inside], w[inside]
        mean_a, mean_b = np.dot(c, a) / c.sum(), np.dot(c, b) / c.sum()
        terms["reliability_term"] += c.sum() * (mean_a - mean_b) ** 2 / total
        terms["resolution"] += c.sum() * (mean_a - base) ** 2 / total
        terms["within_variance"] += np.dot(c, (b - mean_b) ** 2) / total
        terms["within_covariance"] += 2 * np.dot(c, (a - mean_a) * (b - mean_b)) / total
    return {**terms, "uncertainty": base * (1 - base)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bin_on", ["probability", "confidence", "entropy"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_terms_of_the_brier_score(weighted: bool, bin_on: str, strategy: str) -> None:
    rng = np.random.default_rng(7)
    p = rng.random(300)
    y = rng.random(300) < p**2
    w = rng.exponential(size=300) if weighted else np.ones(300)
    predictions = safecal.bernoulli(y, p)
    reliability = assess_reliability(
        predictions, bins=7, bin_on=bin_on, strategy=strategy, sample_weight=w if weighted else None
    )
    evaluation = predictions.evaluate(bins=7, bin_on=bin_on, strategy=strategy, sample_weight=w if weighted else None)
    parts = reliability.reliability_term - reliability.resolution + reliability.uncertainty
    parts += reliability.within_variance - reliability.within_covariance
    assert parts == pytest.approx(reliability.brier, rel=1e-13)
    assert reliability.brier == pytest.approx(evaluation.brier, rel=1e-13)
    assert reliability.ece == pytest.approx(evaluation.ece, rel=1e-12)
    scored = predictions.score()
    top = bin_on != "probability"
    value = {"probability": p, "confidence": scored.confidence, "entropy": scored.entropy}[bin_on]
    column, happened = (scored.confidence, scored.correct) if top else (p, y)
    index = evaluation.bins.bins.index(np.minimum(value, evaluation.bins.bins.edges[-1]))
    for name, wanted in slow_murphy(happened.astype(float), column, w, index).items():
        assert getattr(reliability, name) == pytest.approx(wanted, rel=1e-10, abs=1e-15), name


def test_one_prediction_a_bin_is_the_decomposition_of_murphy() -> None:
    # Murphy (1973): with distinct forecast values as bins, Brier = reliability - resolution + uncertainty.
    p = np.repeat([0.1, 0.5, 0.9], 4)
    y = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1])
    reliability = assess_reliability(safecal.bernoulli(y, p), bins=Bins.from_edges([0, 0.3, 0.7, 1]))
    assert reliability.within_variance == pytest.approx(0.0, abs=1e-16)
    assert reliability.within_covariance == pytest.approx(0.0, abs=1e-16)
    assert reliability.reliability_term == pytest.approx((0.15**2 + 0.0 + 0.1**2) / 3)
    assert reliability.resolution == pytest.approx(((0.25 - 7 / 12) ** 2 + (0.5 - 7 / 12) ** 2 + (1 - 7 / 12) ** 2) / 3)
    assert reliability.uncertainty == pytest.approx(35 / 144)


def test_more_classes_decompose_the_score_of_the_most_likely_one() -> None:
    rng = np.random.default_rng(8)
    p = rng.dirichlet([1.0] * 3, 200)
    predictions = safecal.categorical(rng.integers(0, 3, 200), p)
    scored = predictions.score()
    reliability = assess_reliability(predictions)
    assert reliability.brier == pytest.approx(np.mean((scored.confidence - scored.correct) ** 2), rel=1e-13)
    parts = reliability.reliability_term - reliability.generalised_resolution + reliability.uncertainty
    assert parts == pytest.approx(reliability.brier)


@pytest.mark.parametrize("weighted", [False, True])
def test_spiegelhalter_is_the_published_formula(weighted: bool) -> None:
    rng = np.random.default_rng(9)
    p = rng.random(80)
    y = (rng.random(80) < 0.5).astype(float)
    w = rng.exponential(size=80) if weighted else np.ones(80)
    z = np.sum(w * (y - p) * (1 - 2 * p)) / math.sqrt(np.sum(w**2 * (1 - 2 * p) ** 2 * p * (1 - p)))
    weight = w if weighted else None
    for predictions in (
        safecal.bernoulli(y, p),
        safecal.bernoulli(y, logits=np.log(p / (1 - p))),
        safecal.categorical(y.astype(int), np.stack([1 - p, p], axis=1)),
    ):
        test = assess_reliability(predictions, sample_weight=weight).spiegelhalter
        assert test.statistic == pytest.approx(z, rel=1e-10)
        assert test.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-10)


def test_spiegelhalter_of_more_classes_is_that_of_the_likeliest_one() -> None:
    rng = np.random.default_rng(10)
    p = rng.dirichlet([0.6] * 4, 30)
    y = rng.integers(0, 4, 30)
    top, right = p.max(axis=1), p.argmax(axis=1) == y
    z = np.sum((right - top) * (1 - 2 * top)) / math.sqrt(np.sum((1 - 2 * top) ** 2 * top * (1 - top)))
    predictions = safecal.categorical(y, p)
    assert assess_reliability(predictions).spiegelhalter.statistic == pytest.approx(z, rel=1e-11)
    from_sums = predictions.evaluate().reliability
    assert from_sums is not None
    assert from_sums.spiegelhalter.statistic == pytest.approx(z, rel=1e-6)


@pytest.mark.parametrize(("n", "classes", "spread"), [(40, 3, 1.0), (300, 3, 6.0), (2000, 5, 2.0), (20_000, 10, 3.0)])
def test_reliability_of_more_classes_from_sums_is_that_of_the_rows(n: int, classes: int, spread: float) -> None:
    rng = np.random.default_rng(n)
    z = rng.normal(0, spread, (n, classes))
    predictions = safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=1.2 * z)
    rows, sums = assess_reliability(predictions), predictions.evaluate().reliability
    assert sums is not None
    for name in ("ece", "brier", "reliability_term", "resolution", "uncertainty"):
        assert getattr(sums, name) == pytest.approx(getattr(rows, name), rel=2e-5)
    for name in ("within_variance", "within_covariance"):
        assert getattr(sums, name) == pytest.approx(getattr(rows, name), abs=2e-6)
    assert sums.ece_expected == pytest.approx(rows.ece_expected, rel=1e-3)
    assert sums.ece_quantile == pytest.approx(rows.ece_quantile, rel=0.03)  # that of the rows is drawn


@pytest.mark.proof
@pytest.mark.no_cover
def test_spiegelhalter_keeps_its_size() -> None:
    rng = np.random.default_rng(11)
    p = rng.beta(0.5, 0.5, 400)
    tests = [assess_reliability(safecal.bernoulli(rng.random(400) < p, p), bins=1).spiegelhalter for _ in range(1000)]
    assert np.mean([t.p_value < 0.05 for t in tests]) == pytest.approx(0.05, abs=0.02)


def test_sharp_logits_lose_nothing() -> None:
    # 1 - p is exp(-40): far below the spacing of floats at 1.
    test = assess_reliability(safecal.bernoulli([1, 0], logits=[40.0, 40.0])).spiegelhalter
    assert test.statistic == pytest.approx(1.0 / math.sqrt(2 * math.exp(-40.0)), rel=1e-6)
