"""Options and columns of a map, and the words for data that cannot support one."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from .._types import AnyArray, ArrayLike, BoolArray, By, IndexArray, SpreadLike
from ..errors import OptionError, RangeError, ShapeError, UnavailableError
from .arrays import as_numbers, bad_rows, same_rows
from .classes import class_shape, one_form, probabilities, real_logits, row_sums
from .columns import group_codes
from .message import fail, show
from .states import covariance_factor, one_spread, spread_column, triangular_factor

_SHOWN = 5  # groups that an error names, at most


def between(value: Any, name: str, low: float, high: float) -> float:
    """Require a number strictly between two others."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not low < value < high:
        raise fail(RangeError, name, f"must lie strictly between {low:g} and {high:g}", got=show(value))
    return float(value)


def inverse_temperature(value: Any, name: str) -> float:
    """Require a number above 0 whose inverse is finite: below 0 it would turn every prediction round."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 < value < np.inf or not 1.0 / float(value) < np.inf:
        rule = "must be an inverse temperature: a number above 0 whose inverse is finite"
        raise fail(RangeError, name, rule, got=show(value), hint="fit again; a temperature below 0 has no meaning.")
    return float(value)


def yes_or_no(value: Any, name: str) -> bool:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise fail(OptionError, name, "must be True or False", got=show(value))
    return bool(value)


def plain_map(value: Any, safe: tuple[type, ...], kind: type) -> Any:
    """Require a map that is not safe by itself already."""
    if not isinstance(value, kind) or isinstance(value, safe):
        hint = "pass one of `safecal.maps`, such as `Safe(Affine())`."
        raise fail(OptionError, "map", "must be a map, and not one that is safe already", got=show(value), hint=hint)
    return value


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


def spread_form(forms: Mapping[str, SpreadLike | None], rows: int | None) -> tuple[AnyArray, str]:
    """Check standard deviations or matrices that come without states; ``rows`` of them, where that is given."""
    name, value = one_spread(forms)
    if name in ("std", "var"):
        spread = spread_column(value, name, np.shape(np.asarray(value)) or (1,))
        per_row = spread.ndim in (1, 2)
    else:
        matrices = as_numbers(value, name)
        if matrices.ndim not in (2, 3) or matrices.shape[-1] != matrices.shape[-2]:
            rule = "must be one square matrix, (d, d), or one for each row, (n, d, d)"
            raise fail(ShapeError, name, rule, got=f"shape {matrices.shape}")
        shape = (len(matrices) if matrices.ndim == 3 else 1, int(matrices.shape[-1]))
        spread = (triangular_factor if name == "chol" else covariance_factor)(matrices, name, shape)
        per_row = spread.ndim == 3
    if rows is not None:
        if not per_row:
            hint = "repeat a shared one: `np.broadcast_to(spread, (n, ...))`."
            rule = "must be given for each row when there is `by`"
            raise fail(ShapeError, name, rule, got=f"shape {spread.shape}", hint=hint)
        same_rows(name, len(spread), rows, "by")
    return spread, name


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


def unfitted() -> NoReturn:
    """Raise for a map that was not fitted."""
    raise UnavailableError("the map is not fitted yet.\n\nHint: call `fit` first, or `fit_states` for states.")


def other_kind(family: str, wanted: str, instead: str) -> NoReturn:
    """Raise for a fit to another kind of prediction than the one it shall be applied to; ``instead`` is what to do."""
    raise UnavailableError(f"a map of {family} predictions does not apply to {wanted}.\n\nHint: {instead}")


def other_classes(classes: int, fitted: int) -> NoReturn:
    """Raise for predictions of another number of classes than were fitted."""
    raise UnavailableError(f"a map of {fitted} classes does not apply to {classes} classes.")


def refused(text: str, hint: str | None) -> NoReturn:
    """Raise for rows that have no temperature."""
    raise UnavailableError(f"{text}." + (f"\n\nHint: {hint}" if hint else ""))


def groups_refused(refusals: Mapping[Hashable, tuple[int, str]], of: int) -> NoReturn:
    """Raise for groups that have no temperature of their own: for each its rows, and what it lacks."""
    named = (f"{show(key)} ({rows} {'row' if rows == 1 else 'rows'}: {why})" for key, (rows, why) in refusals.items())
    raise UnavailableError(
        f"the groups of `by` must each support a temperature of their own; {len(refusals)} of {of} do not: "
        f"{_listed(named, len(refusals))}.\n\n"
        "Hint: join small groups, leave their rows out, or fit without `by=`."
    )


def _listed(items: Iterable[str], size: int) -> str:
    shown = [item for item, _ in zip(items, range(_SHOWN), strict=False)]
    return ", ".join(shown) + (f" and {size - _SHOWN} more" if size > _SHOWN else "")
