"""A large Parquet file: `safecal evaluate` and `evaluate_frame`, beside Polars reading and summing the two columns.

    python bench/files.py [--rows 50000000]

Each runs in a process of its own, on two threads. Times are the best of three, or of one beyond 10 s, and leave out
starting Python, importing libraries and starting Spark; memory is the peak of the whole process, for Spark without that
of the Java machine. Spark is left out where PySpark is not installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

_PART = 1_000_000
_LIMIT = 120  # seconds for one work

PEER = "Polars, sum of both columns"

_WORKS = {
    PEER: """
import polars as pl
def work():
    pl.scan_parquet({path!r}).select(pl.col("y").sum(), pl.col("p").sum()).collect()
""",
    "safecal evaluate FILE": """
import contextlib, io
import safecal.cli.evaluate, safecal.engines.batches
from safecal.cli.main import main
import polars, scipy.interpolate, scipy.optimize
def work():
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["evaluate", {path!r}, "--json"]) == 0
""",
    "evaluate_frame, Polars": """
import polars as pl
import safecal, scipy.interpolate, scipy.optimize
from safecal.engines.frames import evaluate_frame
def work():
    assert evaluate_frame(pl.scan_parquet({path!r}), y_true="y", y_prob="p").n == {rows}
""",
    "evaluate_frame, Spark local[2]": """
from pyspark.sql import SparkSession
import safecal, scipy.interpolate, scipy.optimize
from safecal.engines.frames import evaluate_frame
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.parquet({path!r})
frame.count()
def work():
    assert evaluate_frame(frame, y_true="y", y_prob="p").n == {rows}
""",
}

_MEASURE = """
import json, time
from measuring import peak
times = []
for _ in range(3):
    began = time.perf_counter()
    work()
    times.append(time.perf_counter() - began)
    if times[0] > 10.0:
        break
print(json.dumps([min(times), peak()]))
"""


def write(path: Path, rows: int) -> None:
    """Write a calibrated model's predictions, in row groups of a million."""
    import polars as pl

    rng = np.random.default_rng(0)

    def part(size: int) -> pl.DataFrame:
        p = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 2.0, size)))
        return pl.DataFrame({"y": (rng.random(size) < p).astype(np.int8), "p": p})

    folder = path.with_suffix(".parts")
    folder.mkdir()
    for k, start in enumerate(range(0, rows, _PART)):
        part(min(_PART, rows - start)).write_parquet(folder / f"{k:04d}.parquet")
    pl.scan_parquet(folder / "*.parquet").sink_parquet(path, row_group_size=_PART)


def _is_there(name: str) -> bool:
    """Tell whether what a work needs is installed."""
    needed = ["polars"] + ["pyspark"] * ("Spark" in name)
    found = all(util.find_spec(module) is not None for module in needed)
    return found and ("evaluate_frame" not in name or util.find_spec("safecal.engines.frames") is not None)


def measured(name: str, path: Path, rows: int) -> dict[str, Any]:
    """Return seconds and megabytes of one work, or why it did not run."""
    program = _WORKS[name].format(path=str(path), rows=rows) + _MEASURE
    env = {**os.environ, "POLARS_MAX_THREADS": "2"}
    command = [sys.executable, "-c", program]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=env, timeout=_LIMIT, cwd=Path(__file__).parent
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "rows": rows, "failed": f"more than {_LIMIT} s"}
    if done.returncode:
        return {"name": name, "rows": rows, "failed": done.stderr.strip().splitlines()[-1]}
    seconds, megabytes = json.loads(done.stdout.splitlines()[-1])
    return {"name": name, "rows": rows, "seconds": seconds, "megabytes": megabytes}


def results(rows: int) -> list[dict[str, Any]]:
    """Write the file, and measure each work whose libraries are there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows)
        return [measured(name, path, rows) for name in _WORKS if _is_there(name)]


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = parser.parse_args().rows
    found = results(rows)
    print(f"{rows} rows of Parquet, label and probability")
    for row in found:
        if "failed" in row:
            print(f"  {row['name']:32} did not run: {row['failed']}")
            continue
        ratio = row["seconds"] / found[0]["seconds"]
        print(f"  {row['name']:32} {row['seconds']:6.2f} s  {ratio:6.1f} times  {row['megabytes']:6.0f} MB")


if __name__ == "__main__":
    main()
