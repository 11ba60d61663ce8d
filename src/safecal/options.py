"""What the doors take by name: written once, so that an editor knows it at each of them."""

from typing import Any, Literal, TypedDict

import numpy as np

from ._sums.bins import Bins
from ._types import ArrayLike, BinOn, Rule, Strategy

__all__ = ["EvaluateOptions", "LimitOptions"]


class LimitOptions(TypedDict, total=False):
    """The limits, as keyword arguments of every door."""

    threshold: float
    max_temperature: float
    max_ratio: float
    local_threshold: float
    min_share: float
    level: float
    rule: Rule


class EvaluateOptions(LimitOptions, total=False):
    """All that an evaluation takes beside its predictions."""

    bins: int | Bins | Literal["auto"] | None
    bin_on: BinOn | None
    strategy: Strategy
    by: ArrayLike | None
    cluster: ArrayLike | None
    sample_weight: ArrayLike | None
    features: Any
    rng: np.random.Generator | int | None
