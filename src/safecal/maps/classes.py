"""Maps of classes: lines on log-odds or on logits, curves of log-odds, and stairs."""

from typing import Any, ClassVar, Self, final

import numpy as np
from scipy import optimize, special

from .._checks import refused
from .._types import FloatArray, IndexArray
from .base import F, FitRows, Fitted, PlainMap, reader_of_fits
from .solving import Softmax, checked_classes, logistic, possible_rows, require_rising, softmax
from .steps import BetaCurve, ClassLines, Line, Stairs, class_shift_words, sentence_of, shift_words, slope_words

__all__ = ["Affine", "Beta", "Isotonic", "Vector"]

_FEWEST = {"Affine": 20, "Beta": 30, "Isotonic": 50, "Vector": 50}  # rows below which they are not fitted
_LENT = 2.0  # rows with the overall share of positives, in each step
_LEAST_GAIN = 3.0  # nats that two steps must explain better than one


class _OfClasses(PlainMap[F]):
    """A map with a number for each class. Its fits to folds begin where the fit to all rows ended."""

    _start: Softmax | None = None
    _end: Softmax | None = None

    def _similar_copy(self) -> Self:
        copy = self._copy()
        copy._start = self._end
        return copy

    def _softmax(self, z: FloatArray, y: IndexArray, w: FloatArray | None, *, shared: bool, common: bool) -> Softmax:
        fit = softmax(z, y, w, shared=shared, near=self._start)
        if common:
            self._end = fit
        return fit


@final
class Affine(_OfClasses[Fitted[Any]]):
    """Move log-odds and scale them: ``slope * z + shift``, known as Platt scaling.

    With K classes, log-probabilities are multiplied by one slope, and each class has a shift of its own. It corrects
    forecasts that are too high or too low, and too sharp or too vague, at once.

    Attributes
    ----------
    slope_ : float
        Factor of the log-odds: below 1 where the model is too sharp.
    shift_ : float or tuple of float
        Shift of the log-odds: above 0 where the positive class happens more often than predicted. With more
        classes, one for each.
    n_ : int
        Rows it was fitted to.
    groups_ : dict or None
        The same for each group.

    See Also
    --------
    Beta : Lets both ends differ.
    Vector : A slope of its own for each class.
    Safe : Rules over-confidence out.

    Notes
    -----
    The likelihood is that of a logistic regression with a normal prior: the slope around 1, the mean of the log-odds
    around its old value, both with a standard deviation of 4.5. It keeps the slope finite where outcomes are separated,
    and at 1 where all predictions are alike. With more classes, the standard deviation of the shifts is estimated with
    them, so that classes with few rows move little.

    An error says so where there are fewer than 20 rows, where one class happened in every row, where an outcome of
    probability 0 happened, and where the slope would be 0 or below: confidence then carries no information.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.maps import Affine
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, 5000)
    >>> happened = rng.random(5000) < 1 / (1 + np.exp(-(0.5 * z + 1)))
    >>> model = Affine().fit(happened, logits=z)
    >>> model
    Affine(): slope 0.522, shift +0.971 from 5000 rows
    >>> model.apply([0.1, 0.5, 0.9]).round(2).tolist()
    [0.46, 0.73, 0.89]
    """

    _kind: ClassVar[str] = "affine"
    _read_fit = reader_of_fits(
        lambda step: (ClassLines if isinstance(step, dict) and "shifts" in step else Line).from_dict(step)
    )

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[Any]:
        z, y, w = checked_classes(rows, _FEWEST["Affine"], "Affine")
        z, y, w = possible_rows(z, y, w)
        if z.ndim == 1:
            slope, shift = logistic(z[:, None], y.astype(np.float64), w).tolist()
            require_rising(slope)
            return Fitted(Line(slope, shift), own_rows.n)
        fit = self._softmax(z, y, w, shared=True, common=own_rows is rows)
        require_rising(float(fit.weights[0]))
        return Fitted(ClassLines(tuple(fit.weights.tolist()), tuple(fit.shifts.tolist()), True), own_rows.n)

    @property
    def slope_(self) -> float:
        """The factor of the log-odds."""
        step = self.fit_.step
        return float(step.slope if isinstance(step, Line) else step.weights[0])

    @property
    def shift_(self) -> float | tuple[float, ...]:
        """The shift of the log-odds, or of the logits of each class."""
        step = self.fit_.step
        return step.shift if isinstance(step, Line) else tuple(step.shifts)

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        shift = self.shift_
        if isinstance(shift, tuple):
            return sentence_of(f"log-probabilities are {slope_words(self.slope_)}", class_shift_words(shift))
        return f"Log-odds are {slope_words(self.slope_)} and {shift_words(shift)}."

    def _numbers(self) -> str:
        shift = self.shift_
        if isinstance(shift, tuple):
            return f"slope {self.slope_:.3g}, shifts {min(shift):+.3g} to {max(shift):+.3g}"
        return f"slope {self.slope_:.3g}, shift {shift:+.3g}"


