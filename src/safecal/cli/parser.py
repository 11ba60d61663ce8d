"""The words of the command line, with examples. Commands are imported when they run."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .language_models import LM, add_answer_options, add_lm_options, add_question_options
from .options import (
    LIMITS,
    MOST_BINS,
    RULE_ABOUT,
    RULES,
    WATCH,
    Formatter,
    Parser,
    add_watch_options,
    between,
    level_and_column,
    names,
    output,
    place,
    whole,
)

__all__ = ["build_parser"]

_ABOUT = "Find out whether a probabilistic model is safe, that is, not over-confident."
_EXAMPLES = """examples:
  safecal demo                                        one minute with safecal: simulate, evaluate, report
  safecal evaluate predictions.csv                    finds the columns `y` and `p` by their names
  safecal evaluate scores.parquet --y label --prob score --by country --report report.html
  safecal evaluate model.csv --y label --prob score --gate      status 0 SAFE, 3 UNSAFE, 4 UNDETERMINED
  safecal compare new.csv old.csv --y label --prob score
  safecal recalibrate model.csv --y label --prob score --out calibrated.csv --save calibrator.json
  safecal poses runs/*/estimate.tum --truth truth.tum --cov runs/*/cov.csv --side right --first rotation
  safecal watch incoming/ --y label --prob score      raise an alarm when a model becomes over-confident

`safecal COMMAND --help` explains each command."""

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

_PLAN = """examples:
  safecal plan pilot.csv --y label --prob score
  safecal plan pilot.csv --y label --prob score --threshold 0.05 --power 0.9

A hundred rows like those to come are a good sample. Their outcomes are not used."""

_RECALIBRATE = """examples:
  safecal recalibrate validation.csv --y label --logits score --save calibrator.json
  safecal recalibrate validation.csv --y label --prob p --out calibrated.csv --save calibrator.json
  safecal recalibrate new.csv --prob p --apply calibrator.json --out new-calibrated.csv

