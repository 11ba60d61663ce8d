"""Questions with choices, as logs of language models hold them: the log-likelihood of each choice, and which is right.

Two harnesses write such logs: lm-evaluation-harness (``samples_*.jsonl``) and Inspect (``.eval`` and JSON).
"""

import ast
import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, final

from .._optional import require
from ..errors import FileError
from .text_files import hash_text, json_objects

__all__ = [
    "LETTERS", "NORMALISED", "LengthScale", "Normalise", "Question", "QuestionSurvey", "inspect_questions",
    "lm_eval_questions", "task_of",
]  # fmt: skip

Normalise = Literal["none", "characters", "bytes", "tokens"]
NORMALISED: dict[str, str] = {
    "none": "choices are compared by their log-likelihood as the model gives it",
    "characters": "log-likelihoods are divided by the characters of each choice",
    "bytes": "log-likelihoods are divided by the bytes of each choice",
    "tokens": "log-likelihoods are divided by the tokens of each choice",
}
_SAMPLES = re.compile(r"samples_(.+?)(?:_[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9.:-]+)?$")
_INSPECT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:+-]+_(.+)_[A-Za-z0-9]{22}$")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PASSAGES = ("passage", "article", "context", "paragraph", "story", "document", "support")
_GOLD_METRICS = ("brier_score", "likelihood", "ecd", "temperature")  # logged with the number of the right choice


@final
@dataclass(frozen=True, slots=True)
class Question:
    """One question: its log-likelihoods, the number of the right choice where it is known, and what is known of it."""

    number: str  # tells it from the others of its task
    logits: list[float]
    right: int | None
    doc: Mapping[str, Any]
    by_text: int | None = None  # the right choice by another reading of the log, where there are two
    answer: int | None = None  # what the harness took for the answer of the model
    accurate: bool | None = None  # whether it called that right

    def fits(self, right: int | None) -> bool:
        """Tell whether a reading of the log agrees with what the harness says."""
        if self.accurate is None or right is None or self.answer is None:
            return True
        return (self.answer == right) == self.accurate


@final
@dataclass(slots=True)
class QuestionSurvey:
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
@dataclass(frozen=True, slots=True)
class LengthScale:
    """What log-likelihoods are divided by."""

    normalise: Normalise = "none"
    tokens: Callable[[str], Sequence[Any]] | None = None  # makes tokens of a text

    @classmethod
    def of(cls, normalise: str, tokenizer: Any = None) -> "LengthScale":
        """Check what was asked for; a tokenizer is a function, or the name of one of Hugging Face."""
        if normalise not in NORMALISED:
            raise FileError(f"`normalise` must be one of {', '.join(NORMALISED)}; got {normalise!r}.")
        if normalise != "tokens":
            return cls(normalise)  # type: ignore[arg-type]
        if tokenizer is None:
            hint = "name the tokenizer, as in `--tokenizer gpt2`, or divide by bytes."
            raise FileError(f"`normalise` by tokens needs the tokenizer: a log has no tokens.\n\nHint: {hint}")
        if isinstance(tokenizer, str):
            named = require("transformers", "tokenizers are read with transformers", "huggingface")
            return cls("tokens", named.AutoTokenizer.from_pretrained(tokenizer).tokenize)
        return cls("tokens", tokenizer)

    def length(self, context: str, choice: str) -> int:
        """Return what the log-likelihood of a choice is divided by."""
        if self.normalise == "tokens":
            assert self.tokens is not None
            return len(self.tokens(context + choice)) - len(self.tokens(context))
        text = choice.lstrip()  # what stands between question and answer belongs to neither
        return len(text) if self.normalise == "characters" else len(text.encode())


def task_of(path: str) -> str:
    """Return the name of a task, by the name of its file.

    Examples
    --------
    >>> task_of("results/gpt2/samples_mmlu_anatomy_2026-05-04T10-11-12.345678.jsonl")
    'mmlu_anatomy'
    """
    stem = re.sub(r"\.(jsonl|ndjson|json|eval)(\.\w+)?$", "", Path(path).name)
    match = _SAMPLES.match(stem) or _INSPECT.match(stem)
    return stem if match is None else match[1]


def lm_eval_questions(path: str, name: str, scale: LengthScale) -> Iterator[Question]:
    """Read a file that ``lm_eval --log_samples`` wrote, line by line."""
    for number, row in json_objects(path, name, constants=True):
        yield _lm_eval(row, f"{name}, line {number}", scale)


