"""Rows to tables, in one pass over the data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ._checks.columns import choice, group_codes
from ._checks.message import fail, show
from ._kernels.sums import runs
from ._types import AnyArray, ArrayLike, FloatArray, IndexArray, Rows
from .bins import Bins
from .errors import BinsError, OptionError, UnavailableError
from .families.predictions import Predictions
from .scored import Scored
from .summary import Summary, summaries, summed
from .table import Table, bin_keys

__all__ = ["Split", "bins_for", "binned_values", "by_bin", "by_group", "sweep", "tabulate"]


@final
@dataclass(frozen=True, slots=True)
class Split:
    """How rows fall under keys, and the table that results.

    ``index`` numbers the keys of scored rows; ``before`` does so for rows not scored yet, or returns None.
    """

    size: int
    index: Callable[[Scored, Rows], IndexArray]
    before: Callable[[slice], IndexArray | None]
    table: Callable[[tuple[Summary, ...]], Table]


See = Callable[[Scored, FloatArray | None, Rows], None]  # scored rows, their weights, which rows they are


def sweep(
    predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None, see: See | None = None
) -> tuple[Summary, list[Table]]:
    """Sum all rows, and the rows by the keys of each split, in one pass; ``see`` is shown every block.

    Rows whose first keys are known beforehand are scored in their order.
    """
    first = splits[0] if splits else None
    totals: list[FloatArray] = [np.zeros(())] * max(len(splits), 1)
    for rows in predictions.row_blocks():
        known = None if first is None else first.before(rows)
        where: Rows = rows
        if first is None or known is None:
            scored, w = predictions.weighted(rows, weight)
            sums = [summed(scored, w, s.index(scored, rows), s.size) for s in splits] or [summed(scored, w)]
        else:
            order, sorted_runs = runs(known, first.size)
            where = rows.start + order
            scored, w = predictions.weighted(where, weight)
            sums = [summed(scored, w, sorted_runs, first.size)]
            sums += [summed(scored, w, s.index(scored, where), s.size) for s in splits[1:]]
        if see is not None:
            see(scored, w, where)
        totals = [total + new for total, new in zip(totals, sums, strict=True)]
    if first is None:
        return summaries(totals[0])[0], []
    tables = [split.table(summaries(total)) for split, total in zip(splits, totals, strict=True)]
    return tables[0].total, tables


def tabulate(predictions: Predictions, splits: Sequence[Split], weight: AnyArray | None) -> list[Table]:
    """Sum the rows by the keys of each split."""
    return sweep(predictions, splits, weight)[1]


def bins_for(predictions: Predictions, bins: int | Bins | str, bin_on: str | None, strategy: str) -> tuple[Bins, str]:
    """Return the bins, made from a number where need be, and what they bin on."""
    if not predictions.bin_choices:
        raise fail(OptionError, "bins", f"do not exist for {predictions.family} predictions", hint="leave `bins` out.")
    hint = None
    if bin_on == "probability":
        hint = "only two classes have a positive one; leave `bin_on` out."
    on = predictions.bin_choices[0] if bin_on is None else choice(bin_on, "bin_on", predictions.bin_choices, hint=hint)
    choice(strategy, "strategy", ("uniform", "quantile"))
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
    most = predictions.bin_range(bin_on)[1] if predictions.binned_by_default else math.inf

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
    return Split(len(bins), index, before, lambda found: Table(bin_on, bin_keys(bins), found, bins, top))


def by_group(predictions: Predictions, by: ArrayLike) -> Split:
    """Split rows by the values of a column, or of several."""
    name, keys, codes = group_codes(by, predictions.n, predictions.outcome)
    top = "probability" not in predictions.bin_choices
    return Split(
        len(keys),
        lambda scored, rows: codes[rows],
        lambda rows: None,
        lambda found: Table(name, keys, found, None, top),
    )
