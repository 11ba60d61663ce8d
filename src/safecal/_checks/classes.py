"""Labels, probabilities and logits."""

import sys
from collections.abc import Hashable
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, IndexArray, Labels
from ..errors import (
    FormError,
    InputError,
    LabelError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
)
from .arrays import as_array, as_numbers, block, is_missing, not_empty, refuse, slices
from .message import fail, same_rows, show

__all__ = [
    "binary_outcomes",
    "class_outcomes",
    "class_shape",
    "clip_value",
    "one_form",
    "probabilities",
    "real_logits",
]

_DROP = "drop or fill those rows first: safecal drops nothing by itself."


def one_form(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Return the one form that was given, and its name."""
    if (y_prob is None) == (logits is None):
        given = "neither" if y_prob is None else "both"
        raise fail(
            FormError,
            "y_prob",
            "or `logits` must be given, exactly one of them",
            got=given,
            hint="`y_prob` for probabilities, `logits=` for log-odds or unnormalised log-probabilities.",
        )
    name = "y_prob" if logits is None else "logits"
    array = as_numbers(y_prob if logits is None else logits, name)
    not_empty(array, name)
    return array, name


def class_shape(values: AnyArray, name: str, pos_label: Any = None, labels: Any = None) -> bool:
    """Tell whether there is one value a row, or one a class; refuse other shapes and the labels of the other one."""
    rule = "must have shape (n,) for two classes or (n, K) with K >= 2"
    if values.ndim == 2 and values.shape[1] == 1:
        hint = f"if it belongs to the positive class, pass `{name}[:, 0]`."
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}", hint=hint)
    if values.ndim not in (1, 2):
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}")
    if values.ndim == 1 and labels is not None:
        hint = "for one probability a row, name the positive class with `pos_label=`."
        raise fail(OptionError, "labels", "names the columns of an (n, K) prediction", got=f"`{name}` of shape (n,)",
                   hint=hint)  # fmt: skip
    if values.ndim == 2 and pos_label is not None:
        hint = "for one column a class, name the columns with `labels=`."
        raise fail(OptionError, "pos_label", "belongs to a prediction of shape (n,)",
                   got=f"`{name}` of shape {values.shape}", hint=hint)  # fmt: skip
    return values.ndim == 1


def probabilities(array: AnyArray, name: str) -> bool:
    """Require every value in [0, 1]; tell whether any is exactly 0."""
    zero = False
    for part in slices(array):
        values = array[part]
        low = values.min()
        if not (low >= 0 and values.max() <= 1):  # NaN fails both
            raise _bad_probability(array, name)
        zero = zero or bool(low == 0)
    return zero


def _bad_probability(array: AnyArray, name: str) -> InputError:
    if any(np.isnan(block(array, part)).any() for part in slices(array)):
        return refuse(array, name, np.isnan, MissingValueError, "must not be NaN", _DROP)
    rule, hint = "must lie in [0, 1]", None
    low = min(float(array[part].min()) for part in slices(array))
    high = max(float(array[part].max()) for part in slices(array))
    if low >= -1e-3 and high <= 1 + 1e-3:
        hint = f"if that is rounding, pass `np.clip({name}, 0, 1)`."
    elif low >= 0 and high <= 100 and high > 2:
        hint = f"these look like percentages: pass `{name} / 100`."
    elif np.isfinite(low) and np.isfinite(high):
        hint = "these look like log-odds: pass them as `logits=`."
    return refuse(array, name, lambda x: (x < 0) | (x > 1), RangeError, rule, hint)


def real_logits(array: AnyArray, name: str) -> bool:
    """Refuse NaN, and in a matrix +inf and rows of nothing but -inf; tell whether any value is infinite."""
    infinite = False
    for part in slices(array):
        values = array[part]
        low, high = np.float64(values.min()), np.float64(values.max())
        if np.isnan(low) or np.isnan(high):
            raise refuse(array, name, np.isnan, MissingValueError, "must not be NaN", _DROP)
        with np.errstate(invalid="ignore", over="ignore"):
            infinite = infinite or not np.isfinite(high - low)
        if array.ndim == 2 and high == np.inf:
            rule = "must be finite or -inf"
            raise refuse(array, name, np.isposinf, RangeError, rule, "a +inf logit has no softmax.")
        if array.ndim == 2 and low == -np.inf and bool((values.max(axis=1) == -np.inf).any()):
            raise refuse(
                array,
                name,
                lambda x: np.broadcast_to((x.max(axis=1) == -np.inf)[:, None], x.shape),
                RangeError,
                "must have a finite value in each row",
                "a row of nothing but -inf gives no class a probability.",
            )
    return infinite


def clip_value(clip: float | None, name: str, classes: int) -> float | None:
    """Require ``0 < clip < 1/classes``, and probabilities to clip."""
    if clip is None:
        return None
    if name != "y_prob":
        raise fail(
            FormError,
            "clip",
            "applies to `y_prob` only",
            got=f"`{name}`",
            hint="logits never saturate, so there is nothing to clip: leave `clip` out.",
        )
    if not isinstance(clip, int | float | np.number) or not 0.0 < clip < 1.0 / classes:
        raise fail(RangeError, "clip", f"must lie strictly between 0 and 1/{classes}", got=show(clip))
    return float(clip)


def _label_column(y_true: ArrayLike, n: int, reference: str) -> AnyArray:
    labels = as_array(y_true, "y_true")
    if labels.ndim != 1:
        hint = None
        if labels.ndim == 2:
            hint = "pass `y_true[:, 0]`." if labels.shape[1] == 1 else "for one-hot rows pass `y_true.argmax(axis=1)`."
        raise fail(
            ShapeError, "y_true", "must be one label for each row, shape (n,)", got=f"shape {labels.shape}", hint=hint
        )
    same_rows("y_true", len(labels), n, reference)
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
    elif labels.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, labels), dtype=bool, count=n)
    else:
        return labels
    if missing.any():
        first = int(missing.argmax())
        raise fail(
            MissingValueError,
            "y_true",
            "must not hold missing values",
            got=show(labels[first]),
            place=f"row {first}",
            count=(int(missing.sum()), n),
            hint=_DROP,
        )
    return labels


def _distinct(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return list(np.unique(labels).tolist())


def _unexpected(labels: AnyArray, bad: BoolArray, rule: str, hint: str) -> InputError:
    first = int(bad.argmax())
    where, count = f"row {first}", (int(bad.sum()), len(labels))
    return fail(LabelError, "y_true", rule, got=show(labels[first]), place=where, count=count, hint=hint)


def binary_outcomes(y_true: ArrayLike, n: int, reference: str, pos_label: Any = None) -> BoolArray:
    """Return True where the positive outcome happened."""
    labels = _label_column(y_true, n, reference)
    if pos_label is not None:
        return _named_outcomes(labels, pos_label)
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind in "US" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels)):
        names = _distinct(labels)[:5]
        hint = f"say which outcome is the positive one, for example `pos_label={names[-1]!r}`."
        raise _unexpected(labels, np.ones(n, dtype=bool), "must be 0 or 1 when `pos_label` is not given", hint)
    if labels.dtype.kind in "iu" and all(_zeros_and_ones(labels[part]) for part in slices(labels)):
        return _lowest_bytes(labels)
    positive = np.asarray(labels == 1, dtype=bool)
    bad = ~(positive | np.asarray(labels == 0, dtype=bool))
    if bad.any():
        hint = "say which outcome is the positive one with `pos_label=`."
        if labels.dtype.kind == "f" and bool((labels[bad] % 1 != 0).any()):
            hint = "a tie or a share is not an outcome: drop those rows first."
        raise _unexpected(labels, bad, "must be 0 or 1", hint)
    return positive


def _zeros_and_ones(labels: AnyArray) -> bool:
    return bool(labels.min() >= 0 and labels.max() <= 1)


def _lowest_bytes(labels: AnyArray) -> BoolArray:
    """Return whole numbers that are 0 or 1 as truths, without a copy: the lowest byte of each says it all."""
    if not labels.flags.c_contiguous:
        return np.asarray(labels == 1, dtype=bool)
    size = labels.dtype.itemsize
    little = labels.dtype.byteorder == "<" or (labels.dtype.byteorder in "=|" and sys.byteorder == "little")
    return np.asarray(labels.view(np.bool_)[(0 if little else size - 1) :: size])


def _named_outcomes(labels: AnyArray, pos_label: Any) -> BoolArray:
    textual = labels.dtype.kind in "US"
    if labels.dtype.kind != "O" and textual != isinstance(pos_label, str | bytes):
        raise fail(
            LabelError,
            "pos_label",
            "must be one of the labels in `y_true`",
            got=f"{show(pos_label)}, where `y_true` holds {', '.join(map(show, _distinct(labels)[:5]))}",
        )
    positive = np.fromiter((v == pos_label for v in labels), bool, len(labels)) if labels.dtype.kind == "O" else None
    positive = np.asarray(labels == pos_label, dtype=bool) if positive is None else positive
    others = _distinct(labels[~positive])
    if len(others) > 1:
        raise fail(
            LabelError,
            "y_true",
            f"must hold `pos_label` ({show(pos_label)}) and at most one other label",
            got=f"{len(others)} others: {', '.join(map(show, others[:5]))}",
            hint="for more than two classes pass `y_prob` with one column for each class."
            if positive.any()
            else f"{show(pos_label)} does not occur: is it spelled as in `y_true`?",
        )
    return positive


def class_outcomes(y_true: ArrayLike, n: int, classes: int, reference: str, labels: Labels | None = None) -> IndexArray:
    """Return the column index of the class that happened."""
    column = _label_column(y_true, n, reference)
    if labels is not None:
        return _labelled_outcomes(column, classes, labels, reference)
    if column.dtype.kind in "USO" and not all(isinstance(v, int | np.integer) for v in column):
        names = show(sorted(map(str, _distinct(column)))[:4])
        hint = f"name the columns of `{reference}` in their order, for example `labels={names}`."
        rule = f"must be a class number from 0 to {classes - 1} when `labels` is not given"
        raise _unexpected(column, np.ones(n, dtype=bool), rule, hint)
    if column.dtype.kind == "O":
        index = np.fromiter((v if 0 <= v < classes else -1 for v in column), dtype=np.intp, count=n)
    else:
        with np.errstate(invalid="ignore"):
            index = column.astype(np.intp)
    bad = (index != column) | (index < 0) | (index >= classes)
    if bad.any():
        hint = "classes are numbered from 0; if yours have other names, pass `labels=` in the order of the columns."
        raise _unexpected(column, np.asarray(bad, dtype=bool), f"must be a class number from 0 to {classes - 1}", hint)
    return index


def _labelled_outcomes(column: AnyArray, classes: int, labels: Labels, reference: str) -> IndexArray:
    try:
        names: list[Hashable] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        number = {name: k for k, name in enumerate(names)}
    except TypeError as error:
        raise fail(LabelError, "labels", "must be a list of names", got=show(labels)) from error
    if len(names) != classes:
        raise fail(
            ShapeError,
            "labels",
            f"must name each of the {classes} columns of `{reference}`",
            got=f"{len(names)} names",
        )
    if len(number) != classes:
        twice = next(name for name in names if names.count(name) > 1)
        raise fail(LabelError, "labels", "must be distinct", got=f"{show(twice)} more than once")
    if column.dtype.kind == "O":
        index = np.fromiter((number.get(v, -1) for v in column), dtype=np.intp, count=len(column))
    else:
        distinct, inverse = np.unique(column, return_inverse=True)
        index = np.array([number.get(v, -1) for v in distinct.tolist()], dtype=np.intp)[inverse]
    if (index < 0).any():
        hint = "every label that occurs needs a column; is it spelled alike in both?"
        raise _unexpected(column, np.asarray(index < 0, dtype=bool), f"must be one of `labels` ({show(names)})", hint)
    return index
