"""The tracking experiment as people see it: a table in words, and a picture of the banana that the EKF does not see."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import FloatArray
from ..plot.course import ConsistencyDisplay
from ..plot.display import AFTER, BEFORE, OVER, UNDER, blank_figure, heading, ink, legend_above
from .tracking import GATE, Banana, Inflation, TrackingStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["tracking_figure", "tracking_text"]

_COLOURS = {"EKF": OVER, "UKF": UNDER, "PF": AFTER, "KF": BEFORE}
_SHOWN = 4000  # particles
_SIZE = (12.0, 7.6)


def tracking_text(study: TrackingStudy) -> str:
    """Word a study: a line for each filter, what a gate hides, and what inflation buys."""
    head = ["filter", "ECD", "95 % interval", "median run", "NEES", "first", "NIS", "RMSE", "in band", "NLL", "time"]
    rows = [head]
    for name, filtered in study.filters.items():
        consistency = filtered.consistency()
        interval = consistency.interval
        nis = "" if np.isnan(filtered.nis).all() else f"{np.nanmean(filtered.nis):.2f}"
        rows.append([
            name, f"{consistency.ecd:+.2f}", f"{interval.low:+.2f} to {interval.high:+.2f}",
            f"{consistency.median_run:+.2f}",
            f"{consistency.nees:.1f}", f"{filtered.nees[:, 0].mean():.1f}", nis, f"{filtered.rmse:.1f} m",
            f"{100 * consistency.share_inside:.0f} %", f"{filtered.nll:.2f}", f"{filtered.seconds:.0f} s",
        ])  # fmt: skip
    widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
             for row in rows]  # fmt: skip
    title = f"Range and bearing, {study.setting.name} setting: {study.runs} runs of {study.setting.steps} steps"
    notes = "ECD in nat, NEES 4 and NIS 2 if consistent; first: NEES at step 1; KF: a sensor that is linear"
    text = [f"{title}, {study.particles} particles, seed {study.seed}", "", *lines, "", notes]
    if "EKF" in study.filters:
        ecd, gated_ecd, share = study.gated()
        text += ["", f"A gate that drops NEES > {GATE} would drop {100 * share:.0f} % of the EKF's states, and turn"]
        text += [f"its ECD of {ecd:+.2f} into {gated_ecd:+.2f}."]
    return "\n".join([*text, *_inflation_lines(study.inflation)])


def _inflation_lines(inflation: Inflation | None) -> list[str]:
    if inflation is None:
        return []
    first, last = inflation.factors[0], inflation.factors[-1]
    one_factor, by_step, as_given = "one factor", "one a step", "as given"
    ecd, nll = inflation.ecd, inflation.nll
    return [
        "",
        "Covariances of the EKF inflated by SafeTemperature, judged on fresh runs:",
        f"  as given                      ECD {ecd[as_given]:+8.2f}   NLL {nll[as_given]:7.2f}",
        f"  times {inflation.factor:<8.3g}                ECD {ecd[one_factor]:+8.2f}   NLL {nll[one_factor]:7.2f}",
        f"  by step, {first:.3g} to {last:.3g}".ljust(32) + f"ECD {ecd[by_step]:+8.2f}   NLL {nll[by_step]:7.2f}",
    ]


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
        over_time, banana_axes = list(axes), None
    else:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0))
        over_time = [figure.add_subplot(grid[k, 0]) for k in range(2)]
        banana_axes = figure.add_subplot(grid[:, 1])
    for ax, scale in zip(over_time, ("ECD", "NEES"), strict=True):
        _draw_time(ax, study, scale)
    if banana_axes is not None and study.banana is not None:
        _draw_banana(banana_axes, study.banana, study)
    title = f"Range and bearing, {study.setting.name} setting: {study.runs} runs of {study.setting.steps} steps"
    figure.suptitle(title, x=0.01, ha="left", fontsize="large", fontweight="bold")
    return figure


def _draw_time(ax: Axes, study: TrackingStudy, scale: str) -> None:
    shown = [name for name in study.filters if name != "KF"] or list(study.filters)
    for k, name in enumerate(shown):
        consistency = study.filters[name].consistency()
        ConsistencyDisplay.from_consistency(
            consistency, scale=scale, ax=ax, color=_COLOURS[name], label=name, band=k == len(shown) - 1
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
