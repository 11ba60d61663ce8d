"""The figures of the paper: what they show, how they are drawn, and files of them.

Colours are told apart by everyone, counts are in sight, and letters are made for print.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy import special

from .._sums.table import Table
from .._types import FloatArray
from ..errors import FileError
from ..files import write_atomically
from ..plot.bins import ReliabilityDisplay
from ..plot.display import NEUTRAL, OVER, UNDER, heading, ink, pyplot
from .published import BINS, published_table1
from .simulated_table import simulations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FILES",
    "ECDRange",
    "draw_reliability",
    "ecd_range",
    "made_folder",
    "new_figure",
    "paper_figures",
    "picture_bytes",
    "write_figures",
]

_LEVEL = 0.995  # of each bar, so that all ten hold together with 95 %
_KINDS = ("png", "svg")
_NAMES = (
    "ecd-range", "histograms-simulated", "reliability-simulated", "reliability-well-calibrated", "reliability-real",
)  # fmt: skip
FILES = tuple(f"{name}.{kind}" for name in _NAMES for kind in _KINDS)  # what `write_figures` may write


@final
@dataclass(frozen=True, slots=True, eq=False)
class ECDRange:
    """ECD of a single prediction, by the probability and by what happened.

    Attributes
    ----------
    p : ndarray of shape (points,)
        Probability of label 1, from 0.0001 to 0.9999.
    happened, failed : ndarray of shape (points,)
        ECD when the label is 1, and when it is 0.
    lowest : float
        The smallest value there is, ``-W(1/e)``.
    lowest_at : float
        Probability of label 1 at which it is taken when the label is 1; by symmetry at one minus it for label 0.

    Examples
    --------
    >>> from safecal.paper import ecd_range
    >>> curve = ecd_range()
    >>> round(curve.lowest, 5), round(curve.lowest_at, 5)
    (-0.27846, 0.78219)
    """

    p: FloatArray
    happened: FloatArray
    failed: FloatArray
    lowest: float
    lowest_at: float


def ecd_range(points: int = 2001) -> ECDRange:
    """Return the range of ECD of a single prediction, as in the paper's figure of it.

    Parameters
    ----------
    points : int, default 2001
        How many probabilities, evenly spaced in log-odds.

    Returns
    -------
    ECDRange
        Both curves, and the smallest value.

    Examples
    --------
    >>> from safecal.paper import ecd_range
    >>> curve = ecd_range()
    >>> round(float(curve.failed[-1]), 4)  # 0.9999, and wrong
    9.2093
    """
    odds = np.linspace(special.logit(0.0001), special.logit(0.9999), points)
    p: FloatArray = special.expit(odds)
    w = float(special.lambertw(np.exp(-1.0)).real)
    return ECDRange(p, -special.expit(-odds) * odds, p * odds, -w, float(special.expit(1.0 + w)))


def paper_figures(
    seed: int | None = None, *, noise_on: str = "both", real: Mapping[str, Table] | None = None
) -> dict[str, Figure]:
    """Draw the figures of the paper.

    Parameters
    ----------
    seed : int, optional
        Of NumPy's generator. Without one, the draws are those of the paper.
    noise_on : {"both", "logit", "probability"}, default "both"
        The process, as for `simulate`.
    real : mapping of str to Table, optional
        Tables of bins of real models, by name, for reliability diagrams of them.

    Returns
    -------
    dict of str to matplotlib Figure
        By the name of the file that `write_figures` gives it.

    Examples
    --------
    >>> from safecal.paper import paper_figures
    >>> sorted(paper_figures())
    ['ecd-range', 'histograms-simulated', 'reliability-simulated', 'reliability-well-calibrated']
    """
    figure = new_figure()
    tables = [simulation.predictions().table(BINS) for simulation in simulations(seed, noise_on=noise_on)]
    names = [column.name for column in published_table1()]
    figures = {
        "ecd-range": _draw_range(figure, ecd_range()),
        "histograms-simulated": _draw_histograms(figure, dict(zip(names, tables, strict=True))),
        "reliability-simulated": draw_reliability(figure, dict(zip(names, tables, strict=True))),
        "reliability-well-calibrated": draw_reliability(figure, {"a well-calibrated model": tables[0]}),
    }
    if real:
        figures["reliability-real"] = draw_reliability(figure, real)
    return figures


def write_figures(
    folder: str | os.PathLike[str],
    seed: int | None = None,
    *,
    noise_on: str = "both",
    real: Mapping[str, Table] | None = None,
) -> tuple[Path, ...]:
    """Write the figures of the paper as PNG and as SVG.

    Parameters
    ----------
    folder : str or os.PathLike
        Where to; it is made where it does not exist.
    seed, noise_on, real
        As for `paper_figures`.

    Returns
    -------
    tuple of Path
        The files.
    """
    target = made_folder(folder)
    written = []
    for name, figure in paper_figures(seed, noise_on=noise_on, real=real).items():
        for kind in _KINDS:
            path = target / f"{name}.{kind}"
            write_atomically(path, picture_bytes(figure, kind))
            written.append(path)
    return tuple(written)


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """Return a folder, which is made where it does not exist."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise FileError(f"`folder` must be a folder; {os.fspath(folder)!r} is a file, or lies in one.") from error
    return path


