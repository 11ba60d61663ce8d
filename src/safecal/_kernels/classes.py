"""Classes: two outcomes; K of them; or of very many the most likely ones and the one that happened.

Of two outcomes everything is written in the smaller probability ``m``, the larger ``M = 1 - m``, the log-odds of the
larger ``L = log(M / m) >= 0`` and ``c = -log M >= 0``. Then no formula subtracts two nearly equal numbers:

    entropy = m L + c        surprisal = c, or L + c when the less likely outcome happened
    excess = -m L, or M L    varentropy = m M L^2        third cumulant = m M (M - m) L^3
"""

from typing import NamedTuple

import numpy as np

from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from . import compiled
from .compiled import available, class_scores, floats

_TINY = 1e-300  # below it, |2p - 1| / m could overflow


class Odds(NamedTuple):
    """A two-outcome prediction, as its unordered pair of probabilities."""

    m: FloatArray
    M: FloatArray
    L: FloatArray  # 0 where m is 0: there the less likely outcome is impossible and every product with L is 0
    c: FloatArray
    contrast: FloatArray  # M - m


class BinaryScores(NamedTuple):
    """Per-row numbers, in nats."""

    excess: FloatArray
    varentropy: FloatArray
    third_cumulant: FloatArray
    surprisal: FloatArray
    entropy: FloatArray
    brier: FloatArray


def odds_of_probability(p: FloatArray) -> Odds:
    """Return the odds of probabilities in [0, 1]."""
    q = 1.0 - p
    m, M = np.minimum(p, q), np.maximum(p, q)
    contrast = np.abs(2.0 * p - 1.0)
    smallest = m.min(initial=1.0)
    if smallest >= _TINY:
        L = np.log1p(contrast / m)
    else:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # -0.0 is a probability, too
            L = np.where(m < _TINY, -np.log(m), np.log1p(contrast / m))
        L[m == 0.0] = 0.0
    return Odds(m, M, L, -np.log1p(-m), contrast)


def odds_of_logit(logit: FloatArray) -> Odds:
    """Return the odds of log-odds, infinite ones included."""
    L = np.abs(logit)
    t = np.exp(-L)
    M = 1.0 / (1.0 + t)
    contrast = -np.expm1(-L) * M
    L = np.where(np.isinf(L), 0.0, L)
    return Odds(t * M, M, L, np.log1p(t), contrast)


def binary_scores(odds: Odds, agree: BoolArray, certain: BoolArray | None) -> BinaryScores:
    """Return the per-row numbers.

    ``agree`` is True where the more likely outcome happened; ``certain`` is True where the less likely outcome has
    probability 0 (None: nowhere). Where it happened nevertheless, surprisal and excess are +inf.
    """
    m, M, L, c, contrast = odds
    residual = np.where(agree, -m, M)
    mL = m * L
    varentropy = mL * L * M
    excess = residual * L
    surprisal = np.where(agree, c, L + c)
    if certain is not None:
        impossible = certain & ~agree
        excess[impossible] = np.inf
        surprisal[impossible] = np.inf
    return BinaryScores(excess, varentropy, varentropy * L * contrast, surprisal, mL + c, residual * residual)


def binary_log_partition(odds: Odds, beta: float) -> FloatArray:
    """Return ``A(beta) = log(p^beta + q^beta)`` alone."""
    x = beta * odds.L
    value = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0.0) - beta * odds.c
    certain = (odds.m == 0.0) & (odds.L == 0.0)
    return np.where(certain, 0.0, value) if certain.any() else value


