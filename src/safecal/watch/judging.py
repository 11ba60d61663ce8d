"""Whether a watched model is safe, by the rule of `safecal.evaluate`: of the windows that keep all their sums."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Self, final

from ..errors import MergeError
from ..evaluation import Evaluation
from ..inference.keyed import interval_from_sums
from ..limits import Limits
from ..monitor import Alarm, Monitor
from ..monitor.size import Size
from ..summary import Summary
from ..verdict import SAFE, Verdict
from .history import History, Raised
from .readings import Reading

__all__ = ["Judged", "group_is_mild", "is_mild", "last_alarm", "speaking", "within"]


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
        many = "is" if len(self.windows) == 1 else "are"
        return f"By the rule of evaluate, {self.name} {many} {self.verdict}"


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