@final
class Vector(_OfClasses[Fitted[ClassLines]]):
    """Scale and move the log-probability of each class: ``weights[k] * log p_k + shifts[k]``, known as vector scaling.

    It corrects a model of three classes or more that is over-confident in some of them, or predicts some too often.

    Attributes
    ----------
    weights_, shifts_ : tuple of float
        One of each for every class. A weight is at least 0.
    n_ : int
        Rows it was fitted to.
    groups_ : dict or None
        The same for each group.

    See Also
    --------
    Affine : One slope for all classes.
    Beta : The same for two classes.

    Notes
    -----
    Weights differ around their mean, and shifts around 0, with normal priors whose standard deviations are estimated
    with them: with few rows per class, classes that differ by chance alone are pulled together, until one temperature
    is left. It needs 50 rows, and refuses the same rows as `Affine`.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.maps import Vector
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 2, (5000, 3))
    >>> y = (z + [0.0, 0.0, 1.0] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> model = Vector().fit(y, logits=z)
    >>> int(np.argmax(model.shifts_))
    2
    """

    _kind: ClassVar[str] = "vector"
    _read_fit = reader_of_fits(ClassLines.from_dict)

    def _accepts(self, rows: FitRows) -> None:
        super()._accepts(rows)
        if rows.predictions.classes == 2:
            refused("Vector is for three classes or more, and these are two", "use `Beta`, which is the same for two.")

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[ClassLines]:
        z, y, w = possible_rows(*checked_classes(rows, _FEWEST["Vector"], "Vector"))
        fit = self._softmax(z, y, w, shared=False, common=own_rows is rows)
        require_rising(float(fit.weights.mean()))
        weights = np.maximum(fit.weights, 0.0)
        return Fitted(ClassLines(tuple(weights.tolist()), tuple(fit.shifts.tolist())), own_rows.n)

    @property
    def weights_(self) -> tuple[float, ...]:
        """The factor of the log-probability of each class."""
        return self.fit_.step.weights

    @property
    def shifts_(self) -> tuple[float, ...]:
        """The shift of each class."""
        return self.fit_.step.shifts

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        low, high = min(self.weights_), max(self.weights_)
        scale = f"log-probabilities are multiplied by {low:.2g} to {high:.2g}, by class"
        return sentence_of(scale, class_shift_words(self.shifts_))

    def _numbers(self) -> str:
        low, high = min(self.weights_), max(self.weights_)
        return f"weights {low:.3g} to {high:.3g}, shifts {min(self.shifts_):+.3g} to {max(self.shifts_):+.3g}"


class _OfTwoClasses(PlainMap[F]):
    def _accepts(self, rows: FitRows) -> None:
        super()._accepts(rows)
        if rows.predictions.classes != 2:
            text = f"{type(self).__name__} is for two classes, and these are {rows.predictions.classes}"
            refused(text, "use `Affine` or `Vector`.")


@final
class Beta(_OfTwoClasses[Fitted[BetaCurve]]):
    """Bend log-odds: ``a log p - b log(1 - p) + c``, known as beta calibration.

    With a = b it is `Affine`. Where a and b differ, predictions near 0 and predictions near 1 are scaled differently:
    a is the slope of log-odds far below 0, b that of log-odds far above 0.

    Attributes
    ----------
    a_, b_, c_ : float
        The three numbers; a and b are at least 0, so that the order of predictions stays.
    n_ : int
        Rows it was fitted to.
    groups_ : dict or None
        The same for each group.

    See Also
    --------
    Affine : One slope for both ends, and better where there are fewer than about 1000 rows.

    Notes
    -----
    The likelihood has a normal prior: a and b around 1, the mean of the log-odds around its old value, each with a
    standard deviation of 4.5. It needs 30 rows, and refuses the same rows as `Affine`.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.maps import Beta
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(0, 3, 20_000)
    >>> happened = rng.random(20_000) < 1 / (1 + np.exp(-np.where(z > 0, z / 3, z)))  # too sharp above 1/2 alone
    >>> model = Beta().fit(happened, logits=z)
    >>> bool(model.a_ > 2 * model.b_)
    True
    """

    _kind: ClassVar[str] = "beta"
    _read_fit = reader_of_fits(BetaCurve.from_dict)

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[BetaCurve]:
        z, y, w = possible_rows(*checked_classes(rows, _FEWEST["Beta"], "Beta"))
        target = y.astype(np.float64)
        columns = np.stack([special.log_expit(z), -special.log_expit(-z)], axis=1)
        a, b, c = logistic(columns, target, w).tolist()
        if a < 0.0 or b < 0.0:  # the likeliest curve that does not fall has one end that is flat
            kept = 1 if a < 0.0 else 0
            slope, c = logistic(columns[:, kept : kept + 1], target, w).tolist()
            require_rising(slope)
            a, b = (0.0, slope) if a < 0.0 else (slope, 0.0)
        return Fitted(BetaCurve(a, b, c), own_rows.n)

    @property
    def a_(self) -> float:
        """The slope of log-odds far below 0."""
        return self.fit_.step.a

    @property
    def b_(self) -> float:
        """The slope of log-odds far above 0."""
        return self.fit_.step.b

    @property
    def c_(self) -> float:
        """The shift."""
        return self.fit_.step.c

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        middle = float(self.fit_.step.of(np.zeros(1))[0])
        middle_words = f"one half becomes {special.expit(middle):.2g}"
        return sentence_of(
            f"log-odds far below 0 are multiplied by {self.a_:.2g} and those far above by {self.b_:.2g}", middle_words
        )

    def _numbers(self) -> str:
        return f"a {self.a_:.3g}, b {self.b_:.3g}, c {self.c_:+.3g}"


