"""Trajectories in files: TUM text, columns of nav_msgs/Odometry, their covariances, and times that belong together."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._checks.arrays import as_numbers
from .._checks.states import DIMENSIONS, unit_quaternions
from .._kernels.states import Pose
from .._optional import polars
from .._types import AnyArray, FloatArray, IndexArray
from ..errors import FileError, InputError
from .sources import first_line, open_source

__all__ = ["Trajectory", "matched_times", "of_group", "read_covariances", "read_trajectory"]

_TUM = "timestamp tx ty tz qx qy qz qw"
_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".jsonl", ".ndjson")
_POSITION = [f"position_{axis}" for axis in "xyz"]
_ORIENTATION = [f"orientation_{axis}" for axis in "xyzw"]
_SECONDS = ("header_stamp_sec", "header_stamp_secs", "stamp_sec", "stamp_secs", "sec", "secs")
_NANOSECONDS = ("header_stamp_nanosec", "header_stamp_nsecs", "stamp_nanosec", "stamp_nsecs", "nanosec", "nsecs")
_STAMPS = ("time", "timestamp", "stamp", "t", "header_stamp")
_SAME_STAMP = 1e-6  # seconds between a covariance and its pose: what text keeps of a stamp


class Trajectory(NamedTuple):
    """Poses over time, in the order of their stamps; with covariances (n, 6, 6) where the file has them."""

    name: str
    times: FloatArray
    pose: Pose
    cov: FloatArray | None

    def taken(self, index: IndexArray) -> "Trajectory":
        """Return some poses."""
        turn, position = self.pose
        moved = Pose(turn[index], None if position is None else position[index])
        return Trajectory(self.name, self.times[index], moved, None if self.cov is None else self.cov[index])


def read_trajectory(path: str, quaternion: str = "xyzw") -> Trajectory:
    """Read a file of poses: a table with the columns of nav_msgs/Odometry, by its name, or else TUM text.

    ``quaternion`` is the order in TUM text, which by definition is x, y, z, w.
    """
    suffixes = [s for s in Path(path).suffixes if s not in (".gz", ".zst")]
    table = bool(suffixes) and suffixes[-1].lower() in _TABLES
    times, position, turn, cov = _odometry(path) if table else _tum(path)
    order = "xyzw" if table else quaternion
    bad = np.flatnonzero(~np.isfinite(np.concatenate([times[:, None], position, turn], axis=1)).all(axis=1))
    if bad.size:
        raise FileError(f"{path} must hold finite numbers; pose {bad[0]} does not ({bad.size} of {len(times)} poses).")
    try:
        rotation = unit_quaternions(turn, path, order)
    except InputError as error:
        raise type(error)(str(error).replace("row", "pose")) from None
    by_time = np.argsort(times, kind="stable")
    times = times[by_time]
    repeated = np.flatnonzero(np.diff(times) == 0.0)
    if repeated.size:
        raise FileError(
            f"{path} must have every stamp once; {float(times[repeated[0]])!r} comes twice "
            f"({repeated.size} of {len(times)} stamps).\n\n"
            "Hint: was it written by two runs? Give each run a file of its own."
        )
    pose = Pose(rotation[by_time], np.ascontiguousarray(position[by_time]))
    return Trajectory(path, times, pose, None if cov is None else cov[by_time])


def _tum(path: str) -> tuple[FloatArray, FloatArray, FloatArray, None]:
    numbers = _numbers_of(path, None, f"TUM text, `{_TUM}`")
    if numbers.shape[1] != 8:
        raise FileError(
            f"{path} must be TUM text, `{_TUM}`, 8 numbers a line; it has {numbers.shape[1]}."
            "\n\nHint: a table with the columns of nav_msgs/Odometry is named .csv or .parquet."
        )
    return numbers[:, 0], numbers[:, 1:4], numbers[:, 4:], None


def _numbers_of(path: str, separator: str | None, what: str, skip: int = 0) -> FloatArray:
    """Read lines of numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of files without a line
            numbers = np.loadtxt(path, dtype=np.float64, comments="#", delimiter=separator, ndmin=2, skiprows=skip)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (ValueError, UnicodeDecodeError) as error:
        reason = str(error).split(";")[0].split("\n")[0].rstrip(".")
        raise FileError(f"{path} cannot be read as {what}: {reason}.") from error
    if not len(numbers):
        raise FileError(f"{path} is empty.")
    return np.asarray(numbers)


