"""Checked batches of a stream of rows: what one batch cannot see is checked across them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, final

from ..._checks.classes import never_occurs
from ..._checks.message import Complaint, fail, show
from ...errors import InputError, LabelError, ShapeError
from ..batch import Batch
from ..columns import Columns, batch

__all__ = ["Checked", "a_positive_label", "alike", "one_other_label", "worded"]


@final
class Checked:
    """The rows of a stream of Arrow tables, as batches.

    Where rows are refused, the rest of the stream is read to count how many are.

    Attributes
    ----------
    others : tuple of str
        The labels that were met beside ``pos_label``, as they are typed.
    positive : bool
        Whether ``pos_label`` was met.
    rows : int
        How many rows were read so far.
    """

    def __init__(self, columns: Columns, stream: Iterable[Any]) -> None:
        self.columns = columns
        self.others: tuple[str, ...] = ()
        self.positive = False
        self._stream = (table for table in stream)
        self.rows = 0
        self._width: int | None = None

    def __iter__(self) -> Iterator[Batch]:
        try:
            for table in self._stream:
                try:
                    found = batch(self.columns, table)
                    self._look_across(table, found)
                except InputError as error:
                    raise self._counted(error, table.num_rows) from error
                self.rows += table.num_rows
                yield found
        finally:
            self._stream.close()  # a database waits for it

    def _look_across(self, table: Any, found: Batch) -> None:
        """Check what all rows must have in common."""
        values = getattr(found.predictions, "values", None)
        if values is not None and values.ndim == 2:
            self._width = self._width or values.shape[1]
            if values.shape[1] != self._width:
                rule = f"must hold lists of one length, {self._width}"
                raise fail(ShapeError, self.columns.form, rule, got=f"{values.shape[1]}", place="row 0")
        if self.columns.pos_label is not None:
            labels = table.column(self.columns.y_true).unique().to_pylist()
            new = [show(label) for label in labels if label != self.columns.pos_label]
            self.positive = self.positive or len(new) < len(labels)
            self.others = tuple(dict.fromkeys((*self.others, *new)))
            one_other_label(self.columns, self.others)

    def _counted(self, error: InputError, size: int) -> InputError:
        """Name the row of the stream, and count all rows that break the same rule."""
        complaint: Complaint | None = error.complaint
        if complaint is None or complaint.place is None:
            return error
        place = re.sub(r"row (\d+)", lambda m: f"row {int(m[1]) + self.rows}", complaint.place)
        if complaint.count is None:
            return worded(error, replace(complaint, place=place))
        bad = complaint.count[0]
        self.rows += size
        for table in self._stream:
            self.rows += table.num_rows
            try:
                batch(self.columns, table)
            except InputError as another:
                bad += _how_many(another.complaint, complaint)
        return worded(error, replace(complaint, place=place, count=(bad, self.rows)))


def _how_many(another: Complaint | None, complaint: Complaint) -> int:
    return another.count[0] if another is not None and another.count is not None and alike(another, complaint) else 0


def alike(a: Complaint, b: Complaint) -> bool:
    """Tell whether two complaints are about the same rule."""
    return (a.argument, a.rule) == (b.argument, b.rule)


def worded(error: InputError, complaint: Complaint) -> InputError:
    """Return the error with another complaint."""
    found = type(error)(str(complaint))
    found.complaint = complaint
    return found


def a_positive_label(columns: Columns, positive: bool, others: tuple[str, ...]) -> None:
    """Refuse a positive label that was met in no row of all."""
    if columns.pos_label is not None and not positive:
        raise never_occurs(columns.pos_label, list(others))


def one_other_label(columns: Columns, others: tuple[str, ...]) -> None:
    """Refuse a third label, wherever it occurs."""
    if len(others) > 1:
        raise fail(
            LabelError,
            "y_true",
            f"must hold `pos_label` ({show(columns.pos_label)}) and at most one other label",
            got=f"{len(others)} others: {', '.join(others[:5])}",
            hint="for more than two classes pass one column for each class.",
        )
