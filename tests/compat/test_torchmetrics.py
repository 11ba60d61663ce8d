"""Metrics of torchmetrics: states of sums, held to `safecal.evaluate` on all rows."""

import dataclasses
import io
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import errors
from safecal._kernels.spectrum import node_rows
from safecal._sums import Tally
from safecal._sums.cells import Cells
from safecal._sums.nodes import Nodes
from safecal._sums.splits import Plan

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.extra

from safecal.compat.torchmetrics import (  # noqa: E402
    BinaryCalibration,
    BinaryECD,
    MulticlassCalibration,
    MulticlassECD,
)
from safecal.engines.torch.tensors import node_columns  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
METRICS = ("ecd", "nll", "ece", "esce", "brier", "accuracy")


def binary(rows: int, from_logits: bool, seed: int = 0, dtype: Any = torch.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.0, 2.0, rows)
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-0.6 * z))
    values = z if from_logits else 1.0 / (1.0 + np.exp(-z))
    return torch.tensor(values).to(dtype), torch.tensor(y.astype(int))


def multiclass(
    rows: int, classes: int, from_logits: bool, seed: int = 0, dtype: Any = torch.float64
) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.normal(0.0, 2.0, (rows, classes))).to(dtype)
    y = torch.tensor(rng.integers(0, classes, rows))
    return z if from_logits else torch.softmax(z.double(), 1).to(dtype), y


def rows_of(preds: Any, target: Any, from_logits: bool) -> tuple[Any, dict[str, Any]]:
    """Return the same numbers as arrays."""
    values = preds.cpu().double().numpy()
    return target.cpu().numpy(), {"logits": values} if from_logits else {"y_prob": values}


def tallied(preds: Any, target: Any, from_logits: bool, bins: Any = 10) -> Tally:
    """Return what safecal sums of the same numbers."""
    y, form = rows_of(preds, target, from_logits)
    values = next(iter(form.values()))
    predictions = (safecal.bernoulli if values.ndim == 1 else safecal.categorical)(y, **form)
    zero = np.isinf(values) if from_logits else (values == 0.0) | ((values == 1.0) & (values.ndim == 1))
    certain = int((zero if values.ndim == 1 else zero.any(axis=1)).sum())
    return dataclasses.replace(Tally.of(predictions, Plan.of(predictions, bins)), n_certain=certain)


def evaluated(preds: Any, target: Any, from_logits: bool, **options: Any) -> safecal.Evaluation:
    """Return what safecal makes of the same numbers."""
    y, form = rows_of(preds, target, from_logits)
    return safecal.evaluate(y, **form, **options)


def assert_same_summary(actual: safecal.Summary, wanted: safecal.Summary, rows_scale: float = 1e-12) -> None:
    for field in dataclasses.fields(safecal.Summary):
        a, b = getattr(actual, field.name), getattr(wanted, field.name)
        if field.name in ("n", "n_impossible") or b is None:
            assert a == b, field.name
        else:
            assert a == pytest.approx(b, rel=1e-12, abs=rows_scale * max(wanted.n, 1)), field.name


def assert_same_tally(actual: Tally, wanted: Tally) -> None:
    assert actual.bins is not None
    assert wanted.bins is not None
    for name in ("family", "dimension", "weighted", "n_certain"):
        assert getattr(actual, name) == getattr(wanted, name), name
    assert (actual.most_entropy, actual.least_excess) == pytest.approx((wanted.most_entropy, wanted.least_excess))
    for name in ("name", "keys", "bins", "top_label"):
        assert getattr(actual.bins, name) == getattr(wanted.bins, name), name
    for a, b in zip(actual.bins.summaries, wanted.bins.summaries, strict=True):
        assert_same_summary(a, b)
    assert_same_summary(actual.summary, wanted.summary)
    if isinstance(wanted.spectrum, Cells):
        assert isinstance(actual.spectrum, Cells)
        np.testing.assert_array_equal(actual.spectrum.moments[..., 0], wanted.spectrum.moments[..., 0])
        np.testing.assert_allclose(actual.spectrum.moments, wanted.spectrum.moments, rtol=1e-11, atol=1e-11)
        assert actual.spread is None
        return
    assert isinstance(actual.spectrum, Nodes)
    assert isinstance(wanted.spectrum, Nodes)
    assert actual.spectrum.surprises == wanted.spectrum.surprises
    np.testing.assert_allclose(actual.spectrum.sums, wanted.spectrum.sums, rtol=1e-10, atol=1e-10)
    assert actual.spread is not None
    assert wanted.spread is not None
    np.testing.assert_array_equal(actual.spread.counts, wanted.spread.counts)
    np.testing.assert_allclose(actual.spread.sums, wanted.spread.sums, rtol=1e-11, atol=1e-11)
    assert (actual.class_sums is None) == (wanted.class_sums is None)
    if actual.class_sums is not None and wanted.class_sums is not None:
        np.testing.assert_allclose(actual.class_sums.sums, wanted.class_sums.sums, rtol=1e-10, atol=1e-10)


