"""Two models on the same rows."""

import numpy as np

from .._types import AnyArray
from ..errors import AlignmentError, LabelError, ShapeError
from .message import fail, same_rows, show
from .rows import RowLabels

__all__ = ["same_outcomes", "same_rows_of_both"]


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
