"""The words of ``safecal watch``."""

import argparse

from .values import above, between, name, output, place, some_text, store, whole

__all__ = ["WATCH", "add_watch_options"]

WATCH = """examples:
  safecal watch incoming/ --y label --prob score                   follow a folder; each file is a batch
  safecal watch incoming/ --once --report history.html             take what is there, then leave: for cron
  tail -F log.jsonl | safecal watch - --every 60                   JSON Lines or CSV from standard input
  safecal watch incoming/ --by site --window-column day --on-alarm "mail -s alarm me@example.org"
  safecal watch incoming/ --store postgresql://me@db/models --name churn --prometheus 9109
  safecal watch status --store safecal-watch.sqlite
  safecal watch acknowledge --store safecal-watch.sqlite           look for the next change

A batch counts once, however often it is sent and wherever the watcher is killed. What cannot be read is set aside with
a reason. One line on standard output tells of each batch after it is safely kept. Exit status, where the watcher ends
by itself: 0 all is well, 2 an error, 3 an alarm was raised, 4 no alarm, but something was set aside or left."""


_LIMITS = (
    (
        "--threshold",
        above(0),
        "X",
        "largest ECD that is safe on average and in a group, in nat a dimension (default 0.1)",
    ),
    ("--max-temperature", above(0), "T", "largest temperature that is safe (default 1.5)"),
    ("--max-ratio", above(0), "X", "most mistakes that are safe, for each one announced (default 3)"),
    ("--local-threshold", above(0), "X", "largest ECD that is safe in a range, in nat a dimension (default 0.2)"),
    ("--min-share", between(0, 1), "X", "smallest share of the rows that is a range (default 0.05)"),
    ("--level", between(0, 1), "X", "of the intervals (default 0.95)"),
)


def _webhook(text: str) -> str:
    """Read an address; one that is refused is not shown, since it may hold a secret."""
    from ..errors import OptionError
    from ..watch.channels import check_url

    try:
        return check_url(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).partition("` ")[2].removesuffix(".")) from None


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, without those that name columns of predictions."""
    parser.add_argument(
        "what", type=place, metavar="FOLDER", help="a folder to follow; - for standard input; status; acknowledge"
    )
    group = parser.add_argument_group("evidence", "Fixed when a store is begun.")
    group.add_argument(
        "--alpha", type=between(0, 1), help="probability of a false alarm since the start (default 0.05)"
    )
    group.add_argument(
        "--run-length",
        type=above(1, 1e15),
        metavar="ROWS",
        help="rows between false alarms of a change (default 1000000)",
    )
    group.add_argument(
        "--detect", choices=("over", "both"),
        help="which changes: to over-confidence (default), or to under-confidence as well",
    )  # fmt: skip
    group.add_argument("--by", action="append", metavar="COL", help="each group by itself, too; may be repeated")
    group.add_argument(
        "--window-column", metavar="COL", help="the window of each row: a date (default: the day it came)"
    )
    group.add_argument("--clip", type=between(0, 0.5), metavar="EPS", help="move probabilities into [EPS, 1 - EPS]")
    group = parser.add_argument_group(
        "limits", "What pages, alarms and windows call large; evidence does not depend on them. Fixed as well."
    )
    for option, kind, metavar, about in _LIMITS:
        group.add_argument(option, type=kind, metavar=metavar, help=about)
    group.add_argument("--rule", choices=("everywhere", "average"), help="where the verdict of windows looks")
    group = parser.add_argument_group("store")
    group.add_argument(
        "--store", type=store, metavar="PATH|URL",
        help="SQLite file, or postgresql://... (default safecal-watch.sqlite beside the folder, or here)",
    )  # fmt: skip
    group.add_argument("--name", type=name, default="model", help="of the model in the store (default %(default)s)")
    group.add_argument(
        "--patience", type=above(0, 86_400, included=True), default=10.0, metavar="SECONDS",
        help="to wait for another program that has locked the store (default 10)",
    )  # fmt: skip
    group = parser.add_argument_group("batches")
    group.add_argument(
        "--format", choices=("csv", "tsv", "jsonl"), help="of standard input (default: CSV or JSON Lines)"
    )
    group.add_argument(
        "--batch-rows", type=whole(1, 10**8), metavar="N", help="of standard input: rows of a batch (default 10000)"
    )
    group.add_argument("--every", type=above(0), metavar="SECONDS", help="of standard input: a batch at least so often")
    group.add_argument("--batch-column", metavar="COL", help="of standard input: the id of the batch of each row")
    group.add_argument(
        "--bad-rows", choices=("refuse", "quarantine"), default="refuse",
        help="rows that cannot be read: set the batch aside (default), or these rows",
    )  # fmt: skip
    group.add_argument("--retry", action="store_true", help="try again what was set aside")
    group.add_argument("--poll", type=above(0), default=1.0, metavar="SECONDS", help="between two looks (default 1)")
    group.add_argument("--once", action="store_true", help="look twice, take what is whole, and leave")
    group = parser.add_argument_group("who is told")
    group.add_argument(
        "--on-alarm", type=some_text, metavar="COMMAND", help="run it for each alarm, which it finds on standard input"
    )
    group.add_argument("--webhook", type=_webhook, metavar="URL", help="post each alarm there, as JSON")
    group.add_argument("--prometheus", type=whole(0, 65_535), metavar="PORT", help="serve metrics")
    group.add_argument(
        "--prometheus-host", type=some_text, default="127.0.0.1", metavar="HOST", help="where (default %(default)s)"
    )
    group.add_argument("--report", type=output, metavar="FILE", help="keep a page with the history: one HTML file")
    group.add_argument("--group", metavar="GROUP", help="of `acknowledge`: a group (default: all rows)")
