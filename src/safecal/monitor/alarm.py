"""The alarm of a monitor, and its size beside the limits of a verdict."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from .. import documents
from .._sums.scored import Scored
from .._sums.summary import Summary
from .._sums.table_views import key_label
from .._types import AlarmDirection, AlarmKind, FloatArray
from ..errors import visible
from ..inference.ranges import dimensions
from ..options import Limits

__all__ = ["COLUMNS", "Alarm", "Size", "size_columns", "size_sums"]

# What is summed for the size that an alarm states; all but the first three are NaN for states and densities.
COLUMNS = ("n", "excess", "varentropy", "predicted", "observed", "confidence", "correct")


@final
@dataclass(frozen=True, slots=True)
class Size:
    """ECD, mistakes and rates of the rows that an alarm speaks of, and the limits that a verdict has for them.

    Attributes
    ----------
    n : int
        Rows.
    ecd, allowed : float
        ECD, and the largest that is safe on average, in nats.
    seen, announced, max_ratio : float
        Mistakes made and announced, NaN for states and densities, and how many times as many are safe.
    predicted, observed : float
        How often the event was predicted, and how often it happened; with three classes or more that of the likeliest
        class, and NaN for states and densities.

    Examples
    --------
    >>> import safecal
    >>> from safecal.monitor.alarm import Size
    >>> rows = safecal.bernoulli([1] * 80 + [0] * 20, [0.9] * 100)
    >>> print(Size.of(rows.summary(), safecal.Limits()))
    ECD 0.22, beyond the limit of 0.1
    """

    n: int
    ecd: float
    allowed: float
    seen: float
    announced: float
    max_ratio: float
    predicted: float
    observed: float

    @classmethod
    def of(cls, rows: Summary | Sequence[float] | FloatArray, limits: Limits) -> Self | None:
        """Read the size off a summary, or off the sums of `COLUMNS`; None where they are not known."""
        sums = size_sums(rows) if isinstance(rows, Summary) else np.asarray(rows)
        n, excess, varentropy, predicted, observed, confidence, correct = map(float, sums)
        if not n >= 1.0:
            return None
        dimension = float(dimensions(varentropy, n)) if math.isfinite(varentropy) else 1.0
        return cls(
            int(n), excess / n, limits.threshold * dimension, n - correct, n - confidence, limits.max_ratio,
            predicted / n, observed / n,
        )  # fmt: skip

    @property
    def mistaken(self) -> bool:
        """Whether it made more mistakes than are safe; one alone proves nothing."""
        return self.seen >= 2.0 and self.seen > self.max_ratio * self.announced

    @property
    def within(self) -> bool:
        """Whether it lies within the limits."""
        return self.ecd <= self.allowed and not self.mistaken

    def __str__(self) -> str:
        if math.isinf(self.ecd):
            return f"ECD infinite, beyond the limit of {self.allowed:.3g}"
        ecd, allowed = _write_with_limit(self.ecd, self.allowed)
        text = f"ECD {ecd}, {'within' if self.ecd <= self.allowed else 'beyond'} the limit of {allowed}"
        if self.mistaken and self.ecd <= self.allowed:
            text += f", but {self.seen:.0f} mistakes where {self.announced:.3g} were announced, more than"
            text += f" {self.max_ratio:g} times as many"
        return text

    @property
    def rates(self) -> str:
        """How often the event happened, and how often it was predicted."""
        return f"{_percent(self.observed)} where {_percent(self.predicted)} is predicted"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        numbers = {name: documents.number(getattr(self, name)) for name in self.__slots__}
        return documents.document("size", numbers)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        amount, limit = documents.between(0.0, missing=True), documents.between(0.0, inside=True, infinite=True)
        fields: dict[str, Any] = {"n": documents.count(1), "ecd": documents.numbers}
        fields |= dict.fromkeys(("allowed", "max_ratio"), limit)
        fields |= dict.fromkeys(("seen", "announced", "predicted", "observed"), amount)
        return cls(**documents.read("size", document, fields))


def _write_with_limit(value: float, limit: float) -> tuple[str, str]:
    """Write a value with as many digits as it takes to tell it from its limit."""
    shown = f"{limit:.3g}"
    digits = next((d for d in range(2, 17) if f"{value:.{d}g}" != f"{limit:.{d}g}"), 17)
    return f"{value:.{digits}g}", shown


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.3g} %"


def size_columns(scored: Scored) -> FloatArray:
    """Return the columns of some rows, of shape (columns, rows); an impossible outcome is an infinite excess."""
    columns = np.full((len(COLUMNS), len(scored)), math.nan)
    columns[0] = 1.0
    for k, name in enumerate(COLUMNS[1:], start=1):
        column = getattr(scored, name)
        if column is not None:
            columns[k] = column
    return columns


def size_sums(summary: Summary) -> FloatArray:
    """Return the sums of the same columns, from a summary."""
    if summary.n == 0:
        return np.zeros(len(COLUMNS))
    sums_or_none = (getattr(summary, f"sum_{name}") for name in COLUMNS[1:])
    sums = np.array([summary.n, *(math.nan if x is None else x for x in sums_or_none)])
    if summary.n_impossible:
        sums[1] = math.inf
    return sums


# The words of a diagnosis.
_WORDS = {
    "over-confident": "too sharp",
    "under-confident": "too vague",
    "shifted up": "shifted up: the event happens more often than it says",
    "shifted down": "shifted down: the event happens less often than it says",
}


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm.

    Attributes
    ----------
    kind : {"since the start", "change"}
        Evidence against a model that was calibrated since the start, or for one that changed.
    direction : {"over-confident", "under-confident", "shifted up", "shifted down"}
        Which way. Shifted up: the event happens more often than the model says.
    group : hashable or None
        The group it is about; None for all rows.
    row : int
        The number of the row at which the threshold was reached, counted from 0 within the group.
    log_e_value, log_threshold : float
        Natural logarithms of the evidence, and of the threshold that it reached.
    began : int
        The number of the row at which it most likely began; 0 for evidence since the start.
    window : str or None
        The window of the batch in which the alarm was raised.
    size : Size or None
        How large it is beside the limits of a verdict: of all rows so far, or since the row at which it most likely
        began; None where that is not known. The rows that set off an alarm are among the worst: the first rows after
        a change overstate its size.

    Examples
    --------
    >>> from safecal.monitor import Alarm
    >>> print(Alarm("change", "over-confident", None, 5200, 15.2, 13.8, 4990, "2026-11-14"))
    changed at about row 4990, too sharp: e-value 3.99e+06 at row 5200, threshold 9.85e+05 (window 2026-11-14)
    """

    kind: AlarmKind
    direction: AlarmDirection
    group: Hashable
    row: int
    log_e_value: float
    log_threshold: float
    began: int
    window: str | None = None
    size: Size | None = None

    @property
    def cause(self) -> str:
        """Which way, in the words of a diagnosis: too sharp, too vague, shifted up or shifted down."""
        return _WORDS[self.direction].partition(":")[0]

    @property
    def what(self) -> str:
        """What it says of the model: since when, which way, and how large that is beside the limits."""
        start = f"changed at about row {self.began}" if self.kind == "change" else "not calibrated since the start"
        text = f"{start}, {_WORDS[self.direction]}"
        if self.size is None:
            return text
        rates = f", {self.size.rates}" if self.direction.startswith("shifted") else ""
        return f"{text}{rates}: {self.size}"

    def __str__(self) -> str:
        group_words = "" if self.group is None else f"{visible(key_label(self.group))}: "
        window_words = "" if self.window is None else f" (window {visible(self.window)})"
        reached, threshold = (_readable(x) for x in (self.log_e_value, self.log_threshold))
        ends = ":" if self.size is None else ";"
        return (
            f"{group_words}{self.what}{ends} e-value {reached} at row {self.row}, threshold {threshold}{window_words}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        names = ("kind", "direction", "row", "log_threshold", "began", "window")
        content = {name: getattr(self, name) for name in names}
        content["alarm_kind"] = content.pop("kind")
        content |= {"group": documents.plain(self.group), "log_e_value": documents.number(self.log_e_value)}
        content["size"] = None if self.size is None else self.size.to_dict()
        return documents.document("alarm", content)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote, now or before there were sizes."""
        fields = {
            "alarm_kind": documents.choice("since the start", "change"),
            "direction": documents.choice(*_WORDS),
            "group": documents.key,
            "row": documents.count(),
            "log_e_value": documents.between(infinite=True),
            "log_threshold": documents.read_number,
            "began": documents.count(),
            "window": documents.optional(documents.text),
        }
        content = documents.read("alarm", document, fields, {"size": documents.optional(Size.from_dict)})
        documents.every([(content["began"] <= content["row"], "must have begun no later than at its `row`")])
        return cls(kind=content.pop("alarm_kind"), **content)


def _readable(log: float) -> str:
    """Return exp of a logarithm, also where it is too large for a float."""
    if log < 700.0:
        return f"{math.exp(log):.3g}"
    return "infinite" if log >= 1e5 else f"1e+{math.floor(log / math.log(10.0))}"
