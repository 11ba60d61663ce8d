"""How many rows would decide, reckoned from an example of the predictions; what happened in it is not used."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack, final

import numpy as np
from scipy import special

from .. import documents
from .._checks import fail
from .._checks.columns import fraction, spelled, steadied, steady
from .._sums import Tally
from .._sums.cells import Points
from .._sums.nodes import Nodes
from .._sums.summary import COLUMN, Summary
from .._types import FloatArray
from ..errors import EmptyError, OptionError, UnavailableError
from ..families import Predictions, family_named
from ..inference.bounds import ratio_bounds
from ..inference.law import Law, Spread, StatesLaw
from ..inference.nodes import NodesLaw
from ..inference.points import PointsLaw
from ..inference.ranges import SHOWN, cuts, dimensions
from ..options import LimitOptions, Limits
from .evaluation import Evaluation
from .reasons import rounded

__all__ = ["RowsNeeded", "rows_needed"]

_MOST = 1e12  # rows
_TIMES = 2.0  # the limit of a range: over-confidence that is to be found


@final
@steadied
@dataclass(frozen=True, slots=True)
class RowsNeeded:
    """How many rows would decide.

    Attributes
    ----------
    n : int
        Rows of the sample.
    on_average : int or None
        Rows at which a calibrated model is called safe on average; None where no number is enough.
    in_places : int or None
        Rows at which every range of the predictions whose ECD is twice its limit is found; None where
        predictions have no ranges.
    power : float
        The probability with which so many rows are enough, for each of the two.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 200)
    >>> example = safecal.bernoulli(rng.random(200) < 1 / (1 + np.exp(-z)), logits=z)
    >>> print(safecal.rows_needed(example))
    On average: 270 rows, to call it SAFE if it is calibrated. The sample has 200.
    In places: 14000 rows, to find a range whose ECD is twice its limit.
    Each with a probability of 80 %.
    """

    n: int
    on_average: int | None
    in_places: int | None
    power: float

    def __str__(self) -> str:
        average = "no number of rows is enough" if self.on_average is None else f"{self.on_average} rows"
        text = f"On average: {average}, to call it SAFE if it is calibrated. The sample has {self.n}.\n"
        if self.in_places is not None:
            text += f"In places: {self.in_places} rows, to find a range whose ECD is twice its limit.\n"
        return f"{text}{'With' if self.in_places is None else 'Each with'} a probability of {100.0 * self.power:g} %."

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return documents.document("rows_needed", {f.name: getattr(self, f.name) for f in fields(self)})


@steady
@spelled(LimitOptions)
def rows_needed(
    source: Predictions | Tally | Evaluation, *, power: float = 0.8, **limits: Unpack[LimitOptions]
) -> RowsNeeded:
    """Estimate how many rows would decide, from a sample of the predictions.

    The sample shows how sharp predictions are. Its outcomes are not used: outcomes are those that the model expects. A
    hundred rows of the kind that will come are a good sample. Rows are taken as independent.

    Parameters
    ----------
    source : Predictions, Tally or Evaluation
        The sample.
    power : float, default 0.8
        The probability with which so many rows are to be enough.
    **limits
        ``threshold``, ``max_temperature``, ``level`` and the other limits of `evaluate`.

    Returns
    -------
    RowsNeeded
        Rows for a verdict on average, and for one in places.

    See Also
    --------
    evaluate : Whose verdict says how many more rows would decide, once there are some.

    Examples
    --------
    >>> import safecal
    >>> rare = safecal.bernoulli([0] * 99 + [1], [0.01] * 100)
    >>> safecal.rows_needed(rare).on_average
    470
    """
    tally = source.tally if isinstance(source, Evaluation) else source
    if isinstance(tally, Predictions):
        tally = Tally.of(tally)
    if not isinstance(tally, Tally):
        hint = "pass predictions: `safecal.rows_needed(safecal.bernoulli(y_true, y_prob))`."
        raise fail(OptionError, "source", "must be predictions, a Tally or an Evaluation", got=type(tally).__name__,
                   hint=hint)  # fmt: skip
    if tally.n == 0 or tally.summary.weight == 0.0:
        raise fail(EmptyError, "source", "must hold at least one row", got="none")
    if tally.clusters is not None:
        hint = "an evaluation with `cluster=` says how many more clusters would decide: `verdict.clusters_needed`."
        raise fail(OptionError, "source", "must hold independent rows, without clusters", hint=hint)
    lucky, checked = float(special.ndtri(fraction(power, "power"))), Limits(**limits)
    on_average, in_places = (reckon(tally, checked, lucky) for reckon in (_rows_on_average, _rows_in_places))
    return RowsNeeded(tally.n, on_average, in_places, float(power))


def _rows_on_average(tally: Tally, limits: Limits, lucky: float) -> int | None:
    """Return how many rows bring all upper bounds within their limits."""
    if _law(tally, 1.0, lucky) is None:
        raise UnavailableError("an unnormalised density has no temperature: how many rows decide cannot be computed.")
    low, high = math.log(0.1 / tally.n), math.log(_MOST / tally.n)
    if tally.n_certain or not _is_within(tally, math.exp(high), limits, lucky):
        return None
    while high - low > 0.005:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _is_within(tally, math.exp(middle), limits, lucky) else (middle, high)
    return int(rounded(math.ceil(tally.n * math.exp(high))))


def _is_within(tally: Tally, times: float, limits: Limits, lucky: float) -> bool:
    s, alpha = tally.summary, 0.5 * (1.0 - limits.level)
    possible = s.weight - s.weight_impossible
    law = _law(tally, times, lucky)
    assert law is not None
    if math.isnan(law.beta):  # even odds say nothing, and are safe; predictions all but certain never are
        return s.mean_entropy >= 0.98 * tally.vague_entropy
    beta = law.bound(alpha, -1)
    threshold = limits.threshold * float(dimensions(s.sum_varentropy, possible, tally))
    if beta * limits.max_temperature < 1.0 or max(law.ecd(beta), _empirical_bound(s, times, limits, lucky)) > threshold:
        return False
    if s.sum_confidence is None or not limits.everywhere:
        return True
    announced = np.array([max(times * (s.weight - s.sum_confidence), 1e-300)])
    seen = announced + lucky * np.sqrt(announced)
    return bool(ratio_bounds(seen, seen, announced, alpha)[1][0] <= limits.max_ratio)


def _empirical_bound(s: Summary, times: float, limits: Limits, lucky: float) -> float:
    """Return the upper bound from the spread of the rows."""
    n, variance = times * s.n, times * s.sum_varentropy_weight2
    if n < 2.0 or not variance > 0.0:
        return math.inf
    error = math.sqrt(variance * n / (n - 1.0)) / (times * s.weight)
    spread = Spread(error, times * s.sum_third_cumulant_weight3 / variance**1.5, int(n))
    return spread.interval(lucky * error, limits.level)[1]


def _law(tally: Tally, times: float, lucky: float) -> Law | None:
    """Return the law of so many times the rows, with a surprise that is exceeded as rarely as the power says."""
    s = tally.summary
    mass = times * (s.weight - s.weight_impossible)
    excess = lucky * math.sqrt(max(times * s.sum_varentropy_weight2, 0.0))
    points, spectrum = tally.points, tally.spectrum
    if points is not None:
        return PointsLaw(_as_expected(points, times), excess, mass)
    if isinstance(spectrum, Nodes):
        try:
            nodes = replace(spectrum, sums=times * spectrum.sums, surprises=1)
            return NodesLaw(nodes, excess, mass, tally.weighted, tally.vague_entropy)
        except UnavailableError:
            return None
    if family_named(tally.family).chi_square:
        scaled: dict[str, Any] = {
            f.name: times * x for f in fields(Summary) if isinstance(x := getattr(s, f.name), float)
        }
        return StatesLaw(replace(s, **scaled | {"sum_excess": excess}))
    return None


def _as_expected(points: Points, times: float) -> Points:
    """Return the points with outcomes as often as they are expected, however often they happened."""
    L, w, n, _, positive, cell = points
    surprise = special.expit(-L)
    twice = [np.concatenate([x, x]) for x in (L, w, positive, cell)]
    counts = times * np.concatenate([n * surprise, n * (1.0 - surprise)])
    sides = np.arange(2 * len(L)) < len(L)
    kept = counts > 0.0
    return Points(twice[0], twice[1], counts, sides, twice[2], twice[3]).take(kept)


def _rows_in_places(tally: Tally, limits: Limits, lucky: float) -> int | None:
    """Return how many rows find every range but the small ones, by the spread that predictions have there."""
    orders = tally.orders
    total = float(orders[0].sums[:, COLUMN["weight"]].sum()) if orders else 0.0
    pieces = [(order, ends) for order in orders if len(ends := cuts(order, total, limits.min_share))]
    if not pieces or not limits.everywhere:
        return None
    count = sum(len(ends) for _, ends in pieces)
    reach = -float(special.ndtri(SHOWN * (1.0 - limits.level) / count)) + lucky
    largest = 0.0
    for order, ends in pieces:
        columns = [np.concatenate([[0.0], np.cumsum(order.sums[:, COLUMN[name]])]) for name in _OF_RANGES]
        weight, varentropy, confidence = (x[ends[:, 1]] - x[ends[:, 0]] for x in columns)
        limit = limits.local_threshold * dimensions(varentropy, weight, tally)
        variance = _variance_at(_TIMES * limit, varentropy / weight, confidence / weight)
        rows = variance * (reach / ((_TIMES - 1.0) * limit)) ** 2 * total / weight
        is_wide = np.isfinite(rows) & (weight >= limits.min_share * total * (1.0 - 1e-9))
        largest = max(largest, float(np.where(is_wide, rows, 0.0).max()))
    return int(rounded(math.ceil(largest * tally.n / tally.summary.weight))) if largest > 0.0 else None


_OF_RANGES = ("weight", "sum_varentropy", "sum_confidence")


def _variance_at(ecd: FloatArray, varentropy: FloatArray, confidence: FloatArray) -> FloatArray:
    """Return the variance of the excess in ranges whose ECD is so large; NaN where it cannot be.

    Classes: a mistake costs as many nats as its odds were long, and there are as many of them as make up the ECD.
    States: errors are larger by one factor.
    """
    with np.errstate(all="ignore"):
        states = varentropy * (1.0 + ecd / varentropy) ** 2
        size = np.log(confidence / (1.0 - confidence))
        share = 1.0 - confidence + ecd / size
        classes = np.where((size > 0.0) & (share < 1.0), size**2 * share * (1.0 - share), np.nan)
    return np.where(np.isnan(confidence), states, classes)
