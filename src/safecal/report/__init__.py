"""A report: one HTML file that says whether a model is over-confident, and why; and one that compares two models."""

import math
import os
from collections.abc import Sequence
from datetime import datetime

from .._checks import fail, show
from ..errors import InputError
from ..files import write_atomically
from ..html import (
    AxisScale,
    Markup,
    element,
    in_utc,
    interval_text,
    label,
    line,
    metric_text,
    p_value,
    percent,
    picture,
    rows_text,
    text_width,
    tick_text,
    unbroken,
)
from ..html.frame import beside_table, code_region, figure, file_of, pairs_table, section
from ..html.intervals import interval_lines
from ..inference import Interval
from ..judge.comparison import Comparison, Difference, SideBySide
from ..judge.evaluation import Evaluation
from ..maps.result import Recalibration
from .page import Context, MarkedText, header_of, origin_of, page

__all__ = ["report_html", "write_report"]


def report_html(
    evaluation: Evaluation,
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    after: Evaluation | None = None,
    fix: Recalibration | None = None,
    fix_command: str | None = None,
    texts: Sequence[MarkedText] = (),
    created: datetime | None = None,
) -> str:
    """Return a report as one HTML file.

    The verdict comes first, then what it means and what to do, the numbers, pictures, tables, and how to make it all
    again. The file asks the network for nothing, holds results only, and is smaller than 200 kB unless the texts given
    here are longer. Whatever comes from the data is escaped.

    Parameters
    ----------
    evaluation : Evaluation
        What to report.
    title : str, optional
        The heading; by default a question.
    source : str, optional
        Where the data come from, such as the name of a file.
    command : str, optional
        The command line that makes the report again.
    after : Evaluation, optional
        The same model after recalibration, to be shown beside it.
    fix : Recalibration, optional
        What `safecal.recalibrate` found for the same rows: the report says what it would gain, and has the lines to
        paste. Without it, a report of a model that is not SAFE says how to try one.
    fix_command : str, optional
        The command line that finds the fix.
    texts : sequence of MarkedText, optional
        Parts of texts to show, with the tokens marked by which a language model was surprised.
    created : datetime, optional
        When the report was made; by default now. Without a zone it is UTC. With the same time, reports are the same.

    Returns
    -------
    str
        The file.

    See Also
    --------
    write_report : Write it to a file.

    Examples
    --------
    >>> import safecal
    >>> from safecal.report import report_html
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> report_html(result, title="Four rows").splitlines()[0]
    '<!DOCTYPE html>'
    """
    evaluated = "make one with `safecal.evaluate(...)`, or call `.evaluate()` on predictions."
    fixed = "make one with `safecal.recalibrate(...)`, from the rows that were evaluated."
    for name, argument, kind, wanted, hint in (
        ("evaluation", evaluation, Evaluation, "an Evaluation", evaluated),
        ("after", after, Evaluation | None, "an Evaluation", evaluated),
        ("fix", fix, Recalibration | None, "a Recalibration", fixed),
    ):
        if not isinstance(argument, kind):
            raise fail(InputError, name, f"must be {wanted}", got=show(argument), hint=hint)
    if fix is not None and (fix.before.n, fix.before.family) != (evaluation.n, evaluation.family):
        got = f"one of {fix.before.n} {fix.before.family} rows, and {evaluation.n} {evaluation.family} ones"
        raise fail(InputError, "fix", "must be of the rows that were evaluated", got=got, hint=fixed)
    context = Context(title or "Is this model over-confident?", source, command, in_utc(created), fix_command)
    return page(evaluation, context, after, fix, texts)


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    after: Evaluation | None = None,
    fix: Recalibration | None = None,
    fix_command: str | None = None,
    texts: Sequence[MarkedText] = (),
    created: datetime | None = None,
) -> None:
    """Write a report to one HTML file, whole or not at all.

    Parameters
    ----------
    evaluation : Evaluation
        What to report.
    path : str or os.PathLike
        Where to write it; an existing file is replaced.
    title, source, command, after, fix, fix_command, texts, created : optional
        As in `report_html`.

    Raises
    ------
    FileError
        When the folder does not exist, or the path is a folder.

    See Also
    --------
    report_html : The same as text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import safecal
    >>> from safecal.report import write_report
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(result, Path(folder, "report.html"))
    ...     Path(folder, "report.html").stat().st_size < 200_000
    True
    """
    text = report_html(
        evaluation, title=title, source=source, command=command, after=after, fix=fix, fix_command=fix_command,
        texts=texts, created=created,
    )  # fmt: skip
    write_atomically(path, text)


