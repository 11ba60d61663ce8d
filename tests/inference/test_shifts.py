"""A shift for each class, from sums alone, against the rows themselves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import safecal
from safecal._sums import Tally
from safecal.inference.shifts import ClassShifts, frequent_classes


def _drawn(n: int, bias: Any, spread: float = 2.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, spread, (n, len(bias)))
    chance = special.softmax(z + np.array(bias), axis=1)
    return z, (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(max=len(bias) - 1)


def _shifts(y: Any, z: Any, **options: Any) -> ClassShifts:
    shifts = ClassShifts.of(Tally.of(safecal.categorical(y, logits=z), **options))
    assert shifts is not None
    return shifts


def _score(z: Any, y: Any) -> tuple[Any, Any]:
    """Return the score of biases and inverse temperature at calibration, and its covariance, row by row."""
    p = special.softmax(z, axis=1)
    log_p = special.log_softmax(z, axis=1)
    mean = (p * log_p).sum(axis=1)
    score = np.append(np.bincount(y, minlength=z.shape[1]) - p.sum(axis=0), (log_p[np.arange(len(y)), y] - mean).sum())
    covariance = np.zeros((len(score), len(score)))
    for row, logs in zip(p, log_p, strict=True):
        columns = np.column_stack([np.eye(len(row)), logs])
        covariance += columns.T @ (np.diag(row) - np.outer(row, row)) @ columns
    return score, covariance


def _fitted(z: Any, y: Any) -> Any:
    """Fit a bias for each class to the rows, by Newton's method."""
    b = np.zeros(z.shape[1])
    seen = np.bincount(y, minlength=len(b))
    for _ in range(50):
        p = special.softmax(z + b, axis=1)
        b = b + np.linalg.pinv(np.diag(p.sum(axis=0)) - p.T @ p, rcond=1e-10) @ (seen - p.sum(axis=0))
    said = special.softmax(z, axis=1).sum(axis=0)
    return b - said @ b / said.sum()


@pytest.mark.parametrize("bias", [(0.0, 0.0, 0.0), (0.3, 0.0, -0.2, 0.0)])
def test_score_tests_are_those_of_the_rows(bias: Any) -> None:
    z, y = _drawn(800, bias)
    score, covariance = _score(z, y)
    k = len(bias)
    wanted = [
        stats.chi2.sf(score[:k] @ np.linalg.pinv(covariance[:k, :k], rcond=1e-9) @ score[:k], k - 1),
        stats.chi2.sf(score[k] ** 2 / covariance[k, k], 1),
        stats.chi2.sf(score @ np.linalg.pinv(covariance, rcond=1e-9) @ score, k),
    ]
    shifts = _shifts(y, z)
    assert [shifts.p_shift, shifts.p_slope, shifts.p_both] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("bias", [(0.2, 0.0, -0.1), (0.8, 0.0, -0.4, 0.0), (-1.0, 1.0, 0.0, 0.0, 0.0)])
def test_shifts_are_near_those_of_a_fit_to_the_rows(bias: Any) -> None:
    z, y = _drawn(5000, bias)
    values = [each.shift.value for each in _shifts(y, z).classes]
    assert values == pytest.approx(_fitted(z, y), abs=0.06 * max(map(abs, bias)))


def test_shifts_of_predictions_that_are_all_alike_are_the_logarithms_of_the_ratios() -> None:
    z = np.tile([0.5, 0.0, -1.0], (4000, 1))
    y = np.repeat([0, 1, 2], [1000, 2000, 1000])
    fitted = _shifts(y, z)
    ratios = np.log([each.ratio.value for each in fitted.classes])
    shifts = np.array([each.shift.value for each in fitted.classes])
    assert np.diff(shifts) == pytest.approx(np.diff(ratios), abs=2e-3)  # the half row that is added to each count


def test_counts_and_ratios_are_exact() -> None:
    z, y = _drawn(500, (0.5, 0.0, 0.0))
    first = _shifts(y, z).classes[0]
    said = special.softmax(z, axis=1)[:, 0].sum()
    seen = int((y == 0).sum())
    assert (first.name, first.observed) == ("0", seen)
    assert first.predicted == pytest.approx(said)
    exact = stats.binomtest(seen, 500).proportion_ci(0.95, "exact")
    assert (first.ratio.low, first.ratio.high) == pytest.approx((500 * exact.low / said, 500 * exact.high / said))


def test_two_columns_have_the_shift_of_two_classes() -> None:
    z, y = _drawn(3000, (0.0, 0.6))
    zero, one = _shifts(y, z).classes
    cox = safecal.evaluate(y, logits=z[:, 1] - z[:, 0]).cox
    assert cox is not None
    assert one.shift.value - zero.shift.value == pytest.approx(cox.in_the_large.value, abs=0.01)
    assert _shifts(y, z).p_both == pytest.approx(cox.p_both, rel=1e-5)


