"""Tail probabilities of a sum from its cumulants. Each tail is computed by itself; no p-value leaves [0, 1]."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from .._types import FloatArray

__all__ = [
    "gamma_quantiles",
    "lugannani_rice",
    "normal",
    "pearson3",
    "pearson3_quantile",
    "pearson3_quantiles",
    "t_quantiles",
]

_ATOM = 1e-10  # shape of a gamma law below which it is one value, but for a probability smaller than every level
_ROUND = 200.0  # shape from which that expansion is near, and one step leads to it
_EVEN = 1e5  # shape from which a gamma law is expanded about the normal one, to 4e-12 standard deviations
_NORMAL = 1000.0  # degrees of freedom from which a t law is expanded about the normal one
_NEAR = 1e-3  # closer than this to the mean, in standard deviations, the saddlepoint formula is 0/0: use its limit


def normal(z: float) -> tuple[float, float]:
    """Return ``P(Z >= z)`` and ``P(Z <= z)`` for a standard normal."""
    return float(special.ndtr(-z)), float(special.ndtr(z))


def pearson3(value: float, variance: float, third: float) -> tuple[float, float]:
    """Return both tails of the shifted gamma law with mean 0 and the given variance and third cumulant.

    Exact for sums over Gaussian predictions with equal weights.
    """
    spread = math.sqrt(variance)
    skew = third / variance / spread
    if abs(skew) < 1e-6:
        return normal(value / spread)
    if skew < 0:
        upper, lower = pearson3(-value, variance, -third)
        return lower, upper
    shape, scale = (2.0 / skew) ** 2, third / (2.0 * variance)
    if shape < _ATOM:
        return (1.0 if value <= 0.0 else shape), 1.0
    x = max(value / scale + shape, 0.0)
    return float(special.gammaincc(shape, x)), float(special.gammainc(shape, x))


def pearson3_quantile(probability: float, variance: float, third: float) -> float:
    """Return the value below which the law of `pearson3` lies with the given probability."""
    spread = math.sqrt(variance)
    skew = third / variance / spread
    if abs(skew) < 1e-6:
        return spread * float(special.ndtri(probability))
    if skew < 0:
        return -pearson3_quantile(1.0 - probability, variance, -third)
    shape = (2.0 / skew) ** 2
    if shape < _ATOM:
        return -2.0 * spread / skew
    return spread * skew / 2.0 * float(special.gammaincinv(shape, probability) - shape)


Tail = tuple[float, bool]  # a probability, and whether it is that of an upper tail


@np.errstate(all="ignore")
def pearson3_quantiles(tails: Sequence[Tail], variance: FloatArray, third: FloatArray) -> FloatArray:
    """Return for each tail and each law of `pearson3` the value beyond which it lies with that probability."""
    spread = np.sqrt(variance)
    skew = third / variance / spread
    found = _gamma_scores(tails, np.abs(skew))
    negative = np.flatnonzero(skew < 0.0)
    if len(negative):
        found[:, negative] = -_gamma_scores([(alpha, not upper) for alpha, upper in tails], -skew[negative])
    return np.asarray(spread * found)


@np.errstate(all="ignore")
def gamma_quantiles(alpha: float, shape: FloatArray, *, upper: bool) -> FloatArray:
    """Return the value beyond which each gamma law lies with probability ``alpha``, above or below."""
    root = np.sqrt(shape)
    return np.asarray(shape + root * _gamma_scores([(alpha, upper)], 2.0 / root)[0])


def _gamma_scores(tails: Sequence[Tail], skew: FloatArray) -> FloatArray:
    """Return quantiles of gamma laws of some skewness, in standard deviations from the mean: a row for each tail.

    A probability may be as small as a million keys ask for. SciPy's inverse of the lower gamma tail then fails for
    large shapes (at 1e8 and 1e-7 it is off by 7 % of a standard deviation), hence the expansion of Cornish and Fisher.
    """
    scores = (float(special.ndtri(alpha)) * (-1.0 if upper else 1.0) for alpha, upper in tails)
    terms = np.array([_expansion(z) for z in scores]).T[:, :, None]
    found: FloatArray = terms[4] * skew + terms[3]
    for term in terms[2::-1]:
        found *= skew
        found += term
    shape = 4.0 / (skew * skew)
    few, some = np.flatnonzero(shape < _ROUND), np.flatnonzero((shape >= _ROUND) & (shape < _EVEN))
    if len(few):
        k = shape[few]
        for row, (alpha, upper) in zip(found, tails, strict=True):
            row[few] = ((special.gammainccinv if upper else special.gammaincinv)(k, alpha) - k) / np.sqrt(k)
    if len(some):  # one step of Halley's method, which leaves the cube of an error that is small
        k = shape[some]
        root = np.sqrt(k)
        x = k + root * found[:, some]
        step = np.empty(x.shape)
        for row, at, (alpha, upper) in zip(step, x, tails, strict=True):
            row[:] = special.gammaincc(k, at) - alpha if upper else alpha - special.gammainc(k, at)
        step /= np.exp((k - 1.0) * np.log(x) - x - special.gammaln(k))
        found[:, some] = (x - k + step / (1.0 - 0.5 * step * ((k - 1.0) / x - 1.0))) / root
    return found


def _expansion(z: float) -> tuple[float, ...]:
    """Return the terms of a quantile of a gamma law, by powers of its skewness."""
    return (
        z,
        (z**2 - 1.0) / 6.0,
        (z**3 - 7.0 * z) / 144.0,
        -(3.0 * z**4 + 7.0 * z**2 - 16.0) / 6480.0,
        (9.0 * z**5 + 256.0 * z**3 - 433.0 * z) / 622080.0,
    )


def t_quantiles(alpha: float, freedom: FloatArray) -> FloatArray:
    """Return the value above which each t law lies with probability ``alpha``."""
    z = -float(special.ndtri(alpha))
    terms = (
        z,
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    found: FloatArray = terms[4] / freedom + terms[3]
    for term in terms[2::-1]:
        found /= freedom
        found += term
    few = np.flatnonzero(freedom < _NORMAL)
    if len(few):
        found[few] = -special.stdtrit(freedom[few], alpha)
    return found


def lugannani_rice(distance: float, drop: float, variance: float, third: float) -> tuple[float, float]:
    """Return both tails of a sum at its observed value, by the saddlepoint approximation.

    Parameters
    ----------
    distance : float
        The saddlepoint: how far the law has to be tilted for its mean to be the observed value; positive when the value
        lies above the mean.
    drop : float
        Difference in log-likelihood between the tilted law and the one tested, not negative.
    variance, third : float
        Second and third cumulant of the tilted law.
    """
    r = math.copysign(math.sqrt(2.0 * max(drop, 0.0)), distance)
    u = distance * math.sqrt(variance)
    density = math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
    if abs(u) < _NEAR or abs(r) < _NEAR:
        correction = third / variance**1.5 * (u * u - 1.0) / 6.0
    else:
        correction = 1.0 / u - 1.0 / r
    upper, lower = normal(r)
    return min(max(upper + density * correction, 0.0), 1.0), min(max(lower - density * correction, 0.0), 1.0)
