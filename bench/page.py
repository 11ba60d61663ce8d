"""Results to the tables of docs/benchmarks.md, between its two markers."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measuring import growth
from peers import CASES

BEGIN, END = "<!-- measured: written by bench/run.py -->", "<!-- end of what was measured -->"


def write(path: Path, found: dict[str, Any]) -> None:
    """Put the tables between the markers of a page."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n\n{tables(found)}\n{END}{after}", encoding="utf-8")


def tables(found: dict[str, Any]) -> str:
    """Return every table as Markdown."""
    parts = [_machine(found), _speed(found), _sizes(found), _values(found), _multiclass(found)]
    parts += [part(found) for key, part in (("files", _files), ("states", _states)) if key in found]
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
    found: dict[str, Any] = next((m for m in entry["measured"] if m["rows"] == n), {"left_out": "not measured"})
    return found


def _common(found: dict[str, Any]) -> int:
    """Return the largest size at which a peer was measured."""
    return max(m["rows"] for e in found["binary"] if not e["ours"] for m in e["measured"] if "seconds" in m)


def _machine(found: dict[str, Any]) -> str:
    m = found["machine"]
    sets = ", ".join(m["instructions"]) or "neither AVX2 nor AVX-512"
    versions = sorted({(e["name"].split()[0].rstrip(","), e["version"]) for e in found["binary"] if not e["ours"]})
    said = ", ".join(f"{name} {version}" for name, version in versions)
    text = f"{m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']} ({sets}); "
    text += f"Python {m['python']}, NumPy {m['numpy']}; {said}."
    if found["missing"]:
        text += f" Not installed, so not measured: {', '.join(found['missing'])}."
    failed = [e for e in [*found["binary"], *found.get("files", [])] if "failed" in e]
    return text + "".join(f" {e['name']} did not run: `{e['failed']}`." for e in failed)


def _speed(found: dict[str, Any]) -> str:
    n = _common(found)
    ours = _at(next(e for e in found["binary"] if e["name"] == found["reference"]), n)["seconds"]
    body = []
    for e in _ran(found["binary"]):
        at = _at(e, n)
        times = [(m["rows"], m["seconds"]) for m in e["measured"] if "seconds" in m]
        memory = [(m["rows"], m["megabytes"]) for m in e["measured"] if "seconds" in m]
        speed = [at.get("left_out", ""), "", "", ""]
        if "seconds" in at:
            s = at["seconds"]
            speed = [_digits(n / s / 1e6), _digits(s / n * 1e9), _digits(s / ours, 2), _digits(at["megabytes"])]
        flat = max((value for _, value in memory), default=0.0) < 16.0
        slopes = [_digits(growth(times)), "constant" if flat else _digits(growth(memory))]
        body.append([f"**{e['name']}**" if e["ours"] else e["name"], e["gives"], *speed, *slopes])
    head = ["", "gives", "10<sup>6</sup> rows/s", "ns/row", "times slower", "peak MB", "time grows", "memory grows"]
    return f"### {_count(n)} rows, {found['bins']} bins\n\n" + _rows(head, body, 2)


def _sizes(found: dict[str, Any]) -> str:
    sizes = sorted({m["rows"] for e in found["binary"] for m in e["measured"]})
    body = []
    for e in _ran(found["binary"]):
        cells = [_at(e, n) for n in sizes]
        body.append([e["name"], *(_digits(c["seconds"] / n * 1e9) if "seconds" in c else c["left_out"]
                                  for c, n in zip(cells, sizes, strict=True))])  # fmt: skip
    return "### Nanoseconds a row, by the number of rows\n\n" + _rows(["", *map(_power, sizes)], body)


def _values(found: dict[str, Any]) -> str:
    n = _common(found)
    kept = [e for e in found["binary"] if _at(e, n).get("value") is not None]
    body = []
    for e in kept:
        given = [e["answers"][name] for name, _, _ in CASES]
        cells = [value if isinstance(value, str) else _digits(value) if value is not None else "–" for value in given]
        cells = [
            "NaN" if isinstance(v, float) and math.isnan(v) else cell for v, cell in zip(given, cells, strict=True)
        ]
        body.append([e["name"], f"{_at(e, n)['value']:.12f}", *cells])
    return "### What they say\n\n" + _rows(["", f"{_count(n)} rows", *(name for name, _, _ in CASES)], body)


def _multiclass(found: dict[str, Any]) -> str:
    ours = found["multiclass"][0]["seconds"]
    n, K = found["multiclass"][0]["rows"], found["multiclass"][0]["classes"]
    body = [
        [f"**{e['name']}**" if k == 0 else e["name"], e["gives"], _digits(e["seconds"] * 1e3),
         _digits(e["seconds"] / ours, 2), _digits(e["megabytes"])]
        for k, e in enumerate(found["multiclass"])
    ]  # fmt: skip
    title = f"### {_count(n)} rows of {_count(K)} classes, float32 logits\n\n"
    return title + _rows(["", "gives", "ms", "times slower", "peak MB"], body, 2)


def _files(found: dict[str, Any]) -> str:
    peer = found["files"][0]["seconds"]
    body = [
        [e["name"], _digits(e["seconds"]), _digits(e["seconds"] / peer, 2), _digits(e["megabytes"])]
        for e in _ran(found["files"])
    ]
    title = f"### {_count(found['files'][0]['rows'])} rows of Parquet, two threads\n\n"
    return title + _rows(["", "s", "times the sum", "MB of the process"], body)


def _states(found: dict[str, Any]) -> str:
    s = found["states"]
    body = [
        [name, _digits(t), _digits(t / s["rows"] * 1e9), _digits(t / s["seconds"], 2)]
        for name, t in (("**safecal.gaussian(...).score()**", s["seconds"]), ("filterpy NEES", s["peer_seconds"]))
    ]
    title = f"### NEES of {_count(s['rows'])} states of four dimensions\n\n"
    return title + _rows(["", "s", "ns/state", "times slower"], body)
