"""How far from 1 a row may sum: no farther than moves ECD by 0.005 nat, and as far as softmaxes in float32 ever do.

The largest ``|sum - 1|`` that was measured, over 2 million logits of each kind: N(0, 1), N(0, 3), and one class far
above the others. "NumPy" is ``exp(z - z.max()) / sum``, and SciPy's softmax. Torch adds up in float32 whatever the
dtype; JAX, NumPy and SciPy divide by a sum that they round to it, so that a whole row is off.

| classes | tolerance | float32: NumPy | torch | JAX | float16: NumPy | torch | JAX | bfloat16: torch | JAX |
|---|---|---|---|---|---|---|---|---|---|
| 2       | 7.1e-3 | 9e-8 | 9e-8 | 9e-8 | 7.2e-4   | 2.4e-4 | 7.3e-4   | 2.0e-3   | 5.4e-3   |
| 10      | 2.2e-3 | 3e-7 | 2e-7 | 2e-7 | 7.1e-4   | 3.8e-4 | 8.4e-4   | 3.0e-3 * | 5.5e-3 * |
| 100     | 1.1e-3 | 5e-7 | 4e-7 | 3e-7 | 6.8e-4   | 3.6e-4 | 8.1e-4   | 2.9e-3 * | 5.4e-3 * |
| 1000    | 7.2e-4 | 5e-7 | 9e-7 | 4e-7 | 6.9e-4   | 3.5e-4 | 7.4e-4 * | 2.3e-3 * | 5.3e-3 * |
| 10 000  | 5.4e-4 | 4e-7 | 1e-5 | 4e-7 | 6.7e-4 * | 2.6e-4 | 7.2e-4 * | 2.0e-3 * | 5.1e-3 * |
| 100 000 | 4.3e-4 | 2e-7 | 4e-5 | 2e-7 | 1.4e-3 * | 3.2e-4 | 1.4e-3 * | 1.8e-3 * | 3.2e-3 * |

A star: some of these rows are refused, and the error says what to type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import safecal
from safecal._checks.class_columns import row_sums, row_tolerance
from safecal.errors import NormalisationError

CLASSES = (2, 10, 100, 1000, 10_000, 100_000)
MOST = 0.005


def excess(p: np.ndarray, y: int) -> float:
    """Score one row, as given."""
    return float(safecal.categorical([y], p[None, :]).score().excess[0])


@pytest.mark.proof
@pytest.mark.no_cover
@given(st.integers(2, 12), st.floats(-1.0, 1.0), st.integers(0, 2**32 - 1), st.floats(0.0, 30.0))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_excess_of_a_row_moves_by_a_known_amount(classes: int, share: float, seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    d = share * row_tolerance(classes)
    with mpmath.workdps(50):
        p = [mpmath.exp(z) for z in rng.normal(0, spread, classes)]
        p = [x / mpmath.fsum(p) for x in p]
        as_given = [(1 + mpmath.mpf(d)) * x for x in p]
        h, h_given = (-mpmath.fsum(x * mpmath.log(x) for x in row) for row in (p, as_given))
        for y in range(classes):
            move = (-mpmath.log(as_given[y]) - h_given) - (-mpmath.log(p[y]) - h)
            assert abs(move - d * (mpmath.log1p(d) - h)) < 1e-40
            assert abs(move) <= MOST


@pytest.mark.parametrize("classes", [*range(2, 12), *CLASSES[2:]])
def test_no_row_that_is_accepted_moves_ecd_by_more(classes: int) -> None:
    """Search rows between certainty and nothing, at both ends of what is accepted; the bound is nearly reached."""
    rng, tolerance = np.random.default_rng(classes), row_tolerance(classes)
    moves = []
    for spread in (0.0, 1e-3, 0.5, 2.0, 10.0, 40.0):
        p = special.softmax(rng.normal(0.0, spread, classes))
        for d in (-tolerance, tolerance):
            as_given = np.minimum((1.0 + d * (1.0 - 1e-9)) * p, 1.0)
            y = int(rng.integers(classes))
            moves.append(abs(excess(as_given, y) - excess(p, y)))
    assert 0.97 * MOST < max(moves) <= MOST


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_lies_beyond_is_refused_whatever_the_dtype(dtype: type, sign: float) -> None:
    row = np.array([[0.5, 0.25, 0.125, 0.125]], dtype=dtype)
    row[0, 0] += dtype(1.1 * sign * row_tolerance(4))
    with pytest.raises(NormalisationError, match=re.escape("within 0.00358")):
        safecal.categorical([0], row)
    row[0, 0] = 0.5 + 0.8 * sign * row_tolerance(4)
    assert safecal.categorical([0], row).n == 1


def test_rows_that_were_taken_for_rounding() -> None:
    """A tolerance of K times the rounding of the dtype let these pass, and called an unsafe model safe."""
    half = np.full((1, 1000), 1.5 / 1000, dtype=np.float16)
    with pytest.raises(NormalisationError, match=r"off by \+0.5"):
        safecal.evaluate([0], half)
    single = np.full((1, 100_000), 1.0115 / 100_000, dtype=np.float32)
    with pytest.raises(NormalisationError, match=r"off by \+0.0115"):
        safecal.evaluate([0], single)


def test_values_are_used_as_given() -> None:
    p = np.array([[0.5, 0.3, 0.198]])
    assert safecal.categorical([2], p).score().surprisal == pytest.approx([-math.log(0.198)], rel=1e-15)


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_rows_are_told_so(decimals: int, dtype: type) -> None:
    classes = round(10**decimals / 2.5)  # each value is rounded down by four tenths of a unit
    row = np.full((1, classes), 1.0 / classes).round(4 + decimals)
    rounded = row.round(decimals).astype(dtype)
    wanted = f"these look rounded to {decimals} decimals: pass `y_prob / y_prob.sum(axis=1, keepdims=True)`."
    with pytest.raises(NormalisationError, match=re.escape(wanted)):
        safecal.categorical([0], rounded)
    assert safecal.categorical([0], rounded / rounded.sum(axis=1, keepdims=True)).n == 1
    with pytest.raises(NormalisationError, match="if they are unnormalised"):
        safecal.categorical([0], (0.9 * row + 1e-9).astype(dtype))


def softmax(z: np.ndarray) -> np.ndarray:
    """Return what one writes without a library."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def logits(classes: int, elements: int) -> Iterator[np.ndarray]:
    """Make vague rows, usual ones, and sharp ones."""
    rng = np.random.default_rng(classes)
    n = max(20, min(4000, elements // classes))
    yield rng.normal(0, 1, (n, classes))
    yield rng.normal(0, 3, (n, classes))
    top = np.arange(classes) == rng.integers(0, classes, (n, 1))
    yield rng.normal(0, 1, (n, classes)) + np.where(top, rng.normal(math.log(classes) + 2, 2, (n, 1)), 0.0)


def refused(p: Any) -> bool:
    """Tell whether `evaluate` refuses the rows; if so, as float32 divided by their sums they are accepted."""
    try:
        safecal.categorical(np.zeros(len(p), dtype=int), p)
    except NormalisationError as error:
        matched = re.search(r"normalise in float32: `([^`]*)`", str(error))
        assert matched is not None
        repaired = eval(matched[1], {"y_prob": p})
        assert safecal.categorical(np.zeros(len(p), dtype=int), repaired).n == len(p)
        return True
    return False


@pytest.mark.parametrize("make", [softmax, lambda z: special.softmax(z, axis=1)], ids=["numpy", "scipy"])
@pytest.mark.parametrize("classes", CLASSES[:-1])
def test_softmaxes_of_numpy_pass_in_float32_and_in_float16_up_to_100_classes(
    make: Callable[[np.ndarray], np.ndarray], classes: int
) -> None:
    for z in logits(classes, 400_000):
        p = make(z.astype(np.float32))
        assert np.abs(p.sum(axis=1, dtype=np.float64) - 1.0).max() < 1e-6
        row_sums(p, "y_prob")
        row_sums(p.astype(np.float64), "y_prob")  # saved in a wider column, they are as far off
        half = make(z.astype(np.float16))
        assert np.abs(half.sum(axis=1, dtype=np.float64) - 1.0).max() < 1e-3
        assert not refused(half) or classes > 100


# The most classes at which every row passes.
PASSES = {
    ("numpy", "float32"): 100_000,
    ("torch", "float32"): 100_000,
    ("jax", "float32"): 100_000,
    ("numpy", "float16"): 100,
    ("torch", "float16"): 100_000,
    ("jax", "float16"): 100,
    ("torch", "bfloat16"): 2,
    ("jax", "bfloat16"): 2,
}


def made(library: str, dtype: str, z: np.ndarray) -> Any:
    """Return the softmax that a library takes in a dtype."""
    if library == "numpy":
        return softmax(z.astype(dtype))
    if library == "torch":
        torch = pytest.importorskip("torch")
        return torch.softmax(torch.tensor(z).to(getattr(torch, dtype)), -1)
    jax = pytest.importorskip("jax")
    return jax.nn.softmax(jax.numpy.asarray(z.astype(np.float32)).astype(dtype), axis=-1)


@pytest.mark.extra
@pytest.mark.no_cover
@pytest.mark.parametrize("classes", CLASSES)
def test_which_softmaxes_pass(classes: int) -> None:
    """As in the table above; a thousand classes in float16 lie on the edge, and are left to it."""
    refusals: dict[tuple[str, str], bool] = dict.fromkeys(PASSES, False)
    for z in logits(classes, 2_000_000):  # drawn once: that takes as long as to look at them
        refusals = {kind: refused(made(*kind, z)) or before for kind, before in refusals.items()}
    for (library, dtype), last in PASSES.items():
        if classes <= last:
            assert not refusals[library, dtype], (library, dtype)
        elif classes > 10 * last or dtype == "bfloat16":
            assert refusals[library, dtype], (library, dtype)


@pytest.mark.extra
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_bfloat16_is_read_as_the_float32_that_it_is(library: str) -> None:
    z = np.random.default_rng(0).normal(0, 2, (50, 2))
    p = made(library, "bfloat16", z)
    wide = p.float().numpy() if library == "torch" else np.asarray(p.astype("float32"))
    y = np.arange(50) % 2
    assert safecal.evaluate(y, p) == safecal.evaluate(y, wide)
    assert safecal.evaluate(y, logits=2 * p) == safecal.evaluate(y, logits=2 * wide)


@pytest.mark.extra
def test_the_hint_for_short_floats_names_the_dtype_and_the_method_of_the_library() -> None:
    z = np.random.default_rng(0).normal(0, 3, (100, 1000))
    for library, wide in (("torch", "y_prob.float()"), ("jax", "y_prob.astype('float32')")):
        hint = f"bfloat16 rounds too much for this: pass `logits=`, or normalise in float32: `{wide} / {wide}.sum("
        with pytest.raises(NormalisationError, match=re.escape(hint)):
            safecal.evaluate(np.zeros(100, dtype=int), made(library, "bfloat16", z))
