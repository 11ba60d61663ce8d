"""Slices that were found, and what is known of each."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, final

from .. import documents
from .._checks.columns import steadied
from .._sums.table_views import arrow_stream, frame_of
from ..inference import Interval
from .conditions import Condition, write_conditions
from .estimation import Reach

__all__ = ["Slice", "Slices"]

_WORD = {"over": "over-confident", "under": "under-confident"}
_WORSE = {"over": "above", "under": "below"}
_WIDTH, _NARROW = 79, 20  # characters of a table, and of its first column at least
_NUMBERS = ("share", "firm", "predicted", "observed", "dimensions", "elsewhere")


@final
@dataclass(frozen=True, slots=True)
class Slice:
    """The rows that fulfil some conditions, with numbers from the half of the rows on which they were not found.

    Attributes
    ----------
    conditions : tuple of Condition
        They hold together.
    n : int
        Rows that fulfil them, of all.
    share : float
        Share of all rows, or of all weight.
    estimated_on : int
        How many rows all numbers below come from.
    ecd : Interval
        ECD of the slice; the intervals of all candidates hold together.
    firm : float
        The end of the interval next to 0, at the level that a verdict asks for.
    temperature : Interval
        The temperature of the slice.
    predicted, observed : float
        The mean prediction in the slice, and how often it came true; NaN for states and densities.
    dimensions : float
        Twice the mean varentropy, at least 1. Limits in nats a dimension are multiplied by it.
    elsewhere : float
        ECD of the other rows of that half.
    beyond : Interval
        ECD of the slice, less that of the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(0, 2, 4000), rng.integers(20, 90, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-z / np.where(age >= 70, 3, 1)))
    >>> worst = safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age})[0]
    >>> worst.condition, worst.sql, worst.n
    ('age >= 72', '"age" >= 72', 1040)
    """

    conditions: tuple[Condition, ...]
    n: int
    share: float
    estimated_on: int
    ecd: Interval
    firm: float
    temperature: Interval
    predicted: float
    observed: float
    dimensions: float
    elsewhere: float
    beyond: Interval

    def __post_init__(self) -> None:
        for name in _NUMBERS:  # one NaN, so that equal slices are equal
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, math.nan)

    @property
    def condition(self) -> str:
        """The conditions in words."""
        return write_conditions(self.conditions, "text")

    @property
    def sql(self) -> str:
        """The conditions in SQL, for a ``WHERE``."""
        return write_conditions(self.conditions, "sql")

    @property
    def polars(self) -> str:
        """The conditions as an expression of Polars, for ``frame.filter(...)``."""
        return write_conditions(self.conditions, "polars")

    @property
    def pandas(self) -> str:
        """The conditions as an expression of pandas, for ``frame[...]``."""
        return write_conditions(self.conditions, "pandas")

    @property
    def contribution(self) -> float:
        """What the slice adds to the ECD of all rows, in nats."""
        return self.share * self.ecd.value

    @property
    def compared(self) -> str:
        """Say where its ECD is beside that of the other rows: ``"above"`` or ``"below"``, ``"alike"`` if not shown."""
        return "above" if self.beyond.low > 0.0 else "below" if self.beyond.high < 0.0 else "alike"

    def __str__(self) -> str:
        rows = f"{self.n} rows ({100.0 * self.share:.2g} %)"
        return f"{self.condition}: {rows}, ECD {self.ecd.value:.3g} nat, {self.ecd.low:.3g} to {self.ecd.high:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content: dict[str, Any] = {"n": self.n, "estimated_on": self.estimated_on}
        content |= {name: documents.number(getattr(self, name)) for name in _NUMBERS}
        content |= {name: getattr(self, name).to_dict() for name in ("ecd", "temperature", "beyond")}
        content["conditions"] = [condition.to_dict() for condition in self.conditions]
        return documents.document("slice", content | {"condition": self.condition, "sql": self.sql})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = documents.read("slice", document, _SLICE)
        condition, sql = fields.pop("condition"), fields.pop("sql")
        slice_ = cls(**fields)
        documents.every((
            (condition == slice_.condition, "must have the `condition` that its `conditions` make"),
            (sql == slice_.sql, "must have the `sql` that its `conditions` make"),
            (slice_.estimated_on <= slice_.n, "must not be estimated on more rows than it has"),
        ))  # fmt: skip
        return slice_


_read_share = documents.between(0.0, 1.000001, missing=True)
_SLICE: dict[str, Any] = {
    "conditions": lambda value: tuple(documents.list_of(Condition.from_dict, 1)(value)),
    "n": documents.count(1),
    "estimated_on": documents.count(1),
    **dict.fromkeys(("share", "predicted", "observed"), _read_share),
    **dict.fromkeys(("firm", "elsewhere"), documents.numbers),
    "dimensions": documents.between(1.0, infinite=True),
    **dict.fromkeys(("ecd", "temperature", "beyond"), Interval.from_dict),
    **dict.fromkeys(("condition", "sql"), documents.text),
}


@final
@steadied
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Slices:
    """Slices in which the model is over-confident, or under-confident: a sequence of `Slice`, the worst first.

    They were found on one half of the rows, and shown on the other. Their intervals hold together: at a level of 95 %,
    a calibrated model has no such slice in 19 of 20 samples at least.

    Attributes
    ----------
    found : tuple of Slice
        Those whose interval lies on one side of 0.
    candidates : tuple of Slice
        All that were looked at on the other half, in the order of their search; the intervals of all hold together.
    direction : {"over", "under"}
        Over-confidence or under-confidence: which of them was looked for.
    n : int
        Rows.
    searched : int
        Rows of both halves that were searched.
    ecd : float
        ECD of all rows.
    level, min_share, depth
        As they were given.
    features : tuple of str
        Features that were searched.
    left_out : tuple of (str, str)
        Features that were not searched, and why.
    reach : Reach or None
        A slice that would have been found; None where that is not known.
    interrupted : bool
        Whether the search was stopped before its end.
    on : {"probability", "confidence", "spread"}
        Of what ``predicted`` is the mean.
    clustered : bool
        Whether clusters were halved, instead of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(2000), rng.choice(["north", "south"], 2000)
    >>> print(safecal.find_slices(safecal.bernoulli(rng.random(2000) < p, p), {"site": site}))
    no over-confident slice found among the conditions on 1 feature (2000 rows):
    a slice of 30 % of the rows with logits 2 times too large would have been found in at least 9 of 10 such samples.
    """

    found: tuple[Slice, ...]
    candidates: tuple[Slice, ...]
    direction: Literal["over", "under"]
    n: int
    searched: int
    ecd: float
    level: float
    min_share: float
    depth: int
    features: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    reach: Reach | None
    interrupted: bool
    on: str
    clustered: bool

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, place: int) -> Slice:
        return self.found[place]

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.found)

    @property
    def sentence(self) -> str:
        """The result in a sentence: how many slices were found, or how small a slice would have been."""
        word = _WORD[self.direction]
        searched = "" if self.searched == self.n else f", {self.searched} of them drawn for the search"
        if self.found:
            count = f"{len(self)} {word} slice{'' if len(self) == 1 else 's'} found"
            which = "It is not" if len(self) == 1 else "None of them is"
            alike = all(s.compared != _WORSE[self.direction] for s in self)
            differs = f" {which} shown to be worse than the other rows." if alike else ""
            return f"{count} (intervals hold together at {100.0 * self.level:g} %; {self.n} rows{searched}).{differs}"
        count = f"{len(self.features)} feature{'' if len(self.features) == 1 else 's'}"
        start = f"no {word} slice found among the conditions on {count} ({self.n} rows{searched})"
        if self.reach is not None:
            return f"{start}: {self.reach}."
        if not self.features:
            return f"{start}; there is no feature to look at."
        why = "rows come in clusters" if self.clustered else "there are too few rows, or too vague predictions"
        return f"{start}; how small a slice would have been found is not known: {why}."

    def __repr__(self) -> str:
        lines = [self.sentence.replace("rows): ", "rows):\n")]
        if self.interrupted:
            lines.append("The search was stopped before its end.")
        if self.found:
            alike = (s for s in self if s.compared != _WORSE[self.direction])
            lines += ["", *_table(self), *map(_compare_with_others, alike)]
        lines += [f"left out: {name} ({why})" for name, why in self.left_out]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ..html.notebook import slices_html

        return slices_html(self)

    def columns(self) -> dict[str, list[Any]]:
        """Return what is known of each slice, as columns.

        Returns
        -------
        dict of str to list
            One value a slice in each.
        """
        return {
            **{name: [getattr(s, name) for s in self] for name in ("condition", "sql", "polars", "pandas")},
            **{name: [getattr(s, name) for s in self] for name in ("n", "share", "estimated_on")},
            **{f"ecd{end}": [getattr(s.ecd, name) for s in self] for end, name in _ENDS},
            **{f"temperature{end}": [getattr(s.temperature, name) for s in self] for end, name in _ENDS},
            **{name: [getattr(s, name) for s in self] for name in ("predicted", "observed", "contribution")},
            "ecd_elsewhere": [s.elsewhere for s in self],
            **{f"beyond{end}": [getattr(s.beyond, name) for s in self] for end, name in _ENDS},
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return the slices as a DataFrame, one row each.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        DataFrame
            With the columns of `columns`.
        """
        return frame_of(self.columns(), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(self.columns(), requested_schema)

    def plot(self, *, local_threshold: float = 0.2, ax: Any = None) -> Any:
        """Draw the slices as bars with their intervals, and the limit.

        Parameters
        ----------
        local_threshold : float, default 0.2
            Largest ECD that is allowed in a slice, in nats a dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        safecal.plot.SlicesDisplay
            The display, drawn.
        """
        from ..plot.groups import SlicesDisplay

        return SlicesDisplay.from_slices(self, local_threshold=local_threshold, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        names = ("direction", "n", "searched", "level", "min_share", "depth", "interrupted", "on", "clustered")
        content: dict[str, Any] = {name: getattr(self, name) for name in names}
        content["ecd"] = documents.number(self.ecd)
        content["reach"] = None if self.reach is None else self.reach.to_dict()
        content["features"] = list(self.features)
        content["left_out"] = [{"feature": name, "why": why} for name, why in self.left_out]
        content["candidates"] = [candidate.to_dict() for candidate in self.candidates]
        content["found"] = [self.candidates.index(s) for s in self.found]
        return documents.document("slices", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.read("slices", document, _SLICES)
        candidates, places = content["candidates"], content["found"]
        with documents.at("found"):
            if any(place >= len(candidates) for place in places):
                documents.refuse("must be places of `candidates`")
        content["found"] = tuple(candidates[place] for place in places)
        slices = cls(**content)
        shown = [s.ecd.low > 0.0 if slices.direction == "over" else s.ecd.high < 0.0 for s in slices.found]
        documents.every((
            (len(set(places)) == len(places), "must not have a slice twice in `found`"),
            (all(shown), "must have `found` slices whose intervals lie on the side of its `direction`"),
            (slices.searched <= slices.n, "must not have searched more rows than it has"),
        ))  # fmt: skip
        return slices


_ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))
_read_left_out = documents.record({"feature": documents.text, "why": documents.words})
_SLICES: dict[str, Any] = {
    "found": documents.list_of(documents.count()),
    "candidates": lambda value: tuple(documents.list_of(Slice.from_dict)(value)),
    "direction": documents.choice("over", "under"),
    **dict.fromkeys(("n", "searched", "depth"), documents.count(1)),
    "ecd": documents.numbers,
    **dict.fromkeys(("level", "min_share"), documents.LEVEL),
    "features": lambda value: tuple(documents.list_of(documents.text)(value)),
    "left_out": lambda value: tuple((x["feature"], x["why"]) for x in documents.list_of(_read_left_out)(value)),
    "reach": documents.optional(Reach.from_dict),
    "interrupted": documents.flag,
    "on": documents.choice("probability", "confidence", "spread"),
    "clustered": documents.flag,
}


def _compare_with_others(s: Slice) -> str:
    """Say of a slice that is no worse than the other rows, or not shown to be, what they are like."""
    comparison = "no worse" if s.compared != "alike" else "not shown to be worse"
    return f"{s.condition}: {comparison} than the other rows, whose ECD is {s.elsewhere:+.3f}"


def _table(slices: Slices) -> list[str]:
    """Write the slices as a table of text."""
    rows: list[tuple[str, ...]] = [("slice", "rows", "share", "ECD", "from", "to", "T", "adds")]
    for s in slices:
        numbers = (s.ecd.value, s.ecd.low, s.ecd.high)
        rows.append((
            s.condition, f"{s.n}", f"{100.0 * s.share:.1f} %", *(f"{x:+.3f}" for x in numbers),
            f"{s.temperature.value:.2f}", f"{s.contribution:+.4f}",
        ))  # fmt: skip
    rows.append(("all rows", f"{slices.n}", "100 %", f"{slices.ecd:+.3f}", *[""] * 4))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:]
    name_width = max(_NARROW, _WIDTH - sum(widths) - 2 * len(widths))
    names = [textwrap.wrap(row[0], name_width, break_on_hyphens=False) for row in rows]
    longest = max(len(line) for name in names for line in name)
    lines = [
        "  ".join([name[0].ljust(longest), *(cell.rjust(w) for cell, w in zip(row[1:], widths, strict=True))]).rstrip()
        + "".join(f"\n{line}" for line in name[1:])
        for name, row in zip(names, rows, strict=True)
    ]
    rule = "-" * (longest + sum(widths) + 2 * len(widths))
    return [lines[0], rule, *lines[1:-1], rule, lines[-1]]
