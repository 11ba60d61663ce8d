"""What recalibration changed, number by number."""

import math

from ..display import ece_of
from ..evaluation import Evaluation
from ..verdict import Verdict
from .markup import Markup, element, shortened
from .numbers import grouped, shown, together
from .tables import region
from .words import sentence, with_code

__all__ = ["after_section"]

Row = tuple[str, str, str]  # name, before, after


def after_section(before: Evaluation, was: Verdict, after: Evaluation) -> Markup:
    """Return both evaluations side by side; the rows may be others."""
    now = after.verdict
    caption = "Before and after"
    names = (("number", None), ("before", "n"), ("after", "n"))
    head = element("tr", *(element("th", name, scope="col", class_=numeric) for name, numeric in names))
    body = [
        element("tr", element("th", a, scope="row"), *(element("td", x, class_="n") for x in (b, c)))
        for a, b, c in _rows(before, was, after, now)
    ]
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_="pair"
    )
    said = sentence(str(now))
    return element(
        "section",
        element("h2", "After recalibration", id="after"),
        element("p", with_code(said), class_="lead"),
        region(table, caption),
        aria_labelledby="after",
    )


def _rows(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> list[Row]:
    both = (before, after)
    numbers = [
        ("ECD", True, [e.ecd for e in both]),
        ("ECD at least", True, [e.interval.low for e in both]),
        ("ECD at most", True, [e.interval.high for e in both]),
        ("temperature", False, [e.temperature.value for e in both]),
        ("mistakes, made over announced", False, [_ratio(e) for e in both]),
        ("NLL", False, [e.nll for e in both]),
        ("ECE" if before.bins is None else f"ECE ({ece_of(before.bins)})", False, [e.ece for e in both]),
        ("Brier", False, [e.brier for e in both]),
        ("accuracy", False, [e.accuracy for e in both]),
    ]
    rows = [("verdict", was.decision, now.decision), ("rows", grouped(before.n), grouped(after.n))]
    rows.append(("worst place", _worst(was), _worst(now)))
    return rows + [
        (name, shown(a, signed=signed), shown(b, signed=signed))
        for name, signed, (a, b) in numbers
        if not (math.isnan(a) and math.isnan(b))
    ]


def _ratio(evaluation: Evaluation) -> float:
    return math.nan if evaluation.mistakes is None else evaluation.mistakes.ratio.value


def _worst(verdict: Verdict) -> str:
    """Name the worst place with its bound; it may be none."""
    if not verdict.where:
        return "none"
    place = verdict.where[0]
    bound = "" if place.by == "mistakes" else f", ECD at least {shown(place.ecd.low, signed=True)}"
    if place.temperature is not None:
        bound = f", temperature at least {shown(place.temperature.low)}"
    return together(shortened(place.brief, 40) + (bound if place.shown else ", suspected"))
