"""Measure the size, power and coverage of the tests and intervals, and publish them.

`validate_cells.py` says what is drawn; this program runs it, keeps the counts, and writes the tables.

Draws many data sets from a known truth and counts how often each test rejects and each interval misses. The counts go
to ``docs/validation/*.json`` and from there, as tables, between the markers of ``docs/validation.md``. A cell of a
table has a seed of its own, and its counts are kept in ``.validate/`` as soon as it is finished: a run that was stopped
goes on where it was, and ends with the same numbers.

    python tools/validate.py                   # every table; an hour on one core
    python tools/validate.py --only coverage   # one of them
    python tools/validate.py --quick           # a look, in two minutes; leaves docs/ alone
    python tools/validate.py --render          # the tables again, from the counts in docs/validation/
"""

import argparse
import ast
import hashlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from validate_cells import (
    COMPARED,
    INTERVALS,
    LEVELS,
    METHODS,
    MODELS,
    REDRAWN,
    RUN,
    STEPS,
    TAIL,
    TESTS,
    Cell,
    Counts,
    cells,
    drawn,
)

import safecal

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("size", "lattice", "equality", "power", "dependence", "coverage")  # the longest last
VERSIONS = {
    "size": 2,
    "lattice": 1,
    "equality": 1,
    "power": 1,
    "dependence": 2,
    "coverage": 3,
}  # raise one when what its cells do changes
QUICK = 20  # replications


# Running: a cache that survives, and a line that says how long it will take.


def settings(kind: str, replications: int | None) -> dict[str, Any]:
    """Return what the numbers depend on besides the cell."""
    package = Path(safecal.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for room in ("inference", "families", "_kernels") for p in (package / room).glob("*.py")):
        digest.update(_meaning(path.read_text(encoding="utf-8")).encode())
    return {
        "version": VERSIONS[kind], "safecal": safecal.__version__, "source": digest.hexdigest()[:16], "levels": LEVELS,
        "miss on each side": TAIL, "ECE redraws": REDRAWN, "steps": STEPS, "replications": replications or "usual",
    }  # fmt: skip


