"""The pictures of poses: ellipses lie where positions do."""

from __future__ import annotations

import re

import numpy as np
import pytest

from safecal._kernels.states import exponential, product
from safecal.families.poses import Convention, pose_errors
from safecal.maps.result import PoseStudy
from safecal.report.poses import Track, _position_covariances, poses_html

SIGMA = np.array([0.02, 0.01, 0.03, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("side", ["right", "left", "world"])
@pytest.mark.parametrize("first", ["rotation", "translation"])
def test_covariances_of_positions_are_those_of_small_errors(side: str, first: str, rng: np.random.Generator) -> None:
    n = 4000
    one = exponential(np.array([[0.3, -0.2, 1.0, 8.0, 3.0, 1.0]]))
    assert one.position is not None
    estimate = type(one)(np.repeat(one.rotation, n, axis=0), np.repeat(one.position, n, axis=0))
    xi = SIGMA * rng.normal(size=(n, 6))
    error = exponential(xi)
    truth = product(estimate, error) if side == "right" else product(error, estimate)
    assert truth.position is not None
    moved = truth.position if side != "world" else one.position + xi[:, 3:]
    order = [3, 4, 5, 0, 1, 2] if first == "translation" else [0, 1, 2, 3, 4, 5]
    cov = np.diag(SIGMA[order] ** 2)
    track = Track(truth, estimate, np.broadcast_to(cov, (n, 6, 6)), Convention("SE3", side, first), [])  # type: ignore[arg-type]
    covs = _position_covariances(track, np.arange(2))
    np.testing.assert_allclose(covs[0], np.cov(moved.T), atol=0.06 * np.cov(moved.T).max())


def test_values_far_away_and_impossible_ones_are_drawn(rng: np.random.Generator) -> None:
    n = 30
    estimate = exponential(np.concatenate([0.01 * rng.normal(size=(n, 3)), np.arange(3 * n).reshape(n, 3)], axis=1))
    truth = product(estimate, exponential(SIGMA * 30 * rng.normal(size=(n, 6))))
    convention = Convention("SE3", "right", "rotation")
    errors = pose_errors(truth, estimate, np.diag(SIGMA**2), convention)
    study = PoseStudy.of(errors, convention, run=np.zeros(n), step=np.arange(n))
    cov = np.broadcast_to(np.diag(SIGMA**2), (n, 6, 6))
    page = poses_html(study, Track(truth, estimate, cov, convention, [np.arange(float(n))]))
    assert re.search(r"NEES against seconds: from \d", page)
    assert f"of {n} outside of their ellipse" in page
