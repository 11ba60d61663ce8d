"""One column or one for each class: which family a classifier's predictions belong to."""

from typing import Any

from .._checks.classes import class_shape, one_form
from .._types import ArrayLike, Labels
from .bernoulli import bernoulli
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
) -> Predictions:
    """Return Bernoulli predictions for a column, categorical ones for a matrix."""
    values, name = one_form(y_prob, logits)
    if class_shape(values, name, pos_label, labels):
        form: dict[str, Any] = {name: values}
        return bernoulli(y_true, **form, pos_label=pos_label, clip=clip)
    return checked_classes(y_true, values, name, y_prob if logits is None else logits, labels, clip)
