"""Numbers with their meaning, and tables: as text that fits a terminal, and as HTML for notebooks."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from .._sums import Tally
from .._sums.causes import axis_name
from .._sums.summary import Summary
from .._sums.table import Table
from .._sums.table_views import SIDES
from ..errors import shortened, visible
from ..families import family_named
from ..inference import Interval, TestResult
from ..inference.bounds import Mistakes, mistakes_text
from ..inference.cox import Cox
from ..inference.forecasts import Forecast, Vector
from ..inference.shifts import ClassShifts
from .places import Place, place_rows
from .reliability import Reliability
from .verdict import Verdict, direction

__all__ = [
    "Metric", "class_rows", "cox_rows", "ece_of", "ends_text", "evaluation_text", "forecast_rows", "inference_rows",
    "kind_of", "look_rows", "metric_rows", "number", "table_html", "table_text", "titled_html", "titled_text",
    "with_ends",
]  # fmt: skip

Cells = list[list[str]]
Metric = tuple[str, str, str]  # name, value, meaning

_PLACES = 5  # that are listed
_SUSPECTED = (
    "?  suspected: the estimate is beyond the limit, but its lower bound, which",
    "   the table shows, is not: more rows would decide",
)
_NAME, _PLACE, _AXIS = 24, 32, 20  # characters of a name, of that of a place, and of that of an axis
_WIDTH = 80  # columns of a terminal
_MANY_LOOKS = 4


def kind_of(tally: Tally) -> str:
    """Say what was predicted: "two classes", "forecasts of a number"."""
    classes = f"{math.exp(tally.most_entropy):.0f}" if math.isfinite(tally.most_entropy) else "several"
    name = family_named(tally.family).words.of(tally.dimension).kind.format(classes=classes) or tally.family
    return name if tally.dimension == 1 else f"{name} in {tally.dimension} dimensions"


def number(value: float, *, signed: bool = False) -> str:
    """Return a metric to four decimals; ``N/A`` where it does not exist."""
    if math.isnan(value):
        return "N/A"
    if math.isinf(value):
        return "+inf" if value > 0 else "-inf"
    value = 0.0 if abs(value) < 0.00005 else value
    form = "+" if signed and value else ""
    return f"{value:{form}.3e}" if abs(value) >= 1e6 else f"{value:{form}.4f}"


def ends_text(x: Interval, *, signed: bool = False) -> str:
    """Write both ends of an interval."""
    return f"{number(x.low, signed=signed)} to {number(x.high, signed=signed)}"


def with_ends(x: Interval | float, signed: bool) -> str:
    """Return a metric, and its interval where it has one."""
    if not isinstance(x, Interval):
        return number(x, signed=signed)
    return number(x.value, signed=signed) + ("" if math.isnan(x.value) else f" ({ends_text(x, signed=signed)})")


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
    note = _empty_bins(table)
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1], *([note] if note else [])])


def _empty_bins(table: Table) -> str:
    """Say how many bins hold no rows, and are not shown; nothing where all do."""
    if table.bins is None or (empty := int((table.n == 0).sum())) == 0:
        return ""
    return f"{empty} of {len(table)} bins {'is' if empty == 1 else 'are'} empty, and not shown."


def _escaped(text: str) -> str:
    from html import escape  # here, since a terminal needs none

    return escape(visible(text))


def _short(name: str, most: int = _NAME) -> str:
    name = visible(name)
    return name if len(name) <= most else name[: most - 3] + "..."


def _places_text(places: Sequence[Place], weight: float) -> list[str]:
    """Return the places as a table of few columns."""
    if not places:
        return []
    rows = place_rows(places[:_PLACES], weight)
    names = [name for name in ("rows", "it says", "happens", "ECD at least", "allowed") if name in rows[0]]
    heads = ["ECD from" if name == "ECD at least" else name for name in names]
    marks = [" ?" if cells["finding"] == "suspected" else "" for cells in rows]
    numbers = [heads, *([cells[name] for name in names] for cells in rows)]
    room = min(_PLACE, _WIDTH - 2 - sum(2 + max(map(len, column)) for column in zip(*numbers, strict=True)))
    labels = ["where", *(_short(cells["place"], room) + mark for cells, mark in zip(rows, marks, strict=True))]
    lines = _align([[label, *row] for label, row in zip(labels, numbers, strict=True)])
    more = len(places) - _PLACES
    notes = [f"and in {more} more place{'' if more == 1 else 's'}"] if more > 0 else []
    if any(marks):
        notes += _SUSPECTED
    return [lines[0], "-" * len(lines[0]), *lines[1:], *notes, ""]


def _html_row(cells: Sequence[str], tag: str) -> str:
    first = f'<th scope="{"col" if tag == "th" else "row"}" style="text-align:left">{_escaped(cells[0])}</th>'
    scope = ' scope="col"' if tag == "th" else ""
    other_cells = "".join(f'<{tag}{scope} style="text-align:right">{_escaped(c)}</{tag}>' for c in cells[1:])
    return f"<tr>{first}{other_cells}</tr>"


def table_html(table: Table) -> str:
    """Return a table as HTML; everything from the data is escaped."""
    header, body, last = _table_cells(table)
    rows = "".join(_html_row(row, "td") for row in body)
    note = _empty_bins(table)
    return (
        f"<table><caption>{_escaped('by ' + table.name)}</caption>"
        f"<thead>{_html_row(header, 'th')}</thead><tbody>{rows}</tbody>"
        f"<tfoot>{_html_row(last, 'td')}</tfoot></table>{f'<p>{note}</p>' if note else ''}"
    )


def ece_of(table: Table) -> str:
    """Say what an ECE compares: how often the positive class happens, or how often the most likely one does."""
    return "confidence" if table.top_label else "positive class"


def inference_rows(
    ecd: Interval, temperature: Interval, test: TestResult, mistakes: Mistakes | None = None,
    smaller_end: Interval | None = None,
) -> list[Metric]:  # fmt: skip
    """Return ECD, temperature and mistakes with their intervals, and the test; ``smaller_end`` is that of ECD."""
    at_most, larger = ("", "") if smaller_end is None else (" at most", ", with the larger ECD")
    ecd = ecd if smaller_end is None else replace(ecd, low=smaller_end.low)
    level = f"{100 * ecd.level:g} % interval"
    between = "" if math.isinf(ecd.value) else f", {level} {ends_text(ecd, signed=True)}"
    rows = [("ECD", number(ecd.value, signed=True), f"nat{at_most}{between}: {direction(ecd)}")]
    if not math.isnan(temperature.value):
        meaning = f"{level} {ends_text(temperature)}; 1 is calibrated"
        rows.append(("temperature", number(temperature.value), meaning))
    if mistakes is not None:
        made, announced, ratio = mistakes_text(mistakes.seen), mistakes_text(mistakes.announced), mistakes.ratio
        times = f": {ratio.value:.3g} times, {ratio.low:.3g} to {ratio.high:.3g} at {100 * ratio.level:g} %"
        rows.append(("mistakes", made, f"for {announced} announced{times if math.isfinite(ratio.value) else ''}"))
    p = f"{test.p_value:.2g}" if test.p_value >= 1e-4 else "< 0.0001"
    rows.append(("p-value", p, f"of calibration, {test.method} test{larger}"))
    return rows


def metric_rows(s: Summary, bins: Table | None, reliability: Reliability | None) -> list[Metric]:
    """Return name, value and meaning of each metric that exists; ``bins`` gives those that need bins."""
    rows: list[Metric] = []
    if s.n_impossible:
        possible = f"ECD of the others {number(s.ecd_possible, signed=True)}"
        rows.append(("impossible", str(s.n_impossible), f"of {s.n} rows had probability 0; {possible}"))
    if s.numerical_error > 0:
        rows.append(("numerical", number(s.numerical_error), "standard error of ECD from draws alone"))
    if s.sum_entropy is not None:
        rows.append(("NLL", number(s.nll), f"nat, smaller is better; the model expected {number(s.mean_entropy)}"))
    if bins is not None:
        over, under = (number(bins.ece(side)) for side in SIDES)
        rows.append(("ECE", number(bins.ece()), f"({ece_of(bins)}) over-confident part {over}, under {under}"))
        if reliability is not None:
            meaning = f"ECE if calibrated; 95 % of the time at most {number(reliability.ece_quantile)}"
            rows.append(("by chance", number(reliability.ece_expected), meaning))
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
        ends = f"{100 * interval.level:g} % interval {ends_text(interval, signed=signed)}; "
        known = ends if math.isfinite(interval.low) else ""
        rows.append((name, number(interval.value, signed=signed), f"{known}{calibrated} is calibrated"))
    return rows


def class_rows(shifts: ClassShifts | None) -> list[Metric]:
    """Return which class happens most unlike its prediction, where one is shown to."""
    worst = None if shifts is None else shifts.farthest
    if worst is None:
        return []
    ends = f"{worst.ratio.low:.3g} to {worst.ratio.high:.3g}"
    meaning = f"times as often as predicted: class {_short(worst.name)} ({ends})"
    return [("by class", number(worst.ratio.value), meaning)]


def look_rows(looks: Sequence[Verdict]) -> list[Metric]:
    """Return what each look at the rows says by itself, where there is more than one."""
    rows: list[Metric] = []
    if len(looks) > _MANY_LOOKS:  # of many, those that can only condemn, and do not, say little
        looks = [v for v in looks if v.decision == "UNSAFE" or (v.look is not None and v.look.acquits)]
    for verdict in looks if len(looks) > 1 else ():
        look, ecd = verdict.look, verdict.ecd
        assert look is not None
        may = (
            ""
            if look.condemns and look.acquits
            else ", cannot make it SAFE"
            if look.condemns
            else ", cannot make it UNSAFE"
        )
        meaning = f"nat, {ends_text(ecd, signed=True)}: by itself {verdict.decision}{may}"
        rows.append((look.name, number(ecd.value, signed=True), meaning))
    return rows


def forecast_rows(forecast: Forecast) -> list[Metric]:
    """Return what forecasters look at, of forecasts of a number or of a vector."""
    held = {round(100 * c.level): c for c in forecast.coverage}
    ninety = held.pop(90)
    share, fifty = ninety.share, held.pop(50).share
    known = f"{share.low:.3f} to {share.high:.3f}" if share.low > 0.0 or share.high < 1.0 else "no interval"
    others = ", ".join(f"{c.share.value:.3f} at {level} %" for level, c in held.items())
    regions = "intervals of 90 %"
    if forecast.vector is not None or forecast.axes:
        regions = "ellipsoids of 90 %" + (" of the draws" if forecast.vector is None else "")
    said = forecast.said.replace("its standard deviations are", "standard deviations")
    spread = ("spread", number(forecast.spread.value), said)
    coverage = ("coverage", number(share.value), f"of {regions}, {known}")
    half = ("at 50 %", number(fifty.value), f"coverage; {others}")
    if forecast.vector is not None:
        return [spread, *_vector_rows(forecast.vector), coverage, half]
    if forecast.axes:
        return [spread, *_axis_rows(forecast.axes), coverage, half]
    bias = f", {ends_text(forecast.bias, signed=True)}" if math.isfinite(forecast.bias.low) else ""
    width, score = f"intervals of 90 %: {ninety.width:.3g}", f"interval score of 90 %: {ninety.score:.4g}"
    return [
        spread,
        coverage,
        half,
        ("bias", number(forecast.bias.value, signed=True), f"outcome minus forecast, over spread{bias}"),
        ("sharpness", _four_digits(forecast.sharpness), f"mean standard deviation; {width}"),
        ("CRPS", _four_digits(forecast.crps), f"smaller is better; {score}"),
    ]


def _vector_rows(vector: Vector) -> list[Metric]:
    """Return the axis that is farthest off, and what else is shown of directions, correlations and bias."""
    named = [shortened(axis_name(vector.names, k), _AXIS) for k in range(len(vector.spread))]
    rows = [_worst_axis(vector.spread, named)]
    for name, extreme, shown in (
        ("widest", vector.largest, vector.largest.factor.low > 1.0),
        ("narrowest", vector.smallest, vector.smallest.factor.high < 1.0),
    ):
        if shown:
            rows.append((name, number(extreme.factor.value), f"{_in_brackets(extreme.factor)} along {extreme}"))
    if (pair := vector.farthest) is not None:
        axes = " and ".join(named[k] if vector.names else str(k) for k in pair.axes)
        meaning = f"of {'' if vector.names else 'axes '}{axes} {_in_brackets(pair.seen)}; {pair.stated:+.2f} is stated"
        rows.append(("correlation", number(pair.seen.value, signed=True), meaning))
    return rows + _bias_rows(vector.bias, named, "")


def _axis_rows(axes: Sequence[Forecast]) -> list[Metric]:
    """Return the axis that is farthest off, a bias that is shown, and the score of each of a few axes."""
    named = [f"axis {k}" for k in range(len(axes))]
    other_axes = [f"{axis.crps:.4g} along {name}" for axis, name in zip(axes, named, strict=True)][1:5]
    scores = ", ".join([f"along {named[0]}", *other_axes, *(["..."] if len(axes) > 5 else [])])
    return [
        _worst_axis([axis.spread for axis in axes], named),
        *_bias_rows([axis.bias for axis in axes], named, ", over spread"),
        ("CRPS", _four_digits(axes[0].crps), f"{scores}; smaller is better"),
    ]


def _worst_axis(spread: Sequence[Interval], named: Sequence[str]) -> Metric:
    worst, least = max(range(len(spread)), key=lambda k: spread[k].value), min(x.value for x in spread)
    meaning = f"along {named[worst]} {_in_brackets(spread[worst])}, the largest; smallest {least:.3g}"
    return "by axis", number(spread[worst].value), meaning


def _bias_rows(bias: Sequence[Interval], named: Sequence[str], unit: str) -> list[Metric]:
    """Return the largest bias, where one is shown."""
    off = max(range(len(bias)), key=lambda k: abs(bias[k].value))
    if not (bias[off].low > 0.0 or bias[off].high < 0.0):
        return []
    meaning = f"along {named[off]} {_in_brackets(bias[off])}: outcome minus forecast{unit}"
    return [("bias", number(bias[off].value, signed=True), meaning)]


def _four_digits(value: float) -> str:
    """Return a number in units of the outcome, which may be of any size."""
    return f"{value:.4g}"


def _in_brackets(x: Interval) -> str:
    return f"({x.low:.3g} to {x.high:.3g})" if math.isfinite(x.high) else "(no interval)"


def evaluation_text(
    title: str,
    verdict: str,
    metrics: Sequence[Metric],
    tables: Sequence[Table],
    places: Sequence[Place] = (),
    weight: float = math.nan,
    remedy: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Return an evaluation as text: the verdict first, then where it is over-confident, then the numbers."""
    name, value = (max(len(row[j]) for row in metrics) for j in (0, 1))
    lines = [line for a, b, c in metrics for line in _metric_lines(f"{a.ljust(name)}  {b.rjust(value)}  ", c)]
    remedy_lines = [*_wrapped(f"What to do: {remedy}"), ""] if remedy else []
    beside = [line for note in notes for line in [*_wrapped(f"Note: {note}"), ""]]
    head = [title, "", *_wrapped(verdict), "", *beside, *_places_text(places, weight), *remedy_lines]
    return "\n".join([*head, *lines, *(f"\n{table_text(table)}" for table in tables)])


def _metric_lines(start: str, meaning: str) -> list[str]:
    """Return a metric in as many lines as a terminal needs; what follows the first stands below its meaning."""
    room = max(_WIDTH - len(start), 24)
    first, *others = textwrap.wrap(meaning, room, break_on_hyphens=False, break_long_words=False) or [""]
    return [start + first, *(" " * len(start) + line for line in others)]


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
    rows = "".join(_html_row(row, "td") for row in cells[1:])
    table = f"<table><caption>{_escaped(title)}</caption><thead>{_html_row(cells[0], 'th')}</thead>"
    text = "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(_escaped(words).split("`")))
    return f"<div>{table}<tbody>{rows}</tbody></table><p>{text}</p></div>"
