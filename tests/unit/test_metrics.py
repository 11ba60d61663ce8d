"""Metrics as functions: each agrees with the evaluation, and with the textbook."""

import inspect
import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

import safecal

RNG = np.random.default_rng(4)
P = RNG.uniform(0.01, 0.99, 300)
Y = (RNG.random(300) < P).astype(int)
W = RNG.uniform(0.1, 2.0, 300)
Z = RNG.normal(0, 2, (300, 5))
Q = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
C = RNG.integers(0, 5, 300)


@pytest.mark.parametrize("name", ["ecd", "nll", "brier", "ece", "esce"])
def test_metrics_agree_with_the_evaluation(name: str) -> None:
    metric = getattr(safecal, name)
    assert metric(Y, P, sample_weight=W) == pytest.approx(
        getattr(safecal.evaluate(Y, P, sample_weight=W), name), rel=1e-12
    )
    assert metric(C, Q) == pytest.approx(getattr(safecal.evaluate(C, Q), name), rel=1e-12)
    assert metric(C, logits=Z) == pytest.approx(metric(C, Q), rel=1e-12)


def test_proper_scores_agree_with_scikit_learn() -> None:
    assert safecal.nll(Y, P, sample_weight=W) == pytest.approx(log_loss(Y, P, sample_weight=W), rel=1e-12)
    assert safecal.nll(C, Q) == pytest.approx(log_loss(C, Q), rel=1e-12)
    assert safecal.brier(Y, P, sample_weight=W) == pytest.approx(brier_score_loss(Y, P, sample_weight=W), rel=1e-12)
    onehot = np.eye(5)[C]
    assert safecal.brier(C, Q) == pytest.approx(((Q - onehot) ** 2).sum(axis=1).mean(), rel=1e-12)


def test_ecd_is_the_mean_of_surprisal_minus_entropy() -> None:
    surprisal = -np.log(np.where(Y == 1, P, 1 - P))
    entropy = -(P * np.log(P) + (1 - P) * np.log(1 - P))
    assert safecal.ecd(Y, P) == pytest.approx((surprisal - entropy).mean(), rel=1e-10)


def test_ece_by_hand_and_its_sides() -> None:
    bins = np.minimum((P * 10).astype(int), 9)
    gaps = [(bins == k).mean() * abs(Y[bins == k].mean() - P[bins == k].mean()) for k in range(10) if (bins == k).any()]
    assert safecal.ece(Y, P) == pytest.approx(sum(gaps), rel=1e-12)
    parts = [safecal.ece(Y, P, side=side) for side in ("overconfident", "underconfident")]
    assert sum(parts) == pytest.approx(safecal.ece(Y, P), rel=1e-12)


def test_nees_in_each_form_of_the_spread(rng: np.random.Generator) -> None:
    x, m = rng.normal(0, 1, (30, 3)), rng.normal(0, 1, (30, 3))
    factor = np.tril(rng.normal(0, 1, (3, 3))) + 3 * np.eye(3)
    cov = factor @ factor.T
    wanted = np.einsum("ni,ij,nj->n", x - m, np.linalg.inv(cov), x - m)
    w = rng.uniform(0.1, 1, 30)
    for spread in ({"cov": cov}, {"chol": factor}, {"precision": np.linalg.inv(cov)}):
        assert safecal.nees(x, m, **spread) == pytest.approx(wanted.mean(), rel=1e-9)
        assert safecal.nees(x, m, **spread, sample_weight=w) == pytest.approx(np.average(wanted, weights=w), rel=1e-9)
    diagonal = np.diag(cov)
    assert safecal.nees(x, m, var=diagonal) == pytest.approx(safecal.nees(x, m, cov=np.diag(diagonal)), rel=1e-12)
    assert safecal.nees(x, m, std=np.sqrt(diagonal)) == pytest.approx(safecal.nees(x, m, var=diagonal), rel=1e-12)
    assert safecal.gaussian(x, m, cov=cov).ecd == pytest.approx((wanted.mean() - 3) / 2, rel=1e-9)


def test_impossible_outcomes_are_infinite_unless_clipped() -> None:
    assert safecal.ecd([1], [0.0]) == math.inf
    assert safecal.nll([1], [0.0]) == math.inf
    assert safecal.brier([1], [0.0]) == 1.0
    assert safecal.nll([1], [0.0], clip=0.01) == pytest.approx(-math.log(0.01))
    assert safecal.ecd([1], [0.0], clip=0.01) == pytest.approx(safecal.ecd([1], [0.01]))


@pytest.mark.parametrize("name", ["ecd", "nll", "brier", "ece", "esce", "nees"])
def test_metrics_return_a_plain_float_and_take_options_by_name(name: str) -> None:
    metric = getattr(safecal, name)
    value = metric([0.0, 1.0], [0.0, 0.5], std=1.0) if name == "nees" else metric(Y, P)
    assert type(value) is float
    parameters = list(inspect.signature(metric).parameters.values())
    assert [p.name for p in parameters[:2]] in (["y_true", "y_prob"], ["x_true", "mean"])
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[2:])
