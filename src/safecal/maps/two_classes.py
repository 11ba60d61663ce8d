"""Maps of two classes that bend log-odds: beta calibration, and isotonic regression with a prior and few steps."""

from typing import Any, ClassVar, final

import numpy as np
from scipy import optimize, special

from .._checks.message import refused
from .._types import FloatArray
from .affine import possible_rows, require_rising
from .base import FitRows
from .plain import Fitted, PlainMap, checked_classes, sentence_of
from .solving import logistic
from .steps import BetaCurve, Stairs

__all__ = ["Beta", "Isotonic"]

_FEWEST = {"Beta": 30, "Isotonic": 50}  # rows below which they are not fitted
_LENT = 2.0  # rows with the overall share of positives, in each step
_LEAST_GAIN = 3.0  # nats that two steps must explain better than one


@final
class Beta(PlainMap[Fitted[BetaCurve]]):
    """Bend log-odds: ``a log p - b log(1 - p) + c``, known as beta calibration.

    With a = b it is `Affine`. Where a and b differ, predictions near 0 and predictions near 1 are scaled differently:
    a is the slope of small log-odds, b that of large ones.

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

    def _accepts(self, rows: FitRows) -> None:
        super()._accepts(rows)
        two_classes_only(rows, "Beta")

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

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[BetaCurve]:
        return Fitted.from_dict(content, BetaCurve.from_dict)

    @property
    def a_(self) -> float:
        """The slope of small log-odds."""
        return self.fit_.step.a

    @property
    def b_(self) -> float:
        """The slope of large log-odds."""
        return self.fit_.step.b

    @property
    def c_(self) -> float:
        """The shift."""
        return self.fit_.step.c

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        middle = float(self.fit_.step.of(np.zeros(1))[0])
        middle_words = f"even odds become {special.expit(middle):.2g}"
        return sentence_of(
            f"small log-odds are multiplied by {self.a_:.2g} and large ones by {self.b_:.2g}", middle_words
        )

    def _numbers(self) -> str:
        return f"a {self.a_:.3g}, b {self.b_:.3g}, c {self.c_:+.3g}"


def two_classes_only(rows: FitRows, name: str) -> None:
    """Refuse more than two classes."""
    classes = rows.predictions.classes
    if classes != 2:
        refused(f"{name} is for two classes, and these are {classes}", "use `Affine` or `Vector`.")


@final
class Isotonic(PlainMap[Fitted[Stairs]]):
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
    the last step, and outcomes that contradict them are no error. It needs 50 rows of both classes.

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

    def _accepts(self, rows: FitRows) -> None:
        super()._accepts(rows)
        two_classes_only(rows, "Isotonic")

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

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Stairs]:
        return Fitted.from_dict(content, Stairs.from_dict)

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
