"""What a run reads, and what it leaves: texts or images with labels, and predictions on disk.

Rows come from the hub, from a file, or from folders of images. Predictions are kept a batch at a time: whatever kills a
run, the next one goes on after the last whole batch. One file for each run. Its first line names the settings, and its
name is their fingerprint, so other settings never share a file. Then come records, one for each batch, in their order:

    magic, number of the batch, rows, columns      4 + 3 x 4 bytes
    logits, float64, little-endian                 8 x rows x columns bytes
    fingerprint of the settings and of all above   16 bytes

The first record that is cut short, damaged or out of order ends the file: it is cut there, and the rest is made again.
"""

import hashlib
import io
import json
import math
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self, final

import numpy as np

from ..._checks import fail, show
from ..._types import FloatArray
from ...errors import EmptyError, FileError, MissingValueError, OptionError
from ...inputs.sources import first_line
from .model import hub_errors, load_library, local_path

__all__ = ["IMAGES", "LabelledRows", "LogitCache", "ResumedRun", "open_rows", "resume"]

_HEAD = struct.Struct("<4sIII")
_MAGIC = b"SCLB"
_SEAL = 16  # bytes
_VERSION = 1

IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


@final
@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """Labelled texts or images; the inputs are read when they are asked for."""

    name: str
    kind: str
    labels: Sequence[Any]
    numbers: Sequence[int] | None  # of the classes, where labels are names of an ordered list
    raw: Callable[[int], bytes]

    @property
    def n(self) -> int:
        return len(self.labels)

    def inputs(self, start: int, stop: int) -> list[Any]:
        """Return some texts, or some images in RGB."""
        if self.kind == "text":
            return [self.raw(k).decode("utf-8", "surrogatepass") for k in range(start, stop)]
        return [self._image(k) for k in range(start, stop)]

    def _image(self, k: int) -> Any:
        pillow = load_library("PIL.Image", "reading images")
        try:
            with pillow.open(io.BytesIO(self.raw(k))) as image:
                return image.convert("RGB")
        except OSError as error:
            raise FileError(f"row {k} of {self.name!r} holds no image that can be read: {error}.") from error

    def digest(self) -> str:
        """Return a fingerprint of all inputs, in their order."""
        digest = hashlib.sha256()
        for k in range(self.n):
            data = self.raw(k)
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()


def open_rows(
    data: str | os.PathLike[str],
    *,
    kind: str,
    column: str,
    label_column: str,
    subset: str | None,
    split: str,
    revision: str | None,
) -> LabelledRows:
    """Open a data set, wherever it is."""
    path = local_path(data, "data")
    name = os.fspath(data)
    if path is None:
        datasets = load_library("datasets", "a data set on the hub")
        with hub_errors(name, "data", local=False):
            dataset = datasets.load_dataset(name, subset, split=split, revision=revision)
        labelled = _from_datasets(dataset, name, kind, column, label_column)
    elif path.is_file():
        labelled = _from_file(path, kind, column, label_column)
    elif (path / "dataset_info.json").is_file() or (path / "dataset_dict.json").is_file():
        datasets = load_library("datasets", "a data set that `save_to_disk` wrote")
        with hub_errors(name, "data", local=True):
            dataset = datasets.load_from_disk(str(path))
        if not hasattr(dataset, "features"):
            if split not in dataset:
                raise fail(OptionError, "split", f"must be one of {sorted(dataset)}", got=show(split))
            dataset = dataset[split]
        labelled = _from_datasets(dataset, name, kind, column, label_column)
    else:
        labelled = _from_folder(path, kind)
    if labelled.n == 0:
        raise fail(EmptyError, "data", "must hold at least one row", got=f"none in {name!r}")
    missing = [k for k, label in enumerate(labelled.labels) if _is_missing(label)]
    if missing:
        raise fail(
            MissingValueError, "label_column", "must have a label in every row", got=show(labelled.labels[missing[0]]),
            place=f"row {missing[0]}", count=(len(missing), labelled.n),
        )  # fmt: skip
    return labelled


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _columns_exist(columns: Sequence[str], column: str, label_column: str) -> None:
    for argument, name in (("column", column), ("label_column", label_column)):
        if name not in columns:
            raise fail(
                OptionError, argument, "must name a column of the data", got=show(name),
                hint=f"its columns are {', '.join(map(repr, columns))}.",
            )  # fmt: skip


