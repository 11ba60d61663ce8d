"""Predictions on disk, a batch at a time: whatever kills a run, the next one goes on after the last whole batch.

One file for each run. Its first line names the settings, and its name is their fingerprint, so other settings never
share a file. Then come records, one for each batch, in their order:

    magic, number of the batch, rows, columns      4 + 3 x 4 bytes
    logits, float64, little-endian                 8 x rows x columns bytes
    fingerprint of the settings and of all above   16 bytes

The first record that is cut short, damaged or out of order ends the file: it is cut there, and the rest is made again.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self, final

import numpy as np

from ..._types import FloatArray
from ...errors import FileError

__all__ = ["LogitCache", "ResumedRun", "fingerprint", "resume"]

_HEAD = struct.Struct("<4sIII")
_MAGIC = b"SCLB"
_SEAL = 16  # bytes
_VERSION = 1


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return a fingerprint of settings, whatever their order."""
    return hashlib.sha256(_line(settings)).hexdigest()


def _line(settings: Mapping[str, Any]) -> bytes:
    return json.dumps({"safecal logits": _VERSION, **settings}, sort_keys=True).encode() + b"\n"


@final
class LogitCache:
    """The file of one run, open and locked until it is closed.

    Attributes
    ----------
    batches : list of ndarray
        What earlier runs left, in order and without gaps.
    path : Path
        The file.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self._line = _line(settings)
        self._key = hashlib.sha256(self._line).digest()
        self.path = Path(folder) / f"{self._key.hex()[:32]}.logits"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise FileError(f"`cache` must be a folder; {os.fspath(folder)!r} is a file, or lies in one.") from error
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._file: BinaryIO = os.fdopen(handle, "r+b")
        try:
            _lock(self._file, self.path)
            self.batches = self._recover()
        except BaseException:
            self._file.close()
            raise

    def append(self, logits: FloatArray) -> None:
        """Add the next batch; when this returns, it is on disk."""
        self._file.write(self._record(len(self.batches), logits))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.batches.append(logits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _record(self, number: int, logits: FloatArray) -> bytes:
        rows, columns = logits.shape
        body = _HEAD.pack(_MAGIC, number, rows, columns) + logits.astype("<f8").tobytes()
        return body + self._seal(body)

    def _seal(self, body: bytes) -> bytes:
        return hashlib.sha256(self._key + body).digest()[:_SEAL]

    def _recover(self) -> list[FloatArray]:
        """Read all whole batches, and cut off what follows them."""
        batches: list[FloatArray] = []
        self._file.seek(0, os.SEEK_END)
        size = self._file.tell()
        self._file.seek(0)
        if self._file.read(len(self._line)) != self._line:  # new, or killed before its first line was whole
            self._file.seek(0)
            self._file.truncate()
            self._file.write(self._line)
        else:
            good = self._file.tell()
            while (batch := self._next(len(batches), size)) is not None:
                batches.append(batch)
                good = self._file.tell()
            self._file.seek(good)
            self._file.truncate()
        self._file.flush()
        os.fsync(self._file.fileno())
        return batches

    def _next(self, number: int, size: int) -> FloatArray | None:
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, stored, rows, columns = _HEAD.unpack(head)
        length = 8 * rows * columns
        if magic != _MAGIC or stored != number or length + _SEAL > size - self._file.tell():
            return None
        body = head + self._file.read(length)
        if self._file.read(_SEAL) != self._seal(body):
            return None
        return np.frombuffer(body, "<f8", offset=_HEAD.size).astype(np.float64).reshape(rows, columns)


class ResumedRun(NamedTuple):
    """The rows of all batches, how many of them an earlier run had left, and the file that holds them."""

    rows: FloatArray
    resumed: int
    path: Path | None


def resume(
    folder: str | os.PathLike[str] | None,
    settings: Callable[[], Mapping[str, Any]],
    batches: int,
    score: Callable[[int], FloatArray],
    progress: Callable[[int], None],
) -> ResumedRun:
    """Score the batches that no earlier run has left, and keep each of them on disk as it is made.

    Parameters
    ----------
    folder : path or None
        Where predictions are kept; None keeps none.
    settings : callable
        Returns what fixes the predictions; called only where they are kept.
    batches : int
        How many batches there are.
    score : callable
        Returns the rows of the batch with a number.
    progress : callable
        Called with the rows done: at the start, and after each batch.
    """
    opened = nullcontext() if folder is None else LogitCache(folder, settings())
    with opened as cache:
        parts = [] if cache is None else list(cache.batches)
        done = resumed = sum(map(len, parts))
        progress(done)
        for number in range(len(parts), batches):
            part = score(number)
            if cache is not None:
                cache.append(part)
            parts.append(part)
            done += len(part)
            progress(done)
    return ResumedRun(np.concatenate(parts), resumed, None if cache is None else cache.path)


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs away; the system lets go of the lock when this process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two runs at once are up to the user
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileError(
            f"another run is writing the same predictions to {str(path)!r}.\n\n"
            "Hint: wait for it, or choose another `cache`."
        ) from error
    except OSError:  # a file system without locks
        return
