"""K classes from float32 logits: the table, all the way to a verdict, and plain NumPy on whole arrays.

    python bench/multiclass.py [--rows 100000] [--classes 1000]

Prints one line of JSON.
"""

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import ROUNDS, Measured, in_its_own_process, in_rounds, timed
from scipy.special import log_softmax

TABLE, VERDICT = "safecal.categorical(...).table()", "safecal.evaluate(...).verdict"
_DOUBLE, _SINGLE = "NumPy log_softmax in float64", "NumPy log_softmax in float32"
WORKS = {
    TABLE: "all sums by bin of the confidence; input checked",
    VERDICT: "the table, a test, intervals, temperature, verdict and reason",
    _DOUBLE: "surprisal, entropy, varentropy, third cumulant, confidence, Brier of each row",
    _SINGLE: "the same in float32",
}

Work = Callable[[Any, Any], object]


def _work(name: str) -> Work:
    import safecal

    works: dict[str, Work] = {
        TABLE: lambda y, logits: safecal.categorical(y, logits=logits).table(),
        VERDICT: lambda y, logits: safecal.evaluate(y, logits=logits).verdict.reason,
        _DOUBLE: lambda y, logits: _naive(y, logits.astype(np.float64)),
        _SINGLE: _naive,
    }
    return works[name]


def _naive(y: Any, logits: Any) -> None:
    log_p = log_softmax(logits, axis=1)
    p = np.exp(log_p)
    entropy = -(p * log_p).sum(axis=1)
    centred = log_p + entropy[:, None]
    (p * centred * centred).sum(axis=1)
    -(p * centred * centred * centred).sum(axis=1)
    -log_p[np.arange(len(y)), y]
    p.max(axis=1)
    p.argmax(axis=1)
    (p * p).sum(axis=1)


def measured(name: str, rows: int, classes: int) -> Measured:
    """Measure one work here."""
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.standard_normal((rows, classes), dtype=np.float32)
    y = rng.integers(0, classes, rows)
    work = _work(name)
    work(y[:10], logits[:10])
    return {**timed(work, y, logits), "value": None}


def results(rows: int, classes: int, rounds: int) -> list[dict[str, Any]]:
    """Measure each work in a process of its own."""
    size = ["--rows", str(rows), "--classes", str(classes)]
    measurements = in_rounds(
        list(WORKS), lambda name: in_its_own_process(["multiclass.py", "--work", name, *size]), rounds
    )
    return [
        {"name": name, "gives": WORKS[name], "rows": rows, "classes": classes, **one}
        for name, one in measurements.items()
    ]


def main() -> None:
    """Measure all works, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--work", choices=list(WORKS), help="measure this one here")
    options = parser.parse_args()
    size = options.rows, options.classes
    print(json.dumps(measured(options.work, *size) if options.work else results(*size, options.rounds)))


if __name__ == "__main__":
    main()
