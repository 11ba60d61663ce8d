"""The report: one file that holds everything, and reads from top to bottom."""

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import final

from .._optional import version
from .._sums.table import Table
from ..html import (
    Markup,
    element,
    grouped,
    join,
    metric_text,
    percent,
    plain,
    rows_text,
    sentence,
    shortened,
    unbroken,
    with_code,
)
from ..html.diagrams import ExcessShares, excess_picture, reliability_diagram, transform_picture, transform_words
from ..html.frame import (
    PageFindings,
    code_region,
    figure,
    file_of,
    icon,
    json_block,
    number_table,
    pairs_table,
    section,
)
from ..html.intervals import TemperatureCurve, directions_picture, forest, temperature_picture
from ..inference.forecasts import Forecast
from ..judge.display import kind_of
from ..judge.evaluation import Evaluation
from ..maps.result import Recalibration
from . import words
from .steps import after_section, fix_section, next_steps, snippet, typed
from .tables import (
    BINS_NOTE,
    cards,
    merged_bins,
    number_rows,
    slices_section,
    tables_section,
    test_name,
    where_section,
)

__all__ = ["MOST_BYTES", "Context", "MarkedText", "header_of", "origin_of", "page", "pictures_section"]

MOST_BYTES = 200_000  # bytes; beyond it, the document of the evaluation is left out
_MOST_KEYS = 400  # bins and groups with which it may fit: each takes 500 bytes at least
_GROUPS_DRAWN = 40  # groups in a picture
_MOST_AXES = 4  # that have a picture each
_MARKS = ((6.0, "more"), (3.0, "much"), (1.0, "some"))  # nats of excess from which on a token is marked


@final
@dataclass(frozen=True, slots=True)
class Context:
    """Where an evaluation comes from: its title, its source, the commands, and the time."""

    title: str
    source: str | None
    command: str | None
    created: datetime
    fix_command: str | None = None  # that finds the fix


@final
@dataclass(frozen=True, slots=True)
class MarkedText:
    """Part of a text, token by token."""

    title: str  # where it is from
    tokens: tuple[tuple[str, float], ...]  # each token and its excess in nats


def page(
    evaluation: Evaluation,
    context: Context,
    after: Evaluation | None,
    fix: Recalibration | None = None,
    texts: Sequence[MarkedText] = (),
    *,
    more: Sequence[Markup] = (),
) -> str:
    """Return the whole page; ``more`` sections follow the numbers, in the place of the fix."""
    findings = PageFindings.of(evaluation)
    body = [
        verdict_section(findings, fix, in_shell=context.command is not None),
        where_section(findings),
        slices_section(findings),
        texts_section(texts),
        numbers_section(findings),
        fix_section(evaluation, fix, context.fix_command) if not more else join(more),
        None if after is None else after_section(evaluation, after),
        pictures_section(findings),
        tables_section(findings),
    ]
    start = join(body)
    if len(findings.in_bins) + len(findings.in_groups) <= _MOST_KEYS:
        whole = _file(findings, context, start, json_block("evaluation", evaluation.to_dict()))
        if len(whole.encode()) <= MOST_BYTES:
            return whole
    return _file(findings, context, start, None)


def _file(findings: PageFindings, context: Context, start: Markup, document: Markup | None) -> str:
    decision, evaluation = findings.verdict.decision, findings.evaluation
    facts = [rows_text(evaluation.n), kind_of(evaluation.tally)]
    if evaluation.groups is not None:
        facts.append(f"{grouped(len(evaluation.groups))} group{'' if len(evaluation.groups) == 1 else 's'}")
    details = _details_section(evaluation, context, with_document=document is not None)
    return file_of(
        f"{decision}: {context.title}",
        decision.lower(),
        header_of(facts, context),
        [start, details, section("glossary", "The words", words.glossary(start, details))],
        made=context.created,
        holds="results only",
        skip="Skip to the verdict",
        document=document,
    )


def header_of(facts: Sequence[str], context: Context) -> Markup:
    """Return the head of a page: its title, some facts, where they come from, and the date."""
    parts = [element("span", fact) for fact in facts]
    if context.source is not None:
        parts.append(element("span", "from ", element("bdi", context.source)))
    parts.append(element("time", f"{context.created:%Y-%m-%d}", datetime=context.created.isoformat(timespec="seconds")))
    return element(
        "header",
        element("p", "safecal report", class_="brand"),
        element("h1", element("bdi", context.title)),
        element("p", join(parts, " "), class_="facts"),
    )


