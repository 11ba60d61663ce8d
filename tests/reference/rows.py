"""Tests, temperatures and bounds by slow obvious sums over rows: no cells, no nodes, no grid.

A row is the list of the sizes of its surprises: how much less likely than the likeliest each other outcome was. Under
``p_beta`` an outcome of size ``x`` has the odds ``exp(-beta x)`` against the likeliest one. ``seen`` is the weighted
sum of the sizes that happened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats


@dataclass(frozen=True)
class Rows:
    """Rows of classes: sizes (K - 1, n), infinite for impossible outcomes; weights; and the sum that was seen."""

    sizes: np.ndarray
    weight: np.ndarray
    seen: float

    def cumulants(self, beta: float | np.ndarray) -> np.ndarray:
        """Return log-partition, mean, variance and third cumulant of the surprise of each row, at its own beta."""
        x, odds = self._odds(beta)
        total = 1.0 + odds.sum(axis=0)
        p = odds / total
        mean = (p * x).sum(axis=0)
        centred = x - mean
        variance = (p * centred**2).sum(axis=0) + mean**2 / total
        third = (p * centred * centred**2).sum(axis=0) - mean * mean**2 / total
        return np.stack([np.log(total), mean, variance, third])

    def _odds(self, beta: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        possible = np.isfinite(self.sizes)
        x = np.where(possible, self.sizes, 0.0)
        return x, np.exp(-beta * x) * possible

    def expected(self, beta: float | np.ndarray) -> float:
        """Return the expected sum, each row at its own beta."""
        x, odds = self._odds(beta)
        return float((self.weight * (odds * x).sum(axis=0) / (1.0 + odds.sum(axis=0))).sum())

    def temperature(self) -> float:
        """Return the temperature at which the sum seen is the one expected."""
        low, high = -12.0, 12.0
        log_beta = optimize.brentq(lambda x: self.expected(math.exp(x)) - self.seen, low, high, xtol=1e-13, rtol=1e-14)
        return math.exp(-log_beta)

    def saddlepoint(self, beta: float) -> tuple[float, float]:
        """Return both tails of the weighted sum by Lugannani and Rice."""

        def mean(t: float) -> float:
            return self.expected(beta - t * self.weight)

        start = self.cumulants(beta)
        step = 2.0 * abs(self.seen - mean(0.0)) / float((self.weight**2 * start[2]).sum()) + 1e-12
        while mean(-step) > self.seen or mean(step) < self.seen:
            step *= 2.0
        t = optimize.brentq(lambda t: mean(t) - self.seen, -step, step, xtol=1e-14, rtol=1e-14)
        at = self.cumulants(beta - t * self.weight)
        variance = math.fsum(self.weight**2 * at[2])
        rise = t * self.seen - math.fsum(at[0] - start[0])
        r, u = math.copysign(math.sqrt(2.0 * max(rise, 0.0)), t), t * math.sqrt(variance)
        if abs(u) < 1e-3:
            skew = math.fsum(self.weight**3 * at[3]) / variance**1.5
            correction = skew * (u * u - 1.0) / 6.0
        else:
            correction = 1.0 / u - 1.0 / r
        density = math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
        return float(special.ndtr(-r)) + density * correction, float(special.ndtr(r)) - density * correction

    def listed(self, beta: float) -> tuple[float, float]:
        """Return both tails by listing every value of the sum; two classes, of which few rows or few values differ."""
        values, mass = np.zeros(1), np.ones(1)
        pairs, count = np.unique(np.stack([self.sizes[0], self.weight], axis=1), axis=0, return_counts=True)
        for (x, w), n in zip(pairs, count, strict=True):
            k = np.arange(n + 1)
            values = np.add.outer(values, k * (w * x)).ravel()
            mass = np.multiply.outer(mass, stats.binom.pmf(k, n, special.expit(-beta * x))).ravel()
            values, mass = values[mass > 1e-18], mass[mass > 1e-18]
        slack = 1e-9 * max(1.0, self.seen)
        return float(mass[values >= self.seen - slack].sum()), float(mass[values <= self.seen + slack].sum())

    def drawn(self, beta: float, draws: int, seed: int = 0) -> tuple[float, float]:
        """Return both tails by drawing the outcomes of all rows; two classes only."""
        rng = np.random.default_rng(seed)
        total = np.zeros(draws)
        for x, w in zip(self.sizes[0], self.weight, strict=True):
            total += w * x * (rng.random(draws) < special.expit(-beta * x))
        slack = 1e-9 * max(1.0, self.seen)
        return float((total >= self.seen - slack).mean()), float((total <= self.seen + slack).mean())

    def _beyond(self, log_beta: float, alpha: float, side: int, method: str = "saddlepoint") -> float:
        """Return how far a temperature is beyond the bound, as a normal deviate."""
        upper, lower = getattr(self, method)(math.exp(log_beta))
        tail = min(max(lower if side < 0 else upper, 1e-300), 1.0 - 1e-16)
        return float(stats.norm.isf(tail) - stats.norm.isf(alpha))

    def is_temperature(self, temperature: float, rel: float) -> bool:
        """Tell whether the temperature is within a relative error of this one, without looking for it."""
        low, high = temperature * (1.0 - rel), temperature * (1.0 + rel)
        return self.expected(1.0 / low) <= self.seen <= self.expected(1.0 / high)

    def is_bound(self, bound: float, alpha: float, side: int, rel: float) -> bool:
        """Tell whether the bound is within a relative error of this one, without looking for it."""
        below, above = (self._beyond(-math.log(bound * (1.0 + sign * rel)), alpha, side) for sign in (-1.0, 1.0))
        return below >= 0.0 >= above if side > 0 else below <= 0.0 <= above

    def bound(self, alpha: float, side: int, method: str = "saddlepoint") -> float:
        """Return the largest (``side`` -1: T above the estimate) or smallest temperature that is not ruled out."""

        def beyond(log_beta: float) -> float:
            return self._beyond(log_beta, alpha, side, method)

        start = -math.log(self.temperature())
        reach = 0.1
        while beyond(start + side * reach) < 0.0:
            reach *= 2.0
        return math.exp(-optimize.brentq(beyond, start, start + side * reach, xtol=1e-13, rtol=1e-13))


def two_classes(z: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Rows:
    """Return rows of log-odds."""
    w = np.ones(len(z)) if weight is None else weight
    size = np.abs(z)
    wrong = (z > 0.0) != (y > 0)
    return Rows(size[None, :], w, math.fsum((w * size)[wrong]))


def classes(z: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Rows:
    """Return rows of logits of several classes."""
    w = np.ones(len(z)) if weight is None else weight
    top = z.argmax(axis=1)
    sizes = z.max(axis=1, keepdims=True) - z
    others = np.array([np.delete(row, k) for row, k in zip(sizes, top, strict=True)])
    return Rows(others.T.copy(), w, math.fsum(w * sizes[np.arange(len(z)), y]))
