"""Files of answers that language models' servers gave, as a table: a row a token, read twice and never held.

The first reading finds what each line has beside the answer, and what is wrong; the second makes batches.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._checks.message import fail, show, worded
from .._types import AnyArray
from ..errors import FileError, InputError, MissingValueError
from .columns import Columns
from .reader import Rows
from .sources import Source, stamp_of
from .text_files import json_column, json_documents
from .tokens import (
    RepeatFinder,
    Token,
    check_vocabulary,
    first_tokens,
    given_texts,
    position_groups,
    right_token,
    shows_given_text,
    unwrap_answer,
)

__all__ = ["AnswerLogs", "first_answer"]

_BATCH_ROWS, _BATCH_VALUES = 1 << 12, 1 << 18  # tokens, and log-probabilities, of a batch
_OWN_COLUMNS = ("logprob", "top_logprobs", "text", "position")
_CLUSTERS = "tokens of one text depend on each other: each text is a cluster."


def first_answer(path: str, name: str) -> tuple[bool, list[str]]:
    """Tell whether the first answer of a file shows the text that was given, and which plain fields its line has."""
    for _, row in json_documents(path, name):
        return shows_given_text(unwrap_answer(row)), list(_fields(row))
    raise FileError(f"{name} has no answers.")


@final
@dataclass(slots=True)
class _AnswerSurvey:
    """What the first reading learns from all files."""

    rows: int = 0
    most_shown: int = 1  # log-probabilities of a row
    answers: int = 0
    texts: int = 0
    largest: int = -1
    fields: dict[str, None] = field(default_factory=dict)
    repeat_finder: RepeatFinder = field(default_factory=RepeatFinder)
    unknown: int = 0  # answers whose right one is not shown
    first_unknown: tuple[str, str] = ("", "")


@final
@dataclass(frozen=True, slots=True)
class _TokenRow:
    """One token, the number of its text, its place in it, the fields of its line, and where that is."""

    token: Token
    text: int
    position: int
    fields: Mapping[str, Any]
    where: str


@final
class AnswerLogs(Source):
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
        first = name or paths[0]
        super().__init__(
            first if len(paths) == 1 else f"{first} and {len(paths) - 1} more", _OWN_COLUMNS, name is not None
        )
        survey = _AnswerSurvey()
        for row in self._token_rows(survey):
            survey.rows += 1
            survey.most_shown = max(survey.most_shown, len(row.token.shown))
            survey.texts = row.text + 1
            survey.largest = max(survey.largest, row.token.largest)
        self._refuse(survey)
        self._rows, self._most_shown, self._n_texts = survey.rows, survey.most_shown, survey.texts
        self._largest = survey.largest
        self.fields = tuple(survey.fields)
        self._field_of = {f"line.{key}" if key in _OWN_COLUMNS else key: key for key in survey.fields}
        self.columns = (*_OWN_COLUMNS, *self._field_of)

    def _refuse(self, survey: _AnswerSurvey) -> None:
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

    def _token_rows(self, survey: _AnswerSurvey | None = None) -> Iterator[_TokenRow]:
        """Yield the tokens of all files; the first reading fills the survey."""
        text = -1
        for path, name in self._names.items():
            for place, line in json_documents(path, name):
                where = f"{name}, {place}" if len(self._names) > 1 else place
                fields = _fields(line)
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
                        yield _TokenRow(token, text, number, fields, token_place)
            if stamp_of(os.stat(path)) != self._stamps[path]:
                raise FileError(f"{name} changed while it was read.\n\nHint: wait until the run is done.")

    def _texts(
        self, line: Mapping[str, Any], fields: Mapping[str, Any], where: str, survey: _AnswerSurvey | None
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

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        size = max(1, min(_BATCH_ROWS, _BATCH_VALUES // self._most_shown))
        wanted = dict.fromkeys(columns)
        rows: list[_TokenRow] = []
        for row in self._token_rows():
            rows.append(row)
            if len(rows) >= size:
                yield {name: self._column(rows, name) for name in wanted}
                rows = []
        if rows:
            yield {name: self._column(rows, name) for name in wanted}

    def _column(self, rows: list[_TokenRow], name: str) -> AnyArray:
        if name == "top_logprobs":
            logprobs = np.full((len(rows), self._most_shown), -np.inf)
            for shown, row in zip(logprobs, rows, strict=True):
                shown[: len(row.token.shown)] = row.token.shown
            return logprobs
        if name == "logprob":
            return np.array([row.token.logprob for row in rows])
        if name == "text":
            return np.array([row.text for row in rows])
        if name == "position":
            return position_groups(np.array([row.position for row in rows]))
        return json_column([row.fields.get(self._field_of[name]) for row in rows])

    def rows(self) -> int | None:
        return self._rows

    def place(self, row: int) -> str | None:
        for number, token_row in enumerate(self._token_rows()):
            if number == row:
                return token_row.where
        return None

    def frame(self) -> Any:
        raise FileError("answers are not written.\n\nHint: no map recalibrates them.")


def _fields(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line, and the answer in it, say beside the tokens: text and numbers."""
    answer = unwrap_answer(line)
    merged = {**answer, **line} if isinstance(answer, Mapping) else line
    return {key: value for key, value in merged.items() if value is None or isinstance(value, str | int | float)}
