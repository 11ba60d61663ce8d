"""Plots, held to their data: what is drawn where, on which axes, and in which words. No pixels are compared."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import safecal
from safecal import Evaluation, Summary, Table, plot
from safecal.errors import InputError, LabelError, MissingExtraError, OptionError, ShapeError, UnavailableError
from safecal.html import short_count, shortened, visible
from safecal.html.diagrams import ReliabilityPoints, consistency_band, effective_rows, has_reliability
from safecal.html.intervals import TemperatureCurve, ecd_range, factor_range
from safecal.plot.intervals import _ticks, draw_intervals

pytestmark = pytest.mark.proof

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
Figure = pytest.importorskip("matplotlib.figure").Figure
LineCollection = pytest.importorskip("matplotlib.collections").LineCollection

DISPLAYS = [
    plot.ReliabilityDisplay,
    plot.ECDDisplay,
    plot.TemperatureDisplay,
    plot.GroupsDisplay,
    plot.LocalDisplay,
    plot.ExcessDisplay,
    plot.ContributionDisplay,
]
SITES = ["north", "south", "east"]


@pytest.fixture(autouse=True)
def _settings_stay_and_figures_close() -> Iterator[None]:
    before = matplotlib.rcParams.copy()
    yield
    assert matplotlib.rcParams == before
    plt.close("all")


@cache
def binary(n: int = 600, times: float = 2.0, **options: Any) -> Evaluation:
    rng = np.random.default_rng(n)
    log_odds = rng.normal(0.0, 2.0, n)
    y_true = rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))
    by = np.array(SITES)[rng.integers(0, 3, n)]
    return safecal.evaluate(y_true, logits=times * log_odds, by=by, **options)


@cache
def classes(n: int = 500) -> Evaluation:
    rng = np.random.default_rng(1)
    logits = rng.normal(0.0, 1.6, (n, 10))
    p = np.exp(logits)
    y_true = (p.cumsum(axis=1) > p.sum(axis=1, keepdims=True) * rng.random((n, 1))).argmax(axis=1)
    return safecal.evaluate(y_true, logits=2.0 * logits, bins=5)


def states(n: int = 300, scale: float = 0.5, **options: Any) -> Evaluation:
    x = np.random.default_rng(2).standard_normal((n, 4))
    return safecal.gaussian(x, np.zeros_like(x), cov=scale * np.eye(4)).evaluate(**options)


def unnormalised() -> Evaluation:
    x = np.random.default_rng(3).standard_t(3, 200)
    return safecal.density(
        x, log_density=lambda v: -(v**2) / 2, sampler=lambda rng: rng.standard_normal(200), rng=1
    ).evaluate()


CASES: dict[str, Callable[[], Evaluation]] = {
    "over-confident": binary,
    "calibrated": lambda: binary(600, 1.0, bins=5),
    "under-confident": lambda: binary(600, 0.4, bins=5),
    "few rows": lambda: binary(12, 1.5, bins=6),
    "many bins": lambda: binary(600, 1.0, bins=45),
    "quantile bins": lambda: binary(600, 1.0, strategy="quantile", bins=8),
    "bins on confidence": lambda: binary(600, 1.0, bins=5, bin_on="confidence"),
    "bins on entropy": lambda: binary(600, 1.0, bins=5, bin_on="entropy"),
    "no bins": lambda: binary(600, 1.0, bins=None),
    "ten classes": classes,
    "states": states,
    "states with bins": lambda: safecal.gaussian([0.1, -2.0, 0.5, 3.0], [0.0] * 4, std=[1.0, 1.0, 2.0, 2.0]).evaluate(
        bins=2, strategy="quantile"
    ),
    "states by group": lambda: states(by=np.arange(300) % 3, cluster=np.repeat(np.arange(30), 10)),
    "a density": lambda: safecal.density([0.1, 3.0, -0.4], stats.norm(0.0, 1.0)).evaluate(),
    "an unnormalised density": unnormalised,
    "impossible outcomes": lambda: safecal.evaluate([1, 0, 1, 0], [0.0, 0.3, 0.8, 1.0], by=["a", "a", "b", "b"]),
    "nothing possible": lambda: safecal.evaluate([1, 1], [0.0, 0.0], by=["a", "b"]),
    "one row": lambda: safecal.evaluate([1], [0.7]),
    "one state": lambda: safecal.gaussian([0.3], [0.0], std=1.0).evaluate(),
    "coin tosses": lambda: safecal.evaluate([1, 0, 1], [0.5] * 3),
    "certainties": lambda: safecal.evaluate([1, 0], [1.0, 0.0]),
    "always wrong": lambda: safecal.evaluate([0, 0, 0], [0.99, 0.9, 0.9]),
    "always right": lambda: safecal.evaluate([1] * 50, [0.9] * 50),
    "far surprises": lambda: safecal.evaluate([1, 0, 1], logits=[-900.0, 30.0, 2.0]),
    "weights": lambda: safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], sample_weight=[1.0, 2.0, 0.0, 0.5]),
    "no limits": lambda: binary(600, 1.0, bins=3, threshold=math.inf, max_temperature=math.inf, level=0.9999),
    "odd names": lambda: safecal.evaluate(
        [1, 0, 1, 0], [0.7, 0.2, 0.6, 0.4], by={"$x_{": ["$a_{", "two\nlines", "a name that does not end " * 5, None]}
    ),
}


def words(ax: Any) -> list[str]:
    """Return every text inside the axes, and the labels of its axes."""
    return [text.get_text() for text in ax.texts] + [ax.get_xlabel(), ax.get_ylabel()]


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax: Any, marker: str) -> np.ndarray:
    """Return the points that were drawn with a marker."""
    points_drawn = [line.get_xydata() for line in ax.lines if line.get_marker() == marker]
    return np.concatenate([np.empty((0, 2)), *points_drawn])


def segments(ax: Any, kind: int = 0) -> np.ndarray:
    """Return the ends of the horizontal or vertical lines that were drawn together."""
    collections = [c for c in ax.collections if isinstance(c, LineCollection)]
    return np.array(collections[kind].get_segments())


# The whole page

TITLES = {
    "ten classes": ["Predicted and observed", "Where it is over-confident", "Which rows make ECD"],
    "over-confident": ["Predicted and observed", "Where it is over-confident", "Over-confidence by group"],
    "coin tosses": ["Predicted and observed", "Over-confidence by probability", "Which rows make ECD"],
    "states": ["How surprise is spread", "Over-confidence", "Which rows make ECD"],
    "states with bins": ["How surprise is spread", "Where it is over-confident", "Which rows make ECD"],
}


DRAWN_OFTEN = {"over-confident", "ten classes", "states by group", "an unnormalised density", "impossible outcomes"}
DRAWN = [pytest.param(name, marks=() if name in DRAWN_OFTEN else pytest.mark.proof) for name in CASES]


@pytest.mark.parametrize("name", DRAWN)
def test_a_dashboard_draws_everything(name: str) -> None:
    evaluation = CASES[name]()
    figure = plot.dashboard(evaluation)
    figure.get_layout_engine().execute(figure)  # places everything; half the cost of drawing it
    first, second, third, fourth = (ax.get_title(loc="left") for ax in figure.axes)
    assert third == "Which temperatures fit"
    assert TITLES.get(name, [first, second, fourth]) == [first, second, fourth]
    assert " ".join(figure.get_suptitle().split()) == str(evaluation.verdict)
    inside = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    assert inside.x0 >= -0.02
    assert inside.y0 >= -0.02
    assert inside.x1 <= width + 0.02
    assert inside.y1 <= height + 0.02
    for ax in figure.axes:
        if ax.get_legend() is not None:
            box = ax.get_legend().get_window_extent()
            assert box.y0 >= ax.get_window_extent().y1 - 1.0, "the legend lies above the axes"
            assert box.x1 <= figure.bbox.x1 + 1.0, "the legend fits the figure"


def test_a_dashboard_fills_the_figure_it_is_given() -> None:
    figure = Figure(figsize=(9.0, 7.0))
    assert plot.dashboard(binary(), figure=figure) is figure
    assert plt.get_fignums() == []
    assert figure.get_layout_engine() is not None
    part, _ = Figure(figsize=(16.0, 7.0), layout="constrained").subfigures(1, 2)
    assert plot.dashboard(binary(), figure=part) is part
    with pytest.raises(OptionError, match="`figure` must be empty; got a figure with 4 axes"):
        plot.dashboard(binary(), figure=figure)
    with pytest.raises(OptionError, match="`figure` must be a matplotlib Figure; got a str"):
        plot.dashboard(binary(), figure="figure")


def test_an_evaluation_plots_itself() -> None:
    assert len(binary().plot().axes) == 4


def test_a_document_is_drawn_as_what_wrote_it() -> None:
    for name in ("impossible outcomes", "states", "coin tosses", "over-confident"):
        evaluation = CASES[name]()
        again = Evaluation.from_dict(evaluation.to_dict())
        for display in (plot.ECDDisplay, plot.ExcessDisplay, plot.TemperatureDisplay):
            assert repr(display.from_evaluation(again)) == repr(display.from_evaluation(evaluation))
        plt.close("all")


# What every display promises


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_draws_on_the_axes_it_is_given(display: Any) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    drawn = display.from_evaluation(binary(200, 2.0, bins=3), ax=left)
    assert drawn.ax_ is left
    assert drawn.figure_ is figure
    assert plt.get_fignums() == []
    assert not right.has_data()
    assert drawn.plot(ax=right) is drawn
    assert drawn.ax_ is right
    assert len(left.lines) == len(right.lines)
    with pytest.raises(OptionError, match="`ax` must be a matplotlib Axes; got a ndarray"):
        display.from_evaluation(binary(200, 2.0, bins=3), ax=np.array([left, right]))


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_makes_one_figure_when_it_is_given_none(display: Any) -> None:
    drawn = display.from_evaluation(binary(200, 2.0, bins=3))
    assert plt.get_fignums() == [drawn.figure_.number]
    drawn.figure_.draw_without_rendering()
    assert repr(drawn).startswith(f"{display.__name__}: ")


@pytest.mark.parametrize("display", DISPLAYS)
def test_predictions_and_their_evaluation_draw_the_same(display: Any) -> None:
    y_true, y_prob, by = [0, 1, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.3], list("aabbcc")
    logits = np.log(y_prob) - np.log1p(-np.array(y_prob))
    options = {"by": by, "bins": 3, "level": 0.9}
    whole = display.from_evaluation(safecal.evaluate(y_true, y_prob, **options))
    assert repr(display.from_predictions(y_true, y_prob, **options)) == repr(whole)
    assert repr(display.from_predictions(y_true, logits=logits, **options)) == repr(whole)
    with pytest.raises(TypeError, match="n_bins"):
        display.from_predictions(y_true, y_prob, n_bins=3)


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_wants_an_evaluation(display: Any) -> None:
    with pytest.raises(OptionError, match=r"`evaluation` must be an Evaluation; got \[0.5\], a list") as caught:
        display.from_evaluation([0.5])
    assert "Hint: `safecal.evaluate(y_true, y_prob)` makes one" in str(caught.value)


@pytest.mark.parametrize("name", plot.__all__)
def test_public_names_are_documented(name: str) -> None:
    assert "Examples\n" in (getattr(plot, name).__doc__ or "")


# Without matplotlib


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_missing_library_is_named(display: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="plots need matplotlib") as caught:
        display.from_evaluation(binary(200, 2.0, bins=3))
    assert str(caught.value).endswith('Hint: pip install "safecal[plot]"')
    with pytest.raises(MissingExtraError):
        plot.dashboard(binary(200, 2.0, bins=3))


def test_importing_the_plots_does_not_import_matplotlib() -> None:
    code = "import sys, safecal.plot; safecal.plot.dashboard; print('matplotlib' in sys.modules)"
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Reliability


def test_the_diagram_shows_the_table() -> None:
    table = binary().bins
    assert table is not None
    drawn = plot.ReliabilityDisplay.from_evaluation(binary())
    np.testing.assert_array_equal(drawn.predicted, table.predicted)
    np.testing.assert_array_equal(drawn.observed, table.observed)
    assert drawn.n.tolist() == [s.n for s in table.summaries]
    shown = np.concatenate([points(drawn.ax_, marker) for marker in "oDs"])
    assert sorted(map(tuple, shown)) == sorted(zip(table.predicted, table.observed, strict=True))
    assert [1.0, 1.0] in [line.get_xydata()[-1].tolist() for line in drawn.ax_.lines], "the line y = x"


def test_the_band_is_binomial_by_hand() -> None:
    drawn = plot.ReliabilityDisplay.from_evaluation(binary())
    for k, n in enumerate(drawn.n.tolist()):
        law = stats.binom(n, drawn.predicted[k])
        assert drawn.low[k] == law.ppf(0.025) / n
        assert drawn.high[k] == law.ppf(0.975) / n
    ends = segments(drawn.ax_)
    np.testing.assert_array_equal(ends[:, 0], np.stack([drawn.predicted, drawn.low], axis=1))
    np.testing.assert_array_equal(ends[:, 1], np.stack([drawn.predicted, drawn.high], axis=1))


def test_the_band_follows_the_level() -> None:
    wide = plot.ReliabilityDisplay.from_evaluation(binary(600, 2.0, level=0.999))
    narrow = plot.ReliabilityDisplay.from_evaluation(binary(600, 2.0, level=0.5))
    assert (wide.high - wide.low > narrow.high - narrow.low).all()
    assert wide.outside.sum() < narrow.outside.sum()
    assert "where 99.9 % of calibrated bins lie" in legend(wide.ax_)


@given(
    n=st.integers(1, 400),
    mean=st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0.0, 1.0)),
    level=st.floats(0.01, 0.999),
)
def test_a_calibrated_share_leaves_the_band_rarely(n: int, mean: float, level: float) -> None:
    low, high = consistency_band([Summary(n=n, weight=n, weight2=n)], np.array([mean]), level)
    law = stats.binom(n, mean)
    tail = 0.5 - 0.5 * level
    assert law.cdf(round(low[0] * n) - 1) <= tail + 1e-12
    assert law.sf(round(high[0] * n)) <= tail + 1e-12
    assert law.cdf(round(low[0] * n)) >= tail - 1e-12, "not wider than it must be"
    assert law.sf(round(high[0] * n) - 1) >= tail - 1e-12


@given(n=st.integers(1, 10**6), impossible=st.integers(0, 10**6), weight=st.floats(1e-6, 1e6))
def test_equal_weights_count_as_rows(n: int, impossible: int, weight: float) -> None:
    impossible = min(impossible, n)
    s = Summary(
        n=n,
        n_impossible=impossible,
        weight=n * weight,
        weight_impossible=impossible * weight,
        weight2=(n - impossible) * weight**2,
    )
    assert effective_rows(s) == n


def test_unequal_weights_count_as_fewer_rows() -> None:
    weight = np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    table = safecal.evaluate([1, 0, 1, 1, 0], [0.6] * 5, sample_weight=weight, bins=1).bins
    assert table is not None
    rows = effective_rows(table.summaries[0])
    assert rows == math.floor(weight.sum() ** 2 / (weight**2).sum()) == 3
    drawn = plot.ReliabilityDisplay.from_table(table)
    assert drawn.high[0] == stats.binom(rows, 0.6).ppf(0.975) / rows
    assert effective_rows(Summary()) == 0
    impossible = Summary(n=6, n_impossible=1, weight=12.0, weight_impossible=4.0, weight2=20.0)
    assert effective_rows(impossible) == math.floor(12.0 * 8.0 / 20.0), "as if its weight were like the others"


def test_rows_without_weight_are_not_drawn() -> None:
    evaluation = safecal.evaluate([1, 0, 1], [0.1, 0.6, 0.9], sample_weight=[0.0, 1.0, 2.0], bins=2)
    drawn = plot.ReliabilityDisplay.from_evaluation(evaluation)
    assert math.isnan(drawn.predicted[0])
    assert len(np.concatenate([points(drawn.ax_, marker) for marker in "oDs"])) == 1
    assert "no weight" in words(plot.ECDDisplay.from_evaluation(evaluation).ax_)


def test_a_marker_tells_where_a_bin_lies() -> None:
    over = plot.ReliabilityDisplay.from_evaluation(binary(600, 3.0))
    assert len(points(over.ax_, "D")) == (over.outside & over.overconfident).sum() > 0
    assert len(points(over.ax_, "s")) == 0
    assert "outside, over-confident" in legend(over.ax_)
    under = plot.ReliabilityDisplay.from_evaluation(binary(600, 0.4))
    assert len(points(under.ax_, "s")) == (under.outside & ~under.overconfident).sum() > 0
    assert len(points(under.ax_, "D")) == 0
    assert "outside, under-confident" in legend(under.ax_)
    inside = ~under.outside & (under.n > 0)
    assert len(points(under.ax_, "o")) == inside.sum()


@cache
def shaded_patches(top_label: bool) -> tuple[Any, ...]:
    evaluation = classes() if top_label else binary()
    drawn = plot.ReliabilityDisplay.from_evaluation(evaluation, ax=Figure().subplots())
    return tuple(patch for patch in drawn.ax_.patches if patch.get_gid() == "over-confident")


def is_shaded(x: float, y: float, top_label: bool) -> bool:
    return any(patch.get_path().contains_point((x, y)) for patch in shaded_patches(top_label))


@pytest.mark.parametrize(
    ("x", "y", "positive", "top"),
    [
        (0.1, 0.3, True, False),  # below one half: over-confident above the line
        (0.1, 0.9, True, False),
        (0.3, 0.1, False, True),
        (0.9, 0.7, True, True),  # above one half: over-confident below it
        (0.9, 0.1, True, True),
        (0.7, 0.9, False, False),
    ],
)
def test_the_shaded_side_by_hand(x: float, y: float, positive: bool, top: bool) -> None:
    assert is_shaded(x, y, top_label=False) is positive
    assert is_shaded(x, y, top_label=True) is top


@given(x=st.floats(0.001, 0.999), y=st.floats(0.001, 0.999), top_label=st.booleans())
def test_the_shaded_side_is_the_one_of_the_table(x: float, y: float, top_label: bool) -> None:
    sums = {"n": 1, "weight": 1.0}
    names = ("sum_confidence", "sum_correct") if top_label else ("sum_predicted", "sum_observed")
    table = Table.of_summaries(
        "", ((0.0, 1.0),), (Summary(**sums, **dict(zip(names, (x, y), strict=True))),), None, top_label
    )
    if abs(x - y) > 1e-6 and abs(x - 0.5) > 1e-6:
        assert is_shaded(x, y, top_label) == bool(table.overconfident()[0])


@pytest.mark.parametrize("top_label", [False, True])
def test_the_words_stand_on_their_side(top_label: bool) -> None:
    drawn = plot.ReliabilityDisplay.from_evaluation(classes() if top_label else binary())
    drawn.figure_.draw_without_rendering()
    to_data = drawn.ax_.transData.inverted()
    words_seen = 0
    for text in drawn.ax_.texts:
        if text.get_text() in ("over-confident", "under-confident"):
            words_seen += 1
            for corner in to_data.transform(text.get_window_extent().corners()):
                assert is_shaded(*corner, top_label) == (text.get_text() == "over-confident")
    assert words_seen == (2 if top_label else 4)


def test_the_strip_counts_the_rows() -> None:
    drawn = plot.ReliabilityDisplay.from_evaluation(binary())
    bars = drawn.ax_.containers[0]
    heights = np.array([bar.get_height() for bar in bars])
    np.testing.assert_allclose(heights / heights.max(), drawn.n / drawn.n.max())
    assert [bar.get_x() + 0.5 * bar.get_width() for bar in bars] == pytest.approx(np.arange(0.05, 1.0, 0.1))
    written = [text.get_text() for text in drawn.ax_.texts if text.get_text().isdigit()]
    assert sorted(written) == sorted(str(n) for n in drawn.n)
    top = max(bar.get_y() + bar.get_height() for bar in bars)
    assert top < 0.0, "below the diagram"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (9999, "9999"),
        (10_000, "10k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (2 * 10**9, "2G"),
        (10**13, "1e+13"),
    ],
)
def test_counts_in_brief(count: int, text: str) -> None:
    assert short_count(count) == text


def test_diagrams_that_do_not_exist() -> None:
    with pytest.raises(OptionError, match="`evaluation` must have bins"):
        plot.ReliabilityDisplay.from_evaluation(CASES["no bins"]())
    with pytest.raises(UnavailableError, match="`ExcessDisplay` shows"):
        plot.ReliabilityDisplay.from_evaluation(CASES["states with bins"]())
    with pytest.raises(OptionError, match="`table` must be a table of bins; got a table of groups"):
        plot.ReliabilityDisplay.from_table(binary().groups)
    with pytest.raises(InputError, match="`level` must lie strictly between 0 and 1"):
        plot.ReliabilityDisplay.from_table(binary().bins, level=95)


# ECD by bin


def test_ecd_is_drawn_with_intervals_that_hold_together() -> None:
    evaluation = binary()
    drawn = plot.ECDDisplay.from_evaluation(evaluation)
    table = evaluation.bins
    assert table is not None
    assert drawn.intervals == table.intervals(0.95)
    assert drawn.total == evaluation.interval
    widths = [bar.get_width() for bar in drawn.ax_.containers[0]]
    assert widths == pytest.approx([*table.ecd, evaluation.ecd])
    left, right = drawn.ax_.get_xlim()
    ends = np.array([(i.low, i.high) for i in (*drawn.intervals, drawn.total)])
    np.testing.assert_allclose(segments(drawn.ax_)[:, :, 0], np.clip(ends, left, right))
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == [*table.labels, "all rows"]
    assert drawn.ax_.get_xlabel() == "← under-confident     ECD (nat)     over-confident →"
    assert left < 0.0 < 0.1 < right, "under-confident on the left, over-confident on the right"
    assert "limit, 0.1 nat" in legend(drawn.ax_)
    vertical = {line.get_xdata()[0] for line in drawn.ax_.lines if list(line.get_ydata()) == [0, 1]}
    assert vertical == {0.0, 0.1}
    counts = [text.get_text() for text in drawn.ax_.texts]
    assert counts[: len(table) + 1] == [str(s.n) for s in table.summaries] + ["600"]


def test_markers_say_on_which_side_of_the_limit_an_interval_lies() -> None:
    drawn = plot.ECDDisplay.from_evaluation(binary())
    everything = (*drawn.intervals, drawn.total)
    assert len(points(drawn.ax_, "D")) == sum(i.low > 0.1 for i in everything) > 0
    assert len(points(drawn.ax_, "s")) == sum(i.high <= 0.1 for i in everything)


def test_an_infinite_ecd_is_an_arrow_with_words() -> None:
    drawn = plot.ECDDisplay.from_evaluation(CASES["impossible outcomes"]())
    texts = words(drawn.ax_)
    assert texts.count("infinite: 1 impossible outcome") == 2
    assert texts.count("infinite: 2 impossible outcomes") == 1, "of all rows"
    arrows = points(drawn.ax_, ">")
    assert [y for _, y in arrows if y in (0.0, 9.0, 10.0)] == [0.0, 9.0, 10.0]
    assert texts.count("no rows") == 6
    assert np.isfinite(drawn.ax_.get_xlim()).all()


def test_states_have_a_limit_for_each_dimension_and_may_have_no_bins() -> None:
    drawn = plot.ECDDisplay.from_evaluation(states())
    assert drawn.limit == pytest.approx(0.4)
    assert drawn.labels == ()
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == ["all rows"]
    assert repr(drawn) == f"ECDDisplay: ECD {states().ecd:+.3g} of 300 rows"


def test_merged_tables_are_drawn() -> None:
    halves = [binary(n).bins for n in (300, 400)]
    drawn = plot.ECDDisplay.from_table(halves[0] + halves[1], threshold=0.2, level=0.9)
    assert drawn.n_total == 700
    assert drawn.limit == 0.2
    assert drawn.intervals == (halves[0] + halves[1]).intervals(0.9)
    assert plot.ReliabilityDisplay.from_table(sum(halves)).n.sum() == 700
    with pytest.raises(InputError, match="`threshold` must be greater than 0"):
        plot.ECDDisplay.from_table(halves[0], threshold=0.0)


def test_of_many_bins_some_are_named_and_the_last_always() -> None:
    drawn = plot.ECDDisplay.from_evaluation(CASES["many bins"](), ax=plt.subplots(layout="constrained")[1])
    names = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert names[0] == drawn.labels[0]
    assert names[-1] == "all rows"
    assert 12 <= len(names) <= 25
    drawn.figure_.draw_without_rendering()
    boxes = [label.get_window_extent() for label in drawn.ax_.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


_ends = st.floats(-5.0, 50.0)


@given(
    st.lists(st.tuples(_ends, st.floats(0.0, 1e6), st.floats(0.0, 1e6)), min_size=1, max_size=4), st.floats(0.01, 9.0)
)
def test_the_axis_shows_every_value_and_the_limit(rows: list[tuple[float, float, float]], limit: float) -> None:
    intervals = [safecal.Interval(v, v - down, v + up, 0.95, "") for v, down, up in rows]
    left, right = ecd_range(intervals, [limit] * len(intervals))
    assert left < min(0.0, *(i.value for i in intervals), limit)
    assert right > max(0.0, *(i.value for i in intervals), limit)
    span = max(0.0, limit, *(v for v, _, _ in rows)) - min(0.0, *(v for v, _, _ in rows))
    assert right - left <= 4.0 * span * 1.12 + 1e-9, "a long interval does not squeeze the others"


def test_an_interval_that_leaves_the_axis_says_how_far_it_goes() -> None:
    ax = Figure().subplots()
    intervals = [safecal.Interval(0.1, -77.0, 123.0, 0.95, ""), safecal.Interval(0.1, -math.inf, math.inf, 0.95, "")]
    draw_intervals(ax, intervals, (0.1, 0.1), (-1.0, 1.0))
    assert {"from -77", "to 123", "no lower bound", "no upper bound"} <= set(words(ax))
    assert segments(ax)[:, :, 0].tolist() == [[-1.0, 1.0], [-1.0, 1.0]]


# ECD along the predictions


def shifted(n: int = 6000, shift: float = 1.0, **options: Any) -> Evaluation:
    rng = np.random.default_rng(n)
    log_odds = rng.normal(0.0, 2.0, n)
    return safecal.evaluate(rng.random(n) < 1.0 / (1.0 + np.exp(shift - log_odds)), logits=log_odds, **options)


def test_ecd_is_drawn_along_the_predictions() -> None:
    evaluation = shifted()
    drawn = plot.LocalDisplay.from_evaluation(evaluation)
    steps = drawn.course.steps
    assert sum(step.range.n for step in steps) == pytest.approx(6000, abs=20)
    assert all(a.range.high <= b.range.low for a, b in pairwise(steps)), "in their order, and none in two"
    assert {step.range for step in steps} <= set(evaluation.local)
    ends = segments(drawn.ax_)
    assert ends[:, 0, 1].tolist() == [step.range.ecd.value for step in steps]
    inside = [step.range.low for step in steps[1:]]
    np.testing.assert_allclose(ends[1:, 0, 0], np.log(inside) - np.log1p(-np.array(inside)), atol=1e-9)
    assert drawn.ax_.get_xlabel() == "predicted probability"
    ticks = [label.get_text() for label in drawn.ax_.get_xticklabels()]
    assert {"10 %", "50 %", "90 %"} <= set(ticks)
    assert {0.0, 0.2} <= {line.get_ydata()[0] for line in drawn.ax_.lines if list(line.get_xdata()) == [0, 1]}
    assert "limit, 0.2 nat" in legend(drawn.ax_)


def test_the_worst_range_is_framed_and_named_as_the_verdict_names_it() -> None:
    evaluation = shifted(20_000)
    place = evaluation.verdict.where[0]
    assert place.shown
    drawn = plot.LocalDisplay.from_evaluation(evaluation)
    worst = drawn.course.worst
    assert worst is not None
    assert (worst.range.low, worst.range.high, worst.range.ecd) == (place.low, place.high, place.ecd)
    assert worst.name == place.brief
    assert f"worst: {place.brief}, at least {place.ecd.low:.3g} nat" in words(drawn.ax_)
    (frame,) = (patch for patch in drawn.ax_.patches if patch.get_gid() == "worst")
    heights = frame.get_xy()[:, 1]
    assert (heights.min(), heights.max()) == (place.ecd.low, place.ecd.high)
    marks = points(drawn.ax_, "D")
    states = {step.middle: step.state for step in drawn.course.steps}
    assert {states[x] for x, _ in marks} == {"beyond the limit", "suspected"}
    assert len(marks) == sum(state != "not shown to be beyond it" for state in states.values())


@pytest.mark.parametrize("name", ["over-confident", "calibrated", "under-confident", "ten classes", "few rows"])
def test_ranges_are_marked_as_the_verdict_judges_them(name: str) -> None:
    evaluation = CASES[name]()
    drawn = plot.LocalDisplay.from_evaluation(evaluation)
    worst = drawn.course.worst
    assert worst is not None
    ranges = [place for place in evaluation.verdict.where if place.type == "range"]
    state = "not shown to be beyond it" if not ranges else "beyond the limit" if ranges[0].shown else "suspected"
    assert worst.state == state
    if ranges:
        assert (worst.name, worst.limit) == (ranges[0].brief, ranges[0].limit)


def test_rare_predictions_and_sharp_ones_can_be_read() -> None:
    rng = np.random.default_rng(5)
    rare = rng.normal(-9.0, 1.0, 4000)
    drawn = plot.LocalDisplay.from_predictions(rng.random(4000) < np.exp(rare), logits=rare)
    assert [label.get_text() for label in drawn.ax_.get_xticklabels()] == ["0.0001 %", "0.001 %", "0.01 %", "0.1 %"]
    both = rng.choice([-800.0, 800.0], 400)
    drawn = plot.LocalDisplay.from_predictions(both > 0, logits=both)
    assert [step.name for step in drawn.course.steps] == ["says 0 %", "says 100 %"]
    drawn.figure_.draw_without_rendering()
    boxes = [label.get_window_extent() for label in drawn.ax_.get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    close = rng.uniform(0.50, 0.60, 3000)
    drawn = plot.LocalDisplay.from_predictions(rng.random(3000) < 0.63, logits=close)
    assert len(drawn.course.ticks) >= 2


def test_classes_and_states_have_axes_of_their_own() -> None:
    drawn = plot.LocalDisplay.from_evaluation(classes())
    assert drawn.ax_.get_xlabel() == "confidence in the likeliest class"
    rng = np.random.default_rng(6)
    std = np.exp(rng.normal(0.0, 1.5, 2000))
    drawn = safecal.gaussian(rng.normal(size=2000) * std, np.zeros(2000), std=std).evaluate().local.plot()
    assert isinstance(drawn, plot.LocalDisplay)
    assert drawn.ax_.get_xlabel() == "standard deviation"
    assert [label.get_text() for label in drawn.ax_.get_xticklabels()] == [
        "0.01",
        "0.03",
        "0.1",
        "0.3",
        "1",
        "3",
        "10",
        "30",
        "100",
    ]


def test_limits_that_differ_are_steps() -> None:
    rng = np.random.default_rng(7)
    z = rng.normal(0.0, 2.5, (3000, 50))
    y_true = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    drawn = plot.LocalDisplay.from_predictions(y_true, logits=z)
    assert "limit of each range" in legend(drawn.ax_)
    limits = [step.limit for step in drawn.course.steps]
    assert max(limits) > 1.2 * min(limits)
    assert segments(drawn.ax_)[:, 0, 1].tolist() == limits
    higher = safecal.evaluate(y_true, logits=z).local.plot(local_threshold=0.4)
    assert [step.limit for step in higher.course.steps] == pytest.approx([2.0 * limit for limit in limits])
    with pytest.raises(InputError, match="`local_threshold` must be greater than 0"):
        safecal.evaluate(y_true, logits=z).local.plot(local_threshold=-1.0)


def test_an_infinite_ecd_of_a_range_is_an_arrow() -> None:
    rng = np.random.default_rng(8)
    p = rng.dirichlet([0.3] * 4, 500)
    y_true = np.array([rng.choice(4, p=row) for row in p])
    p[0], y_true[0] = (1.0, 0.0, 0.0, 0.0), 1
    drawn = plot.LocalDisplay.from_predictions(y_true, p)
    assert len(points(drawn.ax_, "^")) == 1
    assert any(text.endswith(", infinite") for text in words(drawn.ax_))
    assert np.isfinite(drawn.ax_.get_ylim()).all()


@pytest.mark.parametrize("name", ["coin tosses", "an unnormalised density", "one row"])
def test_where_there_are_no_ranges_the_plot_says_why(name: str) -> None:
    drawn = plot.LocalDisplay.from_evaluation(CASES[name]())
    assert words(drawn.ax_)[0].startswith("There are no ranges to show")
    assert repr(drawn) == "LocalDisplay: no ranges"


# The temperature


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_curve_meets_the_interval_at_its_level(level: float) -> None:
    evaluation = binary(600, 2.0, level=level)
    drawn = plot.TemperatureDisplay.from_evaluation(evaluation)
    temperature = evaluation.temperature
    assert drawn.distance == pytest.approx(stats.norm.isf(0.5 - 0.5 * level))
    for side, end in ((drawn.low_side, temperature.low), (drawn.high_side, temperature.high)):
        at = np.interp(drawn.distance, side[:, 1], side[:, 0])
        assert at == pytest.approx(end, rel=1e-3)
        assert (np.diff(side[:, 1]) >= 0.0).all(), "outward from the estimate"
    assert drawn.low_side[0, 0] == pytest.approx(temperature.value, rel=0.02)
    assert drawn.high_side[0, 0] == pytest.approx(temperature.value, rel=0.02)


def test_the_temperature_is_marked_with_its_limits() -> None:
    evaluation = binary()
    drawn = plot.TemperatureDisplay.from_evaluation(evaluation)
    ax, temperature = drawn.ax_, evaluation.temperature
    assert ax.get_xscale() == "log"
    assert points(ax, "o").tolist() == [[temperature.value, 0.0]]
    vertical = {line.get_xdata()[0] for line in ax.lines if list(line.get_ydata()) == [0, 1]}
    assert vertical == {1.0, 1.5}
    interval = next(line for line in ax.lines if "interval" in str(line.get_label()))
    assert list(interval.get_xdata()) == [temperature.low, temperature.high]
    assert set(interval.get_ydata()) == {drawn.distance}
    assert legend(ax) == [
        "calibrated, 1",
        "limit, 1.5",
        f"95 % interval, {temperature.low:.3g} to {temperature.high:.3g}",
        f"estimate, {temperature.value:.3g}",
    ]
    assert ax.get_xlabel() == "← under-confident     temperature     over-confident →"


@pytest.mark.parametrize(
    ("name", "value", "marker"), [("always wrong", math.inf, ">"), ("always right", 0.0, "<"), ("one row", 0.0, "<")]
)
def test_a_temperature_at_the_end_is_an_arrow(name: str, value: float, marker: str) -> None:
    drawn = plot.TemperatureDisplay.from_evaluation(CASES[name]())
    ax = drawn.ax_
    assert drawn.interval.value == value
    left, right = ax.get_xlim()
    assert 0.0 < left < 1.0 < 1.5 < right < math.inf
    assert [x for x, y in points(ax, marker) if y == 0.0] == [left if value == 0.0 else right]
    assert f"estimate, {value:g}" in legend(ax)
    for side in (drawn.low_side, drawn.high_side):
        assert np.isfinite(side).all()
        assert (side > 0.0).all(axis=0)[0] or not side.size


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("coin tosses", "every prediction is a coin toss or a certainty"),
        ("an unnormalised density", "it is not defined for these predictions"),
    ],
)
def test_where_there_is_no_temperature_the_plot_says_why(name: str, reason: str) -> None:
    drawn = plot.TemperatureDisplay.from_evaluation(CASES[name]())
    assert [text.get_text() for text in drawn.ax_.texts] == [f"There is no temperature:\n{reason}."]
    assert repr(drawn) == "TemperatureDisplay: none"


_temperature = st.one_of(st.sampled_from([0.0, math.inf, 1.0]), st.floats(1e-9, 1e9))


@given(st.tuples(_temperature, _temperature, _temperature).map(sorted), st.floats(0.1, 100.0))
def test_the_axis_of_temperatures(ordered: list[float], most: float) -> None:
    low, value, high = ordered
    left, right = factor_range([safecal.Interval(value, low, high, 0.95, "")], most)
    assert 0.0 < left < min(1.0, most)
    assert max(1.0, most) < right < math.inf
    nearest = high if value == 0.0 else low if value == math.inf else value
    if 0.0 < nearest < math.inf:
        assert left <= nearest <= right
    ticks = _ticks(left, right)
    assert 1 <= len(ticks) <= 12
    assert all(left <= tick <= right for tick in ticks)


# Groups


def many(groups: int, n: int = 3000, times: float = 1.5) -> Evaluation:
    rng = np.random.default_rng(groups)
    log_odds = rng.normal(0.0, 2.0, n)
    y_true = rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))
    return safecal.evaluate(y_true, logits=times * log_odds, by=[f"station {k}" for k in np.arange(n) % groups])


def test_groups_come_worst_first() -> None:
    evaluation = binary()
    table = evaluation.groups
    assert table is not None
    drawn = plot.GroupsDisplay.from_evaluation(evaluation)
    order = np.argsort(-table.ecd)
    assert drawn.labels == tuple(table.labels[k] for k in order)
    assert drawn.n == tuple(table.summaries[k].n for k in order)
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == list(drawn.labels)
    shown = np.concatenate([points(drawn.ax_, marker) for marker in "oDs"])
    assert sorted(shown[:, 0], reverse=True) == pytest.approx(sorted(table.ecd, reverse=True))
    bottom, top = drawn.ax_.get_ylim()
    assert bottom > top, "the first is on top"
    assert [text.get_text() for text in drawn.ax_.texts][:3] == [str(n) for n in drawn.n]


def test_groups_are_marked_as_the_verdict_judges_them() -> None:
    evaluation = many(12, 6000, 2.0)
    drawn = plot.GroupsDisplay.from_evaluation(evaluation)
    places = {place.name: place for place in evaluation.verdict.where if place.type == "group"}
    shown = {name for name, place in places.items() if place.shown}
    assert 0 < len(shown) < 12
    beyond = zip(drawn.labels, drawn.intervals, drawn.limits, strict=True)
    assert {f"group {label}" for label, i, limit in beyond if i.low > limit} == shown
    assert len(points(drawn.ax_, "D")) == len(shown)
    for label, interval, limit in zip(drawn.labels, drawn.intervals, drawn.limits, strict=True):
        if f"group {label}" in places:
            assert (interval, limit) == (places[f"group {label}"].ecd, places[f"group {label}"].limit)


def test_each_group_has_the_limit_of_its_own_dimensions() -> None:
    rng = np.random.default_rng(4)
    z = rng.normal(0.0, 1.0, (900, 60)) * np.repeat([0.2, 3.0], [450, 450])[:, None]
    y_true = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    evaluation = safecal.evaluate(y_true, logits=z, by=np.repeat(["vague", "sharp"], 450))
    drawn = plot.GroupsDisplay.from_evaluation(evaluation)
    limits = dict(zip(drawn.labels, drawn.limits, strict=True))
    assert limits["sharp"] > 1.5 * limits["vague"] == pytest.approx(0.15)
    assert "limit of each" in legend(drawn.ax_)
    ends = segments(drawn.ax_)
    assert ends[:, :, 0].tolist() == [[x, x] for x in drawn.limits]
    assert ends[:, :, 1].tolist() == [[-0.5, 0.5], [0.5, 1.5]]
    assert repr(drawn) == "GroupsDisplay: 2 groups, 0 of them beyond their limits"


def test_groups_that_are_not_drawn_are_counted() -> None:
    evaluation = many(57)
    drawn = plot.GroupsDisplay.from_evaluation(evaluation)
    assert len(drawn.labels) == 57
    assert len(drawn.ax_.get_yticklabels()) == 20
    assert "and 37 more groups with smaller ECD" in words(drawn.ax_)
    assert "and 1 more group with smaller ECD" in words(drawn.plot(most=56).ax_)
    assert not any("more" in text for text in words(drawn.plot(most=57).ax_))
    alone = evaluation.groups[drawn.labels[0]]
    single = Table.of_summaries("group", (0,), (alone,)).intervals()[0]
    assert drawn.intervals[0].high > single.high, "wide enough for all groups, drawn or not"
    with pytest.raises(OptionError, match="`most` must be a whole number, at least 1"):
        drawn.plot(most=0)


def test_groups_of_any_name_and_of_no_weight() -> None:
    names = ["a $b_{", "two\nlines", "x" * 90, None]
    evaluation = safecal.evaluate([1, 0, 1, 0], [0.7, 0.2, 0.6, 0.4], by=names, sample_weight=[1.0, 1.0, 1.0, 0.0])
    drawn = plot.GroupsDisplay.from_evaluation(evaluation)
    drawn.figure_.draw_without_rendering()
    shown = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert {"a $b_{", "two\\nlines"} <= set(shown)
    assert max(map(len, shown)) == 28
    assert shown[-1] == "missing", "what has no ECD comes last"
    assert "no weight" in words(drawn.ax_)


@given(st.text(max_size=80), st.integers(8, 40))
def test_names_are_shortened_in_the_middle(name: str, most: int) -> None:
    short = shortened(name, most)
    assert len(short) <= most
    assert short == visible(short)
    if len(name) <= most and name.isprintable():
        assert short == name
    if len(name) > most and name.isprintable():
        assert name.startswith(short.partition("…")[0])
        assert "…" in short


def test_groups_need_groups() -> None:
    with pytest.raises(OptionError, match="`evaluation` must have groups") as caught:
        plot.GroupsDisplay.from_predictions([1, 0], [0.7, 0.2])
    assert "Hint: evaluate with `by=`" in str(caught.value)
    table = many(5).groups + many(5, 400).groups
    drawn = plot.GroupsDisplay.from_table(table, threshold=0.3, most=2)
    assert sum(drawn.n) == 3400
    assert drawn.limits == (0.3,) * 5


# The rows


def test_the_spread_of_a_few_rows_is_exact() -> None:
    y_true, p = np.array([1, 1, 1, 0, 1, 0]), np.array([0.9, 0.6, 0.7, 0.95, 0.7, 0.7])
    excess = safecal.bernoulli(y_true, p).score().excess
    drawn = plot.ExcessDisplay.from_predictions(y_true, p)
    np.testing.assert_allclose(drawn.excess, np.unique(excess))
    np.testing.assert_allclose(drawn.share, [(excess >= x - 1e-12).mean() for x in np.unique(excess)])
    assert drawn.ecd == pytest.approx(excess.mean())
    assert drawn.surprised == pytest.approx((excess > 0.0).mean())
    assert drawn.expected is None
    stairs = next(line for line in drawn.ax_.lines if line.get_label() == "rows")
    np.testing.assert_array_equal(stairs.get_xdata(), drawn.excess)
    np.testing.assert_array_equal(stairs.get_ydata(), drawn.share)


def test_calibrated_states_are_shown_beside_the_rows() -> None:
    drawn = plot.ExcessDisplay.from_evaluation(states(scale=1.0))
    assert drawn.expected is not None
    np.testing.assert_allclose(stats.chi2(4).sf(2.0 * drawn.expected[:, 0] + 4.0), drawn.expected[:, 1], atol=1e-12)
    ahead = np.interp(drawn.excess, *drawn.expected.T)
    assert np.abs(drawn.share - ahead).max() < 0.1, "these states are calibrated"
    assert "if calibrated" in legend(drawn.ax_)


def test_infinite_excess_goes_on_to_the_edge() -> None:
    drawn = plot.ExcessDisplay.from_evaluation(CASES["impossible outcomes"]())
    assert drawn.impossible == 0.5
    assert drawn.share.min() > 0.5
    assert "infinite: 50 %" in words(drawn.ax_)
    assert "mean (ECD), infinite" in legend(drawn.ax_)
    assert points(drawn.ax_, ">").tolist() == [[drawn.ax_.get_xlim()[1], 0.5]]
    nothing = plot.ExcessDisplay.from_evaluation(CASES["nothing possible"]())
    assert nothing.surprised == 1.0
    assert words(nothing.ax_)[0] == "Every outcome was one that the model had called impossible."


def test_an_axis_that_reaches_far_is_compressed() -> None:
    near, far, farther = (
        plot.ExcessDisplay.from_predictions([1, 1], logits=[-x, 3.0]).ax_ for x in (10.0, 40.0, 800.0)
    )
    assert (near.get_xscale(), far.get_xscale(), farther.get_xscale()) == ("linear", "asinh", "asinh")
    assert [label.get_text() for label in far.get_xticklabels()] == ["0", "1", "2", "5", "10", "20"]
    assert [label.get_text() for label in farther.get_xticklabels()] == ["0", "0.5", "1", "10", "100"]


@pytest.mark.parametrize("name", ["over-confident", "states", "weights", "impossible outcomes", "coin tosses"])
def test_ecd_adds_up(name: str) -> None:
    evaluation = CASES[name]()
    drawn = plot.ContributionDisplay.from_evaluation(evaluation)
    assert drawn.share[0] == drawn.total[0] == 0.0
    assert drawn.share[-1] == pytest.approx(1.0)
    assert drawn.total[-1] == pytest.approx(evaluation.summary.ecd_possible)
    slopes = np.diff(drawn.total) / np.diff(drawn.share)
    assert (np.diff(slopes) <= 1e-9).all(), "the most surprising rows come first"
    assert points(drawn.ax_, "o").tolist() == [[100.0, drawn.total[-1]]]


def test_the_worst_rows_are_marked() -> None:
    drawn = plot.ContributionDisplay.from_evaluation(binary())
    assert drawn.worst_share == binary().histogram.worst_share(0.01)
    marked = points(drawn.ax_, "D")
    assert marked[:, 0].tolist() == [1.0]
    assert marked[0, 1] == pytest.approx(drawn.worst_share * drawn.total.max(), rel=1e-6)
    few = plot.ContributionDisplay.from_evaluation(CASES["few rows"]())
    assert math.isnan(few.worst_share), "one of a hundred rows, of twelve"
    assert len(points(few.ax_, "D")) == 0
    nothing = plot.ContributionDisplay.from_evaluation(CASES["nothing possible"]())
    assert words(nothing.ax_)[0].startswith("Every outcome was one")
    unlimited = plot.ContributionDisplay.from_evaluation(CASES["no limits"]())
    assert not any(text.startswith("limit") for text in legend(unlimited.ax_))
    possible = plot.ContributionDisplay.from_evaluation(CASES["impossible outcomes"]())
    assert any(text.startswith("ECD of the possible rows, ") for text in legend(possible.ax_))


# Before and after


def test_before_and_after_are_drawn_over_each_other() -> None:
    before, after = binary(), binary(600, 1.0)
    drawn = plot.RecalibrationDisplay.from_evaluations(before, after)
    drawn.figure_.draw_without_rendering()
    diagram, ecd, temperature = drawn.axes_
    for name, evaluation, marker in (("before", before, "o"), ("after", after, "s")):
        line = next(line for line in diagram.lines if line.get_label() == name)
        np.testing.assert_array_equal(line.get_xdata(), evaluation.bins.predicted)
        np.testing.assert_array_equal(line.get_ydata(), evaluation.bins.observed)
        assert line.get_marker() == marker
    filled = [line for line in diagram.lines if line.get_linestyle() == "None" and line.get_marker() == "o"]
    outside = plot.ReliabilityDisplay.from_evaluation(before).outside
    assert len(filled[0].get_xdata()) == outside.sum()
    for ax, pair in ((ecd, (before.interval, after.interval)), (temperature, (before.temperature, after.temperature))):
        assert [label.get_text() for label in ax.get_yticklabels()] == ["before", "after"]
        shown = np.concatenate([points(ax, kind) for kind in "oDs"])
        assert sorted(shown.tolist()) == sorted([i.value, float(y)] for y, i in enumerate(pair))
    assert repr(drawn) == f"RecalibrationDisplay: ECD {before.ecd:+.3g} before, {after.ecd:+.3g} after"


def test_states_before_and_after_are_drawn_by_their_spread() -> None:
    figure = Figure()
    drawn = plot.RecalibrationDisplay.from_evaluations(states(), states(scale=1.0), figure=figure)
    assert drawn.figure_ is figure
    assert plt.get_fignums() == []
    assert legend(drawn.axes_[0]) == ["if calibrated", "before", "after"]


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ("always wrong", "always wrong", ["estimate inf", "estimate inf"]),
        ("always right", "always right", ["estimate 0", "estimate 0"]),
        ("coin tosses", "coin tosses", ["There is no temperature:\nevery prediction is a coin toss or a certainty."]),
    ],
)
def test_temperatures_before_and_after_that_are_not_numbers(before: str, after: str, texts: list[str]) -> None:
    drawn = plot.RecalibrationDisplay.from_evaluations(CASES[before](), CASES[after]())
    drawn.figure_.draw_without_rendering()
    assert [text.get_text() for text in drawn.axes_[2].texts] == texts


def test_a_temperature_may_exist_only_before() -> None:
    y_true = [1, 0, 1]
    pair = safecal.evaluate(y_true, [0.6, 0.7, 0.9]), safecal.evaluate(y_true, [0.5] * 3)
    drawn = plot.RecalibrationDisplay.from_evaluations(*pair)
    drawn.figure_.draw_without_rendering()
    assert "none" in words(drawn.axes_[2])


def test_impossible_outcomes_before_and_after() -> None:
    impossible = CASES["nothing possible"]()
    drawn = plot.RecalibrationDisplay.from_evaluations(impossible, impossible)
    drawn.figure_.draw_without_rendering()
    assert words(drawn.axes_[1]).count("infinite: 2 impossible outcomes") == 2
    unbinned = safecal.evaluate([1, 1], [0.0, 0.0], bins=None)
    spread = plot.RecalibrationDisplay.from_evaluations(unbinned, unbinned)
    assert words(spread.axes_[0])[0].startswith("Every outcome was one")


def test_only_what_belongs_together_is_compared() -> None:
    both = plot.RecalibrationDisplay.from_evaluations
    with pytest.raises(OptionError, match="same family as `before`; got gaussian and bernoulli"):
        both(binary(), states())
    with pytest.raises(OptionError, match="same number of rows as `before`; got 12 and 600"):
        both(binary(), CASES["few rows"]())
    with pytest.raises(OptionError, match="same bins on as `before`; got confidence and probability"):
        both(binary(), CASES["bins on confidence"]())
    with pytest.raises(OptionError, match="`after` must be an Evaluation"):
        both(binary(), None)


# Estimators


@pytest.fixture(scope="module")
def fitted() -> Callable[[list[Any]], tuple[Any, np.ndarray, np.ndarray]]:
    """Return a function that fits scikit-learn's logistic regression to given class names."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))

    def fit(names: list[Any]) -> tuple[Any, np.ndarray, np.ndarray]:
        y = np.array(names)[(X[:, 0] + rng.normal(size=300) > 0).astype(int) + (len(names) > 2) * (X[:, 1] > 1)]
        return linear_model.LogisticRegression().fit(X, y), X, y

    return fit


