"""What pages show of an evaluation, computed once: the verdict, and each bin and group with its interval."""

import math
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from .._sums.bins import Bins
from .._sums.table import Table, bin_keys
from ..inference.results import Interval
from ..judge.display import count
from ..judge.evaluation import Evaluation
from ..judge.groups import judge_groups
from ..judge.verdict import Verdict

__all__ = ["Finding", "Findings", "coarser"]

_MOST = 50  # bins that a page shows


@final
@dataclass(frozen=True, slots=True)
class Finding:
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
    limit : float
        Largest ECD that is allowed there, in nats.
    beyond : bool
        Whether it is over-confident beyond the limit; a group as the verdict judges it.
    said : str
        What was found, in a few words; empty where nothing was.
    """

    index: int
    name: str
    n: int
    share: float
    ecd: Interval
    limit: float
    beyond: bool
    said: str


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
        Largest ECD that is allowed on average, in nats.
    bins : Table or None
        The bins, neighbours merged where there are very many.
    in_bins : list of Finding
        One for each of them.
    in_groups : list of Finding
        One for each group, the largest ECD first.
    """

    evaluation: Evaluation
    verdict: Verdict
    limit: float
    bins: Table | None
    in_bins: list[Finding]
    in_groups: list[Finding]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Look at an evaluation."""
        verdict = evaluation.verdict
        limit = verdict.allowed
        bins = None if evaluation.bins is None else coarser(evaluation.bins)
        in_bins = [] if bins is None else _bins(bins, verdict.level, limit)
        in_groups = [] if evaluation.groups is None else _groups(evaluation.groups, evaluation)
        in_groups.sort(key=lambda one: math.inf if math.isnan(one.ecd.value) else -one.ecd.value)
        return cls(evaluation, verdict, limit, bins, in_bins, in_groups)


def _bins(table: Table, level: float, limit: float) -> list[Finding]:
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.intervals(level), strict=True)
    return [
        Finding(i, name, n, share, at, limit, at.low > limit, _side(at, limit))
        for i, (name, n, share, at) in enumerate(rows)
    ]


def _side(ecd: Interval, limit: float) -> str:
    """Say in a word on which side an interval lies; nothing where it says nothing."""
    if ecd.low > limit:
        return "over-confident"
    return "under-confident" if ecd.high < 0.0 else ""


def _groups(table: Table, evaluation: Evaluation) -> list[Finding]:
    """Return the groups, each as the verdict judges it: by ECD, by its temperature, by its mistakes, or not at all."""
    judged = judge_groups(table, evaluation.limits, evaluation.tally)
    everywhere = evaluation.limits.everywhere
    others = [
        (look.tally.look.name, judge_groups(look.tally.groups, look.limits, look.tally).degree)
        for look in evaluation.looks
        if everywhere and look.tally.groups is not None and look.tally.look is not None and look.tally.look.condemns
    ]
    rows = zip(table.labels, table.n.tolist(), table.weights.tolist(), table.ecd.tolist(), strict=True)
    found = []
    for i, (name, n, share, ecd) in enumerate(rows):
        at, limit = judged.interval(ecd, i), float(judged.limit[i])
        degree = int(judged.degree[i]) if everywhere else 0
        said = "" if judged.within[i] or not everywhere else "too small to judge"
        said = "under-confident" if at.high < 0.0 else said
        by = judged.by(i) if degree else ""
        if by == "mistakes":
            said = f"{count(judged.seen[i])} mistakes, {count(judged.announced[i])} announced"
        elif by == "temperature":
            said = "temperature too high" if degree == 2 else "temperature suspected"
        elif degree:
            said = "over-confident" if degree == 2 else "suspected"
        seen = [look for look, degrees in others if degrees[i] == 2]
        if degree < 2 and seen:
            degree, said = 2, f"over-confident, by {seen[0]}"
        found.append(Finding(i, name, n, share, at, limit, degree == 2, said))
    return found


def coarser(table: Table, most: int = _MOST) -> Table:
    """Return a table of at most so many bins: neighbours are added up, so that nothing is left out.

    Examples
    --------
    >>> import safecal
    >>> table = safecal.evaluate([0, 1, 1, 0], [0.1, 0.7, 0.9, 0.6], bins=100).bins
    >>> coarser(table, 10).bins == safecal.Bins.uniform(10), coarser(table, 10).total == table.total
    (True, True)
    """
    if table.bins is None or len(table) <= most:
        return table
    step = -(-len(table) // most)
    starts = range(0, len(table), step)
    bins = Bins((*(table.bins.edges[k] for k in starts), table.bins.edges[-1]))
    merged = np.add.reduceat(table.sums, list(starts), axis=0)
    return Table(table.name, bin_keys(bins), merged, bins, table.top_label)
