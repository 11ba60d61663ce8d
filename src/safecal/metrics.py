"""Metrics shaped like those of scikit-learn: ``(y_true, y_prob, *, ...)`` to one float."""

from typing import Any

from ._checks.arrays import same_labels
from ._checks.columns import spelled, steady, weights
from ._sums.splits import Bins
from ._types import ArrayLike, BinOn, Labels, SideGiven, Strategy
from .families import classifier
from .families.gaussian import gaussian

__all__ = ["brier", "ecd", "ece", "esce", "nees", "nll"]


@steady
@spelled()
def ecd(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
) -> float:
    """Entropic calibration difference: how much more surprised the model was than it said it would be.

    ``ECD = mean(surprisal - entropy)`` in nats. Positive means over-confident, negative under-confident, 0 as
    surprised as announced. It has no upper bound, because a confident wrong answer costs as much as it was confident;
    it is never below -0.27846 for two classes. It does not depend on bins. A model that always says "one half" scores
    0, so read it beside `nll`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        What happened. For two classes 0 or 1, or any two labels with ``pos_label``; for more the column number, or one
        of ``labels``.
    y_prob : array-like of shape (n,) or (n, K)
        Probability of the positive class, or of each of K classes.
    logits : array-like of shape (n,) or (n, K)
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.

    Returns
    -------
    float
        Nats; ``+inf`` when an outcome of probability 0 happened.

    See Also
    --------
    evaluate : All metrics and the table of bins at once.
    nll : The proper score to read beside it.

    References
    ----------
    .. [1] D. J. Sumler, L. Devlin, S. Maskell, R. O. Lane, "An Entropic Metric for Measuring Calibration of Machine
       Learning Models", arXiv 2502.14545.

    Examples
    --------
    >>> import safecal
    >>> safecal.ecd([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.6])
    -0.2283...
    >>> safecal.ecd([1, 1, 0, 0], [0.9, 0.8, 0.3, 0.99])  # one confident mistake
    0.9494...
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
    return predictions.summary(sample_weight).ecd


@steady
@spelled()
def nll(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
) -> float:
    """Negative log-likelihood a row: the mean surprisal, ``mean(-log p(outcome))``, in nats.

    Smaller is better; 0 means always certain, and always right. A proper score: it rewards both calibration and
    sharpness. Unlike most implementations it never clips, so it is ``+inf`` when an outcome of probability 0 happened.

    Parameters
    ----------
    y_true, y_prob, logits, pos_label, labels, sample_weight, clip
        As for `ecd`.

    Returns
    -------
    float
        Nats.

    See Also
    --------
    ecd : The part of it that the model did not announce.

    Examples
    --------
    >>> import safecal
    >>> safecal.nll([1, 0], [0.8, 0.4])
    0.3669...
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
    return predictions.summary(sample_weight).nll


@steady
@spelled()
def brier(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
) -> float:
    """Brier score: the mean squared distance between probabilities and outcome.

    Smaller is better. For two classes it is ``mean((p - y)**2)``, between 0 and 1; for more it is summed over the
    classes, between 0 and 2.

    Parameters
    ----------
    y_true, y_prob, logits, pos_label, labels, sample_weight, clip
        As for `ecd`.

    Returns
    -------
    float
        The score.

    See Also
    --------
    nll : The other proper score.

    Examples
    --------
    >>> import safecal
    >>> round(safecal.brier([1, 0], [0.8, 0.4]), 12)
    0.1
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
    return predictions.summary(sample_weight).brier


@steady
@spelled()
def ece(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
    bins: int | Bins = 10,
    strategy: Strategy = "uniform",
    bin_on: BinOn | None = None,
    side: SideGiven | None = None,
) -> float:
    """Expected calibration error: the mean absolute gap between predicted and observed, by bin.

    Between 0, best, and 1. It depends on the bins, and it averages inside them: one wild mistake hardly moves it.

    For two classes it compares the probability of the positive class with the share of positives; with
    ``bin_on="confidence"``, and always for more classes, the confidence in the most likely class with its accuracy.

    Parameters
    ----------
    y_true, y_prob, logits, pos_label, labels, sample_weight, clip
        As for `ecd`.
    bins : int or Bins, default 10
        How many bins, or the bins themselves: ``[a, b)``, the last one closed.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    bin_on : {"probability", "confidence", "entropy"}, optional
        The number that rows are binned on.
    side : {"over-confident", "under-confident"}, optional
        Only the part from bins on that side; the two parts add up to the whole.

    Returns
    -------
    float
        The error.

    See Also
    --------
    esce : With signs.
    ecd : Without bins.

    Examples
    --------
    >>> import safecal
    >>> round(safecal.ece([1, 1, 1, 1], [0.6, 0.6, 0.6, 0.6]), 12)
    0.4
    >>> safecal.ece([1, 1, 1, 1], [0.6, 0.6, 0.6, 0.6], side="over-confident")
    0.0
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
    return predictions.table(bins, strategy=strategy, bin_on=bin_on, sample_weight=sample_weight).ece(side)


@steady
@spelled()
def esce(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
    bins: int | Bins = 10,
    strategy: Strategy = "uniform",
    bin_on: BinOn | None = None,
) -> float:
    """Expected signed calibration error: the mean gap, observed minus predicted.

    Positive when the class happens more often than predicted. Bins of opposite sign cancel, so 0 does not mean
    calibrated; whatever the bins, it is the mean of observed minus predicted over all rows.

    Parameters
    ----------
    y_true, y_prob, logits, pos_label, labels, sample_weight, clip
        As for `ecd`.
    bins, strategy, bin_on
        As for `ece`.

    Returns
    -------
    float
        Between -1 and 1.

    See Also
    --------
    ece : Without cancellation.

    Examples
    --------
    >>> import safecal
    >>> round(safecal.esce([1, 1, 1, 1], [0.6, 0.6, 0.6, 0.6]), 12)
    0.4
    """
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
    return predictions.table(bins, strategy=strategy, bin_on=bin_on, sample_weight=sample_weight).esce()


@steady
@spelled()
def nees(
    x_true: ArrayLike,
    mean: ArrayLike,
    *,
    std: ArrayLike | None = None,
    var: ArrayLike | None = None,
    cov: ArrayLike | None = None,
    chol: ArrayLike | None = None,
    precision: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean normalised estimation error squared: ``mean((x - m)^T C^-1 (x - m))``.

    About d, the dimension of the state, for a consistent estimator. Larger means over-confident: errors exceed the
    covariance. Smaller means under-confident. ``ECD = (NEES - d) / 2``.

    Parameters
    ----------
    x_true : array-like of shape (n,) or (n, d)
        The true states.
    mean : array-like, of the shape of x_true
        The estimates.
    std, var, cov, chol, precision
        The uncertainty, in exactly one form, as for `gaussian`.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.

    Returns
    -------
    float
        The mean.

    See Also
    --------
    gaussian : The same predictions, for ECD and everything else.

    Examples
    --------
    >>> import safecal
    >>> safecal.nees([1.0, -2.0], [0.0, 0.0], std=1.0)
    2.5
    """
    predictions = gaussian(x_true, mean, std=std, var=var, cov=cov, chol=chol, precision=precision)
    same_labels(predictions.row_labels, sample_weight=sample_weight)
    return predictions.mean_nees(weights(sample_weight, predictions.n, "x_true"))
