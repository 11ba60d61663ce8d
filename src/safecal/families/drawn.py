"""What forecasters look at of draws: where the outcome falls among them, their scores, how far out it lies."""

from collections.abc import Sequence

import numpy as np

from .._checks.forecasts import flat_draws
from .._kernels.ensemble import left_out_nees, pool_nees, pulled_in, whitened
from .._kernels.forecasts import crps_of_draws, interval_score, left_out_errors, rank_among
from .._sums.drawn import DrawColumns
from .._sums.forecasts import LEVELS, MOST_AXES, ForecastColumns
from .._types import FloatArray

__all__ = ["SEED", "drawn_columns", "drawn_forecast", "draws_kept", "looked_at"]

SEED = 0x5AFECA1  # that no study of the same rows is likely to draw from
_STATED = 4 + 2 * len(LEVELS)  # columns of a forecast of a number
_ELEMENTS = 1 << 18  # numbers of a block of pools
_KEPT = 1 << 24  # numbers of all draws of a density that are held at once
_PLANE = 1e-9  # the least eigenvalue of correlations that is not rounding
_FEWEST = 16  # draws of a density that are worth looking at


def looked_at(x: FloatArray, draws: FloatArray, *, fair: bool = False) -> FloatArray | None:
    """Return columns of outcomes (n, d) and their draws (n, m, d), as `drawn_columns` reads them.

    ``fair`` scores the law that the draws are of, and not the draws.

    Returns
    -------
    ndarray of shape (1 + 3 (1 + d) + 12 d, n), or None
        None where there are too few draws, or many components.
    """
    n, m, d = draws.shape
    if d > MOST_AXES or m <= d + 4:
        return None
    # The same rows give the same answer: chance is drawn from a generator of its own.
    chance: FloatArray = np.random.default_rng(SEED).random((n,))
    found, size = np.empty((1 + 3 * (1 + d) + _STATED * d, n)), max(1, _ELEMENTS // ((m + 1) * d))
    for start in range(0, n, size):
        rows = slice(start, start + size)
        found[:, rows] = _looked_at(x[rows], draws[rows], chance[rows], fair)
    return found


@np.errstate(over="ignore", invalid="ignore")  # squares of outcomes beyond all floats; such rows are left out
def _looked_at(x: FloatArray, draws: FloatArray, chance: FloatArray, fair: bool) -> FloatArray:
    n, _, d = draws.shape
    each = [(x[:, k], np.ascontiguousarray(draws[..., k])) for k in range(d)]
    axes, along = [_of_axis(*axis, chance, fair) for axis in each], [_along(*axis) for axis in each]
    rank, together = (axes[0][0], along[0]) if d == 1 else _together(x, draws, chance)
    distances = np.stack([together, *along], axis=1)  # of outcomes, of draws, and the squares of those
    return np.concatenate([rank[None], distances.reshape(3 * (1 + d), n), *axes])


def draws_kept(x: FloatArray, draws: int) -> int:
    """Return how many draws of a density are looked at, so that they fit into memory; 0 where that is too few."""
    many = min(draws, _KEPT // max(x.size, 1))
    return many if many >= _FEWEST else 0


def drawn_forecast(x: FloatArray, draws: Sequence[FloatArray]) -> FloatArray | None:
    """Look at a density by draws of all rows; None where it has no such draws: they are few, counts or labels, alike.

    ``x`` and each of the draws are of shape (n,) or (n, ...).
    """
    if not draws:
        return None
    points = np.stack([one.reshape(len(x), -1) for one in draws], axis=1)
    if (points == np.rint(points)).all() or not np.isfinite(points).all() or flat_draws(points).any():
        return None
    if points.shape[2] > MOST_AXES or _in_a_plane(points):
        return None
    return looked_at(x.reshape(len(x), -1), points, fair=True)


def _in_a_plane(draws: FloatArray) -> bool:
    """Tell whether the draws (n, m, d) of some row leave a direction out, as shares that sum to 1 do."""
    scaled = (draws - draws.mean(axis=1, keepdims=True)) / draws.std(axis=1, keepdims=True)
    together = np.einsum("bji,bjk->bik", scaled, scaled) / draws.shape[1]
    return bool(np.linalg.eigvalsh(together).min() < _PLANE)


def drawn_columns(found: FloatArray, d: int) -> DrawColumns:
    """Return what `looked_at` found of some rows, as it is summed."""
    end = 1 + 3 * (1 + d)
    axes = tuple(_of_a_number(found[end + _STATED * k :][:_STATED]) for k in range(d))
    distance, own, own2 = found[1:end].reshape(3, 1 + d, -1)
    return DrawColumns(found[0], distance, own, own2, axes)


def _of_a_number(found: FloatArray) -> ForecastColumns:
    rank, crps, spread, error = found[:4]
    widths, scores = np.split(found[4:], 2)
    return ForecastColumns(rank, crps, spread, error, widths.T, scores.T)


def _together(y: FloatArray, draws: FloatArray, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rank of the outcome from the centre, and its squared distance, those of draws, and their squares."""
    pool, times = pulled_in(np.concatenate([y[:, None], draws], axis=1))
    nees = pool_nees(whitened(pool), times)
    own = left_out_nees(whitened(draws))
    return rank_among(nees[:, 0], nees[:, 1:], chance), _compared(nees[:, 0], own)


def _along(y: FloatArray, draws: FloatArray) -> FloatArray:
    """Return the squared distance of the outcome along an axis, those of draws, and their squares."""
    m = draws.shape[1]
    distance = _fewer(m) * np.square((y - draws.mean(axis=1)) / draws.std(axis=1, ddof=1))
    return _compared(distance, _fewer(m - 1) * np.square(left_out_errors(draws)))


def _compared(distance: FloatArray, own: FloatArray) -> FloatArray:
    middle = own.mean(axis=1)
    # The mean of the draws is off by one m-th of their covariance, however far out the outcome lies.
    return np.stack([distance + (distance - middle) / own.shape[1], middle, np.square(own).mean(axis=1)])


def _fewer(m: int) -> float:
    """Return what makes the mean square of errors 1: few draws spread too little more often than too much."""
    return m * (m - 3.0) / ((m - 1.0) * (m + 1.0))


def _of_axis(y: FloatArray, draws: FloatArray, chance: FloatArray, fair: bool) -> FloatArray:
    """Return rank, CRPS, standard deviation and error, then widths and scores of intervals between quantiles."""
    spread, m = draws.std(axis=1, ddof=1), draws.shape[1]
    # The mean and the spread of skewed draws go together, so that every point seems to be off: the outcome is no more.
    errors = left_out_errors(np.concatenate([y[:, None], draws], axis=1))
    errors[:, 0] = (y - draws.mean(axis=1)) / spread  # as it is, where it lies so far out that digits are lost
    error = np.sqrt(_fewer(m)) * (errors[:, 0] - errors.mean(axis=1))
    ordered = np.sort(draws, axis=1)
    ends = [(_quantile(ordered, 0.5 - 0.5 * at), _quantile(ordered, 0.5 + 0.5 * at)) for at in LEVELS]
    widths = [high - low for low, high in ends]
    scores = [interval_score(y, low, high, at) for (low, high), at in zip(ends, LEVELS, strict=True)]
    crps = crps_of_draws(y, ordered, fair=fair)
    return np.stack([rank_among(y, draws, chance), crps, spread, error, *widths, *scores])


def _quantile(ordered: FloatArray, level: float) -> FloatArray:
    """Return a quantile of sorted draws (n, m), linear between two of them."""
    place = level * (ordered.shape[1] - 1)
    below = min(int(place), ordered.shape[1] - 2)
    low, high = ordered[:, below], ordered[:, below + 1]
    return np.asarray(low + (place - below) * (high - low))
