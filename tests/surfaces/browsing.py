"""Pages in a real browser, with the network off.

Two environment variables matter:

``SAFECAL_CHROMIUM``
    The browser; by default the ``chromium`` on the path.
``SAFECAL_AXE``
    The file ``axe.min.js`` of axe-core; by default ``node_modules/axe-core/axe.min.js`` in the repository.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("SAFECAL_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
ROOT = Path(__file__).resolve().parents[2]
AXE = Path(os.environ.get("SAFECAL_AXE") or ROOT / "node_modules" / "axe-core" / "axe.min.js")
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
QUIET += " --disable-component-update --disable-sync"
# In the dark a page has other colours and nothing else: the other rules of axe would say what they said in the light.
COLOURS = "runOnly: ['color-contrast', 'link-in-text-block'], "


def started() -> Iterator[Any]:
    """Start the browser, and close it: the body of a fixture."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).is_file():
        pytest.skip(f"there is no browser at {CHROMIUM}; set SAFECAL_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield browser
        browser.close()


@contextmanager
def visited(browser: Any, path: Path, *, width: int = 1280, **options: Any) -> Iterator[Any]:
    """Open a page, and hold it to behave: no fault, and nothing asked for but itself."""
    faults: list[str] = []
    asked: list[str] = []
    with browser.new_context(viewport={"width": width, "height": 800}, **options) as context:
        context.route(re.compile(r"^(?!file:)"), lambda route: route.abort())
        page = context.new_page()
        page.on("console", lambda message: faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        yield page
        assert faults == []
        assert asked == [path.as_uri()]


def assert_it_fits(page: Any, pictures: int | None = None) -> None:
    """Hold a page that was opened at the width of a phone to fit it, and a wide screen; nothing is cut off, either."""
    wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1] == 360
    stray = page.evaluate(
        "[...document.body.querySelectorAll('*')].filter(e => !e.closest('.wide, .quiet, .skip, svg') "
        "&& e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0, 80))"
    )
    assert stray == []  # what is wider than the page scrolls by itself
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    boxes = [picture.bounding_box() for picture in page.locator("svg[role=img]").all()]
    assert boxes if pictures is None else len(boxes) == pictures
    assert all(box["width"] > 200 and box["height"] > 50 for box in boxes)


def assert_it_is_accessible(page: Any, least: int) -> None:
    """Hold a page to the rules of axe-core, of which at least so many must apply, in light and dark."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme, which, few in (("light", "", least), ("dark", COLOURS, 0)):
        page.emulate_media(color_scheme=scheme)
        audit = page.evaluate(
            f"axe.run({{{which}resultTypes: ['violations']}}).then(r => [r.violations, r.passes.length])"
        )
        bad = [(fault["impact"], fault["id"], [n["html"] for n in fault["nodes"]]) for fault in audit[0]]
        assert bad == [], scheme
        assert audit[1] > few


def needs_axe() -> None:
    """Skip where axe-core is not there."""
    if not AXE.is_file():
        pytest.skip(f"axe-core is not at {AXE}; set SAFECAL_AXE")
