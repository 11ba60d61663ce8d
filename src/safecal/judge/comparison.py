"""Two models on the same rows: which is less over-confident, and at what price.

ECD is no proper score: a model that says nothing has an ECD of 0. So the difference in ECD is always read beside the
difference in NLL, and the sentence in words weighs both.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self, final

from .. import documents
from .._checks.columns import steadied
from .._sums.table_views import arrow_stream, frame_of
from ..inference import Interval
from .display import ends_text, number, titled_html, titled_text, with_ends

__all__ = ["Comparison", "Difference", "SideBySide"]


@final
@steadied
@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of two models, and the difference between them.

    Attributes
    ----------
    a, b : float
        The metric of each.
    interval : Interval
        ``a - b`` with its confidence interval.
    statistic : float
        The difference over its standard error.
    p_value : float
        Two-sided, of the hypothesis that there is no difference in expectation. It is below ``1 - level`` exactly when
        the interval excludes 0.

    Examples
    --------
    >>> import safecal
    >>> y_true = [1, 0, 1, 1, 0, 1]
    >>> comparison = safecal.compare(
    ...     safecal.bernoulli(y_true, [0.9, 0.2, 0.1, 0.8, 0.3, 0.7]),
    ...     safecal.bernoulli(y_true, [0.7, 0.4, 0.4, 0.7, 0.4, 0.6]),
    ... )
    >>> round(comparison.brier.a, 4), round(comparison.brier.b, 4), round(comparison.brier.interval.value, 4)
    (0.18, 0.17, 0.01)
    """

    a: float
    b: float
    interval: Interval
    statistic: float
    p_value: float

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.p_value < 1.0 - self.interval.level

    @property
    def can_tell(self) -> bool:
        """Whether these rows are enough to tell. Where they are not, equal models differ as much by chance."""
        at = self.interval
        spread = NormalDist().inv_cdf(0.5 * (1.0 + at.level))
        return self.shown or not (math.isinf(at.low) or math.isinf(at.high) or abs(self.statistic) > spread)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; infinities are written as text."""
        content = {name: documents.number(getattr(self, name)) for name in ("a", "b", "statistic")}
        ends = {name: documents.number(getattr(self.interval, name)) for name in ("value", "low", "high")}
        interval = self.interval.to_dict() | ends
        return documents.document("difference", {**content, "p_value": self.p_value, "interval": interval})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields: dict[str, Any] = dict.fromkeys(("a", "b", "statistic"), documents.numbers)
        fields |= {"interval": Interval.from_dict, "p_value": documents.between(0.0, 1.0)}
        return cls(**documents.read("difference", document, fields))


@final
@steadied
@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models, a and b, compared row by row; differences are ``a - b``. It holds no raw data.

    Attributes
    ----------
    n : int
        Rows.
    clusters : int or None
        Clusters of rows; None when rows are taken as independent.
    n_impossible_a, n_impossible_b : int
        Rows whose outcome the model had called impossible. Where one model alone did, the differences in ECD and NLL
        are infinite, against it. Where both did, both means are infinite: the difference, and its interval, are those
        of the rows that are possible for both.
    ecd : Difference
        In nats. The lower one is less over-confident, which is not better by itself.
    nll : Difference or None
        In nats, smaller is better; None when a density is not normalised.
    brier : Difference or None
        Smaller is better; None for states and densities.

    See Also
    --------
    compare : Make one.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 1000)
    >>> y_true = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    >>> safecal.compare(safecal.bernoulli(y_true, logits=2 * log_odds), safecal.bernoulli(y_true, logits=log_odds))
    safecal comparison: 1000 rows
    <BLANKLINE>
                 a        b    a - b       95 % interval   p-value
    --------------------------------------------------------------
    ECD    +0.3189  +0.0349  +0.2840  +0.2518 to +0.3213  < 0.0001
    NLL     0.6158   0.5043  +0.1115  +0.0803 to +0.1477  < 0.0001
    Brier   0.1856   0.1680  +0.0176  +0.0121 to +0.0236  < 0.0001
    <BLANKLINE>
    Interval: t, skewness-corrected, and what equal models do by chance.
    b has lower NLL (NLL 0.6158 for a, 0.5043 for b) and is less over-confident
    (ECD +0.3189 for a, +0.0349 for b).
    """

    n: int
    clusters: int | None
    n_impossible_a: int
    n_impossible_b: int
    ecd: Difference
    nll: Difference | None
    brier: Difference | None

    @property
    def verdict(self) -> str:
        """What the differences in ECD and NLL say together, in words; never which model is better by ECD alone."""
        return _impossible_words(self) + _verdict_words(self.ecd, self.nll) + _undecidable_words(self)

    def _title(self) -> str:
        units = f"{self.n} {'row' if self.n == 1 else 'rows'}"
        return f"safecal comparison: {units}" + (f", {self.clusters} clusters" if self.clusters else "")

    def _known(self) -> dict[str, Difference]:
        differences = {"ECD": self.ecd, "NLL": self.nll, "Brier": self.brier}
        return {name: d for name, d in differences.items() if d is not None}

    def _method(self) -> str:
        return "; ".join(dict.fromkeys(d.interval.method for d in self._known().values()))

    def _cells(self) -> list[list[str]]:
        level = f"{100 * self.ecd.interval.level:g} % interval"
        rows = [["", "a", "b", "a - b", level, "p-value"]]
        for name, d in self._known().items():
            values = [number(x, signed=name == "ECD") for x in (d.a, d.b)]
            p_value = f"{d.p_value:.4f}" if d.p_value >= 0.0001 else "< 0.0001"
            texts = (number(d.interval.value, signed=True), ends_text(d.interval, signed=True), p_value)
            rows.append([name, *values, *texts])
        return rows

    def to_frame(self, library: str | None = None) -> Any:
        """Return the comparison as a DataFrame, one row for each metric.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            ``metric``, ``a``, ``b``, ``difference``, ``low``, ``high`` and ``p_value``.
        """
        return frame_of(self._columns(), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(self._columns(), requested_schema)

    def _columns(self) -> dict[str, list[Any]]:
        known = self._known().values()
        columns: dict[str, list[Any]] = {"metric": list(self._known())}
        columns |= {name: [getattr(d, name) for d in known] for name in ("a", "b")}
        columns["difference"] = [d.interval.value for d in known]
        columns |= {name: [getattr(d.interval, name) for d in known] for name in ("low", "high")}
        return columns | {"p_value": [d.p_value for d in known]}

    def __repr__(self) -> str:
        return titled_text(self._title(), self._cells(), [f"Interval: {self._method()}.", self.verdict])

    def _repr_html_(self) -> str:
        return titled_html(self._title(), self._cells(), f"{self.verdict} Interval: {self._method()}.")

    def plot(self, *, sides: "SideBySide | None" = None) -> Any:
        """Draw the differences with their intervals, and both models side by side.

        Parameters
        ----------
        sides : SideBySide, optional
            What ``compare`` returns of two evaluations: their ECD and temperature are drawn below.

        Returns
        -------
        matplotlib.figure.Figure
            A new figure.
        """
        from ..plot import draw_comparison

        return draw_comparison(self, sides)

    def report(
        self, path: str | os.PathLike[str], *, sides: "SideBySide | None" = None, title: str | None = None
    ) -> None:
        """Write a page that shows the differences: one HTML file that needs no network.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it.
        sides : SideBySide, optional
            What ``compare`` returns of two evaluations, to be shown below.
        title : str, optional
            What the page is about.
        """
        from ..report import write_comparison

        write_comparison(self, path, sides=sides, title=title)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        differences = {name: None if (d := getattr(self, name)) is None else d.to_dict() for name in _METRICS}
        return documents.document("comparison", {**counts, **differences, "verdict": self.verdict})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote; the verdict is read off the differences anew."""
        fields: dict[str, Any] = dict.fromkeys(_COUNTS, documents.count())
        fields |= {"n": documents.count(1), "clusters": documents.optional(documents.count(1))}
        fields |= dict.fromkeys(_METRICS, documents.optional(Difference.from_dict))
        fields["ecd"] = Difference.from_dict
        values = documents.read("comparison", document, fields, {"verdict": documents.words})
        values.pop("verdict", None)
        most = max(values["n_impossible_a"], values["n_impossible_b"], values["clusters"] or 0)
        documents.every([(most <= values["n"], "must have no more impossible rows, and no more clusters, than rows")])
        return cls(**values)


@final
@steadied
@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two evaluations in one table, without a test: they hold no rows, and only rows can be compared one by one.

    Attributes
    ----------
    n : (int, int)
        Rows of each.
    decisions : (str, str)
        SAFE, UNSAFE or UNDETERMINED.
    level : (float, float)
        Level of the intervals of each.
    metrics : mapping of names to pairs
        Each metric of both: an `Interval`, or a float where it has none.

    Examples
    --------
    >>> import safecal
    >>> monday = safecal.evaluate([1, 0, 1, 1] * 50, [0.9, 0.2, 0.6, 0.8] * 50)
    >>> tuesday = safecal.evaluate([1, 0, 0, 1] * 50, [0.9, 0.2, 0.6, 0.8] * 50)
    >>> safecal.compare(monday, tuesday)
    safecal comparison: two evaluations
    <BLANKLINE>
                                               a, 95 %                       b, 95 %
    --------------------------------------------------------------------------------
    verdict                                       SAFE                        UNSAFE
    rows                                           200                           200
    ECD                   -0.2341 (-0.2406 to -0.2268)  -0.1327 (-0.1692 to -0.0776)
    temperature              0.0000 (0.0000 to 0.1575)     0.5719 (0.4536 to 0.7409)
    mistakes                 0.0000 (0.0000 to 0.0820)     1.1111 (0.8247 to 1.4649)
    NLL                                         0.2656                        0.3670
    ECE (positive class)                        0.2250                        0.2750
    Brier                                       0.0625                        0.1125
    <BLANKLINE>
    No test is possible: evaluations hold no rows, ...
    """

    n: tuple[int, int]
    decisions: tuple[str, str]
    level: tuple[float, float]
    metrics: Mapping[str, tuple[Interval | float, Interval | float]]

    def _cells(self) -> list[list[str]]:
        head = ["", *(f"{name}, {100 * level:g} %" for name, level in zip("ab", self.level, strict=True))]
        rows = [head, ["verdict", *self.decisions], ["rows", *map(str, self.n)]]
        return rows + [[name, *(with_ends(x, name == "ECD") for x in pair)] for name, pair in self.metrics.items()]

    def to_frame(self, library: str | None = None) -> Any:
        """Return the comparison as a DataFrame, one row for each metric.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else Polars.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            ``metric``; and for each, ``a``, ``a_low`` and ``a_high``, NaN where there is no interval.
        """
        return frame_of(self._columns(), library)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream(self._columns(), requested_schema)

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"metric": list(self.metrics)}
        for k, name in enumerate("ab"):
            values = [pair[k] for pair in self.metrics.values()]
            columns[name] = [x.value if isinstance(x, Interval) else x for x in values]
            for end in ("low", "high"):
                columns[f"{name}_{end}"] = [getattr(x, end) if isinstance(x, Interval) else math.nan for x in values]
        return columns

    def __repr__(self) -> str:
        return titled_text(_SIDES, self._cells(), [_NO_TEST])

    def _repr_html_(self) -> str:
        return titled_html(_SIDES, self._cells(), _NO_TEST)


