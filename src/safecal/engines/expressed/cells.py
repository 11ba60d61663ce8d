"""Where a row falls, as expressions: its bin by the exact edges, its cell of the histogram by exact powers of two."""

import math
from typing import Any

from ...bins import Bins
from ...histogram import CELLS
from ..libraries import narwhals

__all__ = ["bin_number", "binned_value", "cell_number", "outside"]

_SIDE = (CELLS - 1) // 2  # cells of one side
_LEAST = 2.0**-20  # of the first cell, eight to the octave
_OCTAVES = _SIDE // 8
COLUMN = {"probability": "predicted", "confidence": "confidence", "entropy": "entropy"}


def binned_value(bin_on: str, most: float, bins: Bins) -> Any:
    """Return the value that rows are binned on; rounding may not carry it over its own bound."""
    nw = narwhals()
    value = nw.col(COLUMN[bin_on])
    if bin_on == "entropy" and math.isfinite(most):
        value = nw.when(value > most).then(nw.lit(most)).otherwise(value)
    low, high = bins.edges[0], bins.edges[-1]
    if bin_on == "entropy" and math.isfinite(high):
        slack = 1e-12 * max(abs(low), abs(high))
        value = nw.when((value > high) & (value <= high + slack)).then(nw.lit(high)).otherwise(value)
        value = nw.when((value < low) & (value >= low - slack)).then(nw.lit(low)).otherwise(value)
    return value


def outside(value: Any, bins: Bins) -> Any:
    """Return 1 for values that no bin holds, else 0."""
    nw = narwhals()
    beyond = (value < bins.edges[0]) | (value > bins.edges[-1])
    return nw.when(beyond).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def bin_number(value: Any, bins: Bins) -> Any:
    """Number the bin of a value by a search among the edges: ``[a, b)``, the last one closed."""
    nw = narwhals()

    def search(first: int, last: int) -> Any:
        if first == last:
            return nw.lit(float(first))
        middle = (first + last + 1) // 2
        below = value < bins.edges[middle]
        return nw.when(below).then(search(first, middle - 1)).otherwise(search(middle, last))

    return search(0, len(bins) - 1)


def cell_number(frame: Any) -> Any:
    """Add ``cell``, the number of the histogram's cell of ``excess``: its exponent and first three binary digits."""
    nw = narwhals()
    size = nw.col("excess").abs() * (1.0 / _LEAST)  # 0 for impossible rows
    most = (2.0 - 2.0**-3) * 2.0 ** (_OCTAVES - 1)  # the last cell; whatever is beyond counts to it
    frame = frame.with_columns(inside=nw.col("excess").abs() >= _LEAST, size=size.clip(1.0, most))
    size = nw.col("size")
    frame = frame.with_columns(octave=(size.log() * (1.0 / math.log(2.0))).floor().cast(nw.Float64))
    # A logarithm next to a whole number may miss it: powers of two are exact, and so are products with them.
    frame = frame.with_columns(digits=size * nw.lit(2.0) ** (0.0 - nw.col("octave")))
    digits = nw.col("digits")
    over, under = digits >= 2.0, digits < 1.0
    octave = nw.when(over).then(nw.col("octave") + 1.0).otherwise(nw.col("octave"))
    octave = nw.when(under).then(nw.col("octave") - 1.0).otherwise(octave)
    digits = nw.when(over).then(digits * 0.5).otherwise(nw.when(under).then(digits * 2.0).otherwise(digits))
    digits = ((digits - 1.0) * 8.0).floor().cast(nw.Float64)
    number = nw.when(nw.col("inside")).then(1.0 + 8.0 * octave + digits).otherwise(nw.lit(0.0))
    sign = nw.when(nw.col("excess") < 0.0).then(nw.lit(-1.0)).otherwise(nw.lit(1.0))
    return frame.with_columns(cell=_SIDE + sign * number)