@final
class Isotonic(_OfTwoClasses[Fitted[Stairs]]):
    """Stairs that never fall: what happened at predictions like these, without a formula.

    Attributes
    ----------
    starts_ : tuple of float
        Log-odds at which each step but the first begins.
    values_ : tuple of float
        Log-odds of each step.
    n_ : int
        Rows it was fitted to.
    groups_ : dict or None
        The same for each group.

    See Also
    --------
    Beta : A smooth curve; with fewer than about 10 000 rows it is as good or better.

    Notes
    -----
    The stairs of isotonic regression are joined, the least different neighbours first, until two steps explain the
    outcomes better than one by at least 3 nats. Then each step is lent two rows with the overall share of positives, so
    that none says 0 or 1. Equal predictions are never parted. Predictions of exactly 0 and 1 belong to the first and
    the last step, and outcomes that contradict them are not an error. It needs 50 rows of both classes.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.maps import Isotonic
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> model = Isotonic().fit(rng.random(2000) < np.where(p < 0.5, 0.2, 0.7), p)
    >>> model
    Isotonic(): 2 steps from 2000 rows
    >>> model.apply([0.0, 0.4, 0.6, 1.0]).round(2).tolist()
    [0.21, 0.21, 0.7, 0.7]
    """

    _kind: ClassVar[str] = "isotonic"
    _read_fit = reader_of_fits(Stairs.from_dict)

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> Fitted[Stairs]:
        z, y, _ = checked_classes(rows, _FEWEST["Isotonic"], "Isotonic")
        w = rows.weights / float(rows.weights.mean())
        values, place = np.unique(z, return_inverse=True)
        mass = np.bincount(place, weights=w)
        ones = np.bincount(place, weights=w * y)
        values, mass, ones = values[mass > 0.0], mass[mass > 0.0], ones[mass > 0.0]
        blocks = optimize.isotonic_regression(ones / mass, weights=mass).blocks
        first = np.asarray(blocks[:-1])
        first, n, k = _join_steps(first, np.add.reduceat(mass, first), np.add.reduceat(ones, first))
        rate = float(ones.sum() / mass.sum())
        share = optimize.isotonic_regression((k + _LENT * rate) / (n + _LENT), weights=n).x
        starts = [_start_between(values[i - 1], values[i]) for i in first[1:]]
        return Fitted(Stairs(tuple(starts), tuple(special.logit(share).tolist())), own_rows.n)

    @property
    def starts_(self) -> tuple[float, ...]:
        """Log-odds at which each step but the first begins."""
        return self.fit_.step.starts

    @property
    def values_(self) -> tuple[float, ...]:
        """Log-odds of each step."""
        return self.fit_.step.values

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        low, high = special.expit(self.values_[0]), special.expit(self.values_[-1])
        return f"Predictions become one of {len(self.values_)} values, from {low:.2g} to {high:.2g}."

    def _numbers(self) -> str:
        return f"{len(self.values_)} steps" if len(self.values_) > 1 else "1 step"


def _start_between(low: float, high: float) -> float:
    """Return where a step begins: half-way from the last prediction before it, unless that is infinite."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return float(high)
    middle = low + 0.5 * (high - low)
    return float(middle if middle > low else high)


def _join_steps(first: Any, n: FloatArray, k: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """Join neighbouring steps that explain the outcomes hardly better than one."""
    while len(n) > 1:
        separate = _log_likelihood(n, k)
        loss = separate[:-1] + separate[1:] - _log_likelihood(n[:-1] + n[1:], k[:-1] + k[1:])
        j = int(loss.argmin())
        if loss[j] >= _LEAST_GAIN:
            break
        n[j], k[j] = n[j] + n[j + 1], k[j] + k[j + 1]
        first, n, k = np.delete(first, j + 1), np.delete(n, j + 1), np.delete(k, j + 1)
    return first, n, k


def _log_likelihood(n: FloatArray, k: FloatArray) -> FloatArray:
    """Return the largest log-likelihood of ``k`` positives among ``n`` rows."""
    return np.asarray(special.xlogy(k, k / n) + special.xlogy(n - k, 1.0 - k / n))
