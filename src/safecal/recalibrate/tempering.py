"""Tempered predictions: ``p**beta`` made to sum to one, and Gaussians with the covariance ``C / beta``.

``beta`` is one positive number, or one for each row.
"""

import numpy as np
from scipy import special

from .._types import AnyArray, FloatArray

__all__ = ["tempered_classes", "tempered_spread"]

# How a spread grows with T: the covariance by T, its root by the root of T, its inverse by 1 / T
_POWERS = {"std": 0.5, "var": 1.0, "cov": 1.0, "chol": 0.5, "precision": -1.0}


def tempered_classes(values: AnyArray, name: str, beta: AnyArray | float) -> FloatArray:
    """Return the tempered probabilities of classes from ``"y_prob"`` or ``"logits"``; 0 and 1 stay what they are."""
    z = np.asarray(values, dtype=np.float64)
    if z.ndim == 1:
        with np.errstate(over="ignore"):
            odds = beta * (z if name == "logits" else special.logit(z))
        return np.asarray(special.expit(odds), dtype=np.float64)
    if name != "logits":
        z = np.log(z, where=z > 0.0, out=np.full(z.shape, -np.inf))
    with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
        z = (z - z.max(axis=1, keepdims=True)) * np.reshape(beta, (-1, 1))
    p: FloatArray = np.exp(z, out=z)
    p /= p.sum(axis=1, keepdims=True)
    return p


def tempered_spread(spread: AnyArray, name: str, beta: AnyArray | float) -> FloatArray:
    """Return standard deviations, variances or matrices of the tempered Gaussian, in the form they came in."""
    wide = np.asarray(spread, dtype=np.float64)
    factor = np.asarray(beta, dtype=np.float64) ** -_POWERS[name]
    if factor.ndim:
        factor = factor.reshape(-1, *(1,) * (wide.ndim - 1))
    return np.asarray(wide * factor)
