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
from ..watch.batches import Arrival, Part
from ..watch.history import Aside
from ..watch.standard_input import records
from .table import chosen_columns

__all__ = ["MOST_BAD", "BatchContent"]

MOST_BAD = 100  # rows that are set aside one by one; a batch with more is set aside whole
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
    begun : mapping
        The settings so far; columns that are None are found by name.
    apart : bool
        Whether single rows that cannot be read are set aside. By default the batch is, as a whole.
    asides : list of Aside
        Those rows, after the last part.
    settings : dict
        The settings, with the columns that were read.
    """

    arrival: Arrival
    begun: Mapping[str, Any]
    apart: bool = False
    asides: list[Aside] = field(default_factory=list)
    settings: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = dict(self.begun)

    def parts(self) -> Iterator[Part]:
        """Yield the rows, some hundred thousand at a time."""
        if self.apart:
            try:
                for _ in self._parts(self._opened()):  # once to see whether all of it can be read
                    pass
            except (FormError, OptionError, MissingExtraError):
                raise
            except SafecalError:
                yield from self._parts(self._good())
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

    def _parts(self, source: Source) -> Iterator[Part]:
        self.settings = dict(self.begun)
        columns = self._columns(source)
        # A batch may well lack the positive label; and the other one is that of the batches before.
        before = [self.begun["other"]] if self.begun.get("other") is not None else []
        reader = Reader(columns, positive=True, others=before)
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
        begun = self.begun
        extra = [c for c in (begun.get("window_column"), begun.get("batch_column")) if c is not None]
        names = begun.get("label")
        found = chosen_columns(
            source,
            "watch",
            y=begun.get("y"),
            prob=begun.get("prob"),
            logits=begun.get("logits"),
            by=(*(begun.get("by") or ()), *extra),
            pos_label=begun.get("pos_label"),
            labels=None if names is None else tuple(names),
            clip=begun.get("clip"),
        )
        self.settings |= {"y": found.y_true, ("logits" if found.form == "logits" else "prob"): list(found.values)}
        return found

    def _part(self, batch: Batch, start: int) -> Part:
        columns, windows = dict(batch.by or {}), None
        name = self.begun.get("window_column")
        if name is not None:
            windows = _windows(columns[name], name, start)
        wanted = self.begun.get("by") or []
        if self.begun.get("pos_label") is not None and not self.settings.get("seen"):
            happened: Any = batch.predictions
            self.settings["seen"] = bool(np.any(happened.happened))
        return Part(batch.predictions, {key: columns[key] for key in wanted} or None, windows)

    def _good(self) -> Source:
        """Return the rows that can be read, and set the others aside."""
        size, some = self._rows()
        bad = self._bad(some, 0, size)
        for row, reason in bad:
            self.asides.append(Aside(self.arrival.batch, self.arrival.digest, _place(row), reason))
        if len(bad) == size:
            raise FileError(f"no row can be read; the first: {bad[0][1] if bad else 'there is none'}")
        rows = np.ones(size, dtype=bool)
        rows[[row for row, _ in bad]] = False
        return some(np.flatnonzero(rows))

    def _rows(self) -> tuple[int, Callable[[Any], Source]]:
        """Return how many rows there are, and how to get some of them."""
        arrival = self.arrival
        if arrival.kind == "parquet":
            frame = self._opened().frame()
            return int(frame.height), lambda index: _Held(arrival.batch, frame[index])
        text = arrival.content if arrival.path is None else arrival.path.read_bytes()
        found = [row for row in records(text, arrival.kind or "csv") if row.strip()]
        header = arrival.header
        if arrival.path is not None and arrival.kind != "jsonl":
            header, found = found[0] if found else b"", found[1:]
        found = [row if row.endswith(b"\n") else row + b"\n" for row in found]
        return len(found), lambda index: self._text(header + b"".join(found[k] for k in index))

    def _bad(self, some: Callable[[Any], Source], low: int, high: int) -> list[tuple[int, str]]:
        """Find the rows that cannot be read, by halving."""
        try:
            for _ in self._parts(some(np.arange(low, high))):
                pass
        except MissingExtraError:
            raise
        except SafecalError as error:
            if high - low == 1:
                return [(low, _ALONE.sub("", str(error).split("\n\n", 1)[0]))]
        else:
            return []
        middle = (low + high) // 2
        found = self._bad(some, low, middle)
        if len(found) <= MOST_BAD:
            found += self._bad(some, middle, high)
        if len(found) > MOST_BAD:
            raise FileError(
                f"more than {MOST_BAD} rows cannot be read; the first, {_place(found[0][0])}: {found[0][1]}"
            )
        return found


def _place(row: int) -> str:
    return f"row {row}, counting from 0"


def _windows(column: Any, name: str, start: int) -> Any:
    values = np.asarray(column)
    missing = np.fromiter((is_missing(v) for v in values.tolist()), dtype=bool, count=len(values))
    if values.dtype.kind in "OU":
        missing |= values == ""
    if missing.any():
        at, count = _place(start + int(missing.argmax())), (int(missing.sum()), len(values))
        raise fail(MissingValueError, name, "must name a window", got="none", place=at, count=count)
    found = values.astype(str)
    if len(np.unique(found)) > _MOST_WINDOWS:
        hint = "use a date, and not a time."
        rule = f"must have at most {_MOST_WINDOWS} values in a batch"
        raise fail(OptionError, name, rule, got=str(len(np.unique(found))), hint=hint)
    return found
