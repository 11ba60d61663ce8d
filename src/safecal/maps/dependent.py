"""Tests of one inverse temperature after the other, where rows come in clusters: from the rows, at any beta."""

from typing import NamedTuple

import numpy as np

from .._types import FloatArray, IndexArray
from ..families.family import partition_surprisal
from ..inference.dependence import ALIKE, Rarity, Sums, rarest_half
from ..inference.law import normal_score
from .tempered import Tempered

__all__ = ["Dependent"]


class _Block(NamedTuple):
    """What a block of rows gives at one beta."""

    sums: FloatArray  # by cluster: of surprises less those expected, variance, deviation and square
    chance: FloatArray | None  # of a surprise, a row
    deviation: FloatArray


class Dependent(NamedTuple):
    """Rows and the number of the cluster of each."""

    rows: Tempered
    codes: IndexArray
    size: int

    def scores(self, betas: tuple[float, ...], wanted: float) -> list[float]:
        """Return by how much each beta is ruled out as too small, in normal scores beyond the one that is wanted."""
        found = []
        for sums, rarity in self.at(*betas):
            _, _, lower = sums.tails(rarity)
            found.append(normal_score(float(lower[0])) - wanted)
        return found

    def at(self, *betas: float) -> list[tuple[Sums, Rarity]]:
        """Return how sums of clusters spread at each beta, and how rare surprises are."""
        blocks: list[list[_Block]] = [[] for _ in betas]
        for part in self.rows.predictions.row_blocks():
            for beta, new in zip(blocks, self._block(part, betas), strict=True):
                beta.append(new)
        return [self._together(parts) for parts in blocks]

    def _block(self, part: slice, betas: tuple[float, ...]) -> list[_Block]:
        rows = self.rows
        partition = rows.predictions._partition(part)
        scored, _ = rows.predictions.weighted(part, None)
        s = np.where(rows.possible[part], partition_surprisal(scored), 0.0)
        w = rows.row_weights(part) / self._unit
        found = []
        for beta in betas:
            a = partition(beta)
            g, deviation = w * (s + a.mean), w * np.sqrt(a.variance)
            columns = (g, w * w * a.variance, deviation, g * g)
            sums = [np.bincount(self.codes[part], weights=c, minlength=self.size) for c in columns]
            chance = None
            if scored.confidence is not None:
                chance = -np.expm1(np.minimum(beta * np.log(scored.confidence) - a.value, 0.0))
            found.append(_Block(np.stack(sums), chance, deviation))
        return found

    @property
    def _unit(self) -> float:
        return 1.0 if self.rows.weight is None else float(self.rows.weight.max())

    @staticmethod
    def _together(parts: list[_Block]) -> tuple[Sums, Rarity]:
        total = parts[0].sums.copy()
        for part in parts[1:]:
            total += part.sums
        sums = Sums.of(*total)
        chances = [part.chance for part in parts if part.chance is not None]
        if not chances:
            return sums, ALIKE
        chance, deviation = np.concatenate(chances), np.concatenate([part.deviation for part in parts])
        both = rarest_half(chance, deviation), rarest_half(1.0 - chance, deviation)
        return sums, Rarity(*(np.array([x]) for x in both))
