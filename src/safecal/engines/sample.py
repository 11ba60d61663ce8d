"""Some rows drawn at random from batches, without knowing how many there will be."""

import math
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from .._types import IndexArray
from ..families.rows import some_rows
from .batch import Batch, join_batches

__all__ = ["DRAWN", "Sample"]

DRAWN = 100_000  # rows of which the temperature is estimated: it is then known to a percent


@final
@dataclass(slots=True)
class Sample:
    """Rows that were kept, each with the chance ``rate``, which is halved whenever too many are kept."""

    rng: np.random.Generator
    rate: float = 1.0
    parts: list[Batch] = field(default_factory=list)
    n: int = 0

    def add(self, batch: Batch) -> None:
        """Draw from the rows of a batch."""
        new = self._some(batch, self.rate) if self.rate < 1.0 else replace(batch, by=None, cluster=None)
        self.parts.append(new)
        self.n += new.predictions.n
        while self.n > 2 * DRAWN:
            self.parts = [self._some(join_batches(self.parts), 0.5)]
            self.n = self.parts[0].predictions.n
            self.rate *= 0.5

    def batch(self) -> Batch:
        """Return the rows that are kept."""
        return join_batches(self.parts)

    def _some(self, batch: Batch, rate: float) -> Batch:
        index = self._index(batch.predictions.n, rate)
        weight = None if batch.weight is None else batch.weight[index]
        return Batch(some_rows(batch.predictions, index), weight)

    def _index(self, n: int, rate: float) -> IndexArray:
        """Return the numbers of the rows to keep, by the gaps between them."""
        most = int(n * rate + 10.0 * math.sqrt(n * rate) + 10.0)
        index = np.cumsum(self._gaps(most, rate)) - 1
        while index[-1] < n:  # once in a blue moon
            index = np.concatenate([index, index[-1] + np.cumsum(self._gaps(most, rate))])
        return np.asarray(index[: np.searchsorted(index, n)], dtype=np.intp)

    def _gaps(self, size: int, rate: float) -> IndexArray:
        """Draw from the geometric law, as whole parts of exponential draws: far faster than NumPy's own."""
        waits = self.rng.standard_exponential(size) / -math.log1p(-rate)
        return np.asarray(np.floor(waits), dtype=np.intp) + 1
