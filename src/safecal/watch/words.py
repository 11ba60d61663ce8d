"""How a watched model stands now, and since when, in words: what the page says first, and the status at a terminal.

The limits are those of `safecal.evaluate`, and so is the rule: it judges the windows that keep all their sums.
"""

import math
import textwrap
from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from .._sums.summary import Summary
from .._sums.table_views import key_label
from ..errors import shortened, visible
from ..html import Markup, element, evidence_text, grouped, join, moment_text, rows_text
from ..inference.sum_bounds import interval_from_sums
from ..judge.verdict import SAFE, UNDETERMINED, UNSAFE
from ..monitor import Alarm, Monitor
from ..monitor.alarm import Size
from ..monitor.records import DETECT
from ..options import Limits
from .history import History, Judged, Raised, Reading, group_names, log10, power_of_ten
from .store import Store

__all__ = ["State", "group_is_mild", "name_markup", "run_length_text", "state", "status_text"]

_COUNTLESS = 1e12  # rows
_GROUPS_NAMED = 3  # groups that a sentence names
_GROUPS_LISTED = 20  # at a terminal
_ASIDES_LISTED = 5
_ACKNOWLEDGE = (
    "Acknowledge the alarm when you have dealt with it.",
    "After `safecal watch acknowledge`, the detector looks for the next change.",
)
_NO_CHANGE = "The detector sees no new change."
_ALARM_STAYS = "The alarm since the start stays: it is about all rows, including old ones."


@final
@dataclass(frozen=True, slots=True)
class State:
    """What the page says first."""

    title: str  # a word or two
    decision: str  # of a report that has the same icon
    tone: str  # the class of its colours
    headline: str  # as one would say it aloud
    reason: str | Markup  # why, and since when
    meaning: tuple[str, ...]  # a paragraph each
    steps: tuple[tuple[str, str], ...]  # what to do, and how


def state(history: History) -> State:
    """Say how the model stands now: all rows first, then the groups; over-confidence before a shift before caution."""
    monitor = history.monitor
    total = Reading.of(monitor)
    if total.summary.n == 0:
        return _no_rows_state()
    over_confident = [group for group in monitor.groups if Reading.of(monitor, group).over_confident_now]
    if total.over_confident_now:
        return _over_state(history, total, over_confident)
    if over_confident:
        return _groups_state(history, over_confident)
    for direction in ("shifted up", "shifted down"):
        if direction in total.raised and total.evidence[direction] >= total.thresholds[direction]:
            return _shifted_state(history, direction)
    if total.over_confident:
        return _past_state(history, total, "over-confident", "WAS OVER-CONFIDENT")
    for direction in ("shifted up", "shifted down"):
        if direction in total.raised:
            return _past_state(history, total, direction, "WAS SHIFTED")
    if "under-confident" in (*total.raised, *total.changes):
        return _under_state(history, total)
    return _quiet_state(total)


def name_markup(name: str) -> Markup:
    """Return the name of a window or batch, which no line break parts if it is short."""
    return element("bdi", shortened(name, 60), class_="name" if len(name) <= 20 else None)


def _when(raised: Raised) -> str:
    return f"The alarm was raised at row {grouped(raised.alarm.row)}, on {moment_text(raised.at)}."


def _since(history: History, reading: Reading, direction: str = "over-confident", group: Hashable = None) -> Markup:
    """Say since when, which way and how far beyond the limits, as the alarm has it."""
    raised = current_alarm(history, reading, direction, group)
    if raised is None:
        return join(["All of its rows together are evidence that it was not calibrated since the start."])
    alarm = raised.alarm
    if alarm.kind == "since the start":
        return join([f"It was {alarm.what}. {_when(raised)}"])
    window = history.monitor.window_of(alarm.began) if group is None else None
    where = [f" Row {grouped(alarm.began)} came in window ", name_markup(window), "."] if window is not None else []
    return join([f"It {alarm.what}.", *where, f" {_when(raised)}"])


