"""The commands: what each is for, its options, and examples. What a command does is imported when it runs."""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import OptionError
from .options import (
    LIMITS,
    RULE_ABOUT,
    RULES,
    Formatter,
    Parser,
    above,
    add_answer_options,
    add_bin_options,
    add_column_options,
    add_forecast_options,
    add_limit_options,
    add_output_options,
    add_question_options,
    add_row_options,
    between,
    distinct_names,
    output,
    place,
    printable_name,
    some_text,
    store,
    whole,
)  # fmt: skip

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

By default, safecal takes the simplest map that is as good as the best, and then the sharpest temperature that rules
over-confidence out. Evaluate the result on rows that were not used to fit it."""

_WATCH = """examples:
  safecal watch incoming/ --y label --prob score                   watch a folder; each file is a batch
  safecal watch incoming/ --once --report history.html             take what is there and stop, as cron needs
  tail -F log.jsonl | safecal watch - --every 60                   JSON Lines or CSV from standard input
  safecal watch incoming/ --by site --window-column day --on-alarm "mail -s alarm me@example.org"
  safecal watch incoming/ --store postgresql://me@db/models --name churn --prometheus 9109
  safecal watch status --store safecal-watch.sqlite
  safecal watch acknowledge --store safecal-watch.sqlite           look for the next change

