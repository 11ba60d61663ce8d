"""Bounds on ECD from sums alone, at every level."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from .._types import FloatArray
from ..summary import Summary
from .curves import Curve
from .results import Interval
from .skewed import Spread, summary_spread
from .tails import pearson3_quantile

__all__ = ["Bounds", "bounds_from_sums", "inverse"]

_GRID = tuple(0.25 * k for k in range(15))  # normal scores from 0 to 3.5
_ALPHAS = tuple(float(special.ndtr(-z)) for z in _GRID)
_ALPHAS_ABOVE = tuple(float(special.ndtr(z)) for z in _GRID)
_MANY = 1e6  # expected surprises from which a Poisson law is a normal one


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Estimates of ECD and of the inverse temperature, with one-sided bounds at every level."""

    ecd: float
    ecd_low: Curve
    ecd_high: Curve
    ecd_method: str
    beta: float
    beta_low: Curve
    beta_high: Curve
    beta_method: str

    def interval(self, level: float) -> Interval:
        """Return the interval for ECD."""
        alpha = (1.0 - level) / 2.0
        return Interval(self.ecd, self.ecd_low.at(alpha), self.ecd_high.at(alpha), level, self.ecd_method)

    def temperature(self, level: float) -> Interval:
        """Return the interval for the temperature the data ask for."""
        alpha = (1.0 - level) / 2.0
        low, high = inverse(self.beta_high.at(alpha)), inverse(self.beta_low.at(alpha))
        return Interval(inverse(self.beta), low, high, level, self.beta_method)


def inverse(beta: float) -> float:
    """Return the temperature of an inverse temperature."""
    return math.inf if beta == 0.0 else 0.0 if beta == math.inf else 1.0 / beta


def _outer(choose: Callable[[float, float], float], a: Curve, b: Curve) -> Curve:
    return Curve(_GRID, tuple(map(choose, _on_grid(a), _on_grid(b))))


def _on_grid(curve: Curve) -> tuple[float, ...]:
    if curve.scores == _GRID:
        return curve.bounds
    if len(curve.bounds) == 1:
        return curve.bounds * len(_GRID)
    return tuple(curve.at(alpha) for alpha in _ALPHAS)


def _empirical(s: Summary, units: FloatArray | None) -> tuple[Curve, Curve, str]:
    """Return bounds from the spread of the rows, or of clusters given by their sums of excess and of weight."""
    if s.weight_impossible > 0.0:
        certain = Curve((0.0,), (math.inf,))
        return certain, certain, "an impossible outcome happened"
    if units is None:
        spread = summary_spread(s)
    else:
        parts = (units[:, 0] - s.ecd * units[:, 1]) / s.weight
        spread = Spread.of(parts, float(np.abs(units[:, 0] / s.weight).max()))
    if spread is None or spread.error == 0.0:
        flat = Curve((0.0,), (s.ecd,))
        return flat, flat, "no spread"
    ends = [spread.interval(s.ecd, 1.0 - 2.0 * float(special.ndtr(-z))) for z in _GRID]
    low, high = (Curve(_GRID, tuple(end[j] for end in ends)) for j in (0, 1))
    return low, high, "skewness-corrected t" if units is None else f"skewness-corrected t on {len(units)} clusters"


def bounds_from_sums(s: Summary, units: FloatArray | None = None) -> Bounds:
    """Compute the bounds from sums alone: skewness-corrected, with a Poisson bound where surprises are few.

    Both ends reach at least as far as the spread that the model itself claims, so a row alone proves nothing.
    ``units`` are the sums of clusters, as `cluster_sums` gives them.

    If surprises of one size ``L`` come at a small rate, the third cumulant over the variance is ``L`` and the variance
    over its square the number expected. The number seen follows, and with it the bound on a Poisson mean.
    """
    nothing = Curve((0.0,), (math.nan,))
    if s.n == 0:
        return Bounds(math.nan, nothing, nothing, "no rows", math.nan, nothing, nothing, "no rows")
    if s.weight_impossible > 0.0:
        certain = Curve((0.0,), (math.inf,))
        return Bounds(math.inf, certain, certain, "an impossible outcome happened", math.nan, nothing, nothing, "none")
    low, high, method = _empirical(s, units)
    variance, third = s.sum_varentropy_weight2, s.sum_third_cumulant_weight3
    if variance > 0.0:
        spread = variance + s.sum_numerical_variance_weight2
        down, up = ([pearson3_quantile(q, spread, third) for q in tail] for tail in (_ALPHAS, _ALPHAS_ABOVE))
        low = _outer(min, low, Curve(_GRID, tuple(s.ecd - x / s.weight for x in up)))
        high = _outer(max, high, Curve(_GRID, tuple(s.ecd - x / s.weight for x in down)))
    if s.sum_predicted is not None:  # no outcome of a classifier has a surprisal below 0
        low = Curve(low.scores, tuple(max(bound, -s.mean_entropy) for bound in low.bounds))
    if variance > 0.0 and third > 0.0:
        size = third / variance
        expected = variance / size / size
        if expected < _MANY:
            seen = max(s.sum_excess / size + expected, 0.0)
            most = special.gammaincinv(seen + 1.0, np.array(_ALPHAS_ABOVE))
            rare = Curve(_GRID, tuple(((most - expected) * size / s.weight).tolist()))
            high = _outer(max, high, rare)
    beta, beta_low, beta_high = _one_step(s, units)
    return Bounds(s.ecd, low, high, f"{method}, from sums", beta, beta_low, beta_high, "one step, from sums")


def _one_step(s: Summary, units: FloatArray | None) -> tuple[float, Curve, Curve]:
    """Return the inverse temperature after one Newton step from 1, with normal bounds."""
    if s.sum_varentropy == 0.0:
        nothing = Curve((0.0,), (math.nan,))
        return math.nan, nothing, nothing
    beta = 1.0 - s.sum_excess / s.sum_varentropy
    variance = s.sum_varentropy_weight2
    if units is not None:
        variance = max(variance, len(units) * float(units[:, 0].var(ddof=1)))
    error = math.sqrt(variance) / s.sum_varentropy
    low = Curve(_GRID, tuple(max(beta - z * error, 0.0) for z in _GRID))
    high = Curve(_GRID, tuple(max(beta + z * error, 0.0) for z in _GRID))
    return max(beta, 0.0), low, high
