"""Tails of the summed surprisal by the saddlepoint approximation.

If the model is calibrated, the weighted sum of the surprisals has the cumulant generating function
``K(t) = sum A(1 - t w)``. The law is tilted by the ``t`` at which its mean is the observed sum.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from .._checks.arrays import block
from .._types import AnyArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from .tails import lugannani_rice

__all__ = ["saddlepoint_tails"]

_STEPS = 60


@final
@dataclass(frozen=True, slots=True)
class _Tilt:
    t: float
    value: float
    mean: float
    variance: float
    third: float


def _tilted(predictions: Predictions, weight: AnyArray | None, t: float) -> _Tilt:
    totals = np.zeros(4)
    for rows in predictions.row_blocks():
        at = predictions._partition(rows)
        if weight is None:
            found = at(1.0 - t)
            totals += [column.sum() for column in found]
        else:
            w = block(weight, rows)
            found = at(1.0 - t * w)
            totals += [(w**order * column).sum() for order, column in enumerate(found)]
    return _Tilt(t, totals[0], -totals[1], totals[2], -totals[3])


def saddlepoint_tails(predictions: Predictions, weight: AnyArray | None, observed: float) -> tuple[float, float] | None:
    """Return both tails at the observed sum of surprisals; None at the edge of the support, where no tilt reaches it.

    Raises UnavailableError for predictions without a log-partition function.
    """
    at = _tilted(predictions, weight, 0.0)
    if at.variance == 0.0:  # every outcome is as surprising as every other: the sum has one value, but for rounding
        return 1.0, 1.0
    low, high = -np.inf, np.inf
    scale = np.sqrt(at.variance)
    for _ in range(_STEPS):
        gap = observed - at.mean
        if abs(gap) <= 1e-9 * np.sqrt(at.variance) + 1e-14 * abs(observed):
            drop = at.t * observed - at.value
            return lugannani_rice(at.t, drop, at.variance, at.third)
        low, high = (at.t, high) if gap > 0 else (low, at.t)
        step = at.t + gap / at.variance if at.variance > 0 else np.sign(gap) * np.inf
        reach = 4.0 * (1.0 + abs(at.t))
        step = min(max(step, at.t - reach), at.t + reach)
        if not low < step < high:
            step = 0.5 * (low + high)
        at, high = _inside(predictions, weight, at, float(step), high)
        if at.variance < 1e-12 * scale**2:
            return None
    return None


def _inside(
    predictions: Predictions, weight: AnyArray | None, at: _Tilt, step: float, high: float
) -> tuple[_Tilt, float]:
    """Tilt by ``step``, or by as much of it as the law allows."""
    for _ in range(_STEPS):
        try:
            return _tilted(predictions, weight, step), high
        except UnavailableError:
            if step <= at.t:  # the whole law has no log-partition function, not just a part of its tail
                raise
            high, step = step, 0.5 * (at.t + step)
    raise UnavailableError("the tail of the summed surprisal has no exponential moments.")
