"""One decision rule, and its reason in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from . import documents
from .certainty import certain_reason
from .inference.intervals import Bounds
from .inference.results import Interval, direction
from .reliability import Reliability
from .summary import Summary
from .table import Table

__all__ = ["SAFE", "UNDETERMINED", "UNSAFE", "Verdict", "judge"]

SAFE, UNSAFE, UNDETERMINED = "SAFE", "UNSAFE", "UNDETERMINED"
_SAYS_NOTHING = 0.98  # of the largest possible entropy


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the model is safe: over-confidence ruled out, beyond the limits that were set.

    SAFE when the upper bounds of ECD and of the temperature are both within their limits. UNSAFE when a lower bound
    exceeds its limit, or an impossible outcome happened. UNDETERMINED otherwise: the data cannot tell. Predictions of
    exactly 0 or 1, and rows with a class of probability 0, are never SAFE: one failure would be an infinite surprise,
    and no number of rows rules it out.

    Nats alone are blind to scale, and temperature alone to importance, so both are used. The limit of 0.1 nat agrees
    with the readings that the paper gives of its published values: 0.060 safe, 0.163 and 0.477 a cause for concern.

    Attributes
    ----------
    decision : {"SAFE", "UNSAFE", "UNDETERMINED"}
        The decision.
    reason : str
        Why, in a sentence.
    ecd, temperature : Interval
        What it rests on.
    threshold, max_temperature : float
        The limits: of ECD in nats (for states a dimension), and of the temperature.
    level : float
        Confidence level of the intervals.
    unsafe_in : tuple of str
        Bins or groups that are over-confident beyond the threshold, each of them at the level of all together.
    rows_needed : int or None
        About how many more rows would decide; None when it is decided, or no number would.
    uninformative : bool
        Whether predictions are so close to even odds that they say nothing: safe, and useless.
    direction : {"over-confident", "under-confident", "no clear direction"}
        On which side of 0 the interval of ECD lies.
    worst : str or None
        The bin or group that adds most to ECD; None when none adds to it.
    n_impossible : int
        Outcomes that the model had called impossible.
    bias : float
        Observed minus predicted over all rows; NaN for states and densities.
    worst_share : float
        Share of all excess above 0 in the most surprising 1 % of the rows: near 1, a few rows decide.
    reading : str
        What ECE, ESCE and ECD say together; empty where there are no bins.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 2000)
    >>> y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
    >>> safecal.evaluate(y_true, logits=log_odds).verdict.decision
    'SAFE'
    >>> safecal.evaluate(y_true, logits=3 * log_odds).verdict.decision
    'UNSAFE'
    """

    decision: str
    reason: str
    ecd: Interval
    temperature: Interval
    threshold: float
    max_temperature: float
    level: float
    unsafe_in: tuple[str, ...]
    rows_needed: int | None
    uninformative: bool
    direction: str
    worst: str | None
    n_impossible: int
    bias: float
    worst_share: float
    reading: str

    def __str__(self) -> str:
        return f"{self.decision}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        names = ["decision", "reason", "threshold", "max_temperature", "level", "rows_needed", "uninformative"]
        names += ["direction", "worst", "n_impossible", "reading"]
        numbers = {name: documents.number(getattr(self, name)) for name in ("bias", "worst_share")}
        intervals = {"ecd": self.ecd.to_dict(), "temperature": self.temperature.to_dict()}
        content = {name: getattr(self, name) for name in names} | numbers | intervals
        return documents.document("verdict", content | {"unsafe_in": list(self.unsafe_in)})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        content = dict(documents.body("verdict", document, cls.__slots__))
        content |= {name: Interval.from_dict(content[name]) for name in ("ecd", "temperature")}
        content["unsafe_in"] = tuple(content["unsafe_in"])
        content |= {name: math.nan if content[name] is None else content[name] for name in ("bias", "worst_share")}
        return cls(**{name: content[name] for name in cls.__slots__})


def judge(
    summary: Summary,
    bounds: Bounds,
    tables: tuple[Table, ...],
    *,
    dimension: int,
    most_entropy: float,
    threshold: float,
    max_temperature: float,
    level: float,
    certain: int,
    worst_share: float,
    reliability: Reliability | None,
    what: str,
) -> Verdict:
    """Decide. ``certain`` counts predictions of exactly 0 or 1; ``what`` says what the temperature means."""
    ecd, temperature = bounds.interval(level), bounds.temperature(level)
    limit = threshold * dimension
    known = not math.isnan(temperature.value)
    decision = _decide(ecd, temperature if known else None, limit, max_temperature)
    if decision == SAFE and certain:
        decision = UNDETERMINED
    undecided = decision == UNDETERMINED and not certain
    needed = _rows_needed(summary, ecd, temperature, limit, max_temperature) if undecided else None
    says_nothing = summary.mean_entropy >= _SAYS_NOTHING * most_entropy
    reason = _reason(decision, summary, ecd, temperature, limit, max_temperature, what)
    if certain and decision == UNDETERMINED:
        reason = certain_reason(certain, summary.n, round(math.exp(most_entropy)))
    if needed is not None:
        reason += f" About {_round(needed)} more row{'' if needed == 1 else 's'} would decide."
    if says_nothing:
        reason += " It says almost nothing: its predictions are close to even odds."
    unsafe = tuple(name for table in tables for name in _unsafe_keys(table, limit, level))
    return Verdict(
        decision,
        reason,
        ecd,
        temperature,
        threshold,
        max_temperature,
        level,
        unsafe,
        needed,
        says_nothing,
        direction(ecd),
        _worst(tables),
        summary.n_impossible,
        summary.bias,
        worst_share,
        "" if reliability is None else _reading(decision, direction(ecd), reliability, summary.bias),
    )


