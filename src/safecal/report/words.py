"""What a verdict means, in plain words."""

import math

from ..evaluation import Evaluation
from ..verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from .markup import Markup, element, join
from .numbers import grouped, plain, rows, shown, together

__all__ = [
    "CLASSIFIERS",
    "all_but_certain",
    "headline",
    "in_places",
    "kind",
    "meaning",
    "sentence",
    "temperature_in_words",
    "with_code",
]

CLASSIFIERS = ("bernoulli", "categorical")
_HEADLINES = {
    SAFE: "Its confidence keeps its word",
    UNSAFE: "It is surer than it should be",
    UNDETERMINED: "These rows do not tell",
}
_LOCAL_HEADLINES = {UNSAFE: "In places it is surer than it should be", UNDETERMINED: "In places it may not be safe"}


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
    headlines = _LOCAL_HEADLINES if in_places(verdict) else _HEADLINES
    return headlines[verdict.decision]


def in_places(verdict: Verdict) -> bool:
    """Tell whether places decide, and not the averages."""
    return bool(verdict.where) and verdict.on_average != UNSAFE


def all_but_certain(evaluation: Evaluation, verdict: Verdict) -> bool:
    """Tell whether logits are so large that no temperature lets them fail."""
    exists = not math.isnan(verdict.temperature.value) or not math.isfinite(evaluation.tally.most_entropy)
    return not exists and not verdict.uninformative and verdict.rows_needed is None


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
    if in_places(verdict) and not verdict.n_impossible:
        said = _local(evaluation, verdict)
    else:
        said = {SAFE: _safe, UNSAFE: _unsafe, UNDETERMINED: _undetermined}[verdict.decision](evaluation, verdict)
    if verdict.uninformative:
        said.append(
            "The model says almost nothing. A model that always answers with even odds can never be over-confident: "
            "it is safe in this sense, and of no use."
        )
    return said


def _local(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    said = []
    if verdict.on_average == SAFE:
        said.append("On average its confidence is right. But people meet it in one place at a time.")
    if verdict.decision == UNSAFE and evaluation.family in CLASSIFIERS:
        said.append("Who acts on the model's word there is wrong more often than it says.")
    elif verdict.decision == UNSAFE:
        said.append("What happens there lies farther out than the model says it will.")
    else:
        said.append("There it may be surer than it should be, or it may be chance: these rows do not tell.")
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
