"""Gaussian states: a mean with a standard deviation, or with a covariance matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np
from scipy import special

from .._checks.arrays import RowLabels, block, row_labels
from .._checks.columns import spelled, steady
from .._checks.states import (
    component_choice,
    covariance_factor,
    one_spread,
    spread_column,
    state_columns,
    state_shapes,
    triangular_factor,
)
from .._kernels import states as kernel
from .._kernels.spectrum import spread_cells
from .._sums.causes import MOST_DIRECTIONS, DirectionColumns
from .._sums.clusters import NEAR, Near
from .._sums.forecasts import LEVELS, MOST_AXES, ForecastColumns, VectorColumns
from .._sums.scored import Scored
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, IndexArray, Mapped, Rows, SpreadLike
from ..errors import UnavailableError
from . import Predictions
from .family import BLOCK, Cumulants, FamilyWords, Partition, Spectral

__all__ = ["gaussian", "states"]

_ELEMENTS = 1 << 18
_COLUMNS = ("x_true", "mean", "spread")
_ALIKE = ("form", "angles", "method", "parts", "seen", "axis_names")  # of states that can be put under each other

Parts = tuple[tuple[Look, tuple[int, ...]], ...]


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Gaussian(Predictions):
    """Checked Gaussian state estimates."""

    family: ClassVar[str] = "gaussian"
    words: ClassVar[FamilyWords] = FamilyWords(
        kind="states",
        scaled="covariances",
        sense="small",
        right="the covariance that it states",
        call="safecal.gaussian(x_true, mean, cov=cov).evaluate({})",
        tempered="call `apply_states`.",
        alone=FamilyWords(
            kind="forecasts of a number",
            scaled="standard deviations",
            sense="small",
            right="the standard deviation that it states",
            call="safecal.gaussian(x_true, mean, std=std).evaluate({})",
            tempered="call `apply_states`.",
            root=True,
            wrong="Outcomes lie farther from their forecasts than it says.",
        ),
    )
    chi_square: ClassVar[bool] = True
    mapped: ClassVar[Mapped] = "states"
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("entropy",)

    x_true: AnyArray
    mean: AnyArray
    form: str
    spread: AnyArray
    shared: FloatArray | None  # the Cholesky factor, when one matrix serves all rows
    angles: tuple[int, ...] = ()  # components whose errors are wrapped
    method: str | None = None  # how mean and spread were made, where they are not those that were given
    row_labels: RowLabels | None = None
    parts: Parts = ()  # components that are looked at by themselves, too
    seen: Look | None = None  # how they are seen, where they stand for something else, or are a part of it
    beside: tuple[Predictions, ...] = ()  # other looks at the same rows
    axis_names: tuple[str, ...] = ()  # what the components are called, where they have names

    @property
    def n(self) -> int:
        return len(self.x_true)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.axis_names

    @property
    def what_happened(self) -> AnyArray:
        return self.x_true

    @property
    def look(self) -> Look | None:
        if self.seen is not None:
            return self.seen
        return Look("all", "in all axes together") if self.parts else None

    @property
    def others(self) -> tuple[Predictions, ...]:
        return (*self.beside, *(self.marginal(kept, look) for look, kept in self.parts))

    def marginal(self, kept: tuple[int, ...], look: Look | None = None) -> Gaussian:
        """Return some components of states with covariance matrices, the others integrated out."""
        assert self.form == "cov"
        matrices = np.asarray(self.spread, dtype=np.float64)[..., kept, :][..., kept]
        names, some_axes = self.axis_names, states(self.x_true[:, kept], self.mean[:, kept], matrices, self.method)
        return replace(some_axes, seen=look, axis_names=tuple(names[k] for k in kept if names))

    @property
    def _spread_by_row(self) -> bool:
        if self.form in ("cov", "chol", "precision"):
            return self.spread.ndim == 3
        return self.spread.shape == self.x_true.shape

    def take(self, index: IndexArray) -> Self:
        spread = self.spread[index] if self._spread_by_row else self.spread
        beside = tuple(other.take(index) for other in self.beside)
        return replace(
            self, x_true=self.x_true[index], mean=self.mean[index], spread=spread, row_labels=None, beside=beside
        )

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        forms = {(part.x_true.shape[1:], *(getattr(part, name) for name in _ALIKE)) for part in parts}
        if len(forms) > 1 or not all(part._spread_by_row for part in parts):
            return None
        x_true, mean, spread = (np.concatenate([getattr(p, name) for p in parts]) for name in _COLUMNS)
        beside = tuple(looks[0].concatenate(looks) for looks in zip(*(part.beside for part in parts), strict=True))
        return replace(parts[0], x_true=x_true, mean=mean, spread=spread, shared=None, row_labels=None, beside=beside)

    @property
    def dimension(self) -> int:
        """Number of components of the state."""
        return 1 if self.x_true.ndim == 1 else int(self.x_true.shape[1])

    @property
    def least_excess(self) -> float:
        return -0.5 * self.dimension

    @property
    def _block_rows(self) -> int:
        return min(BLOCK, max(1, _ELEMENTS // self.dimension**2))

    def nees(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the squared normalised error and log det C of some rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            nees, logdet = self._nees(rows)
        nees[np.isnan(nees)] = np.inf  # an error beyond every float has density 0, and is counted as impossible
        return nees, logdet

    def errors(self, rows: Rows) -> FloatArray:
        """Return the true states less the means, (n, d); those of angles are wrapped."""
        return kernel.wrap((block(self.x_true, rows) - block(self.mean, rows)).reshape(-1, self.dimension), self.angles)

    def _given(self, rows: Rows) -> AnyArray:
        """Return the matrices of some rows as they were given; the one of all rows, where they share it."""
        return self.spread if self.shared is not None else block(self.spread, rows)

    def precisions(self, rows: Rows) -> FloatArray:
        """Return the inverses of the covariances, (n, d, d) or (1, d, d)."""
        if self.form in ("std", "var"):
            deviation = np.atleast_2d(self._deviations(rows)) * np.ones(self.dimension)
            return np.asarray(np.eye(self.dimension) / np.square(deviation)[:, None, :])
        given = self._given(rows)
        matrices = _mirrored(given)
        if self.form == "chol":
            lower = np.tril(given)
            matrices = lower @ np.swapaxes(lower, -1, -2)
        whole = matrices if self.form == "precision" else np.linalg.inv(matrices)
        return np.asarray(whole if whole.ndim == 3 else whole[None])

    def _nees(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        d = self.dimension
        residual = self.errors(rows)
        if self.form in ("std", "var"):
            per_row = self._spread_by_row
            spread = block(self.spread, rows).reshape(-1, d) if per_row else np.asarray(self.spread, dtype=np.float64)
            return kernel.nees_from_std(residual, spread if self.form == "std" else np.sqrt(spread))
        matrices = block(self.spread, rows) if self.shared is None else self.shared
        if self.form == "precision":
            factor = matrices if self.shared is not None else np.linalg.cholesky(matrices)
            return kernel.nees_from_precision_factor(residual, np.asarray(factor, dtype=np.float64))
        if self.form == "cov" and self.shared is None:
            return kernel.nees_from_covariance(residual, matrices)
        return kernel.nees_from_factor(residual, matrices)

    def forecast_columns(self, rows: Rows) -> ForecastColumns | VectorColumns | None:
        if self.dimension > 1:
            return self._vector_columns(rows) if self.dimension <= MOST_AXES else None
        error = self.axis_errors(rows)[:, 0]
        spread = np.broadcast_to(self._deviations(rows).reshape(-1), error.shape)
        z = special.ndtri(0.5 + 0.5 * np.array(LEVELS))
        with np.errstate(over="ignore", invalid="ignore"):
            outside = np.maximum(np.abs(error)[:, None] - z, 0.0) * (2.0 / (1.0 - np.array(LEVELS)))
            widths = 2.0 * z * spread[:, None]
            return ForecastColumns(
                special.ndtr(error), kernel.crps_of_normal(error, spread), spread, error, widths,
                widths + outside * spread[:, None],
            )  # fmt: skip

    def _vector_columns(self, rows: Rows) -> VectorColumns:
        error = self.axis_errors(rows)
        white, factor = self._whitened(error, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            held = special.gammainc(0.5 * self.dimension, 0.5 * np.vecdot(white, white))
        return VectorColumns(held, error, white, factor)

    def direction_columns(self, rows: Rows) -> DirectionColumns | None:
        if not 1 < self.dimension <= MOST_DIRECTIONS:
            return None
        error = self.axis_errors(rows)
        white, factor = self._whitened(error, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            along = kernel.along_covariance(error, self._deviations(rows), white, factor)
        return DirectionColumns(white, factor, along)

    def _whitened(self, error: FloatArray, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return errors over the deviations of their axes, solved by the factor of their correlations, and that."""
        factor = np.eye(self.dimension)[None]
        if self.form not in ("std", "var"):
            matrices = self._given(rows)
            if self.form != "chol":
                inverse = self.form == "precision"
                matrices = np.linalg.cholesky(np.linalg.inv(_mirrored(matrices)) if inverse else matrices)
            lower = np.tril(np.asarray(matrices, dtype=np.float64)) / self._deviations(rows)[..., None]
            factor = lower if lower.ndim == 3 else lower[None]
        with np.errstate(over="ignore", invalid="ignore"):
            return kernel.solved(error, factor).T, factor

    def axis_errors(self, rows: Rows) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(self.errors(rows) / self._deviations(rows))

    def _deviations(self, rows: Rows) -> FloatArray:
        """Return the standard deviation of each axis, the others integrated out: (d,) or (n, d)."""
        if self.form in ("std", "var"):
            spread = block(self.spread, rows).reshape(-1, self.dimension) if self._spread_by_row else self.spread
            return np.asarray(spread if self.form == "std" else np.sqrt(spread), dtype=np.float64)
        matrices = self._given(rows)
        if self.form == "chol":
            return np.asarray(np.sqrt((np.asarray(matrices, dtype=np.float64) ** 2).sum(axis=-1)))
        whole = np.linalg.inv(_mirrored(matrices)) if self.form == "precision" else matrices
        return np.asarray(np.sqrt(np.diagonal(whole, axis1=-2, axis2=-1).astype(np.float64)))

    def mean_nees(self, weight: AnyArray | None = None) -> float:
        """Return the mean of the squared normalised errors, with checked weights."""
        total = mass = 0.0
        for rows in self._rows(self._block_rows):
            nees, _ = self.nees(rows)
            w = np.ones(len(nees)) if weight is None else block(weight, rows)
            total += float(np.dot(w, nees))
            mass += float(w.sum())
        return total / mass

    def _score(self, rows: Rows) -> Scored:
        d = self.dimension
        nees, logdet = self.nees(rows)
        base = d * kernel.LOG_2PI + logdet
        flat = np.ones(len(nees))
        return Scored((nees - d) / 2.0, flat * (d / 2.0), flat * float(d), (base + nees) / 2.0, (base + d) / 2.0)

    def _partition(self, rows: slice) -> Partition:
        d = self.dimension
        _, logdet = self.nees(rows)
        base = d * kernel.LOG_2PI + logdet

        def at(beta: AnyArray | float) -> Cumulants:
            if not np.min(beta) > 0.0:
                raise UnavailableError(f"log_partition of a Gaussian exists for beta > 0 only; got {beta!r}.")
            flat = np.ones(len(base))
            value = (1.0 - beta) / 2.0 * base - d / 2.0 * np.log(beta)
            return Cumulants(value, -base / 2.0 - d / (2.0 * beta), flat * d / (2.0 * beta**2), -flat * d / beta**3)

        return at

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        # The sums say it all: half of NEES is a gamma variable, whatever the covariance.
        half, betas = np.full(len(scored), 0.5 * self.dimension), np.array(NEAR)[:, None]
        assert scored.entropy is not None
        order = spread_cells(scored.entropy, self.dimension)
        return Spectral(None, lambda: Near(half / betas, half / betas**2), order)

    @property
    def _remark(self) -> str:
        return "" if self.method is None else f" ({self.method})"