def assert_same(metric: Any, wanted: Tally) -> None:
    tally = metric.tally()
    assert_same_tally(tally, wanted)
    assert metric.table() == tally.bins
    assert metric.summary() == tally.summary


def assert_same_evaluation(actual: safecal.Evaluation, wanted: safecal.Evaluation) -> None:
    rel = 1e-6 if wanted.family == "bernoulli" else 1e-4
    assert actual.verdict.decision == wanted.verdict.decision
    assert [place.name for place in actual.verdict.where] == [place.name for place in wanted.verdict.where]
    np.testing.assert_allclose(actual.local.numbers, wanted.local.numbers, rtol=rel, atol=rel)
    for name in ("temperature", "interval"):
        a, b = getattr(actual, name), getattr(wanted, name)
        assert a.method == b.method
        for end in ("value", "low", "high"):
            assert getattr(a, end) == pytest.approx(getattr(b, end), rel=rel, abs=1e-12, nan_ok=True), (name, end)
    assert actual.test.method == wanted.test.method
    assert actual.test.p_value == pytest.approx(wanted.test.p_value, rel=1e-4, abs=1e-300, nan_ok=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_binary_rows_are_those_of_numpy(dtype: Any, from_logits: bool, device: str) -> None:
    preds, target = binary(3000, from_logits, 1, dtype)
    metric = BinaryCalibration(from_logits=from_logits).to(device)
    metric.update(preds.to(device), target.to(device))
    assert metric.sums.dtype == torch.float64
    assert_same(metric, tallied(preds, target, from_logits))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 10, 257])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_multiclass_rows_are_those_of_numpy(dtype: Any, classes: int, from_logits: bool, device: str) -> None:
    preds, target = multiclass(1500, classes, from_logits, 2, dtype)
    metric = MulticlassCalibration(classes, from_logits=from_logits).to(device)
    metric.update(preds.to(device), target.to(device))
    wanted = tallied(preds, target, from_logits)
    if device == "cuda" and from_logits and dtype == torch.float32:  # summed in float32, row by row
        assert_same_summary(metric.summary(), wanted.summary, rows_scale=1e-5)
        np.testing.assert_array_equal(metric.table().n, wanted.bins.n)
    else:
        assert_same(metric, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_logits_are_read_as_the_numbers_they_hold(dtype: Any) -> None:
    preds, target = multiclass(500, 7, True, 3, dtype)
    metric = MulticlassCalibration(7, from_logits=True)
    metric.update(preds, target)
    assert_same(metric, tallied(preds, target, True))


@pytest.mark.parametrize(
    ("preds", "target"),
    [
        ([0.0, 1.0, 0.5, 1.0], [0, 1, 1, 1]),
        ([0.0, 1.0, 0.3, 1.0], [1, 0, 0, 1]),
        ([1e-310, 5e-324, 1e-17, 1.0 - 2**-53], [0, 1, 0, 1]),
        ([0.1, 0.2, 0.30000000000000004, 0.7], [0, 1, 0, 1]),
        ([0.6], [1]),
    ],
)
def test_difficult_binary_probabilities(preds: list[float], target: list[int]) -> None:
    p, y = torch.tensor(preds, dtype=torch.float64), torch.tensor(target)
    metric = BinaryCalibration(from_logits=False)
    metric.update(p, y)
    assert_same(metric, tallied(p, y, False))


@pytest.mark.parametrize(
    ("preds", "target"),
    [
        ([math.inf, -math.inf, 0.0], [1, 0, 1]),
        ([math.inf, -math.inf, 3.0], [0, 0, 1]),
        ([800.0, -800.0, 40.0], [0, 1, 1]),
    ],
)
def test_difficult_binary_logits(preds: list[float], target: list[int]) -> None:
    z, y = torch.tensor(preds, dtype=torch.float64), torch.tensor(target)
    metric = BinaryCalibration(from_logits=True)
    metric.update(z, y)
    assert_same(metric, tallied(z, y, True))


def test_difficult_classes() -> None:
    inf = math.inf
    z = torch.tensor(
        [[0.0, 0.0, 0.0], [5.0, -inf, -inf], [5.0, -inf, -inf], [1.0, 1.0, -3.0], [90.0, 0.0, -90.0], [0.0, -inf, 2.0]],
        dtype=torch.float64,
    )
    for target in ([0, 0, 1, 1, 2, 0], [2, 0, 0, 0, 0, 2]):
        y = torch.tensor(target)
        metric = MulticlassCalibration(3, from_logits=True)
        metric.update(z, y)
        assert_same(metric, tallied(z, y, True))
        p = torch.softmax(z, 1)
        metric = MulticlassCalibration(3, from_logits=False)
        metric.update(p, y)
        assert_same(metric, tallied(p, y, False))


@pytest.mark.parametrize("from_logits", [False, True])
def test_metrics_are_those_of_safecal(from_logits: bool) -> None:
    preds, target = binary(2000, from_logits, 4)
    wanted = evaluated(preds, target, from_logits, bins=15)
    metric = BinaryCalibration(from_logits=from_logits, bins=15)
    metric.update(preds, target)
    assert set(metric.compute()) == set(METRICS)
    for name, value in metric.compute().items():
        assert value.dtype == torch.float64
        assert value.shape == ()
        assert float(value) == pytest.approx(getattr(wanted, name), rel=1e-12, abs=1e-14), name
    single = BinaryECD(from_logits=from_logits)
    assert float(single(preds, target)) == pytest.approx(wanted.ecd, rel=1e-12)


def test_metrics_of_classes_are_those_of_safecal() -> None:
    preds, target = multiclass(2000, 5, True, 4)
    wanted = evaluated(preds, target, True)
    metric = MulticlassCalibration(5, from_logits=True)
    for name, value in metric(preds, target).items():
        assert float(value) == pytest.approx(getattr(wanted, name), rel=1e-12, abs=1e-14), name
    single = MulticlassECD(5, from_logits=True)
    assert float(single(preds, target)) == pytest.approx(wanted.ecd, rel=1e-12)


def test_impossible_outcomes_are_counted_and_make_the_mean_infinite() -> None:
    metric = BinaryCalibration(from_logits=False)
    metric.update(torch.tensor([0.0, 0.8, 0.3]), torch.tensor([1, 1, 0]))
    values = metric.compute()
    assert math.isinf(float(values["ecd"]))
    assert math.isinf(float(values["nll"]))
    assert math.isfinite(float(values["brier"]))
    assert metric.summary().n_impossible == 1
    assert metric.evaluation().verdict.decision == "UNSAFE"


def test_certain_predictions_are_never_safe() -> None:
    preds, target = binary(5000, False, 5)
    preds[0], target[0] = 1.0, 1
    metric = BinaryECD(from_logits=False)
    metric.update(preds, target)
    result = metric.evaluation(threshold=10.0, max_temperature=10.0)
    assert result.n_certain == 1
    assert result.verdict.decision == "UNDETERMINED"


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_may_be_as_far_from_one_as_in_arrays(dtype: Any) -> None:
    values = torch.full((5, 1000), 1 / 1000, dtype=dtype)
    values[3] *= 1.5
    metric = MulticlassECD(1000, from_logits=False)
    with pytest.raises(errors.NormalisationError, match=r"within 0\.000723; got 1\.[45]") as caught:
        metric.update(values, torch.zeros(5, dtype=torch.long))
    paste = str(caught.value).rpartition("pass `")[2].rpartition("`")[0]
    metric.update(eval(paste, {"preds": values}), torch.zeros(5, dtype=torch.long))
    assert metric.summary().n == 5


def test_no_rows() -> None:
    metric = BinaryCalibration(from_logits=False)
    metric.update(torch.empty(0), torch.empty(0, dtype=torch.long))
    assert all(math.isnan(float(value)) for value in metric.compute().values())
    assert metric.summary() == safecal.Summary()
    with pytest.raises(errors.EmptyError, match="at least one row"):
        metric.evaluation()
    wide = MulticlassECD(4, from_logits=True)
    wide.update(torch.empty(0, 4), torch.empty(0, dtype=torch.long))
    assert math.isnan(float(wide.compute()))


def two_classes(case: str) -> tuple[Any, Any, bool]:
    """Return log-odds or probabilities, outcomes, and which of the two it is."""
    rng = np.random.default_rng(21)
    n = 2000
    z = rng.normal(0.0, {"sharp": 8.0}.get(case, 2.0), n) - {"rare": 6.0}.get(case, 0.0)
    p = 1.0 / (1.0 + np.exp(-z))
    if case in ("lattice", "toss"):
        p = rng.choice([0.5] if case == "toss" else [0.02, 0.1, 0.4, 0.5, 0.8], n)
    if case in ("certain", "impossible"):
        p[:50], p[50:70] = 1.0, 0.0
    truth = float(case) if case[0].isdigit() else 1.0
    with np.errstate(divide="ignore"):
        chance = 1.0 / (1.0 + np.exp(-(np.log(p) - np.log1p(-p)) / truth))
    y = rng.random(n) < chance
    if case == "impossible":
        y[0], y[60] = False, True
    as_logits = case in ("1.2", "2", "sharp", "calibrated")
    return torch.tensor(z if as_logits else p), torch.tensor(y.astype(int)), as_logits


def many_classes(case: str) -> tuple[Any, Any, bool]:
    """Return logits or probabilities of six classes, outcomes, and which of the two it is."""
    rng = np.random.default_rng(22)
    n, classes = 1200, 6
    z = rng.normal(0.0, {"sharp": 8.0}.get(case, 2.0), (n, classes))
    if case == "rare":
        z[:, 0] += 9.0
    if case in ("lattice", "toss"):
        z = np.log(rng.permuted(np.tile([0.5, 0.2, 0.2, 0.05, 0.03, 0.02], (n, 1)), axis=1))
        z *= case == "lattice"
    if case in ("certain", "impossible"):
        z[:50, 1:], z[50:90, 2] = -np.inf, -np.inf
    truth = float(case) if case[0].isdigit() else 1.0
    chance = np.exp((z - z.max(axis=1, keepdims=True)) / truth)
    chance /= chance.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    if case == "impossible":
        y[0], y[60] = 1, 2
    as_logits = case not in ("1.5", "3", "lattice", "certain")
    if not as_logits:
        z = np.exp(z - z.max(axis=1, keepdims=True))
        z /= z.sum(axis=1, keepdims=True)
    return torch.tensor(z), torch.tensor(y), as_logits


def metric_of(preds: Any, from_logits: bool) -> Any:
    if preds.ndim == 1:
        return BinaryCalibration(from_logits=from_logits)
    return MulticlassCalibration(preds.shape[1], from_logits=from_logits)


CASES = ("1.2", "1.5", "2", "3", "calibrated", "sharp", "rare", "lattice", "toss", "certain", "impossible")


@pytest.mark.parametrize("make", [two_classes, many_classes])
@pytest.mark.parametrize("case", CASES)
def test_the_evaluation_of_batches_and_ranks_is_that_of_all_rows(make: Any, case: str) -> None:
    preds, target, from_logits = make(case)
    wanted = safecal.Evaluation.of(tallied(preds, target, from_logits))
    one, two = metric_of(preds, from_logits), metric_of(preds, from_logits)
    for begin, end, metric in ((0, 300, one), (300, 310, two), (310, 900, one), (900, len(preds), two)):
        metric.update(preds[begin:end], target[begin:end])
    one.merge_state(two)
    assert_same_evaluation(one.evaluation(), wanted)


@pytest.mark.parametrize("make", [two_classes, many_classes])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_evaluation_is_that_of_safecal_on_the_same_values(make: Any, dtype: Any) -> None:
    preds, target, from_logits = make("2")
    preds = preds.to(dtype)
    metric = metric_of(preds, from_logits)
    metric.update(preds, target)
    evaluation, wanted = metric.evaluation(), evaluated(preds, target, from_logits)
    assert_same_evaluation(evaluation, wanted)
    assert evaluation.temperature.low < 2.0 < evaluation.temperature.high
    assert safecal.Evaluation.from_dict(evaluation.to_dict()) == evaluation


def test_the_evaluation_takes_other_limits() -> None:
    preds, target, _ = two_classes("2")
    metric = BinaryECD(from_logits=True)
    metric.update(preds, target)
    limits = {"threshold": 1.0, "max_temperature": 4.0, "level": 0.9}
    assert_same_evaluation(metric.evaluation(**limits), evaluated(preds, target, True, **limits))
    with pytest.raises(errors.RangeError, match="`level`"):
        metric.evaluation(level=2.0)


def test_metrics_have_the_reliability_of_the_rows() -> None:
    preds, target = binary(500, True, 6)
    metric = BinaryECD(from_logits=True)
    metric.update(preds, target)
    reliability, wanted = metric.evaluation().reliability, evaluated(preds, target, True).reliability
    assert reliability is not None
    assert wanted is not None
    assert reliability.ece_quantile == pytest.approx(wanted.ece_quantile, rel=1e-9)
    wide = MulticlassECD(5, from_logits=True)
    preds, target = multiclass(300, 5, True, 6)
    wide.update(preds, target)
    reliability, wanted = wide.evaluation().reliability, evaluated(preds, target, True).reliability
    assert reliability is not None
    assert wanted is not None
    assert reliability.ece_quantile == pytest.approx(wanted.ece_quantile, rel=1e-6)


def test_nodes_are_those_of_numpy_however_far_apart_the_classes_are() -> None:
    rng = np.random.default_rng(23)
    gaps = np.abs(rng.normal(0.0, 1.0, (400, 30))) * rng.choice([1e-6, 1.0, 40.0, 900.0], (400, 1))
    gaps[:, 0], gaps[::7, 1:] = np.inf, np.inf
    nodes = node_columns(torch.tensor(gaps)).numpy()
    np.testing.assert_allclose(nodes.sum(1), node_rows(gaps).sum(axis=2).ravel(), rtol=1e-12)


def test_logits_beyond_all_measure_leave_the_sums_finite() -> None:
    z = torch.tensor([[1e300, -1e300, 0.0], [0.0, 1e200, 1.0], [2.0, 1.0, 0.0]], dtype=torch.float64)
    metric = MulticlassCalibration(3, from_logits=True)
    metric.update(z, torch.tensor([0, 1, 0]))
    assert bool(metric.nodes.isfinite().all())
    narrow = BinaryCalibration(from_logits=True)
    narrow.update(torch.tensor([1e300, -1e200, 1.0], dtype=torch.float64), torch.tensor([1, 0, 0]))
    assert bool(narrow.cells.isfinite().all())


def test_a_tally_adds_up_with_one_of_arrays() -> None:
    preds, target = multiclass(400, 4, True, 24)
    metric = MulticlassECD(4, from_logits=True)
    metric.update(preds[:150], target[:150])
    both = metric.tally() + tallied(preds[150:], target[150:], True)
    assert_same_tally(both, tallied(preds, target, True))


@pytest.mark.parametrize("value", [math.nan, 1.5])
def test_rows_without_an_answer_have_no_evaluation(value: float) -> None:
    metric = BinaryCalibration(from_logits=False, validate_args=False)
    metric.update(torch.tensor([0.2, value]), torch.tensor([0, 1]))
    with pytest.raises(errors.MissingValueError, match="validate_args=True"):
        metric.evaluation()
    wide = MulticlassCalibration(2, from_logits=False, validate_args=False)
    wide.update(torch.tensor([[0.2, value]]), torch.tensor([0]))
    with pytest.raises(errors.MissingValueError, match="validate_args=True"):
        wide.evaluation()


def test_rows_that_are_ignored_add_nothing() -> None:
    preds, target = multiclass(300, 4, True, 7)
    marked = target.clone()
    marked[::3] = -100
    preds[::3] = math.nan  # padding may hold anything
    metric = MulticlassCalibration(4, from_logits=True, ignore_index=-100)
    metric.update(preds, marked)
    keep = marked != -100
    assert_same(metric, tallied(preds[keep], target[keep], True))
    p, y = binary(90, False, 7)
    y[::3], p[::3] = 255, math.nan
    narrow = BinaryCalibration(from_logits=False, ignore_index=255)
    narrow.update(p, y.to(torch.uint8))
    assert_same(narrow, tallied(p[y != 255], y[y != 255], False))


def test_further_dimensions_follow_the_classes() -> None:
    preds, target = multiclass(60, 4, True, 8)
    flat, shaped = MulticlassCalibration(4, from_logits=True), MulticlassCalibration(4, from_logits=True)
    flat.update(preds, target)
    shaped.update(preds.reshape(5, 12, 4).movedim(2, 1), target.reshape(5, 12))
    assert torch.equal(flat.sums, shaped.sums)
    p, y = binary(60, False, 8)
    one, two = BinaryECD(from_logits=False), BinaryECD(from_logits=False)
    one.update(p, y)
    two.update(p.reshape(3, 20), y.reshape(3, 20))
    assert torch.equal(one.sums, two.sums)


def test_bins_are_an_argument() -> None:
    preds, target = binary(500, False, 9)
    bins = safecal.Bins.from_edges([0.0, 0.05, 0.5, 1.0])
    metric = BinaryCalibration(from_logits=False, bins=bins)
    metric.update(preds, target)
    assert_same(metric, tallied(preds, target, False, bins=bins))


@pytest.mark.parametrize(
    ("preds", "target", "error", "words"),
    [
        ([0.2, 1.7], [0, 1], errors.RangeError, r"`preds` must lie in \[0, 1\]; got 1.7\S* at row 1 \(1 of 2 rows\)"),
        ([0.2, -0.1], [0, 1], errors.RangeError, "from_logits=True"),
        ([0.2, math.nan], [0, 1], errors.MissingValueError, "NaN at row 1"),
        ([0.2, 0.3], [0, 2], errors.LabelError, "`target` must be 0 or 1; got 2 at row 1"),
        ([0.2, 0.3], [0.0, 0.5], errors.LabelError, "got 0.5"),
        ([0.2, 0.3], [0.0, math.nan], errors.LabelError, "got nan"),
        ([0, 1], [0.0, 1.0], errors.DtypeError, "`preds` comes first"),
        ([0.2, 0.3], [1, 0, 1], errors.ShapeError, "shape of `preds`"),
        ([0.2, 0.3], [1j, 0], errors.DtypeError, "labels"),
    ],
)
def test_bad_binary_rows_are_refused(preds: Any, target: Any, error: type[Exception], words: str) -> None:
    metric = BinaryECD(from_logits=False)
    with pytest.raises(error, match=words):
        metric.update(torch.tensor(preds), torch.tensor(target))
    assert metric.summary().n == 0


@pytest.mark.parametrize(
    ("preds", "target", "from_logits", "error", "words"),
    [
        ([[0.2, 0.8], [0.5, 0.6]], [0, 1], False, errors.NormalisationError, r"sum to 1 .* got 1.1\S* at row 1"),
        ([[0.2, 0.8], [1.5, -0.5]], [0, 1], False, errors.RangeError, r"\[0, 1\]"),
        ([[0.2, 0.8], [0.5, math.nan]], [0, 1], False, errors.MissingValueError, "NaN"),
        ([[0.2, 0.8], [0.5, 0.5]], [0, 2], False, errors.LabelError, "from 0 to 1; got 2"),
        ([[0.2, 0.8], [0.5, 0.5]], [0, -1], True, errors.LabelError, "ignore_index"),
        ([[0.2, math.nan], [0.5, 0.5]], [0, 1], True, errors.MissingValueError, "row 0"),
        ([[0.2, math.inf], [0.5, 0.5]], [0, 1], True, errors.RangeError, r"\+inf"),
        ([[-math.inf, -math.inf], [0.5, 0.5]], [0, 1], True, errors.RangeError, "finite value in each row"),
        ([[0.2, 0.8, 0.0]], [0], False, errors.ShapeError, r"\(N, 2, ...\)"),
        ([[[0.2, 0.8]] * 3], [[0] * 3], False, errors.ShapeError, "flatten"),
        ([[0.2, 0.8]], [[0]], False, errors.ShapeError, "without its classes"),
        ([[0.2, 0.8]], [0.0], False, errors.DtypeError, "long"),
    ],
)
def test_bad_classes_are_refused(
    preds: Any, target: Any, from_logits: bool, error: type[Exception], words: str
) -> None:
    metric = MulticlassECD(2, from_logits=from_logits)
    with pytest.raises(error, match=words):
        metric.update(torch.tensor(preds), torch.tensor(target))
    assert metric.summary().n == 0


def test_arrays_are_refused() -> None:
    with pytest.raises(errors.DtypeError, match="torch tensor"):
        BinaryECD(from_logits=False).update(np.array([0.5]), torch.tensor([1]))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"from_logits": 1}, errors.OptionError, "from_logits"),
        ({"from_logits": True, "bins": 0}, errors.BinsError, "bins"),
        ({"from_logits": True, "bins": safecal.Bins.uniform(4, 0.5, 1.0)}, errors.BinsError, "0 to 1"),
        ({"from_logits": True, "ignore_index": 0.5}, errors.OptionError, "ignore_index"),
        ({"from_logits": True, "validate_args": "no"}, errors.OptionError, "validate_args"),
        ({"from_logits": True, "unknown": 1}, ValueError, "unknown"),
        ({}, TypeError, "from_logits"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        BinaryECD(**options)


def test_one_class_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="num_classes"):
        MulticlassECD(1, from_logits=True)


