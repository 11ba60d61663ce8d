"""scikit-learn and SciPy: the same number where definitions coincide, both numbers where they do not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import safecal

calibration = pytest.importorskip("sklearn.calibration")
metrics = pytest.importorskip("sklearn.metrics")


def random_binary(seed: int, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(0.0, 2.0, n))
    return (rng.random(n) < p).astype(int), p


def random_classes(seed: int, classes: int = 5, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, n), rng.dirichlet(np.full(classes, 0.5), n)


def baseball(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    table = np.genfromtxt(folder / "baseball" / "mlb_games.csv", delimiter=",", skip_header=1, usecols=(5, 6))
    table = table[table[:, 1] != 0.5]
    return table[:, 1].astype(int), table[:, 0]


def wideresnet(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / "cifar" / "wideresnet-16-4-cifar-10.npz") as file:
        p = file["predictions"].astype(np.float64)
        return file["ground_truth"], p / p.sum(axis=1, keepdims=True)


def assert_binary_scores_agree(y: np.ndarray, p: np.ndarray) -> None:
    assert safecal.nll(y, p) == pytest.approx(metrics.log_loss(y, p), rel=1e-12)
    assert safecal.brier(y, p) == pytest.approx(metrics.brier_score_loss(y, p), rel=1e-12)
    observed, predicted = calibration.calibration_curve(y, p, n_bins=10, strategy="uniform")
    table = safecal.evaluate(y, p, bins=10).bins
    assert table is not None
    filled = table.weights > 0
    assert table.predicted[filled] == pytest.approx(predicted, rel=1e-12)
    assert table.observed[filled] == pytest.approx(observed, rel=1e-12)


def assert_multiclass_scores_agree(y: np.ndarray, p: np.ndarray) -> None:
    assert safecal.nll(y, p) == pytest.approx(metrics.log_loss(y, p, labels=range(p.shape[1])), rel=1e-12)
    one_hot = np.eye(p.shape[1])[y]
    slow = float(((p - one_hot) ** 2).sum(axis=1).mean())
    assert safecal.brier(y, p) == pytest.approx(slow, rel=1e-12)
    try:
        theirs = metrics.brier_score_loss(y, p, labels=list(range(p.shape[1])))
    except (TypeError, ValueError):  # scikit-learn before 1.7 knows two classes only
        return
    assert safecal.brier(y, p) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_scikit_learn_agrees_on_two_random_classes(seed: int) -> None:
    assert_binary_scores_agree(*random_binary(seed))


def test_scikit_learn_agrees_on_baseball(shared_data: Path) -> None:
    assert_binary_scores_agree(*baseball(shared_data))


@pytest.mark.parametrize("seed", range(3))
def test_scikit_learn_agrees_on_many_random_classes(seed: int) -> None:
    assert_multiclass_scores_agree(*random_classes(seed))


def test_scikit_learn_agrees_on_images(shared_data: Path) -> None:
    assert_multiclass_scores_agree(*wideresnet(shared_data))


def test_scikit_learn_agrees_with_weights() -> None:
    y, p = random_binary(7)
    w = np.random.default_rng(7).uniform(0.0, 3.0, len(y))
    theirs = metrics.log_loss(y, p, sample_weight=w)
    assert safecal.nll(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)
    theirs = metrics.brier_score_loss(y, p, sample_weight=w)
    assert safecal.brier(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)


def test_scikit_learn_clips_an_impossible_outcome_and_safecal_does_not() -> None:
    y = [0, 1]
    assert metrics.log_loss(y, np.array([0.5, 0.0])) == pytest.approx((math.log(2.0) + 36.0437) / 2, abs=1e-4)
    assert metrics.log_loss(y, np.array([0.5, 0.0], dtype=np.float32)) == pytest.approx(8.3177, abs=1e-3)
    assert safecal.nll(y, [0.5, 0.0]) == math.inf
    eps = float(np.finfo(np.float64).eps)
    clipped = metrics.log_loss(y, np.array([0.5, 0.0]))
    assert safecal.nll(y, [0.5, 0.0], clip=eps) == pytest.approx(clipped, rel=1e-12)


def test_scikit_learn_clips_a_tiny_probability_that_happened_and_safecal_does_not() -> None:
    p = np.array([0.5, 1e-40])
    assert metrics.log_loss([0, 1], p) == pytest.approx(18.368, abs=1e-3)
    assert safecal.nll([0, 1], p) == pytest.approx((math.log(2.0) + 40.0 * math.log(10.0)) / 2, rel=1e-14)


def test_scikit_learn_closes_bins_on_the_right_and_safecal_on_the_left() -> None:
    y, p = [1, 0, 1], [0.45, 0.5, 0.55]
    observed, predicted = calibration.calibration_curve(y, p, n_bins=2)
    assert (observed.tolist(), predicted.tolist()) == ([0.5, 1.0], [0.475, 0.55])
    table = safecal.evaluate(y, p, bins=2).bins
    assert table is not None
    assert (table.observed.tolist(), table.predicted.tolist()) == ([1.0, 0.5], [0.45, 0.525])


def test_edges_of_linspace_are_an_ulp_off_and_edges_of_safecal_are_the_decimal_ones() -> None:
    edges = np.linspace(0.0, 1.0, 11)
    assert [float(e) for e in edges if e not in safecal.Bins.uniform(10).edges] == [
        0.30000000000000004,
        0.6000000000000001,
        0.7000000000000001,
    ]
    assert safecal.Bins.uniform(10).edges == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert np.digitize(0.3, edges) - 1 == 2
    assert safecal.Bins.uniform(10).index([0.3]).tolist() == [3]


def test_zero_and_one_are_counted_in_the_first_and_the_last_bin() -> None:
    table = safecal.evaluate([0, 1, 1], [0.0, 1.0, 0.5], bins=10).bins
    assert table is not None
    assert [s.n for s in table.summaries] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_scipy_entropy_agrees() -> None:
    y, p = random_binary(11, 200)
    scored = safecal.bernoulli(y, p).score()
    assert scored.entropy == pytest.approx(stats.bernoulli(p).entropy(), rel=1e-12)
    assert scored.surprisal == pytest.approx(-stats.bernoulli(p).logpmf(y), rel=1e-12)
    y, p = random_classes(11, n=200)
    scored = safecal.categorical(y, p).score()
    assert scored.entropy == pytest.approx(stats.entropy(p, axis=1), rel=1e-12)


def test_scipy_normalises_probabilities_and_safecal_uses_them_as_given() -> None:
    p = np.array([[0.25, 0.25, 0.5 + 8e-7]])
    scored = safecal.categorical([2], p).score()
    assert scored.entropy is not None
    given = float(-(p * np.log(p)).sum())
    normalised = float(stats.entropy(p[0]))
    assert scored.entropy[0] == pytest.approx(given, rel=1e-15)
    assert abs(given - normalised) > 1e-8


@pytest.mark.parametrize("d", [1, 2, 6])
def test_scipy_multivariate_normal_agrees(d: int) -> None:
    rng = np.random.default_rng(d)
    a = rng.normal(size=(d, d + 2))
    cov, mean = a @ a.T, rng.normal(size=d)
    x = rng.normal(size=(30, d))
    scored = safecal.gaussian(x, np.broadcast_to(mean, x.shape), cov=cov).score()
    theirs = stats.multivariate_normal(mean, cov)
    assert scored.surprisal == pytest.approx(np.atleast_1d(-theirs.logpdf(x)), rel=1e-11)
    assert scored.entropy == pytest.approx(np.full(30, theirs.entropy()), rel=1e-12, abs=1e-12)


def test_scipy_norm_agrees() -> None:
    rng = np.random.default_rng(0)
    x, mean, std = rng.normal(size=40), rng.normal(size=40), rng.uniform(0.1, 5.0, 40)
    scored = safecal.gaussian(x, mean, std=std).score()
    assert scored.surprisal == pytest.approx(-stats.norm(mean, std).logpdf(x), rel=1e-12)
    assert scored.entropy == pytest.approx(stats.norm(mean, std).entropy(), rel=1e-12, abs=1e-13)
