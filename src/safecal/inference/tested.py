"""The test of calibration, read off a tally."""

import math
from dataclasses import replace

from .._sums.tally import Tally
from .calibration import calibration_test, cluster_test, decided, p_value, statistic
from .law import Law, Tails
from .nodes import NodesLaw
from .points import PointsLaw
from .results import TestResult

__all__ = ["tally_test"]


def tally_test(tally: Tally, law: Law | None) -> TestResult:
    """Test calibration on both sides, by the first method that applies."""
    s = tally.summary
    if tally.clusters is not None:
        return cluster_test(tally, "two-sided")
    known = decided(s, "two-sided")
    if known is not None:
        return known
    tails, method, reason = _tails(tally, law)
    if tails is None:
        return replace(calibration_test(s), reason=reason)
    return TestResult(statistic(s), p_value(tails, "two-sided"), "two-sided", method, reason, s.n)


def _tails(tally: Tally, law: Law | None) -> tuple[Tails | None, str, str]:
    if isinstance(law, PointsLaw):
        return law.tested()
    if tally.family == "gaussian" and not tally.weighted and law is not None:
        return law.tails(1.0), "exact", "a sum of Gaussians is a chi-square"
    if isinstance(law, NodesLaw) and not tally.weighted and math.isfinite(law.beta):
        return law.tails(1.0), "saddlepoint", "from the log-partition at five temperatures"
    if isinstance(law, NodesLaw) and not tally.weighted and law.unsurprised:
        return law.tails(1.0), "exact", "every outcome was a likeliest one"
    return None, "pearson3", "weights leave the sums alone" if tally.weighted else "from sums alone"
