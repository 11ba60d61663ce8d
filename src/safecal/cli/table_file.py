"""The file that a command is about: which columns the options mean, and its rows in checked batches."""

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, final

import numpy as np

from .._checks import SHELL, show, worded
from .._checks.forecasts import Grid
from ..errors import DocumentError, FileError, FormError, InputError
from ..files import parsed_json
from ..inputs import Batch, Reader, Rows, join_batches, prediction_values
from ..inputs.columns import (
    Columns,
    Stated,
    Unclear,
    about_columns,
    check_by_label,
    class_pattern,
    find_columns,
    is_outcome,
    is_score,
    label_pairs,
    matching,
    near_names,
)  # fmt: skip
from ..inputs.sources import Source, is_columnar, left_out, open_source
from ..inputs.states import check_states, split_names
from ..inputs.text_files import log_kind
from .outputs import Progress

__all__ = ["KeptRows", "TableFile", "chosen_columns", "file_inputs", "read_json"]

_MOST_VALUES, _MOST_CLASSES = 1_000_000, 100  # of rows that are kept
_OF_ONE_FILE = ("evaluate", "plan", "recalibrate")  # commands that take a file and columns, and need nothing else


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
    """A file of predictions, and which column is what; it can be read as often as it is asked to."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self.source, self.columns = source, columns
        self.reader = Reader(columns)  # the last one at work: how many rows it read, and how many it left out

    @classmethod
    def opened(
        cls,
        file: str | Sequence[str],
        options: argparse.Namespace,
        prob: Sequence[str] | None,
        logits: Sequence[str] | None,
        *,
        outcome: bool = True,
    ) -> "TableFile":
        """Open a file, or several logs; ``prob`` and ``logits`` stand for the options of these names."""
        files = [file] if isinstance(file, str) else list(file)
        outcomes: list[str] = [options.y] if isinstance(options.y, str) else options.y or []
        kind = None if options.format is not None or is_columnar(files[0]) else log_kind(files[0])
        of_server = any(getattr(options, name, None) is not None for name in ("vocabulary", "text"))
        if kind is not None or of_server or len(files) > 1:
            from .language_models import open_answers, open_logs

            log: Source
            if kind == "answers" or of_server:
                log, columns = open_answers(files, options)
            else:
                log, columns = open_logs(files, options, prob or logits)
            return cls(log, _existing(log, columns))
        source = open_source(files[0], options.format, getattr(options, "sep", None))
        column_options: ColumnOptions = {
            "by": tuple(getattr(options, "by", None) or ()),
            "features": tuple(getattr(options, "features", None) or ()),
            "cluster": options.cluster,
            "sample_weight": options.sample_weight,
            "pos_label": options.pos_label,
            "labels": None if options.label is None else tuple(options.label),
            "clip": options.clip,
            "drop_missing": options.drop_missing,
        }
        stated = _stated(options, source.columns)
        if getattr(options, "by_label", False):
            if stated is not None:
                raise FormError("`--by-label` is for labels, and not for forecasts of a number.")
            if getattr(options, "verbalised", False):
                raise FormError("`--verbalised` belongs to one column of `--prob`, without `--by-label`.")
            return cls(source, _label_columns(source, options.command, outcomes, prob, logits, column_options))
        axes: tuple[str, ...] = ()
        if stated is not None and stated.form == "gaussian":
            axes = split_names(source.columns, outcomes)
            axes = axes if len(axes) > 1 else ()
        elif len(outcomes) > 1 and stated is not None:
            raise FormError(
                f"`--x` names {len(outcomes)} columns: intervals, quantiles and draws are forecasts of one number.\n\n"
                "Hint: states have means and `--std`, `--var` or `--cov`; for draws of vectors, `safecal.ensemble`."
            )
        if len(outcomes) > 1 and not axes:
            raise FormError(
                f"`--y` names {len(outcomes)} columns; only one can say what happened.\n\n"
                "Hint: for several labels a row, each with its own `--prob`, add `--by-label`."
            )
        columns = chosen_columns(
            source, options.command, y=outcomes[0] if outcomes else None, prob=prob, logits=logits, outcome=outcome,
            stated=stated, of_numbers=hasattr(options, "draws"), axes=axes, **column_options,
        )  # fmt: skip
        return cls(source, _graded(source, columns) if getattr(options, "verbalised", False) else columns)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, from the first row."""
        self.reader = reader = Reader(self.columns)
        try:
            rows = self.source.rows()
            guess = self.source.guess() if rows is None else None
            with Progress(rows or guess, estimated=rows is None) as progress:
                yield from reader.batches(self._counted(progress))
            if reader.rows == 0:
                raise FileError(f"{self.source.name} has columns and no rows.")
            if reader.rows == reader.dropped:
                raise FileError(f"every row of {self.source.name} has missing values; nothing is left.")
            reader.finish()
        except InputError as error:
            raise about_columns(self._placed(error), self.columns, SHELL) from error

    def _placed(self, error: InputError) -> InputError:
        """Say where a row stands, where its file has a better word for that than its number."""
        complaint = error.complaint
        row = re.fullmatch(r"row (\d+)", complaint.place or "") if complaint is not None else None
        place = self.source.place(int(row[1])) if row is not None else None
        return error if place is None or complaint is None else worded(error, replace(complaint, place=place))

    def whole(self) -> Batch:
        """Return all rows."""
        rows = join_batches(list(self.batches()))
        self.say_left_out()
        return rows

    @property
    def left_out(self) -> tuple[str, ...]:
        """How many rows were left out, for a note beside the result; empty where none was."""
        return left_out(self.source, self.reader)

    def say_left_out(self) -> None:
        """Say on standard error how many rows were left out, where some were."""
        for line in self.left_out:
            print(f"safecal: {line}", file=sys.stderr)

    def _counted(self, progress: Progress) -> Iterator[Rows]:
        for rows in self.source.batches(self.columns.names):
            progress.add(len(next(iter(rows.values()))))
            yield rows


