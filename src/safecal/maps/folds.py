"""Predictions of rows by maps that were not fitted to them."""

from typing import Any

import numpy as np

from .._checks.maps import refused
from .._types import FloatArray, IndexArray
from ..errors import UnavailableError
from ..families.bernoulli import Bernoulli
from ..families.categorical import Categorical
from ..families.gaussian import Gaussian
from ..families.predictions import Predictions
from .base import Grouping, Map, Rows, class_count
from .spreads import moved_states
from .values import two_columns, values_of

__all__ = ["cross_fitted", "folds_of"]


def folds_of(rows: Rows, folds: int) -> IndexArray:
    """Return the number of the fold of each row; rows of a cluster stay together. The same rows, the same folds."""
    rng = np.random.default_rng(0)
    if rows.cluster is None:
        return np.asarray(rng.permutation(rows.n) % folds)
    keys, codes = np.unique(rows.cluster, return_inverse=True)
    return np.asarray((rng.permutation(len(keys)) % folds)[codes])


def cross_fitted(map_: Map, rows: Rows, grouping: Grouping | None, fold: IndexArray) -> Predictions:
    """Return the rows as maps recalibrate them that were fitted to the other folds."""
    p = rows.predictions
    numbers = [k for k in range(int(fold.max()) + 1) if (fold == k).any()]
    if len(numbers) < 2:
        refused("rows of one fold alone cannot be predicted by others", "there must be at least two rows or clusters.")
    if isinstance(p, Gaussian):
        return _states(map_, rows, grouping, fold, numbers)
    if not isinstance(p, Bernoulli | Categorical):
        raise UnavailableError(f"{p.family} predictions cannot be fitted in part.\n\nHint: use `SafeTemperature`.")
    z = values_of(p)
    found = np.empty_like(z)
    for k in numbers:
        inside = np.flatnonzero(fold == k)
        one = _fitted_without(map_, rows, grouping, fold, k)
        found[inside] = _each_group(one, z[inside], None if grouping is None else grouping.codes[inside], grouping)
    if isinstance(p, Bernoulli):
        return Bernoulli(p.happened, found, True, None)
    logits = two_columns(found) if found.ndim == 1 else found
    return Categorical(p.happened, logits, True, bool(np.isneginf(logits).any()), None, names=p.names)


def _states(map_: Map, rows: Rows, grouping: Grouping | None, fold: IndexArray, numbers: list[int]) -> Predictions:
    p = rows.predictions
    assert isinstance(p, Gaussian)
    bias, factor = np.zeros((rows.n, p.dimension)), np.ones((rows.n, p.dimension))
    for k in numbers:
        one = _fitted_without(map_, rows, grouping, fold, k)
        for code, key in enumerate((None,) if grouping is None else grouping.keys):
            inside = fold == k if grouping is None else (fold == k) & (grouping.codes == code)
            if inside.any():
                bias[inside], factor[inside] = one._axes(key)
    return moved_states(p, bias, factor)


def _fitted_without(map_: Map, rows: Rows, grouping: Grouping | None, fold: IndexArray, k: int) -> Map:
    outside = np.flatnonzero(fold != k)
    one = map_._copy()
    some = rows.take(outside)
    one._fit_rows(some, None if grouping is None else grouping.take(outside))
    one.family_, one.classes_, one.n_ = rows.predictions.family, class_count(rows.predictions), len(outside)
    return one


def _each_group(one: Map, z: FloatArray, codes: IndexArray | None, grouping: Grouping | None) -> FloatArray:
    found: Any = np.empty_like(z)
    for k, key in enumerate((None,) if grouping is None else grouping.keys):
        inside = slice(None) if codes is None else codes == k
        part = z[inside]
        for step in one._steps(key):
            part = step.of(part)
        found[inside] = part
    return np.asarray(found)
