"""The report in a real browser: light and dark, wide and narrow, by mouse and by keyboard, with and without script."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.report import report_html

from .browsing import assert_it_fits, assert_it_is_accessible, needs_axe, started, visited
from .reports import CASES, HOSTILE, IMAGE, SCRIPT, evaluations

pytestmark = [pytest.mark.extra, pytest.mark.no_cover]

Page = Any
Open = Callable[..., Any]


browser = pytest.fixture(scope="module")(started)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def visit(browser: Any, folder: Path) -> Open:
    """Return a function that opens a report, with the network off, and holds it to behave."""

    def write(case: str) -> Path:
        path = folder / f"{case.replace(' ', '-')}.html"
        if not path.exists():
            hostile = {"title": SCRIPT, "source": IMAGE, "command": IMAGE} if case == "hostile" else {}
            path.write_text(report_html(evaluations()[case], **hostile), encoding="utf-8")  # type: ignore[arg-type]
        return path

    return lambda case, **options: visited(browser, write(case), **options)


def column(table: Any, place: int) -> list[str]:
    """Return the texts of a column."""
    cells: list[str] = table.locator(f"tbody tr > :nth-child({place + 1})").all_inner_texts()
    return cells


def sorted_by(table: Any) -> list[tuple[str, str | None]]:
    headers = table.locator("th[aria-sort]")
    return [(header.inner_text().strip(), header.get_attribute("aria-sort")) for header in headers.all()]


# What every page does


@pytest.mark.parametrize("case", CASES)
def test_it_opens_and_fits_a_phone(case: str, visit: Open) -> None:
    with visit(case, width=360) as page:
        decision = evaluations()[case].verdict.decision
        assert page.title().startswith(f"{decision}: ")
        assert page.locator("h2.decision").inner_text() == decision
        assert_it_fits(page)


@pytest.mark.parametrize("case", ["unsafe", "safe", "undetermined", "gaussian", "hostile"])
def test_it_is_accessible_in_light_and_dark(case: str, visit: Open) -> None:
    needs_axe()
    with visit(case) as page:
        assert_it_is_accessible(page, 20)


@pytest.mark.parametrize("width", [*range(320, 420, 4), 1280])
def test_no_line_break_parts_a_date(width: int, visit: Open) -> None:
    with visit("safe", width=width) as page:
        tall = page.locator("time").evaluate("e => e.getClientRects().length")
        assert tall == 1
        assert set(page.locator(".name").evaluate_all("all => all.map(e => e.getClientRects().length)")) == {1}


def test_numbers_stand_below_the_names_of_their_columns(visit: Open) -> None:
    with visit("categorical") as page:
        sides = page.evaluate(
            "[...document.querySelectorAll('.keys')].map(t => ['thead th', 'tbody td'].map(s => "
            "getComputedStyle([...t.querySelectorAll(s)].filter(c => c.matches(':last-child'))[0]).textAlign))"
        )
        assert len(sides) >= 2
        assert all(head.replace("start", "left") == cell for head, cell in sides)


@pytest.mark.parametrize(("width", "whole"), [(700, 1), (900, 2), (1200, 2)])
def test_tables_in_a_notebook_are_whole(width: int, whole: int, browser: Any, folder: Path) -> None:
    rng = np.random.default_rng(0)
    z, age = rng.normal(0, 2, 3000), rng.integers(18, 90, 3000)
    site = rng.choice(["north", "south", "a hospital with quite a long name indeed"], 3000)
    happened = rng.random(3000) < 1 / (1 + np.exp(-z))
    predictions = safecal.bernoulli(happened, logits=np.where((age > 60) & (site != "south"), 3.0, 1.5) * z)
    slices = safecal.find_slices(predictions, {"age": age, "site": site}, rng=0)
    shown = [predictions.evaluate(by={"site": site})._repr_html_(), slices._repr_html_()]
    path = folder / "notebook.html"
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8">{"".join(shown)}', encoding="utf-8")
    with visited(browser, path, width=width) as page:
        parts = page.evaluate("[...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth, e.clientWidth])")
        assert len(parts) == 2
        assert all(wide <= room for wide, room in parts[:whole])
        assert page.evaluate("getComputedStyle(document.querySelector('.found')).fontSize") == "14px"


# Sorting


def test_sorting_by_mouse(visit: Open) -> None:
    with visit("unsafe") as page:
        assert page.get_by_text("Press a header to sort.").is_visible()
        groups = page.locator("table.keys").nth(1)
        first = column(groups, 0)
        assert sorted_by(groups) == [("ECD", "descending")]
        groups.get_by_role("button", name="rows").click()
        assert sorted_by(groups) == [("rows", "descending")]
        rows = list(map(int, column(groups, 1)))
        assert rows == sorted(rows, reverse=True)
        groups.get_by_role("button", name="rows").click()
        assert sorted_by(groups) == [("rows", "ascending")]
        assert list(map(int, column(groups, 1))) == rows[::-1]
        groups.get_by_role("button", name="site").click()
        assert sorted_by(groups) == [("site", "ascending")]
        assert column(groups, 0) == sorted(first)
        groups.get_by_role("button", name="ECD").click()
        assert column(groups, 0) == first
        bins = page.locator("table.keys").first
        assert sorted_by(bins) == [("probability", "ascending")]


def test_sorting_by_keyboard(visit: Open) -> None:
    with visit("impossible") as page:
        bins = page.locator("table.keys").first
        order = column(bins, 0)
        for _ in range(60):  # with the tabulator key alone
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "ECD":
                break
        assert bins.get_by_role("button", name="ECD").evaluate("e => e === document.activeElement")
        assert bins.get_by_role("button", name="ECD").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert sorted_by(bins) == [("ECD", "descending")]
        ecd = column(bins, 6)
        assert ecd[:2] == ["+∞", "+∞"]
        known = [float(text) for text in ecd[2:] if text != "N/A"]
        assert known == sorted(known, reverse=True)
        page.keyboard.press("Space")
        assert sorted_by(bins) == [("ECD", "ascending")]
        ecd = column(bins, 6)
        assert ecd[-1] == "N/A"  # bins without rows come last, whichever way
        assert ecd.index("+∞") == len(known)
        bins.get_by_role("button", name="probability").press("Enter")
        assert column(bins, 0) == order


def test_numbers_sort_as_numbers(visit: Open) -> None:
    with visit("many") as page:
        bins = page.locator("table.keys").first
        bins.get_by_role("button", name="share").click()
        shares = [float(text.replace("%", "")) for text in column(bins, 2)]
        assert shares == sorted(shares, reverse=True)
        bins.get_by_role("button", name="at most").click()
        bounds = [float(text) for text in column(bins, 8) if text != "N/A"]
        assert bounds == sorted(bounds, reverse=True)


# Safety


def test_what_comes_from_the_data_stays_text(visit: Open) -> None:
    with visit("hostile") as page:
        assert page.locator("h1").inner_text() == SCRIPT
        assert page.locator("img, iframe").count() == 0
        assert page.locator("script").count() == 2
        names = column(page.locator("table.keys").nth(1), 0)
        assert set(HOSTILE[:2]) <= set(names)
        page.get_by_role("button", name="ECD").last.click()
        drawn = page.locator("svg[aria-labelledby^=groups] text").all_text_contents()
        assert any(text.startswith('"><img src=x') for text in drawn)
        document = page.evaluate("JSON.parse(document.getElementById('evaluation').textContent)")
        assert {row["key"] for row in document["tally"]["groups"]["rows"]} >= set(HOSTILE[:5])


def test_no_other_script_runs(browser: Any, folder: Path) -> None:
    text = report_html(evaluations()["one row"]).replace("</h1>", "</h1><script>hacked = 1</script>")
    path = folder / "tampered.html"
    path.write_text(text.replace("<main", '<main onfocus="hacked = 1"'), encoding="utf-8")
    with browser.new_context() as context:
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.goto(path.as_uri())
        page.locator("main").focus()
        assert page.evaluate("typeof hacked") == "undefined"
        assert any("Content Security Policy" in text for text in messages)


# Every way to read it


def test_without_script_everything_is_there(visit: Open) -> None:
    with visit("unsafe", java_script_enabled=False) as page:
        assert page.locator("h2.decision").is_visible()
        assert page.locator("button").count() == 0
        assert page.locator(".press").is_hidden()
        assert page.locator("table.keys").count() == 2
        assert page.locator("table.keys").first.locator("tbody tr").count() == 10
        for part in page.locator("section, table, svg[role=img], pre, dl").all():
            assert part.is_visible()
        assert "ECD" in page.locator("table.keys").first.locator("thead").inner_text()


def test_light_dark_and_print(visit: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with visit("unsafe", color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.emulate_media(color_scheme="light")
        light = page.evaluate(ground)
        assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 22, 24)")
        page.emulate_media(color_scheme="dark", media="print")
        assert page.evaluate(ground) == light
        assert page.locator(".skip").is_hidden()
        assert page.locator(".press").is_hidden()
        arrows = page.locator("thead button").evaluate_all(
            "all => all.map(e => getComputedStyle(e, '::after').display)"
        )
        assert set(arrows) == {"none"}
        assert set(page.locator(".wide").evaluate_all("all => all.map(e => getComputedStyle(e).overflow)")) == {
            "visible"
        }
        size = "parseFloat(getComputedStyle(e).fontSize)"
        body = page.locator("body").evaluate(f"e => {size}")
        for text, most in ((".wide tbody td", body), (".wide thead th", body), ("figcaption", body), (".note", body)):
            assert max(page.locator(text).evaluate_all(f"all => all.map(e => {size})")) <= most, text
        for table in page.locator(".wide > table").all():
            head, cell = (table.locator(part).first.evaluate(f"e => {size}") for part in ("thead th", "tbody td"))
            assert head <= cell
        pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


def test_the_first_key_skips_to_the_verdict(visit: Open) -> None:
    with visit("safe") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_wide_tables_scroll_by_keyboard(visit: Open) -> None:
    with visit("safe", width=360) as page:
        region = page.get_by_role("region", name="Groups, the worst first")
        assert region.evaluate("e => e.scrollWidth > e.clientWidth")
        region.focus()
        page.keyboard.press("ArrowRight")
        for _ in range(100):  # it glides
            page.wait_for_timeout(20)
            if region.evaluate("e => e.scrollLeft") > 0:
                return
        pytest.fail("the table does not scroll")


def test_a_table_that_is_cut_says_so(visit: Open) -> None:
    hints = "[...document.querySelectorAll('.wide')].map(part => getComputedStyle(part, '::before').content)"
    with visit("unsafe", width=390) as page:
        page.wait_for_selector(".wide[data-cut]")
        assert any("Scroll to the right for more" in text for text in page.evaluate(hints))
    with visit("unsafe", width=1280) as page:
        page.wait_for_timeout(100)
        assert page.evaluate(f"{hints}.slice(0, 2)") == ["none", "none"]
