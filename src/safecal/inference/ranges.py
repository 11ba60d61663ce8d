"""How predictions are cut into ranges, and the bounds on the ECD of all ranges together.

Predictions are put in their order: by probability (two classes), by confidence and within each predicted class (more
classes), by spread (states and densities). Ranges are halves, quarters, eighths and sixteenths of the rows, and as many
that begin half a step later; each is a union of whole cells, so that equal predictions never part, and none depends on
the outcomes or on the bins of the user.

Where rows come in clusters, ranges are unions of coarse cells, and their bounds those of clusters, by the sums of each
cluster in each coarse cell. Beyond 500 000 pairs of both, predicted classes are no longer told apart. Where there are
still more, or a tally was read from a document, which holds no such sums, bounds are those of independent rows, as many
times wider as the clusters make those of all rows, and no lower bound is above 0: a range may then withhold SAFE, and
proves nothing.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._sums.cluster_pairs import CellPairs, PairPart, added_in_order
from .._sums.ordered import Order
from .._sums.summary import COLUMN
from .._sums.tally import Tally
from .._types import FloatArray, IndexArray
from .dependence import firm_and_weak_ends
from .sum_bounds import Keys, firm_and_weak_bounds, summary_spread

__all__ = [
    "NUMBERS", "SHOWN", "SUSPECTED", "Ranges", "Unbounded", "bounded_ranges", "cuts", "dependence", "dimensions",
]  # fmt: skip

_HALVINGS = 4  # to sixteenths
_TOGETHER = 1 << 18  # sums of clusters that are bounded at a time, about
_NEAR = 1e-3  # a probability below it may as well be 0, in words
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

    def lower(self, places: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return the lower bounds of some ranges, and those that are less firm."""
        low, at_least = Keys.of(self.sums[places]).bounds((self.alpha, -1), (self.weaker, -1))
        return low, at_least

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
    sums = _joined([_added(order.sums, ends) for order, ends in pieces])
    alpha = error / len(sums)
    weaker /= len(sums)
    known = _known(sums, orders[0].on, total)
    waiting = None
    low = high = at_least = np.full(len(sums), np.nan)
    if pairs is not None:
        bounds = _clustered(pairs, pieces, alpha, weaker)
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
    numbers[:, 1:3] = _joined([_ends(order, ends) for order, ends in pieces])
    for k, column in enumerate((*known, low, high, at_least), 3):
        numbers[:, k] = column
    return Ranges(orders[0].on, numbers, waiting)


def _joined(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _ends(order: Order, ends: IndexArray) -> FloatArray:
    """Return where each range begins and ends; the first and the last reach to 0 and 1 where they nearly do."""
    found = np.stack([order.low[ends[:, 0]], order.high[ends[:, 1] - 1]], axis=1)
    if order.on not in ("spread", "width", "perplexity"):
        if order.low[0] < _NEAR:
            found[ends[:, 0] == 0, 0] = 0.0
        if order.high[-1] > 1.0 - _NEAR:
            found[ends[:, 1] == len(order.high), 1] = 1.0
    return found


def _clustered(
    pairs: CellPairs, pieces: list[tuple[Order, IndexArray]], alpha: float, weaker: float
) -> tuple[FloatArray, ...]:
    """Bound each range by the sums of its clusters, a few ranges at a time; return both bounds, and the weaker one."""
    found: list[tuple[FloatArray, ...]] = []
    for order, ends in pieces:
        here = pairs.of_order(order.label)
        waiting: list[PairPart] = []
        for k, (first, last) in enumerate(order.coarse[ends - [0, 1]].tolist(), 1):
            inside = np.flatnonzero((here.cell >= first) & (here.cell <= last))
            waiting.append(added_in_order(here.cluster[inside], here.sums.take(inside, axis=0)))
            if k == len(ends) or sum(len(part.codes) for part in waiting) > _TOGETHER:
                key = np.repeat(np.arange(len(waiting)), [len(part.codes) for part in waiting])
                sums = np.concatenate([part.sums for part in waiting])
                found.append(firm_and_weak_ends(key, sums, len(waiting), alpha, weaker))
                waiting = []
    return tuple(np.concatenate(bound) for bound in zip(*found, strict=True))


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


def dimensions(varentropy: FloatArray | float, weight: FloatArray | float) -> FloatArray:
    """Return how many dimensions rows have: two nats of mean varentropy each, at least one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.fmax(1.0, 2.0 * np.asarray(varentropy) / np.asarray(weight)))


def cuts(order: Order, total: float, min_share: float) -> IndexArray:
    """Cut cells into ranges: the first cell and the one after the last of each. Those of a class may hold all of it."""
    weight = order.sums[:, COLUMN["weight"]]
    before = np.zeros(len(weight) + 1)
    np.cumsum(weight, out=before[1:])
    places = _nearest(before, before[-1] * _FRACTIONS)
    ends = places[_DYADIC]
    if not (places[1:] > places[:-1]).all():  # some ranges are empty, or the same as others, or all there is
        ends = np.array([pair for pair in dict.fromkeys(map(tuple, ends.tolist())) if pair != (0, len(weight))])
        ends = ends.reshape(-1, 2)
    if order.label is not None:
        ends = np.concatenate([[[0, len(weight)]], ends])
    enough = before[ends[:, 1]] - before[ends[:, 0]] >= min_share * total * (1.0 - 1e-9)
    return np.asarray(ends[enough & (ends[:, 1] > ends[:, 0])])


_FRACTIONS = np.arange(2 ** (_HALVINGS + 1) + 1) / 2 ** (_HALVINGS + 1)
#: Which of the fractions each range lies between.
_DYADIC = np.array(
    [
        pair
        for step in (len(_FRACTIONS) // 2**halving for halving in range(1, _HALVINGS + 1))
        for shift in (0, step // 2)
        for pair in pairwise(range(shift, len(_FRACTIONS), step))
    ]
)


def _nearest(before: FloatArray, wanted: FloatArray) -> IndexArray:
    """Return the ends of cells that are nearest to the weights that are wanted below them."""
    after = np.minimum(np.maximum(before.searchsorted(wanted), 1), len(before) - 1)
    nearer = wanted - before[after - 1] <= before[after] - wanted
    return np.asarray(after - nearer)


def _added(sums: FloatArray, ends: IndexArray) -> FloatArray:
    """Add up the cells of each range."""
    padded = np.concatenate([sums, np.zeros((1, sums.shape[1]))])
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.add.reduceat(padded, ends.ravel(), axis=0)[::2])


def _known(sums: FloatArray, on: str, total: float) -> tuple[FloatArray, ...]:
    """Return rows, share, predicted, observed, dimensions and ECD of each range."""

    def column(name: str) -> FloatArray:
        return sums[:, COLUMN[name]]

    weight = column("weight")
    possible = weight - column("weight_impossible")
    said, done = ("predicted", "observed") if on == "probability" else ("confidence", "correct")
    with np.errstate(invalid="ignore", divide="ignore"):
        ecd = np.where(column("weight_impossible") > 0.0, math.inf, column("sum_excess") / possible)
        means = column(f"sum_{said}") / weight, column(f"sum_{done}") / weight
    return column("n"), weight / total, *means, dimensions(column("sum_varentropy"), possible), ecd
