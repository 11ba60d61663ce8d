"""Slices of rows that are not all in memory, in two passes: rows are drawn and searched, then all are estimated.

Rows that come in parts, in one order, are known by their number.

Rows that lie on workers are drawn and estimated where they lie, and searched here. An engine may hand out the rows of a
partition in another order each time. So a row is known by what it holds: its key is a hash of its partition, of its
values, and of how many equal rows came before it. Equal rows stand for each other, and every order has the same keys.
Coins of the halves and lots of the draw are made of keys, and the sum of all keys tells whether both passes saw the
same rows.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from .._optional import require
from .._sums import Tally
from .._sums.clusters import Clusters
from .._types import AnyArray, IndexArray
from ..errors import EngineError
from ..families import Predictions
from . import Candidates, Halves, Progress, SearchOptions, discovery, noise, number_rows, seeds
from .conditions import Condition
from .features import Kinds
from .results import Slices

__all__ = ["Lots", "Numbers", "RowKeys", "ScatteredSlices", "Share", "SliceStream", "Visit"]

_VALUES, _EQUALS, _NULL = 0x243F6A8885A308D3, 0x13198A2E03707344, 0x24299F31D008  # seeds: any that differ
_WRAP = (1 << 64) - 1


class Drawn(NamedTuple):
    """Rows that were drawn: their numbers, in order, or their keys, and their columns."""

    rows: IndexArray
    predictions: Predictions
    weight: AnyArray | None
    cluster: AnyArray | None
    features: Mapping[str, Any]

    def take(self, places: IndexArray) -> Drawn:
        """Return some of them."""
        rows, predictions, weight, cluster, features = self
        return Drawn(
            rows[places], predictions.take(places), None if weight is None else weight[places],
            None if cluster is None else cluster[places], {name: x[places] for name, x in features.items()},
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Drawn]) -> Drawn:
        """Put rows of several parts under each other."""
        first = parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            type(first.predictions).concatenate([part.predictions for part in parts]),
            None if first.weight is None else np.concatenate([part.weight for part in parts]),
            None if first.cluster is None else np.concatenate([part.cluster for part in parts]),
            {name: np.concatenate([part.features[name] for part in parts]) for name in first.features},
        )


@final
class Draw:
    """A draw of ``limit`` rows that come in parts, uniform and without replacement; half as many more are held."""

    def __init__(self, seed: int, limit: int) -> None:
        self._seed, self._limit = seed, limit
        self._parts: list[Drawn] = []
        self._below: Any = None  # the noise of a row that is kept lies below
        self.n = 0

    def add(
        self, predictions: Predictions, weight: AnyArray | None, cluster: AnyArray | None, features: Mapping[str, Any]
    ) -> None:
        """Draw from some more rows."""
        part = Drawn(np.arange(self.n, self.n + predictions.n), predictions, weight, cluster, features)
        self.n += predictions.n
        if self._below is not None:
            part = self._kept(part)
        self._parts.append(part)
        if sum(len(kept.rows) for kept in self._parts) > self._limit + self._limit // 2:
            self._thin()

    def _kept(self, part: Drawn) -> Drawn:
        return part.take(np.flatnonzero(noise(part.rows, self._seed) < self._below))

    def _thin(self) -> None:
        """Keep as many rows as are wanted."""
        lots = noise(np.concatenate([part.rows for part in self._parts]), self._seed)
        if len(lots) > self._limit:
            self._below = np.partition(lots, self._limit)[self._limit]
            self._parts = list(map(self._kept, self._parts))

    def drawn(self) -> Drawn:
        """Return the rows that were drawn."""
        self._thin()
        return Drawn.joined([part for part in self._parts if len(part.rows)])


def _candidates_of(options: SearchOptions, drawn: Drawn, halves: Halves, kinds: Mapping[str, Kinds]) -> Candidates:
    """Search rows that were drawn from parts."""
    second = halves.of_rows(drawn.rows, drawn.cluster, drawn.predictions.outcome)
    features = {name: kinds[name].read(values) for name, values in drawn.features.items()}
    return Candidates(options, drawn.predictions, drawn.weight, second, features)


@final
class SliceStream:
    """Slices of rows that come in parts, twice: they are drawn from, and searched; then all are estimated.

    It finds the same slices as `find_slices` in the same rows, where as many are drawn.

    Parameters
    ----------
    level : float
        As in `find_slices`.
    limit : int
        Rows that are drawn and held, at most.
    from_text : callable
        Reads a column of text as the values that it spells.
    progress : callable, optional
        As in `find_slices`.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from safecal.slices.two_passes import SliceStream
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(0, 2, 4000), rng.integers(20, 90, 4000)
    >>> happened = rng.random(4000) < 1 / (1 + np.exp(-z / np.where(age >= 70, 3, 1)))
    >>> whole = safecal.bernoulli(happened, logits=z)
    >>> parts = [(whole.take(rows), {"age": age[rows]}) for rows in np.split(np.arange(4000), 4)]
    >>> stream = SliceStream(0.95, 1_000_000, np.asarray)
    >>> for predictions, features in parts:
    ...     stream.add(predictions, None, None, features)
    >>> stream.search(None)
    >>> numbers = [stream.numbers(predictions, None, features) for predictions, features in parts]
    >>> tally = sum(rows.tally(by=codes) for (rows, _), codes in zip(parts, numbers))
    >>> stream.slices(tally)[0].condition == safecal.find_slices(whole, {"age": age})[0].condition
    True
    """

    def __init__(
        self, level: float, limit: int, from_text: Callable[[AnyArray], AnyArray], progress: Progress | None = None
    ) -> None:
        self._options = SearchOptions(2, 0.02, level, "over", progress)
        self._coins, lots = seeds(None)
        self._draw = Draw(lots, min(limit, discovery.DRAWN))
        self._kinds: dict[str, Kinds] = {}
        self._from_text = from_text
        self._row = 0

    def add(
        self, predictions: Predictions, weight: AnyArray | None, cluster: AnyArray | None,
        features: Mapping[str, AnyArray],
    ) -> None:  # fmt: skip
        """Draw from some rows."""
        for name, values in features.items():
            self._kinds.setdefault(name, Kinds(name, self._from_text)).add(values)
        self._draw.add(predictions, weight, cluster, features)

    def search(self, clusters: Clusters | None) -> None:
        """Search the rows that were drawn; ``clusters`` are the sums of those of all rows."""
        self._halves = Halves.of_sums(self._coins, clusters)
        drawn = self._draw.drawn()
        del self._draw
        self._candidates = _candidates_of(self._options, drawn, self._halves, self._kinds)
        self._drawn, self._excess = drawn.rows, drawn.predictions.score().excess

    def numbers(self, predictions: Predictions, cluster: AnyArray | None, features: Mapping[str, AnyArray]) -> AnyArray:
        """Number some rows by their half and their slices; all must come again, in the same order."""
        rows = np.arange(self._row, self._row + predictions.n)
        self._row += predictions.n
        first, last = np.searchsorted(self._drawn, [rows[0], rows[-1] + 1])
        excess_again = predictions.take(self._drawn[first:last] - rows[0]).score().excess
        if not np.array_equal(excess_again, self._excess[first:last], equal_nan=True):
            raise EngineError(
                "the rows came in another order when they were read again, so that slices cannot be estimated on rows "
                "other than those they were found on.\n\nHint: sort them by a column that tells them apart, or write "
                "them to a file first."
            )
        second = self._halves.of_rows(rows, cluster, predictions.outcome)
        features_by_name = {name: self._kinds[name].column(features[name]) for name in self._candidates.features}
        return number_rows(self._candidates.conditions, features_by_name, second)

    def slices(self, tally: Tally) -> Slices:
        """Return the slices, by the sums of all rows, grouped by `numbers`."""
        return self._candidates.slices(tally)


@final
class RowKeys:
    """The keys of the rows of one partition, which come in tables: the same in whatever order rows come."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._seen, self._times = np.empty(0, np.uint64), np.empty(0, np.int64)
        self.total = 0

    def of(self, columns: Mapping[str, Any]) -> AnyArray:
        """Return the keys of some rows, by their Arrow columns."""
        first = next(iter(columns.values()))
        hashes = np.full(len(first), self._partition, dtype=np.uint64)
        for column in columns.values():
            for bits in _bits(column):
                hashes = noise(hashes ^ noise(bits, _VALUES), _VALUES)
        keys = noise(hashes ^ noise(self._equals(hashes), _EQUALS), _EQUALS)
        self.total = (self.total + int(keys.sum(dtype=np.uint64))) & _WRAP
        return keys

    def _equals(self, hashes: AnyArray) -> AnyArray:
        """Return of each row how many equal ones came before it."""
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        times = np.diff(np.append(starts, len(ordered)))
        all_hashes = np.concatenate([self._seen, ordered[starts]])
        place = np.argsort(all_hashes, kind="stable")  # of two that are equal, the one seen before comes first
        all_hashes, all_times = all_hashes[place], np.concatenate([self._times, times])[place]
        repeated = np.concatenate([[False], all_hashes[1:] == all_hashes[:-1]])
        before = np.where(repeated, np.concatenate([[0], all_times[:-1]]), 0)[place >= len(self._seen)]
        self._seen = all_hashes[~repeated]
        self._times = np.add.reduceat(all_times, np.flatnonzero(~repeated))
        ranks = np.empty(len(hashes), dtype=np.int64)
        ranks[order] = np.arange(len(ordered)) - np.repeat(starts - before, times)
        return ranks


