"""The numbers of forecasts of a number or of a vector, as rows of a text."""

import math
from collections.abc import Sequence

from .._sums.causes import axis_name
from ..errors import shortened
from ..inference.forecasts import Forecast, Vector
from ..inference.results import Interval
from .display import Metric, number

__all__ = ["forecast_rows"]

_AXIS = 20  # characters of the name of an axis


def forecast_rows(forecast: Forecast) -> list[Metric]:
    """Return what forecasters look at, of forecasts of a number or of a vector."""
    held = {round(100 * c.level): c for c in forecast.coverage}
    ninety = held.pop(90)
    share, fifty = ninety.share, held.pop(50).share
    other_levels = ", ".join(f"{c.share.value:.3f} at {level} %" for level, c in held.items())
    ends = f"{share.low:.3f} to {share.high:.3f}" if share.low > 0.0 or share.high < 1.0 else "no interval"
    spread_words = forecast.said.replace("its standard deviations are", "standard deviations")
    if forecast.vector is not None:
        return [
            ("spread", number(forecast.spread.value), spread_words),
            *_vector_rows(forecast.vector),
            ("coverage", number(share.value), f"of ellipsoids of 90 %, {ends}"),
            ("at 50 %", number(fifty.value), other_levels),
        ]
    if forecast.axes:
        return [
            ("spread", number(forecast.spread.value), spread_words),
            *_axis_rows(forecast.axes),
            ("coverage", number(share.value), f"of ellipsoids of 90 % of the draws, {ends}"),
            ("at 50 %", number(fifty.value), other_levels),
        ]
    low, high = (number(end, signed=True) for end in (forecast.bias.low, forecast.bias.high))
    bias = f", {low} to {high}" if math.isfinite(forecast.bias.low) else ""
    return [
        ("spread", number(forecast.spread.value), spread_words),
        ("coverage", number(share.value), f"of intervals of 90 %, {ends}"),
        ("at 50 %", number(fifty.value), other_levels),
        ("bias", number(forecast.bias.value, signed=True), f"outcome less forecast, over spread{bias}"),
        (
            "sharpness",
            _four_digits(forecast.sharpness),
            f"mean standard deviation; intervals of 90 %: {ninety.width:.3g}",
        ),
        ("CRPS", _four_digits(forecast.crps), f"smaller is better; interval score of 90 %: {ninety.score:.4g}"),
    ]


def _vector_rows(vector: Vector) -> list[Metric]:
    """Return the axis that is farthest off, and what else is shown of directions, correlations and bias."""
    worst = max(range(len(vector.spread)), key=lambda k: vector.spread[k].value)
    factor, smallest = vector.spread[worst], min(x.value for x in vector.spread)
    named = [shortened(axis_name(vector.names, k), _AXIS) for k in range(len(vector.spread))]
    rows = [
        (
            "by axis",
            number(factor.value),
            f"along {named[worst]} {_in_brackets(factor)}, the most; least {smallest:.3g}",
        )
    ]
    for name, extreme, shown in (
        ("widest", vector.largest, vector.largest.factor.low > 1.0),
        ("narrowest", vector.smallest, vector.smallest.factor.high < 1.0),
    ):
        if shown:
            rows.append((name, number(extreme.factor.value), f"{_in_brackets(extreme.factor)} along {extreme}"))
    if (pair := vector.farthest) is not None:
        axes = " and ".join(named[k] if vector.names else str(k) for k in pair.axes)
        meaning = f"of {'' if vector.names else 'axes '}{axes} {_in_brackets(pair.seen)}; {pair.stated:+.2f} is stated"
        rows.append(("correlation", number(pair.seen.value, signed=True), meaning))
    off = max(range(len(vector.bias)), key=lambda k: abs(vector.bias[k].value))
    bias = vector.bias[off]
    if bias.low > 0.0 or bias.high < 0.0:
        meaning = f"along {named[off]} {_in_brackets(bias)}: outcome less forecast"
        rows.append(("bias", number(bias.value, signed=True), meaning))
    return rows


def _axis_rows(axes: Sequence[Forecast]) -> list[Metric]:
    """Return the axis that is farthest off, a bias that is shown, and the score of each of a few axes."""
    worst = max(range(len(axes)), key=lambda k: axes[k].spread.value)
    factor, smallest = axes[worst].spread, min(axis.spread.value for axis in axes)
    rows = [
        ("by axis", number(factor.value), f"along axis {worst} {_in_brackets(factor)}, the most; least {smallest:.3g}")
    ]
    off = max(range(len(axes)), key=lambda k: abs(axes[k].bias.value))
    bias = axes[off].bias
    if bias.low > 0.0 or bias.high < 0.0:
        meaning = f"along axis {off} {_in_brackets(bias)}: outcome less forecast, over spread"
        rows.append(("bias", number(bias.value, signed=True), meaning))
    other_axes = [f"{axis.crps:.4g} along axis {k}" for k, axis in enumerate(axes)][1:5]
    more = ", ..." if len(axes) > 5 else ""
    rows.append(("CRPS", _four_digits(axes[0].crps), f"along axis 0, {', '.join(other_axes)}{more}; smaller is better"))
    return rows


def _four_digits(value: float) -> str:
    """Return a number in units of the outcome, which may be of any size."""
    return f"{value:.4g}"


def _in_brackets(x: Interval) -> str:
    return f"({x.low:.3g} to {x.high:.3g})" if math.isfinite(x.high) else "(no interval)"
