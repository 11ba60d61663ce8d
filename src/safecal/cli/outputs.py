"""Files that the command line writes: checked before the work, written whole after it."""

import io
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import FileError, MissingExtraError
from ..files import write_atomically
from .apart import Place, ReadFolder, check_apart, standard_output

__all__ = ["check_outputs", "command_line", "frame_bytes", "write_plot"]

_FORMULA = r"^[\s]*[=+\-@|%]|^[\t\r\n]"  # how a formula begins, for one spreadsheet or another
_PICTURES = (".svg", ".png", ".pdf")
_TABLES = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow"}


def check_outputs(
    *,
    inputs: Mapping[str, str | None] | None = None,
    folders: Iterable[ReadFolder] = (),
    report: str | None = None,
    plot: str | None = None,
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
    report, plot, table, save : str, optional
        The files of ``--report``, ``--plot``, ``--out`` and ``--save``.
    store : iterable of str
        The files of ``--store``.
    out : iterable of str or Path
        The files that are written into the folder of ``--out``, which may have to be made first.
    """
    named = {"--report": report, "--plot": plot, "--out": table, "--save": save}
    for path in named.values():
        if path is not None:
            _check_folder(path)
    check_apart(
        [
            *(Place.of("--store", path) for path in store),  # first: of two outputs the later is the one to change
            *(Place.of(word, path) for word, path in named.items() if path is not None),
            *(Place.of("--out", str(path), folder=True) for path in out),
            *standard_output(),
        ],
        [Place.read(word, path) for word, path in (inputs or {}).items() if path is not None],
        folders,
    )
    if plot is not None:
        if Path(plot).suffix.lower() not in _PICTURES:
            raise FileError(f"a picture is written as {', '.join(_PICTURES)}; got {plot}.")
        _matplotlib()
    if table is not None and Path(table).suffix.lower() not in _TABLES:
        raise FileError(f"rows are written as {', '.join(_TABLES)}; got {table}.")


def _check_folder(path: str) -> None:
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"the folder of {path} does not exist.\n\nHint: mkdir -p {shlex.quote(str(folder))}")
    if Path(path).is_dir():
        raise FileError(f"{path} is a folder; name a file in it.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise FileError(f"{path} cannot be written: it, or its folder, is read-only.")


def _matplotlib() -> None:
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            '`--plot` draws with Matplotlib, which is not installed.\n\nHint: pip install "safecal[cli]"'
        ) from error


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


def _without_formulas(frame: Any) -> Any:
    """Return a frame in which no text, and no name of a column, begins as a formula does; numbers stay as they are."""
    import polars as pl

    words = (pl.String, pl.Categorical, pl.Enum)

    def harmless(name: str) -> Any:
        text = pl.col(name).cast(pl.String)  # of categories, too
        formula = text.str.contains(_FORMULA) & text.str.strip_chars().cast(pl.Float64, strict=False).is_null()
        return pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name)

    found = frame.with_columns([harmless(name) for name, kind in frame.schema.items() if kind in words])
    return found.rename({name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)})


def command_line() -> str:
    """Return the command as it was typed, without the folder of the program."""
    return shlex.join(["safecal", *(a for a in sys.argv[1:])]) if os.path.basename(sys.argv[0]) else "safecal"
