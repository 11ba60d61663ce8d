"""Why a verdict is what it is, in words, and what would change it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Self, TypeVar, final, get_args

import numpy as np
from scipy import special

from .._checks.classes import certain_reason
from .._sums.summary import Summary
from .._sums.tally import Tally
from .._types import Decision, Direction
from ..families.family import FamilyWords
from ..families.predictions import family_named
from ..inference import bounds
from ..inference.mistakes import Mistakes
from ..inference.results import Interval
from ..options import Limits
from .diagnosis import Diagnosis, only_labels
from .places import Place
from .reliability import Reliability

__all__ = [
    "DIRECTIONS", "Average", "Late", "Words", "average_reason", "clusters_needed", "direction",
    "hopeless_reason", "local_reason", "reading", "rounded", "rows_needed",
]  # fmt: skip

T = TypeVar("T")

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_SAFE, _UNSAFE, _UNDETERMINED = "SAFE", "UNSAFE", "UNDETERMINED"
_NAMED = 3  # places that a reason names
_CALIBRATED = 1.005  # a temperature that is written as 1, or less: nothing is too large


def direction(ecd: Interval) -> Direction:
    """Say in words what the interval of an ECD means."""
    if math.isnan(ecd.value):
        return DIRECTIONS[0]
    if math.isinf(ecd.value):
        return DIRECTIONS[1]
    if ecd.low > 0.0:
        return DIRECTIONS[2]
    return DIRECTIONS[3] if ecd.high < 0.0 else DIRECTIONS[4]


@final
class Late(Generic[T]):
    """A value that is found when it is first asked for, and kept; it is compared, copied and shown as that value."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], T]) -> None:
        self._find: Callable[[], T] | None = find

    @classmethod
    def known(cls, value: T) -> "Late[T]":
        """Return one that is known already."""
        return cls(lambda: value)

    @property
    def value(self) -> T:
        """The value."""
        find = self._find
        if find is not None:
            with np.errstate(all="ignore"):  # as in the judgement itself
                self._found = find()
            self._find = None
        return self._found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Late) and (self.value,) == (other.value,)  # in which NaN equals itself

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Late.known, (self.value,)


class Words(NamedTuple):
    """What a verdict tells its readers: why, what is wrong, and what stands out."""

    reason: str
    diagnosis: Diagnosis | None
    worst: Late[str | None]
    worst_share: Late[float]


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """One average beside its limit."""

    interval: Interval
    limit: float
    logarithmic: bool  # whether it is a factor

    @property
    def beyond(self) -> bool:
        """Whether the lower bound exceeds the limit."""
        return self.interval.low > self.limit

    @property
    def within(self) -> bool:
        """Whether the upper bound does not; what does not exist, NaN, says nothing."""
        return not self.interval.high > self.limit

    @property
    def factor(self) -> float:
        """How many times as many rows would decide; widths shrink with the square root of the number of rows.

        Estimates move while rows come: see `_spare`.
        """
        if self.beyond or self.within:
            return 1.0
        ends = (self.interval.value, self.interval.low, self.interval.high, self.limit)
        value, low, high, limit = map(_logarithm, ends) if self.logarithmic else ends
        room = abs(limit - value)
        width = high - value if value <= limit else value - low
        if not room > 0.0 or math.isinf(width):
            return math.inf
        return max(_spare(self.interval.level) * (width / room) ** 2, 1.0)


def _spare(level: float) -> float:
    """Return how many times as many rows decide in 8 of 10 cases as would if the estimate stayed where it is.

    A bound is ``z`` standard errors away from the estimate, which itself moves by more than ``ndtri(0.8)`` of them
    towards the limit in 2 of 10 cases.
    """
    z = float(special.ndtri(0.5 + level / 2.0))
    return ((z + float(special.ndtri(0.8))) / z) ** 2


def _logarithm(x: float) -> float:
    return math.log(x) if 0.0 < x < math.inf else math.copysign(math.inf, x - 1.0)


