"""One column or one for each class: which family a classifier's predictions belong to."""

from typing import Any

from .._checks.classes import class_shape, one_form, outcome_column
from .._checks.rows import row_labels
from .._types import ArrayLike, Labels
from .bernoulli import checked_binary
from .categorical import checked_classes
from .predictions import Predictions

__all__ = ["classifier"]


def classifier(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    whole: bool = False,
) -> Predictions:
    """Return Bernoulli predictions for a column, categorical ones for a matrix.

    ``whole`` tells that no other rows will follow: a label that does not occur in them never does.
    """
    rows = row_labels(y_true=y_true, y_prob=y_prob, logits=logits)
    values, name = one_form(y_prob, logits)
    outcomes = outcome_column(y_true, values, name)
    if class_shape(values, name, pos_label, labels):
        return checked_binary(outcomes, values, name, pos_label, clip, rows, whole)
    given = y_prob if logits is None else logits
    return checked_classes(outcomes, values, name, given, labels, clip, rows, whole)
