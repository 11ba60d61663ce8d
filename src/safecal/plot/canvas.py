"""Where plots are drawn: on the axes that were given, or on new ones; and the look and the scales that they share.

Nothing here touches matplotlib's settings. The neutral colour is the one that the axes themselves use for text, so that
dark styles stay readable. The other colours are those of Okabe and Ito, which colour-blind readers tell apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from .._checks.message import fail
from ..errors import MissingExtraError, OptionError
from ..html import numbers
from ..html.markup import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "AFTER",
    "BEFORE",
    "NEUTRAL",
    "OVER",
    "UNDER",
    "Look",
    "axes_on",
    "blank_figure",
    "direction_label",
    "excess_axis",
    "heading",
    "ink",
    "legend_above",
    "message",
    "next_look",
    "percent",
    "temperature_axis",
]

OVER, UNDER = "#D55E00", "#0072B2"  # vermillion, blue
NEUTRAL = "#56B4E9"  # sky blue
BEFORE, AFTER = "#CC79A7", "#009E73"  # reddish purple, bluish green
# Of models that share axes: no two have the same colour, line and marker.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_STYLES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_MODEL = "model"

_COLUMNS = 2  # of a legend
_LONGEST = 28  # characters of a name
_LINE = 1.45  # height of a line of a legend, in sizes of its letters


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingExtraError(
            'plots need matplotlib, which is not installed.\n\nHint: pip install "safecal[plot]"'
        ) from error
    return plt


def axes_on(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes that were given, or those of a new figure of a size in inches."""
    plt = pyplot()
    if ax is None:
        made: Axes = plt.subplots(figsize=size, layout="constrained")[1]
        return made
    if not callable(getattr(ax, "errorbar", None)):
        hint = "`fig, ax = plt.subplots()` makes one; of several, pass one: `ax=axes[0, 0]`."
        raise fail(OptionError, "ax", "must be a matplotlib Axes", got=f"a {type(ax).__name__}", hint=hint)
    return ax


def blank_figure(figure: Figure | SubFigure | None, size: tuple[float, float]) -> Figure | SubFigure:
    """Return the figure that was given, which must be empty, or a new one."""
    plt = pyplot()
    if figure is None:
        made: Figure = plt.figure(figsize=size, layout="constrained")
        return made
    if not callable(getattr(figure, "add_gridspec", None)):
        hint = "`plt.figure()` makes one."
        raise fail(OptionError, "figure", "must be a matplotlib Figure", got=f"a {type(figure).__name__}", hint=hint)
    if figure.axes:
        hint = "pass a new one, or call `figure.clear()` first."
        raise fail(OptionError, "figure", "must be empty", got=f"a figure with {len(figure.axes)} axes", hint=hint)
    if figure.get_layout_engine() is None and hasattr(figure, "set_layout_engine"):
        figure.set_layout_engine("constrained")
    return figure


def ink(ax: Axes) -> Any:
    """Return the colour in which the axes write."""
    return ax.xaxis.label.get_color()


class Look(NamedTuple):
    """How one of several models is drawn, and what the legend calls it."""

    name: str
    colour: str
    style: str
    marker: str
    first: bool

    def line(self) -> dict[str, Any]:
        """Return how its line is drawn; one of them carries the name."""
        return {"color": self.colour, "ls": self.style, "lw": 1.7, "label": self.name, "gid": _MODEL}


def next_look(ax: Axes, name: str) -> Look:
    """Return the look of one more model on axes that may hold others."""
    k = sum(line.get_gid() == _MODEL for line in ax.get_lines())
    colour, style, marker = (palette[k % len(palette)] for palette in (_COLOURS, _STYLES, _MARKERS))
    return Look(shortened(name, _LONGEST), colour, style, marker, k == 0)


def legend_above(ax: Axes) -> None:
    """Put the legend above the axes, where no data are."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        ax.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=_COLUMNS,
            fontsize="small",
            frameon=False,
            borderaxespad=0.2,
            borderpad=0.2,
            columnspacing=1.2,
            handlelength=1.6,
        )


def heading(ax: Axes, text: str) -> None:
    """Write a heading above the legend."""
    legend = ax.get_legend()
    pad = 6.0
    if legend is not None:
        texts = legend.get_texts()
        pad += math.ceil(len(texts) / _COLUMNS) * _LINE * max(float(label.get_fontsize()) for label in texts)
    ax.set_title(text, loc="left", pad=pad, fontsize="medium", fontweight="bold", parse_math=False)


def message(ax: Axes, text: str) -> None:
    """Write a sentence in the middle of axes in which there is nothing to draw."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", wrap=True)


def direction_label(name: str, below: str = "under-confident", above: str = "over-confident") -> str:
    """Return the label of an axis on which the left is one thing and the right another."""
    return f"← {below}     {name}     {above} →"


def percent(share: float) -> str:
    """Return a share in percent, as pages write it, with a plain space."""
    return numbers.percent(share, " ")


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
