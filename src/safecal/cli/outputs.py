"""Where results go: to files, which are checked before the work and written whole after it, and to the terminal.

An output must not be an input, nor another output: the same file is known by whatever name it goes. On a terminal, the
verdict is in colour, and a line counts rows while one waits.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .._optional import require
from ..errors import FileError
from ..files import write_atomically

__all__ = [
    "INTERRUPTED",
    "NamedFile",
    "Progress",
    "ReadFolder",
    "Steps",
    "TABLE_KINDS",
    "check_outputs",
    "command_line",
    "draw",
    "gate_status",
    "say_verdict",
    "searching",
    "write_plot",
]

_PICTURES = (".svg", ".png", ".pdf")
TABLE_KINDS = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow"}


def check_outputs(
    *,
    inputs: Mapping[str, str | None] | None = None,
    folders: Iterable[ReadFolder] = (),
    report: str | None = None,
    plot: str | None = None,
    summary: str | None = None,
    table: str | None = None,
    save: str | None = None,
    store: Iterable[str] = (),
    out: Iterable[str | Path] = (),
) -> None:
    """Refuse what could not be written, or would destroy an input or another output, before anything is read.

    Inputs stand under the word of the command line that names each; ``-`` is standard input. Where ``--out`` names one
    file, that is ``table``; where it is a folder, which may have to be made first, ``out`` are the files in it.
    """
    words = {"--report": report, "--plot": plot, "--summary": summary, "--out": table, "--save": save}
    named = {word: path for word, path in words.items() if path is not None}
    for path in named.values():
        _check_folder(path)
    _check_distinct(
        [
            *(NamedFile.of("--store", path) for path in store),  # first: of two outputs the later is the one to change
            *(NamedFile.of(word, path) for word, path in named.items()),
            *(NamedFile.of("--out", str(path), folder=True) for path in out),
            *_standard_output(),
        ],
        [NamedFile.read(word, path) for word, path in (inputs or {}).items() if path is not None],
        folders,
    )
    if plot is not None:
        if Path(plot).suffix.lower() not in _PICTURES:
            raise FileError(f"`--plot` must end in {', '.join(_PICTURES)}; got {plot}.")
        require("matplotlib", "`--plot` draws with Matplotlib", "cli")
    if table is not None and Path(table).suffix.lower() not in TABLE_KINDS:
        raise FileError(f"`--out` must end in {', '.join(TABLE_KINDS)}; got {table}.")


def _check_folder(path: str) -> None:
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"the folder of {path} does not exist.\n\nHint: mkdir -p {shlex.quote(str(folder))}")
    if Path(path).is_dir():
        raise FileError(f"{path} is a folder; name a file in it.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise FileError(f"{path} cannot be written: it, or its folder, is read-only.")


def write_plot(figure: Any, path: str) -> None:
    """Write a figure in the format its name asks for."""
    buffer = io.BytesIO()
    kind = Path(path).suffix.lower()[1:]
    figure.savefig(buffer, format=kind, bbox_inches="tight", **({"dpi": 200} if kind == "png" else {}))
    write_atomically(path, buffer.getvalue())


def command_line() -> str:
    """Return the command as it was typed, without the folder of the program."""
    return shlex.join(["safecal", *sys.argv[1:]]) if os.path.basename(sys.argv[0]) else "safecal"


_EXAMPLE_ENDINGS = {
    "--report": "-report.html",
    "--plot": "-plot.svg",
    "--summary": "-summary.md",
    "--out": "-calibrated.csv",
    "--save": "-calibrator.json",
    "--store": "-watch.sqlite",
}


@final
@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the command line names, and the word it is named with."""

    word: str
    path: str | None  # none of standard input and output
    status: os.stat_result | None  # none where nothing is there
    folder: bool = False  # whether the word names the folder of the file

    @classmethod
    def of(cls, word: str, path: str, *, folder: bool = False) -> NamedFile:
        """Look where a path leads."""
        return cls(word, path, _status(path), folder)

    @classmethod
    def read(cls, word: str, path: str) -> NamedFile:
        """Look where an input comes from; ``-`` is standard input, except behind an option."""
        if path == "-" and not word.startswith("--"):
            return cls("standard input", None, _status(0))
        return cls.of(word, path)

    def is_same(self, other: NamedFile) -> bool:
        """Tell whether both are one file, or would be. Pipes and devices are none: nothing in them is destroyed."""
        if self.status is not None and other.status is not None:
            return stat.S_ISREG(self.status.st_mode) and os.path.samestat(self.status, other.status)
        if self.status is not None or other.status is not None or self.path is None or other.path is None:
            return False
        a, b = (Path(os.path.realpath(path)) for path in (self.path, other.path))
        return os.path.normcase(a.name) == os.path.normcase(b.name) and _one_folder(a.parent, b.parent)

    def __str__(self) -> str:
        return self.word if self.path is None else f"`{self.word}`"


