"""One column a class, or a label: sums of rows, class numbers, names and their order; predictions that are certain."""

import math
from collections.abc import Hashable, Iterable, Sequence
from os.path import commonprefix
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, FloatArray, IndexArray
from ..errors import LabelError, NormalisationError, ShapeError
from . import fail, phrase, show
from .arrays import as_keys, block, from_torch, is_missing, same_rows, slices
from .classes import (
    as_spelled,
    class_shape,
    clip_for,
    clips_little,
    complete_labels,
    distinct_labels,
    one_form,
    probabilities,
    real_logits,
    unexpected_label,
)

_MOST_MOVE = 0.005  # nat
_DECIMALS = range(2, 7)
_MOST_DECIMALS = 9  # decimals that are looked for
_ROUNDING = 0.01  # that far from 1 a sum of float16 or bfloat16 may come to lie


def row_tolerance(classes: int) -> float:
    """Return how far from 1 a row may sum: so little that ECD moves by at most 0.005 nat.

    Used as given, a row that sums to ``1 + d`` has an excess larger than that of the normalised row by exactly
    ``d (log(1 + d) - h)``, where ``h`` is the entropy of the latter, at most ``log K``. For ``|d| < 0.0099`` that is no
    more than ``|d| (log K + 0.01)``, whatever the row and whatever happened; and a mean moves no more than its rows.
    """
    return _MOST_MOVE / (math.log(classes) + 0.01)


def row_sums(array: AnyArray, name: str, original: Any = None) -> None:
    """Require every row to sum to one, within `row_tolerance`; ``original`` is the argument that became the array."""
    tolerance = row_tolerance(array.shape[1])
    worst, at, count = 0.0, 0, 0
    for part in slices(array):
        sums = array[part].sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1.0)
        count += int((off > tolerance).sum())
        farthest = int(off.argmax())
        if off[farthest] > abs(worst):
            worst, at = float(sums[farthest] - 1.0), part.start + farthest
    if count:
        raise fail(
            NormalisationError, name, f"must sum to 1 in each row, within {tolerance:.3g}",
            got=f"{1.0 + worst:.9g} (off by {worst:+.3g}, the farthest)", place=f"row {at}",
            count=(count, array.shape[0]), hint=_sum_hint(array, name, original, worst, at),
        )  # fmt: skip


def _sum_hint(array: AnyArray, name: str, original: Any, worst: float, at: int) -> str:
    """Say what to type: for rounded values, for short floats, for anything else."""
    short = "bfloat16" if "bfloat16" in str(getattr(original, "dtype", "")) else str(array.dtype)
    wide = name
    if short in ("bfloat16", "float16"):  # their quotients would be rounded again
        wide = f"{name}.float()" if from_torch(original) else f"{name}.astype('float32')"
    divided = f"`{wide} / {wide}.sum(axis=1, keepdims=True)`"
    decimals = _decimals(block(array, slice(at, at + 1))[0], _eps(array))
    if decimals is not None:
        if not any((array[part] == 0).any() for part in slices(array)):
            return phrase("rounded sums", decimals=decimals, divided=divided)
        half_a_unit = 0.5 * 10.0**-decimals
        key = "rounded sums and zeros" if clips_little(half_a_unit, array.shape[1]) else "coarse sums and zeros"
        return phrase(key, decimals=decimals, divided=divided, clip=half_a_unit, classes=array.shape[1])
    if wide != name and abs(worst) < _ROUNDING:
        return phrase("short floats", dtype=short, divided=divided)
    return phrase("other sums", divided=divided)


def _eps(array: AnyArray) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def _decimals(row: FloatArray, eps: float) -> int | None:
    """Return to how many decimals a row looks rounded; None where it does not, or where that is not why it is off."""
    total = float(row.sum())
    for decimals in _DECIMALS:
        scale = 10.0**decimals
        if scale * eps > 0.2 or total == 0.0:  # every float would look like it
            return None
        scaled = row * scale
        if (np.abs(scaled - np.rint(scaled)) <= 0.5 * eps * scaled + 1e-9).all():
            return decimals if abs(total - 1.0) <= (0.5 + 1e-6) * len(row) / scale else None
    return None


