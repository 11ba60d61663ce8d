"""HTML and SVG in which text is escaped by construction: only what `element` made passes as markup."""

import html
import math
import re
from collections.abc import Iterable
from typing import final

from ..visible import shortened, visible

__all__ = ["Markup", "compact", "element", "join", "sentence", "shortened", "together", "visible", "with_code"]

# These have no content. In SVG, the closing slash is needed; in HTML it does no harm.
_EMPTY = {"br", "circle", "line", "link", "meta", "path", "polygon", "polyline", "rect"}


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
    if tag in _EMPTY:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[str | None], separator: str = "") -> Markup:
    """Return parts one after the other; those that are not `Markup` are escaped."""
    return Markup(separator.join(_escaped(child) for child in children if child is not None))


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else html.escape(visible(text, keep="\n\t"), quote=False)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = compact(value) if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(visible(text))}"'


def compact(value: float) -> str:
    """Return a coordinate to a tenth, without what is not needed."""
    if not math.isfinite(value):
        raise ValueError("a coordinate is not finite")
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def together(text: str) -> str:
    """Return a text in which no line break parts a number from its percent sign or its nat."""
    return re.sub(r"(?<=\d) (?=%|nat\b)", "\N{NO-BREAK SPACE}", text)


def sentence(text: str) -> str:
    """Return a text with a capital letter at its start."""
    return together(text[:1].upper() + text[1:])


def with_code(text: str) -> Markup:
    """Return a text in which what stands between backticks is code.

    Examples
    --------
    >>> with_code("pass `clip=`")
    'pass <code>clip=</code>'
    """
    return join(element("code", part) if k % 2 else part for k, part in enumerate(text.split("`")))
