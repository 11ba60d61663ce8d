"""A class of probability exactly 0: every door counts the same rows as certain, and none calls the model safe."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import safecal
from safecal import Evaluation
from safecal._checks.class_columns import certain_reason, decimals_of
from safecal._checks.classes import clip_for
from safecal._kernels import compiled
from safecal.cli import main
from safecal.engines.batches import Batch, evaluate_batches

RNG = np.random.default_rng(5)
N = 900
VAGUE = RNG.dirichlet([30.0, 20.0, 10.0], N)  # calibrated, far from certainty
Y = (RNG.random((N, 1)) > VAGUE.cumsum(axis=1)).sum(axis=1)


class Case(NamedTuple):
    """Rows of three classes in one form, and how many of them are certain, or so sure that no float tells how sure."""

    form: str
    values: np.ndarray
    certain: int
    clip: float | None = None
    too_sure: int = 0


def _zeros() -> np.ndarray:
    p = VAGUE.copy()
    rows = np.arange(0, 300, 3)  # a third of the first rows call a class impossible that did not happen
    other = (Y[rows] + 1 + rows % 2) % 3
    p[rows, other] = 0.0
    p[:300] /= p[:300].sum(axis=1, keepdims=True)
    p[5] = np.eye(3)[Y[5]]  # and one row calls all but one impossible
    return p


ZEROS = _zeros()
with np.errstate(divide="ignore"):
    MASKED = np.log(ZEROS)
FAR = np.where(np.isneginf(MASKED), -1e5, MASKED)
CASES = {
    "probabilities": Case("y_prob", ZEROS, 101),
    "float32": Case("y_prob", ZEROS.astype(np.float32), 101),
    "every row": Case("y_prob", np.tile([0.6, 0.4, 0.0], (N, 1)), N),
    "none": Case("y_prob", VAGUE, 0),
    "the smallest floats": Case("y_prob", np.where(ZEROS == 0.0, 5e-324, ZEROS), 0),
    "clipped": Case("y_prob", ZEROS, 0, clip=1e-7),
    "logits of -inf": Case("logits", MASKED, 101),
    "logits of -inf in float32": Case("logits", MASKED.astype(np.float32), 101),
    "logits whose softmax is 0": Case("logits", FAR, 0, too_sure=1),
    "the same in float32": Case("logits", FAR.astype(np.float32), 0, too_sure=1),
}


def outcomes(case: Case) -> np.ndarray:
    """Return what happened; where every row has the same zero, something else."""
    return Y if case.certain < N else Y % 2


def predictions(case: Case, rows: slice = slice(None)) -> Any:
    return safecal.categorical(outcomes(case)[rows], **{case.form: case.values[rows]}, clip=case.clip)


def arrays(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    return predictions(case).evaluate()


def numpy_alone(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    monkeypatch.setattr(compiled, "_module", None)
    return predictions(case).evaluate()


def batches(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    return evaluate_batches(lambda: (Batch(predictions(case, slice(i, i + 70))) for i in range(0, N, 70)))


def sums_of_batches(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    return evaluate_batches(lambda: (Batch(predictions(case, slice(i, i + 70))) for i in range(0, N, 70)), max_rows=200)


def partitions(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    from safecal.engines.frames import evaluate_frame

    table = pa.table({"y": outcomes(case), "v": pa.array(list(case.values))})
    return evaluate_frame(table, y_true="y", **{case.form: "v"}, clip=case.clip, max_rows=200)


def torchmetrics(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from safecal.compat.torchmetrics import MulticlassECD

    metric = MulticlassECD(3, from_logits=case.form == "logits")
    for i in range(0, N, 70):
        metric.update(torch.tensor(case.values[i : i + 70]), torch.tensor(outcomes(case)[i : i + 70]))
    return metric.evaluation()


def command_line(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    pytest.importorskip("polars", minversion="1.38")
    return Evaluation.from_dict(json.loads(said(case, folder, "--json")))


def said(case: Case, folder: Path, *words: str) -> str:
    """Run the command line on the rows, and return what it writes."""
    np.savez(folder / "rows.npz", y=outcomes(case), v=case.values)
    option = "--logits" if case.form == "logits" else "--prob"
    clip = () if case.clip is None else ("--clip", str(case.clip))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["evaluate", str(folder / "rows.npz"), "--y", "y", option, "v", *clip, *words]) == 0
    return out.getvalue()


DOORS = (arrays, numpy_alone, batches, sums_of_batches, partitions, torchmetrics, command_line)
CLIPLESS = (torchmetrics,)


@pytest.mark.parametrize(
    ("door", "name"),
    [
        pytest.param(d, name, marks=pytest.mark.extra if d is torchmetrics else ())
        for d in DOORS
        for name, c in CASES.items()
        if c.clip is None or d not in CLIPLESS
    ],
)
def test_every_door_counts_the_same_rows(
    door: Callable[..., Evaluation], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    evaluation = door(case, tmp_path, monkeypatch)
    assert evaluation.n_certain == case.certain
    verdict = evaluation.judge(threshold=5.0, max_temperature=1e9)  # so wide that nothing else keeps it from being safe
    assert verdict.decision == ("UNDETERMINED" if case.certain or case.too_sure else "SAFE")
    assert ("a probability of exactly 0" in verdict.reason) == bool(case.certain)
    too_sure = f"{case.too_sure} of {N} predictions gives other classes probabilities that are too small for a float"
    assert (too_sure in verdict.reason) == bool(case.too_sure)


def test_zeros_are_not_safe_until_something_is_said_about_them() -> None:
    case = CASES["probabilities"]
    verdict = predictions(case).evaluate().verdict
    assert verdict.decision == "UNDETERMINED"
    assert verdict.rows_needed is None
    assert verdict.reason == (
        "101 of 900 rows give some class a probability of exactly 0, and if that class happens once, the surprise is "
        "infinite. Rounding makes such predictions, and so does a float32 softmax. Pass finite `logits=`, or state the "
        "smallest probability you mean: `clip=1e-7`."
    )
    assert safecal.evaluate(Y, ZEROS, clip=1e-7).verdict.decision == "SAFE"


def test_zeros_do_not_hide_over_confidence() -> None:
    sharp = np.where(ZEROS > 0.0, ZEROS**4, 0.0)
    sharp /= sharp.sum(axis=1, keepdims=True)
    assert safecal.evaluate(Y, sharp).verdict.decision == "UNSAFE"


def test_a_zero_that_happened_is_impossible() -> None:
    y = Y.copy()
    y[0] = int(ZEROS[0].argmin())
    verdict = safecal.evaluate(y, ZEROS).verdict
    assert (verdict.decision, verdict.n_impossible) == ("UNSAFE", 1)


def test_two_classes_are_worded_as_one_prediction_of_two_outcomes() -> None:
    told = "2 of 4 predictions are exactly 0 or 1, and one failure there would be an infinite surprise. The "
    p = np.array([1.0, 0.0, 0.5, 0.3])
    for prediction in (p, np.column_stack([1.0 - p, p])):
        evaluation = safecal.evaluate([1, 0, 1, 1], prediction)
        assert evaluation.n_certain == 2
        assert evaluation.verdict.reason.startswith(told)
    assert certain_reason(1, 9, 2).startswith("1 of 9 predictions is exactly 0 or 1")
    assert certain_reason(1, 9, 3).startswith("1 of 9 rows gives some class")


def test_the_command_line_speaks_of_its_options(tmp_path: Path) -> None:
    text = " ".join(said(CASES["probabilities"], tmp_path).split())
    assert "Pass finite `--logits`, or state the smallest probability you mean: `--clip " in text


@pytest.mark.parametrize("decimals", [2, 3, 6, 9])
def test_rounded_predictions_are_recognised(decimals: int, rng: np.random.Generator) -> None:
    p = np.round(rng.random(1000), decimals)
    assert decimals_of(p) == decimals
    assert decimals_of(p.astype(np.float32)) == (decimals if decimals <= 4 else 0)
    assert clip_for(2, decimals) == f"5e-{decimals + 1}"
    assert decimals_of(rng.random(1000)) == 0
    p[:2] = 0.0, 1.0
    verdict = safecal.evaluate(rng.random(1000) < p, p).verdict
    assert verdict.reason.endswith(f"state the smallest probability you mean: `clip=5e-{decimals + 1}`.")


@pytest.mark.parametrize("classes", [2, 3, 10, 1000, 1001, 10_000, 128_256])
def test_the_smallest_probability_that_is_suggested_hardly_moves_a_row(classes: int) -> None:
    clip = float(clip_for(classes) or "nan")
    assert 1e-10 <= clip <= 1e-7
    row = np.zeros((1, classes))
    row[0, :2] = 0.5
    moved, asis = (safecal.categorical([0], row, clip=c).score().excess[0] for c in (clip, None))
    assert abs(moved - asis) < 0.0025
    assert classes * clip * math.log(1.0 / clip) < 0.0025


def test_a_gap_that_no_float_holds_counts_as_it_scores() -> None:
    z = np.array([[1.7e308, -1.7e308, 0.0], [0.0, 1.0, 2.0]])
    evaluation = safecal.categorical([1, 0], logits=z).evaluate()
    assert evaluation.summary.n_impossible == 1
    assert evaluation.n_certain == 1
