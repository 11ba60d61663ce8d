"""Answers of language models' servers, one by one: how likely each token was, and those that were shown beside it.

Read is the JSON of vLLM (``prompt_logprobs``), of completions with ``echo``, and of chat completions and responses with
``top_logprobs``; and objects whose parts have the same names.
"""

import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from .._checks import fail, show
from .._types import AnyArray, IndexArray
from ..errors import FileError, FormError, InputError, MissingValueError, RangeError
from ..families.bounded import refuse_generated
from .text_files import count_repeats, hash_text, json_documents

__all__ = [
    "AnswerSurvey", "RepeatFinder", "Token", "TokenRow", "check_vocabulary", "first_answer", "first_tokens",
    "given_texts", "plain_fields", "position_groups", "right_token", "unwrap_answer",
]  # fmt: skip

_LONG_TEXT = 8  # tokens of a text that is not the same as another by chance
_POSITION_EDGES = (16, 128, 1024)
_POSITION_GROUPS = ("1 to 15", "16 to 127", "128 to 1023", "1024 and later")
_UNKNOWN = -9999.0  # what servers write for a token of which they do not tell
_ASK = "ask vLLM for `prompt_logprobs`, or the completions API for `echo` and `logprobs`."


class Token(NamedTuple):
    """One token: its log-probability, NaN where the answer does not tell, and those that are shown for its place.

    ``largest`` is the largest number of a token that is shown there, -1 where they have none: a vocabulary has more.
    """

    logprob: float
    shown: list[float]
    largest: int = -1


def unwrap_answer(row: Any) -> Any:
    """Return the answer in a line: the line itself, its ``response``, or the ``body`` of that, as batches have it."""
    inner = part(row, "response")
    body = part(inner, "body")
    return body if body is not None else inner if inner is not None else row