def _worst(tables: tuple[Table, ...]) -> str | None:
    """Return the key that adds most to ECD."""
    found = [
        (share * s.ecd, f"{table.name} {name}")
        for table in tables
        for share, s, name in zip(table.weights.tolist(), table.summaries, table.labels, strict=True)
        if s.n > 0 and s.ecd > 0.0
    ]
    return max(found)[1] if found else None


def _reading(decision: str, side: str, reliability: Reliability, bias: float) -> str:
    """Read ECE, ESCE and ECD together, as the paper does."""
    ece, most = _apart(reliability.ece, reliability.ece_quantile)
    if reliability.ece <= reliability.ece_quantile:
        start = f"ECE ({ece}) is what chance alone gives a calibrated model (up to {most})"
        ends = {
            SAFE: "and ECD agrees: well calibrated, and safe",
            UNSAFE: "but ECD is not: a few confident mistakes that bins average away",
            UNDETERMINED: "and for ECD there are too few rows to tell",
        }
        return f"{start}, {ends[decision]}."
    start = f"ECE ({ece}) is more than chance alone gives (up to {most})"
    ends = {
        SAFE: f"but the model is safe: {_mild(side)}",
        UNSAFE: "and ECD agrees: badly calibrated, and over-confident",
        UNDETERMINED: "and whether that is unsafe, the data cannot tell",
    }
    cancels = "; ESCE is near 0 because bins of opposite sign cancel" if abs(bias) < 0.25 * reliability.ece else ""
    return f"{start}, {ends[decision]}{cancels}."


def _apart(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(3, 17) if a == b or f"{a:.{d}g}" != f"{b:.{d}g}"), 17)
    return f"{a:.{digits}g}", f"{b:.{digits}g}"


def _mild(side: str) -> str:
    return "it errs on the cautious side" if side == "under-confident" else "the error is small in nats"


def _decide(ecd: Interval, temperature: Interval | None, limit: float, most: float) -> str:
    if ecd.low > limit or (temperature is not None and temperature.low > most):
        return UNSAFE
    within = ecd.high <= limit and (temperature is None or temperature.high <= most)
    return SAFE if within else UNDETERMINED


def _reason(decision: str, s: Summary, ecd: Interval, t: Interval, limit: float, most: float, what: str) -> str:
    if s.weight_impossible > 0.0:
        rows = "1 outcome" if s.n_impossible == 1 else f"{s.n_impossible} outcomes"
        return f"{rows} happened to which the model had given probability 0."
    at = f"at {100 * ecd.level:g} % confidence"
    if decision == SAFE:
        text = f"over-confidence beyond {limit:g} nat is ruled out {at}: ECD is at most {ecd.high:.3g}"
        return text + (f", and {what.format(f'at most {t.high:.3g}')}." if not math.isnan(t.high) else ".")
    if decision == UNSAFE and ecd.low > limit:
        text = f"the model is over-confident: ECD is at least {ecd.low:.3g} nat {at}, where {limit:g} is allowed"
        return text + (f"; {what.format(f'about {t.value:.3g}')}." if math.isfinite(t.value) else ".")
    if decision == UNSAFE:
        return f"the model is over-confident: {what.format(f'at least {t.low:.3g}')} {at}, where {most:g} is allowed."
    if ecd.high > limit:
        text = f"ECD lies between {ecd.low:.3g} and {ecd.high:.3g} nat"
        return f"the data cannot tell {at}: {text}, and {limit:g} is allowed."
    text = what.format(f"between {t.low:.3g} and {t.high:.3g}")
    return f"the data cannot tell {at}: {text}, and {most:g} is allowed."


def _rows_needed(s: Summary, ecd: Interval, t: Interval, limit: float, most: float) -> int | None:
    """Guess from the width of the intervals, which shrinks with the square root of the number of rows."""
    factors = [_factor(ecd.value, ecd.low, ecd.high, limit)]
    if not math.isnan(t.value):
        if not 0.0 < t.value < math.inf:
            return None
        low, high = (math.log(x) if 0.0 < x < math.inf else math.copysign(math.inf, x - 1.0) for x in (t.low, t.high))
        factors.append(_factor(math.log(t.value), low, high, math.log(most)))
    if ecd.value > limit or t.value > most:  # one limit that is exceeded is enough
        factors = [f for f, over in zip(factors, (ecd.value > limit, t.value > most), strict=False) if over]
        factor = min(factors, default=math.inf)
    else:
        factor = max(factors)
    return max(math.ceil(s.n * (factor - 1.0)), 1) if factor < 1e6 else None


def _factor(value: float, low: float, high: float, limit: float) -> float:
    room = abs(limit - value)
    width = high - value if value <= limit else value - low
    return max((width / room) ** 2, 1.0) if room > 0.0 and math.isfinite(width) else math.inf


def _round(n: int) -> str:
    digits = max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / 10**digits) * 10**digits:d}"


def _unsafe_keys(table: Table, limit: float, level: float) -> list[str]:
    lows = [interval.low for interval in table.intervals(level)]
    found = sorted(zip(lows, table.labels, strict=True), reverse=True)
    return [f"{table.name} {name}" for low, name in found if low > limit]
