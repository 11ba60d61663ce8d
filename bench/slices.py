"""Slices of many rows and features, beside sorting each of the features once.

    python bench/slices.py [--rows 1000000] [--features 50]

Seconds of the processor, since the search is held to them; megabytes are those beyond the features themselves.
"""

import argparse
import json
import time
from typing import Any

import numpy as np
from measuring import forget_peak, peak, status

SORT, OURS, WIDE = "sorting the features", "safecal.find_slices", "safecal.find_slices, wide"


def _measured(work: Any) -> tuple[float, float]:
    """Return seconds of the processor, and megabytes beyond what was held before; the work is run once."""
    forget_peak()
    before, began = status("VmRSS"), time.process_time()
    work()
    return time.process_time() - began, max(peak() - before, 0.0)


def results(rows: int, features: int) -> list[dict[str, Any]]:
    """Measure sorting, then the search; then a tenth of the rows with twice as many features."""
    import safecal

    measurements = []
    rng = np.random.default_rng(0)
    for name, n, many in ((OURS, rows, features), (WIDE, max(rows // 10, 100), 2 * features)):
        columns = {f"x{k}": rng.normal(size=n) for k in range(many)}
        z = rng.normal(0.0, 2.0, n)
        predictions = safecal.bernoulli(rng.random(n) < 1.0 / (1.0 + np.exp(-z)), logits=z)
        described = {"rows": n, "features": many, "features_megabytes": 8e-6 * n * many}
        sorting, _ = _measured(lambda columns=columns: [np.sort(x, kind="stable") for x in columns.values()])
        if name == OURS:
            measurements.append({"name": SORT, **described, "seconds": sorting, "megabytes": 8e-6 * n})
        seconds, megabytes = _measured(lambda p=predictions, c=columns: safecal.find_slices(p, c))
        measurements.append({"name": name, **described, "seconds": seconds, "sorting": sorting, "megabytes": megabytes})
    return measurements


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    options = parser.parse_args()
    print(json.dumps(results(options.rows, options.features)))


if __name__ == "__main__":
    main()
