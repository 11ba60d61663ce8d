"""A shift for each class: how often it happens beside how often it is predicted, and what bias would mend it.

With biases ``b`` and an inverse temperature ``beta``, the model ``p_k^beta exp(b_k)``, normalised, is the one that was
given at ``b = 0`` and ``beta = 1``. There its score is observed minus predicted for each class, and minus the excess;
sums tell both, and their covariance, exactly: so the score tests are those of the rows. The biases are one step from
calibration, in the logarithm of the counts: where predictions are alike that step is the fit itself.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy import special

from .. import documents
from .._sums import Tally
from .._sums.summary import COLUMN
from .._types import FloatArray
from . import Interval
from .bounds import ratio_bounds

__all__ = ["ClassShift", "ClassShifts", "frequent_classes", "gain_by_shifts", "uneven_gain"]

_ENOUGH = 5.0  # spread of a count, in rows: classes of which less is expected are taken together
_DEPENDENT = "none: rows depend on each other"
_RARE = "none: predicted too rarely"
_FREQUENT = 0.02  # of what the level leaves: what the bounds of all classes together may miss
_ONE_STEP = "one step from calibration"


@final
@dataclass(frozen=True, slots=True)
class ClassShift:
    """One class: how often it was predicted, how often it happened.

    Attributes
    ----------
    name : str
        What the class is called, or the number of its column.
    predicted, observed : float
        The sum of its probabilities, and how often it happened, by weight.
    ratio : Interval
        Observed over predicted, with an exact interval; 1 is right.
    shift : Interval
        What must be added to its logit, relative to the average class, with the temperature left as it is; 0 is right.
        One step from calibration: near a shift of 1 it is right to a few percent where the temperature is.

    Examples
    --------
    >>> import safecal
    >>> y_prob = [[0.5, 0.3, 0.2]] * 100
    >>> shifts = safecal.evaluate([0] * 30 + [1] * 30 + [2] * 40, y_prob).class_shifts
    >>> last = shifts.classes[2]
    >>> round(last.predicted), last.observed, round(last.ratio.value, 2)
    (20, 40.0, 2.0)
    """

    name: str
    predicted: float
    observed: float
    ratio: Interval
    shift: Interval

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        counts = {name: documents.number(getattr(self, name)) for name in ("predicted", "observed")}
        intervals = {name: getattr(self, name).to_dict() for name in ("ratio", "shift")}
        return documents.document("class_shift", {"name": self.name, **counts, **intervals})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        number = documents.between(0.0)
        fields = {"name": documents.text, "predicted": number, "observed": number}
        intervals = {"ratio": Interval.from_dict, "shift": Interval.from_dict}
        return cls(**documents.read("class_shift", document, fields | intervals))


@final
@dataclass(frozen=True, slots=True)
class ClassShifts:
    """Which classes happen more often than predicted, and which more rarely, with tests of calibration.

    Attributes
    ----------
    classes : tuple of ClassShift
        In the order of the columns.
    p_shift, p_slope, p_both : float
        p-values of the score tests that the model is calibrated: against a bias for each class, against a temperature,
        and against both together. Classes that are hardly ever predicted are taken as one, and each of them is tested
        by itself, too, by the Poisson law of its count.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, (5000, 3))
    >>> chance = np.exp(z + [0.0, 0.0, 0.8])  # the last class happens more often than predicted
    >>> y = (rng.random((5000, 1)) > np.cumsum(chance / chance.sum(1, keepdims=True), 1)).sum(1)
    >>> shifts = safecal.evaluate(y, logits=z).class_shifts
    >>> [round(each.ratio.value, 2) for each in shifts.classes], shifts.p_shift < 1e-6
    ([0.85, 0.86, 1.29], True)
    >>> round(shifts.classes[2].shift.value - shifts.classes[0].shift.value, 1)
    0.8
    """

    classes: tuple[ClassShift, ...]
    p_shift: float
    p_slope: float
    p_both: float

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, tally: Tally, level: float = 0.95) -> Self | None:
        """Read the shifts off a tally.

        Parameters
        ----------
        tally : Tally
            The sums.
        level : float, default 0.95
            Level of the intervals.

        Returns
        -------
        ClassShifts or None
            None for anything but 2 to 32 classes with a column each.
        """
        if tally.class_sums is None:
            return None
        sums, s = tally.class_sums, tally.summary
        names = tally.class_names or tuple(map(str, range(len(sums.observed))))
        clustered = tally.clusters is not None
        counts = _ClassCounts.of(tally)
        shifts = counts.shifts(level, clustered)
        rows = s.n if not tally.weighted else (s.weight - s.weight_impossible) ** 2 / s.weight2 if s.weight2 else 0.0
        classes = []
        for name, predicted, observed, shift in zip(names, sums.predicted, sums.observed, shifts, strict=True):
            ratio = _ratio_interval(predicted, observed, s.weight, rows, level, clustered)
            classes.append(ClassShift(name, float(predicted), float(observed), ratio, shift))
        tests = counts.tests(math.nan if tally.weighted else counts.chance_of_rare(sums.observed, sums.predicted))
        return cls(tuple(classes), *(tests if not clustered else (math.nan,) * 3))

    @property
    def farthest(self) -> ClassShift | None:
        """The class whose ratio is shown to be farthest from 1; None where the test of all classes shows nothing."""
        if not self.p_shift < 1.0 - self.classes[0].ratio.level:
            return None
        far = {each.name: _distance_from_one(each.ratio) for each in self.classes}
        worst = max(self.classes, key=lambda each: far[each.name])
        return worst if far[worst.name] > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        tests = {name: documents.number(getattr(self, name)) for name in ("p_shift", "p_slope", "p_both")}
        return documents.document("class_shifts", {"classes": [each.to_dict() for each in self.classes], **tests})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a document that `to_dict` wrote."""
        chance = documents.optional(documents.between(0.0, 1.0))
        tests = dict.fromkeys(("p_shift", "p_slope", "p_both"), chance)
        fields = documents.read("class_shifts", document, {"classes": documents.list_of(ClassShift.from_dict), **tests})
        return cls(tuple(fields["classes"]), *(math.nan if fields[k] is None else fields[k] for k in tests))


