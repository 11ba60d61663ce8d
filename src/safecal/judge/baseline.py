"""No worse than the last release: an evaluation beside an earlier one, of the same model or of its predecessor.

The two may be of different rows. Each difference has an interval that takes them as independent; if both releases saw
the same rows, the intervals are wider than they need be. Where rows of the baseline come in clusters, its intervals
are those of clusters; a document does not tell which rows of a place are of one cluster, and then the place is UNCLEAR.
"""

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._checks import fail
from .._checks.columns import steadied
from .._sums import Tally
from .._sums.summary import COLUMN
from .._types import FloatArray, IndexArray
from ..errors import InputError, visible
from ..inference import Interval
from ..inference.bounds import Mistakes
from ..inference.sum_bounds import bounds_by_key, clustered_bounds
from .decision import smaller_end
from .evaluation import Evaluation
from .places import Place

__all__ = ["NOT_WORSE", "UNCLEAR", "WORSE", "Baseline", "Change"]

WORSE, NOT_WORSE, UNCLEAR = "WORSE", "NOT WORSE", "UNCLEAR"


@final
@dataclass(frozen=True, slots=True)
class Change:
    """One number, before and now.

    Attributes
    ----------
    name : str
        What it is: ``"ECD"``, ``"temperature"``, ``"mistakes"`` or the name of a place.
    before, now : float
        Its value in each evaluation.
    change : Interval
        By how much it rose: a difference in nats, a factor for temperatures and ratios of mistakes.
    margin : float
        The largest rise that does not count as worse.
    factor : bool
        Whether the change is a factor, not a difference.

    Examples
    --------
    >>> import safecal
    >>> before = safecal.evaluate([1, 0, 1, 1] * 200, [0.8, 0.3, 0.7, 0.6] * 200)
    >>> now = safecal.evaluate([1, 0, 1, 1] * 200, [0.9, 0.2, 0.9, 0.7] * 200)
    >>> [change.name for change in safecal.Baseline.of(now, before).changes]
    ['ECD', 'temperature', 'mistakes']
    """

    name: str
    before: float
    now: float
    change: Interval
    margin: float
    factor: bool

    @property
    def decision(self) -> str:
        """``"WORSE"``, ``"NOT WORSE"`` or ``"UNCLEAR"``."""
        nothing = 1.0 if self.factor else 0.0
        if self.change.low > nothing:
            return WORSE
        return NOT_WORSE if self.change.high <= self.margin else UNCLEAR

    def __str__(self) -> str:
        start, at = f"{visible(self.name)}: {self.before:.3g} before, {self.now:.3g} now", self.change
        if math.isinf(at.high) and math.isinf(at.low) and not math.isinf(at.value):
            return f"{start}, without bounds: unclear"
        return f"{start} ({at.low:.3g} to {at.high:.3g} {'times' if self.factor else 'nat'}): {self.decision.lower()}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: documents.number(getattr(self, name)) for name in ("before", "now", "margin")}
        content = {"name": self.name, **numbers, "change": self.change.to_dict(), "factor": self.factor}
        return documents.document("change", {**content, "decision": self.decision})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields: dict[str, Any] = dict.fromkeys(("before", "now", "margin"), documents.numbers)
        fields |= {"name": documents.text, "change": Interval.from_dict, "factor": documents.flag}
        values = documents.read("change", document, fields, {"decision": _DECISION})
        decision = values.pop("decision", None)
        change = cls(**values)
        documents.every([(decision in (None, change.decision), f"must have the `decision` {change.decision}")])
        return change


_DECISION = documents.choice(WORSE, NOT_WORSE, UNCLEAR)


