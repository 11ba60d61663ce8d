"""How a watched model stands: the numbers of all rows and of each group, and whether they are within the limits.

The limits are those of `safecal.evaluate`, and so is the rule: it judges the windows that keep all their sums.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, final

from .._sums.summary import Summary
from ..errors import MergeError
from ..inference.sum_bounds import interval_from_sums
from ..judge.evaluation import Evaluation
from ..judge.verdict import SAFE, Verdict
from ..monitor import Alarm, Monitor
from ..monitor.alarm import Size
from ..monitor.evidence import DETECT, Stream
from ..options import Limits
from ..visible import visible
from .history import History, Raised
from .store import Store

__all__ = [
    "Judged",
    "Reader",
    "Reading",
    "group_is_mild",
    "group_names",
    "is_mild",
    "last_alarm",
    "log10",
    "power_of_ten",
    "shown_groups",
    "speaking",
    "status_text",
    "within",
]

_BEYOND = 5e5  # a natural logarithm that only an impossible outcome, which counts as 1e6, can have brought


def log10(log: float, *, impossible: bool = False) -> float:
    """Return a natural logarithm of evidence to the base 10; after an impossible outcome it may be infinite.

    Examples
    --------
    >>> log10(2.302585092994046), log10(1e6, impossible=True)
    (1.0, inf)
    """
    if impossible and log >= _BEYOND:
        return math.inf
    return log / math.log(10.0)


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """Sums and evidence of all rows, or of one group; logarithms are to the base 10.

    Attributes
    ----------
    summary : Summary
        The sums.
    evidence, thresholds : mapping of str to float
        Evidence against "calibrated since the start" by direction, and what it takes to raise an alarm; 0 is none, more
        is more.
    changing : mapping of str to float
        The statistic of each detector by direction.
    change_threshold : float
        What it takes of each.
    raised : tuple of str
        The directions whose alarm since the start has been raised.
    changes : tuple of str
        The directions whose detector has raised an alarm that was not acknowledged.
    """

    summary: Summary
    evidence: Mapping[str, float]
    thresholds: Mapping[str, float]
    changing: Mapping[str, float]
    change_threshold: float
    raised: tuple[str, ...]
    changes: tuple[str, ...]

    @classmethod
    def of(cls, monitor: Monitor, group: Hashable = None) -> Self:
        """Read all rows of a monitor, or a group."""
        stream, limits = monitor.stream(group), monitor.threshold(group=group)
        gone = stream.process.n_impossible > 0
        return cls(
            stream.summary,
            {direction: log10(monitor.log_e_value(direction, group=group)) for direction in monitor.directions},
            {direction: log10(log) for direction, log in limits.log_thresholds.items()},
            {
                direction: log10(monitor.log_change(direction, group=group), impossible=gone)
                for direction in DETECT[monitor.detect]
            },
            log10(limits.log_run_length),
            stream.raised,
            stream.changes,
        )

    @property
    def change(self) -> float:
        """The statistic of the detector of over-confidence."""
        return self.changing["over-confident"]

    @property
    def other_change(self) -> float | None:
        """The statistic of the detector of under-confidence; None where there is none."""
        return self.changing.get("under-confident")

    @property
    def changed(self) -> bool:
        """Whether that detector has raised an alarm that was not acknowledged."""
        return "over-confident" in self.changes

    @property
    def over(self) -> float:
        """Evidence of over-confidence since the start."""
        return self.evidence["over-confident"]

    @property
    def threshold(self) -> float:
        """What it takes of it to raise an alarm."""
        return self.thresholds["over-confident"]

    @property
    def over_confident(self) -> bool:
        """Whether an alarm says that it is over-confident."""
        return self.changed or "over-confident" in self.raised

    @property
    def over_confident_now(self) -> bool:
        """Whether such an alarm stands that was not acknowledged, or whose evidence is as strong as ever."""
        return self.changed or ("over-confident" in self.raised and self.over >= self.threshold)

    @property
    def badness(self) -> tuple[bool, float, float]:
        """Larger is worse: an alarm, then how far the evidence is from its threshold, then ECD."""
        margin = max(self.over - self.threshold, self.change - self.change_threshold)
        ecd = self.summary.ecd
        return self.over_confident, margin, -math.inf if math.isnan(ecd) else ecd


@final
class Reader:
    """Reads a monitor again and again, and works anew only on those groups that have had rows since."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[Stream, Reading]] = {}

    def __call__(self, monitor: Monitor, group: Hashable = None) -> Reading:
        """Read all rows of a monitor, or a group."""
        stream = monitor.stream(group)  # each update makes new ones
        held = self._held.get(group)
        if held is None or held[0] is not stream:
            held = self._held[group] = (stream, Reading.of(monitor, group))
        return held[1]


def shown_groups(
    monitor: Monitor, most: int, read: Callable[[Monitor, Hashable], Reading] = Reading.of
) -> tuple[list[tuple[Hashable, Reading]], int]:
    """Return the groups with the strongest evidence, the worst first, at most so many, and how many are left out."""
    found = [(group, read(monitor, group)) for group in monitor.groups]
    found.sort(key=lambda pair: pair[1].badness, reverse=True)
    return found[:most], max(len(found) - most, 0)


def group_names(groups: Sequence[Hashable]) -> dict[Hashable, str]:
    """Return a text for each group, all of them different, and such that UTF-8 can hold them.

    Examples
    --------
    >>> group_names([("north", 2025), "south"])
    {('north', 2025): 'north / 2025', 'south': 'south'}
    >>> group_names([1, "1"])
    {1: '1', '1': "'1'"}
    """
    plain = [" / ".join(map(str, group)) if isinstance(group, tuple) else str(group) for group in groups]
    plain = [text.encode("utf-8", "backslashreplace").decode() for text in plain]  # half characters
    if len(set(plain)) < len(plain):
        plain = [repr(group) for group in groups]
    return dict(zip(groups, plain, strict=True))


