"""Where a row falls, as expressions: its bin by the exact edges, its cell by exact powers of two.

Cells are those of the core, which takes the exponent and the first binary digits of a float. Engines have no such
thing, so the octave comes from a logarithm and is put right where that missed; everything else is exact.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._kernels.spectrum import CELLS as ODDS_CELLS
from ..._kernels.spectrum import COARSE_SPREADS, HAIR, LOWEST, SPREAD_START, SPREAD_STEPS, SPREADS, STARTS
from ..._sums.scored import CELLS
from ..._sums.splits import Bins
from ..._types import AnyArray
from .formulas import as_number
from .language import language

__all__ = [
    "IMPLIED", "MOMENTS", "WEIGHTED_MOMENTS", "add_coarse_odds", "add_coarse_spread", "add_histogram_cell",
    "add_odds_cell", "add_spread_cell", "add_weighted_cell", "bin_number", "binned_value", "outside",
    "with_implied_sums", "with_state",
]  # fmt: skip

_SIDE = (CELLS - 1) // 2  # cells of one side of the histogram, eight to the octave
_FIRST = float(LOWEST[1])  # log-odds below it share a cell
_LAST = float(LOWEST[-1])  # and so do those from here on
_HAIR = 2.0**-40  # by which cells of log-odds begin below round numbers, in parts of the power of two
_WEIGHTS = 2048 * 4  # cells of weights: all exponents of floats, four to the octave
_STATES = 3  # of a row: as it is, certain, bad
IMPLIED = ("n_certain", "n_impossible", "sum_observed", "sum_correct", "sum_confidence")  # by the key
MOMENTS = ("inside", "d1", "d2", "d3")
WEIGHTED_MOMENTS = ("inside", "dl", "dw", "dl2", "dw2", "dlw")
COLUMN = {"probability": "predicted", "confidence": "confidence", "entropy": "entropy"}


def binned_value(bin_on: str, largest: float, bins: Bins) -> Any:
    """Return the value that rows are binned on; rounding must not carry it over its own bound."""
    nw = language()
    value = nw.col(COLUMN[bin_on])
    if bin_on == "entropy" and math.isfinite(largest):
        value = nw.when(value > largest).then(nw.lit(largest)).otherwise(value)
    low, high = bins.edges[0], bins.edges[-1]
    if bin_on == "entropy" and math.isfinite(high):
        slack = 1e-12 * max(abs(low), abs(high))
        value = nw.when((value > high) & (value <= high + slack)).then(nw.lit(high)).otherwise(value)
        value = nw.when((value < low) & (value >= low - slack)).then(nw.lit(low)).otherwise(value)
    return value


def outside(value: Any, bins: Bins) -> Any:
    """Return 1 for values that no bin holds, else 0."""
    nw = language()
    beyond = (value < bins.edges[0]) | (value > bins.edges[-1])
    return nw.when(beyond).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def bin_number(value: Any, bins: Bins) -> Any:
    """Number the bin of a value by a search among the edges: ``[a, b)``, the last one closed."""
    return _search(value, bins.edges[:-1])


def _search(value: Any, starts: Sequence[float], results: Sequence[float] | None = None) -> Any:
    """Number the last of some starts that a value is not below, or return the one of ``results`` with that number."""
    nw = language()

    def search(first: int, last: int) -> Any:
        if first == last:
            return nw.lit(float(first if results is None else results[first]))
        middle = (first + last + 1) // 2
        below = value < starts[middle]
        return nw.when(below).then(search(first, middle - 1)).otherwise(search(middle, last))

    return search(0, len(starts) - 1)


def _place(frame: Any, name: str, per_octave: int, hair: float = 0.0) -> Any:
    """Take positive numbers apart: ``power``, the largest power of two not above one; ``octave``, its exponent; and
    ``step``, the part of the octave in which it lies. Each begins a ``hair`` earlier."""
    nw = language()
    value = nw.col(name)
    frame = frame.with_columns(octave=(value.log() * (1.0 / math.log(2.0))).floor().cast(nw.Float64))
    # A logarithm next to a whole number may miss it: powers of two are exact, and so are quotients with them.
    frame = frame.with_columns(power=nw.lit(2.0) ** nw.col("octave"))
    frame = frame.with_columns(digits=value / nw.col("power") + hair)
    digits = nw.col("digits")
    frame = frame.with_columns(
        missed=nw.when(digits >= 2.0).then(nw.lit(1.0)).otherwise(
            nw.when(digits < 1.0).then(nw.lit(-1.0)).otherwise(nw.lit(0.0))
        )
    )  # fmt: skip
    missed = nw.col("missed")
    factor = nw.when(missed == 0.0).then(nw.lit(1.0)).otherwise(
        nw.when(missed > 0.0).then(nw.lit(2.0)).otherwise(nw.lit(0.5))
    )  # fmt: skip
    frame = frame.with_columns(factor=factor)
    return frame.with_columns(
        octave=nw.col("octave") + missed,
        power=nw.col("power") * nw.col("factor"),
        step=((digits / nw.col("factor") - 1.0) * float(per_octave)).floor().cast(nw.Float64),
    )


def add_histogram_cell(frame: Any) -> Any:
    """Add ``cell``, the number of the histogram's cell of ``excess``."""
    nw = language()
    size, smallest, octaves = nw.col("excess").abs(), 2.0**-20, _SIDE // 8
    largest = (2.0 - 2.0**-3) * 2.0 ** (octaves - 21)  # the last cell; whatever is beyond counts to it
    frame = _place(frame.with_columns(size=size.clip(smallest, largest)), "size", 8)
    number = nw.when(size >= smallest).then(161.0 + 8.0 * nw.col("octave") + nw.col("step")).otherwise(nw.lit(0.0))
    sign = nw.when(nw.col("excess") < 0.0).then(nw.lit(-1.0)).otherwise(nw.lit(1.0))
    return frame.with_columns(cell=_SIDE + sign * number)


