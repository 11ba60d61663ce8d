"""Two outcomes.

Everything is written in the smaller probability ``m``, the larger ``M = 1 - m``, the log-odds of the larger
``L = log(M / m) >= 0`` and ``c = -log M >= 0``. Then no formula subtracts two nearly equal numbers:

    entropy = m L + c        surprisal = c, or L + c when the less likely outcome happened
    excess = -m L, or M L    varentropy = m M L^2        third cumulant = m M (M - m) L^3
"""

from typing import NamedTuple

import numpy as np

from .._types import AnyArray, BoolArray, FloatArray

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


def from_probability(p: FloatArray) -> Odds:
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


def from_logit(logit: FloatArray) -> Odds:
    """Return the odds of log-odds, infinite ones included."""
    L = np.abs(logit)
    t = np.exp(-L)
    M = 1.0 / (1.0 + t)
    contrast = -np.expm1(-L) * M
    L = np.where(np.isinf(L), 0.0, L)
    return Odds(t * M, M, L, np.log1p(t), contrast)


def rows(odds: Odds, agree: BoolArray, certain: BoolArray | None) -> BinaryScores:
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


def log_partition(odds: Odds, beta: float) -> FloatArray:
    """Return ``A(beta) = log(p^beta + q^beta)`` alone."""
    x = beta * odds.L
    value = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0.0) - beta * odds.c
    certain = (odds.m == 0.0) & (odds.L == 0.0)
    return np.where(certain, 0.0, value) if certain.any() else value


def cumulants(odds: Odds, beta: AnyArray | float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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


def point_columns(
    L: FloatArray, w: FloatArray, n: FloatArray, wrong: BoolArray, positive: BoolArray
) -> dict[str, FloatArray]:
    """Return what is summed of points that stand for rows each, by the names of the sums in `Summary`.

    ``L`` are the log-odds of the likelier outcome, ``w`` the weights, ``n`` says how many rows each stands for,
    ``wrong`` whether the other outcome happened, and ``positive`` whether the likelier one is the positive one.
    """
    weighted = bool((w != 1.0).any())
    small = np.exp(-L)
    likely = 1.0 / (1.0 + small)
    q = small * likely
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(q == 0.0, 0.0, L * q)
        spread = mean * np.where(mean == 0.0, 0.0, L * likely)
        third = np.where(spread == 0.0, 0.0, spread * (L * (likely - q)))
        e = np.where(wrong, L, 0.0) - mean
        nw = n * w if weighted else n
        nw2 = nw * w if weighted else nw
        nw3 = nw2 * w if weighted else nw
        ne = nw * e
        e2 = nw2 * (e * e)
        confidence = nw * likely
        columns = {
            "weight": nw,
            "sum_excess": ne,
            "sum_excess2_weight2": e2,
            "sum_excess3_weight3": e2 * e * w if weighted else e2 * e,
            "sum_varentropy": nw * spread,
            "sum_third_cumulant_weight3": nw3 * third,
            "sum_entropy": nw * (np.log1p(small) + mean),
            "sum_predicted": np.where(positive, confidence, nw * q),
            "sum_observed": nw * (wrong != positive),
            "sum_confidence": confidence,
            "sum_correct": nw * ~wrong,
        }
        if weighted:  # else they are equal to others
            columns |= {
                "n": n,
                "weight2": nw2,
                "weight3": nw3,
                "sum_excess_weight2": nw2 * e,
                "sum_excess_weight3": nw3 * e,
                "sum_excess2_weight3": w * e2,
                "sum_varentropy_weight2": nw2 * spread,
            }
    return columns
