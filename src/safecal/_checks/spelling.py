"""Numbers that are written as text."""

import re

import numpy as np

from .._types import AnyArray

__all__ = ["LEADING_ZERO", "is_text", "spelled_labels", "spelled_numbers"]

# A code such as 007 is a name, not a number: read as one it could be another label's.
LEADING_ZERO = r"^\s*[+-]?0[0-9]"
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_MOST_WHOLE = 2**53  # beyond, floats fold neighbours together
_SOME = 32
TRUTHS = ("true", "false")


def is_text(values: AnyArray) -> bool:
    """Tell whether an array holds text and nothing else."""
    if values.dtype.kind == "O":
        return values.size > 0 and all(isinstance(value, str) for value in values.reshape(-1))
    return values.dtype.kind == "U"


def spelled_numbers(text: AnyArray) -> AnyArray | None:
    """Return text as floats; None where some of it is no number."""
    try:
        # Python reads 1_000 as a number, which nothing that writes tables means.
        if any("_" in value for value in text[:_SOME].reshape(-1).tolist()):
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
    if spelled_numbers(text[:_SOME]) is None:  # words, as a rule
        lower = np.char.lower(text.astype(np.str_)) if text[0].lower() in TRUTHS else None
        return np.asarray(lower == "true") if lower is not None and np.isin(lower, TRUTHS).all() else None
    distinct, inverse = np.unique(text.astype(np.str_), return_inverse=True)
    names = distinct.tolist()
    if any(re.match(LEADING_ZERO, name) or "_" in name for name in names):
        return None
    if all(_WHOLE.fullmatch(name) for name in names):
        whole = [int(name) for name in names]
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(whole) and max(whole) <= np.iinfo(dtype).max:
                return np.array(whole, dtype=dtype)[inverse]
        return None
    found = spelled_numbers(distinct)
    if found is None or any(_WHOLE.fullmatch(name) and abs(int(name)) > _MOST_WHOLE for name in names):
        return None
    return np.asarray(found[inverse])
