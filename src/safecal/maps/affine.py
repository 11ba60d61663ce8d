"""Slope and shift of log-odds; for three classes or more, one slope or one for each, and a shift for each."""

from typing import Any, ClassVar, Self, final

import numpy as np

from .._checks.message import refused
from .._types import FloatArray, IndexArray
from ..errors import UnavailableError
from .base import FitRows
from .plain import F, Fitted, PlainMap, checked_classes, class_shift_words, sentence_of, shift_words, slope_words
from .solving import Softmax, logistic, softmax
from .steps import ClassLines, Line

__all__ = ["Affine", "Vector", "possible_rows", "require_rising"]

_FEWEST = {"Affine": 20, "Vector": 50}  # rows below which they are not fitted


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

    With K classes, log-probabilities are multiplied by one slope, and each class has a shift of its own. It mends
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

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Any]:
        def read_step(value: Any) -> Line | ClassLines:
            return (ClassLines if isinstance(value, dict) and "shifts" in value else Line).from_dict(value)

        return Fitted.from_dict(content, read_step)

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


def possible_rows(
    z: FloatArray, y: IndexArray, w: FloatArray | None
) -> tuple[FloatArray, IndexArray, FloatArray | None]:
    """Return the rows that say something; refuse outcomes of probability 0."""
    outcome_logits = np.where(y == 1, z, -z) if z.ndim == 1 else z[np.arange(len(y)), y]
    bad = np.isneginf(outcome_logits) if w is None else np.isneginf(outcome_logits) & (w > 0.0)
    if bad.any():
        raise UnavailableError(
            f"no shift and slope explain an outcome of probability 0: that happened at row {int(bad.argmax())} "
            f"({int(bad.sum())} of {len(y)} rows).\n\nHint: pass `logits=`, which never saturate; keep probabilities "
            "off 0 in the fit and when applying it, for example `np.clip(y_prob, 1e-6, 1 - 1e-6)`; or use `Isotonic`."
        )
    if z.ndim == 1:
        telling = np.isfinite(z)  # a certainty that came true says nothing
        if not telling.all():
            return z[telling], y[telling], None if w is None else w[telling]
    return z, y, w


def require_rising(slope: float) -> None:
    """Refuse a slope that would turn predictions round."""
    if not slope > 0.0:
        refused(
            "confidence carries no information here: the outcomes are likelier without it",
            "are outcomes and predictions rows of the same data, in the same order? Is `pos_label` the right one?",
        )


@final
class Vector(_OfClasses[Fitted[ClassLines]]):
    """Scale and move the log-probability of each class: ``weights[k] * log p_k + shifts[k]``, known as vector scaling.

    It mends a model of three classes or more that is over-confident in some of them, or that predicts some too often.

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

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[ClassLines]:
        return Fitted.from_dict(content, ClassLines.from_dict)

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
