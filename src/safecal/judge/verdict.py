"""One decision rule: on average, and in every place that can be seen."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, final

import numpy as np

from .. import documents
from .._steady import steadied
from .._sums.looks import Look, decide
from .._sums.summary import COLUMN
from .._sums.table import Table
from .._sums.tally import Tally
from .._types import Decision, Direction
from ..errors import TruthError
from ..families.predictions import family_named
from ..inference.directions import has_directions, shows_directions
from ..inference.local import Local
from ..inference.mistakes import Mistakes
from ..inference.results import Interval
from ..options import Limits
from ..slices.results import Slices
from .diagnosis import NAMED, OTHER_THAN_SCALE, Diagnosis, diagnose
from .groups import TooSmall, group_places, judge_groups, temperature_is_missing
from .places import Place, below_limit, direction_places, range_places, slice_places, worst_first
from .reasons import (
    DIRECTIONS,
    Average,
    Late,
    Words,
    average_reason,
    clusters_needed,
    direction,
    hopeless_reason,
    local_reason,
    rounded,
    rows_needed,
)

__all__ = ["SAFE", "UNDETERMINED", "UNSAFE", "Verdict", "judge"]

SAFE: Final = "SAFE"
UNSAFE: Final = "UNSAFE"
UNDETERMINED: Final = "UNDETERMINED"
_SAYS_NOTHING = 0.98  # of the largest possible entropy


@final
@steadied
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the model is safe: over-confidence ruled out on average, and shown nowhere.

    On average three scales are looked at: ECD, the temperature, and for classifiers the mistakes made over those that
    were announced. UNSAFE when a lower bound exceeds its limit, on average, in a group that was named, in a range of
    the predictions, in a slice of the features or along a direction of states; or when an impossible outcome happened.
    Groups have the same three limits. SAFE when the upper bounds of all averages are within their limits and no place
    is over-confident or suspected to be. UNDETERMINED otherwise: the data cannot tell. Predictions of exactly 0 or 1,
    and rows with a class of probability 0, are never SAFE: one failure would be an infinite surprise.

    A verdict is neither true nor false: compare its ``decision``, or use `safecal.testing.assert_safe`.

    Nats alone are blind to scale, temperature alone to importance, and both to rare events: so all three scales are
    used. The limit of 0.1 nat agrees with the readings that the paper gives of its published values: 0.060 safe, 0.163
    and 0.477 a cause for concern.

    Attributes
    ----------
    decision : {"SAFE", "UNSAFE", "UNDETERMINED"}
        The decision.
    on_average : {"SAFE", "UNSAFE", "UNDETERMINED"}
        What the averages alone would say.
    reason : str
        Why, in a sentence.
    where : tuple of Place
        Places that are over-confident beyond their limit, and those that are suspected to be; the worst first.
    ecd, temperature : Interval
        What it rests on.
    mistakes : Mistakes or None
        Mistakes made and announced; None for states and densities.
    limits : Limits
        The limits, and the level of the intervals.
    dimensions : float
        How many dimensions the rows have: two nats of varentropy each, at least one.
    rows_needed : int or None
        About how many more rows would decide in 8 of 10 cases, if the estimates are right. None when it is decided, or
        no number would, or rows come in clusters.
    clusters_needed : int or None
        The same of clusters, where rows come in clusters.
    uninformative : bool
        Whether predictions are so close to even odds that they say nothing: safe, and useless.
    direction : {"over-confident", "under-confident", "no clear direction"}
        On which side of 0 the interval of ECD lies.
    worst : str or None
        The bin or group that adds most to ECD; None when none adds to it.
    n_impossible : int
        Outcomes that the model had called impossible.
    bias : float
        Observed minus predicted over all rows; NaN for states and densities.
    worst_share : float
        Share of all excess above 0 in the most surprising 1 % of the rows: near 1, a few rows decide.
    diagnosis : Diagnosis or None
        What is wrong with it, and what mends it; None where nothing is found, or it is safe and not too vague.
    words : Late
        ``reason``, ``diagnosis``, ``worst`` and ``worst_share``: found when one of them is first asked for.
    too_small : TooSmall
        Groups that are too small to judge: how many, and their names.
    look : Look or None
        How the rows were looked at, where this is the verdict of one look among ``looks``.
    looks : tuple of Verdict
        What each look says by itself, where the rows were looked at in several ways; the first of them gave ``ecd``.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 2000)
    >>> y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
    >>> safecal.evaluate(y_true, logits=log_odds).verdict.decision
    'SAFE'
    >>> safecal.evaluate(y_true, logits=3 * log_odds).verdict.decision
    'UNSAFE'
    """

    decision: Decision
    on_average: Decision
    where: tuple[Place, ...]
    ecd: Interval
    temperature: Interval
    mistakes: Mistakes | None
    limits: Limits
    dimensions: float
    rows_needed: int | None
    clusters_needed: int | None
    uninformative: bool
    direction: Direction
    n_impossible: int
    bias: float
    words: Late[Words]
    too_small: TooSmall = field(default_factory=TooSmall)
    look: Look | None = None
    looks: tuple["Verdict", ...] = ()

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self.words.value.reason

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What is wrong, and what mends it; None where nothing is, or where the data do not tell."""
        return self.words.value.diagnosis

    @property
    def worst(self) -> str | None:
        """The bin or group that adds most to ECD; None where none adds."""
        return self.words.value.worst.value

    @property
    def worst_share(self) -> float:
        """Share of all excess above 0 that lies in the most surprising 1 % of the rows."""
        return self.words.value.worst_share.value

    @property
    def threshold(self) -> float:
        """Largest ECD that is safe on average, in nats a dimension."""
        return self.limits.threshold

    @property
    def max_temperature(self) -> float:
        """Largest temperature that is safe."""
        return self.limits.max_temperature

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return self.limits.level

    @property
    def allowed(self) -> float:
        """Largest ECD that is safe on average, in nats."""
        return self.limits.threshold * self.dimensions

    @property
    def shown(self) -> tuple[Place, ...]:
        """The places that are over-confident beyond their limit."""
        return tuple(place for place in self.where if place.shown)

    def __str__(self) -> str:
        return f"{self.decision}: {self.reason}"

    def _repr_html_(self) -> str:
        from ..html.notebook import verdict_html

        return verdict_html(self)

    def __bool__(self) -> bool:
        raise TruthError(
            "a verdict is neither true nor false: UNSAFE would pass as true.\n\n"
            'Hint: compare `verdict.decision == "SAFE"`, or use `safecal.testing.assert_safe(y_true, y_prob)`.'
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in _PLAIN}
        content |= {name: documents.number(getattr(self, name)) for name in _NUMBERS}
        content |= {name: getattr(self, name).to_dict() for name in ("ecd", "temperature", "limits")}
        content["mistakes"] = None if self.mistakes is None else self.mistakes.to_dict()
        content["diagnosis"] = None if self.diagnosis is None else self.diagnosis.to_dict()
        content |= {"where": [place.to_dict() for place in self.where], "too_small": self.too_small.to_dict()}
        if self.look is not None:
            content["look"] = self.look.to_dict()
        if self.looks:
            content["looks"] = [one.to_dict() for one in self.looks]
        return documents.document("verdict", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        later = {"look": Look.from_dict, "looks": lambda value: tuple(documents.list_of(cls.from_dict)(value))}
        fields = documents.read("verdict", document, _FIELDS, later)
        reason, diagnosis, *outstanding = (fields.pop(name) for name in Words._fields)
        words = Words(reason, diagnosis, *map(Late.known, outstanding))
        found = cls(**fields, words=Late.known(words))
        shown, safe = bool(found.shown), found.decision == SAFE
        looks = [one.look for one in found.looks if one.look is not None]
        documents.every((
            (len(looks) == len(found.looks), "must have a `look` in each of its `looks`"),
            (not looks or found.decision == decide(looks, [one.decision for one in found.looks if one.look])[0],
             "must have the `decision` of its `looks`"),
            (not shown or found.decision == UNSAFE, "must have the `decision` UNSAFE where a place is over-confident"),
            (found.on_average != UNSAFE or found.decision == UNSAFE, "must not be better than it is `on_average`"),
            (not safe or found.on_average == SAFE, "must not be SAFE where it is not so `on_average`"),
            (not safe or not found.where, "must not be SAFE where a place is suspected"),
            (not safe or not found.n_impossible, "must not be SAFE where something impossible happened"),
        ))  # fmt: skip
        return found


_DECISION, _more = documents.choice(SAFE, UNSAFE, UNDETERMINED), documents.optional(documents.count(1))
_FIELDS: dict[str, Any] = {
    "decision": _DECISION,
    "on_average": _DECISION,
    "reason": documents.words,
    "where": lambda value: tuple(documents.list_of(Place.from_dict)(value)),
    "ecd": Interval.from_dict,
    "temperature": Interval.from_dict,
    "mistakes": documents.optional(Mistakes.from_dict),
    "limits": Limits.from_dict,
    "dimensions": documents.between(1.0, infinite=True),
    "rows_needed": _more,
    "clusters_needed": _more,
    "uninformative": documents.flag,
    "direction": documents.choice(*DIRECTIONS),
    "worst": documents.optional(documents.text),
    "n_impossible": documents.count(),
    "bias": documents.between(-1.000001, 1.000001, missing=True),
    "worst_share": documents.between(0.0, 1.000001, missing=True),
    "diagnosis": documents.optional(Diagnosis.from_dict),
    "too_small": TooSmall.from_dict,
}

_NUMBERS = ("dimensions", "bias", "worst_share")
_PLAIN = (
    "decision", "on_average", "reason", "rows_needed", "clusters_needed", "uninformative", "direction", "worst",
    "n_impossible",
)  # fmt: skip


def judge(
    tally: Tally,
    *,
    ecd: Interval,
    temperature: Interval,
    mistakes: Mistakes | None,
    local: Local,
    limits: Limits,
    slices: Slices | None = None,
) -> Verdict:
    """Decide, by the intervals of the averages at the level of the limits, and by places."""
    summary, certain = tally.summary, tally.n_certain
    average = Average.of(tally, ecd, temperature, mistakes, limits)
    on_average: Decision = UNSAFE if average.beyond else SAFE if average.within else UNDETERMINED
    clustered = tally.clusters is not None
    places: tuple[Place, ...] = ()
    too_small = TooSmall()
    others: tuple[float, float] | None = None
    if limits.everywhere:
        found = direction_places(tally, limits) + range_places(local, limits)
        if tally.groups is not None:
            judged = judge_groups(tally.groups, limits, tally)
            found += group_places(tally.groups, judged, limits, tally)
            too_small = TooSmall.of(tally.groups, judged, tally)
            sums = tally.groups.sums[judged.degree < 2]
            others = (sums[:, COLUMN["sum_excess"]].sum(), sums[:, COLUMN["sum_varentropy_weight2"]].sum())
        if slices is not None:
            found += slice_places(slices, limits)
        places = worst_first(found)
    decision: Decision = on_average
    if on_average != UNSAFE and places:
        decision = UNSAFE if any(place.shown for place in places) else UNDETERMINED
    says_nothing = summary.mean_entropy >= _SAYS_NOTHING * tally.vague_entropy
    # Logits so large that no temperature lets them fail: that they did not is no evidence.
    sure = math.isnan(temperature.value) and math.isfinite(tally.most_entropy) and not says_nothing
    alone = summary.n - summary.n_impossible < 2 and not says_nothing
    # The same of a few of them: one mistake there would outweigh all other rows.
    far = getattr(tally.spectrum, "far", 0)
    # States that are few beside their axes leave some direction unseen.
    few = tally.dimension > 1 and limits.everywhere and not shows_directions(tally, limits.level)
    stopped = limits.everywhere and slices is not None and slices.interrupted
    if decision == SAFE and (certain or sure or alone or far or few or stopped):
        decision = UNDETERMINED
    undecided = on_average == decision == UNDETERMINED and not places
    hopeless = decision == UNDETERMINED and not places and bool(certain or sure or (far and on_average == SAFE))
    needed = rows_needed(summary.n, average) if undecided and not clustered and not hopeless else None
    more_clusters = clusters_needed(tally, average, limits) if undecided and clustered else None

    def words() -> Words:
        """Say why: what only a reader needs."""
        diagnosis = None
        if decision != SAFE or side == "under-confident":
            diagnosis = diagnose(tally, temperature, places, others)
        cause = "" if diagnosis is None else diagnosis.cause
        mends = family_named(tally.family).words.mends
        reason = average_reason(on_average, summary, average, scaled=cause not in OTHER_THAN_SCALE and not mends)
        if mends and diagnosis is not None and cause not in OTHER_THAN_SCALE and (on_average == UNSAFE or not places):
            reason += f" {diagnosis.evidence[:1].upper()}{diagnosis.evidence[1:]}"
        if decision == UNDETERMINED and on_average == SAFE and alone and not places:
            reason = "one row proves nothing."
        elif decision == UNDETERMINED and on_average == SAFE and few and not places:
            rows = f"{summary.n} rows{' in so few clusters' if clustered else ''}"
            reason = f"{rows} cannot show every direction of {tally.dimension} axes."
        elif decision == UNDETERMINED and on_average == SAFE and stopped and not places:
            reason = "the search for slices was stopped before its end, and none is ruled out."
        if hopeless:
            reason = hopeless_reason(tally, far=0 if sure else far)
        if places:
            reason = local_reason(on_average, reason, places, limits.level, clustered)
        if diagnosis is not None and (cause in NAMED or (cause in OTHER_THAN_SCALE and on_average == UNSAFE)):
            reason += f" Cause: {diagnosis}"
        over = slices if slices is not None and slices.direction == "over" else None
        looked_at = {
            "direction of its states": has_directions(tally),
            "range of its predictions": len(local) > 0,
            "group": tally.groups is not None,
            "slice of its features": over is not None and not over.found and len(over.features) > 0,
        }
        if decision == SAFE and limits.everywhere and any(looked_at.values()):
            reason += f" No {' and no '.join(name for name, seen in looked_at.items() if seen)} shows it."
        unseen = tally.dimension > 1 and not has_directions(tally) and (tally.look is None or bool(tally.others))
        if decision == SAFE and limits.everywhere and unseen:
            reason += " Directions of its states were not looked at."
        if decision == SAFE and limits.everywhere and over is not None and over.found:
            reason += below_limit(over, limits)
        if too_small.count:
            reason += f" {too_small}."
        if limits.everywhere and temperature_is_missing(tally):
            reason += " The temperature of groups is not known, and was not judged."
        if needed is not None:
            reason += f" About {rounded(needed)} more row{'' if needed == 1 else 's'} would decide."
        if more_clusters:
            reason += f" About {rounded(more_clusters)} more cluster{'' if more_clusters == 1 else 's'} would decide."
        if says_nothing:
            reason += " It says almost nothing: its predictions are close to even odds."
        if not limits.everywhere:
            reason += " Only averages were judged (rule: average): over-confidence in a place is not looked for."
        tables = [table for table in (tally.bins, tally.groups) if table is not None]
        return Words(reason, diagnosis, Late(lambda: _worst(tables)), Late(lambda: tally.worst_share))

    side = direction(ecd)
    return Verdict(
        decision=decision, on_average=on_average, where=places, ecd=ecd, temperature=temperature, mistakes=mistakes,
        limits=limits, dimensions=average.dimensions, rows_needed=needed, clusters_needed=more_clusters,
        uninformative=says_nothing, direction=side, n_impossible=summary.n_impossible, bias=summary.bias,
        words=Late(words), too_small=too_small, look=tally.look,
    )  # fmt: skip


def _worst(tables: Sequence[Table]) -> str | None:
    """Return the key that adds most to ECD."""
    found: list[tuple[float, str]] = []
    for table in tables:
        ecd = table.ecd
        above = np.flatnonzero(ecd > 0.0)
        if len(above):
            adds = (table.weights * ecd)[above]
            largest = adds.max()
            found += [(float(largest), f"{table.name} {table.label(k)}") for k in above[adds == largest].tolist()]
    return max(found)[1] if found else None
