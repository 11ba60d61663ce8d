"""Metrics by slow obvious loops over rows, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class Line(NamedTuple):
    """One line of a table of bins; means are NaN where it is empty."""

    n: int
    predicted: float
    observed: float
    ecd: float


def bernoulli_excess(p: float, y: int) -> float:
    """Return surprisal minus entropy; ``+inf`` for an impossible outcome."""
    chance = p if y == 1 else 1.0 - p
    if chance == 0.0:
        return math.inf
    entropy = -math.fsum(x * math.log(x) for x in (p, 1.0 - p) if x > 0.0)
    return -math.log(chance) - entropy


def categorical_excess(p: Sequence[float], y: int) -> float:
    """Return surprisal minus entropy; ``+inf`` for an impossible outcome."""
    if p[y] == 0.0:
        return math.inf
    entropy = -math.fsum(x * math.log(x) for x in p if x > 0.0)
    return -math.log(p[y]) - entropy


def mean(values: Sequence[float]) -> float:
    """Return the mean, NaN of nothing."""
    return math.fsum(values) / len(values) if values else math.nan


def bin_number(value: float, bins: int) -> int:
    """Number the equal bin of [0, 1] that holds the value: ``[a, b)``, the last one closed."""
    for k in range(bins):
        if k / bins <= value < (k + 1) / bins:
            return k
    assert value == 1.0
    return bins - 1


def table(predicted: Sequence[float], observed: Sequence[Any], excess: Sequence[float], bins: int) -> list[Line]:
    """Tabulate predicted and observed frequency and ECD over equal bins of ``predicted``."""
    rows: list[list[int]] = [[] for _ in range(bins)]
    for i, value in enumerate(predicted):
        rows[bin_number(value, bins)].append(i)
    return [
        Line(
            len(r), mean([predicted[i] for i in r]), mean([float(observed[i]) for i in r]), mean([excess[i] for i in r])
        )
        for r in rows
    ]


def ece(lines: Sequence[Line]) -> float:
    """Return the expected calibration error of a table."""
    n = sum(line.n for line in lines)
    return math.fsum(line.n / n * abs(line.observed - line.predicted) for line in lines if line.n)


def esce(lines: Sequence[Line]) -> float:
    """Return the expected signed calibration error of a table."""
    n = sum(line.n for line in lines)
    return math.fsum(line.n / n * (line.observed - line.predicted) for line in lines if line.n)
