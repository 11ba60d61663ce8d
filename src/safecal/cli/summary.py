"""``--summary``: an evaluation as Markdown, for a pull request or the summary of a step on GitHub."""

import math
import re
from collections.abc import Iterable, Sequence

from .._checks.message import in_options
from ..families.predictions import family_named
from ..judge.baseline import WORSE, Baseline
from ..judge.display import (
    inference_rows,
    look_rows,
    metric_rows,
    number,
    place_rows,
    with_ends,
)
from ..judge.evaluation import Evaluation
from ..judge.forecast_rows import forecast_rows
from ..judge.looks import smaller_end
from ..judge.verdict import SAFE
from ..visible import shortened, visible

__all__ = ["escaped", "summary_markdown"]

_PLACES = 5
_GROUPS = 10
_NAME = 80  # characters
_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_[]|~"}
_MARKS |= {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("$"): "<span>$</span>",
}  # the last begins a formula
# GitHub makes links and mentions of what looks like one, after all escapes. A comment inside keeps it from doing so.
_LINKS = re.compile(r"[@#](?=\S)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)


def escaped(text: str) -> str:
    r"""Return a text of strangers as Markdown that shows it as it is: no markup, link, mention, or line of its own.

    Examples
    --------
    >>> escaped("*a* | <b>\nping @all")
    '\\*a\\* \\| &lt;b&gt;\\\\nping @<!-- -->all'
    """
    return _LINKS.sub(r"\g<0><!-- -->", visible(text).translate(_MARKS))


def summary_markdown(
    found: Evaluation,
    *,
    source: str,
    title: str | None = None,
    baseline: Baseline | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return the verdict and its reason, the worst places, the numbers and the groups as Markdown.

    Parameters
    ----------
    found : Evaluation
        What to tell of.
    source : str
        What was read.
    title : str, optional
        Stands beside the decision.
    baseline : Baseline, optional
        How it compares with an earlier evaluation.
    notes : sequence of str
        What else the reader has to know.
    """
    verdict = found.verdict
    worse = baseline is not None and baseline.decision == WORSE
    head: str = verdict.decision
    if worse:  # a gate fails then: the first line must not read as if all were well
        head += f"{', but' if head == SAFE else ', and'} WORSE than the baseline"
    rows = f"{found.n} row{'' if found.n == 1 else 's'} of {shortened(source, _NAME)}"
    parts = [
        f"## {head}" + (f": {escaped(title)}" if title else ""),
        escaped(in_options(_begun(verdict.reason))),
    ]
    if baseline is not None:
        parts.append(f"{'**Baseline**' if worse else 'Baseline'}: {escaped(str(baseline))}")
    parts += [f"Note: {escaped(in_options(note))}" for note in (*notes, *found.notes)]
    if verdict.where:
        places = place_rows(verdict.where[:_PLACES])
        cells = ([shortened(name, _NAME), *rest] for name, *rest in (row.values() for row in places))
        parts.append(_table(list(places[0]), f"l{'r' * (len(places[0]) - 2)}l", cells))
        more = len(verdict.where) - _PLACES
        parts += [f"And in {more} more place{'' if more == 1 else 's'}."] if more > 0 else []
    told = family_named(found.family).discrete
    if verdict.diagnosis is not None and verdict.diagnosis.remedy:
        parts.append(f"What to do: {escaped(in_options(verdict.diagnosis.remedy, recalibrates=told))}")
    parts.append(_table(("", "value", escaped(rows)), "lrl", _numbers(found)))
    if found.slices is not None:
        parts.append(escaped(_begun(found.slices.sentence)))
    parts += _groups(found)
    return "\n\n".join(parts) + "\n"


def _begun(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _numbers(found: Evaluation) -> list[tuple[str, str, str]]:
    least = smaller_end(found.verdict.looks)
    rows = inference_rows(found.interval, found.temperature, found.test, found.mistakes, least)
    rows += look_rows(found.verdict.looks) + forecast_rows(found.forecast)
    return rows + metric_rows(found.summary, None if math.isnan(found.ece) else found.bins, found.reliability)


def _groups(found: Evaluation) -> list[str]:
    """Return the most over-confident groups, each with a verdict of its own."""
    if found.groups is None:
        return []
    shown = found.groups.worst_first(_GROUPS)
    body = []
    for key, label in zip(shown.keys, shown.labels, strict=True):
        verdict = found.group_verdict(key)
        ratio = "" if verdict.ratio is None else number(verdict.ratio.value)
        temperature = number(verdict.temperature.value)
        body.append(
            [
                shortened(label, _NAME),
                str(verdict.n),
                verdict.decision,
                with_ends(verdict.ecd, True),
                temperature,
                ratio,
            ]
        )
    head = [escaped(shortened(shown.name, _NAME)), "rows", "verdict", "ECD", "temperature", "mistakes made / announced"]
    more = len(found.groups) - len(shown)
    return [_table(head, "lrlrrr", body), *([f"And {more} more group{'' if more == 1 else 's'}."] if more else [])]


def _table(head: Sequence[str], sides: str, body: Iterable[Sequence[str]]) -> str:
    """Return a table, with the side of each column: ``l`` or ``r``. Its cells are escaped, its head is not."""
    rule = [{"l": ":--", "r": "--:"}[side] for side in sides]
    lines = [head, rule, *([escaped(cell) for cell in row] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
