"""The cells of a table, three metrics in ten bins and their weighted sums: from rows, and as text beside the published.

`cells_of` gives the same numbers as `Table` in a fraction of its time, for studies that simulate a table many thousand
times.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from .._sums.splits import Bins
from .._sums.table import Table
from .._types import BoolArray, FloatArray
from .published import BINS, METRICS, PublishedColumn

__all__ = ["INFORMATIVE", "LABELS", "agreement", "beside", "cells_of", "cells_of_table", "outer_share", "signed"]

# Cells that tell something new: within a bin ECE is the size of ESCE, so its ten bins are left out.
INFORMATIVE: BoolArray = np.ones((len(METRICS), BINS + 1), dtype=bool)
INFORMATIVE[0, :BINS] = False

LABELS = (*Bins.uniform(BINS).labels, "weighted sum")
_LABEL_WIDTH, _COUNT_WIDTH, _CELL_WIDTH = 12, 8, 9


def cells_of(labels: Any, y_prob: FloatArray, logits: FloatArray | None = None) -> FloatArray:
    """Return ECE, ESCE and ECD: one row each, ten bins and the weighted sum; NaN where a bin is empty."""
    log_odds = special.logit(y_prob) if logits is None else logits
    bins = _bin(y_prob)
    n = np.bincount(bins, minlength=BINS)
    gaps = np.bincount(bins, labels - y_prob, BINS)
    excess = np.bincount(bins, (y_prob - labels) * log_odds, BINS)
    sums = np.stack([np.abs(gaps), gaps, excess])
    with np.errstate(invalid="ignore"):
        return np.column_stack([sums / n, sums.sum(axis=1) / n.sum()])


def outer_share(y_prob: FloatArray) -> float:
    """Return the share of rows in the first and in the last bin."""
    return float(np.isin(_bin(y_prob), (0, BINS - 1)).mean())


def _bin(y_prob: FloatArray) -> Any:
    """Number the bins from 0; the last one is closed."""
    edges = np.arange(1, BINS) / BINS
    return np.searchsorted(edges, y_prob, side="right")


def cells_of_table(table: Table) -> FloatArray:
    """Return the same cells of a table of ten bins."""
    bins = np.stack([np.abs(table.gaps), table.gaps, table.ecd])
    return np.column_stack([bins, [table.ece(), table.esce(), table.total.ecd]])


def signed(value: float, decimals: int = 4) -> str:
    """Return a number as the tables print it; no sign before a zero."""
    if np.isnan(value):
        return "N/A"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def beside(published: PublishedColumn, ours: FloatArray | None = None, rows: Sequence[int] | None = None) -> str:
    """Return a block of a table: published cells, ours beside them, and how many agree.

    Parameters
    ----------
    published : PublishedColumn
        The block.
    ours : ndarray of shape (3, 11), optional
        Our cells; without them the published ones stand alone.
    rows : sequence of 10 int, optional
        Rows in each bin, of ours.

    Returns
    -------
    str
        Lines of at most 100 characters.

    Examples
    --------
    >>> from safecal.paper import beside, published_table2
    >>> print(beside(published_table2()[1]).splitlines()[0])
    ResNet18             ECE        ESCE         ECD
    """
    pair = 2 if ours is not None else 1
    wide = pair * _CELL_WIDTH + 2 * (pair - 1) + 3
    left = _LABEL_WIDTH + (_COUNT_WIDTH if rows is not None else 0)
    lines = [f"{published.name:<{left}}" + "".join(f"{metric:>{wide}}" for metric in METRICS)]
    heads = f"{'published':>{_CELL_WIDTH + 3}}" + (f"{'ours':>{_CELL_WIDTH + 2}}" if ours is not None else "")
    counted = f"{'rows':>{_COUNT_WIDTH}}" if rows is not None else ""
    lines.append(f"{'probability':<{_LABEL_WIDTH}}{counted}{heads * len(METRICS)}")
    lines.append("-" * len(lines[1]))
    counts = None if rows is None else [*rows, sum(rows)]
    for k, label in enumerate(LABELS):
        if k == BINS:
            lines.append("-" * len(lines[1]))
        line = f"{label:<{_LABEL_WIDTH}}" + ("" if counts is None else f"{counts[k]:>{_COUNT_WIDTH}}")
        for m, printed in enumerate(published.printed):
            line += f"{printed[k]:>{_CELL_WIDTH + 3}}"
            line += "" if ours is None else f"{signed(float(ours[m, k])):>{_CELL_WIDTH + 2}}"
        lines.append(line)
    if ours is not None:
        lines.append(agreement([published], [ours]))
    return "\n".join(lines)


def agreement(published: Sequence[PublishedColumn], ours: Sequence[FloatArray]) -> str:
    """Say how many cells agree."""
    agreeing = [column.agreeing(cells) for column, cells in zip(published, ours, strict=True)]
    count, size = sum(int(cells.sum()) for cells in agreeing), sum(cells.size for cells in agreeing)
    return f"{count} of {size} cells agree to the printed digits."
