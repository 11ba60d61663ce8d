"""The table of K classes from float32 logits, beside plain NumPy on whole arrays.

python bench/multiclass.py WORK ROWS CLASSES
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import in_its_own_process, timed
from scipy.special import log_softmax

WORKS = {
    "safecal.categorical(...).table()": "all sums by bin of the confidence; input checked",
    "NumPy log_softmax in float64": "surprisal, entropy, varentropy, third cumulant, confidence, Brier of each row",
    "NumPy log_softmax in float32": "the same in float32",
}
OURS = next(iter(WORKS))


def _ours() -> Callable[[Any, Any], None]:
    import safecal

    def run(y: Any, logits: Any) -> None:
        safecal.categorical(y, logits=logits).table()

    return run


def _naive(dtype: type) -> Callable[[Any, Any], None]:
    def run(y: Any, logits: Any) -> None:
        log_p = log_softmax(logits.astype(dtype), axis=1)
        p = np.exp(log_p)
        entropy = -(p * log_p).sum(axis=1)
        centred = log_p + entropy[:, None]
        (p * centred * centred).sum(axis=1)
        -(p * centred * centred * centred).sum(axis=1)
        -log_p[np.arange(len(y)), y]
        p.max(axis=1)
        p.argmax(axis=1)
        (p * p).sum(axis=1)

    return run


def results(rows: int, classes: int) -> list[dict[str, Any]]:
    """Measure each work in a process of its own."""
    found = []
    for name, gives in WORKS.items():
        measured = in_its_own_process(["multiclass.py", name, str(rows), str(classes)])
        found.append({"name": name, "gives": gives, "rows": rows, "classes": classes, **measured})
    return found


if __name__ == "__main__":
    name, rows, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.standard_normal((rows, classes), dtype=np.float32)
    y = rng.integers(0, classes, rows)
    work = _ours() if name == OURS else _naive(np.float64 if name.endswith("64") else np.float32)
    work(y[:10], logits[:10])
    print(json.dumps(timed(work, y, logits)))
