"""Some rows of predictions, and predictions put together."""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from .._types import AnyArray, IndexArray
from ..errors import MergeError, UnavailableError
from .bernoulli import Bernoulli
from .categorical import Categorical
from .gaussian import Gaussian
from .predictions import Predictions

__all__ = ["joined", "some_rows"]


@singledispatch
def some_rows(predictions: Predictions, index: IndexArray) -> Predictions:
    """Return some rows of the predictions."""
    raise UnavailableError(
        f"{predictions.family} predictions have one temperature for all rows.\n\n"
        "Hint: fit each group by itself, on predictions of its own."
    )


@some_rows.register
def _(predictions: Bernoulli, index: IndexArray) -> Predictions:
    return Bernoulli(predictions.happened[index], predictions.values[index], predictions.logits, predictions.clip)


@some_rows.register
def _(predictions: Categorical, index: IndexArray) -> Predictions:
    p = predictions
    return Categorical(p.happened[index], p.values[index], p.logits, p.infinite, p.clip)


@some_rows.register
def _(predictions: Gaussian, index: IndexArray) -> Predictions:
    p = predictions
    spread: AnyArray = p.spread
    per_row = spread.ndim == 3 if p.form in ("cov", "chol", "precision") else spread.shape == p.x_true.shape
    rows = spread[index] if per_row else spread
    return Gaussian(p.x_true[index], p.mean[index], p.form, rows, p.shared, p.angles, p.method)


def joined(parts: Sequence[Predictions]) -> Predictions:
    """Put the rows of classifiers' predictions, all of one form, under each other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    happened = [p.happened for p in parts if isinstance(p, Bernoulli | Categorical)]
    values = [p.values for p in parts if isinstance(p, Bernoulli | Categorical)]
    same = all(type(p) is type(first) for p in parts) and len({v.shape[1:] for v in values}) == 1
    if not same:
        raise MergeError("predictions must be of one form and one number of classes; these are not.")
    if isinstance(first, Bernoulli):
        return Bernoulli(np.concatenate(happened), np.concatenate(values), first.logits, first.clip)
    assert isinstance(first, Categorical)
    infinite = any(p.infinite for p in parts if isinstance(p, Categorical))
    return Categorical(np.concatenate(happened), np.concatenate(values), first.logits, infinite, first.clip)
