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
from .columns import Columns
from .questions import LETTERS, NORMALISED, LengthScale, Question, inspect_questions, lm_eval_questions, task_of
from .reader import Rows
from .sources import Source, stamp_of
from .text_files import count_repeats, hash_text, json_column, log_kind

__all__ = ["SampleLogs"]

_BATCH_ROWS, _BATCH_VALUES = 1 << 12, 1 << 18  # questions, and log-likelihoods, of a batch
_PASSAGES = ("passage", "article", "context", "paragraph", "story", "document", "support")
_OWN_COLUMNS = ("task", "doc_id", "target", "choices", "logits")
_READERS: dict[str, Callable[[str, str, LengthScale], Iterator[Question]]] = {
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
class _QuestionSurvey:
    """What the first reading learns from all files."""

    rows: int = 0
    most_choices: int = 0
    fewest_choices: int = 1 << 30
    fields: dict[str, None] = field(default_factory=dict)
    questions: dict[str, "array[int]"] = field(default_factory=dict)  # by task, eight bytes for each
    passages: dict[str, "array[int]"] = field(default_factory=dict)

    def add(self, task: str, question: Question) -> None:
        self.rows += 1
        size = len(question.logits)
        self.most_choices, self.fewest_choices = max(self.most_choices, size), min(self.fewest_choices, size)
        for name, value in question.doc.items():
            self.fields[name] = None
            if name in _PASSAGES and isinstance(value, str):
                self.passages.setdefault(name, array("q")).append(hash_text(value))
        self.questions.setdefault(task, array("q")).append(hash_text(question.number))


@final
class SampleLogs(Source):
    """Logs of multiple choice, of one run, as one table.

    Its columns are ``task``, ``doc_id``, ``target``, ``choices``, ``logits``, and every field of ``doc``.

    Parameters
    ----------
    paths : sequence of str
        The files: of lm-evaluation-harness (``samples_*.jsonl``) or of Inspect (``.eval``, JSON).
    scale : LengthScale
        What log-likelihoods are divided by.

    Attributes
    ----------
    most_choices : int
        The largest number of choices.
    ragged : bool
        Whether questions have different numbers of them.
    passage : str or None
        The field whose text questions share, where some do.
    tasks : tuple of str
        The tasks, in their order.
    """

    has_known_columns = True

    def __init__(self, paths: Sequence[str], scale: LengthScale) -> None:
        self._scale = scale
        self._logs = [self._log(path) for path in paths]
        survey = _QuestionSurvey()
        for log in self._logs:
            self._survey(log, survey)
        if not survey.rows:
            raise FileError(f"{self._logs[0].path} has no samples.")
        self._refuse_repeats(survey)
        self._rows, self.most_choices = survey.rows, survey.most_choices
        self.ragged = survey.fewest_choices < survey.most_choices
        self.tasks = tuple(survey.questions)
        shared = (name for name, keys in survey.passages.items() if count_repeats(keys))
        self.passage = next(shared, None)
        shown_as = {name: f"doc.{name}" if name in _OWN_COLUMNS else name for name in survey.fields}
        self._field_of = {shown: name for name, shown in shown_as.items()}
        name = self._logs[0].path if len(paths) == 1 else f"{self._logs[0].path} and {len(paths) - 1} more"
        super().__init__(name, [*_OWN_COLUMNS, *self._field_of], once=False)

    @staticmethod
    def _log(path: str) -> _Log:
        kind = log_kind(path)
        if kind not in _READERS:
            hint = "several files are read together only where all of them are logs of lm_eval or Inspect."
            raise FileError(f"{path} is no log of questions with choices.\n\nHint: {hint}")
        return _Log(path, str(kind), task_of(path), stamp_of(os.stat(path)))

    def _survey(self, log: _Log, survey: _QuestionSurvey) -> None:
        misfits = {"number": "", "text": ""}
        doubtful = False
        for question in _READERS[log.kind](log.path, log.path, self._scale):
            survey.add(log.task, question)
            by_text = question.right if question.by_text is None else question.by_text
            doubtful = doubtful or by_text != question.right
            for reading, right in (("number", question.right), ("text", by_text)):
                if not misfits[reading] and not question.fits(right):
                    misfits[reading] = question.number
        if all(misfits.values()):
            raise FileError(
                f"{log.path}, doc_id {misfits['number']}: what the log calls right does not fit its `target`, so "
                "the right choice is not known.\n\nHint: add `brier_score` to the metrics of the task: it logs "
                "the number of the right choice."
            )
        log.by_text = bool(misfits["number"])
        if doubtful and not any(misfits.values()):
            raise FileError(
                f"{log.path}: its targets could be the numbers of choices or their texts, and nothing tells which."
                "\n\nHint: add `brier_score` to the metrics of the task: it logs the number of the right choice."
            )

    def _refuse_repeats(self, survey: _QuestionSurvey) -> None:
        for task, numbers in survey.questions.items():
            repeats = count_repeats(numbers)
            if repeats:
                files = [log.path for log in self._logs if log.task == task]
                where = f" in {files[0]}" if len(files) == 1 else f": {files[0]} and {files[1]} hold the same"
                raise FileError(
                    f"{repeats} of {len(numbers)} questions of {task} are there more than once{where}.\n\nHint: name "
                    "the files of one run of one model; with several filters, keep one."
                )

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read the results."""
        notes = [f"normalise: {self._scale.normalise}; {NORMALISED[self._scale.normalise]}."]
        if self.passage is not None:
            notes.append(
                f"questions that share a `{self.passage}` are clusters; `doc_id` as cluster would separate them."
            )
        return tuple(notes)

    def chosen(self, columns: Columns) -> Columns:
        """Complete what a person asked for: where outcomes, predictions, groups and clusters are."""
        by = columns.by or (("task",) if len(self.tasks) > 1 else ())
        notes = self.notes if columns.cluster in (None, self.passage) else self.notes[:1]
        return replace(
            columns, y_true="target", values=("logits",), form="logits", by=by, notes=notes,
            cluster=self.passage if columns.cluster is None else columns.cluster,
            labels=tuple(LETTERS[: self.most_choices]) if self.most_choices <= len(LETTERS) else None,
            choices="choices" if self.ragged else None,
        )  # fmt: skip

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        size = max(1, min(_BATCH_ROWS, _BATCH_VALUES // self.most_choices))
        asked: list[tuple[_Log, Question]] = []
        for log in self._logs:
            for question in _READERS[log.kind](log.path, log.path, self._scale):
                asked.append((log, question))
                if len(asked) >= size:
                    yield self._columns(asked, columns)
                    asked = []
            if stamp_of(os.stat(log.path)) != log.stamp:
                raise FileError(f"{log.path} changed while it was read.\n\nHint: wait until the run is done.")
        if asked:
            yield self._columns(asked, columns)

    def _columns(self, asked: list[tuple[_Log, Question]], wanted: Sequence[str]) -> dict[str, AnyArray]:
        return {name: self._column(asked, name) for name in dict.fromkeys(wanted)}

    def _column(self, asked: list[tuple[_Log, Question]], name: str) -> AnyArray:
        if name == "logits":
            logits = np.full((len(asked), self.most_choices), -np.inf)
            for row, (_, question) in zip(logits, asked, strict=True):
                row[: len(question.logits)] = question.logits
            return logits
        if name == "choices":
            return np.array([len(question.logits) for _, question in asked])
        if name == "target":
            right = [question.by_text if log.by_text and question.by_text is not None else question.right
                     for log, question in asked]  # fmt: skip
            if self.most_choices <= len(LETTERS):
                return json_column([None if k is None else LETTERS[k] for k in right])
            return json_column(right)
        if name == "task":
            return json_column([log.task for log, _ in asked])
        if name == "doc_id":
            return json_column([f"{log.task}/{question.number}" for log, question in asked])
        if name == self.passage:  # texts of any length: their numbers tell them apart
            return np.array([hash_text(str(question.doc.get(name))) for _, question in asked])
        return json_column([_plain(question.doc.get(self._field_of[name])) for _, question in asked])

    def rows(self) -> int | None:
        return self._rows

    def frame(self) -> Any:
        raise FileError("rows of logs are not written.\n\nHint: save the map with `--save`, and apply it yourself.")


def _plain(value: Any) -> Any:
    """Return a value as a key: what is neither text nor a number is written out."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, sort_keys=True, default=str)
    return value
