"""The temperature the data ask for: against a slow minimiser, at its edges, from rows and from sums."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import safecal
from safecal import Predictions
from safecal.errors import EmptyError, FormError, OptionError
from safecal.maps.inverse_temperature import temper

RNG = np.random.default_rng(8)
N = 400
P = 1.0 / (1.0 + np.exp(-RNG.normal(0, 2, N)))
Z = RNG.normal(0, 2, (N, 4))
X = RNG.normal(0, 1, (N, 2))


def _classes(z: np.ndarray) -> np.ndarray:
    p = special.softmax(z, axis=1)
    return (p.cumsum(axis=1) < np.random.default_rng(2).random((len(z), 1))).sum(axis=1)


C = _classes(Z)
Y = np.random.default_rng(2).random(N) < P

FAMILIES: dict[str, Predictions] = {
    "bernoulli": safecal.bernoulli(Y, P),
    "over-confident": safecal.bernoulli(Y, logits=2.5 * special.logit(P)),
    "under-confident": safecal.bernoulli(Y, logits=0.4 * special.logit(P)),
    "categorical": safecal.categorical(C, logits=1.7 * Z),
    "gaussian": safecal.gaussian(1.3 * X, np.zeros((N, 2)), std=[1.0, 2.0]),
    "density": safecal.density(X[:, 0] * 0.8, stats.norm(np.zeros(N), np.linspace(0.5, 2.0, N))),
    "counts": safecal.density(RNG.poisson(3.0, 50), stats.poisson(np.full(50, 2.5))),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_maximum_of_the_likelihood(name: str, weighted: bool) -> None:
    predictions = FAMILIES[name]
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], predictions.n) if weighted else np.ones(predictions.n)
    surprisal = predictions.score().surprisal
    assert surprisal is not None

    def loss(log_beta: float) -> float:
        beta = math.exp(log_beta)
        return float(np.dot(w, beta * surprisal + predictions.log_partition(beta)))

    slow = optimize.minimize_scalar(loss, bounds=(-2.5, 2.5), method="bounded", options={"xatol": 1e-10})
    temperature = temper(predictions, w if weighted else None)
    assert temperature.beta == pytest.approx(math.exp(slow.x), rel=1e-5)
    found_t = safecal.implied_temperature(predictions, sample_weight=w if weighted else None)
    # States need their sums alone; cells give eight digits, with weights six, and nodes five.
    nodes = name in ("categorical", "density", "counts")
    digits = 1e-12 if name == "gaussian" else 1e-5 if nodes else 1e-6 if weighted else 1e-7
    assert found_t.value == pytest.approx(1.0 / temperature.beta, rel=digits)
    assert found_t.low < found_t.value < found_t.high


@pytest.mark.parametrize("name", FAMILIES)
def test_at_the_fitted_temperature_the_ecd_is_zero(name: str) -> None:
    predictions = FAMILIES[name]
    temperature = temper(predictions)
    surprisal = predictions.score().surprisal
    assert surprisal is not None
    gap = surprisal + predictions.log_partition(temperature.beta, deriv=1)
    assert abs(gap.mean()) < 1e-9 * (1.0 + np.abs(surprisal).mean())
    if name == "categorical":
        assert abs(safecal.ecd(C, logits=temperature.beta * 1.7 * Z)) < 1e-10
    if name == "over-confident":
        assert abs(safecal.ecd(Y, logits=temperature.beta * 2.5 * special.logit(P))) < 1e-10


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_temperature_of_states_is_their_nees_by_dimension(d: int) -> None:
    x = np.random.default_rng(d).normal(0, 1.4, (60, d))
    std = np.full((60, d), 0.9)
    wanted = safecal.nees(x, np.zeros((60, d)), std=std) / d
    temperature = safecal.implied_temperature(safecal.gaussian(x, np.zeros((60, d)), std=std))
    assert temperature.value == pytest.approx(wanted, rel=1e-9)
    total = wanted * 60 * d
    exact = total / stats.chi2.isf(0.025, 60 * d), total / stats.chi2.isf(0.975, 60 * d)
    assert (temperature.low, temperature.high) == pytest.approx(exact, rel=1e-8)


def test_the_edges() -> None:
    p = [0.9, 0.8, 0.7, 0.99, 0.6] * 3
    right, wrong = (safecal.implied_temperature(safecal.bernoulli([y] * 15, p)) for y in (1, 0))
    assert (right.value, right.low) == (0.0, 0.0)
    assert 0.0 < right.high < math.inf
    assert (wrong.value, wrong.high) == (math.inf, math.inf)
    assert wrong.low == math.inf  # no confidence at all is left open
    mostly = safecal.implied_temperature(safecal.bernoulli([1, 1, 1, 0, 0] * 3, p))
    assert 1.0 < mostly.low < mostly.value == mostly.high == math.inf
    for predictions in (safecal.bernoulli([1, 0], [0.5, 0.5]), safecal.bernoulli([1, 0], [1.0, 0.0])):
        nothing = safecal.implied_temperature(predictions)
        assert all(math.isnan(x) for x in (nothing.value, nothing.low, nothing.high))


def test_impossible_rows_are_left_out() -> None:
    y, p = np.append(Y, 1), np.append(P, 0.0)
    assert safecal.implied_temperature(safecal.bernoulli(y, p)).value == pytest.approx(
        safecal.implied_temperature(FAMILIES["bernoulli"]).value, rel=1e-9
    )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_give_what_rows_give(name: str, weighted: bool) -> None:
    w = np.random.default_rng(1).choice([0.5, 1.0, 2.0], FAMILIES[name].n) if weighted else None
    rows = safecal.implied_temperature(FAMILIES[name], sample_weight=w, level=0.8)
    sums = safecal.implied_temperature(FAMILIES[name].tally(sample_weight=w), level=0.8)
    assert (sums.value, sums.low, sums.high) == pytest.approx((rows.value, rows.low, rows.high), rel=1e-9)
    assert sums.method == rows.method


def test_a_summary_alone_has_no_temperature() -> None:
    with pytest.raises(FormError, match=r"`y_true` must be predictions, a Tally, or .*; got a Summary alone\."):
        safecal.implied_temperature(FAMILIES["bernoulli"].summary())


@pytest.mark.parametrize("options", [{"cluster": [0, 1]}, {"sample_weight": [1.0, 2.0]}])
def test_clusters_and_weights_belong_to_rows(options: dict[str, Any]) -> None:
    tally = safecal.bernoulli([0, 1], [0.2, 0.7]).tally()
    with pytest.raises(OptionError, match="must be rows, not sums, for clusters or weights"):
        safecal.implied_temperature(tally, **options)


def test_no_rows_have_no_temperature() -> None:
    with pytest.raises(EmptyError, match="`tally` must hold at least one row"):
        safecal.implied_temperature(safecal.Tally())


def test_clusters_widen_the_interval_of_dependent_rows() -> None:
    y, logits = np.repeat(Y[:80], 5), np.repeat(special.logit(P[:80]), 5)
    predictions = safecal.bernoulli(y, logits=logits)
    pooled = safecal.implied_temperature(predictions)
    clustered = safecal.implied_temperature(predictions, cluster=np.repeat(np.arange(80), 5))
    assert clustered.value == pooled.value
    assert clustered.method == "cluster t"
    assert clustered.high / clustered.low > 1.3 * pooled.high / pooled.low
    single = safecal.implied_temperature(safecal.bernoulli(Y[:80], P[:80]))
    assert clustered.high == pytest.approx(single.high, rel=0.2)


def test_the_same_data_give_the_same_answer() -> None:
    predictions = safecal.bernoulli(np.arange(200) > 1, np.linspace(0.98, 0.999, 200))
    temperature = safecal.implied_temperature(predictions)
    assert temperature.method == "convolution"
    assert safecal.implied_temperature(predictions) == temperature


@pytest.mark.proof
def test_counts_have_a_temperature_although_no_power_near_zero_can_be_summed() -> None:
    temperature = safecal.implied_temperature(safecal.density([3], stats.poisson([2.0])))
    assert 0.0 <= temperature.low <= temperature.value <= temperature.high
