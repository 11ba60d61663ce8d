"""The history page: one file that shows how a watched model has done, and how it stands now."""

import math
from collections.abc import Hashable, Mapping
from datetime import datetime

from .._optional import version
from .._sums.summary import as_sums
from ..html.frame import PRESS, Column, file_of, icon, number_table, pairs_table, section, sorting_table
from ..html.markup import (
    Markup,
    element,
    ends,
    evidence,
    grouped,
    in_utc,
    join,
    moment_text,
    percent,
    plain,
    rows,
    shortened,
    shown,
    together,
    with_code,
)
from ..inference.sum_bounds import interval_from_sums, intervals_together
from .history import LEVEL, History, Raised, Slot, alarm_numbers, slots
from .page_pictures import pictures_section
from .page_words import State, named, state
from .standing import Judged, Reading, group_is_mild, group_names, log10, shown_groups

__all__ = ["LISTED", "alarm_table", "group_table", "history_page"]


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
        When the page was made; by default now. Given the same, pages are the same.

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
    title, made, now = title or "Is this model still calibrated?", in_utc(created), state(history)
    found, what = slots(history)
    main = [
        _state_section(now),
        _numbers_section(history, found, what),
        pictures_section(history, found, what) if history.points else None,
        _alarms_section(history) if history.alarms else None,
        _groups_section(history) if history.monitor.groups else None,
        _settings_section(history),
    ]
    return file_of(
        f"{now.title}: {title}", now.tone, _header(history, title), main, made=made, holds="sums only",
        skip="Skip to the state",
    )  # fmt: skip


def _header(history: History, title: str) -> Markup:
    facts = [rows(history.monitor.summary.n), _batches(history)]
    if history.monitor.groups:
        facts.append(_many(len(history.monitor.groups), "group", "groups"))
    if history.points:
        facts.append(f"last update {moment_text(history.points[-1].received)}")
    return element(
        "header",
        element("p", "safecal watch", class_="brand"),
        element("h1", element("bdi", title)),
        element("p", join((element("span", fact) for fact in facts), " "), class_="facts"),
    )


def _batches(history: History) -> str:
    return _many(len({point.batch for point in history.points}), "batch", "batches")


def _many(count: int, one: str, more: str) -> str:
    return f"{grouped(count)} {one if count == 1 else more}"


def _state_section(now: State) -> Markup:
    long = "decision long" if len(now.title) > 16 else "decision"
    banner = element(
        "div",
        icon(now.shape),
        element(
            "div", element("h2", now.title, id="state", class_=long), element("p", now.headline, class_="headline")
        ),
        class_="banner",
    )
    steps = [element("li", element("strong", what), " ", with_code(how)) for what, how in now.steps]
    meaning = [element("p", with_code(together(said))) for said in now.meaning]
    columns = element(
        "div",
        element("div", element("h3", "What it means"), *meaning) if meaning else None,
        element("div", element("h3", "What to do next"), element("ol", *steps)),
        class_="columns",
    )
    reason = element("p", now.reason, class_="reason")
    return element("section", banner, reason, columns, aria_labelledby="state", class_="verdict")


def _numbers_section(history: History, found: list[Slot], what: str) -> Markup:
    reading = Reading.of(history.monitor)
    last = _window_card(found[-1], what) if found else None
    cards = element("div", last, _change_card(reading), class_="cards") if last is not None else None
    return section("numbers", "The numbers", cards, number_table(_number_rows(history, reading)))


def _window_card(slot: Slot, what: str) -> Markup:
    at = slot.ecd
    if at.value == math.inf:
        said = "Something happened that had probability 0."
    elif at.low > 0.0:
        said = "Over-confident, by these rows alone."
    else:
        said = "Under-confident, by these rows alone." if at.high < 0.0 else "It may lie on either side of 0."
    about = join(["in the last ", what, ", ", named(slot.name), f", of {rows(slot.summary.n)}"])
    unit = " nat" if math.isfinite(at.value) else None
    between = f"{percent(at.level)} interval {ends(at, signed=True)}" if math.isfinite(at.value) else None
    return element(
        "div",
        element("h3", "ECD ", element("span", about, class_="about")),
        element("p", element("span", shown(at.value, signed=True), class_="value"), unit, class_="figure"),
        None if between is None else element("p", between, class_="between"),
        element("p", said, class_="says"),
        class_="card",
    )


def _change_card(reading: Reading) -> Markup:
    said = "The alarm was raised." if reading.changed else "There is no new change."
    return element(
        "div",
        element(
            "h3", "Evidence of a change ", element("span", "that it became over-confident at some row", class_="about")
        ),
        element("p", element("span", evidence(reading.change), class_="value"), class_="figure"),
        element("p", f"an alarm needs {evidence(reading.change_threshold)}", class_="between"),
        element("p", said, class_="says"),
        class_="card",
    )


