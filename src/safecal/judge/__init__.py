"""From sums to a verdict: limits, places, the decision and why; evaluations, and one beside another.

Here is the front door: from the outcomes and probabilities that a caller has to everything about them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._checks import fail, show
from .._checks.columns import spelled, steady
from .._sums.splits import Bins
from .._types import ArrayLike, BinOn, By, Labels, Rule, Strategy
from ..errors import FormError, OptionError
from ..families import Predictions, classifier
from ..families.bernoulli import Labelled
from .evaluation import Evaluation, evaluate_predictions

__all__ = ["evaluate"]


@steady
@spelled()
def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    by_label: bool = False,
    bins: int | Bins | None = 10,
    bin_on: BinOn | None = None,
    strategy: Strategy = "uniform",
    by: By | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    features: Any = None,
    clip: float | None = None,
    threshold: float = 0.1,
    max_temperature: float = 1.5,
    max_ratio: float = 3.0,
    local_threshold: float = 0.2,
    min_share: float = 0.05,
    level: float = 0.95,
    rule: Rule = "everywhere",
    rng: np.random.Generator | int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Evaluation:
    """Evaluate a classifier: whether it is safe, every metric, the table of bins, and groups.

    Parameters
    ----------
    y_true : array-like of shape (n,), or (n, L) with ``by_label``
        What happened. For two classes 0 or 1, or any two labels with ``pos_label``; for more the column number, or one
        of ``labels``. Numbers that seem to be counted from 1 are refused; ``labels=range(K)`` says that they are not.
    y_prob : array-like of shape (n,) or (n, K)
        Probability of the positive class, or of each of K classes.
    logits : array-like of shape (n,) or (n, K)
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    by_label : bool, default False
        Rows have several labels at once, or none: ``y_true`` and the prediction are matrices of L columns, 0 or 1 and
        the probability of that label. Every label of every row is then a prediction of its own, of two outcomes, so
        that ``n`` is rows times labels and the averages are over both. Each label is a group, with a verdict of its
        own in ``groups``; the labels of one row depend on each other, so that each row is a cluster unless ``cluster``
        joins several. Whether labels occur together as often as predicted is not looked at.
    bins : int, Bins or None, default 10
        The bins of the table; None for no table. Bins move ECE; they never move ECD.
    bin_on : {"probability", "confidence", "entropy"}, optional
        What rows are binned on: by default the probability of the positive class for two classes, the confidence in
        the most likely class for more.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of about equally many rows.
    by : array-like of shape (n,), or mapping of names to such, optional
        Evaluate each group by itself, too. Missing values form a group of their own.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a patient, a track, a day. Tests and intervals then compare
        clusters.
    sample_weight : array-like of shape (n,), optional
        Weight of each row in the means.
    features : DataFrame, Table, relation, or mapping of names to columns, optional
        What is known of each row. The slices for which the model is over-confident are looked for, as by `find_slices`,
        and judged.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default, and at most ``0.02 / (K - 1)`` for K classes,
        because a larger one makes another, vaguer model. A note beside the result says so.
    threshold : float, default 0.1
        Largest ECD that is safe on average and in a group, in nats a dimension: two nats of varentropy, at least one,
        so 0.1 nat for two classes.
    max_temperature : float, default 1.5
        Largest temperature that is safe: logits at most 1.5 times too large.
    max_ratio : float, default 3.0
        Largest ratio of mistakes made to mistakes announced that is safe.
    local_threshold : float, default 0.2
        Largest ECD that is safe in a range of the predictions, in nats a dimension.
    min_share : float, default 0.05
        Smallest share of the rows that a range holds. The surest rows may be fewer: a hundredth of it, and 20 rows.
    level : float, default 0.95
        Level of the confidence intervals that the verdict rests on.
    rule : {"everywhere", "average"}, default "everywhere"
        ``"average"`` judges the ECD and the temperature of all rows together, and looks at no place.
    rng : numpy.random.Generator or int, optional
        For tails that are drawn, and for the halves of slices. By default the same data give the same answer.
    progress : callable, optional
        Is called with the share of the search for slices that is done.

    Returns
    -------
    Evaluation
        Print it for the verdict and the table.

    See Also
    --------
    gaussian : State estimates; call ``.evaluate()`` on the result.
    density : Any distribution with a log-density; call ``.evaluate()`` on the result.

    Examples
    --------
    >>> import safecal
    >>> safecal.evaluate([0, 1, 1, 0, 1, 0], [0.1, 0.7, 0.9, 0.8, 0.6, 0.2], bins=2)
    safecal evaluation: 6 rows, two classes
    <BLANKLINE>
    UNDETERMINED: the data cannot tell at 95 % confidence: ECD lies between -0.278
    and 1.83, and 0.1 nat is allowed.
    <BLANKLINE>
    ECD          -0.0040  nat, 95 % interval -0.2785 to +1.8325: no clear direction
    temperature   0.9857  95 % interval 0.31... to +inf; 1 is calibrated
    mistakes           1  for 1.3 announced: 0.769 times, 0.0195 to 4.29 at 95 %
    p-value         0.96  of calibration, exact test
    shift        -0.3615  95 % interval -3.51... to +1.80...; 0 is calibrated
    slope         1.1028  95 % interval -0.19... to 4.14...; 1 is calibrated
    NLL           0.4851  nat, smaller is better; the model expected 0.4891
    ECE           0.0500  (positive class) over-confident part 0.0000, under 0.0500
    by chance     0.1728  ECE if calibrated; 95 % of the time at most 0.3833
    ESCE         -0.0500  observed minus predicted
    Brier         0.1583  smaller is better
    accuracy      0.8333  at a mean confidence of 0.7833
    <BLANKLINE>
    probability   rows  predicted  observed     ECE     ESCE      ECD
    -----------------------------------------------------------------
    [0, 0.5)         2     0.1500    0.0000  0.1500  -0.1500  -0.2485
    [0.5, 1]         4     0.7500    0.7500  0.0000   0.0000  +0.1182
    -----------------------------------------------------------------
    weighted sum     6     0.5500    0.5000  0.0500  -0.0500  -0.0040
    """
    if isinstance(y_true, Predictions):
        hint = "call `.evaluate()` on them."
        raise fail(FormError, "y_true", "must be an array of what happened", got="predictions", hint=hint)
    predictions: Predictions
    if by_label:
        if pos_label is not None:
            words = "belongs to one column; with `by_label` the positive outcome is 1"
            raise fail(OptionError, "pos_label", words, got=show(pos_label), hint="pass `y_true == pos_label`.")
        labelled = Labelled.of(y_true, y_prob, logits=logits, labels=labels, clip=clip)
        if features is not None:
            hint = "evaluate the column of one label, with `features`."
            raise fail(OptionError, "features", "cannot be searched with `by_label`", hint=hint)
        predictions, (by, cluster, sample_weight) = labelled.predictions, labelled.beside(by, cluster, sample_weight)
    else:
        predictions = classifier(
            y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True
        )
    return evaluate_predictions(
        predictions, bins=bins, bin_on=bin_on, strategy=strategy, by=by, cluster=cluster, sample_weight=sample_weight,
        features=features, rng=rng, progress=progress, threshold=threshold, max_temperature=max_temperature,
        max_ratio=max_ratio, local_threshold=local_threshold, min_share=min_share, level=level, rule=rule,
    )  # fmt: skip
