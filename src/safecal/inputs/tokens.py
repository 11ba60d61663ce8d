"""Answers of language models' servers, one by one: how likely each token was, and those that were shown beside it.

Read is the JSON of vLLM (``prompt_logprobs``), of completions with ``echo``, and of chat completions and responses with
``top_logprobs``; and objects whose parts have the same names.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from .._checks.message import fail, show
from ..errors import FormError, InputError, MissingValueError, RangeError
from ..families.bounded import refuse_generated

__all__ = ["Token", "first_tokens", "given_texts", "is_given", "right_token", "room_for", "unwrapped"]

_UNKNOWN = -9999.0  # what servers write for a token of which they do not tell
_ASK = "ask vLLM for `prompt_logprobs`, or the completions API for `echo` and `logprobs`."


class Token(NamedTuple):
    """One token: its log-probability, NaN where the answer does not tell, and those that are shown for its place.

    ``largest`` is the largest number of a token that is shown there, -1 where they have none: a vocabulary has more.
    """

    own: float
    shown: list[float]
    largest: int = -1


def unwrapped(row: Any) -> Any:
    """Return the answer in a line: the line itself, its ``response``, or the ``body`` of that, as batches have it."""
    inner = part(row, "response")
    body = part(inner, "body")
    return body if body is not None else inner if inner is not None else row


def part(value: Any, name: str) -> Any:
    """Return a part of an object or of a mapping; None where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def is_given(answer: Any) -> bool:
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
    whole = part(answer, "prompt_logprobs")
    if whole is not None:
        yield _prompt(whole, part(answer, "prompt_token_ids"), where)
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
        pairs = [(part(one, "token"), part(one, "logprob")) for one in shown]
    else:
        pairs = []
    if not pairs or not all(isinstance(token, str) for token, _ in pairs):
        _refuse("must hold the most likely tokens", where, "ask for `logprobs=True, top_logprobs=20`.")
    found = [(token, _logprob(value, where)) for token, value in pairs]
    return [(token, value) for token, value in found if not value <= _UNKNOWN]


def right_token(shown: Sequence[tuple[str, float]], right: str) -> float | None:
    """Return the log-probability of the right answer; None where it is not among the tokens that are shown.

    Spaces around it do not count; of several spellings the likeliest is taken.
    """
    known = [value for token, value in shown if token.strip() == right.strip()]
    return max(known) if known else None


def room_for(largest: int, vocabulary: int) -> None:
    """Refuse a vocabulary that does not have the tokens that are shown."""
    if largest >= vocabulary:
        rule = "must be the number of all tokens: those that are shown have larger numbers"
        hint = "it is the length of the tokenizer."
        raise fail(RangeError, "vocabulary", rule, got=f"{vocabulary}, and token {largest}", hint=hint)


def _refuse(rule: str, where: str, hint: str | None = None, error: type[InputError] = FormError) -> NoReturn:
    raise fail(error, "responses", rule, place=where, hint=hint)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _choices(answer: Any, where: str) -> Sequence[Any]:
    choices = part(answer, "choices")
    if not _is_list(choices) or not choices:
        _refuse("must be answers of completions, of chat completions, or of vLLM", where)
    found: Sequence[Any] = choices
    return found


