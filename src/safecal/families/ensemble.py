"""Forecasts that are draws: ensembles, posterior predictive samples. The outcome is one more point among them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self, final

import numpy as np

from .._checks.columns import RowLabels, row_labels, spelled
from .._checks.densities import no_inference_data
from .._checks.forecasts import draw_array, draws_are_alike, flat_draws, outcome_numbers
from .._kernels.ensemble import Exchanged, exchanged, left_out_distances, log_spread, pool_nees, pulled_in, whitened
from .._kernels.spectrum import spread_cells
from .._kernels.states import LOG_2PI
from .._steady import steady
from .._sums.directions import DirectionColumns
from .._sums.drawn import DrawColumns
from .._sums.forecasts import MOST_AXES
from .._sums.looks import Look
from .._sums.scored import Scored
from .._types import ArrayLike, FloatArray, IndexArray, Rows
from ..errors import UnavailableError
from .drawn import drawn_columns, looked_at
from .family import FamilyWords, Partition, Spectral
from .gaussian import Gaussian, states
from .predictions import Predictions

__all__ = ["MOMENTS", "NEIGHBOURS", "Ensemble", "ensemble", "neighbour_columns"]

_ELEMENTS = 1 << 18  # numbers of a block of pools
_ON_A_LINE, _IN_SPACE = 512, 128  # draws among which neighbours are looked for: more tell hardly more

MOMENTS = Look("moments", "by the mean and the covariance of the draws")
ON_A_LINE = replace(MOMENTS, seen="by the mean and the standard deviation of the draws")
NEIGHBOURS = Look("neighbours", "by the neighbours of the outcome among the draws")
_FEW = "With so few draws their spread is not known well enough: draw more than the number of components plus 4."


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ensemble(Predictions):
    """Checked draws, seen in one way, and in another."""

    family: ClassVar[str] = "ensemble"
    words: ClassVar[FamilyWords] = FamilyWords(
        "ensembles of draws",
        "draws",
        call="safecal.ensemble(y_true, draws).evaluate({})",
        mends="Spread the draws about their mean, by a factor found on other rows, or add the noise that is missing.",
        wrong="Outcomes lie farther from its draws than these lie from each other.",
    )
    outcome: ClassVar[str] = "y_true"

    columns: FloatArray  # excess, null variance, third cumulant; then the entropy of the pool, where its moments count
    components: int
    draws: int
    look: Look = MOMENTS
    others: tuple["Ensemble", ...] = ()
    row_labels: RowLabels | None = None
    stated: FloatArray | None = None  # what forecasters look at, as `looked_at` finds it
    # Outcome and draws are points of one kind: the products of its errors are, on average, the covariance of them all.
    pooled: Gaussian | None = None

    @property
    def n(self) -> int:
        return int(self.columns.shape[1])

    @property
    def dimension(self) -> int:
        return self.components

    def take(self, index: IndexArray) -> Self:
        others = tuple(other.take(index) for other in self.others)
        stated = None if self.stated is None else self.stated[:, index]
        pooled = None if self.pooled is None else self.pooled.take(index)
        return replace(
            self, columns=self.columns[:, index], others=others, row_labels=None, stated=stated, pooled=pooled
        )

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        if len({(part.components, part.look, len(part.others)) for part in parts}) > 1:
            return None
        others = [cls._joined(some) for some in zip(*(part.others for part in parts), strict=True)]
        joined = np.concatenate([part.columns for part in parts], axis=1)
        both = [part.stated for part in parts if part.stated is not None]
        stated = np.concatenate(both, axis=1) if both else None
        pools = [part.pooled for part in parts if part.pooled is not None]
        return replace(
            parts[0],
            columns=joined,
            others=tuple(filter(None, others)),
            row_labels=None,
            stated=stated,
            pooled=Gaussian._joined(pools) if pools else None,
        )

    def _score(self, rows: Rows) -> Scored:
        excess, variance, third = self.columns[:3, rows]
        # A dimension is half a nat of varentropy; what few draws and their shape add to it is numerical.
        own = np.full(len(excess), 0.5 * self.components)
        return Scored(excess, own, third, numerical_variance=np.maximum(variance - own, 0.0))

    def spectral(self, rows: Rows, scored: Scored, weight: FloatArray | None) -> Spectral:
        # By the spread of all points of the pool: in each range the outcome may be any of them, as in all rows.
        order = spread_cells(self.columns[3, rows], self.components) if len(self.columns) > 3 else None
        return Spectral(None, None, order)

    def forecast_columns(self, rows: Rows) -> DrawColumns | None:
        if self.stated is None:
            return None
        return drawn_columns(self.stated[:, rows], self.components)

    def direction_columns(self, rows: Rows) -> DirectionColumns | None:
        return None if self.pooled is None else self.pooled.direction_columns(rows)

    def _partition(self, rows: slice) -> Partition:
        return _no_partition()

    def __repr__(self) -> str:
        looks = " and ".join(one.look.name for one in (self, *self.others))
        return f"{self.family} predictions: {self.n} {'row' if self.n == 1 else 'rows'} of {self.draws} draws ({looks})"


def _no_partition() -> NoReturn:
    raise UnavailableError("log_partition does not exist for draws: they have no density of their own.")


@steady
@spelled()
def ensemble(y_true: ArrayLike, draws: ArrayLike) -> Ensemble:
    """Check forecasts that are draws: ensembles, posterior predictive samples, scenarios.

    If a forecast is right, outcome and draws are points of one kind: the outcome may be any of the m + 1. So each point
    is compared with all others, and the outcome with the mean of all points. That difference, the excess, has mean 0
    for every right forecast, whatever its shape, dimension and number of draws. Two comparisons are made:

    - *moments*: how far out a point lies by mean and covariance of the others. It tells how many times the spread is
      too small, but sees no shape: modes that are too narrow, far apart, look right.
    - *neighbours*: how near the others are, the k-th with k about the root of m. It sees every shape, but understates
      over-confidence, the more the fewer the draws.

    The verdict is UNSAFE by either, and SAFE by both. ECD is that of moments; ``verdict.looks`` has both.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, d)
        What happened: a number a row, or a vector.
    draws : array-like of shape (n, m), or (n, m, d)
        The draws of each row: fresh ones, of the outcome itself, its noise included. Up to the number of components
        plus 4 the covariance is not known, and a verdict is never SAFE.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    quantiles : Forecasts that are quantiles.
    particles : Draws with weights.

    Notes
    -----
    Draws of a parameter or of a mean are no forecast of the outcome: its noise is missing. Draws of a model that has
    seen these outcomes, an in-sample posterior predictive, are too good: use outcomes that were held out.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> centre = rng.normal(size=(1000, 1))
    >>> draws = centre + rng.normal(size=(1000, 50))
    >>> y_true = centre[:, 0] + rng.normal(size=1000)
    >>> safecal.ensemble(y_true, draws).evaluate().verdict.decision
    'SAFE'
    >>> safecal.ensemble(y_true, centre + 0.5 * (draws - centre)).evaluate().verdict.decision
    'UNSAFE'
    """
    no_inference_data(draws, "draws")
    labels = row_labels(y_true=y_true, draws=draws)
    y = outcome_numbers(y_true, vectors=True)
    points = draw_array(draws, y.shape)
    x = y.reshape(len(y), -1)
    n, m, d = points.shape
    known = m > d + 4
    moments, neighbours = np.empty((4, n)), np.empty((3, n))
    turned = known and 1 < d <= MOST_AXES
    near, centre, spread = np.empty((n, d)), np.empty((n, d)), np.empty((n if turned else 0, d, d))
    most = _ON_A_LINE if d == 1 else _IN_SPACE
    size = max(1, _ELEMENTS // max((m + 1) * d, (min(m, most) + 1) ** (1 if d == 1 else 2)))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        pool, times = pulled_in(np.concatenate([x[rows, None], points[rows]], axis=1))
        white = _spread(pool, start)
        neighbours[:, rows] = neighbour_columns(_fewer(pool, most) if m > most else white)
        if known:
            moments[:3, rows] = exchanged(0.5 * pool_nees(white, times))
            moments[3, rows] = 0.5 * d * (LOG_2PI + 1.0) + log_spread(pool)
        if turned:
            near[rows], centre[rows] = pool[:, 0], pool.mean(axis=1)
            gap = pool - centre[rows, None]
            spread[rows] = np.einsum("bji,bjk->bik", gap, gap) / (m + 1.0)
    stated = looked_at(x, points)
    if not known:
        look = replace(NEIGHBOURS, acquits=False, why=_FEW)
        return Ensemble(neighbours, d, m, look, (), labels, stated)
    look = ON_A_LINE if d == 1 else MOMENTS
    pooled = states(near, centre, spread) if turned else None
    return Ensemble(moments, d, m, look, (Ensemble(neighbours, d, m, NEIGHBOURS),), labels, stated, pooled)


def _spread(pool: FloatArray, start: int) -> FloatArray:
    flat = flat_draws(pool[:, 1:])
    if flat.any():
        raise draws_are_alike(flat, start)
    try:
        return whitened(pool)
    except np.linalg.LinAlgError:
        bad = np.array([np.linalg.matrix_rank(one - one.mean(axis=0)) < pool.shape[2] for one in pool])
        raise draws_are_alike(bad, start) from None


def _fewer(pool: FloatArray, most: int) -> FloatArray:
    """Take the outcome and as many draws as are enough, evenly spaced: which ones, no outcome tells."""
    chosen = 1 + np.arange(most) * (pool.shape[1] - 1) // most
    return whitened(pool[:, [0, *chosen.tolist()]])


def neighbour_columns(white: FloatArray) -> Exchanged:
    """Compare the distance of the outcome to its k-th neighbour with those of all points, k about the root of m."""
    k = max(1, round(np.sqrt(white.shape[1] - 1.0)))
    return exchanged(white.shape[2] * np.log(left_out_distances(white, k)))
