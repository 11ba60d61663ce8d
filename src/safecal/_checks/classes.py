"""Probabilities and logits: their form, range and clips; and what happened of two outcomes."""

import math
import sys
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, IndexArray
from ..errors import (
    DtypeError,
    FormError,
    InputError,
    LabelError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
)
from . import fail, phrase, show
from .arrays import (
    as_keys,
    as_numbers,
    bad_rows,
    block,
    is_missing,
    is_text,
    not_empty,
    refuse,
    same_rows,
    slices,
    spelled_labels,
)


def one_form(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Return the one form that was given, and its name."""
    value, name = (y_prob, "y_prob") if logits is None else (logits, "logits")
    if value is None or (y_prob is not None and logits is not None):
        rule, got = "or `logits` must be given, exactly one of them", "neither" if value is None else "both"
        raise fail(FormError, "y_prob", rule, got=got, hint=phrase("a form"))
    array = as_numbers(value, name)
    not_empty(array, name)
    return array, name


def refuse_arrays(source: str, **arrays: Any) -> None:
    """Refuse what belongs to arrays beside a source that was made from them."""
    for name, value in arrays.items():
        if value is not None:
            hint = f"leave `{name}` out, or pass arrays alone."
            raise fail(OptionError, name, "belongs to arrays", got=f"{source}, which hold theirs already", hint=hint)


def class_shape(values: AnyArray, name: str, pos_label: Any = None, labels: Any = None) -> bool:
    """Tell whether there is one value a row, or one a class; refuse other shapes and the labels of the other one."""
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[1] == 1):
        rule = "must have shape (n,) for two classes or (n, K) with K >= 2"
        hint = f"if it belongs to the positive class, pass `{name}[:, 0]`." if values.ndim == 2 else None
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}", hint=hint)
    if values.ndim == 1 and labels is not None:
        rule, got = phrase("names columns"), phrase("a value a row", name=name)
        raise fail(OptionError, "labels", rule, got=got, hint=phrase("names of columns"))
    if values.ndim == 2 and pos_label is not None:
        rule, got = phrase("belongs to one"), phrase("a value a class", name=name, shape=values.shape)
        raise fail(OptionError, "pos_label", rule, got=got, hint=phrase("one column"))
    return values.ndim == 1


def probabilities(array: AnyArray, name: str) -> None:
    """Require every value in [0, 1]."""
    for part in slices(array):
        values = array[part]
        if not (_at_most_one(values) or (values.min() >= 0 and values.max() <= 1)):  # NaN fails all
            raise _bad_probability(array, name)


# The bits of floats from 0 on are in the order of the floats; NaN, and whatever has a sign, comes behind them all.
_BITS_OF_ONE = {np.dtype(kind): np.ones(1, kind).view(bits)[0] for kind, bits in (("f4", "u4"), ("f8", "u8"))}


def _at_most_one(values: AnyArray) -> bool:
    """Tell, in one look at them, whether floats lie in [0, 1] and none is -0; False where that takes another look."""
    bits_of_one = _BITS_OF_ONE.get(values.dtype)
    return bits_of_one is not None and bool(values.view(bits_of_one.dtype).max() <= bits_of_one)


def any_zero(array: AnyArray) -> bool:
    """Tell whether a value is 0."""
    return any(bool(array[part].min() == 0) for part in slices(array))


def _bad_probability(array: AnyArray, name: str) -> InputError:
    """Build the error for values outside [0, 1], with the move that their range suggests."""
    if any(np.isnan(block(array, part)).any() for part in slices(array)):
        return refuse(array, name, np.isnan, MissingValueError, "must not be NaN", phrase("drop"))
    rule, hint = "must lie in [0, 1]", None
    low = min(float(array[part].min()) for part in slices(array))
    high = max(float(array[part].max()) for part in slices(array))
    if low >= -1e-3 and high <= 1 + 1e-3:
        hint = phrase("out by rounding", name=name)
    elif low >= 0 and high <= 100 and high > 2:
        hint = phrase("percentages", name=name)
    elif np.isfinite(low) and np.isfinite(high):
        hint = phrase("log-odds")
    return refuse(array, name, lambda x: (x < 0) | (x > 1), RangeError, rule, hint)


_LOOKED_AT, _NEAR_ONE = 16, 0.02  # values of classes that settle it, and how far short floats take a sum from 1


def telling_rows(classes: int) -> int:
    """Return how many rows tell logits from probabilities."""
    return 1 + _LOOKED_AT // (classes - 1)


def refuse_probabilities(array: AnyArray, name: str, hint: str | None = None) -> None:
    """Refuse logits of classes that are probabilities: their softmax is vague, however sure the model is.

    No logits lie in [0, 1] and sum to 1 in every row. A look at a few rows ends most searches.
    """
    few = telling_rows(array.shape[1])
    if len(array) >= few and _distributions(array[:few]) and all(_distributions(array[p]) for p in slices(array)):
        rule, got = "must be unnormalised log-probabilities", "rows that lie in [0, 1] and sum to 1"
        raise fail(FormError, name, rule, got=got, hint=hint or phrase("probabilities"))


def _distributions(rows: AnyArray) -> bool:
    if not rows.min() >= 0:
        return False
    with np.errstate(over="ignore"):
        return bool((np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) <= _NEAR_ONE).all())


def real_logits(array: AnyArray, name: str) -> bool:
    """Refuse NaN, and in a matrix +inf and rows of nothing but -inf; tell whether any value is infinite."""
    if array.ndim == 2:
        refuse_probabilities(array, name)
    infinite = False
    for part in slices(array):
        values = array[part]
        low, high = np.float64(values.min()), np.float64(values.max())
        if np.isnan(low) or np.isnan(high):
            raise refuse(array, name, np.isnan, MissingValueError, "must not be NaN", phrase("drop"))
        with np.errstate(invalid="ignore", over="ignore"):
            infinite = infinite or not np.isfinite(high - low)
        if array.ndim == 2 and high == np.inf:
            rule = "must be finite or -inf"
            raise refuse(array, name, np.isposinf, RangeError, rule, "a +inf logit has no softmax.")
        if array.ndim == 2 and low == -np.inf and bool((values.max(axis=1) == -np.inf).any()):
            hint = "a row of only -inf gives no class a probability."
            raise refuse(array, name, _nothing_finite, RangeError, "must have a finite value in each row", hint)
    return infinite


def _nothing_finite(rows: AnyArray) -> BoolArray:
    return np.broadcast_to((rows.max(axis=1) == -np.inf)[:, None], rows.shape)


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
        raise fail(DtypeError, "y_true", "must hold labels: numbers, True and False, or text", got=got, hint=hint)


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


def complete_labels(labels: AnyArray, n: int, reference: str) -> AnyArray:
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


def distinct_labels(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return list(np.unique(labels).tolist())


def unexpected_label(labels: AnyArray, bad: BoolArray, rule: str, hint: str) -> InputError:
    return bad_rows(bad, LabelError, "y_true", rule, got=lambda row: show(labels[row]), hint=hint)


def binary_outcomes(y_true: AnyArray, n: int, reference: str, pos_label: Any = None, whole: bool = False) -> BoolArray:
    """Return True where the positive outcome happened; it must, where these are the ``whole`` rows."""
    labels = complete_labels(y_true, n, reference)
    if not isinstance(pos_label, str):
        labels = as_spelled(labels)
    if pos_label is not None:
        positive = _named_outcomes(labels, pos_label)
        if whole and not positive.any():
            raise never_occurs(pos_label, list(map(show, distinct_labels(labels))))
        return positive
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind in "US" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels)):
        names = distinct_labels(labels)[:5]
        hint = phrase("positive, for example", label=names[-1])
        raise unexpected_label(labels, np.ones(n, dtype=bool), phrase("zero or one"), hint)
    if labels.dtype.kind in "iu" and all(_zeros_and_ones(labels[part]) for part in slices(labels)):
        return _lowest_bytes(labels)
    positive = np.asarray(labels == 1, dtype=bool)
    bad = ~(positive | np.asarray(labels == 0, dtype=bool))
    if bad.any():
        hint = phrase("positive")
        if labels.dtype.kind == "f" and bool((labels[bad] % 1 != 0).any()):
            hint = phrase("a tie")
        raise unexpected_label(labels, bad, "must be 0 or 1", hint)
    return positive


def as_spelled(labels: AnyArray) -> AnyArray:
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
        raise never_occurs(pos_label, list(map(show, distinct_labels(labels))), comparable=False)
    positive = equal_labels(labels, pos_label)
    others = distinct_labels(labels[~positive])
    if len(others) > 1:
        if not positive.any():
            raise never_occurs(pos_label, list(map(show, others)))
        rule, got = phrase("one other label", label=show(pos_label)), ", ".join(map(show, others[:5]))
        raise fail(LabelError, "y_true", rule, got=f"{len(others)} others: {got}", hint=phrase("a column a class"))
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


# The smallest probability that is meant: how much of a prediction it may move, and when it is offered

_MOST_CLIPPED = 0.02  # of the probability of a row, beyond which another model is judged


def clips_little(clip: float, classes: int) -> bool:
    """Tell whether a clip moves so little of the probability that it is still the same model that is judged.

    At most ``K - 1`` classes of a row are moved up to the clip, and what they gain the likeliest one loses: a network
    of 100 classes that is far too sure is vague with ``clip=0.005``, and SAFE.
    """
    return (classes - 1) * clip <= _MOST_CLIPPED * (1.0 + 1e-9)


def largest_clip(classes: int) -> str:
    """Return the largest clip that is allowed, as it is typed."""
    most = _MOST_CLIPPED / (classes - 1)
    unit = 10.0 ** (math.floor(math.log10(most)) - 1)
    return f"{math.floor(most / unit + 1e-6) * unit:.2g}"


def clip_value(clip: Any, name: str, classes: int) -> float | None:
    """Require ``0 < clip < 1/classes``, probabilities to clip, and so little that they stay what they are."""
    if clip is None:
        return None
    if name != "y_prob":
        raise fail(FormError, "clip", "applies to `y_prob` only", got=f"`{name}`", hint=phrase("nothing to clip"))
    if not isinstance(clip, int | float | np.number) or not 0.0 < clip < 1.0 / classes:
        raise fail(RangeError, "clip", f"must lie strictly between 0 and 1/{classes}", got=show(clip))
    if not clips_little(float(clip), classes):
        most = largest_clip(classes)
        rule = (
            f"must be at most {most} for {classes} classes, because more would move over {100.0 * _MOST_CLIPPED:g} % of"
            " the probability of a row, and judge another, vaguer model"
        )
        raise fail(RangeError, "clip", rule, got=show(clip), hint=phrase("smaller clip", most=most))
    return float(clip)


def clip_note(clip: float | None) -> tuple[str, ...]:
    """Return what to say beside the result of clipped probabilities."""
    if clip is None:
        return ()
    typed = f"{clip:g}".replace("e-0", "e-")
    return (f"probabilities were clipped to [{typed}, 1 - {typed}].",)


def clip_for(classes: int, decimals: int = 0) -> str | None:
    """Return the smallest probability to suggest, as it is typed; None where it would move too much.

    Half a unit of the last decimal, where that is known. 1e-7 is what float32 resolves near 1, and less than half a
    unit of six decimals. Zeros moved up to ``c`` add about ``K c log(1/c)`` nat to the entropy of a row at most: beyond
    1000 classes it shrinks, so that this stays near 0.002.
    """
    if decimals:
        return f"5e-{decimals + 1}" if clips_little(0.5 * 10.0**-decimals, classes) else None
    return f"1e-{7 + max(math.ceil(math.log10(classes)) - 3, 0)}"
