"""What is wrong with a forecast, in its own words: how often its intervals hold, how many times its spread is off."""

import math
from collections.abc import Sequence

from .._sums.directions import axis_name
from .._sums.tally import Tally
from ..families.predictions import family_named
from ..inference.shifts import ClassShifts
from .places import Place, spread_times

__all__ = ["direction_fault", "spread_factor", "stated_fault"]

_ALIKE = 1.005  # a factor that is written as 1
_MORE = 2.0  # times what all directions show: more is the fault of one


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


def direction_fault(tally: Tally, where: Sequence[Place]) -> tuple[str, str] | None:
    """Say which direction of states is wrong, and what corrects it; None where none is, or all of them are."""
    shown = [place for place in where if place.shown]
    if not shown or shown[0].type != "direction":
        return None
    place, everywhere = shown[0], tally.summary.ecd / tally.dimension
    if not place.ecd.low > _MORE * everywhere:
        return None
    times = f"{spread_times(place.ecd.value):.3g} times as large as it says"
    evidence = f"along {place.label} errors are {times}, and smaller errors along others hide that in NEES."
    remedy = "A factor for the whole covariance does not correct it: "
    if place.name in {axis_name(tally.class_names, k) for k in range(tally.dimension)}:
        return evidence, f"{remedy}`safecal.maps.Axes`, fitted on other rows, has one for each axis."
    return evidence, f"{remedy}look for a correlation that is not stated, or for noise that is larger that way."