def class_prediction(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Check probabilities or logits that come without outcomes, and return them with their name."""
    values, name = one_form(y_prob, logits)
    one_column = class_shape(values, name)
    if name == "logits":
        real_logits(values, name)
    else:
        probabilities(values, name)
        if not one_column:
            row_sums(values, name, y_prob)
    return values, name


def class_outcomes(y_true: AnyArray, n: int, classes: int, reference: str, labels: Any = None) -> IndexArray:
    """Return the column index of the class that happened."""
    column = complete_labels(y_true, n, reference)
    if labels is None or not (isinstance(labels, Iterable) and any(isinstance(name, str) for name in labels)):
        column = as_spelled(column)
    if labels is not None:
        return _labelled_outcomes(column, classes, labels, reference)
    hint = "these are times: is it the right column?" if column.dtype.kind in "mM" else ""
    if column.dtype.kind in "USO" and not all(isinstance(v, int | np.integer) for v in column):
        names = show(sorted(map(str, distinct_labels(column)))[:4])
        hint = phrase("name the classes", name=reference, names=names)
    if hint:
        raise unexpected_label(column, np.ones(n, dtype=bool), phrase("class number", last=classes - 1), hint)
    if column.dtype.kind == "O":
        index = np.fromiter((v if 0 <= v < classes else -1 for v in column), dtype=np.intp, count=n)
    else:
        with np.errstate(invalid="ignore"):
            index = column.astype(np.intp)
    bad = (index != column) | (index < 0) | (index >= classes)
    if bad.any():
        hint = phrase("other names")
        if bool(column.min() == 1) and bool(column.max() == classes):
            hint = phrase("from 1", numbers=_number_list(1, classes))
        rule = f"must be a class number from 0 to {classes - 1}"
        raise unexpected_label(column, np.asarray(bad, dtype=bool), rule, hint)
    return index


def _number_list(first: int, count: int) -> str:
    return str(list(range(first, first + count))) if count <= 5 else f"range({first}, {first + count})"


class FromOne:
    """Class numbers that may have been counted from 1, of rows that come in parts.

    Labels 1 and 2 for three columns are class numbers of which 0 never happened, or were counted from 1. They are
    taken for class numbers where the model expects less than one outcome of class 0, or where the columns they name
    are more probable than the columns before, by two standard errors. Once 0 has happened nothing more is looked at.
    """

    def __init__(self) -> None:
        self._seen: BoolArray | None = None  # which classes have happened
        self._name, self._n = "y_prob", 0
        self._expected = self._total = self._squares = 0.0

    def add(self, index: IndexArray, values: AnyArray, name: str) -> "FromOne":
        """Look at some rows; ``name`` is "y_prob" or "logits"."""
        n, classes = values.shape
        if self._seen is None:
            self._seen, self._name = np.zeros(classes, dtype=bool), name
        if self._seen[0] or classes < 3 or n == 0:
            return self
        self._seen[index] = True
        if self._seen[0]:
            return self
        self._n += n
        for part in slices(values):
            p = block(values, part)
            if name == "logits":
                p = np.exp(p - p.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
            rows = np.arange(len(p))
            ahead = p[rows, index[part]] - p[rows, index[part] - 1]
            self._expected += float(p[:, 0].sum())
            self._total += float(ahead.sum())
            self._squares += float((ahead**2).sum())
        return self

    def __add__(self, other: "FromOne") -> "FromOne":
        """Return what is known of the parts of both, which have as many classes."""
        if self._seen is None or other._seen is None:
            return other if self._seen is None else self
        merged = FromOne()
        merged._seen, merged._name, merged._n = self._seen | other._seen, self._name, self._n + other._n
        merged._expected, merged._total = self._expected + other._expected, self._total + other._total
        merged._squares = self._squares + other._squares
        return merged

    def refuse(self) -> None:
        """Refuse the labels of all rows that were looked at."""
        n, seen = self._n, self._seen
        if seen is None or len(seen) < 3 or n < 2 or seen[0] or not seen[1:].all():
            return
        spread = max(self._squares - self._total**2 / n, 0.0)
        if self._expected < 1.0 or self._total > 2.0 * np.sqrt(spread):
            return
        classes = len(seen)
        names = _number_list(0, classes)
        counted = ", ".join(map(str, range(1, min(classes, 4)))) + (", ..." if classes > 4 else "")
        raise fail(
            LabelError, "y_true", f"must be a class number from 0 to {classes - 1}",
            got=f"{counted} and never 0, which `{self._name}` expects {self._expected:.3g} times",
            hint=phrase("from 1, or never 0", numbers=names),
        )  # fmt: skip


def _labelled_outcomes(column: AnyArray, classes: int, labels: Any, reference: str) -> IndexArray:
    """Return the place of each label among the names of the columns."""
    names = _names_of_columns(labels, classes, reference)
    number = {name: k for k, name in enumerate(names)}
    if column.dtype.kind == "O":
        index = np.fromiter((number.get(v, -1) for v in column), dtype=np.intp, count=len(column))
    else:
        distinct, inverse = np.unique(column, return_inverse=True)
        index = np.array([number.get(v, -1) for v in distinct.tolist()], dtype=np.intp)[inverse]
    if (index < 0).any():
        hint = "every label that occurs needs a column; is it spelled alike in both?"
        rule = phrase("one of labels", names=show(names))
        raise unexpected_label(column, np.asarray(index < 0, dtype=bool), rule, hint)
    return index


def _names_of_columns(labels: Any, count: int, reference: str) -> list[Hashable]:
    """Require a name for each column of ``reference``, all of them different."""
    try:
        names: list[Hashable] = list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        distinct = set(names)
    except TypeError as error:
        raise fail(LabelError, "labels", "must be a list of names", got=show(labels)) from error
    if len(names) != count:
        rule = f"must name each of the {count} columns of `{reference}`"
        raise fail(ShapeError, "labels", rule, got=f"{len(names)} names")
    if len(distinct) != count:
        twice = next(name for name in names if names.count(name) > 1)
        raise fail(LabelError, "labels", "must be distinct", got=f"{show(twice)} more than once")
    return names


_SAID = (("false", "true"), ("no", "yes"), ("neg", "pos"), ("negative", "positive"))  # 0 and 1, in words


def refuse_reversed(columns: Sequence[str], name: str) -> None:
    """Refuse two columns whose names say that the first is that of 1, where outcomes are 0 and 1: by place it is 0."""
    if len(columns) != 2:
        return
    first, second = (column.lower() for column in columns)
    for no, yes in _SAID:
        ends = first.endswith(yes) and second.endswith(no) and first[: -len(yes)] == second[: -len(no)]
        begins = first.startswith(yes) and second.startswith(no) and first[len(yes) :] == second[len(no) :]
        if ends or begins:
            option = "--prob" if name == "y_prob" else "--logits"
            hint = phrase("reversed", name=name, option=option, first=columns[1], second=columns[0])
            rule = "must name the column of 0 before that of 1, where outcomes are 0 and 1"
            raise fail(LabelError, name, rule, got=f"{columns[0]!r} before {columns[1]!r}", hint=hint)


def refuse_other_order(frame: Any, labels: Any, name: str) -> None:
    """Refuse a frame, without importing its library, whose columns name the classes in another order than is meant.

    ``labels`` are the names of the classes, in their order; None where outcomes are their numbers.
    """
    columns = column_names(frame)
    names = [column for column in columns if isinstance(column, str)]
    if not names or len(names) < len(columns):
        return
    if labels is None:
        refuse_reversed(names, name)
        return
    wanted = list(labels)
    common = commonprefix(names)  # noqa: RUF071 (character by character is what is meant)
    for ends in (names, [column[len(common) :] for column in names]):
        if ends != wanted and set(ends) == set(wanted):
            hint = f"pass `labels={show(ends)}`, or `{name}[{show([names[ends.index(label)] for label in wanted])}]`."
            rule = f"must name the classes in the order of the columns of `{name}`"
            raise fail(LabelError, "labels", rule, got=f"{show(wanted)} and {show(names)}", hint=hint)


def label_values(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Return the one form that was given, of shape (n, L), and its name."""
    values, name = one_form(y_prob, logits)
    if values.ndim != 2 or values.shape[1] == 0:
        got, hint = f"shape {values.shape}", "for one label a row leave `by_label` out."
        if values.ndim == 3 and values.shape[2] == 2:
            got += ", a matrix for each label"
            hint = f"take the second column of each label: `np.stack([p[:, 1] for p in {name}], axis=1)`."
        raise fail(ShapeError, name, "must have a column for each label, shape (n, L)", got=got, hint=hint)
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
        unknown = "a label that nobody looked for is not a 0: leave such rows out." if is_missing(value) else None
        raise fail(LabelError, "y_true", "must be 0 or 1 for each label", got=show(value),
                   place=f"row {i}, column {j}", count=(rows, shape[0]), hint=unknown)  # fmt: skip
    return happened


def label_names(y_true: Any, predictions: Any, labels: Any, count: int, reference: str) -> list[Hashable]:
    """Return the names of the labels: those given, else those of the columns of a frame, else their numbers."""
    if labels is not None:
        return _names_of_columns(labels, count, reference)
    names = column_names(y_true) or column_names(predictions) or list(range(count))
    if (others := column_names(predictions)) and names != others:
        hint = f"pass `{reference}[list(y_true.columns)]`."
        raise fail(LabelError, reference, "must have the columns of `y_true`, in their order",
                   got=f"{show(others)} and {show(names)}", hint=hint)  # fmt: skip
    return _names_of_columns(names, count, reference)


def column_names(frame: Any) -> list[Hashable]:
    """Return the names of a frame's columns, without importing its library; none for anything else."""
    columns = getattr(frame, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)


def decimals_of(values: AnyArray) -> int:
    """Return how many decimals numbers have that were rounded; 0 where they were not, or where it cannot be told."""
    rounding = 4.0 * _eps(values)
    exact = values.astype(np.float64, copy=False)
    for decimals in range(1, _MOST_DECIMALS + 1):
        slack = rounding * 10.0**decimals
        if slack > 0.01:  # a float of this size cannot tell
            return 0
        scaled = exact * 10.0**decimals
        if bool((np.abs(scaled - np.rint(scaled)) <= slack).all()):
            return decimals
    return 0


#: What is said of predictions that are all exactly 0 or 1; the number of them stands before it.
LABELS = (
    "predictions are exactly 0 or 1: they look like labels, and a label does not say how sure the model is. Pass"
    " probabilities; in scikit-learn, `predict_proba` gives them."
)


def certain_reason(certain: int, n: int, classes: int, decimals: int = 0, *, labels: bool = False) -> str:
    """Say why predictions of which ``certain`` call an outcome impossible are not safe, and what to type.

    ``decimals`` are those that predictions were rounded to, 0 where they were not; ``labels`` tells that every row
    gives one outcome a probability of exactly 1.
    """
    if labels and n > 1:
        return f"all {n} {LABELS}"
    single = certain == 1
    if classes == 2:
        what = (
            f"{certain} of {n} predictions {'is' if single else 'are'} exactly 0 or 1, and one failure there would be"
            " an infinite surprise."
        )
    else:
        what = (
            f"{certain} of {n} rows {'gives' if single else 'give'} some class a probability of exactly 0, and if that"
            " class happens once, the surprise is infinite."
        )
    clip = clip_for(classes, decimals)
    why = "Rounding makes such predictions, and so does a float32 softmax."
    if decimals:
        why = f"The predictions have {decimals} decimal{'' if decimals == 1 else 's'}, so a 0 may be up to"
        if clip is None:
            much = f"5e-{decimals + 1}, which is too large to clip {classes} classes."
            return f"{what} {why} {much} Pass finite `logits=`, or probabilities with all their digits."
        why = f"{why} {clip}."
    return f"{what} {why} Pass finite `logits=`, or state the smallest probability you mean: `clip={clip}`."
