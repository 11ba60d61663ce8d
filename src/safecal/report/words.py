"""The words of a report: the first screen, the sentences below it, and the glossary."""

import math
import re
from typing import NamedTuple

from ..families import family_named
from ..html import Markup, element, grouped, metric_text, percent, plain, rows_text, sentence, unbroken
from ..inference.bounds import mistakes_text
from ..inference.directions import has_directions
from ..judge.decision import smaller_end
from ..judge.evaluation import Evaluation
from ..judge.places import Place, spread_times
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE, Average, Verdict
from ..slices.results import Slice

__all__ = [
    "GLOSSARY",
    "Opening",
    "all_but_certain",
    "allowed_slices",
    "glossary",
    "headline",
    "in_places",
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


_ON_AVERAGE = "On average, over all rows."


def headline(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say the decision as one would say it aloud."""
    if verdict.n_impossible:
        return "Something happened that it called impossible"
    if _blind_reason(verdict):
        return "These numbers alone cannot show that it is safe"
    headlines = _LOCAL_HEADLINES if in_places(verdict) else _HEADLINES
    text = headlines[verdict.decision]
    return f"{text}, but less so in a slice of the rows" if allowed_slices(evaluation, verdict) else text


def allowed_slices(evaluation: Evaluation, verdict: Verdict) -> tuple[Slice, ...]:
    """Return the slices that are over-confident, though no more than the limits of a safe model allow."""
    slices = evaluation.slices
    if verdict.decision != SAFE or slices is None or slices.direction != "over":
        return ()
    return slices.found


def in_places(verdict: Verdict) -> bool:
    """Tell whether places decide, and not the averages."""
    return bool(verdict.where) and verdict.on_average != UNSAFE


def _blind_reason(verdict: Verdict) -> str:
    """Say why no number of rows can make it SAFE, if none of its looks can; else nothing."""
    looks = [judged.look for judged in verdict.looks if judged.look is not None]
    if verdict.decision != UNDETERMINED or not looks or any(look.acquits for look in looks):
        return ""
    return looks[0].why or "This look cannot rule over-confidence out."


def all_but_certain(evaluation: Evaluation, verdict: Verdict) -> bool:
    """Tell whether logits are so large that no temperature lets them fail."""
    exists = not math.isnan(verdict.temperature.value) or not math.isfinite(evaluation.tally.most_entropy)
    return not exists and not verdict.uninformative and verdict.rows_needed is None


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
    scaled = words.scaled
    factor = plain(words.multiple(max(value, 1.0 / value)))
    if factor == "1":
        return f"its {scaled} are about right"
    if words.factor is None:
        return f"its {scaled} should be {'flatter' if value > 1.0 else 'sharper'}, with temperature {plain(value)}"
    too_large = (value > 1.0) == (words.sense == "large")
    return f"its {scaled} are about {factor} times too {'large' if too_large else 'small'}"


def meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    """Say the finding in a few sentences."""
    if in_places(verdict) and not verdict.n_impossible:
        sentences = _local_meaning(evaluation, verdict)
    else:
        explain = {SAFE: _safe_meaning, UNSAFE: _unsafe_meaning, UNDETERMINED: _undetermined_meaning}[verdict.decision]
        sentences = explain(evaluation, verdict)
    if verdict.uninformative:
        sentences.append(
            "The model says almost nothing. A model that always answers with even odds can never be over-confident: "
            "it is safe in this sense, but useless."
        )
    return sentences


def _local_meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    sentences = []
    if verdict.on_average == SAFE:
        hides = "the average hides" if verdict.decision == UNSAFE else "an average can hide"
        sentences.append(f"On average its confidence is right, but {hides} places where it is not.")
    if verdict.decision == UNSAFE and family_named(evaluation.family).discrete:
        sentences.append("There it is wrong more often than it says.")
    elif verdict.decision == UNSAFE:
        sentences.append("There the true values lie farther from its predictions than it says.")
    else:
        sentences.append("There it may be over-confident, or it may be chance: these rows cannot tell which.")
    return sentences


def _safe_meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    sentences = ["When the model says how sure it is, you can believe it, within the limits that were set."]
    if verdict.direction == "under-confident":
        sentences.append("It is cautious: it is right more often than it says.")
    sentences.append("Safe does not mean good: other numbers, such as NLL, show how much it knows.")
    return sentences


def _unsafe_meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    if verdict.n_impossible:
        single = verdict.n_impossible == 1
        text = f"{rows_text(verdict.n_impossible)} had an outcome that the model had called impossible, "
        text += f"and {'that is' if single else 'each is'} an infinite surprise: "
        text += "no number of good predictions makes up for it."
        if not math.isnan(ecd := evaluation.summary.ecd_possible):
            return [text, f"Without {'it' if single else 'them'}, ECD is {metric_text(ecd)} nat."]
        return [text]
    family = family_named(evaluation.family)
    if wrong := family.words.of(evaluation.dimension).wrong:
        text = wrong
    elif not family.discrete:
        text = "The true values lie farther from its predictions than it says."
    else:
        text = "When the model is sure, it is wrong more often than it says."
    smaller = smaller_end(verdict.looks)
    if verdict.ecd.low > 0.0:
        surprise = f"{'' if smaller is None else f'{plain(smaller.value)} to '}{plain(verdict.ecd.value)}"
        text += f" On average, each row surprised it by {surprise} nat more than it had announced."
    return [text]


def _undetermined_meaning(evaluation: Evaluation, verdict: Verdict) -> list[str]:
    if evaluation.n_certain and verdict.rows_needed is None:
        return [
            f"{grouped(evaluation.n_certain)} of {rows_text(evaluation.n)} give some outcome a probability of exactly "
            "0. If that outcome happens once, the surprise is infinite, and no number of good rows rules it out."
        ]
    if why := _blind_reason(verdict):
        return [why]
    return [
        "The model may be safe or not: these rows agree with values on both sides of the limit. "
        "“Not shown to be unsafe” does not mean “safe”."
    ]


class Opening(NamedTuple):
    """The message of the first screen: a place in words, a number of that, its meaning; then what its places show."""

    place: str
    number: str
    about: str
    by_place: str = ""


def opening(evaluation: Evaluation, verdict: Verdict) -> Opening:
    """Say where, and how much, in one sentence and one number: those of the look that decided."""
    deciding = evaluation.deciding
    if deciding is not evaluation:
        return opening(deciding, deciding.verdict)
    worst = verdict.where[0] if verdict.where else None
    if verdict.n_impossible:
        noun, pronoun = ("outcome", "it") if verdict.n_impossible == 1 else ("outcomes", "them")
        about = f"happened, although the model had called {pronoun} impossible. None is allowed."
        place = f"In {rows_text(evaluation.n)}."
        return Opening(place, f"{grouped(verdict.n_impossible)} {noun}", about, _worst_sentence(worst))
    if worst is not None and in_places(verdict):
        return _open_place(worst)
    average = Average.of(evaluation.tally, verdict.ecd, verdict.temperature, verdict.mistakes, verdict.limits)
    if verdict.decision == UNSAFE:
        return _open_unsafe(average, worst, verdict)
    if verdict.decision == SAFE:
        place, upper, by_place = _ON_AVERAGE, verdict.ecd.high, _looked_at(evaluation, verdict)
        if upper < 0.0:
            about = "less surprise than it announced: at least that much, on average."
            return Opening(place, f"{plain(-upper)} nat", about, by_place)
        about = "more surprise than it announced: at most that much, on average. "
        about += f"Up to {plain(verdict.allowed)} is allowed."
        return Opening(place, f"{plain(upper)} nat", about, by_place)
    return _open_undetermined(evaluation, average, verdict)


def _open_place(place: Place) -> Opening:
    where = f"{sentence(place.where)}."
    size = f"{rows_text(place.n)}, {percent(place.share)} of all."
    if place.by == "mistakes":
        ratio = place.seen / place.announced if place.announced > 0.0 else math.inf
        what = "often" if place.type == "class" else "many mistakes"
        about = f"as {what} as it announced. Up to {plain(place.limit)} times is allowed. In {size}"
        return Opening(where, f"{plain(ratio)} times", about)
    allowed = f"Up to {plain(place.limit)} is allowed."
    if place.type == "direction":
        low, middle, high, limit = map(spread_times, (place.ecd.low, place.ecd.value, place.ecd.high, place.limit))
        how = "at least that" if place.shown else f"between {plain(low)} and {plain(high)}"
        about = f"as large: {how}. Up to {plain(limit)} times is allowed. In {rows_text(place.n)}."
        return Opening(where, f"{plain(low if place.shown else middle)} times", about)
    if place.temperature is not None:
        temperature = place.temperature.low if place.shown else place.temperature.value
        how = ": at least that" if place.shown else ", perhaps"
        if math.isnan(place.predicted):
            return Opening(where, plain(temperature), f"is its temperature there{how}. {allowed} In {size}")
        about = f"the logits it should give there{how}. Up to {plain(place.limit)} times is allowed. In {size}"
        return Opening(where, f"{plain(temperature)} times", about)
    if place.shown:
        about = f"more surprise than it announced there: at least that much. {allowed} In {size}"
        return Opening(where, f"{plain(place.ecd.low)} nat", about)
    between = f"{plain(place.ecd.low)} and {plain(place.ecd.high)}"
    about = f"more surprise than it announced there, perhaps: between {between} nat. {allowed} In {size}"
    return Opening(where, f"{plain(place.ecd.value)} nat", about)


def _open_unsafe(average: Average, worst: Place | None, verdict: Verdict) -> Opening:
    place, where = _ON_AVERAGE, _worst_sentence(worst)
    ecd, temperature, mistakes = average.ecd, average.temperature, average.mistakes
    if ecd.beyond:
        about = f"more surprise than it announced: at least that much, on average. Up to {plain(ecd.limit)} is allowed."
        return Opening(place, f"{plain(ecd.interval.low)} nat", about, where)
    if temperature.beyond or mistakes is None:
        opened = _open_factor(place, average, temperature.interval.low, ": at least that")
        return opened._replace(by_place=where)
    place = f"It announced {mistakes_text(mistakes.announced)} mistakes and made {mistakes_text(mistakes.seen)}."
    about = f"as many mistakes as announced: at least that. Up to {plain(verdict.limits.max_ratio)} times is allowed."
    return Opening(place, f"{plain(mistakes.ratio.low)} times", about, where)


def _worst_sentence(worst: Place | None) -> str:
    """Say where it is worst, with the number of that place; nothing where no place is beyond its limit."""
    return "" if worst is None else f"{'Worst' if worst.shown else 'Suspected'}: {worst}."


def _looked_at(evaluation: Evaluation, verdict: Verdict) -> str:
    """Name the places that were judged, and say that none is beyond its limit."""
    if not verdict.limits.everywhere:
        return "The verdict did not look at places."
    looked = [f"none of {len(evaluation.local)} ranges of its predictions"] if len(evaluation.local) else []
    if evaluation.groups is not None:
        looked.append(f"none of {grouped(len(evaluation.groups))} groups")
    if has_directions(evaluation.tally):
        looked.append(f"no direction of its {evaluation.tally.dimension} axes")
    if not looked:
        return "Its predictions have no ranges to look at."
    return f"{sentence(' and '.join(looked))} is shown to be over-confident beyond its limit."


def _open_undetermined(evaluation: Evaluation, average: Average, verdict: Verdict) -> Opening:
    place = "Over-confidence is neither shown nor ruled out."
    if evaluation.n_certain and verdict.rows_needed is None:
        number = f"{grouped(evaluation.n_certain)} row{'' if evaluation.n_certain == 1 else 's'}"
        about = "give some outcome a probability of exactly 0. If it happened, the surprise would be infinite."
        return Opening(place, number, about)
    if _blind_reason(verdict):
        about = "more surprise than it announced, at most, as far as this look can see; it can miss more than that."
        return Opening(place, f"{plain(average.ecd.interval.high)} nat", about)
    if all_but_certain(evaluation, verdict):
        about = "cannot show that such predictions are right, and neither can more rows."
        return Opening("Its predictions are almost certain.", rows_text(evaluation.n), about)
    ecd, temperature, ratio = average.ecd, average.temperature, average.ratio
    if not temperature.within and ecd.within:
        return _open_factor(place, average, temperature.interval.high, ", perhaps")
    if ratio is not None and not ratio.within and ecd.within:
        about = f"as many mistakes as announced, perhaps. Up to {plain(ratio.limit)} times is allowed."
        return Opening(place, f"{plain(ratio.interval.high)} times", about)
    about = f"more surprise than it announced, on average: it may be that much. Up to {plain(ecd.limit)} is allowed."
    return Opening(place, f"{plain(ecd.interval.high)} nat", about)


def _open_factor(place: str, average: Average, value: float, how: str) -> Opening:
    """Say how many times too large something is."""
    allowed = f"Up to {plain(average.temperature.limit)} is allowed."
    if average.words.factor is None:
        return Opening(place, plain(value), f"is its temperature{how}. {allowed}")
    limit = plain(average.words.multiple(average.temperature.limit))
    about = f"{average.words.right}{how}. Up to {limit} times is allowed."
    return Opening(place, f"{plain(average.words.multiple(value))} times", about)


GLOSSARY = (
    ("nat", "the unit of surprise, with natural logarithms; 1 nat is 1.44 bits"),
    ("surprisal", "how surprised the model was: minus the logarithm of the probability it gave to what happened"),
    ("entropy", "how surprised it said it would be, on average"),
    ("excess", "surprisal minus entropy, for one row"),
    ("ECD", "entropic calibration difference: the mean excess; above 0 over-confident, below 0 under-confident"),
    (
        "temperature",
        "T, where raising the predictions to the power 1/T fits the data best; above 1 over-confident, below 1 "
        "under-confident",
    ),
    (
        "mistake",
        "an outcome other than the likeliest; the model announces as many as the other probabilities add up to",
    ),
    ("range", "predictions that are neighbours in their order: half to a sixteenth of the rows, or the surest ones"),
    ("suspected", "the estimate is beyond the limit, but its lower bound is not: more rows would decide"),
    (
        "dimension",
        "the factor of limits in nats: the length of a vector, 1 for two classes, more for vague ones of many classes",
    ),
    ("over-confident", "more surprised than announced; unsafe, because people rely on its certainty"),
    ("under-confident", "less surprised than announced; cautious"),
    ("impossible", "an outcome happened that had probability 0: an infinite surprise"),
    ("NLL", "negative log-likelihood: the mean surprisal; a proper score, smaller is better"),
    (
        "ECE",
        "expected calibration error: the mean distance between predicted and observed, over bins; of the positive "
        "class, or of the confidence in the most likely class",
    ),
    ("ECE by chance", "the ECE that a calibrated model has with as many rows, because shares vary by chance"),
    ("ESCE", "expected signed calibration error: as ECE, but with signs, so that opposite bins cancel"),
    ("Brier", "the mean squared distance between probabilities and outcome; a proper score, smaller is better"),
    ("p-value", "the probability, if the model is calibrated, of a surprise at least as extreme as the one seen"),
    ("interval", "two ends; at 95 %, the truth lies between them except in 1 of 20 data sets like this one"),
)


def glossary(*parts: Markup) -> Markup:
    """Return the words that these parts of a page use, and those that explain them."""
    text = " ".join(re.sub(r"<[^>]*>", " ", str(part)) for part in parts)
    used: set[str] = set()
    while more := {word: explanation for word, explanation in GLOSSARY if word not in used and _uses(text, word)}:
        used |= more.keys()
        text = " ".join(more.values())
    listed = ((word, explanation) for word, explanation in GLOSSARY if word in used)
    items = (element("div", element("dt", word), element("dd", unbroken(explanation))) for word, explanation in listed)
    return element("dl", *items, class_="glossary")


def _uses(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE if word.islower() else re.NOFLAG) is not None
