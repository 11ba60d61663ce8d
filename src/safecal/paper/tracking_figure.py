"""The tracking experiment in a picture: consistency over time, and the banana that the EKF does not see."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import FloatArray
from ..plot.consistency import ConsistencyDisplay
from ..plot.display import AFTER, BEFORE, OVER, UNDER, blank_figure, heading, ink, legend_above
from .tracking_results import Banana, TrackingStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["tracking_figure"]

_COLOURS = {"EKF": OVER, "UKF": UNDER, "PF": AFTER, "KF": BEFORE}
_SHOWN = 4000  # particles
_SIZE = (12.0, 7.6)


def tracking_figure(study: TrackingStudy, *, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Draw ECD and NEES of each filter over time with their bands, and the first posterior of one run.

    Parameters
    ----------
    study : TrackingStudy
        What `run_tracking` returned.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to fill; by default a new one.

    Returns
    -------
    Figure or SubFigure
        The figure.
    """
    figure = blank_figure(figure, _SIZE)
    if study.banana is None:
        axes = figure.subplots(1, 2)
        over_time, bent = list(axes), None
    else:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
        over_time = [figure.add_subplot(grid[k, 0]) for k in range(2)]
        bent = figure.add_subplot(grid[:, 1])
    for ax, scale in zip(over_time, ("ECD", "NEES"), strict=True):
        _draw_time(ax, study, scale)
    if bent is not None and study.banana is not None:
        _draw_banana(bent, study.banana, study)
    title = f"Range and bearing, {study.setting.name} setting: {study.runs} runs of {study.setting.steps} steps"
    figure.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold")
    return figure


def _draw_time(ax: Axes, study: TrackingStudy, scale: str) -> None:
    shown = [name for name in study.filters if name != "KF"] or list(study.filters)
    for k, name in enumerate(shown):
        found = study.filters[name].consistency()
        ConsistencyDisplay.from_consistency(
            found, scale=scale, ax=ax, color=_COLOURS[name], label=name, band=k == len(shown) - 1
        )
    for line in ax.get_lines():
        if str(line.get_label()).endswith(", median"):
            line.set_label("")
    ax.plot(
        [],
        [],
        linestyle="none",
        marker="o",
        markersize=4,
        color=ink(ax),
        alpha=0.65,
        label="points: median of the runs",
    )
    ax.set_xlabel("step (s)")
    legend_above(ax)
    words = {"ECD": "Above the band, the truth surprises more than announced", "NEES": "The same as NEES"}
    heading(ax, words[scale])


def _draw_banana(ax: Axes, banana: Banana, study: TrackingStudy) -> None:
    rng = np.random.default_rng(0)
    drawn = banana.points[rng.choice(len(banana.points), _SHOWN, p=banana.weight / banana.weight.sum())]
    style: dict[str, Any] = {"linestyle": "none", "zorder": 2}
    ax.plot(
        drawn[:, 0],
        drawn[:, 1],
        marker=".",
        markersize=2.0,
        color=AFTER,
        alpha=0.35,
        **style,
    )
    ax.plot([], [], marker="o", markersize=4, color=AFTER, label="posterior, particles", **style)
    for name, (mean, cov) in banana.gaussians.items():
        line = _ellipse(mean, cov)
        dashes = "-" if name == "EKF" else "--"
        ax.plot(
            line[:, 0], line[:, 1], color=_COLOURS[name], lw=2.0, ls=dashes, zorder=3, label=f"{name}, 95 % ellipse"
        )
        ax.plot(*mean, marker="+", markersize=9, mew=2.0, color=_COLOURS[name], linestyle="none", zorder=4)
    ax.plot(*banana.truth, marker="*", markersize=14, color=ink(ax), linestyle="none", zorder=5, label="truth")
    ax.set_xlabel("x (m); the sensor stands at 0, far to the left")
    ax.set_ylabel("y (m)")
    ax.margins(0.06)
    legend_above(ax)
    nees = study.filters["EKF"].nees[banana.run, 0], study.filters["UKF"].nees[banana.run, 0]
    text = f"NEES of the truth (4 is expected)\nEKF {nees[0]:.0f},  UKF {nees[1]:.1f}"
    ax.text(0.02, 0.02, text, transform=ax.transAxes, va="bottom", fontsize="small")
    heading(ax, f"After the first measurement, run {banana.run}")


def _ellipse(mean: FloatArray, cov: FloatArray) -> FloatArray:
    """Return points on the ellipse that holds 95 % of a Gaussian in the plane."""
    angle = np.linspace(0.0, 2.0 * np.pi, 400)
    circle = math.sqrt(-2.0 * math.log(0.05)) * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(mean + (np.linalg.cholesky(cov) @ circle).T)
