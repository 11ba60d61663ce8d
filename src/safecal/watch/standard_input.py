"""Standard input, cut into batches whose ids are the same when the same rows are sent again.

Without ids of its own, a batch is named by the rows before it and in it: ``input:START:END:FIRST:LAST``, the numbers of
its rows, and the SHA-256 of everything sent up to its first row and up to its last. Where the first row is that of a
batch that was counted, the cut is made where it was made then, so that times and sizes do not matter.
"""

import csv
import hashlib
import io
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from ..errors import FileError
from . import Arrival
from .history import storable_text

__all__ = ["PREFIX", "Cutter", "Pipe", "records"]

PREFIX = "input:"
_PIECE_BYTES = 1 << 18  # bytes that are read at a time
_PIECES_AHEAD = 16  # pieces that wait to be cut
_ROW_BYTES = 1 << 16  # bytes of a CSV row; beyond that a quotation mark was never closed
_DOUBT = "the input ended within a batch that was counted before, so these rows may have been counted"
_NAMELESS = "none of its rows says which batch it belongs to"


def records(text: bytes, kind: str) -> Iterator[bytes]:
    """Yield the rows of a text, each with its line end; a quoted field of a CSV file may hold line ends."""
    pending = b""
    for line in io.BytesIO(text):  # line feeds alone end a line
        pending += line
        if kind == "jsonl" or pending.count(b'"') % 2 == 0 or len(pending) > _ROW_BYTES:
            yield pending
            pending = b""
    if pending:
        yield pending


