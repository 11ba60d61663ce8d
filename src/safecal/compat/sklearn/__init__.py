"""scikit-learn: a classifier that is not over-confident, scorers, and evaluations of estimators and cross-validations.

It needs ``pip install "safecal[sklearn]"``. Scorers and evaluations know the classes of the estimator.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, Self, Unpack, final

import numpy as np

from ..._checks.columns import spelled
from ..._optional import require
from ..._types import ArrayLike
from ...inputs.estimators import Estimated
from ...judge.evaluation import Evaluation
from ...options import EvaluateOptions, LimitOptions, Limits

require("sklearn", "this module plugs into scikit-learn", "sklearn")

from sklearn.utils.metadata_routing import MetadataRequest  # noqa: E402

from .classifier import SafeCalibratedClassifier  # noqa: E402

__all__ = [
    "ClassScorer", "SafeCalibratedClassifier", "evaluate_cv_results", "evaluate_estimator", "neg_abs_ecd", "neg_nll",
    "neg_nll_if_safe",
]  # fmt: skip


class _HeldOut(NamedTuple):
    """The evaluation of rows that were held out, and the NLL of a model that knows only how often each class occurs."""

    evaluation: Evaluation
    baseline_nll: float


@final
class ClassScorer:
    """A scorer of scikit-learn: ``scorer(estimator, X, y)``, greater is better.

    It asks the estimator for ``predict_proba`` and ``classes_``, so labels can be numbers or text. Not every class need
    occur among the rows; rows of a class that the estimator was not fitted to, as happens in small folds, are left out
    with a warning. An outcome that a model calls impossible makes the score minus infinity.

    Parameters
    ----------
    name : str
        What it is called.
    score : callable
        Turns an evaluation of held-out rows into a number; the scorers of this module have theirs.

    Attributes
    ----------
    name : str
        What it is called.
    limits : Limits
        The limits of its verdicts.

    Examples
    --------
    >>> from safecal.compat.sklearn import neg_nll_if_safe
    >>> neg_nll_if_safe
    neg_nll_if_safe
    >>> neg_nll_if_safe.with_limits(threshold=0.05)
    neg_nll_if_safe.with_limits(threshold=0.05)
    """

    def __init__(self, name: str, score: Callable[[_HeldOut], float]) -> None:
        self.name = name
        self._score = score
        self._limit_options: LimitOptions = {}
        self.limits = Limits()
        self._requests: dict[str, bool | str | None] = {"sample_weight": None, "cluster": None}

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> float:
        """Score a fitted classifier on rows that it was not fitted to."""
        estimated = Estimated.of(estimator, X, y)
        options: EvaluateOptions = {"bins": None, "sample_weight": sample_weight, "cluster": cluster}
        evaluation = estimated.evaluate(None, None, {**options, **self._limit_options})
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)[estimated.rows]
        share = np.bincount(estimated.happened, weight)
        share = share[share > 0] / share.sum()
        return self._score(_HeldOut(evaluation, float(-(share * np.log(share)).sum())))

    @spelled(LimitOptions)
    def with_limits(self, **limits: Unpack[LimitOptions]) -> Self:
        """Return a scorer whose verdicts have other limits.

        Parameters
        ----------
        **limits
            ``threshold``, ``max_temperature`` and so on, as in `safecal.evaluate`.

        Returns
        -------
        ClassScorer
            Another one; this one stays as it is.
        """
        other = copy(self)
        other._limit_options = {**self._limit_options, **limits}
        other.limits = Limits(**other._limit_options)
        return other

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Return a scorer that asks for weights or clusters, where metadata routing is enabled.

        Parameters
        ----------
        **requests
            ``sample_weight`` and ``cluster``: True, False, or the name under which it is passed.

        Returns
        -------
        ClassScorer
            Another one; this one stays as it is.
        """
        unknown = requests.keys() - self._requests.keys()
        if unknown:
            raise TypeError(f"`{min(unknown)}` cannot be asked for.\n\nHint: it takes `sample_weight` and `cluster`.")
        other = copy(self)
        other._requests = {**self._requests, **requests}
        return other

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer asks for, in the form of scikit-learn.

        Returns
        -------
        MetadataRequest
            For the method ``score``.
        """
        request = MetadataRequest(owner=repr(self))
        for name, asked in self._requests.items():
            request.score.add_request(param=name, alias=asked)
        return request

    def __repr__(self) -> str:
        if not self._limit_options:
            return self.name
        limits = ", ".join(f"{name}={value!r}" for name, value in self._limit_options.items())
        return f"{self.name}.with_limits({limits})"


def _ecd(held: _HeldOut) -> float:
    return -abs(held.evaluation.ecd)


def _nll(held: _HeldOut) -> float:
    return -held.evaluation.nll


def _nll_if_safe(held: _HeldOut) -> float:
    nll = held.evaluation.nll
    return -max(nll, held.baseline_nll) if held.evaluation.verdict.decision == "UNSAFE" else -nll


#: Minus the distance of ECD from 0, in nats. A model that says nothing has 0, so do not search with it alone.
neg_abs_ecd = ClassScorer("neg_abs_ecd", _ecd)

#: Minus the NLL, in nats, without any clipping.
neg_nll = ClassScorer("neg_nll", _nll)

#: Minus the NLL where the verdict on the held-out rows is not UNSAFE. Where it is, minus the NLL of saying nothing but
#: how often each class occurs, or its own where that is larger still: an over-confident model is worth no more.
neg_nll_if_safe = ClassScorer("neg_nll_if_safe", _nll_if_safe)


@spelled(EvaluateOptions)
def evaluate_estimator(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    pos_label: Any = None,
    clip: float | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Evaluate a fitted classifier.

    Rows of a class that it was not fitted to are left out, with a warning.

    Parameters
    ----------
    estimator : object
        A fitted classifier with ``predict_proba`` and ``classes_``.
    X : array-like
        Rows that it was not fitted to.
    y : array-like of shape (n,)
        What happened, as one of ``classes_``.
    pos_label : object, optional
        The positive one of two classes; by default the last of ``classes_``.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
    **options
        The other arguments of `safecal.evaluate`: ``bins``, ``by``, ``cluster``, ``threshold`` and so on.

    Returns
    -------
    Evaluation
        As `safecal.evaluate` gives it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from safecal.compat.sklearn import evaluate_estimator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> evaluate_estimator(GaussianNB().fit(X[:300], y[:300]), X[300:], y[300:]).verdict.decision
    'UNSAFE'
    """
    return Estimated.of(estimator, X, y).evaluate(pos_label, clip, options)


