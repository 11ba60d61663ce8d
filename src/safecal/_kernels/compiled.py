"""The compiled kernel, where it was built, and sums by key with it or without; ``SAFECAL_PURE=1`` leaves it out.

It gives the numbers that NumPy gives. Sums of two-outcome rows are written for the common case: none so near to
certainty that its digits are lost, none impossible where there are weights, at most 256 keys.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from .spectrum import CELLS, NODES

MOST_KEYS = 256
MOST_DIMENSIONS = 8
_WORD = 8  # bytes
_COLUMNS = (
    "sum_excess", "sum_excess2_weight2", "sum_excess3_weight3", "sum_varentropy", "sum_third_cumulant_weight3",
    "sum_entropy", "sum_confidence", "sum_correct", "sum_brier", "sum_predicted", "sum_observed",
)  # fmt: skip
_WEIGHTED = (
    "weight", "weight2", "weight3", "sum_excess_weight2", "sum_excess_weight3", "sum_excess2_weight3",
    "sum_varentropy_weight2",
)  # fmt: skip


def _loaded() -> Any:
    if os.environ.get("SAFECAL_PURE") == "1":
        return None
    try:
        return import_module("safecal._kernels._compiled")
    except ImportError:
        return None


_module = _loaded()


class KernelSums(NamedTuple):
    """Sums by key, by their names in `Summary`; where it was wanted, the spectrum."""

    by_key: dict[str, FloatArray]
    certain: int  # rows that give one outcome a probability of 0
    spectrum: FloatArray | None = None  # as `cell_moments` gives it
    nodes: FloatArray | None = None  # (keys, 20): by node, R and its derivatives


def available() -> bool:
    """Tell whether the compiled kernel is there."""
    return _module is not None


def instructions() -> str | None:
    """Name the instruction set that the compiled loops run with here; None where they are not there."""
    return None if _module is None else str(_module.instructions())


def floats(values: AnyArray) -> AnyArray:
    """Return numbers as the kernel takes them: native float32 where they are float32, else float64; see `_laid_out`."""
    return _laid_out(values, np.float32 if values.dtype == np.float32 else np.float64)


def _laid_out(array: AnyArray, dtype: type[np.generic]) -> AnyArray:
    """Return an array of a type, contiguous and aligned; a copy only where it is not."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned:  # as most are, and `np.require` takes a while
        return array
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _outcomes(happened: AnyArray) -> AnyArray:
    """Return truths as the kernel takes them: next to each other, or each the lowest byte of a word."""
    if happened.dtype == np.bool_ and happened.strides == (_WORD,):
        return happened
    return _laid_out(happened, np.bool_)


def bernoulli_sums(
    values: AnyArray,
    happened: AnyArray,
    *,
    logits: bool = False,
    weight: FloatArray | None = None,
    keys: int = 1,
    edges: FloatArray | None = None,
    confidence: bool = False,
    index: IndexArray | None = None,
    spectrum: bool = False,
    nodes: bool = False,
) -> KernelSums | None:
    """Sum rows by uniform bins (``edges``), by the number of their key (``index``) or all together.

    ``values`` are contiguous floats or doubles, probabilities or log-odds. ``edges`` are those of the probability or of
    the ``confidence``. ``spectrum`` asks for the moments by cell of the log-odds of rows without weights, the certain
    ones left out; ``nodes`` for the sums by key of what `node_rows` gives. None where the kernel is not there, or the
    rows are not the common case.
    """
    if _module is None or keys > MOST_KEYS:
        return None
    names = (*_COLUMNS, *(() if weight is None else _WEIGHTED), "n_impossible", "n")
    sums = np.empty((keys, len(names)))
    moments = np.zeros((CELLS, 2, 2, 4)) if spectrum and weight is None else None
    at_nodes = np.empty((keys, 4 * len(NODES))) if nodes and weight is None else None
    values, outcomes = floats(values), _outcomes(happened).view(np.uint8)
    numbers = None if index is None else _laid_out(index, np.int64)
    weights = None if weight is None else _laid_out(weight, np.float64)
    certain = _module.binary_sums(
        len(values), keys, values.itemsize, logits, confidence, values, outcomes, weights, edges, numbers, sums,
        moments, at_nodes,
    )  # fmt: skip
    if certain < 0:
        return None
    by_key = dict(zip(names, sums.T, strict=True))
    if weight is None:
        by_key["weight_impossible"] = by_key["n_impossible"]
        by_key["weight2"] = by_key["weight3"] = by_key["n"] - by_key["n_impossible"]
    return KernelSums(by_key, certain, moments, at_nodes)


