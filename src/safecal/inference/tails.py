"""Tail probabilities of a sum from its cumulants. Each tail is computed by itself; no p-value leaves [0, 1]."""

import math

from scipy import special

__all__ = ["lugannani_rice", "normal", "pearson3"]

_NEAR = 1e-3  # closer than this to the mean, in standard deviations, the saddlepoint formula is 0/0: use its limit


def normal(z: float) -> tuple[float, float]:
    """Return ``P(Z >= z)`` and ``P(Z <= z)`` for a standard normal."""
    return float(special.ndtr(-z)), float(special.ndtr(z))


def pearson3(value: float, variance: float, third: float) -> tuple[float, float]:
    """Return both tails of the shifted gamma law with mean 0 and the given variance and third cumulant.

    Exact for sums over Gaussian predictions with equal weights.
    """
    skew = third / variance**1.5
    if abs(skew) < 1e-6:
        return normal(value / math.sqrt(variance))
    if skew < 0:
        upper, lower = pearson3(-value, variance, -third)
        return lower, upper
    shape, scale = 4.0 / skew**2, third / (2.0 * variance)
    x = max(value / scale + shape, 0.0)
    return float(special.gammaincc(shape, x)), float(special.gammainc(shape, x))


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
