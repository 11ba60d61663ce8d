"""What a fix would gain, a model before and after one; and the Python that makes each again."""

import math

from .._sums.splits import Bins
from .._sums.table import Table
from ..errors import UnavailableError
from ..families.predictions import family_named
from ..html import Markup, element, grouped, join, metric_text, sentence, shortened, unbroken, with_code
from ..html.frame import beside_table, code_region, plain_table, section
from ..judge.display import ece_of
from ..judge.evaluation import Evaluation
from ..judge.verdict import SAFE, Verdict
from ..maps.base import Map
from ..maps.result import Candidate, Recalibration
from ..maps.safe import Safe
from ..options import Limits
from .advice import changes, taken_map

__all__ = ["after_section", "fix_section", "snippet"]

_FUNCTION_LENGTH = 4000  # characters of a function that is shown
_HEAD = ("map", "NLL", "above the best", "ECD", "worst range", "ECE", "numbers fitted", "verdict")

BeforeAfter = tuple[str, tuple[str, str]]  # name; before and after


def fix_section(evaluation: Evaluation, fix: Recalibration | None, command: str | None) -> Markup | None:
    """Return the gain of the best map and the lines to paste; where none was tried, the lines that try one."""
    if fix is None and (evaluation.verdict.decision == SAFE or family_named(evaluation.family).mapped not in _PYTHON):
        return None
    parts = _not_tried(command) if fix is None else _tried(evaluation, fix)
    if command is not None:
        parts += [element("h3", "On the command line"), code_region(command, "The command of the fix")]
    if family_named(evaluation.family).mapped in _PYTHON:
        parts += [element("h3", "In Python"), code_region(_fix_snippet(evaluation, fix), "The Python code of the fix")]
    function = None if fix is None else _function(fix.map)
    if function is not None:
        parts += [
            element("h3", "The fix itself, as a function that needs no library"),
            code_region(function, "The function"),
        ]
    return section("fix", "What a fix would gain", *parts)


def _not_tried(command: str | None) -> list[Markup]:
    why = "a result holds no rows, and a map is fitted to rows."
    if command is not None:
        why = "maps are fitted to rows in memory, and these are too many for that beside a report."
    return [element("p", f"No fix was tried here: {why} These lines try one.", class_="lead")]


def _tried(evaluation: Evaluation, fix: Recalibration) -> list[Markup]:
    parts = [element("p", unbroken(_gain(fix)), class_="lead"), element("p", unbroken(fix.reason))]
    parts += [element("p", element("strong", "Warning: "), unbroken(text)) for text in fix.warnings]
    if changes(fix):
        parts.append(_before_after_table(fix.before, fix.before.verdict, fix.after, fix.after.verdict))
    if fix.table:
        parts.append(_candidates_table(fix))
    parts.append(element("p", unbroken(_caveat(evaluation, fix)), class_="note"))
    return parts


def _gain(fix: Recalibration) -> str:
    if not changes(fix):
        return "No map is known to help."
    was, now = fix.before, fix.after
    numbers = [("NLL", was.nll, now.nll), ("ECE", was.ece, now.ece)]
    moves = [f"{name} goes from {metric_text(a)} to {metric_text(b)}" for name, a, b in numbers if not math.isnan(a)]
    before, after = was.verdict.decision, now.verdict.decision
    verdict = f"the verdict stays {after}" if before == after else f"the verdict is {after} instead of {before}"
    return f"On rows that the fix was not fitted to, {', '.join(moves)}, and {verdict}."


def _caveat(evaluation: Evaluation, fix: Recalibration) -> str:
    text = "Each map is judged on rows that it was not fitted to. "
    if isinstance(fix.map, Safe) and fix.table:
        text += "The table shows each map alone; after the one that is taken, a temperature rules over-confidence out. "
    requested = [("groups", evaluation.groups, fix.before.groups), ("slices", evaluation.slices, fix.before.slices)]
    left = [name for name, in_report, in_fix in requested if in_report is not None and in_fix is None]
    if left:
        text += f"The verdicts of this section are about all rows together, and not about {' or '.join(left)}. "
    return f"{text}Evaluate the fix again on new rows before you rely on it."


def _candidates_table(fix: Recalibration) -> Markup:
    """Return the table of the maps that were tried; the one that is taken stands out."""
    taken = taken_map(fix)
    body = [_candidate_row(candidate, candidate.name == taken) for candidate in fix.table]
    return plain_table("What was tried", _HEAD, body, numeric=slice(1, -1))


def _candidate_row(candidate: Candidate, taken: bool) -> Markup:
    name = join([element("strong", candidate.name), ", taken"]) if taken else candidate.name
    first = element("th", name, scope="row")
    if candidate.refusal:
        return element(
            "tr", first, element("td", f"not fitted: {candidate.refusal}", colspan=len(_HEAD) - 1, class_="about")
        )
    above = f"{metric_text(candidate.difference)} ± {metric_text(candidate.error)}"
    numbers = [
        metric_text(candidate.nll),
        above,
        metric_text(candidate.ecd, signed=True),
        metric_text(candidate.worst, signed=True),
        metric_text(candidate.ece),
    ]
    cells = (element("td", text, class_="n") for text in [*numbers, str(candidate.parameters)])
    return element("tr", first, *cells, element("td", candidate.decision))


