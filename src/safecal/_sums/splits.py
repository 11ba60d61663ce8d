"""Which key a row belongs to: its bin, exactly one, or its group; and the `Plan`, the bins that a caller asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, final, get_args

import numpy as np

from .. import documents
from .._checks import fail, show
from .._checks.arrays import as_numbers, not_empty, refuse
from .._checks.columns import choice, group_codes, numbered, steadied, whole_number
from .._kernels.compiled import uniform_index
from .._types import ArrayLike, BinOn, By, FloatArray, IndexArray, Rows, Strategy
from ..errors import BinsError, MissingValueError, OptionError, UnavailableError
from .scored import Scored, summed

if TYPE_CHECKING:
    from ..families import Predictions

__all__ = [
    "EVERY", "MOST_BINS", "Bins", "BlockSums", "Plan", "Split", "bin_count", "bin_keys", "binned_values",
    "bins_for", "by_bin", "by_group", "by_key", "occurring",
]  # fmt: skip

MOST_BINS = 100_000  # beyond that a bin tells nothing, and bins alone would fill the memory


def bin_count(bins: Any) -> int:
    """Require a number of bins that can be made."""
    count = whole_number(bins, "bins", 1, BinsError)
    if count > MOST_BINS:
        raise fail(BinsError, "bins", f"must be at most {MOST_BINS}", got=show(bins))
    return count


@final
@steadied
@dataclass(frozen=True, slots=True)
class Bins:
    """Adjacent intervals ``[a, b)``, the last one closed: ``[a, b]``.

    Build them with `uniform`, `quantile` or `from_edges`. A value outside the edges is an error, so counts always add
    up to the number of rows.

    Attributes
    ----------
    edges : tuple of float
        Increasing; one more than there are bins.

    Examples
    --------
    >>> import safecal
    >>> bins = safecal.Bins.uniform(10)
    >>> bins.index([0.0, 0.1, 0.999, 1.0]).tolist()
    [0, 1, 9, 9]
    >>> safecal.Bins.from_edges([0, 0.5, 0.9, 1]).labels
    ('[0, 0.5)', '[0.5, 0.9)', '[0.9, 1]')
    """

    edges: tuple[float, ...]

    @classmethod
    def uniform(cls, bins: int = 10, low: float = 0.0, high: float = 1.0) -> Self:
        """Cut ``[low, high]`` into bins of equal width.

        Parameters
        ----------
        bins : int, default 10
            How many.
        low, high : float, default 0 and 1
            The ends.

        Returns
        -------
        Bins
            The bins.
        """
        count = bin_count(bins)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise fail(BinsError, "low", "must be finite and smaller than `high`", got=f"{show(low)} and {show(high)}")
        return cls(tuple(low + (high - low) * (k / count) for k in range(count)) + (high,))

    @classmethod
    def quantile(cls, values: ArrayLike, bins: int = 10) -> Self:
        """Cut at the quantiles of ``values``, so that bins hold about as many rows each.

        Edges are values that occur. Equal values stay together, so there are fewer bins when there are many ties;
        when the largest value has a bin to itself, that bin is ``[a, a]``.

        Parameters
        ----------
        values : array-like of shape (n,)
            What rows are binned on.
        bins : int, default 10
            How many, at most.

        Returns
        -------
        Bins
            The bins.
        """
        count = bin_count(bins)
        column = np.sort(np.asarray(as_numbers(values, "values"), dtype=np.float64), axis=None)
        not_empty(column, "values")
        if np.isnan(column[-1]):  # NaN sorts last
            raise fail(MissingValueError, "values", "must not be NaN")
        starts = column[[len(column) * k // count for k in range(count)]]
        return cls((*np.unique(starts).tolist(), float(column[-1])))

    @classmethod
    def from_edges(cls, edges: ArrayLike) -> Self:
        """Take the edges as given; the ends can be ``-inf`` and ``inf``."""
        array = np.asarray(as_numbers(edges, "edges"), dtype=np.float64)
        if array.ndim != 1 or len(array) < 2:
            raise fail(BinsError, "edges", "must be a list of at least two numbers", got=f"shape {array.shape}")
        steps = np.diff(array)
        if not (steps > 0).all():
            at = int((~(steps > 0)).argmax())
            got = f"{show(array[at])} before {show(array[at + 1])}"
            raise fail(BinsError, "edges", "must increase strictly", got=got, place=f"position {at}")
        return cls(tuple(array.tolist()))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The intervals as text."""
        return tuple(map(self.label, range(len(self))))

    def label(self, place: int) -> str:
        """Return one of the `labels`.

        Parameters
        ----------
        place : int
            The place of the bin, counted from 0.

        Returns
        -------
        str
            The interval as text.
        """
        a, b = self.edges[place : place + 2]
        return f"[{a:.4g}, {b:.4g}{')' if place < len(self) - 1 else ']'}"

    @property
    def equal_width(self) -> bool:
        """Whether there are two bins or more, all as wide as each other: as `uniform` makes them."""
        bounded = -math.inf < self.edges[0] < self.edges[-1] < math.inf
        return (
            bounded and len(self) >= 2 and self.edges == type(self).uniform(len(self), *self.edges[:: len(self)]).edges
        )

    def index(self, values: ArrayLike) -> IndexArray:
        """Return the number of the bin of each value."""
        column = np.asarray(as_numbers(values, "values"), dtype=np.float64)
        if column.size and not (column.min() >= self.edges[0] and column.max() <= self.edges[-1]):
            rule = f"must lie within the bins, {self.edges[0]:.6g} to {self.edges[-1]:.6g}"
            low, high = self.edges[0], self.edges[-1]
            hint = "add edges that cover every value; `-inf` and `inf` are allowed."
            raise refuse(column, "values", lambda x: ~((x >= low) & (x <= high)), BinsError, rule, hint)
        edges: FloatArray = np.array(self.edges)
        if self.equal_width:
            return uniform_index(column, edges)
        index = np.searchsorted(edges, column, side="right") - 1
        return np.minimum(index, len(self) - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; infinite edges are written as text."""
        return documents.document("bins", {"edges": [documents.number(edge) for edge in self.edges]})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        edges = documents.read("bins", document, {"edges": _read_edges})["edges"]
        return cls(tuple(edges))


_read_numbers = documents.list_of(documents.between(infinite=True), 2)


def _read_edges(value: Any) -> list[float]:
    """Read edges that increase; the last bin may be one point."""
    edges = _read_numbers(value)
    for place, (low, high) in enumerate(pairwise(edges)):
        if not (low < high or (low == high and place == len(edges) - 2)):
            documents.refuse(f"must increase; {low:.6g} stands before {high:.6g}")
    return edges


def bin_keys(bins: Bins) -> tuple[tuple[float, float], ...]:
    """Return the ends of each bin."""
    return tuple(pairwise(bins.edges))


@final
@dataclass(frozen=True, slots=True)
class Split:
    """How rows fall under keys.

    ``index`` numbers the keys of scored rows; ``early_index`` does so for rows not scored yet, or returns None. The
    ``name``, ``keys``, ``bins`` and ``top_label`` are those of the `Table` that results. ``edges`` are those of uniform
    bins of ``bin_on``, where the compiled kernel makes them.
    """

    name: str
    keys: tuple[Hashable, ...]
    index: Callable[[Scored, Rows], IndexArray]
    early_index: Callable[[slice], IndexArray | None]
    bins: Bins | None = None
    top_label: bool = False
    edges: FloatArray | None = None
    bin_on: str = "probability"

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.keys)

    @property
    def groups(self) -> bool:
        """Whether the keys are groups, which have a temperature each."""
        return self.bins is None


class BlockSums(NamedTuple):
    """The sums of a block of rows: of all keys, or of those that occur in it."""

    keys: slice | IndexArray
    sums: FloatArray


EVERY = slice(None)


def occurring(index: IndexArray, size: int) -> tuple[slice | IndexArray, IndexArray, int]:
    """Number only the keys that occur, where there are more keys than rows: which they are, their numbers, how many."""
    if size <= len(index):
        return EVERY, index, size
    keys, index = numbered(index)
    return keys, index, len(keys)


def by_key(scored: Scored, weight: FloatArray | None, split: Split, rows: Rows) -> BlockSums:
    """Sum scored rows by the keys of a split."""
    keys, index, size = occurring(split.index(scored, rows), split.size)
    return BlockSums(keys, summed(scored, weight, index, size))


def bins_for(
    predictions: Predictions, bins: int | Bins | str, bin_on: BinOn | None, strategy: Strategy
) -> tuple[Bins, BinOn]:
    """Return the bins, made from a number where need be, and what they bin on."""
    if not predictions.bin_choices:
        raise fail(OptionError, "bins", f"do not exist for {predictions.family} predictions", hint="leave `bins` out.")
    hint = None
    if bin_on == "probability":
        hint = "only two classes have a positive one; leave `bin_on` out."
    on = predictions.bin_choices[0] if bin_on is None else choice(bin_on, "bin_on", predictions.bin_choices, hint=hint)
    choice(strategy, "strategy", get_args(Strategy))
    if isinstance(bins, Bins):
        return bins, on
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
        hint = "for edges pass `bins=Bins.from_edges(edges)`."
        raise fail(BinsError, "bins", "must be a number of bins or a Bins", got=show(bins), hint=hint)
    if strategy == "quantile":
        return Bins.quantile(np.concatenate([binned_values(s, on) for s in predictions.blocks()]), int(bins)), on
    return Bins.uniform(int(bins), *predictions.bin_range(on)), on


def binned_values(scored: Scored, bin_on: str) -> FloatArray:
    """Return the column that rows are binned on."""
    column = {"probability": scored.predicted, "confidence": scored.confidence, "entropy": scored.entropy}[bin_on]
    if column is None:
        raise UnavailableError(f"rows cannot be binned on {bin_on}: these predictions have none.")
    return column


def by_bin(predictions: Predictions, bins: Bins, bin_on: str) -> Split:
    """Split rows by bin."""
    low, high = bins.edges[0], bins.edges[-1]
    highest = predictions.bin_range(bin_on)[1] if predictions.discrete else math.inf

    def index(scored: Scored, rows: Rows) -> IndexArray:
        # Rows that sum to 1 up to rounding have entropies that exceed their own bound by as much.
        values = np.minimum(binned_values(scored, bin_on), highest)
        if bin_on == "entropy" and math.isfinite(high):  # the last digit of an entropy may exceed its own bound
            slack = 1e-12 * max(abs(low), abs(high))
            values = np.where((values > high) & (values <= high + slack), high, values)
            values = np.where((values < low) & (values >= low - slack), low, values)
        return bins.index(values)

    def early_index(rows: slice) -> IndexArray | None:
        values = predictions.known_value(bin_on, rows)
        return None if values is None else bins.index(values)

    edges = None
    if bins.equal_width and bin_on in predictions.quick_bins:
        lowest = predictions.bin_range(bin_on)[0]
        edges = np.array(bins.edges) if low <= lowest and highest <= high else None
    top_label = bin_on != "probability"
    return Split(bin_on, bin_keys(bins), index, early_index, bins, top_label, edges, bin_on)


def by_group(predictions: Predictions, by: By) -> Split:
    """Split rows by the values of a column, or of several."""
    name, keys, codes = group_codes(by, predictions.n, predictions.outcome)
    top_label = "probability" not in predictions.bin_choices
    # Rows that are scored by their numbers can be put in the order of their groups first.
    early = bool(predictions.quick_bins)
    return Split(
        name, keys, lambda scored, rows: codes[rows], lambda rows: codes[rows] if early else None, top_label=top_label
    )


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The bins of an evaluation, and what they bin on; None for no table.

    Attributes
    ----------
    bins : Bins or None
        The bins.
    bin_on : str or None
        What rows are binned on.
    """

    bins: Bins | None = None
    bin_on: BinOn | None = None

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        bins: int | Bins | Literal["auto"] | None = "auto",
        bin_on: BinOn | None = None,
        strategy: Strategy = "uniform",
    ) -> Self:
        """Resolve what a caller asked for; see `wanted` for ``"auto"``.

        For uniform or given bins, any rows of the same family and the same classes do.
        """
        bins = cls.wanted(bins, predictions.binned_by_default, bin_on, strategy)
        return cls() if bins is None else cls(*bins_for(predictions, bins, bin_on, strategy))

    @staticmethod
    def wanted(
        bins: int | Bins | Literal["auto"] | None, by_default: bool, bin_on: BinOn | None, strategy: Strategy
    ) -> int | Bins | Literal["auto"] | None:
        """Say what ``"auto"`` means: ten bins for classifiers; for others none, unless another option asks for them."""
        if not isinstance(bins, str) or bins != "auto":
            return bins
        return 10 if by_default or bin_on is not None or strategy != "uniform" else None
