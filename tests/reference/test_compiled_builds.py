"""The compiled kernel built anew: no sanitiser complains, and every kind of processor gives the same bits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

from safecal._kernels import compiled

pytestmark = [pytest.mark.proof, pytest.mark.no_cover]
FOLDER = Path(compiled.__file__).parent
# As in setup.py.
EXACT = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
LEVELS = {"x86-64-v3": {"avx2", "fma", "bmi2"}, "x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}

LOAD = """
import hashlib, importlib.util, sys, numpy as np
spec = importlib.util.spec_from_file_location("safecal._kernels._compiled", sys.argv[1])
kernel = importlib.util.module_from_spec(spec); spec.loader.exec_module(kernel)
rng = np.random.default_rng(0)
seen = hashlib.sha256()
"""

EVERYTHING = """
for n in (0, 1, 7, 8, 9, 1023, 1024, 1025, 3001):
    for keys in (1, 10, 256):
        for kind in ("edges", "index", "none"):
            for logits in (0, 1):
                for item in (np.float32, np.float64):
                    if logits:
                        values = rng.choice([1e300, -800.0, 0.0, 1e-9, 3.0], n) if n % 2 else rng.normal(0, 9, n)
                        values = np.clip(values, -1e30, 1e30)
                    else:
                        values = rng.choice([1e-30, 0.5, 0.1, 1 - 2**-20], n) if n % 2 else rng.uniform(0.01, 0.99, n)
                    values = values.astype(item)
                    y = (rng.random(n) < (values > 0 if logits else values)).astype(np.uint8)
                    edges = np.array([k / keys for k in range(keys + 1)]) if kind == "edges" else None
                    index = rng.integers(0, keys, n) if kind == "index" else None
                    size = 1 if kind == "none" else keys
                    for weight in (None, rng.random(n)):
                        sums = np.zeros((size, 13 if weight is None else 20))
                        spectrum = None if weight is not None else np.zeros((450, 2, 2, 4))
                        given = values, y, weight, edges, index, sums, spectrum
                        assert kernel.binary_sums(n, size, values.itemsize, logits, n % 2, *given) == 0
                        assert sums[:, -1].sum() == n
                        seen.update(sums.tobytes())
                        if n:  # outcomes that stand apart, with nothing behind the last
                            apart = np.zeros(8 * n - 7, dtype=np.uint8)[::8]
                            apart[:] = y
                            again = np.zeros_like(sums)
                            given = values, apart, weight, edges, index, again, None
                            assert kernel.binary_sums(n, size, values.itemsize, logits, n % 2, *given) == 0
                            assert again.tobytes() == sums.tobytes()
                        if spectrum is not None:
                            assert spectrum[..., 0].sum() == n
                            seen.update(spectrum.tobytes())
for classes in (2, 3, 8, 9, 127, 128, 129, 130, 1025):
    for n in (0, 1, 7, 8, 9, 30):
        for item in (np.float32, np.float64):
            z = rng.normal(0, 5, (n, classes)) * rng.choice([1e-6, 1.0, 50.0], (n, 1))
            z[::3, 1:] = -np.inf
            p = np.exp(z - z.max(axis=1, keepdims=True)) if n else z
            p = p / p.sum(axis=1, keepdims=True)
            y = rng.integers(0, classes, n)
            for logits, values in ((1, z.astype(item)), (0, p.astype(item))):
                columns, top = np.zeros((7, n)), np.zeros(n, dtype=np.int64)
                for nodes in (None, np.zeros((5, 4, n))):
                    assert kernel.class_scores(n, classes, values.itemsize, logits, values, y, columns, top, nodes)
                    seen.update(columns.tobytes() + top.tobytes())
                seen.update(nodes.tobytes())
            for beta in (1e-6, 0.7, 1e6):
                moments = np.zeros((4, n))
                kernel.gap_moments(n, classes, np.dtype(item).itemsize, beta, z.astype(item), moments)
                seen.update(moments.tobytes())
