"""Files of answers that language models' servers gave, as a table: a row a token, read twice and never held.

The first reading finds what each line has beside the answer, and what is wrong; the second makes batches.
"""

import json
import math
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._checks.message import fail, show, worded
from .._types import AnyArray
from ..errors import FileError, InputError, MissingValueError
from ..files import stamp_of
from .columns import Columns
from .reader import Rows
from .sources import Source
from .text_files import json_column, json_documents, key_of, repeated
from .tokens import Token, first_tokens, given_texts, is_given, right_token, room_for, unwrapped

__all__ = ["AnswerLogs", "Once", "first_answer"]

_ROWS, _VALUES = 1 << 12, 1 << 18  # tokens, and log-probabilities, of a batch
_OWN = ("logprob", "top_logprobs", "text", "position")
_LONG = 8  # tokens of a text that is not the same as another by chance
_POSITIONS = ((16, "1 to 15"), (128, "16 to 127"), (1024, "128 to 1023"), (math.inf, "1024 and later"))
_CLUSTERS = "tokens of one text depend on each other: each text is a cluster."


def first_answer(path: str, name: str) -> tuple[bool, list[str]]:
    """Tell whether the first answer of a file shows the text that was given, and which plain fields its line has."""
    for _, row in json_documents(path, name):
        return is_given(unwrapped(row)), list(_fields(row))
    raise FileError(f"{name} has no answers.")


@final
class Once:
    """Tells whether an answer, or a text, was there before; eight bytes are kept of each."""

    def __init__(self) -> None:
        self._answers: array[int] = array("q")
        self._texts: array[int] = array("q")

    def add(self, row: Any, texts: Sequence[Sequence[Token]] = ()) -> None:
        """Add an answer, and the texts in it."""
        name = None
        if isinstance(row, Mapping):
            inner = unwrapped(row)
            name = row.get("custom_id") or (inner.get("id") if isinstance(inner, Mapping) else None)
            self._answers.append(key_of(str(name) if name else json.dumps(row, sort_keys=True, default=str)))
        for text in texts:
            if len(text) >= _LONG:
                self._texts.append(key_of(" ".join(f"{token.own!r}" for token in text)))

    def complaint(self) -> tuple[int, int, str] | None:
        """Return how many are there more than once, of how many, and what they are; None where none is."""
        for found, what in ((self._answers, "answers"), (self._texts, "texts")):
            twice = repeated(found)
            if twice:
                return twice, len(found), what
        return None


@final
@dataclass(slots=True)
class _Survey:
    """What is found of all files."""

    rows: int = 0
    most: int = 1  # log-probabilities of a row
    answers: int = 0
    texts: int = 0
    largest: int = -1
    fields: dict[str, None] = field(default_factory=dict)
    once: Once = field(default_factory=Once)
    unknown: int = 0  # answers whose right one is not shown
    first_unknown: tuple[str, str] = ("", "")


