"""Logs of language models as a table: a row a question, read twice and never held.

The first reading finds the columns, the largest number of choices, and what is wrong; the second makes batches.
"""

import json
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._types import AnyArray
from ..errors import FileError
from ..files import stamp_of
from .columns import Columns
from .questions import NORMALISED, Question, Scale, inspect_questions, lm_eval_questions, task_of
from .reader import Rows
from .sources import Source
from .text_files import json_column, key_of, log_kind, repeated

__all__ = ["SampleLogs"]

_ROWS, _VALUES = 1 << 12, 1 << 18  # questions, and log-likelihoods, of a batch
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PASSAGES = ("passage", "article", "context", "paragraph", "story", "document", "support")
_OWN = ("task", "doc_id", "target", "choices", "logits")
_READERS: dict[str, Callable[[str, str, Scale], Iterator[Question]]] = {
    "lm_eval": lm_eval_questions,
    "inspect": inspect_questions,
}


@final
@dataclass(slots=True)
class _Log:
    """One file, and what the first reading found in it."""

    path: str
    kind: str
    task: str
    stamp: str
    by_text: bool = False  # whether its targets are the texts of choices, where they could also be numbers


@final
@dataclass(slots=True)
class _Survey:
    """What is found of all files."""

    rows: int = 0
    most: int = 0  # choices
    least: int = 1 << 30
    fields: dict[str, None] = field(default_factory=dict)
    questions: dict[str, "array[int]"] = field(default_factory=dict)  # by task, eight bytes for each
    passages: dict[str, "array[int]"] = field(default_factory=dict)

    def add(self, task: str, question: Question) -> None:
        self.rows += 1
        size = len(question.logits)
        self.most, self.least = max(self.most, size), min(self.least, size)
        for name, value in question.doc.items():
            self.fields[name] = None
            if name in _PASSAGES and isinstance(value, str):
                self.passages.setdefault(name, array("q")).append(key_of(value))
        self.questions.setdefault(task, array("q")).append(key_of(question.number))


