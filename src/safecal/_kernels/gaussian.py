"""Gaussian states: the residual is whitened with a Cholesky factor, never with an inverse."""

import numpy as np

from .._types import FloatArray
from .compiled import state_scores

__all__ = [
    "LOG_2PI",
    "marginal_factor",
    "marginal_precision",
    "nees_from_covariance",
    "nees_from_factor",
    "nees_from_precision_factor",
    "nees_from_std",
    "wrap",
]

LOG_2PI = float(np.log(2.0 * np.pi))


def nees_from_std(residual: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C of (n, d) residuals with independent components."""
    white = residual / std
    return np.vecdot(white, white), 2.0 * np.log(np.broadcast_to(std, residual.shape)).sum(axis=1)


def nees_from_covariance(residual: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return NEES and log det C of (n, d) residuals with a positive definite covariance each, (n, d, d)."""
    found = state_scores(residual, cov)
    return nees_from_factor(residual, np.linalg.cholesky(cov)) if found is None else found


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


def wrap(residual: FloatArray, angles: tuple[int, ...]) -> FloatArray:
    """Bring the components that are angles into (-pi, pi], in place, and return the residuals."""
    for i in angles:
        residual[..., i] = np.pi - np.mod(np.pi - residual[..., i], 2.0 * np.pi)
    return residual


def marginal_factor(factor: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Return lower factors of the covariance of some components, without squaring the condition number."""
    rows = factor[..., kept, :]
    upper = np.linalg.qr(np.swapaxes(rows, -1, -2), mode="r")
    return np.ascontiguousarray(np.swapaxes(upper, -1, -2), dtype=np.float64)


def marginal_precision(precision: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Return the inverse covariance of some components.

    It is the Schur complement of the others: the last block of a Cholesky factor in which they come first.
    """
    d = precision.shape[-1]
    order = [i for i in range(d) if i not in kept] + list(kept)
    factor = np.linalg.cholesky(precision[..., order, :][..., order])
    last = factor[..., d - len(kept) :, d - len(kept) :]
    return np.asarray(last @ np.swapaxes(last, -1, -2), dtype=np.float64)
