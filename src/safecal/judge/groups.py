"""Groups that the user named: each is held to the three limits of the average, by bounds that hold for all of them."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._sums import Tally
from .._sums.summary import COLUMN
from .._sums.table import Table
from .._sums.tally_parts import columns_of
from .._types import BoolArray, Decision, FloatArray, IndexArray
from ..errors import TruthError
from ..families import family_named
from ..inference import Interval
from ..inference.bounds import heaviest_weight, ratio_bounds
from ..inference.key_temperatures import Hot, KeyLaw, KeyTemperatures, NodeKeys, StateKeys
from ..inference.ranges import SHOWN, SUSPECTED, GroupEvenness, dimensions
from ..inference.sum_bounds import clustered_ratios, firm_and_weak_bounds, firm_and_weak_ends, mistakes_by_key
from ..options import Limits
from .places import Place, degree_of, in_sentence

__all__ = [
    "GroupVerdict", "JudgedGroups", "TooSmall", "group_places", "group_verdict", "groups_are_unbounded",
    "judge_groups", "temperature_is_missing",
]  # fmt: skip

_SCALES = ("ecd", "temperature", "mistakes")  # ways in which a group may be beyond its limits
_LISTED, _NAMED = 20, 3  # groups that are too small: those that are listed, and those that a sentence names


class JudgedGroups(NamedTuple):
    """What is known of each group: bounds that hold for all of them together, limits, and what is beyond them.

    ``by_ecd``, ``by_temperature`` and ``by_mistakes`` are 2 where a limit is exceeded, 1 where that is suspected, else
    0. ``hot`` compares each group with the largest temperature that is allowed; None where temperatures are not known.
    """

    low: FloatArray
    high: FloatArray
    limit: FloatArray  # of ECD
    level: float  # of each interval
    seen: FloatArray
    announced: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray
    hot: Hot | None
    temperatures: KeyTemperatures | None
    by_ecd: IndexArray
    by_temperature: IndexArray
    by_mistakes: IndexArray
    degree: IndexArray  # the largest of the three
    within: BoolArray  # whether no upper bound exceeds its limit
    uneven: bool  # whether groups are suspected because they differ, though none shows it by itself

    def by(self, k: int) -> str:
        """Name the first scale on which a group is beyond its limit, or suspected to be."""
        degrees = [int(degree[k]) for degree in (self.by_ecd, self.by_temperature, self.by_mistakes)]
        return _SCALES[degrees.index(max(degrees))]

    def interval(self, ecd: float, k: int) -> Interval:
        """Return the ECD of a group with its bounds."""
        return Interval(ecd, float(self.low[k]), float(self.high[k]), self.level, "from sums")

    def temperature(self, groups: IndexArray) -> list[Interval]:
        """Return the temperatures of some groups with their bounds; NaN where they are not known."""
        if self.temperatures is None:
            return [Interval(math.nan, math.nan, math.nan, self.level, "none: not known")] * len(groups)
        ends = (x.tolist() for x in self.temperatures.intervals(groups))
        return [Interval(t, low, high, self.level, "from sums") for t, low, high in zip(*ends, strict=True)]

    def ratio(self, k: int) -> Interval | None:
        """Return the ratio of mistakes of a group with its bounds; None for states and densities."""
        seen, announced = float(self.seen[k]), float(self.announced[k])
        if math.isnan(seen):
            return None
        value = seen / announced if announced > 0.0 else math.inf if seen > 0.0 else math.nan
        return Interval(value, float(self.ratio_low[k]), float(self.ratio_high[k]), self.level, "from sums")


def judge_groups(groups: Table, limits: Limits, tally: Tally, parts: int | None = None) -> JudgedGroups:
    """Bound every group of a tally, or some of them, and hold each to its own limits.

    Groups of several columns share their error in equal ``parts`` with those of each column by itself.

    With clusters a temperature is only ever suspected, never shown to be beyond its limit: how rows of one cluster
    depend on each other is summed by group at the model's own temperature alone.
    """
    sums = groups.sums
    count = max(int(np.count_nonzero((groups if tally.groups is None else tally.groups).n)), 1)
    columns = columns_of(tally.groups)
    parts = parts or (1 if columns < 2 else columns + 1)
    alpha = SHOWN * (1.0 - limits.level) / count / len(_SCALES) / parts
    bounds = _bounds(groups, tally, alpha)
    possible = sums[:, COLUMN["weight"]] - sums[:, COLUMN["weight_impossible"]]
    limit = limits.threshold * dimensions(sums[:, COLUMN["sum_varentropy"]], possible, tally)
    seen, announced = mistakes_by_key(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = seen / announced
        unbounded = groups_are_unbounded(tally)  # then every estimate beyond a limit is suspected
        above = (bounds.at_least > 0.0) | unbounded
        within = (bounds.high <= limit) & ~(bounds.ratio_high > limits.max_ratio) & (announced != 0.0)
    temperatures, hot, by_temperature = None, None, np.zeros(len(groups), dtype=np.intp)
    law = _surprise_law(groups, tally)
    if law is not None:
        with np.errstate(invalid="ignore"):
            reach = None if tally.clusters is None else bounds.high - groups.ecd
            temperatures = KeyTemperatures(law, sums, alpha, reach)
            hot = temperatures.beyond(limits.max_temperature)
            within &= ~(hot.high > 0.0)
        by_temperature = degree_of(hot.low, above, hot.value, np.zeros(len(groups)))
    by_ecd = degree_of(bounds.low, above, groups.ecd, limit)
    by_mistakes = degree_of(
        bounds.ratio_low, (bounds.ratio_low > 1.0) | unbounded, ratio, np.full(len(groups), limits.max_ratio)
    )
    degree = np.maximum(np.maximum(by_ecd, by_temperature), by_mistakes)
    uneven, beyond = False, groups.ecd > limit
    if groups is tally.groups and not degree.any() and beyond.any():
        evenness = GroupEvenness.of(tally)
        uneven = evenness is not None and evenness.p_value < 1.0 - limits.level
        if evenness is not None and uneven:
            degree = by_ecd = evenness.standing_out(beyond, limits.level).astype(np.intp)
    return JudgedGroups(
        low=bounds.low, high=bounds.high, limit=limit, level=1.0 - 2.0 * alpha, seen=seen, announced=announced,
        ratio_low=bounds.ratio_low, ratio_high=bounds.ratio_high, hot=hot, temperatures=temperatures, by_ecd=by_ecd,
        by_temperature=by_temperature, by_mistakes=by_mistakes, degree=degree, within=within, uneven=uneven,
    )  # fmt: skip


def _surprise_law(groups: Table, tally: Tally) -> Callable[[IndexArray], KeyLaw] | None:
    """Return what tells how the surprise of some groups is distributed; None where that is not known."""
    if tally.group_nodes is not None:
        most_entropy = math.nan if tally.n_certain or tally.room is not None else tally.most_entropy
        nodes = tally.group_nodes.of(groups.keys)
        return lambda keys: NodeKeys(nodes.take(keys), groups.sums[keys], most_entropy)
    return (lambda keys: StateKeys(groups.sums[keys])) if family_named(tally.family).chi_square else None


class _Bounds(NamedTuple):
    """Bounds on the ECD of each group, a less firm lower one, and bounds on its ratio of mistakes."""

    low: FloatArray
    high: FloatArray
    at_least: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray


def _bounds(groups: Table, tally: Tally, alpha: float) -> _Bounds:
    sums, weaker = groups.sums, alpha * SUSPECTED / SHOWN
    if tally.clusters is None:
        seen, announced = mistakes_by_key(sums)
        heaviest = heaviest_weight(tally) if tally.weighted else 1.0
        squared = seen * heaviest  # as if every mistake weighed as much: never too narrow
        if tally.weighted and tally.group_nodes is not None:
            known = tally.group_nodes.of(groups.keys).squared_mistakes
            squared = squared if known is None else known
        ratios = ratio_bounds(seen, squared, announced, alpha, heaviest)
        return _Bounds(*firm_and_weak_bounds(sums, alpha, weaker), *ratios)
    unknown = np.full(len(groups), math.inf)
    if tally.pairs is None:
        return _Bounds(-unknown, unknown, -unknown, np.zeros(len(groups)), unknown)
    pairs, places = tally.pairs, {key: k for k, key in enumerate(groups.keys)}
    place = np.array([places.get(key, -1) for key in pairs.keys], dtype=np.intp)[pairs.key]
    cluster, of_pair, kept = pairs.cluster, pairs.sums, place >= 0
    if not kept.all():
        place, cluster, of_pair = place[kept], cluster[kept], of_pair[kept]
    impossible = sums[:, COLUMN["weight_impossible"]] > 0.0
    ends = firm_and_weak_ends(place, of_pair, len(groups), alpha, weaker)
    low, high, at_least = (np.where(impossible, math.inf, x) for x in ends)
    ratio_low, ratio_high = clustered_ratios(place, cluster, of_pair, len(groups), alpha)
    return _Bounds(low, high, at_least, np.nan_to_num(ratio_low, nan=0.0), ratio_high)


def group_places(groups: Table, judged: JudgedGroups, limits: Limits, tally: Tally) -> list[Place]:
    """Return the groups that are over-confident beyond a limit, or suspected to be; the worst first."""
    n, predicted, observed, ecd = groups.n, groups.predicted, groups.observed, groups.ecd
    share = groups.column("weight") / tally.summary.weight
    order = np.flatnonzero(judged.degree)
    order = order[np.lexsort((-ecd[order], -judged.low[order] / judged.limit[order], -judged.degree[order]))]
    by = {k: judged.by(k) for k in order.tolist()}
    hot = [k for k in by if by[k] == "temperature"]
    temperatures = dict(zip(hot, judged.temperature(np.array(hot, dtype=np.intp)), strict=True)) if hot else {}
    allowed = {"temperature": limits.max_temperature, "mistakes": limits.max_ratio}
    on = "confidence" if groups.top_label else "probability"
    return [
        Place(
            type="group", name=_name(groups, k), shown=bool(judged.degree[k] == 2), by=scale,
            limit=allowed.get(scale, float(judged.limit[k])), n=int(n[k]), share=float(share[k]),
            predicted=float(predicted[k]), observed=float(observed[k]), ecd=judged.interval(float(ecd[k]), k),
            seen=float(judged.seen[k]), announced=float(judged.announced[k]), on=on, low=math.nan, high=math.nan,
            temperature=temperatures.get(k),
        )
        for k, scale in by.items()
    ]  # fmt: skip


def _name(groups: Table, k: int) -> str:
    label = groups.label(k)
    return f"{groups.name} {label or repr(label)}"


@final
@dataclass(frozen=True, slots=True)
class TooSmall:
    """Groups that are too small to judge: their bounds neither show nor rule out over-confidence beyond the limits.

    Groups that are suspected are places of the verdict, and not among them.

    Attributes
    ----------
    count : int
        How many there are.
    names : tuple of str
        What they are called, those with the fewest rows first; the first 20.
    rows : tuple of int
        Rows of each that is named.

    Examples
    --------
    >>> import safecal
    >>> safecal.evaluate([1, 0, 1, 1], [0.8, 0.3, 0.6, 0.9], by=["a", "a", "a", "b"]).verdict.too_small.rows
    (1, 3)
    """

    count: int = 0
    names: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    @classmethod
    def of(cls, groups: Table, judged: JudgedGroups, tally: Tally) -> Self:
        """Find them among groups that were judged.

        Parameters
        ----------
        groups : Table
            The groups.
        judged : JudgedGroups
            What is known of each.
        tally : Tally
            All sums.

        Returns
        -------
        TooSmall
            Empty where clusters were read from a document, which says nothing of groups.
        """
        if groups_are_unbounded(tally):
            return cls()
        n = groups.n
        undecided = np.flatnonzero((judged.degree == 0) & ~judged.within & (n > 0))
        first = undecided[np.argsort(n[undecided], kind="stable")][:_LISTED].tolist()
        return cls(len(undecided), tuple(_name(groups, k) for k in first), tuple(n[first].tolist()))

    def __str__(self) -> str:
        if not self.count:
            return "no group is too small to judge"
        listed = zip(self.names[:_NAMED], self.rows, strict=False)
        named = ", ".join(f"{in_sentence(name)} ({n} row{'' if n == 1 else 's'})" for name, n in listed)
        more = f" and {self.count - _NAMED} more" if self.count > _NAMED else ""
        start = "1 group is" if self.count == 1 else f"{self.count} groups are"
        return f"{start} too small to judge: {named}{more}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        groups = [{"name": name, "rows": n} for name, n in zip(self.names, self.rows, strict=True)]
        return documents.document("too_small", {"count": self.count, "groups": groups})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        group = documents.record({"name": documents.text, "rows": documents.count(1)})
        fields = {"count": documents.count(), "groups": documents.list_of(group, 0, _LISTED)}
        values = documents.read("too_small", document, fields)
        groups = values["groups"]
        if len(groups) != min(values["count"], _LISTED):
            documents.refuse(f"must name as many groups as `count` says, up to {_LISTED}; got {len(groups)}")
        return cls(values["count"], tuple(g["name"] for g in groups), tuple(g["rows"] for g in groups))


@final
@steadied
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """Whether the model is safe in a group. Its bounds hold together with those of all other groups.

    UNSAFE when a lower bound exceeds its limit, SAFE when the upper bounds of all three scales are within theirs;
    UNDETERMINED otherwise. Predictions of exactly 0 or 1 anywhere, and temperatures that are not known, prevent SAFE.
    It is neither true nor false: compare its ``decision``.

    Attributes
    ----------
    name : str
        What the group is called: ``"site north"``.
    decision : {"SAFE", "UNSAFE", "UNDETERMINED"}
        The decision.
    n : int
        Rows.
    place : Place or None
        What is beyond its limit, or suspected to be, as the verdict names it.
    ecd : Interval
        ECD in the group.
    temperature : Interval
        The temperature that the group asks for; NaN where it is not known.
    ratio : Interval or None
        Mistakes made over mistakes announced; None for states and densities.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> right = np.arange(2000) % 10 < np.where(np.arange(2000) < 1000, 9, 6)
    >>> result = safecal.evaluate(right, np.full(2000, 0.9), by=np.repeat(["east", "west"], 1000))
    >>> result.group_verdict("west").decision, result.group_verdict("east").decision
    ('UNSAFE', 'SAFE')
    """

    name: str
    decision: Decision
    n: int
    place: Place | None
    ecd: Interval
    temperature: Interval
    ratio: Interval | None

    def __str__(self) -> str:
        if self.place is not None:
            return f"{self.decision}: {self.place}."
        meaning = {
            "SAFE": "over-confidence beyond the limits is ruled out",
            "UNDETERMINED": "over-confidence beyond the limits is neither shown nor ruled out",
        }[self.decision]
        return f"{self.decision}: in {in_sentence(self.name)} {meaning} ({self.n} row{'' if self.n == 1 else 's'})."

    def __bool__(self) -> bool:
        raise TruthError(
            "the verdict of a group is neither true nor false: UNSAFE would pass as true.\n\n"
            'Hint: compare `evaluation.group_verdict(key).decision == "SAFE"`.'
        )


def group_verdict(tally: Tally, limits: Limits, key: Hashable) -> GroupVerdict:
    """Judge one group of a tally; a KeyError where there is none of that name."""
    assert tally.groups is not None
    group = tally.groups.only(key)
    judged = judge_groups(group, limits, tally)
    places = group_places(group, judged, limits, tally)
    known = judged.hot is not None or not temperature_is_missing(tally)
    safe = bool(judged.within[0]) and not places and known and not tally.n_certain
    decision: Decision = "UNSAFE" if places and places[0].shown else "SAFE" if safe else "UNDETERMINED"
    return GroupVerdict(
        name=_name(group, 0), decision=decision, n=int(group.n[0]), place=places[0] if places else None,
        ecd=judged.interval(float(group.ecd[0]), 0), temperature=judged.temperature(np.array([0]))[0],
        ratio=judged.ratio(0),
    )  # fmt: skip


def temperature_is_missing(tally: Tally) -> bool:
    """Tell whether groups of a classifier have no temperature, because an early document did not hold it."""
    return tally.group_nodes is None and math.isfinite(tally.most_entropy)


def groups_are_unbounded(tally: Tally) -> bool:
    """Tell whether groups have no bounds: a document does not tell rows of one cluster from others."""
    return tally.groups is not None and tally.clusters is not None and tally.pairs is None