def new_figure() -> Any:
    """Return a function that makes figures, which no window system hears of."""
    pyplot()  # says what to install
    from matplotlib.figure import Figure

    return lambda size: Figure(figsize=size, layout="constrained")


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as a file; the same figure gives the same bytes."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "safecal"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
    return buffer.getvalue()


def _draw_range(make: Any, curve: ECDRange) -> Figure:
    """Draw ECD of a single prediction: the whole range, and what lies near 0."""
    figure: Figure = make((8.4, 3.9))
    whole_range, near_zero = figure.subplots(1, 2)
    for ax in (whole_range, near_zero):
        ax.axhline(0.0, color=ink(ax), lw=0.8, zorder=1)
        ax.plot(curve.p, curve.happened, color=UNDER, lw=2.0, label="label 1", zorder=3)
        ax.plot(curve.p, curve.failed, color=OVER, lw=2.0, ls="--", label="label 0", zorder=3)
        lowest = [curve.lowest_at, 1.0 - curve.lowest_at]
        ax.plot(lowest, [curve.lowest] * 2, ls="none", marker="o", ms=6, color=ink(ax), zorder=4, label="minimum")
        ax.set_xlim(-0.02, 1.02)
        ax.set_xticks(np.linspace(0.0, 1.0, 6), ["0", "0.2", "0.4", "0.6", "0.8", "1"])
        ax.set_xlabel("predicted probability of label 1")
        ax.grid(alpha=0.25, lw=0.6)
    whole_range.set_ylabel("ECD of one prediction (nat)")
    whole_range.set_ylim(-0.8, 9.7)
    near_zero.set_ylim(-0.55, 1.0)
    for p in (curve.lowest_at, 1.0 - curve.lowest_at):
        near_zero.annotate(
            f"{curve.lowest:.5f}\nat p = {p:.5f}",
            (p, curve.lowest),
            (0, -7),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize="small",
        )
    whole_range.annotate(f"{curve.failed[-1]:.1f} nat at 0.9999", (1.0, curve.failed[-1]), (0.93, 8.9), ha="right")
    near_zero.text(0.5, 0.88, "over-confident", ha="center", fontsize="small")
    near_zero.text(0.5, -0.5, "under-confident", ha="center", fontsize="small")
    for ax, words in ((whole_range, "(a) from 0.0001 to 0.9999"), (near_zero, "(b) near 0")):
        heading(ax, words)
    figure.legend(*whole_range.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_histograms(make: Any, tables: Mapping[str, Table]) -> Figure:
    """Draw how many rows fall into each bin of the estimated probability."""
    figure: Figure = make((3.9 * len(tables), 3.3))
    panels = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    largest_count = max(s.n for table in tables.values() for s in table.summaries)
    for k, (ax, (name, table)) in enumerate(zip(panels, tables.items(), strict=True)):
        assert table.bins is not None
        edges = np.array(table.bins.edges)
        counts = [s.n for s in table.summaries]
        middle = 0.5 * (edges[1:] + edges[:-1])
        bars = ax.bar(middle, counts, np.diff(edges) * 0.92, color=NEUTRAL, edgecolor=ink(ax), linewidth=0.6)
        ax.bar_label(bars, padding=2, fontsize="small")
        ax.set_ylim(0.0, 1.1 * largest_count)
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
        _number_bins(ax, ReliabilityDisplay.from_table(table, level=_LEVEL, ax=ax))
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


def _number_bins(ax: Axes, display: ReliabilityDisplay) -> None:
    """Write the number of each bin, from 1, above points above the line and below the others."""
    from matplotlib import patheffects

    halo = [patheffects.withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    for k, (x, y) in enumerate(zip(display.predicted.tolist(), display.observed.tolist(), strict=True)):
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
