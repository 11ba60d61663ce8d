"""Probabilities and logits of classes, or of several labels a row: form, range, sums of rows, certainty and clips."""

import math
from typing import Any

import numpy as np

from .._types import AnyArray, ArrayLike, FloatArray
from ..errors import (
    FormError,
    InputError,
    MissingValueError,
    NormalisationError,
    OptionError,
    RangeError,
    ShapeError,
)
from .arrays import as_numbers, block, from_torch, not_empty, refuse, slices
from .message import fail, phrase, show


def one_form(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[AnyArray, str]:
    """Return the one form that was given, and its name."""
    value, name = (y_prob, "y_prob") if logits is None else (logits, "logits")
    if value is None or (y_prob is not None and logits is not None):
        raise fail(
            FormError,
            "y_prob",
            "or `logits` must be given, exactly one of them",
            got="neither" if value is None else "both",
            hint=phrase("a form"),
        )
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
    rule = "must have shape (n,) for two classes or (n, K) with K >= 2"
    if values.ndim == 2 and values.shape[1] == 1:
        hint = f"if it belongs to the positive class, pass `{name}[:, 0]`."
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}", hint=hint)
    if values.ndim not in (1, 2):
        raise fail(ShapeError, name, rule, got=f"shape {values.shape}")
    if values.ndim == 1 and labels is not None:
        hint = phrase("names of columns")
        raise fail(OptionError, "labels", phrase("names columns"), got=phrase("a value a row", name=name),
                   hint=hint)  # fmt: skip
    if values.ndim == 2 and pos_label is not None:
        hint = phrase("one column")
        raise fail(OptionError, "pos_label", phrase("belongs to one"),
                   got=phrase("a value a class", name=name, shape=values.shape), hint=hint)  # fmt: skip
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


def real_logits(array: AnyArray, name: str) -> bool:
    """Refuse NaN, and in a matrix +inf and rows of nothing but -inf; tell whether any value is infinite."""
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
            raise refuse(
                array,
                name,
                lambda x: np.broadcast_to((x.max(axis=1) == -np.inf)[:, None], x.shape),
                RangeError,
                "must have a finite value in each row",
                "a row of nothing but -inf gives no class a probability.",
            )
    return infinite


_MOST_MOVE = 0.005  # nat
_DECIMALS = range(2, 7)
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
        raise _bad_sums(array, name, original, worst, at, count)


def _bad_sums(array: AnyArray, name: str, original: Any, worst: float, at: int, count: int) -> InputError:
    """Build the error for rows that do not sum to one: the farthest, and how many."""
    return fail(
        NormalisationError,
        name,
        f"must sum to 1 in each row, within {row_tolerance(array.shape[1]):.3g}",
        got=f"{1.0 + worst:.9g} (off by {worst:+.3g}, the farthest)",
        place=f"row {at}",
        count=(count, array.shape[0]),
        hint=_sum_hint(array, name, original, worst, at),
    )


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


_MOST_DECIMALS = 9  # decimals that are looked for


def decimals_of(values: AnyArray) -> int:
    """Return how many decimals numbers have that were rounded; 0 where they were not, or where it cannot be told."""
    rounding = 4.0 * float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    exact = values.astype(np.float64, copy=False)
    for decimals in range(1, _MOST_DECIMALS + 1):
        slack = rounding * 10.0**decimals
        if slack > 0.01:  # a float of this size cannot tell
            return 0
        scaled = exact * 10.0**decimals
        if bool((np.abs(scaled - np.rint(scaled)) <= slack).all()):
            return decimals
    return 0


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
        raise fail(
            FormError,
            "clip",
            "applies to `y_prob` only",
            got=f"`{name}`",
            hint=phrase("nothing to clip"),
        )
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


#: What is said of predictions that are all exactly 0 or 1; the number of them stands before it.
LABELS = (
    "predictions are exactly 0 or 1: they look like labels, and a label says nothing of how sure the model is. Pass"
    " probabilities: of scikit-learn, those of `predict_proba`."
)


def certain_reason(certain: int, n: int, classes: int, decimals: int = 0, *, labels: bool = False) -> str:
    """Say why predictions of which ``certain`` call an outcome impossible are not safe, and what to type.

    Parameters
    ----------
    certain, n : int
        Rows that give some outcome a probability of exactly 0, and all rows.
    classes : int
        How many outcomes there are.
    decimals : int, default 0
        To how many decimals predictions were rounded; 0 where they were not.
    labels : bool, default False
        Whether every row gives one outcome a probability of exactly 1.

    Returns
    -------
    str
        Some sentences, the last of which ends with a line to paste.
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
            much = f"5e-{decimals + 1}, too much to clip {classes} classes at."
            return f"{what} {why} {much} Pass finite `logits=`, or probabilities with all their digits."
        why = f"{why} {clip}."
    return f"{what} {why} Pass finite `logits=`, or state the smallest probability you mean: `clip={clip}`."
