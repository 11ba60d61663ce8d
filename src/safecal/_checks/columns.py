"""Columns beside the predictions (weights, groups, clusters, steps), rows that belong together, and options."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, By, IndexArray
from ..errors import (
    AlignmentError,
    InputError,
    LabelError,
    MissingValueError,
    OptionError,
    RangeError,
    ShapeError,
    WeightError,
)
from .arrays import as_array, as_keys, as_numbers, bad_rows, is_missing, refuse, same_rows
from .message import fail, phrase, show

W = TypeVar("W", bound=str)

_LIGHTEST, _HEAVIEST = 1e-75, 1e75


def weights(sample_weight: ArrayLike | None, n: int, reference: str = "y_true") -> AnyArray | None:
    """Require finite weights that are not negative and not all zero."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    column = as_numbers(sample_weight, name)
    if column.ndim != 1:
        raise fail(ShapeError, name, "must be one weight for each row, shape (n,)", got=f"shape {column.shape}")
    same_rows(name, len(column), n, reference)
    if np.isnan(column).any():
        raise refuse(column, name, np.isnan, MissingValueError, "must not be NaN", "give such rows the weight 0.")
    if np.isinf(column).any():
        raise refuse(column, name, np.isinf, RangeError, "must be finite", None)
    if (column < 0).any():
        raise refuse(column, name, lambda x: x < 0, WeightError, "must not be negative", None)
    positive = column[column > 0]
    if positive.size and not (float(positive.min()) >= _LIGHTEST and float(positive.max()) <= _HEAVIEST):
        hint = phrase("ratios of weights", name=name)
        rule = f"must be 0 or lie between {_LIGHTEST:g} and {_HEAVIEST:g}, so that their cubes are floats"
        raise refuse(column, name, lambda x: (x > 0) & ((x < _LIGHTEST) | (x > _HEAVIEST)), RangeError, rule, hint)
    if not positive.size:
        raise fail(WeightError, name, "must not be all zero", got=f"{n} zeros")
    return column


def group_codes(by: By, n: int, reference: str = "y_true") -> tuple[str, tuple[Hashable, ...], IndexArray]:
    """Return the name of the grouping, its keys in order, and for each row the number of its key.

    ``by`` is one column, or a mapping of names to columns, in which case a key is a tuple. Missing values form a
    group of their own, with the key None.
    """
    if not isinstance(by, Mapping):
        keys, codes = _keys_of_column(by, "by", n, reference)
        return str(getattr(by, "name", None) or "group"), keys, codes
    if not by:
        raise fail(ShapeError, "by", "must name at least one column", got="an empty mapping")
    columns = [_keys_of_column(column, f"by[{name!r}]", n, reference) for name, column in by.items()]
    names = ", ".join(str(name) for name in by)
    if len(columns) == 1:
        return names, *columns[0]
    stacked = np.stack([codes for _, codes in columns], axis=1)
    distinct, codes = np.unique(stacked, axis=0, return_inverse=True)
    keys = tuple(tuple(columns[j][0][k] for j, k in enumerate(row)) for row in distinct.tolist())
    return names, keys, np.asarray(codes, dtype=np.intp).reshape(-1)


