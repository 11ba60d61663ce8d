"""One datum's walk: which files and functions of safecal a call passes, from the front door to the verdict.

    python tools/walk.py

prints the table that CONTRIBUTING holds. A file counts where a function of it runs; what runs at import does not.
"""

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

PACKAGE = str(Path(__file__).resolve().parents[1] / "src" / "safecal") + os.sep


def walked(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how many files and functions of safecal a call passes."""
    seen: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            seen.add((code.co_filename, code.co_qualname))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in seen}), len(seen)


def main() -> None:
    """Print the table."""
    import polars as pl

    import safecal
    from safecal.cli.main import main as command
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
            "`.verdict`": lambda: safecal.evaluate(y, p).verdict,
            "`evaluate_frame`": lambda: evaluate_frame(frame, y_true="y", y_prob="p"),
            "`safecal evaluate rows.parquet`": lambda: quiet("evaluate", str(file)),
            "`safecal watch`": lambda: quiet("watch", str(path), "--store", store, "--once", "--poll", "0.01"),
        }
        print("| call | files | functions |\n|---|---|---|")
        for name, call in walks.items():
            call()  # once before, for what is loaded late
            Path(store).unlink(missing_ok=True)
            files, functions = walked(call)
            print(f"| {name} | {files} | {functions} |")


if __name__ == "__main__":
    main()
