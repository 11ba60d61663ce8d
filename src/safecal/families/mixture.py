"""Gaussian mixtures: the log-density is exact, the entropy exact up to how much the components overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._checks.columns import spelled, whole_number
from .._checks.densities import generator
from .._checks.mixtures import (
    component_factors,
    component_means,
    component_weights,
    mixture_spread,
    true_shape,
    true_states,
)
from .._checks.states import component_choice
from .._kernels import states as kernel
from .._steady import steady
from .._sums.forecasts import MOST_AXES
from .._types import ArrayLike, FloatArray, Spread
from .density import Density
from .gaussian import states

__all__ = ["gaussian_mixture"]

_ELEMENTS = 1 << 18  # numbers drawn at once


@steady
@spelled()
def gaussian_mixture(
    x_true: ArrayLike,
    weight: ArrayLike,
    mean: ArrayLike,
    *,
    std: Spread | None = None,
    var: Spread | None = None,
    cov: ArrayLike | None = None,
    chol: ArrayLike | None = None,
    mapping: Sequence[int] | None = None,
    angles: Sequence[int] | None = None,
    draws: int = 64,
    rng: Any = None,
) -> Density:
    """Check state estimates that are Gaussian mixtures, and the true states.

    The surprisal is exact. The entropy is that of the components and of their weights, less the doubt that a draw
    leaves about which component it came from; that doubt alone is averaged over fresh draws for each row. It is small
    where components lie apart and 0 where there is one, which then is the same as `gaussian`. The variance that comes
    with the draws is in ``score().numerical_variance``, and `Summary.numerical_error` is what it means for ECD.

    Parameters
    ----------
    x_true : array-like of shape (n,) or (n, d)
        The true states.
    weight : array-like of shape (K,) or (n, K)
        Weights of the components, which sum to one. A component of weight 0 is absent, and may hold anything: rows may
        have fewer components than others.
    mean : array-like of shape (K, d) or (n, K, d)
        Means of the components; without d where x_true has none.
    std, var : float, or array-like of shape (d,), (K, d) or (n, K, d)
        Standard deviations, or variances, of independent coordinates; without d where x_true has none.
    cov : array-like of shape (d, d), (K, d, d) or (n, K, d, d)
        Covariance matrices of the components.
    chol : array-like of shape (d, d), (K, d, d) or (n, K, d, d)
        Lower triangular factors of the covariances.
    mapping : sequence of int, optional
        The coordinates that matter; the others are integrated out.
    angles : sequence of int, optional
        The coordinates that are angles in radians: differences are wrapped into (-pi, pi].
    draws : int, default 64
        Draws for each row; at least 3.
    rng : None, int or numpy.random.Generator, optional
        Where draws come from.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    gaussian : One component.
    particles : Weighted particles.

    Examples
    --------
    Left or right of an obstacle, as likely as not; the target went right:

    >>> import safecal
    >>> predictions = safecal.gaussian_mixture([2.1, 1.7], [0.5, 0.5], [-2.0, 2.0], std=0.5, rng=0)
    >>> predictions
    density predictions: 2 rows (mixture, draws: 64)
    >>> predictions.score().excess.round(2).tolist()
    [-0.48, -0.32]
    """
    given = true_shape(x_true)
    shape = given.shape
    kept, wrapped = component_choice(mapping, angles, 1 if len(shape) == 1 else shape[1])
    x = true_states(given, kept)
    w = component_weights(weight, len(x))
    form, spread = mixture_spread({"std": std, "var": var, "cov": cov, "chol": chol})
    m = component_means(mean, shape, w > 0.0, kept)
    factor = component_factors(form, spread, shape, w > 0.0, kept)
    if kept is not None and form == "chol":
        factor = kernel.marginal_factor(factor, kept)
    count = whole_number(draws, "draws", 3)
    return _scored(x, w, m, factor, wrapped, count, generator(rng))


def _scored(
    x: FloatArray,
    w: FloatArray,
    m: FloatArray,
    factor: FloatArray,
    angles: tuple[int, ...],
    draws: int,
    rng: np.random.Generator,
) -> Density:
    n, d = x.shape
    columns = np.empty((6, n))
    # Products of errors of a right mixture are its covariance on average, whatever its shape. Angles have no mean.
    known = 1 < d <= MOST_AXES and not angles
    centre, spread = np.empty((n, d)), np.empty((n if known else 0, d, d))
    size = max(1, _ELEMENTS // (draws * (d + w.shape[1])))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))

        def some(array: FloatArray, rows: slice = rows) -> FloatArray:
            part = array if len(array) == 1 else array[rows]
            part = np.broadcast_to(part, (rows.stop - rows.start, *part.shape[1:]))
            return np.ascontiguousarray(np.moveaxis(part, 0, -1))

        with np.errstate(divide="ignore"):
            log_weight = np.log(some(w))
        mixture = kernel.Components(log_weight, some(m), some(factor), angles)
        columns[:, rows] = _columns(mixture, np.ascontiguousarray(x[rows].T), draws, rng)
        if known:
            centre[rows], spread[rows] = kernel.moments(mixture)
    surprisal, entropy, excess, varentropy, third, variance = columns
    matched = states(x, centre, spread) if known else None
    return Density(
        excess, varentropy, third, surprisal, entropy, variance, "mixture, draws", draws, None, d, matched=matched
    )


def _columns(mixture: kernel.Components, x: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return surprisal, entropy, excess, varentropy, third cumulant and numerical variance of some rows."""
    d = len(x)
    with np.errstate(over="ignore"):  # an error beyond every float has density 0, and is counted as impossible
        surprisal = -kernel.membership(kernel.log_joint(mixture, x))[0]
    weight = np.exp(mixture.log_weight)
    one = (weight > 0.0).sum(axis=0) == 1
    parts = mixture.log_root + 0.5 * d * (1.0 + kernel.LOG_2PI) - np.where(weight > 0.0, mixture.log_weight, 0.0)
    known = (weight * parts).sum(axis=0)
    log_f, doubt = kernel.membership(kernel.log_joint(mixture, kernel.draw(mixture, draws, rng)))
    entropy = known - np.where(one, 0.0, doubt.mean(axis=0))
    gap = log_f - log_f.mean(axis=0)
    varentropy = np.where(one, 0.5 * d, np.square(gap).sum(axis=0) / (draws - 1.0))
    third = -(gap**3).sum(axis=0) * draws / ((draws - 1.0) * (draws - 2.0))
    # Doubt may be so rare that no draw saw it: count one more draw in full doubt, or the error would seem to be 0.
    unseen = np.log((weight > 0.0).sum(axis=0)) / draws
    variance = np.where(one, 0.0, doubt.var(axis=0, ddof=1) / draws + unseen**2)
    return np.stack([surprisal, entropy, surprisal - entropy, varentropy, np.where(one, float(d), third), variance])
