"""Rows that come in batches: as many as fit are evaluated whole, beyond that sums are kept.

Up to ``max_rows`` the result is that of `evaluate`. Beyond, memory grows with groups and clusters alone: metrics and
tables are those of all rows, tests and intervals come from their sums, and the temperature from rows drawn at random.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, final

import numpy as np

from .._checks.columns import fraction, group_codes, positive
from .._checks.message import fail
from .._types import AnyArray, FloatArray
from ..bins import Bins
from ..errors import OptionError, ShapeError
from ..evaluation import Evaluation
from ..families.predictions import Predictions
from ..families.rows import joined, some_rows
from ..front_door import Gathered, evaluate_predictions, gather, most_entropy
from ..inference.calibration import calibration_test, cluster_sums, cluster_test, generator
from ..inference.evidence import evidence
from ..inference.intervals import Bounds, bounds_from_sums
from ..inference.tempered import tempered
from ..table import Table
from ..tabulate import binned_values, bins_for

__all__ = ["MAX_KEYS", "MAX_ROWS", "MAX_VALUES", "Batch", "evaluate_batches", "join_batches"]

MAX_ROWS = 1_000_000
MAX_VALUES = 30_000_000  # rows times classes that are held at once
MAX_KEYS = 1_000_000  # groups, or clusters
DRAWN = 100_000  # rows of which the temperature is estimated beyond MAX_ROWS: it is then known to a percent
THREADS = 2  # results do not depend on it
_CELLS = 1 << 20  # of the grid on which quantiles are found


class Limits(NamedTuple):
    """The limits of the verdict, and the level of its intervals."""

    threshold: float
    max_temperature: float
    level: float


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: checked predictions, and the columns beside them.

    Attributes
    ----------
    predictions : Predictions
        Of a classifier.
    weight : ndarray of shape (n,) or None
        Weight of each row.
    by : mapping of names to ndarrays, or None
        The columns to group by.
    cluster : ndarray of shape (n,) or None
        The cluster of each row.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch
    >>> Batch(safecal.bernoulli([1, 0], [0.9, 0.4])).predictions.n
    2
    """

    predictions: Predictions
    weight: AnyArray | None = None
    by: Mapping[str, AnyArray] | None = None
    cluster: AnyArray | None = None


def evaluate_batches(
    batches: Callable[[], Iterable[Batch]],
    *,
    bins: int | Bins | None = 10,
    bin_on: str | None = None,
    strategy: str = "uniform",
    threshold: float = 0.1,
    max_temperature: float = 1.5,
    level: float = 0.95,
    max_rows: int = MAX_ROWS,
    once: bool = False,
) -> Evaluation:
    """Evaluate rows that come in batches.

    Parameters
    ----------
    batches : callable
        Returns the batches, from the first. It is called a second time for quantile bins of more than ``max_rows``.
    bins : int, Bins or None, default 10
        The bins of the table.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows. Beyond ``max_rows`` the edges of the latter are right to a
        millionth of the range.
    threshold, max_temperature, level : float
        As in `evaluate`.
    max_rows : int, default 1_000_000
        Rows that are held in memory.
    once : bool, default False
        Whether the batches can be read only once.

    Returns
    -------
    Evaluation
        Its intervals, its test and its temperature name the method that was used.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.engines.batches import Batch, evaluate_batches
    >>> rng = np.random.default_rng(0)
    >>> def days():
    ...     for _ in range(7):
    ...         p = rng.random(1000)
    ...         yield Batch(safecal.bernoulli(rng.random(1000) < p, p))
    >>> evaluate_batches(days, once=True).verdict.decision
    'SAFE'
    """
    limits = Limits(
        positive(threshold, "threshold"), positive(max_temperature, "max_temperature"), fraction(level, "level")
    )
    stream = iter(batches())
    held = _hold(stream, max_rows)
    rest = next(stream, None)
    if rest is None:
        whole = join_batches(held)
        return evaluate_predictions(
            whole.predictions,
            bins=bins,
            bin_on=bin_on,
            strategy=strategy,
            by=whole.by,
            cluster=whole.cluster,
            sample_weight=whole.weight,
            **limits._asdict(),
        )
    whole_stream = chain(held, [rest], stream)
    edges = None
    if bins is not None and strategy == "quantile" and not isinstance(bins, Bins):
        if once:
            hint = "save the rows to a file first, or leave out the strategy."
            raise fail(OptionError, "strategy", 'cannot be "quantile" for rows that can be read only once', hint=hint)
        edges = _quantiles(whole_stream, bins, bin_on)
        whole_stream = chain(batches())
    elif bins is not None:
        edges = bins_for(held[0].predictions, bins, bin_on, strategy)
    return _from_sums(_swept(whole_stream, edges), limits)