def _over_state(history: History, reading: Reading, groups: list[Hashable]) -> State:
    impossible = reading.summary.n_impossible
    raised = current_alarm(history, reading, "over-confident")
    mild, judged = is_mild(history.monitor, None if raised is None else raised.alarm)
    headline = "It is more certain than it should be"
    if impossible:
        headline = "Something happened that it called impossible"
    meaning = [_promise(history, reading.changed)]
    if impossible:
        meaning.append(
            f"{rows_text(impossible)} had an outcome of probability 0. Since then evidence "
            "and ECD are infinite, and they stay infinite: fix the model, and watch it with a new store."
        )
    elif judged is not None:
        meaning.insert(0, str(judged))
    if not reading.changed:
        meaning.append(f"{_NO_CHANGE} {_ALARM_STAYS}")
    shifts = [last_alarm(history, "since the start", direction) for direction in ("shifted up", "shifted down")]
    meaning += [f"It was also {shift.alarm.what}." for shift in shifts if shift is not None]
    if groups:
        alone = "itself" if len(groups) == 1 else "themselves"
        meaning.append(f"{_count_groups(groups)} over-confident by {alone}: {_group_list(history, groups)}.")
    reason = _since(history, reading)
    if mild and not impossible:
        title = "CHANGED" if reading.changed else "NOT CALIBRATED"
        small = raised is None or raised.alarm.size is None or raised.alarm.size.within
        headline = (
            "It is too sharp, but within the limits" if small else "It is too sharp, but within the limits since then"
        )
        steps = _steps(reading.changed, mild=True)
        return State(title, UNDETERMINED, "undetermined", headline, reason, tuple(meaning), steps)
    return State("OVER-CONFIDENT", UNSAFE, "unsafe", headline, reason, tuple(meaning), _steps(reading.changed))


def _shifted_state(history: History, direction: str) -> State:
    """Say that the event happens more often than the model says, or less often; unsafe where a verdict says so."""
    raised = last_alarm(history, "since the start", direction)
    mild, judged = is_mild(history.monitor, None if raised is None else raised.alarm)
    unsafe = not mild if judged is None else judged.verdict.decision == UNSAFE
    often = "more" if direction == "shifted up" else "less"
    meaning = [] if judged is None else [str(judged)]
    meaning += [_promise(history, False), _ALARM_STAYS]
    steps = list(_steps(False, mild=mild))
    steps[-1] = (
        "Recalibrate shift and slope on fresh rows.",
        "A temperature does not correct a shift. A recalibrated model is a new one: watch it with a new store.",
    )
    return State(
        "SHIFTED",
        UNSAFE if unsafe else UNDETERMINED,
        "unsafe" if unsafe else "undetermined",
        f"The event happens {often} often than the model says",
        _since(history, Reading.of(history.monitor), direction),
        tuple(meaning),
        tuple(steps),
    )


def run_length_text(rows: float) -> str:
    """Say how many rows lie between false alarms; where they are more than anyone counts, as a power of ten.

    Examples
    --------
    >>> run_length_text(1e300)
    '10³⁰⁰ rows'
    """
    return rows_text(round(rows)) if rows < _COUNTLESS else f"{evidence_text(math.log10(rows))} rows"


def _promise(history: History, changed: bool) -> str:
    if changed:
        length = run_length_text(history.monitor.run_length)
        return f"If the model were calibrated, such an alarm would come at most once in {length}, on average."
    alpha = f"{history.monitor.alpha:g}"
    return f"If the model were calibrated, the probability of ever raising such an alarm would be at most {alpha}."


def _past_state(history: History, reading: Reading, direction: str, title: str) -> State:
    shrunk = f" Since then the evidence has fallen to {evidence_text(reading.evidence[direction])}."
    reason = join([_since(history, reading, direction), shrunk])
    headline = "There was an alarm, and there is no new one"
    meaning = (_NO_CHANGE, _ALARM_STAYS)
    step = ("If the model was replaced, watch it with a new store.", "Then the old rows no longer count.")
    return State(title, UNDETERMINED, "undetermined", headline, reason, meaning, (step,))


def _count_groups(groups: list[Hashable]) -> str:
    return "One group is" if len(groups) == 1 else f"{len(groups)} groups are"


def _group_list(history: History, groups: list[Hashable]) -> str:
    texts = group_names(history.monitor.groups)
    more = f" and {len(groups) - _GROUPS_NAMED} more" if len(groups) > _GROUPS_NAMED else ""
    return ", ".join(shortened(texts[group], 40) for group in groups[:_GROUPS_NAMED]) + more


