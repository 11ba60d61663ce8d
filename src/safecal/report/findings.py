"""What the sections share, computed once: the verdict, and each bin and group with its interval."""

import math
from dataclasses import dataclass
from typing import Self, final

from ..evaluation import Evaluation
from ..inference.results import Interval
from ..table import Table
from ..verdict import Verdict
from .coarse import coarser

__all__ = ["Findings", "Rung"]


@final
@dataclass(frozen=True, slots=True)
class Rung:
    """One bin or group.

    Attributes
    ----------
    index : int
        Its place in the table.
    name : str
        Its key as text.
    n : int
        Rows.
    share : float
        Share of the weight.
    ecd : Interval
        ECD, with an interval so wide that those of all keys hold together.
    beyond : bool
        Whether it is over-confident beyond the limit.
    """

    index: int
    name: str
    n: int
    share: float
    ecd: Interval
    beyond: bool

    @property
    def side(self) -> str:
        """What the interval says, in a word; empty where it says nothing."""
        if self.beyond:
            return "over-confident"
        return "under-confident" if self.ecd.high < 0.0 else ""


@final
@dataclass(frozen=True, slots=True)
class Findings:
    """An evaluation, as far as the page shows it.

    Attributes
    ----------
    evaluation : Evaluation
        All of it.
    verdict : Verdict
        Its verdict.
    limit : float
        Largest ECD that is allowed, in nats.
    bins : Table or None
        The bins, neighbours merged where there are very many.
    in_bins : list of Rung
        One for each of them.
    in_groups : list of Rung
        One for each group, the largest ECD first.
    """

    evaluation: Evaluation
    verdict: Verdict
    limit: float
    bins: Table | None
    in_bins: list[Rung]
    in_groups: list[Rung]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Look at an evaluation."""
        verdict = evaluation.verdict
        limit = verdict.allowed
        bins = None if evaluation.bins is None else coarser(evaluation.bins)
        in_bins, in_groups = (_rungs(table, verdict.level, limit) for table in (bins, evaluation.groups))
        in_groups.sort(key=lambda rung: math.inf if math.isnan(rung.ecd.value) else -rung.ecd.value)
        return cls(evaluation, verdict, limit, bins, in_bins, in_groups)


def _rungs(table: Table | None, level: float, limit: float) -> list[Rung]:
    if table is None:
        return []
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.intervals(level), strict=True)
    return [Rung(i, name, n, share, at, at.low > limit) for i, (name, n, share, at) in enumerate(rows)]
