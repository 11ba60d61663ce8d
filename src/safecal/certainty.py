"""Predictions that call an outcome impossible: what they are, and what to type."""

import math

__all__ = ["certain_reason", "clip_for"]


def clip_for(classes: int) -> str:
    """Return the smallest probability to suggest, as it is typed.

    1e-7 is what float32 resolves near 1, and less than half a unit of six decimals. Zeros moved up to ``c`` add about
    ``K c log(1/c)`` nat to the entropy of a row at most: beyond 1000 classes it shrinks, so that this stays near 0.002.
    """
    return f"1e-{7 + max(math.ceil(math.log10(classes)) - 3, 0)}"


def certain_reason(certain: int, n: int, classes: int) -> str:
    """Say why predictions of which ``certain`` call an outcome impossible are not safe, and what to type.

    Parameters
    ----------
    certain, n : int
        Rows that give some outcome a probability of exactly 0, and all rows.
    classes : int
        How many outcomes there are.

    Returns
    -------
    str
        Some sentences, the last of which ends with a line to paste.
    """
    one = certain == 1
    if classes == 2:
        what = (
            f"{certain} of {n} predictions {'is' if one else 'are'} exactly 0 or 1, and one failure there would be an"
            " infinite surprise. Rounding makes such predictions."
        )
    else:
        what = (
            f"{certain} of {n} rows {'gives' if one else 'give'} some class a probability of exactly 0, and if that"
            " class happens once, the surprise is infinite. Rounding makes such zeros, and so does a float32 softmax."
        )
    clip = clip_for(classes)
    return f"{what} Pass finite `logits=`, or state the smallest probability you mean, such as `clip={clip}`."
