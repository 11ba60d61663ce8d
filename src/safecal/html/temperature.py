"""How far the data rule out each temperature, in standard deviations."""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from .._types import FloatArray
from ..inference.law import normal_score
from ..inference.results import Interval
from ..judge.evaluation import Evaluation
from .intervals import factor_range
from .markup import Markup, element
from .numbers import percent, plain, shown
from .svg import Scale, label, line, picture, shape, sized, tick_text, upright

__all__ = ["TemperatureCurve", "temperature_picture"]

_HIGHEST = 3.5  # standard deviations
_SIZE = (440.0, 320.0)
_TOP, _BOTTOM = 30.0, 270.0
_LEFT, _RIGHT = 52.0, 424.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class TemperatureCurve:
    """How far each temperature is from the one the data ask for.

    Attributes
    ----------
    low_side, high_side : ndarray of shape (points, 2)
        Temperature and distance, outward from the estimate, below it and above it; none where a side is empty.
    interval : Interval
        The temperature the data ask for; NaN where it does not exist.
    distance : float
        The distance at which temperatures leave the interval.
    top : float
        The largest distance.
    limit : float
        Largest temperature that is allowed.
    """

    low_side: FloatArray
    high_side: FloatArray
    interval: Interval
    distance: float
    top: float
    limit: float

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Read it off an evaluation."""
        distance = normal_score(0.5 - 0.5 * evaluation.level)
        top = max(_HIGHEST, distance + 0.5)
        low, high = (np.array(side).reshape(-1, 2) for side in evaluation.bounds.distances(top))
        return cls(low, high, evaluation.temperature, distance, top, evaluation.max_temperature)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of an axis that shows the curve, as far as it can be."""
        return factor_range([self.interval], self.limit, [*self.low_side[:, 0], *self.high_side[:, 0]])


def temperature_picture(name: str, curve: TemperatureCurve) -> Markup | None:
    """Return the picture; None where there is no temperature, or only one value of it."""
    sides = [side.tolist() for side in (curve.low_side, curve.high_side)]
    if not any(sides):
        return None
    interval, limit, level = curve.interval, curve.limit, curve.interval.level
    x = Scale(*curve.ends, _LEFT, _RIGHT, log=True)
    y = Scale(0.0, curve.top, _BOTTOM, _TOP)
    ticks, heights = x.ticks(7), [t for t in y.ticks(6) if t == int(t)]
    parts = [
        element("rect", x=x(limit), y=_TOP, width=x.end - x(limit), height=_BOTTOM - _TOP, class_="zone"),
        *(line(x.start, y(k), x.end, y(k), "grid") for k in heights if k),
        *(label(x.start - 8.0, y(k) + 4.0, tick_text(k), anchor="end") for k in heights),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *_interval(x, interval, y(curve.distance)),
        line(x(1.0), _TOP, x(1.0), _BOTTOM, "neutral"),
        line(x(limit), _TOP, x(limit), _BOTTOM, "limit"),
        *_names(x, limit),
        *(shape(_path(side, x, y), "curve", closed=False) for side in sides if side),
        line(x.start, _BOTTOM, x.end, _BOTTOM, "axis"),
        label((x.start + x.end) / 2.0, _BOTTOM + 40.0, "temperature", "axis-name", "middle"),
        upright("ruled out by, standard deviations", 16.0, (_TOP + _BOTTOM) / 2.0),
    ]
    described = (
        f"The data fit a temperature of {shown(interval.value)} best. At {percent(level)} confidence it lies between "
        f"{shown(interval.low)} and {shown(interval.high)}; 1 is calibrated, {plain(limit)} is allowed."
    )
    return picture(name, _SIZE, "How far the data rule out each temperature", described, *parts)


def _path(side: list[list[float]], x: Scale, y: Scale) -> list[tuple[float, float]]:
    """Return the drawn points of one side, which ends where it leaves the picture."""
    found = []
    for t, z in side:
        found.append((x(t), y(z)))
        if not x.holds(t):
            break
    return found


def _interval(x: Scale, interval: Interval, top: float) -> list[Markup]:
    """Shade the temperatures that are left, up to where the level cuts the curve."""
    low, high = x(interval.low), x(interval.high)
    box = element("rect", x=low, y=top, width=max(high - low, 1.0), height=_BOTTOM - top, class_="inside")
    cut = line(x.start, top, x.end, top, "cut")
    left = low - x.start >= x.end - high
    place, anchor = (x.start + 6.0, None) if left else (x.end - 6.0, "end")
    return [box, cut, label(place, top - 5.0, f"{percent(interval.level)} interval", "small halo", anchor)]


def _names(x: Scale, limit: float) -> list[Markup]:
    """Name the two lines; where they are close, the names make room for each other."""
    names = [(x(1.0), "1 is calibrated", "small"), (x(limit), f"limit {plain(limit)}", "limit-text")]
    (first, left, one), (second, right, two) = sorted(names)
    room = (sized(left) + sized(right)) / 2.0
    second = min(second, _SIZE[0] - sized(right) / 2.0)
    first = max(min(first, second - room), sized(left) / 2.0)
    second = max(second, first + room)
    return [label(first, _TOP - 9.0, left, one, "middle"), label(second, _TOP - 9.0, right, two, "middle")]
