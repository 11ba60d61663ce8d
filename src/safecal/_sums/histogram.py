"""How the excess is spread over the rows: counts and sums in fixed cells. They merge with ``+``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import steadied
from .._types import FloatArray, IndexArray
from .cells import Points
from .scored import Scored

__all__ = ["FIRST", "SIDE", "Histogram", "counted", "of_points", "share_of_worst"]

# Cells of |excess|: eight to the octave, of equal width inside it, from 2**-20 to 2**14; on both sides of one around 0.
_PER_OCTAVE, _LOW, _OCTAVES = 8, -20, 34
SIDE = _PER_OCTAVE * _OCTAVES  # cells of one side
CELLS = 2 * SIDE + 1
FIRST = (1023 + _LOW) * _PER_OCTAVE - 1  # the number before the first cell
_MAGNITUDE = (1 << 63) - 1  # every bit of a float but its sign


@final
@steadied
@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows and summed excess in fixed cells, eight to each doubling of the excess; possible rows only.

    Quantiles read off it are right to an eighth of their value, or to a millionth of a nat near 0.

    Attributes
    ----------
    counts : tuple of float
        Weight in each cell, from the most negative excess to the largest.
    sums : tuple of float
        Weighted excess in each cell.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.evaluate([1, 1, 1, 0], [0.9, 0.8, 0.7, 0.95])
    >>> round(result.histogram.worst_share(0.25), 2)  # of the excess above 0, in the worst quarter of the rows
    1.0
    """

    counts: tuple[float, ...] = (0.0,) * CELLS
    sums: tuple[float, ...] = (0.0,) * CELLS

    @classmethod
    def of(cls, cells: FloatArray) -> Self:
        """Make one of a ``(CELLS, 2)`` array, as `counted` gives it."""
        return cls(tuple(cells[:, 0].tolist()), tuple(cells[:, 1].tolist()))

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Histogram):
            return NotImplemented
        pairs = ((self.counts, other.counts), (self.sums, other.sums))
        return type(self)(*(tuple(x + y for x, y in zip(a, b, strict=True)) for a, b in pairs))

    def __repr__(self) -> str:
        return f"Histogram(weight={sum(self.counts):.6g}, median={self.median:+.4g})"

    @property
    def median(self) -> float:
        """Median excess, as the mean of the cell it lies in; NaN when there are no rows."""
        counts = np.array(self.counts)
        total = counts.sum()
        if total == 0.0:
            return math.nan
        cell = int(np.searchsorted(np.cumsum(counts), 0.5 * total))
        return self.sums[cell] / self.counts[cell]

    def worst_share(self, rows: float = 0.01) -> float:
        """Return the share of all excess above 0 that the most surprising rows hold.

        Parameters
        ----------
        rows : float, default 0.01
            Which part of the rows.

        Returns
        -------
        float
            Near ``rows`` when surprise is spread evenly, near 1 when a few rows make it all; NaN without any excess
            above 0.
        """
        return share_of_worst(np.array([self.counts, self.sums]), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the cells that are not empty, by their number."""
        cells = {
            str(k): [c, documents.number(s)]
            for k, (c, s) in enumerate(zip(self.counts, self.sums, strict=True))
            if c > 0.0
        }
        return documents.document("histogram", {"cells": cells})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        counts, sums = [0.0] * CELLS, [0.0] * CELLS
        for k, (count, total) in documents.read("histogram", document, {"cells": _read_cells})["cells"].items():
            counts[k], sums[k] = count, total
        return cls(tuple(counts), tuple(sums))


def _read_cells(value: Any) -> dict[int, list[float]]:
    """Read weight and weighted excess of cells that are not empty: the mean of each lies in it."""
    cells = documents.by_number(documents.list_of(documents.between(infinite=True), 2, 2), CELLS)(value)
    for k, (count, total) in cells.items():
        step = abs(k - SIDE)
        low, high = (float(_ENDS[step]), float(_ENDS[step + 1])) if step else (0.0, float(_ENDS[1]))
        mean = (total if k >= SIDE else -total) / count if 0.0 < count < math.inf else math.nan
        mean = abs(mean) if not step else mean
        if not low * (1.0 - 1e-6) <= mean <= high * (1.0 + 1e-6):
            with documents.at(str(k)):
                documents.refuse("must be a weight above 0, and its excess in this cell")
    return cells


# What |excess| lies between in each step away from 0; the last has no end.
_ENDS = np.append(((np.arange(SIDE + 1, dtype=np.int64) + FIRST) << 49).view(np.float64), math.inf)


def _cell_numbers(excess: FloatArray) -> IndexArray:
    """Number the cells: the exponent and the first three binary digits of a float are what is wanted."""
    bits = np.ascontiguousarray(excess, dtype=np.float64).view(np.int64)
    step = ((bits & _MAGNITUDE) >> 49) - FIRST
    np.clip(step, 0, SIDE, out=step)
    return np.asarray(SIDE + np.where(bits < 0, -step, step), dtype=np.intp)


def counted(scored: Scored, weight: FloatArray | None) -> FloatArray:
    """Count a block: a ``(CELLS, 2)`` array of weights and weighted excess. Arrays add up."""
    excess, w = scored.excess, weight
    impossible = scored.impossible
    if impossible.any():
        excess = np.where(impossible, 0.0, excess)
        w = np.where(impossible, 0.0, 1.0 if w is None else w)
    cells = _cell_numbers(excess)
    parts = (w, excess if w is None else w * excess)
    return np.stack([np.bincount(cells, weights=part, minlength=CELLS) for part in parts], axis=1)


def share_of_worst(cells: FloatArray, rows: float = 0.01) -> float:
    """Return what `Histogram.worst_share` does, of a ``(2, CELLS)`` array."""
    counts, sums = cells[:, cells[0] > 0.0][:, ::-1]
    gains = np.maximum(sums, 0.0)
    positive = float(gains.sum())
    if positive == 0.0:
        return math.nan
    cumulated = np.cumsum(counts)
    part = np.clip((rows * cumulated[-1] - (cumulated - counts)) / counts, 0.0, 1.0)
    return float(part @ gains) / positive


def of_points(points: Points, weight: float) -> FloatArray:
    """Read the histogram of two-class rows off points that stand for them; ``weight`` is that of all possible rows.

    Rows without a point were certain, and right: their excess is 0. The array has the shape ``(2, CELLS)``.
    """
    q = special.expit(-points.L)
    excess = (points.wrong - q) * points.L
    w = points.n * points.w
    cells = _cell_numbers(excess)
    sums: FloatArray = np.empty((2, CELLS))
    for k, part in enumerate((w, w * excess)):
        sums[k] = np.bincount(cells, weights=part, minlength=CELLS)
    rest = weight - float(w.sum())
    sums[0, SIDE] += rest if rest > 1e-9 * weight else 0.0
    return sums