@pytest.mark.parametrize("names", [[0, 1], [1, 2], [False, True], ["ill", "well"]])
def test_two_classes_of_an_estimator(fitted: Any, names: list[Any]) -> None:
    model, X, y = fitted(names)
    drawn = plot.ReliabilityDisplay.from_estimator(model, X, y, bins=5)
    by_hand = plot.ReliabilityDisplay.from_predictions(y == names[1], model.predict_proba(X)[:, 1], bins=5)
    np.testing.assert_array_equal(drawn.observed, by_hand.observed)
    np.testing.assert_array_equal(drawn.predicted, by_hand.predicted)
    other = plot.ReliabilityDisplay.from_estimator(model, X, y, bins=5, pos_label=names[0])
    np.testing.assert_allclose(other.observed, 1.0 - drawn.observed[::-1])
    with pytest.raises(LabelError, match="`pos_label` must be one of the classes of the estimator; got 'neither'"):
        plot.ReliabilityDisplay.from_estimator(model, X, y, pos_label="neither")


@pytest.mark.parametrize("names", [[0, 1, 2], ["a", "b", "c"]])
def test_more_classes_of_an_estimator(fitted: Any, names: list[Any]) -> None:
    model, X, y = fitted(names)
    drawn = plot.ECDDisplay.from_estimator(model, X, y)
    codes = np.searchsorted(names, y)
    assert drawn.total.value == pytest.approx(safecal.ecd(codes, model.predict_proba(X)))
    grouped = plot.GroupsDisplay.from_estimator(model, X, y, by=y, most=2)
    assert "and 1 more group with smaller ECD" in words(grouped.ax_)
    with pytest.raises(OptionError, match="`pos_label` is for two classes; got 3 classes"):
        plot.ECDDisplay.from_estimator(model, X, y, pos_label=names[0])