_WIDTH, _STEP, _TOP = 440.0, 30.0, 10.0
_REACH = 1.8  # how far an axis goes beyond the values, at most, in units of their range

NamedInterval = tuple[str, Interval]


def comparison_html(
    comparison: Comparison,
    *,
    sides: SideBySide | None = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    created: datetime | None = None,
) -> str:
    """Return a comparison as one HTML file; ``sides`` are the evaluations of both models, beside each other."""
    context = Context(title or "Which model is less over-confident?", source, command, in_utc(created))
    facts = [rows_text(comparison.n)] + ([f"{comparison.clusters} clusters"] if comparison.clusters else [])
    body = [
        _verdict_section(comparison),
        _differences_section(comparison),
        None if sides is None else _sides_section(sides),
        _origin_section(comparison, context),
    ]
    return file_of(
        context.title, "compared", header_of(facts, context), body, made=context.created, holds="results only",
        skip="Skip to the comparison",
    )  # fmt: skip


def write_comparison(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    sides: SideBySide | None = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> None:
    """Write a comparison to one HTML file, whole or not at all."""
    write_atomically(path, comparison_html(comparison, sides=sides, title=title, source=source, command=command))


def _verdict_section(comparison: Comparison) -> Markup:
    verdict = element("p", unbroken(comparison.verdict), class_="place")
    why = (
        "ECD alone ranks nothing: a model lowers it by saying less. So it is read beside NLL, where smaller is better."
    )
    parts = [element("h2", "What the differences say", id="verdict"), verdict, element("p", why, class_="reason")]
    return element("section", *parts, aria_labelledby="verdict", class_="verdict")


def _known_differences(comparison: Comparison) -> list[tuple[str, Difference]]:
    differences = (("ECD", comparison.ecd), ("NLL", comparison.nll), ("Brier", comparison.brier))
    return [(name, d) for name, d in differences if d is not None]


def _differences_section(comparison: Comparison) -> Markup:
    known = _known_differences(comparison)
    level = percent(comparison.ecd.interval.level)
    named = [(name, d.interval) for name, d in known]
    image = _interval_forest("differences", "Differences of a and b", named, "a \N{MINUS SIGN} b")
    caption = (
        f"To the right of the line a is larger, to the left b. Each interval holds the true difference at {level}; "
        "where it does not reach the line, the difference is shown."
    )
    heads = ("", "a", "b", "a \N{MINUS SIGN} b", f"{level} interval", "p-value")
    body = []
    for name, d in known:
        both = [metric_text(value, signed=name == "ECD") for value in (d.a, d.b)]
        between = metric_text(d.interval.value, signed=True), interval_text(d.interval, signed=True)
        body.append((name, [*both, *between, p_value(d.p_value)]))
    table = beside_table("Differences, row by row", heads, body)
    drawn = element("figure", image, element("figcaption", caption))
    return section("differences-heading", "The differences", drawn, table)


def _sides_section(sides: SideBySide) -> Markup:
    heads = ("", *(f"{name}, {percent(level)}" for name, level in zip("ab", sides.level, strict=True)))
    body: list[tuple[str, list[str]]] = [("verdict", list(sides.decisions)), ("rows", [str(n) for n in sides.n])]
    body += [(name, [_value_text(x, name == "ECD") for x in pair]) for name, pair in sides.metrics.items()]
    pictures = []
    for name, unit, origin in (("ECD", "ECD, nat", 0.0), ("temperature", "temperature", 1.0)):
        both = zip("ab", sides.metrics.get(name, ()), strict=False)
        pair = [(side, x) for side, x in both if isinstance(x, Interval)]
        if any(math.isfinite(x.value) for _, x in pair):
            image = _interval_forest(f"sides-{name.lower()}", f"{name} of a and of b", pair, unit, origin)
            calibrated = f"{origin:g} is calibrated; to the right over-confident, to the left under-confident."
            pictures.append(figure(name[0].upper() + name[1:], image, calibrated))
    note = (
        "Intervals of one model at a time: they can overlap although the difference is shown. A row that is hard for "
        "both models widens both intervals, but not that of the difference, which is taken row by row."
    )
    parts = [element("div", *pictures, class_="pictures"), beside_table("Each model by itself", heads, body)]
    return section("sides", "Side by side", *parts, element("p", note, class_="note"))


def _value_text(x: Interval | float, signed: bool) -> str:
    if not isinstance(x, Interval):
        return metric_text(x, signed=signed)
    between = "" if math.isnan(x.value) else f" ({interval_text(x, signed=signed)})"
    return f"{metric_text(x.value, signed=signed)}{between}"


def _origin_section(comparison: Comparison, context: Context) -> Markup:
    methods = dict.fromkeys(d.interval.method for _, d in _known_differences(comparison))
    pairs = [("interval", "; ".join(methods)), *origin_of(context)]
    again = [] if context.command is None else [element("h3", "On the command line")]
    again += [] if context.command is None else [code_region(context.command, "The command")]
    return section("details", "How it was made", pairs_table(pairs, "Methods and versions"), *again)


def _interval_forest(name: str, title: str, named: Sequence[NamedInterval], unit: str, origin: float = 0.0) -> Markup:
    """Return intervals one under the other, around a line where nothing differs."""
    low, high = _axis_ends([x for _, x in named], origin)
    names = max(text_width(text) for text, _ in named)
    scale = AxisScale(low, high, names + 14.0, _WIDTH - 66.0)
    bottom = _TOP + _STEP * len(named)
    parts = [line(scale(t), _TOP, scale(t), bottom + 4.0, "grid") for t in scale.ticks(5)]
    parts += [label(scale(t), bottom + 18.0, tick_text(t), anchor="middle") for t in scale.ticks(5)]
    parts += [line(scale(origin), _TOP, scale(origin), bottom, "neutral")]
    parts += [label((scale.start + scale.end) / 2.0, bottom + 38.0, unit, "axis-name", "middle")]
    for place, (text, x) in enumerate(named):
        parts += _forest_row(text, x, scale, _TOP + _STEP * (place + 0.5), origin)
    description = ". ".join(f"{text}: {_value_text(x, True)}" for text, x in named)
    return picture(name, (_WIDTH, bottom + 50.0), title, f"{description}.", *parts)


def _axis_ends(intervals: Sequence[Interval], origin: float) -> tuple[float, float]:
    """Return the ends of an axis that holds every value; very long intervals leave it."""
    marks = [origin, *(x.value for x in intervals if math.isfinite(x.value))]
    low, high = min(marks), max(marks)
    width = [min(abs(end - x.value), 1e300) for x in intervals for end in (x.low, x.high) if math.isfinite(end)]
    reach = (high - low) or min(width, default=0.0) or 0.1
    left = max(min([low, *(x.low for x in intervals)]), low - _REACH * reach)
    right = min(max([high, *(x.high for x in intervals)]), high + _REACH * reach)
    pad = 0.06 * (right - left or reach)
    return left - pad, right + pad


def _forest_row(text: str, x: Interval, scale: AxisScale, y: float, origin: float) -> list[Markup]:
    parts = [label(0.0, y + 4.5, text)]
    value = metric_text(x.value, signed=origin == 0.0).replace("-", "\N{MINUS SIGN}")
    parts.append(label(_WIDTH, y + 4.5, value, "value", "end"))
    parts += [] if math.isnan(x.value) else interval_lines(x, scale, y, "span", 4.5)
    if math.isfinite(x.value):
        parts.append(element("circle", cx=scale(x.value), cy=y, r=5.0, class_="mark"))
    return parts
