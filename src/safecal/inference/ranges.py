"""How predictions are cut into ranges, and the bounds on the ECD of all ranges together.

Predictions are put in their order: by probability (two classes), by confidence and within each predicted class (more
classes), by spread (states and densities). Ranges are halves, quarters, eighths and sixteenths of the rows, as many
that begin half a step later, and the surest rows down to a few; each is a union of whole cells, so that equal
predictions never part, and none depends on the outcomes or on the bins of the user.

Where rows come in clusters, ranges are unions of coarse cells, and their bounds those of clusters, by the sums of each
cluster in each coarse cell. Beyond 500 000 pairs of both, predicted classes are no longer told apart. Where there are
still more, or a tally was read from a document, which holds no such sums, bounds are those of independent rows, as many
times wider as the clusters make those of all rows, and no lower bound is above 0: a range may then prevent SAFE, and
proves nothing.

The bound of a single range is wide, because many ranges share a small error. Faults that cancel, over-confident here
and under-confident there, often show in no range by itself; together they show at once. So the excess of all cells, in
the order of the predictions, is compared with three smooth curves: a slope, a bend and a double bend (Neyman's smooth
test). Each curve is orthogonal to a constant, so that a temperature that is the same for all rows hardly counts. The
same is asked of groups: where they are small, none shows anything by itself; but if they differ, their sums lie farther
apart than chance puts them.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special

from .._sums import Tally
from .._sums.cells import Order
from .._sums.cluster_pairs import PAIRS, CellPairs, OrderPairs, PairPart, added_in_order
from .._sums.summary import COLUMN
from .._types import BoolArray, FloatArray, IndexArray
from .law import pearson3, summary_spread
from .sum_bounds import Keys, firm_and_weak_bounds, firm_and_weak_ends

__all__ = [
    "NUMBERS", "SHOWN", "SUSPECTED", "Evenness", "GroupEvenness", "Unbounded", "bounded_ranges", "cuts",
    "dependence", "dimensions",
]  # fmt: skip

_SMALL, _ROWS = 0.01, 20  # of the least share, and rows: what the surest rows, a class or a value have at least
_VALUES = 24  # so few values are ranges, each by itself
_TOGETHER = 1 << 18  # sums of clusters that are bounded at a time, about
_NEAR = 1e-3  # a probability below it may as well be 0, in words
_NULL = ("sum_varentropy_weight2", "sum_numerical_variance_weight2")  # what the variance of the excess adds up
_CURVES = 3  # of the test of evenness
_FLAT = 1e-9  # a curve of which so little is left beside the others is none of its own
SHOWN, SUSPECTED = 0.2, 2.0  # of what the level leaves: what the lower bounds of all places of a kind may miss
NUMBERS = (
    "label", "low", "high", "n", "share", "predicted", "observed", "dimensions", "ecd", "ecd_low", "ecd_high",
    "at_least",
)  # fmt: skip


class Ranges(NamedTuple):
    """What predictions are ordered by, and `NUMBERS` of each range; empty where there are no ranges.

    ``waiting`` is there where the bounds are still to be found.
    """

    on: str
    numbers: FloatArray
    waiting: "Unbounded | None"


class Unbounded(NamedTuple):
    """Ranges that are bounded when it is asked for: a verdict needs the bounds of few of them."""

    sums: FloatArray
    alpha: float  # with which a bound may miss
    weaker: float  # the same of one that is less firm

    def bounds(self, places: IndexArray | None = None) -> list[FloatArray]:
        """Return lower and upper bounds of some ranges, or of all, and lower ones that are less firm."""
        keys = Keys.of(self.sums if places is None else self.sums[places])
        return keys.bounds((self.alpha, -1), (self.alpha, +1), (self.weaker, -1))


def bounded_ranges(tally: Tally, error: float, min_share: float, weaker: float) -> Ranges:
    """Cut predictions into ranges, and bound the ECD of each, or leave that to be asked for.

    ``error`` is the probability that some lower bound misses, shared equally among the ranges, and ``weaker`` that of
    the bounds by which a range is suspected; ``min_share`` is the smallest share of the rows that a range may hold.
    """
    orders, pairs = tally.orders, tally.cell_pairs
    if pairs is not None:
        orders = [order.coarsened() for order in orders if order.label is None or pairs.classes]
    total = float(orders[0].sums[:, COLUMN["weight"]].sum()) if orders else 0.0
    pieces = [(order, ends) for order in orders if len(ends := cuts(order, total, min_share))]
    if not pieces:
        return Ranges("", np.zeros((0, len(NUMBERS))), None)
    sums = _joined([_sums_of_ranges(order.sums, ends) for order, ends in pieces])
    alpha = error / len(sums)
    weaker /= len(sums)
    known = _numbers_of_ranges(sums, orders[0].on, total, tally)
    waiting = None
    low = high = at_least = np.full(len(sums), np.nan)
    if pairs is not None:
        bounds = _clustered_bounds(pairs, pieces, alpha, weaker)
        impossible = sums[:, COLUMN["weight_impossible"]] > 0.0
        low, high, at_least = (np.where(impossible, math.inf, np.fmax(x, tally.least_excess)) for x in bounds)
    elif tally.clusters is not None:
        bounds = firm_and_weak_bounds(sums, alpha, weaker)
        low, high, at_least = (_widened(known[-1], bound, dependence(tally)) for bound in bounds)
        low = np.minimum(low, 0.0)  # how rows depend inside a range is not known
    else:
        waiting = Unbounded(sums, alpha, weaker)
    numbers = np.empty((len(sums), len(NUMBERS)))
    labels = [math.nan if order.label is None else order.label for order, _ in pieces]
    numbers[:, 0] = np.repeat(labels, [len(ends) for _, ends in pieces])
    numbers[:, 1:3] = _joined([_range_edges(order, ends) for order, ends in pieces])
    for k, column in enumerate((*known, low, high, at_least), 3):
        numbers[:, k] = column
    return Ranges(orders[0].on, numbers, waiting)


def _joined(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _range_edges(order: Order, ends: IndexArray) -> FloatArray:
    """Return where each range begins and ends; the first and the last reach to 0 and 1 where they nearly do."""
    edges = np.stack([order.low[ends[:, 0]], order.high[ends[:, 1] - 1]], axis=1)
    if order.on not in ("spread", "width", "perplexity"):
        if order.low[0] < _NEAR:
            edges[ends[:, 0] == 0, 0] = 0.0
        if order.high[-1] > 1.0 - _NEAR:
            edges[ends[:, 1] == len(order.high), 1] = 1.0
    return edges


def _clustered_bounds(
    pairs: CellPairs, pieces: list[tuple[Order, IndexArray]], alpha: float, weaker: float
) -> tuple[FloatArray, ...]:
    """Bound each range by the sums of its clusters, a few ranges at a time; return both bounds, and the weaker one."""
    bounds: list[tuple[FloatArray, ...]] = []
    for order, ends in pieces:
        order_pairs = pairs.of_order(order.label)
        waiting: list[PairPart] = []
        for k, (first, last) in enumerate(order.coarse[ends - [0, 1]].tolist(), 1):
            inside = np.flatnonzero((order_pairs.cell >= first) & (order_pairs.cell <= last))
            waiting.append(added_in_order(order_pairs.cluster[inside], order_pairs.sums.take(inside, axis=0)))
            if k == len(ends) or sum(len(part.codes) for part in waiting) > _TOGETHER:
                key = np.repeat(np.arange(len(waiting)), [len(part.codes) for part in waiting])
                sums = np.concatenate([part.sums for part in waiting])
                bounds.append(firm_and_weak_ends(key, sums, len(waiting), alpha, weaker))
                waiting = []
    return tuple(np.concatenate(bound) for bound in zip(*bounds, strict=True))


def dependence(tally: Tally) -> float:
    """Return how many times the error of ECD grows because rows of one cluster depend on each other; at least 1."""
    s, clusters = tally.summary, tally.clusters
    spread = summary_spread(s)
    if clusters is None or spread is None or spread.error == 0.0 or len(clusters) < 2:
        return 1.0
    parts = (clusters.column("excess") - s.ecd_possible * clusters.column("weight")) / s.weight
    error = math.sqrt(float(parts @ parts) * len(parts) / (len(parts) - 1.0))
    return max(error / spread.error, 1.0) if math.isfinite(error) else 1.0


def _widened(ecd: FloatArray, bound: FloatArray, times: float) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(ecd), ecd + times * (bound - ecd), bound)


def dimensions(varentropy: FloatArray | float, weight: FloatArray | float, tally: Tally | None = None) -> FloatArray:
    """Return how many dimensions rows have: two nats of mean varentropy each, at least one.

    Those of states and densities have no more than their axes, of whatever shape they are: a spike beside a slab varies
    by dozens of nats, and is one number all the same.
    """
    tokens = tally is not None and tally.ordered is not None and tally.ordered.on == "perplexity"
    most = math.inf if tally is None or tokens or math.isfinite(tally.most_entropy) else tally.dimension
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.minimum(np.fmax(1.0, 2.0 * np.asarray(varentropy) / np.asarray(weight)), most))


def cuts(order: Order, total: float, min_share: float) -> IndexArray:
    """Cut cells into ranges: the first cell and the one after the last of each.

    Some may hold less than the least share. People act on the surest rows, so a half, a quarter, an eighth and so on at
    the sure end of an order is a range, down to a few rows. So is a predicted class as a whole: of many classes, each
    is rare. And where predictions are a few values, such as confidences in words, each value is.
    """
    cells, is_class = len(order.sums), order.label is not None
    before, rows = np.zeros((2, cells + 1))
    np.cumsum(order.sums[:, COLUMN["weight"]], out=before[1:])
    np.cumsum(order.sums[:, COLUMN["n"]], out=rows[1:])
    pairs, may_be_few = _PAIRS.get(order.on, _PAIRS["spread"])
    ends = _nearest(before, before[-1] * _FRACTIONS)[pairs]
    if is_class:
        ends, may_be_few = np.concatenate([ends, [[0, cells]]]), np.append(may_be_few, True)
    elif order.on in ("probability", "confidence") and 2 < cells <= _VALUES and rows[-1] >= _ROWS * cells:
        ends = np.concatenate([ends, np.arange(cells)[:, None] + [0, 1]])
        may_be_few = np.append(may_be_few, np.ones(cells, dtype=bool))
    first, last = ends.T
    inside, least = before[last] - before[first], min_share * total * (1.0 - 1e-9)
    enough = inside >= least
    enough |= may_be_few & (inside >= _SMALL * least) & (rows[last] - rows[first] >= _ROWS)
    enough &= inside > 0.0
    if not is_class:
        enough &= last - first < cells  # not all there is
    ends, numbers = ends[enough], (first * (cells + 1) + last)[enough]
    ordered = np.sort(numbers)
    if (ordered[1:] == ordered[:-1]).any():  # where cells hold many rows, several shares end at the same one
        ends = ends[np.sort(np.unique(numbers, return_index=True)[1])]
    return np.asarray(ends)


#: Shares of the rows between which ranges lie: thirty-seconds for halves to sixteenths, and the ends of the surest.
_FRACTIONS = np.concatenate([np.arange(33) / 32, surest := 0.5 ** np.arange(5, 16), 1.0 - surest])
_DYADIC = [
    pair for step in (16, 8, 4, 2) for shift in (0, step // 2) for pair in pairwise(range(shift, 33, step))
]  # fmt: skip
_LOW = [(0, k) for k in range(33, 33 + len(surest))]
_HIGH = [(k, 32) for k in range(33 + len(surest), len(_FRACTIONS))]


def _pairs(surest_ends: list[tuple[int, int]], sure: tuple[int, ...]) -> tuple[IndexArray, BoolArray]:
    """Return which of the shares each range lies between, and whether it may hold few rows: at a sure end, 0 or 32."""
    pairs = np.array(_DYADIC + surest_ends)
    return pairs, np.asarray(((pairs == [0, 32]) & [0 in sure, 32 in sure]).any(axis=1))


#: A probability is sure at either end, a confidence where it is high, and a state where its spread is small.
_PAIRS = {
    "probability": _pairs(_LOW + _HIGH, (0, 32)),
    "confidence": _pairs(_HIGH, (32,)),
    "spread": _pairs(_LOW, (0,)),
}


def _nearest(before: FloatArray, wanted: FloatArray) -> IndexArray:
    """Return the ends of cells that are nearest to the weights that are wanted below them."""
    right = np.minimum(np.maximum(before.searchsorted(wanted), 1), len(before) - 1)
    nearer = wanted - before[right - 1] <= before[right] - wanted
    return np.asarray(right - nearer)


def _sums_of_ranges(sums: FloatArray, ends: IndexArray) -> FloatArray:
    """Add up the cells of each range."""
    padded = np.concatenate([sums, np.zeros((1, sums.shape[1]))])
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.add.reduceat(padded, ends.ravel(), axis=0)[::2])


def _numbers_of_ranges(sums: FloatArray, on: str, total: float, tally: Tally) -> tuple[FloatArray, ...]:
    """Return rows, share, predicted, observed, dimensions and ECD of each range."""

    def column(name: str) -> FloatArray:
        return sums[:, COLUMN[name]]

    weight = column("weight")
    possible = weight - column("weight_impossible")
    prediction, outcome = ("predicted", "observed") if on == "probability" else ("confidence", "correct")
    with np.errstate(invalid="ignore", divide="ignore"):
        ecd = np.where(column("weight_impossible") > 0.0, math.inf, column("sum_excess") / possible)
        means = column(f"sum_{prediction}") / weight, column(f"sum_{outcome}") / weight
    return column("n"), weight / total, *means, dimensions(column("sum_varentropy"), possible, tally), ecd


class Evenness(NamedTuple):
    """The cells of all predictions in their order; with clusters, the sums of each cluster in each coarse cell."""

    order: Order
    pairs: OrderPairs | None

    @classmethod
    def of(cls, tally: Tally) -> "Evenness | None":
        """Return what a tally tells; None where predictions have no order, or clusters are not told apart."""
        orders = [order for order in tally.orders if order.label is None]
        if not orders or (tally.clusters is not None and tally.cell_pairs is None):
            return None
        if tally.cell_pairs is None:
            return cls(orders[0], None)
        return cls(orders[0].coarsened(), tally.cell_pairs.of_order(None))

    @np.errstate(all="ignore")
    def p_value(self) -> float:
        """Return the p-value of calibration that is the same everywhere; 1 where nothing can differ."""
        sums = self.order.sums
        variance = np.sum([sums[:, COLUMN[name]] for name in _NULL], axis=0)
        curves = _curves(variance)
        if not len(curves):
            return 1.0
        if self.pairs is not None:
            tails = self._clustered(curves, self.pairs)
        else:
            excess, third = sums[:, COLUMN["sum_excess"]], np.abs(sums[:, COLUMN["sum_third_cumulant_weight3"]])
            # A curve changes its sign, and skewness must not cancel as the excess does: rare surprises have long tails.
            tails = [pearson3(abs(float(excess @ c)), 1.0, float(third @ np.abs(c) ** 3))[0] for c in curves]
        smallest = min(tails)
        return 1.0 if math.isnan(smallest) else min(2.0 * len(curves) * smallest, 1.0)

    def _clustered(self, curves: FloatArray, pairs: OrderPairs) -> list[float]:
        """Return the smaller tail of each curve, by a t test on clusters that is never narrower than the model says."""
        cell = np.searchsorted(self.order.coarse, pairs.cell)
        excess, variance = (pairs.sums[:, PAIRS.index(name)] for name in ("excess", "variance"))
        clusters = len(np.unique(pairs.cluster))
        tails = []
        for curve in curves:
            part = np.bincount(pairs.cluster, weights=excess * curve[cell])
            share = np.bincount(pairs.cluster, weights=variance * curve[cell] ** 2)
            freedom = share.sum() ** 2 / (share @ share) - 1.0  # of clusters that count alike
            spread = (part @ part - part.sum() ** 2 / clusters) * clusters / (clusters - 1.0)
            t = abs(part.sum()) / math.sqrt(max(spread, 1.0))
            tails.append(float(special.stdtr(freedom, -t)) if freedom > 0.0 else 0.5)
        return tails


def _curves(variance: FloatArray) -> FloatArray:
    """Return smooth curves over the cells: sums along each have variance 1, and nothing to do with one another."""
    total = float(variance.sum())
    if not 0.0 < total < math.inf:
        return np.zeros((0, len(variance)))
    place = (2.0 * np.cumsum(variance) - variance) / total - 1.0  # by information, from -1 to 1
    root = np.sqrt(variance)
    powers = np.vander(place, _CURVES + 1, increasing=True)
    basis, weights = np.linalg.qr(root[:, None] * powers)
    real = np.abs(np.diagonal(weights)) > _FLAT * math.sqrt(total)
    real[0] = False  # the constant
    curves: FloatArray = np.divide(basis, root[:, None], out=np.zeros_like(basis), where=root[:, None] > 0.0).T
    return np.asarray(curves[real])


class GroupEvenness(NamedTuple):
    """Whether calibration is the same in all groups.

    ``p_value`` is that of groups that differ by chance alone; ``scores`` tell how many standard errors the ECD of each
    group lies above 0, without regard to the others.
    """

    p_value: float
    scores: FloatArray

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, tally: Tally) -> "GroupEvenness | None":
        """Compare the groups of a tally; None where there are none, or clusters are not told apart."""
        groups, pairs = tally.groups, tally.pairs
        if groups is None or (tally.clusters is not None and pairs is None):
            return None
        excess, squares, *parts = (
            groups.sums[:, COLUMN[name]] for name in ("sum_excess", "sum_excess2_weight2", *_NULL)
        )
        variance = np.sum(parts, axis=0)
        total = float(variance.sum())
        if not 0.0 < total < math.inf:
            return None
        common = float(excess.sum()) / total  # what one temperature for all of them explains
        if pairs is None:
            by_chance = variance * max(float(squares.sum()) / total, 1.0)
        else:
            places = {key: k for k, key in enumerate(groups.keys)}
            place = np.array([places[key] for key in pairs.keys], dtype=np.intp)[pairs.key]
            rest = pairs.column("excess") - common * pairs.column("variance")
            by_chance = np.bincount(place, weights=rest * rest, minlength=len(excess))
        beyond = (excess - common * variance) ** 2 - by_chance  # 0 on average, where groups are alike
        spread = math.sqrt(float(beyond @ beyond))
        if not spread > 0.0:  # each group is one cluster: nothing tells groups and clusters apart
            return None
        statistic = float(beyond.sum()) / spread
        return cls(float(special.ndtr(-statistic)), excess / np.sqrt(np.maximum(variance, by_chance)))

    def standing_out(self, beyond: BoolArray, level: float) -> BoolArray:
        """Return which groups beyond their limit stand out, each by itself: at least the one that most does."""
        scores = np.where(beyond, self.scores, -math.inf)
        return np.asarray(scores >= min(float(special.ndtri(level)), float(scores.max())))