def add_spread_cell(frame: Any) -> Any:
    """Put the cell of the spread, as `Ordered` has it, beside that of the histogram, in one number."""
    return frame.with_columns(cell=language().col("cell") * float(SPREADS) + _spread())


def _spread() -> Any:
    nw = language()
    place = ((nw.col("entropy") - SPREAD_START) * SPREAD_STEPS + HAIR).floor().cast(nw.Float64) + SPREADS // 2
    return place.clip(0.0, SPREADS - 1.0)


def add_coarse_spread(frame: Any) -> Any:
    """Add ``coarse``, the number of the coarse cell of the spread."""
    return frame.with_columns(coarse=(_spread() / float(COARSE_SPREADS)).floor().cast(language().Int64))


def _odds(frame: Any, per_octave: int, hair: float = 0.0) -> Any:
    """Add ``cell``, of the log-odds, with its ``corner`` and ``middle``; ``last`` is the one that has no end.

    Each octave begins a ``hair`` earlier. It is searched for: a logarithm and a power cost an engine much more.
    """
    nw = language()
    first, end = (edge * (1.0 - 0.5 * hair) for edge in (_FIRST, _LAST))
    odds = nw.col("odds")
    frame = frame.with_columns(bounded=odds.clip(first, _LAST))
    octaves = range(int(math.log2(_FIRST)), int(math.log2(_LAST)) + 1)
    starts = [2.0**k * (1.0 - 0.5 * hair) for k in octaves]
    bounded = nw.col("bounded")
    frame = frame.with_columns(
        octave=_search(bounded, starts), power=_search(bounded, starts, [2.0**k for k in octaves])
    )
    power, part = nw.col("power"), 1.0 / per_octave
    digits = bounded / power + (hair - 1.0)
    frame = frame.with_columns(step=(digits * float(per_octave)).floor().cast(nw.Float64))
    step = nw.col("step")
    below, last = odds < first, odds >= end
    number = 1.0 + nw.col("octave") * float(per_octave) + step
    middle = nw.when(last).then(nw.lit(_LAST)).otherwise(power * (1.0 + (step + 0.5) * part))
    return frame.with_columns(
        cell=nw.when(below).then(nw.lit(0.0)).otherwise(number),
        corner=nw.when(below).then(nw.lit(0.0)).otherwise(power * (1.0 + step * part)),
        middle=nw.when(below).then(nw.lit(0.5 * _FIRST)).otherwise(middle),
        last=last,
    )