@pytest.mark.parametrize("logits", [True, False])
def test_sums_do_not_depend_on_the_form_nor_on_the_parts(logits: bool) -> None:
    z, y = _drawn(900, (0.5, 0.0, 0.0, -0.5))
    values = {"logits": z + 3e5 * logits} if logits else {"y_prob": special.softmax(z, axis=1)}
    whole = safecal.categorical(y, logits=z).tally().class_sums
    parts = [
        safecal.categorical(y[rows], **{name: x[rows] for name, x in values.items()}).tally()
        for rows in (slice(0, 300), slice(300, None))
    ]
    merged = sum(parts).class_sums
    assert whole is not None
    assert merged is not None
    np.testing.assert_allclose(merged.sums, whole.sums, atol=1e-6)


def test_impossible_and_far_classes_do_not_disturb() -> None:
    z, y = _drawn(600, (0.0, 0.0, 0.0))
    y = np.minimum(y, 1)
    z[:, 2] = -np.inf
    shifts = _shifts(y, z)
    two = _shifts(y, z[:, :2])
    assert (shifts.p_shift, shifts.p_both) == pytest.approx((two.p_shift, two.p_both), rel=1e-6)
    assert shifts.classes[2].ratio.method == "none: never predicted"
    assert shifts.classes[2].shift.method == "none: predicted too rarely"
    far = _shifts(y, np.where(np.isinf(z), -1e300, z))
    assert far.p_both == pytest.approx(shifts.p_both)
    y[0] = 2
    assert _shifts(y, z).classes[2].ratio.value == np.inf


def test_rare_classes_are_taken_together() -> None:
    z, y = _drawn(400, (0.0,) * 4)
    z[:, 2:] -= 7.0  # a fraction of a row each
    y = np.random.default_rng(1).integers(0, 2, 400)
    shifts = _shifts(y, z)
    assert [np.isnan(each.shift.value) for each in shifts.classes] == [False, True, True, True]
    assert 0.0 <= shifts.p_both <= 1.0


def test_clusters_have_no_interval_and_no_test() -> None:
    z, y = _drawn(600, (0.5, 0.0, 0.0))
    shifts = _shifts(y, z, cluster=np.arange(600) % 20)
    assert shifts.classes[0].shift.value == _shifts(y, z).classes[0].shift.value
    assert shifts.classes[0].shift.method == shifts.classes[0].ratio.method == "none: rows depend on each other"
    assert np.isnan(shifts.p_both)
    assert shifts.farthest is None


def test_a_weight_of_one_changes_nothing() -> None:
    z, y = _drawn(600, (0.5, 0.0, 0.0))
    plain, weighted = _shifts(y, z), _shifts(y, z, sample_weight=np.ones(600))
    assert [weighted.p_shift, weighted.p_slope, weighted.p_both] == pytest.approx(
        [plain.p_shift, plain.p_slope, plain.p_both]
    )
    for a, b in zip(plain.classes, weighted.classes, strict=True):
        assert (a.shift.low, a.ratio.high) == pytest.approx((b.shift.low, b.ratio.high))


def test_they_are_written_and_read_and_early_documents_have_none() -> None:
    z, y = _drawn(600, (0.5, 0.0, 0.0))
    result = safecal.evaluate(y, logits=z)
    shifts = result.class_shifts
    assert shifts is not None
    assert ClassShifts.from_dict(json.loads(json.dumps(shifts.to_dict()))) == shifts
    document = json.loads(json.dumps(result.to_dict()))
    assert safecal.Evaluation.from_dict(document).class_shifts == shifts
    del document["tally"]["class_sums"], document["class_shifts"]
    assert safecal.Evaluation.from_dict(document).class_shifts is None
    document["tally"]["class_sums"] = {"kind": "safecal.class_sums", "version": 1, "sums": [[[1.0]]]}
    with pytest.raises(safecal.errors.DocumentError, match=r"class_sums\.sums"):
        safecal.Evaluation.from_dict(document)


def test_many_classes_and_other_families_have_none() -> None:
    rng = np.random.default_rng(0)
    many = safecal.evaluate(rng.integers(0, 33, 100), logits=rng.normal(size=(100, 33)))
    assert many.class_shifts is None
    assert safecal.evaluate([0, 1], [0.4, 0.6]).class_shifts is None


