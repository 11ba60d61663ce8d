"""The sections of the page, from the verdict to the glossary."""

import math
from datetime import datetime

from ..evaluation import Evaluation
from ..inference.shifts import ClassShifts
from ..table import Table
from . import details, figures, words
from .curve import temperature_curve
from .diagram import reliability_diagram
from .findings import Findings
from .icons import icon
from .ladder import ladder
from .markup import Markup, element, join
from .numbers import grouped, percent, plain, together
from .opening import opening
from .steps import next_steps
from .tables import class_table, key_table, region

__all__ = [
    "details_section",
    "glossary_section",
    "numbers_section",
    "pictures_section",
    "tables_section",
    "verdict_section",
]

_DRAWN = 40  # groups in a picture
_LISTED = 200  # groups in a table
_FOR_READING = "Bins decide nothing: the verdict looks at ranges of its own."


def _section(name: str, heading: str, *parts: str | None) -> Markup:
    return element("section", element("h2", heading, id=name), *parts, aria_labelledby=name)


def verdict_section(findings: Findings) -> Markup:
    """Return the first screen: decision, place, one number, what to do; then what it means, and why."""
    evaluation, verdict = findings.evaluation, findings.verdict
    steps = [element("li", element("strong", what), " ", how) for what, how in next_steps(evaluation, verdict)]
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
    place, number, about = map(together, opening(evaluation, verdict))
    found = element(
        "div",
        element("p", element("bdi", place), class_="place"),
        element("p", element("span", number, class_="value"), " ", about, class_="figure"),
    )
    first = element("div", found, element("div", element("h3", "What to do"), element("ol", *steps)), class_="columns")
    what = [element("p", together(said)) for said in words.meaning(evaluation, verdict)]
    reading = element("p", words.sentence(evaluation.reading), class_="reading") if evaluation.reading else None
    reason = element("p", words.with_code(words.sentence(verdict.reason)), class_="reason")
    second = element(
        "div",
        element("div", element("h3", "What it means"), *what, reading),
        element("div", element("h3", "Why"), reason),
        class_="columns",
    )
    return element("section", banner, first, second, aria_labelledby="verdict", class_="verdict")


def numbers_section(findings: Findings) -> Markup:
    """Return the scales of the verdict, and the numbers beside them."""
    rows = figures.number_rows(findings.evaluation, findings.verdict)
    return _section("numbers", "The numbers", figures.cards(findings), figures.number_table(rows))


def pictures_section(findings: Findings) -> Markup:
    """Return the pictures that exist for this family."""
    parts: list[Markup] = []
    if findings.bins is not None and not math.isnan(findings.evaluation.ece):
        parts.append(_reliability(findings.bins, _merged(findings)))
    if findings.bins is not None:
        parts.append(_bars(findings, findings.bins.name))
    parts.append(_curve(findings))
    if findings.in_groups:
        parts.append(_forest(findings))
    return _section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _merged(findings: Findings) -> str:
    """Say that bins are not shown one by one, where that is so."""
    made, count = findings.evaluation.bins, len(findings.in_bins)
    if made is None or len(made) == count:
        return ""
    return f" Neighbours of the {grouped(len(made))} bins are added up, to {count}."


def _figure(heading: str, image: Markup | None, *caption: str) -> Markup:
    said = element("figcaption", *(together(part) for part in caption))
    return element("figure", element("h3", heading), image, said)


def _reliability(bins: Table, many: str) -> Markup:
    side = "Below the line" if bins.top_label else "Shaded, on the side of one half,"
    return _figure(
        "Does it happen as often as predicted?",
        reliability_diagram("reliability", bins),
        f"{side} the model is over-confident. The grey bars show where 95 % of the observed shares lie if it is "
        "calibrated: filled dots lie outside, and chance does not explain them. Below, the rows of each bin.",
        many,
    )


def _bars(findings: Findings, name: str) -> Markup:
    return _figure(
        f"Where is it surprised? ECD by {name}",
        ladder("bars", f"ECD of each bin of {name}", findings.in_bins, bars=True),
        "To the right over-confident, to the left under-confident. "
        f"The intervals hold together at {percent(findings.verdict.level)}. {_FOR_READING}",
        _merged(findings),
    )


