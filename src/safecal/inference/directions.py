"""Axes and directions of a state: along which its errors are off to one side, or larger than it says.

Axes are looked at one by one. Bounds on directions hold for all of them at once.

NEES adds up all directions, and errors that are too large along one of them hide behind others that are too small.
Three places are looked at. The first is the worst of all fixed directions: the eigenvector of the mean product of
whitened errors. The others turn with the stated covariance: where it is long, and where it is short
(`_sums.causes`). They see what a fixed direction cannot: a sensor that is wrong across its line of sight, say,
while that line turns.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums import Tally
from .._sums.causes import LENGTHS, DirectionSums, axis_name
from .._types import FloatArray
from . import Interval
from .ranges import SHOWN, SUSPECTED, dependence

__all__ = [
    "Axis", "Direction", "JudgedDirection", "axes_of", "has_directions", "judged_directions", "least_of_largest",
    "shift_gain", "shows_directions",
]  # fmt: skip

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
        return _name_of(self.along, self.names)


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


class _WhitenedErrors(NamedTuple):
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
    n, d = _independent_rows(tally, sums)[1], sums.axes
    twice = _TWICE * (1.0 + d / n / (_TWICE - 1.0))  # the largest eigenvalue that is seen of such errors, on average
    return n > max(d, _FEWEST) and twice > least_of_largest(n, d, _error_of_place(SUSPECTED, level))


def _independent_rows(tally: Tally, sums: DirectionSums) -> tuple[float, float]:
    """Return how many rows are taken to be independent by the firm bounds, and by those that are less firm."""
    if tally.clusters is None:
        return sums.rows, sums.rows
    parts = tally.clusters.column("weight")
    firm = min(sums.rows, float(parts.sum() ** 2 / (parts @ parts)))
    return firm, max(sums.rows / dependence(tally) ** 2, firm)


def _error_of_place(share: float, level: float) -> float:
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
    firm, weak = _independent_rows(tally, sums)
    error, weaker = _error_of_place(_SHARE, level), _error_of_place(SUSPECTED, level)
    everywhere = _ecd_of_factor(float(np.trace(sums.mean("white"))) / sums.axes)
    fixed = _bound_fixed(sums, tally.class_names, firm, weak, error, weaker)
    judged = []
    for bounded in (fixed, *_bound_turning(sums, firm, weak, error, weaker)):
        value, low, high = map(_ecd_of_factor, (bounded.factor, bounded.low, bounded.high))
        ecd = Interval(value, low, high, 1.0 - 2.0 * error, "from products of errors")
        judged.append(JudgedDirection(bounded.name, ecd, _ecd_of_factor(bounded.at_least), everywhere))
    return judged


class _BoundedDirection(NamedTuple):
    """A direction: how many times its mean squared error is what was stated, with bounds."""

    name: str
    factor: float
    low: float
    high: float
    at_least: float


def _bound_fixed(
    sums: DirectionSums, names: tuple[str, ...], firm: float, weak: float, error: float, weaker: float
) -> _BoundedDirection:
    """Bound the worst of all fixed directions."""
    errors = _WhitenedErrors.of(sums)
    worst, d = float(errors.values[-1]), len(errors.values)
    varies = float(errors.varies[-1])

    def bound(n: float, alpha: float) -> float:
        return worst / least_of_largest(n / varies, d, alpha) if n / varies >= _FEWEST else 0.0

    reach = (math.sqrt(d) + math.sqrt(-2.0 * math.log(error))) / math.sqrt(max(firm / varies, 1e-9))
    high = worst / (1.0 - reach) ** 2 if reach < 1.0 else math.inf
    along = sums.mean("factor") @ errors.vectors[:, -1]
    along *= 1.0 if along[np.abs(along).argmax()] >= 0.0 else -1.0
    return _BoundedDirection(
        _name_of(tuple(along.tolist()), names), worst, bound(firm, error), high, bound(weak, weaker)
    )


def _bound_turning(
    sums: DirectionSums, firm: float, weak: float, error: float, weaker: float
) -> list[_BoundedDirection]:
    """Bound the directions in which a covariance is long, and short: a gamma law of the variance that is seen."""
    places = []
    for name, (mean, second) in zip(LENGTHS, (sums.along / sums.sums[0]).tolist(), strict=True):
        spread = max(second - mean * mean, 2.0 * mean * mean / sums.axes)

        def bound(n: float, alpha: float, mean: float = mean, spread: float = spread) -> float:
            freedom = 2.0 * mean * mean * n / spread if spread > 0.0 else 0.0
            return mean * freedom / float(special.chdtri(freedom, alpha)) if freedom > 0.0 and n >= _FEWEST else 0.0

        high = bound(firm, 1.0 - error) or math.inf
        called = f"the {name} axes of its covariance"
        places.append(_BoundedDirection(called, mean, bound(firm, error), high, bound(weak, weaker)))
    return places


def _name_of(along: tuple[float, ...], names: tuple[str, ...]) -> str:
    """Name a direction by the axes that it goes along with most."""
    smallest = min(_WRITTEN, 0.5 * max(map(abs, along)))
    far = sorted((k for k in range(len(along)) if abs(along[k]) >= smallest), key=lambda k: -abs(along[k]))
    if len(far) > 2 * _MOST:
        return f"{len(far)} axes at once"
    parts = sorted(far[:_MOST])
    if len(parts) == 1 and abs(along[parts[0]]) >= _ALONE:
        return axis_name(names, parts[0])
    signed = " ".join(f"{'-' if along[k] < 0.0 else '+'} {abs(along[k]):.2f} {axis_name(names, k)}" for k in parts)
    return signed.removeprefix("+ ") if signed[0] == "+" else f"-{signed[2:]}"  # no line ends behind this sign


def _ecd_of_factor(factor: float) -> float:
    """Return the ECD of one dimension whose squared errors are so many times the stated variance."""
    return 0.5 * (factor - 1.0)


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """Errors of states along one axis, in units of the spread that was stated.

    Attributes
    ----------
    shift : Interval
        Mean error, in stated standard deviations; 0 is right.
    factor : Interval
        Variance of the errors about their mean, over the stated one; 1 is right, more is over-confident.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> x = np.random.default_rng(0).normal([0.5, 0.0], [1.0, 2.0], (2000, 2))
    >>> axes = safecal.gaussian(x, np.zeros((2000, 2)), std=1.0).evaluate().axes
    >>> [(round(axis.shift.value, 1), round(axis.factor.value)) for axis in axes]
    [(0.5, 1), (-0.0, 4)]
    """

    shift: Interval
    factor: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("axis", {"shift": self.shift.to_dict(), "factor": self.factor.to_dict()})


def axes_of(tally: Tally, level: float) -> tuple[Axis, ...]:
    """Return the axes of Gaussian states; none for others. Rows are taken as independent, and errors as normal."""
    if tally.axes is None:
        return ()
    axes = []
    alpha = 0.5 * (1.0 - level)
    clustered = tally.clusters is not None
    for shift, factor, rows in zip(tally.axes.shift, tally.axes.factor, tally.axes.rows, strict=True):
        if clustered or not rows > 1.0:
            method = "none: rows depend on each other" if clustered else "none: one row"
            axes.append(Axis(*(Interval(float(x), -math.inf, math.inf, level, method) for x in (shift, factor))))
            continue
        freedom = float(rows) - 1.0
        reach = -float(special.stdtrit(freedom, alpha)) * math.sqrt(float(factor) / freedom)
        low, high = (float(rows * factor / special.chdtri(freedom, p)) for p in (alpha, 1.0 - alpha))
        axes.append(
            Axis(
                Interval(float(shift), float(shift) - reach, float(shift) + reach, level, "t"),
                Interval(float(factor * rows / freedom), low, high, level, "chi-square"),
            )
        )
    return tuple(axes)


def shift_gain(tally: Tally) -> tuple[float, int]:
    """Return about how much the likelihood gains by a shift of each axis, and the axis that is shifted most."""
    axes = tally.axes
    if axes is None or not len(axes.sums):
        return 0.0, 0
    with np.errstate(invalid="ignore", divide="ignore"):
        gains = 0.5 * axes.rows * axes.shift**2 / np.maximum(axes.factor, 1.0)
    worst = int(np.nanargmax(gains)) if np.isfinite(gains).any() else 0
    return float(np.nan_to_num(gains[worst])), worst