@pytest.mark.parametrize("value", [math.nan, 1.5, -0.2])
def test_without_checks_a_bad_value_makes_the_result_nan(value: float) -> None:
    metric = BinaryCalibration(from_logits=False, validate_args=False)
    metric.update(torch.tensor([0.2, value]), torch.tensor([0, 1]))
    assert math.isnan(float(metric.compute()["ecd"]))


def test_without_checks_a_bad_label_makes_the_result_nan() -> None:
    metric = BinaryECD(from_logits=False, validate_args=False)
    metric.update(torch.tensor([0.2, 0.7]), torch.tensor([0, 3]))
    assert math.isnan(float(metric.compute()))
    wide = MulticlassECD(2, from_logits=False, validate_args=False)
    wide.update(torch.tensor([[0.2, 0.7]]), torch.tensor([0]))
    assert math.isnan(float(wide.compute()))


def test_forward_gives_the_batch_and_keeps_the_whole() -> None:
    preds, target = binary(900, True, 10)
    metric = BinaryECD(from_logits=True)
    for rows in (slice(0, 100), slice(100, 101), slice(101, 900)):
        value = metric(preds[rows].clone().requires_grad_(), target[rows])
        assert float(value) == pytest.approx(safecal.ecd(target[rows].numpy(), logits=preds[rows].numpy()), rel=1e-12)
        assert not value.requires_grad
    assert metric.update_count == 3
    assert_same(metric, tallied(preds, target, True))
    assert float(metric.compute()) == pytest.approx(safecal.ecd(target.numpy(), logits=preds.numpy()), rel=1e-12)