class FrequentClass(NamedTuple):
    """A class that happens far more often than announced, by weight, and a lower bound on how many times as often."""

    name: str
    announced: float
    seen: float
    at_least: float


@np.errstate(all="ignore")
def frequent_classes(tally: Tally, max_ratio: float, level: float) -> list[FrequentClass]:
    """Find classes that happen more often than ``max_ratio`` times what was announced, the worst first.

    Mistakes do not show them: a rare class among three or more is never the likeliest one. The bounds are exact where
    rows are independent and have no weights. Those of all classes together miss with a probability of at most a
    fiftieth of what the level of the verdict leaves. None is found of two classes, of which mistakes tell, or where
    there are no sums by class.
    """
    sums, s = tally.class_sums, tally.summary
    if sums is None or len(sums.observed) < 3:
        return []
    row = s.weight2 / (s.weight - s.weight_impossible) if tally.weighted and s.weight2 else 1.0
    seen, announced = sums.observed / row, sums.predicted / row
    low, _ = ratio_bounds(seen, seen, announced, _FREQUENT * (1.0 - level) / len(seen))
    names = tally.class_names or tuple(map(str, range(len(seen))))
    beyond = [k for k in np.argsort(-low, kind="stable").tolist() if low[k] > max_ratio]
    return [FrequentClass(names[k], float(sums.predicted[k]), float(sums.observed[k]), float(low[k])) for k in beyond]


@np.errstate(all="ignore")
def gain_by_shifts(tally: Tally) -> float:
    """Return about how much the likelihood gains by a bias for each class; 0 where sums do not tell."""
    return 0.0 if tally.class_sums is None else _ClassCounts.of(tally).gain


