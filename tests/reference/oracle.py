"""The textbook definitions, in arithmetic of up to 700 digits.

Slow and obvious on purpose: entropy is a sum of ``-p log p``, excess is surprisal minus entropy, a covariance matrix is
solved by Gaussian elimination. With so many digits no cancellation matters: a row of classes takes twice those that it
can cost, and 140 more. Inputs are exact: a double is the number it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

DIGITS = 700

Number = Any  # an mpmath number: mpmath ships no types


def _log(x: Number) -> Number:
    return _kept(mp.log, x, mp.dps)


def _exp(x: Number) -> Number:
    return _kept(mp.exp, x, mp.dps)


@lru_cache(maxsize=20_000)  # each outcome of a row needs the same ones
def _kept(function: Callable[[Number], Number], x: Number, digits: int) -> Number:
    return function(x)


def _enough_for_probabilities(p: Sequence[Number]) -> Any:
    """Return a context of as many digits as probabilities take, of which the smallest decides."""
    smallest = min((int(mp.mag(x)) for x in p if x > 0), default=0)  # a power of two
    return mp.workdps(_digits(-0.302 * smallest))


def _enough_for_logits(z: Sequence[float]) -> Any:
    """Return a context of as many digits as logits take, of which the largest gap or the smallest decides."""
    gaps = np.diff(np.unique([float(x) for x in z if np.isfinite(x)]))
    if not len(gaps):
        return mp.workdps(_digits(0.0))
    return mp.workdps(_digits(max(gaps.sum() / math.log(10.0), -math.log10(gaps.min()))))


def _digits(cancelled: float) -> int:
    return min(DIGITS, 140 + 2 * math.ceil(max(cancelled, 0.0)))


class Exact(NamedTuple):
    """What one row should score."""

    surprisal: Number
    entropy: Number
    excess: Number
    varentropy: Number
    third_cumulant: Number
    brier: Number


class ExactState(NamedTuple):
    """What one row of a Gaussian should score."""

    surprisal: Number
    entropy: Number
    excess: Number
    nees: Number
    dimension: int


def bernoulli_from_probability(p: float, y: int) -> Exact:
    """Score the probability ``p`` of the positive class."""
    with _enough_for_probabilities([mpf(float(p)), 1 - mpf(float(p))]):
        positive = mpf(float(p))
        return _discrete([1 - positive, positive], y, brier_classes=1)


def bernoulli_from_logit(logit: float, y: int) -> Exact:
    """Score the log-odds of the positive class."""
    with _enough_for_logits([0.0, logit]):
        if np.isinf(logit):
            positive = mpf(1 if logit > 0 else 0)
            return _discrete([1 - positive, positive], y, brier_classes=1)
        exact = mpf(float(logit))
        return _discrete([1 / (1 + _exp(exact)), 1 / (1 + _exp(-exact))], y, brier_classes=1)


def categorical_from_probabilities(p: Sequence[float], y: int) -> Exact:
    """Score class probabilities exactly as they are given, whatever they sum to."""
    with _enough_for_probabilities([mpf(float(x)) for x in p]):
        return _discrete([mpf(float(x)) for x in p], y, brier_classes=2 if len(p) > 2 else 1)


def categorical_from_logits(z: Sequence[float], y: int) -> Exact:
    """Score unnormalised log-probabilities."""
    with _enough_for_logits(z):
        top = mpf(float(max(z)))
        unnormalised = [mpf(0) if np.isneginf(x) else _exp(mpf(float(x)) - top) for x in z]
        total = mp.fsum(unnormalised)
        return _discrete([u / total for u in unnormalised], y, brier_classes=2 if len(z) > 2 else 1)


def _discrete(p: list[Number], y: int, brier_classes: int) -> Exact:
    # Two classes have the binary Brier score, which is half the sum over both classes.
    log_p = [_log(x) if x > 0 else mpf(0) for x in p]
    entropy = -mp.fsum(x * z for x, z in zip(p, log_p, strict=True))
    varentropy = mp.fsum(x * (-z - entropy) ** 2 for x, z in zip(p, log_p, strict=True))
    third = mp.fsum(x * (-z - entropy) ** 3 for x, z in zip(p, log_p, strict=True))
    surprisal = -log_p[y] if p[y] > 0 else mpf("inf")
    brier = mp.fsum((x - (1 if k == y else 0)) ** 2 for k, x in enumerate(p))
    return Exact(surprisal, entropy, surprisal - entropy, varentropy, third, brier * brier_classes / 2)


def absolute_moment(p: Sequence[Number], order: int) -> Number:
    """Return ``sum p |log p - mean of log p|^order``: the scale of what a central moment can be known to."""
    with _enough_for_probabilities(p):
        exact = [mpf(x) for x in p if x > 0]
        log_p = [_log(x) for x in exact]
        mean = mp.fsum(x * z for x, z in zip(exact, log_p, strict=True))
        return mp.fsum(x * abs(z - mean) ** order for x, z in zip(exact, log_p, strict=True))


def moment_slack(p: Sequence[Number], order: int, relative: float) -> Number:
    """Return how far ``sum p |log p - mean|^order`` moves when each log p moves by ``relative (|log p| + entropy)``."""
    with _enough_for_probabilities(p):
        exact = [mpf(x) for x in p if x > 0]
        log_p = [_log(x) for x in exact]
        mean = mp.fsum(x * z for x, z in zip(exact, log_p, strict=True))
        near = [abs(z - mean) for z in log_p]
        wide = [a + relative * (abs(z) + abs(mean)) for a, z in zip(near, log_p, strict=True)]
        return mp.fsum(x * (b**order - a**order) for x, a, b in zip(exact, near, wide, strict=True))


def softmax(z: Sequence[float]) -> list[Number]:
    """Return the probabilities of unnormalised log-probabilities."""
    with _enough_for_logits(z):
        top = mpf(float(max(z)))
        unnormalised = [mpf(0) if np.isneginf(x) else _exp(mpf(float(x)) - top) for x in z]
        total = mp.fsum(unnormalised)
        return [u / total for u in unnormalised]


def gaussian_from_covariance(x: Sequence[float], mean: Sequence[float], cov: Any) -> ExactState:
    """Score a state with a covariance matrix: its lower triangle, mirrored."""
    d = len(x)
    with mp.workdps(DIGITS):
        exact = [[mpf(float(cov[max(i, j)][min(i, j)])) for j in range(d)] for i in range(d)]
        return _state(x, mean, exact)


def gaussian_from_factor(x: Sequence[float], mean: Sequence[float], chol: Any) -> ExactState:
    """Score a state with a lower factor of its covariance matrix."""
    d = len(x)
    with mp.workdps(DIGITS):
        factor = [[mpf(float(chol[i][j])) for j in range(d)] for i in range(d)]
        cov = [[mp.fsum(factor[i][k] * factor[j][k] for k in range(d)) for j in range(d)] for i in range(d)]
        return _state(x, mean, cov)


def gaussian_from_std(x: Sequence[float], mean: Sequence[float], std: Sequence[float]) -> ExactState:
    """Score a state with independent components."""
    d = len(x)
    with mp.workdps(DIGITS):
        cov = [[mpf(float(std[i])) ** 2 if i == j else mpf(0) for j in range(d)] for i in range(d)]
        return _state(x, mean, cov)


def _state(x: Sequence[float], mean: Sequence[float], cov: list[list[Number]]) -> ExactState:
    d = len(x)
    residual = [mpf(float(a)) - mpf(float(b)) for a, b in zip(x, mean, strict=True)]
    solution, determinant = _solve([row[:] for row in cov], residual[:])
    nees = mp.fsum(a * b for a, b in zip(residual, solution, strict=True))
    base = d * mp.log(2 * mp.pi) + mp.log(determinant)
    return ExactState((base + nees) / 2, (base + d) / 2, (nees - d) / 2, nees, d)


def _solve(a: list[list[Number]], b: list[Number]) -> tuple[list[Number], Number]:
    """Solve ``a x = b`` by elimination without pivots, which positive definite matrices do not need."""
    d = len(b)
    determinant = mpf(1)
    for k in range(d):
        determinant *= a[k][k]
        for i in range(k + 1, d):
            ratio = a[i][k] / a[k][k]
            b[i] -= ratio * b[k]
            for j in range(k, d):
                a[i][j] -= ratio * a[k][j]
    x = [mpf(0)] * d
    for i in reversed(range(d)):
        x[i] = (b[i] - mp.fsum(a[i][j] * x[j] for j in range(i + 1, d))) / a[i][i]
    return x, determinant


def error(value: float, exact: Number, scale: Number | None = None) -> float:
    """Return ``|value - exact| / scale``, with ``scale = |exact|`` when there is none; 0 where both are equal."""
    with mp.workdps(50):  # of the distance
        if mp.isinf(exact):
            return 0.0 if np.isinf(value) and (value > 0) == (exact > 0) else float("inf")
        if not np.isfinite(value):
            return float("inf")
        distance = abs(mpf(float(value)) - exact)
        if distance == 0:
            return 0.0
        unit = abs(exact) if scale is None else scale
        return float(distance / unit) if unit else float("inf")