Each batch counts once, however often it is sent, even if the watcher is killed. What cannot be read is set aside, with
a reason. A line is printed for each batch after it is safely stored. Exit status, if the watcher ends by itself: 0
all is well, 2 an error, 3 an alarm was raised, 4 no alarm, but something was set aside or is not yet complete."""


class _Command(NamedTuple):
    """A command: what the list of commands says of it, what adds its options, and what runs it."""

    about: str
    add_options: Callable[[argparse.ArgumentParser], object]
    run: Callable[[argparse.Namespace], int]


def _later(function: str) -> Callable[[Any], int]:
    """Return a function of a module that is imported only when it is called, so that ``--help`` is quick."""
    module, _, name = function.partition(".")

    def call(argument: Any) -> int:
        result: int = getattr(import_module(f"safecal.cli.{module}"), name)(argument)
        return result

    return call


class _Version(argparse.Action):
    def __init__(self, option_strings: Any, dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

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
    parser = Parser("safecal", description=_ABOUT, epilog=_EXAMPLES, formatter_class=Formatter)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, listed in _COMMANDS.items():
        about = f"{listed.about[0].upper()}{listed.about[1:]}."
        subparser = commands.add_parser(name, help=listed.about, description=about, formatter_class=Formatter)
        if command in (None, name):
            subparser.set_defaults(run=listed.run, command=name)
            listed.add_options(subparser)
        if command == name:
            parser.known_options, parser.command = tuple(subparser._option_string_actions), command
    return parser


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EVALUATE
    parser.add_argument(
        "file",
        type=place,
        nargs="+",
        help="CSV, TSV, Parquet, JSON Lines, Arrow or .npz file; - for standard input; or logs of language models",
    )
    add_column_options(parser, several=True)
    add_forecast_options(parser)
    add_question_options(parser)
    add_answer_options(parser)
    add_row_options(parser)
    features = "for whom is it over-confident? look for slices by these columns, or by `all`"
    parser.add_argument_group("slices").add_argument(
        "--features", type=distinct_names, metavar="COL,COL", help=features
    )
    add_limit_options(parser)
    add_bin_options(parser)
    kept = "how many rows to keep in memory (default 1000000)"
    parser.add_argument_group("large files").add_argument(
        "--max-rows", type=whole(0, 10**12), default=1_000_000, metavar="N", help=kept
    )
    add_output_options(parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _COMPARE
    parser.add_argument("a", type=place, help="file with the predictions of the first model")
    parser.add_argument("b", type=place, help="file with the predictions of the second model")
    add_column_options(parser)
    parser.add_argument("--prob-b", action="append", metavar="COL", help="like --prob, for the second file")
    parser.add_argument("--logits-b", action="append", metavar="COL", help="like --logits, for the second file")
    add_row_options(parser, by=False)
    parser.add_argument(
        "--level", type=between(0, 1), default=0.95, help="confidence level of the intervals (default 0.95)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of text")
    parser.add_argument("--report", metavar="FILE", help="write a page about the differences: one HTML file")
    parser.add_argument("--plot", metavar="FILE", help="draw the differences and both models: .svg, .png or .pdf")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _PLAN
    parser.add_argument("file", type=place, help="a sample of the predictions, in a file as for `evaluate`")
    add_column_options(parser)
    add_row_options(parser, by=False)
    add_limit_options(parser)
    parser.add_argument(
        "--power", type=between(0, 1), default=0.8, help="probability that so many rows lead to a verdict (default 0.8)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def _add_recalibrate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _RECALIBRATE
    parser.add_argument("file", type=place, nargs="+", help="as for `evaluate`")
    add_column_options(parser)
    add_question_options(parser)
    add_row_options(parser)
    add_limit_options(parser)
    parser.add_argument(
        "--method",
        choices=("auto", "safe", "likelihood", "identity", "temperature", "affine", "beta", "isotonic", "vector"),
        default="auto",
        help="auto (default): the simplest map that is as good as the best; safe, likelihood: a temperature; or a map",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="with auto or a map: skip the last step, which rules over-confidence out",
    )
    risk = "risk of staying over-confident (default 0.05)"
    parser.add_argument("--alpha", type=between(0, 1), default=0.05, help=risk)
    parser.add_argument("--save", type=output, metavar="FILE", help="write the calibrator as JSON")
    parser.add_argument("--apply", type=place, metavar="FILE", help="apply a saved calibrator instead of fitting one")
    parser.add_argument("--out", type=output, metavar="FILE", help="write all rows with their calibrated probabilities")
    apostrophe = "in --out, put ' before text that a spreadsheet would run as a formula"
    parser.add_argument("--spreadsheet-safe", action="store_true", help=apostrophe)
    parser.add_argument("--plot", type=output, metavar="FILE", help="draw before and after: .svg, .png or .pdf")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _WATCH
    parser.add_argument(
        "what",
        type=place,
        metavar="FOLDER",
        help="folder to watch; - for standard input; or `status`, or `acknowledge`",
    )
    group = parser.add_argument_group("evidence", "Fixed when a store is created.")
    group.add_argument(
        "--alpha",
        type=between(0, 1),
        help="probability that the evidence since the start ever raises a false alarm (default 0.05)",
    )
    between_alarms = "average number of rows between false alarms of a change (default 1000000)"
    group.add_argument("--run-length", type=above(1, 1e15), metavar="ROWS", help=between_alarms)
    side = "look for a change to over-confidence (default), or to under-confidence as well"
    group.add_argument("--detect", choices=("over", "both"), help=side)
    group.add_argument(
        "--by", action="append", metavar="COL", help="watch each group in this column, too; can be repeated"
    )
    window = "column with the window of each row, such as a date (default: the day on which the row came)"
    group.add_argument("--window-column", metavar="COL", help=window)
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group = parser.add_argument_group(
        "limits",
        "What pages and alarms call large. The evidence does not depend on them. Fixed when a store is created.",
    )
    for option, limit in LIMITS.items():
        about = f"{limit.about} (default {limit.default:g})"
        group.add_argument(option, type=limit.read, metavar=limit.metavar, help=about)
    group.add_argument("--rule", choices=RULES, help=RULE_ABOUT)
    group = parser.add_argument_group("store")
    group.add_argument(
        "--store",
        type=store,
        metavar="PATH|URL",
        help="SQLite file, or postgresql://... (default: safecal-watch.sqlite beside the folder, for - here)",
    )
    group.add_argument(
        "--name", type=printable_name, default="model", help="name of the model in the store (default %(default)s)"
    )
    wait = "how long to wait for another program that has locked the store (default 10)"
    group.add_argument("--patience", type=above(0, 86_400, included=True), default=10.0, metavar="SECONDS", help=wait)
    group = parser.add_argument_group("batches")
    group.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl"),
        help="format of standard input (default: CSV or JSON Lines, by its first line)",
    )
    group.add_argument(
        "--batch-rows",
        type=whole(1, 10**8),
        metavar="N",
        help="standard input: end a batch after so many rows (default 10000)",
    )
    time = "standard input: end a batch after this time, even if it has few rows"
    group.add_argument("--every", type=above(0), metavar="SECONDS", help=time)
    group.add_argument(
        "--batch-column", metavar="COL", help="standard input: column with the id of the batch of each row"
    )
    group.add_argument(
        "--bad-rows",
        choices=("refuse", "quarantine"),
        default="refuse",
        help="rows that cannot be read: set the whole batch aside (default), or only these rows",
    )
    group.add_argument("--retry", action="store_true", help="try again the batches that were set aside")
    interval = "time between two looks into the folder (default 1)"
    group.add_argument("--poll", type=above(0), default=1.0, metavar="SECONDS", help=interval)
    group.add_argument(
        "--once", action="store_true", help="look into the folder twice, take the files that are complete, and stop"
    )
    group = parser.add_argument_group("notifications")
    command = "run this for each alarm; it reads the alarm as JSON from standard input"
    group.add_argument("--on-alarm", type=some_text, metavar="COMMAND", help=command)
    group.add_argument("--webhook", type=_webhook, metavar="URL", help="post each alarm to this address, as JSON")
    group.add_argument(
        "--prometheus", type=whole(0, 65_535), metavar="PORT", help="serve metrics for Prometheus on this port"
    )
    host = "address to serve them on (default %(default)s)"
    group.add_argument("--prometheus-host", type=some_text, default="127.0.0.1", metavar="HOST", help=host)
    group.add_argument(
        "--report", type=output, metavar="FILE", help="keep a page with the history up to date: one HTML file"
    )
    group.add_argument("--group", metavar="GROUP", help="with `acknowledge`: only this group (default: all rows)")
    add_column_options(parser)


def _webhook(text: str) -> str:
    """Read an address; one that is refused is not shown, since it may hold a secret."""
    from ..watch.channels import check_url

    try:
        return check_url(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).partition("` ")[2].removesuffix(".")) from None


def _add_demo(parser: argparse.ArgumentParser) -> None:
    where = "where to write the report (default %(default)s)"
    parser.add_argument("--report", type=output, metavar="FILE", default="safecal-demo.html", help=where)


_COMMANDS = {
    "evaluate": _Command(
        "judge a model by a file of its predictions: SAFE, UNSAFE or UNDETERMINED",
        _add_evaluate, _later("commands.run_evaluate"),
    ),
    "compare": _Command("compare two models on the same rows", _add_compare, _later("commands.run_compare")),
    "plan": _Command(
        "estimate how many rows a verdict needs, from a sample of the predictions",
        _add_plan, _later("commands.run_plan"),
    ),
    "recalibrate": _Command(
        "find the map that fixes a model, or apply one", _add_recalibrate, _later("recalibrate.run")
    ),
    "lm": _Command(
        "judge a language model by texts that people wrote",
        _later("language_models.add_options"), _later("language_models.run"),
    ),
    "poses": _Command(
        "judge the covariances of estimated poses: TUM text or nav_msgs/Odometry, one run or many",
        _later("poses.add_options"), _later("poses.run"),
    ),
    "watch": _Command(
        "watch a model in use, and raise an alarm when it becomes over-confident", _add_watch, _later("watch.run")
    ),
    "demo": _Command(
        "try safecal on two simulated models, one safe and one unsafe", _add_demo, _later("commands.run_demo")
    ),
    "paper": _Command(
        "reproduce the tables and figures of the paper (arXiv 2502.14545)",
        _later("paper.add_options"), _later("paper.run"),
    ),
}  # fmt: skip
