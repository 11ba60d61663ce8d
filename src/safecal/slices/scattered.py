"""Slices of rows that lie on workers: drawn where they lie, searched here, and estimated where they lie.

An engine may hand out the rows of a partition in another order each time. So a row is known by what it holds: its key
is a hash of its partition, of its values, and of how many equal rows came before it. Equal rows stand for each other,
and every order has the same keys. Coins of the halves and lots of the draw are made of keys, and the sum of all keys
tells whether both passes saw the same rows.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from .._optional import require
from .._sums.clusters import Clusters
from .._sums.tally import Tally
from .._types import AnyArray
from ..errors import EngineError
from ..families.predictions import Predictions
from . import draw
from .conditions import Condition
from .draw import Drawn, Halves, noise, seeds
from .features import Kinds
from .results import Slices
from .seeking import Candidates, Wanted, numbered

__all__ = ["Lots", "Numbers", "RowKeys", "ScatteredSlices", "Share", "Visit"]

_VALUES, _EQUALS, _NULL = 0x243F6A8885A308D3, 0x13198A2E03707344, 0x24299F31D008  # seeds: any that differ
_WRAP = (1 << 64) - 1


@final
class RowKeys:
    """The keys of the rows of one partition, which come in tables.

    Parameters
    ----------
    partition : int
        Its number.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from safecal.slices.scattered import RowKeys
    >>> table = pa.table({"y": [1, 0, 1, 1], "site": ["a", None, "b", "a"]})
    >>> there, back = (RowKeys(0).of(dict(zip(t.column_names, t.columns))) for t in (table, table.take([3, 2, 1, 0])))
    >>> np.array_equal(np.sort(there), np.sort(back)), len(set(there.tolist()))
    (True, 4)
    """

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._seen, self._times = np.empty(0, np.uint64), np.empty(0, np.int64)
        self.total = 0

    def of(self, columns: Mapping[str, Any]) -> AnyArray:
        """Return the keys of some rows, by their Arrow columns."""
        first = next(iter(columns.values()))
        found = np.full(len(first), self._partition, dtype=np.uint64)
        for column in columns.values():
            for bits in _bits(column):
                found = noise(found ^ noise(bits, _VALUES), _VALUES)
        keys = noise(found ^ noise(self._equals(found), _EQUALS), _EQUALS)
        self.total = (self.total + int(keys.sum(dtype=np.uint64))) & _WRAP
        return keys

    def _equals(self, found: AnyArray) -> AnyArray:
        """Return of each row how many equal ones came before it."""
        order = np.argsort(found, kind="stable")
        ordered = found[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        times = np.diff(np.append(starts, len(ordered)))
        both = np.concatenate([self._seen, ordered[starts]])
        place = np.argsort(both, kind="stable")  # of two that are equal, the one seen before comes first
        both, all_times = both[place], np.concatenate([self._times, times])[place]
        again = np.concatenate([[False], both[1:] == both[:-1]])
        before = np.where(again, np.concatenate([[0], all_times[:-1]]), 0)[place >= len(self._seen)]
        self._seen = both[~again]
        self._times = np.add.reduceat(all_times, np.flatnonzero(~again))
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[order] = np.arange(len(ordered)) - np.repeat(starts - before, times)
        return ranks


def _bits(column: Any) -> Iterator[AnyArray]:
    """Yield 64 bits of each value: those of numbers, or a hash; of lists one after the other."""
    pa = require("pyarrow", "rows on workers are read through PyArrow", "frames")
    whole = column.combine_chunks() if hasattr(column, "chunks") else column
    whole = whole.combine_chunks() if hasattr(whole, "chunks") else whole  # some releases leave a chunked array
    kind, types = whole.type, pa.types
    if types.is_nested(kind):  # predictions are lists of one length; of others no condition is made
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        lengths = whole.value_lengths().unique().to_pylist() if lists else []
        if len(lengths) == 1 and lengths[0] and not types.is_nested(kind.value_type):
            yield from next(_bits(whole.flatten())).reshape(len(whole), -1).T
        return
    if types.is_floating(kind) or types.is_integer(kind):
        known = whole.fill_null(0).cast(pa.float64() if types.is_floating(kind) else kind).to_numpy()
        bits = known.view(np.uint64) if known.dtype == np.float64 else known.astype(np.int64).view(np.uint64)
    else:
        coded = whole if types.is_dictionary(kind) else whole.dictionary_encode()
        hashes = np.array([_hashed(item) for item in coded.dictionary.to_pylist()] or [0], dtype=np.uint64)
        bits = hashes[coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)]
    yield np.where(whole.is_null().to_numpy(zero_copy_only=False), np.uint64(_NULL), bits)


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


class Visit(ABC):
    """One pass over the rows of one partition."""

    def __init__(self, partition: int) -> None:
        self._keys = RowKeys(partition)
        self._waiting: deque[AnyArray] = deque()
        self._share = Share()

    @property
    def share(self) -> Share:
        """What was found, when all rows have been looked at."""
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
        return self._look(Drawn(self._waiting.popleft(), predictions, weight, cluster, features))

    @abstractmethod
    def _look(self, rows: Drawn) -> AnyArray | None: ...


@final
@dataclass(frozen=True, slots=True)
class Lots:
    """The first pass: rows are drawn whose lot is not above a bound."""

    seed: int
    most: int  # the bound
    plain: Callable[[AnyArray], AnyArray]

    def visit(self, partition: int) -> Visit:
        """Begin with a partition."""
        return _Drawing(self, partition)


@final
class _Drawing(Visit):
    def __init__(self, lots: Lots, partition: int) -> None:
        super().__init__(partition)
        self._lots = lots

    def _look(self, rows: Drawn) -> None:
        for name, values in rows.features.items():
            self._share.kinds.setdefault(name, Kinds(name, self._lots.plain)).add(values)
        places = np.flatnonzero(noise(rows.rows, self._lots.seed) <= np.uint64(self._lots.most))
        if len(places):
            self._share.drawn.append(rows.take(places))


@final
@dataclass(frozen=True, slots=True)
class Numbers:
    """The second pass: rows are numbered by their half and by the slices they lie in."""

    halves: Halves
    candidates: list[tuple[Condition, ...]]
    kinds: dict[str, Kinds]  # of the features that conditions are on

    def visit(self, partition: int) -> Visit:
        """Begin with a partition."""
        return _Numbering(self, partition)


@final
class _Numbering(Visit):
    def __init__(self, numbers: Numbers, partition: int) -> None:
        super().__init__(partition)
        self._numbers = numbers

    def _look(self, rows: Drawn) -> AnyArray:
        wanted = self._numbers
        second = wanted.halves.of_rows(rows.rows, rows.cluster, rows.predictions.outcome)
        known = {name: kind.column(rows.features[name]) for name, kind in wanted.kinds.items()}
        return numbered(wanted.candidates, known, second)


@final
class ScatteredSlices:
    """The search itself, between the two passes.

    Parameters
    ----------
    level : float
        As in `find_slices`.
    n : int
        How many rows there are.
    most : int
        Rows that are drawn, at most.
    plain : callable
        Reads a column of text as what it spells.

    Attributes
    ----------
    lots : Lots
        What the first pass does.
    """

    def __init__(self, level: float, n: int, most: int, plain: Callable[[AnyArray], AnyArray]) -> None:
        self._wanted = Wanted(2, 0.02, level, "over")
        self._coins, seed = seeds(None)
        self._most = min(most, draw.DRAWN)
        # A few more than are wanted: the number of lots below a bound is itself a matter of chance.
        share = (self._most + 6.0 * math.sqrt(self._most) + 50.0) / n
        self.lots = Lots(seed, _WRAP if share >= 1.0 else int(share * _WRAP), plain)

    def search(self, share: Share, clusters: Clusters | None) -> Numbers:
        """Search the rows that were drawn, and say what the second pass does."""
        self._total = share.total
        drawn = Drawn.joined(share.drawn)
        order = np.argsort(noise(drawn.rows, self.lots.seed), kind="stable")[: self._most]
        halves = Halves.of_sums(self._coins, clusters)
        self._found = Candidates.of_drawn(self._wanted, drawn.take(order), halves, share.kinds)
        return Numbers(halves, self._found.conditions, {name: share.kinds[name] for name in self._found.features})

    def slices(self, share: Share, tally: Tally) -> Slices:
        """Say what was found, by the sums of the second pass."""
        if share.total != self._total:
            raise EngineError(
                "the partitions held other rows when they were read again, so that slices cannot be estimated on rows "
                "other than those they were found on.\n\nHint: something in the frame is drawn at random, or changes: "
                "write the rows to a file first, and evaluate that."
            )
        return self._found.slices(tally)
