"""What a fitted classifier of scikit-learn's kind predicts, in the form that `evaluate` takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks.message import fail, show
from .._types import AnyArray, ArrayLike
from ..errors import LabelError, OptionError, ShapeError

__all__ = ["estimated"]


def estimated(estimator: Any, X: ArrayLike, pos_label: Any) -> tuple[AnyArray, dict[str, Any]]:
    """Return the probabilities of an estimator, and the labels that they belong to."""
    predict = getattr(estimator, "predict_proba", None)
    hint = "pass its probabilities to `from_predictions`."
    if not callable(predict):
        got = f"a {type(estimator).__name__}"
        raise fail(OptionError, "estimator", "must have a method `predict_proba`", got=got, hint=hint)
    classes = getattr(estimator, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        got = "no `classes_`" if classes is None else "several outputs"
        raise fail(OptionError, "estimator", "must be fitted, for one output with `classes_`", got=got, hint=hint)
    names = np.asarray(classes).tolist()
    y_prob = np.asarray(predict(X))
    if y_prob.ndim != 2 or y_prob.shape[1] != len(names) or len(names) < 2:
        got = f"shape {y_prob.shape} for {len(names)} of `classes_`"
        raise fail(ShapeError, "estimator", "must predict a column for each of two or more classes", got=got, hint=hint)
    if len(names) > 2:
        if pos_label is not None:
            raise fail(
                OptionError, "pos_label", "is for two classes", got=f"{len(names)} classes", hint="leave it out."
            )
        return y_prob, {"labels": names}
    positive = names[1] if pos_label is None else pos_label
    if positive not in names:
        got = f"{show(positive)}, and `classes_` {show(names)}"
        raise fail(LabelError, "pos_label", "must be one of the classes of the estimator", got=got)
    return y_prob[:, names.index(positive)], {"pos_label": positive}