def _refuse(where: str, what: str, hint: str) -> NoReturn:
    raise FileError(f"{where}: {what}.\n\nHint: {hint}")


def _lm_eval(row: Mapping[str, Any], where: str, scale: LengthScale) -> Question:
    lacking = next((key for key in ("doc_id", "doc", "target", "filtered_resps") if key not in row), None)
    if lacking is not None or not isinstance(row["doc"], Mapping):
        _refuse(where, f"a sample of lm_eval must have `{lacking or 'doc'}`", "was the file cut, or edited?")
    responses = row["filtered_resps"]
    values = _likelihoods(responses, where)
    asked = _arguments(row.get("arguments"))
    half = len(values) // 2
    if (
        len(asked) == len(values) == 2 * half
        and not any(c for c, _ in asked[half:])
        and any(c for c, _ in asked[:half])
    ):
        values, asked = values[:half], asked[:half]  # the others are the choices without the question
    if len(values) < 2:
        _refuse(
            where, "holds the log-likelihood of one text, and of no other choice: what the model expected is not "
            "known, so there is no ECD", "use a task of the type `multiple_choice`.",
        )  # fmt: skip
    accurate = row.get("acc")
    if isinstance(accurate, int | float) and accurate not in (0, 1):
        _refuse(where, f"its `acc` is {accurate}: more than one choice may be right, and a probability needs one",
                "use a variant of the task with one right choice.")  # fmt: skip
    was_right = None if accurate is None else bool(accurate)
    right, by_text = _right(row, values, asked, was_right, where)
    answer = None if any(map(math.isnan, values)) else values.index(max(values))
    if scale.normalise != "none":
        if len(asked) != len(values):
            _refuse(where, "has no `arguments`, so the length of its choices is not known", "use `--normalise none`.")
        values = [x / (scale.length(*request) or 1) for x, request in zip(values, asked, strict=True)]
    return Question(str(row["doc_id"]), values, right, row["doc"], by_text, answer, was_right)


def _likelihoods(responses: Any, where: str) -> list[float]:
    """Return the log-likelihood of each choice, or say why there are none."""
    if not isinstance(responses, list) or not responses:
        _refuse(where, "`filtered_resps` must be a list", "was the file cut, or edited?")
    if all(isinstance(response, list) and len(response) == 2 for response in responses):
        try:
            return [float(response[0]) for response in responses]
        except (TypeError, ValueError):
            _refuse(where, f"a log-likelihood must be a number; got {responses[0][0]!r}", "was the file edited?")
    try:
        float(responses[0] if not isinstance(responses[0], list) else responses[0][0])
    except (TypeError, ValueError, IndexError):
        _refuse(
            where, "holds text that the model wrote, and no probability of other answers, so there is no ECD",
            "take a task of the type `multiple_choice`; or let the model say how sure it is, and pass those numbers "
            "with `--verbalised`.",
        )  # fmt: skip
    _refuse(
        where, "holds one log-likelihood for a whole document (loglikelihood_rolling), and not how much the model "
        "expected to be surprised, so there is no ECD",
        "take a task of the type `multiple_choice`; or the log-probabilities of each token, with the most likely ones.",
    )  # fmt: skip


def _arguments(logged: Any) -> list[tuple[str, str]]:
    """Return question and choice of each request; none where the log does not tell."""
    if isinstance(logged, Mapping):
        logged = [
            [request.get("arg_0"), request.get("arg_1")] for request in logged.values() if isinstance(request, Mapping)
        ]
    if not isinstance(logged, list) or not all(isinstance(request, list) and len(request) > 1 for request in logged):
        return []
    return [(str(request[0]), str(request[1])) for request in logged]


