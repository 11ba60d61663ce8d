"""The compiled kernel gives the sums that NumPy gives, on every kind of rows, and touches only memory of its own."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import safecal
from safecal import Bins, Summary, Table
from safecal._kernels import compiled
from safecal.front_door import Gathered, gather
from safecal.tabulate import bins_for

SOURCE = Path(compiled.__file__).with_name("_compiled.c")


def needs_kernel() -> None:
    if not compiled.available():
        pytest.skip("the compiled kernel was not built")


def both(monkeypatch: pytest.MonkeyPatch, p: np.ndarray, y: np.ndarray, bins: int | Bins = 10, **columns: np.ndarray):
    """Return what the compiled kernel and what NumPy gather."""
    needs_kernel()
    predictions = safecal.bernoulli(y, p)
    edges = bins_for(predictions, bins, None, "uniform")
    quick = gather(predictions, None, edges, columns.get("by"))
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "_module", None)
        return quick, gather(predictions, None, edges, columns.get("by"))


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


def _all_agree(quick: Gathered, slow: Gathered, p: np.ndarray) -> None:
    _agree(quick.summary, slow.summary, p)
    for a, b in ((quick.bins, slow.bins), (quick.groups, slow.groups)):
        assert (a is None) == (b is None)
        if isinstance(a, Table) and isinstance(b, Table):
            assert a.keys == b.keys
            for x, y in zip(a.summaries, b.summaries, strict=True):
                _agree(x, y, p)
    assert quick.n_certain == slow.n_certain
    assert sum(quick.histogram.counts) == sum(slow.histogram.counts)
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
    "a chunk": RNG.random(4096),
    "a chunk and one": RNG.random(4097),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("bins", [1, 2, 10, 15, 256, 300])
def test_the_same_sums_as_numpy(name: str, bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p = ROWS[name]
    happened = RNG.random(len(p)) < p
    _all_agree(*both(monkeypatch, p, happened, bins), np.asarray(p, dtype=np.float64))


@pytest.mark.parametrize("groups", [1, 3, 256, 257])
def test_groups_and_given_edges(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p = ROWS["uniform"]
    y = RNG.random(len(p)) < p
    by = RNG.integers(0, groups, len(p))
    _all_agree(*both(monkeypatch, p, y, Bins.from_edges([0.0, 0.05, 0.5, 0.9, 1.0]), by=by), p)
    _all_agree(*both(monkeypatch, p, y, Bins.from_edges([-math.inf, 0.5, math.inf]), by=by), p)


@settings(max_examples=60)
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


def test_the_result_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_kernel()
    p = RNG.random(300_000)
    predictions = safecal.bernoulli(RNG.random(len(p)) < p, p)
    one = predictions.table()
    monkeypatch.setattr("safecal.tabulate._LARGE", 1)
    for threads in (1, 2, 5):
        monkeypatch.setattr("safecal.tabulate._THREADS", threads)
        assert predictions.table() == one


def test_the_kernel_refuses_what_does_not_fit() -> None:
    needs_kernel()
    call = compiled._module.bernoulli_sums
    p, y, sums = np.full(3, 0.5), np.zeros(3, dtype=np.uint8), np.zeros((1, 12))
    with pytest.raises(ValueError, match="happened must hold 3 items of 1 bytes"):
        call(3, 1, p, y[:2], None, None, sums, None, 0, 0)
    with pytest.raises(ValueError, match="sums must hold 24 items"):
        call(3, 2, p, y, None, None, sums, None, 0, 0)
    with pytest.raises(ValueError, match="keys must lie between"):
        call(3, 257, p, y, None, None, sums, None, 0, 0)
    with pytest.raises((BufferError, ValueError)):
        call(3, 1, p, y, None, None, sums.tobytes(), None, 0, 0)
    assert call(3, 1, p, y, None, np.array([0, 1, 0]), sums, None, 0, 0) is False
    assert call(3, 1, np.array([0.5, np.nan, 0.5]), y, None, None, sums, None, 0, 0) is False


def test_without_it_everything_works() -> None:
    code = "import safecal; from safecal._kernels import compiled; assert not compiled.available()\n"
    code += "print(safecal.evaluate([1, 0, 1], [0.9, 0.2, 0.6]).ecd)"
    environment = {**os.environ, "SAFECAL_PURE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(said.stdout) == pytest.approx(safecal.evaluate([1, 0, 1], [0.9, 0.2, 0.6]).ecd)


HARNESS = """
import importlib.util, sys, numpy as np
spec = importlib.util.spec_from_file_location("_compiled", sys.argv[1])
kernel = importlib.util.module_from_spec(spec); spec.loader.exec_module(kernel)
rng = np.random.default_rng(0)
for n in (0, 1, 7, 8, 9, 4095, 4096, 4097, 9001):
    for keys in (1, 2, 10, 256):
        for kind in ("edges", "index", "none"):
            p = rng.choice([1e-299, 0.5, 0.1, 1 - 2**-53], n) if n % 2 else rng.uniform(1e-9, 1 - 1e-9, n)
            y = (rng.random(n) < p).astype(np.uint8)
            edges = np.array([k / keys for k in range(keys + 1)]) if kind == "edges" else None
            index = rng.integers(0, keys, n) if kind == "index" else None
            size = 1 if kind == "none" else keys
            sums, cells = np.zeros((size, 12)), np.zeros((545, 2))
            assert kernel.bernoulli_sums(n, size, p, y, edges, index, sums, cells, 8023, 272)
            assert sums[:, 9].sum() == n == cells[:, 0].sum()
assert not kernel.bernoulli_sums(2, 1, np.array([0.0, np.nan]), y[:2].copy(), None, None, sums[:1].copy(), None, 0, 0)
try:
    kernel.bernoulli_sums(2, 1, np.zeros(3), y[:2].copy(), None, None, sums[:1].copy(), None, 0, 0)
except ValueError:
    print("clean")
"""


@pytest.mark.slow
def test_no_sanitiser_complains(tmp_path: Path) -> None:
    """Address and undefined-behaviour sanitisers, on every path of the kernel."""
    compiler = shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs gcc on Linux")
    library = tmp_path / "_compiled.so"
    include = sysconfig.get_path("include")
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSAFECAL_PLAIN", "-shared"]
    subprocess.run(
        [compiler, *flags, "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{include}", str(SOURCE), "-o", str(library)],
        check=True,
    )
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, "-c", HARNESS, str(library)], env=environment, capture_output=True, text=True, check=False
    )
    assert said.stdout.strip() == "clean", said.stderr