def _logprob(value: Any, where: str) -> float:
    """Return a log-probability; NaN where there is none."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(f"must hold log-probabilities that are numbers, not {show(value)}", where)
    try:
        return float(value)
    except OverflowError:
        _refuse(f"must hold log-probabilities that are numbers, not {show(value)}", where)


def _token(own: float, shown: list[float], where: str) -> Token:
    if own <= _UNKNOWN:
        _refuse(f"must tell how likely each token is: {_UNKNOWN:g} stands for what the server does not tell", where,
                error=MissingValueError)  # fmt: skip
    return Token(own, [value for value in shown if not value <= _UNKNOWN])


def _prompt(places: Any, ids: Any, where: str) -> list[Token]:
    """Read ``prompt_logprobs``: at each place the token that is there, and the most likely ones."""
    if not _is_list(places):
        _refuse("must hold `prompt_logprobs` as a list", where, _ASK)
    if ids is not None and (not _is_list(ids) or len(ids) != len(places)):
        _refuse("must hold as many `prompt_token_ids` as `prompt_logprobs`", where)
    found = []
    for number, place in enumerate(places):
        at = f"{where}, token {number}"
        if place is None:
            if number:  # only the first may have none
                found.append(Token(math.nan, [math.nan]))
            continue
        if not isinstance(place, Mapping) or not place:
            _refuse("must hold the most likely tokens of each place", at, _ASK)
        own = next(iter(place)) if ids is None else ids[number] if ids[number] in place else str(ids[number])
        if own not in place:
            _refuse("must show each token that is there among its `prompt_logprobs`", at)
        values = {token: _logprob(part(one, "logprob"), at) for token, one in place.items()}
        if ids is None and any(a < b for a, b in pairwise(list(values.values())[1:])):
            hint = "were its keys sorted? Ask vLLM for `return_token_ids`, or keep its answers as they are."
            _refuse("must show the token that is there first, then the most likely ones in their order", at, hint)
        if len(values) == 1 and part(place[own], "rank") != 1:
            _alone(at)
        largest = max((int(token) for token in values if re.fullmatch("[0-9]{1,9}", str(token))), default=-1)
        found.append(_token(values[own], list(values.values()), at)._replace(largest=largest))
    return found


def _alone(where: str) -> NoReturn:
    _refuse("must show more than the tokens that are there", where, "ask for 20 of the most likely tokens.")


def _echoed(answer: Any, choice: Any, only: bool, where: str) -> list[Token]:
    """Read what the completions API repeats, as far as the text was given."""
    logprobs = part(choice, "logprobs")
    if logprobs is None:
        _refuse("must hold log-probabilities", where, _ASK)
    values, lists = part(logprobs, "token_logprobs"), part(logprobs, "top_logprobs")
    if values is None or lists is None or (_is_list(values) and values and values[0] is not None):
        refuse_generated("generated")  # chat, or no echo: else the first token has no log-probability
    if not _is_list(values) or not _is_list(lists) or len(values) != len(lists):
        _refuse("must hold as many `token_logprobs` as `top_logprobs`", where)
    found = []
    for number in range(1, _given(answer, len(values), only, where)):
        at, shown = f"{where}, token {number}", lists[number]
        if shown is not None and (not isinstance(shown, Mapping) or not shown):
            _refuse("must hold the most likely tokens of each place", at, _ASK)
        others = [math.nan] if shown is None else [_logprob(value, at) for value in shown.values()]
        found.append(_token(_logprob(values[number], at), others, at))
    if found and all(token.shown == [token.own] for token in found):
        _alone(where)
    return found


def _given(answer: Any, size: int, only: bool, where: str) -> int:
    """Return how many of the tokens were given to the model; the others it wrote."""
    usage = part(answer, "usage")
    given, total = part(usage, "prompt_tokens"), part(usage, "total_tokens")
    written = part(usage, "completion_tokens")
    if written == 0 or (written is None and given is not None and given == total):
        return size
    if only and isinstance(given, int) and 0 < given <= size:
        return given
    _refuse("must tell how many tokens were given", where, "keep `usage`, and ask with `max_tokens=0`.")


def _shown_first(answer: Any, where: str) -> Any:
    """Return what is shown for the first token that a model wrote."""
    output = part(answer, "output")
    if _is_list(output):  # of the responses API
        messages = [one for one in output if part(one, "type") == "message"]
        content = part(messages[0], "content") if messages else None
        places = part(content[0], "logprobs") if _is_list(content) and content else None
    else:
        logprobs = part(_choices(answer, where)[0], "logprobs")
        places = part(logprobs, "content")
        lists = part(logprobs, "top_logprobs")
        if places is None and _is_list(lists) and lists:  # of the completions API
            return lists[0]
    return part(places[0], "top_logprobs") if _is_list(places) and places else None
