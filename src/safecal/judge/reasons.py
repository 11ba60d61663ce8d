"""Why a verdict is what it is, in words, and how many more rows would decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from .._checks.class_columns import certain_reason
from .._sums import Tally
from .._sums.summary import Summary
from .._sums.table import Table
from .._types import Decision
from ..families import family_named
from ..inference import bounds
from ..inference.bounds import doubt_of_outcomes, mistakes_text
from ..inference.directions import has_directions
from ..inference.local import Local
from ..options import Limits
from ..slices.results import Slices
from .diagnosis import NAMED, OTHER_THAN_SCALE, Diagnosis, diagnose, lean_of_estimates, only_labels
from .groups import TooSmall, groups_are_unbounded, temperature_is_missing
from .places import Place, in_sentence
from .verdict import SAFE, UNDETERMINED, UNSAFE, Average, Late, Scale, Verdict, Words, direction

__all__ = ["Findings", "clusters_needed", "joint_reason", "rounded", "rows_needed", "words_of"]

_NAMED = 3  # places that a reason names
_MANY = 100  # rows: as many log-odds do not end at 0 and 1 by chance
_FILLED = special.expit([0.0, 0.1, 0.9, 1.05]).tolist()  # where they begin and end; cells of log-odds have a width
_CALIBRATED = 1.005  # a temperature that is written as 1, or less: nothing is too large


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a verdict rests on, and its words are about."""

    tally: Tally
    limits: Limits
    average: Average
    local: Local
    slices: Slices | None
    decision: Decision
    on_average: Decision
    places: tuple[Place, ...]
    other_groups: tuple[float, float] | None  # summed excess and varentropy of groups that are not beyond a limit
    too_small: TooSmall
    groups_differ: bool  # groups are suspected because their calibration differs
    says_nothing: bool
    single_row: bool
    unseen_direction: bool  # rows are too few to see every direction of a state
    held: float  # share of outcomes in intervals of 90 % of a density's draws, where that is too few; else NaN
    search_stopped: bool  # of slices
    hopeless: bool  # no number of rows would decide
    far: int  # log-odds that claim never to fail
    bold: tuple[int, float]  # rows so sure that two mistakes would exceed the limit, and the farthest of their log-odds
    rows_needed: int | None
    clusters_needed: int | None


def words_of(findings: Findings) -> Words:
    """Say why the decision is what it is, and what is wrong: what only a reader needs."""
    f, tally = findings, findings.tally
    diagnosis = None
    if f.decision != SAFE or direction(f.average.ecd.interval) == "under-confident":
        diagnosis = diagnose(tally, f.average.temperature.interval, f.places, f.other_groups)
    reason = " ".join([_first_reason(f, diagnosis), *_further_sentences(f, diagnosis)])
    tables = [table for table in (tally.bins, tally.groups) if table is not None]
    return Words(reason, diagnosis, Late(lambda: _worst_key(tables)), Late(lambda: tally.worst_share))


def _first_reason(f: Findings, diagnosis: Diagnosis | None) -> str:
    """Say what decided: an average, a place, or what keeps a model from being SAFE."""
    tally, clustered = f.tally, f.tally.clusters is not None
    mends = family_named(tally.family).words.mends
    scaled = diagnosis is None or diagnosis.cause not in OTHER_THAN_SCALE
    reason = _average_reason(f.on_average, tally.summary, f.average, scaled=scaled and not mends)
    if mends and diagnosis is not None and scaled and (f.on_average == UNSAFE or not f.places):
        reason += f" {diagnosis.evidence[:1].upper()}{diagnosis.evidence[1:]}"
    if f.places:
        uneven = "from group to group" if f.groups_differ else ""
        if any(place.type == "range" for place in f.places) and f.local.uneven:
            uneven = "along its predictions"
        return _local_reason(f.on_average, reason, f.places, f.limits.level, clustered=clustered, uneven=uneven)
    if f.hopeless:
        return _hopeless_reason(tally, f.far)
    if f.decision == UNDETERMINED and f.on_average == SAFE:
        if f.single_row:
            return "one row proves nothing."
        if f.unseen_direction:
            rows = f"{tally.n} rows{' in so few clusters' if clustered else ''}"
            return f"{rows} cannot show every direction of {tally.dimension} axes."
        if f.bold[0]:
            return _bold_reason(f)
        if not math.isnan(f.held):
            return (
                "its log-density shows no over-confidence, and its draws do: where they say 90 %, "
                f"{100 * f.held:.3g} % of the outcomes lie. Is it the logarithm of the density that is drawn from?"
            )
        if f.search_stopped:
            return "the search for slices was stopped before its end, so no slice is ruled out."
    return reason


