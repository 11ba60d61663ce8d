"""The temperature the data ask for."""

from .._checks.columns import fraction
from .._checks.message import fail
from .._steady import steady
from .._types import ArrayLike
from ..errors import OptionError, UnavailableError
from ..families.predictions import Predictions
from ..tally import Tally
from .bounds import Bounds
from .results import Interval

__all__ = ["implied_temperature"]


@steady
def implied_temperature(
    source: Predictions | Tally,
    *,
    level: float = 0.95,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Estimate by how much a model is over-confident, on its own scale.

    The tempered model ``p**(1/T)``, normalised, fits the outcomes best at the implied temperature. Above 1 the model is
    over-confident: ``T = 1.7`` says that its logits are 1.7 times too large, or for a Gaussian that its covariance is
    1.7 times too small. Below 1 it is under-confident. ``inf`` says that its confidence carries no information, 0 that
    every outcome was the most likely one, NaN that every prediction is a coin toss or a certainty.

    Parameters
    ----------
    source : Predictions or Tally
        The rows; or, without them, all their sums.
    level : float, default 0.95
        Level of the interval.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.

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
        source = Tally.of(source, sample_weight=sample_weight, cluster=cluster)
    elif not isinstance(source, Tally):
        hint = "pass the predictions, or all their sums: `predictions.tally()`."
        raise fail(OptionError, "source", "must be predictions or a Tally", got=f"a {type(source).__name__}", hint=hint)
    elif cluster is not None or sample_weight is not None:
        hint = "give them to the tally: `predictions.tally(cluster=..., sample_weight=...)`."
        raise fail(OptionError, "source", "must be rows, not sums, for clusters or weights", hint=hint)
    bounds = Bounds(source)
    if bounds.law is None:
        raise UnavailableError("an unnormalised density has no temperature.")
    return bounds.temperature(level)
