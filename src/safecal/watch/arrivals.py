"""What comes in: a batch with an id, before anyone has read it; and a folder in which each file is a batch."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..errors import FileError
from ..files import stamp_of
from .store import Known

__all__ = ["KINDS", "Arrival", "Folder", "digest_of", "written"]

KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", ".filepart", ".swp", "~")


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


@final
class Folder:
    """Looks into a folder, and yields the files that are whole and new, in the order of their names.

    A file is whole when it looks as it did at the look before, and its end says so: the signature of a Parquet file,
    the line end of a text file. One without such an end is taken, or refused, after it has been still for
    ``looks`` looks. Names that begin with a dot or an underscore, or end in ``.part`` or ``.tmp``, are unfinished.

    Parameters
    ----------
    path : str or os.PathLike
        The folder.
    known : callable
        What is known of a batch by its id, if it was counted.
    tell : callable
        Takes one line, for a person.
    looks : int, default 10
        Looks at which a file without an end must be still.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        known: Callable[[str], Known | None],
        tell: Callable[[str], None],
        *,
        looks: int = 10,
    ) -> None:
        self.path, self.looks = Path(path), looks
        self._known, self._tell = known, tell
        self._seen: dict[str, tuple[str, int]] = {}  # name -> how it looked, and for how many looks
        self._done: dict[str, str] = {}  # name -> how it looked when we were done with it
        self._told: set[str] = set()
        if not self.path.is_dir():
            raise FileError(f"{path} is no folder.\n\nHint: name a folder of files, or `-` for standard input.")

    @property
    def waiting(self) -> tuple[str, ...]:
        """The files that have been seen and not taken yet."""
        return tuple(sorted(name for name, (stamp, _) in self._seen.items() if self._done.get(name) != stamp))

    def look(self) -> Iterator[Arrival]:
        """Look once, and yield what is ready. What was yielded is done with when the next is asked for."""
        now = self._listed()
        self._seen = {
            name: (stamp, self._seen[name][1] + 1 if self._seen.get(name, ("", 0))[0] == stamp else 0)
            for name, stamp in now.items()
        }
        self._done = {name: stamp for name, stamp in self._done.items() if name in now}
        for name, (stamp, still) in sorted(self._seen.items()):
            if self._done.get(name) == stamp:
                continue
            known = self._known(written(name))
            if known is not None and known.stamp == stamp:
                self._done[name] = stamp
            elif still > 0:
                arrival = self._arrival(name, stamp, still)
                if arrival is not None:
                    yield arrival
                    self._done[name] = stamp

    def _listed(self) -> dict[str, str]:
        found = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if self._wanted(entry):
                        try:
                            found[entry.name] = stamp_of(os.stat(entry.path))  # entry.stat() may be stale
                        except FileNotFoundError:  # it went away between the two
                            continue
        except FileNotFoundError as error:
            raise FileError(f"the folder {self.path} is gone.") from error
        return found

    def _wanted(self, entry: "os.DirEntry[str]") -> bool:
        name = entry.name
        if name.startswith((".", "_")) or name.lower().endswith(_UNFINISHED):
            return False
        if not entry.is_file():
            return False
        if Path(name).suffix.lower() in KINDS:
            return True
        if name not in self._told:
            self._told.add(name)
            self._tell(f"left alone: {name}; files named {', '.join(KINDS)} are read.")
        return False

    def _arrival(self, name: str, stamp: str, still: int) -> Arrival | None:
        path, kind = self.path / name, KINDS[Path(name).suffix.lower()]
        try:
            if still < self.looks and not _ended(path, kind):
                return self._not_whole(name, "its end is missing")
            digest = digest_of(path)
            if stamp_of(os.stat(path)) != stamp:
                return self._not_whole(name, "it changed while it was read")
        except FileNotFoundError:  # it went away
            return None
        except OSError as error:
            return self._not_whole(name, f"the system refused: {error.strerror or error}")
        return Arrival(written(name), digest, kind, path, stamp=stamp)

    def _not_whole(self, name: str, why: str) -> Arrival | None:
        if f"{name} {why}" not in self._told:
            self._told.add(f"{name} {why}")
            self._tell(f"waiting for {name}: {why}.")
        return None


def _ended(path: Path, kind: str) -> bool:
    """Tell whether the last bytes of a file are those of a file that is whole."""
    last = b"PAR1" if kind == "parquet" else b"\n"
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(last)))
        return file.read() == last
