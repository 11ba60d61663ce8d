"""Files of predictions, a batch of columns at a time: by Polars, or without it CSV, JSON Lines and .npz."""

import atexit
import csv
import importlib.util
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, final
from zipfile import BadZipFile

import numpy as np

from .._optional import polars
from .._types import AnyArray
from ..errors import FileError
from . import Reader, Rows, text_files

__all__ = [
    "BATCH", "Source", "first_line", "has_polars", "is_columnar", "left_out", "must_be_a_file", "open_source",
    "spooled", "stamp_of",
]  # fmt: skip

BATCH = 1 << 19  # rows

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npz": "npz",
}  # fmt: skip
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
_FORMAT_NAMES = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON Lines", "parquet": "Parquet", "arrow": "Arrow"}
_DEEPEST = 500  # levels of JSON
_FORMATS = "CSV, TSV, Parquet, JSON Lines, Arrow or .npz"


def has_polars() -> bool:
    """Tell whether Polars is installed."""
    return importlib.util.find_spec("polars") is not None


def stamp_of(status: os.stat_result) -> str:
    """Return how a file looks from outside; it changes when the file does, also where its time was set back."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}:{status.st_ctime_ns}"


class Source(ABC):
    """A file of rows with named columns."""

    has_known_columns: ClassVar[bool] = False  # whether the source itself says which column holds what

    def __init__(self, name: str, columns: Sequence[str], once: bool) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.twice = {column for column, count in Counter(columns).items() if count > 1}
        self.once = once  # whether it came through a pipe
        self.doubts: tuple[str, ...] = ()  # whether it is whole, for a note beside the result

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows of some columns, from the first."""

    @abstractmethod
    def rows(self) -> int | None:
        """Return the number of rows; None where it is not known without reading them."""

    def guess(self) -> int | None:
        """Estimate the number of rows from the size of the file and its first lines; None if they do not tell."""
        return None

    def place(self, row: int) -> str | None:
        """Return the place of a row in better words than its number; None where there are none."""
        return None

    @abstractmethod
    def frame(self) -> Any:
        """Return all columns as a Polars frame."""


def left_out(source: Source, reader: Reader) -> tuple[str, ...]:
    """Return how many rows the reader left out, for a note beside the result; empty where none was."""
    if reader.first_dropped is None:
        return ()
    rows = "row" if reader.rows == 1 else "rows"
    place = source.place(reader.first_dropped) or f"row {reader.first_dropped}"
    return (f"left out {reader.dropped} of {reader.rows} {rows} with missing values, the first at {place}.",)


