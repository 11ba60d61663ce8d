"""The e-values of rows, on a grid of inverse temperatures, and for two classes on a grid of shifts in log-odds.

If a model is calibrated, ``p(y)**(beta - 1) / exp A(beta)`` has the mean 1 for every prediction made before its
outcome. So its logarithm, ``(1 - beta) * surprisal - A(beta)``, adds up to evidence that may be looked at after every
row. Where ``beta < 1`` it grows when the model is over-confident, where ``beta > 1`` when it is under-confident.

For two classes, so has the likelihood of the same log-odds plus ``c`` over that of the model. Its logarithm is
``c y - log(1 - p + p exp(c))``. It grows when the event happens more often than the model says (``c > 0``), or less
often; a temperature does not see that.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums.scored import Scored
from .._sums.summary import Summary
from .._types import AlarmDirection, BoolArray, FloatArray
from ..errors import MergeError, UnavailableError
from ..families.predictions import Predictions

__all__ = [
    "COLUMNS",
    "DIRECTIONS",
    "OVER",
    "SHIFTED",
    "SHIFTS",
    "UNDER",
    "Block",
    "Process",
    "blocks",
    "mixed",
    "shares",
    "size_columns",
    "sums_of",
]

# Logits that are 1.19 to 16 times too large, or too small.
OVER: tuple[float, ...] = tuple(2.0 ** (-k / 4) for k in (1, 2, 3, 4, 6, 8, 16))
UNDER: tuple[float, ...] = tuple(2.0 ** (k / 4) for k in (1, 2, 3, 4, 6, 8))
SHIFTS: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0)  # in log-odds, upward and downward
_ROWS = 16_384
_IMPOSSIBLE = 1e6  # the logarithm of an e-value: beyond every threshold, and still a number that adds up
_LARGEST = 1e290  # of other rows: no number of rows that a file holds adds up to infinity


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


def blocks(predictions: Predictions, *, shifts: bool = True) -> Iterator[Block]:
    """Yield the rows a block at a time, in their order; ``shifts``: where they have log-odds, shift them."""
    shifts = shifts and predictions.has_odds
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
    np.clip(logs, -_LARGEST, _LARGEST, out=logs)
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


DIRECTIONS: tuple[AlarmDirection, ...] = ("over-confident", "under-confident", "shifted up", "shifted down")
SHIFTED = DIRECTIONS[2:]
_PARTS = dict(zip(DIRECTIONS, ("over", "under", "up", "down"), strict=True))
_SHARES = dict(zip(DIRECTIONS, (0.4, 0.2, 0.2, 0.2), strict=True))
_TEMPERATURES = dict.fromkeys(DIRECTIONS[:2], 0.5)


def shares(*, shifts: bool) -> dict[AlarmDirection, float]:
    """Return the share of ``alpha`` that each direction has; without shifts there are two directions."""
    return dict(_SHARES if shifts else _TEMPERATURES)


def mixed(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of e-values over the first axis, given their logarithms."""
    return np.asarray(special.logsumexp(logs, axis=0) - math.log(len(logs)))


