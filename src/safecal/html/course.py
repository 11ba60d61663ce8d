"""ECD along the predictions: the numbers of the picture, and the picture as SVG.

Probabilities and confidences lie on a scale of log-odds, so that both ends can be seen; spreads on one of ratios.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

from ..inference.local import Local, Range
from ..judge.decision import ranges_beyond
from ..judge.places import brief_range
from . import (
    AxisScale,
    Markup,
    centred_label,
    element,
    join,
    label,
    line,
    picture,
    plain,
    shape,
    text_width,
    tick_text,
    upright_label,
)

__all__ = ["BEYOND", "OTHER", "SUSPECTED", "Course", "Step", "course_picture"]

BEYOND, SUSPECTED, OTHER = "beyond the limit", "suspected", "not shown to be beyond it"
_AXES = {
    "probability": "predicted probability",
    "confidence": "confidence in the likeliest class",
    "spread": "standard deviation",
    "width": "width",
    "perplexity": "perplexity",
}
_LENGTHS = ("spread", "width", "perplexity")  # shown on a logarithmic axis
_FARTHEST = 36.0  # log-odds beyond which a float tells no probability from 1; as powers of ten, more than any spread
_REACH = 0.5  # how far the first and the last range may stretch the axis, in widths of the others
_TALLEST = 1.0  # how far bounds may stretch it upward and downward, in heights of the values
_NARROWEST = 0.01  # of the axis: the least width of a range
_EDGE_SHARE = 0.02  # of the axis: what is left free at its ends
_TICK_GAP = 0.1  # of the axis: the least distance of two ticks
_LETTER_WIDTH = 0.021  # of the axis: the width of a letter
_FEWEST_TICKS = 3  # ticks
_ROUND_SHARES = (0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.25, 0.05, 0.3, 0.2, 0.4, 0.02, 0.005)

_SIZE = (440.0, 344.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 428.0, 24.0, 286.0
_HEADROOM = 0.14  # of the height: where the name of the worst range stands


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A range of the predictions in the picture."""

    range: Range  # with the bounds of its ECD
    limit: float  # largest ECD that is allowed there, in nats
    start: float  # where it lies on the axis
    end: float
    state: str  # whether it is beyond its limit, suspected to be, or neither

    @property
    def middle(self) -> float:
        """Its middle on the axis."""
        return 0.5 * (self.start + self.end)

    @property
    def name(self) -> str:
        """The name of the range, in a few words."""
        r = self.range
        return brief_range(r.on, r.label, r.low, r.high)

    @property
    def bounds(self) -> str:
        """The bounds of its ECD, in a few words."""
        ecd = self.range.ecd
        if ecd.low == math.inf:
            return "infinite"
        if math.isinf(ecd.high):  # too few clusters
            return f"above {ecd.low:.2g} nat" if math.isfinite(ecd.low) else "unknown"
        return f"at least {ecd.low:.3g} nat" if self.state == BEYOND else f"{ecd.low:.2g} to {ecd.high:.2g} nat"


