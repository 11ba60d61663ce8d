"""Files of answers of language models' servers: what must be said of them, and what to type where it is not."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace

from .._checks.message import SHELL, worded
from ..errors import FormError, InputError
from ..families.bounded import refuse_generated
from ..inputs.answers import AnswerLogs, first_answer
from ..inputs.columns import Columns, about_columns, near_names
from ..inputs.sources import must_be_a_file, spooled
from ..inputs.text_files import opened

__all__ = ["asks_for_answers", "open_answers"]

_RIGHT = ("answer", "target", "right", "gold", "label", "correct", "expected", "truth", "y", "y_true")
_FORECASTS = ("mean", "std", "var", "lower", "upper", "coverage", "quantile", "draws")
_OTHERS = ("prob", "logits", "label", "pos_label", "clip", "by_label", "verbalised", *_FORECASTS)


def asks_for_answers(options: argparse.Namespace) -> bool:
    """Tell whether an option was given that only answers of servers have."""
    return getattr(options, "vocabulary", None) is not None or getattr(options, "text", None) is not None


def open_answers(files: Sequence[str], options: argparse.Namespace) -> tuple[AnswerLogs, Columns]:
    """Open answers of servers, and return which column is what; ask for what they do not say themselves."""
    if options.command != "evaluate":
        raise FormError(
            f"{files[0]} holds answers of a language model's server, and `safecal {options.command}` takes none.\n\n"
            f"Hint: {_line(files, None, None)}"
        )
    _refuse_generated(options.text)
    named = next((name for name in _OTHERS if getattr(options, name, None) not in (None, False)), None)
    if named is not None:
        raise FormError(f"answers say what was predicted: leave `--{named.replace('_', '-')}` out.")
    if options.features:
        raise FormError(
            "`--features` cannot be searched where ECD is known between bounds only.\n\nHint: name groups with `--by`."
        )
    if options.y is not None and len(options.y) > 1:
        raise FormError(f"`--y` names {len(options.y)} fields, and one holds the right answer.")
    right = options.y[0] if options.y else None
    if "-" in files:
        paths, name = [spooled()], "standard input"
    else:
        paths, name = list(dict.fromkeys(files)), None
    for path in paths:
        must_be_a_file(path)
    _refuse_no_json(paths[0], name or paths[0])
    given, fields = first_answer(paths[0], name or paths[0])
    if right is None and not given:
        raise _written(files, options.vocabulary, fields)
    if options.vocabulary is None or (right is None and options.text is None):
        raise _unsaid(files, options, right)
    source = AnswerLogs(paths, right, name)
    if right is not None and right not in source.fields:
        raise FormError(f"{source.name} has no field {right!r}.\n\nHint: {near_names(right, source.fields, 20)}")
    wanted = Columns(
        None, (), "bounded", by=tuple(options.by or ()), cluster=options.cluster, sample_weight=options.sample_weight,
        drop_missing=options.drop_missing,
    )  # fmt: skip
    try:
        return source, source.chosen(wanted, options.vocabulary)
    except InputError as error:
        raise about_columns(error, wanted, SHELL) from None


def _refuse_generated(text: str | None) -> None:
    try:
        refuse_generated(text or "given")
    except FormError as error:
        complaint = error.complaint
        raise (error if complaint is None else worded(error, replace(complaint, argument="--text"))) from None


def _refuse_no_json(path: str, name: str) -> None:
    try:
        with opened(path, name) as file:
            start = next((line for line in file if line.strip()), "")
    except UnicodeDecodeError:
        start = ""
    if not start.lstrip().startswith(("{", "[")):
        raise FormError(
            f"`--vocabulary` and `--text` are for what a language model's server answered, in JSON; {name} is not."
        )


def _line(files: Sequence[str], vocabulary: int | None, right: str | None) -> str:
    """Return the command to type next."""
    shown = [*files[:1], "..."] if len(files) > 3 else list(files)
    words = ["safecal", "evaluate", *shown, "--vocabulary", "SIZE" if vocabulary is None else str(vocabulary)]
    return shlex.join([*words, *(["--text", "given"] if right is None else ["--y", right])])


def _unsaid(files: Sequence[str], options: argparse.Namespace, right: str | None) -> FormError:
    asked = []
    if options.vocabulary is None:
        asked.append("how many tokens the model knows (`--vocabulary`: the length of its tokenizer)")
    if right is None and options.text is None:
        asked.append("whose text it is (`--text given`: people wrote it, and the model did not)")
    text = f"{files[0]} shows the most likely tokens of a language model. Say {', and '.join(asked)}."
    return FormError(f"{text}\n\nHint: {_line(files, options.vocabulary, right)}")


def _written(files: Sequence[str], vocabulary: int | None, fields: Sequence[str]) -> FormError:
    found = next((name for name in _RIGHT if name in fields), None)
    line = _line(files, vocabulary, found or "answer")
    how = "name the field of the right answer" if found else "put the right answer into each line, and name its field"
    return FormError(
        f"{files[0]} holds what the model wrote. A model is calibrated on its own samples by construction, whatever it "
        "says of the world. So no verdict on them would mean anything; but the right answers, where they are known, "
        f"tell.\n\nHint: {how}: {line}"
    )
