"""What to do next, as one types it at the door that the report came through: what a fix would gain, and the Python."""

import math
from collections.abc import Sequence

from .._checks import in_options
from .._checks.classes import clip_for, clips_little
from .._sums.splits import Bins
from .._sums.table import Table
from ..errors import UnavailableError
from ..families import family_named
from ..html import Markup, element, grouped, join, metric_text, percent, sentence, shortened, unbroken, with_code
from ..html.frame import beside_table, code_region, plain_table, section
from ..judge.diagnosis import Diagnosis
from ..judge.display import ece_of
from ..judge.evaluation import Evaluation
from ..judge.places import Place
from ..judge.reasons import rounded
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from ..maps.base import Map
from ..maps.result import Candidate, Recalibration
from ..maps.safe import Safe
from ..options import Limits
from .words import all_but_certain, allowed_slices, in_places

__all__ = ["after_section", "fix_section", "next_steps", "snippet", "typed"]

Advice = tuple[str, Markup | str]  # what to do, and why or how

_TOO_COARSE = "These were rounded so much that a clip would judge another model."
_PLACES_NAMED = 5  # places that are listed
_FEW_ROWS_DECIDE = 0.5  # of all excess above 0, in the worst 1 % of the rows


def _changes(fix: Recalibration) -> bool:
    """Tell whether a fix does anything."""
    return fix.before is not fix.after


def _taken_map(fix: Recalibration) -> str:
    """Return the name of the map that was taken; empty where none was."""
    inner = fix.map.map if isinstance(fix.map, Safe) else fix.map
    return type(inner).__name__.lower() if _changes(fix) else ""


def typed(text: str, evaluation: Evaluation, in_shell: bool) -> str:
    """Return a text as one types what it names: options and commands in a shell, else arguments and functions."""
    return in_options(text, recalibrates=family_named(evaluation.family).discrete) if in_shell else text


def next_steps(
    evaluation: Evaluation, verdict: Verdict, fix: Recalibration | None = None, *, in_shell: bool = False
) -> list[tuple[str, Markup]]:
    """Say what to do, the most useful first; ``fix`` is what the report says a fix would gain."""
    return [
        (what, how if isinstance(how, Markup) else with_code(unbroken(typed(how, evaluation, in_shell))))
        for what, how in _advice(evaluation, verdict, fix)
    ]


def _advice(evaluation: Evaluation, verdict: Verdict, fix: Recalibration | None) -> list[Advice]:
    steps: list[Advice] = []
    if verdict.n_impossible:
        steps += _for_impossible(evaluation)
    elif in_places(verdict):
        steps += _for_places(verdict, fix)
    elif verdict.decision == UNSAFE:
        steps += _for_unsafe(evaluation, verdict, fix)
    elif verdict.decision == UNDETERMINED:
        steps += _for_undetermined(evaluation, verdict)
    if verdict.where and not in_places(verdict):
        steps.append(("Look where it is worst.", _places_text(verdict.where)))
    if verdict.worst_share >= _FEW_ROWS_DECIDE and verdict.decision != SAFE and evaluation.n >= 100:
        share = percent(verdict.worst_share)
        why = f"The most surprising 1 % of the rows hold {share} of all excess above 0. "
        why += "Are their labels wrong, or are these rows of another kind?"
        steps.append(("Look at the most surprising rows.", why))
    if verdict.decision == SAFE:
        steps += _for_safe(evaluation, verdict)
    return steps


def _classes(evaluation: Evaluation) -> int:
    return round(math.exp(evaluation.tally.most_entropy))


def _for_impossible(evaluation: Evaluation) -> list[Advice]:
    classes = _classes(evaluation) if math.isfinite(evaluation.tally.most_entropy) else 2
    decimals = evaluation.tally.decimals
    clip = "1e-6" if not decimals and clips_little(1e-6, classes) else clip_for(classes, decimals)
    last = ("Or pass probabilities with all their digits.", _TOO_COARSE)
    if clip is not None:
        how = f"`clip={clip}`, for example, shows how bad it is when nothing is impossible."
        last = ("Or state a smallest probability.", how)
    return [
        ("Look at these rows first.", "Is the label right? Was a small probability rounded to 0 on the way?"),
        ("Pass logits instead of probabilities.", "They never saturate, so that nothing is called impossible."),
        last,
    ]


def _for_places(verdict: Verdict, fix: Recalibration | None) -> list[Advice]:
    direction = verdict.where[0].type == "direction"
    look = ("Look at the errors along it." if direction else "Look at the rows there.", _places_text(verdict.where))
    if verdict.decision != UNSAFE:
        return [
            ("Do not assume that it is safe.", "Until more rows decide, treat its confidence there as unproven."),
            look,
        ]
    risk = "Until this is repaired, a threshold on its confidence lets more errors through than it promises."
    why = "One temperature changes all places in the same way. Train the model again with more rows from there, or "
    why += "correct each place separately."
    repair = ("Do not change its temperature alone.", why)
    return [("Do not act on its confidence there.", risk), look, *(_for_cause(verdict.diagnosis, fix) or [repair])]


