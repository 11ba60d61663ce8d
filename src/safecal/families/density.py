"""Any density: a distribution of SciPy, torch or another library, or an unnormalised log-density with a sampler."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from .._checks import fail
from .._checks.columns import spelled, steady, whole_number
from .._checks.forecasts import (
    batch_rows,
    drawn_log_density,
    generator,
    no_inference_data,
    not_in_sample,
    one_prediction,
    outcome_log_density,
    outcomes,
    row_values,
    single_column,
    unknown_distribution,
)
from .._kernels.ensemble import Moments
from .._sums.causes import DirectionColumns
from .._sums.forecasts import DrawColumns
from .._sums.scored import Scored
from .._sums.tally_parts import Look
from .._types import AnyArray, ArrayLike, BinOn, FloatArray, Rows
from ..errors import FormError, UnavailableError
from . import Predictions
from .distributions import adapt
from .ensemble import SEED, as_draw_columns, draws_kept, score_density_draws
from .family import BLOCK, Cumulants, FamilyWords, Partition
from .gaussian import Gaussian
from .integrals import DensityLaw, Integral, Quadrature

__all__ = ["density", "offered_law", "unwrapped"]

_LOG_DENSITY = ("log_prob", "logpdf", "log_pdf")
_QUANTILE = ("icdf", "ppf", "quantile")


def unwrapped(dist: Any) -> Any:
    """Return the distribution of SciPy that an object holds or states; else the object itself.

    NGBoost's ``pred_dist(X)`` holds one in ``dist``. The ``get_prediction(X)`` of statsmodels states means with the
    standard errors of an outcome, ``se_obs``.
    """
    if getattr(dist, "predicted_mean", None) is not None:  # NGBoost has every attribute, None where it knows none
        return _from_statsmodels(dist)
    inner = getattr(dist, "dist", None)
    frozen = any(c.__name__ == "rv_frozen" for c in type(inner).__mro__)
    return inner if frozen and not any(c.__name__ == "rv_frozen" for c in type(dist).__mro__) else dist


def _from_statsmodels(prediction: Any) -> Any:
    """Return the normal or Student's t distributions that a prediction of statsmodels states."""
    from scipy import stats  # here, so that importing safecal stays light

    error = getattr(prediction, "se_obs", None)
    if error is None:
        hint = "`safecal.gaussian(y_true, predicted_mean, std=...)` with a spread that has the noise of an outcome."
        rule = "must state the standard error of an outcome, `se_obs`, and not of a mean alone"
        raise fail(FormError, "dist", rule, got=type(prediction).__name__, hint=hint)
    mean, spread = (np.asarray(x, dtype=np.float64).reshape(-1) for x in (prediction.predicted_mean, error))
    law, df = getattr(prediction, "dist", None), getattr(prediction, "df", None)
    if getattr(law, "name", "") == "t" and df is not None:
        return stats.t(float(df), loc=mean, scale=spread)
    return stats.norm(mean, spread)


def _first_method(dist: Any, names: Iterable[str]) -> Callable[[Any], Any] | None:
    methods = (getattr(dist, name, None) for name in names)
    return next((method for method in methods if callable(method)), None)


