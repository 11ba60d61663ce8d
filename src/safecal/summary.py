"""The sums that everything else is read off. They merge with ``+``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from . import documents
from ._kernels.sums import Runs, column_sums, counts
from ._types import FloatArray, IndexArray
from .errors import MergeError
from .scored import Scored

__all__ = [
    "COLUMN",
    "OPTIONAL",
    "Summary",
    "added_up",
    "as_sums",
    "completed",
    "different_families",
    "read",
    "summaries",
    "summed",
    "written",
]


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums over scored rows: constant in size, exact under merging, enough for every mean.

    Add two summaries of different rows to get the summary of all of them; the empty ``Summary()`` changes nothing.
    ``sum_X_weight2`` is the sum of ``w**2 * X`` with row weights ``w``, and so on; without weights every ``w`` is 1.
    Sums in nats, and ``weight2`` and ``weight3``, run over the possible rows only: an impossible outcome would turn
    each of them into infinity. Such rows are counted in ``n_impossible`` and ``weight_impossible``, and the means
    (`ecd`, `nll`) are ``+inf`` when there are any.

    Attributes
    ----------
    n, n_impossible : int
        Rows, and rows whose outcome had probability zero.
    weight, weight_impossible, weight2, weight3 : float
        Sums of the weights and of their powers.
    sum_excess, sum_excess_weight2, sum_excess_weight3 : float
        Sums of surprisal minus entropy.
    sum_excess2_weight2, sum_excess2_weight3, sum_excess3_weight3 : float
        Sums of its square and cube.
    sum_varentropy, sum_varentropy_weight2 : float
        Sums of the variance that the excess has if the model is calibrated.
    sum_third_cumulant_weight3 : float
        Sum of the third cumulant that the excess has if the model is calibrated.
    sum_numerical_variance_weight2 : float
        Sum of the variance that comes from numerical draws.
    sum_entropy : float or None
        Sum of the entropies; None for unnormalised densities.
    sum_predicted, sum_observed, sum_confidence, sum_correct, sum_brier : float or None
        Sums of the columns of classification; None for states and densities.

    Examples
    --------
    >>> import safecal
    >>> monday = safecal.bernoulli([1, 0, 1], [0.9, 0.2, 0.6]).summary()
    >>> tuesday = safecal.bernoulli([0, 0], [0.7, 0.1]).summary()
    >>> week = monday + tuesday
    >>> week.n, round(week.ecd, 4)
    (5, -0.0572)
    """

    n: int = 0
    n_impossible: int = 0
    weight: float = 0.0
    weight_impossible: float = 0.0
    weight2: float = 0.0
    weight3: float = 0.0
    sum_excess: float = 0.0
    sum_excess_weight2: float = 0.0
    sum_excess_weight3: float = 0.0
    sum_excess2_weight2: float = 0.0
    sum_excess2_weight3: float = 0.0
    sum_excess3_weight3: float = 0.0
    sum_varentropy: float = 0.0
    sum_varentropy_weight2: float = 0.0
    sum_third_cumulant_weight3: float = 0.0
    sum_numerical_variance_weight2: float = 0.0
    sum_entropy: float | None = None
    sum_predicted: float | None = None
    sum_observed: float | None = None
    sum_confidence: float | None = None
    sum_correct: float | None = None
    sum_brier: float | None = None

    def __add__(self, other: Summary) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        merged: dict[str, Any] = {}
        for name in _NAMES:
            a, b = getattr(self, name), getattr(other, name)
            if (a is None) != (b is None):
                raise different_families(name)
            merged[name] = None if a is None else a + b
        return Summary(**merged)

    def __radd__(self, other: object) -> Summary:
        return self if other == 0 else NotImplemented  # so that sum() works

    def _mean(self, total: float | None) -> float:
        if total is None or self.weight == 0.0:
            return math.nan
        return total / self.weight

    @property
    def ecd(self) -> float:
        """Mean excess in nats: ``> 0`` over-confident, ``< 0`` under-confident, NaN when there are no rows."""
        return math.inf if self.weight_impossible > 0.0 else self._mean(self.sum_excess)

    @property
    def ecd_possible(self) -> float:
        """Mean excess over the rows whose outcome was possible; equal to `ecd` when all of them were."""
        possible = self.weight - self.weight_impossible
        return self.sum_excess / possible if possible > 0.0 else math.nan

    @property
    def mean_entropy(self) -> float:
        """Mean entropy in nats over the possible rows: how unsure the model says it is; NaN when unnormalised."""
        possible = self.weight - self.weight_impossible
        return math.nan if self.sum_entropy is None or possible <= 0.0 else self.sum_entropy / possible

    @property
    def nll(self) -> float:
        """Mean surprisal in nats, smaller is better; NaN for unnormalised densities."""
        if self.sum_entropy is None:
            return math.nan
        return math.inf if self.weight_impossible > 0.0 else self._mean(self.sum_entropy + self.sum_excess)

    @property
    def brier(self) -> float:
        """Mean squared distance between probabilities and outcome, smaller is better."""
        return self._mean(self.sum_brier)

    @property
    def accuracy(self) -> float:
        """Share of rows in which the most likely class happened."""
        return self._mean(self.sum_correct)

    @property
    def mean_confidence(self) -> float:
        """Mean probability of the most likely class."""
        return self._mean(self.sum_confidence)

    @property
    def mean_predicted(self) -> float:
        """Mean predicted probability of the positive class (two classes) or of the most likely one."""
        return self._mean(self.sum_predicted)

    @property
    def mean_observed(self) -> float:
        """Share of rows in which the class of `mean_predicted` happened."""
        return self._mean(self.sum_observed)

    @property
    def bias(self) -> float:
        """Observed minus predicted: ``> 0`` when the class happens more often than predicted."""
        if self.sum_observed is None or self.sum_predicted is None:
            return math.nan
        return self._mean(self.sum_observed - self.sum_predicted)

    @property
    def numerical_error(self) -> float:
        """Standard error of `ecd` that comes from numerical draws alone; 0 when nothing was drawn."""
        return self._mean(math.sqrt(self.sum_numerical_variance_weight2))

    def __repr__(self) -> str:
        impossible = f", n_impossible={self.n_impossible}" if self.n_impossible else ""
        nll = "" if self.sum_entropy is None else f", nll={self.nll:.6g}"
        return f"Summary(n={self.n}{impossible}, ecd={self.ecd:+.6g}{nll})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document of the sums."""
        return documents.document("summary", {name: _written(getattr(self, name)) for name in _NAMES})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("summary", document, _NAMES)
        values: dict[str, Any] = {name: float(x) if isinstance(x := content[name], str) else x for name in _NAMES}
        return cls(**values)


