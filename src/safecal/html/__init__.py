"""Pages and pictures: HTML and SVG whose text is escaped unless `element` made it; and numbers as text.

Of SVG, the little that pictures need: scales with round ticks, lines and labels, and a frame that says what it shows.
The modules beside this one hold the numbers behind every picture, wherever it is drawn.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import final

from ..errors import shortened, visible
from ..inference import Interval
from ..judge.display import number

__all__ = [
    "Markup",
    "AxisScale",
    "centred_label",
    "coordinate_text",
    "crosses",
    "element",
    "interval_text",
    "evidence_text",
    "grouped",
    "in_utc",
    "join",
    "label",
    "line",
    "moment_text",
    "p_value",
    "percent",
    "picture",
    "plain",
    "power_text",
    "rows_text",
    "sentence",
    "shape",
    "short_count",
    "shortened",
    "metric_text",
    "text_width",
    "tick_text",
    "unbroken",
    "upright_label",
    "visible",
    "whole_dates",
    "with_code",
]

_DATE = re.compile(r"(?<![\w-])(\d{4}-\d\d-\d\d(?![\w-])[,.:]?)")
# These have no content. In SVG, the closing slash is needed; in HTML it does no harm.
_EMPTY_TAGS = {"br", "circle", "line", "link", "meta", "path", "polygon", "polyline", "rect"}


@final
class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def element(tag: str, /, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """Return an element; children that are not `Markup` are escaped, and so is every attribute.

    ``class_`` writes ``class`` and ``aria_label`` writes ``aria-label``. An attribute that is None or False is left
    out, one that is True stands without a value. A child that is None is left out.
    """
    opening = tag + "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _EMPTY_TAGS:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[str | None], separator: str = "") -> Markup:
    """Return parts one after the other; those that are not `Markup` are escaped."""
    return Markup(separator.join(_escaped(child) for child in children if child is not None))


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(visible(text, keep="\n\t"), quote=False)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = coordinate_text(value) if isinstance(value, float) else str(value)
    return f' {name}="{escape(visible(text))}"'


def coordinate_text(value: float) -> str:
    """Return a coordinate to a tenth, without a zero at its end."""
    if not math.isfinite(value):
        raise ValueError("a coordinate is not finite")
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def unbroken(text: str) -> str:
    """Return a text in which no line break parts a number from its percent sign or its nat."""
    return re.sub(r"(?<=\d) (?=%|nat\b)", "\N{NO-BREAK SPACE}", text)


def whole_dates(text: str) -> Markup:
    """Return a text in which no line break parts a date.

    Examples
    --------
    >>> whole_dates("on 2026-01-05 06:00:00 UTC")
    'on <span class="name">2026-01-05</span> 06:00:00 UTC'
    """
    return Markup(_DATE.sub(r'<span class="name">\1</span>', join([text])))


def sentence(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return unbroken(text[:1].upper() + text[1:])


def with_code(text: str) -> Markup:
    """Return a text in which words between backticks are code.

    Examples
    --------
    >>> with_code("pass `clip=`")
    'pass <code>clip=</code>'
    """
    return join(element("code", part) if k % 2 else part for k, part in enumerate(text.split("`")))


_CHARACTER_WIDTH = 0.6  # mean width of a character, in font sizes
FONT_SIZE = 12.5  # size of the text in pictures, as the style sheet says


@final
@dataclass(frozen=True, slots=True)
class AxisScale:
    """Numbers to positions: ``low`` lies at ``start``, ``high`` at ``end``, and what is outside at the nearer one."""

    low: float  # finite, and so is `high`
    high: float
    start: float
    end: float
    log: bool = False  # whether equal ratios, not equal differences, are equally far apart

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        low, high = self._on(self.low), self._on(self.high)
        share = (self._on(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _on(self, value: float) -> float:
        return math.log(value) if self.log else value

    def holds(self, value: float) -> bool:
        """Tell whether a number lies inside."""
        return self.low <= value <= self.high

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers inside, at most so many."""
        return self._log_ticks(most) if self.log else self._plain_ticks(most)

    def _plain_ticks(self, most: int) -> list[float]:
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        if power == 0.0:  # limits so close to 0 that no round number lies between
            return []
        for factor in (1, 2, 5, 10, 20, 50):
            step = factor * power
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                break
        return [k * step for k in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        octaves = math.log2(self.high / self.low)
        if octaves < 2.5:
            return AxisScale(self.low, self.high, 0.0, 1.0).ticks(most)
        step = math.ceil(octaves / (most - 1))
        first, last = math.ceil(math.log2(self.low) - 1e-9), math.floor(math.log2(self.high) + 1e-9)
        return [2.0**k for k in range(first, last + 1) if k % step == 0]


def tick_text(value: float) -> str:
    """Return a number at an axis, with a true minus sign."""
    text = f"{0.0 if abs(value) < 1e-12 else value:.6g}"
    return text.replace("-", "\N{MINUS SIGN}")


def label(x: float, y: float, text: str, class_: str | None = None, anchor: str | None = None) -> Markup:
    """Return a text; ``anchor`` is "middle" or "end", else it starts at x."""
    return element("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def upright_label(text: str, x: float, y: float) -> Markup:
    """Return the name of an axis, written from the bottom to the top around a height."""
    turned = f"translate({x:g} {y:.0f}) rotate(-90)"
    return element("text", text, class_="axis-name", text_anchor="middle", transform=turned)


def centred_label(x: float, y: float, text: str, class_: str, within: tuple[float, float]) -> Markup:
    """Return a text around x, moved so that it does not stick out."""
    half = text_width(text) / 2.0
    return label(min(max(x, within[0] + half), within[1] - half), y, text, class_, "middle")


def text_width(text: str) -> float:
    """Return about how wide a text is."""
    return _CHARACTER_WIDTH * FONT_SIZE * len(text)


def crosses(path: Sequence[tuple[float, float]], left: float, top: float, right: float, bottom: float) -> bool:
    """Tell whether a line through points, which goes to the right or straight up and down, crosses a box.

    Examples
    --------
    >>> crosses([(0.0, 0.0), (10.0, 10.0)], 4.0, 0.0, 6.0, 5.0), crosses([(0.0, 0.0), (10.0, 10.0)], 4.0, 0.0, 6.0, 3.0)
    (True, False)
    """
    for (x1, y1), (x2, y2) in pairwise(path):
        first, last = max(x1, left), min(x2, right)
        if first > last:
            continue
        ends = [y1 + (y2 - y1) * (x - x1) / (x2 - x1) for x in (first, last)] if x2 > x1 else [y1, y2]
        if min(ends) <= bottom and max(ends) >= top:
            return True
    return False


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def shape(points: Sequence[tuple[float, float]], class_: str, *, closed: bool = True) -> Markup:
    """Return a polygon, or a line through points."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polygon" if closed else "polyline", points=text, class_=class_)


def picture(name: str, size: tuple[float, float], title: str, description: str, *parts: Markup) -> Markup:
    """Return a picture that tells those who do not see it what it shows; ``name`` is unique in the page."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        join(parts),
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="picture",
    )


def metric_text(value: float, *, signed: bool = False) -> str:
    """Return a metric to four decimals, as in the text on a terminal, with a sign for infinity.

    Examples
    --------
    >>> metric_text(0.25, signed=True), metric_text(float("inf"), signed=True), metric_text(float("nan"))
    ('+0.2500', '+∞', 'N/A')
    """
    text = number(value, signed=signed)
    return text.replace("inf", "∞") if signed else text.replace("+inf", "∞").replace("-inf", "-∞")


def interval_text(interval: Interval, *, signed: bool = False) -> str:
    """Return an interval in words."""
    return f"{metric_text(interval.low, signed=signed)} to {metric_text(interval.high, signed=signed)}"


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


def rows_text(count: int) -> str:
    """Return a number of rows: "1 row", "12 345 rows".

    Examples
    --------
    >>> rows_text(1), rows_text(12345) == "12\N{NARROW NO-BREAK SPACE}345 rows"
    ('1 row', True)
    """
    return f"{grouped(count)} {'row' if count == 1 else 'rows'}"


def grouped(count: int) -> str:
    """Return a whole number, from five digits on in groups of three."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if abs(count) >= 10_000 else str(count)


def short_count(count: int) -> str:
    """Return a number of rows in at most four characters.

    Examples
    --------
    >>> short_count(3821), short_count(12345), short_count(2_500_000), short_count(999_999)
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


def evidence_text(log10: float) -> str:
    """Return evidence as one would say it.

    Examples
    --------
    >>> evidence_text(1.6), evidence_text(7.3), evidence_text(-40.0), evidence_text(float("inf"))
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
    return power_text(exponent) if leading == 1 else f"{leading} × {power_text(exponent)}"


def power_text(exponent: int) -> str:
    """Return a power of ten.

    Examples
    --------
    >>> power_text(-12)
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
