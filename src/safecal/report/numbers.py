"""Numbers as a reader of the report sees them."""

import math
import re

from ..display import number
from ..inference.results import Interval

__all__ = ["ends", "grouped", "percent", "plain", "rows", "shown", "short", "together"]


def shown(value: float, *, signed: bool = False) -> str:
    """Return a metric to four decimals, as in the text on a terminal, with a sign for infinity.

    Examples
    --------
    >>> shown(0.25, signed=True), shown(float("inf"), signed=True), shown(float("nan"))
    ('+0.2500', '+∞', 'N/A')
    """
    text = number(value, signed=signed)
    return text.replace("inf", "∞") if signed else text.replace("+inf", "∞").replace("-inf", "-∞")


def ends(interval: Interval, *, signed: bool = False) -> str:
    """Return an interval in words."""
    return f"{shown(interval.low, signed=signed)} to {shown(interval.high, signed=signed)}"


def percent(share: float) -> str:
    """Return a share in percent, which no line break parts.

    Examples
    --------
    >>> percent(0.975) == "97.5\N{NO-BREAK SPACE}%"
    True
    """
    return "N/A" if math.isnan(share) else together(f"{100.0 * share:.3g} %")


def together(text: str) -> str:
    """Return a text in which no line break parts a number from its percent sign or its nat."""
    return re.sub(r"(?<=\d) (?=%|nat\b)", "\N{NO-BREAK SPACE}", text)


def plain(value: float) -> str:
    """Return a number as one would say it, to three digits.

    Examples
    --------
    >>> plain(0.05), plain(1.978), plain(2054000.0)
    ('0.05', '1.98', '2.05e+06')
    """
    return "∞" if math.isinf(value) else f"{value:.3g}"


def rows(count: int) -> str:
    """Return a number of rows: "1 row", "12 345 rows".

    Examples
    --------
    >>> rows(1), rows(12345) == "12\N{NARROW NO-BREAK SPACE}345 rows"
    ('1 row', True)
    """
    return f"{grouped(count)} {'row' if count == 1 else 'rows'}"


def grouped(count: int) -> str:
    """Return a whole number, from five digits on in groups of three."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if abs(count) >= 10_000 else str(count)


def short(count: int) -> str:
    """Return a number of rows in little space.

    Examples
    --------
    >>> short(950), short(12345), short(2_500_000)
    ('950', '12k', '2.5M')
    """
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size and count >= 10_000:
            scaled = count / size
            return f"{scaled:.1f}".removesuffix(".0") + letter if scaled < 10 else f"{scaled:.0f}{letter}"
    return str(count)