def verdict_section(findings: PageFindings, fix: Recalibration | None, *, in_shell: bool) -> Markup:
    """Return the first screen: decision, place, one number, what to do; then what it means, and why."""
    evaluation, verdict = findings.evaluation, findings.verdict
    advice = next_steps(evaluation, verdict, fix, in_shell=in_shell)
    steps = [element("li", element("strong", what), " ", how) for what, how in advice]
    banner = element(
        "div",
        icon(verdict.decision),
        element(
            "div",
            element("h2", verdict.decision, id="verdict", class_="decision"),
            element("p", words.headline(evaluation, verdict), class_="headline"),
        ),
        class_="banner",
    )
    place, number, about, by_place = map(unbroken, words.opening(evaluation, verdict))
    where = element(
        "div",
        element("p", element("bdi", place), class_="place"),
        element("p", element("span", number, class_="value"), " ", about, class_="figure"),
        element("p", element("bdi", by_place), class_="by-place") if by_place else None,
    )
    upper = element("div", where, element("div", element("h3", "What to do"), element("ol", *steps)), class_="columns")
    meaning = [element("p", unbroken(text)) for text in words.meaning(evaluation, verdict)]
    reading = element("p", sentence(evaluation.reading), class_="reading") if evaluation.reading else None
    reason = element("p", with_code(sentence(typed(verdict.reason, evaluation, in_shell))), class_="reason")
    notes = [typed(note, evaluation, in_shell) for note in evaluation.notes]
    notes_shown = [element("p", "Note: ", with_code(unbroken(note)), class_="note") for note in notes]
    lower = element(
        "div",
        element("div", element("h3", "What it means"), *meaning, reading),
        element("div", element("h3", "Why"), reason, *notes_shown),
        class_="columns",
    )
    return element("section", banner, upper, lower, aria_labelledby="verdict", class_="verdict")


def numbers_section(findings: PageFindings) -> Markup:
    """Return the scales of the verdict, and the numbers beside them."""
    numbers = number_rows(findings.evaluation, findings.verdict)
    return section("numbers", "The numbers", cards(findings), number_table(numbers))


def pictures_section(findings: PageFindings) -> Markup:
    """Return the pictures that exist for this family."""
    parts: list[Markup] = []
    if findings.bins is not None and not math.isnan(findings.evaluation.ece):
        parts.append(_reliability_figure(findings.bins, merged_bins(findings)))
    if findings.evaluation.forecast is not None:
        parts += _forecast_figures(findings.evaluation.forecast)
    if findings.evaluation.summary.sum_brier is None:  # states and densities
        parts.append(_spread_figure(findings.evaluation))
    if findings.bins is not None:
        parts.append(_bins_figure(findings, findings.bins.name))
    parts.append(_temperature_figure(findings))
    if findings.in_groups:
        parts.append(_groups_figure(findings))
    return section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _forecast_figures(forecast: Forecast) -> list[Markup]:
    """Return the histogram of the transform; of vectors the factor of each axis, too, and of draws their histograms."""
    image, caption = transform_picture("transform", forecast), transform_words(forecast)
    figures = [figure("Where do outcomes fall in their forecasts?", image, caption)]
    if forecast.vector is None and not forecast.axes:
        return figures
    caption = "How many times the standard deviations of the draws are too small, with intervals that hold together."
    if (vector := forecast.vector) is not None:
        caption = f"The widest direction: {vector.largest}. The narrowest: {vector.smallest}."
    image = directions_picture("directions", forecast)
    figures.append(figure("Along which axis is it too narrow?", image, caption))
    for k, axis in enumerate(forecast.axes[:_MOST_AXES]):
        image = transform_picture(f"transform-{k}", axis)
        figures.append(figure(f"Where do outcomes fall along axis {k}?", image, transform_words(axis)))
    return figures


def _reliability_figure(bins: Table, merged: str) -> Markup:
    side = "Below the line the model is over-confident."
    if not bins.top_label:
        side = "Where it is shaded, the model is over-confident: the observed share is nearer to one half than it says."
    return figure(
        "Does it happen as often as predicted?",
        reliability_diagram("reliability", bins),
        f"{side} The grey bars show where 95 % of the observed shares of a calibrated model lie. "
        "Filled dots lie outside: chance does not explain them. The bars below count the rows of each bin.",
        merged,
    )


def _spread_figure(evaluation: Evaluation) -> Markup:
    shares = ExcessShares.of(evaluation)
    dashed = "" if shares.expected is None else " Where the line is above the dashed one, it is surprised too often."
    caption = "Excess is the surprise of a row beyond what the model announced; ECD is its mean."
    return figure("How often is it surprised, and how much?", excess_picture("spread", shares), f"{caption}{dashed}")


def _bins_figure(findings: PageFindings, name: str) -> Markup:
    return figure(
        f"Where is it too surprised? ECD by {name}",
        forest("bars", f"ECD of each bin of {name}", findings.in_bins, bars=True),
        "To the right it is over-confident, to the left under-confident. "
        f"The intervals hold for all bins together, at {percent(findings.verdict.level)}. {BINS_NOTE}",
        merged_bins(findings),
    )