def test_estimators_that_cannot_be_drawn() -> None:
    class Scores:
        classes_ = (0, 1)

        def predict_proba(self, X: Any) -> Any:
            return np.full(len(X), 0.5)

    class Unfitted:
        predict_proba = Scores.predict_proba

    class Several(Unfitted):
        classes_ = ((0, 1), (0, 1))

    draw = plot.ReliabilityDisplay.from_estimator
    with pytest.raises(OptionError, match="`estimator` must have a method `predict_proba`; got a list") as caught:
        draw([], [[0.0]], [1])
    assert "Hint: pass its probabilities to `from_predictions`." in str(caught.value)
    with pytest.raises(OptionError, match=r"must be a fitted classifier.*got no `classes_`"):
        draw(Unfitted(), [[0.0]], [1])
    with pytest.raises(OptionError, match=r"must be a fitted classifier.*got several outputs"):
        draw(Several(), [[0.0]], [1])
    with pytest.raises(ShapeError, match=r"got shape \(1,\) for 2 of `classes_`"):
        draw(Scores(), [[0.0]], [1])


def test_the_page_and_the_plot_show_the_same_numbers() -> None:
    evaluation = binary()
    assert evaluation.bins is not None
    points = ReliabilityPoints.of(evaluation.bins, evaluation.level)
    shown = plot.ReliabilityDisplay.from_evaluation(evaluation)
    for name in ("predicted", "observed", "low", "high", "outside", "overconfident"):
        np.testing.assert_array_equal(getattr(points, name), getattr(shown, name))
    curve, drawn = TemperatureCurve.of(evaluation), plot.TemperatureDisplay.from_evaluation(evaluation)
    np.testing.assert_array_equal(curve.low_side, drawn.low_side)
    assert (curve.ends, curve.interval) == (drawn.ends, drawn.interval)
    assert drawn.ax_.get_xlim() == pytest.approx(curve.ends)


