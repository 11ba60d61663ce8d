"""What a verdict means, and what to do next, in plain words."""

import math
from collections.abc import Sequence

from ..certainty import clip_for
from ..evaluation import Evaluation
from ..places import Place
from ..verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from .markup import Markup, element, join, shortened
from .numbers import grouped, percent, plain, rows, shown, together

__all__ = ["CLASSIFIERS", "headline", "kind", "meaning", "next_steps", "sentence", "temperature_in_words", "with_code"]

Step = tuple[str, Markup | str]  # what to do, and why or how

CLASSIFIERS = ("bernoulli", "categorical")
_HEADLINES = {
    SAFE: "Its confidence keeps its word",
    UNSAFE: "It is surer than it should be",
    UNDETERMINED: "These rows do not tell",
}
_LOCAL_HEADLINES = {UNSAFE: "In places it is surer than it should be", UNDETERMINED: "In places it may not be safe"}
_NAMED = 5  # places that are listed
_FEW_ROWS_DECIDE = 0.5  # of all excess above 0, in the worst 1 % of the rows


def sentence(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return together(text[:1].upper() + text[1:])


def with_code(text: str) -> Markup:
    """Return a text in which what stands between backticks is code.

    Examples
    --------
    >>> with_code("pass `clip=`")
    'pass <code>clip=</code>'
    """
    return join(element("code", part) if k % 2 else part for k, part in enumerate(text.split("`")))


def headline(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say the decision as one would say it aloud."""
    if verdict.n_impossible:
        return "It called impossible what happened"
    headlines = _LOCAL_HEADLINES if _in_places(verdict) else _HEADLINES
    return headlines[verdict.decision]


def _in_places(verdict: Verdict) -> bool:
    """Tell whether places decide, and not the averages."""
    return bool(verdict.where) and verdict.on_average != UNSAFE


def kind(evaluation: Evaluation) -> str:
    """Say what was predicted."""
    names = {"bernoulli": "two classes", "categorical": "several classes", "gaussian": "states", "density": "densities"}
    name = names.get(evaluation.family, evaluation.family)
    return name if evaluation.dimension == 1 else f"{name} in {evaluation.dimension} dimensions"


def temperature_in_words(family: str, value: float, method: str = "") -> str:
    """Say what a temperature means for a family.

    Examples
    --------
    >>> temperature_in_words("bernoulli", 1.98)
    'its logits are about 1.98 times too large'
    >>> temperature_in_words("gaussian", 0.5)
    'its covariances are about 2 times too large'
    """
    if math.isnan(value):
        return f"there is none: {method.removeprefix('none: ')}"
    if math.isinf(value):
        return "its confidence carries no information"
    if value == 0.0:
        return "every outcome was the most likely one"
    what = "logits" if family in CLASSIFIERS else "covariances" if family == "gaussian" else "densities"
    factor = plain(max(value, 1.0 / value))
    if factor == "1":
        return f"its {what} are about right"
    if what == "densities":
        return f"its densities should be {'flatter' if value > 1.0 else 'sharper'}, with temperature {plain(value)}"
    too_large = (value > 1.0) == (what == "logits")
    return f"its {what} are about {factor} times too {'large' if too_large else 'small'}"


def meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    """Say in a few sentences what was found."""
    if _in_places(verdict) and not verdict.n_impossible:
        said = _local(verdict)
    else:
        said = {SAFE: _safe, UNSAFE: _unsafe, UNDETERMINED: _undetermined}[verdict.decision](evaluation, verdict)
    if verdict.uninformative:
        said.append(
            "The model says almost nothing. A model that always answers with even odds can never be over-confident: "
            "it is safe in this sense, and of no use."
        )
    return said


def _local(verdict: Verdict) -> list[str]:
    said = []
    if verdict.on_average == SAFE:
        said.append("On average its confidence is right; people meet it in one place at a time.")
    worst = verdict.where[0]
    said.append(f"{sentence(worst.where)} ({rows(worst.n)}).")
    if verdict.decision == UNSAFE:
        said.append("Who acts on the model's word there is wrong more often than it says.")
    else:
        said.append("That may be chance, or it may not: these rows do not tell.")
    return said


def _safe(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    said = ["When the model says that it is sure, it may be taken at its word, within the limits that were set."]
    if verdict.direction == "under-confident":
        said.append("It errs on the cautious side: it is right more often than it says.")
    said.append("Safe does not mean good: NLL and accuracy tell how much it knows.")
    return said


def _unsafe(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    if verdict.n_impossible:
        one = verdict.n_impossible == 1
        said = f"{rows(verdict.n_impossible)} had an outcome that the model had called impossible, "
        said += (
            f"and {'that is' if one else 'each is'} an infinite surprise: no number of good predictions outweighs it."
        )
        rest = evaluation.summary.ecd_possible
        return [said] + ([] if math.isnan(rest) else [f"Without {'it' if one else 'them'}, ECD is {shown(rest)} nat."])
    if evaluation.family not in CLASSIFIERS:
        said = "What happens lies farther out than the model says it will."
    else:
        said = "When the model says that it is sure, it is wrong more often than it says."
    low = verdict.ecd.low
    if low > 0.0:
        said += f" Each row surprised it by {plain(verdict.ecd.value)} nat more than it had announced, on average."
    return [said]


def _undetermined(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    if evaluation.n_certain and verdict.rows_needed is None:
        return [
            f"{grouped(evaluation.n_certain)} of {rows(evaluation.n)} give some outcome a probability of exactly 0. "
            "If it happens once, the surprise is infinite, and no number of successes rules that out."
        ]
    return [
        "The model may be safe or not: values on both sides of the limit agree with these rows. "
        "Not yet shown to be unsafe is not the same as safe."
    ]


def next_steps(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    """Say what to do, the most useful first."""
    steps: list[Step] = []
    if verdict.n_impossible:
        steps += _for_impossible()
    elif _in_places(verdict):
        steps += _for_places(verdict)
    elif verdict.decision == UNSAFE:
        steps += _for_unsafe(evaluation)
    elif verdict.decision == UNDETERMINED:
        steps += _for_undetermined(evaluation, verdict)
    if verdict.where and not _in_places(verdict):
        steps.append(("Look where it is worst.", _places(verdict.where)))
    if verdict.worst_share >= _FEW_ROWS_DECIDE and verdict.decision != SAFE and evaluation.n >= 100:
        share = percent(verdict.worst_share)
        why = f"The most surprising 1 % of the rows hold {share} of all excess above 0: wrong labels, or another kind?"
        steps.append(("Look at the most surprising rows.", why))
    if verdict.decision == SAFE:
        steps += _for_safe(verdict)
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
    steps: list[Step] = [("Look there first.", _places(verdict.where))]
    if verdict.decision == UNSAFE:
        lets = "A threshold on its confidence lets through more errors than it promises, until this is repaired."
        steps.append(("Do not act on its confidence there.", lets))
        alike = (
            "One temperature changes all places alike. Train it again with more rows from there, or correct them apart."
        )
        steps.append(("Repair more than its temperature.", alike))
        return steps
    return [*steps, ("Do not take it for safe.", "Until it is decided, treat its confidence there as unproven.")]


def _for_unsafe(evaluation: Evaluation) -> list[Step]:
    if evaluation.family not in CLASSIFIERS:
        steps: list[Step] = [
            ("Do not rely on its ranges.", "Gates and alarms built on them miss more than they promise.")
        ]
    else:
        gate = "A threshold on its confidence lets through more errors than it promises, until this is repaired."
        steps = [("Do not act on its confidence.", gate)]
    if math.isinf(evaluation.temperature.value):
        steps.append(("Train it again, or leave it.", "No temperature makes confidence useful that tells nothing."))
    elif evaluation.family not in {*CLASSIFIERS, "gaussian"}:
        steps.append(("Widen its densities.", "Heavier tails, or a larger scale; then evaluate it on other rows."))
    else:
        how = [
            element("code", "safecal.SafeTemperature"),
            " on rows that are not these, then evaluate on others again.",
        ]
        steps.append(("Recalibrate it.", join(["Fit ", *how])))
    return steps


def _for_undetermined(evaluation: Evaluation, verdict: Verdict) -> list[Step]:
    careful = ("Do not take it for safe.", "Until it is decided, treat its confidence as unproven.")
    if evaluation.n_certain and verdict.rows_needed is None:
        value = clip_for(round(math.exp(evaluation.tally.most_entropy)))
        clip = join([element("code", f"clip={value}"), ", for example: then no failure is infinite."])
        logits = ("Pass logits instead of probabilities.", "They never saturate.")
        return [logits, ("Or state a smallest probability.", clip), careful]
    if verdict.rows_needed is None:
        why = "No number of rows can be told from these few."
    else:
        why = f"About {rows(_rounded(verdict.rows_needed))} more, of the same kind, would decide."
    return [("Collect more rows.", why), careful]


def _for_safe(verdict: Verdict) -> list[Step]:
    steps: list[Step] = []
    if verdict.uninformative:
        steps.append(("Ask for a better model.", "This one is safe because it says nothing."))
    elif verdict.direction == "under-confident":
        how = [element("code", "safecal.SafeTemperature"), " makes it as sharp as is safe."]
        steps.append(("Let it say more, if that is useful.", join(how)))
    steps.append(("Evaluate again when the data change.", "The verdict speaks of rows like these."))
    return steps


def _places(places: Sequence[Place]) -> Markup:
    shown = [place for place in places if place.shown] or places
    start = "Over-confident beyond the limit: " if shown[0].shown else "Suspected: "
    listed = [element("strong", element("bdi", shortened(place.name, 60))) for place in shown[:_NAMED]]
    rest = len(shown) - _NAMED
    more = f" and {rest} more, in the tables below." if rest > 0 else "."
    return join([start, join(listed, ", "), more])


def _rounded(count: int) -> int:
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return -(-count // unit) * unit