@final
@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict of some windows together; for one look, unlike the evidence.

    Attributes
    ----------
    windows : tuple of str
        Their names, in order.
    verdict : Verdict
        As `safecal.evaluate` would give it of their rows.
    """

    windows: tuple[str, ...]
    verdict: Verdict

    @classmethod
    def of(cls, monitor: Monitor, windows: tuple[str, ...]) -> Self | None:
        """Judge windows that keep all their sums; None where there are none, or they do not belong together."""
        if not windows:
            return None
        tally = monitor.tally(windows[0])
        try:
            for name in windows[1:]:
                tally = tally + monitor.tally(name)
        except MergeError:  # other classes than before
            return None
        return cls(windows, Evaluation.of(tally, monitor.limits).verdict)

    @classmethod
    def last(cls, monitor: Monitor) -> Self | None:
        """Judge the last window."""
        return cls.of(monitor, monitor.judged()[-1:])

    @property
    def name(self) -> str:
        """The first and the last of the windows."""
        if len(self.windows) == 1:
            return f"window {self.windows[0]}"
        return f"windows {self.windows[0]} to {self.windows[-1]}"

    def __str__(self) -> str:
        return f"`safecal.evaluate` would judge {self.name}: {self.verdict}"


def within(summary: Summary, limits: Limits) -> bool:
    """Tell whether over-confidence beyond the limits is ruled out, as far as a summary can tell."""
    size = Size.of(summary, limits)
    if size is None or not size.within:
        return False
    return bool(interval_from_sums(summary, limits.level).high <= size.allowed)


def last_alarm(history: History, kind: str, direction: str, group: Hashable = None) -> Raised | None:
    """Return the last alarm of a kind about a group, or about all rows."""
    found = [
        r for r in history.alarms
        if (r.alarm.kind, r.alarm.direction) == (kind, direction) and r.alarm.group == group
    ]  # fmt: skip
    return found[-1] if found else None


def speaking(history: History, reading: Reading, direction: str, group: Hashable = None) -> Raised | None:
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
    found = last_alarm(history, "change", "over-confident", group)
    return found is not None and found.alarm.size is not None and found.alarm.size.within


def is_mild(monitor: Monitor, alarm: Alarm | None) -> tuple[bool, Judged | None]:
    """Tell whether what an alarm about all rows speaks of is within the limits, and by which verdict.

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


_GROUPS = 20
_ASIDES = 5


def power_of_ten(log: float) -> str:
    """Return exp of a natural logarithm as a power of ten.

    Examples
    --------
    >>> from safecal.watch.standing import power_of_ten
    >>> power_of_ten(2.302585092994046), power_of_ten(float("inf"))
    ('10^+1.00', 'infinite')
    """
    if math.isinf(log):
        return "infinite" if log > 0 else "0"
    return f"10^{log10(log):+.2f}"


def status_text(store: Store) -> str:
    """Return rows, ECD, evidence, alarms and what was set aside, one line each.

    Parameters
    ----------
    store : Store
        Of the model.

    Returns
    -------
    str
        Several lines; an e-value above its limit is an alarm.
    """
    monitor, last = store.monitor(), store.last()
    alarms, asides = store.alarms(), store.asides()
    lines = _evidence_table(monitor)
    lines.append(f"last batch      {'none yet' if last is None else f'{last.batch}, {last.received}'}")
    judged = Judged.last(monitor)
    if judged is not None:
        lines.append(f"verdict         {judged.name}: {judged.verdict}")
    lines.append(f"alarms          {len(alarms)}")
    lines += [f"  {raised.at}  {raised.alarm}" for raised in alarms]
    lines.append(f"set aside       {len(asides)}")
    lines += [f"  {aside.batch}, {aside.place}: {aside.reason}" for aside in asides[-_ASIDES:]]
    if len(asides) > _ASIDES:
        lines.append(f"  and {len(asides) - _ASIDES} before")
    label = store.settings.get("pos_label")
    if label is not None and not store.settings.get("seen"):
        lines.append(f"note            the label {label!r} of `--pos-label` has not occurred yet")
    return "\n".join(map(visible, lines))


def _evidence_table(monitor: Monitor) -> list[str]:
    groups: list[Hashable] = [None, *monitor.groups]
    changes = ("change", "to under")[: len(DETECT[monitor.detect])]
    names = ("over", "under", "up", "down")[: len(monitor.directions)]
    header = ("", "rows", "ECD", *(part for name in names for part in (name, "limit")), *changes, "limit")
    rows = [header, *(_evidence_row(monitor, group) for group in groups[: _GROUPS + 1])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    widths[0] = max(widths[0], 14)
    lines = []
    for name, *numbers in rows:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]))
    if len(groups) > _GROUPS + 1:
        lines.append(f"and {len(groups) - _GROUPS - 1} more groups")
    return lines


def _evidence_row(monitor: Monitor, group: Hashable) -> tuple[str, ...]:
    stream, limits = monitor.stream(group), monitor.threshold(group=group)
    logs = (
        log
        for direction in monitor.directions
        for log in (monitor.log_e_value(direction, group=group), limits.log_thresholds[direction])
    )
    name = "all rows" if group is None else visible(str(group))
    return (
        name,
        str(stream.summary.n),
        f"{stream.summary.ecd:+.4f}" if stream.summary.n else "-",
        *(power_of_ten(log) for log in logs),
        *(
            power_of_ten(monitor.log_change(direction, group=group)) + ("!" if direction in stream.changes else "")
            for direction in DETECT[monitor.detect]
        ),
        power_of_ten(limits.log_run_length),
    )
