"""What is wrong with a model that is not safe: one cause of a fixed list, its evidence, and what corrects it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents
from .._checks.class_columns import LABELS
from .._checks.classes import clip_for
from .._sums import Tally
from .._sums.causes import axis_name
from ..families import family_named
from ..inference import Interval
from ..inference.bounds import temperature_gain
from ..inference.cox import PRICE, Explained, explain
from ..inference.directions import shift_gain
from ..inference.shifts import ClassShifts, gain_by_shifts, uneven_gain
from .places import Place, spread_times

__all__ = ["CAUSES", "NAMED", "OTHER_THAN_SCALE", "Diagnosis", "diagnose", "lean_of_estimates", "only_labels"]

NAMED = ("shifted", "a few confident mistakes")  # that a reason must name: no limit and no place tells them
OTHER_THAN_SCALE = (*NAMED, *(f"only {x}" for x in ("in places", "a group", "a slice", "a direction")))
CAUSES = ("too sharp", "too vague", *OTHER_THAN_SCALE, "rounding")
_RARE = 1e-3  # p-value of what is left, below which something else is wrong too
_LEFTOVER = 0.3  # of what a simple fault explains: with more than this left, it is not the cause
_FEW = 0.1  # of the labels: more wrong ones are not a few
_QUIET = 2.5  # standard errors: groups whose summed excess is within them show nothing
_WORST = 0.5  # of all excess above 0, in the worst 1 % of the rows
_ALIKE = 1.005  # a factor that is written as 1
_MORE = 2.0  # times what all directions show: more is the fault of one
_LEANING, _CLEARLY = 0.5, 12.5  # a bias that SAFE speaks of: stated standard deviations, and gain of likelihood
_BY_OTHERS = "judge it by rows that it was not fitted to."
_NOT_BY_TEMPERATURE = "A temperature does not correct a shift. `safecal.recalibrate(y_true, y_prob)` fits a shift"


@final
@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause that fits the outcomes best, and what corrects it.

    Attributes
    ----------
    cause : str
        One of `CAUSES`.
    evidence : str
        Why, in a sentence.
    remedy : str
        What to do about it, in a sentence or two; code in backticks can be pasted.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(1 - z))  # less often than predicted
    >>> safecal.evaluate(happened, logits=z).verdict.diagnosis.cause
    'shifted'
    """

    cause: str
    evidence: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.evidence}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("diagnosis", {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = {"cause": documents.choice(*CAUSES), "evidence": documents.words, "remedy": documents.words}
        return cls(**documents.read("diagnosis", document, fields))


def diagnose(
    tally: Tally,
    temperature: Interval,
    places: Sequence[Place],
    other_groups: tuple[float, float] | None = None,
) -> Diagnosis | None:
    """Name the cause of over-confidence, or of under-confidence; None where nothing is found.

    ``other_groups`` are summed excess and varentropy of the groups that are not beyond a limit.
    """
    if tally.n_certain and (tally.summary.n_impossible or not places):
        return _rounding(tally)
    alone = _only_a_group(places, other_groups) or _only_a_slice(places, tally)
    if alone is not None:
        return alone
    if mends := family_named(tally.family).words.mends:
        evidence, cause = _stated_fault(tally), "too sharp" if tally.summary.ecd > 0.0 else "too vague"
        return Diagnosis(cause, evidence, mends) if evidence else None
    if tally.points is not None:
        return _two_classes(tally, temperature, places)
    return _classes_or_states(tally, temperature, places)


def _only_a_slice(places: Sequence[Place], tally: Tally) -> Diagnosis | None:
    """Say so where a slice is over-confident, and nothing else is shown to be, and all other rows together are not."""
    shown = [place for place in places if place.shown]
    if not shown or shown[0].type != "slice" or len(shown) > 1:
        return None
    place, s = shown[0], tally.summary
    excess = s.sum_excess - place.share * s.weight * place.ecd.value
    spread = (1.0 - place.share) * s.sum_varentropy_weight2
    if not spread > 0.0 or not excess <= _QUIET * math.sqrt(spread):
        return None
    return Diagnosis(
        "only a slice",
        f"where {place.label} it is over-confident, and all other rows together are not.",
        "Correct it there alone, with rows of its own; a temperature for all rows would spoil the others.",
    )


def only_labels(tally: Tally) -> bool:
    """Tell whether every row gives one outcome a probability of exactly 1, as labels do."""
    return tally.n > 1 and tally.n_certain == tally.n and tally.summary.mean_entropy == 0.0


def _rounding(tally: Tally) -> Diagnosis:
    if only_labels(tally):
        fault, _, remedy = LABELS.partition(". ")
        return Diagnosis("rounding", f"all {tally.n} {fault}.", remedy)
    rows = f"{tally.n_certain} of {tally.n} rows give an outcome a probability of exactly 0"
    decimals = f" to {tally.decimals} decimal{'' if tally.decimals == 1 else 's'}" if tally.decimals else ""
    # None where a clip would judge another model.
    clip = clip_for(round(math.exp(tally.most_entropy)), tally.decimals) if math.isfinite(tally.most_entropy) else None
    smallest = "" if clip is None else f"; or else state the smallest probability you mean: `clip={clip}`"
    return Diagnosis(
        "rounding",
        f"{rows}: probabilities seem to be rounded{decimals}.",
        f"Pass `logits=`, or probabilities with all their digits{smallest}.",
    )


def _only_a_group(places: Sequence[Place], other_groups: tuple[float, float] | None) -> Diagnosis | None:
    """Say so where groups are over-confident, and the rows of all other groups together are not."""
    groups = [place for place in places if place.type == "group" and place.shown]
    if not groups or other_groups is None:
        return None
    excess, spread = other_groups
    if not spread > 0.0 or excess > _QUIET * math.sqrt(spread):
        return None
    fault = f"{groups[0].label} is over-confident" if len(groups) == 1 else f"{len(groups)} groups are over-confident"
    return Diagnosis(
        "only a group",
        f"{fault}, and all other groups together are not.",
        "Correct it only there, with rows from there; a temperature for all rows would spoil the other groups.",
    )


def _two_classes(tally: Tally, temperature: Interval, places: Sequence[Place]) -> Diagnosis | None:
    points = tally.points
    assert points is not None
    if not len(points.L):
        return None
    explained = explain(points)
    if explained.p_rest < _RARE and explained.rest > _LEFTOVER * explained.gain.get(explained.cause, 0.0):
        return _in_places(places)
    if explained.cause == "noise" and explained.noise <= _FEW:
        return _noise(explained)
    if explained.cause == "shift" or (explained.cause == "both" and explained.gain["shift"] >= explained.gain["slope"]):
        return _shifted(tally, explained)
    if explained.cause == "none":
        return None
    return _scaled(tally, temperature, explained if explained.cause == "both" else None)


def _classes_or_states(tally: Tally, temperature: Interval, places: Sequence[Place]) -> Diagnosis | None:
    """Diagnose more than two classes by their likeliest one, and states by their temperature."""
    gain = temperature_gain(tally)
    if tally.top is not None and len(tally.top.points().L):
        explained = explain(tally.top.points(), math.exp(-tally.vague_entropy))
        if explained.cause == "noise" and explained.noise <= _FEW and explained.gain["noise"] > explained.gain["both"]:
            return _noise(explained)
        most = max(gain, explained.gain.get(explained.cause, 0.0))
        if explained.p_rest < _RARE and explained.rest > _LEFTOVER * most:
            return _in_places(places)
        uneven, worst = uneven_gain(tally)
        if max(uneven, gain_by_shifts(tally)) > max(gain, 2.0 * PRICE):
            evidence = f"it predicts some classes too often and others too rarely; {_most_shifted(tally, worst)}."
            return Diagnosis("shifted", evidence, f"{_NOT_BY_TEMPERATURE} for each class, too; {_BY_OTHERS}")
    shifted, axis = shift_gain(tally)
    if shifted > max(gain, PRICE * tally.dimension):
        return _biased(tally, axis)
    if (fault := _direction_fault(tally, places)) is not None:
        return fault
    if tally.top is None and gain > PRICE and temperature.value > 1.0 and tally.n >= 100:
        share = tally.worst_share
        if share >= _WORST:
            return _mistakes(f"the most surprising 1 % of the rows hold {_percent(share)} of all excess above 0")
    if gain > PRICE:
        return _scaled(tally, temperature, None)
    return _in_places(places) if any(place.shown for place in places) else None


def _most_shifted(tally: Tally, number: int) -> str:
    """Say which class is shifted most; ``number`` is the one that is wrong most often where it is predicted."""
    shifts = ClassShifts.of(tally)
    worst = None if shifts is None else shifts.farthest
    if worst is None:
        return f"class {tally.class_names[number] if tally.class_names else number} most"
    return f"class {worst.name} happens {worst.ratio.value:.2g} times as often as predicted"


def _biased(tally: Tally, axis: int) -> Diagnosis:
    """Say along which axis estimates are off to one side."""
    assert tally.axes is not None
    evidence = f"the truth lies {tally.axes.shift[axis]:+.2g} stated standard deviations from them on average."
    hidden, where = "Wider error bars hide a bias and do not", ""
    if tally.dimension > 1:
        evidence = f"on {axis_name(tally.class_names, axis)} {evidence}"
        hidden, where = "A larger covariance hides a bias and does not", " on that axis"
    remedy = f"{hidden} correct it: look for a wrong model, offset or unit{where}."
    return Diagnosis("shifted", f"its estimates are off to one side: {evidence}", remedy)


def lean_of_estimates(tally: Tally) -> list[str]:
    """Say that estimates are off to one side, where they are by much: the size of errors alone is judged."""
    gain, axis = shift_gain(tally)
    if tally.clusters is not None:
        gain *= len(tally.clusters) / tally.n
    if tally.axes is None or not gain > _CLEARLY or not abs(tally.axes.shift[axis]) >= _LEANING:
        return []
    on = f"on {axis_name(tally.class_names, axis)} " if tally.dimension > 1 else ""
    return [
        f"But its estimates are off to one side: {on}the truth lies {tally.axes.shift[axis]:+.2g} stated standard "
        "deviations from them on average. SAFE says that its errors are no larger than stated, not that it has no bias."
    ]


def _stated_fault(tally: Tally) -> str:
    """Say how what was stated differs from what happened; nothing where it does not show."""
    s = tally.summary
    if tally.points is not None and s.sum_predicted is not None:
        seen, stated = 100 * s.mean_observed, 100 * s.mean_predicted
        return f"its intervals hold {seen:.3g} % of the outcomes, where {stated:.3g} % are stated."
    shifts = ClassShifts.of(tally)
    if shifts is not None:
        worst = shifts.farthest
        return "" if worst is None else f"class {worst.name} happens {worst.ratio.value:.3g} times as often as stated."
    if family_named(tally.family).words.scaled != "draws":  # it has no spread that could be too small
        return ""
    if not tally.others:  # seen by neighbours
        return "outcomes lie where it puts few draws." if s.ecd > 0.0 else ""
    factor = spread_times(s.ecd / tally.dimension)
    if not 0.0 < factor < math.inf or 1.0 / _ALIKE < factor < _ALIKE:
        return ""
    times, fault = (1.0 / factor, "too large") if factor < 1.0 else (factor, "too small")
    return f"its spread is about {times:.3g} times {fault}."


def _direction_fault(tally: Tally, places: Sequence[Place]) -> Diagnosis | None:
    """Say which direction of states is wrong, and what corrects it; None where none is, or all of them are."""
    shown = [place for place in places if place.shown]
    if not shown or shown[0].type != "direction":
        return None
    place, everywhere = shown[0], tally.summary.ecd / tally.dimension
    if not place.ecd.low > _MORE * everywhere:
        return None
    times = f"{spread_times(place.ecd.value):.3g} times as large as it says"
    evidence = f"along {place.label} errors are {times}, and smaller errors along others hide that in NEES."
    remedy = "look for a correlation that is not stated, or for noise that is larger that way."
    if place.name in {axis_name(tally.class_names, k) for k in range(tally.dimension)}:
        remedy = f"`safecal.maps.Axes` has one for each axis; {_BY_OTHERS}"
    remedy = f"A factor for the whole covariance does not correct it: {remedy}"
    return Diagnosis("only a direction", evidence, remedy)


def _scaled(tally: Tally, temperature: Interval, with_shift: Explained | None) -> Diagnosis | None:
    t = temperature.value
    if math.isnan(t):
        return None
    words = family_named(tally.family).words.of(tally.dimension)
    fault = f"its temperature is {'at least' if temperature.method.endswith('at least') else 'about'} {t:.3g}"
    if words.factor is not None:
        fault = f"its {words.scaled} are about {words.times(t)}"
    shift = "" if with_shift is None else f" There is also a shift of {with_shift.shift:+.2g} in log-odds."
    if t > 1.0:
        fault = fault if math.isfinite(t) else "its confidence carries no information"
        remedy = f"Fit `safecal.SafeTemperature`, then {_BY_OTHERS}"
        if words.root:
            remedy = f"Multiply its {words.scaled}: `safecal.SafeTemperature` finds by how much; {_BY_OTHERS}"
        if math.isinf(t):
            remedy = "No temperature helps a model whose confidence carries no information: train it again."
        return Diagnosis("too sharp", f"{fault}.{shift}", remedy)
    sharper = f"`safecal.SafeTemperature` makes it sharper, as far as that is safe; {_BY_OTHERS}"
    return Diagnosis("too vague", f"{fault}.{shift}", sharper)


def _shifted(tally: Tally, explained: Explained) -> Diagnosis:
    s = tally.summary
    assert s.sum_predicted is not None
    assert s.sum_observed is not None
    often = "more often" if explained.shift > 0.0 else "less often"
    predicted, observed = s.sum_predicted / s.weight, s.sum_observed / s.weight
    slope = f", and a slope of {explained.slope:.2g}" if explained.cause == "both" else ""
    if math.isinf(explained.shift):
        always = "always" if explained.shift > 0.0 else "never"
        evidence = f"the event {always} happened, where {_percent(predicted)} is predicted."
        return Diagnosis("shifted", evidence, "Check the outcomes: all of them are the same.")
    return Diagnosis(
        "shifted",
        f"the event happens {often} than it says, {_percent(observed)} where {_percent(predicted)} is predicted:"
        f" a shift of {explained.shift:+.2g} in log-odds{slope}.",
        f"{_NOT_BY_TEMPERATURE} and a slope; {_BY_OTHERS}",
    )


def _noise(explained: Explained) -> Diagnosis:
    return _mistakes(f"about {_percent(explained.noise)} of the outcomes look as if drawn at random")


def _mistakes(evidence: str) -> Diagnosis:
    return Diagnosis(
        "a few confident mistakes",
        f"{evidence}, however sure the model is; all others agree with it.",
        "Look at the most surprising rows: wrong labels, or rows of another kind? A temperature would make all"
        " other predictions vaguer.",
    )


def _in_places(places: Sequence[Place]) -> Diagnosis:
    place = f": {places[0].brief}" if places else ""
    return Diagnosis(
        "only in places",
        f"neither a temperature nor a shift explains it: it is wrong in some ranges of its predictions{place}.",
        "Train it with more rows from there, or correct these ranges by themselves:"
        f" `safecal.recalibrate(y_true, y_prob)` does that, if there are thousands of rows; {_BY_OTHERS}",
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.3g} %"
