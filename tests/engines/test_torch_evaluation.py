"""Evaluations of tensors, held to those of arrays."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import errors
from safecal._sums.splits import Bins

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.extra

from safecal.engines import torch as engine  # noqa: E402
from safecal.engines.torch import ScoredRows  # noqa: E402
from safecal.engines.torch.sums import Rulers, add_rows  # noqa: E402
from safecal.engines.torch.tensors import FORMS, class_columns, score_columns  # noqa: E402
from safecal.engines.torch.triton_binary import split_outcomes  # noqa: E402
from safecal.engines.torch.triton_categorical import split_classes  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def too_sharp(shape: tuple[int, ...], times: float, seed: int = 0) -> tuple[Any, Any]:
    """Return outcomes, and logits that are so many times too large."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(shape, generator=generator, dtype=torch.float64) * 2.0
    p = z.softmax(-1).reshape(-1, shape[-1])
    y = torch.multinomial(p, 1, generator=generator)[:, 0].reshape(shape[:-1])
    return y, z * times


def assert_same(actual: safecal.Evaluation, wanted: safecal.Evaluation, digits: float = 1e-9) -> None:
    assert actual.verdict.decision == wanted.verdict.decision
    assert actual.n == wanted.n
    for a, b in ((actual.interval, wanted.interval), (actual.temperature, wanted.temperature)):
        np.testing.assert_allclose([a.value, a.low, a.high], [b.value, b.low, b.high], rtol=digits, atol=digits)
    for name in ("nll", "brier", "accuracy", "ece", "esce"):
        assert getattr(actual, name) == pytest.approx(getattr(wanted, name), rel=digits, abs=digits), name
    assert len(actual.local) == len(wanted.local)
    assert (actual.groups is None) == (wanted.groups is None)
    if actual.groups is not None and wanted.groups is not None:
        assert actual.groups.keys == wanted.groups.keys
        for key in actual.groups.keys:
            assert actual.group_verdict(key).decision == wanted.group_verdict(key).decision


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("classes", "times"), [(3, 1.0), (10, 1.6), (200, 1.0), (1000, 2.0)])
def test_the_verdict_is_that_of_arrays(classes: int, times: float, device: str) -> None:
    y, z = too_sharp((2000, classes), times)
    wanted = safecal.categorical(y.numpy(), logits=z.numpy()).evaluate()
    assert_same(engine.evaluate(y.to(device), z.to(device)), wanted, 1e-5)
    narrow = engine.evaluate(y.to(device), z.float().to(device))
    assert_same(narrow, wanted, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_groups_clusters_and_weights_are_those_of_arrays(device: str) -> None:
    y, z = too_sharp((30, 50, 600), 1.5, 1)
    rng = np.random.default_rng(2)
    by, cluster = rng.integers(0, 3, (30, 50)), np.arange(30).repeat(50).reshape(30, 50)
    weight = rng.uniform(0.5, 2.0, (30, 50))
    y[0, :7] = -100
    kept = (y != -100).reshape(-1).numpy()
    rows, happened = z.reshape(-1, 600).numpy()[kept], y.reshape(-1).numpy()[kept]
    for given in ({"by": by}, {"cluster": cluster, "by": by}, {"sample_weight": weight}, {"bin_on": "entropy"}):
        flat = {name: x if isinstance(x, str) else x.reshape(-1)[kept] for name, x in given.items()}
        wanted = safecal.categorical(happened, logits=rows).evaluate(**flat)
        as_tensors = {name: x if isinstance(x, str) else torch.tensor(x) for name, x in given.items()}
        for form in (given, as_tensors):
            evaluation = engine.evaluate(y.to(device), z.to(device), ignore_index=-100, **form)
            assert_same(evaluation, wanted, 1e-6)


@pytest.mark.parametrize("classes", [5, 700])
def test_hidden_states_give_what_their_logits_give(classes: int) -> None:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(4, 60, 16, generator=generator)
    head, bias = torch.randn(classes, 16, generator=generator), torch.randn(classes, generator=generator)
    y = torch.randint(classes, (4, 60), generator=generator)
    y[1, 5:] = -100
    logits = torch.nn.functional.linear(hidden, head, bias)
    wanted = engine.evaluate(y, logits, ignore_index=-100)
    evaluation = engine.evaluate(y, hidden=hidden, weight=head, bias=bias, ignore_index=-100, chunk=37)
    assert_same(evaluation, wanted, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["logits", "y_prob"])
def test_two_outcomes_are_those_of_arrays(form: str, device: str) -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(0.0, 2.0, 3000)
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(-z / 1.7))
    values = z if form == "logits" else 1.0 / (1.0 + np.exp(-z))
    tensors = {form: torch.tensor(values).to(device)}
    labels = torch.tensor(y).to(device)
    assert_same(engine.evaluate(labels, **tensors), safecal.bernoulli(y, **{form: values}).evaluate(), 1e-9)
    by = rng.integers(0, 2, 3000)
    wanted = safecal.bernoulli(y, **{form: values}).evaluate(by=by, strategy="quantile")
    assert_same(engine.evaluate(labels, **tensors, by=by, strategy="quantile"), wanted, 1e-9)


