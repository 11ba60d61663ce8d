"""The ECE that chance alone gives.

A calibrated model has an ECE above 0: each bin shows the noise of its outcomes. Under calibration the gap of a bin is a
sum of independent centred Bernoulli terms, so its law is known. It is listed where the bin holds few rows, drawn where
few of many rows surprise, and normal where the variance is that of 25 tosses or more.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from ._types import AnyArray, FloatArray, IndexArray
from .inference.tails import pearson3_quantile

__all__ = ["ENOUGH", "Rows", "Sums", "ece_of_chance", "null_ece"]

ENOUGH = 25.0  # variance of a gap, in units of a squared weight, from which its law is taken as normal
_QUANTILE = 0.95
_LISTED = 1024  # rows of a bin whose law is listed
_DENSE = 128  # rows that are drawn one by one, at a time
_DRAWS = 10_000
_ELEMENTS = 1_000_000  # bins times draws, at most; never fewer than _FEWEST draws
_FEWEST = 1_000


class Sums(NamedTuple):
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


class Rows(NamedTuple):
    """Rows of sparse bins."""

    bin: IndexArray
    predicted: FloatArray
    rare: FloatArray  # the smaller of p and 1 - p
    weight: FloatArray


def null_ece(s: Sums, kept: Rows, rng: np.random.Generator) -> tuple[float, float]:
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
        mine = kept.bin == k
        rows = Rows(*(column[mine] for column in kept))
        if len(rows.weight) <= _LISTED and rows.weight.min() == rows.weight.max():
            sizes, mass = _listed(rows.predicted)
            mean += rows.weight[0] * float(np.dot(sizes, mass))
            pick = np.searchsorted(np.cumsum(mass), rng.random(draws), side="right")
            drawn += rows.weight[0] * sizes[np.minimum(pick, len(sizes) - 1)]
        else:
            found = _drawn(rows, draws, rng)
            mean += float(found.mean())
            drawn += found
    return float(mean), float(np.quantile(drawn, _QUANTILE, method="inverted_cdf"))


def _listed(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the absolute gaps that tosses with chances ``p`` can give, and their probabilities (Poisson-binomial)."""
    mass = np.zeros(len(p) + 1)
    mass[0] = 1.0
    for k, chance in enumerate(p.tolist()):
        mass[1 : k + 2] = mass[1 : k + 2] * (1.0 - chance) + mass[: k + 1] * chance
        mass[0] *= 1.0 - chance
    return np.abs(np.arange(len(p) + 1) - p.sum()), mass


