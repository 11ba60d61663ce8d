"""The numbers of a report, each with what it says, and its tables: places, slices, bins, groups, classes."""

import math
from collections.abc import Sequence
from dataclasses import replace

from .._sums.summary import Summary
from .._sums.table import Table
from ..families import family_named
from ..html import (
    Markup,
    element,
    grouped,
    interval_text,
    join,
    metric_text,
    p_value,
    percent,
    plain,
    rows_text,
    sentence,
    shortened,
    unbroken,
)
from ..html.course import Course, course_picture
from ..html.frame import (
    SORT_HINT,
    Finding,
    PageFindings,
    TableColumn,
    figure,
    plain_table,
    region,
    section,
    sorting_table,
)
from ..html.intervals import ecd_gauge, factor_gauge
from ..html.notebook import slices_picture, slices_table
from ..inference import Interval
from ..inference.bounds import mistakes_text
from ..inference.directions import has_directions
from ..inference.shifts import ClassShifts
from ..judge.decision import deciding, smaller_end
from ..judge.display import class_rows, cox_rows, ece_of, forecast_rows, look_rows
from ..judge.evaluation import Evaluation
from ..judge.places import Place, place_rows
from ..judge.verdict import UNSAFE, Verdict, direction
from .words import temperature_in_words

__all__ = [
    "BINS_NOTE", "cards", "merged_bins", "number_rows", "slices_section", "tables_section", "test_name",
    "where_section",
]  # fmt: skip

NumberRow = tuple[str, str, str]  # name, value, what it says


def test_name(method: str) -> str:
    """Return the name of a method in words."""
    return {"montecarlo": "Monte Carlo", "pearson3": "Pearson III"}.get(method, method)


def cards(findings: PageFindings) -> Markup:
    """Return the scales of the verdict, with a gauge each: ECD, temperature, and the mistakes of classifiers."""
    evaluation, verdict = findings.evaluation, findings.verdict
    ecd, temperature, smaller = verdict.ecd, verdict.temperature, smaller_end(verdict.looks)
    ecd = ecd if smaller is None else replace(ecd, low=smaller.low)
    # Each look has dimensions of its own: the limit is that of the one which decided, as in the reason.
    allowed = verdict.looks[deciding(verdict.looks)].allowed if verdict.looks else verdict.allowed
    side: str = direction(ecd)
    if side == "no clear direction":
        side = "as surprised as announced" if ecd.low == ecd.high else "the true value may lie on either side of 0"
    meaning = temperature_in_words(evaluation.family, temperature.value, temperature.method, evaluation.dimension)
    meaning += "; a temperature of 1 is not ruled out" if temperature.low <= 1.0 <= temperature.high else ""
    at_least = "" if smaller is None else f"{metric_text(smaller.value, signed=True)} at least. "
    parts = [
        _card(
            ("ECD", "surprise beyond what it announced"),
            _large_number(ecd, "nat" if smaller is None else "nat at most"),
            f"{at_least}{sentence(side)}.",
            ecd_gauge("ecd-gauge", ecd, allowed),
        ),
        _card(
            ("Temperature", "the best fit to the data; 1 is calibrated"),
            _large_number(temperature, ""),
            f"{sentence(meaning)}.",
            factor_gauge("temperature-gauge", "Temperature", temperature, verdict.max_temperature),
        ),
    ]
    return element("div", *parts, _mistakes_card(verdict), class_="cards")


def _mistakes_card(verdict: Verdict) -> Markup | None:
    mistakes = verdict.mistakes
    if mistakes is None:
        return None
    counts = f"It announced {mistakes_text(mistakes.announced)} mistakes and made {mistakes_text(mistakes.seen)}."
    gauge = factor_gauge("mistakes-gauge", "Mistakes", mistakes.ratio, verdict.limits.max_ratio)
    return _card(("Mistakes", "made, divided by announced"), _large_number(mistakes.ratio, ""), counts, gauge)


def _card(title: tuple[str, str], number: Markup, meaning: str, gauge: Markup | None) -> Markup:
    heading = element("h3", title[0], " ", element("span", title[1], class_="about"))
    return element("div", heading, number, element("p", meaning, class_="says"), gauge, class_="card")


def _large_number(interval: Interval, unit: str) -> Markup:
    """Return a value in large type, and its interval where it says more than the value."""
    signed, exists = bool(unit), not math.isnan(interval.value)
    value = element("span", metric_text(interval.value, signed=signed), class_="value")
    number = element("p", value, f" {unit}" if unit and exists else None, class_="figure")
    if not exists or interval.low == interval.high == math.inf:
        return number
    between = f"{percent(interval.level)} interval {interval_text(interval, signed=signed)}"
    return join([number, element("p", between, class_="between")])


