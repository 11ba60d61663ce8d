"""What the doors take by name, written once, so that an editor knows it at each of them; and what a verdict allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypedDict, final, get_args

import numpy as np
from scipy import special

from . import documents
from ._checks.columns import choice, fraction, positive
from ._sums.splits import Bins
from ._types import ArrayLike, BinOn, By, FloatArray, Rule, Strategy

__all__ = ["RULES", "EvaluateOptions", "LimitOptions", "Limits", "allowed_ratio"]

_COSTLY = 0.25  # of what is allowed in nats in a range: less does not matter, however large its logits are


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
    by: By | None
    cluster: ArrayLike | None
    sample_weight: ArrayLike | None
    features: Any
    rng: np.random.Generator | int | None
    progress: Callable[[float], None] | None


RULES = get_args(Rule)


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a verdict, and the level of its intervals; checked when they are set.

    A dimension is two nats of varentropy, at least one: for Gaussian states their dimension, for two classes 1.

    Attributes
    ----------
    threshold : float, default 0.1
        Largest ECD that is safe on average and in a group, in nats a dimension.
    max_temperature : float, default 1.5
        Largest temperature that is safe.
    max_ratio : float, default 3.0
        Largest ratio of mistakes made to mistakes announced that is safe; of classifiers.
    local_threshold : float, default 0.2
        Largest ECD that is safe in a range of the predictions, in nats a dimension.
    min_share : float, default 0.05
        Smallest share of the rows that a range holds. The surest rows may be fewer: a hundredth of it, and 20 rows.
    level : float, default 0.95
        Level of the confidence intervals.
    rule : {"everywhere", "average"}, default "everywhere"
        ``"average"`` looks at the ECD and the temperature of all rows together, and nowhere else.

    Examples
    --------
    >>> from safecal import Limits
    >>> Limits(threshold=0.05).threshold
    0.05
    """

    threshold: float = 0.1
    max_temperature: float = 1.5
    max_ratio: float = 3.0
    local_threshold: float = 0.2
    min_share: float = 0.05
    level: float = 0.95
    rule: Rule = "everywhere"

    def __post_init__(self) -> None:
        for name in ("threshold", "max_temperature", "max_ratio", "local_threshold"):
            positive(getattr(self, name), name)
        fraction(self.min_share, "min_share")
        fraction(self.level, "level")
        choice(self.rule, "rule", RULES)
        for name in self.__slots__[:-1]:
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def everywhere(self) -> bool:
        """Whether the verdict looks at places, too."""
        return self.rule == "everywhere"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: documents.number(getattr(self, name)) for name in self.__slots__[:-1]}
        return documents.document("limits", {**numbers, "rule": self.rule})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        limit = documents.between(0.0, inside=True, infinite=True)
        fields = dict.fromkeys(("threshold", "max_temperature", "max_ratio", "local_threshold"), limit)
        fields |= dict.fromkeys(("min_share", "level"), documents.LEVEL)
        return cls(**documents.read("limits", document, {**fields, "rule": documents.choice(*RULES)}))


def allowed_ratio(wrong: FloatArray, limits: Limits) -> FloatArray:
    """Return how many times as many mistakes as announced a range may have, by the share that it announces.

    It is the square of what the average may have. Near even odds that is more than all rows: there it is as many as
    logits make that are too large by the square of what the average may be, if they cost enough nats to matter.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log1p(-wrong) - np.log(wrong)
        too_large = special.expit(-odds / limits.max_temperature**2)
        costly = wrong + _COSTLY * limits.local_threshold / odds
        near_even = np.where(odds > 0.0, np.maximum(too_large, costly) / wrong, np.inf)
    return np.fmin(near_even, limits.max_ratio**2)