def _drawn(rows: Rows, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the absolute gap: the rows that matter most one by one, until the law of the rest is easy."""
    step = rows.weight * np.where(rows.predicted > 0.5, -1.0, 1.0)
    noise = rows.weight**2 * rows.rare * (1.0 - rows.rare)
    order = np.argsort(-noise)
    out = np.zeros(draws)
    while order.size:
        left = noise[order]
        if order.size > _DENSE:
            if left.sum() ** 2 >= ENOUGH * np.dot(left, rows.weight[order] ** 2):
                out += math.sqrt(left.sum()) * rng.standard_normal(draws)
                break
            if rows.rare[order].sum() <= 2.0 * ENOUGH:
                out += _surprises(rows.rare[order], step[order], draws, rng)
                break
        mine, order = order[:_DENSE], order[_DENSE:]
        out += (rng.random((draws, len(mine))) < rows.rare[mine]) @ step[mine] - np.dot(step[mine], rows.rare[mine])
    return np.abs(out)


def _surprises(rare: FloatArray, step: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw a sum over many rows that rarely surprise, touching only those that do.

    They are the rows on which a point of a Poisson process falls.
    """
    edges = np.concatenate([[0.0], np.cumsum(-np.log1p(-rare))])
    draw = np.repeat(np.arange(draws), rng.poisson(edges[-1], draws))
    row = np.searchsorted(edges, rng.uniform(0.0, edges[-1], len(draw)), side="right") - 1
    size = len(rare)
    first = np.unique(draw * size + np.minimum(row, size - 1))  # a row surprises once
    found: FloatArray = np.bincount(first // size, weights=step[first % size], minlength=draws).astype(np.float64)
    return found - float(np.dot(step, rare))


_LAW = 128  # gaps that a sparse bin can show, around the expected one
_ANGLES = 2.0 * math.pi * np.arange(_LAW // 2 + 1) / _LAW
_TURNS, _SINES = 1.0 - np.cos(_ANGLES), np.sin(_ANGLES)
_VANISHED = 36.0  # minus the logarithm of what is as good as nothing
_FEW_VALUES = 20_000  # of a sum over bins, which are listed
_GRID = 4096  # steps of the law of a sum over bins
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
    sparse = [
        _transformed(p[index == k], n[index == k]) for k in np.flatnonzero((noise > 0.0) & (noise < ENOUGH)).tolist()
    ]
    means = [float(sizes @ mass) for sizes, mass in sparse]
    squares = [float((sizes - mean) ** 2 @ mass) for (sizes, mass), mean in zip(sparse, means, strict=True)]
    mean = _HALF_NORMAL[0] * float(normal.sum()) + sum(means)
    variance = _HALF_NORMAL[1] * float((normal**2).sum()) + sum(squares)
    if variance == 0.0:
        return mean, mean
    if not sparse and len(normal) >= _MANY:
        return mean, mean + pearson3_quantile(_QUANTILE, variance, _HALF_NORMAL[2] * float((normal**3).sum()))
    listed = None if len(normal) else _listed_quantile(sparse)
    return mean, _convolved(normal, sparse, mean + 12.0 * math.sqrt(variance)) if listed is None else listed


def _transformed(p: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the absolute gaps that tosses can give, and their probabilities, by a Fourier transform of their law."""
    expected = float(p @ n)
    base = math.floor(expected) - _LAW // 2
    seen = _TURNS * float(n @ (p * (1.0 - p))) <= _VANISHED  # beyond, the transform is 0 to all digits
    angle, real, imaginary = _ANGLES[seen], 1.0 - np.multiply.outer(_TURNS[seen], p), np.multiply.outer(_SINES[seen], p)
    # In real numbers: NumPy takes logarithms of complex ones slowly, and their products on threads.
    with np.errstate(divide="ignore"):  # a chance of one half has no mass at half a turn
        size = 0.5 * (np.log(real * real + imaginary * imaginary) @ n)
    phase = np.arctan2(imaginary, real) @ n - angle * base
    mass = np.maximum(np.fft.irfft(np.exp(size) * np.exp(-1j * phase), _LAW), 0.0)
    mass[mass < 1e-12] = 0.0  # rounding, which would lie far out
    return np.abs(base + np.arange(_LAW) - expected), mass / mass.sum()


def _listed_quantile(sparse: list[tuple[FloatArray, FloatArray]]) -> float | None:
    """Return the quantile of a sum of absolute gaps that has few values; None where they are too many to list."""
    support, mass = np.zeros(1), np.ones(1)
    for sizes, chances in sparse:
        there = chances > 0.0
        if len(support) * int(there.sum()) > _FEW_VALUES:
            return None
        support = np.add.outer(support, sizes[there]).ravel()
        mass = np.multiply.outer(mass, chances[there]).ravel()
    order = np.argsort(support)
    below = np.cumsum(mass[order])
    return float(support[order][np.searchsorted(below, _QUANTILE * below[-1])])


def _convolved(normal: FloatArray, sparse: list[tuple[FloatArray, FloatArray]], most: float) -> float:
    """Return the quantile of a sum of absolute gaps, on a grid from 0 to ``most``."""
    step = most / _GRID
    edges = step * (np.arange(_GRID + 1) - 0.5)
    law = np.ones(_GRID // 2 + 1, dtype=np.complex128)  # beyond ``most`` there is nothing that could come round
    for spread in normal.tolist():
        law *= np.fft.rfft(np.diff(special.erf(np.maximum(edges, 0.0) / (spread * math.sqrt(2.0)))))
    for sizes, mass in sparse:
        place = np.minimum(sizes / step, _GRID - 2.0)
        low = np.floor(place).astype(np.intp)
        part = place - low
        cells = np.bincount(low, weights=mass * (1.0 - part), minlength=_GRID)
        cells += np.bincount(low + 1, weights=mass * part, minlength=_GRID)
        law *= np.fft.rfft(cells)
    below = np.cumsum(np.fft.irfft(law))
    return step * float(np.searchsorted(below, _QUANTILE * below[-1]))
