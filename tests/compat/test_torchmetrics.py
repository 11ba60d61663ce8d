"""Metrics of torchmetrics: one state of sums, held to `safecal.evaluate` on all rows."""

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

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.extra

from safecal.compat.torchmetrics import (  # noqa: E402
    BinaryCalibration,
    BinaryECD,
    MulticlassCalibration,
    MulticlassECD,
)

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


def evaluated(preds: Any, target: Any, from_logits: bool, **options: Any) -> safecal.Evaluation:
    """Return what safecal makes of the same numbers."""
    wide = preds if preds.dtype in (torch.float64, torch.float32) else preds.float()
    values = wide.cpu().numpy()
    form = {"logits": values} if from_logits else {"y_prob": values}
    return safecal.evaluate(target.cpu().numpy(), **form, **options)


def assert_same_summary(found: safecal.Summary, wanted: safecal.Summary, rows_scale: float = 1e-12) -> None:
    for field in dataclasses.fields(safecal.Summary):
        a, b = getattr(found, field.name), getattr(wanted, field.name)
        if field.name in ("n", "n_impossible") or b is None:
            assert a == b, field.name
        else:
            assert a == pytest.approx(b, rel=1e-12, abs=rows_scale * max(wanted.n, 1)), field.name


def assert_same(metric: Any, wanted: safecal.Evaluation) -> None:
    table = metric.table()
    assert wanted.bins is not None
    assert (table.name, table.keys, table.bins, table.top_label) == (
        wanted.bins.name, wanted.bins.keys, wanted.bins.bins, wanted.bins.top_label,
    )  # fmt: skip
    for found, of_bin in zip(table.summaries, wanted.bins.summaries, strict=True):
        assert_same_summary(found, of_bin)
    assert_same_summary(metric.summary(), wanted.summary)
    result = metric.evaluation()
    assert (result.family, result.most_entropy) == (wanted.family, pytest.approx(wanted.most_entropy))
    assert result.n_certain == wanted.n_certain
    np.testing.assert_array_equal(result.histogram.counts, wanted.histogram.counts)
    np.testing.assert_allclose(result.histogram.sums, wanted.histogram.sums, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_binary_rows_are_those_of_numpy(dtype: Any, from_logits: bool, device: str) -> None:
    preds, target = binary(3000, from_logits, 1, dtype)
    metric = BinaryCalibration(from_logits=from_logits).to(device)
    metric.update(preds.to(device), target.to(device))
    assert metric.sums.dtype == torch.float64
    assert_same(metric, evaluated(preds, target, from_logits))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 10, 257])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_multiclass_rows_are_those_of_numpy(dtype: Any, classes: int, from_logits: bool, device: str) -> None:
    preds, target = multiclass(1500, classes, from_logits, 2, dtype)
    metric = MulticlassCalibration(classes, from_logits=from_logits).to(device)
    metric.update(preds.to(device), target.to(device))
    assert_same(metric, evaluated(preds, target, from_logits))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_logits_are_read_as_the_numbers_they_hold(dtype: Any) -> None:
    preds, target = multiclass(500, 7, True, 3, dtype)
    metric = MulticlassCalibration(7, from_logits=True)
    metric.update(preds, target)
    assert_same(metric, evaluated(preds, target, True))


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
    assert_same(metric, evaluated(p, y, False))


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
    assert_same(metric, evaluated(z, y, True))


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
        assert_same(metric, evaluated(z, y, True))
        p = torch.softmax(z, 1)
        metric = MulticlassCalibration(3, from_logits=False)
        metric.update(p, y)
        assert_same(metric, evaluated(p, y, False))


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
    found = metric.compute()
    assert math.isinf(float(found["ecd"]))
    assert math.isinf(float(found["nll"]))
    assert math.isfinite(float(found["brier"]))
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


def test_the_evaluation_says_that_it_comes_from_sums() -> None:
    preds, target = binary(4000, True, 6)
    metric = BinaryECD(from_logits=True)
    metric.update(preds, target)
    result, wanted = metric.evaluation(), evaluated(preds, target, True)
    assert "from sums" in result.interval.method
    assert "from sums" in result.temperature.method
    assert result.reliability is None
    assert result.interval.high == pytest.approx(wanted.interval.high, abs=0.02)
    assert safecal.Evaluation.from_dict(result.to_dict()) == result
    assert result.verdict.decision == wanted.verdict.decision


def test_rows_that_are_ignored_add_nothing() -> None:
    preds, target = multiclass(300, 4, True, 7)
    marked = target.clone()
    marked[::3] = -100
    preds[::3] = math.nan  # padding may hold anything
    metric = MulticlassCalibration(4, from_logits=True, ignore_index=-100)
    metric.update(preds, marked)
    keep = marked != -100
    assert_same(metric, evaluated(preds[keep], target[keep], True))
    p, y = binary(90, False, 7)
    y[::3], p[::3] = 255, math.nan
    narrow = BinaryCalibration(from_logits=False, ignore_index=255)
    narrow.update(p, y.to(torch.uint8))
    assert_same(narrow, evaluated(p[y != 255], y[y != 255], False))


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
    assert_same(metric, evaluated(preds, target, False, bins=bins))


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
    assert_same(metric, evaluated(preds, target, True))
    assert float(metric.compute()) == pytest.approx(safecal.ecd(target.numpy(), logits=preds.numpy()), rel=1e-12)


