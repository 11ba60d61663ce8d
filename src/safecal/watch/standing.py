"""How a watched model stands: the numbers of all rows and of each group, and whether they are within the limits.

The limits are those of `safecal.evaluate`, and so is the rule: it judges the windows that keep all their sums.
"""

import math
import textwrap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, final

from .._sums.summary import Summary
from ..errors import MergeError, shortened, visible
from ..inference.sum_bounds import interval_from_sums
from ..judge.evaluation import Evaluation
from ..judge.verdict import SAFE, Verdict
from ..monitor import Alarm, Monitor
from ..monitor.alarm import Size
from ..monitor.records import DETECT, Stream
from ..options import Limits
from .history import History, Raised
from .store import Store

__all__ = [
    "Judged",
    "Reading",
    "ReadingCache",
    "current_alarm",
    "group_is_mild",
    "group_names",
    "is_mild",
    "last_alarm",
    "log10",
    "power_of_ten",
    "shown_groups",
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
        Evidence against "calibrated since the start" by direction, and the evidence that raises an alarm; 0 is no
        evidence.
    changing : mapping of str to float
        The statistic of each detector by direction.
    change_threshold : float
        The statistic that raises an alarm.
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
        impossible = stream.process.n_impossible > 0
        return cls(
            summary=stream.summary,
            evidence={
                direction: log10(monitor.log_e_value(direction, group=group)) for direction in monitor.directions
            },
            thresholds={direction: log10(log) for direction, log in limits.log_thresholds.items()},
            changing={
                direction: log10(monitor.log_change(direction, group=group), impossible=impossible)
                for direction in DETECT[monitor.detect]
            },
            change_threshold=log10(limits.log_run_length),
            raised=stream.raised,
            changes=stream.changes,
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
        """Whether the detector of over-confidence has raised an alarm that was not acknowledged."""
        return "over-confident" in self.changes

    @property
    def over(self) -> float:
        """Evidence of over-confidence since the start."""
        return self.evidence["over-confident"]

    @property
    def threshold(self) -> float:
        """The evidence of over-confidence that raises an alarm."""
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
class ReadingCache:
    """Reads a monitor again and again, and reads anew only the groups that have had rows since."""

    __slots__ = ("_cache",)

    def __init__(self) -> None:
        self._cache: dict[Hashable, tuple[Stream, Reading]] = {}

    def __call__(self, monitor: Monitor, group: Hashable = None) -> Reading:
        """Read all rows of a monitor, or a group."""
        stream = monitor.stream(group)  # each update makes new ones
        cached = self._cache.get(group)
        if cached is None or cached[0] is not stream:
            cached = self._cache[group] = (stream, Reading.of(monitor, group))
        return cached[1]


def shown_groups(
    monitor: Monitor, most: int, read: Callable[[Monitor, Hashable], Reading] = Reading.of
) -> tuple[list[tuple[Hashable, Reading]], int]:
    """Return at most so many groups, those with the strongest evidence first, and how many are left out."""
    readings = [(group, read(monitor, group)) for group in monitor.groups]
    readings.sort(key=lambda pair: pair[1].badness, reverse=True)
    return readings[:most], max(len(readings) - most, 0)


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
    """The verdict on some windows together. It holds for one look; the evidence holds for many.

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


_GROUPS_LISTED = 20
_ASIDES_LISTED = 5


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
    """Return rows, ECD, evidence, alarms, and rows and batches that were set aside, one line each.

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
    name = "all rows" if group is None else shortened(str(group), 20)
    ecd = f"{stream.summary.ecd:+.4f}" if stream.summary.n else "-"
    return [(name, str(stream.summary.n), ecd, *evidence), ("  alarm from", "", "", *map(_power, alarms))]


def _power(log: float) -> str:
    """Return the power of ten of a natural logarithm."""
    return power_of_ten(log) if math.isinf(log) else f"{log10(log):+.2f}"
