"""States with other means and spreads: a bias and a factor, for all axes or for each."""

import numpy as np

from .._types import AnyArray, FloatArray
from ..families.gaussian import Gaussian

__all__ = ["moved_states", "scaled_spread"]


def scaled_spread(spread: AnyArray, name: str, factor: FloatArray) -> FloatArray:
    """Return standard deviations, variances or matrices whose axes have deviations ``factor`` times as large.

    ``factor`` is a number, one for each axis (d,), or a line for each row, (n, 1) or (n, d).
    """
    wide = np.asarray(spread, dtype=np.float64)
    if name in ("std", "var"):
        if factor.ndim == 2 and wide.ndim == 1:
            factor = factor[:, 0]
        elif factor.shape == (1,):  # a state of one axis
            factor = factor[0]
        return np.asarray(wide * (factor if name == "std" else factor * factor))
    if factor.ndim == 0:
        factor = factor[None]
    if name == "chol":
        return np.asarray(wide * factor[..., :, None])
    both = factor[..., :, None] * factor[..., None, :]
    return np.asarray(wide * both if name == "cov" else wide / both)


def moved_states(p: Gaussian, bias: FloatArray, factor: FloatArray) -> Gaussian:
    """Return states whose means are moved and whose spreads are scaled; a spread becomes one of each row."""
    mean = np.asarray(p.mean, dtype=np.float64)
    mean = mean + (bias.reshape(-1) if mean.ndim == 1 else bias)
    shape = p.x_true.shape
    wide = np.asarray(p.spread, dtype=np.float64)
    if p.form in ("std", "var"):
        wide = np.broadcast_to(wide, shape)
    elif wide.ndim == 2:
        wide = np.broadcast_to(wide, (p.n, *wide.shape))
    return Gaussian(p.x_true, mean, p.form, scaled_spread(wide, p.form, factor), None, p.angles, p.method)
