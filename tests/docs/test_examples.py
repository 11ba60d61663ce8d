"""Every example of the gallery runs, says something, and leaves a picture that can be read."""

import ast
import runpy
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("agg")
    plt.close("all")
    yield
    plt.close("all")


def test_the_gallery_has_a_header_and_enough_examples() -> None:
    assert (EXAMPLES[0].parent / "GALLERY_HEADER.rst").exists()
    assert len(EXAMPLES) >= 12
    assert all(example.name.startswith("plot_") for example in EXAMPLES)  # others would not be run


def test_each_example_begins_with_a_title_and_says_what_it_shows() -> None:
    titles = []
    for example in EXAMPLES:
        text = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
        assert text is not None, example.name
        title, line, blank, words = text.split("\n", 3)
        assert line == "=" * len(title), example.name
        assert not blank, example.name
        assert words, example.name
        titles.append(title)
    assert len(set(titles)) == len(titles)


@pytest.mark.proof
@pytest.mark.no_cover
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_leaves_a_picture(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert plt.get_fignums()
    for number in plt.get_fignums():
        _assert_no_title_lies_on_a_legend(number)


def _assert_no_title_lies_on_a_legend(number: int) -> None:
    figure = plt.figure(number)
    figure.draw_without_rendering()
    for ax in figure.axes:
        legend = ax.get_legend()
        for title in (ax.title, ax._left_title, ax._right_title):
            if legend is not None and title.get_text():
                assert not legend.get_window_extent().overlaps(title.get_window_extent()), title.get_text()