def test_the_diagnosis_names_the_class_and_its_ratio() -> None:
    z, y = _drawn(4000, (0.0, 1.4, 0.0, 0.0), spread=1.0)
    result = safecal.evaluate(y, logits=z)
    assert result.class_shifts is not None
    worst = result.class_shifts.farthest
    assert worst is not None
    assert worst.name == "1"
    assert result.verdict.diagnosis is not None
    assert f"class 1 happens {worst.ratio.value:.2g} times as often as predicted" in result.verdict.diagnosis.evidence
    assert "times as often as predicted: class 1 (" in repr(result)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "bias", "least"),
    [(200, (0.0,) * 3, 0.93), (300, (0.0,) * 10, 0.93), (2000, (0.8, 0.0, 0.0, -0.4), 0.92), (500, (-2.0, 0.0), 0.88)],
)
def test_intervals_hold_the_truth_and_tests_their_size(n: int, bias: Any, least: float, weighted: bool) -> None:
    repetitions, held, rejected = 400, np.zeros((2, len(bias))), np.zeros(3)
    for seed in range(repetitions):
        z, y = _drawn(n, bias, 1.0, seed)
        w = np.random.default_rng(seed).gamma(2.0, size=n) if weighted else np.ones(n)
        shifts = _shifts(y, z, sample_weight=w) if weighted else _shifts(y, z)
        said = w @ special.softmax(z, axis=1)
        shift = np.array(bias) - said @ np.array(bias) / said.sum()
        ratio = w @ special.softmax(z + np.array(bias), axis=1) / said
        held[0] += [c.shift.low <= t <= c.shift.high for c, t in zip(shifts.classes, shift, strict=True)]
        held[1] += [c.ratio.low <= t <= c.ratio.high for c, t in zip(shifts.classes, ratio, strict=True)]
        rejected += np.array([shifts.p_shift, shifts.p_slope, shifts.p_both]) < 0.05
    assert (held[0] / repetitions).min() >= least - 0.02
    assert (held[1] / repetitions).min() >= 0.95 - 0.022
    if not any(bias):
        assert (rejected / repetitions).max() <= 0.05 + 0.033


def _rare(n: int, said: float, happens: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return probabilities of three classes, the last of which is rare, and outcomes."""
    a = special.expit(rng.normal(0.0, 3.0, n))
    p = np.column_stack([a * (1.0 - said), (1.0 - a) * (1.0 - said), np.full(n, said)])
    return p, np.where(rng.random(n) < happens, 2, np.where(rng.random(n) < a, 0, 1))


def test_a_rare_class_that_is_common_has_the_chance_that_drawing_gives_it(rng: np.random.Generator) -> None:
    p, y = _rare(10_000, 0.0005, 0.01, rng)
    found = safecal.evaluate(y, p).class_shifts
    assert found is not None
    assert max(found.p_shift, found.p_both) < 1e-60  # 0.05 where classes that are hardly predicted are only pooled
    assert found.farthest == found.classes[2]
    # A slow reference: the counts of outcomes that are drawn from the predictions, and those of the rows.
    p, y = _rare(2000, 0.0005, 0.003, rng)
    found = safecal.evaluate(y, p).class_shifts
    assert found is not None
    seen = int((y == 2).sum())
    drawn = rng.binomial(2000, 0.0005, 200_000)
    assert found.p_shift == pytest.approx(8.0 * (drawn >= seen).mean(), rel=0.5, abs=1e-4)  # 2 classes, sides, tests


@pytest.mark.proof
@pytest.mark.no_cover
def test_chances_of_rare_classes_hold_their_level(rng: np.random.Generator) -> None:
    chances, beyond = [], 0
    for said in (1e-5, 2e-4, 1e-3) * 150:
        p, y = _rare(2000, said, said, rng)
        tally = Tally.of(safecal.categorical(y, y_prob=p))
        shifts = ClassShifts.of(tally)
        assert shifts is not None
        chances.append((shifts.p_shift, shifts.p_both))
        beyond += len(frequent_classes(tally, 3.0, 0.95))
    assert (np.array(chances) < 0.05).mean(axis=0).max() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(chances))
    assert beyond == 0


def test_frequent_classes_are_those_beyond_an_exact_bound(rng: np.random.Generator) -> None:
    p, y = _rare(10_000, 0.0005, 0.01, rng)
    names = ["a", "b", "rare"]
    tally = Tally.of(safecal.categorical(np.array(names)[y], y_prob=p, labels=names))
    ((name, announced, seen, at_least),) = frequent_classes(tally, 9.0, 0.95)
    assert (name, announced, seen) == ("rare", pytest.approx(5.0), (y == 2).sum())
    assert at_least == pytest.approx(stats.gamma.ppf(0.001 / 3, seen) / announced)
    assert not frequent_classes(tally, at_least + 1e-6, 0.95)
    assert not frequent_classes(Tally.of(safecal.bernoulli(y == 2, p[:, 2])), 9.0, 0.95)