def _further_sentences(f: Findings, diagnosis: Diagnosis | None) -> list[str]:
    """Say what else a reader should know: the cause, where was looked, what was left out, and what would decide."""
    tally, everywhere, safe = f.tally, f.limits.everywhere, f.decision == SAFE
    sentences = []
    cause = "" if diagnosis is None else diagnosis.cause
    if cause in NAMED or (cause in OTHER_THAN_SCALE and f.on_average == UNSAFE):
        sentences.append(f"Cause: {diagnosis}")
    slices = f.slices if f.slices is not None and f.slices.direction == "over" else None
    directions = tally.directions is not None and has_directions(tally)
    looked_at = {
        "direction of its states": directions,
        "range of its predictions": len(f.local) > 0,
        "group": tally.groups is not None and not groups_are_unbounded(tally),
        "slice of its features": slices is not None and not slices.found and len(slices.features) > 0,
    }
    if safe and everywhere and any(looked_at.values()):
        names = [f"no {name}" for name, looked in looked_at.items() if looked]
        listed = " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
        sentences.append(f"{listed[0].upper()}{listed[1:]} shows it.")
    unseen = tally.dimension > 1 and not directions and (tally.look is None or bool(tally.others))
    if safe and everywhere and unseen:
        sentences.append("Directions of its states were not looked at.")
    if safe and everywhere and slices is not None and slices.found:
        sentences.append(below_limit(slices, f.limits))
    if safe and tally.axes is not None:
        sentences += lean_of_estimates(tally)
    if f.too_small.count:
        sentences.append(f"{f.too_small}.")
    if everywhere and tally.groups is not None:
        if groups_are_unbounded(tally):
            sentences.append("Groups have no bounds: a document does not tell their clusters apart.")
        if temperature_is_missing(tally):
            sentences.append("The temperature of groups is not known, and was not judged.")
    for number, unit in ((f.rows_needed, "row"), (f.clusters_needed, "cluster")):
        if number:
            sentences.append(f"About {rounded(number)} more {unit}{'' if number == 1 else 's'} would decide.")
    if not family_named(tally.family).words.mends:  # an interval may be wide on purpose
        sentences += doubt_of_outcomes(f.average.mistakes, tally.summary)
    if _like_probabilities(tally.n, f.local):
        sentences.append("All its log-odds lie between 0 and 1: are they probabilities?")
    if f.says_nothing:
        sentences.append("It says almost nothing: its predictions are close to even odds.")
    if not everywhere:
        sentences.append("Only averages were judged (rule: average): over-confidence in a place was not looked for.")
    return sentences


def _like_probabilities(n: int, local: Local) -> bool:
    """Tell whether log-odds of two outcomes fill the numbers from 0 to 1, and no others."""
    if local.on != "probability" or n < _MANY:
        return False
    least, small, large, most = _FILLED
    return bool(least <= local.column("low").min() < small and large < local.column("high").max() <= most)