class _ClassCounts(NamedTuple):
    """Classes, those that are hardly ever predicted taken as one, and what their counts do by chance."""

    group: FloatArray  # (groups, classes), 0 or 1
    observed: FloatArray
    predicted: FloatArray
    products: FloatArray  # (M, groups, groups)
    cross: FloatArray  # (M, groups)
    excess: float
    varentropy: tuple[float, float]  # by weight, by squared weight
    heavy: float  # the mean weight of a row, by weight

    @classmethod
    def of(cls, tally: Tally) -> Self:
        sums, s = tally.class_sums, tally.summary
        assert sums is not None
        heavy = s.weight2 / (s.weight - s.weight_impossible) if tally.weighted and s.weight2 else 1.0
        group = _groups_of_classes(sums.products[0] / heavy)
        products = np.stack([group @ matrix @ group.T for matrix in sums.products])
        varentropy = s.sum_varentropy, s.sum_varentropy_weight2 if tally.weighted else s.sum_varentropy
        return cls(
            group, group @ sums.observed, group @ sums.predicted, products, sums.cross @ group.T, s.sum_excess,
            varentropy, heavy,
        )  # fmt: skip

    def shifts(self, level: float, clustered: bool) -> list[Interval]:
        """Return the bias of each class: one step of Newton's method, for the logarithms of the counts."""
        half_row = 0.5 * self.heavy  # so that a class that never happened has a logarithm
        observed, predicted = self.observed + half_row, self.predicted + half_row
        ratio = observed / predicted
        centred = np.eye(len(ratio)) - predicted / predicted.sum()  # a constant for all classes changes nothing
        spread = _covariance_of_counts(self.products[0])
        spread += float(np.trace(spread)) / len(spread) ** 2  # along that constant, which `centred` takes away again
        try:
            step = centred @ np.linalg.solve(spread, predicted[:, None] * centred)
        except np.linalg.LinAlgError:
            step = np.full_like(spread, math.nan)
        shift = step @ np.log(ratio)
        # Counts vary as they do at the shifts that were found: there products of two classes grow by both ratios.
        count_spread = _covariance_of_counts(self.products[-1] * np.outer(ratio, ratio)) / np.outer(observed, observed)
        error = np.sqrt(np.maximum(np.diag(step @ count_spread @ step.T), 0.0))
        reach = -float(special.ndtri(0.5 * (1.0 - level))) * error
        single = self.group.sum(axis=1) == 1.0
        out = []
        for group in self.group.T.argmax(axis=1):
            if not single[group] or len(ratio) < 2:
                out.append(Interval(math.nan, -math.inf, math.inf, level, _RARE))
                continue
            value, far = float(shift[group]), math.inf if clustered else float(reach[group])
            out.append(Interval(value, value - far, value + far, level, _DEPENDENT if clustered else _ONE_STEP))
        return out

    @property
    def gain(self) -> float:
        """Return about how much the likelihood gains by the biases."""
        total, freedom = _squared_score(self.observed - self.predicted, _covariance_of_counts(self.products[-1]))
        return 0.5 * max(total - freedom, 0.0)

    def chance_of_rare(self, observed: FloatArray, predicted: FloatArray) -> float:
        """Return the p-value of the classes that are not tested by themselves: NaN where there are none.

        The tails are those of a Poisson law, which are the heavier ones: rows are yes or no.
        """
        rare = self.group.T @ (self.group.sum(axis=1)) > 1.0
        if not rare.any():
            return math.nan
        count, mean = observed[rare], predicted[rare]
        more = np.where(count > 0.0, special.gammainc(np.maximum(count, 1e-300), mean), 1.0)
        fewer = special.gammaincc(count + 1.0, mean)
        return min(1.0, 2.0 * float(rare.sum()) * float(np.minimum(more, fewer).min()))

    def tests(self, rare: float) -> tuple[float, float, float]:
        """Return p-values of the score tests: of the biases, of the temperature, and of both; ``rare`` is one of more.

        Two tests of one thing share its error.
        """
        last = self.products[-1]
        spread = _covariance_of_counts(last)
        score = np.append(self.observed - self.predicted, -self.excess)
        whole = np.zeros((len(score), len(score)))
        whole[:-1, :-1], whole[-1, -1] = spread, self.varentropy[1]
        whole[-1, :-1] = whole[:-1, -1] = self.cross[-1]
        shift, both = _p_value_of_score(score[:-1], spread), _p_value_of_score(score, whole)
        if not math.isnan(rare):
            shift, both = (rare if math.isnan(p) else min(1.0, 2.0 * min(p, rare)) for p in (shift, both))
        return shift, _p_value_of_score(score[-1:], whole[-1:, -1:]), both


