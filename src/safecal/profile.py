"""Sums of the log-partition function on a grid of inverse temperatures. They merge with ``+``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np

from . import documents
from ._types import FloatArray
from .errors import MergeError

__all__ = ["BETAS", "Profile"]

# Four to the octave, from a sixteenth to sixteen. A fixed grid is what lets profiles merge.
BETAS: tuple[float, ...] = tuple(2.0 ** (k / 4) for k in range(-16, 17))


@final
@dataclass(frozen=True, slots=True)
class Profile:
    """How the likelihood changes when a model is made less or more confident, as mergeable sums.

    With the tempered model ``p_beta`` proportional to ``p**beta`` and ``A(beta) = log sum p**beta``, the mean
    log-likelihood at ``beta`` is ``-beta * NLL - mean A(beta)``. Its maximum is the inverse of the temperature the data
    ask for: below 1, the model is over-confident.

    Attributes
    ----------
    n : int
        Rows; `n_impossible` of them, whose outcome had probability zero, are in none of the sums.
    n_impossible : int
        Rows whose outcome had probability zero.
    weight : float
        Sum of the weights of the possible rows.
    sum_surprisal : float
        Sum of the surprisals, in nats.
    betas : tuple of float
        The grid.
    sum_log_partition, sum_slope : tuple of float
        Sums of ``A`` and of its derivative at each point of the grid.

    Examples
    --------
    >>> import safecal
    >>> profile = safecal.bernoulli([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.1]).profile()
    >>> best = profile.betas[int(profile.log_likelihood.argmax())]
    >>> round(1 / best, 2)  # times too large are its logits
    2.83
    """

    n: int = 0
    n_impossible: int = 0
    weight: float = 0.0
    sum_surprisal: float = 0.0
    betas: tuple[float, ...] = BETAS
    sum_log_partition: tuple[float, ...] = (0.0,) * len(BETAS)
    sum_slope: tuple[float, ...] = (0.0,) * len(BETAS)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Profile):
            return NotImplemented
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if self.betas != other.betas:
            raise MergeError("profiles must stand on the same grid of beta; these two do not.")
        return type(self)(
            self.n + other.n,
            self.n_impossible + other.n_impossible,
            self.weight + other.weight,
            self.sum_surprisal + other.sum_surprisal,
            self.betas,
            tuple(a + b for a, b in zip(self.sum_log_partition, other.sum_log_partition, strict=True)),
            tuple(a + b for a, b in zip(self.sum_slope, other.sum_slope, strict=True)),
        )

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented

    @property
    def log_likelihood(self) -> FloatArray:
        """Summed log-likelihood of the tempered model at each beta; larger is better."""
        return np.asarray(-self.sum_surprisal * np.array(self.betas) - np.array(self.sum_log_partition))

    @property
    def tempered_excess(self) -> FloatArray:
        """``mean(E_{p_beta} log p - log p(outcome))`` at each beta: increasing, with the sign of the tempered ECD."""
        if self.weight == 0.0:
            return np.full(len(self.betas), np.nan)
        return np.asarray((np.array(self.sum_slope) + self.sum_surprisal) / self.weight)

    def __repr__(self) -> str:
        return f"Profile(n={self.n}, {len(self.betas)} betas from {self.betas[0]:.4g} to {self.betas[-1]:.4g})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the sums."""
        names = ("n", "n_impossible", "weight", "sum_surprisal")
        grids = ("betas", "sum_log_partition", "sum_slope")
        content: dict[str, Any] = {name: getattr(self, name) for name in names}
        return documents.document("profile", content | {name: list(getattr(self, name)) for name in grids})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("profile", document, (f.name for f in fields(cls)))
        return cls(
            content["n"],
            content["n_impossible"],
            content["weight"],
            content["sum_surprisal"],
            tuple(content["betas"]),
            tuple(content["sum_log_partition"]),
            tuple(content["sum_slope"]),
        )