def _temperature_figure(findings: PageFindings) -> Markup:
    heading = "Which temperature fits the data?"
    verdict = findings.verdict
    image = temperature_picture("temperature", TemperatureCurve.of(findings.evaluation))
    if image is None and math.isnan(verdict.temperature.value):
        why = verdict.temperature.method.removeprefix("none: ")
        return figure(heading, None, f"There is no temperature to show: {why}.")
    if image is None:
        return figure(heading, None, "These rows are too few to rule any temperature out.")
    return figure(
        heading,
        image,
        "Where the curve is low, the data agree with the temperature; where it is high, they rule it out. The "
        "interval lies where the curve is below the dotted line. "
        f"Shaded: more than the {plain(verdict.max_temperature)} allowed.",
    )


def _groups_figure(findings: PageFindings) -> Markup:
    groups = findings.in_groups
    n_left = len(groups) - _GROUPS_DRAWN
    left = f" The other {grouped(n_left)} groups are not drawn." if n_left > 0 else ""
    return figure(
        "In which groups? ECD by group, the worst first",
        forest("groups", "ECD of each group", groups[:_GROUPS_DRAWN], bars=False),
        "Larger squares have more rows; filled ones are beyond their limit. The intervals are those of the verdict, "
        "and hold for all groups together.",
        left,
    )


def _details_section(evaluation: Evaluation, context: Context, *, with_document: bool) -> Markup:
    """Return parameters, versions, and how to make this again."""
    again: list[Markup] = []
    if context.command is not None:
        again += [element("h3", "On the command line"), code_region(context.command, "The command")]
    again += [element("h3", "In Python"), code_region(snippet(evaluation), "The Python code")]
    if with_document:
        contents = "This file contains the whole evaluation as a JSON document, with the sums behind every number: "
        note = join([contents, element("code", "safecal.Evaluation.from_dict"), " reads it."])
    else:
        note = join(["The JSON document of the evaluation is left out: the file would be larger than 200 kB."])
    tables = element(
        "div",
        pairs_table(_parameters(evaluation), "Parameters and methods"),
        pairs_table(origin_of(context), "Origin and versions"),
        class_="columns",
    )
    return section("details", "How it was made", tables, *again, element("p", note, class_="note"))


def origin_of(context: Context) -> list[tuple[str, str]]:
    """Return where a page comes from, when it was made, and the versions that matter."""
    source = [] if context.source is None else [("source", context.source)]
    made = ("made", f"{context.created:%Y-%m-%d %H:%M:%S} UTC")
    libraries = [(name, metadata.version(name)) for name in ("numpy", "scipy")]
    return [*source, made, ("safecal", version()), ("Python", platform.python_version()), *libraries]


def _parameters(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the options of the evaluation, and the methods that it used."""
    e = evaluation
    limits, dimensions = e.limits, e.verdict.dimensions
    pairs = [("family", e.family), ("rows", grouped(e.n))]
    if e.dimension > 1:
        pairs.append(("dimension", str(e.dimension)))
    local_unit = "nat" if dimensions == 1.0 else "nat per dimension"
    unit = "nat" if dimensions == 1.0 else f"nat per dimension, {plain(e.verdict.allowed)} nat for {plain(dimensions)}"
    pairs += [
        ("threshold", f"{plain(limits.threshold)} {unit}"),
        ("max_temperature", plain(limits.max_temperature)),
        ("max_ratio", f"{plain(limits.max_ratio)} times as many mistakes as announced"),
        ("local_threshold", f"{plain(limits.local_threshold)} {local_unit}, in a range"),
        ("min_share", f"{percent(limits.min_share)} of the rows, in a range"),
        ("level", percent(limits.level)),
        ("rule", limits.rule),
        ("bins", "none" if e.bins is None else f"{len(e.bins)} on {e.bins.name}"),
        ("groups", "none" if e.groups is None else f"{grouped(len(e.groups))}, by {shortened(e.groups.name, 60)}"),
        ("test", test_name(e.test.method)),
        ("interval of ECD", e.interval.method),
        ("temperature", e.temperature.method),
    ]
    return pairs


def texts_section(texts: Sequence[MarkedText]) -> Markup | None:
    """Return a section that shows some texts; colour is never the only sign of a mark."""
    if not texts:
        return None
    start = "Tokens are marked where the model was surprised beyond what it had announced, by "
    marks = join((element("mark", f"{low:g} nat", class_=name) for low, name in reversed(_MARKS)), ", ")
    passages = [
        element("div", element("h3", text.title), element("p", join(map(_token, text.tokens)), class_="tokens"))
        for text in texts
    ]
    legend = element("p", start, marks, " or more. The worst places come first.")
    return section("texts", "Where in the text?", legend, *passages)


def _token(token: tuple[str, float]) -> Markup:
    text, excess = token
    name = next((name for low, name in _MARKS if excess >= low), None)
    if name is None:
        return join([text])
    return element("mark", text, class_=name, title=f"{metric_text(excess, signed=True)} nat")
