"""Logs of language models as tables, read twice and never held: a row a question, or a row a token of an answer.

The first reading finds the columns, what is widest, and what is wrong; the second makes batches.
"""

import json
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, final

import numpy as np

from .._checks import fail, show, worded
from .._types import AnyArray
from ..errors import FileError, InputError, MissingValueError
from . import Rows
from .columns import Columns
from .questions import (
    LETTERS,
    NORMALISED,
    LengthScale,
    Question,
    QuestionSurvey,
    inspect_questions,
    lm_eval_questions,
    task_of,
)
from .sources import Source, stamp_of
from .text_files import count_repeats, hash_text, in_blocks, json_column, json_documents, log_kind
from .tokens import (
    AnswerSurvey,
    Token,
    TokenRow,
    check_vocabulary,
    first_tokens,
    given_texts,
    plain_fields,
    position_groups,
    right_token,
    unwrap_answer,
)

__all__ = ["AnswerLogs", "SampleLogs"]

_BATCH_ROWS, _BATCH_VALUES = 1 << 12, 1 << 18  # rows, and log-probabilities, of a batch
_OF_QUESTIONS = ("task", "doc_id", "target", "choices", "logits")
_OF_TOKENS = ("logprob", "top_logprobs", "text", "position")
_CLUSTERS = "tokens of one text depend on each other: each text is a cluster."
_READERS: dict[str, Callable[[str, str, LengthScale], Iterator[Question]]] = {
    "lm_eval": lm_eval_questions,
    "inspect": inspect_questions,
}


