"""The numbers of a report, each with what it says, and its tables: places, slices, bins, groups, classes."""

import math
from collections.abc import Sequence
from dataclasses import replace

from .._sums.summary import Summary
from .._sums.table import Table
from ..families.predictions import family_named
from ..html.course import Course, course_picture
from ..html.frame import PRESS, Column, Finding, Findings, figure, region, section, sorting_table
from ..html.intervals import ecd_gauge, factor_gauge
from ..html.markup import (
    Markup,
    element,
    ends,
    grouped,
    join,
    p_value,
    percent,
    plain,
    rows,
    sentence,
    shortened,
    shown,
    together,
)
from ..html.notebook import slices_picture, slices_table
from ..inference.directions import has_directions
from ..inference.results import Interval
from ..inference.shifts import ClassShifts
from ..judge.display import class_rows, count, cox_rows, ece_of, look_rows, place_rows
from ..judge.evaluation import Evaluation
from ..judge.forecast_rows import forecast_rows
from ..judge.looks import smaller_end
from ..judge.places import Place
from ..judge.reasons import direction
from ..judge.verdict import UNSAFE, Verdict
from .words import temperature_in_words

__all__ = [
    "FOR_READING",
    "cards",
    "merged_bins",
    "number_rows",
    "slices_section",
    "tables_section",
    "test_name",
    "where_section",
]

Row = tuple[str, str, str]  # name, value, what it says


def test_name(method: str) -> str:
    """Return the name of a method in words."""
    return {"montecarlo": "Monte Carlo", "pearson3": "Pearson III"}.get(method, method)


def cards(findings: Findings) -> Markup:
    """Return the scales of the verdict, with a gauge each: ECD, temperature, and the mistakes of classifiers."""
    evaluation, verdict = findings.evaluation, findings.verdict
    ecd, temperature, least = verdict.ecd, verdict.temperature, smaller_end(verdict.looks)
    ecd = ecd if least is None else replace(ecd, low=least.low)
    side: str = direction(ecd)
    if side == "no clear direction":
        side = "as surprised as announced" if ecd.low == ecd.high else "the true value may lie on either side of 0"
    said = temperature_in_words(evaluation.family, temperature.value, temperature.method, evaluation.dimension)
    said += "; a temperature of 1 is not ruled out" if temperature.low <= 1.0 <= temperature.high else ""
    parts = [
        _card(
            _heading("ECD", "surprise beyond what it announced"),
            _figure(ecd, "nat" if least is None else "nat at most"),
            f"{sentence(side)}." if least is None else f"{shown(least.value, signed=True)} at least. {sentence(side)}.",
            ecd_gauge("ecd-gauge", ecd, findings.limit),
        ),
        _card(
            _heading("Temperature", "the one that fits the data best; 1 is calibrated"),
            _figure(temperature, ""),
            f"{sentence(said)}.",
            factor_gauge("temperature-gauge", "Temperature", temperature, verdict.max_temperature),
        ),
    ]
    return element("div", *parts, _mistakes(verdict), class_="cards")


def _mistakes(verdict: Verdict) -> Markup | None:
    found = verdict.mistakes
    if found is None:
        return None
    said = f"It announced {count(found.announced)} mistakes and made {count(found.seen)}."
    about = _heading("Mistakes", "made, divided by announced")
    gauge = factor_gauge("mistakes-gauge", "Mistakes", found.ratio, verdict.limits.max_ratio)
    return _card(about, _figure(found.ratio, ""), said, gauge)


def _card(heading: Markup, figure: Markup, said: str, gauge: Markup | None) -> Markup:
    return element("div", heading, figure, element("p", said, class_="says"), gauge, class_="card")


def _heading(name: str, about: str) -> Markup:
    return element("h3", name, " ", element("span", about, class_="about"))


def _figure(interval: Interval, unit: str) -> Markup:
    """Return a value in large type, and its interval where it says more than the value."""
    signed, exists = bool(unit), not math.isnan(interval.value)
    value = element("span", shown(interval.value, signed=signed), class_="value")
    figure = element("p", value, f" {unit}" if unit and exists else None, class_="figure")
    if not exists or interval.low == interval.high == math.inf:
        return figure
    between = f"{percent(interval.level)} interval {ends(interval, signed=signed)}"
    return join([figure, element("p", between, class_="between")])


