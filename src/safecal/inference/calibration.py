"""Would a calibrated model have been this surprised, and at which temperature is one: the test, and the estimate."""

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from .._checks import fail
from .._checks.arrays import same_labels
from .._checks.classes import refuse_arrays
from .._checks.columns import choice, fraction, one_cluster, one_side, spelled, steady, weights
from .._sums import Tally
from .._sums.summary import Summary
from .._types import Alternative, AlternativeGiven, AnyArray, ArrayLike, FloatArray, Labels, TestMethod
from ..errors import OptionError, UnavailableError
from ..families import Predictions, family_named, predictions_of
from . import Interval, TestResult
from .bounds import Bounds, law_of
from .clustered import ALIKE, ClusteredLaw, clusters_at_one
from .lattice import exact_tails
from .law import Law, Tails, normal, pearson3
from .nodes import NodesLaw
from .points import PointsLaw, count_text
from .tails import draw_surprises, expected_surprises, observed_surprises, saddlepoint_tails, surprise_rates

__all__ = ["calibration_test", "implied_temperature", "tally_test"]

ALTERNATIVES: tuple[Alternative, ...] = ("over-confident", "under-confident", "two-sided")
METHODS = get_args(TestMethod)
ENOUGH = 10.0  # expected surprises above which the law is smooth enough for a saddlepoint
DRAWS = 19_999
_AS_ASKED = "as asked"  # why a method was used


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a generator; None gives the same one every time, so that the same data give the same answer."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(0 if rng is None else rng)


