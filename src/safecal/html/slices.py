"""Slices in a page: a picture with bars and intervals, and a table."""

import hashlib

from ..slices.results import Slices
from .findings import Finding
from .intervals import forest
from .markup import Markup, element, shortened, together
from .notebook import framed
from .numbers import ends, grouped, percent, shown

__all__ = ["slice_findings", "slices_html", "slices_picture", "slices_table"]

_LONGEST = 60  # characters of a condition


def slice_findings(slices: Slices, local_threshold: float) -> list[Finding]:
    """Return the slices as pictures and tables have them; each limit in nats."""
    found = []
    for place, s in enumerate(slices):
        limit = local_threshold * s.dimensions
        beyond = slices.direction == "over" and s.firm > limit
        found.append(Finding(place, s.condition, s.n, s.share, s.ecd, limit, beyond, ""))
    return found


def slices_picture(name: str, slices: Slices, local_threshold: float = 0.2) -> Markup | None:
    """Return the slices as bars with their intervals, beside the limit; None where there are none."""
    found = slice_findings(slices, local_threshold)
    return forest(name, "ECD of each slice", found, bars=True) if found else None


def slices_table(slices: Slices) -> Markup:
    """Return the slices as a table."""
    names = ("slice", "rows", "share", "ECD", "interval", "temperature", "predicted", "observed", "adds")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = []
    for s in slices:
        cells = (
            grouped(s.n), percent(s.share), shown(s.ecd.value, signed=True), ends(s.ecd, signed=True),
            shown(s.temperature.value), shown(s.predicted), shown(s.observed), shown(s.contribution, signed=True),
        )  # fmt: skip
        first = element("th", element("bdi", shortened(s.condition, _LONGEST)), scope="row")
        body.append(element("tr", first, *(element("td", cell) for cell in cells)))
    return element("table", element("caption", together(slices.sentence)), element("thead", head),
                   element("tbody", *body))  # fmt: skip


def slices_html(slices: Slices) -> str:
    """Return slices as a notebook shows them."""
    if not len(slices):
        return framed(element("p", together(slices.sentence)))
    name = "safecal-" + hashlib.sha256(repr(slices).encode()).hexdigest()[:10]
    image = slices_picture(f"{name}-slices", slices)
    return framed(element("div", element("figure", image), class_="images"), slices_table(slices))
