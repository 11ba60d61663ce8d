"""Standard output and standard error, which may be closed, full or read by no one: that never decides the status."""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, final

from ..visible import visible

__all__ = ["Guarded", "draw", "guarded", "open_closed"]


@final
class Guarded:
    """A stream that never raises for the system: after its first failure it drops what is written, and knows why.

    What a terminal would obey, and not show, is written out: names and texts come from files of strangers.

    Attributes
    ----------
    lost : OSError or None
        The first failure.
    """

    def __init__(self, stream: TextIO | None, tell: Callable[[OSError], object] = lambda _: None) -> None:
        self._stream: TextIO = io.StringIO() if stream is None else stream  # never written to where it stands in
        self._closed = stream is None
        self._tell = tell
        self.lost: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop."""
        self.draw(visible(text, keep="\n\t"))
        return len(text)

    def draw(self, text: str) -> None:
        """Write what the terminal shall obey: a line that is drawn anew."""
        if text and self._closed:
            self._lose(OSError(errno.EBADF, "it is closed"))
        self._try(lambda: self._written(text))

    def flush(self) -> None:
        """Hand on what was written, or drop it."""
        self._try(self._stream.flush)

    def _written(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:  # a name that the encoding of the terminal lacks is no reason to fail
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def _try(self, action: Callable[[], object]) -> None:
        if self.lost is not None or self._closed:
            return
        try:
            action()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        if self.lost is not None:
            return
        self.lost = error
        if not self._closed:
            _drain(self._stream)
        self._tell(error)


def _drain(stream: TextIO) -> None:
    """Let what is still held go nowhere; else Python would try again at its end, and set a status of its own."""
    try:
        number = stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream of someone who called us from Python
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, number)
    finally:
        os.close(null)


def _tell(error: OSError) -> None:
    if not isinstance(error, BrokenPipeError):  # whoever read our output has what they wanted
        print(f"safecal: standard output could not be written: {error.strerror or error}.", file=sys.stderr)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """Guard both streams as long as the context lives, and yield standard output."""
    out: Any = Guarded(sys.stdout, _tell)
    err: Any = Guarded(sys.stderr)
    with redirect_stderr(err), redirect_stdout(out):
        try:
            yield out
        finally:
            out.flush()
            err.flush()


def draw(text: str) -> None:
    """Draw on standard error, which is a terminal."""
    getattr(sys.stderr, "draw", sys.stderr.write)(text)
    sys.stderr.flush()


def open_closed() -> None:
    """Open those of the first three descriptors that are closed, on nothing.

    Else the next file that is opened would take the number, and receive what others write to it. Standard input, too,
    is opened to write: reading from it stays an error, not an empty file.
    """
    while (number := os.open(os.devnull, os.O_WRONLY)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
