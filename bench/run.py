"""Every peer measured in the same run on the same rows: time, memory, growth and values.

    python bench/run.py                          10^4 to 10^7 rows
    python bench/run.py --rows-max 100000000     and 10^8 for safecal
    python bench/run.py --quick                  a thousand rows, one peer; writes nothing unless told

Each entry is measured in a process of its own, in two rounds, the second in the reverse order; times are the shortest
of all runs. Results go to bench/results/cpu.json, and from there into docs/benchmarks.md. `--page-only` writes the page
anew from results that are there.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import files
import multiclass
import numpy as np
import page
import states
from measuring import in_its_own_process, machine
from peers import BINS, ENTRIES, OURS, Entry, rows

HERE = Path(__file__).parent
ROUNDS = 2
LIMIT = 20.0  # seconds that one run may take


def chosen(quick: bool) -> list[Entry]:
    """Return the entries whose libraries are installed."""
    entries = [entry for entry in ENTRIES.values() if entry.installed]
    return [OURS[0], *(entry for entry in entries if entry.module == "sklearn")][:2] if quick else entries


def write_rows(folder: Path, sizes: list[int]) -> None:
    """Write the labels and probabilities of each size."""
    for n in sizes:
        for kind, column in zip("yp", rows(n), strict=True):
            np.save(folder / f"{kind}-{n}.npy", column)


def measure(entries: list[Entry], folder: Path, sizes: list[int], peer_most: int, rounds: int) -> list[dict[str, Any]]:
    """Measure each entry, in rounds of alternating order."""
    found: dict[str, dict[str, Any]] = {}
    for k in range(rounds):
        for entry in entries[:: -1 if k % 2 else 1]:
            own = [n for n in sizes if entry.ours or n <= peer_most]
            program = ["measuring.py", entry.name, str(folder), str(LIMIT), *map(str, own)]
            try:
                new = in_its_own_process(program, dict(entry.environment))
            except RuntimeError as error:
                if entry.ours:
                    raise
                new = {"measured": [], "answers": {}, "failed": str(error).splitlines()[-1]}
            print(f"round {k + 1}: {entry.name}", flush=True)
            found[entry.name] = new if entry.name not in found else shorter(found[entry.name], new)
    return [describe(entry, found[entry.name]) for entry in entries]


def shorter(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Join two rounds: the shorter time and the larger memory of each size; a size that was measured once, counts."""
    joined = []
    for x, y in zip(a["measured"], b["measured"], strict=True):
        if "left_out" in x or "left_out" in y:
            joined.append(y if "left_out" in x else x)
        else:
            memory = max(x["megabytes"], y["megabytes"])
            joined.append({**x, "seconds": min(x["seconds"], y["seconds"]), "megabytes": memory})
    return {**a, "measured": joined}


def describe(entry: Entry, found: dict[str, Any]) -> dict[str, Any]:
    """Return the results of an entry, with what it is."""
    told = {"name": entry.name, "ours": entry.ours, "version": entry.version, "gives": entry.gives}
    return {**told, **found}


def main() -> None:
    """Measure, write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows-max", type=int, default=10**7, help="most rows for safecal")
    parser.add_argument("--peer-rows-max", type=int, default=10**7, help="most rows for the peers")
    parser.add_argument("--quick", action="store_true", help="a thousand rows, scikit-learn alone")
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--page", type=Path, help="the page that is written anew")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    target = options.json or (None if options.quick else HERE / "results" / "cpu.json")
    text = options.page or (None if options.quick else HERE.parent / "docs" / "benchmarks.md")
    if options.page_only:
        found = json.loads((options.json or HERE / "results" / "cpu.json").read_text(encoding="utf-8"))
    else:
        found = everything(options)
    if target is not None and not options.page_only:
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if text is not None:
        page.write(text, found)
    print(page.tables(found))


def everything(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all there is."""
    quick = options.quick
    sizes = [1000] if quick else [10**k for k in range(4, 10) if 10**k <= options.rows_max]
    found: dict[str, Any] = {"machine": machine(), "bins": BINS, "reference": OURS[0].name}
    found["missing"] = [entry.name for entry in ENTRIES.values() if not entry.installed]
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), sizes)
        found["binary"] = measure(chosen(quick), Path(folder), sizes, options.peer_rows_max, 1 if quick else ROUNDS)
    found["multiclass"] = multiclass.results(*((50, 5) if quick else (100_000, 1000)))
    if not quick:
        found["files"] = files.results(50_000_000)
        found["states"] = states.results(1_000_000)
    return found


if __name__ == "__main__":
    main()
