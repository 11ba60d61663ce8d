"""Tables as text that fits a terminal, and as HTML for notebooks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .._sums.summary import Summary
from .._sums.table import Table
from .._sums.table_views import SIDES
from ..inference.cox import Cox
from ..inference.mistakes import Mistakes
from ..inference.results import Interval, TestResult
from ..inference.shifts import ClassShifts
from ..visible import visible
from .reasons import direction
from .reliability import Reliability

if TYPE_CHECKING:
    from .places import Place
    from .verdict import Verdict

__all__ = [
    "Metric",
    "count",
    "ece_of",
    "empty_bins",
    "evaluation_text",
    "inference_rows",
    "look_rows",
    "metric_rows",
    "number",
    "place_rows",
    "table_html",
    "table_text",
    "titled_html",
    "titled_text",
    "with_ends",
]

Cells = list[list[str]]
Metric = tuple[str, str, str]  # name, value, meaning

_PLACE = ("place", "rows", "share", "it says", "happens", "ECD at least", "allowed", "finding")  # columns of a place
_PLACES = 5  # that are listed
_NAME = 24  # characters of a name
_MANY_LOOKS = 4


def number(value: float, *, signed: bool = False) -> str:
    """Return a metric to four decimals; ``N/A`` where it does not exist."""
    if math.isnan(value):
        return "N/A"
    if math.isinf(value):
        return "+inf" if value > 0 else "-inf"
    if abs(value) >= 1e6:
        return f"{value:+.3e}" if signed else f"{value:.3e}"
    return (
        f"{value:+.4f}" if signed and abs(value) >= 0.00005 else f"{abs(value) if abs(value) < 0.00005 else value:.4f}"
    )


def with_ends(x: Interval | float, signed: bool) -> str:
    """Return a metric, and its interval where it has one."""
    if not isinstance(x, Interval):
        return number(x, signed=signed)
    ends = f"{number(x.low, signed=signed)} to {number(x.high, signed=signed)}"
    return number(x.value, signed=signed) + ("" if math.isnan(x.value) else f" ({ends})")


def count(value: float) -> str:
    """Return how many mistakes there are; by weight, or where they are announced, that need not be whole."""
    return f"{value:.0f}" if value >= 10.0 or value == round(value) else f"{value:.2g}"


def _row(
    label: str, n: int, ecd: float, predicted: float, observed: float, columns: Sequence[str], ece: float | None = None
) -> list[str]:
    esce = observed - predicted
    texts = {
        "rows": f"{n:d}",
        "predicted": number(predicted),
        "observed": number(observed),
        "ECE": number(abs(esce) if ece is None else ece),
        "ESCE": number(esce, signed=True),
        "ECD": number(ecd, signed=True),
    }
    return [label, *(texts[name] for name in columns)]


def _table_cells(table: Table) -> tuple[list[str], Cells, list[str]]:
    """Return header, one row a key with its unweighted values, and the weighted sum; empty bins are left out."""
    total = table.total
    columns = ["rows", "ECD"]
    if total.sum_predicted is not None:  # a group has bins of its own, which these sums do not know: no ECE
        columns[1:1] = ["predicted", "observed", *(["ECE"] if table.bins else []), "ESCE"]
    n, ecd, predicted, observed = (x.tolist() for x in (table.n, table.ecd, table.predicted, table.observed))
    rows = zip(table.labels, n, ecd, predicted, observed, strict=True)
    body = [_row(*row, columns) for row in rows if row[1] or table.bins is None]
    means = (total.mean_confidence, total.accuracy) if table.top_label else (total.mean_predicted, total.mean_observed)
    ece = table.ece() if "ECE" in columns else None
    last = "weighted sum" if table.bins else "all rows"
    return [table.name, *columns], body, _row(last, total.n, total.ecd, *means, columns, ece)


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def table_text(table: Table) -> str:
    """Return a table as aligned text."""
    header, body, last = _table_cells(table)
    lines = _align([[_short(row[0]), *row[1:]] for row in [header, *body, last]])
    rule = "-" * len(lines[0])
    left = empty_bins(table)
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1], *([left] if left else [])])


def empty_bins(table: Table) -> str:
    """Say how many bins hold no rows, and are not shown; nothing where all do."""
    if table.bins is None or (count := int((table.n == 0).sum())) == 0:
        return ""
    return f"{count} of {len(table)} bins {'is' if count == 1 else 'are'} empty, and not shown."


def _escaped(text: str) -> str:
    from html import escape  # here, since a terminal needs none

    return escape(visible(text))


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= _NAME else name[: _NAME - 3] + "..."


def place_rows(places: Sequence[Place]) -> list[dict[str, str]]:
    """Return the cells of places by the names of their columns; those that none of them fills are left out."""
    rows = [dict(zip(_PLACE, _place_cells(place), strict=True)) for place in places]
    filled = [name for name in _PLACE if any(cells[name] for cells in rows)]
    return [{name: cells[name] for name in filled} for cells in rows]


def _place_cells(place: Place) -> list[str]:
    says, happens = "", ""
    if place.type == "group" and not math.isnan(place.announced):
        says, happens = f"{count(place.announced)} wrong", f"{count(place.seen)} wrong"
    elif not math.isnan(place.predicted):
        says, happens = f"{100.0 * place.predicted:.3g} %", f"{100.0 * place.observed:.3g} %"
    if place.by == "mistakes":
        ratio = place.seen / place.announced if place.announced > 0.0 else math.inf
        at_least, allowed = f"{ratio:.3g} times", f"{place.limit:g} times"
    elif place.temperature is not None:
        at_least, allowed = f"T {place.temperature.low:.3g}", f"T {place.limit:g}"
    else:
        at_least, allowed = f"{place.ecd.low:+.3g}", f"{place.limit:.3g}"
    share = f"{100.0 * place.share:.3g} %"
    finding = "shown" if place.shown else "suspected"
    return [place.brief, str(place.n), share, says, happens, at_least, allowed, finding]


def _places_text(places: Sequence[Place]) -> list[str]:
    """Return the places as a table of few columns."""
    if not places:
        return []
    found = place_rows(places[:_PLACES])
    wanted = {
        "rows": "rows",
        "it says": "it says",
        "happens": "happens",
        "ECD at least": "ECD from",
        "allowed": "allowed",
    }
    names = [name for name in wanted if name in found[0]]
    marks = [" ?" if cells["finding"] == "suspected" else "" for cells in found]
    body = [[_short(c["place"]) + mark, *(c[name] for name in names)] for c, mark in zip(found, marks, strict=True)]
    lines = _align([["where", *(wanted[name] for name in names)], *body])
    more = len(places) - _PLACES
    notes = [f"and in {more} more place{'' if more == 1 else 's'}"] if more > 0 else []
    notes += ["?  suspected: more rows would tell"] if any(marks) else []
    return [lines[0], "-" * len(lines[0]), *lines[1:], *notes, ""]


def _html_row(cells: Sequence[str], tag: str) -> str:
    first = f'<th scope="{"col" if tag == "th" else "row"}" style="text-align:left">{_escaped(cells[0])}</th>'
    scope = ' scope="col"' if tag == "th" else ""
    rest = "".join(f'<{tag}{scope} style="text-align:right">{_escaped(c)}</{tag}>' for c in cells[1:])
    return f"<tr>{first}{rest}</tr>"


def table_html(table: Table) -> str:
    """Return a table as HTML; everything from the data is escaped."""
    header, body, last = _table_cells(table)
    rows = "".join(_html_row(row, "td") for row in body)
    left = empty_bins(table)
    return (
        f"<table><caption>{_escaped('by ' + table.name)}</caption>"
        f"<thead>{_html_row(header, 'th')}</thead><tbody>{rows}</tbody>"
        f"<tfoot>{_html_row(last, 'td')}</tfoot></table>{f'<p>{left}</p>' if left else ''}"
    )


def ece_of(table: Table) -> str:
    """Say what an ECE compares: how often the positive class happens, or how often the most likely one does."""
    return "confidence" if table.top_label else "positive class"


def inference_rows(
    ecd: Interval, temperature: Interval, test: TestResult, mistakes: Mistakes | None = None,
    least: Interval | None = None,
) -> list[Metric]:  # fmt: skip
    """Return ECD, temperature and mistakes with their intervals, and the test; ``least`` is the smaller end of ECD."""
    most, larger = ("", "") if least is None else (" at most", ", with the larger ECD")
    ecd = ecd if least is None else replace(ecd, low=least.low)
    level = f"{100 * ecd.level:g} % interval"

    def ends(interval: Interval, signed: bool) -> str:
        low, high = (number(end, signed=signed) for end in (interval.low, interval.high))
        return f"{level} {low} to {high}"

    between = "" if math.isinf(ecd.value) else f", {ends(ecd, True)}"
    rows = [("ECD", number(ecd.value, signed=True), f"nat{most}{between}: {direction(ecd)}")]
    if not math.isnan(temperature.value):
        rows.append(("temperature", number(temperature.value), f"{ends(temperature, False)}; 1 is calibrated"))
    if mistakes is not None:
        made, announced, ratio = count(mistakes.seen), count(mistakes.announced), mistakes.ratio
        times = f": {ratio.value:.3g} times, {ratio.low:.3g} to {ratio.high:.3g} at {100 * ratio.level:g} %"
        rows.append(("mistakes", made, f"for {announced} announced{times if math.isfinite(ratio.value) else ''}"))
    p = f"{test.p_value:.2g}" if test.p_value >= 1e-4 else "< 0.0001"
    rows.append(("p-value", p, f"of calibration, {test.method} test{larger}"))
    return rows


def metric_rows(s: Summary, bins: Table | None, reliability: Reliability | None) -> list[Metric]:
    """Return name, value and meaning of each metric that exists; ``bins`` gives those that need bins."""
    rows: list[Metric] = []
    if s.n_impossible:
        rest = f"ECD of the others {number(s.ecd_possible, signed=True)}"
        rows.append(("impossible", str(s.n_impossible), f"of {s.n} rows had probability 0; {rest}"))
    if s.numerical_error > 0:
        rows.append(("numerical", number(s.numerical_error), "standard error of ECD from draws alone"))
    if s.sum_entropy is not None:
        rows.append(("NLL", number(s.nll), f"nat, smaller is better; the model expected {number(s.mean_entropy)}"))
    if bins is not None:
        over, under = (number(bins.ece(side)) for side in SIDES)
        rows.append(("ECE", number(bins.ece()), f"({ece_of(bins)}) over-confident part {over}, under {under}"))
        if reliability is not None:
            most = number(reliability.ece_quantile)
            rows.append(
                ("by chance", number(reliability.ece_expected), f"ECE if calibrated; 95 % of the time at most {most}")
            )
        rows.append(("ESCE", number(bins.esce(), signed=True), "observed minus predicted"))
    if s.sum_brier is not None:
        rows.append(("Brier", number(s.brier), "smaller is better"))
        rows.append(("accuracy", number(s.accuracy), f"at a mean confidence of {number(s.mean_confidence)}"))
        if bins is None or bins.top_label:  # otherwise ESCE says the same
            rows.append(("bias", number(s.bias, signed=True), "observed minus predicted, over all rows"))
    return rows


def cox_rows(cox: Cox | None) -> list[Metric]:
    """Return shift and slope, where they exist."""
    if cox is None or math.isnan(cox.slope.value):
        return []
    rows = []
    for name, interval, calibrated in (("shift", cox.shift, 0), ("slope", cox.slope, 1)):
        signed = name == "shift"
        low, high = (number(end, signed=signed) for end in (interval.low, interval.high))
        ends = f"{100 * interval.level:g} % interval {low} to {high}; "
        known = ends if math.isfinite(interval.low) else ""
        rows.append((name, number(interval.value, signed=signed), f"{known}{calibrated} is calibrated"))
    return rows


def class_rows(shifts: ClassShifts | None) -> list[Metric]:
    """Return which class happens most unlike its prediction, where one is shown to."""
    worst = None if shifts is None else shifts.farthest
    if worst is None:
        return []
    ends = f"{worst.ratio.low:.3g} to {worst.ratio.high:.3g}"
    said = f"times as often as predicted: class {_short(worst.name)} ({ends})"
    return [("by class", number(worst.ratio.value), said)]


def look_rows(looks: Sequence[Verdict]) -> list[Metric]:
    """Return what each look at the rows says by itself, where there is more than one."""
    rows: list[Metric] = []
    if len(looks) > _MANY_LOOKS:  # of many, those that can only condemn, and do not, say little
        looks = [one for one in looks if one.decision == "UNSAFE" or (one.look is not None and one.look.acquits)]
    for one in looks if len(looks) > 1 else ():
        look, ecd = one.look, one.ecd
        assert look is not None
        may = "" if look.condemns and look.acquits else ", can only condemn" if look.condemns else ", can only acquit"
        ends = f"{number(ecd.low, signed=True)} to {number(ecd.high, signed=True)}"
        rows.append((look.name, number(ecd.value, signed=True), f"nat, {ends}: by itself {one.decision}{may}"))
    return rows


def evaluation_text(
    title: str,
    verdict: str,
    metrics: Sequence[Metric],
    tables: Sequence[Table],
    places: Sequence[Place] = (),
    remedy: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Return an evaluation as text: the verdict first, then where it is over-confident, then the numbers."""
    name, value = (max(len(row[j]) for row in metrics) for j in (0, 1))
    lines = [f"{a.ljust(name)}  {b.rjust(value)}  {c}" for a, b, c in metrics]
    what = [*_wrapped(f"What to do: {remedy}"), ""] if remedy else []
    beside = [line for note in notes for line in [*_wrapped(f"Note: {note}"), ""]]
    head = [title, "", *_wrapped(verdict), "", *beside, *_places_text(places), *what]
    return "\n".join([*head, *lines, *(f"\n{table_text(table)}" for table in tables)])


def _wrapped(text: str) -> list[str]:
    """Break a text into lines that fit a terminal; a number stays with its percent sign, a word in one piece."""
    return [
        line.replace("\N{NO-BREAK SPACE}%", " %")
        for line in textwrap.wrap(visible(text).replace(" %", "\N{NO-BREAK SPACE}%"), 78, break_on_hyphens=False)
    ]


def titled_text(title: str, cells: Sequence[Sequence[str]], words: Sequence[str]) -> str:
    """Return a table with a title above and sentences below, as text."""
    lines = _align(cells)
    wrapped = [line for text in words for line in textwrap.wrap(text, 79, break_on_hyphens=False)]
    return "\n".join([title, "", lines[0], "-" * len(lines[0]), *lines[1:], "", *wrapped])


def titled_html(title: str, cells: Sequence[Sequence[str]], words: str) -> str:
    """Return a table with a title above and sentences below, as HTML; everything from the data is escaped."""
    head, *body = cells
    rows = "".join(_html_row(row, "td") for row in body)
    table = f"<table><caption>{_escaped(title)}</caption><thead>{_html_row(head, 'th')}</thead>"
    return f"<div>{table}<tbody>{rows}</tbody></table><p>{_escaped(words)}</p></div>"
