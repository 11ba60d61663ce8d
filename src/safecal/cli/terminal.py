"""What a person sees while waiting."""

import sys
import time

from .streams import draw

__all__ = ["Progress"]


class Progress:
    """A line on standard error that counts rows; shown on a terminal only, and only after a second."""

    def __init__(self, total: int | None) -> None:
        self.total = total
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
        text = f"{self.rows:,} rows"
        if self.total:
            share = min(self.rows / self.total, 1.0)
            text = f"[{'#' * int(30 * share):<30}] {share:4.0%}  {text}"
        draw(f"\r{text}\x1b[K")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")
