"""Places in which the model is over-confident: what is said of them; ranges of predictions, slices and directions."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._sums.tally import Tally
from .._types import BoolArray, FloatArray, IndexArray
from ..inference.directions import judged_directions
from ..inference.local import Local, Range
from ..inference.results import Interval
from ..options import Limits
from ..slices.results import Slices
from ..visible import visible

__all__ = [
    "Place",
    "below_limit",
    "brief_range",
    "degree_of",
    "direction_places",
    "in_percent",
    "in_sentence",
    "range_places",
    "slice_places",
    "spread_times",
    "worst_first",
]

_NUMBERS = ("share", "predicted", "observed", "limit", "seen", "announced", "low", "high")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place in which the model is over-confident, or suspected to be.

    Attributes
    ----------
    type : {"range", "group", "slice", "direction"}
        A range of the predictions, a group that was named, or a slice that was found.
    name : str
        What it is called: ``"probability 0.83 to 0.88"``, ``"site north"``.
    shown : bool
        True: over-confident beyond the limit, by bounds that hold together. False: suspected, because the estimate is
        beyond the limit and a less firm lower bound above 0; more rows would tell.
    by : {"ecd", "temperature", "mistakes"}
        What is beyond its limit: the first that is.
    limit : float
        That limit: in nats, or as a factor.
    n : int
        Rows.
    share : float
        Share of all rows, or of all weight.
    predicted, observed : float
        What it says there on average, and how often that happens; NaN for states and densities.
    ecd : Interval
        ECD there; the bounds of all places of a kind hold together.
    seen, announced : float
        Mistakes that were made there, and that were announced; NaN for states and densities.
    on : {"probability", "confidence", "spread", "width", "perplexity"}
        What ``predicted`` and the ends of a range are of.
    low, high : float
        The ends of a range; NaN for groups and slices.
    temperature : Interval or None
        The temperature there, where it is what is beyond its limit; its bounds and those of ECD hold together.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> right = np.arange(2000) % 10 < np.where(np.arange(2000) < 1000, 9, 6)
    >>> verdict = safecal.evaluate(right, np.full(2000, 0.9), by=np.repeat(["east", "west"], 1000)).verdict
    >>> place = verdict.where[0]
    >>> place.name, place.n, round(place.predicted, 2), round(place.observed, 2), place.shown
    ('group west', 1000, 0.9, 0.6, True)
    """

    type: str
    name: str
    shown: bool
    by: str
    limit: float
    n: int
    share: float
    predicted: float
    observed: float
    ecd: Interval
    seen: float
    announced: float
    on: str
    low: float
    high: float
    temperature: Interval | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:  # one NaN, so that equal places are equal
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, math.nan)

    @property
    def label(self) -> str:
        """The name as a sentence can hold it: printable, on one line, not too long."""
        return in_sentence(self.name)

    @property
    def brief(self) -> str:
        """The name in a few words, for a column of a table."""
        if self.type != "range":
            return self.label
        of_class = self.name.partition(", class ")[2].removesuffix(" predicted")
        return brief_range(self.on, of_class or None, self.low, self.high)

    def __str__(self) -> str:
        return f"{self.where} ({self._rows}; {self._bound})"

    @property
    def where(self) -> str:
        """Say where it is, and what happens there."""
        if self.type == "direction":
            are = "are" if self.shown else "may be"
            return f"along {self.label} its errors {are} {spread_times(self.ecd.value):.3g} times as large as it says"
        if self.by == "mistakes":
            return f"in {self.label} it announced {_count(self.announced)} mistakes and made {_count(self.seen)}"
        if self.by == "temperature" and not math.isnan(self.predicted):
            return f"in {self.label} its logits {'are' if self.shown else 'may be'} too large"
        if self.type == "range" and self.on in _LENGTHS:
            return f"where {_LENGTHS[self.on].format(_ends(self.low, self.high))} than it says"
        if math.isnan(self.predicted) or self.on in _LENGTHS:
            return f"in {self.label} outcomes lie farther out than it says"
        if self.type != "range":
            start = f"in {self.label}" if self.type == "group" else f"where {self.label}"
            return f"{start} it is over-confident"
        said, cases = _said(self.on, self.low, self.high), in_percent(self.observed)
        if self.on == "probability":
            return f"where it {said}, it happens in {cases} of the cases"
        of_class = self.name.partition(", ")[2]
        return f"where it is {said}{', ' + of_class if of_class else ''}, it is right in {cases} of the cases"

    @property
    def _rows(self) -> str:
        return f"{self.n} row{'' if self.n == 1 else 's'}"

    @property
    def _bound(self) -> str:
        if self.by == "mistakes":
            return f"{self.limit:g} times as many are allowed"
        if self.temperature is not None:
            return self._factor(self.temperature)
        if self.type == "direction":
            allowed = f"{spread_times(self.limit):.3g} is allowed"
            return f"at least {spread_times(self.ecd.low):.3g} times, where {allowed}" if self.shown else allowed
        if math.isinf(self.ecd.low):
            return "something happened there that it had called impossible"
        if self.shown:
            return f"ECD is at least {self.ecd.low:.3g} nat, where {self.limit:.3g} is allowed"
        if math.isinf(self.ecd.high):  # too few clusters to bound it
            return f"ECD lies above {self.ecd.low:.3g} nat, and {self.limit:.3g} is allowed"
        return f"ECD lies between {self.ecd.low:.3g} and {self.ecd.high:.3g} nat, and {self.limit:.3g} is allowed"

    def _factor(self, t: Interval) -> str:
        """Say how large a temperature is: a factor of logits, for states and densities the number itself."""
        start, times = ("", " times") if not math.isnan(self.predicted) else ("its temperature is ", "")
        if self.shown:
            return f"{start}at least {t.low:.3g}{times}, where {self.limit:g} is allowed"
        return f"{start}about {t.value:.3g}{times}, and {self.limit:g} is allowed"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("type", "name", "shown", "by", "n", "on")}
        content["temperature"] = None if self.temperature is None else self.temperature.to_dict()
        numbers = {name: documents.number(getattr(self, name)) for name in _NUMBERS}
        return documents.document("place", {**content, **numbers, "ecd": self.ecd.to_dict()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        later = {"temperature": documents.optional(Interval.from_dict)}
        found = cls(**documents.read("place", document, _FIELDS, later))
        unknown = {name: math.isnan(getattr(found, name)) for name in _NUMBERS}
        ends = unknown["low"] or unknown["high"]
        documents.every((
            (unknown["predicted"] == unknown["observed"], "must have both `predicted` and `observed`, or none"),
            (unknown["seen"] == unknown["announced"], "must have both `seen` and `announced`, or none"),
            (found.by != "mistakes" or not unknown["seen"], "must have the mistakes that it is `by`"),
            (found.type != "range" or not (ends or found.low > found.high), "must have the ends of its range"),
        ))  # fmt: skip
        return found


# What rows without probabilities are ordered by, and what happens in a range of that.
_LENGTHS = {
    "spread": "its standard deviation is {}, outcomes lie farther out",
    "width": "it is {} wide, outcomes lie farther out",
    "perplexity": "its perplexity is {}, tokens are less likely",
}
_share = documents.between(0.0, 1.000001, missing=True)
_some = documents.between(0.0, missing=True)
_FIELDS: dict[str, Any] = {
    "type": documents.choice("range", "group", "slice", "direction"),
    "name": documents.text,
    "shown": documents.flag,
    "by": documents.choice("ecd", "temperature", "mistakes"),
    "limit": documents.between(0.0, inside=True, infinite=True),
    "n": documents.count(1),
    **dict.fromkeys(("share", "predicted", "observed"), _share),
    "ecd": Interval.from_dict,
    **dict.fromkeys(("seen", "announced"), _some),
    "on": documents.choice("probability", "confidence", "spread", "width", "perplexity"),
    **dict.fromkeys(("low", "high"), documents.numbers),
}


def range_places(local: Local, limits: Limits) -> list[Place]:
    """Return ranges that are over-confident beyond the limit, or suspected to be, the worst first; no row is in two."""
    limit = limits.local_threshold * local.column("dimensions")
    value = local.column("ecd")
    beyond = np.flatnonzero(value > limit)  # no lower bound lies above the estimate: the others need none
    if not len(beyond):
        return []
    low, at_least = local.lower(beyond)
    degree = degree_of(low, at_least > 0.0, value[beyond], limit[beyond])
    order = np.lexsort((-(low / limit[beyond]), -degree))
    beyond = beyond[order[degree[order] > 0]]
    label, first, last = (local.column(name).tolist() for name in ("label", "low", "high"))
    kept: list[int] = []
    for k in beyond.tolist():
        here = label[k], first[k], last[k]
        if not any(_meet(here, (label[j], first[j], last[j])) for j in kept):
            kept.append(k)
    return [_of_range(found, float(limit[k])) for k, found in zip(kept, local.some(kept), strict=True)]


def direction_places(tally: Tally, limits: Limits) -> list[Place]:
    """Return the direction of states that is over-confident beyond the limit, or suspected to be; none for others.

    It is one dimension. Where all directions together are beyond their limit, and it is not worse, they say it already.
    """
    limit, beyond = limits.local_threshold, []
    for one in judged_directions(tally, limits.level):
        shown, suspected = one.ecd.low > limit, one.at_least > 0.0 and one.ecd.value > limit
        alike = one.everywhere > limits.threshold and not max(one.ecd.low, one.at_least) > one.everywhere
        if (shown or suspected) and not alike:
            beyond.append((shown, one.ecd.low, one.at_least, one))
    if not beyond:
        return []
    shown, _, _, found = max(beyond, key=lambda worst: worst[:3])
    return [Place(
        "direction", found.name, shown, "ecd", limit, tally.n, 1.0, math.nan, math.nan, found.ecd,
        math.nan, math.nan, "spread", math.nan, math.nan,
    )]  # fmt: skip


def spread_times(ecd: float) -> float:
    """Return how many times as large as stated errors along a direction are, by their ECD."""
    return math.sqrt(max(1.0 + 2.0 * ecd, 0.0))


def slice_places(slices: Slices, limits: Limits) -> list[Place]:
    """Return slices that are over-confident beyond the limit, or suspected to be.

    Their bounds were made at one level. They prove nothing at a higher one; at a lower one they could be closer, so
    every estimate beyond the limit is suspected. A candidate that is not listed, because it is much like another one,
    is named where it is worse than all that are.
    """
    places: list[Place] = []
    if slices.direction != "over":
        return places
    others = [s for s in slices.candidates if s not in slices.found]
    for s in (*slices.found, *others):
        limit = limits.local_threshold * s.dimensions
        shown = s.firm > limit and limits.level <= slices.level
        suspected = s.ecd.value > limit and (s.ecd.low > 0.0 or limits.level < slices.level)
        told = places and (s not in slices.found) and (not shown or any(place.shown for place in places))
        if (shown or suspected) and not told:
            ecd = replace(s.ecd, low=s.firm) if shown else s.ecd
            places.append(Place(
                "slice", s.condition, shown, "ecd", limit, s.n, s.share, s.predicted, s.observed, ecd,
                math.nan, math.nan, slices.on, math.nan, math.nan,
            ))  # fmt: skip
    return places


def below_limit(slices: Slices, limits: Limits) -> str:
    """Say of slices that were found, and that the limit allows, where they are and how much they show."""
    worst = max(slices, key=lambda s: s.ecd.value / s.dimensions)
    limit = limits.local_threshold * worst.dimensions
    found = f"1 slice is over-confident, below the limit of {limit:g} nat: "
    if len(slices) > 1:
        found = f"{len(slices)} slices are over-confident, below the limit of {limit:g} nat; the worst: "
    numbers = f"ECD is {worst.ecd.value:.3g} nat ({worst.ecd.low:.3g} to {worst.ecd.high:.3g})"
    return f" But {found}where {in_sentence(worst.condition)}, {numbers}, and T is {worst.temperature.value:.3g}."


def _meet(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Tell whether two ranges may have rows in common, by their labels, NaN for all of them, and their ends."""
    (label, low, high), (other, first, last) = a, b
    inside = (first <= low and high <= last) or (low <= first and last <= high)
    together = label == other or math.isnan(label) or math.isnan(other)
    return together and (inside or (low < last and first < high))


def _of_range(r: Range, limit: float) -> Place:
    of_class = "" if r.label is None else f", class {r.label} predicted"
    unit = "standard deviation" if r.on == "spread" else r.on
    name = f"{unit} {_ends(r.low, r.high)}{of_class}"
    return Place(
        "range", name, r.ecd.low > limit, "ecd", limit, r.n, r.share, r.predicted, r.observed, r.ecd,
        math.nan, math.nan, r.on, r.low, r.high,
    )  # fmt: skip


def degree_of(low: FloatArray, some: BoolArray, value: FloatArray, limit: FloatArray) -> IndexArray:
    """Return 2 where a bound is beyond the limit, 1 where that is suspected, else 0."""
    with np.errstate(invalid="ignore"):
        return np.where(low > limit, 2, np.where(some & (value > limit), 1, 0))


def in_sentence(name: str) -> str:
    """Return a name as a sentence can hold it: printable, on one line, not too long."""
    text = visible(name).replace("`", "'")
    return text if len(text) <= 40 else text[:37] + "..."


def in_percent(share: float) -> str:
    """Write a share so that neither 0 nor 100 % is written for what is not."""
    percent = 100.0 * share
    digits = 0 if 0.95 <= percent <= 99.05 or percent in (0.0, 100.0) else 2
    return f"{percent:.{digits}f} %"


def _ends(low: float, high: float) -> str:
    """Write both ends of a range with as many digits as it takes to tell them apart."""
    for digits in range(2, 6):
        first, last = _end(low, digits), _end(high, digits)
        if first != last:
            return f"{first} to {last}"
    return first


def _end(value: float, digits: int) -> str:
    for whole in (1.0, 100.0):  # near it, digits count from there
        if 0.9 * whole < value < whole:
            return f"{whole - float(f'{whole - value:.{digits}g}'):.10g}"
    rounded = float(f"{value:.{digits}g}")
    small = 1e-9 < rounded < 1e-4
    return f"{rounded:.{digits - 1 - math.floor(math.log10(rounded))}f}" if small else f"{rounded:.10g}"


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10.0 or number == round(number) else f"{number:.2g}"


def brief_range(on: str, label: str | int | None, low: float, high: float) -> str:
    """Name a range in a few words, for a column of a table."""
    said = _said(on, low, high)
    return said if label is None else f"class {label}, {said.removesuffix(' sure')}"


def _said(on: str, low: float, high: float) -> str:
    """Say what a model says in a range."""
    if on in _LENGTHS:
        return f"{on} {_ends(low, high)}"
    ends = f"{_ends(100.0 * low, 100.0 * high)} %"
    return f"says {ends}" if on == "probability" else f"{ends} sure"


def worst_first(places: Iterable[Place]) -> tuple[Place, ...]:
    """Order places: those that are shown first."""
    return tuple(sorted(places, key=lambda place: not place.shown))