@final
@dataclass(frozen=True, slots=True)
class Average:
    """The averages over all rows, and their limits."""

    ecd: Scale
    temperature: Scale
    ratio: Scale | None
    mistakes: Mistakes | None
    dimensions: float
    threshold: float
    words: FamilyWords

    @classmethod
    def of(cls, tally: Tally, ecd: Interval, temperature: Interval, mistakes: Mistakes | None, limits: Limits) -> Self:
        """Put them together; the rule of averages has two scales."""
        s = tally.summary
        many = float(tally.dimension)
        if limits.everywhere:
            possible = s.weight - s.weight_impossible
            many = max(1.0, 2.0 * s.sum_varentropy / possible) if possible > 0.0 else 1.0
        ratio = None
        if limits.everywhere and mistakes is not None:
            ratio = Scale(mistakes.ratio, limits.max_ratio, True)
        return cls(
            Scale(ecd, limits.threshold * many, False),
            Scale(temperature, limits.max_temperature, True),
            ratio,
            mistakes,
            many,
            limits.threshold,
            family_named(tally.family).words.of(tally.dimension),
        )

    def times(self, how: str, value: float) -> str:
        """Say what a temperature means: "its logits are at most 1.7 times too large"; up to 1 nothing is."""
        what = self.words.factor
        if what is None:
            return f"its temperature {how.replace('are ', 'is ')} {value:.3g}"
        if value < _CALIBRATED:
            return what.format("are not")
        many = f"{how} {self.words.multiple(value):.3g} times"
        return what.format("may be any number of times" if math.isinf(value) else many)

    @property
    def times_allowed(self) -> str:
        """Say how many times too large something may be."""
        return f"{self.words.multiple(self.temperature.limit):.3g} is allowed"

    @property
    def scales(self) -> list[Scale]:
        """All of them."""
        return [self.ecd, self.temperature, *([] if self.ratio is None else [self.ratio])]

    @property
    def beyond(self) -> bool:
        """Whether one is beyond its limit."""
        return any(scale.beyond for scale in self.scales)

    @property
    def within(self) -> bool:
        """Whether all are within their limits."""
        return all(scale.within for scale in self.scales) and not math.isnan(self.ecd.interval.high)

    @property
    def allowed(self) -> str:
        """Say how much ECD is allowed."""
        if self.dimensions == 1.0:
            return f"{self.ecd.limit:g} nat"
        return f"{self.ecd.limit:.3g} nat ({self.threshold:g} for each of {self.dimensions:.3g} dimensions)"


def average_reason(decision: Decision, s: Summary, average: Average, *, scaled: bool = True) -> str:
    """Say what the averages say, with the bound that decided; ``scaled``: a temperature is what is wrong."""
    if s.weight_impossible > 0.0:
        rows = "1 outcome" if s.n_impossible == 1 else f"{s.n_impossible} outcomes"
        return f"{rows} happened to which the model had given probability 0."
    ecd, t = average.ecd.interval, average.temperature.interval
    at = f"at {100 * ecd.level:g} % confidence"
    if decision == _SAFE:
        text = f"over-confidence beyond {average.allowed} is ruled out on average {at}: ECD is at most {ecd.high:.3g}"
        if not math.isnan(t.high):
            text += f", and {average.times('are at most', t.high)}"
        return text + "."
    if decision == _UNSAFE:
        return f"the model is over-confident: {_beyond(average, at, scaled)}."
    return f"the data cannot tell {at}: {_undecided(average)}."


def _beyond(average: Average, at: str, scaled: bool) -> str:
    """Say which limit is exceeded: the first that is."""
    ecd, t = average.ecd, average.temperature
    if ecd.beyond:
        text = f"ECD is at least {ecd.interval.low:.3g} {at}, where {average.allowed} is allowed"
        named = scaled and _CALIBRATED <= t.interval.value < math.inf
        about = "are at least" if t.interval.method.endswith("at least") else "are about"
        return text + (f"; {average.times(about, t.interval.value)}" if named else "")
    if t.beyond:
        return f"{average.times('are at least', t.interval.low)} {at}, where {average.times_allowed}"
    ratio, mistakes = average.ratio, average.mistakes
    assert ratio is not None
    assert mistakes is not None
    return (
        f"it announced {_count(mistakes.announced)} mistakes and made {_count(mistakes.seen)}, at least"
        f" {ratio.interval.low:.3g} times as many {at}, where {ratio.limit:g} times are allowed"
    )


def _undecided(average: Average) -> str:
    """Say which limit lies inside its interval: the first that does."""
    ecd, t = average.ecd, average.temperature
    if not ecd.within:
        i = ecd.interval
        return f"ECD lies between {i.low:.3g} and {i.high:.3g}, and {average.allowed} is allowed"
    if not t.within:
        least, most = t.interval.low, t.interval.high
        some = average.words.multiple(least)
        how = f"are between {some:.3g} and" if least >= _CALIBRATED or average.words.factor is None else "may be up to"
        return f"{average.times(how, most)}, and {average.times_allowed}"
    ratio, mistakes = average.ratio, average.mistakes
    if ratio is None or mistakes is None:
        return "there is nothing to judge"
    return (
        f"it announced {_count(mistakes.announced)} mistakes and made {_count(mistakes.seen)}; in the long run that"
        f" may be {ratio.interval.low:.3g} to {ratio.interval.high:.3g} times as many, and {ratio.limit:g} are allowed"
    )


