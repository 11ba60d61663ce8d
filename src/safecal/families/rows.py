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
        f"{predictions.family} predictions have one map for all rows.\n\n"
        "Hint: fit each group by itself, on predictions of its own."
    )


@some_rows.register
def _(predictions: Bernoulli, index: IndexArray) -> Predictions:
    return Bernoulli(predictions.happened[index], predictions.values[index], predictions.logits, predictions.clip)


@some_rows.register
def _(predictions: Categorical, index: IndexArray) -> Predictions:
    p = predictions
    return Categorical(p.happened[index], p.values[index], p.logits, p.infinite, p.clip, names=p.names)


@some_rows.register
def _(predictions: Gaussian, index: IndexArray) -> Predictions:
    p = predictions
    rows: AnyArray = p.spread[index] if _spread_by_row(p) else p.spread
    return Gaussian(p.x_true[index], p.mean[index], p.form, rows, p.shared, p.angles, p.method)


def _spread_by_row(p: Gaussian) -> bool:
    return p.spread.ndim == 3 if p.form in ("cov", "chol", "precision") else p.spread.shape == p.x_true.shape


def joined(parts: Sequence[Predictions]) -> Predictions:
    """Put the rows of predictions of one form under each other: of classifiers, or of states with a spread a row."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Gaussian):
        return _joined_states(first, parts)
    happened = [p.happened for p in parts if isinstance(p, Bernoulli | Categorical)]
    values = [p.values for p in parts if isinstance(p, Bernoulli | Categorical)]
    if not (all(type(p) is type(first) for p in parts) and len({v.shape[1:] for v in values}) == 1):
        raise _not_alike()
    if isinstance(first, Bernoulli):
        return Bernoulli(np.concatenate(happened), np.concatenate(values), first.logits, first.clip)
    assert isinstance(first, Categorical)
    infinite = any(p.infinite for p in parts if isinstance(p, Categorical))
    return Categorical(
        np.concatenate(happened), np.concatenate(values), first.logits, infinite, first.clip, names=first.names
    )


def _joined_states(first: Gaussian, parts: Sequence[Predictions]) -> Predictions:
    states = [p for p in parts if isinstance(p, Gaussian)]
    alike = {(p.x_true.shape[1:], p.form, p.angles, p.method) for p in states}
    if len(states) < len(parts) or len(alike) > 1 or not all(map(_spread_by_row, states)):
        raise _not_alike()
    x_true, mean, spread = (np.concatenate([getattr(p, name) for p in states]) for name in ("x_true", "mean", "spread"))
    return Gaussian(x_true, mean, first.form, spread, None, first.angles, first.method)


def _not_alike() -> MergeError:
    return MergeError("predictions must be of one form and one number of classes; these are not.")