@final
class KeptRows:
    """Batches that pass through; their rows are kept as long as they are few, as are classes and rows times classes."""

    def __init__(self, batches: Callable[[], Iterator[Batch]], most_rows: int) -> None:
        self.batches, self.most_rows = batches, most_rows
        self._parts: list[Batch] = []
        self._few = True

    def __call__(self) -> Iterator[Batch]:
        """Yield the batches, from the first row."""
        self._parts, self._few, n = [], True, 0
        for batch in self.batches():
            n += batch.predictions.n
            classes = batch.predictions.classes or 1
            few = n <= self.most_rows and n * classes <= _MOST_VALUES and classes <= _MOST_CLASSES
            self._few = self._few and few
            if self._few:
                self._parts.append(batch)
            else:
                self._parts.clear()
            yield batch

    def whole(self) -> Batch | None:
        """Return all rows; None where they were too many."""
        return join_batches(self._parts) if self._few else None


def _stated(options: argparse.Namespace, names: Sequence[str]) -> Stated | None:
    """Return how a forecast is stated by the options; None where they state none, or the command has none."""
    if not hasattr(options, "draws"):
        return None
    draws = matching(names, options.draws, "--draws") if options.draws else None
    stated: dict[str, Any] = {name: getattr(options, name) for name in ("lower", "upper", "coverage")}
    for name in ("mean", "std", "var", "cov"):
        columns = split_names(names, named) if (named := getattr(options, name)) else ()
        stated[name] = matching(names, columns, "--cov") if columns and name == "cov" else columns
    try:
        return Stated.of(**stated, quantile=dict(options.quantile or ()), draws=draws)
    except FormError as error:
        hint = (
            "`--mean m --std s`; `--mean a,b --cov aa,ba,bb`; `--lower a --upper b --coverage 0.9`; "
            "`--quantile 0.05=q05 ...`; or `--draws 'd_*'`."
        )
        raise FormError(f"{str(error).replace('`forecast`', 'a forecast')}\n\nHint: {hint}") from None


def file_inputs(files: Sequence[str]) -> dict[str, str | None]:
    """Return the files that a command reads, by the words that name them in messages."""
    return {"file" if k == 0 else f"file {k + 1}": file for k, file in enumerate(files)}


def read_json(path: str, command: str) -> Any:
    """Return what a JSON file holds; ``command`` writes such a file."""
    try:
        return parsed_json(Path(path).read_bytes())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except DocumentError as error:
        raise DocumentError(f"{path} {error.rule}.\n\nHint: write it with `{command}`.") from error


def chosen_columns(
    source: Source,
    command: str,
    *,
    y: str | None = None,
    prob: Sequence[str] | None = None,
    logits: Sequence[str] | None = None,
    outcome: bool = True,
    stated: Stated | None = None,
    of_numbers: bool = False,
    axes: tuple[str, ...] = (),
    **column_options: Unpack[ColumnOptions],
) -> Columns:
    """Return which column is what, by the options, or by name where only one reading is possible."""
    try:
        y_true, prediction = find_columns(
            source.columns, y, prob, logits, outcome=outcome and not axes, stated=stated, of_numbers=of_numbers
        )
    except Unclear as unclear:
        raise _unclear(source, command, y, unclear) from None
    columns = Columns(
        y_true, prediction.values, prediction.form, prediction.spread, levels=prediction.levels, axes=axes,
        **column_options,
    )  # fmt: skip
    try:
        return _existing(source, columns if columns.spread is None else check_states(columns))
    except InputError as error:
        raise about_columns(error, columns, SHELL) from error


