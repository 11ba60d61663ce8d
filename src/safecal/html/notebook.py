"""What a notebook shows of an evaluation, and of slices: the verdict, its reason, the main pictures, then the numbers.

The style is written into each output, and touches nothing outside it.
"""

import hashlib
import re
from functools import cache

from .._sums.table import Table
from ..judge.display import Metric, table_html
from ..judge.evaluation import Evaluation
from ..judge.places import Place, place_rows
from ..judge.verdict import Verdict
from ..slices.results import Slices
from . import (
    Markup,
    element,
    grouped,
    interval_text,
    join,
    metric_text,
    percent,
    sentence,
    shortened,
    unbroken,
    with_code,
)
from .course import Course, course_picture
from .diagrams import has_reliability, reliability_diagram
from .frame import Finding, PageFindings, asset, icon, table_row, titled_table
from .intervals import TemperatureCurve, forest, temperature_picture

__all__ = ["evaluation_html", "recalibration_html", "slices_html", "slices_picture", "slices_table", "verdict_html"]

_PLACES_LISTED = 5
_GROUPS_DRAWN = 12  # in a picture
_GROUPS_LISTED = 50  # in the table
_NAME_LENGTH, _CONDITION_LENGTH = 40, 60  # characters

# What notebooks say of their own colours: Jupyter, Visual Studio Code, Colab.
_DARK = '[data-jp-theme-light="false"] .safecal, .vscode-dark .safecal, html[theme="dark"] .safecal'


def evaluation_html(evaluation: Evaluation, title: str, metrics: list[Metric], tables: list[Table]) -> str:
    """Return an evaluation as HTML; everything from the data is escaped."""
    verdict = evaluation.verdict
    diagnosis, images = verdict.diagnosis, _pictures(evaluation)
    return _output(
        verdict,
        *(element("p", "Note: ", with_code(unbroken(note))) for note in evaluation.notes),
        _places(verdict.where, evaluation.summary.weight) if verdict.where else None,
        None if diagnosis is None else element("p", "What to do: ", with_code(unbroken(diagnosis.remedy))),
        element("div", *images, class_="images") if images else None,
        None if evaluation.slices is None else _slices_part(evaluation.slices),
        _numbers(title, metrics),
        *(_folded(table) for table in tables),
    )


def verdict_html(verdict: Verdict) -> str:
    """Return a verdict as HTML: its sign, the decision, and why."""
    return _output(verdict)


def recalibration_html(verdict: Verdict, paragraphs: list[str], rows: list[list[str]]) -> str:
    """Return the result of a recalibration: the verdict on held-out rows after it, why, and the maps tried."""
    names, *body = rows
    lines = [table_row(first, cells) for first, *cells in body]
    caption = "What was tried, on rows that no map was fitted to"
    table = element("div", titled_table(caption, names, lines), class_="scroll") if body else None
    return _output(verdict, *(element("p", text) for text in paragraphs), table)


def _output(verdict: Verdict, *parts: Markup | None) -> str:
    head = element(
        "div",
        icon(verdict.decision),
        element("p", element("strong", verdict.decision), element("br"), with_code(sentence(verdict.reason))),
        class_="verdict",
    )
    return _framed(element("div", head, *parts, class_=verdict.decision.lower()))


def _framed(*parts: Markup | None) -> str:
    """Return parts for a notebook, with their style."""
    return element("div", element("style", Markup(_style())), *parts, class_="safecal")


@cache
def _style() -> str:
    """Return a style that touches nothing outside, in the colours of the notebook."""
    light, dark, _ = (
        re.sub(r"color-scheme:[^;]*;", "", body) for body in re.findall(r":root \{([^}]*)\}", asset("page.css"))
    )
    rules = re.findall(r"^([^{}\n]+) \{([^}]*)\}", asset("pictures.css") + asset("notebook.css"), re.M)
    inside = []
    for selectors, body in rules:
        scoped = ", ".join(f".safecal {selector.strip()}" for selector in selectors.split(","))
        inside.append(f"{scoped} {{{body}}}")
    colours = [f".safecal {{{light}}}", f"{_DARK} {{{dark}}}"]
    return re.sub(r"\s+", " ", "\n".join([*colours, *inside]))