def _curve(findings: Findings) -> Markup:
    heading = "Which temperature do the data ask for?"
    bounds, verdict = findings.evaluation.bounds, findings.verdict
    image = temperature_curve("temperature", bounds, verdict.level, verdict.max_temperature)
    if image is None and math.isnan(verdict.temperature.value):
        why = verdict.temperature.method.removeprefix("none: ")
        return _figure(heading, None, f"There is no temperature to show: {why}.")
    if image is None:
        return _figure(heading, None, "These rows are too few to rule any temperature out.")
    return _figure(
        heading,
        image,
        "The lower the curve, the better the data agree with a temperature; where it is high, they rule it out. The "
        f"interval is what lies below the dashed line. Shaded: more than the {plain(verdict.max_temperature)} allowed.",
    )


def _forest(findings: Findings) -> Markup:
    found = findings.in_groups
    left = f" The other {grouped(len(found) - _DRAWN)} groups are not drawn." if len(found) > _DRAWN else ""
    return _figure(
        "For whom? ECD by group, the worst first",
        ladder("groups", "ECD of each group", found[:_DRAWN], bars=False),
        "Larger squares hold more rows; filled ones are beyond their limit. The intervals hold together, and are those "
        "of the verdict.",
        left,
    )


def tables_section(findings: Findings) -> Markup | None:
    """Return the tables of bins and groups; None where there are none."""
    parts = []
    if findings.bins is not None:
        parts.append(key_table(findings.bins, findings.in_bins, f"Bins, by {findings.bins.name}"))
        many = _merged(findings)
        parts += [element("p", many, class_="note")] if many else []
    groups, found = findings.evaluation.groups, findings.in_groups
    if groups is not None and found:
        parts.append(key_table(groups, found[:_LISTED], "Groups, the worst first"))
        if len(found) > _LISTED:
            left = f"{grouped(len(found) - _LISTED)} of {grouped(len(found))} groups are left out"
            parts.append(element("p", f"{left}, none of them with a larger ECD than those shown.", class_="note"))
    shifts = findings.evaluation.class_shifts
    if shifts is not None and not findings.evaluation.summary.n_impossible:
        parts.append(class_table(shifts, "Classes"))
        parts.append(element("p", _of_classes(shifts), class_="note"))
    if not parts:
        return None
    press = element("span", "Press a header to sort.", class_="press", hidden=True)
    said = "The bounds “at least” and “at most” of bins and groups hold for all rows of a table together. "
    said += f"{_FOR_READING} " if findings.bins is not None else ""
    return _section("tables", "The tables", element("p", said, press, class_="lead"), *parts)


def _of_classes(shifts: ClassShifts) -> str:
    said = "Calibrated classes have a ratio of 1 and a shift of 0; each interval holds by itself."
    if math.isnan(shifts.p_shift):
        return f"{said} There are none: rows depend on each other."
    chance = figures.p_value(shifts.p_shift)
    return f"{said} If every class happened as often as predicted, counts so far off would have a p-value of {chance}."


def details_section(
    evaluation: Evaluation, source: str | None, command: str | None, created: datetime, *, with_document: bool
) -> Markup:
    """Return parameters, versions, and how to make this again."""
    known = [("source", source)] if source is not None else []
    made = [*known, ("made", f"{created:%Y-%m-%d %H:%M:%S} UTC"), *details.versions()]
    again: list[Markup] = []
    if command is not None:
        again += [element("h3", "On the command line"), _code(command, "The command")]
    again += [element("h3", "In Python"), _code(details.snippet(evaluation), "The Python code")]
    if with_document:
        said = "This file holds the whole evaluation as a JSON document, with the sums behind every number: "
        note = join([said, element("code", "safecal.Evaluation.from_dict"), " reads it."])
    else:
        note = join(["The JSON document of the evaluation is left out here: the file would exceed 200 kB."])
    tables = element(
        "div",
        details.pairs_table(details.parameters(evaluation), "Parameters and methods"),
        details.pairs_table(made, "Origin and versions"),
        class_="columns",
    )
    return _section("details", "How it was made", tables, *again, element("p", note, class_="note"))


def _code(text: str, name: str) -> Markup:
    return region(element("pre", element("code", text)), name)


def glossary_section() -> Markup:
    """Return the words of the report."""
    return _section("glossary", "The words", details.glossary())