# Several models on one axes


def legend_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("display", [d for d in DISPLAYS if d not in (plot.ECDDisplay, plot.GroupsDisplay)])
def test_models_with_names_share_axes_and_one_legend(display: Any) -> None:
    figure, ax = plt.subplots(layout="constrained")
    for name, times in (("forest", 0.5), ("trees", 2.0), ("logistic", 1.0)):
        display.from_evaluation(binary(600, times), ax=ax, name=name)
    figure.canvas.draw()
    labels = legend_of(ax)
    assert len(labels) == len(set(labels)), "nothing is said twice"
    assert [sum(label.startswith(name) for label in labels) for name in ("forest", "trees", "logistic")] == [1, 1, 1]
    models = [line for line in ax.get_lines() if line.get_gid() == "model"]
    assert len({line.get_color() for line in models}) == len({line.get_linestyle() for line in models}) == 3
    left, right = ax.get_xlim()
    for line in models:
        x = np.asarray(line.get_xdata(), dtype=float)
        assert ((left <= x) & (x <= right)).any()


@pytest.mark.parametrize("display", [plot.ECDDisplay, plot.GroupsDisplay])
def test_rows_of_two_models_do_not_cover_each_other(display: Any) -> None:
    ax = plt.subplots()[1]
    evaluation = many(5)
    display.from_evaluation(evaluation, ax=ax, name="forest")
    with pytest.raises(OptionError, match=r"`ax` must hold no other model(.|\n)*Hint: give each model axes of its own"):
        display.from_evaluation(evaluation, ax=ax, name="trees")
    ax.clear()
    display.from_evaluation(evaluation, ax=ax, name="trees")


