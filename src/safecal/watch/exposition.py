"""The state of a watched model in the text format of Prometheus, 0.0.4."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from .._checks.columns import whole_number
from .history import History
from .readings import Reading, group_names, shown_groups

__all__ = ["exposition"]

Labels = Mapping[str, str]


class _Family(NamedTuple):
    """A metric: its name after ``safecal_``, what it is, and its samples."""

    name: str
    kind: str
    about: str
    samples: Sequence[tuple[Labels, float]]


def exposition(history: History, *, max_groups: int = 50) -> str:
    """Return the state in the text format of Prometheus.

    Parameters
    ----------
    history : History
        What is known of the model.
    max_groups : int, default 50
        Groups that get series of their own: those with the strongest evidence of over-confidence. The others are
        counted in ``safecal_groups_not_shown``.

    Returns
    -------
    str
        Format 0.0.4. Metrics of all rows are named ``safecal_…``, those of groups ``safecal_group_…``, so that a sum
        over a metric counts no row twice.

    Examples
    --------
    >>> from safecal.monitor import Monitor
    >>> from safecal.watch.history import History
    >>> monitor = Monitor()
    >>> monitor.update([0, 1, 1], [0.2, 0.7, 0.9])
    ()
    >>> print(exposition(History(monitor)).splitlines()[2])
    safecal_rows_total 3
    """
    most = whole_number(max_groups, "max_groups", 0)
    monitor = history.monitor
    raised: dict[Hashable, dict[tuple[str, ...], int]] = {}
    for found in history.alarms:
        counts = raised.setdefault(found.alarm.group, {})
        key = (found.alarm.kind, found.alarm.direction)
        counts[key] = counts.get(key, 0) + 1
    families = _families("", [({}, Reading.of(monitor), raised.get(None, {}))])
    families += [*_windows(history), *_upkeep(history)]
    if monitor.grouped:
        names = group_names(monitor.groups)
        shown, left = shown_groups(monitor, most)
        families.append(_Family("groups", "gauge", "Groups that have appeared.", [({}, len(names))]))
        families.append(_Family("groups_not_shown", "gauge", "Groups that have no series here.", [({}, left)]))
        families += _families(
            "group_",
            [({"group": names[k]}, reading, raised.get(k, {})) for k, reading in shown],
        )
    return "".join(_written(family) for family in families if family.samples)


def _families(prefix: str, found: list[tuple[Labels, Reading, dict[tuple[str, ...], int]]]) -> list[_Family]:
    """Return what exists for all rows, and for each group."""

    def each(name: str, kind: str, about: str, value: Callable[[Reading], Mapping[tuple[str, ...], float]]) -> _Family:
        names = {1: ("direction",), 2: ("kind", "direction")}
        samples = [
            ({**labels, **dict(zip(names.get(len(key), ()), key, strict=True))}, number)
            for labels, reading, _ in found
            for key, number in value(reading).items()
        ]
        return _Family(prefix + name, kind, about, samples)

    alarms = [
        ({**labels, "kind": kind, "direction": direction}, float(number))
        for labels, reading, counts in found
        for (kind, direction), number in (dict.fromkeys(_standing(reading), 0) | counts).items()
    ]
    return [
        each("rows_total", "counter", "Rows taken in.", lambda r: {(): r.summary.n}),
        each(
            "impossible_total",
            "counter",
            "Rows whose outcome had probability 0.",
            lambda r: {(): r.summary.n_impossible},
        ),
        each(
            "ecd_nats",
            "gauge",
            "Mean excess surprise of all rows; above 0 over-confident.",
            lambda r: {(): r.summary.ecd},
        ),
        each(
            "log10_e_value", "gauge", "Evidence against calibrated since the start.",
            lambda r: {(direction,): log for direction, log in r.evidence.items()},
        ),
        each(
            "log10_e_value_threshold", "gauge", "Evidence since the start that raises an alarm.",
            lambda r: {(direction,): log for direction, log in r.thresholds.items()},
        ),
        each("log10_change", "gauge", "Evidence that it became over-confident.", lambda r: {(): r.change}),
        each(
            "log10_other_change", "gauge", "Evidence that it became under-confident, where that is looked for.",
            lambda r: {} if r.other_change is None else {(): r.other_change},
        ),
        each(
            "log10_change_threshold", "gauge", "Evidence of a change that raises an alarm.",
            lambda r: {(): r.change_threshold},
        ),
        each(
            "alarm_active", "gauge", "1 where an alarm was raised and stands.",
            _standing,
        ),
        _Family(f"{prefix}alarms_total", "counter", "Alarms raised.", alarms),
    ]  # fmt: skip


def _standing(reading: Reading) -> dict[tuple[str, ...], float]:
    """Return which alarms stand, by kind and direction."""
    found: dict[tuple[str, ...], float] = {
        ("since the start", direction): direction in reading.raised for direction in reading.evidence
    }
    return found | {("change", direction): direction in reading.changes for direction in reading.changing}


def _windows(history: History) -> list[_Family]:
    """Return ECD of the last window, with its interval; nothing where there are no windows."""
    last = history.monitor.last_window()
    if last is None:
        return []
    _, summary, at = last
    about = "ECD of the last window"
    return [
        _Family("window_ecd_nats", "gauge", f"{about}.", [({}, at.value)]),
        _Family("window_ecd_low_nats", "gauge", f"{about}: lower end of its 95 % interval.", [({}, at.low)]),
        _Family("window_ecd_high_nats", "gauge", f"{about}: upper end of its 95 % interval.", [({}, at.high)]),
        _Family("window_rows", "gauge", "Rows in the last window.", [({}, summary.n)]),
    ]


def _upkeep(history: History) -> list[_Family]:
    about = "Rows or files set aside because they could not be read."
    found = [_Family("quarantined_total", "counter", about, [({}, history.quarantined)])]
    if history.points:
        at = datetime.fromisoformat(history.points[-1].received).timestamp()
        found.append(_Family("last_update_timestamp_seconds", "gauge", "When the last batch was taken in.", [({}, at)]))
    return found


def _written(family: _Family) -> str:
    name = f"safecal_{family.name}"
    lines = [f"# HELP {name} {family.about}", f"# TYPE {name} {family.kind}"]
    lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}" if labels else ""


def _escaped(text: str) -> str:
    """Return a label value with what the format reserves written out."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0.0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