@final
@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A folder in which files of some kinds are read."""

    word: str
    path: str
    suffixes: Collection[str]

    def holds(self, file: NamedFile) -> bool:
        """Tell whether the folder would be read for this file, or has a link to it."""
        if file.status is not None and not stat.S_ISREG(file.status.st_mode):
            return False
        if file.path is not None:
            real = Path(os.path.realpath(file.path))
            if real.suffix.lower() in self.suffixes and any(_one_folder(self.path, above) for above in real.parents):
                return True
        return file.status is not None and any(
            os.path.samestat(file.status, linked) for linked in self._linked(file.status)
        )

    def _linked(self, status: os.stat_result) -> Iterator[os.stat_result]:
        """Yield what may be the file under another name, without a look at every file."""
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    read = Path(entry.name).suffix.lower() in self.suffixes
                    if read and (entry.is_symlink() or entry.inode() == status.st_ino):
                        linked = _status(entry.path)
                        if linked is not None:
                            yield linked
        except OSError:  # whoever reads the folder tells of it
            return


def _standard_output() -> Iterator[NamedFile]:
    """Yield standard output where it was sent to a file."""
    status = _status(1)
    if status is not None and stat.S_ISREG(status.st_mode):
        yield NamedFile("standard output", None, status)


def _check_distinct(outputs: Iterable[NamedFile], inputs: Iterable[NamedFile], folders: Iterable[ReadFolder]) -> None:
    """Refuse an output that is an input or another output."""
    inputs, folders = tuple(inputs), tuple(folders)
    earlier: list[NamedFile] = []
    for output in outputs:
        for others, why in ((inputs, "which is read"), (earlier, "which is written, too")):
            for other in others:
                if output.is_same(other) and not _one_word(output, other):
                    same, name = _one_file(output, other)
                    raise FileError(
                        f"{output} must not be the same file as {other}, {why}; {same}.{_hint(output, name)}"
                    )
        for folder in folders:
            if folder.holds(output):
                kinds = ", ".join(sorted(folder.suffixes))
                raise FileError(
                    f"{output} must lie outside `{folder.word}`, where files named {kinds} are read; got "
                    f"{output.path or 'such a file'}.{_hint(output, Path(output.path or 'watch'))}"
                )
        earlier.append(output)


def _one_word(a: NamedFile, b: NamedFile) -> bool:
    """Tell whether both belong to one option, such as the files beside a store."""
    return a.word == b.word and not a.folder


def _one_file(output: NamedFile, other: NamedFile) -> tuple[str, Path]:
    """Say that both are one file, and return a name of it."""
    names = [file.path for file in (output, other) if file.path is not None]
    if len(set(names)) == 2:
        return f"{names[0]} is {names[1]}", Path(names[0])
    return f"both are {names[0] if names else 'one file'}", Path(names[0] if names else "output")


def _hint(output: NamedFile, name: Path) -> str:
    if output.folder:
        return f"\n\nHint: give another folder with `{output.word}`."
    if output.path is None:
        return f"\n\nHint: send it elsewhere, for example `> {shlex.quote(f'{name.stem}-output.txt')}`."
    example = shlex.quote(str(name.with_name(name.stem + _EXAMPLE_ENDINGS[output.word])))
    return f"\n\nHint: give another name, for example `{output.word} {example}`."


def _status(path: str | int) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _one_folder(a: str | Path, b: str | Path) -> bool:
    first, second = _status(str(a)), _status(str(b))
    if first is None or second is None:
        return os.path.realpath(a) == os.path.realpath(b)
    return os.path.samestat(first, second)


def draw(text: str) -> None:
    """Draw on standard error, which is a terminal."""
    getattr(sys.stderr, "draw", sys.stderr.write)(text)
    sys.stderr.flush()


_COLOURS = {"SAFE": "1;32", "UNSAFE": "1;31", "UNDETERMINED": "1;33"}
_GATE = {"SAFE": 0, "UNSAFE": 3, "UNDETERMINED": 4}  # exit statuses
INTERRUPTED = 130  # the status that a shell expects after Ctrl-C
_VERDICT = re.compile(r"^(SAFE|UNSAFE|UNDETERMINED)\b", re.MULTILINE)


def gate_status(decision: str) -> int:
    """Return the exit status that `--gate` sets for a decision."""
    return _GATE[decision]


def say_verdict(text: str) -> None:
    """Print text with its verdict in colour, where a terminal shows it and `NO_COLOR` is not set.

    The word stays: colour is never the only signal.
    """
    out = sys.stdout
    verdict = _VERDICT.search(text)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not out.isatty() or verdict is None:
        print(text)
        return
    draw_on = getattr(out, "draw", out.write)
    out.write(text[: verdict.start()])
    draw_on(f"\x1b[{_COLOURS[verdict[1]]}m")
    out.write(verdict[1])
    draw_on("\x1b[0m")
    out.write(text[verdict.end() :] + "\n")


@final
class Progress:
    """A line on standard error that counts rows, of a total where it is known; on a terminal only, after a second."""

    def __init__(self, total: int | None, *, estimated: bool = False) -> None:
        self.total, self.estimated = total, estimated
        self.rows = 0
        self._began = self._last_drawn = time.monotonic()
        self._shown = False

    def add(self, rows: int) -> None:
        """Count some rows."""
        self.rows += rows
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._began < 1.0 or now - self._last_drawn < 0.1:
            return
        self._last_drawn, self._shown = now, True
        draw(f"\r{self.line(now - self._began)}\x1b[K")

    def line(self, seconds: float) -> str:
        """Return the line after so many seconds."""
        text = f"{self.rows:,} rows"
        if not self.total:
            return text
        share = min(self.rows / self.total, 0.99 if self.estimated else 1.0)
        seconds_left = seconds * (1.0 - share) / share if share else 0.0
        about = "about " if self.estimated else ""
        return f"[{'#' * int(30 * share):<30}] {about}{share:.0%}  {text}, {_duration(seconds_left)} left"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")


@final
class Steps:
    """A line on standard error that counts steps; on a terminal only."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._last_drawn = 0.0
        self._shown = sys.stderr.isatty()

    def add(self, name: str = "") -> None:
        """Count a step, and name it."""
        self.done += 1
        now = time.monotonic()
        if self._shown and now - self._last_drawn >= 0.1:
            self._last_drawn = now
            bar = "#" * (30 * self.done // self.total)
            draw(f"\r[{bar:<30}] {self.done} of {self.total}  {name[:40]}\x1b[K")

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            draw("\r\x1b[K")


def searching() -> Callable[[float], None]:
    """Return a function that shows how far a search for slices is: on a terminal only, and only after a second."""
    began = time.monotonic()

    def show_share(share: float) -> None:
        if sys.stderr.isatty() and time.monotonic() - began > 1.0:
            bar = f"[{'#' * int(30 * share):<30}] {share:.0%} of the search for slices"
            draw(f"\r{bar}\x1b[K" if share < 1.0 else "\r\x1b[K")

    return show_share


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