def number_rows(evaluation: Evaluation, verdict: Verdict) -> list[NumberRow]:
    """Return every number that exists."""
    s, test = evaluation.summary, evaluation.test
    weight = "of equal weight" if s.weight == s.n else f"of a total weight of {plain(s.weight)}"
    numbers: list[NumberRow] = [("rows", grouped(s.n), weight)]
    if s.n_impossible:
        others = f"ECD of the others is {metric_text(s.ecd_possible, signed=True)}"
        numbers.append(("impossible", grouped(s.n_impossible), f"outcomes happened that had probability 0; {others}"))
    if evaluation.n_certain:
        numbers.append(("certain", grouped(evaluation.n_certain), "rows give some outcome a probability of exactly 0"))
    larger = "" if smaller_end(verdict.looks) is None else ", with the larger ECD"
    how = f"of calibration, {test_name(test.method)} test{larger}"
    about = f"{how}; if it is small, a calibrated model is rarely so far off"
    numbers.append(("p-value", p_value(test.p_value), about))
    numbers += look_rows(verdict.looks) + (forecast_rows(evaluation.forecast) if evaluation.forecast else [])
    if not s.n_impossible:
        numbers += cox_rows(evaluation.cox) + class_rows(evaluation.class_shifts)
    if family_named(evaluation.family).chi_square:
        d = evaluation.dimension
        about = f"{d}, the dimension, is calibrated; a larger value is over-confident"
        numbers.append(("NEES", metric_text(d + 2.0 * s.ecd), about))
    if s.sum_entropy is not None:
        about = f"nat per row, smaller is better; the model expected {metric_text(s.mean_entropy)}"
        numbers.append(("NLL", metric_text(s.nll), about))
    numbers += _bin_numbers(evaluation)
    if s.sum_brier is not None:
        numbers.append(("Brier", metric_text(s.brier), "smaller is better"))
        about = f"at a mean confidence of {metric_text(s.mean_confidence)}"
        numbers.append(("accuracy", metric_text(s.accuracy), about))
        about = "observed minus predicted"
        about += "" if s.bias == 0.0 else f": it happens {'more' if s.bias > 0.0 else 'less'} often than predicted"
        numbers.append(("bias", metric_text(s.bias, signed=True), about))
    if not math.isnan(verdict.worst_share):
        about = "of all excess above 0 is in the most surprising 1 % of the rows; near 100 %, a few rows decide"
        numbers.append(("worst 1 %", percent(verdict.worst_share), about))
    if s.numerical_error > 0.0:
        about = "nat: the part of the standard error of ECD that comes from random draws"
        numbers.append(("numerical", metric_text(s.numerical_error), about))
    return numbers


def _bin_numbers(evaluation: Evaluation) -> list[NumberRow]:
    table, reliability = evaluation.bins, evaluation.reliability
    if table is None or math.isnan(evaluation.ece):
        return []
    over, under = metric_text(evaluation.ece_overconfident), metric_text(evaluation.ece_underconfident)
    about = f"mean distance over {len(table)} bins: over-confident part {over}, under-confident {under}"
    numbers = [(f"ECE ({ece_of(table)})", metric_text(evaluation.ece), about)]
    if reliability is not None:
        about = f"if calibrated; 95 % of the time at most {metric_text(reliability.ece_quantile)}"
        numbers.append(("ECE by chance", metric_text(reliability.ece_expected), about))
    numbers.append(("ESCE", metric_text(evaluation.esce, signed=True), "observed minus predicted, mean over the bins"))
    if reliability is not None:
        test = reliability.spiegelhalter
        side = "larger than" if test.statistic > 0.0 else "smaller than" if test.statistic < 0.0 else "as"
        about = f"p-value of Spiegelhalter's test: the Brier score is {side} the model expects"
        numbers.append(("Spiegelhalter", p_value(test.p_value), about))
    return numbers


BINS_NOTE = "Bins decide nothing: the verdict looks at ranges of its own."
_PLACES_LISTED = 50  # in their table
_GROUPS_LISTED = 175  # in their table
_NAME_LENGTH = 60  # characters of a name


def where_section(findings: PageFindings) -> Markup:
    """Return the picture along the predictions, and the places that the verdict names."""
    evaluation, verdict = findings.evaluation, findings.verdict
    limits = verdict.limits
    image = course_picture("along", Course.of(evaluation.deciding.local, limits.local_threshold))
    parts: list[Markup] = [element("p", unbroken(_lead(evaluation, verdict)), class_="lead")]
    if image is not None:
        caption = (
            "Each step is a range of the predictions. Above 0 the model is over-confident there, below 0 "
            "under-confident. A filled diamond is beyond the limit; a hollow one is suspected to be. The grey bounds "
            "hold for all ranges together. The frame shows the worst range, which may be longer or shorter than a "
            "step, or of one predicted class."
        )
        parts.append(element("figure", image, element("figcaption", unbroken(caption)), class_="beside"))
    if verdict.where:
        parts += _places_table(verdict.where, evaluation.summary.weight)
    return section("where", "Where", *parts)


