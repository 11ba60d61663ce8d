"""One datum's walk: which files and functions of safecal a call passes, from the front door to the verdict.

    python tools/walk.py            how many files, for each front door
    python tools/walk.py --files    and which: each with the functions of it that run

A file counts where a function of it runs; what runs at import does not. The verdict is there when `Evaluation.of`
returns; what a command runs after that, it shows. CONTRIBUTING.md holds the table.
"""

import argparse
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import safecal

PACKAGE = str(Path(safecal.__file__).parent) + os.sep


def walked(call: Callable[[], Any]) -> tuple[dict[str, set[str]], int]:
    """Return the functions of safecal that a call passes, by their files, and how many files lie before the verdict."""
    passed: dict[str, set[str]] = {}
    before: list[int] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        if event == "call":
            passed.setdefault(code.co_filename.removeprefix(PACKAGE), set()).add(code.co_qualname)
        elif event == "return" and code.co_qualname == "Evaluation.of":
            before.append(len(passed))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return passed, before[0] if before else len(passed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="name them")
    options = parser.parse_args()
    import polars as pl

    from safecal.cli import main as command
    from safecal.engines.frames import evaluate_frame

    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    frame = pl.DataFrame({"y": y, "p": p})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in")
        path.mkdir()
        file = path / "rows.parquet"
        frame.write_parquet(file)

        def quiet(*words: str) -> None:
            with redirect_stdout(io.StringIO()):
                command(list(words))

        store = str(Path(folder, "store.sqlite"))
        walks: dict[str, Callable[[], Any]] = {
            "`evaluate(y, p)`": lambda: safecal.evaluate(y, p),
            "`evaluate_frame`": lambda: evaluate_frame(frame, y_true="y", y_prob="p"),
            "`safecal evaluate rows.parquet`": lambda: quiet("evaluate", str(file)),
            "`safecal watch`": lambda: quiet("watch", str(path), "--store", store, "--once", "--poll", "0.01"),
        }
        print("| call | files to the verdict | to the last line |\n|---|---|---|")
        for name, call in walks.items():
            call()  # once before, for what is loaded late
            Path(store).unlink(missing_ok=True)
            passed, before = walked(call)
            print(f"| {name} | {before} | {len(passed)} |")
            if options.files:
                print(
                    *(f"  {file}: {', '.join(sorted(functions))}" for file, functions in sorted(passed.items())),
                    sep="\n",
                )


if __name__ == "__main__":
    main()
