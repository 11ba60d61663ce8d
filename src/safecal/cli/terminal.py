"""Standard output and standard error: what a person sees there, and that a closed or full one never decides the status.

A stream may be closed, full, or read by no one. On a terminal, the verdict is in colour, and a line counts rows while
one waits.
"""

import errno
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, final

from ..errors import visible

__all__ = [
    "INTERRUPTED",
    "Guarded",
    "Progress",
    "Steps",
    "draw",
    "gate_status",
    "guarded",
    "open_closed",
    "say_verdict",
    "searching",
]


@final
class Guarded:
    """A stream that never raises for the system: after its first failure it drops what is written, and knows why.

    What a terminal would obey, and not show, is written out: names and texts come from files of strangers.

    Attributes
    ----------
    lost : OSError or None
        The first failure.
    """

    def __init__(self, stream: TextIO | None, on_loss: Callable[[OSError], object] = lambda _: None) -> None:
        self._stream: TextIO = io.StringIO() if stream is None else stream  # never written to where it stands in
        self._closed = stream is None
        self._on_loss = on_loss
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
        self._on_loss(error)


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


def _report_loss(error: OSError) -> None:
    if not isinstance(error, BrokenPipeError):  # whoever read our output has what they wanted
        print(f"safecal: standard output could not be written: {error.strerror or error}.", file=sys.stderr)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """Guard both streams as long as the context lives, and yield standard output."""
    out: Any = Guarded(sys.stdout, _report_loss)
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


_COLOURS = {"SAFE": "1;32", "UNSAFE": "1;31", "UNDETERMINED": "1;33"}
_GATE = {"SAFE": 0, "UNSAFE": 3, "UNDETERMINED": 4}  # exit statuses
INTERRUPTED = 130  # the status that a shell expects after Ctrl-C
_VERDICT = re.compile(r"^(SAFE|UNSAFE|UNDETERMINED)\b", re.MULTILINE)


def gate_status(decision: str) -> int:
    """Return the exit status that `--gate` sets for a decision."""
    return _GATE[decision]


def say_verdict(text: str) -> None:
    """Print text with its verdict in colour, where a terminal shows it and `NO_COLOR` is not set.

    The word stays: colour is never the only signal.
    """
    out = sys.stdout
    verdict = _VERDICT.search(text)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not out.isatty() or verdict is None:
        print(text)
        return
    draw_on = getattr(out, "draw", out.write)
    out.write(text[: verdict.start()])
    draw_on(f"\x1b[{_COLOURS[verdict[1]]}m")
    out.write(verdict[1])
    draw_on("\x1b[0m")
    out.write(text[verdict.end() :] + "\n")


@final
class Progress:
    """A line on standard error that counts rows; shown on a terminal only, and only after a second.

    Parameters
    ----------
    total : int or None
        How many rows there are, where that is known.
    estimated : bool, default False
        Whether that is an estimate.
    """

    def __init__(self, total: int | None, *, estimated: bool = False) -> None:
        self.total, self.estimated = total, estimated
        self.rows = 0
        self._began = self._last_drawn = time.monotonic()
        self._shown = False

    def add(self, rows: int) -> None:
        """Count some rows."""
        self.rows += rows
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._began < 1.0 or now - self._last_drawn < 0.1:
            return
        self._last_drawn, self._shown = now, True
        draw(f"\r{self.line(now - self._began)}\x1b[K")

    def line(self, seconds: float) -> str:
        """Return the line after so many seconds."""
        text = f"{self.rows:,} rows"
        if not self.total:
            return text
        share = min(self.rows / self.total, 0.99 if self.estimated else 1.0)
        seconds_left = seconds * (1.0 - share) / share if share else 0.0
        about = "about " if self.estimated else ""
        return f"[{'#' * int(30 * share):<30}] {about}{share:.0%}  {text}, {_duration(seconds_left)} left"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")


@final
class Steps:
    """A line on standard error that counts steps; on a terminal only."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._last_drawn = 0.0
        self._shown = sys.stderr.isatty()

    def add(self, name: str = "") -> None:
        """Count a step, and name it."""
        self.done += 1
        now = time.monotonic()
        if self._shown and now - self._last_drawn >= 0.1:
            self._last_drawn = now
            bar = "#" * (30 * self.done // self.total)
            draw(f"\r[{bar:<30}] {self.done} of {self.total}  {name[:40]}\x1b[K")

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")


def searching() -> Callable[[float], None]:
    """Return a function that shows how far a search for slices is: on a terminal only, and only after a second."""
    began = time.monotonic()

    def show_share(share: float) -> None:
        if sys.stderr.isatty() and time.monotonic() - began > 1.0:
            bar = f"[{'#' * int(30 * share):<30}] {share:.0%} of the search for slices"
            draw(f"\r{bar}\x1b[K" if share < 1.0 else "\r\x1b[K")

    return show_share


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