def _lead(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say in a sentence or two what was found, and what was looked at."""
    if not verdict.limits.everywhere:
        return "Only averages were judged: the verdict did not look at places."
    no_ranges = "Its predictions are all alike, or have no order, so there are no ranges."
    no_ranges = "" if len(evaluation.local) else no_ranges
    if no_ranges and evaluation.groups is None and not has_directions(evaluation.tally):
        return f"Only the averages were judged. {no_ranges}"
    if verdict.shown:
        n_shown = len(verdict.shown)
        finding = f"In {n_shown} place{'' if n_shown == 1 else 's'} it is over-confident beyond the limit."
    elif verdict.where:
        finding = "No place is shown to be over-confident beyond the limit, but some are suspected."
    elif verdict.on_average == UNSAFE:
        finding = "It is over-confident on average, and no place is shown to be worse."
    else:
        finding = "No place is shown to be over-confident beyond the limit, and none is suspected."
    small = f"{sentence(str(verdict.too_small))}." if verdict.too_small.count else ""
    return " ".join(filter(None, (finding, no_ranges, small)))


def _places_table(places: tuple[Place, ...], weight: float) -> list[Markup]:
    listed = places[:_PLACES_LISTED]
    place_cells = place_rows(listed, weight)
    names = [name if name != "happens" else "it happens" for name in place_cells[0]]
    body = [_place_row(place, list(cells.values())) for place, cells in zip(listed, place_cells, strict=True)]
    table = plain_table("Places, the worst first", names, body, numeric=slice(1, -1), class_="places")
    note = "ECD is in nats. Of ranges that overlap, the worst is listed: by its lower bound as a multiple of its limit."
    if any(cells.get("it says", "").endswith("wrong") for cells in place_cells):
        note += " “Wrong”: something other than the likeliest outcome happened."
    more = f" {grouped(left)} more places are in the JSON document." if (left := len(places) - len(listed)) else ""
    return [table, element("p", f"{note}{more}", class_="note")]


def _place_row(place: Place, texts: Sequence[str]) -> Markup:
    _, _, *cells, finding = texts
    number_cells = [rows_text(place.n).split(" row")[0], *(unbroken(cell).replace("inf", "∞") for cell in cells)]
    return element(
        "tr",
        element("th", element("bdi", unbroken(shortened(place.brief, _NAME_LENGTH))), scope="row"),
        *(element("td", cell, class_="n") for cell in number_cells),
        element("td", finding),
        class_="beyond" if place.shown else "suspected",
    )


def _key_table(table: Table, findings: Sequence[Finding], caption: str) -> Markup:
    """Return the table of some bins or groups in their order, with all rows at its foot."""
    total = table.total
    names = ["rows", "share"]
    names += ["predicted", "observed", "ESCE"] if total.sum_predicted is not None else []
    names += ["NLL"] if total.sum_entropy is not None and table.bins is None else []
    bins = table.bins is not None  # they come in their order, groups with the largest ECD first
    first = TableColumn(shortened(table.name, 40), "place" if bins else "text", "ascending" if bins else None)
    order = {} if bins else {"ECD": "descending"}
    numbers = [TableColumn(name, "number", order.get(name)) for name in (*names, "ECD", "at least", "at most")]
    columns = [first, *numbers, TableColumn("finding", "text")]
    predicted, observed = table.predicted.tolist(), table.observed.tolist()
    body = []
    for finding in findings:
        k = finding.index
        cells = _number_cells(names, table[table.keys[k]], predicted[k], observed[k], finding.share)
        body.append(_finding_row(finding, cells))
    means = (total.mean_confidence, total.accuracy) if table.top_label else (total.mean_predicted, total.mean_observed)
    last = [*_number_cells(names, total, *means, 1.0), metric_text(total.ecd, signed=True), "", "", ""]
    foot = element("tr", element("th", "all rows", scope="row"), *map(_cell, last))
    return sorting_table(columns, body, caption, foot)


def _class_table(shifts: ClassShifts, caption: str) -> Markup:
    """Return how often each class was predicted and happened."""
    names = ("rows predicted", "happened", "ratio", "at least", "at most", "shift of its logit", "at least", "at most")
    columns = [TableColumn("class", "text"), *(TableColumn(name, "number") for name in names)]
    body = []
    for each in shifts.classes:
        counts = [f"{each.predicted:.5g}", f"{each.observed:.5g}"]
        cells = [*counts, *_interval_cells(each.ratio, False), *_interval_cells(each.shift, True)]
        name = element("th", element("bdi", shortened(each.name, _NAME_LENGTH)), scope="row")
        body.append(element("tr", name, *map(_cell, cells)))
    return sorting_table(columns, body, caption)


def _interval_cells(interval: Interval, signed: bool) -> list[str]:
    return [
        "N/A" if math.isinf(x) or math.isnan(x) else metric_text(x, signed=signed)
        for x in (interval.value, interval.low, interval.high)
    ]


def _class_note(shifts: ClassShifts) -> str:
    text = "A calibrated class has a ratio of 1 and a shift of 0. Each interval holds by itself."
    if math.isnan(shifts.p_shift):
        return f"{text} There are no intervals here, because rows depend on each other."
    chance = p_value(shifts.p_shift)
    return f"{text} The p-value of a test that every class happens as often as predicted is {chance}."


def _number_cells(names: Sequence[str], s: Summary, predicted: float, observed: float, share: float) -> list[str]:
    texts = {
        "rows": grouped(s.n),
        "share": percent(share),
        "predicted": metric_text(predicted),
        "observed": metric_text(observed),
        "ESCE": metric_text(observed - predicted, signed=True),
        "NLL": metric_text(s.nll),
    }
    return [texts[name] for name in names]


def _cell(text: str) -> Markup:
    return element("td", text, class_="none" if text == "N/A" else None)


def _finding_row(finding: Finding, numbers: Sequence[str]) -> Markup:
    ecd = [metric_text(x, signed=True) for x in (finding.ecd.value, finding.ecd.low, finding.ecd.high)]
    remark = "no rows" if math.isnan(finding.ecd.value) else finding.remark
    name = element("th", element("bdi", shortened(finding.name, _NAME_LENGTH)), scope="row")
    cells = map(_cell, [*numbers, *ecd, remark])
    return element("tr", name, *cells, class_="beyond" if finding.beyond else None)


def merged_bins(findings: PageFindings) -> str:
    """Say that bins are not shown one by one, where that is so."""
    bins, n_drawn = findings.evaluation.bins, len(findings.in_bins)
    if bins is None or len(bins) == n_drawn:
        return ""
    return f" The {grouped(len(bins))} bins are joined to {n_drawn} here."


def tables_section(findings: PageFindings) -> Markup | None:
    """Return the tables of bins and groups; None where there are none."""
    parts = []
    if findings.bins is not None:
        parts.append(_key_table(findings.bins, findings.in_bins, f"Bins, by {findings.bins.name}"))
        merged = merged_bins(findings)
        parts += [element("p", merged, class_="note")] if merged else []
    groups, group_findings = findings.evaluation.groups, findings.in_groups
    if groups is not None and group_findings:
        parts.append(_key_table(groups, group_findings[:_GROUPS_LISTED], "Groups, the worst first"))
        left = len(group_findings) - _GROUPS_LISTED
        if left > 0:
            note = f"{grouped(left)} of {grouped(len(group_findings))} groups are left out, "
            parts.append(element("p", f"{note}none of them with a larger ECD than those shown.", class_="note"))
    shifts = findings.evaluation.class_shifts
    if shifts is not None and not findings.evaluation.summary.n_impossible:
        parts.append(_class_table(shifts, "Classes"))
        parts.append(element("p", _class_note(shifts), class_="note"))
    if not parts:
        return None
    lead = "The bounds “at least” and “at most” of bins and groups hold for all rows of a table together. "
    lead += f"{BINS_NOTE} " if findings.bins is not None else ""
    return section("tables", "The tables", element("p", lead, SORT_HINT, class_="lead"), *parts)


_FEATURES_LISTED = 10  # features that were left out


def slices_section(findings: PageFindings) -> Markup | None:
    """Return the slices that were found, as bars with their intervals and as a table; None where none were sought."""
    slices = findings.evaluation.slices
    if slices is None:
        return None
    limit = findings.verdict.limits.local_threshold
    parts: list[Markup] = [element("p", unbroken(sentence(slices.sentence)), class_="lead")]
    image = slices_picture("slices-found", slices, limit)
    if image is not None:
        caption = (
            "Each bar is a slice: the rows that fulfil its conditions. It was found on one half of the rows, and its "
            f"ECD comes from the other half. The intervals hold together at {percent(slices.level)}. A calibrated "
            f"model rarely has such a slice. Up to {plain(limit)} nat a dimension is allowed."
        )
        parts += [figure("Slices, the worst first", image, caption), region(slices_table(slices), "The slices")]
    if slices.left_out:
        reasons = "; ".join(f"{name}: {why}" for name, why in slices.left_out[:_FEATURES_LISTED])
        left = len(slices.left_out) - _FEATURES_LISTED
        more = f"; and {left} more" if left > 0 else ""
        parts.append(element("p", unbroken(f"Features that were left out: {reasons}{more}."), class_="note"))
    return section("slices", "For whom", *parts)
