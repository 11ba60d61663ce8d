"""Anything array-like becomes a NumPy array, with no value changed on the way; and rows that belong together."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from numbers import Integral, Rational
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, BoolArray, FloatArray, IndexArray, Rows
from ..errors import (
    AlignmentError,
    DtypeError,
    EmptyError,
    InputError,
    LabelError,
    MissingValueError,
    RangeError,
    ShapeError,
)
from . import fail, phrase, show

# A code such as 007 is a name, not a number: read as one it could be another label's.
LEADING_ZERO = r"^\s*[+-]?0[0-9]"
_DIGITS = re.compile(r"\s*[+-]?[0-9]+\s*")
_EXACT_UP_TO = 2**53  # from here on a float64 is not every whole number
_SAMPLE = 32  # values that are looked at before all of them are
TRUTHS = ("true", "false")
_VARIED = 3  # errors of a run that differ: fewer may be those of another run by chance


def is_text(values: AnyArray) -> bool:
    """Tell whether an array holds text and nothing else."""
    if values.dtype.kind == "O":
        return values.size > 0 and all(isinstance(value, str) for value in values.reshape(-1))
    return values.dtype.kind == "U"


def spelled_numbers(text: AnyArray) -> AnyArray | None:
    """Return text as floats; None where some of it is no number."""
    try:
        # Python reads 1_000 as a number, which nothing that writes tables means.
        if any("_" in value for value in text[:_SAMPLE].reshape(-1).tolist()):
            return None
        return np.asarray(text.astype(np.str_).astype(np.bytes_).astype(np.float64))  # digits of other scripts are none
    except ValueError:
        return None


def spelled_labels(text: AnyArray) -> AnyArray | None:
    """Return text as truths, whole numbers or floats; None where it is words, or a number begins with a 0 too many.

    Examples
    --------
    >>> import numpy as np
    >>> spelled_labels(np.array(["0", "1"])), spelled_labels(np.array(["01", "1"]))
    (array([0, 1]), None)
    """
    if spelled_numbers(text[:_SAMPLE]) is None:  # words, as a rule
        lower = np.char.lower(text.astype(np.str_)) if text[0].lower() in TRUTHS else None
        return np.asarray(lower == "true") if lower is not None and np.isin(lower, TRUTHS).all() else None
    distinct, inverse = np.unique(text.astype(np.str_), return_inverse=True)
    names = distinct.tolist()
    if any(re.match(LEADING_ZERO, name) or "_" in name for name in names):
        return None
    if all(_DIGITS.fullmatch(name) for name in names):
        integers = [int(name) for name in names]
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(integers) and max(integers) <= np.iinfo(dtype).max:
                return np.array(integers, dtype=dtype)[inverse]
        return None
    numbers = spelled_numbers(distinct)
    if numbers is None or any(_DIGITS.fullmatch(name) and abs(int(name)) > _EXACT_UP_TO for name in names):
        return None
    return np.asarray(numbers[inverse])


# Rows are checked this many elements at a time: a check never copies a large input, and a second look finds it in the
# cache of a core.
_ELEMENTS = 1 << 16


def from_torch(value: Any) -> bool:
    """Tell whether this is a torch tensor, without importing torch."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _tensor(value: Any) -> AnyArray:
    tensor = value.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no bfloat16; every one of them is a float32
        tensor = tensor.float()
    return np.asarray(tensor.resolve_neg().numpy())


