"""The key numbers, each with what it says; and beside those after recalibration."""

import math

from ..families.predictions import family_named
from ..html.findings import Findings
from ..html.frame import region, section
from ..html.intervals import ecd_gauge, factor_gauge
from ..html.markup import Markup, element, join, sentence, shortened, together, with_code
from ..html.numbers import ends, grouped, p_value, percent, plain, shown
from ..inference.results import Interval, direction
from ..judge.display import class_rows, count, cox_rows, ece_of
from ..judge.evaluation import Evaluation
from ..judge.verdict import Verdict
from .words import temperature_in_words

__all__ = ["after_section", "cards", "number_rows", "test_name"]

Row = tuple[str, str, str]  # name, value, what it says


def test_name(method: str) -> str:
    """Return the name of a method in words."""
    return {"montecarlo": "Monte Carlo", "pearson3": "Pearson III"}.get(method, method)


def cards(findings: Findings) -> Markup:
    """Return the scales of the verdict, with a gauge each: ECD, temperature, and the mistakes of classifiers."""
    evaluation, verdict = findings.evaluation, findings.verdict
    ecd, temperature = verdict.ecd, verdict.temperature
    side: str = direction(ecd)
    if side == "no clear direction":
        side = "as surprised as announced" if ecd.low == ecd.high else "it may lie on either side of 0"
    said = temperature_in_words(evaluation.family, temperature.value, temperature.method)
    said += "; 1 is not ruled out" if temperature.low <= 1.0 <= temperature.high else ""
    parts = [
        _card(
            _heading("ECD", "surprise beyond what it announced"),
            _figure(ecd, "nat"),
            f"{sentence(side)}.",
            ecd_gauge("ecd-gauge", ecd, findings.limit),
        ),
        _card(
            _heading("Temperature", "the data ask for it; 1 is calibrated"),
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
    about = _heading("Mistakes", "made over announced")
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
    how = f"of calibration, {test_name(test.method)} test; small: a calibrated model is rarely so far off"
    found.append(("p-value", p_value(test.p_value), how))
    if not s.n_impossible:
        found += cox_rows(evaluation.cox) + class_rows(evaluation.class_shifts)
    if family_named(evaluation.family).chi_square:
        d = evaluation.dimension
        found.append(("NEES", shown(d + 2.0 * s.ecd), f"{d}, the dimension, is calibrated; larger is over-confident"))
    if s.sum_entropy is not None:
        found.append(("NLL", shown(s.nll), f"nat a row, smaller is better; the model expected {shown(s.mean_entropy)}"))
    found += _of_bins(evaluation)
    if s.sum_brier is not None:
        found.append(("Brier", shown(s.brier), "smaller is better"))
        found.append(("accuracy", shown(s.accuracy), f"at a mean confidence of {shown(s.mean_confidence)}"))
        found.append(("bias", shown(s.bias, signed=True), _bias(s.bias)))
    if not math.isnan(verdict.worst_share):
        said = "of all excess above 0 lies in the most surprising 1 % of the rows; near 100 %, a few rows decide"
        found.append(("worst 1 %", percent(verdict.worst_share), said))
    if s.numerical_error > 0.0:
        found.append(("numerical", shown(s.numerical_error), "nat: standard error of ECD that comes from draws alone"))
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


def after_section(before: Evaluation, was: Verdict, after: Evaluation) -> Markup:
    """Return both evaluations side by side; the rows may be others."""
    now = after.verdict
    caption = "Before and after"
    names = (("number", None), ("before", "n"), ("after", "n"))
    head = element("tr", *(element("th", name, scope="col", class_=numeric) for name, numeric in names))
    body = [
        element("tr", element("th", a, scope="row"), *(element("td", x, class_="n") for x in (b, c)))
        for a, b, c in _both(before, was, after, now)
    ]
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_="pair"
    )
    said = element("p", with_code(sentence(str(now))), class_="lead")
    return section("after", "After recalibration", said, region(table, caption))


def _both(before: Evaluation, was: Verdict, after: Evaluation, now: Verdict) -> list[Row]:
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
