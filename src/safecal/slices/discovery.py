"""Discovery: features become a few codes each, and a beam search finds the conditions whose rows surprise too much.

Codes are quantile bins of numbers and dates, the most frequent categories, and missing values. Outcomes play no part in
them, so conditions found on any rows are fixed before the other rows are looked at.

Sums by code give every condition on a feature at once: prefix sums those on numbers and dates. The score of a slice is
its summed excess, less what one temperature for all rows would explain, over the standard deviation that the model
claims. Half its square is how much more likely a temperature of its own makes the outcomes; the log of the number of
conditions that were tried is what each condition costs, so that a longer description must earn its length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, BoolArray, FloatArray, IndexArray
from ..families import Predictions
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian
from .conditions import Condition, Operator
from .features import Feature, Unreadable

__all__ = ["BEAM", "BINS", "DRAWN", "KEPT", "Coded", "Search", "code_feature", "tells_the_outcome"]

# Of the codes of a feature.
BINS = 32  # values that are told apart, at most
QUANTILES = 16  # bins of numbers and dates that have more; finer ones find more that is chance
EDGES = (0.024, 0.04, 0.96, 0.976)  # cuts near the ends: a little more than 2 %, the smallest share by default
CODES = BINS + 2  # bins or categories, one code for missing values, one for categories that are rare
_OTHER = BINS + 1  # the code of rare categories
_SORTED = 100_000  # rows whose quantiles are taken
_UNITS = ("Y", "M", "D", "h", "m", "s", "ms", "us")  # of dates, the roundest first
# Of a feature that tells the outcome.
_FEWER_MISTAKES = 0.1  # of those that the model announces
_MOST_CLASSES = 10_000
_COUNTED = 10_000  # rows whose announced mistakes are counted
_FEWEST_ROWS = 40  # below which a feature of many values tells all outcomes by chance
# Of the search.
DRAWN = 1_000_000  # rows that are searched, of both halves
BEAM = 20  # slices that are extended in each step
KEPT = 3  # candidates of a half
_COMMON = 1.0  # excess over variance that one temperature may explain; impossible outcomes make it larger
_EQUAL = 3  # categories of one feature that are kept in a step
_CODES_AT_ONCE = 1 << 18  # codes that are summed at a time
_LOOKED_AT = 200  # slices, the best, among which those are chosen that overlap little


class Coded(NamedTuple):
    """A feature as codes.

    ``cuts`` separate the bins of numbers and dates; ``values`` are those of codes that stand for one value each. Code
    ``BINS`` is that of missing values.
    """

    feature: Feature
    codes: AnyArray  # uint8
    cuts: tuple[Any, ...]
    values: tuple[Any, ...]
    has_missing: bool

    @property
    def atoms(self) -> int:
        """How many conditions it offers."""
        return 2 * len(self.cuts) + len(self.values) + self.has_missing

    def condition(self, operator: Operator, k: int) -> Condition:
        """Return a condition: on the cut or on the value of number ``k``."""
        value = None if operator == "missing" else self.values[k] if operator == "is" else self.cuts[k]
        return Condition(self.feature.name, operator, value, self.feature.kind, self.feature.with_nan)


def code_feature(feature: Feature, fewest: int) -> Coded:
    """Code a feature; `Unreadable` where no condition on it separates at least ``fewest`` rows from the others."""
    categories = feature.kind in ("truth", "category")
    coded_feature = _code_categories(feature, fewest) if categories else _code_ordered(feature)
    if not coded_feature.atoms:
        raise Unreadable("its values are all alike")
    return coded_feature


def _code_categories(feature: Feature, fewest: int) -> Coded:
    codes = feature.values
    counts = np.bincount(codes[codes >= 0], minlength=len(feature.categories))
    common = np.argsort(-counts, kind="stable")[:BINS]
    common = common[counts[common] >= max(fewest, 1)]
    missing = codes < 0
    if len(common) == 0 and int(missing.sum()) < fewest:
        raise Unreadable(f"none of its {np.count_nonzero(counts)} values is frequent enough")
    if len(common) == 1 and counts[common[0]] == len(codes):
        raise Unreadable("its values are all alike")
    code_of_category = np.full(len(feature.categories) + 1, _OTHER, dtype=np.uint8)
    code_of_category[common] = np.arange(len(common))
    code_of_category[-1] = BINS  # where a code is -1
    values = tuple(feature.categories[k] for k in common.tolist())
    return Coded(feature, code_of_category[codes], (), values, bool(missing.any()))


def _code_ordered(feature: Feature) -> Coded:
    values, missing = feature.values, feature.missing()
    has_missing = bool(missing.any())
    present = values[~missing] if has_missing else values
    if not len(present):
        raise Unreadable("all its values are missing")
    step = -(-len(present) // _SORTED)
    ordered = np.sort(present[::step])
    distinct = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    single_values: tuple[Any, ...] = ()
    if len(distinct) <= BINS:
        cuts = [_simplest_cut(a, b, feature.kind) for a, b in pairwise(distinct)]
        single_values = tuple(distinct.tolist()) if feature.kind == "number" and len(distinct) > 1 else ()
    else:
        shares = [(k / QUANTILES, 4 * QUANTILES) for k in range(1, QUANTILES)] + [(edge, 300) for edge in EDGES]
        places = [(int(share * len(ordered)), len(ordered) // divisor) for share, divisor in shares]
        cuts = [_simplest_cut(ordered[max(k - reach - 1, 0)], ordered[k + reach], feature.kind) for k, reach in places]
    cuts = sorted({cut for cut in cuts if cut is not None})
    cut_values = np.array(
        cuts, dtype="datetime64[us]" if feature.kind == "date" else values.dtype if cuts == [] else None
    )
    codes = np.searchsorted(cut_values, values, side="right").astype(np.uint8)
    if has_missing:
        codes[missing] = BINS
    if single_values:  # a value that the sorted rows did not show may share a bin
        value_of_code = np.array([*single_values, *[np.nan] * (BINS + 1 - len(single_values))])
        alike = (value_of_code[codes] == values) | missing
        single_values = single_values if len(cuts) == len(single_values) - 1 and bool(alike.all()) else ()
    return Coded(feature, codes, tuple(map(_as_value, cuts)), tuple(map(_as_value, single_values)), has_missing)


def _as_value(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        day = value.astype("datetime64[D]")
        return str(day) if day == value else str(value.astype("datetime64[us]"))
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _simplest_cut(below: Any, above: Any, kind: str) -> Any:
    """Return the number with the fewest digits, or the roundest date, above one value and not above another.

    None where there is no number between them.
    """
    if not below < above:
        return None
    if kind == "date":
        rounded = (above.astype(f"datetime64[{unit}]") for unit in _UNITS)
        return next((cut for cut in rounded if below < cut), above)
    low, high = float(below), float(above)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):  # two large whole numbers may be one float
        return None
    middle = 0.5 * low + 0.5 * high
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 18) for value in (middle, high))
    return next(cut for cut in shorter if low < cut <= high)  # the last is the upper one itself


def tells_the_outcome(column: Coded, predictions: Predictions) -> bool:
    """Tell whether a feature knows the outcome far better than the model does, or is the outcome.

    Among those for whom it went wrong, every model looks over-confident.
    """
    if isinstance(predictions, Gaussian):
        values = column.feature.values
        return column.feature.kind == "number" and any(np.array_equal(values, x) for x in predictions.x_true.T)
    if not isinstance(predictions, Bernoulli | Categorical) or predictions.n < _FEWEST_ROWS:
        return False
    happened = np.asarray(predictions.happened).astype(np.intp)
    classes = int(happened.max()) + 1
    if classes > _MOST_CLASSES:
        return False
    counts = np.bincount(column.codes.astype(np.intp) * classes + happened, minlength=CODES * classes)
    mistakes_by_feature = predictions.n - int(counts.reshape(CODES, classes).max(axis=1).sum())
    mistakes_by_commonest = predictions.n - int(np.bincount(happened).max())
    some = np.arange(0, predictions.n, max(predictions.n // _COUNTED, 1))
    confidence = predictions.take(some).score().confidence
    assert confidence is not None
    announced = float((1.0 - confidence).mean()) * predictions.n
    # Where outcomes hardly change, every feature tells them.
    return mistakes_by_commonest > 0 and mistakes_by_feature < _FEWER_MISTAKES * min(announced, mistakes_by_commonest)


class _Atom(NamedTuple):
    """A condition by numbers: of the feature, and of its cut or value."""

    feature: int
    operator: Operator
    k: int


class RankedSlice(NamedTuple):
    """Conditions that hold together, and how well they rank: the larger the better."""

    rank: float
    atoms: tuple[_Atom, ...]


class Search:
    """A search on some of the rows that were coded.

    ``excess`` and ``variance`` are of these rows, with weights; the variance is that if the model is right. A slice
    must have at least ``fewest`` rows, and so must the rows outside of it.
    """

    def __init__(
        self, columns: Sequence[Coded], rows: IndexArray, excess: FloatArray, variance: FloatArray, fewest: int
    ) -> None:
        self._columns = columns
        self._codes = [column.codes[rows] for column in columns]
        # What one temperature for all rows would explain is not what a slice is about.
        common = min(max(float(excess.sum()) / max(float(variance.sum()), 1e-300), 0.0), _COMMON)
        self._beyond = excess - common * variance
        self._variance = variance
        self._fewest = fewest
        self._price = math.log(max(sum(column.atoms for column in columns), 2))
        places = np.arange(BINS)
        cuts, values = (np.array([[len(getattr(c, name))] for c in columns]) for name in ("cuts", "values"))
        self._offered: dict[Operator, BoolArray] = {
            "<": places < cuts,
            ">=": places < cuts,
            "is": places < values,
            "missing": np.array([[column.has_missing] for column in columns]),
        }
        self.interrupted = False

    def best(self, depth: int, progress: Callable[[], None]) -> list[tuple[Condition, ...]]:
        """Return the best slices that overlap little; after Ctrl-C, those of the part that was searched."""
        pool: dict[frozenset[_Atom], RankedSlice] = {}
        beam: list[RankedSlice] = [RankedSlice(0.0, ())]
        try:
            for level in range(depth):
                grown: dict[frozenset[_Atom], RankedSlice] = {}
                for parent in beam:
                    rows = None if not parent.atoms else np.flatnonzero(self._mask(parent.atoms))
                    for ranked in self._grow(parent.atoms, rows):
                        grown[frozenset(ranked.atoms)] = pool[frozenset(ranked.atoms)] = ranked
                    progress()
                for _ in range(level and BEAM - len(beam)):
                    progress()
                beam = sorted(grown.values(), key=_order)[:BEAM]
        except KeyboardInterrupt:
            self.interrupted = True
        return [
            tuple(self._columns[atom.feature].condition(atom.operator, atom.k) for atom in sorted(ranked.atoms))
            for ranked in self._with_little_overlap(pool)
        ]

    def _grow(self, atoms: tuple[_Atom, ...], rows: IndexArray | None) -> Iterator[RankedSlice]:
        """Yield the best slices with one more condition."""
        sums = self._sums(rows)
        below = np.cumsum(sums[:, :, :BINS], axis=2)
        parts: dict[Operator, FloatArray] = {
            "<": below,
            ">=": below[:, :, -1:] - below,
            "is": sums[:, :, :BINS],
            "missing": sums[:, :, BINS : BINS + 1],
        }
        for operator, part in parts.items():
            rank = self._rank(part, len(atoms) + 1)
            rank[~self._offered[operator] | self._already_used(atoms, operator)] = -math.inf
            best = np.argsort(-rank, axis=1)[:, : _EQUAL if operator == "is" else 1]
            ranks = np.take_along_axis(rank, best, axis=1)
            for j, place in np.argwhere(ranks > -math.inf).tolist():
                yield RankedSlice(float(ranks[j, place]), (*atoms, _Atom(j, operator, int(best[j, place]))))

    def _sums(self, rows: IndexArray | None) -> FloatArray:
        """Sum what lies beyond, its variance and the rows, by feature and code: an array of shape (3, features, codes).

        Features are taken a few at a time, so that small data take one pass.
        """
        beyond, variance = self._beyond, self._variance
        if rows is not None:
            beyond, variance = beyond[rows], variance[rows]
        features_at_once = max(_CODES_AT_ONCE // max(len(beyond), 1), 1)
        sums_of_blocks = []
        for first in range(0, len(self._codes), features_at_once):
            columns = self._codes[first : first + features_at_once]
            codes = np.empty((len(columns), len(beyond)), dtype=np.intp)
            for k, column in enumerate(columns):
                codes[k] = column if rows is None else column[rows]
                codes[k] += k * CODES
            flat, size = codes.reshape(-1), len(columns) * CODES
            e, v = (x if len(columns) == 1 else np.tile(x, len(columns)) for x in (beyond, variance))
            sums = np.stack([np.bincount(flat, e, size), np.bincount(flat, v, size), np.bincount(flat, None, size)])
            sums_of_blocks.append(sums.reshape(3, len(columns), CODES))
        return np.concatenate(sums_of_blocks, axis=1)

    def _already_used(self, atoms: tuple[_Atom, ...], operator: Operator) -> BoolArray:
        """Tell for which features a condition with this operator would add nothing to those there are."""
        taken = np.zeros((len(self._columns), 1), dtype=bool)
        for atom in atoms:
            taken[atom.feature] |= {atom.operator, operator} != {"<", ">="}
        return np.asarray(taken)

    def _rank(self, sums: FloatArray, conditions: int) -> FloatArray:
        beyond, variance, n = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = 0.5 * beyond**2 / variance - conditions * self._price
        enough = (n >= self._fewest) & (n <= len(self._variance) - self._fewest) & (beyond > 0.0) & (variance > 0.0)
        return np.where(enough, gain, -math.inf)

    def _mask(self, atoms: tuple[_Atom, ...]) -> BoolArray:
        mask = np.ones(len(self._variance), dtype=bool)
        for atom in atoms:
            mask &= _MASKS[atom.operator](self._codes[atom.feature], atom.k)
        return mask

    def _with_little_overlap(self, pool: dict[frozenset[_Atom], RankedSlice]) -> list[RankedSlice]:
        """Return the best, then the best of the rows that are left, and so on; none shares half of its rows.

        A slice that is bad only for the rows that it shares with a better one is its shadow, and not taken.
        """
        chosen: list[RankedSlice] = []
        free = np.ones(len(self._variance), dtype=bool)
        remaining = [(ranked, self._mask(ranked.atoms)) for ranked in sorted(pool.values(), key=_order)[:_LOOKED_AT]]
        while remaining and len(chosen) < KEPT:
            best, mask = remaining[0]
            chosen.append(best)
            free &= ~mask
            ranked_again = []
            for other, rows in remaining[1:]:
                outside = rows & free
                n = np.count_nonzero(outside)
                if 2 * n > np.count_nonzero(rows) and 2 * np.count_nonzero(mask & rows) < np.count_nonzero(mask):
                    sums = np.array([[outside @ self._beyond], [outside @ self._variance], [n]])
                    ranked_again.append((RankedSlice(float(self._rank(sums, len(other.atoms))[0]), other.atoms), rows))
            remaining = sorted(
                (pair for pair in ranked_again if pair[0].rank > -math.inf), key=lambda pair: _order(pair[0])
            )
        return chosen


def _order(ranked: RankedSlice) -> tuple[float, tuple[_Atom, ...]]:
    return -ranked.rank, ranked.atoms


_MASKS: dict[Operator, Callable[[AnyArray, int], BoolArray]] = {
    "<": lambda codes, k: np.asarray(codes <= k),
    ">=": lambda codes, k: np.asarray((codes > k) & (codes < BINS)),
    "is": lambda codes, k: np.asarray(codes == k),
    "missing": lambda codes, k: np.asarray(codes == BINS),
}
