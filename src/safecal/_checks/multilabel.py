"""Several labels a row: a matrix of what happened beside a matrix of probabilities, a column for each label."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray
from ..errors import LabelError, ShapeError
from .arrays import as_keys, is_missing
from .classes import one_form, probabilities, real_logits
from .message import fail, same_rows, show

__all__ = ["label_matrix", "label_names", "label_values"]


def label_values(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Return the one form that was given, of shape (n, L), and its name."""
    values, name = one_form(y_prob, logits)
    if values.ndim == 3 and values.shape[2] == 2:
        hint = f"take the second column of each label: `np.stack([p[:, 1] for p in {name}], axis=1)`."
        raise fail(ShapeError, name, "must have a column for each label, shape (n, L)",
                   got=f"shape {values.shape}, a matrix for each label", hint=hint)  # fmt: skip
    if values.ndim != 2 or values.shape[1] == 0:
        hint = "for one label a row leave `by_label` out."
        raise fail(ShapeError, name, "must have a column for each label, shape (n, L)",
                   got=f"shape {values.shape}", hint=hint)  # fmt: skip
    if name == "y_prob":
        probabilities(values, name)
    else:
        for j in range(values.shape[1]):  # one by one, because log-odds may be infinite, and the logits of classes not
            real_logits(values[:, j], f"{name}[:, {j}]")
    return values, name


def label_matrix(y_true: Any, shape: tuple[int, ...], name: str, fewest: int = 2) -> BoolArray:
    """Return which label each row has, of shape (n, L)."""
    if callable(getattr(y_true, "toarray", None)):  # a sparse matrix, as scikit-learn's MultiLabelBinarizer gives it
        y_true = y_true.toarray()
    outcomes = as_keys(y_true, "y_true")
    if outcomes.ndim != 2:
        hint = "turn lists of labels into a matrix with scikit-learn's `MultiLabelBinarizer`."
        raise fail(ShapeError, "y_true", "must have a column of 0 and 1 for each label, shape (n, L)",
                   got=f"shape {outcomes.shape}", hint=hint)  # fmt: skip
    same_rows("y_true", len(outcomes), shape[0], name)
    if outcomes.shape[1] != shape[1]:
        raise fail(ShapeError, "y_true", f"must have as many columns as `{name}`",
                   got=f"{outcomes.shape[1]} and {shape[1]}")  # fmt: skip
    if shape[0] < fewest:
        raise fail(ShapeError, "y_true", "must have at least two rows: the labels of one row depend on each other",
                   got=str(shape[0]))  # fmt: skip
    if outcomes.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, outcomes.flat), dtype=bool, count=outcomes.size).reshape(shape)
        outcomes = outcomes.copy()
        outcomes[missing] = None  # pandas' NA is neither equal to 1 nor not
    happened = np.asarray(outcomes == 1, dtype=bool)
    bad = ~(happened | np.asarray(outcomes == 0, dtype=bool))
    if bad.any():
        (i, j), rows = np.argwhere(bad)[0].tolist(), int(bad.any(axis=1).sum())
        value = outcomes[i, j]
        unknown = "a label that was not looked for is no 0: leave such rows out." if is_missing(value) else None
        raise fail(LabelError, "y_true", "must be 0 or 1 for each label", got=show(value),
                   place=f"row {i}, column {j}", count=(rows, shape[0]), hint=unknown)  # fmt: skip
    return happened


def label_names(y_true: Any, given: Any, labels: Any, count: int, name: str) -> list[Hashable]:
    """Return what the labels are called: as told, or as the columns of a frame are, or by their numbers."""
    if labels is not None:
        names = _listed(labels)
    else:
        names = _columns(y_true) or _columns(given) or list(range(count))
        if (others := _columns(given)) and names != others:
            hint = f"pass `{name}[list(y_true.columns)]`."
            raise fail(LabelError, name, "must have the columns of `y_true`, in their order",
                       got=f"{show(others)} and {show(names)}", hint=hint)  # fmt: skip
    if len(names) != count:
        raise fail(
            ShapeError, "labels", f"must name each of the {count} columns of `{name}`", got=f"{len(names)} names"
        )
    if len(set(names)) != count:
        twice = next(one for one in names if names.count(one) > 1)
        raise fail(LabelError, "labels", "must be distinct", got=f"{show(twice)} more than once")
    return names


def _listed(labels: Any) -> list[Hashable]:
    try:
        names = list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        set(names)
    except TypeError as error:
        raise fail(LabelError, "labels", "must be a list of names", got=show(labels)) from error
    return names


def _columns(frame: Any) -> list[Hashable]:
    """Return the names of a frame's columns, without importing its library; none for anything else."""
    columns = getattr(frame, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)
