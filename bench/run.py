"""Every peer measured in the same run on the same rows: time, memory, growth and values.

    python bench/run.py                            all sections, up to 10^7 rows
    python bench/run.py --rows-max 100000000       and 10^8 for safecal
    python bench/run.py --only groups --only first these sections alone; the others stay as they were measured
    python bench/run.py --quick                    a thousand rows, one peer, no Spark; writes nothing unless told

Each entry is measured in a process of its own, in rounds of alternating order; times are the shortest of all runs.
Results go to bench/results/cpu.json, after each section, and from there into docs/benchmarks.md. `--page-only` writes
the page anew from results that are there.
"""

import argparse
import json
import sys
from importlib import util
from pathlib import Path
from typing import Any

import page
from measuring import in_its_own_process, machine
from peers import CURVE, EVALUATE, TABLE

HERE = Path(__file__).parent

# The sections: what their programs are given for a quick look. Each is a program of its own.
QUICK: dict[str, list[str]] = {
    "binary": ["--sizes", "1000", "--rounds", "1", "--only", TABLE, EVALUATE, CURVE],
    "first": ["--rounds", "1"],
    "multiclass": ["--rows", "50", "--classes", "5", "--rounds", "1"],
    "groups": ["--groups", "50", "--most", "100", "--rounds", "1"],
    "files": ["--rows", "2000", "--rounds", "1"],
    "spark": [],
    "states": ["--rows", "100"],
    "slices": ["--rows", "2000", "--features", "3"],
}
_NEEDED = {"files": "polars", "groups": "polars", "first": "polars", "spark": "pyspark", "states": "filterpy"}


def _words(name: str, options: argparse.Namespace) -> list[str]:
    """Return what the program of a section is given."""
    if options.quick:
        return QUICK[name]
    if name == "binary":
        sizes = [str(10**k) for k in range(3, 10) if 10**k <= options.rows_max]
        return ["--sizes", *sizes, "--peer-rows-max", str(options.peer_rows_max)]
    return ["--rows", str(options.spark_rows)] if name == "spark" else []


def _earlier(path: Path | None, only: list[str]) -> dict[str, Any]:
    """Return the results of the sections that are not measured again."""
    if not only or path is None or not path.exists():
        return {}
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if results["machine"] != machine():
        sys.exit(f"{path} was measured on another machine, or with another Python: measure all sections again.")
    return results


def main() -> None:
    """Measure, write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=list(QUICK), default=[], help="this section; may be repeated"
    )
    parser.add_argument("--rows-max", type=int, default=10**7, help="most rows for safecal")
    parser.add_argument("--peer-rows-max", type=int, default=10**7, help="most rows for the peers")
    parser.add_argument("--spark-rows", type=int, default=5_000_000, help="rows for Spark")
    parser.add_argument("--quick", action="store_true", help="a thousand rows, scikit-learn alone")
    parser.add_argument("--json", type=Path, help="where results go")
    parser.add_argument("--page", type=Path, help="the page that is written anew")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    target = options.json or (None if options.quick else HERE / "results" / "cpu.json")
    text = options.page or (None if options.quick else HERE.parent / "docs" / "benchmarks.md")
    if options.page_only:
        results = json.loads((options.json or HERE / "results" / "cpu.json").read_text(encoding="utf-8"))
    else:
        results = {**_earlier(target, options.only), "machine": machine()}
        for name in options.only or QUICK:
            if (options.quick and not QUICK[name]) or util.find_spec(_NEEDED.get(name, "numpy")) is None:
                continue
            print(f"{name} ...", file=sys.stderr, flush=True)
            results[name] = in_its_own_process([f"{name}.py", *_words(name, options)], quiet=False)
            if target is not None:
                target.parent.mkdir(exist_ok=True)
                target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if text is not None:
        page.write(text, results)
    print(page.tables(results))


if __name__ == "__main__":
    main()
