"""The first screen: the place, and one number beside what is allowed."""

import math
from typing import NamedTuple

from ..display import count
from ..evaluation import Evaluation
from ..places import Place
from ..reasons import Average
from ..verdict import SAFE, UNSAFE, Verdict
from .numbers import grouped, percent, plain, rows
from .words import all_but_certain, in_places, sentence

__all__ = ["Opening", "opening"]


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
        return _unsafe(average, worst, verdict)
    if verdict.decision == SAFE:
        place, most = _nowhere(evaluation, verdict), verdict.ecd.high
        if most < 0.0:
            return Opening(place, f"{plain(-most)} nat", "less surprise than it announced, at least, on average.")
        about = f"of surprise that it did not announce, at most, on average. {plain(verdict.allowed)} is allowed."
        return Opening(place, f"{plain(most)} nat", about)
    return _undetermined(evaluation, average, verdict)


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
        return Opening(where, f"{plain(t)} times", f"too large are its logits there, {how}. {allowed} In {held}")
    if place.shown:
        about = f"of surprise there that it did not announce, at least. {allowed} In {held}"
        return Opening(where, f"{plain(place.ecd.low)} nat", about)
    between = f"{plain(place.ecd.low)} and {plain(place.ecd.high)}"
    about = f"of surprise there that it did not announce, perhaps: it lies between {between}. {allowed} In {held}"
    return Opening(where, f"{plain(place.ecd.value)} nat", about)


def _unsafe(average: Average, worst: Place | None, verdict: Verdict) -> Opening:
    place = "On average, over all rows."
    if worst is not None:
        named = worst.type == "group" and worst.by != "mistakes"
        place = f"It is worst in {worst.label}." if named else f"Worst: {worst.where}."
    ecd, temperature, mistakes = average.ecd, average.temperature, average.mistakes
    if ecd.beyond:
        about = f"of surprise that it did not announce, at least, on average. {plain(ecd.limit)} is allowed."
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


def _undetermined(evaluation: Evaluation, average: Average, verdict: Verdict) -> Opening:
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
    about = f"of surprise that it did not announce, perhaps, on average. {plain(ecd.limit)} is allowed."
    return Opening(place, f"{plain(ecd.interval.high)} nat", about)


def _factor(place: str, average: Average, value: float, how: str) -> Opening:
    """Say how many times too large something is."""
    allowed = f"{plain(average.temperature.limit)} is allowed."
    start, _, end = average.what.format("@").partition(" are @ times ")
    if not end:
        return Opening(place, plain(value), f"is its temperature, {how}. {allowed}")
    return Opening(place, f"{plain(value)} times", f"{end} are {start}, {how}. {allowed}")
