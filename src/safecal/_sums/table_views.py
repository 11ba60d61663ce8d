"""What is read off a table: reliability by key, the sums of one key, plain columns as a frame or an Arrow stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, final, get_args

import numpy as np

from .._checks.columns import choice, one_side, steadied
from .._optional import require
from .._types import BoolArray, FloatArray, Side, SideGiven
from ..errors import MissingExtraError, UnavailableError
from .splits import Bins
from .summary import Summary

if TYPE_CHECKING:
    from ..inference import Interval
    from ..judge.groups import GroupVerdict
    from .table import Table

__all__ = [
    "SIDES", "KeySummary", "ReliabilityByKey", "arrow_stream", "frame_of", "key_columns", "key_label",
    "table_columns",
]  # fmt: skip

LIBRARIES = ("pandas", "polars")
SIDES = get_args(Side)

Columns = Mapping[str, Sequence[Any]]


def frame_of(columns: Columns, library: str | None = None) -> Any:
    """Return columns as a DataFrame of the library that is named; by default pandas where it is installed, else Polars.

    Examples
    --------
    >>> frame_of({"n": [1, 2]}, "pandas").shape
    (2, 1)
    """
    asked = LIBRARIES if library is None else (choice(library, "library", LIBRARIES),)
    for name in asked:
        try:
            frames = import_module(name)
        except ImportError:
            continue
        return frames.DataFrame({name: list(values) for name, values in columns.items()})
    what = " or ".join(name.capitalize() if name == "polars" else name for name in asked)
    raise MissingExtraError(f"`to_frame` needs {what}, which is not installed.\n\nHint: pip install {asked[-1]}")


def arrow_stream(columns: Columns, requested_schema: object = None) -> object:
    """Return columns as a capsule of the Arrow C stream interface, made by pyarrow."""
    pa = require("pyarrow", "the Arrow stream of a table needs PyArrow", "frames")
    table = pa.table({name: list(values) for name, values in columns.items()})
    return table.__arrow_c_stream__(requested_schema)


def key_columns(name: str, keys: Sequence[Hashable], labels: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return keys as columns: one for each part of a tuple; values of several types, which no column holds, as text.

    Examples
    --------
    >>> key_columns("site, year", [("north", 2024), ("south", 2025)], ["north / 2024", "south / 2025"])
    {'site': ['north', 'south'], 'year': [2024, 2025]}
    """
    names = name.split(", ")
    parts = [key if isinstance(key, tuple) else (key,) for key in keys]
    if len(names) > 1 and all(len(part) == len(names) for part in parts):
        return {names[j]: _of_one_type([part[j] for part in parts]) for j in range(len(names))}
    return {name: labels if any(isinstance(key, tuple) for key in keys) else _of_one_type(list(keys))}


def key_label(key: Hashable) -> str:
    """Write a key; a whole number has no decimals, since pandas turns 2021 into 2021.0 where others are missing.

    Examples
    --------
    >>> key_label(("north", None, 2021.0))
    'north / missing / 2021'
    """
    if key is None:
        return "missing"
    if isinstance(key, tuple):
        return " / ".join(map(key_label, key))
    whole = isinstance(key, float) and key.is_integer() and abs(key) < 1e15
    return str(int(key)) if isinstance(key, float) and whole else str(key)


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 or kinds == {int, float} else [None if v is None else str(v) for v in values]


def table_columns(table: Table, level: float = 0.95) -> dict[str, Sequence[Any]]:
    """Return what is known of each key of a table."""
    if table.bins is not None:
        edges = table.bins.edges
        columns: dict[str, Sequence[Any]] = {f"{table.name}_low": edges[:-1], f"{table.name}_high": edges[1:]}
    else:
        columns = key_columns(table.name, table.keys, table.labels)
    columns |= {"n": table.n.tolist(), "n_impossible": table.n_impossible.tolist(), "share": table.weights.tolist()}
    if not np.isnan(table.column("sum_predicted")).any():
        columns |= {"predicted": table.predicted.tolist(), "observed": table.observed.tolist()}
        columns["esce"] = table.gaps.tolist()
    if table.bins is None and not np.isnan(table.column("sum_entropy")).any():
        columns["nll"] = [summary.nll for summary in table.summaries]
    intervals = table.intervals(level)
    columns |= {"ecd": table.ecd.tolist(), "ecd_low": [i.low for i in intervals]}
    return columns | {"ecd_high": [i.high for i in intervals]}