def offered_law(dist: Any, x: FloatArray) -> DensityLaw | None:
    """Return the law of an object that offers a log-density and quantiles, of one variable; None for others."""
    if any(c.__module__.split(".")[0] in ("scipy", "torch") for c in type(dist).__mro__):
        return None  # whose distributions are known better
    log_density, quantile = _first_method(dist, _LOG_DENSITY), _first_method(dist, _QUANTILE)
    if log_density is None:
        return None
    name, n = f"{type(dist).__module__}.{type(dist).__qualname__}", len(x)
    if quantile is None:
        hint = "it offers no quantiles: pass `log_density=` and `sampler=`, two functions."
        raise unknown_distribution(dist, hint)
    single_column(x, name)
    size = getattr(dist, "shape", None)
    table = isinstance(size, tuple) and len(size) == 2  # of one column, as skpro has it

    def shaped(value: Any) -> FloatArray:
        array = np.asarray(value, dtype=np.float64)
        return array.reshape(-1) if table else array

    def at(values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return shaped(log_density(values[:, None] if table else values))

    rows = batch_rows(np.shape(shaped(quantile(0.5))), n, name)

    def quantiles(u: FloatArray, upper: bool) -> Iterable[tuple[FloatArray, FloatArray]]:
        p = 1.0 - u if upper else u
        if table:
            values = [quantile(float(level)) for level in p[:, 0]]
            yield np.zeros(1), np.stack([shaped(log_density(value)) for value in values])
            return
        yield np.zeros(1), np.asarray(log_density(quantile(p)), dtype=np.float64)

    def draw(rng: np.random.Generator) -> FloatArray:
        chance = rng.random(n)
        if table:  # the same level for all rows at a time
            return np.array([shaped(quantile(float(level)))[k % rows] for k, level in enumerate(chance)])
        return np.broadcast_to(shaped(quantile(chance)), (n,)).copy()

    single = np.asarray(log_density(quantile(0.5))).dtype != np.float64  # too coarse for an integral to settle
    integrals = () if single else (Quadrature(name, rows, quantiles, np.zeros(1)),)
    return DensityLaw(name, at, draw, integrals, quick=not table)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Density(Predictions):
    """Checked predictions by densities, scored when they were made."""

    family: ClassVar[str] = "density"
    words: ClassVar[FamilyWords] = FamilyWords("densities", call="safecal.density(x_true, dist).evaluate({})")
    bin_choices: ClassVar[tuple[BinOn, ...]] = ("entropy",)

    excess: FloatArray
    varentropy: FloatArray
    third_cumulant: FloatArray
    method: str  # "formula", "quadrature", "summation" or "draws"
    components: int  # numbers in an outcome
    surprisal: FloatArray | None = None
    entropy: FloatArray | None = None
    numerical_variance: FloatArray | None = None
    draws: int | None = None
    integral: Integral | None = None
    look: Look | None = None
    matched: Gaussian | None = None  # states of the same means and covariances, where these are known
    draw_scores: Callable[[], FloatArray | None] | None = None  # what forecasters look at, when it is asked for

    @property
    def n(self) -> int:
        return len(self.excess)

    @property
    def dimension(self) -> int:
        return self.components

    @property
    def _block_rows(self) -> int:
        # The columns exist already, and an integral is taken of all rows at once.
        return max(BLOCK, self.n)

    def forecast_columns(self, rows: Rows) -> DrawColumns | None:
        scores = None if self.draw_scores is None else self.draw_scores()
        return None if scores is None else as_draw_columns(scores[:, rows], self.components)

    def bin_range(self, bin_on: str) -> tuple[float, float]:
        if self.entropy is None:
            raise UnavailableError("rows cannot be binned on entropy: an unnormalised density has none.")
        return Predictions.bin_range(self, bin_on)

    def _score(self, rows: Rows) -> Scored:
        def part(column: FloatArray | None) -> FloatArray | None:
            return None if column is None else column[rows]

        return Scored(
            self.excess[rows],
            self.varentropy[rows],
            self.third_cumulant[rows],
            part(self.surprisal),
            part(self.entropy),
            numerical_variance=part(self.numerical_variance),
        )

    def direction_columns(self, rows: Rows) -> DirectionColumns | None:
        return None if self.matched is None else self.matched.direction_columns(rows)

    def _partition(self, rows: slice) -> Partition:
        if self.integral is None:
            reason = "unnormalised" if self.entropy is None else "known by its draws only"
            raise UnavailableError(f"log_partition does not exist for a density that is {reason}.")
        at_beta = self.integral.open()

        def at(beta: AnyArray | float) -> Cumulants:
            if np.ndim(beta):
                raise UnavailableError("log_partition of a density takes one beta for all rows.")
            cumulants = at_beta(float(beta))
            return Cumulants(*(np.broadcast_to(column, (self.n,))[rows].astype(np.float64) for column in cumulants))

        return at

    @property
    def _remark(self) -> str:
        return f" ({self.method})" if self.draws is None else f" ({self.method}: {self.draws})"


def _draw_moments(
    log_density: Callable[[FloatArray], FloatArray], draw: Callable[[], FloatArray], n: int, draws: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, variance and minus the third cumulant of log f over fresh draws, one value a row each."""
    moments = Moments(n)
    for _ in range(draws):
        moments.add(np.zeros((1, n)), log_density(draw())[None, :])
    s = float(draws)
    unbiased = s * s / ((s - 1.0) * (s - 2.0))
    return moments.mean, moments.second * s / (s - 1.0), -unbiased * moments.third


def _integrated(law: DensityLaw) -> tuple[Integral, Cumulants] | None:
    """Return the first integral that can be taken, and its value at beta = 1."""
    for integral in law.integrals:
        try:
            cumulants = integral.open()(1.0)
        except UnavailableError:
            continue
        if all(np.isfinite(column).all() for column in cumulants):
            return integral, cumulants
    return None


def _draws_on_request(
    x: FloatArray, draws: int, draw: Callable[[np.random.Generator], FloatArray]
) -> Callable[[], FloatArray | None]:
    """Draw when it is asked what forecasters look at, from a generator of its own: the same rows, the same answer."""

    def scores() -> FloatArray | None:
        rng = np.random.default_rng(SEED)
        return score_density_draws(x, [np.asarray(draw(rng), dtype=np.float64) for _ in range(draws_kept(x, draws))])

    return scores


def _from_law(law: DensityLaw, x: FloatArray, draws: int, rng: np.random.Generator) -> Density:
    """Score outcomes by a law: by its first integral that works, else by draws."""
    n = len(x)
    rule = "one log-density for each row of `x_true`"
    log_f = outcome_log_density(row_values(law.log_density(x), (n,), "dist", rule), "dist")
    surprisal = -log_f
    draw_scores = _draws_on_request(x, draws, law.draw) if law.quick else None
    integrated = _integrated(law)
    if integrated is not None:
        integral, at_one = integrated
        entropy, varentropy, third = (
            np.array(np.broadcast_to(c, (n,))) for c in (-at_one.mean, np.maximum(at_one.variance, 0.0), -at_one.third)
        )
        return Density(
            surprisal - entropy, varentropy, third, integral.method, x[0].size, surprisal, entropy,
            integral=integral, draw_scores=draw_scores,
        )  # fmt: skip

    def log_density(values: FloatArray) -> FloatArray:
        return drawn_log_density(law.log_density(values), "dist")

    mean, varentropy, third = _draw_moments(log_density, lambda: law.draw(rng), n, draws)
    entropy = -mean if law.entropy is None else np.array(np.broadcast_to(law.entropy, (n,)))
    variance = varentropy / draws if law.entropy is None else None
    return Density(
        surprisal - entropy, varentropy, third, "draws", x[0].size, surprisal, entropy,
        numerical_variance=variance, draws=draws, draw_scores=draw_scores,
    )  # fmt: skip


def _from_pair(
    log_density: Callable[[FloatArray], Any],
    sampler: Callable[[np.random.Generator], Any],
    x: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> Density:
    """Score outcomes by an unnormalised log-density and a sampler."""
    n, rule = len(x), "one value for each row"
    log_f = outcome_log_density(row_values(log_density(x), (n,), "log_density", rule), "log_density").copy()

    def at(values: FloatArray) -> FloatArray:
        return drawn_log_density(row_values(log_density(values), (n,), "log_density", rule), "log_density")

    def draw() -> FloatArray:
        return row_values(sampler(rng), x.shape, "sampler", "one draw for each row, shaped like `x_true`")

    kept: list[FloatArray] = []
    many = draws_kept(x, draws)

    def remembered() -> FloatArray:
        drawn_once = draw()
        if len(kept) < many:
            kept.append(drawn_once)
        return drawn_once

    mean, varentropy, third = _draw_moments(at, remembered, n, draws)
    return Density(
        mean - log_f, varentropy, third, "draws", x[0].size,
        numerical_variance=varentropy / draws, draws=draws, draw_scores=lambda: score_density_draws(x, kept),
    )  # fmt: skip


@steady
@spelled()
def density(
    x_true: ArrayLike,
    dist: Any = None,
    *,
    log_density: Callable[[FloatArray], Any] | None = None,
    sampler: Callable[[np.random.Generator], Any] | None = None,
    draws: int = 64,
    rng: Any = None,
) -> Density:
    """Check predictions by any density or discrete distribution, and their outcomes.

    The excess of a row is ``E[log f(X)] - log f(x)``: large when the outcome fell where the density is lower than at
    its own draws, negative when it fell nearer the peak than they do, 0 on average for a calibrated model. An outcome
    of density 0 has excess ``+inf``. The expectation is taken, in this order, by formula, by quadrature or summation,
    or over fresh draws for each row; the attribute ``method`` says which it was. Draws add a variance of
    ``varentropy / draws`` to each row, which `Summary.numerical_error` reports.

    Parameters
    ----------
    x_true : array-like of shape (n,) or (n, ...)
        What happened: one number a row, or an array a row for a distribution of several variables.
    dist : distribution, optional
        A frozen distribution of ``scipy.stats``, a new-style one such as ``scipy.stats.Normal``, or one of
        ``torch.distributions``. Either one for all rows, or, of one variable or of torch, with parameters of length n.
        Also any object of one variable with a log-density (``log_prob``, ``logpdf`` or ``log_pdf``) and quantiles
        (``icdf``, ``ppf`` or ``quantile``), as those of numpyro, TensorFlow Probability and skpro; what NGBoost's
        ``pred_dist`` and the ``get_prediction`` of statsmodels return.
    log_density : callable, optional
        ``log_density(x)`` returns a value for each row of ``x``, an array shaped like ``x_true``. A constant can be
        missing, another one in each row: the density need not be normalised. Surprisal, entropy and NLL are then
        absent.
    sampler : callable, optional
        ``sampler(rng)`` returns one fresh draw for each row, shaped like ``x_true``; to go with ``log_density``. It is
        called ``draws`` times. Draws shared by the rows would make their excesses dependent.
    draws : int, default 64
        Draws for each row, where draws are needed; at least 3. `Evaluation.forecast` looks at as many.
    rng : None, int or numpy.random.Generator, optional
        Where draws come from.

    Returns
    -------
    Predictions
        Call ``.evaluate()``, ``.ecd`` or ``.score()`` on it.

    See Also
    --------
    gaussian : Gaussian states, given by mean and covariance.
    categorical : Outcomes that are one of K classes.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> from scipy import stats
    >>> x_true = np.array([0.3, -2.9, 1.2])
    >>> predictions = safecal.density(x_true, stats.norm(loc=[0.0, -1.0, 1.0], scale=1.0))
    >>> predictions
    density predictions: 3 rows (formula)
    >>> round(predictions.ecd, 4)
    0.1233

    Only the shape of the density is known, and how to draw from it:

    >>> predictions = safecal.density(
    ...     x_true, log_density=lambda x: -np.abs(x), sampler=lambda rng: rng.laplace(size=3), draws=1000, rng=0
    ... )
    >>> predictions
    density predictions: 3 rows (draws: 1000)
    >>> round(predictions.ecd, 2), round(predictions.summary().numerical_error, 3)
    (0.46, 0.018)
    """
    x = outcomes(x_true)
    one_prediction(dist, log_density, sampler)
    count = whole_number(draws, "draws", 3)
    source = generator(rng)
    if log_density is not None and sampler is not None:
        return _from_pair(log_density, sampler, x, count, source)
    no_inference_data(dist, "dist")
    not_in_sample(dist, x)
    held = unwrapped(dist)
    return _from_law(offered_law(held, x) or adapt(held, x), x, count, source)