def _right(
    row: Mapping[str, Any], values: list[float], asked: list[tuple[str, str]], accurate: bool | None, where: str
) -> tuple[int | None, int | None]:
    """Return the number of the right choice, and its number by its text, where the two readings differ."""
    target, size = row["target"], len(values)
    for metric in _GOLD_METRICS:
        logged = row.get(metric)
        if isinstance(logged, list) and len(logged) == 2 and isinstance(logged[0], int | str):
            target, asked = logged[0], []
            break
    text = str(target).strip()
    if text.startswith("[") or isinstance(target, list):
        targets = target if isinstance(target, list) else _listed(text)
        if len(targets) != 1:
            _refuse(where, f"has {len(targets)} right choices, and a probability needs one that happens",
                    "use a variant of the task with one right choice.")  # fmt: skip
        text = str(targets[0])
    if asked and len({choice for _, choice in asked}) == 1 and len({question for question, _ in asked}) > 1:
        if accurate is not None and size == 2:  # the choices stand in the question: of two, `acc` tells which is right
            likelier = values.index(max(values))
            return (likelier if accurate else 1 - likelier), None
        _refuse(where, "its choices stand in the question, and the log does not tell which is right",
                "add `brier_score` to the metrics of the task: it logs the number of the right choice.")  # fmt: skip
    number = int(text) if re.fullmatch("[0-9]+", text) and int(text) < size else None
    texts = [choice.strip() for _, choice in asked]
    worded = texts.index(text) if text in texts else None
    if number is None:
        return worded, None
    return number, None if worded == number else worded


def _listed(text: str) -> list[Any]:
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [text]
    return literal if isinstance(literal, list) else [literal]


def inspect_questions(path: str, name: str, scale: LengthScale) -> Iterator[Question]:
    """Read a log of Inspect with its own reader, sample by sample."""
    if scale.normalise != "none":
        raise FileError(f"{name}: answers of Inspect are letters, which are not normalised.\n\nHint: leave it out.")
    log = require("inspect_ai.log", "logs of Inspect are read with inspect_ai", "inspect")
    for sample in log.read_eval_log_samples(path, all_samples_required=False):
        where = f"{name}, sample {sample.id} (epoch {sample.epoch})"
        if sample.error is not None:
            _refuse(
                where, "failed, and questions that fail are not like the others", "run it again: `inspect eval-retry`."
            )
        options = sample.choices or []
        if len(options) < 2:
            _refuse(where, "has no choices, so there is no probability of other answers, and no ECD",
                    "use a task with `multiple_choice`; or pass graded answers with `--verbalised`.")  # fmt: skip
        values, answer = _letters(sample.output, len(options), where)
        target = sample.target if isinstance(sample.target, str) else sample.target[0] if sample.target else ""
        if (not isinstance(sample.target, str) and len(sample.target) > 1) or len(target.strip()) > 1:
            _refuse(where, "has more than one right choice, and a probability needs one that happens",
                    "use a task with one right choice.")  # fmt: skip
        right = LETTERS.find(target.strip()) if target.strip() else -1
        graded = [score.value for score in (sample.scores or {}).values() if score.value in ("C", "I")]
        yield Question(
            f"{sample.id}/{sample.epoch}", values, right if 0 <= right < len(options) else None, dict(sample.metadata),
            None, answer, graded[0] == "C" if graded else None,
        )  # fmt: skip


def _letter(token: str, letters: str) -> int | None:
    """Return the number of the choice that a token names; None where it names none."""
    bare = token.strip(" \n().:*")
    return letters.index(bare) if bare and bare in letters else None


def _letters(output: Any, size: int, where: str) -> tuple[list[float], int]:
    """Return the log-probability of each letter where the answer stands, and the answer; all must be shown."""
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is None:
        _refuse(where, "has no log-probabilities, so there is no ECD",
                "run it with `--logprobs --top-logprobs 20`, or pass graded answers with `--verbalised`.")  # fmt: skip
    letters = LETTERS[:size]
    answers = [token for token in logprobs.content if _letter(token.token, letters) is not None]
    if not answers:
        _refuse(where, "has no token that is the letter of a choice", "ask for the letter alone.")
    values = [-math.inf] * size
    for candidate in answers[-1].top_logprobs or []:
        number = _letter(candidate.token, letters)
        if number is not None:  # with and without a space in front: both are this answer
            logprob, sum_so_far = candidate.logprob, values[number]
            values[number] = math.log(math.exp(sum_so_far) + math.exp(logprob)) if sum_so_far > -math.inf else logprob
    missing = [letter for letter, value in zip(letters, values, strict=True) if value == -math.inf]
    if missing:
        _refuse(where, f"does not show the probability of {', '.join(missing)} (of {', '.join(letters)}), and the "
                "surest answers are those that show fewest, so they cannot be left out",
                "ask for more: `--top-logprobs 20` is the most that OpenAI gives.")  # fmt: skip
    answer = _letter(answers[-1].token, letters)
    assert answer is not None
    return values, answer
