"""Seconds and megabytes of works and of commands, each in a process of its own, in rounds of alternating order."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 2
_LEAST_RUNS, _MOST_RUNS, _ENOUGH = 3, 50, 0.5  # of a work, and the seconds after which it was run often enough
_LONG = 4.0  # seconds from which a work is run once

Measured = dict[str, Any]  # seconds, megabytes, and whatever else a work tells


def status(key: str, file: str = "/proc/self/status") -> float:
    """Return a value of the kernel in megabytes; NaN where there is none."""
    try:
        lines = Path(file).read_text(encoding="ascii").splitlines()
    except OSError:
        return float("nan")
    return next((float(line.split()[1]) / 1000.0 for line in lines if line.startswith(f"{key}:")), float("nan"))


def forget_peak() -> None:
    """Set the peak of the memory back to what is used now; Linux alone can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass


def peak() -> float:
    """Return the most megabytes this process has held, or NaN; `ru_maxrss` would count those of its parent, too."""
    return status("VmHWM")


def timed(work: Callable[..., Any], *given: Any) -> Measured:
    """Run a work a few times: the shortest time, and the peak of the memory beyond what was used before."""
    forget_peak()
    before, times = status("VmRSS"), []
    value = None
    while len(times) < _LEAST_RUNS or (sum(times) < _ENOUGH and len(times) < _MOST_RUNS):
        began = time.perf_counter()
        value = work(*given)
        times.append(time.perf_counter() - began)
        if times[0] > _LONG:
            break
    return {"seconds": min(times), "megabytes": max(peak() - before, 0.0), "value": value}


def command(words: Sequence[str], statuses: Iterable[int] = (0,)) -> Measured:
    """Run a whole command: its seconds, those of the processor, and the peak of its memory.

    The peak is never below that of this process, so this process should hold little.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said, env=env)
        _, left, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(left)
        if process.returncode not in statuses:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)}: status {process.returncode}\n{said.read().decode()}")
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "processor": processor, "megabytes": usage.ru_maxrss / 1000.0}


def safecal(*words: str) -> list[str]:
    """Return a command line of safecal, for the Python that runs this."""
    return [sys.executable, "-c", "from safecal.cli import entry; entry()", *words]


def in_its_own_process(
    program: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    limit: float | None = None,
    quiet: bool = True,
) -> Any:
    """Run a program of this folder, and return what its last line of JSON says."""
    done = subprocess.run(
        [sys.executable, *program],
        env={**os.environ, **(environment or {})},
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
        timeout=limit,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(program)}\n{done.stderr or ''}".strip())
    return json.loads(done.stdout.splitlines()[-1])


def work_of(program: str, limit: float) -> Measured:
    """Run a program that defines `work`, on two threads; best of three, and the peak of the whole process."""
    env = {"POLARS_MAX_THREADS": "2"}
    try:
        measurement: Measured = in_its_own_process(["-c", program + _MEASURE], env, limit=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:.0f} s"}
    except RuntimeError as error:
        return {"failed": str(error).splitlines()[-1]}
    return measurement


_MEASURE = """
import json
from measuring import peak, timed
measurement = timed(work)
print(json.dumps({"seconds": measurement["seconds"], "megabytes": peak()}))
"""


def in_rounds(names: Sequence[str], measure: Callable[[str], Measured], rounds: int = ROUNDS) -> dict[str, Measured]:
    """Measure each in rounds, every second one in the reverse order; the shortest times and the most memory count."""
    best: dict[str, Measured] = {}
    for k in range(rounds):
        for name in names[:: -1 if k % 2 else 1]:
            new = measure(name)
            print(f"round {k + 1}: {name}", file=sys.stderr, flush=True)
            best[name] = better(best[name], new) if name in best else new
    return {name: best[name] for name in names}


def better(a: Measured, b: Measured) -> Measured:
    """Join two rounds; what was measured in one of them alone, counts."""
    if "measured" in a:
        return {**a, "measured": [better(x, y) for x, y in zip(a["measured"], b["measured"], strict=True)]}
    if "seconds" not in a or "seconds" not in b:
        return a if "seconds" in a else b
    least = {key: min(a[key], b[key]) for key in ("seconds", "processor") if key in a}
    return {**a, **least, "megabytes": max(a["megabytes"], b["megabytes"])}


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
        "memory_gb": round(status("MemTotal", "/proc/meminfo") / 1000.0),
        "instructions": [name for name in ("avx2", "avx512f") if name in flags.split()],
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
