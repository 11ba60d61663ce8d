"""`safecal evaluate` on a large Parquet file, beside Polars reading and summing the same columns.

    python bench/files.py [--rows 50000000]

Each runs in a process of its own, on two threads. Times are the best of three and leave out starting Python and
importing libraries; memory is the peak of the whole process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

_PART = 1_000_000

_PEER = """
import polars as pl
def work():
    pl.scan_parquet({path!r}).select(pl.col("y").sum(), pl.col("p").sum()).collect()
"""

_OURS = """
import contextlib, io
import safecal.cli.evaluate, safecal.engines.batches
from safecal.cli.main import main
import polars, scipy.interpolate, scipy.optimize
def work():
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["evaluate", {path!r}, "--json"]) == 0
"""

_MEASURE = """
import json, resource, time
times = []
for _ in range(3):
    began = time.perf_counter()
    work()
    times.append(time.perf_counter() - began)
print(json.dumps([min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))
"""


def write(path: Path, rows: int) -> None:
    """Write a calibrated model's predictions, in row groups of a million."""
    rng = np.random.default_rng(0)

    def part(size: int) -> pl.DataFrame:
        p = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 2.0, size)))
        return pl.DataFrame({"y": (rng.random(size) < p).astype(np.int8), "p": p})

    folder = path.with_suffix(".parts")
    folder.mkdir()
    for k, start in enumerate(range(0, rows, _PART)):
        part(min(_PART, rows - start)).write_parquet(folder / f"{k:04d}.parquet")
    pl.scan_parquet(folder / "*.parquet").sink_parquet(path, row_group_size=_PART)


def measured(code: str, path: Path) -> tuple[float, float]:
    """Return seconds and megabytes."""
    program = code.format(path=str(path)) + _MEASURE
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(said.stdout.splitlines()[-1])
    return seconds, megabytes


def main() -> None:
    """Print one line for each, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows)
        peer, theirs = measured(_PEER, path)
        ours, memory = measured(_OURS, path)
    print(f"{rows} rows of Parquet, label and probability")
    print(f"  Polars, sum of both columns  {peer:6.2f} s  {theirs:6.0f} MB")
    print(f"  safecal evaluate             {ours:6.2f} s  {memory:6.0f} MB")
    print(f"  ratio                        {ours / peer:6.1f}")


if __name__ == "__main__":
    main()