def _hold(stream: Iterator[Batch], max_rows: int) -> list[Batch]:
    """Take batches until they are too many to be held."""
    held: list[Batch] = []
    rows = values = 0
    for batch in stream:
        held.append(batch)
        rows += batch.predictions.n
        values += getattr(batch.predictions, "values", np.empty(0)).size
        if rows > max_rows or values > MAX_VALUES:
            break
    if not held:
        raise fail(ShapeError, "batches", "must hold at least one batch", got="none")
    return held


def join_batches(parts: list[Batch]) -> Batch:
    """Put the rows of batches under each other.

    Parameters
    ----------
    parts : list of Batch
        At least one; all with the same columns.

    Returns
    -------
    Batch
        All rows, in their order.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch, join_batches
    >>> parts = [Batch(safecal.bernoulli([1, 0], [0.9, 0.4])), Batch(safecal.bernoulli([1], [0.7]))]
    >>> join_batches(parts).predictions.n
    3
    """

    def column(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    by = parts[0].by
    if by is not None:
        by = {name: np.concatenate([part.by[name] for part in parts if part.by is not None]) for name in by}
    return Batch(joined([part.predictions for part in parts]), column("weight"), by, column("cluster"))


@final
@dataclass(slots=True)
class _Totals:
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
        _, keys, codes = group_codes(batch.cluster, batch.predictions.n)
        found = dict(zip(keys, cluster_sums(batch.predictions, codes, len(keys), batch.weight), strict=True))
    return gather(batch.predictions, batch.weight, edges, batch.by), found


def _swept(stream: Iterable[Batch], edges: tuple[Bins, str] | None) -> _Totals:
    """Sum the batches, a few at a time on threads, and add them up in their order."""
    rng = generator(None)
    totals: _Totals | None = None
    waiting: deque[tuple[Batch, Future[tuple[Gathered, dict[Hashable, FloatArray]]]]] = deque()

    def take() -> None:
        nonlocal totals
        batch, future = waiting.popleft()
        sums, clusters = future.result()
        if totals is None:
            p = batch.predictions
            none: dict[Hashable, FloatArray] | None = None if batch.cluster is None else {}
            totals = _Totals(p.family, p.dimension, most_entropy(p), None, none, None, 1.0)
        totals.sums = sums if totals.sums is None else _add(totals.sums, sums)
        _merge_clusters(totals, clusters)
        _draw(totals, batch, rng)

    with ThreadPoolExecutor(THREADS) as pool:
        for batch in stream:
            waiting.append((batch, pool.submit(_part, batch, edges)))
            while len(waiting) > THREADS:
                take()
        while waiting:
            take()
    assert totals is not None
    return totals


def _merge_clusters(totals: _Totals, new: dict[Hashable, FloatArray]) -> None:
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


def _draw(totals: _Totals, batch: Batch, rng: np.random.Generator) -> None:
    """Keep each row with a chance that is halved whenever too many are kept."""

    def some(source: Batch, rate: float) -> Batch:
        n = source.predictions.n
        index = np.sort(rng.choice(n, rng.binomial(n, rate), replace=False, shuffle=False))
        weight = None if source.weight is None else source.weight[index]
        return Batch(some_rows(source.predictions, index), weight)

    new = some(batch, totals.rate) if totals.rate < 1.0 else replace(batch, by=None, cluster=None)
    totals.drawn = new if totals.drawn is None else join_batches([totals.drawn, new])
    while totals.drawn.predictions.n > 2 * DRAWN:
        totals.drawn = some(totals.drawn, 0.5)
        totals.rate *= 0.5


def _from_sums(totals: _Totals, limits: Limits) -> Evaluation:
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
        found = _with_drawn_temperature(found, totals.drawn)
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


def _with_drawn_temperature(found: Bounds, drawn: Batch | None) -> Bounds:
    assert drawn is not None
    rows = evidence(tempered(drawn.predictions, drawn.weight), generator(None))
    method = f"{rows.method}, on {drawn.predictions.n} rows drawn at random"
    return replace(found, beta=rows.beta, beta_low=rows.low, beta_high=rows.high, beta_method=method)


def _quantiles(stream: Iterable[Batch], bins: int, bin_on: str | None) -> tuple[Bins, str]:
    """Find the edges of quantile bins on a fine grid, in a pass of its own."""
    counts = np.zeros(_CELLS, dtype=np.int64)
    low = high = 0.0
    on = ""
    for batch in stream:
        if not on:
            on = bins_for(batch.predictions, 1, bin_on, "uniform")[1]
            low, high = batch.predictions.bin_range(on)
        for scored in batch.predictions.blocks():
            place = (binned_values(scored, on) - low) / (high - low) * _CELLS
            counts += np.bincount(np.clip(place.astype(np.intp), 0, _CELLS - 1), minlength=_CELLS)
    below = np.cumsum(counts)
    wanted = below[-1] * np.arange(1, bins) / bins
    cells = np.unique(np.searchsorted(below, wanted, side="left") + 1)
    cells = cells[(cells > 0) & (cells < _CELLS)]
    inner = low + cells / _CELLS * (high - low)
    return Bins.from_edges([low, *inner.tolist(), high]), on