def class_scores(
    values: AnyArray, y: IndexArray, *, logits: bool, nodes: bool = False
) -> tuple[FloatArray, IndexArray, FloatArray | None] | None:
    """Score the logits or probabilities of K classes, an ``(n, K)`` array as `floats` makes it.

    Returns the seven columns of `classes.ClassScores`, ``(7, n)``, the most likely classes, and what `node_rows`
    gives of the gaps, ``(5, 4, n)``, if ``nodes`` asks for it. None where the kernel is not there.
    """
    if _module is None:
        return None
    n, classes = values.shape
    columns, top = np.empty((7, n)), np.empty(n, dtype=np.int64)
    at_nodes = np.empty((len(NODES), 4, n)) if nodes else None
    values, numbers = floats(values), _laid_out(y, np.int64)
    fits = _module.class_scores(n, classes, values.itemsize, logits, values, numbers, columns, top, at_nodes)
    return (columns, top.astype(np.intp, copy=False), at_nodes) if fits else None


def gap_moments(z: AnyArray, beta: float) -> FloatArray | None:
    """Return mean, variance and third cumulant of how far logits lie below the largest one, under ``p**beta``, and it.

    ``z`` are (n, K) logits, -inf where a class is impossible, and ``beta`` is at least 1e-9; the result has the shape
    (4, n). None where the kernel is not there.
    """
    if _module is None:
        return None
    n, classes = z.shape
    columns, values = np.empty((4, n)), floats(z)
    _module.gap_moments(n, classes, values.itemsize, beta, values, columns)
    return columns


def key_sums(column: AnyArray, index: IndexArray, keys: int) -> FloatArray | None:
    """Sum a column over the rows of each key. None where the kernel is not there, or there are too many keys."""
    if _module is None or not 0 < keys <= MOST_KEYS:
        return None
    sums = np.empty(keys)
    numbers = _laid_out(index, np.int64)
    done = _module.sum_by_key(len(numbers), keys, _laid_out(column, np.float64), numbers, sums)
    return sums if done else None


