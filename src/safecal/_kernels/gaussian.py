"""Gaussian states: the residual is whitened with a Cholesky factor, never with an inverse."""

import numpy as np

from .._types import FloatArray

__all__ = ["LOG_2PI", "nees_from_factor", "nees_from_precision_factor", "nees_from_std"]

LOG_2PI = float(np.log(2.0 * np.pi))


def nees_from_std(residual: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C of (n, d) residuals with independent components."""
    white = residual / std
    return np.vecdot(white, white), 2.0 * np.log(np.broadcast_to(std, residual.shape)).sum(axis=1)


def nees_from_factor(residual: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C, with lower factors of C, one for all (d, d) or one a row (n, d, d).

    Forward substitution runs over the components and is vectorised over the rows.
    """
    n, d = residual.shape
    white = np.empty((d, n))
    lines = np.moveaxis(factor, -3, -1) if factor.ndim == 3 else factor[..., None]
    lines = np.ascontiguousarray(lines)
    for i in range(d):
        solved = residual[:, i].copy()
        for j in range(i):
            solved -= lines[i, j] * white[j]
        white[i] = solved / lines[i, i]
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    logdet = 2.0 * np.log(np.abs(diagonal)).sum(axis=-1)
    return np.einsum("in,in->n", white, white), np.broadcast_to(logdet, (n,)).astype(np.float64)


def nees_from_precision_factor(residual: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C, with lower factors of the precision matrix ``C^-1 = F F^T``."""
    white = np.einsum("...ji,...j->...i", factor, residual)
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    logdet = -2.0 * np.log(np.abs(diagonal)).sum(axis=-1)
    return np.vecdot(white, white), np.broadcast_to(logdet, (len(residual),)).astype(np.float64)
