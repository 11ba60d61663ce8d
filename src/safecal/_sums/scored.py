"""Columns of a block of rows, and sums as arrays: made by key, and put together; a million keys are no burden."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np

from .._checks.columns import steadied
from .._kernels.compiled import Runs, column_sums, counts
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .summary import OF_CLASSES, completed

__all__ = [
    "ArraySums",
    "Scored",
    "Together",
    "added",
    "key_order",
    "known_surprisal",
    "merged",
    "possible_weight",
    "summed",
    "union",
]


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
    """Return the columns in nats to sum, by the name of their sum; impossible rows give 0."""
    e, v, k3, h, nv = s.excess, s.varentropy, s.third_cumulant, s.entropy, s.numerical_variance
    impossible = s.impossible
    columns: dict[str, Any] = {"n_impossible": None, "weight_impossible": None}
    w2: FloatArray | None = None
    if impossible.any():
        columns |= {"n_impossible": impossible, "weight_impossible": impossible if w is None else impossible * w}
        e, v, k3 = (np.where(impossible, 0.0, x) for x in (e, v, k3))
        h = None if h is None else np.where(impossible, 0.0, h)
        nv = None if nv is None else np.where(impossible, 0.0, nv)
        w = (~impossible).astype(np.float64) if w is None else np.where(impossible, 0.0, w)
    if w is None:
        e2 = e * e
        columns |= {"sum_excess": e, "sum_excess2_weight2": e2, "sum_excess3_weight3": e2 * e}
        columns |= {"sum_varentropy": v, "sum_third_cumulant_weight3": k3}
    else:
        w2 = w * w
        we = w * e
        we2 = we * we
        columns |= {"weight2": w2, "weight3": w2 * w}
        columns |= {"sum_excess": we, "sum_excess_weight2": w * we, "sum_excess_weight3": w2 * we}
        columns |= {"sum_excess2_weight2": we2, "sum_excess2_weight3": w * we2, "sum_excess3_weight3": we2 * we}
        columns |= {
            "sum_varentropy": w * v,
            "sum_varentropy_weight2": w2 * v,
            "sum_third_cumulant_weight3": w2 * w * k3,
        }
        h = None if h is None else w * h
        nv = None if nv is None else w2 * nv
    if h is not None:
        columns["sum_entropy"] = h
    if nv is not None:
        columns["sum_numerical_variance_weight2"] = nv
    return columns


def summed(
    scored: Scored, weight: FloatArray | None = None, index: IndexArray | Runs | None = None, size: int = 1
) -> FloatArray:
    """Sum a block by key, as a ``(size, sums)`` array that `summaries` reads; absent sums are NaN.

    ``index`` numbers the key of each row, or tells the runs of rows sorted by key. Arrays of the same keys add up.
    """
    with np.errstate(over="ignore"):  # the square of an excess beyond 1e154 is infinite; the excess itself is not
        columns = {name: c for name, c in _information(scored, weight).items() if c is not None}
    for name in OF_CLASSES:
        column = getattr(scored, name)
        if column is not None:
            columns[f"sum_{name}"] = column if weight is None else weight * column
    if weight is not None:
        columns["weight"] = weight
    sums = dict(zip(columns, column_sums(list(columns.values()), index, size).T, strict=True))
    sums["n"] = counts(len(scored), index, size)
    return completed(sums)


class ArraySums:
    """Sums that are arrays, one in each slot: they merge with ``+``, and are equal where all arrays are."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: object) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        with np.errstate(over="ignore"):
            return type(self)(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def _lists(self) -> dict[str, Any]:
        """Return the arrays as a document holds them."""
        return {name: getattr(self, name).tolist() for name in self.__slots__}

    @classmethod
    def _of_lists(cls, fields: Mapping[str, Any]) -> Self:
        """Return the sums whose arrays a document holds."""
        return cls(*(np.array(fields[name], dtype=np.float64) for name in cls.__slots__))


Keys = tuple[Hashable, ...]
Together = tuple[Keys, IndexArray]


def merged(keys: Keys, rows: FloatArray, others: Keys, more: FloatArray) -> tuple[Keys, FloatArray]:
    """Return all keys of two sides, those of the first first, and the sums of both; no key may come twice in a side."""
    together = union(keys, others)
    return together[0], added(rows, more, together)


def added(rows: FloatArray, more: FloatArray, together: Together) -> FloatArray:
    """Add up the sums of two sides, by what `union` says of their keys."""
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
