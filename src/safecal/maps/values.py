"""Predictions of classes in the one form that maps work on.

Two classes are a column of log-odds, in whichever of its forms they came; more are a column of log-probabilities for
each. A certainty is infinite, and so is what a map makes of it, unless the map says otherwise.
"""

from typing import Any

import numpy as np
from scipy import special

from .._types import AnyArray, FloatArray, IndexArray
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.predictions import Predictions

__all__ = ["happened", "log_odds", "log_values", "probabilities", "tempered_columns", "two_columns", "values_of"]


def log_values(values: AnyArray, name: str) -> FloatArray:
    """Return log-odds of a column, or normalised log-probabilities of a matrix, from ``"y_prob"`` or ``"logits"``."""
    z = np.asarray(values, dtype=np.float64)
    if z.ndim == 1:
        return z if name == "logits" else np.asarray(special.logit(z))
    if name != "logits":
        z = np.log(z, where=z > 0.0, out=np.full(z.shape, -np.inf))
    with np.errstate(over="ignore"):  # a gap beyond the largest float is a probability of 0
        z = z - z.max(axis=1, keepdims=True)
    return np.asarray(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))


def log_odds(z: FloatArray) -> FloatArray:
    """Return the log-odds of the second of two columns; any other form as it is."""
    if z.ndim == 2 and z.shape[1] == 2:
        return np.asarray(z[:, 1] - z[:, 0])
    return z


def two_columns(odds: FloatArray) -> FloatArray:
    """Return the log-probabilities of both classes."""
    return np.stack([special.log_expit(-odds), special.log_expit(odds)], axis=1)


def probabilities(z: FloatArray) -> FloatArray:
    """Return the probabilities that log-odds, or columns of logits, stand for."""
    if z.ndim == 1:
        return np.asarray(special.expit(z), dtype=np.float64)
    p: FloatArray = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def tempered_columns(z: FloatArray, beta: float) -> FloatArray:
    """Return logits times a number, the likeliest class at 0, so that nothing overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(beta * (z if z.ndim == 1 else z - z.max(axis=1, keepdims=True)))


def values_of(predictions: Predictions) -> FloatArray:
    """Return the log-odds or log-probabilities of checked predictions."""
    assert isinstance(predictions, Bernoulli | Categorical)
    values: Any = predictions.values
    if predictions.clip is not None:
        values = np.clip(np.asarray(values, dtype=np.float64), predictions.clip, 1.0 - predictions.clip)
    return log_odds(log_values(values, "logits" if predictions.logits else "y_prob"))


def happened(predictions: Predictions) -> IndexArray:
    """Return the number of the class that happened, row by row."""
    assert isinstance(predictions, Bernoulli | Categorical)
    return np.asarray(predictions.happened, dtype=np.intp)
