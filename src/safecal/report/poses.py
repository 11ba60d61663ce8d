"""The page about poses: the report of an evaluation, with the track, NEES over time, and the axes."""

import os
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from .._checks.states import DIMENSIONS
from .._kernels.states import Pose, exponential, product
from .._types import FloatArray, IndexArray
from ..families.poses import Convention, pose_errors
from ..files import write_atomically
from ..html import (
    AxisScale,
    Markup,
    element,
    in_utc,
    interval_text,
    label,
    line,
    metric_text,
    picture,
    plain,
    shape,
    tick_text,
    upright_label,
    with_code,
)
from ..html.frame import code_region, figure, pairs_table, plain_table, section, table_row
from ..maps.result import PoseStudy
from .page import Context, page

__all__ = ["Track", "poses_html", "write_poses"]

_SIZE = (440.0, 344.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 428.0, 24.0, 286.0
_ELLIPSES = 40
_ELLIPSE_RADIUS = 2.4477  # of the ellipse that holds 95 % of a Gaussian of the plane
_LINE_POINTS = 300  # of a line
_WINDOWS = 150


class Track(NamedTuple):
    """The poses of the first run with their covariances, and the times of all runs."""

    truth: Pose
    estimate: Pose
    cov: FloatArray
    convention: Convention
    times: Sequence[FloatArray]


def write_poses(
    study: PoseStudy,
    track: Track,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> None:
    """Write the page to one HTML file, whole or not at all."""
    write_atomically(path, poses_html(study, track, title=title, source=source, command=command))


def poses_html(
    study: PoseStudy,
    track: Track,
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    created: datetime | None = None,
) -> str:
    """Return the page: the report of the evaluation, with its axes and its track."""
    context = Context(title or "Is the covariance of the poses honest?", source, command, in_utc(created))
    return page(study.evaluation, context, None, None, more=[_axes_section(study), _pictures(study, track)])


def _axes_section(study: PoseStudy) -> Markup:
    names = ("axis", "true over stated variance", "interval", "factor of the deviation")
    rows = []
    for axis in study.axes:
        between = interval_text(axis.temperature) if study.several else "not known from one run"
        cells = [metric_text(axis.temperature.value), between, metric_text(axis.factor)]
        rows.append(table_row(element("span", axis.name, class_="name"), cells, "n"))
    table = plain_table("The axes one by one", names, rows)
    note = "Each interval holds by itself. Above 1, the axis is over-confident."
    suspected = [element("p", element("strong", "Suspected:"), " ", with_code(f"{text}.")) for text in study.suspicions]
    parts: list[Markup] = [*suspected, table, element("p", note, class_="note")]
    if study.fix is not None:
        matrix = ",\n ".join("[" + ", ".join(f"{x:.4g}" for x in row) + "]" for row in study.matrix)
        parts += [
            element("p", "Multiply covariances by this, entry by entry; over-confidence is then ruled out:"),
            code_region(f"[{matrix}]", "The factors of the covariances"),
        ]
    parts.append(pairs_table([("noted", text) for text in study.notes], "Beside the verdict"))
    return section("axes", "By axis", *parts)


def _pictures(study: PoseStudy, track: Track) -> Markup:
    parts = []
    if track.estimate.position is not None:
        caption = "The line is the true track of the first run. Each ellipse is where the estimate says that the truth "
        caption += "lies, with 95 % probability; the dot is the truth then. Filled dots lie outside."
        parts.append(figure("Where was it, and where did it say it was?", _track_picture(track), caption))
    parts.append(_over_time(study, track))
    return section("track", "Along the track", element("div", *parts, class_="pictures"))


def _over_time(study: PoseStudy, track: Track) -> Markup:
    heading = "Is it surprised at some times more than at others?"
    d = study.evaluation.dimension
    if study.consistency is not None:
        steps = study.consistency.steps
        keys = np.array(steps.keys, dtype=np.float64)
        nees, band = d + 2.0 * steps.ecd, d + 2.0 * study.consistency.bands()
        image = _time_picture(keys, nees, band, d, "step")
        caption = "The line is the mean NEES of the runs at each step; on the right, the same as ECD. If the "
        caption += f"covariances are right, {100 * study.evaluation.level:g} % of the steps lie in the grey band. "
        return figure(heading, image, f"{caption}Above, they are too small.")
    predictions = pose_errors(track.truth, track.estimate, track.cov, track.convention)
    nees = d + 2.0 * predictions.score().excess
    windows = np.array_split(np.arange(len(nees)), min(_WINDOWS, len(nees)))
    at = np.array([track.times[0][rows].mean() for rows in windows])
    image = _time_picture(at, np.array([nees[rows].mean() for rows in windows]), None, d, "seconds")
    caption = "The line is the mean NEES of the first run in windows of time; on the right, the same as ECD. "
    caption += f"If the covariances are right, it is about {d}. "
    return figure(heading, image, f"{caption}Errors persist in a run, so that no band is known.")


def _time_picture(at: FloatArray, nees: FloatArray, band: FloatArray | None, d: int, name: str) -> Markup:
    finite = nees[np.isfinite(nees)]
    marks = np.concatenate([finite, [float(d)], [] if band is None else band.ravel()])
    low, high = float(marks.min()), float(marks.max())
    log = high > 8.0 * d and low > 0.0
    pad = 0.0 if log else 0.06 * (high - low or 1.0)
    first, last, right = float(at.min()), float(at.max()), _RIGHT - 34.0
    x = AxisScale(first, last if last > first else first + 1.0, _LEFT, right)
    y = AxisScale(low / 1.2 if log else max(low - pad, 0.0), high * 1.2 if log else high + pad, _BOTTOM, _TOP, log)
    drawn = [(x(float(t)), y(float(v))) for t, v in zip(at, nees, strict=True) if np.isfinite(v)]
    parts = [
        *(line(_LEFT, y(t), right, y(t), "grid") for t in y.ticks(6)),
        *(label(_LEFT - 8.0, y(t) + 4.0, tick_text(t), anchor="end") for t in y.ticks(6)),
        *(label(right + 6.0, y(t) + 4.0, tick_text((t - d) / 2.0)) for t in y.ticks(6)),
        *(line(x(t), _BOTTOM, x(t), _BOTTOM + 4.0, "axis") for t in x.ticks(6)),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in x.ticks(6)),
    ]
    if band is not None:
        edges = [(x(float(t)), y(float(v))) for t, v in zip(at, band[:, 1], strict=True)]
        edges += [(x(float(t)), y(float(v))) for t, v in zip(at[::-1], band[::-1, 0], strict=True)]
        parts.append(shape(edges, "inside"))
    parts += [
        line(_LEFT, y(float(d)), right, y(float(d)), "neutral"),
        shape(drawn, "curve", closed=False),
        line(_LEFT, _BOTTOM, right, _BOTTOM, "axis"),
        label((_LEFT + right) / 2.0, _BOTTOM + 42.0, name, "axis-name", "middle"),
        label(_LEFT, _TOP - 9.0, f"a NEES of {d} is consistent", "small"),
        label(_RIGHT, _TOP - 9.0, "ECD, nat", "axis-name", "end"),
        upright_label("NEES", 12.0, (_TOP + _BOTTOM) / 2.0),
    ]
    lowest, highest = (plain(float(end)) for end in (finite.min(), finite.max()))
    description = f"NEES against {name}: from {lowest} to {highest}, where {d} is consistent."
    return picture("over-time", _SIZE, "NEES and ECD over time", description, *parts)


def _position_covariances(track: Track, rows: IndexArray) -> FloatArray:
    """Return the covariances of positions in the world, (n, k, k): how a small error moves the position."""
    group, side, _ = track.convention
    turn, move = DIMENSIONS[group]
    estimate = Pose(track.estimate.rotation[rows], track.estimate.position[rows])  # type: ignore[index]
    assert estimate.position is not None
    step = 1e-6
    columns = []
    for k in range(turn + move):
        error = np.zeros((len(rows), turn + move))
        error[:, k] = step
        if side == "world":
            columns.append(error[:, turn:] / step)
            continue
        moved = exponential(error, plane=group == "SE2")
        displaced = product(estimate, moved) if side == "right" else product(moved, estimate)
        assert displaced.position is not None
        columns.append((displaced.position - estimate.position) / step)
    slope = track.convention.ordered(np.moveaxis(np.array(columns), 0, 1).reshape(len(rows), turn + move, -1))
    slope = np.swapaxes(slope, 1, 2)
    return np.asarray(slope @ np.asarray(track.cov)[rows] @ np.swapaxes(slope, 1, 2))


def _track_picture(track: Track) -> Markup:
    truth, estimate = track.truth.position, track.estimate.position
    assert truth is not None
    assert estimate is not None
    extent = np.ptp(truth, axis=0)
    a, b = sorted(np.argsort(-extent, kind="stable")[:2].tolist())
    rows = np.unique(np.linspace(0, len(truth) - 1, min(_ELLIPSES, len(truth))).astype(np.intp))
    cov = _position_covariances(track, rows)[:, [[a], [b]], [a, b]]
    root = np.linalg.cholesky(cov + 1e-18 * np.eye(2))
    around = np.linspace(0.0, 2.0 * np.pi, 41)[:-1]
    circle = _ELLIPSE_RADIUS * np.stack([np.cos(around), np.sin(around)])
    rings = estimate[rows][:, [a, b], None] + root @ circle
    white = np.linalg.solve(root, (truth - estimate)[rows][:, [a, b], None])[..., 0]
    outside = np.sqrt((white * white).sum(axis=1)) > _ELLIPSE_RADIUS
    seen = np.concatenate([truth[:, [a, b]], np.moveaxis(rings, 1, 2).reshape(-1, 2)])
    low, high = np.percentile(seen, [1, 99], axis=0)
    low, high = np.minimum(low, truth[:, [a, b]].min(axis=0)), np.maximum(high, truth[:, [a, b]].max(axis=0))
    half = 0.54 * max(float((high - low)[0]) / (_RIGHT - _LEFT), float((high - low)[1]) / (_BOTTOM - _TOP), 1e-9)
    middle = (low + high) / 2.0
    wide, tall = half * (_RIGHT - _LEFT), half * (_BOTTOM - _TOP)  # one scale for both axes: circles stay circles
    x = AxisScale(float(middle[0] - wide), float(middle[0] + wide), _LEFT, _RIGHT)
    y = AxisScale(float(middle[1] - tall), float(middle[1] + tall), _BOTTOM, _TOP)
    some = np.unique(np.linspace(0, len(truth) - 1, min(_LINE_POINTS, len(truth))).astype(np.intp))
    parts = [
        *(line(_LEFT, y(t), _RIGHT, y(t), "grid") for t in y.ticks(6)),
        *(label(_LEFT - 8.0, y(t) + 4.0, tick_text(t), anchor="end") for t in y.ticks(6)),
        *(label(x(t), _BOTTOM + 18.0, tick_text(t), anchor="middle") for t in x.ticks(6)),
        *(shape([(x(float(p)), y(float(q))) for p, q in ring.T], "band") for ring in rings),
        shape([(x(float(p[a])), y(float(p[b]))) for p in truth[some]], "curve thin", closed=False),
        *(
            element("circle", cx=x(float(p[a])), cy=y(float(p[b])), r=3.0, class_="over" if out else "over hollow")
            for p, out in zip(truth[rows], outside, strict=True)
        ),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        label((_LEFT + _RIGHT) / 2.0, _BOTTOM + 42.0, "xyz"[a], "axis-name", "middle"),
        upright_label("xyz"[b], 12.0, (_TOP + _BOTTOM) / 2.0),
        label(_RIGHT, _TOP - 9.0, f"{int(outside.sum())} of {len(rows)} outside of their ellipse", "small", "end"),
    ]
    description = (
        f"The track in {'xyz'[a]} and {'xyz'[b]} with {len(rows)} ellipses; {int(outside.sum())} do not hold the truth."
    )
    return picture("the-track", _SIZE, "Error ellipses along the track, with the truth", description, *parts)
