"""Classes that happen far more often than announced: a rare one is never the likeliest, so mistakes do not show it."""

import math

from .._sums.tally import Tally
from ..inference.results import Interval
from ..inference.shifts import frequent_classes
from ..options import Limits
from .places import Place

__all__ = ["class_places"]


def class_places(tally: Tally, ecd: Interval, limits: Limits) -> list[Place]:
    """Return classes that happen more often than the square of ``max_ratio`` allows, the worst first.

    Where rows have weights or depend on each other, the bounds are those of other rows: they are suspected.
    """
    s, limit = tally.summary, limits.max_ratio**2
    if s.weight_impossible > 0.0:
        return []
    firm = tally.clusters is None and not tally.weighted
    return [
        Place(
            type="class", name=f"class {name}", shown=firm, by="mistakes", limit=limit, n=tally.n, share=1.0,
            predicted=announced / s.weight, observed=seen / s.weight, ecd=ecd, seen=seen, announced=announced,
            on="probability", low=math.nan, high=math.nan,
        )
        for name, announced, seen, _ in frequent_classes(tally, limit, limits.level)
    ]  # fmt: skip
