"""The history page: one file that shows how a watched model has done, and how it stands now."""

import math
from collections.abc import Hashable, Mapping
from datetime import datetime

from .._optional import version
from .._sums.summary import as_sums
from ..html import (
    Markup,
    element,
    evidence_text,
    grouped,
    in_utc,
    interval_text,
    join,
    metric_text,
    moment_text,
    percent,
    plain,
    rows_text,
    shortened,
    unbroken,
    whole_dates,
    with_code,
)
from ..html.frame import SORT_HINT, TableColumn, file_of, icon, number_table, pairs_table, section, sorting_table
from ..inference import Interval
from ..inference.sum_bounds import interval_from_sums, intervals_together
from .history import LEVEL, History, Judged, Raised, Reading, Slot, group_names, log10, shown_groups, window_slots
from .page_pictures import pictures_section
from .words import State, group_is_mild, name_markup, run_length_text, state

__all__ = ["history_page"]

_ROWS_LISTED = 200  # alarms, and groups, in a table
_NAME_LENGTH = 60  # characters of a name


def history_page(history: History, *, title: str | None = None, created: datetime | None = None) -> str:
    """Return the history of a watched model as one HTML file.

    First how it stands now and since when, then ECD by window, the evidence with its thresholds, the alarms and the
    groups. The file asks the network for nothing and holds sums only, no row of the data. Whatever comes from the data
    is escaped.

    Parameters
    ----------
    history : History
        What is known of the model.
    title : str, optional
        The heading; by default a question.
    created : datetime, optional
        When the page was made; by default now. With the same time, pages are the same.

    Returns
    -------
    str
        The file.

    Examples
    --------
    >>> from safecal.monitor import Monitor
    >>> from safecal.watch.history import History
    >>> page = history_page(History(Monitor()))
    >>> page.splitlines()[0], "NO ROWS YET" in page
    ('<!DOCTYPE html>', True)
    """
    title, created_at, now = title or "Is this model still calibrated?", in_utc(created), state(history)
    windows, unit = window_slots(history)
    main = [
        _state_section(now),
        _numbers_section(history, windows, unit),
        pictures_section(history, windows, unit) if history.points else None,
        _alarms_section(history) if history.alarms else None,
        _groups_section(history) if history.monitor.groups else None,
        _settings_section(history),
    ]
    return file_of(
        f"{now.title}: {title}", now.tone, _header(history, title), main, made=created_at, holds="sums only",
        skip="Skip to the state",
    )  # fmt: skip


def _header(history: History, title: str) -> Markup:
    facts = [rows_text(history.monitor.summary.n), _batch_count(history)]
    if history.monitor.groups:
        facts.append(_counted(len(history.monitor.groups), "group", "groups"))
    if history.points:
        facts.append(f"last update {moment_text(history.points[-1].received)}")
    return element(
        "header",
        element("p", "safecal watch", class_="brand"),
        element("h1", element("bdi", title)),
        element("p", join((element("span", whole_dates(fact)) for fact in facts), " "), class_="facts"),
    )


def _batch_count(history: History) -> str:
    return _counted(len({point.batch for point in history.points}), "batch", "batches")


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{grouped(count)} {singular if count == 1 else plural}"


def _state_section(now: State) -> Markup:
    long = "decision long" if len(now.title) > 16 else "decision"
    heading = element("h2", now.title, id="state", class_=long)
    words = element("div", heading, element("p", now.headline, class_="headline"))
    banner = element("div", icon(now.decision), words, class_="banner")
    steps = [element("li", element("strong", what), " ", with_code(how)) for what, how in now.steps]
    meaning = [element("p", whole_dates(with_code(unbroken(text)))) for text in now.meaning]
    columns = element(
        "div",
        element("div", element("h3", "What it means"), *meaning) if meaning else None,
        element("div", element("h3", "What to do next"), element("ol", *steps)),
        class_="columns",
    )
    reason = element("p", whole_dates(now.reason), class_="reason")
    return element("section", banner, reason, columns, aria_labelledby="state", class_="verdict")


def _numbers_section(history: History, windows: list[Slot], unit: str) -> Markup:
    reading = Reading.of(history.monitor)
    last = _window_card(windows[-1], unit) if windows else None
    cards = element("div", last, _change_card(reading), class_="cards") if last is not None else None
    return section("numbers", "The numbers", cards, number_table(_number_rows(history, reading)))


