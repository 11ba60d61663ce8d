"""Speed and memory beside named peers, in the same run on the same work.

    python bench/run.py [--rows 10000000] [--json FILE]

Times are the best of three. Memory is what a call allocates beyond its inputs, as NumPy reports it to tracemalloc; it
is measured in a run of its own, because tracing costs time.
"""

import argparse
import contextlib
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

import safecal
from safecal import tabulate
from safecal._kernels import compiled

REPEATS = 3


def seconds(work: Callable[[], Any]) -> float:
    """Return the shortest time of a few runs."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def megabytes(work: Callable[[], Any]) -> float:
    """Return the peak of what a run allocates."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def binary(rows: int) -> list[dict[str, Any]]:
    """Compare the binary table (every metric, ten bins) with scikit-learn's three functions."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss

    rng = np.random.default_rng(0)
    y_prob = np.clip(rng.beta(0.5, 0.5, rows), 1e-12, 1.0 - 1e-12)
    y_true = (rng.random(rows) < y_prob).astype(np.int64)

    def peer() -> None:
        log_loss(y_true, y_prob)
        brier_score_loss(y_true, y_prob)
        calibration_curve(y_true, y_prob, n_bins=10)

    def ours() -> None:
        safecal.bernoulli(y_true, y_prob).table()

    work, name = f"binary table, {rows:.0e} rows", "scikit-learn: log_loss + brier_score_loss + calibration_curve"
    found = compare(work, rows, name, peer, ours)
    if compiled.available():
        with without_kernel():
            found += compare(f"{work}, NumPy alone", rows, name, peer, ours)
            slow = seconds(ours)
        with one_thread():
            found += [_ratio(f"{work}, one thread", rows, "safecal, NumPy alone", slow, seconds(ours))]
    return found


@contextlib.contextmanager
def without_kernel() -> Iterator[None]:
    """Leave the compiled kernel out."""
    held, compiled._module = compiled._module, None
    try:
        yield
    finally:
        compiled._module = held


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let the compiled kernel run on one thread."""
    held, tabulate._THREADS = tabulate._THREADS, 1
    try:
        yield
    finally:
        tabulate._THREADS = held


def multiclass(rows: int, classes: int) -> list[dict[str, Any]]:
    """Compare surprisal, entropy, varentropy and more from float32 logits with plain NumPy on whole arrays."""
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.standard_normal((rows, classes), dtype=np.float32)
    y_true = rng.integers(0, classes, rows)

    def naive(dtype: type) -> Callable[[], None]:
        def run() -> None:
            log_p = log_softmax(logits.astype(dtype), axis=1)
            p = np.exp(log_p)
            entropy = -(p * log_p).sum(axis=1)
            centred = log_p + entropy[:, None]
            (p * centred * centred).sum(axis=1)
            -(p * centred * centred * centred).sum(axis=1)
            -log_p[np.arange(rows), y_true]
            p.max(axis=1)
            p.argmax(axis=1)
            (p * p).sum(axis=1)

        return run

    def ours() -> None:
        safecal.categorical(y_true, logits=logits).table()

    work = f"multiclass logits, {rows:.0e} x {classes} float32"
    found = compare(work, rows, "NumPy log_softmax in float64, as accurate", naive(np.float64), ours)
    return found + compare(work, rows, "NumPy log_softmax in float32", naive(np.float32), ours)


def compare(
    work: str, rows: int, peer: str, theirs: Callable[[], Any], ours: Callable[[], Any]
) -> list[dict[str, Any]]:
    """Measure both sides of one piece of work."""
    memory = {"megabytes": megabytes(ours), "peer_megabytes": megabytes(theirs)}
    return [_ratio(work, rows, peer, seconds(theirs), seconds(ours)) | memory]


def _ratio(work: str, rows: int, peer: str, slow: float, fast: float) -> dict[str, Any]:
    return {
        "work": work,
        "peer": peer,
        "times_faster": slow / fast,
        "nanoseconds_per_row": fast / rows * 1e9,
        "peer_nanoseconds_per_row": slow / rows * 1e9,
    }


def main() -> None:
    """Run the benchmarks and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the binary table")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = binary(options.rows) + multiclass(100_000, 1000)
    print(f"{'work':42} {'faster':>7} {'ns/row':>8} {'MB':>7} {'peer MB':>8}  peer")
    for row in found:
        print(
            f"{row['work']:42} {row['times_faster']:6.1f}x {row['nanoseconds_per_row']:8.1f} "
            f"{row.get('megabytes', float('nan')):7.1f} {row.get('peer_megabytes', float('nan')):8.1f}  {row['peer']}"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
