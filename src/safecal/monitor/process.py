"""Evidence against "calibrated since the start": an e-process, as sums that merge with ``+``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._types import FloatArray
from .grid import OVER, UNDER, Block

__all__ = ["DIRECTIONS", "Process", "mixed"]

DIRECTIONS = ("over-confident", "under-confident")


def mixed(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of e-values over the first axis, given their logarithms."""
    return np.asarray(special.logsumexp(logs, axis=0) - math.log(len(logs)))


@final
@dataclass(frozen=True, slots=True)
class Process:
    """The product of the e-values of all rows, at each beta of a fixed grid, and its mean over the grid.

    If the model has been calibrated since the start, the probability that the e-value of a direction ever reaches
    ``1 / alpha`` is at most ``alpha``, however often one looks. Large means evidence, 1 means none, and below 1 the
    data speak for calibration. Processes of different rows add up to the process of all.

    Attributes
    ----------
    n, n_impossible : int
        Rows, and rows whose outcome had probability zero: after one of them, over-confidence is certain.
    over, under : tuple of float
        Logarithms of the products, at each beta of the grid below 1, and above.
    """

    n: int = 0
    n_impossible: int = 0
    over: tuple[float, ...] = (0.0,) * len(OVER)
    under: tuple[float, ...] = (0.0,) * len(UNDER)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Process):
            return NotImplemented
        return type(self)(
            self.n + other.n,
            self.n_impossible + other.n_impossible,
            tuple(a + b for a, b in zip(self.over, other.over, strict=True)),
            tuple(a + b for a, b in zip(self.under, other.under, strict=True)),
        )

    @classmethod
    def of(cls, block: Block) -> Self:
        """Return the process of a block of rows."""
        keep = ~block.impossible
        over, under = (x[:, keep] if block.impossible.any() else x for x in (block.over, block.under))
        gone = int(block.impossible.sum())
        return cls(len(block.impossible), gone, *(tuple(map(float, x.sum(axis=1))) for x in (over, under)))

    def log_e_value(self, direction: str) -> float:
        """Return the logarithm of the e-value for a direction: one of `DIRECTIONS`."""
        if self.n_impossible:
            return math.inf if direction == "over-confident" else -math.inf
        return float(mixed(np.array(self.over if direction == "over-confident" else self.under)))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"n": self.n, "n_impossible": self.n_impossible, "over": list(self.over), "under": list(self.under)}
        return documents.document("process", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("process", document, ("n", "n_impossible", "over", "under"))
        return cls(content["n"], content["n_impossible"], tuple(content["over"]), tuple(content["under"]))
