"""Two models compared: their differences, and both side by side."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from ..html.intervals import ecd_range
from ..inference.results import Interval
from ..judge.comparison import Comparison, SideBySide
from .canvas import AFTER, BEFORE, blank_figure, heading, ink, message
from .ecd import arrow_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["compared"]

_LETTERS = 92  # of a line of the title


def compared(comparison: Comparison, sides: SideBySide | None = None) -> Figure | SubFigure:
    """Draw the differences with their intervals; below, ECD and temperature of each model where they are given."""
    metrics = {} if sides is None else sides.metrics
    below = [
        (name, [x for x in metrics[name] if isinstance(x, Interval)], origin)
        for name, origin in (("ECD", 0.0), ("temperature", 1.0))
        if name in metrics
    ]
    figure = blank_figure(None, (9.0, 5.4 if below else 3.2))
    grid = figure.add_gridspec(2 if below else 1, max(len(below), 1))
    known = (("ECD", comparison.ecd), ("NLL", comparison.nll), ("Brier", comparison.brier))
    found = [(name, d.interval) for name, d in known if d is not None]
    ax = figure.add_subplot(grid[0, :])
    _draw(ax, [x for _, x in found], [name for name, _ in found], 0.0, [ink(ax)] * len(found))
    ax.set_xlabel("← b is larger     a − b     a is larger →")
    heading(ax, f"Differences, with {100.0 * comparison.ecd.interval.level:g} % intervals")
    for k, (name, pair, origin) in enumerate(below):
        ax = figure.add_subplot(grid[1, k])
        _draw(ax, pair, ["a", "b"], origin, [BEFORE, AFTER])
        ax.set_xlabel(f"← under-confident     {name}     over-confident →")
        heading(ax, name[0].upper() + name[1:])
    figure.suptitle(
        "\n".join(textwrap.wrap(comparison.verdict, _LETTERS)),
        x=0.01, ha="left", fontsize="medium", fontweight="bold", parse_math=False,
    )  # fmt: skip
    return figure


def _draw(ax: Axes, found: list[Interval], names: list[str], origin: float, colours: list[str]) -> None:
    if all(math.isnan(x.value) for x in found):
        message(ax, "There is nothing to draw.")
        return
    moved = [Interval(x.value - origin, x.low - origin, x.high - origin, x.level, x.method) for x in found]
    left, right = (end + origin for end in ecd_range(moved, ()))
    ax.set_xlim(left, right)
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.axvline(origin, color=ink(ax), lw=1.0, zorder=1)
    for y, (x, colour) in enumerate(zip(found, colours, strict=True)):
        if math.isnan(x.value):
            continue
        ax.hlines(y, max(x.low, left), min(x.high, right), color=colour, lw=2.0, zorder=3)
        if left <= x.value <= right:
            ax.plot([x.value], [y], marker="o", color=colour, markersize=7, linestyle="none", zorder=4)
        if x.high > right:
            arrow_out(ax, y, "no upper bound" if math.isinf(x.high) else f"to {x.high:.3g}", colour)
        if x.low < left:
            arrow_out(ax, y, "no lower bound" if math.isinf(x.low) else f"from {x.low:.3g}", colour, to_right=False)
    ax.set_yticks(range(len(found)), names)
