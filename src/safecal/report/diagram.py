"""The reliability diagram: what was predicted, what was observed, what chance explains, how many rows."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ..band import consistency_band
from ..table import Table
from .markup import Markup, element, join
from .numbers import plain, short
from .svg import Scale, label, line, picture, shape, sized, tick_text

__all__ = ["Point", "points", "reliability_diagram"]

_X = Scale(0.0, 1.0, 52.0, 424.0)
_Y = Scale(0.0, 1.0, 384.0, 12.0)
_FLOOR, _TALLEST = 484.0, 62.0  # of the counts
_SIZE = (440.0, 530.0)
_LEVEL = 0.95
_CROWD = 20  # bins from which dots are drawn smaller


@final
@dataclass(frozen=True, slots=True)
class Point:
    """A bin that holds rows, with the ends between which calibrated models observe a share 95 % of the time."""

    low: float
    high: float
    predicted: float
    observed: float
    band: tuple[float, float]
    n: int
    share: float
    overconfident: bool

    @property
    def outside(self) -> bool:
        """Whether chance does not explain what was observed."""
        return not self.band[0] - 1e-9 <= self.observed <= self.band[1] + 1e-9


def points(table: Table) -> list[Point]:
    """Return the bins that hold rows."""
    filled = np.flatnonzero(np.isfinite(table.predicted) & np.isfinite(table.observed))
    p, o = np.clip(table.predicted[filled], 0.0, 1.0), table.observed[filled]
    every = table.summaries
    summaries = [every[i] for i in filled]
    low, high = consistency_band(summaries, p, _LEVEL)
    over, shares = table.overconfident()[filled], table.weights[filled]
    edges = table.bins.edges if table.bins is not None else ()
    return [
        Point(
            edges[i], edges[i + 1], float(p[k]), float(o[k]), (float(low[k]), float(high[k])),
            summaries[k].n, float(shares[k]), bool(over[k]),
        )
        for k, i in enumerate(filled.tolist())
    ]  # fmt: skip


def reliability_diagram(name: str, table: Table) -> Markup:
    """Return the picture of a table of bins."""
    found = points(table)
    what = "the most likely class" if table.top_label else "the positive class"
    largest = max(point.share for point in found)
    size = 1.0 if len(found) <= _CROWD else 0.6
    parts = [
        *_sides(table.top_label),
        *_axes(what),
        *(_band(point, 14.0 * size) for point in found),
        line(_X(0.0), _Y(0.0), _X(1.0), _Y(1.0), "neutral"),
        *(_dot(point, size * math.sqrt(point.share / largest)) for point in found),
        *_counts(found, on_axis=table.name != "entropy"),
    ]
    return picture(name, _SIZE, "Reliability diagram", _described(found, what), *parts)


def _sides(top_label: bool) -> list[Markup]:
    """Shade where observations are less extreme than predictions: the over-confident side."""
    below = [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0)]
    regions = [below]
    if not top_label:
        regions = [[(0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (0.0, 1.0)], [(0.5, 0.5), (1.0, 1.0), (1.0, 0.0), (0.5, 0.0)]]
    drawn = [shape([(_X(x), _Y(y)) for x, y in region], "zone") for region in regions]
    words = [label(_X(0.98), _Y(0.03), "over-confident", "zone-text", "end")]
    if top_label:
        words.append(label(_X(0.02), _Y(0.94), "under-confident", "faint"))
    else:
        words.append(label(_X(0.02), _Y(0.94), "over-confident", "zone-text"))
        words.append(label(_X(0.52), _Y(0.94), "under-confident", "faint"))
        words.append(label(_X(0.48), _Y(0.03), "under-confident", "faint", "end"))
    return [*drawn, *words]


def _axes(what: str) -> list[Markup]:
    ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    left, bottom, right, top = _X(0.0), _Y(0.0), _X(1.0), _Y(1.0)
    return [
        element("rect", x=left, y=top, width=right - left, height=bottom - top, class_="frame"),
        *(label(left - 8.0, _Y(t) + 4.0, tick_text(t), anchor="end") for t in ticks),
        *(label(_X(t), _FLOOR + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(line(_X(t), _FLOOR, _X(t), _FLOOR + 4.0, "axis") for t in ticks),
        *(line(left - 4.0, _Y(t), left, _Y(t), "axis") for t in ticks),
        line(left, _FLOOR, right, _FLOOR, "axis"),
        label(_X(0.5), _FLOOR + 38.0, f"predicted probability of {what}", "axis-name", "middle"),
        element(
            "text", "observed share", class_="axis-name", text_anchor="middle",
            transform=f"translate(14 {_Y(0.5):.0f}) rotate(-90)",
        ),
    ]  # fmt: skip


def _band(point: Point, width: float) -> Markup:
    top, bottom = _Y(point.band[1]), _Y(point.band[0])
    height = max(bottom - top, 1.0)
    return element(
        "rect", x=_X(point.predicted) - width / 2.0, y=top, width=width, height=height, rx=2.0, class_="band"
    )


def _dot(point: Point, size: float) -> Markup:
    side = "over" if point.overconfident else "under"
    radius = 3.0 + 4.0 * size
    fill = side if point.outside else f"{side} hollow"
    return element("circle", cx=_X(point.predicted), cy=_Y(point.observed), r=radius, class_=fill)


def _counts(found: list[Point], *, on_axis: bool) -> list[Markup]:
    """Draw how many rows each bin holds: over its width, or where its mean lies if the bins are of something else."""
    largest = max(point.n for point in found)
    parts = []
    for point in found:
        middle = _X(point.predicted)
        left, right = (_X(point.low) + 1.0, _X(point.high) - 1.0) if on_axis else (middle - 5.0, middle + 5.0)
        if right - left < 1.5:
            left, right = middle - 0.75, middle + 0.75
        height = max(_TALLEST * point.n / largest, 1.0)
        parts.append(element("rect", x=left, y=_FLOOR - height, width=right - left, height=height, class_="count"))
        text = short(point.n)
        if 0.9 * sized(text) + 3.0 <= right - left:
            parts.append(label((left + right) / 2.0, _FLOOR - height - 5.0, text, "small", "middle"))
    return [join(parts)]


def _described(found: list[Point], what: str) -> str:
    outside = [point for point in found if point.outside]
    over = sum(point.overconfident for point in outside)
    text = f"Observed share against predicted probability of {what}, in {len(found)} bins that hold rows. "
    if not outside:
        return text + "In every bin, chance alone explains the distance between them."
    far = max(outside, key=lambda point: abs(point.observed - point.predicted))
    text += f"In {len(outside)} of them chance alone does not explain the distance, {over} on the over-confident side. "
    return text + f"The farthest: predicted {plain(far.predicted)}, observed {plain(far.observed)} in {far.n} rows."
