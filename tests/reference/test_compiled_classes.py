"""The compiled kernel scores K classes as NumPy does, and both as 700 digits do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import safecal
from safecal._kernels import classes as kernel
from safecal._kernels import compiled

from .test_categorical import assert_exact, logits_of, softmax
from .test_compiled import needs_kernel


def agree(values: np.ndarray, y: np.ndarray, *, logits: bool) -> None:
    """Compare all columns: to 1e-13 of the sizes they are made of."""
    needs_kernel()
    wide = np.ascontiguousarray(values, dtype=np.float64)
    if logits:
        quick, slow = kernel.from_logits(values, y, True), kernel._from_logits(wide, y, True)
    else:
        quick, slow = kernel.from_probabilities(values, y), kernel._from_probabilities(wide, y)
    assert quick.top.tolist() == slow.top.tolist()
    assert np.isposinf(quick.excess).tolist() == np.isposinf(slow.excess).tolist()
    possible = ~np.isposinf(slow.excess)
    scale = 1.0 + np.where(possible, slow.surprisal, 0.0) + slow.entropy
    powers = {"excess": 1, "surprisal": 1, "entropy": 1, "varentropy": 2, "third_cumulant": 3}
    for name in ("excess", "surprisal", "entropy", "varentropy", "third_cumulant", "brier", "confidence"):
        a, b = getattr(quick, name)[possible], getattr(slow, name)[possible]
        power = powers.get(name, 0)
        size = scale[possible] if power < 2 else np.minimum(scale[possible], 1e4)
        assert (np.abs(a - b) <= 1e-13 * size**power).all(), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 7, 8, 9, 63, 127, 128, 129, 136, 1000, 1024, 1025, 5003])
def test_any_number_of_classes_and_rows(classes: int, dtype: type, rng: np.random.Generator) -> None:
    for rows in (1, 7, 8, 9, 20):
        for spread in (1e-6, 1.0, 30.0, 300.0):
            z = rng.normal(0.0, spread, (rows, classes)).astype(dtype)
            y = rng.integers(0, classes, rows)
            agree(z, y, logits=True)
            agree(z, z.argmax(axis=1), logits=True)
            p = softmax(z.astype(np.float64)).astype(dtype)
            agree(p, y, logits=False)
            agree(p, p.argmax(axis=1), logits=False)


@pytest.mark.parametrize("classes", [100_000, 128_256])
def test_a_vocabulary_of_classes(classes: int, rng: np.random.Generator) -> None:
    z = rng.normal(0.0, 3.0, (3, classes)).astype(np.float32)
    agree(z, rng.integers(0, classes, 3), logits=True)
    agree(softmax(z.astype(np.float64)), rng.integers(0, classes, 3), logits=False)


@pytest.mark.parametrize("classes", [3, 200])
def test_ties_have_their_first_class_on_top(classes: int) -> None:
    z = np.zeros((9, classes))
    z[:, classes // 2] = z[:, classes - 1] = np.arange(9.0)
    z[0, 0] = -0.0
    agree(z, np.full(9, classes - 1), logits=True)
    agree(np.full((9, classes), 1.0 / classes), np.arange(9) % classes, logits=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [4, 300])
def test_impossible_classes_and_the_largest_gaps(classes: int, dtype: type, rng: np.random.Generator) -> None:
    big = float(np.finfo(dtype).max)
    z = rng.normal(0.0, 2.0, (24, classes)).astype(dtype)
    z[:8, 1:] = -np.inf
    z[8:12, 0], z[8:12, 1] = big, -big
    z[12:16, 0] = big / 4
    z[16:20, ::2] = -np.inf
    z[20:, 0] = z[20:].max(axis=1) + np.array([40.0, 700.0, 720.0, 744.0], dtype=dtype)
    for y in (np.zeros(24, dtype=int), np.ones(24, dtype=int)):
        agree(z, y, logits=True)
    p = np.zeros((3, classes))
    p[0, 0], p[1, :2], p[2, :2] = 1.0, (1e-310, 1.0), (5e-324, 1.0)
    for y in (0, 1, 2):
        agree(p, np.full(3, y), logits=False)


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("form", ["logits", "y_prob"])
@pytest.mark.parametrize(
    ("classes", "rows", "spread"),
    [(2, 9, 5.0), (10, 9, 30.0), *(pytest.param(150, 2, spread, marks=pytest.mark.proof) for spread in (1.0, 1e-8))],
)
def test_both_paths_keep_14_digits(
    form: str, classes: int, rows: int, spread: float, built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if built:
        needs_kernel()
    else:
        monkeypatch.setattr(compiled, "_module", None)
    z = logits_of(classes, rows, spread)
    assert_exact(form, z if form == "logits" else softmax(z))


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("classes", [2, pytest.param(150, marks=pytest.mark.proof)])
def test_both_paths_put_back_the_rounding_of_large_gaps(
    classes: int, built: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    if built:
        needs_kernel()
    else:
        monkeypatch.setattr(compiled, "_module", None)
    top = rng.uniform(-50.0, 50.0, 3)
    others = top[:, None] - rng.uniform(80.0, 640.0, 3)[:, None] - rng.uniform(0.0, 3.0, (3, classes - 1))
    z = np.column_stack([others, top])
    assert_exact("logits", z)
    assert_exact("logits", z.astype(np.float32))


@pytest.mark.parametrize("classes", [5, 200])
def test_any_layout_and_type_of_numbers(classes: int, rng: np.random.Generator) -> None:
    z = np.round(rng.normal(0.0, 3.0, (30, classes)) * 8.0)
    y = rng.integers(0, classes, 30)
    one = safecal.categorical(y, logits=z).score()
    forms = [z.astype(np.float32), z.astype(np.float16), z.astype(np.int64), z.astype(">f4"), np.asfortranarray(z)]
    forms += [np.repeat(z, 2, axis=1)[:, ::2], np.repeat(z.astype(np.float32), 2, axis=0)[::2]]
    for form in forms:
        other = safecal.categorical(y.astype(np.int32), logits=form).score()
        for name in ("excess", "varentropy", "third_cumulant", "brier", "confidence"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_the_result_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    z = rng.normal(0.0, 3.0, (5000, 300)).astype(np.float32)
    predictions = safecal.categorical(rng.integers(0, 300, 5000), logits=z)
    one = predictions.table(), predictions.summary()
    monkeypatch.setattr("safecal._sums.sweep._LARGE", 1)
    for threads in (1, 2, 5):
        monkeypatch.setattr("safecal._sums.sweep._THREADS", threads)
        assert (predictions.table(), predictions.summary()) == one


def test_the_kernel_refuses_what_does_not_fit() -> None:
    needs_kernel()
    z, y, columns, top = np.zeros((3, 4)), np.zeros(3, dtype=np.int64), np.zeros((7, 3)), np.zeros(3, dtype=np.int64)
    call = compiled._module.class_scores
    with pytest.raises(ValueError, match="values must hold 15 items of 8 bytes"):
        call(3, 5, 8, 1, z, y, columns, top)
    with pytest.raises(ValueError, match="values must hold 12 items of 4 bytes"):
        call(3, 4, 4, 1, z, y, columns, top)
    with pytest.raises(ValueError, match="columns must hold 21 items"):
        call(3, 4, 8, 1, z, y, columns[:2].copy(), top)
    for n, classes, item in ((3, 1, 8), (-1, 4, 8), (3, 4, 2), (3, 2**60, 8)):
        with pytest.raises(ValueError, match="2 classes or more"):
            call(n, classes, item, 1, z, y, columns, top)
    for bad in (-1, 4):
        assert call(3, 4, 8, 1, z, np.full(3, bad), columns, top) is False
    assert call(3, 4, 8, 1, np.full((3, 4), math.nan), y, columns, top) is True  # of no use, and of no harm