def _groups_state(history: History, groups: list[Hashable]) -> State:
    single = len(groups) == 1
    monitor = history.monitor
    mild = all(group_is_mild(history, group) for group in groups)
    headline = f"{_count_groups(groups)} {'too sharp, but within the limits' if mild else 'over-confident'}"
    since = _since(history, Reading.of(monitor, groups[0]), group=groups[0]) if single else None
    reason = join([f"{_group_list(history, groups)}. ", since])
    meaning = (
        "All rows together raise no alarm: a small group hardly changes them, and other groups may cancel it.",
        "Rows of a group are counted within the group. Groups have higher thresholds, so that all of them together "
        "raise no more false alarms than promised.",
    )
    title = f"{'NOT CALIBRATED' if mild else 'OVER-CONFIDENT'} IN {'A GROUP' if single else f'{len(groups)} GROUPS'}"
    decision, tone = (UNDETERMINED, "undetermined") if mild else (UNSAFE, "unsafe")
    return State(title, decision, tone, headline, reason, meaning, _steps(True, mild=mild))


def _under_state(history: History, reading: Reading) -> State:
    reason = join([_since(history, reading, "under-confident"), " It is right more often than it says."])
    meaning = ("That is cautious, not unsafe: you can rely on what it says, and it could be more certain.",)
    steps = [("Recalibrate it, if caution is costly.", "A temperature below 1 makes it more certain.")]
    steps += [_ACKNOWLEDGE] if "under-confident" in reading.changes else []
    headline = "It is less sure than it could be"
    return State("UNDER-CONFIDENT", UNDETERMINED, "undetermined", headline, reason, meaning, tuple(steps))


def _quiet_state(reading: Reading) -> State:
    reason = (
        f"After {rows_text(reading.summary.n)}, the evidence of over-confidence since the start is "
        f"{evidence_text(reading.over)}; an alarm needs {evidence_text(reading.threshold)}. The evidence of a change "
        f"is {evidence_text(reading.change)}; an alarm needs {evidence_text(reading.change_threshold)}."
    )
    meaning = (
        "No alarm does not prove that the model is calibrated. It means that the rows so far are no strong evidence "
        "against calibration. The windows below show how over-confident it may still be.",
    )
    step = ("There is nothing to do.", "Go on watching. You can look at this page as often as you like.")
    return State("NO ALARM", SAFE, "calm", "There is no strong evidence against it", reason, meaning, (step,))


def _no_rows_state() -> State:
    step = ("Send the first batch.", "Predictions must be made before their outcomes are known.")
    reason = "No batch has been taken in."
    return State("NO ROWS YET", UNDETERMINED, "undetermined", "There is nothing to show yet", reason, (), (step,))


def _steps(changed: bool, *, mild: bool = False) -> tuple[tuple[str, str], ...]:
    """Say what to do; a model within the limits can be relied on meanwhile."""
    meanwhile = ("Do not rely on its confidence meanwhile.", "Be more cautious than it is, or ask a person.")
    if mild:
        meanwhile = (
            "You can still rely on its confidence, within the limits.",
            "Watch whether the over-confidence grows, window by window.",
        )
    steps = [
        (
            "Find out what else changed.",
            "New data, a new version, a sensor, another population? See the windows below.",
        ),
        meanwhile,
        ("Recalibrate it on fresh rows, or train it again.", "Then it is a new model: watch it with a new store."),
    ]
    return (*steps, _ACKNOWLEDGE) if changed else tuple(steps)


def within(summary: Summary, limits: Limits) -> bool:
    """Tell whether over-confidence beyond the limits is ruled out, as far as a summary can tell."""
    size = Size.of(summary, limits)
    if size is None or not size.within:
        return False
    return bool(interval_from_sums(summary, limits.level).high <= size.allowed)


def last_alarm(history: History, kind: str, direction: str, group: Hashable = None) -> Raised | None:
    """Return the last alarm of a kind about a group, or about all rows."""
    matching = [
        r for r in history.alarms
        if (r.alarm.kind, r.alarm.direction) == (kind, direction) and r.alarm.group == group
    ]  # fmt: skip
    return matching[-1] if matching else None


def current_alarm(history: History, reading: Reading, direction: str, group: Hashable = None) -> Raised | None:
    """Return the alarm that speaks of a direction: the change, where one stands, else that since the start."""
    changed = last_alarm(history, "change", direction, group) if direction in reading.changes else None
    return changed or last_alarm(history, "since the start", direction, group)


def group_is_mild(history: History, group: Hashable) -> bool:
    """Tell whether the over-confidence that an alarm of a group speaks of is within the limits.

    Groups keep no tally of their windows: after a change its size decides, else the sums of all rows.
    """
    monitor = history.monitor
    reading = Reading.of(monitor, group)
    if not reading.changed:
        return within(reading.summary, monitor.limits)
    raised = last_alarm(history, "change", "over-confident", group)
    return raised is not None and raised.alarm.size is not None and raised.alarm.size.within