def _average_reason(decision: Decision, s: Summary, average: Average, *, scaled: bool = True) -> str:
    """Say what the averages say, with the bound that decided; ``scaled``: a temperature is what is wrong."""
    if s.weight_impossible > 0.0:
        rows = "1 outcome" if s.n_impossible == 1 else f"{s.n_impossible} outcomes"
        return f"{rows} happened that had probability 0."
    ecd, t = average.ecd.interval, average.temperature.interval
    at = f"at {100 * ecd.level:g} % confidence"
    if decision == SAFE:
        text = f"over-confidence beyond {_allowed(average)} is ruled out on average {at}: ECD is at most {ecd.high:.3g}"
        return text + ("." if math.isnan(t.high) else f", and {_times(average, 'are at most', t.high)}.")
    if decision == UNSAFE:
        return f"the model is over-confident: {_exceeded_limit(average, at, scaled)}."
    return f"the data cannot tell {at}: {_open_limit(average)}."


def _times(average: Average, verb: str, value: float) -> str:
    """Say what a temperature means: "its logits are at most 1.7 times too large"; up to 1 nothing is."""
    sentence = average.words.factor
    if sentence is None:
        return f"its temperature {verb.replace('are ', 'is ')} {value:.3g}"
    if value < _CALIBRATED:
        return sentence.format("are not")
    times = f"{verb} {average.words.multiple(value):.3g} times"
    return sentence.format("may be any number of times" if math.isinf(value) else times)


def _times_allowed(average: Average) -> str:
    """Say how many times too large something may be."""
    return f"{average.words.multiple(average.temperature.limit):.3g} is allowed"


def _allowed(average: Average) -> str:
    """Say how much ECD is allowed."""
    if average.dimensions == 1.0:
        return f"{average.ecd.limit:g} nat"
    return f"{average.ecd.limit:.3g} nat ({average.threshold:g} for each of {average.dimensions:.3g} dimensions)"


def _exceeded_limit(average: Average, at: str, scaled: bool) -> str:
    """Say which limit is exceeded: the first that is."""
    ecd, t = average.ecd, average.temperature
    if ecd.beyond:
        text = f"ECD is at least {ecd.interval.low:.3g} {at}, where {_allowed(average)} is allowed"
        named = scaled and _CALIBRATED <= t.interval.value < math.inf
        about = "are at least" if t.interval.method.endswith("at least") else "are about"
        return text + (f"; {_times(average, about, t.interval.value)}" if named else "")
    if t.beyond:
        return f"{_times(average, 'are at least', t.interval.low)} {at}, where {_times_allowed(average)}"
    ratio, mistakes = average.ratio, average.mistakes
    assert ratio is not None
    assert mistakes is not None
    return (
        f"it announced {mistakes_text(mistakes.announced)} mistakes and made {mistakes_text(mistakes.seen)}, at least"
        f" {ratio.interval.low:.3g} times as many {at}, where {ratio.limit:g} times are allowed"
    )


def _open_limit(average: Average) -> str:
    """Say which limit lies inside its interval: the first that does."""
    ecd, t = average.ecd, average.temperature
    if not ecd.within:
        i = ecd.interval
        return f"ECD lies between {i.low:.3g} and {i.high:.3g}, and {_allowed(average)} is allowed"
    if not t.within:
        low, high = t.interval.low, t.interval.high
        is_bounded = low >= _CALIBRATED or average.words.factor is None
        verb = f"are between {average.words.multiple(low):.3g} and" if is_bounded else "may be up to"
        return f"{_times(average, verb, high)}, and {_times_allowed(average)}"
    ratio, mistakes = average.ratio, average.mistakes
    if ratio is None or mistakes is None:
        return "there is nothing to judge"
    return (
        f"it announced {mistakes_text(mistakes.announced)} mistakes and made {mistakes_text(mistakes.seen)};"
        f" in the long run that may be {ratio.interval.low:.3g} to {ratio.interval.high:.3g} times as many,"
        f" and {ratio.limit:g} times are allowed"
    )


def _bold_reason(f: Findings) -> str:
    """Say that some rows are so sure that the others cannot vouch for them."""
    count, farthest = f.bold
    rows = rounded(math.ceil(2.0 * farthest / f.average.ecd.limit))
    return (
        f"{count} of {f.tally.n} predictions {'is' if count == 1 else 'are'} so sure, with log-odds of up to "
        f"{farthest:.3g}, that two mistakes among them would exceed the limit. They may not have come yet: about "
        f"{rows} rows would show them."
    )


