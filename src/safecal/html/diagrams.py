"""What rows look like: the reliability diagram of classifiers; and for states and densities, how surprise is spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy import special

from .._sums.summary import Summary
from .._sums.table import Table
from .._types import BoolArray, FloatArray, IndexArray
from ..families import family_named
from ..inference.forecasts import Forecast
from ..judge.evaluation import Evaluation
from . import (
    AxisScale,
    Markup,
    element,
    join,
    label,
    line,
    percent,
    picture,
    plain,
    shape,
    short_count,
    text_width,
    tick_text,
    upright_label,
)

__all__ = [
    "ExcessShares",
    "OVER_SIDE",
    "ReliabilityPoints",
    "binomial_band",
    "consistency_band",
    "effective_rows",
    "excess_picture",
    "has_reliability",
    "reliability_diagram",
    "transform_picture",
    "transform_words",
]

# Corners of the over-confident side: below what was predicted, for the most likely class; nearer to one half than
# predicted, for the positive one.
OVER_SIDE = {
    True: (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)),),
    False: (((0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (0.0, 1.0)), ((0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5))),
}
_SLACK = 1e-9
_X = AxisScale(0.0, 1.0, 52.0, 424.0)
_Y = AxisScale(0.0, 1.0, 384.0, 12.0)
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
    """The bins of a reliability diagram, with the ends between which calibrated models observe a share."""

    predicted: FloatArray  # the mean prediction of each bin; NaN where it is empty
    observed: FloatArray  # the share that happened
    low: FloatArray  # where the share of a calibrated model lies, with a given probability
    high: FloatArray
    n: IndexArray  # rows
    share: FloatArray  # of the weight
    edges: FloatArray  # one more than bins
    overconfident: BoolArray  # on which side it lies

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
        too_far: BoolArray = (self.observed < self.low - _SLACK) | (self.observed > self.high + _SLACK)
        return too_far


def reliability_diagram(name: str, table: Table) -> Markup:
    """Return the picture of a table of bins."""
    points = ReliabilityPoints.of(table, _LEVEL)
    filled = points.filled.tolist()
    class_name = "the most likely class" if table.top_label else "the positive class"
    size = 1.0 if len(filled) <= _CROWD else 0.6
    parts = [
        *_sides(table.top_label),
        *_axes(class_name),
        *(_band(points, k, 14.0 * size) for k in filled),
        line(_X(0.0), _Y(0.0), _X(1.0), _Y(1.0), "neutral"),
        *(_dot(points, k, size) for k in filled),
        *_counts(points, filled, on_axis=table.name != "entropy"),
    ]
    return picture(name, _SIZE, "Reliability diagram", _describe_points(points, filled, class_name), *parts)


def _sides(top_label: bool) -> list[Markup]:
    """Shade where observations are less extreme than predictions: the over-confident side."""
    zones = [shape([(_X(x), _Y(y)) for x, y in corners], "zone") for corners in OVER_SIDE[top_label]]
    words = [label(_X(0.98), _Y(0.03), "over-confident", "zone-text", "end")]
    if top_label:
        words.append(label(_X(0.02), _Y(0.94), "under-confident", "faint"))
    else:
        words.append(label(_X(0.02), _Y(0.94), "over-confident", "zone-text"))
        words.append(label(_X(0.52), _Y(0.94), "under-confident", "faint"))
        words.append(label(_X(0.48), _Y(0.03), "under-confident", "faint", "end"))
    return [*zones, *words]


def _axes(class_name: str) -> list[Markup]:
    ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    left, bottom, right, top = _X(0.0), _Y(0.0), _X(1.0), _Y(1.0)
    return [
        element("rect", x=left, y=top, width=right - left, height=bottom - top, class_="frame"),
        *(label(left - 8.0, _Y(t) + 4.0, tick_text(t), anchor="end") for t in ticks),
        *(label(_X(t), _FLOOR + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(line(_X(t), _FLOOR, _X(t), _FLOOR + 4.0, "axis") for t in ticks),
        *(line(left - 4.0, _Y(t), left, _Y(t), "axis") for t in ticks),
        line(left, _FLOOR, right, _FLOOR, "axis"),
        label(_X(0.5), _FLOOR + 38.0, f"predicted probability of {class_name}", "axis-name", "middle"),
        upright_label("observed share", 14.0, _Y(0.5)),
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
        text = short_count(n)
        if 0.9 * text_width(text) + 3.0 <= right - left:
            parts.append(label((left + right) / 2.0, _FLOOR - height - 5.0, text, "small", "middle"))
    return [join(parts)]


def _describe_points(points: ReliabilityPoints, filled: list[int], class_name: str) -> str:
    outside = [k for k in filled if points.outside[k]]
    over = sum(bool(points.overconfident[k]) for k in outside)
    text = f"Observed share against predicted probability of {class_name}, in {len(filled)} bins that hold rows. "
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
    effective = s.weight * possible / s.weight2
    return min(max(math.floor(effective * (1.0 + 1e-12)), 1), s.n)


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
    low, high = (_binomial_quantile(q, rows, p) for q in (tail, 1.0 - tail))
    return low / rows, high / rows


def _binomial_quantile(probability: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the smallest number of successes whose cumulative probability is large enough, by halving."""
    below, above = np.full(n.shape, -1.0), n.copy()
    while (above - below > 1.0).any():
        middle = np.floor((below + above) / 2.0)
        enough = special.bdtr(middle, n.astype(np.intp), p) >= probability
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return above


