"""Logistic fits of two classes: Cox's recalibration ``logit P(y) = shift + slope * log-odds``, and what is at fault.

A calibrated model has shift 0 and slope 1. The slope is one over the implied temperature where nothing else is wrong; a
shift says that the event happens more often, or more rarely, than it is predicted at every level.

A fault is a change of the predictions with one or two numbers to fit: a temperature, a shift, both, or a few wrong
labels. The one with the largest likelihood explains the outcomes best, at a price of `PRICE` for each number; what is
left is compared range by range, for faults that none of them explains.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.columns import steadied
from .._kernels.compiled import logistic_sums
from .._sums import Tally
from .._sums.cells import Points
from .._types import AnyArray, FloatArray, IndexArray
from . import Interval
from .clustered import LogisticPairs

__all__ = ["PRICE", "Cox", "Explained", "explain"]

Free = tuple[bool, bool]  # whether the shift is to be fitted, and whether the slope is
_STEPS = 200  # of Newton's method
_FAR = 100.0  # a shift or a slope beyond which the likelihood has no maximum
_FARTHEST = 1e4  # log-odds
_EXACT = 1e-10  # what the last step of Newton's method may gain: the next would gain its square
_ROUNDING = 1e-13  # of the information on a slope: what is left of it where all predictions are alike
_NONE = "none: no best shift and slope exist"
_LONG = 1e-4  # of what is fitted: a last step that is longer leads to infinity
PRICE = 6.0  # of one fitted number, in log-likelihood: by chance alone it gains as much in 1 of 1900 samples
_LESS = 3.0  # that wrong labels must gain beyond a temperature: where predictions are vague the two are alike
_ALIKE = 1e-3  # log-likelihood: less is no difference
_SHARE = 1e-12  # of labels: less is no difference
_HALVINGS, _NEWTON = 8, 30  # of the scale of that share, and steps of Newton's method
_RANGES = 16  # of about equal information, in which the rest is compared


@final
@steadied
@dataclass(frozen=True, slots=True)
class Cox:
    """Shift and slope of the predicted log-odds, with intervals, and tests of calibration against each.

    Attributes
    ----------
    shift, slope : Interval
        Fitted together: the calibration intercept and slope of the clinical literature. Calibrated: 0 and 1.
    in_the_large : Interval
        The shift alone, with the slope held at 1: by how much the event is more common than predicted, in log-odds.
    p_shift, p_slope, p_both : float
        p-values of the score tests that the model is calibrated, against a shift, a slope, and both together.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(-(z + 0.7)))  # more often than predicted
    >>> cox = safecal.evaluate(happened, logits=z).cox
    >>> round(cox.shift.value, 1), round(cox.slope.value, 1), cox.p_shift < 1e-6
    (0.6, 1.0, True)
    """

    shift: Interval
    slope: Interval
    in_the_large: Interval
    p_shift: float
    p_slope: float
    p_both: float

    @classmethod
    @np.errstate(all="ignore")  # far log-odds overflow on the way; what does not exist says so
    def of(cls, tally: Tally, level: float = 0.95) -> Self | None:
        """Fit both to a tally.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float, default 0.95
            Level of the intervals.

        Returns
        -------
        Cox or None
            None for anything but two classes, and where every prediction is certain.
        """
        points = tally.points
        if points is None or not len(points.L):
            return None
        rows = LogisticRows.of(points)
        if float(points.L.max()) <= _FARTHEST:
            rows = _anchored(rows, tally)
        both = rows.best((0.0, 1.0), (True, True))
        large = rows.best((0.0, 1.0), (True, False))
        if tally.clusters is not None:
            pairs = LogisticPairs.of(tally)
            shift, slope = (rows.clustered(both, k, (True, True), level, pairs) for k in (0, 1))
            alone = rows.clustered(large, 0, (True, False), level, pairs)
            return cls(shift, slope, alone, *rows.clustered_tests(pairs))
        shift, slope = (rows.interval(both, k, (True, True), level) for k in (0, 1))
        return cls(shift, slope, rows.interval(large, 0, (True, False), level), *rows.score_tests())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        intervals = {name: getattr(self, name).to_dict() for name in ("shift", "slope", "in_the_large")}
        tests = {name: documents.number(getattr(self, name)) for name in ("p_shift", "p_slope", "p_both")}
        return documents.document("cox", {**intervals, **tests})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        fields: dict[str, Any] = dict.fromkeys(("shift", "slope", "in_the_large"), Interval.from_dict)
        chance = documents.between(0.0, 1.0, missing=True)
        return cls(**documents.read("cox", document, fields | dict.fromkeys(("p_shift", "p_slope", "p_both"), chance)))


class _Fit(NamedTuple):
    shift: float
    slope: float
    value: float  # of the log-likelihood
    exists: bool


class _Likelihood(NamedTuple):
    """The log-likelihood at one shift and slope, its two derivatives, and minus its three second ones."""

    value: float
    score: tuple[float, float]
    information: tuple[float, float, float]

    def step(self, free: Free) -> tuple[float, float] | None:
        """Return Newton's step over what is free; None where there is none."""
        (u, v), (a, b, c) = self.score, self.information
        if all(free):
            slope_information = c - b / a * b if a > 0.0 else 0.0  # information on the slope that the shift leaves
            if not slope_information > _ROUNDING * c:
                return None  # every prediction is the same, or none of them can still be wrong
            slope = (v - b / a * u) / slope_information
            return (u - b * slope) / a, slope
        score, information = (u, a) if free[0] else (v, c)
        if not information > 0.0:
            return None
        return (score / information, 0.0) if free[0] else (0.0, score / information)


