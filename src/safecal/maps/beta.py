"""Beta calibration of two classes: one slope where they are rare, another where they are common."""

from typing import Any, ClassVar, final

import numpy as np
from scipy import special

from .. import documents
from .._checks.maps import refused
from .affine import informative, possible
from .base import Rows, class_count
from .plain import Fitted, PlainMap, checked_classes
from .solving import logistic
from .steps import Curve
from .words import said

__all__ = ["Beta"]

FEWEST = 30


@final
class Beta(PlainMap[Fitted[Curve]]):
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
    The likelihood has a normal prior: a and b around 1, the mean of the log-odds around what it was, each with a
    standard deviation of 4.5. It needs 30 rows, and refuses what `Affine` refuses.

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

    def _accepts(self, rows: Rows) -> None:
        super()._accepts(rows)
        two_classes_only(rows, "Beta")

    def _fitted(self, rows: Rows, own: Rows) -> Fitted[Curve]:
        z, y, w = possible(*checked_classes(rows, FEWEST, "Beta"))
        target = y.astype(np.float64)
        columns = np.stack([special.log_expit(z), -special.log_expit(-z)], axis=1)
        a, b, c = logistic(columns, target, w).tolist()
        if a < 0.0 or b < 0.0:  # the likeliest curve that does not fall has one end that is flat
            kept = 1 if a < 0.0 else 0
            slope, c = logistic(columns[:, kept : kept + 1], target, w).tolist()
            informative(slope)
            a, b = (0.0, slope) if a < 0.0 else (slope, 0.0)
        return Fitted(Curve(a, b, c), own.n)

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Curve]:
        return Fitted(**documents.record({"step": Curve.from_dict, "n": documents.count(1)})(content))

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
        """What is added."""
        return self.fit_.step.c

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        middle = float(self.fit_.step.of(np.zeros(1))[0])
        where = f"even odds become {special.expit(middle):.2g}"
        return said(f"small log-odds are multiplied by {self.a_:.2g} and large ones by {self.b_:.2g}", where)

    def _numbers(self) -> str:
        return f"a {self.a_:.3g}, b {self.b_:.3g}, c {self.c_:+.3g}"


def two_classes_only(rows: Rows, name: str) -> None:
    """Refuse more than two classes."""
    classes = class_count(rows.predictions)
    if classes != 2:
        refused(f"{name} is for two classes, and these are {classes}", "use `Affine` or `Vector`.")
