"""Sums of clusters: rows that depend on each other. They merge with ``+``.

What is summed beside the excess itself: its variance if the rows of a cluster are independent, its standard deviation
if they move as one, its square, which tells how far they do, and how probable surprises are where deviations are large.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from .. import documents
from .._types import BoolArray, FloatArray, IndexArray
from ..errors import MergeError
from .scored import Scored, added, union
from .summary import as_numbers

__all__ = [
    "BASE", "COLUMNS", "NEAR", "RARE", "BetaSums", "Clusters", "Near", "added_by", "base_columns", "near_columns",
    "rare_columns", "sharp_sums",
]  # fmt: skip

NEAR = (0.5, 1.0, 2.0)  # inverse temperatures at which the sums of each cluster are kept

# With w the weight, e the excess, v its variance, d the root of v:
BASE = (
    "n",
    "weight",
    "excess",  # w e
    "weight2",  # w**2
    "excess_weight2",  # w**2 e
    "variance",  # w**2 v
    "deviation",  # w d
    "square",  # w**2 e**2
    "seen",  # w, where the outcome was not the likeliest
    "announced",  # w times the probability of that; NaN, and `seen` too, for states and densities
)

# With q the probability of a surprise, an outcome other than the likeliest; 1, and 1 - q likewise, for states:
RARE = (
    "surprising",  # w d q
    "surprising_root",  # w d sqrt(q)
    "expected",  # w d (1 - q)
    "expected_root",  # w d sqrt(1 - q)
)


class Near(NamedTuple):
    """The surprise of some rows under ``p_beta`` at each beta of `NEAR`, as arrays of shape (3, rows)."""

    mean: FloatArray
    variance: FloatArray
    rate: FloatArray | None = None  # -log p_beta(likeliest outcome), of K classes


@np.errstate(over="ignore")  # squares of far log-odds
def base_columns(scored: Scored, weight: FloatArray | None, possible: FloatArray) -> list[FloatArray]:
    """Return the columns of `BASE`; ``possible`` are the weights with 0 for impossible rows."""
    ones = np.ones(len(scored))
    w = ones if weight is None else weight
    excess, variance = _moments(scored, possible > 0.0)
    we, d = possible * excess, np.sqrt(variance)
    if scored.confidence is None or scored.correct is None:
        mistakes = [np.full(len(scored), np.nan)] * 2
    else:
        mistakes = [w * ~np.asarray(scored.correct, dtype=bool), w * (1.0 - scored.confidence)]
    return [ones, w, we, possible**2, possible * we, possible**2 * variance, possible * d, we * we, *mistakes]


def rare_columns(scored: Scored, possible: FloatArray) -> list[FloatArray]:
    """Return the columns of `RARE`."""
    wd = possible * np.sqrt(_moments(scored, possible > 0.0)[1])
    if scored.confidence is None:
        return [wd] * len(RARE)
    q = np.clip(1.0 - scored.confidence, 0.0, 1.0)
    return [wd * q, wd * np.sqrt(q), wd * (1.0 - q), wd * np.sqrt(1.0 - q)]


@np.errstate(over="ignore")
def near_columns(scored: Scored, near: Near | None, possible: FloatArray) -> list[FloatArray]:
    """Return the surprise expected at 1; at 1/2 and at 2 that, its variance, its deviation, and its squared excess."""
    if near is None:
        return [np.full(len(scored), np.nan)] * 9
    counting = possible > 0.0
    excess, _ = _moments(scored, counting)
    mean = np.where(counting, near.mean, 0.0)
    columns = [possible * mean[1]]
    for k in (0, 2):
        variance = np.where(counting, near.variance[k], 0.0)
        beyond = possible * (excess + mean[1] - mean[k])
        columns += [possible * mean[k], possible**2 * variance, possible * np.sqrt(variance), beyond * beyond]
    return columns


def sharp_sums(near: Near, possible: FloatArray) -> FloatArray:
    """Return the sums of `RARE` at each beta of `NEAR`, of all rows together."""
    assert near.rate is not None
    counting = possible > 0.0
    wd = possible * np.sqrt(np.where(counting, near.variance, 0.0))
    rest = np.exp(-np.where(counting, near.rate, 0.0))
    q = -np.expm1(-np.where(counting, near.rate, 0.0))
    return np.stack([np.vecdot(wd, x) for x in (q, np.sqrt(q), rest, np.sqrt(rest))], axis=1)


def added_by(codes: IndexArray, size: int, columns: list[FloatArray]) -> FloatArray:
    """Sum columns by code, as an array of shape (size, columns) whose columns are contiguous."""
    return np.stack([np.bincount(codes, weights=column, minlength=size) for column in columns], dtype=np.float64).T


def _moments(scored: Scored, counts: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return excess and variance, that of numerical draws included; 0 for rows that do not count."""
    noise = 0.0 if scored.numerical_variance is None else scored.numerical_variance
    return np.where(counts, scored.excess, 0.0), np.where(counts, scored.varentropy + noise, 0.0)


