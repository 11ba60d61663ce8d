"""Files of trajectories: TUM text, nav_msgs/Odometry, covariances, and which times belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from safecal._kernels.states import exponential
from safecal.errors import FileError, RangeError
from safecal.inputs.trajectories import Trajectory, matched_times, of_group, read_covariances, read_trajectory

N = 12


@pytest.fixture
def track(rng: np.random.Generator) -> np.ndarray:
    """Stamps, positions and quaternions."""
    pose = exponential(rng.normal(size=(N, 6)))
    assert pose.position is not None
    return np.concatenate([1.4e9 + 0.1 * np.arange(N)[:, None], pose.position, pose.rotation], axis=1)


def written(path: Path, table: np.ndarray) -> str:
    np.savetxt(path, table, fmt="%.9f", header="timestamp tx ty tz qx qy qz qw")
    return str(path)


def test_tum_text_is_read_in_the_order_of_its_stamps(tmp_path: Path, track: np.ndarray) -> None:
    poses = read_trajectory(written(tmp_path / "a.tum", track[::-1]))
    np.testing.assert_allclose(poses.times, track[:, 0], atol=1e-6)
    np.testing.assert_allclose(poses.pose.position, track[:, 1:4], atol=1e-8)
    np.testing.assert_allclose(poses.pose.rotation, track[:, 4:], atol=1e-8)
    assert poses.cov is None
    first = track[:, [0, 1, 2, 3, 7, 4, 5, 6]]
    np.testing.assert_allclose(
        read_trajectory(written(tmp_path / "b.txt", first), "wxyz").pose.rotation, track[:, 4:], atol=1e-8
    )


def odometry(track: np.ndarray, cov: np.ndarray, style: str) -> dict[str, object]:
    names = [f"pose.pose.position.{a}" for a in "xyz"] + [f"pose.pose.orientation.{a}" for a in "xyzw"]
    columns: dict[str, object] = dict(zip(names, track[:, 1:].T, strict=True))
    if style == "list":
        return columns | {"timestamp": track[:, 0], "pose.covariance": cov.reshape(-1, 36).tolist()}
    cells = {f"pose.covariance[{k}]": cov.reshape(-1, 36)[:, k] for k in range(36)}
    seconds = np.floor(track[:, 0])
    stamp = {"header.stamp.sec": seconds, "header.stamp.nanosec": np.round(1e9 * (track[:, 0] - seconds))}
    return columns | cells | stamp


def test_columns_of_odometry_are_found_however_they_are_written(tmp_path: Path, track: np.ndarray) -> None:
    cov = np.arange(N * 36.0).reshape(N, 6, 6)
    frame = pl.DataFrame(odometry(track, cov, "cells"))
    frame.write_csv(tmp_path / "o.csv")
    frame.rename(lambda name: name.replace(".", "/")).write_parquet(tmp_path / "o.parquet")
    pl.DataFrame(odometry(track, cov, "list")).write_parquet(tmp_path / "l.parquet")
    for name in ("o.csv", "o.parquet", "l.parquet"):
        poses = read_trajectory(str(tmp_path / name))
        np.testing.assert_allclose(poses.times, track[:, 0], atol=1e-6)
        np.testing.assert_allclose(poses.pose.rotation, track[:, 4:], atol=1e-12)
        assert poses.cov is not None
        np.testing.assert_allclose(poses.cov, cov)


def test_odometry_is_read_without_polars_and_without_covariances(
    tmp_path: Path, track: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame(odometry(track, np.zeros((N, 6, 6)), "list")).drop("pose.covariance")
    frame.write_csv(tmp_path / "o.csv")
    monkeypatch.setattr("safecal.inputs.sources.has_polars", lambda: False)
    poses = read_trajectory(str(tmp_path / "o.csv"))
    np.testing.assert_allclose(poses.pose.position, track[:, 1:4])
    assert poses.cov is None


def test_bad_trajectories_are_named(tmp_path: Path, track: np.ndarray) -> None:
    def said(table: np.ndarray) -> str:
        with pytest.raises((FileError, RangeError)) as error:
            read_trajectory(written(tmp_path / "bad.tum", table))
        return str(error.value)

    twice, long, missing = track.copy(), track.copy(), track.copy()
    twice[3, 0], long[2, 7], missing[4, 1] = twice[2, 0], 3.0, np.nan
    assert "must have every stamp once" in said(twice)
    assert "must have quaternions of length 1; got one of length" in said(long)
    assert "at pose 2 (1 of 12 poses)" in said(long)
    assert "must hold finite numbers; pose 4 does not (1 of 12 poses)" in said(missing)
    assert "8 numbers a line; it has 7" in said(track[:, :7])
    assert "is empty" in said(track[:0])
    (tmp_path / "words.tum").write_text("1 2 3 4 5 6 7 eight\n")
    with pytest.raises(FileError, match=r"cannot be read as TUM text.*could not convert string 'eight'"):
        read_trajectory(str(tmp_path / "words.tum"))
    with pytest.raises(FileError, match="does not exist"):
        read_trajectory(str(tmp_path / "none.tum"))
    for columns, match in (
        ({"x": [1.0]}, "there is no position.x"),
        (odometry(track, np.zeros((N, 6, 6)), "list"), "stamps"),
    ):
        frame = pl.DataFrame(columns)
        frame.drop([c for c in frame.columns if c in ("timestamp", "pose.covariance")]).write_csv(tmp_path / "c.csv")
        with pytest.raises(FileError, match=match):
            read_trajectory(str(tmp_path / "c.csv"))
    pl.DataFrame(odometry(track, np.zeros((N, 6, 6)), "list")).clear().write_parquet(tmp_path / "none.parquet")
    with pytest.raises(FileError, match="is empty"):
        read_trajectory(str(tmp_path / "none.parquet"))
    short = pl.DataFrame(odometry(track, np.zeros((N, 6, 6)), "list")).with_columns(
        pl.col("pose.covariance").list.head(9)
    )
    short.write_parquet(tmp_path / "short.parquet")
    with pytest.raises(FileError, match="covariances of 36 numbers; it has 9"):
        read_trajectory(str(tmp_path / "short.parquet"))
    pl.DataFrame(odometry(track, np.zeros((N, 6, 6)), "cells")).with_columns(
        pl.lit("far").alias("pose.pose.position.x")
    ).write_csv(tmp_path / "far.csv")
    with pytest.raises(ValueError, match=r"pose\.pose\.position\.x"):
        read_trajectory(str(tmp_path / "far.csv"))


def trajectory(track: np.ndarray, tmp_path: Path) -> Trajectory:
    return read_trajectory(written(tmp_path / "one.tum", track))


def test_covariances_are_one_matrix_or_one_a_pose(tmp_path: Path, track: np.ndarray, rng: np.random.Generator) -> None:
    poses = trajectory(track, tmp_path)
    lines = rng.random((N, 36))
    stamped = np.concatenate([track[:, :1], lines], axis=1)[rng.permutation(N)]
    np.savetxt(tmp_path / "lines.csv", lines, delimiter=",", header=",".join(f"c{k}" for k in range(36)), comments="")
    np.savetxt(tmp_path / "stamped.txt", stamped, fmt="%.12f")
    np.savetxt(tmp_path / "one.txt", lines[0].reshape(6, 6))
    np.save(tmp_path / "all.npy", lines.reshape(N, 6, 6))
    for name in ("lines.csv", "stamped.txt", "all.npy"):
        np.testing.assert_allclose(read_covariances(str(tmp_path / name), poses), lines.reshape(N, 6, 6), atol=1e-11)
    np.testing.assert_allclose(read_covariances(str(tmp_path / "one.txt"), poses), lines[0].reshape(6, 6))
    np.savetxt(tmp_path / "few.txt", lines[:5])
    np.savetxt(tmp_path / "odd.txt", lines[:, :21])
    np.savetxt(tmp_path / "late.txt", stamped + np.eye(1, 37) * 3.0, fmt="%.9f")
    (tmp_path / "none.txt").write_text("# nothing\n")
    (tmp_path / "bad.npy").write_text("nothing")
    for name, match in (
        ("few.txt", "a covariance for each of the 12 poses of .*; it has 5"),
        ("odd.txt", r"a line of 36 numbers .* it has shape \(12, 21\)"),
        ("late.txt", "for each stamp of .*; 12 of 12 have none within a microsecond"),
        ("none.txt", "is empty"),
        ("gone.txt", "does not exist"),
        ("bad.npy", "cannot be read as .npy"),
    ):
        with pytest.raises(FileError, match=match):
            read_covariances(str(tmp_path / name), poses)


def test_the_nearest_times_belong_together() -> None:
    a, b = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.004, 1.2, 1.996, 2.001, 9.0])
    assert [x.tolist() for x in matched_times(a, b, 0.01)] == [[0, 2], [0, 3]]
    assert [x.tolist() for x in matched_times(b, a, 0.01)] == [[0, 3], [0, 2]]
    assert [x.tolist() for x in matched_times(a[:1], np.array([0.001]), 0.01)] == [[0], [0]]
    assert not matched_times(a, b + 100.0, 0.01)[0].size


def test_the_plane_and_rotations_are_cut_out_of_poses_of_space(tmp_path: Path, track: np.ndarray) -> None:
    poses, cov = trajectory(track, tmp_path), np.arange(36.0).reshape(6, 6)
    flat, small = of_group(poses, cov, "SE2", "translation")
    assert small.tolist() == [[0.0, 1.0, 5.0], [6.0, 7.0, 11.0], [30.0, 31.0, 35.0]]
    assert flat.position is not None
    assert flat.position.shape == (N, 2)
    assert of_group(poses, cov, "SE2", "rotation")[1][0, 0] == 14.0
    turn, three = of_group(poses, np.eye(3), "SO3", None)
    assert turn.position is None
    assert three.shape == (3, 3)
    assert of_group(poses, cov, "SO3", "translation")[1][0, 0] == 21.0
