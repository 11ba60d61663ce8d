"""Where the model is over-confident: ECD in ranges of the predictions, with bounds that hold together.

A mean near 0 hides a range far above it. Predictions are put in their order: by probability (two classes), by
confidence and within each predicted class (more classes), by spread (states and densities). Ranges are halves,
quarters, eighths and sixteenths of the rows, and as many that begin half a step later; each is a union of whole cells,
so that equal predictions never part, and none depends on the outcomes or on the bins of the user.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._types import FloatArray
from ..errors import MissingExtraError
from ..ordered import Order
from ..summary import COLUMN
from ..tally import Tally
from .keyed import bounds_by_key, lows_by_key
from .results import Interval

__all__ = ["SHOWN", "SUSPECTED", "Local", "Range", "cuts", "dimensions"]

_HALVINGS = 4  # to sixteenths
SHOWN, SUSPECTED = 0.2, 2.0  # of what the level leaves: what the lower bounds of all places of a kind may miss
_NUMBERS = ("low", "high", "share", "predicted", "observed", "at_least", "dimensions")


@final
@dataclass(frozen=True, slots=True)
class Range:
    """A part of the predictions in their order, and what is known of it.

    Attributes
    ----------
    on : {"probability", "confidence", "spread"}
        What the predictions are ordered by. A spread is the standard deviation of a Gaussian with as much entropy.
    label : int or None
        The class that is predicted in all rows, counted from 0; None for all of them.
    low, high : float
        The ends of the range, of what ``on`` names.
    n : int
        Rows.
    share : float
        Share of all rows, or of all weight.
    predicted, observed : float
        Mean probability of the positive class (``on`` is ``"probability"``) or of the likeliest one, and how often
        it happened; NaN for states and densities.
    ecd : Interval
        ECD of these rows; the bounds of all ranges hold together.
    at_least : float
        A lower bound on it that is less firm: where it is above 0, over-confidence may be suspected.
    dimensions : float
        Two nats of varentropy each, at least one: what limits in nats a dimension are multiplied by.
    """

    on: str
    label: int | None
    low: float
    high: float
    n: int
    share: float
    predicted: float
    observed: float
    ecd: Interval
    at_least: float
    dimensions: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: documents.number(getattr(self, name)) for name in _NUMBERS}
        return {"on": self.on, "label": self.label, "n": self.n, **numbers, "ecd": self.ecd.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        numbers = {name: math.nan if content[name] is None else float(content[name]) for name in _NUMBERS}
        ecd = Interval.from_dict(content["ecd"])
        return cls(on=content["on"], label=content["label"], n=int(content["n"]), ecd=ecd, **numbers)


@final
@dataclass(frozen=True, slots=True)
class Local:
    """ECD in ranges of the predictions, with bounds that hold together.

    Attributes
    ----------
    ranges : tuple of Range
        In the order of the predictions, shorter ones after longer ones; empty where predictions have no order, or are
        all alike.
    error : float
        Probability that some lower bound misses at most; it is shared equally among the ranges.
    min_share : float
        Smallest share of the rows that a range may hold.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(1 - z))  # less often than predicted
    >>> local = safecal.evaluate(happened, logits=z).local
    >>> worst = local.worst
    >>> round(worst.low, 2), round(worst.high, 2), round(worst.predicted, 2), round(worst.observed, 2)
    (0.65, 0.88, 0.78, 0.57)
    """

    ranges: tuple[Range, ...]
    error: float
    min_share: float

    @classmethod
    def of(cls, tally: Tally, level: float = 0.95, min_share: float = 0.05) -> Self:
        """Read the ranges off a tally.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float, default 0.95
            Level of the evaluation; the ranges have a fifth of what it leaves.
        min_share : float, default 0.05
            Smallest share of the rows that a range may hold.

        Returns
        -------
        Local
            The ranges, with their bounds.
        """
        error = SHOWN * (1.0 - level)
        orders = tally.orders
        total = float(orders[0].sums[:, COLUMN["weight"]].sum()) if orders else 0.0
        pieces = [(order, first, last) for order in orders for first, last in cuts(order, total, min_share)]
        if not pieces:
            return cls((), error, min_share)
        sums = np.stack([_added(order.sums, first, last) for order, first, last in pieces])
        alpha = error / len(pieces)
        low, high = bounds_by_key(sums, alpha)
        bounds = np.stack([low, high, lows_by_key(sums, alpha * SUSPECTED / SHOWN)])
        return cls(tuple(_ranges(pieces, sums, bounds, total, 1.0 - 2.0 * alpha)), error, min_share)

    @property
    def worst(self) -> Range | None:
        """The range whose ECD has the largest lower bound; None where there are no ranges."""
        return max(self.ranges, key=lambda r: r.ecd.low - r.dimensions * 1e-12, default=None)

    def __len__(self) -> int:
        return len(self.ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self.ranges)

    def to_frame(self) -> Any:
        """Return the ranges as a pandas DataFrame, one row each.

        Returns
        -------
        pandas.DataFrame
            With the columns on, label, low, high, n, share, predicted, observed, ecd, ecd_low and ecd_high.
        """
        try:
            import pandas as pd
        except ImportError as error:
            hint = "pip install pandas, or use `to_rows()`."
            raise MissingExtraError(f"`to_frame` needs pandas.\n\nHint: {hint}") from error
        return pd.DataFrame(self.to_rows())

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the ranges as dictionaries, for any table."""
        names = ("on", "label", "low", "high", "n", "share", "predicted", "observed")
        ends = ({"ecd": r.ecd.value, "ecd_low": r.ecd.low, "ecd_high": r.ecd.high} for r in self.ranges)
        return [{name: getattr(r, name) for name in names} | more for r, more in zip(self.ranges, ends, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        ranges = [r.to_dict() for r in self.ranges]
        return documents.document("local", {"ranges": ranges, "error": self.error, "min_share": self.min_share})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("local", document, ("ranges", "error", "min_share"))
        ranges = tuple(Range.from_dict(r) for r in content["ranges"])
        return cls(ranges, float(content["error"]), float(content["min_share"]))


def dimensions(varentropy: FloatArray | float, weight: FloatArray | float) -> FloatArray:
    """Return how many dimensions rows have: two nats of mean varentropy each, at least one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.fmax(1.0, 2.0 * np.asarray(varentropy) / np.asarray(weight)))


def cuts(order: Order, total: float, min_share: float) -> list[tuple[int, int]]:
    """Cut cells into ranges: the first cell and the one after the last of each. Those of a class may hold all of it."""
    weight = order.sums[:, COLUMN["weight"]]
    before = np.concatenate([[0.0], np.cumsum(weight)])
    found: dict[tuple[int, int], None] = {}
    whole = (0, len(weight))
    if order.label is not None:
        found[whole] = None
    for halving in range(1, _HALVINGS + 1):
        steps = 2**halving
        places = _nearest(before, before[-1] * np.arange(2 * steps + 1) / (2 * steps))
        for shift in (0, 1):
            ends = places[shift::2]
            found |= dict.fromkeys(pairwise(ends))
    least = min_share * total * (1.0 - 1e-9)
    if order.label is None:
        found.pop(whole, None)
    return [(a, b) for a, b in found if b > a and before[b] - before[a] >= least]


def _nearest(before: FloatArray, wanted: FloatArray) -> list[int]:
    """Return the ends of cells that are nearest to the weights that are wanted below them."""
    after = np.clip(np.searchsorted(before, wanted), 1, len(before) - 1)
    nearer = wanted - before[after - 1] <= before[after] - wanted
    return [int(x) for x in np.where(nearer, after - 1, after)]


def _added(sums: FloatArray, first: int, last: int) -> FloatArray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(sums[first:last].sum(axis=0))


def _ranges(
    pieces: list[tuple[Order, int, int]],
    sums: FloatArray,
    bounds: FloatArray,
    total: float,
    level: float,
) -> Iterator[Range]:
    def column(name: str) -> FloatArray:
        return sums[:, COLUMN[name]]

    weight = column("weight")
    possible = weight - column("weight_impossible")
    with np.errstate(invalid="ignore", divide="ignore"):
        ecd = np.where(column("weight_impossible") > 0.0, math.inf, column("sum_excess") / possible)
        means = {name: column(f"sum_{name}") / weight for name in ("predicted", "observed", "confidence", "correct")}
    many = dimensions(column("sum_varentropy"), possible)
    low, high, at_least = bounds
    for k, (order, first, last) in enumerate(pieces):
        names = ("predicted", "observed") if order.on == "probability" else ("confidence", "correct")
        predicted, observed = (float(means[name][k]) for name in names)
        yield Range(
            order.on,
            order.label,
            float(order.low[first]),
            float(order.high[last - 1]),
            int(column("n")[k]),
            float(weight[k] / total),
            predicted,
            observed,
            Interval(float(ecd[k]), float(low[k]), float(high[k]), level, "skewness-corrected t, from cells"),
            float(at_least[k]),
            float(many[k]),
        )
