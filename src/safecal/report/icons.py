"""The shape of each verdict: a round tick, a warning triangle, a question in a diamond. Colour is never needed."""

from ..verdict import SAFE, UNDETERMINED, UNSAFE
from .markup import Markup, element

__all__ = ["icon"]

_OUTLINES = {
    SAFE: element("circle", cx=24.0, cy=24.0, r=20.5, class_="icon-body"),
    UNSAFE: element("path", d="M24 4.5 45 42.5H3Z", class_="icon-body"),
    UNDETERMINED: element("path", d="M24 2.5 45.5 24 24 45.5 2.5 24Z", class_="icon-body"),
}
_SIGNS = {
    SAFE: "M14.5 24.5 21.5 31.5 34 17.5",
    UNSAFE: "M24 17.5V29.5M24 35.6V36",
    UNDETERMINED: "M18.8 19.2C18.8 12.6 29.4 13 29.4 19.2 29.4 23 24 23.4 24 28.4M24 34.2V34.6",
}


def icon(decision: str) -> Markup:
    """Return the icon of a decision; the word stands beside it, so that it is hidden from screen readers."""
    sign = element("path", d=_SIGNS[decision], class_="icon-sign")
    return element("svg", _OUTLINES[decision], sign, viewBox="0 0 48 48", class_="icon", aria_hidden="true")
