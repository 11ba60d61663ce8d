"""The alarms and the groups of a watched model, as tables that sort when a header is pressed."""

import math
from collections.abc import Hashable, Mapping

from ..._sums.summary import as_sums
from ...html.frame import Column, sorting_table
from ...html.markup import Markup, element, shortened
from ...html.numbers import grouped, moment_text, shown
from ...inference.sum_bounds import intervals_together
from ..history import History, Raised
from ..standing import Reading, group_is_mild, group_names, log10, shown_groups

__all__ = ["LISTED", "alarm_numbers", "alarm_table", "group_table"]

LISTED = 200  # alarms, and groups, in a table
_LONGEST = 60  # characters of a name


def alarm_numbers(history: History) -> list[str]:
    """Return what the table and the pictures call each alarm."""
    return [str(k + 1) for k in range(len(history.alarms))]


def alarm_table(history: History) -> Markup:
    """Return the alarms, the latest first."""
    columns = [
        Column("alarm", "number", "descending"),
        Column("raised, UTC", "text"),
        Column("who", "text"),
        Column("what", "text"),
        Column("size", "text"),
        Column("at row", "number"),
        Column("since row", "number"),
        Column("window", "text"),
        Column("evidence", "number"),
        Column("asked", "number"),
        Column("batch", "text"),
    ]
    names = group_names(history.monitor.groups)
    latest = [*zip(alarm_numbers(history), history.alarms, strict=True)][::-1][:LISTED]
    body = [_alarm(number, raised, names) for number, raised in latest]
    return sorting_table(columns, body, "Alarms, the latest first")


def _alarm(number: str, raised: Raised, names: Mapping[Hashable, str]) -> Markup:
    alarm = raised.alarm
    who = "all rows" if alarm.group is None else names.get(alarm.group, str(alarm.group))
    what = "changed" if alarm.kind == "change" else "not calibrated throughout"
    cells = [
        _text(moment_text(raised.at).removesuffix(" UTC")),
        _text(who),
        _text(f"{what}, {alarm.cause}"),
        _text("" if alarm.size is None else str(alarm.size)),
        _number(grouped(alarm.row)),
        _number(grouped(alarm.began)),
        _text(alarm.window or ""),
        _number(_digits(log10(alarm.log_e_value))),
        _number(_digits(log10(alarm.log_threshold))),
        _text(raised.batch),
    ]
    return element("tr", element("th", number, scope="row", class_="n"), *cells)


def _digits(value: float) -> str:
    """Return a logarithm to the base 10 in two decimals."""
    return shown(value, signed=True) if math.isinf(value) else f"{value:+.2f}"


def group_table(history: History, level: float = 0.95) -> tuple[Markup, int]:
    """Return the groups, the worst first, and how many of them are left out."""
    columns = [
        Column("group", "text"),
        Column("rows", "number"),
        Column("ECD", "number"),
        Column("at least", "number"),
        Column("at most", "number"),
        Column("over", "number"),
        Column("alarm from", "number"),
        Column("change", "number"),
        Column("change from", "number"),
        Column("finding", "text"),
    ]
    names = group_names(history.monitor.groups)
    found, left = shown_groups(history.monitor, LISTED)
    ends = intervals_together(as_sums([reading.summary for _, reading in found]), level)
    body = [
        _group(names[group], reading, at.low, at.high, reading.over_confident and group_is_mild(history, group))
        for (group, reading), at in zip(found, ends, strict=True)
    ]
    return sorting_table(columns, body, "Groups, the worst first"), left


def _group(name: str, reading: Reading, low: float, high: float, mild: bool) -> Markup:
    beyond = reading.over_confident and not mild
    said = "over-confident" if beyond else "too sharp, within the limits" if reading.over_confident else ""
    if not said and reading.raised:
        said = {"under-confident": "too vague"}.get(reading.raised[0], reading.raised[0])
    numbers = [
        grouped(reading.summary.n),
        *(shown(x, signed=True) for x in (reading.summary.ecd, low, high)),
        *(_digits(x) for x in (reading.over, reading.threshold, reading.change, reading.change_threshold)),
    ]
    head = element("th", element("bdi", shortened(name, _LONGEST)), scope="row")
    cells = [*map(_number, numbers), element("td", said)]
    return element("tr", head, *cells, class_="beyond" if beyond else None)


def _number(text: str) -> Markup:
    return element("td", text, class_="none" if text == "N/A" else None)


def _text(text: str) -> Markup:
    return element("td", element("bdi", shortened(text, _LONGEST)), class_="t")
