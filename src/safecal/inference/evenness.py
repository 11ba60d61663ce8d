"""Whether calibration is the same in all groups.

Where groups are small, none shows anything by itself; but if they differ, their sums lie farther apart than chance puts
them. Along the predictions the same is asked by `ranges.Evenness`.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from .._sums.summary import COLUMN
from .._sums.tally import Tally
from .._types import BoolArray, FloatArray
from .ranges import NULL

__all__ = ["GroupEvenness"]


class GroupEvenness(NamedTuple):
    """Whether calibration is the same in all groups.

    ``p_value`` is that of groups that differ by chance alone; ``scores`` tell how many standard errors the ECD of each
    group lies above 0, without regard to the others.
    """

    p_value: float
    scores: FloatArray

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, tally: Tally) -> "GroupEvenness | None":
        """Compare the groups of a tally; None where there are none, or clusters are not told apart."""
        groups, pairs = tally.groups, tally.pairs
        if groups is None or (tally.clusters is not None and pairs is None):
            return None
        excess, squares, *parts = (
            groups.sums[:, COLUMN[name]] for name in ("sum_excess", "sum_excess2_weight2", *NULL)
        )
        variance = np.sum(parts, axis=0)
        total = float(variance.sum())
        if not 0.0 < total < math.inf:
            return None
        common = float(excess.sum()) / total  # what one temperature for all of them explains
        if pairs is None:
            by_chance = variance * max(float(squares.sum()) / total, 1.0)
        else:
            places = {key: k for k, key in enumerate(groups.keys)}
            place = np.array([places[key] for key in pairs.keys], dtype=np.intp)[pairs.key]
            rest = pairs.column("excess") - common * pairs.column("variance")
            by_chance = np.bincount(place, weights=rest * rest, minlength=len(excess))
        beyond = (excess - common * variance) ** 2 - by_chance  # 0 on average, where groups are alike
        spread = math.sqrt(float(beyond @ beyond))
        if not spread > 0.0:  # each group is one cluster: nothing tells groups and clusters apart
            return None
        statistic = float(beyond.sum()) / spread
        return cls(float(special.ndtr(-statistic)), excess / np.sqrt(np.maximum(variance, by_chance)))

    def standing_out(self, beyond: BoolArray, level: float) -> BoolArray:
        """Return which groups beyond their limit stand out, each by itself: at least the one that most does."""
        scores = np.where(beyond, self.scores, -math.inf)
        return np.asarray(scores >= min(float(special.ndtri(level)), float(scores.max())))
