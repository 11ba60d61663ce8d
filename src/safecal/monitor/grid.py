"""The e-values of rows, on a grid of inverse temperatures, and for two classes on a grid of shifts in log-odds.

If a model is calibrated, ``p(y)**(beta - 1) / exp A(beta)`` has the mean 1 for every prediction made before its
outcome. So its logarithm, ``(1 - beta) * surprisal - A(beta)``, adds up to evidence that may be looked at after every
row. Where ``beta < 1`` it grows when the model is over-confident, where ``beta > 1`` when it is under-confident.

For two classes, so has the likelihood of the same log-odds plus ``c`` over that of the model. Its logarithm is
``c y - log(1 - p + p exp(c))``. It grows when the event happens more often than the model says (``c > 0``), or less
often; a temperature does not see that.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._sums.scored import Scored
from .._types import BoolArray, FloatArray
from ..errors import UnavailableError
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.predictions import Predictions

__all__ = ["OVER", "SHIFTS", "UNDER", "Block", "as_odds", "blocks", "shiftable"]

# Logits that are 1.19 to 16 times too large, or too small.
OVER: tuple[float, ...] = tuple(2.0 ** (-k / 4) for k in (1, 2, 3, 4, 6, 8, 16))
UNDER: tuple[float, ...] = tuple(2.0 ** (k / 4) for k in (1, 2, 3, 4, 6, 8))
SHIFTS: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0)  # in log-odds, upward and downward
_ROWS = 16_384
_IMPOSSIBLE = 1e6  # the logarithm of an e-value: beyond every threshold, and still a number that adds up


class Block(NamedTuple):
    """Some rows: their columns, and the logarithms of their e-values, of shape (betas or shifts, rows).

    ``up`` and ``down`` have no shifts where the predictions have no log-odds.
    """

    rows: slice
    scored: Scored
    over: FloatArray
    under: FloatArray
    up: FloatArray
    down: FloatArray
    impossible: BoolArray


def shiftable(family: str | None) -> bool:
    """Tell whether predictions of a family have log-odds that can be shifted."""
    return family == "bernoulli"


def as_odds(predictions: Predictions) -> Predictions:
    """Return predictions of two columns as those of the second class, which have log-odds; others as they are."""
    if not isinstance(predictions, Categorical) or predictions.classes != 2:
        return predictions
    gaps = predictions.log_gaps(slice(0, predictions.n))
    return Bernoulli(predictions.happened == 1, gaps[:, 0] - gaps[:, 1], True, None, predictions.row_labels)


def blocks(predictions: Predictions, *, shifts: bool = True) -> Iterator[Block]:
    """Yield the rows a block at a time, in their order; ``shifts``: where they have log-odds, shift them."""
    shifts = shifts and shiftable(predictions.family)
    for start in range(0, predictions.n, _ROWS):
        rows = slice(start, min(start + _ROWS, predictions.n))
        yield _block(predictions, rows, shifts)


def _block(predictions: Predictions, rows: slice, shifts: bool) -> Block:
    scored, _ = predictions.weighted(rows, None)
    if scored.surprisal is None:
        raise UnavailableError("an unnormalised density has no e-value; give a normalised one.")
    impossible = scored.impossible
    surprisal = np.where(impossible, 0.0, scored.surprisal) if impossible.any() else scored.surprisal
    betas = (*OVER, *UNDER)
    logs = np.outer(1.0 - np.array(betas), surprisal) - predictions._log_partitions(rows, betas)
    over, under = logs[: len(OVER)], logs[len(OVER) :]
    up, down = _shifted(scored) if shifts else (np.empty((0, len(impossible))),) * 2
    if impossible.any():
        over[:, impossible] = _IMPOSSIBLE
        for other in (under, up, down):
            other[:, impossible] = -_IMPOSSIBLE
    return Block(rows, scored, over, under, up, down, impossible)


def _shifted(scored: Scored) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the e-values of each shift, upward and downward."""
    assert scored.predicted is not None
    assert scored.observed is not None
    c = np.array([SHIFTS, [-c for c in SHIFTS]])[:, :, None]
    # log, not log1p: an error of 1e-16 in a row that adds up is no matter, and it takes a third of the time.
    logs = np.multiply(np.expm1(c), scored.predicted)
    logs += 1.0
    np.log(logs, out=logs)
    np.subtract(c * scored.observed, logs, out=logs)
    return logs[0], logs[1]
