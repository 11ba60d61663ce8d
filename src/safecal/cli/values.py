"""What may be typed behind an option: each value is read once, and refused with the name of its option."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..options import LimitOptions

__all__ = [
    "LIMITS",
    "MOST_BINS",
    "RULES",
    "RULE_ABOUT",
    "above",
    "between",
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
