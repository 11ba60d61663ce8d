"""The memory of a watched model, batch by batch, and how it stands: the evidence of all rows and of each group."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from .._sums.summary import Summary, as_sums
from .._sums.table_views import key_label
from ..errors import MergeError
from ..inference import Interval
from ..inference.sum_bounds import intervals_from_sums
from ..judge.evaluation import Evaluation
from ..judge.verdict import Verdict
from ..monitor import Alarm, Monitor
from ..monitor.records import DETECT, Stream

__all__ = [
    "LEVEL",
    "MOST_WINDOWS",
    "WHOLE",
    "Aside",
    "History",
    "Judged",
    "Known",
    "Point",
    "Raised",
    "Reading",
    "ReadingCache",
    "Slot",
    "Taken",
    "group_names",
    "log10",
    "power_of_ten",
    "shown_groups",
    "storable_text",
    "window_slots",
]

_BEYOND = 5e5  # a natural logarithm that only an impossible outcome, which counts as 1e6, can have brought
MOST_WINDOWS = 90  # windows in a picture; neighbours are added up where there are more
LEVEL = 0.95
WHOLE = "all of it"  # the place of a batch that was set aside whole


@final
@dataclass(frozen=True, slots=True)
class Point:
    """The sums of one batch, or of a window of it, and the logarithms of the evidence after it."""

    batch: str
    window: str | None
    received: str  # ISO 8601, UTC
    summary: Summary
    log_over: float  # of the e-values against "calibrated since the start"
    log_under: float
    log_change: float  # of the detector's statistic
    log_up: float | None = None  # of the e-values of a shift; None where shifts are not looked at
    log_down: float | None = None
    log_other: float | None = None  # of the detector of under-confidence; None where there is none

    @classmethod
    def of(cls, batch: str, window: str | None, received: str, summary: Summary, monitor: Monitor) -> Self:
        """Return the point of a batch, given its sums and the state after it."""
        logs = {direction: monitor.log_e_value(direction) for direction in monitor.directions}
        temperatures = logs["over-confident"], logs["under-confident"]
        shifts = logs.get("shifted up"), logs.get("shifted down")
        other = monitor.log_change("under-confident") if monitor.detect == "both" else None
        return cls(batch, window, received, summary, *temperatures, monitor.log_change(), *shifts, other)


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm, and when and by which batch it was raised."""

    alarm: Alarm
    at: str
    batch: str


@final
@dataclass(frozen=True, slots=True)
class History:
    """Everything that is known of a watched model.

    Attributes
    ----------
    monitor : Monitor
        The state now.
    points : tuple of Point
        One for each batch, in the order in which they were taken in.
    alarms : tuple of Raised
        In their order.
    quarantined : int
        Rows or files that were set aside because they could not be read.
    """

    monitor: Monitor
    points: tuple[Point, ...] = ()
    alarms: tuple[Raised, ...] = ()
    quarantined: int = 0


@final
@dataclass(frozen=True, slots=True)
class Aside:
    """Something that could not be counted, of a batch whose content has this SHA-256: where and why."""

    batch: str
    digest: str
    place: str  # a row, or "all of it"
    reason: str


@final
@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a batch that was counted: the SHA-256 of its content, and how its file looked."""

    digest: str
    stamp: str


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """A batch, ready to be kept: all of it in one transaction.

    Monitor and settings are those after it; columns that were found by name are then known.
    """

    batch: str
    digest: str  # SHA-256 of its content
    stamp: str  # how its file looked; empty where there is none
    monitor: Monitor
    settings: Mapping[str, Any]
    points: tuple[Point, ...]  # one for each window that it has rows of
    alarms: tuple[Raised, ...] = ()
    asides: tuple[Aside, ...] = ()  # rows of it that were not counted


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


def window_slots(history: History, most: int = MOST_WINDOWS) -> tuple[list[Slot], str]:
    """Return the windows in their order, or the batches where there are no windows, and which of the two they are."""
    if any(point.window is not None for point in history.points) or not history.points:
        unit = "window"
        named_sums = [(name, summary) for name, (summary, _) in history.monitor.windows(LEVEL).items()]
    else:
        unit = "batch"
        named_sums = [(point.batch, point.summary) for point in history.points]
    named_sums = [(name, summary) for name, summary in named_sums if summary.n]
    step = max(-(-len(named_sums) // most), 1)
    parts = [named_sums[k : k + step] for k in range(0, len(named_sums), step)]
    summaries = [sum((s for _, s in part), Summary()) for part in parts]
    intervals = intervals_from_sums(as_sums(summaries), LEVEL)
    names = (tuple(name for name, _ in part) for part in parts)
    return [Slot(*slot) for slot in zip(names, summaries, intervals, strict=True)], unit


def storable_text(text: str) -> str:
    """Return text as every store can hold it: the zero character, and characters outside Unicode, are spelled out.

    Examples
    --------
    >>> from safecal.watch.history import storable_text
    >>> storable_text("a" + chr(0) + chr(0xDCFF))
    'a\\\\x00\\\\udcff'
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


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


def power_of_ten(log: float) -> str:
    """Return exp of a natural logarithm as a power of ten.

    Examples
    --------
    >>> from safecal.watch.history import power_of_ten
    >>> power_of_ten(2.302585092994046), power_of_ten(float("inf"))
    ('10^+1.00', 'infinite')
    """
    if math.isinf(log):
        return "infinite" if log > 0 else "0"
    return f"10^{log10(log):+.2f}"


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """Sums and evidence of all rows, or of one group; logarithms are to the base 10, and 0 is no evidence."""

    summary: Summary
    evidence: Mapping[str, float]  # against "calibrated since the start", by direction
    thresholds: Mapping[str, float]  # the evidence that raises an alarm
    changing: Mapping[str, float]  # the statistic of each detector, by direction
    change_threshold: float
    raised: tuple[str, ...]  # the directions whose alarm since the start has been raised
    changes: tuple[str, ...]  # those whose detector has raised an alarm that was not acknowledged

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
    plain = [key_label(group) for group in groups]
    plain = [text.encode("utf-8", "backslashreplace").decode() for text in plain]  # half characters
    if len(set(plain)) < len(plain):
        plain = [repr(group) for group in groups]
    return dict(zip(groups, plain, strict=True))


@final
@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict of `safecal.evaluate` on some windows together; it holds for one look, evidence holds for many."""

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
