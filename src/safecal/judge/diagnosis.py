"""What is wrong with a model that is not safe: one cause of a fixed list, its evidence, and what corrects it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks.classes import LABELS
from .._sums.directions import axis_name
from .._sums.summary import COLUMN
from .._sums.tally import Tally
from ..families.predictions import family_named
from ..inference.bounds import law_of
from ..inference.faults import PRICE, Explained, explain
from ..inference.results import Interval
from ..inference.shifts import ClassShifts, gain_by_shifts, shift_gain
from .forecasts import direction_fault, stated_fault
from .places import Place

__all__ = ["CAUSES", "NAMED", "OTHER_THAN_SCALE", "Diagnosis", "diagnose", "only_labels"]

NAMED = ("shifted", "a few confident mistakes")  # that a reason must name: no limit and no place tells them
OTHER_THAN_SCALE = (*NAMED, *(f"only {x}" for x in ("in places", "a group", "a slice", "a direction")))
CAUSES = ("too sharp", "too vague", *OTHER_THAN_SCALE, "rounding")
_RARE = 1e-3  # p-value of what is left, below which something else is wrong too
_HALF = 0.3  # of what a simple fault explains: with more than this left, it is not the cause
_FEW = 0.1  # of the labels: more wrong ones are not a few
_QUIET = 2.5  # standard errors: groups whose summed excess is within them show nothing
_WORST = 0.5  # of all excess above 0, in the worst 1 % of the rows
_NOT_BY_TEMPERATURE = (
    "A temperature does not correct a shift. `safecal.recalibrate(y_true, y_prob)` on other rows fits a shift"
)


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
    where: Sequence[Place],
    others: tuple[float, float] | None = None,
) -> Diagnosis | None:
    """Name the cause of over-confidence, or of under-confidence; None where nothing is found.

    ``others`` are summed excess and varentropy of the groups that are not beyond a limit.
    """
    if tally.n_certain and (tally.summary.n_impossible or not where):
        return _rounding(tally)
    alone = _only_a_group(where, others) or _only_a_slice(where, tally)
    if alone is not None:
        return alone
    if mends := family_named(tally.family).words.mends:
        evidence, cause = stated_fault(tally), "too sharp" if tally.summary.ecd > 0.0 else "too vague"
        return Diagnosis(cause, evidence, mends) if evidence else None
    if tally.points is not None:
        return _two_classes(tally, temperature, where)
    return _others(tally, temperature, where)


def _only_a_slice(where: Sequence[Place], tally: Tally) -> Diagnosis | None:
    """Say so where a slice is over-confident, and nothing else is shown to be, and all other rows together are not."""
    shown = [place for place in where if place.shown]
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
        what, _, remedy = LABELS.partition(". ")
        return Diagnosis("rounding", f"all {tally.n} {what}.", remedy)
    rows, n = tally.n_certain, tally.n
    many = "1 decimal" if tally.decimals == 1 else f"{tally.decimals} decimals"
    decimals = f" to {many}" if tally.decimals else ""
    return Diagnosis(
        "rounding",
        f"{rows} of {n} rows give an outcome a probability of exactly 0: probabilities seem to be rounded{decimals}.",
        "Pass logits, or probabilities with all their digits.",
    )


def _only_a_group(where: Sequence[Place], others: tuple[float, float] | None) -> Diagnosis | None:
    """Say so where groups are over-confident, and the rows of all other groups together are not."""
    named = [place for place in where if place.type == "group" and place.shown]
    if not named or others is None:
        return None
    excess, spread = others
    if not spread > 0.0 or excess > _QUIET * math.sqrt(spread):
        return None
    many = f"{named[0].label} is over-confident" if len(named) == 1 else f"{len(named)} groups are over-confident"
    return Diagnosis(
        "only a group",
        f"{many}, and all other groups together are not.",
        "Correct it only there, with rows from there; a temperature for all rows would spoil the other groups.",
    )


def _two_classes(tally: Tally, temperature: Interval, where: Sequence[Place]) -> Diagnosis | None:
    points = tally.points
    assert points is not None
    if not len(points.L):
        return None
    found = explain(points)
    if found.p_rest < _RARE and found.rest > _HALF * found.gain.get(found.cause, 0.0):
        return _places(where)
    if found.cause == "noise" and found.noise <= _FEW:
        return _mistakes(f"about {_percent(found.noise)} of the outcomes look as if drawn at random")
    if found.cause == "shift" or (found.cause == "both" and found.gain["shift"] >= found.gain["slope"]):
        return _shifted(tally, found)
    if found.cause == "none":
        return None
    return _scaled(tally, temperature, found if found.cause == "both" else None)


def _others(tally: Tally, temperature: Interval, where: Sequence[Place]) -> Diagnosis | None:
    """Diagnose more than two classes by their likeliest one, and states by their temperature."""
    gain = _gain(tally)
    if tally.top is not None and len(tally.top.points().L):
        found = explain(tally.top.points(), math.exp(-tally.vague_entropy))
        if found.cause == "noise" and found.noise <= _FEW and found.gain["noise"] > found.gain["both"]:
            return _mistakes(f"about {_percent(found.noise)} of the outcomes look as if drawn at random")
        if found.p_rest < _RARE and found.rest > _HALF * max(gain, found.gain.get(found.cause, 0.0)):
            return _places(where)
        uneven, number = _uneven(tally)
        if max(uneven, gain_by_shifts(tally)) > max(gain, 2.0 * PRICE):
            evidence = f"it predicts some classes too often and others too rarely; {_most_shifted(tally, number)}."
            return Diagnosis("shifted", evidence, f"{_NOT_BY_TEMPERATURE} for each class, too.")
    shifted, axis = shift_gain(tally)
    if shifted > max(gain, PRICE * tally.dimension):
        assert tally.axes is not None
        off = f"the truth lies {tally.axes.shift[axis]:+.2g} stated standard deviations from them on average."
        if tally.dimension == 1:
            there, wider, on = "", "Wider error bars hide a bias and do", "."
        else:
            there, on = f"on {axis_name(tally.class_names, axis)} ", " on that axis."
            wider = "A larger covariance hides a bias and does"
        remedy = f"{wider} not correct it: look for a wrong model, offset or unit{on}"
        return Diagnosis("shifted", f"its estimates are off to one side: {there}{off}", remedy)
    if (fault := direction_fault(tally, where)) is not None:
        return Diagnosis("only a direction", *fault)
    if tally.top is None and gain > PRICE and temperature.value > 1.0 and tally.n >= 100:
        share = tally.worst_share
        if share >= _WORST:
            return _mistakes(f"the most surprising 1 % of the rows hold {_percent(share)} of all excess above 0")
    if gain > PRICE:
        return _scaled(tally, temperature, None)
    return _places(where) if any(place.shown for place in where) else None


def _gain(tally: Tally) -> float:
    """Return how much the likelihood gains by the implied temperature."""
    law = law_of(tally)
    if law is None or not 0.0 < law.beta < math.inf:
        return 0.0 if law is None or math.isnan(law.beta) else math.inf
    if family_named(tally.family).chi_square:
        return 0.5 * tally.dimension * law.mass * (math.log(law.beta) + 1.0 / law.beta - 1.0)
    low, high = law.range
    beta = min(max(law.beta, low), high)
    return (1.0 - beta) * law.seen + law.one.value - law.at(beta).value


def _uneven(tally: Tally) -> tuple[float, int]:
    """Return about what would be gained by a bias for each predicted class, and the class that is worst."""
    orders = [order for order in tally.orders if order.label is not None]
    if len(orders) < 2:
        return 0.0, 0
    right, said, rows = (
        np.array([order.sums[:, COLUMN[name]].sum() for order in orders])
        for name in ("sum_correct", "sum_confidence", "weight")
    )
    spread = np.maximum(said * (1.0 - said / rows), 1e-9)  # at least what it is: confidences of a class differ
    gap = right - said
    gap = gap - spread * gap.sum() / spread.sum()
    total = float((gap * gap / spread).sum())
    worst = orders[int(np.argmin(gap / np.sqrt(spread)))].label
    return 0.5 * max(total - (len(orders) - 1), 0.0), 0 if worst is None else worst


def _most_shifted(tally: Tally, number: int) -> str:
    """Say which class is shifted most; ``number`` is the one that is wrong most often where it is predicted."""
    shifts = ClassShifts.of(tally)
    worst = None if shifts is None else shifts.farthest
    if worst is None:
        return f"class {tally.class_names[number] if tally.class_names else number} most"
    return f"class {worst.name} happens {worst.ratio.value:.2g} times as often as predicted"


def _scaled(tally: Tally, temperature: Interval, both: Explained | None) -> Diagnosis | None:
    t = temperature.value
    if math.isnan(t):
        return None
    words = family_named(tally.family).words.of(tally.dimension)
    how = f"its temperature is {'at least' if temperature.method.endswith('at least') else 'about'} {t:.3g}"
    if words.factor is not None:
        how = f"its {words.scaled} are about {words.times(t)}"
    also = "" if both is None else f" There is a shift of {both.shift:+.2g} in log-odds beside it."
    if t > 1.0:
        much = how if math.isfinite(t) else "its confidence tells nothing"
        remedy = "Fit `safecal.SafeTemperature` on other rows."
        if words.root:
            remedy = f"Multiply its {words.scaled}: `safecal.SafeTemperature`, fitted on other rows, finds by how much."
        if math.isinf(t):
            remedy = "No temperature helps a model whose confidence tells nothing: train it again."
        return Diagnosis("too sharp", f"{much}.{also}", remedy)
    sharper = "`safecal.SafeTemperature`, fitted on other rows, makes it sharper, as far as that is safe."
    return Diagnosis("too vague", f"{how}.{also}", sharper)


def _shifted(tally: Tally, found: Explained) -> Diagnosis:
    s = tally.summary
    assert s.sum_predicted is not None
    assert s.sum_observed is not None
    often = "more often" if found.shift > 0.0 else "less often"
    said, done = s.sum_predicted / s.weight, s.sum_observed / s.weight
    slope = f", and a slope of {found.slope:.2g}" if found.cause == "both" else ""
    if math.isinf(found.shift):
        always = "always" if found.shift > 0.0 else "never"
        evidence = f"the event {always} happened, where {_percent(said)} is predicted."
        return Diagnosis("shifted", evidence, "Look whether the outcomes are right: all of them are the same.")
    return Diagnosis(
        "shifted",
        f"the event happens {often} than it says, {_percent(done)} where {_percent(said)} is predicted: a shift of"
        f" {found.shift:+.2g} in log-odds{slope}.",
        f"{_NOT_BY_TEMPERATURE} and a slope.",
    )


def _mistakes(what: str) -> Diagnosis:
    return Diagnosis(
        "a few confident mistakes",
        f"{what}, however sure the model is; all others agree with it.",
        "Look at the most surprising rows: wrong labels, or rows of another kind? A temperature would make all"
        " other predictions vaguer.",
    )


def _places(where: Sequence[Place]) -> Diagnosis:
    place = f": {where[0].brief}" if where else ""
    return Diagnosis(
        "only in places",
        f"neither a temperature nor a shift explains it: it is wrong in some ranges of its predictions{place}.",
        "Train it with more rows from there, or correct these ranges by themselves:"
        " `safecal.recalibrate(y_true, y_prob)` on other rows does that, if there are thousands.",
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.3g} %"
