"""K outcomes."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import safecal
from safecal.errors import UnavailableError


def _exact(log_weights: list[mpf], y: int) -> dict[str, float]:
    total = mp.log(mp.fsum(mp.exp(z) for z in log_weights))
    s = [total - z for z in log_weights]
    p = [mp.exp(-v) for v in s]
    h = mp.fsum(a * b for a, b in zip(p, s, strict=True))
    central = [mp.fsum(a * (b - h) ** k for a, b in zip(p, s, strict=True)) for k in (2, 3)]
    return {
        "surprisal": float(s[y]),
        "entropy": float(h),
        "excess": float(s[y] - h),
        "varentropy": float(central[0]),
        "third_cumulant": float(central[1]),
        "brier": float(mp.fsum((a - (k == y)) ** 2 for k, a in enumerate(p))),
        "confidence": float(max(p)),
    }


LOGITS = {
    "mild": [0.1, -0.4, 1.2, 0.3],
    "sharp": [0.0, -30.0, -40.0, -35.0],
    "very sharp": [0.0, -300.0, -400.0, -500.0],
    "large": [1e5, 1e5 + 1, 1e5 - 2, 1e5],
    "two on top": [5.0, 5.0, -50.0, -60.0],
}


@pytest.mark.parametrize("name", LOGITS)
@pytest.mark.parametrize("y", range(4))
def test_columns_from_logits_keep_their_digits(name: str, y: int) -> None:
    scored = safecal.categorical([y], logits=[LOGITS[name]]).score()
    with mp.workdps(400):
        wanted = _exact([mpf(z) for z in LOGITS[name]], y)
    for column, value in wanted.items():
        # An excess or a third cumulant near 0 is a difference: it is held to the size of its terms.
        size = max(1.0, abs(wanted["surprisal"])) if column in ("excess", "third_cumulant") else abs(value)
        assert abs(getattr(scored, column)[0] - value) <= 4e-14 * size, column


def test_probabilities_and_logits_agree(rng: np.random.Generator) -> None:
    z = rng.normal(0, 3, (300, 6))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = rng.integers(0, 6, 300)
    a, b = safecal.categorical(y, p).score(), safecal.categorical(y, logits=z).score()
    for name in ("excess", "varentropy", "third_cumulant", "surprisal", "entropy", "confidence", "brier"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-11, atol=1e-13, err_msg=name)


def test_a_constant_added_to_the_logits_of_a_row_changes_nothing(rng: np.random.Generator) -> None:
    z = rng.integers(-5, 5, (50, 4)).astype(float)
    y = rng.integers(0, 4, 50)
    shifted = z + rng.integers(-1000, 1000, (50, 1))
    a, b = safecal.categorical(y, logits=z).score(), safecal.categorical(y, logits=shifted).score()
    for name in ("excess", "varentropy", "entropy", "surprisal", "brier"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


def test_classes_of_probability_zero() -> None:
    a = safecal.categorical([0, 1, 2], [[0.5, 0.5, 0.0]] * 3)
    b = safecal.categorical([0, 1, 2], logits=[[0.0, 0.0, -math.inf]] * 3)
    for predictions in (a, b):
        scored = predictions.score()
        assert scored.impossible.tolist() == [False, False, True]
        assert scored.excess.tolist() == [0.0, 0.0, math.inf]
        assert scored.entropy == pytest.approx(math.log(2))
        assert scored.brier == pytest.approx([0.5, 0.5, 1.5])
        assert predictions.summary().ecd == math.inf


def test_ties_go_to_the_first_column() -> None:
    assert safecal.categorical([0, 1], [[0.4, 0.4, 0.2]] * 2).score().correct.tolist() == [True, False]


def test_two_classes_have_the_brier_score_of_two_classes() -> None:
    assert safecal.categorical([1, 0], [[0.2, 0.8], [0.6, 0.4]]).summary().brier == pytest.approx(0.1)


def test_clipping_moves_and_normalises() -> None:
    a = safecal.categorical([1], [[1.0, 0.0, 0.0]], clip=0.01).score()
    b = safecal.categorical([1], np.array([[0.99, 0.01, 0.01]]) / 1.01).score()
    assert a.excess == pytest.approx(b.excess, rel=1e-14)
    assert a.entropy == pytest.approx(b.entropy, rel=1e-14)


@pytest.mark.parametrize("beta", [-2.0, 0.0, 0.5, 1.0, 3.0])
def test_the_log_partition_by_its_definition(beta: float) -> None:
    p = np.array([[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.98, 0.01, 0.01]])
    a = safecal.categorical([0] * 3, p).log_partition(beta)
    np.testing.assert_allclose(a, np.log((p**beta).sum(axis=1)), rtol=1e-12, atol=1e-14)


def test_the_log_partition_where_a_probability_is_zero() -> None:
    predictions = safecal.categorical([0, 0], [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert predictions.log_partition(2.0) == pytest.approx([math.log(0.5), 0.0])
    assert predictions.log_partition(0.0) == pytest.approx([math.log(2.0), 0.0])  # the size of the support
    assert predictions.log_partition(0.0, deriv=1) == pytest.approx([-math.log(2.0), 0.0])
    with pytest.raises(UnavailableError, match="where a probability is 0"):
        predictions.log_partition(-0.5)


def test_rows_that_sum_to_one_up_to_float32_are_accepted_and_their_partition_is_normalised() -> None:
    p = np.full((5, 3), np.float32(1 / 3))
    predictions = safecal.categorical([0, 1, 2, 0, 1], p)
    assert np.abs(predictions.log_partition(1.0)).max() <= 1e-15
    assert predictions.score().entropy == pytest.approx(math.log(3), abs=1e-7)


def test_many_classes_are_scored_a_slice_at_a_time(rng: np.random.Generator) -> None:
    z = rng.normal(0, 1, (700, 1000))
    y = rng.integers(0, 1000, 700)
    scored = safecal.categorical(y, logits=z).score()
    parts = [safecal.categorical(y[i : i + 1], logits=z[i : i + 1]).score().excess[0] for i in (0, 261, 262, 263, 699)]
    assert scored.excess[[0, 261, 262, 263, 699]].tolist() == parts
