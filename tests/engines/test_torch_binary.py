"""Two outcomes in torch tensors, held to the NumPy path in float64 on the same inputs."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal import errors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.extra

from safecal.engines import torch as engine  # noqa: E402
from safecal.engines.torch import sums as torch_sums  # noqa: E402
from safecal.engines.torch import triton_binary  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
HALVES = [torch.float32, torch.bfloat16, torch.float16]
COLUMNS = ("surprisal", "entropy", "varentropy", "excess")


def predictions(n: int, logits: bool, tiny: float = 1e-40) -> tuple[Any, Any]:
    """Return outcomes and predictions: soft and sharp ones, tosses, certainties and impossible outcomes."""
    rng = np.random.default_rng(3)
    z = rng.normal(0.0, 1.0, n) * rng.choice([1e-4, 1.0, 5.0, 30.0], n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-z))
    values = z if logits else 1.0 / (1.0 + np.exp(-z))
    hard = [0.0, np.inf, -np.inf, 200.0, -200.0] if logits else [0.5, 1.0, 0.0, tiny, 2.0**-24]
    values[: 2 * len(hard)] = hard * 2
    y[: 2 * len(hard)] = [True] * len(hard) + [False] * len(hard)
    return torch.from_numpy(y), torch.from_numpy(values)


def reference(y: Any, values: Any, logits: bool) -> Any:
    form = {"logits" if logits else "y_prob": values.detach().cpu().double().numpy()}
    return safecal.bernoulli(y.cpu().numpy().astype(int), **form)


def assert_rows(scores: Any, y: Any, values: Any, logits: bool, tolerance: float) -> None:
    wanted = reference(y, values, logits).score()
    size = np.where(np.isinf(wanted.surprisal), 0.0, wanted.surprisal) + wanted.entropy
    for name in COLUMNS:
        mine, right = np.asarray(getattr(scores, name).cpu().double()), getattr(wanted, name)
        np.testing.assert_array_equal(np.isinf(mine), np.isinf(right), err_msg=name)
        with np.errstate(invalid="ignore"):
            bad = ~np.isinf(right) & (
                np.abs(mine - right) > tolerance * (size + right * (name == "varentropy")) + 1e-37
            )
        assert not bad.any(), (name, mine[bad], right[bad], size[bad])


def assert_summary(mine: Any, wanted: Any, tolerance: float) -> None:
    for field in dataclasses.fields(safecal.Summary):
        a, b = getattr(mine, field.name), getattr(wanted, field.name)
        if isinstance(b, int) or b is None or field.name in ("sum_observed", "sum_correct", "weight2"):
            assert a == b, field.name
        else:  # the sums of signed terms are small beside their terms
            power = 3 if "excess3" in field.name or "third" in field.name else 1
            scale = max(abs(b), wanted.n**0.5 * 30.0**power if "excess" in field.name or power > 1 else abs(b))
            assert abs(a - b) <= tolerance * scale, (field.name, a, b)


def form(values: Any, logits: bool) -> dict[str, Any]:
    return {"logits" if logits else "y_prob": values}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
@pytest.mark.parametrize("logits", [False, True])
def test_rows_agree_with_numpy(logits: bool, dtype: Any, device: str) -> None:
    y, values = (x.to(device) for x in predictions(5000, logits))
    values = values.to(dtype)
    scores = engine.binary_row_scores(y, **form(values, logits))
    assert scores.surprisal.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert scores.surprisal.device == values.device
    assert_rows(scores, y, values, logits, 1e-13 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
@pytest.mark.parametrize("labels", [torch.bool, torch.uint8, torch.int32, torch.int64])
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("n", [11, 2048, 20_011])
def test_summary_is_that_of_bernoulli(n: int, logits: bool, labels: Any, dtype: Any, device: str) -> None:
    y, values = (x.to(device) for x in predictions(n, logits))
    values = values.to(dtype)
    mine = engine.binary_summary(y.to(labels), **form(values, logits))
    assert_summary(
        mine, reference(y, values, logits).summary(), 1e-12 if dtype == torch.float64 or device == "cpu" else 1e-5
    )
    assert mine.n_impossible >= 2


@pytest.mark.parametrize("device", DEVICES)
def test_shapes_and_strides(device: str) -> None:
    y, values = (x.to(device)[:4000].reshape(40, 100) for x in predictions(4000, False))
    half = engine.binary_row_scores(y[:, ::2], values[:, ::2].float())
    assert half.entropy.shape == (40, 50)
    assert_rows(
        engine.RowScores(*(x.reshape(-1) for x in half)),
        y[:, ::2].reshape(-1),
        values[:, ::2].float().reshape(-1),
        False,
        1e-5,
    )
    parts = engine.binary_summary(y[:, ::2], values[:, ::2]) + engine.binary_summary(y[:, 1::2], values[:, 1::2])
    assert_summary(parts, engine.binary_summary(y, values), 1e-12)


def test_no_rows() -> None:
    nothing = torch.empty(0)
    assert engine.binary_summary(nothing.bool(), nothing) == safecal.Summary()
    assert engine.binary_row_scores(nothing.bool(), nothing).excess.shape == (0,)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("y", "values", "logits", "error", "said"),
    [
        ([1, 0, 1], [0.2, float("nan"), 0.3], False, errors.MissingValueError, "row 1"),
        ([1, 0, 1], [0.2, 0.1, 1.5], False, errors.RangeError, "row 2"),
        ([1, 0, 1], [-0.2, 0.1, 0.5], False, errors.RangeError, "-0.2"),
        ([1, 2, 0], [0.2, 0.1, 0.5], False, errors.LabelError, "row 1"),
        ([1, -1, 0], [0.2, 0.1, 0.5], True, errors.LabelError, "-1"),
        ([1, 0, 0], [0.2, 0.1, float("nan")], True, errors.MissingValueError, "row 2"),
    ],
)
def test_bad_rows_are_refused(y: Any, values: Any, logits: bool, error: Any, said: str, device: str) -> None:
    labels, tensor = torch.tensor(y, device=device), torch.tensor(values, device=device)
    for function in (engine.binary_row_scores, engine.binary_summary):
        with pytest.raises(error, match=said):
            function(labels, **form(tensor, logits))
    scores = engine.binary_row_scores(labels, **form(tensor, logits), check=False)
    assert int(scores.surprisal.isnan().sum()) == 1


@pytest.mark.parametrize(
    ("y", "values", "error"),
    [
        (torch.zeros(2).bool(), np.zeros(2), errors.DtypeError),
        (torch.zeros(2).bool(), torch.zeros(2).int(), errors.DtypeError),
        (torch.zeros(2), torch.zeros(2), errors.DtypeError),
        (torch.zeros(2).bool(), torch.zeros(2, 2), errors.ShapeError),
        (torch.zeros(2, device="meta").bool(), torch.zeros(2), errors.InputError),
    ],
)
def test_bad_arguments_are_refused(y: Any, values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        engine.binary_summary(y, values)


def test_exactly_one_form() -> None:
    y, p = torch.zeros(2).bool(), torch.zeros(2)
    for given in ({}, {"y_prob": p, "logits": p}):
        with pytest.raises(errors.FormError, match="y_prob"):
            engine.binary_summary(y, **given)


INTERPRETED = """
import sys, torch
import triton.language as tl
from triton.runtime import interpreter
from safecal.engines.torch.triton_binary import SUMS, launch_rows, launch_sums, programs
# At each call in a kernel the interpreter changes the language again, and takes longer than the kernel: do it once.
interpreter._patch_lang(tl.sum.fn)
interpreter.InterpretedFunction.__call__ = lambda self, *args, **named: self.rewrite()(*args, **named)
outputs = []
for y, x, logits in torch.load(sys.argv[1]):
    rows = torch.full((4, y.numel()), 123.0)
    sums = torch.full((programs(y.numel()), len(SUMS)), 123.0, dtype=torch.float64)
    launch_rows(x, y, rows, logits)
    launch_sums(x, y, sums, logits)
    outputs.append((rows, sums))
torch.save(outputs, sys.argv[2])
"""


def test_the_kernel_in_the_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    assert triton_binary.AVAILABLE
    cases = []
    for n, dtype in [
        (11, torch.float32),
        (2048, torch.float32),
        (9001, torch.float32),
        (5000, torch.bfloat16),
        (700, torch.float16),
    ]:
        for logits in (False, True):
            y, values = predictions(n, logits, tiny=1e-30)  # the interpreter flushes subnormal bfloat16
            cases.append((y.to(torch.uint8), values.to(dtype), logits))
    torch.save(cases, tmp_path / "cases")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    run = [sys.executable, "-c", INTERPRETED, str(tmp_path / "cases"), str(tmp_path / "found")]
    subprocess.run(run, env=environment, check=True, capture_output=True)
    for (y, values, logits), (rows, sums) in zip(cases, torch.load(tmp_path / "found"), strict=True):
        assert_rows(engine.RowScores(*rows), y, values, logits, 1e-5)
        named = dict(zip(triton_binary.SUMS, sums.sum(0).tolist(), strict=True))
        assert named["mislabelled"] == 0.0
        assert_summary(torch_sums._summary(named, len(y)), reference(y, values, logits).summary(), 1e-5)
