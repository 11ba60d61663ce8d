"""How sums over clusters spread where rows of a cluster may share a shock. One number a key in each array.

A t on the sums of clusters is wrong where clusters are few: while the shock has not come, all of them look alike. So
each side has a variance that no luck makes small.

- ``V`` is the variance of a sum if the rows of its cluster are independent, ``C`` that if they move as one; then
  ``(sum C)**2 / sum C**2`` is how many equal clusters these are worth, and one less the degrees of freedom.
- The correlation within clusters is read off products of rows, over what they would be if rows moved as one: by the
  model, and by the squares that were seen, whichever makes it larger; plus two standard errors. By the model alone it
  is too small whenever shocks were too few by chance, which is when it matters.
- It is taken for 1 where fewer than `EXPECTED` clusters are expected to show the rarer kind of outcome, if they move as
  one. What was seen does not matter for that: a shock hides well among rows that surprise one by one.
- Too small a sum is rare where surprises are: below, the rarer outcome is a surprise, and the variance is never less
  than the sum of squares around the mean that is tested. Above, it is that nothing surprises.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy import special

from .._types import FloatArray, IndexArray

__all__ = ["ALIKE", "Rarity", "Sums", "rarest_half"]

EXPECTED = 5.0
ENOUGH = 1.5  # equal clusters, below which nothing is said


class Rarity(NamedTuple):
    """How probable a surprise is, and that nothing surprises, where either is rarest: half of all deviations each."""

    surprise: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, deviation: FloatArray) -> Self:
        """Bound them from below by the sums of `RARE`, of shape (keys, 4), and those of the deviations.

        In the half of a distribution where a root is smallest its mean lies above the whole mean less one standard
        deviation; and a mean square is at least a squared mean.
        """
        with np.errstate(all="ignore"):
            mean = sums / np.reshape(deviation, (-1, 1))
            spread = np.sqrt(np.maximum(mean[:, 0::2] - mean[:, 1::2] ** 2, 0.0))
            found = np.maximum(mean[:, 1::2] - spread, 0.0) ** 2
        return cls(*np.nan_to_num(found, nan=1.0).T)


ALIKE = Rarity(np.ones(1), np.ones(1))  # states and densities: each cluster shows what it is


def rarest_half(chance: FloatArray, deviation: FloatArray) -> float:
    """Return the mean chance, weighted by deviations, of the rows with the smallest that hold half of these."""
    order = np.argsort(chance, kind="stable")
    weight = deviation[order]
    reached = np.cumsum(weight)
    half = 0.5 * float(reached[-1]) if len(reached) else 0.0
    if not half > 0.0:
        return 1.0
    weight = np.clip(half - (reached - weight), 0.0, weight)
    return float(weight @ chance[order]) / half


class Sums(NamedTuple):
    """Sums over the clusters of each key, with ``S`` the sum of a cluster, less what is expected of it."""

    clusters: FloatArray  # that can tell something
    total: FloatArray  # of S
    squares: FloatArray  # of S**2
    own: FloatArray  # of V
    shared: FloatArray  # of C - V
    effective: FloatArray  # equal clusters that these are worth
    correlation: FloatArray  # of shape (2, keys): by the model's squares, and by those seen
    error: FloatArray  # their standard errors

    @classmethod
    def of(
        cls, sums: FloatArray, variance: FloatArray, deviation: FloatArray, square: FloatArray,
        key: IndexArray | None = None, size: int = 1,
    ) -> Self:  # fmt: skip
        """Add up clusters: their sums S and V, of deviations (the roots of C), and of squared excess."""

        def by_key(column: FloatArray) -> FloatArray:
            if key is None:
                return np.asarray(column.sum(keepdims=True))
            return np.asarray(np.bincount(key, weights=column, minlength=size), dtype=np.float64)

        def of_key(column: FloatArray) -> FloatArray:
            return column if key is None else column[key]

        with np.errstate(all="ignore"):
            count = by_key(((deviation > 0.0) | (sums != 0.0)).astype(np.float64))
            share = deviation / of_key(by_key(deviation))  # so that no fourth power leaves the range of floats
            effective = by_key(share**2) ** 2 / by_key(share**4)
            effective = np.where(np.isfinite(effective), effective, count)
            shared = np.maximum(deviation**2 - variance, 0.0)
            seen = np.where(variance > 0.0, shared / variance * square, 0.0)
            products = sums**2 - square
            found = []
            for whole in (shared, seen):
                together = by_key(whole)
                correlation = np.where(together > 0.0, by_key(products) / together, 0.0)
                rest = by_key((products - of_key(correlation) * whole) ** 2)
                error = np.where(together > 0.0, np.sqrt(rest * count / (count - 1.0)) / together, 0.0)
                found.append((correlation, error))
            both, errors = (np.stack(x) for x in zip(*found, strict=True))
        total, squares, own, together = (by_key(x) for x in (sums, sums**2, variance, shared))
        return cls(count, total, squares, own, together, effective, both, errors)

    def times(self, factor: float) -> Self:
        """Return what so many times as many clusters of this kind would give."""
        many = {name: getattr(self, name) * factor for name in self._fields[:6]}
        return self._replace(**many, error=self.error / np.sqrt(factor))

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom; NaN where clusters are too few to tell anything."""
        return np.where((self.effective >= ENOUGH) & (self.clusters >= 2.0), self.effective - 1.0, np.nan)

    def above(self, rarity: Rarity) -> FloatArray:
        """Return the variance that the sum has at least, for tails above."""
        return np.fmax(self.seen(), self.floor(rarity.rest))

    def below(self, rarity: Rarity) -> FloatArray:
        """Return the same for tails below."""
        return np.fmax(np.fmax(self.seen(), self.squares), self.floor(rarity.surprise))

    def seen(self) -> FloatArray:
        """Return the variance that the clusters themselves show."""
        with np.errstate(all="ignore"):
            centred = np.maximum(self.squares - self.total**2 / self.clusters, 0.0)
            return centred * self.clusters / (self.clusters - 1.0)

    def floor(self, chance: FloatArray) -> FloatArray:
        """Return the variance that there must be, where the rarer outcome has so large a chance."""
        with np.errstate(over="ignore", invalid="ignore"):
            likely = self.correlation + 2.0 * self.error
        likely = np.clip(np.where(np.isfinite(likely), likely, 1.0).max(axis=0), 0.0, 1.0)
        return self.own + np.where(self.effective * chance < EXPECTED, 1.0, likely) * self.shared

    def tails(self, rarity: Rarity) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return t, and the probabilities of a sum as large, and of one as small."""
        t = [_ratio(self.total, variance) for variance in (self.above(rarity), self.below(rarity))]
        df = self.freedom
        told = np.isfinite(df)
        df = np.where(told, df, 1.0)
        upper, lower = special.stdtr(df, -t[0]), special.stdtr(df, t[1])
        return np.where(self.total > 0.0, *t), np.where(told, upper, 1.0), np.where(told, lower, 1.0)


def _ratio(total: FloatArray, variance: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.where(total == 0.0, 0.0, total / np.sqrt(variance))