def number_rows(evaluation: Evaluation, verdict: Verdict) -> list[Row]:
    """Return every number that exists."""
    s, test = evaluation.summary, evaluation.test
    found: list[Row] = [("rows", grouped(s.n), _weighted(evaluation))]
    if s.n_impossible:
        rest = f"ECD of the others is {shown(s.ecd_possible, signed=True)}"
        found.append(("impossible", grouped(s.n_impossible), f"outcomes happened that had probability 0; {rest}"))
    if evaluation.n_certain:
        found.append(("certain", grouped(evaluation.n_certain), "rows give some outcome a probability of exactly 0"))
    larger = "" if smaller_end(verdict.looks) is None else ", with the larger ECD"
    how = f"of calibration, {test_name(test.method)} test{larger}"
    found.append(("p-value", p_value(test.p_value), f"{how}; if it is small, a calibrated model is rarely so far off"))
    found += look_rows(verdict.looks) + forecast_rows(evaluation.forecast)
    if not s.n_impossible:
        found += cox_rows(evaluation.cox) + class_rows(evaluation.class_shifts)
    if family_named(evaluation.family).chi_square:
        d = evaluation.dimension
        found.append(
            ("NEES", shown(d + 2.0 * s.ecd), f"{d}, the dimension, is calibrated; a larger value is over-confident")
        )
    if s.sum_entropy is not None:
        found.append(
            ("NLL", shown(s.nll), f"nat per row, smaller is better; the model expected {shown(s.mean_entropy)}")
        )
    found += _of_bins(evaluation)
    if s.sum_brier is not None:
        found.append(("Brier", shown(s.brier), "smaller is better"))
        found.append(("accuracy", shown(s.accuracy), f"at a mean confidence of {shown(s.mean_confidence)}"))
        found.append(("bias", shown(s.bias, signed=True), _bias(s.bias)))
    if not math.isnan(verdict.worst_share):
        said = "of all excess above 0 is in the most surprising 1 % of the rows; near 100 %, a few rows decide"
        found.append(("worst 1 %", percent(verdict.worst_share), said))
    if s.numerical_error > 0.0:
        found.append(
            (
                "numerical",
                shown(s.numerical_error),
                "nat: the part of the standard error of ECD that comes from random draws",
            )
        )
    return found


def _weighted(evaluation: Evaluation) -> str:
    s = evaluation.summary
    return "of equal weight" if s.weight == s.n else f"of a total weight of {plain(s.weight)}"


def _of_bins(evaluation: Evaluation) -> list[Row]:
    table, found = evaluation.bins, evaluation.reliability
    if table is None or math.isnan(evaluation.ece):
        return []
    over, under = shown(evaluation.ece_overconfident), shown(evaluation.ece_underconfident)
    rows = [
        (
            f"ECE ({ece_of(table)})",
            shown(evaluation.ece),
            f"mean distance over {len(table)} bins: over-confident part {over}, under-confident {under}",
        )
    ]
    if found is not None:
        most = shown(found.ece_quantile)
        rows.append(("ECE by chance", shown(found.ece_expected), f"if calibrated; 95 % of the time at most {most}"))
    rows.append(("ESCE", shown(evaluation.esce, signed=True), "observed minus predicted, mean over the bins"))
    if found is not None:
        test = found.spiegelhalter
        side = "larger than" if test.statistic > 0.0 else "smaller than" if test.statistic < 0.0 else "as"
        said = f"p-value of Spiegelhalter's test: the Brier score is {side} the model expects"
        rows.append(("Spiegelhalter", p_value(test.p_value), said))
    return rows


def _bias(bias: float) -> str:
    more = "more" if bias > 0.0 else "less"
    return "observed minus predicted" + ("" if bias == 0.0 else f": it happens {more} often than predicted")


FOR_READING = "Bins decide nothing: the verdict looks at ranges of its own."
_PLACES = 50  # in their table
_GROUPS = 175  # in their table
_LONGEST = 60  # characters of a name


def where_section(findings: Findings) -> Markup:
    """Return the picture along the predictions, and the places that the verdict names."""
    evaluation, verdict = findings.evaluation, findings.verdict
    limits = verdict.limits
    image = course_picture("along", Course.of(evaluation.deciding.local, limits.local_threshold))
    parts: list[Markup] = [element("p", together(_lead(evaluation, verdict)), class_="lead")]
    if image is not None:
        said = (
            "Each step is a range of the predictions with at least "
            f"{percent(limits.min_share)} of the rows. Above 0 the model is over-confident there, below 0 "
            "under-confident. A filled diamond is beyond the limit; a hollow one is suspected to be. The grey bounds "
            "hold for all ranges together. The frame shows the worst range, which may be longer than a step, or of one "
            "predicted class."
        )
        parts.append(element("figure", image, element("figcaption", together(said)), class_="beside"))
    if verdict.where:
        parts += _places(verdict.where)
    return section("where", "Where", *parts)


