"""The sums that everything else is read off: a `Summary`, or an array with a row for each key. Both merge with `+`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from .. import documents
from .._checks.columns import steadied
from .._types import AnyArray, FloatArray
from ..errors import MergeError, RangeError

__all__ = [
    "CLOSE", "COLUMN", "LIKE", "OF_CLASSES", "OPTIONAL", "ZERO", "Summary", "added_rows", "added_up", "adds_up",
    "as_numbers", "as_sums", "completed", "different_families", "incoherent", "read", "summaries", "written",
]  # fmt: skip


@steadied
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

    def __post_init__(self) -> None:
        # Squares and cubes may be infinite, and are looked at as that; a mean must not be, unless it is impossible.
        if math.isinf(self.sum_excess) or (self.sum_entropy is not None and math.isinf(self.sum_entropy)):
            raise RangeError(
                "the surprise of these rows adds up to more than a float holds: some log-odds, errors or weights are "
                "far too large.\n\nHint: look at the largest of them; logits beyond 1e200 are no predictions."
            )

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
        summary = cls(**_content(document))
        wrong = incoherent(as_sums([summary]))
        if wrong is not None:
            documents.refuse(wrong[1])
        return summary


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
OF_CLASSES = ("predicted", "observed", "confidence", "correct", "brier")


def as_sums(by_key: Sequence[Summary]) -> FloatArray:
    """Arrange summaries as a `summed` array: absent sums are NaN, and empty rows 0."""
    rows = [
        [math.nan if (x := getattr(s, name)) is None else x for name in _NAMES] if s.n else _NOTHING for s in by_key
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(_NAMES))


_NOTHING = [0.0] * len(_NAMES)


def completed(sums: dict[str, FloatArray]) -> FloatArray:
    """Arrange sums by key as `summaries` reads them, and add those that follow where rows have no weights."""
    sums.setdefault("weight", sums["n"])
    table = np.empty((len(sums["n"]), len(COLUMN)))
    for k, name in enumerate(COLUMN):
        column = sums.get(name)
        table[:, k] = sums.get(LIKE.get(name, ""), _ABSENT.get(name, math.nan)) if column is None else column
    return table


# Without weights, every power of a weight is 1; what is absent is 0 or NaN.
LIKE = {
    "weight2": "weight",
    "weight3": "weight",
    "sum_excess_weight2": "sum_excess",
    "sum_excess_weight3": "sum_excess",
    "sum_excess2_weight3": "sum_excess2_weight2",
    "sum_varentropy_weight2": "sum_varentropy",
}
ZERO = ("n_impossible", "weight_impossible", "sum_numerical_variance_weight2")
_ABSENT = dict.fromkeys(ZERO, 0.0)


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


def added_rows(sums: FloatArray, index: AnyArray, size: int) -> FloatArray:
    """Add up the rows of an array of sums that have the same number."""
    total = np.zeros((size, sums.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, index, sums)
    return total


def as_numbers(sums: FloatArray) -> list[list[float | str | None]]:
    """Return the rows of an array of sums as a document holds them."""
    return [[documents.number(x) for x in row] for row in sums.tolist()]


def written(sums: FloatArray) -> Iterator[dict[str, Any]]:
    """Write each row of a `summed` array as the document of its Summary."""
    columns: list[list[Any]] = [sums[:, k].astype(np.int64).tolist() for k in (0, 1)]
    for column in sums.T[2:]:
        values = column.tolist()
        columns.append(values if np.isfinite(column).all() else [documents.number(x) for x in values])
    for row in zip(*columns, strict=True):
        yield documents.document("summary", dict(zip(_NAMES, row, strict=True))) if row[0] else Summary().to_dict()


_some, _any = documents.between(0.0), documents.read_number
_power = documents.between(0.0, infinite=True)
_FIELDS: dict[str, Any] = {name: documents.optional(_some) if k >= OPTIONAL else _any for name, k in COLUMN.items()}
_FIELDS |= dict.fromkeys(("n", "n_impossible"), documents.count())
_FIELDS |= dict.fromkeys(("weight", "weight_impossible", "weight2", "weight3"), _some)
_FIELDS |= dict.fromkeys(("sum_excess2_weight2", "sum_excess2_weight3"), _power)
_FIELDS |= dict.fromkeys(("sum_varentropy", "sum_varentropy_weight2", "sum_numerical_variance_weight2"), _some)
_FIELDS |= {"sum_excess3_weight3": documents.between(infinite=True), "sum_entropy": documents.optional(_any)}
_EMPTY = {name: getattr(Summary(), name) for name in _NAMES}


def _content(document: Any) -> dict[str, Any]:
    content = documents.read("summary", document, _FIELDS)
    if content["n"] == 0 and content != _EMPTY:
        documents.refuse("must have no sums where `n` is 0")
    return content


def read(document: Any) -> list[float]:
    """Read the document of a summary as a row of a `summed` array; rows are then to be checked by `incoherent`."""
    return [math.nan if x is None else x for x in _content(document).values()]


def adds_up(sums: FloatArray, total: Summary) -> str | None:
    """Tell which sum of a `summed` array is not that of a summary of the same rows; None where all are."""
    with np.errstate(all="ignore"):
        wanted, totals, size = as_sums([total])[0], sums.sum(axis=0), np.abs(sums).sum(axis=0)
        square = np.nan_to_num(wanted[COLUMN["sum_excess2_weight2"]])
        # Sums in nats may cancel, so that rounding is measured by what was added, of which the squares tell.
        rounding = total.n + total.weight + total.weight3 + math.sqrt(total.n) * math.sqrt(square) + square**1.5
        near = np.abs(totals - wanted) <= 1e-6 * (size + np.abs(wanted)) + 1e-9 * rounding
    exact = np.arange(len(totals)) < 2  # counts
    same = (totals == wanted) | (near & ~exact) | (np.isnan(wanted) & (np.isnan(totals) | (totals == 0.0)))
    return None if same.all() else _NAMES[int((~same).argmax())]


CLOSE = 1.0 + 1e-6  # what rounding may do to sums


def incoherent(sums: FloatArray) -> tuple[int, str] | None:
    """Find a row of a `summed` array that no rows have as their sums: its number, and the rule that it breaks."""
    x = dict(zip(_NAMES, sums.T, strict=True))
    n, weight = x["n"], x["weight"]
    with np.errstate(all="ignore"):
        rows, tiny = n - x["n_impossible"], 1e-140 * weight
        possible = weight - x["weight_impossible"]
        square, w2, w3 = x["sum_excess2_weight2"], x["weight2"], x["weight3"]
        near = 1e-9 * weight
        bounds = {
            "`n_impossible` must not exceed `n`": (x["n_impossible"], n),
            "`weight_impossible` must not exceed `weight`": (x["weight_impossible"], weight * CLOSE),
            "`weight_impossible` must be 0 where `n_impossible` is": (
                x["weight_impossible"],
                np.where(x["n_impossible"] > 0.0, np.inf, 0.0),
            ),
            "`weight2` must be what weights that add up to `weight` can have": (w2, (possible + near) ** 2),
            "`weight` must be what weights with these squares can have": (possible - near, np.sqrt(rows * w2)),
            "`weight3` must be what weights with these squares can have": (w3, w2**1.5),
            "`sum_excess` must be what these squares allow": (abs(x["sum_excess"]), np.sqrt(rows) * np.sqrt(square)),
            "`sum_excess_weight2` must be what these squares allow": (
                abs(x["sum_excess_weight2"]),
                np.sqrt(w2) * np.sqrt(square),
            ),
            "`sum_excess_weight3` must be what these squares allow": (
                abs(x["sum_excess_weight3"]),
                np.sqrt(w3) * np.sqrt(x["sum_excess2_weight3"]),
            ),
            "`sum_excess2_weight3` must be what these weights allow": (x["sum_excess2_weight3"], square * np.sqrt(w2)),
            "`sum_excess3_weight3` must be what these squares allow": (abs(x["sum_excess3_weight3"]), square**1.5),
            "`sum_varentropy_weight2` must be what these weights allow": (
                x["sum_varentropy_weight2"],
                x["sum_varentropy"] * np.sqrt(w2),
            ),
            **{f"`sum_{name}` must not exceed `weight`": (x[f"sum_{name}"], weight) for name in OF_CLASSES[:-1]},
            "`sum_brier` must not exceed twice `weight`": (x["sum_brier"], 2.1 * weight),
        }
        for rule, (low, high) in bounds.items():
            bad = low > high * CLOSE + tiny  # not where a sum is absent, NaN
            if bad.any():
                return int(bad.argmax()), f"must add up: {rule}"
    return None