class LogisticRows(NamedTuple):
    """Points as rows of a logistic regression on one column and a constant."""

    z: FloatArray
    happened: AnyArray
    away: FloatArray  # -1 where it happened, else 1
    mass: FloatArray  # rows times weight
    w: FloatArray
    missing: tuple[float, float]  # of the score, at shift 0 and slope 1: what points lose of the rows

    @classmethod
    def of(cls, points: Points) -> Self:
        """Take points as rows; log-odds beyond every reason are moved nearer, so that no power of them overflows."""
        L = np.minimum(points.L, _FARTHEST)
        z = np.where(points.positive, L, -L)
        happened = points.wrong != points.positive
        return cls(z, happened, np.where(happened, -1.0, 1.0), points.n * points.w, points.w, (0.0, 0.0))

    def at(self, shift: float, slope: float) -> _Likelihood:
        """Return the log-likelihood, weighted, and its derivatives."""
        lost, u, v, a, b, c = logistic_sums(shift, slope, self.z, self.away, self.mass)
        first, second = self.missing
        value = first * shift + second * (slope - 1.0) - lost
        return _Likelihood(value, (first - u, second - v), (a, b, c))

    def best(self, start: tuple[float, float], free: Free, at_start: _Likelihood | None = None) -> _Fit:
        """Maximise the likelihood over what is free, by Newton's method; steps are halved while it falls."""
        shift, slope = start
        current = self.at(shift, slope) if at_start is None else at_start
        for _ in range(_STEPS):
            step = current.step(free)
            if step is None:
                break
            da, db = step
            gain = da * current.score[0] + db * current.score[1]
            if not math.isfinite(gain):
                break
            if gain < _EXACT:  # a step that is still long leads to infinity, by ever less
                near = max(abs(da), abs(db)) <= _LONG * (1.0 + max(abs(shift), abs(slope)))
                if near:
                    shift, slope = shift + da, slope + db
                return _Fit(shift, slope, current.value + 0.5 * gain if near else current.value, near)
            proposed = self.at(shift + da, slope + db)
            while proposed.value < current.value and max(abs(da), abs(db)) > 1e-12:
                da, db = 0.5 * da, 0.5 * db
                proposed = self.at(shift + da, slope + db)
            shift, slope, current = shift + da, slope + db, proposed
            if max(abs(shift), abs(slope)) > _FAR:
                break
        return _Fit(shift, slope, current.value, False)

    def _variance(self, shift: float, slope: float) -> FloatArray:
        """Return the variance of the score: more than the information where weights differ."""
        q = special.expit(shift + slope * self.z)
        spread = self.w * self.mass * q * (1.0 - q)
        b = float(spread @ self.z)
        return np.array([[float(spread.sum()), b], [b, float(spread @ (self.z * self.z))]])

    def _inverse_information(self, fit: _Fit, free: Free) -> tuple[IndexArray, FloatArray]:
        """Return the places of what is free, and the inverse of the information on it."""
        a, b, c = self.at(fit.shift, fit.slope).information
        kept = np.flatnonzero(free)
        return kept, np.linalg.inv(np.array([[a, b], [b, c]])[np.ix_(kept, kept)])

    def interval(self, fit: _Fit, k: int, free: Free, level: float) -> Interval:
        """Return shift (0) or slope (1) with its interval: by the likelihood, or by a sandwich where weights differ."""
        value = (fit.shift, fit.slope)[k]
        if not fit.exists:
            return Interval(math.nan, -math.inf, math.inf, level, _NONE)
        if np.any(self.w != 1.0):
            kept, inverse = self._inverse_information(fit, free)
            variance = self._variance(fit.shift, fit.slope)
            spread = np.diag(inverse @ variance[np.ix_(kept, kept)] @ inverse)[k if len(kept) > 1 else 0]
            error = math.sqrt(max(float(spread), 0.0))
            reach = -float(special.ndtri(0.5 * (1.0 - level))) * error
            return Interval(value, value - reach, value + reach, level, "robust")
        low, high = (self._profile_end(fit, k, free, level, side) for side in (-1.0, 1.0))
        return Interval(value, low, high, level, "profile likelihood")

    def _profile_end(self, fit: _Fit, k: int, free: Free, level: float, side: float) -> float:
        """Return where twice the drop of the likelihood, over the other one, reaches its quantile."""
        wanted = 0.5 * float(special.chdtri(1.0, 1.0 - level))
        others = (free[0] and k != 0, free[1] and k != 1)
        inside = (fit.shift, fit.slope)

        def beyond(reach: float) -> float:
            start = (inside[0] + side * reach, inside[1]) if k == 0 else (inside[0], inside[1] + side * reach)
            return fit.value - (self.best(start, others) if any(others) else self.at(*start)).value - wanted

        reach = 0.1
        while beyond(reach) < 0.0:
            reach *= 2.0
            if reach > _FAR:
                return side * math.inf
        return inside[k] + side * _zero_of(beyond, reach)

    def clustered(self, fit: _Fit, k: int, free: Free, level: float, pairs: LogisticPairs | None) -> Interval:
        """Return shift (0) or slope (1) with its interval, where rows of a cluster depend on each other."""
        value = (fit.shift, fit.slope)[k]
        if not fit.exists:
            return Interval(math.nan, -math.inf, math.inf, level, _NONE)
        if pairs is None:
            return Interval(value, -math.inf, math.inf, level, "none: the sums by cluster and range are missing")
        kept, inverse = self._inverse_information(fit, free)
        along = np.zeros(2)
        along[kept] = inverse[np.flatnonzero(kept == k)[0]]
        error, freedom = pairs.error(fit.shift, fit.slope, along)
        if not freedom > 0.0:
            return Interval(value, -math.inf, math.inf, level, "none: too few clusters")
        reach = -float(special.stdtrit(freedom, 0.5 * (1.0 - level))) * error
        return Interval(value, value - reach, value + reach, level, "cluster t")

    def clustered_tests(self, pairs: LogisticPairs | None) -> tuple[float, float, float]:
        """Return p-values of shift 0 and slope 1, each by itself; together, twice the smaller of the two."""
        if pairs is None:
            return math.nan, math.nan, math.nan
        score, p_values = self.at(0.0, 1.0).score, []
        for k in (0, 1):
            error, freedom = pairs.error(0.0, 1.0, np.eye(2)[k])
            known = freedom > 0.0 and error > 0.0
            p_values.append(2.0 * float(special.stdtr(freedom, -abs(float(score[k])) / error)) if known else math.nan)
        return p_values[0], p_values[1], float(np.minimum(1.0, 2.0 * np.min(p_values)))

    def score_tests(self) -> tuple[float, float, float]:
        """Return p-values of shift 0 and slope 1: each by itself, and together."""
        score, variance = np.array(self.at(0.0, 1.0).score), self._variance(0.0, 1.0)
        chi_squares = score**2 / np.diag(variance)
        try:
            chi_square = float(score @ np.linalg.solve(variance, score))
        except np.linalg.LinAlgError:  # every prediction is the same: a shift and a slope are one
            chi_square = math.nan
        p = [float(special.chdtrc(1.0, x)) for x in chi_squares]
        return p[0], p[1], p[0] if math.isnan(chi_square) else float(special.chdtrc(2.0, max(chi_square, 0.0)))


