"""Consistency over time, drawn."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import safecal
from safecal.errors import OptionError
from safecal.judge.consistency import Consistency, assess_consistency
from safecal.plot import ConsistencyDisplay

mpl.use("agg")

RUN, STEP = np.repeat(np.arange(40), 12), np.tile(np.arange(1, 13), 40)


def consistency(scale: float = 1.0, **options: object) -> Consistency:
    x = scale * np.random.default_rng(0).normal(size=(480, 3))
    return assess_consistency(safecal.gaussian(x, 0 * x, std=1.0), run=RUN, **({"step": STEP} | options))


@pytest.mark.parametrize("scale", ["ECD", "NEES"])
def test_it_holds_the_numbers_it_draws(scale: str) -> None:
    result = consistency()
    display = ConsistencyDisplay.from_consistency(result, scale=scale)
    factor, shift = (1.0, 0.0) if scale == "ECD" else (2.0, 3.0)
    np.testing.assert_allclose(display.mean, shift + factor * result.steps.ecd)
    np.testing.assert_allclose(display.median, shift + factor * np.array(result.step_medians))
    np.testing.assert_allclose(np.stack([display.low, display.high], axis=1), shift + factor * result.bands())
    np.testing.assert_array_equal(display.steps, np.arange(1.0, 13.0))
    line, points = (
        next(li for li in display.ax_.get_lines() if li.get_label() == f"{w} of the runs") for w in ("mean", "median")
    )
    np.testing.assert_allclose(line.get_ydata(), display.mean)
    np.testing.assert_allclose(points.get_ydata(), display.median)
    assert display.ax_.get_ylabel() == ("ECD (nat)" if scale == "ECD" else "NEES")
    assert (
        repr(display)
        == f"ConsistencyDisplay: {scale} over 12 steps, {100 * result.share_inside:.0f} % of them in the band"
    )
    plt.close(display.figure_)


@pytest.mark.parametrize(("scale", "axis"), [("ECD", "asinh"), ("NEES", "log")])
def test_far_values_stay_in_sight(scale: str, axis: str) -> None:
    display = ConsistencyDisplay.from_consistency(consistency(15.0), scale=scale)
    assert display.ax_.get_yscale() == axis
    bottom, top = display.ax_.get_ylim()
    assert bottom < display.low.min()
    assert top > display.mean.max()
    display.figure_.canvas.draw()
    plt.close(display.figure_)


def test_several_filters_on_the_same_axes() -> None:
    _, ax = plt.subplots()
    a = ConsistencyDisplay.from_consistency(consistency(), ax=ax, label="a", color="C0")
    b = ConsistencyDisplay.from_consistency(consistency(2.0), ax=ax, label="b", color="C1", band=False)
    assert a.ax_ is b.ax_ is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert set(labels) == {"95 % of consistent filters", "a", "a, median", "b", "b, median"}
    assert ax.get_ylim()[1] > b.mean.max()
    plt.close(ax.figure)


def test_times_are_counted_and_the_quantity_is_named() -> None:
    names = np.array([f"2025-01-01T00:00:{s:02d}" for s in STEP])
    display = ConsistencyDisplay.from_consistency(consistency(step=names, quantity="NIS"), scale="NEES")
    np.testing.assert_array_equal(display.steps, np.arange(12.0))
    assert display.ax_.get_ylabel() == "NIS"
    plt.close(display.figure_)


def test_the_method_of_the_result_draws_too() -> None:
    figure = consistency().plot()
    assert len(figure.axes) == 1
    plt.close(figure)


def test_bad_input_is_refused() -> None:
    with pytest.raises(OptionError, match="`consistency` must be a Consistency; got a float"):
        ConsistencyDisplay.from_consistency(1.0)
    with pytest.raises(OptionError, match="`scale` must be one of 'ECD', 'NEES'; got 'SNEES'"):
        ConsistencyDisplay.from_consistency(consistency(), scale="SNEES")


def test_ticks_stand_at_whole_steps() -> None:
    x = np.random.default_rng(0).normal(size=(480, 3))
    run, step = np.repeat(np.arange(24), 20), np.tile(np.arange(20), 24)
    result = assess_consistency(safecal.gaussian(x, 0 * x, std=1.0), run=run, step=step)
    display = ConsistencyDisplay.from_consistency(result)
    display.figure_.canvas.draw()
    assert all(tick == round(tick) for tick in display.ax_.get_xticks())
    plt.close(display.figure_)
