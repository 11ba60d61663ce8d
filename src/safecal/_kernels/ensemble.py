"""Draws: the outcome as one more point of their pool, what each point is to all others; scores, ranks, moments.

If a forecast is right, the outcome is as likely to be any of the m + 1 points of the pool. So any number that is made
of each point and of all others alike has, at the outcome, the mean that it has over the pool: exactly, for every number
of draws, dimension and shape.
"""

from typing import NamedTuple, final

import numpy as np

from .._types import FloatArray

_FAR_SPREADS = 1e6  # spreads of the draws, from which on an outcome is pulled in before matrices are made of it
FLOOR = 1e-3  # of the spread of the pool: points that are nearer count as that near, so that copies have a logarithm


class Exchanged(NamedTuple):
    """What the outcome has beyond the mean of its pool, and what a right forecast would make of it, one value a row."""

    excess: FloatArray
    variance: FloatArray
    third: FloatArray


def exchanged(surprise: FloatArray) -> Exchanged:
    """Compare the outcome, the first point of each pool, with all points: (rows, m + 1) -> three columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap = surprise - surprise.mean(axis=1, keepdims=True)
        square = np.square(gap)
        columns = np.stack([gap[:, 0], square.mean(axis=1), (square * gap).mean(axis=1)])
    # So far out that powers of it are no floats: impossible by these draws.
    columns[:, ~np.isfinite(columns).all(axis=0)] = np.array([[np.inf], [0.0], [0.0]])
    return Exchanged(*columns)


def pulled_in(pool: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pull outcomes that lie millions of spreads out towards their draws; return the pools, and how many times nearer.

    Matrices of such pools would be too ill-conditioned to be solved by.
    """
    draws = pool[:, 1:]
    centre, spread = draws.mean(axis=1), draws.std(axis=1)
    gap = pool[:, 0] - centre
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        times = np.fmax(np.nanmax(np.abs(gap) / (_FAR_SPREADS * spread), axis=1, initial=1.0), 1.0)
    far = times > 1.0
    if not far.any():
        return pool, times
    pool = pool.copy()
    pool[far, 0] = centre[far] + gap[far] / times[far, None]
    return pool, times


def pool_nees(white: FloatArray, times: FloatArray) -> FloatArray:
    """Return the left-out NEES of pools that were pulled in: that of the outcome grows with its squared distance."""
    nees = left_out_nees(white)
    with np.errstate(over="ignore"):
        nees[:, 0] *= np.square(times)
    return nees


def whitened(pool: FloatArray) -> FloatArray:
    """Return the pools (rows, m + 1, d) less their means, over their own spread.

    ``sum_j z_j z_j^T`` is the identity. Raises LinAlgError where a pool does not spread in every direction.
    """
    centred = pool - pool.mean(axis=1, keepdims=True)
    scatter = np.einsum("bji,bjk->bik", centred, centred)
    factor = np.linalg.cholesky(scatter)
    white = np.linalg.solve(factor, np.swapaxes(centred, 1, 2))
    return np.ascontiguousarray(np.swapaxes(white, 1, 2))