def test_a_batch_that_is_refused_leaves_the_sums_alone() -> None:
    preds, target = binary(100, False, 11)
    metric = BinaryECD(from_logits=False)
    metric(preds, target)
    before = {name: state.clone() for name, state in metric.metric_state.items()}
    for call in (metric, metric.update):
        with pytest.raises(errors.RangeError):
            call(torch.tensor([0.5, 1.5]), torch.tensor([0, 1]))
        assert all(torch.equal(getattr(metric, name), state) for name, state in before.items())
    metric(preds, target)
    assert all(torch.equal(getattr(metric, name), 2 * state) for name, state in before.items())


@pytest.mark.parametrize("classes", [2, 5])
def test_the_states_are_of_constant_size(classes: int) -> None:
    metric: Any = BinaryCalibration(from_logits=True)
    names = ["sums", "cells"]
    if classes > 2:
        metric = MulticlassCalibration(classes, from_logits=True)
        names = ["sums", "nodes", "surprises", "spread", "ordered", "top", "by_class"]
    shapes, size = {name: getattr(metric, name).shape for name in names}, len(pickle.dumps(metric))
    assert list(metric.metric_state) == names
    for seed in range(20):
        metric.update(*(binary(1000, True, seed) if classes == 2 else multiclass(1000, classes, True, seed)))
    assert list(metric.metric_state) == names
    for name, shape in shapes.items():
        state = getattr(metric, name)
        assert state.shape == shape
        assert state.untyped_storage().nbytes() == shape.numel() * 8
    assert len(pickle.dumps(metric)) <= size + 64
    assert metric.summary().n == 20_000
    assert metric.full_state_update is False


