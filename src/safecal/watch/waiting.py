"""What a watcher waits for: bytes on standard input, or a request to stop; what is at work is finished first."""

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

__all__ = ["Pipe", "StopNow", "Stopping"]

T = TypeVar("T")

_PIECE = 1 << 18  # bytes
_AHEAD = 16  # pieces


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


@final
class Pipe:
    """Reads a file descriptor in a thread of its own.

    Parameters
    ----------
    descriptor : int
        What to read; 0 is standard input.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._pieces: queue.Queue[bytes | OSError] = queue.Queue(_AHEAD)
        # The thread may be left in the middle of a read when the program ends: it holds nothing.
        threading.Thread(target=self._fill, args=(descriptor,), daemon=True).start()

    def _fill(self, descriptor: int) -> None:
        while True:
            try:
                piece: bytes | OSError = os.read(descriptor, _PIECE)
            except OSError as error:
                piece = error
            self._pieces.put(piece)
            if isinstance(piece, OSError) or not piece:
                return

    def read(self, seconds: float | None) -> bytes | None:
        """Return the next bytes, none at the end, or None when no more came in time."""
        try:
            piece = self._pieces.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(piece, OSError):
            raise piece
        return piece