_SIDES = "safecal comparison: two evaluations"
_NO_TEST = (
    "No test is possible: evaluations hold no rows, and only rows can be compared one by one. "
    "Intervals that overlap do not say that there is no difference. Hint: compare the predictions, `compare(a, b)` "
    "of what `bernoulli`, `categorical`, `gaussian` or `density` returned."
)


_COUNTS = ("n", "clusters", "n_impossible_a", "n_impossible_b")
_METRICS = ("ecd", "nll", "brier")


def _verdict_words(ecd: Difference, nll: Difference | None) -> str:
    lower, higher = ("b", "a") if ecd.interval.value > 0.0 else ("a", "b")
    over = (ecd.a if higher == "a" else ecd.b) > 0.0
    less = f"is {'less over-confident' if over else 'more under-confident'} ({_values_of('ECD', ecd)})"
    if nll is None:
        start = f"{lower} {less}" if ecd.shown else "No difference in over-confidence is shown"
        return f"{start}; without NLL nothing says which is better."
    better, values = "b" if nll.interval.value > 0.0 else "a", _values_of("NLL", nll)
    if not nll.shown and not ecd.shown:
        return "No difference is shown, neither in NLL nor in over-confidence."
    if not ecd.shown:
        return f"{better} has lower NLL ({values}); no difference in over-confidence is shown."
    if not nll.shown:
        return f"{lower} {less}; no difference in NLL is shown."
    if better == lower:
        return f"{better} has lower NLL ({values}) {'and' if over else 'though it'} {less}."
    return f"{lower} {less}{' only because it says less:' if over else ':'} its NLL is higher ({values})."


def _undecidable_words(c: Comparison) -> str:
    """Say where the rows cannot tell; nothing where they can."""
    names = {name: d.interval for name, d in (("NLL", c.nll), ("ECD", c.ecd)) if d is not None and not d.can_tell}
    if not names:
        return ""
    sentence = f" These rows cannot tell the {' and the '.join(names)} of a from that of b"
    if any(math.isfinite(at.low) for at in names.values()):
        sentence += ": the models differ in rare, large surprises, and too few of these have happened"
    return f"{sentence}."


def _values_of(name: str, d: Difference) -> str:
    return f"{name} {number(d.a, signed=name == 'ECD')} for a, {number(d.b, signed=name == 'ECD')} for b"


def _impossible_words(c: Comparison) -> str:
    a, b = c.n_impossible_a, c.n_impossible_b
    if not a and not b:
        return ""
    rows = f"{a} and {b} rows" if a and b else f"{a or b} {'row' if (a or b) == 1 else 'rows'}"
    models = "a and b" if a and b else "a" if a else "b"
    note = "; the differences are those of the rows possible for both" if a and b else ""
    return f"In {rows} something happened that {models} had called impossible{note}. "
