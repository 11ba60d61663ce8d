"""What a verdict means, in plain words: the first screen, and the sentences below it."""

import math
from typing import NamedTuple

from ..families.predictions import family_named
from ..html.markup import grouped, percent, plain, rows, sentence, shown
from ..inference.directions import has_directions
from ..judge.display import count
from ..judge.evaluation import Evaluation
from ..judge.looks import smaller_end
from ..judge.places import Place, spread_times
from ..judge.reasons import Average
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Verdict
from ..slices.results import Slice

__all__ = [
    "Opening",
    "all_but_certain",
    "allowed_slices",
    "headline",
    "in_places",
    "kind",
    "meaning",
    "opening",
    "temperature_in_words",
]

_HEADLINES = {
    SAFE: "Its confidence can be trusted",
    UNSAFE: "It is more certain than it should be",
    UNDETERMINED: "These rows are not enough to tell",
}
_LOCAL_HEADLINES = {
    UNSAFE: "In some places it is more certain than it should be",
    UNDETERMINED: "In some places it may be over-confident",
}


def headline(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say the decision as one would say it aloud."""
    if verdict.n_impossible:
        return "Something happened that it called impossible"
    if _blind(verdict):
        return "What was looked at cannot tell"
    headlines = _LOCAL_HEADLINES if in_places(verdict) else _HEADLINES
    said = headlines[verdict.decision]
    return f"{said}, but less in a slice of the rows" if allowed_slices(evaluation, verdict) else said


def allowed_slices(evaluation: Evaluation, verdict: Verdict) -> tuple[Slice, ...]:
    """Return the slices that are over-confident, though no more than the limits of a safe model allow."""
    slices = evaluation.slices
    if verdict.decision != SAFE or slices is None or slices.direction != "over":
        return ()
    return slices.found


def in_places(verdict: Verdict) -> bool:
    """Tell whether places decide, and not the averages."""
    return bool(verdict.where) and verdict.on_average != UNSAFE


def _blind(verdict: Verdict) -> str:
    """Say why nothing that was found makes it safe, where no number of rows would; else nothing."""
    looks = [one.look for one in verdict.looks if one.look is not None]
    if verdict.decision != UNDETERMINED or not looks or any(look.acquits for look in looks):
        return ""
    return looks[0].why or "What was looked at cannot rule over-confidence out."


def all_but_certain(evaluation: Evaluation, verdict: Verdict) -> bool:
    """Tell whether logits are so large that no temperature lets them fail."""
    exists = not math.isnan(verdict.temperature.value) or not math.isfinite(evaluation.tally.most_entropy)
    return not exists and not verdict.uninformative and verdict.rows_needed is None


def kind(evaluation: Evaluation) -> str:
    """Say what was predicted."""
    many = evaluation.tally.most_entropy
    classes = f"{math.exp(many):.0f}" if math.isfinite(many) else "several"
    words = family_named(evaluation.family).words.of(evaluation.dimension)
    name = words.kind.format(classes=classes) or evaluation.family
    return name if evaluation.dimension == 1 else f"{name} in {evaluation.dimension} dimensions"


def temperature_in_words(family: str, value: float, method: str = "", dimension: int = 1) -> str:
    """Say what a temperature means for a family.

    Examples
    --------
    >>> temperature_in_words("bernoulli", 1.98)
    'its logits are about 1.98 times too large'
    >>> temperature_in_words("gaussian", 0.5), temperature_in_words("gaussian", 2.0, dimension=3)
    ('its standard deviations are about 1.41 times too large', 'its covariances are about 2 times too small')
    """
    if math.isnan(value):
        return f"there is none: {method.removeprefix('none: ')}"
    if math.isinf(value):
        return "its confidence carries no information"
    if value == 0.0:
        return "every outcome was the most likely one"
    words = family_named(family).words.of(dimension)
    what = words.scaled
    factor = plain(words.multiple(max(value, 1.0 / value)))
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
            "it is safe in this sense, but useless."
        )
    return said


def _local(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    said = []
    if verdict.on_average == SAFE:
        said.append("On average its confidence is right, but the average hides places where it is not.")
    if verdict.decision == UNSAFE and family_named(evaluation.family).discrete:
        said.append("There it is wrong more often than it says.")
    elif verdict.decision == UNSAFE:
        said.append("There the true values lie farther from its predictions than it says.")
    else:
        said.append("There it may be over-confident, or it may be chance: these rows cannot tell which.")
    return said


def _safe(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    said = ["When the model says how sure it is, you can believe it, within the limits that were set."]
    if verdict.direction == "under-confident":
        said.append("It is rather too cautious: it is right more often than it says.")
    said.append("Safe does not mean good: other numbers, such as NLL, show how much it knows.")
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
    family = family_named(evaluation.family)
    if wrong := family.words.of(evaluation.dimension).wrong:
        said = wrong
    elif not family.discrete:
        said = "The true values lie farther from its predictions than it says."
    else:
        said = "When the model is sure, it is wrong more often than it says."
    least = smaller_end(verdict.looks)
    if verdict.ecd.low > 0.0:
        much = f"{'' if least is None else f'{plain(least.value)} to '}{plain(verdict.ecd.value)}"
        said += f" On average, each row surprised it by {much} nat more than it had announced."
    return [said]


def _undetermined(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    if evaluation.n_certain and verdict.rows_needed is None:
        return [
            f"{grouped(evaluation.n_certain)} of {rows(evaluation.n)} give some outcome a probability of exactly 0. "
            "If that outcome happens once, the surprise is infinite, and no number of good rows rules it out."
        ]
    if why := _blind(verdict):
        return [why]
    return [
        "The model may be safe or not: these rows agree with values on both sides of the limit. "
        "“Not shown to be unsafe” does not mean “safe”."
    ]


class Opening(NamedTuple):
    """What a reader should take away: a place in words, a number, and what the number is."""

    place: str
    number: str
    about: str


def opening(evaluation: Evaluation, verdict: Verdict) -> Opening:
    """Say where, and how much, in one sentence and one number: those of the look that decided."""
    one = evaluation.deciding
    if one is not evaluation:
        return opening(one, one.verdict)
    worst = verdict.where[0] if verdict.where else None
    if verdict.n_impossible:
        what = "outcome" if verdict.n_impossible == 1 else "outcomes"
        place = f"{sentence(worst.where)}." if worst is not None else f"In {rows(evaluation.n)}."
        return Opening(
            place,
            f"{grouped(verdict.n_impossible)} {what}",
            "happened to which it had given probability 0. None is allowed.",
        )
    if worst is not None and in_places(verdict):
        return _of_place(worst)
    average = Average.of(evaluation.tally, verdict.ecd, verdict.temperature, verdict.mistakes, verdict.limits)
    if verdict.decision == UNSAFE:
        return _open_unsafe(average, worst, verdict)
    if verdict.decision == SAFE:
        place, most = _nowhere(evaluation, verdict), verdict.ecd.high
        if most < 0.0:
            return Opening(
                place, f"{plain(-most)} nat", "less surprise than it announced: at least that much, on average."
            )
        about = "more surprise than it announced: at most that much, on average. "
        about += f"Up to {plain(verdict.allowed)} is allowed."
        return Opening(place, f"{plain(most)} nat", about)
    return _open_undetermined(evaluation, average, verdict)


def _of_place(place: Place) -> Opening:
    where = f"{sentence(place.where)}."
    held = f"{rows(place.n)}, {percent(place.share)} of all."
    if place.by == "mistakes":
        ratio = place.seen / place.announced if place.announced > 0.0 else math.inf
        about = f"as many mistakes as it announced. Up to {plain(place.limit)} times is allowed. In {held}"
        return Opening(where, f"{plain(ratio)} times", about)
    allowed = f"Up to {plain(place.limit)} is allowed."
    if place.type == "direction":
        most = f"Up to {plain(spread_times(place.limit))} times is allowed. In {rows(place.n)}."
        if place.shown:
            return Opening(where, f"{plain(spread_times(place.ecd.low))} times", f"as large: at least that. {most}")
        ends = " and ".join(plain(spread_times(x)) for x in (place.ecd.low, place.ecd.high))
        return Opening(where, f"{plain(spread_times(place.ecd.value))} times", f"as large: between {ends}. {most}")
    if place.temperature is not None:
        t, how = (place.temperature.low, ": at least that") if place.shown else (place.temperature.value, ", perhaps")
        if math.isnan(place.predicted):
            return Opening(where, plain(t), f"is its temperature there{how}. {allowed} In {held}")
        about = f"the logits it should give there{how}. Up to {plain(place.limit)} times is allowed. In {held}"
        return Opening(where, f"{plain(t)} times", about)
    if place.shown:
        about = f"more surprise than it announced there: at least that much. {allowed} In {held}"
        return Opening(where, f"{plain(place.ecd.low)} nat", about)
    between = f"{plain(place.ecd.low)} and {plain(place.ecd.high)}"
    about = f"more surprise than it announced there, perhaps: between {between} nat. {allowed} In {held}"
    return Opening(where, f"{plain(place.ecd.value)} nat", about)


def _open_unsafe(average: Average, worst: Place | None, verdict: Verdict) -> Opening:
    place = "On average, over all rows."
    if worst is not None:
        named = worst.type in ("group", "slice") and worst.by != "mistakes"
        place = f"It is worst in {worst.label}." if named else f"Worst: {worst.where}."
    ecd, temperature, mistakes = average.ecd, average.temperature, average.mistakes
    if ecd.beyond:
        about = f"more surprise than it announced: at least that much, on average. Up to {plain(ecd.limit)} is allowed."
        return Opening(place, f"{plain(ecd.interval.low)} nat", about)
    if temperature.beyond or mistakes is None:
        return _factor(place, average, temperature.interval.low, ": at least that")
    place = f"It announced {count(mistakes.announced)} mistakes and made {count(mistakes.seen)}."
    about = f"as many mistakes as announced: at least that. Up to {plain(verdict.limits.max_ratio)} times is allowed."
    return Opening(place, f"{plain(mistakes.ratio.low)} times", about)


def _nowhere(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say what was looked at, and that nothing was found."""
    if not verdict.limits.everywhere:
        return "On average, over all rows. The verdict did not look at places."
    looked = [f"none of {len(evaluation.local)} ranges of its predictions"] if len(evaluation.local) else []
    if evaluation.groups is not None:
        looked.append(f"none of {grouped(len(evaluation.groups))} groups")
    if has_directions(evaluation.tally):
        looked.append(f"no direction of its {evaluation.tally.dimension} axes")
    if not looked:
        return "On average, over all rows. Its predictions have no ranges to look at."
    return f"{sentence(' and '.join(looked))} is over-confident beyond its limit."


def _open_undetermined(evaluation: Evaluation, average: Average, verdict: Verdict) -> Opening:
    place = "Over-confidence is neither shown nor ruled out."
    if evaluation.n_certain and verdict.rows_needed is None:
        number = f"{grouped(evaluation.n_certain)} row{'' if evaluation.n_certain == 1 else 's'}"
        return Opening(
            place,
            number,
            "give some outcome a probability of exactly 0. If it happened, the surprise would be infinite.",
        )
    if _blind(verdict):
        about = "more surprise than it announced is all that this look finds; what it does not see may be more."
        return Opening(place, f"{plain(average.ecd.interval.high)} nat", about)
    if all_but_certain(evaluation, verdict):
        about = "cannot show that such predictions are right, and neither can more rows."
        return Opening("Its predictions are almost certain.", rows(evaluation.n), about)
    ecd, temperature, ratio = average.ecd, average.temperature, average.ratio
    if not temperature.within and ecd.within:
        return _factor(place, average, temperature.interval.high, ", perhaps")
    if ratio is not None and not ratio.within and ecd.within:
        about = f"as many mistakes as announced, perhaps. Up to {plain(ratio.limit)} times is allowed."
        return Opening(place, f"{plain(ratio.interval.high)} times", about)
    about = f"more surprise than it announced, on average: it may be that much. Up to {plain(ecd.limit)} is allowed."
    return Opening(place, f"{plain(ecd.interval.high)} nat", about)


def _factor(place: str, average: Average, value: float, how: str) -> Opening:
    """Say how many times too large something is."""
    allowed = f"Up to {plain(average.temperature.limit)} is allowed."
    if average.words.factor is None:
        return Opening(place, plain(value), f"is its temperature{how}. {allowed}")
    limit = plain(average.words.multiple(average.temperature.limit))
    about = f"{average.words.right}{how}. Up to {limit} times is allowed."
    return Opening(place, f"{plain(average.words.multiple(value))} times", about)