def _sides(cell: Any) -> Any:
    """Number a cell by what happened and by the side of one half."""
    nw = language()
    wrong = nw.when(nw.col("agree")).then(nw.lit(0.0)).otherwise(nw.lit(1.0))
    positive = nw.when(nw.col("likely")).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return cell * 4.0 + wrong * 2.0 + positive


def with_state(key: Any) -> Any:
    """Put into a key whether a row is possible as it is, certain, or bad: what is counted need not be summed."""
    nw = language()
    state = nw.when(nw.col("certain")).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    return key * float(_STATES) + nw.when(nw.col("bad") == 1.0).then(nw.lit(2.0)).otherwise(state)


def with_implied_sums(table: dict[str, AnyArray], weighted: bool) -> dict[str, AnyArray]:
    """Return sums by key with those that the key tells: its cell, what happened, the side of one half, the state."""
    key = table["key"].astype(np.int64)
    key, state = np.divmod(key, _STATES)
    wrong, positive, n, predicted = key // 2 % 2, key % 2, table["n"], table["sum_predicted"]
    mass = table["weight"] if weighted else n
    implied = {
        "key": key,
        "bad": n * (state == 2),
        "n_certain": n * (state == 1),
        "n_impossible": n * ((state == 1) & (wrong == 1)),
        "sum_observed": mass * (wrong != positive),
        "sum_correct": mass * (wrong == 0),
        "sum_confidence": np.where(positive == 1, predicted, mass - predicted),
    }
    return table | implied | ({} if weighted else {"inside": n * (state != 1)})


def add_odds_cell(frame: Any) -> tuple[Any, int]:
    """Add ``cell`` and its ``MOMENTS`` as `Cells` has them, and return how many cells there are."""
    nw = language()
    frame = _odds(frame, 16, _HAIR).with_columns(inside=as_number(~nw.col("certain")))
    frame = frame.with_columns(cell=_sides(nw.col("cell")), d1=nw.col("inside") * (nw.col("odds") - nw.col("middle")))
    d = nw.when(nw.col("last")).then(nw.lit(0.0)).otherwise(nw.col("d1"))
    return frame.with_columns(d2=d * d, d3=d * d * d), 4 * ODDS_CELLS


def add_weighted_cell(frame: Any) -> tuple[Any, int]:
    """Add ``cell`` and its ``WEIGHTED_MOMENTS`` as `WeightedCells` has them, and return how many cells there are."""
    nw = language()
    heavy = nw.col("weight") > 0.0
    frame = _odds(frame, 8)
    frame = frame.with_columns(
        dl=nw.col("odds") - nw.col("corner"),
        inside=as_number(~nw.col("certain") & heavy),
        heavy=nw.when(heavy).then(nw.col("weight")).otherwise(nw.lit(1.0)),
    )
    frame = _place(frame, "heavy", 4)
    step = nw.col("step")
    number = (nw.col("octave") + 1023.0) * 4.0 + step
    frame = frame.with_columns(
        cell=_sides(nw.col("cell") * float(_WEIGHTS) + number),
        dl=nw.col("inside") * nw.col("dl"),
        dw=nw.col("inside") * (nw.col("heavy") - nw.col("power") * (1.0 + step * 0.25)),
    )
    x, y = nw.when(nw.col("last")).then(nw.lit(0.0)).otherwise(nw.col("dl")), nw.col("dw")
    return frame.with_columns(dl2=x * x, dw2=y * y, dlw=x * y), 4 * _WEIGHTS * (28 * 8 + 2)


def add_coarse_odds(frame: Any, weighted: bool) -> Any:
    """Add ``coarse``, the number of the coarse cell of two outcomes, as `coarse_odds` of the kernels has it.

    Rows that are in no cell are left out: certain ones, and those without weight.
    """
    nw = language()
    frame = frame.filter(~nw.col("certain") & (nw.col("weight") > 0.0) if weighted else ~nw.col("certain"))
    # With weights, cells are twice as wide.
    frame, starts = (_odds(frame, 8), (STARTS + 1) // 2) if weighted else (_odds(frame, 16, _HAIR), STARTS)
    number, size = _search(nw.col("cell"), starts.tolist()), float(len(starts))
    frame = frame.with_columns(coarse=number)
    place = nw.when(nw.col("likely")).then(size + nw.col("coarse")).otherwise(size - 1.0 - nw.col("coarse"))
    return frame.with_columns(coarse=place.cast(nw.Int64))