def _pictures(evaluation: Evaluation) -> list[Markup]:
    """Return at most four: reliability, ECD along the predictions, the groups or the temperature, and the slices."""
    findings = PageFindings.of(evaluation)
    name = _unique_name(evaluation.summary)
    figures: dict[str, Markup | None] = {}
    if findings.bins is not None and has_reliability(findings.bins):
        figures["Predicted and observed"] = reliability_diagram(f"{name}-reliability", findings.bins)
    course = Course.of(evaluation.deciding.local, evaluation.limits.local_threshold)
    figures["Along its predictions"] = course_picture(f"{name}-course", course)
    if findings.in_groups:
        groups, count = findings.in_groups[:_GROUPS_DRAWN], len(findings.in_groups)
        worst = f", the worst {_GROUPS_DRAWN} of {grouped(count)}" if count > _GROUPS_DRAWN else ""
        figures[f"By group{worst}"] = forest(f"{name}-groups", "ECD of each group", groups, bars=False)
    else:
        figures["Which temperatures fit"] = temperature_picture(f"{name}-temperature", TemperatureCurve.of(evaluation))
    if evaluation.slices is not None:
        figures["For whom"] = slices_picture(f"{name}-slices", evaluation.slices, evaluation.limits.local_threshold)
    images = [(heading, image) for heading, image in figures.items() if image is not None]
    return [element("figure", element("figcaption", heading), image) for heading, image in images]


def _places(places: tuple[Place, ...], weight: float) -> Markup:
    more = f", the worst {_PLACES_LISTED} of {len(places)} places" if len(places) > _PLACES_LISTED else ""
    rows = place_rows(places[:_PLACES_LISTED], weight)
    body = [
        table_row(unbroken(shortened(at, _NAME_LENGTH)), [element("span", unbroken(x), class_="wraps") for x in cells])
        for at, *cells in (row.values() for row in rows)
    ]
    return element("div", titled_table(f"Where it is over-confident{more}", list(rows[0]), body), class_="scroll")


def _numbers(title: str, metrics: list[Metric]) -> Markup:
    body = [
        element("tr", element("th", a, scope="row"), element("td", b), element("td", unbroken(c), class_="words"))
        for a, b, c in metrics
    ]
    return element("table", element("caption", title), element("tbody", *body))


def _folded(table: Table) -> Markup:
    """Return a table that opens when it is pressed."""
    noun = "bins" if table.bins is not None else "groups"
    name = f"{grouped(len(table))} {noun if len(table) != 1 else noun[:-1]} by {shortened(table.name, _NAME_LENGTH)}"
    n_left = len(table) - _GROUPS_LISTED if table.bins is None else 0
    note = element("p", f"{grouped(n_left)} more groups, with smaller ECD, are in `groups`.") if n_left > 0 else None
    listed = table.worst_first(_GROUPS_LISTED) if n_left > 0 else table
    return element("details", element("summary", name), join([Markup(table_html(listed)), note]))


def slices_picture(name: str, slices: Slices, local_threshold: float = 0.2) -> Markup | None:
    """Return the slices as bars with their intervals, beside the limit; None where there are none."""
    findings = []
    for place, s in enumerate(slices):
        limit = local_threshold * s.dimensions
        beyond = slices.direction == "over" and s.firm > limit
        findings.append(Finding(place, s.condition, s.n, s.share, s.ecd, limit=limit, beyond=beyond, remark=""))
    return forest(name, "ECD of each slice", findings, bars=True) if findings else None


def slices_table(slices: Slices) -> Markup:
    """Return the slices as a table."""
    names = ("slice", "rows", "share", "ECD", "interval", "elsewhere", "temperature", "predicted", "observed", "adds")
    body = []
    for s in slices:
        cells = (
            grouped(s.n),
            percent(s.share),
            metric_text(s.ecd.value, signed=True),
            element("span", interval_text(s.ecd, signed=True).replace(" to", "\N{NO-BREAK SPACE}to"), class_="wraps"),
            metric_text(s.elsewhere, signed=True),
            *(metric_text(value) for value in (s.temperature.value, s.predicted, s.observed)),
            metric_text(s.contribution, signed=True),
        )
        body.append(table_row(element("bdi", shortened(s.condition, _CONDITION_LENGTH)), cells))
    return titled_table(unbroken(slices.sentence), names, body)


def _slices_part(slices: Slices) -> Markup:
    """Return the slices as a table, or the sentence that there are none."""
    if not len(slices):
        return element("p", unbroken(slices.sentence))
    return element("div", slices_table(slices), class_="scroll")


def slices_html(slices: Slices) -> str:
    """Return slices as a notebook shows them."""
    image = slices_picture(f"{_unique_name(slices)}-slices", slices)
    images = None if image is None else element("div", element("figure", image), class_="images")
    return _framed(element("div", images, _slices_part(slices), class_="found"))


def _unique_name(shown: object) -> str:
    """Return a name for the pictures of a result, which stand in one page with those of others."""
    return "safecal-" + hashlib.sha256(repr(shown).encode()).hexdigest()[:10]
