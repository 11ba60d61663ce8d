"""Cells of the log-odds of the likelier outcome: all that inference needs of two-outcome rows.

With ``L`` those log-odds, a row is ``L``, whether the likelier outcome failed to happen, and on which side of one half
the prediction lay. A cell holds log-odds that differ by a few per cent, and keeps their number and the sums of the
first three powers of ``d``, their distance from its centre. Certain rows have no finite log-odds: they are in no cell.
"""

import numpy as np

from .._types import BoolArray, FloatArray, IndexArray

__all__ = ["CELLS", "CENTRES", "LOWEST", "cell_moments", "cell_numbers", "top_moments"]

_BITS, _LOW, _OCTAVES = 4, -8, 28  # sixteen cells to each doubling, from 2**-8 to 2**20
CELLS = (_OCTAVES << _BITS) + 2  # with one below and one above
_FIRST = ((1023 + _LOW) << _BITS) - 1
# Log-odds of a probability made from a round number lie beside it, on the one side or the other as their last digits
# fall. So cells begin a hair below round numbers, and every way of computing the last digits finds the same cell.
_HAIR = 1 << 12
#: The smallest log-odds of each cell, but for that hair: a relative 2**-40.
LOWEST = np.concatenate([[0.0], ((np.arange(1, CELLS, dtype=np.int64) + _FIRST) << (52 - _BITS)).view(np.float64)])
#: What distances are measured from; the last cell, which has no end, from its beginning.
CENTRES = np.concatenate([0.5 * (LOWEST[:-1] + LOWEST[1:]), LOWEST[-1:]])


def cell_numbers(L: FloatArray) -> IndexArray:
    """Number the cells: the exponent and the first four binary digits of a float are what is wanted."""
    bits = np.ascontiguousarray(L, dtype=np.float64).view(np.int64)
    return np.asarray(np.clip(((bits + _HAIR) >> (52 - _BITS)) - _FIRST, 0, CELLS - 1), dtype=np.intp)


def top_moments(confidence: FloatArray, correct: BoolArray) -> FloatArray:
    """Sum rows of K classes by the log-odds of their likeliest class, as `cell_moments` does those of two outcomes.

    The two outcomes are that it happened, and that it did not; those that are certain are left out.
    """
    positive = confidence >= 0.5
    with np.errstate(divide="ignore"):
        L = np.abs(np.log(confidence) - np.log(np.maximum(1.0 - confidence, 0.0)))
    wrong = positive != correct
    inside = np.isfinite(L)
    if inside.all():
        return cell_moments(L, wrong, positive)
    return cell_moments(L[inside], wrong[inside], positive[inside])


def cell_moments(L: FloatArray, wrong: BoolArray, positive: BoolArray) -> FloatArray:
    """Sum rows by cell: ``n``, and the sums of ``d``, ``d**2`` and ``d**3``.

    Parameters
    ----------
    L : ndarray of shape (n,)
        Log-odds of the likelier outcome: finite, not negative.
    wrong : ndarray of shape (n,)
        Whether the other one happened.
    positive : ndarray of shape (n,)
        Whether the likelier outcome is the positive one.

    Returns
    -------
    ndarray of shape (CELLS, 2, 2, 4)
        By cell, by wrong, by positive. The last cell keeps the mean alone: squares of its log-odds may overflow.
    """
    cell = cell_numbers(L)
    d = L - CENTRES[cell]
    key = 4 * cell + 2 * wrong + positive
    size = 4 * CELLS
    square = np.where(cell == CELLS - 1, 0.0, d)
    columns = (None, d, square * square, square * square * square)
    sums = [np.bincount(key, weights=column, minlength=size) for column in columns]
    return np.stack(sums, axis=1).astype(np.float64, copy=False).reshape(CELLS, 2, 2, 4)
