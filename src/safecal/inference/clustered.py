"""The law of rows that come in clusters: sums of clusters are compared with their own spread."""

import math
from typing import final

import numpy as np

from .._sums.clusters import NEAR, Clusters
from .._types import FloatArray
from .law import Law, Tails, Tilt
from .tails import cluster_tails

__all__ = ["ClusteredLaw"]


@final
class ClusteredLaw(Law):
    """A law of which only the sums at each beta are used; the spread is that of clusters.

    The surprise expected of a cluster is known at beta = 1/2, 1 and 2. Between them it follows a parabola in log beta,
    beyond them the surprise expected of all rows; the sum over clusters is exact everywhere.
    """

    def __init__(self, law: Law, clusters: Clusters) -> None:
        self._law = law
        columns = clusters.columns
        self._seen = (columns.excess + columns.expected[1]) / law.unit
        self._expected = columns.expected / law.unit
        super().__init__(law.seen, law.mass, law.one, law.unit)

    @property
    def method(self) -> str:
        return "cluster t"

    @property
    def range(self) -> tuple[float, float]:
        return self._law.range

    def at(self, beta: float) -> Tilt:
        return self._law.at(beta)

    def tails(self, beta: float) -> Tails:
        at = self.at(beta)
        mean = self._means(beta, at.mean)
        _, lower, upper = cluster_tails(self._seen - mean, at.variance)
        return Tails(upper, lower)

    def _means(self, beta: float, total: float) -> FloatArray:
        """Return the surprise expected of each cluster; together they give the total."""
        half, one, two = self._expected
        x = math.log2(beta)
        if NEAR[0] < beta < NEAR[-1]:
            mean = one + 0.5 * (two - half) * x + 0.5 * (two - 2.0 * one + half) * x * x
        else:
            mean = half if beta <= NEAR[0] else two
        everything = float(mean.sum())
        return mean * (total / everything) if everything > 0.0 else np.full(len(mean), total / len(mean))