def _keys_of_column(column: ArrayLike, name: str, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray]:
    """Return the distinct values of a column in order, and for each row the place of its value among them."""
    values = as_keys(column, name)
    if values.ndim != 1:
        raise fail(
            ShapeError,
            name,
            "must be one key for each row, shape (n,)",
            got=f"shape {values.shape}",
            hint='group by several columns with a mapping: `by={"site": site, "year": year}`.',
        )
    same_rows(name, len(values), n, reference)
    if values.dtype.kind in "biuU":
        distinct, codes = numbered(values)
        return tuple(distinct.tolist()), codes
    if values.dtype.kind in "mM":  # as text, because .tolist() turns nanoseconds into bare integers
        items: list[Any] = [None if np.isnat(v) else str(v) for v in values]
    else:
        items = values.tolist()
        if not set(map(type, items)) <= _PLAIN:  # of other types, some that are equal have keys that are not
            items = [_json_key(v) for v in items]
    key_of = {item: _json_key(item) for item in dict.fromkeys(items)}
    distinct_keys = list(dict.fromkeys(key_of.values()))
    try:
        distinct_keys.sort(key=lambda v: (v is None, 0 if v is None else v))
    except TypeError:  # keys of mixed types have no order: keep that of first appearance
        pass
    number = {key: k for k, key in enumerate(distinct_keys)}
    code_of = {item: number[key] for item, key in key_of.items()}
    return tuple(distinct_keys), np.fromiter(map(code_of.__getitem__, items), dtype=np.intp, count=n)


_PLAIN = {str, int, float, bool, type(None)}


def numbered(values: AnyArray) -> tuple[AnyArray, IndexArray]:
    """Return the distinct values in order, and for each value its place among them; at once where they are in order."""
    if len(values) and values.dtype.kind != "U" and bool((values[1:] >= values[:-1]).all()):
        new = np.empty(len(values), dtype=bool)
        new[0], new[1:] = True, values[1:] != values[:-1]
        return values[new], np.cumsum(new) - 1
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, np.asarray(index, dtype=np.intp)


def _json_key(value: Any) -> Hashable:
    """Return a group key as JSON can hold it: None, a number, text or a tuple of such; dates become text."""
    if isinstance(value, tuple):
        return tuple(map(_json_key, value))
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return None
    return value if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)) else str(value)


def clusters(cluster: ArrayLike, n: int, reference: str = "y_true") -> tuple[IndexArray, int]:
    """Return for each row the number of its cluster, and how many clusters there are; one alone is an error."""
    keys, codes = cluster_codes(cluster, n, reference)
    if len(keys) < 2:
        raise one_cluster(len(keys))
    return codes, len(keys)


def cluster_codes(cluster: ArrayLike, n: int, reference: str = "y_true") -> tuple[tuple[Hashable, ...], IndexArray]:
    """Return the clusters, and for each row the number of its own; rows without one are refused."""
    keys, codes = _keys_of_column(cluster, "cluster", n, reference)
    if None in keys:
        column, hint = as_array(cluster, "cluster"), "leave such rows out, or give each its own cluster."
        raise _missing(codes == keys.index(None), "cluster", lambda row: show(column[row]), hint)
    return keys, codes


def _missing(missing: BoolArray, name: str, got: Callable[[int], str] | None, hint: str) -> InputError:
    return bad_rows(missing, MissingValueError, name, "must not hold missing values", got=got, hint=hint)


def one_cluster(count: int) -> InputError:
    """Build the error for clusters that are too few."""
    hint = "one track alone has no test of this kind; test its innovations (NIS), which do not depend on each other."
    return fail(ShapeError, "cluster", "must name at least two clusters", got=f"{count}", hint=hint)


def choice(value: Any, name: str, choices: Sequence[W], *, hint: str | None = None) -> W:
    """Require one of a few words."""
    if value not in choices:
        rule = f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(map(repr, choices))}"
        raise fail(OptionError, name, rule, got=show(value), hint=hint)
    return choices[choices.index(value)]


def one_side(value: Any, name: str, choices: Sequence[W]) -> W:
    """Require one of a few words; "overconfident", as documents have it, is "over-confident"."""
    return choice(_HYPHENATED.get(value, value) if isinstance(value, str) else value, name, choices)


_HYPHENATED = {"overconfident": "over-confident", "underconfident": "under-confident"}


def fraction(value: Any, name: str) -> float:
    """Require a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < 1.0:
        raise fail(RangeError, name, "must lie strictly between 0 and 1", got=show(value))
    return float(value)


def positive(value: Any, name: str) -> float:
    """Require a number greater than 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0.0:
        raise fail(RangeError, name, "must be greater than 0", got=show(value))
    return float(value)


