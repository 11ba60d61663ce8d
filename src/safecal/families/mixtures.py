"""States that are not Gaussian: mixtures of Gaussians, and clouds of weighted particles."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from .._checks import fail
from .._checks.columns import choice, spelled, steady, whole_number
from .._checks.forecasts import drawn_log_density, generator, outcome_log_density, row_values
from .._checks.mixtures import (
    Cloud,
    cloud_blocks,
    component_factors,
    component_means,
    component_weights,
    crowded,
    neighbour_count,
    one_weight,
    spread_out,
    true_shape,
    true_states,
    whole_cloud,
)
from .._checks.states import component_choice, one_spread
from .._kernels import states as kernel
from .._kernels.ensemble import Exchanged, whitened
from .._sums.forecasts import MOST_AXES
from .._sums.tally_parts import Look
from .._types import ArrayLike, Clouds, FloatArray, IndexArray, ParticleMethod, SpreadLike
from ..errors import FormError
from . import Predictions
from .density import Density
from .ensemble import MOMENTS, NEIGHBOURS, Ensemble, neighbour_columns
from .gaussian import Gaussian, states

__all__ = ["gaussian_mixture", "particles"]

_ELEMENTS = 1 << 18  # numbers drawn at once


@steady
@spelled()
def gaussian_mixture(
    x_true: ArrayLike,
    weight: ArrayLike,
    mean: ArrayLike,
    *,
    std: SpreadLike | None = None,
    var: SpreadLike | None = None,
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
    truth = true_shape(x_true)
    shape = truth.shape
    kept, wrapped = component_choice(mapping, angles, 1 if len(shape) == 1 else shape[1])
    x = true_states(truth, kept)
    w = component_weights(weight, len(x))
    form, spread = one_spread({"std": std, "var": var, "cov": cov, "chol": chol})
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
    """Score mixtures by blocks of rows, since each draw has a value for each component."""
    n, d = x.shape
    columns = np.empty((6, n))
    # Products of errors of a right mixture are its covariance on average, whatever its shape. Angles have no mean.
    has_moments = 1 < d <= MOST_AXES and not angles
    centre, spread = np.empty((n, d)), np.empty((n if has_moments else 0, d, d))
    size = max(1, _ELEMENTS // (draws * (d + w.shape[1])))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))

        def rows_last(array: FloatArray, rows: slice = rows) -> FloatArray:
            part = array if len(array) == 1 else array[rows]
            part = np.broadcast_to(part, (rows.stop - rows.start, *part.shape[1:]))
            return np.ascontiguousarray(np.moveaxis(part, 0, -1))

        with np.errstate(divide="ignore"):
            log_weight = np.log(rows_last(w))
        mixture = kernel.Components(log_weight, rows_last(m), rows_last(factor), angles)
        columns[:, rows] = kernel.mixture_columns(mixture, np.ascontiguousarray(x[rows].T), draws, rng)
        if has_moments:
            centre[rows], spread[rows] = kernel.moments(mixture)
    surprisal, entropy, excess, varentropy, third, variance = columns
    matched = states(x, centre, spread) if has_moments else None
    return Density(
        excess, varentropy, third, "mixture, draws", d, surprisal, entropy,
        numerical_variance=variance, draws=draws, matched=matched,
    )  # fmt: skip


METHODS = get_args(ParticleMethod)
# Particles among which neighbours of the truth are looked for, beside the moments.
_MOST_BESIDE, _FEWEST_BESIDE = 128, 8
_SHAPELESS = (
    "Mean and covariance see no shape, and neighbours were not looked at, or too few particles hold most of the weight."
)


@steady
@spelled()
def particles(
    x_true: ArrayLike,
    cloud: Clouds,
    weight: Clouds | None = None,
    *,
    log_weight: Clouds | None = None,
    method: ParticleMethod | None = None,
    log_density: Callable[[FloatArray], Any] | None = None,
    neighbours: int = 10,
    most: int = 1000,
    mapping: Sequence[int] | None = None,
    angles: Sequence[int] | None = None,
    rng: Any = None,
) -> Predictions:
    """Check state estimates that are clouds of weighted particles, and the true states.

    Particles have no density of their own, so one has to be given to them. Pass the particles as they were weighted,
    before resampling: resampling throws information away.

    Parameters
    ----------
    x_true : array-like of shape (n,) or (n, d)
        The true states.
    cloud : array-like of shape (n, S, d), or iterable of n arrays of shape (S, d)
        The particles of each row; without d where x_true has none. An iterable is read once, one row at a time, so that
        all particles of a study need never be in memory together.
    weight : array-like of shape (n, S), or iterable of n arrays of shape (S,), optional
        Their weights, which sum to one in each row; by default all are equal.
    log_weight : array-like of shape (n, S), or iterable of n arrays of shape (S,), optional
        Logarithms of the weights up to a constant, instead of ``weight``.
    method : {"moments", "neighbours", "density"}, optional
        By default ``"moments"`` with a look at neighbours beside it: the verdict is UNSAFE by either, and SAFE by both.

        ``"moments"``: the Gaussian of the same mean and covariance. ECD is then exact for that Gaussian, which is what
        an operator who is shown an ellipse believes. It sees no shape: a verdict by moments alone is never SAFE. If the
        posterior is not Gaussian, a filter that is right has an ECD of 0 all the same, but its excess does not vary as
        that of a Gaussian does: the null variance is wrong, and so are tests that rely on it. Compare runs, with
        ``cluster=``, instead.

        ``"neighbours"``: the shape counts. The truth is put among the particles, and distances to the k-th neighbour
        take the place of densities: ``d * (log e_k(truth) - mean log e_k(particles))``. A calibrated filter has mean 0
        and the null variance exactly. Over-confidence is understated, the more the worse it is: never SAFE.

        ``"density"``, where ``log_density`` is given: the posterior itself, up to a constant.
    log_density : callable, optional
        ``log_density(x)`` returns for each row of ``x``, an array shaped like ``x_true``, the log of its posterior
        density up to a constant. It is called once for the truth, and once for each particle of a row.
    neighbours : int, default 10
        Which neighbour, for ``"neighbours"``.
    most : int, default 1000
        Of how many particles distances are taken; they are drawn by their weights, none twice.
    mapping : sequence of int, optional
        The components that matter; by default all.
    angles : sequence of int, optional
        The components that are angles in radians: differences are wrapped into (-pi, pi].
    rng : None, int or numpy.random.Generator, optional
        For the draws among which neighbours are looked for. By default the same particles give the same answer.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it. Its ``repr`` shows the method.

    See Also
    --------
    gaussian : Mean and covariance.
    density : Any log-density with a sampler.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> cloud = rng.normal(size=(5, 1000, 2))
    >>> x_true = rng.normal(size=(5, 2))
    >>> safecal.particles(x_true, cloud)
    gaussian predictions: 5 rows (moment match of particles)
    >>> safecal.particles(x_true, cloud, method="neighbours")
    density predictions: 5 rows (particles, 10 nearest neighbours)
    """
    truth = true_shape(x_true)
    shape = truth.shape
    kept, wrapped = component_choice(mapping, angles, 1 if len(shape) == 1 else shape[1])
    x = true_states(truth, kept)
    also_neighbours = method is None and log_density is None
    method = method or ("moments" if log_density is None else "density")
    choice(method, "method", METHODS)
    if (method == "density") != (log_density is not None):
        hint = "`log_density(x)` returns one value for each row."
        raise fail(FormError, "log_density", 'must be given exactly for `method="density"`', hint=hint)
    cloud_weight, name = one_weight(weight, log_weight)
    if log_density is not None:
        return _by_density(log_density, x, shape, cloud, cloud_weight, name, kept)
    k, largest = neighbour_count(neighbours, most)
    blocks = cloud_blocks(cloud, cloud_weight, name, shape, kept)
    if method == "moments":
        return _by_moments(x, blocks, wrapped, generator(0 if rng is None else rng) if also_neighbours else None)
    return _by_neighbours(x, blocks, wrapped, k, largest, generator(rng))


def _by_moments(
    x: FloatArray, blocks: Iterator[Cloud], angles: tuple[int, ...], rng: np.random.Generator | None
) -> Predictions:
    """Match each cloud by a Gaussian; look at neighbours beside it where there is a generator."""
    mean, size, cov = np.empty(x.shape), np.empty(x.shape), np.empty((*x.shape, x.shape[1]))
    near: FloatArray | None = None if rng is None else np.empty((3, len(x)))
    for block in blocks:
        rows = slice(block.start, block.start + len(block.points))
        mean[rows], gap, cov[rows] = kernel.cloud_moments(block.points, block.weight, angles)
        size[rows] = np.abs(block.points).max(axis=1)
        if near is not None and rng is not None:
            truth = kernel.wrap(x[rows] - mean[rows], angles)
            compared = [_compare_with_neighbours(truth[i], gap[i], block.weight[i], rng) for i in range(len(gap))]
            pieces = [columns for columns in compared if columns is not None]
            near = near if len(pieces) == len(compared) else None
            if near is not None:
                near[:, rows] = np.concatenate(pieces, axis=1)
    looks: tuple[Look, tuple[Predictions, ...]] = replace(MOMENTS, acquits=False, why=_SHAPELESS), ()
    if near is not None:
        looks = MOMENTS, (Ensemble(near, x.shape[1], len(gap[0]), NEIGHBOURS),)
    how = "moment match of particles"
    matched = Gaussian(x, mean, "cov", spread_out(cov, size), None, angles, how)
    return replace(matched, seen=looks[0], beside=looks[1])


def _compare_with_neighbours(
    truth: FloatArray, gap: FloatArray, weight: FloatArray, rng: np.random.Generator
) -> Exchanged | None:
    """Compare the truth with particles that are drawn by their weights, none twice; None where they are too few."""
    drawn = _draw_distinct(weight, _MOST_BESIDE, rng)
    if len(drawn) <= max(len(truth) + 1, _FEWEST_BESIDE):
        return None
    try:
        return neighbour_columns(whitened(np.vstack([truth, gap[drawn]])[None]))
    except np.linalg.LinAlgError:
        return None


def _by_neighbours(
    x: FloatArray, blocks: Iterator[Cloud], angles: tuple[int, ...], k: int, most: int, rng: np.random.Generator
) -> Predictions:
    """Score by distances to neighbours alone."""
    columns = np.empty((4, len(x)))
    for block in blocks:
        mean, gap, cov = kernel.cloud_moments(block.points, block.weight, angles)
        rows = slice(block.start, block.start + len(block.points))
        truth = kernel.wrap(x[rows] - mean, angles)
        factors = np.linalg.cholesky(spread_out(cov, np.abs(block.points).max(axis=1), rows.start))
        for i, row in enumerate(range(rows.start, rows.stop)):
            drawn = _draw_distinct(block.weight[i], most, rng)
            if len(drawn) < k + 2:
                raise crowded(row, False, len(drawn), k)
            pool = np.linalg.solve(factors[i], np.vstack([truth[i], gap[i, drawn]]).T).T
            columns[:, row] = _distance_columns(np.ascontiguousarray(pool), k, row)
    excess, varentropy, third, variance = columns
    method = f"particles, {k} nearest neighbours"
    look = replace(NEIGHBOURS, acquits=False, why="Neighbours alone understate over-confidence.")
    return Density(excess, varentropy, third, method, x.shape[1], numerical_variance=variance, look=look)


def _draw_distinct(weight: FloatArray, most: int, rng: np.random.Generator) -> IndexArray:
    """Draw as many particles as can be drawn by their weights without taking one twice: systematic sampling."""
    count = int(min(most, np.floor(1.0 / weight.max() + 1e-9), (weight > 0.0).sum()))
    if count == len(weight):
        return np.arange(count)
    edges = np.cumsum(weight)
    edges /= edges[-1]
    return np.unique(np.searchsorted(edges, (rng.random() + np.arange(count)) / count, side="right"))


def _distance_columns(pool: FloatArray, k: int, row: int) -> tuple[float, float, float, float]:
    """Return excess, varentropy, third cumulant and numerical variance from the distances to the k-th neighbours."""
    from scipy.spatial import cKDTree  # here, so that importing safecal stays light

    distance = cKDTree(pool).query(pool, k + 1)[0][:, k]
    if not (distance[1:] > 0.0).all():
        raise crowded(row, True, 0, k)
    with np.errstate(divide="ignore"):
        surprise = pool.shape[1] * np.log(distance)
    m = len(pool) - 1
    gap = surprise[1:] - surprise[1:].mean()
    variance = float(np.square(gap).sum()) / (m - 1.0)
    third = float((gap**3).sum()) * m / ((m - 1.0) * (m - 2.0))
    return float(surprise[0] - surprise[1:].mean()), variance, third, variance / m


def _by_density(
    log_density: Callable[[FloatArray], Any],
    x: FloatArray,
    shape: tuple[int, ...],
    cloud: Clouds,
    cloud_weight: Clouds | None,
    name: str,
    kept: tuple[int, ...] | None,
) -> Predictions:
    """Score by a log-density at the truth and at every particle."""
    if kept is not None or not whole_cloud(cloud):
        rule = "needs all components and one array of particles, since it takes them as they are"
        raise fail(FormError, "log_density", rule, got="`mapping`" if kept is not None else "particles row by row")
    blocks = list(cloud_blocks(cloud, cloud_weight, name, shape, None))
    points, w = np.concatenate([b.points for b in blocks]), np.concatenate([b.weight for b in blocks])
    n, rule = len(x), "one value for each row"

    def at(values: FloatArray) -> FloatArray:
        return row_values(log_density(values.reshape(shape)), (n,), "log_density", rule)

    log_f = outcome_log_density(at(x), "log_density").copy()
    logs = np.empty(w.shape)
    for s in range(w.shape[1]):
        logs[:, s] = at(np.ascontiguousarray(points[:, s]))
    drawn_log_density(np.where(w > 0.0, logs, 0.0).sum(axis=1), "log_density")
    logs = np.where(w > 0.0, logs, 0.0)
    mean = np.einsum("ns,ns->n", w, logs)
    gap = logs - mean[:, None]
    square = np.einsum("ns,ns->n", w, w)
    varentropy = np.einsum("ns,ns,ns->n", w, gap, gap) / np.maximum(1.0 - square, 1e-300)
    third = -np.einsum("ns,ns,ns,ns->n", w, gap, gap, gap)
    variance = np.einsum("ns,ns,ns,ns->n", w, w, gap, gap)
    method = "particles, log-density"
    return Density(mean - log_f, varentropy, third, method, x.shape[1], numerical_variance=variance)
