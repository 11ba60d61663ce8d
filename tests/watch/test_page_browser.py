"""The history page in a real browser: light and dark, wide and narrow, printed, and with hostile names."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safecal.watch.page import history_page

from .histories import CASES, HOSTILE, SCRIPT, history_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "surfaces"))

from browsing import assert_it_fits, assert_it_is_accessible, needs_axe, started, visited

pytestmark = [pytest.mark.extra, pytest.mark.no_cover]

Open = Callable[..., Any]


browser = pytest.fixture(scope="module")(started)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def visit(browser: Any, folder: Path) -> Open:
    """Return a function that opens a page, with the network off, and holds it to behave."""

    def opened(case: str, **options: Any) -> Any:
        path = folder / f"{case.replace(' ', '-')}.html"
        if not path.exists():
            title = SCRIPT if case == "hostile" else None
            path.write_text(history_page(history_of(case), title=title), encoding="utf-8")
        return visited(browser, path, **options)

    return opened


@pytest.mark.parametrize("case", CASES)
def test_it_opens_fits_a_phone_and_is_accessible_in_light_and_dark(case: str, visit: Open) -> None:
    needs_axe()
    with visit(case, width=360) as page:
        assert page.title().startswith(f"{page.locator('h2.decision').inner_text()}: ")
        assert_it_fits(page, pictures=0 if case == "nothing" else 4)
        # No text sticks out of its picture.
        cut = page.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].flatMap(s => { const a = s.getBoundingClientRect(); "
            "return [...s.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect(); return "
            "b.left < a.left - 1 || b.right > a.right + 1 || b.top < a.top - 1 || b.bottom > a.bottom + 1; })"
            ".map(t => t.textContent); })"
        )
        assert cut == []
        assert_it_is_accessible(page, 15)  # as wide as a screen by now


@pytest.mark.parametrize("case", ["drift", "groups", "relaxed", "shifted", "small", "acknowledged"])
def test_what_raises_an_alarm_covers_no_curve(case: str, visit: Open) -> None:
    with visit(case) as page:
        covered = page.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].flatMap(s => [...s.querySelectorAll('.limit-text')]"
            ".flatMap(t => { const b = t.getBBox(); return [...s.querySelectorAll('.curve, .alarm')].filter(c => {"
            "const n = c.getTotalLength(); return [...Array(2001).keys()].some(k => { const p = "
            "c.getPointAtLength(n * k / 2000); return p.x > b.x && p.x < b.x + b.width && p.y > b.y + 2 && "
            "p.y < b.y + b.height - 2; }); }).map(() => t.textContent); }))"
        )
        assert covered == []


@pytest.mark.parametrize("width", [360, 390, 700, 1280])
def test_no_line_break_parts_a_date(width: int, visit: Open) -> None:
    with visit("drift", width=width) as page:
        for media in ("screen", "print"):
            page.emulate_media(media=media)
            parted = page.evaluate(
                "(() => { const parted = [], w = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);"
                "for (let t; (t = w.nextNode()); ) for (const m of t.data.matchAll(/\\d{4}-\\d\\d-\\d\\d/g)) {"
                "const r = document.createRange(); r.setStart(t, m.index); r.setEnd(t, m.index + 10);"
                "if (new Set([...r.getClientRects()].map(b => b.top)).size > 1) parted.push(m[0]); } "
                "return parted; })()"
            )
            assert parted == []


def test_tables_sort(visit: Open) -> None:
    with visit("groups") as page:
        alarms, groups = page.locator("table.keys").all()
        assert alarms.locator("th[aria-sort]").inner_text().strip() == "alarm"
        groups.get_by_role("button", name="ECD").click()
        values = [float(text) for text in groups.locator("tbody td:nth-child(3)").all_inner_texts()]
        assert values == sorted(values, reverse=True)
        alarms.get_by_role("button", name="alarm").click()
        numbers = [int(text) for text in alarms.locator("tbody th").all_inner_texts()]
        assert numbers == sorted(numbers)


def test_what_comes_from_the_data_stays_text(visit: Open) -> None:
    with visit("hostile") as page:
        assert page.locator("h1").inner_text() == SCRIPT
        assert page.locator("img, iframe").count() == 0
        assert page.locator("script").count() == 1
        names = page.locator("table.keys").last.locator("tbody th").all_inner_texts()
        assert set(HOSTILE[:2]) <= set(names)


def test_without_script_everything_is_there(visit: Open) -> None:
    with visit("groups", java_script_enabled=False) as page:
        assert page.locator("h2.decision").is_visible()
        assert page.locator("button").count() == 0
        for hidden in page.locator(".press").all():
            assert hidden.is_hidden()
        for part in page.locator("section, table, svg[role=img]").all():
            assert part.is_visible()


def test_light_dark_and_print(visit: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with visit("groups", color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.emulate_media(color_scheme="light")
        light = page.evaluate(ground)
        assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 22, 24)")
        page.emulate_media(color_scheme="dark", media="print")
        assert page.evaluate(ground) == light
        assert page.locator(".skip").is_hidden()
        page.set_viewport_size({"width": 680, "height": 900})  # A4 within its margins
        assert page.evaluate("document.documentElement.scrollWidth") <= 680
        pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 6


def test_the_first_key_skips_to_the_state(visit: Open) -> None:
    with visit("quiet") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