def _meaning(source: str) -> str:
    """Return source code without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
    return ast.dump(tree)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


class Progress:
    """A line on the terminal; nothing when the output is piped."""

    def __init__(self, todo: Sequence[Cell]) -> None:
        self.shown = sys.stderr.isatty()
        self.total = sum(map(self.cost, todo))
        self.done, self.start, self.last, self.title, self.step = 0.0, time.monotonic(), 0.0, "", 0.0

    @staticmethod
    def cost(cell: Cell) -> float:
        """Guess the seconds a cell takes."""
        n = int(cell.params.get("n", 1000))
        slow = 0.04 if drawn(cell.params.get("predictions", ""), n) else 0.0
        each = {"size": 0.004 + 3e-6 * n, "power": 0.003 + 5e-6 * n, "coverage": 0.03 + 6e-5 * n, "dependence": 0.01}
        each |= {"lattice": each["size"], "equality": 1.0}
        return cell.replications * (each[cell.kind] + slow)

    def begin(self, number: int, count: int, cell: Cell) -> None:
        """Say which cell is next."""
        self.title, self.step = f"[{number}/{count}] {cell.key}", self.cost(cell) / cell.replications

    def tick(self) -> None:
        """Count one replication."""
        self.done += self.step
        now = time.monotonic()
        if self.shown and now - self.last > 0.2:
            left = (now - self.start) * (self.total / self.done - 1.0)
            sys.stderr.write(f"\r\033[K{self.title[:90]}  {100 * self.done / self.total:.0f} %, {clock(left)} left")
            sys.stderr.flush()
            self.last = now

    def end(self) -> None:
        """Clear the line."""
        if self.shown:
            sys.stderr.write("\r\033[K")


def clock(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def run(todo: Sequence[Cell], cache: Path, results: dict[str, list[Counts]], chosen: dict[str, dict[str, Any]]) -> None:
    """Add the result of each cell to ``results``, from the cache where it is there."""
    names = {k: hashlib.sha256(json.dumps(v, sort_keys=True).encode()).hexdigest()[:12] for k, v in chosen.items()}

    def place(cell: Cell) -> Path:
        name = hashlib.sha256(f"{cell.key}, {cell.replications}".encode()).hexdigest()[:16]
        return cache / names[cell.kind] / f"{name}.json"

    progress = Progress([cell for cell in todo if not place(cell).exists()])
    for number, cell in enumerate(todo, 1):
        path = place(cell)
        if not path.exists():
            progress.begin(number, len(todo), cell)
            start = time.monotonic()
            counts = RUN[cell.kind](cell, progress.tick)
            result = {**cell.params, "replications": cell.replications, **counts}
            write(path, json.dumps({"key": cell.key, "seconds": time.monotonic() - start, "result": result}))
        results[cell.kind].append(json.loads(path.read_text(encoding="utf-8"))["result"])
    progress.end()


# Publishing: counts as JSON, tables between markers.


def percent(count: int, result: Counts, nominal: float | None) -> str:
    """Write a rate in percent, bold where it is beyond nominal plus three standard errors."""
    of = result["replications"]
    text = f"{100 * count / of:.1f}"
    return f"**{text}**" if nominal and count / of > nominal + 3.0 * error(nominal, of) else text


def error(rate: float, replications: int) -> float:
    """Return the standard error of a rate."""
    return math.sqrt(rate * (1.0 - rate) / replications)


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(x) for x in row) + " |" for row in rows)


def about(results: Sequence[Counts], *rates: float) -> str:
    """Say how many replications there were, and what they are worth."""
    counts = sorted({r["replications"] for r in results}, reverse=True)
    words = " or ".join(f"{c} ({', '.join(f'{100 * error(rate, c):.1f}' for rate in rates)})" for c in counts)
    at = " and ".join(f"{100 * rate:g} %" for rate in rates)
    return f"Replications, with the standard error in percentage points of a rate of {at}: {words}."


def size_tables(results: Sequence[Counts]) -> str:
    parts = []
    for level in LEVELS:
        head = ["predictions", "n", *METHODS, *(["auto took"] if level == LEVELS[0] else [])]
        lines = []
        for r in results:
            rates = (
                [percent(r["rejected"].get(f"{m} {level:g} {side}", 0), r, level) for side in ("over", "under")]
                for m in METHODS
            )
            line = [r["predictions"], r["n"], *(" / ".join(pair) for pair in rates)]
            shares = [f"{m} {100 * c / r['replications']:.0f} %" for m, c in r["used"].items()]
            took = ", ".join(shares) if len(shares) > 1 else next(iter(r["used"]))
            lines.append([*line, took] if level == LEVELS[0] else line)
        text = (
            f"**Nominal {100 * level:g} %.** Each pair is the percentage of calibrated samples that a one-sided test "
            f"calls over-confident / under-confident. It should be {100 * level:g} or less; bold is more than "
            f"three standard errors above. {about(results, level)} Made by `make validate`."
        )
        parts.append(f"{text}\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def equality_table(results: Sequence[Counts]) -> str:
    lines = []
    for r in results:
        pairs = (
            " / ".join(_exact(r["told apart"][f"{name} {level:g}"], level) for level in LEVELS) for name in COMPARED
        )
        lines.append([f"{r['a']:g}", f"{r['b']:g}", r["n"], *pairs])
    text = (
        "Each pair is the percentage of samples in which `compare` tells two models apart, at 5 % / at 1 %, that are "
        "equal in expectation: one says a in every row, the other b, and outcomes have the probability at which their "
        "NLL, or their Brier score, is the same. It should be 5 / 1 or less; bold is more. The rates are exact: every "
        "number of mistakes is tried, and counted by its probability. Made by `make validate`."
    )
    return f"{text}\n\n{table(['a', 'b', 'n', *COMPARED], lines)}"


def _exact(rate: float, level: float) -> str:
    text = f"{100.0 * rate:.1f}"
    return f"**{text}**" if rate > level + 1e-9 else text


def power_table(results: Sequence[Counts]) -> str:
    lines = []
    for r in results:
        null = 0.05 if r["truth"] == "T = 1" else None
        lines.append(
            [r["predictions"], r["truth"], r["n"], *(percent(r["rejected"].get(t, 0), r, null) for t in TESTS)]
        )
    text = (
        "Percentage of samples in which each test rejects at 5 %, two-sided but for the last column. Larger is better, "
        "except in the lines T = 1, where the model is calibrated: there it should be 5 or less, and bold is more than "
        f"three standard errors above. {about(results, 0.05, 0.5)} Made by `make validate`."
    )
    return f"{text}\n\n{table(['predictions', 'truth', 'n', *TESTS], lines)}"


def coverage_table(results: Sequence[Counts]) -> str:
    order = {model: k for k, model in enumerate(MODELS)}
    lines = []
    for r in sorted(results, key=lambda r: (order[r["predictions"]], r["T"], r["n"])):
        pairs = (" / ".join(percent(c, r, TAIL) for c in r["missed"][name]) for name in INTERVALS)
        lines.append([r["predictions"], f"{r['T']:g}", f"{r['truth']:.3f}", r["n"], *pairs])
    text = (
        "Each pair is the percentage of 90 % intervals that lie wholly above the truth / wholly below it. Each should "
        "be 5 or less; bold is more than three standard errors above. The second number matters for safety: it is how "
        f"often the upper bound is too low. {about(results, TAIL)} Made by `make validate`."
    )
    return f"{text}\n\n{table(['predictions', 'true T', 'true ECD', 'n', *INTERVALS], lines)}"


def dependence_table(results: Sequence[Counts]) -> str:
    lines = [
        [r["process noise"], r["runs"], *(percent(r["rejected"].get(k, 0), r, 0.05) for k in ("pooled", "clustered"))]
        for r in results
    ]
    text = (
        f"Percentage of correct Kalman filters, {STEPS} steps a run, that a two-sided test at 5 % calls wrong. It "
        f"should be 5 or less; bold is more than three standard errors above. {about(results, 0.05)} "
        "Made by `make validate`."
    )
    return f"{text}\n\n{table(['process noise', 'runs', 'pooled chi-square', '`cluster=` run'], lines)}"


RENDER: dict[str, Callable[[Sequence[Counts]], str]] = {
    "size": size_tables,
    "lattice": size_tables,
    "equality": equality_table,
    "power": power_table,
    "coverage": coverage_table,
    "dependence": dependence_table,
}


def markers(kind: str) -> tuple[str, str]:
    """Return the comments between which a table stands."""
    return f"<!-- validate: {kind} -->", f"<!-- end: {kind} -->"


def publish(out: Path, results_by_kind: dict[str, list[Counts]], chosen: dict[str, dict[str, Any]]) -> None:
    """Write the counts of each kind, and every table for which there are counts."""
    for kind, results in results_by_kind.items():
        if results:
            counted = {"settings": chosen[kind], "cells": f"{len(results)} of {len(cells(kind))}", "results": results}
            text = json.dumps(counted, indent=1, ensure_ascii=False)
            write(out / "validation" / f"{kind}.json", text + "\n")
    page = out / "validation.md"
    blank = "# Validation\n\n" + "".join("{}\n{}\n\n".format(*markers(kind)) for kind in KINDS)
    text = page.read_text(encoding="utf-8") if page.exists() else blank
    for kind in KINDS:
        source = out / "validation" / f"{kind}.json"
        begin, end = markers(kind)
        if source.exists():
            counted = json.loads(source.read_text(encoding="utf-8"))
            before, rest = text.split(begin)
            done, whole = counted["cells"].split(" of ")
            note = "" if done == whole else f"Finished so far: {done} of {whole} cells.\n\n"
            text = f"{before}{begin}\n\n{note}{RENDER[kind](counted['results'])}\n\n{end}{rest.split(end)[1]}"
    write(page, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and publish it, also when stopped half-way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replications, written to .validate/quick")
    parser.add_argument("--replications", type=int, metavar="N", help="in every cell, instead of the usual number")
    parser.add_argument("--only", choices=KINDS, help="one kind of table")
    parser.add_argument("--match", default="", metavar="TEXT", help="only cells whose name contains it, as in 'n = 30'")
    parser.add_argument("--out", type=Path, help="folder of validation.md and validation/; docs by default")
    parser.add_argument("--cache", type=Path, default=ROOT / ".validate", help="where finished cells are kept")
    parser.add_argument("--render", action="store_true", help="run nothing: write the tables from the counts")
    asked = parser.parse_args(arguments)
    replications = asked.replications or (QUICK if asked.quick else None)
    out = asked.out or (ROOT / ".validate" / "quick" if asked.quick else ROOT / "docs")
    kinds = [asked.only] if asked.only else KINDS
    chosen = {kind: settings(kind, replications) for kind in kinds}
    results: dict[str, list[Counts]] = {kind: [] for kind in kinds}
    todo = [cell for kind in kinds for cell in cells(kind, replications) if asked.match in f"{cell.key},"]
    stopped = False
    try:
        if not asked.render:
            run(todo, asked.cache, results, chosen)
    except KeyboardInterrupt:
        stopped = True
    publish(out, results, chosen)
    if stopped:
        print("\nStopped: what was finished is published. Run it again to go on.", file=sys.stderr)
    return 130 if stopped else 0


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