def _for_cause(diagnosis: Diagnosis | None, fix: Recalibration | None) -> list[Advice]:
    """Say how to mend the cause; nothing for causes that every verdict names already."""
    if diagnosis is None or diagnosis.cause not in _MENDS:
        return []
    how = diagnosis.remedy
    if fix is not None and diagnosis.cause in _BY_A_MAP:
        how = "No map that was tried is known to help: train it with more rows, or do not use it."
        if _changes(fix):
            how = f"Take the {_taken_map(fix)} map below, and judge it by rows that it was not fitted to."
    return [(_MENDS[diagnosis.cause], how)]


_BY_A_MAP = ("too sharp", "shifted", "only in places")  # causes that a map for all rows mends
_MENDS = {
    "too sharp": "Recalibrate it.",
    "shifted": "Correct the shift.",
    "a few confident mistakes": "Look for wrong labels.",
    "only in places": "Correct these ranges.",
    "only a group": "Correct that group.",
    "only a direction": "Correct the covariance that way.",
    "only a slice": "Correct that slice.",
}


def _for_unsafe(evaluation: Evaluation, verdict: Verdict, fix: Recalibration | None) -> list[Advice]:
    family = family_named(evaluation.family)
    if not family.discrete or family.words.wrong:
        steps: list[Advice] = [
            ("Do not rely on its uncertainty.", "Gates and alarms that are built on it miss more than they promise.")
        ]
    else:
        gate = "Until this is repaired, a threshold on its confidence lets more errors through than it promises."
        steps = [("Do not act on its confidence.", gate)]
    mends = _for_cause(verdict.diagnosis, fix)
    if math.isinf(evaluation.temperature.value):
        steps.append(
            ("Train it again, or do not use it.", "Its confidence says nothing, and no temperature changes that.")
        )
    elif family.words.mends:
        steps.append(("Widen it.", family.words.mends))
    elif family.words.factor is None:
        steps.append(("Widen its densities.", "Heavier tails, or a larger scale; then evaluate it on other rows."))
    elif mends:
        steps += mends
    else:
        how = "Fit `safecal.SafeTemperature`, then judge it by rows that it was not fitted to."
        steps.append(("Recalibrate it.", how))
    return steps


def _for_undetermined(evaluation: Evaluation, verdict: Verdict) -> list[Advice]:
    careful = ("Do not assume that it is safe.", "Until more rows decide, treat its confidence as unproven.")
    if evaluation.n_certain and verdict.rows_needed is None:
        value = clip_for(_classes(evaluation), evaluation.tally.decimals)
        logits = ("Pass logits instead of probabilities.", "They never saturate.")
        if value is None:
            return [logits, ("Or pass probabilities with all their digits.", _TOO_COARSE), careful]
        clip = f"`clip={value}`, for example: then no failure is infinite."
        return [logits, ("Or state a smallest probability.", clip), careful]
    if all_but_certain(evaluation, verdict):
        why = "No number of rows can show that it is right. Smaller logits could be checked."
        return [("Ask whether it should be so certain.", why), careful]
    if verdict.rows_needed is None:
        why = "These rows are too few to say how many are needed."
    else:
        why = f"About {grouped(int(rounded(verdict.rows_needed)))} more rows of the same kind would decide."
    return [("Collect more rows.", why), careful]


def _for_safe(evaluation: Evaluation, verdict: Verdict) -> list[Advice]:
    steps: list[Advice] = []
    slices = allowed_slices(evaluation, verdict)
    if slices:
        named = "; ".join(f"where {s.condition} (ECD {s.ecd.value:.3g} nat)" for s in slices[:_PLACES_NAMED])
        why = f"It is over-confident {named}, though no more than the limits allow."
        steps.append(("Rely on it less in these slices.", shortened(why, 400)))
    if verdict.uninformative:
        steps.append(("Look for a better model.", "This one is safe only because it says nothing."))
    elif verdict.direction == "under-confident":
        how = "`safecal.SafeTemperature` makes it as sharp as is safe."
        steps.append(("Make it more certain, if that is useful.", how))
    steps.append(("Evaluate it again when the data change.", "The verdict is about rows like these."))
    return steps


def _places_text(places: Sequence[Place]) -> Markup:
    """List the worst places: those that are shown, or else those that are suspected."""
    worst = [place for place in places if place.shown] or places
    start = "Over-confident beyond the limit" if worst[0].shown else "Suspected"
    names = [unbroken(shortened(place.brief, 60)) for place in worst[:_PLACES_NAMED]]
    if all(name.startswith("says ") for name in names):
        start, names = f"{start} where it says", [name.removeprefix("says ") for name in names]
    listed = [element("strong", element("bdi", name)) for name in names]
    n_more = len(worst) - _PLACES_NAMED
    more = f" and {n_more} more, in the table below." if n_more > 0 else "."
    return join([f"{start}: ", join(listed, ", "), more])


