"""Intervals beside their limits: axes, a gauge for one, a forest for bins or groups, the curve of temperatures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from .._sums.causes import axis_name
from .._types import FloatArray
from ..inference import Interval
from ..inference.forecasts import Forecast
from ..inference.law import normal_score
from ..judge.evaluation import Evaluation
from . import (
    AxisScale,
    Markup,
    centred_label,
    element,
    interval_text,
    join,
    label,
    line,
    metric_text,
    percent,
    picture,
    plain,
    shape,
    shortened,
    text_width,
    tick_text,
    upright_label,
)
from .frame import Finding

__all__ = [
    "TemperatureCurve",
    "directions_picture",
    "ecd_gauge",
    "ecd_range",
    "factor_gauge",
    "factor_range",
    "factors_of",
    "forest",
    "interval_lines",
    "temperature_picture",
]

_REACH = 1.5  # how far intervals of ECD may stretch the axis, in widths of what the values span
_ROOM = 0.3  # of the limit: what is shown beyond it, and below 0
_FARTHEST = 30.0  # how many times beyond 1, the estimate and the limit a finite bound may stretch the axis of a factor
_OPEN = 5.0  # how many times that axis goes on where there is no bound

_GAUGE = (320.0, 84.0)
_START, _END = 2.0, 318.0
_MIDDLE, _AXIS = 38.0, 58.0

_WIDTH, _STEP, _TOP = 440.0, 24.0, 26.0  # of a forest
_STEP_BELOW = 42.0  # where the names stand above
_NAME_LENGTH, _LONG_NAME = 22, 58  # characters of a name, and of one that stands above


def ecd_range(intervals: Sequence[Interval], limits: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that shows every value and every limit; very long intervals leave it."""
    finite_limits = [limit for limit in limits if math.isfinite(limit)]
    marks = [0.0, *finite_limits, *(i.value for i in intervals if math.isfinite(i.value))]
    low, high = min(marks), max(marks)
    reach = high - low or 0.1
    bounds = [end for i in intervals if not math.isnan(i.value) for end in (i.low, i.high)]
    room = _ROOM * max(finite_limits, default=0.0)
    left = min(max(min([low, *bounds]), low - _REACH * reach), -room)
    right = max(min(max([high, *bounds]), high + _REACH * reach), max(finite_limits, default=0.0) + room)
    pad = 0.06 * (right - left or reach)
    return left - pad, right + pad


