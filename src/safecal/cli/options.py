"""The options of commands about files of rows, what other commands share, and how a value is read and refused.

Nothing here imports NumPy, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from ..options import LimitOptions

__all__ = [
    "LIMITS", "MOST_BINS", "RULES", "RULE_ABOUT", "Formatter", "above", "add_column_options", "add_compare", "add_demo",
    "add_evaluate", "add_limit_options", "add_plan", "add_recalibrate", "attribute", "between", "limit_options",
    "output", "place", "refused", "whole",
]  # fmt: skip

N = TypeVar("N", int, float)

MOST_BINS = 100_000  # that of `safecal.bins`, which `--help` need not import


def refused(rule: str, text: str) -> argparse.ArgumentTypeError:
    """Return the error of a value that does not follow a rule."""
    shown = repr(text) if len(text) <= 60 else f"{text[:57]!r}..."
    return argparse.ArgumentTypeError(f"must be {rule}; got {shown}")


def _number(rule: str, is_allowed: Callable[[float], bool], kind: type[N]) -> Callable[[str], N]:
    def read(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            raise refused(rule, text) from None
        if not is_allowed(value):  # NaN never is
            raise refused(rule, text)
        return value

    return read


def above(low: float, high: float = 1e6, *, included: bool = False) -> Callable[[str], float]:
    """Read a number above ``low``, or also ``low`` itself, up to ``high``."""
    rule = f"a number {'of' if included else 'above'} {low:g}{' or more' if included else ''}, at most {high:g}"
    return _number(rule, lambda x: (low <= x if included else low < x) and x <= high, float)


def between(low: float, high: float) -> Callable[[str], float]:
    """Read a number strictly between two others."""
    return _number(f"a number between {low:g} and {high:g}", lambda x: low < x < high, float)


def whole(low: int, high: int) -> Callable[[str], int]:
    """Read a whole number from ``low`` to ``high``."""
    return _number(f"a whole number from {low} to {high}", lambda x: low <= x <= high, int)


def _level_and_column(text: str) -> tuple[float, str]:
    """Read the level of a quantile and its column: ``0.05=q05``."""
    level, _, column = text.partition("=")
    rule = "a level between 0 and 1 and a column, such as 0.05=q05"
    if not column:
        raise refused(rule, text)
    try:
        return between(0, 1)(level), column
    except argparse.ArgumentTypeError:
        raise refused(rule, text) from None


def place(text: str) -> str:
    """Read the name of a file or a folder."""
    if not text.strip():
        raise refused("the name of a file", text)
    return text


def _distinct_names(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts) or len(set(parts)) < len(parts):
        raise refused("names that differ, separated by commas", text)
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


def attribute(option: str) -> str:
    """Return the name that the value of an option has."""
    return option.removeprefix("--").replace("-", "_")


def limit_options(options: argparse.Namespace) -> LimitOptions:
    """Return the limits as keyword arguments of a front door."""
    limits = {name: getattr(options, name) for name in (*map(attribute, LIMITS), "rule")}
    return cast("LimitOptions", limits)


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add what still counts as safe."""
    group = parser.add_argument_group("limits", "How much over-confidence still counts as safe.")
    for name, limit in LIMITS.items():
        about = f"{limit.about} (default {limit.default:g})"
        group.add_argument(name, type=limit.read, default=limit.default, metavar=limit.metavar, help=about)
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
    probability = "column of probabilities; for several classes, one --prob for each, or a pattern such as 'p_*'"
    group.add_argument("--prob", action="append", metavar="COL", help=probability)
    group.add_argument(
        "--logits", action="append", metavar="COL", help="column of log-odds or logits, instead of --prob"
    )
    group.add_argument("--pos-label", metavar="LABEL", help="the outcome that --prob is the probability of")
    group.add_argument("--label", action="append", metavar="LABEL", help="the class of each --prob, in the same order")
    if several:
        pairs = "a row has several labels: the first --prob is for the first --y, and so on; each --y is 0 or 1"
        group.add_argument("--by-label", action="store_true", help=pairs)


def _add_forecast_options(parser: argparse.ArgumentParser) -> None:
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
    coverage = "share of outcomes that the intervals should hold, such as 0.9"
    group.add_argument("--coverage", type=between(0, 1), metavar="X", help=coverage)
    quantile = "level and column of a quantile; give two or more"
    group.add_argument("--quantile", action="append", type=_level_and_column, metavar="LEVEL=COL", help=quantile)
    draws = "columns of draws; 'draw_*' stands for all whose names begin with draw_"
    group.add_argument("--draws", action="append", metavar="COL", help=draws)


