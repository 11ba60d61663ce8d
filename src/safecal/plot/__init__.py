"""Plots of evaluations, with matplotlib: ``pip install "safecal[plot]"``.

`dashboard` draws everything about one evaluation. The displays draw one thing each, as in scikit-learn: made by
``from_evaluation``, ``from_predictions``, ``from_estimator`` or ``from_cv_results``, they hold the numbers that they
draw. They draw on the axes they are given, and change none of matplotlib's settings.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from .._checks.columns import choice
from .._checks.message import fail
from ..errors import OptionError
from ..html.diagrams import has_reliability
from ..html.intervals import ecd_range
from ..html.markup import shortened
from ..inference.results import Interval
from ..judge.comparison import Comparison, SideBySide
from ..judge.evaluation import Evaluation
from .consistency import ConsistencyDisplay
from .display import AFTER, BEFORE, Display, blank_figure, checked, heading, ink, message
from .ecd import DirectionsDisplay, ECDDisplay, arrow_out
from .excess import ContributionDisplay, ExcessDisplay, TransformDisplay
from .groups import GroupsDisplay
from .places import LocalDisplay, SlicesDisplay
from .recalibration import RecalibrationDisplay, TemperatureDisplay
from .reliability import ReliabilityDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "ConsistencyDisplay",
    "ContributionDisplay",
    "DirectionsDisplay",
    "ECDDisplay",
    "ExcessDisplay",
    "GroupsDisplay",
    "LocalDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "SlicesDisplay",
    "TemperatureDisplay",
    "TransformDisplay",
    "dashboard",
]


_GROUPS_DRAWN = 12  # in a panel, at most
_SIZE = (11.0, 8.6)  # inches
_PARTS: dict[str, type[Display]] = {
    "reliability": ReliabilityDisplay,
    "local": LocalDisplay,
    "ecd": ECDDisplay,
    "temperature": TemperatureDisplay,
    "groups": GroupsDisplay,
    "excess": ExcessDisplay,
    "contributions": ContributionDisplay,
    "transform": TransformDisplay,
    "directions": DirectionsDisplay,
}


def draw_evaluation(evaluation: Evaluation, part: str | None, ax: Axes | None, name: str | None) -> Figure | SubFigure:
    """Draw all of an evaluation, or one part of it, and return the figure."""
    if part is None:
        if ax is not None or name is not None:
            option = "ax" if ax is not None else "name"
            hint = f'name a part: `plot("reliability", {option}={option})`.'
            raise fail(OptionError, option, "belongs to one part of the picture", hint=hint)
        return dashboard(evaluation)
    display = _PARTS[choice(part, "part", tuple(_PARTS))].from_evaluation(evaluation, ax=ax, name=name)
    figure: Figure | SubFigure = display.figure_
    return figure


def dashboard(evaluation: Evaluation, *, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Draw four panels about an evaluation, under its verdict.

    They are: reliability, or for states and densities the spread of the excess; ECD along the predictions, or by bin
    where they have no order; the temperature; and ECD by group, or where there are no groups, which rows make it.

    Parameters
    ----------
    evaluation : Evaluation
        Of any predictions.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to fill; by default a new one. A Figure without a layout engine gets matplotlib's constrained one.

    Returns
    -------
    Figure or SubFigure
        The figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import safecal
    >>> from safecal.plot import dashboard
    >>> figure = dashboard(safecal.evaluate([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8]))
    >>> len(figure.axes)
    4
    >>> plt.close(figure)
    """
    checked(evaluation)
    figure = blank_figure(figure, _SIZE)
    (first, second), (third, fourth) = figure.subplots(2, 2, gridspec_kw={"hspace": 0.09, "wspace": 0.06})
    if has_reliability(evaluation.bins):
        ReliabilityDisplay.from_evaluation(evaluation, ax=first)
        heading(first, "Predicted and observed")
    else:
        ExcessDisplay.from_evaluation(evaluation, ax=first)
        heading(first, "How surprise is spread")
    if len(evaluation.local):
        LocalDisplay.from_evaluation(evaluation, ax=second)
        heading(second, "Where it is over-confident")
    else:
        ECDDisplay.from_evaluation(evaluation, ax=second)
        heading(second, "Over-confidence" if evaluation.bins is None else f"Over-confidence by {evaluation.bins.name}")
    TemperatureDisplay.from_evaluation(evaluation, ax=third)
    heading(third, "Which temperatures fit")
    if evaluation.groups is None:
        ContributionDisplay.from_evaluation(evaluation, ax=fourth)
        heading(fourth, "Which rows make ECD")
    else:
        GroupsDisplay.from_evaluation(evaluation, ax=fourth, most=_GROUPS_DRAWN)
        heading(fourth, f"Over-confidence by {shortened(evaluation.groups.name, 28)}")
    _entitle(figure, evaluation)
    return figure