def factor_range(intervals: Sequence[Interval], limit: float, curve: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of an axis of ratios that shows 1, the limit, and each interval as far as it can be.

    ``curve`` are further values that are shown where they do not lie too far out.
    """
    nearest = [i.high if i.value == 0.0 else i.low if i.value == math.inf else i.value for i in intervals]
    marks = [1.0, *(x for x in (limit, (1.0 + _ROOM) * limit, *nearest) if 0.0 < x < math.inf)]
    bounds = [end for i in intervals if not math.isnan(i.value) for end in (i.low, i.high)]
    lowest, highest = min(marks) / _FARTHEST, max(marks) * _FARTHEST
    low = min([*marks, *(b for b in (*bounds, *curve) if b >= lowest)])
    high = max([*marks, *(b for b in (*bounds, *curve) if b <= highest)])
    open_low = any(b < lowest for b in bounds) or any(i.value == 0.0 for i in intervals)
    open_high = any(b > highest for b in bounds) or any(i.value == math.inf for i in intervals)
    pad = (high / low) ** 0.08
    return low / (_OPEN if open_low else pad), high * (_OPEN if open_high else pad)


def ecd_gauge(name: str, ecd: Interval, limit: float) -> Markup | None:
    """Return the picture of ECD: 0, the limit, the interval; None where there is no ECD."""
    if math.isnan(ecd.value):
        return None
    scale = AxisScale(*ecd_range([ecd], [limit]), _START, _END)
    title = f"ECD {metric_text(ecd.value, signed=True)} nat against the limit of {plain(limit)} nat"
    return _gauge(name, title, ecd, limit, 0.0, scale, signed=True)


def factor_gauge(name: str, quantity: str, factor: Interval, limit: float) -> Markup | None:
    """Return the picture of a factor that should be 1, on a scale of ratios; None where there is none."""
    if math.isnan(factor.value):
        return None
    scale = AxisScale(*factor_range([factor], limit), _START, _END, log=True)
    title = f"{quantity} {metric_text(factor.value)} against the limit of {plain(limit)}"
    return _gauge(name, title, factor, limit, 1.0, scale, signed=False)


def _gauge(
    name: str, title: str, interval: Interval, limit: float, neutral: float, scale: AxisScale, *, signed: bool
) -> Markup:
    edge = scale(limit)
    between = interval_text(interval, signed=signed)
    described = f"The interval runs from {between}. Values beyond {plain(limit)} are not allowed."
    ticks = [t for t in scale.ticks(6) if _START + 12.0 < scale(t) < _END - 12.0]
    parts = [
        element("rect", x=edge, y=22.0, width=_END - edge, height=_AXIS - 22.0, class_="zone"),
        line(_START, _AXIS, _END, _AXIS, "axis"),
        *(line(scale(t), _AXIS, scale(t), _AXIS + 4.0, "axis") for t in ticks),
        *(label(scale(t), _AXIS + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(scale(neutral), 22.0, scale(neutral), _AXIS, "neutral"),
        line(edge, 22.0, edge, _AXIS, "limit"),
        centred_label(edge, 14.0, f"limit {plain(limit)}", "limit-text", (_START, _END)),
        _mark(interval, scale),
    ]
    return picture(name, _GAUGE, title, described, *parts)


def _mark(interval: Interval, scale: AxisScale) -> Markup:
    """Return the estimate with its interval; an arrow where it runs out of the picture."""
    low, high = interval.low, interval.high
    parts = [line(scale(low), _MIDDLE, scale(high), _MIDDLE, "span")]
    inside = [scale(end) for end in (low, high) if scale.holds(end)]
    parts += [line(x, _MIDDLE - 6.0, x, _MIDDLE + 6.0, "span") for x in inside]
    parts += [_arrow(_START, _MIDDLE, -10.0, 6.0, "mark")] if low < scale.low else []
    parts += [_arrow(_END, _MIDDLE, 10.0, 6.0, "mark")] if high > scale.high else []
    if scale.holds(interval.value):
        parts.append(element("circle", cx=scale(interval.value), cy=_MIDDLE, r=6.5, class_="mark"))
    return join(parts)


def _arrow(x: float, y: float, back: float, half: float, class_: str) -> Markup:
    """Return the head of an arrow, which says that an interval goes on."""
    return shape([(x, y), (x - back, y - half), (x - back, y + half)], class_)


def forest(name: str, title: str, findings: Sequence[Finding], *, bars: bool) -> Markup:
    """Return the picture: bars from 0, below names that are long, or marks; each beside its limit."""
    limits = [finding.limit for finding in findings]
    names = max(text_width(shortened(finding.name, _NAME_LENGTH)) for finding in findings)
    above = bars and any(len(finding.name) > _NAME_LENGTH for finding in findings)
    step = _STEP_BELOW if above else _STEP
    left, right = ecd_range([finding.ecd for finding in findings], limits)
    scale = AxisScale(left, right, 14.0 if above else min(names, 165.0) + 14.0, _WIDTH - 64.0)
    bottom = _TOP + step * len(findings)
    ticks = [t for t in scale.ticks(5) if scale.start + 1.0 < scale(t) < scale.end - 1.0]
    parts = [
        *_limit_lines(limits, scale, bottom, step),
        *(line(scale(t), _TOP, scale(t), bottom + 4.0, "grid") for t in ticks),
        *(label(scale(t), bottom + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(scale(0.0), _TOP, scale(0.0), bottom, "neutral"),
        label((scale.start + scale.end) / 2.0, bottom + 38.0, "ECD, nat", "axis-name", "middle"),
    ]
    largest = max(finding.share for finding in findings)
    for place, finding in enumerate(findings):
        y = _TOP + step * (place + 1.0) - 0.5 * _STEP
        parts.append(_forest_row(finding, scale, y, largest, bars=bars, above=above))
    return picture(name, (_WIDTH, bottom + 50.0), title, _describe(findings), *parts)


def factors_of(forecast: Forecast) -> list[tuple[str, Interval]]:
    """Return how many times the spread of each axis is too small, and of the two extreme directions of Gaussians."""
    vector = forecast.vector
    if vector is None:
        return [(f"axis {k}", axis.spread) for k, axis in enumerate(forecast.axes)]
    axes = [(shortened(axis_name(vector.names, k), _NAME_LENGTH), factor) for k, factor in enumerate(vector.spread)]
    return [*axes, ("widest direction", vector.largest.factor), ("narrowest", vector.smallest.factor)]


def directions_picture(name: str, forecast: Forecast) -> Markup:
    """Return how many times the stated spread is too small, along each axis and in the extreme directions."""
    factors = factors_of(forecast)
    scale = AxisScale(*factor_range([factor for _, factor in factors], 1.0), 130.0, _WIDTH - 64.0, log=True)
    bottom = _TOP + _STEP * len(factors)
    ticks = [t for t in scale.ticks(5) if scale.start + 1.0 < scale(t) < scale.end - 1.0]
    parts = [
        element("rect", x=scale(1.0), y=_TOP, width=scale.end - scale(1.0), height=bottom - _TOP, class_="zone"),
        *(line(scale(t), _TOP, scale(t), bottom + 4.0, "grid") for t in ticks),
        *(label(scale(t), bottom + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(scale(1.0), _TOP, scale(1.0), bottom, "neutral"),
        centred_label(scale(1.0), _TOP - 9.0, "1 is right", "faint", (scale.start, scale.end)),
        label((scale.start + scale.end) / 2.0, bottom + 38.0, "times too small", "axis-name", "middle"),
    ]
    for place, (axis, factor) in enumerate(factors):
        y = _TOP + _STEP * (place + 0.5)
        side = "over" if factor.low > 1.0 else "under" if factor.high < 1.0 else "unclear"
        low, high = (min(max(scale(x), scale.start), scale.end) for x in (factor.low, factor.high))
        parts += [label(0.0, y + 4.5, axis), line(low, y, high, y, "span")]
        parts.append(element("circle", cx=scale(factor.value), cy=y, r=5.0, class_=f"mark {side}"))
        parts.append(label(_WIDTH, y + 4.5, plain(factor.value), "value", "end"))
    too_small = ", ".join(f"{axis} {plain(x.value)}" for axis, x in factors if x.low > 1.0)
    description = "In no direction is it shown to be too small."
    description = f"Shown to be too small: {too_small}." if too_small else description
    return picture(name, (_WIDTH, bottom + 50.0), "How many times the stated spread is too small", description, *parts)


def _limit_lines(limits: list[float], scale: AxisScale, bottom: float, step: float) -> list[Markup]:
    """Shade the values beyond the limit, and draw it: one line, or one for each where limits differ."""
    lowest, highest = min(limits), max(limits)
    same = lowest == highest
    rows = [(x, _TOP + step * k, _TOP + step * (k + 1)) for k, x in enumerate(limits)]
    rows = [(lowest, _TOP, bottom)] if same else rows
    parts = []
    for limit, top, end in rows:
        x = scale(limit)
        parts.append(element("rect", x=x, y=top, width=scale.end - x, height=end - top, class_="zone"))
        parts.append(line(x, top, x, end, "limit"))
    text = f"limit {plain(lowest)}" if same else f"limits {plain(lowest)} to {plain(highest)}"
    return [*parts, centred_label(scale(highest), _TOP - 9.0, text, "limit-text", (scale.start, scale.end))]


def _forest_row(
    finding: Finding, scale: AxisScale, y: float, largest: float, *, bars: bool, above: bool
) -> Markup:  # fmt: skip
    ecd, value = finding.ecd, finding.ecd.value
    name = shortened(finding.name, _LONG_NAME if above else _NAME_LENGTH)
    parts: list[Markup | None] = [
        element("title", shortened(finding.name, 80)) if name != finding.name else None,
        label(0.0, y - 12.0, name, "halo") if above else label(0.0, y + 4.5, name),
    ]
    if math.isnan(value):
        parts.append(label(_WIDTH, y + 4.5, "no rows", "faint", "end"))
        return element("g", *parts)
    side = "over" if value > 0.0 else "under"
    parts.append(label(_WIDTH, y + 4.5, metric_text(value, signed=True).replace("-", "\N{MINUS SIGN}"), "value", "end"))
    if bars:
        start, end = sorted((scale(0.0), scale(value)))
        width = max(end - start, 0.8)
        parts.append(element("rect", x=start, y=y - 7.0, width=width, height=14.0, class_=f"bar {side}"))
    parts += interval_lines(ecd, scale, y, "whisker", 3.5)
    if not bars and math.isfinite(value):
        size = 3.0 + 3.5 * math.sqrt(finding.share / largest) if largest > 0.0 else 3.0
        fill = side if finding.beyond else f"{side} hollow"
        box = {"x": scale(value) - size, "y": y - size, "width": 2.0 * size, "height": 2.0 * size}
        parts.append(element("rect", **box, rx=1.0, class_=fill))
    return element("g", *parts)


def interval_lines(interval: Interval, scale: AxisScale, y: float, class_: str, half: float) -> list[Markup]:
    """Return an interval in a row with its two ends, or an arrow where it runs out of the picture."""
    parts = [line(scale(interval.low), y, scale(interval.high), y, class_)]
    inside = [scale(end) for end in (interval.low, interval.high) if scale.holds(end)]
    parts += [line(x, y - half, x, y + half, "whisker") for x in inside]
    parts += [_arrow(scale.start - 2.0, y, -8.0, 4.0, "arrow")] if interval.low < scale.low else []
    return parts + ([_arrow(scale.end + 2.0, y, 8.0, 4.0, "arrow")] if interval.high > scale.high else [])


def _describe(findings: Sequence[Finding]) -> str:
    beyond = [finding.name for finding in findings if finding.beyond]
    filled = [finding for finding in findings if not math.isnan(finding.ecd.value)]
    if not filled:
        return "None of them holds rows."
    worst = max(filled, key=lambda finding: finding.ecd.value)
    names = ", ".join(shortened(name, 40) for name in beyond[:5]) + (" and others" if len(beyond) > 5 else "")
    text = f"{len(filled)} values with intervals. The largest is {metric_text(worst.ecd.value, signed=True)} nat, "
    text += f"in {shortened(worst.name, 40)}. "
    return text + (f"Beyond the limit: {names}." if beyond else "None is shown to exceed the limit.")


_HIGHEST = 3.5  # standard deviations
_CURVE = (440.0, 320.0)
_CURVE_TOP, _CURVE_BOTTOM = 30.0, 270.0
_CURVE_LEFT, _CURVE_RIGHT = 52.0, 424.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class TemperatureCurve:
    """How far each temperature is from the one the data ask for."""

    low_side: FloatArray  # (points, 2): temperature and distance, outward from the estimate, below it
    high_side: FloatArray  # above it
    interval: Interval  # the temperature the data ask for; NaN where it does not exist
    distance: float  # at which temperatures leave the interval
    top: float  # the largest distance
    limit: float  # largest temperature that is allowed

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
    x = AxisScale(*curve.ends, _CURVE_LEFT, _CURVE_RIGHT, log=True)
    y = AxisScale(0.0, curve.top, _CURVE_BOTTOM, _CURVE_TOP)
    ticks, heights = x.ticks(7), [t for t in y.ticks(6) if t == int(t)]
    tall = _CURVE_BOTTOM - _CURVE_TOP
    parts = [
        element("rect", x=x(limit), y=_CURVE_TOP, width=x.end - x(limit), height=tall, class_="zone"),
        *(line(x.start, y(k), x.end, y(k), "grid") for k in heights if k),
        *(label(x.start - 8.0, y(k) + 4.0, tick_text(k), anchor="end") for k in heights),
        *(label(x(t), _CURVE_BOTTOM + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(line(x(t), _CURVE_BOTTOM, x(t), _CURVE_BOTTOM + 4.0, "axis") for t in ticks),
        *_interval_box(x, interval, y(curve.distance)),
        line(x(1.0), _CURVE_TOP, x(1.0), _CURVE_BOTTOM, "neutral"),
        line(x(limit), _CURVE_TOP, x(limit), _CURVE_BOTTOM, "limit"),
        *_line_names(x, limit),
        _level_name(x, interval, y(curve.distance)),
        *(shape(_path(side, x, y), "curve", closed=False) for side in sides if side),
        line(x.start, _CURVE_BOTTOM, x.end, _CURVE_BOTTOM, "axis"),
        label((x.start + x.end) / 2.0, _CURVE_BOTTOM + 40.0, "temperature", "axis-name", "middle"),
        upright_label("ruled out by, standard deviations", 16.0, (_CURVE_TOP + _CURVE_BOTTOM) / 2.0),
    ]
    described = (
        f"The data fit a temperature of {metric_text(interval.value)} best. At {percent(level)} confidence it lies "
        f"between {metric_text(interval.low)} and {metric_text(interval.high)}; "
        f"1 is calibrated, {plain(limit)} is allowed."
    )
    return picture(name, _CURVE, "How far the data rule out each temperature", described, *parts)


def _path(side: list[list[float]], x: AxisScale, y: AxisScale) -> list[tuple[float, float]]:
    """Return the drawn points of one side, which ends where it leaves the picture."""
    path = []
    for t, z in side:
        path.append((x(t), y(z)))
        if not x.holds(t):
            break
    return path


def _interval_box(x: AxisScale, interval: Interval, top: float) -> list[Markup]:
    """Shade the temperatures that are left, up to where the level cuts the curve."""
    low, high = x(interval.low), x(interval.high)
    box = element("rect", x=low, y=top, width=max(high - low, 1.0), height=_CURVE_BOTTOM - top, class_="inside")
    return [box, line(x.start, top, x.end, top, "cut")]


def _level_name(x: AxisScale, interval: Interval, top: float) -> Markup:
    """Name the level where there is more room, and above the lines that it crosses."""
    left = x(interval.low) - x.start >= x.end - x(interval.high)
    place, anchor = (x.start + 6.0, None) if left else (x.end - 6.0, "end")
    return label(place, top - 5.0, f"{percent(interval.level)} interval", "small halo", anchor)


def _line_names(x: AxisScale, limit: float) -> list[Markup]:
    """Name the two lines; where they are close, the names make room for each other."""
    names = [(x(1.0), "1 is calibrated", "small"), (x(limit), f"limit {plain(limit)}", "limit-text")]
    (first, left, left_style), (second, right, right_style) = sorted(names)
    room = (text_width(left) + text_width(right)) / 2.0
    second = min(second, _CURVE[0] - text_width(right) / 2.0)
    first = max(min(first, second - room), text_width(left) / 2.0)
    second = max(second, first + room)
    return [
        label(first, _CURVE_TOP - 9.0, left, left_style, "middle"),
        label(second, _CURVE_TOP - 9.0, right, right_style, "middle"),
    ]
