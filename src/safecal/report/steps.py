"""What to do next, the most useful first; what a fix would win, and a model before and after one."""

import math
from collections.abc import Sequence

from .._checks.classes import clip_for
from ..errors import UnavailableError
from ..families.predictions import family_named
from ..html.frame import region, section
from ..html.markup import Markup, element, grouped, join, percent, rows, sentence, shortened, shown, together, with_code
from ..judge.diagnosis import Diagnosis
from ..judge.display import ece_of
from ..judge.evaluation import Evaluation
from ..judge.places import Place
from ..judge.reasons import rounded
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from ..maps.base import Map
from ..maps.result import Candidate, Recalibration
from ..maps.safe import Safe
from .words import all_but_certain, allowed_slices, in_places

__all__ = ["after_section", "fix_section", "next_steps"]

Step = tuple[str, Markup | str]  # what to do, and why or how

_NAMED = 5  # places that are listed
_FEW_ROWS_DECIDE = 0.5  # of all excess above 0, in the worst 1 % of the rows


def next_steps(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    """Say what to do, the most useful first."""
    steps: list[Step] = []
    if verdict.n_impossible:
        steps += _for_impossible()
    elif in_places(verdict):
        steps += _for_places(verdict)
    elif verdict.decision == UNSAFE:
        steps += _for_unsafe(evaluation, verdict)
    elif verdict.decision == UNDETERMINED:
        steps += _for_undetermined(evaluation, verdict)
    if verdict.where and not in_places(verdict):
        steps.append(("Look where it is worst.", _places(verdict.where)))
    if verdict.worst_share >= _FEW_ROWS_DECIDE and verdict.decision != SAFE and evaluation.n >= 100:
        share = percent(verdict.worst_share)
        why = f"The most surprising 1 % of the rows hold {share} of all excess above 0. "
        why += "Are their labels wrong, or are these rows of another kind?"
        steps.append(("Look at the most surprising rows.", why))
    if verdict.decision == SAFE:
        steps += _for_safe(evaluation, verdict)
    return steps


def _for_impossible() -> list[Step]:
    return [
        ("Look at these rows first.", "Is the label right? Was a small probability rounded to 0 on the way?"),
        ("Pass logits instead of probabilities.", "They never saturate, so that nothing is called impossible."),
        (
            "Or state a smallest probability.",
            join([element("code", "clip=1e-6"), ", for example, shows how bad it is when nothing is impossible."]),
        ),
    ]


def _for_places(verdict: Verdict) -> list[Step]:
    direction = verdict.where[0].type == "direction"
    look = ("Look at the errors along it." if direction else "Look at the rows there.", _places(verdict.where))
    if verdict.decision != UNSAFE:
        return [
            ("Do not assume that it is safe.", "Until more rows decide, treat its confidence there as unproven."),
            look,
        ]
    lets = "Until this is repaired, a threshold on its confidence lets more errors through than it promises."
    alike = "One temperature changes all places in the same way. Train the model again with more rows from there, or "
    alike += "correct each place separately."
    repair = ("Repair more than its temperature.", alike)
    return [("Do not act on its confidence there.", lets), look, *(_for_cause(verdict.diagnosis) or [repair])]


def _for_cause(diagnosis: Diagnosis | None) -> list[Step]:
    """Say what mends the cause; nothing for those that every verdict says already."""
    if diagnosis is None or diagnosis.cause not in _MENDS:
        return []
    return [(_MENDS[diagnosis.cause], with_code(diagnosis.remedy))]


_MENDS = {
    "too sharp": "Recalibrate it.",
    "shifted": "Correct the shift.",
    "a few confident mistakes": "Look for wrong labels.",
    "only in places": "Correct these ranges.",
    "only a group": "Correct that group.",
    "only a direction": "Correct the covariance that way.",
    "only a slice": "Correct that slice.",
}


def _for_unsafe(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    family = family_named(evaluation.family)
    if not family.discrete or family.words.wrong:
        steps: list[Step] = [
            ("Do not rely on its uncertainty.", "Gates and alarms that are built on it miss more than they promise.")
        ]
    else:
        gate = "Until this is repaired, a threshold on its confidence lets more errors through than it promises."
        steps = [("Do not act on its confidence.", gate)]
    mends = _for_cause(verdict.diagnosis)
    if math.isinf(evaluation.temperature.value):
        steps.append(
            ("Train it again, or do not use it.", "Its confidence says nothing, and no temperature changes that.")
        )
    elif family.words.mends:
        steps.append(("Widen it.", with_code(family.words.mends)))
    elif family.words.factor is None:
        steps.append(("Widen its densities.", "Heavier tails, or a larger scale; then evaluate it on other rows."))
    elif mends:
        steps += mends
    else:
        how = [
            element("code", "safecal.SafeTemperature"),
            " on other rows than these, then evaluate it on rows that the fit has not seen.",
        ]
        steps.append(("Recalibrate it.", join(["Fit ", *how])))
    return steps


def _for_undetermined(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    careful = ("Do not assume that it is safe.", "Until more rows decide, treat its confidence as unproven.")
    if evaluation.n_certain and verdict.rows_needed is None:
        value = clip_for(round(math.exp(evaluation.tally.most_entropy)), evaluation.tally.decimals)
        clip = join([element("code", f"clip={value}"), ", for example: then no failure is infinite."])
        logits = ("Pass logits instead of probabilities.", "They never saturate.")
        return [logits, ("Or state a smallest probability.", clip), careful]
    if all_but_certain(evaluation, verdict):
        why = "No number of rows can show that it is right. Smaller logits would show how sure it may be."
        return [("Ask whether it should be so certain.", why), careful]
    if verdict.rows_needed is None:
        why = "These rows are too few to say how many are needed."
    else:
        why = f"About {rows(int(rounded(verdict.rows_needed)))} more, of the same kind, would decide."
    return [("Collect more rows.", why), careful]


def _for_safe(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    steps: list[Step] = []
    slices = allowed_slices(evaluation, verdict)
    if slices:
        named = "; ".join(f"where {s.condition} (ECD {s.ecd.value:.3g} nat)" for s in slices[:_NAMED])
        why = f"It is over-confident {named}, though no more than the limits allow."
        steps.append(("Rely on it less in these slices.", together(shortened(why, 400))))
    if verdict.uninformative:
        steps.append(("Look for a better model.", "This one is safe only because it says nothing."))
    elif verdict.direction == "under-confident":
        how = [element("code", "safecal.SafeTemperature"), " makes it as sharp as is safe."]
        steps.append(("Make it more certain, if that is useful.", join(how)))
    steps.append(("Evaluate it again when the data change.", "The verdict is about rows like these."))
    return steps


def _places(places: Sequence[Place]) -> Markup:
    """List the worst places: those that are shown, or else those that are suspected."""
    found = [place for place in places if place.shown] or places
    start = "Over-confident beyond the limit" if found[0].shown else "Suspected"
    names = [together(shortened(place.brief, 60)) for place in found[:_NAMED]]
    if all(name.startswith("says ") for name in names):
        start, names = f"{start} where it says", [name.removeprefix("says ") for name in names]
    listed = [element("strong", element("bdi", name)) for name in names]
    rest = len(found) - _NAMED
    more = f" and {rest} more, in the table below." if rest > 0 else "."
    return join([f"{start}: ", join(listed, ", "), more])


_LONGEST = 4000  # characters of a function that is shown
_HEAD = ("map", "NLL", "above the best", "ECD", "worst range", "ECE", "numbers fitted", "verdict")

Row = tuple[str, str, str]  # name, before, after


def fix_section(evaluation: Evaluation, fix: Recalibration | None, command: str | None) -> Markup | None:
    """Return what the best map would win and the lines to paste; where none was tried, how to try it."""
    if fix is None and (evaluation.verdict.decision == SAFE or family_named(evaluation.family).mapped not in _PYTHON):
        return None
    parts = _not_tried(command) if fix is None else _tried(evaluation, fix)
    if command is not None:
        parts += [element("h3", "On the command line"), _code(command, "The command of the fix")]
    if family_named(evaluation.family).mapped in _PYTHON:
        parts += [element("h3", "In Python"), _code(_snippet(evaluation, fix), "The Python code of the fix")]
    function = None if fix is None else _function(fix.map)
    if function is not None:
        parts += [element("h3", "The fix itself, as a function that needs no library"), _code(function, "The function")]
    return section("fix", "What a fix would win", *parts)


def _not_tried(command: str | None) -> list[Markup]:
    why = "a result holds no rows, and a map is fitted to rows."
    if command is not None:
        why = "maps are fitted to rows that are held in memory, and these are too many to do that beside a report."
    return [element("p", f"No fix was tried here: {why} These lines try one.", class_="lead")]


def _tried(evaluation: Evaluation, fix: Recalibration) -> list[Markup]:
    parts = [element("p", together(_won(fix)), class_="lead"), element("p", together(fix.reason))]
    parts += [element("p", element("strong", "Warning: "), together(text)) for text in fix.warnings]
    if _changes(fix):
        parts.append(_pair_table(fix.before, fix.before.verdict, fix.after, fix.after.verdict))
    if fix.table:
        parts.append(_candidates(fix))
    parts.append(element("p", together(_about(evaluation, fix)), class_="note"))
    return parts


def _changes(fix: Recalibration) -> bool:
    return fix.before is not fix.after


def _won(fix: Recalibration) -> str:
    if not _changes(fix):
        return "No map is known to help."
    was, now = fix.before, fix.after
    numbers = [("NLL", was.nll, now.nll), ("ECE", was.ece, now.ece)]
    moves = [f"{name} goes from {shown(a)} to {shown(b)}" for name, a, b in numbers if not math.isnan(a)]
    before, after = was.verdict.decision, now.verdict.decision
    verdict = f"the verdict stays {after}" if before == after else f"the verdict is {after} instead of {before}"
    return f"On rows that the fix was not fitted to, {', '.join(moves)}, and {verdict}."


def _about(evaluation: Evaluation, fix: Recalibration) -> str:
    said = "Each map is judged on rows that it was not fitted to. "
    if isinstance(fix.map, Safe) and fix.table:
        said += "The table has the maps alone; after the one that is taken, a temperature rules over-confidence out. "
    asked = [("groups", evaluation.groups, fix.before.groups), ("slices", evaluation.slices, fix.before.slices)]
    left = [name for name, there, here in asked if there is not None and here is None]
    if left:
        said += f"The verdicts of this section are about all rows together, and not about {' or '.join(left)}. "
    return f"{said}Evaluate the fix again on new rows before you rely on it."


def _candidates(fix: Recalibration) -> Markup:
    """Return the table of what was tried; the map that is taken stands out."""
    inner = fix.map.map if isinstance(fix.map, Safe) else fix.map
    taken = type(inner).__name__.lower() if _changes(fix) else ""
    caption = "What was tried"
    head = [element("th", name, scope="col", class_="n" if 0 < k < len(_HEAD) - 1 else None)
            for k, name in enumerate(_HEAD)]  # fmt: skip
    body = [_candidate(one, one.name == taken) for one in fix.table]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", *head)), element("tbody", *body)
    )
    return region(table, caption)


def _candidate(one: Candidate, taken: bool) -> Markup:
    name = join([element("strong", one.name), ", taken"]) if taken else one.name
    first = element("th", name, scope="row")
    if one.refusal:
        return element("tr", first, element("td", f"not fitted: {one.refusal}", colspan=len(_HEAD) - 1, class_="about"))
    above = f"{shown(one.difference)} ± {shown(one.error)}"
    numbers = [shown(one.nll), above, shown(one.ecd, signed=True), shown(one.worst, signed=True), shown(one.ece)]
    cells = (element("td", text, class_="n") for text in [*numbers, str(one.parameters)])
    return element("tr", first, *cells, element("td", one.decision))


_PYTHON = {
    "classes": ("y_true, y_prob", "better = fixed.apply(y_prob)"),
    "states": ("safecal.gaussian(x_true, mean, cov=cov)", "better = fixed.map.apply_states(cov=cov)"),
}


def _snippet(evaluation: Evaluation, fix: Recalibration | None) -> str:
    """Return Python that finds the same fix from the data; where none was tried, with a report of it."""
    given, use = _PYTHON[family_named(evaluation.family).mapped]
    if evaluation.dimension == 1:
        given, use = given.replace("cov", "std"), use.replace("cov", "std")
    groups = evaluation.groups if fix is None else fix.before.groups
    options = ["by=groups"] if groups is not None else []
    options += ["cluster=clusters"] if evaluation.test.method == "cluster" else []
    options += ["sample_weight=weights"] if evaluation.summary.weight != evaluation.n else []
    call = ", ".join([given, *options])
    use = use.replace(")", ", by=groups)") if groups is not None else use
    told = "print(fixed)" if fix is not None else 'result.report("report.html", fix=fixed)'
    return f"import safecal\n\nfixed = safecal.recalibrate({call})\n{told}\n{use}\n"


def _function(map_: Map) -> str | None:
    """Return a map as Python; None of one that has no such form, that changes nothing, or that is long."""
    if not map_.parameters_:
        return None
    try:
        text = map_.to_python()
    except UnavailableError:  # states
        return None
    return text if len(text) <= _LONGEST else None


def _code(text: str, name: str) -> Markup:
    return region(element("pre", element("code", text)), name)


def after_section(before: Evaluation, was: Verdict, after: Evaluation) -> Markup:
    """Return both evaluations side by side; the rows may be others."""
    now = after.verdict
    said = element("p", with_code(sentence(str(now))), class_="lead")
    return section("after", "After recalibration", said, _pair_table(before, was, after, now))


def _pair_table(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> Markup:
    caption = "Before and after"
    names = (("number", None), ("before", "n"), ("after", "n"))
    head = element("tr", *(element("th", name, scope="col", class_=numeric) for name, numeric in names))
    body = [
        element("tr", element("th", a, scope="row"), *(element("td", x, class_="n wraps") for x in (b, c)))
        for a, b, c in _both(before, was, after, now)
    ]
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_="pair"
    )
    return region(table, caption)


def _both(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> list[Row]:
    both = (before, after)
    numbers = [
        ("ECD", True, [e.ecd for e in both]),
        ("ECD at least", True, [e.interval.low for e in both]),
        ("ECD at most", True, [e.interval.high for e in both]),
        ("temperature", False, [e.temperature.value for e in both]),
        ("mistakes, made over announced", False, [_ratio(e) for e in both]),
        ("NLL", False, [e.nll for e in both]),
        ("ECE" if before.bins is None else f"ECE ({ece_of(before.bins)})", False, [e.ece for e in both]),
        ("Brier", False, [e.brier for e in both]),
        ("accuracy", False, [e.accuracy for e in both]),
    ]
    rows = [("verdict", was.decision, now.decision), ("rows", grouped(before.n), grouped(after.n))]
    rows.append(("worst place", _worst(was), _worst(now)))
    return rows + [
        (name, shown(a, signed=signed), shown(b, signed=signed))
        for name, signed, (a, b) in numbers
        if not (math.isnan(a) and math.isnan(b))
    ]


def _ratio(evaluation: Evaluation) -> float:
    return math.nan if evaluation.mistakes is None else evaluation.mistakes.ratio.value


def _worst(verdict: Verdict) -> str:
    """Name the worst place with its bound; it may be none."""
    if not verdict.where:
        return "none"
    place = verdict.where[0]
    bound = "" if place.by == "mistakes" else f", ECD at least {shown(place.ecd.low, signed=True)}"
    if place.temperature is not None:
        bound = f", temperature at least {shown(place.temperature.low)}"
    return together(shortened(place.brief, 40) + (bound if place.shown else ", suspected"))
