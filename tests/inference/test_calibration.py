"""The calibration test: its methods, its edges, its errors."""

import math

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal.errors import OptionError, ShapeError
from safecal.inference.calibration import calibration_test

RNG = np.random.default_rng(3)
P = RNG.random(300)
Y = RNG.random(300) < P
SHARP = np.stack([1.0 - (a := np.linspace(0.01, 0.02, 70)), 0.7 * a, 0.3 * a], axis=1)
SIDES = ("overconfident", "underconfident", "two-sided")


@pytest.mark.proof
@pytest.mark.no_cover
def test_two_sided_is_twice_the_smaller_side_and_at_most_one() -> None:
    for method in ("saddlepoint", "pearson3", "normal", "montecarlo"):
        over, under, both = (
            calibration_test(safecal.bernoulli(Y[:60], P[:60]), alternative=a, method=method).p_value for a in SIDES
        )
        assert both == min(1.0, 2.0 * min(over, under))
    middle = safecal.bernoulli([1, 1, 0], [0.9, 0.9, 0.9])
    assert calibration_test(safecal.bernoulli([0, 1], [0.4, 0.4])).p_value == 1.0
    assert calibration_test(middle).p_value <= 1.0


@pytest.mark.proof
@pytest.mark.no_cover
def test_the_methods_agree_on_ordinary_data() -> None:
    results = {
        m: calibration_test(safecal.bernoulli(Y, P), method=m) for m in ("saddlepoint", "pearson3", "montecarlo")
    }
    assert len({round(r.statistic, 9) for r in results.values()}) == 1
    wanted = results["saddlepoint"].p_value
    for result in results.values():
        assert result.p_value == pytest.approx(wanted, abs=0.02)
        assert result.reason == "as asked"


def test_auto_says_what_it_chose_and_why(rng: np.random.Generator) -> None:
    cases = {
        "saddlepoint": safecal.bernoulli(Y, P),
        "exact": safecal.gaussian(rng.normal(size=20), np.zeros(20), std=1.0),
        "convolution": safecal.bernoulli(np.ones(200), np.linspace(0.99, 0.999, 200)),
        "montecarlo": safecal.categorical(np.arange(70) == 3, SHARP),
    }
    for method, predictions in cases.items():
        result = calibration_test(predictions)
        assert result.method == method
        assert result.reason not in ("", "as asked")
        assert result.n == predictions.n


def test_gaussians_are_a_chi_square(rng: np.random.Generator) -> None:
    x = rng.normal(size=(30, 3))
    predictions = safecal.gaussian(x, np.zeros((30, 3)), std=1.0)
    result = calibration_test(predictions, alternative="overconfident")
    assert result.method == "exact"
    assert result.p_value == pytest.approx(stats.chi2.sf((x**2).sum(), 90), rel=1e-9)
    assert calibration_test(predictions, alternative="overconfident", method="saddlepoint").p_value == pytest.approx(
        result.p_value, rel=1e-3
    )


def test_weighted_gaussians_by_the_saddlepoint(rng: np.random.Generator) -> None:
    x = rng.normal(size=12)
    w = rng.choice([0.5, 1.0, 2.0], 12)
    predictions = safecal.gaussian(x, np.zeros(12), std=1.0)
    result = calibration_test(predictions, alternative="overconfident", sample_weight=w)
    drawn = (np.random.default_rng(0).chisquare(1, (200_000, 12)) @ w) >= (w * x**2).sum()
    assert result.method == "saddlepoint"
    assert result.p_value == pytest.approx(drawn.mean(), rel=0.02, abs=0.003)


def test_predictions_without_spread_tell_nothing() -> None:
    for predictions in (safecal.bernoulli([1, 0, 1], [0.5] * 3), safecal.bernoulli([1, 0], [1.0, 0.0])):
        for alternative in SIDES:
            result = calibration_test(predictions, alternative=alternative)
            assert (result.statistic, result.p_value, result.direction) == (0.0, 1.0, "neither")