@steady
@spelled()
def gaussian(
    x_true: ArrayLike,
    mean: ArrayLike,
    *,
    std: SpreadLike | None = None,
    var: SpreadLike | None = None,
    cov: ArrayLike | None = None,
    chol: ArrayLike | None = None,
    precision: ArrayLike | None = None,
    mapping: Sequence[int] | None = None,
    angles: Sequence[int] | None = None,
) -> Gaussian:
    """Check Gaussian state estimates and the true states.

    The excess of a row is ``(NEES - d) / 2`` with the normalised estimation error squared
    ``NEES = (x - mean)^T C^-1 (x - mean)`` of a d-dimensional state: positive when errors are larger than the
    covariance says, never below ``-d/2``.

    Parameters
    ----------
    x_true : array-like of shape (n,) or (n, d)
        The true states.
    mean : array-like, of the shape of x_true
        The estimates.
    std, var : float, array-like of shape (d,), or of the shape of x_true
        Standard deviations, or variances, of independent components.
    cov : array-like of shape (d, d) or (n, d, d)
        Covariance matrices, one for all rows or one a row. The lower triangle is used.
    chol : array-like of shape (d, d) or (n, d, d)
        Lower triangular factors ``L`` of the covariance, ``C = L L^T``.
    precision : array-like of shape (d, d) or (n, d, d)
        Inverses of the covariance matrices. The lower triangle is used.
    mapping : sequence of int, optional
        The components that matter, by number: the others are integrated out, and may hold anything. By default all.
    angles : sequence of int, optional
        The components, of the states as they are given, that are angles in radians: their errors are wrapped into
        (-pi, pi]. Standard deviations should be well below pi, or the density reaches around the circle.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    nees : The mean of the normalised errors.
    gaussian_mixture, particles : States that are not Gaussian.
    density : Anything with a log-density.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> safecal.gaussian([1.0, -2.0], [0.0, 0.0], std=1.0).ecd
    0.75
    >>> safecal.gaussian([[1.0, 2.0]], [[0.0, 0.0]], cov=[[1.0, 0.0], [0.0, 4.0]]).ecd
    0.0

    A bearing of 179 degrees where -179 was estimated is an error of 2 degrees:

    >>> bearing = np.deg2rad([[179.0], [-179.0]])
    >>> round(safecal.gaussian(bearing[:1], bearing[1:], std=np.deg2rad(1.0), angles=[0]).ecd, 12)
    1.5
    """
    rows = row_labels(x_true=x_true, mean=mean)
    x, m = state_shapes(x_true, mean)
    kept, wrapped = component_choice(mapping, angles, 1 if x.ndim == 1 else x.shape[1])
    shape = x.shape
    x, m = state_columns(x, m, kept)
    form, value = one_spread({"std": std, "var": var, "cov": cov, "chol": chol, "precision": precision})
    if form in ("std", "var"):
        return Gaussian(x, m, form, spread_column(value, form, shape, kept), None, wrapped, None, rows)
    matrices = _matrices(form, value, shape, kept)
    shared = None
    if matrices.ndim == 2:
        full = np.asarray(matrices, dtype=np.float64)
        shared = full if form == "chol" else np.asarray(np.linalg.cholesky(full), dtype=np.float64)
    return Gaussian(x, m, form, matrices, shared, wrapped, None, rows)


