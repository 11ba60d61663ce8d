"""Checks for tests: that a model is safe, and that a family obeys the laws everything else is built on."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Unpack

import numpy as np

from ._checks.columns import spelled
from ._sums.scored import Scored, summed
from ._sums.summary import Summary, summaries
from ._types import ArrayLike, Labels
from .errors import UnavailableError
from .families import Predictions, predictions_of
from .judge.evaluation import evaluate_predictions
from .judge.verdict import SAFE
from .options import EvaluateOptions

__all__ = ["assert_family_laws", "assert_safe"]


@spelled(EvaluateOptions)
def assert_safe(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    **options: Unpack[EvaluateOptions],
) -> None:
    """Fail unless a model is shown to be safe; for the tests of a model.

    UNDETERMINED fails, too: then the data do not show that the model is safe.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Predictions
        What happened, with a prediction beside it; or predictions of any family.
    y_prob, logits, pos_label, labels, clip
        As in `safecal.evaluate`; with arrays alone.
    **options
        As in `safecal.evaluate`: ``by``, ``cluster``, ``threshold``, ``max_temperature``, ``level`` and the others.

    Raises
    ------
    AssertionError
        With the decision and its reason as its message.

    See Also
    --------
    safecal.evaluate : The verdict beside everything else.

    Examples
    --------
    >>> import numpy as np
    >>> from safecal.testing import assert_safe
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(0, 2, 2000)
    >>> y_true = rng.random(2000) < 1 / (1 + np.exp(-log_odds))
    >>> assert_safe(y_true, logits=log_odds)
    >>> assert_safe(y_true, logits=3 * log_odds)
    Traceback (most recent call last):
    AssertionError: UNSAFE: the model is over-confident: ECD is at least ...
    """
    __tracebackhide__ = True  # pytest then points at the line of the test
    predictions = predictions_of(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
    verdict = evaluate_predictions(predictions, **options).verdict
    if verdict.decision != SAFE:
        raise AssertionError(str(verdict))


def assert_family_laws(predictions: Predictions, *, outcomes: Sequence[Predictions] = (), rtol: float = 1e-9) -> None:
    """Check that predictions obey the laws of the library; for the tests of a family of your own.

    Checked are: blocks of any size give the same rows; the excess is surprisal minus entropy; varentropy is not
    negative; sums merge; ``A(1) = 0`` for the log-partition function ``A``, and its derivatives at 1 are minus the
    entropy, the varentropy and minus the third cumulant. With ``outcomes``, by enumeration: if the prediction is
    right, the excess has mean 0, variance equal to the varentropy, and the third cumulant it claims.

    Parameters
    ----------
    predictions : Predictions
        Some predictions of the family, a few rows to a few thousand.
    outcomes : sequence of Predictions, optional
        The same predictions, once with each possible outcome in every row. Leave it out for continuous outcomes.
    rtol : float, default 1e-9
        Relative tolerance, on the scale ``1 + surprisal + entropy`` of a row.

    Raises
    ------
    AssertionError
        Naming the law that is broken.

    Examples
    --------
    >>> import safecal
    >>> from safecal.testing import assert_family_laws
    >>> p = [0.1, 0.5, 0.99]
    >>> both = [safecal.bernoulli([y] * 3, p) for y in (0, 1)]
    >>> assert_family_laws(safecal.bernoulli([0, 1, 1], p), outcomes=both)
    """
    scored = predictions.score()
    _law(len(scored) == predictions.n, "score() has one row for each prediction")
    _law(not np.isnan(scored.excess).any(), "excess is never NaN")
    _blocks_agree(predictions, scored)
    _columns_agree(scored, rtol)
    _sums_merge(predictions, scored)
    _partition_agrees(predictions, scored, rtol)
    if outcomes:
        _enumeration_agrees(outcomes, rtol)


def _law(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"family law broken: {law}")


def _close(a: np.ndarray, b: np.ndarray, scale: np.ndarray | float, rtol: float) -> bool:
    finite = np.isfinite(a) & np.isfinite(b)
    same = np.array_equal(a[~finite], b[~finite])
    return same and bool((np.abs(a[finite] - b[finite]) <= (rtol * scale * np.ones_like(a))[finite]).all())


def _blocks_agree(predictions: Predictions, scored: Scored) -> None:
    for size in (1, 7, predictions.n + 1):
        again = Scored.concatenate(list(predictions.blocks(size)))
        for field in fields(Scored):
            a, b = getattr(again, field.name), getattr(scored, field.name)
            same = b is None if a is None else b is not None and _close(1.0 * a, 1.0 * b, 1.0 + np.abs(b), 1e-12)
            _law(same, f"blocks of any size agree ({field.name})")


def _columns_agree(scored: Scored, rtol: float) -> None:
    _law(bool((scored.varentropy >= 0).all()), "varentropy is not negative")
    _law((scored.surprisal is None) == (scored.entropy is None), "surprisal and entropy exist together")
    if scored.surprisal is None or scored.entropy is None:
        return
    with np.errstate(invalid="ignore"):
        scale = 1.0 + np.abs(scored.surprisal) + np.abs(scored.entropy)
        difference = scored.surprisal - scored.entropy
    _law(_close(scored.excess, difference, scale, rtol), "excess = surprisal - entropy")


def _sums_merge(predictions: Predictions, scored: Scored) -> None:
    whole = predictions.summary()
    merged = sum((summaries(summed(block))[0] for block in predictions.blocks(3)), Summary())
    _law((merged.n, merged.n_impossible) == (whole.n, whole.n_impossible), "counts add up to n")
    size = float(np.abs(scored.excess[~scored.impossible]).sum())
    _law(abs(merged.sum_excess - whole.sum_excess) <= 1e-12 * (size + 1e-300), "summaries merge")
    _law(Summary() + whole == whole == whole + Summary(), "the empty summary changes nothing")


def _partition_agrees(predictions: Predictions, scored: Scored, rtol: float) -> None:
    if scored.entropy is None:
        return
    try:
        a0, a1, a2, a3 = (predictions.log_partition(1.0, deriv=k) for k in range(4))
    except UnavailableError:
        return
    scale = 1.0 + np.abs(scored.entropy)
    # Probabilities that sum to 1 only up to float32 rounding are used as given, but A is normalised.
    slack = max(rtol, 1e-5 if scored.confidence is not None else rtol)
    _law(_close(a0, np.zeros_like(a0), scale, slack), "A(1) = 0")
    _law(_close(a1, -scored.entropy, scale, slack), "A'(1) = -entropy")
    _law(_close(a2, scored.varentropy, scale**2, slack), "A''(1) = varentropy")
    _law(_close(a3, -scored.third_cumulant, scale**3, slack), "A'''(1) = -third cumulant")


def _enumeration_agrees(outcomes: Sequence[Predictions], rtol: float) -> None:
    parts = [p.score() for p in outcomes]
    weights = np.stack([np.exp(-s.surprisal) for s in parts if s.surprisal is not None])
    excess = np.stack([np.where(s.impossible, 0.0, s.excess) for s in parts])
    scale = 1.0 + np.abs(excess * weights).sum(axis=0)
    first, zero = parts[0], np.zeros(len(parts[0]))
    _law(_close(weights.sum(axis=0), np.ones_like(zero), 1.0, max(rtol, 1e-6)), "the outcomes are all there are")
    _law(_close((weights * excess).sum(axis=0), zero, scale, rtol), "mean excess is 0 under calibration")
    _law(_close((weights * excess**2).sum(axis=0), first.varentropy, scale**2, rtol), "its variance is the varentropy")
    third = (weights * excess**3).sum(axis=0)
    _law(_close(third, first.third_cumulant, scale**3, rtol), "its third cumulant is the third cumulant")
