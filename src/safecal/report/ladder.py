"""ECD of bins or groups, one under the other, each with its interval and the limit beside them."""

import math

from .findings import Rung
from .markup import Markup, element, shortened
from .numbers import plain, shown
from .svg import Scale, centred, label, line, picture, shape, sized, tick_text

__all__ = ["ladder"]

_WIDTH, _STEP, _TOP = 440.0, 24.0, 26.0
_LONGEST = 22  # characters of a name


def ladder(name: str, title: str, found: list[Rung], *, bars: bool) -> Markup:
    """Return the picture: bars from 0 for bins, marks for groups; each beside its limit."""
    limits = [rung.limit for rung in found]
    scale = _scale(found, limits)
    bottom = _TOP + _STEP * len(found)
    ticks = [t for t in scale.ticks(5) if scale.start + 1.0 < scale(t) < scale.end - 1.0]
    parts = [
        *_limits(limits, scale, bottom),
        *(line(scale(t), _TOP, scale(t), bottom + 4.0, "grid") for t in ticks),
        *(label(scale(t), bottom + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(scale(0.0), _TOP, scale(0.0), bottom, "neutral"),
        label((scale.start + scale.end) / 2.0, bottom + 38.0, "ECD, nat", "axis-name", "middle"),
    ]
    largest = max(rung.share for rung in found)
    for place, rung in enumerate(found):
        parts.append(_drawn(rung, scale, _TOP + _STEP * (place + 0.5), largest, bars=bars))
    return picture(name, (_WIDTH, bottom + 50.0), title, _described(found), *parts)


def _limits(limits: list[float], scale: Scale, bottom: float) -> list[Markup]:
    """Shade what is not allowed, and draw the limit: one line, or one for each where they differ."""
    least, most = min(limits), max(limits)
    one = least == most
    rows = (
        [(limits[0], _TOP, bottom)]
        if one
        else [(x, _TOP + _STEP * k, _TOP + _STEP * (k + 1)) for k, x in enumerate(limits)]
    )
    parts = []
    for limit, top, end in rows:
        x = scale(limit)
        parts.append(element("rect", x=x, y=top, width=scale.end - x, height=end - top, class_="zone"))
        parts.append(line(x, top, x, end, "limit"))
    text = f"limit {plain(least)}" if one else f"limits {plain(least)} to {plain(most)}"
    return [*parts, centred(scale(most), _TOP - 9.0, text, "limit-text", (scale.start, scale.end))]


def _scale(found: list[Rung], limits: list[float]) -> Scale:
    """Return a scale that holds every value and every limit; intervals may run out of it."""
    limit = max((limit for limit in limits if math.isfinite(limit)), default=0.1)
    finite = [rung.ecd for rung in found if math.isfinite(rung.ecd.value)]
    reach = max([2.0 * limit, *(min(abs(at.value), 1e300) for at in finite)])
    low = max(min([-0.4 * limit, *(min(at.value, at.low) for at in finite)]), -1.8 * reach)
    high = min(max([1.6 * limit, *(max(at.value, at.high) for at in finite)]), 1.8 * reach)
    pad = 0.04 * (high - low)
    names = max(sized(shortened(rung.name, _LONGEST)) for rung in found)
    return Scale(low - pad, high + pad, min(names, 165.0) + 14.0, _WIDTH - 64.0)


def _drawn(rung: Rung, scale: Scale, y: float, largest: float, *, bars: bool) -> Markup:
    at, value = rung.ecd, rung.ecd.value
    name = shortened(rung.name, _LONGEST)
    parts: list[Markup | None] = [
        element("title", shortened(rung.name, 80)) if name != rung.name else None,
        label(0.0, y + 4.5, name),
    ]
    if math.isnan(value):
        parts.append(label(_WIDTH, y + 4.5, "no rows", "faint", "end"))
        return element("g", *parts)
    side = "over" if value > 0.0 else "under"
    parts.append(label(_WIDTH, y + 4.5, shown(value, signed=True).replace("-", "\N{MINUS SIGN}"), "value", "end"))
    if bars:
        start, end = sorted((scale(0.0), scale(value)))
        parts.append(
            element("rect", x=start, y=y - 7.0, width=max(end - start, 0.8), height=14.0, class_=f"bar {side}")
        )
    parts.append(line(scale(at.low), y, scale(at.high), y, "whisker"))
    parts += [
        line(scale(end), y - 3.5, scale(end), y + 3.5, "whisker") for end in (at.low, at.high) if scale.holds(end)
    ]
    parts += [_arrow(scale.start, y, -1.0)] if at.low < scale.low else []
    parts += [_arrow(scale.end, y, 1.0)] if at.high > scale.high else []
    if not bars and math.isfinite(value):
        size = 3.0 + 3.5 * math.sqrt(rung.share / largest) if largest > 0.0 else 3.0
        fill = side if rung.beyond else f"{side} hollow"
        box = {"x": scale(value) - size, "y": y - size, "width": 2.0 * size, "height": 2.0 * size}
        parts.append(element("rect", **box, rx=1.0, class_=fill))
    return element("g", *parts)


def _arrow(x: float, y: float, outward: float) -> Markup:
    """Say that an interval goes on."""
    back = x - 6.0 * outward
    return shape([(x + 2.0 * outward, y), (back, y - 4.0), (back, y + 4.0)], "arrow")


def _described(found: list[Rung]) -> str:
    beyond = [rung.name for rung in found if rung.beyond]
    known = [rung for rung in found if not math.isnan(rung.ecd.value)]
    if not known:
        return "None of them holds rows."
    worst = max(known, key=lambda rung: rung.ecd.value)
    names = ", ".join(shortened(name, 40) for name in beyond[:5]) + (" and others" if len(beyond) > 5 else "")
    text = f"{len(known)} values with intervals. The largest is {shown(worst.ecd.value, signed=True)} nat, "
    text += f"in {shortened(worst.name, 40)}. "
    return text + (f"Beyond the limit: {names}." if beyond else "None is shown to exceed the limit.")
