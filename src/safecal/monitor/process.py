"""Evidence against "calibrated since the start": an e-process, as sums that merge with ``+``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import AlarmDirection, FloatArray
from ..errors import MergeError
from .grid import OVER, SHIFTS, UNDER, Block

__all__ = ["DIRECTIONS", "SHIFTED", "Process", "mixed", "shares"]

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
