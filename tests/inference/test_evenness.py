"""Faults that cancel along the predictions or among groups: seen together, where no place shows them by itself."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

import safecal
from safecal import Evaluation, Local, Predictions, Tally
from safecal._sums.summary import COLUMN
from safecal.inference.law import pearson3
from safecal.inference.ranges import Evenness, GroupEvenness

Draw = Callable[[np.random.Generator, int], Predictions]


def _two(spread: float, said: Callable[[np.random.Generator, np.ndarray], np.ndarray], mean: float = 0.0) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> Predictions:
        z = rng.normal(mean, spread, n)
        return safecal.bernoulli(rng.random(n) < special.expit(z), logits=said(rng, z))

    return draw


def _mixed(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Say twice the log-odds in 30 % of the rows, and less than half of them in the others."""
    return np.where(rng.random(len(z)) < 0.3, 2.0, 0.45) * z


def _as_they_are(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return z


def _classes(rng: np.random.Generator, n: int) -> Predictions:
    z = rng.normal(0, 2.5, (n, 10))
    return safecal.categorical((z + rng.gumbel(size=z.shape)).argmax(axis=1), logits=z)


def _states(rng: np.random.Generator, n: int) -> Predictions:
    std = np.exp(rng.normal(0, 0.7, n))
    return safecal.gaussian(std * rng.normal(size=n), np.zeros(n), std=std)


def _lattice(rng: np.random.Generator, n: int) -> Predictions:
    p = rng.choice([0.001, 0.1, 0.5, 0.99], n)
    return safecal.bernoulli(rng.random(n) < p, p)


def _p_value(tally: Tally) -> float:
    evenness = Evenness.of(tally)
    assert evenness is not None
    return evenness.p_value()


def _slow(tally: Tally) -> float:
    """Project the excess on polynomials of the information below each cell, one after the other."""
    sums = tally.orders[0].sums
    excess, variance, third = (
        sums[:, COLUMN[name]] for name in ("sum_excess", "sum_varentropy_weight2", "sum_third_cumulant_weight3")
    )
    below = np.concatenate([[0.0], np.cumsum(variance)[:-1]])
    place = (below + 0.5 * variance) / variance.sum()
    curves: list[np.ndarray] = []
    for power in range(4):
        curve = place**power
        for other in curves:
            curve = curve - (variance * curve) @ other * other
        size = (variance * curve) @ curve
        if size > 1e-12 * variance.sum():
            curves.append(curve / np.sqrt(size))
    tails = [pearson3(abs(excess @ c), 1.0, abs(third) @ abs(c) ** 3)[0] for c in curves[1:]]
    return min(2 * len(tails) * min(tails), 1.0) if tails else 1.0


@pytest.mark.parametrize("draw", [_two(2.0, _mixed), _two(2.0, _as_they_are), _classes, _states, _lattice])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_p_value_is_that_of_slow_code(draw: Draw, weighted: bool, rng: np.random.Generator) -> None:
    predictions = draw(rng, 400)
    weight = rng.gamma(2.0, 1.0, 400) if weighted else None
    tally = Tally.of(predictions, sample_weight=weight)
    assert _p_value(tally) == pytest.approx(_slow(tally), rel=1e-6)


def test_parts_of_the_rows_give_what_all_rows_give(rng: np.random.Generator) -> None:
    z = rng.normal(0, 2, 1000)
    y, said, cluster = rng.random(1000) < special.expit(z), _mixed(rng, z), np.arange(1000) % 90
    for codes in (None, cluster):
        parts = [
            Tally.of(safecal.bernoulli(y[k], logits=said[k]), cluster=None if codes is None else codes[k])
            for k in (slice(0, 300), slice(300, 1000))
        ]
        whole = Tally.of(safecal.bernoulli(y, logits=said), cluster=codes)
        assert _p_value(parts[0] + parts[1]) == pytest.approx(_p_value(whole), rel=1e-9)


def test_predictions_that_are_alike_cannot_differ() -> None:
    assert Evenness.of(Tally.of(safecal.bernoulli([0, 1, 1], [0.7, 0.7, 0.7]))).p_value() == 1.0  # type: ignore[union-attr]
    assert _p_value(Tally.of(safecal.bernoulli([0, 1, 1], [0.5, 0.5, 0.5]))) == 1.0
    assert not safecal.evaluate([0, 1, 1], [0.7, 0.7, 0.7]).local.uneven


def test_two_kinds_of_predictions_are_compared(rng: np.random.Generator) -> None:
    p = np.repeat([0.3, 0.9], 500)
    assert _p_value(Tally.of(safecal.bernoulli(rng.random(1000) < p, p))) > 0.01
    assert _p_value(Tally.of(safecal.bernoulli(rng.random(1000) < [0.2, 0.8][0] + 0.6 * (p > 0.5), p))) < 1e-3


def test_faults_that_cancel_are_not_safe_though_no_range_shows_them() -> None:
    decisions, alone = [], 0
    for seed in range(20):
        result = _two(2.0, _mixed)(np.random.default_rng(seed), 1000).evaluate()
        decisions.append(result.verdict.decision)
        assert result.local.uneven
        if not any(r.at_least > 0.0 and r.ecd.value > 0.2 for r in result.local):
            alone += 1
            assert "Its calibration differs along its predictions" in result.verdict.reason
            assert not result.verdict.shown
    assert decisions == ["UNDETERMINED"] * 20
    assert alone >= 5  # which were SAFE, had each range been looked at by itself


def test_calibrated_models_stay_safe() -> None:
    decisions = [
        _two(2.0, _as_they_are)(np.random.default_rng(seed), 1000).evaluate().verdict.decision for seed in range(20)
    ]
    assert decisions == ["SAFE"] * 20


def test_a_document_keeps_what_was_seen(rng: np.random.Generator) -> None:
    result = _two(2.0, _mixed)(rng, 1000).evaluate()
    document = result.to_dict()
    assert document["local"]["uneven"] is True
    again = Evaluation.from_dict(document)
    assert again == result
    assert again.judge(threshold=0.2).decision == result.judge(threshold=0.2).decision == "UNDETERMINED"
    early = copy.deepcopy(document["local"])
    del early["uneven"]
    assert not Local.from_dict(early).uneven


def test_what_waits_to_be_asked_for_can_be_pickled(rng: np.random.Generator) -> None:
    local = Local.of(Tally.of(_two(2.0, _mixed)(rng, 1000)))
    assert pickle.loads(pickle.dumps(local)).uneven
    assert copy.deepcopy(local).uneven


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize(
    "draw",
    [
        _two(2.0, _as_they_are),
        _two(1.0, _as_they_are, 4.0),
        _two(1.5, _as_they_are, -6.0),
        _two(0.5, _as_they_are),
        _classes,
        _states,
        _lattice,
    ],
)
def test_what_is_even_is_rarely_called_uneven(draw: Draw, n: int, rng: np.random.Generator) -> None:
    # Of 400 samples, 20 are expected at most; 38 come less than once in 10 000 times.
    assert sum(_p_value(Tally.of(draw(rng, n))) < 0.05 for _ in range(400)) < 38


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("clusters", [10, 30, 100])
@pytest.mark.parametrize("shared", [False, True])
def test_clusters_that_share_a_shock_are_rarely_called_uneven(
    clusters: int, shared: bool, rng: np.random.Generator
) -> None:
    uneven = 0
    for _ in range(200):
        codes = np.repeat(np.arange(clusters), 20)
        z = rng.normal(0, 2, len(codes))
        luck = rng.random(clusters)[codes] if shared else rng.random(len(codes))
        predictions = safecal.bernoulli((z > 0) == (luck < special.expit(np.abs(z))), logits=z)
        uneven += _p_value(Tally.of(predictions, cluster=codes)) < 0.05
    assert uneven < 23  # 10 are expected; so many come less than once in 10 000 times


def _of_sites(rng: np.random.Generator, n: int, sites: int, *chances: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw sites, and outcomes whose probability alternates from site to site."""
    site = rng.integers(0, sites, n)
    return rng.random(n) < np.array(chances)[site % len(chances)], site


def test_groups_that_differ_are_not_safe_though_each_is_too_small() -> None:
    for seed, (n, sites) in enumerate([(1000, 50), (3000, 200), (10_000, 500)]):
        y, site = _of_sites(np.random.default_rng(seed), n, sites, 0.98, 0.82)
        said = np.full(n, 0.9)
        assert safecal.evaluate(y, said).verdict.decision == "SAFE"  # nothing tells the sites apart
        verdict = safecal.evaluate(y, said, by=site).verdict
        assert verdict.decision == "UNDETERMINED"
        assert "Its calibration differs from group to group: more rows would show where." in verdict.reason
        assert "it may be over-confident" in verdict.reason
        assert {place.type for place in verdict.where} == {"group"}
        assert not verdict.shown
        worse = sum(int(place.name.split()[1]) % 2 for place in verdict.where)  # those of 82 %
        assert worse > 0.7 * len(verdict.where)


def test_groups_that_are_alike_stay_safe() -> None:
    for seed in range(12):
        y, site = _of_sites(np.random.default_rng(seed), 3000, (10, 50, 300)[seed % 3], 0.9)
        assert safecal.evaluate(y, np.full(3000, 0.9), by=site).verdict.decision == "SAFE"


def test_weighted_groups_that_differ_are_seen(rng: np.random.Generator) -> None:
    y, site = _of_sites(rng, 6000, 200, 0.98, 0.82)
    weight = rng.gamma(2.0, 1.0, 6000)
    assert safecal.evaluate(y, np.full(6000, 0.9), by=site, sample_weight=weight).verdict.decision == "UNDETERMINED"


def test_clusters_inside_groups_are_compared_with_each_other(rng: np.random.Generator) -> None:
    # Rows of a patient are all right or all wrong: sites look different, and are not.
    patient = np.repeat(np.arange(3000), 10)
    site, right = np.arange(3000)[patient] % 60, (rng.random(3000) < 0.9)[patient]
    predictions = safecal.bernoulli(right, np.full(30_000, 0.9))
    alone, together = (GroupEvenness.of(Tally.of(predictions, by=site, cluster=cluster)) for cluster in (None, patient))
    assert alone is not None
    assert alone.p_value < 0.01
    assert together is not None
    assert together.p_value > 0.05
    differ = rng.random(30_000) < np.where(site % 2 == 0, 0.98, 0.82)
    seen = GroupEvenness.of(Tally.of(safecal.bernoulli(differ, np.full(30_000, 0.9)), by=site, cluster=patient))
    assert seen is not None
    assert seen.p_value < 0.01


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize(("n", "groups"), [(1000, 5), (1000, 50), (3000, 300), (5000, 2000)])
@pytest.mark.parametrize("draw", [_two(2.0, _as_they_are), _two(1.5, _as_they_are, -6.0), _classes, _states, _lattice])
def test_groups_that_are_alike_are_rarely_called_different(
    draw: Draw, n: int, groups: int, rng: np.random.Generator
) -> None:
    different = 0
    for _ in range(200):
        evenness = GroupEvenness.of(Tally.of(draw(rng, n), by=rng.integers(0, groups, n)))
        assert evenness is not None
        different += evenness.p_value < 0.05
    assert different < 23  # 10 are expected; so many come less than once in 10 000 times


def test_groups_that_are_clusters_are_not_compared(rng: np.random.Generator) -> None:
    p, group = rng.random(400), np.arange(400) // 20
    y = rng.random(400) < p
    assert GroupEvenness.of(Tally.of(safecal.bernoulli(y, p), by=group, cluster=group)) is None
    assert safecal.evaluate(y, p, by=group, cluster=group).verdict.decision == "UNDETERMINED"
