"""Bounds of many keys at once: against slow scalar code, at the level asked for, however many keys there are."""

import math
from collections.abc import Sequence
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Predictions, Summary
from safecal._sums.summary import as_sums
from safecal.inference.sum_bounds import (
    bounds_by_key,
    firm_and_weak_bounds,
    interval_from_sums,
    intervals_from_sums,
    intervals_together,
)
from safecal.inference.tails import pearson3_quantiles

ALPHAS = (0.4, 0.05, 0.025, 1e-3, 5e-5, 5e-7, 2.5e-8)


def _gamma_quantile(alpha: float, skew: float, upper: bool) -> float:
    """Quantile of a shifted gamma law with mean 0 and variance 1, by expansion where it is almost normal."""
    if skew < 0.0:
        return -_gamma_quantile(alpha, -skew, not upper)
    z = float(special.ndtri(alpha)) * (-1.0 if upper else 1.0)
    if skew == 0.0 or (shape := (2.0 / skew) ** 2) >= 1e5:
        even = z + skew**2 * (z**3 - 7.0 * z) / 144.0 + skew**4 * (9.0 * z**5 + 256.0 * z**3 - 433.0 * z) / 622080.0
        return even + skew * (z * z - 1.0) / 6.0 - skew**3 * (3.0 * z**4 + 7.0 * z * z - 16.0) / 6480.0
    inverse = special.gammainccinv if upper else special.gammaincinv
    return float(inverse(shape, alpha) - shape) / math.sqrt(shape)


def _t_end(s: Summary, alpha: float, upper: bool) -> float:
    """One end of the t interval, bent by Hall's transformation."""
    mean = s.sum_excess / s.weight
    if not math.isfinite(s.sum_excess3_weight3):
        return mean
    second = s.sum_excess2_weight2 - 2.0 * mean * s.sum_excess_weight2 + mean**2 * s.weight2
    third = s.sum_excess3_weight3 - 3.0 * mean * s.sum_excess2_weight3
    third += 3.0 * mean**2 * s.sum_excess_weight3 - mean**3 * s.weight3
    if not second > 1e-14 * s.sum_excess2_weight2 or s.n < 2:
        return mean
    error, skew = math.sqrt(second * s.n / (s.n - 1)) / s.weight, third / second / math.sqrt(second)
    t = float(special.stdtrit(s.n - 1, alpha)) * (1.0 if upper else -1.0)
    bent = t if abs(skew) < 1e-6 else 3.0 / skew * (float(np.cbrt(1.0 + skew * (t - skew / 6.0))) - 1.0)
    if s.n < 200:
        bent = min(bent, t) if upper else max(bent, t)
    return mean - bent * error


def _plain(s: Summary, alpha: float) -> tuple[float, float]:
    """The bounds of one key, by scalar code."""
    if s.n == 0 or s.weight == 0.0:
        return math.nan, math.nan
    if s.weight_impossible > 0.0:
        return math.inf, math.inf
    mean = s.sum_excess / s.weight
    low, high = _t_end(s, alpha, upper=False), _t_end(s, alpha, upper=True)
    variance, third = s.sum_varentropy_weight2, s.sum_third_cumulant_weight3
    if variance > 0.0:
        spread = math.sqrt(variance + s.sum_numerical_variance_weight2)
        skew = third / spread / spread / spread
        low = min(low, mean - spread * _gamma_quantile(alpha, skew, upper=True) / s.weight)
        high = max(high, mean - spread * _gamma_quantile(alpha, skew, upper=False) / s.weight)
    if s.sum_predicted is not None:
        low = max(low, -s.mean_entropy)
    if variance > 0.0 and third > 0.0 and variance / (third / variance) ** 2 < 1e6:
        size, expected = third / variance, variance / (third / variance) ** 2
        seen = max(s.sum_excess / size + expected, 0.0)
        high = max(high, float(special.gammainccinv(seen + 1.0, alpha) - expected) * size / s.weight)
    return low, high


def _classifiers() -> list[Predictions]:
    rng = np.random.default_rng(3)
    models: list[Predictions] = []
    for spread in (1e-9, 1e-4, 0.01, 0.5, 2.0, 6.0):
        for n in (1, 2, 5, 24, 199, 200, 1000):
            z = rng.normal(0.0, spread, n)
            models.append(safecal.bernoulli(rng.random(n) < special.expit(0.7 * z), logits=z))
    for n, surprises, p in ((50, 0, 0.999), (50, 1, 0.999), (300, 3, 0.99), (2000, 40, 0.99), (20, 20, 0.9)):
        models.append(safecal.bernoulli(np.arange(n) >= surprises, np.full(n, p)))
    models += [safecal.categorical(rng.integers(0, 7, n), logits=rng.normal(0, 3, (n, 7))) for n in (3, 40, 400)]
    return models


