"""How the figures of the paper are drawn: colours that everyone tells apart, counts in sight, letters for print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._sums.table import Table
from ..plot.display import NEUTRAL, OVER, UNDER, heading, ink
from ..plot.reliability import ReliabilityDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .figures import ECDRange

__all__ = ["draw_histograms", "draw_range", "draw_reliability"]

TOGETHER = 0.995  # of each bar, so that all ten hold together with 95 %


def draw_range(make: Any, found: ECDRange) -> Figure:
    """Draw ECD of a single prediction: the whole range, and what lies near 0."""
    figure: Figure = make((8.4, 3.9))
    whole, near = figure.subplots(1, 2)
    for ax in (whole, near):
        ax.axhline(0.0, color=ink(ax), lw=0.8, zorder=1)
        ax.plot(found.p, found.happened, color=UNDER, lw=2.0, label="label 1", zorder=3)
        ax.plot(found.p, found.failed, color=OVER, lw=2.0, ls="--", label="label 0", zorder=3)
        lowest = [found.lowest_at, 1.0 - found.lowest_at]
        ax.plot(lowest, [found.lowest] * 2, ls="none", marker="o", ms=6, color=ink(ax), zorder=4, label="minimum")
        ax.set_xlim(-0.02, 1.02)
        ax.set_xticks(np.linspace(0.0, 1.0, 6), ["0", "0.2", "0.4", "0.6", "0.8", "1"])
        ax.set_xlabel("predicted probability of label 1")
        ax.grid(alpha=0.25, lw=0.6)
    whole.set_ylabel("ECD of one prediction (nat)")
    whole.set_ylim(-0.8, 9.7)
    near.set_ylim(-0.55, 1.0)
    for at in (found.lowest_at, 1.0 - found.lowest_at):
        near.annotate(
            f"{found.lowest:.5f}\nat p = {at:.5f}",
            (at, found.lowest),
            (0, -7),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize="small",
        )
    whole.annotate(f"{found.failed[-1]:.1f} nat at 0.9999", (1.0, found.failed[-1]), (0.93, 8.9), ha="right")
    near.text(0.5, 0.88, "over-confident", ha="center", fontsize="small")
    near.text(0.5, -0.5, "under-confident", ha="center", fontsize="small")
    for ax, words in ((whole, "(a) from 0.0001 to 0.9999"), (near, "(b) near 0")):
        heading(ax, words)
    figure.legend(*whole.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_histograms(make: Any, tables: Mapping[str, Table]) -> Figure:
    """Draw how many rows fall into each bin of the estimated probability."""
    figure: Figure = make((3.9 * len(tables), 3.3))
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    most = max(s.n for table in tables.values() for s in table.summaries)
    for k, (ax, (name, table)) in enumerate(zip(panels, tables.items(), strict=True)):
        assert table.bins is not None
        edges = np.array(table.bins.edges)
        counts = [s.n for s in table.summaries]
        middle = 0.5 * (edges[1:] + edges[:-1])
        bars = ax.bar(middle, counts, np.diff(edges) * 0.92, color=NEUTRAL, edgecolor=ink(ax), linewidth=0.6)
        ax.bar_label(bars, padding=2, fontsize="small")
        ax.set_ylim(0.0, 1.1 * most)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xticks(np.linspace(0.0, 1.0, 6), ["0", "0.2", "0.4", "0.6", "0.8", "1"])
        ax.set_xlabel("estimated probability")
        ax.spines[["top", "right"]].set_visible(False)
        heading(ax, _title(k, name, len(tables)))
    panels[0].set_ylabel("rows")
    return figure


def draw_reliability(make: Any, tables: Mapping[str, Table]) -> Figure:
    """Draw reliability diagrams side by side, three in a row, with the bins numbered and one legend for all."""
    across = min(len(tables), 3)
    down = -(-len(tables) // across)
    figure: Figure = make((4.1 * across + 0.3, 5.2 * down + 0.4))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    legend: dict[str, Any] = {}
    for k, (ax, (name, table)) in enumerate(zip(panels, tables.items(), strict=False)):
        number_bins(ax, ReliabilityDisplay.from_table(table, level=TOGETHER, ax=ax))
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            legend.setdefault(label, handle)
        ax.get_legend().remove()
        ax.set_title(_title(k, name, len(tables)), loc="left", pad=19, fontsize="medium", fontweight="bold")
        words = f"ECE {table.ece():.4f}   ESCE {table.esce():+.4f}   ECD {table.total.ecd:+.4f}"
        ax.text(0.0, 1.015, words, transform=ax.transAxes, va="bottom", fontsize="small")
    for ax in panels[len(tables) :]:
        ax.set_axis_off()
    order = sorted(legend, key=lambda label: (label.startswith("outside"), label == "inside", label))
    columns = len(order) if across > 1 else 1
    handles = [legend[label] for label in order]
    figure.legend(handles, order, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    return figure


def number_bins(ax: Axes, shown: ReliabilityDisplay) -> None:
    """Write the number of each bin, from 1, above points above the line and below the others."""
    from matplotlib import patheffects

    halo = [patheffects.withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    for k, (x, y) in enumerate(zip(shown.predicted.tolist(), shown.observed.tolist(), strict=True)):
        if np.isnan(x):
            continue
        up = (y >= x or y < 0.08) and y < 0.94
        ax.annotate(
            str(k + 1),
            (x, y),
            (0, 6 if up else -7),
            textcoords="offset points",
            ha="center",
            va="bottom" if up else "top",
            fontsize="small",
            fontweight="bold",
            path_effects=halo,
            zorder=6,
        )


def _title(k: int, name: str, of: int) -> str:
    return f"({chr(ord('a') + k)}) {name}" if of > 1 else name