COLUMNS = len(BASE) + 9


class BetaSums(NamedTuple):
    """Sums of clusters at one beta, with ``e`` the surprise less the one expected, and ``v`` its variance."""

    expected: FloatArray  # sum of w times the surprise expected; NaN where the family has none
    variance: FloatArray  # of w**2 v
    deviation: FloatArray  # of w times the root of v
    square: FloatArray  # of w**2 e**2


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clusters:
    """What tests, temperatures and bounds need of clusters.

    Attributes
    ----------
    keys : tuple or None
        The clusters; None when they were read from a document, which does not name them.
    sums : ndarray of shape (clusters, 19)
        Of each the sums of `BASE`; then ``w`` times the surprise expected at beta = 1; then that, its variance, its
        deviation and its squared excess at beta = 1/2, and the same at 2. NaN where the family has none.
    sharp : ndarray of shape (3, 4) or None
        Of all rows of K classes, at beta = 1/2, 1 and 2, the sums of `RARE`. Two classes have them in their spectrum.
    """

    keys: tuple[Hashable, ...] | None
    sums: FloatArray
    sharp: FloatArray | None = None

    def column(self, name: str) -> FloatArray:
        """Return the sums of one name of `BASE`."""
        return self.sums[:, BASE.index(name)]

    def at(self, beta: float) -> BetaSums:
        """Return the sums at one beta of `NEAR`."""
        start = len(BASE)
        if beta == 1.0:
            columns = [self.sums[:, start], *(self.column(name) for name in ("variance", "deviation", "square"))]
        else:
            first = start + (1 if beta == NEAR[0] else 5)
            columns = list(self.sums[:, first : first + 4].T)
        return BetaSums(*map(np.ascontiguousarray, columns))

    def __len__(self) -> int:
        return len(self.sums)

    def __add__(self, other: object) -> Self:
        if not isinstance(other, Clusters):
            return NotImplemented
        if self.keys is None or other.keys is None:
            raise MergeError(
                "clusters must have names to be merged; documents do not hold them.\n\n"
                "Hint: add up the tallies before you write them."
            )
        sharp = None if self.sharp is None or other.sharp is None else self.sharp + other.sharp
        together = union(self.keys, other.keys)
        return type(self)(together[0], added(self.sums, other.sums, together), sharp)

    def __eq__(self, other: object) -> bool:
        """Compare the sums; names may be unknown."""
        if not isinstance(other, Clusters) or (self.sharp is None) != (other.sharp is None):
            return False
        same = self.sharp is None or np.array_equal(self.sharp, np.asarray(other.sharp), equal_nan=True)
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    def __repr__(self) -> str:
        return f"Clusters({len(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the sums, without the names of the clusters, which may name people."""
        sharp = None if self.sharp is None else as_numbers(self.sharp)
        return documents.document("clusters", {"sums": as_numbers(self.sums), "sharp": sharp})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        sums = documents.list_of(documents.list_of(documents.numbers, COLUMNS, COLUMNS), 1)
        sharp = documents.list_of(documents.list_of(documents.numbers, len(RARE), len(RARE)), len(NEAR), len(NEAR))
        fields = documents.read("clusters", document, {"sums": sums, "sharp": documents.optional(sharp)})
        rare = None if fields["sharp"] is None else np.array(fields["sharp"], dtype=np.float64)
        clusters = cls(None, np.array(fields["sums"], dtype=np.float64), rare)
        for name in ("n", "weight", "weight2", "variance", "deviation", "square"):
            if not (clusters.column(name) >= 0.0).all():
                documents.refuse(f"must have sums of `{name}` of at least 0")
        return clusters