def _bits(column: Any) -> Iterator[AnyArray]:
    """Yield 64 bits of each value: those of numbers, or a hash; of lists one after the other."""
    pa = require("pyarrow", "rows on workers are read through PyArrow", "frames")
    array = column.combine_chunks() if hasattr(column, "chunks") else column
    array = array.combine_chunks() if hasattr(array, "chunks") else array  # some releases leave a chunked array
    kind, types = array.type, pa.types
    if types.is_nested(kind):  # predictions are lists of one length; of others no condition is made
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        lengths = array.value_lengths().unique().to_pylist() if lists else []
        if len(lengths) == 1 and lengths[0] and not types.is_nested(kind.value_type):
            yield from next(_bits(array.flatten())).reshape(len(array), -1).T
        return
    if types.is_floating(kind) or types.is_integer(kind):
        numbers = array.fill_null(0).cast(pa.float64() if types.is_floating(kind) else kind).to_numpy()
        bits = numbers.view(np.uint64) if numbers.dtype == np.float64 else numbers.astype(np.int64).view(np.uint64)
    else:
        coded = array if types.is_dictionary(kind) else array.dictionary_encode()
        hashes = np.array([_hashed(item) for item in coded.dictionary.to_pylist()] or [0], dtype=np.uint64)
        bits = hashes[coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)]
    yield np.where(array.is_null().to_numpy(zero_copy_only=False), np.uint64(_NULL), bits)


