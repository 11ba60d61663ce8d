"""The memory of a watched model, batch by batch: its points, its alarms, and how a batch is known again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .._sums.summary import Summary, as_sums
from ..errors import OptionError
from ..inference.results import Interval
from ..inference.sum_bounds import intervals_from_sums
from ..monitor import Alarm, Monitor

__all__ = [
    "LEVEL",
    "MOST_WINDOWS",
    "WHOLE",
    "Aside",
    "History",
    "Known",
    "Point",
    "Raised",
    "Slot",
    "Taken",
    "alarm_numbers",
    "check_settings",
    "window_slots",
    "storable_text",
]


@final
@dataclass(frozen=True, slots=True)
class Point:
    """The state after one batch.

    Attributes
    ----------
    batch : str
        Its id.
    window : str or None
        The window it belongs to.
    received : str
        When it was taken in: ISO 8601, UTC.
    summary : Summary
        The sums of the batch alone.
    log_over, log_under : float
        Logarithms of the e-values against "calibrated since the start", after it.
    log_change : float
        Logarithm of the detector's statistic, after it.
    log_up, log_down : float or None
        Logarithms of the e-values of a shift, after it; None where shifts are not looked at.
    log_other : float or None
        Logarithm of the statistic of the detector of under-confidence, after it; None where there is none.
    """

    batch: str
    window: str | None
    received: str
    summary: Summary
    log_over: float
    log_under: float
    log_change: float
    log_up: float | None = None
    log_down: float | None = None
    log_other: float | None = None

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


MOST_WINDOWS = 90  # windows in a picture; neighbours are added up where there are more
LEVEL = 0.95
WHOLE = "all of it"  # the place of a batch that was set aside whole


@final
@dataclass(frozen=True, slots=True)
class Aside:
    """Something that could not be counted.

    Attributes
    ----------
    batch : str
        The batch it belongs to.
    digest : str
        SHA-256 of the content of that batch.
    place : str
        Where: a row, or "all of it".
    reason : str
        Why.
    """

    batch: str
    digest: str
    place: str
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

    Attributes
    ----------
    batch, digest, stamp : str
        Its id, the SHA-256 of its content, and how its file looked (empty where there is none).
    monitor : Monitor
        The state after it.
    settings : mapping
        The settings after it: columns that were found by name are then known.
    points : tuple of Point
        One for each window that the batch has rows of.
    alarms : tuple of Raised
        The alarms that it raised.
    asides : tuple of Aside
        Rows of it that were not counted.
    """

    batch: str
    digest: str
    stamp: str
    monitor: Monitor
    settings: Mapping[str, Any]
    points: tuple[Point, ...]
    alarms: tuple[Raised, ...] = ()
    asides: tuple[Aside, ...] = ()


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


def alarm_numbers(history: History) -> list[str]:
    """Return the name of each alarm in the table and the pictures."""
    return [str(k + 1) for k in range(len(history.alarms))]


def check_settings(stored: Mapping[str, Any], requested: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings to go on with; refuse those that would mean another test than the one that was begun.

    Parameters
    ----------
    stored : mapping
        The settings that the store was begun with.
    requested : mapping
        The settings that are requested now. A value of None requests nothing.
    name : str
        Of the store, for the message.

    Returns
    -------
    dict
        The stored settings.

    Examples
    --------
    >>> from safecal.watch.history import check_settings
    >>> check_settings({"alpha": 0.05, "y": "label"}, {"alpha": 0.05, "y": None}, "watch.sqlite")
    {'alpha': 0.05, 'y': 'label'}
    """
    for key, value in requested.items():
        if value is not None and stored.get(key) != value:
            option = "--" + key.replace("_", "-")
            raise OptionError(
                f"{name} was begun with {_option_text(option, stored.get(key))}; got {_option_text(option, value)}.\n\n"
                "Hint: evidence counts under the settings it was begun with. Give those, or another `--store`."
            )
    return dict(stored)


def _option_text(option: str, value: Any) -> str:
    if value is None or value == [] or value is False:
        return f"no `{option}`"
    if isinstance(value, list):
        return "`" + " ".join(f"{option} {x}" for x in value) + "`"
    return f"`{option}`" if value is True else f"`{option} {value}`"


def storable_text(text: str) -> str:
    """Return text as every store can hold it: the zero character, and characters outside Unicode, are spelled out.

    Examples
    --------
    >>> from safecal.watch.history import storable_text
    >>> storable_text("a" + chr(0) + chr(0xDCFF))
    'a\\\\x00\\\\udcff'
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
