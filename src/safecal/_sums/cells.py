"""The spectrum of two-class rows: what tests, temperatures and bounds need of them, and their order. Spectra merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._kernels.compiled import POINT_SUMS, point_sums, two_points
from .._kernels.spectrum import CELLS, CENTRES, LOWEST, coarse_odds, point_columns
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .summary import CLOSE, COLUMN, LIKE, ZERO, added_rows, as_numbers, completed

__all__ = ["Cells", "Order", "Points", "WeightedCells", "order_of_cells"]

_HEAVIEST = 1e80  # more than any weight
_SAME_ODDS = 1e-7  # of the log-odds: a spread that is rounding


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
        if not isinstance(other, Cells):
            return NotImplemented
        with np.errstate(over="ignore"):  # the last cell has no end
            return type(self)(self.moments + other.moments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and np.array_equal(self.moments, other.moments)

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
        L, counts, kind = _points_of(self.moments.reshape(4 * CELLS, 4))
        return Points(L, np.ones(len(L)), counts, (kind & 2) != 0, (kind & 1) != 0, kind >> 2)

    def together(self) -> tuple[FloatArray, FloatArray]:
        """Return log-odds and counts of points that tell what is expected: nothing of it depends on the outcome."""
        a, b, c, d = self.moments.reshape(CELLS, 4, 4).swapaxes(0, 1)
        with np.errstate(over="ignore"):  # the last cell has no end
            return _points_of((a + b) + (c + d))[:2]

    @staticmethod
    def ends() -> FloatArray:
        """Return the log-odds between which the cells lie."""
        return np.append(LOWEST, np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the cells that are not empty, by their number."""
        flat = self.moments.reshape(-1, 4)
        used = np.flatnonzero(flat[:, 0])
        cells = dict(zip(map(str, used.tolist()), as_numbers(flat[used]), strict=True))
        return documents.document("cells", {"cells": cells})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        flat = np.zeros((4 * CELLS, 4))
        rows = documents.by_number(_cell_reader(4), 4 * CELLS)
        for key, row in documents.read("cells", document, {"cells": rows})["cells"].items():
            flat[key] = row
        half = np.append(np.diff(LOWEST) / 2.0, 0.0)[np.arange(len(flat)) // 4] * CLOSE
        n, d1, d2, d3 = flat.T
        last = np.arange(len(flat)) >= len(flat) - 4  # it has no end, and no squares
        with np.errstate(over="ignore", invalid="ignore"):
            inside = np.abs(d1) <= n * half
            inside &= (d2 >= 0.0) & (d2 <= n * half**2) & (np.abs(d3) <= d2 * half)
            inside &= d1 * d1 <= n * d2 * CLOSE + 1e-9 * (n * half) ** 2
        _require_inside(np.where(last, (d1 >= 0.0) & (d2 == 0.0) & (d3 == 0.0), inside), np.arange(len(flat)))
        return cls(flat.reshape(CELLS, 2, 2, 4))


def _points_of(moments: FloatArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return log-odds and counts of two points for each set of rows, or of one where they are alike, and their sets.

    ``moments`` has a row for each set, and as many sets for each cell.
    """
    points = two_points(moments, CENTRES)
    if points is not None:
        return points
    used = np.flatnonzero(moments[:, 0])
    n, d1, d2, d3 = moments[used].T
    mean, centre = d1 / n, CENTRES[used // (len(moments) // CELLS)]
    with np.errstate(all="ignore"):  # powers in the last cell, of which the mean alone is kept
        second = d2 / n
        variance = np.maximum(second - mean * mean, 0.0)
        third = d3 / n - 3.0 * mean * second + 2.0 * (mean * mean * mean)
        spread = np.sqrt(variance)
        middle = centre + mean
        alike = (spread <= _SAME_ODDS * np.maximum(middle, centre)) | (n < 2.0)
        half = np.where(alike, 0.0, 0.5 * third / (variance * spread))
    reach = np.sqrt(1.0 + half * half)
    above = half + reach
    share = np.where(alike, 1.0, 0.5 * above / reach)
    two = np.flatnonzero(~alike)
    L = np.concatenate([np.where(alike, middle, middle + (half - reach) * spread), (middle + above * spread)[two]])
    counts = np.concatenate([n * share, (n * (1.0 - share))[two]])
    return np.maximum(L, 0.0), counts, np.concatenate([used, used[two]])


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
        return type(self)(keys, added_rows(np.concatenate([self.moments, other.moments]), index, len(keys)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeightedCells):
            return False
        return np.array_equal(self.keys, other.keys) and np.array_equal(self.moments, other.moments)

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
        sL, sw = np.where((sL <= _SAME_ODDS * L) | last, 0.0, sL), np.where(sw <= _SAME_ODDS * w, 0.0, sw)
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
        cells = dict(zip(map(str, self.keys.tolist()), as_numbers(self.moments), strict=True))
        return documents.document("weighted_cells", {"cells": cells})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        cells = documents.by_number(_cell_reader(6), 4 * _W_CELLS * _L_CELLS)
        rows = sorted(documents.read("weighted_cells", document, {"cells": cells})["cells"].items())
        keys = np.array([key for key, _ in rows], dtype=np.int64)
        moments = np.array([row for _, row in rows], dtype=np.float64).reshape(-1, 6)
        n, x, y, x2, y2, xy = moments.T
        corner, corner_w = _corners(keys)
        last = keys // (4 * _W_CELLS) == _L_CELLS - 1  # as above
        with np.errstate(all="ignore"):
            end, end_w = (ends[0] for ends in (_corners(keys + 4 * _W_CELLS), _corners(keys + 4)[1:]))
            wide, wide_w = (end - corner) * CLOSE, (end_w - corner_w) * CLOSE
            inside = (x >= 0.0) & (y >= 0.0) & (y <= n * wide_w) & (y2 >= 0.0) & (y2 <= n * wide_w**2)
            inside &= np.isfinite(end_w) & (end_w < _HEAVIEST)
            inside &= np.where(last, (x2 == 0.0) & (xy == 0.0), (x <= n * wide) & (x2 >= 0.0) & (x2 <= n * wide**2))
            inside &= (xy >= 0.0) & (last | (xy <= n * wide * wide_w))
        _require_inside(inside, keys)
        return cls(keys, moments)


def _corners(keys: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest log-odds and the smallest weight of each cell."""
    cell, weight = keys // (4 * _W_CELLS), keys // 4 % _W_CELLS
    L = np.where(cell == 0, 0.0, ((cell + (_L_FIRST - 1)) << (52 - _L_BITS)).view(np.float64))
    return L, (weight << (52 - _W_BITS)).view(np.float64)


def _cell_reader(width: int) -> Callable[[Any], list[float]]:
    """Return the reader of a cell: how many rows it has, which are some, and their sums."""
    numbers = documents.list_of(documents.between(infinite=True), width, width)

    def reader(value: Any) -> list[float]:
        row = numbers(value)
        if not 0.0 < row[0] <= documents.LARGEST_COUNT:
            documents.refuse("must begin with a number of rows above 0", row[0])
        return row

    return reader


def _require_inside(inside: BoolArray, keys: IndexArray) -> None:
    """Refuse cells whose sums are not those of log-odds, and of weights, that lie in them."""
    if not inside.all():
        with documents.at("cells"), documents.at(str(keys[int((~inside).argmax())])):
            documents.refuse("must be the sums of rows that lie in this cell")


_OF_LIKELIEST = ("n", "weight", "sum_confidence", "sum_correct")
_LEAST = 2.0**-53  # what a confidence lacks of 1 at least, where it is not certain


class Order(NamedTuple):
    """Cells one after the other, the ends of each, and their sums, as `summed` gives them."""

    on: str  # "probability", "confidence", "spread", "width" or "perplexity"
    label: int | None  # the class that is predicted in all of them, where it is one
    low: FloatArray
    high: FloatArray
    sums: FloatArray
    coarse: IndexArray  # the number of the coarse cell that each of them is in

    def coarsened(self) -> Order:
        """Return the coarse cells in their place."""
        if not len(self.coarse):
            return self
        first = np.flatnonzero(np.diff(self.coarse, prepend=-1))
        last = np.append(first[1:], len(self.coarse)) - 1
        with np.errstate(invalid="ignore", over="ignore"):
            sums = np.add.reduceat(self.sums, first, axis=0)
        return self._replace(low=self.low[first], high=self.high[last], sums=sums, coarse=self.coarse[first])

    def right_or_wrong(self) -> FloatArray:
        """Return the sums of all rows, if each had but two outcomes: its likeliest class is right, or wrong.

        A row that is less than half sure says that its likeliest class is wrong: it claims nothing, and has no excess.
        """
        n, weight, confidence, correct = (self.sums[:, COLUMN[name]] for name in _OF_LIKELIEST)
        c = np.clip(confidence / weight, _LEAST, 1.0 - _LEAST)
        odds, wrong = np.maximum(special.logit(c), 0.0), weight - correct
        moments = [odds**k * (wrong * c**k + correct * (c - 1.0) ** k) for k in (1, 2, 3)]
        varentropy = weight * c * (1.0 - c) * odds**2
        columns = {
            "n": n,
            "weight": weight,
            "sum_excess": moments[0],
            "sum_excess2_weight2": moments[1],
            "sum_excess3_weight3": moments[2],
            "sum_varentropy": varentropy,
            "sum_third_cumulant_weight3": varentropy * (2.0 * c - 1.0) * odds,
        }
        return completed({name: np.array([column.sum()]) for name, column in columns.items()})


def order_of_cells(spectrum: Cells | WeightedCells) -> Order:
    """Return two-class rows in the order of their probability; each side of one half has cells of its own."""
    points = spectrum.points()
    weighted = isinstance(spectrum, WeightedCells)
    low, high, coarse = _probability_cells(weighted)
    cells = len(low) // 2
    quick = None if weighted else point_sums(points.L, points.n, points.wrong, points.positive, points.cell)
    if quick is not None:
        used, columns = quick
        sums = columns.take(_POINT_COLUMNS, axis=1)  # what `completed` does, of so many places a good deal faster
        sums[:, _ZERO_COLUMNS] = 0.0
        sums[:, COLUMN["sum_brier"]] = np.nan
    else:
        place = np.where(points.positive, cells + points.cell, cells - 1 - points.cell)
        occurs = np.bincount(place, minlength=2 * cells) > 0
        used = np.flatnonzero(occurs)
        sums = _sums_of_points(points, (np.cumsum(occurs) - 1)[place], len(used))
    return Order("probability", None, low[used], high[used], sums, coarse[used])


_POINT_COLUMNS = [POINT_SUMS.index(name if name in POINT_SUMS else LIKE.get(name, "weight")) for name in COLUMN]
_ZERO_COLUMNS = [COLUMN[name] for name in ZERO]


@cache
def _probability_cells(weighted: bool) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return the probabilities between which the cells of both sides lie, in their order, and their coarse cells."""
    ends = WeightedCells.ends() if weighted else Cells.ends()
    above, below = special.expit(ends), special.expit(-ends)
    cell = np.arange(len(ends) - 1)
    coarse = [coarse_odds(cell, np.full(len(cell), side), weighted=weighted) for side in (False, True)]
    return (
        np.concatenate([below[1:][::-1], above[:-1]]),
        np.concatenate([below[:-1][::-1], above[1:]]),
        np.concatenate([coarse[0][::-1], coarse[1]]),
    )


def _sums_of_points(points: Points, index: IndexArray, size: int) -> FloatArray:
    """Sum points by the number of their place."""
    columns = point_columns(*points[:5])
    with np.errstate(over="ignore", invalid="ignore"):
        sums: dict[str, FloatArray] = {
            name: np.bincount(index, weights=column, minlength=size).astype(np.float64, copy=False)
            for name, column in columns.items()
        }
    sums.setdefault("n", sums["weight"])
    return completed(sums)
