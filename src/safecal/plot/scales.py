"""Axes with readable ticks: temperatures on a logarithmic scale, excess on one that is linear around 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..inference.results import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["excess_axis", "temperature_axis", "temperature_range"]

_FARTHEST = 30.0  # how many times beyond 1, the estimate and the limit a finite bound may stretch the axis
_OPEN = 5.0  # how many times the axis goes on where there is no bound


def temperature_range(intervals: Sequence[Interval], max_temperature: float) -> tuple[float, float]:
    """Return the ends of an axis that shows 1, the limit, and each estimate with its interval as far as it can be."""
    nearest = [i.high if i.value == 0.0 else i.low if i.value == math.inf else i.value for i in intervals]
    marks = [1.0, *(t for t in (max_temperature, *nearest) if 0.0 < t < math.inf)]
    bounds = [end for i in intervals if not math.isnan(i.value) for end in (i.low, i.high)]
    least, most = min(marks) / _FARTHEST, max(marks) * _FARTHEST
    low = min([*marks, *(b for b in bounds if b >= least)])
    high = max([*marks, *(b for b in bounds if b <= most)])
    open_low = any(b < least for b in bounds) or any(i.value == 0.0 for i in intervals)
    open_high = any(b > most for b in bounds) or any(i.value == math.inf for i in intervals)
    pad = (high / low) ** 0.08
    return low / (_OPEN if open_low else pad), high * (_OPEN if open_high else pad)


def temperature_axis(ax: Axes, left: float, right: float) -> None:
    """Make the x axis logarithmic, with plain numbers at its ticks."""
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    ticks = _ticks(left, right)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _ticks(left: float, right: float) -> list[float]:
    if right / left < 6.0:  # so short that equal steps read better
        for step in (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0):
            found = [round(k * step, 10) for k in range(math.ceil(left / step), math.floor(right / step) + 1)]
            if len(found) <= 8 and (len(found) >= 3 or step >= 1.0):
                return found
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    series = (1.0, 2.0, 5.0) if right / left < 300.0 else (1.0,)
    every = max(math.ceil(len(decades) / 8), 1)
    found = [float(f"{m * 10.0**d:.3g}") for d in decades if d % every == 0 for m in series]
    return [tick for tick in found if left <= tick <= right]


def excess_axis(ax: Axes, low: float, high: float) -> None:
    """Set the limits of an x axis in nats; beyond 1 nat it is logarithmic where the values reach far."""
    pad = 0.05 * (high - low) or 0.1
    if high <= 20.0:
        ax.set_xlim(low - pad, high + pad)
        return
    ax.set_xscale("asinh", linear_width=1.0)
    ax.set_xlim(min(1.15 * low, low - 0.1), max(1.15 * high, high + 0.1))
    reach = max(-low, high)
    steps = (1.0, 2.0, 5.0) if reach < 200.0 else (1.0,)
    sizes = [0.5] + [m * 10.0**d for d in range(math.ceil(math.log10(reach)) + 1) for m in steps]
    if low > -0.5 and reach < 200.0:
        sizes = [size for size in sizes if size != 0.5]
    ticks = [0.0, *sizes, *(-size for size in sizes)]
    left, right = ax.get_xlim()
    shown = sorted(tick for tick in ticks if left <= tick <= right)
    ax.set_xticks(shown, [f"{tick:g}" for tick in shown])
    ax.minorticks_off()