By default the simplest map that is as good as the best is taken, and after it the sharpest temperature at which
over-confidence is ruled out. Evaluate the result on rows that were not used to fit it."""


_OWN_MODULE = ("recalibrate", "poses", "watch", "paper")  # commands with a module of their own


def _later(name: str) -> Callable[[argparse.Namespace], int]:
    """Import a command only when it runs, so that ``--help`` is quick."""

    def run(options: argparse.Namespace) -> int:
        module, function = (name, "run") if name in _OWN_MODULE else ("commands", f"run_{name}")
        status: int = getattr(import_module(f"safecal.cli.{module}"), function)(options)
        return status

    return run


class _Version(argparse.Action):
    def __init__(self, option_strings: Any, dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and leave")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .._optional import version

        print(f"safecal {version()}")
        parser.exit()


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    Parameters
    ----------
    command : str, optional
        The only one that gets its options: the others are listed, and cannot be parsed. By default all get theirs.
    """
    parser = _parser("safecal", _ABOUT, _EXAMPLES)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, (about, fill) in _COMMANDS.items():
        one = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", formatter_class=Formatter
        )
        if command in (None, name):
            one.set_defaults(run=_later(name), command=name)
            fill(one)
        if command == name:
            parser.known, parser.command = tuple(one._option_string_actions), command
    return parser


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EVALUATE
    parser.add_argument(
        "file",
        type=place,
        nargs="+",
        help="CSV, TSV, Parquet, JSON Lines, Arrow or .npz file; - for standard input; or logs of language models",
    )
    _columns(parser, several=True)
    _forecasts(parser)
    add_question_options(parser)
    add_answer_options(parser)
    _rows(parser)
    _features(parser)
    _limits(parser)
    _bins(parser)
    _size(parser)
    _output(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _COMPARE
    parser.add_argument("a", type=place, help="file with the predictions of the first model")
    parser.add_argument("b", type=place, help="file with the predictions of the second model")
    _columns(parser)
    parser.add_argument("--prob-b", action="append", metavar="COL", help="like --prob, for the second file")
    parser.add_argument("--logits-b", action="append", metavar="COL", help="like --logits, for the second file")
    _rows(parser, by=False)
    parser.add_argument(
        "--level", type=between(0, 1), default=0.95, help="confidence level of the intervals (default 0.95)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    parser.add_argument("--report", metavar="FILE", help="write a page about the differences: one HTML file")
    parser.add_argument("--plot", metavar="FILE", help="draw the differences and both models: .svg, .png or .pdf")


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PLAN
    parser.add_argument("file", type=place, help="a sample of the predictions, in a file as for `evaluate`")
    _columns(parser)
    _rows(parser, by=False)
    _limits(parser)
    parser.add_argument(
        "--power", type=between(0, 1), default=0.8, help="probability that so many rows lead to a verdict (default 0.8)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _recalibrate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _RECALIBRATE
    parser.add_argument("file", type=place, nargs="+", help="as for `evaluate`")
    _columns(parser)
    add_question_options(parser)
    _rows(parser)
    _limits(parser)
    parser.add_argument(
        "--method",
        choices=("auto", "safe", "likelihood", "identity", "temperature", "affine", "beta", "isotonic", "vector"),
        default="auto",
        help="auto (default): the simplest map that is as good as the best; safe, likelihood: a temperature; or a map",
    )
    parser.add_argument(
        "--plain", action="store_true", help="with auto or a map: do not rule over-confidence out after it"
    )
    risk = "risk of staying over-confident (default 0.05)"
    parser.add_argument("--alpha", type=between(0, 1), default=0.05, help=risk)
    parser.add_argument("--save", type=output, metavar="FILE", help="write the calibrator as JSON")
    parser.add_argument("--apply", type=place, metavar="FILE", help="apply a saved calibrator instead of fitting one")
    parser.add_argument("--out", type=output, metavar="FILE", help="write all rows with their calibrated probabilities")
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="in --out, put ' before text that a spreadsheet would run as a formula",
    )
    parser.add_argument("--plot", type=output, metavar="FILE", help="draw before and after: .svg, .png or .pdf")


def _poses(parser: argparse.ArgumentParser) -> None:
    from .poses import POSES, add_pose_options

    parser.epilog = POSES
    add_pose_options(parser)
    _limits(parser)


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = WATCH
    add_watch_options(parser)
    _columns(parser)


def _lm(parser: argparse.ArgumentParser) -> None:
    parser.epilog = LM
    add_lm_options(parser)
    _limits(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        type=output,
        metavar="FILE",
        default="safecal-demo.html",
        help="where to write the report (default %(default)s)",
    )


def _paper(parser: argparse.ArgumentParser) -> None:
    from .paper import add_papers

    add_papers(parser, Formatter)


# What the list of commands says of each, and what adds its options.
_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "evaluate": ("judge a model by a file of its predictions: SAFE, UNSAFE or UNDETERMINED", _evaluate),
    "compare": ("compare two models on the same rows", _compare),
    "plan": ("estimate how many rows a verdict needs, from a sample of the predictions", _plan),
    "recalibrate": ("find what fixes a model, or apply it", _recalibrate),
    "lm": ("judge a language model by texts that people wrote", _lm),
    "poses": ("judge the covariances of estimated poses: TUM text or nav_msgs/Odometry, one run or many", _poses),
    "watch": ("watch a model in use, and raise an alarm when it becomes over-confident", _watch),
    "demo": ("try safecal on two simulated models, one safe and one unsafe", _demo),
    "paper": ("reproduce the tables and figures of the paper (arXiv 2502.14545)", _paper),
}


def _parser(name: str, about: str, examples: str) -> Parser:
    return Parser(name, description=about, epilog=examples, formatter_class=Formatter)


def _columns(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    group = parser.add_argument_group(
        "columns", "You may leave these out where the names of the columns leave no doubt."
    )
    if several:
        group.add_argument(
            "--y", action="append", metavar="COL", help="column of what happened; with --by-label one for each label"
        )
    else:
        group.add_argument("--y", metavar="COL", help="column of what happened: the outcomes")
    group.add_argument(
        "--prob",
        action="append",
        metavar="COL",
        help="column of probabilities; for several classes, one --prob for each",
    )
    group.add_argument(
        "--logits", action="append", metavar="COL", help="column of log-odds or logits, instead of --prob"
    )
    group.add_argument("--pos-label", metavar="LABEL", help="the outcome that --prob is the probability of")
    group.add_argument("--label", action="append", metavar="LABEL", help="the class of each --prob, in the same order")
    if several:
        group.add_argument(
            "--by-label",
            action="store_true",
            help="several labels a row: each --y is 0 or 1, beside the --prob at the same place",
        )


def _forecasts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "forecasts of a number, and states",
        "One of four forms; --y, or --x, names what happened. A state has several columns: --x px,py --mean mx,my.",
    )
    group.add_argument("--x", dest="y", action="append", metavar="COL", help="the same as --y")
    group.add_argument("--mean", action="append", metavar="COL", help="column of means, with --std, --var or --cov")
    group.add_argument("--std", action="append", metavar="COL", help="column of standard deviations")
    group.add_argument("--var", action="append", metavar="COL", help="column of variances")
    rows = "columns of covariances: the matrix row by row, or its lower triangle row by row; 'cov_*' in their order"
    group.add_argument("--cov", action="append", metavar="COL", help=rows)
    group.add_argument("--lower", metavar="COL", help="column of lower ends of intervals, with --upper and --coverage")
    group.add_argument("--upper", metavar="COL", help="column of upper ends")
    group.add_argument("--coverage", type=between(0, 1), metavar="X", help="how often intervals are to hold: 0.9")
    group.add_argument(
        "--quantile", action="append", type=level_and_column, metavar="LEVEL=COL", help="a quantile; give two or more"
    )
    begun = "columns of draws; 'draw_*' names all that begin so"
    group.add_argument("--draws", action="append", metavar="COL", help=begun)


def _rows(parser: argparse.ArgumentParser, *, by: bool = True) -> None:
    group = parser.add_argument_group("rows")
    if by:
        group.add_argument(
            "--by",
            action="append",
            metavar="COL",
            help="treat each group in this column separately as well; may be repeated",
        )
    group.add_argument(
        "--cluster", metavar="COL", help="column of a patient, track or day, whose rows depend on each other"
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
                       help="format of the file, where its name does not show it")  # fmt: skip
    group.add_argument("--sep", metavar="CHAR", help="character between the fields of a CSV file (default: a comma)")


def _features(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group("slices").add_argument(
        "--features",
        type=names,
        metavar="COL,COL",
        help="for whom? look for slices by these columns, or by `all` of them",
    )


def _limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits", "How much over-confidence still counts as safe.")
    for name, limit in LIMITS.items():
        group.add_argument(
            name, type=limit.read, default=limit.default, metavar=limit.metavar,
            help=f"{limit.about} (default {limit.default:g})",
        )  # fmt: skip
    group.add_argument("--rule", choices=RULES, default=RULES[0], help=RULE_ABOUT)


def _bins(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("bins", "Bins change ECE. They never change ECD.")
    group.add_argument("--bins", type=whole(1, MOST_BINS), default=10, metavar="N", help="number of bins (default 10)")
    group.add_argument("--bin-on", choices=("probability", "confidence", "entropy"), help="what the bins are of")
    group.add_argument(
        "--strategy",
        choices=("uniform", "quantile"),
        default="uniform",
        help="bins of equal width (default), or with equally many rows",
    )


def _size(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("large files")
    group.add_argument(
        "--max-rows",
        type=whole(0, 10**12),
        default=1_000_000,
        metavar="N",
        help="how many rows to keep in memory (default 1000000)",
    )


def _output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    group.add_argument(
        "--report", type=output, metavar="FILE", help="write a report that explains the verdict: one HTML file"
    )
    group.add_argument("--title", metavar="TEXT", help="heading of the report")
    group.add_argument("--plot", type=output, metavar="FILE", help="draw the main pictures: .svg, .png or .pdf")
    group.add_argument(
        "--summary", type=output, metavar="FILE", help="write the verdict as Markdown: pull requests, CI"
    )
    group.add_argument(
        "--gate",
        action="store_true",
        help="set the exit status: 0 SAFE, 3 UNSAFE, 4 UNDETERMINED, 5 worse than --baseline",
    )
    group.add_argument(
        "--baseline",
        type=place,
        metavar="JSON",
        help="result of an earlier `--json`: say whether this model is worse",
    )