def _window_card(slot: Slot, unit: str) -> Markup:
    ecd = slot.ecd
    if ecd.value == math.inf:
        remark = "Something happened that had probability 0."
    elif ecd.low > 0.0:
        remark = "Over-confident, by these rows alone."
    else:
        remark = "Under-confident, by these rows alone." if ecd.high < 0.0 else "It may lie on either side of 0."
    about = join(["in the last ", unit, ", ", name_markup(slot.name), f", of {rows_text(slot.summary.n)}"])
    suffix = " nat" if math.isfinite(ecd.value) else None
    between = f"{percent(ecd.level)} interval {interval_text(ecd, signed=True)}" if math.isfinite(ecd.value) else None
    return element(
        "div",
        element("h3", "ECD ", element("span", about, class_="about")),
        element("p", element("span", metric_text(ecd.value, signed=True), class_="value"), suffix, class_="figure"),
        None if between is None else element("p", between, class_="between"),
        element("p", remark, class_="says"),
        class_="card",
    )


def _change_card(reading: Reading) -> Markup:
    remark = "The alarm was raised." if reading.changed else "There is no new change."
    about = element("span", "that it became over-confident at some row", class_="about")
    return element(
        "div",
        element("h3", "Evidence of a change ", about),
        element("p", element("span", evidence_text(reading.change), class_="value"), class_="figure"),
        element("p", f"an alarm needs {evidence_text(reading.change_threshold)}", class_="between"),
        element("p", remark, class_="says"),
        class_="card",
    )


def _number_rows(history: History, reading: Reading) -> list[tuple[str, str, str]]:
    s, monitor = reading.summary, history.monitor
    numbers = [("rows", grouped(s.n), f"in {_batch_count(history)}")]
    if s.n:
        interval = interval_from_sums(s, LEVEL)
        between = f"{percent(LEVEL)} interval {interval_text(interval, signed=True)}"
        about = f"nat over all rows, {between}; above 0 is over-confident"
        if s.n_impossible:
            about = f"over all rows; without the impossible ones {metric_text(s.ecd_possible, signed=True)} nat"
        numbers.append(("ECD", metric_text(s.ecd, signed=True), about))
    judged = Judged.last(monitor)
    if judged is not None:
        about = f"of {judged.name}, as `safecal.evaluate` would judge it: {judged.verdict.reason}"
        numbers.append(("verdict", judged.verdict.decision, about))
    for direction, log in reading.evidence.items():
        threshold = evidence_text(reading.thresholds[direction])
        numbers.append((direction, evidence_text(log), f"e-value since the start; an alarm needs {threshold}"))
    if reading.other_change is not None:
        about = f"evidence that it became under-confident; an alarm needs {evidence_text(reading.change_threshold)}"
        numbers.append(("other change", evidence_text(reading.other_change), about))
    numbers.append(("impossible", grouped(s.n_impossible), "rows had an outcome with probability 0"))
    about = "rows or files were set aside, because they could not be read"
    numbers.append(("quarantined", grouped(history.quarantined), about))
    numbers.append(("alarms", grouped(len(history.alarms)), "raised so far, about all rows or a group"))
    if monitor.groups:
        n_over = sum(Reading.of(monitor, group).over_confident for group in monitor.groups)
        numbers.append(("groups", grouped(len(monitor.groups)), f"{grouped(n_over)} of them over-confident"))
    return numbers


def _alarms_section(history: History) -> Markup:
    lead = "Rows are counted from 0; those of a group are counted within the group. Evidence is in powers of ten. "
    left = len(history.alarms) - _ROWS_LISTED
    note = element("p", f"{grouped(left)} earlier alarms are left out.", class_="note") if left > 0 else None
    return section("alarms", "The alarms", element("p", lead, SORT_HINT, class_="lead"), _alarm_table(history), note)


def _groups_section(history: History) -> Markup:
    table, left = _group_table(history)
    lead = f"The bounds “at least” and “at most” of ECD hold for all groups shown together, at {percent(LEVEL)}. "
    lead += "Evidence is in powers of ten. "
    note = None
    if left:
        total = grouped(len(history.monitor.groups))
        text = f"{grouped(left)} of {total} groups are left out, none with stronger evidence than those shown."
        note = element("p", text, class_="note")
    return section("groups", "The groups", element("p", lead, SORT_HINT, class_="lead"), table, note)


