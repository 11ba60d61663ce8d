"""The report: one file that holds everything, and reads from top to bottom."""

import json
import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import Any, final

from .._optional import version
from .._sums.bins import Bins
from .._sums.table import Table
from ..families.predictions import family_named
from ..html.diagrams import ExcessShares, excess_picture, reliability_diagram
from ..html.frame import Findings, figure, file_of, icon, number_table, pairs_table, region, section
from ..html.intervals import TemperatureCurve, forest, temperature_picture
from ..html.markup import Markup, element, grouped, join, percent, plain, rows, sentence, shortened, together, with_code
from ..html.texts import MarkedText, texts_section
from ..judge.evaluation import Evaluation
from ..maps.result import Recalibration
from ..options import Limits
from . import words
from .forecasts import forecast_figures
from .steps import after_section, fix_section, next_steps
from .tables import (
    FOR_READING,
    cards,
    merged_bins,
    number_rows,
    slices_section,
    tables_section,
    test_name,
    where_section,
)

__all__ = [
    "GLOSSARY", "LARGEST", "Context", "embedded", "glossary", "header_of", "page", "parameters", "pictures_section",
    "snippet", "versions",
]  # fmt: skip

LARGEST = 200_000  # bytes; beyond it, the document of the evaluation is left out
_MOST_KEYS = 400  # bins and groups with which it may fit: each takes 500 bytes at least
_DRAWN = 40  # groups in a picture


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What the caller says about an evaluation, beside the evaluation itself."""

    title: str
    source: str | None
    command: str | None
    created: datetime
    fix_command: str | None = None  # that finds the fix


def page(
    evaluation: Evaluation,
    context: Context,
    after: Evaluation | None,
    fix: Recalibration | None = None,
    texts: Sequence[MarkedText] = (),
    *,
    more: Sequence[Markup] = (),
) -> str:
    """Return the whole page; ``more`` sections follow the numbers, and stand for what fixes the model."""
    findings = Findings.of(evaluation)
    body = [
        verdict_section(findings),
        where_section(findings),
        slices_section(findings),
        texts_section(texts),
        numbers_section(findings),
        fix_section(evaluation, fix, context.fix_command) if not more else join(more),
        None if after is None else after_section(evaluation, findings.verdict, after),
        pictures_section(findings),
        tables_section(findings),
    ]
    start = join(body)
    if len(findings.in_bins) + len(findings.in_groups) <= _MOST_KEYS:
        whole = _page(findings, context, start, embedded(evaluation.to_dict()))
        if len(whole.encode()) <= LARGEST:
            return whole
    return _page(findings, context, start, None)


def _page(findings: Findings, context: Context, start: Markup, document: Markup | None) -> str:
    decision = findings.verdict.decision
    made = _details(findings.evaluation, context, with_document=document is not None)
    return file_of(
        f"{decision}: {context.title}",
        decision.lower(),
        header_of(_facts(findings.evaluation), context),
        [start, made, section("glossary", "The words", glossary(start, made))],
        made=context.created,
        holds="results only",
        skip="Skip to the verdict",
        document=document,
    )


def _facts(evaluation: Evaluation) -> list[str]:
    facts = [rows(evaluation.n), words.kind(evaluation)]
    if evaluation.groups is not None:
        facts.append(f"{grouped(len(evaluation.groups))} group{'' if len(evaluation.groups) == 1 else 's'}")
    return facts


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
    place, number, about = map(together, words.opening(evaluation, verdict))
    found = element(
        "div",
        element("p", element("bdi", place), class_="place"),
        element("p", element("span", number, class_="value"), " ", about, class_="figure"),
    )
    first = element("div", found, element("div", element("h3", "What to do"), element("ol", *steps)), class_="columns")
    what = [element("p", together(said)) for said in words.meaning(evaluation, verdict)]
    reading = element("p", sentence(evaluation.reading), class_="reading") if evaluation.reading else None
    reason = element("p", with_code(sentence(verdict.reason)), class_="reason")
    notes = [element("p", "Note: ", with_code(together(note)), class_="note") for note in evaluation.notes]
    second = element(
        "div",
        element("div", element("h3", "What it means"), *what, reading),
        element("div", element("h3", "Why"), reason, *notes),
        class_="columns",
    )
    return element("section", banner, first, second, aria_labelledby="verdict", class_="verdict")


def numbers_section(findings: Findings) -> Markup:
    """Return the scales of the verdict, and the numbers beside them."""
    rows = number_rows(findings.evaluation, findings.verdict)
    return section("numbers", "The numbers", cards(findings), number_table(rows))


def pictures_section(findings: Findings) -> Markup:
    """Return the pictures that exist for this family."""
    parts: list[Markup] = []
    if findings.bins is not None and not math.isnan(findings.evaluation.ece):
        parts.append(_reliability(findings.bins, merged_bins(findings)))
    if findings.evaluation.forecast is not None:
        parts += forecast_figures(findings.evaluation.forecast)
    if findings.evaluation.summary.sum_brier is None:  # states and densities
        parts.append(_spread(findings.evaluation))
    if findings.bins is not None:
        parts.append(_bars(findings, findings.bins.name))
    parts.append(_curve(findings))
    if findings.in_groups:
        parts.append(_forest(findings))
    return section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _reliability(bins: Table, many: str) -> Markup:
    side = "Below the line the model is over-confident."
    if not bins.top_label:
        side = "Where it is shaded, the model is over-confident: the observed share is nearer to one half than it says."
    return figure(
        "Does it happen as often as predicted?",
        reliability_diagram("reliability", bins),
        f"{side} The grey bars show where 95 % of the observed shares of a calibrated model lie. "
        "Filled dots lie outside: chance does not explain them. The bars below count the rows of each bin.",
        many,
    )


def _spread(evaluation: Evaluation) -> Markup:
    found = ExcessShares.of(evaluation)
    beside = "" if found.expected is None else " Where the line is above the dashed one, it is surprised too often."
    said = "Excess is the surprise of a row beyond what the model announced; ECD is its mean."
    return figure("How often is it surprised, and how much?", excess_picture("spread", found), f"{said}{beside}")


def _bars(findings: Findings, name: str) -> Markup:
    return figure(
        f"Where is it too surprised? ECD by {name}",
        forest("bars", f"ECD of each bin of {name}", findings.in_bins, bars=True),
        "To the right it is over-confident, to the left under-confident. "
        f"The intervals hold for all bins together, at {percent(findings.verdict.level)}. {FOR_READING}",
        merged_bins(findings),
    )


def _curve(findings: Findings) -> Markup:
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


def _forest(findings: Findings) -> Markup:
    found = findings.in_groups
    left = f" The other {grouped(len(found) - _DRAWN)} groups are not drawn." if len(found) > _DRAWN else ""
    return figure(
        "In which groups? ECD by group, the worst first",
        forest("groups", "ECD of each group", found[:_DRAWN], bars=False),
        "Larger squares have more rows; filled ones are beyond their limit. The intervals are those of the verdict, "
        "and hold for all groups together.",
        left,
    )


def _details(evaluation: Evaluation, context: Context, *, with_document: bool) -> Markup:
    """Return parameters, versions, and how to make this again."""
    source, command = context.source, context.command
    known = [("source", source)] if source is not None else []
    made = [*known, ("made", f"{context.created:%Y-%m-%d %H:%M:%S} UTC"), *versions()]
    again: list[Markup] = []
    if command is not None:
        again += [element("h3", "On the command line"), _code(command, "The command")]
    again += [element("h3", "In Python"), _code(snippet(evaluation), "The Python code")]
    if with_document:
        said = "This file contains the whole evaluation as a JSON document, with the sums behind every number: "
        note = join([said, element("code", "safecal.Evaluation.from_dict"), " reads it."])
    else:
        note = join(["The JSON document of the evaluation is left out: the file would be larger than 200 kB."])
    tables = element(
        "div",
        pairs_table(parameters(evaluation), "Parameters and methods"),
        pairs_table(made, "Origin and versions"),
        class_="columns",
    )
    return section("details", "How it was made", tables, *again, element("p", note, class_="note"))


def _code(text: str, name: str) -> Markup:
    return region(element("pre", element("code", text)), name)


Pairs = Sequence[tuple[str, str]]

GLOSSARY = (
    ("nat", "the unit of surprise, with natural logarithms; 1 nat is 1.44 bits"),
    ("surprisal", "how surprised the model was: minus the logarithm of the probability it gave to what happened"),
    ("entropy", "how surprised it said it would be, on average"),
    ("excess", "surprisal minus entropy, for one row"),
    ("ECD", "entropic calibration difference: the mean excess; above 0 over-confident, below 0 under-confident"),
    (
        "temperature",
        "T, where raising the predictions to the power 1/T fits the data best; above 1 over-confident, below 1 "
        "under-confident",
    ),
    (
        "mistake",
        "an outcome other than the likeliest; the model announces so many by the probability it gives to the others",
    ),
    ("range", "a part of the predictions in their order: from half to a sixteenth of the rows"),
    ("suspected", "the estimate is beyond the limit, but its lower bound is not: more rows would decide"),
    ("dimension", "two nats of spread of the surprise, at least one; that of a vector, 1 for two classes"),
    ("over-confident", "more surprised than announced; unsafe, because people rely on its certainty"),
    ("under-confident", "less surprised than announced; cautious"),
    ("impossible", "something happened to which the model had given probability 0: an infinite surprise"),
    ("NLL", "negative log-likelihood: the mean surprisal; a proper score, smaller is better"),
    (
        "ECE",
        "expected calibration error: the mean distance between predicted and observed, over bins; of the positive "
        "class, or of the confidence in the most likely class",
    ),
    ("ECE by chance", "the ECE that a calibrated model has with so many rows, because shares vary"),
    ("ESCE", "expected signed calibration error: as ECE with signs, so that opposite bins cancel"),
    ("Brier", "the mean squared distance between probabilities and outcome; a proper score, smaller is better"),
    ("p-value", "the probability, if the model is calibrated, of a surprise at least as extreme as the one seen"),
    ("interval", "two ends; at 95 %, the truth lies between them except in 1 of 20 data sets like this one"),
)


def versions() -> Pairs:
    """Return the versions that matter."""
    libraries = [(name, metadata.version(name)) for name in ("numpy", "scipy")]
    return [("safecal", version()), ("Python", platform.python_version()), *libraries]


def parameters(evaluation: Evaluation) -> Pairs:
    """Return what was asked, and by which methods it was answered."""
    e = evaluation
    limits, many = e.limits, e.verdict.dimensions
    found = [("family", e.family), ("rows", grouped(e.n))]
    if e.dimension > 1:
        found.append(("dimension", str(e.dimension)))
    unit = "nat" if many == 1.0 else f"nat per dimension, {plain(e.verdict.allowed)} nat for {plain(many)}"
    found += [
        ("threshold", f"{plain(limits.threshold)} {unit}"),
        ("max_temperature", plain(limits.max_temperature)),
        ("max_ratio", f"{plain(limits.max_ratio)} times as many mistakes as announced"),
        (
            "local_threshold",
            f"{plain(limits.local_threshold)} nat{'' if many == 1.0 else ' per dimension'}, in a range",
        ),
        ("min_share", f"{percent(limits.min_share)} of the rows, in a range"),
        ("level", percent(limits.level)),
        ("rule", limits.rule),
        ("bins", "none" if e.bins is None else f"{len(e.bins)} on {e.bins.name}"),
        ("groups", "none" if e.groups is None else f"{grouped(len(e.groups))}, by {shortened(e.groups.name, 60)}"),
        ("test", test_name(e.test.method)),
        ("interval of ECD", e.interval.method),
        ("temperature", e.temperature.method),
    ]
    return found


def snippet(evaluation: Evaluation) -> str:
    """Return Python that makes the same evaluation from the data."""
    e = evaluation
    options = _bin_options(e.bins, e.family)
    options += ["by=groups"] if e.groups is not None else []
    options += ["cluster=clusters"] if e.test.method == "cluster" else []
    options += ["sample_weight=weights"] if e.summary.weight != e.n else []
    always = ("threshold", "max_temperature", "level")
    changed = [n for n in e.limits.__slots__ if n in always or getattr(e.limits, n) != getattr(Limits(), n)]
    options += [f"{name}={getattr(e.limits, name)!r}" for name in changed]
    listed = "".join(f"\n    {option}," for option in options) + "\n"
    call = family_named(e.family).words.of(e.dimension).call.format(listed)
    return f"import safecal\n\nresult = {call}\nprint(result.verdict)\n"


def _bin_options(table: Table | None, family: str) -> list[str]:
    kind = family_named(family)
    if table is None or table.bins is None:
        return ["bins=None"] if kind.binned_by_default else []
    edges = table.bins.edges
    if edges == Bins.uniform(len(edges) - 1).edges:
        made = str(len(edges) - 1)
    else:
        made = f"safecal.Bins.from_edges({list(edges)!r})" if len(edges) <= 12 else "bins"
    default = kind.bin_choices[0] if kind.binned_by_default else None
    return [f"bins={made}"] + ([] if table.name == default else [f"bin_on={table.name!r}"])


def glossary(*parts: Markup) -> Markup:
    """Return the words that these parts of a page use, and those that explain them."""
    text = " ".join(re.sub(r"<[^>]*>", " ", str(part)) for part in parts)
    used: set[str] = set()
    while more := {word: said for word, said in GLOSSARY if word not in used and _uses(text, word)}:
        used |= more.keys()
        text = " ".join(more.values())
    listed = ((word, said) for word, said in GLOSSARY if word in used)
    items = (element("div", element("dt", word), element("dd", together(said))) for word, said in listed)
    return element("dl", *items, class_="glossary")


def _uses(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE if word.islower() else re.NOFLAG) is not None


def embedded(document: Any) -> Markup:
    """Return a JSON document as a block that no browser runs and nothing in it can close."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type="application/json", id="evaluation")