def _zero_of(f: Callable[[float], float], high: float) -> float:
    """Find where a function that is negative at 0 and not at ``high`` is 0, by false position (Illinois)."""
    low, below, above, kept = 0.0, f(0.0), f(high), 0
    for _ in range(100):
        x = (low * above - high * below) / (above - below)
        value = f(x)
        if abs(value) < 1e-9 or high - low < 1e-12:
            return x
        if value >= 0.0:
            high, above, below, kept = x, value, 0.5 * below if kept > 0 else below, 1
        else:
            low, below, above, kept = x, value, 0.5 * above if kept < 0 else above, -1
    return 0.5 * (low + high)


def _anchored(rows: LogisticRows, tally: Tally) -> LogisticRows:
    """Return points whose score at shift 0 and slope 1 is that of the rows, which their sums tell exactly."""
    s = tally.summary
    if s.weight_impossible or s.sum_observed is None or s.sum_predicted is None:
        return rows
    first, second = rows.at(0.0, 1.0).score
    return rows._replace(missing=(s.sum_observed - s.sum_predicted - first, -s.sum_excess - second))


class Explained(NamedTuple):
    """How well each fault explains the outcomes.

    ``gain`` is the log-likelihood of each above that of the predictions as they are; ``cause`` the best, at its price,
    or ``"none"``; ``rest`` about what is still to be gained, and ``p_rest`` the p-value that nothing else is wrong.
    """

    cause: str
    gain: dict[str, float]
    shift: float
    slope: float
    noise: float
    rest: float
    p_rest: float


