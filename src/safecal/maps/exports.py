"""Maps in the languages of the places where they are used: Python and SQL as text, and a torch Module."""

import keyword
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from .._checks import fail, show
from .._checks.columns import choice
from .._optional import require
from ..errors import OptionError, RangeError, ShapeError
from .steps import BetaCurve, ClassLines, Line, MapStep, Stairs

__all__ = ["python_text", "sql_text", "torch_module", "torch_module_by_group"]

StepsByGroup = Mapping[Hashable, Sequence[MapStep]]  # the steps of each group; of None alone where there are no groups

_LARGEST = "700"  # of an exponent: beyond it some databases complain, and nothing changes


def _steps_that_change(steps: Sequence[MapStep]) -> list[MapStep]:
    return [step for step in steps if step.size]


# Python


def python_text(groups: StepsByGroup, classes: int, name: str, *, grouped: bool) -> str:
    """Return a function of one probability, or of a list with one for each class; and of a group."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise fail(OptionError, "name", "must be the name of a function", got=show(name))
    head, whose = ("p", "the positive class") if classes == 2 else ("ps", "each class")
    words = f"Return the recalibrated probability of {whose}"
    opening, step_lines, closing = _PYTHON_TWO if classes == 2 else _python_many(classes)
    lines = [
        "import math",
        "",
        "",
        f"def {name}({head}{', group' if grouped else ''}):",
        f'    """{words}{", in a group" if grouped else ""}."""',
        *_indented(opening),
    ]
    bodies = {
        key: [line for step in _steps_that_change(steps) for line in step_lines(step)] for key, steps in groups.items()
    }
    if grouped:
        for k, (key, body) in enumerate(bodies.items()):
            lines.append(f"    {'elif' if k else 'if'} group {'is None' if key is None else f'== {key!r}'}:")
            lines += _indented(_indented(body or ["pass"]))
        lines += _indented(["else:", '    raise ValueError(f"no map was fitted to the group {group!r}")'])
    else:
        lines += _indented(bodies[None])
    return "\n".join([*lines, *_indented(closing), ""])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _python_step_of_two(step: MapStep) -> list[str]:
    if isinstance(step, Line):
        return [f"z = {step.slope!r} * z + {step.shift!r}"]
    if isinstance(step, BetaCurve):
        parts = [f"{factor!r} * {letter}" for factor, letter in ((-step.a, "a"), (step.b, "b")) if factor]
        return [
            "a = -z if z < -700.0 else math.log1p(math.exp(-z))  # -log p",
            "b = z if z > 700.0 else math.log1p(math.exp(z))  # -log(1 - p)",
            f"z = {' + '.join(parts)} + {step.c!r}",
        ]
    assert isinstance(step, Stairs)
    return [
        f"starts = {_python_numbers(step.starts)}",
        f"values = {_python_numbers(step.values)}",
        "z = values[sum(z >= start for start in starts)]",
    ]


_PYTHON_TWO = (
    [
        "if not 0.0 <= p <= 1.0:",
        '    raise ValueError(f"a probability lies in [0, 1]; got {p}")',
        "z = -math.inf if p == 0.0 else math.inf if p == 1.0 else math.log(p) - math.log1p(-p)",
    ],
    _python_step_of_two,
    ["e = math.exp(-abs(z))", "return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)"],
)


def _python_step_of_many(step: MapStep) -> list[str]:
    if isinstance(step, Line):
        return ["top = max(zs)", f"zs = [{step.slope!r} * (z - top) for z in zs]"]
    assert isinstance(step, ClassLines)
    return [
        f"weights = {_python_numbers(step.weights)}",
        f"shifts = {_python_numbers(step.shifts)}",
        "zs = [(w * z if w else 0.0) + b for w, b, z in zip(weights, shifts, zs)]",
    ]


def _python_many(classes: int) -> tuple[list[str], Callable[[MapStep], list[str]], list[str]]:
    opening = [
        f"if len(ps) != {classes} or min(ps) < 0.0 or abs(sum(ps) - 1.0) > 1e-3:",
        f'    raise ValueError("{classes} probabilities that sum to 1 are needed")',
        "total = sum(ps)",
        "zs = [math.log(p / total) if p > 0.0 else -math.inf for p in ps]",
    ]
    closing = [
        "top = max(zs)",
        "es = [math.exp(z - top) for z in zs]",
        "total = sum(es)",
        "return [e / total for e in es]",
    ]
    return opening, _python_step_of_many, closing


def _python_numbers(numbers: Sequence[float]) -> str:
    text = [{float("inf"): "math.inf", float("-inf"): "-math.inf"}.get(x, repr(x)) for x in numbers]
    return f"({', '.join(text)}{',' if len(text) == 1 else ''})"


# SQL


class _Dialect(NamedTuple):
    """How a database writes names, numbers and text."""

    quote: str
    type: str  # of a double
    backslash: str  # in a text

    def name(self, column: str) -> str:
        """Return a column."""
        return self.quote + column.replace(self.quote, 2 * self.quote) + self.quote

    def double(self, text: str) -> str:
        """Return a double, not a decimal of few digits."""
        return f"CAST({text} AS {self.type})"

    def number(self, x: float) -> str:
        """Return a number."""
        return self.double(repr(x))

    def text(self, x: str) -> str:
        """Return a text."""
        quote = "\\'" if len(self.backslash) > 1 else "''"
        return "'" + x.replace("\\", self.backslash).replace("'", quote) + "'"


_DIALECTS = {"standard": _Dialect('"', "DOUBLE PRECISION", "\\"), "spark": _Dialect("`", "DOUBLE", "\\\\")}


def sql_text(
    groups: StepsByGroup, classes: int, columns: Sequence[Any], by: Sequence[Any] | None, dialect: str = "standard"
) -> str:
    """Return an expression of a column, or one of each class, with its name; of groups one for each, by a CASE."""
    for option, names in (("columns", columns), ("by", by or ())):
        for column in names:
            if not (isinstance(column, str) and column):
                raise fail(OptionError, option, "must be names of columns", got=show(column))
    count = 1 if classes == 2 else classes
    if len(columns) != count:
        rule = (
            "must be one column, of the positive class"
            if count == 1
            else f"must be {count} columns, one for each class"
        )
        raise fail(ShapeError, "columns", rule, got=str(len(columns)), hint='for example `to_sql("p")`.')
    sql = _DIALECTS[choice(dialect, "dialect", tuple(_DIALECTS))]
    by_group = [
        [_sql_two(sql, steps, columns[0])] if classes == 2 else _sql_many(sql, steps, columns)
        for steps in groups.values()
    ]
    expressions = list(by_group[0])
    if by is not None:
        places = [_sql_is(sql, key, by) for key in groups]
        for j in range(len(expressions)):
            cases = (f"WHEN {place} THEN {texts[j]}" for place, texts in zip(places, by_group, strict=True))
            expressions[j] = f"CASE {' '.join(cases)} END"
    if classes == 2:
        return expressions[0]
    aliases = (sql.name(f"calibrated_{column}") for column in columns)
    return ",\n".join(f"{text} AS {alias}" for text, alias in zip(expressions, aliases, strict=True))


def _sql_is(sql: _Dialect, key: Hashable, by: Sequence[str]) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != len(by):
        hint = 'for example `to_sql("p", by="site")`.'
        raise fail(
            ShapeError, "by", f"must name {len(parts)} columns, those of the groups", got=str(len(by)), hint=hint
        )
    return " AND ".join(f"{sql.name(column)} {_sql_equals(sql, x)}" for column, x in zip(by, parts, strict=True))


def _sql_equals(sql: _Dialect, x: Any) -> str:
    if x is None:
        return "IS NULL"
    if isinstance(x, bool):
        return f"= {str(x).upper()}"
    if isinstance(x, float):
        return f"= {sql.number(x)}"
    return f"= {x}" if isinstance(x, int) else f"= {sql.text(str(x))}"


def _bounded(text: str) -> str:
    """Return an exponent in the range that every database takes."""
    return f"CASE WHEN {text} > {_LARGEST} THEN {_LARGEST} WHEN {text} < -{_LARGEST} THEN -{_LARGEST} ELSE {text} END"


def _sql_two(sql: _Dialect, steps: Sequence[MapStep], column: str) -> str:
    p = sql.double(sql.name(column))
    changing = _steps_that_change(steps)
    if not changing:
        return p
    z, ends = f"(ln({p}) - ln(1 - {p}))", ("0.0", "1.0")
    if isinstance(changing[0], Stairs):
        return _sql_stairs(sql, changing[0], changing[1:], p)
    first = changing[0]
    if isinstance(first, BetaCurve):
        parts = [f"{sql.number(first.a)} * ln({p})"] if first.a else []
        parts += [f"- {sql.number(first.b)} * ln(1 - {p})"] if first.b else []
        z = f"({' '.join(parts)} + {sql.number(first.c)})"
        scale = 1.0
        for step in changing[1:]:
            assert isinstance(step, Line)
            scale *= step.slope
        z = f"({sql.number(scale)} * {z})"
        low = "0.0" if first.a else sql.number(_share(scale * first.c))
        high = "1.0" if first.b else sql.number(_share(scale * first.c))
        ends = (low, high)
    else:
        for step in changing:
            assert isinstance(step, Line)
            z = f"({sql.number(step.slope)} * {z} + {sql.number(step.shift)})"
    inside = f"1 / (1 + exp(-({_bounded(z)})))"
    return _sql_if_one(p, f"CASE WHEN {p} <= 0 THEN {ends[0]} WHEN {p} >= 1 THEN {ends[1]} ELSE {inside} END")


def _sql_if_one(p: str, text: str) -> str:
    """Return an expression that is NULL where there is no probability: for NULL, for NaN, and beyond 0 and 1."""
    return f"CASE WHEN {p} >= 0 AND {p} <= 1 THEN {text} END"


def _share(z: float) -> float:
    e = math.exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


def _sql_stairs(sql: _Dialect, step: Stairs, later_steps: Sequence[MapStep], p: str) -> str:
    values = list(step.values)
    for line in later_steps:
        assert isinstance(line, Line)
        values = [line.slope * v for v in values]
    z = f"(ln({p}) - ln(1 - {p}))"
    finite = [start for start in step.starts if math.isfinite(start)]
    cases = [
        f"WHEN {z} < {sql.number(start)} THEN {sql.number(_share(v))}" for start, v in zip(finite, values, strict=False)
    ]
    ends = f"WHEN {p} <= 0 THEN {sql.number(_share(values[0]))} WHEN {p} >= 1 THEN {sql.number(_share(values[-1]))}"
    return _sql_if_one(p, f"CASE {' '.join([ends, *cases])} ELSE {sql.number(_share(values[len(finite)]))} END")


def _sql_many(sql: _Dialect, steps: Sequence[MapStep], columns: Sequence[str]) -> list[str]:
    slope, weights, shifts = 1.0, [1.0] * len(columns), [0.0] * len(columns)
    for step in _steps_that_change(steps):
        if isinstance(step, ClassLines):
            weights, shifts = list(step.weights), list(step.shifts)
        else:
            assert isinstance(step, Line)
            slope *= step.slope
    total = " + ".join(sql.double(sql.name(c)) for c in columns)
    zs = []
    for column, w, b in zip(columns, weights, shifts, strict=True):
        p = f"({sql.double(sql.name(column))} / ({total}))"
        z = f"{sql.number(slope * w)} * ln({p}) + {sql.number(slope * b)}" if w else sql.number(slope * b)
        zs.append(f"CASE WHEN {sql.name(column)} <= 0 THEN {'-1e300' if w else z} ELSE {z} END")
    expressions = []
    for j, column in enumerate(columns):
        odds = " + ".join(
            "1" if k == j else f"exp({_bounded(f'(({zs[k]}) - ({zs[j]}))')})" for k in range(len(columns))
        )
        share = f"1 / ({odds})"
        if weights[j]:
            share = f"CASE WHEN {sql.name(column)} <= 0 THEN 0.0 ELSE {share} END"
        expressions.append(f"CASE WHEN {total} < 2 THEN {share} END")  # NULL for NULL and for NaN
    return expressions


# torch


def torch_module(steps: Sequence[MapStep], classes: int) -> Any:
    """Return a Module that makes recalibrated logits of logits."""
    require("torch", "`to_torch` needs torch", "torch")
    import torch

    torch_steps = [_torch_step(torch, step, classes) for step in _steps_that_change(steps)]

    class Recalibration(torch.nn.Module):  # type: ignore[misc]  # it is Any where torch is not installed
        """Recalibrated logits."""

        def __init__(self) -> None:
            super().__init__()
            for k, (_, numbers) in enumerate(torch_steps):
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
            for k, (function, numbers) in enumerate(torch_steps):
                z = function(z, *(getattr(self, f"{name}_{k}") for name in numbers))
            if two:
                z = torch.stack([torch.nn.functional.logsigmoid(-z), torch.nn.functional.logsigmoid(z)], dim=-1)
            return z.to(logits.dtype)

    return Recalibration()


def torch_module_by_group(groups: StepsByGroup, classes: int) -> Any:
    """Return a Module that makes recalibrated logits of logits and the number of each row's group."""
    modules = [torch_module(steps, classes) for steps in groups.values()]
    import torch

    class RecalibrationByGroup(torch.nn.Module):  # type: ignore[misc]  # it is Any where torch is not installed
        """Recalibrated logits, each by the map of its group."""

        def __init__(self) -> None:
            super().__init__()
            self.groups = tuple(groups)
            self.each = torch.nn.ModuleList(modules)

        def forward(self, logits: Any, group: Any) -> Any:
            """Return recalibrated logits; ``group`` holds the place of each row's group in ``groups``."""
            if group.shape != logits.shape[:1] or group.is_floating_point() or group.dtype == torch.bool:
                rule = "must hold a whole number for each row, the place of its group in `groups`"
                raise fail(ShapeError, "group", rule, got=f"{group.dtype} of shape {tuple(group.shape)}")
            outside = (group < 0) | (group >= len(self.each))
            if outside.any():
                rule = f"must lie in 0 to {len(self.each) - 1}: another group was not fitted"
                raise fail(RangeError, "group", rule, got=str(group[outside][0].item()))
            recalibrated = torch.empty_like(logits)
            for k, module in enumerate(self.each):
                rows = group == k
                recalibrated[rows] = module(logits[rows])
            return recalibrated

    return RecalibrationByGroup()


def _torch_step(torch: Any, step: MapStep, classes: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    if isinstance(step, Line):
        return lambda z, slope, shift: slope * z + shift, {"slope": step.slope, "shift": step.shift}
    if isinstance(step, ClassLines):
        return lambda z, w, b: torch.where(w == 0.0, 0.0, w * z) + b, {"weights": step.weights, "shifts": step.shifts}
    if isinstance(step, BetaCurve):
        log = torch.nn.functional.logsigmoid
        return lambda z, abc: abc[0] * log(z) - abc[1] * log(-z) + abc[2], {"abc": (step.a, step.b, step.c)}
    assert isinstance(step, Stairs)

    def stairs(z: Any, starts: Any, values: Any) -> Any:
        return torch.where(z.isnan(), z, values[torch.searchsorted(starts, z.contiguous(), right=True)])

    return stairs, {"starts": step.starts, "values": step.values}
