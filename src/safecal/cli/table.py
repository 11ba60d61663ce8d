"""The file that a command is about: which columns the options mean, and its rows in checked batches."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack, final

from .._checks.message import show
from ..errors import FileError, FormError, InputError
from ..families.categorical import Categorical
from ..inputs.columns import (
    SHELL,
    Columns,
    Unclear,
    about_columns,
    check_by_label,
    find_columns,
    label_pairs,
    near_names,
)
from ..inputs.reader import Batch, Reader, Rows, join_batches
from ..inputs.sources import Source, open_source
from .terminal import Progress

__all__ = ["Kept", "TableFile", "chosen_columns"]

_MOST_VALUES, _MOST_CLASSES = 1_000_000, 100  # of rows that are kept


class ColumnOptions(TypedDict, total=False):
    """What a command may say of columns beside outcomes and predictions: the fields of `Columns`."""

    by: tuple[str, ...]
    features: tuple[str, ...]
    cluster: str | None
    sample_weight: str | None
    pos_label: Any
    labels: tuple[Any, ...] | None
    clip: float | None
    drop_missing: bool


@final
class TableFile:
    """A file of predictions; it can be read as often as it is asked to.

    Attributes
    ----------
    source : Source
        The file.
    columns : Columns
        What the options mean.
    reader : Reader
        The last one at work: how many rows it read, and how many it left out.
    """

    def __init__(self, source: Source, columns: Columns) -> None:
        self.source, self.columns = source, columns
        self.reader = Reader(columns)

    @classmethod
    def opened(
        cls,
        file: str,
        options: argparse.Namespace,
        prob: Sequence[str] | None,
        logits: Sequence[str] | None,
        *,
        outcome: bool = True,
    ) -> "TableFile":
        """Open a file; ``prob`` and ``logits`` stand for the options of these names."""
        source = open_source(file, options.format, getattr(options, "sep", None))
        more: ColumnOptions = {
            "by": tuple(getattr(options, "by", None) or ()),
            "features": tuple(getattr(options, "features", None) or ()),
            "cluster": options.cluster,
            "sample_weight": options.sample_weight,
            "pos_label": options.pos_label,
            "labels": None if options.label is None else tuple(options.label),
            "clip": options.clip,
            "drop_missing": options.drop_missing,
        }
        named: list[str] = [options.y] if isinstance(options.y, str) else options.y or []
        if getattr(options, "by_label", False):
            return cls(source, _label_columns(source, options.command, named, prob, logits, more))
        if len(named) > 1:
            raise FormError(
                f"`--y` names {len(named)} columns, and one tells what happened.\n\nHint: for several labels a row, "
                "each with its own `--prob`, add `--by-label`."
            )
        y = named[0] if named else None
        columns = chosen_columns(source, options.command, y=y, prob=prob, logits=logits, outcome=outcome, **more)
        return cls(source, columns)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, from the first row."""
        self.reader = reader = Reader(self.columns)
        try:
            rows = self.source.rows()
            guess = self.source.guess() if rows is None else None
            with Progress(rows or guess, about=rows is None) as progress:
                yield from reader.batches(self._counted(progress))
            if reader.rows == 0:
                raise FileError(f"{self.source.name} has columns and no rows.")
            if reader.rows == reader.dropped:
                raise FileError(f"every row of {self.source.name} has missing values; nothing is left.")
            reader.finish()
        except InputError as error:
            raise about_columns(error, self.columns, SHELL) from error

    def whole(self) -> Batch:
        """Return all rows."""
        return join_batches(list(self.batches()))

    def _counted(self, progress: Progress) -> Iterator[Rows]:
        for rows in self.source.batches(self.columns.names):
            progress.add(len(next(iter(rows.values()))))
            yield rows


@final
class Kept:
    """Batches on their way, of which the rows are kept as long as they are few.

    Attributes
    ----------
    batches : callable
        Yields them from the first.
    most : int
        How many rows are few; rows times classes, and classes, have limits of their own.
    """

    def __init__(self, batches: Callable[[], Iterator[Batch]], most: int) -> None:
        self.batches, self.most = batches, most
        self._parts: list[Batch] = []
        self._few = True

    def __call__(self) -> Iterator[Batch]:
        """Yield the batches, from the first row."""
        self._parts, self._few, n = [], True, 0
        for batch in self.batches():
            n += batch.predictions.n
            classes = batch.predictions.classes if isinstance(batch.predictions, Categorical) else 1
            few = n <= self.most and n * classes <= _MOST_VALUES and classes <= _MOST_CLASSES
            self._few = self._few and few
            if self._few:
                self._parts.append(batch)
            else:
                self._parts.clear()
            yield batch

    def whole(self) -> Batch | None:
        """Return all rows; None where they were too many."""
        return join_batches(self._parts) if self._few else None