def hopeless_reason(tally: Tally, far: int) -> str:
    """Say why no number of rows would decide: predictions that are certain, or as good as certain."""
    if tally.n_certain:
        classes = round(math.exp(tally.most_entropy))
        return certain_reason(tally.n_certain, tally.n, classes, tally.decimals, labels=only_labels(tally))
    if far:
        return (
            f"{far} of {tally.n} log-odds are beyond a million: such a prediction claims never to fail, and no "
            "number of rows can show that. Limit them to what you mean: `np.clip(logits, -40, 40)`."
        )
    return "its predictions are almost certain, and no number of rows can show that they may be."


def local_reason(average: str, reason: str, places: Sequence[Place], level: float, clustered: bool) -> str:
    """Say in which places it is over-confident, and what holds on average."""
    shown = [place for place in places if place.shown]
    named = shown or list(places)
    text = "; ".join(map(str, named[:_NAMED])) + (f"; and in {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    if average == _UNSAFE:
        return f"{reason} Worst: {named[0]}." if shown else reason
    start = {
        _SAFE: "its confidence is right on average, but not everywhere",
        _UNDETERMINED: "on average the data cannot tell, but in places it is over-confident",
    }[average]
    if not shown:
        start = {
            _SAFE: "its confidence is right on average, but perhaps not everywhere",
            _UNDETERMINED: "the data cannot tell, and in places it may be over-confident",
        }[average]
    ends = f"The bounds of all places hold together at {100 * level:g} % confidence."
    if not shown:
        ends = f"More {'clusters' if clustered else 'rows'} would tell."
        if clustered and all(place.by == "temperature" for place in places):
            ends = "Where rows come in clusters, the temperature of a group can be suspected, but not shown."
    return f"{start}: {text}. {ends}"


def reading(decision: Decision, average: Decision, side: Direction, reliability: Reliability, bias: float) -> str:
    """Read ECE, ESCE and ECD together, as the paper does."""
    local = decision != average
    ece, most = _apart(reliability.ece, reliability.ece_quantile)
    if reliability.ece <= reliability.ece_quantile:
        start = f"ECE ({ece}) is what chance alone gives a calibrated model (up to {most})"
        ends = {
            _SAFE: "and ECD agrees: well calibrated, and safe",
            _UNSAFE: "but ECD is larger than that: bins average a few confident mistakes away",
            _UNDETERMINED: "and for ECD there are too few rows to tell",
        }
        if local:
            ends |= {_UNSAFE: _LOCAL, _UNDETERMINED: "and whether it is safe everywhere, the data cannot tell"}
        return f"{start}, {ends[decision]}."
    start = f"ECE ({ece}) is more than chance alone gives (up to {most})"
    mild = "it errs on the cautious side" if side == "under-confident" else "the error is small in nats"
    ends = {
        _SAFE: f"but the model is safe: {mild}",
        _UNSAFE: "and ECD agrees: badly calibrated, and over-confident",
        _UNDETERMINED: "and whether that is unsafe, the data cannot tell",
    } | ({_UNSAFE: _LOCAL} if local else {})
    cancels = "; ESCE is near 0 because bins of opposite sign cancel" if abs(bias) < 0.25 * reliability.ece else ""
    return f"{start}, {ends[decision]}{cancels}."


_LOCAL = "and ECD finds it over-confident in places, though not on average"


def _apart(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart."""
    digits = next((d for d in range(3, 17) if a == b or f"{a:.{d}g}" != f"{b:.{d}g}"), 17)
    return f"{a:.{digits}g}", f"{b:.{digits}g}"


def rows_needed(n: int, average: Average) -> int | None:
    """Guess how many more rows would decide in 8 of 10 cases; None where no number can be told."""
    t = average.temperature.interval.value
    if not math.isnan(t) and not 0.0 < t < math.inf:
        return None
    over = [scale for scale in average.scales if scale.interval.value > scale.limit]
    factors = [scale.factor for scale in over or average.scales]
    factor = min(factors) if over else max(factors)  # one limit that is exceeded is enough
    return max(math.ceil(n * (factor - 1.0)), 1) if factor < 1e6 else None


def clusters_needed(tally: Tally, average: Average, limits: Limits) -> int | None:
    """Guess how many more clusters would let the averages be called safe in 8 of 10 cases."""
    ratio = math.inf if average.ratio is None else average.ratio.limit
    alpha = 0.5 * (1.0 - limits.level)
    found = bounds.clusters_needed(
        tally,
        threshold=average.ecd.limit,
        max_temperature=average.temperature.limit,
        alpha=alpha,
        max_ratio=ratio,
    )
    if not found:
        return None
    assert tally.clusters is not None
    return math.ceil(_spare(limits.level) * (len(tally.clusters) + found)) - len(tally.clusters)


def rounded(n: int) -> str:
    """Write a number of rows with two digits."""
    digits = max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / 10**digits) * 10**digits:d}"


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10.0 or number == round(number) else f"{number:.2g}"