def _entitle(figure: Figure | SubFigure, evaluation: Evaluation) -> None:
    """Write the verdict on top, in lines that fit the figure."""
    title = figure.suptitle("", x=0.01, ha="left", fontsize="large", fontweight="bold", parse_math=False)
    inches = figure.bbox.width / figure.dpi
    letters = int(0.96 * 72.0 * inches / (0.6 * float(title.get_fontsize())))
    title.set_text("\n".join(textwrap.wrap(str(evaluation.verdict), max(letters, 20), break_on_hyphens=False)))


_TITLE_LETTERS = 92  # of a line of the title


def draw_comparison(comparison: Comparison, sides: SideBySide | None = None) -> Figure | SubFigure:
    """Draw the differences with their intervals; below, ECD and temperature of each model where they are given."""
    metrics = {} if sides is None else sides.metrics
    below = [
        (name, [x for x in metrics[name] if isinstance(x, Interval)], origin)
        for name, origin in (("ECD", 0.0), ("temperature", 1.0))
        if name in metrics
    ]
    figure = blank_figure(None, (9.0, 5.4 if below else 3.2))
    grid = figure.add_gridspec(2 if below else 1, max(len(below), 1))
    by_metric = (("ECD", comparison.ecd), ("NLL", comparison.nll), ("Brier", comparison.brier))
    differences = [(name, d.interval) for name, d in by_metric if d is not None]
    ax = figure.add_subplot(grid[0, :])
    _draw_column(ax, [x for _, x in differences], [name for name, _ in differences], 0.0, [ink(ax)] * len(differences))
    ax.set_xlabel("← b is larger     a − b     a is larger →")
    heading(ax, f"Differences, with {100.0 * comparison.ecd.interval.level:g} % intervals")
    for k, (name, pair, origin) in enumerate(below):
        ax = figure.add_subplot(grid[1, k])
        _draw_column(ax, pair, ["a", "b"], origin, [BEFORE, AFTER])
        ax.set_xlabel(f"← under-confident     {name}     over-confident →")
        heading(ax, name[0].upper() + name[1:])
    figure.suptitle(
        "\n".join(textwrap.wrap(comparison.verdict, _TITLE_LETTERS, break_on_hyphens=False)),
        x=0.01, ha="left", fontsize="medium", fontweight="bold", parse_math=False,
    )  # fmt: skip
    return figure


def _draw_column(ax: Axes, intervals: list[Interval], names: list[str], origin: float, colours: list[str]) -> None:
    if all(math.isnan(x.value) for x in intervals):
        message(ax, "There is nothing to draw.")
        return
    moved = [Interval(x.value - origin, x.low - origin, x.high - origin, x.level, x.method) for x in intervals]
    left, right = (end + origin for end in ecd_range(moved, ()))
    ax.set_xlim(left, right)
    ax.set_ylim(len(intervals) - 0.5, -0.5)
    ax.axvline(origin, color=ink(ax), lw=1.0, zorder=1)
    for y, (x, colour) in enumerate(zip(intervals, colours, strict=True)):
        if math.isnan(x.value):
            continue
        ax.hlines(y, max(x.low, left), min(x.high, right), color=colour, lw=2.0, zorder=3)
        if left <= x.value <= right:
            ax.plot([x.value], [y], marker="o", color=colour, markersize=7, linestyle="none", zorder=4)
        if x.high > right:
            arrow_out(ax, y, "no upper bound" if math.isinf(x.high) else f"to {x.high:.3g}", colour)
        if x.low < left:
            arrow_out(ax, y, "no lower bound" if math.isinf(x.low) else f"from {x.low:.3g}", colour, to_right=False)
    ax.set_yticks(range(len(intervals)), names)
