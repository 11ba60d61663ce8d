"""Options of commands about language models: logs of questions, answers of servers, and a model that is run."""

import argparse

from .options import output, place, whole

__all__ = ["LM", "add_answer_options", "add_lm_options", "add_question_options"]


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add what logs of language models, and answers with a confidence, need."""
    group = parser.add_argument_group(
        "logs of language models",
        "For samples_*.jsonl of lm_eval, logs of Inspect, and graded answers. --by takes `task`, or a field.",
    )
    group.add_argument(
        "--normalise",
        choices=("none", "characters", "bytes", "tokens"),
        default="none",
        help="divide the log-likelihood of each choice by its length (default none)",
    )
    group.add_argument(
        "--verbalised",
        action="store_true",
        help="--prob was said, in steps: 100 %% is at least the middle to the next step",
    )
    group.add_argument("--tokenizer", metavar="NAME", help="of Hugging Face, for --normalise tokens")


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Add what answers of servers need, which show the most likely tokens only."""
    group = parser.add_argument_group(
        "answers of language models' servers",
        "JSON with the most likely tokens. For chat, --y names the field of the right answer.",
    )
    group.add_argument("--vocabulary", type=whole(2, 10**9), metavar="N", help="how many tokens the model knows")
    group.add_argument(
        "--text",
        choices=("given", "generated"),
        help="whose text it is: written by people, or the model's own, which tells nothing and is refused",
    )


LM = """examples:
  safecal lm ./my-model corpus.jsonl --text given
  safecal lm ./my-model corpus.jsonl --text given --by position --by source --report report.html
  safecal lm ./my-model corpus.jsonl --text given --cache scores --gate

The model reads each text and says how likely each next token is. Texts must be written by people, or held out: a model
is calibrated on its own samples, whatever it does elsewhere. Each text is a cluster."""


def add_lm_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``safecal lm``."""
    parser.add_argument("model", help="a folder that save_pretrained wrote, or a name on the Hugging Face hub")
    parser.add_argument("file", type=place, help="JSON Lines with one text a line, or a text file")
    whose = "whose text it is: written by people, or a model's"
    parser.add_argument("--text", choices=("given", "generated"), required=True, help=whose)
    parser.add_argument("--field", default="text", metavar="NAME", help="the field that holds the text (default text)")
    groups = "position, kind (of token), or a field: judge each group"
    parser.add_argument("--by", action="append", default=[], metavar="NAME", help=groups)
    parser.add_argument("--window", type=whole(2, 10**7), metavar="N", help="tokens that the model sees at once")
    parser.add_argument("--stride", type=whole(1, 10**7), metavar="N", help="how far the window moves (default half)")
    parser.add_argument(
        "--batch-size", type=whole(1, 10**6), default=4, metavar="N", help="windows at a time (default 4)"
    )
    parser.add_argument("--device", metavar="NAME", help="of torch; by default a GPU where there is one")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit on the hub")
    parser.add_argument("--cache", type=place, metavar="FOLDER", help="keep scores there, to go on after a stop")
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    parser.add_argument("--report", type=output, metavar="FILE", help="write a report, with the worst places")
    parser.add_argument("--title", metavar="TEXT", help="heading of the report")
    parser.add_argument("--gate", action="store_true", help="set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED")
