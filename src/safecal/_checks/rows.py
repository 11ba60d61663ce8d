"""Rows that belong together: by their pandas index, or because two models predicted them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray
from ..errors import AlignmentError, InputError, LabelError, ShapeError
from .message import fail, same_rows, show

__all__ = ["RowLabels", "row_labels", "same_labels", "same_outcomes", "same_rows_of_both"]


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
    found: RowLabels | None = None
    for name, value in columns.items():
        if found is None:
            index = _index(value)
            found = None if index is None else RowLabels(name, index)
        else:
            same_labels(found, **{name: value})
    return found


def same_labels(labels: RowLabels | None, **columns: Any) -> None:
    """Refuse a column, or a column of a mapping, whose rows are labelled otherwise."""
    if labels is None:
        return
    for name, value in columns.items():
        if isinstance(value, Mapping):
            for key, column in value.items():
                _same(labels, f"{name}[{key!r}]", column)
        else:
            _same(labels, name, value)


def _same(labels: RowLabels, name: str, value: Any) -> None:
    index = _index(value)
    if index is not None and index is not labels.index and not index.equals(labels.index):
        raise _differ(labels, name, index)


def _differ(labels: RowLabels, name: str, index: Any) -> InputError:
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
    first = int(differ.argmax())
    hint = f"if rows belong together by their position, pass `{name}.to_numpy()`."
    if known:
        hint = f"the labels are the same in another order: pass {picked}."
    return fail(
        AlignmentError, name, rule, got=f"{show(a[first])} where `{reference}` has {show(b[first])}",
        place=f"row {first}", count=(int(differ.sum()), len(a)), hint=hint,
    )  # fmt: skip


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
    differ = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
    if differ.size:
        first = int(differ[0])
        raise fail(
            LabelError,
            "b",
            f"must have the same `{name}` as `a`",
            got=f"{show(b[first])} where `a` has {show(a[first])}",
            place=f"row {first}",
            count=(differ.size, len(a)),
            hint="give both the same rows in the same order, and the same `pos_label`, or columns in the same order.",
        )
