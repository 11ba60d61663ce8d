"""A bias and a factor for each axis of Gaussian states.

With ``e`` the errors, ``P`` the precision matrices, ``r = 1 / factor`` and ``t = bias / factor``, minus the mean
log-likelihood is, up to a constant, ``r'Ar/2 - r'Bt + t'Dt/2 - sum log r`` with the means ``A = P * ee'``,
``B = e P`` and ``D = P``. It is convex in both; ``t`` is known given ``r``, and r is found by Newton steps.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from .. import documents
from .._checks import refused
from .._checks.columns import yes_or_no
from .._types import FloatArray
from ..families import family_named
from ..families.gaussian import Gaussian
from .base import FitRows, PlainMap
from .steps import Unchanged

__all__ = ["Axes", "FittedAxes"]

_FEWEST = 20
_STEPS = 100


@final
@dataclass(frozen=True, slots=True)
class FittedAxes:
    """Bias and factor of each axis, of some rows.

    Attributes
    ----------
    bias : tuple of float
        Correction that is added to the means.
    factor : tuple of float
        Factor of the standard deviations.
    n : int
        How many rows there were.
    """

    bias: tuple[float, ...]
    factor: tuple[float, ...]
    n: int

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return 2 * len(self.bias)

    @property
    def step(self) -> Unchanged:
        """The step on classes: none, since states have no classes."""
        return Unchanged()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"bias": list(self.bias), "factor": list(self.factor), "n": self.n}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        bias, factor = documents.read_number, documents.between(0.0, inside=True)
        readers = {"bias": documents.list_of(bias, 1), "factor": documents.list_of(factor, 1), "n": documents.count(1)}
        fields = documents.record(readers)(content)
        documents.every([(len(fields["bias"]) == len(fields["factor"]), "must have a bias and a factor for each axis")])
        return cls(tuple(fields["bias"]), tuple(fields["factor"]), fields["n"])


@final
class Axes(PlainMap[FittedAxes]):
    """Move the means of Gaussian states, and scale each axis of their covariances.

    With S the diagonal matrix of the factors, a covariance C becomes ``S C S``. It corrects an estimator that is
    over-confident in its velocities alone, or off to one side.

    Parameters
    ----------
    bias : bool, default True
        Whether means are moved, too. Without, factors make up for a bias as well.

    Attributes
    ----------
    bias_ : ndarray of shape (d,)
        Correction that is added to the means.
    factor_ : ndarray of shape (d,)
        Factor of the standard deviations: above 1 where an axis is over-confident.
    n_ : int
        Rows it was fitted to.
    groups_ : dict or None
        The same for each group.

    See Also
    --------
    safecal.Temperature : One factor for all axes, and no bias.

    Notes
    -----
    They are the likeliest ones. It needs 20 rows. Errors of angles are wrapped before.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.maps import Axes
    >>> rng = np.random.default_rng(0)
    >>> x_true = rng.normal([0.0, 1.0], [1.0, 3.0], (4000, 2))
    >>> model = Axes().fit_states(x_true, np.zeros((4000, 2)), std=1.0)
    >>> np.abs(model.bias_).round(1).tolist(), model.factor_.round(1).tolist()
    ([0.0, 1.0], [1.0, 3.0])
    >>> model.apply_mean([[5.0, 5.0]]).round(1).tolist(), model.apply_states(std=[1.0, 2.0]).round(1).tolist()
    ([[5.0, 6.0]], [1.0, 6.0])
    """

    _kind: ClassVar[str] = "axes"
    _options: ClassVar[tuple[str, ...]] = ("bias",)
    _early_defaults: ClassVar[Mapping[str, Any]] = {"bias": True}
    _read_fit = FittedAxes.from_dict

    def __init__(self, bias: bool = True) -> None:
        self.bias = yes_or_no(bias, "bias")

    def _accepts(self, rows: FitRows) -> None:
        if not isinstance(rows.predictions, Gaussian):
            hint = "use `Affine`, `Beta` or `Vector` for classes."
            refused(f"Axes is for Gaussian states, and these are {rows.predictions.family} predictions", hint)

    def _fit_to(self, rows: FitRows, own_rows: FitRows) -> FittedAxes:
        p = rows.predictions
        assert isinstance(p, Gaussian)
        rows.require(_FEWEST, "Axes", None)
        A, B, D = _sums(p, rows.weights)
        bias, factor = _likeliest(A, B if self.bias else 0.0 * B, D)
        return FittedAxes(tuple(bias.tolist()), tuple(factor.tolist()), own_rows.n)

    def _axes(self, key: Hashable = None) -> tuple[FloatArray, FloatArray]:
        fit = self._fit_of(key)
        return np.array(fit.bias), np.array(fit.factor)

    def _is_of_its_family(self) -> bool:
        return family_named(self.family_).mapped == "states" and self.classes_ is None

    @property
    def bias_(self) -> FloatArray:
        """The correction that is added to the means."""
        return np.array(self.fit_.bias)

    @property
    def factor_(self) -> FloatArray:
        """The factor of the standard deviations."""
        return np.array(self.fit_.factor)

    @property
    def sentence_(self) -> str:
        """What the map does, in a sentence."""
        bias, factor = (", ".join(f"{x:.2g}" for x in numbers) for numbers in (self.fit_.bias, self.fit_.factor))
        return f"Means are moved by {bias}, and standard deviations are multiplied by {factor}."

    def _numbers(self) -> str:
        low, high = min(self.fit_.factor), max(self.fit_.factor)
        return f"factors {low:.3g} to {high:.3g}"


def _sums(p: Gaussian, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the means of ``P * ee'``, of ``e P`` and of ``P``."""
    d = p.dimension
    A, B, D = (np.zeros((d, d)) for _ in range(3))
    for rows in p.row_blocks():
        e, precision = p.errors(rows).reshape(-1, d), p.precisions(rows)
        share = w[rows, None, None] * precision
        A += np.einsum("nij,ni,nj->ij", share, e, e)
        B += np.einsum("nij,ni->ij", share, e)
        D += share.sum(axis=0)
    mass = float(w.sum())
    return A / mass, B / mass, D / mass


def _likeliest(A: FloatArray, B: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bias and factor."""
    to_t = np.linalg.solve(D, B.T)  # t = to_t r
    Q = A - B @ to_t
    Q = 0.5 * (Q + Q.T)
    if not (np.diag(Q) > 1e-12 * np.diag(A)).all():
        refused("an axis has no error at all, so that no deviation is small enough", None)
    r = 1.0 / np.sqrt(np.diag(Q))
    for _ in range(_STEPS):
        gradient = Q @ r - 1.0 / r
        step = np.linalg.solve(Q + np.diag(1.0 / r**2), gradient)
        share = 1.0
        while not (r - share * step > 0.0).all():
            share *= 0.5
        r = r - share * step
        if np.abs(step / r).max() < 1e-12:
            break
    return to_t @ r / r, 1.0 / r
