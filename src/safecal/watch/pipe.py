"""Standard input, read beside the work, so that waiting for it can end."""

import os
import queue
import threading
from typing import final

__all__ = ["Pipe"]

_PIECE = 1 << 18  # bytes
_AHEAD = 16  # pieces


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
