"""Who is told of an alarm: at least once, also when the first try fails or the watcher dies in between.

A delivery runs beside the watch, one for each channel at a time: a slow command or webhook holds up no row. The store
is the queue: what is not delivered stands there, and is tried again.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from ..errors import SafecalError
from .history import Raised
from .store import Store

__all__ = ["Notifier"]

_DELIVERY_SIZE = 100  # alarms that a delivery takes along at most
_POLL = 0.1  # seconds between two looks at a delivery


@final
class _Delivery:
    """Some alarms on their way through a channel, in a thread of their own, which never touches the store."""

    def __init__(self, waiting: tuple[tuple[int, Raised], ...], send: Callable[[Raised], None]) -> None:
        self._waiting, self._send = waiting, send
        self.sent: list[int] = []  # grows from the other thread
        self.noted = 0  # of these, how many stand in the store as delivered
        self.error: Exception | None = None
        # Left behind where it does not end: at the end of the program it must not hold up the last words.
        self._thread = threading.Thread(target=self._run, name="safecal-delivery", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number, raised in self._waiting:
            try:
                self._send(raised)
            except Exception as error:  # noqa: BLE001 - it is told of, in the thread of the watch
                self.error = error
                return
            self.sent.append(number)

    def wait(self, seconds: float = 0.0) -> bool:
        """Wait so many seconds for its end, and tell whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


@final
@dataclass(slots=True)
class Notifier:
    """Delivers the alarms that the store says have not been delivered.

    Attributes
    ----------
    store : Store
        Alarms stand in it before anyone is told. Only the thread that calls the methods speaks to it.
    channels : dict of str to callable
        By name, what tells of an alarm, and raises when it could not.
    tell : callable
        Takes one line about what went wrong.
    pause : float
        Seconds after a failure before the channel is tried again.
    clock : callable
        Seconds that pass.
    """

    store: Store
    channels: dict[str, Callable[[Raised], None]]
    tell: Callable[[str], None]
    pause: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _retry_at: dict[str, float] = field(default_factory=dict)
    _under_way: dict[str, _Delivery] = field(default_factory=dict)

    def deliver(self) -> None:
        """Note the alarms that were delivered, and send the others on their way; wait for nothing."""
        for name in self.channels:
            self._collect(name)
            if name not in self._under_way and self.clock() >= self._retry_at.get(name, -math.inf):
                self._start(name)

    def due(self) -> float | None:
        """Return the seconds after which `deliver` has something to do; None where it has not."""
        if self._under_way:
            return _POLL
        return max(_POLL, min(self._retry_at.values()) - self.clock()) if self._retry_at else None

    def finish(self, seconds: float, *, stopped: Callable[[], bool] = lambda: False, leave: float = 5.0) -> int:
        """Try everything once more, wait for it, and return how many deliveries are left for the next run.

        Parameters
        ----------
        seconds : float
            To wait at most, for all channels together.
        stopped : callable
            Whether someone has asked to stop: then nothing more is begun.
        leave : float, default 5.0
            Seconds to wait at most after that.
        """
        end = self.clock() + seconds
        for name in self.channels:
            self._retry_at.pop(name, None)
            while True:
                self._collect(name)
                if name not in self._under_way and (stopped() or name in self._retry_at or not self._start(name)):
                    break
                if stopped():
                    end, leave = min(end, self.clock() + leave), math.inf
                if self.clock() >= end:
                    break
                self._under_way[name].wait(_POLL)
        return sum(self._left(name) for name in self.channels)

    def _start(self, name: str) -> bool:
        """Send the alarms that wait for a channel; tell whether there were any."""
        self._retry_at.pop(name, None)
        waiting = self.store.undelivered(name)[:_DELIVERY_SIZE]
        if waiting:
            self._under_way[name] = _Delivery(waiting, self.channels[name])
        return bool(waiting)

    def _collect(self, name: str) -> None:
        """Note in the store which alarms a delivery has sent so far, and tell how it failed."""
        delivery = self._under_way.get(name)
        if delivery is None:
            return
        ended = delivery.wait()
        for number in delivery.sent[delivery.noted :]:
            self.store.delivered(number, name)
            delivery.noted += 1
        if not ended:
            return
        del self._under_way[name]
        if delivery.error is not None:
            self._retry_at[name] = self.clock() + self.pause
            failure = delivery.error if isinstance(delivery.error, SafecalError | OSError) else repr(delivery.error)
            self.tell(f"an alarm was not delivered by {name}, and will be tried again: {failure}")

    def _left(self, name: str) -> int:
        left = len(self.store.undelivered(name))
        if left:
            alarms = "1 alarm was" if left == 1 else f"{left} alarms were"
            self.tell(f"{alarms} not delivered by {name}; the next run tries again.")
        return left
