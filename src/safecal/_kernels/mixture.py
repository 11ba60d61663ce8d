"""Gaussian mixtures: log-densities of components by forward substitution, draws, and entropies of membership.

Arrays keep the components first and the rows last, so that every step runs along the rows: log-weights ``(K, rows)``,
means ``(K, d, rows)``, lower Cholesky factors ``(K, d, d, rows)``. Points are ``(d, rows)``, or ``(d, draws, rows)``.
"""

from typing import NamedTuple

import numpy as np

from .._types import FloatArray, IndexArray
from .gaussian import LOG_2PI

__all__ = ["Components", "draw", "log_joint", "membership"]


class Components(NamedTuple):
    """The mixtures of some rows; components of weight 0 have a log-weight of -inf and any valid factor."""

    log_weight: FloatArray
    mean: FloatArray
    factor: FloatArray
    angles: tuple[int, ...]

    @property
    def log_root(self) -> FloatArray:
        """Half the log-determinant of each covariance, (K, rows)."""
        return np.asarray(np.log(np.abs(np.einsum("kiin->kin", self.factor))).sum(axis=1))


def log_joint(mixture: Components, points: FloatArray) -> FloatArray:
    """Return ``log w_k + log N(x; m_k, C_k)`` for each component: (K, ..., rows)."""
    count, d = mixture.mean.shape[:2]
    constant = mixture.log_weight - mixture.log_root - 0.5 * d * LOG_2PI
    out = np.empty((count, *points.shape[1:]))
    white = np.empty(points.shape)
    for k in range(count):
        square = np.zeros(points.shape[1:])
        for i in range(d):
            gap = points[i] - mixture.mean[k, i]
            if i in mixture.angles:
                gap = np.pi - np.mod(np.pi - gap, 2.0 * np.pi)
            for j in range(i):
                gap -= mixture.factor[k, i, j] * white[j]
            gap /= mixture.factor[k, i, i]
            white[i] = gap
            square += gap * gap
        out[k] = constant[k] - 0.5 * square
    return out


def membership(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log-density of the mixture, and how unsure it leaves of which component: the entropy of that.

    Both have the shape of ``joint`` without its first axis.
    """
    top = joint.max(axis=0)
    gap = joint - np.where(np.isneginf(top), 0.0, top)
    share = np.exp(gap)
    total = share.sum(axis=0)
    with np.errstate(divide="ignore"):
        log_total = np.log(total)
    term = np.where(share > 0.0, share * np.where(np.isneginf(gap), 0.0, gap), 0.0).sum(axis=0)
    unsure = log_total - term / np.where(total > 0.0, total, 1.0)
    return top + log_total, np.maximum(unsure, 0.0)


def draw(mixture: Components, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return fresh draws for each row: (d, draws, rows)."""
    _, d, rows = mixture.mean.shape
    which = _which(np.exp(mixture.log_weight), rng.random((draws, rows)))
    every = np.arange(rows)
    noise = rng.standard_normal((d, draws, rows))
    points = np.empty((d, draws, rows))
    for i in range(d):
        points[i] = mixture.mean[which, i, every]
        for j in range(i + 1):
            points[i] += mixture.factor[which, i, j, every] * noise[j]
    return points


def _which(weight: FloatArray, uniform: FloatArray) -> IndexArray:
    """Choose components by their weights (K, rows); one of weight 0 is never chosen."""
    edges = np.cumsum(weight, axis=0)
    found = (uniform[None] * edges[-1] >= edges[:, None]).sum(axis=0)
    last = len(weight) - 1 - (weight[::-1] > 0.0).argmax(axis=0)
    return np.asarray(np.minimum(found, last), dtype=np.intp)
