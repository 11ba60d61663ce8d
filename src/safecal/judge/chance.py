"""The ECE that chance alone gives.

A calibrated model has an ECE above 0: each bin shows the noise of its outcomes. Under calibration the gap of a bin is a
sum of independent centred Bernoulli terms, so its law is known. It is listed where the bin holds few rows, drawn where
few of many rows surprise, and normal where the variance is that of 25 tosses or more.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .._types import AnyArray, FloatArray, IndexArray
from ..inference.tails import distinct, pearson3_quantile

__all__ = ["ENOUGH", "BinSums", "SparseRows", "ece_of_chance", "null_ece"]

ENOUGH = 25.0  # variance of a gap, in units of a squared weight, from which its law is taken as normal
_QUANTILE = 0.95
_LISTED = 1024  # rows of a bin whose law is listed
_DENSE = 128  # rows that are drawn one by one, at a time
_DRAWS = 10_000
_ELEMENTS = 1_000_000  # bins times draws, at most; never fewer than _FEWEST draws
_FEWEST = 1_000


class BinSums(NamedTuple):
    """Weighted sums over the rows of each bin; ``variance`` and ``fourth`` carry the square and fourth power of w."""

    weight: FloatArray
    predicted: FloatArray
    observed: FloatArray
    predicted2: FloatArray
    product: FloatArray  # predicted times observed
    residual2: FloatArray
    variance: FloatArray  # p (1 - p)
    fourth: FloatArray  # p (1 - p)

    def sparse(self) -> AnyArray:
        """Tell which bins have a gap whose law is far from normal."""
        return self.variance**2 < ENOUGH * self.fourth


class SparseRows(NamedTuple):
    """Rows of sparse bins."""

    bin: IndexArray
    predicted: FloatArray
    rare: FloatArray  # the smaller of p and 1 - p
    weight: FloatArray


def null_ece(s: BinSums, kept: SparseRows, rng: np.random.Generator) -> tuple[float, float]:
    """Return mean and quantile, under calibration, of the sum over bins of the absolute gap."""
    draws = max(_FEWEST, min(_DRAWS, _ELEMENTS // len(s.weight)))
    sparse = s.sparse()
    mean, drawn = 0.0, np.zeros(draws)
    for k in np.flatnonzero(s.variance > 0.0).tolist():
        if not sparse[k]:
            spread = math.sqrt(s.variance[k])
            mean += spread * math.sqrt(2.0 / math.pi)
            drawn += np.abs(spread * rng.standard_normal(draws))
            continue
        in_bin = kept.bin == k
        rows = SparseRows(*(column[in_bin] for column in kept))
        if len(rows.weight) <= _LISTED and rows.weight.min() == rows.weight.max():
            sizes, mass = _law_of_tosses(rows.predicted)
            mean += rows.weight[0] * float(np.dot(sizes, mass))
            pick = np.searchsorted(np.cumsum(mass), rng.random(draws), side="right")
            drawn += rows.weight[0] * sizes[np.minimum(pick, len(sizes) - 1)]
        else:
            gaps = _draw_gaps(rows, draws, rng)
            mean += float(gaps.mean())
            drawn += gaps
    return float(mean), float(np.quantile(drawn, _QUANTILE, method="inverted_cdf"))


def _law_of_tosses(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the absolute gaps that tosses with chances ``p`` can give, and their probabilities (Poisson-binomial)."""
    mass = np.zeros(len(p) + 1)
    mass[0] = 1.0
    for k, chance in enumerate(p.tolist()):
        mass[1 : k + 2] = mass[1 : k + 2] * (1.0 - chance) + mass[: k + 1] * chance
        mass[0] *= 1.0 - chance
    return np.abs(np.arange(len(p) + 1) - p.sum()), mass


