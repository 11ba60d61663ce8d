"""ECD, temperature and mistakes, each with its interval, on a scale that shows what is allowed."""

import math

from ..inference.results import Interval
from .markup import Markup, element, join
from .numbers import ends, plain, shown
from .svg import Scale, centred, label, line, picture, shape, tick_text

__all__ = ["ecd_gauge", "factor_gauge"]

_WIDTH, _HEIGHT = 320.0, 84.0
_LEFT, _RIGHT = 2.0, 318.0
_MIDDLE, _AXIS = 38.0, 58.0
_FARTHEST = 32.0  # factors beyond it, or its inverse, lie at the edge


def ecd_gauge(name: str, ecd: Interval, limit: float) -> Markup | None:
    """Return the picture of ECD: 0, the limit, the interval; None where there is no ECD."""
    if math.isnan(ecd.value):
        return None
    known = [x for x in (ecd.low, ecd.value, ecd.high) if math.isfinite(x)]
    allowed, limit = limit, limit if math.isfinite(limit) else 0.1
    reach = 4.0 * max(limit, min(abs(ecd.value), 1e300) if math.isfinite(ecd.value) else limit)
    low = max(min([-0.6 * limit, *known]), -reach)
    high = min(max([2.2 * limit, *known]), reach)
    pad = 0.06 * (high - low)
    scale = Scale(low - pad, high + pad, _LEFT, _RIGHT)
    title = f"ECD {shown(ecd.value, signed=True)} nat against the limit of {plain(allowed)} nat"
    return _gauge(name, title, ecd, allowed, 0.0, scale, signed=True)


def factor_gauge(name: str, what: str, factor: Interval, limit: float) -> Markup | None:
    """Return the picture of a factor that should be 1, on a scale of ratios; None where there is none."""
    if math.isnan(factor.value):
        return None
    ends_and_limit = (factor.low, factor.value, factor.high, limit / 1.5, 1.6 * limit)
    known = [min(max(x, 1.0 / _FARTHEST), _FARTHEST) for x in ends_and_limit]
    low, high = min([0.75, *known]), max([1.3, *known])
    pad = (high / low) ** 0.06
    scale = Scale(low / pad, high * pad, _LEFT, _RIGHT, log=True)
    title = f"{what} {shown(factor.value)} against the limit of {plain(limit)}"
    return _gauge(name, title, factor, limit, 1.0, scale, signed=False)


def _gauge(
    name: str, title: str, interval: Interval, limit: float, neutral: float, scale: Scale, *, signed: bool
) -> Markup:
    edge = scale(limit)
    between = ends(interval, signed=signed)
    described = f"The interval runs from {between}. Values beyond {plain(limit)} are not allowed."
    ticks = [t for t in scale.ticks(6) if _LEFT + 12.0 < scale(t) < _RIGHT - 12.0]
    parts = [
        element("rect", x=edge, y=22.0, width=_RIGHT - edge, height=_AXIS - 22.0, class_="zone"),
        line(_LEFT, _AXIS, _RIGHT, _AXIS, "axis"),
        *(line(scale(t), _AXIS, scale(t), _AXIS + 4.0, "axis") for t in ticks),
        *(label(scale(t), _AXIS + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(scale(neutral), 22.0, scale(neutral), _AXIS, "neutral"),
        line(edge, 22.0, edge, _AXIS, "limit"),
        centred(edge, 14.0, f"limit {plain(limit)}", "limit-text", (_LEFT, _RIGHT)),
        _mark(interval, scale),
    ]
    return picture(name, (_WIDTH, _HEIGHT), title, described, *parts)


def _mark(interval: Interval, scale: Scale) -> Markup:
    """Return the estimate with its interval; an arrow where it runs out of the picture."""
    low, high = interval.low, interval.high
    parts = [line(scale(low), _MIDDLE, scale(high), _MIDDLE, "span")]
    inside = [scale(end) for end in (low, high) if scale.holds(end)]
    parts += [line(x, _MIDDLE - 6.0, x, _MIDDLE + 6.0, "span") for x in inside]
    parts += [_arrow(_LEFT, -1.0)] if low < scale.low else []
    parts += [_arrow(_RIGHT, 1.0)] if high > scale.high else []
    if scale.holds(interval.value):
        parts.append(element("circle", cx=scale(interval.value), cy=_MIDDLE, r=6.5, class_="mark"))
    return join(parts)


def _arrow(x: float, outward: float) -> Markup:
    back = x - 10.0 * outward
    return shape([(x, _MIDDLE), (back, _MIDDLE - 6.0), (back, _MIDDLE + 6.0)], "mark")
