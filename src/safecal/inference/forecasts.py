"""What forecasters look at beside ECD, with intervals: coverage, transform, scores, sharpness, bias and spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums import Tally
from .._sums.forecasts import LEVELS, DrawSums, ForecastSums, VectorSums
from .._types import FloatArray
from . import Interval
from .directions import Direction, least_of_largest

__all__ = ["Forecast", "Vector", "seldom_held"]

_WIDE, _SELDOM, _SURELY = 0.9, 0.8, 1e-3  # of outcomes that intervals hold: said, too few, and by chance with this


@final
@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the central interval of a level, or for vectors the ellipsoid, holds the outcome.

    Attributes
    ----------
    level : float
        How often it should.
    share : Interval
        How often it does, with its exact (Clopper-Pearson) interval.
    width, score : float
        Its mean width, and its mean interval score, in units of the outcome; smaller is better. NaN for vectors.
    """

    level: float
    share: Interval
    width: float
    score: float


@final
@dataclass(frozen=True, slots=True)
class Correlation:
    """How errors of two axes go together, beside what was stated.

    Attributes
    ----------
    axes : (int, int)
        The numbers of the two axes.
    stated : float
        The mean of the stated correlations.
    seen : Interval
        That of the errors; the intervals of all pairs hold together.
    """

    axes: tuple[int, int]
    stated: float
    seen: Interval


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """Forecasts of a vector by axis, by direction, and by pair of axes; intervals take errors as nearly normal.

    Attributes
    ----------
    bias, spread : tuple of Interval
        Of each axis, as in `Forecast`; the intervals of all axes hold together.
    largest, smallest : Direction
        The directions in which the stated spread is most too small, and most too large.
    correlations : tuple of Correlation
        Of each pair of axes.
    names : tuple of str
        What the axes are called, where they have names.

    Notes
    -----
    Errors are whitened by the Cholesky factor of what was stated. Directions are eigenvectors of the mean of their
    products, S. The largest eigenvalue of the products of n rows of d normal numbers has a known law (Tracy and Widom,
    `directions.least_of_largest`), which bounds the largest factor from below. The largest singular value is at most
    ``sqrt n + sqrt d + t``, and the smallest at least ``sqrt n - sqrt d - t``, but for a chance of ``exp(-t**2 / 2)``
    each (Davidson and Szarek), which gives the other bounds; all directions lie within them at once, and the one that
    was picked, too. Where errors vary more than normal ones, n counts for so much less.
    """

    bias: tuple[Interval, ...]
    spread: tuple[Interval, ...]
    largest: Direction
    smallest: Direction
    correlations: tuple[Correlation, ...]
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, sums: VectorSums, tally: Tally, n: float, level: float) -> Self:
        """Read it off the sums of ``n`` rows of equal weight."""
        clustered = tally.clusters is not None
        white, errors, stated = (sums.mean(name) for name in ("white", "errors", "stated"))
        d = len(white)
        values, vectors = np.linalg.eigh(white)
        values = np.maximum(values, 0.0)
        normal = 2.0 * float(values @ values)
        varies = float(sums.sums[2] / sums.sums[0]) - float(np.trace(white)) ** 2
        worth = n / max(varies / normal, 1.0) if normal > 0.0 else n  # rows of normal errors that say as much
        error = (1.0 - level) / 2.0
        assert tally.axes is not None
        moments = [
            _bias_and_spread(float(shift), float(second), worth, error / d, clustered)
            for shift, second in zip(tally.axes.shift, np.diagonal(errors), strict=True)
        ]
        reach = (math.sqrt(d) + math.sqrt(-2.0 * math.log(error))) / math.sqrt(worth)
        along = sums.mean("factor") @ vectors

        def direction(k: int) -> Direction:
            factor, sign = math.sqrt(values[k]), 1.0 if along[np.abs(along[:, k]).argmax(), k] >= 0.0 else -1.0
            low, high = factor / (1.0 + reach), factor / (1.0 - reach) if reach < 1.0 else math.inf
            if k == d - 1:
                low = factor / math.sqrt(least_of_largest(worth, d, error))
            ends = (
                (0.0, math.inf, level, "none: rows depend on each other")
                if clustered
                else (low, high, level, "Tracy-Widom" if k == d - 1 else "Davidson-Szarek")
            )
            return Direction(Interval(factor, *ends), tuple((sign * along[:, k]).tolist()), tally.class_names)

        pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
        with np.errstate(all="ignore"):
            scale = np.sqrt(np.diagonal(errors))
            seen_correlations, alike = errors / np.outer(scale, scale), (1.0 + stated**2) / (1.0 + sums.mean("stated2"))

        def correlation(pair: tuple[int, int]) -> Correlation:
            rows, value = worth * float(alike[pair]), float(seen_correlations[pair])
            seen = _correlation_interval(value, rows, error / len(pairs), level, clustered)
            return Correlation(pair, float(stated[pair]), seen)

        bias, spread = (tuple(replace(pair[k], level=level) for pair in moments) for k in (0, 1))
        correlations = tuple(map(correlation, pairs))
        return cls(bias, spread, direction(d - 1), direction(0), correlations, tally.class_names)

    @property
    def farthest(self) -> Correlation | None:
        """The pair of axes whose correlation is shown to be farthest from what was stated; None where none is."""
        shown = [c for c in self.correlations if not c.seen.low <= c.stated <= c.seen.high]
        return max(shown, key=lambda c: abs(c.seen.value - c.stated), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        content: dict[str, Any] = {
            "axes": [{"bias": b.to_dict(), "spread": s.to_dict()} for b, s in zip(self.bias, self.spread, strict=True)]
        }
        for name in ("largest", "smallest"):
            direction: Direction = getattr(self, name)
            content[name] = {"factor": direction.factor.to_dict(), "along": list(direction.along)}
        content["correlations"] = [
            {"axes": list(c.axes), "stated": c.stated, "seen": c.seen.to_dict()} for c in self.correlations
        ]
        return content


@final
@dataclass(frozen=True, slots=True)
class Forecast:
    """What forecasters look at beside ECD, of forecasts of a number, or of a vector with up to 16 components.

    Attributes
    ----------
    coverage : tuple of Coverage
        Of central intervals of 50, 80, 90 and 95 %.
    crps : float
        Mean continuous ranked probability score, in units of the outcome; smaller is better. NaN for vectors.
    sharpness : float
        Mean standard deviation of the forecasts; NaN for vectors.
    bias : Interval
        Mean of outcome minus forecast, in units of the stated spread; 0 is right. NaN for vectors: each axis has one.
    spread : Interval
        How many times the stated standard deviations are too small: the root of the mean squared error in their units.
    ranks : ndarray of shape (40,)
        Share of the rows in each cell of the probability integral transform; all are 1/40 for a right forecast.
    band : (float, float)
        Between which 95 % of those shares lie for a right forecast, each by itself.
    vector : Vector or None
        Of Gaussian vectors, the same by axis, by direction, and by pair of axes.
    axes : tuple of Forecast
        Of draws of vectors, the same of each axis, as forecasts of a number; their intervals hold together.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> y_true = 1.5 * np.random.default_rng(0).normal(size=4000)
    >>> forecast = safecal.gaussian(y_true, np.zeros(4000), std=1.0).evaluate().forecast
    >>> round(forecast.spread.value, 1), round(forecast.coverage[2].share.value, 2)
    (1.5, 0.73)
    """

    coverage: tuple[Coverage, ...]
    crps: float
    sharpness: float
    bias: Interval
    spread: Interval
    ranks: FloatArray
    band: tuple[float, float]
    vector: Vector | None = None
    axes: tuple[Forecast, ...] = ()

    @classmethod
    def of(cls, tally: Tally, level: float) -> Self | None:
        """Read it off the sums; None where there are none. Rows are taken as independent."""
        if tally.forecast is None or not tally.forecast.sums[0] > 0.0:
            return None
        return cls._of_sums(tally.forecast, tally, level)

    @classmethod
    def _of_sums(cls, sums: ForecastSums | VectorSums | DrawSums, tally: Tally, level: float) -> Self:
        weight, square = (float(x) for x in sums.sums[:2])
        n = weight * weight / square
        clustered = tally.clusters is not None
        alpha = 0.5 * (1.0 - level)
        shares = [_coverage_interval(sums.held(at) / weight, n, alpha, clustered) for at in LEVELS]
        cell = 1.0 / len(sums.ranks)
        ends = special.bdtrik([alpha, 1.0 - alpha], n, cell) / n if n < 1e5 else np.array([cell, cell])
        if n >= 1e5:
            ends += np.array([-1.0, 1.0]) * special.ndtri(1.0 - alpha) * math.sqrt(cell * (1.0 - cell) / n)
        transform = sums.ranks / weight, (float(ends[0]), float(ends[1]))
        if isinstance(sums, VectorSums | DrawSums):
            held = tuple(Coverage(at, share, math.nan, math.nan) for at, share in zip(LEVELS, shares, strict=True))
            none = Interval(math.nan, math.nan, math.nan, level, "none: a vector has one for each axis")
            if isinstance(sums, DrawSums):
                axis_level = 1.0 - (1.0 - level) / len(sums.axes)  # so that all axes hold together
                axes = tuple(
                    replace(
                        cls._of_sums(axis, tally, axis_level),
                        spread=_spread_of_draws(sums, k + 1, n, axis_level, clustered),
                    )
                    for k, axis in enumerate(sums.axes)
                )
                whole = _spread_of_draws(sums, 0, n, level, clustered)
                return cls(held, math.nan, math.nan, none, whole, *transform, axes=axes) if len(axes) > 1 else axes[0]
            vector = Vector.of(sums, tally, n, level)
            return cls(held, math.nan, math.nan, none, _overall_spread(sums, n, alpha, clustered), *transform, vector)
        widths, scores = (sums.at_levels(part).tolist() for part in (0, 1))
        coverage = tuple(Coverage(*at_level) for at_level in zip(LEVELS, shares, widths, scores, strict=True))
        bias, spread = _bias_and_spread(sums.mean("error"), sums.mean("error2"), n, alpha, clustered)
        return cls(coverage, sums.mean("crps"), sums.mean("spread"), bias, spread, *transform)

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
        content |= {"ranks": self.ranks.tolist(), "said": self.said}
        if self.axes:
            content["axes"] = [axis.to_dict() for axis in self.axes]
        return documents.document(
            "forecast", content if self.vector is None else content | {"vector": self.vector.to_dict()}
        )


def seldom_held(tally: Tally) -> float:
    """Return the share of outcomes that intervals of 90 % of a density's own draws hold, if it is below 80 %; else NaN.

    A log-density that is flat where it should fall shows no surprise. Draws tell: a right density has exactly 90 %, and
    one whose ECD is at the limit about 87 %.
    """
    sums = tally.forecast
    if tally.family != "density" or sums is None or not sums.sums[0] > 0.0:
        return math.nan
    weight, square = (float(x) for x in sums.sums[:2])
    held = sums.held(_WIDE) / weight
    if tally.clusters is not None:
        parts = tally.clusters.column("weight")
        weight, square = float(parts.sum()), float(parts @ parts)
    n = weight * weight / square
    return held if held < _SELDOM and special.bdtr(np.floor(held * n), round(n), _WIDE) < _SURELY else math.nan


def _coverage_interval(share: float, n: float, alpha: float, clustered: bool) -> Interval:
    level = 1.0 - 2.0 * alpha
    if clustered:
        return Interval(share, 0.0, 1.0, level, "none: rows depend on each other")
    inside = share * n
    low = 0.0 if inside <= 0.0 else float(special.betaincinv(inside, n - inside + 1.0, alpha))
    high = 1.0 if inside >= n else float(special.betaincinv(inside + 1.0, n - inside, 1.0 - alpha))
    return Interval(share, low, high, level, "Clopper-Pearson")


def _bias_and_spread(mean: float, second: float, n: float, alpha: float, clustered: bool) -> tuple[Interval, Interval]:
    """Return bias and spread; the interval of the latter takes errors as normal."""
    level, root = 1.0 - 2.0 * alpha, math.sqrt(second)
    if clustered or n < 2.0:
        method = "none: rows depend on each other" if clustered else "none: one row"
        return Interval(mean, -math.inf, math.inf, level, method), Interval(root, 0.0, math.inf, level, method)
    reach = -float(special.stdtrit(n - 1.0, alpha)) * math.sqrt(max(second - mean * mean, 0.0) / (n - 1.0))
    low, high = (math.sqrt(n * second / float(special.chdtri(n, p))) for p in (alpha, 1.0 - alpha))
    return Interval(mean, mean - reach, mean + reach, level, "t"), Interval(root, low, high, level, "chi-square")


def _overall_spread(sums: VectorSums, n: float, alpha: float, clustered: bool) -> Interval:
    """Return the root of NEES over the dimension; its interval takes errors as normal."""
    second = float(np.trace(sums.mean("white"))) / sums.matrices.shape[1]
    if clustered:
        return Interval(math.sqrt(second), 0.0, math.inf, 1.0 - 2.0 * alpha, "none: rows depend on each other")
    numbers = n * sums.matrices.shape[1]
    low, high = (math.sqrt(numbers * second / float(special.chdtri(numbers, p))) for p in (alpha, 1.0 - alpha))
    return Interval(math.sqrt(second), low, high, 1.0 - 2.0 * alpha, "chi-square")


def _spread_of_draws(sums: DrawSums, place: int, n: float, level: float, clustered: bool) -> Interval:
    """Return how much farther outcomes lie than draws; a t interval of the log of the ratio, for draws of any shape."""
    distance, own, distance2, own2, both, wide = (sums.distances[place] / sums.sums[0]).tolist()
    ratio = max(distance / own, 0.0)
    root = math.sqrt(ratio)
    if clustered or n < 2.0 or root == 0.0:
        method = "none: rows depend on each other" if clustered else "none: too few rows"
        return Interval(root, 0.0, math.inf, level, method)
    varies = distance2 - 2.0 * ratio * both + ratio * ratio * own2
    # Never narrower than draws themselves vary: of heavy tails, few outcomes may have shown nothing yet.
    error = math.sqrt(max(varies, ratio * ratio * (wide - own * own), 0.0) / (n - 1.0)) / distance
    reach = math.exp(min(0.5 * float(special.stdtrit(n - 1.0, 0.5 + 0.5 * level)) * error, 700.0))
    return Interval(root, root / reach, root * reach, level, "t of the log")


def _correlation_interval(value: float, n: float, alpha: float, level: float, clustered: bool) -> Interval:
    """Return a correlation with its interval, by the transformation of Fisher."""
    if clustered or not n > 4.0 or math.isnan(value):
        method = "none: rows depend on each other" if clustered else "none: too few rows"
        return Interval(value, -1.0, 1.0, level, method)
    middle = math.atanh(min(max(value, -1.0 + 1e-15), 1.0 - 1e-15))
    reach = float(special.ndtri(1.0 - alpha)) / math.sqrt(n - 3.0)
    return Interval(value, math.tanh(middle - reach), math.tanh(middle + reach), level, "Fisher")