class _Logs(Source):
    """Files that are read from the first whenever rows are asked for."""

    _rows: int
    _widest: int  # log-probabilities of a row, at most

    def __init__(self, paths: Sequence[str], columns: Sequence[str], name: str | None = None) -> None:
        first = name or paths[0]
        super().__init__(first if len(paths) == 1 else f"{first} and {len(paths) - 1} more", columns, name is not None)

    @abstractmethod
    def _read(self) -> Iterator[Any]:
        """Yield the rows."""

    @abstractmethod
    def _column(self, rows: list[Any], name: str) -> AnyArray:
        """Return one column of some rows."""

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        size = max(1, min(_BATCH_ROWS, _BATCH_VALUES // self._widest))
        wanted = dict.fromkeys(columns)
        for rows in in_blocks(self._read(), size):
            yield {name: self._column(rows, name) for name in wanted}

    def rows(self) -> int | None:
        return self._rows


def _refuse_changed(path: str, name: str, stamp: str) -> None:
    if stamp_of(os.stat(path)) != stamp:
        raise FileError(f"{name} changed while it was read.\n\nHint: wait until the run is done.")


def _side_by_side(rows: Sequence[Sequence[float]], width: int) -> AnyArray:
    """Return rows of different lengths as a matrix; what is not there has a probability of 0."""
    matrix = np.full((len(rows), width), -np.inf)
    for line, row in zip(matrix, rows, strict=True):
        line[: len(row)] = row
    return matrix


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
class SampleLogs(_Logs):
    """Logs of multiple choice, of one run, as one table.

    Its columns are ``task``, ``doc_id``, ``target``, ``choices``, ``logits``, and every field of ``doc``.

    Parameters
    ----------
    paths : sequence of str
        The files: of lm-evaluation-harness (``samples_*.jsonl``) or of Inspect (``.eval``, JSON).
    scale : LengthScale
        What log-likelihoods are divided by.
    """

    has_known_columns = True

    def __init__(self, paths: Sequence[str], scale: LengthScale) -> None:
        self._scale = scale
        self._logs = [self._log(path) for path in paths]
        survey = QuestionSurvey()
        for log in self._logs:
            self._survey(log, survey)
        if not survey.rows:
            raise FileError(f"{self._logs[0].path} has no samples.")
        self._refuse_repeats(survey)
        self._rows, self._widest = survey.rows, survey.most_choices
        self._ragged = survey.fewest_choices < survey.most_choices
        self._several_tasks = len(survey.questions) > 1
        # The field whose text questions share, where some do.
        self._passage = next((name for name, keys in survey.passages.items() if count_repeats(keys)), None)
        shown_as = {name: f"doc.{name}" if name in _OF_QUESTIONS else name for name in survey.fields}
        self._field_of = {shown: name for name, shown in shown_as.items()}
        super().__init__(paths, [*_OF_QUESTIONS, *self._field_of])

    @staticmethod
    def _log(path: str) -> _Log:
        kind = log_kind(path)
        if kind not in _READERS:
            hint = "several files are read together only where all of them are logs of lm_eval or Inspect."
            raise FileError(f"{path} is not a log of questions with choices.\n\nHint: {hint}")
        return _Log(path, str(kind), task_of(path), stamp_of(os.stat(path)))

    def _survey(self, log: _Log, survey: QuestionSurvey) -> None:
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

    def _refuse_repeats(self, survey: QuestionSurvey) -> None:
        for task, numbers in survey.questions.items():
            repeats = count_repeats(numbers)
            if repeats:
                files = [log.path for log in self._logs if log.task == task]
                where = f" in {files[0]}" if len(files) == 1 else f": {files[0]} and {files[1]} hold the same"
                raise FileError(
                    f"{repeats} of {len(numbers)} questions of {task} are there more than once{where}.\n\nHint: name "
                    "the files of one run of one model; with several filters, keep one."
                )

    def chosen(self, columns: Columns) -> Columns:
        """Complete what a person asked for: where outcomes, predictions, groups and clusters are."""
        by = columns.by or (("task",) if self._several_tasks else ())
        cluster = self._passage if columns.cluster is None else columns.cluster
        notes = [f"normalise: {self._scale.normalise}; {NORMALISED[self._scale.normalise]}."]
        if self._passage is not None and cluster == self._passage:
            notes.append(f"questions that share a `{cluster}` are clusters; `doc_id` as cluster would separate them.")
        return replace(
            columns, y_true="target", values=("logits",), form="logits", by=by, cluster=cluster, notes=tuple(notes),
            labels=tuple(LETTERS[: self._widest]) if self._widest <= len(LETTERS) else None,
            choices="choices" if self._ragged else None,
        )  # fmt: skip

    def _read(self) -> Iterator[tuple[_Log, Question]]:
        for log in self._logs:
            for question in _READERS[log.kind](log.path, log.path, self._scale):
                yield log, question
            _refuse_changed(log.path, log.path, log.stamp)

    def _column(self, rows: list[tuple[_Log, Question]], name: str) -> AnyArray:
        if name == "logits":
            return _side_by_side([question.logits for _, question in rows], self._widest)
        if name == "choices":
            return np.array([len(question.logits) for _, question in rows])
        if name == "target":
            right = [q.by_text if log.by_text and q.by_text is not None else q.right for log, q in rows]
            lettered = self._widest <= len(LETTERS)
            return json_column([LETTERS[k] if lettered and k is not None else k for k in right])
        if name == "task":
            return json_column([log.task for log, _ in rows])
        if name == "doc_id":
            return json_column([f"{log.task}/{question.number}" for log, question in rows])
        if name == self._passage:  # texts of any length: their numbers tell them apart
            return np.array([hash_text(str(question.doc.get(name))) for _, question in rows])
        return json_column([_plain(question.doc.get(self._field_of[name])) for _, question in rows])

    def frame(self) -> Any:
        raise FileError("rows of logs are not written.\n\nHint: save the map with `--save`, and apply it yourself.")


def _plain(value: Any) -> Any:
    """Return a value as a key: what is neither text nor a number is written out."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, sort_keys=True, default=str)
    return value


@final
class AnswerLogs(_Logs):
    """Answers of servers, in JSON: one a line, one a file, or a list of them.

    Its columns are ``logprob``, ``top_logprobs``, ``text`` (a number), ``position``, and every plain field of a line.

    Parameters
    ----------
    paths : sequence of str
        The files.
    right : str or None
        The field of each line with the right answer, which is compared with the first token that the model would write.
        None where the text was given: then each of its tokens is a row.
    name : str, optional
        What a single file is called in messages, where it came through a pipe.

    Attributes
    ----------
    fields : tuple of str
        What lines say beside the tokens.
    """

    def __init__(self, paths: Sequence[str], right: str | None, name: str | None = None) -> None:
        self._names = {path: name or path for path in paths}
        self._stamps = {path: stamp_of(os.stat(path)) for path in paths}
        self._right = right
        super().__init__(paths, _OF_TOKENS, name)
        survey = AnswerSurvey()
        for row in self._read(survey):
            survey.rows += 1
            survey.most_shown = max(survey.most_shown, len(row.token.shown))
            survey.texts = row.text + 1
            survey.largest = max(survey.largest, row.token.largest)
        self._refuse(survey)
        self._rows, self._widest = survey.rows, survey.most_shown
        self._n_texts, self._largest = survey.texts, survey.largest
        self.fields = tuple(survey.fields)
        self._field_of = {f"line.{key}" if key in _OF_TOKENS else key: key for key in survey.fields}
        self.columns = (*_OF_TOKENS, *self._field_of)

    def _refuse(self, survey: AnswerSurvey) -> None:
        if survey.unknown:
            text, place = survey.first_unknown
            raise fail(
                MissingValueError, str(self._right), "must be among the tokens shown: else its log-probability is not "
                "known, and leaving such answers out would leave out the worst ones",
                got=show(text), place=place, count=(survey.unknown, survey.answers),
                hint="ask for more `top_logprobs`, and tell the model to answer in these words.",
            )  # fmt: skip
        if not survey.rows:
            raise FileError(f"{self.name} has no text of two tokens or more, and a first token is not scored.")
        repeats = survey.repeat_finder.repeats()
        if repeats is not None:
            raise FileError(
                f"{repeats[0]} of {repeats[1]} {repeats[2]} of {self.name} are there more than once.\n\nHint: name the "
                "files of one run, and ask once for each."
            )

    def _read(self, survey: AnswerSurvey | None = None) -> Iterator[TokenRow]:
        """Yield the tokens of all files; the first reading fills the survey."""
        text = -1
        for path, name in self._names.items():
            for place, line in json_documents(path, name):
                where = f"{name}, {place}" if len(self._names) > 1 else place
                fields = plain_fields(line)
                try:
                    texts = self._texts(line, fields, where, survey)
                except InputError as error:
                    raise self._about_file(error, where) from error
                if survey is not None:
                    survey.answers += 1
                    survey.fields |= dict.fromkeys(fields)
                    survey.repeat_finder.add(line, texts if self._right is None else ())
                for tokens in texts:
                    text += 1
                    for number, token in enumerate(tokens, 1):
                        token_place = where if self._right is not None else f"{where}, token {number}"
                        yield TokenRow(token, text, number, fields, token_place)
            _refuse_changed(path, name, self._stamps[path])

    def _texts(
        self, line: Mapping[str, Any], fields: Mapping[str, Any], where: str, survey: AnswerSurvey | None
    ) -> list[list[Token]]:
        answer = unwrap_answer(line)
        if self._right is None:
            return list(given_texts(answer, where))
        shown = first_tokens(answer, where)
        right = fields.get(self._right)
        if right is None:
            return [[Token(math.nan, [math.nan])]]
        logprob = right_token(shown, str(right))
        if logprob is None:
            if survey is not None:
                survey.first_unknown = survey.first_unknown if survey.unknown else (str(right), where)
                survey.unknown += 1
            return []
        return [[Token(logprob, [value for _, value in shown])]]

    def _about_file(self, error: InputError, where: str) -> InputError:
        complaint = error.complaint
        if complaint is None:
            return error
        if complaint.argument == "text":  # a line with what the model wrote
            return worded(error, replace(complaint, argument="--text", place=where))
        return worded(error, replace(complaint, argument=self.name))

    def chosen(self, columns: Columns, vocabulary: int) -> Columns:
        """Complete what a person asked for: where outcomes, predictions and clusters are."""
        check_vocabulary(self._largest, vocabulary)
        cluster, notes = columns.cluster, columns.notes
        if self._right is None and cluster is None:
            if self._n_texts == 1:
                raise FileError(
                    f"{self.name} holds one text. Its tokens depend on each other, so they say nothing about "
                    "other texts.\n\nHint: score many texts."
                )
            cluster, notes = "text", (*notes, _CLUSTERS)
        return replace(columns, y_true="logprob", values=("top_logprobs",), form="bounded", vocabulary=vocabulary,
                       cluster=cluster, notes=notes)  # fmt: skip

    def _column(self, rows: list[TokenRow], name: str) -> AnyArray:
        if name == "top_logprobs":
            return _side_by_side([row.token.shown for row in rows], self._widest)
        if name == "logprob":
            return np.array([row.token.logprob for row in rows])
        if name == "text":
            return np.array([row.text for row in rows])
        if name == "position":
            return position_groups(np.array([row.position for row in rows]))
        return json_column([row.fields.get(self._field_of[name]) for row in rows])

    def place(self, row: int) -> str | None:
        there = next(islice(self._read(), row, None), None)
        return None if there is None else there.where

    def frame(self) -> Any:
        raise FileError("answers are not written.\n\nHint: no map recalibrates them.")
