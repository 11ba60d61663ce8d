"""The pictures of the history page: ECD by window, and both kinds of evidence."""

import math

from ...report.markup import Markup, element
from ...report.numbers import grouped, percent, rows, together
from ..history import History
from ..readings import Reading, log10
from .curves import STRETCHES, Curve, evidence_picture
from .listing import alarm_numbers
from .windows_picture import LEVEL, Slot, windows_picture

__all__ = ["pictures_section", "section"]


def section(name: str, heading: str, *parts: str | None) -> Markup:
    """Return a section of the page with its heading."""
    return element("section", element("h2", heading, id=name), *parts, aria_labelledby=name)


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
        return evidence_picture(name, title, curves, marks("since the start", *directions), "e-value")

    count = len(history.points)
    thin = ""
    if count > 2 * STRETCHES:
        thin = f" Of {grouped(count)} batches, the highest and the last of each of {STRETCHES} stretches are drawn."
    both = "under-confident" in reading.changing and bool(paths.get("other"))
    names = {"change": "to over-confident", "other": "to under-confident"} if both else {"change": "change"}
    detector = evidence_picture(
        "detector", "Evidence of a change",
        [Curve(names[part], paths[part], reading.change_threshold) for part in names],
        marks("change", "over-confident", "under-confident"), "detector",
    )  # fmt: skip
    shifts = [direction for direction in ("shifted up", "shifted down") if paths.get(direction)]
    parts = [
        _windows_figure(history, found, what) if found else None,
        _figure(
            "Was it calibrated since the start?",
            process("process", "Evidence since the start", "over-confident", "under-confident"),
            "The evidence against it after each batch, on a scale of powers of ten; 1 is none, and far below 1 it lies "
            "at the edge. It may be looked at after every row.",
            thin,
        ),
        _figure(
            "Does the event happen as often as it says?",
            process("shifts", "Evidence of a shift since the start", *shifts),
            "The evidence since the start of a shift in its log-odds. Shifted up: the event happens more often than it "
            "says; shifted down: less often.",
            thin,
        )
        if shifts
        else None,
        _figure(
            "Did it change?" if both else "Did it become over-confident?",
            detector,
            "The detector's statistic after each batch. Triangles are alarms, with their numbers in the table; after "
            "one, it stays silent until the alarm is acknowledged.",
            thin,
        ),
    ]
    return section("pictures", "The pictures", element("div", *parts, class_="pictures"))


def _windows_figure(history: History, found: list[Slot], what: str) -> Markup:
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
    return _figure(
        f"How surprised was it? ECD by {what}",
        windows_picture("windows", found, what, marked),
        f"Above 0 over-confident, below 0 under-confident. Grey: the {percent(LEVEL)} interval of each {what} by "
        f"itself; dots are filled where it leaves out 0. One of many may do so by chance: the evidence decides.",
        f"{merged}{rest}",
    )


def _figure(heading: str, image: Markup, *caption: str) -> Markup:
    return element(
        "figure", element("h3", heading), image, element("figcaption", *(together(part) for part in caption))
    )


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