def _lead(evaluation: Evaluation, verdict: Verdict) -> str:
    """Say in a sentence or two what was found, and what was looked at."""
    if not verdict.limits.everywhere:
        return "Only averages were judged: the verdict did not look at places."
    alike = "" if len(evaluation.local) else "Its predictions are all alike, or have no order, so there are no ranges."
    if alike and evaluation.groups is None and not has_directions(evaluation.tally):
        return f"Only the averages were judged. {alike}"
    if verdict.shown:
        count = len(verdict.shown)
        found = f"In {count} place{'' if count == 1 else 's'} it is over-confident beyond the limit."
    elif verdict.where:
        found = "No place is shown to be over-confident beyond the limit, but some are suspected."
    elif verdict.on_average == UNSAFE:
        found = "It is over-confident on average, and no place is shown to be worse."
    else:
        found = "No place is shown to be over-confident beyond the limit, and none is suspected."
    small = f"{sentence(str(verdict.too_small))}." if verdict.too_small.count else ""
    return " ".join(filter(None, (found, alike, small)))


def _places(places: tuple[Place, ...]) -> list[Markup]:
    caption = "Places, the worst first"
    listed = places[:_PLACES]
    found = place_rows(listed)
    first, *numbers, last = (name if name != "happens" else "it happens" for name in found[0])
    middle = [element("th", name, scope="col", class_="n") for name in numbers]
    head = element("tr", element("th", first, scope="col"), *middle, element("th", last, scope="col"))
    body = join(_place_row(place, list(cells.values())) for place, cells in zip(listed, found, strict=True))
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", body), class_="places"
    )
    left = len(places) - _PLACES
    said = "ECD is in nats. Of ranges that overlap, the worst is listed."
    if any(place.type == "group" for place in places):
        said += " “Wrong” counts the rows in which something other than the likeliest outcome happened."
    more = [f" {grouped(left)} more places are in the JSON document." if left > 0 else ""]
    return [region(table, caption), element("p", said, *more, class_="note")]


def _place_row(place: Place, texts: Sequence[str]) -> Markup:
    _, _, *cells, finding = texts
    shown = [rows(place.n).split(" row")[0], *(together(cell).replace("inf", "∞") for cell in cells)]
    return element(
        "tr",
        element("th", element("bdi", together(shortened(place.brief, _LONGEST))), scope="row"),
        *(element("td", cell, class_="n") for cell in shown),
        element("td", finding),
        class_="beyond" if place.shown else "suspected",
    )


def _key_table(table: Table, found: Sequence[Finding], caption: str) -> Markup:
    """Return the table of some ones in their order, and of all rows at its foot."""
    total = table.total
    names = ["rows", "share"]
    names += ["predicted", "observed", "ESCE"] if total.sum_predicted is not None else []
    names += ["NLL"] if total.sum_entropy is not None and table.bins is None else []
    bins = table.bins is not None  # they come in their order, groups with the largest ECD first
    first = Column(shortened(table.name, 40), "place" if bins else "text", "ascending" if bins else None)
    order = {} if bins else {"ECD": "descending"}
    columns = [first, *(Column(name, "number", order.get(name)) for name in [*names, "ECD", "at least", "at most"])]
    columns.append(Column("finding", "text"))
    predicted, observed = table.predicted.tolist(), table.observed.tolist()
    body = [
        _row(one, _numbers(names, table[table.keys[k]], predicted[k], observed[k], one.share))
        for one in found
        for k in (one.index,)
    ]
    means = (total.mean_confidence, total.accuracy) if table.top_label else (total.mean_predicted, total.mean_observed)
    last = [*_numbers(names, total, *means, 1.0), shown(total.ecd, signed=True), "", "", ""]
    foot = element("tr", element("th", "all rows", scope="row"), *map(_cell, last))
    return sorting_table(columns, body, caption, foot)


