"""A bound as a function of its level."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

__all__ = ["Curve", "score"]


def score(probability: float) -> float:
    """Return the normal score of a tail probability: 1.645 for 5 %."""
    return float(-special.ndtri(min(max(probability, 1e-300), 1.0 - 1e-16)))


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """A one-sided bound at every level, through a few points.

    Attributes
    ----------
    scores : tuple of float
        Normal scores of the probability of missing, increasing.
    bounds : tuple of float
        The bound at each of them.
    """

    scores: tuple[float, ...]
    bounds: tuple[float, ...]

    def at(self, alpha: float) -> float:
        """Return the bound that is missed with probability ``alpha``; where points run out, the next one outward."""
        wanted = score(alpha)
        x, y = np.array(self.scores), np.array(self.bounds)
        after = int(np.searchsorted(x, wanted))
        if len(x) < 2 or after == 0:
            return float(y[0])
        if after == len(x):
            return float(y[-1])
        if not np.isfinite(y[after]) or x[after] - x[after - 1] > 3.0:
            return float(y[after])
        from scipy import interpolate  # here, because it takes a tenth of a second to load

        finite = np.isfinite(y)
        with np.errstate(all="ignore"):  # slopes of bounds that barely differ may overflow
            found = float(interpolate.PchipInterpolator(x[finite], y[finite])(wanted))
        return found if math.isfinite(found) else float(y[after])