def _add_row_options(parser: argparse.ArgumentParser, *, by: bool = True) -> None:
    """Add what is said of rows, and of the file that holds them; ``by`` where groups can be named."""
    group = parser.add_argument_group("rows")
    if by:
        groups = "treat each group in this column separately, too; can be repeated"
        group.add_argument("--by", action="append", metavar="COL", help=groups)
    group.add_argument(
        "--cluster", metavar="COL", help="column of patients, tracks or days, whose rows depend on each other"
    )
    group.add_argument("--sample-weight", metavar="COL", help="column with the weight of each row")
    earlier_name = "--weight"
    group.add_argument(earlier_name, dest="sample_weight", metavar="COL", help=argparse.SUPPRESS)
    group.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values, and say how many"
    )
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group.add_argument("--format", choices=("csv", "tsv", "parquet", "jsonl", "arrow", "npz"),
                       help="format of the file, if its name does not show it")  # fmt: skip
    group.add_argument("--sep", metavar="CHAR", help="character between the fields of a CSV file (default: a comma)")


def _add_bin_options(parser: argparse.ArgumentParser) -> None:
    """Add how bins are made."""
    group = parser.add_argument_group("bins", "Bins change ECE. They never change ECD.")
    group.add_argument("--bins", type=whole(1, MOST_BINS), default=10, metavar="N", help="number of bins (default 10)")
    group.add_argument("--bin-on", choices=("probability", "confidence", "entropy"), help="what is cut into bins")
    equal = "bins of equal width (default), or with equally many rows"
    group.add_argument("--strategy", choices=("uniform", "quantile"), default="uniform", help=equal)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
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
    earlier = "output of an earlier `--json`: say whether the model is worse now"
    group.add_argument("--baseline", type=place, metavar="JSON", help=earlier)


def _add_question_options(parser: argparse.ArgumentParser) -> None:
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


def _add_answer_options(parser: argparse.ArgumentParser) -> None:
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


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of 100 characters a line, fewer in a narrow terminal; examples stay as they are written."""

    def __init__(self, prog: str) -> None:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
        super().__init__(prog, max_help_position=26, width=min(100, max(columns - 1, 50)))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled: list[str] = []
        for kept, group in groupby(text.splitlines(), lambda line: line[:1] in ("", " ")):
            lines = list(group)
            filled += lines if kept or max(map(len, lines)) <= width else wrap(" ".join(lines), width)
        return "".join(f"{indent}{line}\n" for line in filled)


_EVALUATE = """examples:
  safecal evaluate predictions.csv --y label --prob score
  safecal evaluate cells.csv --y Class --prob .pred_poor --pos-label poor
  safecal evaluate cells.csv --y Class --prob .pred_poor --prob .pred_good
  safecal evaluate cifar.npz --y ground_truth --prob predictions --bins 15
  safecal evaluate patients.parquet --y died --logits score --by hospital --by sex --cluster patient
  safecal evaluate patients.parquet --y died --prob p --features age,site,device
  safecal evaluate days.csv --by-label --y rain --prob p_rain --y fog --prob p_fog
  safecal evaluate regression.csv --x truth --mean prediction --std error
  safecal evaluate track.csv --x px,py --mean mx,my --cov xx,yx,yy --cluster run
  safecal evaluate forecasts.csv --y sales --lower low --upper high --coverage 0.9
  safecal evaluate forecasts.csv --y sales --quantile 0.05=q05 --quantile 0.5=q50 --quantile 0.95=q95
  safecal evaluate ensemble.parquet --y rain --draws 'member_*' --by horizon
  safecal evaluate samples_*.jsonl --by subject
  safecal evaluate answers.jsonl --vocabulary 32000 --text given
  zcat log.csv.gz | safecal evaluate - --y clicked --prob p --json > evaluation.json

A file is read once, a large one with --features twice, and all results come from sums over all of its rows. Up to
--max-rows rows are kept in memory as well. In larger files, memory grows only with the number of groups and clusters,
up to a million. The output names the methods that were used."""

_COMPARE = """examples:
  safecal compare new.csv old.csv --y label --prob score
  safecal compare models.csv models.csv --y label --prob new_score --prob-b old_score

