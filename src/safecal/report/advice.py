"""What to do next, as one types it at the door that the report came through."""

import math
from collections.abc import Sequence

from .._checks.classes import clip_for, clips_little
from .._checks.message import in_options
from ..families.predictions import family_named
from ..html import Markup, element, grouped, join, percent, shortened, unbroken, with_code
from ..judge.diagnosis import Diagnosis
from ..judge.evaluation import Evaluation
from ..judge.places import Place
from ..judge.reasons import rounded
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from ..maps.result import Recalibration
from ..maps.safe import Safe
from .words import all_but_certain, allowed_slices, in_places

__all__ = ["changes", "next_steps", "taken_map", "typed"]

Advice = tuple[str, Markup | str]  # what to do, and why or how

_TOO_COARSE = "These were rounded so much that a clip would judge another model."
_PLACES_NAMED = 5  # places that are listed
_FEW_ROWS_DECIDE = 0.5  # of all excess above 0, in the worst 1 % of the rows


def changes(fix: Recalibration) -> bool:
    """Tell whether a fix does anything."""
    return fix.before is not fix.after


def taken_map(fix: Recalibration) -> str:
    """Return the name of the map that was taken; empty where none was."""
    inner = fix.map.map if isinstance(fix.map, Safe) else fix.map
    return type(inner).__name__.lower() if changes(fix) else ""


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
        if changes(fix):
            how = f"Take the {taken_map(fix)} map below, and judge it by rows that it was not fitted to."
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
