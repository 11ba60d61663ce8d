"""Per-row columns of a block of predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np

from .._steady import steadied
from .._types import AnyArray, BoolArray, FloatArray

__all__ = ["Scored"]


@final
@steadied
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Per-row columns of a block of predictions, in nats.

    Large ``excess`` means the outcome was a surprise the prediction did not announce; negative ``excess`` means it was
    less surprising than announced. A column is None where it does not exist for the family.

    Attributes
    ----------
    excess : ndarray of shape (n,)
        Surprisal minus entropy; ``+inf`` where the outcome was impossible.
    varentropy : ndarray of shape (n,)
        Variance of the surprisal if the prediction is right.
    third_cumulant : ndarray of shape (n,)
        Third cumulant of the surprisal if the prediction is right.
    surprisal, entropy : ndarray of shape (n,) or None
        ``-log p(outcome)`` and its expectation; None for an unnormalised density.
    predicted, observed : ndarray of shape (n,) or None
        What reliability compares: probability and occurrence of the positive class for two classes, of the most likely
        class for more; None for states and densities.
    confidence, correct : ndarray of shape (n,) or None
        Probability of the most likely class, and whether it happened.
    brier : ndarray of shape (n,) or None
        Squared distance between probabilities and outcome.
    numerical_variance : ndarray of shape (n,) or None
        Variance of ``excess`` that comes from numerical draws; None where nothing was drawn.

    Examples
    --------
    >>> import safecal
    >>> scored = safecal.bernoulli([1, 0], [0.9, 0.9]).score()
    >>> scored.excess.round(3).tolist()
    [-0.22, 1.978]
    """

    excess: FloatArray
    varentropy: FloatArray
    third_cumulant: FloatArray
    surprisal: FloatArray | None = None
    entropy: FloatArray | None = None
    predicted: FloatArray | None = None
    observed: AnyArray | None = None
    confidence: FloatArray | None = None
    correct: AnyArray | None = None
    brier: FloatArray | None = None
    numerical_variance: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.excess)

    def __repr__(self) -> str:
        present = ", ".join(f.name for f in fields(self) if getattr(self, f.name) is not None)
        return f"Scored({len(self)} rows: {present})"

    @property
    def impossible(self) -> BoolArray:
        """True where an outcome of probability zero happened."""
        return np.isposinf(self.excess)

    @classmethod
    def concatenate(cls, blocks: Sequence[Self]) -> Self:
        """Put blocks of one family below each other."""
        columns = {f.name: [getattr(block, f.name) for block in blocks] for f in fields(cls)}
        joined: dict[str, Any] = {k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()}
        return cls(**joined)


def possible_weight(scored: Scored, weight: FloatArray | None) -> FloatArray | None:
    """Return the weights, 0 for impossible rows; None where all are 1."""
    impossible = scored.impossible
    if not impossible.any():
        return weight
    return np.where(impossible, 0.0, 1.0 if weight is None else weight)