@np.errstate(all="ignore")  # log-odds may be so far that squares of them overflow; such fits do not exist
def explain(points: Points, chance_right: float = 0.0) -> Explained:
    """Compare the faults. ``chance_right`` is how often a wrong label is right all the same: one over the classes."""
    rows = LogisticRows.of(points)
    unchanged = rows.at(0.0, 1.0)
    base = unchanged.value
    if rows.happened.all() or not rows.happened.any():  # the larger the shift the likelier, and nothing is left
        shift, cause = (math.inf if rows.happened.all() else -math.inf), ("shift" if -base > PRICE else "none")
        return Explained(cause, {"shift": -base, "slope": 0.0, "both": -base, "noise": 0.0}, shift, 1.0, 0.0, 0.0, 1.0)
    free = {"slope": (False, True), "shift": (True, False), "both": (True, True)}
    fits = {name: rows.best((0.0, 1.0), fitted, unchanged) for name, fitted in free.items()}
    gain = {name: fit.value - base if fit.exists else 0.0 for name, fit in fits.items()}
    noise, gain["noise"] = _random_labels(rows, base, chance_right)
    price = {"slope": PRICE, "shift": PRICE, "noise": PRICE + _LESS, "both": 2.0 * PRICE}
    # Where all predictions are alike a shift and a slope are one, and rounding must not choose between them.
    cause = max(gain, key=lambda name: gain[name] - price[name] + _ALIKE * (name == "shift"))
    if gain[cause] <= PRICE * (1.0 + (cause == "both")):
        cause = "none"
    predicted = special.expit(rows.z)
    if cause == "noise":
        predicted = (1.0 - noise) * predicted + noise * (chance_right or 0.5)
    elif cause != "none":
        predicted = special.expit(fits[cause].shift + fits[cause].slope * rows.z)
    fitted = {"none": 0, "both": 2}.get(cause, 1)
    fit = fits["shift" if cause == "shift" else "both"]
    leftover = _unexplained(rows, np.where(points.positive, points.cell, -1 - points.cell), predicted, fitted)
    return Explained(cause, gain, fit.shift, fit.slope, noise, *leftover)


def _random_labels(rows: LogisticRows, base: float, chance_right: float) -> tuple[float, float]:
    """Return the share of labels that look as if drawn at random, and how much it gains."""
    m, label_chance = rows.mass, chance_right or 0.5
    mass = special.expit(np.where(rows.happened, rows.z, -rows.z))
    change = np.where(rows.happened, label_chance, 1.0 - label_chance) - mass

    def slopes(share: float) -> tuple[float, float]:
        ratio = change / (mass + share * change)
        return float(m @ ratio), -float(m @ (ratio * ratio))

    low, high = 1e-9, 1.0
    if not slopes(low)[0] > 0.0:
        return 0.0, 0.0
    for _ in range(_HALVINGS):  # the likelihood is concave: first its scale, and then Newton's steps
        share = math.sqrt(low * high)
        low, high = (share, high) if slopes(share)[0] > 0.0 else (low, share)
    share = low
    for _ in range(_NEWTON):
        first, second = slopes(share)
        before, share = share, min(max(share - first / second, low), high)
        if abs(share - before) < _SHARE:
            break
    return share, max(float(m @ np.log(mass + share * change)) - base, 0.0)


def _unexplained(rows: LogisticRows, cell: IndexArray, predicted: FloatArray, fitted: int) -> tuple[float, float]:
    """Return about what is still to be gained in ranges, each a union of whole cells, and the p-value of their gaps."""
    m = rows.mass
    cell = cell - cell.min()
    spread = np.bincount(cell, weights=rows.w * m * predicted * (1.0 - predicted))
    gap = np.bincount(cell, weights=m * (rows.happened - predicted))
    before = np.cumsum(spread)
    if not before[-1] > 0.0:
        return 0.0, 1.0
    place = np.minimum((_RANGES * (before - 0.5 * spread) / before[-1]).astype(np.intp), _RANGES - 1)
    gaps, spreads = (np.bincount(place, weights=x, minlength=_RANGES) for x in (gap, spread))
    filled = spreads > 0.0
    freedom, total = float(filled.sum() - fitted), float((gaps[filled] ** 2 / spreads[filled]).sum())
    if freedom <= 0.0:
        return 0.0, 1.0
    return 0.5 * max(total - freedom, 0.0), float(special.chdtrc(freedom, total))
