"""Sums over batches: of all rows, of groups and of clusters; and some rows drawn at random."""

from collections import deque
from collections.abc import Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from .._checks.columns import cluster_codes
from .._checks.message import fail
from .._types import FloatArray
from ..bins import Bins
from ..errors import ShapeError
from ..evaluation import Evaluation
from ..front_door import Gathered, gather, most_entropy
from ..inference.calibration import calibration_test, cluster_sums, cluster_test, generator
from ..inference.curves import Curve
from ..inference.evidence import evidence
from ..inference.intervals import Bounds, bounds_from_sums
from ..inference.tempered import tempered
from ..table import Table
from .batch import Batch
from .sample import Sample

__all__ = ["MAX_KEYS", "THREADS", "Implied", "Limits", "Totals", "from_sums", "swept"]

MAX_KEYS = 1_000_000  # groups, or clusters
THREADS = 2  # results do not depend on it
_AHEAD = 4  # batches that are read before the first of them is done


class Limits(NamedTuple):
    """The limits of the verdict, and the level of its intervals."""

    threshold: float
    max_temperature: float
    level: float


class Implied(NamedTuple):
    """An inverse temperature, its one-sided bounds at every level, and the method."""

    beta: float
    low: Curve
    high: Curve
    method: str


@final
@dataclass(slots=True)
class Totals:
    """What is known of all batches so far."""

    family: str
    dimension: int
    most_entropy: float
    sums: Gathered | None
    clusters: dict[Hashable, FloatArray] | None
    drawn: Batch | None  # rows drawn at random, each with the chance `rate`
    rate: float


def _add(a: Gathered, b: Gathered) -> Gathered:
    def both(x: Table | None, y: Table | None) -> Table | None:
        return None if x is None or y is None else x + y

    return Gathered(
        a.summary + b.summary,
        both(a.bins, b.bins),
        both(a.groups, b.groups),
        a.histogram + b.histogram,
        a.n_certain + b.n_certain,
    )


def _part(batch: Batch, edges: tuple[Bins, str] | None) -> tuple[Gathered, dict[Hashable, FloatArray]]:
    """Return the sums of one batch, and those of its clusters."""
    found: dict[Hashable, FloatArray] = {}
    if batch.cluster is not None:
        keys, codes = cluster_codes(batch.cluster, batch.predictions.n, batch.predictions.outcome)
        found = dict(zip(keys, cluster_sums(batch.predictions, codes, len(keys), batch.weight), strict=True))
    return gather(batch.predictions, batch.weight, edges, batch.by), found


def swept(stream: Iterable[Batch], edges: tuple[Bins, str] | None) -> Totals:
    """Sum the batches, a few at a time on threads, and add them up in their order."""
    sample = Sample(generator(None))
    totals: Totals | None = None
    waiting: deque[tuple[Batch, Future[tuple[Gathered, dict[Hashable, FloatArray]]]]] = deque()

    def take() -> None:
        nonlocal totals
        batch, future = waiting.popleft()
        sums, clusters = future.result()
        if totals is None:
            p = batch.predictions
            none: dict[Hashable, FloatArray] | None = None if batch.cluster is None else {}
            totals = Totals(p.family, p.dimension, most_entropy(p), None, none, None, 1.0)
        totals.sums = sums if totals.sums is None else _add(totals.sums, sums)
        _merge_clusters(totals, clusters)
        sample.add(batch)

    with ThreadPoolExecutor(THREADS) as pool:
        for batch in stream:
            waiting.append((batch, pool.submit(_part, batch, edges)))
            while len(waiting) > _AHEAD:
                take()
        while waiting:
            take()
    assert totals is not None
    totals.drawn, totals.rate = sample.batch(), sample.rate
    return totals


def _merge_clusters(totals: Totals, new: dict[Hashable, FloatArray]) -> None:
    if totals.clusters is not None:
        for key, sums in new.items():
            before = totals.clusters.get(key)
            totals.clusters[key] = sums if before is None else before + sums
    assert totals.sums is not None
    for name, count in (("by", len(totals.sums.groups or ())), ("cluster", len(totals.clusters or ()))):
        if count > MAX_KEYS:
            raise fail(
                ShapeError, name, f"must have at most {MAX_KEYS} different values", got=f"{count}",
                hint="sums are kept for each of them; is it the right column?",
            )  # fmt: skip


def from_sums(totals: Totals, limits: Limits, implied: Implied | None = None) -> Evaluation:
    """Evaluate sums; the temperature is the one ``implied`` where it is given, else that of the rows drawn."""
    sums = totals.sums
    assert sums is not None
    units = None
    if totals.clusters is not None:
        units = np.array(list(totals.clusters.values()))
        test = cluster_test(units, "two-sided")
    else:
        test = calibration_test(sums.summary)
    found = bounds_from_sums(sums.summary, units)
    if units is None:
        found = _with_temperature(found, _drawn_temperature(totals.drawn) if implied is None else implied)
    return Evaluation(
        totals.family,
        totals.dimension,
        totals.most_entropy,
        *sums,
        None,
        test,
        found,
        *limits,
    )


def _with_temperature(found: Bounds, implied: Implied) -> Bounds:
    beta, low, high, method = implied
    return replace(found, beta=beta, beta_low=low, beta_high=high, beta_method=method)


def _drawn_temperature(drawn: Batch | None) -> Implied:
    assert drawn is not None
    rows = evidence(tempered(drawn.predictions, drawn.weight), generator(None))
    return Implied(rows.beta, rows.low, rows.high, f"{rows.method}, on {drawn.predictions.n} rows drawn at random")
