"""The report as a file: whole, self-contained, escaped, and true to the evaluation."""

import base64
import dataclasses
import hashlib
import json
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import safecal
from safecal import Evaluation
from safecal._sums.summary import as_sums
from safecal.errors import FileError, InputError
from safecal.html import AxisScale, plain
from safecal.html.course import Course
from safecal.html.diagrams import ExcessShares, ReliabilityPoints, binomial_band, effective_rows, excess_picture
from safecal.html.frame import PageFindings, coarser
from safecal.report import report_html, write_report
from safecal.report.page import pictures_section
from safecal.report.steps import snippet
from safecal.report.tables import cards, where_section
from safecal.report.words import opening, temperature_in_words

from .reports import CASES, HOSTILE, IMAGE, SCRIPT, evaluations

CREATED = datetime(2025, 2, 14, 12, 30, tzinfo=UTC)
VOID = {"br", "circle", "line", "link", "meta", "path", "polygon", "polyline", "rect"}


@dataclasses.dataclass
class Node:
    """An element of the page."""

    tag: str
    attributes: dict[str, str | None]
    parent: "Node | None"
    children: list["Node"] = dataclasses.field(default_factory=list)
    pieces: list[str] = dataclasses.field(default_factory=list)

    def all(self, tag: str | None = None, **attributes: str) -> list["Node"]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        fits = (tag is None or self.tag == tag) and all(self.attributes.get(k) == v for k, v in wanted.items())
        return ([self] if fits else []) + [
            element for child in self.children for element in child.all(tag, **attributes)
        ]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def __getitem__(self, name: str) -> str:
        return self.attributes[name] or ""


