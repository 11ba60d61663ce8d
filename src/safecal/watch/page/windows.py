"""ECD of each window with its interval, as a picture with the rows of each below."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ..._sums.summary import Summary, as_sums
from ...html.frame import figure
from ...html.markup import Markup, element, shortened
from ...html.numbers import grouped, percent, rows, short, shown
from ...html.svg import Scale, label, line, picture, shape, sized, tick_text, upright
from ...inference.results import Interval
from ...inference.sum_bounds import intervals_from_sums
from ..history import History
from .tables import alarm_numbers

__all__ = ["LEVEL", "MOST", "Slot", "slots", "windows_figure"]

MOST = 90  # windows in a picture; neighbours are added up where there are more
LEVEL = 0.95
_SIZE = (440.0, 372.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 428.0, 28.0, 232.0
_FLOOR, _TALLEST = 318.0, 56.0  # of the rows
_CROWD = 45  # windows from which dots are left out


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """One window, or neighbours added up: their names, their sums, and the interval of ECD."""

    names: tuple[str, ...]
    summary: Summary
    ecd: Interval

    @property
    def name(self) -> str:
        """The first and the last of its names."""
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]} … {self.names[-1]}"


def slots(history: History, most: int = MOST) -> tuple[list[Slot], str]:
    """Return the windows in their order, or the batches where there are no windows, and which of the two they are."""
    if any(point.window is not None for point in history.points) or not history.points:
        what = "window"
        kept = [(name, summary) for name, (summary, _) in history.monitor.windows(LEVEL).items()]
    else:
        what = "batch"
        kept = [(point.batch, point.summary) for point in history.points]
    kept = [(name, summary) for name, summary in kept if summary.n]
    step = max(-(-len(kept) // most), 1)
    parts = [kept[k : k + step] for k in range(0, len(kept), step)]
    summaries = [sum((s for _, s in part), Summary()) for part in parts]
    intervals = intervals_from_sums(as_sums(summaries), LEVEL)
    names = (tuple(name for name, _ in part) for part in parts)
    return [Slot(*slot) for slot in zip(names, summaries, intervals, strict=True)], what


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
        _picture("windows", found, what, marked),
        f"Above 0 over-confident, below 0 under-confident. Grey: the {percent(LEVEL)} interval of each {what} by "
        f"itself; dots are filled where it leaves out 0. One of many may do so by chance: the evidence decides.",
        f"{merged}{rest}",
    )


def _picture(name: str, found: Sequence[Slot], what: str, alarms: Mapping[str, str]) -> Markup:
    """Return the picture; alarms are names of windows, with the numbers that the table gives their alarms."""
    x = Scale(-0.5, len(found) - 0.5, _LEFT, _RIGHT)
    y = _heights(found)
    levels = y.ticks(6)
    parts = [
        element("rect", x=_LEFT, y=_TOP, width=_RIGHT - _LEFT, height=y(0.0) - _TOP, class_="zone"),
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in levels),
        *(label(_LEFT - 6.0, y(t) + 4.0, tick_text(t), anchor="end") for t in levels),
        *_band(found, x, y),
        line(_LEFT, y(0.0), _RIGHT, y(0.0), "neutral"),
        *_alarms(found, alarms, x),
        *_dots(found, x, y),
        label(_LEFT + 5.0, _TOP + 14.0, "over-confident", "zone-text"),
        *([label(_LEFT + 5.0, _BOTTOM - 6.0, "under-confident", "faint")] if y(0.0) < _BOTTOM - 24 else []),
        *_rows(found, x),
        *_names(found, x),
        label((_LEFT + _RIGHT) / 2.0, _FLOOR + 42.0, what, "axis-name", "middle"),
        upright("ECD, nat", 12.0, (_TOP + _BOTTOM) / 2.0),
        upright("rows", 12.0, _FLOOR - _TALLEST / 2.0),
    ]
    return picture(name, _SIZE, f"ECD by {what}", _described(found, what), *parts)


def _heights(found: Sequence[Slot]) -> Scale:
    """Return a scale that holds every finite value; intervals may run out of it."""
    values = [s.ecd.value for s in found if math.isfinite(s.ecd.value)]
    reach = 2.5 * max([0.02, *map(abs, values)])
    ends = [end for s in found for end in (s.ecd.low, s.ecd.high) if math.isfinite(end)]
    low = max(min([-0.02, *values, *ends]), -reach)
    high = min(max([0.04, *values, *ends]), reach)
    pad = 0.06 * (high - low)
    return Scale(low - pad, high + pad, _BOTTOM, _TOP)


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
            parts.append(shape([(at, _TOP - 1.0), (at - 6.0, _TOP + 9.0), (at + 6.0, _TOP + 9.0)], "over"))
        elif clear or len(found) <= _CROWD:
            side = "over" if value > 0.0 else "under"
            radius = 4.0 if len(found) <= _CROWD else 2.0
            fill = side if clear else f"{side} hollow"
            parts.append(element("circle", cx=at, cy=y(value), r=radius, class_=fill))
    return parts


def _alarms(found: Sequence[Slot], alarms: Mapping[str, str], x: Scale) -> list[Markup]:
    parts = []
    free = -math.inf
    for k, slot in enumerate(found):
        numbers = [alarms[name] for name in slot.names if name in alarms]
        if not numbers:
            continue
        at, text = x(k), shortened(", ".join(numbers), 12)
        parts.append(line(at, _TOP, at, _BOTTOM, "alarm"))
        parts.append(shape([(at, _TOP), (at - 5.0, _TOP - 8.0), (at + 5.0, _TOP - 8.0)], "alarm-mark"))
        half = sized(text) / 2.0
        if at - half > free:
            parts.append(label(min(at, _SIZE[0] - half - 3.0), _TOP - 12.0, text, "small value", "middle"))
            free = at + half + 2.0
    return parts


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


def _described(found: Sequence[Slot], what: str) -> str:
    last = found[-1]
    clear = sum(s.ecd.low > 0.0 for s in found)
    text = f"ECD of {len(found)} {what}{'' if len(found) == 1 else 'es' if what == 'batch' else 's'}. "
    text += f"In {clear} of them the interval lies above 0. "
    text += f"The last, {shortened(last.name, 60)}: {shown(last.ecd.value, signed=True)} nat, "
    return text + f"{shown(last.ecd.low, signed=True)} to {shown(last.ecd.high, signed=True)}."
