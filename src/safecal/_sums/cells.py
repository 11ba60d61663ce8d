"""The spectrum of two-class rows: what tests, temperatures and bounds need of them. Spectra merge with ``+``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._kernels.cells import CELLS, CENTRES, LOWEST
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from ..errors import DocumentError

__all__ = ["Cells", "Points", "WeightedCells"]

_SAME = 1e-7  # of the log-odds: a spread that is rounding


class Points(NamedTuple):
    """Rows that stand for all rows.

    ``L`` are the log-odds of the likelier outcome, ``w`` their weights, and ``n`` says how many rows each stands for;
    ``wrong`` says whether the other outcome happened, ``positive`` whether the likelier one is the positive one;
    ``cell`` is the number of the cell of the log-odds.
    """

    L: FloatArray
    w: FloatArray
    n: FloatArray
    wrong: BoolArray
    positive: BoolArray
    cell: IndexArray

    def take(self, kept: BoolArray | IndexArray) -> Self:
        """Return some of them."""
        L, w, n, wrong, positive, cell = self
        return type(self)(L[kept], w[kept], n[kept], wrong[kept], positive[kept], cell[kept])


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells:
    """Two-class rows of equal weight, in narrow cells of their log-odds.

    Two points with the first three moments of the log-odds of a cell stand for its rows: exactly, where there are no
    more than two different values in it.

    Attributes
    ----------
    moments : ndarray of shape (450, 2, 2, 4)
        As `cell_moments` gives them: by cell, by wrong, by positive.
    """

    moments: FloatArray
    _points: Points | None = field(default=None, init=False)

    def __add__(self, other: object) -> Self:
        return type(self)(self.moments + other.moments) if isinstance(other, Cells) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.moments, other.moments)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cells({self.moments[..., 0].sum():.0f} rows in {int((self.moments[..., 0] > 0).sum())} cells)"

    @property
    def far(self) -> int:
        """Rows of the last cell, whose log-odds no temperature brings near to failing."""
        return int(self.moments[-1, ..., 0].sum())

    def points(self) -> Points:
        """Return two points for each cell, or one where its rows are all alike."""
        if self._points is None:
            object.__setattr__(self, "_points", self._make_points())
        assert self._points is not None
        return self._points

    def _make_points(self) -> Points:
        cell, wrong, positive = np.nonzero(self.moments[..., 0])
        n, d1, d2, d3 = self.moments[cell, wrong, positive].T
        mean = d1 / n
        with np.errstate(over="ignore", invalid="ignore"):  # powers in the last cell, of which the mean alone is kept
            variance = np.maximum(d2 / n - mean * mean, 0.0)
            third = d3 / n - 3.0 * mean * d2 / n + 2.0 * mean**3
        spread = np.sqrt(variance)
        middle = CENTRES[cell] + mean
        alike = (spread <= _SAME * np.maximum(middle, CENTRES[cell])) | (n < 2.0)
        with np.errstate(all="ignore"):
            skew = np.where(alike, 0.0, third / (variance * spread))
        reach = np.sqrt(1.0 + 0.25 * skew * skew)
        below, above = 0.5 * skew - reach, 0.5 * skew + reach
        share = np.where(alike, 1.0, above / (above - below))
        spread = np.where(alike, 0.0, spread)
        two = ~alike
        L = np.concatenate([middle + below * spread, (middle + above * spread)[two]])
        counts = np.concatenate([n * share, (n * (1.0 - share))[two]])
        sides = [np.concatenate([x, x[two]]).astype(bool) for x in (wrong, positive)]
        cells = np.concatenate([cell, cell[two]])
        return Points(np.maximum(L, 0.0), np.ones(len(L)), counts, sides[0], sides[1], cells)

    @staticmethod
    def ends() -> FloatArray:
        """Return the log-odds between which the cells lie."""
        return np.append(LOWEST, np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the cells that are not empty, by their number."""
        flat = self.moments.reshape(-1, 4)
        used = np.flatnonzero(flat[:, 0]).tolist()
        return documents.document("cells", {"cells": {str(k): flat[k].tolist() for k in used}})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        flat = np.zeros((4 * CELLS, 4))
        for key, row in _rows(documents.body("cells", document, ("cells",))["cells"], 4, 4 * CELLS):
            flat[key] = row
        return cls(flat.reshape(CELLS, 2, 2, 4))


