"""NEES of states of four dimensions, beside filterpy.

    python bench/states.py [--rows 1000000]

safecal checks every covariance and gives ECD, NEES, their null variance and NLL; its time is the best of three. The
peer's loop is timed once. Both must agree to ten digits.
"""

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from measuring import in_its_own_process

WANTED = 10.0


def results(rows: int) -> dict[str, Any]:
    """Measure both in a process of their own."""
    found: dict[str, Any] = in_its_own_process(["states.py", "--rows", str(rows), "--json"])
    return found


def measured(rows: int) -> dict[str, Any]:
    """Return the seconds of both."""
    from filterpy.stats import NEES

    import safecal

    rng = np.random.default_rng(0)
    root = rng.normal(size=(rows, 4, 6))
    cov = root @ root.transpose(0, 2, 1)
    x, mean = rng.normal(size=(rows, 4)), rng.normal(size=(rows, 4))
    began = time.perf_counter()
    theirs = np.array(NEES(x, mean, cov))
    peer = time.perf_counter() - began
    times = []
    for _ in range(3):
        began = time.perf_counter()
        scored = safecal.gaussian(x, mean, cov=cov).score()
        times.append(time.perf_counter() - began)
    np.testing.assert_allclose(4.0 + 2.0 * scored.excess, theirs, rtol=1e-10)
    return {"rows": rows, "seconds": min(times), "peer_seconds": peer}


def main() -> int:
    """Print one line for each, and the ratio; the status is 1 where it is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    options = parser.parse_args()
    found = measured(options.rows)
    if options.json:
        print(json.dumps(found))
        return 0
    ours, peer, rows = found["seconds"], found["peer_seconds"], found["rows"]
    print(f"{rows} states of 4 dimensions")
    print(f"  filterpy NEES       {peer:7.2f} s  {peer / rows * 1e9:8.0f} ns a state")
    print(f"  safecal, checked    {ours:7.2f} s  {ours / rows * 1e9:8.0f} ns a state")
    print(f"  times faster        {peer / ours:7.1f}")
    return 0 if peer / ours >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
