"""What is read off the sums of an evaluation: the metrics, what is found when first asked for, and its document."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import documents
from .._checks.columns import fraction
from .._steady import steadied
from .._sums.histogram import Histogram
from .._sums.summary import Summary
from .._sums.table import Table
from .._sums.tally import Tally
from ..inference.bounds import Bounds, law_of
from ..inference.calibration import tally_test
from ..inference.cox import Cox
from ..inference.forecasts import Forecast
from ..inference.local import Local
from ..inference.mistakes import Mistakes
from ..inference.results import Interval, TestResult
from ..inference.shifts import Axis, ClassShifts, axes_of
from ..options import Limits
from .display import Metric, class_rows, cox_rows, inference_rows, look_rows, metric_rows
from .forecast_rows import forecast_rows
from .looks import smaller_end
from .reliability import Reliability, reliability_of
from .verdict import Verdict

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["DERIVED", "FIELDS", "METRICS", "PARTS", "Readings", "check"]


@steadied
class Readings(ABC):
    """Metrics, tests and fits that follow from a tally and from the level of its limits."""

    __slots__ = ()

    tally: Tally
    limits: Limits
    interval: Interval
    temperature: Interval
    mistakes: Mistakes | None
    drawn: Reliability | None
    tested: TestResult | None
    verdict: Verdict
    _found: dict[Hashable, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """How the numbers came to be, where that must be known to read them."""
        return self.tally.notes

    def _once(self, name: Hashable, find: Callable[[], Any]) -> Any:
        """Find something when it is first asked for, and keep it."""
        if name not in self._found:
            with np.errstate(all="ignore"):
                self._found[name] = find()
        return self._found[name]

    @property
    def reliability(self) -> Reliability | None:
        """What the table of bins means: the ECE of chance, the parts of the Brier score, Spiegelhalter's test."""
        found: Reliability | None = self._once("reliability", lambda: self.drawn or reliability_of(self.tally))
        return found

    @property
    def test(self) -> TestResult:
        """The two-sided test of calibration."""
        found: TestResult = self._once("test", lambda: self.tested or tally_test(self.tally, law_of(self.tally)))
        return found

    @property
    def cox(self) -> Cox | None:
        """Shift and slope of the predicted log-odds, with intervals and tests; None for anything but two classes."""
        found: Cox | None = self._once("cox", lambda: Cox.of(self.tally, self.level))
        return found

    @property
    def class_shifts(self) -> ClassShifts | None:
        """How often each class happens beside how often it is predicted; None but for 2 to 32 columns of classes."""
        found: ClassShifts | None = self._once("class_shifts", lambda: ClassShifts.of(self.tally, self.level))
        return found

    @property
    def forecast(self) -> Forecast | None:
        """Coverage, CRPS, sharpness, bias, spread and the transform, of numbers and vectors; None for others."""
        found: Forecast | None = self._once("forecast", lambda: Forecast.of(self.tally, self.level))
        return found

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Mean error and factor of each axis of Gaussian states, in units of their stated spread; none for others."""
        found: tuple[Axis, ...] = self._once("axes", lambda: axes_of(self.tally, self.level))
        return found

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

    def _reliability(self, read: Callable[[Table], float]) -> float:
        return math.nan if self.bins is None or self.summary.sum_predicted is None else read(self.bins)

    @property
    def ece(self) -> float:
        """Expected calibration error over the bins, 0 is best; NaN where there are no bins or no classes."""
        return self._reliability(lambda table: table.ece())

    @property
    def ece_overconfident(self) -> float:
        """The part of ECE from bins that are over-confident."""
        return self._reliability(lambda table: table.ece("over-confident"))

    @property
    def ece_underconfident(self) -> float:
        """The part of ECE from bins that are under-confident."""
        return self._reliability(lambda table: table.ece("under-confident"))

    @property
    def esce(self) -> float:
        """Expected signed calibration error, observed minus predicted; NaN as for `ece`."""
        return self._reliability(lambda table: table.esce())

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
        return f"safecal evaluation: {self.n} {'row' if self.n == 1 else 'rows'}, {self.family}"

    def _metrics(self) -> list[Metric]:
        least = smaller_end(self.verdict.looks)
        head = inference_rows(self.interval, self.temperature, self.test, self.mistakes, least)
        head += look_rows(self.verdict.looks) + forecast_rows(self.forecast)
        if not self.summary.n_impossible:  # no shift explains an impossible outcome
            head += cox_rows(self.cox) + class_rows(self.class_shifts)
        return head + metric_rows(self.summary, None if math.isnan(self.ece) else self.bins, self.reliability)


def check(evaluation: Evaluation, derived: Mapping[str, Any]) -> None:
    """Refuse parts that are not of one evaluation, and numbers that its sums do not give."""
    e, v, own = evaluation, evaluation.verdict, {"family": evaluation.family, "n": evaluation.n}
    parts = {"ecd": e.interval, **{name: getattr(e, name) for name in ("limits", "temperature", "mistakes")}}
    documents.every((
        *((getattr(v, name) == x, f"must have the same `{name}` in its `verdict`") for name, x in parts.items()),
        (v.n_impossible == e.summary.n_impossible, "must have the same `n_impossible` in its `verdict`"),
        (documents.agrees(e.interval.value, e.ecd), "must have the ECD of its sums in its `interval`"),
        (e.slices is None or e.slices.n == e.n, "must have as many rows in its `slices`"),
        (e.interval.level == e.limits.level, "must have the `level` of its limits in its `interval`"),
        (_same_looks(e), "must have the looks of its tally in its `verdict`, with their ECD"),
        *((derived.get(name, mine) == mine, f"must have the `{name}` of its tally") for name, mine in own.items()),
    ))  # fmt: skip
    with documents.at("metrics"):
        for name, value in derived.get("metrics", {}).items():
            if name not in METRICS or not documents.agrees(value, getattr(e, name)):
                documents.refuse(f"must be what the sums give; `{name}` is not")
    if "forecast" in derived and not (e.forecast and _agrees(derived["forecast"], e.forecast.to_dict())):
        with documents.at("forecast"):
            documents.refuse("must be what the sums give")


def _agrees(given: Any, found: Any) -> bool:
    """Compare what was written with what is found, on another machine perhaps."""
    if isinstance(found, dict):
        return isinstance(given, Mapping) and given.keys() == found.keys() and all(
            _agrees(given[name], value) for name, value in found.items()
        )  # fmt: skip
    if isinstance(found, list):
        return isinstance(given, list) and len(given) == len(found) and all(map(_agrees, given, found))
    if isinstance(found, float) and isinstance(given, int | float) and not isinstance(given, bool):
        return given == found or abs(given - found) <= 1e-6 * abs(found)
    return type(given) is type(found) and bool(given == found)


def _same_looks(evaluation: Evaluation) -> bool:
    tally, said = evaluation.tally, evaluation.verdict.looks
    looks = [one for one in (tally, *tally.others) if one.look is not None]
    return len(looks) == len(said) and all(
        found.look == one.look and documents.agrees(found.ecd.value, one.summary.ecd)
        for found, one in zip(said, looks, strict=True)
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


def _aside(kind: str) -> Callable[[Any], Any]:
    """Take as it is what is found anew, and only compared with that, or was added by the command line."""

    def reader(value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("kind") != f"safecal.{kind}":
            documents.refuse(f"must be a safecal.{kind} document", value)
        return value

    return reader


DERIVED: dict[str, Any] = {
    "class_shifts": documents.optional(ClassShifts.from_dict),  # found anew, where it is asked for
    "family": documents.text,
    "n": documents.count(1),
    "metrics": documents.mapping_of(documents.numbers),
    "baseline": _aside("baseline"),  # how it compares with an earlier one
    "forecast": _aside("forecast"),
}
