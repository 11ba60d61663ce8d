"""How rows fall under keys: bins, groups, and what a caller asked for. It is decided once, for every door."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, final, get_args

import numpy as np

from .._checks.columns import choice, group_codes, numbered
from .._checks.message import fail, show
from .._types import BinOn, By, FloatArray, IndexArray, Rows, Strategy
from ..errors import BinsError, OptionError, UnavailableError
from .bins import Bins
from .scored import Scored, summed
from .table import Table, bin_keys

if TYPE_CHECKING:
    from ..families.predictions import Predictions

__all__ = ["EVERY", "Part", "Plan", "Split", "binned_values", "bins_for", "by_bin", "by_group", "by_key", "occurring"]


@final
@dataclass(frozen=True, slots=True)
class Split:
    """How rows fall under keys, and the table that results.

    ``index`` numbers the keys of scored rows; ``before`` does so for rows not scored yet, or returns None. ``edges``
    are those of uniform bins of ``bin_on``, where the compiled kernel makes them. ``groups`` is whether the keys are
    groups, which have a temperature each.
    """

    size: int
    index: Callable[[Scored, Rows], IndexArray]
    before: Callable[[slice], IndexArray | None]
    table: Callable[[FloatArray], Table]
    edges: FloatArray | None = None
    bin_on: str = "probability"
    groups: bool = False


class Part(NamedTuple):
    """The sums of a block: of all keys, or of those that occur in it."""

    keys: slice | IndexArray
    sums: FloatArray


EVERY = slice(None)


def occurring(index: IndexArray, size: int) -> tuple[slice | IndexArray, IndexArray, int]:
    """Number only the keys that occur, where there are more keys than rows: which they are, their numbers, how many."""
    if size <= len(index):
        return EVERY, index, size
    keys, index = numbered(index)
    return keys, index, len(keys)


def by_key(scored: Scored, weight: FloatArray | None, split: Split, rows: Rows) -> Part:
    """Sum scored rows by the keys of a split."""
    keys, index, size = occurring(split.index(scored, rows), split.size)
    return Part(keys, summed(scored, weight, index, size))


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
    most = predictions.bin_range(bin_on)[1] if predictions.discrete else math.inf

    def index(scored: Scored, rows: Rows) -> IndexArray:
        # Rows that sum to 1 up to rounding have entropies that exceed their own bound by as much.
        values = np.minimum(binned_values(scored, bin_on), most)
        if bin_on == "entropy" and math.isfinite(high):  # the last digit of an entropy may exceed its own bound
            slack = 1e-12 * max(abs(low), abs(high))
            values = np.where((values > high) & (values <= high + slack), high, values)
            values = np.where((values < low) & (values >= low - slack), low, values)
        return bins.index(values)

    def before(rows: slice) -> IndexArray | None:
        values = predictions.known_value(bin_on, rows)
        return None if values is None else bins.index(values)

    top = bin_on != "probability"
    edges = None
    if bins.equal_width and bin_on in predictions.quick_bins:
        least = predictions.bin_range(bin_on)[0]
        edges = np.array(bins.edges) if low <= least and most <= high else None
    return Split(len(bins), index, before, lambda found: Table(bin_on, bin_keys(bins), found, bins, top), edges, bin_on)


def by_group(predictions: Predictions, by: By) -> Split:
    """Split rows by the values of a column, or of several."""
    name, keys, codes = group_codes(by, predictions.n, predictions.outcome)
    top = "probability" not in predictions.bin_choices
    # Rows that are scored by their numbers can be put in the order of their groups first.
    early = bool(predictions.quick_bins)
    return Split(
        len(keys),
        lambda scored, rows: codes[rows],
        lambda rows: codes[rows] if early else None,
        lambda found: Table(name, keys, found, None, top),
        groups=True,
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
        """Resolve what a caller asked for.

        Parameters
        ----------
        predictions : Predictions
            The rows; for uniform or given bins any rows of the same family and the same classes do.
        bins : int, Bins, "auto" or None, default "auto"
            ``"auto"`` is ten bins for classifiers; for states and densities none, unless another option asks for them.
        bin_on : str, optional
            What rows are binned on.
        strategy : {"uniform", "quantile"}, default "uniform"
            Bins of equal width, or of about equally many rows.

        Returns
        -------
        Plan
            The bins themselves.
        """
        bins = cls.wanted(bins, predictions.binned_by_default, bin_on, strategy)
        return cls() if bins is None else cls(*bins_for(predictions, bins, bin_on, strategy))

    @staticmethod
    def wanted(
        bins: int | Bins | Literal["auto"] | None, by_default: bool, bin_on: BinOn | None, strategy: Strategy
    ) -> int | Bins | Literal["auto"] | None:
        """Say what ``"auto"`` means here."""
        if not isinstance(bins, str) or bins != "auto":
            return bins
        return 10 if by_default or bin_on is not None or strategy != "uniform" else None
