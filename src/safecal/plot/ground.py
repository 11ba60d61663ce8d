"""What lies behind the points of a reliability diagram: the line, the over-confident side, and the words for both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canvas import OVER, UNDER, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HIGHEST", "STRIP", "draw_ground"]

STRIP, HIGHEST = -0.21, 0.11  # where a strip of bars stands below the diagram, and how high they are

# Corners of the over-confident side: observed nearer to one half than predicted, or below what was predicted.
_OVER_POSITIVE = (((0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (0.0, 1.0)), ((0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5)))
_OVER_TOP = (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)),)


def draw_ground(ax: Axes, top_label: bool, *, strip: bool = True) -> None:
    """Draw what lies behind the points: the line, the over-confident side and the words for both."""
    for corners in _OVER_TOP if top_label else _OVER_POSITIVE:
        x, y = zip(*corners, strict=True)
        ax.fill(x, y, facecolor=OVER, alpha=0.07, linewidth=0, zorder=0)
        ax.fill(
            x, y, facecolor="none", edgecolor=OVER, alpha=0.25, linewidth=0, hatch="///", zorder=0, gid="over-confident"
        )
    ax.plot([0.0, 1.0], [0.0, 1.0], color=ink(ax), lw=1.0, ls="--", zorder=1, label="calibrated")
    places: tuple[tuple[float, float, str, str, str], ...]
    if top_label:
        places = ((0.98, 0.02, "over-confident", "right", "bottom"), (0.02, 0.98, "under-confident", "left", "top"))
    else:
        places = (
            (0.02, 0.98, "over-confident", "left", "top"),
            (0.98, 0.02, "over-confident", "right", "bottom"),
            (0.52, 0.98, "under-confident", "left", "top"),
            (0.48, 0.02, "under-confident", "right", "bottom"),
        )
    for at_x, at_y, words, ha, va in places:
        colour = OVER if words == "over-confident" else UNDER
        ax.text(at_x, at_y, words, ha=ha, va=va, color=colour, fontsize="small", zorder=1)
    ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    names = ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    ax.set_xticks(ticks, names)
    ax.set_yticks([STRIP + 0.5 * HIGHEST, *ticks] if strip else ticks, ["rows", *names] if strip else names)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(STRIP if strip else -0.02, 1.02)
    if strip:
        ax.axhline(-0.02, color=ink(ax), lw=0.8)
    ax.set_xlabel("confidence in the most likely class" if top_label else "predicted probability")
    ax.set_ylabel("share of rows in which it happened" if top_label else "share of rows that were positive")
