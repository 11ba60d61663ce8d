"""Columns of a block of rows, and their sums: by key, put together by key, and in cells of how the excess is spread."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import steadied
from .._kernels.compiled import Runs, column_sums, counts
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .summary import OF_CLASSES, completed

if TYPE_CHECKING:
    from .cells import Points

__all__ = [
    "CELLS", "FIRST", "SIDE", "ArraySums", "Histogram", "Scored", "Together", "added", "counted", "key_order",
    "known_surprisal", "of_points", "possible_weight", "share_of_worst", "summed", "union",
]  # fmt: skip


@final
@steadied
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Per-row columns of a block of predictions, in nats.

    Large ``excess`` means the outcome was a surprise the prediction did not announce; negative ``excess`` means it was
    less surprising than announced. A column is None where it does not exist for the family.

    Attributes
    ----------
    excess : ndarray of shape (n,)
        Surprisal minus entropy; ``+inf`` where the outcome was impossible.
    varentropy : ndarray of shape (n,)
        Variance of the surprisal if the prediction is right.
    third_cumulant : ndarray of shape (n,)
        Third cumulant of the surprisal if the prediction is right.
    surprisal, entropy : ndarray of shape (n,) or None
        ``-log p(outcome)`` and its expectation; None for an unnormalised density.
    predicted, observed : ndarray of shape (n,) or None
        What reliability compares: probability and occurrence of the positive class for two classes, of the most likely
        class for more; None for states and densities.
    confidence, correct : ndarray of shape (n,) or None
        Probability of the most likely class, and whether it happened.
    brier : ndarray of shape (n,) or None
        Squared distance between probabilities and outcome.
    numerical_variance : ndarray of shape (n,) or None
        Variance of ``excess`` that comes from numerical draws; None where nothing was drawn.

    Examples
    --------
    >>> import safecal
    >>> scored = safecal.bernoulli([1, 0], [0.9, 0.9]).score()
    >>> scored.excess.round(3).tolist()
    [-0.22, 1.978]
    """

    excess: FloatArray
    varentropy: FloatArray
    third_cumulant: FloatArray
    surprisal: FloatArray | None = None
    entropy: FloatArray | None = None
    predicted: FloatArray | None = None
    observed: AnyArray | None = None
    confidence: FloatArray | None = None
    correct: AnyArray | None = None
    brier: FloatArray | None = None
    numerical_variance: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.excess)

    def __repr__(self) -> str:
        present = ", ".join(f.name for f in fields(self) if getattr(self, f.name) is not None)
        return f"Scored({len(self)} rows: {present})"

    @property
    def impossible(self) -> BoolArray:
        """True where an outcome of probability zero happened."""
        return np.isposinf(self.excess)

    @classmethod
    def concatenate(cls, blocks: Sequence[Self]) -> Self:
        """Put blocks of one family below each other."""
        columns = {f.name: [getattr(block, f.name) for block in blocks] for f in fields(cls)}
        joined: dict[str, Any] = {k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()}
        return cls(**joined)


def possible_weight(scored: Scored, weight: FloatArray | None) -> FloatArray | None:
    """Return the weights, 0 for impossible rows; None where all are 1."""
    impossible = scored.impossible
    if not impossible.any():
        return weight
    return np.where(impossible, 0.0, 1.0 if weight is None else weight)


