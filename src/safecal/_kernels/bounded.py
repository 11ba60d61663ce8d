"""Some of many outcomes: the most likely ones, and the one that happened. Entropy then lies between two bounds.

The mass ``r`` that is not shown lies on outcomes of which none is more likely than the least likely one in the list. It
holds most entropy when all of them share it evenly, and least when as few of them as can be do: each as likely as that
one, and one with what is left.
"""

from typing import NamedTuple

import numpy as np

from .._types import BoolArray, FloatArray

__all__ = ["Ends", "Shown", "bounds"]


class Shown(NamedTuple):
    """What is known of each row; lists that are shorter than the longest end in -inf."""

    y_logprob: FloatArray
    top: FloatArray  # (n, k)
    size: FloatArray  # how many of them each row has
    inside: BoolArray  # whether the outcome is in the list
    vocabulary: int


class Ends(NamedTuple):
    """Excess, varentropy, third cumulant, surprisal and entropy of each row, (5, n), at both bounds of the entropy.

    ``order`` is the largest entropy by the list alone, which does not depend on what happened. ``over`` and ``short``
    are how much more than 1 the list sums to, and how much of the rest the vocabulary has no room for.
    """

    even: FloatArray
    narrow: FloatArray
    order: FloatArray
    over: FloatArray
    short: FloatArray


def bounds(shown: Shown) -> Ends:
    """Return the numbers of each row at both bounds of its entropy."""
    z = np.column_stack([shown.top, np.where(shown.inside, -np.inf, shown.y_logprob)])
    least = np.where(np.isneginf(shown.top), np.inf, shown.top).min(axis=1)
    q = np.exp(z)
    known = q.sum(axis=1)
    left = shown.vocabulary - shown.size - ~shown.inside
    room = left * np.exp(least)
    rest = np.minimum(np.maximum(1.0 - known, 0.0), room)
    pieces = _evenly(rest, left)
    by_list = 1.0 - np.exp(shown.top).sum(axis=1)
    alone = np.minimum(np.maximum(by_list, 0.0), (shown.vocabulary - shown.size) * np.exp(least))
    order = -_moments(shown.top, _evenly(alone, shown.vocabulary - shown.size))[0]
    return Ends(
        _columns(z, pieces, shown.y_logprob), _columns(z, _narrowly(rest, least), shown.y_logprob), order,
        known - 1.0, np.maximum(1.0 - known, 0.0) - room,
    )  # fmt: skip


_Pieces = list[tuple[FloatArray, FloatArray]]  # mass, and the log-probability of each outcome in it


def _log(x: FloatArray) -> FloatArray:
    return np.asarray(np.log(x, where=x > 0.0, out=np.zeros_like(x)))


def _evenly(rest: FloatArray, left: FloatArray) -> _Pieces:
    return [(rest, _log(rest / np.maximum(left, 1.0)))]


def _narrowly(rest: FloatArray, least: FloatArray) -> _Pieces:
    each = np.exp(least)
    whole = np.floor(rest / np.where(each > 0.0, each, 1.0)) * each
    part = np.maximum(rest - whole, 0.0)
    return [(whole, np.where(np.isfinite(least), least, 0.0)), (part, _log(part))]


def _moments(z: FloatArray, pieces: _Pieces) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean of log p, its variance, and minus its third central moment."""
    finite = np.where(np.isneginf(z), 0.0, z)
    q = np.exp(z)
    mean = np.vecdot(q, finite) + sum(mass * at for mass, at in pieces)
    apart = finite - mean[:, None]
    variance = np.vecdot(q, apart**2) + sum(mass * (at - mean) ** 2 for mass, at in pieces)
    third = np.vecdot(q, apart**3) + sum(mass * (at - mean) ** 3 for mass, at in pieces)
    return mean, variance, -third


def _columns(z: FloatArray, pieces: _Pieces, y: FloatArray) -> FloatArray:
    mean, variance, third = _moments(z, pieces)
    return np.stack([mean - y, variance, third, 0.0 - y, 0.0 - mean])
