"""Two models on the same rows: which is less over-confident, and at what price.

ECD is no proper score: a model that says nothing has an ECD of 0. So the difference in ECD is always read beside the
difference in NLL, and the sentence in words weighs both.
"""

import html
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from . import documents
from .display import number
from .inference.results import Interval

__all__ = ["Comparison", "Difference"]


@final
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
    >>> found = safecal.compare(
    ...     safecal.bernoulli(y_true, [0.9, 0.2, 0.1, 0.8, 0.3, 0.7]),
    ...     safecal.bernoulli(y_true, [0.7, 0.4, 0.4, 0.7, 0.4, 0.6]),
    ... )
    >>> round(found.brier.a, 4), round(found.brier.b, 4), round(found.brier.interval.value, 4)
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

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; infinities are written as text."""
        content = {name: documents.number(getattr(self, name)) for name in ("a", "b", "statistic")}
        ends = {name: documents.number(getattr(self.interval, name)) for name in ("value", "low", "high")}
        interval = self.interval.to_dict() | ends
        return documents.document("difference", {**content, "p_value": self.p_value, "interval": interval})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("difference", document, ("a", "b", "statistic", "p_value", "interval"))
        a, b, statistic = (float(content[name]) for name in ("a", "b", "statistic"))
        return cls(a, b, Interval.from_dict(content["interval"]), statistic, content["p_value"])


@final
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
        In nats. The lower one is less over-confident, which is no merit by itself.
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
    Interval: t, skewness-corrected.
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
        return _verdict(self)

    def _title(self) -> str:
        units = f"{self.n} {'row' if self.n == 1 else 'rows'}"
        return f"safecal comparison: {units}" + (f", {self.clusters} clusters" if self.clusters else "")

    def _method(self) -> str:
        found = (self.ecd, self.nll, self.brier)
        return "; ".join(dict.fromkeys(d.interval.method for d in found if d is not None))

    def _cells(self) -> list[list[str]]:
        level = f"{100 * self.ecd.interval.level:g} % interval"
        rows = [["", "a", "b", "a - b", level, "p-value"]]
        for name in ("ecd", "nll", "brier"):
            found: Difference | None = getattr(self, name)
            if found is not None:
                at = found.interval
                values = [number(x, signed=name == "ecd") for x in (found.a, found.b)]
                ends = f"{number(at.low, signed=True)} to {number(at.high, signed=True)}"
                p_value = f"{found.p_value:.4f}" if found.p_value >= 0.0001 else "< 0.0001"
                label = "Brier" if name == "brier" else name.upper()
                rows.append([label, *values, number(at.value, signed=True), ends, p_value])
        return rows

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[j]) for row in cells) for j in range(6)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in cells
        ]
        words = [line for text in (f"Interval: {self._method()}.", self.verdict) for line in textwrap.wrap(text, 79)]
        return "\n".join([self._title(), "", lines[0], "-" * len(lines[0]), *lines[1:], "", *words])

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        right = 'style="text-align:right"'
        top = "".join(f'<th scope="col" {right}>{html.escape(c)}</th>' for c in head)
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(row[0])}</th>'
            + "".join(f"<td {right}>{html.escape(c)}</td>" for c in row[1:])
            + "</tr>"
            for row in body
        )
        table = f"<table><caption>{html.escape(self._title())}</caption><thead><tr>{top}</tr></thead>"
        words = html.escape(f"{self.verdict} Interval: {self._method()}.")
        return f"<div>{table}<tbody>{rows}</tbody></table><p>{words}</p></div>"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        found = {name: None if (d := getattr(self, name)) is None else d.to_dict() for name in _METRICS}
        return documents.document("comparison", {**counts, **found, "verdict": self.verdict})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote; the verdict is read off the differences anew."""
        content = documents.body("comparison", document, (*_COUNTS, *_METRICS))
        values: dict[str, Any] = {name: content[name] for name in _COUNTS}
        for name in _METRICS:
            values[name] = None if content[name] is None else Difference.from_dict(content[name])
        return cls(**values)


_COUNTS = ("n", "clusters", "n_impossible_a", "n_impossible_b")
_METRICS = ("ecd", "nll", "brier")


def _verdict(c: Comparison) -> str:
    words = _impossible(c)
    ecd, nll = c.ecd, c.nll
    lower, higher = ("b", "a") if ecd.interval.value > 0.0 else ("a", "b")
    over = (ecd.a if higher == "a" else ecd.b) > 0.0
    side = "less over-confident" if over else "more under-confident"
    if nll is None:
        if not ecd.shown:
            return f"{words}No difference in over-confidence is shown; without NLL nothing says which is better."
        return f"{words}{lower} is {side} ({_by('ECD', ecd)}); without NLL nothing says which is better."
    better = "b" if nll.interval.value > 0.0 else "a"
    if not nll.shown and not ecd.shown:
        return f"{words}No difference is shown, neither in NLL nor in over-confidence."
    if not ecd.shown:
        return f"{words}{better} has lower NLL ({_by('NLL', nll)}); no difference in over-confidence is shown."
    if not nll.shown:
        return f"{words}{lower} is {side} ({_by('ECD', ecd)}); no difference in NLL is shown."
    if better == lower:
        link = "and" if over else "though it"
        return f"{words}{better} has lower NLL ({_by('NLL', nll)}) {link} is {side} ({_by('ECD', ecd)})."
    link = " only because it says less:" if over else ":"
    return f"{words}{lower} is {side} ({_by('ECD', ecd)}){link} its NLL is higher ({_by('NLL', nll)})."


def _by(name: str, d: Difference) -> str:
    return f"{name} {number(d.a, signed=name == 'ECD')} for a, {number(d.b, signed=name == 'ECD')} for b"


def _impossible(c: Comparison) -> str:
    a, b = c.n_impossible_a, c.n_impossible_b
    if not a and not b:
        return ""
    rows = f"{a} and {b} rows" if a and b else f"{a or b} {'row' if (a or b) == 1 else 'rows'}"
    who = "a and b" if a and b else "a" if a else "b"
    rest = "; the differences are those of the rows possible for both" if a and b else ""
    return f"{who} called impossible what happened in {rows}{rest}. "