def _hopeless_reason(tally: Tally, far: int) -> str:
    """Say why no number of rows would decide: predictions that are certain, or as good as certain."""
    if tally.n_certain:
        classes = round(math.exp(tally.most_entropy))
        return certain_reason(tally.n_certain, tally.n, classes, tally.decimals, labels=only_labels(tally))
    if far and tally.top is not None:
        return (
            f"{far} of {tally.n} predictions {'gives' if far == 1 else 'give'} other classes probabilities that are "
            "too small for a float: such a prediction claims never to fail, and no number of rows can show that. Limit "
            "how far a logit may lie below the largest of its row: "
            "`np.maximum(logits, logits.max(1, keepdims=True) - 40)`."
        )
    if far:
        return (
            f"{far} of {tally.n} log-odds {'is' if far == 1 else 'are'} beyond a million: such a prediction claims "
            "never to fail, and no number of rows can show that. Limit them to what you mean: "
            "`np.clip(logits, -40, 40)`."
        )
    return "its predictions are almost certain, and no number of rows can show that such certainty is right."


def _local_reason(
    average: str, reason: str, places: Sequence[Place], level: float, *, clustered: bool, uneven: str
) -> str:
    """Say in which places it is over-confident, and what holds on average; ``uneven``: along what that differs."""
    shown = [place for place in places if place.shown]
    named = shown or list(places)
    text = "; ".join(map(str, named[:_NAMED])) + (f"; and in {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    if average == UNSAFE:
        return f"{reason} Worst: {named[0]}." if shown else reason
    start = {
        (SAFE, True): "its confidence is right on average, but not everywhere",
        (UNDETERMINED, True): "on average the data cannot tell, but in places it is over-confident",
        (SAFE, False): "its confidence is right on average, but perhaps not everywhere",
        (UNDETERMINED, False): "the data cannot tell, and in places it may be over-confident",
    }[average, bool(shown)]
    ends = f"The bounds of all places hold together at {100 * level:g} % confidence."
    if not shown:
        more = f"more {'clusters' if clustered else 'rows'}"
        ends = f"{more[0].upper()}{more[1:]} would decide."
        if uneven:
            ends = f"Its calibration differs {uneven}: {more} would show where."
        if clustered and all(place.by == "temperature" for place in places):
            ends = (
                "If rows come in clusters, a temperature of a group that is too high can be suspected, but not shown."
            )
    return f"{start}: {text}. {ends}"


def rounded(n: int) -> str:
    """Write a number of rows with two digits."""
    digits = max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / 10**digits) * 10**digits:d}"


def below_limit(slices: Slices, limits: Limits) -> str:
    """Say of slices that were found, and that the limit allows, where they are and how much they show."""
    worst = max(slices, key=lambda s: s.ecd.value / s.dimensions)
    limit = limits.local_threshold * worst.dimensions
    start, end = ("1 slice is", ": ") if len(slices) == 1 else (f"{len(slices)} slices are", "; the worst: ")
    numbers = f"ECD is {worst.ecd.value:.3g} nat ({worst.ecd.low:.3g} to {worst.ecd.high:.3g})"
    start = f"{start} over-confident, below the limit of {limit:g} nat{end}"
    return f"But {start}where {in_sentence(worst.condition)}, {numbers}, and T is {worst.temperature.value:.3g}."


def _worst_key(tables: Sequence[Table]) -> str | None:
    """Return the key that adds most to ECD."""
    contributions: list[tuple[float, str]] = []
    for table in tables:
        ecd = table.ecd
        above = np.flatnonzero(ecd > 0.0)
        if len(above):
            adds = (table.weights * ecd)[above]
            places = above[adds == adds.max()].tolist()
            contributions += [(float(adds.max()), f"{table.name} {table.label(k)}") for k in places]
    return max(contributions)[1] if contributions else None