class Reader(HTMLParser):
    """Reads a page into nodes, and complains where a tag is not closed by its own."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.open = Node("page", {}, None)
        self.feed(page)
        self.close()
        assert self.open is self.root, f"<{self.open.tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        node = Node(tag, dict(attrs), self.open)
        self.open.children.append(node)
        if tag not in VOID:
            self.open = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.tag, f"</{tag}> closes <{self.open.tag}>"
        assert self.open.parent is not None
        self.open = self.open.parent

    def handle_data(self, data: str) -> None:
        node: Node | None = self.open
        while node is not None:
            node.pieces.append(data)
            node = node.parent


@cache
def page_of(case: str) -> str:
    title = SCRIPT if case == "hostile" else f"The case: {case}"
    source = IMAGE if case == "hostile" else "rows.csv"
    command = f"safecal {IMAGE} {SCRIPT}" if case == "hostile" else None
    return report_html(evaluations()[case], title=title, source=source, command=command, created=CREATED)


@cache
def read(case: str) -> Node:
    return Reader(page_of(case)).root


def words(text: str) -> str:
    return " ".join(text.split())


def visible(node: Node) -> str:
    """Return the text of the page without its scripts and its style."""
    return words("".join(part.text for part in node.all("header") + node.all("main") + node.all("footer")))


def test_every_case_is_named() -> None:
    assert tuple(evaluations()) == CASES


# What every page holds


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_whole_and_small(case: str) -> None:
    page, root = page_of(case), read(case)
    assert page.startswith("<!DOCTYPE html>\n")
    assert len(page.encode()) <= 200_000
    (html,) = root.all("html")
    assert html["lang"] == "en"
    assert len(root.all("h1")) == len(root.all("main")) == len(root.all("header")) == len(root.all("footer")) == 1
    levels = [int(node.tag[1]) for node in root.all() if re.fullmatch("h[1-6]", node.tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [node["id"] for node in root.all() if "id" in node.attributes]
    assert len(set(ids)) == len(ids)
    for node in root.all():
        assert set(node.attributes.get("aria-labelledby", "").split()) <= set(ids)  # type: ignore[union-attr]


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_comes_first(case: str) -> None:
    verdict, root = evaluations()[case].verdict, read(case)
    (main,) = root.all("main")
    first = main.all("section")[0]
    assert first.all("h2")[0].text == verdict.decision
    assert root.all("body")[0]["class"] == verdict.decision.lower()
    assert words(verdict.reason.replace("`", ""))[1:] in words(first.text)
    assert words(evaluations()[case].reading)[1:] in words(first.text)
    assert len(first.all("li")) >= 1
    names = [section["aria-labelledby"] for section in main.all("section")]
    order = ["verdict", "where", "numbers", "fix", "pictures", "tables", "details", "glossary"]
    assert names == [name for name in order if name in names]
    assert set(order) - {"tables", "fix"} <= set(names)


def test_the_glossary_explains_the_words_of_the_page_and_no_others() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    p = np.linspace(0.05, 0.95, 300)
    states = safecal.gaussian(x, np.zeros_like(x), std=0.9).evaluate()
    classes = safecal.evaluate(np.arange(300) % 2, p)
    listed = [{item.text for item in Reader(report_html(one)).root.all("dt")} for one in (states, classes)]
    of_classes = {"ECE", "ECE by chance", "ESCE", "Brier"}
    assert not listed[0] & of_classes
    assert of_classes <= listed[1]
    assert {"ECD", "excess", "surprisal", "nat"} <= listed[0] & listed[1]


@pytest.mark.parametrize("case", CASES)
def test_every_table_can_be_read_aloud(case: str) -> None:
    root = read(case)
    assert len(root.all("table")) >= 3
    for table in root.all("table"):
        assert len(table.all("caption")) == 1
        assert all(cell["scope"] in {"row", "col"} for cell in table.all("th"))
        for row in table.all("tbody")[0].all("tr"):
            assert len(row.all("th")) == 1
    for wide in root.all(class_="wide"):
        assert wide["role"] == "region"
        assert wide["tabindex"] == "0"
        assert wide["aria-label"]


@pytest.mark.parametrize("case", CASES)
def test_every_picture_says_what_it_shows_and_stays_in_its_frame(case: str) -> None:
    root = read(case)
    pictures = root.all("svg", role="img")
    assert len(pictures) >= 1
    for picture in pictures:
        title, described = picture.all("title")[0], picture.all("desc")[0]
        assert picture["aria-labelledby"] == f"{title['id']} {described['id']}"
        assert title.text
        assert described.text
        width, height = map(float, picture["viewbox"].split()[2:])
        for node in picture.all():
            for name in ("x", "x1", "x2", "cx"):
                assert -1 <= float(node.attributes.get(name) or 0) <= width + 1, (node, case)
            for name in ("y", "y1", "y2", "cy"):
                assert -1 <= float(node.attributes.get(name) or 0) <= height + 1, (node, case)
            assert float(node.attributes.get("width") or 0) >= 0
            for x, y in (pair.split(",") for pair in (node.attributes.get("points") or "").split()):
                assert -1 <= float(x) <= width + 3
                assert -1 <= float(y) <= height + 1
    for hidden in (svg for svg in root.all("svg") if "role" not in svg.attributes):
        assert hidden["aria-hidden"] == "true"


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_asked_of_the_network_and_one_script_may_run(case: str) -> None:
    root = read(case)
    for node in root.all():
        assert not {"src", "style", "srcset", "action"} & set(node.attributes)
        assert not [name for name in node.attributes if name.startswith("on")]
        assert node.attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]
        assert node.tag not in {"img", "iframe", "object", "embed", "link", "form", "base"}
    assert not re.search(r"@import|url\(", root.all("style")[0].text)
    (policy,) = (meta["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes)
    scripts = [script for script in root.all("script") if "type" not in script.attributes]
    (script,) = scripts
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


@pytest.mark.parametrize("case", CASES)
def test_the_document_is_embedded_or_said_to_be_left_out(case: str) -> None:
    evaluation, root = evaluations()[case], read(case)
    blocks = root.all("script", id="evaluation")
    if case == "many":
        assert not blocks
        assert "is left out: the file would be larger than 200 kB" in visible(root)
        return
    (block,) = blocks
    assert block["type"] == "application/json"
    assert not set("<>&") & set(block.text)
    document = json.loads(block.text)
    assert document == json.loads(json.dumps(evaluation.to_dict()))
    assert Evaluation.from_dict(document).to_dict() == evaluation.to_dict()


@pytest.mark.parametrize("case", CASES)
def test_no_number_goes_missing(case: str) -> None:
    evaluation, text = evaluations()[case], visible(read(case))
    assert not re.search(r"\bnan\b|\binf\b|NaN|\{|\}", re.sub(r"import safecal.*?print", "", text)), case
    for name in ("nll", "ece", "brier", "accuracy"):
        value = getattr(evaluation, name)
        if math.isfinite(value) and abs(value) < 1e6:
            assert f"{value:.4f}" in text
    assert (str(evaluation.n) if evaluation.n < 10_000 else f"{evaluation.n:,}") in text


# What it says


def test_an_unsafe_model() -> None:
    evaluation, text = evaluations()["unsafe"], visible(read("unsafe"))
    assert "It is more certain than it should be" in text
    assert "Do not act on its confidence." in text
    assert "safecal.SafeTemperature" in text
    assert f"{evaluation.ecd:+.4f} nat" in text
    assert f"95 % interval {evaluation.interval.low:+.4f} to {evaluation.interval.high:+.4f}" in text
    assert f"Its logits are about {evaluation.temperature.value:.3g} times too large." in text
    assert all(place.brief in text for place in evaluation.verdict.where[:5])
    assert f"95 % of the time at most {evaluation.reliability.ece_quantile:.4f}" in text  # type: ignore[union-attr]


def test_a_safe_model() -> None:
    text = visible(read("safe"))
    assert "Its confidence can be trusted" in text
    assert "Safe does not mean good" in text
    assert "SafeTemperature" not in text
    assert "; a temperature of 1 is not ruled out." in text
    assert "SafeTemperature makes it as sharp as is safe" in visible(read("cautious"))


def test_an_undetermined_model() -> None:
    verdict, text = evaluations()["undetermined"].verdict, visible(read("undetermined"))
    assert verdict.rows_needed is not None
    (needed,) = re.findall(r"About ([\d ]+) more rows of the same kind would decide\.", text)
    assert verdict.rows_needed <= int(needed.replace(" ", "")) <= 1.1 * verdict.rows_needed
    assert "too few to say how many" in visible(read("one row"))
    assert "too few to rule any temperature out" in visible(read("one row"))


def test_predictions_that_are_certain_or_impossible() -> None:
    text = visible(read("impossible"))
    assert "Something happened that it called impossible" in text
    assert "2 rows had an outcome that the model had called impossible" in text
    assert "+∞ nat" in text
    assert "clip=5e-3, for example" in text  # half a unit of their second decimal
    text = visible(read("certain"))
    assert "60 of 60 rows give some outcome a probability of exactly 0" in text
    assert "Pass logits instead of probabilities." in text
    assert "`" not in text
    rounded = safecal.evaluate([1, 0] * 30, np.tile([1.0, 0.125], 30))
    assert "clip=5e-4" in rounded.verdict.reason
    assert visible(Reader(report_html(rounded)).root).count("clip=5e-4") == 2
    coarse = safecal.evaluate([1, 0] * 30, np.tile([1.0, 0.1], 30))
    assert "clip=" not in coarse.verdict.reason
    text = visible(Reader(report_html(coarse)).root)
    assert "Or pass probabilities with all their digits." in text
    assert "clip=" not in text
    sure = safecal.evaluate([1, 0] * 300, logits=[800.0, -800.0] * 300)
    assert opening(sure, sure.verdict).place == "Its predictions are almost certain."


def test_a_model_that_says_nothing() -> None:
    text = visible(read("coin tosses"))
    assert "The model says almost nothing." in text
    assert "every prediction is a coin toss or a certainty" in text
    assert "Train it again, or do not use it." in visible(read("useless"))


def test_states_and_densities() -> None:
    evaluation, text = evaluations()["gaussian"], visible(read("gaussian"))
    assert "states in 4 dimensions" in text
    assert "covariances are about" in text
    assert f"NEES{4 + 2 * evaluation.ecd:.4f}" in text
    assert "0.1 nat per dimension, 0.4 nat for 4" in text
    assert "There is no temperature to show: it is not defined for these predictions." in visible(read("unnormalised"))
    assert "its densities should be flatter" in visible(read("density")).lower()


def test_one_dimension_has_standard_deviations() -> None:
    evaluation = safecal.gaussian(np.linspace(-3.0, 3.0, 400), np.zeros(400), std=1.0).evaluate()
    assert "its standard deviations are" in evaluation.verdict.reason
    assert "covariances" not in visible(Reader(report_html(evaluation)).root).replace("covariance that", "")


@pytest.mark.parametrize("name", ["gaussian", "density", "unsafe"])
def test_the_spread_of_surprise_is_drawn_where_there_is_no_reliability(name: str) -> None:
    text = visible(read(name))
    assert ("How often is it surprised, and how much?" in text) == (name != "unsafe")
    assert ("Where the line is above the dashed one" in text) == (name == "gaussian")


def test_the_spread_of_surprise_tells_of_infinite_rows() -> None:
    some = excess_picture("a", ExcessShares(np.array([-0.5, 1.0]), np.array([1.0, 0.6]), None, 0.1))
    assert some is not None
    assert "In 60\N{NO-BREAK SPACE}% of the rows the model was more surprised than it announced." in some
    assert "In 10\N{NO-BREAK SPACE}% the surprise was infinite." in some
    assert excess_picture("a", ExcessShares(np.empty(0), np.empty(0), None, 1.0)) is None


def _of_family(evaluation: Evaluation, family: str) -> Evaluation:
    return dataclasses.replace(evaluation, tally=dataclasses.replace(evaluation.tally, family=family))


def test_a_family_it_does_not_know() -> None:
    text = visible(Reader(report_html(_of_family(evaluations()["gaussian"], "mixture"))).root)
    assert "mixture in 4 dimensions" in text
    assert "Its densities should be flatter, with temperature" in text
    assert "result = predictions.evaluate(" in text


def _bad_group() -> Evaluation:
    z = np.linspace(-4, 4, 4000)
    y = np.random.default_rng(3).random(4000) < 1 / (1 + np.exp(-z))
    group = np.where(np.arange(4000) % 8 == 0, "few", "most")
    return safecal.evaluate(y, logits=z * np.where(group == "few", 2.0, 0.9), by=group, bins=None)


def test_safe_on_average_is_not_safe_everywhere() -> None:
    evaluation = _bad_group()
    verdict = evaluation.verdict
    assert (verdict.decision, verdict.on_average, verdict.shown[0].name) == ("UNSAFE", "SAFE", "group few")
    page = report_html(evaluation)
    text = visible(Reader(page).root)
    assert "In some places it is more certain than it should be" in text
    assert "can be trusted" not in text
    assert 'class="safe"' not in page
    assert "On average its confidence is right, but the average hides places where it is not." in text
    assert "Do not act on its confidence there." in text
    assert "Look at the rows there. Over-confident beyond the limit: group few." in text


def test_the_first_screen_names_place_number_and_what_is_allowed() -> None:
    evaluation = _shifted(20_000)
    place = evaluation.verdict.where[0]
    assert place.type == "range"
    root = Reader(report_html(evaluation)).root
    first = root.all("section")[0]
    assert words(first.all("p", class_="place")[0].text) == place.where[0].upper() + place.where[1:] + "."
    number = words(first.all("p", class_="figure")[0].text)
    assert number.startswith(
        f"{place.ecd.low:.3g} nat more surprise than it announced there: at least that much. Up to 0.2 is"
    )
    assert f"{place.n} rows" in number
    headings = [heading.text for heading in first.all() if re.fullmatch("h[23]", heading.tag)]
    assert headings == ["UNSAFE", "What to do", "What it means", "Why"]


def _shifted(n: int) -> Evaluation:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, n)
    return safecal.evaluate(rng.random(n) < 1 / (1 + np.exp(1 - z)), logits=z)


@pytest.mark.parametrize(
    ("case", "place", "number", "about"),
    [
        (
            "safe",
            "On average, over all rows. None of 58 ranges of its predictions and none of 6 groups is shown to be over",
            "nat",
            "than it announced: at most that much",
        ),
        (
            "cautious",
            "On average, over all rows. None of 58 ranges of its predictions is shown to be over-confident",
            "nat",
            "less surprise than it announced",
        ),
        (
            "undetermined",
            "Over-confidence is neither shown nor ruled out.",
            "nat",
            "than it announced, on average: it may be",
        ),
        (
            "unsafe",
            "On average, over all rows.",
            "nat",
            "than it announced: at least that much, on average. Up to 0.1 is allowed.",
        ),
        ("useless", "On average, over all rows.", "nat", "at least"),
        ("gaussian", "On average, over all rows.", "nat", "Up to 0.4 is allowed."),
        (
            "many",
            "Over-confidence is neither",
            "times",
            "the logits it should give, perhaps. Up to 1.5 times is allowed.",
        ),
        (
            "impossible",
            "In 7 rows.",
            "2 outcomes",
            "happened, although the model had called them impossible. None",
        ),
        ("all impossible", "In 1 row.", "1 outcome", "had called it impossible."),
        ("certain", "Over-confidence is neither shown", "60 rows", "a probability of exactly 0."),
        ("coin tosses", "On average, over all rows. Its predictions have no ranges", "0 nat", "at most"),
    ],
)
def test_the_first_screen_of_every_kind(case: str, place: str, number: str, about: str) -> None:
    opened = opening(evaluations()[case], evaluations()[case].verdict)
    assert f"{opened.place} {opened.by_place}".startswith(place)
    assert opened.number.endswith(number)
    assert about in opened.about


def test_the_worst_place_stands_with_its_own_number() -> None:
    result = evaluations()["useless"]
    opened, place = opening(result, result.verdict), result.verdict.where[0]
    assert opened.number == f"{plain(result.verdict.ecd.low)} nat"
    assert opened.by_place.startswith("Worst: where it says 89 to 90.5 %, it happens in 50 % of the cases (")
    assert f"ECD is at least {place.ecd.low:.3g} nat, where {place.limit:.3g} is allowed" in opened.by_place
    (shown,) = Reader(report_html(result)).root.all("p", class_="by-place")
    assert shown.text.replace("\N{NO-BREAK SPACE}", " ") == opened.by_place
    assert opening(evaluations()["gaussian"], evaluations()["gaussian"].verdict).by_place == ""


def test_the_first_screen_counts_mistakes() -> None:
    rare = safecal.evaluate(np.arange(10**6) < 1921, np.full(10**6, 105e-6))
    opened = opening(rare, rare.verdict)
    assert opened.place == "It announced 105 mistakes and made 1921."
    assert (opened.number, opened.about) == (
        "17.5 times", "as many mistakes as announced: at least that. Up to 3 times is allowed.",
    )  # fmt: skip
    assert "It announced 105 mistakes and made 1921." in visible(Reader(report_html(rare)).root)
    ward = np.arange(50_000) % 5
    y = np.random.default_rng(0).random(50_000) < np.where(ward == 1, 0.006, 0.001)
    result = safecal.evaluate(y, np.full(50_000, 0.001), by={"ward": ward})
    opened = opening(result, result.verdict)
    assert opened.place.startswith("In ward 1 it announced 10 mistakes and made ")
    assert opened.about.startswith("as many mistakes as it announced. Up to 3 times is allowed.")
    root = Reader(report_html(result)).root
    (row,) = root.all("table", class_="keys")[-1].all("tr", class_="beyond")
    assert re.fullmatch(r"\d+ mistakes, 10 announced", row.children[-1].text)


def test_the_first_screen_of_temperatures_and_of_averages_alone() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 0.5, 100_000)
    hot = safecal.evaluate(rng.random(100_000) < 1 / (1 + np.exp(-z / 2)), logits=z)
    opened = opening(hot, hot.verdict)
    assert (opened.number[-5:], opened.about) == (
        "times",
        "the logits it should give: at least that. Up to 1.5 times is allowed.",
    )
    other = _of_family(hot, "mixture")
    assert opening(other, other.verdict).about.startswith("is its temperature: at least that.")
    average = safecal.evaluate(rng.random(5000) < 0.8, np.full(5000, 0.8), rule="average")
    assert opening(average, average.verdict).by_place == "The verdict did not look at places."
    text = visible(Reader(report_html(average)).root)
    assert "Only averages were judged: the verdict did not look at places." in text
    assert "ruleaverage" in text


def test_a_suspected_place_withholds_safe_and_is_shown() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(0, 2, 1500)
    evaluation = safecal.evaluate(rng.random(1500) < 1 / (1 + np.exp(0.9 - z)), logits=z)
    assert (evaluation.verdict.decision, evaluation.verdict.shown) == ("UNDETERMINED", ())
    root = Reader(report_html(evaluation)).root
    text = visible(root)
    assert "In some places it may be over-confident" in text
    assert "treat its confidence there as unproven" in text
    assert "No place is shown to be over-confident beyond the limit, but some are suspected." in text
    (table,) = root.all("table", class_="places")
    assert {row.children[-1].text for row in table.all("tbody")[0].all("tr")} == {"suspected"}
    assert table.all("tr", class_="suspected")


# Where


def test_every_place_of_the_verdict_is_in_the_table() -> None:
    evaluation = _shifted(20_000)
    (section,) = Reader(report_html(evaluation)).root.all("section", aria_labelledby="where")
    (table,) = section.all("table")
    head = [cell.text for cell in table.all("th", scope="col")]
    assert head == ["place", "rows", "share", "it says", "it happens", "ECD at least", "allowed", "finding"]
    rows = [[words(cell.text) for cell in row.children] for row in table.all("tbody")[0].all("tr")]
    for place, cells in zip(evaluation.verdict.where, rows, strict=True):
        assert cells[0] == place.brief
        assert cells[1].replace(" ", "") == str(place.n)
        assert float(cells[3].rstrip(" %")) == pytest.approx(100 * place.predicted, rel=0.01)
        assert float(cells[4].rstrip(" %")) == pytest.approx(100 * place.observed, rel=0.01)
        assert float(cells[5]) == pytest.approx(place.ecd.low, rel=0.01)
        assert (float(cells[6]), cells[7]) == (place.limit, "shown" if place.shown else "suspected")


@pytest.mark.parametrize("case", CASES)
def test_the_picture_along_the_predictions_is_that_of_the_plot(case: str) -> None:
    evaluation = evaluations()[case]
    course = Course.of(evaluation.local, evaluation.limits.local_threshold)
    pictures = [svg for svg in read(case).all("svg", role="img") if svg["aria-labelledby"].startswith("along-")]
    assert len(pictures) == bool(len(evaluation.local))
    if course.worst is None:
        return
    (picture,) = pictures
    texts = [text.text for text in picture.all("text")]
    assert any(text.startswith(f"worst: {course.worst.name}") for text in texts)
    assert [name for _, name in course.ticks if name in texts] == [name for _, name in course.ticks]
    assert len(picture.all("rect", class_="band")) == len(course.steps)
    diamonds = [len(picture.all("polygon", class_=look)) for look in ("over", "over hollow")]
    states = [step.state for step in course.steps]
    assert diamonds == [states.count("beyond the limit"), states.count("suspected")]
    lines = picture.all("line", class_="step")[: len(course.steps)]
    known = [step for step in course.steps if math.isfinite(step.range.ecd.value)]
    heights = [float(line["y1"]) for line in lines][: len(known)]
    value = [step.range.ecd.value for step in known]
    (zero,) = picture.all("line", class_="neutral")
    top, bottom = course.top + 0.14 * (course.top - course.bottom), course.bottom
    scale = AxisScale(bottom, top, 286.0, 24.0)
    assert heights == pytest.approx([scale(x) for x in value], abs=0.1)
    assert float(zero["y1"]) == pytest.approx(scale(0.0), abs=0.1)


def test_where_there_are_no_ranges_the_page_says_so() -> None:
    none = "Its predictions are all alike, or have no order, so there are no ranges."
    sentence = "It is over-confident on average, and no place is shown to be worse."
    assert f"{sentence} {none}" in visible(read("gaussian"))
    error = np.random.default_rng(3).normal(size=300)
    number = report_html(safecal.gaussian(error, np.zeros(300), std=1.0).evaluate())
    assert f"Only the averages were judged. {none}" in number
    assert "No place is shown to be over-confident beyond the limit, and none is suspected" in visible(read("safe"))


def test_a_page_of_two_classes_is_small() -> None:
    assert len(report_html(_shifted(20_000)).encode()) < 150_000
    assert len(page_of("unsafe").encode()) < 150_000


def test_limits_of_groups_that_differ_are_drawn_one_by_one() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(0.0, 1.0, (900, 60)) * np.repeat([0.2, 3.0], [450, 450])[:, None]
    y_true = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    root = Reader(report_html(safecal.evaluate(y_true, logits=z, by=np.repeat(["vague", "sharp"], 450)))).root
    (picture,) = (svg for svg in root.all("svg", role="img") if svg["aria-labelledby"].startswith("groups-"))
    assert len(picture.all("line", class_="limit")) == len(picture.all("rect", class_="zone")) == 2
    assert any(text.text.startswith("limits 0.") for text in picture.all("text"))


def test_a_few_rows_that_decide_are_pointed_at() -> None:
    p = np.full(1000, 0.999)
    y = np.arange(1000) >= 10  # ten failures where one is expected
    text = visible(Reader(report_html(safecal.evaluate(y, p))).root)
    assert "Look at the most surprising rows." in text


def test_limits_may_be_infinite() -> None:
    free = {"threshold": math.inf, "max_temperature": math.inf, "max_ratio": math.inf, "local_threshold": math.inf}
    z = np.linspace(-4, 4, 400)
    evaluation = safecal.evaluate(np.arange(400) % 3 > 0, logits=z, by=np.arange(400) % 2, **free)
    findings = PageFindings.of(evaluation)
    parts = [cards(findings), pictures_section(findings), where_section(findings)]
    assert all("limit ∞" in part or "the limit, ∞ nat" in part for part in parts)


def test_temperatures_in_words() -> None:
    expected = {
        ("bernoulli", 2.0): "its logits are about 2 times too large",
        ("categorical", 0.25): "its logits are about 4 times too small",
        ("bernoulli", 1.001): "its logits are about right",
        ("gaussian", 2.25): "its standard deviations are about 1.5 times too small",
        ("density", 0.5): "its densities should be sharper, with temperature 0.5",
        ("bernoulli", 0.0): "every outcome was the most likely one",
        ("bernoulli", math.inf): "its confidence carries no information",
    }
    assert {key: temperature_in_words(*key) for key in expected} == expected


def test_recalibration_stands_beside_it() -> None:
    before, after = evaluations()["unsafe"], evaluations()["safe"]
    root = Reader(report_html(before, after=after, created=CREATED)).root
    (section,) = root.all("section", aria_labelledby="after")
    rows = {row.all("th")[0].text: [cell.text for cell in row.all("td")] for row in section.all("tbody")[0].all("tr")}
    assert rows["verdict"] == ["UNSAFE", "SAFE"]
    assert rows["ECD"] == [f"{before.ecd:+.4f}", f"{after.ecd:+.4f}"]
    assert rows["worst place"][0].startswith(before.verdict.where[0].brief)
    assert rows["worst place"][1] == "none"
    assert rows["mistakes, made over announced"] == [f"{e.mistakes.ratio.value:.4f}" for e in (before, after)]  # type: ignore[union-attr]
    assert rows["NLL"] == [f"{before.nll:.4f}", f"{after.nll:.4f}"]
    assert "After recalibration" not in page_of("unsafe")


def test_the_tables_hold_the_sums() -> None:
    evaluation, root = evaluations()["unsafe"], read("unsafe")
    bins, groups = root.all("table", class_="keys")
    table = evaluation.bins
    assert table is not None
    assert bins.all("th")[0].text == "probability"
    for row, label, s in zip(bins.all("tbody")[0].all("tr"), table.labels, table.summaries, strict=True):
        cells = [cell.text for cell in row.children]
        assert cells[:2] == [label, str(s.n)]
        assert f"{s.ecd:+.4f}" in cells
    ecd = [float(row.children[7].text) for row in groups.all("tbody")[0].all("tr")]
    assert ecd == sorted(ecd, reverse=True)
    (sorted_by,) = groups.all("th", aria_sort="descending")
    assert sorted_by.text == "ECD"
    beyond = {row.children[0].text for row in groups.all("tr", class_="beyond")}
    assert {f"site {name}" for name in beyond} == {p.name for p in evaluation.verdict.shown if p.type == "group"}
    assert "Bins decide nothing: the verdict looks at ranges of its own." in visible(root)


def test_a_crowd_of_bins_and_groups() -> None:
    root = read("many")
    text = visible(root)
    assert "825 of 1000 groups are left out, none of them with a larger ECD than those shown." in text
    assert "The other 960 groups are not drawn." in text
    assert "The 500 bins are joined to 50 here." in text
    bins, groups = root.all("table", class_="keys")
    assert len(bins.all("tbody")[0].all("tr")) == 50
    assert len(groups.all("tbody")[0].all("tr")) == 175


def test_whatever_comes_from_the_data_is_text() -> None:
    page, root = page_of("hostile"), read("hostile")
    for given in HOSTILE[:3]:
        assert given not in page
    assert "\u202e" not in page
    assert "\x00" not in page
    text = visible(root)
    assert root.all("h1")[0].text == SCRIPT
    assert f"from {IMAGE}" in text
    assert f"safecal {IMAGE} {SCRIPT}" in text
    names = [row.children[0].text for row in root.all("table", class_="keys")[1].all("tbody")[0].all("tr")]
    assert {SCRIPT, IMAGE, "a & b", r"\u202eright to left\x00", r"\ud800 half", "x" * 40 + "…" + "x" * 19} <= set(names)
    page.encode()


# How it is made


def test_the_same_evaluation_gives_the_same_page() -> None:
    evaluation = evaluations()["unsafe"]
    page = report_html(evaluation, created=CREATED)
    assert page == report_html(evaluation, created=CREATED.replace(tzinfo=None))
    assert page == report_html(evaluation, created=CREATED.astimezone(timezone(timedelta(hours=5))))
    assert page == report_html(Evaluation.from_dict(evaluation.to_dict()), created=CREATED)
    assert '<span class="name">2025-02-14</span> 12:30:00 UTC' in page
    before = datetime.now(UTC).replace(microsecond=0)
    (time,) = Reader(report_html(evaluation)).root.all("time")
    assert before <= datetime.fromisoformat(time["datetime"]) <= datetime.now(UTC)


@pytest.mark.parametrize("case", CASES)
def test_the_python_code_compiles(case: str) -> None:
    assert snippet(evaluations()[case]) in Reader(page_of(case)).root.text
    compile(snippet(evaluations()[case]), case, "exec")


@pytest.mark.parametrize("options", [{}, {"bins": 7}, {"bins": safecal.Bins.from_edges([0, 0.3, 1])}, {"bins": None}])
def test_the_python_code_makes_it_again(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y, groups, weights = rng.random(200) < p, rng.integers(0, 3, 200), rng.random(200)
    made = safecal.evaluate(
        y, p, by=groups, sample_weight=weights, threshold=0.2, level=0.9, max_ratio=4.0, min_share=0.1, **options
    )
    names: dict[str, Any] = {"y_true": y, "y_prob": p, "groups": groups, "weights": weights}
    exec(snippet(made), names)
    assert names["result"] == made
    assert capsys.readouterr().out == f"{made.verdict}\n"


@pytest.mark.parametrize("given", [None, 1.0, "report.html"])
def test_only_an_evaluation_can_be_reported(given: Any) -> None:
    with pytest.raises(InputError, match=r"(?s)`evaluation` must be an Evaluation.*Hint: "):
        report_html(given)
    if given is not None:
        with pytest.raises(InputError, match="`after` must be an Evaluation"):
            report_html(evaluations()["safe"], after=given)


def test_writing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(evaluations()["hostile"], path, title=SCRIPT, created=CREATED)
    text = report_html(evaluations()["hostile"], title=SCRIPT, created=CREATED)
    assert path.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileError, match=r"(?s)`path` must lie in a folder that exists.*Hint: "):
        write_report(evaluations()["safe"], tmp_path / "missing" / "report.html")


# The pictures


@pytest.mark.parametrize("case", ["unsafe", "categorical"])
def test_the_over_confident_side_is_shaded(case: str) -> None:
    table = evaluations()[case].bins
    assert table is not None
    (picture,) = (svg for svg in read(case).all("svg", role="img") if "reliability-title" in svg["aria-labelledby"])
    shaded = [
        [tuple(map(float, pair.split(","))) for pair in zone["points"].split()]
        for zone in picture.all("polygon", class_="zone")
    ]
    x, y = AxisScale(0.0, 1.0, 52.0, 424.0), AxisScale(0.0, 1.0, 384.0, 12.0)
    for predicted in (0.1, 0.3, 0.45, 0.55, 0.7, 0.9):
        for observed in (0.02, 0.2, 0.4, 0.6, 0.8, 0.98):
            s = safecal.Summary(n=1, weight=1.0, sum_predicted=predicted, sum_observed=observed,
                                sum_confidence=predicted, sum_correct=observed, sum_brier=0.0)  # fmt: skip
            one = dataclasses.replace(table, keys=((0.0, 1.0),), sums=as_sums([s]))
            inside = any(_contains(polygon, x(predicted), y(observed)) for polygon in shaded)
            assert inside == bool(one.overconfident()[0]), (predicted, observed)


def _contains(polygon: list[tuple[float, ...]], x: float, y: float) -> bool:
    inside = False
    for (a, b), (c, d) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (b > y) != (d > y) and x < a + (y - b) * (c - a) / (d - b):
            inside = not inside
    return inside


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_band_is_exact_binomial(level: float) -> None:
    n, p = (
        a.ravel() for a in np.meshgrid([1.0, 2.0, 7.0, 100.0, 12_345.0, 1e6], [0.0, 1e-9, 0.01, 0.3, 0.5, 0.999, 1.0])
    )
    low, high = binomial_band(p, n, level)
    np.testing.assert_allclose(low, stats.binom.ppf((1 - level) / 2, n, p).clip(0) / n)
    np.testing.assert_allclose(high, stats.binom.ppf((1 + level) / 2, n, p) / n)


def test_weights_count_as_fewer_rows() -> None:
    p = np.full(100, 0.3)
    y = np.arange(100) < 30
    assert effective_rows(safecal.bernoulli(y, p).summary()) == 100
    assert effective_rows(safecal.bernoulli(y, p).summary(np.full(100, 7.0))) == 100
    assert effective_rows(safecal.bernoulli(y, p).summary(np.repeat([1.0, 0.0], 50))) == 50
    w = np.linspace(1, 3, 100)
    assert effective_rows(safecal.bernoulli(y, p).summary(w)) == math.floor(w.sum() ** 2 / (w**2).sum())
    assert effective_rows(safecal.bernoulli([1, 0, 1], [0.0, 0.0, 0.5]).summary()) == 3


def test_the_points_of_the_diagram() -> None:
    table = evaluations()["unsafe"].bins
    assert table is not None
    points = ReliabilityPoints.of(table, 0.95)
    assert points.n.tolist() == [s.n for s in table.summaries]
    assert points.overconfident.tolist() == table.overconfident().tolist()
    assert points.outside[0]
    assert points.overconfident[0]
    (picture,) = (svg for svg in read("unsafe").all("svg", role="img") if "reliability" in svg["aria-labelledby"])
    count = len(points.filled)
    assert len(picture.all("circle")) == count
    assert len(picture.all("rect", class_="band")) == len(picture.all("rect", class_="count")) == count
    texts = [text.text for text in picture.all("text")]
    assert all(str(n) in texts for n in points.n)


def test_the_curve_goes_through_the_interval() -> None:
    evaluation = evaluations()["unsafe"]
    below, above = evaluation.bounds.distances(3.5)
    z = stats.norm.ppf(0.975)
    for side, end in ((below, evaluation.temperature.low), (above, evaluation.temperature.high)):
        temperatures, heights = (np.array(column) for column in zip(*side, strict=True))
        assert (np.diff(heights) > 0).all()
        assert np.interp(z, heights, temperatures) == pytest.approx(end, rel=2e-3)
    assert below[0][0] == pytest.approx(evaluation.temperature.value, rel=1e-2)


def test_bars_and_marks_stand_where_their_values_are() -> None:
    evaluation, root = evaluations()["safe"], read("safe")
    groups = evaluation.groups
    assert groups is not None
    (picture,) = (svg for svg in root.all("svg", role="img") if "groups-title" in svg["aria-labelledby"])
    rows = picture.all("g")
    assert len(rows) == len(groups)
    ecd = [float(row.all("text")[1].text.replace("\N{MINUS SIGN}", "-")) for row in rows]
    marks = [float(row.all("rect")[0]["x"]) + float(row.all("rect")[0]["width"]) / 2 for row in rows]
    slope, offset = np.polyfit(ecd, marks, 1)
    np.testing.assert_allclose(np.polyval([slope, offset], ecd), marks, atol=0.3)
    assert ecd == sorted(ecd, reverse=True)
    (neutral,) = picture.all("line", class_="neutral")
    (limit,) = picture.all("line", class_="limit")
    assert float(neutral["x1"]) == pytest.approx(offset, abs=0.3)
    assert float(limit["x1"]) == pytest.approx(offset + 0.1 * slope, abs=0.3)


@pytest.mark.parametrize("most", [1, 3, 10, 99, 100])
def test_merged_bins_keep_every_row(most: int) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(500)
    table = safecal.evaluate(rng.random(500) < p, p, bins=100).bins
    assert table is not None
    merged = coarser(table, most)
    assert merged.bins is not None
    assert len(merged) == len(merged.keys) == len(merged.bins) <= most
    assert merged.total.n == 500
    assert merged.total.ecd == pytest.approx(table.total.ecd)
    assert (merged.bins.edges[0], merged.bins.edges[-1]) == (0.0, 1.0)
    assert merged[merged.keys[0]].n == np.sum(p < merged.bins.edges[1])


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [(0, 1, False), (-0.06, 0.22, False), (-3e5, 1.2e6, False), (1e-300, 3e-300, False)]
    + [(0.9, 1.1, True), (0.03, 32, True)],
)
def test_ticks_are_few_round_and_inside(low: float, high: float, log: bool) -> None:
    scale = AxisScale(low, high, 0.0, 100.0, log)
    ticks = scale.ticks(6)
    assert 2 <= len(ticks) <= 6
    assert all(low <= t * (1 + 1e-9) and t <= high * (1 + 1e-9) for t in ticks)
    assert all(0 <= scale(t) <= 100 for t in ticks)
    assert (scale(low), scale(high), scale(high * 2)) == (0.0, 100.0, 100.0)


# The colours


def _themes() -> dict[str, dict[str, str]]:
    style = resources.files("safecal.html").joinpath("page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{([^}]*)\}", style)
    return {
        name: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        for name, block in zip(("light", "dark", "print"), blocks, strict=True)
    }


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_stands_out_from_its_ground(theme: str) -> None:
    colours = _themes()[theme]
    grounds = {"ink": ["paper", "panel", "over-wash", "unsure-wash", "safe-wash"], "over": ["paper", "over-wash"]}
    grounds |= {"soft": grounds["ink"], "under": ["paper"], "unsure": ["unsure-wash"], "safe": ["safe-wash"]}
    for text, behind in grounds.items():
        for ground in behind:
            light, dark = sorted((_luminance(colours[text]), _luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
    for mark in ("grey", "over", "under"):
        light, dark = sorted((_luminance(colours[mark]), _luminance(colours["paper"])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, mark


# Sentences that once made a reader stumble


@pytest.mark.parametrize("case", CASES)
def test_no_sentence_makes_a_reader_stumble(case: str) -> None:
    text = re.sub(
        r", because [^:]*?interval of ECD", "", visible(read(case))
    )  # why a test was chosen, among the methods
    for odd in (r"\b0\.\d+ times too", r"\b1 times\b", "surprises are expected", "inf times", "∞ times"):
        assert not re.search(odd, text), odd


def test_a_model_whose_logits_are_not_too_large_is_said_to_be_so() -> None:
    assert "its logits are not too large" in evaluations()["cautious"].verdict.reason
    assert "its logits are at most 1." in evaluations()["safe"].verdict.reason


def test_the_page_counts_the_classes() -> None:
    assert "5 classes" in visible(read("categorical"))
