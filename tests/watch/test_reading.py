"""What comes in: cuts of standard input, files in a folder, rows that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safecal.errors import FileError, FormError
from safecal.monitor import Monitor
from safecal.watch import Arrival, Folder, Watcher
from safecal.watch.databases import SqliteStore
from safecal.watch.history import Known
from safecal.watch.standard_input import Cutter, records

from .feeding import columns, put, text

pl = pytest.importorskip("polars", minversion="1.38")


def _cutter(pieces: Iterable[bytes | None], counted: Iterable[str] = (), **more: Any) -> Cutter:
    left = iter([*pieces, b""])
    return Cutter(lambda seconds: next(left), counted, **more)


def _pieces(whole: bytes, size: int) -> list[bytes]:
    return [whole[k : k + size] for k in range(0, len(whole), size)]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
def test_cuts_do_not_depend_on_how_the_bytes_come(kind: str, size: int) -> None:
    whole = text(columns(np.random.default_rng(0), 25), kind).encode()
    arrivals = list(_cutter(_pieces(whole, size), rows=10))
    assert arrivals == list(_cutter([whole], rows=10))
    assert [len(list(records(a.content, kind))) for a in arrivals] == [10, 10, 5]
    assert b"".join(a.content for a in arrivals) == whole[len(arrivals[0].header) :]
    assert {a.kind for a in arrivals} == {kind}
    assert arrivals[0].header == (b"y,logit,site,day\n" if kind == "csv" else b"")


def test_a_stream_that_is_sent_again_is_cut_as_before_whatever_the_size() -> None:
    whole = text(columns(np.random.default_rng(0), 100)).encode()
    first = [a.batch for a in _cutter([whole], rows=37)]
    assert [a.batch for a in _cutter(_pieces(whole, 50), first, rows=10)] == first
    assert [a.batch for a in _cutter([whole, None], first, rows=1000, every=1.0)] == first


def test_a_stream_that_has_grown_is_taken_up_where_it_ended() -> None:
    lines = text(columns(np.random.default_rng(0), 100)).encode().splitlines(keepends=True)
    first = [a.batch for a in _cutter([b"".join(lines[:41])], rows=1000)]
    again = list(_cutter([b"".join(lines)], first, rows=1000))
    assert [a.batch for a in again[:1]] == first
    assert again[1].content == b"".join(lines[41:])
    assert again[1].doubt == ""


def test_a_stream_that_ends_within_a_batch_that_was_counted_is_in_doubt() -> None:
    lines = text(columns(np.random.default_rng(0), 50)).encode().splitlines(keepends=True)
    first = [a.batch for a in _cutter([b"".join(lines)], rows=1000)]
    (again,) = _cutter([b"".join(lines[:30])], first, rows=1000)
    assert "may have been counted" in again.doubt


def test_another_stream_with_the_same_first_row_is_new() -> None:
    lines = text(columns(np.random.default_rng(0), 50)).encode().splitlines(keepends=True)
    first = [a.batch for a in _cutter([b"".join(lines)], rows=20)]
    arrivals = list(_cutter([b"".join([*lines[:2], *lines[10:], *lines[2:10]])], first, rows=20))
    assert not {a.batch for a in arrivals} & set(first)
    assert not any(a.doubt for a in arrivals)
    assert sum(len(list(records(a.content, "csv"))) for a in arrivals) == 50


def test_time_makes_a_batch_of_what_has_come() -> None:
    now = [0.0]
    whole = text(columns(np.random.default_rng(0), 9), "jsonl").encode().splitlines(keepends=True)
    cutter = _cutter([b"".join(whole[:4]), None, b"".join(whole[4:])], rows=100, every=5.0, clock=lambda: now[0])
    assert [len(a.content.splitlines()) for a in cutter] == [4, 5]


def test_rows_that_belong_to_no_batch_yet_are_known() -> None:
    whole = text(columns(np.random.default_rng(0), 15)).encode()
    cutter = _cutter([whole, None], rows=10)
    batches = iter(cutter)
    next(batches)
    assert cutter.held == 0
    next(batches)
    cutter = _cutter([whole], rows=100)
    left = iter([whole])
    cutter._read = lambda seconds: next(left)
    with pytest.raises(RuntimeError):  # the stream breaks off
        list(cutter)
    assert cutter.held == 15


def test_rows_name_their_batch() -> None:
    rows = [{"y": 1, "p": 0.5, "batch": name} for name in ("a", "a", "b", "b", "b", "a")]
    whole = pl.DataFrame(rows)
    for content in (whole.write_csv(), whole.write_ndjson()):
        arrivals = list(_cutter(_pieces(content.encode(), 20), column="batch"))
        assert [(a.batch, len(a.content.splitlines())) for a in arrivals] == [("a", 2), ("b", 3), ("a", 1)]
        assert arrivals[0].digest != arrivals[2].digest
    with pytest.raises(FileError, match="has no column 'id'; it has y, p, batch"):
        list(_cutter([whole.write_csv().encode()], column="id"))
    (nameless,) = _cutter([b'{"y": 1}\ngarbage\n'], column="batch")
    assert "none of its rows says" in nameless.doubt


def test_quoted_line_ends_belong_to_the_row() -> None:
    whole = b'y,p,note\r\n1,0.5,"two\r\nlines"\r\n\r\n0,0.5,"say ""hi"""\r\n'
    arrivals = list(_cutter(_pieces(whole, 3), rows=1))
    assert [a.content for a in arrivals] == [b'1,0.5,"two\r\nlines"\r\n', b'0,0.5,"say ""hi"""\r\n']


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_stream() -> None:
    whole = b'y,p\n1,"0.5\n' + b"1,0.5\n" * 50_000
    arrivals = list(_cutter([whole], rows=10_000))
    assert len(arrivals) > 1


