"""Key to Summary, for bins and for groups; what is binned is read off it. Tables merge with ``+``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from . import documents
from ._checks.columns import choice
from ._types import BoolArray, FloatArray
from .bins import Bins
from .errors import MergeError, UnavailableError
from .summary import Summary, as_sums

if TYPE_CHECKING:
    from .inference.results import Interval

__all__ = ["SIDES", "Table", "bin_keys"]

SIDES = ("overconfident", "underconfident")


@final
@dataclass(frozen=True, slots=True, eq=True)
class Table:
    """Summaries by key: one for each bin, or one for each group.

    Attributes
    ----------
    name : str
        What the keys are: ``"probability"``, ``"confidence"`` or ``"entropy"`` for bins, else the grouping.
    keys : tuple
        For bins ``(low, high)`` pairs, for groups the values of the column (tuples for several columns).
    summaries : tuple of Summary
        One for each key; empty ones included, for bins.
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
    summaries: tuple[Summary, ...]
    bins: Bins | None = None
    top_label: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.keys)

    def items(self) -> Iterator[tuple[Hashable, Summary]]:
        """Iterate over pairs of key and Summary."""
        return zip(self.keys, self.summaries, strict=True)

    def __getitem__(self, key: Hashable) -> Summary:
        try:
            return self.summaries[self.keys.index(key)]
        except ValueError:
            raise KeyError(key) from None

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys as text."""
        if self.bins is not None:
            return self.bins.labels
        return tuple(" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in self.keys)

    @property
    def total(self) -> Summary:
        """The summary of all rows."""
        return sum(self.summaries, Summary())

    @property
    def weights(self) -> FloatArray:
        """Share of the weight in each row of the table."""
        shares = np.array([s.weight for s in self.summaries])
        return shares / shares.sum() if shares.sum() > 0 else shares

    @property
    def predicted(self) -> FloatArray:
        """Mean predicted probability by key; NaN where empty."""
        return np.array([s.mean_confidence if self.top_label else s.mean_predicted for s in self.summaries])

    @property
    def observed(self) -> FloatArray:
        """Share of occurrence by key; NaN where empty."""
        return np.array([s.accuracy if self.top_label else s.mean_observed for s in self.summaries])

    @property
    def ecd(self) -> FloatArray:
        """ECD by key; NaN where empty. Their weighted sum is the ECD of all rows, whatever the bins."""
        return np.array([s.ecd for s in self.summaries])

    @property
    def gaps(self) -> FloatArray:
        """Observed minus predicted by key, the unweighted ESCE; NaN where empty."""
        return self.observed - self.predicted

    def _reliability(self) -> FloatArray:
        if any(s.n and s.sum_predicted is None for s in self.summaries):
            raise UnavailableError("ECE and ESCE compare probabilities of classes; these predictions have none.")
        return np.nan_to_num(self.gaps * self.weights)

    def overconfident(self) -> BoolArray:
        """Tell for each key whether the gap lies on the over-confident side.

        For the most likely class that is observed below predicted. For the positive class it is observed nearer to one
        half than predicted: above it when the prediction is below one half, below it when the prediction is above.
        """
        gaps, predicted = self.gaps, self.predicted
        return gaps < 0 if self.top_label else gaps * np.sign(predicted - 0.5) < 0

    def ece(self, side: str | None = None) -> float:
        """Weighted mean of the absolute gaps: 0 is best.

        Parameters
        ----------
        side : {"overconfident", "underconfident"}, optional
            Only that part of it. The two parts add up to the whole.

        Returns
        -------
        float
            The expected calibration error, or a part of it.
        """
        gaps = np.abs(self._reliability())
        if side is None:
            return float(gaps.sum())
        over = self.overconfident()
        return float(gaps[over if choice(side, "side", SIDES) == "overconfident" else ~over].sum())

    def esce(self) -> float:
        """Weighted mean of the signed gaps: ``> 0`` when the class happens more often than predicted."""
        return float(self._reliability().sum())

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Table):
            return NotImplemented
        if (self.name, self.bins, self.top_label) != (other.name, other.bins, other.top_label):
            raise MergeError(
                "tables must have the same bins or the same grouping; these two do not.\n\n"
                "Hint: take the bins from one of them: `bins=table.bins`."
            )
        merged = dict(self.items())
        for key, summary in other.items():
            merged[key] = merged.get(key, Summary()) + summary
        return type(self)(self.name, tuple(merged), tuple(merged.values()), self.bins, self.top_label)

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
        ecd = self.ecd.tolist()
        order = sorted(range(len(self)), key=lambda k: (math.isnan(ecd[k]), -ecd[k]))[:most]
        keys = tuple(self.keys[k] for k in order)
        return type(self)(self.name, keys, tuple(self.summaries[k] for k in order), None, self.top_label)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; keys keep their order."""
        rows = [{"key": documents.plain(k), "summary": s.to_dict()} for k, s in self.items()]
        bins = None if self.bins is None else self.bins.to_dict()
        return documents.document("table", {"name": self.name, "rows": rows, "bins": bins, "top_label": self.top_label})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("table", document, ("name", "rows", "bins", "top_label"))
        rows = content["rows"]
        bins = None if content["bins"] is None else Bins.from_dict(content["bins"])
        keys = bin_keys(bins) if bins is not None else tuple(_key(row["key"]) for row in rows)
        found = tuple(Summary.from_dict(row["summary"]) for row in rows)
        return cls(content["name"], keys, found, bins, content["top_label"])

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
        from .inference.keyed import intervals_together

        return intervals_together(as_sums(self.summaries), level)

    def __repr__(self) -> str:
        from .display import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from .display import table_html

        return table_html(self)


def _key(value: Any) -> Hashable:
    return tuple(_key(v) for v in value) if isinstance(value, list) else value


def bin_keys(bins: Bins) -> tuple[tuple[float, float], ...]:
    """Return the ends of each bin."""
    return tuple(zip(bins.edges[:-1], bins.edges[1:], strict=True))