def _summaries() -> list[Summary]:
    """Keys of every kind."""
    rng = np.random.default_rng(4)
    summaries = [predictions.summary() for predictions in _classifiers()]
    summaries += [predictions.summary(rng.exponential(1.0, predictions.n)) for predictions in _classifiers()]
    for n in (2, 30, 500):
        state = safecal.gaussian(rng.normal(size=(n, 2)), np.zeros((n, 2)), std=0.8).summary()
        summaries += [state, replace(state, sum_entropy=None, sum_numerical_variance_weight2=0.3 * n)]
    negative = replace(summaries[10], sum_third_cumulant_weight3=-summaries[10].sum_third_cumulant_weight3)
    huge = safecal.bernoulli([0, 1, 1], logits=[1e110, 2.0, -1.0]).summary()  # its cube is infinite
    return [*summaries, negative, huge, *_edges().values()]


def _edges() -> dict[str, Summary]:
    impossible = safecal.bernoulli([1, 0, 1], [0.0, 0.4, 0.7])
    even = safecal.bernoulli([1, 0, 1], [0.5, 0.5, 0.5])
    return {
        "no rows": Summary(),
        "impossible": impossible.summary(),
        "impossible, of weight 0": impossible.summary(np.array([0.0, 1.0, 1.0])),
        "no weight": Summary(n=3, sum_entropy=0.0, sum_predicted=0.0),
        "one half": even.summary(),
        "one row": safecal.bernoulli([0], [0.9]).summary(),
        "equal rows": safecal.bernoulli([1, 1, 1], [0.9, 0.9, 0.9]).summary(),
        "certain": safecal.bernoulli([1, 0], [1.0, 0.0]).summary(),
        "tiny": safecal.bernoulli([1, 0, 1], logits=[1e-110, 3e-110, 2e-110]).summary(),
    }


def _agree(computed: Sequence[float], wanted: Sequence[float], scale: Sequence[float]) -> None:
    for k, (a, b, unit) in enumerate(zip(computed, wanted, scale, strict=True)):
        same = a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-12 * unit
        assert same, (k, a, b)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_bounds_are_those_of_slow_scalar_code(alpha: float) -> None:
    keys = _summaries()
    low, high = bounds_by_key(as_sums(keys), alpha)
    wanted = [_plain(s, alpha) for s in keys]
    size = [max(abs(a), abs(b)) for a, b in wanted]
    _agree(low.tolist(), [a for a, _ in wanted], size)
    _agree(high.tolist(), [b for _, b in wanted], size)


def test_a_kink_between_two_points_of_a_curve_is_not_rounded_off() -> None:
    # Hall's transformation is steepest here, between the normal scores 1.75 and 2.
    z = [0.23, 3.03, 2.13, 0.63, 0.35, 0.51, -0.93, 2.59, -2.9, 1.19, 0.1, 1.12, -4.46, 4.38, 2.71, 1.75, -2.54, 2.89,
         1.25, 0.28, 0.31, -3.63, -0.02, 0.97]  # fmt: skip
    y = [1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0]
    s = safecal.bernoulli(y, logits=z).summary()
    interval = interval_from_sums(s, 0.95)
    assert (interval.low, interval.high) == pytest.approx(_plain(s, 0.025), rel=1e-12)
    assert interval.high == pytest.approx(1.097, abs=5e-4)


