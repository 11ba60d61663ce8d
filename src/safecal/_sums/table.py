"""Key to Summary, for bins and for groups; what is binned is read off it. Tables merge with ``+``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from .. import documents
from .._checks import fail
from .._checks.columns import steadied
from .._types import FloatArray, IndexArray
from ..errors import DocumentError, MergeError, ShapeError
from .scored import Together, added, union
from .splits import Bins, bin_keys
from .summary import (
    COLUMN,
    OPTIONAL,
    Summary,
    added_up,
    as_sums,
    different_families,
    incoherent,
    read,
    summaries,
    written,
)
from .table_views import KeySummary, ReliabilityByKey, arrow_stream, frame_of, key_label, table_columns

if TYPE_CHECKING:
    from ..inference import Interval
    from ..judge.groups import GroupVerdict

__all__ = ["Table"]

_BLOCK = 4096  # summaries made at a time


@final
@steadied
@dataclass(frozen=True, slots=True, eq=False)
class Table(ReliabilityByKey):
    """Summaries by key: one for each bin, or one for each group. They are held as one array of sums.

    Attributes
    ----------
    name : str
        What the keys are: ``"probability"``, ``"confidence"`` or ``"entropy"`` for bins, else the grouping.
    keys : tuple
        For bins ``(low, high)`` pairs, for groups the values of the column (tuples for several columns).
    sums : ndarray of shape (keys, sums)
        The sums, one row for each key, empty ones included, for bins. The columns are the attributes of a `Summary`, in
        their order; NaN where a sum does not exist. It cannot be written to.
    bins : Bins or None
        The bins, or None for groups.
    top_label : bool
        Whether reliability compares the most likely class (True) or the positive one.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], bins=2)
    >>> [(key, round(summary.ecd, 3)) for key, summary in result.bins.items()]
    [((0.0, 0.5), -0.277), ((0.5, 1.0), -0.077)]
    """

    name: str
    keys: tuple[Hashable, ...]
    sums: FloatArray
    bins: Bins | None = None
    top_label: bool = False
    _places: dict[Hashable, int] = field(default_factory=dict, init=False, repr=False)
    _judge: Callable[[Hashable], GroupVerdict] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        array, wanted = np.asarray(self.sums), (len(self.keys), len(COLUMN))
        if array.shape != wanted:
            hint = "with a Summary for each key, use `Table.of_summaries(name, keys, summaries)`."
            raise fail(ShapeError, "sums", f"must have the shape {wanted}", got=f"shape {array.shape}", hint=hint)
        sums = array.astype(np.float64, copy=False)
        empty = sums[:, 0] == 0.0
        if empty.any():  # 0 in every column, so that it changes nothing when it is added
            sums = np.where(empty[:, None], 0.0, sums)
        elif sums.flags.writeable:
            sums = sums.copy()
        sums.flags.writeable = False
        object.__setattr__(self, "sums", sums)
        absent = np.isnan(sums[:, OPTIONAL:])
        mixed = absent.any(axis=0) & ~(absent | empty[:, None]).all(axis=0)
        if mixed.any():
            raise different_families(_SUMS[OPTIONAL + int(mixed.argmax())])

    @classmethod
    def of_summaries(
        cls,
        name: str,
        keys: Sequence[Hashable],
        summaries: Sequence[Summary],
        bins: Bins | None = None,
        top_label: bool = False,
    ) -> Self:
        """Make a table of a Summary for each key.

        Parameters
        ----------
        name : str
            What the keys are.
        keys : sequence
            The keys, each of them once.
        summaries : sequence of Summary
            One for each key.
        bins : Bins, optional
            The bins, where the keys are bins.
        top_label : bool, default False
            Whether reliability compares the most likely class.

        Returns
        -------
        Table
            The table.

        Examples
        --------
        >>> import safecal
        >>> monday = safecal.bernoulli([1, 0, 1], [0.9, 0.2, 0.6]).summary()
        >>> tuesday = safecal.bernoulli([0, 0], [0.7, 0.1]).summary()
        >>> safecal.Table.of_summaries("day", ["monday", "tuesday"], [monday, tuesday]).total.n
        5
        """
        return cls(name, tuple(keys), as_sums(summaries), bins, top_label)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.name, self.keys, self.sums, self.bins, self.top_label)

    def _kind(self) -> tuple[str, Bins | None, bool]:
        return self.name, self.bins, self.top_label

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        same = self._kind() == other._kind() and self.keys == other.keys
        return same and np.array_equal(self.sums, other.sums, equal_nan=True)

    def __hash__(self) -> int:
        return hash((*self._kind(), self.keys))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.keys)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """A Summary for each key, made anew each time."""
        return summaries(self.sums)

    def items(self) -> Iterator[tuple[Hashable, KeySummary]]:
        """Iterate over pairs of key and Summary."""
        for start in range(0, len(self), _BLOCK):
            rows = slice(start, start + _BLOCK)
            for key, summary in zip(self.keys[rows], summaries(self.sums[rows]), strict=True):
                yield key, self._key_summary(key, summary)

    def __getitem__(self, key: Hashable) -> KeySummary:
        place = self._place(key)
        return self._key_summary(self.keys[place], summaries(self.sums[place : place + 1])[0])

    def _key_summary(self, key: Hashable, summary: Summary) -> KeySummary:
        judge = self._judge
        return KeySummary(summary, None if judge is None else lambda: judge(key))

    def with_verdicts(self, judge: Callable[[Hashable], GroupVerdict]) -> Self:
        """Return the same table, the summaries of which answer with the verdict of their group."""
        judged = object.__new__(type(self))
        for name in self.__slots__:
            object.__setattr__(judged, name, getattr(self, name))
        object.__setattr__(judged, "_judge", judge)
        return judged

    def only(self, key: Hashable) -> Self:
        """Return the table of one group."""
        return self.take(np.array([self._place(key)], dtype=np.intp))

    def _place(self, key: Hashable) -> int:
        if len(self._places) != len(self.keys):
            self._places.update((k, place) for place, k in enumerate(self.keys))
        return self._places[key]

    def column(self, name: str) -> FloatArray:
        """Return a sum of `Summary` by key, by its name; NaN where it does not exist."""
        return self.sums[:, COLUMN[name]]

    @property
    def n(self) -> IndexArray:
        """Rows by key."""
        return self.column("n").astype(np.intp)

    @property
    def n_impossible(self) -> IndexArray:
        """Rows by key whose outcome had probability zero."""
        return self.column("n_impossible").astype(np.intp)

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys as text."""
        return self.bins.labels if self.bins is not None else tuple(map(key_label, self.keys))

    def label(self, place: int) -> str:
        """Return one of the `labels`.

        Parameters
        ----------
        place : int
            The place of the key in the table, counted from 0.

        Returns
        -------
        str
            The key as text.
        """
        return self.bins.label(place) if self.bins is not None else key_label(self.keys[place])

    @property
    def total(self) -> Summary:
        """The summary of all rows."""
        return added_up(self.sums)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Table):
            return NotImplemented
        return self.plus(other, union(self.keys, other.keys))

    def plus(self, other: Self, together: Together) -> Self:
        """Add a table, given where its keys stand among those of both.

        Parameters
        ----------
        other : Table
            The other table.
        together : tuple
            All keys, those of this table first, and the places of the other's keys among them.

        Returns
        -------
        Table
            What ``+`` gives.
        """
        if self._kind() != other._kind():
            raise MergeError(
                "tables must have the same bins or the same grouping; these two do not.\n\n"
                "Hint: take the bins from one of them: `bins=table.bins`."
            )
        _same_family(self.sums, other.sums)
        sums = added(self.sums, other.sums, together)
        return type(self)(self.name, together[0], _read_only(sums), self.bins, self.top_label)

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # so that sum() works

    def worst_first(self, most: int | None = None) -> Self:
        """Order the keys by their ECD, the most over-confident first.

        Parameters
        ----------
        most : int, optional
            Keep only so many.

        Returns
        -------
        Table
            For groups; bins stay in their order.
        """
        if self.bins is not None:
            return self
        return self.take(np.argsort(-self.ecd, kind="stable")[:most])  # NaN comes last

    def take(self, order: IndexArray) -> Self:
        """Return some of the groups, in the order of their places."""
        keys = tuple(map(self.keys.__getitem__, order.tolist()))
        return type(self)(self.name, keys, _read_only(self.sums[order]), None, self.top_label)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; keys keep their order."""
        rows = [{"key": documents.plain(k), "summary": s} for k, s in zip(self.keys, written(self.sums), strict=True)]
        bins = None if self.bins is None else self.bins.to_dict()
        return documents.document("table", {"name": self.name, "rows": rows, "bins": bins, "top_label": self.top_label})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = documents.read("table", document, _FIELDS)
        rows, bins = fields["rows"], fields["bins"]
        keys = tuple(row["key"] for row in rows)
        sums = np.array([row["summary"] for row in rows], dtype=np.float64).reshape(len(rows), len(COLUMN))
        wrong = incoherent(sums)
        with documents.at("rows"):
            if wrong is not None:
                with documents.at(wrong[0]), documents.at("summary"):
                    documents.refuse(wrong[1])
            if bins is not None:
                ends = bin_keys(bins)
                if len(keys) != len(ends) or not all(map(_is_bin, keys, ends)):
                    documents.refuse("must be the bins, one after the other")
                keys = ends
            documents.distinct(keys)
        try:
            return cls(fields["name"], keys, sums, bins, fields["top_label"])
        except MergeError as error:
            raise DocumentError(f"`rows` must be of one family: {error}") from error

    def intervals(self, level: float = 0.95) -> tuple[Interval, ...]:
        """Return ECD with its interval for each key, from its sums, so wide that all hold together.

        Parameters
        ----------
        level : float, default 0.95
            Confidence that every one of the intervals holds its ECD.

        Returns
        -------
        tuple of Interval
            One for each key; those whose ``low`` is above a limit are over-confident beyond it.
        """
        from ..inference.sum_bounds import intervals_together

        return intervals_together(self.sums, level)

    def to_frame(self, library: str | None = None, *, level: float = 0.95) -> Any:
        """Return the table as a DataFrame, one row for each key.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.
        level : float, default 0.95
            Confidence that all intervals of ECD hold together.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            The key, or both ends of a bin; ``n``, ``n_impossible``, ``share``; ``predicted``, ``observed`` and ``esce``
            of classes; ``nll`` of groups; ``ecd``, ``ecd_low`` and ``ecd_high``. NaN where a bin is empty.

        Examples
        --------
        >>> import safecal
        >>> result = safecal.evaluate([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], by=["a", "a", "b", "b"])
        >>> result.groups.to_frame("pandas")[["group", "n", "predicted", "observed"]]
          group  n  predicted  observed
        0     a  2       0.45       0.5
        1     b  2       0.75       0.5
        """
        return frame_of(table_columns(self, level), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(table_columns(self), requested_schema)

    def __repr__(self) -> str:
        from ..judge.display import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from ..judge.display import table_html

        return table_html(self)


_SUMS = tuple(COLUMN)


def _same_family(a: FloatArray, b: FloatArray) -> None:
    """Refuse to add sums where one side lacks some; a side without rows lacks nothing."""
    differ = np.isnan(a[:, OPTIONAL:]).any(axis=0) != np.isnan(b[:, OPTIONAL:]).any(axis=0)
    if differ.any() and a[:, 0].any() and b[:, 0].any():
        raise different_families(_SUMS[OPTIONAL + int(differ.argmax())])


def _read_only(sums: FloatArray) -> FloatArray:
    """Let nobody write to sums that were made for a table, which then need not copy them."""
    sums.flags.writeable = False
    return sums


def _is_bin(key: Any, ends: tuple[float, float]) -> bool:
    """Tell whether a key that was read is that of a bin."""
    return bool(key == documents.key(documents.plain(ends))) and not any(isinstance(end, bool) for end in key)


_FIELDS: dict[str, Any] = {
    "name": documents.text,
    "rows": documents.list_of(documents.record({"key": documents.key, "summary": read})),
    "bins": documents.optional(Bins.from_dict),
    "top_label": documents.flag,
}