def test_parquet_on_standard_input_is_refused() -> None:
    with pytest.raises(FileError, match="standard input is not text"):
        list(_cutter([b"PAR1 and so on"]))


# A folder


def _folder(path: Path, **more: Any) -> tuple[Folder, list[str], dict[str, Known]]:
    messages: list[str] = []
    known: dict[str, Known] = {}
    return Folder(path, known.get, messages.append, **more), messages, known


def _names(folder: Folder) -> list[str]:
    return [arrival.batch for arrival in folder.look()]


def test_files_are_taken_by_name_once_they_are_still(tmp_path: Path) -> None:
    folder, messages, _ = _folder(tmp_path)
    for name in ("b.csv", "a.jsonl", "c.parquet"):
        put(tmp_path / name, columns(np.random.default_rng(0), 5))
    for name in ("_SUCCESS", ".d.csv", "e.csv.part", "f.tmp", "notes.md"):
        (tmp_path / name).write_text("y,p\n")
    (tmp_path / "g.csv").mkdir()
    assert _names(folder) == []
    assert folder.waiting == ("a.jsonl", "b.csv", "c.parquet")
    assert _names(folder) == ["a.jsonl", "b.csv", "c.parquet"]
    assert _names(folder) == []
    assert folder.waiting == ()
    assert messages == ["ignored: notes.md; only files named .parquet, .pq, .csv, .tsv, .jsonl, .ndjson are read."]


