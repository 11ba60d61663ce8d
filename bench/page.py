"""Results to the tables of docs/benchmarks.md, between its two markers."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from goals import GOALS
from measuring import growth
from peers import BINS, CASES, TABLE

BEGIN, END = "<!-- measured: written by bench/run.py -->", "<!-- end of what was measured -->"


def write(path: Path, results: dict[str, Any]) -> None:
    """Put the tables between the markers of a page."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n\n{tables(results)}\n{END}{after}", encoding="utf-8")


def tables(results: dict[str, Any]) -> str:
    """Return every table as Markdown, of the sections that were measured."""
    parts = [_machine(results), _goals(results)]
    if "binary" in results:
        entries = results["binary"]["entries"]
        parts += [_speed(entries), _sizes(entries), _values(entries)]
    more = {"multiclass": _multiclass, "first": _first, "groups": _groups, "files": _files, "spark": _spark}
    parts += [
        part(results[name]) for name, part in {**more, "states": _states, "slices": _slices}.items() if name in results
    ]
    return "\n\n".join(parts) + "\n"


def _rows(head: Iterable[str], body: Iterable[Iterable[str]], numbers_from: int = 1) -> str:
    head = list(head)
    rule = ["---" if k < numbers_from else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *map(list, body)])


def _digits(value: float | None, digits: int = 3) -> str:
    if value is None or math.isnan(value):
        return "–"
    if value == 0.0:
        return "0"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{places}f}".replace(",", " ")


def _count(n: int) -> str:
    return f"{n:,}".replace(",", " ")


def _power(n: int) -> str:
    return f"10<sup>{round(math.log10(n))}</sup>"


def _ran(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if "failed" not in entry]


def _at(entry: dict[str, Any], n: int) -> dict[str, Any]:
    measurement: dict[str, Any] = next((m for m in entry["measured"] if m["rows"] == n), {"left_out": "not measured"})
    return measurement


def _common(entries: list[dict[str, Any]]) -> int:
    """Return the largest size at which a peer was measured."""
    return max(m["rows"] for e in entries if not e["ours"] for m in e["measured"] if "seconds" in m)


def _machine(results: dict[str, Any]) -> str:
    m, binary = results["machine"], results.get("binary", {"entries": [], "missing": []})
    sets = ", ".join(m["instructions"]) or "neither AVX2 nor AVX-512"
    peers = [e for e in binary["entries"] if not e["ours"]]
    versions = sorted({(e["name"].split()[0].rstrip(","), e["version"]) for e in peers})
    text = f"{m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']} ({sets}); "
    text += f"Python {m['python']}, NumPy {m['numpy']}"
    text += "".join(f"{', ' if k else '; '}{name} {version}" for k, (name, version) in enumerate(versions)) + "."
    if binary["missing"]:
        text += f" Not installed, so not measured: {', '.join(binary['missing'])}."
    failed = [e for e in [*binary["entries"], *results.get("files", []), *results.get("spark", [])] if "failed" in e]
    return text + "".join(f" {e['name']} did not run: `{e['failed']}`." for e in failed)


def _goals(results: dict[str, Any]) -> str:
    body = []
    for goal in GOALS:
        value, met = goal.reached(results)
        if value is not None:
            wanted = "" if goal.most is None else f"{goal.most:g}"
            shown = _digits(value)
            outcome = "" if goal.most is None else "met" if met else "**missed**"
            if not goal.applies(results) and value > (goal.most or value):
                outcome = f"does not apply: no {goal.needs} here"
            body.append([goal.what, goal.beside, shown if met else f"**{shown}**", wanted, outcome])
    title = "## What safecal is held to\n\n"
    return title + _rows(["", "beside", "ratio", "at most", ""], body, 2)


def _speed(entries: list[dict[str, Any]]) -> str:
    n = _common(entries)
    ours = _at(next(e for e in entries if e["name"] == TABLE), n)["seconds"]
    body = []
    for e in _ran(entries):
        at = _at(e, n)
        times = [(m["rows"], m["seconds"]) for m in e["measured"] if "seconds" in m]
        memory = [(m["rows"], m["megabytes"]) for m in e["measured"] if "seconds" in m]
        speed = [at.get("left_out", ""), "", "", ""]
        if "seconds" in at:
            s = at["seconds"]
            speed = [_digits(n / s / 1e6), _digits(s / n * 1e9), _digits(s / ours, 2), _digits(at["megabytes"])]
        flat = max((value for _, value in memory), default=0.0) < 16.0
        slopes = [_digits(growth(times)), "constant" if flat else _digits(growth(memory))]
        body.append([_bold(e["name"], e["ours"]), e["gives"], *speed, *slopes])
    head = ["", "gives", "10<sup>6</sup> rows/s", "ns/row", "times slower", "peak MB", "time grows", "memory grows"]
    return f"## {_count(n)} rows, {BINS} bins\n\n" + _rows(head, body, 2)