_SPREAD_SIZE = (440.0, 320.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 424.0, 34.0, 270.0
_FARTHEST = 4.0  # how far the rows may stretch the axis, in reaches of a calibrated model
_REACH = 20.0  # nats, where that is not known
_EXCESS_NAME = "excess, nat: above 0 more surprised than announced"


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExcessShares:
    """Share of the rows whose excess is at least so large."""

    excess: FloatArray  # the mean of each cell of the histogram that holds rows, increasing
    share: FloatArray  # of the weight, with at least that; rows of infinite excess included
    expected: FloatArray | None  # (points, 2): excess, and the share of a calibrated model, where that is known
    impossible: float  # share of the weight in rows of infinite excess

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Read it off an evaluation."""
        impossible = evaluation.summary.weight_impossible
        counts, sums = np.array(evaluation.histogram.counts), np.array(evaluation.histogram.sums)
        full = counts > 0.0
        weight = counts[full]
        total = float(weight.sum()) + impossible
        share = (np.cumsum(weight[::-1])[::-1] + impossible) / total
        has_law = family_named(evaluation.family).chi_square and full.any()
        expected = _chi_square_shares(evaluation.dimension, float(share.min())) if has_law else None
        return cls(sums[full] / weight, share, expected, impossible / total)


def _chi_square_shares(dimension: int, smallest: float) -> FloatArray:
    """Return excess and share of calibrated states: half a chi-square, minus its mean."""
    half = 0.5 * dimension
    shares = np.concatenate([[1.0], np.linspace(0.999, 0.05, 60), np.geomspace(0.05, min(smallest, 0.05), 60)])
    return np.stack([special.gammainccinv(half, shares) - half, shares], axis=1)


def excess_picture(name: str, shares: ExcessShares) -> Markup | None:
    """Return the picture; None where every outcome was called impossible."""
    if not shares.excess.size:
        return None
    law = np.empty((0, 2)) if shares.expected is None else shares.expected
    reach = float(law[-1, 0]) if len(law) else _REACH
    low = min(0.0, float(shares.excess[0]), *law[:1, 0].tolist())
    high = max(reach if len(law) else 0.0, min(float(shares.excess[-1]), _FARTHEST * reach), 0.1)
    pad = 0.04 * (high - low)
    x = AxisScale(low - pad, high + pad, _LEFT, _RIGHT)
    smallest = min(float(shares.share.min()), 0.1)
    y = AxisScale(0.7 * smallest, 1.0, _BOTTOM, _TOP, log=True)
    ticks, decades = x.ticks(7), [10.0**-k for k in range(math.floor(-math.log10(smallest)) + 1)]
    steps = [(float(shares.excess[0]), 1.0)]
    for at, share in zip(shares.excess.tolist(), shares.share.tolist(), strict=True):
        steps += [(steps[-1][0], share), (at, share)]
    parts = [
        element("rect", x=x(0.0), y=_TOP, width=_RIGHT - x(0.0), height=_BOTTOM - _TOP, class_="zone"),
        *(line(_LEFT, y(s), _RIGHT, y(s), "grid") for s in decades),
        *(label(_LEFT - 8.0, y(s) + 4.0, percent(s), anchor="end") for s in decades),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in ticks),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in ticks),
        line(x(0.0), _TOP, x(0.0), _BOTTOM, "neutral"),
        *([shape([(x(a), y(s)) for a, s in law.tolist()], "curve second", closed=False)] if len(law) else []),
        shape([(x(a), y(s)) for a, s in steps], "curve", closed=False),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 40.0, _EXCESS_NAME, "axis-name", "middle"),
        upright_label("rows with at least that", 12.0, (_TOP + _BOTTOM) / 2.0),
        *_legend(len(law) > 0),
    ]
    return picture(name, _SPREAD_SIZE, "How surprise is spread", _describe_spread(shares), *parts)


def _legend(expected: bool) -> list[Markup]:
    names = [("the rows", "curve"), *([("a calibrated model", "curve second")] if expected else [])]
    parts, at = [], _LEFT
    for text, look in names:
        parts += [line(at, 14.0, at + 22.0, 14.0, look), label(at + 28.0, 18.0, text, "small")]
        at += 44.0 + text_width(text)
    return parts


def _describe_spread(shares: ExcessShares) -> str:
    above = shares.share[shares.excess > 0.0]
    share = float(above[0]) if above.size else shares.impossible
    text = f"In {percent(share)} of the rows the model was more surprised than it announced. "
    if shares.impossible > 0.0:
        text += f"In {percent(shares.impossible)} the surprise was infinite. "
    return text + f"The largest finite excess is {plain(float(shares.excess[-1]))} nat."


_TRANSFORM_SIZE = (520.0, 300.0)


def transform_picture(name: str, forecast: Forecast) -> Markup:
    """Return the histogram of the probability integral transform, in cells of a twentieth, with the band of chance."""
    share = forecast.ranks.reshape(-1, 2).sum(axis=1)
    low, high = 2.0 * forecast.band[0], 2.0 * forecast.band[1]
    x = AxisScale(0.0, 1.0, _LEFT, _RIGHT)
    y = AxisScale(0.0, 1.1 * max(float(share.max()), high), _TRANSFORM_SIZE[1] - 60.0, 14.0)
    floor, even = y(0.0), 1.0 / len(share)
    wide = x(even) - x(0.0) - 2.0
    sides = ["bar over" if s > high else "bar under" for s in share.tolist()]
    bars = [
        element("rect", x=x(k * even) + 1.0, y=y(s), width=wide, height=floor - y(s), class_=side)
        for k, (s, side) in enumerate(zip(share.tolist(), sides, strict=True))
    ]
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    parts = [
        *bars,
        element("rect", x=_LEFT, y=y(high), width=_RIGHT - _LEFT, height=y(low) - y(high), class_="band"),
        line(_LEFT, y(even), _RIGHT, y(even), "neutral"),
        line(_LEFT, floor, _RIGHT, floor, "axis"),
        *(label(x(t), floor + 18.0, tick_text(t), anchor="middle") for t in ticks),
        *(label(_LEFT - 8.0, y(t) + 4.0, percent(t), anchor="end") for t in y.ticks(5)),
        label((_LEFT + _RIGHT) / 2.0, floor + 40.0, "where the outcome falls in its forecast", "axis-name", "middle"),
        upright_label("share of rows", 12.0, (14.0 + floor) / 2.0),
    ]
    outer = float(share[0] + share[-1])
    text = f"{percent(outer)} of the outcomes lie in the two outer twentieths, where {percent(2.0 * even)} are "
    return picture(name, _TRANSFORM_SIZE, "Where outcomes fall in their forecasts", f"{text}expected.", *parts)


def transform_words(forecast: Forecast) -> str:
    """Say how that picture is read."""
    text = "A U shape means that it is too narrow, a hump that it is too wide, a slope that it is biased."
    if forecast.vector is not None or forecast.axes:
        text = "0 is the centre, 1 far outside: bars that rise mean that it is too narrow, bars that fall too wide."
    return f"A right forecast has bars of equal height, most of them in the grey band. {text}"
