"""Files: written whole or not at all, and JSON read as strictly as it is written."""

import json
import os
import secrets
import stat
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from .documents import distinct, refuse
from .errors import DocumentError, FileError

__all__ = ["parsed_json", "schema", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that, whatever interrupts, the old content or the new one stands there, and nothing else.

    The content goes to a temporary file in the same folder, which then takes the place of the old one. A file that
    exists keeps its permissions, and one that may not be written to is left alone. A symbolic link stays a link: what
    it points to is written. A pipe or a device, such as ``/dev/stdout``, cannot be replaced and is written to directly.
    Text becomes UTF-8, its line ends as they are. A path that is a folder, or lies in none, is a `FileError`; where the
    system refuses, its error names the file, and nothing has changed.
    """
    try:
        _write(path, content)
    except FileError:
        raise
    except OSError as error:
        if error.filename is None:  # a full disk is told of by a number alone
            error.filename = os.fspath(path)
        raise


def _write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write to a file that is there or not, or straight to a pipe or a device."""
    data = content.encode() if isinstance(content, str) else content
    status = _status(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise FileError(
            f"`path` must name a file; got the folder {os.fspath(path)!r}.\n\n"
            "Hint: add a file name, for example `report.html`."
        )
    if status is not None and not stat.S_ISREG(status.st_mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileError(
            f"`path` must lie in a folder that exists; got {os.fspath(path)!r}.\n\n"
            f"Hint: make the folder first: mkdir -p {str(target.parent)!r}"
        )
    if status is not None:
        os.close(os.open(target, os.O_WRONLY))  # a file that is read-only stays as it is
    _replace(target, data, status)


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what the path leads to, if anything."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    """Write a temporary file beside the target, and let it take its place."""
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        # A new file has the mode that any has here; mkstemp would hide the report from everyone else. One that takes
        # the place of another is no one's but ours until it has the permissions of the old one.
        mode = 0o666 if old is None else 0o600
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if old is not None:
                _copy_permissions(part, old)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _copy_permissions(part: Path, old: os.stat_result) -> None:
    """Give the new file the owner, as far as we may, and the permissions of the old one."""
    if hasattr(os, "chown"):
        try:
            os.chown(part, old.st_uid, old.st_gid)
        except PermissionError:  # another's file, in a folder that is ours: it becomes ours
            pass
    os.chmod(part, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a loss of power, where the system offers that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # folders cannot be opened on Windows, nor where they may be entered but not listed
        return
    try:
        os.fsync(handle)
    except OSError:  # some network file systems refuse; the file itself is safe
        pass
    finally:
        os.close(handle)


def schema(*names: str) -> dict[str, Any]:
    """Return a schema that ships with the package; those that are named after it hold what it shares with them."""
    folder = resources.files("safecal").joinpath("schemas")
    schemas = [json.loads(folder.joinpath(f"{name}.json").read_text(encoding="utf-8")) for name in names]
    whole: dict[str, Any] = schemas[0]
    whole["$defs"] = {name: part for one in reversed(schemas) for name, part in one["$defs"].items()}
    return whole


def parsed_json(content: str | bytes) -> Any:
    """Parse JSON as strictly as it is written: no name twice in an object, no NaN, and not too deep."""
    try:
        return json.loads(content, object_pairs_hook=_unique_names, parse_constant=_refuse_constant)
    except RecursionError:
        refuse("must be JSON; this is nested too deeply")
    except UnicodeDecodeError as error:
        refuse(f"must be JSON, which is UTF-8; it is not ({error.reason} at byte {error.start})")
    except DocumentError:
        raise
    except ValueError as error:
        refuse(f"must be JSON; it is not ({error})")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        distinct([name for name, _ in pairs], "names of fields")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    refuse(f'must be JSON, which has no {name}; safecal writes "inf", "-inf" and null')