def test_a_batch_that_is_refused_leaves_the_sums_alone() -> None:
    preds, target = binary(100, False, 11)
    metric = BinaryECD(from_logits=False)
    metric(preds, target)
    before = metric.sums.clone()
    for call in (metric, metric.update):
        with pytest.raises(errors.RangeError):
            call(torch.tensor([0.5, 1.5]), torch.tensor([0, 1]))
        assert torch.equal(metric.sums, before)
    metric(preds, target)
    assert torch.equal(metric.sums, 2 * before)


def test_the_state_is_one_tensor_of_constant_size() -> None:
    metric = BinaryCalibration(from_logits=True)
    shape, size = metric.sums.shape, len(pickle.dumps(metric))
    assert list(metric.metric_state) == ["sums"]
    for seed in range(50):
        metric.update(*binary(1000, True, seed))
    assert list(metric.metric_state) == ["sums"]
    assert metric.sums.shape == shape
    assert metric.sums.untyped_storage().nbytes() == shape.numel() * 8
    assert len(pickle.dumps(metric)) <= size + 64
    assert metric.summary().n == 50_000
    assert metric.full_state_update is False


def test_blocks_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from safecal.compat.torchmetrics import state

    preds, target = multiclass(500, 6, False, 12)
    whole, parts = MulticlassCalibration(6, from_logits=False), MulticlassCalibration(6, from_logits=False)
    whole.update(preds, target)
    monkeypatch.setattr(state, "rows_at_once", lambda values: 33)
    parts.update(preds, target)
    assert torch.equal(whole.sums[:, :2], parts.sums[:, :2])
    torch.testing.assert_close(whole.sums, parts.sums, rtol=1e-12, atol=1e-12)
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
        assert_same(other, evaluated(preds, target, True, bins=7))
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
    assert other.summary() == metric.summary()


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
    assert metric.sums.dtype == torch.float64
    assert_same(metric, evaluated(preds, target, False, bins=7))
    assert metric.compute()["ecd"].dtype == torch.float64
    metric.reset()
    metric.update(preds, target)
    assert_same(metric, evaluated(preds, target, False, bins=7))


def test_states_merge() -> None:
    preds, target = binary(300, True, 16)
    one, two = BinaryECD(from_logits=True), BinaryECD(from_logits=True)
    one.update(preds[:100], target[:100])
    one.compute()
    two.update(preds[100:], target[100:])
    one.merge_state(two)
    assert float(one.compute()) == pytest.approx(safecal.ecd(target.numpy(), logits=preds.numpy()), rel=1e-12)
    assert_same(one, evaluated(preds, target, True))
    empty = BinaryECD(from_logits=True)
    empty.merge_state(two.metric_state)
    assert empty.summary() == two.summary()


@pytest.mark.parametrize(
    "other",
    [
        BinaryECD(from_logits=True, bins=9),
        BinaryECD(from_logits=True, bins=safecal.Bins.from_edges([0.0, *np.linspace(0.2, 0.9, 9), 1.0])),
        MulticlassECD(3, from_logits=True),
        {"sums": torch.zeros(10, 1)},
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
    found = both.compute()
    wanted = evaluated(preds, target, True)
    assert len(both.compute_groups) == 1
    assert float(found["ecd"]) == pytest.approx(wanted.ecd, rel=1e-12)
    named = torchmetrics.MetricCollection([BinaryCalibration(from_logits=True)], prefix="val_")
    assert "val_ece" in named(preds, target)


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
import sys
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
    found = {key: float(value) for key, value in binary.compute().items()}
    table = binary.table()
    assert torch.equal(binary.sums, local)  # and each process goes on with its own
    state = {"binary": binary._all_sums(), "wide": wide._all_sums(), "wide_ecd": float(wide.compute())}
    said = {"n": table.total.n, "verdict": binary.evaluation().verdict.decision}
    np.savez(f"{folder}/{name}-{rank}.npz", **state, **said, **found)
torch.distributed.destroy_process_group()
"""


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
    alone, wide = BinaryCalibration(from_logits=False), MulticlassECD(5, from_logits=True)
    alone.update(p, y)
    wide.update(z, c)
    wanted, wanted_wide = evaluated(p, y, False), evaluated(z, c, True)
    for case in ("uneven", "empty", "silent"):
        for rank in range(2):
            with np.load(tmp_path / f"{case}-{rank}.npz") as found:
                together, merged = BinaryCalibration(from_logits=False), MulticlassECD(5, from_logits=True)
                np.testing.assert_array_equal(found["binary"][:, :3], alone.sums[:, :3])
                np.testing.assert_allclose(found["binary"], alone.sums, rtol=1e-12, atol=1e-12)
                together.sums, merged.sums = torch.tensor(found["binary"]), torch.tensor(found["wide"])
                assert_same(together, wanted)
                assert_same(merged, wanted_wide)
                assert int(found["n"]) == 1000
                assert str(found["verdict"]) == alone.evaluation().verdict.decision
                assert float(found["wide_ecd"]) == pytest.approx(wanted_wide.ecd, rel=1e-12)
                for name in METRICS:
                    assert float(found[name]) == pytest.approx(getattr(wanted, name), rel=1e-12, abs=1e-14)


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
