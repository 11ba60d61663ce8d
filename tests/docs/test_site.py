"""The site: it builds without a warning, nothing is missing, no link is broken, and its pages open in a browser.

The pictures of the gallery are not drawn here: `make site` draws them, and test_examples.py runs every example.
"""

import argparse
import ast
import html
import importlib
import json
import mimetypes
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import safecal
from safecal.cli import build_parser

pytestmark = [pytest.mark.extra, pytest.mark.no_cover]

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index",
    "tutorials/index",
    "tutorials/file",
    "explanation/theory",
    "gallery/index",
    "reference/api/safecal",
    "reference/api/safecal.Evaluation",
    "reference/commands/evaluate",
    "reference/documents/evaluation-2",
    "reference/errors",
    "command-line",
    "validation",
)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# As `python -m sphinx`, without looking for garbage: trees of every page live to the end, and each look takes longer.
SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"

BROWSING = load(ROOT / "tests" / "surfaces" / "browsing.py")
browser = pytest.fixture(scope="module")(BROWSING.started)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site from a copy of its sources, so that nothing is written beside them."""
    folder = tmp_path_factory.mktemp("site")
    generated = shutil.ignore_patterns("gallery", "api", "commands", "documents", "errors.rst", "__pycache__")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=generated)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    words = ["-W", "--keep-going", "-q", "-D", "plot_gallery=0", "docs", "html"]
    made = subprocess.run([sys.executable, "-c", SPHINX, *words], cwd=folder, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    return folder / "html"


# What there is


def test_every_public_name_has_a_page(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind, names in found.data.items() if kind.startswith("py:") for name in names}
    source = ROOT / "src" / "safecal"
    plugins = [f"compat.{path.stem}" for path in (source / "compat").glob("[!_]*")]
    doors = ["engines.batches", "engines.frames", "engines.torch"]
    packages = ["errors", "maps", "monitor", "paper", "plot", "report", "testing"]
    missing = [
        f"safecal.{name}" for name in safecal.__all__ if not known & {f"safecal.{name}", f"safecal.errors.{name}"}
    ]
    for module in (*packages, *doors, *plugins):
        path = source / module.replace(".", "/")
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        listed = re.search(r"^__all__ = (\[.*?\])", text, re.MULTILINE | re.DOTALL)
        assert listed is not None, module
        for name in ast.literal_eval(listed[1]):
            # What is reachable by two names is described under the shorter.
            if not known & {f"safecal.{module}.{name}", f"safecal.{name}", f"safecal.errors.{name}"}:
                missing.append(f"safecal.{module}.{name}")
    assert missing == []


def test_every_command_and_every_option_is_described(site: Path) -> None:
    commands = build_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert len(commands) >= 9
    for name, parser in commands.items():
        page = (site / "reference" / "commands" / f"{name}.html").read_text(encoding="utf-8")
        for action in parser._actions:
            for word in action.option_strings if action.help != argparse.SUPPRESS else ():
                assert f'id="cmdoption-safecal-{name}-{word.lstrip("-")}"' in page, (name, word)


def test_every_definition_of_a_document_is_described(site: Path) -> None:
    for schema in (ROOT / "src" / "safecal" / "schemas").glob("*.json"):
        page = (site / "reference" / "documents" / f"{schema.stem}.html").read_text(encoding="utf-8")
        for name in json.loads(schema.read_text(encoding="utf-8"))["$defs"]:
            assert f'id="{schema.stem}-{name.replace("_", "-")}"' in page, (schema.stem, name)


def test_the_changelog_is_there(site: Path) -> None:
    assert "Keep a Changelog" in (site / "reference" / "changelog.html").read_text(encoding="utf-8")


# What holds together


def test_no_link_inside_is_broken_and_nothing_comes_from_elsewhere(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # where the theme has a template
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    assert len(texts) > 200
    anchors = {path: set(map(html.unescape, re.findall(r'\bid="([^"]+)"', text))) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for target in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            name, _, anchor = unquote(html.unescape(target)).partition("#")
            if re.match(r"\w+:", name):
                continue
            there = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not there.is_file() or (anchor and there in anchors and anchor not in anchors[there]):
                broken.append(f"{path.relative_to(site)}: {target}")
        assert not re.search(r'<(script|img|link|iframe)[^>]+(src|href)="(https?:)?//', text), path
    assert broken == []


# What a browser shows


@contextmanager
def visited(browser: Any, site: Path, name: str, *, width: int = 1280, dark: bool = False) -> Iterator[Any]:
    """Open a page from the disk, and hold it to behave: no fault, and nothing asked for but files of the site."""
    faults: list[str] = []
    asked: list[str] = []
    scheme = "dark" if dark else "light"
    with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme) as context:
        context.route(re.compile(r"^(?!file:)"), lambda route: route.abort())
        page = context.new_page()
        # The theme tells the console what it does; a warning or an error is a fault.
        page.on("console", lambda said: said.type in ("error", "warning") and faults.append(said.text))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / f"{name}.html").as_uri())
        yield page
        assert faults == []
        assert [url for url in asked if not url.startswith(f"{site.as_uri()}/")] == []


# An element that reaches beyond the page, and that nothing around it scrolls or hides.
STRAY = """[...document.body.querySelectorAll('*')].filter(element => {
    const box = element.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1 || element.closest('dialog, math')) return false;
    for (let around = element; around; around = around.parentElement)
        if (getComputedStyle(around).overflowX != 'visible') return false;
    return true;
}).map(element => element.outerHTML.slice(0, 100))"""


def assert_it_is_accessible(page: Any, *, dark: bool = False) -> None:
    """Hold a page, as it is shown now, to the rules of axe-core; in the dark, to those that look at colours."""
    page.evaluate(BROWSING.AXE.read_text(encoding="utf-8"))
    which = BROWSING.COLOURS if dark else ""
    found = page.evaluate(
        f"axe.run({{{which}preload: false, resultTypes: ['violations']}}).then(r => [r.violations, r.passes.length])"
    )
    assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in found[0]] == []
    assert found[1] > (0 if dark else 15)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_in_light_and_dark_and_fits_a_phone(name: str, browser: Any, site: Path) -> None:
    BROWSING.needs_axe()
    for dark in (False, True):
        with visited(browser, site, name, dark=dark) as page:
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
            assert_it_is_accessible(page, dark=dark)
    with visited(browser, site, name, width=360) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate(STRAY) == []
        assert_it_is_accessible(page)


def test_a_search_finds_a_page(browser: Any, site: Path) -> None:
    def answer(route: Any) -> None:
        path = site / unquote(route.request.url.removeprefix("http://site.test/").partition("?")[0])
        kind = mimetypes.guess_type(path.name)[0] or "text/plain"
        route.fulfill(body=path.read_bytes(), content_type=kind)

    with browser.new_context() as context:
        context.route("**/*", answer)
        page = context.new_page()
        page.goto("http://site.test/search.html?q=varentropy")
        # The page adds one result after the other: wait for this one, not for the first.
        page.locator('#search-results li a[href*="reference/api/"]').first.wait_for()
