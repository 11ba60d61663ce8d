"""Mean error and factor of each axis of Gaussian states, with intervals."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import special

from .. import documents
from .._sums.tally import Tally
from .results import Interval

__all__ = ["Axis", "axes_of", "shift_gain"]


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
    >>> found = safecal.gaussian(x, np.zeros((2000, 2)), std=1.0).evaluate().axes
    >>> [(round(axis.shift.value, 1), round(axis.factor.value)) for axis in found]
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
    found = []
    alpha = 0.5 * (1.0 - level)
    clustered = tally.clusters is not None
    for shift, factor, rows in zip(tally.axes.shift, tally.axes.factor, tally.axes.rows, strict=True):
        if clustered or not rows > 1.0:
            why = "none: rows depend on each other" if clustered else "none: one row"
            found.append(Axis(*(Interval(float(x), -math.inf, math.inf, level, why) for x in (shift, factor))))
            continue
        freedom = float(rows) - 1.0
        reach = -float(special.stdtrit(freedom, alpha)) * math.sqrt(float(factor) / freedom)
        low, high = (float(rows * factor / special.chdtri(freedom, p)) for p in (alpha, 1.0 - alpha))
        found.append(
            Axis(
                Interval(float(shift), float(shift) - reach, float(shift) + reach, level, "t"),
                Interval(float(factor * rows / freedom), low, high, level, "chi-square"),
            )
        )
    return tuple(found)


def shift_gain(tally: Tally) -> tuple[float, int]:
    """Return about how much the likelihood gains by a shift of each axis, and the axis that is shifted most."""
    axes = tally.axes
    if axes is None or not len(axes.sums):
        return 0.0, 0
    with np.errstate(invalid="ignore", divide="ignore"):
        gains = 0.5 * axes.rows * axes.shift**2 / np.maximum(axes.factor, 1.0)
    worst = int(np.nanargmax(gains)) if np.isfinite(gains).any() else 0
    return float(np.nan_to_num(gains[worst])), worst
