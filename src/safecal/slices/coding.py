"""Features as a few codes each: quantile bins of numbers and dates, the most frequent categories, and missing values.

Outcomes play no part in it, so conditions found on any rows are fixed before the other rows are looked at.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray
from .conditions import Condition, Operator
from .features import Feature, Unreadable

__all__ = ["CODES", "Coded", "coded"]

BINS = 32  # values that are told apart, at most
QUANTILES = 16  # bins of numbers and dates that have more; finer ones find more that is chance
EDGES = (0.024, 0.04, 0.96, 0.976)  # cuts near the ends: a little more than 2 %, the smallest share by default
CODES = BINS + 2  # bins or categories, one code for missing values, one for categories that are rare
_OTHER = BINS + 1
_SORTED = 100_000  # rows whose quantiles are taken
_UNITS = ("Y", "M", "D", "h", "m", "s", "ms", "us")


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


def coded(feature: Feature, least: int) -> Coded:
    """Code a feature; `Unreadable` where it can part no ``least`` rows from the others."""
    values = feature.values
    coded_already = feature.kind in ("truth", "category")
    found = _categories(feature, values, least) if coded_already else _ordered(feature, values)
    if not found.atoms:
        raise Unreadable("its values are all alike")
    return found


def _categories(feature: Feature, codes: AnyArray, least: int) -> Coded:
    counts = np.bincount(codes[codes >= 0], minlength=len(feature.categories))
    common = np.argsort(-counts, kind="stable")[:BINS]
    common = common[counts[common] >= max(least, 1)]
    missing = codes < 0
    if len(common) == 0 and int(missing.sum()) < least:
        raise Unreadable(f"none of its {np.count_nonzero(counts)} values is frequent enough")
    if len(common) == 1 and counts[common[0]] == len(codes):
        raise Unreadable("its values are all alike")
    short = np.full(len(feature.categories) + 1, _OTHER, dtype=np.uint8)
    short[common] = np.arange(len(common))
    short[-1] = BINS  # where a code is -1
    return Coded(
        feature, short[codes], (), tuple(feature.categories[k] for k in common.tolist()), bool(missing.any())
    )  # fmt: skip


def _ordered(feature: Feature, values: AnyArray) -> Coded:
    missing = feature.missing()
    some = bool(missing.any())
    known = values[~missing] if some else values
    if not len(known):
        raise Unreadable("all its values are missing")
    step = -(-len(known) // _SORTED)
    ordered = np.sort(known[::step])
    distinct = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    single: tuple[Any, ...] = ()
    if len(distinct) <= BINS:
        cuts = [_simplest(a, b, feature.kind) for a, b in pairwise(distinct)]
        single = tuple(distinct.tolist()) if feature.kind == "number" and len(distinct) > 1 else ()
    else:
        shares = [(k / QUANTILES, 4 * QUANTILES) for k in range(1, QUANTILES)] + [(edge, 300) for edge in EDGES]
        places = [(int(share * len(ordered)), len(ordered) // near) for share, near in shares]
        cuts = [_simplest(ordered[max(k - reach - 1, 0)], ordered[k + reach], feature.kind) for k, reach in places]
    cuts = sorted({cut for cut in cuts if cut is not None})
    inner = np.array(cuts, dtype="datetime64[us]" if feature.kind == "date" else values.dtype if cuts == [] else None)
    codes = np.searchsorted(inner, values, side="right").astype(np.uint8)
    if some:
        codes[missing] = BINS
    if single:  # a value that the sorted rows did not show may share a bin
        ends_of = np.array([*single, *[np.nan] * (BINS + 1 - len(single))])
        alike = (ends_of[codes] == values) | missing
        single = single if len(cuts) == len(single) - 1 and bool(alike.all()) else ()
    return Coded(feature, codes, tuple(map(_as_value, cuts)), tuple(map(_as_value, single)), some)


def _as_value(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        day = value.astype("datetime64[D]")
        return str(day) if day == value else str(value.astype("datetime64[us]"))
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _simplest(below: Any, above: Any, kind: str) -> Any:
    """Return the number with the fewest digits, or the roundest date, above one value and not above another.

    None where there is no number between them.
    """
    if not below < above:
        return None
    if kind == "date":
        rounded = (above.astype(f"datetime64[{unit}]") for unit in _UNITS)
        return next((cut for cut in rounded if below < cut), above)
    low, high = float(below), float(above)
    if not (np.isfinite(low) and np.isfinite(high)):
        return None
    middle = 0.5 * low + 0.5 * high
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 18) for value in (middle, high))
    return next(cut for cut in shorter if low < cut <= high)  # the last is the upper one itself