def part(value: Any, name: str) -> Any:
    """Return a part of an object or of a mapping; None where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _shows_given_text(answer: Any) -> bool:
    """Tell whether an answer shows how likely the text was that the model was given."""
    choices = part(answer, "choices")
    first = choices[0] if isinstance(choices, Sequence) and choices else None
    if part(answer, "prompt_logprobs") is not None or part(first, "prompt_logprobs") is not None:
        return True
    values = part(part(first, "logprobs"), "token_logprobs")
    return isinstance(values, Sequence) and bool(values) and values[0] is None


def given_texts(answer: Any, where: str) -> Iterator[list[Token]]:
    """Yield the tokens of each text that the model was given, without the first: nothing comes before it.

    Raises
    ------
    FormError
        For what the model wrote itself, and for what is no such answer; the message names ``where``.
    """
    prompt = part(answer, "prompt_logprobs")
    if prompt is not None:
        yield _prompt(prompt, part(answer, "prompt_token_ids"), where)
        return
    choices = _choices(answer, where)
    for number, choice in enumerate(choices):
        at = where if len(choices) == 1 else f"{where}, choice {number}"
        places = part(choice, "prompt_logprobs")
        if places is None:
            yield _echoed(answer, choice, len(choices) == 1, at)
            continue
        ids = part(choice, "prompt_token_ids")
        yield _prompt(places, part(answer, "prompt_token_ids") if ids is None and len(choices) == 1 else ids, at)


def first_tokens(answer: Any, where: str) -> list[tuple[str, float]]:
    """Return the tokens that are shown for the first place of what a model wrote, and their log-probabilities."""
    shown = _shown_first(answer, where)
    if isinstance(shown, Mapping):
        pairs = list(shown.items())
    elif _is_list(shown):
        pairs = [(part(candidate, "token"), part(candidate, "logprob")) for candidate in shown]
    else:
        pairs = []
    if not pairs or not all(isinstance(token, str) for token, _ in pairs):
        _refuse("must hold the most likely tokens", where, "ask for `logprobs=True, top_logprobs=20`.")
    logprobs = [(token, _logprob(value, where)) for token, value in pairs]
    return [(token, value) for token, value in logprobs if not value <= _UNKNOWN]


def right_token(shown: Sequence[tuple[str, float]], right: str) -> float | None:
    """Return the log-probability of the right answer; None where it is not among the tokens that are shown.

    Spaces around it do not count; of several spellings the likeliest is taken.
    """
    matches = [value for token, value in shown if token.strip() == right.strip()]
    return max(matches) if matches else None


def check_vocabulary(largest: int, vocabulary: int) -> None:
    """Refuse a vocabulary that does not have the tokens that are shown."""
    if largest >= vocabulary:
        rule = "must be the number of all tokens, and more than the number of every token that is shown"
        hint = "it is the length of the tokenizer."
        raise fail(RangeError, "vocabulary", rule, got=f"{vocabulary}, and token {largest}", hint=hint)


def position_groups(positions: IndexArray) -> AnyArray:
    """Return the group of each token by its place in its text, such as "16 to 127"."""
    return np.array(_POSITION_GROUPS)[np.digitize(positions, _POSITION_EDGES)]


def _refuse(rule: str, where: str, hint: str | None = None, error: type[InputError] = FormError) -> NoReturn:
    raise fail(error, "responses", rule, place=where, hint=hint)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _choices(answer: Any, where: str) -> Sequence[Any]:
    choices = part(answer, "choices")
    if not _is_list(choices) or not choices:
        _refuse("must be answers of completions, of chat completions, or of vLLM", where)
    listed: Sequence[Any] = choices
    return listed


def _logprob(value: Any, where: str) -> float:
    """Return a log-probability; NaN where there is none."""
    if value is None:
        return math.nan
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    _refuse(f"must hold log-probabilities that are numbers, not {show(value)}", where)


def _token(logprob: float, shown: list[float], where: str) -> Token:
    if logprob <= _UNKNOWN:
        _refuse(f"must say how likely each token is: {_UNKNOWN:g} stands for what the server does not say", where,
                error=MissingValueError)  # fmt: skip
    return Token(logprob, [value for value in shown if not value <= _UNKNOWN])


def _prompt(places: Any, ids: Any, where: str) -> list[Token]:
    """Read ``prompt_logprobs``: at each place the token that is there, and the most likely ones."""
    if not _is_list(places):
        _refuse("must hold `prompt_logprobs` as a list", where, _ASK)
    if ids is not None and (not _is_list(ids) or len(ids) != len(places)):
        _refuse("must hold as many `prompt_token_ids` as `prompt_logprobs`", where)
    tokens = []
    for number, place in enumerate(places):
        at = f"{where}, token {number}"
        if place is None:
            if number:  # only the first may have none
                tokens.append(Token(math.nan, [math.nan]))
            continue
        if not isinstance(place, Mapping) or not place:
            _refuse("must hold the most likely tokens of each place", at, _ASK)
        own = next(iter(place)) if ids is None else ids[number] if ids[number] in place else str(ids[number])
        if own not in place:
            _refuse("must show each token of the text among its `prompt_logprobs`", at)
        values = {token: _logprob(part(candidate, "logprob"), at) for token, candidate in place.items()}
        if ids is None and any(a < b for a, b in pairwise(list(values.values())[1:])):
            hint = "were its keys sorted? Ask vLLM for `return_token_ids`, or keep its answers as they are."
            _refuse("must show the token of the text first, then the most likely ones in their order", at, hint)
        if len(values) == 1 and part(place[own], "rank") != 1:
            _refuse_alone(at)
        largest = max((int(token) for token in values if re.fullmatch("[0-9]{1,9}", str(token))), default=-1)
        tokens.append(_token(values[own], list(values.values()), at)._replace(largest=largest))
    return tokens


def _refuse_alone(where: str) -> NoReturn:
    _refuse("must show other likely tokens beside those of the text", where, "ask for 20 of the most likely tokens.")


def _echoed(answer: Any, choice: Any, only: bool, where: str) -> list[Token]:
    """Read what the completions API repeats, as far as the text was given."""
    logprobs = part(choice, "logprobs")
    if logprobs is None:
        _refuse("must hold log-probabilities", where, _ASK)
    values, top_lists = part(logprobs, "token_logprobs"), part(logprobs, "top_logprobs")
    if values is None or top_lists is None or (_is_list(values) and values and values[0] is not None):
        refuse_generated("generated")  # chat, or no echo: else the first token has no log-probability
    if not _is_list(values) or not _is_list(top_lists) or len(values) != len(top_lists):
        _refuse("must hold as many `token_logprobs` as `top_logprobs`", where)
    tokens = []
    for number in range(1, _given_count(answer, len(values), only, where)):
        at, shown = f"{where}, token {number}", top_lists[number]
        if shown is not None and (not isinstance(shown, Mapping) or not shown):
            _refuse("must hold the most likely tokens of each place", at, _ASK)
        others = [math.nan] if shown is None else [_logprob(value, at) for value in shown.values()]
        tokens.append(_token(_logprob(values[number], at), others, at))
    if tokens and all(token.shown == [token.logprob] for token in tokens):
        _refuse_alone(where)
    return tokens


def _given_count(answer: Any, size: int, only: bool, where: str) -> int:
    """Return how many of the tokens were given to the model; the others it wrote."""
    usage = part(answer, "usage")
    prompt_tokens, total = part(usage, "prompt_tokens"), part(usage, "total_tokens")
    written = part(usage, "completion_tokens")
    if written == 0 or (written is None and prompt_tokens is not None and prompt_tokens == total):
        return size
    if only and isinstance(prompt_tokens, int) and 0 < prompt_tokens <= size:
        return prompt_tokens
    _refuse("must say how many tokens were given", where, "keep `usage`, and ask with `max_tokens=0`.")


def _shown_first(answer: Any, where: str) -> Any:
    """Return what is shown for the first token that a model wrote."""
    output = part(answer, "output")
    if _is_list(output):  # of the responses API
        messages = [item for item in output if part(item, "type") == "message"]
        content = part(messages[0], "content") if messages else None
        places = part(content[0], "logprobs") if _is_list(content) and content else None
    else:
        logprobs = part(_choices(answer, where)[0], "logprobs")
        places = part(logprobs, "content")
        top_lists = part(logprobs, "top_logprobs")
        if places is None and _is_list(top_lists) and top_lists:  # of the completions API
            return top_lists[0]
    return part(places[0], "top_logprobs") if _is_list(places) and places else None


@final
class RepeatFinder:
    """Tells whether an answer, or a text, was there before; eight bytes are kept of each."""

    def __init__(self) -> None:
        self._answers: array[int] = array("q")
        self._texts: array[int] = array("q")

    def add(self, row: Any, texts: Sequence[Sequence[Token]] = ()) -> None:
        """Add an answer, and the texts in it."""
        name = None
        if isinstance(row, Mapping):
            inner = unwrap_answer(row)
            name = row.get("custom_id") or (inner.get("id") if isinstance(inner, Mapping) else None)
            self._answers.append(hash_text(str(name) if name else json.dumps(row, sort_keys=True, default=str)))
        for text in texts:
            if len(text) >= _LONG_TEXT:
                self._texts.append(hash_text(" ".join(f"{token.logprob!r}" for token in text)))

    def repeats(self) -> tuple[int, int, str] | None:
        """Return how many answers, or texts, are repeats, of how many, and which of the two; None without repeats."""
        for hashes, kind in ((self._answers, "answers"), (self._texts, "texts")):
            repeats = count_repeats(hashes)
            if repeats:
                return repeats, len(hashes), kind
        return None


@final
@dataclass(slots=True)
class AnswerSurvey:
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
class TokenRow:
    """One token, the number of its text, its place in it, the fields of its line, and where that is."""

    token: Token
    text: int
    position: int
    fields: Mapping[str, Any]
    where: str


def first_answer(path: str, name: str) -> tuple[bool, list[str]]:
    """Tell whether the first answer of a file shows the text that was given, and which plain fields its line has."""
    for _, row in json_documents(path, name):
        return _shows_given_text(unwrap_answer(row)), list(plain_fields(row))
    raise FileError(f"{name} has no answers.")


def plain_fields(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line, and the answer in it, say beside the tokens: text and numbers."""
    answer = unwrap_answer(line)
    merged = {**answer, **line} if isinstance(answer, Mapping) else line
    return {key: value for key, value in merged.items() if value is None or isinstance(value, str | int | float)}
