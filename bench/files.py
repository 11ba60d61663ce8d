"""A large Parquet file: `safecal evaluate` and `evaluate_frame`, beside Polars reading and summing the two columns.

    python bench/files.py [--rows 50000000]

Each runs in a process of its own, on two threads, and its temperature comes from all rows. Times leave out starting
Python and importing libraries; memory is the peak of the whole process.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROUNDS, in_rounds, work_of

_PART = 1_000_000
_LIMIT = 120.0  # seconds for one work

PEER, COMMAND, FRAME = "Polars, sum of both columns", "safecal evaluate FILE", "evaluate_frame, Polars"
_WORKS = {
    PEER: """
import polars as pl
def work():
    pl.scan_parquet({path!r}).select(pl.col("y").sum(), pl.col("p").sum()).collect()
""",
    COMMAND: """
import contextlib, io, json
import safecal.cli.commands, safecal.engines.batches
from safecal.cli import main
import polars
def work():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["evaluate", {path!r}, "--json"]) == 0
    assert json.loads(said.getvalue())["n"] == {rows}
""",
    FRAME: """
import polars as pl
import safecal
from safecal.engines.frames import evaluate_frame
def work():
    assert evaluate_frame(pl.scan_parquet({path!r}), y_true="y", y_prob="p").n == {rows}
""",
}


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


def measured(works: dict[str, str], rows: int, limit: float, rounds: int) -> list[dict[str, Any]]:
    """Write the file, and measure each work on it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows)
        programs = {name: text.format(path=str(path), rows=rows) for name, text in works.items()}
        measurements = in_rounds(list(works), lambda name: work_of(programs[name], limit), rounds)
    return [{"name": name, "rows": rows, **one} for name, one in measurements.items()]


def main(works: dict[str, str], rows: int, limit: float) -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    print(json.dumps(measured(works, options.rows, limit, options.rounds)))


if __name__ == "__main__":
    main(_WORKS, 50_000_000, _LIMIT)
