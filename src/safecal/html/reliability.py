"""The reliability diagram: what was predicted, what was observed, what chance explains, how many rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy import special

from .._sums.summary import Summary
from .._sums.table import Table
from .._types import BoolArray, FloatArray, IndexArray
from .markup import Markup, Scale, element, join, label, line, picture, plain, shape, short, sized, tick_text, upright

__all__ = [
    "OVER_SIDE",
    "ReliabilityPoints",
    "binomial_band",
    "consistency_band",
    "effective_rows",
    "has_reliability",
    "reliability_diagram",
]

# Corners of the over-confident side: below what was predicted, for the most likely class; nearer to one half than
# predicted, for the positive one.
OVER_SIDE = {
    True: (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)),),
    False: (((0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (0.0, 1.0)), ((0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5))),
}
_SLACK = 1e-9
_X = Scale(0.0, 1.0, 52.0, 424.0)
_Y = Scale(0.0, 1.0, 384.0, 12.0)
_FLOOR, _TALLEST = 484.0, 62.0  # of the counts
_SIZE = (440.0, 530.0)
_LEVEL = 0.95
_CROWD = 20  # bins from which dots are drawn smaller


def has_reliability(table: Table | None) -> bool:
    """Tell whether a table compares predictions of classes in bins."""
    return table is not None and table.bins is not None and table.total.sum_predicted is not None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityPoints:
    """The bins of a reliability diagram, with the ends between which calibrated models observe a share.

    Attributes
    ----------
    predicted, observed : ndarray of shape (bins,)
        Mean prediction, and share that happened; NaN where a bin is empty.
    low, high : ndarray of shape (bins,)
        Where the share of a calibrated model lies, with a given probability.
    n : ndarray of shape (bins,)
        Rows.
    share : ndarray of shape (bins,)
        Share of the weight.
    edges : ndarray of shape (bins + 1,)
        The edges of the bins.
    overconfident : ndarray of shape (bins,)
        Whether a bin lies on the over-confident side.
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    n: IndexArray
    share: FloatArray
    edges: FloatArray
    overconfident: BoolArray

    @classmethod
    def of(cls, table: Table, level: float) -> Self:
        """Read them off a table of bins."""
        predicted = table.predicted
        band = consistency_band(table.summaries, predicted, level)
        edges = np.array(() if table.bins is None else table.bins.edges)
        return cls(predicted, table.observed, *band, table.n, table.weights, edges, table.overconfident())

    @property
    def filled(self) -> IndexArray:
        """The places of the bins that hold rows, in the order of their predictions."""
        order = np.argsort(self.predicted, kind="stable")
        return order[~np.isnan(self.predicted[order])]

    @property
    def outside(self) -> BoolArray:
        """Tell for each bin whether chance does not explain what was observed; False where it is empty."""
        found: BoolArray = (self.observed < self.low - _SLACK) | (self.observed > self.high + _SLACK)
        return found


def reliability_diagram(name: str, table: Table) -> Markup:
    """Return the picture of a table of bins."""
    points = ReliabilityPoints.of(table, _LEVEL)
    filled = points.filled.tolist()
    what = "the most likely class" if table.top_label else "the positive class"
    size = 1.0 if len(filled) <= _CROWD else 0.6
    parts = [
        *_sides(table.top_label),
        *_axes(what),
        *(_band(points, k, 14.0 * size) for k in filled),
        line(_X(0.0), _Y(0.0), _X(1.0), _Y(1.0), "neutral"),
        *(_dot(points, k, size) for k in filled),
        *_counts(points, filled, on_axis=table.name != "entropy"),
    ]
    return picture(name, _SIZE, "Reliability diagram", _described(points, filled, what), *parts)


def _sides(top_label: bool) -> list[Markup]:
    """Shade where observations are less extreme than predictions: the over-confident side."""
    drawn = [shape([(_X(x), _Y(y)) for x, y in corners], "zone") for corners in OVER_SIDE[top_label]]
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
        upright("observed share", 14.0, _Y(0.5)),
    ]


