"""What each scored row adds, and to which sum, as expressions: its bin by the exact edges, its cell by exact powers.

Cells are those of the core, which takes the exponent and the first binary digits of a float. Engines have no such
thing, so the octave comes from a logarithm and is put right where that missed; everything else is exact. Below stand
the columns that are summed beside them: those of a Summary and of clusters.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._kernels.spectrum import CELLS as ODDS_CELLS
from ..._kernels.spectrum import COARSE_SPREADS, HAIR, LOWEST, SPREAD_START, SPREAD_STEPS, SPREADS, STARTS
from ..._sums.clusters import BASE, NEAR, RARE
from ..._sums.scored import CELLS
from ..._sums.splits import Bins
from ..._types import AnyArray
from .language import as_number, language

__all__ = [
    "IMPLIED", "MOMENTS", "WEIGHTED_MOMENTS", "add_cluster_columns", "add_coarse_odds", "add_coarse_spread",
    "add_histogram_cell", "add_odds_cell", "add_pair_columns", "add_spread_cell", "add_summary_columns",
    "add_weighted_cell", "bin_number", "binned_value", "outside", "with_implied_sums", "with_state",
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
_ALL_ROWS = ("predicted", "observed", "confidence", "correct", "brier")
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
    return as_number((value < bins.edges[0]) | (value > bins.edges[-1]))


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
    """Add ``cell``: that of the spread, as `Ordered` has it, and that of the histogram, in one number."""
    return add_histogram_cell(frame).with_columns(cell=language().col("cell") * float(SPREADS) + _spread())


def _spread() -> Any:
    nw = language()
    place = ((nw.col("entropy") - SPREAD_START) * SPREAD_STEPS + HAIR).floor().cast(nw.Float64) + SPREADS // 2
    return place.clip(0.0, SPREADS - 1.0)


def add_coarse_spread(frame: Any) -> Any:
    """Add ``coarse``, the number of the coarse cell of the spread."""
    return frame.with_columns(coarse=(_spread() / float(COARSE_SPREADS)).floor().cast(language().Int64))


def _odds(frame: Any, per_octave: int, hair: float = 0.0) -> Any:
    """Add ``cell``, of the log-odds, with its ``corner`` and ``middle``; ``last`` is the one that has no end.

    Each octave begins a ``hair`` earlier. It is searched for: a logarithm and a power cost an engine much more. So is
    its power of two, where an engine cannot shift.
    """
    nw = language()
    first, end = (edge * (1.0 - 0.5 * hair) for edge in (_FIRST, _LAST))
    odds = nw.col("odds")
    frame = frame.with_columns(bounded=odds.clip(first, _LAST))
    octaves = range(int(math.log2(_FIRST)), int(math.log2(_LAST)) + 1)
    starts = [2.0**k * (1.0 - 0.5 * hair) for k in octaves]
    bounded = nw.col("bounded")
    octave = _search(bounded, starts)
    if hasattr(nw, "power_of_two"):
        frame = frame.with_columns(octave=octave)
        frame = frame.with_columns(power=nw.power_of_two(nw.col("octave"), octaves[0]))
    else:
        frame = frame.with_columns(octave=octave, power=_search(bounded, starts, [2.0**k for k in octaves]))
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
    return cell * 4.0 + wrong * 2.0 + as_number(nw.col("likely"))


def with_state(key: Any) -> Any:
    """Put into a key whether a row is possible as it is, certain, or bad: what is counted need not be summed."""
    nw = language()
    state = nw.when(nw.col("bad") == 1.0).then(nw.lit(2.0)).otherwise(as_number(nw.col("certain")))
    return key * float(_STATES) + state


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


def add_summary_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add a column for each sum of a Summary, and return their names; impossible rows give 0 in nats."""
    nw = language()
    possible = nw.col("possible")
    frame = frame.with_columns(possible=nw.when(nw.col("impossible")).then(nw.lit(0.0)).otherwise(nw.lit(1.0)))
    frame = frame.with_columns(w1=possible * nw.col("weight") if weighted else possible)
    w1, e, v, k3 = (nw.col(name) for name in ("w1", "excess", "varentropy", "third"))
    frame = frame.with_columns(w2=w1 * w1, we=w1 * e)
    w2, we = nw.col("w2"), nw.col("we")
    columns: dict[str, Any] = {
        "n_impossible": 1.0 - possible,
        "n_certain": as_number(nw.col("certain")),
        "sum_excess": we,
        "sum_excess2_weight2": we * we,
        "sum_excess3_weight3": we * we * we,
        "sum_varentropy": w1 * v,
        "sum_third_cumulant_weight3": w2 * w1 * k3,
        "sum_entropy": w1 * nw.col("entropy"),
    }
    if weighted:
        weight = nw.col("weight")
        columns |= {
            "weight": weight,
            "weight_impossible": weight - w1,
            "weight2": w2,
            "weight3": w2 * w1,
            "sum_excess_weight2": w1 * we,
            "sum_excess_weight3": w2 * we,
            "sum_excess2_weight3": w1 * we * we,
            "sum_varentropy_weight2": w2 * v,
        }
    if classes:
        columns |= {f"sum_{x}": nw.col("weight") * nw.col(x) if weighted else nw.col(x) for x in _ALL_ROWS}
    else:
        columns["sum_error"] = w1 * nw.col("error")
    return frame.with_columns(**columns), list(columns)


