"""The tables of bins and groups, which sort when a header is pressed."""

import math
from collections.abc import Sequence

from ..inference.results import Interval
from ..inference.shifts import ClassShifts
from ..summary import Summary
from ..table import Table
from .findings import Rung
from .markup import Markup, element, shortened
from .numbers import grouped, percent, shown

__all__ = ["class_table", "key_table", "region"]

_LONGEST = 60  # characters of a name

Column = tuple[str, str]  # its name, and what it sorts by: "text", "number" or "place"


def key_table(table: Table, found: Sequence[Rung], caption: str) -> Markup:
    """Return the table of some rungs in their order, and of all rows at its foot."""
    total = table.total
    names = ["rows", "share"]
    names += ["predicted", "observed", "ESCE"] if total.sum_predicted is not None else []
    names += ["NLL"] if total.sum_entropy is not None and table.bins is None else []
    first = (shortened(table.name, 40), "text" if table.bins is None else "place")
    columns = [first, *((name, "number") for name in [*names, "ECD", "at least", "at most"]), ("finding", "text")]
    predicted, observed = table.predicted.tolist(), table.observed.tolist()
    body = [
        _row(rung, _numbers(names, table[table.keys[k]], predicted[k], observed[k], rung.share))
        for rung in found
        for k in (rung.index,)
    ]
    means = (total.mean_confidence, total.accuracy) if table.top_label else (total.mean_predicted, total.mean_observed)
    last = [*_numbers(names, total, *means, 1.0), shown(total.ecd, signed=True), "", "", ""]
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(_header(table, column) for column in columns))),
        element("tbody", *body),
        element("tfoot", element("tr", element("th", "all rows", scope="row"), *map(_cell, last))),
        class_="keys",
    )
    return region(content, caption)


def class_table(shifts: ClassShifts, caption: str) -> Markup:
    """Return how often each class was predicted and happened."""
    names = ("rows predicted", "happened", "ratio", "at least", "at most", "shift of its logit", "at least", "at most")
    columns = [("class", "text"), *((name, "number") for name in names)]
    heads = [
        element("th", element("bdi", name), scope="col", data_by=kind, class_="n" if kind == "number" else None)
        for name, kind in columns
    ]
    body = []
    for each in shifts.classes:
        counts = [f"{each.predicted:.5g}", f"{each.observed:.5g}"]
        cells = [*counts, *_ends(each.ratio, False), *_ends(each.shift, True)]
        name = element("th", element("bdi", shortened(each.name, _LONGEST)), scope="row")
        body.append(element("tr", name, *map(_cell, cells)))
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_="keys",
    )
    return region(content, caption)


def _ends(interval: Interval, signed: bool) -> list[str]:
    return [
        "N/A" if math.isinf(x) or math.isnan(x) else shown(x, signed=signed)
        for x in (interval.value, interval.low, interval.high)
    ]


def region(content: Markup, name: str) -> Markup:
    """Return what may be wider than the page, in a part that scrolls by itself and that the keyboard reaches."""
    return element("div", content, class_="wide", role="region", aria_label=name, tabindex="0")


def _header(table: Table, column: Column) -> Markup:
    """Return a header; bins come in their order, groups with the largest ECD first."""
    name, kind = column
    order = "ascending" if kind == "place" else "descending" if table.bins is None and name == "ECD" else None
    numeric = "n" if kind == "number" else None
    return element("th", element("bdi", name), scope="col", data_by=kind, aria_sort=order, class_=numeric)


def _numbers(names: Sequence[str], s: Summary, predicted: float, observed: float, share: float) -> list[str]:
    texts = {
        "rows": grouped(s.n),
        "share": percent(share),
        "predicted": shown(predicted),
        "observed": shown(observed),
        "ESCE": shown(observed - predicted, signed=True),
        "NLL": shown(s.nll),
    }
    return [texts[name] for name in names]


def _cell(text: str) -> Markup:
    return element("td", text, class_="none" if text == "N/A" else None)


def _row(rung: Rung, numbers: Sequence[str]) -> Markup:
    ecd = [shown(x, signed=True) for x in (rung.ecd.value, rung.ecd.low, rung.ecd.high)]
    said = "no rows" if math.isnan(rung.ecd.value) else rung.said
    name = element("th", element("bdi", shortened(rung.name, _LONGEST)), scope="row")
    cells = map(_cell, [*numbers, *ecd, said])
    return element("tr", name, *cells, class_="beyond" if rung.beyond else None)