def _plain_name(name: str) -> str:
    """Return the name of a column in one spelling: `pose.pose.position.x` and `position_x` are the same."""
    plain = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")
    return plain.removeprefix("pose_pose_").removeprefix("pose_")


def _odometry(path: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    source = open_source(path, None)
    by_name = {_plain_name(column): column for column in source.columns}
    place, turn = (_named(by_name, names, path) for names in (_POSITION, _ORIENTATION))
    cells = [f"covariance_{k}" for k in range(36)]
    cov = [by_name[cell] for cell in cells] if all(cell in by_name for cell in cells) else []
    listed = by_name.get("covariance")
    stamp = [by_name[n] for names in (_SECONDS, _NANOSECONDS) for n in names if n in by_name][:2]
    stamp_column = next((by_name[name] for name in _STAMPS if name in by_name), None)
    if len(stamp) != 2 and stamp_column is None:
        raise FileError(
            f"{path} must have a column of stamps; it has {', '.join(source.columns[:8])}."
            "\n\nHint: `header.stamp.sec` and `header.stamp.nanosec`, or `timestamp` in seconds."
        )
    lists = [listed] if listed and not cov else []
    stamps = stamp if len(stamp) == 2 else [str(stamp_column)]
    parts: dict[str, list[AnyArray]] = {column: [] for column in (*place, *turn, *cov, *lists, *stamps)}
    for batch in source.batches(list(parts)):
        for column, pieces in parts.items():
            pieces.append(_matrix(batch[column], path) if column == listed else _floats(batch[column], column))
    if not parts[place[0]]:
        raise FileError(f"{path} is empty.")
    values = {column: np.concatenate(pieces) for column, pieces in parts.items()}
    times = values[stamps[0]] + 1e-9 * values[stamps[1]] if len(stamp) == 2 else values[stamps[0]]
    matrices = None
    if cov:
        matrices = np.stack([values[c] for c in cov], axis=1).reshape(-1, 6, 6)
    elif listed:
        matrices = values[listed].reshape(-1, 6, 6)
    stacked = [np.stack([values[c] for c in names], axis=1) for names in (place, turn)]
    return times, stacked[0], stacked[1], matrices


def _named(by_name: dict[str, str], names: Sequence[str], path: str) -> list[str]:
    if missing := [name for name in names if name not in by_name]:
        raise FileError(
            f"{path} must have the columns of nav_msgs/Odometry; there is no {missing[0].replace('_', '.')}."
            "\n\nHint: `pose.pose.position.x` to `pose.pose.orientation.w`; TUM text is named .tum or .txt."
        )
    return [by_name[name] for name in names]


def _floats(values: Any, name: str) -> FloatArray:
    if type(values).__module__.startswith("polars"):
        wide = values.cast(polars().Float64, strict=False)
        if not wide.null_count():
            return np.asarray(wide.to_numpy(), dtype=np.float64)
    return np.asarray(as_numbers(np.asarray(values), name), dtype=np.float64)


def _matrix(values: Any, path: str) -> FloatArray:
    matrices = np.asarray([np.asarray(value, dtype=np.float64).reshape(-1) for value in values], dtype=np.float64)
    if matrices.ndim != 2 or matrices.shape[1] != 36:
        raise FileError(f"{path} must have covariances of 36 numbers; it has {matrices.shape[-1]}.")
    return matrices


def read_covariances(path: str, poses: Trajectory) -> FloatArray:
    """Read covariances: one matrix for all poses, or a line for each, with its stamp or without; or .npy arrays."""
    n = len(poses.times)
    if Path(path).suffix.lower() == ".npy":
        try:
            values = np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
        except (OSError, ValueError) as error:
            raise FileError(f"{path} cannot be read as .npy: {first_line(error)}.") from error
    else:
        separator, skip = _layout(path)
        values = _numbers_of(path, separator, "lines of numbers", skip)
    d = values.shape[-1]
    if values.shape in {(n, 3, 3), (n, 6, 6), (3, 3), (6, 6)}:
        return values
    if values.ndim == 2 and d in (10, 37):
        values = _of_stamps(values, path, poses)
        d -= 1
    if values.ndim == 2 and d in (9, 36):
        if len(values) != n:
            raise FileError(
                f"{path} must have a covariance for each of the {n} poses of {poses.name}; it has {len(values)}."
            )
        size = 3 if d == 9 else 6
        return values.reshape(n, size, size)
    raise FileError(
        f"{path} must hold one matrix, or a line of 36 numbers (9 in the plane) for each of {n} poses; "
        f"it has shape {values.shape}.\n\nHint: a line is a matrix row by row; its stamp may come first."
    )


def _layout(path: str) -> tuple[str | None, int]:
    """Return what stands between numbers, and how many lines to skip: names of columns may come first."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file):
                if text.strip() and not text.startswith("#"):
                    separator = "," if "," in text else None
                    words = text.split(separator)
                    return separator, number + 1 if re.search(r"[A-Za-df-z]", words[0]) else 0
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    raise FileError(f"{path} is empty.")


def _of_stamps(values: FloatArray, path: str, poses: Trajectory) -> FloatArray:
    """Return the covariance of each pose by its stamp."""
    values = values[np.argsort(values[:, 0], kind="stable")]
    _, index = matched_times(poses.times, values[:, 0], _SAME_STAMP)
    if len(index) != len(poses.times) or len(np.unique(index)) != len(index):
        raise FileError(
            f"{path} must have a covariance for each stamp of {poses.name}; "
            f"{len(poses.times) - len(np.unique(index))} of {len(poses.times)} have none within a microsecond."
        )
    return values[index, 1:]


def matched_times(a: FloatArray, b: FloatArray, tolerance: float) -> tuple[IndexArray, IndexArray]:
    """Return which of the sorted times ``a`` and ``b`` belong together: the nearest, within a tolerance.

    Each time of the shorter list is given the nearest of the longer one, as evo does it.
    """
    short, long = (a, b) if len(b) > len(a) else (b, a)
    above = np.clip(np.searchsorted(long, short), 1, len(long) - 1) if len(long) > 1 else np.zeros(len(short), np.intp)
    below = np.maximum(above - 1, 0)
    near = np.where(np.abs(long[below] - short) <= np.abs(long[above] - short), below, above)
    matched = np.flatnonzero(np.abs(long[near] - short) <= tolerance)
    return (matched, near[matched]) if len(b) > len(a) else (near[matched], matched)


def of_group(trajectory: Trajectory, cov: FloatArray, group: str, first: str | None) -> tuple[Pose, FloatArray]:
    """Return poses and covariances of a group; from poses of space, the plane keeps x, y and the turn about z."""
    turn, position = trajectory.pose
    assert position is not None
    if group == "SE3":
        return trajectory.pose, cov
    d = sum(DIMENSIONS[group])
    if cov.shape[-1] > d:
        kept_axes = {("SE2", "rotation"): [2, 3, 4], ("SE2", "translation"): [0, 1, 5]}.get((group, str(first)))
        kept_axes = kept_axes or ([3, 4, 5] if first == "translation" else [0, 1, 2])
        cov = cov[..., kept_axes, :][..., kept_axes]
    if group == "SO3":
        return Pose(turn, None), cov
    x, y, z, w = turn.T
    return Pose(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)), position[:, :2]), cov
