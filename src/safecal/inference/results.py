"""What tests and intervals return."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from .. import documents

__all__ = ["Interval", "TestResult", "direction"]


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
        content = documents.body("interval", document, cls.__slots__)
        value, low, high = (math.nan if content[k] is None else float(content[k]) for k in ("value", "low", "high"))
        return cls(value, low, high, content["level"], content["method"])


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
    alternative : {"overconfident", "underconfident", "two-sided"}
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
    alternative: str
    method: str
    reason: str
    n: int

    @property
    def direction(self) -> str:
        """Say on which side the outcomes lie: "over-confident", "under-confident" or "neither"."""
        if self.statistic == 0 or math.isnan(self.statistic):
            return "neither"
        return "over-confident" if self.statistic > 0 else "under-confident"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        content = {"statistic": documents.number(self.statistic), "p_value": self.p_value}
        rest = {name: getattr(self, name) for name in ("alternative", "method", "reason", "n")}
        return documents.document("test", content | rest)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = documents.body("test", document, cls.__slots__)
        names = ("alternative", "method", "reason", "n")
        return cls(float(content["statistic"]), content["p_value"], *(content[name] for name in names))


def direction(ecd: Interval) -> str:
    """Say in words what the interval of an ECD means."""
    if math.isnan(ecd.value):
        return "no rows"
    if math.isinf(ecd.value):
        return "an outcome the model called impossible happened"
    if ecd.low > 0.0:
        return "over-confident"
    return "under-confident" if ecd.high < 0.0 else "no clear direction"
