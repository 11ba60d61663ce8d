"""Options: what may be typed behind one, and how it is refused; those of `safecal watch`; a parser that helps."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..errors import OptionError
from ..visible import visible
from .mistyped import way_out

if TYPE_CHECKING:
    from ..options import LimitOptions

__all__ = [
    "Formatter",
    "Parser",
    "LIMITS",
    "MOST_BINS",
    "RULES",
    "RULE_ABOUT",
    "WATCH",
    "above",
    "add_watch_options",
    "between",
    "level_and_column",
    "limit_options",
    "name",
    "names",
    "output",
    "place",
    "some_text",
    "store",
    "whole",
]

MOST_BINS = 100_000  # that of `safecal.bins`, which `--help` need not import


def _refused(rule: str, text: str) -> argparse.ArgumentTypeError:
    shown = repr(text) if len(text) <= 60 else f"{text[:57]!r}..."
    return argparse.ArgumentTypeError(f"must be {rule}; got {shown}")


def _number(rule: str, good: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise _refused(rule, text) from None
        if not good(value):  # neither is NaN
            raise _refused(rule, text)
        return value

    return read


def above(low: float, most: float = 1e6, *, included: bool = False) -> Callable[[str], float]:
    """Read a number above ``low``, or also ``low`` itself, up to ``most``."""
    rule = f"a number {'of' if included else 'above'} {low:g}{' or more' if included else ''}, at most {most:g}"
    return _number(rule, lambda x: (low <= x if included else low < x) and x <= most)


def between(low: float, high: float) -> Callable[[str], float]:
    """Read a number strictly between two others."""
    return _number(f"a number between {low:g} and {high:g}", lambda x: low < x < high and math.isfinite(x))


def whole(least: int, most: int) -> Callable[[str], int]:
    """Read a whole number from ``least`` to ``most``."""
    rule = f"a whole number from {least} to {most}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise _refused(rule, text) from None
        if not least <= value <= most:
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


def name(text: str) -> str:
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


def names(text: str) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise _refused("names that differ, separated by commas", text)
    return found


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


WATCH = """examples:
  safecal watch incoming/ --y label --prob score                   watch a folder; each file is a batch
  safecal watch incoming/ --once --report history.html             take what is there and stop, as cron needs
  tail -F log.jsonl | safecal watch - --every 60                   JSON Lines or CSV from standard input
  safecal watch incoming/ --by site --window-column day --on-alarm "mail -s alarm me@example.org"
  safecal watch incoming/ --store postgresql://me@db/models --name churn --prometheus 9109
  safecal watch status --store safecal-watch.sqlite
  safecal watch acknowledge --store safecal-watch.sqlite           look for the next change

Each batch counts once, however often it is sent, and whenever the watcher is killed. What cannot be read is set aside,
with a reason. A line is printed for each batch after it is safely stored. Exit status, if the watcher ends by itself: 0
all is well, 2 an error, 3 an alarm was raised, 4 no alarm, but something was set aside or is not yet complete."""


def _webhook(text: str) -> str:
    """Read an address; one that is refused is not shown, since it may hold a secret."""
    from ..watch.channels import check_url

    try:
        return check_url(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).partition("` ")[2].removesuffix(".")) from None


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, without those that name columns of predictions."""
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
    group.add_argument(
        "--run-length",
        type=above(1, 1e15),
        metavar="ROWS",
        help="average number of rows between false alarms of a change (default 1000000)",
    )
    group.add_argument(
        "--detect", choices=("over", "both"),
        help="look for a change to over-confidence (default), or to under-confidence as well",
    )  # fmt: skip
    group.add_argument(
        "--by", action="append", metavar="COL", help="watch each group in this column as well; may be repeated"
    )
    group.add_argument(
        "--window-column",
        metavar="COL",
        help="column with the window of each row, such as a date (default: the day it came)",
    )
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group = parser.add_argument_group(
        "limits", "What pages and alarms call large. The evidence does not depend on it. Fixed when a store is created."
    )
    for option, limit in LIMITS.items():
        about = f"{limit.about} (default {limit.default:g})"
        group.add_argument(option, type=limit.read, metavar=limit.metavar, help=about)
    group.add_argument("--rule", choices=RULES, help=RULE_ABOUT)
    group = parser.add_argument_group("store")
    group.add_argument(
        "--store", type=store, metavar="PATH|URL",
        help="SQLite file, or postgresql://... (default: safecal-watch.sqlite beside the folder, or here)",
    )  # fmt: skip
    group.add_argument(
        "--name", type=name, default="model", help="name of the model in the store (default %(default)s)"
    )
    group.add_argument(
        "--patience", type=above(0, 86_400, included=True), default=10.0, metavar="SECONDS",
        help="how long to wait for another program that has locked the store (default 10)",
    )  # fmt: skip
    group = parser.add_argument_group("batches")
    group.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl"),
        help="format of standard input (default: CSV or JSON Lines, as it begins)",
    )
    group.add_argument(
        "--batch-rows", type=whole(1, 10**8), metavar="N", help="standard input: most rows of a batch (default 10000)"
    )
    group.add_argument(
        "--every",
        type=above(0),
        metavar="SECONDS",
        help="standard input: end a batch after that time, even if it has few rows",
    )
    group.add_argument(
        "--batch-column", metavar="COL", help="standard input: column with the id of the batch of each row"
    )
    group.add_argument(
        "--bad-rows", choices=("refuse", "quarantine"), default="refuse",
        help="rows that cannot be read: set the whole batch aside (default), or only these rows",
    )  # fmt: skip
    group.add_argument("--retry", action="store_true", help="try batches again that were set aside")
    group.add_argument(
        "--poll",
        type=above(0),
        default=1.0,
        metavar="SECONDS",
        help="time between two looks into the folder (default 1)",
    )
    group.add_argument(
        "--once", action="store_true", help="look into the folder twice, take the files that are complete, and stop"
    )
    group = parser.add_argument_group("notifications")
    group.add_argument(
        "--on-alarm",
        type=some_text,
        metavar="COMMAND",
        help="run this for each alarm; it reads the alarm as JSON from standard input",
    )
    group.add_argument("--webhook", type=_webhook, metavar="URL", help="post each alarm to this address, as JSON")
    group.add_argument(
        "--prometheus", type=whole(0, 65_535), metavar="PORT", help="serve metrics for Prometheus on this port"
    )
    group.add_argument(
        "--prometheus-host",
        type=some_text,
        default="127.0.0.1",
        metavar="HOST",
        help="address to serve them on (default %(default)s)",
    )
    group.add_argument(
        "--report", type=output, metavar="FILE", help="keep a page with the history up to date: one HTML file"
    )
    group.add_argument("--group", metavar="GROUP", help="with `acknowledge`: only this group (default: all rows)")


class Parser(argparse.ArgumentParser):
    """A parser that says which word one may have meant."""

    known: Sequence[str] = ()  # the options of the command that was typed
    command: str | None = None

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.color = False  # of Python 3.14: what is written to a terminal is shown, not obeyed

    def error(self, message: str) -> NoReturn:
        found = re.fullmatch(r"argument (\S+): (must .*)", message, re.DOTALL)
        if found is not None:  # a value that is refused is told of as every other
            raise OptionError(f"`{found[1]}` {found[2]}.")
        hint = way_out(message, self.command, self.known or tuple(self._option_string_actions), self.prog)
        self.exit(2, f"safecal: {visible(message)}.\n\nHint: {hint}\n")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of 100 characters a line; examples stay as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)
