"""Where the model is over-confident: the picture along its predictions, and every place in a table."""

from ..course import Course
from ..display import PLACE, place_cells
from ..evaluation import Evaluation
from ..places import Place
from ..verdict import Verdict
from .along import along
from .findings import Findings
from .markup import Markup, element, join, shortened
from .numbers import grouped, percent, rows, together
from .tables import region
from .words import sentence

__all__ = ["where_section"]

_LISTED = 50  # places in the table
_LONGEST = 60  # characters of a name


def where_section(findings: Findings) -> Markup:
    """Return the picture along the predictions, and the places that the verdict names."""
    evaluation, verdict = findings.evaluation, findings.verdict
    limits = verdict.limits
    image = along("along", Course.of(evaluation.local, limits.local_threshold))
    parts: list[Markup] = [element("p", together(_lead(evaluation, verdict)), class_="lead")]
    if image is not None:
        said = (
            "Each step is a range of the predictions, with at least "
            f"{percent(limits.min_share)} of the rows. Above 0 it is over-confident there, below 0 under-confident. A "
            "filled diamond is beyond the limit; a hollow one is suspected to be. The grey bounds hold for all ranges "
            "together. The frame is the worst range: it may be longer than a step, or of one predicted class."
        )
        parts.append(element("figure", image, element("figcaption", together(said)), class_="beside"))
    if verdict.where:
        parts += _places(verdict.where)
    return element("section", element("h2", "Where", id="where"), *parts, aria_labelledby="where")


def _lead(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say in a sentence or two what was found, and what was looked at."""
    if not verdict.limits.everywhere:
        return "Only averages were judged: the verdict looks at no place."
    alike = "" if len(evaluation.local) else "Its predictions are all alike, or have no order: they have no ranges."
    if alike and evaluation.groups is None:
        return f"It is judged on average alone. {alike}"
    if verdict.shown:
        count = len(verdict.shown)
        found = f"In {count} place{'' if count == 1 else 's'} it is over-confident beyond the limit."
    elif verdict.where:
        found = "In no place is it shown to be over-confident beyond the limit, but in some that is suspected."
    else:
        found = "In no place is it shown to be over-confident beyond the limit, and in none is that suspected."
    small = f"{sentence(str(verdict.too_small))}." if verdict.too_small.count else ""
    return " ".join(filter(None, (found, alike, small)))


def _places(places: tuple[Place, ...]) -> list[Markup]:
    caption = "Places, the worst first"
    names = [name if name != "happens" else "it happens" for name in PLACE]
    head = element(
        "tr", *(element("th", n, scope="col", class_="n" if 0 < k < 7 else None) for k, n in enumerate(names))
    )
    body = join(map(_row, places[:_LISTED]))
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", body), class_="places"
    )
    left = len(places) - _LISTED
    said = "ECD is in nats. Of ranges that overlap, the worst is listed."
    if any(place.type == "group" for place in places):
        said += " “Wrong” counts the rows in which another outcome happened than the likeliest."
    more = [f" {grouped(left)} more places are in the JSON document." if left > 0 else ""]
    return [region(table, caption), element("p", said, *more, class_="note")]


def _row(place: Place) -> Markup:
    _, _, *cells, finding = place_cells(place)
    shown = [rows(place.n).split(" row")[0], *(together(cell).replace("inf", "∞") for cell in cells)]
    return element(
        "tr",
        element("th", element("bdi", together(shortened(place.brief, _LONGEST))), scope="row"),
        *(element("td", cell, class_="n") for cell in shown),
        element("td", finding),
        class_="beyond" if place.shown else "suspected",
    )