@final
@dataclass(frozen=True, slots=True)
class Process:
    """The product of the e-values of all rows, at each point of a fixed grid, and its mean over the grid.

    If the model has been calibrated since the start, the probability that the e-value of a direction ever reaches
    ``1 / alpha`` is at most ``alpha``, however often one looks. Large means evidence, 1 means none, and below 1 the
    data speak for calibration. Processes of different rows add up to the process of all.

    Attributes
    ----------
    n, n_impossible : int
        Rows, and rows whose outcome had probability zero: after one of them, over-confidence is certain.
    over, under : tuple of float
        Logarithms of the products, at each beta of the grid below 1, and above.
    up, down : tuple of float
        The same at each shift of the log-odds; empty where shifts are not looked at.
    """

    n: int = 0
    n_impossible: int = 0
    over: tuple[float, ...] = (0.0,) * len(OVER)
    under: tuple[float, ...] = (0.0,) * len(UNDER)
    up: tuple[float, ...] = (0.0,) * len(SHIFTS)
    down: tuple[float, ...] = (0.0,) * len(SHIFTS)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Process):
            return NotImplemented
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        if len(self.up) != len(other.up):
            raise MergeError("evidence with and without shifts does not merge.")
        sums = (map(float.__add__, getattr(self, part), getattr(other, part)) for part in _PARTS.values())
        return type(self)(self.n + other.n, self.n_impossible + other.n_impossible, *map(tuple, sums))

    @classmethod
    def of(cls, block: Block) -> Self:
        """Return the process of a block of rows."""
        keep = ~block.impossible
        gone = int(block.impossible.sum())
        logs = (getattr(block, part) for part in _PARTS.values())
        sums = ((x[:, keep] if gone else x).sum(axis=1) for x in logs)
        return cls(len(keep), gone, *(tuple(map(float, x)) for x in sums))

    @property
    def directions(self) -> tuple[AlarmDirection, ...]:
        """The directions that are looked at."""
        return tuple(direction for direction in DIRECTIONS if self.logs(direction))

    def logs(self, direction: AlarmDirection) -> tuple[float, ...]:
        """Return the logarithms of the products for a direction: one of `DIRECTIONS`."""
        found: tuple[float, ...] = getattr(self, _PARTS[direction])
        return found

    def log_e_value(self, direction: AlarmDirection) -> float:
        """Return the logarithm of the e-value for a direction: one of `directions`."""
        if self.n_impossible:
            return math.inf if direction == "over-confident" else -math.inf
        return float(mixed(np.array(self.logs(direction))))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        logs = {part: [documents.number(x) for x in getattr(self, part)] for part in _PARTS.values()}
        return documents.document("process", {"n": self.n, "n_impossible": self.n_impossible, **logs})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before there were shifts."""
        logs = documents.between(infinite=True)
        fields: dict[str, Any] = {"n": documents.count(), "n_impossible": documents.count()}
        fields |= {"over": documents.list_of(logs, len(OVER), len(OVER))}
        fields |= {"under": documents.list_of(logs, len(UNDER), len(UNDER))}
        shifts = documents.list_of(logs, 0, len(SHIFTS))
        found = documents.read("process", document, fields, {"up": shifts, "down": shifts})
        # Rows were compared with thresholds that left nothing of alpha for shifts: so it goes on without them.
        logs_of = [tuple(found.get(part, ())) for part in _PARTS.values()]
        made = cls(found["n"], found["n_impossible"], *logs_of)
        documents.every((
            (made.n_impossible <= made.n, "must not have more impossible rows than rows"),
            (len(made.up) == len(made.down), "must look at as many shifts `up` as `down`"),
            (len(made.up) in (0, len(SHIFTS)), f"must look at {len(SHIFTS)} shifts, or at none"),
            (made.n > 0 or not any(map(any, map(made.logs, DIRECTIONS))), "must have no evidence where it has no rows"),
        ))  # fmt: skip
        return made if made.n else cls()


# What is summed for the size that an alarm states; all but the first three are NaN for states and densities.
COLUMNS = ("n", "excess", "varentropy", "predicted", "observed", "confidence", "correct")


def size_columns(scored: Scored) -> FloatArray:
    """Return the columns of some rows, of shape (columns, rows); an impossible outcome is an infinite excess."""
    found = np.full((len(COLUMNS), len(scored)), math.nan)
    found[0] = 1.0
    for k, name in enumerate(COLUMNS[1:], start=1):
        column = getattr(scored, name)
        if column is not None:
            found[k] = column
    return found


def sums_of(summary: Summary) -> FloatArray:
    """Return the sums of the same columns."""
    if summary.n == 0:
        return np.zeros(len(COLUMNS))
    found = (getattr(summary, f"sum_{name}") for name in COLUMNS[1:])
    sums = np.array([summary.n, *(math.nan if x is None else x for x in found)])
    if summary.n_impossible:
        sums[1] = math.inf
    return sums