@steady
@spelled()
def calibration_test(
    y_true: Predictions | Summary | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    alternative: AlternativeGiven = "two-sided",
    method: TestMethod = "auto",
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> TestResult:
    """Test whether a calibrated model would have been as surprised as this one was.

    If the model is calibrated, the excess of every row has mean 0 and a variance, the varentropy, that the prediction
    itself gives. The p-value is the probability of a summed excess at least as far out. It is a test of calibration,
    not of ``ECD <= 0``: regions that cancel in the mean still widen its spread.

    Parameters
    ----------
    y_true : array-like of shape (n,), Predictions or Summary
        What happened, with a prediction beside it, as in `evaluate`; or predictions of any family; or sums alone, for
        which ``"pearson3"`` and ``"normal"`` are available.
    y_prob : array-like of shape (n,) or (n, K), optional
        Probability of the positive class, or of each of K classes. This and the next four are for arrays only.
    logits : array-like of shape (n,) or (n, K), optional
        Log-odds, or unnormalised log-probabilities, instead of ``y_prob``.
    pos_label : object, optional
        The label of the positive class, for shape (n,).
    labels : sequence of K hashables, optional
        The names of the columns in their order, for shape (n, K).
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
    alternative : {"two-sided", "over-confident", "under-confident"}
        What counts as extreme.
    method : {"auto", "exact", "saddlepoint", "pearson3", "normal", "montecarlo", "cluster"}
        ``"exact"`` lists the values of the sum; ``"saddlepoint"`` is right to the third digit when at least ten rows
        are expected to surprise; ``"montecarlo"`` draws outcomes from the model; ``"pearson3"`` and ``"normal"`` need
        the sums alone; ``"cluster"`` is a t-test on the sums of clusters. ``"auto"`` takes the first that applies of:
        cluster when ``cluster`` is given, exact, a convolution (two classes) or Monte Carlo (more) where few surprises
        are expected, saddlepoint, Pearson III.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other share a cluster: a track, a patient, a day.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    rng : numpy.random.Generator or int, optional
        For Monte Carlo. By default the same data give the same answer.

    Returns
    -------
    TestResult
        Statistic, p-value, the method and why it was chosen.

    See Also
    --------
    evaluate : The test beside everything else.

    Examples
    --------
    >>> import numpy as np
    >>> import safecal
    >>> rng = np.random.default_rng(1)
    >>> log_odds = rng.normal(0, 2, 500)
    >>> y_true = rng.random(500) < 1 / (1 + np.exp(-log_odds))
    >>> good = safecal.calibration_test(y_true, logits=log_odds)
    >>> bad = safecal.calibration_test(safecal.bernoulli(y_true, logits=2 * log_odds))
    >>> good.p_value > 0.05, bad.p_value < 1e-6, bad.method
    (True, True, 'saddlepoint')
    """
    side = one_side(alternative, "alternative", ALTERNATIVES)
    choice(method, "method", METHODS)
    if isinstance(y_true, Summary):
        refuse_arrays("sums", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return _test_sums(y_true, side, method, cluster, sample_weight)
    predictions = predictions_of(
        y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, also=", a Summary"
    )
    same_labels(predictions.row_labels, sample_weight=sample_weight, cluster=cluster)
    weight = weights(sample_weight, predictions.n, predictions.outcome)
    if cluster is not None or method == "cluster":
        return _test_clusters(predictions, side, method, cluster, weight)
    if method in ("normal", "pearson3"):
        return _test_sums(predictions.summary(sample_weight), side, method, None, None)
    tally = Tally.of_checked(predictions, None, weight, None, None)
    known = decided(tally.summary, side)
    if known is not None:
        return known
    both_tails, used, reason = _tails_of_rows(predictions, tally, method, weight, generator(rng))
    return TestResult(statistic(tally.summary), p_value(both_tails, side), side, used, reason, tally.n)


def statistic(s: Summary) -> float:
    if s.weight_impossible > 0.0:
        return math.inf
    variance = s.sum_varentropy_weight2 + s.sum_numerical_variance_weight2
    return s.sum_excess / math.sqrt(variance) if variance > 0.0 else 0.0


def p_value(both_tails: tuple[float, float], alternative: Alternative) -> float:
    over, under = both_tails
    if alternative == "two-sided":
        return min(1.0, 2.0 * min(over, under))
    return over if alternative == "over-confident" else under


def decided(s: Summary, alternative: Alternative) -> TestResult | None:
    """Return the result where there is nothing to compute."""
    if s.weight_impossible > 0.0:
        reason = "an outcome of probability 0 happened: no calibrated model does that"
        return TestResult(math.inf, p_value((0.0, 1.0), alternative), alternative, "exact", reason, s.n)
    if s.sum_varentropy_weight2 == 0.0:
        reason = "every prediction is a coin toss or a certainty: the excess is 0 whatever happens"
        return TestResult(0.0, 1.0, alternative, "exact", reason, s.n)
    return None


def _test_sums(
    s: Summary, alternative: Alternative, method: TestMethod, cluster: ArrayLike | None, sample_weight: ArrayLike | None
) -> TestResult:
    if cluster is not None or sample_weight is not None or method not in ("auto", "pearson3", "normal"):
        hint = (
            "pass the predictions themselves: `bernoulli(...)`, `categorical(...)`, `gaussian(...)` or `density(...)`."
        )
        raise fail(OptionError, "y_true", "must be rows, not sums, for this test", got="a Summary", hint=hint)
    known = decided(s, alternative)
    if known is not None:
        return known
    z = statistic(s)
    if method == "normal":
        return TestResult(z, p_value(normal(z), alternative), alternative, "normal", _AS_ASKED, s.n)
    variance = s.sum_varentropy_weight2 + s.sum_numerical_variance_weight2
    both_tails = pearson3(s.sum_excess, variance, s.sum_third_cumulant_weight3)
    reason = "from sums alone" if method == "auto" else _AS_ASKED
    return TestResult(z, p_value(both_tails, alternative), alternative, "pearson3", reason, s.n)


def _test_clusters(
    predictions: Predictions,
    alternative: Alternative,
    method: TestMethod,
    cluster: ArrayLike | None,
    weight: AnyArray | None,
) -> TestResult:
    if cluster is None or method not in ("auto", "cluster"):
        raise fail(
            OptionError, "method", 'must be "cluster" exactly when `cluster` is given',
            got=f"{method!r} {'with' if cluster is not None else 'without'} `cluster`",
        )  # fmt: skip
    return cluster_test(Tally.of_checked(predictions, None, weight, None, cluster), alternative)


def cluster_test(tally: Tally, alternative: Alternative) -> TestResult:
    """Test the sums of clusters."""
    clusters = tally.clusters
    assert clusters is not None
    size = len(clusters)
    if size < 2:
        raise one_cluster(size)
    reason = f"rows of one cluster depend on each other: a t-test on the sums of {size} clusters"
    if tally.summary.weight_impossible > 0.0:
        return TestResult(math.inf, p_value((0.0, 1.0), alternative), alternative, "cluster", reason, size)
    law = law_of(tally)
    rarity = law.rarity(1.0) if isinstance(law, ClusteredLaw) else ALIKE
    t, upper, lower = (float(x[0]) for x in clusters_at_one(clusters).tails(rarity))
    return TestResult(t, p_value((upper, lower), alternative), alternative, "cluster", reason, size)


TailsAndWhy = tuple[tuple[float, float], str, str]  # both tails, the method used and why


def _tails_of_rows(
    predictions: Predictions, tally: Tally, method: TestMethod, weight: AnyArray | None, rng: np.random.Generator
) -> TailsAndWhy:
    """Return both tails, by the method that is asked for or the first that applies."""
    law = law_of(tally)
    if isinstance(law, PointsLaw) and method == "auto":
        return law.tested()
    if isinstance(law, PointsLaw) and method == "saddlepoint":
        return law.smooth(1.0), method, _AS_ASKED
    rates = surprise_rates(predictions) if predictions.discrete else None
    observed = observed_surprises(predictions, weight) if predictions.discrete else math.nan
    if method in ("auto", "exact"):
        exact = _exact_tails_of_rows(predictions, tally.summary, weight, observed)
        if exact is not None:
            return exact[0], "exact", _AS_ASKED if method == "exact" else exact[1]
        if method == "exact":
            hint = '`method="auto"` chooses among the others.'
            raise fail(OptionError, "method", 'cannot be "exact" here: the sum has too many values to list', hint=hint)
    expected = expected_surprises(rates) if rates is not None else math.inf
    if method == "saddlepoint" or (method == "auto" and expected >= ENOUGH):
        return _smooth_tails_of_rows(predictions, tally.summary, method, weight, rates, observed)
    if rates is None:
        raise fail(OptionError, "method", 'cannot be "montecarlo" for these predictions', hint="leave `method` out.")
    drawn = draw_surprises(predictions, rates, weight, DRAWS, rng)
    slack = 1e-9 * max(1.0, abs(observed))
    upper = (1 + int((drawn >= observed - slack).sum())) / (DRAWS + 1)
    lower = (1 + int((drawn <= observed + slack).sum())) / (DRAWS + 1)
    reason = f"the model announces {count_text(expected)} mistakes, too few for a smooth law"
    return (upper, lower), "montecarlo", _AS_ASKED if method == "montecarlo" else reason


def _exact_tails_of_rows(
    predictions: Predictions, s: Summary, weight: AnyArray | None, observed: float
) -> tuple[tuple[float, float], str] | None:
    """Return both tails and why they are exact; None where they cannot be."""
    if predictions.discrete:
        both_tails = exact_tails(predictions, weight, observed)
        return None if both_tails is None else (both_tails, "the sum can take few values, and all of them are listed")
    if predictions.chi_square and weight is None:
        both_tails = pearson3(s.sum_excess, s.sum_varentropy_weight2, s.sum_third_cumulant_weight3)
        return both_tails, "a sum of Gaussians is a chi-square"
    return None


def _smooth_tails_of_rows(
    predictions: Predictions,
    s: Summary,
    method: TestMethod,
    weight: AnyArray | None,
    rates: FloatArray | None,
    observed: float,
) -> TailsAndWhy:
    """Return saddlepoint tails; those of Pearson III where there is no log-partition function, or no saddlepoint."""
    try:
        both_tails = saddlepoint_tails(predictions, weight, s.sum_excess + (s.sum_entropy or 0.0))
    except UnavailableError:
        if method == "saddlepoint":
            raise
        variance = s.sum_varentropy_weight2 + s.sum_numerical_variance_weight2
        both_tails = pearson3(s.sum_excess, variance, s.sum_third_cumulant_weight3)
        return both_tails, "pearson3", "the log-partition function is not available"
    if both_tails is None and rates is not None:  # the edge of the support: every outcome likeliest, or unlikeliest
        both_tails = (1.0, float(np.exp(-rates.sum()))) if observed == 0.0 else (0.0, 1.0)
    if both_tails is None:
        both_tails = pearson3(s.sum_excess, s.sum_varentropy_weight2, s.sum_third_cumulant_weight3)
        return both_tails, "pearson3", "the sum is the smallest or the largest possible one"
    reason = "the law is smooth"
    if rates is not None:
        reason = f"the model announces {count_text(expected_surprises(rates))} mistakes, enough for a smooth law"
    return both_tails, "saddlepoint", _AS_ASKED if method == "saddlepoint" else reason


def tally_test(tally: Tally, law: Law | None) -> TestResult:
    """Test calibration on both sides, by the first method that applies."""
    s = tally.summary
    if tally.clusters is not None:
        return cluster_test(tally, "two-sided")
    known = decided(s, "two-sided")
    if known is not None:
        return known
    both_tails, method, reason = _tails_of_tally(tally, law)
    if both_tails is None:
        return replace(calibration_test(s), reason=reason)
    return TestResult(statistic(s), p_value(both_tails, "two-sided"), "two-sided", method, reason, s.n)


def _tails_of_tally(tally: Tally, law: Law | None) -> tuple[Tails | None, str, str]:
    if isinstance(law, PointsLaw):
        return law.tested()
    if family_named(tally.family).chi_square and not tally.weighted and law is not None:
        return law.tails(1.0), "exact", "a sum of Gaussians is a chi-square"
    if isinstance(law, NodesLaw) and not tally.weighted and math.isfinite(law.beta):
        return law.tails(1.0), "saddlepoint", "from the log-partition at five temperatures"
    if isinstance(law, NodesLaw) and not tally.weighted and law.unsurprised:
        return law.tails(1.0), "exact", "every outcome was the likeliest one"
    return None, "pearson3", "with weights, only the sums are known" if tally.weighted else "from sums alone"


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
        Probability of the positive class, or of each of K classes. This and the next four are for arrays only.
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
