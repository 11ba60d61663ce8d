"""What a verdict is: the decision, what it rests on, and its words, which wait until they are read."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, final, get_args

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._sums import Tally
from .._sums.tally_parts import Look, decide
from .._types import Decision, Direction
from ..errors import TruthError
from ..families import family_named
from ..families.family import FamilyWords
from ..inference import Interval
from ..inference.bounds import Mistakes
from ..inference.ranges import dimensions as dimensions_of
from ..options import Limits
from .diagnosis import Diagnosis
from .groups import TooSmall
from .places import Place

__all__ = ["SAFE", "UNDETERMINED", "UNSAFE", "Average", "Late", "Scale", "Verdict", "Words", "direction"]

T = TypeVar("T")

SAFE: Final = "SAFE"
UNSAFE: Final = "UNSAFE"
UNDETERMINED: Final = "UNDETERMINED"
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@final
class Late(Generic[T]):
    """A value that is computed when it is first asked for, and kept; it is compared, copied and shown as that value."""

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute

    @classmethod
    def known(cls, value: T) -> "Late[T]":
        """Return one that is known already."""
        return cls(lambda: value)

    @property
    def value(self) -> T:
        """The value."""
        compute = self._compute
        if compute is not None:
            with np.errstate(all="ignore"):  # as in the judgement itself
                self._value = compute()
            self._compute = None
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Late) and (self.value,) == (other.value,)  # in which NaN equals itself

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Late.known, (self.value,)


class Words(NamedTuple):
    """What a verdict tells its readers: why, what is wrong, and what stands out."""

    reason: str
    diagnosis: Diagnosis | None
    worst: Late[str | None]
    worst_share: Late[float]


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """One average beside its limit."""

    interval: Interval
    limit: float
    logarithmic: bool  # whether it is a factor

    @property
    def beyond(self) -> bool:
        """Whether the lower bound exceeds the limit."""
        return self.interval.low > self.limit

    @property
    def within(self) -> bool:
        """Whether the upper bound does not; what does not exist, NaN, says nothing."""
        return not self.interval.high > self.limit


@final
@dataclass(frozen=True, slots=True)
class Average:
    """The averages over all rows, and their limits."""

    ecd: Scale
    temperature: Scale
    ratio: Scale | None
    mistakes: Mistakes | None
    dimensions: float
    threshold: float
    family: str
    dimension: int

    @classmethod
    def of(cls, tally: Tally, ecd: Interval, temperature: Interval, mistakes: Mistakes | None, limits: Limits) -> Self:
        """Put them together; the rule of averages has two scales."""
        s = tally.summary
        dimensions = float(tally.dimension)
        if limits.everywhere:
            possible = s.weight - s.weight_impossible
            dimensions = float(dimensions_of(s.sum_varentropy, possible, tally)) if possible > 0.0 else 1.0
        ratio = None
        if limits.everywhere and mistakes is not None:
            ratio = Scale(mistakes.ratio, limits.max_ratio, True)
        on_ecd = Scale(ecd, limits.threshold * dimensions, False)
        on_temperature = Scale(temperature, limits.max_temperature, True)
        return cls(on_ecd, on_temperature, ratio, mistakes, dimensions, limits.threshold, tally.family, tally.dimension)

    @property
    def words(self) -> FamilyWords:
        """What people read of the family."""
        return family_named(self.family).words.of(self.dimension)

    @property
    def scales(self) -> list[Scale]:
        """All of them."""
        return [self.ecd, self.temperature, *([] if self.ratio is None else [self.ratio])]

    @property
    def beyond(self) -> bool:
        """Whether one is beyond its limit."""
        return any(scale.beyond for scale in self.scales)

    @property
    def within(self) -> bool:
        """Whether all are within their limits."""
        return all(scale.within for scale in self.scales) and not math.isnan(self.ecd.interval.high)


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
        About how many more rows would decide in 8 of 10 cases, if the estimates are right. None when it is decided,
        when no number would decide, and when rows come in clusters.
    clusters_needed : int or None
        About how many more clusters would decide, where rows come in clusters.
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
        What is wrong with it, and what fixes it; None where nothing is found, or it is safe and not too vague.
    words : Late
        ``reason``, ``diagnosis``, ``worst`` and ``worst_share``, computed when one of them is first asked for.
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
        """What is wrong, and what fixes it; None where nothing is, or where the data do not show it."""
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
            content["looks"] = [look_verdict.to_dict() for look_verdict in self.looks]
        return documents.document("verdict", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        later = {"look": Look.from_dict, "looks": lambda value: tuple(documents.list_of(cls.from_dict)(value))}
        fields = documents.read("verdict", document, _FIELDS, later)
        reason, diagnosis, *outstanding = (fields.pop(name) for name in Words._fields)
        words = Words(reason, diagnosis, *map(Late.known, outstanding))
        verdict = cls(**fields, words=Late.known(words))
        shown, safe = bool(verdict.shown), verdict.decision == SAFE
        looks = [look_verdict.look for look_verdict in verdict.looks if look_verdict.look is not None]
        decisions = [look_verdict.decision for look_verdict in verdict.looks if look_verdict.look is not None]
        documents.every((
            (len(looks) == len(verdict.looks), "must have a `look` in each of its `looks`"),
            (not looks or verdict.decision == decide(looks, decisions)[0], "must have the `decision` of its `looks`"),
            (not shown or verdict.decision == UNSAFE,
             "must have the `decision` UNSAFE where a place is over-confident"),
            (verdict.on_average != UNSAFE or verdict.decision == UNSAFE, "must not be better than it is `on_average`"),
            (not safe or verdict.on_average == SAFE, "must not be SAFE where it is not so `on_average`"),
            (not safe or not verdict.where, "must not be SAFE where a place is suspected"),
            (not safe or not verdict.n_impossible, "must not be SAFE where something impossible happened"),
        ))  # fmt: skip
        return verdict


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
    "direction": documents.choice(*_DIRECTIONS),
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


def direction(ecd: Interval) -> Direction:
    """Say in words what the interval of an ECD means."""
    if math.isnan(ecd.value):
        return _DIRECTIONS[0]
    if math.isinf(ecd.value):
        return _DIRECTIONS[1]
    if ecd.low > 0.0:
        return _DIRECTIONS[2]
    return _DIRECTIONS[3] if ecd.high < 0.0 else _DIRECTIONS[4]