def test_the_page_tells_how_large_the_states_are() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "torchmetrics.md").read_text(encoding="utf-8")
    for classes, words in ((2, "two\n  classes"), (10, "10"), (128, "128"), (1000, "more")):
        metric: Any = (
            BinaryCalibration(from_logits=True) if classes == 2 else MulticlassCalibration(classes, from_logits=True)
        )
        size = sum(getattr(metric, name).nbytes for name in metric.metric_state)
        assert f"{size / 1000:.0f} kB for {words}" in page


def test_blocks_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from safecal.compat.torchmetrics import state as states

    preds, target = multiclass(500, 6, False, 12)
    whole, parts = MulticlassCalibration(6, from_logits=False), MulticlassCalibration(6, from_logits=False)
    whole.update(preds, target)
    monkeypatch.setattr(states, "rows_at_once", lambda values: 33)
    parts.update(preds, target)
    assert torch.equal(whole.sums[:, :2], parts.sums[:, :2])
    for name, state in whole.metric_state.items():
        torch.testing.assert_close(state, getattr(parts, name), rtol=1e-12, atol=1e-12)
    preds[401] = 2.0
    with pytest.raises(errors.RangeError, match=r"row 401 \(1 of 500 rows\)"):
        parts.update(preds, target)


def test_reset_clone_and_pickle() -> None:
    preds, target = binary(200, True, 13)
    metric = BinaryCalibration(from_logits=True, bins=7)
    metric.update(preds, target)
    copy, stored = metric.clone(), pickle.loads(pickle.dumps(metric))
    metric.reset()
    assert metric.summary().n == 0
    for other in (copy, stored):
        assert_same(other, tallied(preds, target, True, bins=7))
        other.update(preds, target)
        assert other.summary().n == 400


