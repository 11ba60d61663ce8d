"""Slices: for whom the model is over-confident, found on one half of the rows and shown on the other.

Here is the front door: from predictions and features to candidates of each half, and to the slices that all rows
confirm. Which half a row is in, and which rows are drawn for the search, its number alone tells. So rows that come in
parts need not be held, and have the same answer as those that lie in memory.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from .._checks import fail
from .._checks.arrays import same_labels
from .._checks.columns import choice, cluster_codes, fraction, spelled, steady, weights, whole_number
from .._sums import Tally
from .._sums.clusters import Clusters
from .._types import AnyArray, ArrayLike, BoolArray, FloatArray, IndexArray
from ..errors import FormError, ShapeError
from ..families import Predictions
from ..inference.calibration import generator
from . import discovery
from .conditions import Condition
from .discovery import BEAM, Coded, Search, code_feature, tells_the_outcome
from .estimation import Overlaps, Reach, estimate_slices, membership, reach_of
from .features import Feature, Unreadable, columns_of, read_feature
from .results import Slice, Slices

__all__ = [
    "Candidates",
    "Halves",
    "Progress",
    "SearchOptions",
    "drawn_rows",
    "find_slices",
    "noise",
    "number_rows",
    "seeds",
]

_FEWEST = 20  # rows of a slice in a half
_IMPOSSIBLE = 40.0  # nats, in the search alone, of an outcome that was called impossible
_ALIKE = 0.5  # of the rows of either, from which two slices are one

Progress = Callable[[float], None]


@steady
@spelled()
def find_slices(
    predictions: Predictions,
    features: Any,
    *,
    depth: int = 2,
    min_share: float = 0.02,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    direction: Literal["over", "under"] = "over",
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
) -> Slices:
    """Find the slices of the rows for which a model is over-confident, with intervals that hold.

    Rows, or clusters, are halved. The best three slices of each half are looked for there, and estimated on the other
    half, which had no part in the choice. So a printed ECD is not flattered by the search, and the intervals of all
    slices hold together: a calibrated model has none in ``level`` of all samples at least.

    Parameters
    ----------
    predictions : Predictions
        What was predicted, and what happened: `bernoulli`, `categorical`, `gaussian` and so on.
    features : DataFrame, Table, relation, or mapping of names to columns
        Columns that describe each row: numbers, categories, dates, truths. A missing value is a value of its own.
        Frames of pandas, Polars, PyArrow and DuckDB will do.
    depth : int, default 2
        Conditions of a slice, at most.
    min_share : float, default 0.02
        Smallest share of the rows that a slice holds.
    level : float, default 0.95
        Level at which all intervals hold together.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row in the means.
    direction : {"over", "under"}, default "over"
        Look for over-confidence, or for under-confidence.
    rng : numpy.random.Generator or int, optional
        For the halves. By default the same data give the same answer.
    progress : callable, optional
        Is called with the share of the search that is done. Ctrl-C ends the search, and keeps the slices found so far.

    Returns
    -------
    Slices
        Print it for a table. Where nothing was found it is empty, and says how small a slice would have been found.

    Warns
    -----
    UserWarning
        If a feature says what happened. It is left out: those for whom it went wrong are not a slice.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(1)
    >>> z, age, site = rng.normal(0, 2, 10_000), rng.integers(20, 90, 10_000), rng.choice(list("abcd"), 10_000)
    >>> wrong = (age >= 65) & (site == "c")
    >>> happened = rng.random(10_000) < 1 / (1 + np.exp(-z / np.where(wrong, 3, 1)))
    >>> for s in safecal.find_slices(safecal.bernoulli(happened, logits=z), {"age": age, "site": site}):
    ...     print(s.condition, s.n, round(s.ecd.value, 2))
    age >= 62 and site is c 914 0.22
    """
    if not isinstance(predictions, Predictions):
        hint = "make them with `safecal.bernoulli(y_true, y_prob)`, `categorical`, `gaussian` or `density`."
        raise fail(FormError, "predictions", "must be predictions", got=f"a {type(predictions).__name__}", hint=hint)
    whole_number(depth, "depth", 1)
    min_share, level = fraction(min_share, "min_share"), fraction(level, "level")
    choice(direction, "direction", ("over", "under"))
    columns = columns_of(features)
    same_labels(predictions.row_labels, features=features, cluster=cluster, sample_weight=sample_weight)
    n, reference = predictions.n, predictions.outcome
    weight = weights(sample_weight, n, reference)
    keys, codes = ((), None) if cluster is None else cluster_codes(cluster, n, reference)
    coins, lots = seeds(rng)
    halves = Halves(coins, keys, None if codes is None else np.bincount(codes, minlength=len(keys)))
    if (n if codes is None else len(keys)) < 2:
        raise fail(ShapeError, "predictions", "must have rows in two halves", got=f"{n} row{'' if n == 1 else 's'}")
    second = halves.of_rows(np.arange(n), cluster, reference)
    read_features = {name: _read_or_reason(raw, name, n, reference) for name, raw in columns.items()}
    readable = {name: feature for name, feature in read_features.items() if isinstance(feature, Feature)}
    drawn = drawn_rows(n, lots, discovery.DRAWN)
    drawn_predictions, drawn_weight, drawn_features = predictions, weight, read_features
    if len(drawn) < n:
        drawn_predictions, drawn_weight = predictions.take(drawn), None if weight is None else weight[drawn]
        drawn_features = read_features | {name: x._replace(values=x.values[drawn]) for name, x in readable.items()}
    options = SearchOptions(depth, min_share, level, direction, progress)
    candidates = Candidates(options, drawn_predictions, drawn_weight, second[drawn], drawn_features)
    numbers = number_rows(candidates.conditions, readable, second)
    return candidates.slices(Tally.of_checked(predictions, None, weight, numbers, cluster))


def _read_or_reason(raw: Any, name: str, n: int, reference: str) -> Feature | Unreadable:
    try:
        return read_feature(raw, name, n, reference)
    except Unreadable as reason:
        return reason


def seeds(rng: np.random.Generator | int | None) -> tuple[int, int]:
    """Return the seeds of the halves and of the draw."""
    coins, lots = generator(rng).integers(0, 1 << 63, 2).tolist()
    return coins, lots


def noise(rows: AnyArray, seed: int) -> AnyArray:
    """Return 64 bits for each row, which differ for all rows (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@final
class Halves:
    """The second half of the rows: of each a coin, or of each cluster, so that both halves have about as many rows."""

    def __init__(self, seed: int, clusters: Sequence[Hashable] = (), sizes: AnyArray | None = None) -> None:
        self._seed = seed
        self._second: dict[Hashable, bool] = {}
        if sizes is not None:
            order = sorted(range(len(clusters)), key=lambda k: (str(clusters[k]), k))
            rows = [0, 0]
            for place in np.argsort(noise(np.arange(len(clusters)), seed)).tolist():
                k = order[place]
                in_second = rows[1] < rows[0]  # to the half that has fewer rows so far
                self._second[clusters[k]] = in_second
                rows[int(in_second)] += int(sizes[k])

    @classmethod
    def of_sums(cls, seed: int, clusters: Clusters | None) -> Halves:
        """Halve the rows whose sums by cluster are known; None where they are independent."""
        return cls(seed) if clusters is None else cls(seed, clusters.keys or (), clusters.column("n"))

    def of_rows(self, rows: IndexArray, cluster: ArrayLike | None, outcome: str) -> BoolArray:
        """Tell of some rows, by their numbers or their clusters, which are in the second half."""
        if cluster is None:
            return np.asarray(noise(rows, self._seed) >= np.uint64(1 << 63))
        keys, codes = cluster_codes(cluster, len(rows), outcome)
        return np.array([self._second[key] for key in keys], dtype=bool)[codes]


def drawn_rows(n: int, seed: int, limit: int) -> IndexArray:
    """Return the numbers of the rows that are drawn, of all that there are."""
    if n <= limit:
        return np.arange(n)
    lots = noise(np.arange(n), seed)
    return np.flatnonzero(lots < np.partition(lots, limit)[limit])


@final
@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of the search, with the meaning of `find_slices`."""

    depth: int
    min_share: float
    level: float
    direction: Literal["over", "under"]
    progress: Progress | None = None

    @property
    def over(self) -> bool:
        return self.direction == "over"


@final
class Candidates:
    """The best conditions of each half, by rows that were drawn: ``second`` tells which are in the second half."""

    def __init__(
        self, options: SearchOptions, predictions: Predictions, weight: AnyArray | None, second: BoolArray,
        features: Mapping[str, Feature | Unreadable],
    ) -> None:  # fmt: skip
        self.options, self._rows = options, predictions
        self._fewest = max(_FEWEST, math.ceil(options.min_share * predictions.n / 2))
        self.left_out: list[tuple[str, str]] = []
        self._columns = self._code_features(features)
        self.interrupted = False
        self._halves = self._search(weight, second) if self._columns else [[], []]
        self.conditions: list[tuple[Condition, ...]] = [*self._halves[0], *self._halves[1]]

    def _code_features(self, features: Mapping[str, Feature | Unreadable]) -> list[Coded]:
        """Code the features, and say why some are left out."""
        columns: list[Coded] = []
        for name, feature in features.items():
            try:
                if isinstance(feature, Unreadable):
                    raise feature
                column = code_feature(feature, self._fewest)
            except Unreadable as reason:
                self.left_out.append((name, str(reason)))
                continue
            if tells_the_outcome(column, self._rows):
                self.left_out.append((name, "it tells what happened"))
                warnings.warn(
                    f"the feature `{name}` tells what happened, and is left out: among those for whom it went wrong, "
                    "every model looks over-confident.\n\nHint: features must be known before the outcome.",
                    UserWarning,
                    stacklevel=7,
                )
                continue
            columns.append(column)
        return columns

    def _search(self, weight: AnyArray | None, second: BoolArray) -> list[list[tuple[Condition, ...]]]:
        """Search both halves."""
        excess, variance = _weighted_excess(self._rows, weight)
        depth = self.options.depth
        steps, done = 2 * (1 + (depth - 1) * BEAM), 0

        def step() -> None:
            nonlocal done
            done += 1
            if self.options.progress is not None:
                self.options.progress(done / steps)

        halves: list[list[tuple[Condition, ...]]] = []
        sign = 1.0 if self.options.over else -1.0
        for half in (~second, second):
            rows = np.flatnonzero(half)
            search = Search(self._columns, rows, sign * excess[rows], variance[rows], self._fewest)
            halves.append([] if self.interrupted else search.best(depth, step))
            self.interrupted |= search.interrupted
        return halves

    @property
    def features(self) -> tuple[str, ...]:
        """The features that conditions are on."""
        return tuple(dict.fromkeys(condition.feature for conditions in self.conditions for condition in conditions))

    def slices(self, tally: Tally) -> Slices:
        """Return the slices that all rows confirm, by their sums, which are grouped by `numbers`."""
        options, n_first, n_second = self.options, len(self._halves[0]), len(self._halves[1])
        estimated = estimate_slices(tally, n_first, n_second, level=options.level, over=options.over)
        candidates: list[Slice] = []
        places, shown = [], []
        for k, (conditions, estimate) in enumerate(zip(self.conditions, estimated, strict=True)):
            if estimate is not None:
                numbers = estimate._asdict()
                if numbers.pop("alone") and (estimate.ecd.low > 0.0 if options.over else estimate.ecd.high < 0.0):
                    shown.append(len(candidates))
                places.append(k)
                candidates.append(Slice(conditions, **numbers))
        overlaps = Overlaps(tally, n_first)
        kept = _merge_alike(candidates, shown, lambda a, b: overlaps.overlap(places[a], places[b]), options.over)
        return Slices(
            found=tuple(candidates[k] for k in kept), candidates=tuple(candidates), direction=options.direction,
            n=tally.n, searched=self._rows.n, ecd=tally.summary.ecd, level=options.level, min_share=options.min_share,
            depth=options.depth, features=tuple(column.feature.name for column in self._columns),
            left_out=tuple(self.left_out), interrupted=self.interrupted, clustered=tally.clusters is not None,
            reach=self._reach(tally) if tally.clusters is None and self._columns else None,
            on="spread" if not self._rows.discrete else (self._rows.bin_choices or ("confidence",))[0],
        )  # fmt: skip

    def _reach(self, tally: Tally) -> Reach | None:
        """Return how small a slice would have been found; weights that differ are worth fewer rows."""
        options, s = self.options, tally.summary
        worth = s.weight**2 / max(s.n * s.weight2, 1e-300)
        return reach_of(
            self._rows, rows=0.5 * worth * s.n, searched=0.5 * worth * self._rows.n,
            atoms=sum(column.atoms for column in self._columns), depth=options.depth, min_share=options.min_share,
            level=options.level, over=options.over,
        )  # fmt: skip


def number_rows(
    candidates: Sequence[tuple[Condition, ...]], features: Mapping[str, Feature], second: BoolArray
) -> AnyArray:
    """Number rows by their half and by which conditions they fulfil: by the slices they lie in."""
    masks = []
    for conditions in candidates:
        mask = np.ones(len(second), dtype=bool)
        for condition in conditions:
            mask &= features[condition.feature].where(condition)
        masks.append(mask)
    return membership(masks, second)


def _weighted_excess(predictions: Predictions, weight: AnyArray | None) -> tuple[FloatArray, FloatArray]:
    """Return excess and variance of rows, with weights."""
    excess, variance = np.empty(predictions.n), np.empty(predictions.n)
    for rows in predictions.row_blocks():
        scored, w = predictions.weighted(rows, weight)
        e, v = scored.excess, scored.varentropy
        possible = np.isfinite(e)
        e, v = np.where(possible, e, _IMPOSSIBLE), np.where(possible & np.isfinite(v), v, 1.0)
        scale: FloatArray | float = 1.0 if w is None else w
        excess[rows], variance[rows] = scale * e, scale * scale * v
    return excess, variance


def _merge_alike(
    candidates: Sequence[Slice], shown: Sequence[int], alike: Callable[[int, int], float], over: bool
) -> list[int]:
    """Return those that are shown, the worst first; of two with about the same rows the simpler description."""
    # Simpler first, then larger: never by what was estimated, which would flatter it.
    order = sorted(shown, key=lambda k: (len(candidates[k].conditions), -candidates[k].n))
    kept: list[int] = []
    for k in order:
        if all(alike(k, other) < _ALIKE for other in kept):
            kept.append(k)
    return sorted(kept, key=lambda k: -candidates[k].ecd.low if over else candidates[k].ecd.high)