for n in (0, 1, 3, 4, 1000):
    for keys in (1, 3, 256):
        sums = np.zeros(keys)
        assert kernel.sum_by_key(n, keys, rng.normal(size=n), rng.integers(0, keys, n), sums)
        seen.update(sums.tobytes())
for n in (0, 1, 7, 8, 9, 30):
    for d in range(1, 9):
        root = rng.normal(size=(n, d, d + 2))
        cov, nees, logdet = np.round(root @ root.transpose(0, 2, 1), 3), np.zeros(n), np.zeros(n)
        cov = np.tril(cov) + np.tril(cov, -1).transpose(0, 2, 1)
        assert kernel.sound(n, d, 1e-9, 1e-14, cov)
        assert kernel.state_scores(n, d, rng.normal(size=(n, d)), cov, nees, logdet)
        seen.update(nees.tobytes() + logdet.tobytes())
for n in (0, 1, 7, 8, 9, 255, 256, 257, 1000):
    L, counts = np.abs(rng.normal(0, 9, n)) * rng.choice([0.0, 1e-9, 1.0, 1e9], n), rng.random(n)
    sides = [(rng.random(n) < 0.5).astype(np.uint8) for _ in range(2)]
    used, sums = np.zeros(900, dtype=np.int64), np.zeros((900, 11))
    assert (kernel.sum_points(n, L, counts, *sides, rng.integers(0, 450, n), used, sums) > 0) == (n > 0)
    seen.update(used.tobytes() + sums.tobytes())
    for beta in (-2.0, 0.0, 1e-6, 1.0, 1e6):
        seen.update(np.array(kernel.tempered_sums(n, beta, L, counts)).tobytes())
        for other in (beta + 1e-9, 0.5, -1.0, 1e6):
            seen.update(np.array(kernel.tempered_change(n, beta, other, L, counts)).tobytes())
for each in (1, 4):
    moments = np.zeros((450 * each, 4))
    d = rng.normal(0, 0.01, (450 * each, 5)) * (rng.random((450 * each, 1)) < 0.8)
    for power in range(4):
        moments[:, power] = (d**power).sum(axis=1) * (rng.random(450 * each) < 0.7)
    out = np.zeros((2, 2 * len(moments))), np.zeros(2 * len(moments), dtype=np.int64)
    count = kernel.two_points(len(moments), 450, moments, np.linspace(0.0, 9.0, 450), *out[0], out[1])
    assert 0 < count <= 2 * len(moments)
    seen.update(out[0][:, :count].tobytes() + out[1][:count].tobytes())
"""

REFUSED = """
y, sums = np.zeros(2, dtype=np.uint8), np.zeros((1, 13))
assert kernel.binary_sums(2, 1, 8, 0, 0, np.array([0.5, 1.0]), y, None, None, None, sums, None) == 1
for values in ([0.5, np.nan], [1e-310, 0.5]):
    assert kernel.binary_sums(2, 1, 8, 0, 0, np.array(values), y, None, None, None, sums, None) == -1
assert kernel.binary_sums(2, 1, 8, 1, 0, np.array([1.0, np.inf]), y, None, None, None, sums, None) == -1
assert kernel.binary_sums(2, 1, 8, 0, 0, np.full(2, 0.5), y, None, None, np.array([0, 1]), sums, None) == -1
assert not kernel.sum_by_key(2, 1, np.zeros(2), np.array([0, 1]), np.zeros(1))
for logits in (0, 1):
    columns, top = np.zeros((7, 1)), np.zeros(1, dtype=np.int64)
    assert not kernel.class_scores(1, 2, 8, logits, np.zeros((1, 2)), np.array([2]), columns, top)
    for classes in (2, 200):
        wrong = np.full((1, classes), np.nan)
        assert kernel.class_scores(1, classes, 8, logits, wrong, np.array([1]), columns, top, np.zeros((5, 4, 1)))
