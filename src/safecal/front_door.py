"""The front door: from what a caller has to everything about it."""

import math
from typing import Any, NamedTuple

import numpy as np

from ._types import AnyArray, ArrayLike, Labels
from .bins import Bins
from .evaluation import Evaluation
from .families.classifier import classifier
from .families.predictions import Predictions
from .histogram import Histogram
from .inference.calibration import generator
from .limits import Limits
from .plan import Plan
from .reliability import assess_reliability
from .summary import Summary
from .table import Table
from .tabulate import by_bin, by_group, sweep
from .tally import Tally

__all__ = ["Gathered", "evaluate", "evaluate_predictions", "gather", "most_entropy"]


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    bins: int | Bins | None = 10,
    bin_on: str | None = None,
    strategy: str = "uniform",
    by: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    clip: float | None = None,
    threshold: float = 0.1,
    max_temperature: float = 1.5,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> Evaluation:
    """Evaluate a classifier: is it safe, every metric, the table of bins, groups.

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
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
    threshold : float, default 0.1
        Largest ECD that is safe, in nats.
    max_temperature : float, default 1.5
        Largest temperature that is safe: logits at most 1.5 times too large.
    level : float, default 0.95
        Level of the confidence intervals that the verdict rests on.
    rng : numpy.random.Generator or int, optional
        For tails that are drawn. By default the same data give the same answer.

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
    safecal evaluation: 6 rows, bernoulli
    <BLANKLINE>
    UNDETERMINED: the data cannot tell at 95 % confidence: ECD lies between -0.278
    and 1.83 nat, and 0.1 is allowed.
    <BLANKLINE>
    ECD          -0.0040  nat, 95 % interval -0.2785 to +1.8325: no clear direction
    temperature   0.9857  95 % interval 0.3104 to +inf; 1 is calibrated
    p-value         0.96  of calibration, exact test
    NLL           0.4851  nat, smaller is better; the model expected 0.4891
    ECE           0.0500  over-confident part 0.0000, under-confident 0.0500
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
    predictions = classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
    return evaluate_predictions(
        predictions,
        bins=bins,
        bin_on=bin_on,
        strategy=strategy,
        by=by,
        cluster=cluster,
        sample_weight=sample_weight,
        threshold=threshold,
        max_temperature=max_temperature,
        level=level,
        rng=rng,
    )


def evaluate_predictions(
    predictions: Predictions,
    *,
    bins: int | Bins | str | None = "auto",
    bin_on: str | None = None,
    strategy: str = "uniform",
    by: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.1,
    max_temperature: float = 1.5,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> Evaluation:
    """Evaluate predictions of any family; ``"auto"`` is ten bins for classifiers, none for states and densities."""
    limits = Limits(threshold, max_temperature, level)
    plan = Plan.of(predictions, bins, bin_on, strategy)
    tally = Tally.of(predictions, plan, sample_weight=sample_weight, by=by, cluster=cluster)
    source = generator(rng)
    reliability = None
    if plan.bins is not None and predictions.binned_by_default and (tally.weighted or tally.points is None):
        reliability = assess_reliability(
            predictions, bins=plan.bins, bin_on=plan.bin_on, sample_weight=sample_weight, rng=source
        )
    return Evaluation.of(tally, limits, reliability=reliability)


def most_entropy(predictions: Predictions) -> float:
    """Return the entropy of a prediction that says nothing; infinite for states and densities."""
    return predictions.bin_range("entropy")[1] if predictions.binned_by_default else math.inf


class Gathered(NamedTuple):
    """All that one pass over the rows gives an evaluation."""

    summary: Summary
    bins: Table | None
    groups: Table | None
    histogram: Histogram
    n_certain: int


def gather(
    predictions: Predictions, weight: AnyArray | None, edges: tuple[Bins, str] | None, by: ArrayLike | None
) -> Gathered:
    """Sum the rows: all, by bin and by group; see how the excess is spread, and how many predictions are certain."""
    splits = [] if edges is None else [by_bin(predictions, *edges)]
    if by is not None:
        splits.append(by_group(predictions, by))
    summary, tables, spread = sweep(predictions, splits, weight, spread=True)
    histogram = Histogram(tuple(map(float, spread.cells[:, 0])), tuple(map(float, spread.cells[:, 1])))
    return Gathered(
        summary,
        None if edges is None else tables[0],
        None if by is None else tables[-1],
        histogram,
        spread.certain,
    )
