"""Where the model is over-confident: ECD in ranges of the predictions, with bounds that hold together.

A mean near 0 hides a range far above it. `ranges` says how the ranges are made.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._sums import Tally
from .._sums.table_views import arrow_stream, frame_of
from .._types import BoolArray, FloatArray, IndexArray
from . import Interval
from .ranges import NUMBERS, SHOWN, SUSPECTED, Evenness, Unbounded, bounded_ranges

__all__ = ["Local", "Range"]


@final
@dataclass(frozen=True, slots=True)
class Range:
    """A part of the predictions in their order, and what is known of it.

    Attributes
    ----------
    on : {"probability", "confidence", "spread", "width", "perplexity"}
        What the predictions are ordered by. A spread is the standard deviation of a Gaussian with as much entropy.
    label : int, str or None
        The class that is predicted in all rows: its name, or its number from 0; None for all of them.
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
        A lower bound on it that is less firm: where it is above 0, over-confidence can be suspected.
    dimensions : float
        Two nats of varentropy each, at least one: what limits in nats a dimension are multiplied by.

    Examples
    --------
    >>> import safecal
    >>> local = safecal.evaluate([0, 1] * 500, [0.2, 0.6] * 500).local
    >>> [(r.n, round(r.predicted, 2), round(r.observed, 2), round(r.ecd.value, 3)) for r in local]
    [(500, 0.2, 0.0, -0.277), (500, 0.6, 1.0, -0.162)]
    """

    on: str
    label: int | str | None
    low: float
    high: float
    n: int
    share: float
    predicted: float
    observed: float
    ecd: Interval
    at_least: float
    dimensions: float


@final
@steadied
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Local:
    """ECD in ranges of the predictions, with bounds that hold together: a sequence of `Range`.

    Ranges stand in the order of the predictions, shorter ones after longer ones. There are none where predictions have
    no order, or are all alike.

    Attributes
    ----------
    on : str
        What the predictions are ordered by: ``"probability"``, ``"confidence"`` or ``"spread"``; empty without ranges.
    numbers : ndarray of shape (ranges, 12)
        What is known of each range, in the order of the attributes of a `Range` that are numbers.
    error : float
        Probability that some lower bound misses, at most; it is shared equally among the ranges.
    min_share : float
        Smallest share of the rows that a range may hold. The surest rows, predicted classes and single values are
        ranges down to a hundredth of it and 20 rows.
    class_names : tuple of str
        What the classes are called, where they have names.
    uneven : bool
        Whether calibration differs along the predictions, by one test of all of them together: ranges beyond their
        limit are then suspected, though the bound of none of them shows it.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(1 - z))  # less often than predicted
    >>> worst = safecal.evaluate(happened, logits=z).local.worst
    >>> round(worst.low, 2), round(worst.high, 2), round(worst.predicted, 2), round(worst.observed, 2)
    (0.65, 0.91, 0.79, 0.59)
    """

    on: str
    _numbers: FloatArray
    error: float
    min_share: float
    class_names: tuple[str, ...] = ()
    _waiting: Unbounded | None = None  # until the bounds of all ranges are asked for
    _uneven: bool | tuple[Tally, float] = False  # what to test, and how often it may err, until it is asked for

    @classmethod
    def of(cls, tally: Tally, level: float = 0.95, min_share: float = 0.05) -> Self:
        """Read the ranges off a tally.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float, default 0.95
            Level of the evaluation; the ranges have a fifth of what it leaves, shared with directions of states.
        min_share : float, default 0.05
            Smallest share of the rows that a range may hold; the surest rows may hold less.

        Returns
        -------
        Local
            The ranges, with their bounds.
        """
        error = (1.0 if tally.directions is None else 0.5) * SHOWN * (1.0 - level)
        ranges = bounded_ranges(tally, error, min_share, SUSPECTED * (1.0 - level))
        names = tally.class_names if ranges.on else ()
        uneven = (tally, 1.0 - level) if ranges.on else False
        return cls(ranges.on, ranges.numbers, error, min_share, names, ranges.waiting, uneven)

    @property
    def numbers(self) -> FloatArray:
        """What is known of each range, in the order of the attributes of a `Range` that are numbers."""
        waiting = self._waiting  # read once: another thread may be here as well
        if waiting is not None:
            self._numbers[:, _BOUNDS] = np.stack(waiting.bounds(), axis=1)
            object.__setattr__(self, "_waiting", None)
        return self._numbers

    @property
    def uneven(self) -> bool:
        """Whether calibration differs along the predictions, by one test of all of them together."""
        uneven = self._uneven  # read once: another thread may be here as well
        if not isinstance(uneven, bool):
            tally, level = uneven
            evenness = Evenness.of(tally)
            uneven = evenness is not None and evenness.p_value() < level
            object.__setattr__(self, "_uneven", uneven)
        return uneven

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> Range:
        return self._range(self.numbers[place])

    def is_wide(self) -> BoolArray:
        """Tell which ranges hold the smallest share of the rows: of smaller ones, the estimate may be chance.

        Returns
        -------
        ndarray of bool, of shape (ranges,)
            One for each range.
        """
        return np.asarray(self.column("share") >= self.min_share * (1.0 - 1e-9))

    def lower(self, places: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return the lower bounds of some of the ranges, and those that are less firm, without bounding the others.

        Parameters
        ----------
        places : ndarray of int
            Their places.

        Returns
        -------
        tuple of ndarray
            ``ecd_low`` and ``at_least``, one number for each place.
        """
        low, _, at_least = self._bounded(places)[:, _BOUNDS].T
        return low, at_least

    def some(self, places: list[int]) -> list[Range]:
        """Return some of the ranges, without bounding the others.

        Parameters
        ----------
        places : list of int
            Their places.

        Returns
        -------
        list of Range
            One for each place.
        """
        return [self._range(row) for row in self._bounded(np.array(places, dtype=np.intp))]

    def _bounded(self, places: IndexArray) -> FloatArray:
        """Return what is known of some of the ranges, whose bounds are found once."""
        waiting = self._waiting  # read once: another thread may be here as well
        missing = places[np.isnan(self._numbers[places, -1])]
        if waiting is not None and len(missing):
            self._numbers[missing, _BOUNDS] = np.stack(waiting.bounds(missing), axis=1)
        return self._numbers[places]

    def _range(self, numbers: FloatArray) -> Range:
        label, low, high, n, share, predicted, observed, dimensions, ecd, *bounds = numbers.tolist()
        ecd_low, ecd_high, at_least = bounds
        level = 1.0 - 2.0 * self.error / len(self)
        interval = Interval(ecd, ecd_low, ecd_high, level, "from cells")
        return Range(
            on=self.on, label=self._label(label), low=low, high=high, n=round(n), share=share, predicted=predicted,
            observed=observed, ecd=interval, at_least=at_least, dimensions=dimensions,
        )  # fmt: skip

    def _label(self, number: float) -> int | str | None:
        """Return the name of a class, or its number where it has none; None for all classes."""
        if math.isnan(number):
            return None
        return self.class_names[int(number)] if self.class_names else int(number)

    def __iter__(self) -> Iterator[Range]:
        return (self[k] for k in range(len(self)))

    def column(self, name: str) -> FloatArray:
        """Return a number of every range, by its name.

        Parameters
        ----------
        name : str
            ``"label"``, ``"low"``, ``"high"``, ``"n"``, ``"share"``, ``"predicted"``, ``"observed"``,
            ``"dimensions"``, ``"ecd"``, ``"ecd_low"``, ``"ecd_high"`` or ``"at_least"``.

        Returns
        -------
        ndarray of shape (ranges,)
            One number each; NaN for the label of ranges over all classes.
        """
        place = NUMBERS.index(name)
        return (self.numbers if place >= _BOUNDS.start else self._numbers)[:, place]

    @property
    def worst(self) -> Range | None:
        """The range whose ECD has the largest lower bound, in dimensions; None where there are no ranges.

        Where few clusters bound nothing, it is the one with the largest ECD.
        """
        if not len(self):
            return None
        value, low = (self.column(name) / self.column("dimensions") for name in ("ecd", "ecd_low"))
        return self[int(np.lexsort((-np.arange(len(self)), value, low))[-1])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Local):
            return NotImplemented
        same = (self.on, self.error, self.min_share) == (other.on, other.error, other.min_share)
        same = same and self.uneven == other.uneven
        return same and np.array_equal(self.numbers, other.numbers, equal_nan=True)

    def __repr__(self) -> str:
        return f"Local({len(self)} ranges of {self.on}; the worst: {self.worst})" if len(self) else "Local(no ranges)"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the ranges as dictionaries, for any table.

        Returns
        -------
        list of dict
            With the keys that `column` names, and ``on``.
        """
        rows = [{"on": self.on, **dict(zip(NUMBERS, row, strict=True))} for row in self.numbers.tolist()]
        for row in rows:
            row["label"] = self._label(row["label"])
            row["n"] = round(row["n"])
        return rows

    def to_frame(self, library: str | None = None) -> Any:
        """Return the ranges as a DataFrame, one row each.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            With the columns of `to_rows`.
        """
        return frame_of(self._columns(), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(self._columns(), requested_schema)

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.to_rows()
        return {name: [row[name] for row in rows] for name in ("on", *NUMBERS)}

    def plot(self, *, local_threshold: float = 0.2, ax: Any = None) -> Any:
        """Draw ECD along the predictions, with its bounds and the limit.

        Parameters
        ----------
        local_threshold : float, default 0.2
            Largest ECD that is allowed in a range, in nats a dimension.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        safecal.plot.LocalDisplay
            The display, drawn.
        """
        from ..plot.course import LocalDisplay

        return LocalDisplay.from_local(self, local_threshold=local_threshold, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        rows = (zip(NUMBERS, row, strict=True) for row in self.numbers.tolist())
        ranges = [{name: documents.number(x) for name, x in row} for row in rows]
        content = {"on": self.on, "ranges": ranges, "error": self.error, "min_share": self.min_share}
        content |= {"class_names": list(self.class_names), "uneven": self.uneven}
        return documents.document("local", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = documents.read("local", document, _FIELDS, {"uneven": documents.flag})
        numbers = np.array([[row[name] for name in NUMBERS] for row in fields["ranges"]], dtype=np.float64)
        local = cls(
            fields["on"], numbers.reshape(-1, len(NUMBERS)), fields["error"], fields["min_share"],
            tuple(fields["class_names"]), _uneven=fields.get("uneven", False),
        )  # fmt: skip
        labels = local.column("label")
        labels = labels[~np.isnan(labels)]
        documents.every((
            (bool(local.on) == bool(len(local)), "must say what it is `on` exactly where it has ranges"),
            (
                not local.class_names or not (labels >= len(local.class_names)).any(),
                "must have a name in `class_names` for every `label` of its ranges",
            ),
            (
                not (local.column("low") > local.column("high")).any()
                and not (local.column("low") < 0.0).any()
                and (local.on in ("spread", "width", "perplexity") or not (local.column("high") > 1.0).any()),
                "must have ranges whose `low` and `high` fit what they are `on`",
            ),
            (
                not (local.column("ecd_low") > local.column("ecd_high")).any(),
                "must have ranges whose `ecd_low` is not above their `ecd_high`",
            ),
        ))  # fmt: skip
        return local


def _label(value: Any) -> float:
    """Read the number of a class; null stands for all of them."""
    return math.nan if value is None else float(documents.count()(value))


_BOUNDS = slice(NUMBERS.index("ecd_low"), None)  # with "ecd_high" and "at_least", which come last
_share = documents.between(0.0, 1.000001, missing=True)
_RANGE: dict[str, Any] = dict.fromkeys(NUMBERS, documents.between(infinite=True))
_RANGE |= {"label": _label, "n": documents.between(0.0), **dict.fromkeys(("share", "predicted", "observed"), _share)}
_RANGE["dimensions"] = documents.between(1.0, infinite=True)
_FIELDS: dict[str, Any] = {
    "on": documents.choice("probability", "confidence", "spread", "width", "perplexity", ""),
    "ranges": documents.list_of(documents.record(_RANGE)),
    "error": documents.LEVEL,
    "min_share": documents.LEVEL,
    "class_names": documents.list_of(documents.text),
}
