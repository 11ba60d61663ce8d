"""Texts with the words marked by which a model was surprised beyond what it had announced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from .frame import section
from .markup import Markup, element, join, shown

__all__ = ["MarkedText", "texts_section"]

_MARKS = ((6.0, "more"), (3.0, "much"), (1.0, "some"))  # nats of excess from which on a token is marked


@final
@dataclass(frozen=True, slots=True)
class MarkedText:
    """Part of a text, token by token.

    Attributes
    ----------
    title : str
        Where it is from.
    tokens : tuple of (str, float)
        Each token and its excess in nats.
    """

    title: str
    tokens: tuple[tuple[str, float], ...]


def texts_section(texts: Sequence[MarkedText]) -> Markup | None:
    """Return a section that shows some texts; colour is never the only sign of a mark."""
    if not texts:
        return None
    legend = element(
        "p",
        "Tokens are marked where the model was surprised beyond what it had announced, by ",
        join(
            (element("mark", f"{low:g} nat", class_=name) for low, name in reversed(_MARKS)),
            ", ",
        ),
        " or more. The worst places come first.",
    )
    shown_texts = [
        element("div", element("h3", one.title), element("p", join(map(_token, one.tokens)), class_="tokens"))
        for one in texts
    ]
    return section("texts", "Where in the text?", legend, *shown_texts)


def _token(token: tuple[str, float]) -> Markup:
    text, excess = token
    name = next((name for low, name in _MARKS if excess >= low), None)
    if name is None:
        return join([text])
    return element("mark", text, class_=name, title=f"{shown(excess, signed=True)} nat")
