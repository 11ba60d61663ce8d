"""The words of ``safecal watch``."""

import argparse

from ..errors import OptionError
from .values import LIMITS, RULE_ABOUT, RULES, above, between, name, output, place, some_text, store, whole

__all__ = ["WATCH", "add_watch_options"]

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
