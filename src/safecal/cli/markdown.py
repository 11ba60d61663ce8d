"""``--summary``: an evaluation as Markdown, for a pull request or the summary of a step on GitHub."""

import math
import re
from collections.abc import Iterable, Sequence

from .._checks.message import in_options
from ..errors import shortened, visible
from ..families.predictions import family_named
from ..judge.baseline import WORSE, Baseline
from ..judge.decision import smaller_end
from ..judge.display import forecast_rows, inference_rows, look_rows, metric_rows, number, with_ends
from ..judge.evaluation import Evaluation
from ..judge.places import place_rows
from ..judge.verdict import SAFE

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
    evaluation: Evaluation,
    *,
    source: str,
    title: str | None = None,
    baseline: Baseline | None = None,
) -> str:
    """Return the verdict and its reason, the worst places, the numbers and the groups as Markdown.

    Parameters
    ----------
    evaluation : Evaluation
        What to tell of.
    source : str
        What was read.
    title : str, optional
        Stands beside the decision.
    baseline : Baseline, optional
        How it compares with an earlier evaluation.
    """
    verdict = evaluation.verdict
    worse = baseline is not None and baseline.decision == WORSE
    head: str = verdict.decision
    if worse:  # a gate fails then: the first line must not read as if all were well
        head += f"{', but' if head == SAFE else ', and'} WORSE than the baseline"
    rows = f"{evaluation.n} row{'' if evaluation.n == 1 else 's'} of {shortened(source, _NAME)}"
    parts = [
        f"## {head}" + (f": {escaped(title)}" if title else ""),
        escaped(in_options(_begun(verdict.reason))),
    ]
    if baseline is not None:
        parts.append(f"{'**Baseline**' if worse else 'Baseline'}: {escaped(str(baseline))}")
    parts += [f"Note: {escaped(in_options(note))}" for note in evaluation.notes]
    if verdict.where:
        places = place_rows(verdict.where[:_PLACES], evaluation.summary.weight)
        cells = ([shortened(name, _NAME), *rest] for name, *rest in (row.values() for row in places))
        parts.append(_table(list(places[0]), f"l{'r' * (len(places[0]) - 2)}l", cells))
        more = len(verdict.where) - _PLACES
        parts += [f"And in {more} more place{'' if more == 1 else 's'}."] if more > 0 else []
    recalibrates = family_named(evaluation.family).discrete
    if verdict.diagnosis is not None and verdict.diagnosis.remedy:
        parts.append(f"What to do: {escaped(in_options(verdict.diagnosis.remedy, recalibrates=recalibrates))}")
    parts.append(_table(("", "value", escaped(rows)), "lrl", _numbers(evaluation)))
    if evaluation.slices is not None:
        parts.append(escaped(_begun(evaluation.slices.sentence)))
    parts += _groups(evaluation)
    return "\n\n".join(parts) + "\n"


def _begun(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _numbers(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    smaller = smaller_end(evaluation.verdict.looks)
    rows = inference_rows(evaluation.interval, evaluation.temperature, evaluation.test, evaluation.mistakes, smaller)
    forecast = evaluation.forecast
    rows += look_rows(evaluation.verdict.looks) + ([] if forecast is None else forecast_rows(forecast))
    return rows + metric_rows(
        evaluation.summary, None if math.isnan(evaluation.ece) else evaluation.bins, evaluation.reliability
    )


def _groups(evaluation: Evaluation) -> list[str]:
    """Return the most over-confident groups, each with a verdict of its own."""
    if evaluation.groups is None:
        return []
    shown = evaluation.groups.worst_first(_GROUPS)
    body = []
    for key, label in zip(shown.keys, shown.labels, strict=True):
        verdict = evaluation.group_verdict(key)
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
    more = len(evaluation.groups) - len(shown)
    return [_table(head, "lrlrrr", body), *([f"And {more} more group{'' if more == 1 else 's'}."] if more else [])]


def _table(head: Sequence[str], sides: str, body: Iterable[Sequence[str]]) -> str:
    """Return a table, with the side of each column: ``l`` or ``r``. Its cells are escaped, its head is not."""
    rule = [{"l": ":--", "r": "--:"}[side] for side in sides]
    lines = [head, rule, *([escaped(cell) for cell in row] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