_FUNCTION_LENGTH = 4000  # characters of a function that is shown
_HEAD = ("map", "NLL", "above the best", "ECD", "worst range", "ECE", "numbers fitted", "verdict")


def fix_section(evaluation: Evaluation, fix: Recalibration | None, command: str | None) -> Markup | None:
    """Return the gain of the best map and the lines to paste; where none was tried, the lines that try one."""
    if fix is None and (evaluation.verdict.decision == SAFE or family_named(evaluation.family).mapped not in _PYTHON):
        return None
    parts = _not_tried(command) if fix is None else _tried(evaluation, fix)
    if command is not None:
        parts += [element("h3", "On the command line"), code_region(command, "The command of the fix")]
    if family_named(evaluation.family).mapped in _PYTHON:
        parts += [element("h3", "In Python"), code_region(_fix_snippet(evaluation, fix), "The Python code of the fix")]
    if fix is not None and (function := _function(fix.map)) is not None:
        heading = element("h3", "The fix itself, as a function that needs no library")
        parts += [heading, code_region(function, "The function")]
    return section("fix", "What a fix would gain", *parts)


def _not_tried(command: str | None) -> list[Markup]:
    why = "a result holds no rows, and a map is fitted to rows."
    if command is not None:
        why = "maps are fitted to rows in memory, and these are too many for that beside a report."
    return [element("p", f"No fix was tried here: {why} These lines try one.", class_="lead")]


def _tried(evaluation: Evaluation, fix: Recalibration) -> list[Markup]:
    parts = [element("p", unbroken(_gain(fix)), class_="lead"), element("p", unbroken(fix.reason))]
    parts += [element("p", element("strong", "Warning: "), unbroken(text)) for text in fix.warnings]
    if _changes(fix):
        parts.append(_before_after_table(fix.before, fix.after))
    if fix.table:
        body = [_candidate_row(candidate, candidate.name == _taken_map(fix)) for candidate in fix.table]
        parts.append(plain_table("What was tried", _HEAD, body, numeric=slice(1, -1)))
    parts.append(element("p", unbroken(_caveat(evaluation, fix)), class_="note"))
    return parts


def _gain(fix: Recalibration) -> str:
    if not _changes(fix):
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


def _candidate_row(candidate: Candidate, taken: bool) -> Markup:
    """Return a map that was tried; the one that is taken stands out."""
    name = join([element("strong", candidate.name), ", taken"]) if taken else candidate.name
    first = element("th", name, scope="row")
    if candidate.refusal:
        why = element("td", f"not fitted: {candidate.refusal}", colspan=len(_HEAD) - 1, class_="about")
        return element("tr", first, why)
    above = f"{metric_text(candidate.difference)} ± {metric_text(candidate.error)}"
    places = [metric_text(value, signed=True) for value in (candidate.ecd, candidate.worst)]
    numbers = [metric_text(candidate.nll), above, *places, metric_text(candidate.ece), str(candidate.parameters)]
    return element(
        "tr", first, *(element("td", text, class_="n") for text in numbers), element("td", candidate.decision)
    )


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


def after_section(before: Evaluation, after: Evaluation) -> Markup:
    """Return both evaluations side by side; they can be of different rows."""
    verdict = element("p", with_code(sentence(str(after.verdict))), class_="lead")
    return section("after", "After recalibration", verdict, _before_after_table(before, after))


def _before_after_table(before: Evaluation, after: Evaluation) -> Markup:
    both = (before, after)
    mistakes = [e.mistakes for e in both]
    numbers = [
        ("ECD", True, [e.ecd for e in both]),
        ("ECD at least", True, [e.interval.low for e in both]),
        ("ECD at most", True, [e.interval.high for e in both]),
        ("temperature", False, [e.temperature.value for e in both]),
        ("mistakes, made over announced", False, [math.nan if m is None else m.ratio.value for m in mistakes]),
        ("NLL", False, [e.nll for e in both]),
        ("ECE" if before.bins is None else f"ECE ({ece_of(before.bins)})", False, [e.ece for e in both]),
        ("Brier", False, [e.brier for e in both]),
        ("accuracy", False, [e.accuracy for e in both]),
    ]
    rows: list[tuple[str, list[str]]] = [
        ("verdict", [e.verdict.decision for e in both]),
        ("rows", [grouped(e.n) for e in both]),
        ("worst place", [_worst_place(e.verdict) for e in both]),
    ]
    for name, signed, values in numbers:
        if not all(map(math.isnan, values)):
            rows.append((name, [metric_text(value, signed=signed) for value in values]))
    return beside_table("Before and after", ("number", "before", "after"), rows)


def _worst_place(verdict: Verdict) -> str:
    """Name the worst place with its bound, if there is one."""
    if not verdict.where:
        return "none"
    place = verdict.where[0]
    bound = "" if place.by == "mistakes" else f", ECD at least {metric_text(place.ecd.low, signed=True)}"
    if place.temperature is not None:
        bound = f", temperature at least {metric_text(place.temperature.low)}"
    return unbroken(shortened(place.brief, 40) + (bound if place.shown else ", suspected"))
