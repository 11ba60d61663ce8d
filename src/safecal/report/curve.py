"""How far the data rule out each temperature, in standard deviations."""

import math

from ..inference.bounds import Bounds
from ..inference.law import normal_score as score
from .markup import Markup, element
from .numbers import percent, plain, shown
from .svg import Scale, label, line, picture, shape, sized, tick_text

__all__ = ["temperature_curve"]

_SIZE = (440.0, 320.0)
_TOP, _BOTTOM = 30.0, 270.0
_MOST = 3.5  # standard deviations
_Y = Scale(0.0, _MOST, _BOTTOM, _TOP)
_FARTHEST = 32.0  # temperatures beyond it, or its inverse, are not drawn

Points = list[tuple[float, float]]  # temperature, distance


def temperature_curve(name: str, bounds: Bounds, level: float, limit: float) -> Markup | None:
    """Return the picture; None where there is no temperature, or only one value of it."""
    sides = bounds.distances(_MOST)
    drawn = [t for side in sides for t, _ in side if 1.0 / _FARTHEST <= t <= _FARTHEST]
    if not drawn:
        return None
    drawn += [min(max(t, 1.0 / _FARTHEST), _FARTHEST) for t in (limit / 1.3, 1.2 * limit) if math.isfinite(limit)]
    low, high = min([0.8, *drawn]), max([1.25, *drawn])
    x = Scale(low / 1.05, high * 1.05, 52.0, 424.0, log=True)
    interval = bounds.temperature(level)
    z = score((1.0 - level) / 2.0)
    ticks = x.ticks(7)
    parts = [
        element("rect", x=x(limit), y=_TOP, width=x.end - x(limit), height=_BOTTOM - _TOP, class_="zone"),
        *(line(x.start, _Y(k), x.end, _Y(k), "grid") for k in (1.0, 2.0, 3.0)),
        *(label(x.start - 8.0, _Y(k) + 4.0, tick_text(k), anchor="end") for k in (0.0, 1.0, 2.0, 3.0)),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *_interval(x, interval.low, interval.high, z, level),
        line(x(1.0), _TOP, x(1.0), _BOTTOM, "neutral"),
        line(x(limit), _TOP, x(limit), _BOTTOM, "limit"),
        *_names(x, limit),
        *(shape(_path(side, x), "curve", closed=False) for side in sides if side),
        line(x.start, _BOTTOM, x.end, _BOTTOM, "axis"),
        label((x.start + x.end) / 2.0, _BOTTOM + 40.0, "temperature", "axis-name", "middle"),
        element(
            "text", "ruled out by, standard deviations", class_="axis-name", text_anchor="middle",
            transform=f"translate(16 {(_TOP + _BOTTOM) / 2:.0f}) rotate(-90)",
        ),
    ]  # fmt: skip
    described = (
        f"The data fit a temperature of {shown(interval.value)} best. At {percent(level)} confidence it lies between "
        f"{shown(interval.low)} and {shown(interval.high)}; 1 is calibrated, {plain(limit)} is allowed."
    )
    return picture(name, _SIZE, "How far the data rule out each temperature", described, *parts)


def _path(side: Points, x: Scale) -> Points:
    """Return the drawn points of one side, which ends where it leaves the picture."""
    found = []
    for t, z in side:
        found.append((x(t), _Y(z)))
        if not x.holds(t):
            break
    return found


def _interval(x: Scale, low: float, high: float, z: float, level: float) -> list[Markup]:
    """Shade the temperatures that are left, up to where the level cuts the curve."""
    top = _Y(z)
    box = element("rect", x=x(low), y=top, width=max(x(high) - x(low), 1.0), height=_BOTTOM - top, class_="inside")
    cut = line(x.start, top, x.end, top, "cut")
    left = x(low) - x.start >= x.end - x(high)
    place, anchor = (x.start + 6.0, None) if left else (x.end - 6.0, "end")
    return [box, cut, label(place, top - 5.0, f"{percent(level)} interval", "small halo", anchor)]


def _names(x: Scale, limit: float) -> list[Markup]:
    """Name the two lines; where they are close, the names make room for each other."""
    names = [(x(1.0), "1 is calibrated", "small"), (x(limit), f"limit {plain(limit)}", "limit-text")]
    (first, left, one), (second, right, two) = sorted(names)
    apart = (sized(left) + sized(right)) / 2.0
    second = min(second, _SIZE[0] - sized(right) / 2.0)
    first = max(min(first, second - apart), sized(left) / 2.0)
    second = max(second, first + apart)
    return [label(first, _TOP - 9.0, left, one, "middle"), label(second, _TOP - 9.0, right, two, "middle")]
