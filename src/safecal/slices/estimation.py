"""Estimation: numbers of slices from the half on which they were not found, and how small a slice it would show.

Rows are grouped by the slices they lie in, so that one pass over all of them, by any engine that groups, gives the sums
of every slice. The error that the level leaves is shared: half of it for the slices found on each half, and there twice
as much for the best of them as for each other one. Four fifths go to the end of an interval that can show something.

The reach says how small a slice would have been found, had there been one; so that finding none means something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums import Tally
from .._sums.nodes import NodeTable
from .._sums.summary import COLUMN
from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from ..errors import UnavailableError
from ..families import Predictions
from ..inference import Interval
from ..inference.key_temperatures import KeyTemperatures, NodeKeys, StateKeys
from ..inference.ranges import dimensions
from ..inference.sum_bounds import Keys, clustered_bounds
from .discovery import KEPT

__all__ = ["Estimate", "Overlaps", "Reach", "estimate_slices", "membership", "reach_of", "shares_of_error"]

FIRM = 0.1  # of the error that the level leaves, for the bounds that a verdict rests on, all together
TESTED = 0.8  # of the error, for the end that can show something
_SECOND = 1 << 6  # the bit of the second half; those of candidates are below, at most three of each half
# Of the reach.
_SHARES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)  # of the rows
_TIMES = (2.0, 3.0, 5.0)  # how many times too large logits are
_LEAST_CHANCE = 0.9
_MOMENT_ROWS = 4096  # from which moments are taken


class Estimate(NamedTuple):
    """What the other half tells of a candidate: the numbers of a `Slice`."""

    n: int  # rows of both halves
    share: float
    estimated_on: int
    ecd: Interval
    firm: float  # the end that can show something, at the level of the verdict
    temperature: Interval
    predicted: float
    observed: float
    dimensions: float
    elsewhere: float  # ECD of all other rows of that half
    beyond: Interval  # ECD, less that
    alone: bool  # whether it shows something without the rows of better ones of the same half


def membership(masks: Sequence[BoolArray], second: BoolArray) -> AnyArray:
    """Number the rows by their half and by the slices they lie in: a bit for each."""
    codes = np.where(second, _SECOND, 0).astype(np.int8)
    for k, mask in enumerate(masks):
        codes[mask] |= np.int8(1 << k)
    return codes


def shares_of_error(n_first: int, n_second: int) -> list[float]:
    """Return the share of the error that each candidate has; the best of each half has twice that of the others."""
    shares = []
    for count in (n_first, n_second):
        shares += [0.5 * (1 if k else 2) / (count + 1) for k in range(count)]
    return shares


class Overlaps:
    """Which of the numbers of `membership` belong to a slice, and how many rows two slices share."""

    def __init__(self, tally: Tally, n_first: int) -> None:
        assert tally.groups is not None
        self._numbers = np.array(tally.groups.keys, dtype=np.intp)
        self._n = tally.groups.sums[:, COLUMN["n"]]
        self._firsts = n_first

    def in_slice(self, k: int) -> BoolArray:
        """Tell which numbers are of the slice."""
        return np.asarray(self._numbers & 1 << k > 0)

    def in_other_half(self, k: int) -> BoolArray:
        """Tell which numbers are of the half on which the slice was not found."""
        return np.asarray((self._numbers & _SECOND > 0) == (k < self._firsts))

    def better_on_same_half(self, k: int) -> range:
        """Return the better ones that were found on the same half."""
        return range(0 if k < self._firsts else self._firsts, k)

    def overlap(self, a: int, b: int) -> float:
        """Return the share of the rows of either that both have."""
        one, other = self.in_slice(a), self.in_slice(b)
        return float(self._n[one & other].sum()) / max(float(self._n[one | other].sum()), 1.0)


def estimate_slices(tally: Tally, n_first: int, n_second: int, *, level: float, over: bool) -> list[Estimate | None]:
    """Bound the candidates by sums that are grouped by `membership`; None where the other half has no row of one."""
    groups = tally.groups
    assert groups is not None
    count = n_first + n_second
    if not count:
        return []
    overlaps = Overlaps(tally, n_first)
    members = [np.flatnonzero(overlaps.in_slice(k) & overlaps.in_other_half(k)) for k in range(count)]
    sums = np.stack([groups.sums[places].sum(axis=0) for places in members])
    column = {name: sums[:, COLUMN[name]] for name in COLUMN}
    side = -1 if over else +1
    shares = [(1.0 - level) * share for share in shares_of_error(n_first, n_second)]
    bounds = [_SliceBounds(tally, places) for places in members]
    shown, other_end, firm = (
        np.array([bound(part * share, end) for bound, share in zip(bounds, shares, strict=True)])
        for part, end in ((TESTED, side), (1.0 - TESTED, -side), (FIRM, side))
    )
    low, high = (shown, other_end) if over else (other_end, shown)
    alone = _shown_alone(tally, overlaps, shown, shares, over=over)
    with np.errstate(divide="ignore", invalid="ignore"):
        ecd = Keys.of(sums).ecd
        predicted, observed = (column[name] / column["weight"] for name in ("sum_predicted", "sum_observed"))
        dimensions_of = dimensions(column["sum_varentropy"], column["weight"] - column["weight_impossible"], tally)
        temperatures = _slice_temperatures(tally, members, sums, 0.5 * (1.0 - level) / count, high - ecd, level)
    method = "skewness-corrected t, together" if tally.clusters is None else "t on clusters, together"
    estimated: list[Estimate | None] = []
    for k in range(count):
        if not column["weight"][k] > 0.0:
            estimated.append(None)
            continue
        slice_sums = groups.sums[overlaps.in_slice(k)].sum(axis=0)
        interval = Interval(float(ecd[k]), float(low[k]), float(high[k]), level, method)
        other_rows = _SliceBounds(tally, np.flatnonzero(overlaps.in_other_half(k) & ~overlaps.in_slice(k)))
        elsewhere, beyond = _compare_with_other_rows(interval, other_rows, shares[k])
        estimated.append(Estimate(
            n=int(slice_sums[COLUMN["n"]]), share=float(slice_sums[COLUMN["weight"]] / tally.summary.weight),
            estimated_on=int(column["n"][k]), ecd=interval, firm=float(firm[k]), temperature=temperatures[k],
            predicted=float(predicted[k]), observed=float(observed[k]), dimensions=float(dimensions_of[k]),
            elsewhere=elsewhere, beyond=beyond, alone=alone[k],
        ))  # fmt: skip
    return estimated


def _shown_alone(
    tally: Tally, overlaps: Overlaps, shown: FloatArray, shares: Sequence[float], *, over: bool
) -> list[bool]:
    """Tell of each candidate whether it shows something without the rows of better ones that do."""
    alone: list[bool] = []
    for k, share in enumerate(shares):
        own_numbers = overlaps.in_slice(k) & overlaps.in_other_half(k)
        better = [
            overlaps.in_slice(j)
            for j in overlaps.better_on_same_half(k)
            if (shown[j] > 0.0 if over else shown[j] < 0.0)
        ]
        bound = float(shown[k])
        if better:
            numbers_left = own_numbers & ~np.logical_or.reduce(better)
            bound = _SliceBounds(tally, np.flatnonzero(numbers_left))(TESTED * share, -1 if over else +1)
        alone.append(bound > 0.0 if over else bound < 0.0)
    return alone


def _compare_with_other_rows(interval: Interval, other_rows: _SliceBounds, share: float) -> tuple[float, Interval]:
    """Return ECD of the other rows, and how far that of the slice lies above it, by the distances of both bounds."""
    value = other_rows.ecd
    with np.errstate(invalid="ignore"):
        difference = float(np.subtract(interval.value, value))
        low = difference - math.hypot(interval.value - interval.low, other_rows(TESTED * share, +1) - value)
        high = difference + math.hypot(interval.high - interval.value, value - other_rows(TESTED * share, -1))
    ends = (difference, low, high) if math.isfinite(difference) else (difference, difference, difference)
    return value, Interval(*ends, interval.level, "distances of both bounds")


class _SliceBounds:
    """The bounds of one slice, or of other rows, by the probability to miss and the side."""

    def __init__(self, tally: Tally, places: IndexArray) -> None:
        assert tally.groups is not None
        self._tally, self._places = tally, places
        self._sums = tally.groups.sums[places].sum(axis=0, keepdims=True)

    @property
    def ecd(self) -> float:
        ecd = float(Keys.of(self._sums).ecd[0])
        return math.nan if math.isnan(ecd) else ecd  # one NaN: equal slices are equal

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
        bounds = clustered_bounds(key, pairs.cluster[kept], pairs.sums[kept], 1, alpha)
        return max(float(bounds.low[0]), tally.least_excess) if side < 0 else float(bounds.high[0])


def _slice_temperatures(
    tally: Tally, members: list[IndexArray], sums: FloatArray, alpha: float, half_width: FloatArray, level: float
) -> list[Interval]:
    law: NodeKeys | StateKeys
    if tally.group_nodes is not None:
        nodes = np.stack([tally.group_nodes.sums[places].sum(axis=0) for places in members])
        most_entropy = math.nan if tally.n_certain or tally.room is not None else tally.most_entropy
        law = NodeKeys(NodeTable(tuple(range(len(nodes))), nodes, tally.group_nodes.classes), sums, most_entropy)
    elif tally.family == "gaussian":
        law = StateKeys(sums)
    else:
        return [Interval(math.nan, math.nan, math.nan, level, "none: it is not defined for these predictions")] * len(
            sums
        )
    widened = None if tally.clusters is None else half_width
    temperatures = KeyTemperatures(lambda keys: law, sums, alpha, widened).intervals(np.arange(len(sums)))
    # One NaN, so that equal intervals are equal.
    ends = ([math.nan if end != end else end for end in x.tolist()] for x in temperatures)
    return [Interval(t, low, high, level, "from sums, together") for t, low, high in zip(*ends, strict=True)]


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """A slice that would have been found.

    Attributes
    ----------
    share : float
        Its share of the rows.
    temperature : float
        How many times its logits, or its variances, are too large; below 1 for under-confidence.
    chance : float
        In what share of such samples it would have been found, at least.
    classes : bool
        Whether predictions are of classes.

    Examples
    --------
    >>> from safecal.slices.estimation import Reach
    >>> print(Reach(0.05, 2.0, 0.93, True))
    a slice of 5 % of the rows with logits 2 times too large would have been found in at least 9 of 10 such samples
    """

    share: float
    temperature: float
    chance: float
    classes: bool

    def __str__(self) -> str:
        times = self.temperature
        if times > 1.0:
            wrong = f"logits {times:g} times too large" if self.classes else f"a temperature of {times:g}"
        else:
            wrong = f"logits {1.0 / times:g} times too small" if self.classes else f"a temperature of {times:.2g}"
        of_ten = min(math.floor(10.0 * self.chance), 9)
        ending = f"would have been found in at least {of_ten} of 10 such samples"
        return f"a slice of {100.0 * self.share:g} % of the rows with {wrong} {ending}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("share", "temperature", "chance", "classes")}
        return documents.document("reach", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        return cls(**documents.read("reach", document, _REACH_FIELDS))


_REACH_FIELDS: dict[str, Any] = {
    "share": documents.between(0.0, 1.0),
    "temperature": documents.between(0.0, inside=True),
    "chance": documents.between(0.0, 1.0),
    "classes": documents.flag,
}


def reach_of(
    predictions: Predictions, *, rows: float, searched: float, atoms: int, depth: int, min_share: float, level: float,
    over: bool,
) -> Reach | None:  # fmt: skip
    """Return the smallest slice with logits twice too large that would have been found in 9 of 10 samples.

    Where none would, its logits are three times, or five times, too large. A slice must be found on a half, in spite
    of the best that chance offers there, and shown on the other one: the product of both probabilities, one way alone.
    None where not even that would be found, or the family has no log-partition. ``predictions`` are rows that were
    searched, ``rows`` and ``searched`` how many one half has, and how many of it were searched.
    """
    index = np.linspace(0, predictions.n - 1, min(predictions.n, _MOMENT_ROWS)).astype(np.intp)
    alpha = TESTED * (1.0 - level) * shares_of_error(KEPT, 0)[0]
    noise = math.sqrt(2.0 * depth * math.log(max(atoms, 2)))
    for times in _TIMES:
        moments = _moments(predictions, index, 1.0 / times if over else times)
        if moments is None:
            return None
        mean, variance, null = moments
        for share in _SHARES:
            if share < min_share:
                continue
            tested_rows = share * rows
            score = mean * math.sqrt(share * searched / null)
            chance_found = special.ndtr((score - noise) / math.sqrt(variance / null))
            t = -float(special.stdtrit(max(tested_rows - 1.0, 1.0), alpha))
            beyond = mean * math.sqrt(tested_rows) - t * math.sqrt(max(variance, null))
            chance = float(chance_found * special.ndtr(beyond / math.sqrt(variance)))
            if chance >= _LEAST_CHANCE:
                return Reach(share, times if over else 1.0 / times, chance, predictions.discrete)
    return None


def _moments(predictions: Predictions, index: IndexArray, beta: float) -> tuple[float, float, float] | None:
    """Return size and variance of the mean excess a row if ``p_beta`` is true, and its variance if the model is."""
    try:
        rows = predictions.take(index)
        surprise, own_surprise = (-rows.log_partition(b, deriv=1) for b in (beta, 1.0))
        variance, null = (rows.log_partition(b, deriv=2) for b in (beta, 1.0))
    except UnavailableError:
        return None
    excess = surprise - own_surprise
    mean, spread = abs(float(np.mean(excess))), float(np.mean(variance) + np.var(excess))
    null_variance = float(np.mean(null))
    return (mean, spread, null_variance) if mean > 0.0 and null_variance > 0.0 and spread > 0.0 else None