for bad in (np.nan, np.inf, -np.inf, -1.0, 0.0):
    for place in range(4):
        cov = np.eye(2).reshape(1, 4).copy()
        cov[0, place] = bad
        assert kernel.sound(1, 2, 1e-9, 1e-14, cov) == (bad == 0.0 and place in (1, 2))
        kernel.state_scores(1, 2, np.full(2, 1e300), cov, np.zeros(1), np.zeros(1))
def refused(call, *given):
    try:
        call(*given)
    except (ValueError, OverflowError, BufferError, TypeError):
        return True
    return False
huge, one, y64 = 2**63 - 1, np.zeros(1), np.zeros(1, dtype=np.int64)
columns, top = np.zeros((7, 1)), np.zeros(1, dtype=np.int64)
for n in (huge, 2**62, 2**61 + 1, 2**60, -1):
    for classes in (2, 2**20, 2**54, huge):
        assert refused(kernel.class_scores, n, classes, 8, 1, one, y64, columns, top)
        assert refused(kernel.gap_moments, n, classes, 8, 1.0, one, np.zeros((4, 1)))
    for item in (4, 8, 3, 0, -8, huge):
        assert refused(kernel.binary_sums, n, 1, item, 0, 0, one, y[:1], None, None, None, sums, None)
    assert refused(kernel.sum_by_key, n, 1, one, y64, one.copy())
    for d in (0, 1, 8, 9, huge):
        assert refused(kernel.sound, n, d, 0.1, 0.1, one)
        assert refused(kernel.state_scores, n, d, one, one, one.copy(), one.copy())
    assert refused(kernel.tempered_sums, n, 1.0, one, one)
    assert refused(kernel.tempered_change, n, 1.0, 2.0, one, one)
    places = np.zeros(900, dtype=np.int64), np.zeros((900, 11))
    assert refused(kernel.sum_points, n, one, one, y[:1], y[:1], y64, *places)
    for cell in (-1, 450, huge):
        assert refused(kernel.sum_points, 1, one, one, y[:1], y[:1], np.array([cell]), *places)
    for cells in (0, 1, -1, huge):
        assert refused(kernel.two_points, n, cells, one, one, one.copy(), one.copy(), y64.copy())
    for keys in (0, 257, huge, -huge):
        assert refused(kernel.sum_by_key, 1, keys, one, y64, one.copy())
        assert refused(kernel.binary_sums, 1, keys, 8, 0, 0, one, y[:1], None, None, None, sums, None)
for beta in (-1.0, 0.0, np.nan):
    assert refused(kernel.gap_moments, 1, 2, 8, beta, np.zeros((1, 2)), np.zeros((4, 1)))
for wrong in (np.nan, np.inf, -np.inf):
    kernel.gap_moments(1, 2, 8, 1.0, np.full((1, 2), wrong), np.zeros((4, 1)))
read_only = np.zeros((1, 13)); read_only.flags.writeable = False
unaligned = np.frombuffer(bytearray(25), dtype=np.uint8)[1:17].view(np.float64)
for values, out in ((np.zeros(2), read_only), (unaligned, sums), (np.zeros(4)[::2], sums), (np.zeros(2)[::-1], sums),
                    (np.lib.stride_tricks.as_strided(one, (2,), (2**40,)), sums)):
    assert refused(kernel.binary_sums, 2, 1, 8, 0, 0, values, y, None, None, None, out, None)
