"""What a door takes beside its predictions: columns (weights, groups, clusters, runs, steps) and values of options.

And what stands around every door: the same arithmetic whatever the caller chose with ``np.seterr``, and no name that
the door does not take.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from inspect import isgeneratorfunction
from types import FunctionType
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, By, IndexArray
from ..errors import InputError, MissingValueError, OptionError, RangeError, ShapeError, WeightError
from . import fail, phrase, refused, show
from .arrays import as_array, as_keys, as_numbers, bad_rows, is_missing, refuse, same_rows

W = TypeVar("W", bound=str)
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_LIGHTEST, _HEAVIEST = 1e-75, 1e75
_PLAIN = {str, int, float, bool, type(None)}
_SHOWN = 5  # groups that an error names, at most
_HYPHENATED = {"overconfident": "over-confident", "underconfident": "under-confident"}
_DUNDERS = ("__init__", "__add__", "__getitem__", "__repr__", "__str__", "_repr_html_")


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
        hint = 'group by several columns with a mapping: `by={"site": site, "year": year}`.'
        raise fail(ShapeError, name, "must be one key for each row, shape (n,)", got=f"shape {values.shape}", hint=hint)
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


def fitted_codes(
    by: By | None, n: int, reference: str, fitted: tuple[Hashable, ...] | None
) -> tuple[tuple[Hashable, ...], IndexArray] | None:
    """Return the groups of the rows, each of which must have been fitted; None where none were."""
    if fitted is None:
        if by is None:
            return None
        hint = "pass `by=` to the fit as well, or leave it out here."
        raise fail(OptionError, "by", "must not be given: there is one map for all rows", hint=hint)
    if by is None:
        rule = "must be given: each group has a map of its own"
        raise fail(OptionError, "by", rule, hint="pass the column that was passed to the fit, for these rows.")
    _, keys, codes = group_codes(by, n, reference)
    unknown: BoolArray = np.array([key not in fitted for key in keys], dtype=bool)
    if unknown.any():
        rule = f"must be among those fitted ({_listed(map(show, fitted), len(fitted))})"
        hint = "fit again with rows of that group, or without `by=` for one map that serves any row."
        raise bad_rows(unknown[codes], OptionError, "by", rule, got=lambda row: show(keys[codes[row]]), hint=hint)
    return keys, codes


def groups_refused(refusals: Mapping[Hashable, tuple[int, str]], of: int) -> NoReturn:
    """Raise for groups that have no temperature of their own: for each its rows, and what it lacks."""
    named = (f"{show(key)} ({rows} {'row' if rows == 1 else 'rows'}: {why})" for key, (rows, why) in refusals.items())
    refused(
        f"the groups of `by` must each support a temperature of their own; {len(refusals)} of {of} do not: "
        f"{_listed(named, len(refusals))}",
        "join small groups, leave their rows out, or fit without `by=`.",
    )


def _listed(items: Iterable[str], size: int) -> str:
    shown = [item for item, _ in zip(items, range(_SHOWN), strict=False)]
    return ", ".join(shown) + (f" and {size - _SHOWN} more" if size > _SHOWN else "")


def choice(value: Any, name: str, choices: Sequence[W], *, hint: str | None = None) -> W:
    """Require one of a few words."""
    if value not in choices:
        rule = f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(map(repr, choices))}"
        raise fail(OptionError, name, rule, got=show(value), hint=hint)
    return choices[choices.index(value)]


def one_side(value: Any, name: str, choices: Sequence[W]) -> W:
    """Require one of a few words; "overconfident", as documents have it, is "over-confident"."""
    return choice(_HYPHENATED.get(value, value) if isinstance(value, str) else value, name, choices)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def fraction(value: Any, name: str) -> float:
    """Require a number strictly between 0 and 1."""
    return between(value, name, 0.0, 1.0)


def between(value: Any, name: str, low: float, high: float) -> float:
    """Require a number strictly between two others."""
    if not _is_number(value) or not low < value < high:
        raise fail(RangeError, name, f"must lie strictly between {low:g} and {high:g}", got=show(value))
    return float(value)


def positive(value: Any, name: str) -> float:
    """Require a number greater than 0."""
    if not _is_number(value) or not value > 0.0:
        raise fail(RangeError, name, "must be greater than 0", got=show(value))
    return float(value)


def inverse_temperature(value: Any, name: str) -> float:
    """Require a number above 0 whose inverse is finite: below 0 it would turn every prediction round."""
    if not _is_number(value) or not 0.0 < value < np.inf or not 1.0 / float(value) < np.inf:
        rule = "must be an inverse temperature: a number above 0 whose inverse is finite"
        raise fail(RangeError, name, rule, got=show(value), hint="fit again; a temperature below 0 has no meaning.")
    return float(value)


def whole_number(value: Any, name: str, least: int, error: type[InputError] = OptionError) -> int:
    """Require an integer that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise fail(error, name, f"must be a whole number, at least {least}", got=show(value))
    return int(value)


def yes_or_no(value: Any, name: str) -> bool:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise fail(OptionError, name, "must be True or False", got=show(value))
    return bool(value)


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
    return TypeError(f"`{name}` is not an argument of `{door}`.\n\nHint: {hint}")


_inside: ContextVar[bool] = ContextVar("safecal_inside", default=False)


@contextmanager
def _own_errstate() -> Iterator[None]:
    """Enter from outside; within safecal, what a caller of ours chose for some lines stays.

    An underflow is no error here: it is what a probability of e^-800 is; nor is the square of a log-odds of 1e200,
    which is infinite and is looked at as that. What is invalid, or a division by 0, warns, and the tests turn that into
    an error.
    """
    if _inside.get():
        yield
        return
    token = _inside.set(True)
    try:
        with np.errstate(divide="warn", over="ignore", under="ignore", invalid="warn"):
            yield
    finally:
        _inside.reset(token)


def steady(function: F) -> F:
    """Let a function, or each step of a generator, compute with safecal's choice."""
    if isgeneratorfunction(function):

        @wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)
            while True:
                with _own_errstate():
                    try:
                        step = next(generator)
                    except StopIteration:
                        return
                yield step

        return steps  # type: ignore[return-value]

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        if _inside.get():  # most calls are; what `_own_errstate` does then is nothing, slowly
            return function(*args, **kwargs)
        with _own_errstate():
            return function(*args, **kwargs)

    return inside  # type: ignore[return-value]


def steadied(cls: C) -> C:
    """Let everything public of a class do so, its properties included."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in _DUNDERS:
            continue
        if isinstance(value, FunctionType):
            setattr(cls, name, steady(value))
        elif isinstance(value, classmethod | staticmethod):
            setattr(cls, name, type(value)(steady(value.__func__)))
        elif isinstance(value, property) and value.fget is not None:
            setattr(cls, name, property(steady(value.fget), value.fset, value.fdel, value.__doc__))
        elif isinstance(value, cached_property):
            value.func = steady(value.func)
    return cls
