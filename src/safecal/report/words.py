"""What a verdict means, in plain words: the first screen, and the sentences below it."""

import math
from typing import NamedTuple

from ..families.predictions import family_named
from ..html.markup import sentence
from ..html.numbers import grouped, percent, plain, rows, shown
from ..judge.display import count
from ..judge.evaluation import Evaluation
from ..judge.places import Place
from ..judge.reasons import Average
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict

__all__ = [
    "Opening",
    "all_but_certain",
    "headline",
    "in_places",
    "kind",
    "meaning",
    "opening",
    "temperature_in_words",
]

_HEADLINES = {
    SAFE: "Its confidence keeps its word",
    UNSAFE: "It is surer than it should be",
    UNDETERMINED: "These rows cannot tell",
}
_LOCAL_HEADLINES = {UNSAFE: "In places it is surer than it should be", UNDETERMINED: "In places it may not be safe"}


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
    many = evaluation.tally.most_entropy
    classes = f"{math.exp(many):.0f}" if math.isfinite(many) else "several"
    name = family_named(evaluation.family).words.kind.format(classes=classes) or evaluation.family
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
    words = family_named(family).words
    what = words.scaled
    factor = plain(max(value, 1.0 / value))
    if factor == "1":
        return f"its {what} are about right"
    if words.factor is None:
        return f"its {what} should be {'flatter' if value > 1.0 else 'sharper'}, with temperature {plain(value)}"
    too_large = (value > 1.0) == (words.sense == "large")
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
    if verdict.decision == UNSAFE and family_named(evaluation.family).discrete:
        said.append("Those who act on its word there are wrong more often than it says.")
    elif verdict.decision == UNSAFE:
        said.append("What happens there lies farther out than the model says it will.")
    else:
        said.append("There it may be surer than it should be, or it may be chance: these rows cannot tell.")
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
    if not family_named(evaluation.family).discrete:
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


class Opening(NamedTuple):
    """What a reader should take away: a place in words, a number, and what the number is."""

    place: str
    number: str
    about: str


def opening(evaluation: Evaluation, verdict: Verdict) -> Opening:
    """Say where, and how much, in one sentence and one number."""
    worst = verdict.where[0] if verdict.where else None
    if verdict.n_impossible:
        what = "outcome" if verdict.n_impossible == 1 else "outcomes"
        place = f"{sentence(worst.where)}." if worst is not None else f"In {rows(evaluation.n)}."
        return Opening(place, f"{grouped(verdict.n_impossible)} {what}", "of probability 0. None is allowed.")
    if worst is not None and in_places(verdict):
        return _of_place(worst)
    average = Average.of(evaluation.tally, verdict.ecd, verdict.temperature, verdict.mistakes, verdict.limits)
    if verdict.decision == UNSAFE:
        return _open_unsafe(average, worst, verdict)
    if verdict.decision == SAFE:
        place, most = _nowhere(evaluation, verdict), verdict.ecd.high
        if most < 0.0:
            return Opening(place, f"{plain(-most)} nat", "less surprise than it announced, at least, on average.")
        about = f"more surprise than it announced, at most, on average. {plain(verdict.allowed)} is allowed."
        return Opening(place, f"{plain(most)} nat", about)
    return _open_undetermined(evaluation, average, verdict)