def test_a_checkpoint_keeps_the_sums() -> None:
    preds, target = binary(200, True, 14)
    metric = BinaryECD(from_logits=True)
    metric.persistent(True)
    metric.update(preds, target)
    file = io.BytesIO()
    torch.save(metric.state_dict(), file)
    file.seek(0)
    other = BinaryECD(from_logits=True)
    other.persistent(True)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.tally() == metric.tally()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.half(),
        lambda m: m.to(torch.bfloat16),
        lambda m: m.set_dtype(torch.float16),
        lambda m: torch.nn.ModuleList([m]).to(torch.float16),
        lambda m: torch.nn.ModuleList([m]).half(),
    ],
)
def test_a_model_in_half_precision_leaves_the_sums_in_float64(change: Any) -> None:
    preds, target = binary(5000, False, 15)
    metric = BinaryCalibration(from_logits=False, bins=7)
    metric.update(preds, target)
    metric.compute()
    change(metric)
    assert {state.dtype for state in metric.metric_state.values()} == {torch.float64}
    assert_same(metric, tallied(preds, target, False, bins=7))
    assert metric.compute()["ecd"].dtype == torch.float64
    metric.reset()
    metric.update(preds, target)
    assert_same(metric, tallied(preds, target, False, bins=7))


def test_states_merge() -> None:
    preds, target = binary(300, True, 16)
    one, two = BinaryECD(from_logits=True), BinaryECD(from_logits=True)
    one.update(preds[:100], target[:100])
    one.compute()
    two.update(preds[100:], target[100:])
    one.merge_state(two)
    assert float(one.compute()) == pytest.approx(safecal.ecd(target.numpy(), logits=preds.numpy()), rel=1e-12)
    assert_same(one, tallied(preds, target, True))
    empty = BinaryECD(from_logits=True)
    empty.merge_state(two.metric_state)
    assert empty.tally() == two.tally()


