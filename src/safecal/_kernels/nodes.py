"""The log-partition of K-class rows at fixed inverse temperatures."""

import numpy as np

from .._types import FloatArray

__all__ = ["NODES", "node_rows"]

NODES = (0.25, 0.5, 1.0, 2.0, 4.0)


def node_rows(gaps: FloatArray) -> FloatArray:
    """Return ``R(beta) = log(1 + sum exp(-beta gap))`` and its first three derivatives at each node, ``(5, 4, n)``."""
    out = np.empty((len(NODES), 4, len(gaps)))
    finite = np.where(np.isfinite(gaps), gaps, 0.0)
    for k, beta in enumerate(NODES):
        with np.errstate(over="ignore"):
            e = np.exp(-beta * gaps)
        total = e.sum(axis=1)
        w = e / (1.0 + total)[:, None]
        mean = (w * finite).sum(axis=1)
        top = 1.0 / (1.0 + total)
        centred = finite - mean[:, None]
        first = w * centred  # before any power: a class far below the others has a weight of 0 and a gap without one
        out[k, 0] = np.log1p(total)
        out[k, 1] = -mean
        out[k, 2] = (first * centred).sum(axis=1) + top * mean**2
        out[k, 3] = -((first * centred * centred).sum(axis=1) - top * mean**3)
    return out
