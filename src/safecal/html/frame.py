"""The findings of an evaluation, computed once; and the parts that pages share: file, icon, sections, tables."""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, Self, final

import numpy as np

from .._optional import version
from .._sums.splits import Bins, bin_keys
from .._sums.table import Table
from ..inference import Interval
from ..inference.bounds import mistakes_text
from ..judge.decision import smaller_end
from ..judge.evaluation import Evaluation
from ..judge.groups import judge_groups
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from . import Markup, element, unbroken, whole_dates, with_code

__all__ = [
    "SORT_HINT",
    "TableColumn",
    "Finding",
    "PageFindings",
    "asset",
    "beside_table",
    "coarser",
    "code_region",
    "figure",
    "file_of",
    "icon",
    "json_block",
    "number_table",
    "pairs_table",
    "plain_table",
    "region",
    "section",
    "sorting_table",
]

_MOST_BINS = 50  # bins that a page shows


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One bin, group or slice."""

    index: int  # its place in the table
    name: str  # its key as text
    n: int  # rows
    share: float  # of the weight
    ecd: Interval  # so wide that those of all keys hold together
    limit: float  # largest ECD that is allowed there, in nats
    beyond: bool  # whether it is over-confident beyond the limit; a group as the verdict judges it
    remark: str  # the finding in a few words; empty where there is none


@final
@dataclass(frozen=True, slots=True)
class PageFindings:
    """An evaluation, as far as the page shows it."""

    evaluation: Evaluation
    verdict: Verdict
    bins: Table | None  # neighbours merged where there are very many
    in_bins: list[Finding]  # one for each of them
    in_groups: list[Finding]  # one for each group, the largest ECD first

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Look at an evaluation."""
        verdict = evaluation.verdict
        bins = None if evaluation.bins is None else coarser(evaluation.bins)
        in_bins = [] if bins is None else _bin_findings(bins, verdict.level, verdict.allowed)
        in_groups = [] if evaluation.groups is None else _group_findings(evaluation.groups, evaluation)
        in_groups.sort(key=lambda group: math.inf if math.isnan(group.ecd.value) else -group.ecd.value)
        return cls(evaluation, verdict, bins, in_bins, in_groups)


def _bin_findings(table: Table, level: float, limit: float) -> list[Finding]:
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.intervals(level), strict=True)
    return [
        Finding(i, name, n, share, ecd, limit=limit, beyond=ecd.low > limit, remark=_side(ecd, limit))
        for i, (name, n, share, ecd) in enumerate(rows)
    ]


def _side(ecd: Interval, limit: float) -> str:
    """Say in a word on which side an interval lies; nothing where it can be either."""
    if ecd.low > limit:
        return "over-confident"
    return "under-confident" if ecd.high < 0.0 else ""


def _group_findings(table: Table, evaluation: Evaluation) -> list[Finding]:
    """Return the groups, each as the verdict judges it: by ECD, by its temperature, by its mistakes, or not at all."""
    judged = judge_groups(table, evaluation.limits, evaluation.tally)
    everywhere = evaluation.limits.everywhere
    other_looks = [
        (look.tally.look.name, judge_groups(look.tally.groups, look.limits, look.tally).degree)
        for look in evaluation.looks
        if everywhere and look.tally.groups is not None and look.tally.look is not None and look.tally.look.condemns
    ]
    judged_smaller = None  # the groups by the smaller end, where ECD is known between bounds
    if smaller_end(evaluation.verdict.looks) is not None:
        smaller_look = evaluation.looks[0]
        assert smaller_look.tally.groups is not None
        judged_smaller = judge_groups(smaller_look.tally.groups, smaller_look.limits, smaller_look.tally)
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.ecd.tolist(), strict=True)
    findings = []
    for i, (name, n, share, ecd) in enumerate(rows):
        interval, limit = judged.interval(ecd, i), float(judged.limit[i])
        interval = interval if judged_smaller is None else replace(interval, low=float(judged_smaller.low[i]))
        degree = int(judged.degree[i]) if everywhere else 0
        remark = "" if judged.within[i] or not everywhere else "too small to judge"
        remark = "under-confident" if interval.high < 0.0 else remark
        scale = judged.by(i) if degree else ""
        if scale == "mistakes":
            remark = f"{mistakes_text(judged.seen[i])} mistakes, {mistakes_text(judged.announced[i])} announced"
        elif scale == "temperature":
            remark = "temperature too high" if degree == 2 else "temperature suspected"
        elif degree:
            remark = "over-confident" if degree == 2 else "suspected"
        condemning = [look for look, degrees in other_looks if degrees[i] == 2]
        if degree < 2 and condemning:
            degree, remark = 2, f"over-confident, by {condemning[0]}"
        findings.append(Finding(i, name, n, share, interval, limit=limit, beyond=degree == 2, remark=remark))
    return findings