@pytest.mark.parametrize(
    "other",
    [
        BinaryECD(from_logits=True, bins=9),
        BinaryECD(from_logits=True, bins=safecal.Bins.from_edges([0.0, *np.linspace(0.2, 0.9, 9), 1.0])),
        MulticlassECD(3, from_logits=True),
        {"sums": torch.zeros(10, 1)},
        MulticlassECD(2, from_logits=True).metric_state,
    ],
)
def test_states_of_other_bins_or_classes_do_not_merge(other: Any) -> None:
    with pytest.raises(errors.MergeError, match="same bins and classes"):
        BinaryECD(from_logits=True).merge_state(other)


def test_states_of_no_metric_do_not_merge() -> None:
    with pytest.raises(ValueError, match="Expected"):
        BinaryECD(from_logits=True).merge_state(3)


def test_a_collection_shares_one_update() -> None:
    preds, target = binary(400, True, 17)
    both = torchmetrics.MetricCollection(
        {"ecd": BinaryECD(from_logits=True), "all": BinaryCalibration(from_logits=True)}
    )
    for rows in (slice(0, 150), slice(150, 400)):
        both.update(preds[rows], target[rows])
    values = both.compute()
    wanted = evaluated(preds, target, True)
    assert len(both.compute_groups) == 1
    assert float(values["ecd"]) == pytest.approx(wanted.ecd, rel=1e-12)
    named = torchmetrics.MetricCollection([BinaryCalibration(from_logits=True)], prefix="val_")
    assert "val_ece" in named(preds, target)


