"""Places in which the model is over-confident: ranges of the predictions, and groups that the user named."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from . import documents
from ._types import BoolArray, FloatArray, IndexArray
from .inference.cluster_bounds import clustered_bounds
from .inference.cluster_mistakes import clustered_ratios
from .inference.keyed import bounds_by_key, lows_by_key
from .inference.local import SHOWN, SUSPECTED, Local, Range, dimensions
from .inference.mistakes import mistakes_by_key, ratio_bounds
from .inference.results import Interval
from .limits import Limits
from .summary import COLUMN
from .table import Table
from .tally import Tally

__all__ = [
    "JudgedGroups",
    "Place",
    "brief_range",
    "group_places",
    "in_percent",
    "judge_groups",
    "range_places",
    "worst_first",
]

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

    @property
    def brief(self) -> str:
        """The name in a few words, for a column of a table."""
        if self.type == "group":
            return self.label
        of_class = self.name.partition(", class ")[2].removesuffix(" predicted")
        return brief_range(self.on, of_class or None, self.low, self.high)

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
        if math.isinf(self.ecd.low):
            return "something happened there that it had called impossible"
        if self.shown:
            return f"ECD is at least {self.ecd.low:.3g} nat, where {self.limit:.3g} is allowed"
        if math.isinf(self.ecd.high):  # too few clusters to bound it
            return f"ECD lies above {self.ecd.low:.3g} nat, and {self.limit:.3g} is allowed"
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
    inside = (b.low <= a.low and a.high <= b.high) or (a.low <= b.low and b.high <= a.high)
    return not apart and (inside or (a.low < b.high and b.low < a.high))


def _of_range(r: Range, limit: float) -> Place:
    of_class = "" if r.label is None else f", class {r.label} predicted"
    unit = "standard deviation" if r.on == "spread" else r.on
    name = f"{unit} {_ends(r.low, r.high)}{of_class}"
    return Place(
        "range", name, r.ecd.low > limit, "ecd", limit, r.n, r.share, r.predicted, r.observed, r.ecd,
        math.nan, math.nan, r.on, r.low, r.high,
    )  # fmt: skip


class JudgedGroups(NamedTuple):
    """What is known of each group: bounds that hold for all of them together, limits, and what is beyond them.

    ``by_ecd`` and ``by_mistakes`` are 2 where a limit is exceeded, 1 where that is suspected, else 0.
    """

    low: FloatArray
    high: FloatArray
    limit: FloatArray  # of ECD
    level: float  # of each interval
    seen: FloatArray
    announced: FloatArray
    by_ecd: IndexArray
    by_mistakes: IndexArray

    @property
    def degree(self) -> IndexArray:
        """The larger of both."""
        return np.maximum(self.by_ecd, self.by_mistakes)

    def interval(self, ecd: float, k: int) -> Interval:
        """Return the ECD of a group with its bounds."""
        return Interval(ecd, float(self.low[k]), float(self.high[k]), self.level, "from sums")


def judge_groups(groups: Table, limits: Limits, tally: Tally) -> JudgedGroups:
    """Bound every group of a tally, or some of them, and hold each to its own limits."""
    sums = groups.sums
    count = max(int(np.count_nonzero((groups if tally.groups is None else tally.groups).n)), 1)
    alpha = SHOWN * (1.0 - limits.level) / count / _SCALES
    low, high, at_least, least = _group_bounds(groups, tally, alpha)
    possible = sums[:, COLUMN["weight"]] - sums[:, COLUMN["weight_impossible"]]
    limit = limits.threshold * dimensions(sums[:, COLUMN["sum_varentropy"]], possible)
    seen, announced = mistakes_by_key(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = seen / announced
    by_ecd = _degree(low, at_least > 0.0, groups.ecd, limit)
    by_mistakes = _degree(least, least > 1.0, ratio, np.full(len(groups), limits.max_ratio))
    return JudgedGroups(low, high, limit, 1.0 - 2.0 * alpha, seen, announced, by_ecd, by_mistakes)


def _group_bounds(groups: Table, tally: Tally, alpha: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return bounds on the ECD of each group, a less firm lower one, and a lower one on its ratio of mistakes."""
    sums, weaker = groups.sums, alpha * SUSPECTED / SHOWN
    if tally.clusters is None:
        seen, announced = mistakes_by_key(sums)
        least = np.zeros(len(groups)) if tally.weighted else ratio_bounds(seen, seen, announced, alpha)[0]
        return *bounds_by_key(sums, alpha), lows_by_key(sums, weaker), least
    nothing = np.full(len(groups), -math.inf)
    if tally.pairs is None:  # read from a document, which does not tell rows of one cluster from others
        return nothing, -nothing, nothing, np.zeros(len(groups))
    pairs, places = tally.pairs, {key: k for k, key in enumerate(groups.keys)}
    place = np.array([places.get(key, -1) for key in pairs.keys], dtype=np.intp)[pairs.key]
    kept = place >= 0
    rows = place[kept], pairs.cluster[kept], pairs.sums[kept], len(groups)
    low, high = clustered_bounds(*rows, alpha)
    impossible = sums[:, COLUMN["weight_impossible"]] > 0.0
    low, high, at_least = (np.where(impossible, math.inf, x) for x in (low, high, clustered_bounds(*rows, weaker).low))
    return low, high, at_least, np.nan_to_num(clustered_ratios(*rows, alpha).low, nan=0.0)


def group_places(tally: Tally, limits: Limits) -> list[Place]:
    """Return the groups that are over-confident beyond a limit, or suspected to be; the worst first."""
    groups = tally.groups
    if groups is None:
        return []
    judged, ecd = judge_groups(groups, limits, tally), groups.ecd
    order = np.flatnonzero(judged.degree)
    order = order[np.lexsort((-judged.low[order] / judged.limit[order], -judged.degree[order]))]
    places = []
    for k in order.tolist():
        mistaken = judged.by_mistakes[k] > judged.by_ecd[k]
        places.append(
            Place(
                "group",
                f"{groups.name} {groups.label(k) or repr(groups.label(k))}",
                bool(judged.degree[k] == 2),
                "mistakes" if mistaken else "ecd",
                limits.max_ratio if mistaken else float(judged.limit[k]),
                int(groups.n[k]),
                float(groups.weights[k]),
                float(groups.predicted[k]),
                float(groups.observed[k]),
                judged.interval(float(ecd[k]), k),
                float(judged.seen[k]),
                float(judged.announced[k]),
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
    if on == "spread":
        return f"spread {_ends(low, high)}"
    ends = f"{_ends(100.0 * low, 100.0 * high)} %"
    return f"says {ends}" if on == "probability" else f"{ends} sure"


def worst_first(places: Iterable[Place]) -> tuple[Place, ...]:
    """Order places: those that are shown first."""
    return tuple(sorted(places, key=lambda place: not place.shown))
