"""Intervals below each other: values with their ends, against 0 and a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import BoolArray
from ..inference.results import Interval
from .canvas import OVER, UNDER, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BEYOND",
    "UNCLEAR",
    "WITHIN",
    "arrow_out",
    "draw_intervals",
    "linear_range",
    "name_rows",
    "spacing",
    "states",
]

BEYOND, WITHIN, UNCLEAR = "beyond the limit", "within the limit", "cannot tell"
_REACH = 1.5  # how far intervals may stretch the axis, in widths of what the values span
_FEWEST = 4  # rows that there is room for
_CROWD = 24.0  # rows from which on they are drawn smaller
_LINE = 0.165  # inches a name needs


def states(intervals: Sequence[Interval], limits: Sequence[float]) -> tuple[str | None, ...]:
    """Say of each interval on which side of its limit it lies; None where there is nothing."""
    return tuple(
        None if math.isnan(i.value) else BEYOND if i.low > limit else WITHIN if i.high <= limit else UNCLEAR
        for i, limit in zip(intervals, limits, strict=True)
    )


def linear_range(intervals: Sequence[Interval], limits: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that shows every value and every limit; very long intervals leave it."""
    values = [i.value for i in intervals if math.isfinite(i.value)]
    marks = [0.0, *values, *(limit for limit in limits if math.isfinite(limit))]
    low, high = min(marks), max(marks)
    reach = high - low or 0.1
    ends = [end for i in intervals if not math.isnan(i.value) for end in (i.low, i.high)]
    left = max(min([low, *ends]), low - _REACH * reach)
    right = min(max([high, *ends]), high + _REACH * reach)
    pad = 0.06 * (right - left or reach)
    return left - pad, right + pad


def draw_intervals(
    ax: Axes,
    intervals: Sequence[Interval],
    limits: Sequence[float],
    ends: tuple[float, float],
    *,
    origin: float = 0.0,
    bars: bool = False,
) -> None:
    """Draw one interval in each row, from the top, on an axis from one end to the other.

    Values that are not on the axis, infinite ones among them, are left to the caller.
    """
    left, right = ends
    ax.set_xlim(left, right)
    room = 0.5 * max(_FEWEST - len(intervals), 0)
    ax.set_ylim(len(intervals) - 0.5 + room, -0.5 - room)
    ax.axvspan(origin, right, color=OVER, alpha=0.06, linewidth=0, zorder=0, gid="over-confident")
    known = [(y, i) for y, i in enumerate(intervals) if not math.isnan(i.value)]
    inside = [(y, i) for y, i in known if left <= i.value <= right]
    if bars:
        lengths = [i.value - origin for _, i in inside]
        colours = [OVER if length > 0.0 else UNDER for length in lengths]
        ax.barh([y for y, _ in inside], lengths, 0.7, left=origin, color=colours, alpha=0.35, linewidth=0, zorder=2)
    crowd = min(max(_CROWD / max(len(intervals), 1), 0.4), 1.0)
    shown = np.clip(np.array([(i.low, i.high) for _, i in known]).reshape(-1, 2), left, right)
    ax.hlines([y for y, _ in known], shown[:, 0], shown[:, 1], color=ink(ax), lw=1.3 * crowd, zorder=3)
    found = states(intervals, limits)
    looks: dict[str, tuple[str, Any, Any]] = {
        BEYOND: ("D", OVER, OVER),
        WITHIN: ("s", UNDER, UNDER),
        UNCLEAR: ("o", ax.get_facecolor(), ink(ax)),
    }
    for state, (marker, face, edge) in looks.items():
        mine = [(i.value, y) for y, i in inside if found[y] == state]
        if mine:
            style: dict[str, Any] = {"linestyle": "none", "marker": marker, "mfc": face, "mec": edge}
            ax.plot(*zip(*mine, strict=True), markersize=6.0 * crowd, zorder=4, **style)
            ax.plot([], [], markersize=6.0, label=state, **style)
    for y, interval in inside:
        _leaving(ax, y, interval, left, right)


def _leaving(ax: Axes, y: int, interval: Interval, left: float, right: float) -> None:
    """Show by arrows, with numbers, how far an interval goes on beyond the axis."""
    if interval.high > right:
        words = "no upper bound" if math.isinf(interval.high) else f"to {interval.high:.3g}"
        arrow_out(ax, y, words, ink(ax))
    if interval.low < left:
        words = "no lower bound" if interval.low in (0.0, -math.inf) else f"from {interval.low:.3g}"
        arrow_out(ax, y, words, ink(ax), to_right=False)


def arrow_out(ax: Axes, y: float, words: str, colour: Any, *, to_right: bool = True) -> None:
    """Draw the head of an arrow at an edge of the axes, and say in words how far it goes."""
    at, marker, ha, step = (0.985, ">", "right", -8) if to_right else (0.015, "<", "left", 8)
    edge = ax.get_yaxis_transform()
    ax.plot([at], [y], marker=marker, linestyle="none", color=colour, markersize=6, transform=edge, zorder=5)
    box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8}
    style: dict[str, Any] = {"fontsize": "x-small", "ha": ha, "va": "center", "bbox": box, "zorder": 5}
    ax.annotate(words, (at, y), (step, 0), edge, "offset points", **style)


def name_rows(ax: Axes, labels: Sequence[str], counts: Sequence[int] | None, *, every: int = 1) -> BoolArray:
    """Name each row on the left, or every second and so on, with its number on the right; tell which were named.

    The last row always is.
    """
    named: BoolArray = np.arange(len(labels)) % every == 0
    named[-every:-1] = False
    named[-1] = True
    at = np.flatnonzero(named).tolist()
    ax.set_yticks(at, [labels[k] for k in at], fontsize="small", parse_math=False)
    if counts is not None:
        edge = ax.get_yaxis_transform()
        for k in at:
            ax.text(1.02, k, f"{counts[k]:,}", transform=edge, fontsize="small", ha="left", va="center")
        ax.annotate("rows", (1.02, 1.0), (0, 3), "axes fraction", "offset points", fontsize="small", ha="left")
    return named


def spacing(ax: Axes, rows: int) -> int:
    """Return 1 where there is room to name every row, 2 for every second, and so on."""
    inches: float = ax.bbox.height / ax.figure.dpi
    return math.ceil(rows * _LINE / max(inches, _LINE))
