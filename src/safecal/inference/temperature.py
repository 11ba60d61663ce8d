"""The temperature the data ask for."""

import math

import numpy as np
from scipy import interpolate, optimize, special

from .._checks.columns import clusters, fraction, weights
from .._checks.message import fail
from .._types import ArrayLike
from ..errors import OptionError
from ..families.predictions import Predictions
from ..profile import Profile
from ..summary import Summary
from .calibration import generator
from .evidence import evidence
from .intervals import bounds_from_sums, inverse
from .results import Interval
from .tempered import tempered

__all__ = ["implied_temperature"]


def implied_temperature(
    source: Predictions | Profile | Summary,
    *,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    """Estimate by how much a model is over-confident, on its own scale.

    The tempered model ``p**(1/T)``, normalised, fits the outcomes best at the implied temperature. Above 1 the model is
    over-confident: ``T = 1.7`` says that its logits are 1.7 times too large, or for a Gaussian that its covariance is
    1.7 times too small. Below 1 it is under-confident. ``inf`` says that its confidence carries no information, 0 that
    every outcome was the most likely one, NaN that every prediction is a coin toss or a certainty.

    Parameters
    ----------
    source : Predictions, Profile or Summary
        The rows; or, without them, sums: a `Profile` gives the profile likelihood, a `Summary` one step towards it.
    level : float, default 0.95
        Level of the interval.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    rng : numpy.random.Generator or int, optional
        Where few surprises are expected, tails are drawn. By default the same data give the same answer.

    Returns
    -------
    Interval
        The temperature, its interval, and the method.

    See Also
    --------
    calibration_test : Whether it differs from 1.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 2000)
    >>> y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
    >>> t = safecal.implied_temperature(safecal.bernoulli(y_true, logits=1.7 * log_odds))
    >>> t.low < 1.7 < t.high
    True
    """
    fraction(level, "level")
    if isinstance(source, Predictions):
        weight = weights(sample_weight, source.n, source.outcome)
        groups = None if cluster is None else clusters(cluster, source.n, source.outcome)
        found = evidence(tempered(source, weight), generator(rng), groups)
        alpha = (1.0 - level) / 2.0
        value, low, high = (inverse(b) for b in (found.beta, found.high.at(alpha), found.low.at(alpha)))
        return Interval(value, low, high, level, found.method)
    if cluster is not None or sample_weight is not None:
        hint = "pass the predictions themselves."
        raise fail(OptionError, "source", "must be rows, not sums, for clusters or weights", hint=hint)
    return bounds_from_sums(source).temperature(level) if isinstance(source, Summary) else _from_profile(source, level)


def _from_profile(profile: Profile, level: float) -> Interval:
    """Return the profile-likelihood interval on the grid of a Profile, by its values and slopes."""
    x = np.log(profile.betas)
    likelihood = interpolate.CubicHermiteSpline(
        x, profile.log_likelihood, -np.array(profile.betas) * (profile.sum_surprisal + np.array(profile.sum_slope))
    )
    slope = likelihood.derivative()(x)
    method = "profile likelihood"
    if not np.ptp(profile.log_likelihood) > 1e-12 * np.abs(profile.log_likelihood).max():
        return Interval(math.nan, math.nan, math.nan, level, method)
    if slope[0] <= 0.0 or slope[-1] >= 0.0:
        best = float(x[0] if slope[0] <= 0.0 else x[-1])
        value = math.inf if slope[0] <= 0.0 else 0.0
    else:
        best = float(optimize.brentq(likelihood.derivative(), x[0], x[-1]))
        value = math.exp(-best)
    cut = float(likelihood(best)) - float(special.chdtri(1, 1.0 - level)) / 2.0

    def end(edge: float, beyond: float) -> float:
        if float(likelihood(edge)) > cut:
            return beyond
        return math.exp(-optimize.brentq(lambda b: float(likelihood(b)) - cut, *sorted((edge, best))))

    return Interval(value, end(float(x[-1]), 0.0), end(float(x[0]), math.inf), level, method)