@pytest.mark.parametrize("method", ["auto", "exact", "saddlepoint", "pearson3", "normal", "montecarlo"])
def test_an_impossible_outcome_has_probability_zero(method: str) -> None:
    predictions = safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.7])
    results = [calibration_test(predictions, alternative=a, method=method) for a in SIDES]
    assert [r.p_value for r in results] == [0.0, 1.0, 0.0]
    assert all(r.statistic == math.inf and r.direction == "over-confident" for r in results)
    assert calibration_test(predictions.summary()).p_value == 0.0


def test_an_impossible_row_of_weight_zero_does_not_count() -> None:
    result = calibration_test(safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.7]), sample_weight=[0.0, 1.0, 1.0])
    assert result.p_value > 0.0


@pytest.mark.parametrize("right", [True, False])
def test_the_edge_of_the_support(right: bool) -> None:
    p = np.linspace(0.6, 0.9, 100)
    predictions = safecal.bernoulli(np.full(100, int(right)), p)
    over, under = (calibration_test(predictions, alternative=a, method="saddlepoint").p_value for a in SIDES[:2])
    if right:
        assert over == 1.0
        assert under == pytest.approx(np.prod(p), rel=1e-6)
    else:
        assert over < 1e-20
        assert under == pytest.approx(1.0)


def test_the_edge_of_a_density() -> None:
    predictions = safecal.density(np.zeros(5), stats.norm(np.zeros(5), 1.0))  # every outcome is the most likely one
    over, under = (calibration_test(predictions, alternative=a).p_value for a in SIDES[:2])
    assert over == pytest.approx(1.0)
    assert under == pytest.approx(0.0, abs=1e-6)
    counts = safecal.density(np.zeros(5, dtype=int), stats.poisson([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert 0.0 <= calibration_test(counts).p_value <= 1.0


def test_counts_far_out_end() -> None:
    predictions = safecal.density([24, 23, 10], stats.poisson([13.2, 14.4, 3.63]))
    assert calibration_test(predictions, alternative="overconfident").p_value < 0.01


def test_classes_far_below_the_others_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    z = np.column_stack([np.zeros(100), rng.normal(0.5, 1, 100), rng.normal(0, 1, 100), np.full(100, -800.0)])
    y = rng.integers(0, 3, 100)
    y[:2] = 3
    assert calibration_test(safecal.categorical(y, logits=z)).p_value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", ["auto", "pearson3", "normal"])
def test_from_sums_as_from_rows(method: str) -> None:
    predictions = safecal.bernoulli(Y, P)
    for alternative in SIDES:
        rows = calibration_test(predictions, alternative=alternative, method="pearson3" if method == "auto" else method)
        sums = calibration_test(predictions.summary(), alternative=alternative, method=method)
        assert sums.p_value == pytest.approx(rows.p_value, rel=1e-9)
        assert sums.method == rows.method
    z = predictions.summary().sum_excess / math.sqrt(predictions.summary().sum_varentropy)
    assert calibration_test(predictions.summary(), alternative="overconfident", method="normal").p_value == (
        pytest.approx(stats.norm.sf(z), rel=1e-9)
    )


@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "saddlepoint"}, {"method": "montecarlo"},
                                     {"cluster": [0, 1]}, {"sample_weight": [1.0, 2.0]}])  # fmt: skip
def test_sums_alone_are_not_enough_for_the_rest(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="must be rows, not sums"):
        calibration_test(safecal.bernoulli([0, 1], [0.2, 0.7]).summary(), **options)