Both files must have the same rows in the same order, with the same outcomes."""

_RECALIBRATE = """examples:
  safecal recalibrate validation.csv --y label --logits score --save calibrator.json
  safecal recalibrate validation.csv --y label --prob p --out calibrated.csv --save calibrator.json
  safecal recalibrate new.csv --prob p --apply calibrator.json --out new-calibrated.csv

By default, safecal takes the simplest map that is as good as the best, and then the sharpest temperature that rules
over-confidence out. Evaluate the result on rows that were not used to fit it."""

_PLAN = """examples:
  safecal plan pilot.csv --y label --prob score
  safecal plan pilot.csv --y label --prob score --threshold 0.05 --power 0.9

A hundred rows like those to come are a good sample. Their outcomes are not used."""


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EVALUATE
    formats = "CSV, TSV, Parquet, JSON Lines, Arrow or .npz file; - for standard input; or logs of language models"
    parser.add_argument("file", type=place, nargs="+", help=formats)
    add_column_options(parser, several=True)
    _add_forecast_options(parser)
    _add_question_options(parser)
    _add_answer_options(parser)
    _add_row_options(parser)
    features = "for whom is it over-confident? look for slices by these columns, or by `all`"
    parser.add_argument_group("slices").add_argument(
        "--features", type=_distinct_names, metavar="COL,COL", help=features
    )
    add_limit_options(parser)
    _add_bin_options(parser)
    kept = "how many rows to keep in memory (default 1000000)"
    parser.add_argument_group("large files").add_argument(
        "--max-rows", type=whole(0, 10**12), default=1_000_000, metavar="N", help=kept
    )
    _add_output_options(parser)


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _COMPARE
    parser.add_argument("a", type=place, help="file with the predictions of the first model")
    parser.add_argument("b", type=place, help="file with the predictions of the second model")
    add_column_options(parser)
    parser.add_argument("--prob-b", action="append", metavar="COL", help="like --prob, for the second file")
    parser.add_argument("--logits-b", action="append", metavar="COL", help="like --logits, for the second file")
    _add_row_options(parser, by=False)
    parser.add_argument(
        "--level", type=between(0, 1), default=0.95, help="confidence level of the intervals (default 0.95)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    about = "write a page about the differences: one HTML file"
    parser.add_argument("--report", type=output, metavar="FILE", help=about)
    picture = "draw the differences and both models: .svg, .png or .pdf"
    parser.add_argument("--plot", type=output, metavar="FILE", help=picture)


def add_plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PLAN
    parser.add_argument("file", type=place, help="a sample of the predictions, in a file as for `evaluate`")
    add_column_options(parser)
    _add_row_options(parser, by=False)
    add_limit_options(parser)
    parser.add_argument(
        "--power", type=between(0, 1), default=0.8, help="probability that so many rows lead to a verdict (default 0.8)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def add_recalibrate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _RECALIBRATE
    parser.add_argument("file", type=place, nargs="+", help="as for `evaluate`")
    add_column_options(parser)
    _add_question_options(parser)
    _add_row_options(parser)
    add_limit_options(parser)
    methods = ("auto", "safe", "likelihood", "identity", "temperature", "affine", "beta", "isotonic", "vector")
    about = "auto (default): the simplest map that is as good as the best; safe, likelihood: a temperature; or a map"
    parser.add_argument("--method", choices=methods, default="auto", help=about)
    plain = "with auto or a map: skip the last step, which rules over-confidence out"
    parser.add_argument("--plain", action="store_true", help=plain)
    risk = "risk of staying over-confident (default 0.05)"
    parser.add_argument("--alpha", type=between(0, 1), default=0.05, help=risk)
    parser.add_argument("--save", type=output, metavar="FILE", help="write the calibrator as JSON")
    parser.add_argument("--apply", type=place, metavar="FILE", help="apply a saved calibrator instead of fitting one")
    parser.add_argument("--out", type=output, metavar="FILE", help="write all rows with their calibrated probabilities")
    apostrophe = "in --out, put ' before text that a spreadsheet would run as a formula"
    parser.add_argument("--spreadsheet-safe", action="store_true", help=apostrophe)
    parser.add_argument("--plot", type=output, metavar="FILE", help="draw before and after: .svg, .png or .pdf")


def add_demo(parser: argparse.ArgumentParser) -> None:
    where = "where to write the report (default %(default)s)"
    parser.add_argument("--report", type=output, metavar="FILE", default="safecal-demo.html", help=where)
