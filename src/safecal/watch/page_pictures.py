"""The pictures of the page: ECD by window, with the rows of each; and the evidence, with its threshold and alarms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ..html.frame import figure, section
from ..html.markup import (
    Markup,
    Scale,
    centred,
    element,
    evidence,
    grouped,
    label,
    line,
    percent,
    picture,
    power,
    rows,
    shape,
    short,
    shortened,
    shown,
    sized,
    tick_text,
    upright,
)
from .history import LEVEL, History, Slot, alarm_numbers
from .standing import Reading, log10

__all__ = ["STRETCHES", "Curve", "pictures_section", "thinned", "windows_figure"]

_SIZE = (440.0, 262.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 428.0, 40.0, 212.0
_WINDOWS_SIZE = (440.0, 372.0)  # of ECD by window
_WINDOWS_TOP, _WINDOWS_BOTTOM = 28.0, 232.0
_FLOOR, _TALLEST = 318.0, 56.0  # of the rows
_CROWD = 45  # windows from which dots are left out
STRETCHES = 188  # of the width; no screen shows more

Points = Sequence[tuple[int, float]]  # rows, logarithm to the base 10


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """Evidence after each batch, and what of it raises an alarm; the second of two is drawn dashed."""

    name: str
    points: Points
    threshold: float


def thinned(points: Points, most: int = STRETCHES) -> list[tuple[int, float]]:
    """Return the first point, and the highest and the last of each stretch of rows.

    Examples
    --------
    >>> thinned([(k, float(k % 7)) for k in range(10_001)], 4)
    [(0, 0.0), (6, 6.0), (2500, 1.0), (2505, 6.0), (5000, 2.0), (5004, 6.0), (7500, 3.0), (7503, 6.0), (10000, 4.0)]
    """
    if len(points) <= 2 * most:
        return list(points)
    start, end = points[0][0], points[-1][0]
    found = [points[0]]
    stretch: list[tuple[int, float]] = []
    at = 0
    for point in points[1:]:
        place = min(math.ceil(most * (point[0] - start) / (end - start)), most) if end > start else most
        if place != at and stretch:
            found += sorted({max(stretch, key=lambda p: p[1]), stretch[-1]})
            stretch = []
        at = place
        stretch.append(point)
    return found + sorted({max(stretch, key=lambda p: p[1]), stretch[-1]})


def pictures_section(history: History, found: list[Slot], what: str) -> Markup:
    """Return the pictures of a history that has points."""
    reading = Reading.of(history.monitor)
    paths = _paths(history)
    numbers = alarm_numbers(history)

    def marks(kind: str, *directions: str) -> list[tuple[int, str]]:
        return [
            (raised.alarm.row + 1, numbers[k])
            for k, raised in enumerate(history.alarms)
            if raised.alarm.kind == kind and raised.alarm.direction in directions and raised.alarm.group is None
        ]

    def process(name: str, title: str, *directions: str) -> Markup:
        curves = [Curve(direction, paths[direction], reading.thresholds[direction]) for direction in directions]
        return _picture(name, title, curves, marks("since the start", *directions), "e-value")

    count = len(history.points)
    thin = ""
    if count > 2 * STRETCHES:
        thin = f" Of {grouped(count)} batches, the highest and the last of each of {STRETCHES} stretches are drawn."
    both = "under-confident" in reading.changing and bool(paths.get("other"))
    names = {"change": "to over-confident", "other": "to under-confident"} if both else {"change": "change"}
    detector = _picture(
        "detector", "Evidence of a change",
        [Curve(names[part], paths[part], reading.change_threshold) for part in names],
        marks("change", "over-confident", "under-confident"), "detector",
    )  # fmt: skip
    shifts = [direction for direction in ("shifted up", "shifted down") if paths.get(direction)]
    parts = [
        windows_figure(history, found, what) if found else None,
        figure(
            "Was it calibrated since the start?",
            process("process", "Evidence since the start", "over-confident", "under-confident"),
            "The evidence against that after each batch, in powers of ten. 1 is no evidence; what is far below 1 is "
            "drawn at the edge. You may look at it after every row.",
            thin,
        ),
        figure(
            "Does the event happen as often as it says?",
            process("shifts", "Evidence of a shift since the start", *shifts),
            "The evidence since the start that its log-odds are shifted. Shifted up: the event happens more often than "
            "it says; shifted down: less often.",
            thin,
        )
        if shifts
        else None,
        figure(
            "Did it change?" if both else "Did it become over-confident?",
            detector,
            "The detector's statistic after each batch. Triangles are alarms; their numbers are those of the table. "
            "After an alarm, the detector is silent until someone acknowledges it.",
            thin,
        ),
    ]
    return section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _paths(history: History) -> dict[str, list[tuple[int, float]]]:
    """Return each direction of the e-process, and the detector, after each batch: rows and logarithm to base 10.

    Shifts are left out where a batch was taken in before they were looked at.
    """
    n = history.monitor.summary.n - sum(point.summary.n for point in history.points)
    impossible = 0
    found: dict[str, list[tuple[int, float]]] = {
        direction: [(0, 0.0)] if n == 0 else [] for direction in ("over-confident", "under-confident")
    }
    found["change"] = [(0, -math.inf)] if n == 0 else []
    if all(point.log_other is not None for point in history.points):
        found["other"] = [(0, -math.inf)] if n == 0 else []
    if all(None not in (point.log_up, point.log_down) for point in history.points):
        found |= {direction: [(0, 0.0)] if n == 0 else [] for direction in ("shifted up", "shifted down")}
    for point in history.points:
        n += point.summary.n
        impossible += point.summary.n_impossible
        logs = {
            "over-confident": point.log_over,
            "under-confident": point.log_under,
            "shifted up": point.log_up,
            "shifted down": point.log_down,
        }
        for direction, log in logs.items():
            if direction in found and log is not None:
                found[direction].append((n, log10(log)))
        found["change"].append((n, log10(point.log_change, impossible=impossible > 0)))
        if "other" in found and point.log_other is not None:
            found["other"].append((n, log10(point.log_other)))
    return found


def _picture(name: str, title: str, curves: Sequence[Curve], alarms: Sequence[tuple[int, str]], y_name: str) -> Markup:
    """Return the picture; alarms are rows with the number that the table gives them."""
    x = Scale(float(curves[0].points[0][0]), float(max(curves[0].points[-1][0], 1)), _LEFT, _RIGHT)
    limits = sorted({curve.threshold for curve in curves})
    y = _heights(curves, limits[-1])
    ticks = [t for t in x.ticks(5) if t == int(t)]
    levels = [t for t in y.ticks(5) if t == int(t)]
    parts = [
        element("rect", x=_LEFT, y=_TOP, width=_RIGHT - _LEFT, height=y(limits[0]) - _TOP, class_="zone"),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in levels),
        *(label(_LEFT - 6.0, y(t) + 4.0, "1" if t == 0 else power(int(t)), anchor="end") for t in levels),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *(centred(x(t), _BOTTOM + 18.0, short(int(t)), "tick", (_LEFT - 20.0, _SIZE[0] - 3.0)) for t in ticks),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 40.0, "rows", "axis-name", "middle"),
        upright(y_name, 12.0, (_TOP + _BOTTOM) / 2.0),
        *(line(_LEFT, y(limit), _RIGHT, y(limit), "limit") for limit in limits),
        *(_curve(curve, x, y, k) for k, curve in enumerate(curves)),
        *_marks([(x(row), number) for row, number in sorted(alarms)], _TOP, _BOTTOM),
        label(_LEFT + 5.0, y(limits[-1]) - 5.0, f"alarm from {_asked(curves)}", "limit-text halo"),
        *(_legend(curves) if len(curves) > 1 else []),
    ]
    return picture(name, _SIZE, title, _described(curves, alarms), *parts)


def _asked(curves: Sequence[Curve]) -> str:
    """Say what raises an alarm: one number, or one for each curve."""
    if len({curve.threshold for curve in curves}) == 1:
        return evidence(curves[0].threshold)
    return ", ".join(f"{evidence(curve.threshold)} ({curve.name})" for curve in curves)


def _heights(curves: Sequence[Curve], threshold: float) -> Scale:
    """Return a scale that holds the threshold and all that is large; far below 1, evidence lies at the edge."""
    finite = [v for curve in curves for _, v in curve.points if math.isfinite(v)]
    high = max([1.3 * threshold, *(1.06 * v for v in finite)])
    low = max(min([-0.5, *finite]), -max(0.6 * high, 6.0))
    return Scale(low, high, _BOTTOM, _TOP)


def _curve(curve: Curve, x: Scale, y: Scale, place: int) -> Markup:
    drawn = thinned(curve.points)
    path = shape([(x(n), y(v)) for n, v in drawn], "curve second" if place else "curve", closed=False)
    last = element("circle", cx=x(drawn[-1][0]), cy=y(drawn[-1][1]), r=3.0, class_="tip")
    endless = next((n for n, v in drawn if v == math.inf), None)
    if endless is None:
        return element("g", path, last)
    left = x(endless) > (_LEFT + _RIGHT) / 2.0
    at = x(endless) + (-6.0 if left else 6.0)
    return element("g", path, last, label(at, _TOP + 14.0, "∞", "endless halo", "end" if left else None))


def _marks(alarms: Sequence[tuple[float, str]], top: float, bottom: float) -> list[Markup]:
    """Mark each alarm by a line and a triangle, with its number as long as they do not crowd."""
    found = []
    free = -math.inf
    for at, number in alarms:
        found.append(line(at, top, at, bottom, "alarm"))
        found.append(shape([(at, top), (at - 5.0, top - 8.0), (at + 5.0, top - 8.0)], "alarm-mark"))
        half = sized(number) / 2.0
        if at - half > free:
            found.append(label(min(at, _SIZE[0] - half - 3.0), top - 12.0, number, "small value", "middle"))
            free = at + half + 2.0
    return found


def _legend(curves: Sequence[Curve]) -> list[Markup]:
    found = []
    at = _LEFT
    for place, curve in enumerate(curves):
        found.append(line(at, 10.0, at + 22.0, 10.0, "curve second" if place else "curve"))
        found.append(label(at + 28.0, 14.0, curve.name, "small"))
        at += 40.0 + sized(curve.name)
    return found


def _described(curves: Sequence[Curve], alarms: Sequence[tuple[int, str]]) -> str:
    said = []
    for curve in curves:
        rows, last = curve.points[-1]
        who = f"{curve.name}: " if len(curves) > 1 else ""
        said.append(f"{who}{evidence(last)} after {grouped(rows)} rows")
    text = f"{'; '.join(said)}. An alarm is raised from {_asked(curves)} on. "
    if not alarms:
        return text + "No alarm was raised."
    return text + "Raised at row " + ", ".join(grouped(row) for row, _ in alarms[:5]) + "."


def windows_figure(history: History, found: list[Slot], what: str) -> Markup:
    """Return the picture with its heading, and what it shows in words."""
    numbers = alarm_numbers(history)
    marked: dict[str, str] = {}
    for k, raised in enumerate(history.alarms):
        name = raised.alarm.window if what == "window" else raised.batch
        if name is not None:
            marked[name] = f"{marked[name]}, {numbers[k]}" if name in marked else numbers[k]
    total = sum(len(slot.names) for slot in found)
    plural = "windows" if what == "window" else "batches"
    merged = (
        f" Neighbours of the {grouped(total)} {plural} are added up, to {len(found)}." if total > len(found) else ""
    )
    missing = history.monitor.summary.n - sum(slot.summary.n for slot in found)
    rest = f" {rows(missing)} of earlier windows, or of none, are not drawn." if missing > 0 else ""
    return figure(
        f"How surprised was it? ECD by {what}",
        _windows_picture("windows", found, what, marked),
        f"Above 0 it is over-confident, below 0 under-confident. Grey: the {percent(LEVEL)} interval of each {what} by "
        f"itself. A dot is filled where 0 is outside. Among many windows a few are by chance: the evidence decides.",
        f"{merged}{rest}",
    )


def _windows_picture(name: str, found: Sequence[Slot], what: str, alarms: Mapping[str, str]) -> Markup:
    """Return the picture; alarms are names of windows, with the numbers that the table gives their alarms."""
    x = Scale(-0.5, len(found) - 0.5, _LEFT, _RIGHT)
    y = _window_heights(found)
    levels = y.ticks(6)
    parts = [
        element("rect", x=_LEFT, y=_WINDOWS_TOP, width=_RIGHT - _LEFT, height=y(0.0) - _WINDOWS_TOP, class_="zone"),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in levels),
        *(label(_LEFT - 6.0, y(t) + 4.0, tick_text(t), anchor="end") for t in levels),
        *_band(found, x, y),
        line(_LEFT, y(0.0), _RIGHT, y(0.0), "neutral"),
        *_window_alarms(found, alarms, x),
        *_dots(found, x, y),
        label(_LEFT + 5.0, _WINDOWS_TOP + 14.0, "over-confident", "zone-text"),
        *(
            [label(_LEFT + 5.0, _WINDOWS_BOTTOM - 6.0, "under-confident", "faint")]
            if y(0.0) < _WINDOWS_BOTTOM - 24
            else []
        ),
        *_rows(found, x),
        *_names(found, x),
        label((_LEFT + _RIGHT) / 2.0, _FLOOR + 42.0, what, "axis-name", "middle"),
        upright("ECD, nat", 12.0, (_WINDOWS_TOP + _WINDOWS_BOTTOM) / 2.0),
        upright("rows", 12.0, _FLOOR - _TALLEST / 2.0),
    ]
    return picture(name, _WINDOWS_SIZE, f"ECD by {what}", _windows_described(found, what), *parts)


def _window_heights(found: Sequence[Slot]) -> Scale:
    """Return a scale that holds every finite value; intervals may run out of it."""
    values = [s.ecd.value for s in found if math.isfinite(s.ecd.value)]
    reach = 2.5 * max([0.02, *map(abs, values)])
    ends = [end for s in found for end in (s.ecd.low, s.ecd.high) if math.isfinite(end)]
    low = max(min([-0.02, *values, *ends]), -reach)
    high = min(max([0.04, *values, *ends]), reach)
    pad = 0.06 * (high - low)
    return Scale(low - pad, high + pad, _WINDOWS_BOTTOM, _WINDOWS_TOP)


def _band(found: Sequence[Slot], x: Scale, y: Scale) -> list[Markup]:
    """Draw the intervals: as whiskers where there are few windows, else as a band."""
    if len(found) <= _CROWD:
        wide = min(max(0.55 * (x(1.0) - x(0.0)), 2.5), 16.0)
        return [
            element(
                "rect", x=x(k) - wide / 2.0, y=y(s.ecd.high), width=wide,
                height=max(y(s.ecd.low) - y(s.ecd.high), 1.0), rx=2.0, class_="band",
            )
            for k, s in enumerate(found)
        ]  # fmt: skip
    upper = [(x(k), y(s.ecd.high)) for k, s in enumerate(found)]
    lower = [(x(k), y(s.ecd.low)) for k, s in enumerate(found)]
    return [shape([*upper, *reversed(lower)], "band")]


def _dots(found: Sequence[Slot], x: Scale, y: Scale) -> list[Markup]:
    path = shape([(x(k), y(s.ecd.value)) for k, s in enumerate(found)], "curve thin", closed=False)
    parts = [path] if len(found) > 1 else []
    for k, s in enumerate(found):
        at, value = x(k), s.ecd.value
        clear = s.ecd.low > 0.0 or s.ecd.high < 0.0
        if value == math.inf:
            parts.append(
                shape(
                    [(at, _WINDOWS_TOP - 1.0), (at - 6.0, _WINDOWS_TOP + 9.0), (at + 6.0, _WINDOWS_TOP + 9.0)], "over"
                )
            )
        elif clear or len(found) <= _CROWD:
            side = "over" if value > 0.0 else "under"
            radius = 4.0 if len(found) <= _CROWD else 2.0
            fill = side if clear else f"{side} hollow"
            parts.append(element("circle", cx=at, cy=y(value), r=radius, class_=fill))
    return parts


def _window_alarms(found: Sequence[Slot], alarms: Mapping[str, str], x: Scale) -> list[Markup]:
    marked = ((x(k), [alarms[name] for name in slot.names if name in alarms]) for k, slot in enumerate(found))
    marks = [(at, shortened(", ".join(numbers), 12)) for at, numbers in marked if numbers]
    return _marks(marks, _WINDOWS_TOP, _WINDOWS_BOTTOM)


def _rows(found: Sequence[Slot], x: Scale) -> list[Markup]:
    largest = max(s.summary.n for s in found)
    wide = max(0.8 * (x(1.0) - x(0.0)), 0.8)
    parts = [line(_LEFT, _FLOOR, _RIGHT, _FLOOR, "axis")]
    for k, s in enumerate(found):
        high = max(_TALLEST * s.summary.n / largest, 0.8)
        parts.append(element("rect", x=x(k) - wide / 2.0, y=_FLOOR - high, width=wide, height=high, class_="count"))
    parts.append(label(_LEFT - 6.0, _FLOOR - _TALLEST + 4.0, short(largest), anchor="end"))
    return [*parts, label(_LEFT - 6.0, _FLOOR + 4.0, "0", anchor="end")]


def _names(found: Sequence[Slot], x: Scale) -> list[Markup]:
    """Name the first and the last, and the middle one where there is room."""
    first, last = (shortened(n, 18) for n in (found[0].names[0], found[-1].names[-1]))
    y = _FLOOR + 20.0
    if len(found) == 1:
        return [label(x(0.0), y, shortened(found[0].name, 40), anchor="middle")]
    parts = [label(_LEFT, y, first), label(_RIGHT, y, last, anchor="end")]
    middle = len(found) // 2
    text = shortened(found[middle].names[0], 18)
    free = _LEFT + sized(first) + 8.0, _RIGHT - sized(last) - 8.0
    if len(found) > 2 and free[0] < x(middle) - sized(text) / 2.0 and x(middle) + sized(text) / 2.0 < free[1]:
        parts.append(label(x(middle), y, text, anchor="middle"))
        parts.append(line(x(middle), _FLOOR, x(middle), _FLOOR + 4.0, "axis"))
    return parts


def _windows_described(found: Sequence[Slot], what: str) -> str:
    last = found[-1]
    clear = sum(s.ecd.low > 0.0 for s in found)
    text = f"ECD of {len(found)} {what}{'' if len(found) == 1 else 'es' if what == 'batch' else 's'}. "
    text += f"In {clear} of them the interval lies above 0. "
    text += f"The last, {shortened(last.name, 60)}: {shown(last.ecd.value, signed=True)} nat, "
    return text + f"{shown(last.ecd.low, signed=True)} to {shown(last.ecd.high, signed=True)}."