def as_array(value: object, name: str) -> AnyArray:
    """Return ``value`` as a NumPy array, sharing memory where that is possible."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.atleast_1d(np.ma.getmaskarray(value))
        masked = np.asarray(mask.any(axis=tuple(range(1, mask.ndim))))
        if masked.any():
            rule = "must not hold masked values"
            raise bad_rows(masked, MissingValueError, name, rule, got="a masked value", hint=phrase("drop"))
        value = value.data
    try:
        array = _tensor(value) if from_torch(value) else np.asarray(value)
    except (ValueError, TypeError) as error:
        got = f"a {type(value).__name__} that NumPy cannot read"
        raise fail(ShapeError, name, "must be an array or a list of rows of equal length", got=got) from error
    if array.dtype.name == "bfloat16":  # of ml_dtypes, as JAX has it: a float32, too
        array = array.astype(np.float32)
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:  # memory that was not NumPy's
        array = array.view(np.uint8) != 0
    if array.ndim == 0:
        got = f"{show(array)} of type {type(value).__name__}"
        hint = f"wrap one row in a list: `[{name}]`." if isinstance(value, int | float | str | np.generic) else None
        raise fail(ShapeError, name, "must be a column of values, one for each row", got=got, hint=hint)
    return array


def as_keys(value: object, name: str) -> AnyArray:
    """Return labels or keys as an array, every whole number as it is.

    NumPy makes floats of whole numbers beside a missing one, beside floats, or beyond 64 bits, and floats of this size
    do not tell neighbours apart. Then the numbers stay objects.
    """
    array = as_array(value, name)
    if array.dtype.kind != "f" or getattr(getattr(value, "dtype", None), "kind", "O") == "f":
        return array
    with np.errstate(invalid="ignore"):
        large = bool((np.abs(array) >= _EXACT_UP_TO).any())
    return np.asarray(value, dtype=object) if large else array


def is_missing(value: Any) -> bool:
    """Tell whether an element of an object column is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except ArithmeticError:  # a signalling NaN of decimal
        return True
    except (TypeError, ValueError):
        return False


def _frame_numbers(value: Any, objects: AnyArray) -> AnyArray:
    """Return a pandas frame of numbers in dtypes of its own, which NumPy sees as objects, as floats; others as seen."""
    if type(value).__module__.partition(".")[0] != "pandas" or not hasattr(value, "columns"):
        return objects
    if any(getattr(dtype, "kind", "O") not in "iuf" for dtype in value.dtypes):
        return objects
    return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))


def as_numbers(value: object, name: str) -> AnyArray:
    """Return a real array (float16 to float64 or integer), also of numbers that are written as text.

    Whatever would need a guess or rounding is refused.
    """
    array = as_array(value, name)
    if array.dtype.kind == "O":
        array = _frame_numbers(value, array)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array
    if array.dtype.kind in "iu":
        return array
    if is_text(array):
        spelled = spelled_numbers(array)
        if spelled is not None:
            return spelled
    if array.dtype.kind == "O":
        flat = array.reshape(len(array), -1) if array.size else array.reshape(0, 1)
        missing = np.fromiter((any(map(is_missing, row)) for row in flat), dtype=bool, count=len(flat))
        if missing.any():
            value = next(v for v in flat[missing][0] if is_missing(v))
            rule = "must not hold missing values"
            raise bad_rows(missing, MissingValueError, name, rule, got=show(value), hint=phrase("drop"))
    got = f"dtype {array.dtype}"
    objects = array.reshape(-1) if array.dtype.kind == "O" else ()
    exact = next((v for v in objects if isinstance(v, Decimal | Rational) and not isinstance(v, Integral)), None)
    if exact is not None:
        got = f"{type(exact).__name__} objects"
        hint = f"convert them to the nearest floats yourself: `np.asarray({name}, dtype=float)`."
    elif array.dtype.kind == "b" and name == "y_prob":
        hint = phrase("decisions")
    elif array.dtype.kind in "bO":
        hint = phrase("convert", name=name)
    elif array.dtype.kind in "US":
        hint = "the column holds text: is it the right column?"
    elif array.dtype.kind != "f":
        hint = "is it the right column?"
    else:
        hint = f"convert it yourself, for example `{name}.astype(float)`, if the rounding is what you want."
    raise fail(DtypeError, name, "must be real numbers of at most 64 bits", got=got, hint=hint)


def not_empty(array: AnyArray, name: str) -> None:
    """Require at least one row."""
    if array.shape[0] == 0:
        raise fail(EmptyError, name, "must have at least one row", got="none")


