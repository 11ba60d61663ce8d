"""Many groups: `safecal evaluate FILE --by g`, beside it with a gate or a report; and the most groups there may be.

    python bench/groups.py [--groups 50000] [--most 1000000]

Whole commands, from the start of Python to its end; memory is the peak of the process.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROUNDS, Measured, command, in_rounds, safecal

_EACH, _FEW = 20, 5  # rows of a group, and of each of the most groups
PLAIN = "safecal evaluate FILE --by g"
GATE, REPORT, MOST = f"{PLAIN} --gate", f"{PLAIN} --report", f"{PLAIN}, the most groups"


def write(path: str, groups: int, each: int) -> None:
    """Write a calibrated model's predictions for groups that come in no order."""
    import polars as pl

    rng = np.random.default_rng(0)
    g = rng.permutation(np.repeat(np.arange(groups), each))
    p = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 2.0, len(g))))
    y = (rng.random(len(g)) < p).astype(np.int8)
    pl.DataFrame({"y": y, "p": p, "g": g}).write_parquet(path)


def results(groups: int, most: int, rounds: int) -> list[dict[str, Any]]:
    """Measure each command."""
    sizes = {PLAIN: (groups, _EACH), GATE: (groups, _EACH), REPORT: (groups, _EACH), MOST: (most, _FEW)}
    with tempfile.TemporaryDirectory() as folder:
        few, many, page = (str(Path(folder) / name) for name in ("few.parquet", "many.parquet", "page.html"))
        for path, name in ((few, PLAIN), (many, MOST)):  # in a process of their own, so that this one stays small
            command([sys.executable, __file__, "--write", path, *map(str, sizes[name])])
        words = {
            PLAIN: safecal("evaluate", few, "--by", "g"),
            GATE: safecal("evaluate", few, "--by", "g", "--gate"),
            REPORT: safecal("evaluate", few, "--by", "g", "--report", page),
            MOST: safecal("evaluate", many, "--by", "g"),
        }

        def measure(name: str) -> Measured:
            return command(words[name], (0, 3, 4) if name == GATE else (0,))

        measurements = in_rounds([PLAIN, GATE, REPORT], measure, rounds) | in_rounds([MOST], measure, 1)
    described = {name: {"groups": count, "rows": count * each} for name, (count, each) in sizes.items()}
    return [{"name": name, **described[name], **one} for name, one in measurements.items()]


def main() -> None:
    """Measure, or write a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=50_000)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", nargs=3, metavar=("FILE", "GROUPS", "EACH"), help="write a file, measure nothing")
    options = parser.parse_args()
    if options.write:
        path, groups, each = options.write
        write(path, int(groups), int(each))
    else:
        print(json.dumps(results(options.groups, options.most, options.rounds)))


if __name__ == "__main__":
    main()
