"""NEES of states of six dimensions, beside filterpy.

    python bench/states.py [--rows 1000000]

safecal checks every covariance and gives ECD, NEES, their null variance and NLL; its time is the best of three. The
peer's loop is timed once. Both run in one thread, and are told in seconds of the processor. They must agree to ten
digits. Prints one line of JSON.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

DIMENSIONS = 6


def results(rows: int) -> dict[str, Any]:
    """Return the seconds of both."""
    from filterpy.stats import NEES

    import safecal

    rng = np.random.default_rng(0)
    root = rng.normal(size=(rows, DIMENSIONS, DIMENSIONS + 2))
    cov = root @ root.transpose(0, 2, 1)
    x, mean = rng.normal(size=(rows, DIMENSIONS)), rng.normal(size=(rows, DIMENSIONS))
    began = time.process_time()
    theirs = np.array(NEES(x, mean, cov))
    peer = time.process_time() - began
    times = []
    for _ in range(3):
        began = time.process_time()
        scored = safecal.gaussian(x, mean, cov=cov).score()
        times.append(time.process_time() - began)
    np.testing.assert_allclose(DIMENSIONS + 2.0 * scored.excess, theirs, rtol=1e-10)
    return {"rows": rows, "seconds": min(times), "peer_seconds": peer}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    print(json.dumps(results(parser.parse_args().rows)))
