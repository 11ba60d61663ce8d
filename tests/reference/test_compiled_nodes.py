"""Nodes of the log-partition function: NumPy agrees with 60 digits, the compiled kernel with NumPy."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import special

import safecal
from safecal._kernels import compiled
from safecal._kernels.compiled import class_scores, column_sums, floats
from safecal._kernels.spectrum import NODES, binary_node_rows, node_rows

from .test_categorical import softmax
from .test_compiled import needs_kernel

RNG = np.random.default_rng(13)


def exact(gaps: np.ndarray) -> list[list[float]]:
    """Return R, its derivatives, and the mean size of the terms of the third one, for a row at each node."""
    out = []
    with mpmath.workdps(60):
        g = [mpmath.mpf(0), *(mpmath.mpf(float(gap)) for gap in gaps if math.isfinite(gap))]
        for beta in NODES:
            w = [mpmath.exp(-beta * x) for x in g]
            rest, total = mpmath.fsum(w[1:]), mpmath.fsum(w)
            mean = mpmath.fsum(a * x for a, x in zip(w, g, strict=True)) / total
            second, third, size = (
                mpmath.fsum(a * f(x - mean) for a, x in zip(w, g, strict=True)) / total
                for f in (lambda x: x**2, lambda x: x**3, lambda x: abs(x) ** 3)
            )
            out.append([float(v) for v in (mpmath.log1p(rest), -mean, second, -third, size)])
    return out


def sizes(gaps: np.ndarray) -> np.ndarray:
    """Return what each number is compared with: itself, and the third derivative with the sizes of its terms."""
    wanted = node_rows(gaps)
    out = np.abs(wanted)
    g = np.minimum(gaps, 1e90)
    for k, beta in enumerate(NODES):
        w = np.exp(-beta * g)
        mean = -wanted[k, 1]
        x = np.abs(g - mean[:, None])
        out[k, 3] = ((w * x * x * x).sum(axis=1) + mean**3) / (1.0 + w.sum(axis=1))
    return out


ROWS = {
    "two classes": np.array([[0.0], [1e-9], [0.5], [3.0], [40.0], [170.0], [600.0], [2000.0], [1e6], [math.inf]]),
    "ten": np.abs(RNG.normal(0.0, 4.0, (30, 9))),
    "ties": np.zeros((3, 7)),
    "one scale for each row": np.abs(RNG.normal(0.0, 1.0, (12, 5))) * 10.0 ** np.arange(-9.0, 3.0)[:, None],
    "many alike, far from the top": 20.0 + RNG.normal(0.0, 1e-3, (4, 300)),
    "some impossible": np.where(RNG.random((20, 6)) < 0.5, np.inf, np.abs(RNG.normal(0.0, 3.0, (20, 6)))),
}


@pytest.mark.parametrize("name", ROWS)
def test_numpy_keeps_13_digits(name: str) -> None:
    gaps = ROWS[name]
    at_nodes = node_rows(gaps)
    assert at_nodes.shape == (5, 4, len(gaps))
    for row, given in enumerate(gaps):
        for k, (*wanted, size) in enumerate(exact(given)):
            for j, (value, scale) in enumerate(zip(wanted, (*wanted[:3], size), strict=True)):
                assert abs(at_nodes[k, j, row] - value) <= 1e-13 * abs(scale) + 1e-300, (row, NODES[k], j)


def test_the_derivatives_are_those_of_the_values() -> None:
    gaps = np.abs(np.random.default_rng(73).normal(0.0, 2.0, (50, 8)))
    eps = 1e-5
    near = [np.log1p(np.exp(-(1.0 + step) * gaps).sum(axis=1)) for step in (-eps, eps)]
    assert node_rows(gaps)[2, 1] == pytest.approx((near[1] - near[0]) / (2.0 * eps), rel=1e-8)


def test_the_most_likely_outcome_may_have_a_place_or_none() -> None:
    gaps = ROWS["ten"]
    placed = np.insert(gaps, 4, np.inf, axis=1)
    assert node_rows(placed) == pytest.approx(node_rows(gaps), rel=1e-14)


def gaps_of(values: np.ndarray, *, logits: bool) -> np.ndarray:
    """Return the gaps, with +inf in the place of the most likely class."""
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        z = wide if logits else np.log(wide)
        i, top = np.arange(len(z)), wide.argmax(axis=1)
        gaps = z[i, top][:, None] - z
    gaps[i, top] = np.inf
    return gaps


def rounding(p: np.ndarray) -> np.ndarray:
    """Return what the last digits of the logarithms of probabilities do: a gap is no better than those."""
    gaps = gaps_of(p, logits=False)
    nodes = node_rows(gaps)
    digits = 1e-15 * (1.0 - np.log(np.where(p > 0.0, p, 1.0).min(axis=1)))
    share = -np.expm1(-nodes[:, 0])  # of all classes but the top one
    out = np.stack([np.array(NODES)[:, None] * share, share, 2.0 * np.sqrt(nodes[:, 2] * share), 3.0 * nodes[:, 2]], 1)
    return np.asarray(digits * out)


def assert_same_nodes(values: np.ndarray, *, logits: bool) -> None:
    """Compare to 1e-12 of each number, the third derivative to 1e-12 of its terms; and the columns with those alone.

    Probabilities are allowed the last digits of their logarithms besides.
    """
    needs_kernel()
    y = np.random.default_rng(112).integers(0, values.shape[1], len(values))
    scored, plain = (class_scores(floats(values), y, logits=logits, nodes=nodes) for nodes in (True, False))
    assert scored is not None
    assert plain is not None
    assert plain[2] is None
    assert scored[2] is not None
    gaps = gaps_of(values, logits=logits)
    known = 0.0 if logits else rounding(np.asarray(values, dtype=np.float64))
    assert (np.abs(scored[2] - node_rows(gaps)) <= 1e-12 * sizes(gaps) + known + 1e-300).all()
    assert scored[1].tolist() == plain[1].tolist()
    possible = np.isfinite(plain[0][0])
    assert possible.tolist() == np.isfinite(scored[0][0]).tolist()
    with_nodes, alone = scored[0][:, possible], plain[0][:, possible]
    size = 1.0 + alone[3] + alone[4]
    for column, power in enumerate((1, 2, 3, 1, 1, 0, 0)):
        scale = size if power < 2 else np.minimum(size, 1e4)
        assert (np.abs(with_nodes[column] - alone[column]) <= 1e-13 * scale**power).all(), column


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "classes",
    [2, 3, 8, 129, *(pytest.param(k, marks=pytest.mark.proof) for k in (10, 127, 128, 1000, 1024, 1025, 5003))],
)
def test_any_number_of_classes_and_rows(classes: int, dtype: type) -> None:
    for rows in (1, 7, 8, 9, 20):
        for spread in (1e-6, 1.0, 5.0, 30.0, 300.0):
            z = np.random.default_rng(136).normal(0.0, spread, (rows, classes)).astype(dtype)
            assert_same_nodes(z, logits=True)
            assert_same_nodes(softmax(z.astype(np.float64)).astype(dtype), logits=False)


def test_a_vocabulary_of_classes() -> None:
    z = np.random.default_rng(142).normal(0.0, 3.0, (3, 100_000)).astype(np.float32)
    assert_same_nodes(z, logits=True)
    assert_same_nodes(softmax(z.astype(np.float64)), logits=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [4, 300])
def test_impossible_classes_and_the_largest_gaps(classes: int, dtype: type) -> None:
    big = float(np.finfo(dtype).max)
    z = np.random.default_rng(151).normal(0.0, 2.0, (24, classes)).astype(dtype)
    z[:8, 1:] = -np.inf
    z[8:12, 0], z[8:12, 1] = big, -big
    z[12:16, ::2] = -np.inf
    z[16:, 0] = z[16:].max(axis=1) + np.array([40, 170, 180, 190, 700, 744, 2900, 3100], dtype=dtype)
    assert_same_nodes(z, logits=True)
    p = np.zeros((4, classes))
    p[0, 0], p[1, :2], p[2, :2], p[3] = 1.0, (1e-310, 1.0), (5e-324, 1.0), 1.0 / classes
    assert_same_nodes(p, logits=False)


@pytest.mark.parametrize("classes", [5, 200])
def test_confident_rows_among_others(classes: int) -> None:
    """Where a row is so sharp that its columns are mended, its neighbours are left alone."""
    z = np.random.default_rng(165).normal(0.0, 2.0, (16, classes))
    z[::3, 1] += 60.0
    assert_same_nodes(z, logits=True)
    assert_same_nodes(z.astype(np.float32), logits=True)


def test_the_kernel_refuses_what_does_not_fit() -> None:
    needs_kernel()
    z, y, columns, top = np.zeros((3, 4)), np.zeros(3, dtype=np.int64), np.zeros((7, 3)), np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="nodes must hold 60 items"):
        compiled._module.class_scores(3, 4, 8, 1, z, y, columns, top, np.zeros((5, 4, 2)))


def test_without_the_kernel_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_module", None)
    assert class_scores(np.zeros((1, 2)), np.zeros(1, dtype=int), logits=True, nodes=True) is None


def _two_outcomes(name: str, rng: np.random.Generator) -> np.ndarray:
    z = rng.normal(0.0, 3.0, 5000)
    z[:6] = [0.0, 1e-9, -1e-9, 700.0, -2900.0, 4000.0]
    p = special.expit(z)
    p[:4] = [0.0, 1.0, 0.5, 1e-200]
    return z if name == "logits" else p


@pytest.mark.parametrize("keys", [1, 7, 200])
@pytest.mark.parametrize("name", ["logits", "y_prob"])
def test_two_outcomes_have_the_nodes_of_numpy(name: str, keys: int, rng: np.random.Generator) -> None:
    needs_kernel()
    values = _two_outcomes(name, rng)
    rows = safecal.bernoulli(rng.random(len(values)) < 0.5, **{name: values})
    index = rng.integers(0, keys, len(values))
    sums = rows.quick_sums(slice(0, rows.n), keys=keys, index=index, nodes=True)
    assert sums is not None
    assert sums.nodes is not None
    wanted = binary_node_rows(rows.gaps(slice(0, rows.n))[:, 0]).reshape(20, -1)
    np.testing.assert_allclose(sums.nodes, column_sums(list(wanted), index, keys), rtol=1e-13)


def test_two_outcomes_are_two_classes(rng: np.random.Generator) -> None:
    odds = np.concatenate([rng.gamma(2.0, 2.0, 500), [0.0, 300.0, np.inf]])
    two_outcomes, wanted = binary_node_rows(odds), node_rows(odds[:, None])
    np.testing.assert_allclose(two_outcomes[:, :3], wanted[:, :3], rtol=1e-13)
    np.testing.assert_allclose(two_outcomes[:, 3], wanted[:, 3], rtol=1e-13, atol=1e-13)  # where central moments cancel


@pytest.mark.parametrize("n", [0, 1, 8, 13, 400])
def test_a_logistic_regression_has_the_sums_that_numpy_gives(
    n: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    needs_kernel()
    z = np.concatenate([rng.normal(0.0, 5.0, n), [0.0, 1e4, -1e4, 30.0][: n // 3]])
    happened, mass = rng.random(len(z)) < 0.5, rng.gamma(2.0, 3.0, len(z))
    rows = z, np.where(happened, -1.0, 1.0), mass
    places = [(0.0, 1.0), (0.7, 1.3), (-2.0, 0.0), (3.0, -40.0), (90.0, 99.0), (1e-9, 1e-9), (0.0, 1e300)]
    kernel_sums = [compiled.logistic_sums(*place, *rows) for place in places]
    monkeypatch.setattr(compiled, "_module", None)
    with np.errstate(over="ignore"):
        wanted = [compiled.logistic_sums(*place, *rows) for place in places]
    np.testing.assert_allclose(kernel_sums, wanted, rtol=1e-13, atol=1e-13 * (1.0 + float(mass @ (1.0 + z * z))))
    assert math.isnan(compiled.logistic_sums(math.nan, 1.0, *rows)[0]) == bool(n)


def test_columns_of_a_logistic_regression_must_be_as_long_as_each_other() -> None:
    needs_kernel()
    one = np.ones(3)
    with pytest.raises(ValueError, match="mass must hold 3 items of 8 bytes"):
        compiled.logistic_sums(0.0, 1.0, one, one, np.ones(2))
