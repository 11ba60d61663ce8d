"""A scale and a shift for each class."""

from typing import Any, ClassVar, final

import numpy as np

from .. import documents
from .._checks.maps import refused
from .affine import informative, possible
from .base import Rows, class_count
from .plain import Fitted, PlainMap, checked_classes
from .solving import softmax
from .steps import Columns
from .words import class_shifts, said

__all__ = ["Vector"]

FEWEST = 50


@final
class Vector(PlainMap[Fitted[Columns]]):
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
    with them: with few rows a class, classes that differ by chance alone are pulled together, and what is left is one
    temperature. It needs 50 rows, and refuses what `Affine` refuses.

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

    def _accepts(self, rows: Rows) -> None:
        super()._accepts(rows)
        if class_count(rows.predictions) == 2:
            refused("Vector is for three classes or more, and these are two", "use `Beta`, which is the same for two.")

    def _fitted(self, rows: Rows, own: Rows) -> Fitted[Columns]:
        found = softmax(*possible(*checked_classes(rows, FEWEST, "Vector")), shared=False)
        informative(float(found.weights.mean()))
        weights = np.maximum(found.weights, 0.0)
        return Fitted(Columns(tuple(weights.tolist()), tuple(found.shifts.tolist())), own.n)

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Columns]:
        return Fitted(**documents.record({"step": Columns.from_dict, "n": documents.count(1)})(content))

    @property
    def weights_(self) -> tuple[float, ...]:
        """What the log-probability of each class is multiplied by."""
        return self.fit_.step.weights

    @property
    def shifts_(self) -> tuple[float, ...]:
        """What is added to it."""
        return self.fit_.step.shifts

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        low, high = min(self.weights_), max(self.weights_)
        scale = f"log-probabilities are multiplied by {low:.2g} to {high:.2g}, by class"
        return said(scale, class_shifts(self.shifts_))

    def _numbers(self) -> str:
        low, high = min(self.weights_), max(self.weights_)
        return f"weights {low:.3g} to {high:.3g}, shifts {min(self.shifts_):+.3g} to {max(self.shifts_):+.3g}"