def _sizes(entries: list[dict[str, Any]]) -> str:
    sizes = sorted({m["rows"] for e in entries for m in e["measured"]})
    body = []
    for e in _ran(entries):
        cells = [_at(e, n) for n in sizes]
        body.append([e["name"], *(_digits(c["seconds"] / n * 1e9) if "seconds" in c else c["left_out"]
                                  for c, n in zip(cells, sizes, strict=True))])  # fmt: skip
    return "## Nanoseconds a row, by the number of rows\n\n" + _rows(["", *map(_power, sizes)], body)


def _values(entries: list[dict[str, Any]]) -> str:
    n = _common(entries)
    kept = [e for e in entries if _at(e, n).get("value") is not None]
    body = []
    for e in kept:
        given = [e["answers"][name] for name, _, _ in CASES]
        cells = [value if isinstance(value, str) else _digits(value) if value is not None else "–" for value in given]
        cells = [
            "NaN" if isinstance(v, float) and math.isnan(v) else cell for v, cell in zip(given, cells, strict=True)
        ]
        body.append([e["name"], f"{_at(e, n)['value']:.12f}", *cells])
    return "## What they say\n\n" + _rows(["", f"{_count(n)} rows", *(name for name, _, _ in CASES)], body)


def _multiclass(works: list[dict[str, Any]]) -> str:
    ours, n, K = (works[0][key] for key in ("seconds", "rows", "classes"))
    body = [
        [_bold(e["name"], e["name"].startswith("safecal")), e["gives"], _digits(e["seconds"] * 1e3),
         _digits(e["seconds"] / ours, 2), _digits(e["megabytes"])]
        for e in works
    ]  # fmt: skip
    title = f"## {_count(n)} rows of {_count(K)} classes, float32 logits\n\n"
    return title + _rows(["", "gives", "ms", "times slower", "peak MB"], body, 2)


def _first(commands: list[dict[str, Any]]) -> str:
    peer = commands[-1]["processor"]
    body = [
        [f"`{e['name']}`", _digits(e["processor"]), _digits(e["seconds"]), _digits(e["processor"] / peer),
         _digits(e["megabytes"])]
        for e in commands
    ]  # fmt: skip
    head = ["", "s of the processor", "s", "times the imports", "MB of the process"]
    return "## A first answer\n\n" + _rows(head, body)


def _groups(commands: list[dict[str, Any]]) -> str:
    plain = commands[0]["seconds"]
    body = [
        [f"`{e['name'].split(',')[0]}`", _count(e["groups"]), _count(e["rows"]), _digits(e["seconds"]),
         _digits(e["seconds"] / plain), _digits(e["megabytes"])]
        for e in commands
    ]  # fmt: skip
    return "## Many groups\n\n" + _rows(["", "groups", "rows", "s", "times the first", "MB of the process"], body)


def _files(works: list[dict[str, Any]]) -> str:
    return _beside_first(works, f"{_count(works[0]['rows'])} rows of Parquet, two threads", "times the sum")


def _spark(works: list[dict[str, Any]]) -> str:
    return _beside_first(works, f"{_count(works[0]['rows'])} rows in Spark, local[2]", "times Spark's own")


def _beside_first(works: list[dict[str, Any]], title: str, times: str) -> str:
    body = [
        [e["name"], _digits(e["seconds"]), _digits(e["seconds"] / works[0]["seconds"], 2), _digits(e["megabytes"])]
        for e in _ran(works)
    ]
    return f"## {title}\n\n" + _rows(["", "s", times, "MB of the process"], body)


def _states(s: dict[str, Any]) -> str:
    body = [
        [name, _digits(t), _digits(t / s["rows"] * 1e9), _digits(t / s["seconds"], 2)]
        for name, t in (("**safecal.gaussian(...).score()**", s["seconds"]), ("filterpy NEES", s["peer_seconds"]))
    ]
    title = f"## NEES of {_count(s['rows'])} states of six dimensions\n\n"
    return title + _rows(["", "s", "ns/state", "times slower"], body)


def _slices(works: list[dict[str, Any]]) -> str:
    body = [
        [e["name"].split(",")[0], _count(e["rows"]), str(e["features"]), _digits(e["seconds"]),
         _digits(e["seconds"] / e["sorting"]) if "sorting" in e else "", _digits(e["megabytes"]),
         _digits(e["features_megabytes"])]
        for e in works
    ]  # fmt: skip
    head = ["", "rows", "features", "s of the processor", "times sorting them", "peak MB", "MB of the features"]
    return "## Slices of numbers, pairs of conditions\n\n" + _rows(head, body)


def _bold(name: str, ours: bool) -> str:
    return f"**{name}**" if ours else name
