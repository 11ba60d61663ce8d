"""Forecasts that are draws: ensembles, samples, those of a density. The outcome is one more point among them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self, final

import numpy as np

from .._checks.arrays import RowLabels, row_labels
from .._checks.columns import spelled, steady
from .._checks.forecasts import draw_array, draws_are_alike, flat_draws, no_inference_data, outcome_numbers
from .._kernels import ensemble as kernel
from .._kernels.spectrum import spread_cells
from .._kernels.states import LOG_2PI
from .._sums.causes import DirectionColumns
from .._sums.forecasts import LEVELS, MOST_AXES, DrawColumns, ForecastColumns
from .._sums.scored import Scored
from .._sums.tally_parts import Look
from .._types import ArrayLike, FloatArray, IndexArray, Rows
from ..errors import UnavailableError
from . import Predictions
from .family import FamilyWords, Spectral
from .gaussian import Gaussian, states

__all__ = [
    "MOMENTS",
    "NEIGHBOURS",
    "SEED",
    "Ensemble",
    "as_draw_columns",
    "draws_kept",
    "ensemble",
    "neighbour_columns",
    "score_density_draws",
    "score_draws",
]

_ELEMENTS = 1 << 18  # numbers of a block of pools
_ON_A_LINE, _IN_SPACE = 512, 128  # draws among which neighbours are looked for: more tell hardly more

MOMENTS = Look("moments", "by the mean and the covariance of the draws")
ON_A_LINE = replace(MOMENTS, seen="by the mean and the standard deviation of the draws")
NEIGHBOURS = Look("neighbours", "by the neighbours of the outcome among the draws")
_WHY_FEW_DRAWS = (
    "With so few draws their spread is not known well enough: draw more than the number of components plus 4."
)


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
    draw_scores: FloatArray | None = None  # what forecasters look at, as `score_draws` gives it
    # Outcome and draws are points of one kind: the products of its errors are, on average, the covariance of them all.
    pooled: Gaussian | None = None

    @property
    def n(self) -> int:
        return int(self.columns.shape[1])

    @property
    def dimension(self) -> int:
        return self.components

    def take(self, index: IndexArray) -> Self:
        return replace(
            self, columns=self.columns[:, index], others=tuple(other.take(index) for other in self.others),
            row_labels=None, draw_scores=None if self.draw_scores is None else self.draw_scores[:, index],
            pooled=None if self.pooled is None else self.pooled.take(index),
        )  # fmt: skip

    @classmethod
    def _joined(cls, parts: Sequence[Self]) -> Self | None:
        if len({(part.components, part.look, len(part.others)) for part in parts}) > 1:
            return None
        others = [cls._joined(same_look) for same_look in zip(*(part.others for part in parts), strict=True)]
        scores = [part.draw_scores for part in parts if part.draw_scores is not None]
        pools = [part.pooled for part in parts if part.pooled is not None]
        return replace(
            parts[0], columns=np.concatenate([part.columns for part in parts], axis=1),
            others=tuple(filter(None, others)), row_labels=None,
            draw_scores=np.concatenate(scores, axis=1) if scores else None,
            pooled=Gaussian._joined(pools) if pools else None,
        )  # fmt: skip

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
        if self.draw_scores is None:
            return None
        return as_draw_columns(self.draw_scores[:, rows], self.components)

    def direction_columns(self, rows: Rows) -> DirectionColumns | None:
        return None if self.pooled is None else self.pooled.direction_columns(rows)

    def _partition(self, rows: slice) -> NoReturn:
        raise UnavailableError("log_partition does not exist for draws: they have no density of their own.")

    @property
    def _remark(self) -> str:
        return f" of {self.draws} draws ({' and '.join(part.look.name for part in (self, *self.others))})"


@steady
@spelled()
def ensemble(y_true: ArrayLike, draws: ArrayLike) -> Ensemble:
    """Check forecasts that are draws: ensembles, posterior predictive samples, scenarios.

    If a forecast is right, outcome and draws are points of one kind: the outcome may be any of the m + 1. So each point
    is compared with all others, and the outcome with the mean of all points. That difference, the excess, has mean 0
    for every right forecast, whatever its shape, dimension and number of draws. Two comparisons are made:

    - *moments*: how far out a point lies by mean and covariance of the others. It says how many times the spread is
      too small, but sees no shape: modes that are too narrow, far apart, look right.
    - *neighbours*: how near the others are, the k-th with k about the root of m. It sees every shape, but understates
      over-confidence, the more the fewer the draws.

    The verdict is UNSAFE by either, and SAFE by both. ECD is that of moments; ``verdict.looks`` has both.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, d)
        What happened: a number a row, or a vector.
    draws : array-like of shape (n, m), or (n, m, d)
        The draws of each row: fresh ones, of the outcome itself, its noise included. With no more draws
        than the number of components plus 4, their covariance is not known well, and a verdict is never SAFE.

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
    has_moments = m > d + 4
    moments, neighbours = np.empty((4, n)), np.empty((3, n))
    has_directions = has_moments and 1 < d <= MOST_AXES
    near, centre, spread = np.empty((n, d)), np.empty((n, d)), np.empty((n if has_directions else 0, d, d))
    most_draws = _ON_A_LINE if d == 1 else _IN_SPACE
    size = max(1, _ELEMENTS // max((m + 1) * d, (min(m, most_draws) + 1) ** (1 if d == 1 else 2)))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        pool, times = kernel.pulled_in(np.concatenate([x[rows, None], points[rows]], axis=1))
        white = _whitened(pool, start)
        neighbours[:, rows] = neighbour_columns(_thinned(pool, most_draws) if m > most_draws else white)
        if has_moments:
            moments[:3, rows] = kernel.exchanged(0.5 * kernel.pool_nees(white, times))
            moments[3, rows] = 0.5 * d * (LOG_2PI + 1.0) + kernel.log_spread(pool)
        if has_directions:
            near[rows], centre[rows] = pool[:, 0], pool.mean(axis=1)
            gap = pool - centre[rows, None]
            spread[rows] = np.einsum("bji,bjk->bik", gap, gap) / (m + 1.0)
    draw_scores = score_draws(x, points)
    if not has_moments:
        look = replace(NEIGHBOURS, acquits=False, why=_WHY_FEW_DRAWS)
        return Ensemble(neighbours, d, m, look, (), labels, draw_scores)
    look = ON_A_LINE if d == 1 else MOMENTS
    pooled = states(near, centre, spread) if has_directions else None
    return Ensemble(moments, d, m, look, (Ensemble(neighbours, d, m, NEIGHBOURS),), labels, draw_scores, pooled)


def _whitened(pool: FloatArray, start: int) -> FloatArray:
    flat = flat_draws(pool[:, 1:])
    if flat.any():
        raise draws_are_alike(flat, start)
    try:
        return kernel.whitened(pool)
    except np.linalg.LinAlgError:
        bad = np.array([np.linalg.matrix_rank(draws - draws.mean(axis=0)) < pool.shape[2] for draws in pool])
        raise draws_are_alike(bad, start) from None


def _thinned(pool: FloatArray, most: int) -> FloatArray:
    """Take the outcome and as many draws as are enough, evenly spaced: which ones, no outcome tells."""
    chosen = 1 + np.arange(most) * (pool.shape[1] - 1) // most
    return kernel.whitened(pool[:, [0, *chosen.tolist()]])


def neighbour_columns(white: FloatArray) -> kernel.Exchanged:
    """Compare the distance of the outcome to its k-th neighbour with those of all points, k about the root of m."""
    k = max(1, round(np.sqrt(white.shape[1] - 1.0)))
    return kernel.exchanged(white.shape[2] * np.log(kernel.left_out_distances(white, k)))


# What forecasters look at of draws: where the outcome falls among them, their scores, how far out it lies.

SEED = 0x5AFECA1  # that no study of the same rows is likely to draw from
_AXIS_COLUMNS = 4 + 2 * len(LEVELS)  # of a forecast of a number
_MOST_KEPT = 1 << 24  # numbers of all draws of a density that are held at once
_LEAST_EIGENVALUE = 1e-9  # the least eigenvalue of correlations that is not rounding
_FEWEST_DRAWS = 16  # draws of a density that are worth looking at


def score_draws(x: FloatArray, draws: FloatArray, *, fair: bool = False) -> FloatArray | None:
    """Return columns of outcomes (n, d) and their draws (n, m, d), as `as_draw_columns` reads them.

    ``fair`` scores the law that the draws are of, and not the draws.

    Returns
    -------
    ndarray of shape (1 + 3 (1 + d) + 12 d, n), or None
        None where there are too few draws, or many components.
    """
    n, m, d = draws.shape
    if d > MOST_AXES or m <= d + 4:
        return None
    # The same rows give the same answer: chance is drawn from a generator of its own.
    chance: FloatArray = np.random.default_rng(SEED).random((n,))
    columns, size = np.empty((1 + 3 * (1 + d) + _AXIS_COLUMNS * d, n)), max(1, _ELEMENTS // ((m + 1) * d))
    for start in range(0, n, size):
        rows = slice(start, start + size)
        columns[:, rows] = _score_block(x[rows], draws[rows], chance[rows], fair)
    return columns


@np.errstate(over="ignore", invalid="ignore")  # squares of outcomes beyond all floats; such rows are left out
def _score_block(x: FloatArray, draws: FloatArray, chance: FloatArray, fair: bool) -> FloatArray:
    n, _, d = draws.shape
    by_axis = [(x[:, k], np.ascontiguousarray(draws[..., k])) for k in range(d)]
    axes = [_score_axis(y, drawn, chance, fair) for y, drawn in by_axis]
    along = [_distances_along(y, drawn) for y, drawn in by_axis]
    rank, together = (axes[0][0], along[0]) if d == 1 else _score_jointly(x, draws, chance)
    distances = np.stack([together, *along], axis=1)  # of outcomes, of draws, and the squares of those
    return np.concatenate([rank[None], distances.reshape(3 * (1 + d), n), *axes])


def draws_kept(x: FloatArray, draws: int) -> int:
    """Return how many draws of a density are looked at, so that they fit into memory; 0 where that is too few."""
    many = min(draws, _MOST_KEPT // max(x.size, 1))
    return many if many >= _FEWEST_DRAWS else 0


def score_density_draws(x: FloatArray, draws: Sequence[FloatArray]) -> FloatArray | None:
    """Look at a density by draws of all rows; None where it has no such draws: they are few, counts or labels, alike.

    ``x`` and each of the draws are of shape (n,) or (n, ...).
    """
    if not draws:
        return None
    points = np.stack([draw.reshape(len(x), -1) for draw in draws], axis=1)
    if (points == np.rint(points)).all() or not np.isfinite(points).all() or flat_draws(points).any():
        return None
    if points.shape[2] > MOST_AXES or _in_a_plane(points):
        return None
    return score_draws(x.reshape(len(x), -1), points, fair=True)


def _in_a_plane(draws: FloatArray) -> bool:
    """Tell whether the draws (n, m, d) of some row leave a direction out, as shares that sum to 1 do."""
    scaled = (draws - draws.mean(axis=1, keepdims=True)) / draws.std(axis=1, keepdims=True)
    together = np.einsum("bji,bjk->bik", scaled, scaled) / draws.shape[1]
    return bool(np.linalg.eigvalsh(together).min() < _LEAST_EIGENVALUE)


def as_draw_columns(columns: FloatArray, d: int) -> DrawColumns:
    """Return what `score_draws` gives of some rows, as it is summed."""
    end = 1 + 3 * (1 + d)
    axes = tuple(_as_forecast_columns(columns[end + _AXIS_COLUMNS * k :][:_AXIS_COLUMNS]) for k in range(d))
    distance, own, own2 = columns[1:end].reshape(3, 1 + d, -1)
    return DrawColumns(columns[0], distance, own, own2, axes)


def _as_forecast_columns(columns: FloatArray) -> ForecastColumns:
    rank, crps, spread, error = columns[:4]
    widths, scores = np.split(columns[4:], 2)
    return ForecastColumns(rank, crps, spread, error, widths.T, scores.T)


def _score_jointly(y: FloatArray, draws: FloatArray, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rank of the outcome from the centre, and its squared distance, those of draws, and their squares."""
    pool, times = kernel.pulled_in(np.concatenate([y[:, None], draws], axis=1))
    nees = kernel.pool_nees(kernel.whitened(pool), times)
    own = kernel.left_out_nees(kernel.whitened(draws))
    return kernel.rank_among(nees[:, 0], nees[:, 1:], chance), _distances(nees[:, 0], own)


def _distances_along(y: FloatArray, draws: FloatArray) -> FloatArray:
    """Return the squared distance of the outcome along an axis, those of draws, and their squares."""
    m = draws.shape[1]
    distance = _few_draws_factor(m) * np.square((y - draws.mean(axis=1)) / draws.std(axis=1, ddof=1))
    return _distances(distance, _few_draws_factor(m - 1) * np.square(kernel.left_out_errors(draws)))


def _distances(distance: FloatArray, own: FloatArray) -> FloatArray:
    middle = own.mean(axis=1)
    # The mean of the draws is off by one m-th of their covariance, however far out the outcome lies.
    return np.stack([distance + (distance - middle) / own.shape[1], middle, np.square(own).mean(axis=1)])


def _few_draws_factor(m: int) -> float:
    """Return what makes the mean square of errors 1: few draws spread too little more often than too much."""
    return m * (m - 3.0) / ((m - 1.0) * (m + 1.0))


def _score_axis(y: FloatArray, draws: FloatArray, chance: FloatArray, fair: bool) -> FloatArray:
    """Return rank, CRPS, standard deviation and error, then widths and scores of intervals between quantiles."""
    spread, m = draws.std(axis=1, ddof=1), draws.shape[1]
    # The mean and the spread of skewed draws go together, so that every point seems to be off: the outcome is no more.
    errors = kernel.left_out_errors(np.concatenate([y[:, None], draws], axis=1))
    errors[:, 0] = (y - draws.mean(axis=1)) / spread  # as it is, where it lies so far out that digits are lost
    error = np.sqrt(_few_draws_factor(m)) * (errors[:, 0] - errors.mean(axis=1))
    ordered = np.sort(draws, axis=1)
    ends = [(_quantile(ordered, 0.5 - 0.5 * at), _quantile(ordered, 0.5 + 0.5 * at)) for at in LEVELS]
    widths = [high - low for low, high in ends]
    scores = [kernel.interval_score(y, low, high, at) for (low, high), at in zip(ends, LEVELS, strict=True)]
    crps = kernel.crps_of_draws(y, ordered, fair=fair)
    return np.stack([kernel.rank_among(y, draws, chance), crps, spread, error, *widths, *scores])


def _quantile(ordered: FloatArray, level: float) -> FloatArray:
    """Return a quantile of sorted draws (n, m), linear between two of them."""
    place = level * (ordered.shape[1] - 1)
    below = min(int(place), ordered.shape[1] - 2)
    low, high = ordered[:, below], ordered[:, below + 1]
    return np.asarray(low + (place - below) * (high - low))