@pytest.mark.parametrize("call", ["update", "forward"])
def test_a_collection_of_single_metrics_is_what_lightning_logs(call: str) -> None:
    # log_dict passes each metric of a collection to log, which takes a metric whose value is one number.
    preds, target = multiclass(400, 4, True, 17)
    each = {name: MulticlassCalibration(4, from_logits=True, only=name) for name in METRICS}
    collection = torchmetrics.MetricCollection(each, prefix="val_")
    for rows in (slice(0, 150), slice(150, 400)):
        getattr(collection, call)(preds[rows], target[rows])
    wanted = evaluated(preds, target, True)
    for name, metric in collection.items(keep_base=False, copy_state=False):
        value = metric.compute()
        assert value.shape == ()
        assert float(value) == pytest.approx(getattr(wanted, name.removeprefix("val_")), rel=1e-12, abs=1e-14)
        assert call == "update" or metric._forward_cache.shape == ()
    assert call == "forward" or len(collection.compute_groups) == 1
    assert_same(collection["ece"], tallied(preds, target, True))
    for _, metric in collection.items(copy_state=False):  # as Lightning does after each epoch
        metric.reset()
    getattr(collection, call)(preds, target)
    assert float(collection.compute()["val_ece"]) == pytest.approx(wanted.ece, rel=1e-12)


def test_an_unknown_single_metric_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="`only` must be one of 'ecd', 'nll'"):
        BinaryCalibration(from_logits=True, only="ecdd")


def test_float_labels_of_a_binary_loss_are_taken() -> None:
    preds, target = binary(50, True, 18)
    one, two = BinaryECD(from_logits=True), BinaryECD(from_logits=True)
    one.update(preds, target)
    two.update(preds, target.double())
    three = BinaryECD(from_logits=True)
    three.update(preds, target.bool())
    assert torch.equal(one.sums, two.sums)
    assert torch.equal(one.sums, three.sums)


RANK = """
import pickle, sys
from datetime import timedelta
import numpy as np, torch
from safecal.compat.torchmetrics import BinaryCalibration, MulticlassECD
rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world, timeout=timedelta(seconds=60)
)
data = np.load(f"{folder}/rows.npz")
shares = {"uneven": [(0, 37), (37, 1000)], "empty": [(0, 1000), (1000, 1000)], "silent": [(0, 1000), None]}
for name, share in shares.items():
    binary, wide = BinaryCalibration(from_logits=False), MulticlassECD(5, from_logits=True)
    if share[rank] is not None:
        begin, end = share[rank]
        for k in range(begin, max(end, begin + 1), 100):
            rows = slice(k, min(k + 100, end))
            binary.update(torch.tensor(data["p"][rows]), torch.tensor(data["y"][rows]))
            wide.update(torch.tensor(data["z"][rows]), torch.tensor(data["c"][rows]))
    local = binary.sums.clone()
    metrics = {key: float(value) for key, value in binary.compute().items()}
    table = binary.table()
    assert torch.equal(binary.sums, local)  # and each process goes on with its own
    results = {"n": table.total.n, "decision": binary.evaluation().verdict.decision, "wide_ecd": float(wide.compute())}
    with open(f"{folder}/{name}-{rank}.pickle", "wb") as file:
        pickle.dump((binary.tally(), wide.tally(), results | metrics), file)
torch.distributed.destroy_process_group()
"""


@pytest.mark.no_cover
def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    p, y = binary(1000, False, 19)
    z, c = multiclass(1000, 5, True, 20)
    np.savez(tmp_path / "rows.npz", p=p, y=y, z=z, c=c)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANK, str(rank), "2", str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
    wanted, wanted_wide = evaluated(p, y, False), evaluated(z, c, True)
    for case in ("uneven", "empty", "silent"):
        for rank in range(2):
            two, five, said_there = pickle.loads((tmp_path / f"{case}-{rank}.pickle").read_bytes())
            assert_same_tally(two, tallied(p, y, False))
            assert_same_tally(five, tallied(z, c, True))
            assert said_there["n"] == 1000
            assert said_there["decision"] == wanted.verdict.decision
            assert said_there["wide_ecd"] == pytest.approx(wanted_wide.ecd, rel=1e-12)
            for name in METRICS:
                assert said_there[name] == pytest.approx(getattr(wanted, name), rel=1e-12, abs=1e-14)


def test_without_torchmetrics_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "torchmetrics.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from safecal.compat.torchmetrics import BinaryECD
BinaryECD(from_logits=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "safecal[torchmetrics]"' in done.stderr
