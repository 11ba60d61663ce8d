"""The page and the picture of two models, held to their numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import safecal
from safecal.report import comparison_html

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
LOG_ODDS = RNG.normal(0, 2, 800)
HAPPENED = RNG.random(800) < 1 / (1 + np.exp(-LOG_ODDS))


def _both(logits: Any = 2 * LOG_ODDS) -> tuple[safecal.Comparison, safecal.SideBySide]:
    a, b = safecal.bernoulli(HAPPENED, logits=logits), safecal.bernoulli(HAPPENED, logits=LOG_ODDS)
    return safecal.compare(a, b), safecal.compare(a.evaluate(), b.evaluate())


def test_the_page_shows_every_difference_and_both_models() -> None:
    comparison, sides = _both()
    text = comparison_html(comparison, sides=sides, title="New <model>", command="safecal compare a.csv b.csv")
    assert "<title>New &lt;model&gt;</title>" in text
    assert re.sub(r"\s", " ", comparison.verdict) in re.sub(r"\s", " ", text)
    for shown in (comparison.ecd, comparison.nll, comparison.brier):
        assert shown is not None
        assert f"{shown.interval.low:+.4f} to {shown.interval.high:+.4f}" in text
    for name in ("ECD", "temperature"):
        assert f"{sides.metrics[name][0].low:.4f}" in text
    assert text.count('role="img"') == 3
    assert sides.decisions[0] in text
    assert "http" not in text.replace("http-equiv", "")


def test_an_infinite_difference_has_an_arrow_to_its_own_side_alone() -> None:
    logits = 2 * LOG_ODDS
    logits[np.flatnonzero(HAPPENED)[0]] = -np.inf
    comparison, _ = _both(logits)
    assert comparison.ecd.interval.low == comparison.ecd.interval.high == np.inf
    text = comparison_html(comparison)
    tips = [float(x) for x in re.findall(r'<polygon points="([\d.]+),[^"]*" class="arrow"/>', text)]
    assert len(tips) == 2  # of ECD and NLL
    assert min(tips) > 220.0


def test_without_evaluations_the_page_has_the_differences_alone(tmp_path: Path) -> None:
    comparison, _ = _both()
    comparison.report(tmp_path / "page.html", title="Two models")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count('role="img"') == 1
    assert "Side by side" not in text


@pytest.mark.parametrize("at", [-np.inf, 40.0, 0.0])
def test_what_is_infinite_or_equal_is_drawn(at: float, tmp_path: Path) -> None:
    logits = LOG_ODDS.copy()
    logits[np.flatnonzero(HAPPENED)[0]] += at
    comparison, sides = _both(logits)
    comparison.report(tmp_path / "page.html", sides=sides)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "nan" not in re.sub(r"[a-z]+nan|nan[a-z]+", "", text)
    plt.close(comparison.plot(sides=sides))


def test_states_and_densities_have_a_page(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (300, 2))
    a, b = safecal.gaussian(x, np.zeros((300, 2)), std=0.7), safecal.gaussian(x, np.zeros((300, 2)), std=1.0)
    text = comparison_html(safecal.compare(a, b), sides=safecal.compare(a.evaluate(), b.evaluate()))
    assert "Brier" not in text


def test_the_picture_has_the_numbers() -> None:
    comparison, sides = _both()
    figure = comparison.plot(sides=sides)
    differences, ecd, temperature = figure.axes
    assert [label.get_text() for label in differences.get_yticklabels()] == ["ECD", "NLL", "Brier"]
    ends = [segment[:, 0].tolist() for part in differences.collections for segment in part.get_segments()]
    assert ends[0] == pytest.approx([comparison.ecd.interval.low, comparison.ecd.interval.high])
    marks = [line.get_xdata()[0] for line in temperature.lines if line.get_marker() == "o"]
    assert marks == pytest.approx([x.value for x in sides.metrics["temperature"]])
    assert next(line.get_xdata()[0] for line in ecd.lines if line.get_marker() == "o") == pytest.approx(
        comparison.ecd.a
    )
    plt.close(figure)
    alone = comparison.plot()
    assert len(alone.axes) == 1
    assert math.isfinite(alone.axes[0].get_xlim()[0])
    plt.close(alone)
