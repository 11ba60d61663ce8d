"""Estimation: bounds on the ECD of slices, on rows that had no part in finding them.

Rows are grouped by the slices they lie in, so that one pass over all of them, by any engine that groups, gives the sums
of every slice. What may go wrong is shared: half of it for the slices found on each half, and there twice as much for
the best of them as for each other one. Four fifths go to the end of an interval that could show something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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

__all__ = ["FIRM", "TESTED", "Estimate", "Overlaps", "estimates", "membership", "shares_of_error"]

FIRM = 0.1  # of what the level leaves: what the bounds that a verdict rests on may miss, all together
TESTED = 0.8  # of the error for the end that may show something
_SECOND = 1 << 6  # the bit of the second half; those of candidates are below, at most three of each half


class Estimate(NamedTuple):
    """What the other half tells of a candidate."""

    rows: int  # of both halves
    share: float
    n: int
    ecd: Interval
    firm: float  # the end that may show something, at the level of the verdict
    alone: bool  # whether it shows something without the rows of better ones of the same half
    elsewhere: float  # ECD of all other rows of that half
    beyond: Interval  # ECD, less that
    temperature: Interval
    predicted: float
    observed: float
    dimensions: float


def membership(masks: Sequence[BoolArray], second: BoolArray) -> AnyArray:
    """Number the rows by their half and by the slices they lie in: a bit for each."""
    codes = np.where(second, _SECOND, 0).astype(np.int8)
    for k, mask in enumerate(masks):
        codes[mask] |= np.int8(1 << k)
    return codes


def shares_of_error(firsts: int, seconds: int) -> list[float]:
    """Return what each candidate may spend; the best of each half twice as much as each other one."""
    found = []
    for count in (firsts, seconds):
        found += [0.5 * (1 if k else 2) / (count + 1) for k in range(count)]
    return found


class Overlaps:
    """Which of the numbers of `membership` belong to a slice, and how many rows two slices share."""

    def __init__(self, tally: Tally, firsts: int) -> None:
        assert tally.groups is not None
        self._numbers = np.array(tally.groups.keys, dtype=np.intp)
        self._n = tally.groups.sums[:, COLUMN["n"]]
        self._firsts = firsts

    def of(self, k: int) -> BoolArray:
        """Tell which numbers are of the slice."""
        return np.asarray(self._numbers & 1 << k > 0)

    def other_half(self, k: int) -> BoolArray:
        """Tell which numbers are of the half on which the slice was not found."""
        return np.asarray((self._numbers & _SECOND > 0) == (k < self._firsts))

    def same_half(self, k: int) -> range:
        """Return the better ones that were found on the same half."""
        return range(0 if k < self._firsts else self._firsts, k)

    def alike(self, a: int, b: int) -> float:
        """Return the share of the rows of either that both have."""
        both, either = (float(self._n[numbers].sum()) for numbers in (self.of(a) & self.of(b), self.of(a) | self.of(b)))
        return both / max(either, 1.0)


def estimates(tally: Tally, firsts: int, seconds: int, *, level: float, over: bool) -> list[Estimate | None]:
    """Bound the candidates by sums that are grouped by `membership`; None where the other half has no row of one."""
    groups = tally.groups
    assert groups is not None
    count = firsts + seconds
    if not count:
        return []
    parts = Overlaps(tally, firsts)
    members = [np.flatnonzero(parts.of(k) & parts.other_half(k)) for k in range(count)]
    sums = np.stack([groups.sums[places].sum(axis=0) for places in members])
    column = {name: sums[:, COLUMN[name]] for name in COLUMN}
    side = -1 if over else +1
    shares = [(1.0 - level) * share for share in shares_of_error(firsts, seconds)]
    bounds = [_Bounds(tally, places) for places in members]
    shown, far, firm = (
        np.array([bound(part * share, end) for bound, share in zip(bounds, shares, strict=True)])
        for part, end in ((TESTED, side), (1.0 - TESTED, -side), (FIRM, side))
    )
    low, high = (shown, far) if over else (far, shown)
    claims = shown > 0.0 if over else shown < 0.0
    alone = []
    for k in range(count):
        better = [parts.of(j) for j in parts.same_half(k) if claims[j]]
        left = parts.of(k) & parts.other_half(k) & ~np.logical_or.reduce([np.zeros(len(groups.keys), bool), *better])
        bound = _Bounds(tally, np.flatnonzero(left))(TESTED * shares[k], side) if better else shown[k]
        alone.append(bound > 0.0 if over else bound < 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ecd = Keys.of(sums).ecd
        predicted, observed = (column[name] / column["weight"] for name in ("sum_predicted", "sum_observed"))
        many = dimensions(column["sum_varentropy"], column["weight"] - column["weight_impossible"])
        temperatures = _temperatures(tally, members, sums, 0.5 * (1.0 - level) / count, high - ecd, level)
    method = "skewness-corrected t, together" if tally.clusters is None else "t on clusters, together"
    found: list[Estimate | None] = []
    for k in range(count):
        if not column["weight"][k] > 0.0:
            found.append(None)
            continue
        whole = groups.sums[parts.of(k)].sum(axis=0)
        here = Interval(float(ecd[k]), float(low[k]), float(high[k]), level, method)
        rest = _Bounds(tally, np.flatnonzero(parts.other_half(k) & ~parts.of(k)))
        elsewhere, beyond = _beyond(here, rest, shares[k])
        found.append(Estimate(
            int(whole[COLUMN["n"]]), float(whole[COLUMN["weight"]] / tally.summary.weight), int(column["n"][k]), here,
            float(firm[k]), bool(alone[k]), elsewhere, beyond, temperatures[k], float(predicted[k]),
            float(observed[k]), float(many[k]),
        ))  # fmt: skip
    return found


def _beyond(here: Interval, rest: _Bounds, share: float) -> tuple[float, Interval]:
    """Return ECD of the other rows, and how far that of the slice lies above it, by the distances of both bounds."""
    value = rest.ecd
    with np.errstate(invalid="ignore"):
        apart = float(np.subtract(here.value, value))
        low = apart - math.hypot(here.value - here.low, rest(TESTED * share, +1) - value)
        high = apart + math.hypot(here.high - here.value, value - rest(TESTED * share, -1))
    ends = (apart, low, high) if math.isfinite(apart) else (apart, apart, apart)
    return value, Interval(*ends, here.level, "distances of both bounds")


class _Bounds:
    """The bounds of one slice, or of other rows, by the probability to miss and the side."""

    def __init__(self, tally: Tally, places: IndexArray) -> None:
        assert tally.groups is not None
        self._tally, self._places = tally, places
        self._sums = tally.groups.sums[places].sum(axis=0, keepdims=True)

    @property
    def ecd(self) -> float:
        found = float(Keys.of(self._sums).ecd[0])
        return math.nan if math.isnan(found) else found  # one NaN: equal slices are equal

    def __call__(self, alpha: float, side: int) -> float:
        tally, sums = self._tally, self._sums
        if tally.clusters is None or not sums[0, COLUMN["n"]]:
            # The model's own spread guards against few rows here: plain t would cost a third of what is found.
            return float(Keys.of(sums).bounds((alpha, side), cautious=0)[0][0])
        if sums[0, COLUMN["weight_impossible"]] > 0.0:
            return math.inf
        pairs = tally.pairs
        assert pairs is not None
        assert tally.groups is not None
        numbers = np.array(pairs.keys, dtype=np.intp)[pairs.key]
        kept = np.isin(numbers, [tally.groups.keys[place] for place in self._places.tolist()])
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
        return [Interval(math.nan, math.nan, math.nan, level, "none: this density does not tell it")] * len(sums)
    widened = None if tally.clusters is None else reach
    found = KeyTemperatures(lambda keys: law, sums, alpha, widened).intervals(np.arange(len(sums)))
    ends = ([math.nan if end != end else end for end in x.tolist()] for x in found)  # one NaN: equal ones are equal
    return [Interval(t, low, high, level, "from sums, together") for t, low, high in zip(*ends, strict=True)]
