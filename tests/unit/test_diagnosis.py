"""What is wrong with a model: planted faults get their own name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import safecal
from safecal.judge.diagnosis import CAUSES, Diagnosis

Draw = Callable[[np.random.Generator, int], safecal.Evaluation]


def _two(rng: np.random.Generator, n: int, truth: Callable[[Any], Any], said: Callable[[Any], Any], **more: Any) -> Any:
    z = rng.normal(0.0, 2.0, n)
    return safecal.evaluate(rng.random(n) < special.expit(truth(z)), logits=said(z), **more)


def _mixture(rng: np.random.Generator, n: int) -> safecal.Evaluation:
    scale = np.where(rng.random(n) < 0.3, 2.0, 0.45)
    return _two(rng, n, lambda z: z, lambda z: scale * z)


def _group(rng: np.random.Generator, n: int) -> safecal.Evaluation:
    site = rng.integers(0, 6, n)
    return _two(rng, n, lambda z: np.where(site == 2, z / 2.4, z), lambda z: z, by={"site": site})


def _wrong_labels(rng: np.random.Generator, n: int) -> safecal.Evaluation:
    z = rng.normal(0.0, 4.0, n)
    y = rng.random(n) < special.expit(z)
    return safecal.evaluate(np.where(rng.random(n) < 0.05, rng.random(n) < 0.5, y), logits=z)


def _rounded(rng: np.random.Generator, n: int) -> safecal.Evaluation:
    p = special.expit(rng.normal(0.0, 4.0, n))
    return safecal.evaluate(rng.random(n) < p, np.round(p, 2))


def _classes(rng: np.random.Generator, n: int, scale: float = 1.0, bias: float = 0.0) -> safecal.Evaluation:
    z = rng.normal(0.0, 2.0, (n, 10))
    more = np.zeros(10)
    more[[3, 5]] = bias, -bias
    return safecal.evaluate((z + more + rng.gumbel(size=z.shape)).argmax(axis=1), logits=scale * z)


def _mislabelled_classes(rng: np.random.Generator, n: int) -> safecal.Evaluation:
    z = rng.normal(0.0, 4.0, (n, 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return safecal.evaluate(np.where(rng.random(n) < 0.04, rng.integers(0, 10, n), y), logits=z)


def _states(
    rng: np.random.Generator, n: int, scale: float = 1.0, wild: float = 0.0, bias: float = 0.0
) -> safecal.Evaluation:
    std = np.exp(rng.normal(0.0, 0.5, n))
    error = bias + rng.normal(0.0, 1.0, n) * np.where(rng.random(n) < wild, 8.0, scale)
    return safecal.gaussian(error * std, np.zeros(n), std=std).evaluate()


FAULTS: dict[str, tuple[Draw, str]] = {
    "logits 1.8 times too large": (partial(_two, truth=lambda z: z, said=lambda z: 1.8 * z), "too sharp"),
    "logits half as large": (partial(_two, truth=lambda z: 2.0 * z, said=lambda z: z), "too vague"),
    "a shift of 0.9": (partial(_two, truth=lambda z: z + 0.9, said=lambda z: z), "shifted"),
    "a shift and a slope": (partial(_two, truth=lambda z: 1.3 + 0.8 * z, said=lambda z: z), "shifted"),
    "sharp and vague rows": (_mixture, "only in places"),
    "wrong above two": (partial(_two, truth=lambda z: z - 1.5 * (z > 2.0), said=lambda z: z), "only in places"),
    "one group": (_group, "only a group"),
    "wrong labels": (_wrong_labels, "a few confident mistakes"),
    "two decimals": (_rounded, "rounding"),
    "ten classes, 1.7 times too large": (partial(_classes, scale=1.7), "too sharp"),
    "ten classes, two of them shifted": (partial(_classes, bias=1.5), "shifted"),
    "ten classes, wrong labels": (_mislabelled_classes, "a few confident mistakes"),
    "states, too narrow": (partial(_states, scale=1.5), "too sharp"),
    "states, off to one side": (partial(_states, bias=0.7), "shifted"),
    "states, some far off": (partial(_states, wild=0.01), "a few confident mistakes"),
}


def _named(draw: Draw, n: int, seed: int) -> str:
    result = draw(np.random.default_rng([n, seed]), n)
    diagnosis = result.verdict.diagnosis
    return result.verdict.decision if diagnosis is None else diagnosis.cause


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_gets_its_name(fault: str) -> None:
    draw, cause = FAULTS[fault]
    assert _named(draw, 10_000, 0) == cause


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_gets_its_name_nine_times_of_ten(fault: str) -> None:
    # A model may be safe all the same, with its fault: then nothing is named.
    draw, cause = FAULTS[fault]
    names = [name for seed in range(1, 41) if (name := _named(draw, 10_000, seed)) != "SAFE"]
    assert len(names) >= 10
    assert sum(name == cause for name in names) >= 0.9 * len(names)


@pytest.mark.parametrize("draw", [_classes, _states, partial(_two, truth=lambda z: z, said=lambda z: z)])
def test_a_calibrated_model_has_no_fault(draw: Draw) -> None:
    for seed in range(5):
        assert draw(np.random.default_rng(seed), 2000).verdict.diagnosis is None


def test_the_cause_stands_in_the_reason_and_the_remedy_in_the_text() -> None:
    result = FAULTS["a shift and a slope"][0](np.random.default_rng(0), 10_000)
    verdict = result.verdict
    assert verdict.diagnosis is not None
    assert "Cause: shifted: the event happens more often than it says" in verdict.reason
    assert "times too large" not in verdict.reason
    assert (
        "`safecal.recalibrate(y_true, y_prob)` fits a shift and a slope; judge it by rows" in verdict.diagnosis.remedy
    )
    said = " ".join(repr(result).split())
    assert "What to do: A temperature does not correct a shift." in said
    assert "What to do: A temperature does not correct a shift." in result._repr_html_()


def test_a_shift_is_not_called_a_temperature_in_the_report(tmp_path: Path) -> None:
    result = FAULTS["a shift and a slope"][0](np.random.default_rng(0), 10_000)
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Correct the shift." in page
    assert "Recalibrate it." not in page


def test_a_diagnosis_is_written_and_read() -> None:
    verdict = FAULTS["wrong labels"][0](np.random.default_rng(0), 10_000).judge(threshold=1e-3)
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.cause in CAUSES
    assert Diagnosis.from_dict(verdict.diagnosis.to_dict()) == verdict.diagnosis
    assert safecal.Verdict.from_dict(verdict.to_dict()) == verdict


def test_real_models(shared_data: Path) -> None:
    pl = pytest.importorskip("polars")
    tweets = pl.read_csv(shared_data / "toxicity" / "bilstm_tweets.csv")
    diagnosis = safecal.evaluate(tweets["y"].to_numpy(), logits=tweets["logit"].to_numpy()).verdict.diagnosis
    assert diagnosis is not None
    assert diagnosis.cause == "shifted"
    for name in ("wideresnet-16-4-cifar-10", "densenet-bc-100-cifar-100"):
        with np.load(shared_data / "cifar" / f"{name}.npz") as file:
            y, p = file["ground_truth"].ravel(), file["predictions"]
        diagnosis = safecal.evaluate(y, p, clip=1e-9).verdict.diagnosis
        assert diagnosis is not None
        assert diagnosis.cause == "too sharp"
    games = pl.read_csv(shared_data / "baseball" / "mlb_games.csv", infer_schema_length=None)
    games = games.filter(pl.col("prob1_outcome") != 0.5)
    assert safecal.evaluate(games["prob1_outcome"].to_numpy(), games["prob1"].to_numpy()).verdict.diagnosis is None


FAR = [
    pytest.param([-348.0, 973.0, 1000.0, 1012.0], [0, 1, 0, 1], {}, id="far"),
    pytest.param([1e200, -1e200, 0.5, 1e-300], [0, 1, 1, 0], {"cluster": [0, 0, 1, 2]}, id="farther, in clusters"),
    pytest.param([-642.0] * 6, [0, 1, 0, 0, 0, 1], {"cluster": [0, 0, 1, 1, 2, 2]}, id="all alike, in clusters"),
    pytest.param([2.3] * 6, [0, 1, 0, 1, 1, 1], {"sample_weight": [1, 2, 3, 1, 1, 0]}, id="all alike, weighted"),
    pytest.param([-116.0] * 5, [1, 1, 0, 1, 1], {"cluster": [0, 1, 2, 3, 4]}, id="no mistake announced"),
]


@pytest.mark.parametrize(("logits", "y", "options"), FAR)
def test_log_odds_beyond_every_reason_are_judged_without_a_word_of_warning(
    logits: list[float], y: list[int], options: dict[str, Any]
) -> None:
    result = safecal.evaluate(y, logits=logits, **options)
    assert result.verdict.decision in ("UNSAFE", "UNDETERMINED")
    assert "nan" not in str(result.verdict)
    assert "nan" not in repr(result)
    assert safecal.Evaluation.from_dict(result.to_dict()).verdict == result.verdict
    if "cluster" not in options:
        assert safecal.rows_needed(result).n == len(y)


def test_many_classes_so_sharp_that_nothing_is_left_of_the_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        z = rng.normal(0, 300, (3, 4))
        assert safecal.evaluate(rng.integers(0, 4, 3), logits=z, labels=[0, 1, 2, 3]).n == 3


def test_predictions_that_are_all_alike_are_shifted_by_what_is_missing() -> None:
    happened = np.arange(3000) < 51
    diagnosis = safecal.evaluate(happened, np.full(3000, 0.001)).verdict.diagnosis
    assert diagnosis is not None
    assert diagnosis.cause == "shifted"
    assert "more often than it says, 1.7 % where 0.1 % is predicted: a shift of +2.8 in log-odds" in diagnosis.evidence


@pytest.mark.parametrize(("outcome", "always"), [(1, "always"), (0, "never")])
@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_where_every_outcome_is_the_same_that_is_said(outcome: int, always: str, spread: float) -> None:
    p = 0.7 + spread * (np.arange(500) % 5 - 2) / 4
    diagnosis = safecal.evaluate(np.full(500, outcome), p).verdict.diagnosis
    assert diagnosis is not None
    assert (diagnosis.cause, diagnosis.evidence) == (
        "shifted",
        f"the event {always} happened, where 70 % is predicted.",
    )
    assert "all of them are the same" in diagnosis.remedy
    assert safecal.evaluate(np.ones(20), np.full(20, 0.99)).verdict.diagnosis is None


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_that_were_passed_as_probabilities_are_called_labels(classes: int, rng: np.random.Generator) -> None:
    y = rng.integers(0, classes, 300)
    predicted = np.where(rng.random(300) < 0.9, y, (y + 1) % classes)
    wrong, right = (
        safecal.evaluate(y, labels.astype(float) if classes == 2 else np.eye(classes)[labels]).verdict
        for labels in (predicted, y)
    )
    assert wrong.decision == "UNSAFE"
    assert "labels" in wrong.diagnosis.evidence
    assert right.decision == "UNDETERMINED"
    assert right.reason.startswith("all 300 predictions are exactly 0 or 1: they look like labels")
    assert "`predict_proba`" in right.reason
    assert "`predict_proba`" in wrong.diagnosis.remedy


def test_rounded_probabilities_are_told_the_clip_that_their_decimals_mean() -> None:
    y, p = [0, 1, 1, 0, 1, 0, 1], np.array([0.12, 0.7, 0.9, 0.8, 0.6, 0.0, 0.0])
    remedy = safecal.evaluate(y, p).verdict.diagnosis.remedy
    assert remedy.endswith("or else state the smallest probability you mean: `clip=5e-3`.")
    coarse = safecal.evaluate(y, p.round(1)).verdict.diagnosis.remedy  # a clip of 0.05 would judge another model
    assert coarse == "Pass `logits=`, or probabilities with all their digits."


@pytest.mark.parametrize("clusters", [None, 100])
def test_a_bias_within_the_stated_spread_is_named_beside_safe(clusters: int | None, rng: np.random.Generator) -> None:
    cluster = None if clusters is None else np.arange(3000) % clusters
    named = "But its estimates are off to one side: on axis 1 the truth lies -0.9"
    for bias, said in ((-0.9, True), (-0.3, False)):
        errors = rng.normal(size=(3000, 2))
        errors[:, 1] = bias + np.sqrt(1.0 - bias**2) * errors[:, 1]
        verdict = safecal.gaussian(errors, np.zeros((3000, 2)), std=np.ones(2)).evaluate(cluster=cluster).verdict
        assert verdict.decision == "SAFE"
        assert (named in verdict.reason) == said
        assert ("one side" in verdict.reason) == said


def test_few_errors_on_one_side_are_no_bias(rng: np.random.Generator) -> None:
    errors = np.abs(rng.normal(size=8))
    assert "one side" not in safecal.gaussian(errors, np.zeros(8), std=1.0).evaluate().verdict.reason
