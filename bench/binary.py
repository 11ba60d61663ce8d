"""Two classes: safecal and every peer on the same rows; time, memory, growth and values.

    python bench/binary.py --sizes 1000 10000 [--peer-rows-max 10000000] [--only NAME ...]

Prints one line of JSON. A size is left out, with the reason, when the one before foretells that it would take more than
20 s or more than half of the free memory.
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROUNDS, Measured, in_its_own_process, in_rounds, status, timed
from peers import ENTRIES, answers, rows

_LIMIT = 20.0  # seconds that one run may take


def results(names: Sequence[str], sizes: Sequence[int], peer_most: int, rounds: int) -> dict[str, Any]:
    """Measure entries, each in a process of its own."""
    chosen = [ENTRIES[name] for name in names or ENTRIES]
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            for kind, column in zip("yp", rows(n), strict=True):
                np.save(Path(folder) / f"{kind}-{n}.npy", column)

        def measure(name: str) -> Measured:
            entry = ENTRIES[name]
            own = [n for n in sizes if entry.ours or n <= peer_most]
            program = ["binary.py", "--entry", name, "--folder", folder, "--sizes", *map(str, own)]
            try:
                measurement: Measured = in_its_own_process(program, entry.environment)
            except RuntimeError as error:
                if entry.ours:
                    raise
                return {"measured": [], "answers": {}, "failed": str(error).splitlines()[-1]}
            return measurement

        measurements = in_rounds([entry.name for entry in chosen if entry.installed], measure, rounds)
    return {
        "missing": [entry.name for entry in chosen if not entry.installed],
        "entries": [{**ENTRIES[name].description, **one} for name, one in measurements.items()],
    }


def measured(name: str, folder: Path, sizes: Sequence[int]) -> Measured:
    """Measure one entry at each size, the smallest first."""
    warnings.simplefilter("ignore")
    work = ENTRIES[name].load()
    work(*rows(1000, seed=1))
    by_size: list[Measured] = []
    last: Measured | None = None
    for n in sizes:
        excuse = None if last is None else _excuse(last, n / last["rows"])
        if excuse is not None:
            by_size.append({"rows": n, "left_out": excuse})
            continue
        y, p = (np.load(folder / f"{kind}-{n}.npy") for kind in "yp")
        last = {"rows": n, **timed(work, y, p)}
        by_size.append(last)
        del y, p
    return {"measured": by_size, "answers": answers(work)}


def _excuse(last: Measured, factor: float) -> str | None:
    """Say why a size that is so many times larger is left out, if it is."""
    if last["seconds"] * factor > _LIMIT:
        return f"more than {_LIMIT:.0f} s"
    if last["megabytes"] * factor > status("MemAvailable", "/proc/meminfo") / 2.0:
        return "too little memory"
    return None


def main() -> None:
    """Measure all entries, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="how many rows")
    parser.add_argument("--peer-rows-max", type=int, default=10**7, help="most rows for the peers")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="entries of peers.py (default: all)")
    parser.add_argument("--entry", metavar="NAME", help="measure this one here")
    parser.add_argument("--folder", type=Path, help="with --entry: where the rows are")
    options = parser.parse_args()
    if options.entry:
        document = measured(options.entry, options.folder, options.sizes)
    else:
        document = results(options.only, options.sizes, options.peer_rows_max, options.rounds)
    print(json.dumps(document))


if __name__ == "__main__":
    main()
