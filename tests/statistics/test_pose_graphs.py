"""Pose graphs of GTSAM with planted noise: their marginals are found too small by that factor, on the right side."""

from __future__ import annotations

import warnings

import gtsam
import numpy as np
import pytest

import safecal

pytestmark = [pytest.mark.extra, pytest.mark.proof]
STEP = np.array([0.01, 0.01, 0.02, 0.1, 0.05, 0.03])
FIX = np.array([0.03, 0.03, 0.05, 0.3, 0.3, 0.3])
RUNS, STEPS = 60, 40
Poses = tuple[np.ndarray, np.ndarray, np.ndarray]


def graph(factor: float, rng: np.random.Generator) -> Poses:
    """Return true poses, estimates and marginal covariances of a graph whose noise is ``factor`` times as stated."""
    odometry, absolute = gtsam.noiseModel.Diagonal.Sigmas(STEP), gtsam.noiseModel.Diagonal.Sigmas(FIX)
    truth = [gtsam.Pose3(gtsam.Rot3.Yaw(0.3), np.array([30.0, 20.0, 2.0]))]
    for k in range(1, STEPS):
        turn = gtsam.Rot3.RzRyRx(0.0, 0.02 * np.sin(k / 5), 0.12)
        truth.append(truth[-1].compose(gtsam.Pose3(turn, np.array([1.0, 0.0, 0.05]))))
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    root = np.sqrt(factor)
    for k, pose in enumerate(truth):
        values.insert(k, pose)
        if k:
            measured = truth[k - 1].between(pose).retract(root * STEP * rng.normal(size=6))
            factors.add(gtsam.BetweenFactorPose3(k - 1, k, measured, odometry))
        if k % 8 == 0:
            factors.add(gtsam.PriorFactorPose3(k, pose.retract(root * FIX * rng.normal(size=6)), absolute))
    found = gtsam.LevenbergMarquardtOptimizer(factors, values).optimize()
    marginals = gtsam.Marginals(factors, found)
    covariances = np.array([marginals.marginalCovariance(k) for k in range(STEPS)])
    return (
        np.array([p.matrix() for p in truth]),
        np.array([found.atPose3(k).matrix() for k in range(STEPS)]),
        covariances,
    )


@pytest.mark.parametrize(
    ("factor", "published"), [(1.0, (1.00, 0.92, 1.09)), (2.0, (2.00, 1.84, 2.18)), (4.0, (4.00, 3.68, 4.35))]
)
def test_planted_noise_is_found_on_the_right_and_the_left_is_suspected(
    factor: float, published: tuple[float, float, float]
) -> None:
    rng = np.random.default_rng(0)
    parts = [graph(factor, rng) for _ in range(RUNS)]
    truth, estimate, cov = (np.concatenate([part[i] for part in parts]) for i in range(3))
    run, step = np.repeat(np.arange(RUNS), STEPS), np.tile(np.arange(STEPS), RUNS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = safecal.assess_consistency(
            safecal.poses(truth, estimate, cov, side="right", first="rotation"), run=run, step=step
        )
    assert found.temperature.low < factor < found.temperature.high
    t = found.temperature
    assert (t.value, t.low, t.high) == pytest.approx(published, abs=0.006)  # as docs/poses.md says
    assert found.verdict.decision == ("SAFE" if factor == 1.0 else "UNSAFE")
    assert (found.share_inside > 0.85) == (factor == 1.0)
    with pytest.warns(UserWarning, match=r'`side="right"` explains these errors far better'):
        wrong = safecal.poses(truth, estimate, cov, side="left", first="rotation")
    assert wrong.evaluate(cluster=run).verdict.decision == "UNSAFE"