def log_spread(pool: FloatArray) -> FloatArray:
    """Return the sum over axes of the log of the spread between the quartiles of each pool, as a standard deviation.

    One point, the outcome, hardly moves it; so it orders rows by what was forecast.
    """
    ordered = np.sort(pool, axis=1)
    size = pool.shape[1]
    width = ordered[:, size - 1 - size // 4] - ordered[:, size // 4]
    return np.asarray(np.log(np.maximum(width / 1.349, 1e-300)).sum(axis=1))


def left_out_nees(white: FloatArray) -> FloatArray:
    """Return NEES of each point by mean and covariance of all others, (rows, m + 1), times what makes its mean d.

    With the scatter A of all N = m + 1 points and ``h = z^T A^-1 z``, the others have the mean ``-z / m`` from here,
    and the scatter ``A - N/m z z^T`` (Sherman and Morrison). The mean over right Gaussian draws is
    ``d (m - 1) (m + 1) / (m (m - d - 2))``.
    """
    m, d = white.shape[1] - 1, white.shape[2]
    ratio = (m + 1.0) / m
    leverage = np.einsum("bji,bji->bj", white, white)
    nees = ratio**2 * (m - 1.0) * leverage / np.maximum(1.0 - ratio * leverage, 1e-300)
    return np.asarray(nees * m * (m - d - 2.0) / ((m - 1.0) * (m + 1.0)))


def left_out_distances(white: FloatArray, neighbours: int) -> FloatArray:
    """Return the distance of each point to its k-th nearest other one, in units of the spread, at least `FLOOR`."""
    scaled = white * np.sqrt(white.shape[1] - 1.0)
    far = _on_a_line(scaled[..., 0], neighbours) if white.shape[2] == 1 else _in_space(scaled, neighbours)
    return np.maximum(far, FLOOR)


def _on_a_line(x: FloatArray, k: int) -> FloatArray:
    """Find the k-th neighbour among sorted points: it is the farther end of the shortest run of k + 1 around each."""
    order = np.argsort(x, axis=1, kind="stable")
    s = np.take_along_axis(x, order, axis=1)
    far = np.full(s.shape, np.inf)
    size = s.shape[1]
    for below in range(k + 1):  # so many of the k neighbours lie below
        above = k - below
        middle = slice(below, size - above)
        reach = np.maximum(s[:, middle] - s[:, : size - k], s[:, k:] - s[:, middle])
        far[:, middle] = np.minimum(far[:, middle], reach)
    distances = np.empty_like(far)
    np.put_along_axis(distances, order, far, axis=1)
    return distances


def _in_space(z: FloatArray, k: int) -> FloatArray:
    square = np.einsum("bji,bji->bj", z, z)
    gap = square[:, :, None] + square[:, None, :] - 2.0 * (z @ np.swapaxes(z, 1, 2))
    return np.sqrt(np.maximum(np.partition(gap, k, axis=2)[:, :, k], 0.0))  # each point itself is nearest


def crps_of_draws(y: FloatArray, draws: FloatArray, *, fair: bool = False) -> FloatArray:
    """Return the score of the draws (n, m) taken as the forecast: ``mean |x - y| - mean |x - x'| / 2``.

    ``fair`` takes the second mean over different draws: it is then, on average, the score of the law they are of.
    """
    ordered = np.sort(draws, axis=1)
    m = draws.shape[1]
    rank = 2.0 * np.arange(1, m + 1) - m - 1.0
    return np.asarray(np.abs(ordered - y[:, None]).mean(axis=1) - (ordered @ rank) / (m * (m - 1.0) if fair else m * m))


def interval_score(y: FloatArray, lower: FloatArray, upper: FloatArray, level: float) -> FloatArray:
    """Return the width of intervals, and a penalty of 2 / (1 - level) times the distance of an outcome outside."""
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return np.asarray(upper - lower + 2.0 / (1.0 - level) * outside)


def left_out_errors(draws: FloatArray) -> FloatArray:
    """Return each draw (n, m) less the mean of the others, over their standard deviation."""
    m = draws.shape[1]
    gap = draws - draws.mean(axis=1, keepdims=True)
    gap /= np.abs(gap).max(axis=1, keepdims=True)  # so that no square leaves the floats
    square = np.square(gap)
    others = np.maximum(square.sum(axis=1, keepdims=True) - m / (m - 1.0) * square, 1e-300)
    return np.asarray(m / (m - 1.0) * gap / np.sqrt(others / (m - 2.0)))


def rank_among(y: FloatArray, draws: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the rank of the outcome among its draws from 0 to 1; within its cell, and among equals, by chance."""
    below, equal = (draws < y[:, None]).sum(axis=1), (draws == y[:, None]).sum(axis=1)
    return np.asarray((below + chance * (equal + 1.0)) / (draws.shape[1] + 1.0))


@final
class Moments:
    """Running total weight, mean, and second and third central moments of several rows of values.

    Weights are logarithms, because those of a tempered density span more than the range of a float. Batches are merged
    by the formulas for a mixture of two populations, so only differences of means are ever raised to a power.
    """

    __slots__ = ("log_total", "mean", "second", "third")

    def __init__(self, rows: int) -> None:
        self.log_total = np.full(rows, -np.inf)
        self.mean = np.zeros(rows)
        self.second = np.zeros(rows)
        self.third = np.zeros(rows)

    def add(self, log_weight: FloatArray, values: FloatArray) -> None:
        """Take in a (batch, rows) array of values; a log-weight of -inf leaves a value out, whatever it is."""
        top = log_weight.max(axis=0)
        top = np.where(np.isneginf(top), 0.0, top)
        weight = np.exp(log_weight - top)
        total = weight.sum(axis=0)
        if np.isneginf(values).any():
            values = np.where(weight == 0.0, 0.0, values)
        weight /= np.where(total > 0.0, total, 1.0)
        mean = np.einsum("ij,ij->j", weight, values)
        gap = values - mean
        weight *= gap
        with np.errstate(divide="ignore"):
            log_total = top + np.log(total)
        second = np.einsum("ij,ij->j", weight, gap)
        weight *= gap
        self._merge(log_total, mean, second, np.einsum("ij,ij->j", weight, gap))

    def _merge(self, log_total: FloatArray, mean: FloatArray, second: FloatArray, third: FloatArray) -> None:
        """Add another population by its weight and its moments."""
        log_both = np.logaddexp(self.log_total, log_total)
        reach = np.where(np.isneginf(log_both), 0.0, log_both)
        old, new = np.exp(self.log_total - reach), np.exp(log_total - reach)
        gap = mean - self.mean
        cross = old * new
        self.third = (
            old * self.third
            + new * third
            + cross * (old - new) * gap**3
            + 3.0 * cross * gap * (second - self.second)
        )  # fmt: skip
        self.second = old * self.second + new * second + cross * gap * gap
        self.mean = np.where(old >= new, self.mean + new * gap, mean - old * gap)
        self.log_total = log_both

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return what has been taken in so far: log of the total weight, mean, second and third central moment."""
        return self.log_total, self.mean, self.second, self.third
