"""One decision rule, and its reason in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from . import documents
from .certainty import certain_reason
from .errors import TruthError
from .inference.keyed import lows_together
from .inference.results import Interval, direction
from .limits import Limits
from .reliability import Reliability
from .summary import Summary
from .table import Table
from .tally import Tally

__all__ = ["SAFE", "UNDETERMINED", "UNSAFE", "Verdict", "judge", "on_average"]

SAFE, UNSAFE, UNDETERMINED = "SAFE", "UNSAFE", "UNDETERMINED"
_SAYS_NOTHING = 0.98  # of the largest possible entropy
_LARGE = 0.05  # share of the rows from which over-confidence in a bin makes the model unsafe
_NAMED = 3  # places that a reason names


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the model is safe: over-confidence ruled out, beyond the limits that were set.

    SAFE when the upper bounds of ECD and of the temperature are both within their limits, and no bin or group is
    over-confident beyond the limit of ECD. UNSAFE when a lower bound exceeds its limit, on average, in a group, or in
    a bin that holds at least 5 % of the rows; or when an impossible outcome happened. UNDETERMINED otherwise: the data
    cannot tell. Predictions of exactly 0 or 1, and rows with a class of probability 0, are never SAFE: one failure
    would be an infinite surprise, and no number of rows rules it out.

    A verdict is neither true nor false: compare its ``decision``, or use `safecal.testing.assert_safe`.

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

    def __bool__(self) -> bool:
        raise TruthError(
            "a verdict is neither true nor false: UNSAFE would pass as true.\n\n"
            'Hint: compare `verdict.decision == "SAFE"`, or use `safecal.testing.assert_safe(y_true, y_prob)`.'
        )

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
    tally: Tally, ecd: Interval, temperature: Interval, reliability: Reliability | None, limits: Limits
) -> Verdict:
    """Decide, by the intervals of ECD and of the temperature at the level of the limits, and by bins and groups."""
    summary, certain = tally.summary, tally.n_certain
    threshold, max_temperature, level = limits.threshold, limits.max_temperature, limits.level
    what = _TEMPERATURE.get(tally.family, "its temperature is {}")
    tables = [table for table in (tally.bins, tally.groups) if table is not None]
    clustered = tally.clusters is not None
    limit = threshold * tally.dimension
    average = _decide(ecd, temperature, limit, max_temperature)
    places = [place for table in tables for place in _places(table, limit, level)]
    decision = _in_places(average, places, clustered)
    says_nothing = summary.mean_entropy >= _SAYS_NOTHING * tally.most_entropy
    # Logits so large that no temperature lets them fail: that they did not is no evidence.
    beyond = math.isnan(temperature.value) and math.isfinite(tally.most_entropy) and not says_nothing
    if decision == SAFE and (certain or beyond):
        decision = UNDETERMINED
    undecided = average == decision == UNDETERMINED
    needed = _rows_needed(summary, ecd, temperature, limit, max_temperature) if undecided else None
    reason = _reason(average, summary, ecd, temperature, limit, max_temperature, what)
    if certain and decision == UNDETERMINED and not places:
        needed = None
        reason = certain_reason(certain, summary.n, round(math.exp(tally.most_entropy)))
    elif beyond and decision == UNDETERMINED and not places:
        needed, reason = (
            None,
            "its predictions are all but certain, and no number of rows can show that they should be.",
        )
    if places and average != UNSAFE:
        reason = _local_reason(average, places, limit, level, clustered)
    if needed is not None:
        reason += f" About {_round(needed)} more row{'' if needed == 1 else 's'} would decide."
    if says_nothing:
        reason += " It says almost nothing: its predictions are close to even odds."
    return Verdict(
        decision,
        reason,
        ecd,
        temperature,
        threshold,
        max_temperature,
        level,
        tuple(place.name for place in places),
        needed,
        says_nothing,
        direction(ecd),
        _worst(tables),
        summary.n_impossible,
        summary.bias,
        tally.histogram.worst_share(),
        "" if reliability is None else _reading(decision, average, direction(ecd), reliability, summary.bias),
    )


# What a temperature means, by family.
_TEMPERATURE = {
    "bernoulli": "its logits are {} times too large",
    "categorical": "its logits are {} times too large",
    "gaussian": "its covariances are {} times too small",
}


def on_average(verdict: Verdict, dimension: int) -> str:
    """Return the decision that the averages alone would give, whatever happens in bins and groups."""
    return _decide(verdict.ecd, verdict.temperature, verdict.threshold * dimension, verdict.max_temperature)


class _Place(NamedTuple):
    """A bin or group that is over-confident beyond the limit."""

    name: str
    group: bool
    n: int
    share: float
    low: float  # bound on its ECD
    predicted: float
    observed: float
    top_label: bool

    @property
    def large(self) -> bool:
        return self.group or self.share >= _LARGE

    @property
    def label(self) -> str:
        """Its name as a sentence can hold it: printable, on one line, not too long."""
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in self.name).replace("`", "'")
        return text if len(text) <= 40 else text[:37] + "..."

    def __str__(self) -> str:
        rows = f"{self.n} row{'' if self.n == 1 else 's'}, ECD at least {self.low:.3g}"
        return f"in {self.label} {self.says}({rows})"

    @property
    def says(self) -> str:
        """What it predicts there beside what happens, where that tells of over-confidence."""
        if self.group or math.isnan(self.predicted):
            return ""
        seen = f"is right in {_percent(self.observed)}" if self.top_label else f"{_percent(self.observed)} happens"
        return f"it says {_percent(self.predicted)} and {seen} "


def _places(table: Table, limit: float, level: float) -> list[_Place]:
    """Return the keys that are over-confident beyond the limit, by bounds that hold together, the worst first."""
    lows = lows_together(table.sums, level)
    beyond = np.flatnonzero(lows > limit)
    beyond = beyond[np.argsort(-lows[beyond], kind="stable")]
    columns = (x[beyond].tolist() for x in (table.n, table.weights, lows, table.predicted, table.observed))
    names = (table.label(k) for k in beyond.tolist())
    return [
        _Place(
            f"{table.name} {name or repr(name)}",
            table.bins is None,
            n,
            share,
            low,
            predicted,
            observed,
            table.top_label,
        )
        for name, n, share, low, predicted, observed in zip(names, *columns, strict=True)
    ]


def _in_places(average: str, places: list[_Place], clustered: bool) -> str:
    """Decide with what is known of places. Their bounds take rows as independent, so clusters leave it open."""
    if average == UNSAFE or not places:
        return average
    return UNSAFE if any(place.large for place in places) and not clustered else UNDETERMINED


def _local_reason(average: str, places: list[_Place], limit: float, level: float, clustered: bool) -> str:
    start = "its confidence is within the limits on average, but not in every place"
    if average != SAFE:
        start = "on average the data cannot tell, but in places it is over-confident"
    named = "; ".join(map(str, places[:_NAMED])) + (
        f"; and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    )
    text = f"{start}: {named}. {limit:g} nat is allowed, and the bounds hold at {100 * level:g} % confidence."
    if clustered:
        text = (
            f"{start}: {named}. {limit:g} nat is allowed, but these bounds take the rows of a cluster as independent."
        )
    elif not any(place.large for place in places):
        text += f" Each of these places holds less than {100 * _LARGE:g} % of the rows."
    return text


def _percent(share: float) -> str:
    """Write a share so that neither 0 nor 100 % is written for what is not."""
    percent = 100.0 * share
    digits = 0 if 0.95 <= percent <= 99.05 or percent in (0.0, 100.0) else 2
    return f"{percent:.{digits}f} %"


def _worst(tables: Sequence[Table]) -> str | None:
    """Return the key that adds most to ECD."""
    found: list[tuple[float, str]] = []
    for table in tables:
        above = np.flatnonzero(table.ecd > 0.0)
        if len(above):
            adds = (table.weights * table.ecd)[above]
            most = above[adds == adds.max()].tolist()
            found += [(float(adds.max()), f"{table.name} {table.label(k)}") for k in most]
    return max(found)[1] if found else None


def _reading(decision: str, average: str, side: str, reliability: Reliability, bias: float) -> str:
    """Read ECE, ESCE and ECD together, as the paper does."""
    local = decision != average
    ece, most = _apart(reliability.ece, reliability.ece_quantile)
    if reliability.ece <= reliability.ece_quantile:
        start = f"ECE ({ece}) is what chance alone gives a calibrated model (up to {most})"
        ends = {
            SAFE: "and ECD agrees: well calibrated, and safe",
            UNSAFE: "but ECD is not: a few confident mistakes that bins average away",
            UNDETERMINED: "and for ECD there are too few rows to tell",
        } | ({UNSAFE: _LOCAL, UNDETERMINED: "and whether it is safe everywhere, the data cannot tell"} if local else {})
        return f"{start}, {ends[decision]}."
    start = f"ECE ({ece}) is more than chance alone gives (up to {most})"
    ends = {
        SAFE: f"but the model is safe: {_mild(side)}",
        UNSAFE: "and ECD agrees: badly calibrated, and over-confident",
        UNDETERMINED: "and whether that is unsafe, the data cannot tell",
    } | ({UNSAFE: _LOCAL} if local else {})
    cancels = "; ESCE is near 0 because bins of opposite sign cancel" if abs(bias) < 0.25 * reliability.ece else ""
    return f"{start}, {ends[decision]}{cancels}."


def _apart(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(3, 17) if a == b or f"{a:.{d}g}" != f"{b:.{d}g}"), 17)
    return f"{a:.{digits}g}", f"{b:.{digits}g}"


_LOCAL = "and ECD finds it over-confident in places, though not on average"


def _mild(side: str) -> str:
    return "it errs on the cautious side" if side == "under-confident" else "the error is small in nats"


def _decide(ecd: Interval, temperature: Interval, limit: float, most: float) -> str:
    """Decide by the averages. A temperature that does not exist, NaN, says nothing."""
    if ecd.low > limit or temperature.low > most:
        return UNSAFE
    return SAFE if ecd.high <= limit and not temperature.high > most else UNDETERMINED


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
