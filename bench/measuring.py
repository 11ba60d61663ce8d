"""Seconds and megabytes of one work, in a process of its own.

    python bench/measuring.py NAME FOLDER LIMIT ROWS...

FOLDER holds the labels and probabilities of each size. The process prints one line of JSON. A size is left out, with
the reason, when the one before foretells that it would take more than LIMIT seconds or more than half of the free
memory.
"""

import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_LEAST_RUNS, _MOST_RUNS, _ENOUGH = 3, 50, 0.5  # of a work, and the seconds after which it was run often enough


def _status(key: str, file: str = "/proc/self/status") -> float:
    """Return a value of the kernel in megabytes; NaN where there is none."""
    try:
        lines = Path(file).read_text(encoding="ascii").splitlines()
    except OSError:
        return float("nan")
    return next((float(line.split()[1]) / 1000.0 for line in lines if line.startswith(f"{key}:")), float("nan"))


def _forget_peak() -> None:
    """Set the peak of the memory back to what is used now; Linux alone can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass


def peak() -> float:
    """Return the most megabytes this process has held, or NaN; `ru_maxrss` would count those of its parent, too."""
    return _status("VmHWM")


def timed(work: Any, *given: Any) -> dict[str, Any]:
    """Run a work a few times: the shortest time, and the peak of the memory beyond what was used before."""
    _forget_peak()
    before, times = _status("VmRSS"), []
    value = None
    while len(times) < _LEAST_RUNS or (sum(times) < _ENOUGH and len(times) < _MOST_RUNS):
        began = time.perf_counter()
        value = work(*given)
        times.append(time.perf_counter() - began)
        if times[0] > 4.0:
            break
    return {"seconds": min(times), "megabytes": max(peak() - before, 0.0), "value": value}


def _excuse(last: dict[str, Any], factor: float, limit: float) -> str | None:
    """Say why a size that is so many times larger is left out, if it is."""
    if last["seconds"] * factor > limit:
        return f"more than {limit:.0f} s"
    if last["megabytes"] * factor > _status("MemAvailable", "/proc/meminfo") / 2.0:
        return "too little memory"
    return None


def child(name: str, folder: Path, limit: float, sizes: Sequence[int]) -> dict[str, Any]:
    """Measure one entry at each size, the smallest first."""
    from peers import ENTRIES, answers, rows

    warnings.simplefilter("ignore")
    work = ENTRIES[name].load()
    work(*rows(1000, seed=1))
    found: list[dict[str, Any]] = []
    last: dict[str, Any] | None = None
    for n in sizes:
        excuse = None if last is None else _excuse(last, n / last["rows"], limit)
        if excuse is not None:
            found.append({"rows": n, "left_out": excuse})
            continue
        y, p = (np.load(folder / f"{kind}-{n}.npy") for kind in "yp")
        last = {"rows": n, **timed(work, y, p)}
        found.append(last)
        del y, p
    return {"measured": found, "answers": answers(work)}


def in_its_own_process(program: Sequence[str], environment: dict[str, str] | None = None) -> Any:
    """Run a program of this folder, and return what its last line of JSON says."""
    done = subprocess.run(
        [sys.executable, *program],
        env={**os.environ, **(environment or {})},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(program)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def growth(points: Sequence[tuple[int, float]]) -> float | None:
    """Return the slope of a log-log fit over the sizes from 10^5 on: 1 is linear, 0 constant."""
    kept = [(n, value) for n, value in points if n >= 100_000 and value > 0.0]
    if len(kept) < 2:
        return None
    x, y = np.log(np.array(kept)).T
    return float(np.polyfit(x, y, 1)[0])


def machine() -> dict[str, Any]:
    """Describe the machine: processor, cores, memory, instruction sets, Python."""
    model, flags = platform.processor() or platform.machine(), ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = value
    except OSError:
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gb": round(_status("MemTotal", "/proc/meminfo") / 1000.0),
        "instructions": [name for name in ("avx2", "avx512f") if name in flags.split()],
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


if __name__ == "__main__":
    name, folder, limit, *sizes = sys.argv[1:]
    print(json.dumps(child(name, Path(folder), float(limit), [int(n) for n in sizes])))