@steadied
class ReliabilityByKey(ABC):
    """Predicted beside observed, by key: what ECE and ESCE are read off."""

    __slots__ = ()

    bins: Bins | None
    top_label: bool

    @abstractmethod
    def column(self, name: str) -> FloatArray:
        """Return a sum of `Summary` by key, by its name; NaN where it does not exist."""

    def _mean(self, name: str) -> FloatArray:
        """Return the mean of a column by key; NaN where empty, or where there is no such column."""
        weight = self.column("weight")
        means = np.full(len(weight), np.nan)
        np.divide(self.column(name), weight, out=means, where=weight != 0.0)
        return means

    @property
    def weights(self) -> FloatArray:
        """Share of the weight in each row of the table."""
        shares = self.column("weight")
        return shares / shares.sum() if shares.sum() > 0 else shares.copy()

    @property
    def predicted(self) -> FloatArray:
        """Mean predicted probability by key; NaN where empty."""
        return self._mean("sum_confidence" if self.top_label else "sum_predicted")

    @property
    def observed(self) -> FloatArray:
        """Share of occurrence by key; NaN where empty."""
        return self._mean("sum_correct" if self.top_label else "sum_observed")

    @property
    def ecd(self) -> FloatArray:
        """ECD by key; NaN where empty. Their weighted sum is the ECD of all rows, whatever the bins."""
        return np.where(self.column("weight_impossible") > 0.0, np.inf, self._mean("sum_excess"))

    @property
    def gaps(self) -> FloatArray:
        """Observed minus predicted by key, the unweighted ESCE; NaN where empty."""
        return self.observed - self.predicted

    def _reliability(self) -> FloatArray:
        if np.isnan(self.column("sum_predicted")).any():
            raise UnavailableError("ECE and ESCE compare probabilities of classes; these predictions have none.")
        predicted, observed = ("sum_confidence", "sum_correct") if self.top_label else ("sum_predicted", "sum_observed")
        weight = float(self.column("weight").sum()) or 1.0  # without any, nothing was summed
        return (self.column(observed) - self.column(predicted)) / weight

    def overconfident(self) -> BoolArray:
        """Tell for each key whether the gap lies on the over-confident side.

        For the most likely class that is observed below predicted. For the positive class it is observed nearer to one
        half than predicted: above it when the prediction is below one half, below it when the prediction is above.
        """
        gaps, predicted = self.gaps, self.predicted
        return gaps < 0 if self.top_label else gaps * np.sign(predicted - 0.5) < 0

    def ece(self, side: SideGiven | None = None) -> float:
        """Weighted mean of the absolute gaps of bins: 0 is best.

        Parameters
        ----------
        side : {"over-confident", "under-confident"}, optional
            Only that part of it. The two parts add up to the whole.

        Returns
        -------
        float
            The expected calibration error, or a part of it.

        Raises
        ------
        UnavailableError
            For groups: the ECE of a group is over bins of its own rows, which are not here.
        """
        if self.bins is None:
            raise UnavailableError(
                "ECE is over bins, and this is a table of groups.\n\n"
                "Hint: evaluate the rows of a group by themselves, or read `gaps`, their ESCE."
            )
        gaps = np.abs(self._reliability())
        if side is None:
            return float(gaps.sum())
        over = self.overconfident()
        return float(gaps[over if one_side(side, "side", SIDES) == "over-confident" else ~over].sum())

    def esce(self) -> float:
        """Weighted mean of the signed gaps: ``> 0`` when the class happens more often than predicted."""
        return float(self._reliability().sum())


@final
class KeySummary(Summary):
    """The sums of one key of a table: a `Summary`. For a group of an evaluation it knows its verdict, too.

    Attributes
    ----------
    verdict : GroupVerdict
        Whether the model is safe in the group, by bounds that hold together with those of all other groups.
    interval : Interval
        ECD of the group, with those bounds.
    temperature : Interval
        The temperature that the group asks for.
    ratio : Interval or None
        Mistakes made over mistakes announced; None for states and densities.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> right = np.arange(2000) % 10 < np.where(np.arange(2000) < 1000, 9, 6)
    >>> result = safecal.evaluate(right, np.full(2000, 0.9), by=np.repeat(["east", "west"], 1000))
    >>> west = result.groups["west"]
    >>> west.n, round(west.ecd, 3), west.verdict.decision, round(west.interval.low, 3)
    (1000, 0.659, 'UNSAFE', 0.56)
    """

    __slots__ = ("_judge",)

    _judge: Callable[[], GroupVerdict] | None

    def __init__(self, summary: Summary, judge: Callable[[], GroupVerdict] | None = None) -> None:
        super().__init__(*_values(summary))
        object.__setattr__(self, "_judge", judge)

    def __reduce__(self) -> tuple[type[Summary], tuple[Any, ...]]:
        return Summary, _values(self)  # what judges it is not written down

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if isinstance(other, Summary) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        return repr(Summary(*_values(self)))

    @property
    def verdict(self) -> GroupVerdict:
        """Whether the model is safe in the group."""
        if self._judge is None:
            raise UnavailableError(
                "only a group of an evaluation has a verdict; these are sums alone.\n\n"
                'Hint: `safecal.evaluate(..., by=column).groups["north"].verdict`.'
            )
        return self._judge()

    @property
    def interval(self) -> Interval:
        """ECD of the group, with bounds that hold together with those of all other groups."""
        return self.verdict.ecd

    @property
    def temperature(self) -> Interval:
        """The temperature that the group asks for, with such bounds."""
        return self.verdict.temperature

    @property
    def ratio(self) -> Interval | None:
        """Mistakes made over mistakes announced, with such bounds; None for states and densities."""
        return self.verdict.ratio


def _values(summary: Summary) -> tuple[Any, ...]:
    return tuple(getattr(summary, field.name) for field in fields(Summary))
