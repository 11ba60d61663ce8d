"""Tails from cumulants, held to laws that are known exactly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import safecal
from safecal.inference.law import lugannani_rice, normal, pearson3
from safecal.inference.sum_bounds import interval_from_sums
from safecal.inference.tails import pearson3_quantile


def _gamma_tails(shape: float, value: float) -> tuple[float, float]:
    """Lugannani-Rice at ``value`` for a gamma law: its K(t) is ``-shape log(1 - t)``."""
    t = 1.0 - shape / value
    drop = t * value + shape * math.log1p(-t)
    return lugannani_rice(t, drop, shape / (1.0 - t) ** 2, 2.0 * shape / (1.0 - t) ** 3)


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0, 10.0, 200.0, 1e5])
@pytest.mark.parametrize("z", [-3.0, -1.0, -1e-3, -1e-5, 1e-9, 1e-5, 1e-3, 0.5, 2.0, 5.0])
def test_lugannani_rice_for_a_gamma_law(shape: float, z: float) -> None:
    value = shape + z * math.sqrt(shape)
    if value <= 0.0:
        return
    computed = _gamma_tails(shape, value)
    exact = stats.gamma.sf(value, shape), stats.gamma.cdf(value, shape)
    rel = 0.03 if shape < 1.0 else 0.015 if shape < 5.0 else 0.002  # the error is relative, also far out
    assert computed == pytest.approx(exact, rel=rel)


@pytest.mark.parametrize("d", [1, 2, 8, 50])
def test_lugannani_rice_for_a_chi_square_law(d: int) -> None:
    for probability in (1e-6, 0.01, 0.3, 0.7, 0.99):
        x = float(stats.chi2.isf(probability, d))
        upper, lower = _gamma_tails(d / 2.0, x / 2.0)
        assert upper == pytest.approx(probability, rel=0.15 if d == 1 else 0.06)
        assert lower == pytest.approx(1.0 - probability, rel=0.15 if d == 1 else 0.06)


def test_lugannani_rice_is_exact_for_a_normal_law() -> None:
    for z in (-4.0, -0.5, 0.0, 1e-4, 0.01, 3.0):
        assert lugannani_rice(z / 2.0, 0.5 * z * z, 4.0, 0.0) == pytest.approx(normal(z), rel=1e-9)


@pytest.mark.parametrize("shape", [2.0, 50.0])
def test_lugannani_rice_is_continuous_where_it_switches_to_its_limit(shape: float) -> None:
    grid = shape + math.sqrt(shape) * np.linspace(-3e-3, 3e-3, 61)
    upper = np.array([_gamma_tails(shape, x)[0] for x in grid])
    step = np.abs(np.diff(upper)).mean()
    assert np.abs(np.diff(upper, 2)).max() < step  # a step of 2e-5 in a probability of 0.4
    assert np.abs(np.diff(upper)).max() < 1e-4


@pytest.mark.parametrize("n", [1, 3, 40, 1000])
@pytest.mark.parametrize("d", [1, 4])
def test_pearson3_is_exact_for_gaussian_sums(n: int, d: int) -> None:
    df = n * d
    for probability in (1e-8, 0.03, 0.5, 0.97):
        excess = (float(stats.chi2.isf(probability, df)) - df) / 2.0
        upper, lower = pearson3(excess, df / 2.0, float(df))
        assert upper == pytest.approx(probability, rel=1e-8)
        assert lower == pytest.approx(1.0 - probability, rel=1e-8)


def test_pearson3_mirrors_and_becomes_normal() -> None:
    for value in (-2.0, 0.3, 4.0):
        upper, lower = pearson3(value, 2.0, 1.0)
        assert pearson3(-value, 2.0, -1.0) == (lower, upper)
        assert pearson3(value, 2.0, 0.0) == normal(value / math.sqrt(2.0))
        assert pearson3(value, 2.0, 1e-5) == pytest.approx(normal(value / math.sqrt(2.0)), abs=1e-6)


def test_no_tail_leaves_the_unit_interval() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        value, log_v, skew = rng.normal(0, 20), rng.normal(0, 5), rng.normal(0, 10)
        variance = math.exp(log_v)
        tails = [pearson3(value, variance, skew * variance**1.5)]
        tails += [lugannani_rice(rng.normal(0, 10), abs(rng.normal(0, 50)), variance, skew * variance**1.5)]
        for upper, lower in tails:
            assert 0.0 <= upper <= 1.0
            assert 0.0 <= lower <= 1.0


@pytest.mark.parametrize(("variance", "third"), [(2.0, 3.0), (2.0, -3.0), (2.0, 1e-9), (1e-5, 1e-7), (1e-300, 1e-295)])
@pytest.mark.parametrize("probability", [0.0002, 0.05, 0.5, 0.999])
def test_the_quantile_of_pearson3_is_the_inverse_of_its_tail(variance: float, third: float, probability: float) -> None:
    value = pearson3_quantile(probability, variance, third)
    if third**2 < 1e9 * variance**3:
        assert pearson3(value, variance, third)[1] == pytest.approx(probability, rel=1e-6)
    else:  # one value: no spread at all
        assert pearson3(value, variance, third) == (1.0, 1.0)


def test_a_spread_that_a_float_can_hardly_hold() -> None:
    summary = safecal.bernoulli([0], [5e-324]).summary()
    assert safecal.calibration_test(summary).p_value == 1.0
    assert interval_from_sums(summary, 0.95).low <= 0.0


@pytest.mark.parametrize("rows", [1, 2])
def test_a_row_alone_proves_nothing(rows: int) -> None:
    """A calibrated model says 0.7 and is wrong three times in ten."""
    result = safecal.evaluate([0] * rows + [1] * 9, [0.7] * rows + [0.55] * 9)
    assert result.verdict.shown == ()
    assert result.bins.intervals()[7].low < 0.0


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 0.99)), min_size=1, max_size=30))
def test_no_interval_from_sums_lies_below_what_is_possible(rows: list[tuple[int, float]]) -> None:
    summary = safecal.bernoulli(*zip(*rows, strict=True)).summary()
    interval = interval_from_sums(summary, 0.95)
    assert -summary.mean_entropy - 1e-12 <= interval.low <= interval.value <= interval.high
