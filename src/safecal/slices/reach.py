"""Reach: how small a slice would have been found, had there been one; so that finding none means something."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import IndexArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from .discovery import KEPT
from .estimation import TESTED, shares_of_error

__all__ = ["Reach", "reach_of"]

_SHARES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
_TIMES = (2.0, 3.0, 5.0)
_WANTED = 0.9
_ROWS = 4096


@final
@dataclass(frozen=True, slots=True)
class Reach:
    """A slice that would have been found.

    Attributes
    ----------
    share : float
        Its share of the rows.
    temperature : float
        How many times its logits, or its variances, are too large; below 1 for under-confidence.
    chance : float
        In what share of such samples it would have been found, at least.
    classes : bool
        Whether predictions are of classes.

    Examples
    --------
    >>> from safecal.slices.reach import Reach
    >>> print(Reach(0.05, 2.0, 0.93, True))
    a slice of 5 % of the rows with logits 2 times too large would have been found in at least 9 of 10 such samples
    """

    share: float
    temperature: float
    chance: float
    classes: bool

    def __str__(self) -> str:
        times = self.temperature
        if times > 1.0:
            wrong = f"logits {times:g} times too large" if self.classes else f"a temperature of {times:g}"
        else:
            wrong = f"logits {1.0 / times:g} times too small" if self.classes else f"a temperature of {times:.2g}"
        of_ten = min(math.floor(10.0 * self.chance), 9)
        found = f"would have been found in at least {of_ten} of 10 such samples"
        return f"a slice of {100.0 * self.share:g} % of the rows with {wrong} {found}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {name: getattr(self, name) for name in ("share", "temperature", "chance", "classes")}
        return documents.document("reach", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        return cls(**documents.read("reach", document, _FIELDS))


_FIELDS: dict[str, Any] = {
    "share": documents.between(0.0, 1.0),
    "temperature": documents.between(0.0, inside=True),
    "chance": documents.between(0.0, 1.0),
    "classes": documents.flag,
}


def reach_of(
    predictions: Predictions, *, rows: float, searched: float, atoms: int, depth: int, min_share: float, level: float,
    over: bool,
) -> Reach | None:  # fmt: skip
    """Return the smallest slice with logits twice too large that would have been found in 9 of 10 samples.

    Where none would, its logits are three times, or five times, too large. A slice must be found on a half, in spite
    of the best that chance offers there, and shown on the other one: the product of both probabilities, one way alone.
    None where not even that would be found, or the family has no log-partition. ``predictions`` are rows that were
    searched, ``rows`` and ``searched`` how many one half has, and how many of it were searched.
    """
    index = np.linspace(0, predictions.n - 1, min(predictions.n, _ROWS)).astype(np.intp)
    alpha = TESTED * (1.0 - level) * shares_of_error(KEPT, 0)[0]
    for times in _TIMES:
        moments = _moments(predictions, index, 1.0 / times if over else times)
        if moments is None:
            return None
        mean, variance, null = moments
        for share in _SHARES:
            if share < min_share:
                continue
            tested = share * rows
            seen = share * searched
            noise = math.sqrt(2.0 * depth * math.log(max(atoms, 2)))
            score = mean * math.sqrt(seen / null)
            found = special.ndtr((score - noise) / math.sqrt(variance / null))
            wide = max(variance, null)
            t = -float(special.stdtrit(max(tested - 1.0, 1.0), alpha))
            shown = special.ndtr((mean * math.sqrt(tested) - t * math.sqrt(wide)) / math.sqrt(variance))
            if found * shown >= _WANTED:
                classes = predictions.discrete
                return Reach(share, times if over else 1.0 / times, float(found * shown), classes)
    return None


def _moments(predictions: Predictions, index: IndexArray, beta: float) -> tuple[float, float, float] | None:
    """Return size and variance of the mean excess a row if ``p_beta`` is true, and its variance if the model is."""
    try:
        rows = predictions.take(index)
        surprise, own = (-rows.log_partition(b, deriv=1) for b in (beta, 1.0))
        variance, null = (rows.log_partition(b, deriv=2) for b in (beta, 1.0))
    except UnavailableError:
        return None
    excess = surprise - own
    mean, spread = abs(float(np.mean(excess))), float(np.mean(variance) + np.var(excess))
    plain = float(np.mean(null))
    return (mean, spread, plain) if mean > 0.0 and plain > 0.0 and spread > 0.0 else None
