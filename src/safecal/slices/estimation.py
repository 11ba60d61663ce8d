"""Estimation: bounds on the ECD of slices, on rows that had no part in finding them.

Rows are grouped by the slices they lie in, so that one pass over all of them, by any engine that groups, gives the sums
of every slice. What may go wrong is shared: half of it for the slices found on each half, and there twice as much for
the best of them as for each other one. Four fifths go to the end of an interval that could show something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._sums.nodes import NodeTable
from .._sums.summary import COLUMN
from .._sums.tally import Tally
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from ..inference.dependence import clustered_bounds
from ..inference.key_temperatures import KeyTemperatures, NodeKeys, StateKeys
from ..inference.ranges import dimensions
from ..inference.results import Interval
from ..inference.sum_bounds import Keys

__all__ = ["FIRM", "TESTED", "Estimate", "estimates", "membership", "shares_of_error"]

FIRM = 0.1  # of what the level leaves: what the bounds that a verdict rests on may miss, all together
TESTED = 0.8  # of the error for the end that may show something
_PLACES = 8  # how far the numbers of the second half are moved: candidates of one half are at most three bits


class Estimate(NamedTuple):
    """What the other half tells of a candidate."""

    n: int
    ecd: Interval
    firm: float  # the end that may show something, at the level of the verdict
    alone: float  # that end of the rows that no better slice of the same half holds
    temperature: Interval
    predicted: float
    observed: float
    dimensions: float


def membership(masks: Sequence[BoolArray], second: BoolArray, firsts: int) -> AnyArray:
    """Number the rows by the slices they lie in; a slice that was found on a half counts on the other one alone.

    ``second`` tells the rows of the second half; the first ``firsts`` masks were found on the first one.
    """
    codes = np.where(second, 0, _PLACES).astype(np.int8)
    for k, mask in enumerate(masks):
        there = mask & second if k < firsts else mask & ~second
        codes[there] += np.int8(1 << (k if k < firsts else k - firsts))
    return codes


def shares_of_error(firsts: int, seconds: int) -> list[float]:
    """Return what each candidate may spend; the best of each half twice as much as each other one."""
    found = []
    for count in (firsts, seconds):
        found += [0.5 * (1 if k else 2) / (count + 1) for k in range(count)]
    return found


def _alone(places: IndexArray, keys: Sequence[Any], k: int) -> IndexArray:
    """Return those keys of the slice of number ``k`` that no better one of the same half holds."""
    better = (1 << k) - 1
    return places[[int(keys[place]) % _PLACES & better == 0 for place in places.tolist()]]


def _members(keys: Sequence[Any], firsts: int, count: int) -> list[IndexArray]:
    """Return the places of the keys that each slice is made of."""
    numbers = np.array(keys, dtype=np.intp)
    found = []
    for k in range(count):
        bit = 1 << (k if k < firsts else k - firsts)
        half = numbers < _PLACES if k < firsts else numbers >= _PLACES
        found.append(np.flatnonzero(half & (numbers % _PLACES & bit > 0)))
    return found


def estimates(tally: Tally, firsts: int, seconds: int, *, level: float, over: bool) -> list[Estimate | None]:
    """Bound the candidates by sums that are grouped by `membership`; None where the other half has no row of one."""
    groups = tally.groups
    assert groups is not None
    count = firsts + seconds
    if not count:
        return []
    members = _members(groups.keys, firsts, count)
    sums = np.stack([groups.sums[places].sum(axis=0) for places in members])
    column = {name: sums[:, COLUMN[name]] for name in COLUMN}
    side = -1 if over else +1
    shares = [(1.0 - level) * share for share in shares_of_error(firsts, seconds)]
    bounds = [_Bounds(tally, places, sums[k : k + 1]) for k, places in enumerate(members)]
    shown, far, firm = (
        np.array([bound(part * share, end) for bound, share in zip(bounds, shares, strict=True)])
        for part, end in ((TESTED, side), (1.0 - TESTED, -side), (FIRM, side))
    )
    low, high = (shown, far) if over else (far, shown)
    alone = []
    for k, places in enumerate(members):
        apart = _alone(places, groups.keys, k if k < firsts else k - firsts)
        rest = groups.sums[apart].sum(axis=0, keepdims=True)
        alone.append(_Bounds(tally, apart, rest)(TESTED * shares[k], side))
    with np.errstate(divide="ignore", invalid="ignore"):
        ecd = Keys.of(sums).ecd
        predicted, observed = (column[name] / column["weight"] for name in ("sum_predicted", "sum_observed"))
        many = dimensions(column["sum_varentropy"], column["weight"] - column["weight_impossible"])
        temperatures = _temperatures(tally, members, sums, 0.5 * (1.0 - level) / count, high - ecd, level)
    method = "skewness-corrected t, together" if tally.clusters is None else "t on clusters, together"
    return [
        Estimate(
            int(column["n"][k]),
            Interval(float(ecd[k]), float(low[k]), float(high[k]), level, method),
            float(firm[k]), alone[k], temperatures[k], float(predicted[k]), float(observed[k]), float(many[k]),
        ) if column["weight"][k] > 0.0 else None
        for k in range(count)
    ]  # fmt: skip


class _Bounds:
    """The bounds of one slice, by the probability to miss and the side."""

    def __init__(self, tally: Tally, places: IndexArray, sums: FloatArray) -> None:
        self._tally, self._places, self._sums = tally, places, sums

    def __call__(self, alpha: float, side: int) -> float:
        tally, sums = self._tally, self._sums
        if tally.clusters is None or not sums[0, COLUMN["n"]]:
            return float(Keys.of(sums).bounds((alpha, side))[0][0])
        if sums[0, COLUMN["weight_impossible"]] > 0.0:
            return math.inf
        pairs = tally.pairs
        assert pairs is not None
        kept = np.isin(pairs.key, self._places)
        key = np.zeros(int(kept.sum()), dtype=np.intp)
        found = clustered_bounds(key, pairs.cluster[kept], pairs.sums[kept], 1, alpha)
        return max(float(found.low[0]), tally.least_excess) if side < 0 else float(found.high[0])


def _temperatures(
    tally: Tally, members: list[IndexArray], sums: FloatArray, alpha: float, reach: FloatArray, level: float
) -> list[Interval]:
    law: NodeKeys | StateKeys
    if tally.group_nodes is not None:
        nodes = np.stack([tally.group_nodes.sums[places].sum(axis=0) for places in members])
        most = math.nan if tally.n_certain or tally.room is not None else tally.most_entropy
        law = NodeKeys(NodeTable(tuple(range(len(nodes))), nodes, tally.group_nodes.classes), sums, most)
    elif tally.family == "gaussian":
        law = StateKeys(sums)
    else:
        return [Interval(math.nan, math.nan, math.nan, level, "none: no log-partition function")] * len(sums)
    widened = None if tally.clusters is None else reach
    found = KeyTemperatures(lambda keys: law, sums, alpha, widened).intervals(np.arange(len(sums)))
    ends = ([math.nan if end != end else end for end in x.tolist()] for x in found)  # one NaN: equal ones are equal
    return [Interval(t, low, high, level, "from sums, together") for t, low, high in zip(*ends, strict=True)]
