"""Places in which the model is over-confident: ranges of the predictions, and groups that the user named."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from . import documents
from ._types import BoolArray, FloatArray, IndexArray
from .inference.keyed import bounds_by_key, lows_by_key
from .inference.local import SHOWN, SUSPECTED, Local, Range, dimensions
from .inference.mistakes import mistakes_by_key, ratio_bounds
from .inference.results import Interval
from .limits import Limits
from .summary import COLUMN
from .table import Table

__all__ = ["Place", "group_places", "in_percent", "range_places", "worst_first"]

_SCALES = 2  # ways in which a group may be beyond its limits
_NUMBERS = ("share", "predicted", "observed", "limit", "seen", "announced", "low", "high")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place in which the model is over-confident, or suspected to be.

    Attributes
    ----------
    type : {"range", "group"}
        A range of the predictions, or a group that was named.
    name : str
        What it is called: ``"probability 0.83 to 0.88"``, ``"site north"``.
    shown : bool
        True: over-confident beyond the limit, by bounds that hold together. False: suspected, because the estimate is
        beyond the limit and a less firm lower bound above 0; more rows would tell.
    by : {"ecd", "mistakes"}
        What is beyond its limit.
    limit : float
        That limit: in nats, or as a ratio.
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
    on : {"probability", "confidence", "spread"}
        What ``predicted`` and the ends of a range are of.
    low, high : float
        The ends of a range; NaN for groups.

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

    def __post_init__(self) -> None:
        for name in _NUMBERS:  # one NaN, so that equal places are equal
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, math.nan)

    @property
    def label(self) -> str:
        """The name as a sentence can hold it: printable, on one line, not too long."""
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in self.name).replace("`", "'")
        return text if len(text) <= 40 else text[:37] + "..."

    def __str__(self) -> str:
        return f"{self.where} ({self._rows}; {self._bound})"

    @property
    def where(self) -> str:
        """Say where it is, and what happens there."""
        if self.by == "mistakes":
            return f"in {self.label} it announced {_count(self.announced)} mistakes and made {_count(self.seen)}"
        if math.isnan(self.predicted):
            return f"in {self.label} outcomes lie farther out than it says"
        if self.type == "group":
            return f"in {self.label} it is surer than it should be"
        between, cases = f"{_end(100.0 * self.low)} to {_end(100.0 * self.high)} %", in_percent(self.observed)
        if self.on == "probability":
            return f"where it says {between}, it happens in {cases} of the cases"
        of_class = self.name.partition(", ")[2]
        return f"where it is {between} sure{', ' + of_class if of_class else ''}, it is right in {cases} of the cases"

    @property
    def _rows(self) -> str:
        return f"{self.n} row{'' if self.n == 1 else 's'}"

    @property
    def _bound(self) -> str:
        if self.by == "mistakes":
            return f"{self.limit:g} times as many are allowed"
        if self.shown:
            return f"ECD is at least {self.ecd.low:.3g} nat, where {self.limit:.3g} is allowed"
        return f"ECD lies between {self.ecd.low:.3g} and {self.ecd.high:.3g} nat, and {self.limit:.3g} is allowed"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("type", "name", "shown", "by", "n", "on")}
        numbers = {name: documents.number(getattr(self, name)) for name in _NUMBERS}
        return documents.document("place", {**content, **numbers, "ecd": self.ecd.to_dict()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = dict(documents.body("place", document, cls.__slots__))
        content |= {name: math.nan if content[name] is None else float(content[name]) for name in _NUMBERS}
        content["ecd"] = Interval.from_dict(content["ecd"])
        return cls(**{name: content[name] for name in cls.__slots__})


def range_places(local: Local, limits: Limits) -> list[Place]:
    """Return ranges that are over-confident beyond the limit, or suspected to be, the worst first; no row is in two."""
    limit = limits.local_threshold * local.column("dimensions")
    low = local.column("ecd_low")
    degree = _degree(low, local.column("at_least") > 0.0, local.column("ecd"), limit)
    beyond = np.flatnonzero(degree)
    beyond = beyond[np.lexsort((-(low / limit)[beyond], -degree[beyond]))]
    kept: list[Range] = []
    places = []
    for k in beyond.tolist():
        found = local[k]
        if not any(_meet(found, other) for other in kept):
            kept.append(found)
            places.append(_of_range(found, float(limit[k])))
    return places


def _meet(a: Range, b: Range) -> bool:
    """Tell whether two ranges may have rows in common."""
    apart = a.on != b.on or (a.label is not None and b.label is not None and a.label != b.label)
    return not apart and a.low < b.high and b.low < a.high


def _of_range(r: Range, limit: float) -> Place:
    of_class = "" if r.label is None else f", class {r.label} predicted"
    unit = "standard deviation" if r.on == "spread" else r.on
    name = f"{unit} {_end(r.low)} to {_end(r.high)}{of_class}"
    return Place(
        "range", name, r.ecd.low > limit, "ecd", limit, r.n, r.share, r.predicted, r.observed, r.ecd,
        math.nan, math.nan, r.on, r.low, r.high,
    )  # fmt: skip


def group_places(groups: Table | None, limits: Limits, weighted: bool) -> list[Place]:
    """Return the groups that are over-confident beyond a limit, or suspected to be; the worst first."""
    if groups is None:
        return []
    sums = groups.sums
    count = max(int(np.count_nonzero(groups.n)), 1)
    alpha = SHOWN * (1.0 - limits.level) / count / _SCALES
    low, high = bounds_by_key(sums, alpha)
    at_least = lows_by_key(sums, alpha * SUSPECTED / SHOWN)
    possible = sums[:, COLUMN["weight"]] - sums[:, COLUMN["weight_impossible"]]
    limit = limits.threshold * dimensions(sums[:, COLUMN["sum_varentropy"]], possible)
    ecd = groups.ecd
    seen, announced = mistakes_by_key(sums)
    least = np.zeros(len(groups)) if weighted else ratio_bounds(seen, seen, announced, alpha)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = seen / announced
    by_ecd = _degree(low, at_least > 0.0, ecd, limit)
    by_mistakes = _degree(least, least > 1.0, ratio, np.full(len(groups), limits.max_ratio))
    if weighted:
        by_mistakes[:] = 0
    order = np.flatnonzero(np.maximum(by_ecd, by_mistakes))
    order = order[np.lexsort((-low[order] / limit[order], -np.maximum(by_ecd, by_mistakes)[order]))]
    places = []
    for k in order.tolist():
        mistaken = by_mistakes[k] > by_ecd[k]
        interval = Interval(float(ecd[k]), float(low[k]), float(high[k]), 1.0 - 2.0 * alpha, "from sums")
        places.append(
            Place(
                "group",
                f"{groups.name} {groups.label(k) or repr(groups.label(k))}",
                bool(max(by_ecd[k], by_mistakes[k]) == 2),
                "mistakes" if mistaken else "ecd",
                limits.max_ratio if mistaken else float(limit[k]),
                int(groups.n[k]),
                float(groups.weights[k]),
                float(groups.predicted[k]),
                float(groups.observed[k]),
                interval,
                float(seen[k]),
                float(announced[k]),
                "confidence" if groups.top_label else "probability",
                math.nan,
                math.nan,
            )
        )
    return places


def _degree(low: FloatArray, some: BoolArray, value: FloatArray, limit: FloatArray) -> IndexArray:
    """Return 2 where a bound is beyond the limit, 1 where that is suspected, else 0."""
    with np.errstate(invalid="ignore"):
        return np.where(low > limit, 2, np.where(some & (value > limit), 1, 0))


def in_percent(share: float) -> str:
    """Write a share so that neither 0 nor 100 % is written for what is not."""
    percent = 100.0 * share
    digits = 0 if 0.95 <= percent <= 99.05 or percent in (0.0, 100.0) else 2
    return f"{percent:.{digits}f} %"


def _end(value: float) -> str:
    for whole in (1.0, 100.0):  # near it, digits count from there
        if 0.9 * whole < value < whole:
            return f"{whole - float(f'{whole - value:.2g}'):.10g}"
    return f"{value:.2g}"


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10.0 or number == round(number) else f"{number:.2g}"


def worst_first(places: Iterable[Place]) -> tuple[Place, ...]:
    """Order places: those that are shown first."""
    return tuple(sorted(places, key=lambda place: not place.shown))
