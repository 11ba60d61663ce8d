"""What comes in: a batch with an id, before anyone has read it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..files import stamp_of

__all__ = ["Arrival", "digest_of", "stamp_of", "written"]


@final
@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch that has arrived.

    Attributes
    ----------
    batch : str
        Its id.
    digest : str
        SHA-256 of its content.
    kind : str or None
        The format, where it is known: "csv", "tsv", "jsonl", "parquet".
    path : Path or None
        The file, if it is one.
    content : bytes
        What it holds, if it is no file; a CSV header stands in ``header``.
    header : bytes
        The first line of a CSV stream.
    stamp : str
        How the file looked: it has not changed as long as this has not.
    doubt : str
        Why it must not be counted, if there is a reason.
    """

    batch: str
    digest: str
    kind: str | None = None
    path: Path | None = None
    content: bytes = b""
    header: bytes = b""
    stamp: str = ""
    doubt: str = ""


def written(text: str) -> str:
    """Return text as every store can hold it: what is no Unicode, and the zero character, are spelled out.

    Examples
    --------
    >>> from safecal.watch.arrivals import written
    >>> written("a" + chr(0) + chr(0xDCFF))
    'a\\\\x00\\\\udcff'
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
