"""Plots of evaluations, with matplotlib: ``pip install "safecal[plot]"``.

`dashboard` draws everything about one evaluation. The displays draw one thing each, as in scikit-learn: made by
``from_evaluation``, ``from_predictions``, ``from_estimator`` or ``from_cv_results``, they hold the numbers that they
draw. They draw on the axes they are given, and change none of matplotlib's settings.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

from .._checks import fail
from .._checks.columns import choice
from ..errors import OptionError
from ..html import shortened
from ..html.diagrams import ReliabilityPoints, has_reliability
from ..html.intervals import ecd_range, factor_range
from ..inference import Interval
from ..judge.comparison import Comparison, SideBySide
from ..judge.evaluation import Evaluation
from .bins import ECDDisplay, ReliabilityDisplay, draw_sides
from .course import ConsistencyDisplay, LocalDisplay
from .display import (
    AFTER,
    BEFORE,
    OVER,
    Display,
    blank_figure,
    checked,
    direction_label,
    heading,
    ink,
    legend_above,
    message,
    percent,
)
from .excess import ContributionDisplay, ExcessDisplay, TransformDisplay, draw_spreads
from .groups import GroupsDisplay, SlicesDisplay
from .intervals import (
    DirectionsDisplay,
    TemperatureDisplay,
    arrow_out,
    draw_ecd,
    draw_intervals,
    draw_limits,
    name_rows,
    note,
    temperature_axis,
)

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


_NAMES = ("before", "after")
_LOOKS = ((BEFORE, "--", "o"), (AFTER, "-", "s"))  # colour, line, marker


@final
@dataclass(slots=True, eq=False, repr=False)
class RecalibrationDisplay:
    """Two evaluations of the same rows, before and after recalibration.

    On the left are the bins of both in one reliability diagram; a filled marker lies outside the range of 95 % of
    calibrated bins, an empty one inside. For states and densities it is the spread of the excess instead. On the right
    are ECD and temperature with their intervals, against their limits.

    Attributes
    ----------
    before, after : Evaluation
        The evaluations.
    axes_ : tuple of matplotlib Axes
        Where it was drawn: the diagram, ECD, the temperature.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.plot import RecalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-log_odds))
    >>> safe = safecal.SafeTemperature().fit(y[:2000], logits=3 * log_odds[:2000])
    >>> before = safecal.evaluate(y[2000:], logits=3 * log_odds[2000:])
    >>> after = safecal.evaluate(y[2000:], safe.apply(logits=3 * log_odds[2000:]))
    >>> display = RecalibrationDisplay.from_evaluations(before, after)
    >>> display
    RecalibrationDisplay: ECD +0.482 before, -0.0191 after
    >>> plt.close(display.figure_)
    """

    before: Evaluation
    after: Evaluation
    axes_: tuple[Axes, ...] = field(init=False)
    figure_: Any = field(init=False)

    @classmethod
    def from_evaluations(
        cls, before: Evaluation, after: Evaluation, *, figure: Figure | SubFigure | None = None
    ) -> Self:
        """Draw two evaluations.

        Parameters
        ----------
        before, after : Evaluation
            Of the same rows. The limits are those of ``after``.
        figure : matplotlib Figure or SubFigure, optional
            As in `dashboard`.

        Returns
        -------
        RecalibrationDisplay
            The display, drawn.
        """
        first, second = checked(before, "before"), checked(after, "after")
        _same("family", first.family, second.family, "compare predictions of one kind.")
        _same("number of rows", first.n, second.n, "evaluate the same rows, before and after.")
        _same("bins on", _binned(first), _binned(second), "pass the same `bin_on=` for both.")
        return cls(first, second).plot(figure=figure)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: ECD {self.before.ecd:+.3g} before, {self.after.ecd:+.3g} after"

    def plot(self, *, figure: Figure | SubFigure | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            As in `dashboard`.

        Returns
        -------
        RecalibrationDisplay
            Itself.
        """
        self.figure_ = figure = blank_figure(figure, (9.6, 5.4))
        grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.15))
        places = (grid[:, 0], grid[0, 1], grid[1, 1])
        self.axes_ = diagram, ecd, temperature = tuple(figure.add_subplot(place) for place in places)
        if has_reliability(self.after.bins):
            self._reliability(diagram)
        else:
            draw_spreads(diagram, (self.before, self.after), _NAMES, _LOOKS)
        self._ecd(ecd)
        self._temperature(temperature)
        return self

    def _reliability(self, ax: Axes) -> None:
        tables = [table for table in (self.before.bins, self.after.bins) if table is not None]
        draw_sides(ax, tables[1].top_label, strip=False)
        for name, table, (colour, style, marker) in zip(_NAMES, tables, _LOOKS, strict=True):
            points = ReliabilityPoints.of(table, self.after.level)
            order = points.filled
            predicted, observed, outside = points.predicted[order], points.observed[order], points.outside[order]
            marks: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 7, "clip_on": False}
            ax.plot(predicted, observed, lw=1.3, ls=style, mfc=ax.get_facecolor(), zorder=3, label=name, **marks)
            ax.plot(predicted[outside], observed[outside], ls="none", zorder=4, **marks)
        label = f"filled: outside the {percent(self.after.level)} band"
        ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label=label)
        legend_above(ax)

    def _ecd(self, ax: Axes) -> None:
        both = (self.before, self.after)
        limits = [self.after.threshold * evaluation.verdict.dimensions for evaluation in both]
        level = f"{percent(self.after.level)} intervals"
        draw_ecd(ax, [evaluation.interval for evaluation in both], limits, level, bars=True)
        name_rows(ax, _NAMES, None)
        for y, evaluation in enumerate(both):
            note(ax, y, evaluation.interval, evaluation.n, evaluation.summary.n_impossible, True)

    def _temperature(self, ax: Axes) -> None:
        intervals = (self.before.temperature, self.after.temperature)
        if all(math.isnan(interval.value) for interval in intervals):
            message(ax, f"There is no temperature:\n{intervals[1].method.removeprefix('none: ')}.")
            return
        limit = self.after.max_temperature
        ends = factor_range(intervals, limit)
        temperature_axis(ax, *ends)
        draw_limits(ax, limit)
        draw_intervals(ax, intervals, (limit, limit), ends, origin=1.0)
        name_rows(ax, _NAMES, None)
        for y, interval in enumerate(intervals):
            if math.isnan(interval.value):
                ax.annotate("none", (1.0, y), (4, 0), textcoords="offset points", fontsize="x-small", va="center")
            elif not ends[0] <= interval.value <= ends[1]:
                colour = OVER if interval.low > limit else ink(ax)
                arrow_out(ax, y, f"estimate {interval.value:g}", colour, to_right=interval.value > 1.0)
        ax.set_xlabel(direction_label("temperature"))
        legend_above(ax)


def _binned(evaluation: Evaluation) -> str | None:
    return evaluation.bins.name if evaluation.bins is not None and has_reliability(evaluation.bins) else None


def _same(trait: str, before: Any, after: Any, hint: str) -> None:
    if before != after:
        rule = f"must have the same {trait} as `before`"
        raise fail(OptionError, "after", rule, got=f"{after} and {before}", hint=hint)
