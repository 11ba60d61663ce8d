"""Numbers as a reader of a page or a picture sees them."""

import math
from datetime import UTC, datetime

from ..inference.results import Interval
from ..judge.display import number

__all__ = [
    "ends",
    "evidence",
    "grouped",
    "in_utc",
    "moment_text",
    "p_value",
    "percent",
    "plain",
    "power",
    "rows",
    "short",
    "shown",
]


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


def percent(share: float, gap: str = "\N{NO-BREAK SPACE}") -> str:
    """Return a share in percent to three digits; near 100 % they count from there, so that less is not called all.

    Examples
    --------
    >>> percent(0.975, " "), percent(0.12345, " "), percent(0.99995, " "), percent(math.nan)
    ('97.5 %', '12.3 %', '99.995 %', 'N/A')
    """
    if math.isnan(share):
        return "N/A"
    near = 0.99 < share < 1.0
    value = 100.0 - float(f"{100.0 * (1.0 - share):.3g}") if near else 100.0 * share
    return f"{value:.{9 if near else 3}g}{gap}%"


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
    """Return a number of rows in at most four characters.

    Examples
    --------
    >>> short(3821), short(12345), short(2_500_000), short(999_999)
    ('3821', '12k', '2.5M', '1M')
    """
    if count < 10_000:
        return str(count)
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if count < 999.5 * size:
            digits = 0 if count >= 9.95 * size else 1
            return f"{count / size:.{digits}f}".removesuffix(".0") + unit
    return f"{count:.0e}"


def p_value(value: float) -> str:
    """Return a p-value to two digits."""
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def evidence(log10: float) -> str:
    """Return evidence as one would say it.

    Examples
    --------
    >>> evidence(1.6), evidence(7.3), evidence(-40.0), evidence(float("inf"))
    ('39.8', '2 × 10⁷', '10⁻⁴⁰', 'infinite')
    """
    if math.isinf(log10):
        return "infinite" if log10 > 0.0 else "0"
    if -3.0 <= log10 < 3.0:
        return plain(10.0**log10)
    if 3.0 <= log10 < 6.0:
        return grouped(int(round(10.0**log10, 2 - math.floor(log10))))
    exponent = math.floor(log10 + 1e-9)
    leading = round(10.0 ** (log10 - exponent))
    if leading == 10:
        exponent, leading = exponent + 1, 1
    return power(exponent) if leading == 1 else f"{leading} × {power(exponent)}"


def power(exponent: int) -> str:
    """Return a power of ten.

    Examples
    --------
    >>> power(-12)
    '10⁻¹²'
    """
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def moment_text(at: str) -> str:
    """Return a moment in ISO 8601 as a reader sees it."""
    return at.replace("T", " ").partition(".")[0].removesuffix("Z").removesuffix("+00:00") + " UTC"


def in_utc(created: datetime | None) -> datetime:
    """Return when a page was made, in UTC; a time without a zone is taken to be UTC."""
    if created is None:
        created = datetime.now(UTC)
    return created.replace(tzinfo=UTC) if created.tzinfo is None else created.astimezone(UTC)