def _label_columns(
    source: Source,
    command: str,
    y: Sequence[str],
    prob: Sequence[str] | None,
    logits: Sequence[str] | None,
    column_options: ColumnOptions,
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
    columns = _existing(source, Columns(None, values, form, outcomes=outcomes, **column_options))
    try:
        return check_by_label(columns)
    except InputError as error:
        raise about_columns(error, columns, SHELL) from error


def _labels_line(source: Source, command: str) -> str:
    """Return a command for several labels a row, with the columns that their names pair."""
    outcomes, values, form = label_pairs(source.columns) or (("COLUMN",) * 2, ("COLUMN",) * 2, "y_prob")
    file = "-" if source.once else shlex.quote(source.name)
    option = "--logits" if form == "logits" else "--prob"
    words = (f"--y {shlex.quote(y)} {option} {shlex.quote(v)}" for y, v in zip(outcomes, values, strict=True))
    return f"safecal {command} {file} --by-label {' '.join(words)}"


def _graded(source: Source, columns: Columns) -> Columns:
    """Look at all rows for the steps in which confidences were said."""
    if columns.form != "y_prob" or len(columns.values) > 1 or columns.clip is not None:
        raise FormError("`--verbalised` belongs to one column of `--prob`, without `--clip`.")
    grid = Grid()
    try:
        for rows in source.batches(columns.values):
            values = prediction_values(rows, columns).values
            grid.add(values if values.ndim == 1 else np.array([math.nan]))  # lists are refused where they are read
        return replace(columns, grid=grid, notes=(grid.note,))
    except InputError as error:
        complaint = error.complaint
        if complaint is not None and complaint.argument == "verbalised":
            raise worded(error, replace(complaint, argument="--verbalised")) from error
        raise about_columns(error, columns, SHELL) from error


def _existing(source: Source, columns: Columns) -> Columns:
    """Require that every named column is in the file, and once."""
    if columns.features == ("all",) and "all" not in source.columns:
        used = replace(columns, features=()).names
        unused = tuple(name for name in source.columns if name not in used and name not in source.twice)
        columns = replace(columns, features=unused)
    missing = next((name for name in columns.names if name not in source.columns), None)
    if missing is not None:
        hint = near_names(missing, source.columns, 20)
        raise FormError(f"{source.name} has no column {missing!r}.\n\nHint: {hint}")
    twice = next((name for name in columns.names if name in source.twice), None)
    if twice is not None:
        raise FormError(f"{source.name} has more than one column named {twice!r}.\n\nHint: rename the others.")
    return columns


def _unclear(source: Source, command: str, y_named: str | None, unclear: Unclear) -> FormError:
    candidates, what = unclear.candidates, unclear.what
    text = f"which column of {source.name} is {what}? "
    if what == "each label":
        text = f"which columns of {source.name} are the labels, and which their probabilities? "
    text += f"{', '.join(map(repr, candidates))} could be." if candidates else "None has a name that says so."
    shown = ", ".join(map(show, source.columns[:20]))
    unlisted = len(source.columns) - 20
    y, value, option = y_named or "COLUMN", unclear.value or "COLUMN", unclear.option
    if what != "what happened":
        score = None if candidates else next(filter(is_score, source.columns), None)
        if score is not None:
            text = f"{text[:-1]}: {score!r} may be a probability (`--prob`), or log-odds (`--logits`)."
        value = candidates[0] if candidates else score or class_pattern(source.columns) or value
        names = set(source.columns)
        pair = next((c for c in source.columns if f"{c}_outcome" in names), None)
        if pair is not None:
            value, y = pair, y_named or f"{pair}_outcome"
        else:
            y = y_named or next(filter(is_outcome, source.columns), y)
        option = "--logits" if "logit" in value.lower() else option
    file = "-" if source.once else shlex.quote(source.name)
    words = f"--y {shlex.quote(y)} {option} {shlex.quote(value)}"
    line = f"safecal {command} {file} {words}" if command in _OF_ONE_FILE else f"add `{words}`."
    if what == "each label" or (command == "evaluate" and y_named is None and label_pairs(source.columns)):
        line = _labels_line(source, command)
    listed = shown if unlisted <= 0 else f"{shown} and {unlisted} more"
    return FormError(f"{text} Its columns are {listed}.\n\nHint: {line}")
