"""Directions of a state: along which its errors are larger than it says, with bounds that hold for all of them at once.

NEES adds up all directions, and errors that are too large along one of them hide behind others that are too small.
Three places are looked at. The first is the worst of all fixed directions: the eigenvector of the mean product of
whitened errors. The others turn with the stated covariance: where it is long, and where it is short
(`_sums.directions`). They see what a fixed direction cannot: a sensor that is wrong across its line of sight, say,
while that line turns.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np
from scipy import special

from .._sums.directions import LENGTHS, DirectionSums, axis_name
from .._sums.tally import Tally
from .._types import FloatArray
from .ranges import SHOWN, SUSPECTED, dependence
from .results import Interval

__all__ = [
    "Direction",
    "JudgedDirection",
    "has_directions",
    "judged_directions",
    "least_of_largest",
    "shows_directions",
]

_WRITTEN, _MOST = 0.2, 3  # the least correlation with an axis that is written, and of how many
_ALONE = 0.9  # a correlation with one axis that is as good as 1
_SHARE = 0.5 * SHOWN  # of what the level leaves; ranges of states with directions have the other half
_FEWEST = 2.0  # rows, or clusters: fewer bound nothing
_TWICE = 2.0  # squared errors over what was stated that SAFE claims to have looked for
# The law of Tracy and Widom for real matrices is nearly that of a gamma variable: shape, scale, shift (Chiani 2014).
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801


@final
@dataclass(frozen=True, slots=True)
class Direction:
    """A direction of the whitened errors: the one in which spread is most, or least, too small.

    Attributes
    ----------
    factor : Interval
        How many times the stated spread is too small there; 1 is right.
    along : tuple of float
        Its correlation with each axis, by what was stated: 1 where it is that axis.
    names : tuple of str
        What the axes are called, where they have names.
    """

    factor: Interval
    along: tuple[float, ...]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _named(self.along, self.names)


@final
@dataclass(frozen=True, slots=True)
class JudgedDirection:
    """A direction that a verdict looks at.

    Attributes
    ----------
    name : str
        What it is called: ``"axis 1"``.
    ecd : Interval
        ECD along it: half of what squared errors exceed the stated variance by, in its units.
    at_least : float
        A lower bound on it that is less firm: where it is above 0, over-confidence may be suspected.
    everywhere : float
        ECD of the mean direction.
    """

    name: str
    ecd: Interval
    at_least: float
    everywhere: float


class _Errors(NamedTuple):
    """Whitened errors in their principal directions, the smallest first: mean squares, and how much these vary."""

    values: FloatArray
    vectors: FloatArray
    varies: FloatArray  # variance of the squares, over that of normal errors; at least 1

    @classmethod
    def of(cls, sums: DirectionSums) -> Self:
        """Read them off the sums."""
        values, vectors = np.linalg.eigh(sums.mean("white"))
        values, fourth = np.maximum(values, 0.0), sums.mean("fourth")
        # The mean of NEES times a square is at least that of its fourth power and of what other directions, on average,
        # multiply it with: more only where large errors come together, and then directions vary with NEES.
        with np.errstate(all="ignore"):
            varies = (np.vecdot(vectors.T, vectors.T @ fourth) - values * values.sum()) / (2.0 * values**2)
        return cls(values, vectors, np.fmax(varies, 1.0))


def has_directions(tally: Tally) -> bool:
    """Tell whether directions of its states are known, and judged."""
    return tally.directions is not None and tally.directions.rows > 0.0


def least_of_largest(n: float, d: int, alpha: float) -> float:
    """Return how many times too large the largest mean square of n rows in d directions may look, by chance alone.

    It is exceeded with probability ``alpha``, about, by the largest eigenvalue of a Wishart matrix over its n, centred
    and scaled as Johnstone does, with halves taken off; in tests it is, in .2 to .6 % for .5 %, from five rows on.
    """
    a, b = math.sqrt(max(n, 1.0) - 0.5), math.sqrt(d - 0.5)
    law: float = _SCALE * float(special.gammaincinv(_SHAPE, 1.0 - alpha)) - _SHIFT
    spread = math.cbrt(1.0 / a + 1.0 / b)
    return (a + b) * (a + b + spread * law) / max(n, 1.0)


def shows_directions(tally: Tally, level: float) -> bool:
    """Tell whether rows are enough to suspect, as often as not, a direction in which squared errors are twice as large.

    Of rows that are few beside its axes, a right state has a direction that looks as bad as that.
    """
    sums = tally.directions
    if sums is None or not has_directions(tally):
        return tally.n - tally.summary.n_impossible > tally.dimension
    n, d = _rows(tally, sums)[1], sums.axes
    twice = _TWICE * (1.0 + d / n / (_TWICE - 1.0))  # the largest eigenvalue that is seen of such errors, on average
    return n > max(d, _FEWEST) and twice > least_of_largest(n, d, _error(SUSPECTED, level))


def _rows(tally: Tally, sums: DirectionSums) -> tuple[float, float]:
    """Return how many rows are taken to be independent by the firm bounds, and by those that are less firm."""
    if tally.clusters is None:
        return sums.rows, sums.rows
    parts = tally.clusters.column("weight")
    firm = min(sums.rows, float(parts.sum() ** 2 / (parts @ parts)))
    return firm, max(sums.rows / dependence(tally) ** 2, firm)


def _error(share: float, level: float) -> float:
    """Return the error of one of the places."""
    return min(share * (1.0 - level) / (1 + len(LENGTHS)), 0.5)


def judged_directions(tally: Tally, level: float) -> list[JudgedDirection]:
    """Return the worst of all fixed directions, and those that turn; none where directions are not known.

    Where rows come in clusters, the firm bounds take all rows of a cluster as one; those that are less firm take them
    to depend on each other as NEES does.
    """
    sums = tally.directions
    if sums is None or not has_directions(tally):
        return []
    firm, weak = _rows(tally, sums)
    error, weaker = _error(_SHARE, level), _error(SUSPECTED, level)
    everywhere = _nats(float(np.trace(sums.mean("white"))) / sums.axes)
    found = []
    for one in (_fixed(sums, tally.class_names, firm, weak, error, weaker), *_turning(sums, firm, weak, error, weaker)):
        value, low, high = map(_nats, (one.factor, one.low, one.high))
        ecd = Interval(value, low, high, 1.0 - 2.0 * error, "from products of errors")
        found.append(JudgedDirection(one.name, ecd, _nats(one.at_least), everywhere))
    return found


class _Bounded(NamedTuple):
    """A direction: how many times its mean squared error is what was stated, with bounds."""

    name: str
    factor: float
    low: float
    high: float
    at_least: float


def _fixed(
    sums: DirectionSums, names: tuple[str, ...], firm: float, weak: float, error: float, weaker: float
) -> _Bounded:
    """Bound the worst of all fixed directions."""
    found = _Errors.of(sums)
    worst, d = float(found.values[-1]), len(found.values)
    varies = float(found.varies[-1])

    def bound(n: float, alpha: float) -> float:
        return worst / least_of_largest(n / varies, d, alpha) if n / varies >= _FEWEST else 0.0

    reach = (math.sqrt(d) + math.sqrt(-2.0 * math.log(error))) / math.sqrt(max(firm / varies, 1e-9))
    high = worst / (1.0 - reach) ** 2 if reach < 1.0 else math.inf
    along = sums.mean("factor") @ found.vectors[:, -1]
    along *= 1.0 if along[np.abs(along).argmax()] >= 0.0 else -1.0
    return _Bounded(_named(tuple(along.tolist()), names), worst, bound(firm, error), high, bound(weak, weaker))


def _turning(sums: DirectionSums, firm: float, weak: float, error: float, weaker: float) -> list[_Bounded]:
    """Bound the directions in which a covariance is long, and short: a gamma law of the variance that is seen."""
    places = []
    for name, (mean, second) in zip(LENGTHS, (sums.along / sums.sums[0]).tolist(), strict=True):
        spread = max(second - mean * mean, 2.0 * mean * mean / sums.axes)

        def bound(n: float, alpha: float, mean: float = mean, spread: float = spread) -> float:
            freedom = 2.0 * mean * mean * n / spread if spread > 0.0 else 0.0
            return mean * freedom / float(special.chdtri(freedom, alpha)) if freedom > 0.0 and n >= _FEWEST else 0.0

        high = bound(firm, 1.0 - error) or math.inf
        called = f"the {name} axes of its covariance"
        places.append(_Bounded(called, mean, bound(firm, error), high, bound(weak, weaker)))
    return places


def _named(along: tuple[float, ...], names: tuple[str, ...]) -> str:
    """Name a direction by the axes that it goes along with most."""
    least = min(_WRITTEN, 0.5 * max(map(abs, along)))
    far = sorted((k for k in range(len(along)) if abs(along[k]) >= least), key=lambda k: -abs(along[k]))
    if len(far) > 2 * _MOST:
        return f"{len(far)} axes at once"
    parts = sorted(far[:_MOST])
    if len(parts) == 1 and abs(along[parts[0]]) >= _ALONE:
        return axis_name(names, parts[0])
    signed = " ".join(f"{'-' if along[k] < 0.0 else '+'} {abs(along[k]):.2f} {axis_name(names, k)}" for k in parts)
    return signed.removeprefix("+ ")


def _nats(factor: float) -> float:
    """Return the ECD of one dimension whose squared errors are so many times the stated variance."""
    return 0.5 * (factor - 1.0)
