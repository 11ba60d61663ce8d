"""scikit-learn: a classifier that is not over-confident, scorers, and evaluations of estimators and cross-validations.

It needs ``pip install "safecal[sklearn]"``.
"""

from ...errors import MissingExtraError

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        'this module plugs into scikit-learn, which is not installed.\n\nHint: pip install "safecal[sklearn]"'
    ) from error

from .classifier import SafeCalibratedClassifier
from .scoring import ClassScorer, evaluate_cv_results, evaluate_estimator, neg_abs_ecd, neg_nll, neg_nll_if_safe

__all__ = [
    "ClassScorer",
    "SafeCalibratedClassifier",
    "evaluate_cv_results",
    "evaluate_estimator",
    "neg_abs_ecd",
    "neg_nll",
    "neg_nll_if_safe",
]