@final
@steadied
@dataclass(frozen=True, slots=True)
class Baseline:
    """An evaluation beside an earlier one.

    WORSE when a number rose beyond doubt; NOT WORSE when every rise is within its margin, half of what the limits
    allow; UNCLEAR otherwise. All intervals hold together.

    Attributes
    ----------
    changes : tuple of Change
        ECD, the temperature and the mistakes of all rows, and ECD in the places that are worst now.
    level : float
        Level at which all intervals hold together.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 4000)
    >>> y_true = rng.random(4000) < 1 / (1 + np.exp(-z))
    >>> before, now = safecal.evaluate(y_true, logits=z), safecal.evaluate(y_true, logits=1.4 * z)
    >>> safecal.Baseline.of(now, before).decision
    'WORSE'
    """

    changes: tuple[Change, ...]
    level: float

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, now: Evaluation, before: Evaluation) -> Self:
        """Compare two evaluations.

        Parameters
        ----------
        now, before : Evaluation
            Of the same family, and of as many classes or dimensions.

        Returns
        -------
        Baseline
            What changed.
        """
        for name, value in (("now", now), ("before", before)):
            if not isinstance(value, Evaluation):
                hint = "read a document with `safecal.Evaluation.from_dict(document)`."
                raise fail(InputError, name, "must be an Evaluation", got=type(value).__name__, hint=hint)
        _same_kind(now.tally, before.tally)
        limits = now.limits
        between = smaller_end(now.verdict.looks) is not None  # then places have an end each, and do not compare
        places = [] if between else [place for place in now.verdict.where if place.shown][:3]
        count = 3 + len(places)
        level = 1.0 - (1.0 - limits.level) / count
        changes = [_change_of_ecd(now, before, level, between)]
        a, b = (evaluation.bounds.temperature(level) for evaluation in (now, before))
        if not (math.isnan(a.value) and math.isnan(b.value)):
            changes.append(_change_of_ratio("temperature", a, b, math.sqrt(limits.max_temperature)))
        made, earlier = (Mistakes.of(evaluation.tally, level) for evaluation in (now, before))
        if made is not None and earlier is not None:
            changes.append(_change_of_ratio("mistakes", made.ratio, earlier.ratio, math.sqrt(limits.max_ratio)))
        in_places = (_change_in_place(place, before.tally, level) for place in places)
        return cls((*changes, *(change for change in in_places if change is not None)), limits.level)

    @property
    def decision(self) -> str:
        """``"WORSE"``, ``"NOT WORSE"`` or ``"UNCLEAR"``."""
        decisions = {change.decision for change in self.changes}
        return WORSE if WORSE in decisions else UNCLEAR if UNCLEAR in decisions else NOT_WORSE

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        named = [str(change) for change in self.changes if change.decision == self.decision]
        start = {
            WORSE: "it is more over-confident than before",
            NOT_WORSE: "nothing rose by more than half of what is allowed",
            UNCLEAR: "the data cannot tell whether it is worse than before",
        }[self.decision]
        return f"{start}: {'; '.join(named)}. The intervals hold together at {100 * self.level:g} % confidence."

    def __str__(self) -> str:
        whether = "UNCLEAR whether it is worse" if self.decision == UNCLEAR else self.decision
        return f"{whether} than the baseline: {self.reason}"

    def __repr__(self) -> str:
        return textwrap.fill(str(self), 78, break_long_words=False, break_on_hyphens=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"decision": self.decision, "reason": self.reason, "level": self.level}
        return documents.document("baseline", {**content, "changes": [change.to_dict() for change in self.changes]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = {"changes": documents.list_of(Change.from_dict, 1), "level": documents.LEVEL}
        values = documents.read("baseline", document, fields, {"decision": _DECISION, "reason": documents.words})
        baseline = cls(tuple(values["changes"]), values["level"])
        decision = values.get("decision", baseline.decision)
        documents.every([(decision == baseline.decision, f"must have the `decision` {baseline.decision}")])
        return baseline


def _same_kind(now: Tally, before: Tally) -> None:
    for name in ("family", "dimension", "most_entropy"):
        a, b = getattr(now, name), getattr(before, name)
        if a != b:
            raise fail(
                InputError, "baseline", f"must be of the same kind; its `{name}` is {b!r}", got=f"{a!r} now",
                hint="compare evaluations of the same family, and of as many classes or dimensions.",
            )  # fmt: skip


def _change_of_ecd(now: Evaluation, before: Evaluation, level: float, between: bool) -> Change:
    """Compare ECD; where it is known between bounds, from the least that it can have risen to the most."""
    margin, a, b = 0.5 * now.verdict.allowed, now.bounds.interval(level), before.bounds.interval(level)
    change = _change_of_value("ECD", a, b, margin)
    if not between:
        return change
    smaller, earlier = (evaluation.looks[0].bounds.interval(level) for evaluation in (now, before))
    low = _change_of_value("ECD", smaller, b, margin).change.low
    high = _change_of_value("ECD", a, earlier, margin).change.high
    return replace(change, change=replace(change.change, low=low, high=high))


def _change_of_value(name: str, now: Interval, before: Interval, margin: float) -> Change:
    """Take two independent intervals apart: the squares of their arms add up (MOVER)."""
    value = now.value - before.value if now.value != before.value else 0.0
    if math.isinf(value):  # something impossible happened in one of the two alone
        interval = Interval(value, value, value, now.level, "an impossible outcome happened")
        return Change(name, before.value, now.value, interval, margin, False)
    low = value - _arm(now.value - now.low, before.high - before.value)
    high = value + _arm(now.high - now.value, before.value - before.low)
    interval = Interval(value, low, high, now.level, "arms of both intervals")
    return Change(name, before.value, now.value, interval, margin, False)


def _arm(a: float, b: float) -> float:
    return math.inf if math.isnan(a) or math.isnan(b) else math.hypot(a, b)


def _change_of_ratio(name: str, now: Interval, before: Interval, margin: float) -> Change:
    logs = _change_of_value(name, _mapped(_logarithm, now), _mapped(_logarithm, before), math.log(margin)).change
    return Change(name, before.value, now.value, _mapped(_factor, logs), margin, True)


def _mapped(function: Callable[[float], float], interval: Interval) -> Interval:
    value, low, high = map(function, (interval.value, interval.low, interval.high))
    return replace(interval, value=value, low=low, high=high)


def _logarithm(x: float) -> float:
    return math.nan if math.isnan(x) else -math.inf if x <= 0.0 else math.log(x)


def _factor(x: float) -> float:
    return math.inf if x > 700.0 else math.exp(x)


def _change_in_place(place: Place, before: Tally, level: float) -> Change | None:
    """Compare the ECD of a place; None where the baseline has no such place."""
    rows = _rows_in(place, before)
    if rows is None or rows.sums[0] == 0.0:
        return None
    ecd = float(rows.sums[COLUMN["sum_excess"]] / rows.sums[COLUMN["weight"]])
    low, high = rows.bounds(0.5 * (1.0 - level))
    # The place was chosen among many because it is bad now: so its bounds are those that hold for all of them.
    return _change_of_value(place.name, place.ecd, Interval(ecd, low, high, level, ""), 0.5 * place.limit)


class _PlaceRows(NamedTuple):
    """The rows of a place: their sums, and those of each of their clusters, where these are told apart."""

    sums: FloatArray
    clustered: bool
    clusters: tuple[IndexArray, FloatArray] | None = None

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Bound the ECD; infinite where rows depend on each other, and which do is not known."""
        if not self.clustered:
            low, high = bounds_by_key(self.sums[None, :], alpha)
        elif self.clusters is None:
            return -math.inf, math.inf
        else:
            cluster, sums = self.clusters
            low, high = clustered_bounds(np.zeros(len(cluster), dtype=np.intp), cluster, sums, 1, alpha)
        return float(low[0]), float(high[0])


def _rows_in(place: Place, tally: Tally) -> _PlaceRows | None:
    """Find the rows of a place; None of what has no rows of its own, or an earlier one need not have looked at."""
    clustered = tally.clusters is not None
    if place.type == "group" and tally.groups is not None:
        groups, pairs = tally.groups, tally.pairs
        names = [k for k in range(len(groups)) if f"{groups.name} {groups.label(k)}" == place.name]
        if not names:
            return None
        row, key = groups.sums[names[0]], groups.keys[names[0]]
        if pairs is None:
            return _PlaceRows(row, clustered)
        in_group = pairs.key == pairs.keys.index(key)
        return _PlaceRows(row, clustered, (pairs.cluster[in_group], pairs.sums[in_group]))
    if place.type != "range":
        return None
    cells = tally.cell_pairs
    for order in tally.orders:
        of_class = "" if order.label is None else f", class {order.label} predicted"
        if place.name.partition(",")[2] != of_class[1:]:
            continue
        whole = order.coarsened() if clustered else order
        inside = (whole.low >= place.low * (1.0 - 1e-12)) & (whole.high <= place.high * (1.0 + 1e-12))
        row = np.asarray(whole.sums[inside].sum(axis=0))
        if cells is None or not (cells.classes or order.label is None):
            return _PlaceRows(row, clustered)
        pairs_of = cells.of_order(order.label)
        in_range = np.isin(pairs_of.cell, whole.coarse[inside])
        return _PlaceRows(row, clustered, (pairs_of.cluster[in_range], pairs_of.sums[in_range]))
    return None
