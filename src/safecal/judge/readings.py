"""What is read off the sums of an evaluation: metrics, results that wait until they are asked for, and its document."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import documents
from .._checks.columns import fraction, steadied
from .._sums import Tally
from .._sums.scored import Histogram
from .._sums.summary import Summary
from .._sums.table import Table
from .._types import Decision, Direction
from ..files import schema
from ..inference import Interval, TestResult
from ..inference.bounds import Bounds, Mistakes, law_of
from ..inference.calibration import tally_test
from ..inference.cox import Cox
from ..inference.directions import Axis, axes_of
from ..inference.forecasts import Forecast
from ..inference.local import Local
from ..inference.shifts import ClassShifts
from ..options import Limits
from ..slices.results import Slices
from .decision import smaller_end
from .display import Metric, class_rows, cox_rows, forecast_rows, inference_rows, kind_of, look_rows, metric_rows
from .reliability import Reliability, reliability_of
from .verdict import SAFE, UNDETERMINED, UNSAFE, Verdict

__all__ = ["DERIVED", "FIELDS", "Readings", "check"]

T = TypeVar("T")


@steadied
class Readings(ABC):
    """Metrics, tests and fits that follow from a tally and from the level of its limits."""

    __slots__ = ()

    tally: Tally
    limits: Limits
    interval: Interval
    temperature: Interval
    mistakes: Mistakes | None
    slices: Slices | None
    drawn: Reliability | None
    tested: TestResult | None
    verdict: Verdict
    _cache: dict[Hashable, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """How the numbers came to be, where that must be known to read them."""
        return self.tally.notes

    def _cached(self, name: Hashable, compute: Callable[[], T]) -> T:
        """Compute something when it is first asked for, and keep it."""
        if name not in self._cache:
            with np.errstate(all="ignore"):
                self._cache[name] = compute()
        kept: T = self._cache[name]
        return kept

    @property
    def reliability(self) -> Reliability | None:
        """What the table of bins means: the ECE of chance, the parts of the Brier score, Spiegelhalter's test."""
        return self._cached("reliability", lambda: self.drawn or reliability_of(self.tally))

    @property
    def test(self) -> TestResult:
        """The two-sided test of calibration."""
        return self._cached("test", lambda: self.tested or tally_test(self.tally, law_of(self.tally)))

    @property
    def cox(self) -> Cox | None:
        """Shift and slope of the predicted log-odds, with intervals and tests; None for anything but two classes."""
        return self._cached("cox", lambda: Cox.of(self.tally, self.level))

    @property
    def class_shifts(self) -> ClassShifts | None:
        """How often each class happens beside how often it is predicted; None unless 2 to 32 classes have columns."""
        if self.tally.class_sums is None:
            return None
        return self._cached("class_shifts", lambda: ClassShifts.of(self.tally, self.level))

    @property
    def forecast(self) -> Forecast | None:
        """Coverage, CRPS, sharpness, bias, spread and the transform, of numbers and vectors; None for others."""
        if self.tally.forecast is None:
            return None
        return self._cached("forecast", lambda: Forecast.of(self.tally, self.level))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Mean error and factor of each axis of Gaussian states, in units of their stated spread; none for others."""
        return self._cached("axes", lambda: axes_of(self.tally, self.level))

    @property
    def reading(self) -> str:
        """What ECE, ESCE and ECD say together; empty where there are no bins."""
        v = self.verdict
        if self.reliability is None:
            return ""
        return _reading(v.decision, v.on_average, v.direction, self.reliability, self.bias)

    @property
    def family(self) -> str:
        """``"bernoulli"``, ``"categorical"``, ``"gaussian"``, ``"density"``, or the name of a family of your own."""
        return self.tally.family

    @property
    def dimension(self) -> int:
        """Dimension of a state; 1 for classifiers."""
        return self.tally.dimension

    @property
    def summary(self) -> Summary:
        """Sums over all rows."""
        return self.tally.summary

    @property
    def bins(self) -> Table | None:
        """Sums by bin; None when nothing is binned."""
        return self.tally.bins

    @property
    def histogram(self) -> Histogram:
        """How the excess is spread over the rows."""
        return self.tally.histogram

    @property
    def n_certain(self) -> int:
        """Rows that give some outcome a probability of exactly 0."""
        return self.tally.n_certain

    @property
    def threshold(self) -> float:
        """Largest ECD that is allowed on average, in nats a dimension."""
        return self.limits.threshold

    @property
    def max_temperature(self) -> float:
        """Largest temperature that is allowed."""
        return self.limits.max_temperature

    @property
    def level(self) -> float:
        """Level of the confidence intervals."""
        return self.limits.level

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.summary.n

    @property
    def ecd(self) -> float:
        """Entropic calibration difference in nats: ``> 0`` over-confident, ``< 0`` under-confident."""
        return self.summary.ecd

    def _over_bins(self, read: Callable[[Table], float]) -> float:
        return math.nan if self.bins is None or self.summary.sum_predicted is None else read(self.bins)

    @property
    def ece(self) -> float:
        """Expected calibration error over the bins, 0 is best; NaN where there are no bins or no classes."""
        return self._over_bins(lambda table: table.ece())

    @property
    def ece_overconfident(self) -> float:
        """The part of ECE from bins that are over-confident."""
        return self._over_bins(lambda table: table.ece("over-confident"))

    @property
    def ece_underconfident(self) -> float:
        """The part of ECE from bins that are under-confident."""
        return self._over_bins(lambda table: table.ece("under-confident"))

    @property
    def esce(self) -> float:
        """Expected signed calibration error, observed minus predicted; NaN as for `ece`."""
        return self._over_bins(lambda table: table.esce())

    @property
    def brier(self) -> float:
        """Brier score, smaller is better; NaN for states and densities."""
        return self.summary.brier

    @property
    def nll(self) -> float:
        """Negative log-likelihood a row in nats, smaller is better; NaN for unnormalised densities."""
        return self.summary.nll

    @property
    def accuracy(self) -> float:
        """Share of rows in which the most likely class happened; NaN for states and densities."""
        return self.summary.accuracy

    @property
    def bias(self) -> float:
        """Observed minus predicted over all rows; NaN for states and densities."""
        return self.summary.bias

    @property
    def bounds(self) -> Bounds:
        """Bounds on ECD and on the temperature, at any level."""
        return Bounds(self.tally)

    @np.errstate(all="ignore")
    def confidence_interval(self, level: float) -> Interval:
        """Return ECD with its confidence interval at another level.

        Parameters
        ----------
        level : float
            Between 0 and 1.

        Returns
        -------
        Interval
            As `interval`.
        """
        return self.bounds.interval(fraction(level, "level"))

    def _title(self) -> str:
        return f"safecal evaluation: {self.n} {'row' if self.n == 1 else 'rows'}, {kind_of(self.tally)}"

    def _metrics(self) -> list[Metric]:
        smaller = smaller_end(self.verdict.looks) if self.verdict.looks else None
        head = inference_rows(self.interval, self.temperature, self.test, self.mistakes, smaller)
        head += look_rows(self.verdict.looks) + ([] if self.forecast is None else forecast_rows(self.forecast))
        if not self.summary.n_impossible:  # no shift explains an impossible outcome
            head += cox_rows(self.cox) + class_rows(self.class_shifts)
        return head + metric_rows(self.summary, None if math.isnan(self.ece) else self.bins, self.reliability)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: the sums, and the metrics they give.

        Returns
        -------
        dict
            It follows `json_schema`. An infinite metric is written as ``"inf"``, an absent one as None.
        """
        content: dict[str, Any] = {
            "family": self.family,
            "n": self.n,
            "metrics": {name: documents.number(getattr(self, name)) for name in METRICS},
            "limits": self.limits.to_dict(),
        }
        for name in (*PARTS, "slices", "cox", "class_shifts", "forecast"):
            part = getattr(self, name)
            if part is not None or name not in ("slices", "forecast"):
                content[name] = None if part is None else part.to_dict()
        return documents.document("evaluation", content)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of the documents that `to_dict` writes.

        Returns
        -------
        dict
            A schema of draft 2020-12.
        """
        return schema("evaluation-2")


def _reading(decision: Decision, average: Decision, side: Direction, reliability: Reliability, bias: float) -> str:
    """Read ECE, ESCE and ECD together, as the paper does."""
    places = {UNSAFE: "and ECD finds it over-confident in places, though not on average"} if decision != average else {}
    ece, quantile = _distinct_texts(reliability.ece, reliability.ece_quantile)
    if reliability.ece <= reliability.ece_quantile:
        start = f"ECE ({ece}) is what chance alone gives a calibrated model (up to {quantile})"
        few = "for ECD there are too few rows to tell"
        ends = {
            SAFE: "and ECD agrees: well calibrated, and safe",
            UNSAFE: "but ECD is beyond its limit: bins average a few confident mistakes away",
            UNDETERMINED: f"and {'the data cannot tell whether it is safe everywhere' if places else few}",
        }
        return f"{start}, {(ends | places)[decision]}."
    start = f"ECE ({ece}) is more than chance alone gives (up to {quantile})"
    mild = "it errs on the cautious side" if side == "under-confident" else "the error is small in nats"
    ends = {
        SAFE: f"but the model is safe: {mild}",
        UNSAFE: "and ECD agrees: badly calibrated, and over-confident",
        UNDETERMINED: "and the data cannot tell whether that is unsafe",
    }
    cancels = "; ESCE is near 0 because bins of opposite sign cancel" if abs(bias) < 0.25 * reliability.ece else ""
    return f"{start}, {(ends | places)[decision]}{cancels}."


def _distinct_texts(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(3, 17) if a == b or f"{a:.{d}g}" != f"{b:.{d}g}"), 17)
    return f"{a:.{digits}g}", f"{b:.{digits}g}"


def check(e: Readings, derived: Mapping[str, Any]) -> None:
    """Refuse parts that are not of one evaluation, and numbers that its sums do not give."""
    v, own = e.verdict, {"family": e.family, "n": e.n}
    parts = {"ecd": e.interval, **{name: getattr(e, name) for name in ("limits", "temperature", "mistakes")}}
    documents.every((
        *((getattr(v, name) == x, f"must have the same `{name}` in its `verdict`") for name, x in parts.items()),
        (v.n_impossible == e.summary.n_impossible, "must have the same `n_impossible` in its `verdict`"),
        (documents.agrees(e.interval.value, e.ecd), "must have the ECD of its sums in its `interval`"),
        (e.slices is None or e.slices.n == e.n, "must have as many rows in its `slices` as in all"),
        (e.interval.level == e.limits.level, "must have the `level` of its limits in its `interval`"),
        (_same_looks(e.tally, v.looks), "must have the looks of its tally in its `verdict`, with their ECD"),
        *((derived.get(name, value) == value, f"must have the `{name}` of its tally") for name, value in own.items()),
    ))  # fmt: skip
    with documents.at("metrics"):
        for name, value in derived.get("metrics", {}).items():
            if name not in METRICS or not documents.agrees(value, getattr(e, name)):
                documents.refuse(f"must be what the sums give; `{name}` is not")
    for name in ("forecast", "class_shifts"):
        computed, given = getattr(e, name) if name in derived else None, derived.get(name)
        if given is not None and not (computed and _agrees(given, computed.to_dict())):
            with documents.at(name):
                documents.refuse("must be what the sums give")


def _agrees(written: Any, computed: Any) -> bool:
    """Compare what was written, perhaps on another machine, with what is computed here."""
    if isinstance(computed, dict):
        return isinstance(written, Mapping) and written.keys() == computed.keys() and all(
            _agrees(written[name], value) for name, value in computed.items()
        )  # fmt: skip
    if isinstance(computed, list):
        return isinstance(written, list) and len(written) == len(computed) and all(map(_agrees, written, computed))
    if isinstance(computed, float) and isinstance(written, int | float) and not isinstance(written, bool):
        close = abs(computed) * 1e-6
        return written == computed or computed - close <= written <= computed + close  # which any whole number can be
    return type(written) is type(computed) and bool(written == computed)


def _same_looks(tally: Tally, verdicts: Sequence[Verdict]) -> bool:
    tallies = [one_look for one_look in (tally, *tally.others) if one_look.look is not None]
    return len(tallies) == len(verdicts) and all(
        verdict.look == one_look.look and documents.agrees(verdict.ecd.value, one_look.summary.ecd)
        for verdict, one_look in zip(verdicts, tallies, strict=True)
    )


PARTS: dict[str, Any] = {
    "verdict": Verdict.from_dict,
    "test": TestResult.from_dict,
    "interval": Interval.from_dict,
    "temperature": Interval.from_dict,
    "mistakes": documents.optional(Mistakes.from_dict),
    "local": Local.from_dict,
    "reliability": documents.optional(Reliability.from_dict),
    "tally": Tally.from_dict,
}
METRICS = ("ecd", "nll", "ece", "ece_overconfident", "ece_underconfident", "esce", "brier", "accuracy", "bias")
FIELDS: dict[str, Any] = {"limits": Limits.from_dict, "cox": documents.optional(Cox.from_dict), **PARTS}


def _left_unread(kind: str) -> Callable[[Any], Any]:
    """Return a reader that leaves a part as it is: it is only compared, or was added by the command line."""

    def reader(value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("kind") != f"safecal.{kind}":
            documents.refuse(f"must be a safecal.{kind} document", value)
        return value

    return reader


DERIVED: dict[str, Any] = {
    "class_shifts": documents.optional(_left_unread("class_shifts")),
    "family": documents.text,
    "n": documents.count(1),
    "metrics": documents.mapping_of(documents.numbers),
    "baseline": _left_unread("baseline"),  # how it compares with an earlier one
    "forecast": _left_unread("forecast"),
}
