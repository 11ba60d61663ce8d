"""What is wrong with a forecast, in its own words: how often its intervals hold, how many times its spread is off."""

import math

from .._sums.tally import Tally
from ..families.predictions import family_named
from ..inference.shifts import ClassShifts

__all__ = ["spread_factor", "stated_fault"]

_ALIKE = 1.005  # a factor that is written as 1


def spread_factor(ecd: float, dimension: int) -> float:
    """Return how many times a spread is too small, by the ECD of moments: the root of NEES over the dimension."""
    return math.sqrt(max(1.0 + 2.0 * ecd / dimension, 0.0))


def stated_fault(tally: Tally) -> str:
    """Say how what was stated differs from what happened; nothing where it does not show."""
    s = tally.summary
    if tally.points is not None and s.sum_predicted is not None:
        seen, stated = 100 * s.mean_observed, 100 * s.mean_predicted
        return f"its intervals hold {seen:.3g} % of the outcomes, where {stated:.3g} % are stated."
    shifts = ClassShifts.of(tally)
    if shifts is not None:
        worst = shifts.farthest
        return "" if worst is None else f"class {worst.name} happens {worst.ratio.value:.3g} times as often as stated."
    if family_named(tally.family).words.scaled != "draws":  # it has no spread that could be too small
        return ""
    if not tally.others:  # seen by neighbours
        return "outcomes lie where it puts few draws." if s.ecd > 0.0 else ""
    factor = spread_factor(s.ecd, tally.dimension)
    if not math.isfinite(factor) or 1.0 / _ALIKE < factor < _ALIKE:
        return ""
    if factor < 1.0:
        return f"its spread is about {1.0 / factor:.3g} times too large." if factor > 0.0 else ""
    return f"its spread is about {factor:.3g} times too small."