def binary_cumulants(odds: Odds, beta: AnyArray | float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return ``A(beta) = log(p^beta + q^beta)`` and its first three derivatives."""
    L, c = odds.L, odds.c
    x = beta * L
    t = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + t)
    w = np.where(x > 0.0, t * share, share)  # the tempered probability of the less likely outcome
    value = np.log1p(t) + np.maximum(-x, 0.0) - beta * c
    certain = (odds.m == 0.0) & (L == 0.0)
    if certain.any():
        value = np.where(certain, 0.0, value)
    Lw = L * w
    spread = Lw * (L * (1.0 - w))  # in this order, because L * L may overflow where w is 0
    return value, -c - Lw, spread, -L * spread * (1.0 - 2.0 * w)


_LARGEST_GAP = 1e18  # nats: a gap whose third power is a float; such a class has no weight


_BLOCK = 1 << 16  # elements that fit into a cache


class ClassScores(NamedTuple):
    """Per-row numbers, in nats."""

    excess: FloatArray
    varentropy: FloatArray
    third_cumulant: FloatArray
    surprisal: FloatArray
    entropy: FloatArray
    brier: FloatArray  # sum over classes of (p_k - [k = y])^2
    confidence: FloatArray
    top: IndexArray
    nodes: FloatArray | None = None  # as `node_rows` gives them, where they were asked for and the kernel is there


def _scores(columns: FloatArray, top: IndexArray, nodes: FloatArray | None) -> ClassScores:
    excess, varentropy, third, surprisal, entropy, brier, confidence = columns
    return ClassScores(excess, varentropy, third, surprisal, entropy, brier, confidence, top, nodes)


def from_probabilities(p: AnyArray, y: IndexArray, nodes: bool = False) -> ClassScores:
    """Return the per-row numbers of an (n, K) block of probabilities, used as given."""
    scored = class_scores(floats(p), y, logits=False, nodes=nodes) if available() else None
    if scored is None:
        return _from_probabilities(np.ascontiguousarray(p, dtype=np.float64), y)
    return _scores(*scored)


def _from_probabilities(p: FloatArray, y: IndexArray) -> ClassScores:
    i = np.arange(len(p))
    top = p.argmax(axis=1)
    z = np.log(p, where=p > 0.0, out=np.zeros_like(p))
    zbar = np.vecdot(p, z)
    p_y, z_y = p[i, y], z[i, y]
    brier = np.vecdot(p, p) - 2.0 * p_y + 1.0
    confident = p_y > 0.5  # there the line above cancels; sum the other classes instead
    if confident.any():
        others = p[confident]
        others[np.arange(len(others)), y[confident]] = 0.0
        brier[confident] = np.vecdot(others, others) + (1.0 - p_y[confident]) ** 2
    excess = zbar - z_y
    surprisal = 0.0 - z_y
    impossible = p_y == 0.0
    excess[impossible] = np.inf
    surprisal[impossible] = np.inf
    z -= zbar[:, None]
    pz = p * z
    varentropy = np.vecdot(pz, z)
    np.multiply(z, z, out=z)
    third = -np.vecdot(pz, z)
    return ClassScores(excess, varentropy, third, surprisal, 0.0 - zbar, brier, p[i, top], top)


def from_logits(z: AnyArray, y: IndexArray, infinite: bool, nodes: bool = False) -> ClassScores:
    """Return the per-row numbers of an (n, K) block of logits.

    ``infinite`` says whether some logit may be -inf.
    """
    scored = class_scores(floats(z), y, logits=True, nodes=nodes) if available() else None
    if scored is None:
        return _from_logits(np.ascontiguousarray(z, dtype=np.float64), y, infinite)
    return _scores(*scored)


def _from_logits(z: FloatArray, y: IndexArray, infinite: bool) -> ClassScores:
    i = np.arange(len(z))
    top = z.argmax(axis=1)
    z_top = z[i, top][:, None]
    with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
        d = z - z_top  # -d, in the notation above
    u = np.exp(d)
    impossible = np.isneginf(d[i, y]) if infinite else None
    if infinite:
        d[np.isneginf(d)] = 0.0
    u[i, top] = 0.0
    rest = u.sum(axis=1)
    sharp = np.flatnonzero(rest < 1e-20)
    if sharp.size:  # there exp turns the rounding of a large gap into a relative error: put back what was lost
        u[sharp] *= 1.0 + _rounding(z[sharp], z_top[sharp], d[sharp])
        rest[sharp] = u[sharp].sum(axis=1)
    weighted = np.vecdot(u, d)
    square = np.vecdot(u, u)
    total = 1.0 + rest
    dbar, d_y = weighted / total, d[i, y]
    log_total = np.log1p(rest)
    excess, surprisal = dbar - d_y, log_total - d_y
    if impossible is not None:
        excess[impossible] = np.inf
        surprisal[impossible] = np.inf
    # Brier: the top class stands apart, since 1 - p_top is known without cancellation as rest / total.
    right = y == top
    u_y = u[i, y]
    brier = np.where(right, square + rest * rest, square + 1.0 - u_y * u_y + (total - u_y) ** 2) / (total * total)
    u[i, top] = 1.0
    d -= dbar[:, None]
    u *= d
    varentropy = np.vecdot(u, d) / total
    u *= d  # not d * d, which overflows for logits beyond 1e154
    third = -np.vecdot(u, d) / total
    return ClassScores(excess, varentropy, third, surprisal, log_total - dbar, brier, 1.0 / total, top)


def _rounding(a: FloatArray, b: FloatArray, difference: FloatArray) -> FloatArray:
    """Return ``(a - b) - difference`` exactly, for the rounded difference; 0 where something is infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        back = difference - a
        lost = (a - (difference - back)) - (b + back)
    return np.where(np.isfinite(lost), lost, 0.0)


def cumulants(d: FloatArray, beta: AnyArray | float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the log-partition function, normalised to be 0 at beta = 1, and its first three derivatives.

    ``d`` holds ``log p_top - log p_k``, with +inf for a class of probability 0 (then beta must not be negative).
    """
    impossible = np.isinf(d)
    finite = np.where(impossible, 0.0, d)
    with np.errstate(over="ignore"):
        exponent = np.where(impossible, -np.inf, -np.reshape(beta, (-1, 1)) * finite)
    largest = exponent.max(axis=1)
    u = np.exp(exponent - largest[:, None])
    total = u.sum(axis=1)
    log_norm = np.log(np.exp(-d).sum(axis=1))
    mean = np.vecdot(u, finite) / total
    centred = finite - mean[:, None]
    u *= centred
    second = np.vecdot(u, centred) / total
    u *= centred
    third = np.vecdot(u, centred) / total
    return (
        np.asarray(np.log(total) + largest - beta * log_norm),
        np.asarray(-mean - log_norm),
        second,
        np.asarray(-third),
    )


class Gaps(NamedTuple):
    """Of each row: cumulants of how far its logits lie below the largest one, and that one."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    largest: FloatArray


def gap_moments(z: AnyArray, beta: float) -> Gaps:
    """Return the moments of the gaps of (n, K) logits under ``p**beta``; logits of -inf have no weight."""
    moments = compiled.gap_moments(z, beta)
    if moments is None:
        step = max(1, _BLOCK // z.shape[1])
        moments = np.concatenate([_gap_moments(z[k : k + step], beta) for k in range(0, max(len(z), 1), step)], axis=1)
    return Gaps(*moments)


def _gap_moments(z: AnyArray, beta: float) -> FloatArray:
    z = z.astype(np.float64, copy=False)
    largest, ones = z.max(axis=1), np.ones(z.shape[1])
    with np.errstate(over="ignore"):
        d = np.minimum(largest[:, None] - z, _LARGEST_GAP)
        p = np.exp(-beta * d)
    total = p @ ones
    powers = []
    for _ in range(3):
        p *= d
        powers.append(p @ ones / total)
    mean, second, third = powers
    variance = np.maximum(second - mean * mean, 0.0)
    return np.stack([mean, variance, third - 3.0 * mean * second + 2.0 * mean**3, largest])


class Shown(NamedTuple):
    """What is known of each row; lists that are shorter than the longest end in -inf."""

    y_logprob: FloatArray
    top: FloatArray  # (n, k)
    size: FloatArray  # how many of them each row has
    inside: BoolArray  # whether the outcome is in the list
    vocabulary: int


class EntropyEnds(NamedTuple):
    """Excess, varentropy, third cumulant, surprisal and entropy of each row, (5, n), at both bounds of the entropy.

    ``order`` is the largest entropy by the list alone, which does not depend on what happened. ``over`` and ``short``
    are how much more than 1 the list sums to, and how much of the rest the vocabulary has no room for.
    """

    even: FloatArray
    narrow: FloatArray
    order: FloatArray
    over: FloatArray
    short: FloatArray


def bounds(shown: Shown) -> EntropyEnds:
    """Return the numbers of each row at both bounds of its entropy."""
    z = np.column_stack([shown.top, np.where(shown.inside, -np.inf, shown.y_logprob)])
    least = np.where(np.isneginf(shown.top), np.inf, shown.top).min(axis=1)
    q = np.exp(z)
    stated = q.sum(axis=1)
    left = shown.vocabulary - shown.size - ~shown.inside
    room = left * np.exp(least)
    rest = np.minimum(np.maximum(1.0 - stated, 0.0), room)
    pieces = _evenly(rest, left)
    by_list = 1.0 - np.exp(shown.top).sum(axis=1)
    alone = np.minimum(np.maximum(by_list, 0.0), (shown.vocabulary - shown.size) * np.exp(least))
    order = -_moments(shown.top, _evenly(alone, shown.vocabulary - shown.size))[0]
    return EntropyEnds(
        _columns(z, pieces, shown.y_logprob), _columns(z, _narrowly(rest, least), shown.y_logprob), order,
        stated - 1.0, np.maximum(1.0 - stated, 0.0) - room,
    )  # fmt: skip


_Pieces = list[tuple[FloatArray, FloatArray]]  # mass, and the log-probability of each outcome in it


def _log(x: FloatArray) -> FloatArray:
    return np.asarray(np.log(x, where=x > 0.0, out=np.zeros_like(x)))


def _evenly(rest: FloatArray, left: FloatArray) -> _Pieces:
    return [(rest, _log(rest / np.maximum(left, 1.0)))]


def _narrowly(rest: FloatArray, least: FloatArray) -> _Pieces:
    p_least = np.exp(least)
    full = np.floor(rest / np.where(p_least > 0.0, p_least, 1.0)) * p_least
    part = np.maximum(rest - full, 0.0)
    return [(full, np.where(np.isfinite(least), least, 0.0)), (part, _log(part))]


def _moments(z: FloatArray, pieces: _Pieces) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean of log p, its variance, and minus its third central moment."""
    finite = np.where(np.isneginf(z), 0.0, z)
    q = np.exp(z)
    mean = np.vecdot(q, finite) + sum(mass * at for mass, at in pieces)
    centred = finite - mean[:, None]
    variance = np.vecdot(q, centred**2) + sum(mass * (at - mean) ** 2 for mass, at in pieces)
    third = np.vecdot(q, centred**3) + sum(mass * (at - mean) ** 3 for mass, at in pieces)
    return mean, variance, -third


def _columns(z: FloatArray, pieces: _Pieces, y: FloatArray) -> FloatArray:
    mean, variance, third = _moments(z, pieces)
    return np.stack([mean - y, variance, third, 0.0 - y, 0.0 - mean])