def _hashed(item: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(item).encode(errors="surrogatepass"), digest_size=8).digest())


@final
@dataclass(slots=True)
class Share:
    """What partitions tell beside their sums: the sum of their keys, what features hold, and rows that were drawn."""

    total: int = 0
    kinds: dict[str, Kinds] = field(default_factory=dict)
    drawn: list[Drawn] = field(default_factory=list)

    def __add__(self, other: Share) -> Share:
        kinds = dict(self.kinds)
        for name, kind in other.kinds.items():
            kinds[name] = kinds[name] + kind if name in kinds else kind
        return Share((self.total + other.total) & _WRAP, kinds, self.drawn + other.drawn)


@final
class Visit:
    """One pass over the rows of one partition."""

    def __init__(self, look: Lots | Numbers, partition: int) -> None:
        self._pass = look
        self._keys = RowKeys(partition)
        self._waiting: deque[AnyArray] = deque()
        self._share = Share()

    @property
    def share(self) -> Share:
        """The share of this partition, once all of its rows have been looked at."""
        self._share.total = self._keys.total
        return self._share

    def keyed(self, tables: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Pass tables on, which are to be looked at in the same order."""
        for columns in tables:
            self._waiting.append(self._keys.of(columns))
            yield columns

    def look(
        self, predictions: Predictions, weight: AnyArray | None, cluster: AnyArray | None,
        features: Mapping[str, AnyArray],
    ) -> AnyArray | None:  # fmt: skip
        """Look at the rows of the next table; those that are to be grouped by slices are numbered."""
        return self._pass.look(Drawn(self._waiting.popleft(), predictions, weight, cluster, features), self._share)


@final
@dataclass(frozen=True, slots=True)
class Lots:
    """The first pass: rows are drawn whose lot is not above a bound."""

    seed: int
    bound: int
    from_text: Callable[[AnyArray], AnyArray]

    def visit(self, partition: int) -> Visit:
        """Begin with a partition."""
        return Visit(self, partition)

    def look(self, rows: Drawn, share: Share) -> None:
        """Add what some rows tell, and those that are drawn, to the share of their partition."""
        for name, values in rows.features.items():
            share.kinds.setdefault(name, Kinds(name, self.from_text)).add(values)
        places = np.flatnonzero(noise(rows.rows, self.seed) <= np.uint64(self.bound))
        if len(places):
            share.drawn.append(rows.take(places))


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """The second pass: rows are numbered by their half and by the slices they lie in."""

    halves: Halves
    candidates: list[tuple[Condition, ...]]
    kinds: dict[str, Kinds]  # of the features that conditions are on

    def visit(self, partition: int) -> Visit:
        """Begin with a partition."""
        return Visit(self, partition)

    def look(self, rows: Drawn, share: Share) -> AnyArray:
        """Number some rows."""
        second = self.halves.of_rows(rows.rows, rows.cluster, rows.predictions.outcome)
        features = {name: kind.column(rows.features[name]) for name, kind in self.kinds.items()}
        return number_rows(self.candidates, features, second)


@final
class ScatteredSlices:
    """The search itself: among ``n`` rows, of which at most ``limit`` are drawn by the first pass, ``lots``."""

    def __init__(self, level: float, n: int, limit: int, from_text: Callable[[AnyArray], AnyArray]) -> None:
        self._options = SearchOptions(2, 0.02, level, "over")
        self._coins, seed = seeds(None)
        self._limit = min(limit, discovery.DRAWN)
        # A few more than are wanted: the number of lots below a bound is itself a matter of chance.
        share = (self._limit + 6.0 * math.sqrt(self._limit) + 50.0) / n
        self.lots = Lots(seed, _WRAP if share >= 1.0 else int(share * _WRAP), from_text)

    def search(self, share: Share, clusters: Clusters | None) -> Numbers:
        """Search the rows that were drawn, and return the second pass."""
        self._total = share.total
        drawn = Drawn.joined(share.drawn)
        order = np.argsort(noise(drawn.rows, self.lots.seed), kind="stable")[: self._limit]
        halves = Halves.of_sums(self._coins, clusters)
        self._candidates = _candidates_of(self._options, drawn.take(order), halves, share.kinds)
        kinds = {name: share.kinds[name] for name in self._candidates.features}
        return Numbers(halves, self._candidates.conditions, kinds)

    def slices(self, share: Share, tally: Tally) -> Slices:
        """Return the slices, by the sums of the second pass."""
        if share.total != self._total:
            raise EngineError(
                "the partitions held other rows when they were read again, so that slices cannot be estimated on rows "
                "other than those they were found on.\n\nHint: something in the frame is drawn at random, or changes: "
                "write the rows to a file first, and evaluate that."
            )
        return self._candidates.slices(tally)
