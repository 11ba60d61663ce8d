"""The page: one file that holds everything, asks the network for nothing, and reads from top to bottom."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import final

from .._versions import version
from ..evaluation import Evaluation
from . import details, sections, words
from .after import after_section
from .findings import Findings
from .markup import Markup, element, join
from .numbers import grouped, rows
from .where import where_section

__all__ = ["LARGEST", "Context", "document", "page"]

LARGEST = 200_000  # bytes; beyond it, the document of the evaluation is left out
MOST_KEYS = 400  # bins and groups with which it may fit: each takes 500 bytes at least


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What the caller says about an evaluation, beside the evaluation itself."""

    title: str
    source: str | None
    command: str | None
    created: datetime


def page(evaluation: Evaluation, context: Context, after: Evaluation | None) -> str:
    """Return the whole page."""
    findings = Findings.of(evaluation)
    body = [
        sections.verdict_section(findings),
        where_section(findings),
        sections.numbers_section(findings),
        None if after is None else after_section(evaluation, findings.verdict, after),
        sections.pictures_section(findings),
        sections.tables_section(findings),
    ]
    start = join(body)
    if len(findings.in_bins) + len(findings.in_groups) <= MOST_KEYS:
        whole = _page(findings, context, start, details.embedded(evaluation.to_dict()))
        if len(whole.encode()) <= LARGEST:
            return whole
    return _page(findings, context, start, None)


def _page(findings: Findings, context: Context, start: Markup, written: Markup | None) -> str:
    verdict, evaluation = findings.verdict, findings.evaluation
    made = sections.details_section(
        evaluation, context.source, context.command, context.created, with_document=written is not None
    )
    title = f"{verdict.decision}: {context.title}"
    facts = [rows(evaluation.n), words.kind(evaluation)]
    if evaluation.groups is not None:
        facts.append(f"{grouped(len(evaluation.groups))} group{'' if len(evaluation.groups) == 1 else 's'}")
    return document(
        context, title, verdict.decision.lower(), facts, [start, made, sections.glossary_section()], written
    )


def document(
    context: Context,
    title: str,
    tone: str,
    facts: Sequence[str],
    body: Sequence[Markup | None],
    written: Markup | None = None,
) -> str:
    """Return a page: header and footer around its sections; ``tone`` is the class of its colours."""
    script = _asset("sort.js")
    content = element(
        "body",
        element("a", "Skip to the verdict", href="#main", class_="skip"),
        _header(facts, context),
        element("main", *body, id="main", tabindex="-1"),
        _footer(context),
        written,
        element("script", Markup(script)),
        class_=tone,
    )
    return f"<!DOCTYPE html>\n{element('html', _head(title, script), content, lang='en')}\n"


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
        element("style", Markup(_asset("page.css"))),
    )


def _header(facts: Sequence[str], context: Context) -> Markup:
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


def _footer(context: Context) -> Markup:
    made = f"Made by safecal {version()} on {context.created:%Y-%m-%d at %H:%M} UTC."
    words = " It holds results only, no row of the data, and asks the network for nothing."
    return element("footer", element("p", made, words))


@cache
def _asset(name: str) -> str:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return "\n" + text