def test_transforms_of_two_models_look_different() -> None:
    ax = plt.subplots()[1]
    for name, var in (("narrow", 0.5), ("wide", 2.0)):
        states = safecal.gaussian(np.random.default_rng(0).normal(size=400), np.zeros(400), var=var)
        plot.TransformDisplay.from_evaluation(states.evaluate(), ax=ax, name=name)
    drawn = [patch for patch in ax.patches if patch.get_gid() == "model"]
    assert len({patch.get_edgecolor() for patch in drawn}) == len({patch.get_linestyle() for patch in drawn}) == 2


def test_factors_stand_beside_plain_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 2))
    evaluation = safecal.gaussian(x, np.zeros_like(x), cov=np.diag([1.0, 0.3])).evaluate()
    shown = plot.DirectionsDisplay.from_evaluation(evaluation)
    shown.figure_.draw_without_rendering()
    ticks = [tick.get_text() for tick in shown.ax_.get_xticklabels(which="both")]
    assert len(ticks) >= 3
    assert all(float(tick) > 0.0 for tick in ticks)


@pytest.mark.parametrize(("seed", "times"), [(4, 1.1), (0, 1.4), (1, 1.4)])
def test_the_name_of_the_worst_range_covers_no_step(seed: int, times: float) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (2000, 20))
    happened = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    shown = plot.LocalDisplay.from_evaluation(safecal.evaluate(happened, logits=times * logits))
    shown.figure_.draw_without_rendering()
    (name,) = (text for text in shown.ax_.texts if text.get_text().startswith("worst"))
    box = name.get_window_extent().padded(2.0)
    for step in shown.course.steps:
        for x in (step.start, step.middle, step.end):
            assert not box.contains(*shown.ax_.transData.transform((x, step.range.ecd.value)))


