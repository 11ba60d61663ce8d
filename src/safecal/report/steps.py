"""What to do next, the most useful first."""

import math
from collections.abc import Sequence

from .._checks.classes import clip_for
from ..families.predictions import family_named
from ..html.markup import Markup, element, join, shortened, together, with_code
from ..html.numbers import percent, rows
from ..judge.diagnosis import Diagnosis
from ..judge.evaluation import Evaluation
from ..judge.places import Place
from ..judge.reasons import rounded
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from .words import all_but_certain, allowed_slices, in_places

__all__ = ["next_steps"]

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
    look = ("Look at the rows there.", _places(verdict.where))
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
    "only a slice": "Correct that slice.",
}


def _for_unsafe(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    family = family_named(evaluation.family)
    if not family.discrete:
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