def test_a_file_that_grows_is_left_until_it_is_still(tmp_path: Path) -> None:
    folder, _, _ = _folder(tmp_path)
    with open(tmp_path / "a.csv", "w") as file:
        for k in range(3):
            file.write("y,p\n" if k == 0 else "1,0.5\n")
            file.flush()
            assert _names(folder) == []
    assert _names(folder) == ["a.csv"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_file_without_its_end_is_waited_for(name: str, tmp_path: Path) -> None:
    folder, messages, _ = _folder(tmp_path, looks=4)
    whole = put(tmp_path / name, columns(np.random.default_rng(0), 50)).read_bytes()
    (tmp_path / name).write_bytes(whole[:-7])
    for _ in range(4):
        assert _names(folder) == []
    assert messages == [f"waiting for {name}: it is not complete yet."]
    (tmp_path / name).write_bytes(whole)
    assert _names(folder) == []
    assert _names(folder) == [name]


def test_a_file_that_never_ends_is_yielded_in_the_end(tmp_path: Path) -> None:
    folder, _, _ = _folder(tmp_path, looks=3)
    (tmp_path / "a.csv").write_text("y,p\n1,0.5")
    assert [_names(folder) for _ in range(5)] == [[], [], [], ["a.csv"], []]


def test_a_file_that_was_counted_is_not_read_again(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", columns(np.random.default_rng(0), 5))
    folder, _, known = _folder(tmp_path)
    list(folder.look())
    (arrival,) = folder.look()
    known["a.csv"] = Known(arrival.digest, arrival.stamp)
    folder = Folder(tmp_path, known.get, print)
    assert [_names(folder) for _ in range(3)] == [[], [], []]
    os.utime(path, (1, 1))
    assert [_names(folder) for _ in range(3)] == [[], ["a.csv"], []]


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is not a folder"):
        _folder(tmp_path / "none")
    folder, _, _ = _folder(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(FileError, match="is gone"):
        _names(folder)


# Rows

BASE: dict[str, Any] = dict.fromkeys(
    ("alpha", "run_length", "y", "prob", "logits", "pos_label", "label", "by", "clip", "window_column", "batch_column")
)


OPEN: list[SqliteStore] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Watch:
    """A watcher whose clock stands still."""

    def __init__(self, folder: Path, *, apart: bool = False, **settings: Any) -> None:
        from safecal.cli.watch_session import BatchContent

        self.messages: list[str] = []
        self.store = SqliteStore(
            folder / "watch.sqlite", settings=BASE | settings, monitor=Monitor(grouped=bool(settings.get("by")))
        )
        OPEN.append(self.store)
        self.watcher = Watcher(
            self.store, lambda a, s: BatchContent(a, s, apart), self.messages.append,
            clock=lambda: datetime(2026, 1, 2, tzinfo=UTC),
        )  # fmt: skip

    def take(self, content: str, batch: str = "a", kind: str = "csv", digest: str | None = None) -> Any:
        header, body = b"", content.encode()
        if kind == "csv":
            header, _, body = body.partition(b"\n")
            header += b"\n"
        return self.watcher.take(Arrival(batch, digest or content, kind, content=body, header=header))


def test_columns_that_were_found_by_name_stay(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.take("label,p,other\n1,0.5,0\n", "a")
    assert watch.store.settings["y"] == "label"
    assert watch.store.settings["prob"] == ["p"]
    assert watch.take("y,p,label\n3,0.5,1\n", "b")  # alone, two columns could be what happened
    assert watch.take("label,logit\n1,0.5\n", "c") is None
    assert watch.messages == ["set aside: c: c has no column 'p'."]


def test_options_that_are_wrong_end_the_first_batch_and_set_nothing_aside(tmp_path: Path) -> None:
    watch = Watch(tmp_path, prob=["q"])
    with pytest.raises(FormError, match="has no column 'q'"):
        watch.take("y,p\n1,0.5\n")
    assert watch.store.count() == 0


def test_windows_by_column_and_by_day(tmp_path: Path) -> None:
    watch = Watch(tmp_path, window_column="day")
    watch.take("y,p,day\n1,0.5,feb\n0,0.5,jan\n1,0.25,feb\n")
    points = watch.store.history().points
    assert [(p.window, p.summary.n) for p in points] == [("feb", 2), ("jan", 1)]
    assert watch.take("y,p,day\n1,0.5,\n", "b") is None
    assert "`day` must name a window; got nothing at row 0" in watch.messages[0]
    (tmp_path / "other").mkdir()
    watch = Watch(tmp_path / "other")
    watch.take("y,p\n1,0.5\n")
    assert [p.window for p in watch.store.history().points] == ["2026-01-02"]
    assert watch.store.history().points[0].received == "2026-01-02T00:00:00+00:00"


def test_too_many_windows_in_a_batch(tmp_path: Path) -> None:
    watch = Watch(tmp_path, window_column="day")
    watch.take("y,p,day\n1,0.5,000\n")
    watch.take("y,p,day\n" + "".join(f"1,0.5,{k:03d}\n" for k in range(500)), "b")
    assert "`day` must have at most 366 values in a batch" in watch.messages[0]


def test_a_batch_counts_once_and_other_content_is_refused(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.take("y,p\n1,0.5\n")
    assert watch.take("y,p\n1,0.5\n") is None
    assert watch.watcher.again == 1
    assert watch.take("y,p\n0,0.5\n") is None
    assert watch.messages == ["set aside: a: it was counted before, with other content"]
    assert watch.take("y,p\n0,0.5\n") is None
    assert "was set aside before" in watch.messages[1]
    assert (watch.store.monitor().summary.n, watch.store.count()) == (1, 1)


def test_what_is_in_doubt_is_set_aside(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert (
        watch.watcher.take(Arrival("a", "digest", "csv", header=b"y,p\n", content=b"1,0.5\n", doubt="who knows"))
        is None
    )
    assert watch.messages == ["set aside: a: who knows"]
    assert (watch.store.monitor().summary.n, watch.store.count(), watch.watcher.aside) == (0, 1, 1)


def test_the_positive_label_may_be_late_and_the_other_stays_the_same(tmp_path: Path) -> None:
    watch = Watch(tmp_path, pos_label="yes")
    assert watch.take("y,p\nno,0.5\n", "a")
    assert watch.store.settings["seen"] is False
    assert watch.take("y,p\nyes,0.5\n", "b")
    assert watch.store.settings["seen"] is True
    assert watch.take("y,p\nmaybe,0.5\n", "c") is None
    assert "at most one other; got 2 others: 'no', 'maybe'" in watch.messages[0]


GARBAGE = {
    "word": ("csv", "y,p\n1,0.5\n0,high\n", [1], "`p` must be a number; got 'high'."),
    "range": ("csv", "y,p\n1,1.5\n0,0.5\n", [0], "`p` must lie in [0, 1]; got 1.5."),
    "missing": ("csv", "y,p\n1,0.5\n,0.5\n1,\n", [1, 2], "must not hold missing values; got nothing."),
    "label": ("csv", "y,p\n1,0.5\n7,0.5\n0,0.5\n", [1], "`y`"),
    "long row": ("csv", "y,p\n1,0.5\n1,0.5,9\n", [1], "cannot be read"),
    "not utf-8": ("csv", "y,p\n1,0.5\n1,\udcff\n", [1], ""),
    "garbage": ("jsonl", '{"y":1,"p":0.5}\n%$&\n{"y":0,"p":0.5}\n{"y":1\n', [1, 3], "cannot be read"),
    "list": ("jsonl", '{"y":1,"p":0.5}\n[1, 2]\n', [1], ""),
    "no field": ("jsonl", '{"y":1,"p":0.5}\n{"y":1}\n{"p":0.5}\n', [1, 2], ""),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_sets_the_batch_aside(case: str, tmp_path: Path) -> None:
    kind, content, _, _ = GARBAGE[case]
    watch = Watch(tmp_path, y="y", prob=["p"])
    watch.take("y,p\n1,0.5\n", "good")
    assert watch.take(content.encode(errors="surrogateescape").decode("latin-1"), "bad", kind) is None
    assert watch.store.monitor().summary.n == 1
    assert watch.store.count() == 1
    assert len(watch.messages) == 1


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_is_set_aside_row_by_row(case: str, tmp_path: Path) -> None:
    kind, content, bad, message = GARBAGE[case]
    watch = Watch(tmp_path, apart=True, y="y", prob=["p"])
    good = content.count("\n") - (kind == "csv") - len(bad)
    taken = watch.watcher.take(_arrival(content, kind))
    assert taken is not None, watch.messages
    assert watch.store.monitor().summary.n == good
    assert [a.place for a in watch.store.asides()] == [f"row {row}, counting from 0" for row in bad]
    assert message in watch.store.asides()[0].reason
    assert len(watch.messages) == len(bad)


def _arrival(content: str, kind: str) -> Arrival:
    whole = content.encode(errors="surrogateescape")
    header = whole.partition(b"\n")[0] + b"\n" if kind == "csv" else b""
    return Arrival("bad", "digest", kind, content=whole[len(header) :], header=header)


def test_too_many_bad_rows_set_the_batch_aside(tmp_path: Path) -> None:
    watch = Watch(tmp_path, apart=True)
    assert watch.take("y,p\n" + "1,0.5\n" * 500 + "1,x\n" * 101) is None
    assert "more than 100 rows cannot be read; the first, row 500" in watch.messages[0]
    assert watch.take("y,p\n" + "1,x\n" * 3, "b") is None
    assert "no row can be read; the first: `p` must be a number; got 'x'" in watch.messages[1]
    assert watch.store.count() == 2
    assert watch.store.monitor().summary.n == 0


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_bad_rows_of_files(name: str, tmp_path: Path) -> None:
    rows = columns(np.random.default_rng(0), 50)
    path = put(tmp_path / name, {"y": rows["y"], "p": np.where(np.arange(50) == 33, 1.5, 0.5)})
    folder, _, _ = _folder(tmp_path)
    list(folder.look())
    (arrival,) = folder.look()
    assert arrival.path == path
    watch = Watch(tmp_path, apart=True)
    assert watch.watcher.take(arrival)
    assert watch.store.monitor().summary.n == 49
    assert [a.place for a in watch.store.asides()] == ["row 33, counting from 0"]


def test_a_file_that_goes_away_or_changes_is_not_counted(tmp_path: Path) -> None:
    watch, path = Watch(tmp_path), tmp_path / "a.csv"
    watch.watcher.take(Arrival("a.csv", "digest", "csv", path, stamp="1:2:3"))
    assert watch.messages == ["a.csv went away before it was read; it was not counted."]
    path.write_text("y,p\n1,0.5\n")
    watch.watcher.take(Arrival("a.csv", "digest", "csv", path, stamp="1:2:3"))
    assert watch.messages[1] == "a.csv changed while it was read; it was not counted yet."
    assert watch.store.known("a.csv") is None
    assert watch.store.count() == 0