@final
class _FrameSource(Source):
    def __init__(self, name: str, path: str, kind: str, once: bool, separator: str) -> None:
        self.path, self.kind, self._separator = path, kind, separator
        self._stamp = stamp_of(os.stat(path))
        self._frame = self._opened(name)
        with _clear_errors(name):
            columns = self._as_written(self._frame.collect_schema().names())
        super().__init__(name, columns, once)

    def _as_written(self, names: list[str]) -> list[str]:
        """Return the names of the columns as the file has them: Polars renames or drops what it has seen before."""
        if self.kind in ("csv", "tsv") and any("_duplicated_" in name for name in names):
            first = polars().read_csv(
                self.path, has_header=False, n_rows=1, infer_schema=False, separator=self._separator, glob=False
            )
            pairs = zip(names, first.row(0), strict=False)
            return [old if old and new.startswith(f"{old}_duplicated_") else new for new, old in pairs]
        has_pyarrow = importlib.util.find_spec("pyarrow") is not None
        # Later releases of Polars refuse a Parquet file that names a column twice.
        if self.kind == "parquet" and has_pyarrow and polars().__version__.startswith("1."):
            import pyarrow.parquet as pq

            return list(map(str, pq.read_schema(self.path).names))
        if self.kind == "arrow" and has_pyarrow:
            import pyarrow as pa

            try:
                with pa.OSFile(self.path) as file, pa.ipc.open_file(file) as reader:
                    return list(map(str, reader.schema.names))
            except pa.ArrowInvalid:  # a stream, or no Arrow file: Polars says what it is
                return names
        return names

    def _opened(self, name: str) -> Any:
        pl = polars(f"{_FORMAT_NAMES[self.kind]} files are read")
        with _clear_errors(name):
            if self.kind in ("csv", "tsv"):
                # Columns stay text until they are chosen: then every value that is no number has a row.
                return pl.scan_csv(self.path, infer_schema=False, separator=self._separator, glob=False)
            if self.kind == "jsonl":
                return pl.scan_ndjson(self.path, infer_schema_length=None)
            return pl.scan_parquet(self.path, glob=False) if self.kind == "parquet" else pl.scan_ipc(self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        with _clear_errors(self.name):
            for frame in self._frame.select(list(dict.fromkeys(columns))).collect_batches(chunk_size=BATCH):
                for part in frame.iter_slices(BATCH):
                    if part.height:
                        yield {name: part[name] for name in part.columns}
        self._unchanged()

    def _unchanged(self) -> None:
        """Refuse rows of a file that someone wrote to meanwhile: some may be old and some new."""
        try:
            if stamp_of(os.stat(self.path)) == self._stamp:
                return
        except FileNotFoundError:  # what is open stays whole, whoever took its name away
            return
        raise FileError(f"{self.name} changed while it was read.\n\nHint: write to another file, and rename it.")

    def rows(self) -> int | None:
        if self.kind not in ("parquet", "arrow"):
            return None
        with _clear_errors(self.name):
            return int(self._frame.select(polars().len()).collect().item())

    def guess(self) -> int | None:
        return _guessed_rows(self.path) if self.kind in ("csv", "tsv", "jsonl") else None

    def frame(self) -> Any:
        with _clear_errors(self.name):
            frame = self._frame.collect()
        self._unchanged()
        return frame


@final
class _TextSource(Source):
    """CSV, TSV or JSON Lines, without Polars."""

    def __init__(self, name: str, path: str, kind: str, once: bool, separator: str) -> None:
        self.path, self.kind, self._separator = path, kind, separator
        with _clear_errors(name):
            json = kind == "jsonl"
            columns = text_files.json_header(path, name) if json else text_files.csv_header(path, name, separator)
        super().__init__(name, columns, once)

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        wanted = list(dict.fromkeys(columns))
        with _clear_errors(self.name):
            if self.kind == "jsonl":
                yield from text_files.json_rows(self.path, self.name, wanted)
            else:
                yield from text_files.csv_rows(self.path, self.name, self._separator, wanted)

    def rows(self) -> int | None:
        return None

    def guess(self) -> int | None:
        return _guessed_rows(self.path)

    def frame(self) -> Any:
        return polars("rows are written")


@final
class _ArchiveSource(Source):
    def __init__(self, name: str, path: str, once: bool) -> None:
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                repeated = {key for key in archive.files if archive.files.count(key) > 1}
                self.arrays = {} if repeated else {key: archive[key] for key in archive.files}
        except (ValueError, OSError, EOFError, KeyError, BadZipFile) as error:
            raise FileError(f"{name} cannot be read as .npz: {first_line(error)}.") from error
        if repeated:
            raise FileError(f"{name} holds more than one array {min(repeated)!r}.")
        odd = [key for key, array in self.arrays.items() if not isinstance(array, np.ndarray)]
        if odd:
            raise FileError(f"{name} must hold arrays; {odd[0]!r} is not an array, and safecal unpickles nothing.")
        lengths = {len(array) for array in self.arrays.values() if array.ndim}
        if len(lengths) != 1 or any(array.ndim == 0 for array in self.arrays.values()):
            shapes = ", ".join(f"{key} {array.shape}" for key, array in self.arrays.items())
            raise FileError(f"{name} must hold arrays with one row for each prediction; it holds {shapes or 'none'}.")
        self.size = lengths.pop()
        super().__init__(name, list(self.arrays), once)

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        for start in range(0, self.size, BATCH):
            yield {name: self.arrays[name][start : start + BATCH] for name in columns}

    def rows(self) -> int | None:
        return self.size

    def frame(self) -> Any:
        columns: dict[str, AnyArray] = {}
        for name, array in self.arrays.items():
            columns |= {name: array} if array.ndim == 1 else {f"{name}_{k}": array[:, k] for k in range(array.shape[1])}
        return polars("rows are written").DataFrame(columns)


def open_source(path: str, kind: str | None, separator: str | None = None) -> Source:
    """Open a file, or standard input for ``-``; ``separator`` stands between the fields of CSV."""
    if separator is not None:
        separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
        if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
            raise FileError(f"`--sep` must be one character, such as `;`, or `tab`; got {separator!r}.")
        kind = kind or "csv"
    if path == "-":
        path, name, once = spooled(), "standard input", True
        if kind is None and text_files.log_kind(path) is not None:
            hint = "name the file; or, for answers of a server, add `--vocabulary SIZE --text given`."
            raise FileError(f"standard input is a log of a language model.\n\nHint: {hint}")
        kind = kind or _kind_by_content(path) or "csv"
    else:
        name, once = path, False
        must_be_a_file(path)
        kind = kind or _kind_by_content(path) or _kind_by_name(path)
    if os.path.getsize(path) == 0:
        raise FileError(f"{name} is empty.")
    if kind == "npz":
        return _ArchiveSource(name, path, once)
    if kind in ("csv", "tsv", "jsonl"):
        _must_be_text(path, name, kind, separator)
    fields = separator or ("\t" if kind == "tsv" else ",")
    without_polars = kind in ("csv", "tsv", "jsonl") and not has_polars()
    source = (_TextSource if without_polars else _FrameSource)(name, path, kind, once, fields)
    source.doubts = _note_of_end(path) if kind in ("csv", "tsv") else ()  # what is missing of the others shows
    return source


def must_be_a_file(path: str) -> None:
    """Refuse a folder, and a path that does not exist."""
    if os.path.isdir(path):
        raise FileError(f"{path} is a folder, not a file.\n\nHint: name one file in it.")
    if not os.path.exists(path):
        folder = Path(path).parent
        nearby = sorted(p.name for p in folder.glob("*") if p.suffix in _SUFFIXES)[:5] if folder.is_dir() else []
        hint = f"\n\nHint: files in that folder: {', '.join(nearby)}." if nearby else ""
        raise FileError(f"{path} does not exist.{hint}")


def is_columnar(path: str) -> bool:
    """Tell by the first bytes whether a file is Parquet or Arrow, and so no log of text."""
    return os.path.isfile(path) and os.access(path, os.R_OK) and _kind_by_content(path) in ("parquet", "arrow")


def _kind_by_content(path: str) -> str | None:
    """Tell the format by the first bytes, where they are a signature."""
    with open(path, "rb") as file:
        head = file.read(8)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _kind_by_name(path: str) -> str:
    suffixes = [s for s in Path(path).suffixes if s not in (".gz", ".zst")]
    kind = _SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        raise FileError(
            f"the format of {path} is not known by its name.\n\nHint: add `--format csv`, or whichever it is."
        )
    claimed = {"parquet": "a Parquet", "arrow": "an Arrow", "npz": "an .npz"}.get(kind)
    if claimed is not None:  # its first bytes say otherwise
        raise FileError(f"{path} is not {claimed} file, whatever its name says; it may be cut short or damaged.")
    return kind


def _must_be_text(path: str, name: str, kind: str, separator: str | None) -> None:
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    if head[:2] == b"\x1f\x8b" or head[:4] == b"\x28\xb5\x2f\xfd":
        return
    if b"\0" in head:
        raise FileError(f"{name} is not text, so it is not a {kind} file.\n\nHint: {_FORMATS} files are read.")
    if kind == "jsonl" and _depth(head) > _DEEPEST:  # which ends some releases of Polars, and Python with them
        raise FileError(f"{name} cannot be read: its first lines are nested more than {_DEEPEST} levels deep.")
    if kind == "jsonl" and (twice := text_files.repeated_key(head)) is not None:  # readers differ in which they take
        raise FileError(f"{name} has more than one {twice!r} in a line.\n\nHint: rename the others.")
    if kind == "csv" and separator is None:
        line = head.split(b"\n", 1)[0]
        if b"," not in line and (b"\t" in line or b";" in line):
            hint = "`--format tsv`" if b"\t" in line else "`--sep ';'`"
            raise FileError(f"{name} has no comma in its first line.\n\nHint: add {hint}.")


def _note_of_end(path: str) -> tuple[str, ...]:
    """Return a note where a file of lines ends within one, as a file does that was cut."""
    with open(path, "rb") as file:
        packed = file.read(2) in (b"\x1f\x8b", b"\x28\xb5", b"BZ", b"\xfd7")
        file.seek(-1, os.SEEK_END)
        if packed or file.read(1) in b"\r\n":
            return ()
    cut = "the file ends within a line: if it was cut, rows are missing, and its last number may be a part of one."
    return (cut,)


def _depth(text: bytes) -> int:
    """Return how deep brackets are nested in a text, also where they stand in words."""
    characters = np.frombuffer(text, dtype=np.uint8)
    opened, closed = np.isin(characters, tuple(b"[{")), np.isin(characters, tuple(b"]}"))
    return int(np.cumsum(opened.astype(np.int64) - closed, dtype=np.int64).max(initial=0))


def _guessed_rows(path: str) -> int | None:
    with open(path, "rb") as file:
        head = file.read(1 << 18)
    lines = head.count(b"\n")
    if not lines or head[:2] == b"\x1f\x8b" or head[:4] == b"\x28\xb5\x2f\xfd":
        return None
    return round(os.path.getsize(path) * lines / len(head))


def spooled() -> str:
    """Copy standard input to a temporary file, which is removed when the program ends."""
    if sys.stdin is None or sys.stdin.isatty():
        state = "closed" if sys.stdin is None else "a terminal"
        raise FileError(f"standard input is {state}.\n\nHint: pipe a file into it: `safecal evaluate - < file.csv`.")
    handle, path = tempfile.mkstemp(prefix="safecal-")
    atexit.register(Path(path).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def first_line(error: BaseException) -> str:
    """Return the first line of an error without its full stop, or the name of its type."""
    return str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__


@contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn an error of Polars about a file into one line."""
    try:
        yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # Polars met what it holds to be impossible: a damaged file
        ours = isinstance(error, UnicodeError | csv.Error | EOFError)
        if panic or ours or type(error).__module__.startswith("polars"):
            raise FileError(f"{name} cannot be read: {first_line(error)}.") from error
        raise
