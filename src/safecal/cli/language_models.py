"""Language models at the command line: ``safecal lm`` runs one; logs and answers of others are opened as files."""

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace

from .._checks import SHELL, in_options, worded
from ..errors import FormError, InputError, visible
from ..families.bounded import refuse_generated
from ..inputs.columns import Columns, about_columns, near_names
from ..inputs.logs import AnswerLogs, SampleLogs
from ..inputs.questions import LengthScale
from ..inputs.sources import must_be_a_file, spooled
from ..inputs.text_files import opened
from ..inputs.tokens import first_answer
from .options import add_limit_options, limit_options, output, place, whole
from .outputs import Progress, check_outputs, command_line, gate_status, say_verdict

__all__ = ["add_options", "open_answers", "open_logs", "run"]

_RIGHT = ("answer", "target", "right", "gold", "label", "correct", "expected", "truth", "y", "y_true")
_FORECASTS = ("mean", "std", "var", "lower", "upper", "coverage", "quantile", "draws")
_OTHERS = ("prob", "logits", "label", "pos_label", "clip", "by_label", "verbalised", *_FORECASTS)

_EXAMPLES = """examples:
  safecal lm ./my-model corpus.jsonl --text given
  safecal lm ./my-model corpus.jsonl --text given --by position --by source --report report.html
  safecal lm ./my-model corpus.jsonl --text given --cache scores --gate

The model reads each text and says how likely each next token is. Texts must be written by people, or held out: a model
is calibrated on its own samples, whatever it does elsewhere. Each text is a cluster."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``safecal lm``."""
    parser.epilog = _EXAMPLES
    parser.add_argument("model", help="a folder that save_pretrained wrote, or a name on the Hugging Face hub")
    parser.add_argument("file", type=place, help="JSON Lines with one text a line, or a text file")
    whose = "who wrote the texts: people (given), or a model (generated), whose texts are refused"
    parser.add_argument("--text", choices=("given", "generated"), required=True, help=whose)
    parser.add_argument("--field", default="text", metavar="NAME", help="the field that holds the text (default text)")
    groups = "judge each group, too, by `position`, by `kind` of token, or by a field; can be repeated"
    parser.add_argument("--by", action="append", default=[], metavar="NAME", help=groups)
    parser.add_argument("--window", type=whole(2, 10**7), metavar="N", help="tokens that the model sees at once")
    parser.add_argument(
        "--stride", type=whole(1, 10**7), metavar="N", help="how far the window moves (default: half of it)"
    )
    parser.add_argument(
        "--batch-size", type=whole(1, 10**6), default=4, metavar="N", help="windows at a time (default 4)"
    )
    parser.add_argument("--device", metavar="NAME", help="device of torch (default: a GPU if there is one)")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit on the hub")
    parser.add_argument(
        "--cache", type=place, metavar="FOLDER", help="keep scores there, so that an interrupted run can go on"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    parser.add_argument(
        "--report", type=output, metavar="FILE", help="write a report with the worst places: one HTML file"
    )
    parser.add_argument("--title", metavar="TEXT", help="heading of the report")
    parser.add_argument("--gate", action="store_true", help="set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED")
    add_limit_options(parser)


def run(options: argparse.Namespace) -> int:
    """Let a language model score texts, and say the verdict."""
    check_outputs(inputs={"file": options.file}, report=options.report)
    must_be_a_file(options.file)
    from ..compat.huggingface import run_language_model

    with Progress(None) as progress:

        def show_progress(done: int, total: int) -> None:
            progress.total = total
            progress.add(done - progress.rows)

        scored = run_language_model(
            options.model, options.file, text=options.text, column=options.field, window=options.window,
            stride=options.stride, batch_size=options.batch_size, revision=options.revision, device=options.device,
            cache=options.cache, progress=show_progress,
        )  # fmt: skip
    evaluation = scored.evaluate(by=options.by, **limit_options(options))
    if options.gate:
        options.decided = gate_status(evaluation.verdict.decision)
    if options.report:
        from ..report import write_report

        write_report(
            evaluation, options.report, title=options.title or "Is this language model over-confident?",
            source=options.file, command=command_line(), texts=scored.marked(),
        )  # fmt: skip
    if options.json:
        print(json.dumps(evaluation.to_dict(), indent=2, allow_nan=False))
        return int(options.decided)
    lines = [in_options(repr(evaluation), recalibrates=False)]
    if scored.resumed:
        lines.append(f"\n{scored.resumed} tokens had been scored by an earlier run.")
    if options.report:
        lines.append(f"report: {visible(options.report)}")
    say_verdict("\n".join(lines))
    return int(options.decided)


def open_logs(
    files: Sequence[str], options: argparse.Namespace, values: Sequence[str] | None
) -> tuple[SampleLogs, Columns]:
    """Open logs of language models, which say themselves what happened and what was predicted."""
    scale = LengthScale.of(getattr(options, "normalise", "none"), getattr(options, "tokenizer", None))
    source = SampleLogs(files, scale)
    needless = {"--y": options.y, "--prob or --logits": values, "--label": options.label}
    needless["--pos-label"] = options.pos_label
    option = next((name for name, value in needless.items() if value is not None), None)
    if option is not None or options.clip is not None:
        raise FormError(f"{source.name} is a log that says what was predicted: leave `{option or '--clip'}` out.")
    wanted = Columns(
        None, (), "logits", by=tuple(getattr(options, "by", None) or ()), cluster=options.cluster,
        features=tuple(getattr(options, "features", None) or ()), sample_weight=options.sample_weight,
        drop_missing=options.drop_missing,
    )  # fmt: skip
    return source, source.chosen(wanted)


def open_answers(files: Sequence[str], options: argparse.Namespace) -> tuple[AnswerLogs, Columns]:
    """Open answers of servers, and return which column is what; ask for what they do not say themselves."""
    if options.command != "evaluate":
        raise FormError(
            f"{files[0]} holds answers of a language model's server, and `safecal {options.command}` takes none.\n\n"
            f"Hint: {_line(files, None, None)}"
        )
    _refuse_generated(options.text)
    needless = next((name for name in _OTHERS if getattr(options, name, None) not in (None, False)), None)
    if needless is not None:
        raise FormError(f"answers say what was predicted: leave `--{needless.replace('_', '-')}` out.")
    if options.features:
        raise FormError(
            "`--features` cannot be searched: of answers, ECD is only known to lie between bounds.\n\n"
            "Hint: name groups with `--by`."
        )
    if options.y is not None and len(options.y) > 1:
        raise FormError(f"`--y` names {len(options.y)} fields; only one can hold the right answer.")
    right_field = options.y[0] if options.y else None
    if "-" in files:
        paths, name = [spooled()], "standard input"
    else:
        paths, name = list(dict.fromkeys(files)), None
    for path in paths:
        must_be_a_file(path)
    _refuse_no_json(paths[0], name or paths[0])
    is_given, fields = first_answer(paths[0], name or paths[0])
    if right_field is None and not is_given:
        raise _written(files, options.vocabulary, fields)
    if options.vocabulary is None or (right_field is None and options.text is None):
        raise _unsaid(files, options, right_field)
    source = AnswerLogs(paths, right_field, name)
    if right_field is not None and right_field not in source.fields:
        raise FormError(
            f"{source.name} has no field {right_field!r}.\n\nHint: {near_names(right_field, source.fields, 20)}"
        )
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
            f"`--vocabulary` and `--text` are for JSON answers of a language model's server; {name} is not one of them."
        )


