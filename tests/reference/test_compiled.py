"""The compiled kernel gives the sums of two-outcome rows that NumPy gives, on every kind of rows."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safecal
from safecal import Bins, Summary, Table
from safecal._kernels import compiled
from safecal._sums import Tally
from safecal._sums.splits import Plan


def needs_kernel() -> None:
    if not compiled.available():
        pytest.skip("the compiled kernel was not built")


def both(
    monkeypatch: pytest.MonkeyPatch,
    values: np.ndarray,
    y: np.ndarray,
    bins: int | Bins = 10,
    *,
    form: str = "y_prob",
    bin_on: str | None = None,
    by: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> tuple[Tally, Tally]:
    """Return the sums of the compiled kernel, and those of NumPy."""
    needs_kernel()
    predictions = safecal.bernoulli(y, **{form: values})
    plan = Plan.of(predictions, bins, bin_on)
    quick = Tally.of_checked(predictions, plan, weight, by, None)
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "_module", None)
        return quick, Tally.of_checked(predictions, plan, weight, by, None)


def _scale(name: str, p: np.ndarray) -> float:
    """Return the largest size of a term of a sum."""
    q = np.minimum(p, 1.0 - p)
    spread = float(-np.log(q[q > 0]).min(initial=0.0) * -1 + 1.0) if (q > 0).any() else 1.0
    power = 3 if "3" in name or "third" in name else 2 if "2" in name or "varentropy" in name else 1
    return max(1.0, spread) ** power


def _agree(a: Summary, b: Summary, p: np.ndarray) -> None:
    for field in fields(Summary):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if x is None or y is None or isinstance(x, int):
            assert x == y, field.name
        else:
            assert x == pytest.approx(y, rel=1e-12, abs=1e-13 * len(p) * _scale(field.name, p)), field.name


def _all_agree(quick: Tally, slow: Tally, p: np.ndarray) -> None:
    _agree(quick.summary, slow.summary, p)
    for a, b in ((quick.bins, slow.bins), (quick.groups, slow.groups)):
        assert (a is None) == (b is None)
        if isinstance(a, Table) and isinstance(b, Table):
            assert a.keys == b.keys
            for x, y in zip(a.summaries, b.summaries, strict=True):
                _agree(x, y, p)
    assert quick.n_certain == slow.n_certain
    assert sum(quick.histogram.counts) == pytest.approx(sum(slow.histogram.counts), rel=1e-12)
    moved = np.abs(np.array(quick.histogram.counts) - np.array(slow.histogram.counts)).sum()
    assert moved <= 2 + 1e-3 * len(p)  # a last digit moves a row over the edge of a cell now and then


RNG = np.random.default_rng(4)
ROWS = {
    "uniform": RNG.random(9000),
    "sharp": 1 / (1 + np.exp(-RNG.normal(0, 12, 9000))),
    "near a half": 0.5 + RNG.normal(0, 1e-9, 9000),
    "exact halves and edges": RNG.choice([0.5, 0.1, 0.2, 0.3, 0.7, 0.9, 0.25], 9000),
    "tiny": RNG.choice([1e-12, 1e-100, 1e-299, 1 - 2**-53, 0.4], 9000),
    "certain": RNG.choice([0.0, 1.0, 0.4], 9000),
    "smaller than the formulas allow": RNG.choice([1e-310, 5e-324, 0.4], 9000),
    "float32": RNG.random(9000).astype(np.float32),
    "one row": np.array([0.3]),
    "a chunk": RNG.random(1024),
    "a chunk and one": RNG.random(1025),
    "almost all in one bin": np.where(RNG.random(9000) < 0.99, 0.02, 0.7),
    "certain and right or wrong": RNG.choice([0.0, 1.0], 900),
}
LOGITS = {
    "normal": RNG.normal(0.0, 3.0, 9000),
    "flat": RNG.normal(0.0, 1e-9, 9000),
    "about where flat begins": RNG.normal(0.0, 0.015, 9000),
    "sharp": RNG.normal(0.0, 300.0, 9000),
    "zeros of both signs": RNG.choice([0.0, -0.0], 900),
    "underflow": RNG.choice([709.0, -740.0, 745.2, -800.0, 1e5], 9000),
    "infinite": RNG.choice([math.inf, -math.inf, 1.0], 9000),
    "float32": RNG.normal(0.0, 3.0, 9000).astype(np.float32),
    "every other": RNG.normal(0.0, 3.0, 9001)[::2],
}


def chance(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of log-odds."""
    return 1.0 / (1.0 + np.exp(-np.clip(np.asarray(logits, dtype=np.float64), -700.0, 700.0)))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("bins", [1, 10, *(pytest.param(k, marks=pytest.mark.proof) for k in (2, 15, 256, 300))])
