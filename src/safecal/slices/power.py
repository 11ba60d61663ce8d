"""Power: how small a slice would have been found, had there been one; so that finding none means something."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from .._types import IndexArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from .discovery import KEPT
from .estimation import TESTED, shares_of_error
from .reach import Reach

__all__ = ["reach_of"]

_SHARES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
_TIMES = (2.0, 3.0, 5.0)
_WANTED = 0.9
_ROWS = 4096


def reach_of(
    predictions: Predictions, *, halves: tuple[int, int], searched: int, atoms: int, depth: int, min_share: float,
    level: float, over: bool,
) -> Reach | None:  # fmt: skip
    """Return the smallest slice with logits twice too large that would have been found in 9 of 10 samples.

    Where none would, its logits are three times, or five times, too large. A slice must be found on a half, in spite
    of the best that chance offers there, and shown on the other one: the product of both probabilities, one way alone.
    None where not even that would be found, or the family has no log-partition.
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
            rows = share * min(halves)
            seen = share * searched / 2.0
            noise = math.sqrt(2.0 * depth * math.log(max(atoms, 2)))
            score = mean * math.sqrt(seen / null)
            found = special.ndtr((score - noise) / math.sqrt(variance / null))
            wide = max(variance, null)
            t = -float(special.stdtrit(max(rows - 1.0, 1.0), alpha))
            shown = special.ndtr((mean * math.sqrt(rows) - t * math.sqrt(wide)) / math.sqrt(variance))
            if found * shown >= _WANTED:
                classes = predictions.binned_by_default
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
