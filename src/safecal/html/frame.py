"""What pages show of an evaluation, computed once; and what they share: file, sign of a verdict, sections, tables."""

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import NamedTuple, Self, final

import numpy as np

from .._optional import version
from .._sums.bins import Bins
from .._sums.table import Table, bin_keys
from ..inference.results import Interval
from ..judge.display import count
from ..judge.evaluation import Evaluation
from ..judge.groups import judge_groups
from ..judge.looks import smaller_end
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from .markup import Markup, element, join, together, with_code

__all__ = [
    "PRESS",
    "Column",
    "Finding",
    "Findings",
    "asset",
    "coarser",
    "figure",
    "file_of",
    "icon",
    "number_table",
    "pairs_table",
    "region",
    "section",
    "sorting_table",
]

_MOST = 50  # bins that a page shows


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One bin or group.

    Attributes
    ----------
    index : int
        Its place in the table.
    name : str
        Its key as text.
    n : int
        Rows.
    share : float
        Share of the weight.
    ecd : Interval
        ECD, with an interval so wide that those of all keys hold together.
    limit : float
        Largest ECD that is allowed there, in nats.
    beyond : bool
        Whether it is over-confident beyond the limit; a group as the verdict judges it.
    said : str
        What was found, in a few words; empty where nothing was.
    """

    index: int
    name: str
    n: int
    share: float
    ecd: Interval
    limit: float
    beyond: bool
    said: str


@final
@dataclass(frozen=True, slots=True)
class Findings:
    """An evaluation, as far as the page shows it.

    Attributes
    ----------
    evaluation : Evaluation
        All of it.
    verdict : Verdict
        Its verdict.
    limit : float
        Largest ECD that is allowed on average, in nats.
    bins : Table or None
        The bins, neighbours merged where there are very many.
    in_bins : list of Finding
        One for each of them.
    in_groups : list of Finding
        One for each group, the largest ECD first.
    """

    evaluation: Evaluation
    verdict: Verdict
    limit: float
    bins: Table | None
    in_bins: list[Finding]
    in_groups: list[Finding]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Look at an evaluation."""
        verdict = evaluation.verdict
        limit = verdict.allowed
        bins = None if evaluation.bins is None else coarser(evaluation.bins)
        in_bins = [] if bins is None else _bins(bins, verdict.level, limit)
        in_groups = [] if evaluation.groups is None else _groups(evaluation.groups, evaluation)
        in_groups.sort(key=lambda one: math.inf if math.isnan(one.ecd.value) else -one.ecd.value)
        return cls(evaluation, verdict, limit, bins, in_bins, in_groups)


def _bins(table: Table, level: float, limit: float) -> list[Finding]:
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.intervals(level), strict=True)
    return [
        Finding(i, name, n, share, at, limit, at.low > limit, _side(at, limit))
        for i, (name, n, share, at) in enumerate(rows)
    ]


def _side(ecd: Interval, limit: float) -> str:
    """Say in a word on which side an interval lies; nothing where it says nothing."""
    if ecd.low > limit:
        return "over-confident"
    return "under-confident" if ecd.high < 0.0 else ""


def _groups(table: Table, evaluation: Evaluation) -> list[Finding]:
    """Return the groups, each as the verdict judges it: by ECD, by its temperature, by its mistakes, or not at all."""
    judged = judge_groups(table, evaluation.limits, evaluation.tally)
    everywhere = evaluation.limits.everywhere
    others = [
        (look.tally.look.name, judge_groups(look.tally.groups, look.limits, look.tally).degree)
        for look in evaluation.looks
        if everywhere and look.tally.groups is not None and look.tally.look is not None and look.tally.look.condemns
    ]
    least = None  # where ECD is known between bounds, the other end
    if smaller_end(evaluation.verdict.looks) is not None:
        other = evaluation.looks[0]
        assert other.tally.groups is not None
        least = judge_groups(other.tally.groups, other.limits, other.tally)
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.ecd.tolist(), strict=True)
    found = []
    for i, (name, n, share, ecd) in enumerate(rows):
        at, limit = judged.interval(ecd, i), float(judged.limit[i])
        at = at if least is None else replace(at, low=float(least.low[i]))
        degree = int(judged.degree[i]) if everywhere else 0
        said = "" if judged.within[i] or not everywhere else "too small to judge"
        said = "under-confident" if at.high < 0.0 else said
        by = judged.by(i) if degree else ""
        if by == "mistakes":
            said = f"{count(judged.seen[i])} mistakes, {count(judged.announced[i])} announced"
        elif by == "temperature":
            said = "temperature too high" if degree == 2 else "temperature suspected"
        elif degree:
            said = "over-confident" if degree == 2 else "suspected"
        seen = [look for look, degrees in others if degrees[i] == 2]
        if degree < 2 and seen:
            degree, said = 2, f"over-confident, by {seen[0]}"
        found.append(Finding(i, name, n, share, at, limit, degree == 2, said))
    return found


def coarser(table: Table, most: int = _MOST) -> Table:
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
        element("footer", element("p", footer, "and asks the network for nothing.")),
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
    """Return a picture under its heading, and above what it shows in words."""
    said = element("figcaption", *(together(part) for part in caption))
    return element("figure", element("h3", heading), image, said)


def region(content: Markup, name: str) -> Markup:
    """Return what may be wider than the page, in a part that scrolls by itself and that the keyboard reaches."""
    return element("div", content, class_="wide", role="region", aria_label=name, tabindex="0")


def number_table(rows: Sequence[tuple[str, str, str]]) -> Markup:
    """Return numbers as a table: name, value, what it says."""
    body = join(
        element(
            "tr",
            element("th", a, scope="row"),
            element("td", b, class_="n"),
            element("td", with_code(together(c)), class_="about"),
        )
        for a, b, c in rows
    )
    head = element(
        "tr", *(element("th", name, scope="col") for name in ("number", "value", "what it says")), class_="quiet"
    )
    return element(
        "table",
        element("caption", "The other numbers", class_="quiet"),
        element("thead", head),
        element("tbody", body),
        class_="numbers",
    )


def pairs_table(pairs: Sequence[tuple[str, str]], caption: str) -> Markup:
    """Return names and values as a table."""
    rows = join(element("tr", element("th", a, scope="row"), element("td", element("bdi", b))) for a, b in pairs)
    return element("table", element("caption", caption), element("tbody", rows), class_="pairs")


class Column(NamedTuple):
    """A column: its name, what it sorts by ("text", "number" or "place"), and in which order it stands at first."""

    name: str
    by: str
    order: str | None = None


# Shown by the script that sorts.
PRESS = element("span", "Press a header to sort.", class_="press", hidden=True)


def sorting_table(
    columns: Sequence[Column], body: Sequence[Markup], caption: str, foot: Markup | None = None
) -> Markup:
    """Return a table that sorts when a header is pressed."""
    heads = [
        element(
            "th", element("bdi", c.name), scope="col", data_by=c.by, aria_sort=c.order,
            class_="n" if c.by == "number" else None,
        )
        for c in columns
    ]  # fmt: skip
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        None if foot is None else element("tfoot", foot),
        class_="keys",
    )
    return region(content, caption)