def _line(files: Sequence[str], vocabulary: int | None, right_field: str | None) -> str:
    """Return the command to type next."""
    shown = [*files[:1], "..."] if len(files) > 3 else list(files)
    words = ["safecal", "evaluate", *shown, "--vocabulary", "SIZE" if vocabulary is None else str(vocabulary)]
    return shlex.join([*words, *(["--text", "given"] if right_field is None else ["--y", right_field])])


def _unsaid(files: Sequence[str], options: argparse.Namespace, right_field: str | None) -> FormError:
    questions = []
    if options.vocabulary is None:
        questions.append("how many tokens the model knows (`--vocabulary`: the length of its tokenizer)")
    if right_field is None and options.text is None:
        questions.append("whose text it is (`--text given`: people wrote it, and the model did not)")
    text = f"{files[0]} shows the most likely tokens of a language model. Say {', and '.join(questions)}."
    return FormError(f"{text}\n\nHint: {_line(files, options.vocabulary, right_field)}")


def _written(files: Sequence[str], vocabulary: int | None, fields: Sequence[str]) -> FormError:
    field = next((name for name in _RIGHT if name in fields), None)
    line = _line(files, vocabulary, field or "answer")
    how = "name the field of the right answer" if field else "put the right answer into each line, and name its field"
    return FormError(
        f"{files[0]} holds what the model wrote. A model is calibrated on its own samples by construction, whatever it "
        "says of the world. So a verdict on them means nothing, unless the right answers are known.\n\n"
        f"Hint: {how}: {line}"
    )
