"""Published cells and ours, side by side, as text of at most 100 columns."""

from collections.abc import Sequence

import numpy as np

from .._sums.bins import Bins
from .._types import FloatArray
from .published import BINS, METRICS, PublishedColumn

__all__ = ["LABELS", "agreement", "beside", "rule", "signed"]

LABELS = (*Bins.uniform(BINS).labels, "weighted sum")
_LABEL, _ROWS, _CELL = 12, 8, 9


def signed(value: float, decimals: int = 4) -> str:
    """Return a number as the tables print it; no sign before a zero."""
    if np.isnan(value):
        return "N/A"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def rule(width: int) -> str:
    """Return a horizontal line."""
    return "-" * width


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
    wide = pair * _CELL + 2 * (pair - 1) + 3
    left = _LABEL + (_ROWS if rows is not None else 0)
    lines = [f"{published.name:<{left}}" + "".join(f"{metric:>{wide}}" for metric in METRICS)]
    heads = f"{'published':>{_CELL + 3}}" + (f"{'ours':>{_CELL + 2}}" if ours is not None else "")
    lines.append(
        f"{'probability':<{_LABEL}}" + (f"{'rows':>{_ROWS}}" if rows is not None else "") + heads * len(METRICS)
    )
    lines.append(rule(len(lines[1])))
    counts = None if rows is None else [*rows, sum(rows)]
    for k, label in enumerate(LABELS):
        if k == BINS:
            lines.append(rule(len(lines[1])))
        line = f"{label:<{_LABEL}}" + ("" if counts is None else f"{counts[k]:>{_ROWS}}")
        for m, printed in enumerate(published.printed):
            line += f"{printed[k]:>{_CELL + 3}}"
            line += "" if ours is None else f"{signed(float(ours[m, k])):>{_CELL + 2}}"
        lines.append(line)
    if ours is not None:
        lines.append(agreement([published], [ours]))
    return "\n".join(lines)


def agreement(published: Sequence[PublishedColumn], ours: Sequence[FloatArray]) -> str:
    """Say how many cells agree."""
    found = [column.agreeing(cells) for column, cells in zip(published, ours, strict=True)]
    return f"{sum(int(f.sum()) for f in found)} of {sum(f.size for f in found)} cells agree to the printed digits."