def logistic_sums(
    shift: float, slope: float, z: FloatArray, away: FloatArray, mass: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Sum rows of a logistic regression on ``z``: what they lose of likelihood, its two derivatives, three second ones.

    ``away`` is -1 where it happened and 1 where it did not; ``mass`` is how much a row counts.
    """
    if _module is not None:
        sums: tuple[float, float, float, float, float, float]
        sums = _module.logistic_sums(len(z), shift, slope, z, away, mass)
        return sums
    x = away * (shift + slope * z)  # log-odds of what did not happen
    t = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + t)
    score = mass * away * np.where(x > 0.0, share, t * share)
    spread = mass * t * share * share
    lost = float(mass @ (np.maximum(x, 0.0) + np.log1p(t)))
    sz = spread * z
    return lost, float(score.sum()), float(score @ z), float(spread.sum()), float(sz.sum()), float(sz @ z)


def two_points(moments: FloatArray, centres: FloatArray) -> tuple[FloatArray, FloatArray, IndexArray] | None:
    """Return log-odds and counts of points that stand for sets of rows, and the number of the set of each.

    ``moments`` has a row for each set, as `cell_moments` gives them, and as many sets for each of the ``centres``. Two
    points have the first three moments of a set, or one where its rows are alike; none are there for sets without
    rows. None where the kernel is not there.
    """
    if _module is None:
        return None
    sets = len(moments)
    L, n, index = np.empty(2 * sets), np.empty(2 * sets), np.empty(2 * sets, dtype=np.int64)
    count = _module.two_points(sets, len(centres), _laid_out(moments, np.float64), centres, L, n, index)
    return L[:count], n[:count], index[:count].astype(np.intp, copy=False)


POINT_SUMS = (
    "weight", "sum_excess", "sum_excess2_weight2", "sum_excess3_weight3", "sum_varentropy",
    "sum_third_cumulant_weight3", "sum_entropy", "sum_predicted", "sum_observed", "sum_confidence", "sum_correct",
)  # fmt: skip


def point_sums(
    L: FloatArray, n: FloatArray, wrong: BoolArray, positive: BoolArray, cell: IndexArray
) -> tuple[IndexArray, FloatArray] | None:
    """Sum points without weights by their place in the order of probabilities: two places for each cell of log-odds.

    Returns the places that occur, and an array with a row for each, whose columns are `POINT_SUMS`. None where the
    kernel is not there.
    """
    if _module is None:
        return None
    used, sums = np.empty(2 * CELLS, dtype=np.int64), np.empty((2 * CELLS, len(POINT_SUMS)))
    numbers = (_laid_out(x, np.float64) for x in (L, n))
    sides = (_laid_out(x, np.bool_).view(np.uint8) for x in (wrong, positive))
    count = _module.sum_points(len(L), *numbers, *sides, _laid_out(cell, np.int64), used, sums)
    return used[:count].astype(np.intp, copy=False), sums[:count]


def tempered_sums(beta: float, L: FloatArray, n: FloatArray) -> tuple[float, float, float, float]:
    """Sum ``R = log(1 + exp(-beta L))`` over points, each ``n`` times, and the first three cumulants of a surprise."""
    if _module is not None:
        sums: tuple[float, float, float, float] = _module.tempered_sums(
            len(L), beta, _laid_out(L, np.float64), _laid_out(n, np.float64)
        )
        return sums
    x = beta * L
    t = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + t)
    q, rest = (t * share, share) if beta >= 0.0 else (share, t * share)  # of the less likely outcome, tempered
    mean = L * q
    spread = mean * (L * rest)  # in this order, because L * L may overflow where q is 0
    value = float(n @ np.log1p(t)) - (float(n @ x) if beta < 0.0 else 0.0)
    return value, float(n @ mean), float(n @ spread), float(n @ (spread * (L * (rest - q))))


def tempered_change(beta: float, other: float, L: FloatArray, n: FloatArray) -> float:
    """Return by how much the first of these sums is larger at beta than at another; all digits where they are close."""
    if _module is not None:
        return float(_module.tempered_change(len(L), beta, other, _laid_out(L, np.float64), _laid_out(n, np.float64)))
    step = (other - beta) * L
    share = special.expit(-other * L)
    far = np.abs(step) >= 1.0
    if not far.any():
        return float(n @ np.log1p(share * np.expm1(step)))
    change = np.logaddexp(0.0, -beta * L[far]) - np.logaddexp(0.0, -other * L[far])
    return float(n[~far] @ np.log1p(share[~far] * np.expm1(step[~far]))) + float(n[far] @ change)


def sound(matrices: FloatArray, asymmetry: float, share: float) -> bool:
    """Tell whether (n, d, d) matrices are sound beyond doubt; False where the kernel is not there, or d is large.

    They are finite, symmetric up to a share of their standard deviations, and more than a share of each variance is
    left when the components before it are known.
    """
    n, d, _ = matrices.shape
    if _module is None or d > MOST_DIMENSIONS:
        return False
    return bool(_module.sound(n, d, asymmetry, share, _laid_out(matrices, np.float64)))


def state_scores(residual: FloatArray, matrices: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return NEES and log det C of (n, d) residuals with a covariance each, (n, d, d).

    Lower triangles are used. None where the kernel is not there, d is large, or a matrix is not positive definite.
    """
    n, d = residual.shape
    if _module is None or d > MOST_DIMENSIONS:
        return None
    nees, logdet = np.empty(n), np.empty(n)
    errors, matrices = _laid_out(residual, np.float64), _laid_out(matrices, np.float64)
    return (nees, logdet) if _module.state_scores(n, d, errors, matrices, nees, logdet) else None


class Runs(NamedTuple):
    """Where each key begins in rows that stand sorted by key."""

    starts: IndexArray  # of the keys that occur
    keys: IndexArray  # the keys that occur
    counts: IndexArray  # of every key


def runs(index: IndexArray, size: int) -> tuple[IndexArray, Runs]:
    """Return an order that sorts rows by key, and where each key then begins.

    Summing runs of sorted rows is several times faster than summing by key, and small integers sort in linear time: it
    pays when the rows are sorted before the columns are computed from them.
    """
    small = index.astype(np.uint8 if size <= 256 else np.uint16 if size <= 65_536 else np.intp)
    counted = np.bincount(index, minlength=size)
    keys = np.flatnonzero(counted)
    starts = (np.cumsum(counted) - counted)[keys]
    return small.argsort(kind="stable"), Runs(starts, keys, counted)


def column_sums(columns: Sequence[AnyArray], index: IndexArray | Runs | None, size: int) -> FloatArray:
    """Sum each column over the rows of each key: a (size, columns) array.

    ``index`` numbers the key of each row, or tells the runs of sorted rows; None puts all rows under key 0.
    """
    out = np.zeros((size, len(columns)))
    for j, column in enumerate(columns):
        if index is None:
            out[:, j] = column.sum(dtype=np.float64)
        elif isinstance(index, Runs):
            out[index.keys, j] = np.add.reduceat(column, index.starts, dtype=np.float64)
        else:
            quick = key_sums(column, index, size)
            out[:, j] = np.bincount(index, weights=column, minlength=size) if quick is None else quick
    return out


def counts(rows: int, index: IndexArray | Runs | None, size: int) -> FloatArray:
    """Count the rows of each key."""
    if index is None:
        return np.full(size, float(rows))
    counted = index.counts if isinstance(index, Runs) else np.bincount(index, minlength=size)
    return counted.astype(np.float64)


def uniform_index(values: FloatArray, edges: FloatArray) -> IndexArray:
    """Number the bin of each value for equally spaced ``edges``: the result of a binary search, found by division.

    The quotient can miss by one only next to an edge; those few values are searched for.
    """
    bins = len(edges) - 1
    step = (edges[-1] - edges[0]) / bins
    scaled = (values - edges[0]) / step
    rounding = 1e-9 * bins + 4.0 * np.spacing(np.abs(edges).max()) / step
    index: IndexArray = scaled.astype(np.intp)
    np.subtract(scaled, np.rint(scaled), out=scaled)
    near = np.flatnonzero(np.abs(scaled, out=scaled) < rounding)
    if near.size:
        index[near] = np.searchsorted(edges, values[near], side="right") - 1
    np.minimum(index, bins - 1, out=index)
    return index