def _text(value: Any, k: int) -> bytes:
    if not isinstance(value, str):
        raise fail(MissingValueError, "column", "must have a text in every row", got=show(value), place=f"row {k}")
    return value.encode("utf-8", "surrogatepass")


def _picture(value: Any, k: int, folder: Path) -> bytes:
    """Return the bytes of an image: as they are, in a record of them, or in a file."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise fail(MissingValueError, "column", "must have an image in every row", got=show(value), place=f"row {k}")
    try:
        return (folder / value).read_bytes()
    except OSError as error:
        raise FileError(f"the image of row {k}, {str(folder / value)!r}, cannot be read: {error.strerror}.") from error


def _from_file(path: Path, kind: str, column: str, label_column: str) -> LabelledRows:
    polars = load_library("polars", "reading a file of rows")
    suffix = path.suffix.lower()
    text = {".csv": ",", ".tsv": "\t"}
    try:
        if suffix in text:  # all as text, so that a label `01` stays what it is
            frame = polars.read_csv(path, separator=text[suffix], infer_schema=False)
        elif suffix in (".jsonl", ".ndjson"):
            frame = polars.read_ndjson(path, infer_schema_length=None)
        elif suffix in (".parquet", ".pq"):
            frame = polars.read_parquet(path)
        else:
            raise FileError(
                f"`data` must be a CSV, TSV, JSON Lines or Parquet file, or a folder of images; got {str(path)!r}."
            )
    except polars.exceptions.PolarsError as error:
        raise FileError(f"{str(path)!r} cannot be read: {first_line(error)}.") from error
    _columns_exist(frame.columns, column, label_column)
    values, folder = frame[column], path.parent
    raw = _picture if kind == "image" else lambda value, k, _: _text(value, k)
    return LabelledRows(str(path), kind, frame[label_column].to_list(), None, lambda k: raw(values[k], k, folder))


def _from_folder(path: Path, kind: str) -> LabelledRows:
    """Take each sub-folder for a class, in the order of their names, as Datasets and torchvision do."""
    if kind != "image":
        raise FileError(f"`data` must be a file for texts; got the folder {str(path)!r}.")
    classes = sorted(sub.name for sub in path.iterdir() if sub.is_dir() and not sub.name.startswith("."))
    files = [
        (file, number)
        for number, name in enumerate(classes)
        for file in sorted((path / name).rglob("*"))
        if file.suffix.lower() in IMAGES and file.is_file()
    ]
    if not files:
        raise FileError(f"`data` must have a sub-folder of images for each class; {str(path)!r} has none.")
    numbers = [number for _, number in files]
    return LabelledRows(str(path), kind, [classes[k] for k in numbers], numbers, lambda k: files[k][0].read_bytes())


def _from_datasets(rows: Any, name: str, kind: str, column: str, label_column: str) -> LabelledRows:
    """Take a `datasets.Dataset`; classes go by their names where it knows them."""
    _columns_exist(rows.column_names, column, label_column)
    labels = list(rows[label_column])
    feature = rows.features[label_column]
    numbers = None
    if hasattr(feature, "int2str") and all(isinstance(k, int) and k >= 0 for k in labels):
        numbers, labels = labels, [feature.int2str(k) for k in labels]
    if kind == "text":
        texts = list(rows[column])
        return LabelledRows(name, kind, labels, numbers, lambda k: _text(texts[k], k))
    datasets = load_library("datasets", "reading images of a data set")
    stored = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
    return LabelledRows(name, kind, labels, numbers, lambda k: _picture(stored[k][column], k, Path()))


@final
class LogitCache:
    """The file of one run, open and locked until it is closed.

    Its ``batches`` are at first what earlier runs left, in order and without gaps.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self._line = json.dumps({"safecal logits": _VERSION, **settings}, sort_keys=True).encode() + b"\n"
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
        body = _HEAD.pack(_MAGIC, len(self.batches), *logits.shape) + logits.astype("<f8").tobytes()
        self._file.write(body + self._seal(body))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.batches.append(logits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

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

    ``settings`` returns what fixes the predictions, and is called only where there is a folder to keep them in;
    ``score`` returns the rows of the batch with a number; ``progress`` is told the rows done, at the start and after
    each batch.
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
