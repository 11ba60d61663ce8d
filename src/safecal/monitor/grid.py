"""The e-values of rows, on a grid of inverse temperatures.

If a model is calibrated, ``p(y)**(beta - 1) / exp A(beta)`` has the mean 1 for every prediction made before its
outcome. So its logarithm, ``(1 - beta) * surprisal - A(beta)``, adds up to evidence that may be looked at after every
row. Where ``beta < 1`` it grows when the model is over-confident, where ``beta > 1`` when it is under-confident.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._types import BoolArray, FloatArray
from ..errors import UnavailableError
from ..families.predictions import Predictions
from ..scored import Scored

__all__ = ["OVER", "UNDER", "Block", "blocks"]

# Logits that are 1.19 to 16 times too large, or too small.
OVER: tuple[float, ...] = tuple(2.0 ** (-k / 4) for k in (1, 2, 3, 4, 6, 8, 16))
UNDER: tuple[float, ...] = tuple(2.0 ** (k / 4) for k in (1, 2, 3, 4, 6, 8))
_ROWS = 16_384
_IMPOSSIBLE = 1e6  # the logarithm of an e-value: beyond every threshold, and still a number that adds up


class Block(NamedTuple):
    """Some rows: their columns, and the logarithms of their e-values, of shape (betas, rows)."""

    rows: slice
    scored: Scored
    over: FloatArray
    under: FloatArray
    impossible: BoolArray


def blocks(predictions: Predictions) -> Iterator[Block]:
    """Yield the rows a block at a time, in their order."""
    for start in range(0, predictions.n, _ROWS):
        rows = slice(start, min(start + _ROWS, predictions.n))
        yield _block(predictions, rows)


def _block(predictions: Predictions, rows: slice) -> Block:
    scored, _ = predictions.weighted(rows, None)
    if scored.surprisal is None:
        raise UnavailableError("an unnormalised density has no e-value; give a normalised one.")
    impossible = scored.impossible
    surprisal = np.where(impossible, 0.0, scored.surprisal) if impossible.any() else scored.surprisal
    betas = (*OVER, *UNDER)
    logs = np.outer(1.0 - np.array(betas), surprisal) - predictions._log_partitions(rows, betas)
    over, under = logs[: len(OVER)], logs[len(OVER) :]
    if impossible.any():
        over[:, impossible], under[:, impossible] = _IMPOSSIBLE, -_IMPOSSIBLE
    return Block(rows, scored, over, under, impossible)