@final
@dataclass(frozen=True, slots=True)
class _Row:
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
        super().__init__(first if len(paths) == 1 else f"{first} and {len(paths) - 1} more", _OWN, name is not None)
        found = _Survey()
        for row in self._each(found):
            found.rows += 1
            found.most = max(found.most, len(row.token.shown))
            found.texts = row.text + 1
            found.largest = max(found.largest, row.token.largest)
        self._refuse(found)
        self._rows, self._most, self._texts_there = found.rows, found.most, found.texts
        self._largest = found.largest
        self.fields = tuple(found.fields)
        self._field = {f"line.{key}" if key in _OWN else key: key for key in found.fields}
        self.columns = (*_OWN, *self._field)

    def _refuse(self, found: _Survey) -> None:
        if found.unknown:
            text, place = found.first_unknown
            raise fail(
                MissingValueError, str(self._right), "must be among the tokens shown: else its log-probability is not "
                "known, and to leave such answers out would leave the worst ones out",
                got=show(text), place=place, count=(found.unknown, found.answers),
                hint="ask for more `top_logprobs`, and tell the model to answer in these words.",
            )  # fmt: skip
        if not found.rows:
            raise FileError(f"{self.name} has no token after the first of a text.")
        twice = found.once.complaint()
        if twice is not None:
            raise FileError(
                f"{twice[0]} of {twice[1]} {twice[2]} of {self.name} are there more than once.\n\nHint: name the files "
                "of one run, and ask once for each."
            )

    def _each(self, survey: _Survey | None = None) -> Iterator[_Row]:
        """Yield the tokens of all files; the first time, note what is found."""
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
                    survey.once.add(line, texts if self._right is None else ())
                for tokens in texts:
                    text += 1
                    for number, token in enumerate(tokens, 1):
                        at = where if self._right is not None else f"{where}, token {number}"
                        yield _Row(token, text, number, fields, at)
            if stamp_of(os.stat(path)) != self._stamps[path]:
                raise FileError(f"{name} changed while it was read.\n\nHint: wait until the run is done.")

    def _texts(
        self, line: Mapping[str, Any], fields: Mapping[str, Any], where: str, survey: _Survey | None
    ) -> list[list[Token]]:
        answer = unwrapped(line)
        if self._right is None:
            return list(given_texts(answer, where))
        shown = first_tokens(answer, where)
        right = fields.get(self._right)
        if right is None:
            return [[Token(math.nan, [math.nan])]]
        own = right_token(shown, str(right))
        if own is None:
            if survey is not None:
                survey.first_unknown = survey.first_unknown if survey.unknown else (str(right), where)
                survey.unknown += 1
            return []
        return [[Token(own, [value for _, value in shown])]]

    def _about_file(self, error: InputError, where: str) -> InputError:
        complaint = error.complaint
        if complaint is None:
            return error
        if complaint.argument == "text":  # a line with what the model wrote
            return worded(error, replace(complaint, argument="--text", place=where))
        return worded(error, replace(complaint, argument=self.name))

    def chosen(self, columns: Columns, vocabulary: int) -> Columns:
        """Complete what a person asked for: where outcomes, predictions and clusters are."""
        room_for(self._largest, vocabulary)
        cluster, notes = columns.cluster, columns.notes
        if self._right is None and cluster is None:
            if self._texts_there == 1:
                raise FileError(
                    f"{self.name} holds one text, and tokens of one text depend on each other, so that they "
                    "tell nothing of others.\n\nHint: score many texts."
                )
            cluster, notes = "text", (*notes, _CLUSTERS)
        return replace(columns, y_true="logprob", values=("top_logprobs",), form="bounded", vocabulary=vocabulary,
                       cluster=cluster, notes=notes)  # fmt: skip

    def batches(self, columns: Sequence[str]) -> Iterator[Rows]:
        size = max(1, min(_ROWS, _VALUES // self._most))
        wanted = dict.fromkeys(columns)
        held: list[_Row] = []
        for row in self._each():
            held.append(row)
            if len(held) >= size:
                yield {name: self._column(held, name) for name in wanted}
                held = []
        if held:
            yield {name: self._column(held, name) for name in wanted}

    def _column(self, held: list[_Row], name: str) -> AnyArray:
        if name == "top_logprobs":
            found = np.full((len(held), self._most), -np.inf)
            for shown, row in zip(found, held, strict=True):
                shown[: len(row.token.shown)] = row.token.shown
            return found
        if name == "logprob":
            return np.array([row.token.own for row in held])
        if name == "text":
            return np.array([row.text for row in held])
        if name == "position":
            return np.array([next(text for end, text in _POSITIONS if row.position < end) for row in held])
        return json_column([row.fields.get(self._field[name]) for row in held])

    def rows(self) -> int | None:
        return self._rows

    def place(self, row: int) -> str | None:
        for number, one in enumerate(self._each()):
            if number == row:
                return one.where
        return None

    def frame(self) -> Any:
        raise FileError("answers are not written.\n\nHint: no map recalibrates them.")


def _fields(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line, and the answer in it, say beside the tokens: text and numbers."""
    answer = unwrapped(line)
    both = {**answer, **line} if isinstance(answer, Mapping) else line
    return {key: value for key, value in both.items() if value is None or isinstance(value, str | int | float)}
