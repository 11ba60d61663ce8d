"""Trajectories beside evo: the same poses, the same pairs of times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evo.core import sync
from evo.tools import file_interface

from safecal._kernels.states import exponential
from safecal.inputs.trajectories import matched_times, read_trajectory

pytestmark = pytest.mark.extra


def written(path: Path, times: np.ndarray, rng: np.random.Generator) -> str:
    pose = exponential(rng.normal(size=(len(times), 6)))
    assert pose.position is not None
    np.savetxt(path, np.concatenate([times[:, None], pose.position, pose.rotation], axis=1), fmt="%.9f", header="TUM")
    return str(path)


@pytest.mark.parametrize(("rows", "others"), [(200, 350), (350, 200), (200, 200)])
def test_times_are_paired_as_by_evo(rows: int, others: int, tmp_path: Path, rng: np.random.Generator) -> None:
    a = written(tmp_path / "a.tum", np.sort(1.4e9 + rng.uniform(0, 20, rows)), rng)
    b = written(tmp_path / "b.tum", np.sort(1.4e9 + rng.uniform(1, 21, others)), rng)
    theirs = sync.associate_trajectories(*map(file_interface.read_tum_trajectory_file, (a, b)), max_diff=0.02)
    ours = [read_trajectory(path) for path in (a, b)]
    i, j = matched_times(ours[0].times, ours[1].times, 0.02)
    assert 50 < len(i) < min(rows, others)
    for one, index, other in zip(ours, (i, j), theirs, strict=True):
        taken = one.taken(index)
        np.testing.assert_array_equal(taken.times, other.timestamps)
        np.testing.assert_allclose(taken.pose.position, other.positions_xyz, atol=1e-12)
        turned = other.orientations_quat_wxyz[:, [1, 2, 3, 0]]
        turned /= np.linalg.norm(turned, axis=1, keepdims=True)
        np.testing.assert_allclose(taken.pose.rotation, turned, atol=1e-12)
