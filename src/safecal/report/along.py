"""ECD along the predictions: steps with their bounds, the limit, and the worst range in a frame."""

import math

from ..course import BEYOND, SUSPECTED, Course, Step
from .markup import Markup, element, join
from .numbers import plain
from .svg import Scale, centred, label, line, picture, shape, sized, tick_text

__all__ = ["along"]

_SIZE = (440.0, 344.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 428.0, 24.0, 286.0
_HEADROOM = 0.14  # of the height: where the name of the worst range stands


def along(name: str, course: Course) -> Markup | None:
    """Return the picture; None where there are no ranges."""
    if course.worst is None:
        return None
    x = Scale(course.left, course.right, _LEFT, _RIGHT)
    top = course.top + _HEADROOM * (course.top - course.bottom)
    y = Scale(course.bottom, top, _BOTTOM, _TOP)
    parts = [
        *_zones(course, x, y),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in y.ticks(6)),
        *(label(_LEFT - 8.0, y(t) + 4.0, tick_text(t), anchor="end") for t in y.ticks(6)),
        *(line(x(at), _BOTTOM, x(at), _BOTTOM + 4.0, "axis") for at, _ in course.ticks),
        *(label(x(at), _BOTTOM + 18.0, text, anchor="middle") for at, text in course.ticks),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        *(_band(step, x, y) for step in course.steps),
        *_lines(course, x, y),
        line(_LEFT, y(0.0), _RIGHT, y(0.0), "neutral"),
        *(_step(step, x, y) for step in course.steps),
        _frame(course.worst, course.top, x, y),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 42.0, course.axis, "axis-name", "middle"),
        element(
            "text", "ECD, nat: above 0 over-confident", class_="axis-name", text_anchor="middle",
            transform=f"translate(12 {(_TOP + _BOTTOM) / 2:.0f}) rotate(-90)",
        ),
    ]  # fmt: skip
    return picture(name, _SIZE, "ECD along the predictions", _described(course, course.worst), *parts)


def _zones(course: Course, x: Scale, y: Scale) -> list[Markup]:
    """Shade what is not allowed."""
    return [
        element("rect", x=start, y=_TOP, width=end - start, height=y(limit) - _TOP, class_="zone")
        for start, end, limit in _limits(course, x)
    ]


def _lines(course: Course, x: Scale, y: Scale) -> list[Markup]:
    """Draw the limit, and say above the picture what it is."""
    found = _limits(course, x)
    drawn = [line(start, y(limit), end, y(limit), "limit") for start, end, limit in found if y.holds(limit)]
    least, most = (plain(end({limit for *_, limit in found})) for end in (min, max))
    text = f"dashed: the limit, {least if least == most else f'{least} to {most}'} nat"
    return [*drawn, label(_RIGHT, _TOP - 9.0, text, "limit-text", "end")]


def _limits(course: Course, x: Scale) -> list[tuple[float, float, float]]:
    """Return from where to where each limit counts: one for all ranges, or one for each."""
    if len({step.limit for step in course.steps}) == 1:
        return [(_LEFT, _RIGHT, course.steps[0].limit)]
    return [(x(step.start), x(step.end), step.limit) for step in course.steps]


def _band(step: Step, x: Scale, y: Scale) -> Markup:
    ecd = step.range.ecd
    high, low = y(ecd.high), y(ecd.low)
    height = max(low - high, 1.0)
    return element("rect", x=x(step.start), y=high, width=x(step.end) - x(step.start), height=height, class_="band")


def _step(step: Step, x: Scale, y: Scale) -> Markup:
    """Draw a step with its mark: a filled diamond beyond the limit, a hollow one where suspected, else a dot."""
    value, middle = step.range.ecd.value, x(step.middle)
    if math.isinf(value):
        return shape([(middle, _TOP), (middle - 6.0, _TOP + 11.0), (middle + 6.0, _TOP + 11.0)], "over")
    at = y(value)
    drawn = line(x(step.start), at, x(step.end), at, "step")
    if step.state not in (BEYOND, SUSPECTED):
        return join([drawn, element("circle", cx=middle, cy=at, r=2.5, class_="dot")])
    corners = [(middle, at - 6.0), (middle + 6.0, at), (middle, at + 6.0), (middle - 6.0, at)]
    return join([drawn, shape(corners, "over" if step.state == BEYOND else "over hollow")])


def _frame(worst: Step, top: float, x: Scale, y: Scale) -> Markup:
    """Frame the bounds of the worst range, and name it."""
    ecd = worst.range.ecd
    high, low = y(min(ecd.high, top)), y(min(ecd.low, top))
    width, height = x(worst.end) - x(worst.start), max(low - high, 1.0)
    words = f"worst: {worst.name}, {worst.bounds}"
    if sized(words) > _RIGHT - _LEFT:
        words = f"worst: {worst.name}"
    name = centred(x(worst.middle), high - 7.0, words, "value", (_LEFT, _RIGHT))
    frame = element("rect", x=x(worst.start), y=high, width=width, height=height, class_="framed")
    at = y(ecd.value)
    middle = line(x(worst.start), at, x(worst.end), at, "step") if math.isfinite(ecd.value) else None
    return join([frame, middle, name])


def _described(course: Course, worst: Step) -> str:
    suspected = sum(step.state == SUSPECTED for step in course.steps)
    text = f"ECD against {course.axis}, in {len(course.steps)} ranges that do not overlap. "
    text += f"{course.shown} of them are beyond the limit, and {suspected} are suspected to be. "
    return text + f"The worst range: {worst.name}, ECD {worst.bounds}, where {plain(worst.limit)} nat is allowed."