@final
class Cutter:
    """Cuts a stream of bytes into batches.

    Parameters
    ----------
    read : callable
        Takes the seconds to wait at most, or None, and returns some bytes, none at the end, None when time is up.
    counted : iterable of str
        Ids of the batches that were counted, as `Cutter` made them.
    rows, every : int, float or None
        Most rows of a batch, and seconds after which rows that have come are a batch, however few they are.
    kind : {"csv", "tsv", "jsonl"} or None
        The format; by default the first byte tells JSON Lines from CSV.
    column : str or None
        The column that holds the id of the batch of each row. A batch then ends where its id changes.
    """

    def __init__(
        self,
        read: Callable[[float | None], bytes | None],
        counted: Iterable[str],
        *,
        rows: int = 10_000,
        every: float | None = None,
        kind: str | None = None,
        column: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._size, self._every, self._clock = read, rows, every, clock
        self.kind, self._column = kind, column
        self._header, self._place = b"", 0
        self._hash = hashlib.sha256()
        self._rows: list[bytes] = []
        self._start = 0
        self._first = ""
        self._ends: dict[int, str] = {}  # where a batch that began like this one ended, and its digest
        self._id: str | None = None
        self._began: float | None = None
        self._counted: dict[tuple[int, str], dict[int, str]] = {}
        for name in counted:
            start, end, first, last = name.removeprefix(PREFIX).split(":")
            self._counted.setdefault((int(start), first), {})[int(end)] = last

    @property
    def held(self) -> int:
        """Rows that have been read and belong to no batch yet."""
        return len(self._rows)

    def __iter__(self) -> Iterator[Arrival]:
        for record in self._records():
            if record is None:
                if self._rows and not self._ends:
                    yield self._cut()
                continue
            if not record.strip():
                continue
            if self._column is not None:
                yield from self._named(record)
            else:
                yield from self._numbered(record)
        if self._rows:
            yield self._cut(at_the_end=True)

    def _records(self) -> Iterator[bytes | None]:
        """Yield each row; None where time is up."""
        pending, header = b"", False
        while True:
            chunk = self._read(self._seconds_left())
            if chunk is None:
                yield None
                continue
            if self.kind is None and (pending + chunk).strip():
                self.kind = _sniff_kind((pending + chunk).lstrip())
            pending += chunk
            if chunk and b"\n" not in chunk:
                continue
            rows = list(records(pending, self.kind or "csv"))
            # The last one may go on in the next piece.
            pending = rows.pop() if chunk and rows and not self._whole(rows[-1]) else b""
            for record in rows:
                if not header and self.kind != "jsonl" and record.strip():
                    header = True
                    self._begin(record if record.endswith(b"\n") else record + b"\n")
                    continue
                yield record
            if not chunk:
                return

    def _whole(self, record: bytes) -> bool:
        return record.endswith(b"\n") and (
            self.kind == "jsonl" or record.count(b'"') % 2 == 0 or len(record) > _ROW_BYTES
        )

    def _seconds_left(self) -> float | None:
        if self._every is None or self._began is None:
            return None
        return max(0.0, self._every - (self._clock() - self._began))

    def _begin(self, header: bytes) -> None:
        self._header = header
        self._hash.update(header)
        if self._column is not None:
            names = next(csv.reader([header.decode(errors="replace")], delimiter=self._separator))
            names = [name.strip().removeprefix("\ufeff") for name in names]
            if self._column not in names:
                raise FileError(f"standard input has no column {self._column!r}; it has {', '.join(names)}.")
            self._place = names.index(self._column)

    @property
    def _separator(self) -> str:
        return "\t" if self.kind == "tsv" else ","

    def _numbered(self, record: bytes) -> Iterator[Arrival]:
        self._hash.update(record.rstrip(b"\r\n") + b"\n")
        if not self._rows:
            self._first = self._hash.hexdigest()[:16]
            self._ends = dict(self._counted.get((self._start, self._first), {}))
            self._began = self._clock()
        self._rows.append(record)
        end = self._start + len(self._rows)
        if self._ends:
            if self._ends.pop(end, None) == self._hash.hexdigest()[:32]:
                yield self._cut()
                return
            self._ends = {place: last for place, last in self._ends.items() if place > end}
        if not self._ends and (len(self._rows) >= self._size or self._seconds_left() == 0.0):
            yield self._cut()

    def _named(self, record: bytes) -> Iterator[Arrival]:
        name = self._batch_id(record)
        if name is not None and self._id is not None and name != self._id:
            yield self._cut()
        self._id = self._id if name is None else name
        self._rows.append(record)

    def _batch_id(self, record: bytes) -> str | None:
        """Return the id of the batch that a row belongs to; None where the row cannot be read."""
        assert self._column is not None
        try:
            if self.kind == "jsonl":
                batch_id: Any = json.loads(record).get(self._column)
            else:
                batch_id = next(csv.reader([record.decode()], delimiter=self._separator))[self._place].strip() or None
        except (ValueError, AttributeError, IndexError, csv.Error):
            return None
        return None if batch_id is None else storable_text(str(batch_id))

    def _cut(self, *, at_the_end: bool = False) -> Arrival:
        content, end = b"".join(self._rows), self._start + len(self._rows)
        doubt = _DOUBT if at_the_end and self._ends else ""
        digest = self._hash.hexdigest()[:32]
        batch = f"{PREFIX}{self._start}:{end}:{self._first}:{digest}"
        if self._column is not None:
            doubt = "" if self._id is not None else _NAMELESS
            digest = hashlib.sha256(self._header + content.rstrip(b"\r\n")).hexdigest()
            batch = self._id or f"{PREFIX}{self._start}"
        self._rows, self._start, self._ends, self._id, self._began = [], end, {}, None, None
        return Arrival(batch, digest, self.kind, content=content, header=self._header, doubt=doubt)


def _sniff_kind(head: bytes) -> str:
    if head.startswith((b"PAR1", b"ARROW1", b"PK\x03\x04")) or b"\0" in head:
        raise FileError(
            "standard input is not text; JSON Lines or CSV are read from it.\n\n"
            "Hint: put Parquet files into a folder, and follow that."
        )
    return "jsonl" if head.startswith(b"{") else "csv"


@final
class Pipe:
    """Reads a file descriptor in a thread of its own; 0 is standard input."""

    def __init__(self, descriptor: int) -> None:
        self._pieces: queue.Queue[bytes | OSError] = queue.Queue(_PIECES_AHEAD)
        # The thread may be left in the middle of a read when the program ends: it holds nothing.
        threading.Thread(target=self._fill, args=(descriptor,), daemon=True).start()

    def _fill(self, descriptor: int) -> None:
        while True:
            try:
                piece: bytes | OSError = os.read(descriptor, _PIECE_BYTES)
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
