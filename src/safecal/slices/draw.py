"""Which half a row is in, and which rows are drawn for the search: told by its number alone.

So rows that come in parts need not be held, and have the same answer as those that lie in memory. Rows that lie on
workers have a key instead of a number.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from .._checks.columns import cluster_codes
from .._sums.clusters import Clusters
from .._types import AnyArray, ArrayLike, BoolArray, IndexArray
from ..families.predictions import Predictions
from ..inference.calibration import generator

__all__ = ["DRAWN", "Draw", "Drawn", "Halves", "drawn_rows", "noise", "seeds"]

DRAWN = 1_000_000  # rows that are searched, of both halves


def seeds(rng: np.random.Generator | int | None) -> tuple[int, int]:
    """Return the seeds of the halves and of the draw."""
    coins, lots = generator(rng).integers(0, 1 << 63, 2).tolist()
    return coins, lots


def noise(rows: AnyArray, seed: int) -> AnyArray:
    """Return 64 bits for each row, which differ for all rows (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@final
class Halves:
    """The second half of the rows: of each a coin, or of each cluster, so that both halves have about as many rows.

    Parameters
    ----------
    seed : int
        Of the coins.
    clusters : sequence of hashable, optional
        The clusters of all rows.
    sizes : ndarray, optional
        How many rows each has.
    """

    def __init__(self, seed: int, clusters: Sequence[Hashable] = (), sizes: AnyArray | None = None) -> None:
        self._seed = seed
        self._second: dict[Hashable, bool] = {}
        if sizes is not None:
            order = sorted(range(len(clusters)), key=lambda k: (str(clusters[k]), k))
            rows = [0, 0]
            for place in np.argsort(noise(np.arange(len(clusters)), seed)).tolist():
                k = order[place]
                in_second = rows[1] < rows[0]  # to the half that has fewer rows so far
                self._second[clusters[k]] = in_second
                rows[int(in_second)] += int(sizes[k])

    @classmethod
    def of_sums(cls, seed: int, clusters: Clusters | None) -> Halves:
        """Halve the rows whose sums by cluster are known; None where they are independent."""
        return cls(seed) if clusters is None else cls(seed, clusters.keys or (), clusters.column("n"))

    def of_rows(self, rows: IndexArray, cluster: ArrayLike | None, outcome: str) -> BoolArray:
        """Tell of some rows, by their numbers or their clusters, which are in the second half."""
        if cluster is None:
            return np.asarray(noise(rows, self._seed) >= np.uint64(1 << 63))
        keys, codes = cluster_codes(cluster, len(rows), outcome)
        return np.array([self._second[key] for key in keys], dtype=bool)[codes]


def drawn_rows(n: int, seed: int, limit: int) -> IndexArray:
    """Return the numbers of the rows that are drawn, of all that there are."""
    if n <= limit:
        return np.arange(n)
    lots = noise(np.arange(n), seed)
    return np.flatnonzero(lots < np.partition(lots, limit)[limit])


class Drawn(NamedTuple):
    """Rows that were drawn: their numbers, in order, or their keys, and their columns."""

    rows: IndexArray
    predictions: Predictions
    weight: AnyArray | None
    cluster: AnyArray | None
    features: Mapping[str, Any]

    def take(self, places: IndexArray) -> Drawn:
        """Return some of them."""
        rows, predictions, weight, cluster, features = self
        return Drawn(
            rows[places], predictions.take(places), None if weight is None else weight[places],
            None if cluster is None else cluster[places], {name: x[places] for name, x in features.items()},
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Drawn]) -> Drawn:
        """Put rows of several parts under each other."""
        first = parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            type(first.predictions).concatenate([part.predictions for part in parts]),
            None if first.weight is None else np.concatenate([part.weight for part in parts]),
            None if first.cluster is None else np.concatenate([part.cluster for part in parts]),
            {name: np.concatenate([part.features[name] for part in parts]) for name in first.features},
        )


class _NoisyRows(NamedTuple):
    noise: AnyArray
    drawn: Drawn

    def take(self, places: IndexArray) -> _NoisyRows:
        return _NoisyRows(self.noise[places], self.drawn.take(places))


@final
class Draw:
    """A draw of rows that come in parts, uniform and without replacement.

    Parameters
    ----------
    seed : int
        Of the draw.
    limit : int
        Rows that are drawn; half as many more are held on the way.
    """

    def __init__(self, seed: int, limit: int) -> None:
        self._seed, self._limit = seed, limit
        self._parts: list[_NoisyRows] = []
        self._below: Any = None  # the noise of a row that is kept lies below
        self.n = 0

    def add(
        self, predictions: Predictions, weight: AnyArray | None, cluster: AnyArray | None, features: Mapping[str, Any]
    ) -> None:
        """Draw from some more rows."""
        rows = np.arange(self.n, self.n + predictions.n)
        self.n += predictions.n
        part = _NoisyRows(noise(rows, self._seed), Drawn(rows, predictions, weight, cluster, features))
        if self._below is not None:
            part = part.take(np.flatnonzero(part.noise < self._below))
        self._parts.append(part)
        if sum(len(kept.noise) for kept in self._parts) > self._limit + self._limit // 2:
            self._thin()

    def _thin(self) -> None:
        """Keep as many rows as are wanted."""
        lots = np.concatenate([part.noise for part in self._parts])
        if len(lots) > self._limit:
            self._below = np.partition(lots, self._limit)[self._limit]
            self._parts = [part.take(np.flatnonzero(part.noise < self._below)) for part in self._parts]

    def drawn(self) -> Drawn:
        """Return the rows that were drawn."""
        self._thin()
        return Drawn.joined([part.drawn for part in self._parts if len(part.noise)])
