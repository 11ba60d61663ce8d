"""Bounds where rows of a cluster may share a shock: slow obvious sums over rows.

The rule is that of `safecal.inference.clustered`, written down once more without any of its shortcuts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rows import Rows
from scipy import optimize, stats


@dataclass(frozen=True)
class ClusteredRows:
    """Rows of classes, the surprise seen in each, and its cluster."""

    rows: Rows
    seen: np.ndarray
    codes: np.ndarray

    def tails(self, beta: float) -> tuple[float, float]:
        """Return the probabilities of a sum as large, and as small, under ``p_beta``."""
        log_partition, mean, variance, _ = self.rows.cumulants(beta)
        w, e, sd = self.rows.weight, self.seen - mean, np.sqrt(variance)
        q = -np.expm1(-log_partition)
        _, cluster = np.unique(self.codes, return_inverse=True)
        S, V, deviation, E = (np.bincount(cluster, x) for x in (w * e, w**2 * variance, w * sd, w**2 * e**2))
        C = deviation**2
        G = len(S)
        effective = C.sum() ** 2 / (C**2).sum()
        likely = correlation(S, V, C, E)

        def floor(chance: np.ndarray) -> float:
            shared = 1.0 if effective * rarest_half(chance, w * sd) < 5.0 else likely
            return float((V + shared * (C - V)).sum())

        above = max(G * S.var(ddof=1), floor(1.0 - q))
        below = max(G * S.var(ddof=1), (S**2).sum(), floor(q))
        df = effective - 1.0
        return float(stats.t.sf(S.sum() / math.sqrt(above), df)), float(stats.t.cdf(S.sum() / math.sqrt(below), df))

    def bound(self, alpha: float, side: int) -> float:
        """Return the largest (``side`` -1) or smallest temperature that is not ruled out; infinite where none is."""

        def beyond(log_beta: float) -> float:
            upper, lower = self.tails(math.exp(log_beta))
            return float(stats.norm.isf(lower if side < 0 else upper) - stats.norm.isf(alpha))

        start = -math.log(self.rows.temperature())
        for x in start + side * np.arange(0.05, 4.0, 0.05):
            if beyond(x) > 0.0:
                return math.exp(-optimize.brentq(beyond, x - side * 0.05, x, xtol=1e-12))
        return math.inf if side < 0 else 0.0


def correlation(S: np.ndarray, V: np.ndarray, C: np.ndarray, E: np.ndarray) -> float:
    """Return the correlation within clusters, plus two standard errors: the larger by two kinds of squares."""
    estimates = []
    for whole in (C - V, (C / V - 1.0) * E):
        rho = (S**2 - E).sum() / whole.sum()
        error = math.sqrt((((S**2 - E) - rho * whole) ** 2).sum() * len(S) / (len(S) - 1)) / whole.sum()
        estimates.append(rho + 2.0 * error)
    return min(max(*estimates, 0.0), 1.0)


def rarest_half(chance: np.ndarray, deviation: np.ndarray) -> float:
    """Return the mean chance where it is smallest: of the rows that hold half of all deviations, one cut in two."""
    half = deviation.sum() / 2.0
    if half == 0.0:
        return 1.0
    order = np.argsort(chance, kind="stable")
    parts = np.diff(np.minimum(np.cumsum(deviation[order]), half), prepend=0.0)
    return float(parts @ chance[order]) / half


def ecd_bounds(e: np.ndarray, v: np.ndarray, q: np.ndarray, w: np.ndarray, codes: np.ndarray, alpha: float,
               rarity: tuple[float, float] | None) -> tuple[float, float]:  # fmt: skip
    """Return bounds on the mean of ``e``; where rarity is not given, by its bound from sums."""
    m = (w * e).sum() / w.sum()
    S, W, V, C, E = (np.array([f(codes == k) for k in np.unique(codes)]) for f in (
        lambda i: (w * (e - m))[i].sum(),
        lambda i: w[i].sum(),
        lambda i: (w**2 * v)[i].sum(),
        lambda i: (w * np.sqrt(v))[i].sum() ** 2,
        lambda i: (w**2 * (e - m) ** 2)[i].sum(),
    ))  # fmt: skip
    G, effective = len(S), C.sum() ** 2 / (C**2).sum()
    if effective < 1.5:
        return -math.inf, math.inf
    likely = correlation(S, V, C, E)
    t = float(stats.t.isf(alpha, effective - 1.0))

    def floor(chance: np.ndarray, share: float | None) -> float:
        if share is None:
            weight = w * np.sqrt(v) / (w * np.sqrt(v)).sum()
            root = (weight * np.sqrt(chance)).sum()
            share = max(root - math.sqrt(max((weight * chance).sum() - root**2, 0.0)), 0.0) ** 2
        shared = 1.0 if effective * share < 5.0 else likely
        return float((V + shared * (C - V)).sum())

    surprise, rest = (None, None) if rarity is None else rarity
    above = max(G * S.var(ddof=1), floor(1.0 - q, rest))
    below = max(G * S.var(ddof=1), floor(q, surprise))

    def ruled_out(d: float) -> bool:
        """Tell whether a mean of ``m + d`` is."""
        return d * W.sum() > t * math.sqrt(max(below, ((S - d * W) ** 2).sum()))

    high = math.inf
    if ruled_out(1e6):
        low, far = 0.0, 1e6
        for _ in range(200):
            middle = (low + far) / 2.0
            low, far = (low, middle) if ruled_out(middle) else (middle, far)
        skew = (S**3).sum() / (S**2).sum() ** 1.5
        straight = 3.0 / skew * (np.cbrt(1.0 + skew * (-t - skew / 6.0)) - 1.0)  # Hall's transformation, undone
        high = m + max(far, -straight * math.sqrt(G * S.var(ddof=1)) / W.sum())
    return m - t * math.sqrt(above) / W.sum(), high
