"""Predictions that call an outcome impossible: what they are, and what to type."""

import math

import numpy as np

from .._types import AnyArray

__all__ = ["certain_reason", "clip_for", "decimals_of"]

_MOST = 9  # decimals that are looked for


def decimals_of(values: AnyArray) -> int:
    """Return how many decimals numbers have that were rounded; 0 where they were not, or where it cannot be told."""
    rounding = 4.0 * float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    exact = values.astype(np.float64, copy=False)
    for decimals in range(1, _MOST + 1):
        slack = rounding * 10.0**decimals
        if slack > 0.01:  # a float of this size cannot tell
            return 0
        scaled = exact * 10.0**decimals
        if bool((np.abs(scaled - np.rint(scaled)) <= slack).all()):
            return decimals
    return 0


def clip_for(classes: int, decimals: int = 0) -> str:
    """Return the smallest probability to suggest, as it is typed: half a unit of the last decimal, where it is known.

    1e-7 is what float32 resolves near 1, and less than half a unit of six decimals. Zeros moved up to ``c`` add about
    ``K c log(1/c)`` nat to the entropy of a row at most: beyond 1000 classes it shrinks, so that this stays near 0.002.
    """
    if decimals:
        return f"5e-{decimals + 1}"
    return f"1e-{7 + max(math.ceil(math.log10(classes)) - 3, 0)}"


def certain_reason(certain: int, n: int, classes: int, decimals: int = 0) -> str:
    """Say why predictions of which ``certain`` call an outcome impossible are not safe, and what to type.

    Parameters
    ----------
    certain, n : int
        Rows that give some outcome a probability of exactly 0, and all rows.
    classes : int
        How many outcomes there are.
    decimals : int, default 0
        To how many decimals predictions were rounded; 0 where they were not.

    Returns
    -------
    str
        Some sentences, the last of which ends with a line to paste.
    """
    one = certain == 1
    if classes == 2:
        what = (
            f"{certain} of {n} predictions {'is' if one else 'are'} exactly 0 or 1, and one failure there would be an"
            " infinite surprise."
        )
    else:
        what = (
            f"{certain} of {n} rows {'gives' if one else 'give'} some class a probability of exactly 0, and if that"
            " class happens once, the surprise is infinite."
        )
    clip = clip_for(classes, decimals)
    why = "Rounding makes such predictions, and so does a float32 softmax."
    if decimals:
        why = f"The predictions have {decimals} decimal{'' if decimals == 1 else 's'}, so a 0 may be up to {clip}."
    return f"{what} {why} Pass finite `logits=`, or state the smallest probability you mean: `clip={clip}`."