def _number_rows(history: History, reading: Reading) -> list[tuple[str, str, str]]:
    s, monitor = reading.summary, history.monitor
    found = [("rows", grouped(s.n), f"in {_batches(history)}")]
    if s.n:
        at = interval_from_sums(s, LEVEL)
        between = f"nat over all rows, {percent(LEVEL)} interval {ends(at, signed=True)}; above 0 is over-confident"
        if s.n_impossible:
            between = f"over all rows; without the impossible ones {shown(s.ecd_possible, signed=True)} nat"
        found.append(("ECD", shown(s.ecd, signed=True), between))
    judged = Judged.last(monitor)
    if judged is not None:
        said = f"of {judged.name}, as `safecal.evaluate` would judge it: {judged.verdict.reason}"
        found.append(("verdict", judged.verdict.decision, said))
    for direction, log in reading.evidence.items():
        asked = evidence(reading.thresholds[direction])
        found.append((direction, evidence(log), f"e-value since the start; an alarm needs {asked}"))
    if reading.other_change is not None:
        asked = f"evidence that it became under-confident; an alarm needs {evidence(reading.change_threshold)}"
        found.append(("other change", evidence(reading.other_change), asked))
    found.append(("impossible", grouped(s.n_impossible), "rows had an outcome with probability 0"))
    found.append(
        ("quarantined", grouped(history.quarantined), "rows or files were set aside, because they could not be read")
    )
    found.append(("alarms", grouped(len(history.alarms)), "raised so far, of all rows and of groups"))
    if monitor.groups:
        bad = sum(Reading.of(monitor, group).over_confident for group in monitor.groups)
        found.append(("groups", grouped(len(monitor.groups)), f"{grouped(bad)} of them over-confident"))
    return found


def _alarms_section(history: History) -> Markup:
    lead = "Rows are counted from 0; those of a group are counted within the group. Evidence is in powers of ten. "
    left = len(history.alarms) - LISTED
    note = element("p", f"{grouped(left)} earlier alarms are left out.", class_="note") if left > 0 else None
    return section(
        "alarms",
        "The alarms",
        element("p", lead, PRESS, class_="lead"),
        alarm_table(history),
        note,
    )


def _groups_section(history: History) -> Markup:
    table, left = group_table(history, LEVEL)
    lead = f"The bounds “at least” and “at most” of ECD hold for all groups shown together, at {percent(LEVEL)}. "
    lead += "Evidence is in powers of ten. "
    note = None
    if left:
        total = grouped(len(history.monitor.groups))
        said = f"{grouped(left)} of {total} groups are left out, none with stronger evidence than those shown."
        note = element("p", said, class_="note")
    return section("groups", "The groups", element("p", lead, PRESS, class_="lead"), table, note)


def _settings_section(history: History) -> Markup:
    monitor = history.monitor
    last = moment_text(history.points[-1].received) if history.points else "never"
    settings = [
        ("alpha", f"{plain(monitor.alpha)}: probability that evidence since the start ever raises a false alarm"),
        (
            "run_length",
            f"{grouped(round(monitor.run_length))} rows between false alarms of a change, on average at least",
        ),
        ("form", monitor.form),
        ("grouped", "yes: all rows and the groups share alpha and run_length" if monitor.grouped else "no"),
    ]
    made = [("last update", last), ("safecal", version())]
    if history.points:
        made.insert(0, ("first update", moment_text(history.points[0].received)))
        made.insert(2, ("last batch", history.points[-1].batch[:200]))
    tables = element("div", pairs_table(settings, "Settings"), pairs_table(made, "Origin"), class_="columns")
    return section("details", "How it was watched", tables)


LISTED = 200  # alarms, and groups, in a table
_LONGEST = 60  # characters of a name


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
        Column("threshold", "number"),
        Column("batch", "text"),
    ]
    names = group_names(history.monitor.groups)
    latest = [*zip(alarm_numbers(history), history.alarms, strict=True)][::-1][:LISTED]
    body = [_alarm(number, raised, names) for number, raised in latest]
    return sorting_table(columns, body, "Alarms, the latest first")


def _alarm(number: str, raised: Raised, names: Mapping[Hashable, str]) -> Markup:
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
        _number_cell(_digits(log10(alarm.log_e_value))),
        _number_cell(_digits(log10(alarm.log_threshold))),
        _text_cell(raised.batch),
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
        Column("since the start", "number"),
        Column("threshold", "number"),
        Column("change", "number"),
        Column("threshold", "number"),
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
    cells = [*map(_number_cell, numbers), element("td", said)]
    return element("tr", head, *cells, class_="beyond" if beyond else None)


def _number_cell(text: str) -> Markup:
    return element("td", text, class_="none" if text == "N/A" else None)


def _text_cell(text: str) -> Markup:
    return element("td", element("bdi", shortened(text, _LONGEST)), class_="t")