@final
@dataclass(frozen=True, slots=True)
class Course:
    """ECD along the predictions, as pictures show it."""

    steps: tuple[Step, ...]  # the finest ranges that do not overlap, in the order of the predictions; or none
    worst: Step | None  # farthest beyond its limit, or nearest to it; it may be a longer range, or of one class
    axis: str  # the quantity on the axis
    ticks: tuple[tuple[float, str], ...]  # where its ticks lie, and what they say
    left: float  # the ends of both axes; bounds may lie outside
    right: float
    bottom: float
    top: float

    @classmethod
    def of(cls, local: Local, local_threshold: float) -> Self:
        """Read it off the ranges of an evaluation; ``local_threshold`` is in nats a dimension."""
        ranges = list(local)
        finest = _finest([r for r in ranges if r.label is None] or ranges)
        if not finest:
            return cls((), None, "", (), 0.0, 1.0, 0.0, 1.0)
        on = finest[0].on
        left, right = _ends(finest, on)
        states = dict.fromkeys(ranges, OTHER)
        for place, degree in zip(*(x.tolist() for x in ranges_beyond(local, local_threshold)[:2]), strict=True):
            states[ranges[place]] = (OTHER, SUSPECTED, BEYOND)[degree]

        def step(r: Range) -> Step:
            start, end = (min(max(_position(x, on), left), right) for x in (r.low, r.high))
            middle, half = 0.5 * (start + end), 0.5 * max(end - start, _NARROWEST * (right - left))
            return Step(r, local_threshold * r.dimensions, middle - half, middle + half, states[r])

        steps = tuple(map(step, finest))
        rank = (BEYOND, SUSPECTED, OTHER).index

        def order(s: Step) -> tuple[float, ...]:
            return rank(s.state), -s.range.ecd.low / s.range.dimensions, -s.range.ecd.value / s.range.dimensions

        worst = min(map(step, ranges), key=order)
        bottom, top = _heights((*steps, worst))
        edge = _EDGE_SHARE * (right - left)
        left, right = left - edge, right + edge
        return cls(steps, worst, _AXES[on], _ticks(on, left, right), left, right, bottom, top)

    def ticks_on(self, left: float, right: float) -> tuple[tuple[float, str], ...]:
        """Return the ticks of an axis that is longer, since it shows others as well."""
        lengths = [_AXES[on] for on in _LENGTHS]
        return _ticks("spread" if self.axis in lengths else "probability", left, right)

    @property
    def shown(self) -> int:
        """How many of the steps are beyond their limit."""
        return sum(step.state == BEYOND for step in self.steps)