def different_families(name: str) -> MergeError:
    """Return the error for sums that do not add up."""
    return MergeError(
        f"summaries must come from the same family; `{name}` exists in one of the two only.\n\n"
        "Hint: keep summaries of classifiers, of states and of unnormalised densities apart."
    )


def _written(value: float | None) -> float | str | None:
    return None if value is None else documents.number(value)


_NAMES = tuple(f.name for f in fields(Summary))
COLUMN = {name: k for k, name in enumerate(_NAMES)}  # where each sum stands in a `summed` array
OPTIONAL = COLUMN["sum_entropy"]  # from here on, sums that not every family has
_ALL_ROWS = ("predicted", "observed", "confidence", "correct", "brier")


def _information(s: Scored, w: FloatArray | None) -> dict[str, Any]:
    """Return the columns in nats to sum, by the name of their sum; impossible rows give 0."""
    e, v, k3, h, nv = s.excess, s.varentropy, s.third_cumulant, s.entropy, s.numerical_variance
    impossible = s.impossible
    columns: dict[str, Any] = {"n_impossible": None, "weight_impossible": None}
    w2: FloatArray | None = None
    if impossible.any():
        columns |= {"n_impossible": impossible, "weight_impossible": impossible if w is None else impossible * w}
        e, v, k3 = (np.where(impossible, 0.0, x) for x in (e, v, k3))
        h = None if h is None else np.where(impossible, 0.0, h)
        nv = None if nv is None else np.where(impossible, 0.0, nv)
        w = (~impossible).astype(np.float64) if w is None else np.where(impossible, 0.0, w)
    if w is None:
        e2 = e * e
        columns |= {"sum_excess": e, "sum_excess2_weight2": e2, "sum_excess3_weight3": e2 * e}
        columns |= {"sum_varentropy": v, "sum_third_cumulant_weight3": k3}
    else:
        w2 = w * w
        we = w * e
        we2 = we * we
        columns |= {"weight2": w2, "weight3": w2 * w}
        columns |= {"sum_excess": we, "sum_excess_weight2": w * we, "sum_excess_weight3": w2 * we}
        columns |= {"sum_excess2_weight2": we2, "sum_excess2_weight3": w * we2, "sum_excess3_weight3": we2 * we}
        columns |= {
            "sum_varentropy": w * v,
            "sum_varentropy_weight2": w2 * v,
            "sum_third_cumulant_weight3": w2 * w * k3,
        }
        h = None if h is None else w * h
        nv = None if nv is None else w2 * nv
    if h is not None:
        columns["sum_entropy"] = h
    if nv is not None:
        columns["sum_numerical_variance_weight2"] = nv
    return columns


