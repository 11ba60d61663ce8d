"""The rows of a batch that `safecal watch` takes in, read as `safecal evaluate` reads a file."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._checks.arrays import is_missing
from .._checks.message import SHELL, fail
from .._optional import polars
from ..errors import FileError, FormError, InputError, MissingExtraError, MissingValueError, OptionError, SafecalError
from ..inputs.columns import Columns, about_columns
from ..inputs.reader import Batch, Reader, Rows
from ..inputs.sources import BATCH, Source, open_source
from ..watch.batches import Arrival, BatchRows
from ..watch.history import Aside
from ..watch.standard_input import records
from .table_file import chosen_columns

__all__ = ["MOST_UNREADABLE", "BatchContent"]

MOST_UNREADABLE = 100  # rows that are set aside one by one; a batch with more is set aside whole
_MOST_WINDOWS = 366
_ODD = re.compile(r"[*?\[\]\ud800-\udfff]")  # in names: Polars would look for many files, or for none
_ALONE = re.compile(r" at row 0, counting from 0| \(1 of 1 row\)")  # what a row says of itself when it is read alone


@final
class _Held(Source):
    """Rows that are in memory already."""

    def __init__(self, name: str, frame: Any) -> None:
        self._frame = frame
        super().__init__(name, frame.columns, once=False)

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        for part in self._frame.select(list(dict.fromkeys(columns))).iter_slices(BATCH):
            if part.height:
                yield {name: part[name] for name in part.columns}

    def rows(self) -> int | None:
        return int(self._frame.height)

    def frame(self) -> Any:
        return self._frame


@final
@dataclass(slots=True)
class BatchContent:
    """A batch, to be read.

    Attributes
    ----------
    arrival : Arrival
        What came.
    stored : mapping
        The settings in the store; columns that are None are found by name.
    quarantine : bool
        Whether single rows that cannot be read are set aside. By default the batch is, as a whole.
    asides : list of Aside
        Those rows, after the last part.
    settings : dict
        The settings, with the columns that were read.
    """

    arrival: Arrival
    stored: Mapping[str, Any]
    quarantine: bool = False
    asides: list[Aside] = field(default_factory=list)
    settings: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = dict(self.stored)

    def parts(self) -> Iterator[BatchRows]:
        """Yield the rows, some hundred thousand at a time."""
        if self.quarantine:
            try:
                for _ in self._parts(self._opened()):  # once to see whether all of it can be read
                    pass
            except (FormError, OptionError, MissingExtraError):
                raise
            except SafecalError:
                yield from self._parts(self._readable_rows())
                return
        yield from self._parts(self._opened())

    def _opened(self) -> Source:
        arrival = self.arrival
        if arrival.path is None:
            return self._text(arrival.header + arrival.content)
        if _ODD.search(str(arrival.path)) is None:
            return open_source(str(arrival.path), arrival.kind)
        content = arrival.path.read_bytes()
        if arrival.kind == "parquet":
            return self._held(lambda pl: pl.read_parquet(io.BytesIO(content)))
        return self._text(content)

    def _text(self, text: bytes) -> Source:
        if self.arrival.kind == "jsonl":
            return self._held(lambda pl: pl.read_ndjson(io.BytesIO(text), infer_schema_length=None))
        separator = "\t" if self.arrival.kind == "tsv" else ","
        return self._held(lambda pl: pl.read_csv(io.BytesIO(text), infer_schema=False, separator=separator))

    def _held(self, read: Callable[[Any], Any]) -> Source:
        pl, name = polars(), self.arrival.batch
        try:
            return _Held(name, read(pl))
        except pl.exceptions.PolarsError as error:
            raise FileError(f"{name} cannot be read: {str(error).strip().splitlines()[0].rstrip('.')}.") from error

    def _parts(self, source: Source) -> Iterator[BatchRows]:
        self.settings = dict(self.stored)
        columns = self._columns(source)
        # A batch may well lack the positive label; and the other one is that of the batches before.
        other_labels = [self.stored["other"]] if self.stored.get("other") is not None else []
        reader = Reader(columns, positive=True, others=other_labels)
        start = 0
        try:
            for batch in reader.batches(source.batches(columns.names)):
                yield self._part(batch, start)
                start += batch.predictions.n
        except InputError as error:
            raise about_columns(error, columns, SHELL) from error
        if reader.rows == 0:
            raise FileError(f"{source.name} has columns and no rows.")
        if columns.pos_label is not None and reader.others:
            self.settings["other"] = next(iter(reader.others))

    def _columns(self, source: Source) -> Columns:
        stored = self.stored
        extra = [c for c in (stored.get("window_column"), stored.get("batch_column")) if c is not None]
        names = stored.get("label")
        columns = chosen_columns(
            source,
            "watch",
            y=stored.get("y"),
            prob=stored.get("prob"),
            logits=stored.get("logits"),
            by=(*(stored.get("by") or ()), *extra),
            pos_label=stored.get("pos_label"),
            labels=None if names is None else tuple(names),
            clip=stored.get("clip"),
        )
        self.settings |= {"y": columns.y_true, ("logits" if columns.form == "logits" else "prob"): list(columns.values)}
        return columns

    def _part(self, batch: Batch, start: int) -> BatchRows:
        columns, windows = dict(batch.by or {}), None
        name = self.stored.get("window_column")
        if name is not None:
            windows = _windows(columns[name], name, start)
        grouped_by = self.stored.get("by") or []
        if self.stored.get("pos_label") is not None and not self.settings.get("seen"):
            happened: Any = batch.predictions
            self.settings["seen"] = bool(np.any(happened.happened))
        return BatchRows(batch.predictions, {key: columns[key] for key in grouped_by} or None, windows)

    def _readable_rows(self) -> Source:
        """Return the rows that can be read, and set the others aside."""
        size, pick = self._pickable_rows()
        unreadable = self._unreadable(pick, 0, size)
        for row, reason in unreadable:
            self.asides.append(Aside(self.arrival.batch, self.arrival.digest, _place(row), reason))
        if len(unreadable) == size:
            raise FileError(f"no row can be read; the first: {unreadable[0][1] if unreadable else 'there is none'}")
        rows = np.ones(size, dtype=bool)
        rows[[row for row, _ in unreadable]] = False
        return pick(np.flatnonzero(rows))

    def _pickable_rows(self) -> tuple[int, Callable[[Any], Source]]:
        """Return how many rows there are, and how to get some of them."""
        arrival = self.arrival
        if arrival.kind == "parquet":
            frame = self._opened().frame()
            return int(frame.height), lambda index: _Held(arrival.batch, frame[index])
        text = arrival.content if arrival.path is None else arrival.path.read_bytes()
        lines = [line for line in records(text, arrival.kind or "csv") if line.strip()]
        header = arrival.header
        if arrival.path is not None and arrival.kind != "jsonl":
            header, lines = lines[0] if lines else b"", lines[1:]
        lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        return len(lines), lambda index: self._text(header + b"".join(lines[k] for k in index))

    def _unreadable(self, pick: Callable[[Any], Source], low: int, high: int) -> list[tuple[int, str]]:
        """Find the rows that cannot be read, by halving."""
        try:
            for _ in self._parts(pick(np.arange(low, high))):
                pass
        except MissingExtraError:
            raise
        except SafecalError as error:
            if high - low == 1:
                return [(low, _ALONE.sub("", str(error).split("\n\n", 1)[0]))]
        else:
            return []
        middle = (low + high) // 2
        unreadable = self._unreadable(pick, low, middle)
        if len(unreadable) <= MOST_UNREADABLE:
            unreadable += self._unreadable(pick, middle, high)
        if len(unreadable) > MOST_UNREADABLE:
            row, reason = unreadable[0]
            raise FileError(f"more than {MOST_UNREADABLE} rows cannot be read; the first, {_place(row)}: {reason}")
        return unreadable


def _place(row: int) -> str:
    return f"row {row}, counting from 0"


def _windows(column: Any, name: str, start: int) -> Any:
    values = np.asarray(column)
    missing = np.fromiter((is_missing(v) for v in values.tolist()), dtype=bool, count=len(values))
    if values.dtype.kind in "OU":
        missing |= values == ""
    if missing.any():
        place, count = _place(start + int(missing.argmax())), (int(missing.sum()), len(values))
        raise fail(MissingValueError, name, "must name a window", got="none", place=place, count=count)
    windows = values.astype(str)
    if len(np.unique(windows)) > _MOST_WINDOWS:
        hint = "use a date, and not a time."
        rule = f"must have at most {_MOST_WINDOWS} values in a batch"
        raise fail(OptionError, name, rule, got=str(len(np.unique(windows))), hint=hint)
    return windows
