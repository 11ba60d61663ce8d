"""What happened: labels of two classes or more, or several labels a row, as truths or class numbers."""

import sys
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, IndexArray
from ..errors import (
    DtypeError,
    InputError,
    LabelError,
    MissingValueError,
    ShapeError,
)
from .arrays import as_keys, bad_rows, block, is_missing, is_text, same_rows, slices, spelled_labels
from .message import fail, phrase, show


def outcome_column(y_true: ArrayLike, values: AnyArray, name: str) -> AnyArray:
    """Return outcomes as an array of shape (n,); other things are refused before the predictions are looked at."""
    labels = as_keys(y_true, "y_true")
    _require_labels(labels)
    if _swapped(labels, values):
        raise fail(
            LabelError, "y_true", "must hold what happened",
            got=f"numbers between 0 and 1, and whole numbers as `{name}`",
            hint=phrase("swapped", argument="logits=logits" if name == "logits" else name),
        )  # fmt: skip
    if labels.ndim == 1:
        return labels
    got, hint = f"shape {labels.shape}", None
    if labels.ndim == 2 and labels.shape[1] == 1:
        hint = "pass `y_true[:, 0]`."
    elif labels.ndim == 2:
        ones = _ones(labels)
        if ones is not None and (ones == 1).all():
            hint = "for one-hot rows pass `y_true.argmax(axis=1)`."
        elif ones is not None:
            row = int(ones.argmax())
            got += f" with {ones[row]} ones in row {row}: several labels a row"
            argument = "logits=logits" if name == "logits" else name
            hint = f"evaluate every label with `evaluate(y_true, {argument}, by_label=True)`."
    raise fail(ShapeError, "y_true", "must be one label for each row, shape (n,)", got=got, hint=hint)


def _require_labels(labels: AnyArray) -> None:
    """Refuse what compares with a label and is none: structures, raw bytes, complex numbers."""
    strange = labels.dtype.kind in "cV"
    if labels.dtype.kind == "O":
        strange = any(isinstance(v, complex | np.complexfloating | np.void) for v in labels.reshape(-1))
    if strange:
        got = f"dtype {labels.dtype}" if labels.dtype.kind != "O" else "complex numbers or structures among objects"
        hint = "is it the right column? A field of a structure is one: `y_true['name']`."
        raise fail(DtypeError, "y_true", "must hold labels: numbers, truths or text", got=got, hint=hint)


def _swapped(labels: AnyArray, values: AnyArray) -> bool:
    """Tell whether outcomes look like probabilities, and probabilities like outcomes."""
    if labels.dtype.kind != "f" or labels.size == 0 or not _whole(values.reshape(-1)[:64]):  # most end here
        return False
    with np.errstate(invalid="ignore"):
        inside = all(bool(((labels[part] >= 0) & (labels[part] <= 1)).all()) for part in slices(labels))
    if not inside or all(_whole(labels[part]) for part in slices(labels)):
        return False
    return all(_whole(values[part]) and bool((values[part] >= 0).all()) for part in slices(values))


def _whole(values: AnyArray) -> bool:
    with np.errstate(invalid="ignore"):
        return values.dtype.kind in "biu" or bool((values % 1 == 0).all())


def _ones(labels: AnyArray) -> IndexArray | None:
    """Return how many ones each row of a matrix holds; None where it holds anything but zeros and ones."""
    ones = np.asarray(labels == 1)
    return ones.sum(axis=1) if bool((ones | np.asarray(labels == 0)).all()) else None


def _complete_labels(labels: AnyArray, n: int, reference: str) -> AnyArray:
    """Require as many labels as rows, none of them missing."""
    same_rows("y_true", len(labels), n, reference)
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
    elif labels.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, labels), dtype=bool, count=n)
    else:
        return labels
    if missing.any():
        rule = "must not hold missing values"
        raise bad_rows(
            missing, MissingValueError, "y_true", rule, got=lambda row: show(labels[row]), hint=phrase("drop")
        )
    return labels


def _distinct(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return list(np.unique(labels).tolist())


def _unexpected(labels: AnyArray, bad: BoolArray, rule: str, hint: str) -> InputError:
    return bad_rows(bad, LabelError, "y_true", rule, got=lambda row: show(labels[row]), hint=hint)


def binary_outcomes(y_true: AnyArray, n: int, reference: str, pos_label: Any = None, whole: bool = False) -> BoolArray:
    """Return True where the positive outcome happened; it must, where these are the ``whole`` rows."""
    labels = _complete_labels(y_true, n, reference)
    if not isinstance(pos_label, str):
        labels = _as_spelled(labels)
    if pos_label is not None:
        positive = _named_outcomes(labels, pos_label)
        if whole and not positive.any():
            raise never_occurs(pos_label, list(map(show, _distinct(labels))))
        return positive
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind in "US" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels)):
        names = _distinct(labels)[:5]
        hint = phrase("positive, for example", label=names[-1])
        raise _unexpected(labels, np.ones(n, dtype=bool), phrase("zero or one"), hint)
    if labels.dtype.kind in "iu" and all(_zeros_and_ones(labels[part]) for part in slices(labels)):
        return _lowest_bytes(labels)
    positive = np.asarray(labels == 1, dtype=bool)
    bad = ~(positive | np.asarray(labels == 0, dtype=bool))
    if bad.any():
        hint = phrase("positive")
        if labels.dtype.kind == "f" and bool((labels[bad] % 1 != 0).any()):
            hint = phrase("a tie")
        raise _unexpected(labels, bad, "must be 0 or 1", hint)
    return positive


