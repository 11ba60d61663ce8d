"""`Monitor.update` in blocks of ten thousand two-outcome rows, on one core, beside scikit-learn's log_loss.

    python bench/monitor.py [--rows 100000000]

Prints rows a second, and the peak memory of the process after a tenth of the rows and after all of them.
"""

import argparse
import json
import os
import resource
import time

import numpy as np
from sklearn.metrics import log_loss

from safecal.monitor import Monitor

BLOCK = 10_000


def megabytes() -> float:
    """Return the peak memory of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    """Measure, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, (64, BLOCK))
    p = 1.0 / (1.0 + np.exp(-z))
    y = (rng.random(p.shape) < p).astype(np.int64)
    monitor = Monitor(max_windows=30)
    blocks = rows // BLOCK
    ours = theirs = early = 0.0
    for k in range(blocks):
        began = time.perf_counter()
        monitor.update(y[k % 64], p[k % 64], window=f"{k * 300 // blocks:04d}")
        ours += time.perf_counter() - began
        if k < 100:
            began = time.perf_counter()
            log_loss(y[k % 64], p[k % 64])
            theirs += time.perf_counter() - began
        if k == blocks // 10:
            early = megabytes()
    theirs *= blocks / min(blocks, 100)
    print(f"{blocks * BLOCK} rows in blocks of {BLOCK}, one core")
    print(f"  Monitor.update          {blocks * BLOCK / ours:12,.0f} rows/s")
    print(f"  scikit-learn log_loss   {blocks * BLOCK / theirs:12,.0f} rows/s")
    print(f"  peak memory             {early:.0f} MB after a tenth, {megabytes():.0f} MB after all")
    print(f"  state                   {len(json.dumps(monitor.to_dict())):,} bytes of JSON")


if __name__ == "__main__":
    main()
