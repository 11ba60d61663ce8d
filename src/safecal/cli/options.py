"""Options that commands share: how a value is read and refused, groups of options, and a parser that helps.

Nothing here imports NumPy, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..errors import OptionError, visible

if TYPE_CHECKING:
    from ..options import LimitOptions

__all__ = [
    "LIMITS", "MOST_BINS", "RULES", "RULE_ABOUT", "Formatter", "Parser", "above", "add_answer_options",
    "add_bin_options", "add_column_options", "add_forecast_options", "add_limit_options", "add_output_options",
    "add_question_options", "add_row_options", "between", "distinct_names", "level_and_column", "limit_options",
    "output", "place", "printable_name", "some_text", "store", "whole",
]  # fmt: skip

MOST_BINS = 100_000  # that of `safecal.bins`, which `--help` need not import


def _refused(rule: str, text: str) -> argparse.ArgumentTypeError:
    shown = repr(text) if len(text) <= 60 else f"{text[:57]!r}..."
    return argparse.ArgumentTypeError(f"must be {rule}; got {shown}")


def _number(rule: str, is_allowed: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise _refused(rule, text) from None
        if not is_allowed(value):  # NaN never is
            raise _refused(rule, text)
        return value

    return read


def above(low: float, high: float = 1e6, *, included: bool = False) -> Callable[[str], float]:
    """Read a number above ``low``, or also ``low`` itself, up to ``high``."""
    rule = f"a number {'of' if included else 'above'} {low:g}{' or more' if included else ''}, at most {high:g}"
    return _number(rule, lambda x: (low <= x if included else low < x) and x <= high)


def between(low: float, high: float) -> Callable[[str], float]:
    """Read a number strictly between two others."""
    return _number(f"a number between {low:g} and {high:g}", lambda x: low < x < high and math.isfinite(x))


def whole(low: int, high: int) -> Callable[[str], int]:
    """Read a whole number from ``low`` to ``high``."""
    rule = f"a whole number from {low} to {high}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise _refused(rule, text) from None
        if not low <= value <= high:
            raise _refused(rule, text)
        return value

    return read


def level_and_column(text: str) -> tuple[float, str]:
    """Read the level of a quantile and its column: ``0.05=q05``."""
    level, _, column = text.partition("=")
    rule = "a level between 0 and 1 and a column, such as 0.05=q05"
    if not column:
        raise _refused(rule, text)
    try:
        return between(0, 1)(level), column
    except argparse.ArgumentTypeError:
        raise _refused(rule, text) from None


def some_text(text: str) -> str:
    """Read text that is not empty."""
    if not text.strip():
        raise _refused("some text", text)
    return text


def printable_name(text: str) -> str:
    """Read a name: one line that every store can hold, and every terminal show."""
    if not text.strip() or not text.isprintable() or len(text) > 200:
        raise _refused("a name of 1 to 200 characters that can be printed", text)
    return text


def place(text: str) -> str:
    """Read the name of a file or a folder."""
    if not text.strip():
        raise _refused("the name of a file", text)
    return text


def store(text: str) -> str:
    """Read where a store is: a file, or an address, which is not shown, since it may hold a password."""
    if "://" in text and not text.startswith(("postgresql://", "postgres://")):
        raise argparse.ArgumentTypeError("must be a file, or begin with postgresql://")
    return output(text)


def distinct_names(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts) or len(set(parts)) < len(parts):
        raise _refused("names that differ, separated by commas", text)
    return parts


def output(text: str) -> str:
    """Read the name of a file that is written; ``-`` is none."""
    if text == "-":
        raise argparse.ArgumentTypeError("must be the name of a file; `-` is none, /dev/stdout is")
    return place(text)


class Limit(NamedTuple):
    """An option that is a limit of a verdict: how it is read, and what `--help` says of it."""

    read: Callable[[str], float]
    metavar: str
    default: float
    about: str


LIMITS = {
    "--threshold": Limit(above(0), "X", 0.1, "largest safe ECD, on average and in each group, in nats per dimension"),
    "--max-temperature": Limit(above(0), "T", 1.5, "largest safe temperature"),
    "--max-ratio": Limit(above(0), "X", 3.0, "largest safe ratio of mistakes made to mistakes announced"),
    "--local-threshold": Limit(
        above(0), "X", 0.2, "largest safe ECD in any range of the predictions, in nats per dimension"
    ),
    "--min-share": Limit(between(0, 1), "X", 0.05, "smallest share of the rows that counts as a range"),
    "--level": Limit(between(0, 1), "X", 0.95, "confidence level of the intervals"),
}
RULES = ("everywhere", "average")
RULE_ABOUT = "judge averages, groups and ranges (everywhere, the default), or the averages alone"


def limit_options(options: argparse.Namespace) -> LimitOptions:
    """Return the limits as keyword arguments of a front door."""
    return {
        "threshold": options.threshold,
        "max_temperature": options.max_temperature,
        "max_ratio": options.max_ratio,
        "local_threshold": options.local_threshold,
        "min_share": options.min_share,
        "level": options.level,
        "rule": options.rule,
    }


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add what still counts as safe."""
    group = parser.add_argument_group("limits", "How much over-confidence still counts as safe.")
    for name, limit in LIMITS.items():
        group.add_argument(
            name, type=limit.read, default=limit.default, metavar=limit.metavar,
            help=f"{limit.about} (default {limit.default:g})",
        )  # fmt: skip
    group.add_argument("--rule", choices=RULES, default=RULES[0], help=RULE_ABOUT)


