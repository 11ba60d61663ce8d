"""From a file and a reading of its columns to batches of checked predictions."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np

from .._checks.classes import equal_labels
from .._checks.columns import weights
from .._checks.message import fail, show
from .._types import AnyArray, BoolArray
from ..engines.batches import Batch
from ..errors import FileError, InputError, LabelError, MissingValueError, OptionError
from ..families.classifier import classifier
from .columns import Column, clusters, keys, labels, numbers, row_place
from .readings import Reading
from .sources import Source
from .terminal import Progress

__all__ = ["Reader", "in_options"]


@final
class Reader:
    """Reads a file as often as it is asked to, and remembers what it left out."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source, self.reading = source, reading
        self.rows = self.dropped = 0
        self.first_dropped: int | None = None
        self._positive = False  # whether the positive label has occurred
        self._others: set[Any] = set()
        self._text: bool | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, from the first row."""
        self.rows = self.dropped = 0
        with Progress(self.source.rows()) as progress:
            for raw in self.source.batches(self.reading.columns):
                size = len(next(iter(raw.values())))
                batch = self._batch(raw, size)
                self.rows += size
                progress.add(size)
                if batch is not None:
                    yield batch
        if self.rows == 0:
            raise FileError(f"{self.source.name} has columns and no rows.")
        if self.rows == self.dropped:
            raise FileError(f"every row of {self.source.name} has missing values; nothing is left.")
        if self.reading.pos_label is not None and not self._positive:
            raise self._never_occurs()

    def _never_occurs(self) -> LabelError:
        found = ", ".join(map(show, sorted(self._others, key=str)[:5]))
        return LabelError(
            f"the label {self.reading.pos_label!r} of `--pos-label` never occurs in column {self.reading.y!r}; "
            f"it holds {found}.\n\nHint: is it spelled as in the file?"
        )

    def _batch(self, raw: Any, size: int) -> Batch | None:
        reading = self.reading
        outcome = labels(raw[reading.y]) if reading.y is not None else None
        values = self._values(raw)
        weight = None if reading.weight is None else numbers(raw[reading.weight], reading.weight, self.rows)
        cluster = None if reading.cluster is None else clusters(raw[reading.cluster])
        used = [c for c in (outcome, values, weight, cluster) if c is not None]
        missing = np.logical_or.reduce([column.missing for column in used])
        keep = slice(None) if not missing.any() else self._kept(missing)
        if missing.all():
            return None
        assert outcome is not None
        y, v = outcome.values[keep], values.values[keep]
        w = None if weight is None else weight.values[keep]
        by = {name: keys(raw[name])[keep] for name in reading.by} or None
        try:
            predictions = self._predictions(y, v)
            w = None if w is None else _checked(w, len(y))
        except InputError as error:
            raise self._in_words_of_the_file(error, size) from error
        return Batch(predictions, w, by, None if cluster is None else cluster.values[keep])

    def _values(self, raw: Any) -> Column:
        found = [numbers(raw[name], name, self.rows) for name in self.reading.values]
        if len(found) == 1:
            return found[0]
        wide = [name for name, c in zip(self.reading.values, found, strict=True) if c.values.ndim != 1]
        if wide:
            raise OptionError(f"column {wide[0]!r} already holds every class; give it alone.")
        return Column(
            np.column_stack([c.values for c in found]), np.logical_or.reduce([c.missing for c in found])
        )  # fmt: skip

    def _kept(self, missing: BoolArray) -> BoolArray:
        """Return the rows without missing values, where the user asked to drop the others."""
        first = self.rows + int(missing.argmax())
        if not self.reading.drop_missing:
            raise self._missing(first)
        self.dropped += int(missing.sum())
        self.first_dropped = first if self.first_dropped is None else self.first_dropped
        return ~missing

    def _missing(self, first: int) -> InputError:
        """Count the rows with missing values in the whole file."""
        bad = total = 0
        name = ""
        for raw in self.source.batches(self.reading.columns):
            columns = self._each(raw, total)
            hit = np.logical_or.reduce([c.missing for c in columns.values()])
            if hit.any() and not name:
                name = next(key for key, c in columns.items() if c.missing[hit.argmax()])
            bad, total = bad + int(hit.sum()), total + len(hit)
        return fail(
            MissingValueError, name, "must not hold missing values", got="none", place=row_place(first),
            count=(bad, total), hint="`--drop-missing` leaves such rows out, and says how many.",
        )  # fmt: skip

    def _each(self, raw: Any, offset: int) -> dict[str, Column]:
        reading = self.reading
        found = {} if reading.y is None else {reading.y: labels(raw[reading.y])}
        more = (*reading.values, *(() if reading.weight is None else (reading.weight,)))
        found |= {name: numbers(raw[name], name, offset) for name in more}
        return found if reading.cluster is None else found | {reading.cluster: clusters(raw[reading.cluster])}

    def _predictions(self, y: AnyArray, values: AnyArray) -> Any:
        reading = self.reading
        form: dict[str, Any] = {"logits" if reading.logits else "y_prob": values}
        clip = reading.clip
        text = y.dtype.kind == "U"
        if self._text is not None and self._text != text:
            raise LabelError(f"column {reading.y!r} holds numbers in some rows and words in others.")
        self._text = text
        if values.ndim == 1:
            if reading.labels is not None:
                raise OptionError(
                    "`--label` names the classes of several columns; with one, `--pos-label` names its class."
                )
            if reading.pos_label is not None:
                y = self._is_positive(y)
            return classifier(y, **form, clip=clip)
        if reading.pos_label is not None:
            raise OptionError("`--pos-label` belongs to one column; with one column a class, `--label` names them.")
        if reading.labels is not None:
            names: list[Any] = [_number(name) if not text else name for name in reading.labels]
            return classifier(y, **form, labels=names, clip=clip)
        return classifier(y, **form, labels=self._classes(y) if text else None, clip=clip)

    def _is_positive(self, y: AnyArray) -> BoolArray:
        """Compare with the positive label; there may be one other."""
        wanted: Any = self.reading.pos_label
        if y.dtype.kind == "b":
            wanted = {"true": True, "false": False, "1": True, "0": False}.get(str(wanted).lower())
        elif y.dtype.kind in "iufO":
            wanted = _number(wanted)
        found: BoolArray = equal_labels(y, wanted)
        self._positive = self._positive or bool(found.any())
        self._others |= set(np.unique(y[~found]).tolist())
        if len(self._others) > 1 and not self._positive:
            raise self._never_occurs()
        if len(self._others) > 1:
            shown = ", ".join(map(show, sorted(self._others, key=str)[:4]))
            raise LabelError(
                f"column {self.reading.y!r} must hold two labels; besides {self.reading.pos_label!r} it holds {shown}."
                "\n\nHint: for more than two classes give one `--prob` a class."
            )
        return found

    def _classes(self, y: AnyArray) -> list[str]:
        """Name the classes after their columns, less what all of them begin with."""
        names = list(self.reading.values)
        common = _common_start(names)
        choices = [[name[len(common) :] for name in names], names]
        seen = set(np.unique(y).tolist())
        for found in choices:
            if seen <= set(found) and len(set(found)) == len(found):
                return found
        option = "--logits" if self.reading.logits else "--prob"
        told = " ".join(f"{option} {n} --label LABEL" for n in names[:2])
        raise LabelError(
            f"column {self.reading.y!r} holds {', '.join(map(show, sorted(seen)[:4]))}, and the columns are named "
            f"{', '.join(map(show, names[:4]))}: which is which?\n\nHint: name the classes in their order: {told} ..."
        )

    def _in_words_of_the_file(self, error: InputError, size: int) -> InputError:
        """Name the column and the row of the file, and options instead of arguments."""
        complaint = error.complaint
        if complaint is None:
            return error
        reading = self.reading
        values = reading.values[0] if len(reading.values) == 1 else " ".join(reading.values[:4])
        names = {"y_true": reading.y, "y_prob": values, "logits": values, "sample_weight": reading.weight}
        place = complaint.place
        if place is not None:
            place = re.sub(r"row (\d+)", lambda m: row_place(int(m[1]) + self.rows), place)
        rows = (self.rows, self.rows + size)
        shown = complaint.count if self.rows == 0 else None
        if shown is None and complaint.count is not None:
            place = f"{place}; {complaint.count[0]} of the rows {rows[0]} to {rows[1] - 1}"
        rule, hint = in_options(complaint.rule), None if complaint.hint is None else in_options(complaint.hint)
        name = names.get(complaint.argument) or complaint.argument
        return type(error)(str(replace(complaint, argument=name, rule=rule, place=place, count=shown, hint=hint)))


# What a hint for Python says, and what one types here.
_OPTIONS = (
    (r"pass `(\w+) / 100`", r"divide the column by 100"),
    (r"pass them as `logits=`", "name the column with `--logits`"),
    (r"for example `pos_label='?([^'`]*)'?`", r"for example `--pos-label \1`"),
    (r"`pos_label=?`", "`--pos-label`"),
    (r"when `labels` is not given", "when `--label` is not given"),
    (r"must be one of `labels`", "must be one of the classes"),
    (r"pass `labels=` in the order of the columns", "name them with `--label`, in the order of the columns"),
    (r"if that is rounding, pass `np.clip\([^`]*`", "if that is rounding, round the column first"),
    (r"pass `([^`]+) / \1\.sum\(axis=1, keepdims=True\)`", "divide each row by its sum"),
    (r"normalise in float32: `[^`]*`", "divide each row by its sum in float32"),
    (r"pass `logits=`", "name the column with `--logits`"),
    (r"pass `y_true - 1`, or `labels=[^`]*`", "subtract 1, or name the classes with `--label`, in their order"),
    (r"the arguments seem swapped: .*", "the columns seem swapped: `--y` names what happened."),
    (r"`logits=`", "`--logits`"),
    (r"`clip=([^`]+)`", r"`--clip \1`"),
)


def in_options(text: str) -> str:
    """Word a hint for Python as one types it here."""
    for old, new in _OPTIONS:
        text = re.sub(old, new, text)
    return text


def _number(text: Any) -> int | float | str:
    for kind in (int, float):  # a large whole number is not its nearest float
        try:
            return kind(text)
        except (ValueError, OverflowError):
            continue
    return str(text)


def _common_start(names: list[str]) -> str:
    first, last = min(names), max(names)
    size = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:size]


def _checked(weight: AnyArray, n: int) -> AnyArray:
    """Check weights; a batch of zeros is allowed, since others may follow."""
    if not weight.any():
        return weight
    found = weights(weight, n)
    assert found is not None
    return found