def whole_number(value: Any, name: str, least: int, error: type[InputError] = OptionError) -> int:
    """Require an integer that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise fail(error, name, f"must be a whole number, at least {least}", got=show(value))
    return int(value)


F = TypeVar("F", bound=Callable[..., Any])


def spelled(*options: type) -> Callable[[F], F]:
    """Let a function refuse names that it does not take; ``options`` are the typed dictionaries of its ``**``.

    Without that, the name of a function deep inside stands in the error.
    """

    def decorate(function: F) -> F:
        code = function.__code__
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = frozenset(own).union(*(kind.__annotations__ for kind in options)) - {"self", "cls"}

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if not kwargs.keys() <= known:
                owner = args[0] if args and own[:1] == ("cls",) else None
                door = function.__qualname__ if owner is None else f"{owner.__name__}.{function.__name__}"
                raise _unknown_argument(next(name for name in kwargs if name not in known), door, known)
            return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    return decorate


def _unknown_argument(name: str, door: str, known: Iterable[str]) -> TypeError:
    from difflib import get_close_matches  # a first answer does without it

    near = get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(f'`{word}`' for word in sorted(known))}."
    return TypeError(f"`{name}` is no argument of `{door}`.\n\nHint: {hint}")


def _complete_column(column: ArrayLike, name: str, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray]:
    """Number the keys of a column in which none may be missing: a row of no run or no step has no place."""
    keys, codes = _keys_of_column(column, name, n, reference)
    if None in keys:
        hint = "give each row its run and its step, or leave the row out."
        raise _missing(codes == keys.index(None), name, None, hint)
    return keys, codes


def run_column(run: ArrayLike, n: int, reference: str) -> tuple[IndexArray, int]:
    """Return for each row the number of its run, and how many runs there are; one alone is an error."""
    keys, codes = _complete_column(run, "run", n, reference)
    if len(keys) < 2:
        hint = "states of one run depend on each other; test its innovations (NIS), which do not: `gaussian(z, ...)`."
        raise fail(ShapeError, "run", "must name at least two runs", got=f"{len(keys)}", hint=hint)
    return codes, len(keys)


def step_column(step: ArrayLike, n: int, reference: str) -> tuple[IndexArray, int]:
    """Return for each row the number of its step, and how many steps there are."""
    keys, codes = step_keys(step, n, reference)
    return codes, len(keys)


def step_keys(step: ArrayLike, n: int, reference: str) -> tuple[tuple[Hashable, ...], IndexArray]:
    """Return the steps in their order, and for each row the number of its own."""
    return _complete_column(step, "step", n, reference)


def expected_rows(expected: Any, runs: tuple[IndexArray, int], steps: tuple[IndexArray, int]) -> int:
    """Return how many rows there should be: by default one in each run at each step.

    Where a run has several rows at a step, as with several targets, only the caller knows; none is missing then.
    """
    n = len(runs[0])
    if expected is None:
        once = len(np.unique(runs[0] * steps[1] + steps[0])) == n
        return runs[1] * steps[1] if once else n
    if isinstance(expected, bool) or not isinstance(expected, int | np.integer) or expected < n:
        rule = "must be a whole number, at least the number of rows"
        raise fail(OptionError, "expected", rule, got=f"{show(expected)} and {n} rows")
    return int(expected)


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
    return bad_rows(
        differ,
        AlignmentError,
        name,
        rule,
        got=lambda row: f"{show(a[row])} where `{reference}` has {show(b[row])}",
        hint=hint,
    )


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
        raise bad_rows(
            differ,
            LabelError,
            "b",
            f"must have the same `{name}` as `a`",
            got=lambda row: f"{show(b[row])} where `a` has {show(a[row])}",
            hint="give both the same rows in the same order, and the same `pos_label`, or columns in the same order.",
        )
