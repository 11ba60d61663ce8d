"""States of several components in columns: which columns belong together, and the vectors and matrices they make."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from .._checks import fail, phrase
from .._types import AnyArray
from ..errors import FormError, InputError, ShapeError
from ..families.gaussian import Gaussian, gaussian
from .columns import Columns

__all__ = ["build_states", "check_states", "split_names"]


def split_names(available: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Return names that were given one by one, or with commas between them; a column with a comma in its name stands.

    Examples
    --------
    >>> split_names(["x", "y", "a,b"], ["x,y", "a,b"])
    ('x', 'y', 'a,b')
    """
    parts = ([word] if word in available else [name.strip() for name in word.split(",")] for word in words)
    return tuple(name for name in chain.from_iterable(parts) if name)


def check_states(columns: Columns) -> Columns:
    """Require as many means and spreads as there are components, each column once, and matrices in their order.

    Examples
    --------
    >>> check_states(Columns(None, ("mx", "my"), "gaussian", ("cov", "xx", "yx", "yy"), axes=("x", "y"))).names
    ('x', 'y', 'mx', 'my', 'xx', 'yx', 'yy')
    """
    assert columns.spread is not None
    form, *spread = columns.spread
    axes = columns.axes or (str(columns.y_true),)
    d = len(axes)
    for argument, count in (("mean", len(columns.values)), (form, d if form == "cov" else len(spread))):
        if count != d:
            raise fail(FormError, argument, phrase("as many columns"), got=f"{count} and {d}")
    if form == "cov" and len(spread) > 1:
        if len(spread) not in (d * d, _triangle(d)):
            raise _no_matrix("columns", d, len(spread))
        _in_order(spread, d)
    for argument, names in (("x_true", axes), ("mean", columns.values), (form, tuple(spread))):
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise fail(FormError, argument, "must name each column once", got=f"{repeated[0]!r} twice")
    return columns


def build_states(columns: Columns, x_true: AnyArray, mean: AnyArray, spread: AnyArray) -> Gaussian:
    """Check states whose numbers lie beside each other, (n,) or (n, d), as `gaussian` does."""
    assert columns.spread is not None
    form = columns.spread[0]
    if form == "std":
        states = gaussian(x_true, mean, std=spread)
    elif form == "var":
        states = gaussian(x_true, mean, var=spread)
    else:
        x, m = (a.reshape(len(a), -1) for a in (x_true, mean))
        states = gaussian(x, m, cov=_matrices(spread, x.shape[1]))
    return replace(states, axis_names=columns.axes)


def _triangle(d: int) -> int:
    return d * (d + 1) // 2


def _matrices(values: AnyArray, d: int) -> AnyArray:
    """Return matrices (n, d, d): from matrices, their numbers row by row, or those of their lower triangle."""
    if values.ndim == 3:
        return values
    flat = values.reshape(len(values), -1)
    if flat.shape[1] == d * d:
        return flat.reshape(-1, d, d)
    if flat.shape[1] != _triangle(d):
        raise _no_matrix("numbers", d, flat.shape[1])
    matrices = np.empty((len(flat), d, d), dtype=flat.dtype)
    line, column = np.tril_indices(d)
    matrices[:, line, column] = matrices[:, column, line] = flat
    return matrices


def _no_matrix(unit: str, d: int, got: int) -> InputError:
    rule = f"must be {d * d} {unit}, the matrix row by row, or {_triangle(d)}, its lower triangle row by row"
    if d == 1:
        rule = f"must be one of the {unit}, the variance"
    size = f"{got}, where states have {d} component{'s' if d > 1 else ''}"
    return fail(FormError if unit == "columns" else ShapeError, "cov", rule, got=size)


def _in_order(names: Sequence[str], d: int) -> None:
    """Refuse columns of a matrix whose names say that they stand in another order, such as xx, xy, xz, yy, yz, zz."""
    places = [(i, j) for i in range(d) for j in range(d if len(names) == d * d else i + 1)]
    pairs = [_axes_named(name) for name in names]
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    if len(labels) != d:  # the names do not say
        return
    axis_of = {i: pair[0] for (i, j), pair in zip(places, pairs, strict=True) if i == j}
    if len(set(axis_of.values())) == d and all(
        set(pair) == {axis_of[i], axis_of[j]} for (i, j), pair in zip(places, pairs, strict=True)
    ):
        return
    expected = ", ".join(f"{labels[i]}{labels[j]}" for i, j in places)
    shown = ", ".join(f"{a}{b}" for a, b in pairs)
    part = "the matrix" if len(names) == d * d else "its lower triangle"
    raise fail(FormError, "cov", f"must name {part} row by row, {expected}", got=shown)


def _axes_named(name: str) -> tuple[str, str]:
    """Return the two axes that the end of a name may say: ``cov_xy``, ``c01``, ``p_0_1``."""
    short = name[:-2] + name[-1:] if name[-2:-1] in ("_", ".", "-", " ") else name
    return short[-2:-1], short[-1:]
