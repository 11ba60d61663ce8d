"""Two outcomes."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import safecal
from safecal.errors import UnavailableError


def _exact(p: float, y: int) -> dict[str, float]:
    with mp.workdps(400):
        p_, q_ = mpf(p), 1 - mpf(p)
        s = [-mp.log(q_), -mp.log(p_)]
        h = p_ * s[1] + q_ * s[0]
        central = [sum(w * (v - h) ** k for w, v in zip((q_, p_), s, strict=True)) for k in (2, 3)]
        return {
            "surprisal": float(s[y]),
            "entropy": float(h),
            "excess": float(s[y] - h),
            "varentropy": float(central[0]),
            "third_cumulant": float(central[1]),
            "brier": float((p_ - y) ** 2),
        }


PROBABILITIES = [5e-324, 1e-310, 1e-300, 1e-17, 1e-9, 0.1, 0.25, 0.4999999, 0.5000001, 0.75, 0.9, 1 - 1e-12, 1 - 2**-53]


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("y", [0, 1])
def test_columns_keep_fourteen_digits_from_the_smallest_probability_to_the_largest(p: float, y: int) -> None:
    scored = safecal.bernoulli([y], [p]).score()
    for name, wanted in _exact(p, y).items():
        assert getattr(scored, name)[0] == pytest.approx(wanted, rel=1e-14, abs=1e-310), name


@pytest.mark.parametrize("logit", [0.0, 1e-12, -0.3, 5.0, -40.0, 700.0, -800.0, 1e6])
def test_logits_never_saturate(logit: float) -> None:
    wrong = safecal.bernoulli([int(logit < 0)], logits=[logit]).score()
    assert wrong.surprisal[0] == pytest.approx(np.logaddexp(0.0, abs(logit)), rel=1e-15)
    assert not wrong.impossible.any()
    right = safecal.bernoulli([int(logit > 0)], logits=[logit]).score()
    assert right.excess[0] <= 0.0


def test_probabilities_and_logits_agree() -> None:
    p = np.linspace(0.01, 0.99, 99)
    a = safecal.bernoulli(np.arange(99) % 2, p).score()
    b = safecal.bernoulli(np.arange(99) % 2, logits=np.log(p) - np.log1p(-p)).score()
    for name in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy", "predicted", "confidence", "brier"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-14, err_msg=name)
    assert (a.correct == b.correct).all()


def test_infinite_logits_are_certain() -> None:
    scored = safecal.bernoulli([1, 0, 1, 0], logits=[math.inf, math.inf, -math.inf, -math.inf]).score()
    assert scored.excess.tolist() == [0.0, math.inf, math.inf, 0.0]
    assert scored.predicted.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert scored.brier.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_one_half_predicts_the_negative_class() -> None:
    scored = safecal.bernoulli([0, 1], [0.5, 0.5]).score()
    assert scored.correct.tolist() == [True, False]
    assert scored.confidence.tolist() == [0.5, 0.5]


def test_swapping_the_classes_changes_nothing_about_confidence() -> None:
    # Dyadic probabilities, so that 1 - p is exact.
    p = np.arange(1, 64) / 64
    y = np.arange(63) % 2
    a, b = safecal.bernoulli(y, p).score(), safecal.bernoulli(1 - y, 1 - p).score()
    for name in ("excess", "varentropy", "third_cumulant", "entropy", "brier", "confidence"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


def test_clipping_moves_the_same_probability_everywhere() -> None:
    a = safecal.bernoulli([1, 0, 1], [0.0, 1.0, 0.5], clip=0.02).score()
    b = safecal.bernoulli([1, 0, 1], [0.02, 0.98, 0.5]).score()
    for name in ("excess", "entropy", "surprisal", "predicted", "brier"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("beta", [-3.0, -0.5, 0.0, 0.3, 1.0, 2.0, 50.0])
def test_the_log_partition_by_its_definition(beta: float) -> None:
    p = np.array([0.01, 0.3, 0.5, 0.99])
    a = safecal.bernoulli([0] * 4, p).log_partition(beta)
    np.testing.assert_allclose(a, np.log(p**beta + (1 - p) ** beta), rtol=1e-12, atol=1e-15)


def test_the_log_partition_at_certainty() -> None:
    sure = safecal.bernoulli([0, 1, 0], [0.0, 1.0, 0.5])
    assert sure.log_partition(2.0).tolist() == [0.0, 0.0, pytest.approx(math.log(0.5))]
    assert sure.log_partition(0.0).tolist() == [0.0, 0.0, pytest.approx(math.log(2.0))]  # the size of the support
    for deriv in (1, 2, 3):
        assert sure.log_partition(1.0, deriv=deriv)[:2].tolist() == [0.0, 0.0]
    with pytest.raises(UnavailableError, match="beta < 0"):
        sure.log_partition(-0.1)
    assert np.isfinite(safecal.bernoulli([0], logits=[900.0]).log_partition(-1.0)).all()