def states(x_true: AnyArray, mean: AnyArray, cov: AnyArray, method: str | None = None, parts: Parts = ()) -> Gaussian:
    """Return states that were checked already, with a covariance each or one for all."""
    shared = np.asarray(np.linalg.cholesky(cov), dtype=np.float64) if cov.ndim == 2 else None
    return Gaussian(x_true, mean, "cov", cov, shared, method=method, parts=parts)


def _mirrored(matrices: AnyArray) -> FloatArray:
    """Return the symmetric matrices that have these lower triangles."""
    lower = np.tril(np.asarray(matrices, dtype=np.float64))
    return np.asarray(lower + np.swapaxes(np.tril(lower, -1), -1, -2))


def _matrices(form: str, value: SpreadLike, shape: tuple[int, ...], kept: tuple[int, ...] | None) -> AnyArray:
    """Return checked matrices of the components that are kept, in the form they came in."""
    if form == "cov":
        return covariance_factor(value, form, shape, kept)
    if form == "chol":
        factor = triangular_factor(value, form, shape)
        return factor if kept is None else kernel.marginal_factor(np.asarray(factor, dtype=np.float64), kept)
    precision = covariance_factor(value, form, shape)
    return precision if kept is None else kernel.marginal_precision(np.asarray(precision, dtype=np.float64), kept)