def _of_place(place: Place) -> Opening:
    where = f"{sentence(place.where)}."
    held = f"{rows(place.n)}, {percent(place.share)} of all."
    if place.by == "mistakes":
        ratio = place.seen / place.announced if place.announced > 0.0 else math.inf
        about = f"as many mistakes as it announced. {plain(place.limit)} times are allowed. In {held}"
        return Opening(where, f"{plain(ratio)} times", about)
    allowed = f"{plain(place.limit)} is allowed."
    if place.temperature is not None:
        t, how = (place.temperature.low, "at least") if place.shown else (place.temperature.value, "perhaps")
        if math.isnan(place.predicted):
            return Opening(where, plain(t), f"is its temperature there, {how}. {allowed} In {held}")
        about = f"the logits it should give there, {how}. {plain(place.limit)} times are allowed. In {held}"
        return Opening(where, f"{plain(t)} times", about)
    if place.shown:
        about = f"more surprise than it announced there, at least. {allowed} In {held}"
        return Opening(where, f"{plain(place.ecd.low)} nat", about)
    between = f"{plain(place.ecd.low)} and {plain(place.ecd.high)}"
    about = f"more surprise than it announced there, perhaps: it lies between {between}. {allowed} In {held}"
    return Opening(where, f"{plain(place.ecd.value)} nat", about)


def _open_unsafe(average: Average, worst: Place | None, verdict: Verdict) -> Opening:
    place = "On average, over all rows."
    if worst is not None:
        named = worst.type != "range" and worst.by != "mistakes"
        place = f"It is worst in {worst.label}." if named else f"Worst: {worst.where}."
    ecd, temperature, mistakes = average.ecd, average.temperature, average.mistakes
    if ecd.beyond:
        about = f"more surprise than it announced, at least, on average. {plain(ecd.limit)} is allowed."
        return Opening(place, f"{plain(ecd.interval.low)} nat", about)
    if temperature.beyond or mistakes is None:
        return _factor(place, average, temperature.interval.low, "at least")
    place = f"It announced {count(mistakes.announced)} mistakes and made {count(mistakes.seen)}."
    about = f"as many mistakes as announced, at least. {plain(verdict.limits.max_ratio)} times are allowed."
    return Opening(place, f"{plain(mistakes.ratio.low)} times", about)


def _nowhere(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say what was looked at, and that nothing was found."""
    if not verdict.limits.everywhere:
        return "On average, over all rows: places were not looked at."
    looked = [f"none of {len(evaluation.local)} ranges of its predictions"] if len(evaluation.local) else []
    if evaluation.groups is not None:
        looked.append(f"none of {grouped(len(evaluation.groups))} groups")
    if not looked:
        return "On average, over all rows: its predictions have no ranges to look at."
    return f"{sentence(' and '.join(looked))} is over-confident beyond its limit."


def _open_undetermined(evaluation: Evaluation, average: Average, verdict: Verdict) -> Opening:
    place = "Over-confidence is not shown, and not ruled out."
    if evaluation.n_certain and verdict.rows_needed is None:
        number = f"{grouped(evaluation.n_certain)} row{'' if evaluation.n_certain == 1 else 's'}"
        return Opening(place, number, "give some outcome a probability of exactly 0. One failure would be infinite.")
    if all_but_certain(evaluation, verdict):
        about = "cannot show that such predictions are right, and no number of rows can."
        return Opening("Its predictions are all but certain.", rows(evaluation.n), about)
    ecd, temperature, ratio = average.ecd, average.temperature, average.ratio
    if not temperature.within and ecd.within:
        return _factor(place, average, temperature.interval.high, "perhaps")
    if ratio is not None and not ratio.within and ecd.within:
        about = f"as many mistakes as announced, perhaps. {plain(ratio.limit)} times are allowed."
        return Opening(place, f"{plain(ratio.interval.high)} times", about)
    about = f"more surprise than it announced, perhaps, on average. {plain(ecd.limit)} is allowed."
    return Opening(place, f"{plain(ecd.interval.high)} nat", about)


def _factor(place: str, average: Average, value: float, how: str) -> Opening:
    """Say how many times too large something is."""
    allowed = f"{plain(average.temperature.limit)} is allowed."
    if average.words.factor is None:
        return Opening(place, plain(value), f"is its temperature, {how}. {allowed}")
    about = f"{average.words.right}, {how}. {plain(average.temperature.limit)} times are allowed."
    return Opening(place, f"{plain(value)} times", about)