def summed(
    scored: Scored, weight: FloatArray | None = None, index: IndexArray | Runs | None = None, size: int = 1
) -> FloatArray:
    """Sum a block by key, as a ``(size, sums)`` array that `summaries` reads; absent sums are NaN.

    ``index`` numbers the key of each row, or tells the runs of rows sorted by key. Arrays of the same keys add up.
    """
    with np.errstate(over="ignore"):  # the square of an excess beyond 1e154 is infinite; the excess itself is not
        columns = {name: c for name, c in _information(scored, weight).items() if c is not None}
    for name in _ALL_ROWS:
        column = getattr(scored, name)
        if column is not None:
            columns[f"sum_{name}"] = column if weight is None else weight * column
    if weight is not None:
        columns["weight"] = weight
    sums = dict(zip(columns, column_sums(list(columns.values()), index, size).T, strict=True))
    sums["n"] = counts(len(scored), index, size)
    return completed(sums)


def completed(sums: dict[str, FloatArray]) -> FloatArray:
    """Arrange sums by key as `summaries` reads them, and add those that follow where rows have no weights."""
    size = len(sums["n"])
    sums.setdefault("weight", sums["n"])
    for absent in ("n_impossible", "weight_impossible", "sum_numerical_variance_weight2"):
        sums.setdefault(absent, np.zeros(size))
    for power in ("2", "3"):  # without weights, every power of a weight is 1
        sums.setdefault(f"weight{power}", sums["weight"])
        sums.setdefault(f"sum_excess_weight{power}", sums["sum_excess"])
    sums.setdefault("sum_excess2_weight3", sums["sum_excess2_weight2"])
    sums.setdefault("sum_varentropy_weight2", sums["sum_varentropy"])
    nothing = np.full(size, np.nan)
    return np.stack([sums.get(name, nothing) for name in _NAMES], axis=1)


def summaries(sums: FloatArray) -> tuple[Summary, ...]:
    """Turn each row of a `summed` array into a Summary."""
    return tuple(_summary(row) for row in sums.tolist())


def _summary(row: Sequence[float]) -> Summary:
    if row[0] == 0.0:
        return Summary()
    optional = (None if x != x else x for x in row[OPTIONAL:])
    return Summary(int(row[0]), int(row[1]), *row[2:OPTIONAL], *optional)


def added_up(sums: FloatArray) -> Summary:
    """Add up the rows of a `summed` array."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _summary(sums.sum(axis=0).tolist())


def as_sums(found: Sequence[Summary]) -> FloatArray:
    """Arrange summaries as a `summed` array: absent sums are NaN, and empty rows 0."""
    rows = [[math.nan if (x := getattr(s, name)) is None else x for name in _NAMES] if s.n else _NOTHING for s in found]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(_NAMES))


_NOTHING = [0.0] * len(_NAMES)


def written(sums: FloatArray) -> Iterator[dict[str, Any]]:
    """Write each row of a `summed` array as the document of its Summary."""
    columns: list[list[Any]] = [sums[:, k].astype(np.int64).tolist() for k in (0, 1)]
    for column in sums.T[2:]:
        values = column.tolist()
        columns.append(values if np.isfinite(column).all() else [documents.number(x) for x in values])
    for row in zip(*columns, strict=True):
        yield documents.document("summary", dict(zip(_NAMES, row, strict=True))) if row[0] else Summary().to_dict()


def read(found: Iterable[Mapping[str, Any]]) -> FloatArray:
    """Read documents of summaries into the array that `written` wrote."""
    contents = (documents.body("summary", document, _NAMES) for document in found)
    rows = [[math.nan if (x := content[name]) is None else float(x) for name in _NAMES] for content in contents]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(_NAMES))
