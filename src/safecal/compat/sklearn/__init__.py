"""scikit-learn: a classifier that is not over-confident, scorers, and evaluations of estimators and cross-validations.

It needs ``pip install "safecal[sklearn]"``.
"""

from ..._optional import require

require("sklearn", "this module plugs into scikit-learn", "sklearn")

from .classifier import SafeCalibratedClassifier  # noqa: E402
from .scoring import (  # noqa: E402
    ClassScorer,
    evaluate_cv_results,
    evaluate_estimator,
    neg_abs_ecd,
    neg_nll,
    neg_nll_if_safe,
)

__all__ = [
    "ClassScorer",
    "SafeCalibratedClassifier",
    "evaluate_cv_results",
    "evaluate_estimator",
    "neg_abs_ecd",
    "neg_nll",
    "neg_nll_if_safe",
]
