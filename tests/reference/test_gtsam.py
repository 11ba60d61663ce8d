"""Logarithms, exponentials, errors and NEES beside those of GTSAM."""

from __future__ import annotations

import warnings

import gtsam
import numpy as np
import pytest

import safecal
from safecal._kernels.states import Pose, exponential, logarithm

pytestmark = pytest.mark.extra


def theirs(pose: Pose) -> list[gtsam.Pose3]:
    assert pose.position is not None
    return [
        gtsam.Pose3(gtsam.Rot3.Quaternion(q[3], *q[:3]), p) for q, p in zip(pose.rotation, pose.position, strict=True)
    ]


def tangents(angle: float, rng: np.random.Generator) -> np.ndarray:
    axis = rng.normal(size=(50, 3))
    return np.concatenate(
        [angle * axis / np.linalg.norm(axis, axis=1, keepdims=True), rng.normal(size=(50, 3))], axis=1
    )


ANGLES = [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 1.0, 3.0, np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9, np.pi - 1e-12]


@pytest.mark.parametrize("angle", ANGLES)
def test_poses_of_space(angle: float, rng: np.random.Generator) -> None:
    xi = tangents(angle, rng)
    pose = exponential(xi)
    for one, ours in zip(xi, theirs(pose), strict=True):
        np.testing.assert_allclose(ours.matrix(), gtsam.Pose3.Expmap(one).matrix(), atol=1e-12)
    np.testing.assert_allclose(
        [gtsam.Rot3.Logmap(p.rotation()) for p in theirs(pose)], logarithm(pose)[:, :3], atol=1e-12
    )
    np.testing.assert_allclose(logarithm(pose), xi, atol=1e-12)
    if abs(angle - (np.pi - 1e-3)) > 1e-4:  # there GTSAM's own logarithm of its exponential is off by 3e-7
        np.testing.assert_allclose([gtsam.Pose3.Logmap(p) for p in theirs(pose)], logarithm(pose), atol=1e-12)


@pytest.mark.parametrize("angle", ANGLES)
def test_poses_of_the_plane(angle: float, rng: np.random.Generator) -> None:
    xi = np.concatenate([np.full((50, 1), angle), rng.normal(size=(50, 2))], axis=1)
    pose = exponential(xi, plane=True)
    np.testing.assert_allclose(logarithm(pose), xi, atol=1e-12)
    if angle > 0.01 or angle == 0.0:  # below, GTSAM's own formula loses digits: 1e-7 at an angle of 1e-8
        poses = [gtsam.Pose2.Expmap(one[[1, 2, 0]]) for one in xi]
        np.testing.assert_allclose([p.translation() for p in poses], pose.position, atol=1e-12)
        np.testing.assert_allclose([gtsam.Pose2.Logmap(p)[[2, 0, 1]] for p in poses], logarithm(pose), atol=1e-12)


def test_errors_and_nees_on_the_right_are_those_of_local_coordinates(rng: np.random.Generator) -> None:
    truth, estimate = exponential(rng.normal(size=(200, 6))), exponential(rng.normal(size=(200, 6)))
    root = rng.normal(size=(200, 6, 8))
    cov = root @ root.transpose(0, 2, 1)
    a, b = theirs(truth), theirs(estimate)
    local = np.array([q.localCoordinates(p) for p, q in zip(a, b, strict=True)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these errors are of no covariance
        ours = safecal.poses([p.matrix() for p in a], [p.matrix() for p in b], cov, side="right", first="rotation")
    np.testing.assert_allclose(ours.errors(slice(None)), local, atol=1e-9)
    noise = [gtsam.noiseModel.Gaussian.Covariance(c) for c in cov]
    nees = [one.squaredMahalanobisDistance(e) for one, e in zip(noise, local, strict=True)]
    np.testing.assert_allclose(6 + 2 * ours.score().excess, nees, rtol=1e-8)
