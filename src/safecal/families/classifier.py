"""One column or one for each class: which family a classifier's predictions belong to."""

from typing import Any

from .._checks.classes import class_shape, one_form, refuse_arrays
from .._checks.labels import outcome_column
from .._checks.message import fail
from .._checks.rows import row_labels
from .._types import ArrayLike, Labels
from ..errors import FormError
from .bernoulli import checked_binary
from .categorical import checked_classes
from .predictions import Predictions

__all__ = ["classifier", "predictions_of"]


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


def predictions_of(
    y_true: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Labels | None = None,
    clip: float | None = None,
    also: str = "",
) -> Predictions:
    """Return predictions as they are, and arrays as those of a classifier; ``also`` names what else a door takes."""
    if isinstance(y_true, Predictions):
        refuse_arrays("predictions", y_prob=y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip)
        return y_true
    if y_prob is None and logits is None:
        raise fail(
            FormError,
            "y_true",
            f"must be predictions{also}, or outcomes beside `y_prob` or `logits`",
            got=f"a {type(y_true).__name__} alone",
            hint="pass `y_true, y_prob`, or predictions such as `safecal.gaussian(x_true, mean, cov=cov)`.",
        )
    return classifier(y_true, y_prob, logits=logits, pos_label=pos_label, labels=labels, clip=clip, whole=True)
