"""What forecasters look at, as lines of numbers: spread, coverage, bias, sharpness and CRPS; of vectors by axis."""

import math
from collections.abc import Sequence

from .._sums.directions import axis_name
from ..inference.forecasts import Forecast, Vector
from ..inference.results import Interval
from ..visible import shortened
from .display import Metric, number

__all__ = ["forecast_rows"]

_NAME = 20  # characters of the name of an axis


def forecast_rows(found: Forecast | None) -> list[Metric]:
    """Return what forecasters look at, where there is a forecast of a number or of a vector."""
    if found is None:
        return []
    held = {round(100 * c.level): c for c in found.coverage}
    ninety = held.pop(90)
    share, fifty = ninety.share, held.pop(50).share
    others = ", ".join(f"{c.share.value:.3f} at {level} %" for level, c in held.items())
    ends = f"{share.low:.3f} to {share.high:.3f}" if share.low > 0.0 or share.high < 1.0 else "no interval"
    said = found.said.replace("its standard deviations are", "standard deviations")
    if found.vector is not None:
        return [
            ("spread", number(found.spread.value), said),
            *_vector_rows(found.vector),
            ("coverage", number(share.value), f"of ellipsoids of 90 %, {ends}"),
            ("at 50 %", number(fifty.value), others),
        ]
    if found.axes:
        return [
            ("spread", number(found.spread.value), said),
            *_axis_rows(found.axes),
            ("coverage", number(share.value), f"of ellipsoids of 90 % of the draws, {ends}"),
            ("at 50 %", number(fifty.value), others),
        ]
    low, high = (number(end, signed=True) for end in (found.bias.low, found.bias.high))
    bias = f", {low} to {high}" if math.isfinite(found.bias.low) else ""
    return [
        ("spread", number(found.spread.value), said),
        ("coverage", number(share.value), f"of intervals of 90 %, {ends}"),
        ("at 50 %", number(fifty.value), others),
        ("bias", number(found.bias.value, signed=True), f"outcome less forecast, over spread{bias}"),
        ("sharpness", _size(found.sharpness), f"mean standard deviation; intervals of 90 %: {ninety.width:.3g}"),
        ("CRPS", _size(found.crps), f"smaller is better; interval score of 90 %: {ninety.score:.4g}"),
    ]


def _vector_rows(vector: Vector) -> list[Metric]:
    """Return the axis that is farthest off, and what else is shown of directions, correlations and bias."""
    worst = max(range(len(vector.spread)), key=lambda k: vector.spread[k].value)
    factor, least = vector.spread[worst], min(x.value for x in vector.spread)
    named = [shortened(axis_name(vector.names, k), _NAME) for k in range(len(vector.spread))]
    rows = [("by axis", number(factor.value), f"along {named[worst]} {_ends(factor)}, the most; least {least:.3g}")]
    for name, one, shown in (
        ("widest", vector.largest, vector.largest.factor.low > 1.0),
        ("narrowest", vector.smallest, vector.smallest.factor.high < 1.0),
    ):
        rows += [(name, number(one.factor.value), f"{_ends(one.factor)} along {one}")] if shown else []
    if (pair := vector.farthest) is not None:
        both = " and ".join(named[k] if vector.names else str(k) for k in pair.axes)
        said = f"of {'' if vector.names else 'axes '}{both} {_ends(pair.seen)}; {pair.stated:+.2f} is stated"
        rows.append(("correlation", number(pair.seen.value, signed=True), said))
    off = max(range(len(vector.bias)), key=lambda k: abs(vector.bias[k].value))
    bias = vector.bias[off]
    if bias.low > 0.0 or bias.high < 0.0:
        said = f"along {named[off]} {_ends(bias)}: outcome less forecast"
        rows.append(("bias", number(bias.value, signed=True), said))
    return rows


def _axis_rows(axes: Sequence[Forecast]) -> list[Metric]:
    """Return the axis that is farthest off, a bias that is shown, and the score of each of a few axes."""
    worst = max(range(len(axes)), key=lambda k: axes[k].spread.value)
    factor, least = axes[worst].spread, min(axis.spread.value for axis in axes)
    rows = [("by axis", number(factor.value), f"along axis {worst} {_ends(factor)}, the most; least {least:.3g}")]
    off = max(range(len(axes)), key=lambda k: abs(axes[k].bias.value))
    bias = axes[off].bias
    if bias.low > 0.0 or bias.high < 0.0:
        said = f"along axis {off} {_ends(bias)}: outcome less forecast, over spread"
        rows.append(("bias", number(bias.value, signed=True), said))
    others = [f"{axis.crps:.4g} along axis {k}" for k, axis in enumerate(axes)][1:5]
    more = ", ..." if len(axes) > 5 else ""
    rows.append(("CRPS", _size(axes[0].crps), f"along axis 0, {', '.join(others)}{more}; smaller is better"))
    return rows


def _size(value: float) -> str:
    """Return a number in units of the outcome, which may be of any size."""
    return f"{value:.4g}"


def _ends(x: Interval) -> str:
    return f"({x.low:.3g} to {x.high:.3g})" if math.isfinite(x.high) else "(no interval)"
