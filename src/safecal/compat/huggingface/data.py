"""Rows of a data set: texts or images with labels, from the hub, from a file, or from folders of images.

Also the errors for a name that leads nowhere, and for a library that is missing.
"""

import hashlib
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ..._checks.message import fail, show
from ..._optional import require
from ...errors import EmptyError, FileError, MissingValueError, OptionError, UnreachableError
from ...inputs.sources import first_line

__all__ = ["LabelledRows", "UnreachableError", "hub_errors", "load_library", "local_path", "open_rows"]

_LIBRARIES = {
    "transformers": "Transformers",
    "torch": "PyTorch",
    "datasets": "Datasets",
    "polars": "Polars",
    "PIL.Image": "Pillow",
}
IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def load_library(module: str, purpose: str) -> Any:
    """Import a library, or say what it is needed for and what to install."""
    return require(module, f"{purpose} needs {_LIBRARIES[module]}", "huggingface")


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
    _check_labels(labelled)
    return labelled


def _check_labels(rows: LabelledRows) -> None:
    missing = [k for k, label in enumerate(rows.labels) if _is_missing(label)]
    if missing:
        raise fail(
            MissingValueError, "label_column", "must have a label in every row", got=show(rows.labels[missing[0]]),
            place=f"row {missing[0]}", count=(len(missing), rows.n),
        )  # fmt: skip


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


_SUFFIXES = {".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson"}
_GATED = ("gatedrepoerror", "access a gated repo", "is a gated dataset")


def local_path(name: str | os.PathLike[str], argument: str) -> Path | None:
    """Return the path of something on this machine, None for a name on the hub; refuse a path that leads nowhere."""
    text = os.fspath(name)
    path = Path(text).expanduser()
    if path.exists():
        return path
    meant = isinstance(name, os.PathLike) or text.startswith((".", "~", os.sep)) or "\\" in text
    if meant or text.count("/") > 1 or path.suffix.lower() in _SUFFIXES or not text:
        raise FileError(
            f"`{argument}` must be a name on the Hugging Face hub, or a path that exists; got {text!r}.\n\n"
            f"Hint: relative paths start in the current folder, {os.getcwd()!r}."
        )
    return None


@contextmanager
def hub_errors(name: str, argument: str, *, local: bool) -> Iterator[None]:
    """Turn the errors of Transformers and Datasets about a model or a data set into one clear error.

    Parameters
    ----------
    name : str
        Name on the hub, or path.
    argument : {"model", "data"}
        The argument.
    local : bool
        Whether it lies on this machine.
    """
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError, ImportError) as error:  # those of the hub are among them, and differ by version
        if "trust_remote_code" in str(error):
            raise FileError(
                f"the {argument} {name!r} brings code of its own, which safecal does not run.\n\n"
                f"Hint: read that code, save the predictions it makes, and give them to `safecal.evaluate`."
            ) from error
        if local:
            raise FileError(f"the {argument} in {name!r} cannot be read: {first_line(error)}.") from error
        if isinstance(error, ValueError | ImportError) and not _from_hub(error):
            raise FileError(f"the {argument} {name!r} cannot be used: {first_line(error)}.") from error
        raise UnreachableError(_unreachable(name, argument, error)) from error


def _from_hub(error: BaseException) -> bool:
    return type(error).__module__.startswith("huggingface_hub")


def _unreachable(name: str, argument: str, error: BaseException) -> str:
    chain: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 5:
        chain.append(f"{type(cause).__name__} {cause}".lower())
        cause = cause.__cause__ or cause.__context__
    kind = {"model": "model", "data": "data set"}[argument]
    page = f"https://huggingface.co/{'datasets/' if argument == 'data' else ''}{name}"
    copy = f"hf download {name} {'--repo-type dataset ' if argument == 'data' else ''}--local-dir copy"
    local_copy = (
        "a folder that `save_pretrained` wrote"
        if argument == "model"
        else "a CSV or Parquet file, or a folder of images"
    )
    if any(word in text for text in chain for word in _GATED):
        return (
            f"the {kind} {name!r} is gated on the Hugging Face hub, and this machine has no access to it.\n\n"
            f"Hint: accept the conditions at {page}, then `hf auth login`; or pass {local_copy} as `{argument}`."
        )
    return (
        f"the {kind} {name!r} could not be fetched from the Hugging Face hub: {first_line(error)}.\n\n"
        f"Hint: pass a local copy as `{argument}`, {local_copy}. Where the hub can be reached: `{copy}`."
    )