def _information(s: Scored, w: FloatArray | None) -> dict[str, Any]:
    """Return the columns in nats to sum, by the name of their sum; impossible rows give 0, and None is no column."""
    e, v, k3, h, nv = s.excess, s.varentropy, s.third_cumulant, s.entropy, s.numerical_variance
    columns: dict[str, Any] = {}
    impossible = s.impossible
    if impossible.any():
        columns |= {"n_impossible": impossible, "weight_impossible": impossible if w is None else impossible * w}
        e, v, k3 = (np.where(impossible, 0.0, x) for x in (e, v, k3))
        h, nv = (None if x is None else np.where(impossible, 0.0, x) for x in (h, nv))
        w = possible_weight(s, w)
    if w is None:
        e2 = e * e
        columns |= {"sum_excess": e, "sum_excess2_weight2": e2, "sum_excess3_weight3": e2 * e}
        columns |= {"sum_varentropy": v, "sum_third_cumulant_weight3": k3}
    else:
        w2, we = w * w, w * e
        we2 = we * we
        columns |= {"weight2": w2, "weight3": w2 * w}
        columns |= {"sum_excess": we, "sum_excess_weight2": w * we, "sum_excess_weight3": w2 * we}
        columns |= {"sum_excess2_weight2": we2, "sum_excess2_weight3": w * we2, "sum_excess3_weight3": we2 * we}
        columns |= {"sum_varentropy": w * v, "sum_varentropy_weight2": w2 * v}
        columns["sum_third_cumulant_weight3"] = w2 * w * k3
        h = None if h is None else w * h
        nv = None if nv is None else w2 * nv
    return columns | {"sum_entropy": h, "sum_numerical_variance_weight2": nv}


def summed(
    scored: Scored, weight: FloatArray | None = None, index: IndexArray | Runs | None = None, size: int = 1
) -> FloatArray:
    """Sum a block by key, as a ``(size, sums)`` array that `summaries` reads; absent sums are NaN.

    ``index`` numbers the key of each row, or tells the runs of rows sorted by key. Arrays of the same keys add up.
    """
    with np.errstate(over="ignore"):  # the square of an excess beyond 1e154 is infinite; the excess itself is not
        columns = _information(scored, weight) | {"weight": weight}
    for name in OF_CLASSES:
        column = getattr(scored, name)
        columns[f"sum_{name}"] = column if weight is None or column is None else weight * column
    columns = {name: column for name, column in columns.items() if column is not None}
    sums = dict(zip(columns, column_sums(list(columns.values()), index, size).T, strict=True))
    sums["n"] = counts(len(scored), index, size)
    return completed(sums)


class ArraySums:
    """Sums that are arrays, one in each slot: they merge with ``+``, and are equal where all arrays are."""

    __slots__: tuple[str, ...] = ()

    kind: ClassVar[str]  # of its documents

    def __add__(self, other: object) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        with np.errstate(over="ignore"):
            return type(self)(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document(self.kind, {name: getattr(self, name).tolist() for name in self.__slots__})

    @classmethod
    def _of_lists(cls, fields: Mapping[str, Any]) -> Self:
        """Return the sums whose arrays a document holds."""
        return cls(*(np.array(fields[name], dtype=np.float64) for name in cls.__slots__))


Keys = tuple[Hashable, ...]
Together = tuple[Keys, IndexArray]


def added(rows: FloatArray, more: FloatArray, together: Together) -> FloatArray:
    """Add up the sums of two sides, by what `union` says of their keys; no key may come twice in a side."""
    keys, index = together
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.zeros((len(keys), rows.shape[1]))
        out[: len(rows)] = rows
        out[index] += more
        return out


def union(keys: Keys, others: Keys) -> Together:
    """Return all keys of two sides, those of the first first, and the place of each of the others among them.

    Where both sides are alike, the first is returned itself.
    """
    if keys == others:
        return keys, np.arange(len(keys))
    places = {key: place for place, key in enumerate(keys)}
    index = np.fromiter((places.setdefault(key, len(places)) for key in others), dtype=np.intp, count=len(others))
    return tuple(places), index


def known_surprisal(scored: Scored) -> FloatArray:
    """Return the surprisals; only normalised predictions, which have them, have a log-partition."""
    assert scored.surprisal is not None
    return scored.surprisal


def key_order(keys: Sequence[Any]) -> IndexArray | None:
    """Return the places of keys in their order, missing ones last; None where keys of mixed types have no order."""
    try:
        places = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # some are missing, or they are of mixed types
        try:
            places = sorted(range(len(keys)), key=lambda k: _rank(keys[k]))
        except TypeError:
            return None
    return np.array(places, dtype=np.intp)


def _rank(key: Any) -> Any:
    return tuple(map(_rank, key)) if isinstance(key, tuple) else (key is None, 0 if key is None else key)


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
    excess, w = scored.excess, possible_weight(scored, weight)
    if w is not weight:  # some are impossible
        excess = np.where(scored.impossible, 0.0, excess)
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