@spelled(EvaluateOptions)
def evaluate_cv_results(
    cv_results: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    pos_label: Any = None,
    clip: float | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Evaluate a cross-validation: every row by the model that was not fitted to it, all folds together.

    Where folds are repeated, the predictions for one row form a cluster. Rows of a class that the model of their fold
    was not fitted to are left out, with a warning. The models of the folds share most of their rows; the verdict is
    about a model that is fitted in this way.

    Parameters
    ----------
    cv_results : dict
        What ``cross_validate(model, X, y, return_estimator=True, return_indices=True)`` returned.
    X : array-like
        The rows that were cross-validated.
    y : array-like of shape (n,)
        What happened.
    pos_label : object, optional
        The positive one of two classes; by default the last of ``classes_``.
    clip : float, optional
        Move probabilities into ``[clip, 1 - clip]``; off by default.
    **options
        The other arguments of `safecal.evaluate`: ``bins``, ``by``, ``cluster``, ``threshold`` and so on; columns have
        the rows of ``X``.

    Returns
    -------
    Evaluation
        As `safecal.evaluate` gives it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from safecal.compat.sklearn import evaluate_cv_results
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> results = cross_validate(GaussianNB(), X, y, return_estimator=True, return_indices=True)
    >>> evaluate_cv_results(results, X, y).verdict.decision
    'UNSAFE'
    """
    return Estimated.of_folds(cv_results, X, y).evaluate(pos_label, clip, options)
