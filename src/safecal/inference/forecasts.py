"""What forecasters look at beside ECD, with intervals: coverage, transform, scores, sharpness, bias and spread."""

import math
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums.forecasts import LEVELS
from .._sums.tally import Tally
from .._types import FloatArray
from .results import Interval

__all__ = ["Coverage", "Forecast"]


@final
@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the central interval of a level holds the outcome.

    Attributes
    ----------
    level : float
        How often it is to.
    share : Interval
        How often it does, with its exact (Clopper-Pearson) interval.
    width, score : float
        Its mean width, and its mean interval score, in units of the outcome; smaller is better.
    """

    level: float
    share: Interval
    width: float
    score: float


@final
@dataclass(frozen=True, slots=True)
class Forecast:
    """What forecasters look at beside ECD, of forecasts of a number.

    Attributes
    ----------
    coverage : tuple of Coverage
        Of central intervals of 50, 80, 90 and 95 %.
    crps : float
        Mean continuous ranked probability score, in units of the outcome; smaller is better.
    sharpness : float
        Mean standard deviation of the forecasts.
    bias : Interval
        Mean of outcome less forecast, in units of the stated spread; 0 is right.
    spread : Interval
        How many times the stated standard deviations are too small: the root of the mean squared error in their units.
    ranks : ndarray of shape (40,)
        Share of the rows in each cell of the probability integral transform; all are 1/40 for a right forecast.
    band : (float, float)
        Between which 95 % of those shares lie for a right forecast, each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> y_true = 1.5 * np.random.default_rng(0).normal(size=4000)
    >>> found = safecal.gaussian(y_true, np.zeros(4000), std=1.0).evaluate().forecast
    >>> round(found.spread.value, 1), round(found.coverage[2].share.value, 2)
    (1.5, 0.73)
    """

    coverage: tuple[Coverage, ...]
    crps: float
    sharpness: float
    bias: Interval
    spread: Interval
    ranks: FloatArray
    band: tuple[float, float]

    @classmethod
    def of(cls, tally: Tally, level: float) -> Self | None:
        """Read it off the sums; None where outcomes are no single numbers. Rows are taken as independent."""
        sums = tally.forecast
        if sums is None or not sums.sums[0] > 0.0:
            return None
        weight, square = (float(x) for x in sums.sums[:2])
        n = weight * weight / square
        clustered = tally.clusters is not None
        alpha = 0.5 * (1.0 - level)
        widths, scores = sums.at_levels(0), sums.at_levels(1)
        coverage = tuple(
            Coverage(at, _share(sums.held(at) / weight, n, alpha, clustered), float(widths[k]), float(scores[k]))
            for k, at in enumerate(LEVELS)
        )
        mean, second = sums.mean("error"), sums.mean("error2")
        bias, spread = _moments(mean, second, n, alpha, clustered)
        cell = 1.0 / len(sums.ranks)
        ends = special.bdtrik([alpha, 1.0 - alpha], n, cell) / n if n < 1e5 else np.array([cell, cell])
        if n >= 1e5:
            ends += np.array([-1.0, 1.0]) * special.ndtri(1.0 - alpha) * math.sqrt(cell * (1.0 - cell) / n)
        band = (float(ends[0]), float(ends[1]))
        return cls(coverage, sums.mean("crps"), sums.mean("spread"), bias, spread, sums.ranks / weight, band)

    @property
    def said(self) -> str:
        """How many times standard deviations are too small or too large, in words."""
        factor = self.spread.value
        if math.isnan(factor):
            return "how wide its standard deviations should be cannot be told"
        side = "small" if factor > 1.0 else "large"
        if not 0.0 < factor < math.inf:
            return f"its standard deviations are far too {side}"
        if 0.995 < factor < 1.005:
            return "its standard deviations are about right"
        low, high = self.spread.low, self.spread.high
        if factor < 1.0:
            low, high = 1.0 / high, 1.0 / low if low else math.inf
        ends = f" ({low:.3g} to {high:.3g})" if math.isfinite(high) else ""
        return f"its standard deviations are {max(factor, 1.0 / factor):.3g} times too {side}{ends}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: documents.number(getattr(self, name)) for name in ("crps", "sharpness")}
        held = [
            {"level": c.level, "share": c.share.to_dict()}
            | {"width": documents.number(c.width), "score": documents.number(c.score)}
            for c in self.coverage
        ]
        content = {"coverage": held, **numbers, "bias": self.bias.to_dict(), "spread": self.spread.to_dict()}
        return documents.document("forecast", content | {"ranks": self.ranks.tolist(), "said": self.said})


def _share(share: float, n: float, alpha: float, clustered: bool) -> Interval:
    level = 1.0 - 2.0 * alpha
    if clustered:
        return Interval(share, 0.0, 1.0, level, "none: rows depend on each other")
    inside = share * n
    low = 0.0 if inside <= 0.0 else float(special.betaincinv(inside, n - inside + 1.0, alpha))
    high = 1.0 if inside >= n else float(special.betaincinv(inside + 1.0, n - inside, 1.0 - alpha))
    return Interval(share, low, high, level, "Clopper-Pearson")


def _moments(mean: float, second: float, n: float, alpha: float, clustered: bool) -> tuple[Interval, Interval]:
    """Return bias and spread; the interval of the latter takes errors as normal."""
    level, root = 1.0 - 2.0 * alpha, math.sqrt(second)
    if clustered or n < 2.0:
        why = "none: rows depend on each other" if clustered else "none: one row"
        return Interval(mean, -math.inf, math.inf, level, why), Interval(root, 0.0, math.inf, level, why)
    reach = -float(special.stdtrit(n - 1.0, alpha)) * math.sqrt(max(second - mean * mean, 0.0) / (n - 1.0))
    low, high = (math.sqrt(n * second / float(special.chdtri(n, p))) for p in (alpha, 1.0 - alpha))
    return Interval(mean, mean - reach, mean + reach, level, "t"), Interval(root, low, high, level, "chi-square")
