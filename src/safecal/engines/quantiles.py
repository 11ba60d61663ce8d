"""Edges of quantile bins from counts on a fine grid, which add up."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from .._checks.message import fail
from .._sums.bins import Bins
from .._sums.splits import binned_values, bins_for
from .._types import AnyArray, BinOn
from ..errors import OptionError
from ..families.predictions import Predictions
from ..inputs.batch import Batch

__all__ = ["CELLS", "Grid", "count", "refuse_unbounded"]

CELLS = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """Rows in each cell of the range of what they are binned on."""

    on: BinOn
    low: float
    high: float
    counts: AnyArray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.on, self.low, self.high, self.counts + other.counts)

    def bins(self, size: int) -> tuple[Bins, BinOn]:
        """Return bins of about equally many rows, right to a millionth of the range, and what they bin on."""
        below = np.cumsum(self.counts)
        wanted = below[-1] * np.arange(1, size) / size
        cells = np.unique(np.searchsorted(below, wanted, side="left") + 1)
        cells = cells[(cells > 0) & (cells < CELLS)]
        inner = self.low + cells / CELLS * (self.high - self.low)
        return Bins.from_edges([self.low, *inner.tolist(), self.high]), self.on


def count(stream: Iterable[Batch], bin_on: BinOn | None) -> Grid | None:
    """Count the rows of all batches; None where there are none."""
    counts = np.zeros(CELLS, dtype=np.int64)
    low = high = 0.0
    on: BinOn | None = None
    for batch in stream:
        if not on:
            refuse_unbounded(batch.predictions)
            on = bins_for(batch.predictions, 1, bin_on, "uniform")[1]
            low, high = batch.predictions.bin_range(on)
        for scored in batch.predictions.blocks():
            place = (binned_values(scored, on) - low) / (high - low) * CELLS
            counts += np.bincount(np.clip(place.astype(np.intp), 0, CELLS - 1), minlength=CELLS)
    return Grid(on, low, high, counts) if on else None


def refuse_unbounded(predictions: Predictions) -> None:
    """Refuse predictions for which there is no grid."""
    if not predictions.binned_by_default:
        hint = "pass edges: `bins=Bins.from_edges([...])`."
        rule = f'cannot be "quantile" for so many {predictions.family} rows'
        raise fail(OptionError, "strategy", rule, hint=hint)