def test_keys_with_nothing_to_bound() -> None:
    edges = _edges()
    low, high = bounds_by_key(as_sums(list(edges.values())), 0.025)
    ends = dict(zip(edges, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    for name in ("no rows", "no weight"):
        assert np.isnan(ends[name]).all(), name
    assert ends["impossible"] == (math.inf, math.inf)
    assert np.isfinite(ends["impossible, of weight 0"]).all()
    assert ends["one half"] == ends["certain"] == (0.0, 0.0)
    assert ends["one row"][0] < edges["one row"].ecd < ends["one row"][1]  # as far as the model's own spread
    assert ends["equal rows"][0] < edges["equal rows"].ecd < 0.0 < ends["equal rows"][1]
    assert 0.0 < ends["tiny"][1] < 1e-108


def test_intervals_say_how_they_are_made() -> None:
    edges = _edges()
    intervals = dict(zip(edges, intervals_from_sums(as_sums(list(edges.values())), 0.9), strict=True))
    assert intervals["no rows"].method == "no rows"
    assert intervals["impossible"].method == "an impossible outcome happened"
    assert intervals["one row"].method == "no spread, from sums"
    assert intervals["tiny"].method == "skewness-corrected t, from sums"
    assert {at.level for at in intervals.values()} == {0.9}
    assert [at.value for at in intervals.values()] == pytest.approx([s.ecd for s in edges.values()], nan_ok=True)
    assert interval_from_sums(edges["one row"], 0.9) == intervals["one row"]


def test_no_keys_have_no_bounds() -> None:
    nothing = as_sums([])
    assert [x.shape for x in bounds_by_key(nothing, 0.05)] == [(0,), (0,)]
    assert intervals_together(nothing, 0.95) == ()
    assert [x.shape for x in firm_and_weak_bounds(nothing, 0.01, 0.1)] == [(0,), (0,), (0,)]


@pytest.mark.parametrize("count", [4, 107, 500, 50_000])
def test_intervals_together_are_bonferroni_however_many_there_are(count: int) -> None:
    s = safecal.bernoulli([1, 0, 0, 1, 1, 1, 0], [0.9, 0.3, 0.8, 0.6, 0.4, 0.7, 0.2]).summary()
    sums = np.concatenate([np.tile(as_sums([s]), (count, 1)), as_sums([Summary()] * 3)])
    together, lows = intervals_together(sums, 0.9), firm_and_weak_bounds(sums, 1e-9, 0.05 / count)[2]
    low, high = _plain(s, 0.05 / count)
    for k in (0, count - 1):
        assert (together[k].low, together[k].high) == pytest.approx((low, high), rel=1e-12)
        assert together[k].level == pytest.approx(1.0 - 0.1 / count, abs=1e-15)
    assert lows[:count] == pytest.approx(low, rel=1e-12)
    assert np.isnan(lows[count:]).all()
    assert math.isnan(together[-1].high)


@pytest.mark.proof
def test_more_keys_give_wider_intervals() -> None:
    sums = as_sums([safecal.bernoulli([1, 0, 0, 1], [0.9, 0.3, 0.6, 0.6]).summary()])
    chain = [intervals_together(np.tile(sums, (count, 1)), 0.95)[0] for count in (100, 1000, 10_000, 100_000)]
    highs = [interval.high for interval in chain]
    assert highs == sorted(set(highs))


@pytest.mark.parametrize(
    "shape", [9.0, 1e12, *(pytest.param(shape, marks=pytest.mark.proof) for shape in (40.0, 9e4, 2e5, 1e8))]
)
@pytest.mark.parametrize("upper", [False, True])
def test_quantiles_hold_far_out(shape: float, upper: bool) -> None:
    # SciPy's own inverse is off by a quarter of a standard deviation for the last of these, below.
    mpmath.mp.dps = 40
    skew = 2.0 / math.sqrt(shape)
    for alpha in (0.025, 1e-5, 1e-8):
        for sign in (1.0, -1.0):
            quantiles = pearson3_quantiles([(alpha, upper)], np.array([4.0]), np.array([sign * 8.0 * skew]))
            x = float(quantiles[0, 0]) / 2.0
            value = sign * x * math.sqrt(shape) + shape
            above = upper == (sign > 0)
            assert _gamma_tail(shape, value, above) == pytest.approx(alpha, rel=2e-5 if shape > 1e10 else 1e-8)


def _gamma_tail(shape: float, value: float, above: bool) -> float:
    """A tail of the gamma law; by quadrature of its density where series would not end."""
    if shape < 1e5:
        ends = (value, mpmath.inf) if above else (0, value)
        return float(mpmath.gammainc(shape, *ends, regularized=True))
    k, spread = mpmath.mpf(shape), mpmath.sqrt(shape)
    top = (k - 1) * mpmath.log(k) - k - mpmath.loggamma(k)

    def density(u: mpmath.mpf) -> mpmath.mpf:
        x = k + u * spread
        return mpmath.exp(top + (k - 1) * mpmath.log1p(u / spread) - (x - k)) * spread

    z = (mpmath.mpf(value) - k) / spread
    return float(mpmath.quad(density, [z, z + 2, z + 6, z + 14] if above else [z - 14, z - 6, z - 2, z]))