def test_a_named_model_shows_the_points_of_its_bins() -> None:
    shown = plot.ReliabilityDisplay.from_evaluation(binary(), name="trees")
    (line,) = (line for line in shown.ax_.get_lines() if line.get_gid() == "model")
    order = np.argsort(shown.predicted)
    np.testing.assert_array_equal(line.get_xdata(), shown.predicted[order])
    np.testing.assert_array_equal(line.get_ydata(), shown.observed[order])


@pytest.mark.parametrize("case", DRAWN)
def test_a_name_fits_every_kind(case: str) -> None:
    evaluation = CASES[case]()
    for display in DISPLAYS:
        if (display is plot.GroupsDisplay and evaluation.groups is None) or (
            display is plot.ReliabilityDisplay and not has_reliability(evaluation.bins)
        ):
            continue
        shown = display.from_evaluation(evaluation, name="a $model_{")
        shown.figure_.set_layout_engine("none")  # dashboards hold that everything finds its place
        shown.figure_.draw_without_rendering()  # which reads every text
        plt.close(shown.figure_)


def test_an_evaluation_draws_one_part_where_it_is_told() -> None:
    figure, ax = plt.subplots()
    for name, times in (("one", 1.0), ("two", 2.0)):
        assert binary(600, times).plot("reliability", ax=ax, name=name) is figure
    assert {"one", "two"} <= set(legend_of(ax))
    assert len(binary().plot().axes) == 4
    with pytest.raises(OptionError, match="`part` must be"):
        binary().plot("histogram")
    with pytest.raises(OptionError, match="`ax` belongs to one part"):
        binary().plot(ax=ax)
