"""What is remembered of a watched model, batch by batch."""

from dataclasses import dataclass
from typing import Self, final

from .._sums.summary import Summary
from ..monitor import Alarm, Monitor

__all__ = ["History", "Point", "Raised"]


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
