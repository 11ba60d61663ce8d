"""A place in which the model is over-confident, and what is said of it: in a sentence, and in a row of a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import BoolArray, FloatArray, IndexArray
from ..errors import visible
from ..inference import Interval
from ..inference.bounds import mistakes_text

__all__ = ["Place", "brief_range", "degree_of", "in_sentence", "place_rows", "range_ends", "spread_times"]

_COLUMNS = ("place", "rows", "share", "it says", "happens", "ECD at least", "allowed", "finding")  # of a table
_NUMBERS = ("share", "predicted", "observed", "limit", "seen", "announced", "low", "high")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place in which the model is over-confident, or suspected to be.

    Attributes
    ----------
    type : {"range", "group", "slice", "direction"}
        A range of the predictions, a group that was named, a slice that was found, or a direction of states.
    name : str
        What it is called: ``"probability 0.83 to 0.88"``, ``"site north"``.
    shown : bool
        True: over-confident beyond the limit, by bounds that hold together. False: suspected, because the estimate is
        beyond the limit, and either a less firm lower bound is above 0, or the calibration of ranges differs; more rows
        would decide.
    by : {"ecd", "temperature", "mistakes"}
        What is beyond its limit; the first one, if there are several.
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
        Mistakes that were made there, and that were announced; of a class, how often it happened. NaN for states and
        densities.
    on : {"probability", "confidence", "spread", "width", "perplexity"}
        What ``predicted`` and the ends of a range measure.
    low, high : float
        The ends of a range; NaN for groups and slices.
    temperature : Interval or None
        The temperature there, given where it is beyond its limit; its bounds and those of ECD hold together.

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
        return f"{self.where} ({self.n} row{'' if self.n == 1 else 's'}; {self._bound})"

    @property
    def where(self) -> str:
        """Say where it is, and what happens there."""
        if self.type == "direction":
            are = "are" if self.shown else "may be"
            return f"along {self.label} its errors {are} {spread_times(self.ecd.value):.3g} times as large as it says"
        if self.by == "mistakes" and not self._in_shares:
            place = f"in {self.label}"
            if self.type == "range":
                place = f"where it {'is ' if self.on == 'confidence' else ''}{_stated(self.on, self.low, self.high)}"
            announced, made = mistakes_text(self.announced), mistakes_text(self.seen)
            if self.type == "class":
                return f"{self.label} was announced {announced} times and happened {made} times"
            return f"{place} it announced {announced} mistakes and made {made}"
        if self.by == "temperature" and not math.isnan(self.predicted):
            return f"in {self.label} its logits {'are' if self.shown else 'may be'} too large"
        if self.type == "range" and self.on in _LENGTHS:
            return f"where {_LENGTHS[self.on].format(range_ends(self.low, self.high))} than it says"
        if math.isnan(self.predicted) or self.on in _LENGTHS:
            return f"in {self.label} outcomes lie farther out than it says"
        if self.type != "range":
            start = f"{'in' if self.type == 'group' else 'where'} {self.label}"
            return f"{start} it {'is' if self.shown else 'may be'} over-confident"
        stated, cases = _stated(self.on, self.low, self.high), _in_percent(self.observed)
        if self.on == "probability":
            return f"where it {stated}, it happens in {cases} of the cases"
        of_class = self.name.partition(", ")[2].removesuffix(" predicted")
        predicts = f"predicts {of_class} and " if of_class else ""
        return f"where it {predicts}is {stated}, it is right in {cases} of the cases"

    @property
    def _in_shares(self) -> bool:
        """Whether a range announces so many mistakes that shares tell more than counts."""
        return self.type == "range" and self.announced >= 0.1 * self.n

    @property
    def _bound(self) -> str:
        if self.by == "mistakes":
            counts = f"{self.seen:.0f} mistakes for {self.announced:.0f} announced, " if self._in_shares else ""
            return f"{counts}{self.limit:.3g} times as many are allowed"
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
        place = cls(**documents.read("place", document, _FIELDS, later))
        unknown = {name: math.isnan(getattr(place, name)) for name in _NUMBERS}
        ends = unknown["low"] or unknown["high"]
        documents.every((
            (unknown["predicted"] == unknown["observed"], "must have both `predicted` and `observed`, or none"),
            (unknown["seen"] == unknown["announced"], "must have both `seen` and `announced`, or none"),
            (place.by != "mistakes" or not unknown["seen"], "must have `seen` mistakes where it is `by` mistakes"),
            (place.type != "range" or not (ends or place.low > place.high), "must have the ends of its range"),
        ))  # fmt: skip
        return place


# What rows without probabilities are ordered by, and what happens in a range of that.
_LENGTHS = {
    "spread": "its standard deviation is {}, outcomes lie farther out",
    "width": "it is {} wide, outcomes lie farther out",
    "perplexity": "its perplexity is {}, tokens are less likely",
}
_share = documents.between(0.0, 1.000001, missing=True)
_some = documents.between(0.0, missing=True)
_FIELDS: dict[str, Any] = {
    "type": documents.choice("range", "group", "slice", "direction", "class"),
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


def spread_times(ecd: float) -> float:
    """Return how many times as large as stated errors along a direction are, by their ECD."""
    return math.sqrt(max(1.0 + 2.0 * ecd, 0.0))


def degree_of(low: FloatArray, above_zero: BoolArray, value: FloatArray, limit: FloatArray) -> IndexArray:
    """Return 2 where a bound is beyond the limit, 1 where that is suspected, else 0."""
    with np.errstate(invalid="ignore"):
        return np.where(low > limit, 2, np.where(above_zero & (value > limit), 1, 0))


def in_sentence(name: str) -> str:
    """Return a name as a sentence can hold it: printable, on one line, not too long."""
    text = visible(name).replace("`", "'")
    return text if len(text) <= 40 else text[:37] + "..."


def _in_percent(share: float) -> str:
    """Write a share so that neither 0 nor 100 % is written for what is not."""
    percent = 100.0 * share
    digits = 0 if 0.95 <= percent <= 99.05 or percent in (0.0, 100.0) else 2
    return f"{percent:.{digits}f} %"


def range_ends(low: float, high: float) -> str:
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


def brief_range(on: str, label: str | int | None, low: float, high: float) -> str:
    """Name a range in a few words, for a column of a table."""
    stated = _stated(on, low, high)
    return stated if label is None else f"class {label}, {stated.removesuffix(' sure')}"


def _stated(on: str, low: float, high: float) -> str:
    """Say what a model says in a range."""
    if on in _LENGTHS:
        return f"{on} {range_ends(low, high)}"
    ends = f"{range_ends(100.0 * low, 100.0 * high)} %"
    return f"says {ends}" if on == "probability" else f"{ends} sure"


def place_rows(places: Sequence[Place], weight: float) -> list[dict[str, str]]:
    """Return the cells of places by the names of their columns; those that none of them fills are left out.

    ``weight`` is that of all rows: how many there are, where none was given.
    """
    rows = [dict(zip(_COLUMNS, _place_cells(place, weight), strict=True)) for place in places]
    filled = [name for name in _COLUMNS if any(cells[name] for cells in rows)]
    return [{name: cells[name] for name in filled} for cells in rows]


def _place_cells(place: Place, weight: float) -> list[str]:
    says, happens = "", ""
    if place.type == "group" and not math.isnan(place.announced):
        there = place.share * weight
        says, happens = (f"{100.0 * mistakes / there:.3g} % wrong" for mistakes in (place.announced, place.seen))
    elif not math.isnan(place.predicted):
        says, happens = f"{100.0 * place.predicted:.3g} %", f"{100.0 * place.observed:.3g} %"
    if place.by == "mistakes":
        ratio = place.seen / place.announced if place.announced > 0.0 else math.inf
        at_least, allowed = f"{ratio:.3g} times", f"{place.limit:.3g} times"
    elif place.temperature is not None:
        at_least, allowed = f"T {place.temperature.low:.3g}", f"T {place.limit:g}"
    else:
        at_least, allowed = f"{place.ecd.low:+.3g}", f"{place.limit:.3g}"
    share = f"{100.0 * place.share:.3g} %"
    finding = "shown" if place.shown else "suspected"
    return [place.brief, str(place.n), share, says, happens, at_least, allowed, finding]
