"""An estimator, or all estimators of a cross-validation, evaluated on rows that they were not fitted to."""

from collections.abc import Mapping
from typing import Any, Unpack

from ..._checks.columns import spelled
from ..._types import ArrayLike
from ...inputs.estimators import Estimated
from ...judge.evaluation import Evaluation
from ...options import EvaluateOptions

__all__ = ["evaluate_cv_results", "evaluate_estimator"]


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
    was not fitted to are left out, with a warning. The models of the folds share most of their rows; what the verdict
    says is about models fitted in this way, as one of them might stand.

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