payload = np.array([0x7ff0000000000001, 0xfff8dead0000beef], dtype=np.uint64).view(np.float64)
for logits in (0, 1):
    assert kernel.binary_sums(2, 1, 8, logits, 0, payload, y, None, None, None, sums, None) == -1
    for values in (np.full(2, 5e-324), np.full(2, -5e-324), np.array([-0.0, 0.0])):
        kernel.binary_sums(2, 1, 8, logits, 0, values, y, None, None, None, sums, np.zeros((450, 2, 2, 4)))
    for edges in (np.array([0.0, 0.5, 1.0]), np.array([0.5, 0.5, 0.5]), np.array([1.0, 0.5, 0.0]), payload[[0, 0, 1]]):
        kernel.binary_sums(2, 2, 8, logits, 0, np.array([0.2, 0.7]), y, None, edges, None, np.zeros((2, 13)), None)
true = np.array([2, 255], dtype=np.uint8)
kernel.binary_sums(2, 1, 8, 0, 0, np.array([0.2, 0.7]), true, None, None, None, sums, None)
assert sums[0, 10] == 2
try:
    kernel.binary_sums(2, 1, 8, 0, 0, np.zeros(3), y, None, None, None, sums, None)
except ValueError:
    print("clean")
"""


DIGEST = EVERYTHING + "print(seen.hexdigest())"

FUZZED = f"""
sys.modules["safecal._kernels._compiled"] = kernel
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from tests.hostile import fuzzing, test_api
from safecal._kernels import compiled
assert compiled._module is kernel
counts, faults = fuzzing.tried(test_api._call, 2, 300)
assert not faults, faults
print("clean", counts["tried"])
"""


def build(to: Path, *flags: str) -> str:
    """Compile the kernel, and return the compiler."""
    compiler = shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs gcc on Linux")
    sources = sorted(map(str, FOLDER.glob("*.c")))
    include = f"-I{sysconfig.get_path('include')}"
    warnings = ["-Wall", "-Wextra", "-Werror", "-std=c11"]
    subprocess.run([compiler, *flags, *warnings, "-shared", "-fPIC", include, *sources, "-o", str(to)], check=True)
    return compiler


def run(code: str, library: Path, **environment: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-c", LOAD + code, str(library)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the narrowest registers give."""
    library = tmp_path_factory.mktemp("plain") / "plain.so"
    build(library, *EXACT, "-DSAFECAL_PLAIN")
    return run(DIGEST, library)


class Sanitised(NamedTuple):
    """A kernel in which address and undefined-behaviour sanitisers look on, and what it runs in."""

    library: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def sanitised(tmp_path_factory: pytest.TempPathFactory) -> Sanitised:
    library = tmp_path_factory.mktemp("sanitised") / "_compiled.so"
    sanitisers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compiler = build(library, "-g", "-O1", *EXACT[1:], *sanitisers, "-DSAFECAL_PLAIN")
    asan = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return Sanitised(library, {"LD_PRELOAD": asan.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"})


def test_no_sanitiser_complains(sanitised: Sanitised, digest: str) -> None:
    """On every path of the kernel; it is optimised less, too, and gives the same bits."""
    said = run(DIGEST + REFUSED, sanitised.library, **sanitised.environment)
    assert said.split() == [digest, "clean"]


def test_no_sanitiser_complains_of_the_fuzzed_calls(sanitised: Sanitised) -> None:
    """Unaligned, strided, reversed, read-only, big-endian and empty memory."""
    assert run(FUZZED, sanitised.library, **sanitised.environment).startswith("clean")


def test_every_processor_gives_the_same_bits(tmp_path: Path, digest: str) -> None:
    """The narrowest registers, wider ones where this processor has them, and what is installed, which picks itself."""
    assert compiled._module is not None
    assert run(DIGEST, Path(compiled._module.__file__)) == digest, "is the installed kernel built from these sources?"
    information = Path("/proc/cpuinfo")
    flags = set(information.read_text().split()) if information.exists() else set()
    for level, needed in LEVELS.items():
        if needed <= flags:
            build(tmp_path / f"{level}.so", *EXACT, "-DSAFECAL_PLAIN", f"-march={level}")
            assert run(DIGEST, tmp_path / f"{level}.so") == digest, level