def test_tallies_of_batches_add_up() -> None:
    y, z = too_sharp((900, 40), 1.4, 5)
    parts = sum((engine.tally(y[i : i + 300], z[i : i + 300]) for i in range(0, 900, 300)), start=safecal.Tally())
    assert_same(safecal.Evaluation.of(parts), engine.evaluate(y, z))


def test_probabilities_of_many_classes_are_read_by_numpy() -> None:
    y, z = too_sharp((400, 6), 1.0, 6)
    p = z.softmax(-1)
    assert_same(engine.evaluate(y, y_prob=p), safecal.evaluate(y.numpy(), p.numpy()))


def test_rows_without_an_answer_are_refused() -> None:
    y, z = too_sharp((50, 8), 1.0, 7)
    z[3, 1] = torch.nan
    with pytest.raises(errors.MissingValueError, match="row 3"):
        engine.evaluate(y, z)
    with pytest.raises(errors.RangeError, match="row 1"):
        engine.evaluate(torch.tensor([0, 1]), y_prob=torch.tensor([0.5, 1.5]))
    with pytest.raises(errors.EmptyError, match="at least one row"):
        engine.evaluate(torch.full((4,), -1), torch.zeros(4, 3), ignore_index=-1)
    with pytest.raises(errors.FormError, match="only one of them"):
        engine.evaluate(y)
    with pytest.raises(errors.FormError, match="lm_head"):
        engine.evaluate(y, hidden=z)
    with pytest.raises(errors.ShapeError, match="hidden"):
        engine.evaluate(y, hidden=z, weight=torch.zeros(9, 7))
    with pytest.raises(errors.DtypeError, match="hidden"):
        engine.evaluate(y, hidden=z.numpy(), weight=torch.zeros(9, 8))


def test_scored_rows_can_be_taken_but_have_no_partition() -> None:
    y, z = too_sharp((20, 9), 1.0, 8)
    rows = ScoredRows(score_columns(y, z, None, None, 2).numpy(), 9)
    assert rows.take(np.array([3, 1])).n == 2
    assert rows.ecd == pytest.approx(safecal.categorical(y.numpy(), logits=z.numpy()).ecd)
    with pytest.raises(errors.UnavailableError, match="five temperatures"):
        rows.log_partition(2.0)


INTERPRETED = """
import sys, torch
from safecal.engines.torch.triton_binary import sum_outcomes
from safecal.engines.torch.triton_categorical import sum_classes
calls = {"classes": sum_classes, "outcomes": sum_outcomes}
torch.save([calls[name](*given) for name, given in torch.load(sys.argv[1])], sys.argv[2])
"""


@pytest.mark.proof
def test_the_kernels_of_sums_in_the_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    few, many = (Rulers.of(Bins.uniform(count).edges, "cpu") for count in (10, 12))
    cases: list[tuple[str, tuple[Any, ...]]] = []
    wanted: list[dict[str, Any]] = []
    for rows, classes, rulers in ((150, 3, many), (140, 130, few)):
        y, z = too_sharp((rows, classes), 1.5)
        z[5, 0], z[7, 2], y[5], y[3] = -torch.inf, -torch.inf, 0, -100  # an impossible outcome, and a row left out
        z[9, 1], z[11, 2], y[9], y[11] = 60.0, 60.0, 1, 0  # confidences that are rounded to 1
        columns = score_columns(y, z, -100, None, 2).float()
        cases.append(("classes", (columns, y, *rulers, classes, -100)))
        wanted.append(add_rows(class_columns(columns, y, classes), y != -100, rulers))
    for logits, ignored, rulers in ((True, None, few), (False, 7, many)):
        y, z = (torch.arange(600) % 2).to(torch.uint8), torch.linspace(-9.0, 9.0, 600)
        z[1], z[2], y[1] = torch.inf, -torch.inf, 0
        y[5] = 0 if ignored is None else ignored
        x = z if logits else z.sigmoid()
        edges = rulers.edges.logit() if logits else rulers.edges
        cases.append(("outcomes", (x, y, edges, rulers.centres, logits, ignored)))
        wanted.append(add_rows(FORMS["bernoulli", logits](x, y), y != (7 if ignored else 9), rulers))
    # What float32 does not hold, and what has no answer, is counted: such sums are not used.
    y, z = torch.tensor([0, 1, 5], dtype=torch.uint8), torch.tensor([1e13, torch.nan, 0.0])
    cases.append(("outcomes", (z, y, few.edges.logit(), few.centres, True, None)))
    torch.save(cases, tmp_path / "cases")
    run = [sys.executable, "-c", INTERPRETED, str(tmp_path / "cases"), str(tmp_path / "found")]
    subprocess.run(run, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, capture_output=True)
    *sums, last = torch.load(tmp_path / "found")
    assert last[:2].tolist() == [2.0, 1.0]
    for (name, given), summed, states in zip(cases, sums, wanted, strict=False):
        split = split_outcomes if name == "outcomes" else partial(split_classes, classes=given[4])
        sums_by_state = split(summed.numpy(), len(given[2]) - 1)
        assert sums_by_state.pop("bad") == sums_by_state.pop("far") == 0.0
        for state, values in sums_by_state.items():
            expected = states[state].double().numpy()
            # Terms of a sum may cancel; those of one state are of like size.
            np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
            if state in ("sums", "ordered"):
                np.testing.assert_array_equal(values[:, :3], expected[:, :3])