def _settings_section(history: History) -> Markup:
    monitor = history.monitor
    last = moment_text(history.points[-1].received) if history.points else "never"
    length = f"at least {run_length_text(monitor.run_length)} between two false alarms of a change, on average"
    settings = [
        ("alpha", f"{plain(monitor.alpha)}: probability that evidence since the start ever raises a false alarm"),
        ("run_length", length),
        ("form", monitor.form),
        ("grouped", "yes: all rows and the groups share alpha and run_length" if monitor.grouped else "no"),
    ]
    origin = [("last update", last), ("safecal", version())]
    if history.points:
        origin.insert(0, ("first update", moment_text(history.points[0].received)))
        origin.insert(2, ("last batch", history.points[-1].batch[:200]))
    tables = element("div", pairs_table(settings, "Settings"), pairs_table(origin, "Origin"), class_="columns")
    return section("details", "How it was watched", tables)


def _alarm_table(history: History) -> Markup:
    """Return the alarms, the latest first."""
    columns = [
        TableColumn("alarm", "number", "descending"),
        TableColumn("raised, UTC", "text"),
        TableColumn("who", "text"),
        TableColumn("what", "text"),
        TableColumn("size", "text"),
        TableColumn("at row", "number"),
        TableColumn("since row", "number"),
        TableColumn("window", "text"),
        TableColumn("evidence", "number"),
        TableColumn("threshold", "number"),
        TableColumn("batch", "text"),
    ]
    names = group_names(history.monitor.groups)
    latest = [*enumerate(history.alarms, 1)][::-1][:_ROWS_LISTED]
    body = [_alarm_row(str(number), raised, names) for number, raised in latest]
    return sorting_table(columns, body, "Alarms, the latest first")


def _alarm_row(number: str, raised: Raised, names: Mapping[Hashable, str]) -> Markup:
    alarm = raised.alarm
    who = "all rows" if alarm.group is None else names.get(alarm.group, str(alarm.group))
    what = "changed" if alarm.kind == "change" else "not calibrated since the start"
    cells = [
        _text_cell(moment_text(raised.at).removesuffix(" UTC")),
        _text_cell(who),
        _text_cell(f"{what}, {alarm.cause}"),
        _text_cell("" if alarm.size is None else str(alarm.size)),
        _number_cell(grouped(alarm.row)),
        _number_cell(grouped(alarm.began)),
        _text_cell(alarm.window or ""),
        _number_cell(_log_text(log10(alarm.log_e_value))),
        _number_cell(_log_text(log10(alarm.log_threshold))),
        _text_cell(raised.batch),
    ]
    return element("tr", element("th", number, scope="row", class_="n"), *cells)


def _log_text(value: float) -> str:
    """Return a logarithm to the base 10 in two decimals."""
    return metric_text(value, signed=True) if math.isinf(value) else f"{value:+.2f}"


def _group_table(history: History) -> tuple[Markup, int]:
    """Return the groups, the worst first, and how many of them are left out."""
    numbers = ("rows", "ECD", "at least", "at most", "since the start", "threshold", "change", "threshold")
    columns = [TableColumn("group", "text"), *(TableColumn(name, "number") for name in numbers)]
    columns.append(TableColumn("finding", "text"))
    names = group_names(history.monitor.groups)
    worst, left = shown_groups(history.monitor, _ROWS_LISTED)
    intervals = intervals_together(as_sums([reading.summary for _, reading in worst]), LEVEL)
    body = [
        _group_row(names[group], reading, interval, reading.over_confident and group_is_mild(history, group))
        for (group, reading), interval in zip(worst, intervals, strict=True)
    ]
    return sorting_table(columns, body, "Groups, the worst first"), left


def _group_row(name: str, reading: Reading, ecd: Interval, mild: bool) -> Markup:
    beyond = reading.over_confident and not mild
    finding = "over-confident" if beyond else "too sharp, within the limits" if reading.over_confident else ""
    if not finding and reading.raised:
        finding = {"under-confident": "too vague"}.get(reading.raised[0], reading.raised[0])
    numbers = [
        grouped(reading.summary.n),
        *(metric_text(x, signed=True) for x in (reading.summary.ecd, ecd.low, ecd.high)),
        *(_log_text(x) for x in (reading.over, reading.threshold, reading.change, reading.change_threshold)),
    ]
    head = element("th", element("bdi", shortened(name, _NAME_LENGTH)), scope="row")
    cells = [*map(_number_cell, numbers), element("td", finding)]
    return element("tr", head, *cells, class_="beyond" if beyond else None)


def _number_cell(text: str) -> Markup:
    return element("td", text, class_="none" if text == "N/A" else None)


def _text_cell(text: str) -> Markup:
    return element("td", element("bdi", whole_dates(shortened(text, _NAME_LENGTH))), class_="t")
