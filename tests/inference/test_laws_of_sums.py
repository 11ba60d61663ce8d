"""The law of the summed surprisal: listed, drawn and approximated, against every outcome there is."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import safecal
from safecal._kernels.spectrum import NODES, node_rows
from safecal._sums.nodes import Nodes
from safecal.inference.calibration import calibration_test
from safecal.inference.nodes import NodesLaw
from safecal.inference.tails import draw_surprises, expected_surprises, surprise_rates

SIDES = ("overconfident", "underconfident")


def _brute(p: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> dict[str, float]:
    """Both tails by listing all outcomes of (n, K) probabilities."""
    n, classes = p.shape
    w = np.ones(n) if weight is None else weight
    i = np.arange(n)

    def total(outcome: np.ndarray) -> float:
        return math.fsum(w * -np.log(p[i, outcome]))

    observed = total(y)
    slack = 1e-9 * max(1.0, abs(observed))
    upper = lower = 0.0
    for outcome in itertools.product(range(classes), repeat=n):
        chosen = np.array(outcome)
        probability, s = float(np.prod(p[i, chosen])), total(chosen)
        upper += probability * (s >= observed - slack)
        lower += probability * (s <= observed + slack)
    return {"overconfident": upper, "underconfident": lower, "two-sided": min(1.0, 2.0 * min(upper, lower))}


def _case(classes: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.7), n)
    p[1] = p[0]  # an equal row, so that sums coincide
    return p, rng.integers(0, classes, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("classes", "n"), [(2, 1 + 8), (3, 6), (4, 4)])
def test_exact_is_what_listing_every_outcome_gives(classes: int, n: int, weighted: bool, seed: int) -> None:
    p, y = _case(classes, n, seed)
    weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], n) if weighted else None
    wanted = _brute(p, y, weight)
    forms = [safecal.categorical(y, p)]
    if classes == 2:
        forms.append(safecal.bernoulli(y, p[:, 1]))
    for predictions in forms:
        for alternative in wanted:
            result = calibration_test(predictions, alternative=alternative, method="exact", sample_weight=weight)
            assert result.method == "exact"
            assert result.p_value == pytest.approx(wanted[alternative], rel=1e-9)


def test_equal_predictions_give_the_binomial_law() -> None:
    for k in (0, 1, 3, 40):
        predictions = safecal.bernoulli(np.arange(40) >= k, np.full(40, 0.9))
        assert calibration_test(predictions, alternative="overconfident").p_value == pytest.approx(
            stats.binom.sf(k - 1, 40, 0.1), rel=1e-9, abs=1e-19
        )
        assert calibration_test(predictions, alternative="underconfident").p_value == pytest.approx(
            stats.binom.cdf(k, 40, 0.1), rel=1e-9
        )


def test_the_atom_is_in_both_tails() -> None:
    predictions = safecal.bernoulli([1, 1, 0], [0.9, 0.9, 0.9])
    over, under = (calibration_test(predictions, alternative=side).p_value for side in SIDES)
    assert over + under == pytest.approx(1.0 + stats.binom.pmf(1, 3, 0.1))


def test_rows_of_weight_zero_do_not_count() -> None:
    p, y = _case(2, 6, 3)
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    whole = calibration_test(safecal.categorical(y, p), method="exact", sample_weight=weight)
    part = calibration_test(safecal.categorical(y[:4], p[:4]), method="exact")
    assert whole.p_value == pytest.approx(part.p_value, rel=1e-9)


def test_probabilities_beyond_the_range_of_floats_do_not_hurt() -> None:
    for predictions in (
        safecal.bernoulli([1, 0], [0.7, 5e-324]),
        safecal.bernoulli([1, 0], logits=[0.3, -745.0]),
        safecal.categorical([0, 1], logits=[[1.0, 2.0, -1e308], [0.0, 1.0, -1e308]]),
        safecal.categorical([2, 2], logits=[[-math.inf, -math.inf, -745.0], [-math.inf, -745.0, 0.0]]),
    ):
        for alternative in (*SIDES, "two-sided"):
            assert 0.0 <= calibration_test(predictions, alternative=alternative).p_value <= 1.0


@pytest.mark.parametrize("classes", [2, pytest.param(4, marks=pytest.mark.proof)])
def test_drawn_surprises_have_the_mean_and_the_variance_of_the_law(classes: int) -> None:
    rng = np.random.default_rng(classes)
    p = rng.dirichlet(np.full(classes, 0.2), 30)
    predictions = safecal.categorical(np.zeros(30, dtype=int), p)
    gap = np.log(p.max(axis=1, keepdims=True)) - np.log(p)
    mean = (p * gap).sum(axis=1)
    variance = (p * gap**2).sum(axis=1) - mean**2
    weight = rng.choice([0.5, 1.0, 3.0], 30)
    rates = surprise_rates(predictions)
    assert expected_surprises(rates) == pytest.approx((1.0 - p.max(axis=1)).sum())
    draws = 40_000
    for given, w in ((None, np.ones(30)), (weight, weight)):
        drawn = draw_surprises(predictions, rates, given, draws, np.random.default_rng(0))
        error = math.sqrt((w**2 * variance).sum() / draws)
        assert abs(drawn.mean() - (w * mean).sum()) < 4.0 * error
        assert drawn.var() == pytest.approx((w**2 * variance).sum(), rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_monte_carlo_is_within_its_error_of_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.choice([0.99, 0.95, 0.8], 60)
    y = rng.random(60) < p
    weight = rng.choice([1.0, 2.0], 60) if seed else None
    predictions = safecal.bernoulli(y, p)
    for side in SIDES:
        exact = calibration_test(predictions, alternative=side, method="exact", sample_weight=weight).p_value
        drawn = calibration_test(predictions, alternative=side, method="montecarlo", sample_weight=weight, rng=seed)
        assert abs(drawn.p_value - exact) < 4.0 * math.sqrt(exact * (1.0 - exact) / 20_000) + 1e-4


@pytest.mark.parametrize("surprises", [9, 15, 22, 30, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_saddlepoint_agrees_with_exact_where_the_law_is_smooth(surprises: int, weighted: bool) -> None:
    # 22 surprises are expected, of three sizes: atoms weigh half a per cent at most, and no formula splits them.
    rng = np.random.default_rng(surprises)
    p = np.repeat([0.71, 0.83, 0.91], 40)
    y = np.ones(120, dtype=int)
    y[rng.choice(120, surprises, replace=False, p=(1 - p) / (1 - p).sum())] = 0
    weight = np.repeat([1.0, 2.0, 1.5], 40) if weighted else None
    predictions = safecal.bernoulli(y, p)
    for side in SIDES:
        exact = calibration_test(predictions, alternative=side, method="exact", sample_weight=weight)
        result = calibration_test(predictions, alternative=side, method="saddlepoint", sample_weight=weight)
        assert result.method == "saddlepoint"
        assert result.p_value == pytest.approx(exact.p_value, rel=0.03, abs=0.005)


@pytest.mark.parametrize("n", [10_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def test_rounding_does_not_reach_the_p_value_near_the_mean(n: int) -> None:
    # The saddlepoint formula subtracts large numbers that are nearly equal; its limit takes over in time.
    p = np.linspace(0.05, 0.95, n)
    y = np.random.default_rng(4).random(n) < p
    excess = safecal.bernoulli(y, p).score().excess
    step = np.abs(np.log(p) - np.log1p(-p))
    total = float(excess.sum())
    sign = np.where(y == (p > 0.5), 1.0, -1.0)  # what flipping a row would add
    for k in np.argsort(-step)[: n // 5]:
        if abs(total + sign[k] * step[k]) < abs(total):
            total += sign[k] * step[k]
            y[k] = not y[k]
    predictions = safecal.bernoulli(y, p)
    over, under = (calibration_test(predictions, alternative=side, method="saddlepoint").p_value for side in SIDES)
    z = calibration_test(predictions, method="normal").statistic
    assert abs(z) < 0.05
    assert over == pytest.approx(stats.norm.sf(z), abs=0.003)
    assert over + under == pytest.approx(1.0, abs=1e-9)
    result = calibration_test(predictions)
    assert (result.p_value, result.method) == (min(1.0, 2.0 * min(over, under)), "saddlepoint")


def _saddlepoint_of_rows(gaps: np.ndarray, count: int, excess: float) -> mpmath.mpf:
    """The upper tail by the saddlepoint formula, of equally many rows of each kind, with 40 digits."""

    def tilted(beta: mpmath.mpf) -> tuple[mpmath.mpf, ...]:
        total = [mpmath.mpf(0)] * 3
        for row in gaps.tolist():
            weights = [mpmath.exp(-beta * g) for g in row]
            mass = 1 + sum(weights)
            mean = sum(w * g for w, g in zip(weights, row, strict=True)) / mass
            square = sum(w * (g - mean) ** 2 for w, g in zip(weights, row, strict=True)) + mean**2
            total = [a + count * b for a, b in zip(total, (mpmath.log(mass), mean, square / mass), strict=True)]
        return tuple(total)

    one, seen = tilted(mpmath.mpf(1)), tilted(mpmath.mpf(1))[1] + mpmath.mpf(excess)
    beta = mpmath.mpf(1)
    for _ in range(8):  # Newton's method doubles the digits
        _, mean, variance = tilted(beta)
        beta += (mean - seen) / variance
    value, _, variance = tilted(beta)
    u = (1 - beta) * mpmath.sqrt(variance)
    r = mpmath.sign(u) * mpmath.sqrt(2 * ((1 - beta) * seen + one[0] - value))
    return mpmath.ncdf(-r) + mpmath.npdf(r) * (1 / u - 1 / r)


@pytest.mark.parametrize("z", [-0.01, -0.0012, 0.0012, 0.003, 0.03, 1.0])
def test_rounding_does_not_reach_the_p_value_of_classes_near_the_mean(z: float) -> None:
    n, kinds, classes = 1_000_000, 20, 5
    logits = np.random.default_rng(1).normal(0.0, 2.0, (kinds, classes))
    gaps = np.sort(logits.max(axis=1, keepdims=True) - logits, axis=1)[:, 1:]
    sums = node_rows(gaps).sum(axis=2) * (n // kinds)
    nodes = Nodes(np.concatenate([sums, sums[:, 2:]], axis=1), n // 3)
    excess = z * math.sqrt(sums[NODES.index(1.0), 2])
    law = NodesLaw(nodes, excess, float(n), False, math.log(classes))
    with mpmath.workdps(40):
        wanted = float(_saddlepoint_of_rows(gaps, n // kinds, excess))
    assert law.tails(1.0).upper == pytest.approx(wanted, rel=1e-5)
