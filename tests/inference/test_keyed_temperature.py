"""Temperatures of many keys at once are those of the same rows alone."""

import math

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal import Predictions, Tally
from safecal.inference.bounds import Bounds, law_of
from safecal.inference.key_temperatures import KeyTemperatures, NodeKeys, StateKeys
from safecal.judge.groups import judge_groups
from safecal.options import Limits

TIMES = (0.6, 1.0, 1.7, 2.6, 6.0)


def _rows(kind: str, times: float, rng: np.random.Generator, n: int = 1500) -> Predictions:
    if kind == "states":
        return safecal.gaussian(rng.normal(0.0, math.sqrt(times), n), np.zeros(n), std=1.0)
    if kind == "classes":
        z = rng.normal(0.0, 2.0, (n, 7))
        return safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=times * z)
    z = rng.normal(0.0, 2.0, n)
    return safecal.bernoulli(rng.random(n) < special.expit(z), logits=times * z)


def _temperatures(tally: Tally, alpha: float) -> KeyTemperatures:
    assert tally.groups is not None
    sums, nodes, most = tally.groups.sums, tally.group_nodes, tally.most_entropy
    if nodes is None:
        return KeyTemperatures(lambda keys: StateKeys(sums[keys]), sums, alpha)
    return KeyTemperatures(lambda keys: NodeKeys(nodes.take(keys), sums[keys], most), sums, alpha)


def _tally(parts: list[Predictions], **more: object) -> Tally:
    tallies = [part.tally(by=np.full(part.n, k), **more) for k, part in enumerate(parts)]
    return sum(tallies[1:], tallies[0])


@pytest.mark.parametrize(("kind", "near"), [("two", 3e-6), ("classes", 1e-9), ("states", 1e-9)])
def test_a_key_has_the_temperature_of_its_rows(kind: str, near: float, rng: np.random.Generator) -> None:
    parts = [_rows(kind, times, rng) for times in TIMES]
    value, low, high = _temperatures(_tally(parts), 0.025).intervals(np.arange(len(parts)))
    for k, part in enumerate(parts):
        alone = Bounds(part.tally(bins=None)).temperature(0.95)
        far = TIMES[k] > 4.0  # there nodes have to guess
        assert value[k] == pytest.approx(alone.value, rel=0.02 if far else near)
        assert low[k] == pytest.approx(alone.low, rel=0.02)
        assert high[k] == pytest.approx(alone.high, rel=0.02)
        assert low[k] < value[k] < high[k]


def test_the_sums_of_a_key_at_any_beta_are_those_of_the_law_of_its_rows(rng: np.random.Generator) -> None:
    parts = [_rows("classes", times, rng) for times in TIMES]
    tally = _tally(parts)
    assert tally.groups is not None
    assert tally.group_nodes is not None
    keys = NodeKeys(tally.group_nodes, tally.groups.sums, tally.most_entropy)
    for beta in (0.01, 0.2, 0.3, 2.0 / 3.0, 1.0, 3.0, 4.0, 7.0):
        expected_surprise = keys.at(np.full(len(parts), beta), np.arange(len(parts)))
        for k, part in enumerate(parts):
            law = law_of(part.tally(bins=None))
            assert law is not None
            at = law.at(beta)
            wanted = (at.mean, at.variance, at.third)
            assert [float(x[k]) for x in expected_surprise[:3]] == pytest.approx(wanted, rel=1e-9)


def test_bounds_are_where_the_difference_has_its_bound(rng: np.random.Generator) -> None:
    temperatures = _temperatures(_tally([_rows("two", 1.7, rng)]), 0.01)
    _, low, high = temperatures.intervals(np.arange(1))
    assert temperatures.beyond(float(low[0])).low[0] == pytest.approx(0.0, abs=1e-9)
    assert temperatures.beyond(float(high[0])).high[0] == pytest.approx(0.0, abs=1e-9)


def test_temperatures_at_the_edge(rng: np.random.Generator) -> None:
    right, wrong = safecal.bernoulli([1] * 50, [0.9] * 50), safecal.bernoulli([0] * 50, [0.9] * 50)
    toss, certain = safecal.bernoulli([0, 1] * 25, [0.5] * 50), safecal.bernoulli([1] * 50, [1.0] * 50)
    value, low, high = _temperatures(_tally([right, wrong, toss, certain]), 0.025).intervals(np.arange(4))
    assert value[0] == low[0] == 0.0
    assert 0.0 < high[0] < 2.0
    assert value[1] == high[1] == math.inf
    assert low[1] > 1.0
    assert np.isnan(value[2:]).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_scale_nothing(weighted: bool, rng: np.random.Generator) -> None:
    part = _rows("two", 1.7, rng)
    weight = rng.gamma(2.0, 1.0, part.n) if weighted else np.ones(part.n)
    intervals = [
        _temperatures(part.tally(by=np.zeros(part.n), sample_weight=w), 0.025).intervals(np.arange(1))
        for w in (weight, 1000.0 * weight)
    ]
    np.testing.assert_allclose(intervals[0], intervals[1], rtol=1e-9)


def test_densities_with_a_log_partition_have_a_temperature_too(rng: np.random.Generator) -> None:
    x = rng.laplace(0.0, 2.0, 4000)
    tally = safecal.density(x, stats.laplace()).tally(by=np.arange(4000) % 2)
    assert tally.group_nodes is not None
    assert tally.groups is not None
    judged = judge_groups(tally.groups, Limits(), tally)
    assert (judged.by_temperature == 2).all()
    assert [1.8 < t.value < 2.2 for t in judged.temperature(np.arange(2))] == [True, True]


@pytest.mark.parametrize("log_odds", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 1e-13, 1e-16])
@pytest.mark.parametrize("surprises", [0, 1, 3])
def test_predictions_next_to_even_odds_prove_nothing(log_odds: float, surprises: int) -> None:
    y = np.arange(5) >= surprises
    tally = safecal.bernoulli(y, logits=np.full(5, log_odds)).tally(by=np.zeros(5))
    temperatures = _temperatures(tally, 0.001)
    hot = temperatures.beyond(1.5)
    assert hot.low[0] < 0.0 < hot.high[0]
    beta = np.array([2.0 / 3.0])
    assert tally.group_nodes is not None
    assert tally.groups is not None
    at = NodeKeys(tally.group_nodes, tally.groups.sums, tally.most_entropy).at(beta, np.arange(1))
    q = float(special.expit(-beta * log_odds)[0])
    exact = 5.0 * log_odds**2 * q * (1.0 - q)
    assert float(at.variance[0]) == pytest.approx(exact, rel=1e-4)
    assert float(at.third[0]) == pytest.approx(exact * log_odds * (1.0 - 2.0 * q), rel=1e-2, abs=1e-2 * exact**1.5)