_FAR = (0, 2)  # the betas of `NEAR` other than 1


def _based(frame: Any, weighted: bool, classes: bool) -> Any:
    """Add the columns of `BASE` but the number of rows, which every query counts; mistakes of states are 0."""
    nw = language()
    one = nw.lit(1.0)
    frame = frame.with_columns(root=nw.col("varentropy").sqrt(), c_weight=nw.col("weight") if weighted else one)
    w1, we, all_rows = nw.col("w1"), nw.col("we"), nw.col("c_weight")
    return frame.with_columns(
        c_excess=we,
        c_weight2=w1 * w1,
        c_excess_weight2=w1 * we,
        c_variance=w1 * w1 * nw.col("varentropy"),
        c_deviation=w1 * nw.col("root"),
        c_square=we * we,
        c_seen=all_rows * (one - nw.col("correct")) if classes else nw.lit(0.0),
        c_announced=all_rows * (one - nw.col("confidence")) if classes else nw.lit(0.0),
    )


def add_pair_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `PAIRS` but the number of rows, and return their names."""
    nw = language()
    frame = _based(frame, weighted, classes)
    wd = nw.col("c_deviation")
    if classes:
        q, rest = 1.0 - nw.col("confidence"), nw.col("confidence")
        rare = (wd * q, wd * q.sqrt(), wd * rest, wd * rest.sqrt())
    else:
        rare = (wd, wd, wd, wd)
    columns = {f"c_{name}": column for name, column in zip(RARE, rare, strict=True)}
    return frame.with_columns(**columns), [f"c_{name}" for name in (*BASE[1:], *RARE)]


def add_cluster_columns(frame: Any, weighted: bool, classes: bool) -> tuple[Any, list[str]]:
    """Add the columns of `Clusters` but the number of rows, and return their names.

    The surprise expected of two outcomes is ``L / (1 + exp(beta L))``, that of scalar Gaussians ``1 / (2 beta)``.
    """
    nw = language()
    frame = _based(frame, weighted, classes)
    w, odds = nw.col("w1"), nw.col("odds")
    if classes:
        t = nw.col("m_small") / nw.col("m_large")  # exp(-L)
        assert NEAR == (0.5, 1.0, 2.0)
        frame = frame.with_columns(t0=t.sqrt(), t1=t, t2=t * t)
        frame = frame.with_columns(**{f"q{k}": nw.col(f"t{k}") / (1.0 + nw.col(f"t{k}")) for k in range(3)})
        frame = frame.with_columns(**{f"mean{k}": odds * nw.col(f"q{k}") for k in range(3)})
        spread = {f"var{k}": nw.col(f"mean{k}") * (odds * (1.0 - nw.col(f"q{k}"))) for k in _FAR}
    else:
        frame = frame.with_columns(**{f"mean{k}": nw.lit(0.5 / beta) for k, beta in enumerate(NEAR)})
        spread = {f"var{k}": nw.lit(0.5 / NEAR[k] ** 2) for k in _FAR}
    frame = frame.with_columns(**spread)
    frame = frame.with_columns(**{f"beyond{k}": w * (nw.col("mean1") - nw.col(f"mean{k}")) for k in _FAR})
    columns: dict[str, Any] = {"near1": w * nw.col("mean1")}
    for k in _FAR:
        e = nw.col("we") + nw.col(f"beyond{k}")
        columns |= {
            f"near{k}": w * nw.col(f"mean{k}"),
            f"variance{k}": w * w * nw.col(f"var{k}"),
            f"deviation{k}": w * nw.col(f"var{k}").sqrt(),
            f"square{k}": e * e,
        }
    return frame.with_columns(**columns), [*(f"c_{name}" for name in BASE[1:]), *columns]