def test_pooled_days_give_the_test_of_the_week() -> None:
    whole = safecal.bernoulli(Y, P).summary()
    parts = [safecal.bernoulli(Y[i::7], P[i::7]).summary() for i in range(7)]
    assert calibration_test(sum(parts)).p_value == pytest.approx(calibration_test(whole).p_value, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_clusters_are_a_t_test_on_their_sums(weighted: bool, rng: np.random.Generator) -> None:
    """Clusters of copies, alike in size: their spread is far above that of rows, and decides above."""
    y, p, codes = (np.repeat(x, 4) for x in (Y, P, np.arange(300)))
    weight = np.repeat(rng.random(300) + 0.5, 4) if weighted else np.ones(1200)
    predictions = safecal.bernoulli(y, p)
    scored = predictions.score()
    sums = np.bincount(codes, weights=scored.excess * weight)
    comonotone = np.bincount(codes, weights=np.sqrt(scored.varentropy) * weight) ** 2
    df = comonotone.sum() ** 2 / (comonotone**2).sum() - 1.0
    spread = {"overconfident": 300 * sums.var(ddof=1), "underconfident": max(300 * sums.var(ddof=1), (sums**2).sum())}
    names = np.array([f"track {k}" for k in codes])
    p_values = {}
    for alternative, variance in spread.items():
        result = calibration_test(
            predictions, alternative=alternative, cluster=names, sample_weight=weight if weighted else None
        )
        t = sums.sum() / math.sqrt(variance)
        p_values[alternative] = stats.t.sf(t, df) if alternative == "overconfident" else stats.t.cdf(t, df)
        assert result.p_value >= p_values[alternative] * (1.0 - 1e-9)
        assert result.p_value == pytest.approx(p_values[alternative], rel=0.2)
        assert (result.method, result.n) == ("cluster", 300)
    both = calibration_test(predictions, cluster=names, sample_weight=weight if weighted else None)
    assert both.p_value == pytest.approx(2.0 * min(p_values.values()), rel=0.2)


@pytest.mark.parametrize(("rows", "p"), [(2, 0.9), (2, 0.3), (500, 0.9), (500, 0.999)])
def test_clusters_that_agree_are_no_proof(rows: int, p: float) -> None:
    """Equal sums have no spread of their own: until the first surprise, every cluster of a sharp model looks alike."""
    cluster = np.arange(rows) * 2 // rows
    result = safecal.evaluate(np.ones(rows), np.full(rows, p), cluster=cluster)
    assert result.test.p_value > 0.05
    assert math.isfinite(result.test.statistic)
    assert result.verdict.decision == "UNDETERMINED"
    assert result.interval.high > result.interval.low


def test_clusters_of_coin_tosses_say_nothing() -> None:
    result = calibration_test(safecal.bernoulli([0, 1, 1, 1], [0.5] * 4), cluster=[0, 0, 1, 1])
    assert (result.p_value, result.statistic) == (1.0, 0.0)


def test_an_impossible_outcome_in_a_cluster() -> None:
    result = calibration_test(safecal.bernoulli([1, 0, 1, 1], [0.0, 0.4, 0.7, 0.3]), cluster=[0, 0, 1, 1])
    assert (result.p_value, result.statistic) == (0.0, math.inf)


def test_one_cluster_has_no_test_and_says_what_has_one() -> None:
    with pytest.raises(ShapeError, match=r"innovations \(NIS\)"):
        calibration_test(safecal.bernoulli([0, 1], [0.2, 0.7]), cluster=["a", "a"])


def test_the_same_data_give_the_same_answer() -> None:
    predictions = safecal.bernoulli(np.arange(200) > 0, np.linspace(0.99, 0.999, 200))
    first, second = (calibration_test(predictions, method="montecarlo") for _ in range(2))
    assert first == second
    assert calibration_test(predictions, method="montecarlo", rng=9) != first
    assert calibration_test(predictions, method="montecarlo", rng=9) == calibration_test(
        predictions, method="montecarlo", rng=np.random.default_rng(9)
    )


def test_numerical_draws_widen_the_law() -> None:
    x = np.random.default_rng(1).normal(size=200)
    predictions = safecal.density(
        x, log_density=lambda v: -0.5 * v**2, sampler=lambda rng: rng.normal(size=200), draws=8, rng=0
    )
    s = predictions.summary()
    result = calibration_test(predictions)
    assert result.method == "pearson3"
    assert result.statistic == pytest.approx(
        s.sum_excess / math.sqrt(s.sum_varentropy_weight2 + s.sum_numerical_variance_weight2)
    )