def test_the_same_sums_as_numpy(
    name: str, bins: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    p = ROWS[name]
    happened = rng.random(len(p)) < p
    _all_agree(*both(monkeypatch, p, happened, bins), np.asarray(p, dtype=np.float64))


@pytest.mark.parametrize("name", LOGITS)
@pytest.mark.parametrize("bin_on", ["probability", "confidence"])
@pytest.mark.parametrize("bins", [1, 7, pytest.param(256, marks=pytest.mark.proof)])
def test_log_odds_have_the_same_sums(
    name: str, bin_on: str, bins: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    logits = LOGITS[name]
    p = chance(logits)
    kernel_and_numpy = both(monkeypatch, logits, rng.random(len(p)) < p, bins, form="logits", bin_on=bin_on)
    _all_agree(*kernel_and_numpy, np.clip(p, 1e-300, 1.0))


@pytest.mark.parametrize("name", ["uniform", "sharp", "certain and right or wrong", "float32", "one row"])
@pytest.mark.parametrize("bins", [1, 10])
def test_weights_have_the_same_sums(
    name: str, bins: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    p = ROWS[name]
    y, weight = rng.random(len(p)) < p, rng.choice([0.0, 0.3, 1.7], len(p)) + (np.arange(len(p)) == 0)
    wide = np.asarray(p, dtype=np.float64)
    _all_agree(*both(monkeypatch, p, y, bins, weight=weight), wide)
    _all_agree(*both(monkeypatch, p, y, bins, weight=weight, by=rng.integers(0, 3, len(p))), wide)
    _all_agree(*both(monkeypatch, np.log(wide + 1e-9), y, bins, weight=weight, form="logits"), wide)


def _columns(scored: safecal.Scored) -> dict[str, np.ndarray]:
    """Return the columns by the name of their sum."""
    names = ("excess", "varentropy", "entropy", "confidence", "correct", "brier", "predicted", "observed")
    columns = {f"sum_{name}": np.asarray(getattr(scored, name), dtype=float) for name in names}
    return columns | {
        "sum_excess2_weight2": scored.excess**2,
        "sum_excess3_weight3": scored.excess**3,
        "sum_third_cumulant_weight3": scored.third_cumulant,
        "n": np.ones(len(scored)),
    }


@pytest.mark.parametrize("form", ["y_prob", "logits"])
@pytest.mark.parametrize("size", [1e-300, 1e-15, 1e-8, 1e-3, 0.1, 1.0, 10.0, 200.0])
def test_every_sum_keeps_its_digits(form: str, size: float, rng: np.random.Generator) -> None:
    """However flat or sharp the rows are: 1e-14 of the sum of the sizes of the terms."""
    needs_kernel()
    values = rng.normal(0.0, size, 3000)
    if form == "y_prob":
        values = 0.5 + values if size < 0.1 else np.clip(chance(values), 1e-200, 1 - 1e-15)
    y = rng.random(3000) < (values if form == "y_prob" else chance(values))
    predictions = safecal.bernoulli(y, **{form: values})
    sums = predictions.quick_sums(slice(0, 3000))
    assert sums is not None
    for name, column in _columns(predictions.score()).items():
        scale = math.fsum(np.abs(column))
        assert abs(sums.by_key[name][0] - math.fsum(column)) <= 1e-14 * scale + 1e-300, name


@pytest.mark.parametrize("groups", [1, 3, *(pytest.param(k, marks=pytest.mark.proof) for k in (256, 257))])
def test_groups_and_given_edges(groups: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    p = ROWS["uniform"]
    y = rng.random(len(p)) < p
    by = rng.integers(0, groups, len(p))
    _all_agree(*both(monkeypatch, p, y, Bins.from_edges([0.0, 0.05, 0.5, 0.9, 1.0]), by=by), p)
    _all_agree(*both(monkeypatch, p, y, Bins.from_edges([-math.inf, 0.5, math.inf]), by=by), p)


@given(
    rows=st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=40),
    bins=st.integers(1, 20),
)
def test_any_rows(rows: list[tuple[float, bool]], bins: int) -> None:
    p, y = (np.array(column) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patched:
        quick, slow = both(patched, p, y, bins)
    assert quick.summary.n_impossible == slow.summary.n_impossible
    _all_agree(quick, slow, p)


def test_bins_hold_the_rows_that_bins_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (*range(2, 60), 100, 199, 200, 255):
        bins = Bins.uniform(count)
        edges = np.array(bins.edges)
        p = np.concatenate([edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)])
        p = p[(p > 1e-299) & (p < 1)]
        quick, _ = both(monkeypatch, p, p > 0.5, bins)
        assert quick.bins is not None
        assert [s.n for s in quick.bins.summaries] == np.bincount(bins.index(p), minlength=count).tolist(), count


def test_outcomes_of_any_layout_give_the_same(rng: np.random.Generator) -> None:
    needs_kernel()
    p = rng.random(3001)
    y = rng.random(len(p)) < p
    wanted = compiled.bernoulli_sums(p, y)
    assert wanted is not None
    noise = rng.integers(0, 2, (len(p), 8)).astype(bool)  # what stands between outcomes is none of them
    noise[:, 0] = y
    apart = noise.ravel()[: 8 * len(p) - 7 : 8]
    for happened in (apart, np.repeat(y, 3)[::3], np.repeat(y, 2)[::2], np.asfortranarray(noise)[:, 0]):
        kernel_sums = compiled.bernoulli_sums(p, happened)
        assert kernel_sums is not None
        assert all(np.array_equal(kernel_sums.by_key[name], wanted.by_key[name]) for name in wanted.by_key)
    for dtype in (np.int8, np.uint16, np.int32, np.int64, np.uint64, ">i8", ">i4", np.float64):
        assert safecal.bernoulli(y.astype(dtype), p).table() == safecal.bernoulli(y, p).table()


def test_the_result_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    needs_kernel()
    p = rng.random(300_000)
    predictions = safecal.bernoulli(rng.random(len(p)) < p, p)
    one = predictions.table()
    monkeypatch.setattr("safecal._sums.sweep._LARGE", 1)
    for threads in (1, 2, 5):
        monkeypatch.setattr("safecal._sums.sweep._THREADS", threads)
        assert predictions.table() == one


def test_the_kernel_refuses_what_does_not_fit() -> None:
    needs_kernel()
    sums = np.zeros((1, 13))
    p, y = np.full(3, 0.5), np.zeros(3, dtype=np.uint8)

    def call(values: np.ndarray, happened: np.ndarray, out: object, keys: int = 1, **given: np.ndarray | None) -> int:
        rest = (given.get("weight"), given.get("edges"), given.get("index"))
        return int(compiled._module.binary_sums(3, keys, 8, 0, 0, values, happened, *rest, out, None))

    for bad in (y[:2], np.zeros((3, 1), dtype=np.uint8), np.zeros(3), np.zeros(9, dtype=np.uint8)[::3], y[::-1]):
        with pytest.raises(ValueError, match="happened must hold 3 items of 1 bytes"):
            call(p, bad, sums)
    with pytest.raises(ValueError, match="sums must hold 26 items"):
        call(p, y, sums, keys=2)
    with pytest.raises(ValueError, match="sums must hold 20 items"):
        call(p, y, sums, weight=np.ones(3))
    with pytest.raises(ValueError, match="keys must lie between"):
        call(p, y, sums, keys=257)
    with pytest.raises((BufferError, ValueError)):
        call(p, y, sums.tobytes())
    with pytest.raises(TypeError):
        compiled._module.binary_sums(3, 1, 8, 0, 0, None, y, None, None, None, sums, None)
    assert call(p, y, sums, index=np.array([0, 1, 0])) == -1
    assert call(np.array([0.5, np.nan, 0.5]), y, sums) == -1
    assert call(np.array([0.5, 0.0, 0.0]), y, sums) == 2  # certain, and right
    assert call(np.array([0.5, 0.0, 1.0]), y, sums) == 2  # certain, and once wrong
    assert sums[0, -2:].tolist() == [1.0, 3.0]
    assert call(np.array([0.5, 0.0, 1.0]), y, np.zeros((1, 20)), weight=np.ones(3)) == -1


def test_sums_by_key_are_those_of_a_count(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    needs_kernel()
    for rows, keys in ((0, 1), (1, 1), (3, 2), (4097, 256)):
        column, index = rng.normal(size=rows), rng.integers(0, keys, rows)
        by_key = compiled.key_sums(column, index, keys)
        assert by_key is not None
        assert by_key == pytest.approx(np.bincount(index, weights=column, minlength=keys), abs=1e-12)
    assert compiled.key_sums(np.ones(2), np.array([0, 5]), 5) is None
    assert compiled.key_sums(np.ones(2), np.array([0, 5]), 257) is None
    monkeypatch.setattr(compiled, "_module", None)
    assert compiled.key_sums(np.ones(2), np.array([0, 1]), 2) is None


def test_without_it_everything_works() -> None:
    code = "import safecal; from safecal._kernels import compiled; assert not compiled.available()\n"
    code += "print(safecal.evaluate([1, 0, 1], [0.9, 0.2, 0.6]).ecd)"
    environment = {**os.environ, "SAFECAL_PURE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(said.stdout) == pytest.approx(safecal.evaluate([1, 0, 1], [0.9, 0.2, 0.6]).ecd)
