"""CSV, TSV and JSON Lines, read with Python's own library, some thousand rows at a time: nothing need be installed."""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, TypeVar

import numpy as np

from .._types import AnyArray
from ..errors import FileError

__all__ = [
    "ROWS", "count_repeats", "csv_header", "csv_rows", "hash_text", "in_blocks", "json_column", "json_documents",
    "json_header", "json_objects", "json_rows", "log_kind", "opened",
]  # fmt: skip

ROWS = 1 << 16  # at a time
_LONGEST = 1 << 27  # characters of a field
_T = TypeVar("_T")
_HEAD = 1 << 16  # characters of a first line that tell what it is

_OPENERS: dict[bytes, Callable[[str], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}


def opened(path: str, name: str) -> IO[str]:
    """Open text, unpacked where its first bytes say that it is packed."""
    with open(path, "rb") as file:
        head = file.read(6)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        hint = 'pip install "safecal[cli]", or unpack it first: `unzstd FILE`.'
        raise FileError(f"{name} is packed with zstd, which only Polars unpacks.\n\nHint: {hint}")
    opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
    binary = open(path, "rb") if opener is None else opener(path)  # noqa: SIM115  (closed by who reads it)
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


def csv_header(path: str, name: str, separator: str) -> list[str]:
    """Return the names of the columns."""
    with opened(path, name) as file:
        for row in csv.reader(file, delimiter=separator):
            if row:
                return row
    raise FileError(f"{name} is empty.")


def in_blocks(rows: Iterator[_T], size: int) -> Iterator[list[_T]]:
    """Yield so many rows at a time, and at last the rest; a block is emptied before the next one is read."""
    while block := list(islice(rows, size)):
        yield block
        block.clear()


def csv_rows(path: str, name: str, separator: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield some columns as text; an empty field is missing."""
    csv.field_size_limit(_LONGEST)
    with opened(path, name) as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        header = next(row for row in reader if row)
        places = {column: header.index(column) for column in columns}
        for rows in in_blocks(_filled_up(reader, len(header), name), ROWS):
            yield {
                column: np.array([row[place] or None for row in rows], dtype=object) for column, place in places.items()
            }


def _filled_up(reader: Any, size: int, name: str) -> Iterator[list[str]]:
    """Yield rows with an empty field for each that they lack."""
    for row in reader:
        if len(row) > size:
            raise FileError(
                f"{name} has {len(row)} fields in line {reader.line_num}, and {size} columns in its header."
            )
        yield row + [""] * (size - len(row))


def json_header(path: str, name: str) -> list[str]:
    """Return the names of the columns: the keys of all rows, in their order."""
    names: dict[str, None] = {}
    for _, row in json_objects(path, name):
        names |= dict.fromkeys(row)
    return list(names)


def repeated_key(head: bytes) -> str | None:
    """Return a key that the first line of JSON Lines has twice; None where there is none."""
    whole: list[list[str]] = []
    try:
        json.loads(
            head.lstrip().split(b"\n", 1)[0], object_pairs_hook=lambda pairs: whole.append([k for k, _ in pairs])
        )
    except (ValueError, RecursionError):  # who reads the rows says what is wrong
        return None
    keys = whole[-1] if whole else []
    return next((key for k, key in enumerate(keys) if key in keys[:k]), None)


def json_rows(path: str, name: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield some columns; a key that a row lacks is missing there."""
    for rows in in_blocks((row for _, row in json_objects(path, name)), ROWS):
        yield {column: json_column([row.get(column) for row in rows]) for column in columns}


def json_objects(path: str, name: str, *, constants: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line with its number; ``constants`` says whether NaN and Infinity may stand in it."""
    with opened(path, name) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=None if constants else _refused)
            except (ValueError, RecursionError) as error:
                raise FileError(f"{name} cannot be read: line {number} is not JSON.") from error
            if not isinstance(row, dict):
                raise FileError(f"{name} cannot be read: line {number} is not a JSON object.")
            yield number, row


def json_documents(path: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line of a file, or what a list or a single document in it holds, and where that is."""
    with opened(path, name) as file:
        start = next((line.strip() for line in file if line.strip()), "")
    if not start.startswith("[") and start != "{":
        for number, row in json_objects(path, name, constants=True):
            yield f"line {number}", row
        return
    try:
        with opened(path, name) as file:
            document = json.load(file)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{name} cannot be read: it is not JSON.") from error
    for number, row in enumerate(document if isinstance(document, list) else [document]):
        if not isinstance(row, dict):
            raise FileError(f"{name} cannot be read: item {number} of its list is not a JSON object.")
        yield f"item {number}", row


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def json_column(values: list[Any]) -> AnyArray:
    """Return numbers, truths and lists as NumPy has them; anything else as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {bool}:
        try:
            return np.array(values)
        except OverflowError:  # whole numbers beyond 64 bits
            return np.array([str(value) for value in values], dtype=object)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def hash_text(text: str) -> int:
    """Return eight bytes that tell a text from others."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def count_repeats(keys: "array[int]") -> int:
    """Return how many keys repeat an earlier one; it sorts them in place, and makes no copy."""
    hashes = np.frombuffer(keys, dtype=np.int64)
    hashes.sort()
    return int(np.count_nonzero(hashes[1:] == hashes[:-1]))


_ANSWER = re.compile(r'"object"\s*:\s*"(chat\.completion|text_completion|response)"|"(prompt|top)_logprobs"')


def log_kind(path: str) -> str | None:
    """Tell by its content whether a file is a log of a language model: None where it is another file.

    ``"lm_eval"`` or ``"inspect"`` where it holds questions, ``"answers"`` where it holds what a server answered.
    """
    if not os.path.isfile(path):
        return None
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return "inspect" if {"header.json", "_journal/start.json"} & set(archive.namelist()) else None
        with opened(path, path) as file:
            line = file.readline(_HEAD)
            start = line if line.strip() not in ("{", "[") else line + file.read(_HEAD)
    except (OSError, ValueError, EOFError, FileError, zipfile.BadZipFile):
        return None
    if all(f'"{key}"' in start for key in ("doc_id", "doc")) and start.lstrip().startswith("{"):
        return "lm_eval"
    if start.lstrip().startswith("{") and '"eval"' in start and '"status"' in start:
        return "inspect"
    return "answers" if start.lstrip().startswith(("{", "[")) and _ANSWER.search(start) else None