def chosen_columns(
    source: Source,
    command: str,
    *,
    y: str | None = None,
    prob: Sequence[str] | None = None,
    logits: Sequence[str] | None = None,
    outcome: bool = True,
    **more: Unpack[ColumnOptions],
) -> Columns:
    """Return which column is what, by the options, or by name where only one reading is possible."""
    try:
        happened, values, form = find_columns(source.columns, y, prob, logits, outcome=outcome)
    except Unclear as unclear:
        raise _unclear(source, command, y, unclear) from None
    return _there(source, Columns(happened, values, form, **more))


def _label_columns(
    source: Source,
    command: str,
    y: Sequence[str],
    prob: Sequence[str] | None,
    logits: Sequence[str] | None,
    more: ColumnOptions,
) -> Columns:
    """Return which column is what, where a row has several labels."""
    if prob and logits:
        raise FormError("`--prob` and `--logits` are two forms of one prediction; give one of them.")
    outcomes, values, form = tuple(y), tuple(prob or logits or ()), "logits" if logits else "y_prob"
    if not outcomes and not values:
        pairs = label_pairs(source.columns)
        if pairs is None:
            raise _unclear(source, command, None, Unclear("each label", ()))
        outcomes, values, form = pairs
    if len(outcomes) != len(values) or len(outcomes) < 2:
        raise FormError(
            f"`--by-label` needs two `--y` or more, with one `--prob` or `--logits` for each; got {len(outcomes)} and "
            f"{len(values)}.\n\nHint: {_labels_line(source, command)}"
        )
    found = _there(source, Columns(None, values, form, outcomes=outcomes, **more))
    try:
        return check_by_label(found)
    except InputError as error:
        raise about_columns(error, found, SHELL) from error


def _labels_line(source: Source, command: str) -> str:
    """Return a command for several labels a row, with the columns that their names pair."""
    outcomes, values, form = label_pairs(source.columns) or (("COLUMN",) * 2, ("COLUMN",) * 2, "y_prob")
    file = "-" if source.once else shlex.quote(source.name)
    option = "--logits" if form == "logits" else "--prob"
    words = (f"--y {shlex.quote(y)} {option} {shlex.quote(v)}" for y, v in zip(outcomes, values, strict=True))
    return f"safecal {command} {file} --by-label {' '.join(words)}"


def _there(source: Source, found: Columns) -> Columns:
    """Refuse columns that the file does not have, or has twice."""
    if found.features == ("all",) and "all" not in source.columns:
        used = replace(found, features=()).names
        rest = tuple(name for name in source.columns if name not in used and name not in source.twice)
        found = replace(found, features=rest)
    missing = next((name for name in found.names if name not in source.columns), None)
    if missing is not None:
        hint = near_names(missing, source.columns, 20)
        raise FormError(f"{source.name} has no column {missing!r}.\n\nHint: {hint}")
    twice = next((name for name in found.names if name in source.twice), None)
    if twice is not None:
        raise FormError(f"{source.name} has more than one column named {twice!r}.\n\nHint: rename the others.")
    return found


def _unclear(source: Source, command: str, given: str | None, unclear: Unclear) -> FormError:
    found, what = unclear.candidates, unclear.what
    text = f"which column of {source.name} is {what}? "
    text += f"{', '.join(map(repr, found))} could be." if found else "None has a name that says so."
    shown = ", ".join(map(show, source.columns[:20]))
    more = len(source.columns) - 20
    y, value, option = given or "COLUMN", "COLUMN", "--prob"
    if what != "what happened":
        value = found[0] if found else value
        there = set(source.columns)
        pair = next((c for c in source.columns if f"{c}_outcome" in there), None)
        if pair is not None:
            value, y = pair, given or f"{pair}_outcome"
        else:
            y = given or next((c for c in source.columns if c.lower() in ("y", "y_true", "label", "target")), y)
        option = "--logits" if "logit" in value.lower() else option
    file = "-" if source.once else shlex.quote(source.name)
    line = f"safecal {command} {file} --y {shlex.quote(y)} {option} {shlex.quote(value)}"
    if what == "each label" or (command == "evaluate" and given is None and label_pairs(source.columns)):
        line = _labels_line(source, command)
    listed = shown if more <= 0 else f"{shown} and {more} more"
    return FormError(f"{text} Its columns are {listed}.\n\nHint: {line}")
