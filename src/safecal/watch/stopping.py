"""A request to stop: what is at work is finished first."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

__all__ = ["StopNow", "Stopping"]

T = TypeVar("T")


class StopNow(BaseException):
    """Raised only while nothing is at work."""


@final
class Stopping:
    """Listens to SIGTERM and SIGINT.

    While a batch is at work a signal only leaves a note, ``asked``; while we wait it ends the waiting with `StopNow`.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._idle = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen as long as the context lives; then restore what was there."""
        before = {}
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                before[number] = signal.signal(number, self._heard)
            except ValueError:  # not in the main thread: whoever started us sees to signals
                break
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, _: Any) -> None:
        self.asked = number
        if self._idle:
            raise StopNow

    def wait(self, action: Callable[[], T]) -> T:
        """Do something that may take long, and may be broken off."""
        self._idle = True
        try:
            if self.asked is not None:
                raise StopNow
            return action()
        finally:
            self._idle = False

    def sleep(self, seconds: float) -> None:
        """Sleep, or stop."""
        self.wait(lambda: time.sleep(seconds))
