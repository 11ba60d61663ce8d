"""Isotonic regression of two classes, with a prior and few steps."""

from typing import Any, ClassVar, final

import numpy as np
from scipy import optimize, special

from .. import documents
from .._types import FloatArray
from .base import Rows
from .beta import two_classes_only
from .plain import Fitted, PlainMap, checked_classes
from .steps import Stairs

__all__ = ["Isotonic"]

FEWEST = 50
_LENT = 2.0  # rows with the overall share of positives, in each step
_LEAST = 3.0  # nats that two steps must explain better than one


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

    def _accepts(self, rows: Rows) -> None:
        super()._accepts(rows)
        two_classes_only(rows, "Isotonic")

    def _fitted(self, rows: Rows, own: Rows) -> Fitted[Stairs]:
        z, y, weight = checked_classes(rows, FEWEST, "Isotonic")
        w = np.ones(len(z)) if weight is None else weight
        w = w / float(w.mean())
        at, place = np.unique(z, return_inverse=True)
        mass = np.bincount(place, weights=w)
        ones = np.bincount(place, weights=w * y)
        at, mass, ones = at[mass > 0.0], mass[mass > 0.0], ones[mass > 0.0]
        blocks = optimize.isotonic_regression(ones / mass, weights=mass).blocks
        first = np.asarray(blocks[:-1])
        first, n, k = _joined(first, np.add.reduceat(mass, first), np.add.reduceat(ones, first))
        rate = float(ones.sum() / mass.sum())
        share = optimize.isotonic_regression((k + _LENT * rate) / (n + _LENT), weights=n).x
        starts = [_between(at[i - 1], at[i]) for i in first[1:]]
        return Fitted(Stairs(tuple(starts), tuple(special.logit(share).tolist())), own.n)

    @classmethod
    def _read_fit(cls, content: Any) -> Fitted[Stairs]:
        return Fitted(**documents.record({"step": Stairs.from_dict, "n": documents.count(1)})(content))

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


def _between(low: float, high: float) -> float:
    """Return where a step begins: half-way from the last prediction before it, unless that is infinite."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return float(high)
    middle = low + 0.5 * (high - low)
    return float(middle if middle > low else high)


def _joined(first: Any, n: FloatArray, k: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """Join neighbouring steps that explain the outcomes hardly better than one."""
    while len(n) > 1:
        apart = _explained(n, k)
        loss = apart[:-1] + apart[1:] - _explained(n[:-1] + n[1:], k[:-1] + k[1:])
        j = int(loss.argmin())
        if loss[j] >= _LEAST:
            break
        n[j], k[j] = n[j] + n[j + 1], k[j] + k[j + 1]
        first, n, k = np.delete(first, j + 1), np.delete(n, j + 1), np.delete(k, j + 1)
    return first, n, k


def _explained(n: FloatArray, k: FloatArray) -> FloatArray:
    """Return the largest log-likelihood of ``k`` positives among ``n`` rows."""
    return np.asarray(special.xlogy(k, k / n) + special.xlogy(n - k, 1.0 - k / n))