def _draw_gaps(rows: SparseRows, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the absolute gap: the rows that matter most one by one, until the law of the rest is easy."""
    step = rows.weight * np.where(rows.predicted > 0.5, -1.0, 1.0)
    noise = rows.weight**2 * rows.rare * (1.0 - rows.rare)
    order = np.argsort(-noise)
    out = np.zeros(draws)
    while order.size:
        remaining = noise[order]
        if order.size > _DENSE:
            if remaining.sum() ** 2 >= ENOUGH * np.dot(remaining, rows.weight[order] ** 2):
                out += math.sqrt(remaining.sum()) * rng.standard_normal(draws)
                break
            if rows.rare[order].sum() <= 2.0 * ENOUGH:
                out += _draw_surprises(rows.rare[order], step[order], draws, rng)
                break
        dense, order = order[:_DENSE], order[_DENSE:]
        surprised = rng.random((draws, len(dense))) < rows.rare[dense]
        out += surprised @ step[dense] - np.dot(step[dense], rows.rare[dense])
    return np.abs(out)


def _draw_surprises(rare: FloatArray, step: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw a sum over many rows that rarely surprise, touching only those that do.

    They are the rows on which a point of a Poisson process falls.
    """
    edges = np.concatenate([[0.0], np.cumsum(-np.log1p(-rare))])
    draw = np.repeat(np.arange(draws), rng.poisson(edges[-1], draws))
    row = np.searchsorted(edges, rng.uniform(0.0, edges[-1], len(draw)), side="right") - 1
    size = len(rare)
    first = distinct(draw * size + np.minimum(row, size - 1))  # a row surprises once
    total: FloatArray = np.bincount(first // size, weights=step[first % size], minlength=draws).astype(np.float64)
    return total - float(np.dot(step, rare))


_LAW = 64  # gaps that a sparse bin can show, around the expected one: more than six standard deviations on each side
_NEIGHBOURS = 16  # points of a bin that are pooled
_ANGLE = 2.0 * math.pi * np.arange(_LAW // 2 + 1) / _LAW
_COS, _SIN = np.cos(_ANGLE), np.sin(_ANGLE)
_FEW_VALUES = 20_000  # of a sum over bins, which are listed
_GRID = 1024  # steps of the law of a sum over bins
_MANY = 6  # bins from which a sum of normal gaps is a shifted gamma variable
_HALF_NORMAL = (
    math.sqrt(2.0 / math.pi),
    1.0 - 2.0 / math.pi,
    math.sqrt(2.0 / math.pi) * (4.0 / math.pi - 1.0),
)  # mean, variance and third cumulant of |N(0, 1)|


def ece_of_chance(noise: FloatArray, p: FloatArray, n: FloatArray, index: IndexArray) -> tuple[float, float]:
    """Return mean and quantile, under calibration, of the sum over bins of the absolute gap; rows of equal weight.

    Parameters
    ----------
    noise : ndarray of shape (bins,)
        Variance of the gap of each bin.
    p, n, index : ndarrays of shape (points,)
        Points that stand for the rows: chances, how many rows each stands for, and their bins.

    Returns
    -------
    mean, quantile : float
        Where gaps of many bins are normal, the quantile is that of a shifted gamma law; else laws are convolved.
    """
    normal = np.sqrt(noise[noise >= ENOUGH])
    in_sparse_bin = ((noise > 0.0) & (noise < ENOUGH))[index]
    points = p[in_sparse_bin], n[in_sparse_bin], index[in_sparse_bin]
    sparse = _laws_of_bins(*_pooled(*points)) if in_sparse_bin.any() else []
    means = [float(sizes @ mass) for sizes, mass in sparse]
    squares = [float((sizes - mean) ** 2 @ mass) for (sizes, mass), mean in zip(sparse, means, strict=True)]
    mean = _HALF_NORMAL[0] * float(normal.sum()) + sum(means)
    variance = _HALF_NORMAL[1] * float((normal**2).sum()) + sum(squares)
    if variance == 0.0:
        return mean, mean
    if not sparse and len(normal) >= _MANY:
        return mean, mean + pearson3_quantile(_QUANTILE, variance, _HALF_NORMAL[2] * float((normal**3).sum()))
    listed = None if len(normal) else _listed_quantile(sparse)
    return mean, _convolved_quantile(normal, sparse, mean + 12.0 * math.sqrt(variance)) if listed is None else listed


def _pooled(p: FloatArray, n: FloatArray, index: IndexArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Let two points with the same first three moments stand for every few neighbours of a bin; bins increase."""
    if len(p) <= _NEIGHBOURS:
        return p, n, index
    starts = np.union1d(np.arange(0, len(p), _NEIGHBOURS), np.flatnonzero(np.diff(index, prepend=-1)))
    count, mean = np.add.reduceat(n, starts), np.add.reduceat(n * p, starts)
    mean /= count
    away = p - np.repeat(mean, np.diff(starts, append=len(p)))
    variance, third = (np.add.reduceat(n * away**k, starts) / count for k in (2, 3))
    spread = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(spread > 1e-9, third / variance / spread, 0.0)
    reach = np.sqrt(1.0 + 0.25 * skew * skew)
    low, high = 0.5 * skew - reach, 0.5 * skew + reach
    share = high / (high - low)
    points = np.stack([mean + low * spread, mean + high * spread], axis=1)
    counts = np.stack([count * share, count * (1.0 - share)], axis=1)
    return np.clip(points.ravel(), 0.0, 1.0), counts.ravel(), np.repeat(index[starts], 2)


def _laws_of_bins(p: FloatArray, n: FloatArray, index: IndexArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return for each bin the absolute gaps that tosses can give, and their probabilities, by a Fourier transform."""
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    expected = np.add.reduceat(n * p, starts)
    base = np.floor(expected) - _LAW // 2
    # The logarithm of 1 - p + p exp(i angle), its real part and its angle: quicker than that of a complex number.
    with np.errstate(divide="ignore"):  # a chance of one half has no mass at half a turn
        size = 0.5 * n * np.log1p(np.multiply.outer(-2.0 * (1.0 - _COS), p * (1.0 - p)))
    turn = n * np.arctan2(np.multiply.outer(_SIN, p), 1.0 - np.multiply.outer(1.0 - _COS, p))
    size, turn = (np.add.reduceat(part, starts, axis=1) for part in (size, turn))
    law = np.exp(size - 1j * (turn - np.multiply.outer(_ANGLE, base)))
    mass = np.maximum(np.fft.irfft(law, _LAW, axis=0), 0.0)
    mass[mass < 1e-12] = 0.0  # rounding, which would lie far out
    gaps = np.abs(base + np.arange(_LAW)[:, None] - expected)
    return list(zip(gaps.T, (mass / mass.sum(axis=0)).T, strict=True))


def _listed_quantile(sparse: list[tuple[FloatArray, FloatArray]]) -> float | None:
    """Return the quantile of a sum of absolute gaps that has few values; None where they are too many to list."""
    support, mass = np.zeros(1), np.ones(1)
    for sizes, chances in sparse:
        possible = chances > 0.0
        if len(support) * int(possible.sum()) > _FEW_VALUES:
            return None
        support = np.add.outer(support, sizes[possible]).ravel()
        mass = np.multiply.outer(mass, chances[possible]).ravel()
    order = np.argsort(support)
    below = np.cumsum(mass[order])
    return float(support[order][np.searchsorted(below, _QUANTILE * below[-1])])


def _convolved_quantile(normal: FloatArray, sparse: list[tuple[FloatArray, FloatArray]], farthest: float) -> float:
    """Return the quantile of a sum of absolute gaps, on a grid from 0 to ``farthest``."""
    step = farthest / _GRID
    edges = step * (np.arange(_GRID + 1) - 0.5)
    # One law a row, of twice as many steps, so that nothing comes round.
    spreads = normal[:, None] * math.sqrt(2.0)
    laws = [np.diff(special.erf(np.maximum(edges, 0.0) / spreads), axis=1)] if len(normal) else []
    if sparse:
        sizes, mass = (np.stack(column) for column in zip(*sparse, strict=True))
        place = np.minimum(sizes / step, _GRID - 2.0)
        low = np.floor(place).astype(np.intp)
        part = place - low
        low += _GRID * np.arange(len(sparse))[:, None]
        size = _GRID * len(sparse)
        cells = np.bincount(low.ravel(), weights=(mass * (1.0 - part)).ravel(), minlength=size)
        cells += np.bincount(low.ravel() + 1, weights=(mass * part).ravel(), minlength=size)
        laws.append(cells.reshape(len(sparse), _GRID))
    law = np.fft.rfft(np.concatenate(laws), 2 * _GRID, axis=1).prod(axis=0)
    below = np.cumsum(np.fft.irfft(law))
    wanted = _QUANTILE * below[-1]
    k = int(np.searchsorted(below, wanted))
    before = float(below[k - 1]) if k else 0.0
    return float(step * (k - 0.5 + (wanted - before) / (float(below[k]) - before)))
