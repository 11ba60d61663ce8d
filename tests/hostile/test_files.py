"""Files that nobody should have made: each ends in one message and status 2, or in the right answer."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import socket
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal

pl = pytest.importorskip("polars", minversion="1.38")

Y = [1, 0, 1, 1, 0, 0]
P = [0.9, 0.2, 0.6, 0.7, 0.4, 0.1]
ROWS = "y,p\n" + "".join(f"{y},{p}\n" for y, p in zip(Y, P, strict=True))
LINES = "".join(json.dumps({"y": y, "p": p}) + "\n" for y, p in zip(Y, P, strict=True))


def _file(content: str | bytes, name: str = "rows.csv") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def _made(how: str, cut: int = 0, name: str | None = None) -> bytes:
    buffer = io.BytesIO()
    frame = pl.DataFrame({"y": Y * 200, "p": P * 200})
    {"parquet": frame.write_parquet, "arrow": frame.write_ipc}[how](buffer)
    data = buffer.getvalue()
    return data[:-cut] if cut else data


UNPICKLED = "safecal-was-unpickled"


class Bomb:
    """What must not be unpickled."""

    def __reduce__(self) -> Any:
        return (os.mkdir, (UNPICKLED,))


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def _socket(folder: Path) -> Path:
    here = os.getcwd()
    os.chdir(folder)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("rows.csv")
    finally:
        os.chdir(here)
    return folder / "rows.csv"


def _loop(folder: Path) -> Path:
    (folder / "rows.csv").symlink_to(folder / "rows.csv")
    return folder / "rows.csv"


def _dangling(folder: Path) -> Path:
    (folder / "rows.csv").symlink_to(folder / "nowhere.csv")
    return folder / "rows.csv"


def _folder(folder: Path) -> Path:
    (folder / "rows.csv").mkdir()
    return folder / "rows.csv"


_object = _npz(y=np.array(Y), p=np.array([Bomb()] * 6, dtype=object))
_deep_zip = _zip(y=pickle.dumps(Bomb()), p=pickle.dumps([0.5] * 6))

REFUSED: dict[str, Callable[[Path], Path]] = {
    "empty": _file(""),
    "one newline": _file("\n"),
    "newlines": _file("\n" * 1000),
    "spaces": _file("   \n   \n"),
    "one byte": _file(b"\x00"),
    "only a mark of order": _file(b"\xef\xbb\xbf"),
    "only a header": _file("y,p\n"),
    "a header without an end": _file("y,p"),
    "a header with a mark of order": _file(b"\xef\xbb\xbfy,p\n"),
    "UTF-16, little": _file(ROWS.encode("utf-16-le")),
    "UTF-16, big": _file(ROWS.encode("utf-16-be")),
    "UTF-16 with a mark": _file(ROWS.encode("utf-16")),
    "UTF-32": _file(ROWS.encode("utf-32")),
    "zero bytes": _file(b"\0" * 4096),
    "a zero byte in a value": _file(ROWS.replace("0.9", "0.\x009")),
    "a zero byte beyond the first part": _file("y,p\n" + "1,0.9\n" * 20_000 + "0,0.\x002\n"),
    "bytes that are no UTF-8": _file(ROWS.encode() + b"1,\xff\xfe\n"),
    "short rows": _file("y,p\n1,0.9\n0\n"),
    "long rows": _file("y,p\n1,0.9\n0,0.2,0.3\n"),
    "a quote that is never closed": _file('y,p\n1,"0.9\n0,0.2\n'),
    "a quote inside a value": _file('y,p\n1,0."9\n0,0.2\n'),
    "ends of line that are CR": _file(ROWS.replace("\n", "\r")),
    "two columns of one name": _file("y,p,p\n1,0.9,0.1\n0,0.2,0.8\n"),
    "no names": _file(",\n1,0.9\n"),
    "names of control characters": _file("\x1b[31my,\x07p\n1,0.9\n"),
    "a hundred thousand columns": _file(",".join(f"c{k}" for k in range(100_000)) + "\n" + ",".join(["1"] * 100_000)),
    "a value of a million characters": _file("y,p\n1," + "9" * 1_000_000 + "\n"),
    "a name of a million characters": _file("y," + "p" * 1_000_000 + "\n1,0.9\n"),
    "words for numbers": _file("y,p\n1,high\n0,low\n"),
    "a comma for a point": _file('y,p\n1,"0,9"\n0,"0,2"\n'),
    "numbers of other scripts": _file("y,p\n1,٠.٩\n0,٠.٢\n"),
    "hexadecimal numbers": _file("y,p\n1,0x1p-1\n0,0x1p-2\n"),
    "nan": _file("y,p\n1,nan\n0,0.2\n"),
    "infinite": _file("y,p\n1,inf\n0,0.2\n"),
    "a probability of 1e400": _file("y,p\n1,1e400\n0,0.2\n"),
    "a negative probability": _file("y,p\n1,-0.1\n0,0.2\n"),
    "per cent": _file("y,p\n1,90\n0,20\n"),
    "missing values": _file("y,p\n1,0.9\n,0.2\n0,\n"),
    "three labels": _file("y,p\n1,0.9\n0,0.2\n2,0.5\n"),
    "HTML": _file("<!doctype html><html><body>Not found</body></html>\n"),
    "a JSON array named csv": _file(json.dumps([{"y": 1, "p": 0.9}])),
    "a formula": _file('y,p\n1,"=cmd|calc"\n0,0.2\n'),
    "gzip of nothing": _file(gzip.compress(b"")),
    "cut gzip": _file(gzip.compress(ROWS.encode() * 100)[:-30]),
    "gzip of junk": _file(gzip.compress(bytes(range(256)) * 10)),
    "two bytes of gzip": _file(b"\x1f\x8b"),
    "cut Parquet": _file(_made("parquet", 40), "rows.parquet"),
    "Parquet without its middle": _file(_made("parquet")[:50] + _made("parquet")[-300:], "rows.parquet"),
    "four bytes of Parquet": _file(b"PAR1", "rows.parquet"),
    "Parquet of twice its mark": _file(b"PAR1PAR1", "rows.parquet"),
    "Parquet of a huge footer": _file(b"PAR1" + b"\0" * 8 + b"\xff\xff\xff\x7fPAR1", "rows.parquet"),
    "Parquet of a flipped footer": _file(
        (lambda d: d[:-60] + bytes(255 - b for b in d[-60:-8]) + d[-8:])(_made("parquet")), "rows.parquet"
    ),
    "cut Arrow": _file(_made("arrow", 200), "rows.arrow"),
    "six bytes of Arrow": _file(b"ARROW1", "rows.arrow"),
    "text named Parquet": _file(ROWS, "rows.parquet"),
    "text named npz": _file(ROWS, "rows.npz"),
    "text named Arrow": _file(ROWS, "rows.feather"),
    "cut npz": _file(_npz(y=Y, p=P)[:-60], "rows.npz"),
    "npz of nothing": _file(_zip(), "rows.npz"),
    "npz of pickles": _file(_deep_zip, "rows.npz"),
    "npz of objects": _file(_object, "rows.npz"),
    "npz of text": _file(_npz(y=np.array(["a"] * 6), p=np.array(P)), "rows.npz"),
    "npz of complex numbers": _file(_npz(y=np.array(Y), p=np.array(P) + 1j), "rows.npz"),
    "npz of dates": _file(_npz(y=np.array(Y), p=np.array(P).astype("M8[s]")), "rows.npz"),
    "npz of a record": _file(_npz(y=np.array(Y), p=np.zeros(6, dtype=[("a", "f8"), ("b", "i4")])), "rows.npz"),
    "npz of two lengths": _file(_npz(y=np.array(Y), p=np.array(P[:3])), "rows.npz"),
    "npz of a scalar": _file(_npz(y=np.array(Y), p=np.array(0.5)), "rows.npz"),
    "npz of no rows": _file(_npz(y=np.array([]), p=np.array([])), "rows.npz"),
    "npz of five dimensions": _file(_npz(y=np.array(Y), p=np.zeros((6, 1, 1, 1, 2))), "rows.npz"),
    "npz that promises more than there is": _file(
        _zip(y=_npy("'<f8'", "(1000000000,)"), p=_npy("'<f8'", "(1000000000,)")), "rows.npz"
    ),
    "npz of a negative length": _file(_zip(y=_npy("'<f8'", "(-5,)"), p=_npy("'<f8'", "(-5,)")), "rows.npz"),
    "npz of a header that is code": _file(_zip(y=_npy("__import__('os').mkdir('x')", "(1,)"), p=b""), "rows.npz"),
    "npz of members that are no arrays": _file(_zip(y=b"hello", p=b""), "rows.npz"),
    "cut JSON lines": _file(LINES[:-6], "rows.jsonl"),
    "JSON lines of lists": _file("[1, 0.9]\n[0, 0.2]\n", "rows.jsonl"),
    "JSON lines of numbers": _file("1\n2\n", "rows.jsonl"),
    "JSON lines of other types": _file('{"y": 1, "p": 0.9}\n{"y": 0, "p": {"a": 1}}\n', "rows.jsonl"),
    "JSON lines nested deeply": _file('{"y": 1, "p": ' + "[" * 5000 + "]" * 5000 + "}\n", "rows.jsonl"),
    "JSON lines with NaN": _file('{"y": 1, "p": NaN}\n', "rows.jsonl"),
    "one JSON document named jsonl": _file(json.dumps([{"y": 1, "p": 0.9}], indent=1), "rows.jsonl"),
    "folder": _folder,
    "not there": lambda folder: folder / "rows.csv",
    "a name that is too long": lambda folder: folder / ("x" * 5000 + ".csv"),
    "a folder that is a file": lambda folder: _file(ROWS)(folder) / "rows.csv",
    "a name with an end of line and an escape, not there": lambda folder: folder / "a\nb\x1b[31m.csv",
    "a link to itself": _loop,
    "a link to nothing": _dangling,
    "an unknown ending": _file(ROWS, "rows.dat"),
    "no ending": _file(ROWS, "rows"),
}
if hasattr(os, "mkfifo"):
    REFUSED |= {
        "socket": _socket,
        "an empty device": lambda folder: Path("/dev/null"),
    }

READ: dict[str, Callable[[Path], Path]] = {
    "plain": _file(ROWS),
    "a mark of order": _file(b"\xef\xbb\xbf" + ROWS.encode()),
    "ends of line of Windows": _file(ROWS.replace("\n", "\r\n")),
    "no last end of line": _file(ROWS.rstrip("\n")),
    "quotes": _file(ROWS.replace("0.9", '"0.9"')),
    "gzip named csv": _file(gzip.compress(ROWS.encode())),
    "gzip": _file(gzip.compress(ROWS.encode()), "rows.csv.gz"),
    "a name with an end of line and an escape": _file(ROWS, "a\nb\x1b[31m.csv"),
    "a name that is a pattern": _file(ROWS, "[r]ow*s?.csv"),
    "a name that is an option": _file(ROWS, "--gate.csv"),
    "npz": _file(_npz(y=np.array(Y), p=np.array(P)), "rows.npz"),
    "npz named csv": _file(_npz(y=np.array(Y), p=np.array(P))),
    "JSON lines": _file(LINES, "rows.jsonl"),
}


def _run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    from safecal.cli import main

    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as stop:
        status = int(stop.code or 0)
    return (status, *capsys.readouterr())


def _refused(status: int, out: str, err: str) -> None:
    assert status == 2, (status, out[:300], err[:300])
    assert out == ""
    assert err.startswith("safecal: ")
    assert "Traceback" not in err
    assert len(err) < 10_000
    assert not Path(UNPICKLED).exists()


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_file_is_refused_in_words(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _refused(*_run(capsys, "evaluate", REFUSED[case](tmp_path)))


@pytest.mark.parametrize("case", READ)
def test_an_odd_file_that_is_right_gives_the_right_answer(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = _run(capsys, "evaluate", READ[case](tmp_path), "--json")
    assert (status, err) == (0, "")
    found = safecal.Evaluation.from_dict(json.loads(out))
    assert found.n == len(Y)
    assert found.ecd == pytest.approx(safecal.ecd(Y, P), abs=1e-15)


@pytest.mark.parametrize("command", ["recalibrate", "compare", "plan"])
@pytest.mark.parametrize("case", ["npz of pickles", "cut Parquet", "UTF-16 with a mark", "cut gzip", "folder"])
def test_other_commands_refuse_them_as_well(
    command: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = REFUSED[case](tmp_path)
    _refused(*_run(capsys, command, path, *([path] if command == "compare" else [])))


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions are another matter there")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_read_is_refused_in_words(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _file(ROWS)(folder)
        folder.chmod(0o755)
        (path if what == "file" else folder).chmod(0o000)
        root = os.geteuid() == 0  # who may read everything, and so becomes somebody else
        try:
            if root:
                os.seteuid(65534)
            found = _run(capsys, "evaluate", path)
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)
    _refused(*found)


def test_there_are_many_of_them() -> None:
    assert len(REFUSED) + len(READ) >= 100
