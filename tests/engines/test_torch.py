"""Scores of torch tensors, held to the NumPy path in float64 on the same inputs."""

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
from safecal.engines.torch import tensors as torch_rows  # noqa: E402
from safecal.engines.torch import triton_categorical  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
SHAPES = [(40, 2), (33, 3), (17, 10), (9, 64), (5, 257), (6, 1000), (3, 4097), (3, 9999), (2, 32_000)]
HALVES = [torch.float32, torch.bfloat16, torch.float16]
NOISE = 1e-30  # below it float32 has no digits


def logits_of(shape: tuple[int, ...], seed: int, scale: float = 3.0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(shape, generator=generator) * scale
    return z, torch.randint(shape[-1], shape[:-1], generator=generator)


def difficult() -> tuple[Any, Any]:
    """Sharp, tied, masked and far away rows of 37 classes."""
    z, y = logits_of((14, 37), 5)
    z[0] = 0.0
    z[1, 4] += 50.0
    y[1] = 4
    z[2, 4] += 50.0
    y[2] = 5
    z[3, 10:] = -torch.inf
    y[3] = 3
    z[4, 10:] = -torch.inf
    y[4] = 20  # impossible
    z[5] = -torch.inf
    z[5, 7] = 1.0
    y[5] = 7
    z[6, 5] = z[6, 9] = 30.0
    y[6] = 9  # most likely, but not the first of equals
    z[7, 5] = z[7, 9] = 30.0
    y[7] = 5
    z[8] += 60_000.0
    z[9] = -60_000.0
    z[9, 3] = 60_000.0
    y[9] = 3
    z[10] = torch.finfo(torch.float16).min
    z[11] = torch.linspace(-40.0, 0.0, 37)
    y[11] = 36
    z[12, ::2] = -torch.inf
    y[12] = 1
    z[13] = torch.arange(37) * 18.0
    y[13] = 36
    return z, y


def reference(z: Any, y: Any) -> Any:
    return safecal.categorical(y.cpu().numpy(), logits=z.detach().double().cpu().numpy()).score()


def assert_rows(scores: Any, z: Any, y: Any, tolerance: float = 1e-5) -> None:
    wanted = reference(z.reshape(-1, z.shape[-1]), y.reshape(-1))
    size = np.where(np.isinf(wanted.surprisal), 0.0, wanted.surprisal) + wanted.entropy
    for name in ("surprisal", "entropy", "varentropy", "excess"):
        mine, right = np.asarray(getattr(scores, name).cpu().double()).reshape(-1), getattr(wanted, name)
        np.testing.assert_array_equal(np.isinf(mine), np.isinf(right), err_msg=name)
        with np.errstate(invalid="ignore"):
            scale = size + right if name == "varentropy" else size  # of sharp rows the varentropy is far the larger
            bad = np.abs(mine - right) > tolerance * scale + NOISE
        assert not (bad & np.isfinite(right)).any(), (name, mine[bad], right[bad], size[bad])
        assert not np.isnan(mine).any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_agree_with_numpy(shape: tuple[int, int], dtype: Any, device: str) -> None:
    z, y = logits_of(shape, 1)
    z, y = z.to(dtype).to(device), y.to(device)
    scores = engine.row_scores(y, z)
    assert scores.surprisal.dtype == torch.float32
    assert scores.surprisal.device == z.device
    assert_rows(scores, z, y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("wide", [False, True])
def test_difficult_rows(dtype: Any, device: str, wide: bool) -> None:
    z, y = difficult()
    if wide:
        z = torch.cat([z, torch.full((len(z), 4500), -torch.inf)], -1)
        z[2:4, 4400:] = -20.0
    z, y = z.to(dtype).to(device), y.to(device)
    scores = engine.row_scores(y, z)
    assert_rows(scores, z, y)
    assert float(scores.surprisal[4]) == float(scores.excess[4]) == np.inf


def test_float64_keeps_its_digits() -> None:
    z, y = difficult()
    scores = engine.row_scores(y, z.double())
    assert scores.entropy.dtype == torch.float64
    assert_rows(scores, z.double(), y, 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_strides_and_chunks(device: str) -> None:
    z, y = logits_of((4, 6, 41), 2)
    z, y = z.to(device), y.to(device)
    cases = [
        (z[:, :-1], y[:, 1:]),  # the shift of a language model
        (z[:, ::2, 3:20], y[:, ::2] % 17),
        (z.transpose(0, 1), y.transpose(0, 1)),
        (z[..., ::2], y % 21),
        (z[0].T, y.reshape(-1)[:1].expand(41) % 6),
        (z[:1].expand(5, 6, 41), y[:1].expand(5, 6)),
        (z[1, 2], y[1, 2]),
        (z.reshape(2, 2, 6, 41).transpose(0, 2), y.reshape(2, 2, 6).transpose(0, 2)),
    ]
    for part, labels in cases:
        for chunk in (None, 1, 3):
            scores = engine.row_scores(labels, part, chunk=chunk)
            assert scores.entropy.shape == labels.shape
            assert_rows(scores, part, labels)
            one, two = engine.summary(labels, part, chunk=chunk), safecal.Summary()
            for row, label in zip(part.reshape(-1, part.shape[-1]), labels.reshape(-1), strict=True):
                two += engine.summary(label, row)
            assert one.n == two.n == labels.numel()
            np.testing.assert_allclose(one.sum_excess, two.sum_excess, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
@pytest.mark.parametrize("classes", [2, 5, 37, 5000])
def test_summary_is_that_of_categorical(classes: int, dtype: Any, device: str) -> None:
    z, y = difficult() if classes == 37 else logits_of((60, classes), 3)
    z, y = z.to(dtype).to(device), y.to(device)
    mine = engine.summary(y, z)
    wanted = safecal.categorical(y.cpu().numpy(), logits=z.double().cpu().numpy()).summary()
    for field in dataclasses.fields(wanted):
        a, b = getattr(mine, field.name), getattr(wanted, field.name)
        if field.name in ("n", "n_impossible", "sum_correct", "weight", "weight2", "weight3", "weight_impossible"):
            assert a == b, field.name
        else:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=field.name)
    assert (mine + wanted).n == 2 * len(y)


@pytest.mark.parametrize("device", DEVICES)
def test_ignored_rows_are_left_out(device: str) -> None:
    z, y = logits_of((3, 8, 50), 4)
    z, y = z.to(device), y.to(device)
    y[0, 2:] = -100
    z[0, 5] = torch.nan  # padding may hold anything
    keep = y != -100
    scores = engine.row_scores(y, z, ignore_index=-100)
    assert bool((scores.entropy.isnan() == ~keep).all())
    assert_rows(engine.RowScores(*(x[keep] for x in scores)), z[keep], y[keep])
    assert engine.summary(y, z, ignore_index=-100).n == int(keep.sum())
    wanted = reference(z[keep], y[keep])
    assert float(engine.ecd(y, z, ignore_index=-100)) == pytest.approx(wanted.excess.mean(), rel=1e-4)
    assert float(engine.nll(y, z, ignore_index=-100)) == pytest.approx(wanted.surprisal.mean(), rel=1e-5)
    nothing = torch.full_like(y, 7)
    assert engine.summary(nothing, z, ignore_index=7) == safecal.Summary()
    assert np.isnan(float(engine.ecd(nothing, z, ignore_index=7, check=False)))
    with pytest.raises(errors.EmptyError, match="all ignored"):
        engine.ecd(nothing, z, ignore_index=7)


def test_no_rows() -> None:
    z, y = torch.empty(0, 4), torch.empty(0, dtype=torch.long)
    assert engine.row_scores(y, z).entropy.shape == (0,)
    assert engine.summary(y, z) == safecal.Summary()
    with pytest.raises(errors.EmptyError, match="at least one row"):
        engine.nll(y, z)


def test_impossible_means_infinite() -> None:
    z, y = torch.tensor([[0.0, -torch.inf], [1.0, 0.0]]), torch.tensor([1, 0])
    assert float(engine.ecd(y, z)) == float(engine.nll(y, z)) == np.inf
    assert engine.summary(y, z).n_impossible == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("classes", [6, 5000])
def test_bad_rows_are_refused(classes: int, device: str) -> None:
    z, y = logits_of((4, classes), 6)
    z, y = z.to(device), y.to(device)

    def broken(value: float, where: Any = 1) -> Any:
        bad = z.clone()
        bad[2, where] = value
        return bad

    label = y.clone()
    label[2] = classes
    for values, labels, error, words in (
        (broken(torch.nan), y, errors.MissingValueError, "NaN"),
        (broken(torch.inf), y, errors.RangeError, "finite or -inf"),
        (broken(-torch.inf, slice(None)), y, errors.RangeError, "finite value in each row"),
        (z, label, errors.LabelError, f"from 0 to {classes - 1}; got {classes} at row 2"),
    ):
        with pytest.raises(error, match=words):
            engine.row_scores(labels, values)
        with pytest.raises(error, match="row 2"):
            engine.summary(labels, values)
        scores = engine.row_scores(labels, values, check=False)
        assert scores.surprisal.isnan().tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("z", "y", "error"),
    [
        (np.zeros((2, 3)), torch.zeros(2).long(), errors.DtypeError),
        (torch.zeros(2, 3).long(), torch.zeros(2).long(), errors.DtypeError),
        (torch.zeros(2, 3), torch.zeros(2), errors.DtypeError),
        (torch.zeros(2, 1), torch.zeros(2).long(), errors.ShapeError),
        (torch.zeros(2, 3), torch.zeros(3).long(), errors.ShapeError),
        (torch.zeros(2, 3), torch.zeros(2, device="meta").long(), errors.InputError),
    ],
)
def test_bad_arguments_are_refused(z: Any, y: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        engine.row_scores(y, z)


def test_chunk_must_be_positive() -> None:
    with pytest.raises(errors.RangeError, match="chunk"):
        engine.row_scores(torch.zeros(2).long(), torch.zeros(2, 3), chunk=0)


def test_gradients() -> None:
    z, y = logits_of((4, 5), 7, 1.0)
    z = z.double().requires_grad_()
    for k in range(4):
        assert torch.autograd.gradcheck(lambda x, k=k: engine.differentiable_row_scores(y, x)[k], (z,))
    engine.differentiable_row_scores(y, z).surprisal.sum().backward()
    wanted = torch.softmax(z.detach(), -1) - torch.nn.functional.one_hot(y, 5)
    torch.testing.assert_close(z.grad, wanted)
    for a, b in zip(engine.differentiable_row_scores(y, z), engine.row_scores(y, z), strict=True):
        torch.testing.assert_close(a.detach(), b)


def test_gradients_pass_ignored_and_masked_classes() -> None:
    z, y = logits_of((3, 5), 8, 1.0)
    z[1, 2:] = -torch.inf
    y[1], y[2] = 0, -100
    z.requires_grad_()
    scores = engine.differentiable_row_scores(y, z, ignore_index=-100)
    (scores.excess[:2].sum() + scores.varentropy[:2].sum()).backward()
    assert bool(z.grad.isfinite().all())
    assert bool((z.grad[2] == 0.0).all())


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(errors.MissingExtraError, match=r"safecal\[torch\]"):
        engine.row_scores(None, None)


INTERPRETED = """
import sys, torch
import triton.language as tl
from triton.runtime import interpreter
from safecal.engines.torch.triton_categorical import launch
from safecal.engines.torch.triton_nodes import launch_nodes
# At each call in a kernel the interpreter changes the language again, and takes longer than the kernel: do it once.
interpreter._patch_lang(tl.sum.fn)
interpreter.InterpretedFunction.__call__ = lambda self, *args, **named: self.rewrite()(*args, **named)
outputs = []
for z, y, ignored, level in torch.load(sys.argv[1]):
    out = torch.full(((4, 8, 31)[level], y.numel()), 123.0)
    launch_nodes(z, y, out, ignored) if level == 2 else launch(z, y, out, ignored, level == 1)
    outputs.append(out)
torch.save(outputs, sys.argv[2])
"""


def test_the_kernel_in_the_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    assert triton_categorical.AVAILABLE
    cases = []
    for rows, classes in [(300, 2), (9, 7), (4, 31), (5, 64), (3, 1000), (2, 1025)]:
        for dtype in HALVES if classes == 1000 else [torch.bfloat16]:
            z, y = logits_of((rows, classes), 9)
            cases += [(z.to(dtype)[None], y, -1, level) for level in (0, 2)]
    z, y = difficult()
    cases.append((z[None], y, -1, 2))
    far = torch.cat([z, torch.full((len(z), 600), -torch.inf)], -1)
    far[2:4, 500:] = -20.0
    cases += [(far[None], y, -1, level) for level in (1, 2)]
    z, y = logits_of((4, 6, 41), 10)
    y[0, 1] = 3
    cases.append((z[:, :-1], y[:, 1:].reshape(-1), 3, 1))
    torch.save(cases, tmp_path / "cases")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    run = [sys.executable, "-c", INTERPRETED, str(tmp_path / "cases"), str(tmp_path / "found")]
    subprocess.run(run, env=environment, check=True, capture_output=True)
    for (z, y, ignored, level), out in zip(cases, torch.load(tmp_path / "found"), strict=True):
        keep = y != ignored
        assert bool((out[0].isnan() == ~keep).all())
        rows = z.reshape(-1, z.shape[-1])
        assert_rows(engine.RowScores(*out[:4, keep]), rows[keep], y[keep])
        wanted = torch_rows.formulas(rows.double(), y, level)
        for at, (name, a, b) in list(enumerate(zip(torch_rows.COLUMNS, out, wanted, strict=False)))[4:]:
            if name == "top" and z.shape[-1] > 512:
                continue  # of so many classes none has cells of its own
            # A third cumulant is a difference of moments, whose digits are those of float32.
            terms = (b - wanted[at - 2] * (3.0 * wanted[at - 1] + wanted[at - 2] ** 2)).abs() if ", 3" in name else 0.0
            error = (a.double() - b).abs()[keep]
            assert bool((error <= (2e-4 + 2e-5 * b.abs() + 3e-6 * terms)[keep]).all()), (name, error)