def _as_spelled(labels: AnyArray) -> AnyArray:
    """Return text as numbers, where every label is one; no name is compared with them."""
    numbers = spelled_labels(labels) if is_text(labels) else None
    return labels if numbers is None else numbers


def _zeros_and_ones(labels: AnyArray) -> bool:
    # Without a sign, a negative number is a large one: so one look at them is enough.
    return bool(labels.view(labels.dtype.str.replace("i", "u")).max() <= 1)


def _lowest_bytes(labels: AnyArray) -> BoolArray:
    """Return whole numbers that are 0 or 1 as truths, without a copy: the lowest byte of each says it all."""
    if not labels.flags.c_contiguous:
        return np.asarray(labels == 1, dtype=bool)
    size = labels.dtype.itemsize
    little = labels.dtype.byteorder == "<" or (labels.dtype.byteorder in "=|" and sys.byteorder == "little")
    return np.asarray(labels.view(np.bool_)[(0 if little else size - 1) :: size])


def _named_outcomes(labels: AnyArray, pos_label: Any) -> BoolArray:
    """Return True where the positive label stands; there may be one other label at most."""
    textual = labels.dtype.kind in "US"
    if labels.dtype.kind != "O" and textual != isinstance(pos_label, str | bytes):
        raise never_occurs(pos_label, list(map(show, _distinct(labels))), comparable=False)
    positive = equal_labels(labels, pos_label)
    others = _distinct(labels[~positive])
    if len(others) > 1:
        if not positive.any():
            raise never_occurs(pos_label, list(map(show, others)))
        raise fail(
            LabelError,
            "y_true",
            phrase("one other label", label=show(pos_label)),
            got=f"{len(others)} others: {', '.join(map(show, others[:5]))}",
            hint=phrase("a column a class"),
        )
    return positive


def equal_labels(labels: AnyArray, label: Any) -> BoolArray:
    """Compare as Python does, exactly: NumPy makes floats of whole numbers first where one side is a float."""
    if labels.dtype.kind == "O":
        return np.fromiter((v == label for v in labels), bool, len(labels))
    if isinstance(label, np.generic):
        label = label.item()
    if labels.dtype.kind in "iu" and isinstance(label, float):
        if not label.is_integer():
            return np.zeros(len(labels), dtype=bool)
        label = int(label)
    elif labels.dtype.kind == "f" and isinstance(label, int):
        if label.bit_length() > 1023 or label != int(float(label)):
            return np.zeros(len(labels), dtype=bool)
        label = float(label)
    return np.asarray(labels == label, dtype=bool)


def never_occurs(pos_label: Any, others: list[str], comparable: bool = True) -> InputError:
    """Build the error for a positive label that is nowhere among the outcomes; ``others`` are there, as typed."""
    shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
    hint = phrase("never happened" if comparable else "never occurs", shown=shown, label=show(pos_label))
    got = f"{show(pos_label)}, which never occurs"
    return fail(LabelError, "pos_label", phrase("a label that occurs"), got=got, hint=hint)


def class_outcomes(y_true: AnyArray, n: int, classes: int, reference: str, labels: Any = None) -> IndexArray:
    """Return the column index of the class that happened."""
    column = _complete_labels(y_true, n, reference)
    if labels is None or not (isinstance(labels, Iterable) and any(isinstance(name, str) for name in labels)):
        column = _as_spelled(column)
    if labels is not None:
        return _labelled_outcomes(column, classes, labels, reference)
    if column.dtype.kind in "USO" and not all(isinstance(v, int | np.integer) for v in column):
        names = show(sorted(map(str, _distinct(column)))[:4])
        hint: str = phrase("name the classes", name=reference, names=names)
        rule = phrase("class number", last=classes - 1)
        raise _unexpected(column, np.ones(n, dtype=bool), rule, hint)
    if column.dtype.kind in "mM":
        rule = phrase("class number", last=classes - 1)
        raise _unexpected(column, np.ones(n, dtype=bool), rule, "these are times: is it the right column?")
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
        raise _unexpected(column, np.asarray(bad, dtype=bool), f"must be a class number from 0 to {classes - 1}", hint)
    return index


def _number_list(first: int, count: int) -> str:
    return str(list(range(first, first + count))) if count <= 5 else f"range({first}, {first + count})"


def refuse_shifted(index: IndexArray, values: AnyArray, name: str) -> None:
    """Refuse every class number but 0, where the predictions do not bear them out."""
    numbering = FromOne()
    numbering.add(index, values, name)
    numbering.refuse()


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

    def add(self, index: IndexArray, values: AnyArray, name: str) -> None:
        """Look at some rows; ``name`` is "y_prob" or "logits"."""
        n, classes = values.shape
        if self._seen is None:
            self._seen, self._name = np.zeros(classes, dtype=bool), name
        if self._seen[0] or classes < 3 or n == 0:
            return
        self._seen[index] = True
        if self._seen[0]:
            return
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
        raise _unexpected(column, np.asarray(index < 0, dtype=bool), phrase("one of labels", names=show(names)), hint)
    return index


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
    names = _column_names(y_true) or _column_names(predictions) or list(range(count))
    if (others := _column_names(predictions)) and names != others:
        hint = f"pass `{reference}[list(y_true.columns)]`."
        raise fail(LabelError, reference, "must have the columns of `y_true`, in their order",
                   got=f"{show(others)} and {show(names)}", hint=hint)  # fmt: skip
    return _names_of_columns(names, count, reference)


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


def _column_names(frame: Any) -> list[Hashable]:
    """Return the names of a frame's columns, without importing its library; none for anything else."""
    columns = getattr(frame, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)