def _groups_of_classes(products: FloatArray) -> FloatArray:
    """Number the groups of classes: each by itself, but those whose counts hardly vary together."""
    spread = np.diag(_covariance_of_counts(products))
    kept = np.flatnonzero(spread >= _ENOUGH)
    rest = np.setdiff1d(np.arange(len(spread)), kept)
    if len(rest) and len(kept):
        rows = np.zeros((1, len(spread)))
        rows[0, rest] = 1.0
        together = float(rows[0] @ _covariance_of_counts(products) @ rows[0])
        if together < _ENOUGH:  # still too few: with the smallest of the others
            smallest = kept[int(np.argmin(spread[kept]))]
            kept, rest = kept[kept != smallest], np.append(rest, smallest)
    groups = np.zeros((len(kept) + bool(len(rest)), len(spread)))
    groups[np.arange(len(kept)), kept] = 1.0
    groups[-1, rest] = 1.0 if len(rest) else groups[-1, rest]
    return groups


def _covariance_of_counts(products: FloatArray) -> FloatArray:
    """Return the covariance of the counts of classes; its diagonal by the other classes, so that nothing cancels."""
    covariance = -np.array(products)
    np.fill_diagonal(covariance, 0.0)
    np.fill_diagonal(covariance, -covariance.sum(axis=1))
    return covariance


def _p_value_of_score(score: FloatArray, spread: FloatArray) -> float:
    """Return the p-value of a score whose covariance may be singular."""
    total, freedom = _squared_score(score, spread)
    return float(special.chdtrc(float(freedom), total)) if freedom else math.nan


def _squared_score(score: FloatArray, spread: FloatArray) -> tuple[float, int]:
    """Return a score in units of its spread, squared, and in how many directions it can vary."""
    if not np.isfinite(spread).all():
        return math.nan, 0
    values, vectors = np.linalg.eigh(spread)
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    along = vectors[:, kept].T @ score
    return float((along**2 / values[kept]).sum()), int(kept.sum())


def _ratio_interval(
    predicted: float, observed: float, weight: float, rows: float, level: float, clustered: bool
) -> Interval:
    """Return observed over predicted, by Clopper and Pearson: rows of unlike probabilities vary less."""
    if not predicted > 0.0:
        return Interval(math.inf if observed > 0.0 else math.nan, -math.inf, math.inf, level, "none: never predicted")
    value = float(observed / predicted)
    if clustered or not rows > 0.0:
        return Interval(value, -math.inf, math.inf, level, _DEPENDENT)
    alpha, count = 0.5 * (1.0 - level), float(observed / weight * rows)
    low = float(special.betaincinv(count, rows - count + 1.0, alpha)) if count > 0.0 else 0.0
    high = float(special.betaincinv(count + 1.0, rows - count, 1.0 - alpha)) if count < rows else 1.0
    scale = weight / float(predicted)
    return Interval(value, min(scale * low, value), max(scale * high, value), level, "binomial")


def _distance_from_one(ratio: Interval) -> float:
    """Return how far a ratio is shown to be from 1, in its logarithm."""
    if ratio.low > 1.0:
        return math.log(ratio.low)
    return -math.log(ratio.high) if 0.0 < ratio.high < 1.0 else 0.0


def uneven_gain(tally: Tally) -> tuple[float, int]:
    """Return about how much the likelihood gains by a bias for each predicted class, and the class that is worst."""
    orders = [order for order in tally.orders if order.label is not None]
    if len(orders) < 2:
        return 0.0, 0
    correct, expected, rows = (
        np.array([order.sums[:, COLUMN[name]].sum() for order in orders])
        for name in ("sum_correct", "sum_confidence", "weight")
    )
    spread = np.maximum(expected * (1.0 - expected / rows), 1e-9)  # at least what it is: confidences of a class differ
    gap = correct - expected
    gap = gap - spread * gap.sum() / spread.sum()
    total = float((gap * gap / spread).sum())
    worst = orders[int(np.argmin(gap / np.sqrt(spread)))].label
    return 0.5 * max(total - (len(orders) - 1), 0.0), 0 if worst is None else worst
