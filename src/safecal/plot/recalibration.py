"""Before and after recalibration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

from .._checks.message import fail
from ..errors import OptionError
from ..html.intervals import ecd_range, factor_range
from ..html.reliability import ReliabilityPoints, has_reliability
from ..judge.evaluation import Evaluation
from .display import (
    AFTER,
    BEFORE,
    OVER,
    blank_figure,
    checked,
    direction_label,
    ink,
    legend_above,
    message,
    percent,
)
from .ecd import arrow_out, draw_intervals, draw_zero, name_rows, note
from .excess import draw_shares, excess_axis, excess_range, least_share, share_axis, spread_of
from .reliability import draw_sides
from .temperature import draw_limits, temperature_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["RecalibrationDisplay"]

_NAMES = ("before", "after")
_LOOKS = ((BEFORE, "--", "o"), (AFTER, "-", "s"))  # colour, line, marker


@final
@dataclass(slots=True, eq=False, repr=False)
class RecalibrationDisplay:
    """Two evaluations of the same rows, before and after recalibration.

    On the left are the bins of both in one reliability diagram; a filled marker lies outside what 95 % of calibrated
    bins do, an empty one inside. For states and densities it is the spread of the excess instead. On the right are ECD
    and temperature with their intervals, against their limits.

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
            An empty one to fill; by default a new one. A Figure without a layout engine gets matplotlib's constrained
            one.

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
            An empty one to fill; by default a new one.

        Returns
        -------
        RecalibrationDisplay
            Itself.
        """
        self.figure_ = figure = blank_figure(figure, (9.6, 5.4))
        grid = figure.add_gridspec(2, 2, width_ratios=(1.1, 1.0))
        places = (grid[:, 0], grid[0, 1], grid[1, 1])
        self.axes_ = diagram, ecd, temperature = tuple(figure.add_subplot(place) for place in places)
        if has_reliability(self.after.bins):
            self._reliability(diagram)
        else:
            self._spread(diagram)
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
            ax.plot(predicted, observed, color=colour, lw=1.3, ls=style, marker=marker, markersize=7,
                    markerfacecolor=ax.get_facecolor(), clip_on=False, zorder=3, label=name)  # fmt: skip
            ax.plot(predicted[outside], observed[outside], color=colour, marker=marker, markersize=7, ls="none",
                    clip_on=False, zorder=4)  # fmt: skip
        label = f"filled: outside the {percent(self.after.level)} band"
        ax.plot([], [], color=ink(ax), marker="o", linestyle="none", label=label)
        legend_above(ax)

    def _spread(self, ax: Axes) -> None:
        shown = [spread_of(evaluation) for evaluation in (self.before, self.after)]
        if not all(one.excess.size for one in shown):
            message(ax, "Every outcome was one that the model had called impossible.")
            return
        ax.axvline(0.0, color=ink(ax), lw=0.8, zorder=1)
        expected = shown[1].expected
        if expected is not None:
            ax.plot(*expected.T, color=ink(ax), lw=1.2, ls=":", zorder=2, label="if calibrated")
        spans = [excess_range(one) for one in shown]
        excess_axis(ax, min(low for low, _ in spans), max(high for _, high in spans))
        for name, one, look in zip(_NAMES, shown, _LOOKS, strict=True):
            draw_shares(ax, one, *look, name)
        share_axis(ax, min(map(least_share, shown)))
        ax.set_xlabel(direction_label("excess (nat)", "less surprised", "more surprised"))
        ax.set_ylabel("share of rows with at least that")
        legend_above(ax)

    def _ecd(self, ax: Axes) -> None:
        intervals = (self.before.interval, self.after.interval)
        limits = [self.after.threshold * one.verdict.dimensions for one in (self.before, self.after)]
        draw_zero(ax, limits)
        ax.plot([], [], color=ink(ax), lw=1.3, label=f"{percent(self.after.level)} intervals")
        draw_intervals(ax, intervals, limits, ecd_range(intervals, limits), bars=True)
        name_rows(ax, _NAMES, None)
        for y, (interval, one) in enumerate(zip(intervals, (self.before, self.after), strict=True)):
            note(ax, y, interval, one.n, one.summary.n_impossible, True)
        ax.set_xlabel(direction_label("ECD (nat)"))
        legend_above(ax)

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


def _same(what: str, before: Any, after: Any, hint: str) -> None:
    if before != after:
        raise fail(
            OptionError, "after", f"must have the same {what} as `before`", got=f"{after} and {before}", hint=hint
        )
