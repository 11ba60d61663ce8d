"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safecal.errors import FileError
from safecal.files import write_atomically

unix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions, links and pipes")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("content", "written"), [("größer\r\n", "größer\r\n".encode()), (b"\x00\xff", b"\x00\xff")])
@pytest.mark.parametrize("make", [str, Path])
def test_a_file_is_made_or_replaced(
    content: str | bytes, written: bytes, make: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.html"
    write_atomically(make(path), content)
    assert path.read_bytes() == written
    path.write_text("much longer than what was there before")
    write_atomically(make(path), content)
    assert path.read_bytes() == written
    assert names(tmp_path) == ["a.html"]


def test_a_name_alone_means_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically("a.html", "new")
    assert (tmp_path / "a.html").read_text() == "new"


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    function: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, function, fails)
    with pytest.raises(type(error)):
        write_atomically(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.html"]


@unix
def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")
    code = (
        "import os, signal, sys\nfrom safecal.files import write_atomically\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nwrite_atomically(sys.argv[1], 'new')"
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    assert subprocess.run([sys.executable, "-c", code, str(path)], env=env, check=False).returncode == -9
    assert path.read_text() == "old"


@unix
def test_permissions(tmp_path: Path) -> None:
    path, fresh = tmp_path / "old.html", tmp_path / "new.html"
    path.write_text("old")
    path.chmod(0o640)
    before = os.umask(0o022)
    try:
        write_atomically(path, "new")
        write_atomically(fresh, "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o644


@unix
def test_the_owner_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "chown", lambda _, user, group: asked.append((user, group)))
    write_atomically(path, "new")
    assert asked == [(path.stat().st_uid, path.stat().st_gid)]


@unix
def test_a_file_of_another_becomes_ours_where_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")

    def refuses(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuses)
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_a_file_that_is_read_only_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")
    really = os.open

    def refuses(target: Any, flags: int, *mode: int) -> int:  # as the system does, unless one is root
        if flags == os.O_WRONLY:
            raise PermissionError(target)
        return really(target, flags, *mode)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(PermissionError):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.html"]


@unix
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link, broken = folder / "target.html", tmp_path / "link.html", tmp_path / "broken.html"
    target.write_text("old")
    link.symlink_to(target)
    broken.symlink_to("folder/made.html")
    write_atomically(link, "new")
    write_atomically(broken, "made")
    assert link.is_symlink()
    assert broken.is_symlink()
    assert target.read_text() == "new"
    assert (folder / "made.html").read_text() == "made"
    assert names(tmp_path) == ["broken.html", "folder", "link.html"]


@unix
def test_a_device_is_written_to(tmp_path: Path) -> None:
    write_atomically("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code = "from safecal.files import write_atomically\nwrite_atomically('/dev/stdout', 'to the pipe')"
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "to the pipe"


@pytest.mark.parametrize("missing", ["no/such/a.html", "file/a.html"])
def test_a_missing_folder(missing: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(
        FileError, match=r"(?s)^`path` must lie in a folder that exists; got .*\n\nHint: make the folder"
    ):
        write_atomically(tmp_path / missing, "new")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"(?s)^`path` must name a file; got the folder .*\n\nHint: add a file name"):
        write_atomically(tmp_path, "new")
    assert names(tmp_path) == []


@pytest.mark.parametrize("function", ["open", "fsync"])
def test_a_folder_that_cannot_be_synced_does_no_harm(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = getattr(os, function)

    def refuses(target: Any, *rest: Any) -> Any:
        folder = rest[:1] == (os.O_RDONLY,) if function == "open" else stat.S_ISDIR(os.fstat(target).st_mode)
        if folder:
            raise OSError("not for folders")
        return really(target, *rest)

    monkeypatch.setattr(os, function, refuses)
    write_atomically(tmp_path / "a.html", "new")
    monkeypatch.undo()
    assert (tmp_path / "a.html").read_text() == "new"
