"""The key numbers, each with what it says."""

import math

from ..display import class_rows, count, cox_rows, ece_of
from ..evaluation import Evaluation
from ..inference.results import Interval, direction
from ..verdict import Verdict
from .findings import Findings
from .gauges import ecd_gauge, factor_gauge
from .markup import Markup, element, join
from .numbers import ends, grouped, percent, plain, shown, together
from .words import sentence, temperature_in_words

__all__ = ["cards", "number_rows", "number_table", "p_value", "test_name"]

Row = tuple[str, str, str]  # name, value, what it says


def p_value(value: float) -> str:
    """Return a p-value to two digits."""
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def test_name(method: str) -> str:
    """Return the name of a method in words."""
    return {"montecarlo": "Monte Carlo", "pearson3": "Pearson III"}.get(method, method)


def cards(findings: Findings) -> Markup:
    """Return the scales of the verdict, with a gauge each: ECD, temperature, and the mistakes of classifiers."""
    evaluation, verdict = findings.evaluation, findings.verdict
    ecd, temperature = verdict.ecd, verdict.temperature
    side = direction(ecd)
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
    how = f"{test_name(test.method)} test: {test.reason}"
    found.append(("p-value", p_value(test.p_value), f"of calibration, {how}"))
    if not s.n_impossible:
        found += cox_rows(evaluation.cox) + class_rows(evaluation.class_shifts)
    if evaluation.family == "gaussian":
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


def number_table(rows: list[Row]) -> Markup:
    """Return the numbers as a table."""
    body = join(
        element(
            "tr",
            element("th", a, scope="row"),
            element("td", b, class_="n"),
            element("td", together(c), class_="about"),
        )
        for a, b, c in rows
    )
    head = element(
        "tr", *(element("th", name, scope="col") for name in ("number", "value", "what it says")), class_="quiet"
    )
    return element(
        "table",
        element("caption", "The other numbers", class_="quiet"),
        element("thead", head),
        element("tbody", body),
        class_="numbers",
    )