def _finest(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges that do not overlap: those that hold the most rows together, and of such the most ranges."""
    best: list[tuple[float, int, list[Range]]] = [(0.0, 0, [])]  # for the first ranges: rows, how many, and which
    ordered = sorted(ranges, key=lambda r: (r.high, r.low))
    for k, r in enumerate(ordered):
        n_before = next(j for j in range(k, -1, -1) if j == 0 or _ends_before(ordered[j - 1], r))
        share, count, chosen = best[n_before]
        best.append(max(best[k], (share + r.share, count + 1, [*chosen, r]), key=lambda b: (round(b[0], 6), b[1])))
    return best[-1][2]


def _ends_before(a: Range, b: Range) -> bool:
    """Tell whether one range ends before another begins; of a range in which all are alike, its value is inside."""
    return a.high <= b.low and not (a.low == a.high == b.low or a.high == b.low == b.high)


def _position(value: float, on: str) -> float:
    """Return where a value lies on the axis."""
    if on in _LENGTHS:
        at = math.log10(value) if 0.0 < value < math.inf else math.copysign(math.inf, value - 1.0)
    elif 0.0 < value < 1.0:
        at = math.log(value) - math.log1p(-value)
    else:
        at = math.copysign(math.inf, value - 0.5)
    return min(max(at, -_FARTHEST), _FARTHEST)


def _ends(finest: Sequence[Range], on: str) -> tuple[float, float]:
    """Return the ends of the axis: the first and the last range may be open, or very long."""
    first, *inner, last = (_position(x, on) for r in finest for x in (r.low, r.high))
    inner = inner or [min(first, last, key=abs)]
    unit = 0.3 if on in _LENGTHS else 1.0
    reach = max(unit, _REACH * (max(inner) - min(inner)))
    left, right = max(first, min(inner) - reach), min(last, max(inner) + reach)
    return (left, right) if right > left else (left - unit, right + unit)


def _heights(steps: Sequence[Step]) -> tuple[float, float]:
    """Return the ends of the other axis, which shows every value, 0 and every limit."""
    marks = [0.0, *(x for s in steps for x in (s.range.ecd.value, s.limit) if math.isfinite(x))]
    low, high = min(marks), max(marks)
    reach = _TALLEST * (high - low or 0.1)
    ends = [min(max(x, low - reach), high + reach) for s in steps for x in (s.range.ecd.low, s.range.ecd.high)]
    low, high = min(low, *ends), max(high, *ends)
    pad = 0.06 * (high - low)
    return low - pad, high + pad


Ticks = list[tuple[float, str, int]]  # where they lie, what they say, and how many letters they have room for


def _ticks(on: str, left: float, right: float) -> tuple[tuple[float, str], ...]:
    return tuple(sorted(_spread_ticks(left, right) if on in _LENGTHS else _odds_ticks(left, right)))


def _odds_ticks(left: float, right: float) -> list[tuple[float, str]]:
    """Return probabilities in percent, both ends alike."""
    ticks: Ticks = []
    for p in _ROUND_SHARES:
        texts = [f"{_percent_text(100.0 * share)} %" for share in (p, 1.0 - p)]
        for side, text in zip((1.0, -1.0), texts, strict=True):
            _add_tick(ticks, (side * _position(p, "probability"), text, max(map(len, texts))), left, right)
    if len(ticks) >= _FEWEST_TICKS:
        return [(at, text) for at, text, _ in ticks]
    ends = (1.0 / (1.0 + math.exp(-x)) for x in (left, right))
    return [(_position(p, "probability"), f"{_percent_text(100.0 * p)} %") for p in _round_numbers(*ends)]


def _spread_ticks(left: float, right: float) -> list[tuple[float, str]]:
    """Return round standard deviations."""
    powers = range(math.floor(left), math.ceil(right) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{factor}e{power}") for power in powers for factor in factors]
        inside = [value for value in values if left <= math.log10(value) <= right]
        ticks: Ticks = []
        for value in inside:
            _add_tick(ticks, (math.log10(value), f"{value:g}", len(f"{value:g}")), left, right)
        if len(ticks) == len(inside):
            break
    if len(ticks) >= _FEWEST_TICKS:
        return [(at, text) for at, text, _ in ticks]
    return [(math.log10(value), f"{value:.6g}") for value in _round_numbers(10.0**left, 10.0**right)]


def _add_tick(ticks: Ticks, tick: tuple[float, str, int], left: float, right: float) -> None:
    """Add a tick that lies on the axis, whose text does not stick out, nor meet that of another tick."""
    at, text, letters = tick
    margin = (_SIZE[0] - _RIGHT) / (_RIGHT - _LEFT) - _LETTER_WIDTH * len(text) / 2.0

    def clear_of(other: float, other_letters: int) -> bool:
        return abs(at - other) >= max(_TICK_GAP, _LETTER_WIDTH * (letters + other_letters + 1) / 2.0) * (right - left)

    if left <= at <= right + min(margin, 0.0) * (right - left) and all(
        clear_of(other, other_letters) for other, _, other_letters in ticks
    ):
        ticks.append(tick)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return a few round numbers between two, equally far apart."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4.0))
    step = next(m * power for m in (1, 2, 5, 10, 20, 50) if (high - low) / (m * power) <= 5.0)
    return [round(k * step, 12) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _percent_text(percent: float) -> str:
    """Write a percentage without an exponent."""
    return f"{percent:.9f}".rstrip("0").rstrip(".")


def course_picture(name: str, course: Course) -> Markup | None:
    """Return the picture; None where there are no ranges."""
    if course.worst is None:
        return None
    x = AxisScale(course.left, course.right, _LEFT, _RIGHT)
    top = course.top + _HEADROOM * (course.top - course.bottom)
    y = AxisScale(course.bottom, top, _BOTTOM, _TOP)
    parts = [
        *_forbidden_zones(course, x, y),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in y.ticks(6)),
        *(label(_LEFT - 8.0, y(t) + 4.0, tick_text(t), anchor="end") for t in y.ticks(6)),
        *(line(x(at), _BOTTOM, x(at), _BOTTOM + 4.0, "axis") for at, _ in course.ticks),
        *(label(x(at), _BOTTOM + 18.0, text, anchor="middle") for at, text in course.ticks),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        *(_step_bounds(step, x, y) for step in course.steps),
        *_limit_lines(course, x, y),
        line(_LEFT, y(0.0), _RIGHT, y(0.0), "neutral"),
        *(_step_mark(step, x, y) for step in course.steps),
        _frame(course, course.worst, x, y),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 42.0, course.axis, "axis-name", "middle"),
        upright_label("ECD, nat: above 0 over-confident", 12.0, (_TOP + _BOTTOM) / 2.0),
    ]
    return picture(name, _SIZE, "ECD along the predictions", _describe(course, course.worst), *parts)


def _forbidden_zones(course: Course, x: AxisScale, y: AxisScale) -> list[Markup]:
    """Shade the ECD that is not allowed."""
    return [
        element("rect", x=start, y=_TOP, width=end - start, height=y(limit) - _TOP, class_="zone")
        for start, end, limit in _stretches(course, x)
    ]


def _limit_lines(course: Course, x: AxisScale, y: AxisScale) -> list[Markup]:
    """Draw the limit, and write its value above the picture."""
    stretches = _stretches(course, x)
    lines = [line(start, y(limit), end, y(limit), "limit") for start, end, limit in stretches if y.holds(limit)]
    lowest, highest = (plain(end({limit for *_, limit in stretches})) for end in (min, max))
    text = f"dashed: the limit, {lowest if lowest == highest else f'{lowest} to {highest}'} nat"
    return [*lines, label(_RIGHT, _TOP - 9.0, text, "limit-text", "end")]


def _stretches(course: Course, x: AxisScale) -> list[tuple[float, float, float]]:
    """Return from where to where each limit counts: one for all ranges, or one for each."""
    if len({step.limit for step in course.steps}) == 1:
        return [(_LEFT, _RIGHT, course.steps[0].limit)]
    return [(x(step.start), x(step.end), step.limit) for step in course.steps]


def _step_bounds(step: Step, x: AxisScale, y: AxisScale) -> Markup:
    ecd = step.range.ecd
    high, low = y(ecd.high), y(ecd.low)
    height = max(low - high, 1.0)
    return element("rect", x=x(step.start), y=high, width=x(step.end) - x(step.start), height=height, class_="band")


def _step_mark(step: Step, x: AxisScale, y: AxisScale) -> Markup:
    """Draw a step with its mark: a filled diamond beyond the limit, a hollow one where suspected, else a dot."""
    value, middle = step.range.ecd.value, x(step.middle)
    if math.isinf(value):
        return shape([(middle, _TOP), (middle - 6.0, _TOP + 11.0), (middle + 6.0, _TOP + 11.0)], "over")
    at = y(value)
    step_line = line(x(step.start), at, x(step.end), at, "step")
    if step.state not in (BEYOND, SUSPECTED):
        return join([step_line, element("circle", cx=middle, cy=at, r=2.5, class_="dot")])
    corners = [(middle, at - 6.0), (middle + 6.0, at), (middle, at + 6.0), (middle - 6.0, at)]
    return join([step_line, shape(corners, "over" if step.state == BEYOND else "over hollow")])


def _frame(course: Course, worst: Step, x: AxisScale, y: AxisScale) -> Markup:
    """Frame the bounds of the worst range, and name it."""
    ecd = worst.range.ecd
    high, low = y(min(ecd.high, course.top)), y(min(ecd.low, course.top))
    width, height = x(worst.end) - x(worst.start), max(low - high, 1.0)
    frame = element("rect", x=x(worst.start), y=high, width=width, height=height, class_="framed")
    at = y(ecd.value)
    middle = line(x(worst.start), at, x(worst.end), at, "step") if math.isfinite(ecd.value) else None
    return join([frame, middle, _frame_name(course, worst, x, y, high)])


def _frame_name(course: Course, worst: Step, x: AxisScale, y: AxisScale, above: float) -> Markup:
    """Name the worst range above its frame, and above the steps that the name would cover."""
    words = f"worst: {worst.name}, {worst.bounds}"
    if text_width(words) > _RIGHT - _LEFT:
        words = f"worst: {worst.name}"
    half = text_width(words) / 2.0
    middle = min(max(x(worst.middle), _LEFT + half), _RIGHT - half)
    near = [s for s in course.steps if x(s.end) > middle - half and x(s.start) < middle + half]
    heights = [y(s.range.ecd.value) for s in near if math.isfinite(s.range.ecd.value)]
    for height in sorted(heights, reverse=True):  # from the lowest
        if above - 24.0 < height < above + 4.0:
            above = height - 4.0
    return centred_label(middle, max(above - 7.0, _TOP + 12.0), words, "value", (_LEFT, _RIGHT))


def _describe(course: Course, worst: Step) -> str:
    suspected = sum(step.state == SUSPECTED for step in course.steps)
    text = f"ECD against {course.axis}, in {len(course.steps)} ranges that do not overlap. "
    text += f"{course.shown} of them are beyond the limit, and {suspected} are suspected to be. "
    return text + f"The worst range: {worst.name}, ECD {worst.bounds}, where {plain(worst.limit)} nat is allowed."
