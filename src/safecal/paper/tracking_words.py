"""The tracking experiment in words."""

import numpy as np

from .tracking_results import GATE, Inflation, TrackingStudy

__all__ = ["tracking_text"]


def tracking_text(study: TrackingStudy) -> str:
    """Word a study: a line for each filter, what a gate hides, and what inflation buys."""
    head = ["filter", "ECD", "95 % interval", "median run", "NEES", "first", "NIS", "RMSE", "in band", "NLL", "time"]
    rows = [head]
    for name, found in study.filters.items():
        c = found.consistency()
        nis = "" if np.isnan(found.nis).all() else f"{np.nanmean(found.nis):.2f}"
        rows.append([
            name, f"{c.ecd:+.2f}", f"{c.interval.low:+.2f} to {c.interval.high:+.2f}", f"{c.median_run:+.2f}",
            f"{c.nees:.1f}", f"{found.nees[:, 0].mean():.1f}", nis, f"{found.rmse:.1f} m",
            f"{100 * c.share_inside:.0f} %", f"{found.nll:.2f}", f"{found.seconds:.0f} s",
        ])  # fmt: skip
    widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
             for row in rows]  # fmt: skip
    title = f"Range and bearing, {study.setting.name} setting: {study.runs} runs of {study.setting.steps} steps"
    notes = "ECD in nat, NEES 4 and NIS 2 if consistent; first: NEES at step 1; KF: a sensor that is linear"
    text = [f"{title}, {study.particles} particles, seed {study.seed}", "", *lines, "", notes]
    if "EKF" in study.filters:
        ecd, kept, share = study.gated()
        text += ["", f"A gate that drops NEES > {GATE} would drop {100 * share:.0f} % of the EKF's states, and turn"]
        text += [f"its ECD of {ecd:+.2f} into {kept:+.2f}."]
    return "\n".join([*text, *_inflation_lines(study.inflation)])


def _inflation_lines(inflation: Inflation | None) -> list[str]:
    if inflation is None:
        return []
    first, last = inflation.factors[0], inflation.factors[-1]
    one, step, given = "one factor", "one a step", "as given"
    ecd, nll = inflation.ecd, inflation.nll
    return [
        "",
        "Covariances of the EKF inflated by SafeTemperature, judged on fresh runs:",
        f"  as given                      ECD {ecd[given]:+8.2f}   NLL {nll[given]:7.2f}",
        f"  times {inflation.factor:<8.3g}                ECD {ecd[one]:+8.2f}   NLL {nll[one]:7.2f}",
        f"  by step, {first:.3g} to {last:.3g}".ljust(32) + f"ECD {ecd[step]:+8.2f}   NLL {nll[step]:7.2f}",
    ]