_PYTHON = {
    "classes": ("y_true, y_prob", "better = fixed.apply(y_prob)"),
    "states": ("safecal.gaussian(x_true, mean, cov=cov)", "better = fixed.map.apply_states(cov=cov)"),
}


def _fix_snippet(evaluation: Evaluation, fix: Recalibration | None) -> str:
    """Return Python that finds the same fix from the data; where none was tried, with a report of it."""
    arguments, use = _PYTHON[family_named(evaluation.family).mapped]
    if evaluation.dimension == 1:
        arguments, use = arguments.replace("cov", "std"), use.replace("cov", "std")
    groups = evaluation.groups if fix is None else fix.before.groups
    call = ", ".join([arguments, *_column_options(evaluation, groups)])
    use = use.replace(")", ", by=groups)") if groups is not None else use
    result_line = "print(fixed)" if fix is not None else 'result.report("report.html", fix=fixed)'
    return f"import safecal\n\nfixed = safecal.recalibrate({call})\n{result_line}\n{use}\n"


def snippet(evaluation: Evaluation) -> str:
    """Return Python that makes the same evaluation from the data."""
    e = evaluation
    options = [*_bin_options(e.bins, e.family), *_column_options(e, e.groups)]
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
        bins = str(len(edges) - 1)
    else:
        bins = f"safecal.Bins.from_edges({list(edges)!r})" if len(edges) <= 12 else "bins"
    default = kind.bin_choices[0] if kind.binned_by_default else None
    return [f"bins={bins}"] + ([] if table.name == default else [f"bin_on={table.name!r}"])


def _column_options(evaluation: Evaluation, groups: Table | None) -> list[str]:
    """Return the options that take a column of the data."""
    options = ["by=groups"] if groups is not None else []
    options += ["cluster=clusters"] if evaluation.test.method == "cluster" else []
    return options + (["sample_weight=weights"] if evaluation.summary.weight != evaluation.n else [])


def _function(map_: Map) -> str | None:
    """Return a map as Python; None of one that has no such form, that changes nothing, or that is long."""
    if not map_.parameters_:
        return None
    try:
        text = map_.to_python()
    except UnavailableError:  # states
        return None
    return text if len(text) <= _FUNCTION_LENGTH else None


def after_section(before: Evaluation, was: Verdict, after: Evaluation) -> Markup:
    """Return both evaluations side by side; they can be of different rows."""
    now = after.verdict
    verdict = element("p", with_code(sentence(str(now))), class_="lead")
    return section("after", "After recalibration", verdict, _before_after_table(before, was, after, now))


def _before_after_table(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> Markup:
    rows = _before_after_rows(before, was, after, now)
    return beside_table("Before and after", ("number", "before", "after"), rows)


def _before_after_rows(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> list[BeforeAfter]:
    both = (before, after)
    numbers = [
        ("ECD", True, [e.ecd for e in both]),
        ("ECD at least", True, [e.interval.low for e in both]),
        ("ECD at most", True, [e.interval.high for e in both]),
        ("temperature", False, [e.temperature.value for e in both]),
        ("mistakes, made over announced", False, [_mistake_ratio(e) for e in both]),
        ("NLL", False, [e.nll for e in both]),
        ("ECE" if before.bins is None else f"ECE ({ece_of(before.bins)})", False, [e.ece for e in both]),
        ("Brier", False, [e.brier for e in both]),
        ("accuracy", False, [e.accuracy for e in both]),
    ]
    rows = [
        ("verdict", (was.decision, now.decision)),
        ("rows", (grouped(before.n), grouped(after.n))),
        ("worst place", (_worst_place(was), _worst_place(now))),
    ]
    return rows + [
        (name, (metric_text(a, signed=signed), metric_text(b, signed=signed)))
        for name, signed, (a, b) in numbers
        if not (math.isnan(a) and math.isnan(b))
    ]


def _mistake_ratio(evaluation: Evaluation) -> float:
    return math.nan if evaluation.mistakes is None else evaluation.mistakes.ratio.value


def _worst_place(verdict: Verdict) -> str:
    """Name the worst place with its bound, if there is one."""
    if not verdict.where:
        return "none"
    place = verdict.where[0]
    bound = "" if place.by == "mistakes" else f", ECD at least {metric_text(place.ecd.low, signed=True)}"
    if place.temperature is not None:
        bound = f", temperature at least {metric_text(place.temperature.low)}"
    return unbroken(shortened(place.brief, 40) + (bound if place.shown else ", suspected"))
