"""The temperature the data ask for."""

from typing import Any

from .._checks.classes import refuse_arrays
from .._checks.columns import fraction, spelled
from .._checks.message import fail
from .._checks.rows import same_labels
from .._steady import steady
from .._sums.tally import Tally
from .._types import ArrayLike, Labels
from ..errors import OptionError, UnavailableError
from ..families.classifier import predictions_of
from ..families.predictions import Predictions
from .bounds import Bounds
from .results import Interval

__all__ = ["implied_temperature"]


@steady
@spelled()
def implied_temperature(
    y_true: Predictions | Tally | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
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
    y_true : array-like of shape (n,), Predictions or Tally
        What happened, with a prediction beside it, as in `evaluate`; or predictions of any family; or all their sums.
    y_prob : array-like of shape (n,) or (n, K), optional
        Probability of the positive class, or of each of K classes; with arrays alone, as are the next four.
    logits : array-like of shape (n,) or (n, K), optional
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
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
    >>> t = safecal.implied_temperature(y_true, logits=1.7 * log_odds)
    >>> t.low < 1.7 < t.high
    True
    """
    fraction(level, "level")
    if isinstance(y_true, Tally):
        refuse_arrays("sums", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        if cluster is not None or sample_weight is not None:
            hint = "give them to the tally: `predictions.tally(cluster=..., sample_weight=...)`."
            raise fail(OptionError, "y_true", "must be rows, not sums, for clusters or weights", hint=hint)
        tally = y_true
    else:
        predictions = predictions_of(
            y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, also=", a Tally"
        )
        same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster)
        tally = Tally.of(predictions, sample_weight=sample_weight, cluster=cluster)
    bounds = Bounds(tally)
    if bounds.law is None:
        raise UnavailableError("an unnormalised density has no temperature.")
    return bounds.temperature(level)