def joint_reason(decision: Decision, verdicts: Sequence[Verdict], decisive: Verdict) -> str:
    """Say why, and which look decided."""
    look = decisive.look
    assert look is not None
    if decision == SAFE:
        reasons = [f"{v.look.seen}, {v.reason} {v.look.why}".rstrip() for v in verdicts if v.look and v.look.acquits]
        return " ".join([reasons[0], *(text[:1].upper() + text[1:] for text in reasons[1:])])
    if decision == UNDETERMINED and decisive.decision == SAFE:  # no look acquits
        return f"{look.seen}, nothing is found beyond the limits, but that does not make it safe. {look.why}".rstrip()
    if decision == UNDETERMINED and not look.condemns and (decisive.where or not decisive.ecd.high <= decisive.allowed):
        smaller = [f"{v.look.seen}, ECD is at least {v.ecd.low:.3g}; " for v in verdicts if v.look and v.look.condemns]
        return (
            f"over-confidence is neither shown nor ruled out at {100 * decisive.level:g} % confidence:"
            f" {''.join(smaller)}{look.seen}, ECD is at most {decisive.ecd.high:.3g};"
            f" {decisive.allowed:.3g} nat is allowed. {look.why}".rstrip()
        )
    acquits = any(v.look.acquits for v in verdicts if v.look)
    why = look.why if decision == UNDETERMINED and not acquits else ""
    return f"{look.seen}, {decisive.reason} {why}".rstrip()


def rows_needed(n: int, average: Average) -> int | None:
    """Guess how many more rows would decide in 8 of 10 cases; None where no number can be told."""
    t = average.temperature.interval.value
    if not math.isnan(t) and not 0.0 < t < math.inf:
        return None
    over = [scale for scale in average.scales if scale.interval.value > scale.limit]
    factors = [_times_the_rows(scale) for scale in over or average.scales]
    factor = min(factors) if over else max(factors)  # one limit that is exceeded is enough
    return max(math.ceil(n * (factor - 1.0)), 1) if factor < 1e6 else None


def _times_the_rows(scale: Scale) -> float:
    """Return how many times as many rows would decide; widths shrink with the square root of the number of rows.

    Estimates move while rows come: see `_spare_factor`.
    """
    if scale.beyond or scale.within:
        return 1.0
    ends = (scale.interval.value, scale.interval.low, scale.interval.high, scale.limit)
    value, low, high, limit = map(_logarithm, ends) if scale.logarithmic else ends
    room = abs(limit - value)
    width = high - value if value <= limit else value - low
    if not room > 0.0 or math.isinf(width):
        return math.inf
    return max(_spare_factor(scale.interval.level) * (width / room) ** 2, 1.0)


def _spare_factor(level: float) -> float:
    """Return how many times as many rows decide in 8 of 10 cases as would if the estimate stayed where it is.

    A bound is ``z`` standard errors away from the estimate, which itself moves by more than ``ndtri(0.8)`` of them
    towards the limit in 2 of 10 cases.
    """
    z = float(special.ndtri(0.5 + level / 2.0))
    return ((z + float(special.ndtri(0.8))) / z) ** 2


def _logarithm(x: float) -> float:
    return math.log(x) if 0.0 < x < math.inf else math.copysign(math.inf, x - 1.0)


def clusters_needed(tally: Tally, average: Average, limits: Limits) -> int | None:
    """Guess how many more clusters would let the averages be called safe in 8 of 10 cases."""
    assert tally.clusters is not None
    more = bounds.clusters_needed(
        tally, threshold=average.ecd.limit, max_temperature=average.temperature.limit,
        alpha=0.5 * (1.0 - limits.level), max_ratio=math.inf if average.ratio is None else average.ratio.limit,
    )  # fmt: skip
    count = len(tally.clusters)
    return math.ceil(_spare_factor(limits.level) * (count + more)) - count if more else None
