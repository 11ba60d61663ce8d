"""Maps in the languages of the places where they are used: Python and SQL as text, and a torch Module."""

import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

from .._checks.message import fail, show
from .._optional import require
from ..errors import OptionError, ShapeError
from .steps import Columns, Curve, Line, Stairs, Step

__all__ = ["python_text", "sql_text", "torch_module"]

_LARGEST = "700"  # of an exponent: beyond it some databases complain, and nothing changes


def _changing(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.size]


# Python


def python_text(steps: Sequence[Step], classes: int, name: str) -> str:
    """Return a function of one probability, or of a list with one for each class."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise fail(OptionError, "name", "must be the name of a function", got=show(name))
    body = _python_two(steps) if classes == 2 else _python_many(steps, classes)
    head = "p" if classes == 2 else "ps"
    what = "the positive class" if classes == 2 else "each class"
    lines = ["import math", "", "", f"def {name}({head}):", f'    """Return the recalibrated probability of {what}."""']
    return "\n".join([*lines, *(f"    {line}" for line in body), ""])


def _python_two(steps: Sequence[Step]) -> list[str]:
    lines = [
        "if not 0.0 <= p <= 1.0:",
        '    raise ValueError(f"a probability lies in [0, 1]; got {p}")',
        "z = -math.inf if p == 0.0 else math.inf if p == 1.0 else math.log(p) - math.log1p(-p)",
    ]
    for step in _changing(steps):
        if isinstance(step, Line):
            lines.append(f"z = {step.slope!r} * z + {step.shift!r}")
        elif isinstance(step, Curve):
            lines += ["a = -z if z < -700.0 else math.log1p(math.exp(-z))  # -log p",
                      "b = z if z > 700.0 else math.log1p(math.exp(z))  # -log(1 - p)"]  # fmt: skip
            parts = [f"{factor!r} * {letter}" for factor, letter in ((-step.a, "a"), (step.b, "b")) if factor]
            lines.append(f"z = {' + '.join(parts)} + {step.c!r}")
        else:
            assert isinstance(step, Stairs)
            lines.append(f"starts = {_python_numbers(step.starts)}")
            lines.append(f"values = {_python_numbers(step.values)}")
            lines.append("z = values[sum(z >= start for start in starts)]")
    lines += ["e = math.exp(-abs(z))", "return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)"]
    return lines


def _python_many(steps: Sequence[Step], classes: int) -> list[str]:
    lines = [
        f"if len(ps) != {classes} or min(ps) < 0.0 or abs(sum(ps) - 1.0) > 1e-3:",
        f'    raise ValueError("{classes} probabilities that sum to 1 are needed")',
        "total = sum(ps)",
        "zs = [math.log(p / total) if p > 0.0 else -math.inf for p in ps]",
    ]
    for step in _changing(steps):
        if isinstance(step, Line):
            lines += ["top = max(zs)", f"zs = [{step.slope!r} * (z - top) for z in zs]"]
        else:
            assert isinstance(step, Columns)
            lines.append(f"weights = {_python_numbers(step.weights)}")
            lines.append(f"shifts = {_python_numbers(step.shifts)}")
            lines.append("zs = [(w * z if w else 0.0) + b for w, b, z in zip(weights, shifts, zs)]")
    lines += [
        "top = max(zs)",
        "es = [math.exp(z - top) for z in zs]",
        "total = sum(es)",
        "return [e / total for e in es]",
    ]
    return lines


def _python_numbers(numbers: Sequence[float]) -> str:
    text = [{float("inf"): "math.inf", float("-inf"): "-math.inf"}.get(x, repr(x)) for x in numbers]
    return f"({', '.join(text)}{',' if len(text) == 1 else ''})"


# SQL


def sql_text(steps: Sequence[Step], classes: int, columns: Sequence[Any]) -> str:
    """Return an expression of a column, or one of each class, with its name."""
    for column in columns:
        if not (isinstance(column, str) and column):
            raise fail(OptionError, "columns", "must be names of columns", got=show(column))
    wanted = 1 if classes == 2 else classes
    if len(columns) != wanted:
        rule = "must be one column, of the positive class" if wanted == 1 else f"must be {wanted} columns, one a class"
        raise fail(ShapeError, "columns", rule, got=str(len(columns)), hint='for example `to_sql("p")`.')
    if classes == 2:
        return _sql_two(steps, columns[0])
    return _sql_many(steps, columns)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _bounded(text: str) -> str:
    """Return an exponent within what every database takes."""
    return f"CASE WHEN {text} > {_LARGEST} THEN {_LARGEST} WHEN {text} < -{_LARGEST} THEN -{_LARGEST} ELSE {text} END"


def _double(x: float) -> str:
    """Return a number that is a double, not a decimal of few digits."""
    return f"CAST({x!r} AS DOUBLE PRECISION)"


def _sql_two(steps: Sequence[Step], column: str) -> str:
    p = f"CAST({_quoted(column)} AS DOUBLE PRECISION)"
    changing = _changing(steps)
    if not changing:
        return p
    z, ends = f"(ln({p}) - ln(1 - {p}))", ("0.0", "1.0")
    if isinstance(changing[0], Stairs):
        return _sql_stairs(changing[0], changing[1:], p)
    first = changing[0]
    if isinstance(first, Curve):
        parts = [f"{_double(first.a)} * ln({p})"] if first.a else []
        parts += [f"- {_double(first.b)} * ln(1 - {p})"] if first.b else []
        z = f"({' '.join(parts)} + {_double(first.c)})"
        scale = 1.0
        for step in changing[1:]:
            assert isinstance(step, Line)
            scale *= step.slope
        z = f"({_double(scale)} * {z})"
        low = "0.0" if first.a else _double(_share(scale * first.c))
        high = "1.0" if first.b else _double(_share(scale * first.c))
        ends = (low, high)
    else:
        for step in changing:
            assert isinstance(step, Line)
            z = f"({_double(step.slope)} * {z} + {_double(step.shift)})"
    inside = f"1 / (1 + exp(-({_bounded(z)})))"
    return f"CASE WHEN {p} <= 0 THEN {ends[0]} WHEN {p} >= 1 THEN {ends[1]} ELSE {inside} END"


def _share(z: float) -> float:
    e = math.exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


def _sql_stairs(step: Stairs, after: Sequence[Step], p: str) -> str:
    values = list(step.values)
    for line in after:
        assert isinstance(line, Line)
        values = [line.slope * v for v in values]
    z = f"(ln({p}) - ln(1 - {p}))"
    finite = [start for start in step.starts if math.isfinite(start)]
    cases = [f"WHEN {z} < {_double(start)} THEN {_double(_share(v))}" for start, v in zip(finite, values, strict=False)]
    ends = f"WHEN {p} <= 0 THEN {_double(_share(values[0]))} WHEN {p} >= 1 THEN {_double(_share(values[-1]))}"
    return f"CASE {' '.join([ends, *cases])} ELSE {_double(_share(values[len(finite)]))} END"


def _sql_many(steps: Sequence[Step], columns: Sequence[str]) -> str:
    slope, weights, shifts = 1.0, [1.0] * len(columns), [0.0] * len(columns)
    for step in _changing(steps):
        if isinstance(step, Columns):
            weights, shifts = list(step.weights), list(step.shifts)
        else:
            assert isinstance(step, Line)
            slope *= step.slope
    total = " + ".join(f"CAST({_quoted(c)} AS DOUBLE PRECISION)" for c in columns)
    zs = []
    for column, w, b in zip(columns, weights, shifts, strict=True):
        p = f"(CAST({_quoted(column)} AS DOUBLE PRECISION) / ({total}))"
        z = f"{_double(slope * w)} * ln({p}) + {_double(slope * b)}" if w else _double(slope * b)
        zs.append(f"CASE WHEN {_quoted(column)} <= 0 THEN {'-1e300' if w else z} ELSE {z} END")
    found = []
    for j, column in enumerate(columns):
        odds = " + ".join(
            "1" if k == j else f"exp({_bounded(f'(({zs[k]}) - ({zs[j]}))')})" for k in range(len(columns))
        )
        zero = f"CASE WHEN {_quoted(column)} <= 0 THEN 0.0 ELSE 1 / ({odds}) END" if weights[j] else f"1 / ({odds})"
        found.append(f"{zero} AS {_quoted(f'calibrated_{column}')}")
    return ",\n".join(found)


# torch


def torch_module(steps: Sequence[Step], classes: int) -> Any:
    """Return a Module that makes recalibrated logits of logits."""
    require("torch", "`to_torch` needs torch", "torch")
    import torch

    made = [_torch_step(torch, step, classes) for step in _changing(steps)]

    class Recalibration(torch.nn.Module):  # type: ignore[misc]  # it is Any where torch is not installed
        """Recalibrated logits."""

        def __init__(self) -> None:
            super().__init__()
            for k, (_, numbers) in enumerate(made):
                for name, values in numbers.items():
                    self.register_buffer(f"{name}_{k}", torch.tensor(values, dtype=torch.float64))

        def forward(self, logits: Any) -> Any:
            """Return recalibrated logits of log-odds (n,), or of columns (n, K)."""
            z = logits.double()
            two = classes == 2 and z.ndim == 2
            if two:
                z = z[..., 1] - z[..., 0]
            elif z.ndim == 2:
                z = torch.log_softmax(z, dim=-1)
            for k, (function, numbers) in enumerate(made):
                z = function(z, *(getattr(self, f"{name}_{k}") for name in numbers))
            if two:
                z = torch.stack([torch.nn.functional.logsigmoid(-z), torch.nn.functional.logsigmoid(z)], dim=-1)
            return z.to(logits.dtype)

    return Recalibration()


def _torch_step(torch: Any, step: Step, classes: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    if isinstance(step, Line):
        return lambda z, slope, shift: slope * z + shift, {"slope": step.slope, "shift": step.shift}
    if isinstance(step, Columns):
        return lambda z, w, b: torch.where(w == 0.0, 0.0, w * z) + b, {"weights": step.weights, "shifts": step.shifts}
    if isinstance(step, Curve):
        log = torch.nn.functional.logsigmoid
        return lambda z, abc: abc[0] * log(z) - abc[1] * log(-z) + abc[2], {"abc": (step.a, step.b, step.c)}
    assert isinstance(step, Stairs)
    return (
        lambda z, starts, values: values[torch.searchsorted(starts, z.contiguous(), right=True)],
        {"starts": step.starts, "values": step.values},
    )
