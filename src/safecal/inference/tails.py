"""Tail probabilities of a sum from its cumulants. Each tail is computed by itself; no p-value leaves [0, 1]."""

import math

import numpy as np
from scipy import special

from .._types import FloatArray

__all__ = ["lugannani_rice", "normal", "pearson3", "pearson3_quantile", "pearson3_quantiles"]

_ATOM = 1e-10  # shape of a gamma law below which it is one value, but for a probability smaller than every level
_EVEN = 1e5  # shape from which a gamma law is expanded about the normal one, to 4e-12 standard deviations
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


@np.errstate(all="ignore")
def pearson3_quantiles(alpha: float, variance: FloatArray, third: FloatArray, *, upper: bool) -> FloatArray:
    """Return for each law of `pearson3` the value beyond which it lies with probability ``alpha``, above or below.

    ``alpha`` may be as small as a million keys ask for. SciPy's inverse of the lower gamma tail then fails for large
    shapes (at 1e8 and 1e-7 it is off by 7 % of a standard deviation), hence the expansion of Cornish and Fisher.
    """
    spread = np.sqrt(variance)
    skew = third / variance / spread
    z = float(-special.ndtri(alpha) if upper else special.ndtri(alpha))
    terms = (
        z,
        (z**2 - 1.0) / 6.0,
        (z**3 - 7.0 * z) / 144.0,
        -(3.0 * z**4 + 7.0 * z**2 - 16.0) / 6480.0,
        (9.0 * z**5 + 256.0 * z**3 - 433.0 * z) / 622080.0,
    )
    found = np.polynomial.polynomial.polyval(skew, terms)
    shape = (2.0 / skew) ** 2
    for sign in (1.0, -1.0):
        some = (sign * skew > 0.0) & (shape < _EVEN)
        inverse = special.gammainccinv if upper == (sign > 0.0) else special.gammaincinv
        k = shape[some]
        found[some] = sign * (inverse(k, alpha) - k) / np.sqrt(k)
    return np.asarray(spread * found)


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
