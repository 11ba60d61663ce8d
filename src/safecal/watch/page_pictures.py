"""The pictures of the page: ECD by window, with the rows of each; and the evidence, with its threshold and alarms."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

from ..html import (
    AxisScale,
    Markup,
    centred_label,
    crosses,
    element,
    evidence_text,
    grouped,
    label,
    line,
    metric_text,
    percent,
    picture,
    power_text,
    rows_text,
    shape,
    short_count,
    shortened,
    text_width,
    tick_text,
    upright_label,
)
from ..html.frame import figure, section
from .history import LEVEL, History, Reading, Slot, log10

__all__ = ["STRETCHES", "EvidenceCurve", "pictures_section", "thinned", "windows_figure"]

_SIZE = (440.0, 262.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 428.0, 40.0, 212.0
_WINDOWS_SIZE = (440.0, 372.0)  # of ECD by window
_WINDOWS_TOP, _WINDOWS_BOTTOM = 28.0, 232.0
_FLOOR, _TALLEST = 318.0, 56.0  # of the rows
_CROWD, STRETCHES = 45, 188  # windows from which dots are left out; parts of the width: no screen shows more
_LOGS = {
    "over-confident": "log_over", "under-confident": "log_under", "shifted up": "log_up", "shifted down": "log_down",
    "change": "log_change", "other": "log_other",
}  # fmt: skip

Points = Sequence[tuple[int, float]]  # rows, logarithm to the base 10


@final
@dataclass(frozen=True, slots=True)
class EvidenceCurve:
    """Evidence after each batch, and the threshold of an alarm; the second of two is drawn dashed."""

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
    kept = [points[0]]
    stretch: list[tuple[int, float]] = []
    current = 0
    for point in points[1:]:
        place = min(math.ceil(most * (point[0] - start) / (end - start)), most) if end > start else most
        if place != current and stretch:
            kept += sorted({max(stretch, key=lambda p: p[1]), stretch[-1]})
            stretch = []
        current = place
        stretch.append(point)
    return kept + sorted({max(stretch, key=lambda p: p[1]), stretch[-1]})


def pictures_section(history: History, windows: list[Slot], unit: str) -> Markup:
    """Return the pictures of a history that has points."""
    reading = Reading.of(history.monitor)
    paths = _evidence_paths(history)

    def marks(kind: str, *directions: str) -> list[tuple[int, str]]:
        return [
            (raised.alarm.row, str(number))
            for number, raised in enumerate(history.alarms, 1)
            if raised.alarm.kind == kind and raised.alarm.direction in directions and raised.alarm.group is None
        ]

    def process(name: str, title: str, *directions: str) -> Markup:
        curves = [EvidenceCurve(direction, paths[direction], reading.thresholds[direction]) for direction in directions]
        return _evidence_picture(name, title, curves, marks("since the start", *directions), "e-value")

    count = len(history.points)
    thinning = ""
    if count > 2 * STRETCHES:
        thinning = f" Of {grouped(count)} batches, the highest and the last of each of {STRETCHES} stretches are drawn."
    both = "under-confident" in reading.changing and bool(paths.get("other"))
    names = {"change": "to over-confident", "other": "to under-confident"} if both else {"change": "change"}
    detector = _evidence_picture(
        "detector", "Evidence of a change",
        [EvidenceCurve(names[part], paths[part], reading.change_threshold) for part in names],
        marks("change", "over-confident", "under-confident"), "detector",
    )  # fmt: skip
    shifts = [direction for direction in ("shifted up", "shifted down") if paths.get(direction)]
    parts = [
        windows_figure(history, windows, unit) if windows else None,
        figure(
            "Was it calibrated since the start?",
            process("process", "Evidence since the start", "over-confident", "under-confident"),
            "The evidence that it was not, after each batch, in powers of ten. 1 is no evidence; values far below 1 "
            "are drawn at the edge. You can look at it after every row.",
            thinning,
        ),
        figure(
            "Does the event happen as often as it says?",
            process("shifts", "Evidence of a shift since the start", *shifts),
            "The evidence since the start that its log-odds are shifted. Shifted up: the event happens more often than "
            "it says; shifted down: less often.",
            thinning,
        )
        if shifts
        else None,
        figure(
            "Did it change?" if both else "Did it become over-confident?",
            detector,
            "The detector's statistic after each batch. Triangles are alarms; their numbers are those of the table. "
            "After an alarm, the detector is silent until someone acknowledges it.",
            thinning,
        ),
    ]
    return section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _evidence_paths(history: History) -> dict[str, list[tuple[int, float]]]:
    """Return each direction of the e-process, and the detector, after each batch: rows and logarithm to base 10.

    Shifts are left out where a batch was taken in before they were looked at.
    """
    start = history.monitor.summary.n - sum(point.summary.n for point in history.points)
    rows = [*accumulate((point.summary.n for point in history.points), initial=start)][1:]
    impossible = [*accumulate(point.summary.n_impossible for point in history.points)]
    logs = {name: [getattr(point, field) for point in history.points] for name, field in _LOGS.items()}
    for names in (("shifted up", "shifted down"), ("other",)):
        if any(None in logs[name] for name in names):
            for name in names:
                del logs[name]
    paths: dict[str, list[tuple[int, float]]] = {}
    for name, values in logs.items():
        paths[name] = [(0, -math.inf if name in ("change", "other") else 0.0)] if start == 0 else []
        paths[name] += [
            (n, log10(log, impossible=name == "change" and count > 0))
            for n, log, count in zip(rows, values, impossible, strict=True)
        ]
    return paths


def _evidence_picture(
    name: str, title: str, curves: Sequence[EvidenceCurve], alarms: Sequence[tuple[int, str]], y_name: str
) -> Markup:
    """Return the picture; alarms are rows with the number that the table gives them."""
    x = AxisScale(float(curves[0].points[0][0]), float(max(curves[0].points[-1][0], 1)), _LEFT, _RIGHT)
    limits = sorted({curve.threshold for curve in curves})
    y = _heights(curves, limits[-1])
    ticks, room = [t for t in x.ticks(5) if t == int(t)], (_LEFT - 20.0, _SIZE[0] - 3.0)
    levels = [t for t in y.ticks(5) if t == int(t)]
    parts = [
        element("rect", x=_LEFT, y=_TOP, width=_RIGHT - _LEFT, height=y(limits[0]) - _TOP, class_="zone"),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in levels),
        *(label(_LEFT - 6.0, y(t) + 4.0, "1" if t == 0 else power_text(int(t)), anchor="end") for t in levels),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *(centred_label(x(t), _BOTTOM + 18.0, short_count(int(t)), "tick", room) for t in ticks),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 40.0, "rows", "axis-name", "middle"),
        upright_label(y_name, 12.0, (_TOP + _BOTTOM) / 2.0),
        *(line(_LEFT, y(limit), _RIGHT, y(limit), "limit") for limit in limits),
        *(_curve_path(curve, x, y, k) for k, curve in enumerate(curves)),
        *_alarm_marks([(x(row + 1), number) for row, number in sorted(alarms)], _TOP, _BOTTOM),  # after that row
        _limit_label(curves, [x(row + 1) for row, _ in alarms], x, y),
        *(_legend(curves) if len(curves) > 1 else []),
    ]
    return picture(name, _SIZE, title, _describe_evidence(curves, alarms), *parts)


def _threshold_text(curves: Sequence[EvidenceCurve], names: Sequence[str]) -> str:
    """Say what raises an alarm: one number, or one for each curve."""
    if len({curve.threshold for curve in curves}) == 1:
        return evidence_text(curves[0].threshold)
    return ", ".join(f"{evidence_text(c.threshold)} ({name})" for c, name in zip(curves, names, strict=False))


def _limit_label(curves: Sequence[EvidenceCurve], alarms: Sequence[float], x: AxisScale, y: AxisScale) -> Markup:
    """Say what raises an alarm: near its line, where no curve and no alarm is covered if there is such a place."""
    limits = [y(curve.threshold) for curve in curves]
    drawn = [[(x(n), y(v)) for n, v in thinned(curve.points)] for curve in curves]
    drawn += [[(at, _TOP), (at, _BOTTOM)] for at in alarms] + [[(_LEFT, at), (_RIGHT, at)] for at in limits]
    whole = f"alarm from {_threshold_text(curves, ('solid', 'dashed'))}"
    for text in (whole, re.sub(r" \(\w+\)", "", whole)):
        wide = 0.88 * text_width(text)
        for base in (min(limits) - 5.0, _TOP + 13.0, max(limits) + 14.0):
            for left in (_LEFT + 5.0, _RIGHT - wide, *(_LEFT + 20.0 * k for k in range(1, 18))):
                box = (left, base - 10.0, left + wide, base + 3.0)
                if box[2] <= _RIGHT and box[3] < _BOTTOM and not any(crosses(path, *box) for path in drawn):
                    return label(left, base, text, "limit-text halo")
    return label(_LEFT + 5.0, min(limits) - 5.0, whole, "limit-text halo")


def _heights(curves: Sequence[EvidenceCurve], threshold: float) -> AxisScale:
    """Return a scale that holds the threshold and all that is large; far below 1, evidence lies at the edge."""
    finite = [v for curve in curves for _, v in curve.points if math.isfinite(v)]
    high = max([1.3 * threshold, *(1.06 * v for v in finite)])
    low = max(min([-0.5, *finite]), -max(0.6 * high, 6.0))
    return AxisScale(low, high, _BOTTOM, _TOP)


def _curve_path(curve: EvidenceCurve, x: AxisScale, y: AxisScale, place: int) -> Markup:
    points = thinned(curve.points)
    path = shape([(x(n), y(v)) for n, v in points], "curve second" if place else "curve", closed=False)
    last = element("circle", cx=x(points[-1][0]), cy=y(points[-1][1]), r=3.0, class_="tip")
    endless = next((n for n, v in points if v == math.inf), None)
    if endless is None:
        return element("g", path, last)
    left = x(endless) > (_LEFT + _RIGHT) / 2.0
    at = x(endless) + (-6.0 if left else 6.0)
    return element("g", path, last, label(at, _TOP + 14.0, "∞", "endless halo", "end" if left else None))


def _alarm_marks(alarms: Sequence[tuple[float, str]], top: float, bottom: float) -> list[Markup]:
    """Mark each alarm by a line and a triangle, with its number as long as they do not crowd."""
    parts, free_from = [], -math.inf
    for at, number in alarms:
        parts.append(line(at, top, at, bottom, "alarm"))
        parts.append(shape([(at, top), (at - 5.0, top - 8.0), (at + 5.0, top - 8.0)], "alarm-mark"))
        half = text_width(number) / 2.0
        if at - half > free_from:
            parts.append(label(min(at, _SIZE[0] - half - 3.0), top - 12.0, number, "small value", "middle"))
            free_from = at + half + 2.0
    return parts


def _legend(curves: Sequence[EvidenceCurve]) -> list[Markup]:
    parts, at = [], _LEFT
    for place, curve in enumerate(curves):
        parts.append(line(at, 10.0, at + 22.0, 10.0, "curve second" if place else "curve"))
        parts.append(label(at + 28.0, 14.0, curve.name, "small"))
        at += 40.0 + text_width(curve.name)
    return parts


def _describe_evidence(curves: Sequence[EvidenceCurve], alarms: Sequence[tuple[int, str]]) -> str:
    texts = []
    for curve in curves:
        rows, last = curve.points[-1]
        name = f"{curve.name}: " if len(curves) > 1 else ""
        texts.append(f"{name}{evidence_text(last)} after {grouped(rows)} rows")
    limits = _threshold_text(curves, [curve.name for curve in curves])
    text = f"{'; '.join(texts)}. An alarm is raised from {limits} on. "
    if not alarms:
        return text + "No alarm was raised."
    return text + "Raised at row " + ", ".join(grouped(row) for row, _ in alarms[:5]) + "."


def windows_figure(history: History, windows: list[Slot], unit: str) -> Markup:
    """Return the picture with its heading and its caption."""
    marked: dict[str, str] = {}
    for number, raised in enumerate(history.alarms, 1):
        name = raised.alarm.window if unit == "window" else raised.batch
        if name is not None:
            marked[name] = f"{marked[name]}, {number}" if name in marked else str(number)
    total = sum(len(slot.names) for slot in windows)
    plural = "windows" if unit == "window" else "batches"
    merged = f" The {grouped(total)} {plural} are too many to draw: neighbours are added up to {len(windows)}."
    missing = history.monitor.summary.n - sum(slot.summary.n for slot in windows)
    not_drawn = f" {rows_text(missing)} of earlier windows, or without a window, are not drawn." * (missing > 0)
    return figure(
        f"How surprised was it? ECD by {unit}",
        _windows_picture("windows", windows, unit, marked),
        f"Above 0 it is over-confident, below 0 under-confident. Grey: the {percent(LEVEL)} interval of each {unit} by "
        f"itself. A dot is filled where 0 is outside. Among many, a few are so by chance: the evidence decides.",
        f"{merged if total > len(windows) else ''}{not_drawn}",
    )


def _windows_picture(name: str, windows: Sequence[Slot], unit: str, alarms: Mapping[str, str]) -> Markup:
    """Return the picture; alarms are names of windows, with the numbers that the table gives their alarms."""
    x = AxisScale(-0.5, len(windows) - 0.5, _LEFT, _RIGHT)
    y = _window_heights(windows)
    levels = y.ticks(6)
    below = [label(_LEFT + 5.0, _WINDOWS_BOTTOM - 6.0, "under-confident", "faint halo")]
    parts = [
        element("rect", x=_LEFT, y=_WINDOWS_TOP, width=_RIGHT - _LEFT, height=y(0.0) - _WINDOWS_TOP, class_="zone"),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in levels),
        *(label(_LEFT - 6.0, y(t) + 4.0, tick_text(t), anchor="end") for t in levels),
        *_window_band(windows, x, y),
        line(_LEFT, y(0.0), _RIGHT, y(0.0), "neutral"),
        *_window_alarms(windows, alarms, x),
        *_window_dots(windows, x, y),
        label(_LEFT + 5.0, _WINDOWS_TOP + 14.0, "over-confident", "zone-text halo"),
        *(below if y(0.0) < _WINDOWS_BOTTOM - 24 else []),
        *_row_bars(windows, x),
        *_window_names(windows, x),
        label((_LEFT + _RIGHT) / 2.0, _FLOOR + 42.0, unit, "axis-name", "middle"),
        upright_label("ECD, nat", 12.0, (_WINDOWS_TOP + _WINDOWS_BOTTOM) / 2.0),
        upright_label("rows", 12.0, _FLOOR - _TALLEST / 2.0),
    ]
    return picture(name, _WINDOWS_SIZE, f"ECD by {unit}", _describe_windows(windows, unit), *parts)


def _window_heights(windows: Sequence[Slot]) -> AxisScale:
    """Return a scale that holds every finite value; intervals may run out of it."""
    values = [s.ecd.value for s in windows if math.isfinite(s.ecd.value)]
    reach = 2.5 * max([0.02, *map(abs, values)])
    ends = [end for s in windows for end in (s.ecd.low, s.ecd.high) if math.isfinite(end)]
    low = max(min([-0.02, *values, *ends]), -reach)
    high = min(max([0.04, *values, *ends]), reach)
    pad = 0.06 * (high - low)
    return AxisScale(low - pad, high + pad, _WINDOWS_BOTTOM, _WINDOWS_TOP)


def _window_band(windows: Sequence[Slot], x: AxisScale, y: AxisScale) -> list[Markup]:
    """Draw the intervals: as whiskers where there are few windows, else as a band."""
    if len(windows) <= _CROWD:
        wide = min(max(0.55 * (x(1.0) - x(0.0)), 2.5), 16.0)
        return [
            element(
                "rect", x=x(k) - wide / 2.0, y=y(s.ecd.high), width=wide,
                height=max(y(s.ecd.low) - y(s.ecd.high), 1.0), rx=2.0, class_="band",
            )
            for k, s in enumerate(windows)
        ]  # fmt: skip
    upper = [(x(k), y(s.ecd.high)) for k, s in enumerate(windows)]
    lower = [(x(k), y(s.ecd.low)) for k, s in enumerate(windows)]
    return [shape([*upper, *reversed(lower)], "band")]


def _window_dots(windows: Sequence[Slot], x: AxisScale, y: AxisScale) -> list[Markup]:
    path = shape([(x(k), y(s.ecd.value)) for k, s in enumerate(windows)], "curve thin", closed=False)
    parts = [path] if len(windows) > 1 else []
    for k, s in enumerate(windows):
        at, value = x(k), s.ecd.value
        clear = s.ecd.low > 0.0 or s.ecd.high < 0.0
        if value == math.inf:
            floor = _WINDOWS_TOP + 9.0
            parts.append(shape([(at, _WINDOWS_TOP - 1.0), (at - 6.0, floor), (at + 6.0, floor)], "over"))
        elif clear or len(windows) <= _CROWD:
            side = "over" if value > 0.0 else "under"
            radius = 4.0 if len(windows) <= _CROWD else 2.0
            fill = side if clear else f"{side} hollow"
            parts.append(element("circle", cx=at, cy=y(value), r=radius, class_=fill))
    return parts


def _window_alarms(windows: Sequence[Slot], alarms: Mapping[str, str], x: AxisScale) -> list[Markup]:
    marked = ((x(k), [alarms[name] for name in slot.names if name in alarms]) for k, slot in enumerate(windows))
    marks = [(at, shortened(", ".join(numbers), 12)) for at, numbers in marked if numbers]
    return _alarm_marks(marks, _WINDOWS_TOP, _WINDOWS_BOTTOM)


def _row_bars(windows: Sequence[Slot], x: AxisScale) -> list[Markup]:
    largest = max(s.summary.n for s in windows)
    wide = max(0.8 * (x(1.0) - x(0.0)), 0.8)
    parts = [line(_LEFT, _FLOOR, _RIGHT, _FLOOR, "axis")]
    for k, s in enumerate(windows):
        high = max(_TALLEST * s.summary.n / largest, 0.8)
        parts.append(element("rect", x=x(k) - wide / 2.0, y=_FLOOR - high, width=wide, height=high, class_="count"))
    parts.append(label(_LEFT - 6.0, _FLOOR - _TALLEST + 4.0, short_count(largest), anchor="end"))
    return [*parts, label(_LEFT - 6.0, _FLOOR + 4.0, "0", anchor="end")]


def _window_names(windows: Sequence[Slot], x: AxisScale) -> list[Markup]:
    """Name the first and the last, and the middle one where there is room."""
    first, last = (shortened(n, 18) for n in (windows[0].names[0], windows[-1].names[-1]))
    y = _FLOOR + 20.0
    if len(windows) == 1:
        return [label(x(0.0), y, shortened(windows[0].name, 40), anchor="middle")]
    parts = [label(_LEFT, y, first), label(_RIGHT, y, last, anchor="end")]
    middle = len(windows) // 2
    text = shortened(windows[middle].names[0], 18)
    half = text_width(text) / 2.0
    left, right = _LEFT + text_width(first) + 8.0, _RIGHT - text_width(last) - 8.0
    if len(windows) > 2 and left < x(middle) - half and x(middle) + half < right:
        parts.append(label(x(middle), y, text, anchor="middle"))
        parts.append(line(x(middle), _FLOOR, x(middle), _FLOOR + 4.0, "axis"))
    return parts


def _describe_windows(windows: Sequence[Slot], unit: str) -> str:
    last = windows[-1]
    clear = sum(s.ecd.low > 0.0 for s in windows)
    text = f"ECD of {len(windows)} {unit}{'' if len(windows) == 1 else 'es' if unit == 'batch' else 's'}. "
    text += f"In {clear} of them the interval lies above 0. "
    text += f"The last, {shortened(last.name, 60)}: {metric_text(last.ecd.value, signed=True)} nat, "
    return text + f"{metric_text(last.ecd.low, signed=True)} to {metric_text(last.ecd.high, signed=True)}."
