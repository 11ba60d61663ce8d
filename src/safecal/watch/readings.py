"""What a monitor shows of all rows and of each group: the numbers behind the endpoint, the adapters and the page."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, final

from ..monitor import Monitor
from ..monitor.stream import DETECT, Stream
from ..summary import Summary

__all__ = ["Reader", "Reading", "group_names", "log10", "shown_groups"]

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
