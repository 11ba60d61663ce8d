"""What a person sees on a terminal: the verdict in colour, and a line that counts rows while they wait."""

import os
import re
import sys
import time

from .streams import draw

__all__ = ["Progress", "say_verdict"]

_COLOURS = {"SAFE": "1;32", "UNSAFE": "1;31", "UNDETERMINED": "1;33"}
_VERDICT = re.compile(r"^(SAFE|UNSAFE|UNDETERMINED)\b", re.MULTILINE)


def say_verdict(text: str) -> None:
    """Print text with its verdict in colour, where a terminal shows it and `NO_COLOR` is not set.

    The word stays: colour is never the only signal.
    """
    out = sys.stdout
    found = _VERDICT.search(text)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not out.isatty() or found is None:
        print(text)
        return
    draw_on = getattr(out, "draw", out.write)
    out.write(text[: found.start()])
    draw_on(f"\x1b[{_COLOURS[found[1]]}m")
    out.write(found[1])
    draw_on("\x1b[0m")
    out.write(text[found.end() :] + "\n")


class Progress:
    """A line on standard error that counts rows; shown on a terminal only, and only after a second.

    Parameters
    ----------
    total : int or None
        How many rows there are, where that is known.
    about : bool, default False
        Whether that is an estimate.
    """

    def __init__(self, total: int | None, *, about: bool = False) -> None:
        self.total, self.about = total, about
        self.rows = 0
        self._began = self._last = time.monotonic()
        self._shown = False

    def add(self, rows: int) -> None:
        """Count some rows."""
        self.rows += rows
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._began < 1.0 or now - self._last < 0.1:
            return
        self._last, self._shown = now, True
        draw(f"\r{self.line(now - self._began)}\x1b[K")

    def line(self, seconds: float) -> str:
        """Return the line after so many seconds."""
        text = f"{self.rows:,} rows"
        if not self.total:
            return text
        share = min(self.rows / self.total, 0.99 if self.about else 1.0)
        left = seconds * (1.0 - share) / share if share else 0.0
        about = "about " if self.about else ""
        return f"[{'#' * int(30 * share):<30}] {about}{share:.0%}  {text}, {_duration(left)} left"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
