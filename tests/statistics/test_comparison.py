"""Size and coverage of paired comparisons, at fixed seeds.

Two models, equal in expectation, of unlike sharpness: one sees both parts of the log-odds, the other one part only.
Both are calibrated, so ECD does not differ; with its logits multiplied by 2.4636, the sharp one has the NLL of the
other.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal import Comparison, compare

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]
SD = 1.5
SAME_NLL = 2.4636
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_GRID = np.linspace(-14.0, 14.0, 2801)
_MEAN = (1.0 / (1.0 + np.exp(-(_GRID[:, None] + SD * _NODES)))) @ (_WEIGHTS / _WEIGHTS.sum())


def pair(n: int, rng: np.random.Generator, factor: float, copies: int = 1) -> Comparison:
    part = rng.normal(0.0, SD, n)
    log_odds = part + rng.normal(0.0, SD, n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))
    seen = np.interp(part, _GRID, _MEAN)
    cluster = np.repeat(np.arange(n), copies) if copies > 1 else None
    y, log_odds, seen = (np.repeat(column, copies) for column in (y, log_odds, seen))
    return compare(safecal.bernoulli(y, logits=factor * log_odds), safecal.bernoulli(y, seen), cluster=cluster)


def rejected(n: int, factor: float, name: str, times: int, seed: int, copies: int = 1) -> tuple[float, float]:
    """Return how often a seemed better, and how often b."""
    rng = np.random.default_rng(seed)
    intervals = [getattr(pair(n, rng, factor, copies), name).interval for _ in range(times)]
    return float(np.mean([i.high < 0.0 for i in intervals])), float(np.mean([i.low > 0.0 for i in intervals]))


@pytest.mark.parametrize("n", [50, 100, 200, 1000])
@pytest.mark.parametrize(("factor", "name"), [(1.0, "ecd"), (SAME_NLL, "nll")])
def test_size(n: int, factor: float, name: str) -> None:
    low, high = rejected(n, factor, name, 1000, seed=n)
    assert low + high <= 0.07
    assert max(low, high) <= (0.05 if n >= 100 else 0.06)


@pytest.mark.parametrize(("factor", "name"), [(1.0, "ecd"), (SAME_NLL, "nll")])
def test_from_two_hundred_rows_both_sides_are_missed_alike(factor: float, name: str) -> None:
    low, high = rejected(400, factor, name, 2000, seed=1)
    assert low == pytest.approx(0.025, abs=0.012)
    assert high == pytest.approx(0.025, abs=0.012)


def test_few_rows_do_not_hide_the_surprises_of_a_sharp_model() -> None:
    low, high = rejected(20, SAME_NLL, "nll", 1000, seed=2)
    assert max(low, high) < 0.02


def _fair(a: float, b: float) -> float:
    """Return how probable the likelier class is if models that say ``a`` and ``b`` have the same expected NLL."""
    right, wrong = np.log(b / a), np.log((1.0 - b) / (1.0 - a))
    return float(wrong / (wrong - right))


def _said(p: np.ndarray, right: np.ndarray, classes: int) -> safecal.Predictions:
    if classes == 2:
        return safecal.bernoulli(right, p)
    others = (1.0 - p) / (classes - 1)
    y = np.where(right, 0, 1 + np.arange(len(p)) % (classes - 1))
    return safecal.categorical(y, np.column_stack([p, *[others] * (classes - 1)]))


def exact_size(groups: list[tuple[int, float, float]], classes: int = 2) -> float:
    """Return how often models are told apart that are equal in every row, over all that may happen.

    Each group has a number of rows, and what a and b say in them. Only how many of them go wrong matters, so the size
    is a sum over these numbers, without a draw.
    """
    a, b = (np.concatenate([np.full(g[0], g[j]) for g in groups]) for j in (1, 2))
    laws = [stats.binom(n, 1.0 - _fair(p, q)) for n, p, q in groups]
    size = 0.0
    for wrong in itertools.product(*(range(int(law.ppf(1e-5)), int(law.isf(1e-5)) + 1) for law in laws)):
        right = np.concatenate([np.arange(g[0]) >= k for g, k in zip(groups, wrong, strict=True)])
        d = compare(_said(a, right, classes), _said(b, right, classes)).nll
        assert d.shown == (not d.interval.low <= 0.0 <= d.interval.high)
        size += d.shown * float(np.prod([law.pmf(k) for law, k in zip(laws, wrong, strict=True)]))
    return size


@pytest.mark.parametrize("n", [20, 50, 200, 500, 1000])
@pytest.mark.parametrize(
    ("a", "b"), [(0.999, 0.99), (0.99, 0.9), (0.9999, 0.999), (0.999, 0.9), (0.9, 0.99), (0.95, 0.8)]
)
def test_rare_and_large_differences_do_not_reject(a: float, b: float, n: int) -> None:
    assert exact_size([(n, a, b)]) <= (0.053 if (a, b, n) == (0.999, 0.9, 1000) else 0.05)


@pytest.mark.parametrize("n", [50, 200, 1000])
def test_ten_classes_do_not_reject_either(n: int) -> None:
    assert exact_size([(n, 0.999, 0.99)], classes=10) <= 0.05


@pytest.mark.parametrize("n", [50, 200, 500])
def test_vague_rows_do_not_hide_the_rare_ones(n: int) -> None:
    assert exact_size([(n // 2, 0.999, 0.99), (n - n // 2, 0.6, 0.5)]) <= 0.055


def test_clusters_that_surprise_together_do_not_reject(rng: np.random.Generator) -> None:
    clusters, rows = 100, 10
    cluster = np.repeat(np.arange(clusters), rows)
    a, b = np.full(clusters * rows, 0.99), np.full(clusters * rows, 0.9)
    for together in (1.0, 0.5):  # of the surprises, that many come to whole clusters
        shown = 0
        for _ in range(300):
            storm = rng.random(clusters) < together * (1.0 - _fair(0.99, 0.9))
            y = ~(storm[cluster] | (rng.random(len(a)) < (1.0 - together) * (1.0 - _fair(0.99, 0.9))))
            shown += compare(safecal.bernoulli(y, a), safecal.bernoulli(y, b), cluster=cluster).nll.shown
        assert shown / 300 <= 0.05


def test_size_with_clusters() -> None:
    low, high = rejected(60, 1.0, "ecd", 1000, seed=3, copies=5)
    assert low + high <= 0.07


def test_coverage_of_a_difference_that_exists() -> None:
    rng = np.random.default_rng(4)
    truth = pair(400_000, rng, 2.0).nll.interval.value
    for n in (60, 300):
        intervals = [pair(n, rng, 2.0).nll.interval for _ in range(1000)]
        covered = np.mean([i.low <= truth <= i.high for i in intervals])
        assert 0.93 <= covered <= 0.99  # an end is never nearer than what equal models do by chance


def test_power() -> None:
    rng = np.random.default_rng(5)
    differences = [pair(300, rng, 2.0).ecd for _ in range(200)]
    assert np.mean([d.interval.low > 0.0 for d in differences]) > 0.9


@pytest.mark.parametrize(
    ("n", "mean", "sd", "factor", "least"),
    [(200, 0.0, 2.0, 2.0, 0.65), (500, 4.0, 1.0, 2.0, 0.84), (500, 4.0, 1.0, 0.5, 0.96), (300, 6.0, 0.5, 0.5, 0.36)],
)
def test_power_is_where_that_of_the_t_statistic_alone_was(
    n: int, mean: float, sd: float, factor: float, least: float, rng: np.random.Generator
) -> None:
    # That was .70, .90, .99 and .42: a calibrated model against one whose logits are multiplied.
    shown = 0
    for _ in range(300):
        z = rng.normal(mean, sd, n)
        y = rng.random(n) < 1.0 / (1.0 + np.exp(-z))
        shown += compare(safecal.bernoulli(y, logits=z), safecal.bernoulli(y, logits=factor * z)).nll.shown
    assert shown / 300 >= least