def _band(points: ReliabilityPoints, k: int, width: float) -> Markup:
    top, bottom = _Y(float(points.high[k])), _Y(float(points.low[k]))
    left = _X(float(points.predicted[k])) - width / 2.0
    return element("rect", x=left, y=top, width=width, height=max(bottom - top, 1.0), rx=2.0, class_="band")


def _dot(points: ReliabilityPoints, k: int, size: float) -> Markup:
    side = "over" if points.overconfident[k] else "under"
    fill = side if points.outside[k] else f"{side} hollow"
    radius = 3.0 + 4.0 * size * math.sqrt(points.share[k] / points.share.max())
    return element("circle", cx=_X(float(points.predicted[k])), cy=_Y(float(points.observed[k])), r=radius, class_=fill)


def _counts(points: ReliabilityPoints, filled: list[int], *, on_axis: bool) -> list[Markup]:
    """Draw how many rows each bin holds: over its width, or where its mean lies if the bins are of something else."""
    largest = int(points.n.max())
    parts = []
    for k in filled:
        n, middle = int(points.n[k]), _X(float(points.predicted[k]))
        left, right = middle - 5.0, middle + 5.0
        if on_axis:
            left, right = _X(float(points.edges[k])) + 1.0, _X(float(points.edges[k + 1])) - 1.0
        if right - left < 1.5:
            left, right = middle - 0.75, middle + 0.75
        height = max(_TALLEST * n / largest, 1.0)
        parts.append(element("rect", x=left, y=_FLOOR - height, width=right - left, height=height, class_="count"))
        text = short(n)
        if 0.9 * sized(text) + 3.0 <= right - left:
            parts.append(label((left + right) / 2.0, _FLOOR - height - 5.0, text, "small", "middle"))
    return [join(parts)]


def _described(points: ReliabilityPoints, filled: list[int], what: str) -> str:
    outside = [k for k in filled if points.outside[k]]
    over = sum(bool(points.overconfident[k]) for k in outside)
    text = f"Observed share against predicted probability of {what}, in {len(filled)} bins that hold rows. "
    if not outside:
        return text + "In every bin, chance alone explains the distance between them."
    far = max(outside, key=lambda k: float(abs(points.observed[k] - points.predicted[k])))
    predicted, observed, n = float(points.predicted[far]), float(points.observed[far]), int(points.n[far])
    text += f"In {len(outside)} of them chance alone does not explain the distance, {over} on the over-confident side. "
    return text + f"The farthest: predicted {plain(predicted)}, observed {plain(observed)} in {n} rows."


def effective_rows(s: Summary) -> int:
    """Return how many rows of equal weight tell as much: rounded down, at least one; 0 when there are none.

    It is ``weight**2 / weight2``. Squared weights are summed over the possible rows only; the others count as they do.
    """
    if s.weight == 0.0:
        return 0
    possible = s.weight - s.weight_impossible
    if possible <= 0.0 or s.weight2 == 0.0:
        return s.n
    found = s.weight * possible / s.weight2
    return min(max(math.floor(found * (1.0 + 1e-12)), 1), s.n)


def consistency_band(
    summaries: Sequence[Summary], predicted: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of the observed share of each summary, if the model is calibrated; NaN where it is empty.

    They are those of a binomial law with as many rows, each at the mean prediction. Predictions that differ within a
    bin vary less than that, so the band is slightly wide.
    """
    low, high = np.full((2, len(summaries)), np.nan)
    rows = np.array([effective_rows(s) for s in summaries], dtype=np.float64)
    full = rows > 0.0
    low[full], high[full] = binomial_band(np.clip(predicted[full], 0.0, 1.0), rows[full], level)
    return low, high


def binomial_band(p: FloatArray, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the central range of the share of successes in so many tosses, exactly."""
    tail = (1.0 - level) / 2.0
    low, high = (_quantile(q, rows, p) for q in (tail, 1.0 - tail))
    return low / rows, high / rows


def _quantile(probability: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the smallest number of successes whose cumulative probability is large enough, by halving."""
    below, found = np.full(n.shape, -1.0), n.copy()
    while (found - below > 1.0).any():
        middle = np.floor((below + found) / 2.0)
        enough = special.bdtr(middle, n.astype(np.intp), p) >= probability
        below, found = np.where(enough, below, middle), np.where(enough, middle, found)
    return found
