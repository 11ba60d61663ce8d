"""The temperature the data ask for: against a slow minimiser, at its edges, from rows and from sums."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

import safecal
from safecal import Predictions
from safecal.inference.tempered import tempered

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
    found = tempered(predictions, w if weighted else None)
    assert found.beta == pytest.approx(math.exp(slow.x), rel=1e-5)
    found_t = safecal.implied_temperature(predictions, sample_weight=w if weighted else None)
    assert found_t.value == pytest.approx(1.0 / found.beta, rel=1e-12)
    assert found_t.low < found_t.value < found_t.high


@pytest.mark.parametrize("name", FAMILIES)
def test_at_the_fitted_temperature_the_ecd_is_zero(name: str) -> None:
    predictions = FAMILIES[name]
    found = tempered(predictions)
    surprisal = predictions.score().surprisal
    assert surprisal is not None
    gap = surprisal + predictions.log_partition(found.beta, deriv=1)
    assert abs(gap.mean()) < 1e-9 * (1.0 + np.abs(surprisal).mean())
    if name == "categorical":
        assert abs(safecal.ecd(C, logits=found.beta * 1.7 * Z)) < 1e-10
    if name == "over-confident":
        assert abs(safecal.ecd(Y, logits=found.beta * 2.5 * special.logit(P))) < 1e-10


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_temperature_of_states_is_their_nees_by_dimension(d: int) -> None:
    x = np.random.default_rng(d).normal(0, 1.4, (60, d))
    std = np.full((60, d), 0.9)
    wanted = safecal.nees(x, np.zeros((60, d)), std=std) / d
    found = safecal.implied_temperature(safecal.gaussian(x, np.zeros((60, d)), std=std))
    assert found.value == pytest.approx(wanted, rel=1e-9)
    total = wanted * 60 * d
    exact = total / stats.chi2.isf(0.025, 60 * d), total / stats.chi2.isf(0.975, 60 * d)
    assert (found.low, found.high) == pytest.approx(exact, rel=2e-3)


def test_the_edges() -> None:
    p = [0.9, 0.8, 0.7, 0.99, 0.6] * 3
    right, wrong = (safecal.implied_temperature(safecal.bernoulli([y] * 15, p)) for y in (1, 0))
    assert (right.value, right.low) == (0.0, 0.0)
    assert 0.0 < right.high < math.inf
    assert (wrong.value, wrong.high) == (math.inf, math.inf)
    assert 1.0 < wrong.low < math.inf
    for predictions in (safecal.bernoulli([1, 0], [0.5, 0.5]), safecal.bernoulli([1, 0], [1.0, 0.0])):
        nothing = safecal.implied_temperature(predictions)
        assert all(math.isnan(x) for x in (nothing.value, nothing.low, nothing.high))


def test_impossible_rows_are_left_out() -> None:
    y, p = np.append(Y, 1), np.append(P, 0.0)
    assert safecal.implied_temperature(safecal.bernoulli(y, p)).value == pytest.approx(
        safecal.implied_temperature(FAMILIES["bernoulli"]).value, rel=1e-9
    )


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "counts"])
def test_a_profile_gives_nearly_the_same(name: str) -> None:
    rows = safecal.implied_temperature(FAMILIES[name])
    sums = safecal.implied_temperature(FAMILIES[name].profile())
    assert sums.value == pytest.approx(rows.value, rel=1e-3)
    assert (sums.low, sums.high) == pytest.approx((rows.low, rows.high), rel=0.03)
    assert sums.method == "profile likelihood"


def test_a_profile_at_its_edges() -> None:
    p = [0.9, 0.8, 0.7, 0.99, 0.6]
    right, wrong = (safecal.implied_temperature(safecal.bernoulli([y] * 5, p).profile()) for y in (1, 0))
    assert (right.value, right.low) == (0.0, 0.0)
    assert (wrong.value, wrong.high) == (math.inf, math.inf)
    nothing = safecal.implied_temperature(safecal.bernoulli([1, 0], [0.5, 0.5]).profile())
    assert math.isnan(nothing.value)


def test_one_step_from_a_summary() -> None:
    s = FAMILIES["bernoulli"].summary()
    found = safecal.implied_temperature(s)
    assert found.value == pytest.approx(1.0 / (1.0 - s.sum_excess / s.sum_varentropy), rel=1e-12)
    assert found.method == "one step, from sums"
    rows = safecal.implied_temperature(FAMILIES["bernoulli"])
    assert (found.low, found.value, found.high) == pytest.approx((rows.low, rows.value, rows.high), rel=0.1)
    far = safecal.implied_temperature(safecal.bernoulli([0] * 20, [0.9] * 20).summary())
    assert (far.value, far.high) == (math.inf, math.inf)


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
    found = safecal.implied_temperature(predictions)
    assert found.method == "drawn surprises"
    assert safecal.implied_temperature(predictions) == found


@pytest.mark.proof
def test_counts_have_a_temperature_although_no_power_near_zero_can_be_summed() -> None:
    found = safecal.implied_temperature(safecal.density([3], stats.poisson([2.0])))
    assert 0.0 <= found.low <= found.value <= found.high