def same_rows(argument: str, rows: int, n: int, reference: str) -> None:
    """Require as many rows in ``argument`` as in ``reference``."""
    if rows != n:
        hint = "both must come from the same rows, in the same order."
        raise fail(ShapeError, argument, f"must have as many rows as `{reference}`", got=f"{rows} and {n}", hint=hint)


def slices(array: AnyArray) -> Iterator[slice]:
    """Cut the rows of an array into slices of a bounded number of elements."""
    width = int(np.prod(array.shape[1:], dtype=np.int64)) or 1
    step = max(1, _ELEMENTS // width)
    for start in range(0, array.shape[0], step):
        yield slice(start, min(start + step, array.shape[0]))


def block(array: AnyArray, rows: Rows) -> FloatArray:
    """Return some rows as contiguous native float64: exact for floats, and for integers up to 2**53."""
    return np.ascontiguousarray(array[rows], dtype=np.float64)


def place(index: tuple[int, ...], base: int = 0) -> str:
    """Say where an element stands."""
    names = ["row", "column"] if len(index) <= 2 else ["row", "line", "column"]
    shifted = (index[0] + base, *index[1:])
    return ", ".join(f"{word} {i}" for word, i in zip(names, shifted, strict=False))


def bad_rows(
    bad: BoolArray,
    error: type[InputError],
    name: str,
    rule: str,
    *,
    got: str | Callable[[int], str] | None,
    hint: str | None = None,
    start: int = 0,
) -> InputError:
    """Build the error for the rows for which ``bad`` holds: the first one, and how many there are.

    ``got`` says what stands there: a text, or a function of the number of the first one. ``start`` is the number of the
    first row.
    """
    first = int(bad.argmax())
    text = got(first) if callable(got) else got
    return fail(error, name, rule, got=text, place=f"row {start + first}", count=(int(bad.sum()), len(bad)), hint=hint)


def refuse(
    array: AnyArray,
    name: str,
    bad: Callable[[FloatArray], BoolArray],
    error: type[InputError],
    rule: str,
    hint: str | None,
) -> InputError:
    """Build the error for the elements for which ``bad`` holds: the first one, its place, how many rows."""
    first: tuple[str, str] | None = None
    rows = 0
    for part in slices(array):
        values = block(array, part)
        mask = bad(values)
        hit = mask.reshape(len(mask), -1).any(axis=1)
        rows += int(hit.sum())
        if first is None and hit.any():
            index = tuple(int(i) for i in np.argwhere(mask)[0])
            first = show(array[part][index]), place(index, part.start)
    got, where = first if first is not None else ("?", "?")
    return fail(error, name, rule, got=got, place=where, count=(rows, array.shape[0]), hint=hint)


def require_finite(array: AnyArray, name: str, *, infinite: bool = False) -> None:
    """Refuse NaN, and infinite numbers unless they are allowed."""
    if array.dtype.kind != "f" or all(bool(np.isfinite(array[part]).all()) for part in slices(array)):
        return
    if any(bool(np.isnan(array[part]).any()) for part in slices(array)):
        raise refuse(array, name, np.isnan, MissingValueError, "must not be NaN", phrase("drop"))
    if not infinite:
        raise refuse(array, name, np.isinf, RangeError, "must be finite", None)


# Rows that belong together


class RowLabels(NamedTuple):
    """The labels of the rows, and the argument that brought them."""

    name: str
    index: Any


def _index(value: Any) -> Any:
    """Return the index of a Series or a frame, without importing pandas; a list has a method of that name."""
    index = getattr(value, "index", None)
    return None if callable(index) or not callable(getattr(index, "equals", None)) else index


def row_labels(**columns: Any) -> RowLabels | None:
    """Return the labels of the first column that has some; refuse another column that has others."""
    labels: RowLabels | None = None
    for name, value in columns.items():
        if labels is None:
            index = _index(value)
            labels = None if index is None else RowLabels(name, index)
        else:
            same_labels(labels, **{name: value})
    return labels


def same_labels(labels: RowLabels | None, **columns: Any) -> None:
    """Refuse a column, or a column of a mapping, whose rows are labelled otherwise."""
    if labels is None:
        return
    for name, value in columns.items():
        if isinstance(value, Mapping):
            for key, column in value.items():
                _require_same_index(labels, f"{name}[{key!r}]", column)
        else:
            _require_same_index(labels, name, value)


def _require_same_index(labels: RowLabels, name: str, value: Any) -> None:
    index = _index(value)
    if index is not None and index is not labels.index and not index.equals(labels.index):
        raise _different_index(labels, name, index)


def _different_index(labels: RowLabels, name: str, index: Any) -> InputError:
    """Build the error for rows that pandas labels otherwise."""
    wanted, reference = labels.index, labels.name
    rule = f"must have the same index as `{reference}`"
    picked = f"`{name}.loc[{reference}.index]`"
    known = bool(index.is_unique and wanted.isin(index).all())
    if len(index) != len(wanted):
        hint = "both must come from the same rows, in the same order."
        if known and len(index) > len(wanted):
            hint = f"if these are more rows than those of `{reference}`, pass {picked}."
        rule = f"must have as many rows as `{reference}`"
        return fail(ShapeError, name, rule, got=f"{len(index)} and {len(wanted)}", hint=hint)
    a, b = np.asarray(index, dtype=object), np.asarray(wanted, dtype=object)
    differ = np.fromiter((x is not y and bool(x != y) for x, y in zip(a, b, strict=True)), bool, len(a))
    hint = f"if rows belong together by their position, pass `{name}.to_numpy()`."
    if known:
        hint = f"the labels are the same in another order: pass {picked}."
    row = int(differ.argmax())
    got = f"{show(a[row])} where `{reference}` has {show(b[row])}"
    return bad_rows(differ, AlignmentError, name, rule, got=got, hint=hint)


def same_rows_of_both(a: RowLabels | None, b: RowLabels | None) -> None:
    """Refuse two models whose rows pandas labels otherwise."""
    if a is not None and b is not None and not a.index.equals(b.index):
        hint = "give both the same rows in the same order, for example `y_prob.loc[y_true.index]` in both."
        raise fail(AlignmentError, "b", "must have the same index as `a`", got="another one", hint=hint)


def same_outcomes(a: AnyArray, b: AnyArray, name: str) -> None:
    """Require that the same happened in every row of both; ``name`` is what each calls it."""
    same_rows("b", len(b), len(a), "a")
    if a.shape != b.shape:
        got = f"shapes {a.shape} and {b.shape}"
        raise fail(ShapeError, "b", f"must have a `{name}` of the same shape as `a`", got=got)
    differ = (a != b).reshape(len(a), -1).any(axis=1)
    if differ.any():
        row = int(differ.argmax())
        got = f"{show(b[row])} where `a` has {show(a[row])}"
        hint = "give both the same rows in the same order, and the same `pos_label`, or columns in the same order."
        raise bad_rows(differ, LabelError, "b", f"must have the same `{name}` as `a`", got=got, hint=hint)


def different_runs(excess: Iterable[FloatArray], run: IndexArray, step: IndexArray, discrete: bool) -> FloatArray:
    """Return the excess of all rows; refuse runs of states with the same errors, which are copies of one."""
    whole = np.concatenate(list(excess))
    parts = np.split(whole[np.lexsort((whole, step, run))], np.cumsum(np.bincount(run))[:-1])
    varied = [] if discrete else [part.tobytes() for part in parts if len(np.unique(part)) >= _VARIED]
    copies = len(varied) - len(set(varied))
    if copies:
        got = f"the errors of another one in {copies} of {len(parts)}"
        hint = "name each run once; a simulation needs a seed of its own for each run."
        raise fail(ShapeError, "run", "must name runs that differ", got=got, hint=hint)
    return whole