def is_mild(monitor: Monitor, alarm: Alarm | None) -> tuple[bool, Judged | None]:
    """Tell whether the over-confidence of an alarm about all rows is within the limits, and by which verdict.

    The windows since the change are judged, or all that keep their sums. Rows that they do not show count as well:
    those of long ago, and where the change lies within a window those of the alarm, which the rows before it hide.
    """
    changed = alarm is not None and alarm.kind == "change"
    since = monitor.judged(alarm.began) if alarm is not None and changed else ()
    judged = Judged.of(monitor, since or monitor.judged())
    size = alarm.size if alarm is not None and changed else Size.of(monitor.summary, monitor.limits)
    small = bool(since) or (size is not None and size.within)
    if judged is None:
        return small and within(monitor.summary, monitor.limits), None
    return small and judged.verdict.decision == SAFE, judged


def status_text(store: Store) -> str:
    """Return rows, ECD, evidence, alarms, and rows and batches that were set aside, one line each."""
    monitor, last = store.monitor(), store.last()
    alarms, asides = store.alarms(), store.asides()
    lines = _evidence_table(monitor)
    lines.append(f"last batch      {'none yet' if last is None else f'{last.batch}, {last.received}'}")
    judged = Judged.last(monitor)
    if judged is not None:
        lines += _filled(f"verdict         {judged.name}: {judged.verdict}")
    lines.append(f"alarms          {len(alarms)}")
    lines += [line for raised in alarms for line in _filled(f"  {raised.at}  {raised.alarm}", 4)]
    lines.append(f"set aside       {len(asides)}")
    for aside in asides[-_ASIDES_LISTED:]:
        lines += _filled(f"  {aside.batch}, {aside.place}: {aside.reason}", 4)
    if len(asides) > _ASIDES_LISTED:
        lines.append(f"  and {len(asides) - _ASIDES_LISTED} before")
    label = store.settings.get("pos_label")
    if label is not None and not store.settings.get("seen"):
        lines.append(f"note            the label {label!r} of `--pos-label` has not occurred yet")
    return "\n".join(map(visible, lines))


def _filled(text: str, indent: int = 16) -> list[str]:
    """Return a text in lines that fit a terminal."""
    return textwrap.wrap(visible(text), 79, subsequent_indent=" " * indent, break_on_hyphens=False)


def _evidence_table(monitor: Monitor) -> list[str]:
    """Return the evidence of all rows and of some groups, each above what would be an alarm."""
    groups: list[Hashable] = [None, *monitor.groups]
    changes = ("change", "to under")[: len(DETECT[monitor.detect])]
    header = ("", "rows", "ECD", *("over", "under", "up", "down")[: len(monitor.directions)], *changes)
    rows = [header, *(row for group in groups[: _GROUPS_LISTED + 1] for row in _evidence_rows(monitor, group))]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    widths[0] = max(widths[0], 14)
    lines = []
    for name, *numbers in rows:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]))
    if len(groups) > _GROUPS_LISTED + 1:
        lines.append(f"and {len(groups) - _GROUPS_LISTED - 1} more groups")
    return [*lines, "evidence in powers of ten: +2.00 is an e-value of 100"]


def _evidence_rows(monitor: Monitor, group: Hashable) -> list[tuple[str, ...]]:
    """Return the evidence of some rows, and what would be an alarm."""
    stream, limits, detectors = monitor.stream(group), monitor.threshold(group=group), DETECT[monitor.detect]
    evidence = [_power(monitor.log_e_value(direction, group=group)) for direction in monitor.directions]
    evidence += [
        _power(monitor.log_change(direction, group=group)) + ("!" if direction in stream.changes else "")
        for direction in detectors
    ]
    alarms = [limits.log_thresholds[direction] for direction in monitor.directions]
    alarms += [limits.log_run_length] * len(detectors)
    name = "all rows" if group is None else shortened(key_label(group), 20)
    ecd = f"{stream.summary.ecd:+.4f}" if stream.summary.n else "-"
    return [(name, str(stream.summary.n), ecd, *evidence), ("  alarm from", "", "", *map(_power, alarms))]


def _power(log: float) -> str:
    """Return the power of ten of a natural logarithm."""
    return power_of_ten(log) if math.isinf(log) else f"{log10(log):+.2f}"
