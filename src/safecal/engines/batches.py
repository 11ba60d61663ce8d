"""Rows that come in batches: as many as fit are evaluated whole, beyond that sums are kept.

Memory grows with groups and clusters alone. Up to ``max_rows`` the rows are held and evaluated together. Beyond, sums
of batches are added up, neighbours first, and every answer comes from those of all rows. Edges of quantile bins then
come from counts on a fine grid, which add up as well.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Self, TypeVar, Unpack, final

import numpy as np

from .._checks import fail, show
from .._checks.class_columns import FromOne
from .._checks.classes import refuse_probabilities, telling_rows
from .._checks.columns import spelled, steady
from .._sums import MAX_KEYS, Tally
from .._sums.splits import Bins, Plan, binned_values, bins_for
from .._types import AnyArray, BinOn, Strategy
from ..errors import FormError, OptionError, ShapeError
from ..families import Predictions
from ..families.categorical import NAMED, Categorical
from ..inputs import Batch, join_batches
from ..inputs.values import from_text
from ..judge.evaluation import Evaluation, evaluate_predictions
from ..options import LimitOptions, Limits
from ..slices.two_passes import SliceStream

__all__ = ["MAX_KEYS", "MAX_ROWS", "MAX_VALUES", "Batch", "evaluate_batches", "join_batches", "tally_batches"]

MAX_ROWS = 1_000_000
_THREADS = 2  # results do not depend on it
_AHEAD = 4  # batches that are read before the first of them is done
MAX_VALUES = 30_000_000  # rows times classes that are held at once
_FEWEST_DRAWN = 10_000  # rows, where features are searched


@steady
@spelled(LimitOptions)
def evaluate_batches(
    batches: Callable[[], Iterable[Batch]],
    *,
    bins: int | Bins | None = 10,
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    max_rows: int = MAX_ROWS,
    once: bool = False,
    progress: Callable[[float], None] | None = None,
    **limits: Unpack[LimitOptions],
) -> Evaluation:
    """Evaluate rows that come in batches.

    Parameters
    ----------
    batches : callable
        Returns the batches, from the first. It is called again for quantile bins of more than ``max_rows``, and for the
        slices of their features.
    bins : int, Bins or None, default 10
        The bins of the table.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows. Beyond ``max_rows`` the edges of the latter are right to a
        millionth of the range.
    max_rows : int, default 1_000_000
        Rows that are held in memory. From more rows, this many are drawn to be searched for slices (at least 10 000, at
        most a million); the slices are then estimated from all rows.
    once : bool, default False
        Whether the batches can be read only once.
    progress : callable, optional
        Called during the search for slices with the share that is done, where batches have features.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

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
    checked = Limits(**limits)
    if not callable(batches):
        hint = "`evaluate_batches(lambda: batches)`, or the function that makes them, without a call."
        raise fail(
            FormError, "batches", "must be a function that returns batches", got=type(batches).__name__, hint=hint
        )
    stream = _checked(batches())
    held = _hold(stream, max_rows)
    labels = FromOne() if isinstance(held[0].predictions, Categorical) else None
    next_batch = next(stream, None)
    if next_batch is None:
        whole = join_batches(held)
        if labels is not None:
            list(note_labels([whole], labels))
            labels.refuse()
        return evaluate_predictions(
            whole.predictions,
            bins=bins,
            bin_on=bin_on,
            strategy=strategy,
            by=whole.by,
            cluster=whole.cluster,
            sample_weight=whole.sample_weight,
            features=plain_features(whole),
            progress=progress,
            **limits,
        )
    search = None
    if held[0].features is not None:
        if once:
            rule = f"of more than {max_rows} rows that can be read only once cannot be searched"
            raise fail(OptionError, "features", rule, hint="save the rows to a file first, or raise `max_rows`.")
        width = max(getattr(held[0].predictions, "values", np.empty(0)).size // held[0].predictions.n, 1)
        search = SliceStream(checked.level, search_limit(width, max_rows), from_text, progress)
    whole_stream, counted = chain(held, [next_batch], stream), None
    if bins is not None and strategy == "quantile" and not isinstance(bins, Bins):
        if once:
            hint = "save the rows to a file first, or leave out the strategy."
            raise fail(OptionError, "strategy", 'cannot be "quantile" for rows that can be read only once', hint=hint)
        grid = count_on_grid(whole_stream, bin_on)
        assert grid is not None
        plan = Plan(*grid.bins(bins))
        counted = int(grid.counts.sum())
        whole_stream = chain(batches())
    else:
        plan = Plan.of(held[0].predictions, bins, bin_on, strategy)
    rows = whole_stream if search is None else _drawn_from(whole_stream, search)
    tally = tally_batches(rows if labels is None else note_labels(rows, labels), plan)
    _refuse_spent(counted, tally.n)
    if labels is not None:
        labels.refuse()
    slices = None
    if search is not None:
        search.search(tally.clusters)
        tally_again = tally_batches(_numbered(batches(), search), Plan())
        _refuse_spent(tally.n, tally_again.n)
        slices = search.slices(tally_again)
    return Evaluation.of(tally, checked, slices=slices)


def _refuse_spent(first: int | None, second: int) -> None:
    """Refuse batches that were not the same when they were asked for again; None where they were not."""
    if first is not None and second != first:
        rule = "must return all batches, from the first, each time it is called"
        hint = (
            "pass the function that makes them, `evaluate_batches(read)`, not one that returns what was read already."
        )
        raise fail(FormError, "batches", rule, got=f"{first} rows the first time, and {second} the second", hint=hint)


def plain_features(batch: Batch) -> dict[str, AnyArray] | None:
    """Return the features of all rows, with text read as what it spells."""
    return None if batch.features is None else {name: from_text(x) for name, x in batch.features.items()}


def search_limit(width: int, max_rows: int) -> int:
    """Return how many rows of ``width`` values to draw for the search, so that they fit in memory."""
    return min(max(max_rows, _FEWEST_DRAWN), MAX_VALUES // width)


def _drawn_from(stream: Iterable[Batch], search: SliceStream) -> Iterator[Batch]:
    """Pass batches on, and draw rows for the search."""
    for batch in stream:
        assert batch.features is not None
        search.add(batch.predictions, batch.sample_weight, batch.cluster, batch.features)
        yield replace(batch, features=None)


def _numbered(stream: Iterable[Batch], search: SliceStream) -> Iterator[Batch]:
    """Pass batches on, grouped by the slices that their rows lie in."""
    for batch in stream:
        assert batch.features is not None
        numbers = search.numbers(batch.predictions, batch.cluster, batch.features)
        yield replace(batch, by={"slices": numbers}, features=None)


def note_labels(stream: Iterable[Batch], labels: FromOne) -> Iterator[Batch]:
    """Pass batches on, and note the labels that tell whether classes are numbered from 1."""
    for batch in stream:
        p = batch.predictions
        if isinstance(p, Categorical) and not p.names and p.classes <= NAMED:  # names of more classes are not kept
            labels.add(p.happened, p.values, "logits" if p.logits else "y_prob")
        yield batch


@steady
def tally_batches(stream: Iterable[Batch], plan: Plan) -> Tally:
    """Sum batches, a few at a time on threads, and add them up in their order.

    Parameters
    ----------
    stream : iterable of Batch
        The rows.
    plan : Plan
        How they are binned.

    Returns
    -------
    Tally
        The sums of all.

    Examples
    --------
    >>> import safecal
    >>> from safecal.engines.batches import Batch, tally_batches
    >>> from safecal._sums.splits import Plan
    >>> tally_batches([Batch(safecal.bernoulli([1, 0], [0.9, 0.4]))] * 3, Plan()).n
    6
    """
    with closing(_tallies(stream, plan)) as parts:
        total = add_in_pairs(parts, Tally.__add__)
    return Tally() if total is None else total


def _tallies(stream: Iterable[Batch], plan: Plan) -> Generator[Tally, None, None]:
    waiting: deque[Future[Tally]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in stream:
            waiting.append(pool.submit(_tally, batch, plan))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@steady
def _tally(batch: Batch, plan: Plan) -> Tally:
    return Tally.of_checked(batch.predictions, plan, batch.sample_weight, batch.by, batch.cluster)


def _checked(stream: Iterable[object]) -> Iterator[Batch]:
    """Pass batches on, and refuse what is none, or has other columns than the first."""
    first: list[str] | None = None
    logits: list[AnyArray] | None = []  # of the first rows, until they tell that they are no probabilities
    for batch in stream:
        if not isinstance(batch, Batch) or not isinstance(batch.predictions, Predictions):
            got = f"Batch of {type(batch.predictions).__name__}" if isinstance(batch, Batch) else type(batch).__name__
            hint = "wrap each: `Batch(safecal.bernoulli(y_true, y_prob))`."
            raise fail(FormError, "batches", "must return `Batch` objects", got=got, hint=hint)
        columns = [name for name in ("sample_weight", "cluster") if getattr(batch, name) is not None]
        for name in ("by", "features"):
            of_rows = getattr(batch, name)
            if of_rows is not None and not isinstance(of_rows, Mapping):
                hint = f'`Batch(predictions, {name}={{"site": site}})`.'
                raise fail(FormError, name, "must map names to columns", got=type(of_rows).__name__, hint=hint)
            columns += [f"{name}[{show(key)}]" for key in of_rows or ()]
        first = columns if first is None else first
        if columns != first:
            got = f"{', '.join(columns) or 'none'} after {', '.join(first) or 'none'}"
            hint = "give the rows of every batch the same columns, in the same order."
            raise fail(FormError, "batches", "must have the columns of the first batch", got=got, hint=hint)
        if logits is not None and isinstance(batch.predictions, Categorical) and batch.predictions.logits:
            classes = batch.predictions.classes
            logits = [part for part in (*logits, batch.predictions.values) if part.shape[1] == classes]
            if sum(map(len, logits)) >= telling_rows(classes):
                refuse_probabilities(np.concatenate(logits), "logits")
                logits = None
        yield batch


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


_T = TypeVar("_T")


def add_in_pairs(parts: Iterable[_T], add: Callable[[_T, _T], _T]) -> _T | None:
    """Add up parts in their order, as a tree; None where there are none.

    Each of n parts is copied about log2(n) times; one after the other, it would be n / 2 times. As many sums are held
    at a time as n has binary digits.

    Examples
    --------
    >>> from safecal.engines.batches import add_in_pairs
    >>> add_in_pairs("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    sums: list[tuple[int, _T]] = []  # how many parts each sum is of, decreasing
    for part in parts:
        size, total = 1, part
        while sums and sums[-1][0] == size:
            before = sums.pop()[1]
            size, total = 2 * size, add(before, total)
        sums.append((size, total))
    if not sums:
        return None
    return reduce(lambda total, before: add(before, total), (part for _, part in reversed(sums)))


GRID_CELLS = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class CountGrid:
    """Counts of rows on a fine grid over the values that they are binned on."""

    on: BinOn
    low: float
    high: float
    counts: AnyArray

    def __add__(self, other: Self) -> Self:
        return type(self)(self.on, self.low, self.high, self.counts + other.counts)

    def bins(self, size: int) -> tuple[Bins, BinOn]:
        """Return bins of about equally many rows, right to a millionth of the range, and what they bin on."""
        below = np.cumsum(self.counts)
        ranks = below[-1] * np.arange(1, size) / size
        cells = np.unique(np.searchsorted(below, ranks, side="left") + 1)
        cells = cells[(cells > 0) & (cells < GRID_CELLS)]
        inner = self.low + cells / GRID_CELLS * (self.high - self.low)
        return Bins.from_edges([self.low, *inner.tolist(), self.high]), self.on


def count_on_grid(stream: Iterable[Batch], bin_on: BinOn | None) -> CountGrid | None:
    """Count the rows of all batches; None where there are none."""
    counts = np.zeros(GRID_CELLS, dtype=np.int64)
    low = high = 0.0
    on: BinOn | None = None
    for batch in stream:
        if not on:
            refuse_unbounded(batch.predictions)
            on = bins_for(batch.predictions, 1, bin_on, "uniform")[1]
            low, high = batch.predictions.bin_range(on)
        for scored in batch.predictions.blocks():
            place = (binned_values(scored, on) - low) / (high - low) * GRID_CELLS
            counts += np.bincount(np.clip(place.astype(np.intp), 0, GRID_CELLS - 1), minlength=GRID_CELLS)
    return CountGrid(on, low, high, counts) if on else None


def refuse_unbounded(predictions: Predictions) -> None:
    """Refuse predictions for which there is no grid."""
    if not predictions.discrete:
        hint = "pass edges: `bins=Bins.from_edges([...])`."
        rule = f'cannot be "quantile" for so many {predictions.family} rows'
        raise fail(OptionError, "strategy", rule, hint=hint)