# Cells of rows with weights: eight to each doubling of the log-odds, four to each doubling of the weight.
_L_BITS, _W_BITS = 3, 2
_L_FIRST = (1023 - 8) << _L_BITS
_L_CELLS = (28 << _L_BITS) + 2
_W_CELLS = 2048 << _W_BITS


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedCells:
    """Two-class rows with weights, in cells of log-odds and weight; those that are not empty.

    Attributes
    ----------
    keys : ndarray of shape (cells,)
        Numbers of the cells, increasing: of log-odds, weight, wrong and positive.
    moments : ndarray of shape (cells, 6)
        Rows, and the sums of ``L``, ``w``, ``L**2``, ``w**2`` and ``L w``, of distances from the corner of the cell.
    """

    keys: AnyArray
    moments: FloatArray

    @classmethod
    def of(cls, L: FloatArray, w: FloatArray, wrong: BoolArray, positive: BoolArray) -> Self:
        """Sum rows with weights above 0."""
        cell = cls.numbers(L)
        key = ((cell * _W_CELLS + (w.view(np.int64) >> (52 - _W_BITS))) * 2 + wrong) * 2 + positive
        keys, index = np.unique(key, return_inverse=True)
        corner_L, corner_w = (corner[index] for corner in _corners(keys))
        x, y = L - corner_L, w - corner_w
        x2 = np.where(cell == _L_CELLS - 1, 0.0, x)  # squares of the last cell may overflow
        columns = (None, x, y, x2 * x2, y * y, x2 * y)
        sums = [np.bincount(index, weights=column, minlength=len(keys)) for column in columns]
        return cls(keys, np.stack(sums, axis=1).astype(np.float64))

    @property
    def far(self) -> int:
        """Rows of the last cell of log-odds, as in `Cells`."""
        return int(self.moments[self.keys // (4 * _W_CELLS) == _L_CELLS - 1, 0].sum())

    @staticmethod
    def numbers(L: FloatArray) -> IndexArray:
        """Number the cells of log-odds."""
        bits = np.ascontiguousarray(L, dtype=np.float64).view(np.int64)
        return np.asarray(np.clip((bits >> (52 - _L_BITS)) - (_L_FIRST - 1), 0, _L_CELLS - 1), dtype=np.intp)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, WeightedCells):
            return NotImplemented
        keys, index = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        total = np.zeros((len(keys), 6))
        np.add.at(total, index, np.concatenate([self.moments, other.moments]))
        return type(self)(keys, total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeightedCells):
            return False
        return np.array_equal(self.keys, other.keys) and np.array_equal(self.moments, other.moments)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"WeightedCells({self.moments[:, 0].sum():.0f} rows in {len(self.keys)} cells)"

    def points(self) -> Points:
        """Return four points for each cell, with the means, variances and the covariance of its rows."""
        n = self.moments[:, 0]
        x, y, x2, y2, xy = (column / n for column in self.moments[:, 1:].T)
        corner_L, corner_w = _corners(self.keys)
        L, w = corner_L + x, corner_w + y
        with np.errstate(over="ignore"):  # the last cell keeps no squares, and its log-odds may have none
            sL, sw = np.sqrt(np.maximum(x2 - x * x, 0.0)), np.sqrt(np.maximum(y2 - y * y, 0.0))
        last = self.keys // (4 * _W_CELLS) == _L_CELLS - 1
        sL, sw = np.where((sL <= _SAME * L) | last, 0.0, sL), np.where(sw <= _SAME * w, 0.0, sw)
        with np.errstate(all="ignore"):
            r = np.where(sL * sw > 0.0, np.clip((xy - x * y) / (sL * sw), -1.0, 1.0), 0.0)
        signs = ((1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
        counts = np.concatenate([0.25 * n * (1.0 + a * b * r) for a, b in signs])
        points = [np.concatenate([z + side[j] * s for side in signs]) for j, (z, s) in enumerate(((L, sL), (w, sw)))]
        sides = [np.tile((self.keys >> shift) % 2 == 1, 4) for shift in (1, 0)]
        used = counts > 0.0
        cells = np.tile(self.keys // (4 * _W_CELLS), 4).astype(np.intp)
        L = np.maximum(points[0], 0.0)
        return Points(L[used], points[1][used], counts[used], sides[0][used], sides[1][used], cells[used])

    @staticmethod
    def ends() -> FloatArray:
        """Return the log-odds between which the cells lie."""
        cells = np.arange(1, _L_CELLS, dtype=np.int64)
        lowest = ((cells + (_L_FIRST - 1)) << (52 - _L_BITS)).view(np.float64)
        return np.concatenate([[0.0], lowest, [np.inf]])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        rows = zip(self.keys.tolist(), self.moments.tolist(), strict=True)
        return documents.document("weighted_cells", {"cells": {str(key): row for key, row in rows}})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("weighted_cells", document, ("cells",))["cells"]
        rows = sorted(_rows(content, 6, 4 * _W_CELLS * _L_CELLS))
        keys = np.array([key for key, _ in rows], dtype=np.int64)
        return cls(keys, np.array([row for _, row in rows], dtype=np.float64).reshape(-1, 6))


def _corners(keys: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest log-odds and the smallest weight of each cell."""
    cell, weight = keys // (4 * _W_CELLS), keys // 4 % _W_CELLS
    L = np.where(cell == 0, 0.0, ((cell + (_L_FIRST - 1)) << (52 - _L_BITS)).view(np.float64))
    return L, (weight << (52 - _W_BITS)).view(np.float64)


def _rows(cells: Any, width: int, size: int) -> list[tuple[int, list[float]]]:
    """Check the cells of a document."""
    rows: list[tuple[int, list[float]]] = []
    for key, row in cells.items() if isinstance(cells, Mapping) else [("", None)]:
        whole = isinstance(key, str) and key.isdecimal() and int(key) < size
        if (
            not whole
            or not isinstance(row, list)
            or len(row) != width
            or not all(isinstance(x, int | float) for x in row)
        ):
            raise DocumentError("`document` must hold cells by their number; this one is damaged.")
        rows.append((int(key), row))
    return rows
