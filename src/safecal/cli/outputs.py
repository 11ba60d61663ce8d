"""Files that the command line writes: checked before the work, written whole after it."""

import io
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from ..errors import FileError, MissingExtraError
from ..files import write_atomically

__all__ = ["check_outputs", "command_line", "frame_bytes", "write_plot"]

_PICTURES = (".svg", ".png", ".pdf")
_TABLES = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow"}


def check_outputs(
    *, report: str | None = None, plot: str | None = None, table: str | None = None, save: str | None = None
) -> None:
    """Refuse what could not be written, before anything is read."""
    for path in (report, plot, table, save):
        if path is None:
            continue
        folder = Path(path).parent
        if not folder.is_dir():
            raise FileError(f"the folder of {path} does not exist.\n\nHint: mkdir -p {shlex.quote(str(folder))}")
        if Path(path).is_dir():
            raise FileError(f"{path} is a folder; name a file in it.")
    if plot is not None:
        if Path(plot).suffix.lower() not in _PICTURES:
            raise FileError(f"a picture is written as {', '.join(_PICTURES)}; got {plot}.")
        _matplotlib()
    if table is not None and Path(table).suffix.lower() not in _TABLES:
        raise FileError(f"rows are written as {', '.join(_TABLES)}; got {table}.")


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


def frame_bytes(frame: Any, path: str) -> bytes:
    """Return a Polars frame in the format the name asks for."""
    buffer = io.BytesIO()
    kind = _TABLES[Path(path).suffix.lower()]
    write = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "jsonl": frame.write_ndjson,
        "arrow": frame.write_ipc,
    }[kind]
    write(buffer)
    return buffer.getvalue()


def command_line() -> str:
    """Return the command as it was typed, without the folder of the program."""
    return shlex.join(["safecal", *(a for a in sys.argv[1:])]) if os.path.basename(sys.argv[0]) else "safecal"
