"""How sure, how much: tests, intervals and the temperature the data ask for. Here: what they return.

``law``                          how the summed surprise is distributed under each temperature; tails, spread of a mean
``points``, ``nodes``            that law, from cells of log-odds, and from sums at a few temperatures
``clustered``                    the same where rows come in clusters, and how their sums spread
``lattice``, ``tails``           tails of a sum of few surprises, and of rows; quantiles
``bounds``                       intervals of all rows: ECD, temperature, mistakes
``calibration``                  the test of all rows, and the temperature
``sum_bounds``, ``key_temperatures``   intervals of many bins, ranges or groups at once
``ranges``, ``local``            how predictions are cut into ranges, what is known of each, and whether all are alike
``directions``                   along which axis or direction of states errors are off
``cox``, ``shifts``              shift and slope of two classes and which fault explains them; a shift for each class
``forecasts``                    what forecasters look at: coverage, bias, spread
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents
from .._types import Alternative, TestDirection

__all__ = ["Interval", "TestResult"]


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        The ends; each is missed with probability ``(1 - level) / 2`` at most, as far as the method goes.
    level : float
        Confidence that the truth lies between them.
    method : str
        How it was made.

    Examples
    --------
    >>> from safecal import Interval
    >>> print(Interval(0.12, 0.03, 0.25, 0.95, "skewness-corrected t"))
    0.12, 95 % interval 0.03 to 0.25 (skewness-corrected t)
    """

    value: float
    low: float
    high: float
    level: float
    method: str

    def __str__(self) -> str:
        return f"{self.value:.4g}, {100 * self.level:g} % interval {self.low:.4g} to {self.high:.4g} ({self.method})"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        ends = {name: documents.number(getattr(self, name)) for name in ("value", "low", "high")}
        return documents.document("interval", {**ends, "level": self.level, "method": self.method})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        interval = cls(**documents.read("interval", document, _INTERVAL))
        if interval.low > interval.high:
            documents.refuse(
                f"must have a `low` that is not above its `high`; got {interval.low:.6g} and {interval.high:.6g}"
            )
        return interval


_INTERVAL: dict[str, Any] = {
    **dict.fromkeys(("value", "low", "high"), documents.numbers),
    "level": documents.LEVEL,
    "method": documents.words,
}


@final
@dataclass(frozen=True, slots=True)
class TestResult:
    """Outcome of a calibration test.

    A small `p_value` means the outcomes would be rare if the model were calibrated; a large one does not prove that it
    is.

    Attributes
    ----------
    statistic : float
        Summed excess over its standard deviation under calibration: about normal; ``> 0`` over-confident.
    p_value : float
        Probability, if the model is calibrated, of an excess at least as extreme on the side of `alternative`.
    alternative : {"over-confident", "under-confident", "two-sided"}
        The side that was tested.
    method : str
        How the probability was computed.
    reason : str
        Why that method.
    n : int
        Rows, or clusters for the cluster test.

    Examples
    --------
    >>> import safecal
    >>> result = safecal.calibration_test(safecal.bernoulli([1, 1, 0, 0, 0], [0.9, 0.8, 0.9, 0.7, 0.95]))
    >>> result.direction
    'over-confident'
    """

    __test__ = False  # not a test for pytest to collect

    statistic: float
    p_value: float
    alternative: Alternative
    method: str
    reason: str
    n: int

    @property
    def direction(self) -> TestDirection:
        """Say on which side the outcomes lie: "over-confident", "under-confident" or "neither"."""
        if self.statistic == 0 or math.isnan(self.statistic):
            return "neither"
        return "over-confident" if self.statistic > 0 else "under-confident"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"statistic": documents.number(self.statistic), "p_value": self.p_value}
        how = {name: getattr(self, name) for name in ("method", "reason", "n")}
        written = {"alternative": self.alternative.replace("-confident", "confident")}  # as documents always had it
        return documents.document("test", content | written | how)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields = documents.read("test", document, _TEST)
        fields["alternative"] = _ALTERNATIVES[fields["alternative"]]
        return cls(**fields)


_ALTERNATIVES = {"overconfident": "over-confident", "underconfident": "under-confident", "two-sided": "two-sided"}


_TEST: dict[str, Any] = {
    "statistic": documents.numbers,
    "p_value": documents.between(0.0, 1.0),
    "alternative": documents.choice(*_ALTERNATIVES),
    "method": documents.words,
    "reason": documents.words,
    "n": documents.count(1),
}