def add_column_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add which column is what; ``several`` where a row can have several labels."""
    group = parser.add_argument_group("columns", "Leave these out if the names of the columns leave no doubt.")
    if several:
        group.add_argument(
            "--y", action="append", metavar="COL", help="column of what happened; with --by-label one for each label"
        )
    else:
        group.add_argument("--y", metavar="COL", help="column of what happened: the outcomes")
    probability = "column of probabilities; for several classes, one --prob for each"
    group.add_argument("--prob", action="append", metavar="COL", help=probability)
    group.add_argument(
        "--logits", action="append", metavar="COL", help="column of log-odds or logits, instead of --prob"
    )
    group.add_argument("--pos-label", metavar="LABEL", help="the outcome that --prob is the probability of")
    group.add_argument("--label", action="append", metavar="LABEL", help="the class of each --prob, in the same order")
    if several:
        pairs = "a row has several labels: the first --prob is for the first --y, and so on; each --y is 0 or 1"
        group.add_argument("--by-label", action="store_true", help=pairs)


def add_forecast_options(parser: argparse.ArgumentParser) -> None:
    """Add the columns of forecasts of a number, and of states."""
    group = parser.add_argument_group(
        "forecasts of a number, and states",
        "Give means, intervals, quantiles or draws, and name what happened with --y or --x.\n"
        "A state has several columns: --x px,py --mean mx,my.",
    )
    group.add_argument("--x", dest="y", action="append", metavar="COL", help="the same as --y")
    group.add_argument("--mean", action="append", metavar="COL", help="column of means, with --std, --var or --cov")
    group.add_argument("--std", action="append", metavar="COL", help="column of standard deviations")
    group.add_argument("--var", action="append", metavar="COL", help="column of variances")
    matrix = (
        "columns of covariances, row by row: the matrix or its lower triangle; 'cov_*' takes them in the file's order"
    )
    group.add_argument("--cov", action="append", metavar="COL", help=matrix)
    group.add_argument("--lower", metavar="COL", help="column of lower ends of intervals, with --upper and --coverage")
    group.add_argument("--upper", metavar="COL", help="column of upper ends of intervals")
    group.add_argument(
        "--coverage",
        type=between(0, 1),
        metavar="X",
        help="share of outcomes that the intervals should hold, such as 0.9",
    )
    group.add_argument(
        "--quantile",
        action="append",
        type=level_and_column,
        metavar="LEVEL=COL",
        help="level and column of a quantile; give two or more",
    )
    draws = "columns of draws; 'draw_*' stands for all whose names begin with draw_"
    group.add_argument("--draws", action="append", metavar="COL", help=draws)


def add_row_options(parser: argparse.ArgumentParser, *, by: bool = True) -> None:
    """Add what is said of rows, and of the file that holds them; ``by`` where groups can be named."""
    group = parser.add_argument_group("rows")
    if by:
        groups = "treat each group in this column separately, too; can be repeated"
        group.add_argument("--by", action="append", metavar="COL", help=groups)
    group.add_argument(
        "--cluster", metavar="COL", help="column of patients, tracks or days, whose rows depend on each other"
    )
    group.add_argument("--sample-weight", metavar="COL", help="column with the weight of each row")
    group.add_argument(
        "--weight", dest="sample_weight", metavar="COL", help=argparse.SUPPRESS
    )  # its name in earlier versions
    group.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values, and say how many"
    )
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group.add_argument("--format", choices=("csv", "tsv", "parquet", "jsonl", "arrow", "npz"),
                       help="format of the file, if its name does not show it")  # fmt: skip
    group.add_argument("--sep", metavar="CHAR", help="character between the fields of a CSV file (default: a comma)")


def add_bin_options(parser: argparse.ArgumentParser) -> None:
    """Add how bins are made."""
    group = parser.add_argument_group("bins", "Bins change ECE. They never change ECD.")
    group.add_argument("--bins", type=whole(1, MOST_BINS), default=10, metavar="N", help="number of bins (default 10)")
    group.add_argument("--bin-on", choices=("probability", "confidence", "entropy"), help="what is cut into bins")
    equal = "bins of equal width (default), or with equally many rows"
    group.add_argument("--strategy", choices=("uniform", "quantile"), default="uniform", help=equal)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add what `safecal evaluate` prints and writes."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    group.add_argument(
        "--report", type=output, metavar="FILE", help="write a report that explains the verdict: one HTML file"
    )
    group.add_argument("--title", metavar="TEXT", help="heading of the report")
    group.add_argument("--plot", type=output, metavar="FILE", help="draw the main pictures: .svg, .png or .pdf")
    group.add_argument(
        "--summary", type=output, metavar="FILE", help="write the verdict as Markdown, for pull requests and CI"
    )
    statuses = "set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED, 5 worse than --baseline"
    group.add_argument("--gate", action="store_true", help=statuses)
    earlier = "output of an earlier `--json`: tell whether the model is worse now"
    group.add_argument("--baseline", type=place, metavar="JSON", help=earlier)


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add what logs of language models, and answers with a confidence, need."""
    group = parser.add_argument_group(
        "logs of language models",
        "For samples_*.jsonl of lm_eval, logs of Inspect, and graded answers. --by takes `task`, or a field.",
    )
    length = "divide the log-likelihood of each choice by its length (default none)"
    group.add_argument("--normalise", choices=("none", "characters", "bytes", "tokens"), default="none", help=length)
    spoken = "--prob is a confidence that was said in round numbers: in steps of 10 %%, 100 %% means 95 %% or more"
    group.add_argument("--verbalised", action="store_true", help=spoken)
    group.add_argument("--tokenizer", metavar="NAME", help="tokenizer of Hugging Face, for --normalise tokens")


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Add what answers of servers need, which show the most likely tokens only."""
    group = parser.add_argument_group(
        "answers of language models' servers",
        "JSON with the most likely tokens. For chat, --y names the field of the right answer.",
    )
    group.add_argument("--vocabulary", type=whole(2, 10**9), metavar="N", help="how many tokens the model knows")
    writer = (
        "who wrote the text: people (given), or the model (generated), whose own text proves nothing and is refused"
    )
    group.add_argument("--text", choices=("given", "generated"), help=writer)


class Parser(argparse.ArgumentParser):
    """A parser that says which word one may have meant."""

    known_options: Sequence[str] = ()  # those of the command that was typed
    command: str | None = None

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.color = False  # of Python 3.14: what is written to a terminal is shown, not obeyed

    def error(self, message: str) -> NoReturn:
        refused = re.fullmatch(r"argument (\S+): (must .*)", message, re.DOTALL)
        if refused is not None:  # a value that is refused is worded as every other
            raise OptionError(f"`{refused[1]}` {refused[2]}.")
        command = f"{self.prog} {self.command}" if self.command else self.prog
        hint = _way_out(message, self.command, self.known_options or tuple(self._option_string_actions), command)
        for pattern, words in _REWORDED.items():
            message = re.sub(pattern, words, message, flags=re.DOTALL)
        self.exit(2, f"safecal: {visible(message)}.\n\nHint: {hint}\n")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of 100 characters a line; examples stay as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)


_REWORDED = {  # what argparse says, and what we say
    r"^unrecognized arguments: (.*)": r"not known here: \1",
    r"^the following arguments are required: (.*)": r"missing: \1",
    r"^argument (\S+): expected (?:one|at least one) argument$": r"`\1` needs a value",
    r"^argument (\S+): invalid choice: (.*?) \(choose from (.*)\)$": r"`\1` must be one of \3; got \2",
}
_FORECASTS = ("--x", "--mean", "--std", "--var", "--cov", "--lower", "--upper", "--coverage", "--quantile", "--draws")
_IN_PYTHON = {
    "watch": "`safecal.monitor.Monitor` watches means with a spread",
    "compare": "`safecal.compare` compares such forecasts",
    "plan": "`safecal.rows_needed` plans for means with a spread",
    "recalibrate": "`safecal.recalibrate` fixes means with a spread",
}


def _way_out(message: str, command: str | None, options: Sequence[str], prog: str) -> str:
    """Return a hint for what the parser does not know."""
    wrong, choices = _mistyped(message, options)
    if wrong in _FORECASTS and wrong not in options and command in _IN_PYTHON:
        return f"`{wrong}` belongs to `safecal evaluate`. In Python {_IN_PYTHON[command]}."
    nearest = get_close_matches(wrong, choices, n=1) if wrong else []
    return f"did you mean `{nearest[0]}`?" if nearest else f"{prog} --help"


def _mistyped(message: str, options: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the word that is not known, and what it could have been."""
    if message.startswith("unrecognized arguments: "):
        wrong = next((word for word in message.split(": ", 1)[1].split() if word.startswith("-")), "")
        return wrong.split("=")[0], options
    choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    return ("", ()) if choice is None else (choice[1], [word.strip("' ") for word in choice[2].split(",")])