@final
class SampleLogs(Source):
    """Logs of multiple choice, of one run, as one table.

    Its columns are ``task``, ``doc_id``, ``target``, ``choices``, ``logits``, and every field of ``doc``.

    Parameters
    ----------
    paths : sequence of str
        The files: of lm-evaluation-harness (``samples_*.jsonl``) or of Inspect (``.eval``, JSON).
    scale : Scale
        What log-likelihoods are divided by.

    Attributes
    ----------
    most : int
        The largest number of choices.
    ragged : bool
        Whether questions have different numbers of them.
    passage : str or None
        The field whose text questions share, where some do.
    tasks : tuple of str
        The tasks, in their order.
    """

    def __init__(self, paths: Sequence[str], scale: Scale) -> None:
        self._scale = scale
        self._logs = [self._log(path) for path in paths]
        found = _Survey()
        for log in self._logs:
            self._survey(log, found)
        if not found.rows:
            raise FileError(f"{self._logs[0].path} has no samples.")
        self._refuse_twice(found)
        self.most, self.ragged, self._rows = found.most, found.least < found.most, found.rows
        self.tasks = tuple(found.questions)
        shared = (name for name, keys in found.passages.items() if repeated(keys))
        self.passage = next(shared, None)
        own = {name: f"doc.{name}" if name in _OWN else name for name in found.fields}
        self._field = {shown: name for name, shown in own.items()}
        name = self._logs[0].path if len(paths) == 1 else f"{self._logs[0].path} and {len(paths) - 1} more"
        super().__init__(name, [*_OWN, *self._field], once=False)

    @staticmethod
    def _log(path: str) -> _Log:
        kind = log_kind(path)
        if kind not in _READERS:
            hint = "several files are read together only where all of them are logs of lm_eval or Inspect."
            raise FileError(f"{path} is no log of questions with choices.\n\nHint: {hint}")
        return _Log(path, str(kind), task_of(path), stamp_of(os.stat(path)))

    def _survey(self, log: _Log, found: _Survey) -> None:
        wrong = {"number": "", "text": ""}
        doubtful = False
        for question in _READERS[log.kind](log.path, log.path, self._scale):
            found.add(log.task, question)
            other = question.right if question.by_text is None else question.by_text
            doubtful = doubtful or other != question.right
            for reading, right in (("number", question.right), ("text", other)):
                if not wrong[reading] and not question.fits(right):
                    wrong[reading] = question.number
        if all(wrong.values()):
            raise FileError(
                f"{log.path}, doc_id {wrong['number']}: what the log calls right does not fit its `target`, so "
                "the right choice is not known.\n\nHint: add `brier_score` to the metrics of the task: it logs "
                "the number of the right choice."
            )
        log.by_text = bool(wrong["number"])
        if doubtful and not any(wrong.values()):
            raise FileError(
                f"{log.path}: its targets could be the numbers of choices or their texts, and nothing tells which."
                "\n\nHint: add `brier_score` to the metrics of the task: it logs the number of the right choice."
            )

    def _refuse_twice(self, found: _Survey) -> None:
        for task, numbers in found.questions.items():
            twice = repeated(numbers)
            if twice:
                files = [log.path for log in self._logs if log.task == task]
                where = f" in {files[0]}" if len(files) == 1 else f": {files[0]} and {files[1]} hold the same"
                raise FileError(
                    f"{twice} of {len(numbers)} questions of {task} are there more than once{where}.\n\nHint: name the "
                    "files of one run of one model; with several filters, keep one."
                )

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read the results."""
        said = [f"normalise: {self._scale.normalise}; {NORMALISED[self._scale.normalise]}."]
        if self.passage is not None:
            said.append(f"questions that share a `{self.passage}` are clusters; `doc_id` as cluster would part them.")
        return tuple(said)

    def chosen(self, columns: Columns) -> Columns:
        """Complete what a person asked for: where outcomes, predictions, groups and clusters are."""
        by = columns.by or (("task",) if len(self.tasks) > 1 else ())
        notes = self.notes if columns.cluster in (None, self.passage) else self.notes[:1]
        return replace(
            columns, y_true="target", values=("logits",), form="logits", by=by, notes=notes,
            cluster=self.passage if columns.cluster is None else columns.cluster,
            labels=tuple(_LETTERS[: self.most]) if self.most <= len(_LETTERS) else None,
            choices="choices" if self.ragged else None,
        )  # fmt: skip

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        size = max(1, min(_ROWS, _VALUES // self.most))
        held: list[tuple[_Log, Question]] = []
        for log in self._logs:
            for question in _READERS[log.kind](log.path, log.path, self._scale):
                held.append((log, question))
                if len(held) >= size:
                    yield self._columns(held, columns)
                    held = []
            if stamp_of(os.stat(log.path)) != log.stamp:
                raise FileError(f"{log.path} changed while it was read.\n\nHint: wait until the run is done.")
        if held:
            yield self._columns(held, columns)

    def _columns(self, held: list[tuple[_Log, Question]], wanted: Sequence[str]) -> dict[str, AnyArray]:
        return {name: self._column(held, name) for name in dict.fromkeys(wanted)}

    def _column(self, held: list[tuple[_Log, Question]], name: str) -> AnyArray:
        if name == "logits":
            found = np.full((len(held), self.most), -np.inf)
            for row, (_, question) in zip(found, held, strict=True):
                row[: len(question.logits)] = question.logits
            return found
        if name == "choices":
            return np.array([len(question.logits) for _, question in held])
        if name == "target":
            right = [question.by_text if log.by_text and question.by_text is not None else question.right
                     for log, question in held]  # fmt: skip
            if self.most <= len(_LETTERS):
                return json_column([None if k is None else _LETTERS[k] for k in right])
            return json_column(right)
        if name == "task":
            return json_column([log.task for log, _ in held])
        if name == "doc_id":
            return json_column([f"{log.task}/{question.number}" for log, question in held])
        if name == self.passage:  # texts of any length: their numbers tell them apart
            return np.array([key_of(str(question.doc.get(name))) for _, question in held])
        return json_column([_plain(question.doc.get(self._field[name])) for _, question in held])

    def rows(self) -> int | None:
        return self._rows

    def frame(self) -> Any:
        raise FileError("rows of logs are not written.\n\nHint: save the map with `--save`, and apply it yourself.")


def _plain(value: Any) -> Any:
    """Return a value as a key: what is neither text nor a number is written out."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, sort_keys=True, default=str)
    return value
