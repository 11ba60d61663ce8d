"""K outcomes against hundreds of digits.

Surprisal, entropy and excess err by at most ``1e-14 (surprisal + entropy)``. Central moments from logits err by at most
``1e-12 sum p |z - zbar|^k``. From probabilities each ``log p`` is known to ``1e-14 (|log p| + entropy)``, and a moment
errs by no more than that can change it: nearly flat rows have moments near 0, known to few digits.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import safecal

from . import oracle

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]  # nearly all of it is the reference

TOLERANCE = 1e-14
MOMENT = 1e-12
UNDERFLOW = 1e-300

SIZES = [(2, 8), (3, 6), (10, 3), (100, 1)]
SPREADS = [1e-8, 0.1, 1.0, 5.0, 30.0]


def logits_of(classes: int, rows: int, spread: float) -> np.ndarray:
    return np.random.default_rng([classes, rows, round(spread * 10)]).normal(0.0, spread, (rows, classes))


def softmax(z: np.ndarray) -> np.ndarray:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def outcomes(values: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [values.argmax(axis=1), values.argmin(axis=1), rng.integers(0, values.shape[1], len(values))]


def assert_exact(form: str, values: np.ndarray) -> None:
    from_logits = form == "logits"
    score = oracle.categorical_from_logits if from_logits else oracle.categorical_from_probabilities
    scales = []
    for row in values:
        p = oracle.softmax(row) if from_logits else [oracle.mpf(float(x)) for x in row]
        if from_logits:
            scales.append([MOMENT * oracle.absolute_moment(p, k) for k in (2, 3)])
        else:
            scales.append([oracle.moment_slack(p, k, TOLERANCE) for k in (2, 3)])
    for y in outcomes(values):
        scored = safecal.categorical(y, **{form: values}).score()
        for i, row in enumerate(values):
            exact = score(row, int(y[i]))
            if exact.surprisal == oracle.mpf("inf"):
                assert scored.impossible[i]
            else:
                scale = exact.surprisal + exact.entropy
                for name in ("surprisal", "excess"):
                    assert_within(scored, name, i, exact, TOLERANCE * scale)
            assert_within(scored, "entropy", i, exact, TOLERANCE * exact.entropy)
            assert_within(scored, "varentropy", i, exact, scales[i][0])
            assert_within(scored, "third_cumulant", i, exact, scales[i][1])
            assert_within(scored, "brier", i, exact, MOMENT * exact.brier)


def assert_within(scored: safecal.Scored, name: str, i: int, exact: oracle.Exact, tolerance: float) -> None:
    number, wanted = float(getattr(scored, name)[i]), getattr(exact, name)
    distance = abs(oracle.mpf(number) - wanted)
    assert distance <= tolerance + UNDERFLOW, (name, i, number, float(wanted))


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("classes", "rows"), SIZES)
def test_logits_are_scored_to_14_digits(classes: int, rows: int, spread: float) -> None:
    assert_exact("logits", logits_of(classes, rows, spread))


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("classes", "rows"), SIZES)
def test_probabilities_are_scored_as_given_to_14_digits(classes: int, rows: int, spread: float) -> None:
    assert_exact("y_prob", softmax(logits_of(classes, rows, spread)))


@pytest.mark.proof
@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_a_thousand_classes_are_scored_to_14_digits(form: str) -> None:
    z = np.random.default_rng(1000).normal(0.0, 3.0, (1, 1000))
    assert_exact(form, z if form == "logits" else softmax(z))


@pytest.mark.proof
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_a_thousand_classes_of_any_spread_are_scored_to_14_digits(form: str, spread: float) -> None:
    z = logits_of(1000, 1, spread)
    assert_exact(form, z if form == "logits" else softmax(z))


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("classes", [2, 10, pytest.param(50, marks=pytest.mark.proof)])
def test_float32_values_are_the_numbers_they_stand_for(classes: int, spread: float) -> None:
    z = logits_of(classes, 3, spread).astype(np.float32)
    assert_exact("logits", z)
    p = softmax(z)
    assert p.dtype == np.float32
    assert_exact("y_prob", p)


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_zeros_and_minus_infinity_are_impossible_classes(spread: float) -> None:
    z = logits_of(8, 4, spread)
    z[:, :3] = -math.inf
    assert_exact("logits", z)
    assert_exact("y_prob", softmax(z))


def test_a_row_with_one_possible_class_is_certainty() -> None:
    for predictions in (
        safecal.categorical([1, 0], [[0.0, 1.0, 0.0]] * 2),
        safecal.categorical([1, 0], logits=[[-math.inf, 3.0, -math.inf]] * 2),
    ):
        scored, summary = predictions.score(), predictions.summary()
        assert scored.entropy is not None
        assert scored.excess.tolist() == [0.0, math.inf]
        assert scored.entropy.tolist() == scored.varentropy.tolist() == scored.third_cumulant.tolist() == [0.0, 0.0]
        assert (summary.n_impossible, summary.ecd, summary.ecd_possible) == (1, math.inf, 0.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_gaps_of_hundreds_between_logits_keep_14_digits(classes: int) -> None:
    # The rounding of a gap g is a relative error of exp(-g), and so of every score when the top class happened.
    rng = np.random.default_rng(64)
    top = rng.uniform(-50.0, 50.0, 40)
    others = top[:, None] - rng.uniform(40.0, 640.0, 40)[:, None] - rng.uniform(0.0, 3.0, (40, classes - 1))
    assert_exact("logits", np.column_stack([others, top]))


def test_the_largest_logits_are_rows_like_any_other() -> None:
    z = [[1e300, 0.0, -1e300], [1e160, 0.0, 1.0]]
    right, wrong = safecal.categorical([0, 0], logits=z).score(), safecal.categorical([1, 1], logits=z).score()
    assert right.excess.tolist() == [0.0, 0.0]
    assert wrong.excess.tolist() == [1e300, 1e160]
    for scored in (right, wrong):
        assert scored.varentropy.tolist() == scored.third_cumulant.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("classes", [2, 3, 4, 10, 1000])
def test_equal_logits_have_no_excess_whatever_happened(classes: int) -> None:
    scored = safecal.categorical([0, classes - 1], logits=np.full((2, classes), 3.7)).score()
    assert scored.excess.tolist() == scored.varentropy.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("classes", [2, 3, 4, 10, 1000])
def test_equal_probabilities_have_no_excess_but_for_rounding(classes: int) -> None:
    scored = safecal.categorical([0, classes - 1], np.full((2, classes), 1.0 / classes)).score()
    assert np.abs(scored.excess).max() <= (0.0 if classes in (2, 4) else TOLERANCE * 2.0 * math.log(classes))


def test_a_shift_of_all_logits_by_a_power_of_two_changes_nothing() -> None:
    z = np.round(logits_of(10, 5, 3.0) * 2**20) / 2**20
    y = z.argmin(axis=1)
    a, b = safecal.categorical(y, logits=z).score(), safecal.categorical(y, logits=z + 1024.0).score()
    assert a.excess.tolist() == b.excess.tolist()