def _class_table(shifts: ClassShifts, caption: str) -> Markup:
    """Return how often each class was predicted and happened."""
    names = ("rows predicted", "happened", "ratio", "at least", "at most", "shift of its logit", "at least", "at most")
    columns = [Column("class", "text"), *(Column(name, "number") for name in names)]
    body = []
    for each in shifts.classes:
        counts = [f"{each.predicted:.5g}", f"{each.observed:.5g}"]
        cells = [*counts, *_ends(each.ratio, False), *_ends(each.shift, True)]
        name = element("th", element("bdi", shortened(each.name, _LONGEST)), scope="row")
        body.append(element("tr", name, *map(_cell, cells)))
    return sorting_table(columns, body, caption)


def _ends(interval: Interval, signed: bool) -> list[str]:
    return [
        "N/A" if math.isinf(x) or math.isnan(x) else shown(x, signed=signed)
        for x in (interval.value, interval.low, interval.high)
    ]


def _of_classes(shifts: ClassShifts) -> str:
    said = "A calibrated class has a ratio of 1 and a shift of 0. Each interval holds by itself."
    if math.isnan(shifts.p_shift):
        return f"{said} There are no intervals here, because rows depend on each other."
    chance = p_value(shifts.p_shift)
    return f"{said} If every class happened as often as predicted, counts so far off would have a p-value of {chance}."


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


def _row(one: Finding, numbers: Sequence[str]) -> Markup:
    ecd = [shown(x, signed=True) for x in (one.ecd.value, one.ecd.low, one.ecd.high)]
    said = "no rows" if math.isnan(one.ecd.value) else one.said
    name = element("th", element("bdi", shortened(one.name, _LONGEST)), scope="row")
    cells = map(_cell, [*numbers, *ecd, said])
    return element("tr", name, *cells, class_="beyond" if one.beyond else None)


def merged_bins(findings: Findings) -> str:
    """Say that bins are not shown one by one, where that is so."""
    made, count = findings.evaluation.bins, len(findings.in_bins)
    if made is None or len(made) == count:
        return ""
    return f" The {grouped(len(made))} bins are joined to {count} here."


def tables_section(findings: Findings) -> Markup | None:
    """Return the tables of bins and groups; None where there are none."""
    parts = []
    if findings.bins is not None:
        parts.append(_key_table(findings.bins, findings.in_bins, f"Bins, by {findings.bins.name}"))
        many = merged_bins(findings)
        parts += [element("p", many, class_="note")] if many else []
    groups, found = findings.evaluation.groups, findings.in_groups
    if groups is not None and found:
        parts.append(_key_table(groups, found[:_GROUPS], "Groups, the worst first"))
        if len(found) > _GROUPS:
            left = f"{grouped(len(found) - _GROUPS)} of {grouped(len(found))} groups are left out"
            parts.append(element("p", f"{left}, none of them with a larger ECD than those shown.", class_="note"))
    shifts = findings.evaluation.class_shifts
    if shifts is not None and not findings.evaluation.summary.n_impossible:
        parts.append(_class_table(shifts, "Classes"))
        parts.append(element("p", _of_classes(shifts), class_="note"))
    if not parts:
        return None
    said = "The bounds “at least” and “at most” of bins and groups hold for all rows of a table together. "
    said += f"{FOR_READING} " if findings.bins is not None else ""
    return section("tables", "The tables", element("p", said, PRESS, class_="lead"), *parts)


_LISTED = 10  # features that were left out


def slices_section(findings: Findings) -> Markup | None:
    """Return the slices that were found, as bars with their intervals and as a table; None where none were sought."""
    slices = findings.evaluation.slices
    if slices is None:
        return None
    limit = findings.verdict.limits.local_threshold
    parts: list[Markup] = [element("p", together(sentence(slices.sentence)), class_="lead")]
    image = slices_picture("slices-found", slices, limit)
    if image is not None:
        caption = (
            "Each bar is a slice: the rows that fulfil its conditions. It was found on one half of the rows, and this "
            f"is what the other half tells. The intervals hold together at {percent(slices.level)}. Of a calibrated "
            f"model none would be here, as a rule; {plain(limit)} nat a dimension is allowed."
        )
        parts += [figure("Slices, the worst first", image, caption), region(slices_table(slices), "The slices")]
    if slices.left_out:
        said = "; ".join(f"{name}: {why}" for name, why in slices.left_out[:_LISTED])
        more = f"; and {len(slices.left_out) - _LISTED} more" if len(slices.left_out) > _LISTED else ""
        parts.append(element("p", together(f"Features that were left out: {said}{more}."), class_="note"))
    return section("slices", "For whom", *parts)
