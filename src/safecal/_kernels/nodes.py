"""Nodes of the log-partition function: all that inference needs of rows of K outcomes.

With ``g`` the gaps of the other outcomes, ``log p_top - log p_k >= 0``, a row is the function
``R(beta) = log(1 + sum of exp(-beta g))``. It is kept as its value and three derivatives at a few inverse temperatures,
each twice the one before, so that one exponential gives all weights: those of a node are the squares of the last ones.
The derivatives are the mean and the central moments of ``-g``, sums of terms around that mean, where nothing cancels.
"""

import numpy as np

from .._types import FloatArray

__all__ = ["NODES", "binary_node_rows", "node_rows"]

#: The inverse temperatures.
NODES = (0.25, 0.5, 1.0, 2.0, 4.0)


def node_rows(gaps: FloatArray) -> FloatArray:
    """Return R and its first three derivatives at each node, for each row.

    Parameters
    ----------
    gaps : ndarray of shape (n, K)
        How much less likely each other outcome is than the most likely one, in nats; +inf where it is impossible, and
        in the place of the most likely one, if that has a place.

    Returns
    -------
    ndarray of shape (5, 4, n)
        By node, by derivative.
    """
    w = np.exp(-NODES[0] * gaps)
    g = np.where(np.isinf(gaps), 0.0, gaps)
    out = np.empty((len(NODES), 4, len(gaps)))
    for node in out:
        rest = w.sum(axis=1)
        total = 1.0 + rest
        mean = np.vecdot(w, g) / total
        x = g - mean[:, None]
        wx = w * x
        wxx = wx * x  # not x * x, which overflows where w is 0
        node[0] = np.log1p(rest)
        node[1] = -mean
        node[2] = (wxx.sum(axis=1) + mean * mean) / total  # the last term is that of the most likely outcome
        node[3] = (mean * mean * mean - np.vecdot(wxx, x)) / total
        w *= w
    return out


def binary_node_rows(odds: FloatArray) -> FloatArray:
    """Return the same for two outcomes, from the log-odds of the likelier one; +inf where the other is impossible."""
    t = np.exp(-NODES[0] * odds)
    L = np.where(np.isinf(odds), 0.0, odds)
    out = np.empty((len(NODES), 4, len(odds)))
    for node in out:
        large = 1.0 / (1.0 + t)
        small = t * large
        mean = L * small
        node[0] = np.log1p(t)
        node[1] = -mean
        node[2] = mean * (L * large)  # in this order, because L * L may overflow where t is 0
        node[3] = -node[2] * (L * (large - small))
        t *= t
    return out