def coarser(table: Table, most: int = _MOST_BINS) -> Table:
    """Return a table of at most so many bins: neighbours are added up, so that nothing is left out.

    Examples
    --------
    >>> import safecal
    >>> table = safecal.evaluate([0, 1, 1, 0], [0.1, 0.7, 0.9, 0.6], bins=100).bins
    >>> coarser(table, 10).bins == safecal.Bins.uniform(10), coarser(table, 10).total == table.total
    (True, True)
    """
    if table.bins is None or len(table) <= most:
        return table
    step = -(-len(table) // most)
    starts = range(0, len(table), step)
    bins = Bins((*(table.bins.edges[k] for k in starts), table.bins.edges[-1]))
    merged = np.add.reduceat(table.sums, list(starts), axis=0)
    return Table(table.name, bin_keys(bins), merged, bins, table.top_label)


# A round tick, a warning triangle, a question in a diamond: colour is never needed.
_OUTLINES = {
    SAFE: element("circle", cx=24.0, cy=24.0, r=20.5, class_="icon-body"),
    UNSAFE: element("path", d="M24 4.5 45 42.5H3Z", class_="icon-body"),
    UNDETERMINED: element("path", d="M24 2.5 45.5 24 24 45.5 2.5 24Z", class_="icon-body"),
}
_SIGNS = {
    SAFE: "M14.5 24.5 21.5 31.5 34 17.5",
    UNSAFE: "M24 17.5V29.5M24 35.6V36",
    UNDETERMINED: "M18.8 19.2C18.8 12.6 29.4 13 29.4 19.2 29.4 23 24 23.4 24 28.4M24 34.2V34.6",
}


def icon(decision: str) -> Markup:
    """Return the icon of a decision; the word stands beside it, so that it is hidden from screen readers."""
    sign = element("path", d=_SIGNS[decision], class_="icon-sign")
    return element("svg", _OUTLINES[decision], sign, viewBox="0 0 48 48", class_="icon", aria_hidden="true")


@cache
def asset(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return "\n" + resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def file_of(
    title: str, tone: str, header: Markup, main: Sequence[Markup | None], *, made: datetime, holds: str, skip: str,
    document: Markup | None = None,
) -> str:  # fmt: skip
    """Return a whole file, which holds its style and its script and asks the network for nothing.

    ``tone`` is the class of its colours, ``holds`` says what the file holds, ``skip`` where the first link leads.
    """
    script = asset("sort.js")
    footer = f"Made by safecal {version()} on {made:%Y-%m-%d at %H:%M} UTC. It holds {holds}, no row of the data, "
    body = element(
        "body",
        element("a", skip, href="#main", class_="skip"),
        header,
        element("main", *main, id="main", tabindex="-1"),
        element("footer", element("p", whole_dates(footer), "and asks the network for nothing.")),
        document,
        element("script", Markup(script)),
        class_=tone,
    )
    return f"<!DOCTYPE html>\n{element('html', _head(title, script), body, lang='en')}\n"


def _head(title: str, script: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="safecal"),
        element("meta", name="robots", content="noindex"),
        element("title", title),
        element("style", Markup(asset("pictures.css") + asset("page.css"))),
    )


def section(name: str, heading: str, *parts: str | None) -> Markup:
    """Return a section of a page, with its heading; ``name`` is unique in the page."""
    return element("section", element("h2", heading, id=name), *parts, aria_labelledby=name)


def figure(heading: str, image: Markup | None, *caption: str) -> Markup:
    """Return a picture between its heading and its caption."""
    words = element("figcaption", *(unbroken(part) for part in caption))
    return element("figure", element("h3", heading), image, words)


def region(content: Markup, name: str) -> Markup:
    """Return content that can be wider than the page, in a part that scrolls, also by the keyboard."""
    return element("div", content, class_="wide", role="region", aria_label=name, tabindex="0")


def code_region(code: str, name: str) -> Markup:
    """Return code, in a part that scrolls by itself."""
    return region(element("pre", element("code", code)), name)


def json_block(name: str, document: Any) -> Markup:
    """Return a JSON document as a block that no browser runs and nothing in it can close."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type="application/json", id=name)


def number_table(rows: Sequence[tuple[str, str, str]]) -> Markup:
    """Return numbers as a table: name, value, meaning."""
    names = ("number", "value", "what it says")
    head = element("tr", *(element("th", name, scope="col") for name in names), class_="quiet")
    body = []
    for name, value, about in rows:
        cells = element("td", value, class_="n"), element("td", with_code(unbroken(about)), class_="about")
        body.append(element("tr", element("th", name, scope="row"), *cells))
    caption = element("caption", "The other numbers", class_="quiet")
    return element("table", caption, element("thead", head), element("tbody", *body), class_="numbers")


def titled_table(caption: str, names: Sequence[str], body: Sequence[Markup]) -> Markup:
    """Return a table of rows under their caption and the names of their columns."""
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in names)))
    return element("table", element("caption", caption), head, element("tbody", *body))


def table_row(first: str, cells: Sequence[str], class_: str | None = None) -> Markup:
    """Return a row of a table: what it is about, then its cells, of one class."""
    return element("tr", element("th", first, scope="row"), *(element("td", cell, class_=class_) for cell in cells))


def pairs_table(pairs: Sequence[tuple[str, str]], caption: str) -> Markup:
    """Return names and values as a table."""
    rows = [table_row(name, [element("bdi", whole_dates(unbroken(value)))]) for name, value in pairs]
    return element("table", element("caption", caption), element("tbody", *rows), class_="pairs")


def plain_table(
    caption: str, names: Sequence[str], body: Sequence[Markup], *, numeric: slice = slice(1, None),
    class_: str | None = None,
) -> Markup:  # fmt: skip
    """Return a table in a part that scrolls by itself; ``numeric`` are the columns whose numbers stand at the right."""
    right = range(len(names))[numeric]
    heads = [element("th", name, scope="col", class_="n" if k in right else None) for k, name in enumerate(names)]
    head = element("thead", element("tr", *heads))
    return region(element("table", element("caption", caption), head, element("tbody", *body), class_=class_), caption)


def beside_table(caption: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> Markup:
    """Return a table that shows numbers of two models, or of one before and after, beside each other."""
    body = [table_row(name, list(map(unbroken, cells)), "n wraps") for name, cells in rows]
    return plain_table(caption, names, body, class_="pair")


class TableColumn(NamedTuple):
    """A column: its name, how it is sorted ("text", "number" or "place"), and its order at first."""

    name: str
    by: str
    order: str | None = None


# Shown by the script that sorts.
SORT_HINT = element("span", "Press a header to sort.", class_="press", hidden=True)


def sorting_table(
    columns: Sequence[TableColumn], body: Sequence[Markup], caption: str, foot: Markup | None = None
) -> Markup:
    """Return a table that sorts when a header is pressed."""
    heads = []
    for c in columns:
        class_ = "n" if c.by == "number" else None
        name = element("bdi", c.name)
        heads.append(element("th", name, scope="col", data_by=c.by, aria_sort=c.order, class_=class_))
    head, last = element("thead", element("tr", *heads)), None if foot is None else element("tfoot", foot)
    parts = element("caption", caption), head, element("tbody", *body), last
    return region(element("table", *parts, class_="keys"), caption)
