"""How shift and slope vary where rows of a cluster depend on each other, from sums by cluster and range.

A pair of cluster and coarse cell stands for its rows: all have the probability that its mistakes were announced with.
What a shift or a slope owes to a cluster is then a sum over its pairs, and the spread of these sums is that of
`dependence`: never less than what clusters show, nor than what they do by chance if they share surprises.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from .._kernels.spectrum import STARTS
from .._sums.clusters import BASE
from .._sums.tally import Tally
from .._types import AnyArray, FloatArray, IndexArray
from .dependence import Rarity, Sums, rarest_half

__all__ = ["Dependent"]


class Dependent(NamedTuple):
    """Pairs of cluster and coarse cell, as rows of a logistic regression."""

    cluster: IndexArray
    size: int
    z: FloatArray
    seen: FloatArray  # the weight of rows in which the event happened
    weight: FloatArray
    weight2: FloatArray
    positive: AnyArray

    @classmethod
    def of(cls, tally: Tally) -> Self | None:
        """Read the pairs of a tally; None where it has none: documents do not hold them."""
        if tally.cell_pairs is None or tally.clusters is None:
            return None
        pairs = tally.cell_pairs.of_order(None)
        weight, weight2, wrong, announced = (
            pairs.sums[:, BASE.index(name)] for name in ("weight", "weight2", "seen", "announced")
        )
        some = (weight > 0.0) & (announced > 0.0)
        cluster, weight, weight2, wrong = pairs.cluster[some], weight[some], weight2[some], wrong[some]
        positive = pairs.cell[some] >= len(STARTS)
        L = np.log(np.maximum(weight - announced[some], 1e-300)) - np.log(announced[some])
        seen = np.where(positive, weight - wrong, wrong)
        numbers, index = np.unique(cluster, return_inverse=True)
        return cls(index, len(numbers), np.where(positive, L, -L), seen, weight, weight2, positive)

    def error(self, shift: float, slope: float, along: FloatArray) -> tuple[float, float]:
        """Return the standard error of the score in a direction, at a shift and a slope, and its degrees of freedom.

        The degrees are NaN where clusters are too few.
        """
        x = shift + slope * self.z
        q, rest = special.expit(x), special.expit(-x)
        pull = along[0] + along[1] * self.z
        share = np.where(self.weight > 0.0, self.weight2 / self.weight, 0.0)
        found = Sums.of(
            self._sum(pull * (self.seen - self.weight * q)),
            self._sum(pull**2 * self.weight2 * q * rest),
            self._sum(np.abs(pull) * self.weight * np.sqrt(q * rest)),
            self._sum(pull**2 * share * (self.seen * rest**2 + (self.weight - self.seen) * q**2)),
        )
        deviation = np.abs(pull) * self.weight * np.sqrt(q * rest)
        # Either side may hide what has not happened yet: the rarer outcome of the rows that weigh most.
        chance = np.array([rarest_half(np.minimum(q, rest), deviation)])
        variance = float(found.below(Rarity(chance, chance))[0])
        return math.sqrt(max(variance, 0.0)), float(found.freedom[0])

    def _sum(self, column: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.cluster, weights=column, minlength=self.size), dtype=np.float64)
