"""Files that the command line writes: checked before the work, written whole after it.

An output must not be an input, nor another output: the same file is known by whatever name it goes.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .._optional import require
from ..errors import FileError
from ..files import write_atomically

__all__ = [
    "NamedFile",
    "ReadFolder",
    "check_outputs",
    "command_line",
    "csv_bytes",
    "frame_bytes",
    "write_plot",
]

_FORMULA = r"^[\s]*[=+\-@|%]|^[\t\r\n]"  # how a formula begins, for one spreadsheet or another
_PICTURES = (".svg", ".png", ".pdf")
_TABLES = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow"}


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

    Parameters
    ----------
    inputs : mapping of str to str, optional
        The files that are read, by the word of the command line that names each; ``-`` is standard input.
    folders : iterable of ReadFolder
        Folders whose files are read.
    report, plot, summary, table, save : str, optional
        The files of ``--report``, ``--plot``, ``--summary``, ``--out`` and ``--save``.
    store : iterable of str
        The files of ``--store``.
    out : iterable of str or Path
        The files that are written into the folder of ``--out``, which may have to be made first.
    """
    named = {"--report": report, "--plot": plot, "--summary": summary, "--out": table, "--save": save}
    for path in named.values():
        if path is not None:
            _check_folder(path)
    _check_distinct(
        [
            *(NamedFile.of("--store", path) for path in store),  # first: of two outputs the later is the one to change
            *(NamedFile.of(word, path) for word, path in named.items() if path is not None),
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
    if table is not None and Path(table).suffix.lower() not in _TABLES:
        raise FileError(f"`--out` must end in {', '.join(_TABLES)}; got {table}.")


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


def frame_bytes(frame: Any, path: str, *, spreadsheet_safe: bool = False) -> bytes:
    """Return a Polars frame in the format the name asks for.

    Parameters
    ----------
    frame : polars.DataFrame
        The rows.
    path : str
        The name of the file.
    spreadsheet_safe : bool, default False
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """
    buffer = io.BytesIO()
    kind = _TABLES[Path(path).suffix.lower()]
    if spreadsheet_safe:
        frame = _without_formulas(frame)
    write = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "jsonl": frame.write_ndjson,
        "arrow": frame.write_ipc,
    }[kind]
    write(buffer)
    return buffer.getvalue()


def csv_bytes(columns: Mapping[str, Iterable[Any]], spreadsheet_safe: bool) -> bytes:
    """Return columns as CSV, without Polars; values as Python writes them, and nothing for a missing one."""

    def cell(value: Any) -> str:
        text = "" if value is None else str(value)
        return f"'{text}" if spreadsheet_safe and re.match(_FORMULA, text) and not _is_number(text) else text

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return buffer.getvalue().encode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _without_formulas(frame: Any) -> Any:
    """Return a frame in which no text, and no name of a column, begins as a formula does; numbers stay as they are."""
    import polars as pl

    words = (pl.String, pl.Categorical, pl.Enum)

    def harmless(name: str) -> Any:
        text = pl.col(name).cast(pl.String)  # of categories, too
        formula = text.str.contains(_FORMULA) & text.str.strip_chars().cast(pl.Float64, strict=False).is_null()
        return pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name)

    frame = frame.with_columns([harmless(name) for name, kind in frame.schema.items() if kind in words])
    return frame.rename({name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)})


def command_line() -> str:
    """Return the command as it was typed, without the folder of the program."""
    return shlex.join(["safecal", *(a for a in sys.argv[1:])]) if os.path.basename(sys.argv[0]) else "safecal"


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
                    raise FileError(f"{output} must be another file than {other}, {why}; {same}.{_hint(output, name)}")
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
